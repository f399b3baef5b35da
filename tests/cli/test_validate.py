"""`hyperpod-cdk validate`: exit codes, lines and JSON."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]


def break_dev(workspace: Path) -> None:
    path = workspace / "environments" / "dev.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("count: 4", "count: -4"), encoding="utf-8")


def test_right_file(run_process: Run) -> None:
    done = run_process("validate", "dev")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1].startswith("environments/dev.yaml: ok")


def test_every_environment_when_none_is_named(run: Run, workspace: Path) -> None:
    (workspace / "environments" / "empty.yaml").write_text("", encoding="utf-8")
    done = run("validate")
    assert done.returncode == 1
    assert "environments/dev.yaml: ok" in done.stdout
    assert done.stdout.splitlines()[-2:] == [
        (
            "environments/empty.yaml:1: is empty; write at least name, account, region, network and hyperpod, or"
            " create a new file with 'hyperpod-cdk init NAME'"
        ),
        "1 of 2 files refused, 1 error",
    ]


def test_wrong_file(run: Run, workspace: Path) -> None:
    break_dev(workspace)
    done = run("validate", "dev")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines() == [
        "environments/dev.yaml:32 hyperpod.instance_groups[1].count: must be at least 0, got -4; set count: 0 or more",
        "1 of 1 file refused, 1 error",
    ]


def test_a_name_that_is_mistyped_hides_no_mistake_elsewhere(run: Run, workspace: Path) -> None:
    break_dev(workspace)
    done = run("validate", "prdo", "dev", "./nowhere.yaml")
    assert done.returncode == 2
    assert done.stdout.splitlines()[-1] == "1 of 1 file refused, 1 error"
    assert done.stderr.splitlines() == [
        'no environment "prdo" in environments; there is dev',
        "no file ./nowhere.yaml; there is dev",
    ]


def test_a_name_is_shown_without_what_a_terminal_obeys(run: Run) -> None:
    said = "'a\\x1b[2J': must not contain a line break or another control character; omit it\n"
    assert run("validate", "a\x1b[2J").stderr == said


def test_warning_keeps_exit_code_0(run: Run, workspace: Path) -> None:
    path = workspace / "environments" / "dev.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace('"1.35"', '"1.31"'), encoding="utf-8")
    done = run("validate", "dev")
    assert done.returncode == 0
    first, last = done.stdout.splitlines()
    assert first.startswith("warning environments/dev.yaml:19 eks.kubernetes_version: EKS ")
    assert last == "environments/dev.yaml: ok, 1 warning"


@pytest.mark.parametrize(
    ("words", "is_judge"),
    [
        (("preflight", "dev", "--offline"), True),
        (("rehearse", "dev"), True),
        (("deploy", "dev"), True),
        (("job", "render", "dev", "--kind", "dcgm"), False),
        (("job", "admit", "dev", "job.yaml"), False),
        (("image", "render", "dev", "--group", "workers"), False),
        (("teams", "cost", "dev"), False),
        (("charts", "images", "dev"), False),
        (("upgrade", "dev", "--offline"), False),
        (("status", "dev"), False),
        (("node", "list", "dev"), False),
        (("node", "describe", "dev", "i-0a1b2c3d4e5f67890"), False),
        (("quotas", "show", "dev"), False),
        (("quotas", "request", "dev"), False),
        (("plans", "search", "dev"), False),
        (("plans", "record", "dev"), False),
        (("plans", "extend", "dev"), False),
        (("bootstrap-policy", "dev", "--head", "cdk.out"), False),
    ],
)
def test_only_who_judges_a_file_warns_of_it(
    run: Run,
    workspace: Path,
    words: tuple[str, ...],
    is_judge: bool,  # noqa: FBT001 - a table
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = workspace / "environments" / "dev.yaml"
    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if "public_access_cidrs" not in line]
    file.write_text("\n".join(lines), encoding="utf-8")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    done = run(*words, AWS_CONFIG_FILE="none", AWS_SHARED_CREDENTIALS_FILE="none", AWS_EC2_METADATA_DISABLED="true")
    assert ("eks.public_access_cidrs" in done.stderr) is is_judge, done.stderr


def test_json(run: Run, workspace: Path) -> None:
    break_dev(workspace)
    done = run("validate", "dev", "--format", "json")
    assert done.returncode == 1
    assert json.loads(done.stdout) == {
        "passed": False,
        "files": [
            {
                "file": "environments/dev.yaml",
                "passed": False,
                "findings": [
                    {
                        "severity": "error",
                        "message": "must be at least 0, got -4; set count: 0 or more",
                        "path": "hyperpod.instance_groups[1].count",
                        "file": "environments/dev.yaml",
                        "line": 32,
                        "rule": "bounds",
                    }
                ],
            }
        ],
    }


def test_json_of_right_files(run: Run) -> None:
    answer = json.loads(run("validate", "--format", "json").stdout)
    assert answer["passed"] is True
    assert [each["file"] for each in answer["files"]] == ["environments/dev.yaml"]


@pytest.mark.parametrize("name", ["environments/dev.yaml", "./environments/dev.yaml"])
def test_path(run: Run, name: str) -> None:
    assert run("validate", name).returncode == 0


def test_from_a_folder_below(run: Run, workspace: Path) -> None:
    below = workspace / "stacks" / "deep"
    below.mkdir(parents=True)
    assert run("validate", "dev", cwd=below).returncode == 0


def test_project_option(run: Run, workspace: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    assert run("validate", "--project", str(workspace), cwd=elsewhere).returncode == 0


def test_unknown_environment(run: Run) -> None:
    done = run("validate", "dve")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == 'no environment "dve" in environments; did you mean dev?\n'


def test_no_environment(run: Run, workspace: Path) -> None:
    (workspace / "environments" / "dev.yaml").unlink()
    done = run("validate")
    assert (done.returncode, done.stdout) == (2, "")
    assert "create one with 'hyperpod-cdk init NAME'" in done.stderr


def test_two_environments_of_one_name(run: Run, workspace: Path) -> None:
    text = (workspace / "environments" / "dev.yaml").read_text(encoding="utf-8")
    (workspace / "environments" / "copy.yaml").write_text(text, encoding="utf-8")
    done = run("validate")
    assert done.returncode == 1
    assert (
        'environments/copy.yaml:9 name: must be unique among environments/, got "dev" as in environments/dev.yaml,'
        " whose stacks every command of this file would change; set name: copy"
    ) in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["validate", "--format", "xml"],
        ["validate", "--nonsense"],
        ["nonsense"],
        ["validate", "--project", "/no/such/folder"],
        ["validate", "no/such.yaml"],
        ["validate", "n" * 300],
        ["validate", ""],
    ],
)
def test_usage_is_exit_code_2_without_traceback(run: Run, arguments: list[str]) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr
    assert "Traceback" not in done.stderr


def test_no_color_in_a_pipe(run: Run, workspace: Path) -> None:
    break_dev(workspace)
    assert "\x1b" not in run("validate", "dev").stdout


@pytest.mark.parametrize(("environment", "colored"), [({"TERM": "xterm"}, True), ({"NO_COLOR": "1"}, False)])
def test_color_on_a_terminal(workspace: Path, environment: dict[str, str], colored: bool) -> None:  # noqa: FBT001 - a table
    break_dev(workspace)
    terminal, slave = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", "from hyperpod_cdk.cli import main; main()", "validate"],
        cwd=workspace,
        env={**{key: value for key, value in os.environ.items() if key != "NO_COLOR"}, **environment},
        stdout=slave,
    ) as done:
        done.wait()
    os.close(slave)
    assert (b"\x1b[31menvironments/dev.yaml:32 " in os.read(terminal, 10_000)) is colored
    os.close(terminal)


def test_letters_that_the_terminal_cannot_show(run_process: Run, workspace: Path) -> None:
    path = workspace / "environments" / "dev.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("a10g", "größe"), encoding="utf-8")
    done = run_process("validate", PYTHONIOENCODING="ascii")
    assert done.returncode == 1
    assert 'got "gr\\xf6\\xdfe"' in done.stdout
    assert done.stderr == ""


def test_help_names_every_verb(run: Run) -> None:
    done = run("--help")
    assert done.returncode == 0
    for verb in ("validate", "schema", "init", "rehearse", "charts"):
        assert f"\n  {verb} " in done.stdout


def test_validate_imports_nothing_slow() -> None:
    """An editor or a commit hook runs it at every save."""
    code = (
        "import sys; sys.argv = ['hyperpod-cdk', 'validate', '--help'];import hyperpod_cdk.cli,"
        " hyperpod_cdk.config;print([m for m in ('aws_cdk', 'jsii', 'boto3', 'botocore', 'rich', 'rapidfuzz') if m"
        " in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_folder_is_all_its_files(run: Run, workspace: Path) -> None:
    copy = workspace / "environments" / "copy.yaml"
    copy.write_text((workspace / "environments" / "dev.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    done = run("validate", "environments")
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert any(line.startswith("environments/copy.yaml:9 name: must be unique among environments/") for line in lines)
    (workspace / "empty").mkdir()
    assert run("validate", "empty").stderr == "no environment file (*.yaml) in empty\n"
    # the project's own folder holds review.yaml, too
    (workspace / "review.yaml").write_text("thresholds: {}\n", encoding="utf-8")
    assert run("validate", ".").stdout == done.stdout
    unset = run("validate", "")
    assert (unset.returncode, unset.stdout) == (2, "")
    assert unset.stderr == "an argument is empty; omit it\n"


ALL_CLOSED = ">&- 2>&- <&-"
"""Each case is a process: `make test` closes every stream of one command, and all streams of every command."""


@pytest.mark.parametrize(
    ("closed", "words", "code"),
    [
        pytest.param(
            closed, words, code, marks=() if closed == ALL_CLOSED or words == "validate dev" else pytest.mark.examples
        )
        for closed in (">&-", "2>&-", "<&-", ALL_CLOSED)
        for words, code in (("validate dev", 0), ("validate nope", 2), ("schema", 0))
    ],
)
def test_closed_streams(workspace: Path, closed: str, words: str, code: int) -> None:
    command = f"{sys.executable} -c 'from hyperpod_cdk.cli import main; main()' {words} {closed}"
    done = subprocess.run(["/bin/bash", "-c", command], cwd=workspace, capture_output=True, text=True, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False)


@pytest.mark.parametrize("verb", ["validate", "preflight", "--version"])
def test_a_folder_that_is_gone(tmp_path: Path, verb: str) -> None:
    (tmp_path / "gone").mkdir()
    code = "import os; os.rmdir(os.getcwd()); from hyperpod_cdk.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, verb], cwd=tmp_path / "gone", capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "the current folder cannot be used: No such file or directory; change to another folder\n"
