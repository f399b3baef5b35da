"""Instance groups and subnets of an assembly, as every analysis reads them: their cluster, zones and counts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any, Final, Literal

from hyperpod_cdk.catalog import hyperpod, regions
from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.templates.assembly import Assembly, Resource
from hyperpod_cdk.templates.values import Reference, Unknown, choices, is_function, is_known, plain, resolve

CLUSTER: Final = "AWS::SageMaker::Cluster"
SUBNET: Final = "AWS::EC2::Subnet"
SECURITY_GROUP: Final = "AWS::EC2::SecurityGroup"
FILE_SYSTEM: Final = "AWS::FSx::FileSystem"

CapacityKind = Literal["training plan", "spot", "on-demand", "unknown"]
UseKind = Literal["nodes", "file system", "EKS", "function", "NAT gateway", "endpoint", "other"]


@dataclass(frozen=True, kw_only=True)
class Part:
    """A subnet, security group or VPC that a property names.

    ``key`` identifies the part, ``label`` is for readers. ``resource`` is the resource that creates it, None for one
    outside of the templates (an ID, a parameter without default); ``attribute`` is the resource's attribute if that is
    the part: the ``DefaultSecurityGroup`` of a VPC. ``is_known`` is false if only the deployment knows which part it
    is: it may be any, including one that these templates create. With ``is_list`` it may be several of them.
    """

    key: str
    label: str
    is_known: bool = field(default=True, compare=False)
    is_list: bool = field(default=False, compare=False)
    resource: Resource | None = field(default=None, compare=False, repr=False)
    attribute: str = ""

    @property
    def is_passed_on(self) -> bool:
        """Whether it is what a resource returns that creates none, such as a custom resource: any part.

        A parameter is none that its own stack creates.
        """
        return self.resource is not None and not self.is_known

    def is_made_here(self, resource_type: str) -> bool:
        """Whether a resource of this type in these templates creates it."""
        return self.resource is not None and self.resource.type == resource_type


@dataclass(frozen=True, kw_only=True)
class InstanceGroup:
    """One instance group of a HyperPod cluster; what the template does not show is None or empty.

    ``types``: the one instance type, or those of a flexible group, whose ``count`` is that of all together. Empty if a
    parameter decides. ``count`` is None with the reason in ``count_note``. ``zone_ids`` are AZ IDs, ``zones`` the zone
    of each subnet as the template states it: the ID, the name, or nothing. ``capacity_kind`` ``training plan`` has a
    ``plan``: the ARN, or the parameter with it. ``storage_gib``: extra EBS volumes of one node together, 0 without.
    ``is_efa_only``: only the primary network interface carries IP traffic. ``index`` is its position in the cluster's
    list.
    """

    cluster: Resource = field(compare=False, repr=False)
    name: str
    index: int
    is_restricted: bool = False
    types: tuple[str, ...] = ()
    is_flexible: bool = False
    count: int | None = None
    count_note: str = ""
    min_count: int | None = None
    zone_ids: tuple[str, ...] = ()
    zones: tuple[str, ...] = ()
    subnets: tuple[Part, ...] = ()
    security_groups: tuple[Part, ...] = ()
    capacity_kind: CapacityKind = "on-demand"
    plan: str | None = None
    storage_gib: int | None
    is_efa_only: bool = False

    @property
    def plan_name(self) -> str:
        """The last part of the plan's ARN; empty without a plan."""
        return (self.plan or "").rpartition("/")[2]

    @property
    def capacity(self) -> str:
        """The source of its instances, in words: ``training plan h100-april``, ``on-demand``, ``spot``, ``flexible``.

        ``flexible`` is an on-demand group of several types.
        """
        if self.capacity_kind == "training plan":
            return f"training plan {self.plan_name}"
        return "flexible" if self.is_flexible and self.capacity_kind == "on-demand" else self.capacity_kind

    @property
    def is_scaled(self) -> bool:
        """Whether Karpenter sets the number of its nodes."""
        return self.count_note == SCALED


@dataclass(frozen=True, kw_only=True)
class Use:
    """A user of a subnet's addresses. ``name`` is the instance group's, else the resource's."""

    kind: UseKind
    name: str
    resource: Resource
    group: InstanceGroup | None = None


@dataclass(frozen=True, kw_only=True)
class Subnet:
    """One subnet, created by the templates or named in them. ``zone_id`` and ``zone_name`` exclude each other.

    ``cidr`` and ``zone_id`` are empty if the template does not show them. ``zone`` distinguishes zones even then, if
    two subnets name their zone in the same way; empty if it is not stated. ``uses`` are the users of its addresses.
    """

    part: Part
    cidr: str = ""
    zone_id: str = ""
    zone_name: str = ""
    zone: str = ""
    vpc: Part | None = None
    uses: tuple[Use, ...] = ()

    @property
    def resource(self) -> Resource | None:
        """The resource that creates it, None for an existing one."""
        return self.part.resource

    def of_kind(self, kind: UseKind) -> tuple[Use, ...]:
        """Return the uses of one kind."""
        return tuple(use for use in self.uses if use.kind == kind)


SCALED: Final = "Karpenter sets it"
"""The ``count_note`` of a group whose nodes Karpenter adds and removes."""


def instance_groups(assembly: Assembly) -> list[InstanceGroup]:
    """Return the groups of every HyperPod cluster in the order of the templates, restricted groups last.

    A resource whose condition is false is omitted, here and in ``subnets``.
    """
    if (found := assembly.read.get(instance_groups)) is None:
        clusters = [cluster for cluster in assembly.of_type(CLUSTER) if exists(assembly, cluster) is not False]
        found = tuple(group for cluster in clusters for group in _groups(assembly, cluster))
        assembly.read[instance_groups] = found
    return list(found)


def subnets(assembly: Assembly) -> list[Subnet]:
    """Return every subnet of the templates in their order, then those that are only named, by their label."""
    if (found := assembly.read.get(subnets)) is None:
        found = assembly.read[subnets] = tuple(_subnets(assembly))
    return list(found)


def _subnets(assembly: Assembly) -> list[Subnet]:
    uses: dict[str, list[Use]] = {}
    parts: dict[str, Part] = {}
    for part, use in _uses(assembly):
        parts.setdefault(part.key, part)
        uses.setdefault(part.key, []).append(use)
    resources = [resource for resource in assembly.of_type(SUBNET) if exists(assembly, resource) is not False]
    made = [_subnet(assembly, resource) for resource in resources]
    known = {subnet.part.key for subnet in made}
    named = sorted((part for key, part in parts.items() if key not in known), key=lambda part: (part.label, part.key))
    return [
        _with_uses(subnet, uses.get(subnet.part.key, ())) for subnet in (*made, *(Subnet(part=part) for part in named))
    ]


def part(assembly: Assembly, stack: str, value: Any) -> Part:
    """Return the part that a template value names."""
    return resolved_part(assembly, stack, resolve(assembly, stack, value))


def parts(assembly: Assembly, stack: str, value: Any) -> tuple[Part, ...]:
    """Return the parts that a list of template values names; a list that the template does not show is one part."""
    return _listed(assembly, stack, resolve(assembly, stack, value))


def _listed(assembly: Assembly, stack: str, resolved: Any) -> tuple[Part, ...]:
    if resolved is None:
        return ()
    if isinstance(resolved, list):
        return tuple(resolved_part(assembly, stack, item) for item in resolved)
    found = resolved_part(assembly, stack, resolved)
    return (replace(found, is_list=not found.is_known),)


def resolved_part(assembly: Assembly, stack: str, resolved: Any) -> Part:
    """Return the part that a resolved value names."""
    if isinstance(resolved, Reference):
        resource = assembly.find(resolved.stack, resolved.logical_id)
        if resource is not None:
            attribute = "" if _OWN_ID.get(resource.type, "") == resolved.attribute else resolved.attribute
            key = f"{resource.stack}:{resource.logical_id}" + (f":{attribute}" if attribute else "")
            said = f"{resource.name}.{attribute}" if attribute else resource.name
            return Part(
                key=key,
                label=f"{said} ({resource.stack})",
                # others only pass it on: custom resources, nested stacks, parameters
                is_known=resource.type.startswith("AWS::EC2::"),
                resource=resource,
                attribute=attribute,
            )
    text = plain(resolved)
    # the same parameter can have different values in two stacks
    key = f"{stack}:{text}" if isinstance(resolved, Unknown) or "${" in text else text
    return Part(key=key, label=text, is_known=is_known(resolved))


def exists(assembly: Assembly, resource: Resource) -> bool | None:
    """Return whether a resource is created, by its condition; None if the template does not show it."""
    condition = resource.body.get("Condition")
    if condition is None:
        return True
    made = resolve(assembly, resource.stack, {"Fn::If": [condition, True, False]})
    return made if isinstance(made, bool) else None


def unknown_condition(assembly: Assembly, resource: Resource | None) -> str | None:
    """Return the condition of a resource if the template does not show whether it is true, else None."""
    if resource is None or exists(assembly, resource) is not None:
        return None
    return plain(resource.body["Condition"])


def whole_number(value: Any) -> int | None:
    """Return a number, or the number in a text (parameters are texts), else None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return int(value) if isinstance(value, str) and value.strip().isdecimal() else None


def entries(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list, nothing for anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


# Ref returns the same for these as these attributes
_OWN_ID: Final[Mapping[str, str]] = {SECURITY_GROUP: "GroupId", SUBNET: "SubnetId", "AWS::EC2::VPC": "VpcId"}
_NODE_COUNTS: Final = "Custom::HyperPodNodeCounts"
_COUNTS: Final = ("InstanceCount", "MinInstanceCount")
_READ: Final = (
    "InstanceGroupName",
    "InstanceType",
    "InstanceRequirements",
    "InstanceCount",
    "MinInstanceCount",
    "OverrideVpcConfig",
    "CapacityRequirements",
    "TrainingPlanArn",
    "InstanceStorageConfigs",
    "NetworkInterface",
)


def _groups(assembly: Assembly, cluster: Resource) -> Iterator[InstanceGroup]:
    own = resolve(assembly, cluster.stack, cluster.properties.get("VpcConfig"))
    karpenter = _enabled(resolve(assembly, cluster.stack, cluster.properties.get("AutoScaling")))
    for kind, is_restricted in (("InstanceGroups", False), ("RestrictedInstanceGroups", True)):
        for index, body in _bodies(assembly, cluster.stack, cluster.properties.get(kind)):
            yield _group(assembly, cluster, body, own, index=index, is_restricted=is_restricted, is_scalable=karpenter)


def _bodies(assembly: Assembly, stack: str, stated: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the position and the read properties of each group of a list that may have one."""
    found, on = choices(assembly, stack, stated)
    lists = [each if isinstance(each, list) or each is None else _list(assembly, stack, each) for each in found]
    for index, stated_there in enumerate(zip_longest(*(each or () for each in lists))):
        bodies: list[dict[str, Any] | None] = []
        names = list(on)
        for each in stated_there:
            items, more = choices(assembly, stack, each)
            bodies += [None if item is None else _readable(assembly, stack, item) for item in items]
            names += more
        if any(body is not None for body in bodies):
            yield index, _merged(bodies, names)


def _list(assembly: Assembly, stack: str, value: Any) -> list[Any]:
    found = resolve(assembly, stack, value)
    # what the template does not show may be groups of any type and size
    return found if isinstance(found, list) else [found]


def _merged(bodies: Sequence[dict[str, Any] | None], names: Sequence[str]) -> dict[str, Any]:
    """Return what is the same in all bodies that conditions choose from, None for no group; the rest is unknown."""
    on = ", ".join(dict.fromkeys(names))
    merged: dict[str, Any] = {}
    for name in dict.fromkeys(name for body in bodies for name in body or ()):
        # without the group there are none of its nodes
        first, *others = [body and body.get(name) for body in bodies if body is not None or name in _COUNTS]
        said = joined((plain(each) or "none" for each in (first, *others)), last="or")
        alike = all(each == first for each in others)
        merged[name] = first if alike else Unknown(f"{{if {on}: {said}}}", is_choice=True)
    return merged


def _enabled(autoscaling: Any) -> bool:
    return isinstance(autoscaling, dict) and autoscaling.get("Mode") == "Enable"


def _readable(assembly: Assembly, stack: str, raw: Any) -> dict[str, Any]:
    """Resolve the parts of a group that are read, without labels and scripts; all are unknown if it is not shown."""
    if is_function(raw):
        raw = resolve(assembly, stack, raw)
    if not isinstance(raw, dict):
        return dict.fromkeys(_READ, Unknown(plain(raw), is_choice=True))
    found: dict[str, Any] = resolve(assembly, stack, {name: raw[name] for name in _READ if name in raw})
    return found


def _group(
    assembly: Assembly,
    cluster: Resource,
    body: Mapping[str, Any],
    own: Any,
    *,
    index: int,
    is_restricted: bool,
    is_scalable: bool,
) -> InstanceGroup:
    types, is_flexible = _types(body)
    stated = whole_number(body.get("InstanceCount"))
    # no group has fewer than none: the effect would be unknown
    count = None if stated is not None and stated < 0 else stated
    note = "" if count is not None else _count_note(assembly, body.get("InstanceCount"))
    if count == 0 and is_scalable and not is_restricted:
        count, note = None, SCALED
    network = body.get("OverrideVpcConfig") or own
    subnets_of = _members(assembly, cluster.stack, network, "Subnets")
    places = [_zone_of(assembly, each) for each in subnets_of]
    kind, plan = _capacity(body)
    return InstanceGroup(
        cluster=cluster,
        name=plain(body.get("InstanceGroupName")) or str(index),
        index=index,
        is_restricted=is_restricted,
        types=types,
        is_flexible=is_flexible,
        count=count,
        count_note=note,
        min_count=whole_number(body.get("MinInstanceCount")),
        zone_ids=tuple(dict.fromkeys(place.zone_id for place in places if place.zone_id)),
        zones=tuple(place.zone for place in places),
        subnets=subnets_of,
        security_groups=_members(assembly, cluster.stack, network, "SecurityGroupIds"),
        capacity_kind=kind,
        plan=plan,
        storage_gib=_storage(body.get("InstanceStorageConfigs")),
        is_efa_only=_is_efa_only(body.get("NetworkInterface")),
    )


def _is_efa_only(interface: object) -> bool:
    wanted = hyperpod.NETWORK_INTERFACES["efa_only"]
    return isinstance(interface, dict) and interface.get("InterfaceType") == wanted


def _types(body: Mapping[str, Any]) -> tuple[tuple[str, ...], bool]:
    one = body.get("InstanceType")
    if isinstance(one, str):
        return (one,), False
    requirements = body.get("InstanceRequirements")
    several = requirements.get("InstanceTypes") if isinstance(requirements, dict) else None
    named = [name for name in several if isinstance(name, str)] if isinstance(several, list) else []
    # an unknown one may be any type, including those with the highest needs
    return (tuple(named) if isinstance(several, list) and len(named) == len(several) else ()), requirements is not None


def _count_note(assembly: Assembly, count: Any) -> str:
    if isinstance(count, Reference):
        source = assembly.find(count.stack, count.logical_id)
        if source is not None and source.type == _NODE_COUNTS:
            return SCALED
        return f"{plain(count)} sets it"
    if whole_number(count) is not None:
        return f"{plain(count)} is not a valid count of a group"
    return f"{plain(count)} sets it" if count is not None else "the template does not state it"


def _members(assembly: Assembly, stack: str, network: Any, name: str) -> tuple[Part, ...]:
    unknown = isinstance(network, (Reference, Unknown))
    return _listed(assembly, stack, network if unknown else network.get(name) if isinstance(network, dict) else None)


def _capacity(body: Mapping[str, Any]) -> tuple[CapacityKind, str | None]:
    plan = body.get("TrainingPlanArn")
    if isinstance(plan, Unknown) and plan.is_choice:
        return "unknown", None
    if plan:
        return "training plan", plain(plan)
    requirements = body.get("CapacityRequirements")
    if isinstance(requirements, Unknown):
        return "unknown", None
    return ("spot" if isinstance(requirements, dict) and "Spot" in requirements else "on-demand"), None


def _storage(volumes: Any) -> int | None:
    if volumes is None:
        return 0
    if not isinstance(volumes, list):
        return None
    total = 0
    for volume in volumes:
        if not isinstance(volume, dict):
            return None
        ebs = volume.get("EbsVolumeConfig")
        if ebs is None or (isinstance(ebs, dict) and ebs.get("RootVolume")):
            continue
        size = whole_number(ebs.get("VolumeSizeInGB")) if isinstance(ebs, dict) else None
        if size is None:
            return None
        total += size
    return total


@dataclass(frozen=True)
class _Zone:
    zone_id: str = ""
    zone_name: str = ""
    zone: str = ""


def _zone_of(assembly: Assembly, subnet: Part) -> _Zone:
    resource = subnet.resource
    if resource is None or resource.type != SUBNET:
        return _Zone()
    for name in ("AvailabilityZoneId", "AvailabilityZone"):
        stated = resource.properties.get(name)
        if stated is None:
            continue
        value = resolve(assembly, resource.stack, stated)
        if isinstance(value, str) and regions.is_az_id(value):
            return _Zone(zone_id=value, zone=value)
        if isinstance(value, str):
            return _Zone(zone_name=value, zone=value)
        # the first zone of the Region is the same in all of them, whichever it is
        return _Zone(zone=f"{resource.stack}: {json.dumps(stated, sort_keys=True)}")
    return _Zone()


def _subnet(assembly: Assembly, resource: Resource) -> Subnet:
    itself = resolved_part(assembly, resource.stack, Reference(resource.stack, resource.logical_id))
    cidr = resolve(assembly, resource.stack, resource.properties.get("CidrBlock"))
    place = _zone_of(assembly, itself)
    vpc = resource.properties.get("VpcId")
    return Subnet(
        part=itself,
        cidr=cidr if isinstance(cidr, str) and "${" not in cidr else "",
        zone_id=place.zone_id,
        zone_name=place.zone_name,
        zone=place.zone,
        vpc=None if vpc is None else part(assembly, resource.stack, vpc),
    )


def _with_uses(subnet: Subnet, uses: Iterable[Use]) -> Subnet:
    return Subnet(
        part=subnet.part,
        cidr=subnet.cidr,
        zone_id=subnet.zone_id,
        zone_name=subnet.zone_name,
        zone=subnet.zone,
        vpc=subnet.vpc,
        uses=tuple(uses),
    )


@dataclass(frozen=True)
class _Place:
    """The properties of types that name their subnets."""

    kind: UseKind
    way: tuple[str, ...] = field(default=())


_PLACES: Final[Mapping[str, _Place]] = {
    FILE_SYSTEM: _Place("file system", ("SubnetIds",)),
    "AWS::EKS::Cluster": _Place("EKS", ("ResourcesVpcConfig", "SubnetIds")),
    "AWS::Lambda::Function": _Place("function", ("VpcConfig", "SubnetIds")),
    "AWS::EC2::NatGateway": _Place("NAT gateway", ("SubnetId",)),
    "AWS::EC2::VPCEndpoint": _Place("endpoint", ("SubnetIds",)),
}
_TAKES_NONE: Final = frozenset(
    {CLUSTER, "AWS::EC2::SubnetRouteTableAssociation", "AWS::EC2::SubnetNetworkAclAssociation", "AWS::EC2::FlowLog"}
)
_ELSEWHERE: Final = (("SubnetId",), ("SubnetIds",), ("Subnets",), ("VpcConfig", "SubnetIds"))


def _uses(assembly: Assembly) -> Iterator[tuple[Part, Use]]:
    for group in instance_groups(assembly):
        for each in group.subnets:
            yield each, Use(kind="nodes", name=group.name, resource=group.cluster, group=group)
    for resource in assembly.resources():
        if resource.type in _TAKES_NONE or exists(assembly, resource) is False:
            continue
        place = _PLACES.get(resource.type)
        ways = (place.way,) if place else _ELSEWHERE
        kind: UseKind = place.kind if place else "other"
        for way in ways:
            value: Any = resource.properties
            for step in way:
                value = value.get(step) if isinstance(value, dict) else None
            if value is None:
                continue
            for each in {each.key: each for each in parts(assembly, resource.stack, value)}.values():
                if kind != "other" or each.is_made_here(SUBNET):
                    yield each, Use(kind=kind, name=resource.name, resource=resource)
