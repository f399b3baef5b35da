"""What several environments take of one account's quotas together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hyperpod_cdk.config import LoadedEnvironment
from hyperpod_cdk.config.several import Place, place_of
from hyperpod_cdk.findings import Finding, Severity
from hyperpod_cdk.handlers.quota_gate.comparison import Requirement
from hyperpod_cdk.quotas.needs import required_quotas


@dataclass(frozen=True, kw_only=True)
class Shared:
    """A quota of one account and region that others use up, and how much of it each environment there needs.

    ``users`` are in the order of the files; ``allowed`` is the lowest value recorded beside one of them, else AWS's
    default.
    """

    place: Place
    users: Sequence[tuple[LoadedEnvironment, Requirement]]
    allowed: float
    is_recorded: bool

    @property
    def needed(self) -> float:
        """How much all of them need."""
        return sum(need.needed for _, need in self.users)


def shared_quotas(loaded: Sequence[LoadedEnvironment]) -> list[Shared]:
    """Give each quota that environments take of one account and region, counted once for all of them.

    Of a quota that nobody else uses up each environment has its own, which is no matter of sums.
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
    """Warn, once for each quota, where environments of one account and region need more than it allows together.

    A quota that one environment alone needs more of is no matter of their sum, unless each would ask for its own part
    of it only.
    """
    for shared in shared_quotas(loaded):
        if len(shared.users) < 2 or shared.needed <= shared.allowed:
            continue
        each, need = shared.users[-1]
        account, region = shared.place
        what = "recorded" if shared.is_recorded else "AWS's default"
        shares = ", ".join(f"{other.needed:g} of {user.file}" for user, other in shared.users)
        yield Finding(
            severity=Severity.WARNING,
            message=f'the environments of {account} in {region} need {shared.needed:g} of the quota "{need.name}"'
            f" together ({shares}), and {shared.allowed:g} is {what}; ask for {shared.needed:g}",
            path=need.path,
            file=each.file,
            line=each.line_of(need.path),
            rule="quotas_suffice_for_all_environments",
        )
