"""Runs the real, unmodified CDK CLI in an environment without the user's AWS settings."""

from __future__ import annotations

import os
import site
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hyperpod_cdk.packaged_node import cdk_command, node_variables
from hyperpod_cdk.transitions.cdk import CdkFailedError as CdkFailedError  # noqa: PLC0414 - the rehearsal's word too
from hyperpod_cdk_rehearsal.process import of_the_machine


@dataclass(frozen=True, kw_only=True)
class CdkCli:
    """The CDK CLI of ``project`` with a scratch folder as its home."""

    project: Path
    scratch: Path
    environment: Mapping[str, str]

    def synth(self, environment_file: Path, assembly: Path) -> str:
        """Write the cloud assembly of one environment file to ``assembly``; no AWS, no credentials.

        The CLI only fails for errors of the stacks that it is called with, and ignores stacks of a stage without names.
        """
        arguments = ["synth", "**", "--quiet", "--context", f"env={environment_file}", "--output", str(assembly)]
        return self.run(arguments, aws=False)

    def run(self, arguments: Sequence[str], *, aws: bool = True) -> str:
        """Run ``cdk`` with these arguments and return its output; raises CdkFailedError."""
        done = subprocess.run(
            [*cdk_command(self.project), *arguments],
            cwd=self.project,
            env=self._environment(aws=aws),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        with (self.scratch / "cdk.log").open("a", encoding="utf-8") as log:
            log.write(f"$ cdk {' '.join(arguments)}\n{done.stdout}\n")
        if done.returncode:
            raise CdkFailedError(" ".join(arguments), done.returncode, done.stdout)
        return done.stdout

    def _environment(self, *, aws: bool) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not of_the_machine(name)}
        return {
            **kept,
            **node_variables(),
            # the CLI caches accounts by access key below ~/.cdk, which it finds without HOME, and reads ~/.cdk.json
            # with it; without both variables it would write into the user's own folder
            "HOME": str(self.scratch),
            "CDK_HOME": str(self.scratch / "cdk-home"),
            **({} if aws else _of_the_app()),
            **(self.environment if aws else {}),
            "CDK_DISABLE_VERSION_CHECK": "1",
            "CDK_DISABLE_CLI_TELEMETRY": "true",
            "NO_COLOR": "1",
        }


def _of_the_app() -> dict[str, str]:
    """Return variables for what the app would find in HOME: packages of this Python, and jsii's unpacked ones."""
    caches = "Library/Caches/com.amazonaws.jsii" if sys.platform == "darwin" else ".cache/aws/jsii"
    given = os.environ.get("JSII_RUNTIME_PACKAGE_CACHE_ROOT")
    return {
        "PYTHONUSERBASE": site.getuserbase(),
        "JSII_RUNTIME_PACKAGE_CACHE_ROOT": given or str(Path.home() / caches / "package-cache"),
    }
