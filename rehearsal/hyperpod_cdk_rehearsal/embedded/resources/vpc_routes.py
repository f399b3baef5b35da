"""AWS::EC2: route tables, and the gateways and addresses that routes lead to."""

from __future__ import annotations

from typing import Any

from hyperpod_cdk_rehearsal.embedded.resources._calls import call, ignoring, take
from hyperpod_cdk_rehearsal.embedded.resources._ec2 import client_of, retag_by_ec2, tag_specifications
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
NAT_POLL_SECONDS = 2.0
NAT_POLLS = 150


@handles("AWS::EC2::RouteTable")
class RouteTable(ResourceHandler):
    """A route table. `Ref` is its id."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        table = call(
            client_of(request),
            "create_route_table",
            take(request.properties, "VpcId") | tag_specifications(request, "route-table"),
        )["RouteTable"]
        return self._result(table["RouteTableId"])

    def update(self, request: ResourceRequest) -> ResourceResult:
        retag_by_ec2(request)
        return self._result(request.existing_id)

    def delete(self, request: ResourceRequest) -> None:
        with ignoring("InvalidRouteTableID.NotFound"):
            client_of(request).delete_route_table(RouteTableId=request.existing_id)

    @staticmethod
    def _result(table_id: str) -> ResourceResult:
        return ResourceResult(table_id, {"RouteTableId": table_id})


@handles("AWS::EC2::SubnetRouteTableAssociation")
class SubnetRouteTableAssociation(ResourceHandler):
    """A subnet's route table. `Ref` is the association's id."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        answer = call(client_of(request), "associate_route_table", take(request.properties, "SubnetId", "RouteTableId"))
        return ResourceResult(answer["AssociationId"], {"Id": answer["AssociationId"]})

    def delete(self, request: ResourceRequest) -> None:
        with ignoring("InvalidAssociationID.NotFound"):
            client_of(request).disassociate_route_table(AssociationId=request.existing_id)


@handles("AWS::EC2::Route")
class Route(ResourceHandler):
    """A route. `Ref` is `<route table>|<destination>`."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        call(
            client_of(request),
            "create_route",
            take(request.properties, "RouteTableId", *ROUTE_DESTINATIONS, *ROUTE_TARGETS),
        )
        return self._result(request)

    def update(self, request: ResourceRequest) -> ResourceResult:
        call(
            client_of(request),
            "replace_route",
            take(request.properties, "RouteTableId", *ROUTE_DESTINATIONS, *ROUTE_TARGETS),
        )
        return self._result(request)

    def delete(self, request: ResourceRequest) -> None:
        with ignoring("InvalidRoute.NotFound", "InvalidRouteTableID.NotFound"):
            call(
                client_of(request),
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
        gateway = call(client_of(request), "create_internet_gateway", tag_specifications(request, "internet-gateway"))[
            "InternetGateway"
        ]
        return self._result(gateway["InternetGatewayId"])

    def update(self, request: ResourceRequest) -> ResourceResult:
        retag_by_ec2(request)
        return self._result(request.existing_id)

    def delete(self, request: ResourceRequest) -> None:
        with ignoring("InvalidInternetGatewayID.NotFound"):
            client_of(request).delete_internet_gateway(InternetGatewayId=request.existing_id)

    @staticmethod
    def _result(gateway_id: str) -> ResourceResult:
        return ResourceResult(gateway_id, {"InternetGatewayId": gateway_id})


@handles("AWS::EC2::VPCGatewayAttachment")
class VpcGatewayAttachment(ResourceHandler):
    """An internet gateway's place in a VPC. `Ref` is `IGW|<vpc>`."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        client, properties = client_of(request), request.properties
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
        client = client_of(request)
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
        client = client_of(request)
        address = call(
            client,
            "allocate_address",
            take(request.properties, "Address", "PublicIpv4Pool", "NetworkBorderGroup")
            | {"Domain": request.properties.get("Domain", "vpc")}
            | tag_specifications(request, "elastic-ip"),
        )
        if request.properties.get("InstanceId"):
            client.associate_address(AllocationId=address["AllocationId"], InstanceId=request.properties["InstanceId"])
        return self._result(address)

    def update(self, request: ResourceRequest) -> ResourceResult:
        address = self._describe(request)
        retag_by_ec2(request, address["AllocationId"])
        return self._result(address)

    def delete(self, request: ResourceRequest) -> None:
        with ignoring("InvalidAddress.NotFound", "InvalidAllocationID.NotFound"):
            address = self._describe(request)
            client_of(request).release_address(AllocationId=address["AllocationId"])

    @staticmethod
    def _describe(request: ResourceRequest) -> dict[str, Any]:
        answer: dict[str, Any] = client_of(request).describe_addresses(PublicIps=[request.existing_id])
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
            client_of(request),
            "create_nat_gateway",
            take(request.properties, "SubnetId", "AllocationId", "ConnectivityType", "PrivateIpAddress")
            | tag_specifications(request, "natgateway"),
        )["NatGateway"]
        return self._stable(request, gateway["NatGatewayId"])

    def update(self, request: ResourceRequest) -> ResourceResult:
        retag_by_ec2(request)
        return self._stable(request, request.existing_id)

    def delete(self, request: ResourceRequest) -> None:
        client, gateway_id = client_of(request), request.existing_id
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
        client = client_of(request)
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
