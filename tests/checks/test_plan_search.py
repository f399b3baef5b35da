"""The search for training plans: prices, order, what an environment needs, what fits it."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperpod_cdk.catalog import hyperpod
from hyperpod_cdk.checks.answers import NotAnswered, Offering, Refused, ReservedCapacity, Zone
from hyperpod_cdk.checks.model import Case
from hyperpod_cdk.checks.plan_search import (
    USUAL_DAYS,
    Block,
    Offer,
    Wish,
    distinct,
    fitting_days,
    plan_name,
    price_order,
    price_per_accelerator_hour,
    search,
    sold_count,
    wishes,
)
from tests.support.fake_aws import FakeAws
from tests.support.tables import row_by_row

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
ARN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/h100-april"
ZONES = (
    Zone(zone_id="use1-az5", name="us-east-1f", state="available", kind="availability-zone", opted_in=True),
    Zone(zone_id="use1-az4", name="us-east-1d", state="available", kind="availability-zone", opted_in=True),
)

CaseOf = Callable[..., Case]


def block(**changes: Any) -> ReservedCapacity:
    """A day in use1-az5, by its name."""
    made = ReservedCapacity(
        instance_type="ml.p5.48xlarge",
        count=2,
        status="",
        availability_zone="us-east-1f",
        availability_zone_id="",
        start=NOW,
        end=NOW + timedelta(days=1),
    )
    return replace(made, **changes)


def offering(**changes: Any) -> Offering:
    """One day of two instances."""
    made = Offering(
        offering_id="tpo-1",
        instance_type="ml.p5.48xlarge",
        count=2,
        duration_hours=24,
        upfront_fee="384.00",
        currency="USD",
        target_resources=("hyperpod-cluster",),
        blocks=(block(),),
    )
    return replace(made, **changes)


def wish(**changes: Any) -> Wish:
    """Two instances for a day."""
    return replace(Wish(instance_type="ml.p5.48xlarge", count=2, days=(1,)), **changes)


@row_by_row(
    "fee, accelerators, hours, price",
    [
        ("384.00", 16, 24, "1"),
        ("0", 16, 24, "0"),
        ("1e3", 10, 100, "1"),
        ("", 16, 24, None),
        ("xxxx.xx", 16, 24, None),
        ("NaN", 16, 24, None),
        ("Infinity", 16, 24, None),
        ("384.00", 0, 24, None),
        ("384.00", 16, 0, None),
    ],
)
def test_price(fee: str, accelerators: int, hours: int, price: str | None) -> None:
    found = price_per_accelerator_hour(fee, accelerators=accelerators, hours=Decimal(hours))
    assert found == (None if price is None else Decimal(price))


@given(
    st.decimals(min_value=0, max_value=10**9, places=2),
    st.integers(1, 2048),
    st.integers(1, 87600),
)
def test_price_gives_the_fee_back(fee: Decimal, accelerators: int, hours: int) -> None:
    price = price_per_accelerator_hour(str(fee), accelerators=accelerators, hours=Decimal(hours))
    assert price is not None
    assert (price * accelerators * hours).quantize(Decimal("0.01")) == fee


MOMENTS = st.none() | st.datetimes(timezones=st.just(UTC))
OFFERS = st.builds(
    Offer,
    offering_id=st.text(max_size=4),
    instance_type=st.just("ml.p5.48xlarge"),
    count=st.just(2),
    hours=st.just(Decimal(24)),
    fee=st.just("1"),
    currency=st.sampled_from(["USD", "EUR", ""]),
    price=st.none() | st.decimals(min_value=0, max_value=100, places=2),
    blocks=st.lists(
        st.builds(Block, zone_name=st.just("a"), zone_id=st.just("b"), count=st.just(2), start=MOMENTS, end=st.none()),
        max_size=2,
    ).map(tuple),
)


@given(st.lists(OFFERS, max_size=12), st.randoms(use_true_random=False))
def test_order_by_price(offers: list[Offer], random: Any) -> None:
    ordered = sorted(offers, key=price_order)
    prices = [each.price for each in ordered]
    known = [price for price in prices if price is not None]
    assert prices == [*known, *[None] * (len(prices) - len(known))]
    for currency in ("USD", "EUR", ""):
        of = [each.price for each in ordered if each.currency == currency and each.price is not None]
        assert of == sorted(of)
    tied = [replace(offers[0], hours=Decimal(hours), offering_id=f"tpo-{9 - hours}") for hours in (1, 2, 3) if offers]
    assert sorted(tied, key=price_order) == tied
    random.shuffle(offers)
    assert [price_order(each) for each in sorted(offers, key=price_order)] == [price_order(each) for each in ordered]


def test_an_offering_found_twice_is_kept_once() -> None:
    twin = offering(offering_id="tpo-2")
    other = offering(offering_id="tpo-3", upfront_fee="400.00")
    assert distinct([offering(), offering(), twin, other, offering(duration_hours=48)]) == [offering(), other]


@given(st.lists(st.builds(offering, offering_id=st.sampled_from("abc"), upfront_fee=st.sampled_from(["1", "2"]))))
def test_keeping_once_is_stable(offerings: list[Offering]) -> None:
    kept = distinct(offerings)
    assert distinct(kept) == kept
    assert len({each.offering_id for each in kept}) == len(kept)
    assert {each.upfront_fee for each in kept} <= {each.upfront_fee for each in offerings}


def test_minutes_count(fake_aws: FakeAws) -> None:
    fake_aws.answers.zones = ZONES
    part = block(end=NOW + timedelta(hours=15, minutes=51))
    fake_aws.answers.training_plan_offerings = (offering(blocks=(part,), upfront_fee="253.60"),)
    (offer,) = search(fake_aws, wish(), now=NOW).offers
    assert (offer.hours, offer.price) == (Decimal("15.85"), Decimal(1))


def test_blocks_without_times_are_taken_by_the_offering_s_hours(fake_aws: FakeAws) -> None:
    fake_aws.answers.zones = ZONES
    fake_aws.answers.training_plan_offerings = (
        offering(blocks=(block(end=None),)),
        offering(offering_id="b", blocks=()),
    )
    found = search(fake_aws, wish(), now=NOW)
    assert [offer.hours for offer in found.offers] == [24, 24]
    assert {offer.blocks[0].nodes_leave if offer.blocks else None for offer in found.offers} == {None}


def test_hours_that_aws_does_not_show_are_unknown(fake_aws: FakeAws) -> None:
    fake_aws.answers.zones = ZONES
    fake_aws.answers.training_plan_offerings = (
        offering(offering_id="a", blocks=(block(end=None),), duration_hours=None),
        offering(offering_id="b", blocks=(), duration_hours=None),
        offering(offering_id="c", duration_hours=None),
    )
    found = search(fake_aws, wish(), now=NOW)
    assert [(offer.offering_id, offer.hours, offer.price) for offer in found.offers] == [
        ("c", Decimal(24), Decimal(1)),
        ("a", None, None),
        ("b", None, None),
    ]


def test_what_fits(case_of: CaseOf, fake_aws: FakeAws) -> None:
    environment = case_of().environment
    fake_aws.answers.zones = ZONES
    fake_aws.answers.training_plan_offerings = (
        offering(offering_id="right", upfront_fee="1"),
        offering(offering_id="other-zone", upfront_fee="2", blocks=(block(availability_zone="us-east-1d"),)),
        offering(offering_id="unknown-zone", upfront_fee="3", blocks=(block(availability_zone="us-east-1z"),)),
        offering(offering_id="two-zones", upfront_fee="4", blocks=(block(), block(availability_zone="us-east-1d"))),
        offering(offering_id="no-block", upfront_fee="5", blocks=()),
    )
    found = search(fake_aws, wish(group_names=("h100",)), now=NOW, environment=environment)
    assert {offer.offering_id: (offer.fits, offer.zone_in_file) for offer in found.offers} == {
        "right": (("h100",), True),
        "other-zone": ((), True),
        "unknown-zone": ((), None),
        "two-zones": ((), True),
        "no-block": ((), None),
    }


def test_too_few_instances_fit_nothing(case_of: CaseOf, fake_aws: FakeAws) -> None:
    fake_aws.answers.zones = ZONES
    fake_aws.answers.training_plan_offerings = (offering(count=1),)
    (offer,) = search(fake_aws, wish(count=1), now=NOW, environment=case_of().environment).offers
    assert (offer.fits, offer.zone_in_file) == ((), True)


def test_what_is_refused_is_grouped(fake_aws: FakeAws) -> None:
    fake_aws.answers.zones = NotAnswered("offline")
    fake_aws.answers.training_plan_offerings = Refused("1 is the most", code="ResourceLimitExceeded")
    found = search(fake_aws, wish(days=(1, 2, 7)), now=NOW)
    assert [(each.days, each.is_quota) for each in found.refusals] == [((1, 2, 7), True)]
    assert (found.offers, found.zones_missing) == ((), "offline")
    # whatever the sentence names
    fake_aws.answers.training_plan_offerings = NotAnswered("no answer about ResourceLimitExceeded")
    assert [each.is_quota for each in search(fake_aws, wish(days=(1,)), now=NOW).refusals] == [False]


@pytest.mark.parametrize(("needed", "sold"), [(1, 1), (2, 2), (3, 4), (5, 8), (63, 64), (64, 64), (65, 65)])
def test_counts_that_are_sold(needed: int, sold: int) -> None:
    assert sold_count(needed) == sold


def group(name: str, **changes: Any) -> dict[str, Any]:
    """A group of one ml.p5.48xlarge on a plan in use1-az5."""
    return {
        "name": name,
        "instance_type": "ml.p5.48xlarge",
        "count": 1,
        "availability_zone_id": "use1-az5",
        "capacity": "training_plan",
        "training_plan_arn": ARN,
        **changes,
    }


def test_groups_of_one_type_and_zone_share_a_plan(case_of: CaseOf) -> None:
    case = case_of(
        {
            "hyperpod.instance_groups[2]": group("more"),
            "hyperpod.instance_groups[3]": group("elsewhere", availability_zone_id="use1-az4", count=4),
            "hyperpod.instance_groups[4]": group("trainium", instance_type="ml.trn1.32xlarge"),
        }
    )
    found = wishes(case.environment)
    assert [(each.instance_type, each.count, each.group_names) for each in found] == [
        # 2 + 1, rounded up to what is sold, and 4 in the other zone: one question serves both
        ("ml.p5.48xlarge", 4, ("h100", "more", "elsewhere")),
        ("ml.trn1.32xlarge", 1, ("trainium",)),
    ]
    assert {each.days for each in found} == {USUAL_DAYS}
    (only,) = wishes(case.environment, instance_type="ml.trn1.32xlarge", count=8, days=(7,))
    assert (only.instance_type, only.count, only.days) == ("ml.trn1.32xlarge", 8, (7,))
    assert wishes(case.environment, instance_type="ml.p4d.24xlarge") == []


@pytest.mark.parametrize(
    ("end", "days"),
    [(None, (1, 2, 7)), (timedelta(days=7), (1, 2, 7)), (timedelta(days=7, seconds=-1), (1, 2)), (timedelta(0), ())],
)
def test_durations_that_have_room(end: timedelta | None, days: tuple[int, ...]) -> None:
    assert fitting_days((1, 2, 7), NOW, None if end is None else NOW + end) == days


def test_usual_durations_are_sold() -> None:
    assert set(USUAL_DAYS) <= set(hyperpod.TRAINING_PLAN_DAYS)
    assert (USUAL_DAYS[0], USUAL_DAYS[-1]) == (hyperpod.TRAINING_PLAN_DAYS[0], hyperpod.TRAINING_PLAN_DAYS[-1])
    assert list(USUAL_DAYS) == sorted(set(USUAL_DAYS))


@given(st.text(max_size=80), MOMENTS)
def test_suggested_names_are_legal(prefix: str, start: datetime | None) -> None:
    made = Offer(
        offering_id="tpo-1",
        instance_type="",
        count=1,
        hours=Decimal(1),
        fee="",
        currency="",
        price=None,
        blocks=(Block(zone_name="", zone_id="", count=1, start=start, end=None),),
    )
    name = plan_name(made, prefix)
    arn = f"arn:aws:sagemaker:us-east-1:111122223333:training-plan/{name}"
    assert hyperpod.TRAINING_PLAN_ARN.matches(arn)
    assert 1 <= len(name) <= 64
    assert all(mark.isascii() and (mark.isalnum() or mark == "-") for mark in name)
    assert name[0] != "-"
    assert name[-1] != "-"


@given(st.text(min_size=1, max_size=20).filter(lambda text: "\x00" not in text))
def test_a_command_is_one_argument_each(offering_id: str) -> None:
    made = replace(
        Offer(
            offering_id="",
            instance_type="",
            count=1,
            hours=Decimal(1),
            fee="",
            currency="",
            price=None,
            blocks=(),
        ),
        offering_id=offering_id,
    )
    assert shlex.split(made.command("us-east-1", name="a"))[-1] == offering_id
