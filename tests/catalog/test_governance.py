"""Task governance's bounds and words agree with the API's model and with the CloudFormation schemas."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperpod_cdk.catalog import governance
from hyperpod_cdk.catalog.rules import Bound, Pattern

SCHEDULER = "AWS::SageMaker::ClusterSchedulerConfig"
QUOTA = "AWS::SageMaker::ComputeQuota"

Schema = Callable[[str], dict[str, Any]]


def properties(schema: dict[str, Any], definition: str) -> dict[str, Any]:
    found: dict[str, Any] = schema["definitions"][definition]["properties"]
    return found


def test_numbers_agree_with_the_schemas(registry_schema: Schema) -> None:
    weight = properties(registry_schema(SCHEDULER), "PriorityClass")["Weight"]
    classes = properties(registry_schema(SCHEDULER), "SchedulerConfig")["PriorityClasses"]
    share = properties(registry_schema(QUOTA), "ComputeQuotaTarget")["FairShareWeight"]
    resources = properties(registry_schema(QUOTA), "ComputeQuotaConfig")["ComputeQuotaResources"]
    limits = properties(registry_schema(QUOTA), "ResourceSharingConfig")["AbsoluteBorrowLimits"]
    count = properties(registry_schema(QUOTA), "ComputeQuotaResourceConfig")["Count"]
    assert pair(governance.PRIORITY_WEIGHT) == (weight["minimum"], weight["maximum"])
    assert pair(governance.PRIORITY_CLASSES) == (classes["minItems"], classes["maxItems"])
    assert pair(governance.FAIR_SHARE_WEIGHT) == (share["minimum"], share["maximum"])
    assert pair(governance.QUOTA_RESOURCES) == (resources["minItems"], resources["maxItems"])
    assert pair(governance.ABSOLUTE_BORROW_LIMITS) == (limits["minItems"], limits["maxItems"])
    assert pair(governance.QUOTA_COUNT) == (count["minimum"], count["maximum"])


def test_the_borrow_limit_is_the_guide_s_and_lies_inside_the_shape(registry_schema: Schema) -> None:
    shape = properties(registry_schema(QUOTA), "ResourceSharingConfig")["BorrowLimit"]
    assert pair(governance.BORROW_LIMIT_PERCENT) == (1, 500)
    assert (shape["minimum"], shape["maximum"]) == (0, 10_000)


def test_words_are_those_of_the_schemas(registry_schema: Schema) -> None:
    scheduler = properties(registry_schema(SCHEDULER), "SchedulerConfig")
    quota = properties(registry_schema(QUOTA), "ComputeQuotaConfig")
    sharing = properties(registry_schema(QUOTA), "ResourceSharingConfig")
    assert set(governance.IDLE_COMPUTE.values()) == set(scheduler["FairShare"]["enum"])
    assert set(governance.SHARING.values()) == set(sharing["Strategy"]["enum"])
    assert set(governance.PREEMPTION.values()) == set(quota["PreemptTeamTasks"]["enum"])
    assert governance.ORDERINGS == ("first_come_first_served", "priority")


def test_patterns_agree_with_the_schemas(registry_schema: Schema) -> None:
    name = registry_schema(SCHEDULER)["properties"]["Name"]
    assert f"^{governance.POLICY_NAME.regex}$" == name["pattern"]
    assert governance.POLICY_NAME.maximum == name["maxLength"]


@given(text=st.text(alphabet="ab0-_A\n", max_size=12))
def test_names_match_what_the_schemas_slow_pattern_matches(text: str, registry_schema: Schema) -> None:
    team = properties(registry_schema(QUOTA), "ComputeQuotaTarget")["TeamName"]["pattern"]
    priority = properties(registry_schema(SCHEDULER), "PriorityClass")["Name"]["pattern"]
    assert governance.TEAM_NAME.matches(text) == (re.fullmatch(team, text) is not None)
    assert governance.PRIORITY_CLASS_NAME.matches(text) == (re.fullmatch(priority, text) is not None)


@pytest.mark.timeout(5)
@pytest.mark.parametrize("pattern", [governance.TEAM_NAME, governance.PRIORITY_CLASS_NAME, governance.POLICY_NAME])
def test_a_long_name_with_a_bad_end_is_refused_at_once(pattern: Pattern) -> None:
    # the schema's own pattern needs hours for this text: each further letter doubles its work
    assert not pattern.matches("a" * (pattern.maximum - 1) + "-")


def test_lengths_leave_room_for_the_names_that_are_built_of_them() -> None:
    team = "t" * governance.TEAM_NAME.maximum
    name = "n" * governance.PRIORITY_CLASS_NAME.maximum
    label_value = 63
    assert len(governance.local_queue(team)) == label_value
    assert len(governance.priority_class(name)) == label_value
    assert len(governance.namespace(team)) < label_value


@pytest.mark.parametrize(
    ("percent", "problem"),
    [
        (0, "must be at least 1, got 0; set borrow_limit_percent: 1 or more"),
        (1, None),
        (500, None),
        (501, "must be at most 500, got 501; set borrow_limit_percent: 500 or less"),
    ],
)
def test_borrow_limits(percent: int, problem: str | None) -> None:
    assert governance.BORROW_LIMIT_PERCENT.problem(percent, key="borrow_limit_percent") == problem


@pytest.mark.parametrize(
    ("count", "problem"),
    [(0, None), (10, None), (11, "must hold at most 10 priority classes, got 11; remove 1")],
)
def test_priority_classes(count: int, problem: str | None) -> None:
    assert governance.PRIORITY_CLASSES.count_problem(count, what="priority classes") == problem


@pytest.mark.parametrize(
    ("name", "fix"),
    [("Research", "research"), ("ml_platform", "ml-platform"), ("t" * 41, "t" * 40), ("", "research")],
)
def test_team_names_that_kubernetes_cannot_carry(name: str, fix: str) -> None:
    assert governance.TEAM_NAME.problem(name, key="name") == (
        "must be 1 to 40 lower-case letters, digits and hyphens, beginning and ending with a letter or digit, "
        f'got "{name}"; set name: {fix}'
    )


@pytest.mark.parametrize("name", ["r", "research", "team-1", "t" * 40])
def test_team_names(name: str) -> None:
    assert governance.TEAM_NAME.problem(name, key="name") is None


def test_default_priority_classes_are_valid() -> None:
    for name, weight in governance.DEFAULT_PRIORITY_CLASSES:
        assert governance.PRIORITY_CLASS_NAME.problem(name, key="name") is None
        assert governance.PRIORITY_WEIGHT.problem(weight, key="weight") is None
    weights = [weight for _, weight in governance.DEFAULT_PRIORITY_CLASSES]
    assert weights == sorted(set(weights), reverse=True)


def test_names_that_the_service_builds() -> None:
    assert governance.namespace("research") == "hyperpod-ns-research"
    assert governance.local_queue("research") == "hyperpod-ns-research-localqueue"
    assert governance.cluster_queue("research") == "hyperpod-ns-research-clusterqueue"
    assert governance.priority_class("training") == "training-priority"
    assert governance.QUEUE_LABEL == "kueue.x-k8s.io/queue-name"
    assert governance.PRIORITY_LABEL == "kueue.x-k8s.io/priority-class"


def test_defaults_of_the_service() -> None:
    assert governance.DEFAULT_BORROW_LIMIT_PERCENT == 50
    assert governance.DEFAULT_FAIR_SHARE_WEIGHT == 0


def test_every_row_of_the_file_has_a_name_in_the_module() -> None:
    values = [value for value in vars(governance).values() if isinstance(value, Bound | Pattern)]
    assert all(bound in values and bound.source for bound in governance._BOUNDS.values())
    assert all(pattern in values and pattern.source for pattern in governance._PATTERNS.values())


def pair(bound: Bound) -> tuple[int | None, int | None]:
    return bound.minimum, bound.maximum
