"""The charges for resources of one type, if they follow from their properties."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from hyperpod_cdk.catalog import kubernetes
from hyperpod_cdk.catalog import prices as catalog
from hyperpod_cdk.catalog.prices import Kind
from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.review.figures.charge_lines import Charge, Lines, Supported, at, is_accelerated_type, name_of
from hyperpod_cdk.review.nouns import noun
from hyperpod_cdk.templates.assembly import Resource
from hyperpod_cdk.templates.groups import entries, whole_number
from hyperpod_cdk.templates.values import Reference, Unknown, plain

MACHINES: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "AWS::AutoScaling::AutoScalingGroup": (("DesiredCapacity",), ()),
    "AWS::EC2::Host": ((), ("InstanceType",)),
    "AWS::EC2::Instance": ((), ("InstanceType",)),
    "AWS::EKS::Nodegroup": (("ScalingConfig", "DesiredSize"), ("InstanceTypes",)),
    "AWS::SageMaker::NotebookInstance": ((), ("InstanceType",)),
}
"""Where types state how many machines they have (one, without a place), and of which type."""
_SUPPORT: Final = ("Version", "UpgradePolicy")
_LUSTRE: Final = ("StorageCapacity", "StorageType", "PerUnitStorageThroughput", "DeploymentType", "DriveCacheType")
_MINUTE: Final = 60
_FREE_TIER: Final = "the account's free tier is not counted"


def by_hour(lines: Lines, resource: Resource, kind: Kind) -> Charge:
    """Return the line of a type that is paid by the hour and has no price here, with the machines of its
    resource."""
    why = "not one of the prices that are recorded here"
    machines = MACHINES.get(resource.type)
    if machines is None:
        return lines.unpriced(resource, kind, "1", why)
    count_path, types_path = machines
    stated = [_below(lines, resource, path) for path in (count_path, types_path)]
    count = 1 if not count_path else whole_number(stated[0])
    names = [each for each in (stated[1] if isinstance(stated[1], list) else [stated[1]]) if isinstance(each, str)]
    names = names or _started_types(lines, resource)
    shown = joined(names, last="or") or f"machine of {noun(resource.type)} {resource.name}"
    if count_path and stated[0] is None:
        why += "; the template does not show how many"
    is_accelerated = not names or any(is_accelerated_type(each) for each in names)
    what = f"{'?' if count is None else count} x {shown}"
    return lines.unpriced(
        resource, "nodes", what, why, count=count, sold=shown, counted_in="instance", is_accelerated=is_accelerated
    )


def _started_types(lines: Lines, resource: Resource) -> list[str]:
    """Return the types of the machines that a launch template or configuration starts, or that override it."""
    mixed = at(lines.get(resource, "MixedInstancesPolicy"), "LaunchTemplate")
    overrides = [at(each, "InstanceType") for each in entries(at(mixed, "Overrides"))]
    if found := [each for each in overrides if isinstance(each, str)]:
        return found
    stated = lines.get(resource, "LaunchTemplate") or at(mixed, "LaunchTemplateSpecification")
    named = [at(stated, key) for key in ("LaunchTemplateId", "Id", "LaunchTemplateName", "Name")]
    for each in (*named, lines.get(resource, "LaunchConfigurationName")):
        template = lines.assembly.find(each.stack, each.logical_id) if isinstance(each, Reference) else None
        if template is not None:
            data = lines.get(template, "LaunchTemplateData")
            kind = at(data, "InstanceType") or lines.get(template, "InstanceType")
            return [kind] if isinstance(kind, str) else []
    return []


def _below(lines: Lines, resource: Resource, path: tuple[str, ...]) -> Any:
    value = lines.get(resource, path[0]) if path else None
    for step in path[1:]:
        value = at(value, step)
    return value


def _file_system(lines: Lines, resource: Resource) -> Iterator[Charge]:
    if lines.get(resource, "FileSystemType") != "LUSTRE":
        yield lines.unpriced(resource, "storage", "1", "only FSx for Lustre has prices here")
        return
    lustre = lines.get(resource, "LustreConfiguration")
    storage = lines.get(resource, "StorageType") or "SSD"
    deployment = plain(at(lustre, "DeploymentType")) or "SCRATCH_1"
    if storage == "INTELLIGENT_TIERING":
        yield from _tiering(lines, resource, lustre)
        return
    yield _by_capacity(lines, resource, deployment, storage, lustre)
    metadata = at(lustre, "MetadataConfiguration")
    if at(metadata, "Mode") == "USER_PROVISIONED":
        iops = plain(at(metadata, "Iops"))
        why = "it is not documented which of its metadata IOPS are included in the capacity"
        yield lines.unpriced(
            resource,
            "storage",
            f"{iops} metadata IOPS",
            why,
            part="metadata",
            count=whole_number(at(metadata, "Iops")),
            counted_in="IOPS",
            properties=("MetadataConfiguration",),
        )


def _by_capacity(lines: Lines, resource: Resource, deployment: str, storage: Any, lustre: Any) -> Charge:
    tier = whole_number(at(lustre, "PerUnitStorageThroughput"))
    capacity = whole_number(lines.get(resource, "StorageCapacity"))
    size = f"{'?' if capacity is None else capacity} GiB"
    is_scratch = deployment.startswith("SCRATCH")
    has_cache = at(lustre, "DriveCacheType") == "READ"
    if not is_scratch and (tier is None or storage not in ("SSD", "HDD") or has_cache):
        speed = "an unknown throughput" if tier is None else f"{tier} MB/s per TiB"
        why = "the template does not show its throughput or its storage type"
        return lines.unpriced(
            resource,
            "storage",
            size,
            "HDD with a read cache has no price here" if has_cache else why,
            count=capacity,
            sold=f"FSx for Lustre, {plain(storage)}{' with a read cache' if has_cache else ''} at {speed}",
            counted_in="GB",
            properties=_LUSTRE,
        )
    sku = "lustre.scratch" if is_scratch else f"lustre.{storage.lower()}.{tier}"
    throughput = "" if is_scratch else f" at {tier} MB/s per TiB"
    what = f"{size} of Lustre, {deployment} on {plain(storage)}{throughput}"
    # FSx sells the GiB of a file system as the price list's GB
    why = "the template does not show its capacity"
    return lines.priced(resource, "storage", sku, capacity, what, why=why, properties=_LUSTRE)


def _tiering(lines: Lines, resource: Resource, lustre: Any) -> Iterator[Charge]:
    throughput = whole_number(at(lustre, "ThroughputCapacity"))
    iops = whole_number(at(at(lustre, "MetadataConfiguration"), "Iops"))
    cache = at(lustre, "DataReadCacheConfiguration")
    sizing = at(cache, "SizingMode")
    size = whole_number(at(cache, "SizeGiB"))
    why = "the template does not show it"
    what = f"{'?' if throughput is None else throughput} MB/s of Lustre, Intelligent-Tiering"
    sku, by = "lustre.tiering.throughput", ("ThroughputCapacity", "StorageType")
    yield lines.priced(resource, "storage", sku, throughput, what, why=f"throughput: {why}", properties=by)
    what = f"{'?' if iops is None else iops} metadata IOPS"
    sku, by = "lustre.metadata_iops", ("MetadataConfiguration", "StorageType")
    yield lines.priced(resource, "storage", sku, iops, what, why=f"metadata IOPS: {why}", properties=by)
    if sizing not in (None, "NO_CACHE"):
        what = f"{'?' if size is None else size} GiB of SSD read cache"
        why = "the size of its read cache follows the throughput and is unknown here"
        by = ("DataReadCacheConfiguration", "StorageType", *(("ThroughputCapacity",) if size is None else ()))
        yield lines.priced(resource, "storage", "lustre.read_cache", size, what, why=why, properties=by)


def _eks(lines: Lines, resource: Resource) -> Iterator[Charge]:
    yield lines.priced(resource, "control plane", "eks.cluster", 1, "1 EKS cluster")
    tier = at(lines.get(resource, "ControlPlaneScalingConfig"), "Tier")
    if isinstance(tier, str) and tier != "standard":
        what, sku, by = (
            f"Provisioned Control Plane, {tier}",
            f"eks.provisioned.{tier}",
            ("ControlPlaneScalingConfig",),
        )
        if catalog.unit_of(sku):
            yield lines.priced(resource, "control plane", sku, 1, what, properties=by)
        else:
            why = "its price is unknown"
            yield lines.unpriced(resource, "control plane", what, why, part="tier", properties=by)
    version = lines.get(resource, "Version")
    # CloudFormation accepts a number for the text
    version = str(version) if isinstance(version, float) else version
    support = at(lines.get(resource, "UpgradePolicy"), "SupportType")
    row = kubernetes.get(version) if isinstance(version, str) else None
    ends = row.standard_support_ends if row else None
    if (row is None or ends is None) and support != "STANDARD":
        stated = plain(version) or "that the template does not state"
        why = f"it is unknown whether and from when on Kubernetes {stated} costs extended support"
        part = "extended support"
        yield lines.unpriced(resource, "control plane", part, why, part=part, properties=_SUPPORT)
    elif row is not None and ends is not None and support != "STANDARD" and ends <= kubernetes.AS_OF:
        last = row.extended_support_ends
        until = f"until {last}"
        if last is not None and last <= kubernetes.AS_OF:
            until = f"until {last}, when EKS upgrades the cluster automatically"
        note = f"since {ends}, {until} (dates as of {kubernetes.AS_OF})"
        what = f"extended support of Kubernetes {version}"
        sku = "eks.extended_support"
        yield lines.priced(resource, "control plane", sku, 1, what, note=note, properties=_SUPPORT)
    else:
        lines.versions.append(
            Supported(
                cluster=name_of(resource),
                region=lines.region(resource.stack),
                version=f"Kubernetes {plain(version)}" if version else "its version of Kubernetes",
                ends=ends,
                is_upgraded=support == "STANDARD",
            )
        )


def _elastic_ip(lines: Lines, resource: Resource) -> Iterator[Charge]:
    pool = next((name for name in ("PublicIpv4Pool", "IpamPoolId") if name in resource.properties), "")
    if pool:
        yield lines.unpriced(resource, "network", "1 public IPv4 address", f"its {pool} decides whether it costs money")
    else:
        yield lines.priced(resource, "network", "public_ipv4", 1, "1 public IPv4 address")


def _endpoint(lines: Lines, resource: Resource) -> Iterator[Charge]:
    kind = lines.get(resource, "VpcEndpointType") or "Gateway"
    if kind == "Gateway":
        return
    if kind != "Interface":
        why = "the template does not show its type" if isinstance(kind, Unknown) else f"no price for type {plain(kind)}"
        yield lines.unpriced(resource, "network", "1 endpoint", why)
        return
    zones = lines.get(resource, "SubnetIds")
    count = len(zones) if isinstance(zones, list) else None
    what = f"1 interface endpoint in {'?' if count is None else count} {'zone' if count == 1 else 'zones'}"
    why = "the template does not show its subnets"
    yield lines.priced(resource, "network", "interface_endpoint", count, what, why=why)


def _alarm(lines: Lines, resource: Resource) -> Iterator[Charge]:
    metrics = [each for each in entries(lines.get(resource, "Metrics")) if "MetricStat" in each]
    periods = [lines.get(resource, "Period"), *(at(each["MetricStat"], "Period") for each in metrics)]
    seconds = [number for period in periods if (number := whole_number(period)) is not None]
    sku = "cloudwatch.alarm.high_resolution" if seconds and min(seconds) < _MINUTE else "cloudwatch.alarm"
    count = max(1, len(metrics))
    what = "1 alarm" if count == 1 else f"1 alarm on {count} metrics"
    yield lines.priced(resource, "other", sku, count, what, note=_FREE_TIER)


def _dashboard(lines: Lines, resource: Resource) -> Iterator[Charge]:
    yield lines.priced(resource, "other", "cloudwatch.dashboard", 1, "1 dashboard", note=_FREE_TIER)


def _key(lines: Lines, resource: Resource) -> Iterator[Charge]:
    rotated = lines.get(resource, "EnableKeyRotation") is True
    note = "a rotation keeps the old key material, which may cost the same again" if rotated else ""
    yield lines.priced(resource, "other", "kms.key", 1, "1 KMS key", note=note)


def _nat(lines: Lines, resource: Resource) -> Iterator[Charge]:
    if lines.get(resource, "AvailabilityMode") in (None, "zonal"):
        yield lines.priced(resource, "network", "nat_gateway", 1, "1 NAT gateway")
        return
    why = "a regional NAT gateway is paid for in every zone that it serves, which the template does not show"
    yield lines.priced(resource, "network", "nat_gateway", None, "1 regional NAT gateway", why=why)


def _volume(lines: Lines, resource: Resource) -> Iterator[Charge]:
    if lines.get(resource, "VolumeType") != "gp3":
        yield lines.unpriced(resource, "volumes", "1 volume", "only gp3 volumes have prices here")
        return
    size = whole_number(lines.get(resource, "Size"))
    what = f"{'?' if size is None else size} GB of gp3 volume"
    yield lines.priced(resource, "volumes", "ebs.gp3", size, what, why="the template does not show its size")
    if {"Iops", "Throughput"} & resource.properties.keys():
        why = "the price of its IOPS and throughput above the included ones is unknown here"
        yield lines.unpriced(resource, "volumes", "IOPS and throughput", why, part="performance")


def _parameter(lines: Lines, resource: Resource) -> Iterator[Charge]:
    tier = lines.get(resource, "Tier")
    if tier not in (None, "Standard"):
        yield lines.unpriced(resource, "other", "1 parameter", f"no price for tier {plain(tier)}")


READERS: Final[Mapping[str, Callable[[Lines, Resource], Iterator[Charge]]]] = {
    "AWS::FSx::FileSystem": _file_system,
    "AWS::EKS::Cluster": _eks,
    "AWS::EC2::EIP": _elastic_ip,
    "AWS::EC2::VPCEndpoint": _endpoint,
    "AWS::EC2::NatGateway": _nat,
    "AWS::EC2::Volume": _volume,
    "AWS::CloudWatch::Alarm": _alarm,
    "AWS::CloudWatch::Dashboard": _dashboard,
    "AWS::KMS::Key": _key,
    "AWS::SSM::Parameter": _parameter,
}
"""What makes the lines of a type; of what is not here a line follows from how AWS bills the type."""
