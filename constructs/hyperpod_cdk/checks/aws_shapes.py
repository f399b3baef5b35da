"""Turns AWS's API answers into the answers of ``answers.py``. Pure: gets parsed answers, does not import boto3.

Shapes are those of botocore's service models. A member that a check relies on and that AWS always gives is read with
``[]``, so that an answer without it is an error (KeyError) and never a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from hyperpod_cdk.catalog.regions import REGION_REGEX
from hyperpod_cdk.checks.answers import (
    AddonVersions,
    BackupAnswer,
    Decision,
    EksClusterAnswer,
    Endpoint,
    HyperPodClusterAnswer,
    ImageAnswer,
    InstalledAddon,
    InstancesInCluster,
    KmsKeyAnswer,
    KubernetesVersionAnswer,
    LustreAnswer,
    LustreChange,
    NotAnswered,
    Offering,
    QuotaRequest,
    ReservedCapacity,
    RoleAnswer,
    Route,
    RouteTable,
    SecurityGroupAnswer,
    SecurityGroupRule,
    StackAnswer,
    SubnetAnswer,
    TrainingPlan,
    VpcAnswer,
    Zone,
)
from hyperpod_cdk.handlers.quota_gate.reading import groups_of, is_tiered

Answer = Mapping[str, Any]

ROUTE_TARGETS = (
    "GatewayId",
    "NatGatewayId",
    "TransitGatewayId",
    "VpcPeeringConnectionId",
    "NetworkInterfaceId",
    "InstanceId",
    "EgressOnlyInternetGatewayId",
    "LocalGatewayId",
    "CarrierGatewayId",
    "CoreNetworkArn",
    "OdbNetworkArn",
    "IpAddress",
)
"""Members of a route that name its target. A route to an instance has its interface too, which comes first."""

_DESTINATIONS = ("DestinationCidrBlock", "DestinationIpv6CidrBlock", "DestinationPrefixListId")
_LIVE_BLOCKS = ("associating", "associated")
_REGION = re.compile(rf"\.{REGION_REGEX}\d*\.")


def quota_request(row: Answer) -> QuotaRequest:
    """Read one row of ListRequestedServiceQuotaChangeHistoryByQuota, or what RequestServiceQuotaIncrease made."""
    return QuotaRequest(
        request_id=row["Id"],
        service=row["ServiceCode"],
        code=row["QuotaCode"],
        name=row.get("QuotaName", ""),
        desired=float(row["DesiredValue"]),
        status=row["Status"],
        created=_utc(row.get("Created")),
        case_id=row.get("CaseId", ""),
    )


def training_plan(answer: Answer) -> TrainingPlan:
    """Read DescribeTrainingPlan, in which only name, ARN and status are certain: a failed purchase has no more."""
    return TrainingPlan(
        arn=answer["TrainingPlanArn"],
        name=answer["TrainingPlanName"],
        status=answer["Status"],
        status_message=answer.get("StatusMessage", ""),
        total=answer.get("TotalInstanceCount"),
        available=answer.get("AvailableInstanceCount"),
        in_use=answer.get("InUseInstanceCount"),
        unhealthy=answer.get("UnhealthyInstanceCount"),
        target_resources=tuple(answer.get("TargetResources", ())),
        blocks=tuple(
            ReservedCapacity(
                instance_type=block["InstanceType"],
                count=block["TotalInstanceCount"],
                status=block["Status"],
                availability_zone=block.get("AvailabilityZone", ""),
                availability_zone_id=block.get("AvailabilityZoneId", ""),
                start=_utc(block.get("StartTime")),
                end=_utc(block.get("EndTime")),
            )
            for block in answer.get("ReservedCapacitySummaries", ())
        ),
        start=_utc(answer.get("StartTime")),
        end=_utc(answer.get("EndTime")),
        upfront_fee=answer.get("UpfrontFee", ""),
        currency=answer.get("CurrencyCode", ""),
    )


def offering(row: Answer, *, instance_type: str, count: int) -> Offering:
    """Read one row of SearchTrainingPlanOfferings, asked for ``count`` instances of ``instance_type``."""
    return Offering(
        offering_id=row["TrainingPlanOfferingId"],
        instance_type=instance_type,
        count=count,
        duration_hours=row.get("DurationHours"),
        upfront_fee=row.get("UpfrontFee", ""),
        currency=row.get("CurrencyCode", ""),
        target_resources=tuple(row["TargetResources"]),
        blocks=tuple(
            ReservedCapacity(
                instance_type=block["InstanceType"],
                count=block["InstanceCount"],
                status="",
                availability_zone=block.get("AvailabilityZone", ""),
                availability_zone_id="",
                start=_utc(block.get("StartTime")),
                end=_utc(block.get("EndTime")),
            )
            for block in row.get("ReservedCapacityOfferings", ())
        ),
    )


def hyperpod_cluster(name: str, answer: Answer) -> HyperPodClusterAnswer:
    """Read DescribeCluster; restricted groups have instances like the others."""
    # a cluster on Slurm need not have one
    orchestrator = answer.get("Orchestrator", {})
    return HyperPodClusterAnswer(
        name=name,
        arn=answer["ClusterArn"],
        status=answer["ClusterStatus"],
        eks_cluster_arn=orchestrator["Eks"]["ClusterArn"] if "Eks" in orchestrator else "",
        autoscaled=answer.get("AutoScaling", {}).get("Mode") == "Enable",
        checkpoints_in_memory=answer.get("TieredStorageConfig", {}).get("Mode") == "Enable",
        groups=tuple(
            InstancesInCluster(
                group=group["InstanceGroupName"],
                types=_types(group),
                current=group["CurrentCount"],
                target=group["TargetCount"],
                spot="Spot" in group.get("CapacityRequirements", {}),
                training_plan_arn=group.get("TrainingPlanArn", ""),
            )
            for group in groups_of(answer)
        ),
    )


def image(row: Answer) -> ImageAnswer:
    """Read one row of DescribeImages."""
    volumes = [mapping["Ebs"] for mapping in row.get("BlockDeviceMappings", ()) if "Ebs" in mapping]
    return ImageAnswer(
        image_id=row["ImageId"],
        owner=row.get("OwnerId", ""),
        state=row.get("State", ""),
        architecture=row.get("Architecture", ""),
        volumes=len(volumes),
        encrypted=any(volume.get("Encrypted") for volume in volumes),
        public=bool(row.get("Public")),
    )


def zone(row: Answer) -> Zone:
    """Read one row of DescribeAvailabilityZones."""
    return Zone(
        zone_id=row["ZoneId"],
        name=row["ZoneName"],
        state=row["State"],
        kind=row["ZoneType"],
        # the availability zones of a region come with it; local zones are opted in to one by one
        opted_in=row["ZoneType"] == "availability-zone" or row["OptInStatus"] != "not-opted-in",
    )


def vpc(row: Answer, *, dns_support: bool | NotAnswered, dns_hostnames: bool | NotAnswered) -> VpcAnswer:
    """Read one row of DescribeVpcs; the attributes come from DescribeVpcAttribute."""
    primary = row["CidrBlock"]
    others = (
        each["CidrBlock"]
        for each in row.get("CidrBlockAssociationSet", ())
        if each.get("CidrBlockState", {}).get("State") in _LIVE_BLOCKS and each["CidrBlock"] != primary
    )
    return VpcAnswer(
        vpc_id=row["VpcId"],
        cidrs=(primary, *others),
        tags=_tags(row),
        dns_support=dns_support,
        dns_hostnames=dns_hostnames,
        owner=row.get("OwnerId", ""),
    )


def subnet(row: Answer) -> SubnetAnswer:
    """Read one row of DescribeSubnets."""
    return SubnetAnswer(
        subnet_id=row["SubnetId"],
        vpc_id=row["VpcId"],
        availability_zone_id=row["AvailabilityZoneId"],
        cidr=row["CidrBlock"],
        free=row["AvailableIpAddressCount"],
        assigns_public_addresses=row["MapPublicIpOnLaunch"],
        tags=_tags(row),
    )


def route_table(row: Answer) -> RouteTable:
    """Read one row of DescribeRouteTables."""
    associations = row["Associations"]
    return RouteTable(
        route_table_id=row["RouteTableId"],
        is_main=any(each.get("Main") for each in associations),
        # the main table is that of subnets without one, and a gateway can have one
        subnet_ids=tuple(each["SubnetId"] for each in associations if not (each.get("Main") or each.get("GatewayId"))),
        routes=tuple(_route(each) for each in row["Routes"]),
    )


def endpoint(row: Answer) -> Endpoint:
    """Read one row of DescribeVpcEndpoints."""
    return Endpoint(
        endpoint_id=row["VpcEndpointId"],
        service=endpoint_service(row["ServiceName"]),
        kind=row["VpcEndpointType"],
        state=row["State"].lower(),
        route_table_ids=tuple(row.get("RouteTableIds", ())),
        subnet_ids=tuple(row.get("SubnetIds", ())),
        security_group_ids=tuple(each["GroupId"] for each in row.get("Groups", ())),
        private_dns=row.get("PrivateDnsEnabled", False),
    )


def endpoint_service(name: str) -> str:
    """Return ``ecr.api`` for ``com.amazonaws.us-east-1.ecr.api``: what follows the region, else the whole name."""
    region = _REGION.search(name)
    return name[region.end() :] if region else name


def security_group(row: Answer) -> SecurityGroupAnswer:
    """Read one row of DescribeSecurityGroups."""
    return SecurityGroupAnswer(
        group_id=row["GroupId"],
        vpc_id=row["VpcId"],
        ingress=tuple(_rule(each) for each in row["IpPermissions"]),
        egress=tuple(_rule(each) for each in row["IpPermissionsEgress"]),
    )


def kubernetes_version(row: Answer) -> KubernetesVersionAnswer:
    """Read one row of DescribeClusterVersions; ``status`` is the older form of ``versionStatus``."""
    return KubernetesVersionAnswer(
        version=row["clusterVersion"],
        status=row.get("versionStatus") or row["status"].upper().replace("-", "_"),
        end_of_standard_support=_utc(row.get("endOfStandardSupportDate")),
        end_of_extended_support=_utc(row.get("endOfExtendedSupportDate")),
    )


def addon_versions(addon: str, kubernetes: str, rows: Iterable[Answer]) -> AddonVersions | None:
    """Read the rows of DescribeAddonVersions; an add-on without any version for ``kubernetes`` is left out."""
    versions = [each for row in rows if row["addonName"] == addon for each in row["addonVersions"]]
    if not versions:
        return None
    names = [each["addonVersion"] for each in versions]
    defaults = [
        each["addonVersion"]
        for each in versions
        for fit in each.get("compatibilities", ())
        if fit.get("clusterVersion") == kubernetes and fit.get("defaultVersion")
    ]
    return AddonVersions(
        addon=addon,
        kubernetes_version=kubernetes,
        versions=tuple(sorted(names, key=_numbers, reverse=True)),
        default=defaults[0] if defaults else "",
    )


def installed_addon(row: Answer) -> InstalledAddon:
    """Read DescribeAddon."""
    return InstalledAddon(name=row["addonName"], version=row["addonVersion"], status=row["status"])


def eks_cluster(row: Answer) -> EksClusterAnswer:
    """Read DescribeCluster of EKS; a cluster that is being created has neither endpoint nor certificate yet."""
    network = row["resourcesVpcConfig"]
    return EksClusterAnswer(
        name=row["name"],
        arn=row["arn"],
        status=row["status"],
        kubernetes_version=row["version"],
        # a cluster from before access entries has no accessConfig, and only the map
        authentication_mode=row.get("accessConfig", {}).get("authenticationMode", "CONFIG_MAP"),
        vpc_id=network["vpcId"],
        subnet_ids=tuple(network["subnetIds"]),
        security_group_ids=tuple(network.get("securityGroupIds", ())),
        cluster_security_group_id=network.get("clusterSecurityGroupId", ""),
        endpoint=row.get("endpoint", ""),
        endpoint_public=network["endpointPublicAccess"],
        endpoint_private=network["endpointPrivateAccess"],
        public_access_cidrs=tuple(network["publicAccessCidrs"]) if "publicAccessCidrs" in network else None,
        certificate_authority=row.get("certificateAuthority", {}).get("data", ""),
        oidc_issuer=row.get("identity", {}).get("oidc", {}).get("issuer", ""),
        # a cluster from before the choice has no family, and IPv4
        ip_family=row.get("kubernetesNetworkConfig", {}).get("ipFamily", "ipv4"),
        tags=dict(row.get("tags", {})),
    )


def role(row: Answer) -> RoleAnswer:
    """Read the role of GetRole, whose trust policy botocore has parsed."""
    statements = row["AssumeRolePolicyDocument"]["Statement"]
    principals = [each.get("Principal", {}) for each in _several(statements) if each.get("Effect") == "Allow"]
    services = [name for each in principals if isinstance(each, Mapping) for name in _several(each.get("Service", ()))]
    return RoleAnswer(
        name=row["RoleName"],
        arn=row["Arn"],
        trusts=tuple(dict.fromkeys(services)),
        boundary_arn=row.get("PermissionsBoundary", {}).get("PermissionsBoundaryArn", ""),
    )


def decision(row: Answer) -> Decision:
    """Read one row of SimulatePrincipalPolicy."""
    organization = row.get("OrganizationsDecisionDetail", {})
    boundary = row.get("PermissionsBoundaryDecisionDetail", {})
    # for a named resource they are in its result
    told = (row, *row.get("ResourceSpecificResults", ()))
    return Decision(
        action=row["EvalActionName"],
        decision=row["EvalDecision"],
        denied_by_organization=organization.get("AllowedByOrganizations") is False,
        denied_by_boundary=boundary.get("AllowedByPermissionsBoundary") is False,
        unknown_keys=tuple(sorted({key for each in told for key in each.get("MissingContextValues", ())})),
    )


def lustre(row: Answer) -> LustreAnswer:
    """Read one row of DescribeFileSystems of type LUSTRE."""
    configuration = row["LustreConfiguration"]
    metadata = configuration.get("MetadataConfiguration", {})
    return LustreAnswer(
        file_system_id=row["FileSystemId"],
        deployment_type=configuration["DeploymentType"],
        # Intelligent-Tiering has no capacity
        capacity_gib=0 if is_tiered(row) else row["StorageCapacity"],
        subnet_ids=tuple(row["SubnetIds"]),
        lifecycle=row["Lifecycle"],
        vpc_id=row["VpcId"],
        mount_name=configuration.get("MountName", ""),
        dns_name=row.get("DNSName", ""),
        efa=configuration.get("EfaEnabled", False),
        metadata_iops=metadata.get("Iops") if metadata.get("Mode") == "USER_PROVISIONED" else None,
        provisioned_metadata_iops=metadata.get("Iops"),
        throughput_mbps_per_tib=configuration.get("PerUnitStorageThroughput"),
        throughput_capacity_mbps=configuration.get("ThroughputCapacity"),
        network_interface_ids=tuple(row.get("NetworkInterfaceIds", ())),
        changes=tuple(
            _lustre_change(each)
            for each in row.get("AdministrativeActions", ())
            if each["AdministrativeActionType"] == "FILE_SYSTEM_UPDATE"
        ),
        tags=_tags(row),
    )


def _lustre_change(row: Answer) -> LustreChange:
    values = row.get("TargetFileSystemValues", {})
    configuration = values.get("LustreConfiguration", {})
    target = {
        "capacity_gib": values.get("StorageCapacity"),
        "throughput_mbps_per_tib": configuration.get("PerUnitStorageThroughput"),
        "throughput_capacity_mbps": configuration.get("ThroughputCapacity"),
        "metadata_iops": configuration.get("MetadataConfiguration", {}).get("Iops"),
    }
    return LustreChange(
        asked=row["RequestTime"],
        status=row["Status"],
        target={key: value for key, value in target.items() if value is not None},
    )


def backup(row: Answer) -> BackupAnswer:
    """Read one row of FSx's DescribeBackups."""
    kind = row["FileSystem"]["FileSystemType"]
    return BackupAnswer(
        backup_id=row["BackupId"],
        lifecycle=row["Lifecycle"],
        kind=kind,
        capacity_gib=row["FileSystem"]["StorageCapacity"] if kind == "LUSTRE" else 0,
    )


def stack(row: Answer) -> StackAnswer:
    """Read one row of DescribeStacks."""
    return StackAnswer(
        name=row["StackName"],
        status=row["StackStatus"],
        status_reason=row.get("StackStatusReason", ""),
        is_protected=bool(row.get("EnableTerminationProtection")),
    )


def _types(group: Answer) -> tuple[str, ...]:
    if group.get("InstanceType"):
        return (group["InstanceType"],)
    wanted = group["InstanceRequirements"]
    return tuple(wanted.get("DesiredInstanceTypes") or wanted["CurrentInstanceTypes"])


def _route(row: Answer) -> Route:
    destination = next((key for key in _DESTINATIONS if row.get(key)), _DESTINATIONS[0])
    target = next((key for key in ROUTE_TARGETS if row.get(key)), ROUTE_TARGETS[0])
    return Route(destination=row[destination], target=row[target], state=row["State"])


def default_key(answer: Answer) -> str:
    """Return the KMS key of a bucket from GetBucketEncryption; empty: S3's own."""
    rules = answer["ServerSideEncryptionConfiguration"]["Rules"]
    defaults = [rule.get("ApplyServerSideEncryptionByDefault", {}) for rule in rules]
    return next((str(each["KMSMasterKeyID"]) for each in defaults if each.get("KMSMasterKeyID")), "")


def kms_key(row: Answer) -> KmsKeyAnswer:
    """Read a key's metadata."""
    return KmsKeyAnswer(arn=row["Arn"], state=row["KeyState"], spec=row["KeySpec"], usage=row["KeyUsage"])


def _rule(row: Answer) -> SecurityGroupRule:
    return SecurityGroupRule(
        protocol=row["IpProtocol"],
        from_port=row.get("FromPort"),
        to_port=row.get("ToPort"),
        group_ids=tuple(each["GroupId"] for each in row.get("UserIdGroupPairs", ())),
        cidrs=(
            *(each["CidrIp"] for each in row.get("IpRanges", ())),
            *(each["CidrIpv6"] for each in row.get("Ipv6Ranges", ())),
        ),
        prefix_list_ids=tuple(each["PrefixListId"] for each in row.get("PrefixListIds", ())),
    )


def _tags(row: Answer) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in row.get("Tags", ())}


def _utc(moment: datetime | None) -> datetime | None:
    return None if moment is None else moment.astimezone(UTC)


def _numbers(version: str) -> tuple[int, ...]:
    """Return a key that sorts ``v1.19.10-eksbuild.2`` after ``v1.19.9-eksbuild.3``."""
    return tuple(int(digits) for digits in re.findall(r"\d+", version))


def _several(value: Any) -> list[Any]:
    """Return a list for a value that an IAM document may write as one item or as a list."""
    return [value] if isinstance(value, str | Mapping) else list(value)
