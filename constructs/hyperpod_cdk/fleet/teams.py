"""Divides the cost of nodes among teams: by the quotas of the file, and by use as AWS's usage report states it.

Use is what tasks held, not how busy they kept it: the accelerator-hours (vCPU-hours for types without accelerators)
that the summary of HyperPod's usage report counts (awslabs/sagemaker-hyperpod-usage-report at e71f39a,
csv_generator.py, read 2026-11-23). AWS has no other record of what a team used: ListClusterNodes has no teams, and
Kueue's metrics show only the moment.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import Final

from hyperpod_cdk.catalog import instance_types
from hyperpod_cdk.catalog.prices import Prices
from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.config import AnyGroup, Environment, LoadedEnvironment, Quota
from hyperpod_cdk.findings import passed
from hyperpod_cdk.fleet.model import Pool, TeamsCost, TeamShare
from hyperpod_cdk.living.model import Unread
from hyperpod_cdk.review.figures.plan_fees import fee_of
from hyperpod_cdk.review.nouns import count

HEADER: Final = ("Date", "Namespace", "Team", "Type")
"""How the columns of the summary begin; after them three each of Neuron cores, GPUs and vCPU: total, allocated,
borrowed hours."""

_NEURON, _GPU, _VCPU = 4, 7, 10
_COLUMNS: Final = 13
_MOST_HOURS: Final = 10**12
"""More than all of AWS has in a year; a report cannot have counted a higher number."""
_CENT: Final = Decimal("0.01")
_NO_REPORT: Final = (
    "no usage report was given: create one with HyperPod's usage report (awslabs/sagemaker-hyperpod-usage-report) and"
    " pass its CSV summary with --usage"
)


class UsageError(Exception):
    """A usage report cannot be read; the text is one line with the reason."""


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Hours by team and instance type; ``missing`` are the periods without data in the report.

    For a type with accelerators they are accelerator-hours, whatever vCPU the tasks held: pods that need no accelerator
    can run there, too.
    """

    hours: Mapping[tuple[str, str], Decimal]
    missing: tuple[str, ...] = ()


def read_usage(text: str, *, where: str) -> Usage:
    """Read the summary of a usage report; ``where`` names its file. Raises UsageError."""
    try:
        rows = list(csv.reader(text.splitlines()))
    except csv.Error as error:
        raise UsageError(f"{where}: is no CSV: {error}") from None
    at = next((index for index, row in enumerate(rows) if tuple(row[: len(HEADER)]) == HEADER), None)
    if at is None:
        raise UsageError(
            f"{where}: has no line that begins with {','.join(HEADER)}, as the summary of HyperPod's usage report has;"
            " generate it with --type summary --format csv"
        )
    hours: dict[tuple[str, str], tuple[Decimal, Decimal]] = {}
    for number, row in enumerate(rows[at + 1 :], start=at + 2):
        if not row or row == ["No Results"]:
            continue
        if len(row) != _COLUMNS:
            raise UsageError(f"{where}:{number}: needs {_COLUMNS} columns, got {len(row)}")
        try:
            neuron, gpu, vcpu = (Decimal(row[column]) for column in (_NEURON, _GPU, _VCPU))
        except InvalidOperation:
            raise UsageError(f"{where}:{number}: needs hours as numbers, got {','.join(row[_NEURON:])}") from None
        if not all(each.is_finite() and 0 <= each <= _MOST_HOURS for each in (neuron, gpu, vcpu)):
            raise UsageError(f"{where}:{number}: needs hours from 0 to {_MOST_HOURS:,}, got {','.join(row[_NEURON:])}")
        key = (row[2], row[3])
        accelerators, processors = hours.get(key, (Decimal(0), Decimal(0)))
        hours[key] = accelerators + neuron + gpu, processors + vcpu
    begin = next((index for index, row in enumerate(rows[:at]) if row == ["Missing data periods"]), None)
    missing = [row[0] for row in rows[begin + 1 : at] if row and " to " in row[0]] if begin is not None else []
    has_accelerators = {kind for (_, kind), (accelerators, _) in hours.items() if accelerators}
    return Usage(
        hours={key: each[0] if key[1] in has_accelerators or _has(key[1]) else each[1] for key, each in hours.items()},
        missing=tuple(missing),
    )


def _has(kind: str) -> bool:
    """Whether a type has accelerators, as far as the catalog knows it."""
    row = instance_types.get(kind)
    return row is not None and row.accelerator_count > 0


def teams_cost(loaded: LoadedEnvironment, prices: Prices, usage: Usage | None = None) -> TeamsCost:
    """Divide the cost of an environment's nodes among its teams; an unknown cost is never zero."""
    environment = loaded.environment
    pools = tuple(_pools(loaded, prices, usage))
    skipped = []
    if usage is None:
        skipped.append(Unread(what="what teams used", reason=_NO_REPORT))
    elif usage.missing:
        reason = f"the report has no data for {', '.join(usage.missing)}"
        skipped.append(Unread(what="what teams used then", reason=reason))
    for pool in pools:
        if pool.why:
            skipped.append(Unread(what=f"{pool.instance_type}, {pool.capacity}", reason=pool.why))
        if usage is not None and all(share.by_use is None for share in pool.shares):
            reason = f"the report has no hours for {pool.instance_type}"
            skipped.append(Unread(what=f"what teams used of {pool.instance_type}", reason=reason))
    known = [pool for pool in pools if pool.cost is not None]
    total = sum((Decimal(str(pool.cost)) for pool in known), Decimal(0))
    # no known cost is not a cost of zero
    amount = f"${total:,.2f}" if known else "An unknown amount"
    least = f", and {count(len(pools) - len(known), 'pool')} of unknown cost" if 0 < len(known) < len(pools) else ""
    return TeamsCost(
        environment=environment.name,
        verdict=f"{amount} of nodes among {count(len(_teams(environment)), 'team')}{least}.",
        passed=passed(refuses=False, is_whole=not skipped),
        prices_as_of=prices.as_of.isoformat(),
        pools=pools,
        skipped=tuple(skipped),
    )


def _teams(environment: Environment) -> list[str]:
    return [team.name for team in environment.task_governance.teams] if environment.task_governance else []


def _pools(loaded: LoadedEnvironment, prices: Prices, usage: Usage | None) -> Iterator[Pool]:
    environment = loaded.environment
    groups: dict[tuple[str, str], list[AnyGroup]] = {}
    for group in environment.hyperpod.all_groups:
        groups.setdefault((", ".join(group.all_instance_types), _capacity(group)), []).append(group)
    nodes: dict[str, int] = {}
    for (types, _), members in groups.items():
        nodes[types] = nodes.get(types, 0) + sum(each.count for each in members)
    for (types, capacity), members in groups.items():
        booked = sum(each.count for each in members)
        cost, period, seats, why = _cost(loaded, prices, types, members[0], booked)
        scaled = [each.name for each in environment.hyperpod.autoscaled_groups if each in members]
        if scaled:
            # the file alone does not state their number
            cost, why = None, f"Karpenter sets how many nodes {joined(scaled)} {'has' if len(scaled) == 1 else 'have'}"
        quotas = _quotas(environment, types)
        if None in quotas.values():
            lacking = ", ".join(team for team, number in quotas.items() if number is None)
            why = why or f"the quota of {lacking} cannot be counted in nodes"
        yield Pool(
            instance_type=types,
            capacity=capacity,
            nodes=booked,
            cost=None if cost is None else float(cost),
            period=period,
            why=why,
            shares=tuple(
                _shares(cost, quotas, of_type=nodes[types], taken=booked, seats=seats, hours=_hours(usage, types))
            ),
        )


def _capacity(group: AnyGroup) -> str:
    if group.training_plan_arn is not None:
        return f"training plan {group.training_plan_arn.rpartition('/')[2]}"
    return str(group.capacity or "on_demand").replace("_", " ")


def _cost(
    loaded: LoadedEnvironment, prices: Prices, types: str, group: AnyGroup, booked: int
) -> tuple[Decimal | None, str, int, str]:
    """Return the cost of a pool, its period, how many nodes it pays for, and why it is unknown."""
    month = "a month of 730 hours"
    if group.training_plan_arn is not None:
        name = group.training_plan_arn.rpartition("/")[2]
        record = loaded.recorded_plans
        plan = None if record is None else record.plan(group.training_plan_arn)
        fee = fee_of(plan)
        seats = booked if plan is None else max(plan.seats, booked)
        why = ""
        if fee is None:
            fix = f"run 'hyperpod-cdk plans record {loaded.called}'"
            why = f"no record states the fee of {name} in US dollars; {fix}"
        return fee, f"the plan {name}, all of its window", seats, why
    if group.capacity == "spot":
        return None, month, booked, f"the Spot price of {types} changes all the time"
    if ", " in types:
        return None, month, booked, "it is unknown which of its types a flexible group runs"
    price = prices.find(loaded.environment.region, f"node.{types}")
    if price is None:
        where = f"no price for {types} in {loaded.environment.region} in the price file of {prices.as_of}"
        return None, month, booked, f"{where}; run 'hyperpod-cdk prices refresh'"
    return (price.monthly * booked).quantize(_CENT, ROUND_HALF_UP), month, booked, price.doubt


def _quotas(environment: Environment, types: str) -> dict[str, Decimal | None]:
    """Return each team's quota of a type in nodes, None if it cannot be counted; teams without one are left out."""
    found: dict[str, Decimal | None] = {}
    for team in environment.task_governance.teams if environment.task_governance else ():
        for quota in team.quota:
            if quota.instance_type == types:
                before, more = found.get(team.name, Decimal(0)), _in_nodes(environment, quota)
                found[team.name] = None if before is None or more is None else before + more
    return found


def _in_nodes(environment: Environment, quota: Quota) -> Decimal | None:
    """Return a quota in nodes: for parts of a node the largest part, since no other team can use the rest of it."""
    if quota.count is not None:
        return Decimal(quota.count)
    row = environment.instance_type(quota.instance_type)
    if row is None or quota.accelerator_partition is not None:
        return None
    parts = [
        Decimal(str(amount)) / Decimal(str(whole))
        for amount, whole in (
            (quota.accelerators, row.accelerator_count),
            (quota.vcpu, row.vcpu),
            (quota.memory_gib, row.memory_gib),
        )
        if amount is not None and whole
    ]
    return max(parts, default=None)


def _hours(usage: Usage | None, types: str) -> dict[str, Decimal]:
    return {} if usage is None else {team: hours for (team, name), hours in usage.hours.items() if name == types}


def _shares(
    cost: Decimal | None,
    quotas: Mapping[str, Decimal | None],
    *,
    of_type: int,
    taken: int,
    seats: int,
    hours: Mapping[str, Decimal],
) -> Iterator[TeamShare]:
    """Divide a pool's cost; ``of_type`` nodes of all pools of the type carry the quotas, ``seats`` are paid here."""
    known = {team: number for team, number in quotas.items() if number is not None}
    is_whole = len(known) == len(quotas)
    # more quota than nodes: no team has all of its quota, and each pays in proportion
    basis = max(sum(known.values(), Decimal(0)), Decimal(of_type))
    part = Decimal(taken) / Decimal(seats) if seats else Decimal(0)
    fractions = {team: (number / basis if basis else Decimal(0)) * part for team, number in known.items()}
    fractions[""] = 1 - sum(fractions.values(), Decimal(0))
    by_quota = _divided(cost, fractions) if is_whole else {}
    total = sum(hours.values(), Decimal(0))
    by_use = _divided(cost, {team: each / total for team, each in hours.items()}) if total else {}
    for team in dict.fromkeys([*quotas, *hours, ""]):
        if team == "" and not fractions[""] and is_whole and not hours.get(""):
            continue
        number = quotas.get(team)
        yield TeamShare(
            team=team,
            nodes=None if number is None else round(float(number), 4),
            by_quota=_amount(by_quota.get(team, Decimal(0)) if is_whole and cost is not None else None),
            used_hours=_amount(hours.get(team, Decimal(0)) if total else None),
            by_use=_amount(by_use.get(team, Decimal(0)) if total and cost is not None else None),
        )


def _divided(cost: Decimal | None, fractions: Mapping[str, Decimal]) -> dict[str, Decimal]:
    """Divide an amount to the cent; what rounding leaves goes to the largest share."""
    if cost is None or not fractions:
        return {}
    found = {team: (cost * each).quantize(_CENT, ROUND_HALF_UP) for team, each in fractions.items()}
    largest = max(fractions, key=lambda team: fractions[team])
    found[largest] += cost - sum(found.values(), Decimal(0))
    return found


def _amount(value: Decimal | None) -> float | None:
    return None if value is None else float(value)


def shares_of(found: TeamsCost) -> Sequence[tuple[str, float | None, float | None]]:
    """Return each team's share over all pools, by quota and by use; null if a pool of it is unknown."""
    teams = dict.fromkeys(share.team for pool in found.pools for share in pool.shares)

    def total(team: str, *, is_use: bool) -> float | None:
        amounts = [
            share.by_use if is_use else share.by_quota
            for pool in found.pools
            for share in pool.shares
            if share.team == team
        ]
        return None if None in amounts else float(sum(Decimal(str(each)) for each in amounts))

    return [(team, total(team, is_use=False), total(team, is_use=True)) for team in sorted(teams, key=lambda t: not t)]
