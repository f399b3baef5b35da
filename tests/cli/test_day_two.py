"""The commands of docs/day-two.md: each is one that its command line tool understands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import botocore.session
import pytest
import typer.main
from botocore import xform_name

from hyperpod_cdk.cli import app

PAGE = (Path(__file__).parents[2] / "docs" / "day-two.md").read_text(encoding="utf-8")
LINES = [line.strip().removeprefix("$ ") for line in PAGE.splitlines() if line.strip().startswith("$ ")]
INLINE = re.findall(r"`((?:hyperpod-cdk|aws) [a-z][^`]*)`", PAGE)
COMMANDS = sorted({*LINES, *INLINE})

CLI_ONLY = {("eks", "update-kubeconfig"): ({"--name", "--region", "--alias", "--role-arn"}, {"--name"})}
"""What the AWS CLI has beside AWS's models (awscli/customizations/eks): options, and those without which it ends."""


@pytest.mark.parametrize("command", [line for line in COMMANDS if line.startswith("aws ")])
def test_aws_has_the_operation_and_its_parameters(command: str) -> None:
    _, service, verb, *rest = shlex.split(command)
    given = {word.replace("--no-", "--") for word in rest if word.startswith("--")}
    if (service, verb) in CLI_ONLY:
        options, required = CLI_ONLY[service, verb]
    else:
        model = botocore.session.get_session().get_service_model(service)
        operations = {xform_name(name, "-"): model.operation_model(name) for name in model.operation_names}
        shape = operations[verb].input_shape
        options = {f"--{xform_name(name, '-')}" for name in (shape.members if shape else ())} | {"--region"}
        required = {f"--{xform_name(name, '-')}" for name in (shape.required_members if shape else ())}
    assert given <= options
    assert required <= given or len(rest) == 0


@pytest.mark.parametrize("line", [line for line in COMMANDS if line.startswith("hyperpod-cdk ")])
def test_the_command_has_the_verb_and_its_options(line: str) -> None:
    command: Any = typer.main.get_command(app)
    words = shlex.split(line)[1:]
    while getattr(command, "commands", None):
        command = command.commands[words.pop(0)]
    known = {name for parameter in command.params for name in parameter.opts}
    assert [word for word in words if word.startswith("--") and word not in known] == []


def test_every_command_is_of_a_known_tool() -> None:
    assert {line.partition(" ")[0] for line in LINES} == {"aws", "cdk", "hyperpod-cdk", "kubectl"}
    assert len(COMMANDS) > 20


def test_every_field_it_names_is_one_of_the_environment_file(project: Path) -> None:
    reference = (project / "docs" / "environment-file.md").read_text(encoding="utf-8")
    named = re.findall(r"`([a-z_]+(?:\.[a-z_]+)*)(?:: [^`]*)?`", PAGE)
    fields = {word.rpartition(".")[2] for word in named} - {"preflight"}
    assert fields
    assert [field for field in fields if field not in reference] == []
