"""What the environments of each account and Region use together: quotas, training plans, money."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from hyperpod_cdk.checks.together import Shared, shared_quotas
from hyperpod_cdk.config import LoadedEnvironment
from hyperpod_cdk.config.several import Booked, Place, booked_plans, place_of
from hyperpod_cdk.findings import Finding, passed
from hyperpod_cdk.fleet.model import CostSum, PlanSum, QuotaSum, Share, Sums
from hyperpod_cdk.json_schema import told
from hyperpod_cdk.living.model import Unread
from hyperpod_cdk.review.figures.plan_fees import fee_of
from hyperpod_cdk.review.model import Cost
from hyperpod_cdk.review.nouns import count


@dataclass(frozen=True)
class NoCost:
    """Why the cost of an environment is unknown."""

    reason: str


def sums(
    loaded: Sequence[LoadedEnvironment],
    costs: Mapping[str, Cost | NoCost],
    *,
    refused: Sequence[Finding] = (),
    nowhere: Sequence[str] = (),
) -> Sums:
    """Add up what environments use; ``costs`` has the cost of each by its name, and is empty if no cost is wanted.

    A training plan's fee is paid once, however many environments use the plan. ``refused`` are the findings of files
    that could not be read, ``nowhere`` says which were not found: the sums contain nothing of both.
    """
    quotas = tuple(_quota(each) for each in shared_quotas(loaded))
    plans = tuple(_plan(each) for each in booked_plans(loaded))
    money = tuple(_cost(place, members, costs) for place, members in _by_place(loaded).items()) if costs else ()
    skipped = [
        *(
            Unread(what=f"the cost of {name}", reason=each.reason)
            for name, each in costs.items()
            if isinstance(each, NoCost)
        ),
        *(Unread(what="what another environment uses", reason=each) for each in nowhere),
        *(Unread(what=f"what {file} uses", reason="the file is refused") for file in _files(refused)),
    ]
    short = [
        *(
            f"{each.name} of {each.account} in {each.region}: {each.needed:g} needed, {each.allowed:g} allowed"
            for each in quotas
            if each.result == "short"
        ),
        *(
            f"plan {each.plan}: {each.booked} booked of {each.seats} instances"
            for each in plans
            if each.result == "short"
        ),
    ]
    unsure = sum(each.result == "short of the default" for each in quotas)
    unsure += sum(each.result == "unknown" for each in plans) + sum(each.monthly is None for each in money)
    ends = [
        *([f"{count(unsure, 'sum')} cannot be judged"] if unsure else []),
        *([f"{count(len(skipped), 'thing')} could not be checked"] if skipped else []),
    ]
    told_short = f"too little for all: {'; '.join(short)}" if short else "nothing is known to be short"
    verdict = "; ".join([told_short, *ends])
    return Sums(
        verdict=f"{verdict[0].upper()}{verdict[1:]}.",
        passed=passed(refuses=bool(short or refused), is_whole=not skipped and not unsure),
        quotas=quotas,
        plans=plans,
        costs=money,
        findings=tuple(told(each) for each in refused),
        skipped=tuple(skipped),
    )


def _files(findings: Sequence[Finding]) -> list[str]:
    return list(dict.fromkeys(each.file for each in findings))


def _by_place(loaded: Sequence[LoadedEnvironment]) -> dict[Place, list[LoadedEnvironment]]:
    places: dict[Place, list[LoadedEnvironment]] = {}
    for each in loaded:
        places.setdefault(place_of(each.environment), []).append(each)
    return places


def _quota(shared: Shared) -> QuotaSum:
    account, region = shared.place
    _, need = shared.users[0]
    result: Literal["enough", "short", "short of the default"] = "enough"
    if shared.needed > shared.allowed:
        result = "short" if shared.is_recorded else "short of the default"
    return QuotaSum(
        account=account,
        region=region,
        service=need.service,
        name=need.name,
        unit=need.unit,
        needed=shared.needed,
        shares=tuple(Share(environment=user.environment.name, amount=each.needed) for user, each in shared.users),
        allowed=shared.allowed,
        source="recorded" if shared.is_recorded else "AWS's default",
        result=result,
    )


def _plan(booked: Booked) -> PlanSum:
    account, region = place_of(booked.users[0][0].environment)
    fee = fee_of(booked.plan)
    result: Literal["enough", "short", "unknown"] = "unknown"
    if booked.seats is not None:
        result = "enough" if booked.total <= booked.seats else "short"
    return PlanSum(
        account=account,
        region=region,
        plan=booked.name,
        arn=booked.arn,
        booked=booked.total,
        shares=tuple(Share(environment=user.environment.name, amount=number) for user, number in booked.users),
        seats=booked.seats,
        fee=None if fee is None else float(fee),
        result=result,
    )


def _cost(place: Place, members: Sequence[LoadedEnvironment], costs: Mapping[str, Cost | NoCost]) -> CostSum:
    account, region = place
    found = {each.environment.name: costs.get(each.environment.name) for each in members}
    known = {name: each for name, each in found.items() if isinstance(each, Cost)}
    amounts = {name: each.monthly.after for name, each in known.items()}
    total = sum((Decimal(str(each)) for each in amounts.values() if each is not None), Decimal(0))
    unknown = [f"{name}: {text}" for name, each in known.items() for text in each.unknown]
    unknown += [f"{name}: its cost is unknown" for name in found if name not in known]
    return CostSum(
        account=account,
        region=region,
        monthly=float(total) if any(each is not None for each in amounts.values()) else None,
        is_lower_bound=bool(unknown) or None in amounts.values(),
        shares=tuple(Share(environment=name, amount=amounts.get(name)) for name in found),
        unknown=tuple(dict.fromkeys(unknown)),
        prices_as_of=next((each.prices_as_of for each in known.values()), ""),
    )
