"""Checks of training plans: each problem of a plan, at and next to its limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hyperpod_cdk.checks.answers import (
    HyperPodClusterAnswer,
    InstancesInCluster,
    NotAnswered,
    Partial,
    ReservedCapacity,
    TrainingPlan,
    Undescribed,
    Zone,
)
from hyperpod_cdk.checks.model import REGISTER, Case, Result, Status
from tests.support.fake_aws import FakeAws
from tests.support.tables import row_by_row

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
ARN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/h100-april"
GROUP = "hyperpod.instance_groups[1]"
BUY = "find another to buy with 'hyperpod-cdk plans search prod'"
CHECKS = (
    "training_plan_exists",
    "training_plan_is_usable",
    "training_plan_is_for_hyperpod_clusters",
    "training_plan_has_the_type_of_its_groups",
    "training_plan_is_in_the_zone_of_its_groups",
    "training_plan_has_an_instance_for_every_node",
    "training_plan_has_time_left",
    "training_plan_is_used_in_full",
)

CaseOf = Callable[..., Case]
RunCheck = Callable[..., Result]
RunAll = Callable[..., dict[str, list[str]]]


def block(**changes: Any) -> ReservedCapacity:
    """A block in the group's zone that began ten days ago and ends in twenty."""
    made = ReservedCapacity(
        instance_type="ml.p5.48xlarge",
        count=2,
        status="Active",
        availability_zone="us-east-1f",
        availability_zone_id="use1-az5",
        start=NOW - timedelta(days=10),
        end=NOW + timedelta(days=20),
    )
    return replace(made, **changes)


def plan(*blocks: ReservedCapacity, **changes: Any) -> TrainingPlan:
    """A plan of the two instances that environments/prod.yaml asks for."""
    parts = blocks or (block(),)
    made = TrainingPlan(
        arn=ARN,
        name="h100-april",
        status="Active",
        status_message="",
        total=parts[0].count,
        available=parts[0].count,
        in_use=0,
        unhealthy=0,
        target_resources=("hyperpod-cluster",),
        blocks=parts,
        start=min((each.start for each in parts if each.start), default=None),
        end=max((each.end for each in parts if each.end), default=None),
    )
    return replace(made, **changes)


def cluster(name: str, count: int, *, current: int | None = None, arn: str = ARN) -> HyperPodClusterAnswer:
    """A cluster with so many instances on a plan."""
    group = InstancesInCluster(
        group="h100",
        types=("ml.p5.48xlarge",),
        current=count if current is None else current,
        target=count,
        spot=False,
        training_plan_arn=arn,
    )
    return HyperPodClusterAnswer(
        name=name,
        arn=f"arn:aws:sagemaker:us-east-1:111122223333:cluster/{name}",
        status="InService",
        eks_cluster_arn="",
        groups=(group,),
    )


@pytest.fixture
def aws(fake_aws: FakeAws) -> FakeAws:
    """An account with a plan that suits environments/prod.yaml, and no cluster yet."""
    fake_aws.answers.training_plan = {ARN: plan()}
    fake_aws.answers.hyperpod_clusters = ()
    return fake_aws


@pytest.fixture
def check_plan(case_of: CaseOf, run_check: RunCheck, aws: FakeAws) -> Callable[..., Result]:
    """Runs one check on a plan and on environments/prod.yaml with changes."""

    def run(name: str, found: TrainingPlan | NotAnswered | None, **changes: Any) -> Result:
        aws.answers.training_plan = {ARN: found}
        return run_check(name, changed(case_of, changes), aws)

    return run


@pytest.fixture
def find_all(case_of: CaseOf, run_check: RunCheck, aws: FakeAws) -> RunAll:
    """Runs every check of the area; returns the messages of those with findings."""

    def run(found: TrainingPlan | None, **changes: Any) -> dict[str, list[str]]:
        aws.answers.training_plan = {ARN: found}
        case = changed(case_of, changes)
        results = [run_check(name, case, aws) for name in CHECKS]
        return {result.check.name: says(result) for result in results if result.findings}

    return run


def changed(case_of: CaseOf, changes: dict[str, Any]) -> Case:
    """Return environments/prod.yaml with changes to its second group, without its team, which would fix the count."""
    return case_of(
        {"task_governance": ..., "storage": ..., **{f"{GROUP}.{key}": value for key, value in changes.items()}}, now=NOW
    )


def says(result: Result) -> list[str]:
    """Return the findings as severity, path and message."""
    return [f"{each.severity.value} {each.path}: {each.message}" for each in result.findings]


@pytest.mark.check("training_plan_exists", "passes")
@pytest.mark.check("training_plan_is_usable", "passes")
@pytest.mark.check("training_plan_is_for_hyperpod_clusters", "passes")
@pytest.mark.check("training_plan_has_the_type_of_its_groups", "passes")
@pytest.mark.check("training_plan_is_in_the_zone_of_its_groups", "passes")
@pytest.mark.check("training_plan_has_an_instance_for_every_node", "passes")
@pytest.mark.check("training_plan_has_time_left", "passes")
@pytest.mark.check("training_plan_is_used_in_full", "passes")
@pytest.mark.parametrize("name", CHECKS)
def test_a_plan_that_suits_passes(check_plan: Callable[..., Result], name: str) -> None:
    result = check_plan(name, plan())
    assert (result.status, result.findings, result.skipped) == (Status.PASSED, (), ())


@pytest.mark.check("training_plan_exists", "skips")
@pytest.mark.check("training_plan_is_usable", "skips")
@pytest.mark.check("training_plan_is_for_hyperpod_clusters", "skips")
@pytest.mark.check("training_plan_has_the_type_of_its_groups", "skips")
@pytest.mark.check("training_plan_is_in_the_zone_of_its_groups", "skips")
@pytest.mark.check("training_plan_has_an_instance_for_every_node", "skips")
@pytest.mark.check("training_plan_has_time_left", "skips")
@pytest.mark.check("training_plan_is_used_in_full", "skips")
@pytest.mark.parametrize("name", CHECKS)
def test_no_answer_about_the_plan_skips(check_plan: Callable[..., Result], name: str) -> None:
    missing = NotAnswered("not allowed to describe training plans", action="sagemaker:DescribeTrainingPlan")
    result = check_plan(name, missing)
    assert result.status is Status.SKIPPED
    assert [each.as_dict() for each in result.skipped] == [
        {"reason": missing.reason, "action": missing.action, "path": f"{GROUP}.training_plan_arn", "aws_said": ""}
    ]


@pytest.mark.parametrize("name", CHECKS)
def test_without_a_plan_nothing_is_asked(case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws, name: str) -> None:
    case = case_of({f"{GROUP}.capacity": "on_demand", f"{GROUP}.training_plan_arn": ...})
    assert run_check(name, case, fake_aws).status is Status.NOT_NEEDED
    assert fake_aws.asked == []


def test_every_check_of_the_area_is_tested_here() -> None:
    assert tuple(check.name for check in REGISTER if check.area == "training-plan") == CHECKS


@pytest.mark.check("training_plan_exists", "fails")
def test_no_such_plan(find_all: RunAll) -> None:
    assert find_all(None) == {
        "training_plan_exists": [
            (
                f"error {GROUP}.training_plan_arn: must be a plan of account 111122223333 in us-east-1, but there is no"
                f" plan h100-april; correct its name, or {BUY}"
            )
        ]
    }


@pytest.mark.check("training_plan_is_usable", "fails")
@pytest.mark.parametrize(
    ("status", "message", "end"),
    [
        ("Pending", "", "Pending; its payment is in progress: deploy when it is Scheduled"),
        ("Failed", "Payment refused", f'Failed ("Payment refused"); its purchase failed: {BUY}'),
        ("Expired", "", f"Expired; its time is over: {BUY}"),
        ("Paused", "", "Paused; check it in the console"),
    ],
)
def test_status(find_all: RunAll, status: str, message: str, end: str) -> None:
    found = plan(block(end=NOW - timedelta(days=1)), status=status, status_message=message, available=0)
    assert find_all(found) == {
        "training_plan_is_usable": [
            f"error {GROUP}.training_plan_arn: must be a plan that is Scheduled or Active, but h100-april is {end}"
        ]
    }


@pytest.mark.parametrize("status", ["Scheduled", "Active"])
def test_usable_status(find_all: RunAll, status: str) -> None:
    assert find_all(plan(status=status)) == {}


@pytest.mark.check("training_plan_is_for_hyperpod_clusters", "fails")
def test_target(find_all: RunAll) -> None:
    assert find_all(plan(target_resources=("training-job", "endpoint"))) == {
        "training_plan_is_for_hyperpod_clusters": [
            (
                f"error {GROUP}.training_plan_arn: must be a plan for hyperpod-cluster, but h100-april is for"
                f" training-job and endpoint, and a plan cannot be changed; {BUY}"
            )
        ]
    }


def test_a_target_that_is_not_known(check_plan: Callable[..., Result]) -> None:
    (skipped,) = check_plan(CHECKS[2], plan(target_resources=())).skipped
    assert skipped.reason == "AWS names no target of plan h100-april"
    assert check_plan(CHECKS[2], plan(target_resources=(), status="Failed")).status is Status.PASSED


def test_one_target_among_several_suffices(find_all: RunAll) -> None:
    assert find_all(plan(target_resources=("training-job", "hyperpod-cluster"))) == {}


@pytest.mark.check("training_plan_has_the_type_of_its_groups", "fails")
def test_type(find_all: RunAll) -> None:
    assert find_all(plan(block(instance_type="ml.p5en.48xlarge"))) == {
        "training_plan_has_the_type_of_its_groups": [
            (
                f"error {GROUP}.instance_type: must be ml.p5en.48xlarge, which plan h100-april reserves, got"
                " ml.p5.48xlarge; set instance_type: ml.p5en.48xlarge or name another plan"
            )
        ]
    }


def test_types_of_a_flexible_group(check_plan: Callable[..., Result]) -> None:
    changes = {"instance_type": ..., "deep_health_checks": []}
    some = check_plan(
        CHECKS[3], plan(), **changes, instance_types=["ml.p5.48xlarge", "ml.p5e.48xlarge", "ml.p5en.48xlarge"]
    )
    none = check_plan(CHECKS[3], plan(), **changes, instance_types=["ml.p5e.48xlarge", "ml.p5en.48xlarge"])
    assert says(some) == [
        (
            f"warning {GROUP}.instance_types: plan h100-april reserves ml.p5.48xlarge only, so ml.p5e.48xlarge and"
            " ml.p5en.48xlarge never comes from it; set only instance_type: ml.p5.48xlarge"
        )
    ]
    assert says(none) == [
        (
            f"error {GROUP}.instance_types: must be ml.p5.48xlarge, which plan h100-april reserves, got ml.p5e.48xlarge"
            " and ml.p5en.48xlarge; set instance_type: ml.p5.48xlarge or name another plan"
        )
    ]


@pytest.mark.parametrize("name", [CHECKS[3], CHECKS[4]])
def test_a_plan_without_capacity_is_no_pass(check_plan: Callable[..., Result], name: str) -> None:
    result = check_plan(name, replace(plan(), blocks=()))
    assert [each.reason for each in result.skipped] == ["AWS names no reserved capacity of plan h100-april"]
    assert check_plan(name, replace(plan(), blocks=(), status="Failed")).status is Status.PASSED


@pytest.mark.check("training_plan_is_in_the_zone_of_its_groups", "fails")
@pytest.mark.parametrize(
    ("zone_id", "add"),
    [("use1-az4", ""), ("use1-az6", " and add use1-az6 to network.availability_zones")],
)
def test_zone(find_all: RunAll, zone_id: str, add: str) -> None:
    assert find_all(plan(block(availability_zone_id=zone_id))) == {
        "training_plan_is_in_the_zone_of_its_groups": [
            (
                f"error {GROUP}.availability_zone_id: must be {zone_id}, where plan h100-april is, got use1-az5; set"
                f" availability_zone_id: {zone_id}{add} (a group that is deployed already needs a new name too)"
            )
        ]
    }


DALLAS = "us-east-1-dfw-2a"


@pytest.mark.parametrize(
    ("zone_id", "finds"), [("use1-az5", 0), ("use1-dfw2-az1", 1)], ids=["the group's", "a local zone"]
)
def test_a_zone_by_name_is_looked_up(check_plan: Callable[..., Result], aws: FakeAws, zone_id: str, finds: int) -> None:
    aws.answers.zones = (Zone(zone_id=zone_id, name=DALLAS, state="available", kind="local-zone", opted_in=True),)
    result = check_plan(CHECKS[4], plan(block(availability_zone=DALLAS, availability_zone_id="")))
    assert len(result.findings) == finds
    assert all(f"must be {zone_id}, where plan h100-april is, got use1-az5" in line for line in says(result))


def test_a_zone_by_name_that_cannot_be_looked_up(check_plan: Callable[..., Result], aws: FakeAws) -> None:
    local = plan(block(availability_zone=DALLAS, availability_zone_id=""))
    aws.answers.zones = NotAnswered("not allowed to list zones", action="ec2:DescribeAvailabilityZones")
    (skipped,) = check_plan(CHECKS[4], local).skipped
    assert (skipped.reason, skipped.action, skipped.path) == (
        "not allowed to list zones",
        "ec2:DescribeAvailabilityZones",
        f"{GROUP}.availability_zone_id",
    )
    aws.answers.zones = ()
    (skipped,) = check_plan(CHECKS[4], local).skipped
    assert skipped.reason == (
        "AWS gives no ID for us-east-1-dfw-2a of plan h100-april, and this account has no such zone"
    )


def test_zones_are_not_asked_where_the_plan_has_ids(check_plan: Callable[..., Result], aws: FakeAws) -> None:
    check_plan(CHECKS[4], plan())
    assert ("zones",) not in aws.asked


@pytest.mark.check("training_plan_has_an_instance_for_every_node", "fails")
@pytest.mark.parametrize(("count", "less"), [(2, 0), (3, 1), (6, 4)])
def test_more_than_the_plan_has(find_all: RunAll, count: int, less: int) -> None:
    expected = {
        "training_plan_has_an_instance_for_every_node": [
            (
                f"error {GROUP}.count: needs {count} instances of plan h100-april for h100, which has 2; lower count by"
                f" {less} or name another plan"
            )
        ]
    }
    assert find_all(plan(), count=count) == (expected if less else {})


def test_groups_add_up(case_of: CaseOf, run_check: RunCheck, aws: FakeAws) -> None:
    second = {
        "name": "more",
        "instance_type": "ml.p5.48xlarge",
        "count": 1,
        "availability_zone_id": "use1-az5",
        "capacity": "training_plan",
        "training_plan_arn": ARN,
    }
    case = case_of({"hyperpod.instance_groups[2]": second}, now=NOW)
    assert says(run_check(CHECKS[5], case, aws)) == [
        (
            "error hyperpod.instance_groups[2].count: needs 3 instances of plan h100-april for h100 and more, which has"
            " 2; lower count by 1 or name another plan"
        )
    ]
    assert [question for question, *_ in aws.asked].count("training_plan") == 2


ROOM = [
    # counters of the plan (total, available, in use, unhealthy), clusters, needed, what is said
    ((4, 4, 0, 0), (), 4, ""),
    ((4, 2, 2, 0), ("other", 2), 2, ""),
    ((4, 2, 2, 0), ("other", 2), 3, "2 free of 4 (2 used by other); lower count by 1"),
    ((4, 0, 4, 0), ("other", 4), 2, "0 free of 4 (4 used by other); lower count by 2"),
    # this environment's own cluster is no other user, also before its nodes have come
    ((4, 0, 4, 0), ("prod", 4), 4, ""),
    ((4, 2, 2, 0), ("prod", 2), 4, ""),
    # a cluster whose nodes have not come yet does not show in the plan's counter
    ((4, 4, 0, 0), ("other", 3), 2, "1 free of 4 (3 used by other); lower count by 1"),
    # the counter knows a user whom nobody lists
    ((4, 1, 3, 0), (), 2, "1 free of 4 (3 used by others); lower count by 1"),
    # an unhealthy instance cannot be had
    ((4, 3, 0, 1), (), 3, ""),
    ((4, 3, 0, 1), (), 4, "3 free of 4 (1 unhealthy); lower count by 1"),
    # a plan without counters is taken by its size
    ((4, 0, 0, 0), (), 4, ""),
]


@pytest.mark.parametrize(("counters", "other", "needed", "end"), ROOM)
def test_room(
    check_plan: Callable[..., Result],
    aws: FakeAws,
    *,
    counters: tuple[int, int, int, int],
    other: tuple[str, int],
    needed: int,
    end: str,
) -> None:
    total, available, in_use, unhealthy = counters
    aws.answers.hyperpod_clusters = (cluster("elsewhere", 9, arn="another"), *([cluster(*other)] if other else []))
    found = plan(block(count=total), total=total, available=available, in_use=in_use, unhealthy=unhealthy)
    result = check_plan(CHECKS[5], found, count=needed)
    if not end:
        assert says(result) == []
        return
    needs = f"needs {needed} instances of plan h100-april for h100, which has {end}"
    fix = "use another plan" if "used by" in end else "wait for replacements"
    assert says(result) == [f"error {GROUP}.count: {needs} or {fix}"]


def test_an_own_unhealthy_instance_refuses_no_update(check_plan: Callable[..., Result], aws: FakeAws) -> None:
    aws.answers.hyperpod_clusters = (cluster("prod", 4, current=3),)
    found = plan(block(count=4), total=4, available=0, in_use=3, unhealthy=1)
    assert says(check_plan(CHECKS[5], found, count=4)) == [
        (
            f"warning {GROUP}.count: plan h100-april has 1 unhealthy of 4 instances, and the groups need 4; a node may"
            " join late"
        )
    ]
    assert check_plan(CHECKS[5], found, count=3).status is Status.PASSED


@pytest.mark.parametrize(
    ("status", "ends"), [("Failed", Status.PASSED), ("Deleting", Status.PASSED), ("Creating", Status.FAILED)]
)
def test_a_cluster_that_ends_takes_no_more_than_it_has(
    check_plan: Callable[..., Result], aws: FakeAws, *, status: str, ends: Status
) -> None:
    aws.answers.hyperpod_clusters = (replace(cluster("other", 4, current=0), status=status),)
    assert check_plan(CHECKS[5], plan(block(count=4), total=4, available=4), count=4).status is ends


@row_by_row(
    "changes, name, said",
    [
        ({"available": None}, CHECKS[5], "available"),
        ({"in_use": None}, CHECKS[5], "used"),
        ({"available": 1, "unhealthy": None}, CHECKS[5], "unhealthy"),
        ({"available": None, "in_use": None, "unhealthy": None}, CHECKS[5], "available, used and unhealthy"),
        ({"blocks": (), "total": None}, CHECKS[5], "total"),
        ({"blocks": (), "total": None}, CHECKS[7], "total"),
        # the others are all that the plan has, or it has not begun
        ({"unhealthy": None}, CHECKS[5], ""),
        ({"available": 0, "unhealthy": None, "status": "Scheduled"}, CHECKS[5], ""),
        ({"total": None}, CHECKS[5], ""),
        ({"available": None}, CHECKS[7], ""),
    ],
)
def test_counts_that_aws_does_not_show_are_not_zero(
    check_plan: Callable[..., Result], changes: dict[str, Any], name: str, said: str
) -> None:
    result = check_plan(name, plan(**changes), count=2)
    assert result.findings == ()
    assert [each.reason for each in result.skipped] == (
        [f"AWS shows no number of {said} instances of plan h100-april"] if said else []
    )


def test_idle_instances_of_a_plan_without_counts_are_unknown(check_plan: Callable[..., Result]) -> None:
    result = check_plan(CHECKS[7], plan(in_use=None), count=1)
    assert result.findings == ()
    assert [each.reason for each in result.skipped] == ["AWS shows no number of used instances of plan h100-april"]


def test_nodes_that_have_yet_to_come_count(check_plan: Callable[..., Result], aws: FakeAws) -> None:
    aws.answers.hyperpod_clusters = (cluster("other", 2, current=0),)
    found = plan(block(count=4), total=4, available=2, in_use=2)
    assert check_plan(CHECKS[5], found, count=2).status is Status.PASSED
    assert check_plan(CHECKS[5], found, count=3).status is Status.FAILED


def test_an_unhealthy_instance_that_is_counted_as_available(check_plan: Callable[..., Result]) -> None:
    found = plan(block(count=4), total=4, available=4, unhealthy=1)
    assert says(check_plan(CHECKS[5], found, count=3)) == []
    assert says(check_plan(CHECKS[5], found, count=4)) == [
        (
            f"warning {GROUP}.count: plan h100-april has 1 unhealthy of 4 instances, and the groups need 4; a node may"
            " join late"
        )
    ]


def test_a_cluster_that_was_read_proves_a_shortage_even_if_others_were_not(
    check_plan: Callable[..., Result], aws: FakeAws
) -> None:
    denied = NotAnswered("no permission", action="sagemaker:DescribeCluster")
    aws.answers.hyperpod_clusters = Partial(
        read=(cluster("other", 3),), unread=(Undescribed(name="b", why=denied),), broken_off=None
    )
    assert check_plan(CHECKS[5], plan()).status is Status.FAILED
    aws.answers.hyperpod_clusters = Partial(read=(), unread=(Undescribed(name="b", why=denied),))
    assert check_plan(CHECKS[5], plan()).status is Status.SKIPPED


def test_clusters_that_are_not_known(check_plan: Callable[..., Result], aws: FakeAws) -> None:
    aws.answers.hyperpod_clusters = NotAnswered("not allowed to list clusters", action="sagemaker:ListClusters")
    fits = check_plan(CHECKS[5], plan())
    assert [each.as_dict() for each in fits.skipped] == [
        {
            "reason": "not allowed to list clusters",
            "action": "sagemaker:ListClusters",
            "path": f"{GROUP}.count",
            "aws_said": "",
        }
    ]
    # more than the plan has is wrong whoever else uses it
    assert check_plan(CHECKS[5], plan(), count=3).status is Status.FAILED
    assert check_plan(CHECKS[7], plan(), count=1).status is Status.SKIPPED
    assert check_plan(CHECKS[7], plan()).status is Status.PASSED


def test_blocks_of_different_size(check_plan: Callable[..., Result]) -> None:
    later = block(count=1, start=NOW + timedelta(days=21), end=NOW + timedelta(days=30))
    assert says(check_plan(CHECKS[5], plan(block(), later))) == [
        (
            f"warning {GROUP}.count: plan h100-april has 1 instance from 2026-12-12 12:00 UTC, and the groups need 2;"
            " nodes will be missing in that block"
        )
    ]
    gone = block(count=8, start=NOW - timedelta(days=9), end=NOW - timedelta(days=8))
    assert says(check_plan(CHECKS[5], plan(block(), gone), count=3)) == [
        (
            f"error {GROUP}.count: needs 3 instances of plan h100-april for h100, which has 2; lower count by 1 or name"
            " another plan"
        )
    ]


LEAVE = "one hour before its end; extend it or have checkpoints written before"
ENDS = [
    (timedelta(days=-1), "left at 2026-11-20 11:00 UTC"),
    (timedelta(minutes=59), "left at 2026-11-21 11:59 UTC"),
    (timedelta(minutes=60), "left at 2026-11-21 12:00 UTC"),
    (timedelta(minutes=61), "leave at 2026-11-21 12:01 UTC, in 1 minute"),
    (timedelta(minutes=120), "leave at 2026-11-21 13:00 UTC, in 1 hour"),
    (timedelta(hours=25, minutes=-1), "leave at 2026-11-22 11:59 UTC, in 23 hours"),
    (timedelta(hours=25), ""),
    (timedelta(days=20), ""),
]


@pytest.mark.check("training_plan_has_time_left", "fails")
@pytest.mark.parametrize(("until_end", "end"), ENDS)
def test_end(find_all: RunAll, until_end: timedelta, end: str) -> None:
    found = find_all(plan(block(end=NOW + until_end)))
    if not end:
        assert found == {}
    elif end.startswith("left"):
        assert found == {
            "training_plan_has_time_left": [
                (
                    f"error {GROUP}.training_plan_arn: must be a plan with time left, but the nodes of h100-april"
                    f" {end}, one hour before its end; {BUY}"
                )
            ]
        }
    else:
        assert found == {
            "training_plan_has_time_left": [
                f"warning {GROUP}.training_plan_arn: the nodes of plan h100-april {end}, {LEAVE}"
            ]
        }


@pytest.mark.parametrize(
    ("until_start", "end"),
    [
        (timedelta(seconds=-1), ""),
        (timedelta(0), ""),
        (timedelta(seconds=30), "2026-11-21 12:00 UTC on, in less than a minute"),
        (timedelta(minutes=30), "2026-11-21 12:30 UTC on, in 30 minutes"),
        (timedelta(days=10), "2026-12-01 12:00 UTC on, in 10 days"),
    ],
)
def test_start(find_all: RunAll, until_start: timedelta, end: str) -> None:
    found = find_all(plan(block(start=NOW + until_start), status="Scheduled"))
    expected = {
        "training_plan_has_time_left": [
            (
                f"warning {GROUP}.training_plan_arn: plan h100-april provides nodes from {end}; its groups are"
                " created without nodes until then"
            )
        ]
    }
    assert found == (expected if end else {})


def days(start: float, end: float) -> ReservedCapacity:
    """A block from so many days after now to so many."""
    return block(start=NOW + timedelta(days=start), end=NOW + timedelta(days=end))


def test_two_blocks_with_a_gap(check_plan: Callable[..., Result]) -> None:
    result = check_plan(CHECKS[6], plan(days(4, 9), days(-1, 2)))
    assert says(result) == [
        (
            f"warning {GROUP}.training_plan_arn: plan h100-april has a gap: nodes leave at 2026-11-23 11:00 UTC and"
            " return at 2026-11-25 12:00 UTC; jobs must be able to stop and resume"
        )
    ]
    (detail,) = result.details
    assert detail.text == (
        "plan h100-april: nodes from 2026-11-20 12:00 UTC to 2026-11-23 11:00 UTC; nodes from 2026-11-25 12:00 UTC to"
        " 2026-11-30 11:00 UTC"
    )
    assert detail.data["blocks"][0]["nodes_leave"] == "2026-11-23T11:00:00+00:00"


def test_between_two_blocks(check_plan: Callable[..., Result]) -> None:
    result = check_plan(CHECKS[6], plan(days(-4, -1), days(3, 9), status="Scheduled"))
    assert says(result) == [
        (
            f"warning {GROUP}.training_plan_arn: plan h100-april provides nodes from 2026-11-24 12:00 UTC on, in 3"
            " days; its groups are created without nodes until then"
        )
    ]


def test_blocks_that_touch_have_no_gap(check_plan: Callable[..., Result]) -> None:
    assert says(check_plan(CHECKS[6], plan(days(-1, 2), days(2, 9)))) == []


def test_times_that_are_not_known(check_plan: Callable[..., Result]) -> None:
    for found in (plan(block(end=None)), replace(plan(), blocks=(), end=None)):
        result = check_plan(CHECKS[6], found)
        assert [each.reason for each in result.skipped] == ["AWS names no start and end of plan h100-april"]
    # the plan's own times serve where it names no block
    assert check_plan(CHECKS[6], replace(plan(), blocks=())).status is Status.PASSED


@pytest.mark.check("training_plan_is_used_in_full", "fails")
@pytest.mark.parametrize(
    ("total", "others", "unhealthy", "idle"), [(2, 0, 0, 0), (3, 0, 0, 1), (3, 1, 0, 0), (8, 2, 0, 4), (8, 2, 1, 3)]
)
def test_idle_instances(
    check_plan: Callable[..., Result], aws: FakeAws, *, total: int, others: int, unhealthy: int, idle: int
) -> None:
    aws.answers.hyperpod_clusters = (cluster("other", others),)
    found = plan(block(count=total), available=total - others - unhealthy, in_use=others, unhealthy=unhealthy)
    result = check_plan(CHECKS[7], found)
    assert [each.text for each in result.details] == [f"plan h100-april: {total - idle} of {total} instances used"]
    expected = [
        (
            f"warning {GROUP}.count: leaves {idle} of the {total} instances of plan h100-april idle, and the whole"
            f" plan is paid for; raise it by {idle} if nobody else needs them"
        )
    ]
    assert says(result) == (expected if idle else [])


def test_one_missing_answer_hides_no_other_plan(case_of: CaseOf, run_check: RunCheck, aws: FakeAws) -> None:
    second = {
        "name": "more",
        "instance_type": "ml.p5.48xlarge",
        "count": 1,
        "availability_zone_id": "use1-az5",
        "capacity": "training_plan",
        "training_plan_arn": f"{ARN}-2",
    }
    aws.answers.training_plan = {ARN: NotAnswered("throttled"), f"{ARN}-2": plan(arn=f"{ARN}-2", status="Failed")}
    result = run_check(CHECKS[1], case_of({"hyperpod.instance_groups[2]": second}, now=NOW), aws)
    assert result.status is Status.FAILED
    assert [each.path for each in result.findings] == ["hyperpod.instance_groups[2].training_plan_arn"]
    assert [(each.reason, each.path) for each in result.skipped] == [("throttled", f"{GROUP}.training_plan_arn")]
