"""What the architecture diagram shows: cards in blocks in zones in VPCs, with the effect of a change on each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from hyperpod_cdk.catalog import instance_types
from hyperpod_cdk.catalog.network import EVERYWHERE
from hyperpod_cdk.catalog.sentences import plural
from hyperpod_cdk.review.model import BlockAddresses, Capacity, Change
from hyperpod_cdk.review.pictures.svg import TIMES
from hyperpod_cdk.templates.assembly import EMPTY, Assembly, Resource
from hyperpod_cdk.templates.difference import MISSING, PropertyChange, compare
from hyperpod_cdk.templates.groups import (
    CLUSTER,
    FILE_SYSTEM,
    InstanceGroup,
    Subnet,
    Use,
    entries,
    instance_groups,
    part,
    subnets,
    unknown_condition,
    whole_number,
)
from hyperpod_cdk.templates.values import Reference, Unknown, plain, resolve, target

EKS: Final = "AWS::EKS::Cluster"
VPC: Final = "AWS::EC2::VPC"
UNKNOWN_ZONE: Final = "zone unknown"

Mark = Literal["", "added", "changed", "removed"]
Kind = Literal["nodes", "storage", "control", "network", "team"]


@dataclass(frozen=True)
class Chip:
    """A few words about a card."""

    text: str
    mark: Mark = ""


@dataclass(frozen=True, kw_only=True)
class Squares:
    """Accelerators, drawn one by one: ``each`` of every node. ``is_neuron`` distinguishes AWS's own from NVIDIA's."""

    nodes: int
    each: int
    is_neuron: bool


@dataclass(frozen=True, kw_only=True)
class Card:
    """One thing: ``changes`` describe what happens to it.

    An instance group ``is_group``; its ``nodes`` and ``accelerators`` are None if the template does not show them.
    """

    kind: Kind
    title: str
    subtitle: str = ""
    lines: tuple[str, ...] = ()
    chips: tuple[Chip, ...] = ()
    squares: Squares | None = None
    is_group: bool = False
    nodes: int | None = None
    accelerators: int | None = None
    mark: Mark = ""
    changes: tuple[str, ...] = ()
    tooltip: str = ""


@dataclass(frozen=True, kw_only=True)
class Block:
    """One subnet and its content; ``used`` and ``usable`` are addresses, None if they are unknown."""

    role: str
    cidr: str
    used: float | None = None
    usable: int | None = None
    mark: Mark = ""
    chips: tuple[Chip, ...] = ()
    cards: tuple[Card, ...] = ()
    tooltip: str = ""


@dataclass(frozen=True, kw_only=True)
class Zone:
    """A column: an Availability Zone with its blocks."""

    label: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, kw_only=True)
class Network:
    """A VPC: ``across`` are cards of more than one zone."""

    label: str
    note: str
    mark: Mark
    zones: tuple[Zone, ...]
    across: tuple[Card, ...]
    endpoints: tuple[Chip, ...]


@dataclass(frozen=True, kw_only=True)
class Scene:
    """All of it, from top to bottom."""

    title: str
    subtitle: str
    figures: tuple[tuple[str, str], ...]
    control: tuple[Card, ...]
    teams: tuple[Card, ...]
    networks: tuple[Network, ...]
    outside: tuple[Card, ...]
    is_change: bool


ROLES: Final = ("public", "control plane", "nodes", "other")
"""The roles of blocks, from top to bottom."""

_SHORT: Final = 34


def scene(head: Assembly, base: Assembly | None, capacity: Capacity) -> Scene:
    """Describe an environment, with its changes against ``base``; ``capacity`` has addresses, plans and totals."""
    changes = _Changes(base, head)
    after, before = _Side(head), _Side(base or EMPTY)
    return Scene(
        title=head.environment or (head.stacks[0].name if head.stacks else "nothing"),
        subtitle=_subtitle(head),
        figures=tuple(_figures(capacity, is_change=base is not None)),
        control=tuple(_control(after, before, changes)),
        teams=tuple(_teams(after, before, changes)),
        networks=tuple(_networks(after, before, changes, capacity)),
        outside=tuple(_outside(after, before, changes, capacity)),
        is_change=base is not None,
    )


class _Side:
    """One assembly with the data that is used more than once."""

    def __init__(self, assembly: Assembly) -> None:
        self.assembly = assembly
        self.groups = instance_groups(assembly)
        self.subnets = subnets(assembly)

    def read(self, resource: Resource, *names: str) -> dict[str, Any]:
        """Resolve some properties of a resource."""
        stated = {name: resource.properties[name] for name in names if name in resource.properties}
        resolved = resolve(self.assembly, resource.stack, stated)
        return resolved if isinstance(resolved, dict) else {}


class _Changes:
    """What differs between the two sides, by resource and by instance group."""

    def __init__(self, base: Assembly | None, head: Assembly) -> None:
        self._resources: dict[tuple[str, str], tuple[Mark, tuple[PropertyChange, ...]]] = {}
        self._groups: dict[tuple[str, ...], list[PropertyChange]] = {}
        self._base, self._head = base, head
        for each in compare(base, head) if base is not None else ():
            mark: Mark = "added" if each.before is None else "removed" if each.after is None else "changed"
            self._resources[each.resource.stack, each.resource.logical_id] = (mark, each.properties)
            for change in each.properties:
                if _is_of_groups(change):
                    key = (each.resource.stack, each.resource.logical_id, change.steps[0], change.item)
                    self._groups.setdefault(key, []).append(change)

    def of(self, resource: Resource) -> tuple[Mark, tuple[str, ...]]:
        """Return what happens to a resource, in words if it changes."""
        mark, properties = self._resources.get((resource.stack, resource.logical_id), ("", ()))
        own = [each for each in properties if not _is_of_groups(each)]
        if not mark or (mark == "changed" and not own):
            return "", ()
        return mark, (*_in_words(own), *self._condition(resource))

    def _condition(self, resource: Resource) -> Iterator[str]:
        """Yield the condition of a resource that is marked, if the template does not show whether it is true."""
        sides = (each for each in (self._head, self._base) if each is not None and resource.stack in each.by_name)
        found = (unknown_condition(each, each.find(resource.stack, resource.logical_id)) for each in sides)
        if condition := next(filter(None, found), None):
            yield f"only if {condition} is true"

    def of_group(self, group: InstanceGroup) -> tuple[Mark, tuple[str, ...]]:
        """Return what happens to an instance group of the head."""
        cluster = group.cluster
        mark, _ = self._resources.get((cluster.stack, cluster.logical_id), ("", ()))
        if mark != "changed":
            return mark, ()
        kind = "RestrictedInstanceGroups" if group.is_restricted else "InstanceGroups"
        own = self._groups.get((cluster.stack, cluster.logical_id, kind, group.name), [])
        if any(len(each.steps) == 2 and each.before is MISSING for each in own):
            return "added", ()
        return ("changed", tuple(_in_words(own))) if own else ("", ())


def _is_of_groups(change: PropertyChange) -> bool:
    return change.steps[0] in ("InstanceGroups", "RestrictedInstanceGroups")


def _in_words(changes: Sequence[PropertyChange]) -> Iterator[str]:
    shown = [each for each in changes if each.steps[0] != "Tags"] or list(changes)
    for each in shown[:3]:
        name = next(step for step in reversed(each.steps) if not step.startswith("["))
        if isinstance(each.before, (dict, list)) or isinstance(each.after, (dict, list)):
            yield f"{name} changes"
            continue
        before = "none" if each.before is MISSING else _short(plain(each.before))
        after = "none" if each.after is MISSING else _short(plain(each.after))
        yield f"{name} {before} → {after}"
    if len(shown) > 3:
        yield f"and {len(shown) - 3} more"


def _short(words: str) -> str:
    return words if len(words) <= _SHORT else f"{words[: _SHORT - 1]}…"


def _subtitle(head: Assembly) -> str:
    parts = [f"region {head.region}" if head.region else "region unknown"]
    parts.append(f"account {head.account}" if head.account else "account unknown")
    return " · ".join([*parts, f"{len(head.stacks)} {plural(len(head.stacks), 'stack')}"])


def _figures(capacity: Capacity, *, is_change: bool) -> Iterator[tuple[str, str]]:
    for name, label in (("nodes", "nodes"), ("accelerators", "accelerators"), ("efa_interfaces", "EFA interfaces")):
        numbers: list[Change] = [getattr(group, name) for group in capacity.groups]
        before, after = total(each.before for each in numbers), total(each.after for each in numbers)
        if "0" == before == after:
            continue
        yield (f"{before} → {after}" if is_change and before != after else after), label


def total(values: Iterable[float | None]) -> str:
    """Add up; an unknown number is a plus after the sum."""
    known = list(values)
    if None in known and not any(known):
        return "?"
    return f"{sum(each or 0 for each in known):,.0f}{'+' if None in known else ''}"


def _both(after: _Side, before: _Side, *types: str) -> Iterator[tuple[_Side, Resource]]:
    """Return the resources of these types: those of the head, then those that are removed."""
    yield from ((after, each) for each in after.assembly.of_type(*types))
    for each in before.assembly.of_type(*types):
        if after.assembly.find(each.stack, each.logical_id) is None:
            yield before, each


def _control(after: _Side, before: _Side, changes: _Changes) -> Iterator[Card]:
    addons = [(side, each) for side, each in _both(after, before, "AWS::EKS::Addon")]
    charts = [(side, each) for side, each in _both(after, before, "Custom::AWSCDK-EKS-HelmChart")]
    for side, resource in _both(after, before, EKS):
        read = side.read(resource, "Name", "Version", "ResourcesVpcConfig", "EncryptionConfig", "Logging")
        mark, words = changes.of(resource)
        chips = [Chip(_access(read.get("ResourcesVpcConfig")))]
        chips += [Chip("secrets encrypted")] if read.get("EncryptionConfig") else []
        chips += [Chip("audit logs")] if "audit" in plain(read.get("Logging")) else []
        yield Card(
            kind="control",
            title=f"EKS {_plain_or(read.get('Name'), resource.name)}",
            subtitle=f"Kubernetes {_plain_or(read.get('Version'), 'version unknown')}",
            chips=tuple(chips),
            mark=mark,
            changes=words,
            tooltip=f"{resource.name} in {resource.stack}",
        )
    for side, resource in _both(after, before, CLUSTER):
        mark, words = changes.of(resource)
        groups = [each for each in side.groups if each.cluster == resource]
        read = side.read(resource, "ClusterName", "NodeProvisioningMode", "NodeRecovery", "AutoScaling")
        chips = [Chip("continuous provisioning")] if read.get("NodeProvisioningMode") == "Continuous" else []
        chips += [Chip("node recovery")] if read.get("NodeRecovery") == "Automatic" else []
        scaling = read.get("AutoScaling")
        chips += [Chip("Karpenter")] if isinstance(scaling, dict) and scaling.get("Mode") == "Enable" else []
        yield Card(
            kind="nodes",
            title=f"HyperPod {_plain_or(read.get('ClusterName'), resource.name)}",
            subtitle=f"{len(groups)} instance {plural(len(groups), 'group')}",
            chips=tuple(chips),
            mark=mark,
            changes=words,
            tooltip=f"{resource.name} in {resource.stack}",
        )
    chips = [Chip(_addon(side, each, "AddonName"), _chip_mark(changes, each)) for side, each in addons]
    chips += [Chip(_addon(side, each, "Release"), _chip_mark(changes, each)) for side, each in charts]
    if chips:
        yield Card(
            kind="control",
            title="Add-ons and operators",
            subtitle=_counted(len(addons), "EKS add-on")
            + (f", {_counted(len(charts), 'Helm chart')}" if charts else ""),
            chips=tuple(chips),
        )


def _access(network: Any) -> str:
    if not isinstance(network, dict):
        return "endpoint access unknown"
    public = network.get("EndpointPublicAccess", True)
    private = network.get("EndpointPrivateAccess", False)
    if public is True:
        limited = EVERYWHERE not in (network.get("PublicAccessCidrs") or [EVERYWHERE])
        where = "public and private endpoint" if private is True else "public endpoint"
        return f"{where}, limited" if limited else where
    return "private endpoint only" if public is False else "endpoint access unknown"


def _addon(side: _Side, resource: Resource, name: str) -> str:
    return _plain_or(side.read(resource, name).get(name), resource.name).removeprefix("amazon-sagemaker-")


def _chip_mark(changes: _Changes, resource: Resource) -> Mark:
    return changes.of(resource)[0]


def _counted(number: int, what: str) -> str:
    return f"{number} {plural(number, what)}"


def _plain_or(value: Any, otherwise: str) -> str:
    return otherwise if value is None or isinstance(value, (Unknown, Reference)) else plain(value)


def _teams(after: _Side, before: _Side, changes: _Changes) -> Iterator[Card]:
    for side, resource in _both(after, before, "AWS::SageMaker::ComputeQuota"):
        read = side.read(resource, "ComputeQuotaTarget", "ComputeQuotaConfig")
        goal, config = (read.get(name) for name in ("ComputeQuotaTarget", "ComputeQuotaConfig"))
        goal, config = (each if isinstance(each, dict) else {} for each in (goal, config))
        sharing = config.get("ResourceSharingConfig")
        sharing = sharing if isinstance(sharing, dict) else {}
        mark, words = changes.of(resource)
        weight = goal.get("FairShareWeight")
        yield Card(
            kind="team",
            title=_plain_or(goal.get("TeamName"), resource.name),
            subtitle=f"fair-share weight {plain(weight)}" if weight is not None else "",
            lines=tuple(_quota(row) for row in entries(config.get("ComputeQuotaResources"))[:2]),
            chips=tuple(_sharing(sharing)),
            mark=mark,
            changes=words,
            tooltip=f"{resource.name} in {resource.stack}",
        )


def _quota(row: Mapping[str, Any]) -> str:
    kind = _plain_or(row.get("InstanceType"), "type unknown")
    if row.get("Count") is not None:
        return f"{plain(row['Count'])} {TIMES} {kind}"
    for name, unit in (("Accelerators", "accelerators"), ("VCpu", "vCPU"), ("MemoryInGiB", "GiB memory")):
        if row.get(name) is not None:
            return f"{plain(row[name])} {unit} of {kind}"
    return kind


def _sharing(sharing: Mapping[str, Any]) -> Iterator[Chip]:
    strategy = sharing.get("Strategy")
    if strategy == "LendAndBorrow":
        limit = sharing.get("BorrowLimit")
        yield Chip("lends and borrows" if limit is None else f"lends, borrows {plain(limit)} %")
    elif strategy == "Lend":
        yield Chip("lends")
    elif strategy == "DontLend":
        yield Chip("keeps its own")


def _group_card(side: _Side, group: InstanceGroup, changes: _Changes, *, is_gone: bool) -> Card:
    mark, words = ("removed", ()) if is_gone else changes.of_group(group)
    row = instance_types.get(group.types[0]) if len(group.types) == 1 else None
    number = f"{group.count} {TIMES} " if group.count is not None else "" if group.is_scaled else f"? {TIMES} "
    several = f"one of {len(group.types)} types" if len(group.types) > 1 else ""
    kinds = several or "".join(group.types) or "instance type unknown"
    lines = _some(group.types) if several else []
    squares = None
    if row is not None and row.accelerator_count and group.count is not None:
        total = row.accelerator_count * group.count
        lines.append(f"{total:,} {TIMES} {_accelerator(row)}")
        squares = Squares(nodes=group.count, each=row.accelerator_count, is_neuron=row.is_neuron)
    elif row is not None and row.accelerator_count:
        lines.append(f"{row.accelerator_count} {TIMES} {_accelerator(row)} each")
    return Card(
        kind="nodes",
        title=group.name,
        subtitle=f"{number}{kinds}{', Karpenter scales' if group.is_scaled else ''}",
        lines=tuple(lines),
        squares=squares,
        is_group=True,
        nodes=group.count,
        accelerators=row.accelerator_count * group.count if row is not None and group.count is not None else None,
        chips=tuple(_group_chips(side, group, row)),
        mark=mark,
        changes=words,
        tooltip=f"instance group {group.name} of {group.cluster.name} in {group.cluster.stack}",
    )


def _some(names: Sequence[str]) -> list[str]:
    shown = list(names[:3])
    return [*shown, f"and {len(names) - 3} more"] if len(names) > 3 else shown


def _accelerator(row: instance_types.InstanceType) -> str:
    name = (row.accelerator_kind or "").partition("-")[2]
    shown = name.upper() if row.is_nvidia else name.capitalize()
    return f"{shown} {row.accelerator_memory_gib:g} GB" if row.accelerator_memory_gib else shown


def _group_chips(side: _Side, group: InstanceGroup, row: instance_types.InstanceType | None) -> Iterator[Chip]:
    yield Chip(group.capacity if group.capacity_kind != "unknown" else "capacity unknown")
    if group.is_restricted:
        yield Chip("restricted")
    if row is not None and row.efa_count and group.count:
        yield Chip(f"{row.efa_count * group.count:,} EFA")
    body = _body(side, group)
    if (threads := whole_number(body.get("ThreadsPerCore"))) is not None:
        yield Chip("1 thread per core" if threads == 1 else f"{threads} threads per core")
    if body.get("OnStartDeepHealthChecks"):
        yield Chip("deep health checks")
    if group.storage_gib:
        yield Chip(f"{group.storage_gib:,} GB EBS")
    if group.min_count:
        yield Chip(f"at least {group.min_count}")


def _body(side: _Side, group: InstanceGroup) -> dict[str, Any]:
    stated = group.cluster.properties.get("RestrictedInstanceGroups" if group.is_restricted else "InstanceGroups")
    raw = stated[group.index] if isinstance(stated, list) and group.index < len(stated) else None
    if not isinstance(raw, dict):
        return {}
    wanted = {name: raw[name] for name in ("ThreadsPerCore", "OnStartDeepHealthChecks") if name in raw}
    resolved = resolve(side.assembly, group.cluster.stack, wanted)
    return resolved if isinstance(resolved, dict) else {}


def _file_system_card(side: _Side, resource: Resource, changes: _Changes, repositories: Sequence[str]) -> Card:
    read = side.read(resource, "FileSystemType", "StorageCapacity", "StorageType", "LustreConfiguration")
    lustre = read.get("LustreConfiguration")
    lustre = lustre if isinstance(lustre, dict) else {}
    mark, words = changes.of(resource)
    size = whole_number(read.get("StorageCapacity"))
    medium = _plain_or(read.get("StorageType"), "SSD").replace("_", "-").lower()
    medium = medium.upper() if medium in ("ssd", "hdd") else medium.capitalize()
    throughput, total = (whole_number(lustre.get(name)) for name in ("PerUnitStorageThroughput", "ThroughputCapacity"))
    speed = f"{throughput:,} MB/s per TiB" if throughput else f"{total:,} MB/s" if total else ""
    first = " ".join(filter(None, [f"{size:,} GiB" if size is not None else "", medium]))
    chips = [Chip("EFA")] if lustre.get("EfaEnabled") is True else []
    if isinstance(deployment := lustre.get("DeploymentType"), str):
        chips.append(Chip(deployment.replace("_", " ").lower()))
    chips += (
        [Chip(f"backups {days} days")] if (days := whole_number(lustre.get("AutomaticBackupRetentionDays"))) else []
    )
    kind = {"LUSTRE": "Lustre"}.get(str(read.get("FileSystemType")), _plain_or(read.get("FileSystemType"), "FSx"))
    return Card(
        kind="storage",
        title=resource.name.removesuffix("/FileSystem"),
        subtitle=", ".join(filter(None, [f"FSx {kind}", first])),
        lines=tuple(filter(None, [speed, *repositories])),
        chips=tuple(chips),
        mark=mark,
        changes=words,
        tooltip=f"{resource.name} in {resource.stack}",
    )


def _repositories(after: _Side, before: _Side) -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = {}
    for side, resource in _both(after, before, "AWS::FSx::DataRepositoryAssociation"):
        read = side.read(resource, "DataRepositoryPath", "FileSystemPath")
        system = target(side.assembly, resource.stack, resource.properties.get("FileSystemId"))
        if system is not None:
            words = f"{plain(read.get('FileSystemPath'))} from {plain(read.get('DataRepositoryPath'))}"
            found.setdefault((system.stack, system.logical_id), []).append(words)
    return found


@dataclass
class _Place:
    """A subnet while the scene is built."""

    subnet: Subnet
    side: _Side
    mark: Mark
    cards: list[Card] = field(default_factory=list)


def _networks(after: _Side, before: _Side, changes: _Changes, capacity: Capacity) -> Iterator[Network]:
    places: dict[str, _Place] = {}
    for side in (after, before):
        for subnet in side.subnets:
            if subnet.part.key not in places:
                mark: Mark = changes.of(subnet.resource)[0] if subnet.resource is not None else ""
                places[subnet.part.key] = _Place(subnet, side, mark)
    across = _put_groups(after, before, changes, places)
    loose = _put_file_systems(after, before, changes, places)
    addresses = {block.subnet: block for block in capacity.blocks}
    public = _public(after) | _public(before)
    made = {
        part(side.assembly, each.stack, {"Ref": each.logical_id}).key: (side, each)
        for side, each in _both(after, before, VPC)
    }
    by_vpc: dict[str, list[_Place]] = {key: [] for key in made}
    for place in places.values():
        by_vpc.setdefault(place.subnet.vpc.key if place.subnet.vpc else "", []).append(place)
    # what is in several zones, or in an unknown one, belongs to the network of its subnets
    for key in {**across, **loose}:
        by_vpc.setdefault(key, [])
    for key, members in by_vpc.items():
        found = made.get(key)
        zones = tuple(_zones(members, addresses, public))
        spanning = (*across.get(key, ()), *loose.get(key, ()))
        endpoints = tuple(_endpoints(after, before, changes, key))
        if found is None and not zones and not spanning and not endpoints:
            continue
        if found is None:
            label = members[0].subnet.vpc.label if members and members[0].subnet.vpc else "VPC"
            yield Network(
                label=label, note="not in these templates", mark="", zones=zones, across=spanning, endpoints=endpoints
            )
            continue
        side, resource = found
        yield Network(
            label=f"VPC {resource.name.removesuffix('/Vpc')}",
            note=", ".join(_cidrs(side, key, resource)),
            mark=changes.of(resource)[0],
            zones=zones,
            across=spanning,
            endpoints=endpoints,
        )


def _cidrs(side: _Side, key: str, vpc: Resource) -> Iterator[str]:
    yield _plain_or(side.read(vpc, "CidrBlock").get("CidrBlock"), "block unknown")
    for resource in side.assembly.of_type("AWS::EC2::VPCCidrBlock"):
        if part(side.assembly, resource.stack, resource.properties.get("VpcId")).key == key:
            yield _plain_or(side.read(resource, "CidrBlock").get("CidrBlock"), "block unknown")


def _put_groups(after: _Side, before: _Side, changes: _Changes, places: Mapping[str, _Place]) -> dict[str, list[Card]]:
    """Put every group into its block; return those of several zones, or of no subnet, by their VPC."""
    across: dict[str, list[Card]] = {}
    there = {(each.cluster.stack, each.cluster.logical_id, each.name) for each in after.groups}
    gone = [each for each in before.groups if (each.cluster.stack, each.cluster.logical_id, each.name) not in there]
    for side, groups in ((after, after.groups), (before, gone)):
        for group in groups:
            card = _group_card(side, group, changes, is_gone=side is before)
            known = [places[each.key] for each in group.subnets if each.key in places]
            zones = {_zone_label(place.subnet) for place in known}
            if len(zones) == 1:
                known[0].cards.append(card)
                continue
            vpc = known[0].subnet.vpc if known else None
            if len(zones) > 1:
                card = replace(card, lines=(*card.lines, f"across {', '.join(sorted(zones))}"))
            across.setdefault(vpc.key if vpc else "", []).append(card)
    return across


def _put_file_systems(
    after: _Side, before: _Side, changes: _Changes, places: Mapping[str, _Place]
) -> dict[str, list[Card]]:
    """Put every file system into its first block; return those with an unknown subnet, by no VPC."""
    repositories = _repositories(after, before)
    by_system: dict[tuple[str, str], _Place] = {}
    for place in places.values():
        for use in place.subnet.of_kind("file system"):
            by_system.setdefault((use.resource.stack, use.resource.logical_id), place)
    loose: dict[str, list[Card]] = {}
    for side, resource in _both(after, before, FILE_SYSTEM):
        own = (resource.stack, resource.logical_id)
        card = _file_system_card(side, resource, changes, repositories.get(own, ()))
        home = by_system.get(own)
        if home is None:
            loose.setdefault("", []).append(card)
        else:
            home.cards.append(card)
    return loose


def _zones(members: Sequence[_Place], addresses: Mapping[str, BlockAddresses], public: set[str]) -> Iterator[Zone]:
    columns: dict[str, list[Block]] = {}
    for place in members:
        columns.setdefault(_zone_label(place.subnet), []).append(_block(place, addresses, public))
    for label, blocks in sorted(columns.items(), key=lambda item: item[0] == UNKNOWN_ZONE):
        yield Zone(label=label, blocks=tuple(sorted(blocks, key=lambda block: ROLES.index(block.role))))


def _zone_label(subnet: Subnet) -> str:
    # a zone that only a function gives (the Region's first one) has no name to show
    return subnet.zone_id or subnet.zone_name or UNKNOWN_ZONE


def _block(place: _Place, addresses: Mapping[str, BlockAddresses], public: set[str]) -> Block:
    subnet = place.subnet
    known = addresses.get(subnet.resource.name if subnet.resource is not None else subnet.part.label)
    return Block(
        role=_role(subnet, is_public=subnet.part.key in public),
        cidr=subnet.cidr or (subnet.part.label if subnet.resource is None else "block unknown"),
        used=known.used.after if known else None,
        usable=known.usable if known else None,
        mark=place.mark,
        chips=tuple(_uses(subnet.uses)),
        cards=tuple(place.cards),
        tooltip=subnet.part.label,
    )


def _role(subnet: Subnet, *, is_public: bool) -> str:
    kinds = {use.kind for use in subnet.uses}
    if "nodes" in kinds:
        return "nodes"
    if is_public or "NAT gateway" in kinds:
        return "public"
    if "EKS" in kinds:
        return "control plane"
    name = subnet.resource.name.rpartition("/")[2] if subnet.resource is not None else ""
    return "nodes" if name.startswith("NodeSubnet") or "file system" in kinds else "other"


def _uses(uses: Iterable[Use]) -> Iterator[Chip]:
    by_kind: dict[str, set[tuple[str, str]]] = {}
    for use in uses:
        by_kind.setdefault(use.kind, set()).add((use.resource.stack, use.resource.logical_id))
    if "NAT gateway" in by_kind:
        yield Chip(_counted(len(by_kind["NAT gateway"]), "NAT gateway"))
    if "EKS" in by_kind:
        yield Chip("EKS interfaces")
    if "function" in by_kind:
        yield Chip(_counted(len(by_kind["function"]), "function"))
    if "endpoint" in by_kind:
        yield Chip(_counted(len(by_kind["endpoint"]), "endpoint"))


def _public(side: _Side) -> set[str]:
    """Return the keys of the subnets whose route table has a route to an internet gateway."""
    gateways = set()
    for route in side.assembly.of_type("AWS::EC2::Route"):
        found = target(side.assembly, route.stack, route.properties.get("GatewayId"))
        if found is not None and found.type == "AWS::EC2::InternetGateway":
            gateways.add(part(side.assembly, route.stack, route.properties.get("RouteTableId")).key)
    return {
        part(side.assembly, each.stack, each.properties.get("SubnetId")).key
        for each in side.assembly.of_type("AWS::EC2::SubnetRouteTableAssociation")
        if gateways and part(side.assembly, each.stack, each.properties.get("RouteTableId")).key in gateways
    }


def _endpoints(after: _Side, before: _Side, changes: _Changes, vpc: str) -> Iterator[Chip]:
    for side, resource in _both(after, before, "AWS::EC2::VPCEndpoint"):
        if part(side.assembly, resource.stack, resource.properties.get("VpcId")).key != vpc:
            continue
        read = side.read(resource, "ServiceName", "VpcEndpointType")
        name = _plain_or(read.get("ServiceName"), resource.name)
        service = name.split(".", 3)[3] if name.startswith("com.amazonaws.") and name.count(".") >= 3 else name
        is_interface = read.get("VpcEndpointType") == "Interface"
        yield Chip(service if is_interface else f"{service} (gateway)", _chip_mark(changes, resource))


def _outside(after: _Side, before: _Side, changes: _Changes, capacity: Capacity) -> Iterator[Card]:
    for plan in capacity.plans:
        used, seats = plan.used.after, plan.seats
        yield Card(
            kind="nodes",
            title=f"Training plan {plan.plan.rpartition('/')[2]}",
            subtitle=f"{'?' if used is None else f'{used:g}'} {TIMES} {plan.instance_type}",
            lines=(f"of {seats:,}, recorded {plan.recorded_on}",) if seats is not None else ("instances not recorded",),
        )
    for side, resource in _both(after, before, "AWS::S3::Bucket"):
        name = side.read(resource, "BucketName").get("BucketName")
        mark, words = changes.of(resource)
        shown = resource.name.removesuffix("/Bucket")
        yield Card(
            kind="storage",
            title=shown,
            subtitle=_bucket(name),
            mark=mark,
            changes=words,
            tooltip=f"bucket {resource.name} in {resource.stack}",
        )


def _bucket(name: Any) -> str:
    if not isinstance(name, str):
        return "S3 bucket"
    # from the inside outwards, as functions contain each other
    while _PARTS.search(name):
        name = _PARTS.sub("…", name)
    return f"S3 bucket {name}"


_PARTS: Final = re.compile(r"\$?\{[^{}]*\}")
