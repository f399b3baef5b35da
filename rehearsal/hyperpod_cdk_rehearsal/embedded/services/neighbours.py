"""Resources of others in the account before the deployment, created from the account file."""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import json
from typing import Any

from hyperpod_cdk_rehearsal.embedded.account import account_of
from hyperpod_cdk_rehearsal.embedded.account_sections import NeighbourCluster, NeighbourFileSystem, NeighbourGroup
from hyperpod_cdk_rehearsal.embedded.cloudformation.stacks import Stack, stacks_of
from hyperpod_cdk_rehearsal.embedded.context import Context
from hyperpod_cdk_rehearsal.embedded.published import kubernetes
from hyperpod_cdk_rehearsal.embedded.seeding import seed
from hyperpod_cdk_rehearsal.embedded.services.stores import (
    EksCluster,
    EksStore,
    FileSystem,
    FsxStore,
    HyperPodCluster,
    InstanceGroup,
    Node,
    SageMakerStore,
)
from hyperpod_cdk_rehearsal.embedded.services.timeline import Timeline

FIRST_NEIGHBOUR_BLOCK = ipaddress.ip_network("192.168.0.0/24")
"""The block of the first VPC of others; the next ones follow it."""


class LeftOver(Stack):
    """A stack without a running operation, regardless of its status."""

    def wait_while_in_progress(self, seconds: float) -> None:
        """Return at once: no operation runs that could end."""


@seed
def stacks(context: Context) -> None:
    """Stacks left over by earlier deployments, without resources."""
    for name, status in account_of(context).stacks.items():
        stack = LeftOver(context, name)
        stack.set_status(status)
        stacks_of(context).add(stack)


@seed
def hyperpod_clusters(context: Context) -> None:
    """HyperPod clusters of others, all their nodes running."""
    for cluster in account_of(context).clusters:
        context.state.store(SageMakerStore).clusters[cluster.name] = _hyperpod_cluster(context, cluster)


@seed
def eks_clusters(context: Context) -> None:
    """EKS clusters of others."""
    for number in range(account_of(context).in_use.eks_clusters):
        cluster = _eks_cluster(context, f"other-{number}")
        context.state.store(EksStore).clusters[cluster.name] = cluster


@seed
def file_systems(context: Context) -> None:
    """FSx for Lustre file systems of others."""
    for number, wanted in enumerate(account_of(context).in_use.file_systems):
        file_system = _file_system(context, number, wanted)
        context.state.store(FsxStore).file_systems[file_system.file_system_id] = file_system


@seed
def network(context: Context) -> None:
    """VPCs, addresses, gateways, interfaces, security groups and endpoints of others."""
    in_use = account_of(context).in_use
    ec2 = context.client("ec2") if any(in_use.model_dump(exclude={"eks_clusters", "file_systems"}).values()) else None
    if ec2 is None:
        return
    first = int(FIRST_NEIGHBOUR_BLOCK.network_address)
    for number in range(in_use.vpcs):
        address = ipaddress.ip_address(first + number * FIRST_NEIGHBOUR_BLOCK.num_addresses)
        ec2.create_vpc(CidrBlock=f"{address}/{FIRST_NEIGHBOUR_BLOCK.prefixlen}")
    for _ in range(in_use.elastic_ips):
        ec2.allocate_address(Domain="vpc")
    for _ in range(in_use.internet_gateways):
        ec2.create_internet_gateway()
    subnets = {subnet["AvailabilityZoneId"]: subnet for subnet in ec2.describe_subnets()["Subnets"]}
    some = next(iter(subnets.values()))
    for zone_id, count in in_use.nat_gateways.items():
        for _ in range(count):
            ec2.create_nat_gateway(SubnetId=subnets[zone_id]["SubnetId"], ConnectivityType="private")
    for number in range(in_use.network_interfaces):
        ec2.create_network_interface(SubnetId=some["SubnetId"], Description=f"other-{number}")
    for number in range(in_use.security_groups):
        ec2.create_security_group(GroupName=f"other-{number}", Description="somebody's", VpcId=some["VpcId"])
    for _ in range(in_use.gateway_endpoints):
        ec2.create_vpc_endpoint(
            VpcId=some["VpcId"], ServiceName=f"com.amazonaws.{context.region}.s3", VpcEndpointType="Gateway"
        )


@seed
def bootstrap(context: Context) -> None:
    """The version parameter of the CDK bootstrap stack."""
    wanted = account_of(context).bootstrap
    if wanted is not None and wanted.version is not None:
        name = f"/cdk-bootstrap/{wanted.qualifier}/version"
        context.client("ssm").put_parameter(Name=name, Value=str(wanted.version), Type="String")


@seed
def policies(context: Context) -> None:
    """Managed policies of the account, which allow everything."""
    allow = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
    for arn in account_of(context).iam.policies:
        path, name = arn.split(":policy", 1)[1].rsplit("/", 1)
        context.client("iam").create_policy(PolicyName=name, Path=f"{path}/", PolicyDocument=json.dumps(allow))


@seed
def log_groups(context: Context) -> None:
    """Log groups left over by clusters that are gone."""
    for name in account_of(context).log_groups:
        context.client("logs").create_log_group(logGroupName=name)


@seed
def buckets(context: Context) -> None:
    """S3 buckets, each in its region."""
    for name, region in account_of(context).buckets.items():
        where = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
        context.client("s3", region).create_bucket(Bucket=name, **where)


def _hyperpod_cluster(context: Context, wanted: NeighbourCluster) -> HyperPodCluster:
    cluster_id = _digest(context, "cluster", wanted.name)[:12]
    eks = context.arn("eks", f"cluster/{wanted.eks_cluster or f'{wanted.name}-eks'}")
    return HyperPodCluster(
        name=wanted.name,
        cluster_id=cluster_id,
        arn=context.arn("sagemaker", f"cluster/{cluster_id}"),
        created=context.clock.now(),
        request={"Orchestrator": {"Eks": {"ClusterArn": eks}}, "NodeProvisioningMode": "Continuous"},
        timeline=Timeline.begin(context.clock, wanted.status),
        tags=dict(wanted.tags),
        groups={group.name: _group(context, wanted.name, group) for group in wanted.groups},
    )


def _group(context: Context, cluster: str, wanted: NeighbourGroup) -> InstanceGroup:
    spec: dict[str, Any] = {
        "InstanceGroupName": wanted.name,
        "InstanceType": wanted.instance_type,
        "InstanceCount": wanted.count,
        "ExecutionRole": f"arn:{context.partition}:iam::{context.account}:role/{cluster}-nodes",
        "LifeCycleConfig": {"SourceS3Uri": f"s3://sagemaker-{cluster}/scripts", "OnCreate": "on_create.sh"},
    }
    if wanted.spot:
        spec["CapacityRequirements"] = {"Spot": {}}
    if wanted.training_plan:
        spec["TrainingPlanArn"] = context.arn("sagemaker", f"training-plan/{wanted.training_plan}")
    nodes = [_node(context, cluster, wanted, number) for number in range(wanted.count)]
    return InstanceGroup(spec=spec, nodes=nodes, launched=wanted.count)


def _node(context: Context, cluster: str, group: NeighbourGroup, number: int) -> Node:
    digest = _digest(context, "node", cluster, group.name, str(number))
    return Node(
        instance_id=f"i-{digest[:17]}",
        logical_id=f"{group.name}-{digest[17:25]}",
        group=group.name,
        instance_type=group.instance_type,
        subnet_id=f"subnet-{digest[:17]}",
        availability_zone_id="",
        private_ip="192.168.255.1",
        launched=context.clock.now(),
        timeline=Timeline.begin(context.clock, "Running"),
        image_release_version="1.0.0",
    )


def _eks_cluster(context: Context, name: str) -> EksCluster:
    digest = _digest(context, "eks", name)
    arn = context.arn("eks", f"cluster/{name}")
    domain = f"{context.region}.eks.{context.url_suffix}"
    view: dict[str, Any] = {
        "name": name,
        "arn": arn,
        "createdAt": context.clock.now(),
        "version": kubernetes.DEFAULT,
        "platformVersion": "eks.1",
        "roleArn": f"arn:{context.partition}:iam::{context.account}:role/{name}",
        "endpoint": f"https://{digest[:32].upper()}.gr7.{domain}",
        "certificateAuthority": {"data": base64.b64encode(f"certificate authority of {arn}".encode()).decode()},
        "identity": {"oidc": {"issuer": f"https://oidc.eks.{context.region}.{context.url_suffix}/id/{digest[:32]}"}},
        "resourcesVpcConfig": {
            "subnetIds": [f"subnet-{digest[:17]}", f"subnet-{digest[17:34]}"],
            "securityGroupIds": [],
            "clusterSecurityGroupId": f"sg-{digest[:17]}",
            "vpcId": f"vpc-{digest[:17]}",
            "endpointPublicAccess": True,
            "endpointPrivateAccess": True,
            "publicAccessCidrs": ["0.0.0.0/0"],
        },
        "kubernetesNetworkConfig": {"ipFamily": "ipv4", "serviceIpv4Cidr": "172.20.0.0/16"},
        "accessConfig": {"authenticationMode": "API"},
        "tags": {},
        "health": {"issues": []},
    }
    return EksCluster(name=name, arn=arn, view=view, timeline=Timeline.begin(context.clock, "ACTIVE"))


def _file_system(context: Context, number: int, wanted: NeighbourFileSystem) -> FileSystem:
    digest = _digest(context, "file-system", str(number))
    file_system_id = f"fs-{digest[:17]}"
    view = {
        "OwnerId": context.account,
        "CreationTime": context.clock.now(),
        "FileSystemId": file_system_id,
        "FileSystemType": "LUSTRE",
        "FileSystemTypeVersion": "2.15",
        "StorageCapacity": wanted.capacity_gib,
        "StorageType": "SSD",
        "VpcId": f"vpc-{digest[:17]}",
        "SubnetIds": [f"subnet-{digest[:17]}"],
        "NetworkInterfaceIds": [],
        "DNSName": f"{file_system_id}.fsx.{context.region}.{context.url_suffix}",
        "ResourceARN": context.arn("fsx", f"file-system/{file_system_id}"),
        "LustreConfiguration": {"DeploymentType": wanted.deployment_type, "MountName": digest[:8]},
    }
    timeline = Timeline.begin(context.clock, "AVAILABLE")
    return FileSystem(file_system_id=file_system_id, view=view, timeline=timeline, tags=dict(wanted.tags))


def _digest(context: Context, *parts: str) -> str:
    return hashlib.sha256("/".join((context.account, context.region, "others", *parts)).encode()).hexdigest()
