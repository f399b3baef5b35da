"""Command lines in pages: each one is parsed by its own tool's parser, or checked against the tool's model."""

from __future__ import annotations

import io
import json
import re
import shlex
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import botocore.session
import jmespath  # type: ignore[import-untyped]  # comes without types
import typer.main
from botocore import xform_name
from packaging.requirements import Requirement

from hyperpod_cdk.cli import app

PROJECT = Path(__file__).parents[2]

_CLI_ONLY = {
    ("eks", "update-kubeconfig"): ({"name", "region", "alias", "role-arn"}, {"name"}),
    ("logs", "tail"): ({"since", "follow", "filter-pattern", "format", "log-stream-names"}, set()),
    ("ecr", "get-login-password"): (set(), set()),
    ("s3", "rb"): ({"force"}, set()),
    ("s3", "cp"): ({"recursive", "exclude", "include", "sse", "dryrun"}, set()),
}
"""Options of the AWS CLI that are not in AWS's models (awscli/customizations), and required ones."""
_AWS_GLOBAL = {"query", "output", "region", "profile", "endpoint-url", "cli-input-json"}

NEEDS: Mapping[str, str] = {
    "kubectl": "a Kubernetes cluster",
    "docker": "Docker, and a registry",
    "git": "a repository with a remote",
    "glab": "a GitLab project",
    "systemctl": "a node",
    "lnetctl": "a node with Lustre",
    "install_rig_dependencies.sh": "AWS's repository of charts, and a cluster",
    **dict.fromkeys(("grep", "find", "xargs", "du"), "nothing: it is on every machine, and takes any words"),
}
"""Tools whose lines are not checked here, with what it would take to run them."""


@dataclass(frozen=True, kw_only=True)
class Block:
    """A fenced block: the page, the line of its fence, its language, and its content."""

    page: str
    line: int
    language: str
    text: str

    @property
    def commands(self) -> list[str]:
        """The command lines, without prompts; without any prompt each line is one. Broken lines are joined."""
        lines: list[str] = []
        for line in self.text.replace("\\\n", " ").splitlines():
            if lines and _is_open(lines[-1]):
                lines[-1] += f"\n{line}"
            else:
                lines.append(line.strip())
        prompted = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        return prompted or [line for line in lines if line and not line.startswith("#")]


def _is_open(line: str) -> bool:
    """Return whether a quotation goes on in the next line."""
    try:
        shlex.split(line, comments=True)
    except ValueError:
        return True
    return False


def blocks(path: Path) -> list[Block]:
    """Return the fenced blocks of a page, also those that are indented."""
    text = path.read_text(encoding="utf-8")
    return [
        Block(
            page=path.relative_to(PROJECT).as_posix(),
            line=text.count("\n", 0, found.start()) + 1,
            language=found[3],
            text=re.sub(rf"^{found[1]}", "", found[4], flags=re.MULTILINE),
        )
        for found in re.finditer(
            r"^([ \t]*)(```+|~~~+)(\S*)[^\n]*\n(.*?)^\1\2[ \t]*$", text, flags=re.DOTALL | re.MULTILINE
        )
    ]


def problems(line: str) -> list[str]:
    """Return what the tools of a command line do not accept; commands of pipes and lists are checked one by one."""
    return [f"{' '.join(words)}: {said}" for words in _simple(line) if (said := _problem(words))]


def tools(line: str) -> set[str]:
    """Return the programs of a command line."""
    return {words[0].rpartition("/")[2] for words in _simple(line)}


def _simple(line: str) -> Iterator[list[str]]:
    """Yield the words of each command of a line, without redirections and assignments."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>()")
    lexer.whitespace_split = True
    words: list[str] = []
    is_target = False
    for word in [*lexer, ";"]:
        if set(word) <= set("|&;()"):
            if words:
                yield words
            words, is_target = [], False
        elif set(word) <= set("<>"):
            is_target = True
        elif is_target:
            is_target = False
        elif words or not re.match(r"\w+=", word):
            words.append(word)


def _problem(words: Sequence[str]) -> str:
    tool = words[0].rpartition("/")[2]
    if tool in NEEDS:
        return ""
    judge = _JUDGES.get(tool)
    return judge(words[1:]) if judge else f"no tool {tool} that a test reads"


def hyperpod_cdk(words: Sequence[str]) -> str:
    """Parse the words with the command's own parser, without running the command."""
    command: Any = GROUP
    rest = list(words)
    while hasattr(command, "commands"):
        if not rest:
            return "lacks a verb"
        name, *rest = rest
        if name in {"--version", "--help", "-h", "--install-completion"}:
            return ""
        if name not in command.commands:
            return f"no verb {name}"
        command = command.commands[name]
    return cdk(rest) if command.name == "cdk" else _parsed(command, rest)


def _parsed(command: Any, words: list[str]) -> str:
    # omitted values would be asked for on a terminal without answers
    before, sys.stdin = sys.stdin, io.StringIO("")
    try:
        command.make_context(command.name, words)
    except Exception as error:  # typer brings a copy of click's own exceptions
        if type(error).__name__ in {"Abort", "Exit"}:
            return ""
        said = getattr(error, "format_message", None)
        if said is None:
            raise
        return str(said())
    finally:
        sys.stdin = before
    return ""


def aws(words: Sequence[str]) -> str:
    """Compare service, operation and options with AWS's models, from which the AWS CLI makes its own."""
    service, verb, *rest = words
    if verb == "wait" and rest:
        waiters = botocore.session.get_session().get_waiter_model(service)
        waited = next((each for each in waiters.waiter_names if xform_name(each, "-") == rest[0]), None)
        if waited is None:
            return f"no waiter {rest[0]} of {service}"
        verb, *rest = xform_name(waiters.get_waiter(waited).operation, "-"), *rest[1:]
    given = {word[2:].removeprefix("no-").partition("=")[0] for word in rest if word.startswith("--")}
    if (service, verb) in _CLI_ONLY:
        options, required = _CLI_ONLY[service, verb]
    else:
        operations = _operations({"s3api": "s3"}.get(service, service))
        if verb not in operations:
            return f"no operation {verb} of {service}"
        shape = operations[verb].input_shape
        options = {xform_name(name, "-") for name in (shape.members if shape else ())}
        required = {xform_name(name, "-") for name in (shape.required_members if shape else ())}
    unknown, missing = given - options - _AWS_GLOBAL, required - given
    if unknown:
        return f"no option {', '.join(sorted(unknown))}"
    # a bare name in a sentence is not a command to copy
    if missing and rest and "cli-input-json" not in given:
        return f"lacks {', '.join(sorted(missing))}"
    if "--query" in rest:
        jmespath.compile(rest[rest.index("--query") + 1])
    return ""


def cdk(words: Sequence[str]) -> str:
    """Compare command and options with the help of the pinned CDK CLI."""
    registry = json.loads(
        (PROJECT / "node_modules" / "aws-cdk" / "lib" / "cli" / "cli-type-registry.json").read_text(encoding="utf-8")
    )
    if not words:
        return "lacks a verb"
    if words[0] in {"--help", "--version"}:
        return ""
    if words[0] not in registry["commands"]:
        return f"no verb {words[0]}"
    known = {**registry["globalOptions"], **registry["commands"][words[0]].get("options", {})}
    options = {f"--{name}" for name in known}
    for each in known.values():
        alias = each.get("alias", ())
        options |= {
            f"-{name}" if len(name) == 1 else f"--{name}" for name in ([alias] if isinstance(alias, str) else alias)
        }
    unknown = [word for word in words if word.startswith("-") and word.partition("=")[0] not in options]
    return f"no option {', '.join(unknown)}" if unknown else ""


def make(words: Sequence[str]) -> str:
    """Look for the targets in the Makefile."""
    text = (PROJECT / "Makefile").read_text(encoding="utf-8")
    return "; ".join(
        f"no target {word}" for word in words if "=" not in word and not re.search(rf"^{word}:", text, re.MULTILINE)
    )


def pip(words: Sequence[str]) -> str:
    """Read what is to be installed: a requirement, whose extras we have, or files of a folder."""
    if words[0] == "show":
        return ""
    if words[0] != "install":
        return f"no verb {words[0]}"
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for word in words[1:]:
        if word in (".", "dist/*.whl") or word.startswith("-"):
            continue
        needed = Requirement(word.replace("==VERSION", "==1.0"))
        unknown = needed.extras - project["optional-dependencies"].keys()
        if needed.name == project["name"] and unknown:
            return f"no extra {', '.join(sorted(unknown))}"
    return ""


def python(words: Sequence[str]) -> str:
    """Look for the module or the script."""
    if words[:2] == ["-m", "venv"] or words[:2] == ["-m", "hyperpod_cdk_rehearsal"]:
        return ""
    return "" if words and (PROJECT / words[0]).is_file() else f"no script {' '.join(words)}"


GROUP: Any = typer.main.get_command(app)
"""The command line as click has it; a fifth of a second to build."""
_JUDGES: Mapping[str, Callable[[Sequence[str]], str]] = {
    "hyperpod-cdk": hyperpod_cdk,
    "aws": aws,
    "cdk": cdk,
    "make": make,
    "pip": pip,
    "python": python,
    "python3": python,
    "cd": lambda _: "",
    "source": lambda _: "",
}


@cache
def _operations(service: str) -> dict[str, Any]:
    model = botocore.session.get_session().get_service_model(service)
    return {xform_name(name, "-"): model.operation_model(name) for name in model.operation_names}
