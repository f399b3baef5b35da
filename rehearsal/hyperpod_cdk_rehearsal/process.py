"""The embedded AWS as a child process: it listens on loopback over HTTP and ends with its parent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

import boto3
import botocore.session
from botocore.config import Config
from botocore.configprovider import BOTOCORE_DEFAUT_SESSION_VARIABLES

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient


class EmbeddedAwsError(RuntimeError):
    """The embedded AWS did not start; the message contains its output."""


_OPENER: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""Opens local addresses directly, even if the environment has a proxy."""


@cache
def _session() -> Any:
    """Return a session that ignores the profiles, files and variables of the user."""
    variables = {
        name: (None, None, default, cast)
        for name, (_, _, default, cast) in BOTOCORE_DEFAUT_SESSION_VARIABLES.items()
        if name not in {"config_file", "credentials_file"}
    }
    files = dict.fromkeys(("config_file", "credentials_file"), (None, None, os.devnull, None))
    return boto3.Session(botocore_session=botocore.session.Session(session_vars={**variables, **files}))


def of_the_machine(name: str) -> bool:
    """Return whether an environment variable configures AWS clients or a proxy."""
    return name.startswith(("AWS_", "CDK_")) or name.lower().endswith("_proxy")


@dataclass(frozen=True, kw_only=True)
class Address:
    """The address and keys of an embedded AWS, from its first line of output. The keys are random."""

    endpoint: str
    access_key_id: str
    secret_access_key: str = field(repr=False)
    control_token: str = field(repr=False)

    def client(self, service: str, region: str, **settings: Any) -> Any:
        """Return a boto3 client of ``service``, which does not retry; ``settings`` are botocore's."""
        config = {"retries": {"total_max_attempts": 1}, "s3": {"addressing_style": "path"}, "proxies": {}, **settings}
        return _session().client(
            service,
            region_name=region,
            endpoint_url=self.endpoint,
            aws_access_key_id=self.access_key_id,
            aws_secret_access_key=self.secret_access_key,
            config=Config(**config),
        )

    def environment(self, region: str) -> dict[str, str]:
        """Return the environment variables with which any AWS client uses this address."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": self.access_key_id,
            "AWS_SECRET_ACCESS_KEY": self.secret_access_key,
            "AWS_REGION": region,
            "AWS_DEFAULT_REGION": region,
            "AWS_EC2_METADATA_DISABLED": "true",
            # a company proxy cannot reach this machine
            **dict.fromkeys(("NO_PROXY", "no_proxy"), self._unproxied()),
        }

    def _unproxied(self) -> str:
        host = urllib.parse.urlsplit(self.endpoint).hostname or ""
        given = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
        return given if host in given.split(",") else ",".join(filter(None, (given, host)))

    def control(self, path: str, document: Any = None, *, timeout_s: float = 10) -> dict[str, Any]:
        """GET a control endpoint, or POST ``document`` to it; dates in the document become text."""
        body = None if document is None else json.dumps(document, default=str).encode()
        request = urllib.request.Request(  # noqa: S310 - loopback
            f"{self.endpoint}/_rehearsal/{path}", data=body, headers={"X-Rehearsal-Token": self.control_token}
        )
        with _OPENER.open(request, timeout=timeout_s) as answer:
            answered: dict[str, Any] = json.load(answer)
        return answered


@dataclass
class EmbeddedAws:
    """A context manager around the child process; ``address`` is set inside it.

    ``latency_ms`` is added to every external call.
    """

    account: str
    region: str
    log: Path
    account_file: Path | None = None
    latency_ms: float = 0
    _address: Address | None = None
    _process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "hyperpod_cdk_rehearsal", "serve"]
        command += ["--account", self.account, "--region", self.region, "--log-file", str(self.log)]
        if self.latency_ms:
            command += ["--latency-ms", str(self.latency_ms)]
        if self.account_file is not None:
            command += ["--account-file", str(self.account_file)]
        # it ends by a signal, so its unpacked files must be in a folder that is cleaned up
        environment = {**os.environ, "TMPDIR": str(self.log.parent)}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        said = self._process.stdout
        line = said.readline() if said is not None else ""
        if not line:
            raise EmbeddedAwsError(f"the embedded AWS did not start: {self._last_words()}")
        self._address = Address(**json.loads(line))
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

    @property
    def address(self) -> Address:
        """Return its address and keys; raises EmbeddedAwsError if it was not started."""
        if self._address is None:
            raise EmbeddedAwsError("the embedded AWS was not started; use it in a 'with' statement")
        return self._address

    def client(self, service: str) -> Any:
        """Return a boto3 client of ``service`` that talks to this embedded AWS."""
        return self.address.client(service, self.region, retries={"max_attempts": 1})

    @property
    def cloudformation(self) -> CloudFormationClient:
        """Return the CloudFormation client."""
        client: CloudFormationClient = self.client("cloudformation")
        return client

    def state(self) -> dict[str, Any]:
        """Return state without an AWS API: custom resources run or played, Kubernetes objects, recorded resources."""
        return self.address.control("state")

    def steps(self) -> list[dict[str, Any]]:
        """Return every resource that CloudFormation created, changed or deleted, with its calls."""
        steps: list[dict[str, Any]] = self.address.control("deployer")["steps"]
        return steps

    def environment(self) -> dict[str, str]:
        """Return the environment variables with which any AWS client uses this address."""
        return self.address.environment(self.region)
