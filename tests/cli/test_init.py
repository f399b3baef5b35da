"""`hyperpod-cdk init`: a first file that passes, from flags alone."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

from hyperpod_cdk import cli
from hyperpod_cdk._cli.scaffold import (
    Answers,
    ScaffoldError,
    checked_text,
    default_zones,
    environment_text,
    write_environment,
)
from hyperpod_cdk.catalog import regions
from hyperpod_cdk.config import load_environment
from tests.support.answers import answered
from tests.support.tables import row_by_row

Run = Callable[..., subprocess.CompletedProcess[str]]
ACCOUNT = "111122223333"
PLAN = f"arn:aws:sagemaker:us-east-1:{ACCOUNT}:training-plan/h100-april"


def test_smallest(run: Run, run_process: Run, workspace: Path) -> None:
    (workspace / "cdk.json").write_text("{}", encoding="utf-8")
    done = run_process("init", "lab", "--region", "us-east-1", "--account", ACCOUNT)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "wrote environments/lab.yaml",
        "next: read it, then 'hyperpod-cdk validate lab' and 'hyperpod-cdk rehearse lab';",
        "      for a real deployment 'hyperpod-cdk charts pull', and once for each account and region",
        "      'hyperpod-cdk bootstrap-policy lab --out policy.json', which shows how to bootstrap;",
        "      then 'hyperpod-cdk preflight lab', 'hyperpod-cdk review lab --deployed' and 'hyperpod-cdk deploy lab'",
    ]
    assert run("validate", "lab").returncode == 0
    # what the file's first line names is there
    assert (workspace / "environments" / "../schemas/environment.schema.json").is_file()


def test_a_folder_without_an_app(run: Run, workspace: Path) -> None:
    done = run("init", "lab", "--region", "us-east-1", "--account", ACCOUNT)
    then = "'hyperpod-cdk rehearse lab'"
    said = f"{workspace} has neither cdk.json nor app.py, so the CDK has nothing to run; 'hyperpod-cdk new DIR' creates"
    assert done.stdout.splitlines() == [
        "wrote environments/lab.yaml",
        f"next: {said} a project;",
        f"      move the file into the project's environments/, then run 'hyperpod-cdk validate lab' and {then}",
    ]
    rehearsed = run("rehearse", "lab")
    assert (rehearsed.returncode, rehearsed.stdout) == (2, "")
    assert rehearsed.stderr.splitlines()[-1] == f"{said} a project"


def test_full(run: Run, workspace: Path) -> None:
    done = run(
        *("init", "lab", "--region", "us-east-1", "--account", ACCOUNT, "--zone", "use1-az5", "--zone", "use1-az4"),
        *("--instance-type", "ml.p5.48xlarge", "--count", "4", "--capacity", "training_plan"),
        *("--training-plan-arn", PLAN, "--team", "research", "--lustre", "--format", "json"),
    )
    assert done.returncode == 0
    told = answered("init", done.stdout)
    assert told["next"] == [
        "hyperpod-cdk validate lab",
        "hyperpod-cdk rehearse lab",
        "hyperpod-cdk charts pull",
        "hyperpod-cdk bootstrap-policy lab --out policy.json",
        "hyperpod-cdk preflight lab",
        "hyperpod-cdk review lab --deployed",
        "hyperpod-cdk deploy lab",
    ]
    environment = load_environment(workspace / "environments" / "lab.yaml").environment
    system, workers = environment.hyperpod.instance_groups
    assert (system.availability_zone_id, workers.availability_zone_id) == ("use1-az4", "use1-az5")
    assert (workers.count, workers.capacity, workers.training_plan_arn) == (4, "training_plan", PLAN)
    assert workers.deep_health_checks == ("instance_stress", "instance_connectivity")
    assert environment.task_governance is not None
    assert environment.task_governance.teams[0].quota[0].count == 4
    claim = environment.storage.lustre[0].claim
    assert claim is not None
    assert claim.namespaces == ("hyperpod-ns-research",)


def test_administrators(run: Run, workspace: Path) -> None:
    roles = [f"arn:aws:iam::{ACCOUNT}:role/{name}" for name in ("platform-admin", "ops/on-call")]
    done = run(
        *("init", "lab", "--region", "us-east-1", "--account", ACCOUNT),
        *(word for role in roles for word in ("--admin-role", role)),
    )
    assert done.returncode == 0
    loaded = load_environment(workspace / "environments" / "lab.yaml")
    assert loaded.environment.eks.admin_role_arns == tuple(roles)
    assert "somebody_administers_the_cluster" not in {warning.rule for warning in loaded.warnings}


def test_a_session_is_no_administrator(run: Run, workspace: Path) -> None:
    session = f"arn:aws:sts::{ACCOUNT}:assumed-role/platform-admin/alice"
    done = run("init", "lab", "--region", "us-east-1", "--account", ACCOUNT, "--admin-role", session)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"--admin-role (eks.admin_role_arns[0]): must be the ARN of an IAM role, got the session {session}, which ends"
        f" with its login; give --admin-role arn:aws:iam::{ACCOUNT}:role/platform-admin "
        "(with the role's path, if it has one)\n"
    )
    assert not (workspace / "environments" / "lab.yaml").exists()


class Typed(io.StringIO):
    """A terminal at which this is typed, and then Ctrl-D."""

    def isatty(self) -> bool:
        return True


def test_a_wrong_answer_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "environments").mkdir()
    answers = ["us-esat-1", "", "us-east-1", "1", f" {ACCOUNT} ", "me", f"arn:aws:iam::{ACCOUNT}:role/me"]
    monkeypatch.setattr(sys, "stdin", Typed("\n".join([*answers, ""])))
    cli.init("lab", project=tmp_path)
    environment = load_environment(tmp_path / "environments" / "lab.yaml").environment
    assert (environment.region, environment.account) == ("us-east-1", ACCOUNT)
    assert environment.eks.admin_role_arns == (f"arn:aws:iam::{ACCOUNT}:role/me",)
    assert re.findall(r"Error: .*", capsys.readouterr().err) == [
        f'Error: must be an AWS region known on {regions.AS_OF}, got "us-esat-1"; did you mean us-east-1?',
        'Error: must be the 12 digits of an AWS account, got "1"; an example is "111122223333"',
        (
            'Error: must be the ARN of an IAM role, got "me"; name the role that people assume, such as'
            " arn:aws:iam::111122223333:role/platform-admin"
        ),
    ]


@pytest.mark.parametrize(
    ("typed", "missing"), [("", "--region"), ("us-east-1\n", "--account"), (f"us-east-1\n{ACCOUNT}\n", "--admin-role")]
)
def test_who_answers_no_more_gets_no_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], typed: str, missing: str
) -> None:
    (tmp_path / "environments").mkdir()
    monkeypatch.setattr(sys, "stdin", Typed(typed))
    with pytest.raises(typer.Exit) as ended:
        cli.init("lab", project=tmp_path)
    said = f"\n{missing} is missing and was not answered, so nothing was written; give {missing}\n"
    assert (ended.value.exit_code, capsys.readouterr().err.endswith(said)) == (2, True)
    assert list((tmp_path / "environments").iterdir()) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("init", "on"), None),
        (("init", "a\nb"), "'a\\nb': must not contain a line break"),
        (("init", "a: b"), "NAME: must be 1 to 16 lower-case letters"),
        (("init", "lab", "--team", 'a"#'), "--team (task_governance.teams[0].name): must be 1 to 40"),
        (("new", "demo", "--name", "a: b"), "--name: must be 1 to 16 lower-case letters"),
        (("new", "demo", "--name", "off"), None),
    ],
)
def test_no_answer_is_read_as_yaml(run: Run, workspace: Path, words: tuple[str, ...], said: str | None) -> None:
    done = run(*words, "--region", "us-east-1", "--account", ACCOUNT)
    if said is None:
        assert (done.returncode, done.stderr) == (0, "")
        (written,) = {*workspace.rglob("on.yaml"), *workspace.rglob("off.yaml")}
        assert load_environment(written).environment.name == words[-1]
    else:
        assert (done.returncode, done.stderr.startswith(said)) == (2, True), done.stderr


@pytest.mark.parametrize(
    ("terminal", "typed", "expected"),
    [
        (True, f"arn:aws:iam::{ACCOUNT}:role/me\n", (f"arn:aws:iam::{ACCOUNT}:role/me",)),
        (True, "\n", ()),
        (False, "", ()),
    ],
    ids=["named", "nobody yet", "no terminal"],
)
def test_a_terminal_is_asked_who_administers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, terminal: bool, typed: str, expected: tuple[str, ...]
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return terminal

    (tmp_path / "environments").mkdir()
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    cli.init("lab", region="us-east-1", account=ACCOUNT, project=tmp_path)
    loaded = load_environment(tmp_path / "environments" / "lab.yaml")
    assert loaded.environment.eks.admin_role_arns == expected


def test_never_overwrites(run: Run, workspace: Path) -> None:
    path = workspace / "environments" / "dev.yaml"
    before = path.read_text(encoding="utf-8")
    done = run("init", "dev", "--region", "us-east-1", "--account", ACCOUNT)
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr == "environments/dev.yaml exists and is never overwritten; choose another name or edit the file\n"
    )
    assert path.read_text(encoding="utf-8") == before


def test_wrong_answers_write_nothing(run: Run, workspace: Path) -> None:
    done = run(
        *("init", "lab", "--region", "us-east-1", "--account", "1111"),
        *("--instance-type", "ml.p5.48xlarge", "--team", "Research"),
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        (
            '--account (account): must be the 12 digits of an AWS account, got "1111"; correct --account, which must'
            ' look like "111122223333"'
        ),
        (
            "--capacity (hyperpod.instance_groups[1].capacity): must say where ml.p5.48xlarge comes from (on_demand,"
            " spot or training_plan), because on-demand capacity of accelerated types is scarce; give"
            " --capacity training_plan with --training-plan-arn"
        ),
        (
            "--team (task_governance.teams[0].name): must be 1 to 40 lower-case letters, digits and hyphens, beginning"
            ' and ending with a letter or digit, got "Research"; give --team research'
        ),
    ]
    assert not (workspace / "environments" / "lab.yaml").exists()


FIRST_ZONE = (
    "must be an availability zone ID of us-east-1 (use1-az...), got usw2-az2 of us-west-2; write one of us-east-1, or"
    " give --region us-west-2"
)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("--team", "Bad_Team", "--lustre"),
            (
                (
                    "--team (task_governance.teams[0].name): must be 1 to 40 lower-case letters, digits and hyphens,"
                    ' beginning and ending with a letter or digit, got "Bad_Team"; give --team bad-team'
                ),
            ),
        ),
        (
            ("--zone", "usw2-az2"),
            (
                "--zone (network.availability_zones): must hold at least 2 availability zones, got 1; add 1",
                f"--zone (network.availability_zones.usw2-az2): {FIRST_ZONE}",
            ),
        ),
        (
            ("--instance-type", "ml.m5.2xlarge", "--training-plan-arn", PLAN),
            (
                (
                    "--training-plan-arn (hyperpod.instance_groups[1].training_plan_arn): needs"
                    " --capacity training_plan, got no capacity; leave out --training-plan-arn"
                ),
            ),
        ),
        (
            ("--instance-type", "ml.p5.48xlarge", "--capacity", "bogus"),
            (
                (
                    "--capacity (hyperpod.instance_groups[1].capacity): must be on_demand, spot or training_plan, got"
                    ' "bogus"; set --capacity to one of these'
                ),
            ),
        ),
    ],
)
def test_a_wrong_answer_is_reported_once_and_by_its_options(
    run: Run, workspace: Path, arguments: tuple[str, ...], said: tuple[str, ...]
) -> None:
    done = run("init", "lab", "--region", "us-east-1", "--account", ACCOUNT, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert tuple(done.stderr.splitlines()) == said
    assert not (workspace / "environments" / "lab.yaml").exists()


@row_by_row(
    "wrong, option, said",
    [
        (
            {"capacity": "training_plan", "training_plan_arn": PLAN},
            "capacity",
            "; give --capacity on_demand or spot, and leave out --training-plan-arn",
        ),
        (
            {"instance_type": "ml.p5.48xlarg"},
            "instance-type",
            'got "ml.p5.48xlarg"; did you mean ml.p5.48xlarge?',
        ),
        ({"instance_type": "x"}, "instance-type", 'got "x"; set --instance-type to one of the 209 known'),
        (
            {"instance_type": "ml.p5.48xlarge", "capacity": "training_plan"},
            "training-plan-arn",
            "and --capacity training_plan needs it; add the ARN that 'aws sagemaker list-training-plans' shows",
        ),
        (
            {"training_plan_arn": PLAN, "capacity": "spot"},
            "training-plan-arn",
            "got --capacity spot; leave out --training-plan-arn",
        ),
        ({"zones": ("use1-az4", "x")}, "zone", 'got "x"; correct --zone'),
        ({"zones": ("use1-az4", "us-east-1a")}, "zone", "--region us-east-1' and set --zone to it"),
        ({"count": 0, "team": "research"}, "count", "must be at least 1, got 0; give --count 1 or more"),
        ({"count": -1, "team": "research"}, "count", "must be at least 0, got -1; give --count 0 or more"),
        ({"instance_type": "ml.p5.48xlarge", "count": 900}, "zone", "or lower --count to 808"),
    ],
)
def test_a_file_that_is_not_there_yet_is_not_to_be_edited(
    workspace: Path, wrong: dict[str, Any], option: str, said: str
) -> None:
    answers = {"instance_type": "ml.g5.8xlarge", "capacity": "on_demand", **wrong}
    with pytest.raises(ScaffoldError) as refusal:
        checked_text(Answers(name="lab", account=ACCOUNT, region="us-east-1", **answers), workspace)
    (line,) = str(refusal.value).splitlines()
    assert line.startswith(f"--{option} (")
    assert line.endswith(said)


@pytest.mark.parametrize(
    "arguments",
    [
        ["init"],
        ["init", "../lab", "--region", "us-east-1", "--account", ACCOUNT],
        ["init", "lab", "--region", "mars", "--account", ACCOUNT],
        ["init", "lab", "--region", "us-east-1", "--account", ACCOUNT, "--count", "many"],
        ["init", "lab", "--region", 'us"\n', "--account", ACCOUNT],
        ["init", "lab", "--region", "us-east-1", "--account", '1"2'],
    ],
)
def test_usage_is_exit_code_2_without_traceback(run: Run, workspace: Path, arguments: list[str]) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert [path.name for path in (workspace / "environments").iterdir()] == ["dev.yaml"]


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (["--count", "4"], "--count"),
        (["--capacity", "training_plan", "--training-plan-arn", "x"], "--capacity and --training-plan-arn"),
    ],
)
def test_workers_are_asked_for_by_their_type(run: Run, workspace: Path, arguments: list[str], options: str) -> None:
    result = run("init", "g", "--region", "us-east-1", "--account", "111122223333", *arguments)
    assert result.returncode == 2
    assert result.stderr == (
        f"{options}: only for a worker group, which is not requested; add --instance-type, such as ml.p5.48xlarge\n"
    )
    assert not (workspace / "environments" / "g.yaml").exists()


def test_an_unknown_region_is_one_mistake_and_a_warning_is_none(run: Run) -> None:
    done = run("init", "lab", "--region", "us-west-9", "--account", ACCOUNT)
    said = (
        f'--region (region): must be an AWS region known on {regions.AS_OF}, got "us-west-9"; did you mean us-west-1?\n'
    )
    assert (done.returncode, done.stderr) == (2, said)


@pytest.mark.parametrize("region", regions.HYPERPOD_REGIONS)
def test_every_region_has_a_first_file(tmp_path: Path, region: str) -> None:
    answers = Answers(name="lab", account=ACCOUNT, region=region)
    loaded = load_environment(write_environment(answers, tmp_path))
    assert loaded.environment.region == region
    assert len(default_zones(region)) == 2


def test_ultraservers_are_where_they_stand(run: Run, workspace: Path) -> None:
    plan = f"arn:aws:sagemaker:us-east-1:{ACCOUNT}:training-plan/gb200"
    done = run(
        *("init", "lab", "--region", "us-east-1", "--account", ACCOUNT, "--instance-type", "ml.p6e-gb200.36xlarge"),
        *("--count", "18", "--capacity", "training_plan", "--training-plan-arn", plan),
    )
    assert done.returncode == 0
    loaded = load_environment(workspace / "environments" / "lab.yaml")
    assert [each.availability_zone_id for each in loaded.environment.hyperpod.instance_groups] == [
        "use1-az2",
        "use1-dfw2-az1",
    ]
    opt_in = "use1-dfw2-az1 is a Local Zone, which the account must have opted in to; check it with"
    warned = [each.message for each in loaded.warnings if "zone" in each.message.lower()]
    assert warned == [f"{opt_in} 'aws ec2 describe-availability-zones'"]


def test_region_without_known_zones(tmp_path: Path) -> None:
    with pytest.raises(ScaffoldError, match=r"network\.availability_zones"):
        write_environment(Answers(name="lab", account=ACCOUNT, region="us-iso-east-1"), tmp_path)


def test_first_line_names_the_schema() -> None:
    text = environment_text(Answers(name="lab", account=ACCOUNT, region="us-east-1"))
    assert text.startswith("# yaml-language-server: $schema=../schemas/environment.schema.json\n")


def test_blocks_of_no_other_environment(run: Run, workspace: Path) -> None:
    for name in ("one", "two"):
        assert run("init", name, "--region", "us-east-1", "--account", ACCOUNT).returncode == 0
    done = run("validate", "one", "two")
    assert done.returncode == 0
    assert "overlaps" not in done.stdout
    blocks = [load_environment(workspace / "environments" / f"{name}.yaml").environment for name in ("one", "two")]
    assert [each.network.vpc_cidr for each in blocks] == ["10.193.0.0/16", "10.194.0.0/16"]
