"""Fixtures for tests of checks: a case from text or from changes, and an AWS with responses from the test."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from types import EllipsisType
from typing import Any

import pytest
import yaml

from hyperpod_cdk.checks import run
from hyperpod_cdk.checks.answers import Aws
from hyperpod_cdk.checks.model import REGISTER, Case, Check, Result, Status
from hyperpod_cdk.config import load_environment
from hyperpod_cdk.config.source import parse_path
from tests.support.fake_aws import FakeAws

FILE = Path("environments/prod.yaml")
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)

CaseOf = Callable[..., Case]
RunCheck = Callable[[str | Check, Case, Aws], Result]


@pytest.fixture
def fake_aws() -> FakeAws:
    """Return an AWS without any answers: set ``fake_aws.answers.zones`` and others."""
    return FakeAws()


@pytest.fixture(scope="session")
def case_of(project: Path) -> CaseOf:
    """Creates a case from the text of an environment file, or from environments/prod.yaml with changes.

    ``case_of({"hyperpod.instance_groups[1].count": 4, "storage": ...})`` sets the count and removes the storage; an
    index just behind a list's end appends. Default: prod.yaml as it stands, 2026-11-21 12:00 UTC, this project.
    """
    prod = (project / FILE).read_text(encoding="utf-8")

    def make(text_or_changes: str | Mapping[str, Any] = "", *, now: datetime = NOW, project: Path = project) -> Case:
        text = text_or_changes if isinstance(text_or_changes, str) else _changed(prod, text_or_changes)
        loaded = load_environment(FILE, text=text or prod, today=now.date())
        return Case(environment=loaded.environment, now=now, project=project, called=loaded.called)

    return make


_ran: list[Result] = []

_SHOWS: dict[str, Callable[[Result], bool]] = {
    "fails": lambda result: bool(result.findings),
    "passes": lambda result: result.status is Status.PASSED,
    "skips": lambda result: bool(result.skipped),
}


@pytest.fixture(scope="session")
def run_check() -> RunCheck:
    """Runs a registered check as preflight does; a call that its card does not list is an error of the test."""

    def run_named(name: str | Check, case: Case, aws: Aws) -> Result:
        result = run.run_check(REGISTER[name] if isinstance(name, str) else name, case, aws)
        _ran.append(result)
        return result

    return run_named


@pytest.fixture(scope="module", autouse=True)
def shown(request: pytest.FixtureRequest) -> Iterator[dict[tuple[str, str], bool]]:
    """What the tests of a module are marked for (``check(name, case)``) must have happened in one of them."""
    cases: dict[tuple[str, str], bool] = {}
    yield cases
    chosen = request.config.option.keyword or any("::" in argument for argument in request.config.args)
    assert chosen or all(cases.values()), (
        f"marked and not shown: {[case for case, shown in cases.items() if not shown]}"
    )


@pytest.fixture(autouse=True)
def _looks_at_what_ran(request: pytest.FixtureRequest, shown: dict[tuple[str, str], bool]) -> Iterator[None]:
    _ran.clear()
    yield
    for mark in request.node.iter_markers("check"):
        name, case = mark.args
        happened = any(_SHOWS[case](result) for result in _ran if result.check.name == name)
        shown[name, case] = shown.get((name, case), False) or happened


def _changed(text: str, changes: Mapping[str, Any]) -> str:
    data = copy.deepcopy(_read(text))
    for path, value in changes.items():
        _set(data, path, value)
    written: str = yaml.dump(data, Dumper=yaml.CSafeDumper, sort_keys=False)
    return written


@cache
def _read(text: str) -> Any:
    return yaml.load(text, yaml.CSafeLoader)


def _set(data: Any, path: str, value: object) -> None:
    steps = parse_path(path)
    assert steps, f"{path!r} is no path"
    for step in steps[:-1]:
        data = data.setdefault(step, {}) if isinstance(data, dict) else data[step]
    last: Any = steps[-1]
    if isinstance(value, EllipsisType):
        del data[last]
    elif isinstance(data, list) and last == len(data):
        data.append(value)
    else:
        data[last] = value
