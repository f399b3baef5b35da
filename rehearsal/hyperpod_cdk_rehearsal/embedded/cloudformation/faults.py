"""Failures of single resources for tests: CloudFormation continues as if AWS had failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from hyperpod_cdk_rehearsal.embedded.context import Context

When = Literal["before_create", "after_create", "before_update", "after_update", "rollback", "delete"]
"""Where a resource fails.

``before_``: the call fails and has no effect; ``after_``: the call has its effect but is reported as a failure.
``rollback``: during the rollback of an update. ``delete``: when it is deleted, also in a rollback.
"""

MESSAGE = "this resource was told to fail"


@dataclass
class ResourceFault:
    """One resource that fails ``times`` times at one point."""

    stack: str
    logical_id: str
    when: When
    times: int = 1

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> ResourceFault:
        """Read one fault; raises ValueError for an unknown point, TypeError for other members."""
        fault = cls(**document)
        if fault.when not in get_args(When):
            raise ValueError(f"when: must be one of {', '.join(get_args(When))}, got {fault.when!r}")
        return fault


@dataclass
class ResourceFaults:
    """The pending faults of a Region, and those that happened."""

    pending: list[ResourceFault] = field(default_factory=list)
    happened: list[ResourceFault] = field(default_factory=list)


def set_faults(context: Context, documents: Sequence[Mapping[str, Any]] | None) -> list[dict[str, Any]]:
    """Replace the faults by these, if any are given; returns the previous ones that happened."""
    faults = [ResourceFault.of(each) for each in documents or ()]
    with context.state.lock:
        store = context.state.store(ResourceFaults)
        happened = [vars(each) for each in store.happened]
        if documents is not None:
            store.pending, store.happened = faults, []
    return happened


def is_due(context: Context, stack: str, logical_id: str, when: When) -> bool:
    """Return whether a resource must fail now, and count it."""
    with context.state.lock:
        store = context.state.store(ResourceFaults)
        for fault in store.pending:
            if (fault.stack, fault.logical_id, fault.when) == (stack, logical_id, when) and fault.times > 0:
                fault.times -= 1
                store.happened.append(ResourceFault(stack, logical_id, when))
                return True
    return False
