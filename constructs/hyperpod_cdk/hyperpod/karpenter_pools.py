"""Karpenter's pools on a HyperPod cluster: which instance groups it can use, and when it removes nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from aws_cdk import aws_eks_v2 as eks
from constructs import Construct, IDependable

from hyperpod_cdk.catalog import hyperpod
from hyperpod_cdk.catalog.rules import same_names_problem
from hyperpod_cdk.common.manifests import applied_manifest
from hyperpod_cdk.config.argument_types import judged
from hyperpod_cdk.config.arguments import problems, refuse_for
from hyperpod_cdk.config.hyperpod import KarpenterPool
from hyperpod_cdk.hyperpod.instance_groups import TaintLike

Consolidation = Literal["when_empty", "when_empty_or_underutilized"]


class PoolLike(Protocol):
    """Anything with the attributes of ``Pool``."""

    @property
    def name(self) -> str: ...
    @property
    def instance_groups(self) -> Sequence[str]: ...
    @property
    def consolidation(self) -> Consolidation: ...
    @property
    def consolidate_after_seconds(self) -> int: ...


@judged(known=("name",))
@dataclass(frozen=True, kw_only=True)
class Pool:
    """A pool of Karpenter: a NodePool and its HyperpodNodeClass over instance groups of count 0.

    ``name`` (str): name of the NodePool and its HyperpodNodeClass. Checked by ``KarpenterPools``, which raises
    ValueError unless it is 1 to 63 lower-case letters, digits and hyphens.

    ``instance_groups`` (Sequence[str]): names of the instance groups of count 0. Checked by ``KarpenterPools``, which
    raises ValueError unless there are 1 to 10.

    ``consolidation`` ("when_empty" | "when_empty_or_underutilized"): ``when_empty`` removes nodes without pods,
    ``when_empty_or_underutilized`` also those whose pods fit on others; these pods are evicted. Default:
    ``when_empty``. Checked by ``KarpenterPools``, which raises ValueError for another value.

    ``consolidate_after_seconds`` (int, seconds): how long a node is in that state before it is removed. AWS advises up
    to two minutes on Spot, so that pods can write a checkpoint. Default: 120. Checked by ``KarpenterPools``, which
    raises ValueError unless it is 0 to 86400.
    """

    name: str
    instance_groups: Sequence[str]
    consolidation: Consolidation = "when_empty"
    consolidate_after_seconds: int = field(default=hyperpod.KARPENTER_DEFAULT_CONSOLIDATE_AFTER_SECONDS)


@judged()
class KarpenterPools(Construct):
    """The Kubernetes objects that let HyperPod's Karpenter scale instance groups.

    Spot groups of a pool come before on-demand ones, which are the fallback. Nodes do not expire: a training job may
    run longer than Karpenter's default of 30 days. Pools that are removed from ``pools`` are deleted, and Karpenter
    then drains their nodes.

    ``cluster`` (eks_v2.ICluster): the CDK construct of the EKS cluster, with a kubectl provider. Raises ValueError for
    a cluster without one.

    ``pools`` (Sequence[PoolLike]): the pools (``Pool``); each group is in only one of them. Raises ValueError for a
    name that is repeated or that Kubernetes refuses, a value that ``Pool`` does not allow, and a group in two pools.

    ``taints`` (Mapping[str, Sequence[TaintLike]]): taints of the groups, by the group's name; all groups of a pool have
    the same, because Karpenter would otherwise add nodes on which the pods that need them cannot run. Default: none.
    Raises ValueError for groups of one pool with different taints.

    ``after`` (Sequence[IDependable]): the autoscaler (``KarpenterAutoscaling.ready``), without which the API server
    does not have these custom resources. Default: none.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: eks.ICluster,
        pools: Sequence[PoolLike],
        taints: Mapping[str, Sequence[TaintLike]] | None = None,
        after: Sequence[IDependable] = (),
    ) -> None:
        super().__init__(scope, construct_id)
        refuse_for(_problems(pools, taints or {}))
        self.manifests: dict[str, eks.KubernetesManifest] = {}
        for pool in pools:
            manifest = applied_manifest(
                self,
                f"Pool-{pool.name}",
                cluster=cluster,
                # the node class first: a pool without its class is not ready
                objects=[_node_class(pool), _node_pool(pool, (taints or {}).get(pool.instance_groups[0], ()))],
            )
            manifest.node.add_dependency(*after)
            self.manifests[pool.name] = manifest


def _problems(pools: Sequence[PoolLike], taints: Mapping[str, Sequence[TaintLike]]) -> Iterator[str]:
    if same := same_names_problem([pool.name for pool in pools], listed="pools"):
        yield f"karpenter {same}"
    home: dict[str, str] = {}
    for pool in pools:
        where = f'karpenter pool "{pool.name}"'
        yield from (f"{where}: {problem}" for problem in _pool_problems(pool, taints))
        for group in pool.instance_groups:
            if group in home:
                yield f"{where}: instance_groups: {hyperpod.two_pools_problem(group, home[group])}"
            home.setdefault(group, pool.name)


def _pool_problems(pool: PoolLike, taints: Mapping[str, Sequence[TaintLike]]) -> Iterator[str]:
    values = {
        "name": pool.name,
        "instance_groups": pool.instance_groups,
        "consolidation": pool.consolidation,
        "consolidate_after_seconds": pool.consolidate_after_seconds,
    }
    yield from problems(KarpenterPool, values)
    first, *others = pool.instance_groups or [""]
    of_groups = {each: {tuple(_taint(t).items()) for t in taints.get(each, ())} for each in pool.instance_groups}
    unlike = next((other for other in others if of_groups[other] != of_groups[first]), None)
    if unlike is not None:
        yield hyperpod.unlike_taints_problem(first, unlike, pool=pool.name)


def _node_class(pool: PoolLike) -> dict[str, Any]:
    words = hyperpod.KARPENTER_NODE_CLASS
    return {
        "apiVersion": f"{words['group']}/{words['version']}",
        "kind": words["kind"],
        "metadata": {"name": pool.name},
        "spec": {"instanceGroups": list(pool.instance_groups)},
    }


def _node_pool(pool: PoolLike, taints: Sequence[TaintLike]) -> dict[str, Any]:
    words, node_class = hyperpod.KARPENTER_NODE_POOL, hyperpod.KARPENTER_NODE_CLASS
    spec: dict[str, Any] = {
        "nodeClassRef": {"group": node_class["group"], "kind": node_class["kind"], "name": pool.name},
        "expireAfter": "Never",
        "requirements": [{"key": "node.kubernetes.io/instance-type", "operator": "Exists"}],
    }
    if taints:
        spec["taints"] = [_taint(taint) for taint in taints]
    return {
        "apiVersion": f"{words['group']}/{words['version']}",
        "kind": words["kind"],
        "metadata": {"name": pool.name},
        "spec": {
            "disruption": {
                "consolidationPolicy": hyperpod.KARPENTER_CONSOLIDATION[pool.consolidation],
                "consolidateAfter": f"{pool.consolidate_after_seconds}s",
            },
            "template": {"spec": spec},
        },
    }


def _taint(taint: TaintLike) -> dict[str, str]:
    value = {"value": taint.value} if taint.value is not None else {}
    return {"key": taint.key, **value, "effect": taint.effect}
