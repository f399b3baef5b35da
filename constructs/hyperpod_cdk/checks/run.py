"""Runs checks side by side and puts what they find in the order of the environment file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from hyperpod_cdk.catalog._closest import closest
from hyperpod_cdk.checks.answers import QUESTIONS, Aws, NotAnswered
from hyperpod_cdk.checks.model import REGISTER, Case, Check, Detail, Found, Report, Result, Skipped
from hyperpod_cdk.checks.side_by_side import together
from hyperpod_cdk.config import LoadedEnvironment, UsageError
from hyperpod_cdk.findings import Finding, by_place

OFFLINE_REASON = "AWS is not asked with --offline"


class UndeclaredQuestionError(RuntimeError):
    """A check asked what its card does not list: the card, and the IAM policy made from it, would be wrong."""


class Offline:
    """The AWS of ``--offline``: no question has an answer."""

    def __getattr__(self, name: str) -> Any:
        if name not in QUESTIONS:
            raise AttributeError(name)

        def not_asked(*_: object, **__: object) -> Any:
            raise NotAnswered(OFFLINE_REASON)

        return not_asked


class _Asking:
    """The view of AWS that one check has: the questions on its card."""

    def __init__(self, aws: Aws, check: Check) -> None:
        self._aws = aws
        self._check = check

    def __getattr__(self, name: str) -> Any:
        self._must_be_listed(name)
        return getattr(self._aws, name)

    def usage(self, kind: str) -> float:
        self._must_be_listed(f"usage:{kind.partition(':')[0]}")
        return self._aws.usage(kind)

    def _must_be_listed(self, ask: str) -> None:
        if ask not in self._check.asks:
            raise UndeclaredQuestionError(f"the check {self._check.name} asks {ask}, which its card does not list")


def offline() -> Aws:
    """Give the AWS that answers nothing, for checks that run without one."""
    return cast("Aws", Offline())


def preflight(
    loaded: LoadedEnvironment,
    aws: Aws,
    *,
    project: Path,
    only: Sequence[str] = (),
    skip: Sequence[str] = (),
    now: datetime | None = None,
) -> Report:
    """Run the checks of ``only`` (default: all) without those of ``skip``; both take areas and names of checks.

    ``now`` is the moment by which dates are judged. Default: the present one. Raises UsageError for a word that is
    neither an area nor a check.
    """
    case = Case(environment=loaded.environment, now=now or datetime.now(UTC), project=project)
    chosen = select(only, skip)
    results = together(lambda check: run_check(check, case, aws), chosen)
    return Report(loaded=loaded, results=tuple(_placed(cast("Result", result), loaded) for result in results))


def select(only: Iterable[str] = (), skip: Iterable[str] = ()) -> tuple[Check, ...]:
    """Give the checks that ``only`` names (default: all) without those that ``skip`` names, in the register's order."""
    wanted = {check.name for word in only for check in _named(word)} or {check.name for check in REGISTER}
    unwanted = {check.name for word in skip for check in _named(word)}
    return tuple(check for check in REGISTER if check.name in wanted - unwanted)


def run_check(check: Check, case: Case, aws: Aws) -> Result:
    """Run one check; an answer that is missing, and that the check did not handle itself, skips it as a whole."""
    found: list[Found] = []
    try:
        found.extend(check.run(case, cast("Aws", _Asking(aws, check))))
    except NotAnswered as missing:
        found.append(Skipped(reason=missing.reason, action=missing.action))
    return Result(
        check=check,
        findings=tuple(replace(each, rule=check.name) for each in found if isinstance(each, Finding)),
        skipped=tuple(dict.fromkeys(each for each in found if isinstance(each, Skipped))),
        details=tuple(each for each in found if isinstance(each, Detail)),
    )


def _named(word: str) -> list[Check]:
    name = word.strip().lower()
    found = [check for check in REGISTER if name == check.area or name.replace("-", "_") == check.name]
    if found:
        return found
    words = [*REGISTER.areas(), *(check.name for check in REGISTER)]
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
