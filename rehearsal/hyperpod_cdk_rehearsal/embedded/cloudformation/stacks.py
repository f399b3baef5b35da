"""Stacks, their resources, events and change sets, and the exports between them."""

from __future__ import annotations

import copy
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from hyperpod_cdk_rehearsal.embedded.cloudformation.parameters import ParameterValue
from hyperpod_cdk_rehearsal.embedded.cloudformation.template import Template, TemplateError
from hyperpod_cdk_rehearsal.embedded.context import Clock, Context
from hyperpod_cdk_rehearsal.embedded.operations import ServiceError

STACK_TYPE = "AWS::CloudFormation::Stack"
GONE = ("DELETE_COMPLETE", "DELETE_SKIPPED")
"""Resource statuses after which CloudFormation no longer owns anything."""


@dataclass
class StackResource:
    """One resource of a stack as last deployed; `depends_on` holds logical ids."""

    logical_id: str
    resource_type: str
    physical_id: str | None
    status: str
    properties: dict[str, Any]
    attributes: dict[str, Any]
    metadata: dict[str, Any]
    deletion_policy: str
    depends_on: frozenset[str]
    updated: datetime
    reason: str | None = None

    @property
    def exists(self) -> bool:
        """Whether there is, or may be, something to delete."""
        return self.status not in GONE


@dataclass(frozen=True)
class Event:
    """One stack event."""

    event_id: str
    operation_id: str
    logical_id: str
    physical_id: str
    resource_type: str
    timestamp: datetime
    status: str
    reason: str | None
    properties: dict[str, Any] | None
    token: str | None


@dataclass
class Settings:
    """The settings of a deployment in addition to its template."""

    template: Template
    parameters: dict[str, ParameterValue] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    capabilities: list[str] = field(default_factory=list)
    notification_arns: list[str] = field(default_factory=list)
    role_arn: str | None = None
    rollback_configuration: dict[str, Any] = field(default_factory=dict)


@dataclass
class ChangeSet:
    """A change set; `changes` are in the shape of DescribeChangeSet, property values included."""

    change_set_id: str
    name: str
    kind: str
    description: str
    settings: Settings
    created: datetime
    changes: list[dict[str, Any]]
    status: str
    status_reason: str | None
    execution_status: str
    on_stack_failure: str | None
    include_nested_stacks: bool
    deployment_config: dict[str, Any]
    wanted: list[Any] = field(default_factory=list)
    """The resources of an IMPORT: `importing.Wanted`, which imports this module."""


@dataclass
class Output:
    """One output of a stack."""

    key: str
    value: str
    description: str | None
    export_name: str | None


@dataclass
class Operation:
    """One operation on a stack: create, update, delete or rollback."""

    operation_id: str
    kind: str
    token: str | None


class Stack:
    """One stack. Change it only while holding `lock`; `changed` notifies threads that wait for its status."""

    def __init__(self, context: Context, name: str) -> None:
        self.name = name
        self.stack_id = context.arn("cloudformation", f"stack/{name}/{uuid.uuid4()}")
        self.status = "REVIEW_IN_PROGRESS"
        self.status_reason: str | None = None
        self.settings: Settings | None = None
        self.resources: dict[str, StackResource] = {}
        self.outputs: dict[str, Output] = {}
        self.imports: frozenset[str] = frozenset()
        self.events: list[Event] = []
        self.change_sets: dict[str, ChangeSet] = {}
        self.executed_change_set_id: str | None = None
        self.created = context.clock.now()
        self.updated: datetime | None = None
        self.deleted: datetime | None = None
        self.termination_protection = False
        self.disable_rollback = False
        self.policy: str | None = None
        self.operation = Operation(str(uuid.uuid4()), "CREATE_STACK", None)
        self.paused: Any = None
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self._clock: Clock = context.clock

    @property
    def template(self) -> Template:
        """The deployed template; raises TemplateError for a stack that has none yet."""
        if self.settings is None:
            raise TemplateError(f"Stack [{self.name}] has no template")
        return self.settings.template

    @property
    def in_progress(self) -> bool:
        """Whether an operation runs."""
        return self.status.endswith("_IN_PROGRESS") and self.status != "REVIEW_IN_PROGRESS"

    def begin(self, kind: str, status: str, token: str | None, reason: str | None = "User Initiated") -> None:
        """Start an operation; raises TemplateError while another one runs."""
        with self.lock:
            if self.in_progress:
                raise TemplateError(f"Stack:{self.stack_id} is in {self.status} state and can not be updated.")
            self.operation = Operation(str(uuid.uuid4()), kind, token)
            self.set_status(status, reason)

    def set_status(self, status: str, reason: str | None = None) -> None:
        """Change the stack's status, with an event."""
        with self.lock:
            self.status, self.status_reason = status, reason
            self._record(status, reason, self.name, self.stack_id, STACK_TYPE)
            self.changed.notify_all()

    def set_resource_status(self, resource: StackResource, status: str, reason: str | None = None) -> None:
        """Change a resource's status, with an event."""
        with self.lock:
            resource.status, resource.reason, resource.updated = status, reason, self._clock.now()
            properties = copy.deepcopy(resource.properties)
            self._record(
                status,
                reason,
                resource.logical_id,
                resource.physical_id or "",
                resource.resource_type,
                properties=properties,
            )

    def wait_while_in_progress(self, seconds: float) -> None:
        """Wait until no operation is running, at most `seconds`."""
        deadline = time.monotonic() + seconds
        with self.changed:
            while self.in_progress and (left := deadline - time.monotonic()) > 0:
                self.changed.wait(left)

    def _record(
        self,
        status: str,
        reason: str | None,
        logical_id: str,
        physical_id: str,
        resource_type: str,
        *,
        properties: dict[str, Any] | None = None,
    ) -> None:
        now = self._clock.now()
        now = now.replace(microsecond=now.microsecond // 1000 * 1000)
        if self.events:
            # clients sort events by their milliseconds, so no two may share one
            now = max(now, self.events[-1].timestamp + timedelta(milliseconds=1))
        self.events.append(
            Event(
                event_id=f"{logical_id}-{status}-{uuid.uuid4()}",
                operation_id=self.operation.operation_id,
                logical_id=logical_id,
                physical_id=physical_id,
                resource_type=resource_type,
                timestamp=now,
                status=status,
                reason=reason,
                properties=properties,
                token=self.operation.token,
            )
        )


class Stacks:
    """Every stack of a region, deleted ones included."""

    def __init__(self) -> None:
        self.by_id: dict[str, Stack] = {}
        self.lock = threading.RLock()

    def add(self, stack: Stack) -> None:
        """Register a new stack; raises AWS's AlreadyExistsException if a concurrent call has created its name."""
        with self.lock:
            if any(other.name == stack.name for other in self.active()):
                raise ServiceError("AlreadyExistsException", f"Stack [{stack.name}] already exists")
            self.by_id[stack.stack_id] = stack

    def remove(self, stack: Stack) -> None:
        """Remove a stack that was never created."""
        with self.lock:
            self.by_id.pop(stack.stack_id, None)

    def find(self, name_or_id: str) -> Stack | None:
        """The stack of that id, or the one not deleted of that name."""
        with self.lock:
            if name_or_id in self.by_id:
                return self.by_id[name_or_id]
            return next((stack for stack in self.active() if stack.name == name_or_id), None)

    def get(self, name_or_id: str, message: str = "Stack with id {} does not exist") -> Stack:
        """As `find`; raises AWS's ValidationError where there is none."""
        stack = self.find(name_or_id)
        if stack is None:
            raise ServiceError("ValidationError", message.format(name_or_id))
        return stack

    def active(self) -> list[Stack]:
        """The stacks that are not deleted, oldest first."""
        with self.lock:
            return [stack for stack in self.by_id.values() if stack.status != "DELETE_COMPLETE"]

    def exports(self) -> Iterator[tuple[Stack, Output]]:
        """Every export, with the stack it comes from."""
        for stack in self.active():
            for output in list(stack.outputs.values()):
                if output.export_name:
                    yield stack, output

    def export(self, name: str) -> str:
        """The value of an export; raises AWS's ValidationError where there is none."""
        for _, output in self.exports():
            if output.export_name == name:
                return output.value
        raise TemplateError(f"No export named {name} found.")

    def importers(self, export_name: str, *, besides: Stack) -> list[str]:
        """Names of the stacks that import an export."""
        return [stack.name for stack in self.active() if export_name in stack.imports and stack is not besides]

    def check_exports(self, stack: Stack, outputs: Mapping[str, Output]) -> None:
        """Raise TemplateError if a stack cannot have exactly these outputs."""
        new = {output.export_name: output.value for output in outputs.values() if output.export_name}
        for other, output in self.exports():
            if other is not stack and output.export_name in new:
                raise TemplateError(
                    f"Export with name {output.export_name} is already exported by stack {other.name}. "
                    f"Exports must be unique across {{account,region}}"
                )
        for output in stack.outputs.values():
            if not output.export_name or new.get(output.export_name) == output.value:
                continue
            users = self.importers(output.export_name, besides=stack)
            if users and output.export_name in new:
                raise TemplateError(
                    f"Cannot update export {output.export_name} as it is in use by {' and '.join(users)}"
                )
            if users:
                raise TemplateError(
                    f"Export {output.export_name} cannot be deleted as it is in use by {' and '.join(users)}"
                )


def stacks_of(context: Context) -> Stacks:
    """The stacks of a context's region."""
    return context.state.store(Stacks)
