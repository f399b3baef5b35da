"""The needs of a template for the account's quotas: from its quota gate, else as far as its resources show them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from hyperpod_cdk.catalog import quotas
from hyperpod_cdk.catalog.quotas import Quota
from hyperpod_cdk.handlers.quota_gate.comparison import Requirement, from_properties
from hyperpod_cdk.templates.assembly import Assembly
from hyperpod_cdk.templates.groups import InstanceGroup, exists, instance_groups
from hyperpod_cdk.templates.values import resolve

GATE: Final = "Custom::HyperPodQuotaGate"


@dataclass(frozen=True, kw_only=True)
class Need:
    """The need for one quota; ``needed`` is None if the template does not show it.

    ``key`` identifies the quota, ``label`` is the quota's name with its scope (``(use1-az5)``). ``default`` is AWS's as
    documented; ``is_default_sure`` is False if accounts have been seen with another.
    """

    key: str
    service: str
    name: str
    label: str
    code: str | None
    needed: float | None
    default: float
    is_default_sure: bool


@dataclass(frozen=True, kw_only=True)
class Needs:
    """Needs by key. ``is_whole`` if a quota gate lists them: what it does not list is not needed.

    ``has_all_types`` is the same for instances alone: every group names its types.
    """

    by_key: Mapping[str, Need]
    is_whole: bool
    has_all_types: bool = True
    notes: tuple[str, ...] = ()

    def needed(self, key: str) -> float | None:
        """Return how much of a quota is needed; 0 for one that a complete list omits, None if that is unknown."""
        found = self.by_key.get(key)
        if found is not None:
            return found.needed
        is_of_instances = key.startswith(("cluster:", "spot:", "hyperpod_instances", "hyperpod_spot_instances"))
        return 0 if self.is_whole or (is_of_instances and self.has_all_types) else None


def quota_needs(assembly: Assembly) -> Needs:
    """Return the needs of the templates.

    The gate's list is that of ``quotas.needs``. Without a gate, or if its list cannot be read, these are the
    quotas for instances of HyperPod clusters and for resources that the templates create one by one: VPCs, EKS
    clusters, addresses. An empty assembly needs nothing.
    """
    gates = [each for each in assembly.of_type(GATE) if exists(assembly, each) is not False]
    found: dict[str, Need] = {}
    for gate in gates:
        listed = resolve(assembly, gate.stack, gate.properties.get("Requirements"))
        try:
            requirements = from_properties(listed if isinstance(listed, list) else [])
        except (ValueError, TypeError, AttributeError) as error:
            note = f"The list of {gate.name} in {gate.stack} could not be read: {error}."
            return _needs_of_template(assembly, note)
        found |= {each.key: _of_gate(each) for each in requirements}
    if gates or not assembly.stacks:
        return Needs(by_key=found, is_whole=True)
    return _needs_of_template(assembly)


def _of_gate(requirement: Requirement) -> Need:
    counted_by = requirement.key.partition(":")[2] if requirement.key.startswith("nat_gateways_per_az") else ""
    return Need(
        key=requirement.key,
        service=requirement.service,
        name=requirement.name,
        label=f"{requirement.name} ({counted_by})" if counted_by else requirement.name,
        code=requirement.code or None,
        needed=requirement.needed,
        default=requirement.default,
        is_default_sure=not requirement.unsure_default,
    )


def _needs_of_template(assembly: Assembly, *notes: str) -> Needs:
    groups = instance_groups(assembly)
    needs = [*_of_instances(groups), *_of_resources(assembly)]
    return Needs(
        by_key={need.key: need for need in needs if need.needed != 0},
        is_whole=False,
        has_all_types=all(group.types for group in groups),
        notes=notes,
    )


def _of_instances(groups: list[InstanceGroup]) -> Iterator[Need]:
    spot = [group for group in groups if group.capacity_kind == "spot"]
    for members, quota_of in (
        ([group for group in groups if group.capacity_kind != "spot"], quotas.cluster_usage),
        (spot, quotas.cluster_spot_usage),
    ):
        # a flexible group uses its first type before all others
        for name in dict.fromkeys(group.types[0] for group in members if group.types):
            yield _need(quota_of(name), _sum(group.count for group in members if group.types[:1] == (name,)))
    for which, prefix in ((groups, "hyperpod_instances"), (spot, "hyperpod_spot_instances")):
        if which:
            yield _need(quotas.get(f"{prefix}_total"), _sum(group.count for group in which))
            clusters: dict[tuple[str, str], list[int | None]] = {}
            for group in which:
                clusters.setdefault((group.cluster.stack, group.cluster.logical_id), []).append(group.count)
            sizes = [_sum(counts) for counts in clusters.values()]
            yield _need(quotas.get(f"{prefix}_per_cluster"), _largest(sizes))
    if groups:
        yield _need(quotas.get("hyperpod_ebs_volume_gb"), _largest([group.storage_gib for group in groups]))


_COUNTED: Final[Mapping[str, str]] = {
    "AWS::EC2::VPC": "vpcs",
    "AWS::EC2::InternetGateway": "internet_gateways",
    "AWS::EC2::EIP": "elastic_ips",
    "AWS::EKS::Cluster": "eks_clusters",
}


def _of_resources(assembly: Assembly) -> Iterator[Need]:
    for resource_type, key in _COUNTED.items():
        made = [exists(assembly, each) for each in assembly.of_type(resource_type)]
        yield _need(quotas.get(key), None if None in made else sum(map(bool, made)))


def _need(quota: Quota, needed: float | None) -> Need:
    return Need(
        key=quota.key,
        service=quota.service,
        name=quota.name,
        label=quota.name,
        code=quota.code,
        needed=needed,
        default=quota.default,
        is_default_sure=not quota.unsure_default,
    )


def _sum(counts: Iterable[int | None]) -> int | None:
    return _of_known(list(counts), sum)


def _largest(sizes: list[int | None]) -> int | None:
    return _of_known(sizes, max)


def _of_known(numbers: list[Any], of: Callable[[list[int]], int]) -> int | None:
    return None if None in numbers else of(numbers)
