"""Service quotas that apply to a HyperPod cluster: names, code hints and defaults."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from functools import cache

from hyperpod_cdk.catalog import _data, instance_types

AS_OF: date = _data.as_of("quotas")


@dataclass(frozen=True, kw_only=True)
class Quota:
    """One quota; match AWS's by ``name`` (see ``normalized``); ``code`` is only a hint.

    ``key`` is our short name, ``default`` AWS's default value, in the unit that the name says. ``unsure``
    says why a row is not confirmed, ``unsure_default`` why even the default in AWS's answer is not reliable.
    """

    key: str
    service: str
    name: str
    code: str | None
    default: int
    source: str
    note: str = ""
    unsure: str = ""
    unsure_default: str = ""


def quotas() -> tuple[Quota, ...]:
    """Return every quota that is not tied to one instance type."""
    return tuple(_table().values())


def get(key: str) -> Quota:
    """Return a quota by its short name (``hyperpod_instances_total``); raises KeyError for another name."""
    return _table()[key]


def find(service: str, name: str) -> Quota | None:
    """Return the quota of ``service`` that Service Quotas calls ``name``, compared normalised, or None."""
    wanted = normalized(name)
    return next((row for row in quotas() if row.service == service and normalized(row.name) == wanted), None)


def cluster_usage(instance_type: str) -> Quota:
    """Return the quota for instances of a type in HyperPod clusters: ``ml.X for cluster usage``."""
    return _per_type("cluster", instance_type)


def cluster_spot_usage(instance_type: str) -> Quota:
    """Return the quota for Spot instances of a type in HyperPod clusters."""
    return _per_type("spot", instance_type)


def training_plan_capacity(instance_type: str) -> Quota:
    """Return the quota for instances of a type in reserved capacity across training plans."""
    return _per_type("training_plan", instance_type)


def normalized(name: str) -> str:
    """Return ``name`` in the form in which quota names are compared.

    Case, punctuation, the word "of" and a "cluster" before the instance type do not count, because AWS writes "Maximum
    number instances" and ``cluster-ml-r7i-12xlarge`` too. The quota gate compares in Lambda, which does not have the
    catalog: ``handlers.quota_gate.comparison.normalized`` gives the same.
    """
    words = [word for word in re.sub(r"[^a-z0-9]+", " ", name.lower()).split() if word != "of"]
    return " ".join(words[1:] if words[:2] == ["cluster", "ml"] else words)


@cache
def _table() -> dict[str, Quota]:
    return {row["key"]: Quota(**row) for row in _data.load("quotas")["quotas"]}


@cache
def _per_type(kind: str, instance_type: str) -> Quota:
    data = _data.load("quotas")
    template = data["per_type"][kind]
    row = instance_types.get(instance_type)
    name = getattr(row, f"{kind}_quota_name", None)
    code = getattr(row, f"{kind}_quota_code", None)
    return Quota(
        key=f"{kind}:{instance_type}",
        service="sagemaker",
        name=name or template["name"].format(type=instance_type),
        code=code,
        default=template["default"],
        source=template["source"],
        unsure="" if name else "the name follows the pattern of the others; not transcribed for this type",
    )
