"""What several environments need of one account's quotas together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hyperpod_cdk.checks.model import Report
from hyperpod_cdk.config import LoadedEnvironment
from hyperpod_cdk.config.several import Place, place_of
from hyperpod_cdk.findings import Finding, Severity
from hyperpod_cdk.handlers.quota_gate.comparison import Requirement, Usage
from hyperpod_cdk.quotas.needs import required_quotas

RULE: Final = "quotas_suffice_for_all_environments"


@dataclass(frozen=True, kw_only=True)
class Shared:
    """A quota that is shared in one account and region, and how much of it each environment there needs.

    ``users`` are in the order of the files; ``allowed`` is the lowest value that is recorded for one of them, else
    AWS's default.
    """

    place: Place
    users: Sequence[tuple[LoadedEnvironment, Requirement]]
    allowed: float
    is_recorded: bool

    @property
    def needed(self) -> float:
        """How much all of them need."""
        return sum(need.needed for _, need in self.users)

    @property
    def shares(self) -> str:
        """How much each needs, in words."""
        return ", ".join(f"{need.needed:g} of {user.file}" for user, need in self.users)

    def finding(self, severity: Severity, rest: str) -> Finding:
        """Return a finding that begins with the sum of all needs, at the last environment."""
        each, need = self.users[-1]
        account, region = self.place
        return Finding(
            severity=severity,
            message=f'the environments of {account} in {region} need {self.needed:g} of the quota "{need.name}"'
            f" together ({self.shares}), {rest}",
            path=need.path,
            file=each.file,
            line=each.line_of(need.path),
            rule=RULE,
        )


def shared_quotas(loaded: Sequence[LoadedEnvironment]) -> list[Shared]:
    """Return each quota that environments of one account and region share, counted once for all of them.

    Quotas that each environment has separately are left out.
    """
    needs: dict[tuple[Place, str], list[tuple[LoadedEnvironment, Requirement]]] = {}
    for each in loaded:
        for need in required_quotas(each.environment):
            if not need.usage or not need.needed:
                continue
            users = needs.setdefault((place_of(each.environment), need.key), [])
            if all(user.file != each.file for user, _ in users):
                users.append((each, need))
    found = []
    for (place, _), users in needs.items():
        recorded = [
            quota.value
            for user, need in users
            if user.recorded_quotas is not None and (quota := user.recorded_quotas.find(need.service, need.name))
        ]
        allowed = min(recorded, default=users[-1][1].default)
        found.append(Shared(place=place, users=users, allowed=allowed, is_recorded=bool(recorded)))
    return found


def quotas_together(loaded: Sequence[LoadedEnvironment]) -> Iterator[Finding]:
    """Warn, once for each quota, if environments of one account and region together need more than it allows.

    If one environment alone needs more, its own check reports it, unless each would request only its own part.

    """
    for shared in shared_quotas(loaded):
        yield from by_record(shared)


def by_record(shared: Shared) -> Iterator[Finding]:
    """Judge what environments need together without AWS."""
    if len(shared.users) < 2 or shared.needed <= shared.allowed:
        return
    what = "recorded" if shared.is_recorded else "AWS's default"
    rest = f"and {shared.allowed:g} is {what}; request {shared.needed:g}"
    yield shared.finding(Severity.WARNING, rest)


@dataclass(frozen=True, kw_only=True)
class Living:
    """AWS's values for a shared quota: the quota, and what others than these environments use of it.

    ``others`` is None if not all of that was read; ``unread`` says why.
    """

    value: float
    is_default: bool
    others: float | None
    unread: str = ""


def living(shared: Shared, reports: Mapping[str, Report], usage: Usage) -> Living | None:
    """Combine AWS's answers about a quota for each of its users; None if one was not asked or not answered.

    ``reports`` are those of their preflights by file. ``usage`` is what the whole account uses, these environments
    included: what others than one use is in the report of that one, so that each one's own part is known.
    """
    told = [_details_of(reports.get(user.file), need) for user, need in shared.users]
    values = [None if each is None else each["value"] for each in told]
    if len({need.usage for _, need in shared.users}) > 1 or any(value is None for value in values):
        return None
    beside = [None if each is None else each["used_by_others"] for each in told]
    others = None
    if usage.is_whole and None not in beside:
        others = max(0.0, usage.at_least - sum(usage.at_least - float(each) for each in beside if each is not None))
    return Living(
        value=min(float(value) for value in values if value is not None),
        is_default=any(bool(each and each["is_default"]) for each in told),
        others=others,
        unread=usage.what_is_unread or "what others use of it could not be read in full",
    )


def by_aws(shared: Shared, found: Living) -> Finding | str | None:
    """Compare what environments need together with AWS's values: a finding, why it is unknown, or None if it fits.

    If others certainly leave too little it is an error, unless the requirement only ever warns or AWS's default is not
    reliable.
    """
    others = found.others or 0
    if shared.needed + others > found.value:
        needs = [need for _, need in shared.users]
        doubtful = any(need.advisory or (found.is_default and need.unsure_default) for need in needs)
        use = f"others use {others:g}, " if others else ""
        what = " (AWS's default)" if found.is_default else ""
        rest = f"{use}and the quota is {found.value:g}{what}; request {shared.needed + others:g}"
        return shared.finding(Severity.WARNING if doubtful else Severity.ERROR, rest)
    if found.others is None:
        return f"whether it is enough for all environments together ({shared.shares}): {found.unread}"
    return None


def _details_of(report: Report | None, need: Requirement) -> Mapping[str, Any] | None:
    """Return what a preflight read about a quota."""
    details = (each.data for result in (report.results if report else ()) for each in result.details)
    wanted = (need.service, need.name)
    return next((each for each in details if (each.get("service"), each.get("quota")) == wanted), None)
