"""AWS::EC2: a VPC with its address blocks, subnets and flow logs."""

from __future__ import annotations

import ipaddress
from typing import Any

from hyperpod_cdk_rehearsal.embedded.published.network import is_block_size, restricted_beside
from hyperpod_cdk_rehearsal.embedded.resources._calls import call, changed, ignoring, is_true, refusal, take
from hyperpod_cdk_rehearsal.embedded.resources._ec2 import client_of, retag_by_ec2, tag_specifications
from hyperpod_cdk_rehearsal.embedded.resources.registry import ResourceHandler, ResourceRequest, ResourceResult, handles


@handles("AWS::EC2::VPC")
class Vpc(ResourceHandler):
    """A VPC. `Ref` is its id."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        vpc = call(
            client_of(request),
            "create_vpc",
            take(request.properties, "CidrBlock", "InstanceTenancy", "Ipv4IpamPoolId", "Ipv4NetmaskLength")
            | tag_specifications(request, "vpc"),
        )["Vpc"]
        self._set_dns(request, vpc["VpcId"])
        return self._result(request, vpc["VpcId"])

    def update(self, request: ResourceRequest) -> ResourceResult:
        self._set_dns(request, request.existing_id)
        if changed(request, "InstanceTenancy"):
            tenancy = request.properties.get("InstanceTenancy", "default")
            client_of(request).modify_vpc_tenancy(VpcId=request.existing_id, InstanceTenancy=tenancy)
        retag_by_ec2(request)
        return self._result(request, request.existing_id)

    def delete(self, request: ResourceRequest) -> None:
        client, vpc_id = client_of(request), request.existing_id
        with ignoring("InvalidVpcID.NotFound"):
            client.delete_vpc(VpcId=vpc_id)

    @staticmethod
    def _set_dns(request: ResourceRequest, vpc_id: str) -> None:
        client, properties = client_of(request), request.properties
        client.modify_vpc_attribute(
            VpcId=vpc_id, EnableDnsSupport={"Value": is_true(properties.get("EnableDnsSupport", True))}
        )
        client.modify_vpc_attribute(
            VpcId=vpc_id, EnableDnsHostnames={"Value": is_true(properties.get("EnableDnsHostnames", False))}
        )

    @staticmethod
    def _result(request: ResourceRequest, vpc_id: str) -> ResourceResult:
        client = client_of(request)
        vpc = client.describe_vpcs(VpcIds=[vpc_id])["Vpcs"][0]
        in_vpc = [{"Name": "vpc-id", "Values": [vpc_id]}]
        groups = client.describe_security_groups(Filters=[*in_vpc, {"Name": "group-name", "Values": ["default"]}])[
            "SecurityGroups"
        ]
        acls = client.describe_network_acls(Filters=[*in_vpc, {"Name": "default", "Values": ["true"]}])["NetworkAcls"]
        return ResourceResult(
            vpc_id,
            {
                "VpcId": vpc_id,
                "CidrBlock": vpc["CidrBlock"],
                "CidrBlockAssociations": [row["AssociationId"] for row in vpc["CidrBlockAssociationSet"]],
                "Ipv6CidrBlocks": [row["Ipv6CidrBlock"] for row in vpc.get("Ipv6CidrBlockAssociationSet", [])],
                "DefaultSecurityGroup": groups[0]["GroupId"],
                "DefaultNetworkAcl": acls[0]["NetworkAclId"],
            },
        )


@handles("AWS::EC2::VPCCidrBlock")
class VpcCidrBlock(ResourceHandler):
    """A further CIDR block of a VPC. `Ref` is the association's id."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        client, properties = client_of(request), request.properties
        if properties.get("CidrBlock"):
            _refuse_size(properties["CidrBlock"], "InvalidVpc.Range", "AssociateVpcCidrBlock")
            self._refuse_overlap(client, properties["VpcId"], properties["CidrBlock"])
            self._refuse_restricted(client, properties["VpcId"], properties["CidrBlock"])
        answer = call(
            client,
            "associate_vpc_cidr_block",
            take(
                properties,
                "VpcId",
                "CidrBlock",
                "AmazonProvidedIpv6CidrBlock",
                "Ipv6CidrBlock",
                "Ipv6Pool",
                "Ipv4IpamPoolId",
                "Ipv4NetmaskLength",
                "Ipv6IpamPoolId",
                "Ipv6NetmaskLength",
                "Ipv6CidrBlockNetworkBorderGroup",
            ),
        )
        association = answer.get("CidrBlockAssociation") or answer["Ipv6CidrBlockAssociation"]
        association_id = association["AssociationId"]
        return ResourceResult(association_id, {"Id": association_id})

    def delete(self, request: ResourceRequest) -> None:
        client = client_of(request)
        # moto misses the block's local route in tables made after it; the block is gone all the same
        with ignoring(
            "InvalidVpcCidrBlockAssociationID.NotFound",
            "InvalidVpcCidrBlockAssociationIdError.NotFound",
            "InvalidVpcID.NotFound",
            "InvalidRoute.NotFound",
        ):
            block = request.properties.get("CidrBlock")
            if block:
                self._refuse_used(client, request.properties["VpcId"], block)
            client.disassociate_vpc_cidr_block(AssociationId=request.existing_id)

    @staticmethod
    def _refuse_overlap(client: Any, vpc_id: str, block: str) -> None:
        wanted = ipaddress.ip_network(block)
        vpc = client.describe_vpcs(VpcIds=[vpc_id])["Vpcs"][0]
        for row in vpc["CidrBlockAssociationSet"]:
            associated = row.get("CidrBlockState", {}).get("State") == "associated"
            if associated and wanted.overlaps(ipaddress.ip_network(row["CidrBlock"])):
                # AWS's exact words are not documented; the code is
                raise refusal(
                    "InvalidVpc.Range",
                    f"The CIDR '{block}' overlaps the block '{row['CidrBlock']}' of the vpc '{vpc_id}'.",
                    "AssociateVpcCidrBlock",
                )

    @staticmethod
    def _refuse_restricted(client: Any, vpc_id: str, block: str) -> None:
        """AWS adds no block of another private range than the first one's; moto adds any."""
        primary = client.describe_vpcs(VpcIds=[vpc_id])["Vpcs"][0]["CidrBlock"]
        wanted = ipaddress.ip_network(block)
        if any(wanted.overlaps(ipaddress.ip_network(each)) for each in restricted_beside(primary)):
            raise refusal(
                "InvalidVpc.Range",
                f"The CIDR '{block}' is restricted. Use a CIDR from the same private address range as the current "
                "VPC CIDR, or use a publicly-routable CIDR.",
                "AssociateVpcCidrBlock",
            )

    @staticmethod
    def _refuse_used(client: Any, vpc_id: str, block: str) -> None:
        blocks = ipaddress.ip_network(block)
        subnets = client.describe_subnets(Filters=[{"Name": "vpc-id", "Values": [vpc_id]}])["Subnets"]
        if any(blocks.overlaps(ipaddress.ip_network(subnet["CidrBlock"])) for subnet in subnets):
            raise refusal(
                "DependencyViolation",
                f"The vpc '{vpc_id}' has dependencies and cannot be deleted.",
                "DisassociateVpcCidrBlock",
            )


@handles("AWS::EC2::Subnet")
class Subnet(ResourceHandler):
    """A subnet. `Ref` is its id."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        self._refuse_outside(request)
        self._refuse_foreign_zone(request)
        subnet = call(
            client_of(request),
            "create_subnet",
            take(
                request.properties,
                "VpcId",
                "CidrBlock",
                "AvailabilityZone",
                "AvailabilityZoneId",
                "Ipv6CidrBlock",
                "Ipv6Native",
                "OutpostArn",
            )
            | tag_specifications(request, "subnet"),
        )["Subnet"]
        self._set_attributes(request, subnet["SubnetId"], everything=True)
        return self._result(request, subnet["SubnetId"])

    def update(self, request: ResourceRequest) -> ResourceResult:
        self._set_attributes(request, request.existing_id, everything=False)
        retag_by_ec2(request)
        return self._result(request, request.existing_id)

    def delete(self, request: ResourceRequest) -> None:
        client, subnet_id = client_of(request), request.existing_id
        with ignoring("InvalidSubnetID.NotFound"):
            client.delete_subnet(SubnetId=subnet_id)

    @staticmethod
    def _refuse_outside(request: ResourceRequest) -> None:
        """A subnet's block must lie inside one block of its VPC; moto accepts any that touches one."""
        block, vpc_id = request.properties.get("CidrBlock"), request.properties["VpcId"]
        if not block:
            return
        _refuse_size(block, "InvalidSubnet.Range", "CreateSubnet")
        wanted = ipaddress.ip_network(block, strict=False)
        vpc = client_of(request).describe_vpcs(VpcIds=[vpc_id])["Vpcs"][0]
        blocks = [
            ipaddress.ip_network(row["CidrBlock"])
            for row in vpc["CidrBlockAssociationSet"]
            if row.get("CidrBlockState", {}).get("State") == "associated"
        ]
        if not any(_inside(wanted, outer) for outer in blocks):
            raise refusal("InvalidSubnet.Range", f"The CIDR '{block}' is invalid.", "CreateSubnet")

    @staticmethod
    def _refuse_foreign_zone(request: ResourceRequest) -> None:
        """The zone must be one of this region; moto takes the ID of any region's."""
        for name, member in (("AvailabilityZoneId", "ZoneId"), ("AvailabilityZone", "ZoneName")):
            wanted = request.properties.get(name)
            zones = client_of(request).describe_availability_zones()["AvailabilityZones"] if wanted else []
            offered = sorted(str(zone[member]) for zone in zones)
            if wanted and wanted not in offered:
                raise refusal(
                    "InvalidParameterValue",
                    f"Value ({wanted}) for parameter {name[0].lower()}{name[1:]} is invalid. Subnets can currently "
                    f"only be created in the following availability zones: {', '.join(offered)}.",
                    "CreateSubnet",
                )

    @staticmethod
    def _set_attributes(request: ResourceRequest, subnet_id: str, *, everything: bool) -> None:
        client, properties = client_of(request), request.properties
        for name in ("MapPublicIpOnLaunch", "AssignIpv6AddressOnCreation", "EnableDns64"):
            wanted = name in properties if everything else changed(request, name)
            if wanted:
                client.modify_subnet_attribute(
                    SubnetId=subnet_id, **{name: {"Value": is_true(properties.get(name, False))}}
                )

    @staticmethod
    def _result(request: ResourceRequest, subnet_id: str) -> ResourceResult:
        client = client_of(request)
        subnet = client.describe_subnets(SubnetIds=[subnet_id])["Subnets"][0]
        acls = client.describe_network_acls(Filters=[{"Name": "association.subnet-id", "Values": [subnet_id]}])[
            "NetworkAcls"
        ]
        acl_association = next(
            (
                association["NetworkAclAssociationId"]
                for acl in acls
                for association in acl["Associations"]
                if association["SubnetId"] == subnet_id
            ),
            "",
        )
        return ResourceResult(
            subnet_id,
            {
                "SubnetId": subnet_id,
                "VpcId": subnet["VpcId"],
                "CidrBlock": subnet.get("CidrBlock", ""),
                "AvailabilityZone": subnet["AvailabilityZone"],
                "AvailabilityZoneId": subnet["AvailabilityZoneId"],
                "Ipv6CidrBlocks": [row["Ipv6CidrBlock"] for row in subnet.get("Ipv6CidrBlockAssociationSet", [])],
                "NetworkAclAssociationId": acl_association,
                "OutpostArn": request.properties.get("OutpostArn", ""),
                "BlockPublicAccessStates": {"InternetGatewayBlockMode": "off"},
            },
        )


def _refuse_size(block: str, code: str, operation: str) -> None:
    """Blocks of VPCs and subnets are /16 to /28; moto minds that of a new VPC only."""
    if not is_block_size(block):
        raise refusal(code, f"The CIDR '{block}' is invalid.", operation)


def _inside(inner: Any, outer: Any) -> bool:
    return bool(inner.version == outer.version and inner.subnet_of(outer))


@handles("AWS::EC2::FlowLog")
class FlowLog(ResourceHandler):
    """A flow log. `Ref` is its id."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        answer = call(
            client_of(request),
            "create_flow_logs",
            take(
                request.properties,
                "ResourceType",
                "TrafficType",
                "DeliverLogsPermissionArn",
                "DeliverCrossAccountRole",
                "LogGroupName",
                "LogDestinationType",
                "LogDestination",
                "LogFormat",
                "MaxAggregationInterval",
                "DestinationOptions",
                ResourceIds="ResourceId",
            )
            | tag_specifications(request, "vpc-flow-log"),
        )
        if answer.get("Unsuccessful"):
            error = answer["Unsuccessful"][0]["Error"]
            raise refusal(error["Code"], error["Message"], "CreateFlowLogs")
        flow_log_id = answer["FlowLogIds"][0]
        return ResourceResult(flow_log_id, {"Id": flow_log_id})

    def update(self, request: ResourceRequest) -> ResourceResult:
        retag_by_ec2(request)
        return ResourceResult(request.existing_id, {"Id": request.existing_id})

    def delete(self, request: ResourceRequest) -> None:
        with ignoring("InvalidFlowLogId.NotFound"):
            client_of(request).delete_flow_logs(FlowLogIds=[request.existing_id])
