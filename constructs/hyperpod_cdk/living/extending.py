"""Extensions of training plans: which are offered, until when they can be bought, and what ends without one.

Facts: developer guide, "Training plans extension" (October 2026): extensions cannot be cancelled, have as many
instances as their plan, and are found by the plan's ARN and a duration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from hyperpod_cdk.catalog import instance_types
from hyperpod_cdk.catalog.hyperpod import TRAINING_PLAN_DAYS, TRAINING_PLAN_RECLAIM
from hyperpod_cdk.checks.answers import NotAnswered, Refused
from hyperpod_cdk.checks.plan_search import price_per_accelerator_hour
from hyperpod_cdk.checks.side_by_side import together
from hyperpod_cdk.config import Environment
from hyperpod_cdk.config.recorded_plans import groups_by_plan
from hyperpod_cdk.findings import passed
from hyperpod_cdk.handlers.quota_gate.reading import NotFound
from hyperpod_cdk.living.hyperpod import describe_training_plan
from hyperpod_cdk.living.look import reading
from hyperpod_cdk.living.model import Bought, Extended, Extension, Extensions, PlanToExtend, Unread
from hyperpod_cdk.living.nodes import moment
from hyperpod_cdk.review.deployed import Api
from hyperpod_cdk.review.nouns import count

LAST_CHANCE: Final = timedelta(hours=1)
"""How long before its end a plan can be extended at the latest ("Prerequisites")."""

BY_DAY: Final = 14
"""Up to this many days extensions are sold by the day, above that by the week ("Key features")."""

DAYS: Final = (*range(1, BY_DAY + 1), *range(BY_DAY + 7, TRAINING_PLAN_DAYS[-1] + 1, 7))
"""The durations for which extensions are sold."""

USUAL_DAYS: Final = (1, 2, 3, 5, 7, 10, 14, 28, 56, 91, 182)
"""The durations that are asked for by default: each is a call."""

_MOST_PAGES: Final = 20
"""Pages of a plan's history: it is extended for at most half a year, each time for at least one day."""

_JOBS: Final = "this command does not ask Kubernetes, which knows them"


def extensions(aws: Api, environment: Environment, *, days: Sequence[int], now: datetime, plan: str = "") -> Extensions:
    """Ask for extensions of the plans of an environment, or of the one named ``plan``, by these durations in days.

    ``now`` is aware and in UTC. What is not answered is skipped. Raises ValueError if the environment has no such plan.
    """
    arns = arns_of(environment, plan)
    asked = [(arn, number * 24) for arn in arns for number in days]
    described = together(lambda arn: describe_training_plan(aws, arn), arns)
    histories = together(lambda arn: _history(aws.call, arn), arns)
    searched = together(lambda each: _offers(aws.call, *each), asked)
    skipped = [Unread(what="jobs on the nodes", reason=_JOBS)]
    unseen = 0
    plans: list[PlanToExtend] = []
    for arn, found, history in zip(arns, described, histories, strict=True):
        name = arn.rpartition("/")[2]
        if isinstance(found, NotAnswered):
            unseen += 1
            skipped.append(_unread(f"plan {name}", found))
            continue
        if isinstance(history, NotAnswered):
            unseen += 1
            skipped.append(_unread(f"earlier extensions of {name}", history))
        rows: dict[str, Mapping[str, Any]] = {}
        unknown: list[int] = []
        for (of, number), answer in zip(asked, searched, strict=True):
            if of != arn:
                continue
            if isinstance(answer, NotAnswered):
                unseen += 1
                unknown.append(number // 24)
                skipped.append(_unread(f"extensions of {name} by {count(number // 24, 'day')}", answer))
            else:
                rows |= {str(row["TrainingPlanExtensionOfferingId"]): row for row in answer}
        try:
            with reading("sagemaker:DescribeTrainingPlan"):
                plan_found = _plan(environment, arn, found, list(rows.values()), now)
        except NotAnswered as missing:
            unseen += 1
            skipped.append(_unread(f"plan {name}", missing))
            continue
        if not plan_found.ends:
            unseen += 1
            skipped.append(Unread(what=f"the end of {name}", reason="DescribeTrainingPlan does not show it"))
        known = None if isinstance(history, NotAnswered) else history
        plans.append(plan_found.model_copy(update={"history": known, "days_unknown": tuple(unknown)}))
    number = sum(len(each.extensions) for each in plans)
    is_whole = len(plans) == len(arns) and not any(each.days_unknown for each in plans)
    # if an answer is missing, no offer is not known to be none, and some may not be all
    told = count(number, "extension") if number or is_whole else "It is unknown whether an extension is"
    end = ", as far as AWS shows" if number and not is_whole else ""
    return Extensions(
        environment=environment.name,
        verdict=f"{told} on offer for {count(len(arns), 'plan')}{end}.",
        passed=passed(refuses=False, is_whole=not unseen),
        plans=tuple(plans),
        skipped=tuple(skipped),
    )


def arns_of(environment: Environment, plan: str = "") -> list[str]:
    """Return the ARNs of an environment's plans, or of the one named ``plan``. Raises ValueError if there is none."""
    stated = groups_by_plan(environment)
    arns = [arn for arn in stated if plan in ("", arn, arn.rpartition("/")[2])]
    if not arns:
        names = ", ".join(arn.rpartition("/")[2] for arn in stated)
        raise ValueError(
            f'the environment has no plan "{plan}"; it has {names}' if stated else "the environment names no plan"
        )
    return arns


Ask = Callable[..., Mapping[str, Any]]
"""``Api.call``, which keeps answers, or ``Api.send``, which does not."""


def _history(ask: Ask, arn: str) -> tuple[Extended, ...]:
    rows: list[Mapping[str, Any]] = []
    token: dict[str, str] = {}
    for _ in range(_MOST_PAGES):
        try:
            answer = ask("sagemaker", "describe_training_plan_extension_history", TrainingPlanArn=arn, **token)
        except NotFound:
            raise NotAnswered("AWS has no such plan") from None
        with reading("sagemaker:DescribeTrainingPlanExtensionHistory"):
            rows += answer["TrainingPlanExtensions"]
            if not answer.get("NextToken"):
                return tuple(_extended(row) for row in rows)
            token = {"NextToken": answer["NextToken"]}
    raise NotAnswered(f"the list of its extensions has more than {_MOST_PAGES} pages")


def _extended(row: Mapping[str, Any]) -> Extended:
    hours, at = row.get("DurationHours"), row.get("ExtendedAt")
    return Extended(
        id=_id(row),
        days=None if hours is None else round(hours / 24, 2),
        at=moment(at) if isinstance(at, datetime) else "",
        status=str(row.get("Status", "unknown")),
        payment=str(row.get("PaymentStatus", "unknown")),
    )


def _offers(ask: Ask, arn: str, hours: int) -> list[Mapping[str, Any]]:
    try:
        answer = ask("sagemaker", "search_training_plan_offerings", TrainingPlanArn=arn, DurationHours=hours)
    except NotFound:
        raise NotAnswered("AWS has no such plan") from None
    with reading("sagemaker:SearchTrainingPlanOfferings"):
        return [
            row for row in answer.get("TrainingPlanExtensionOfferings", ()) if row["TrainingPlanExtensionOfferingId"]
        ]


def _plan(
    environment: Environment,
    arn: str,
    found: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    now: datetime,
) -> PlanToExtend:
    end = found.get("EndTime")
    groups = [group for _, group in groups_by_plan(environment)[arn]]
    types = {name for group in groups for name in group.all_instance_types}
    offered = [_extension(row, found) for row in rows]
    offered.sort(key=lambda each: (each.price is None, Decimal(each.price or 0), each.ends))
    latest = end - LAST_CHANCE if isinstance(end, datetime) else None
    return PlanToExtend(
        name=str(found["TrainingPlanName"]),
        arn=arn,
        status=str(found["Status"]),
        instances=found.get("TotalInstanceCount"),
        ends=moment(end) if isinstance(end, datetime) else "",
        nodes_leave=moment(end - TRAINING_PLAN_RECLAIM) if isinstance(end, datetime) else "",
        buy_until=moment(latest) if latest else "",
        too_late=None if latest is None else latest <= now,
        groups=tuple(f"{group.name}: {count(group.count, 'node')}" for group in groups),
        teams=tuple(_teams(environment, types)),
        extensions=tuple(offered),
    )


def _teams(environment: Environment, types: set[str]) -> Iterator[str]:
    for team in environment.task_governance.teams if environment.task_governance else ():
        for quota in team.quota:
            if quota.instance_type in types and quota.count:
                yield f"{team.name}: {count(quota.count, 'node')} of {quota.instance_type}"


def _extension(row: Mapping[str, Any], plan: Mapping[str, Any]) -> Extension:
    hours = row.get("DurationHours")
    fee, end = str(row.get("UpfrontFee", "")), row.get("EndDate")
    blocks = plan.get("ReservedCapacitySummaries") or ()
    known = instance_types.get(str(blocks[0].get("InstanceType", ""))) if blocks else None
    accelerators = (known.accelerator_count if known else 0) * int(plan.get("TotalInstanceCount") or 0)
    price = price_per_accelerator_hour(fee, accelerators=accelerators, hours=None if hours is None else Decimal(hours))
    return Extension(
        id=str(row["TrainingPlanExtensionOfferingId"]),
        days=None if hours is None else round(hours / 24, 2),
        ends=moment(end) if isinstance(end, datetime) else "",
        fee=fee,
        currency=str(row.get("CurrencyCode", "")),
        price=None if price is None else f"{price:.4f}",
    )


def buy(aws: Api, found: Extensions, offer: str) -> Extensions:
    """Buy one of the extensions that were found, once; raises ValueError for another. The answer of AWS is returned.

    Right before the purchase, AWS is asked again for the price and for the plan's extensions: an extension is not
    bought if its price has changed or is unknown, or if it is bought already. ``aws`` does not retry.
    """
    plan = plan_of(found, offer)
    problem, before = _why_not(aws, plan, offer)
    if before is not None:
        bought = Bought(plan=plan.name, offer=offer, status=before.status, payment=before.payment)
        verdict = f"{plan.name} is extended by this offer already: {before.status}, payment {before.payment}."
        return found.model_copy(update={"bought": bought, "verdict": verdict, "passed": before.status != _FAILED})
    if problem:
        return _not_bought(found, plan, offer, problem)
    try:
        answer = aws.send("sagemaker", "extend_training_plan", TrainingPlanExtensionOfferingId=offer)
        with reading("sagemaker:ExtendTrainingPlan"):
            row = next(each for each in answer["TrainingPlanExtensions"] if _id(each) == offer)
            status, payment = str(row.get("Status", "unknown")), str(row.get("PaymentStatus", "unknown"))
    except NotAnswered as missing:
        if missing.action or (isinstance(missing, Refused) and missing.code in _TURNED_AWAY):
            return _not_bought(found, plan, offer, missing.sentence)
        bought = Bought(plan=plan.name, offer=offer, problem=missing.sentence)
        verdict = (
            f"It is unknown whether {plan.name} is extended. Check before you try again:"
            f" aws sagemaker describe-training-plan-extension-history --training-plan-arn {plan.arn}"
        )
        return found.model_copy(update={"bought": bought, "verdict": verdict, "passed": False})
    except StopIteration:
        status = payment = "unknown"
    bought = Bought(plan=plan.name, offer=offer, status=status, payment=payment)
    verdict = f"{plan.name} is extended: {status}, payment {payment}."
    return found.model_copy(update={"bought": bought, "verdict": verdict, "passed": status != _FAILED})


_FAILED: Final = "Failed"
_PAID: Final = "paid"

_TURNED_AWAY: Final = ("ValidationException", "ResourceNotFound", "ResourceLimitExceeded", "ThrottlingException")
"""Errors after which nothing was bought."""


def plan_of(found: Extensions, offer: str) -> PlanToExtend:
    """Return the plan that an offer extends, or has already extended; raises ValueError for another offer."""
    for plan in found.plans:
        if offer in {*(each.id for each in plan.extensions), *(each.id for each in plan.history or ())}:
            return plan
    raise ValueError(f"{offer} is not among the extensions that are offered now; choose one of the list")


def _why_not(aws: Api, plan: PlanToExtend, offer: str) -> tuple[str, Extended | None]:
    """Say why an extension cannot be bought, empty if it can; or give the extension that the offer already made."""
    wanted = next((each for each in plan.extensions if each.id == offer), None)
    try:
        history = _history(aws.send, plan.arn)
        offers = [] if wanted is None else _offers(aws.send, plan.arn, round((wanted.days or 0) * 24))
    except NotAnswered as missing:
        return f"its earlier extensions and its price now are unknown: {missing.sentence}", None
    before = next((each for each in history if each.id == offer and each.status != _FAILED), None)
    if before is not None:
        return "", before
    unpaid = [each for each in history if each.status != _FAILED and each.payment.lower() not in (_PAID, "unknown")]
    if unpaid:
        told = "; ".join(f"{each.id} of {each.at or 'an unknown time'} ({each.payment})" for each in unpaid)
        return f"an earlier extension of it is not paid yet, and AWS sells no other until it is: {told}", None
    now = next((row for row in offers if _id(row) == offer), None)
    if now is None or wanted is None:
        return "it is no longer offered", None
    return _not_at_this_price(wanted, str(now.get("UpfrontFee", "")), str(now.get("CurrencyCode", ""))), None


def _not_at_this_price(wanted: Extension, fee: str, currency: str) -> str:
    """Say why the price is unknown or has changed; empty if it costs what was shown."""
    if (fee, currency) != (wanted.fee, wanted.currency):
        was = f"{wanted.fee or 'unknown'} {wanted.currency}".strip()
        return f"it costs {fee or 'an unknown amount'} {currency} now, and {was} was shown".replace("  ", " ")
    if price_per_accelerator_hour(fee, accelerators=1, hours=Decimal(1)) is None:
        return f"its price is unknown: AWS shows {fee or 'no fee'}"
    return ""


def _not_bought(found: Extensions, plan: PlanToExtend, offer: str, problem: str) -> Extensions:
    bought = Bought(plan=plan.name, offer=offer, problem=problem)
    verdict = f"{plan.name} is not extended: nothing was bought."
    return found.model_copy(update={"bought": bought, "verdict": verdict, "passed": False})


def _id(row: Mapping[str, Any]) -> str:
    return str(row["TrainingPlanExtensionOfferingId"])


def _unread(what: str, missing: NotAnswered) -> Unread:
    return Unread(what=what, reason=missing.reason, action=missing.action, aws_said=missing.said)
