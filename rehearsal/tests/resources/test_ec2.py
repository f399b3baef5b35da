"""The network types, seen through EC2's own describe operations."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from botocore.exceptions import ClientError

SELF_TRAFFIC = "-1"
EGRESS = "AWS::EC2::SecurityGroupEgress"


def message(error: pytest.ExceptionInfo[ClientError]) -> str:
    return str(error.value).partition(" operation: ")[2]


NIL = "00000000-0000-0000-0000-000000000000"


@pytest.fixture
def vpc(stack: Any) -> Any:
    return stack.create("AWS::EC2::VPC", {"CidrBlock": "10.192.0.0/16"})


@pytest.fixture
def subnet(stack: Any, vpc: Any) -> Any:
    properties = {"VpcId": vpc.physical_id, "CidrBlock": "10.192.0.0/20", "AvailabilityZoneId": "use1-az4"}
    return stack.create("AWS::EC2::Subnet", properties)


class TestVpc:
    def test_create_shows_in_describe(self, stack: Any, described: Callable[..., dict[str, str]]) -> None:
        result = stack.create(
            "AWS::EC2::VPC",
            {
                "CidrBlock": "10.192.0.0/16",
                "EnableDnsHostnames": "true",
                "EnableDnsSupport": True,
                "Tags": [{"Key": "Name", "Value": "prod"}],
            },
        )
        client = stack.context.client("ec2")
        vpc = client.describe_vpcs(VpcIds=[result.physical_id])["Vpcs"][0]
        hostnames = client.describe_vpc_attribute(VpcId=result.physical_id, Attribute="enableDnsHostnames")
        assert vpc["CidrBlock"] == "10.192.0.0/16"
        assert described(vpc["Tags"]) == {
            "Name": "prod",
            "aws:cloudformation:stack-name": "prod",
            "aws:cloudformation:stack-id": f"arn:aws:cloudformation:us-east-1:123456789012:stack/prod/{NIL}",
            "aws:cloudformation:logical-id": "Resource1",
        }
        assert hostnames["EnableDnsHostnames"] == {"Value": True}
        assert result.attributes["VpcId"] == result.physical_id
        assert result.attributes["DefaultSecurityGroup"].startswith("sg-")
        assert result.attributes["DefaultNetworkAcl"].startswith("acl-")
        assert len(result.attributes["CidrBlockAssociations"]) == 1

    def test_update_changes_dns_and_tags(self, stack: Any, vpc: Any, described: Callable[..., dict[str, str]]) -> None:
        stack.update(vpc.physical_id, EnableDnsHostnames=True, Tags=[{"Key": "team", "Value": "ml"}])
        client = stack.context.client("ec2")

        def tags() -> dict[str, str]:
            return described(client.describe_vpcs(VpcIds=[vpc.physical_id])["Vpcs"][0]["Tags"])

        hostnames = client.describe_vpc_attribute(VpcId=vpc.physical_id, Attribute="enableDnsHostnames")
        assert hostnames["EnableDnsHostnames"] == {"Value": True}
        clouds_own = {name: value for name, value in tags().items() if name.startswith("aws:cloudformation:")}
        assert len(clouds_own) == 3
        assert tags() == {"team": "ml", **clouds_own}
        stack.update(vpc.physical_id, Tags=None)
        assert tags() == clouds_own

    def test_delete_refuses_while_a_subnet_stands(self, stack: Any, vpc: Any, subnet: Any) -> None:
        with pytest.raises(ClientError) as error:
            stack.delete(vpc.physical_id)
        assert message(error) == f"The vpc '{vpc.physical_id}' has dependencies and cannot be deleted."
        stack.delete(subnet.physical_id)
        stack.delete(vpc.physical_id)
        stack.delete(vpc.physical_id)

    def test_a_secondary_block_takes_subnets(self, stack: Any, vpc: Any) -> None:
        block = stack.create("AWS::EC2::VPCCidrBlock", {"VpcId": vpc.physical_id, "CidrBlock": "10.4.0.0/16"})
        assert block.physical_id.startswith("vpc-cidr-assoc-")
        assert block.attributes["Id"] == block.physical_id
        made = stack.create(
            "AWS::EC2::Subnet",
            {"VpcId": vpc.physical_id, "CidrBlock": "10.4.0.0/16", "AvailabilityZoneId": "use1-az5"},
        )
        with pytest.raises(ClientError) as error:
            stack.delete(block.physical_id)
        assert message(error) == f"The vpc '{vpc.physical_id}' has dependencies and cannot be deleted."
        stack.delete(made.physical_id)
        stack.delete(block.physical_id)
        stack.delete(block.physical_id)

    @pytest.mark.parametrize("block", ["10.192.0.0/16", "10.192.128.0/17"])
    def test_a_secondary_block_must_not_overlap(self, stack: Any, vpc: Any, block: str) -> None:
        with pytest.raises(ClientError) as error:
            stack.create("AWS::EC2::VPCCidrBlock", {"VpcId": vpc.physical_id, "CidrBlock": block})
        assert "(InvalidVpc.Range)" in str(error.value)

    def test_a_block_of_another_private_range_is_restricted(self, stack: Any, vpc: Any) -> None:
        with pytest.raises(ClientError) as error:
            stack.create("AWS::EC2::VPCCidrBlock", {"VpcId": vpc.physical_id, "CidrBlock": "192.168.0.0/16"})
        assert message(error) == (
            "The CIDR '192.168.0.0/16' is restricted. Use a CIDR from the same private address range as the current "
            "VPC CIDR, or use a publicly-routable CIDR."
        )


class TestSubnet:
    def test_the_zone_id_decides(self, stack: Any, subnet: Any) -> None:
        seen = stack.context.client("ec2").describe_subnets(SubnetIds=[subnet.physical_id])["Subnets"][0]
        assert seen["AvailabilityZoneId"] == "use1-az4"
        assert subnet.attributes["AvailabilityZoneId"] == "use1-az4"
        assert subnet.attributes["AvailabilityZone"] == seen["AvailabilityZone"]
        assert subnet.attributes["CidrBlock"] == "10.192.0.0/20"
        assert subnet.attributes["NetworkAclAssociationId"].startswith("aclassoc-")

    @pytest.mark.parametrize("block", ["10.193.0.0/20", "10.0.0.0/8"])
    def test_the_block_must_lie_in_the_vpc(self, stack: Any, vpc: Any, block: str) -> None:
        properties = {"VpcId": vpc.physical_id, "CidrBlock": block, "AvailabilityZoneId": "use1-az4"}
        with pytest.raises(ClientError) as error:
            stack.create("AWS::EC2::Subnet", properties)
        assert message(error) == f"The CIDR '{block}' is invalid."

    def test_two_subnets_must_not_overlap(self, stack: Any, vpc: Any, subnet: Any) -> None:
        properties = {"VpcId": vpc.physical_id, "CidrBlock": "10.192.8.0/24", "AvailabilityZoneId": "use1-az4"}
        with pytest.raises(ClientError) as error:
            stack.create("AWS::EC2::Subnet", properties)
        assert subnet.physical_id
        assert message(error) == "The CIDR '10.192.8.0/24' conflicts with another subnet"

    def test_an_unknown_zone_id_is_refused(self, stack: Any, vpc: Any) -> None:
        properties = {"VpcId": vpc.physical_id, "CidrBlock": "10.192.0.0/20", "AvailabilityZoneId": "use1-az99"}
        with pytest.raises(ClientError):
            stack.create("AWS::EC2::Subnet", properties)

    def test_public_addresses_are_switched_in_place(self, stack: Any, subnet: Any) -> None:
        stack.update(subnet.physical_id, MapPublicIpOnLaunch=True)
        client = stack.context.client("ec2")
        assert client.describe_subnets(SubnetIds=[subnet.physical_id])["Subnets"][0]["MapPublicIpOnLaunch"]
        stack.update(subnet.physical_id, MapPublicIpOnLaunch=None)
        assert not client.describe_subnets(SubnetIds=[subnet.physical_id])["Subnets"][0]["MapPublicIpOnLaunch"]

    def test_an_interface_keeps_the_subnet(self, stack: Any, subnet: Any) -> None:
        client = stack.context.client("ec2")
        interface = client.create_network_interface(SubnetId=subnet.physical_id)["NetworkInterface"]
        with pytest.raises(ClientError) as error:
            stack.delete(subnet.physical_id)
        assert message(error) == f"The subnet '{subnet.physical_id}' has dependencies and cannot be deleted."
        client.delete_network_interface(NetworkInterfaceId=interface["NetworkInterfaceId"])
        stack.delete(subnet.physical_id)
        stack.delete(subnet.physical_id)


class TestRouting:
    def test_nat_route_and_gateway_endpoint(self, stack: Any, vpc: Any, subnet: Any) -> None:
        client = stack.context.client("ec2")
        gateway = stack.create("AWS::EC2::InternetGateway", {})
        attachment = stack.create(
            "AWS::EC2::VPCGatewayAttachment",
            {"VpcId": vpc.physical_id, "InternetGatewayId": gateway.physical_id},
        )
        address = stack.create("AWS::EC2::EIP", {"Domain": "vpc"})
        nat = stack.create(
            "AWS::EC2::NatGateway",
            {"SubnetId": subnet.physical_id, "AllocationId": address.attributes["AllocationId"]},
        )
        table = stack.create("AWS::EC2::RouteTable", {"VpcId": vpc.physical_id})
        route = stack.create(
            "AWS::EC2::Route",
            {
                "RouteTableId": table.physical_id,
                "DestinationCidrBlock": "0.0.0.0/0",
                "NatGatewayId": nat.physical_id,
            },
        )
        association = stack.create(
            "AWS::EC2::SubnetRouteTableAssociation",
            {"SubnetId": subnet.physical_id, "RouteTableId": table.physical_id},
        )
        endpoint = stack.create(
            "AWS::EC2::VPCEndpoint",
            {
                "VpcId": vpc.physical_id,
                "ServiceName": "com.amazonaws.us-east-1.s3",
                "VpcEndpointType": "Gateway",
                "RouteTableIds": [table.physical_id],
            },
        )

        assert attachment.physical_id == f"IGW|{vpc.physical_id}"
        assert attachment.attributes == {"AttachmentType": "IGW"}
        assert address.physical_id == address.attributes["PublicIp"]
        assert nat.attributes["EniId"].startswith("eni-")
        assert route.physical_id == f"{table.physical_id}|0.0.0.0/0"
        assert association.physical_id.startswith("rtbassoc-")
        seen = client.describe_route_tables(RouteTableIds=[table.physical_id])["RouteTables"][0]
        assert [row["NatGatewayId"] for row in seen["Routes"] if row.get("NatGatewayId")] == [nat.physical_id]
        assert seen["Associations"][0]["SubnetId"] == subnet.physical_id
        found = client.describe_vpc_endpoints(VpcEndpointIds=[endpoint.physical_id])["VpcEndpoints"][0]
        assert found["RouteTableIds"] == [table.physical_id]
        assert endpoint.attributes["Id"] == endpoint.physical_id

        with pytest.raises(ClientError) as error:
            stack.delete(attachment.physical_id)
        assert message(error).startswith(f"Network {vpc.physical_id} has some mapped public address(es).")
        made = (endpoint, association, route, table, nat, address, attachment, gateway, subnet, vpc)
        for resource in made:
            stack.delete(resource.physical_id)
        for resource in made:
            stack.delete(resource.physical_id)
        assert [row["VpcId"] for row in client.describe_vpcs()["Vpcs"] if not row["IsDefault"]] == []

    def test_a_route_is_replaced_in_place(self, stack: Any, vpc: Any) -> None:
        gateway = stack.create("AWS::EC2::InternetGateway", {})
        stack.create(
            "AWS::EC2::VPCGatewayAttachment",
            {"VpcId": vpc.physical_id, "InternetGatewayId": gateway.physical_id},
        )
        other = stack.create("AWS::EC2::InternetGateway", {})
        table = stack.create("AWS::EC2::RouteTable", {"VpcId": vpc.physical_id})
        route = stack.create(
            "AWS::EC2::Route",
            {
                "RouteTableId": table.physical_id,
                "DestinationCidrBlock": "0.0.0.0/0",
                "GatewayId": gateway.physical_id,
            },
        )
        stack.update(route.physical_id, GatewayId=other.physical_id)
        seen = stack.context.client("ec2").describe_route_tables(RouteTableIds=[table.physical_id])
        targets = [row.get("GatewayId") for row in seen["RouteTables"][0]["Routes"]]
        assert other.physical_id in targets

    def test_an_interface_endpoint_changes_its_groups(self, stack: Any, vpc: Any, subnet: Any) -> None:
        stack.update(vpc.physical_id, EnableDnsHostnames=True)
        groups = [
            stack.create("AWS::EC2::SecurityGroup", {"VpcId": vpc.physical_id, "GroupDescription": "endpoint"})
            for _ in range(2)
        ]
        endpoint = stack.create(
            "AWS::EC2::VPCEndpoint",
            {
                "VpcId": vpc.physical_id,
                "ServiceName": "com.amazonaws.us-east-1.sts",
                "VpcEndpointType": "Interface",
                "SubnetIds": [subnet.physical_id],
                "SecurityGroupIds": [groups[0].physical_id],
                "PrivateDnsEnabled": True,
            },
        )
        with pytest.raises(ClientError) as error:
            stack.delete(groups[0].physical_id)
        assert message(error) == f"resource {groups[0].physical_id} has a dependent object"
        stack.update(endpoint.physical_id, SecurityGroupIds=[groups[1].physical_id])
        client = stack.context.client("ec2")
        found = client.describe_vpc_endpoints(VpcEndpointIds=[endpoint.physical_id])["VpcEndpoints"][0]
        assert [group["GroupId"] for group in found["Groups"]] == [groups[1].physical_id]
        for resource in (endpoint, *groups):
            stack.delete(resource.physical_id)

    def test_a_flow_log_goes_to_its_log_group(self, stack: Any, vpc: Any, lambda_role: str) -> None:
        stack.create("AWS::Logs::LogGroup", {"LogGroupName": "flow"})
        flow_log = stack.create(
            "AWS::EC2::FlowLog",
            {
                "ResourceId": vpc.physical_id,
                "ResourceType": "VPC",
                "TrafficType": "ALL",
                "LogDestinationType": "cloud-watch-logs",
                "LogGroupName": "flow",
                "DeliverLogsPermissionArn": lambda_role,
                "MaxAggregationInterval": "600",
            },
        )
        client = stack.context.client("ec2")
        seen = client.describe_flow_logs(FlowLogIds=[flow_log.physical_id])["FlowLogs"][0]
        assert (seen["ResourceId"], seen["LogGroupName"]) == (vpc.physical_id, "flow")
        stack.delete(flow_log.physical_id)
        stack.delete(flow_log.physical_id)
        assert client.describe_flow_logs()["FlowLogs"] == []


class TestSecurityGroup:
    def group(self, stack: Any, vpc: Any, **properties: Any) -> Any:
        return stack.create(
            "AWS::EC2::SecurityGroup",
            {"VpcId": vpc.physical_id, "GroupDescription": "nodes", **properties},
        )

    def rules(self, stack: Any, group_id: str, *, egress: bool) -> list[dict[str, Any]]:
        found = stack.context.client("ec2").describe_security_group_rules(
            Filters=[{"Name": "group-id", "Values": [group_id]}]
        )["SecurityGroupRules"]
        return [rule for rule in found if rule["IsEgress"] is egress]

    def test_the_default_egress_rule_stays_where_none_is_given(self, stack: Any, vpc: Any) -> None:
        group = self.group(stack, vpc)
        rules = self.rules(stack, group.physical_id, egress=True)
        assert [(rule["IpProtocol"], rule["CidrIpv4"]) for rule in rules] == [("-1", "0.0.0.0/0")]
        assert group.attributes == {
            "Id": group.physical_id,
            "GroupId": group.physical_id,
            "VpcId": vpc.physical_id,
        }

    def test_a_group_of_a_vpc_that_does_not_exist_is_refused(self, stack: Any) -> None:
        properties = {"VpcId": "vpc-0123456789abcdef0", "GroupDescription": "nodes"}
        with pytest.raises(ClientError) as error:
            stack.create("AWS::EC2::SecurityGroup", properties)
        assert message(error) == "The vpc ID 'vpc-0123456789abcdef0' does not exist"

    def test_given_egress_takes_the_default_rule_away_for_good(self, stack: Any, vpc: Any) -> None:
        rule = {"IpProtocol": "tcp", "FromPort": "443", "ToPort": "443", "CidrIp": "10.0.0.0/8"}
        group = self.group(stack, vpc, SecurityGroupEgress=[rule])
        rules = self.rules(stack, group.physical_id, egress=True)
        assert [(row["FromPort"], row["CidrIpv4"]) for row in rules] == [(443, "10.0.0.0/8")]
        stack.update(group.physical_id, SecurityGroupEgress=None)
        assert self.rules(stack, group.physical_id, egress=True) == []

    def test_inline_ingress_follows_an_update(self, stack: Any, vpc: Any) -> None:
        def tcp(port: int) -> dict[str, Any]:
            return {"IpProtocol": "tcp", "FromPort": port, "ToPort": port, "CidrIp": "10.0.0.0/8"}

        group = self.group(stack, vpc, SecurityGroupIngress=[tcp(22), tcp(988)])
        stack.update(group.physical_id, SecurityGroupIngress=[tcp(988), tcp(443)])
        ports = {rule["FromPort"] for rule in self.rules(stack, group.physical_id, egress=False)}
        assert ports == {443, 988}

    @pytest.mark.parametrize(
        ("resource_type", "peer", "egress"),
        [
            ("AWS::EC2::SecurityGroupIngress", "SourceSecurityGroupId", False),
            ("AWS::EC2::SecurityGroupEgress", "DestinationSecurityGroupId", True),
        ],
    )
    def test_a_rule_to_the_group_itself(
        self,
        stack: Any,
        vpc: Any,
        resource_type: str,
        peer: str,
        egress: bool,  # noqa: FBT001 - a table's column
    ) -> None:
        group = self.group(stack, vpc)
        rule = stack.create(
            resource_type,
            {"GroupId": group.physical_id, "IpProtocol": SELF_TRAFFIC, peer: group.physical_id, "Description": "efa"},
        )
        assert rule.physical_id.startswith("sgr-")
        assert rule.attributes == {"Id": rule.physical_id}
        mine = [
            row
            for row in self.rules(stack, group.physical_id, egress=egress)
            if row["SecurityGroupRuleId"] == rule.physical_id
        ]
        assert mine[0]["ReferencedGroupInfo"]["GroupId"] == group.physical_id
        described = stack.context.client("ec2").describe_security_groups(GroupIds=[group.physical_id])
        permissions = described["SecurityGroups"][0]["IpPermissionsEgress" if egress else "IpPermissions"]
        pairs = [pair for row in permissions for pair in row.get("UserIdGroupPairs", [])]
        assert [(pair["GroupId"], pair["Description"]) for pair in pairs] == [(group.physical_id, "efa")]

        assert stack.update(rule.physical_id, Description="nodes").physical_id == rule.physical_id
        described = stack.context.client("ec2").describe_security_groups(GroupIds=[group.physical_id])
        permissions = described["SecurityGroups"][0]["IpPermissionsEgress" if egress else "IpPermissions"]
        pairs = [pair for row in permissions for pair in row.get("UserIdGroupPairs", [])]
        assert [pair["Description"] for pair in pairs] == ["nodes"]
        stack.delete(rule.physical_id)
        stack.delete(rule.physical_id)
        assert all("ReferencedGroupInfo" not in row for row in self.rules(stack, group.physical_id, egress=egress))
        stack.delete(group.physical_id)
        stack.delete(rule.physical_id)

    @pytest.mark.parametrize(
        ("stated", "left"),
        [
            ([], []),
            ([{"IpProtocol": "-1", "CidrIp": "0.0.0.0/0", "Description": "everything"}], []),
            (
                [{"IpProtocol": "-1", "CidrIp": each} for each in ("0.0.0.0/1", "128.0.0.0/1")],
                ["0.0.0.0/1", "128.0.0.0/1"],
            ),
            ([{"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, "CidrIp": "0.0.0.0/0"}], ["0.0.0.0/0"]),
        ],
        ids=["default", "stated", "in halves", "one port"],
    )
    def test_a_separate_egress_rule_removes_the_one_for_all_traffic(
        self, stack: Any, vpc: Any, stated: list[dict[str, Any]], left: list[str]
    ) -> None:
        group = self.group(stack, vpc, SecurityGroupEgress=stated)
        rule = {"GroupId": group.physical_id, "IpProtocol": SELF_TRAFFIC}
        stack.create("AWS::EC2::SecurityGroupEgress", {**rule, "DestinationSecurityGroupId": group.physical_id})
        rules = self.rules(stack, group.physical_id, egress=True)
        peers = [row.get("CidrIpv4") or row["ReferencedGroupInfo"]["GroupId"] for row in rules]
        assert sorted(peers) == sorted([*left, group.physical_id])

    @pytest.mark.parametrize("order", [(0, 1), (1, 0)])
    def test_separate_egress_rules_stay_in_any_order(self, stack: Any, vpc: Any, order: tuple[int, int]) -> None:
        group = self.group(stack, vpc)
        others = ({"DestinationSecurityGroupId": group.physical_id}, {"CidrIp": "0.0.0.0/0"})
        rules = [{"GroupId": group.physical_id, "IpProtocol": SELF_TRAFFIC, **others[index]} for index in order]
        made, _ = (stack.create(EGRESS, rule) for rule in rules)
        with pytest.raises(ClientError) as error:
            stack.create(EGRESS, rules[0])
        assert "already exists" in message(error)
        assert len(self.rules(stack, group.physical_id, egress=True)) == 2
        stack.delete(made.physical_id)
        assert len(self.rules(stack, group.physical_id, egress=True)) == 1

    def test_separate_egress_rules_stay_when_they_are_created_at_once(self, stack: Any, vpc: Any) -> None:
        for _ in range(5):
            group = self.group(stack, vpc)
            rule = {"GroupId": group.physical_id, "IpProtocol": SELF_TRAFFIC}
            others = ({"DestinationSecurityGroupId": group.physical_id}, {"CidrIp": "0.0.0.0/0"})
            with ThreadPoolExecutor() as pool:
                made = pool.map(lambda other, rule=rule: stack.create(EGRESS, {**rule, **other}), others)
                ids = {each.physical_id for each in made}
            found = self.rules(stack, group.physical_id, egress=True)
            assert {each["SecurityGroupRuleId"] for each in found} == ids

    def test_a_group_another_one_names_is_kept(self, stack: Any, vpc: Any) -> None:
        nodes, storage = self.group(stack, vpc), self.group(stack, vpc)
        rule = stack.create(
            "AWS::EC2::SecurityGroupIngress",
            {
                "GroupId": storage.physical_id,
                "IpProtocol": "tcp",
                "FromPort": 988,
                "ToPort": 988,
                "SourceSecurityGroupId": nodes.physical_id,
            },
        )
        with pytest.raises(ClientError) as error:
            stack.delete(nodes.physical_id)
        assert message(error) == f"resource {nodes.physical_id} has a dependent object"
        for made in (rule, nodes, storage):
            stack.delete(made.physical_id)

    def test_a_bad_inline_rule_leaves_no_group(self, stack: Any, vpc: Any) -> None:
        bad = {"IpProtocol": "tcp", "FromPort": 1, "ToPort": 1, "SourceSecurityGroupId": "sg-0123456789abcdef0"}
        with pytest.raises(ClientError):
            self.group(stack, vpc, SecurityGroupIngress=[bad])
        groups = stack.context.client("ec2").describe_security_groups(
            Filters=[{"Name": "vpc-id", "Values": [vpc.physical_id]}]
        )
        assert [group["GroupName"] for group in groups["SecurityGroups"]] == ["default"]


def test_a_network_acl_with_an_entry_and_a_subnet(stack: Any, vpc: Any, subnet: Any) -> None:
    acl = stack.create("AWS::EC2::NetworkAcl", {"VpcId": vpc.physical_id})
    entry = stack.create(
        "AWS::EC2::NetworkAclEntry",
        {
            "NetworkAclId": acl.physical_id,
            "RuleNumber": "100",
            "Protocol": -1,
            "RuleAction": "allow",
            "CidrBlock": "10.0.0.0/8",
        },
    )
    association = stack.create(
        "AWS::EC2::SubnetNetworkAclAssociation",
        {"SubnetId": subnet.physical_id, "NetworkAclId": acl.physical_id},
    )
    seen = stack.context.client("ec2").describe_network_acls(NetworkAclIds=[acl.physical_id])["NetworkAcls"][0]
    assert [row["SubnetId"] for row in seen["Associations"]] == [subnet.physical_id]
    assert "10.0.0.0/8" in [row.get("CidrBlock") for row in seen["Entries"]]
    for resource in (association, entry, acl):
        stack.delete(resource.physical_id)
        stack.delete(resource.physical_id)


def code(error: pytest.ExceptionInfo[ClientError]) -> str:
    response: Any = error.value.response
    return str(response["Error"]["Code"])


class TestInterfaceEndpoints:
    """What EC2 refuses of an interface endpoint, and what it makes of one."""

    @pytest.fixture
    def named_vpc(self, stack: Any) -> Any:
        properties = {"CidrBlock": "10.192.0.0/16", "EnableDnsHostnames": True}
        return stack.create("AWS::EC2::VPC", properties)

    def subnet_of(self, stack: Any, vpc: Any, third: int, zone: str = "use1-az4") -> str:
        properties = {"VpcId": vpc.physical_id, "CidrBlock": f"10.192.{third}.0/24", "AvailabilityZoneId": zone}
        return str(stack.create("AWS::EC2::Subnet", properties).physical_id)

    def endpoint(self, vpc: Any, *subnet_ids: str, service: str = "sts", private: bool = True) -> dict[str, Any]:
        return {
            "VpcId": vpc.physical_id,
            "ServiceName": f"com.amazonaws.us-east-1.{service}",
            "VpcEndpointType": "Interface",
            "SubnetIds": list(subnet_ids),
            "PrivateDnsEnabled": private,
        }

    def refused(self, stack: Any, properties: dict[str, Any]) -> str:
        with pytest.raises(ClientError) as error:
            stack.create("AWS::EC2::VPCEndpoint", properties)
        return f"{code(error)}: {message(error)}"

    def test_unknown_services_are_refused(self, stack: Any, named_vpc: Any) -> None:
        properties = self.endpoint(named_vpc, service="ecr")
        assert self.refused(stack, properties) == (
            "InvalidServiceName: The Vpc Endpoint Service 'com.amazonaws.us-east-1.ecr' does not exist"
        )

    def test_a_second_subnet_of_a_zone_is_refused(self, stack: Any, named_vpc: Any) -> None:
        first, second = self.subnet_of(stack, named_vpc, 0), self.subnet_of(stack, named_vpc, 1)
        said = self.refused(stack, self.endpoint(named_vpc, first, second))
        assert said.startswith("DuplicateSubnetsInSameZone: Found another VPC endpoint subnet in the availability zone")
        made = stack.create("AWS::EC2::VPCEndpoint", self.endpoint(named_vpc, first))
        with pytest.raises(ClientError) as error:
            stack.update(made.physical_id, SubnetIds=[first, second])
        assert code(error) == "DuplicateSubnetsInSameZone"

    def test_a_subnet_of_another_vpc_is_refused(self, stack: Any, named_vpc: Any, subnet: Any) -> None:
        assert self.refused(stack, self.endpoint(named_vpc, subnet.physical_id)) == (
            f"InvalidParameter: The subnet {subnet.physical_id} does not belong to the VPC {named_vpc.physical_id}"
        )

    def test_private_names_need_dns_hostnames(self, stack: Any, vpc: Any) -> None:
        assert self.refused(stack, self.endpoint(vpc)) == (
            "InvalidParameter: Enabling private DNS requires both enableDnsSupport and enableDnsHostnames VPC"
            f" attributes set to true for {vpc.physical_id}"
        )
        stack.create("AWS::EC2::VPCEndpoint", self.endpoint(vpc, private=False))

    def test_private_names_of_a_service_are_had_once(self, stack: Any, named_vpc: Any) -> None:
        first = stack.create("AWS::EC2::VPCEndpoint", self.endpoint(named_vpc))
        assert self.refused(stack, self.endpoint(named_vpc)) == (
            "InvalidParameter: private-dns-enabled cannot be set because there is already a conflicting DNS domain for"
            f" sts.us-east-1.amazonaws.com in the VPC {named_vpc.physical_id}"
        )
        second = stack.create("AWS::EC2::VPCEndpoint", self.endpoint(named_vpc, private=False))
        with pytest.raises(ClientError) as error:
            stack.update(second.physical_id, PrivateDnsEnabled=True)
        assert message(error).startswith("private-dns-enabled cannot be set because")
        stack.delete(first.physical_id)
        stack.update(second.physical_id, PrivateDnsEnabled=True)

    def test_interfaces_come_and_go_with_the_subnets(self, stack: Any, named_vpc: Any) -> None:
        first, second = self.subnet_of(stack, named_vpc, 0), self.subnet_of(stack, named_vpc, 1, "use1-az5")
        made = stack.create("AWS::EC2::VPCEndpoint", self.endpoint(named_vpc, first))
        with pytest.raises(ClientError) as error:
            stack.delete(first)
        assert message(error) == f"The subnet '{first}' has dependencies and cannot be deleted."
        stack.update(made.physical_id, SubnetIds=[second])
        stack.delete(first)
        stack.delete(made.physical_id)
        stack.delete(second)
        stack.delete(made.physical_id)

    def test_services_state_their_zones_and_end_at_the_quota(self, stack: Any, named_vpc: Any) -> None:
        client = stack.context.client("ec2")
        name = "com.amazonaws.us-east-1.ecr.api"
        (row,) = client.describe_vpc_endpoint_services(ServiceNames=[name])["ServiceDetails"]
        assert sorted(row["AvailabilityZoneIds"]) == [f"use1-az{number}" for number in range(1, 7)]
        with pytest.raises(ClientError) as error:
            client.describe_vpc_endpoint_services(ServiceNames=["com.amazonaws.us-east-1.none"])
        assert message(error) == "The Vpc Endpoint Service 'com.amazonaws.us-east-1.none' does not exist"
        for _ in range(50):
            client.create_vpc_endpoint(**self.endpoint(named_vpc, private=False))
        assert self.refused(stack, self.endpoint(named_vpc, private=False)) == (
            "VpcEndpointLimitExceeded: The maximum number of VPC endpoints has been reached."
        )

    def test_a_vpc_takes_five_blocks(self, stack: Any, vpc: Any) -> None:
        for number in range(1, 5):
            stack.create("AWS::EC2::VPCCidrBlock", {"VpcId": vpc.physical_id, "CidrBlock": f"10.{number}.0.0/16"})
        with pytest.raises(ClientError) as error:
            stack.create("AWS::EC2::VPCCidrBlock", {"VpcId": vpc.physical_id, "CidrBlock": "10.5.0.0/16"})
        assert message(error) == (f"This network '{vpc.physical_id}' has met its maximum number of allowed CIDRs: 5")
