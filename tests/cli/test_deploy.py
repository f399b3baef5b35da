"""``deploy`` as users run it, as far as its first answers; what it does then: tests/transitions."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from typer.testing import CliRunner, Result

from hyperpod_cdk import cli
from hyperpod_cdk._cli.common import synthesized
from hyperpod_cdk._cli.review import Access, open_aws
from hyperpod_cdk._cli.transitions import Deploying, _chart_is_missing
from hyperpod_cdk.checks.model import REGISTER
from hyperpod_cdk.config import load_environment
from hyperpod_cdk.config.extensions import activate
from hyperpod_cdk.review.model import Side
from hyperpod_cdk.review.sources import Source
from hyperpod_cdk.templates.assembly import Assembly, Stack
from hyperpod_cdk_rehearsal.account_files import satisfying
from tests.cli.test_plan import Nothing, write_assembly
from tests.support.embedded import Embedded, embedded


class NoCdk:
    """A CDK CLI that must not run."""

    def run(self, arguments: Any) -> None:
        raise AssertionError(f"nothing may be deployed: {arguments}")


@pytest.fixture
def head(workspace: Path, project: Path) -> Path:
    """An assembly of the environment dev, beside what preflight looks for in a project."""
    shutil.copytree(project / "lifecycle_scripts", workspace / "lifecycle_scripts")
    queue = {"Resources": {"It": {"Type": "AWS::SQS::Queue"}}}
    where = "aws://111122223333/us-west-2"
    return write_assembly(workspace / "cdk.out", {"foundation": queue, "storage": queue}, {}, where=where)


@pytest.fixture
def aws(workspace: Path, head: Path) -> Iterator[Embedded]:
    environment = load_environment(workspace / "environments" / "dev.yaml").environment
    assert head.is_dir()
    with embedded(satisfying(environment), region=environment.region, is_hurried=True) as there:
        yield there


def deploy(workspace: Path, *arguments: str, answers: str = "", **environment: str) -> Result:
    tools = Deploying(open=open_aws, cdk=lambda _: NoCdk())
    words = ["deploy", "dev", "--head", "cdk.out", *arguments]
    with chdir(workspace):
        return CliRunner(env=environment).invoke(
            cli.app, words, prog_name="hyperpod-cdk", obj=tools, input=answers, catch_exceptions=False
        )


def test_who_says_no_changes_nothing(workspace: Path, aws: Embedded) -> None:
    done = deploy(workspace, answers="n\n", **aws.environment())
    assert done.exit_code == 1, done.output
    assert "dev: 1 step. CloudFormation needs " in done.stdout
    assert done.stdout.splitlines()[-1] == "nothing was changed"


def test_no_answer_is_no(workspace: Path, aws: Embedded) -> None:
    done = deploy(workspace, **aws.environment())
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (1, "nothing was changed")


def test_preflight_comes_first_and_is_strict(workspace: Path, head: Path) -> None:
    assert head.is_dir()
    environment = load_environment(workspace / "environments" / "dev.yaml").environment
    faults = [{"service": "servicequotas", "kind": "access_denied"}]
    account = {**satisfying(environment), "faults": faults}
    with embedded(account, region=environment.region, is_hurried=True) as there:
        done = deploy(workspace, "--yes", **there.environment())
    assert done.exit_code == 1
    assert "skipped" in done.stdout
    assert "step 1" not in done.stdout
    last = done.stderr.splitlines()[-1]
    assert last.startswith("Nothing was deployed. To deploy without what could not be checked: --skip ")
    assert set(last.partition(": ")[2].split()[1::2]) <= {each.name for each in REGISTER}


def test_what_an_extension_adds_is_judged_by_the_templates(
    workspace: Path, aws: Embedded, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.syspath_prepend(workspace)
    (workspace / "ours_of_deploy.py").write_text(
        "from hyperpod_cdk.config import Extension\nOURS = Extension(constructs=lambda stage, section: None)\n", "utf-8"
    )
    with (workspace / "pyproject.toml").open("a", encoding="utf-8") as stream:
        stream.write('\n[tool.hyperpod-cdk.extensions]\nours = "ours_of_deploy:OURS"\n')
    try:
        # nobody knows the actions of a queue
        done = deploy(workspace, answers="n\n", **aws.environment())
        said = "the actions that CloudFormation needs for AWS::SQS::Queue are unknown"
        assert (done.exit_code, said in done.stdout) == (1, True), done.output
        logs = {"Resources": {"It": {"Type": "AWS::Logs::LogGroup"}}}
        shutil.rmtree(workspace / "cdk.out")
        write_assembly(
            workspace / "cdk.out", {"foundation": logs, "storage": logs}, {}, where="aws://111122223333/us-west-2"
        )
        with patch("hyperpod_cdk._cli.transitions.synthesized", wraps=synthesized) as made:
            done = deploy(workspace, answers="n\n", **aws.environment())
        assert "dev: 1 step. CloudFormation needs " in done.stdout, done.output
        # what was judged is what is deployed
        assert made.call_count == 1
    finally:
        activate(tmp_path_factory.mktemp("none"))


def test_preflight_reads_the_types_of_an_assembly(workspace: Path, head: Path) -> None:
    with chdir(workspace):
        words = ["preflight", "dev", "--offline", "--only", "account", "--head"]
        assert CliRunner().invoke(cli.app, [*words, str(head)]).exit_code == 0
        done = CliRunner().invoke(cli.app, [*words, "environments"])
    assert done.exit_code == 2
    assert done.stderr.startswith("environments: not a cloud assembly")


def test_a_missing_assembly_and_an_unknown_check(workspace: Path) -> None:
    obj = Access(open=lambda *_: Nothing())
    with chdir(workspace):
        for words, said in (
            (
                ["--head", "nowhere"],
                "--head: folder nowhere does not exist; it must be a cloud assembly that 'cdk synth --output' wrote",
            ),
            (["--skip", "nonsense"], "--skip: "),
        ):
            done = CliRunner().invoke(cli.app, ["deploy", "dev", *words], prog_name="hyperpod-cdk", obj=obj)
            assert done.exit_code == 2
            assert done.stderr.startswith(said)


def test_a_chart_that_is_missing_is_known_by_its_rule_and_not_by_words() -> None:
    def rules(name: str, said: str) -> Assembly:
        rule = {"Assertions": [{"Assert": {}, "AssertDescription": said}]}
        return Assembly(environment="", stacks=(Stack(name="dev", template={"Resources": {}, "Rules": {name: rule}}),))

    ours = Source(assembly=rules("HyperPodChartIsPulled", "no chart"), side=Side(label="head"))
    others = Source(assembly=rules("Ours", "after 'hyperpod-cdk charts pull' comes this"), side=Side(label="head"))
    assert [list(_chart_is_missing(each)) for each in (ours, others)] == [["dev: no chart"], []]
