"""What must not be deleted with its stack: data, nodes and the cluster that they run on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.templates.assembly import Resource
from hyperpod_cdk.templates.groups import CLUSTER, FILE_SYSTEM
from hyperpod_cdk.templates.rules.rule import EKS_CLUSTER, Context, Spot

_LOST: Final = {
    FILE_SYSTEM: "its files",
    CLUSTER: "its nodes and their workloads",
    EKS_CLUSTER: "every object in it",
}
_KEEPS: Final = ("Retain", "RetainExceptOnCreate", "Snapshot")
_PROTECTED: Final = "DeletionProtection"
_GUARD: Final = "Custom::HyperPodDeletionProtection"
"""This library's: it protects its stack after its creation, and the EKS cluster that it names, too."""


def kept_on_delete(context: Context) -> Iterator[Spot]:
    """Find clusters and file systems that are deleted with their stack, or by a property that replaces them."""
    for resource in context.of_type(*_LOST):
        missing = [
            name
            for name in ("DeletionPolicy", "UpdateReplacePolicy")
            if resource.body.get(name) not in _KEEPS
            and not _refuses_to_go(context, resource)
            and not (name == "DeletionPolicy" and _is_guarded(context, resource))
        ]
        if missing:
            got = ", ".join(f"{name} {_stated(resource, name)}" for name in missing)
            yield Spot(
                resource=resource,
                place=missing[0],
                message=f"must be retained when its stack is deleted or replaces it, to keep {_LOST[resource.type]}, "
                f"got {got}; set {joined(f'{name}: Retain' for name in missing)}",
            )


def _refuses_to_go(context: Context, resource: Resource) -> bool:
    return resource.type == EKS_CLUSTER and context.value(resource, _PROTECTED) in (True, "true")


def _is_guarded(context: Context, resource: Resource) -> bool:
    """Whether a cluster's stack, or the cluster itself, refuses to be deleted; data is retained in any case."""
    guards = [each for each in context.of_type(_GUARD) if context.value(each, "Enabled") in (True, "true")]
    if resource.type == EKS_CLUSTER:
        name = context.value(resource, "Name")
        return isinstance(name, str) and any(context.value(each, "EksClusterName") == name for each in guards)
    return resource.type == CLUSTER and any(each.stack == resource.stack for each in guards)


def _stated(resource: Resource, name: str) -> str:
    value = resource.body.get(name)
    return value if isinstance(value, str) else "not stated"
