"""Several environments: plans with too few instances, overlapping blocks, quotas of one account."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from hyperpod_cdk.catalog.network import secondary_cidr_problem
from hyperpod_cdk.checks.model import Detail, Report, Result
from hyperpod_cdk.checks.run import select
from hyperpod_cdk.checks.together import by_aws, living, quotas_together, shared_quotas
from hyperpod_cdk.config import LoadedEnvironment, load_environment
from hyperpod_cdk.config.recorded_plans import RecordedBlock, RecordedPlan, RecordedPlans
from hyperpod_cdk.config.several import found_together, free_blocks
from hyperpod_cdk.findings import Finding
from hyperpod_cdk.handlers.quota_gate.comparison import Unread, Usage

TODAY = date(2026, 11, 20)
ARN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/h100-april"
Make = Callable[..., LoadedEnvironment]


@pytest.fixture
def make(base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Creates an environment with a name, replaced texts, and the record of a plan with a number of instances."""
    monkeypatch.chdir(tmp_path)

    def made(name: str, *, seats: int | None = None, **texts: str) -> LoadedEnvironment:
        path = Path(f"{name}.yaml")
        text = base.replace("name: prod\n", f"name: {name}\n", 1)
        for old, new in texts.items():
            text = text.replace(old, new)
        if seats is not None:
            block = RecordedBlock(
                instance_type="ml.p5.48xlarge",
                instance_count=seats,
                availability_zone="us-east-1a",
                availability_zone_id="use1-az5",
                start=None,
                end=None,
            )
            plan = RecordedPlan(
                arn=ARN,
                name="h100-april",
                status="Active",
                target_resources=("hyperpod-cluster",),
                instance_count=seats,
                blocks=(block,),
            )
            record = RecordedPlans(
                schema_version=1, recorded=TODAY, account="111122223333", region="us-east-1", plans=(plan,)
            )
            path.with_name(f"{name}.plans.json").write_text(record.text(), encoding="utf-8")
        path.write_text(text, encoding="utf-8")
        return load_environment(path, today=TODAY)

    return made


def apart(second: int) -> dict[str, str]:
    """Return address blocks of one's own."""
    return {"10.192.0.0/16": f"10.{200 + second}.0.0/16", "10.1.": f"10.{second}1.", "10.2.": f"10.{second}2."}


def test_a_plan_of_two_environments_without_a_record(make: Make) -> None:
    found = found_together([make("one"), make("two", **apart(1))])
    assert [each.render() for each in found] == [
        (
            "two.yaml:35 hyperpod.instance_groups[1].training_plan_arn: is used by 2 environments for 4 instances in"
            " total (2 of one.yaml, 2 of two.yaml), and how many h100-april has is not recorded; run 'hyperpod-cdk"
            " plans record two.yaml'"
        )
    ]


@pytest.mark.parametrize(("seats", "refused"), [(3, True), (4, False), (5, False)])
def test_a_plan_of_two_environments_at_and_beside_its_seats(make: Make, seats: int, refused: bool) -> None:  # noqa: FBT001 - a parameter of the test
    found = found_together([make("one", seats=seats), make("two", **apart(1))])
    said = [
        (
            "two.yaml:35 hyperpod.instance_groups[1].training_plan_arn: must use at most the 3 instances of h100-april"
            " with the other environments, got 4 (2 of one.yaml, 2 of two.yaml); lower the counts by 1"
        )
    ]
    assert [each.render() for each in found] == (said if refused else [])


def test_a_plan_of_the_same_file_twice_is_one(make: Make) -> None:
    one = make("one")
    assert found_together([one, one]) == []


def test_blocks_that_overlap_are_reported_once(make: Make) -> None:
    files = [make("one"), make("two")]
    rules = [each.rule for each in found_together(files)]
    assert rules.count("blocks_overlap_no_other_environment") == 1
    (overlap,) = [each for each in found_together(files) if each.rule == "blocks_overlap_no_other_environment"]
    assert overlap.render() == (
        "two.yaml:8 network.vpc_cidr: 10.192.0.0/16 overlaps 10.192.0.0/16 of one.yaml, in the same account and region:"
        " the two VPCs can neither be peered nor share a transit gateway; choose other blocks before the first"
        " deployment if they are to"
    )


def test_blocks_of_other_accounts_are_theirs(make: Make) -> None:
    other = make("two", **{"111122223333": "444455556666"})
    assert [each.rule for each in found_together([make("one"), other])] == []


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ({}, True),
        ({"us-east-1": "us-west-2", "use1-": "usw2-"}, True),
        ({"111122223333": "444455556666"}, False),
        ({"C0123ABCD": "C0123ABCE"}, False),
        ({"T0123ABCD": "T0123ABCE"}, False),
    ],
)
def test_a_slack_channel_of_two_environments(make: Make, texts: dict[str, str], said: bool) -> None:  # noqa: FBT001 - a column of the table
    slack = {"hyperpod:\n": "notify: {slack: {workspace_id: T0123ABCD, channel_id: C0123ABCD}}\nhyperpod:\n"}
    one, two = make("one", **slack), make("two", **slack, **texts)
    found = [each for each in found_together([one, two]) if each.rule == "slack_channel_is_no_other_environments"]
    text = (
        "notify.slack.channel_id: C0123ABCD is also the channel of one.yaml, and the service has refused a second"
        " configuration of a channel in one account; name another channel"
    )
    expected = [f"two.yaml:{two.line_of('notify.slack.channel_id')} {text}"] if said else []
    assert [each.render() for each in found] == expected


def test_quotas_of_one_account_and_region_are_added_up(make: Make) -> None:
    found = list(quotas_together([make("one"), make("two", **apart(1))]))
    assert {each.rule for each in found} == {"quotas_suffice_for_all_environments"}
    (usage,) = [each for each in found if '"ml.p5.48xlarge for cluster usage"' in each.message]
    assert usage.render() == (
        "two.yaml:31 hyperpod.instance_groups[1].count: the environments of 111122223333 in us-east-1 need 4 of the"
        ' quota "ml.p5.48xlarge for cluster usage" together (2 of one.yaml, 2 of two.yaml), and 0 is AWS\'s default;'
        " request 4"
    )
    assert list(quotas_together([make("one")])) == []


def test_free_blocks_overlap_nothing(make: Make) -> None:
    taken = list(make("one").environment.network.blocks().values())
    chosen = free_blocks(taken, vpc="10.192.0.0/16", zones=["use1-az5", "use1-az4"])
    assert chosen == ("10.193.0.0/16", {"use1-az5": "10.0.0.0/16", "use1-az4": "10.3.0.0/16"})


@pytest.mark.parametrize(
    "taken", [[], ["10.192.0.0/16"], ["10.192.0.0/16", "10.4.0.0/16", "10.5.0.0/16"], ["10.0.0.0/14"]]
)
@pytest.mark.parametrize("count", [1, 2, 3, 6])
def test_free_blocks_are_what_aws_adds_to_one_vpc(taken: list[str], count: int) -> None:
    zones = [f"use1-az{number}" for number in range(1, count + 1)]
    chosen = free_blocks([IPv4Network(each) for each in taken], vpc="10.192.0.0/16", zones=zones)
    assert chosen is not None
    primary, by_zone = chosen
    assert list(by_zone) == zones
    for each in by_zone.values():
        others = [other for other in by_zone.values() if other != each]
        assert secondary_cidr_problem(each, primary=primary, others=others) is None
        assert not any(IPv4Network(each).overlaps(IPv4Network(other)) for other in [*taken, *others, primary])


def test_no_block_is_free(make: Make) -> None:
    everything = [next(iter(make("one").environment.network.blocks().values())).supernet(new_prefix=8)]
    assert free_blocks(everything, vpc="10.192.0.0/16", zones=["use1-az5"]) is None


# --- by what AWS says -------------------------------------------------------------------------------------------------

P5 = "ml.p5.48xlarge for cluster usage"
UNREAD = Usage(at_least=0, unread=(Unread(kind="HyperPod cluster", reason="no permission"),))


def told(each: LoadedEnvironment, value: float | None, others: float | None, *, is_default: bool = False) -> Report:
    """What the preflight of an environment saw of the quota."""
    seen = {"service": "sagemaker", "quota": P5, "value": value, "is_default": is_default, "used_by_others": others}
    (check, *_) = select()
    return Report(loaded=each, results=(Result(check=check, details=(Detail(text="", data=seen),)),))


@dataclass(frozen=True, kw_only=True)
class Sum:
    """Two environments that need two instances each: the quota, what the first and the second have, what others have.

    ``usage`` is what could be read of the whole account where that is not all.
    """

    value: float
    has: tuple[float, float] = (0, 0)
    others: float = 0
    usage: Usage | None = None
    is_default: bool = False
    said: str = ""


SUMS: dict[str, Sum] = {
    "all of it": Sum(value=4),
    "one less": Sum(value=3, said="error: and the quota is 3; request 4"),
    "AWS's default": Sum(value=3, is_default=True, said="error: and the quota is 3 (AWS's default); request 4"),
    "beside others": Sum(value=6, others=2),
    "others have one more": Sum(value=6, others=3, said="error: others use 3, and the quota is 6; request 7"),
    "the first stands": Sum(value=6, has=(2, 0), others=2),
    "the first stands, others have more": Sum(
        value=6, has=(2, 0), others=3, said="error: others use 3, and the quota is 6; request 7"
    ),
    "both stand": Sum(value=4, has=(2, 2)),
    "both shrink": Sum(value=4, has=(5, 5)),
    "others are not known": Sum(
        value=4,
        usage=UNREAD,
        said="skipped: whether it is enough for all environments together (2 of one.yaml, 2 of two.yaml): the list of"
        " HyperPod clusters could not be read",
    ),
    "too little whatever others have": Sum(value=3, usage=UNREAD, said="error: and the quota is 3; request 4"),
}


@pytest.mark.parametrize("name", SUMS)
def test_what_environments_need_together_is_compared_with_the_account(name: str, make: Make) -> None:
    row = SUMS[name]
    one, two = make("one"), make("two", **apart(1))
    (shared,) = [each for each in shared_quotas([one, two]) if each.users[0][1].name == P5]
    # what others than one use has the other in it
    beside = [None if row.usage else row.others + each for each in reversed(row.has)]
    reports = {
        each.file: told(each, row.value, others, is_default=row.is_default)
        for each, others in zip((one, two), beside, strict=True)
    }
    usage = row.usage or Usage(at_least=row.others + sum(row.has))
    known = living(shared, reports, usage)
    assert known is not None
    answer = by_aws(shared, known)
    if isinstance(answer, Finding):
        assert f"{answer.severity.value}: {answer.message.partition('two.yaml), ')[2]}" == row.said
        assert (answer.file, answer.path) == ("two.yaml", "hyperpod.instance_groups[1].count")
    else:
        assert (f"skipped: {answer}" if answer else "") == row.said


@pytest.mark.parametrize("value", [None, 4])
def test_a_quota_that_not_all_could_read_is_judged_without_aws(value: float | None, make: Make) -> None:
    one, two = make("one"), make("two", **apart(1))
    (shared,) = [each for each in shared_quotas([one, two]) if each.users[0][1].name == P5]
    reports = {one.file: told(one, 4, 0)} | ({two.file: told(two, None, 0)} if value is None else {})
    assert living(shared, reports, Usage()) is None
