"""Reads the existing resources after a deployment with boto3, without relying on the template."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol


class Aws(Protocol):
    """Provides boto3 clients."""

    def client(self, service: str) -> Any:
        """Return the client of one service."""
        ...


@dataclass(frozen=True, kw_only=True)
class Subnet:
    """One subnet, by the ID of its Availability Zone."""

    subnet_id: str
    name: str
    availability_zone_id: str
    cidr: str


@dataclass(frozen=True, kw_only=True)
class Group:
    """One instance group with its current and target number of nodes."""

    name: str
    instance_types: str
    current: int
    target: int
    status: str
    availability_zone_ids: str
    training_plan: str


@dataclass(frozen=True, kw_only=True)
class MissingNodes:
    """Nodes that an instance group wants and does not have, all for one reason.

    ``is_failure``: the account file does not state under ``nodes`` that they stay away, nor do they come later.
    """

    group: str
    count: int
    reason: str
    is_failure: bool

    def __str__(self) -> str:
        """Return group, number and reason."""
        nodes = "1 node" if self.count == 1 else f"{self.count} nodes"
        return f"instance group {self.group}: {nodes} not Running: {self.reason}"


@dataclass(frozen=True, kw_only=True)
class Quota:
    """One team's compute quota."""

    team: str
    resources: str
    weight: int
    sharing: str
    preemption: str
    status: str


@dataclass(kw_only=True)
class Inventory:
    """Everything that was found, with the values of the APIs."""

    vpc_id: str = ""
    vpc_cidrs: list[str] = field(default_factory=list)
    subnets: list[Subnet] = field(default_factory=list)
    nat_gateways: int = 0
    endpoints: list[str] = field(default_factory=list)
    eks: str = ""
    kubernetes_version: str = ""
    eks_status: str = ""
    addons: dict[str, str] = field(default_factory=dict)
    access_entries: dict[str, str] = field(default_factory=dict)
    cluster: str = ""
    cluster_status: str = ""
    cluster_settings: str = ""
    groups: list[Group] = field(default_factory=list)
    running_nodes: int = 0
    scripts: list[str] = field(default_factory=list)
    file_systems: list[str] = field(default_factory=list)
    policy: str = ""
    quotas: list[Quota] = field(default_factory=list)

    @property
    def missing_nodes(self) -> list[str]:
        """Return the groups with fewer nodes than their target, as ``h100 0 of 2``."""
        return [f"{each.name} {each.current} of {each.target}" for each in self.groups if each.current < each.target]

    def as_dict(self) -> dict[str, Any]:
        """Return the inventory as plain data."""
        return asdict(self)


def read_inventory(
    aws: Aws, stacks: Iterable[str], *, existing_vpc_id: str | None = None, existing_eks_cluster: str | None = None
) -> Inventory:
    """Read everything that ``stacks`` created, by the physical IDs in CloudFormation.

    Existing resources that the environment uses are in no stack and are therefore passed in.
    """
    ids = _physical_ids(aws, stacks)
    found = Inventory()
    for vpc in [*ids["AWS::EC2::VPC"], *([existing_vpc_id] if existing_vpc_id else [])]:
        _network(aws, vpc, found)
    for name in [*ids["AWS::EKS::Cluster"], *([existing_eks_cluster] if existing_eks_cluster else [])]:
        _eks(aws, name, found)
    for arn in ids["AWS::SageMaker::Cluster"]:
        _cluster(aws, arn, found)
        _governance(aws, arn, found)
    if ids["AWS::FSx::FileSystem"]:
        _lustre(aws, ids["AWS::FSx::FileSystem"], found)
    return found


def _physical_ids(aws: Aws, stacks: Iterable[str]) -> dict[str, list[str]]:
    ids: dict[str, list[str]] = defaultdict(list)
    cloudformation = aws.client("cloudformation")
    for stack in stacks:
        for page in cloudformation.get_paginator("list_stack_resources").paginate(StackName=stack):
            for resource in page["StackResourceSummaries"]:
                if not resource["ResourceStatus"].startswith("DELETE"):
                    ids[resource["ResourceType"]].append(resource.get("PhysicalResourceId", ""))
    return ids


def _network(aws: Aws, vpc_id: str, found: Inventory) -> None:
    ec2 = aws.client("ec2")
    here = [{"Name": "vpc-id", "Values": [vpc_id]}]
    vpc = ec2.describe_vpcs(VpcIds=[vpc_id])["Vpcs"][0]
    found.vpc_id = vpc_id
    associated = [b for b in vpc["CidrBlockAssociationSet"] if b["CidrBlockState"]["State"] == "associated"]
    secondary = sorted(block["CidrBlock"] for block in associated if block["CidrBlock"] != vpc["CidrBlock"])
    found.vpc_cidrs = [vpc["CidrBlock"], *secondary]
    found.subnets = sorted(
        (
            Subnet(
                subnet_id=subnet["SubnetId"],
                name=_tag(subnet, "Name").rsplit("/", 1)[-1],
                availability_zone_id=subnet["AvailabilityZoneId"],
                cidr=subnet["CidrBlock"],
            )
            for subnet in ec2.describe_subnets(Filters=here)["Subnets"]
        ),
        key=lambda s: (s.availability_zone_id, s.cidr),
    )
    gateways = ec2.describe_nat_gateways(Filters=here)["NatGateways"]
    found.nat_gateways = sum(gateway["State"] == "available" for gateway in gateways)
    found.endpoints = [
        f"{endpoint['ServiceName'].rsplit('.', 1)[-1]} ({endpoint['VpcEndpointType'].lower()})"
        for endpoint in ec2.describe_vpc_endpoints(Filters=here)["VpcEndpoints"]
    ]


def _eks(aws: Aws, name: str, found: Inventory) -> None:
    eks = aws.client("eks")
    cluster = eks.describe_cluster(name=name)["cluster"]
    found.eks, found.kubernetes_version, found.eks_status = name, cluster["version"], cluster["status"]
    for addon in eks.list_addons(clusterName=name)["addons"]:
        described = eks.describe_addon(clusterName=name, addonName=addon)["addon"]
        found.addons[addon] = f"{described['addonVersion']} {described['status']}"
    for principal in eks.list_access_entries(clusterName=name)["accessEntries"]:
        entry = eks.describe_access_entry(clusterName=name, principalArn=principal)["accessEntry"]
        found.access_entries[principal.rsplit("/", 1)[-1]] = entry["type"]


def _cluster(aws: Aws, arn: str, found: Inventory) -> None:
    sagemaker = aws.client("sagemaker")
    cluster = sagemaker.describe_cluster(ClusterName=arn)
    found.cluster, found.cluster_status = cluster["ClusterName"], cluster["ClusterStatus"]
    found.cluster_settings = (
        f"node recovery {cluster.get('NodeRecovery', 'not set')}, "
        f"provisioning {cluster.get('NodeProvisioningMode', 'all or nothing')}"
    )
    groups = (*cluster["InstanceGroups"], *cluster.get("RestrictedInstanceGroups", ()))
    found.groups = [_group(group, found) for group in groups]
    nodes = sagemaker.list_cluster_nodes(ClusterName=arn)["ClusterNodeSummaries"]
    found.running_nodes = sum(node["InstanceStatus"]["Status"] == "Running" for node in nodes)
    sources = sorted({group["LifeCycleConfig"]["SourceS3Uri"] for group in cluster["InstanceGroups"]})
    found.scripts = [script for source in sources for script in _scripts(aws, source)]


def _group(group: dict[str, Any], found: Inventory) -> Group:
    types = group.get("InstanceRequirements", {}).get("DesiredInstanceTypes") or [group["InstanceType"]]
    return Group(
        name=group["InstanceGroupName"],
        instance_types=", ".join(types),
        current=group["CurrentCount"],
        target=group["TargetCount"],
        status=group.get("Status", ""),
        availability_zone_ids=_zones(found, group.get("OverrideVpcConfig", {}).get("Subnets", [])),
        training_plan=group.get("TrainingPlanArn", "").rsplit("/", 1)[-1],
    )


def _zones(found: Inventory, subnet_ids: list[str]) -> str:
    """Return the zones of subnets; a subnet of another network is shown by its ID."""
    zones = {subnet.subnet_id: subnet.availability_zone_id for subnet in found.subnets}
    return ", ".join(zones.get(each, each) for each in subnet_ids)


def _scripts(aws: Aws, source: str) -> list[str]:
    bucket, _, prefix = source.removeprefix("s3://").partition("/")
    listed = aws.client("s3").list_objects_v2(Bucket=bucket, Prefix=prefix)
    return [f"s3://{bucket}/{item['Key']}" for item in listed.get("Contents", [])]


def _lustre(aws: Aws, ids: list[str], found: Inventory) -> None:
    for system in aws.client("fsx").describe_file_systems(FileSystemIds=ids)["FileSystems"]:
        lustre = system["LustreConfiguration"]
        zone = _zones(found, system["SubnetIds"])
        # Intelligent-Tiering has no capacity, scratch no tier
        size = [f"{system['StorageCapacity']} GiB"] if system.get("StorageCapacity") else []
        if lustre.get("PerUnitStorageThroughput"):
            size.append(f"{lustre['PerUnitStorageThroughput']} MB/s/TiB")
        if lustre.get("ThroughputCapacity"):
            size.append(f"{lustre['ThroughputCapacity']} MB/s")
        found.file_systems.append(
            f"{system['FileSystemId']} {lustre['DeploymentType']} {', '.join(size)}, {zone}, {system['Lifecycle']}"
        )


def _governance(aws: Aws, cluster_arn: str, found: Inventory) -> None:
    sagemaker = aws.client("sagemaker")
    for each in sagemaker.list_cluster_scheduler_configs(ClusterArn=cluster_arn)["ClusterSchedulerConfigSummaries"]:
        described = sagemaker.describe_cluster_scheduler_config(
            ClusterSchedulerConfigId=each["ClusterSchedulerConfigId"]
        )
        config = described["SchedulerConfig"]
        classes = ", ".join(f"{c['Name']} {c['Weight']}" for c in config.get("PriorityClasses", []))
        found.policy = (
            f"{described['Name']} {described['Status']}: priority classes {classes or 'none'}; "
            f"fair share {config.get('FairShare', 'not set')}, "
            f"idle resource sharing {config.get('IdleResourceSharing', 'not set')}"
        )
    for each in sagemaker.list_compute_quotas(ClusterArn=cluster_arn)["ComputeQuotaSummaries"]:
        described = sagemaker.describe_compute_quota(ComputeQuotaId=each["ComputeQuotaId"])
        found.quotas.append(_quota(described))


def _quota(described: dict[str, Any]) -> Quota:
    config = described["ComputeQuotaConfig"]
    sharing = config.get("ResourceSharingConfig", {})
    limit = sharing.get("BorrowLimit")
    return Quota(
        team=described["ComputeQuotaTarget"]["TeamName"],
        resources=", ".join(_amount(resource) for resource in config["ComputeQuotaResources"]),
        weight=described["ComputeQuotaTarget"].get("FairShareWeight", 0),
        sharing=sharing.get("Strategy", "") + (f" {limit} %" if limit is not None else ""),
        preemption=config.get("PreemptTeamTasks", ""),
        status=described["Status"],
    )


def _amount(resource: dict[str, Any]) -> str:
    partition = resource.get("AcceleratorPartition")
    if "Count" in resource:
        amount = f"{resource['Count']}"
    elif partition is not None:
        amount = f"{partition['Count']} {partition['Type']}"
    elif resource.get("Accelerators"):
        amount = f"{resource['Accelerators']} accelerators"
    else:
        amount = f"{resource['VCpu']:g} vCPU"
    return f"{amount} {'x' if 'Count' in resource else 'of'} {resource['InstanceType']}"


def _tag(resource: dict[str, Any], key: str) -> str:
    return next((tag["Value"] for tag in resource.get("Tags", []) if tag["Key"] == key), "")
