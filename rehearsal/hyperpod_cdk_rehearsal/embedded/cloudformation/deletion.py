"""Deletes a stack: dependents first, retained resources left alone."""

from __future__ import annotations

from collections.abc import Collection

from hyperpod_cdk_rehearsal.embedded.cloudformation import graph
from hyperpod_cdk_rehearsal.embedded.cloudformation.workspace import Workspace, failed_reason


def delete_stack(workspace: Workspace, retain: Collection[str] = ()) -> None:
    """Delete the stack, whose operation has begun; resources named in `retain` are left alone."""
    stack = workspace.stack
    doomed = {name: resource for name, resource in stack.resources.items() if resource.exists}

    def delete(name: str) -> None:
        workspace.delete(doomed[name], "Retain" if name in retain else doomed[name].deletion_policy)

    waits_for = graph.reverse({name: resource.depends_on for name, resource in doomed.items()})
    outcome = graph.run(waits_for, delete, stop_on_failure=False)
    if outcome.failed:
        stack.set_status("DELETE_FAILED", failed_reason(sorted(outcome.failed), "delete"))
        return
    with stack.lock:
        stack.outputs, stack.imports, stack.paused = {}, frozenset(), None
        stack.deleted = workspace.context.clock.now()
        stack.change_sets.clear()
    stack.set_status("DELETE_COMPLETE")
