"""``upgrade`` as users run it: what it writes and when, its exit codes, and wrong words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from hyperpod_cdk import cli
from hyperpod_cdk._cli.review import Access
from tests.living.test_status import opened
from tests.support.answers import answered
from tests.transitions.test_upgrade import TEXT, script

PINNED = "  addon_versions:\n    kube-proxy: v1.33.5-eksbuild.2 # with the control plane\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "environments" / "dev.yaml"
    file.parent.mkdir()
    file.write_text(TEXT.replace('"1.33"', '"1.34"').replace(PINNED, ""), encoding="utf-8")
    return file


def run(file: Path, *more: str, answers: dict[str, Any] | None = None) -> Result:
    words = ["upgrade", "dev", "--project", str(file.parents[1]), *more]
    access = Access(open=lambda *_: opened({**script(), **(answers or {})}))
    return CliRunner().invoke(cli.app, words, prog_name="hyperpod-cdk", obj=access)


def test_a_look_changes_nothing(file: Path) -> None:
    before = file.read_text(encoding="utf-8")
    done = run(file)
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[0] == "dev: 4 outdated, 1 unknown."
    done = run(file, "--addons")
    # nobody is there to be asked
    assert (done.exit_code, file.read_text(encoding="utf-8")) == (0, before)
    assert "+    coredns: v1.14.2-eksbuild.4" in done.stdout


def test_an_edit_during_a_question_is_not_overwritten(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edited = f"{file.read_text(encoding='utf-8')}# by hand\n"

    def agrees(*_: object) -> bool:
        file.write_text(edited, encoding="utf-8")
        return True

    monkeypatch.setattr("hyperpod_cdk._cli.upgrade.is_terminal", lambda: True)
    monkeypatch.setattr("hyperpod_cdk._cli.upgrade.Terminal.agrees", agrees)
    done = run(file, "--addons")
    said = f"{file} changed since the change was shown; nothing was written to it. Run it again."
    assert (done.exit_code, done.stderr.splitlines()[-1]) == (1, said)
    assert file.read_text(encoding="utf-8") == edited


def test_the_first_step_is_written_and_the_next_call_says_what_is_next(file: Path) -> None:
    before = file.read_text(encoding="utf-8")
    done = run(file, "--addons", "--write", "--format", "json")
    assert done.exit_code == 0, done.output
    told = answered("upgrade", done.stdout)
    assert len(told["written"]) == 1
    assert done.stderr.endswith(f"wrote {told['written'][0]}\n")
    # everything else stands as it did
    added = "  addon_versions:\n    coredns: v1.14.2-eksbuild.4\n"
    assert file.read_text(encoding="utf-8") == before.replace("network:", f"{added}network:")
    told = json.loads(run(file, "--addons", "--write", "--format", "json").stdout)
    assert [(each["kind"], each["edits"]) for each in told["steps"]] == [("wait", [])]
    assert told["written"] == []


def test_a_refusal_ends_with_1(file: Path) -> None:
    done = run(file, "--kubernetes", "1.33", "--write")
    assert (done.exit_code, done.stdout.splitlines()[0]) == (1, "dev: Refused; nothing is written.")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--kubernetes", "latest"],
            (
                "--kubernetes: must be a Kubernetes version that HyperPod accepts (1.30 to 1.35 on 2026-11-20), got"
                ' "latest"; give --kubernetes 1.35\n'
            ),
        ),
        (
            ["--kubernetes", "1.36"],
            (
                "--kubernetes: must be a Kubernetes version that HyperPod accepts (1.30 to 1.35 on 2026-11-20), got"
                ' "1.36" (HyperPod has AMIs for it since July 2026, but its prerequisites do not name it yet); give'
                " --kubernetes 1.35\n"
            ),
        ),
        *(
            (
                ["--kubernetes", given],
                (
                    "--kubernetes: must be a Kubernetes version that HyperPod accepts (1.30 to 1.35 on 2026-11-20), got"
                    f' "{given}"; give --kubernetes {nearest}\n'
                ),
            )
            for given, nearest in (
                ("1.33.2", "1.33"),
                ("v1.34", "1.34"),
                ("1.29.9", "1.35"),
                (" 1.33", "1.35"),
                (f"1.{'9' * 5000}", "1.35"),
            )
        ),
        (
            ["--write"],
            "--write: specify what to upgrade: --kubernetes, --ami, --addons, --chart or --library\n",
        ),
    ],
)
def test_words_that_say_nothing(file: Path, arguments: list[str], said: str) -> None:
    done = run(file, *arguments)
    assert (done.exit_code, done.stderr) == (2, said)


def test_offline_takes_the_file_for_what_stands(file: Path) -> None:
    done = run(file, "--offline", "--kubernetes", "1.35", "--write")
    assert done.exit_code == 0, done.output
    assert 'kubernetes_version: "1.35" # until the summer' in file.read_text(encoding="utf-8")
    assert done.stdout.splitlines()[-1] == "skipped: AWS: not called, because of --offline"
