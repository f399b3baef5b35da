"""Existing resources that an environment uses: VPCs, EKS clusters and roles with the IDs in the account file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from hyperpod_cdk_rehearsal.embedded.account import account_of
from hyperpod_cdk_rehearsal.embedded.account_existing import (
    ExistingCluster,
    ExistingFileSystem,
    ExistingKmsKey,
    ExistingRole,
    ExistingS3Bucket,
    ExistingSecurityGroup,
    ExistingSubnet,
    ExistingVpc,
)
from hyperpod_cdk_rehearsal.embedded.context import Context
from hyperpod_cdk_rehearsal.embedded.moto_state import moto_state
from hyperpod_cdk_rehearsal.embedded.published import lustre
from hyperpod_cdk_rehearsal.embedded.seeding import seed
from hyperpod_cdk_rehearsal.embedded.services import kubernetes_store
from hyperpod_cdk_rehearsal.embedded.services.eks import new_cluster
from hyperpod_cdk_rehearsal.embedded.services.eks_access import associate_access_policy, create_access_entry
from hyperpod_cdk_rehearsal.embedded.services.eks_addons import default_version
from hyperpod_cdk_rehearsal.embedded.services.network import ALL_TRAFFIC, ANYWHERE
from hyperpod_cdk_rehearsal.embedded.services.stores import Addon, EksCluster, EksStore, FileSystem, FsxStore
from hyperpod_cdk_rehearsal.embedded.services.timeline import Timeline

Gateways = dict[str, str]


@seed
def roles(context: Context) -> None:
    """Roles that IAM holds, so that policies can be attached to them."""
    for role in account_of(context).existing.roles:
        _role(context, role)


@seed
def kms_keys(context: Context) -> None:
    """KMS keys under the IDs that the file states."""
    for key in account_of(context).existing.kms_keys:
        _kms_key(context, key)


@seed
def s3_buckets(context: Context) -> None:
    """Buckets that belong to the account, with their settings."""
    for bucket in account_of(context).existing.buckets:
        _bucket(context, bucket)


@seed
def topics(context: Context) -> None:
    """Create the SNS topics and event buses that others own."""
    for topic in account_of(context).existing.topics:
        attributes = {"KmsMasterKeyId": topic.kms_key} if topic.kms_key else {}
        if topic.publishers:
            arn = f"arn:{context.partition}:sns:{context.region}:{context.account}:{topic.name}"
            principal = {"Service": list(topic.publishers)}
            statement = {"Effect": "Allow", "Principal": principal, "Action": "sns:Publish", "Resource": arn}
            attributes["Policy"] = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        context.client("sns").create_topic(Name=topic.name, Attributes=attributes)
    for bus in account_of(context).existing.event_buses:
        context.client("events").create_event_bus(Name=bus)


@seed
def networks(context: Context) -> None:
    """VPCs with their subnets, routes, endpoints and security groups, all under the IDs that the file states."""
    wanted = account_of(context).existing.networks
    if not wanted:
        return
    # moto makes its default VPC when EC2 is first asked, and must not take one of the IDs for that
    context.client("ec2").describe_vpcs()
    for vpc in wanted:
        _vpc(context, vpc)


@seed
def eks_clusters(context: Context) -> None:
    """EKS clusters in those VPCs, with their add-ons and administrators."""
    for cluster in account_of(context).existing.eks_clusters:
        _cluster(context, cluster)


@seed
def file_systems(context: Context) -> None:
    """FSx for Lustre file systems in those VPCs, each with a server's network interface."""
    for wanted in account_of(context).existing.file_systems:
        file_system = _file_system(context, wanted)
        context.state.store(FsxStore).file_systems[wanted.file_system_id] = file_system


def _vpc(context: Context, vpc: ExistingVpc) -> None:
    ec2 = context.client("ec2")
    primary, *secondary = vpc.cidrs
    with _next_id("vpcs", "random_vpc_id", vpc.vpc_id):
        ec2.create_vpc(CidrBlock=primary, TagSpecifications=_tags("vpc", vpc.tags))
    for block in secondary:
        ec2.associate_vpc_cidr_block(VpcId=vpc.vpc_id, CidrBlock=block)
    ec2.modify_vpc_attribute(VpcId=vpc.vpc_id, EnableDnsSupport={"Value": vpc.dns_support})
    ec2.modify_vpc_attribute(VpcId=vpc.vpc_id, EnableDnsHostnames={"Value": vpc.dns_hostnames})
    for group in vpc.security_groups:
        _security_group(ec2, vpc.vpc_id, group)
    gateways: Gateways = {}
    tables = {subnet.subnet_id: _subnet(context, vpc.vpc_id, subnet, gateways) for subnet in vpc.subnets}
    served = [tables[subnet.subnet_id] for subnet in vpc.subnets if subnet.s3_endpoint]
    if served:
        ec2.create_vpc_endpoint(
            VpcId=vpc.vpc_id,
            ServiceName=f"com.amazonaws.{context.region}.s3",
            VpcEndpointType="Gateway",
            RouteTableIds=served,
        )
    for service in vpc.interface_endpoints:
        ec2.create_vpc_endpoint(
            VpcId=vpc.vpc_id,
            ServiceName=f"com.amazonaws.{context.region}.{service}",
            VpcEndpointType="Interface",
            # EC2 takes one subnet of each zone
            SubnetIds=list({subnet.availability_zone_id: subnet.subnet_id for subnet in vpc.subnets}.values()),
            SecurityGroupIds=[group.group_id for group in vpc.security_groups],
            PrivateDnsEnabled=True,
        )


def _subnet(context: Context, vpc_id: str, subnet: ExistingSubnet, gateways: Gateways) -> str:
    """Make a subnet and give its route table."""
    ec2 = context.client("ec2")
    with _next_id("subnets", "random_subnet_id", subnet.subnet_id):
        ec2.create_subnet(
            VpcId=vpc_id,
            CidrBlock=subnet.cidr,
            AvailabilityZoneId=subnet.availability_zone_id,
            TagSpecifications=_tags("subnet", subnet.tags),
        )
    ec2.modify_subnet_attribute(
        SubnetId=subnet.subnet_id, MapPublicIpOnLaunch={"Value": subnet.assigns_public_addresses}
    )
    table: str = ec2.create_route_table(VpcId=vpc_id)["RouteTable"]["RouteTableId"]
    ec2.associate_route_table(RouteTableId=table, SubnetId=subnet.subnet_id)
    target = _way_out(ec2, vpc_id, subnet, gateways)
    if target:
        ec2.create_route(RouteTableId=table, DestinationCidrBlock=ANYWHERE, **target)
    if subnet.free_addresses is not None:
        _leave_free(context, subnet.subnet_id, subnet.free_addresses)
    return table


def _way_out(ec2: Any, vpc_id: str, subnet: ExistingSubnet, gateways: Gateways) -> dict[str, str]:
    """Return the target of a subnet's default route; what the VPC has one of is made once."""
    if subnet.way_out == "internet_gateway":
        if "internet" not in gateways:
            gateways["internet"] = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
            ec2.attach_internet_gateway(InternetGatewayId=gateways["internet"], VpcId=vpc_id)
        return {"GatewayId": gateways["internet"]}
    if subnet.way_out == "nat":
        if "nat" not in gateways:
            # where the gateway itself stands matters to nobody here: a private one needs no public subnet
            made = ec2.create_nat_gateway(SubnetId=subnet.subnet_id, ConnectivityType="private")
            gateways["nat"] = made["NatGateway"]["NatGatewayId"]
        return {"NatGatewayId": gateways["nat"]}
    if subnet.way_out == "transit_gateway":
        if "transit" not in gateways:
            gateways["transit"] = ec2.create_transit_gateway()["TransitGateway"]["TransitGatewayId"]
        return {"TransitGatewayId": gateways["transit"]}
    return {}


def _security_group(ec2: Any, vpc_id: str, group: ExistingSecurityGroup) -> None:
    with _next_id("security_groups", "random_security_group_id", group.group_id):
        ec2.create_security_group(GroupName=group.group_id, Description="existing", VpcId=vpc_id)
    itself = [{"IpProtocol": ALL_TRAFFIC, "UserIdGroupPairs": [{"GroupId": group.group_id}]}]
    anywhere = [{"IpProtocol": ALL_TRAFFIC, "IpRanges": [{"CidrIp": ANYWHERE}]}]
    if group.self_ingress:
        ec2.authorize_security_group_ingress(GroupId=group.group_id, IpPermissions=itself)
    if group.self_egress:
        ec2.authorize_security_group_egress(GroupId=group.group_id, IpPermissions=itself)
    if not group.open_egress:
        ec2.revoke_security_group_egress(GroupId=group.group_id, IpPermissions=anywhere)


def _cluster(context: Context, wanted: ExistingCluster) -> None:
    ec2 = context.client("ec2")
    subnets = ec2.describe_subnets(SubnetIds=list(wanted.subnet_ids))["Subnets"]
    issuer = wanted.oidc_provider_arn.partition(":oidc-provider/")[2]
    cluster = new_cluster(
        context,
        {
            "name": wanted.name,
            "roleArn": context.arn("iam", f"role/{wanted.name}-control-plane", region=""),
            "resourcesVpcConfig": {
                "subnetIds": list(wanted.subnet_ids),
                "securityGroupIds": list(wanted.security_group_ids),
                "endpointPublicAccess": wanted.endpoint_public,
                "endpointPrivateAccess": wanted.endpoint_private,
                "publicAccessCidrs": list(wanted.public_access_cidrs),
            },
            "accessConfig": {
                "authenticationMode": wanted.authentication_mode,
                "bootstrapClusterCreatorAdminPermissions": False,
            },
            "tags": dict(wanted.tags),
        },
        wanted.kubernetes_version,
        subnets,
        security_group_id=_cluster_group(context, wanted.cluster_security_group_id, subnets[0]["VpcId"]),
    )
    cluster.timeline = Timeline.begin(context.clock, wanted.status)
    cluster.view["kubernetesNetworkConfig"]["ipFamily"] = wanted.ip_family
    if issuer:
        cluster.view["identity"] = {"oidc": {"issuer": f"https://{issuer}"}}
        context.client("iam").create_open_id_connect_provider(
            Url=f"https://{issuer}", ClientIDList=["sts.amazonaws.com"], ThumbprintList=["0" * 40]
        )
    cluster.addons.update({name: _addon(context, cluster, name, version) for name, version in wanted.addons.items()})
    context.state.store(EksStore).clusters[wanted.name] = cluster
    for arn in wanted.access_entries:
        _admit(context, cluster.name, arn)
    if wanted.kueue:
        kubernetes_store.record_helm_release(context, wanted.name, "kueue", "kueue-system", "kueue", {})
    if wanted.hyperpod_chart:
        # release and namespace as in awslabs/awsome-distributed-ai, hyperpod-eks-tf/variables.tf
        kubernetes_store.record_helm_release(
            context, wanted.name, "hyperpod-dependencies", "kube-system", "HyperPodHelmChart", {}
        )
    kubernetes_store.record_manifest(context, wanted.name, _daemon_sets(wanted.daemon_sets))


def _cluster_group(context: Context, group_id: str, vpc_id: str) -> str:
    ec2 = context.client("ec2")
    found = ec2.describe_security_groups(Filters=[{"Name": "group-id", "Values": [group_id]}])["SecurityGroups"]
    if not found:
        _security_group(ec2, vpc_id, ExistingSecurityGroup(group_id=group_id, self_egress=False))
    return group_id


def _admit(context: Context, cluster_name: str, role_arn: str) -> None:
    entry = {"clusterName": cluster_name, "principalArn": role_arn}
    policy = f"arn:{context.partition}:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
    create_access_entry(context, dict(entry))
    associate_access_policy(context, {**entry, "policyArn": policy, "accessScope": {"type": "cluster"}})


def _addon(context: Context, cluster: EksCluster, name: str, version: str) -> Addon:
    now = context.clock.now()
    return Addon(
        name=name,
        arn=context.arn("eks", f"addon/{cluster.name}/{name}/{uuid5(NAMESPACE_URL, f'{cluster.arn}/{name}')}"),
        version=version or default_version(name, cluster.version),
        created=now,
        modified=now,
        timeline=Timeline.begin(context.clock, "ACTIVE"),
        request={},
        tags={},
        # it has been working for long: what it needs now is not what it needed when it was installed
        judged=True,
    )


def _daemon_sets(images: Mapping[str, tuple[str, ...]]) -> Iterator[dict[str, Any]]:
    for name, used in images.items():
        containers = [{"name": f"{name}-{number}", "image": image} for number, image in enumerate(used)]
        yield {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": name, "namespace": "kube-system"},
            "spec": {"template": {"spec": {"containers": containers}}},
        }


def _role(context: Context, role: ExistingRole) -> None:
    iam = context.client("iam")
    statement = {"Effect": "Allow", "Principal": {"Service": list(role.trusts)}, "Action": "sts:AssumeRole"}
    iam.create_role(
        RoleName=role.name,
        Path=role.path,
        AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [statement]}),
    )
    for policy in role.managed_policies:
        iam.attach_role_policy(RoleName=role.name, PolicyArn=f"arn:{context.partition}:iam::aws:policy/{policy}")


def _file_system(context: Context, wanted: ExistingFileSystem) -> FileSystem:
    interface = context.client("ec2").create_network_interface(
        SubnetId=wanted.subnet_id, Groups=list(wanted.security_group_ids), Description="FSx for Lustre"
    )["NetworkInterface"]
    view = {
        "OwnerId": context.account,
        "CreationTime": context.clock.now(),
        "FileSystemId": wanted.file_system_id,
        "FileSystemType": "LUSTRE",
        "FileSystemTypeVersion": lustre.DEFAULT_VERSION,
        "StorageCapacity": wanted.capacity_gib,
        "StorageType": "SSD",
        "VpcId": interface["VpcId"],
        "SubnetIds": [wanted.subnet_id],
        "NetworkInterfaceIds": [interface["NetworkInterfaceId"]],
        "DNSName": f"{wanted.file_system_id}.fsx.{context.region}.{context.url_suffix}",
        "ResourceARN": context.arn("fsx", f"file-system/{wanted.file_system_id}"),
        "LustreConfiguration": {
            "DeploymentType": lustre.PERSISTENT_2,
            "MountName": wanted.mount_name,
            "EfaEnabled": wanted.efa,
        },
    }
    timeline = Timeline.begin(context.clock, wanted.lifecycle)
    return FileSystem(file_system_id=wanted.file_system_id, view=view, timeline=timeline, tags={})


def _kms_key(context: Context, wanted: ExistingKmsKey) -> None:
    client, account = context.client("kms"), context.account
    statements = {
        "account": {"Principal": {"AWS": f"arn:{context.partition}:iam::{account}:root"}, "Action": "kms:*"},
        "logs": {
            "Principal": {"Service": f"logs.{context.region}.{context.url_suffix}"},
            "Action": ["kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:DescribeKey"],
            "Condition": {"ArnLike": {"kms:EncryptionContext:aws:logs:arn": context.arn("logs", "log-group:*")}},
        },
    }
    policy = [
        {"Effect": "Allow", "Resource": "*", **statements.get(who, {"Principal": {"AWS": who}, "Action": "kms:*"})}
        for who in wanted.lets_in
    ]
    with _drawn("moto.kms.models", "generate_key_id", wanted.key_id):
        client.create_key(
            KeySpec=wanted.spec,
            KeyUsage="ENCRYPT_DECRYPT",  # AWS's own default, which moto does not know
            Policy=json.dumps({"Version": "2012-10-17", "Statement": policy}),
            MultiRegion=wanted.key_id.startswith("mrk-"),
        )
    if wanted.state == "Disabled":
        client.disable_key(KeyId=wanted.key_id)
    elif wanted.state == "PendingDeletion":
        client.schedule_key_deletion(KeyId=wanted.key_id)


def _bucket(context: Context, wanted: ExistingS3Bucket) -> None:
    client = context.client("s3")
    where = {} if context.region == "us-east-1" else {"LocationConstraint": context.region}
    client.create_bucket(Bucket=wanted.name, **({"CreateBucketConfiguration": where} if where else {}))
    if wanted.versioned:
        client.put_bucket_versioning(Bucket=wanted.name, VersioningConfiguration={"Status": "Enabled"})
    if wanted.kms_key:
        default = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": wanted.kms_key}
        client.put_bucket_encryption(
            Bucket=wanted.name,
            ServerSideEncryptionConfiguration={"Rules": [{"ApplyServerSideEncryptionByDefault": default}]},
        )
    if wanted.public:
        statement = {
            "Effect": "Allow",
            "Principal": "*",
            "Action": "s3:GetObject",
            "Resource": f"arn:{context.partition}:s3:::{wanted.name}/*",
        }
        document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        client.put_bucket_policy(Bucket=wanted.name, Policy=document)


def _leave_free(context: Context, subnet_id: str, count: int) -> None:
    with moto_state("ec2", context.account, context.region) as backend:
        setattr(backend.get_subnet(subnet_id), "_available_ip_addresses", count)  # noqa: B010 - moto has no other way


def _tags(resource_type: str, tags: Mapping[str, str]) -> list[dict[str, Any]]:
    if not tags:
        return []
    return [{"ResourceType": resource_type, "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}]


@contextmanager
def _next_id(module: str, function: str, resource_id: str) -> Iterator[None]:
    """Let moto's EC2, which draws IDs by lot, give this one."""
    with _drawn(f"moto.ec2.models.{module}", function, resource_id):
        yield


@contextmanager
def _drawn(module: str, function: str, value: str) -> Iterator[None]:
    """Let a function of moto give this; requests from outside wait until the seeds have ended."""
    from importlib import import_module  # noqa: PLC0415 - moto loads after the account is set

    models = import_module(module)
    drawn = getattr(models, function)
    setattr(models, function, lambda *_: value)
    try:
        yield
    finally:
        setattr(models, function, drawn)
