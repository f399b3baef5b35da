"""The largest cluster that quotas allow: group by group, all together, and which quota binds."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperpod_cdk.checks.capacity import largest_groups, largest_mix
from hyperpod_cdk.checks.model import Case
from hyperpod_cdk.checks.quotas import Compared
from hyperpod_cdk.handlers.quota_gate.comparison import Reading, Requirement, Usage, judge
from hyperpod_cdk.quotas.needs import required_quotas

CaseOf = Callable[..., Case]

P5 = "ml.p5.48xlarge for cluster usage"
M5 = "ml.m5.2xlarge for cluster usage"
TOTAL = "Total number of instances allowed across SageMaker HyperPod clusters"
PER_CLUSTER = "Maximum number instances allowed per SageMaker HyperPod cluster"
INTERFACES = "Network interfaces per Region"
UNREAD = Reading(value=None, problem="not allowed")


def compared(case: Case, **readings: float | Reading) -> list[Compared]:
    """Compare with an account that has plenty of all but the quotas given by name."""

    def one(need: Requirement) -> Compared:
        given_reading = readings.get(need.name, 10.0**6)
        reading = given_reading if isinstance(given_reading, Reading) else Reading(value=given_reading)
        return Compared(requirement=need, reading=reading, verdict=judge(need, reading, region="us-east-1"))

    return [one(need) for need in required_quotas(case.environment)]


@pytest.mark.parametrize(
    ("readings", "system", "h100"),
    [
        ({P5: 8.0, TOTAL: 100.0}, (98, TOTAL), (8, P5)),
        ({P5: 8.0, TOTAL: 6.0}, (4, TOTAL), (4, TOTAL)),
        ({P5: 8.0, PER_CLUSTER: 20.0}, (18, PER_CLUSTER), (8, P5)),
        ({P5: 1.0, M5: 1.0}, (1, M5), (1, P5)),
        ({P5: 0.0, M5: 0.0}, (0, M5), (0, P5)),
        ({P5: Reading(value=8, used=Usage(at_least=3)), M5: 2.0}, (2, M5), (5, P5)),
        # 84 interfaces are taken, 64 of them by two p5: 20 + 32 a node
        ({INTERFACES: 20.0 + 32 * 7, M5: 3.0}, (3, M5), (7, INTERFACES)),
        ({INTERFACES: 19.0 + 32 * 7, M5: 3.0}, (3, M5), (6, INTERFACES)),
    ],
)
def test_largest_groups(
    case_of: CaseOf, readings: dict[str, float | Reading], system: tuple[int, str], h100: tuple[int, str]
) -> None:
    case = case_of()
    found = largest_groups(case.environment, compared(case, **readings))
    assert [(each.group, each.count, each.bound_by) for each in found] == [("system", *system), ("h100", *h100)]
    assert [(each.present, each.instance_type, each.unread) for each in found] == [
        (2, "ml.m5.2xlarge", ()),
        (2, "ml.p5.48xlarge", ()),
    ]


def test_quotas_that_were_not_read_are_named(case_of: CaseOf) -> None:
    case = case_of()
    readings: dict[str, float | Reading] = {P5: UNREAD, TOTAL: 10.0}
    h100 = largest_groups(case.environment, compared(case, **readings))[1]
    assert (h100.count, h100.bound_by, h100.unread) == (8, TOTAL, (P5,))
    assert h100.as_dict() == {
        "group": "h100",
        "instance_type": "ml.p5.48xlarge",
        "present_count": 2,
        "largest_count": 8,
        "bound_by": TOTAL,
        "unread": [P5],
    }


def test_nothing_was_read(case_of: CaseOf) -> None:
    case = case_of()
    readings = {need.name: UNREAD for need in required_quotas(case.environment)}
    everything = compared(case, **readings)
    assert {(each.count, each.bound_by) for each in largest_groups(case.environment, everything)} == {(None, "")}
    mix = largest_mix(case.environment, everything)
    assert (mix.times, mix.bound_by, len(mix.unread)) == (None, "", 5)


def test_empty_groups_are_left_out(case_of: CaseOf) -> None:
    empty = {"name": "later", "instance_type": "ml.c5.large", "count": 0, "availability_zone_id": "use1-az4"}
    case = case_of({"hyperpod.instance_groups[2]": empty})
    assert [each.group for each in largest_groups(case.environment, compared(case))] == ["system", "h100"]
    assert largest_mix(case.environment, compared(case, **{P5: 4.0})).times == 2


@pytest.mark.parametrize(
    ("readings", "times", "bound_by"),
    [
        ({P5: 1.0}, 0, P5),
        ({P5: 2.0}, 1, P5),
        ({P5: 3.0}, 1, P5),
        ({P5: 4.0}, 2, P5),
        ({P5: 99.0, TOTAL: 11.0}, 2, TOTAL),
        ({P5: 99.0, TOTAL: 12.0}, 3, TOTAL),
        # 18 interfaces beside the nodes, 66 for the two groups
        ({INTERFACES: 18.0 + 66 * 2, P5: 99.0}, 2, INTERFACES),
    ],
)
def test_the_mix(case_of: CaseOf, readings: dict[str, float | Reading], times: int, bound_by: str) -> None:
    case = case_of()
    mix = largest_mix(case.environment, compared(case, **readings))
    assert (mix.times, mix.bound_by, mix.unread) == (times, bound_by, ())
    assert mix.as_dict() == {"times": times, "bound_by": bound_by, "unread": []}


@settings(max_examples=15, deadline=None)
@given(quota=st.integers(1, 30), total=st.integers(3, 40), used=st.integers(0, 10))
def test_the_largest_group_fits_and_one_more_does_not(case_of: CaseOf, quota: int, total: int, used: int) -> None:
    readings: dict[str, float | Reading] = {P5: Reading(value=quota, used=Usage(at_least=used)), TOTAL: float(total)}
    case = case_of()
    count = largest_groups(case.environment, compared(case, **readings))[1].count
    assert count is not None
    for tried, fits in ((count, True), (count + 1, False)):
        if not tried:
            continue
        changes = {"hyperpod.instance_groups[1].count": tried, "task_governance": ..., "storage.lustre[0].claim": ...}
        other = case_of(changes)
        assert all(each.verdict.severity != "error" for each in compared(other, **readings)) is fits
