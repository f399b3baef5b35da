"""AWS::EC2: the endpoints of a VPC."""

from __future__ import annotations

from typing import Any

from hyperpod_cdk_rehearsal.embedded.resources._calls import as_list, call, changed, document, ignoring, refusal, take
from hyperpod_cdk_rehearsal.embedded.resources._ec2 import client_of, retag_by_ec2, tag_specifications
from hyperpod_cdk_rehearsal.embedded.resources.registry import ResourceHandler, ResourceRequest, ResourceResult, handles

GATEWAY_SERVICES = ("dynamodb", "s3", "s3express")
"""Last parts of the names of the services that have gateway endpoints (VPC guide)."""


@handles("AWS::EC2::VPCEndpoint")
class VpcEndpoint(ResourceHandler):
    """A gateway or interface endpoint. `Ref` is its id."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        properties = request.properties
        self._refuse_unknown_gateway(properties)
        endpoint = call(
            client_of(request),
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
            | tag_specifications(request, "vpc-endpoint"),
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
            call(client_of(request), "modify_vpc_endpoint", arguments)
        retag_by_ec2(request)
        return self._result(request, request.existing_id)

    def delete(self, request: ResourceRequest) -> None:
        client, ids = client_of(request), [request.existing_id]
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
        endpoint = client_of(request).describe_vpc_endpoints(VpcEndpointIds=[endpoint_id])["VpcEndpoints"][0]
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
