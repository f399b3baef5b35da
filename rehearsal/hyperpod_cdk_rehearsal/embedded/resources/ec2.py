"""AWS::EC2: the VPC, its subnets, routes, gateways, endpoints, flow logs, security groups and network ACLs."""

from __future__ import annotations

import ipaddress
from typing import Any

from hyperpod_cdk_rehearsal.embedded.moto_state import moto_state
from hyperpod_cdk_rehearsal.embedded.published.network import is_block_size, restricted_beside
from hyperpod_cdk_rehearsal.embedded.resources._calls import (
    as_list,
    call,
    changed,
    document,
    ignoring,
    is_true,
    refusal,
    retag,
    stack_tags,
    tag_list,
    take,
    undone_by,
)
from hyperpod_cdk_rehearsal.embedded.resources.registry import (
    HandlerError,
    ResourceHandler,
    ResourceRequest,
    ResourceResult,
    handles,
)

ROUTE_TARGETS = (
    "CarrierGatewayId",
    "CoreNetworkArn",
    "EgressOnlyInternetGatewayId",
    "GatewayId",
    "InstanceId",
    "LocalGatewayId",
    "NatGatewayId",
    "NetworkInterfaceId",
    "TransitGatewayId",
    "VpcEndpointId",
    "VpcPeeringConnectionId",
)
ROUTE_DESTINATIONS = ("DestinationCidrBlock", "DestinationIpv6CidrBlock", "DestinationPrefixListId")
ANY_IPV4 = "0.0.0.0/0"
NAT_POLL_SECONDS = 2.0
NAT_POLLS = 150

GATEWAY_SERVICES = ("dynamodb", "s3", "s3express")
"""Last parts of the names of the services that have gateway endpoints (VPC guide)."""


def _client(request: ResourceRequest) -> Any:
    return request.context.client("ec2")


def _tag_specifications(request: ResourceRequest, resource_type: str) -> dict[str, Any]:
    tags = [*tag_list(request.properties.get("Tags")), *stack_tags(request)]
    return {"TagSpecifications": [{"ResourceType": resource_type, "Tags": tags}]}


def _retag(request: ResourceRequest, resource_id: str | None = None) -> None:
    client = _client(request)
    target = resource_id or request.existing_id
    retag(
        request,
        add=lambda tags: client.create_tags(Resources=[target], Tags=tag_list(tags)),
        remove=lambda keys: client.delete_tags(Resources=[target], Tags=[{"Key": key} for key in keys]),
    )


@handles("AWS::EC2::VPC")
class Vpc(ResourceHandler):
    """A VPC. `Ref` is its id."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        vpc = call(
            _client(request),
            "create_vpc",
            take(request.properties, "CidrBlock", "InstanceTenancy", "Ipv4IpamPoolId", "Ipv4NetmaskLength")
            | _tag_specifications(request, "vpc"),
        )["Vpc"]
        self._set_dns(request, vpc["VpcId"])
        return self._result(request, vpc["VpcId"])

    def update(self, request: ResourceRequest) -> ResourceResult:
        self._set_dns(request, request.existing_id)
        if changed(request, "InstanceTenancy"):
            tenancy = request.properties.get("InstanceTenancy", "default")
            _client(request).modify_vpc_tenancy(VpcId=request.existing_id, InstanceTenancy=tenancy)
        _retag(request)
        return self._result(request, request.existing_id)

    def delete(self, request: ResourceRequest) -> None:
        client, vpc_id = _client(request), request.existing_id
        with ignoring("InvalidVpcID.NotFound"):
            client.delete_vpc(VpcId=vpc_id)

    @staticmethod
    def _set_dns(request: ResourceRequest, vpc_id: str) -> None:
        client, properties = _client(request), request.properties
        client.modify_vpc_attribute(
            VpcId=vpc_id, EnableDnsSupport={"Value": is_true(properties.get("EnableDnsSupport", True))}
        )
        client.modify_vpc_attribute(
            VpcId=vpc_id, EnableDnsHostnames={"Value": is_true(properties.get("EnableDnsHostnames", False))}
        )

    @staticmethod
    def _result(request: ResourceRequest, vpc_id: str) -> ResourceResult:
        client = _client(request)
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
        client, properties = _client(request), request.properties
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
        client = _client(request)
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
            _client(request),
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
            | _tag_specifications(request, "subnet"),
        )["Subnet"]
        self._set_attributes(request, subnet["SubnetId"], everything=True)
        return self._result(request, subnet["SubnetId"])

    def update(self, request: ResourceRequest) -> ResourceResult:
        self._set_attributes(request, request.existing_id, everything=False)
        _retag(request)
        return self._result(request, request.existing_id)

    def delete(self, request: ResourceRequest) -> None:
        client, subnet_id = _client(request), request.existing_id
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
        vpc = _client(request).describe_vpcs(VpcIds=[vpc_id])["Vpcs"][0]
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
            zones = _client(request).describe_availability_zones()["AvailabilityZones"] if wanted else []
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
        client, properties = _client(request), request.properties
        for name in ("MapPublicIpOnLaunch", "AssignIpv6AddressOnCreation", "EnableDns64"):
            wanted = name in properties if everything else changed(request, name)
            if wanted:
                client.modify_subnet_attribute(
                    SubnetId=subnet_id, **{name: {"Value": is_true(properties.get(name, False))}}
                )

    @staticmethod
    def _result(request: ResourceRequest, subnet_id: str) -> ResourceResult:
        client = _client(request)
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


@handles("AWS::EC2::RouteTable")
class RouteTable(ResourceHandler):
    """A route table. `Ref` is its id."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        table = call(
            _client(request),
            "create_route_table",
            take(request.properties, "VpcId") | _tag_specifications(request, "route-table"),
        )["RouteTable"]
        return self._result(table["RouteTableId"])

    def update(self, request: ResourceRequest) -> ResourceResult:
        _retag(request)
        return self._result(request.existing_id)

    def delete(self, request: ResourceRequest) -> None:
        with ignoring("InvalidRouteTableID.NotFound"):
            _client(request).delete_route_table(RouteTableId=request.existing_id)

    @staticmethod
    def _result(table_id: str) -> ResourceResult:
        return ResourceResult(table_id, {"RouteTableId": table_id})


@handles("AWS::EC2::SubnetRouteTableAssociation")
class SubnetRouteTableAssociation(ResourceHandler):
    """A subnet's route table. `Ref` is the association's id."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        answer = call(_client(request), "associate_route_table", take(request.properties, "SubnetId", "RouteTableId"))
        return ResourceResult(answer["AssociationId"], {"Id": answer["AssociationId"]})

    def delete(self, request: ResourceRequest) -> None:
        with ignoring("InvalidAssociationID.NotFound"):
            _client(request).disassociate_route_table(AssociationId=request.existing_id)


@handles("AWS::EC2::Route")
class Route(ResourceHandler):
    """A route. `Ref` is `<route table>|<destination>`."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        call(
            _client(request),
            "create_route",
            take(request.properties, "RouteTableId", *ROUTE_DESTINATIONS, *ROUTE_TARGETS),
        )
        return self._result(request)

    def update(self, request: ResourceRequest) -> ResourceResult:
        call(
            _client(request),
            "replace_route",
            take(request.properties, "RouteTableId", *ROUTE_DESTINATIONS, *ROUTE_TARGETS),
        )
        return self._result(request)

    def delete(self, request: ResourceRequest) -> None:
        with ignoring("InvalidRoute.NotFound", "InvalidRouteTableID.NotFound"):
            call(
                _client(request),
                "delete_route",
                take(request.properties, "RouteTableId", *ROUTE_DESTINATIONS),
            )

    @staticmethod
    def _result(request: ResourceRequest) -> ResourceResult:
        destination = next(request.properties[name] for name in ROUTE_DESTINATIONS if request.properties.get(name))
        return ResourceResult(f"{request.properties['RouteTableId']}|{destination}", {"CidrBlock": destination})


@handles("AWS::EC2::InternetGateway")
class InternetGateway(ResourceHandler):
    """An internet gateway. `Ref` is its id."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        gateway = call(_client(request), "create_internet_gateway", _tag_specifications(request, "internet-gateway"))[
            "InternetGateway"
        ]
        return self._result(gateway["InternetGatewayId"])

    def update(self, request: ResourceRequest) -> ResourceResult:
        _retag(request)
        return self._result(request.existing_id)

    def delete(self, request: ResourceRequest) -> None:
        with ignoring("InvalidInternetGatewayID.NotFound"):
            _client(request).delete_internet_gateway(InternetGatewayId=request.existing_id)

    @staticmethod
    def _result(gateway_id: str) -> ResourceResult:
        return ResourceResult(gateway_id, {"InternetGatewayId": gateway_id})


@handles("AWS::EC2::VPCGatewayAttachment")
class VpcGatewayAttachment(ResourceHandler):
    """An internet gateway's place in a VPC. `Ref` is `IGW|<vpc>`."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        client, properties = _client(request), request.properties
        if properties.get("VpnGatewayId"):
            call(client, "attach_vpn_gateway", take(properties, "VpcId", "VpnGatewayId"))
        else:
            call(client, "attach_internet_gateway", take(properties, "VpcId", "InternetGatewayId"))
        return self._result(request)

    def update(self, request: ResourceRequest) -> ResourceResult:
        self._detach(request, request.previous or {})
        return self.create(request)

    def delete(self, request: ResourceRequest) -> None:
        self._detach(request, request.properties)

    @staticmethod
    def _detach(request: ResourceRequest, properties: dict[str, Any]) -> None:
        client = _client(request)
        with ignoring("Gateway.NotAttached", "InvalidInternetGatewayID.NotFound", "InvalidVpnGatewayID.NotFound"):
            if properties.get("VpnGatewayId"):
                call(client, "detach_vpn_gateway", take(properties, "VpcId", "VpnGatewayId"))
            else:
                call(client, "detach_internet_gateway", take(properties, "VpcId", "InternetGatewayId"))

    @staticmethod
    def _result(request: ResourceRequest) -> ResourceResult:
        kind = "VGW" if request.properties.get("VpnGatewayId") else "IGW"
        return ResourceResult(f"{kind}|{request.properties['VpcId']}", {"AttachmentType": kind})


@handles("AWS::EC2::EIP")
class ElasticIp(ResourceHandler):
    """An Elastic IP address. `Ref` is the address."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        client = _client(request)
        address = call(
            client,
            "allocate_address",
            take(request.properties, "Address", "PublicIpv4Pool", "NetworkBorderGroup")
            | {"Domain": request.properties.get("Domain", "vpc")}
            | _tag_specifications(request, "elastic-ip"),
        )
        if request.properties.get("InstanceId"):
            client.associate_address(AllocationId=address["AllocationId"], InstanceId=request.properties["InstanceId"])
        return self._result(address)

    def update(self, request: ResourceRequest) -> ResourceResult:
        address = self._describe(request)
        _retag(request, address["AllocationId"])
        return self._result(address)

    def delete(self, request: ResourceRequest) -> None:
        with ignoring("InvalidAddress.NotFound", "InvalidAllocationID.NotFound"):
            address = self._describe(request)
            _client(request).release_address(AllocationId=address["AllocationId"])

    @staticmethod
    def _describe(request: ResourceRequest) -> dict[str, Any]:
        answer: dict[str, Any] = _client(request).describe_addresses(PublicIps=[request.existing_id])
        found: dict[str, Any] = answer["Addresses"][0]
        return found

    @staticmethod
    def _result(address: dict[str, Any]) -> ResourceResult:
        return ResourceResult(
            address["PublicIp"],
            {"PublicIp": address["PublicIp"], "AllocationId": address["AllocationId"]},
        )


@handles("AWS::EC2::NatGateway")
class NatGateway(ResourceHandler):
    """A NAT gateway. `Ref` is its id."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        gateway = call(
            _client(request),
            "create_nat_gateway",
            take(request.properties, "SubnetId", "AllocationId", "ConnectivityType", "PrivateIpAddress")
            | _tag_specifications(request, "natgateway"),
        )["NatGateway"]
        return self._stable(request, gateway["NatGatewayId"])

    def update(self, request: ResourceRequest) -> ResourceResult:
        _retag(request)
        return self._stable(request, request.existing_id)

    def delete(self, request: ResourceRequest) -> None:
        client, gateway_id = _client(request), request.existing_id
        with ignoring("NatGatewayNotFound", "InvalidNatGatewayID.NotFound"):
            gateways = client.describe_nat_gateways(NatGatewayIds=[gateway_id])["NatGateways"]
            for gateway in [row for row in gateways if row["State"] != "deleted"]:
                client.delete_nat_gateway(NatGatewayId=gateway_id)
                self._release_interfaces(client, gateway)

    @staticmethod
    def _release_interfaces(client: Any, gateway: dict[str, Any]) -> None:
        """The gateway's interfaces and its hold on the address go with it; moto keeps both."""
        for address in gateway.get("NatGatewayAddresses", []):
            with ignoring("InvalidAssociationID.NotFound", "InvalidNetworkInterfaceID.NotFound"):
                if address.get("NetworkInterfaceId"):
                    client.delete_network_interface(NetworkInterfaceId=address["NetworkInterfaceId"])

    @staticmethod
    def _stable(request: ResourceRequest, gateway_id: str) -> ResourceResult:
        client = _client(request)
        for _ in range(NAT_POLLS):
            gateway = client.describe_nat_gateways(NatGatewayIds=[gateway_id])["NatGateways"][0]
            if gateway["State"] == "available":
                addresses = gateway.get("NatGatewayAddresses", [])
                interface = addresses[0].get("NetworkInterfaceId", "") if addresses else ""
                return ResourceResult(gateway_id, {"NatGatewayId": gateway_id, "EniId": interface})
            if gateway["State"] == "failed":
                raise HandlerError(
                    "NotStabilized",
                    f"NatGateway {gateway_id} is in state failed and hence failed to stabilize. "
                    f"Detailed failure message: {gateway.get('FailureMessage', 'none given')}",
                )
            request.context.clock.sleep(NAT_POLL_SECONDS)
        raise HandlerError("NotStabilized", f"NatGateway {gateway_id} did not become available")


@handles("AWS::EC2::VPCEndpoint")
class VpcEndpoint(ResourceHandler):
    """A gateway or interface endpoint. `Ref` is its id."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        properties = request.properties
        self._refuse_unknown_gateway(properties)
        endpoint = call(
            _client(request),
            "create_vpc_endpoint",
            take(
                properties,
                "VpcId",
                "ServiceName",
                "PolicyDocument",
                "RouteTableIds",
                "SubnetIds",
                "SecurityGroupIds",
                "PrivateDnsEnabled",
                "IpAddressType",
            )
            | {"VpcEndpointType": properties.get("VpcEndpointType", "Gateway")}
            | _tag_specifications(request, "vpc-endpoint"),
        )["VpcEndpoint"]
        return self._result(request, endpoint["VpcEndpointId"])

    def update(self, request: ResourceRequest) -> ResourceResult:
        arguments: dict[str, Any] = {"VpcEndpointId": request.existing_id}
        for name, add, remove in (
            ("RouteTableIds", "AddRouteTableIds", "RemoveRouteTableIds"),
            ("SubnetIds", "AddSubnetIds", "RemoveSubnetIds"),
            ("SecurityGroupIds", "AddSecurityGroupIds", "RemoveSecurityGroupIds"),
        ):
            before = as_list((request.previous or {}).get(name))
            after = as_list(request.properties.get(name))
            arguments[add] = [item for item in after if item not in before] or None
            arguments[remove] = [item for item in before if item not in after] or None
        if changed(request, "PolicyDocument"):
            policy = request.properties.get("PolicyDocument")
            arguments |= {"PolicyDocument": document(policy)} if policy else {"ResetPolicy": True}
        if changed(request, "PrivateDnsEnabled"):
            arguments["PrivateDnsEnabled"] = request.properties.get("PrivateDnsEnabled", False)
        if len([value for value in arguments.values() if value is not None]) > 1:
            call(_client(request), "modify_vpc_endpoint", arguments)
        _retag(request)
        return self._result(request, request.existing_id)

    def delete(self, request: ResourceRequest) -> None:
        client, ids = _client(request), [request.existing_id]
        with ignoring("InvalidVpcEndpointId.NotFound", "InvalidVpcEndpoint.NotFound"):
            found = client.describe_vpc_endpoints(VpcEndpointIds=ids)["VpcEndpoints"]
            if any(endpoint["State"].lower() != "deleted" for endpoint in found):
                client.delete_vpc_endpoints(VpcEndpointIds=ids)

    @staticmethod
    def _refuse_unknown_gateway(properties: dict[str, Any]) -> None:
        """Few services have gateway endpoints; moto makes one for any name."""
        service = str(properties.get("ServiceName", ""))
        is_gateway = properties.get("VpcEndpointType", "Gateway") == "Gateway"
        if is_gateway and service.rpartition(".")[2] not in GATEWAY_SERVICES:
            message = f"The Vpc Endpoint Service '{service}' does not exist"
            raise refusal("InvalidServiceName", message, "CreateVpcEndpoint")

    @staticmethod
    def _result(request: ResourceRequest, endpoint_id: str) -> ResourceResult:
        endpoint = _client(request).describe_vpc_endpoints(VpcEndpointIds=[endpoint_id])["VpcEndpoints"][0]
        created = endpoint.get("CreationTimestamp") or request.context.clock.now()
        return ResourceResult(
            endpoint_id,
            {
                "Id": endpoint_id,
                "CreationTimestamp": created.isoformat(),
                "DnsEntries": [
                    f"{entry.get('HostedZoneId', '')}:{entry.get('DnsName', '')}"
                    for entry in endpoint.get("DnsEntries", [])
                ],
                "NetworkInterfaceIds": endpoint.get("NetworkInterfaceIds", []),
            },
        )


@handles("AWS::EC2::FlowLog")
class FlowLog(ResourceHandler):
    """A flow log. `Ref` is its id."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        answer = call(
            _client(request),
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
            | _tag_specifications(request, "vpc-flow-log"),
        )
        if answer.get("Unsuccessful"):
            error = answer["Unsuccessful"][0]["Error"]
            raise refusal(error["Code"], error["Message"], "CreateFlowLogs")
        flow_log_id = answer["FlowLogIds"][0]
        return ResourceResult(flow_log_id, {"Id": flow_log_id})

    def update(self, request: ResourceRequest) -> ResourceResult:
        _retag(request)
        return ResourceResult(request.existing_id, {"Id": request.existing_id})

    def delete(self, request: ResourceRequest) -> None:
        with ignoring("InvalidFlowLogId.NotFound"):
            _client(request).delete_flow_logs(FlowLogIds=[request.existing_id])


def _permission(rule: dict[str, Any]) -> dict[str, Any]:
    """One CloudFormation rule as the API's IpPermission."""
    description = take(rule, "Description")
    permission: dict[str, Any] = take(rule, "IpProtocol", "FromPort", "ToPort")
    if str(rule.get("IpProtocol")) == "-1":
        permission = {"IpProtocol": "-1"}
    group = rule.get("SourceSecurityGroupId") or rule.get("DestinationSecurityGroupId")
    prefix_list = rule.get("SourcePrefixListId") or rule.get("DestinationPrefixListId")
    if rule.get("CidrIp"):
        permission["IpRanges"] = [{"CidrIp": rule["CidrIp"]} | description]
    elif rule.get("CidrIpv6"):
        permission["Ipv6Ranges"] = [{"CidrIpv6": rule["CidrIpv6"]} | description]
    elif prefix_list:
        permission["PrefixListIds"] = [{"PrefixListId": prefix_list} | description]
    elif group:
        owner = take(rule, UserId="SourceSecurityGroupOwnerId")
        permission["UserIdGroupPairs"] = [{"GroupId": group} | owner | description]
    elif rule.get("SourceSecurityGroupName"):
        permission["UserIdGroupPairs"] = [{"GroupName": rule["SourceSecurityGroupName"]} | description]
    return permission


def _peer(rule: dict[str, Any]) -> str:
    """A rule as EC2 tells it in its messages."""
    peers = ("CidrIp", "CidrIpv6", "SourceSecurityGroupId", "DestinationSecurityGroupId")
    peer = next((str(rule[name]) for name in peers if rule.get(name)), "")
    protocol = str(rule["IpProtocol"])
    if protocol == "-1":
        return f"peer: {peer}, ALL, ALLOW"
    ports = f"from port: {rule.get('FromPort')}, to port: {rule.get('ToPort')}"
    return f"peer: {peer}, {protocol.upper()}, {ports}, ALLOW"


def _matching_rule_ids(client: Any, group_id: str, rule: dict[str, Any], *, egress: bool) -> list[str]:
    """Ids of a group's rules that say what one CloudFormation rule says, its description apart."""
    group = rule.get("SourceSecurityGroupId") or rule.get("DestinationSecurityGroupId")
    prefix_list = rule.get("SourcePrefixListId") or rule.get("DestinationPrefixListId")
    protocol = str(rule["IpProtocol"])
    ports = [-1, -1] if protocol == "-1" else [int(rule.get("FromPort", -1)), int(rule.get("ToPort", -1))]
    wanted = [protocol, *ports, rule.get("CidrIp"), rule.get("CidrIpv6"), prefix_list, group]
    found = client.describe_security_group_rules(Filters=[{"Name": "group-id", "Values": [group_id]}])
    return [
        row["SecurityGroupRuleId"]
        for row in found["SecurityGroupRules"]
        if row["IsEgress"] is egress
        and wanted
        == [
            row["IpProtocol"],
            row.get("FromPort", -1),
            row.get("ToPort", -1),
            row.get("CidrIpv4"),
            row.get("CidrIpv6"),
            row.get("PrefixListId"),
            row.get("ReferencedGroupInfo", {}).get("GroupId"),
        ]
    ]


@handles("AWS::EC2::SecurityGroup")
class SecurityGroup(ResourceHandler):
    """A security group with its inline rules. `Ref` is its id.

    EC2 gives every new group of a VPC an egress rule to 0.0.0.0/0; CloudFormation takes it away where the template
    states any `SecurityGroupEgress`, and gives it back when the template states none any more.
    """

    def create(self, request: ResourceRequest) -> ResourceResult:
        client, properties = _client(request), request.properties
        group_id = call(
            client,
            "create_security_group",
            take(properties, "VpcId", Description="GroupDescription")
            | {"GroupName": properties.get("GroupName") or request.generated_name(max_length=255)}
            | _tag_specifications(request, "security-group"),
        )["GroupId"]
        egress = as_list(properties.get("SecurityGroupEgress"))
        with undone_by(lambda: client.delete_security_group(GroupId=group_id)):
            if egress:
                self._revoke_default_egress(client, group_id)
                self._authorize(client, "egress", group_id, egress)
            self._authorize(client, "ingress", group_id, as_list(properties.get("SecurityGroupIngress")))
        return self._result(request, group_id)

    def update(self, request: ResourceRequest) -> ResourceResult:
        client, group_id, previous = _client(request), request.existing_id, request.previous or {}
        for direction, name in (("ingress", "SecurityGroupIngress"), ("egress", "SecurityGroupEgress")):
            before, after = as_list(previous.get(name)), as_list(request.properties.get(name))
            if direction == "egress" and after and not before:
                self._revoke_default_egress(client, group_id)
            self._revoke(client, direction, group_id, [rule for rule in before if rule not in after])
            self._authorize(client, direction, group_id, [rule for rule in after if rule not in before])
            if direction == "egress" and before and not after:
                self._authorize(client, direction, group_id, [{"IpProtocol": "-1", "CidrIp": ANY_IPV4}])
        _retag(request)
        return self._result(request, group_id)

    def delete(self, request: ResourceRequest) -> None:
        client, group_id = _client(request), request.existing_id
        with ignoring("InvalidGroup.NotFound"):
            client.delete_security_group(GroupId=group_id)

    @staticmethod
    def _revoke_default_egress(client: Any, group_id: str) -> None:
        with ignoring("InvalidPermission.NotFound"):
            client.revoke_security_group_egress(
                GroupId=group_id, IpPermissions=[{"IpProtocol": "-1", "IpRanges": [{"CidrIp": ANY_IPV4}]}]
            )

    @staticmethod
    def _authorize(client: Any, direction: str, group_id: str, rules: list[dict[str, Any]]) -> None:
        for rule in rules:
            call(
                client,
                f"authorize_security_group_{direction}",
                {"GroupId": group_id, "IpPermissions": [_permission(rule)]},
            )

    @staticmethod
    def _revoke(client: Any, direction: str, group_id: str, rules: list[dict[str, Any]]) -> None:
        for rule in rules:
            ids = _matching_rule_ids(client, group_id, rule, egress=direction == "egress")
            if ids:
                getattr(client, f"revoke_security_group_{direction}")(GroupId=group_id, SecurityGroupRuleIds=ids)

    @staticmethod
    def _result(request: ResourceRequest, group_id: str) -> ResourceResult:
        group = _client(request).describe_security_groups(GroupIds=[group_id])["SecurityGroups"][0]
        return ResourceResult(group_id, {"Id": group_id, "GroupId": group_id, "VpcId": group.get("VpcId", "")})


class _SecurityGroupRule(ResourceHandler):
    """A rule of its own. `Ref` is the rule's id."""

    direction: str

    def create(self, request: ResourceRequest) -> ResourceResult:
        self._refuse_duplicate(request)
        answer = call(
            _client(request),
            f"authorize_security_group_{self.direction}",
            take(request.properties, "GroupId", "GroupName") | {"IpPermissions": [_permission(request.properties)]},
        )
        return self._result(answer["SecurityGroupRules"][0]["SecurityGroupRuleId"])

    def update(self, request: ResourceRequest) -> ResourceResult:
        """Only the description can change; moto's own operation does not find a rule that names a group."""
        context = request.context
        with moto_state("ec2", context.account, context.region) as backend:
            group = backend.get_security_group_from_id(request.properties["GroupId"])
            rule = group.get_rule(request.existing_id) if group else None
            if rule is None:
                raise HandlerError("NotFound", f"The security group rule ID '{request.existing_id}' does not exist")
            peer = rule.source_group or rule.ip_range
            peer["Description"] = request.properties.get("Description", "")
        return self._result(request.existing_id)

    def delete(self, request: ResourceRequest) -> None:
        with ignoring("InvalidPermission.NotFound", "InvalidGroup.NotFound", "InvalidSecurityGroupRuleId.NotFound"):
            call(
                _client(request),
                f"revoke_security_group_{self.direction}",
                take(request.properties, "GroupId", "GroupName") | {"SecurityGroupRuleIds": [request.existing_id]},
            )

    def _refuse_duplicate(self, request: ResourceRequest) -> None:
        """A group has each rule once; moto minds that of some rules only."""
        rule, group_id = request.properties, request.properties.get("GroupId")
        egress = self.direction == "egress"
        if group_id and _matching_rule_ids(_client(request), group_id, rule, egress=egress):
            message = f'the specified rule "{_peer(rule)}" already exists'
            raise refusal("InvalidPermission.Duplicate", message, f"AuthorizeSecurityGroup{self.direction.title()}")

    @staticmethod
    def _result(rule_id: str) -> ResourceResult:
        return ResourceResult(rule_id, {"Id": rule_id})


@handles("AWS::EC2::SecurityGroupIngress")
class SecurityGroupIngress(_SecurityGroupRule):
    """An ingress rule of its own."""

    direction = "ingress"


@handles("AWS::EC2::SecurityGroupEgress")
class SecurityGroupEgress(_SecurityGroupRule):
    """An egress rule of its own; the group's default rule stays, as on AWS."""

    direction = "egress"


@handles("AWS::EC2::NetworkAcl")
class NetworkAcl(ResourceHandler):
    """A network ACL. `Ref` is its id."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        acl = call(
            _client(request),
            "create_network_acl",
            take(request.properties, "VpcId") | _tag_specifications(request, "network-acl"),
        )["NetworkAcl"]
        return self._result(acl["NetworkAclId"])

    def update(self, request: ResourceRequest) -> ResourceResult:
        _retag(request)
        return self._result(request.existing_id)

    def delete(self, request: ResourceRequest) -> None:
        with ignoring("InvalidNetworkAclID.NotFound"):
            _client(request).delete_network_acl(NetworkAclId=request.existing_id)

    @staticmethod
    def _result(acl_id: str) -> ResourceResult:
        return ResourceResult(acl_id, {"Id": acl_id})


@handles("AWS::EC2::NetworkAclEntry")
class NetworkAclEntry(ResourceHandler):
    """An entry of a network ACL. `Ref` is CloudFormation's own name for it."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        self._write(request, "create_network_acl_entry")
        entry_id = request.generated_name(max_length=255)
        return ResourceResult(entry_id, {"Id": entry_id})

    def update(self, request: ResourceRequest) -> ResourceResult:
        self._write(request, "replace_network_acl_entry")
        return ResourceResult(request.existing_id, {"Id": request.existing_id})

    def delete(self, request: ResourceRequest) -> None:
        with ignoring("InvalidNetworkAclEntry.NotFound", "InvalidNetworkAclID.NotFound"):
            if not self._stands(request):
                return
            call(
                _client(request),
                "delete_network_acl_entry",
                take(request.properties, "NetworkAclId", "RuleNumber")
                | {"Egress": request.properties.get("Egress", False)},
            )

    @staticmethod
    def _stands(request: ResourceRequest) -> bool:
        properties = request.properties
        acls = _client(request).describe_network_acls(NetworkAclIds=[properties["NetworkAclId"]])["NetworkAcls"]
        wanted = (int(properties["RuleNumber"]), is_true(properties.get("Egress", False)))
        return any((row["RuleNumber"], row["Egress"]) == wanted for acl in acls for row in acl["Entries"])

    @staticmethod
    def _write(request: ResourceRequest, method: str) -> None:
        call(
            _client(request),
            method,
            take(
                request.properties,
                "NetworkAclId",
                "RuleNumber",
                "Protocol",
                "RuleAction",
                "CidrBlock",
                "Ipv6CidrBlock",
                "PortRange",
                IcmpTypeCode="Icmp",
            )
            | {"Egress": request.properties.get("Egress", False)},
        )


@handles("AWS::EC2::SubnetNetworkAclAssociation")
class SubnetNetworkAclAssociation(ResourceHandler):
    """A subnet's network ACL. `Ref` is the association's id."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        association = self._point(request, request.properties["NetworkAclId"])
        return ResourceResult(association, {"AssociationId": association})

    def delete(self, request: ResourceRequest) -> None:
        client = _client(request)
        with ignoring("InvalidSubnetID.NotFound", "InvalidNetworkAclID.NotFound", "InvalidAssociationID.NotFound"):
            subnet = client.describe_subnets(SubnetIds=[request.properties["SubnetId"]])["Subnets"][0]
            default = client.describe_network_acls(
                Filters=[
                    {"Name": "vpc-id", "Values": [subnet["VpcId"]]},
                    {"Name": "default", "Values": ["true"]},
                ]
            )["NetworkAcls"][0]
            self._point(request, default["NetworkAclId"])

    @staticmethod
    def _point(request: ResourceRequest, acl_id: str) -> str:
        client, subnet_id = _client(request), request.properties["SubnetId"]
        acls = client.describe_network_acls(Filters=[{"Name": "association.subnet-id", "Values": [subnet_id]}])[
            "NetworkAcls"
        ]
        current = next(
            association["NetworkAclAssociationId"]
            for acl in acls
            for association in acl["Associations"]
            if association["SubnetId"] == subnet_id
        )
        answer = client.replace_network_acl_association(AssociationId=current, NetworkAclId=acl_id)
        return str(answer["NewAssociationId"])
