"""Lambda functions in an embedded AWS served on loopback, empty at the beginning of each test."""

from __future__ import annotations

import io
import json
import os
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from waitress.server import create_server

from hyperpod_cdk_rehearsal.embedded import services
from hyperpod_cdk_rehearsal.embedded.context import Context
from hyperpod_cdk_rehearsal.embedded.server import EmbeddedAws, moto_application

REGISTERING = (services,)  # imported for the operations it registers

REGION = "us-east-1"
ACCOUNT = "123456789012"
TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}],
}


@pytest.fixture(scope="session")
def _served() -> Iterator[tuple[str, list[Any], Any]]:
    """A server whose application each test replaces."""
    os.environ["MOTO_EC2_LOAD_DEFAULT_AMIS"] = "false"
    current: list[Any] = []
    server: Any = create_server(
        lambda environ, start_response: current[0](environ, start_response),  # noqa: PLW0108 - filled by each test
        host="127.0.0.1",
        port=0,
        threads=16,
    )
    threading.Thread(target=server.run, daemon=True).start()
    yield f"http://127.0.0.1:{server.effective_port}", current, moto_application()
    server.close()


@pytest.fixture(scope="session")
def _clients() -> dict[tuple[str, str], Any]:
    """boto3 clients, which are slow to make and hold no state."""
    return {}


@pytest.fixture
def context(_served: tuple[str, list[Any], Any], _clients: dict[tuple[str, str], Any]) -> Context:
    """An empty account."""
    from moto.moto_api._internal.models import moto_api_backend  # noqa: PLC0415 - private, only tests reset moto

    endpoint, current, moto = _served
    moto_api_backend.reset()
    aws = EmbeddedAws(account=ACCOUNT, region=REGION, endpoint=endpoint, moto=moto)
    current[:] = [aws]
    context = aws.context()
    context._clients = _clients
    # a client outlives the account for which it was made: it asks the one that is there now
    context.answer = lambda request: current[0].answer_itself(request)  # noqa: PLW0108 - filled by each test
    return context


@pytest.fixture
def zipped() -> Callable[[Mapping[str, str]], bytes]:
    """Make a zip archive of these files."""

    def make(files: Mapping[str, str]) -> bytes:
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w") as opened:
            for name, text in files.items():
                opened.writestr(name, text)
        return archive.getvalue()

    return make


@pytest.fixture
def function(context: Context, zipped: Callable[..., bytes]) -> Callable[..., str]:
    """Make a function called `f` of this source; gives its name."""

    def make(source: str, **options: Any) -> str:
        role = context.client("iam").create_role(RoleName="lambda", AssumeRolePolicyDocument=json.dumps(TRUST))
        runtime = options.pop("Runtime", "python3.13")
        file = "index.py" if runtime.startswith("python") else "index.js"
        context.client("lambda").create_function(
            FunctionName="f",
            Role=role["Role"]["Arn"],
            Runtime=runtime,
            Handler=options.pop("Handler", "index.handler"),
            Code={"ZipFile": zipped({file: source})},
            Timeout=options.pop("Timeout", 10),
            **options,
        )
        return "f"

    return make
