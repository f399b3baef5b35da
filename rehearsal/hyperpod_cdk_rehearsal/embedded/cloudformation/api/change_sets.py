"""Operations on change sets."""

from __future__ import annotations

import uuid
from typing import Any

from hyperpod_cdk_rehearsal.embedded.cloudformation.changes import Preview, preview, without_values
from hyperpod_cdk_rehearsal.embedded.cloudformation.deployment import DeploymentOptions
from hyperpod_cdk_rehearsal.embedded.cloudformation.importing import Wanted, changes_of, wanted_of
from hyperpod_cdk_rehearsal.embedded.cloudformation.service import (
    UPDATABLE,
    StackService,
    described_parameters,
    described_tags,
    paged,
    service_of,
)
from hyperpod_cdk_rehearsal.embedded.cloudformation.stacks import ChangeSet, Stack, Stacks, stacks_of
from hyperpod_cdk_rehearsal.embedded.cloudformation.template import TemplateError
from hyperpod_cdk_rehearsal.embedded.context import Context
from hyperpod_cdk_rehearsal.embedded.operations import ServiceError, operation

_PAGE = 100
_NO_CHANGES = "The submitted information didn't contain changes. Submit different information to create a change set."


@operation("cloudformation", "CreateChangeSet")
def create_change_set(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Create a change set; it is complete when this returns."""
    service = service_of(context)
    stack = _stack_for(service, context, request)
    if any(existing.name == request["ChangeSetName"] for existing in stack.change_sets.values()):
        raise ServiceError(
            "AlreadyExistsException", f"ChangeSet {request['ChangeSetName']} already exists for stack {stack.name}"
        )
    settings = service.settings(stack, request)
    name, kind = request["ChangeSetName"], request.get("ChangeSetType", "UPDATE")
    wanted: list[Wanted] = []
    if kind == "IMPORT":
        rows = request.get("ResourcesToImport", [])
        wanted = wanted_of(context, stack, settings, service.provisioner, rows)
        found = Preview(changes=changes_of(wanted))
    else:
        found = preview(context, stack, settings, service.provisioner)
    change_set = ChangeSet(
        change_set_id=context.arn("cloudformation", f"changeSet/{name}/{uuid.uuid4()}"),
        name=name,
        kind=kind,
        wanted=wanted,
        description=request.get("Description", ""),
        settings=settings,
        created=context.clock.now(),
        changes=found.changes,
        status="FAILED" if found.is_empty else "CREATE_COMPLETE",
        status_reason=_NO_CHANGES if found.is_empty else None,
        execution_status="UNAVAILABLE" if found.is_empty else "AVAILABLE",
        on_stack_failure=request.get("OnStackFailure"),
        include_nested_stacks=bool(request.get("IncludeNestedStacks")),
        deployment_config=request.get("DeploymentConfig", {}),
    )
    if service.stacks.find(stack.stack_id) is None:
        service.stacks.add(stack)
        stack.set_status("REVIEW_IN_PROGRESS", "User Initiated")
    with stack.lock:
        stack.change_sets[change_set.change_set_id] = change_set
    return {"Id": change_set.change_set_id, "StackId": stack.stack_id}


@operation("cloudformation", "DescribeChangeSet")
def describe_change_set(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Return a change set, with a page of its changes."""
    stack, change_set = _find(stacks_of(context), request)
    page, token = paged(change_set.changes, request.get("NextToken"), _PAGE)
    if not request.get("IncludePropertyValues"):
        page = [without_values(change) for change in page]
    described = {
        "ChangeSetName": change_set.name,
        "ChangeSetId": change_set.change_set_id,
        "StackId": stack.stack_id,
        "StackName": stack.name,
        "Description": change_set.description or None,
        "Parameters": described_parameters(change_set.settings.parameters),
        "CreationTime": change_set.created,
        "ExecutionStatus": change_set.execution_status,
        "Status": change_set.status,
        "StatusReason": change_set.status_reason,
        "NotificationARNs": change_set.settings.notification_arns,
        "RollbackConfiguration": change_set.settings.rollback_configuration,
        "Capabilities": change_set.settings.capabilities,
        "Tags": described_tags(change_set.settings.tags),
        "Changes": page,
        "NextToken": token,
        "IncludeNestedStacks": change_set.include_nested_stacks,
        "OnStackFailure": change_set.on_stack_failure,
        "DeploymentConfig": change_set.deployment_config or None,
    }
    return {key: value for key, value in described.items() if value is not None}


@operation("cloudformation", "ExecuteChangeSet")
def execute_change_set(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Deploy a change set, and delete all other change sets of the stack."""
    service = service_of(context)
    stack, change_set = _find(service.stacks, request)
    if change_set.execution_status != "AVAILABLE":
        raise ServiceError(
            "InvalidChangeSetStatus",
            f"ChangeSet [{change_set.change_set_id}] cannot be executed in its current status of "
            f"[{change_set.status}] and execution status of [{change_set.execution_status}]",
        )
    if change_set.kind == "IMPORT":
        service.take_in(stack, change_set, token=request.get("ClientRequestToken"))
        _executed(stack, change_set)
        return {}
    on_failure = change_set.on_stack_failure
    options = DeploymentOptions(
        disable_rollback=bool(
            request.get("DisableRollback")
            or change_set.deployment_config.get("DisableRollback")
            or on_failure == "DO_NOTHING"
        ),
        delete_on_failure=on_failure == "DELETE",
        retain_except_on_create=bool(request.get("RetainExceptOnCreate")),
    )
    service.deploy(stack, change_set.settings, options=options, token=request.get("ClientRequestToken"))
    _executed(stack, change_set)
    return {}


def _executed(stack: Stack, change_set: ChangeSet) -> None:
    with stack.lock:
        change_set.execution_status = "EXECUTE_COMPLETE"
        stack.change_sets = {change_set.change_set_id: change_set}
        stack.executed_change_set_id = change_set.change_set_id


@operation("cloudformation", "DeleteChangeSet")
def delete_change_set(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Delete a change set; a missing one is no error if its stack exists."""
    stacks = stacks_of(context)
    try:
        stack, change_set = _find(stacks, request)
    except ServiceError as error:
        if error.code == "ChangeSetNotFound" and request.get("StackName") and stacks.find(request["StackName"]):
            return {}
        raise
    with stack.lock:
        stack.change_sets.pop(change_set.change_set_id, None)
    return {}


@operation("cloudformation", "ListChangeSets")
def list_change_sets(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Return the change sets of a stack that can still be executed."""
    stack = stacks_of(context).get(request["StackName"], "Stack [{}] does not exist")
    waiting = [found for found in stack.change_sets.values() if found.execution_status != "EXECUTE_COMPLETE"]
    page, token = paged(waiting, request.get("NextToken"), _PAGE)
    summaries = [
        {
            "StackId": stack.stack_id,
            "StackName": stack.name,
            "ChangeSetId": change_set.change_set_id,
            "ChangeSetName": change_set.name,
            "ExecutionStatus": change_set.execution_status,
            "Status": change_set.status,
            "CreationTime": change_set.created,
            "IncludeNestedStacks": change_set.include_nested_stacks,
            **({"StatusReason": change_set.status_reason} if change_set.status_reason else {}),
            **({"Description": change_set.description} if change_set.description else {}),
        }
        for change_set in page
    ]
    return {"Summaries": summaries, "NextToken": token}


def _stack_for(service: StackService, context: Context, request: dict[str, Any]) -> Stack:
    """Return the stack of a new change set; for a creation, a new stack that is not registered yet."""
    kind, name = request.get("ChangeSetType", "UPDATE"), request["StackName"]
    stack = service.stacks.find(name)
    # ImportExistingResources, which `cdk bootstrap` sets, is ignored: an existing name fails on creation
    if kind != "IMPORT" and request.get("ResourcesToImport"):
        raise TemplateError("ResourcesToImport can only be specified when ChangeSetType is IMPORT")
    if stack is None and kind != "UPDATE":
        service.check_new_name(name)
    if kind == "IMPORT" and (stack is None or stack.status == "REVIEW_IN_PROGRESS"):
        return stack or Stack(context, name)
    if kind == "CREATE":
        if stack is None:
            return Stack(context, name)
        if stack.status != "REVIEW_IN_PROGRESS":
            raise TemplateError(
                f"Stack [{name}] already exists and cannot be created again with the changeSet "
                f"[{request['ChangeSetName']}]."
            )
        return stack
    if stack is None or stack.status == "REVIEW_IN_PROGRESS":
        raise TemplateError(f"Stack [{name}] does not exist")
    if stack.status not in UPDATABLE:
        raise TemplateError(f"Stack:{stack.stack_id} is in {stack.status} state and can not be updated.")
    return stack


def _find(stacks: Stacks, request: dict[str, Any]) -> tuple[Stack, ChangeSet]:
    wanted, stack_name = request["ChangeSetName"], request.get("StackName")
    if not wanted.startswith("arn:") and not stack_name:
        raise TemplateError("StackName must be specified if ChangeSetName is not specified as an ARN.")
    owners = [stacks.get(stack_name, "Stack [{}] does not exist")] if stack_name else list(stacks.by_id.values())
    for stack in owners:
        for change_set in list(stack.change_sets.values()):
            if wanted in (change_set.change_set_id, change_set.name):
                return stack, change_set
    raise ServiceError("ChangeSetNotFound", f"ChangeSet [{wanted}] does not exist", 404)
