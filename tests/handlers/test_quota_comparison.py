"""The comparison that preflight and the quota gate share: verdicts, their words, and the way through properties."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperpod_cdk.catalog import quotas
from hyperpod_cdk.handlers.quota_gate import comparison
from hyperpod_cdk.handlers.quota_gate.comparison import (
    Reading,
    Requirement,
    Unread,
    Usage,
    Verdict,
    asked_for,
    from_properties,
    judge,
    most_left,
    number,
    to_properties,
)
from tests.support.tables import row_by_row

P5 = "ml.p5.48xlarge for cluster usage"
COUNT = "hyperpod.instance_groups[1].count"
NODES = Requirement(
    key="cluster:ml.p5.48xlarge",
    service="sagemaker",
    name=P5,
    code="L-8762A75F",
    default=0,
    needed=16,
    spare=1,
    spare_for="replacing a faulty node",
    usage="hyperpod_instances:ml.p5.48xlarge",
    unit=P5,
    path=COUNT,
    lever="the count",
)
VPC = Requirement(
    key="vpcs",
    service="vpc",
    name="VPCs per Region",
    code="L-F678F1CE",
    default=5,
    needed=1,
    usage="vpcs",
    unit="VPC",
    path="network",
)
WORSE = {"passed": 0, "skipped": 1, "warning": 2, "error": 3}
UNREAD = Usage(unread=(Unread(kind="VPC", reason="throttled"),))


def message(requirement: Requirement, reading: Reading, environment_name: str = "prod") -> tuple[str, str]:
    verdict = judge(requirement, reading, region="us-east-1", environment_name=environment_name)
    assert verdict.path == requirement.path
    return verdict.severity, verdict.message


@row_by_row(
    "value, used, severity, said",
    [
        (
            8,
            0,
            "error",
            (
                "needs 16 ml.p5.48xlarge for cluster usage, quota is 8 in us-east-1; "
                "lower the count to 8 or run 'hyperpod-cdk quotas request prod'"
            ),
        ),
        (
            15,
            0,
            "error",
            (
                "needs 16 ml.p5.48xlarge for cluster usage, quota is 15 in us-east-1; "
                "lower the count to 15 or run 'hyperpod-cdk quotas request prod'"
            ),
        ),
        (
            16,
            0,
            "warning",
            (
                "needs 16 ml.p5.48xlarge for cluster usage, quota is 16 in us-east-1, which leaves 0 of 1 more for "
                "replacing a faulty node; lower the count to 15 or run 'hyperpod-cdk quotas request prod'"
            ),
        ),
        (17, 0, "passed", "needs 16 ml.p5.48xlarge for cluster usage, quota is 17 in us-east-1"),
        (
            19,
            4,
            "error",
            (
                "needs 16 ml.p5.48xlarge for cluster usage while others use 4, quota is 19 in us-east-1; "
                "lower the count to 15 or run 'hyperpod-cdk quotas request prod'"
            ),
        ),
        (
            20,
            4,
            "warning",
            (
                "needs 16 ml.p5.48xlarge for cluster usage while others use 4, quota is 20 in us-east-1, which leaves "
                "0 of 1 more for replacing a faulty node; lower the count to 15 or run 'hyperpod-cdk quotas request "
                "prod'"
            ),
        ),
        (
            21,
            4,
            "passed",
            "needs 16 ml.p5.48xlarge for cluster usage while others use 4, quota is 21 in us-east-1",
        ),
        (
            1,
            0,
            "error",
            (
                "needs 16 ml.p5.48xlarge for cluster usage, quota is 1 in us-east-1; "
                "lower the count to 1 or run 'hyperpod-cdk quotas request prod'"
            ),
        ),
        (
            0,
            0,
            "error",
            (
                "needs 16 ml.p5.48xlarge for cluster usage, quota is 0 in us-east-1; "
                "run 'hyperpod-cdk quotas request prod'"
            ),
        ),
        (
            20,
            20,
            "error",
            (
                "needs 16 ml.p5.48xlarge for cluster usage while others use 20, quota is 20 in us-east-1; "
                "run 'hyperpod-cdk quotas request prod'"
            ),
        ),
    ],
)
def test_need_against_quota(value: float, used: float, severity: str, said: str) -> None:
    assert message(NODES, Reading(value=value, used=Usage(at_least=used))) == (severity, said)


def test_a_missing_applied_value_is_the_default_and_says_so() -> None:
    assert message(VPC, Reading(value=5, is_default=True, used=Usage(at_least=5))) == (
        "error",
        (
            'needs 1 VPC while others use 5, quota "VPCs per Region" is at its default of 5 in us-east-1; '
            "run 'hyperpod-cdk quotas request prod'"
        ),
    )
    assert message(VPC, Reading(value=5, is_default=True, used=Usage(at_least=4)))[0] == "passed"


def test_a_default_that_is_not_to_be_trusted_warns() -> None:
    doubtful = replace(NODES, unsure_default="accounts that asked for nothing have been seen with 1024")
    assert message(doubtful, Reading(value=0, is_default=True)) == (
        "warning",
        (
            "needs 16 ml.p5.48xlarge for cluster usage, quota is at its default of 0 in us-east-1 (accounts that asked "
            "for nothing have been seen with 1024); run 'hyperpod-cdk quotas request prod'"
        ),
    )
    assert message(doubtful, Reading(value=0))[0] == "error"
    assert message(doubtful, Reading(value=17, is_default=True))[0] == "passed"


def test_advice_is_a_warning_at_most() -> None:
    assert message(replace(NODES, advisory=True), Reading(value=0))[0] == "warning"


@pytest.mark.parametrize(("value", "lowered"), [(4800, "4800"), (7199, "4800"), (7200, "7200"), (2400, "2400")])
def test_the_fix_is_a_multiple_of_the_step(value: float, lowered: str) -> None:
    storage = replace(NODES, needed=9600, spare=0, lever="capacity_gib", step=2400)
    assert f"; lower capacity_gib to {lowered} or " in message(storage, Reading(value=value))[1]
    assert "lower" not in message(storage, Reading(value=2399))[1]


@pytest.mark.parametrize(
    ("environment_name", "adjustable", "fix"),
    [
        ("prod", True, "lower the count to 8 or run 'hyperpod-cdk quotas request prod'"),
        ("", True, "lower the count to 8 or ask Service Quotas for more"),
        ("prod", False, "lower the count to 8 or use another region or account, AWS does not raise this quota"),
    ],
)
def test_the_fix(environment_name: str, adjustable: bool, fix: str) -> None:  # noqa: FBT001 - a parameter of the table
    said = message(NODES, Reading(value=8, is_adjustable=adjustable), environment_name)[1]
    assert said.partition("; ")[2] == fix


def test_a_quota_that_was_not_read_is_skipped() -> None:
    verdict = judge(
        VPC,
        Reading(value=None, problem="not allowed", action="servicequotas:GetServiceQuota"),
        region="us-east-1",
    )
    assert (verdict.severity, verdict.action, verdict.path) == ("skipped", "servicequotas:GetServiceQuota", "network")
    assert verdict.message == 'the quota "VPCs per Region" could not be read in us-east-1: not allowed'
    assert judge(VPC, Reading(value=None), region="us-east-1").message.endswith(": AWS gave no answer")


def test_use_that_was_not_read_is_skipped_unless_the_need_alone_is_too_much() -> None:
    unread = Reading(value=5, used=UNREAD)
    assert message(VPC, unread) == (
        "skipped",
        'what others use of the quota "VPCs per Region" could not be read in us-east-1: throttled',
    )
    assert message(replace(VPC, needed=6), unread)[0] == "error"
    assert message(replace(VPC, needed=5), unread)[0] == "skipped"


@pytest.mark.parametrize(
    ("value", "used", "wanted"),
    [
        (16, Usage(), 17),
        (17, Usage(), None),
        (20, Usage(at_least=4), 21),
        (21, Usage(at_least=4), None),
        (None, Usage(), None),
        (0, UNREAD, None),
    ],
)
def test_what_is_asked_for(value: float | None, used: Usage, wanted: float | None) -> None:
    assert asked_for(NODES, Reading(value=value, used=used)) == wanted


@pytest.mark.parametrize(
    ("value", "used", "left"),
    [
        (5, Usage(at_least=3), 2),
        (5, Usage(at_least=5), 0),
        (5, Usage(at_least=9), 0),
        (None, Usage(), None),
        (5, UNREAD, 5),
        (5, Usage(at_least=2, unread=UNREAD.unread), 3),
    ],
)
def test_the_most_that_others_leave(value: float | None, used: Usage, left: float | None) -> None:
    assert most_left(Reading(value=value, used=used)) == left


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (16.0, "16"), (100800, "100800"), (1e15, "1000000000000000"), (0.5, "0.5")]
)
def test_numbers(value: float, text: str) -> None:
    assert number(value) == text


amounts = st.integers(0, 10**6).map(float)
words = st.text(max_size=30)
usages = st.builds(
    Usage,
    at_least=amounts,
    unread=st.lists(
        st.builds(
            Unread,
            kind=st.sampled_from(["VPC", "HyperPod cluster"]),
            name=st.sampled_from(["", "lab", "shared"]),
            reason=st.sampled_from(["throttled", "no permission for ec2:DescribeVpcs"]),
        ),
        max_size=3,
    ).map(tuple),
)
requirements = st.builds(
    Requirement,
    key=words,
    service=words,
    name=words,
    code=words,
    default=amounts,
    needed=amounts,
    spare=amounts,
    usage=words,
    unit=words,
    path=words,
    lever=words,
    step=st.integers(1, 10**4).map(float),
    spare_for=words,
    unsure_default=words,
    advisory=st.booleans(),
)


@given(st.lists(requirements, max_size=4))
def test_properties_round_trip(several: list[Requirement]) -> None:
    written = to_properties(several)
    assert all(isinstance(value, str) for each in written for value in each.values())
    assert from_properties(written) == tuple(several)


def test_properties_are_readable() -> None:
    assert to_properties([VPC]) == [
        {
            "Key": "vpcs",
            "Service": "vpc",
            "Name": "VPCs per Region",
            "Code": "L-F678F1CE",
            "Default": "5",
            "Needed": "1",
            "Usage": "vpcs",
            "Unit": "VPC",
            "Path": "network",
        }
    ]


ALL_PROPERTIES = (
    "a requirement must have the properties Key, Service, Name, Code, Default, Needed, Spare, Usage, Unit, Path, "
    "Lever, Step, SpareFor, UnsureDefault, Advisory"
)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"Needed": "many"}, 'Needed: must be a number, got "many"'),
        ({"Needed": "nan"}, 'Needed: must be a number, got "nan"'),
        ({"Default": "inf"}, 'Default: must be a number, got "inf"'),
        ({"Nedded": "1"}, f"{ALL_PROPERTIES}; Nedded is not known"),
        ({"Needed": None}, f"{ALL_PROPERTIES}; Needed is missing"),
    ],
)
def test_other_properties_are_refused(changes: dict[str, str | None], problem: str) -> None:
    (written,) = to_properties([VPC])
    changed = {name: value for name, value in {**written, **changes}.items() if value is not None}
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the whole message is compared below
        from_properties([changed])
    assert str(raised.value) == problem


@given(requirements, amounts, amounts, amounts, st.booleans())
def test_more_quota_is_never_worse(
    requirement: Requirement,
    value: float,
    more: float,
    used: float,
    is_default: bool,  # noqa: FBT001 - drawn
) -> None:
    small = judge(requirement, Reading(value=value, used=Usage(at_least=used), is_default=is_default), region="r")
    large = judge(
        requirement, Reading(value=value + more, used=Usage(at_least=used), is_default=is_default), region="r"
    )
    assert WORSE[large.severity] <= WORSE[small.severity]


@given(requirements, amounts, amounts)
def test_what_is_asked_for_passes_once_granted(requirement: Requirement, value: float, used: float) -> None:
    reading = Reading(value=value, used=Usage(at_least=used))
    wanted = asked_for(requirement, reading)
    granted = reading if wanted is None else replace(reading, value=wanted)
    assert judge(requirement, granted, region="r").severity == "passed"
    assert wanted is None or wanted > value


@given(requirements, st.none() | amounts, usages)
def test_a_message_is_one_line_in_our_voice(requirement: Requirement, value: float | None, used: Usage) -> None:
    plain: Any = replace(requirement, name="a quota", unit="things", lever="the count", unsure_default="", spare_for="")
    said = judge(plain, Reading(value=value, used=used), region="us-east-1", environment_name="prod").message
    assert "\n" not in said
    assert said[0].islower()
    assert not said.endswith(".")


@given(requirements, st.none() | amounts, usages, amounts, st.booleans())
def test_what_was_not_read_is_never_passed_and_hides_nothing(
    requirement: Requirement,
    value: float | None,
    used: Usage,
    rest: float,
    is_default: bool,  # noqa: FBT001 - drawn
) -> None:
    """Whatever the unread part holds: no verdict is milder than the read part proves, none says more than was seen."""
    reading = Reading(value=value, used=used, is_default=is_default)
    verdict = judge(requirement, reading, region="r")
    seen_alone = judge(requirement, replace(reading, used=Usage(at_least=used.at_least)), region="r")
    truth = judge(requirement, replace(reading, used=Usage(at_least=used.at_least + rest)), region="r")
    assert WORSE[verdict.severity] >= WORSE[seen_alone.severity]
    assert WORSE[truth.severity] >= WORSE[verdict.severity] or verdict.severity == "skipped"
    if not used.is_whole:
        assert verdict.severity != "passed"
        assert verdict.unread or verdict.severity == truth.severity
    assert (verdict.severity == "skipped") <= bool(verdict.unread)


def test_a_lower_bound_refuses_and_says_what_is_missing() -> None:
    unread = tuple(Unread(kind="HyperPod cluster", name=name, reason="throttled") for name in ("lab", "shared"))
    verdict = judge(replace(VPC, needed=2), Reading(value=8, used=Usage(at_least=7, unread=unread)), region="us-east-1")
    assert (verdict.severity, verdict.unread) == ("error", "")
    assert verdict.message == (
        "needs 2 VPC while others use at least 7 (2 HyperPod clusters could not be read), "
        'quota "VPCs per Region" is 8 in us-east-1; ask Service Quotas for more'
    )


def test_a_lower_bound_that_leaves_enough_is_skipped_with_what_was_seen() -> None:
    unread = Unread(
        kind="HyperPod cluster", name="lab", reason="no permission", action="sagemaker:DescribeCluster", said="No."
    )
    verdict = judge(VPC, Reading(value=8, used=Usage(at_least=7, unread=(unread,))), region="us-east-1")
    assert verdict == Verdict(
        severity="skipped",
        message=verdict.unread,
        path="network",
        unread='what others use of the quota "VPCs per Region" could not be read in full in us-east-1: at least 7 of 8'
        " are in use, HyperPod cluster lab could not be read: no permission",
        action="sagemaker:DescribeCluster",
        said="No.",
    )


def test_a_warning_stands_beside_what_was_not_read() -> None:
    verdict = judge(NODES, Reading(value=16, used=UNREAD), region="us-east-1")
    assert verdict.severity == "warning"
    assert "which leaves at most 0 of 1 more for replacing a faulty node; lower the count to at most 15" in (
        verdict.message
    )
    assert verdict.unread == (
        'what others use of the quota "ml.p5.48xlarge for cluster usage" could not be read in us-east-1: throttled'
    )


names = st.one_of(
    st.text(max_size=60),
    st.lists(
        st.sampled_from(["Maximum", "number", "of", "cluster", "-ml-", "ml.r7i.12xlarge", "for", "usage", "(", " . "]),
        max_size=8,
    ).map(" ".join),
)


@given(names)
def test_the_catalog_normalises_alike(name: str) -> None:
    assert comparison.normalized(name) == quotas.normalized(name)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("cluster-ml-r7i-12xlarge for cluster usage", "ml.r7i.12xlarge for cluster usage"),
        (
            "Maximum number instances allowed per SageMaker HyperPod cluster",
            "maximum number of instances allowed per SageMaker HyperPod cluster.",
        ),
        ("VPCs  per Region", "VPCs per region"),
    ],
)
def test_names_that_are_the_same(one: str, other: str) -> None:
    assert comparison.normalized(one) == comparison.normalized(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (P5, "ml.p5.48xlarge for cluster spot instance usage"),
        (P5, "ml.p5.4xlarge for cluster usage"),
        ("ml.r7i.2xlarge for cluster usage", "cluster-ml-r7i-12xlarge for cluster usage"),
        ("Clusters", "cluster"),
    ],
)
def test_names_that_differ(one: str, other: str) -> None:
    assert comparison.normalized(one) != comparison.normalized(other)
