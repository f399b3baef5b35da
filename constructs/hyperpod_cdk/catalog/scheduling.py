"""Where pods run on HyperPod nodes: labels for selection, taints that they tolerate, annotations for Kueue."""

from __future__ import annotations

from datetime import date

from hyperpod_cdk.catalog import _data

_DATA = _data.load("scheduling")
_LABELS = _DATA["labels"]

AS_OF: date = _data.as_of("scheduling")

INSTANCE_TYPE_LABEL: str = _LABELS["instance_type"]["key"]
INSTANCE_GROUP_LABEL: str = _LABELS["instance_group"]["key"]
HOSTNAME_LABEL: str = _LABELS["hostname"]["key"]

HEALTH_LABEL: str = _LABELS["health"]["key"]
SCHEDULABLE: str = _LABELS["health"]["schedulable"]
NOT_SCHEDULABLE: tuple[str, ...] = tuple(_LABELS["health"]["not_schedulable"])
"""Values of ``HEALTH_LABEL`` on nodes that are being checked, rebooted or replaced."""

DEEP_HEALTH_CHECK_LABEL: str = _LABELS["deep_health_check"]["key"]
PASSED: str = _LABELS["deep_health_check"]["passed"]

MIG_STATE_LABEL: str = _LABELS["mig_state"]["key"]
MIG_DONE: str = _LABELS["mig_state"]["done"]

PREFERRED_TOPOLOGY: str = _DATA["annotations"]["preferred_topology"]["key"]
REQUIRED_TOPOLOGY: str = _DATA["annotations"]["required_topology"]["key"]

LAUNCHER_VCPU: int = _DATA["launcher"]["vcpu"]
LAUNCHER_MEMORY_GIB: int = _DATA["launcher"]["memory_gib"]
"""What the launcher of an MPI job requests, which runs no rank."""

_QUOTA = _DATA["quota"]


def is_in_quotas(resource: str) -> bool:
    """Return whether a team's cluster queue covers ``resource``; a job that requests another one is never admitted."""
    return resource in _QUOTA["resources"]


def name_in_quotas(resource: str) -> str:
    """Return the name of ``resource`` in a team's cluster queue (``aws.amazon.com/neurondevice``)."""
    return str(_QUOTA["names"].get(resource, resource))


def tolerated_taints(*, nvidia: bool, neuron: bool, efa: bool) -> tuple[str, ...]:
    """Return the keys of taints that keep other pods off nodes with such devices, for pods that use them."""
    has = {"nvidia": nvidia, "neuron": neuron, "efa": efa}
    return tuple(row["key"] for row in _DATA["tolerated"] if has[row["when"]])
