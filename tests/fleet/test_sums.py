"""Totals of environments: a plan's instances and fee once, quotas once per account and Region, dollars."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from hyperpod_cdk.config import LoadedEnvironment, load_environment
from hyperpod_cdk.config.recorded_plans import RecordedBlock, RecordedPlan, RecordedPlans
from hyperpod_cdk.config.recorded_quotas import RecordedQuota, RecordedQuotas
from hyperpod_cdk.fleet.model import Share
from hyperpod_cdk.fleet.pages import sums_text
from hyperpod_cdk.fleet.sums import NoCost, sums
from hyperpod_cdk.review.model import Change, Cost

TODAY = date(2026, 11, 20)
ARN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/h100-april"
USAGE = "ml.p5.48xlarge for cluster usage"
Make = Callable[..., LoadedEnvironment]


@pytest.fixture
def make(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Makes an environment with two nodes on a plan; with what is recorded of the plan's seats and fee, and a quota."""
    monkeypatch.chdir(tmp_path)
    base = (project / "tests" / "config" / "base.yaml").read_text(encoding="utf-8")

    def made(
        name: str, *, seats: int | None = None, fee: str = "", quota: float | None = None, account: str = "111122223333"
    ) -> LoadedEnvironment:
        path = Path(f"{name}.yaml")
        text = base.replace("name: prod\n", f"name: {name}\n", 1).replace("111122223333", account)
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
                upfront_fee=fee,
                currency="USD" if fee else "",
            )
            record = RecordedPlans(schema_version=1, recorded=TODAY, account=account, region="us-east-1", plans=(plan,))
            path.with_name(f"{name}.plans.json").write_text(record.text(), encoding="utf-8")
        if quota is not None:
            row = RecordedQuota(service="sagemaker", name=USAGE, code="L-1", value=quota, is_default=False, used={})
            quotas = RecordedQuotas(
                schema_version=1, recorded=TODAY, account=account, region="us-east-1", quotas=(row,)
            )
            path.with_name(f"{name}.quotas.json").write_text(quotas.text(), encoding="utf-8")
        path.write_text(text, encoding="utf-8")
        return load_environment(path, today=TODAY)

    return made


@pytest.mark.parametrize(
    ("seats", "result", "passed"), [(3, "short", False), (4, "enough", None), (None, "unknown", None)]
)
def test_a_plan_that_each_fits_and_both_do_not(make: Make, seats: int | None, result: str, passed: bool | None) -> None:  # noqa: FBT001
    found = sums([make("one", seats=seats, fee="1000.50"), make("two", seats=seats, fee="1000.50")], {})
    (plan,) = found.plans
    assert (plan.booked, plan.seats, plan.result) == (4, seats, result)
    assert plan.shares == (Share(environment="one", amount=2), Share(environment="two", amount=2))
    # paid once, however many stand on it
    assert plan.fee == (None if seats is None else 1000.5)
    assert found.passed is passed
    assert found.verdict.startswith("Too little for all: plan h100-april: 4 booked of 3 instances") is (seats == 3)


def test_a_quota_that_each_fits_and_both_do_not(make: Make) -> None:
    found = sums([make("one", quota=3), make("two", quota=3)], {})
    (quota,) = [each for each in found.quotas if each.name == USAGE]
    assert (quota.needed, quota.allowed, quota.source, quota.result) == (4, 3, "recorded", "short")
    assert found.passed is False
    assert f"{USAGE} of 111122223333 in us-east-1: 4 needed, 3 allowed" in found.verdict
    for name in ("one", "two"):
        alone = sums([make(name, quota=3)], {})
        assert [each.result for each in alone.quotas if each.name == USAGE] == ["enough"]


def test_another_account_has_quotas_of_its_own(make: Make) -> None:
    found = sums([make("one", quota=3), make("two", quota=3, account="444455556666")], {})
    assert [(each.account, each.needed) for each in found.quotas if each.name == USAGE] == [
        ("111122223333", 2),
        ("444455556666", 2),
    ]


def test_a_default_of_aws_causes_no_finding(make: Make) -> None:
    found = sums([make("one"), make("two")], {})
    assert {each.result for each in found.quotas if each.name == USAGE} == {"short of the default"}
    assert found.passed is None


def _cost(amount: float, *unknown: str) -> Cost:
    return Cost(
        region="us-east-1",
        prices_as_of="2026-11-01",
        monthly=Change(before=0, after=amount),
        is_lower_bound=bool(unknown),
        unknown=unknown,
    )


def test_what_is_not_known_is_no_zero(make: Make) -> None:
    both = [make("one"), make("two")]
    (cost,) = sums(both, {"one": _cost(10.1), "two": _cost(20.2)}).costs
    assert (cost.monthly, cost.is_lower_bound) == (30.3, False)
    (cost,) = sums(both, {"one": _cost(10.1), "two": _cost(20.2, "ml.p6: no price")}).costs
    assert (cost.monthly, cost.is_lower_bound, cost.unknown) == (30.3, True, ("two: ml.p6: no price",))
    found = sums(both, {"one": _cost(10.1), "two": NoCost("its app failed")})
    (cost,) = found.costs
    assert (cost.monthly, cost.is_lower_bound) == (10.1, True)
    assert cost.shares == (Share(environment="one", amount=10.1), Share(environment="two", amount=None))
    assert [(each.what, each.reason) for each in found.skipped] == [("the cost of two", "its app failed")]
    text = sums_text(found)
    assert "  cost: at least $10.10 a month, at prices as of 2026-11-01 (one $10.10, two\n    unknown)\n" in text
    assert "    not included: two: its cost is unknown\n" in text
    (cost,) = sums(both, {"one": NoCost("a"), "two": NoCost("b")}).costs
    assert cost.monthly is None
    assert sums(both, {}).costs == ()
