"""What training plans cost, which are paid upfront, and what everything else costs while each runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from hyperpod_cdk.catalog.prices import HOURS_PER_MONTH
from hyperpod_cdk.review.figures.charge_lines import cents
from hyperpod_cdk.review.figures.charges import Charged
from hyperpod_cdk.review.model import Change, Paid, PlanFee, Unpriced

if TYPE_CHECKING:
    from hyperpod_cdk.config import LoadedEnvironment
    from hyperpod_cdk.config.recorded_plans import RecordedPlan


def as_change(before: Decimal | None, after: Decimal | None) -> Change:
    """Return two amounts as the report has them."""
    return Change(
        before=None if before is None else float(before),
        after=None if after is None else float(after),
    )


def sides_of(change: Change) -> tuple[float | None, float | None]:
    """Return the two sides of a change."""
    return change.before, change.after


def plan_fees(
    sides: tuple[Charged, Charged],
    monthly: tuple[Decimal, Decimal],
    base_environment: LoadedEnvironment | None,
    head_environment: LoadedEnvironment | None,
) -> Iterator[PlanFee]:
    """Return the fee of each plan on either side, with the cost of the rest of an environment while the plan runs."""
    used = [dict.fromkeys(group.plan for group in side.groups if group.plan) for side in sides]
    records = [
        environment.recorded_plans if environment else None for environment in (base_environment, head_environment)
    ]
    for arn in {**used[1], **used[0]}:
        found = [record.plan(arn) if record else None for record in records]
        plan = found[1] or found[0]
        start, end = _window(plan)
        hours = Decimal(int((end - start).total_seconds())) / 3600 if start and end else None
        during = [None if hours is None else cents(total / HOURS_PER_MONTH * hours) for total in monthly]
        fees = [fee_of(each or plan) if arn in of else Decimal(0) for each, of in zip(found, used, strict=True)]
        yield PlanFee(
            plan=arn.rpartition("/")[2],
            fee=as_change(*fees),
            starts=_moment(start),
            ends=_moment(end),
            environment_during_window=as_change(*during),
            note=_plan_note(plan, sides[1].assembly.word or sides[0].assembly.word or "ENV"),
        )


def unknown_fees(plans: Iterable[PlanFee], sides: tuple[Charged, Charged]) -> Iterator[Unpriced]:
    """Return the fees that are unknown: without them a plan would look like nodes that cost nothing."""
    for each in plans:
        unknown = [int(fee is None) for fee in sides_of(each.fee)]
        if any(unknown):
            quantity = Change(before=unknown[0], after=unknown[1])
            what = f"fee of training plan {each.plan}"
            of = {
                Paid(
                    stack=group.cluster.stack,
                    logical_id=group.cluster.logical_id,
                    item=group.name,
                    properties=("TrainingPlanArn",),
                ): None
                for side in sides
                for group in side.groups
                if group.plan_name == each.plan
            }
            yield Unpriced(what=what, kind="nodes", unit="", quantity=quantity, missing=each.note, of=tuple(of))


def _plan_note(plan: RecordedPlan | None, word: str) -> str:
    record = f"run 'hyperpod-cdk plans record {word}'"
    if plan is None:
        return f"no record of the plan states its fee and its window; {record}"
    if not plan.upfront_fee:
        return f"the record does not show the plan's fee; {record}"
    if fee_of(plan) is None:
        return f"the fee is {plan.upfront_fee} {plan.currency}, which is not counted in US dollars".replace("  ", " ")
    return "paid once, whether the nodes run or not; the nodes leave an hour before the end"


def fee_of(plan: RecordedPlan | None) -> Decimal | None:
    """Return the upfront fee of a plan in US dollars, None if the record does not show it or has another currency."""
    if plan is None or plan.currency not in ("USD", ""):
        return None
    try:
        amount = Decimal(plan.upfront_fee)
    except InvalidOperation:
        return None
    return cents(amount) if amount.is_finite() and amount >= 0 else None


def _window(plan: RecordedPlan | None) -> tuple[datetime | None, datetime | None]:
    """Return the start of the first block and the end of the last; None if a block does not show them."""
    blocks = plan.blocks if plan else ()
    starts, ends = [block.start for block in blocks], [block.end for block in blocks]
    start = min((each for each in starts if each), default=None) if None not in starts else None
    end = max((each for each in ends if each), default=None) if None not in ends else None
    return (start, end) if start and end and start < end else (start, None)


def _moment(value: datetime | None) -> str | None:
    return None if value is None else f"{value.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
