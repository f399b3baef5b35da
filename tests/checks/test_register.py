"""Every check is registered, documented, and shown to fail, to pass and to be skipped."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hyperpod_cdk.checks.answers import QUESTIONS, Aws
from hyperpod_cdk.checks.model import MODULES, REGISTER, Check
from hyperpod_cdk.checks.policy import policy, question
from tests.support.tables import row_by_row

CHECKS = {check.name: check for check in REGISTER}
CASES = ("fails", "passes", "skips")


@pytest.fixture(scope="module")
def shown(project: Path) -> set[tuple[str, str]]:
    """Every (check, case) of a ``pytest.mark.check`` in these tests."""
    return {case for file in sorted((project / "tests" / "checks").rglob("test_*.py")) for case in _marks(file)}


def _marks(file: Path) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "check":
            values = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
            if "mark" in ast.unparse(node.func):
                name, case = values
                yield str(name), str(case)


def test_there_are_checks_of_every_area() -> None:
    assert len(CHECKS) > 30
    assert len(REGISTER.areas()) == len(MODULES)


def test_every_module_with_checks_is_registered(project: Path) -> None:
    files = (project / "constructs/hyperpod_cdk/checks").glob("*.py")
    assert {path.stem for path in files if "\n@check(" in path.read_text(encoding="utf-8")} == set(MODULES)


def test_names_are_unique_across_modules() -> None:
    assert len(CHECKS) == len(list(REGISTER))


@row_by_row("check", CHECKS.values(), ids=lambda check: check.name)
def test_card(check: Check) -> None:
    assert re.fullmatch(r"[a-z]+(_[a-z0-9]+){2,}", check.name), "a rule is a sentence"
    assert all(question(ask).actions for ask in check.asks)
    assert "usage" not in check.asks, "use is asked by kind, so that the card lists no more than is needed"
    for text in (check.inputs, check.passes, check.fails, check.skips, check.by_hand):
        assert text.strip()
        assert text == text.strip()
    assert "AWS" in check.skips or not check.asks or "answer" in check.skips or "IAM" in check.skips, check.skips


@row_by_row("check", CHECKS.values(), ids=lambda check: check.name)
def test_cases(check: Check, shown: set[tuple[str, str]]) -> None:
    wanted = {(check.name, case) for case in CASES if case != "skips" or check.asks}
    assert wanted <= shown


def test_marks_name_checks_that_exist(shown: set[tuple[str, str]]) -> None:
    assert {name for name, _ in shown} <= set(CHECKS)
    assert {case for _, case in shown} <= set(CASES)


def test_every_question_is_asked_by_a_check_or_a_verb(project: Path) -> None:
    asked = {ask.partition(":")[0] for check in CHECKS.values() for ask in check.asks}
    package = project / "constructs/hyperpod_cdk"
    files = [*package.glob("_cli/*.py"), package / "checks/plan_search.py"]
    verbs = "".join(path.read_text(encoding="utf-8") for path in files)
    assert {name for name in QUESTIONS if name not in asked and f".{name}(" not in verbs} == set()


def test_questions_are_those_of_the_protocol() -> None:
    assert set(QUESTIONS) == {name for name in vars(Aws) if not name.startswith("_")}


def test_page_and_policy_hold_every_check(project: Path) -> None:
    page = (project / "docs" / "checks.md").read_text(encoding="utf-8")
    assert re.findall(r"^`(\w+)`$", page, re.MULTILINE) == list(CHECKS)
    assert json.loads((project / "docs" / "preflight-policy.json").read_text(encoding="utf-8")) == policy(REGISTER)


def test_policy_only_reads() -> None:
    (statement,) = policy(REGISTER)["Statement"]
    reading = re.compile(r"(Get|List|Describe|Search|Head|Simulate)[A-Z]")
    assert [action for action in statement["Action"] if not reading.match(action.partition(":")[2])] == []


def test_policy_of_one_check_is_smaller() -> None:
    offline = [check for check in REGISTER if not check.asks]
    assert policy(offline)["Statement"][0]["Action"] == ["sts:GetCallerIdentity"]
