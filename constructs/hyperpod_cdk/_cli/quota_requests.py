"""Which quota increases an environment needs, and the requests for them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

import typer

from hyperpod_cdk._cli.causes import Gap, causes
from hyperpod_cdk._cli.preflight import open_aws
from hyperpod_cdk.checks.answers import Aws, NotAnswered, QuotaRequest, allowing
from hyperpod_cdk.checks.quotas import Compared, compare, why_unread
from hyperpod_cdk.checks.side_by_side import together
from hyperpod_cdk.config import Environment, LoadedEnvironment
from hyperpod_cdk.handlers.quota_gate.comparison import number
from hyperpod_cdk.handlers.quota_gate.reading import quoted
from hyperpod_cdk.quotas.needs import required_quotas


class QuotaAws(Aws, Protocol):
    """An AWS that also takes requests for more; this writes."""

    def request_quota(self, service: str, code: str, desired: float) -> QuotaRequest:
        """Ask for ``desired`` and give the request, or the open one; raises NotAnswered where AWS refuses."""
        ...


@dataclass(frozen=True, kw_only=True)
class Tools:
    """What the verbs reach for outside. ``confirm`` asks a person yes or no; None: nobody is there to ask."""

    open_aws: Callable[[LoadedEnvironment], QuotaAws]
    confirm: Callable[[str], bool] | None
    now: Callable[[], datetime]

    @staticmethod
    def for_people() -> Tools:
        """Real AWS, the terminal and the clock."""

        def ask(question: str) -> bool:
            try:
                return typer.confirm(question, default=False, err=True)
            except typer.Abort:
                # the end of the input, or Ctrl-C: no answer, and so not a yes
                print(file=sys.stderr)
                return False

        def open_account(loaded: LoadedEnvironment) -> QuotaAws:
            aws = open_aws(loaded)
            aws.require_account()
            return aws

        return Tools(open_aws=open_account, confirm=ask if sys.stdin.isatty() else None, now=lambda: datetime.now(UTC))


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """One quota to ask for. ``last`` is the newest request that somebody has decided already."""

    service: str
    code: str
    name: str
    present: float
    desired: float
    last: QuotaRequest | None = None


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to do about an environment's quotas.

    ``wanted`` are to be requested, ``pending`` are requests that are open already, each with the value that the
    environment would ask for (None: its quota suffices). ``problems`` say, a line each, what cannot be requested,
    ``unread`` what could not be read.
    """

    wanted: tuple[Wanted, ...]
    pending: tuple[tuple[QuotaRequest, float | None], ...]
    problems: tuple[str, ...]
    unread: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Sent:
    """What came of asking for one quota: the request, or why there is none."""

    wanted: Wanted
    request: QuotaRequest | None = None
    problem: str = ""


def plan(environment: Environment, aws: Aws, *, called: str) -> Plan:
    """Compare every quota with what the environment takes and find the requests that are open."""
    compared = compare(environment, aws, required_quotas(environment), called=called)
    by_quota = _by_quota(compared)
    histories = together(lambda quota: aws.quota_requests(*quota), by_quota)
    wanted, pending, problems, not_read = [], [], [], []
    for (quota, each), history in zip(by_quota.items(), histories, strict=True):
        name, desired = each.requirement.name, each.request
        requests = () if isinstance(history, NotAnswered) else history
        still_open = next((request for request in requests if request.is_open), None)
        if still_open is not None:
            pending.append((still_open, desired))
        elif desired is None:
            continue
        elif not each.reading.is_adjustable:
            problems.append(f'"{name}" is {number(each.reading.value or 0)}, which AWS does not raise')
        elif isinstance(history, NotAnswered):
            not_read.append(f'whether a request for "{name}" is open could not be read: {_why(history)}')
        else:
            wanted.append(
                Wanted(
                    service=quota[0],
                    code=quota[1],
                    name=name,
                    present=each.reading.value or 0,
                    desired=desired,
                    last=next(iter(requests), None),
                )
            )
    return Plan(
        wanted=tuple(wanted),
        pending=tuple(pending),
        problems=tuple(dict.fromkeys(problems)),
        unread=tuple(dict.fromkeys([*not_read, *unread(compared)])),
    )


def unread(compared: Sequence[Compared]) -> list[str]:
    """Give why quotas could not be compared: a line for each reason."""
    gaps = [
        Gap(
            what=each.requirement.name,
            reason=why_unread(each),
            action=each.verdict.action,
            said=each.verdict.said,
        )
        for each in compared
        if each.verdict.unread
    ]
    return [
        f"{len(cause.what)} quotas could not be compared: {cause}" if len(cause.what) > 1 else str(cause)
        for cause in causes(gaps)
    ]


def send(todo: Plan, aws: QuotaAws) -> tuple[Sent, ...]:
    """Request every wanted quota, one after the other; AWS's refusal of one does not stop the next."""
    return tuple(_sent(each, aws) for each in todo.wanted)


def _sent(wanted: Wanted, aws: QuotaAws) -> Sent:
    try:
        return Sent(wanted=wanted, request=aws.request_quota(wanted.service, wanted.code, wanted.desired))
    except NotAnswered as refused:
        return Sent(wanted=wanted, problem=f'"{wanted.name}" could not be requested: {_why(refused)}')


def _by_quota(compared: Sequence[Compared]) -> dict[tuple[str, str], Compared]:
    """Give one comparison for each quota that was read: of several zones, the one that asks for most."""
    found: dict[tuple[str, str], Compared] = {}
    for each in compared:
        quota = (each.requirement.service, each.code)
        if each.code and (quota not in found or (each.request or 0) > (found[quota].request or 0)):
            found[quota] = each
    return found


def _why(missing: NotAnswered) -> str:
    return f"{missing.reason}{allowing(missing.action, missing.reason)}{quoted(missing.said)}"
