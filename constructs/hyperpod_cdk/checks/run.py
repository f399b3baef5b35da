"""Runs checks in parallel and puts their findings in the order of the environment file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, cast

from hyperpod_cdk.catalog.closest import closest
from hyperpod_cdk.checks.answers import QUESTIONS, Aws, NotAnswered
from hyperpod_cdk.checks.job_buckets import job_buckets
from hyperpod_cdk.checks.model import REGISTER, Case, Check, Detail, Found, Report, Result, Skipped, unanswered
from hyperpod_cdk.checks.notify import named_bus, named_channel, named_topic
from hyperpod_cdk.checks.side_by_side import together
from hyperpod_cdk.checks.workspaces import named_grafana, named_prometheus
from hyperpod_cdk.config import Environment, LoadedEnvironment, UsageError
from hyperpod_cdk.config.rules.encryption import keys_of_buckets, named_keys
from hyperpod_cdk.findings import Finding, Severity, by_place
from hyperpod_cdk.handlers.quota_gate.comparison import Unread, Usage

OFFLINE_REASON = "AWS is not called with --offline"


class UndeclaredQuestionError(RuntimeError):
    """A check asked a question that its card does not list: the card, and the IAM policy from it, would be wrong."""


class Offline:
    """The AWS of ``--offline``: no question has an answer."""

    def __getattr__(self, name: str) -> Any:
        if name not in QUESTIONS:
            raise AttributeError(name)

        def not_asked(*_: object, **__: object) -> Any:
            if name == "usage":
                return Usage(unread=(Unread(kind="thing", reason=OFFLINE_REASON),))
            raise NotAnswered(OFFLINE_REASON)

        return not_asked


class _Asking:
    """The view of AWS that one check has: the questions on its card.

    ``missing`` says what AWS answered does not exist, apart from what the check handles itself;
    ``has_asked``, whether it has asked anything.
    """

    def __init__(self, aws: Aws, check: Check) -> None:
        self._aws = aws
        self._check = check
        self.missing: list[str] = []
        self.has_asked = False

    def __getattr__(self, name: str) -> Any:
        self._must_be_listed(name)
        ask = getattr(self._aws, name)
        question = QUESTIONS[name]
        may_lack = not question.thing or name in self._check.may_lack

        def asked(*arguments: object, **named: object) -> Any:
            self.has_asked = True
            answer = ask(*arguments, **named)
            if not may_lack:
                self.missing.extend(question.missing(arguments, answer))
            return answer

        return asked

    def usage(self, kind: str) -> Usage:
        self._must_be_listed(f"usage:{kind.partition(':')[0]}")
        self.has_asked = True
        return self._aws.usage(kind)

    def _must_be_listed(self, ask: str) -> None:
        if ask not in self._check.asks:
            raise UndeclaredQuestionError(f"the check {self._check.name} asks {ask}, which its card does not list")


def offline() -> Aws:
    """Return the AWS that answers nothing, for checks that run without one."""
    return cast("Aws", Offline())


def preflight(
    loaded: LoadedEnvironment,
    aws: Aws,
    *,
    project: Path,
    only: Sequence[str] = (),
    skip: Sequence[str] = (),
    now: datetime | None = None,
    types: frozenset[str] | None = None,
) -> Report:
    """Run the checks of ``only`` (default: all) without those of ``skip``; both accept areas and names of checks.

    ``now`` is the time for comparing dates. Default: the present. ``types`` are those of the templates'
    resources, if they were read. Raises UsageError for a word that is
    neither an area nor a check.
    """
    case = Case(
        environment=loaded.environment,
        now=now or datetime.now(UTC),
        project=project,
        called=loaded.called,
        types=types,
    )
    chosen = select(only, skip)
    # a thread is useful only if the check waits for AWS
    asking = [check for check in chosen if _asks(check, case.environment) and not isinstance(aws, Offline)]
    answered = dict(zip(asking, together(lambda check: run_check(check, case, aws), asking), strict=True))
    results = (
        answered.get(check)
        or (run_check(check, case, aws) if is_needed(check, case.environment) else Result(check=check, is_needed=False))
        for check in chosen
    )
    return Report(loaded=loaded, results=tuple(_placed(cast("Result", result), loaded) for result in results))


def apart_from_offline(result: Result) -> tuple[Skipped, ...]:
    """Return what a check did not compare for another reason than ``--offline``."""
    return tuple(each for each in result.skipped if OFFLINE_REASON not in each.reason)


def asks_aws(environment: Environment, checks: Iterable[Check]) -> bool:
    """Return whether any of the checks asks AWS about this environment; else no credentials are needed."""
    return any(_asks(check, environment) for check in checks)


def is_needed(check: Check, environment: Environment) -> bool:
    """Return whether the environment has what the check is about."""
    has = _HAS.get(check.name) or _HAS.get(check.area)
    return has is None or has(environment)


def select(only: Iterable[str] = (), skip: Iterable[str] = ()) -> tuple[Check, ...]:
    """Return the checks that ``only`` names (default: all) without those that ``skip`` names, in the register's order.

    Raises UsageError for a word that is neither an area nor a check, and if no check is left.
    """
    wanted = {check.name for word in only for check in _named(word)} or {check.name for check in REGISTER}
    unwanted = {check.name for word in skip for check in _named(word)}
    chosen = tuple(check for check in REGISTER if check.name in wanted - unwanted)
    if not chosen:
        raise UsageError("must leave a check to run, got none; skip fewer")
    return chosen


def run_check(check: Check, case: Case, aws: Aws) -> Result:
    """Run one check; a missing answer that the check did not handle itself skips the whole check.

    So does a resource that does not exist, if the check found nothing wrong: it was not checked. A check that asks AWS
    nothing, and yields nothing either, had nothing to check: it is not needed, and does not count as passed.
    """
    found: list[Found] = []
    asking = _Asking(aws, check)
    try:
        found.extend(check.run(case, cast("Aws", asking)))
    except NotAnswered as missing:
        found.append(unanswered(missing))
    if not any(isinstance(each, Skipped) or _is_error(each) for each in found):
        found.extend(Skipped(reason=reason) for reason in asking.missing)
    result = Result(
        check=check,
        findings=tuple(replace(each, rule=check.name) for each in found if isinstance(each, Finding)),
        skipped=tuple(dict.fromkeys(each for each in found if isinstance(each, Skipped))),
        details=tuple(each for each in found if isinstance(each, Detail)),
    )
    return replace(result, is_needed=asking.has_asked or bool(found))


def _is_error(found: Found) -> bool:
    return isinstance(found, Finding) and found.severity is Severity.ERROR


def _asks(check: Check, environment: Environment) -> bool:
    return bool(check.asks) and is_needed(check, environment)


_HAS: Mapping[str, Callable[[Environment], bool]] = {
    "training-plan": lambda environment: any(group.training_plan_arn for group in environment.hyperpod.all_groups),
    "endpoints": lambda environment: bool(environment.network.endpoint_zones()),
    "existing-network": lambda environment: environment.network.is_existing,
    "existing-cluster": lambda environment: environment.eks.is_existing,
    "images_can_be_booted": lambda environment: any(
        group.image.ami_id not in (None, "default") for group in environment.hyperpod.instance_groups
    ),
    "rollback_alarms_exist": lambda environment: any(
        group.patching and group.patching.rollback_alarms for group in environment.hyperpod.instance_groups
    ),
    "new_subnets_hold_their_addresses": lambda environment: not environment.network.is_existing,
    "existing_subnets_have_enough_free_addresses": lambda environment: environment.network.is_existing,
    "task-governance": lambda environment: environment.task_governance is not None,
    "lustre": lambda environment: bool(environment.storage.lustre or environment.storage.s3),
    "encryption": lambda environment: any(True for _ in (*named_keys(environment), *keys_of_buckets(environment))),
    "lifecycle-bucket": lambda environment: bool(environment.hyperpod.lifecycle.existing_bucket),
    "restricted_lustre_quota_covers_the_file_systems": lambda environment: bool(
        environment.hyperpod.restricted_instance_groups
    ),
    "prometheus_workspace_is_active": lambda environment: named_prometheus(environment) is not None,
    "grafana_workspace_is_active": lambda environment: named_grafana(environment) is not None,
    "notification_topic_takes_alarms": lambda environment: named_topic(environment) is not None,
    "notification_channel_can_be_configured": lambda environment: named_channel(environment) is not None,
    "notification_bus_exists": lambda environment: named_bus(environment) is not None,
    "job-buckets": lambda environment: bool(job_buckets(environment)),
}
"""What an environment must have for the checks of an area, or for one check by name, to apply."""

OF_OTHERS: Final = (
    "data_repositories_are_in_the_region",
    "grafana_workspace_is_active",
    "images_can_be_booted",
    "job_buckets_are_in_the_region",
    "kms_keys_can_encrypt",
    "lifecycle_bucket_can_be_used",
    "mounted_buckets_are_in_the_region",
    "notification_bus_exists",
    "notification_channel_can_be_configured",
    "notification_topic_takes_alarms",
    "prometheus_workspace_is_active",
    "roles_with_access_exist",
    "rollback_alarms_exist",
)
"""Checks of what the file names and somebody else owns, who can take it away or change it while the cluster runs."""


def of_others(case: Case, aws: Aws) -> list[Result]:
    """Run the checks of ``OF_OTHERS`` that the environment has anything for, side by side."""
    needed = [each for each in select(only=OF_OTHERS) if is_needed(each, case.environment)]
    answers = together(lambda each: run_check(each, case, aws), needed)
    return [each for each in cast("list[Result]", answers) if each.is_needed]


def _named(word: str) -> list[Check]:
    name = word.strip().lower()
    found = [check for check in REGISTER if name == check.area or name.replace("-", "_") == check.name]
    if found:
        return found
    words = [*REGISTER.areas(), *(check.name for check in REGISTER)]
    if "," in name:
        raise UsageError(f'must be one area or check, got "{word}"; give the option once for each')
    near = closest(name, words)
    fix = f"did you mean {near}?" if near else f"the areas are {', '.join(REGISTER.areas())}"
    raise UsageError(f'must be an area or the name of a check, got "{word}"; {fix}')


def _placed(result: Result, loaded: LoadedEnvironment) -> Result:
    placed = [
        # a finding about another file, such as a lifecycle script, comes with its own place
        each if each.file else replace(each, file=loaded.file, line=loaded.line_of(each.path))
        for each in result.findings
    ]
    return replace(result, findings=tuple(by_place(placed)))
