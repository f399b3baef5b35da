"""The embedded AWS as a child process: started on loopback, reached over HTTP, gone with its parent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import boto3
from botocore.config import Config

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient

CREDENTIALS = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing"}


class EmbeddedAwsError(RuntimeError):
    """The embedded AWS did not start; the message holds what it said."""


@dataclass
class EmbeddedAws:
    """A context manager around the child process; ``endpoint`` is set inside it.

    ``latency_ms`` is added to every call that comes from outside.
    """

    account: str
    region: str
    log: Path
    account_file: Path | None = None
    latency_ms: float = 0
    endpoint: str = ""
    _process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "hyperpod_cdk.rehearsal.embedded"]
        command += ["--account", self.account, "--region", self.region, "--log-file", str(self.log)]
        if self.latency_ms:
            command += ["--latency-ms", str(self.latency_ms)]
        if self.account_file is not None:
            command += ["--account-file", str(self.account_file)]
        # it ends by a signal, so whatever it unpacks must lie where somebody cleans up
        environment = {**os.environ, "TMPDIR": str(self.log.parent)}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        said = self._process.stdout
        line = said.readline() if said is not None else ""
        if not line:
            raise EmbeddedAwsError(f"the embedded AWS did not start: {self._last_words()}")
        self.endpoint = json.loads(line)["endpoint"]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()

    def _last_words(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")[-2000:] if self.log.exists() else "no log"

    def client(self, service: str) -> Any:
        """Give a boto3 client of ``service`` that talks to this embedded AWS."""
        # the stubs know a type for each service by name, here the name is a variable
        session: Any = boto3
        return session.client(
            service,
            region_name=self.region,
            endpoint_url=self.endpoint,
            config=Config(retries={"max_attempts": 1}, s3={"addressing_style": "path"}),
            **CREDENTIALS,
        )

    @property
    def cloudformation(self) -> CloudFormationClient:
        """The CloudFormation client, the one that is asked most."""
        client: CloudFormationClient = self.client("cloudformation")
        return client

    def state(self) -> dict[str, Any]:
        """Give what no AWS API tells: custom resources run or played, Kubernetes objects, objects only recorded."""
        with urllib.request.urlopen(f"{self.endpoint}/_rehearsal/state", timeout=10) as answer:  # noqa: S310 - loopback
            state: dict[str, Any] = json.load(answer)
        return state

    def environment(self) -> dict[str, str]:
        """Give the environment variables that point any AWS client here."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": CREDENTIALS["aws_access_key_id"],
            "AWS_SECRET_ACCESS_KEY": CREDENTIALS["aws_secret_access_key"],
            "AWS_REGION": self.region,
            "AWS_DEFAULT_REGION": self.region,
            "AWS_EC2_METADATA_DISABLED": "true",
        }
