"""`hyperpod-cdk new`: a project of a dozen files that needs nothing of this repository."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest
import yaml

from hyperpod_cdk._cli.scaffold import write_all
from hyperpod_cdk.catalog import regions
from hyperpod_cdk.config import environment_schema, load_environment
from hyperpod_cdk.review.review_file import ReviewRules
from tests.support.answers import answered
from tests.support.command_lines import GROUP

Run = Callable[..., subprocess.CompletedProcess[str]]
ALWAYS = {
    *("app.py", "cdk.json", "pyproject.toml", "review.yaml", "README.md", ".gitignore"),
    *("environments/prod.yaml", "schemas/environment.schema.json"),
}
GITHUB = {
    ".ci/post_review.py",
    ".ci/deployed_tool.py",
    *(f".github/workflows/{name}.yaml" for name in ("review", "deploy", "deploy-environment")),
}
GITLAB = {".ci/post_review.py", ".ci/deployed_tool.py", ".gitlab-ci.yml"}
NOT_EMPTY = (
    "DIR: full is not empty (it contains note), and nothing is overwritten; choose a folder that is empty or does not"
    " exist, or add an environment to a project with 'hyperpod-cdk init NAME'"
)
NO_NAME = (
    "DIR: the last part is the project's name: letters, digits and single . _ - between them, got {}; choose a name"
    " such as demo"
)
NO_ACCOUNT = (
    '--account (account): must be the 12 digits of an AWS account, got "1"; correct --account, which must look like'
    ' "111122223333"'
)
WORKFLOWS = sorted(name for name in GITHUB if name.endswith(".yaml"))
JUDGES = {
    "github": (
        ("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *WORKFLOWS),
        ("zizmor", "--offline", "--no-progress", "--quiet", "--config", "zizmor.yml", ".github/workflows"),
    ),
    "gitlab": (
        ("check-jsonschema", "--builtin-schema", "vendor.gitlab-ci", "--data-transform", "gitlab-ci", ".gitlab-ci.yml"),
    ),
}


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("words", "more"), [((), set()), (("--with", "github"), GITHUB), (("--with", "gitlab"), GITLAB)]
)
def test_at_most_twelve_files(run: Run, workspace: Path, words: tuple[str, ...], more: set[str]) -> None:
    done = run("new", "demo", *words)
    assert (done.returncode, done.stderr) == (0, "")
    made = files(workspace / "demo")
    assert made == ALWAYS | more
    subprocess.run(["git", "init", "-q"], cwd=workspace / "demo", check=True)  # noqa: S607 - git is where PATH has it
    listed = subprocess.run(
        ["git", "ls-files", "--others", "--exclude-standard"],  # noqa: S607 - as above
        cwd=workspace / "demo",
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    # the schema is made, and made anew where an extension adds a section: the repository does not keep it
    assert set(listed) == made - {"schemas/environment.schema.json"}
    assert len(listed) <= 12
    assert done.stdout.splitlines() == [
        *(f"wrote demo/{name}" for name in sorted(made)),
        "next: cd demo && hyperpod-cdk validate prod && hyperpod-cdk rehearse prod",
        "      README.md there describes how to deploy it",
    ]


def test_the_sample_is_the_readmes(run: Run, workspace: Path, project: Path) -> None:
    run("new", "demo")
    (block,) = re.findall(
        r"```yaml\n# environments/prod\.yaml\n(.*?)```", (project / "README.md").read_text("utf-8"), re.DOTALL
    )
    text = (workspace / "demo" / "environments" / "prod.yaml").read_text(encoding="utf-8")
    assert text == "# yaml-language-server: $schema=../schemas/environment.schema.json\n" + block
    done = run("validate", cwd=workspace / "demo")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "environments/prod.yaml: ok, 2 warnings")


def test_what_the_files_hold(run: Run, workspace: Path, project: Path) -> None:
    run("new", "demo", "--name", "dev")
    demo = workspace / "demo"
    # what is shipped is what is tested here
    assert (demo / "app.py").read_bytes() == (project / "app.py").read_bytes()
    ours = json.loads((project / "cdk.json").read_text(encoding="utf-8"))
    assert json.loads((demo / "cdk.json").read_text(encoding="utf-8")) == {**ours, "app": "python app.py"}
    package = tomllib.loads((demo / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert package["name"] == "demo"
    assert package["dependencies"] == [f"hyperpod-cdk[rehearsal]=={metadata.version('hyperpod-cdk')}"]
    assert (
        json.loads((demo / "schemas" / "environment.schema.json").read_text(encoding="utf-8")) == environment_schema()
    )
    ReviewRules.model_validate(yaml.safe_load((demo / "review.yaml").read_text(encoding="utf-8")))
    readme = (demo / "README.md").read_text(encoding="utf-8")
    assert "{{" not in readme
    assert "hyperpod-cdk rehearse dev " in readme
    assert load_environment(demo / "environments" / "dev.yaml").environment.name == "dev"


def test_what_a_person_answers(run: Run, workspace: Path) -> None:
    done = run(
        *("new", "demo", "--account", "123456789012", "--region", "eu-north-1", "--instance-type", "ml.g5.12xlarge"),
        *("--capacity", "on_demand", "--admin-role", "arn:aws:iam::123456789012:role/me", "--format", "json"),
    )
    told = answered("new", done.stdout)
    assert told["next"] == [
        "cd demo",
        "hyperpod-cdk validate prod",
        "hyperpod-cdk rehearse prod",
    ]
    environment = load_environment(workspace / "demo" / "environments" / "prod.yaml").environment
    assert (environment.account, environment.region) == ("123456789012", "eu-north-1")
    assert [group.instance_type for group in environment.hyperpod.instance_groups] == [
        "ml.m5.2xlarge",
        "ml.g5.12xlarge",
    ]


def test_a_plan_says_where_it_is(run: Run, workspace: Path) -> None:
    plan = "arn:aws:sagemaker:us-west-2:123456789012:training-plan/h100-april"
    words = ("--instance-type", "ml.p5.48xlarge", "--capacity", "training_plan", "--training-plan-arn", plan)
    done = run("new", "demo", *words)
    assert (done.returncode, done.stderr) == (
        0,
        "account 123456789012 and region us-west-2: those of --training-plan-arn\n",
    )
    environment = load_environment(workspace / "demo" / "environments" / "prod.yaml").environment
    assert (environment.account, environment.region) == ("123456789012", "us-west-2")
    done = run("new", "other", *words, "--account", "123456789012", "--region", "us-east-1")
    assert (done.returncode, done.stderr) == (
        2,
        (
            "--training-plan-arn (hyperpod.instance_groups[1].training_plan_arn): must be a plan in us-east-1, got one"
            " in us-west-2; name a plan of us-east-1\n"
        ),
    )


def test_a_terminal_is_asked(workspace: Path) -> None:
    main, other = pty.openpty()
    started = subprocess.Popen(
        [sys.executable, "-c", "from hyperpod_cdk.cli import main; main()", "new", "demo"],
        cwd=workspace,
        stdin=other,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    os.close(other)
    os.write(main, b"123456789012\nus-west-2\n\n")
    _, said = started.communicate()
    os.close(main)
    assert started.returncode == 0, said.decode()
    assert re.findall(r"(\[\S+\]|ARN of the IAM role)", said.decode()) == [
        "[111122223333]",
        "[us-east-1]",
        "ARN of the IAM role",
    ]
    environment = load_environment(workspace / "demo" / "environments" / "prod.yaml").environment
    assert (environment.account, environment.region) == ("123456789012", "us-west-2")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["full"],
            NOT_EMPTY,
        ),
        (["full/note"], "DIR: full/note is a file and is never overwritten; choose a new folder"),
        *(
            (
                [name],
                NO_NAME.format(repr(shown)),
            )
            for name, shown in [
                ("my project", "my project"),
                ("/", ""),
                ("-x-/..x", "..x"),
                ("größe", "größe"),
            ]
        ),
        (
            ["Hyperpod_CDK"],
            "DIR: 'Hyperpod_CDK' is a package that the project needs; choose a name such as demo",
        ),
        (
            ["demo", "--account", "111122223333"],
            "--account and --region: specify both, or neither for the sample environment",
        ),
        (
            ["demo", "--account", "1", "--region", "us-east-1"],
            NO_ACCOUNT,
        ),
        (
            ["demo", "--account", "111122223333", "--region", "us-west-9"],
            (
                f'--region (region): must be an AWS region known on {regions.AS_OF}, got "us-west-9"; did you mean'
                " us-west-1?"
            ),
        ),
        (["demo", "--name", "../x"], "--name: must be a plain name such as prod, got '../x'"),
    ],
)
def test_refused(run: Run, workspace: Path, words: list[str], said: str) -> None:
    (workspace / "full").mkdir()
    (workspace / "full" / "note").touch()
    before = files(workspace)
    done = run("new", "--", *words[:1]) if len(words) == 1 else run("new", *words)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"{said}\n")
    assert files(workspace) == before


def test_an_empty_folder_is_taken_and_so_is_this_one(run: Run, tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    # a repository of a forge that was cloned and has no commit
    (tmp_path / "here" / ".git").mkdir()
    assert run("new", ".", cwd=tmp_path / "here").returncode == 0
    assert (
        tomllib.loads((tmp_path / "here" / "pyproject.toml").read_text(encoding="utf-8"))["project"]["name"] == "here"
    )


def test_nothing_half_made_is_left(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "taken").write_text("theirs", encoding="utf-8")
    before = files(tmp_path)
    unwritable = "\udcff"
    for last in (tmp_path / "new" / "b" / "c", tmp_path / "taken", tmp_path / "taken" / "below"):
        with pytest.raises((OSError, UnicodeEncodeError)):
            write_all({tmp_path / "new" / "a": "a", tmp_path / "there" / "a": "a", last: unwritable})
        assert files(tmp_path) == before
        assert sorted(each.name for each in tmp_path.iterdir()) == ["taken", "there"]
    assert (tmp_path / "taken").read_text(encoding="utf-8") == "theirs"


@pytest.mark.parametrize("forge", ["github", "gitlab"])
def test_the_pipelines_call_what_a_project_has(run: Run, workspace: Path, forge: str) -> None:
    run("new", "demo", "--with", forge, "--name", "dev")
    demo = workspace / "demo"
    pipelines = [demo / name for name in (GITHUB if forge == "github" else GITLAB) if name.endswith((".yaml", ".yml"))]
    text = "\n".join(path.read_text(encoding="utf-8") for path in pipelines)
    for ours in ("make ", "Makefile", ".venv/bin/cdk", "[prod]"):
        assert ours not in text
    assert "python3 -m venv .venv && .venv/bin/pip install" in text
    for call in re.findall(r"\.venv/bin/hyperpod-cdk (\S+)", text):
        assert call in GROUP.commands
    called = set(re.findall(r"(?<![\w/])(?:\./)?(\.(?:ci|github)/[\w./-]*\.\w+)", text))
    assert called >= {".ci/post_review.py", ".ci/deployed_tool.py"}
    assert [name for name in sorted(called) if not (demo / name).is_file()] == []
    if forge == "gitlab":
        assert "ENVIRONMENT: [dev]" in text


@pytest.mark.parametrize("forge", ["github", "gitlab"])
def test_the_pipelines_are_valid(run: Run, workspace: Path, project: Path, forge: str) -> None:
    run("new", "demo", "--with", forge)
    demo = workspace / "demo"
    # what this repository accepts of its own, with the reason
    shutil.copyfile(project / ".github" / "zizmor.yml", demo / "zizmor.yml")
    for tool, *arguments in JUDGES[forge]:
        command = [str(Path(sys.executable).parent / tool), *arguments]
        done = subprocess.run(command, cwd=demo, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
