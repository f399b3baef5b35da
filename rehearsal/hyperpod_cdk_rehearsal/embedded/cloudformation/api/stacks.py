"""Operations on whole stacks: create, update, delete, roll back, describe, list, exports."""

from __future__ import annotations

from typing import Any

from hyperpod_cdk_rehearsal.embedded.cloudformation.changes import preview
from hyperpod_cdk_rehearsal.embedded.cloudformation.deployment import DeploymentOptions
from hyperpod_cdk_rehearsal.embedded.cloudformation.service import (
    described_parameters,
    described_tags,
    paged,
    service_of,
)
from hyperpod_cdk_rehearsal.embedded.cloudformation.stacks import Stack, stacks_of
from hyperpod_cdk_rehearsal.embedded.cloudformation.template import TemplateError
from hyperpod_cdk_rehearsal.embedded.context import Context, asked_by_a_function
from hyperpod_cdk_rehearsal.embedded.operations import ServiceError, operation

HOLD_SECONDS = 20.0
"""How long DescribeStacks of one stack waits for an operation under way.

Waiters and the CDK CLI poll every 5 to 30 seconds; a response that waits for the stack ends a short deployment as
soon as it is done. Well below every SDK's read timeout of 60 seconds.
"""

_PAGE = 100
_NOT_FOUND = "Stack [{}] does not exist"


@operation("cloudformation", "CreateStack")
def create_stack(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Create a stack without a change set."""
    service, name = service_of(context), request["StackName"]
    service.check_new_name(name)
    if service.stacks.find(name) is not None:
        raise ServiceError("AlreadyExistsException", f"Stack [{name}] already exists")
    stack = Stack(context, name)
    settings = service.settings(stack, request)
    stack.termination_protection = bool(request.get("EnableTerminationProtection"))
    service.stacks.add(stack)
    on_failure = request.get("OnFailure")
    options = DeploymentOptions(
        disable_rollback=_rollback_disabled(request) or on_failure == "DO_NOTHING",
        delete_on_failure=on_failure == "DELETE",
        retain_except_on_create=bool(request.get("RetainExceptOnCreate")),
    )
    service.deploy(stack, settings, options=options, token=request.get("ClientRequestToken"))
    return {"StackId": stack.stack_id}


@operation("cloudformation", "UpdateStack")
def update_stack(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Update a stack without a change set."""
    service = service_of(context)
    stack = service.stacks.get(request["StackName"], _NOT_FOUND)
    service.require_updatable(stack)
    settings = service.settings(stack, request)
    if preview(context, stack, settings, service.provisioner).is_empty:
        raise TemplateError("No updates are to be performed.")
    options = DeploymentOptions(
        disable_rollback=_rollback_disabled(request),
        retain_except_on_create=bool(request.get("RetainExceptOnCreate")),
    )
    service.deploy(stack, settings, options=options, token=request.get("ClientRequestToken"))
    return {"StackId": stack.stack_id}


@operation("cloudformation", "DeleteStack")
def delete_stack(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Delete a stack; one that does not exist is no error."""
    service = service_of(context)
    stack = service.stacks.find(request["StackName"])
    if stack is not None:
        service.delete(stack, request.get("RetainResources", []), request.get("ClientRequestToken"))
    return {}


@operation("cloudformation", "RollbackStack")
def rollback_stack(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Roll back a deployment that failed with rollback disabled."""
    service = service_of(context)
    stack = service.stacks.get(request["StackName"], _NOT_FOUND)
    service.roll_back(
        stack,
        request.get("ClientRequestToken"),
        retain_except_on_create=bool(request.get("RetainExceptOnCreate")),
    )
    return {"StackId": stack.stack_id, "OperationId": stack.operation.operation_id}


@operation("cloudformation", "ContinueUpdateRollback")
def continue_update_rollback(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Retry what a rollback could not restore."""
    service = service_of(context)
    stack = service.stacks.get(request["StackName"], _NOT_FOUND)
    service.continue_rollback(
        stack,
        request.get("ResourcesToSkip", []),
        request.get("ClientRequestToken"),
        is_forced=bool(request.get("ForceRollback")),
    )
    return {}


@operation("cloudformation", "UpdateTerminationProtection")
def update_termination_protection(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Enable or disable termination protection."""
    stack = stacks_of(context).get(request["StackName"], _NOT_FOUND)
    stack.termination_protection = bool(request["EnableTerminationProtection"])
    return {"StackId": stack.stack_id}


@operation("cloudformation", "SetStackPolicy")
def set_stack_policy(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Store a stack policy, which is returned but not enforced."""
    stacks_of(context).get(request["StackName"], _NOT_FOUND).policy = request.get("StackPolicyBody")
    return {}


@operation("cloudformation", "GetStackPolicy")
def get_stack_policy(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Return the stack policy, if there is one."""
    policy = stacks_of(context).get(request["StackName"], _NOT_FOUND).policy
    return {"StackPolicyBody": policy} if policy else {}


@operation("cloudformation", "DescribeStacks")
def describe_stacks(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Return one stack, after waiting for it up to HOLD_SECONDS, or every stack that is not deleted."""
    stacks, name = stacks_of(context), request.get("StackName")
    if name:
        stack = stacks.get(name)
        # a custom resource would wait for itself
        if not asked_by_a_function.get():
            stack.wait_while_in_progress(HOLD_SECONDS)
        return {"Stacks": [_described(stack)]}
    page, token = paged(stacks.active(), request.get("NextToken"), _PAGE)
    return {"Stacks": [_described(stack) for stack in page], "NextToken": token}


@operation("cloudformation", "ListStacks")
def list_stacks(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Return every stack, including deleted ones, newest first."""
    wanted = request.get("StackStatusFilter", [])
    found = [stack for stack in stacks_of(context).by_id.values() if not wanted or stack.status in wanted]
    page, token = paged(found[::-1], request.get("NextToken"), _PAGE)
    summaries = [
        {
            "StackId": stack.stack_id,
            "StackName": stack.name,
            "TemplateDescription": stack.settings.template.description if stack.settings else None,
            "CreationTime": stack.created,
            "LastUpdatedTime": stack.updated,
            "DeletionTime": stack.deleted,
            "StackStatus": stack.status,
            "StackStatusReason": stack.status_reason,
            "DriftInformation": {"StackDriftStatus": "NOT_CHECKED"},
        }
        for stack in page
    ]
    return {"StackSummaries": [_present(summary) for summary in summaries], "NextToken": token}


@operation("cloudformation", "ListExports")
def list_exports(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Return every export of the Region."""
    exports = [
        {"ExportingStackId": stack.stack_id, "Name": output.export_name, "Value": output.value}
        for stack, output in stacks_of(context).exports()
    ]
    page, token = paged(exports, request.get("NextToken"), _PAGE)
    return {"Exports": page, "NextToken": token}


@operation("cloudformation", "ListImports")
def list_imports(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Return the names of the stacks that import an export."""
    name = request["ExportName"]
    importing = [stack.name for stack in stacks_of(context).active() if name in stack.imports]
    if not importing:
        raise ServiceError("ValidationError", f"Export '{name}' is not imported by any stack.")
    return {"Imports": importing}


def _rollback_disabled(request: dict[str, Any]) -> bool:
    return bool(request.get("DisableRollback") or request.get("DeploymentConfig", {}).get("DisableRollback"))


def _described(stack: Stack) -> dict[str, Any]:
    with stack.lock:
        settings = stack.settings
        outputs = [
            _present(
                {
                    "OutputKey": output.key,
                    "OutputValue": output.value,
                    "Description": output.description,
                    "ExportName": output.export_name,
                }
            )
            for output in stack.outputs.values()
        ]
        described = {
            "StackId": stack.stack_id,
            "StackName": stack.name,
            "ChangeSetId": stack.executed_change_set_id,
            "Description": (settings.template.description or None) if settings else None,
            "Parameters": described_parameters(settings.parameters) if settings else [],
            "CreationTime": stack.created,
            "LastUpdatedTime": stack.updated,
            "DeletionTime": stack.deleted,
            "RollbackConfiguration": settings.rollback_configuration if settings else {},
            "StackStatus": stack.status,
            "StackStatusReason": stack.status_reason,
            "DisableRollback": stack.disable_rollback,
            "NotificationARNs": settings.notification_arns if settings else [],
            "Capabilities": settings.capabilities if settings else [],
            "Outputs": outputs,
            "RoleARN": settings.role_arn if settings else None,
            "Tags": described_tags(settings.tags) if settings else [],
            "EnableTerminationProtection": stack.termination_protection,
            "DriftInformation": {"StackDriftStatus": "NOT_CHECKED"},
        }
        return _present(described)


def _present(described: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in described.items() if value is not None}
