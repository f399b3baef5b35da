"""Searches training plan offerings for many durations in parallel, because one query finds only one duration."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from hyperpod_cdk.catalog import hyperpod, instance_types, quotas
from hyperpod_cdk.catalog.hyperpod import TRAINING_PLAN_RECLAIM
from hyperpod_cdk.catalog.instance_types import InstanceType
from hyperpod_cdk.checks.answers import Aws, NotAnswered, Offering, Refused, ReservedCapacity, Zone
from hyperpod_cdk.checks.side_by_side import together
from hyperpod_cdk.config import AnyGroup, Environment

HOURS_PER_DAY = 24

USUAL_DAYS = (1, 2, 3, 5, 7, 10, 14, 21, 28, 30, 45, 60, 90, 120, 182)
"""The default durations of a search: dense for short plans, with the longest that is sold at the end."""

_QUOTA_REFUSAL = "ResourceLimitExceeded"


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What to search for. ``days`` are whole days, as plans are sold; ``group_names`` are its groups, if any."""

    instance_type: str
    count: int
    days: tuple[int, ...]
    start_after: datetime | None = None
    end_before: datetime | None = None
    group_names: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Block:
    """One block of an offer. ``zone_id`` is empty if the account's zones are unknown or do not include this one."""

    zone_name: str
    zone_id: str
    count: int
    start: datetime | None
    end: datetime | None

    @property
    def nodes_leave(self) -> datetime | None:
        """When its nodes are reclaimed."""
        return None if self.end is None else self.end - TRAINING_PLAN_RECLAIM


@dataclass(frozen=True, kw_only=True)
class Offer:
    """A plan on offer. ``price`` is the fee per accelerator and hour; it and ``hours`` are None if AWS's answer does
    not have them.

    ``fits`` names the groups of the environment in whose zone all its blocks are, with their type and enough instances.
    """

    offering_id: str
    instance_type: str
    count: int
    hours: Decimal | None
    fee: str
    currency: str
    price: Decimal | None
    blocks: tuple[Block, ...]
    fits: tuple[str, ...] = ()
    zone_in_file: bool | None = None

    @property
    def start(self) -> datetime | None:
        """When its first block begins."""
        return min((block.start for block in self.blocks if block.start), default=None)

    def command(self, region: str, *, name: str) -> str:
        """Return the command that buys it with the name ``name``, quoted for the shell."""
        return shlex.join(
            [
                *("aws", "sagemaker", "create-training-plan", "--region", region),
                *("--training-plan-name", name, "--training-plan-offering-id", self.offering_id),
            ]
        )


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """Why some durations have no answer; ``is_quota`` if the account may not reserve that many instances."""

    days: tuple[int, ...]
    reason: str
    action: str
    is_quota: bool
    said: str = ""


@dataclass(frozen=True, kw_only=True)
class Search:
    """What was found for one wish: offers by price, and what was not answered.

    ``quota`` is the applied value of the quota that refused, None if none did or its value is unknown.
    """

    wish: Wish
    asked_at: datetime
    offers: tuple[Offer, ...]
    refusals: tuple[Refusal, ...]
    zones_missing: str = ""
    quota: float | None = None


def search(aws: Aws, wish: Wish, *, now: datetime, environment: Environment | None = None) -> Search:
    """Query every duration of the wish and the account's zones in parallel, and sort the offerings.

    An offering that several durations find is kept once. ``environment`` says which of its groups an offer fits.
    """
    zones: list[tuple[Zone, ...]] = []

    def ask_zones() -> tuple[Offering, ...]:
        zones.append(aws.zones())
        return ()

    def ask_days(days: int) -> Callable[[], tuple[Offering, ...]]:
        return lambda: aws.training_plan_offerings(
            instance_type=wish.instance_type,
            count=wish.count,
            duration_hours=days * HOURS_PER_DAY,
            start_after=wish.start_after,
            end_before=wish.end_before,
        )

    zones_missing, *answers = together(_call, [ask_zones, *(ask_days(days) for days in wish.days)])
    ids = {zone.name: zone.zone_id for each in zones for zone in each}
    found = [offering for answer in answers if not isinstance(answer, NotAnswered) for offering in answer]
    offers = [_offer(offering, ids, wish, environment) for offering in distinct(found)]
    refusals = tuple(_refusals(zip(wish.days, answers, strict=True)))
    return Search(
        wish=wish,
        asked_at=now,
        offers=tuple(sorted(offers, key=price_order)),
        refusals=refusals,
        zones_missing=zones_missing.reason if isinstance(zones_missing, NotAnswered) else "",
        quota=_quota_value(aws, wish.instance_type) if any(each.is_quota for each in refusals) else None,
    )


def wishes(
    environment: Environment,
    *,
    instance_type: str | None = None,
    count: int | None = None,
    days: tuple[int, ...] = USUAL_DAYS,
    start_after: datetime | None = None,
    end_before: datetime | None = None,
) -> list[Wish]:
    """Return what an environment's groups need, one wish per type and zone, because a plan is in one zone.

    Groups on training plans count or, if there are none, those of types for which plans are sold. The count is
    rounded up to one that is sold; ``instance_type`` and ``count`` take precedence over the groups.
    """
    members = [group for group in environment.hyperpod.all_groups if group.capacity == "training_plan"]
    if not members:
        members = [
            group
            for group in environment.hyperpod.all_groups
            if group.count and any(_is_sold(environment.instance_type(name)) for name in group.all_instance_types)
        ]
    together_in: dict[tuple[str, str], list[AnyGroup]] = {}
    for group in members:
        for name in group.all_instance_types:
            if instance_type in {None, name} and _is_sold(environment.instance_type(name)):
                together_in.setdefault((name, group.availability_zone_id), []).append(group)
                break
    found: dict[tuple[str, int], list[str]] = {}
    for (name, _), groups in together_in.items():
        needed = count or sold_count(max(sum(group.count for group in groups), 1))
        found.setdefault((name, needed), []).extend(group.name for group in groups)
    return [
        Wish(
            instance_type=name,
            count=needed,
            days=days,
            start_after=start_after,
            end_before=end_before,
            group_names=tuple(names),
        )
        for (name, needed), names in found.items()
    ]


def sold_count(needed: int) -> int:
    """Return the smallest number of instances that is sold and covers ``needed``; beyond the table, ``needed``
    itself."""
    return next((count for count in hyperpod.TRAINING_PLAN_COUNTS if count >= needed), needed)


def fitting_days(days: Sequence[int], start: datetime, end: datetime | None) -> tuple[int, ...]:
    """Keep the durations that fit between ``start`` and ``end``; the others cannot find anything."""
    if end is None:
        return tuple(days)
    return tuple(each for each in days if start + timedelta(days=each) <= end)


def distinct(offerings: Iterable[Offering]) -> list[Offering]:
    """Keep each offering once: with one ID, or equal in everything that a buyer sees."""
    ids: set[str] = set()
    kept: dict[tuple[object, ...], Offering] = {}
    for each in offerings:
        if each.offering_id in ids:
            continue
        ids.add(each.offering_id)
        kept.setdefault((each.instance_type, each.count, each.upfront_fee, each.currency, each.blocks), each)
    return list(kept.values())


def price_order(offer: Offer) -> tuple[object, ...]:
    """Order offers by price per accelerator-hour within a currency, start and duration; those without a price last."""
    start = offer.start.timestamp() if offer.start else float("inf")
    hours = Decimal("Infinity") if offer.hours is None else offer.hours
    return (offer.price is None, offer.currency, offer.price or Decimal(0), start, hours, offer.offering_id)


def price_per_accelerator_hour(fee: str, *, accelerators: int, hours: Decimal | None) -> Decimal | None:
    """Return fee / (accelerators x hours); None if the fee is not an amount or there is nothing to divide by."""
    try:
        amount = Decimal(fee)
    except InvalidOperation:
        return None
    if not amount.is_finite() or amount < 0 or accelerators <= 0 or hours is None or hours <= 0:
        return None
    return amount / (accelerators * hours)


def quota_of(instance_type: str) -> quotas.Quota:
    """Return the quota that limits how many instances of a type an account may reserve."""
    return quotas.training_plan_capacity(instance_type)


def plan_name(offer: Offer, prefix: str) -> str:
    """Suggest a name that CreateTrainingPlan accepts: letters, digits and hyphens, at most 64."""
    day = offer.start.astimezone(UTC).strftime("%Y%m%d") if offer.start else "plan"
    words = "".join(mark if mark.isascii() and mark.isalnum() else "-" for mark in prefix).strip("-") or "hyperpod"
    return f"{words[:48].rstrip('-')}-{day}"


def as_data(found: Search, region: str, *, name: str) -> Mapping[str, Any]:
    """Return a search as plain data for ``--format json``; times are ISO 8601 in UTC, amounts are text."""
    wish = found.wish
    return {
        "instance_type": wish.instance_type,
        "count": wish.count,
        "days": list(wish.days),
        "start_after": _iso(wish.start_after),
        "end_before": _iso(wish.end_before),
        "groups": list(wish.group_names),
        "asked_at": _iso(found.asked_at),
        "zones_missing": found.zones_missing,
        "quota": found.quota,
        "refused": [
            {"days": list(each.days), "quota": each.is_quota, "reason": each.reason, "action": each.action}
            for each in found.refusals
        ],
        "offers": [_offer_data(offer, region, name) for offer in found.offers],
    }


def _offer_data(offer: Offer, region: str, name: str) -> Mapping[str, Any]:
    return {
        "offering_id": offer.offering_id,
        "instance_type": offer.instance_type,
        "count": offer.count,
        "hours": None if offer.hours is None else f"{offer.hours:.2f}",
        "upfront_fee": offer.fee,
        "currency": offer.currency,
        "price_per_accelerator_hour": None if offer.price is None else f"{offer.price:.4f}",
        "fits": list(offer.fits),
        "zone_in_file": offer.zone_in_file,
        "blocks": [
            {
                "availability_zone_id": block.zone_id or None,
                "availability_zone": block.zone_name,
                "count": block.count,
                "start": _iso(block.start),
                "end": _iso(block.end),
                "nodes_leave": _iso(block.nodes_leave),
            }
            for block in offer.blocks
        ],
        "command": offer.command(region, name=plan_name(offer, name)),
    }


def _offer(offering: Offering, ids: Mapping[str, str], wish: Wish, environment: Environment | None) -> Offer:
    blocks = sorted(
        (
            Block(
                zone_name=block.availability_zone,
                zone_id=block.availability_zone_id or ids.get(block.availability_zone, ""),
                count=block.count,
                start=block.start,
                end=block.end,
            )
            for block in offering.blocks
        ),
        key=lambda block: block.start.timestamp() if block.start else float("inf"),
    )
    row = environment.instance_type(wish.instance_type) if environment else instance_types.get(wish.instance_type)
    count = offering.count or wish.count
    hours = _hours(offering)
    accelerators = (row.accelerator_count if row else 0) * count
    zone_ids = {block.zone_id for block in blocks}
    return Offer(
        offering_id=offering.offering_id,
        instance_type=offering.instance_type or wish.instance_type,
        count=count,
        hours=hours,
        fee=offering.upfront_fee,
        currency=offering.currency,
        price=price_per_accelerator_hour(offering.upfront_fee, accelerators=accelerators, hours=hours),
        blocks=tuple(blocks),
        fits=() if environment is None else _fitting(environment, wish, zone_ids, count),
        zone_in_file=None if environment is None else _in_file(zone_ids, environment),
    )


def _in_file(zone_ids: set[str], environment: Environment) -> bool | None:
    """Whether the file has all zones of an offering, None if AWS does not show one of them."""
    if zone_ids - {"", *environment.network.zone_ids()}:
        return False
    return None if not zone_ids or "" in zone_ids else True


def _fitting(environment: Environment, wish: Wish, zone_ids: set[str], count: int) -> tuple[str, ...]:
    """Return the groups for which an offering is enough, all together: those of its type in its zone."""
    if len(zone_ids) != 1:
        return ()
    groups = [
        group
        for group in environment.hyperpod.all_groups
        if wish.instance_type in group.all_instance_types
        and group.availability_zone_id in zone_ids
        and (not wish.group_names or group.name in wish.group_names)
    ]
    return tuple(group.name for group in groups) if sum(group.count for group in groups) <= count else ()


def _hours(offering: Offering) -> Decimal | None:
    """Return what is paid for: the blocks' own times, which have minutes, else the whole hours of the offering."""
    spans = [_length(block) for block in offering.blocks]
    if not spans or None in spans:
        return None if offering.duration_hours is None else Decimal(offering.duration_hours)
    seconds = sum((span for span in spans if span is not None), timedelta()).total_seconds()
    return Decimal(int(seconds)) / 3600


def _length(block: ReservedCapacity) -> timedelta | None:
    return block.end - block.start if block.start is not None and block.end is not None else None


def _refusals(answers: Iterable[tuple[int, object]]) -> Iterable[Refusal]:
    by_reason: dict[tuple[str, str, str, bool], list[int]] = {}
    for days, answer in answers:
        if isinstance(answer, NotAnswered):
            is_quota = isinstance(answer, Refused) and answer.code == _QUOTA_REFUSAL
            by_reason.setdefault((answer.reason, answer.action, answer.said, is_quota), []).append(days)
    for (reason, action, said, is_quota), days_refused in by_reason.items():
        yield Refusal(days=tuple(days_refused), reason=reason, action=action, is_quota=is_quota, said=said)


def _quota_value(aws: Aws, instance_type: str) -> float | None:
    quota = quota_of(instance_type)
    try:
        found = aws.quota(quota.service, quota.name, quota.code)
    except NotAnswered:
        # the refusal itself is reported in any case
        return None
    return None if found is None else found.value


def _is_sold(row: InstanceType | None) -> bool:
    return row is not None and row.training_plan_supported


def _call(ask: Callable[[], tuple[Offering, ...]]) -> tuple[Offering, ...]:
    return ask()


def _iso(value: datetime | None) -> str | None:
    return None if value is None else value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
