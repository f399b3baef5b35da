"""EC2's data about the network in a request: subnets, routes, endpoints, security group rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

from hyperpod_cdk_rehearsal.embedded.context import Context

ALL_TRAFFIC = "-1"
ANYWHERE = "0.0.0.0/0"
HTTPS = (443, 443)

CLOSED_NETWORK_ENDPOINTS = (
    "ec2",
    "ecr.api",
    "ecr.dkr",
    "eks-auth",
    "logs",
    "sagemaker.api",
    "ssm",
    "ssmmessages",
    "sts",
)
"""Interface endpoints that let nodes live without a route to a NAT gateway."""


@dataclass
class Network:
    """One request's look at EC2; what was read once is not read again."""

    context: Context
    _subnets: dict[str, dict[str, Any] | None] = field(default_factory=dict)
    _groups: dict[str, dict[str, Any] | None] = field(default_factory=dict)
    _tables: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    _endpoints: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def subnet(self, subnet_id: str) -> dict[str, Any] | None:
        """The subnet as DescribeSubnets gives it, None where there is none."""
        if subnet_id not in self._subnets:
            found = self._describe("describe_subnets", "Subnets", SubnetIds=[subnet_id])
            self._subnets[subnet_id] = found[0] if found else None
        return self._subnets[subnet_id]

    def security_group(self, group_id: str) -> dict[str, Any] | None:
        """The security group as DescribeSecurityGroups gives it, None where there is none."""
        if group_id not in self._groups:
            found = self._describe("describe_security_groups", "SecurityGroups", GroupIds=[group_id])
            self._groups[group_id] = found[0] if found else None
        return self._groups[group_id]

    def routes(self, subnet: Mapping[str, Any]) -> tuple[str | None, list[dict[str, Any]]]:
        """The subnet's route table id and its routes; the VPC's main table where the subnet has none of its own."""
        vpc_id = subnet["VpcId"]
        if vpc_id not in self._tables:
            self._tables[vpc_id] = self._describe(
                "describe_route_tables", "RouteTables", Filters=_filter("vpc-id", vpc_id)
            )
        tables = self._tables[vpc_id]
        own = [table for table in tables if subnet["SubnetId"] in _associated(table)]
        main = [table for table in tables if any(link.get("Main") for link in table.get("Associations", []))]
        chosen = next(iter([*own, *main]), None)
        return (chosen["RouteTableId"], chosen["Routes"]) if chosen else (None, [])

    def endpoints(self, vpc_id: str) -> list[dict[str, Any]]:
        """The VPC's endpoints; one that was deleted is listed for a while, but serves nobody."""
        if vpc_id not in self._endpoints:
            found = self._describe("describe_vpc_endpoints", "VpcEndpoints", Filters=_filter("vpc-id", vpc_id))
            self._endpoints[vpc_id] = [
                endpoint for endpoint in found if endpoint.get("State", "").lower() not in {"deleting", "deleted"}
            ]
        return self._endpoints[vpc_id]

    def is_public(self, subnet: Mapping[str, Any]) -> bool:
        """Whether a route leads to an internet gateway."""
        return any(str(route.get("GatewayId", "")).startswith("igw-") for route in self.routes(subnet)[1])

    def reaches_s3(self, subnet: Mapping[str, Any]) -> bool:
        """Whether an S3 gateway endpoint serves the subnet's route table."""
        table_id, _ = self.routes(subnet)
        return any(
            endpoint.get("VpcEndpointType", "Gateway") == "Gateway"
            and endpoint["ServiceName"].endswith(".s3")
            and table_id in endpoint.get("RouteTableIds", [])
            for endpoint in self.endpoints(subnet["VpcId"])
        )

    def reaches_aws(self, subnet: Mapping[str, Any]) -> bool:
        """Whether nodes there reach AWS's services: a default route (NAT, transit gateway), or endpoints for all."""
        _, routes = self.routes(subnet)
        ways_out = ("NatGatewayId", "TransitGatewayId", "NetworkInterfaceId", "InstanceId")
        if any(route.get("DestinationCidrBlock") == ANYWHERE and any(map(route.get, ways_out)) for route in routes):
            return True
        names = [endpoint["ServiceName"] for endpoint in self.endpoints(subnet["VpcId"])]
        return all(any(name.endswith(f".{service}") for name in names) for service in CLOSED_NETWORK_ENDPOINTS)

    def allows_itself(self, group_id: str) -> bool:
        """Whether the group names itself, for all traffic, in a rule inwards and in a rule outwards."""
        group = self.security_group(group_id)
        if group is None:
            return False
        directions = (group.get("IpPermissions", []), group.get("IpPermissionsEgress", []))
        return all(_names_itself(permissions, group_id) for permissions in directions)

    def lets_out(self, group_ids: Iterable[str]) -> bool:
        """Whether any of the groups allows HTTPS to addresses or a prefix list: nodes without that reach no service."""
        groups = [group for each in group_ids if (group := self.security_group(each))]
        permissions = [row for group in groups for row in group.get("IpPermissionsEgress", [])]
        return any(_covers(row, HTTPS) and (row.get("IpRanges") or row.get("PrefixListIds")) for row in permissions)

    def admits(self, group_id: str, ports: tuple[int, int], sources: Iterable[str]) -> bool:
        """Whether the group lets TCP on all of a port range in from one of these groups, or from any address."""
        group = self.security_group(group_id)
        permissions = group.get("IpPermissions", []) if group else []
        return any(_covers(permission, ports) and _names(permission, sources) for permission in permissions)

    def sends(self, group_id: str, ports: tuple[int, int], targets: Iterable[str]) -> bool:
        """Whether the group lets TCP on all of a port range out to one of these groups, or to any address."""
        group = self.security_group(group_id)
        permissions = group.get("IpPermissionsEgress", []) if group else []
        return any(_covers(permission, ports) and _names(permission, targets) for permission in permissions)

    def _describe(self, method: str, key: str, **arguments: Any) -> list[dict[str, Any]]:
        try:
            found: list[dict[str, Any]] = getattr(self.context.client("ec2"), method)(**arguments)[key]
        except ClientError:
            return []
        return found


def _filter(name: str, value: str) -> list[dict[str, Any]]:
    return [{"Name": name, "Values": [value]}]


def _associated(table: Mapping[str, Any]) -> set[str]:
    return {link["SubnetId"] for link in table.get("Associations", []) if link.get("SubnetId")}


def _names_itself(permissions: Iterable[Mapping[str, Any]], group_id: str) -> bool:
    return any(
        permission.get("IpProtocol") == ALL_TRAFFIC
        and any(pair.get("GroupId") == group_id for pair in permission.get("UserIdGroupPairs", []))
        for permission in permissions
    )


def _covers(permission: Mapping[str, Any], ports: tuple[int, int]) -> bool:
    if permission.get("IpProtocol") == ALL_TRAFFIC:
        return True
    lowest, highest = permission.get("FromPort", 0), permission.get("ToPort", 65535)
    return permission.get("IpProtocol") in {"tcp", "6"} and lowest <= ports[0] and ports[1] <= highest


def _names(permission: Mapping[str, Any], groups: Iterable[str]) -> bool:
    wanted = set(groups)
    return bool(permission.get("IpRanges")) or any(
        pair.get("GroupId") in wanted for pair in permission.get("UserIdGroupPairs", [])
    )
