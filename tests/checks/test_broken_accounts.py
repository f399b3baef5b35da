"""Preflight over real HTTP: a complete account, one problem at a time, and AWS without a response."""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import copy_context
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import botocore.session
import pytest
import yaml

from hyperpod_cdk.checks.answers import QUESTIONS
from hyperpod_cdk.checks.aws import LiveAws
from hyperpod_cdk.checks.aws_calls import Patience
from hyperpod_cdk.checks.model import REGISTER, Report, Status
from hyperpod_cdk.checks.run import asks_aws, preflight
from hyperpod_cdk.config import Environment, LoadedEnvironment, load_environment
from hyperpod_cdk.config.source import parse_path
from hyperpod_cdk.quotas.needs import own, required_quotas
from hyperpod_cdk_rehearsal.account_files import satisfying
from tests.support.embedded import ACCOUNT, Embedded, embedded

PROJECT = Path(__file__).parents[2]
PROD = "environments/prod.yaml"
EXISTING = "examples/existing-vpc-and-eks.yaml"
FILES = (PROD, *sorted(f"examples/{path.name}" for path in (PROJECT / "examples").glob("*.yaml")))

NOW = datetime(2026, 6, 1, 9, tzinfo=UTC)
"""A day on which EKS supports the versions of all files for long; the embedded AWS takes it for the present."""

BROKEN: list[dict[str, Any]] = yaml.load(
    (Path(__file__).parent / "broken_accounts.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader
)
ACTIONS = sorted({action for question in QUESTIONS.values() for action in question.actions})
CALLS = {call for question in QUESTIONS.values() for call in question.calls} | set(ACTIONS)
NEVER_DENIED = "sts:GetCallerIdentity"

SERVICES = sorted({call.split(":")[0] for question in QUESTIONS.values() for call in question.calls} - {"sts"})
"""Everything but STS, without which preflight does not begin."""

FEW = ("fsx", "logs", "ssm")
"""Services that are asked so seldom that the pauses after throttling end soon."""

IMPATIENT = Patience(connect_timeout_s=2.0, read_timeout_s=0.5, attempts=2)
NOT_NEEDED = {
    # a type that is not offered in the zone is an error whether or not the zones are known
    "ec2:DescribeAvailabilityZones": {"instance_types_are_offered_in_their_zones"},
    # the plan has as many instances as the file takes, whoever else there is
    "sagemaker:ListClusters": {"training_plan_is_used_in_full"},
    # the subnets tell the zones of NAT gateways and interfaces, of which there are none of others
    "ec2:DescribeSubnets": {"network_quotas_cover_the_network"},
    # the lists of quotas show it, too
    "servicequotas:GetServiceQuota": {check.name for check in REGISTER},
    # what a VPC's names resolve to is the rule of one check
    "ec2:DescribeVpcAttribute": {check.name for check in REGISTER} - {"existing_vpc_resolves_names"},
    # the API server tells that there is no Kueue at all
    "eks:ListAddons": {"existing_cluster_has_no_kueue_of_its_own"},
    # the names in the list tell that the cluster has none of the add-ons that these ask about
    "eks:DescribeAddon": {"existing_addons_are_told_apart", "existing_cluster_has_no_kueue_of_its_own"},
}
"""Checks with an additional call, which pass without its answer if it has no effect."""

FIRST_WAYS = list({broken["finds"]["check"]: broken for broken in reversed(BROKEN)}.values())
"""Of every check in the table, the first way to break it."""

FAILING = ("throttle", "timeout", "expired_token", "truncated", "server_error", "garbage", "no_endpoint")


class Ran(NamedTuple):
    """A run and what it cost."""

    report: Report
    aws: LiveAws
    seen: Mapping[str, Any]


@pytest.mark.parametrize(
    "file", [file if file in (PROD, EXISTING) else pytest.param(file, marks=pytest.mark.examples) for file in FILES]
)
def test_an_account_that_satisfies_everything_passes(file: str) -> None:
    ran = run(file)
    assert [(result.check.name, result.findings, result.skipped) for result in ran.report.results] == [
        (check.name, (), ()) for check in REGISTER
    ]
    # the codes of Spot quotas are not known: these are looked for in the list of all, page after page
    needs = required_quotas(ran.report.loaded.environment)
    assert ran.aws.depth <= (6 if any(need.key.startswith("spot:") for need in needs) else 4)
    # nothing is asked that LiveAws does not count; Kubernetes has an API server of its own
    assert Counter(call.name for call in ran.aws.calls if call.name in CALLS).total() == ran.seen["total"]


def test_a_list_in_pages_of_one_is_the_same_list() -> None:
    in_use = {"vpcs": 3, "elastic_ips": 2, "security_groups": 3, "eks_clusters": 3, "gateway_endpoints": 2}
    others = [
        {"name": f"other-{n}", "groups": [{"name": "g", "instance_type": "ml.c5.large", "count": 1}]} for n in "ab"
    ]
    account = {"in_use": in_use, "clusters": others}
    usual, paged = (run(PROD, account={**account, **extra}) for extra in ({}, {"page_size": 1}))
    assert paged.seen["total"] > usual.seen["total"] + 20
    assert told(paged.report) == told(usual.report) == []
    assert not skipped(paged.report)


@pytest.mark.parametrize(
    "broken",
    [broken if broken in FIRST_WAYS else pytest.param(broken, marks=pytest.mark.examples) for broken in BROKEN],
    ids=lambda broken: broken["name"],
)
def test_one_broken_thing_gives_its_finding(broken: dict[str, Any]) -> None:
    finds_it_and_nothing_else(broken, only=REGISTER[broken["finds"]["check"]].area)


@pytest.mark.parametrize(
    "broken",
    [FIRST_WAYS[0], *(pytest.param(broken, marks=pytest.mark.examples) for broken in FIRST_WAYS[1:])],
    ids=lambda broken: broken["name"],
)
def test_one_broken_thing_gives_no_finding_of_another_area(broken: dict[str, Any]) -> None:
    finds_it_and_nothing_else(broken)


def finds_it_and_nothing_else(broken: dict[str, Any], *, only: str = "") -> None:
    """Run all checks, or those of one area, in an account with one broken thing."""
    file, given = broken.get("of", PROD), broken.get("given", {})
    expected = broken["finds"]
    changes, account = broken.get("file", {}), broken.get("account", {})
    report = run(file, given=given, account=account, changes=changes, only=(only,) if only else ()).report
    assert told(report) == [
        (expected["check"], expected["path"], expected.get("severity", "error"), expected["message"])
    ]
    hidden = broken.get("skipped", [])
    if isinstance(hidden, list):
        # of what is not there nothing else is looked at
        assert set(skipped(report)) == {name for name in hidden if only in ("", REGISTER[name].area)}
    else:
        assert skipped(report)


def test_throttling_that_ends_is_not_noticed() -> None:
    faults = [{"service": service, "kind": "throttle", "times": 1} for service in FEW]
    ran = run(PROD, account={"faults": faults})
    assert (told(ran.report), skipped(ran.report)) == ([], {})
    assert ran.seen["total"] > len(ran.aws.calls)
    assert sum(call.retries for call in ran.aws.calls) == ran.seen["total"] - len(ran.aws.calls)


@pytest.mark.parametrize(
    "kind",
    [
        kind if kind in ("throttle", "timeout", "garbage") else pytest.param(kind, marks=pytest.mark.examples)
        for kind in FAILING
    ],
)
def test_what_aws_does_not_answer_is_skipped(kind: str) -> None:
    services = FEW if kind == "throttle" else SERVICES
    faults = [{"service": service, "kind": kind, "seconds": 5} for service in services]
    report = run(PROD, account={"faults": faults}, patience=IMPATIENT).report
    calls_hit = {call for call in CALLS if call.split(":")[0] in services}
    asking = {check for check, calls in calls_of_checks(PROD).items() if calls & calls_hit}
    assert told(report) == []
    assert set(skipped(report)) == asking
    for result in report.results:
        assert all(each.reason for each in result.skipped)


@pytest.mark.parametrize(
    ("api", "reason"),
    [
        ("unknown_caller", "does not recognize the caller; it needs an access entry"),
        (
            "forbidden",
            "does not allow the caller to read /apis; its access entry needs a policy such as AmazonEKSViewPolicy",
        ),
        ("unreachable", "is not reachable from here: no answer; check that its endpoint allows this address"),
    ],
)
def test_an_api_server_that_does_not_answer_is_skipped(api: str, reason: str) -> None:
    report = run(EXISTING, account={"kubernetes": {"api": api}}).report
    assert told(report) == []
    assert skipped(report) == {
        "existing_cluster_has_no_kueue_of_its_own": [(f"the API server of EKS cluster platform {reason}", "")]
    }


@pytest.mark.parametrize("after", [1, 20, *(pytest.param(calls, marks=pytest.mark.examples) for calls in (5, 40))])
def test_a_token_that_expires_in_the_middle_passes_nothing_unasked(after: int) -> None:
    faults = [{"service": "*", "kind": "expired_token", "after": after}]
    ran = run(PROD, account={"faults": faults})
    assert told(ran.report) == []
    assert skipped(ran.report)
    assert all("expired" in reason for reasons in skipped(ran.report).values() for reason, _ in reasons)


@pytest.mark.parametrize(
    "kind",
    [
        *("truncated", "access_denied"),
        *(pytest.param(kind, marks=pytest.mark.examples) for kind in ("server_error", "garbage", "no_endpoint")),
    ],
)
def test_a_list_whose_second_page_fails_is_no_list(kind: str) -> None:
    lists = [("sagemaker", "ListClusters"), ("ec2", "DescribeVpcs"), ("eks", "DescribeAddonVersions")]
    lists += [("servicequotas", "ListServiceQuotas"), ("ec2", "DescribeInstanceTypeOfferings")]
    others = [
        {"name": f"other-{n}", "groups": [{"name": "g", "instance_type": "ml.c5.large", "count": 1}]} for n in "ab"
    ]
    faults = [{"service": service, "operation": name, "kind": kind, "after": 1} for service, name in lists]
    account = {"clusters": others, "in_use": {"vpcs": 2}, "page_size": 1, "faults": faults}
    asked_for = {name for _, name in lists}
    only = [check for check, calls in calls_of_checks(PROD).items() if asked_for & {c.split(":")[1] for c in calls}]
    report = run(PROD, account=account, patience=IMPATIENT, only=tuple(only)).report
    assert told(report) == []
    assert "cluster_size_quotas_cover_the_cluster" in skipped(report)
    assert "network_quotas_cover_the_network" in skipped(report)


@pytest.mark.parametrize("file", [PROD, pytest.param(EXISTING, marks=pytest.mark.examples)])
def test_a_denied_action_skips_what_needs_it_and_nothing_else(file: str) -> None:
    calls = calls_of_checks(file)
    # what prod.yaml asks for is denied there; some calls are made only where another answer is missing
    elsewhere = set[str]() if file == PROD else set[str]().union(*calls_of_checks(PROD).values())
    denied = {
        action: {check for check, made in calls.items() if action in made}
        for action in ACTIONS
        if action != NEVER_DENIED and action not in elsewhere
    }
    assert any(denied.values())
    for together in apart(denied):
        report = run(file, account={"iam": {"denied_calls": list(together)}}).report
        assert told(report) == []
        for result in report.results:
            # AWS's own sentence names the policy that refuses; it is never lost
            assert all("is not authorized to perform" in each.said for each in result.skipped if each.action)
        wanted = {check: action for action in together for check in denied[action] - NOT_NEEDED.get(action, set())}
        assert {check: {missing for _, missing in reasons} - {""} for check, reasons in skipped(report).items()} == {
            check: {action} for check, action in wanted.items()
        }


def apart(denied: Mapping[str, set[str]]) -> list[list[str]]:
    """Put actions together of which no check needs two, so that whatever is skipped is one action's doing."""
    groups: list[tuple[list[str], set[str]]] = []
    for action, needing in sorted(denied.items()):
        free = next((group for group in groups if not group[1] & needing), None)
        if free is None:
            groups.append(([action], set(needing)))
        else:
            free[0].append(action)
            free[1].update(needing)
    return [actions for actions, _ in groups]


def run(
    file: str,
    *,
    given: Mapping[str, Any] | None = None,
    account: Mapping[Any, Any] | None = None,
    changes: Mapping[str, Any] | None = None,
    patience: Patience | None = None,
    only: tuple[str, ...] = (),
) -> Ran:
    """Create an account that satisfies a file, break it, and run preflight on the file with its changes."""
    document = merged(satisfied(file, given or {}), account or {})
    wanted = loaded(file, {**(given or {}), **(changes or {})})
    # a client remembers that it was throttled, and a call that was given up may still hold one
    is_calm = not document["faults"] and patience is None
    with asked(document, wanted.environment) as there:
        ran = preflighted(wanted, patience=patience, only=only, used=keeping() if is_calm else None)
        return Ran(ran[0], ran[1], there.calls())


@contextmanager
def asked(document: Mapping[str, Any], environment: Environment) -> Iterator[Embedded]:
    """Create an account and configure boto3 for it."""
    with (
        embedded(document, region=environment.region, account=ACCOUNT, now=NOW) as there,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in there.environment().items():
            patch.setenv(name, value)
        yield there


def preflighted(
    wanted: LoadedEnvironment,
    *,
    patience: Patience | None = None,
    only: tuple[str, ...] = (),
    used: Keeping | None = None,
) -> tuple[Report, LiveAws]:
    """Run checks with an unused AWS; its clients are new, or those of a session in use."""
    environment = wanted.environment

    def ask() -> tuple[Report, LiveAws]:
        aws = LiveAws.open(
            region=environment.region,
            account=environment.account,
            own=own(environment),
            session=used or session(),
            patience=patience,
        )
        try:
            return preflight(wanted, aws, project=PROJECT, now=NOW, only=only), aws
        finally:
            if used:
                used.let_go(aws)

    # the depth of calls is kept in a context variable, which the next run must not inherit
    return copy_context().run(ask)


def loaded(file: str, changes: Mapping[str, Any]) -> LoadedEnvironment:
    """Load an environment file with changes, by paths as messages write them."""
    if not changes:
        return _as_it_stands(file)
    data = copy.deepcopy(_values(file))
    for path, value in changes.items():
        *steps, last = parse_path(path) or ("",)
        place = data
        for step in steps:
            place = place[step]
        place[last] = value
    text = yaml.dump(data, Dumper=yaml.CSafeDumper, sort_keys=False)
    return load_environment(PROJECT / file, text=text, today=NOW.date())


@cache
def _values(file: str) -> Any:
    return yaml.load((PROJECT / file).read_text(encoding="utf-8"), yaml.CSafeLoader)


def satisfied(file: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document of the account that satisfies a file with changes; not to be changed itself."""
    return satisfying(loaded(file, given).environment) if given else _satisfied(file)


@cache
def _satisfied(file: str) -> dict[str, Any]:
    return satisfying(_as_it_stands(file).environment)


@cache
def _as_it_stands(file: str) -> LoadedEnvironment:
    return load_environment(PROJECT / file, today=NOW.date())


def merged(document: Any, changes: Mapping[Any, Any]) -> Any:
    """Return a document with changes: mappings are merged, lists by number, null takes a key away."""
    result: Any = copy.deepcopy(document)
    for key, value in changes.items():
        if value is None:
            del result[key]
        elif isinstance(value, Mapping) and (isinstance(result, list) or isinstance(result.get(key), Mapping | list)):
            result[key] = merged(result[key], value)
        else:
            result[key] = value
    return result


def told(report: Report) -> list[tuple[str, str, str, str]]:
    """Return every finding: check, path, severity, message; random IDs are left out."""
    return [
        (
            result.check.name,
            finding.path,
            finding.severity.value,
            re.sub(r"\b(rtb-|igw-|:cluster/)[0-9a-z]{12,17}\b", r"\1...", finding.message),
        )
        for result in report.results
        for finding in result.findings
    ]


def skipped(report: Report) -> dict[str, list[tuple[str, str]]]:
    """Return the reasons and missing actions of every check that could not ask."""
    found = {result.check.name: [(each.reason, each.action) for each in result.skipped] for result in report.results}
    for result in report.results:
        # whatever was not asked never counts as passed
        assert not result.skipped or result.status in {Status.SKIPPED, Status.FAILED}
    return {name: reasons for name, reasons in found.items() if reasons}


@cache
def calls_of_checks(file: str) -> Mapping[str, frozenset[str]]:
    """Return the IAM actions that each check needs in the account that satisfies a file, asked by itself."""
    wanted = loaded(file, {})
    found = {}
    with asked(satisfying(wanted.environment), wanted.environment):
        for check in REGISTER:
            asks = asks_aws(wanted.environment, [check])
            calls = preflighted(wanted, only=(check.name,), used=keeping())[1].calls if asks else ()
            # who the credentials belong to is asked before every run
            found[check.name] = frozenset(call.name for call in calls) - {NEVER_DENIED}
    return found


class Keeping(botocore.session.Session):
    """A session that keeps its clients too, one for each service and region: making them takes as long as asking."""

    def __init__(self) -> None:
        super().__init__()
        self._kept: dict[tuple[str, str], Any] = {}

    def create_client(self, service_name: str, *, config: Any) -> Any:  # type: ignore[override] # as LiveAws calls it
        """Create a client at the first call; all have the same endpoint and timeouts."""
        key = (service_name, config.region_name)
        if key not in self._kept:
            self._kept[key] = super().create_client(service_name, config=config)
        return self._kept[key]

    def let_go(self, aws: LiveAws) -> None:
        """Take from the clients what a run has hung on them."""
        for client in aws._clients.values():
            client.meta.events.unregister("before-send", aws._count_attempt)
            event = f"needs-retry.{client.meta.service_model.service_id.hyphenize()}"
            client.meta.events.unregister(event, aws._see_response)


@cache
def keeping() -> Keeping:
    """Return one session for all runs without network errors."""
    return Keeping()


@cache
def session() -> botocore.session.Session:
    """Return one session for all runs: it keeps the service models, which cost more than a run."""
    return botocore.session.Session()
