"""The CDK CLI as steps use it: the arguments of a deployment, and a runner with the user's own credentials."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol
from uuid import uuid4

from hyperpod_cdk.packaged_node import cdk_command, node_variables
from hyperpod_cdk.templates.assembly import Assembly

CHANGE_SET: Final = "cdk-deploy-change-set"
"""The CDK CLI's own name of change sets, and the prefix of the names that this library gives it."""


class CdkFailedError(RuntimeError):
    """The CDK CLI ended with an error; ``output`` is all that it printed, empty if the user has seen it."""

    def __init__(self, command: str, code: int, output: str) -> None:
        super().__init__(f"'cdk {command}' ended with exit code {code}")
        self.output = output


class Cdk(Protocol):
    """Runs the CDK CLI; a rehearsal has one of its own."""

    def run(self, arguments: Sequence[str]) -> object:
        """Run ``cdk`` with these arguments. Raises CdkFailedError."""
        ...


@dataclass(frozen=True, kw_only=True)
class OwnCdk:
    """The CDK CLI of a project with the user's environment variables; its output goes to the user's terminal."""

    project: Path

    def run(self, arguments: Sequence[str]) -> None:
        """Run ``cdk`` with these arguments. Raises CdkFailedError, ToolMissingError."""
        done = subprocess.run(
            [*cdk_command(self.project), *arguments],
            cwd=self.project,
            env={**os.environ, **node_variables()},
            stdin=subprocess.DEVNULL,
            check=False,
        )
        if done.returncode:
            raise CdkFailedError(" ".join(arguments), done.returncode, "")


def selection(head: Assembly) -> str:
    """Return the CDK CLI's arguments that select all stacks of an assembly."""
    name = head.environment
    if not name or not all(each.shown.startswith(f"{name}/") for each in head.stacks):
        return "--all"
    # the CLI's "*" ends at a slash, so it does not match a stack inside of a construct
    return f"{name}/**" if any(each.shown.count("/") > 1 for each in head.stacks) else f"{name}/*"


def deployment(assembly: Path, selected: Sequence[str], *, concurrency: int, is_exclusive: bool = False) -> list[str]:
    """Return the arguments with which the CDK CLI deploys stacks of an assembly unattended, with an event on each line.

    The CLI reads the number of parallel stacks only from an argument, not from a file. With it the CLI asks nothing, so
    it also needs ``--require-approval never``.

    The CLI creates a change set and executes it later by its name. With its default name it would execute the change
    set that another deployment has created in the meantime (2.1148.1, ``toExecuteChangeSetDeployment``). So each
    deployment has its own name.
    """
    only = ["--exclusively"] if is_exclusive else []
    arguments = ["deploy", "--app", str(assembly), *selected, *only, "--concurrency", str(concurrency)]
    return [*arguments, *_own_name(), "--require-approval", "never", "--progress", "events"]


def by_hand(arguments: Sequence[str], variables: Mapping[str, str]) -> list[str]:
    """Return the arguments of a user's ``deploy`` with an own name of change sets, too.

    The arguments stay unchanged if they name a change set, deploy without one, or prepare one to be executed by its
    name; the CLI also reads its options from environment variables (2.1148.1, ``determineDeploymentMethod``).
    """
    named = {each.partition("=")[0] for each in arguments}
    methods = {each.rpartition("=")[2].removeprefix("-m") for each in arguments}
    is_chosen = (
        named & {"--change-set-name", "--changeSetName", "--execute", "--no-execute"}
        or methods & {"direct", "prepare-change-set", "execute-change-set"}
        or variables.keys() & {"CDK_CHANGE_SET_NAME", "CDK_EXECUTE", "CDK_METHOD"}
    )
    if is_chosen:
        return [*arguments]
    after = arguments.index("deploy") + 1
    return [*arguments[:after], *_own_name(), *arguments[after:]]


def _own_name() -> list[str]:
    return ["--change-set-name", f"{CHANGE_SET}-{uuid4()}"]
