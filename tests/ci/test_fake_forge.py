"""Both pipelines from end to end: their scripts as they stand, a forge on loopback, an AWS in this machine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from hyperpod_cdk._cli.pipelines import GITHUB, GITLAB, written
from hyperpod_cdk.config.fleet import Fleet
from tests.support.embedded import Embedded, embedded
from tests.support.fake_forge import PROJECT, Api, Repository, Run, api

pytestmark = [pytest.mark.examples, pytest.mark.timeout(600)]

LIAR = "#!/bin/sh\nmkdir -p reviews/prod\nfor each in md html json; do echo lie > reviews/prod/report.$each; done\n"


def environment(group: str = "one", days: int = 30, name: str = "prod") -> str:
    return f"name: {name}\nregion: us-east-1\ngroup: {group}\ndays: {days}\n"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository.make(tmp_path / "origin", environment())


@pytest.fixture
def forge() -> Iterator[Api]:
    with api() as found:
        yield found


@pytest.fixture
def aws() -> Iterator[Embedded]:
    with embedded({}, is_hurried=True) as found:
        yield found


class Forge:
    """What a test does with one of the forges."""

    def __init__(self, kind: str, repository: Repository, scratch: Path, forge: Api, aws: Embedded | None) -> None:
        self.kind, self.repository, self.scratch, self.forge = kind, repository, scratch, forge
        self.runs = 0
        self.tool = ""
        self.aws = aws.environment() if aws else {}

    def run(self, commit: str) -> Run:
        self.runs += 1
        variables = {
            **(
                {"GITHUB_API_URL": self.forge.address, "GITHUB_REPOSITORY": "acme/platform", "GITHUB_RUN_ATTEMPT": "1"}
                if self.kind == "github"
                else {
                    "CI_API_V4_URL": self.forge.address,
                    "CI_PROJECT_ID": "42",
                    "CI_MERGE_REQUEST_IID": "7",
                    "REVIEW_TOKEN": "token",
                    "CI_DEFAULT_BRANCH": "main",
                    "CI_COMMIT_SHA": commit,
                    "CI_MERGE_REQUEST_TARGET_BRANCH_SHA": self.repository.git("rev-parse", "main"),
                    "CI_JOB_TOKEN": "job",
                }
            ),
        }
        names = {"vars.AWS_REVIEW_ROLE": "review", "vars.AWS_DEPLOY_ROLE": "deploy", "vars.HYPERPOD_TOOL": self.tool}
        if self.kind == "gitlab":
            variables["HYPERPOD_TOOL"] = self.tool
        return Run(
            repository=self.repository,
            commit=commit,
            scratch=self.scratch / f"run-{self.runs}",
            variables={**variables, **names} if self.kind == "github" else variables,
            aws=self.aws,
        )

    def review(self, commit: str) -> Run:
        """Run what a pull or merge request runs."""
        run = self.run(commit)
        if self.kind == "gitlab":
            names = ["prod"]
        else:
            assert run.github("review.yaml", "environments") == "success"
            names = json.loads(run.outputs["environments"]["names"])
        for name in names:
            run.matrix = {"environment": name} if self.kind == "github" else {"ENVIRONMENT": name}
            if self.kind == "github":
                run.github("review.yaml", "synthesize")
            else:
                for job in ("synthesize", "review"):
                    run.gitlab(job)
        if self.kind == "github":
            run.github("review.yaml", "review")
        posted = run.github("review.yaml", "comment") if self.kind == "github" else run.gitlab("comment")
        assert posted in ("success", 0), run.said
        return run

    def plan(self, commit: str | None = None, environment: str = "prod") -> Run:
        """Review what is deployed, as the deployment begins with."""
        run = self.run(commit or self.repository.git("rev-parse", "main"))
        if self.kind == "github":
            run.inputs = {"environment": environment}
            for job in ("synthesize", "tool", "review"):
                assert run.github("deploy-environment.yaml", job) == "success", run.said
        else:
            run.matrix = {"ENVIRONMENT": environment}
            for job in ("assemble", "tool", "plan"):
                assert run.gitlab(job) == 0, run.said
        return run

    def deploy(self, run: Run, *, approved: bool = False, **more: str) -> str:
        """Return ``deployed``, ``waits`` for a person, or what the refusal said."""
        if self.kind == "github":
            wanted = run.outputs["review"]["needs_approval"] == "true"
            run.results["approval"] = "success" if wanted and approved else "skipped"
            result = run.github("deploy-environment.yaml", "deploy", **more)
            if result == "skipped":
                return "waits"
            if result != "success":
                return run.said["deploy"]
        else:
            job = "deploy-approved" if approved else "deploy"
            code = run.gitlab(job)
            if code == 10:
                return "waits"
            if code:
                return run.said[job]
        self.forge.deployed(run.commit, run.inputs.get("environment") or run.matrix["ENVIRONMENT"])
        return "deployed"

    def hold(self, run: Run) -> bool:
        """Run what holds the wave after staging; give whether it lets it begin."""
        if self.kind == "gitlab":
            return run.gitlab("hold:staging") == 0
        run.results |= {"wave-staging": "success", "soak-staging": "success"}
        assert run.github("deploy.yaml", "tool-staging") == "success", run.said
        return run.github("deploy.yaml", "hold-staging") == "success"


@pytest.fixture(params=["github", "gitlab"])
def reviewing(request: pytest.FixtureRequest, repository: Repository, tmp_path: Path, forge: Api) -> Forge:
    return Forge(request.param, repository, tmp_path / "runs", forge, None)


@pytest.fixture(params=["github", "gitlab"])
def deploying(
    request: pytest.FixtureRequest, repository: Repository, tmp_path: Path, forge: Api, aws: Embedded
) -> Forge:
    return Forge(request.param, repository, tmp_path / "runs", forge, aws)


def test_a_pull_request_has_one_comment_that_follows_it(reviewing: Forge, repository: Repository, forge: Api) -> None:
    reviewing.review(repository.branch("nothing", {"README": "hello\n"}))
    assert forge.comments == []
    reviewing.review(repository.branch("one", {"environments/prod.yaml": environment(days=60)}))
    assert len(forge.comments) == 1
    assert forge.comments[0]["body"].startswith("<!-- hyperpod-cdk review: prod -->\n")
    assert "RetentionInDays" in forge.comments[0]["body"]
    # two runs at once can leave two
    forge.comments.append({**forge.comments[0], "id": 77})
    reviewing.review(repository.branch("one", {"environments/prod.yaml": environment(group="two")}))
    assert len(forge.comments) == 1
    assert "LogGroupName" in forge.comments[0]["body"]
    assert "RetentionInDays" not in forge.comments[0]["body"]
    reviewing.review(repository.branch("one", {"environments/prod.yaml": None}))
    assert len(forge.comments) == 1
    assert "LogGroupName" not in forge.comments[0]["body"]


def test_a_pull_request_does_not_write_its_own_verdict(reviewing: Forge, repository: Repository, forge: Api) -> None:
    changed = {"environments/prod.yaml": environment(group="two")}
    lies = {"tools/hyperpod-cdk": LIAR, ".ci/post_review.py": "print('lie')\n", "cdk.json": '{"app": "false"}'}
    reviewing.review(repository.branch("liar", {**changed, **lies}))
    assert len(forge.comments) == 1
    assert "LogGroupName" in forge.comments[0]["body"]


def test_a_renamed_file_keeps_its_comment(repository: Repository, tmp_path: Path, forge: Api) -> None:
    reviewing = Forge("github", repository, tmp_path / "runs", forge, None)
    reviewing.review(repository.branch("one", {"environments/prod.yaml": environment(days=60)}))
    renamed = {"environments/prod.yaml": None, "environments/production.yaml": environment(days=60)}
    reviewing.review(repository.branch("one", renamed))
    assert [each["body"].partition("\n")[0] for each in forge.comments] == ["<!-- hyperpod-cdk review: prod -->"]


def test_what_cannot_be_synthesized_is_not_reviewed(reviewing: Forge, repository: Repository, forge: Api) -> None:
    run = reviewing.review(repository.branch("broken", {"app.py": "raise SystemExit(1)\n"}))
    assert "could not be synthesized: the job synthesize says why" in run.said["review"]
    assert forge.comments == []


def test_what_is_harmless_is_deployed_and_the_rest_waits(deploying: Forge, repository: Repository) -> None:
    first = deploying.plan()
    # what was never deployed has nobody but itself to judge it
    assert deploying.deploy(first) == "waits"
    assert deploying.deploy(first, approved=True) == "deployed"
    repository.commit({"environments/prod.yaml": environment(days=60)})
    harmless = deploying.plan()
    assert deploying.deploy(harmless) == "deployed"
    repository.commit({"environments/prod.yaml": environment(group="two")})
    grave = deploying.plan()
    assert deploying.deploy(grave) == "waits"
    assert deploying.deploy(grave, approved=True) == "deployed"


def test_a_plan_whose_base_is_gone_is_refused(deploying: Forge, repository: Repository) -> None:
    assert deploying.deploy(deploying.plan(), approved=True) == "deployed"
    repository.commit({"environments/prod.yaml": environment(days=60)})
    stale = deploying.plan()
    repository.commit({"environments/prod.yaml": environment(days=90)})
    assert deploying.deploy(deploying.plan()) == "deployed"
    refused = deploying.deploy(stale)
    assert "prod-foundation: the deployed environment differs from the review\n" in refused
    assert "report.json is no longer valid: review again, and have the new report approved\n" in refused


def test_an_old_deployment_is_not_run_again(deploying: Forge, repository: Repository) -> None:
    old = deploying.plan()
    assert deploying.deploy(old, approved=True) == "deployed"
    repository.commit({"environments/prod.yaml": environment(days=60)})
    assert deploying.deploy(deploying.plan()) == "deployed"
    again = deploying.deploy(old, approved=True, GITHUB_RUN_ATTEMPT="2")
    if deploying.kind == "github":
        assert again == (
            "::error::this attempt has no review of its own, and what is deployed may be another by now: re-run all "
            "jobs\n"
        )
    else:
        assert (
            "prod-foundation: the deployed environment has this stack now, but did not have it at the review\n" in again
        )


def test_another_assembly_than_the_reviewed_one_is_refused(deploying: Forge) -> None:
    run = deploying.plan()
    for file in run.artifacts.rglob("t.json"):
        file.write_text(file.read_text(encoding="utf-8").replace('"one"', '"other"'), encoding="utf-8")
    assert "prod-foundation: the environment to deploy differs from the review\n" in deploying.deploy(
        run, approved=True
    )


def test_another_asset_than_the_reviewed_one_is_refused(deploying: Forge) -> None:
    run = deploying.plan()
    for file in run.artifacts.rglob("t.json"):
        (file.parent / "asset.zip").write_bytes(b"other code under the same name")
    refused = deploying.deploy(run, approved=True)
    assert "the cloud assembly: its files differ from the reviewed ones, although its templates do not\n" in refused


WAVES = """\
waves:
  - { name: staging, environments: [staging], soak_minutes: 60 }
  - { name: prod, environments: [prod] }
"""


def test_a_wave_holds_until_what_it_assembled_stands(deploying: Forge, repository: Repository) -> None:
    waves = Fleet.model_validate(yaml.safe_load(WAVES))
    names = ("prod", "staging")
    pipelines = {
        str(file): written((PROJECT / file).read_text(encoding="utf-8"), file, waves, names, is_clone=True)
        for file in (GITHUB, GITLAB)
    }
    own = {"fleet.yaml": WAVES, "environments/staging.yaml": environment(name="staging"), **pipelines}
    first = repository.commit(own)
    run = deploying.plan(first, "staging")
    run.variables["vars.HYPERPOD_DEPLOY"] = "true"
    assert not deploying.hold(run)
    # nobody judged the first one: a person lets it go
    assert deploying.deploy(run) == "waits"
    assert not deploying.hold(run)
    assert deploying.deploy(run, approved=True) == "deployed"
    assert deploying.hold(run), run.said
    # another commit came in between: what stands is not what this run would promote
    then = deploying.plan(
        repository.commit({"environments/staging.yaml": environment(days=60, name="staging")}), "staging"
    )
    assert deploying.deploy(then) == "deployed"
    assert not deploying.hold(run)


def _forging(repository: Repository, spied: Path) -> dict[str, str | None]:
    """Return a commit that replaces a log group, and whose files all try to forge the verdict and to find credentials.

    Each one writes its name to ``spied`` when it is run, with ``AWS`` where it finds credentials.
    """
    found = f'echo "$0 ${{AWS_ACCESS_KEY_ID:+AWS}}${{AWS_TOKEN:+AWS}}" >> {spied}'
    lie = f"{LIAR}{found}\nmkdir -p review reviews/prod\n" + "".join(
        f"""echo '{{"verdict": {{"needs_approval": []}}}}' > {folder}/report.json\n"""
        for folder in ("review", "reviews/prod")
    )
    spy = (
        "import os, sys\n"
        f"with open({str(spied)!r}, 'a') as f:\n"
        "    held = any(os.environ.get(name) for name in ('AWS_ACCESS_KEY_ID', 'AWS_TOKEN', 'GITHUB_TOKEN'))\n"
        "    f.write(f\"{__file__} {'AWS' if held else ''}\\n\")\n"
    )
    makefile = (repository.folder / "Makefile").read_text(encoding="utf-8")
    return {
        "environments/prod.yaml": environment(group="two"),
        "app.py": spy + (repository.folder / "app.py").read_text(encoding="utf-8"),
        "Makefile": makefile + f'\techo "Makefile $${{AWS_ACCESS_KEY_ID:+AWS}}$${{AWS_TOKEN:+AWS}}" >> {spied}\n',
        "cdk.json": json.dumps({"app": "python -IS app.py", "build": found, "plugin": ["./plugin.js"]}),
        "pyproject.toml": "[build-system]\nrequires = []\nbuild-backend = 'conftest'\nbackend-path = ['.']\n",
        **dict.fromkeys(("conftest.py", "sitecustomize.py", "yaml.py", "json.py", "boto3.py"), spy),
        "tools/hyperpod-cdk": lie,
    }


def test_no_commit_forges_its_own_verdict_or_finds_credentials(
    deploying: Forge, repository: Repository, tmp_path: Path
) -> None:
    assert deploying.deploy(deploying.plan(), approved=True) == "deployed"
    spied = tmp_path / "spied"
    repository.commit(_forging(repository, spied))
    run = deploying.plan()
    # its own app made the templates, and that is all that ran of it
    assert {line.split()[0].rpartition("/")[2] for line in spied.read_text().splitlines()} >= {"app.py", "Makefile"}
    assert deploying.deploy(run) == "waits"
    assert "LogGroupName" in next(run.artifacts.rglob("report.md")).read_text(encoding="utf-8")
    assert deploying.deploy(run, approved=True) == "deployed"
    assert [line for line in spied.read_text().splitlines() if "AWS" in line] == []


def test_a_commit_that_changes_the_tool_asks_and_judges_from_then_on(deploying: Forge, repository: Repository) -> None:
    assert deploying.deploy(deploying.plan(), approved=True) == "deployed"
    newer = (repository.folder / "tools/hyperpod-cdk").read_text(encoding="utf-8") + "# newer\n"
    repository.commit({"tools/hyperpod-cdk": newer, "environments/prod.yaml": environment(days=60)})
    run = deploying.plan()
    assert deploying.deploy(run) == "waits"
    if deploying.kind == "github":
        assert json.loads(run.outputs["tool"]["changed"]) == ["tools/hyperpod-cdk"]
    else:
        (told,) = {file.read_text(encoding="utf-8") for file in run.artifacts.rglob("tool.json")}
        assert json.loads(told)["changed"] == ["tools/hyperpod-cdk"]
    assert deploying.deploy(run, approved=True) == "deployed"
    repository.commit({"environments/prod.yaml": environment(days=90)})
    assert deploying.deploy(deploying.plan()) == "deployed"


def test_a_commit_that_the_forge_names_judges_whatever_is_merged(deploying: Forge, repository: Repository) -> None:
    deploying.tool = repository.git("rev-parse", "HEAD")
    repository.commit({"tools/hyperpod-cdk": LIAR})
    assert deploying.deploy(deploying.plan()) == "deployed"


def test_nobody_records_a_deployment_that_was_none(deploying: Forge, repository: Repository, forge: Api) -> None:
    assert deploying.deploy(deploying.plan(), approved=True) == "deployed"
    liar = repository.commit({"tools/hyperpod-cdk": LIAR, "environments/prod.yaml": environment(group="two")})
    elsewhere = repository.branch("elsewhere", {"tools/hyperpod-cdk": f"{LIAR}# another\n"})
    job = forge.deployments[0]["deployable"]
    forge.deployments = [
        # by a call to the API; by a job of a branch; by a tag that is called like the branch; by a branch's commit
        {"ref": "main", "sha": liar, "deployable": None},
        {"ref": "topic", "sha": liar, "deployable": {**job, "ref": "topic", "commit": {"id": liar}}},
        {"ref": "main", "sha": liar, "deployable": {**job, "tag": True, "commit": {"id": liar}}},
        {"ref": "main", "sha": liar, "deployable": {**job, "name": "assemble: [prod]", "commit": {"id": liar}}},
        {"ref": "main", "sha": elsewhere, "deployable": {**job, "commit": {"id": elsewhere}}},
        *forge.deployments,
    ]
    run = forge.runs[0]
    forge.runs = [
        {**run, "id": 10, "head_sha": liar, "event": "pull_request"},
        {**run, "id": 11, "head_sha": liar, "head_branch": "topic"},
        {**run, "id": 12, "head_sha": liar, "jobs": [{"name": "environment (prod) / deploy", "conclusion": "skipped"}]},
        {**run, "id": 13, "head_sha": liar, "jobs": [{"name": "environment (dev) / deploy", "conclusion": "success"}]},
        {**run, "id": 14, "head_sha": elsewhere},
        *forge.runs,
    ]
    assert deploying.deploy(deploying.plan()) == "waits"
