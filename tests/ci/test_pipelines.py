"""The pipelines of the repository use valid commands, and pin what they run."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hyperpod_cdk.transitions.cdk import CHANGE_SET
from hyperpod_cdk_rehearsal.driver import SIDE_BY_SIDE
from tests.support.command_lines import GROUP
from tests.support.fake_forge import Repository, Run, api

PROJECT = Path(__file__).parents[2]
WORKFLOWS = sorted((PROJECT / ".github" / "workflows").glob("*.yaml"))
GITLAB = PROJECT / ".gitlab-ci.yml"
PINNED = re.compile(r"[\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")


def test_every_action_is_pinned_by_commit_with_its_version_beside_it() -> None:
    used = [
        line.partition("uses:")[2].strip()
        for workflow in WORKFLOWS
        for line in workflow.read_text(encoding="utf-8").splitlines()
        if "uses:" in line
    ]

    assert len(used) > 10
    assert [each for each in used if not each.startswith("./") and not PINNED.fullmatch(each)] == []
    versions: dict[str, set[str]] = {}
    for each in used:
        action, _, pin = each.partition("@")
        versions.setdefault(action, set()).add(pin)
    assert [action for action, pins in versions.items() if len(pins) > 1] == []


@pytest.mark.parametrize("file", [*WORKFLOWS, GITLAB, PROJECT / "Makefile"], ids=lambda file: file.name)
def test_synthesis_names_the_stacks_whose_errors_fail_it(file: Path) -> None:
    """The CDK CLI looks at no stack of a stage that is not named (tests/rehearsal/test_isolation.py)."""
    calls = [line for line in file.read_text(encoding="utf-8").splitlines() if "/cdk synth" in line]
    assert [line for line in calls if '/cdk synth "**" ' not in line] == []
    assert calls or file.name not in {"review.yaml", "deploy-environment.yaml", ".gitlab-ci.yml", "Makefile"}


@pytest.mark.parametrize("file", [*WORKFLOWS, GITLAB], ids=lambda file: file.name)
def test_every_call_of_the_command_is_one_it_understands(file: Path) -> None:
    calls = list(_calls(yaml.safe_load(file.read_text(encoding="utf-8"))))
    for arguments in calls:
        command: Any = GROUP
        words = iter(arguments)
        while getattr(command, "commands", None):
            verb = next(words)
            assert verb in command.commands, f"{file.name}: no verb {verb}"
            command = command.commands[verb]
        known = {"--help", *(name for parameter in command.params for name in parameter.opts)}
        assert [each for each in words if each.startswith("--") and each not in known] == [], file.name
    assert calls or file.name in {"deploy.yaml", "verify.yaml", "release.yaml"}


def test_everybody_deploys_side_by_side_by_the_same_arguments() -> None:
    files = [PROJECT / ".github" / "workflows" / "deploy-environment.yaml", GITLAB]
    said = {
        file.name: re.findall(r"cdk deploy .*/\*['\"](?: -c env=\w+)? (--.*)", file.read_text(encoding="utf-8"))
        for file in files
    }
    wanted = " ".join((*SIDE_BY_SIDE, "--require-approval", "never"))
    # a pipeline deploys what was reviewed and nothing that a dependency names beside it
    alone = f"--exclusively {wanted}"
    assert said == {"deploy-environment.yaml": [alone], ".gitlab-ci.yml": [alone] * 2}
    # and no other deployment executes its change sets
    runs = {"deploy-environment.yaml": "$GITHUB_RUN_ID-$GITHUB_RUN_ATTEMPT", ".gitlab-ci.yml": "$CI_JOB_ID"}
    for file in files:
        named = rf'{alone}\n *--change-set-name "{CHANGE_SET}-{re.escape(runs[file.name])}"'
        assert len(re.findall(named, file.read_text(encoding="utf-8"))) == len(said[file.name])
    page = (PROJECT / "docs" / "lifecycle-of-an-environment.md").read_text(encoding="utf-8")
    assert f"`'prod/*' -c env=prod {wanted}`" in page
    # where it would be read by nobody
    assert "concurrency" not in (PROJECT / "cdk.json").read_text(encoding="utf-8")


def test_gitlab_knows_every_environment() -> None:
    pipeline = yaml.safe_load(GITLAB.read_text(encoding="utf-8"))
    named = pipeline[".environments"]["parallel"]["matrix"][0]["ENVIRONMENT"]

    assert named == sorted(path.stem for path in (PROJECT / "environments").glob("*.yaml"))


def test_who_may_write_runs_no_code_of_the_pull_request() -> None:
    for workflow in WORKFLOWS:
        document = yaml.safe_load(workflow.read_text(encoding="utf-8"))
        assert document["permissions"] == {}, workflow.name
        for name, job in document["jobs"].items():
            if "write" in (job["permissions"] or {}).values() and workflow.name == "review.yaml":
                checkouts = [step for step in job["steps"] if "checkout" in step.get("uses", "")]
                assert [step["with"]["ref"] for step in checkouts] == ["${{ needs.environments.outputs.base }}"], name


def test_who_judges_runs_no_code_of_the_pull_request() -> None:
    steps = _steps("review.yaml", "review")
    scripts = [step["run"] for step in steps if "run" in step]
    assert scripts[0].startswith('git checkout --quiet --detach "$BASE"\n')
    lines = yaml.safe_load(GITLAB.read_text(encoding="utf-8"))["review"]["script"]
    assert lines[1] == 'git checkout --quiet --detach "$BASE"'


def test_who_runs_code_of_the_pull_request_has_no_secret() -> None:
    jobs = yaml.safe_load((PROJECT / ".github" / "workflows" / "review.yaml").read_text(encoding="utf-8"))["jobs"]
    assert jobs["synthesize"]["permissions"] == {"contents": "read"}
    assert "secrets." not in str(jobs)
    assert [step.get("env") for step in jobs["synthesize"]["steps"] if step.get("env")] == []
    pipeline = yaml.safe_load(GITLAB.read_text(encoding="utf-8"))
    # a variable that belongs to an environment reaches only the jobs of it
    assert pipeline["comment"]["environment"] == {"name": "review-comments", "action": "access"}
    assert "environment" not in pipeline["synthesize"]
    assert "id_tokens" not in pipeline["synthesize"]


def test_who_takes_a_role_runs_nothing_of_the_commit() -> None:
    jobs = yaml.safe_load((PROJECT / ".github" / "workflows" / "deploy-environment.yaml").read_text(encoding="utf-8"))[
        "jobs"
    ]
    with_role = [name for name, job in jobs.items() if job["permissions"].get("id-token")]
    assert with_role == ["review", "deploy"]
    assert [name for name, job in jobs.items() if "environment" in job] == ["review", "approval", "deploy"]
    assert jobs["synthesize"]["permissions"] == {"contents": "read"}
    assert "secrets." not in str(jobs)
    (taken,) = [step["run"] for step in jobs["review"]["steps"] if step.get("name", "").startswith("take the tool")]
    scripts = [step["run"] for step in jobs["review"]["steps"] if "run" in step]
    assert scripts[:2] == [taken, "make setup"]
    assert "python" not in taken
    # who names the judge has no role, and says it before any code of the judge runs
    assert jobs["tool"]["permissions"] == {"contents": "read", "actions": "read"}
    (_, named) = jobs["tool"]["steps"]
    assert 'python3 -I "$RUNNER_TEMP/deployed_tool.py"' in named["run"]
    assert named["run"].count("python3") == named["run"].count("python3 -I")
    assert "git archive" not in GITLAB.read_text(encoding="utf-8") + str(jobs)
    assert taken.splitlines()[-1].startswith("git checkout --quiet --detach ")
    (checkout,) = [step for step in jobs["deploy"]["steps"] if "checkout" in step.get("uses", "")]
    assert checkout["with"]["ref"] == "${{ needs.tool.outputs.commit }}"
    pipeline = yaml.safe_load(GITLAB.read_text(encoding="utf-8"))
    described = {name: job for name, job in pipeline.items() if isinstance(job, dict)}
    assert [name for name, job in described.items() if "id_tokens" in job] == ["plan", ".deploy", ".hold"]
    for name in ("synthesize", "assemble", "tool"):
        assert "environment" not in pipeline[name], name
    # nobody with a role runs the script that names the judge, or takes a file from the job that runs the commit's code
    assert [name for name, job in described.items() if "deployed_tool.py" in str(job.get("script"))] == ["tool"]
    taken = {name: pipeline[name]["dependencies"] for name in ("tool", "plan", ".deploy")}
    assert taken == {"tool": ["assemble"], "plan": ["tool"], ".deploy": ["plan"]}
    assert [line for line in pipeline["tool"]["script"] if "make" in line or ".venv" in line] == []
    for name in ("plan", "deploy", "deploy-approved"):
        lines = [line for item in pipeline[name]["script"] for line in (item if isinstance(item, list) else [item])]
        at = next(index for index, line in enumerate(lines) if line.startswith("git checkout --quiet --detach "))
        assert [line for line in lines[:at] if "make" in line or ".venv" in line] == [], name
        assert all(line.count("python3") == line.count("python3 -I") for line in lines[:at]), name
        assert lines[at + 1] == "make setup", name


def test_no_pull_request_reaches_a_role() -> None:
    for workflow in WORKFLOWS:
        document = yaml.safe_load(workflow.read_text(encoding="utf-8"))
        # YAML 1.1 reads the key "on" as true
        events = document[True]
        assert not {"pull_request_target", "workflow_run", "issue_comment"} & set(events), workflow.name
        if "pull_request" in events:
            assert "id-token" not in str(document["jobs"]), workflow.name
            assert not any("environment" in job for job in document["jobs"].values()), workflow.name
    pipeline = yaml.safe_load(GITLAB.read_text(encoding="utf-8"))
    for name in ("assemble", "tool", "plan", "deploy", "deploy-approved"):
        (rule,) = pipeline[name]["rules"]
        assert rule["if"] == '$CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH && $HYPERPOD_DEPLOY == "true"', name


def test_who_verifies_a_pull_request_has_no_secret_and_writes_nowhere() -> None:
    jobs = yaml.safe_load((PROJECT / ".github" / "workflows" / "verify.yaml").read_text(encoding="utf-8"))["jobs"]
    for job in jobs.values():
        assert job["permissions"] == {"contents": "read"}
        assert "secrets." not in str(job)
        assert "environment" not in job
    assert {name: [step["run"] for step in job["steps"] if "run" in step][1:] for name, job in jobs.items()} == {
        "verify": [".ci/run"],
        "pythons": ["make test release", ".venv/bin/python -m pytest -m examples tests/test_wheel.py"],
    }


def test_every_version_of_python_that_is_named_is_tested() -> None:
    jobs = yaml.safe_load((PROJECT / ".github" / "workflows" / "verify.yaml").read_text(encoding="utf-8"))["jobs"]
    (others,) = jobs["pythons"]["strategy"]["matrix"].values()
    (main,) = [step["with"]["python-version"] for step in jobs["verify"]["steps"] if "python" in step.get("uses", "")]
    assert jobs["pythons"]["env"] == {"PYTHON": "python${{ matrix.python }}"}
    tested = [main, *others]

    table = (
        (PROJECT / "README.md").read_text(encoding="utf-8").partition("| Python | tested |\n")[2].partition("\n\n")[0]
    )
    rows = [line.split(" | ")[0].removeprefix("| ") for line in table.splitlines()[1:]]
    assert (", ".join(rows).split(", "), "not tested" in table) == (tested, False)
    # a classifier says more than a row that says what was run
    for part in (PROJECT, PROJECT / "rehearsal"):
        project = tomllib.loads((part / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        prefix = "Programming Language :: Python :: "
        named = [each.removeprefix(prefix) for each in project["classifiers"] if each.startswith(prefix)]
        assert (named, project["requires-python"]) == (tested[: len(named)], f">={main}")


@pytest.mark.parametrize(
    ("made_for", "first"),
    [
        (None, "python3.13 -m venv --clear .venv"),
        ("python3.13", "python3.13 -m venv  .venv"),
        # a .venv of another version would run the tests with that one
        ("python3.11", "python3.13 -m venv --clear .venv"),
    ],
)
def test_another_version_of_python_gets_an_environment_of_its_own(
    tmp_path: Path, made_for: str | None, first: str
) -> None:
    for name in ("Makefile", "requirements.lock", "package-lock.json", "pyproject.toml", "rehearsal/pyproject.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(PROJECT / name, tmp_path / name)
    if made_for is not None:
        ready = tmp_path / ".venv" / f".ready-{made_for}"
        ready.parent.mkdir()
        ready.touch()
        os.utime(ready, (0, 0))  # older than the lock
    command = [shutil.which("make") or "make", "--dry-run", "setup", "PYTHON=python3.13"]
    # 'make test' hands its own flags and depth on
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(command, cwd=tmp_path, env=variables, check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[0] == first


def test_a_deployment_begins_with_the_question_whether_its_review_still_holds() -> None:
    steps = [step.get("run", "") for step in _steps("deploy-environment.yaml", "deploy")]
    assert [("--still" in step, "cdk deploy" in step) for step in steps][-2:] == [(True, False), (False, True)]
    pipeline = yaml.safe_load(GITLAB.read_text(encoding="utf-8"))
    for job in ("deploy", "deploy-approved"):
        assert "--still" in pipeline[job]["script"][-2], job
        assert "cdk deploy" in pipeline[job]["script"][-1], job
    assert pipeline["plan"]["resource_group"] == pipeline[".deploy"]["resource_group"]


def test_a_pull_request_is_compared_with_what_it_was_merged_with(tmp_path: Path) -> None:
    steps = _steps("review.yaml", "environments")
    output = tmp_path / "output"
    (tmp_path / "environments").mkdir()
    _git(tmp_path, "init", "-q", "-b", "main")
    _commit(tmp_path, "environments/gone.yaml", "environments/prod.yaml")
    _git(tmp_path, "checkout", "-qb", "topic")
    (tmp_path / "environments" / "gone.yaml").unlink()
    _commit(tmp_path, "environments/new.yaml", "environments/new.plans.json")
    _git(tmp_path, "checkout", "-q", "main")
    _commit(tmp_path, "unrelated")
    newest = _git(tmp_path, "rev-parse", "HEAD")
    _git(tmp_path, *IDENTITY, "merge", "-q", "--no-ff", "-m", "merge", "topic")

    (listing,) = [step["run"] for step in steps if step.get("id") == "list"]
    _bash(listing, tmp_path, GITHUB_OUTPUT=str(output))

    assert output.read_text(encoding="utf-8") == f'base={newest}\nnames=["gone", "new", "prod"]\n'


@pytest.mark.parametrize("has_script", [False, True])
@pytest.mark.parametrize("reviews", [(), ("prod",), ("prod", "two words")])
def test_what_is_posted_is_what_was_reviewed(tmp_path: Path, reviews: tuple[str, ...], *, has_script: bool) -> None:
    (tmp_path / "reviews" / "failed").mkdir(parents=True)
    for name in reviews:
        (tmp_path / "reviews" / name).mkdir()
        (tmp_path / "reviews" / name / "report.json").touch()
    if has_script:
        (tmp_path / ".ci").mkdir()
        (tmp_path / ".ci" / "post_review.py").write_text("import sys; print(sys.argv[1:])", encoding="utf-8")
    (posting,) = [step["run"] for step in _steps("review.yaml", "comment") if step.get("name") == "comment"]
    said = _bash(posting, tmp_path)

    if has_script and reviews:
        assert said == f"{[f'reviews/{name}' for name in reviews]}\n"
    else:
        assert said.startswith("::notice::")
        assert ("base branch" in said) is not has_script


@pytest.mark.parametrize("is_on_the_branch", [True, False])
def test_only_what_the_branch_itself_had_was_deployed(tmp_path: Path, *, is_on_the_branch: bool) -> None:
    repository = Repository.make(tmp_path / "origin", "name: prod\n")
    repository.git("checkout", "-qb", "topic")
    commit = repository.commit({"tools/cdk": "another\n"})
    repository.git("checkout", "-q", "main")
    how = "--ff-only" if is_on_the_branch else "--no-ff"
    repository.git("merge", "-q", how, "-m", "merge", "topic")
    head = repository.commit({"app.py": "another\n"})
    found = tmp_path / "tool.json"
    with api() as forge:
        # a tag called main that stands at the commit has runs like this one
        forge.deployed(commit)
        variables = {"GITHUB_API_URL": forge.address, "GITHUB_REPOSITORY": "acme/platform", "GITHUB_SHA": head}
        script = f"{sys.executable} -I {PROJECT / '.ci' / 'deployed_tool.py'} prod {found}"
        _bash(script, repository.folder, **variables)
    said = json.loads(found.read_text(encoding="utf-8"))
    if is_on_the_branch:
        # the app is the tool's own, too: it writes the templates
        assert said == {"commit": commit, "first": False, "changed": ["app.py"]}
    else:
        assert said == {"commit": head, "first": True, "changed": []}


def test_no_commit_names_its_own_judge(tmp_path: Path) -> None:
    repository = Repository.make(tmp_path / "origin", "name: prod\n")
    deployed = repository.git("rev-parse", "HEAD")
    commit = repository.commit({".ci/deployed_tool.py": "raise SystemExit('run')\n"})
    with api() as forge:
        forge.deployed(deployed)
        variables = {"GITHUB_API_URL": forge.address, "GITHUB_REPOSITORY": "acme/platform", "vars.HYPERPOD_TOOL": ""}
        run = Run(repository=repository, commit=commit, scratch=tmp_path / "run", variables=variables)
        run.inputs = {"environment": "prod"}
        assert run.github("deploy-environment.yaml", "tool") == "success", run.said
    assert run.outputs["tool"] == {"commit": deployed, "first": "false", "changed": '[".ci/deployed_tool.py"]'}


IDENTITY = ("-c", "user.name=Dana", "-c", "user.email=dana@example.com")


def _steps(workflow: str, job: str) -> list[dict[str, Any]]:
    document = yaml.safe_load((PROJECT / ".github" / "workflows" / workflow).read_text(encoding="utf-8"))
    steps: list[dict[str, Any]] = document["jobs"][job]["steps"]
    return steps


def _bash(script: str, folder: Path, **variables: str) -> str:
    """Run a step's script as GitHub runs it."""
    done = subprocess.run(
        ["bash", "-e", "-c", script],  # noqa: S607 - bash is where PATH has it
        cwd=folder,
        env={"PATH": os.environ["PATH"], **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments],  # noqa: S607 - git is where PATH has it
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def _commit(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).touch()
    _git(folder, "add", "-A")
    _git(folder, *IDENTITY, "commit", "-qm", "more")


def _calls(value: Any) -> Iterator[list[str]]:
    """Yield the arguments of every call of hyperpod-cdk in a pipeline's scripts."""
    if isinstance(value, dict):
        for item in value.values():
            yield from _calls(item)
    elif isinstance(value, list):
        for item in value:
            yield from _calls(item)
    elif isinstance(value, str) and ".venv/bin/hyperpod-cdk" in value:
        for line in value.replace("\\\n", " ").splitlines():
            if ".venv/bin/hyperpod-cdk" in line:
                yield shlex.split(line.partition(".venv/bin/hyperpod-cdk")[2].partition(" | ")[0])
