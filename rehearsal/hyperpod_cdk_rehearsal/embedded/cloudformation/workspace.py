"""Common parts of operations on one stack: requests to handlers, and deletion of a resource by its policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hyperpod_cdk_rehearsal.embedded.cloudformation.graph import WorkFailedError
from hyperpod_cdk_rehearsal.embedded.cloudformation.provision import Provisioner, ResourceFailure
from hyperpod_cdk_rehearsal.embedded.cloudformation.stacks import Stack, StackResource
from hyperpod_cdk_rehearsal.embedded.context import Context
from hyperpod_cdk_rehearsal.embedded.resources.registry import ResourceRequest


class Workspace:
    """One stack under an operation."""

    def __init__(self, context: Context, stack: Stack, provisioner: Provisioner) -> None:
        self.context = context
        self.stack = stack
        self.provisioner = provisioner

    def request(
        self,
        resource: StackResource,
        properties: dict[str, Any],
        *,
        previous: dict[str, Any] | None = None,
        physical_id: str | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> ResourceRequest:
        """A request to the resource's handler."""
        return ResourceRequest(
            resource_type=resource.resource_type,
            logical_id=resource.logical_id,
            stack_name=self.stack.name,
            stack_id=self.stack.stack_id,
            properties=properties,
            previous=previous,
            physical_id=physical_id,
            tags=dict(tags or {}),
            context=self.context,
        )

    def fail(self, resource: StackResource, status: str, reason: str) -> WorkFailedError:
        """Mark the resource as failed; returns the exception to raise."""
        self.stack.set_resource_status(resource, status, reason)
        return WorkFailedError(resource.logical_id)

    def delete(self, resource: StackResource, policy: str) -> None:
        """Delete the resource according to its policy; raises WorkFailedError.

        `Snapshot` deletes: nothing in here has snapshots.
        """
        if resource.physical_id is None:
            resource.status = "DELETE_COMPLETE"
            return
        if policy in ("Retain", "RetainExceptOnCreate"):
            self.stack.set_resource_status(resource, "DELETE_SKIPPED")
            return
        self.stack.set_resource_status(resource, "DELETE_IN_PROGRESS")
        try:
            self.provisioner.delete(self.request(resource, resource.properties, physical_id=resource.physical_id))
        except ResourceFailure as failure:
            raise self.fail(resource, "DELETE_FAILED", failure.reason) from failure
        self.stack.set_resource_status(resource, "DELETE_COMPLETE")


def creation_rollback_policy(resource: StackResource, *, retain_except_on_create: bool) -> str:
    """The policy that counts when the operation that made a resource is rolled back."""
    if resource.deletion_policy == "RetainExceptOnCreate":
        return "Delete"
    return "Delete" if retain_except_on_create else resource.deletion_policy


def failed_reason(names: list[str], verb: str) -> str:
    """CloudFormation's sentence about the resources that failed."""
    return f"The following resource(s) failed to {verb}: [{', '.join(names)}]. "


def attribute_of(resource: StackResource, name: str) -> Any:
    """The value of Fn::GetAtt; None where the resource has no such attribute."""
    if name in resource.attributes:
        return resource.attributes[name]
    for source in (resource.attributes, resource.properties):
        value: Any = source
        for part in name.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        if value is not None:
            return value
    return None


def missing_attribute(resource: StackResource, name: str) -> str:
    """Return CloudFormation's message for an attribute that a resource does not have."""
    if resource.resource_type.startswith("Custom::"):
        return (
            f"CustomResource attribute error: Vendor response doesn't contain {name} key in object "
            f"{resource.physical_id} in S3 bucket"
        )
    known = ", ".join(sorted(resource.attributes))
    return f"Attribute {name} of {resource.logical_id} has no value, got {known or 'none'}"
