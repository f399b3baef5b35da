"""The CDK CLI as steps use it: the words of a deployment, and a runner with the user's own credentials."""

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
"""How the CDK CLI names the change sets that it deploys, and how the names that it is given here begin."""


class CdkFailedError(RuntimeError):
    """The CDK CLI ended with an error; ``output`` is all that it printed, empty where the user has seen it."""

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
    """The CDK CLI of a project with the user's environment; what it says goes to the user's terminal."""

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
    """Give what the CDK CLI is told to deploy all stacks of an assembly."""
    name = head.environment
    if not name or not all(each.shown.startswith(f"{name}/") for each in head.stacks):
        return "--all"
    # the CLI's "*" ends at a slash, and so passes over a stack inside of a construct
    return f"{name}/**" if any(each.shown.count("/") > 1 for each in head.stacks) else f"{name}/*"


def deployment(assembly: Path, selected: Sequence[str], *, concurrency: int, is_exclusive: bool = False) -> list[str]:
    """Give the arguments with which the CDK CLI deploys stacks of an assembly unattended, with an event on each line.

    Only an argument says how many stacks go side by side, the CLI reads it from no file. It asks nothing then, so that
    it needs ``--require-approval never``, too.

    The CLI makes a change set and executes it later by its name, so that under the one name that it uses by default it
    would execute what another deployment has put there meanwhile (2.1148.1, ``toExecuteChangeSetDeployment``). So each
    has a name of its own.
    """
    only = ["--exclusively"] if is_exclusive else []
    arguments = ["deploy", "--app", str(assembly), *selected, *only, "--concurrency", str(concurrency)]
    return [*arguments, *_own_name(), "--require-approval", "never", "--progress", "events"]


def by_hand(arguments: Sequence[str], variables: Mapping[str, str]) -> list[str]:
    """Give the arguments of a ``deploy`` that a person has written with change sets of its own name, too.

    Whoever names them, deploys without one, or prepares one that somebody executes by its name keeps his words; the CLI
    reads its options from variables as well (2.1148.1, ``determineDeploymentMethod``).
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
