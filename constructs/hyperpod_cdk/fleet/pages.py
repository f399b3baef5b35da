"""Results of several environments, and their sums, as text, Markdown and JSON Schemas."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from hyperpod_cdk.fleet.model import FleetReport, Look, Share, Sums, TeamsCost
from hyperpod_cdk.fleet.teams import shares_of
from hyperpod_cdk.json_schema import Told
from hyperpod_cdk.review.nouns import count
from hyperpod_cdk.review.pages.markdown import prose
from hyperpod_cdk.review.pages.wording import WIDTH, in_columns, visible, wrapped

_RESULTS: Final = {0: "ok", 1: "failed", 2: "not checked"}


def result_of(look: Look) -> str:
    """Return the word of one environment's result: one that could not be checked in full is never ``ok``."""
    return "skipped" if look.exit_code == 0 and look.passed is None else _RESULTS[look.exit_code]


def text(found: FleetReport) -> str:
    """Return a row for each environment, then the details of each that is not ``ok``; at 80 columns."""
    rows: list[tuple[str, ...]] = [("environment", "wave", "account", "region", "result", "")]
    rows += [
        (each.environment, each.wave, each.account, each.region, result_of(each), each.summary)
        for each in found.environments
    ]
    # a column without values is left out
    kept = [index for index, column in enumerate(zip(*rows, strict=True)) if any(column[1:])]
    behind = [list(_behind(each, found.verb)) for each in found.environments]
    lines = list(in_columns([tuple(row[index] for index in kept) for row in rows])) if kept else []
    # what does not fit is in the details below in full
    lines = [_short(line) if told else line for line, told in zip(lines, [[], *behind], strict=True)] if kept else []
    for told in behind:
        lines += ["", *told] if told else []
    lines += ["", *(_line(each) for each in found.findings)] if found.findings else []
    lines += ["", *wrapped(found.verdict)]
    # without a table there is nothing above
    lines = lines if lines[0] else lines[1:]
    return "\n".join(visible(line) for line in lines) + "\n"


def _behind(look: Look, verb: str) -> Iterator[str]:
    if look.exit_code or look.passed is None or verb == "review":
        yield from wrapped(f"{look.environment}: {look.verdict}")
    if look.approval:
        yield from wrapped(look.approval, indent="  ", hanging="    ")
    for each in look.findings:
        # on one line, as every command writes them, so that a search finds them
        yield f"  {_line(each)}"
    for unread in look.skipped:
        said = f'; AWS says: "{unread.aws_said}"' if unread.aws_said else ""
        yield from wrapped(f"skipped {unread.what}: {unread.reason}{said}", indent="  ", hanging="    ")


def _line(each: Told) -> str:
    place = f"{each.file}:{each.line}" if each.file and each.line else each.file
    where = " ".join(part for part in (place, each.path) if part)
    return f"{each.severity} {where}: {each.message}" if where else f"{each.severity} {each.message}"


def _short(line: str) -> str:
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 1].rstrip()}…"


def _cell(text: str) -> str:
    return prose(text, in_table=True)


def markdown(found: FleetReport) -> str:
    """Return the table for a pull request, then the environments that need approval or failed."""
    lines = [
        f"## {_cell(found.verdict)}",
        "",
        "| environment | wave | account | region | result | approval |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {' | '.join(_cell(value) for value in row)} |"
        for row in (
            (look.environment, look.wave, look.account, look.region, result_of(look), look.approval)
            for look in found.environments
        )
    ]
    lines += ["", *(f"- {_cell(_line(each))}" for each in found.findings)] if found.findings else []
    for look in found.environments:
        lines += ["", f"### {_cell(look.environment)}", "", _cell(look.verdict), ""]
        lines += [f"- {_cell(f'{each.resource}: {each.sentence}')}" for each in look.needs_approval]
        lines += [f"- {_cell(_line(each))}" for each in look.findings]
        lines += [f"- skipped {_cell(f'{each.what}: {each.reason}')}" for each in look.skipped]
    return "\n".join(lines).rstrip() + "\n"


def sums_text(found: Sums) -> str:
    """Return the sums by account and Region; the caller adds what was not checked."""
    lines = list(wrapped(found.verdict))
    lines += [f"  {_line(each)}" for each in found.findings]
    places = dict.fromkeys(
        [
            *((each.account, each.region) for each in found.costs),
            *((each.account, each.region) for each in found.plans),
            *((each.account, each.region) for each in found.quotas),
        ]
    )
    for account, region in places:
        lines += ["", f"account {account}, {region}"]
        for cost in (each for each in found.costs if (each.account, each.region) == (account, region)):
            least = "at least " if cost.is_lower_bound else ""
            of = f", at prices as of {cost.prices_as_of}" if cost.prices_as_of else ""
            amount = "unknown" if cost.monthly is None else f"{least}${cost.monthly:,.2f} a month{of}"
            lines += wrapped(f"cost: {amount} ({_shares(cost.shares, money=True)})", indent="  ", hanging="    ")
            lines += [
                line
                for what in cost.unknown
                for line in wrapped(f"not included: {what}", indent="    ", hanging="      ")
            ]
        for plan in (each for each in found.plans if (each.account, each.region) == (account, region)):
            of = "an unknown number of" if plan.seats is None else str(plan.seats)
            fee = "fee unknown" if plan.fee is None else f"fee ${plan.fee:,.2f}, paid once"
            said = f"plan {plan.plan}: {plan.booked} of {of} instances, {plan.result}; {fee} ({_shares(plan.shares)})"
            lines += wrapped(said, indent="  ", hanging="    ")
        for quota in (each for each in found.quotas if (each.account, each.region) == (account, region)):
            said = f"{quota.name}: {quota.needed:g} of {quota.allowed:g} ({quota.source}), {quota.result}"
            lines += wrapped(f"{said} ({_shares(quota.shares)})", indent="  ", hanging="    ")
    return "\n".join(visible(line) for line in lines) + "\n"


def _shares(shares: Sequence[Share], *, money: bool = False) -> str:
    def shown(amount: float | None) -> str:
        if amount is None:
            return "unknown"
        return f"${amount:,.2f}" if money else f"{amount:g}"

    return ", ".join(f"{each.environment} {shown(each.amount)}" for each in shares)


def teams_text(found: TeamsCost) -> str:
    """Return each team's share of each pool of nodes, and of all; the caller adds what is unknown."""
    lines = list(wrapped(f"{found.environment}: {found.verdict}"))
    header = ("team", "quota in nodes", "by quota", "hours used", "by use")
    for pool in found.pools:
        cost = "unknown" if pool.cost is None else f"${pool.cost:,.2f}"
        said = f"{count(pool.nodes, 'node')} of {pool.instance_type}, {pool.capacity}: {cost} for {pool.period}"
        lines += ["", *wrapped(said)]
        rows = [
            (
                each.team or "(nobody)",
                "-" if each.nodes is None else f"{each.nodes:g}",
                _dollars(each.by_quota),
                "-" if each.used_hours is None else f"{each.used_hours:,.2f}",
                _dollars(each.by_use),
            )
            for each in pool.shares
        ]
        lines += [f"  {line}" for line in in_columns([header, *rows])]
    totals = [(team or "(nobody)", _dollars(quota), _dollars(use)) for team, quota, use in shares_of(found)]
    lines += [
        "",
        f"all of them, at prices as of {found.prices_as_of} where no plan has its fee",
        *(f"  {line}" for line in in_columns([("team", "by quota", "by use"), *totals])),
    ]
    return "\n".join(visible(line) for line in lines) + "\n"


def _dollars(amount: float | None) -> str:
    return "unknown" if amount is None else f"${amount:,.2f}"
