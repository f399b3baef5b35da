"""``deploy`` killed in the middle of a step, and called again: real processes, the unmodified CDK CLI."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hyperpod_cdk.checks.model import REGISTER
from hyperpod_cdk.config import load_environment
from hyperpod_cdk_rehearsal.account_files import satisfying
from hyperpod_cdk_rehearsal.cdk_cli import CdkCli
from tests.support.assembly import ENVIRONMENTS, PROJECT
from tests.support.embedded import Embedded, embedded

NAME = "two-teams"
FILE = PROJECT / ENVIRONMENTS[NAME]
NEVER = {"nodes": {"system": {"never": "all"}, "a10g": {"never": "all"}}}
"""No node comes, so that the platform stack is under way for as long as this stands."""
LONGEST_SECONDS = 300.0
SKIPPED = [f"--skip={area}" for area in REGISTER.areas() if area != "account"]
"""What preflight asks beside the stacks is proven elsewhere."""
GONE_ON = "CloudFormation continues the current operation; the next 'hyperpod-cdk deploy' waits for it"
WAITS = f"CloudFormation works on {NAME}-platform; waiting until it has ended"
REACHED = f"{NAME}: the deployed stacks match the file."


class Run:
    """One ``hyperpod-cdk deploy`` with all its children, as a terminal has them: one process group."""

    def __init__(self, assembly: Path, environment: dict[str, str], output: Path) -> None:
        self.output = output
        words = ["deploy", str(FILE), "--yes", "--head", str(assembly), "--project", str(PROJECT), *SKIPPED]
        with output.open("w", encoding="utf-8") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.deploying", *words],
                cwd=PROJECT,
                env={**environment, "PYTHONPATH": str(PROJECT)},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def said(self) -> str:
        return self.output.read_text(encoding="utf-8")

    def until(self, is_so: Callable[[], bool]) -> None:
        deadline = time.monotonic() + LONGEST_SECONDS
        while not is_so():
            assert self.process.poll() is None, self.said()
            assert time.monotonic() < deadline, self.said()
            time.sleep(0.2)

    def ended(self, sent: signal.Signals | None = None) -> int:
        if sent is not None:
            os.killpg(self.process.pid, sent)
        return self.process.wait(LONGEST_SECONDS)


def _statuses(there: Embedded) -> dict[str, str]:
    described = there.client("cloudformation").describe_stacks()["Stacks"]
    return {each["StackName"]: each["StackStatus"] for each in described if each["StackName"] != "CDKToolkit"}


@pytest.mark.examples
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("stack", "sent"), [("foundation", signal.SIGKILL), ("platform", signal.SIGINT)])
def test_a_deployment_that_was_killed_goes_on(tmp_path: Path, stack: str, sent: signal.Signals) -> None:
    loaded = load_environment(FILE).environment
    right = {**satisfying(loaded), "bootstrap": None}
    with embedded({**right, **NEVER}, region=loaded.region, account=loaded.account, is_hurried=True) as there:
        cdk = CdkCli(project=PROJECT, scratch=tmp_path, environment=there.environment())
        assembly = tmp_path / "assembly"
        cdk.synth(FILE, assembly)
        cdk.run(["bootstrap", f"aws://{loaded.account}/{loaded.region}", "--app", str(assembly)])
        environment = cdk._environment(aws=True)

        first = Run(assembly, environment, tmp_path / "first")
        first.until(lambda: _statuses(there).get(f"{NAME}-{stack}") == "CREATE_IN_PROGRESS")
        code = first.ended(sent)
        assert (code, GONE_ON in first.said()) == ((-9, False) if sent is signal.SIGKILL else (130, True))

        again = Run(assembly, environment, tmp_path / "again")
        # the platform stack is under way then, by the first deployment or by this one
        awaited = WAITS if stack == "platform" else f"{NAME}-platform"
        again.until(
            lambda: awaited in again.said() and _statuses(there).get(f"{NAME}-platform") == "CREATE_IN_PROGRESS"
        )
        amended = there.address.control("amendment", {"nodes": right.get("nodes") or {}}, timeout_s=60)
        assert not amended["problem"], amended
        assert again.ended() == 0, again.said()
        # where all had begun, nothing is left to deploy: what stands is what the file says without a step
        assert (REACHED in again.said()) is (stack == "foundation"), again.said()
        assert set(_statuses(there).values()) <= {"CREATE_COMPLETE", "UPDATE_COMPLETE"}
        assert len(_statuses(there)) == 4
