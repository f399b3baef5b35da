"""What several environments take of one account's quotas together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hyperpod_cdk.config import LoadedEnvironment
from hyperpod_cdk.config.several import Place, place_of
from hyperpod_cdk.findings import Finding, Severity
from hyperpod_cdk.handlers.quota_gate.comparison import Requirement
from hyperpod_cdk.quotas.needs import required_quotas


def quotas_together(loaded: Sequence[LoadedEnvironment]) -> Iterator[Finding]:
    """Warn, once for each quota, where environments of one account and region need more than it allows together.

    What it allows is the lowest value that is recorded beside one of the files, else AWS's default. A quota that one
    environment alone needs more of is no matter of their sum, unless each would ask for its own part of it only.
    """
    needs: dict[tuple[Place, str], list[tuple[LoadedEnvironment, Requirement]]] = {}
    for each in loaded:
        for need in required_quotas(each.environment):
            if not need.usage or not need.needed:
                continue  # of a quota that nobody else uses up each environment has its own
            users = needs.setdefault((place_of(each.environment), need.key), [])
            if all(user.file != each.file for user, _ in users):
                users.append((each, need))
    for ((account, region), _), users in needs.items():
        if len(users) < 2:
            continue
        each, need = users[-1]
        total = sum(other.needed for _, other in users)
        recorded = [
            quota.value
            for user, _ in users
            if user.recorded_quotas is not None and (quota := user.recorded_quotas.find(need.service, need.name))
        ]
        allowed = min(recorded, default=need.default)
        if total <= allowed:
            continue
        what = "recorded" if recorded else "AWS's default"
        shares = ", ".join(f"{other.needed:g} of {user.file}" for user, other in users)
        yield Finding(
            severity=Severity.WARNING,
            message=f'the environments of {account} in {region} need {total:g} of the quota "{need.name}" together'
            f" ({shares}), and {allowed:g} is {what}; ask for {total:g}",
            path=need.path,
            file=each.file,
            line=each.line_of(need.path),
            rule="quotas_suffice_for_all_environments",
        )
