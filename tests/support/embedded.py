"""An embedded AWS for tests: one process for each account ID, its account made anew for every test."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

ACCOUNT = "111122223333"
REGION = "us-east-1"
HURRIED = Path(__file__).parent / "hurried.py"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}

_running: dict[tuple[str, bool], _Process] = {}


@dataclass(frozen=True)
class Embedded:
    """An account that answers at ``endpoint``."""

    endpoint: str
    region: str

    def environment(self) -> dict[str, str]:
        """Give the environment variables that point boto3 here; the caches of other clients are switched off."""
        return {**CREDENTIALS, "AWS_ENDPOINT_URL": self.endpoint, "AWS_REGION": self.region}

    def calls(self) -> dict[str, Any]:
        """Give how many calls came: ``total``, ``by_operation``, ``in_flight_maximum``."""
        with urllib.request.urlopen(f"{self.endpoint}/_rehearsal/state", timeout=10) as answer:  # noqa: S310 - loopback
            calls: dict[str, Any] = json.load(answer)["calls"]
        return calls


@contextmanager
def embedded(
    document: Mapping[str, Any],
    *,
    region: str = REGION,
    account: str = ACCOUNT,
    latency_ms: float = 0,
    now: datetime | None = None,
    is_hurried: bool = False,
) -> Iterator[Embedded]:
    """Give the embedded AWS with exactly the account of an account file's document.

    Its time goes on from ``now`` (default: the present). One that is hurried makes nobody wait for a resource, and
    plays the upload of files. The process is shared: the account of the ``with`` before is gone, so only one may be in
    use at a time. Fails in the end where an operation of the embedded AWS failed inside.
    """
    key = (account, is_hurried)
    if key not in _running:
        _running[key] = _Process.start(account, is_hurried=is_hurried)
        atexit.register(_running[key].stop)
    endpoint = _running[key].endpoint
    wanted = {"document": document, "region": region, "latency_ms": latency_ms, "now": now and now.isoformat()}
    body = json.dumps(wanted, default=str).encode()
    request = urllib.request.Request(f"{endpoint}/_rehearsal/account", data=body, method="POST")  # noqa: S310 - loopback
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - as above
        problem = json.load(answer)["problem"]
    # an account that could not be filled is told as the problem; what was logged of it is not the next test's
    _running[key].failures()
    assert not problem, problem
    yield Embedded(endpoint=endpoint, region=region)
    failures = _running[key].failures()
    assert not failures, failures


@dataclass
class _Process:
    endpoint: str
    process: subprocess.Popen[str]
    scratch: tempfile.TemporaryDirectory[str] = field(repr=False)
    read: int = 0

    @classmethod
    def start(cls, account: str, *, is_hurried: bool) -> _Process:
        scratch = tempfile.TemporaryDirectory(prefix="hyperpod-embedded-")
        log = Path(scratch.name) / "log"
        program = [str(HURRIED), "--clock-scale", "0.02"] if is_hurried else ["-m", "hyperpod_cdk.rehearsal.embedded"]
        command = [sys.executable, *program, "--account", account, "--region", REGION]
        process = subprocess.Popen(
            [*command, "--log-file", str(log)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # it ends by a signal, so whatever it unpacks must lie where somebody cleans up
            env={**os.environ, "TMPDIR": scratch.name},
        )
        line = process.stdout.readline() if process.stdout else ""
        assert line, f"the embedded AWS did not start: {log.read_text(encoding='utf-8')[-2000:]}"
        return cls(endpoint=json.loads(line)["endpoint"], process=process, scratch=scratch)

    def failures(self) -> str:
        """Give what the embedded AWS logged since it was last asked, if an operation of it failed."""
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
