"""What a source of any kind says of an environment, and the environment file that is made from it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from hyperpod_cdk.catalog import arns, hyperpod, instance_types, regions
from hyperpod_cdk.catalog.network import FEWEST_ZONES
from hyperpod_cdk.catalog.rules import joined, slug
from hyperpod_cdk.config.instance_group import DEFAULT_SCRIPT, DEFAULT_VOLUME_GIB
from hyperpod_cdk.importing.document import Log, Place

_LONGEST_NAME: Final = 30
"""Of a file system, in the file (config.storage.FILE_SYSTEM_NAME)."""

_HOME = re.compile(r"arn:aws[a-z-]*:[a-z0-9-]+:([a-z0-9-]*):([0-9]{12}):")


@dataclass(frozen=True, kw_only=True)
class Known:
    """What the user states in addition to the source.

    ``subnet_zones``: the AZ ID of each subnet. ``zones``: AZ IDs of a network to create, in addition to those of the
    source. ``is_takeover``: the file describes the existing cluster, so that the file's stacks can take it over.
    """

    name: str
    account: str | None = None
    region: str | None = None
    vpc_id: str | None = None
    eks_security_group_id: str | None = None
    kubernetes_version: str | None = None
    subnet_zones: Mapping[str, str] = field(default_factory=dict)
    zones: Sequence[str] = ()
    is_takeover: bool = False


@dataclass(kw_only=True)
class Group:
    """An instance group of a source, in our words; None if the source says nothing.

    ``at`` is its place there. ``zone`` is known, or follows from one of ``subnets``.
    """

    at: Place
    name: str
    types: list[str]
    is_flexible: bool = False
    count: int | None = None
    min_count: int | None = None
    zone: str | None = None
    subnets: Sequence[str] = ()
    capacity: str | None = None
    plan: str | None = None
    threads: int | None = None
    threads_at: Place | None = None
    checks: list[str] = field(default_factory=list)
    interface: str | None = None
    volume_gib: int | None = None
    volume_key: str | None = None
    labels: dict[str, str] = field(default_factory=dict)
    taints: list[dict[str, str]] = field(default_factory=list)
    image: dict[str, str] = field(default_factory=dict)
    patching: dict[str, Any] = field(default_factory=dict)
    on_create: str | None = None
    on_init_complete: str | None = None
    lustre: dict[str, int] | None = None
    more: dict[str, Any] = field(default_factory=dict)
    is_restricted: bool = False
    existing: dict[str, Any] = field(default_factory=dict)


@dataclass
class Draft:
    """An environment in the making. Each reader fills it; ``page`` gives the data of its file."""

    known: Known
    log: Log
    tags: dict[str, str] = field(default_factory=dict)
    network: dict[str, Any] = field(default_factory=dict)
    eks: dict[str, Any] = field(default_factory=dict)
    hyperpod: dict[str, Any] = field(default_factory=dict)
    sections: dict[str, Any] = field(default_factory=dict)
    groups: list[Group] = field(default_factory=list)
    subnets: list[tuple[str, Place]] = field(default_factory=list)
    addon_settings: dict[str, str] = field(default_factory=dict)
    """The own settings of each add-on of an existing cluster, in words; empty if it has none."""
    _account: str | None = None
    _region: str | None = None

    def home(self, arn: str, at: Place) -> None:
        """Take account and region from an ARN; another than the one already known is refused."""
        match = _HOME.match(arn)
        if match is not None:
            self._settle("region", match[1], at)
            self._settle("account", match[2], at)

    def stated_region(self, region: str, at: Place) -> None:
        """Take the region that a source names."""
        self._settle("region", region, at)

    def no_recovery(self, at: Place) -> None:
        """Turn off automatic node recovery, as the source does."""
        self.hyperpod["node_recovery"] = "none"
        said = "failed nodes are not replaced automatically"
        self.log.note("unsafe", said, at=at, path="hyperpod.node_recovery")

    def all_or_nothing(self, at: Place) -> None:
        """Create all nodes at once or none, which is the default of a source."""
        self.hyperpod["provisioning"] = "all_or_nothing"
        said = "NodeProvisioningMode is left out: one node without capacity rolls the whole cluster back"
        said += "; for Continuous, remove provisioning"
        self.log.note("unsafe", said, at=at, path="hyperpod.provisioning")

    def _settle(self, key: str, got: str, at: Place) -> None:
        wanted = getattr(self.known, key) or getattr(self, f"_{key}")
        if wanted and got and got != wanted:
            whose = f"--{key}" if getattr(self.known, key) else "an earlier value"
            self.log.refuse(at, f"is of {key} {got}, and {whose} says {wanted}; correct one of the two")
        elif got and not wanted:
            setattr(self, f"_{key}", got)

    @property
    def account(self) -> str | None:
        """The account, None if unknown."""
        return self.known.account or self._account

    @property
    def region(self) -> str | None:
        """The Region: of an option or an ARN, else that of the zones; None if unknown."""
        if stated := self.known.region or self._region:
            return stated
        zones = [*self.network.get("availability_zones", ()), *self.known.zones, *self.known.subnet_zones.values()]
        found = {regions.region_of_az_id(zone) for zone in (*zones, *(each.zone for each in self.groups)) if zone}
        return found.pop() if len(found) == 1 else None

    def page(self) -> dict[str, Any]:
        """Return the environment file as data, without unknown values, and note what is missing."""
        hyperpod_section = self._hyperpod()
        for key in ("account", "region"):
            if getattr(self, key) is None:
                self.log.note("missing", f"the source names none; give --{key}, or write it into the file", path=key)
        data: dict[str, Any] = {
            "name": self.known.name,
            "account": self.account,
            "region": self.region,
            "tags": self.tags,
            "network": self._network(),
            "eks": self._eks(),
            "hyperpod": hyperpod_section,
            **self.sections,
        }
        return {key: value for key, value in data.items() if value not in (None, {})}

    # the network

    def subnet(self, subnet_id: str, at: Place) -> None:
        """Note that a subnet is used, in the order of the source."""
        if subnet_id not in dict(self.subnets):
            self.subnets.append((subnet_id, at))

    @property
    def _is_existing(self) -> bool:
        return "existing" in self.network

    def _network(self) -> dict[str, Any]:
        if not self._is_existing:
            return self._made_network()
        existing: dict[str, Any] = {}
        vpc_id = self.network["existing"].get("vpc_id") or self.known.vpc_id
        if vpc_id:
            existing["vpc_id"] = vpc_id
        else:
            self.log.note(
                "missing",
                "the VPC of the subnets, which the source does not state; give --vpc-id, or write it into the file",
                path="network.existing.vpc_id",
            )
        zones: dict[str, str] = {}
        for subnet_id, at in self.subnets:
            zone = self.known.subnet_zones.get(subnet_id)
            if zone is None:
                self.log.note(
                    "missing",
                    f"the availability zone of {subnet_id}, which the source does not state; give --subnet"
                    f" {subnet_id}=AZ_ID, or write AZ_ID: {subnet_id} into the file ('aws ec2 describe-subnets"
                    f" --subnet-ids {subnet_id}' shows its AvailabilityZoneId)",
                    at=at,
                    path="network.existing.node_subnet_ids",
                )
            elif zone in zones:
                self.log.note(
                    "lost",
                    f"{subnet_id} is in {zone}, as {zones[zone]} is, and the file has one subnet for each zone",
                    at=at,
                )
            else:
                zones[zone] = subnet_id
        if zones:
            existing["node_subnet_ids"] = zones
        existing |= {key: value for key, value in self.network["existing"].items() if key != "vpc_id" and value}
        return {**{key: value for key, value in self.network.items() if key != "existing"}, "existing": existing}

    def _made_network(self) -> dict[str, Any]:
        zones = dict.fromkeys(self.network.get("availability_zones", ()))
        zones |= dict.fromkeys(group.zone for group in self.groups if group.zone)
        zones |= dict.fromkeys(self.known.zones)
        if len(zones) < FEWEST_ZONES:
            self.log.note(
                "missing",
                f"{FEWEST_ZONES} zones or more, because EKS needs them, and the source names"
                f" {', '.join(zones) or 'none'}; give --zone AZ_ID, or write it into the file",
                path="network.availability_zones",
            )
        named: dict[str, Any] = {"availability_zones": {zone: {} for zone in zones}} if zones else {}
        return {**self.network, **named}

    def _eks(self) -> dict[str, Any]:
        section = dict(self.eks)
        if self.known.kubernetes_version:
            section["kubernetes_version"] = self.known.kubernetes_version
        if "existing" not in section:
            return section
        existing = {key: value for key, value in section.pop("existing").items() if value}
        if "kubernetes_version" not in section:
            self.log.note(
                "missing",
                "the version of the existing cluster, which kubectl has to match and the source does not state; give"
                " --kubernetes-version, or write it into the file",
                path="eks.kubernetes_version",
            )
        if self.known.eks_security_group_id:
            existing["security_group_id"] = self.known.eks_security_group_id
        if "security_group_id" not in existing:
            name = existing.get("cluster_name", "NAME")
            self.log.note(
                "missing",
                "the security group that EKS created for the cluster, which the source does not state; give"
                f" --eks-security-group, or write it into the file ('aws eks describe-cluster --name {name}' shows it"
                " as clusterSecurityGroupId)",
                path="eks.existing.security_group_id",
            )
        return {**section, "existing": existing}

    def security_groups(self, groups: Sequence[str], at: Place) -> None:
        """Read the security groups of the nodes; the EKS cluster's is kept apart if it is known."""
        ours = self.known.eks_security_group_id
        own = [each for each in groups if each != ours] or list(groups)
        if len(own) == 1:
            self.network["existing"]["security_group_id"] = own[0]
            return
        self.log.note(
            "missing" if len(own) > 1 else "changed",
            f"which of {', '.join(own)} belongs to the nodes and which to the EKS cluster, which the source does not"
            " state; give --eks-security-group, or write the other one into the file"
            if own
            else "names none; one is created for the nodes",
            at=at,
            path="network.existing.security_group_id",
        )

    # the cluster

    def _hyperpod(self) -> dict[str, Any]:
        section = dict(self.hyperpod)
        name = section.pop("cluster_name", None)
        if name and name != self.known.name:
            section = {"cluster_name": name, **section}
        self._volume_keys()
        for key, is_restricted in (("instance_groups", False), ("restricted_instance_groups", True)):
            rows = [each for each in self.groups if each.is_restricted is is_restricted]
            if rows:
                section[key] = [self._group(each, f"hyperpod.{key}[{index}]") for index, each in enumerate(rows)]
        if "restricted_instance_groups" in section and "restricted_dependencies" not in section:
            self.log.note(
                "missing",
                "installed, once HyperPod's install_rig_dependencies.sh was run on the EKS cluster:"
                " docs/restricted-groups.md",
                path="hyperpod.restricted_dependencies",
            )
        return section

    def _volume_keys(self) -> None:
        keys = {group.volume_key for group in self.groups if not group.is_restricted}
        named = sorted(key for key in keys if key)
        if not named:
            return
        if len(keys) == 1 and arns.KMS_KEY_ARN.matches(named[0]):
            self.sections["encryption"] = {"node_volumes": named[0]}
            return
        why = (
            "the file has one key for all groups"
            if len(keys) > 1
            else "the file takes the ARN of a key, which 'aws kms describe-key' shows"
        )
        for group in self.groups:
            if group.volume_key:
                self.log.note(
                    "lost", f"the key {group.volume_key} of its volumes: {why}", at=group.at, path="encryption"
                )

    def _zone(self, group: Group, path: str) -> str | None:
        if group.zone:
            return group.zone
        zones = {self.known.subnet_zones.get(each) for each in group.subnets}
        known = sorted(zone for zone in zones if zone)
        if len(zones) == 1 and known:
            return known[0]
        if len(group.subnets) == 1:
            why = f"it follows from the zone of {group.subnets[0]}"
        elif group.subnets:
            where = f" ({', '.join(known)})" if known else ""
            why = (
                f"HyperPod puts its nodes into any of {', '.join(group.subnets)}{where}, and the file puts a group into"
                " one zone: choose it, because EFA traffic does not cross zones"
            )
        else:
            why = "the source names no subnet and no zone for it"
        self.log.note("missing", why, at=group.at, path=f"{path}.availability_zone_id")
        return None

    def _group(self, group: Group, path: str) -> dict[str, Any]:
        rows = [instance_types.get(name) for name in group.types]
        entry: dict[str, Any] = {"name": group.name}
        if group.is_flexible:
            entry["instance_types"] = group.types
        elif group.types:
            entry["instance_type"] = group.types[0]
        entry |= {"count": group.count, "min_count": group.min_count, "availability_zone_id": self._zone(group, path)}
        if group.plan:
            entry |= {"capacity": "training_plan", "training_plan_arn": group.plan}
            self.home(group.plan, group.at)
        elif group.capacity == "spot" or any(row is None or row.is_accelerated for row in rows):
            entry["capacity"] = group.capacity or "on_demand"
        if group.lustre:
            entry["lustre"] = group.lustre
        if group.checks:
            entry["deep_health_checks"] = group.checks
        entry["threads_per_core"] = self._threads(group, rows, path)
        entry["network_interface"] = group.interface
        entry |= group.more
        entry |= {"labels": group.labels, "taints": group.taints, "image": group.image, "patching": group.patching}
        entry |= {"on_create": None if group.on_create == DEFAULT_SCRIPT else group.on_create}
        entry |= {"on_init_complete": group.on_init_complete, "existing": group.existing}
        entry = {key: value for key, value in entry.items() if value not in (None, {}, [])}
        if group.volume_gib != DEFAULT_VOLUME_GIB:
            entry["volume_gib"] = group.volume_gib
        return entry

    def _threads(self, group: Group, rows: Sequence[instance_types.InstanceType | None], path: str) -> int | None:
        """Return the threads per core, None if the file's default is the same; a missing value means one."""
        threads = group.threads or 1
        # the file's default for a type that only the file will state is unknown here
        is_known = bool(rows) and None not in rows
        default = (2 if all(row and row.has_smt for row in rows) else 1) if is_known else None
        if threads == 1 and default == 2:
            types = ", ".join(group.types)
            halves = [f"{row.cores} of {row.vcpu} vCPUs" for row in rows if row is not None and row.cores]
            said = "1" if group.threads else "left out, which means 1"
            self.log.note(
                "unsafe",
                f"threads per core {said}: nodes of {types} show {joined(halves, last='or')}. HyperPod never changes it"
                " in a group that exists: for 2, remove threads_per_core and give the group a new name",
                at=group.threads_at or group.at,
                path=f"{path}.threads_per_core",
            )
        return None if threads == default else threads


def tags_of(pairs: Sequence[tuple[str, str, Place]], draft: Draft) -> None:
    """Read tags; those that the library sets itself are left out, and an empty value gets a note."""
    for key, value, at in pairs:
        if hyperpod.REQUIRED_TAGS.get(key) == value:
            continue
        if not value:
            draft.log.note("lost", f"the tag {key} has no value, which EKS add-ons refuse", at=at)
        else:
            draft.tags[key] = value


def name_in_file(told: str, *, otherwise: str, taken: Sequence[str]) -> str:
    """Return a file system's name: its name elsewhere if it is valid and not used yet, else its ID."""
    plain = slug(slug(told), room=_LONGEST_NAME)
    return plain if plain and plain[0].isalpha() and plain not in taken else otherwise
