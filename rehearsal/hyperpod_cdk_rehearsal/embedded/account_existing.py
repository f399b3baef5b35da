"""Sections of the account file about existing resources that an environment uses: VPCs, EKS clusters, roles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from hyperpod_cdk_rehearsal.embedded.account_sections import Section
from hyperpod_cdk_rehearsal.embedded.published import kubernetes

DEFAULT_VPC_CIDR = "10.0.0.0/16"

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


ImageName = Annotated[str, Field(pattern=r"^[0-9]{12}\.dkr[.-]ecr(-fips)?\.[a-z0-9-]+\.[a-z0-9.]+/[^:@]+:[^:@/]+$")]

BusName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,256}$")]


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
