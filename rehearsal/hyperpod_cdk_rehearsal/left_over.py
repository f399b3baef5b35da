"""Resources that a destroy left in the account: why they are retained, and their cost per month."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from hyperpod_cdk.catalog.prices import Prices
from hyperpod_cdk_rehearsal.inventory import Aws

Snapshot = Mapping[str, frozenset[str]]
"""The IDs of all resources, by kind."""

BY_USE = "as much as its contents"
UNKNOWN = "unknown"
FREE = "nothing"

_FILE_SYSTEM = "FSx file system"
_NETWORK = ("VPC", "subnet", "security group", "network interface")
_NEEDED = "the file system's network interfaces are in it or use it"
_ASKED = "network.retain asks for it: a file system that has left the file may stand in it"
_DATA = {
    "log group": ("logs are data", BY_USE),
    "bucket": ("objects are data", BY_USE),
    "Prometheus workspace": ("metrics are data", BY_USE),
    "Grafana workspace": ("dashboards are data", UNKNOWN),
}
_ASKED_BY_TEMPLATE = "its template retains it"
_TOLD_OTHERWISE = frozenset(
    {
        # reported as the kind of the listing that contains them
        *("AWS::FSx::FileSystem", "AWS::Logs::LogGroup", "AWS::S3::Bucket", "AWS::KMS::Key"),
        *("AWS::EC2::VPC", "AWS::EC2::Subnet", "AWS::EC2::SecurityGroup", "AWS::APS::Workspace"),
        *("AWS::Grafana::Workspace", "AWS::IAM::Role"),
        # parts of reported resources, or of a deleted EKS cluster
        *("AWS::EC2::SecurityGroupIngress", "AWS::EC2::SecurityGroupEgress", "AWS::EC2::VPCCidrBlock"),
        "AWS::FSx::DataRepositoryAssociation",
        *("Custom::AWSCDK-EKS-HelmChart", "Custom::AWSCDK-EKS-KubernetesResource"),
    }
)
"""Types that this library retains; an extension may retain any other type."""
_GONE = frozenset({"deleted", "deleting"})


@dataclass(frozen=True, kw_only=True)
class Kept:
    """One resource that is retained by design; ``monthly`` is an amount in US dollars or why it is unknown."""

    kind: str
    name: str
    why: str
    monthly: str


def snapshot(aws: Aws) -> Snapshot:
    """Return all resources of the kinds that an environment can create, from the APIs of their services."""
    return {kind: frozenset(listing(aws)) for kind, listing in _LISTINGS.items()}


def kept_and_unexpected(
    aws: Aws,
    before: Snapshot,
    *,
    region: str,
    prices: Prices,
    asked: Collection[str] = (),
    retained: Mapping[str, Collection[str]] | None = None,
) -> tuple[list[Kept], list[str]]:
    """Return the resources that are new since ``before``: retained by design, and not deleted with their stack.

    ``asked`` are the IDs of network resources that the environment file retains. ``retained`` are the IDs that stacks
    retained because of their templates, by type: resources of extensions may have types without a listing here.
    """
    retained = retained or {}
    by_template = {name for names in retained.values() for name in names}
    added = {kind: sorted(ids - before[kind]) for kind, ids in snapshot(aws).items()}
    systems = _described(aws, added[_FILE_SYSTEM])
    needed = _needed_by(aws, systems)
    kept: list[Kept] = []
    unexpected: list[str] = []
    for kind, names in added.items():
        for name in names:
            reason = _reason(kind, name, aws, systems, needed, region=region, prices=prices)
            if reason is None and kind in _NETWORK and name in asked:
                reason = _ASKED, FREE
            # a retained network is checked by the resources that need it
            if reason is None and kind not in _NETWORK and name in by_template:
                reason = _ASKED_BY_TEMPLATE, FREE if kind.startswith("IAM ") else UNKNOWN
            if reason is None:
                unexpected.append(f"{kind} {name}")
            else:
                kept.append(Kept(kind=kind, name=name, why=reason[0], monthly=reason[1]))
    listed = {each.name for each in kept}
    kept += [
        Kept(kind=type_, name=name, why=_ASKED_BY_TEMPLATE, monthly=UNKNOWN)
        for type_, names in sorted(retained.items())
        if type_ not in _TOLD_OTHERWISE
        for name in sorted(names)
        if name not in listed
    ]
    return kept, unexpected


def holders(aws: Aws, vpc_id: str) -> list[str]:
    """Return the resources that prevent EC2 from deleting a VPC: interfaces with their purpose, groups, endpoints."""
    ec2, here = aws.client("ec2"), [{"Name": "vpc-id", "Values": [vpc_id]}]
    endpoints = [each for each in ec2.describe_vpc_endpoints(Filters=here)["VpcEndpoints"] if _stands(each)]
    of_endpoints = {interface for each in endpoints for interface in each.get("NetworkInterfaceIds", [])}
    interfaces = [
        f"network interface {each['NetworkInterfaceId']} in {each['SubnetId']} ({each['Description'] or 'nameless'})"
        for each in ec2.describe_network_interfaces(Filters=here)["NetworkInterfaces"]
        if each["NetworkInterfaceId"] not in of_endpoints
    ]
    groups = [
        f"security group {each['GroupId']} ({each['GroupName']})"
        for each in ec2.describe_security_groups(Filters=here)["SecurityGroups"]
        if each["GroupName"] != "default"
    ]
    return [*(f"endpoint {each['VpcEndpointId']} ({each['ServiceName']})" for each in endpoints), *interfaces, *groups]


def _reason(
    kind: str,
    name: str,
    aws: Aws,
    systems: Mapping[str, Mapping[str, Any]],
    needed: frozenset[str],
    *,
    region: str,
    prices: Prices,
) -> tuple[str, str] | None:
    if kind == _FILE_SYSTEM:
        return "files are data", _file_system_price(systems[name], region, prices)
    if kind in _NETWORK:
        return (_NEEDED, FREE) if name in needed else None
    if kind == "KMS key":
        return "data that it has encrypted cannot be read without it", _dollars(prices, region, "kms.key", 1)
    if kind == "IAM role":
        return ("a Grafana workspace that stays reads with it", FREE) if name in _grafana_roles(aws) else None
    return _DATA.get(kind)


def _file_system_price(system: Mapping[str, Any], region: str, prices: Prices) -> str:
    lustre, size = system["LustreConfiguration"], system["StorageCapacity"]
    if system["StorageType"] != "SSD" or (lustre.get("MetadataConfiguration") or {}).get("Mode") == "USER_PROVISIONED":
        # has parts that are billed by use, or separately in the price list
        return UNKNOWN
    tier = lustre.get("PerUnitStorageThroughput")
    return _dollars(prices, region, "lustre.scratch" if tier is None else f"lustre.ssd.{tier}", size)


def _dollars(prices: Prices, region: str, sku: str, amount: int) -> str:
    price = prices.find(region, sku)
    if price is None:
        return UNKNOWN
    total = (price.monthly * amount).quantize(Decimal("0.01"))
    return f"${total:,}" + (f" ({price.doubt})" if price.doubt else "")


def _described(aws: Aws, ids: list[str]) -> dict[str, Mapping[str, Any]]:
    if not ids:
        return {}
    found = aws.client("fsx").describe_file_systems(FileSystemIds=ids)["FileSystems"]
    return {each["FileSystemId"]: each for each in found}


def _needed_by(aws: Aws, systems: Mapping[str, Mapping[str, Any]]) -> frozenset[str]:
    """Return the interfaces of file systems with their subnets and groups, which must be deleted before the VPC."""
    ids = [interface for each in systems.values() for interface in each["NetworkInterfaceIds"]]
    if not ids:
        return frozenset()
    found = aws.client("ec2").describe_network_interfaces(NetworkInterfaceIds=ids)["NetworkInterfaces"]
    return frozenset(
        name
        for each in found
        for name in (
            each["NetworkInterfaceId"],
            each["SubnetId"],
            each["VpcId"],
            *(group["GroupId"] for group in each["Groups"]),
        )
    )


def _grafana_roles(aws: Aws) -> set[str]:
    grafana = aws.client("grafana")
    described = [grafana.describe_workspace(workspaceId=each)["workspace"] for each in _grafana(aws)]
    return {each.get("workspaceRoleArn", "").rsplit("/", 1)[-1] for each in described}


def _stands(row: Mapping[str, Any]) -> bool:
    return str(row["State"]).lower() not in _GONE


def _pages(aws: Aws, service: str, operation: str, key: str, **arguments: Any) -> list[Any]:
    client = aws.client(service)
    if client.can_paginate(operation):
        return [row for page in client.get_paginator(operation).paginate(**arguments) for row in page.get(key, [])]
    rows: list[Any] = getattr(client, operation)(**arguments).get(key, [])
    return rows


def _rows(service: str, operation: str, key: str, name: str, **arguments: Any) -> Callable[[Aws], list[str]]:
    """Return a listing of one operation: ``name`` is the member that identifies a row, empty if the row is a name."""

    def listing(aws: Aws) -> list[str]:
        return [str(row[name] if name else row) for row in _pages(aws, service, operation, key, **arguments)]

    return listing


def _groups(aws: Aws) -> list[str]:
    rows = _pages(aws, "ec2", "describe_security_groups", "SecurityGroups")
    return [row["GroupId"] for row in rows if row["GroupName"] != "default"]


def _standing(operation: str, key: str, name: str) -> Callable[[Aws], list[str]]:
    def listing(aws: Aws) -> list[str]:
        return [row[name] for row in _pages(aws, "ec2", operation, key) if _stands(row)]

    return listing


def _route_tables(aws: Aws) -> list[str]:
    rows = _pages(aws, "ec2", "describe_route_tables", "RouteTables")
    return [row["RouteTableId"] for row in rows if not any(link.get("Main") for link in row["Associations"])]


def _inside_eks(operation: str, key: str, name: str) -> Callable[[Aws], list[str]]:
    """Return a listing of resources in every EKS cluster, prefixed with the cluster's name."""

    def listing(aws: Aws) -> list[str]:
        clusters: Iterable[str] = _pages(aws, "eks", "list_clusters", "clusters")
        return [
            f"{cluster}/{row[name] if name else row}"
            for cluster in clusters
            for row in _pages(aws, "eks", operation, key, clusterName=cluster)
        ]

    return listing


def _grafana(aws: Aws) -> list[str]:
    return [row["id"] for row in _pages(aws, "grafana", "list_workspaces", "workspaces")]


_LISTINGS: Mapping[str, Callable[[Aws], list[str]]] = {
    _FILE_SYSTEM: _rows("fsx", "describe_file_systems", "FileSystems", "FileSystemId"),
    "VPC": _rows("ec2", "describe_vpcs", "Vpcs", "VpcId"),
    "subnet": _rows("ec2", "describe_subnets", "Subnets", "SubnetId"),
    "security group": _groups,
    "network interface": _rows("ec2", "describe_network_interfaces", "NetworkInterfaces", "NetworkInterfaceId"),
    "route table": _route_tables,
    "NAT gateway": _standing("describe_nat_gateways", "NatGateways", "NatGatewayId"),
    "VPC endpoint": _standing("describe_vpc_endpoints", "VpcEndpoints", "VpcEndpointId"),
    "internet gateway": _rows("ec2", "describe_internet_gateways", "InternetGateways", "InternetGatewayId"),
    "Elastic IP address": _rows("ec2", "describe_addresses", "Addresses", "AllocationId"),
    "EKS cluster": _rows("eks", "list_clusters", "clusters", ""),
    "EKS add-on": _inside_eks("list_addons", "addons", ""),
    "EKS access entry": _inside_eks("list_access_entries", "accessEntries", ""),
    "EKS pod identity association": _inside_eks("list_pod_identity_associations", "associations", "associationId"),
    "HyperPod cluster": _rows("sagemaker", "list_clusters", "ClusterSummaries", "ClusterName"),
    "Lambda function": _rows("lambda", "list_functions", "Functions", "FunctionName"),
    "IAM role": _rows("iam", "list_roles", "Roles", "RoleName"),
    "IAM policy": _rows("iam", "list_policies", "Policies", "Arn", Scope="Local"),
    "IAM OIDC provider": _rows("iam", "list_open_id_connect_providers", "OpenIDConnectProviderList", "Arn"),
    "EventBridge rule": _rows("events", "list_rules", "Rules", "Name"),
    "CloudWatch alarm": _rows("cloudwatch", "describe_alarms", "MetricAlarms", "AlarmName"),
    "CloudWatch dashboard": _rows("cloudwatch", "list_dashboards", "DashboardEntries", "DashboardName"),
    "Logs resource policy": _rows("logs", "describe_resource_policies", "resourcePolicies", "policyName"),
    "log group": _rows("logs", "describe_log_groups", "logGroups", "logGroupName"),
    "bucket": _rows("s3", "list_buckets", "Buckets", "Name"),
    "KMS key": _rows("kms", "list_keys", "Keys", "KeyId"),
    "Prometheus workspace": _rows("amp", "list_workspaces", "workspaces", "workspaceId"),
    "Grafana workspace": _grafana,
}
