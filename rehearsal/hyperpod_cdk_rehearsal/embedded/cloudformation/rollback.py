"""Rolls back a failed deployment: deletes the resources of a new stack, or restores those of an updated one."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from typing import Any

from hyperpod_cdk_rehearsal.embedded.cloudformation import graph
from hyperpod_cdk_rehearsal.embedded.cloudformation.deployment import Deployment, Step, clean_up
from hyperpod_cdk_rehearsal.embedded.cloudformation.graph import WorkFailedError
from hyperpod_cdk_rehearsal.embedded.cloudformation.provision import ResourceFailure
from hyperpod_cdk_rehearsal.embedded.cloudformation.stacks import StackResource
from hyperpod_cdk_rehearsal.embedded.cloudformation.workspace import creation_rollback_policy, failed_reason
from hyperpod_cdk_rehearsal.embedded.resources.registry import ResourceResult

_REQUESTED = "Rollback requested by user."
_SKIPPED = "Resource skipped during UpdateRollback"


def settle_failure(deployment: Deployment, reason: str) -> None:
    """End a failed deployment according to its options."""
    stack, options = deployment.stack, deployment.options
    if options.disable_rollback:
        stack.paused = deployment
        stack.settings = deployment.settings
        stack.set_status("CREATE_FAILED" if deployment.creating else "UPDATE_FAILED", reason)
    elif deployment.creating:
        stack.set_status("ROLLBACK_IN_PROGRESS", f"{reason}{_REQUESTED}")
        empty_stack(deployment)
        if options.delete_on_failure and stack.status == "ROLLBACK_COMPLETE":
            stack.set_status("DELETE_IN_PROGRESS")
            stack.deleted = deployment.workspace.context.clock.now()
            stack.set_status("DELETE_COMPLETE")
    else:
        stack.set_status("UPDATE_ROLLBACK_IN_PROGRESS", reason)
        restore_stack(deployment)


def empty_stack(deployment: Deployment) -> None:
    """Roll back a create: delete all created resources in reverse order; the stack's status is already set."""
    stack, workspace = deployment.stack, deployment.workspace
    doomed = {name: resource for name, resource in stack.resources.items() if resource.exists}

    def delete(name: str) -> None:
        resource = doomed[name]
        policy = creation_rollback_policy(resource, retain_except_on_create=deployment.options.retain_except_on_create)
        workspace.delete(resource, policy)

    waits_for = graph.reverse({name: resource.depends_on for name, resource in doomed.items()})
    outcome = graph.run(waits_for, delete, stop_on_failure=False)
    stack.paused = None
    if outcome.failed:
        stack.set_status("ROLLBACK_FAILED", failed_reason(sorted(outcome.failed), "delete"))
    else:
        stack.set_status("ROLLBACK_COMPLETE")


def restore_stack(deployment: Deployment, skip: Collection[str] = ()) -> None:
    """Roll back an update: restore the properties of all changed resources; the stack's status is already set.

    Resources in `skip` count as restored (ContinueUpdateRollback).
    """
    stack, steps, doomed = deployment.stack, deployment.journal.steps, deployment.journal.doomed
    failed = []
    left = deployment.journal.unrestored or steps
    known = {name: step.before.depends_on for name in left if (step := steps[name]).before is not None}
    for name in graph.ordered(known):
        try:
            _restore(deployment, name, steps[name], doomed, skip=name in skip)
        except WorkFailedError:
            failed.append(name)
    deployment.journal.unrestored = failed
    if failed:
        stack.paused = deployment
        stack.set_status("UPDATE_ROLLBACK_FAILED", failed_reason(failed, "update"))
        return
    for name, step in steps.items():
        made = stack.resources.get(name)
        if step.before is None and made is not None:
            policy = creation_rollback_policy(made, retain_except_on_create=deployment.options.retain_except_on_create)
            doomed[name] = (made, policy)
    stack.set_status("UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS")
    clean_up(deployment.workspace, doomed)
    with stack.lock:
        for name, step in steps.items():
            if step.before is None:
                stack.resources.pop(name, None)
        stack.settings = deployment.journal.settings
        stack.paused = None
        stack.updated = deployment.workspace.context.clock.now()
    stack.set_status("UPDATE_ROLLBACK_COMPLETE")


def _restore(
    deployment: Deployment,
    name: str,
    step: Step,
    doomed: dict[str, tuple[StackResource, str]],
    *,
    skip: bool,
) -> None:
    stack, workspace = deployment.stack, deployment.workspace
    current, before = stack.resources[name], step.before
    if before is None:
        return
    if step.debris is not None:
        doomed[name] = (step.debris, "Delete")
    restored = dataclasses.replace(before)
    if skip:
        # CloudFormation treats it as restored, whatever its real state: the next update is compared with the template
        with stack.lock:
            stack.resources[name] = restored
        stack.set_resource_status(restored, "UPDATE_COMPLETE", _SKIPPED)
        return
    stack.set_resource_status(current, "UPDATE_IN_PROGRESS")
    if step.replaced:
        doomed[name] = (dataclasses.replace(current), "Delete")
    elif step.attempted is not None:
        try:
            result = _put_back(deployment, current, before, step)
        except ResourceFailure as failure:
            raise workspace.fail(current, "UPDATE_FAILED", failure.reason) from failure
        restored.attributes = {**before.attributes, **result.attributes}
    with stack.lock:
        stack.resources[name] = restored
    stack.set_resource_status(restored, "UPDATE_COMPLETE")


def _put_back(deployment: Deployment, current: StackResource, before: StackResource, step: Step) -> ResourceResult:
    """Update the resource to its previous properties.

    Handlers see changes from the attempted properties. A refused update may have been applied only partly: AWS's
    handlers compare with the real state, so it is no failure to revert a change that never happened.
    """
    workspace = deployment.workspace

    def update(previous: dict[str, Any] | None) -> ResourceResult:
        request = workspace.request(current, before.properties, previous=previous, physical_id=current.physical_id)
        return workspace.provisioner.update(request, deployment.stack)

    try:
        return update(step.attempted)
    except ResourceFailure:
        if not step.refused:
            raise
        return update(before.properties)
