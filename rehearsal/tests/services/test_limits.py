"""What AWS refuses around the cluster: networks and addresses beyond the quota, roles that Lambda cannot assume."""

from __future__ import annotations

from typing import Any

import pytest


class TestVpcs:
    def test_five_with_the_default_one(self, world: Any, refusal: Any) -> None:
        ec2 = world.client("ec2")
        for number in range(5 - len(ec2.describe_vpcs()["Vpcs"])):
            ec2.create_vpc(CidrBlock=f"10.{20 + number}.0.0/16")
        assert refusal(ec2.create_vpc, CidrBlock="10.30.0.0/16") == (
            "VpcLimitExceeded",
            "The maximum number of VPCs has been reached.",
        )

    def test_an_applied_value_counts(self, world: Any) -> None:
        world.account_file(quotas={"vpc": {"VPCs per Region": 10}})
        for number in range(5):
            world.client("ec2").create_vpc(CidrBlock=f"10.{20 + number}.0.0/16")


def test_five_addresses(world: Any, refusal: Any) -> None:
    ec2 = world.client("ec2")
    for _ in range(5 - len(ec2.describe_addresses()["Addresses"])):
        ec2.allocate_address(Domain="vpc")
    assert refusal(ec2.allocate_address, Domain="vpc") == (
        "AddressLimitExceeded",
        "The maximum number of addresses has been reached.",
    )


@pytest.mark.parametrize(("service", "allowed"), [("lambda.amazonaws.com", True), ("ec2.amazonaws.com", False)])
def test_lambda_must_be_able_to_assume_the_role(world: Any, refusal: Any, service: str, allowed: bool) -> None:  # noqa: FBT001 - table
    role = world.role("function", service)
    arguments = {
        "FunctionName": "f",
        "Role": role,
        "Runtime": "python3.13",
        "Handler": "index.handler",
        "Code": {"ZipFile": b"not read"},
    }
    create = world.client("lambda").create_function
    if allowed:
        assert create(**arguments)["Role"] == role
        return
    assert refusal(create, **arguments) == (
        "InvalidParameterValueException",
        "The role defined for the function cannot be assumed by Lambda.",
    )
