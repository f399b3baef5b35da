"""The quota increases that an environment needs, and the requests for them."""

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
    """AWS access that can also request quota increases, which is a write operation."""

    def request_quota(self, service: str, code: str, desired: float) -> QuotaRequest:
        """Request ``desired`` and return the request, or the open one; raises NotAnswered if AWS refuses."""
        ...


@dataclass(frozen=True, kw_only=True)
class Tools:
    """External access of the commands. ``confirm`` asks for confirmation; None if there is no terminal."""

    open_aws: Callable[[LoadedEnvironment], QuotaAws]
    confirm: Callable[[str], bool] | None
    now: Callable[[], datetime]

    @staticmethod
    def for_people() -> Tools:
        """Return access to the real AWS, the terminal and the clock."""

        def ask(question: str) -> bool:
            try:
                return typer.confirm(question, default=False, err=True)
            except typer.Abort:
                # the end of the input or Ctrl-C counts as no
                print(file=sys.stderr)
                return False

        def open_account(loaded: LoadedEnvironment) -> QuotaAws:
            aws = open_aws(loaded)
            aws.require_account()
            return aws

        return Tools(open_aws=open_account, confirm=ask if sys.stdin.isatty() else None, now=lambda: datetime.now(UTC))


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """One quota increase to request. ``last`` is the newest request that AWS has already decided."""

    service: str
    code: str
    name: str
    present: float
    desired: float
    last: QuotaRequest | None = None


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The quota increases of an environment.

    ``wanted`` are the increases to request. ``pending`` are the open requests, each with the value that the
    environment needs (None if its quota suffices). ``problems`` contains one line for each increase that cannot be
    requested, ``unread`` one for each value that could not be read.
    """

    wanted: tuple[Wanted, ...]
    pending: tuple[tuple[QuotaRequest, float | None], ...]
    problems: tuple[str, ...]
    unread: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Sent:
    """The result of requesting one increase: the request, or the reason why there is none."""

    wanted: Wanted
    request: QuotaRequest | None = None
    problem: str = ""


def plan(environment: Environment, aws: Aws, *, called: str) -> Plan:
    """Compare every quota with the environment's needs, and find the open requests."""
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
            problems.append(f'"{name}" is {number(each.reading.value or 0)}, which AWS does not increase')
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
    """Return why quotas could not be compared, one line per reason."""
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
    """Request every increase, one after the other; if AWS refuses one, the others are still requested."""
    return tuple(_sent(each, aws) for each in todo.wanted)


def _sent(wanted: Wanted, aws: QuotaAws) -> Sent:
    try:
        return Sent(wanted=wanted, request=aws.request_quota(wanted.service, wanted.code, wanted.desired))
    except NotAnswered as refused:
        return Sent(wanted=wanted, problem=f'"{wanted.name}" could not be requested: {_why(refused)}')


def _by_quota(compared: Sequence[Compared]) -> dict[tuple[str, str], Compared]:
    """Return one comparison for each quota that was read: among several zones, the one with the highest need."""
    found: dict[tuple[str, str], Compared] = {}
    for each in compared:
        quota = (each.requirement.service, each.code)
        if each.code and (quota not in found or (each.request or 0) > (found[quota].request or 0)):
            found[quota] = each
    return found


def _why(missing: NotAnswered) -> str:
    return f"{missing.reason}{allowing(missing.action, missing.reason)}{quoted(missing.said)}"
