"""Interfaces of services in a VPC, and what EC2 refuses while something is in use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hyperpod_cdk_rehearsal.left_over import holders

Refusal = Callable[..., tuple[str, str]]


def test_a_rule_of_another_group_holds_a_group(world: Any, refusal: Refusal) -> None:
    ec2 = world.client("ec2")
    first, second = (
        ec2.create_security_group(GroupName=name, Description=name, VpcId=world.vpc_id)["GroupId"]
        for name in ("first", "second")
    )
    rule = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": first}]}]
    ec2.authorize_security_group_ingress(GroupId=second, IpPermissions=rule)
    assert refusal(ec2.delete_security_group, GroupId=first) == (
        "DependencyViolation",
        f"resource {first} has a dependent object",
    )
    ec2.delete_security_group(GroupId=second)
    ec2.delete_security_group(GroupId=first)


def test_the_default_group_cannot_be_deleted(world: Any, refusal: Refusal) -> None:
    ec2 = world.client("ec2")
    wanted = [{"Name": "vpc-id", "Values": [world.vpc_id]}, {"Name": "group-name", "Values": ["default"]}]
    (group,) = ec2.describe_security_groups(Filters=wanted)["SecurityGroups"]
    assert refusal(ec2.delete_security_group, GroupId=group["GroupId"]) == (
        "CannotDelete",
        f'the specified group: "{group["GroupId"]}" name: "default" cannot be deleted by a user',
    )


def test_the_automated_agent_of_guardduty_holds_the_vpc_and_is_named(world: Any, refusal: Refusal) -> None:
    ec2, eks = world.client("ec2"), world.client("eks")
    world.account_file(guardduty="automated_agent")
    ec2.modify_vpc_attribute(VpcId=world.vpc_id, EnableDnsHostnames={"Value": True})
    request = world.eks_request()
    eks.create_cluster(**request)
    world.settle()
    eks.delete_cluster(name=request["name"])
    world.settle()

    (endpoint,) = (
        each["VpcEndpointId"]
        for each in ec2.describe_vpc_endpoints()["VpcEndpoints"]
        if each["ServiceName"] == "com.amazonaws.us-east-1.guardduty-data"
    )
    subnet_id = request["resourcesVpcConfig"]["subnetIds"][0]
    assert refusal(ec2.delete_subnet, SubnetId=subnet_id)[0] == "DependencyViolation"
    named = holders(world, world.vpc_id)
    assert f"endpoint {endpoint} (com.amazonaws.us-east-1.guardduty-data)" in named
    assert any(f"(GuardDutyManagedSecurityGroup-{world.vpc_id})" in each for each in named)


def test_guardduty_uses_an_existing_endpoint(world: Any) -> None:
    ec2 = world.client("ec2")
    world.account_file(guardduty="automated_agent")
    request = world.eks_request()
    ec2.create_vpc_endpoint(
        VpcId=world.vpc_id,
        ServiceName="com.amazonaws.us-east-1.guardduty-data",
        VpcEndpointType="Interface",
        SubnetIds=request["resourcesVpcConfig"]["subnetIds"][:1],
        PrivateDnsEnabled=False,
    )
    before = len(ec2.describe_vpc_endpoints()["VpcEndpoints"])
    world.client("eks").create_cluster(**request)
    assert len(ec2.describe_vpc_endpoints()["VpcEndpoints"]) == before
