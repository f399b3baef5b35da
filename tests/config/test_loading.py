"""Loading an environment by path: unreadable files, names, lines, environments with the same name."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from pydantic import ValidationError

from hyperpod_cdk._cli.common import environment_file, root_of
from hyperpod_cdk.config import (
    EnvironmentFileError,
    LoadedEnvironment,
    UsageError,
    environment_names,
    load_environment,
    missing_scripts,
    resolve_environment_file,
    shared_names,
)
from hyperpod_cdk.config.loading import called

Changed = Callable[[Mapping[str, str]], str]
Load = Callable[[str], LoadedEnvironment]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, base: str) -> Path:
    """A project with one environment, and the working directory inside it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments" / "prod.yaml").write_text(base, encoding="utf-8")
    return tmp_path


def lines(path: Path) -> list[str]:
    with pytest.raises(EnvironmentFileError) as caught:
        load_environment(path)
    assert str(caught.value) == "\n".join(finding.render() for finding in caught.value.findings)
    return [finding.render() for finding in caught.value.findings]


def test_a_file_is_shown_from_the_working_directory(folder: Path) -> None:
    assert load_environment(folder / "environments" / "prod.yaml").file == "environments/prod.yaml"


def test_a_file_elsewhere_is_shown_in_full(folder: Path, tmp_path_factory: pytest.TempPathFactory, base: str) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "prod.yaml"
    elsewhere.write_text(base, encoding="utf-8")
    assert folder not in elsewhere.parents
    assert load_environment(elsewhere).file == str(elsewhere)


@pytest.mark.usefixtures("folder")
def test_missing_file() -> None:
    assert lines(Path("environments/dev.yaml")) == [
        "environments/dev.yaml: does not exist; create it with 'hyperpod-cdk init NAME'"
    ]


@pytest.mark.usefixtures("folder")
def test_folder() -> None:
    assert lines(Path("environments")) == ["environments: is a folder; name the file itself"]


def test_pipe(folder: Path) -> None:
    os.mkfifo(folder / "pipe.yaml")
    assert lines(Path("pipe.yaml")) == ["pipe.yaml: is not a regular file; name a file"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_unreadable_file(folder: Path) -> None:
    (folder / "environments" / "prod.yaml").chmod(0)
    assert lines(Path("environments/prod.yaml")) == [
        "environments/prod.yaml: cannot be read: Permission denied; check its name and its permissions"
    ]


@pytest.mark.usefixtures("folder")
def test_name_too_long_for_the_file_system() -> None:
    (line,) = lines(Path("n" * 300))
    assert line.endswith(": cannot be read: File name too long; check its name and its permissions")


def test_ten_megabytes(folder: Path) -> None:
    (folder / "big.yaml").write_text("a" * 10_000_000, encoding="utf-8")
    (line,) = lines(Path("big.yaml"))
    assert line == (
        "big.yaml: must have at most 1000000 bytes, got 10000000; an environment file is much smaller: name the right"
        " file"
    )


def test_ten_megabytes_of_text(load: Load) -> None:
    with pytest.raises(EnvironmentFileError, match="must have at most 1000000 bytes, got 10000000"):
        load("a" * 10_000_000)


@pytest.mark.parametrize(
    ("raw", "line"),
    [
        (b"name: prod\nregion: \xff\n", "prod.yaml:2: is not UTF-8 text: byte 0xff; save it as UTF-8"),
        ("name: prod".encode("utf-16"), "prod.yaml:1: is not UTF-8 text: byte 0xff; save it as UTF-8"),
        (
            b"",
            (
                "prod.yaml:1: is empty; write at least name, account, region, network and hyperpod, or create a new"
                " file with 'hyperpod-cdk init NAME'"
            ),
        ),
    ],
)
def test_bytes_that_are_no_text(folder: Path, raw: bytes, line: str) -> None:
    (folder / "prod.yaml").write_bytes(raw)
    assert lines(Path("prod.yaml")) == [line]


def test_windows_text(folder: Path, base: str) -> None:
    path = folder / "environments" / "prod.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + base.replace("\n", "\r\n").encode())
    loaded = load_environment(path)
    assert loaded.line_of("eks.kubernetes_version") == 15


def test_lines_of_paths(base: str, load: Load) -> None:
    loaded = load(base)
    rows = base.splitlines()
    for path, text in {
        "name": "name: prod",
        "network.availability_zones.use1-az4": "    use1-az4: {node_cidr: 10.2.0.0/16}",
        "hyperpod.instance_groups[1].count": "      count: 2",
        "hyperpod.instance_groups[1]": "    - name: h100",
        "hyperpod.instance_groups[1].taints[0].key": "    - name: h100",
        "task_governance.teams[0].quota[0].count": "      quota: [{instance_type: ml.p5.48xlarge, count: 2}]",
        "instance_types": "name: prod",
    }.items():
        line = loaded.line_of(path)
        assert line is not None
        assert rows[line - 1] == text
    assert loaded.line_of("no path") is None


def test_a_loaded_environment_cannot_change(base: str, load: Load) -> None:
    environment = load(base).environment
    with pytest.raises(ValidationError, match="frozen"):
        environment.name = "other"  # type: ignore[misc]  # that is what must not work


def test_values_are_shown_short_and_on_one_line(changed: Changed, load: Load) -> None:
    text = changed({"node_recovery: automatic": f'node_recovery: "a\\nb{"c" * 5000}"'})
    with pytest.raises(EnvironmentFileError) as caught:
        load(text)
    (finding,) = caught.value.findings
    assert finding.message.startswith('must be automatic or none, got "a\\nbccc')
    assert "\n" not in finding.message
    assert len(finding.message) < 200


@pytest.mark.usefixtures("folder")
class TestResolve:
    def test_name(self, folder: Path) -> None:
        assert resolve_environment_file("prod", folder) == folder / "environments" / "prod.yaml"

    @pytest.mark.parametrize("text", ["environments/prod.yaml", "prod.yaml", "./environments/prod.yaml"])
    def test_path(self, folder: Path, text: str) -> None:
        assert resolve_environment_file(text, folder).samefile(folder / "environments" / "prod.yaml")

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("prd", 'no environment "prd" in environments; did you mean prod?'),
            ("zzz", 'no environment "zzz" in environments; there is prod'),
            ("environments/prd.yaml", "no file environments/prd.yaml; did you mean prod?"),
            ("../x.yaml", "no file ../x.yaml; there is prod"),
            ("n" * 300, f'no environment "{"n" * 300}" in environments; there is prod'),
            ("", "ENV must be the name of an environment or the path of its file, got ''"),
            ("a\0b", "ENV must be the name of an environment or the path of its file, got 'a\\x00b'"),
        ],
    )
    def test_nothing_there(self, folder: Path, text: str, message: str) -> None:
        with pytest.raises(UsageError) as caught:
            resolve_environment_file(text, folder)
        assert str(caught.value) == message

    def test_a_name_that_a_file_states(self, folder: Path, base: str) -> None:
        """Messages name an environment as its stacks are named; its file may be called otherwise."""
        moved = (folder / "environments" / "prod.yaml").rename(folder / "environments" / "eu.yaml")
        (folder / "environments" / "broken.yaml").write_text("name: [", encoding="utf-8")
        assert resolve_environment_file("prod", folder) == moved
        (folder / "environments" / "us.yaml").write_text(base, encoding="utf-8")
        with pytest.raises(UsageError, match="there are broken, eu, us"):
            resolve_environment_file("prod", folder)

    def test_no_environment_yet(self, folder: Path) -> None:
        (folder / "environments" / "prod.yaml").unlink()
        with pytest.raises(UsageError) as caught:
            resolve_environment_file("prod", folder)
        assert str(caught.value) == (
            'no environment "prod" in environments; environments/ holds no environment yet;'
            " create one with 'hyperpod-cdk init NAME'"
        )

    def test_names_are_sorted_files(self, folder: Path, base: str) -> None:
        (folder / "environments" / "dev.yaml").write_text(base, encoding="utf-8")
        (folder / "environments" / "old.yaml").mkdir()
        (folder / "environments" / "notes.txt").write_text("", encoding="utf-8")
        assert environment_names(folder) == ["dev", "prod"]


def test_environments_of_one_name(folder: Path, base: str) -> None:
    (folder / "environments" / "prod.yaml").rename(folder / "environments" / "other.yaml")
    (folder / "environments" / "copy.yaml").write_text(base, encoding="utf-8")
    copy, other = (load_environment(Path(f"environments/{name}.yaml")) for name in ("copy", "other"))
    assert shared_names([copy]) == []
    assert [finding.render() for finding in shared_names([copy, other])] == [
        (
            'environments/other.yaml:1 name: must be unique among environments/, got "prod" as in'
            " environments/copy.yaml; rename one of the two"
        )
    ]


def test_a_copy_that_still_has_the_name_of_its_original(folder: Path, base: str) -> None:
    """Read alone, as 'deploy staging' does, it would change the stacks of prod."""
    staging = folder / "environments" / "staging.yaml"
    staging.write_text(base, encoding="utf-8")
    with pytest.raises(EnvironmentFileError) as refused:
        load_environment(Path("environments/staging.yaml"))
    assert [finding.render() for finding in refused.value.findings if finding.path == "name"] == [
        (
            'environments/staging.yaml:1 name: must be unique among environments/, got "prod" as in'
            " environments/prod.yaml, whose stacks every command of this file would change; set name: staging"
        )
    ]
    staging.write_text(base.replace("name: prod", "name: staging"), encoding="utf-8")
    assert load_environment(Path("environments/staging.yaml")).environment.name == "staging"
    # what is called prod.yaml is another environment, or none
    staging.write_text(base, encoding="utf-8")
    for text in (base.replace("name: prod", "name: live"), "name: [prod"):
        (folder / "environments" / "prod.yaml").write_text(text, encoding="utf-8")
        assert load_environment(Path("environments/staging.yaml")).environment.name == "prod"


def test_hyperpod_clusters_of_one_name(folder: Path, base: str) -> None:
    def named(name: str, *, account: str = "111122223333") -> LoadedEnvironment:
        path = folder / "environments" / f"{name}.yaml"
        text = base.replace("name: prod\n", f"name: {name}\n", 1).replace("111122223333", account)
        path.write_text(text.replace("cluster_name: null", "cluster_name: shared"), encoding="utf-8")
        return load_environment(path)

    first, second, elsewhere = named("first"), named("second"), named("third", account="444455556666")
    assert [finding.render() for finding in shared_names([first, second, elsewhere])] == [
        (
            "environments/second.yaml:21 hyperpod.cluster_name: must be unique among the HyperPod clusters of"
            ' 111122223333 in us-east-1, got "shared" as in environments/first.yaml; rename one of the two'
        )
    ]


def test_lifecycle_scripts_that_are_not_there(folder: Path, base: str) -> None:
    prod = folder / "environments" / "prod.yaml"
    prod.write_text(base.replace("volume_gib: 500", "on_create: on_craete.sh"), encoding="utf-8")
    loaded = load_environment(prod)
    scripts = folder / "lifecycle_scripts"
    at = "environments/prod.yaml:37 hyperpod.instance_groups[1].on_create"
    assert [finding.render() for finding in missing_scripts([loaded], scripts)] == [
        (
            f"{at}: must be a script in the library's folder, since there is no lifecycle_scripts/, got"
            ' "on_craete.sh"; did you mean on_create.sh?'
        )
    ]
    scripts.mkdir()
    (scripts / "on_create.sh").write_text("#!/bin/bash\n")
    assert [finding.render() for finding in missing_scripts([loaded], scripts)] == [
        f'{at}: must be a script in lifecycle_scripts/, got "on_craete.sh"; did you mean on_create.sh?'
    ]
    (scripts / "on_craete.sh").write_text("echo\n")
    assert [finding.render() for finding in missing_scripts([loaded], scripts)] == [
        (
            f"{at}: names a script that no node can start: lifecycle_scripts/on_craete.sh:1 must name its interpreter,"
            ' got "echo"; make the first line #!/usr/bin/env bash'
        )
    ]


@pytest.mark.parametrize("excluded", [".git/hook.sh", "__pycache__/on_create.sh"])
def test_lifecycle_scripts_that_are_not_uploaded(folder: Path, base: str, excluded: str) -> None:
    prod = folder / "environments" / "prod.yaml"
    prod.write_text(base.replace("volume_gib: 500", f"on_create: {excluded}"), encoding="utf-8")
    scripts = folder / "lifecycle_scripts"
    for name in ("on_create.sh", excluded):
        (scripts / name).parent.mkdir(parents=True, exist_ok=True)
        (scripts / name).write_text("#!/bin/bash\n")
    assert [finding.path for finding in missing_scripts([load_environment(prod)], scripts)] == [
        "hyperpod.instance_groups[1].on_create"
    ]


CALLED = [
    # the folder that a command runs in, the file, what a command there takes for it
    ("ours", "ours/environments/prod.yaml", "prod"),
    ("ours/scripts", "ours/environments/prod.yaml", "prod"),
    ("ours/environments", "ours/environments/prod.yaml", "prod"),
    ("ours", "ours/team/prod.yaml", "team/prod.yaml"),
    ("ours", "ours/team/of all.yaml", "'team/of all.yaml'"),
    ("ours", "ours/environments/of all.yaml", "'of all'"),
    ("ours", "ours/environments/prod.yml", "environments/prod.yml"),
    ("ours", "theirs/environments/prod.yaml", "prod --project {up}/theirs"),
    ("ours", "theirs/team/prod.yaml", "{up}/theirs/team/prod.yaml --project {up}/theirs"),
    ("ours", "prod.yaml", "{up}/prod.yaml"),
    (".", "ours/environments/prod.yaml", "prod --project ours"),
    (".", "prod.yaml", "prod.yaml"),
]


@pytest.mark.parametrize(("here", "file", "words"), CALLED)
def test_a_command_finds_an_environment_by_what_messages_call_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, here: str, file: str, words: str
) -> None:
    for name in ("ours/environments", "ours/team", "ours/scripts", "theirs/environments", "theirs/team"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / file).touch()
    monkeypatch.chdir(tmp_path / here)
    said = called(tmp_path / file)
    assert said == words.format(up=tmp_path)
    name, *option = shlex.split(said)
    assert option[:1] in ([], ["--project"])
    root = root_of(Path(option[1]) if option else None)
    assert environment_file(name, root).samefile(tmp_path / file)
