"""Operations that show the resources and events of a stack."""

from __future__ import annotations

import json
from typing import Any

from hyperpod_cdk_rehearsal.embedded.account import account_of
from hyperpod_cdk_rehearsal.embedded.cloudformation.provision import shown
from hyperpod_cdk_rehearsal.embedded.cloudformation.service import paged
from hyperpod_cdk_rehearsal.embedded.cloudformation.stacks import Event, Stack, StackResource, stacks_of
from hyperpod_cdk_rehearsal.embedded.cloudformation.template import TemplateError
from hyperpod_cdk_rehearsal.embedded.context import Context
from hyperpod_cdk_rehearsal.embedded.observed import as_timed
from hyperpod_cdk_rehearsal.embedded.operations import operation

_PAGE = 100
_NOT_CHECKED = {"StackResourceDriftStatus": "NOT_CHECKED"}


@operation("cloudformation", "DescribeStackEvents")
def describe_stack_events(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Return the events of a stack, newest first."""
    stack = stacks_of(context).get(request["StackName"], "Stack [{}] does not exist")
    events = [_event(stack, event) for event in stack.events[::-1]]
    as_timed(account_of(context).observed, events)
    page, token = paged(events, request.get("NextToken"), _PAGE)
    return {"StackEvents": page, "NextToken": token}


@operation("cloudformation", "DescribeEvents")
def describe_events(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Return the events of a stack or of one of its operations, newest first; change sets have no events here."""
    if "StackName" not in request:
        raise TemplateError("StackName must be specified")
    stack = stacks_of(context).get(request["StackName"], "Stack [{}] does not exist")
    wanted, failed_only = request.get("OperationId"), request.get("Filters", {}).get("FailedEvents", False)
    events = [
        event
        for event in stack.events[::-1]
        if "ChangeSetName" not in request
        and wanted in (None, event.operation_id)
        and (not failed_only or event.status.endswith("_FAILED"))
    ]
    page, token = paged(events, request.get("NextToken"), _PAGE)
    return {"OperationEvents": [_operation_event(stack, event) for event in page], "NextToken": token}


@operation("cloudformation", "DescribeStackResources")
def describe_stack_resources(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Return the resources of a stack, or of the stack that owns a physical ID."""
    stacks, physical_id = stacks_of(context), request.get("PhysicalResourceId")
    if physical_id and "StackName" not in request:
        owners = [s for s in stacks.active() if any(r.physical_id == physical_id for r in s.resources.values())]
        if not owners:
            raise TemplateError(f"Stack for {physical_id} does not exist")
        stack = owners[0]
    else:
        stack = stacks.get(request.get("StackName", ""))
    wanted = request.get("LogicalResourceId")
    described = [
        {
            "StackName": stack.name,
            "StackId": stack.stack_id,
            "Timestamp": resource.updated,
            "DriftInformation": _NOT_CHECKED,
            **_resource(resource),
        }
        for resource in list(stack.resources.values())
        if wanted in (None, resource.logical_id) and physical_id in (None, resource.physical_id)
    ]
    return {"StackResources": described}


@operation("cloudformation", "DescribeStackResource")
def describe_stack_resource(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Return one resource of a stack."""
    stack = stacks_of(context).get(request["StackName"], "Stack '{}' does not exist")
    resource = stack.resources.get(request["LogicalResourceId"])
    if resource is None:
        raise TemplateError(f"Resource {request['LogicalResourceId']} does not exist for stack {stack.name}")
    detail = {
        "StackName": stack.name,
        "StackId": stack.stack_id,
        "LastUpdatedTimestamp": resource.updated,
        "Metadata": json.dumps(resource.metadata),
        "DriftInformation": _NOT_CHECKED,
        **_resource(resource),
    }
    return {"StackResourceDetail": detail}


@operation("cloudformation", "ListStackResources")
def list_stack_resources(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Return summaries of the resources of a stack."""
    stack = stacks_of(context).get(request["StackName"])
    page, token = paged(list(stack.resources.values()), request.get("NextToken"), _PAGE)
    summaries = [
        {"LastUpdatedTimestamp": resource.updated, "DriftInformation": _NOT_CHECKED, **_resource(resource)}
        for resource in page
    ]
    return {"StackResourceSummaries": summaries, "NextToken": token}


def _resource(resource: StackResource) -> dict[str, Any]:
    described = {
        "LogicalResourceId": resource.logical_id,
        "ResourceType": resource.resource_type,
        "ResourceStatus": resource.status,
    }
    if resource.physical_id is not None:
        described["PhysicalResourceId"] = resource.physical_id
    if resource.reason:
        described["ResourceStatusReason"] = resource.reason
    return described


def _event(stack: Stack, event: Event) -> dict[str, Any]:
    described = {
        "StackId": stack.stack_id,
        "EventId": event.event_id,
        "StackName": stack.name,
        "OperationId": event.operation_id,
        "LogicalResourceId": event.logical_id,
        "PhysicalResourceId": event.physical_id,
        "ResourceType": event.resource_type,
        "Timestamp": event.timestamp,
        "ResourceStatus": event.status,
        "ResourceStatusReason": event.reason,
        "ResourceProperties": shown(event.properties) if event.properties is not None else None,
        "ClientRequestToken": event.token,
    }
    return {key: value for key, value in described.items() if value is not None}


def _operation_event(stack: Stack, event: Event) -> dict[str, Any]:
    described = _event(stack, event)
    described.pop("StackName")
    return {**described, "EventType": "STACK_EVENT", "OperationType": _operation_type(event)}


def _operation_type(event: Event) -> str:
    verb = event.status.partition("_")[0]
    kinds = {"CREATE": "CREATE_STACK", "UPDATE": "UPDATE_STACK", "DELETE": "DELETE_STACK", "ROLLBACK": "ROLLBACK"}
    return kinds.get(verb, "CREATE_CHANGESET")
