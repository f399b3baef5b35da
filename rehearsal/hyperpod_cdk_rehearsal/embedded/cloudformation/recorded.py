"""The handlers of types without their own handler: the resource is recorded, or has no effect."""

from __future__ import annotations

import secrets
from typing import Any

from hyperpod_cdk_rehearsal.embedded.cloudformation.schema import ResourceSchema, values_at
from hyperpod_cdk_rehearsal.embedded.inspection import record
from hyperpod_cdk_rehearsal.embedded.resources.registry import (
    ResourceHandler,
    ResourceRequest,
    ResourceResult,
)


class RecordedHandler(ResourceHandler):
    """Creates a physical ID and attributes that look like those of the type, from the registry schema."""

    def __init__(self, schema: ResourceSchema | None) -> None:
        self._schema = schema

    def create(self, request: ResourceRequest) -> ResourceResult:
        """Record the resource."""
        record(
            request.context,
            resource_type=request.resource_type,
            logical_id=request.logical_id,
            stack_name=request.stack_name,
        )
        schema = self._schema
        if schema is None:
            return ResourceResult(f"{request.stack_name}-{request.logical_id}")
        made: dict[tuple[str, ...], Any] = {}
        identifier = [
            str(values_at(request.properties, path) or made.setdefault(path, _synthetic(request, path)))
            for path in sorted(schema.primary_identifier)
        ]
        attributes = {
            ".".join(path): made.get(path) or _synthetic(request, path)
            for path in sorted(schema.read_only)
            if "*" not in path
        }
        return ResourceResult("|".join(identifier) or request.generated_name(), attributes)

    def update(self, request: ResourceRequest) -> ResourceResult:
        """Keep the physical ID; attributes that the engine has are unchanged."""
        return ResourceResult(request.existing_id)

    def delete(self, request: ResourceRequest) -> None:
        """Do nothing, because the record has no resource."""


class BuiltInHandler(ResourceHandler):
    """Creates a physical ID for a type of CloudFormation itself, which has no resource on AWS either."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        """Create the physical ID, which is all that AWS does."""
        return ResourceResult(f"{request.stack_name}-{request.logical_id}")

    def update(self, request: ResourceRequest) -> ResourceResult:
        """Keep the physical id."""
        return ResourceResult(request.existing_id)

    def delete(self, request: ResourceRequest) -> None:
        """Do nothing, because there is no resource."""


def _synthetic(request: ResourceRequest, path: tuple[str, ...]) -> str:
    """A value in the usual form of an attribute of this name: an ARN, an id, or a name."""
    name = path[-1]
    kind = request.resource_type.split("::")
    service, noun = kind[1].lower(), kind[-1].lower()
    if name.endswith("Arn"):
        return request.context.arn(service, f"{noun}/{request.stack_name}-{request.logical_id}")
    if name.endswith("Id"):
        return f"{noun}-{secrets.token_hex(8)}"
    return request.generated_name(lower=True)
