"""Environments around one instance group, for jobs that tests render."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hyperpod_cdk.catalog import instance_types
from hyperpod_cdk.config import Environment
from hyperpod_cdk.workloads.job import Job, Kind
from hyperpod_cdk.workloads.plan import Plan, plan

ZONE = "use1-az5"
TEAM = {"name": "research", "quota": [{"instance_type": "ml.g5.12xlarge", "count": 4}]}
TYPES = instance_types.names()


def environment(
    types: str | tuple[str, ...],
    *,
    group: Mapping[str, Any] | None = None,
    hyperpod: Mapping[str, Any] | None = None,
    pod_security: str = "baseline",
) -> Environment:
    """Return an environment with a group "work" of ``types``, four nodes of them, and a team "research"."""
    named = {"instance_type": types} if isinstance(types, str) else {"instance_types": types}
    rows = [instance_types.get(name) for name in ([types] if isinstance(types, str) else types)]
    capacity = {"capacity": "on_demand"} if all(row is None or row.is_accelerated for row in rows) else {}
    work = {"name": "work", **named, "count": 4, "availability_zone_id": ZONE, **capacity, **(group or {})}
    return Environment.model_validate(
        {
            "name": "lab",
            "account": "111122223333",
            "region": "us-east-1",
            "network": {"availability_zones": {ZONE: {}, "use1-az4": {}}},
            "hyperpod": {"instance_groups": [work], **(hyperpod or {})},
            "task_governance": {"ordering": "priority", "teams": [{**TEAM, "pod_security": pod_security}]},
        }
    )


def planned(types: str | tuple[str, ...] | Environment, kind: Kind, **fields: Any) -> Plan:
    """Return the plan of a job of ``kind`` on group "work", with further fields of the job."""
    about = types if isinstance(types, Environment) else environment(types)
    return plan(about, Job.model_validate({"kind": kind, "group": "work", **fields}))
