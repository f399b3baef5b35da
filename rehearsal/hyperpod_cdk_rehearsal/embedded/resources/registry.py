"""The registry of CloudFormation resource handlers, and the interface between them and the engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

if TYPE_CHECKING:
    from hyperpod_cdk_rehearsal.embedded.context import Context

HandlerErrorCode = Literal[
    "InvalidRequest",
    "AlreadyExists",
    "NotFound",
    "NotStabilized",
    "NotUpdatable",
    "GeneralServiceException",
    "ServiceLimitExceeded",
    "AccessDenied",
]
"""CloudFormation's own handler error codes, the part of them used here."""


class HandlerError(Exception):
    """A resource handler's refusal; the engine fails the resource with it and rolls the stack back.

    `physical_id` names what a failed create left behind, so that the rollback deletes it.
    """

    def __init__(self, code: HandlerErrorCode, message: str, *, physical_id: str | None = None) -> None:
        super().__init__(message)
        self.code: HandlerErrorCode = code
        self.message = message
        self.physical_id = physical_id


@dataclass(frozen=True)
class ResourceRequest:
    """One request of the engine to a handler.

    `properties` are fully resolved: no intrinsic function is left. `previous` holds the properties the resource was
    last deployed with, None on create. `physical_id` is None on create. `tags` are the stack's tags only, without
    the `aws:cloudformation:*` ones; a taggable resource's own `properties` already include them.
    """

    resource_type: str
    logical_id: str
    stack_name: str
    stack_id: str
    properties: dict[str, Any]
    previous: dict[str, Any] | None
    physical_id: str | None
    tags: dict[str, str]
    context: Context

    @property
    def existing_id(self) -> str:
        """The physical id of a resource that exists; raises HandlerError where there is none (a create)."""
        if self.physical_id is None:
            raise HandlerError("InvalidRequest", f"{self.logical_id} has no physical id yet")
        return self.physical_id

    def generated_name(self, *, max_length: int = 64, lower: bool = False) -> str:
        """A physical name as CloudFormation makes it where the template gives none: stack-logicalid-suffix."""
        suffix = self.context.unique_suffix(12)
        stem = f"{self.stack_name}-{self.logical_id}"[: max_length - len(suffix) - 1].rstrip("-")
        name = f"{stem}-{suffix}"
        return name.lower() if lower else name


@dataclass(frozen=True)
class ResourceResult:
    """What a handler made: `Ref` and the `Fn::GetAtt` values, dotted names flat ("Endpoint.Address")."""

    physical_id: str
    attributes: Mapping[str, Any] = field(default_factory=dict)


class ResourceHandler:
    """Base of the handlers of one or more resource types.

    A property that the registry schema marks create-only, or whose path stands in `create_only`, replaces the resource
    when it changes; every other change comes as `update`.
    """

    create_only: ClassVar[frozenset[str]] = frozenset()

    def create(self, request: ResourceRequest) -> ResourceResult:
        """Create the resource and wait until it is stable."""
        raise NotImplementedError

    def read(self, request: ResourceRequest, identifier: Mapping[str, str]) -> ResourceResult:  # noqa: ARG002 - of handlers that read
        """Find a resource to import by its type's identifier; raises HandlerError if it does not exist."""
        # a limitation of this embedded AWS, which is not an error of CloudFormation
        raise HandlerError("InvalidRequest", f"the rehearsal does not import {request.resource_type}")

    def update(self, request: ResourceRequest) -> ResourceResult:
        """Change the resource in place and wait until it is stable."""
        raise HandlerError("NotUpdatable", f"Resource type {request.resource_type} does not support in-place updates")

    def delete(self, request: ResourceRequest) -> None:
        """Delete the resource and wait until it no longer exists; a missing resource is no error."""
        raise NotImplementedError


Handler = TypeVar("Handler", bound=ResourceHandler)

_handlers: dict[str, ResourceHandler] = {}


def handles(*resource_types: str) -> Callable[[type[Handler]], type[Handler]]:
    """Class decorator: one instance of the class handles these resource types."""

    def register(handler_class: type[Handler]) -> type[Handler]:
        handler = handler_class()
        for resource_type in resource_types:
            if resource_type in _handlers:
                raise ValueError(f"{resource_type} has a handler already: {type(_handlers[resource_type])}")
            _handlers[resource_type] = handler
        return handler_class

    return register


def handler_for(resource_type: str) -> ResourceHandler | None:
    """The handler of a type; `Custom::…` types share AWS::CloudFormation::CustomResource's; None: recorded only."""
    if resource_type.startswith("Custom::") and resource_type not in _handlers:
        return _handlers.get("AWS::CloudFormation::CustomResource")
    return _handlers.get(resource_type)
