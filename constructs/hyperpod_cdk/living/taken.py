"""Nodes that a deployment would remove and that no deployment created: of groups that were scaled outside the file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from hyperpod_cdk.checks.answers import NotAnswered
from hyperpod_cdk.handlers.quota_gate.reading import groups_of
from hyperpod_cdk.living.groups import CLUSTER, sent
from hyperpod_cdk.living.hyperpod import describe_cluster
from hyperpod_cdk.living.look import reading
from hyperpod_cdk.review.deployed import Api
from hyperpod_cdk.review.nouns import count
from hyperpod_cdk.templates.assembly import Assembly, Resource
from hyperpod_cdk.templates.difference import compare
from hyperpod_cdk.templates.groups import InstanceGroup, instance_groups
from hyperpod_cdk.templates.values import resolve

UNSEEN: Final = "Whether it removes nodes that no deployment created could not be checked: {why}"


@dataclass(frozen=True, kw_only=True)
class Taken:
    """What a deployment removes in addition to what its templates say; ``unseen`` is why that could not be checked.

    ``gone`` says which clusters it would change that no longer exist.
    """

    sentences: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()


def taken(aws: Api, base: Assembly, head: Assembly) -> Taken:
    """Check the groups of each deployed HyperPod cluster that the head changes, reading only.

    A cluster whose template stays as it is keeps its nodes: CloudFormation does not touch it.
    """
    changed = {(each.resource.stack, each.resource.logical_id) for each in compare(base, head)}
    sentences: list[str] = []
    unseen: list[str] = []
    gone: list[str] = []
    for cluster in base.of_type(CLUSTER):
        if (cluster.stack, cluster.logical_id) not in changed:
            continue
        try:
            name, found = _described(aws, base, cluster)
            if found is not None:
                sentences += _of_cluster(base, head, cluster, found)
            elif _is_updated(head, cluster):
                gone.append(_GONE.format(place=f"{cluster.stack} / {cluster.name}", name=name))
        except NotAnswered as missing:
            unseen.append(UNSEEN.format(why=missing.sentence))
    return Taken(sentences=tuple(sentences), unseen=tuple(unseen), gone=tuple(gone))


_GONE: Final = (
    "{place}: the HyperPod cluster {name} no longer exists, and CloudFormation does not know that. Its update of the "
    "cluster fails, and the rollback can fail for the same reason."
)
"""CloudFormation user guide, "Troubleshooting CloudFormation", update rollback failed: it assumes that what was deleted
outside of it still exists."""


def _described(aws: Api, base: Assembly, cluster: Resource) -> tuple[str, Mapping[str, Any] | None]:
    name = resolve(base, cluster.stack, cluster.properties.get("ClusterName"))
    if not isinstance(name, str):
        raise NotAnswered(f"the template does not show the name of {cluster.name}")
    return name, describe_cluster(aws, name)


def _is_updated(head: Assembly, cluster: Resource) -> bool:
    """Whether the head has the cluster with the same name: otherwise it is deleted, or replaced under another name."""
    after = head.find(cluster.stack, cluster.logical_id)
    return after is not None and after.properties.get("ClusterName") == cluster.properties.get("ClusterName")


def _of_cluster(base: Assembly, head: Assembly, cluster: Resource, found: Mapping[str, Any]) -> Iterator[str]:
    before, after = _groups(base, cluster), _groups(head, cluster)
    with reading("sagemaker:DescribeCluster"):
        targets = {str(row["InstanceGroupName"]): int(row["TargetCount"]) for row in groups_of(found)}
    for group, target in targets.items():
        old, new = before.get(group), after.get(group)
        if any(each is not None and each.count is None for each in (old, new)):
            # set by Karpenter, or known only at deployment
            continue
        if old is not None and old.count == target:
            continue
        sentence = _sentence(group, target, old, new)
        if sentence:
            yield sentence


def _groups(assembly: Assembly, cluster: Resource) -> Mapping[str, InstanceGroup]:
    return {
        each.name: each
        for each in instance_groups(assembly)
        if (each.cluster.stack, each.cluster.logical_id) == (cluster.stack, cluster.logical_id)
    }


def _sentence(group: str, target: int, old: InstanceGroup | None, new: InstanceGroup | None) -> str:
    if new is None and old is not None:
        return f"Deletes group {group}, which has {count(target, 'node')} instead of the deployed {old.count}."
    place = f"InstanceGroups[{group}]"
    wanted = None if new is None else str(new.count)
    found = sent(CLUSTER, f"{place}.InstanceCount" if wanted else place, str(target), wanted)
    return found.sentence if found is not None and found.nodes_lost != 0 else ""
