"""Service Quotas: applied, default, missing, asked for."""

from __future__ import annotations

from typing import Any

import pytest

CLUSTER_USAGE = {"ServiceCode": "sagemaker", "QuotaCode": "L-8762A75F"}
EIPS = {"ServiceCode": "ec2", "QuotaCode": "L-0263D0A3"}


def test_an_applied_value(world: Any) -> None:
    quota = world.client("service-quotas").get_service_quota(**CLUSTER_USAGE)["Quota"]
    assert (quota["QuotaName"], quota["Value"]) == ("ml.p5.48xlarge for cluster usage", 16.0)


def test_a_quota_without_an_applied_value_is_missing(world: Any, refusal: Any) -> None:
    quotas = world.client("service-quotas")
    assert refusal(quotas.get_service_quota, **EIPS) == (
        "NoSuchResourceException",
        "The request failed because the specified service quota L-0263D0A3 does not exist.",
    )
    assert quotas.list_service_quotas(ServiceCode="ec2")["Quotas"] == []
    assert quotas.get_aws_default_service_quota(**EIPS)["Quota"]["Value"] == 5.0


def test_listed_are_the_applied_ones(world: Any) -> None:
    found = world.client("service-quotas").list_service_quotas(ServiceCode="sagemaker")["Quotas"]
    assert {quota["QuotaName"]: quota["Value"] for quota in found} == {
        "ml.m5.2xlarge for cluster usage": 20.0,
        "ml.p5.48xlarge for cluster usage": 16.0,
        "ml.g5.12xlarge for cluster usage": 8.0,
        "Total number of instances allowed across SageMaker HyperPod clusters": 100.0,
        "Maximum size of EBS volume in GB for a SageMaker HyperPod cluster instance": 1024.0,
    }


def test_defaults_come_in_pages(world: Any) -> None:
    quotas = world.client("service-quotas")
    seen: list[str] = []
    token: dict[str, str] = {}
    while True:
        page = quotas.list_aws_default_service_quotas(ServiceCode="sagemaker", MaxResults=100, **token)
        seen += [quota["QuotaCode"] for quota in page["Quotas"]]
        if "NextToken" not in page:
            break
        token = {"NextToken": page["NextToken"]}
    assert len(seen) > 400
    assert len(set(seen)) == len(seen)


@pytest.mark.parametrize("service", ["ec2", "eks", "fsx", "sagemaker", "vpc"])
def test_every_service_has_some(world: Any, service: str) -> None:
    assert world.client("service-quotas").list_aws_default_service_quotas(ServiceCode=service)["Quotas"]


def test_an_unknown_service(world: Any, refusal: Any) -> None:
    assert refusal(world.client("service-quotas").list_service_quotas, ServiceCode="sagemakr") == (
        "NoSuchResourceException",
        "The request failed because the service sagemakr does not exist.",
    )


def test_names_are_matched_as_people_write_them(world: Any) -> None:
    world.account_file(quotas={"vpc": {"VPCs per region": 7}})
    found = world.client("service-quotas").list_service_quotas(ServiceCode="vpc")["Quotas"]
    assert [(quota["QuotaName"], quota["Value"]) for quota in found] == [("VPCs per Region", 7.0)]


class TestIncrease:
    def test_one_open_request_for_each_quota(self, world: Any, refusal: Any) -> None:
        quotas = world.client("service-quotas")
        made = quotas.request_service_quota_increase(**CLUSTER_USAGE, DesiredValue=32)["RequestedQuota"]
        assert (made["Status"], made["DesiredValue"]) == ("PENDING", 32)
        history = quotas.list_requested_service_quota_change_history_by_quota(**CLUSTER_USAGE)["RequestedQuotas"]
        assert [item["Id"] for item in history] == [made["Id"]]
        assert refusal(quotas.request_service_quota_increase, **CLUSTER_USAGE, DesiredValue=64) == (
            "ResourceAlreadyExistsException",
            "Only one open service quota increase request is allowed per quota: ml.p5.48xlarge for cluster usage",
        )

    def test_history_is_listed_by_page_and_status(self, world: Any) -> None:
        quotas = world.client("service-quotas")
        made = [
            quotas.request_service_quota_increase(**{**CLUSTER_USAGE, **other}, DesiredValue=32)["RequestedQuota"]["Id"]
            for other in ({}, {"ServiceCode": "vpc", "QuotaCode": "L-F678F1CE"})
        ]
        ask = quotas.list_requested_service_quota_change_history
        first = ask(MaxResults=1)
        second = ask(MaxResults=1, NextToken=first["NextToken"])
        assert [item["Id"] for part in (first, second) for item in part["RequestedQuotas"]] == made
        assert "NextToken" not in second
        assert [len(ask(Status=status)["RequestedQuotas"]) for status in ("PENDING", "DENIED")] == [2, 0]

    @pytest.mark.parametrize("value", [15, 16])
    def test_it_must_be_an_increase(self, world: Any, refusal: Any, value: int) -> None:
        quotas = world.client("service-quotas")
        assert refusal(quotas.request_service_quota_increase, **CLUSTER_USAGE, DesiredValue=value) == (
            "InvalidResourceStateException",
            "The quota value requested must be greater than the current value of 16.",
        )
