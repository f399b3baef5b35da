"""Preflight over real HTTP: accounts with several problems at once, paged, throttled or partly denied."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any, NamedTuple

import pytest

from hyperpod_cdk.checks.model import REGISTER, Report, Status
from tests.checks.test_broken_accounts import BROKEN, FIRST_WAYS, PROD, merged, run, skipped, told

Broken = Mapping[str, Any]


class State(NamedTuple):
    """Some rows of ``broken_accounts.yaml`` at once, and what lies between caller and AWS meanwhile."""

    name: str
    rows: tuple[Broken, ...]
    between: Mapping[str, Any]
    denied: str = ""


PAGED: Mapping[str, Any] = {"page_size": 1}
THROTTLED: Mapping[str, Any] = {"faults": [{"service": "*", "kind": "throttle", "every": 3}]}
DENIED = {
    # actions that no row below needs, each with the checks that the denial of it skips
    "iam:SimulatePrincipalPolicy": {
        "caller_may_use_the_bootstrap_roles",
        "deployer_may_make_the_stacks",
    },
    "ec2:DescribeInstanceTypeOfferings": {"instance_types_are_offered_in_their_zones"},
    "eks:DescribeAddonVersions": {"addon_versions_exist"},
    "cloudformation:DescribeStacks": {
        "stacks_are_ready_to_deploy",
        "eks_cluster_name_is_free_or_ours",
        "hyperpod_cluster_name_is_free_or_ours",
    },
}


NEEDS = {"cloudformation:DescribeStacks": {"file_systems_only_grow"}}
"""Checks that need an action only where the account is broken for them."""


def rows() -> Iterator[Broken]:
    """The first way to break each check of prod that the account alone breaks, by an error that names what it hides."""
    for row in FIRST_WAYS:
        if (
            not row.keys() & {"of", "given", "file"}
            and row.get("skipped") is not True
            and row["finds"].get("severity", "error") == "error"
        ):
            yield row


def is_independent(several: tuple[Broken, ...]) -> bool:
    """Whether no two rows change the same section of the account, nor concern one check."""
    sections = [section for row in several for section in row["account"]]
    areas = [REGISTER[row["finds"]["check"]].area for row in several]
    return len(set(sections)) == len(sections) and len(set(areas)) == len(areas)


def chosen(size: int, count: int) -> list[tuple[Broken, ...]]:
    """Independent groups of rows, spread over all there are."""
    groups = [group for group in combinations(rows(), size) if is_independent(group)]
    step = max(1, len(groups) // count)
    return groups[::step][:count]


def states() -> Iterator[State]:
    """Sixty: pairs, triples, and pairs behind pages, throttling and denied actions."""
    for group in chosen(2, 16):
        yield State(named(group), group, {})
    for group in chosen(3, 12):
        yield State(named(group), group, {})
    for group in chosen(2, 10):
        yield State(f"{named(group)}, in pages of one", group, PAGED)
    for group in chosen(2, 10):
        yield State(f"{named(group)}, every third call throttled", group, THROTTLED)
    for number, group in enumerate(chosen(2, 40)):
        action = sorted(DENIED)[number % len(DENIED)]
        # what is denied hides its own checks only
        if number < 24 and not {row["finds"]["check"] for row in group} & (DENIED[action] | NEEDS.get(action, set())):
            yield State(f"{named(group)}, without {action}", group, {"iam": {"denied_calls": [action]}}, action)


def named(group: tuple[Broken, ...]) -> str:
    return " and ".join(row["name"] for row in group)


STATES = list(states())
FIRST = {(len(state.rows), state.denied, *state.between): state.name for state in reversed(STATES)}.values()
"""The first of each kind: pairs, triples, pages, throttling, each denied action; `make examples` takes the others."""


@pytest.mark.parametrize(
    "state",
    [pytest.param(state, marks=[pytest.mark.examples] * (state.name not in FIRST), id=state.name) for state in STATES],
)
def test_a_composed_state_gives_every_finding_and_no_other(state: State) -> None:
    account: dict[str, Any] = {}
    for row in state.rows:
        account = merged(account, row["account"])
    report = run(PROD, account=merged(account, state.between)).report
    expected = {(row["finds"]["check"], row["finds"]["path"], "error", row["finds"]["message"]) for row in state.rows}
    assert set(told(report)) == expected
    assert len(told(report)) == len(expected)
    hidden = DENIED.get(state.denied, set()).union(*(row.get("skipped", ()) for row in state.rows))
    assert set(skipped(report)) == hidden
    assert statuses(report) == {
        check.name: Status.SKIPPED
        if check.name in hidden
        else Status.FAILED
        if check.name in {each for each, *_ in expected}
        else None
        for check in REGISTER
    }
    assert report.passed is False


def statuses(report: Report) -> dict[str, Status | None]:
    """Return how each check ended; None for one that passed or was not needed."""
    quiet = {Status.PASSED, Status.NOT_NEEDED}
    return {result.check.name: None if result.status in quiet else result.status for result in report.results}


def test_there_are_sixty() -> None:
    assert len(STATES) >= 60
    assert len({state.name for state in STATES}) == len(STATES)
    assert all(len(state.rows) >= 2 for state in STATES)
    assert BROKEN
