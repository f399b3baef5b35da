"""CloudFormation's calls with the deployments' role: `GET /_rehearsal/deployer`, to check the role's permissions.

Every resource that is created, changed or deleted is recorded with the AWS calls of its handler. For a custom resource,
this is only the invocation of its function, because the function uses its own role.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from hyperpod_cdk_rehearsal.embedded.context import Context, call_listener
from hyperpod_cdk_rehearsal.embedded.resources.registry import ResourceRequest, ResourceResult

PATH = "/_rehearsal/deployer"

Phase = Literal["create", "update", "delete"]


@dataclass
class Step:
    """One resource that is created, changed or deleted."""

    stack: str
    logical_id: str
    type: str
    phase: Phase
    properties: dict[str, Any]
    physical_id: str | None
    attributes: dict[str, Any] = field(default_factory=dict)
    calls: dict[str, dict[str, Any]] = field(default_factory=dict)

    def made(self, result: ResourceResult) -> None:
        """Record the result of a creation."""
        self.physical_id, self.attributes = result.physical_id, dict(result.attributes)

    def note(self, parameters: dict[str, Any], model: Any) -> None:
        """Record a call, by botocore's model of its operation."""
        call = {"service": model.service_model.service_name, "operation": model.name, "parameters": dict(parameters)}
        self.calls.setdefault(json.dumps(call, sort_keys=True, default=str), call)

    def as_dict(self) -> dict[str, Any]:
        """Return the step as data for JSON, without duplicate calls."""
        return {**vars(self), "calls": list(self.calls.values())}


@dataclass
class Steps:
    """Every step so far, in order."""

    rows: list[Step] = field(default_factory=list)


@contextmanager
def acting(request: ResourceRequest, phase: Phase) -> Iterator[Step]:
    """Record a step, with the calls of this thread's clients during the step."""
    step = Step(
        stack=request.stack_name,
        logical_id=request.logical_id,
        type=request.resource_type,
        phase=phase,
        properties=request.properties,
        physical_id=request.physical_id,
    )
    with request.context.state.lock:
        request.context.state.store(Steps).rows.append(step)
    is_custom = step.type.startswith("Custom::") or step.type == "AWS::CloudFormation::CustomResource"
    token = call_listener.set(None if is_custom else step.note)
    try:
        yield step
    finally:
        call_listener.reset(token)


def steps(context: Context) -> list[dict[str, Any]]:
    """Return every step so far, in order."""
    with context.state.lock:
        return [each.as_dict() for each in context.state.store(Steps).rows]
