"""The waves of pipelines: their jobs wait for each other as fleet.yaml says, and nothing else of a file is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from random import Random
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
    with pytest.raises(PipelineError, match=r"^\.gitlab-ci\.yml: must contain the lines .# begin of the waves"):
        written(text, GITLAB, FLEET, NAMES, is_clone=True)


# --- two commits in a row ---------------------------------------------------------------------------------------------


@dataclass
class Job:
    """A job of a pipeline on GitLab; ``group`` is its resource group, empty where it has none."""

    pipeline: int
    name: str
    environment: str
    group: str
    waits_for: tuple[str, ...]
    status: str = "created"


def expanded(document: Mapping[str, Any], pipeline: int) -> list[Job]:
    """Return the jobs of a pipeline of the main branch; those that a person starts need not run and are left out."""

    def of(body: Any, key: str) -> Any:
        while key not in body and "extends" in body:
            body = document[body["extends"]]
        return body.get(key)

    bodies = {
        name: body
        for name, body in document.items()
        if isinstance(body, dict)
        and not name.startswith(".")
        and name not in ("synthesize", "review", "comment", "default", "workflow")
        and not name.startswith("deploy-approved")
    }
    stages = {name: document["stages"].index(of(body, "stage")) for name, body in bodies.items()}
    jobs = []
    for name, body in bodies.items():
        needs = of(body, "needs")
        waits = (
            tuple(other for other in bodies if stages[other] < stages[name])
            if needs is None
            else tuple(each if isinstance(each, str) else each["job"] for each in needs)
        )
        parallel = of(body, "parallel")
        for environment in parallel["matrix"][0]["ENVIRONMENT"] if parallel else [""]:
            group = str(of(body, "resource_group") or "").replace("$ENVIRONMENT", environment)
            jobs.append(Job(pipeline, name, environment, group, waits))
    return jobs


def run(document: Mapping[str, Any], seed: int, *, mode: str) -> list[tuple[int, str, str]]:
    """Run two pipelines in any order that GitLab's resource groups allow; give the jobs as they began.

    GitLab's documentation, "Resource groups", process modes: a free resource goes to any job that waits for it, or with
    oldest_first to the first of the jobs that wait or are to come, by the number of their pipeline.
    """
    random = Random(seed)  # noqa: S311 - an order, no secret
    hurried = seed % 3
    jobs = [job for number in (1, 2) for job in expanded(document, number)]
    began: list[tuple[int, str, str]] = []

    def is_ready(job: Job) -> bool:
        return all(
            other.status == "done" for other in jobs if other.pipeline == job.pipeline and other.name in job.waits_for
        )

    def may_begin(job: Job) -> bool:
        if not is_ready(job):
            return False
        rivals = [other for other in jobs if other.group == job.group and other is not job] if job.group else []
        if any(other.status == "running" for other in rivals):
            return False
        older = (other for other in rivals if other.pipeline < job.pipeline)
        return mode == "unordered" or all(other.status == "done" for other in older)

    while any(job.status != "done" for job in jobs):
        able = [job for job in jobs if job.status == "running" or (job.status == "created" and may_begin(job))]
        assert able, "nothing can go on"
        job = random.choice([each for each in able if each.pipeline == hurried] or able)
        if job.status == "created":
            began.append((job.pipeline, job.name, job.environment))
        job.status = "running" if job.status == "created" else "done"
    return began


@pytest.mark.parametrize("last", [(), ("status",)], ids=["no checks at the end", "checks at the end"])
def test_the_next_commit_on_gitlab_waits_for_the_whole_run_where_the_oldest_goes_first(last: Any) -> None:
    fleet = Fleet(waves=(*FLEET.waves[:-1], Wave(name="rest", environments=("prod-us",), checks=last)))
    document = made(GITLAB, fleet)

    def overtakes(began: list[tuple[int, str, str]]) -> bool:
        """Whether the second commit is deployed somewhere before the first one is through with it."""
        places = {each: at for at, each in enumerate(began)}
        return any(
            places[2, deploy, environment] < at
            for (pipeline, name, environment), at in places.items()
            if pipeline == 1 and name.startswith(("deploy", "hold"))
            for deploy in ("deploy", *(f"deploy:{wave.name}" for wave in fleet.waves[1:]))
            if (2, deploy, environment) in places
        )

    def is_whole(began: list[tuple[int, str, str]]) -> bool:
        """Whether nothing of the second commit is deployed anywhere before all of the first one is."""
        deploys = [pipeline for pipeline, name, _ in began if name.startswith("deploy")]
        return deploys == sorted(deploys)

    ordered = [run(document, seed, mode="oldest_first") for seed in range(40)]
    assert [overtakes(each) for each in ordered] == [False] * len(ordered)
    assert [is_whole(each) for each in ordered] == [True] * len(ordered)
    # GitLab's default keeps neither, which is why the mode has to be set
    assert any(overtakes(run(document, seed, mode="unordered")) for seed in range(40))


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
    hint = (
        "for GitLab to finish one run before the next, once, after the first run:\n"
        '  for name in staging prod; do glab api --method PUT "projects/:id/resource_groups/deploy-$name" --field'
        " process_mode=oldest_first; done\n"
    )
    done = run()
    assert (done.exit_code, done.stderr) == (0, f"wrote {file}\n{hint if forge == 'gitlab' else ''}")
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
    assert done.stderr == (
        "no pipelines here: neither .github/workflows/deploy.yaml nor .gitlab-ci.yml; 'hyperpod-cdk new DIR --with"
        " github' or '--with gitlab' writes them into a new project, from which you can copy them\n"
    )
