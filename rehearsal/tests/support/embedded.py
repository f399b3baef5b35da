"""An embedded AWS for tests: one process for each account ID, with a new account for every test."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from hyperpod_cdk_rehearsal.process import Address

ACCOUNT = "111122223333"
REGION = "us-east-1"


@dataclass(frozen=True)
class Program:
    """The arguments with which Python serves an embedded AWS."""

    arguments: tuple[str, ...]
    python_path: Path | None = None
    """The folder of modules that are not installed."""


SERVE = Program(("-m", "hyperpod_cdk_rehearsal", "serve"))

_running: dict[tuple[str, Program], _Process] = {}


@dataclass(frozen=True)
class Embedded:
    """An account at ``address``."""

    address: Address
    region: str

    def environment(self) -> dict[str, str]:
        """Return the environment variables that point boto3 here; the caches of other clients are disabled."""
        return self.address.environment(self.region)

    def client(self, service: str, **settings: Any) -> Any:
        """Return a client of ``service`` that never repeats a request; ``settings`` are botocore's."""
        return self.address.client(service, self.region, **settings)

    def state(self) -> dict[str, Any]:
        """Return state without an AWS API."""
        return self.address.control("state")

    def steps(self) -> list[dict[str, Any]]:
        """Return CloudFormation's actions and calls for each resource."""
        steps: list[dict[str, Any]] = self.address.control("deployer")["steps"]
        return steps

    def calls(self) -> dict[str, Any]:
        """Return how many calls came: ``total``, ``by_operation``, ``in_flight_maximum``."""
        calls: dict[str, Any] = self.state()["calls"]
        return calls


@contextmanager
def embedded(
    document: Mapping[str, Any],
    *,
    region: str = REGION,
    account: str = ACCOUNT,
    latency_ms: float = 0,
    now: datetime | None = None,
    program: Program = SERVE,
) -> Iterator[Embedded]:
    """Yield the embedded AWS with exactly the account of an account file's document.

    Its time goes on from ``now`` (default: the present). The process is shared: the account of the ``with`` before is
    gone, so only one may be in use at a time. Fails in the end where an operation of the embedded AWS failed inside.
    """
    key = (account, program)
    if key not in _running:
        _running[key] = _Process.start(account, program)
        atexit.register(_running[key].stop)
    address = _running[key].address
    wanted = {"document": document, "region": region, "latency_ms": latency_ms, "now": now and now.isoformat()}
    problem = address.control("account", wanted, timeout_s=60)["problem"]
    # an account that could not be filled is reported as the problem; its log does not belong to the next test
    _running[key].failures()
    assert not problem, problem
    yield Embedded(address=address, region=region)
    failures = _running[key].failures()
    assert not failures, failures


@dataclass
class _Process:
    address: Address
    process: subprocess.Popen[str]
    scratch: tempfile.TemporaryDirectory[str] = field(repr=False)
    read: int = 0

    @classmethod
    def start(cls, account: str, program: Program) -> _Process:
        """Start an embedded AWS."""
        scratch = tempfile.TemporaryDirectory(prefix="hyperpod-embedded-")
        log = Path(scratch.name) / "log"
        path = {} if program.python_path is None else {"PYTHONPATH": str(program.python_path)}
        command = [sys.executable, *program.arguments, "--account", account, "--region", REGION]
        process = subprocess.Popen(
            [*command, "--log-file", str(log)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # it ends by a signal, so its unpacked files must be in a folder that is cleaned up
            env={**os.environ, "TMPDIR": scratch.name, **path},
        )
        line = process.stdout.readline() if process.stdout else ""
        assert line, f"the embedded AWS did not start: {log.read_text(encoding='utf-8')[-2000:]}"
        return cls(address=Address(**json.loads(line)), process=process, scratch=scratch)

    def failures(self) -> str:
        """Return what the embedded AWS logged since it was last asked, if an operation of it failed."""
        with (Path(self.scratch.name) / "log").open(encoding="utf-8", errors="replace") as log:
            log.seek(self.read)
            said = log.read()
            self.read = log.tell()
        return said if "Traceback (most recent call last)" in said else ""

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=10)
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()
        self.scratch.cleanup()
