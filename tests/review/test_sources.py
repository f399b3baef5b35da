"""Where the sides of a review come from: revisions, assemblies, the files as they lie there; and what is neither."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import venv
from pathlib import Path

import pytest

from hyperpod_cdk.config import UsageError
from hyperpod_cdk.eks import charts
from hyperpod_cdk.review.isolation import Limits
from hyperpod_cdk.review.sources import CHART, CHART_LOCK, Source, SynthesisError, sources
from hyperpod_cdk.script_files import library_scripts
from hyperpod_cdk.templates.assembly import EMPTY, AssemblyError
from tests.review.test_isolation import sleeping
from tests.support.assembly import PROJECT

APP = """\
import json, os, pathlib, sys
sys.path[:0] = os.environ.get("PYTHONPATH", "").split(os.pathsep)
context = json.loads(os.environ["CDK_CONTEXT_JSON"])
name = context["env"]
file = pathlib.Path(name if name.endswith(".yaml") else f"environments/{name}.yaml")
text = file.read_text()
if "refused" in text:
    print("environments/dev.yaml:1: refused for a reason")
    sys.exit(1)
if "silent" in text:
    sys.exit(0)
try:
    from hyperpod_cdk import VERSION
except ImportError:
    VERSION = "none"
chart = pathlib.Path("charts/hyperpod-dependencies/Chart.yaml")
properties = {
    "Environment": text.splitlines()[0],
    "Library": VERSION,
    "Chart": chart.read_text() if chart.exists() else "placeholder",
    "Context": {key: context[key] for key in sorted(context) if not key.startswith("@") and key != "env"},
    "Data": pathlib.Path("data.txt").read_text(),
    "Credentials": sorted(key for key in os.environ if key.startswith(("AWS_", "GIT_"))),
    "Tools": os.path.exists("node_modules/tool"),
    "Sub": os.path.exists("sub/file.txt"),
}
out = pathlib.Path(os.environ["CDK_OUTDIR"])
stage = out / "assembly-dev"
stage.mkdir(parents=True)
(stage / "t.json").write_text(json.dumps({"Resources": {"It": {"Type": "T", "Properties": properties}}}))
display = "renamed" if "renamed" in text else "dev"
inner = {"type": "aws:cloudformation:stack", "properties": {"stackName": "dev-x", "templateFile": "t.json"}}
(stage / "manifest.json").write_text(json.dumps({"artifacts": {"x": inner}}))
outer = {"type": "cdk:cloud-assembly", "properties": {"directoryName": "assembly-dev", "displayName": display}}
(out / "manifest.json").write_text(json.dumps({"artifacts": {"dev": outer}}))
"""


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=Dana", "-c", "user.email=dana@example.com", "-c", "protocol.file.allow=always")
    done = subprocess.run(
        ["git", *identity, "-C", str(folder), *arguments],  # noqa: S607 - git is where PATH has it
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"},
    )
    return done.stdout.strip()


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def commit(folder: Path, message: str) -> str:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", message)
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture(scope="module")
def first_commit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository whose project, in a folder of it, has one commit; its app is a few lines of plain Python."""
    top = tmp_path_factory.mktemp("first") / "repository"
    root = top / "infra"
    write(root / "app.py", APP)
    # the app needs no package, and looking for some takes most of its time
    write(root / "cdk.json", json.dumps({"app": "python -IS app.py"}))
    write(root / "data.txt", "one\n")
    write(root / "environments" / "dev.yaml", "first: 1\n")
    write(root / "charts" / "charts.lock.yaml", "lock: 1\n")
    write(root / ".gitignore", "node_modules/\ncharts/hyperpod-dependencies/\ncdk.context.json\n")
    git(top, "init", "-q", "-b", "main", "--template=")
    commit(root, "first")
    return top


@pytest.fixture
def project(first_commit: Path, tmp_path: Path) -> Path:
    """A copy of that project for one test."""
    return Path(shutil.copytree(first_commit, tmp_path / "repository")) / "infra"


def compared(project: Path, base: str | None, head: str | None = None, name: str | None = "dev") -> list[Source | None]:
    with sources(project, name, base=base, head=head) as found:
        return list(found)


def properties(source: Source | None) -> dict[str, object]:
    assert source is not None
    (resource,) = source.assembly.resources()
    return dict(resource.properties)


def other_notes(source: Source) -> list[str]:
    """Return the notes but that of a system which grants no namespaces."""
    return [note for note in source.notes if note not in source.exposed]


def refusal(project: Path, base: str | None, head: str | None = None, name: str | None = "dev") -> str:
    with pytest.raises((AssemblyError, UsageError)) as caught:
        compared(project, base, head, name)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_revision_that_is_not_in_a_shallow_clone(project: Path, tmp_path: Path) -> None:
    (project / "data.txt").write_text("newer")
    git(project, "commit", "-qam", "newer")
    top = git(project, "rev-parse", "--show-toplevel")
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{top}", "shallow")
    assert refusal(tmp_path / "shallow" / project.relative_to(top), "HEAD~1") == (
        "--base: must be the folder of a cloud assembly or a Git revision, and 'HEAD~1' is neither here; the clone "
        "is shallow: 'git fetch --unshallow' gets the rest"
    )


def test_a_revision_and_the_files_as_they_are(project: Path) -> None:
    first = git(project, "rev-parse", "HEAD")
    write(project / "environments" / "dev.yaml", "second: 2\n")
    before = git(project, "status", "--porcelain"), sorted((project.parent / ".git").rglob("*"))
    base, head = compared(project, "main")
    assert (git(project, "status", "--porcelain"), sorted((project.parent / ".git").rglob("*"))) == before
    assert base
    assert head
    assert (properties(base)["Environment"], properties(head)["Environment"]) == ("first: 1", "second: 2")
    assert base.side.model_dump() == {
        "label": "main",
        "commit": first,
        "environment_file": "environments/dev.yaml",
        "stacks": {},
        "assembly": None,
    }
    assert head.side.model_dump() == {
        "label": "working tree",
        "commit": None,
        "environment_file": "environments/dev.yaml",
        "stacks": {},
        "assembly": None,
    }
    assert (base.assembly.environment, head.assembly.environment) == ("dev", "dev")
    refused = "this version refuses environments/dev.yaml, so no line of it is named as a cause."
    assert (other_notes(base), other_notes(head)) == ([f"main: {refused}"], [f"working tree: {refused}"])


def test_two_revisions(project: Path) -> None:
    write(project / "data.txt", "two\n")
    second = commit(project, "second")
    write(project / "data.txt", "three\n")
    base, head = compared(project, "HEAD~1", second[:10])
    assert (properties(base)["Data"], properties(head)["Data"]) == ("one\n", "two\n")
    assert head
    assert (head.side.label, head.side.commit) == (second[:10], second)


def test_an_environment_file_is_read_with_its_lines(project: Path) -> None:
    text = (PROJECT / "examples" / "two-teams.yaml").read_text(encoding="utf-8").replace("name: two-teams", "name: dev")
    write(project / "environments" / "dev.yaml", text)
    commit(project, "second")
    base, head = compared(project, "main")
    for side in (base, head):
        assert side
        assert side.environment
        assert (side.environment.environment.name, side.environment.file) == ("dev", "environments/dev.yaml")
        assert side.environment.line_of("name") == text[: text.index("name: dev")].count("\n") + 1
        assert other_notes(side) == []


@pytest.mark.parametrize("name", ["environments/dev.yaml", "dev.yaml"])
def test_an_environment_by_its_file(project: Path, name: str) -> None:
    _, head = compared(project, "main", None, str(project / name) if "/" in name else name)
    assert head
    assert head.side.environment_file == "environments/dev.yaml"


def test_an_environment_that_is_new_or_gone(project: Path) -> None:
    write(project / "environments" / "qa.yaml", "new: 1\n")
    base, head = compared(project, "main", None, "qa")
    assert base
    assert head
    assert (base.assembly, base.side.label) == (EMPTY, "nothing")
    assert base.notes == ("main has no environments/qa.yaml: the environment does not exist there.",)
    assert properties(head)["Environment"] == "new: 1"
    (project / "environments" / "dev.yaml").unlink()
    base, head = compared(project, "main")
    assert base
    assert head
    assert properties(base)["Environment"] == "first: 1"
    assert (head.assembly, head.side.label) == (EMPTY, "nothing")


def test_every_revision_has_its_own_library(project: Path) -> None:
    write(project / "constructs" / "hyperpod_cdk" / "__init__.py", "VERSION = 'one'\n")
    commit(project, "library")
    write(project / "constructs" / "hyperpod_cdk" / "__init__.py", "VERSION = 'two'\n")
    base, head = compared(project, "main")
    assert (properties(base)["Library"], properties(head)["Library"]) == ("one", "two")


def test_what_no_revision_holds_is_the_same_on_both_sides(project: Path) -> None:
    write(project / "charts" / "hyperpod-dependencies" / "Chart.yaml", "pulled")
    write(project / "node_modules" / "tool", "")
    write(project / "cdk.context.json", '{"vpc": "vpc-1"}')
    write(project / "cdk.json", '{"app": "python -IS app.py", "context": {"flag": true}, "pathMetadata": false}')
    commit(project, "settings")
    base, head = compared(project, "main")
    assert properties(base) == properties(head)
    assert properties(base)["Chart"] == "pulled"
    assert properties(base)["Tools"] is True
    assert properties(base)["Context"] == {
        "aws:cdk:bundling-stacks": ["**"],
        "aws:cdk:enable-asset-metadata": True,
        "aws:cdk:version-reporting": True,
        "flag": True,
        "vpc": "vpc-1",
    }


def test_another_chart_is_not_passed_off_as_the_revisions_own(project: Path) -> None:
    write(project / "charts" / "hyperpod-dependencies" / "Chart.yaml", "pulled")
    write(project / "charts" / "charts.lock.yaml", "lock: 2\n")
    base, head = compared(project, "main")
    assert base
    assert (properties(base)["Chart"], properties(head)["Chart"]) == ("placeholder", "pulled")
    assert base.notes[0] == (
        "main locks another hyperpod-dependencies chart than the pulled one: its own is missing here, so that "
        "differences of the chart are not shown correctly."
    )


def test_where_charts_lie() -> None:
    assert (CHART, CHART_LOCK) == (charts.CHART_DIRECTORY, charts.LOCK_FILE)


def test_no_credentials_reach_an_app(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    base, _ = compared(project, "main")
    assert properties(base)["Credentials"] == [
        "AWS_CONFIG_FILE",
        "AWS_EC2_METADATA_DISABLED",
        "AWS_SHARED_CREDENTIALS_FILE",
    ]


def test_the_librarys_scripts_are_there_for_an_app_that_has_none(project: Path) -> None:
    script = library_scripts() / "on_create.sh"
    write(project / "data.txt", "whatever\n")
    read = f"open({str(script)!r}).read(2)"
    write(project / "app.py", APP.replace('pathlib.Path("data.txt").read_text()', read))
    _, head = compared(project, "main")
    assert properties(head)["Data"] == "#!"


def library(folder: Path, version: str | None) -> Path:
    """A virtual environment; its library is a module that says which version it is."""
    venv.create(folder, symlinks=True)
    (packages,) = folder.glob("lib/python3*/site-packages")
    if version:
        (packages / f"hyperpod_cdk-{version}.dist-info").mkdir()
        write(packages / "hyperpod_cdk.py", f"VERSION = {version!r}\n")
    return folder


def of_another_library(project: Path) -> None:
    write(project / "cdk.json", json.dumps({"app": ".venv/bin/python app.py"}))


def test_the_libraries_of_two_virtual_environments(project: Path, tmp_path: Path) -> None:
    of_another_library(project)
    old, new = library(tmp_path / "old", "0.1.0"), library(tmp_path / "new env", "0.2.0")
    base, head = compared(project, str(old), str(new))
    assert base
    assert head
    assert (properties(base)["Library"], properties(head)["Library"]) == ("0.1.0", "0.2.0")
    # the files are those that lie there, on both sides
    assert properties(base)["Data"] == properties(head)["Data"]
    assert (base.side.label, head.side.label) == (f"hyperpod-cdk 0.1.0 of {old}", f"hyperpod-cdk 0.2.0 of {new}")
    assert (base.side.environment_file, base.side.commit) == ("environments/dev.yaml", None)


def test_the_library_of_a_clone_does_not_come_before_that_of_a_virtual_environment(
    project: Path, tmp_path: Path
) -> None:
    of_another_library(project)
    write(project / "constructs" / "hyperpod_cdk" / "__init__.py", "VERSION = 'of the clone'")
    base, _ = compared(project, str(library(tmp_path / "old", "0.1.0")), str(library(tmp_path / "new", "0.2.0")))
    assert properties(base)["Library"] == "0.1.0"


def test_a_virtual_environment_without_the_library(project: Path, tmp_path: Path) -> None:
    empty = library(tmp_path / "an env", None)
    assert refusal(project, str(empty)) == (
        f"--base: the virtual environment {empty} has no hyperpod-cdk; install the version to compare with: "
        f"'{empty}/bin/pip' install hyperpod-cdk==VERSION"
    )


@pytest.mark.parametrize(
    ("app", "shown"),
    [
        ("node app.js", "'node app.js'"),
        ("", "''"),
        ("python app.py | tee log", "'python app.py | tee log'"),
        ("python $APP", "'python $APP'"),
    ],
)
def test_an_app_that_is_not_run_by_python_alone(project: Path, tmp_path: Path, app: str, shown: str) -> None:
    write(project / "cdk.json", json.dumps({"app": app}))
    old = library(tmp_path / "old", "0.1.0")
    assert refusal(project, str(old)) == (
        f'hyperpod-cdk 0.1.0 of {old}: "app" in cdk.json must be python with its arguments, got {shown}; give the '
        "cloud assemblies of both versions instead of the virtual environment"
    )


def test_submodules_and_large_files(project: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    git(tmp_path, "init", "-q", "-b", "main", "other")
    write(other / "file.txt", "x")
    commit(other, "other")
    git(project, "submodule", "--quiet", "add", str(other), "sub")
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    write(project / "big.bin", pointer)
    write(project.parent / ".gitattributes", "*.zip filter=lfs\n")
    commit(project, "submodule")
    base, _ = compared(project, "main")
    assert base
    assert properties(base)["Sub"] is True
    assert base.notes[0] == (
        "main: 1 file of Git LFS is a pointer, because nothing is fetched; an asset with such a file may seem to "
        "differ."
    )
    write(other / "file.txt", "y")
    commit(other, "other two")
    git(project / "sub", "pull", "-q")
    base, _ = compared(project, "main")
    assert base
    assert properties(base)["Sub"] is False
    assert base.notes[0] == "main: the submodule infra/sub is not here at its commit and was left empty."


def test_the_refusal_of_an_app_whose_python_is_elsewhere_says_why(project: Path, tmp_path: Path) -> None:
    """As where the command is installed by pipx, and the project's virtual environment is made from another Python."""
    elsewhere = tmp_path / "elsewhere" / "bin" / "python"
    write(elsewhere, "#!/bin/sh\n")
    elsewhere.chmod(0o755)
    (project / ".venv" / "bin").mkdir(parents=True)
    (project / ".venv" / "bin" / "python").symlink_to(elsewhere)
    write(project / "cdk.json", json.dumps({"app": ".venv/bin/python app.py"}))
    commit(project, "its own Python")
    # both sides run at once
    assert refusal(project, "main").partition(": ")[2] == (
        "the app ended with exit code 127; nothing was compared; an isolated app can read its project, the system's "
        f"programs and the Python of this command, {sys.prefix}: install hyperpod-cdk with the app's Python, or add "
        "--trusted"
    )


def test_the_output_of_an_app_that_fails_is_shown(project: Path) -> None:
    write(project / "environments" / "dev.yaml", "refused: 1\n")
    with pytest.raises(SynthesisError) as caught:
        compared(project, "main")
    assert str(caught.value) == "working tree: the app ended with exit code 1; nothing was compared"
    assert caught.value.output == "environments/dev.yaml:1: refused for a reason\n"
    commit(project, "refused")
    write(project / "environments" / "dev.yaml", "silent: 1\n")
    said = refusal(project, "main")
    assert said == "main: the app ended with exit code 1; nothing was compared"
    assert refusal(project, "main~1") == (
        "working tree: the app ended without writing a cloud assembly; nothing was compared"
    )


def assembly(folder: Path, name: str = "dev") -> Path:
    stack = {"type": "aws:cloudformation:stack", "properties": {"stackName": f"{name}-x", "templateFile": "t.json"}}
    write(folder / "manifest.json", json.dumps({"artifacts": {"x": stack}}))
    write(folder / "t.json", json.dumps({"Resources": {"It": {"Type": "T", "Properties": {"From": name}}}}))
    return folder


def test_assemblies_that_are_there(project: Path, tmp_path: Path) -> None:
    one, two = assembly(tmp_path / "one"), assembly(tmp_path / "two")
    base, head = compared(project, str(one), str(two), None)
    assert base
    assert head
    assert (base.side.label, head.side.label) == (str(one), str(two))
    assert base.notes == (f"{one} is a cloud assembly: it is unknown from which environment file it was synthesized.",)
    base, head = compared(project, str(one))
    assert properties(base) == {"From": "dev"}
    assert properties(head)["Environment"] == "first: 1"
    assert compared(project, None, str(two))[0] is None


def test_what_an_assembly_was_made_from(project: Path, tmp_path: Path) -> None:
    first = git(project, "rev-parse", "HEAD")
    one = assembly(tmp_path / "one")
    with sources(project, "dev", base="main", head=str(one), head_revision="main") as (base, head):
        assert base
        assert properties(head) == {"From": "dev"}
        assert (head.side.label, head.side.commit, head.side.environment_file) == (
            "main",
            first,
            "environments/dev.yaml",
        )
    for given, revision, said in (
        ("main", "main", "--head-revision: --head is already a revision; give the folder of a cloud assembly"),
        (str(one), str(one), f"--head-revision: must be a Git revision, got the cloud assembly {one}"),
    ):
        with (
            pytest.raises(AssemblyError) as caught,
            sources(project, "dev", base="main", head=given, head_revision=revision),
        ):
            pass
        assert str(caught.value) == said


def test_a_folder_that_is_an_assembly_comes_before_a_revision_of_its_name(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assembly(tmp_path / "main")
    monkeypatch.chdir(tmp_path)
    base, _ = compared(project, "main")
    assert properties(base) == {"From": "dev"}


def test_links_that_lead_to_files_of_the_reader_are_not_followed(project: Path, tmp_path: Path) -> None:
    write(tmp_path / "secret.json", '{"context": {"stolen": true}}')
    (project / "cdk.context.json").symlink_to(tmp_path / "secret.json")
    (project / "inner").symlink_to("data.txt")
    git(project, "add", "-f", "cdk.context.json")
    commit(project, "links")
    (project / "cdk.context.json").unlink()
    base, _ = compared(project, "main")
    assert base
    assert base.notes[0] == "main: the link infra/cdk.context.json leads out of the repository and was omitted."
    assert not any("inner" in note for note in base.notes)
    assert "stolen" not in str(properties(base)["Context"])


def test_an_assembly_names_no_file_of_the_reader(project: Path, tmp_path: Path) -> None:
    write(tmp_path / "secret.json", json.dumps({"Resources": {"It": {"Type": "T"}}}))
    one = assembly(tmp_path / "one")
    manifest = json.loads((one / "manifest.json").read_text())
    manifest["artifacts"]["x"]["properties"]["templateFile"] = "../secret.json"
    write(one / "manifest.json", json.dumps(manifest))
    assert refusal(project, str(one), str(one), None) == (
        f"{one}/manifest.json: names a file outside of its folder: ../secret.json"
    )
    two = assembly(tmp_path / "two")
    (two / "asset").symlink_to(tmp_path)
    assert refusal(project, str(two), str(two), None) == (
        f"{two}: the cloud assembly contains a link out of its folder: asset"
    )


def test_an_app_that_takes_too_long(project: Path) -> None:
    write(project / "cdk.json", json.dumps({"app": "echo begun; sleep 60"}))
    with (
        pytest.raises(SynthesisError) as caught,
        sources(project, "dev", base=None, head=None, limits=Limits(seconds=3)),
    ):
        pass
    assert str(caught.value) == (
        "working tree: the app was stopped: it took longer than 3 seconds; nothing was compared"
    )
    assert caught.value.output == "begun\n"


def test_what_runs_as_the_users_own_program_is_reported(project: Path) -> None:
    with sources(project, "dev", base="main", head=None, limits=Limits(is_trusted=True)) as (base, head):
        assert base
        for side, label in ((base, "main"), (head, "working tree")):
            could = "it could read what your user can read, and use the network."
            assert side.exposed == (
                f"{label}: its app ran without namespaces of its own (this was requested): {could}",
            )
            assert side.notes[-1:] == side.exposed


def test_what_is_neither_an_assembly_nor_a_revision(project: Path, tmp_path: Path) -> None:
    wanted = "must be the folder of a cloud assembly or a Git revision"
    folder, file = project / "charts", project / "app.py"
    assert refusal(project, "-x") == f"--base: {wanted}, got '-x'"
    assert refusal(project, "") == f"--base: {wanted}, got ''"
    assert refusal(project, "main", "--upload-pack=x") == f"--head: {wanted}, got '--upload-pack=x'"
    assert refusal(project, "a\nb") == f"--base: {wanted}, got 'a\\nb'"
    assert refusal(project, "nowhere") == (f"--base: {wanted}, and 'nowhere' is neither here; 'git fetch' may get it")
    assert refusal(project, "x" * 5000).startswith(f"--base: {wanted}, and 'xxx")
    assert refusal(project, "HEAD:infra/app.py").startswith(f"--base: {wanted}, and 'HEAD:infra/app.py' is neither")
    assert refusal(project, str(folder)) == (
        f"--base: {folder} is not a cloud assembly, because it has no manifest.json; nor is it a revision"
    )
    assert refusal(project, str(file)) == (
        f"--base: {file} is a file; give the folder of a cloud assembly, or use --template for one file"
    )
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert refusal(project, str(loop)).startswith(f"--base: {wanted}, and ")


def test_outside_of_a_repository(tmp_path: Path) -> None:
    write(tmp_path / "environments" / "dev.yaml", "a: 1\n")
    assert refusal(tmp_path, "main") == (
        "--base: 'main' is not a folder, and no revision can be looked up: not a git repository (or any of the "
        "parent directories): .git"
    )


def test_which_environment(project: Path, tmp_path: Path) -> None:
    assert refusal(project, "main", None, None) == (
        "name the environment, as in 'hyperpod-cdk review ENV'; there is dev"
    )
    assert refusal(project, "main", None, "dve") == (
        f'no environment "dve" in {project / "environments"}; did you mean dev?'
    )
    write(project / "environments" / "qa.yaml", "a: 1\n")
    assert refusal(project, "main", "main", "qa") == 'no environment "qa" in main or main'
    (project / "environments" / "all.yaml").mkdir()
    said = refusal(project, "main", None, "all")
    assert said == f"{project / 'environments' / 'all.yaml'} is a folder; name the file itself"
    outside = tmp_path / "outside.yaml"
    write(outside, "a: 1\n")
    assert refusal(project, "main", None, str(outside)) == (
        f"{outside} is outside of the project {project}; no revision of the project contains it"
    )


def test_another_environment_than_asked(project: Path, tmp_path: Path) -> None:
    other = assembly(tmp_path / "other", "prod")
    assert refusal(project, str(other)) == f"{other}: contains no environment 'dev'; there are the stacks prod-x"
    write(project / "environments" / "dev.yaml", "renamed: 1\n")
    assert refusal(project, "main") == (
        "the base is environment 'dev', the head 'renamed': they have no stack in common; "
        "a review compares one environment with itself"
    )


def test_a_project_without_an_app(project: Path) -> None:
    (project / "app.py").unlink()
    (project / "cdk.json").unlink()
    assert refusal(project, "main") == (
        'working tree: has neither an "app" in cdk.json nor an app.py, so there is nothing to run'
    )
    write(project / "cdk.json", '{"app": ')
    assert (
        refusal(project, "main") == "working tree: cdk.json cannot be read: Expecting value: line 1 column 9 (char 8)"
    )


def test_a_command_of_a_shell(project: Path) -> None:
    write(project / "cdk.json", json.dumps({"app": "X=1 python app.py && true"}))
    _, head = compared(project, "main")
    assert properties(head)["Environment"] == "first: 1"


def environment(name: str, *, region: str = "us-east-1", count: int = 1) -> str:
    return f'first: {count}\nname: {name}\naccount: "111122223333"\nregion: {region}\n'


def files(project: Path, base: dict[str, str], head: dict[str, str]) -> None:
    """Commit one set of environment files, and leave another one in the working tree."""
    folder = project / "environments"
    for texts in (base, head):
        shutil.rmtree(folder)
        for file, text in texts.items():
            write(folder / f"{file}.yaml", text)
        if texts is base:
            commit(project, "base")


@pytest.mark.parametrize("name", ["dev", "moved"])
def test_a_moved_file_is_still_its_environment(project: Path, name: str) -> None:
    """Both names of the file, of which a pipeline reviews each, compare the same two sides."""
    files(project, {"dev": environment("dev")}, {"moved": environment("dev", count=2)})
    base, head = compared(project, "main", name=name)
    assert base
    assert head
    assert (properties(base)["Environment"], properties(head)["Environment"]) == ("first: 1", "first: 2")
    said = [note for side in (base, head) for note in side.notes if "has the environment" in note]
    where = ("main", "dev") if name == "moved" else ("working tree", "moved")
    assert said == [f"{where[0]} has the environment dev in environments/{where[1]}.yaml."]


def test_files_that_swap_their_environments(project: Path) -> None:
    files(
        project,
        {"a": environment("dev"), "b": environment("other", count=7)},
        {"a": environment("other", count=8), "b": environment("dev", count=2)},
    )
    base, _ = compared(project, "main", name="b")
    assert base
    assert properties(base)["Environment"] == "first: 1"


@pytest.mark.parametrize(
    ("after", "where"),
    [
        (environment("dev", region="us-west-2"), "dev in 111122223333 us-west-2"),
        (environment("dev").replace("111122223333", "444455556666"), "dev in 444455556666 us-east-1"),
    ],
)
def test_a_file_that_becomes_another_environment(project: Path, after: str, where: str) -> None:
    files(project, {"dev": environment("dev")}, {"dev": after})
    base, _ = compared(project, "main")
    assert base
    assert base.assembly.stacks
    assert base.notes[0] == (
        "main: environments/dev.yaml is another environment there, dev in 111122223333 us-east-1; "
        f"working tree creates {where} in addition to it."
    )


def test_a_file_that_becomes_another_environment_and_leaves_its_own_to_a_new_one(project: Path) -> None:
    files(
        project,
        {"dev": environment("dev")},
        {"dev": environment("dev", region="us-west-2"), "old": environment("dev")},
    )
    base, head = compared(project, "main")
    assert base
    assert head
    assert (base.assembly, len(head.assembly.stacks)) == (EMPTY, 1)
    same, _ = compared(project, "main", name="old")
    assert same
    assert same.assembly.stacks


@pytest.mark.parametrize(
    ("stated", "tags"),
    [
        ([{"Key": "owner", "Value": "research"}, {"Key": "é", "Value": ""}], {"owner": "research", "é": ""}),
        # the CDK CLI takes nothing but a list
        ({"owner": "research"}, {}),
        ([], {}),
        (None, {}),
    ],
)
def test_the_tags_of_the_project_stand_for_those_of_the_app(
    project: Path, stated: object, tags: dict[str, str]
) -> None:
    write(project / "cdk.json", json.dumps({"app": "python -IS app.py", "tags": stated}))
    base, head = compared(project, "HEAD")
    assert base is not None
    assert head is not None
    assert [each.tags for each in (*base.assembly.stacks, *head.assembly.stacks)] == [{}, tags]
    # an assembly that lies there is deployed from the same folder
    assembly = project / "cdk.out"
    shutil.copytree(_written(project), assembly)
    (_, again) = compared(project, str(assembly), str(assembly), None)
    assert again is not None
    assert [each.tags for each in again.assembly.stacks] == [tags]


def _written(project: Path) -> Path:
    out = project.parent / "out"
    context = json.dumps({"env": "dev"})
    variables = {**os.environ, "CDK_OUTDIR": str(out), "CDK_CONTEXT_JSON": context}
    subprocess.run(["python", "-IS", "app.py"], cwd=project, check=True, env=variables)  # noqa: S607 - as the app's
    return out


@pytest.mark.parametrize("wrong", ["owner=research", {"Key": "owner"}, {"Key": 1, "Value": "x"}])
def test_tags_of_the_project_that_cloudformation_refuses(project: Path, wrong: object) -> None:
    write(project / "cdk.json", json.dumps({"app": "python -IS app.py", "tags": [wrong]}))
    said = refusal(project, None)
    assert said == f'tags in cdk.json: must be {{"Key": "...", "Value": "..."}}, got {json.dumps(wrong)}'


def test_what_the_caller_loads_is_loaded_while_the_apps_run(project: Path) -> None:
    """The app waits for what is written meanwhile: called after its end, this would meet the limit of time."""
    wait = "import time\nwhile not os.path.exists('meanwhile.txt'): time.sleep(0.01)\n"
    write(project / "app.py", APP.replace("context = json", f"{wait}context = json", 1))
    limits = Limits(seconds=60)
    with sources(
        project, "dev", base=None, head=None, limits=limits, meanwhile=(project / "meanwhile.txt").touch
    ) as found:
        assert found[0] is None
        assert [stack.name for stack in found[1].assembly.stacks] == ["dev-x"]


def test_ctrl_c_stops_the_apps_of_both_sides(project: Path) -> None:
    # a time of its own, because other tests may run beside this one
    seconds = str(80_000 + os.getpid())
    write(project / "app.py", f"import subprocess; subprocess.run(['sleep', '{seconds}'])")
    git(project, "commit", "-qam", "an app that sleeps")

    def interrupted() -> None:
        raise KeyboardInterrupt

    begun = time.monotonic()
    with (
        pytest.raises(KeyboardInterrupt),
        sources(project, "dev", base="HEAD", head=None, limits=Limits(seconds=60), meanwhile=interrupted),
    ):
        pass
    assert time.monotonic() - begun < 30
    assert sleeping(seconds) == []


IMPORTS_OF_OTHER_THREADS = """
import sys
from importlib.abc import MetaPathFinder
from importlib import import_module
from pathlib import Path
from threading import current_thread, main_thread

from hyperpod_cdk.review.sources import sources


class Finder(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.startswith("hyperpod_cdk"):
            print(name if current_thread() is not main_thread() else "main thread")


sys.meta_path.insert(0, Finder())
with sources(Path(sys.argv[1]), "dev", base="HEAD", head=None, meanwhile=lambda: import_module(sys.argv[2])):
    pass
"""


def test_only_one_thread_imports(project: Path) -> None:
    """Two threads that import what imports each other end in a traceback, now and then."""
    command = [sys.executable, "-c", IMPORTS_OF_OTHER_THREADS, str(project), "hyperpod_cdk.transitions.plan"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert set(done.stdout.splitlines()) == {"main thread"}
