"""Interface endpoints of a closed network against the services that AWS has in its zones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from hyperpod_cdk.checks.answers import NotAnswered
from hyperpod_cdk.checks.model import Case, Result, Status
from hyperpod_cdk.config.endpoints import interface_endpoints
from tests.support.fake_aws import FakeAws

CaseOf = Callable[..., Case]
RunCheck = Callable[..., Result]

CHECK = "endpoint_services_exist_in_their_zones"
CLOSED: Mapping[str, Any] = {
    "network.nat_gateways": ...,
    "network.egress": "closed",
    "network.endpoints": {"additional": ["kms"]},
}
BOTH = frozenset({"use1-az5", "use1-az4"})


@pytest.fixture
def closed(case_of: CaseOf, fake_aws: FakeAws) -> Case:
    """The closed prod environment, in a region that has everything everywhere."""
    case = case_of(CLOSED)
    fake_aws.answers.endpoint_services = dict.fromkeys(interface_endpoints(case.environment), BOTH)
    return case


def messages(result: Result) -> list[str]:
    return [f"{finding.path}: {finding.message}" for finding in result.findings]


@pytest.mark.check("endpoint_services_exist_in_their_zones", "passes")
def test_every_service_in_every_zone(closed: Case, fake_aws: FakeAws, run_check: RunCheck) -> None:
    result = run_check(CHECK, closed, fake_aws)
    assert result.status is Status.PASSED
    assert fake_aws.asked == [("endpoint_services", interface_endpoints(closed.environment))]


@pytest.mark.check("endpoint_services_exist_in_their_zones", "fails")
def test_services_that_are_missing(closed: Case, fake_aws: FakeAws, run_check: RunCheck) -> None:
    there = dict.fromkeys(interface_endpoints(closed.environment), BOTH)
    fake_aws.answers.endpoint_services = {
        **there,
        "eks-auth": frozenset(),
        "kms": frozenset(),
        "ssm": frozenset({"use1-az4"}),
        "sts": frozenset({"use1-az4", "use1-az6"}),
    }
    assert messages(run_check(CHECK, closed, fake_aws)) == [
        (
            "network.egress: needs an interface endpoint of eks-auth, which us-east-1 does not have; set egress: nat,"
            " or use another region"
        ),
        (
            "network.endpoints.additional[0]: needs an interface endpoint of kms, which us-east-1 does not have;"
            " correct the name or remove it"
        ),
        (
            "network.availability_zones.use1-az5: needs interface endpoints in use1-az5, which AWS does not have there"
            " for ssm, sts; set network.endpoints.zones: [use1-az4], which the nodes of use1-az5 then use"
        ),
    ]


def test_a_zone_without_endpoints_needs_none(case_of: CaseOf, fake_aws: FakeAws, run_check: RunCheck) -> None:
    case = case_of({**CLOSED, "network.endpoints": {"zones": ["use1-az4"]}})
    there = dict.fromkeys(interface_endpoints(case.environment), frozenset({"use1-az4"}))
    fake_aws.answers.endpoint_services = there
    assert run_check(CHECK, case, fake_aws).status is Status.PASSED
    fake_aws.answers.endpoint_services = {**there, "sts": frozenset({"use1-az5"})}
    assert messages(run_check(CHECK, case, fake_aws)) == [
        (
            "network.availability_zones.use1-az4: needs interface endpoints in use1-az4, which AWS does not have there"
            " for sts; name another zone under network.endpoints.zones"
        )
    ]


@pytest.mark.check("endpoint_services_exist_in_their_zones", "skips")
def test_no_answer(closed: Case, fake_aws: FakeAws, run_check: RunCheck) -> None:
    fake_aws.answers.endpoint_services = NotAnswered("no permission", action="ec2:DescribeVpcEndpointServices")
    assert run_check(CHECK, closed, fake_aws).status is Status.SKIPPED


def test_a_network_with_nat_gateways_is_not_asked_about(
    case_of: CaseOf, fake_aws: FakeAws, run_check: RunCheck
) -> None:
    assert run_check(CHECK, case_of(), fake_aws).status is Status.NOT_NEEDED
    assert fake_aws.asked == []
