"""Requirements of a HyperPod cluster and its instance groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Network
from typing import Final

from hyperpod_cdk.catalog import hyperpod, instance_types, regions
from hyperpod_cdk.catalog.network import AWS_RESERVED_PER_SUBNET
from hyperpod_cdk.catalog.rules import listing
from hyperpod_cdk.findings import Severity
from hyperpod_cdk.templates.groups import InstanceGroup, entries
from hyperpod_cdk.templates.rules.rule import Context, Spot
from hyperpod_cdk.templates.values import is_known, plain

SCRIPTS: Final = "LifeCycleConfig"
_RESTRICTED: Final = "RestrictedInstanceGroups"
_NEEDS: Final = {
    "OverrideVpcConfig": "so that its subnet never depends on the cluster's",
    "ThreadsPerCore": "which an update that omits it resets",
    SCRIPTS: "without which its nodes are not prepared",
}


def cluster_tag(context: Context) -> Iterator[Spot]:
    """Find clusters without the tag that the training operator's policy requires."""
    for cluster in context.clusters:
        stated = context.value(cluster, "Tags")
        tags = {plain(tag.get("Key")): tag.get("Value") for tag in entries(stated)}
        value = tags.get("SageMaker")
        # a value that is stated decides, else every tag that cannot be read may be this one
        if value != "true" and is_known(stated if value is None else value):
            yield Spot(
                resource=cluster,
                place="Properties.Tags",
                message=f"must have the tag SageMaker=true, got {value or 'none'}; without it the "
                'training operator cannot read the nodes; add {"Key": "SageMaker", "Value": "true"}',
            )


def instance_group_complete(context: Context) -> Iterator[Spot]:
    """Find groups that omit properties for which the service can choose another value at the next update."""
    for group in context.groups:
        for name, why in _NEEDS.items():
            if name not in group.body and not (name == SCRIPTS and group.read.is_restricted):
                yield Spot(
                    resource=group.read.cluster,
                    place=group.place,
                    message=f"instance group {group.read.name} must state {name}, {why}; set it",
                )


def node_recovery(context: Context) -> Iterator[Spot]:
    """Find clusters that do not replace failed nodes."""
    for cluster in context.clusters:
        value = context.value(cluster, "NodeRecovery")
        automatic = hyperpod.NODE_RECOVERY["automatic"]
        if is_known(value) and value != automatic:
            yield Spot(
                resource=cluster,
                place="Properties.NodeRecovery",
                message="must replace or reboot failed nodes automatically, got NodeRecovery "
                f"{value or 'not stated'}; set NodeRecovery: {automatic}",
            )


def provisioning_mode(context: Context) -> Iterator[Spot]:
    """Find clusters on EKS that get all of their nodes or none."""
    for cluster in context.clusters:
        orchestrator = cluster.properties.get("Orchestrator")
        on_eks = isinstance(orchestrator, dict) and "Eks" in orchestrator
        if on_eks and "NodeProvisioningMode" not in cluster.properties and not cluster.properties.get(_RESTRICTED):
            yield Spot(
                resource=cluster,
                place="Properties.NodeProvisioningMode",
                message="must state how nodes are provisioned, got no NodeProvisioningMode: without it one "
                "unavailable instance rolls all others back; set NodeProvisioningMode: "
                f"{hyperpod.PROVISIONING['continuous']}",
            )


def deep_health_checks(context: Context) -> Iterator[Spot]:
    """Find groups for multi-node training whose nodes run jobs without a check."""
    for group in context.groups:
        rows = _rows(group.read)
        kubernetes = group.body.get("KubernetesConfig")
        # HyperPod does not combine the checks with taints
        has_taints = isinstance(kubernetes, dict) and bool(kubernetes.get("Taints"))
        if (
            rows
            and all(row.deep_health_check and row.training_plan_supported for row in rows)
            and (group.read.count or 0) > 1
            and not has_taints
            and not group.body.get("OnStartDeepHealthChecks")
        ):
            checks = ", ".join(hyperpod.DEEP_HEALTH_CHECKS.values())
            yield Spot(
                resource=group.read.cluster,
                place=group.place,
                message=f"instance group {group.read.name} must check its nodes before they run jobs, got "
                f"{group.read.count} nodes of {listing(group.read.types)} without "
                "OnStartDeepHealthChecks: one faulty accelerator stops a job that runs on all of them; "
                f"set OnStartDeepHealthChecks: [{checks}]",
            )


def group_in_one_zone(context: Context) -> Iterator[Spot]:
    """Find groups with EFA, or with a training plan, whose nodes may be in several zones."""
    for group in context.groups:
        zones = sorted(set(group.read.zones))
        fast = any(row.efa_supported for row in _rows(group.read))
        if (fast or group.read.plan) and len(zones) > 1 and _are_alike(zones) and group.read.count != 1:
            why = "a training plan has its instances in one" if group.read.plan else "EFA does not cross zones"
            yield Spot(
                resource=group.read.cluster,
                place=f"{group.place}.OverrideVpcConfig.Subnets",
                message=f"instance group {group.read.name} must be in one Availability Zone, because {why}, got "
                f"subnets in {', '.join(zones)}; set OverrideVpcConfig with the subnets of one zone",
            )


def node_subnet_size(context: Context) -> Iterator[Spot]:
    """Find subnets without enough addresses for their nodes."""
    for subnet in context.subnets:
        nodes = [use.group for use in subnet.of_kind("nodes") if use.group and len(use.group.subnets) == 1]
        block = _block(subnet.cidr)
        if subnet.resource is None or block is None or not nodes:
            continue
        usable = block.num_addresses - AWS_RESERVED_PER_SUBNET
        documented = sum(_addresses(group, documented=True) for group in nodes)
        needed = sum(_addresses(group) for group in nodes)
        if needed > usable:
            each = ", ".join(f"{group.name} {_addresses(group)}" for group in nodes if _addresses(group))
            estimate = "" if documented > usable else ", partly estimated"
            yield Spot(
                resource=subnet.resource,
                place="Properties.CidrBlock",
                severity=Severity.ERROR if documented > usable else Severity.WARNING,
                message=f"must have addresses for its nodes, {needed} ({each}{estimate}), got {subnet.cidr} with "
                f"{usable}, and AWS cannot resize a subnet; set CidrBlock to a /{_prefix_for(needed)}",
            )


def _rows(group: InstanceGroup) -> list[instance_types.InstanceType]:
    """Return the catalog's rows of the group's types; none if one of them is unknown."""
    rows = [instance_types.get(name) for name in group.types]
    return [row for row in rows if row is not None] if None not in rows else []


def _addresses(group: InstanceGroup, *, documented: bool = False) -> int:
    rows = _rows(group)
    if not rows or group.count is None:
        return 0
    each = [
        row.addresses_per_node(efa_only=group.is_efa_only) or 0
        if not documented or (row.ips_basis or "").startswith("documented")
        else 1
        for row in rows
    ]
    # of several types, the one with the fewest addresses may be used: only its addresses are needed for certain
    return group.count * (min(each) if documented else max(each))


def _prefix_for(addresses: int) -> int:
    return 32 - (addresses + AWS_RESERVED_PER_SUBNET - 1).bit_length()


def _block(cidr: str) -> IPv4Network | None:
    try:
        return IPv4Network(cidr, strict=False) if cidr else None
    except ValueError:
        return None


def _are_alike(zones: Sequence[str]) -> bool:
    """Whether zones are all IDs or all names: it is unknown whether an ID and a name are the same zone."""
    return all(map(regions.is_az_id, zones)) or all(map(regions.is_az_name, zones))
