"""What CloudFormation does as its deployments' role: `GET /_rehearsal/deployer`, for whoever judges that role's rights.

Every resource that is made, changed or deleted is noted with the calls its handler made of AWS. Of a custom resource
that is the invocation of its function alone: what the function asks, it asks as its own role.
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
    """One resource that is made, changed or deleted."""

    stack: str
    logical_id: str
    type: str
    phase: Phase
    properties: dict[str, Any]
    physical_id: str | None
    attributes: dict[str, Any] = field(default_factory=dict)
    calls: dict[str, dict[str, Any]] = field(default_factory=dict)

    def made(self, result: ResourceResult) -> None:
        """Note what a creation gave."""
        self.physical_id, self.attributes = result.physical_id, dict(result.attributes)

    def note(self, parameters: dict[str, Any], model: Any) -> None:
        """Note a call, by botocore's model of its operation."""
        call = {"service": model.service_model.service_name, "operation": model.name, "parameters": dict(parameters)}
        self.calls.setdefault(json.dumps(call, sort_keys=True, default=str), call)

    def as_dict(self) -> dict[str, Any]:
        """The step as it goes over HTTP; calls that are the same to the letter are one."""
        return {**vars(self), "calls": list(self.calls.values())}


@dataclass
class Steps:
    """Every step so far, in order."""

    rows: list[Step] = field(default_factory=list)


@contextmanager
def acting(request: ResourceRequest, phase: Phase) -> Iterator[Step]:
    """Note a step, with the calls that clients of this thread make for as long as it lasts."""
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
