"""The command line: version, help, valid examples, fast completion."""

from __future__ import annotations

import ast
import itertools
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from hyperpod_cdk import cli
from hyperpod_cdk._cli import words
from hyperpod_cdk.checks.model import REGISTER
from hyperpod_cdk.transitions.cdk import by_hand
from tests.support.command_lines import GROUP, PROJECT, problems
from tests.support.tables import row_by_row

Run = Callable[..., subprocess.CompletedProcess[str]]


def verbs(command: Any = GROUP, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    for name, each in command.commands.items():
        if hasattr(each, "commands"):
            yield from verbs(each, (*path, name))
        else:
            yield " ".join((*path, name)), each


VERBS = dict(verbs())
GROUPS = frozenset(path.split()[0] for path in VERBS if " " in path)
ROOMS = ("constructs", "stacks", "rehearsal/hyperpod_cdk_rehearsal")


def test_version(run: Run) -> None:
    done = run("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"hyperpod-cdk {metadata.version('hyperpod-cdk')}\n", "")


@pytest.mark.parametrize("path", ["", *VERBS])
def test_help_has_no_type_of_python(run: Run, path: str) -> None:
    if path == "cdk":
        # what stands behind it is the CDK CLI's
        return
    done = run(*path.split(), "-h")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == run(*path.split(), "--help").stdout
    assert re.findall(r"<[a-z\[\]|]+>|\{\w+\}|\[\[", done.stdout) == []
    for example in words.EXAMPLES.get(path, ()):
        assert f"  hyperpod-cdk {example}\n" in done.stdout


def test_commands_of_the_cdk_cli_are_pointed_to(run: Run) -> None:
    done = run("synth", "prod")
    said = "synth is a command of the CDK CLI; run 'hyperpod-cdk cdk synth ...'\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)


def test_verbs_stand_in_the_order_of_work(run: Run) -> None:
    listed = re.findall(r"^  ([a-z-]+)  ", run("--help").stdout.partition("Commands:")[2], re.MULTILINE)
    assert listed == list(words.ORDER)
    assert set(words.ORDER) == set(GROUP.commands)


def test_every_verb_has_two_examples() -> None:
    assert {path: len(examples) for path, examples in words.EXAMPLES.items()} == dict.fromkeys(VERBS, 2)


@row_by_row("example", [each for path, both in words.EXAMPLES.items() if path != "cdk" for each in both])
def test_an_example_is_understood(example: str) -> None:
    given = shlex.split(example)
    path = next(path for path in sorted(VERBS, key=len, reverse=True) if given[: len(path.split())] == path.split())
    context = VERBS[path].make_context(path, given[len(path.split()) :])
    assert context.args == []


def complete(run_process: Run, typed: str, **variables: str) -> list[str]:
    count = str(len(typed.split()) - (not typed.endswith(" ")))
    done = run_process(_HYPERPOD_CDK_COMPLETE="complete_bash", COMP_WORDS=typed, COMP_CWORD=count, **variables)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("hyperpod-cdk re", ["rehearse", "review", "recover"]),
        ("hyperpod-cdk job ", ["render", "admit", "report"]),
        ("hyperpod-cdk rehearse ", ["dev"]),
        ("hyperpod-cdk validate d", ["dev"]),
        ("hyperpod-cdk job render dev --group ", ["a10g", "system"]),
        ("hyperpod-cdk preflight dev --only ip", ["ip-budget"]),
        ("hyperpod-cdk schema --of review", ["review", "review-report"]),
        ("hyperpod-cdk image render --acc", ["--accelerator"]),
        ("hyperpod-cdk rehearse x", []),
        ("hyperpod-cdk plans attach ", ["dev"]),
        ("hyperpod-cdk plans attach dev ", ["a10g", "system"]),
        ("hyperpod-cdk node describe dev ", []),
        ("hyperpod-cdk node describe --strict d", ["dev"]),
        ("hyperpod-cdk fleet status dev ", ["dev"]),
    ],
)
def test_completion(run_process: Run, workspace: Path, typed: str, offered: list[str]) -> None:
    (workspace / "environments" / "broken.txt").touch()
    assert complete(run_process, typed) == offered


@pytest.mark.parametrize("written", ["hyperpod: [", "[" * 100_000])
def test_a_group_of_a_broken_file_is_not_offered(run_process: Run, workspace: Path, written: str) -> None:
    (workspace / "environments" / "broken.yaml").write_text(written, encoding="utf-8")
    assert complete(run_process, "hyperpod-cdk job render broken --group ") == []


def test_completion_waits_for_neither_models_nor_checks(workspace: Path) -> None:
    code = (
        "import sys; sys.argv = ['hyperpod-cdk']\n"
        "from hyperpod_cdk.cli import main\n"
        "try: main()\n"
        "finally: print(sorted({'pydantic', 'rich', 'boto3', 'aws_cdk', 'hyperpod_cdk.checks'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=workspace,
        env={
            **os.environ,
            "_HYPERPOD_CDK_COMPLETE": "complete_bash",
            "COMP_WORDS": "hyperpod-cdk preflight dev --only ",
            "COMP_CWORD": "4",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_completed_checks_are_those_there_are() -> None:
    assert words.checks("") == sorted({name for check in REGISTER for name in (check.area, check.name)})


PLACES = [
    # in the folder itself, above it, nowhere
    ({"cdk.json": "{}"}, ["synth"], ""),
    (
        {"../cdk.json": "{}"},
        ["synth"],
        "'cdk synth' reads cdk.json in the current folder, and the project's is in {up}",
    ),
    ({}, ["synth"], "'cdk synth' needs an app, and {here} has no cdk.json: run it in a project's folder"),
    ({}, ["-c", "env=prod", "deploy", "prod/*"], "'cdk deploy' needs an app"),
    # what needs none, or is told where it is
    ({}, ["bootstrap", "aws://111122223333/us-east-1"], ""),
    ({}, ["--version"], ""),
    ({}, ["synth", "--app", "cdk.out"], ""),
    ({}, ["synth", "--app=cdk.out"], ""),
    ({}, ["synth", "-a", "cdk.out"], ""),
    ({"../home/.cdk.json": "{}"}, ["synth"], ""),
]


@pytest.mark.parametrize(("files", "arguments", "said"), PLACES)
def test_a_cdk_cli_without_an_app_gets_the_place_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], arguments: list[str], said: str
) -> None:
    here = tmp_path / "here"
    for folder in (here, tmp_path / "home"):
        folder.mkdir()
    for name, text in files.items():
        (here / name).write_text(text, encoding="utf-8")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CDK_APP", raising=False)
    monkeypatch.chdir(here)
    found = cli.no_app(arguments, tmp_path if "../cdk.json" in files else here)
    wanted = said.format(here=here, up=tmp_path)
    assert found.startswith(wanted) if wanted else not found


def test_without_an_app_nothing_runs(run_process: Run, tmp_path: Path) -> None:
    done = run_process("cdk", "synth", cwd=tmp_path, HOME=str(tmp_path))
    assert done.returncode == 2
    assert done.stderr == (
        f"'cdk synth' needs an app, and {tmp_path} has no cdk.json: run it in a project's folder, or create one with"
        " 'hyperpod-cdk new DIR'\n"
    )


BY_HAND: list[tuple[list[str], dict[str, str], bool]] = [
    (["deploy", "prod/*", "-c", "env=prod"], {}, True),
    (["-c", "env=prod", "deploy", "--all", "--method=change-set"], {}, True),
    (["deploy", "--hotswap-fallback"], {"CDK_OUTDIR": "out"}, True),
    # explicit options are kept: the CLI accepts neither two names, nor a name without a change set
    (["deploy", "--change-set-name", "mine"], {}, False),
    (["deploy", "--changeSetName=mine"], {}, False),
    (["deploy", "--method=direct"], {}, False),
    (["deploy", "-m", "direct"], {}, False),
    (["deploy", "-mdirect"], {}, False),
    # these two are one deployment, by the CLI's own name
    (["deploy", "--method", "prepare-change-set"], {}, False),
    (["deploy", "prod/storage", "--method=execute-change-set"], {}, False),
    (["deploy", "--no-execute"], {}, False),
    (["deploy", "--execute=false"], {}, False),
    (["deploy"], {"CDK_METHOD": "direct"}, False),
    (["deploy"], {"CDK_CHANGE_SET_NAME": "mine"}, False),
    (["deploy"], {"CDK_EXECUTE": "false"}, False),
    (["diff", "--app", "deploy"], {}, False),
    (["synth"], {}, False),
]


def test_each_deploy_by_hand_names_its_change_sets(run_process: Run, tmp_path: Path) -> None:
    script = tmp_path / "node_modules" / "aws-cdk" / "bin" / "cdk"
    script.parent.mkdir(parents=True)
    script.write_text("console.log(JSON.stringify(process.argv.slice(2)))", encoding="utf-8")
    (tmp_path / "cdk.json").write_text("{}", encoding="utf-8")
    names = []
    for arguments, variables, is_named in BY_HAND[:2] + BY_HAND[5:6] + BY_HAND[-2:]:
        done = run_process("cdk", *arguments, cwd=tmp_path, **variables)
        got = json.loads(done.stdout)
        if is_named:
            at = got.index("deploy") + 1
            option, name = got[at : at + 2]
            assert option == "--change-set-name"
            names.append(name)
            del got[at : at + 2]
        assert got == arguments
    assert all(re.fullmatch(r"cdk-deploy-change-set-[0-9a-f-]{36}", name) for name in names)
    assert len(set(names)) == 2


@row_by_row("arguments, variables, is_named", [row for row in BY_HAND if "deploy" in row[0]][:-1])
def test_a_deploy_by_hand_keeps_what_was_chosen(
    arguments: list[str], variables: dict[str, str], *, is_named: bool
) -> None:
    got = by_hand(arguments, variables)
    assert len(got) == len(arguments) + 2 * is_named
    assert [each for each in got if each in arguments] == arguments


def _said() -> Iterator[tuple[str, str]]:
    """Yield each text of the sources that names this command, with its file; what is put in stands for one word."""
    for file in sorted(path for room in ROOMS for path in (PROJECT / room).rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        if "hyperpod-cdk " not in text:
            continue
        nodes = list(ast.walk(ast.parse(text)))
        # docstrings are read by whoever reads the code; parts of a text are read with the whole
        parts = {
            id(node.body[0].value)
            for node in nodes
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
        } | {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
        for node in nodes:
            if id(node) in parts:
                continue
            if isinstance(node, ast.JoinedStr):
                values = [str(each.value) if isinstance(each, ast.Constant) else _put_in(each) for each in node.values]
                yield file.relative_to(PROJECT).as_posix(), "".join(values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield file.relative_to(PROJECT).as_posix(), node.value


FOUND = re.compile(r"(\w+\.)*_?(called|word|argument|word_of)(\(.*\))?")
"""How a text names an environment that its command is to find: by ``config.loading.called``, in whatever hands."""

TOLD_ELSEWHERE = {
    "handlers/quota_gate/comparison.py: environment_name": "CloudFormation runs it: no folder is known",
    "hyperpod/notifications.py: self._environment": "notifications, which are read far from any folder",
    "handlers/notifications/index.py: settings.environment": "notifications likewise",
    "cli.py: name": "'new', whose commands follow 'cd DIR'",
}
"""What else stands in place of an environment -> why no file is known there; its name is found in environments/."""


def _put_in(value: ast.expr) -> str:
    """Return a word for what is put into a text: nothing for an option that is there or not."""
    said = ast.unparse(value).strip("f'\"{}")
    return "" if said in {"in_project(root)", "project", "placed"} else "VALUE"


def _environments_told() -> Iterator[str]:
    """Yield what is put into each command of a text in place of ENV, behind its file."""
    takes = [path for path, command in VERBS.items() if any(each.name == "environment" for each in command.params)]
    places = re.compile(rf"hyperpod-cdk (?:{'|'.join(sorted(takes, key=len, reverse=True))}) $")
    for file in sorted(path for room in ROOMS for path in (PROJECT / room).rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "hyperpod-cdk " in text else ():
            if isinstance(node, ast.JoinedStr):
                for before, after in itertools.pairwise(node.values):
                    is_command = isinstance(before, ast.Constant) and places.search(str(before.value))
                    if is_command and isinstance(after, ast.FormattedValue):
                        yield f"{file.relative_to(PROJECT / 'constructs' / 'hyperpod_cdk')}: {ast.unparse(after.value)}"


def test_a_command_in_a_message_names_the_environment_as_its_folder_finds_it() -> None:
    """`hyperpod-cdk plans record NAME` would not find a file that is not in environments/ of the current folder."""
    told = set(_environments_told())
    assert len(told) > 20
    assert {each for each in told if not FOUND.fullmatch(each.partition(": ")[2])} == set(TOLD_ELSEWHERE)


def _told() -> Iterator[tuple[str, str, bool]]:
    """Yield each command that a text tells, and whether it is only named: a verb, of which the text says something."""
    for file, said in _said():
        for found in re.finditer(r"([\w ]*)(['`])hyperpod-cdk ([^'`]+)\2", said):
            does = re.search(r"\b(run|use|with|type|give) $", found[1])
            yield file, found[3].replace("{environment}", "VALUE"), not does and found[3] in {*VERBS, *GROUPS}
        if said.startswith("hyperpod-cdk ") and said.split()[1] in GROUP.commands:
            yield file, said.removeprefix("hyperpod-cdk "), said.removeprefix("hyperpod-cdk ") in GROUPS


def test_a_command_in_a_message_names_an_environment_where_one_is_known() -> None:
    assert {(file, command) for file, command, _ in _told() if "ENV" in command.split()} == {
        # a help, and a command that was given no environment
        ("constructs/hyperpod_cdk/_cli/node.py", "node list ENV"),
        ("constructs/hyperpod_cdk/review/sources.py", "review ENV"),
    }


def test_a_command_in_a_message_is_one_that_runs() -> None:
    """`'hyperpod-cdk node list' shows them` would be answered with "Missing argument 'ENV'"."""
    told = sorted({(file, command, is_named) for file, command, is_named in _told() if "..." not in command})
    assert len(told) > 70
    wrong = [
        f"{file}: {said}"
        for file, command, is_named in told
        for said in problems(f"hyperpod-cdk {command}")
        if not (is_named and re.search(r": (Missing|lacks) ", said))
    ]
    assert wrong == []


EXPLAINED = [
    ("preflight", "Missing argument 'ENV'. Name or file of the environment; there are dev, prod"),
    ("node describe --strict", "Missing argument 'ENV'. Name or file of the environment; there are dev, prod"),
    ("plans attach dev", "Missing argument 'GROUP'. Instance group in the file; there are a10g, system"),
    # no file has such an environment
    ("plans attach a10g", "Missing argument 'GROUP'. Instance group in the file."),
    (
        "plans attach prod h100",
        "Missing argument 'PLAN'. Name or ARN of a training plan; there are h100-april, h100-may",
    ),
    (
        "node logs dev",
        (
            "Missing argument 'NODE'. Instance ID, Kubernetes node name, or HyperPod's logical ID;"
            " 'hyperpod-cdk node list ENV' lists them."
        ),
    ),
    (
        "job admit dev",
        "Missing argument 'JOB'. Job files or YAML manifests, in the order of their submission.",
    ),
    ("job render dev --group", "Option '--group' requires an argument; there are a10g, system"),
    (
        "job render dev --kind ncl",
        (
            "Invalid value for '--kind': must be efa-info, nccl, dcgm, neuron-info, nccom, pytorch or hyperpod-pytorch,"
            " got 'ncl'; did you mean nccl?"
        ),
    ),
    ("job render dev --nodes two", "Invalid value for '--nodes': must be a whole number, got 'two'"),
    ("job report --nodes 0", "Invalid value for '--nodes': must be at least 1, got '0'"),
    ("node logs dev i-1 --lines 10001", "Invalid value for '--lines': must be at most 10000, got '10001'"),
    ("review dev --time-limit much", "Invalid value for '--time-limit': must be a number, got 'much'"),
    ("validate --format xml", "Invalid value for '--format': must be text or json, got 'xml'"),
    (
        "upgrade dev --kubernetes",
        "Option '--kubernetes' requires an argument; there are 1.30, 1.31, 1.32, 1.33, 1.34, 1.35",
    ),
    ("reviw", "No such command 'reviw'. Did you mean 'review'?"),
    ("preflight --ofline dev", "No such option: --ofline (Possible options: --offline)"),
]


@pytest.mark.parametrize(("typed", "said"), EXPLAINED, ids=[typed for typed, _ in EXPLAINED])
def test_a_mistake_says_what_is_known(run: Run, workspace: Path, typed: str, said: str, project: Path) -> None:
    text = (project / "environments" / "prod.yaml").read_text(encoding="utf-8")
    (workspace / "environments" / "prod.yaml").write_text(text, encoding="utf-8")
    (workspace / "environments" / "prod.plans.json").write_text('{"plans": [{"name": "h100-may"}]}', encoding="utf-8")
    (workspace / "environments" / "folder.yaml").mkdir()
    done = run(*typed.split())
    first, second = done.stderr.splitlines()
    assert (done.returncode, done.stdout, first) == (2, "", said)
    verb = next((" ".join(typed.split()[:n]) for n in (2, 1) if " ".join(typed.split()[:n]) in VERBS), "")
    assert second.startswith(f"hyperpod-cdk {verb}".rstrip())
    assert second.endswith(f"'{f'hyperpod-cdk {verb}'.rstrip()} -h' explains it")


def test_an_option_that_takes_checks_names_the_areas(run: Run) -> None:
    said = run("preflight", "dev", "--only").stderr.splitlines()[0]
    assert (
        said == f"Option '--only' requires an argument; there are {', '.join(sorted({each.area for each in REGISTER}))}"
    )


def test_a_project_without_environments_says_how_to_make_one(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = run("plan", "--project", str(tmp_path / "empty"))
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        2,
        (
            "Missing argument 'ENV'. Name or file of the environment; environments/ holds no environment yet; create"
            " one with 'hyperpod-cdk init NAME'"
        ),
    )
