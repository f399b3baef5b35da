"""Provisions one resource: properties checked against the registry, the handler called, failures worded as AWS does."""

from __future__ import annotations

import importlib.util
import json
import logging
import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, NoReturn, TypeVar

from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError

from hyperpod_cdk_rehearsal.embedded.cloudformation.deployer import acting
from hyperpod_cdk_rehearsal.embedded.cloudformation.faults import MESSAGE, When, is_due
from hyperpod_cdk_rehearsal.embedded.cloudformation.recorded import BuiltInHandler, RecordedHandler
from hyperpod_cdk_rehearsal.embedded.cloudformation.schema import Registry, ResourceSchema, values_at
from hyperpod_cdk_rehearsal.embedded.cloudformation.stacks import Stack, StackResource
from hyperpod_cdk_rehearsal.embedded.context import Context
from hyperpod_cdk_rehearsal.embedded.operations import ServiceError, service_error
from hyperpod_cdk_rehearsal.embedded.resources.registry import (
    HandlerError,
    ResourceHandler,
    ResourceRequest,
    ResourceResult,
    handler_for,
)
from hyperpod_cdk_rehearsal.embedded.validation import validation_message

_log = logging.getLogger(__name__)

Replacement = Literal["never", "conditionally", "always"]
Result = TypeVar("Result")

_BUILT_IN = frozenset({"AWS::CDK::Metadata", "AWS::CloudFormation::WaitConditionHandle"})
"""Types of CloudFormation and CDK that only need a physical ID."""

_CODE_WORDS: tuple[tuple[str, str], ...] = (
    ("AccessDenied", "AccessDenied"),
    ("Unauthorized", "AccessDenied"),
    ("LimitExceeded", "ServiceLimitExceeded"),
    ("QuotaExceeded", "ServiceLimitExceeded"),
    ("AlreadyExists", "AlreadyExists"),
    ("Duplicate", "AlreadyExists"),
    ("BucketAlreadyOwnedByYou", "AlreadyExists"),
    ("ResourceInUse", "AlreadyExists"),
    ("NotFound", "NotFound"),
    ("NoSuch", "NotFound"),
    ("Invalid", "InvalidRequest"),
    ("Validation", "InvalidRequest"),
    ("BadRequest", "InvalidRequest"),
    ("Malformed", "InvalidRequest"),
    ("Missing", "InvalidRequest"),
)
"""How an API's error code becomes a handler error code; the first word found in it decides."""


_CLIENT_BOUND = re.compile(
    r"Invalid (?:value|length) for parameter (?P<path>\S+), value: (?P<value>.*), "
    r"valid min (?P<size>value|length): (?P<least>\S+)"
)
"""botocore's message for a number or a text below its minimum; it checks no maximum."""


class ResourceFailure(Exception):  # noqa: N818 - what CloudFormation calls it
    """A resource could not be provisioned; `reason` is the event's ResourceStatusReason."""

    def __init__(self, reason: str, *, code: str = "", physical_id: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code
        self.physical_id = physical_id


@dataclass(frozen=True)
class StackView:
    """The stack of a resource as a rule sees it: its name and the resources created so far."""

    stack_name: str
    resources: Mapping[str, StackResource]


def _resource_rule() -> Callable[[ResourceRequest, StackView], None] | None:
    """`check_resource` of the services' rules, where they have one."""
    name = "hyperpod_cdk_rehearsal.embedded.services.rules"
    if importlib.util.find_spec(name) is None:
        return None
    return getattr(importlib.import_module(name), "check_resource", None)


class Provisioner:
    """Creates, updates and deletes single resources of one region.

    `handlers` gives the handler of a type, None where the resource is only recorded.
    """

    def __init__(self, context: Context, handlers: Callable[[str], ResourceHandler | None] = handler_for) -> None:
        self.context = context
        self._handler_for = handlers
        self.registry = Registry(context.region)
        self._rule = _resource_rule()

    def is_known(self, resource_type: str) -> bool:
        """Whether the region's registry, or CloudFormation itself, has the type."""
        if resource_type in _BUILT_IN or resource_type.startswith("Custom::"):
            return True
        return self.registry.schema(resource_type) is not None

    def recorded_only(self, resource_type: str) -> str | None:
        """Return what to say of a resource of which nothing is created, None for the types that have a handler."""
        if resource_type in _BUILT_IN or self._handler_for(resource_type) is not None:
            return None
        return f"Rehearsal: {resource_type} is only recorded; nothing was created, and its attributes are made up"

    def supports_attribute(self, resource_type: str, attribute: str) -> bool:
        """Whether Fn::GetAtt may ask a resource of this type for it."""
        schema = self._schema(resource_type)
        return schema is None or schema.supports_attribute(attribute)

    def prepared(self, resource_type: str, properties: Mapping[str, Any], tags: Mapping[str, str]) -> dict[str, Any]:
        """The properties as the resource gets them: scalars in their declared types, the stack's tags added."""
        schema = self._schema(resource_type)
        if schema is None:
            return dict(properties)
        return _with_tags(schema, schema.coerced(properties), tags)

    def check(self, logical_id: str, resource_type: str, properties: Mapping[str, Any]) -> None:
        """Raise ResourceFailure for properties that the registry forbids."""
        schema = self._schema(resource_type)
        problems = schema.problems(properties) if schema else []
        if problems:
            raise ResourceFailure(
                f"Properties validation failed for resource {logical_id} with message: {'; '.join(problems)}",
                code="InvalidRequest",
            )

    def replacement(self, resource_type: str, path: tuple[str, ...]) -> Replacement:
        """Whether a change at a property path needs a new resource."""
        schema, handler = self._schema(resource_type), self._handler_for(resource_type)
        if handler is not None and any(_overlap(path, tuple(each.split("."))) for each in handler.create_only):
            return "always"
        # a change of the service token replaces the custom resource
        if schema is None:
            return "always" if path[0] == "ServiceToken" else "never"
        if any(_overlap(path, create_only) for create_only in schema.create_only):
            return "always"
        if any(_overlap(path, conditional) for conditional in schema.conditional_create_only):
            return "conditionally"
        return "never"

    def change(self, resource_type: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Replacement:
        """What a change of the whole properties means for the resource."""
        schema, handler = self._schema(resource_type), self._handler_for(resource_type)
        always: set[tuple[str, ...]] = {tuple(name.split(".")) for name in handler.create_only} if handler else set()
        always |= schema.create_only if schema else {("ServiceToken",)}
        if any(values_at(before, path) != values_at(after, path) for path in always):
            return "always"
        conditional = schema.conditional_create_only if schema else frozenset()
        if any(values_at(before, path) != values_at(after, path) for path in conditional):
            return "conditionally"
        return "never"

    def keeps_name(self, resource_type: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> str | None:
        """The custom name that a resource about to be replaced would keep, which AWS refuses; None if it is free."""
        schema = self._schema(resource_type)
        if schema is None or not schema.primary_identifier:
            return None
        names = [(values_at(before, path), values_at(after, path)) for path in sorted(schema.primary_identifier)]
        if all(old is not None and old == new for old, new in names):
            return str(names[0][1])
        return None

    def create(self, request: ResourceRequest, stack: Stack) -> ResourceResult:
        """Create the resource; raises ResourceFailure."""
        self._check_rule(request, stack)
        # without a response, CloudFormation generates an ID, with which it requests the deletion
        custom_id = request.generated_name(max_length=255) if request.resource_type.startswith("Custom::") else None
        self._fail_if_due(request, "before_create", custom_id)
        with acting(request, "create") as step:
            made = self._call(request, self._handler(request.resource_type).create)
            step.made(made)
        self._fail_if_due(request, "after_create", made.physical_id)
        return made

    def read(self, request: ResourceRequest, identifier: Mapping[str, str]) -> ResourceResult:
        """Find the resource to import; raises ResourceFailure."""
        handler = self._handler(request.resource_type)
        return self._call(request, lambda asked: handler.read(asked, identifier))

    def update(self, request: ResourceRequest, stack: Stack) -> ResourceResult:
        """Change the resource in place; raises ResourceFailure."""
        self._check_rule(request, stack)
        is_forward = stack.status == "UPDATE_IN_PROGRESS"
        self._fail_if_due(request, "before_update" if is_forward else "rollback")
        with acting(request, "update"):
            changed = self._call(request, self._handler(request.resource_type).update)
        if is_forward:
            self._fail_if_due(request, "after_update")
        return changed

    def delete(self, request: ResourceRequest) -> None:
        """Delete the resource; raises ResourceFailure."""
        self._fail_if_due(request, "delete")
        with acting(request, "delete"):
            self._call(request, self._handler(request.resource_type).delete)

    def _schema(self, resource_type: str) -> ResourceSchema | None:
        return None if resource_type.startswith("Custom::") else self.registry.schema(resource_type)

    def _handler(self, resource_type: str) -> ResourceHandler:
        handler = self._handler_for(resource_type)
        if handler is not None:
            return handler
        return BuiltInHandler() if resource_type in _BUILT_IN else RecordedHandler(self._schema(resource_type))

    def _fail_if_due(self, request: ResourceRequest, when: When, physical_id: str | None = None) -> None:
        if is_due(self.context, request.stack_name, request.logical_id, when):
            _fail(request, "InternalFailure", MESSAGE, physical_id)

    def _check_rule(self, request: ResourceRequest, stack: Stack) -> None:
        if self._rule is not None:
            view = StackView(stack.name, MappingProxyType(dict(stack.resources)))
            rule = self._rule
            self._call(request, lambda checked: rule(checked, view))

    def _call(self, request: ResourceRequest, function: Callable[[ResourceRequest], Result]) -> Result:
        try:
            return function(request)
        except HandlerError as error:
            _fail(request, error.code, error.message, error.physical_id)
        except ClientError as error:
            refused = service_error(error)
            message = (
                f"{refused.message} (Service: {request.resource_type.split('::')[1]}, "
                f"Status Code: {refused.status}, Request ID: {uuid.uuid4()})"
            )
            _fail(request, _handler_code(refused.code), message)
        except ServiceError as error:
            _fail(request, _handler_code(error.code), error.message)
        except ParamValidationError as error:
            _fail(request, "InvalidRequest", _as_service_says(str(error.kwargs["report"])))
        except (BotoCoreError, Exception) as error:  # noqa: BLE001 - a handler's bug fails its resource, not the server
            _log.exception("%s %s failed", request.resource_type, request.logical_id)
            _fail(request, "InternalFailure", f"{type(error).__name__}: {error}")


def _fail(request: ResourceRequest, code: str, message: str, physical_id: str | None = None) -> NoReturn:
    if request.resource_type.startswith("Custom::") or request.resource_type == "AWS::CloudFormation::CustomResource":
        reason = message
    else:
        reason = (
            f'Resource handler returned message: "{message}" (RequestToken: {uuid.uuid4()}, HandlerErrorCode: {code})'
        )
    raise ResourceFailure(reason, code=code, physical_id=physical_id)


def _handler_code(api_code: str) -> str:
    return next((code for word, code in _CODE_WORDS if word.lower() in api_code.lower()), "GeneralServiceException")


def _as_service_says(report: str) -> str:
    """What the client refused to send, in the words of the service that would have refused it."""
    problems = [_CLIENT_BOUND.sub(_constraint, line) for line in report.splitlines()]
    return validation_message(problems)


def _constraint(found: re.Match[str]) -> str:
    path = ".".join(part[:1].lower() + part[1:] for part in found["path"].split("."))
    size = "value" if found["size"] == "value" else "length"
    return (
        f"Value '{found['value']}' at '{path}' failed to satisfy constraint: "
        f"Member must have {size} greater than or equal to {found['least']}"
    )


def _overlap(path: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    """Whether one is the beginning of the other, list indexes matching the pattern's star."""
    names = tuple(part for part in path if not part.isdigit())
    wanted = tuple(part for part in pattern if part != "*")
    shorter = min(len(names), len(wanted))
    return names[:shorter] == wanted[:shorter]


def _with_tags(schema: ResourceSchema, properties: dict[str, Any], tags: Mapping[str, str]) -> dict[str, Any]:
    name = schema.tag_property
    if not tags or name is None:
        return properties
    own = properties.get(name)
    if schema.tags_are_map:
        return {**properties, name: {**tags, **(own if isinstance(own, Mapping) else {})}}
    listed = list(own) if isinstance(own, list) else []
    given = {tag["Key"] for tag in listed if isinstance(tag, Mapping) and "Key" in tag}
    return {**properties, name: listed + [{"Key": k, "Value": v} for k, v in tags.items() if k not in given]}


def shown(properties: Mapping[str, Any]) -> str:
    """Properties as events and change sets carry them: JSON text."""
    return json.dumps(properties, separators=(",", ":"), default=str)
