"""The waves of pipelines: their jobs wait for each other as fleet.yaml says, and nothing else of a file is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from hyperpod_cdk import cli
from hyperpod_cdk._cli.pipelines import BEGIN, END, GITHUB, GITLAB, PipelineError, written
from hyperpod_cdk.config.fleet import Fleet, Wave

PROJECT = Path(__file__).parents[2]
NAMES = ("dev", "prod-eu", "prod-us", "staging")
FLEET = Fleet(
    waves=(
        Wave(name="first", environments=("dev", "staging"), soak_minutes=60, checks=("status", "drift")),
        Wave(name="europe", environments=("prod-eu",), approval=True),
        Wave(name="rest", environments=("prod-us",), checks=()),
    )
)


def made(file: Path, fleet: Fleet | None, names: tuple[str, ...] = NAMES) -> Any:
    text = (PROJECT / file).read_text(encoding="utf-8")
    return yaml.safe_load(written(text, file, fleet, names, is_clone=True))


def before(jobs: Mapping[str, Any], job: str) -> set[str]:
    """Every job that has to be done before this one."""
    needs = jobs[job].get("needs", [])
    direct = {each if isinstance(each, str) else each["job"] for each in ([needs] if isinstance(needs, str) else needs)}
    return direct.union(*(before(jobs, each) for each in direct))


@pytest.mark.parametrize("file", [GITHUB, GITLAB], ids=str)
def test_this_repository_has_what_would_be_written(file: Path) -> None:
    text = (PROJECT / file).read_text(encoding="utf-8")
    names = tuple(sorted(path.stem for path in (PROJECT / "environments").glob("*.yaml")))
    assert written(text, file, None, names, is_clone=True) == text
    # and it can be taken back
    assert written(written(text, file, FLEET, NAMES, is_clone=True), file, None, names, is_clone=True) == text


def test_github_deploys_wave_after_wave() -> None:
    document = made(GITHUB, FLEET)
    jobs = document["jobs"]
    assert {
        name: job["strategy"]["matrix"]["environment"] for name, job in jobs.items() if name.startswith("wave-")
    } == {
        "wave-first": ["dev", "staging"],
        "wave-europe": ["prod-eu"],
        "wave-rest": ["prod-us"],
    }
    holds = {"hold-dev", "hold-staging", "soak-first", "tool-dev", "tool-staging", "wave-first"}
    assert before(jobs, "wave-first") == set()
    assert before(jobs, "hold-dev") == {"soak-first", "tool-dev", "wave-first"}
    assert before(jobs, "wave-europe") == {"approve-europe", *holds}
    assert before(jobs, "wave-rest") == {"wave-europe", "hold-prod-eu", "tool-prod-eu", *before(jobs, "wave-europe")}
    # nothing follows the last wave, which has no checks either
    assert "hold-prod-us" not in jobs
    assert jobs["soak-first"]["steps"] == [{"run": "sleep 60m"}]
    assert jobs["soak-first"]["timeout-minutes"] == 70
    assert jobs["approve-europe"]["environment"] == "wave-europe"
    # a commit in between does not begin the soak anew
    assert document["concurrency"] == {"group": "deploy", "cancel-in-progress": False}
    # the next run finds what was deployed by this name
    assert {job["name"] for name, job in jobs.items() if name.startswith("wave-")} == {
        "environment (${{ matrix.environment }})"
    }
    assert {job["if"] for job in jobs.values()} == {"vars.HYPERPOD_DEPLOY == 'true'"}


def test_who_holds_with_a_role_runs_nothing_of_the_commit() -> None:
    jobs = made(GITHUB, FLEET)["jobs"]
    with_role = {name for name, job in jobs.items() if (job["permissions"] or {}).get("id-token")}
    assert with_role == {"hold-dev", "hold-staging", "hold-prod-eu", "wave-first", "wave-europe", "wave-rest"}
    scripts = [step["run"] for step in jobs["hold-dev"]["steps"] if "run" in step]
    assert scripts[0].splitlines()[-1] == 'git checkout --quiet --detach "$TOOL"'
    assert scripts[1] == "make setup"
    assert jobs["tool-dev"]["permissions"] == {"contents": "read", "actions": "read"}
    assert "environment" not in jobs["tool-dev"]


def test_gitlab_deploys_wave_after_wave() -> None:
    jobs = made(GITLAB, FLEET)
    matrix = {
        name: job["parallel"]["matrix"][0]["ENVIRONMENT"]
        for name, job in jobs.items()
        if isinstance(job, dict) and "parallel" in job
    }
    assert matrix[".environments"] == list(NAMES)
    assert matrix[".first-wave"] == matrix["hold:first"] == ["dev", "staging"]
    assert jobs[".deploy"]["extends"] == ".first-wave"
    assert matrix["deploy:europe"] == matrix["deploy-approved:europe"] == ["prod-eu"]
    assert before(jobs, "hold:first") == {"plan", "deploy"}
    assert before(jobs, "deploy:europe") == {"approve:europe", "hold:first", "plan", "deploy"}
    assert before(jobs, "deploy:rest") == before(jobs, "deploy-approved:rest")
    assert before(jobs, "deploy:rest") == {"hold:europe", "deploy:europe", *before(jobs, "deploy:europe")}
    (rule,) = jobs["hold:first"]["rules"]
    assert (rule["when"], rule["start_in"]) == ("delayed", "60 minutes")
    (rule,) = jobs["approve:europe"]["rules"]
    assert (rule["when"], rule["allow_failure"]) == ("manual", False)
    assert "hold:rest" not in jobs


def test_a_first_wave_waits_for_its_approval() -> None:
    fleet = Fleet(waves=(Wave(name="all", environments=("prod",), approval=True),))
    jobs = made(GITHUB, fleet)["jobs"]
    assert before(jobs, "wave-all") == {"approve-all"}
    pipeline = made(GITLAB, fleet, ("prod",))
    assert before(pipeline, ".first-wave") == {"plan", "approve:all"}
    assert pipeline[".deploy"]["extends"] == ".first-wave"


@pytest.mark.parametrize(
    "text",
    ["", f"{BEGIN}\n", f"{END}\n{BEGIN}\n", f"{BEGIN}\n{END}\n{BEGIN}\n{END}\n"],
    ids=["none", "begin", "reversed", "twice"],
)
def test_a_file_without_a_place_is_left_alone(text: str) -> None:
    with pytest.raises(PipelineError, match=r"^\.gitlab-ci\.yml: wants the lines .# begin of the waves"):
        written(text, GITLAB, FLEET, NAMES, is_clone=True)


# --- the verb ---------------------------------------------------------------------------------------------------------


Run = Callable[..., Result]


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    for forge in ("github", "gitlab"):
        done = CliRunner().invoke(cli.app, ["new", str(tmp_path / forge), "--with", forge])
        assert done.exit_code == 0, done.output
    return tmp_path


@pytest.mark.parametrize(("forge", "file"), [("github", GITHUB), ("gitlab", GITLAB)])
def test_the_verb_writes_what_check_wants(demo: Path, forge: str, file: Path) -> None:
    folder = demo / forge

    def run(*words: str) -> Result:
        with chdir(folder):
            return CliRunner().invoke(cli.app, ["fleet", "pipelines", *words], catch_exceptions=False)

    assert run("--check").exit_code == 0
    text = (folder / "environments" / "prod.yaml").read_text(encoding="utf-8")
    staging = folder / "environments" / "staging.yaml"
    staging.write_text(text.replace("name: prod", "name: staging"), encoding="utf-8")
    (folder / "fleet.yaml").write_text(
        "waves:\n  - {name: one, environments: [staging]}\n  - {name: two, environments: [prod]}\n", encoding="utf-8"
    )
    own = (folder / file).read_text(encoding="utf-8")
    (folder / file).write_text(f"{own}# mine\n", encoding="utf-8")
    done = run("--check")
    assert (done.exit_code, done.stderr) == (
        1,
        f"{file} has other waves than fleet.yaml; run 'hyperpod-cdk fleet pipelines'\n",
    )
    done = run()
    assert (done.exit_code, done.stderr) == (0, f"wrote {file}\n")
    after = (folder / file).read_text(encoding="utf-8")
    assert after.endswith("# mine\n")
    assert "make setup" not in after
    assert run("--check").exit_code == 0
    (folder / "fleet.yaml").write_text("waves: []\n", encoding="utf-8")
    done = run()
    assert (done.exit_code, done.stdout.splitlines()[0]) == (
        1,
        "fleet.yaml:1 waves: must hold at least one wave, got none; add one",
    )
    assert (folder / file).read_text(encoding="utf-8") == after


def test_a_project_without_pipelines(tmp_path: Path) -> None:
    (tmp_path / "environments").mkdir()
    with chdir(tmp_path):
        done = CliRunner().invoke(cli.app, ["fleet", "pipelines", "--check"], catch_exceptions=False)
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == "no pipelines here: neither .github/workflows/deploy.yaml nor .gitlab-ci.yml\n"
