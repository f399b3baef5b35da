"""Sections of the account file about existing resources that an environment uses: VPCs, EKS clusters, roles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Network, collapse_addresses
from itertools import chain, cycle
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from hyperpod_cdk.catalog import kubernetes, regions
from hyperpod_cdk.catalog.arns import arn_parts
from hyperpod_cdk_rehearsal.embedded.account_sections import Section
from hyperpod_cdk_rehearsal.embedded.published.network import ZONES_WITHOUT_CONTROL_PLANE

if TYPE_CHECKING:
    from hyperpod_cdk.config import Environment

DEFAULT_VPC_CIDR = "10.0.0.0/16"
KUBECTL_POLICIES = ("service-role/AWSLambdaVPCAccessExecutionRole",)
NODE_POLICIES = ("AmazonSageMakerClusterInstanceRolePolicy",)

WayOut = Literal["nat", "internet_gateway", "transit_gateway", "none"]


class ExistingSubnet(Section):
    """A subnet with its own route table. ``way_out`` is the target of its default route; a gateway makes it public.

    ``free_addresses`` None: all that EC2 does not reserve. ``s3_endpoint``: whether the VPC's S3 gateway endpoint is in
    its route table.
    """

    subnet_id: str
    availability_zone_id: str
    cidr: str
    way_out: WayOut = "nat"
    s3_endpoint: bool = True
    free_addresses: Annotated[int, Field(ge=0)] | None = None
    assigns_public_addresses: bool = False
    tags: Mapping[str, str] = {}


class ExistingSecurityGroup(Section):
    """A security group. Its rules: everything from itself, everything to itself, everything to any address."""

    group_id: str
    self_ingress: bool = True
    self_egress: bool = True
    open_egress: bool = True


class ExistingVpc(Section):
    """A VPC, the primary block first. ``interface_endpoints`` are the ends of service names: ``ecr.api``."""

    vpc_id: str
    cidrs: Annotated[tuple[str, ...], Field(min_length=1)] = (DEFAULT_VPC_CIDR,)
    dns_support: bool = True
    dns_hostnames: bool = True
    subnets: tuple[ExistingSubnet, ...] = ()
    security_groups: tuple[ExistingSecurityGroup, ...] = ()
    interface_endpoints: tuple[str, ...] = ()
    tags: Mapping[str, str] = {}


class ExistingCluster(Section):
    """An EKS cluster in subnets of ``existing.networks``.

    ``cluster_security_group_id`` names the group that EKS made: one of the VPC's ``security_groups``, or one that is
    not named there and is made now. ``security_group_ids`` are further groups of the control plane. ``addons`` maps
    add-ons to versions, empty text being EKS's default. ``kueue``: a Kueue of its own is installed by Helm;
    ``hyperpod_chart``: so is HyperPod's dependency chart, as AWS's set-up and its Terraform module install it.
    ``daemon_sets`` maps names in kube-system to container images, for what is no add-on. ``access_entries`` are the
    ARNs of roles that administer it.
    """

    name: str
    subnet_ids: Annotated[tuple[str, ...], Field(min_length=1)]
    cluster_security_group_id: str
    security_group_ids: tuple[str, ...] = ()
    kubernetes_version: str = kubernetes.DEFAULT
    status: Literal["CREATING", "ACTIVE", "DELETING", "FAILED", "UPDATING"] = "ACTIVE"
    authentication_mode: Literal["API", "API_AND_CONFIG_MAP", "CONFIG_MAP"] = "API"
    ip_family: Literal["ipv4", "ipv6"] = "ipv4"
    endpoint_public: bool = True
    endpoint_private: bool = True
    public_access_cidrs: tuple[str, ...] = ("0.0.0.0/0",)
    addons: Mapping[str, str] = {"vpc-cni": "", "kube-proxy": "", "coredns": "", "eks-pod-identity-agent": ""}
    kueue: bool = False
    hyperpod_chart: bool = False
    daemon_sets: Mapping[str, tuple[str, ...]] = {}
    oidc_provider_arn: str = ""
    access_entries: tuple[str, ...] = ()
    tags: Mapping[str, str] = {}


class ExistingRole(Section):
    """An IAM role that IAM itself holds, unlike those of ``iam_roles``: policies can be attached to it."""

    name: str
    path: str = "/"
    trusts: tuple[str, ...] = ()
    managed_policies: tuple[str, ...] = ()


class ExistingKmsKey(Section):
    """A KMS key under the ID that its ARN ends with.

    ``lets_in``: ``account`` leaves the decision to IAM policies, ``logs`` lets CloudWatch Logs use it for any log group
    of the account; anything else is an ARN that the policy names. ``spec`` is KMS's.
    """

    key_id: str
    state: Literal["Enabled", "Disabled", "PendingDeletion"] = "Enabled"
    spec: str = "SYMMETRIC_DEFAULT"
    lets_in: tuple[str, ...] = ("account", "logs")


class ExistingS3Bucket(Section):
    """An S3 bucket of the account in the region. ``kms_key``: ARN of its default key; empty: S3's own."""

    name: str
    kms_key: str = ""
    versioned: bool = True
    public: bool = False


class ExistingTopic(Section):
    """An SNS topic. ``kms_key``: ID, alias or ARN of the key of its messages; empty: they are not encrypted.

    ``publishers`` are the services that its policy lets publish; none: the policy is SNS's own, for its account alone.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,256}$")]
    kms_key: str = ""
    publishers: tuple[str, ...] = ()


BusName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,256}$")]


def topics_of(environment: Environment) -> Iterator[dict[str, Any]]:
    """Yield the topic for notifications, if it must exist already."""
    arn = environment.notify.sns_topic_arn if environment.notify else None
    if arn and _is_here(arn, environment):
        publishers = ("cloudwatch.amazonaws.com", "budgets.amazonaws.com")
        yield ExistingTopic(name=arn_parts(arn).name, publishers=publishers).model_dump(mode="json")


def slack_workspaces_of(environment: Environment) -> list[str]:
    """Return the Slack workspace for notifications, as if it was authorized."""
    slack = environment.notify.slack if environment.notify else None
    return [slack.workspace_id] if slack else []


def event_buses_of(environment: Environment) -> list[str]:
    """Return the event bus for notifications, if it must exist already."""
    arn = environment.notify.event_bus_arn if environment.notify else None
    return [arn_parts(arn).name] if arn and _is_here(arn, environment) else []


def kms_keys_of(environment: Environment) -> Iterator[dict[str, Any]]:
    """Yield the keys that an environment uses, except those of another account or Region."""
    # the configuration's models are only needed with an environment
    from hyperpod_cdk.config.rules.encryption import named_keys  # noqa: PLC0415

    for arn in dict.fromkeys(arn for _, arn in named_keys(environment) if _is_here(arn, environment)):
        yield ExistingKmsKey(key_id=arn_parts(arn).name).model_dump(mode="json")


def _is_here(arn: str, environment: Environment) -> bool:
    of = arn_parts(arn)
    return (of.region, of.account) == (environment.region, environment.account)


def buckets_of(environment: Environment) -> Iterator[dict[str, Any]]:
    """Yield the bucket for an environment's lifecycle scripts, if it must exist already."""
    bucket = environment.hyperpod.lifecycle.existing_bucket
    if bucket is not None:
        yield ExistingS3Bucket(name=bucket.name, kms_key=bucket.kms_key_arn or "").model_dump(mode="json")


class ExistingFileSystem(Section):
    """An FSx for Lustre file system in a subnet of ``existing.networks``, its servers in that VPC's security groups."""

    file_system_id: str
    mount_name: str
    subnet_id: str
    security_group_ids: tuple[str, ...] = ()
    capacity_gib: Annotated[int, Field(ge=1)] = 1200
    lifecycle: Literal["CREATING", "AVAILABLE", "FAILED", "DELETING", "UPDATING"] = "AVAILABLE"
    efa: bool = False


class ExistingBackup(Section):
    """A backup of an FSx for Lustre file system."""

    backup_id: str
    capacity_gib: Annotated[int, Field(ge=1)]
    lifecycle: Literal["AVAILABLE", "CREATING", "DELETED", "FAILED"] = "AVAILABLE"


def file_systems_of(environment: Environment) -> Iterator[dict[str, Any]]:
    """Yield the existing file systems that an environment mounts, with access from the nodes' security group."""
    network = environment.network.existing
    if network is None:
        return
    for system in environment.storage.lustre:
        subnet_id = network.node_subnet_ids.get(system.availability_zone_id)
        if system.existing is None or subnet_id is None:
            continue
        yield ExistingFileSystem(
            file_system_id=system.existing.file_system_id,
            mount_name=system.existing.mount_name,
            subnet_id=subnet_id,
            security_group_ids=(network.security_group_id,) if network.security_group_id else (),
            capacity_gib=system.existing.capacity_gib,
        ).model_dump(mode="json")


def backups_of(environment: Environment) -> Iterator[dict[str, Any]]:
    """Yield the backups that an environment restores."""
    for system in environment.storage.made_lustre:
        if system.from_backup is not None:
            backup = ExistingBackup(backup_id=system.from_backup, capacity_gib=system.volume_capacity_gib)
            yield backup.model_dump(mode="json")


def networks_of(environment: Environment) -> Iterator[dict[str, Any]]:
    """Yield the existing VPC that an environment uses, with everything it needs."""
    section = environment.network.existing
    if section is None:
        return
    cidrs = tuple(section.vpc_cidrs) or (DEFAULT_VPC_CIDR,)
    zones = _zones_of_subnets(environment)
    eks = environment.eks.existing
    groups = [section.security_group_id, eks.security_group_id if eks else None]
    yield ExistingVpc(
        vpc_id=section.vpc_id,
        cidrs=cidrs,
        subnets=tuple(
            ExistingSubnet(subnet_id=subnet_id, availability_zone_id=zone, cidr=cidr)
            for (subnet_id, zone), cidr in zip(zones.items(), _blocks(cidrs, len(zones)), strict=False)
        ),
        security_groups=tuple(ExistingSecurityGroup(group_id=each) for each in dict.fromkeys(groups) if each),
    ).model_dump(mode="json")


def clusters_of(environment: Environment) -> Iterator[dict[str, Any]]:
    """Yield the existing EKS cluster that an environment uses, with its stated add-ons."""
    eks, network = environment.eks.existing, environment.network.existing
    if eks is None or network is None:
        return
    made = ExistingCluster.model_fields["addons"].default
    yield ExistingCluster(
        name=eks.cluster_name,
        subnet_ids=tuple(network.control_plane_subnet_ids) or tuple(network.node_subnet_ids.values()),
        cluster_security_group_id=eks.security_group_id,
        kubernetes_version=environment.eks.kubernetes_version,
        addons={**made, **dict.fromkeys(eks.installed_addons, "")},
        oidc_provider_arn=eks.oidc_provider_arn or "",
        access_entries=() if eks.kubectl_role_arn is None else (eks.kubectl_role_arn,),
    ).model_dump(mode="json")


def roles_of(environment: Environment) -> Iterator[dict[str, Any]]:
    """Yield the role of an environment's kubectl, if it is given, and the roles that its groups keep."""
    eks = environment.eks.existing
    if eks is not None and eks.kubectl_role_arn is not None:
        yield _role(eks.kubectl_role_arn, trusts="lambda.amazonaws.com", managed_policies=KUBECTL_POLICIES)
    kept = (group.execution_role_arn for group in environment.hyperpod.instance_groups)
    for arn in dict.fromkeys(filter(None, kept)):
        yield _role(arn, trusts="sagemaker.amazonaws.com", managed_policies=NODE_POLICIES)


def _role(arn: str, *, trusts: str, managed_policies: tuple[str, ...]) -> dict[str, Any]:
    path, _, name = arn.partition(":role/")[2].rpartition("/")
    role = ExistingRole(
        name=name, path=f"/{path}/" if path else "/", trusts=(trusts,), managed_policies=managed_policies
    )
    return role.model_dump(mode="json")


def _zones_of_subnets(environment: Environment) -> dict[str, str]:
    """Return the zone of each subnet: from the file for node subnets; the others are spread over zones of EKS."""
    section = environment.network.existing
    if section is None:
        return {}
    zones = {subnet_id: zone for zone, subnet_id in section.node_subnet_ids.items()}
    known = dict.fromkeys(chain(section.node_subnet_ids, regions.known_az_ids(environment.region)))
    usable = cycle([zone for zone in known if zone not in ZONES_WITHOUT_CONTROL_PLANE])
    for subnet_id in section.control_plane_subnet_ids:
        if subnet_id not in zones:
            zones[subnet_id] = next(usable)
    return zones


def _blocks(cidrs: tuple[str, ...], count: int) -> Iterator[str]:
    """Divide blocks into at least ``count`` parts of the same, largest possible size."""
    blocks = list(collapse_addresses(map(IPv4Network, cidrs)))
    for prefix in range(min(block.prefixlen for block in blocks), 29):
        parts = [part for block in blocks if block.prefixlen <= prefix for part in block.subnets(new_prefix=prefix)]
        # EC2 does not allow subnets larger than /16
        if len(parts) >= count and prefix >= 16:
            yield from map(str, parts)
            return
    raise ValueError(f"{', '.join(cidrs)} cannot be divided into {count} subnets")
