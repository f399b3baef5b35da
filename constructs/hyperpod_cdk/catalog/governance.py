"""Task governance: bounds, names and words of cluster policies and compute quotas."""

from __future__ import annotations

from datetime import date

from hyperpod_cdk.catalog import _data, rules

_DATA = _data.load("governance")
_BOUNDS = rules.bounds(_DATA["bounds"])
_PATTERNS = rules.patterns(_DATA["patterns"])

AS_OF: date = _data.as_of("governance")

PRIORITY_CLASSES = _BOUNDS["priority_classes"]
PRIORITY_WEIGHT = _BOUNDS["priority_weight"]
FAIR_SHARE_WEIGHT = _BOUNDS["fair_share_weight"]
BORROW_LIMIT_PERCENT = _BOUNDS["borrow_limit_percent"]
QUOTA_RESOURCES = _BOUNDS["quota_resources"]
ABSOLUTE_BORROW_LIMITS = _BOUNDS["absolute_borrow_limits"]
QUOTA_COUNT = _BOUNDS["quota_count"]

PRIORITY_CLASS_NAME = _PATTERNS["priority_class_name"]
TEAM_NAME = _PATTERNS["team_name"]
POLICY_NAME = _PATTERNS["policy_name"]

ORDERINGS: tuple[str, ...] = tuple(_DATA["words"]["ordering"])
"""How queued tasks are admitted; with ``first_come_first_served`` a policy has no priority classes."""

IDLE_COMPUTE: dict[str, str] = dict(_DATA["words"]["idle_compute"])
"""Our word -> ``SchedulerConfig.FairShare``."""

SHARING: dict[str, str] = dict(_DATA["words"]["sharing"])
"""Our word -> ``ResourceSharingConfig.Strategy``."""

PREEMPTION: dict[str, str] = dict(_DATA["words"]["preemption"])
"""Our word -> ``ComputeQuotaConfig.PreemptTeamTasks``."""

DEFAULT_PRIORITY_CLASSES: tuple[tuple[str, int], ...] = tuple(
    (row["name"], row["weight"]) for row in _DATA["default_priority_classes"]
)
"""(name, weight) of the classes that a policy ordered by priority gets where the file names none."""

DEFAULT_BORROW_LIMIT_PERCENT: int = _DATA["defaults"]["borrow_limit_percent"]
DEFAULT_FAIR_SHARE_WEIGHT: int = _DATA["defaults"]["fair_share_weight"]

QUEUE_LABEL: str = _DATA["labels"]["queue"]
PRIORITY_LABEL: str = _DATA["labels"]["priority"]


def namespace(team: str) -> str:
    """Give the namespace that a compute quota makes for ``team``."""
    return str(_DATA["names"]["namespace"]).format(team=team)


def local_queue(team: str) -> str:
    """Give the Kueue local queue of ``team``, the value of ``QUEUE_LABEL``."""
    return str(_DATA["names"]["local_queue"]).format(team=team)


def cluster_queue(team: str) -> str:
    """Give the Kueue cluster queue of ``team``."""
    return str(_DATA["names"]["cluster_queue"]).format(team=team)


def priority_class(name: str) -> str:
    """Give the Kubernetes name of priority class ``name``, the value of ``PRIORITY_LABEL``."""
    return str(_DATA["names"]["priority_class"]).format(name=name)
