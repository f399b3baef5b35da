"""If AWS refuses a part of the calls, a check neither passes without data nor reports a false error."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pytest

from hyperpod_cdk.checks.answers import NotAnswered
from hyperpod_cdk.checks.aws import LiveAws
from hyperpod_cdk.checks.aws_calls import Patience
from hyperpod_cdk.checks.model import REGISTER, Result, Status
from hyperpod_cdk.checks.run import asks_aws, preflight
from hyperpod_cdk.config import LoadedEnvironment
from hyperpod_cdk.findings import Severity
from hyperpod_cdk.quotas.needs import own
from tests.checks.test_broken_accounts import (
    EXISTING,
    FIRST_WAYS,
    NEVER_DENIED,
    NOT_NEEDED,
    NOW,
    PROD,
    PROJECT,
    asked,
    keeping,
    loaded,
    merged,
    satisfied,
)
from tests.support.scripted_aws import members, without

REFUSED = NotAnswered("refused by the test")
Key = tuple[str, str, str]


class Recorded(LiveAws):
    """Answers as it was answered before, and refuses some calls; ``made`` and ``refused`` are what was asked for."""

    answers: dict[Key, Any]
    refuse: frozenset[Key]
    made: set[Key]
    refused: set[str]

    def _send(self, service: str, operation: str, params: Mapping[str, Any]) -> Any:
        name = self._name(service, operation)
        key = (service, operation, repr(sorted(params.items())))
        if name == NEVER_DENIED:
            return super()._send(service, operation, params)
        self.made.add(key)
        if key in self.refuse:
            self.refused.add(f"{name} {params['addonName']}" if "addonName" in params else name)
            raise copy.copy(REFUSED)
        if key not in self.answers:
            try:
                self.answers[key] = super()._send(service, operation, params)
            except NotAnswered as missing:
                self.answers[key] = missing
        answer = self.answers[key]
        if isinstance(answer, NotAnswered):
            raise copy.copy(answer) from answer.__cause__
        return copy.deepcopy(answer)


class Ran(NamedTuple):
    """What one check said, which calls it made, and which of them were refused."""

    result: Result
    made: frozenset[Key]
    refused: frozenset[str]


class Account:
    """An account as one run after another sees it: every call is answered as at first, or refused."""

    def __init__(self, wanted: LoadedEnvironment) -> None:
        self.wanted = wanted
        self.answers: dict[Key, Any] = {}

    def run(self, check: str, refuse: frozenset[Key] = frozenset()) -> Ran:
        environment = self.wanted.environment
        aws = Recorded(
            region=environment.region,
            account=environment.account,
            own=own(environment),
            session=keeping(),
            patience=Patience(),
        )
        aws.answers, aws.refuse, aws.made, aws.refused = self.answers, refuse, set(), set()
        try:
            (result,) = preflight(self.wanted, aws, project=PROJECT, now=NOW, only=(check,)).results
        finally:
            keeping().let_go(aws)
        return Ran(result, frozenset(aws.made), frozenset(aws.refused))


ROOMY = "existing_subnets_have_enough_free_addresses"
DISPENSABLE = {
    **NOT_NEEDED,
    # only who may not ask by the code looks into the list
    "servicequotas:GetServiceQuota": set[str](),
    # subnets with another way out
    "ec2:DescribeVpcEndpoints": {"existing_subnets_have_a_way_out"},
    # all interfaces of the account are those of others, whoever has which cluster
    "sagemaker:ListClusters": {*NOT_NEEDED["sagemaker:ListClusters"], "network_quotas_cover_the_network", ROOMY},
    # a subnet has room for everything, what stands already as well
    "eks:DescribeCluster": {ROOMY},
    "fsx:DescribeFileSystems": {ROOMY},
}
"""Checks with an additional call, which pass without its answer if it has no effect."""

OF_ADDON = {
    "existing_cluster_has_a_new_enough_vpc_cni": " vpc-cni",
    "installed_addons_suit_the_operators": " cert-manager",
}
"""Checks about one of the add-ons that are all described."""

PAGED: Mapping[str, Any] = {"page_size": 1}
FEW = 3
"""Rows of broken accounts that `make test` takes; `make examples` takes all."""


def states() -> Iterator[Any]:
    """Yield accounts that satisfy a file, and accounts that are broken for one check, all in pages of one."""
    for file in (PROD, EXISTING):
        checks = tuple(check.name for check in REGISTER if asks_aws(loaded(file, {}).environment, [check]))
        marks = [pytest.mark.examples] * (file != PROD)
        yield pytest.param(file, {}, {}, {}, checks, id=file, marks=marks)
    rows = [row for row in FIRST_WAYS if row.get("account")]
    for number, row in enumerate(rows):
        marks = [] if number % max(1, len(rows) // FEW) == 0 else [pytest.mark.examples]
        file, check = row.get("of", PROD), row["finds"]["check"]
        yield pytest.param(
            file, row.get("given", {}), row["account"], row.get("file", {}), (check,), id=row["name"], marks=marks
        )


def subsets(made: frozenset[Key], chance: random.Random) -> Iterator[frozenset[Key]]:
    """Yield every single call, all of them, and some at random."""
    calls = sorted(made)
    yield frozenset(calls)
    yield from (frozenset([call]) for call in calls[:: max(1, len(calls) // 8)])
    yield from (frozenset(chance.sample(calls, chance.randint(1, len(calls)))) for _ in range(min(3, len(calls))))


@pytest.mark.parametrize(("file", "given", "account", "changes", "checks"), list(states()))
def test_nothing_passes_unseen(
    file: str,
    given: Mapping[str, Any],
    account: Mapping[str, Any],
    changes: Mapping[str, Any],
    checks: tuple[str, ...],
) -> None:
    wanted = loaded(file, {**given, **changes})
    chance = random.Random(15)  # noqa: S311 - the same subsets every time
    wrong = []
    with asked(merged(merged(satisfied(file, given), account), PAGED), wanted.environment):
        there = Account(wanted)
        for check in checks:
            whole = there.run(check)
            for refuse in subsets(whole.made, chance):
                part = there.run(check, refuse)
                wrong += [f"{check} without {sorted(refuse)}: {each}" for each in mistakes(whole.result, part)]
    assert not wrong, "\n".join(wrong)


def mistakes(whole: Result, part: Ran) -> list[str]:
    """Return what is wrong with the result of a check when some calls were refused."""
    seen, status = part.result, part.result.status
    wrong = []
    made_up = places(seen) - places(whole)
    if made_up:
        wrong.append(f"errors that are none: {made_up}")
    if whole.status is Status.FAILED and status not in {Status.FAILED, Status.SKIPPED}:
        wrong.append(f"an error is gone, and it {status.value}")
    if whole.status is Status.WARNED and status is Status.PASSED:
        wrong.append("a warning is gone, and it passed")
    refused = {call for call in part.refused if seen.check.name not in DISPENSABLE.get(call.partition(" ")[0], set())}
    if about := OF_ADDON.get(seen.check.name):
        refused = {call for call in refused if not call.startswith("eks:DescribeAddon ") or call.endswith(about)}
    if refused and status in {Status.PASSED, Status.WARNED}:
        wrong.append(f"{status.value} without {', '.join(sorted(refused))}")
    return wrong


def places(result: Result) -> set[str]:
    """Return where a check found errors; what it says there may count what it did not see."""
    return {finding.path for finding in result.findings if finding.severity is Severity.ERROR}


MAY_BE_LEFT_OUT: Mapping[str, str] = {
    "NextToken": "the last page has none",
    "nextToken": "the last page has none",
    "Orchestrator": "a cluster on Slurm need not have one",
    "Eks": "a cluster on Slurm has none",
    "kubernetesNetworkConfig": "a cluster from before the choice has none",
    "ipFamily": "a cluster from before the choice has none",
    "Tags": "what has no tag of ours is of others",
    "UserIdGroupPairs": "a rule for addresses has none",
}
"""Members whose absence says something in AWS's answers, and what."""


@pytest.mark.parametrize(
    ("file", "given", "account", "changes", "checks"), [each for each in states() if len(each.values[-1]) == 1]
)
def test_nothing_passes_because_a_member_is_missing(
    file: str,
    given: Mapping[str, Any],
    account: Mapping[str, Any],
    changes: Mapping[str, Any],
    checks: tuple[str],
) -> None:
    """What is wrong stays wrong or is skipped when AWS leaves a member of an answer out, and nothing else is wrong."""
    (check,) = checks
    wanted = loaded(file, {**given, **changes})
    wrong = []
    with asked(merged(merged(satisfied(file, given), account), PAGED), wanted.environment):
        there = Account(wanted)
        whole = there.run(check)
        answers = there.answers
        for call in sorted(whole.made):
            for place in members(answers[call]) if isinstance(answers[call], dict) else ():
                if place[-1] in MAY_BE_LEFT_OUT:
                    continue
                there.answers = {**answers, call: without(answers[call], place)}
                part = there.run(check)
                is_gone = part.result.status not in {Status.FAILED, Status.SKIPPED, whole.result.status}
                made_up = places(part.result) - places(whole.result)
                if is_gone or made_up:
                    lost = f"{call[0]} {call[1]} {place}"
                    wrong.append(f"{check} without {lost}: {part.result.status.value} {sorted(made_up)}")
    assert not wrong, "\n".join(wrong)
