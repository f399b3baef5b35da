"""``destroy`` as users run it, as far as its answers without an AWS; what it deletes: tests/transitions."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from hyperpod_cdk import cli
from hyperpod_cdk._cli.review import Access
from tests.cli.test_plan import Nothing, write_assembly
from tests.support.answers import answered

QUEUE = {"Resources": {"It": {"Type": "AWS::SQS::Queue"}}}


class Standing(Nothing):
    """An AWS in which one stack stands, and nothing may be changed."""

    def pages(self, service: str, operation: str, key: str, **_: Any) -> list[Any]:
        assert (service, operation, key) == ("cloudformation", "describe_stacks", "Stacks")
        return [{"StackName": "dev-storage", "StackId": "arn:aws:x:y:us-east-1:1:z", "StackStatus": "DELETE_FAILED"}]

    def call(self, service: str, operation: str, **_: Any) -> Any:
        assert (service, operation) == ("cloudformation", "get_template")
        return {"TemplateBody": QUEUE}


@pytest.fixture
def head(tmp_path: Path) -> Path:
    return write_assembly(tmp_path / "cdk.out", {"storage": QUEUE}, {})


def _run(head: Path, *arguments: str, aws: Any, answers: str = "") -> Result:
    obj = Access(open=lambda *_: aws)
    words = ["destroy", "dev", "--head", str(head), *arguments]
    return CliRunner().invoke(cli.app, words, prog_name="hyperpod-cdk", obj=obj, input=answers)


def test_nothing_is_deployed(head: Path) -> None:
    done = _run(head, aws=Nothing())
    assert (done.exit_code, done.stdout.splitlines()[0]) == (0, "dev: Nothing is deployed.")


def test_a_plan_reports_and_changes_nothing(head: Path) -> None:
    done = _run(head, "--plan", aws=Standing())
    assert done.exit_code == 0, done.output
    assert "  loses: dev-storage / It: " in done.stdout
    told = answered("plan", _run(head, "--plan", "--format", "json", aws=Standing()).stdout)
    assert [(each["action"], each["stacks"]) for each in told["steps"]] == [("delete", ["dev-storage"])]


@dataclass
class Recorded(Standing):
    """Likewise, with an export, and a record of each call."""

    calls: list[tuple[str, str]] = field(default_factory=list)

    def pages(self, service: str, operation: str, key: str, **more: Any) -> list[Any]:
        self.calls.append((service, operation))
        return [] if operation == "list_imports" else super().pages(service, operation, key, **more)

    def call(self, service: str, operation: str, **more: Any) -> Any:
        self.calls.append((service, operation))
        super().call(service, operation, **more)
        return {"TemplateBody": {**QUEUE, "Outputs": {"O": {"Value": {"Ref": "It"}, "Export": {"Name": "it"}}}}}

    def send(self, service: str, operation: str, **_: Any) -> Any:
        self.calls.append((service, operation))
        return {}


@pytest.mark.parametrize("arguments", [[], ["--format", "json"]])
def test_a_plan_makes_no_call_but_these(head: Path, arguments: list[str]) -> None:
    aws = Recorded()
    assert _run(head, "--plan", *arguments, aws=aws, answers="dev\ndev\n").exit_code == 0
    assert aws.calls == [
        ("cloudformation", "describe_stacks"),
        ("cloudformation", "get_template"),
        ("cloudformation", "list_imports"),
    ]


@pytest.mark.parametrize(
    "answers",
    [
        *(
            "",
            "\n",
            "y\n",
            "dev-storage\n",
            "DEV\n",
            "Dev\n",
            " dev\n",
            "dev \n",
            "dev\t\n",
            '"dev"\n',
            "devdev\n",
            "de\nv\n",
        ),
        # a Cyrillic e, a full-width d, letters that take no room, another order of writing
        *("d\u0435v\n", "\uff44ev\n", "de\u200bv\n", "\ufeffdev\n", "\u202edev\n", "d\u0065\u0301v\n"),
    ],
)
def test_nothing_goes_without_the_name(answers: str, head: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hyperpod_cdk._cli.transitions.is_terminal", lambda: True)
    done = _run(head, aws=Standing(), answers=answers)
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (1, "nothing was changed")


def test_the_name_is_not_taken_from_a_pipe(head: Path) -> None:
    done = _run(head, aws=Standing(), answers="dev\n")
    assert (done.exit_code, done.stdout.splitlines()[-2:]) == (
        1,
        [
            "Type dev to destroy it: this must be typed on a terminal, and standard input is not a terminal",
            "nothing was changed",
        ],
    )


def test_json_is_for_a_plan(head: Path) -> None:
    done = _run(head, "--format", "json", aws=Nothing())
    assert (done.exit_code, done.stderr) == (2, "--format json is for --plan\n")
