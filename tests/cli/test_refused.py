"""Refusals of commands that make changes, in one line: another account, stacks of other code, an outdated plan."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from hyperpod_cdk import cli
from hyperpod_cdk._cli.review import open_aws
from hyperpod_cdk._cli.transitions import Deploying
from hyperpod_cdk.checks.model import REGISTER
from tests.cli.test_deploy import NoCdk
from tests.cli.test_plan import write_assembly
from tests.support.embedded import Embedded, embedded

OURS = {"Resources": {"It": {"Type": "AWS::SQS::Queue"}}}
THEIRS = {"Resources": {"Site": {"Type": "AWS::SNS::Topic"}}}
REGION = "us-west-2"
ACCOUNT: dict[str, Any] = {}
SKIPPED = [f"--skip={area}" for area in REGISTER.areas() if area != "account"]
VERBS = {
    "plan": ["plan", "dev"],
    "deploy": ["deploy", "dev", *SKIPPED],
    "deploy --yes": ["deploy", "dev", "--yes", *SKIPPED],
    "destroy": ["destroy", "dev"],
    "recover": ["recover", "dev"],
    "recover --yes": ["recover", "dev", "--yes"],
}


@pytest.fixture
def head(workspace: Path) -> Path:
    where = f"aws://111122223333/{REGION}"
    return write_assembly(workspace / "cdk.out", {"foundation": OURS, "storage": OURS}, {}, where=where)


def run(
    words: list[str],
    head: Path,
    there: Embedded,
    answers: str = "y\ndev\n",
    opens: Callable[[str, str], Any] = open_aws,
) -> Result:
    tools = Deploying(open=opens, cdk=lambda _: NoCdk())
    words = [*words, "--head", str(head), "--project", str(head.parent)]
    return CliRunner(env=there.environment()).invoke(
        cli.app, words, prog_name="hyperpod-cdk", obj=tools, input=answers, catch_exceptions=False
    )


def made(there: Embedded, name: str, body: dict[str, Any]) -> None:
    there.client("cloudformation").create_stack(StackName=name, TemplateBody=json.dumps(body))
    there.client("cloudformation").get_waiter("stack_create_complete").wait(
        StackName=name, WaiterConfig={"Delay": 0.1, "MaxAttempts": 100}
    )


def hidden(seconds: int) -> dict[str, Any]:
    return {"Resources": {"It": {"Type": "AWS::SQS::Queue", "Properties": {"VisibilityTimeout": seconds}}}}


def stands(there: Embedded) -> list[tuple[str, str, str]]:
    found = there.client("cloudformation").describe_stacks()["Stacks"]
    return [(each["StackName"], each["StackStatus"], str(each.get("LastUpdatedTime"))) for each in found]


@pytest.mark.parametrize("verb", VERBS)
def test_another_account(verb: str, head: Path) -> None:
    with embedded({}, region=REGION, account="999988887777") as there:
        made(there, "dev-storage", OURS)
        before = stands(there)
        done = run(VERBS[verb], head, there)
        assert (done.exit_code, stands(there)) == (2, before), done.output
        (said,) = done.output.strip().splitlines()
        assert "999988887777" in said
        assert "111122223333" in said


@pytest.mark.parametrize("verb", VERBS)
def test_stacks_of_other_code(verb: str, head: Path) -> None:
    with embedded(ACCOUNT, region=REGION, is_hurried=True) as there:
        made(there, "dev-storage", THEIRS)
        before = stands(there)
        done = run(VERBS[verb], head, there)
        assert (done.exit_code, stands(there)) == (1, before), done.output
        digest = hashlib.sha256(json.dumps(THEIRS, sort_keys=True).encode()).hexdigest()
        (line,) = [each for each in done.output.splitlines() if each.startswith("refused: ")]
        assert line == (
            "refused: dev-storage is deployed and has no resource in common with the stack of that name: it "
            f"belongs to somebody else, or to another app (SHA-256 of its template: {digest[:12]})."
        )


@dataclass
class Opening:
    """Opens AWS, and lets something happen before one of the times that it does."""

    happens: Callable[[], object]
    at: int = -1
    times: int = 0

    def __call__(self, region: str, account: str) -> Any:
        self.times += 1
        if self.times == self.at:
            self.happens()
        return open_aws(region, account)


def test_a_plan_that_is_stale_once_it_is_agreed_to(head: Path) -> None:
    with embedded(ACCOUNT, region=REGION, is_hurried=True) as there:
        made(there, "dev-storage", hidden(30))
        changed = hidden(60)

        def deployed_by_another() -> None:
            cloudformation = there.client("cloudformation")
            cloudformation.update_stack(StackName="dev-storage", TemplateBody=json.dumps(changed))
            cloudformation.get_waiter("stack_update_complete").wait(
                StackName="dev-storage", WaiterConfig={"Delay": 0.1, "MaxAttempts": 100}
            )

        # before anybody agrees AWS is opened as often as where nobody does
        refused = Opening(deployed_by_another)
        assert run(VERBS["deploy"], head, there, "n\n", refused).exit_code == 1
        done = run(VERBS["deploy"], head, there, "y\ndev\n", Opening(deployed_by_another, at=refused.times + 1))
        assert done.exit_code == 1
        assert done.output.splitlines()[-1] == (
            "dev-storage changed since the plan was shown; nothing was changed. Deploy again to see the plan from "
            "there."
        )
        (body,) = [there.client("cloudformation").get_template(StackName="dev-storage")["TemplateBody"]]
        assert body == changed
