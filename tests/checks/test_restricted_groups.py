"""All checks of instance groups also check restricted groups, with their place in the file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hyperpod_cdk.checks.answers import ReservedCapacity, TrainingPlan, Zone
from hyperpod_cdk.checks.capacity import largest_groups, largest_mix
from hyperpod_cdk.checks.model import REGISTER, Case, Result
from hyperpod_cdk.checks.plan_search import wishes
from hyperpod_cdk.checks.quotas import Compared
from hyperpod_cdk.checks.run import is_needed
from hyperpod_cdk.config.addresses import address_budgets
from hyperpod_cdk.config.recorded_plans import groups_by_plan
from hyperpod_cdk.config.source import render_path
from hyperpod_cdk.handlers.quota_gate.comparison import Reading, judge
from hyperpod_cdk.quotas.needs import required_quotas
from tests.support.fake_aws import FakeAws

CaseOf = Callable[..., Case]
RunCheck = Callable[..., Result]

NOVA = "hyperpod.restricted_instance_groups[0]"
PLAN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/nova-april"
ON_PLAN: Mapping[str, Any] = {"capacity": "training_plan", "training_plan_arn": PLAN}


def nova(**changes: Any) -> dict[str, Any]:
    """Changes to prod.yaml: a restricted group, and none on a plan but it."""
    group = {
        "name": "nova",
        "instance_type": "ml.p5.48xlarge",
        "count": 4,
        "availability_zone_id": "use1-az5",
        "capacity": "on_demand",
        "lustre": {"capacity_gib": 9600},
    }
    return {
        "hyperpod.restricted_dependencies": "installed",
        "hyperpod.restricted_instance_groups": [{**group, **changes}],
        "hyperpod.instance_groups[1].capacity": "on_demand",
        "hyperpod.instance_groups[1].training_plan_arn": ...,
    }


def messages(result: Result) -> list[str]:
    return [finding.render() for finding in result.findings]


def test_their_plan_is_compared(case_of: CaseOf, fake_aws: FakeAws, run_check: RunCheck) -> None:
    case = case_of(nova(**ON_PLAN))
    block = ReservedCapacity(
        instance_type="ml.p4d.24xlarge",
        count=4,
        status="Active",
        availability_zone="us-east-1f",
        availability_zone_id="use1-az5",
        start=None,
        end=None,
    )
    fake_aws.answers.training_plan = {
        PLAN: TrainingPlan(
            arn=PLAN,
            name="nova-april",
            status="Active",
            status_message="",
            total=4,
            available=4,
            in_use=0,
            unhealthy=0,
            target_resources=("hyperpod-cluster",),
            blocks=(block,),
            start=None,
            end=None,
        )
    }
    assert is_needed(REGISTER["training_plan_exists"], case.environment)
    assert messages(run_check("training_plan_has_the_type_of_its_groups", case, fake_aws)) == [
        (
            f"{NOVA}.instance_type: must be ml.p4d.24xlarge, which plan nova-april reserves, got ml.p5.48xlarge; set"
            " instance_type: ml.p4d.24xlarge or name another plan"
        )
    ]
    (members,) = groups_by_plan(case.environment).values()
    assert [(render_path(place), group.name) for place, group in members] == [(NOVA, "nova")]


def test_their_type_is_looked_for_in_their_zone(case_of: CaseOf, fake_aws: FakeAws, run_check: RunCheck) -> None:
    zones = [
        Zone(zone_id=f"use1-az{n}", name="", state="available", kind="availability-zone", opted_in=True) for n in (4, 5)
    ]
    fake_aws.answers.zones = tuple(zones)
    fake_aws.answers.instance_type_zones = {
        "m5.2xlarge": frozenset({"use1-az4"}),
        "p5.48xlarge": frozenset({"use1-az5"}),
        "p4d.24xlarge": frozenset({"use1-az4"}),
    }
    case = case_of(nova(instance_type="ml.p4d.24xlarge"))
    assert messages(run_check("instance_types_are_offered_in_their_zones", case, fake_aws)) == [
        (
            f"{NOVA}.availability_zone_id: must be a zone where EC2 offers ml.p4d.24xlarge, got use1-az5; set"
            " availability_zone_id: use1-az4"
        )
    ]
    scarce = messages(run_check("scarce_types_do_not_rely_on_demand", case, fake_aws))
    assert scarce[-1].startswith(
        f"{NOVA}.capacity: On-Demand capacity is not guaranteed for ml.p4d.24xlarge, of which 4"
    )


def test_their_nodes_take_addresses(case_of: CaseOf) -> None:
    (budget,) = [
        each
        for each in address_budgets(case_of(nova()).environment)
        if each.availability_zone_id == "use1-az5" and each.role == "nodes"
    ]
    assert [(need.kind, need.count, need.total) for need in budget.needs if need.path == NOVA] == [
        ("nodes", 4, 324),
        ("spare", 1, 81),
    ]


def test_they_are_searched_plans_for(case_of: CaseOf) -> None:
    (wish,) = wishes(case_of(nova(**ON_PLAN)).environment)
    assert (wish.instance_type, wish.count, wish.group_names) == ("ml.p5.48xlarge", 4, ("nova",))


def test_they_are_in_the_largest_cluster(case_of: CaseOf) -> None:
    case = case_of(nova())
    compared = []
    for need in required_quotas(case.environment):
        reading = Reading(value=10.0 if need.name == "ml.p5.48xlarge for cluster usage" else 10.0**6)
        compared.append(Compared(requirement=need, reading=reading, verdict=judge(need, reading, region="us-east-1")))
    assert [(each.group, each.count) for each in largest_groups(case.environment, compared)][1:] == [
        ("h100", 6),
        ("nova", 8),
    ]
    assert largest_mix(case.environment, compared).times == 1
