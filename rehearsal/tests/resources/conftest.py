"""An embedded AWS served on loopback for the handlers' tests, empty at the beginning of each."""

from __future__ import annotations

import io
import itertools
import json
import os
import threading
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pytest
from waitress.server import create_server

from hyperpod_cdk_rehearsal.embedded import moto_edge, resources, services
from hyperpod_cdk_rehearsal.embedded.cloudformation.schema import Registry
from hyperpod_cdk_rehearsal.embedded.context import Clock, Context
from hyperpod_cdk_rehearsal.embedded.resources.registry import (
    ResourceHandler,
    ResourceRequest,
    ResourceResult,
    handler_for,
)
from hyperpod_cdk_rehearsal.embedded.server import EmbeddedAws, moto_application

REGISTERING = (resources, services)  # imported for the handlers and operations they register

NOT_MADE_HERE = {
    # read-only properties of features that no template of ours can turn on
    "AWS::CloudFormation::CustomResource": frozenset({"Id"}),
    "AWS::EC2::NatGateway": frozenset({"AutoProvisionZones", "AutoScalingIps", "RouteTableId"}),
    "AWS::EC2::VPC": frozenset({"VpcEncryptionControl"}),
    "AWS::EC2::VPCCidrBlock": frozenset({"IpSource", "Ipv6AddressAttribute"}),
    "AWS::S3::Bucket": frozenset({"MetadataConfiguration", "MetadataTableConfiguration"}),
}

REGION = "us-east-1"
ACCOUNT = "123456789012"
STACK_ID = f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/prod/00000000-0000-0000-0000-000000000000"


class Stack:
    """Calls handlers as the engine does, and remembers what each resource was last given."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.registry = Registry(context.region)
        self._deployed: dict[str, tuple[str, dict[str, Any], str]] = {}
        self._numbers = itertools.count(1)

    def create(self, resource_type: str, properties: Mapping[str, Any], logical_id: str = "") -> ResourceResult:
        """Create a resource; its physical id is the handle of later calls."""
        name = logical_id or f"Resource{next(self._numbers)}"
        result = self._handler(resource_type).create(self.request(resource_type, name, properties))
        self._check_attributes(resource_type, result)
        self._deployed[result.physical_id] = (resource_type, dict(properties), name)
        self._take_back_tags(result.physical_id)
        return result

    def _take_back_tags(self, physical_id: str) -> None:
        """Roll back an update that was to add a tag and failed before it began, which must always be possible."""
        resource_type, properties, name = self._deployed[physical_id]
        schema = self.registry.schema(resource_type)
        if schema is None or not schema.tag_property:
            return
        tags = properties.get(schema.tag_property)
        never: Any = (
            {**(tags or {}), "never": "set"}
            if schema.tags_are_map
            else [*(tags or []), {"Key": "never", "Value": "set"}]
        )
        previous = {**properties, schema.tag_property: never}
        request = self.request(resource_type, name, properties, previous=previous, physical_id=physical_id)
        self._handler(resource_type).update(request)

    def update(self, physical_id: str, **changes: Any) -> ResourceResult:
        """Update a resource: the named properties change, None removes one."""
        resource_type, previous, name = self._deployed[physical_id]
        properties = {key: value for key, value in {**previous, **changes}.items() if value is not None}
        request = self.request(resource_type, name, properties, previous=previous, physical_id=physical_id)
        result = self._handler(resource_type).update(request)
        self._deployed[result.physical_id] = (resource_type, properties, name)
        return result

    def delete(self, physical_id: str) -> None:
        """Delete a resource, any number of times."""
        resource_type, properties, name = self._deployed[physical_id]
        request = self.request(resource_type, name, properties, previous=properties, physical_id=physical_id)
        self._handler(resource_type).delete(request)

    def request(
        self,
        resource_type: str,
        logical_id: str,
        properties: Mapping[str, Any],
        *,
        previous: Mapping[str, Any] | None = None,
        physical_id: str | None = None,
    ) -> ResourceRequest:
        """A request as the engine makes it."""
        return ResourceRequest(
            resource_type=resource_type,
            logical_id=logical_id,
            stack_name="prod",
            stack_id=STACK_ID,
            properties=dict(properties),
            previous=None if previous is None else dict(previous),
            physical_id=physical_id,
            tags={},
            context=self.context,
        )

    def _check_attributes(self, resource_type: str, result: ResourceResult) -> None:
        """Every read-only property of the registry's schema is an attribute."""
        schema = self.registry.schema(resource_type)
        declared = {path[0] for path in schema.read_only} if schema else set()
        missing = declared - set(result.attributes) - NOT_MADE_HERE.get(resource_type, frozenset())
        assert not missing, f"{resource_type} lacks the attributes {sorted(missing)}"

    @staticmethod
    def _handler(resource_type: str) -> ResourceHandler:
        handler = handler_for(resource_type)
        assert handler is not None, f"{resource_type} has no handler"
        return handler


@pytest.fixture(scope="session")
def _served() -> Iterator[tuple[str, list[Any]]]:
    """A server whose application each test replaces."""
    # a quarter of a second each time the account is emptied
    os.environ["MOTO_EC2_LOAD_DEFAULT_AMIS"] = "false"
    current: list[Any] = []
    server: Any = create_server(
        lambda environ, start_response: current[0](environ, start_response),  # noqa: PLW0108 - filled by each test
        host="127.0.0.1",
        port=0,
        threads=16,
        inbuf_overflow=128 * 1024 * 1024,
    )
    moto_edge.patch_moto()
    moto = moto_application()
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.effective_port}", [current, moto]
    server.close()


@pytest.fixture(scope="session")
def _clients() -> dict[tuple[str, str], Any]:
    """boto3 clients, which are slow to make and hold no state."""
    return {}


@pytest.fixture
def context(_served: tuple[str, list[Any]], _clients: dict[tuple[str, str], Any]) -> Context:
    """An empty account."""
    from moto.moto_api._internal.models import moto_api_backend  # noqa: PLC0415 - private, only tests reset moto

    endpoint, (current, moto) = _served
    moto_api_backend.reset()
    aws = EmbeddedAws(account=ACCOUNT, region=REGION, endpoint=endpoint, moto=moto, clock=Clock(scale=0.01))
    current[:] = [aws]
    context = aws.context()
    context._clients = _clients
    # a client outlives the account for which it was made: it asks the one that is there now
    context.answer = lambda request: current[0].answer_itself(request)  # noqa: PLW0108 - filled by each test
    return context


@pytest.fixture
def stack(context: Context) -> Stack:
    """A stack in it."""
    return Stack(context)


@pytest.fixture
def lambda_role(context: Context) -> str:
    """ARN of a role that Lambda may assume."""
    trust = {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
        ],
    }
    iam = context.client("iam")
    arn: str = iam.create_role(RoleName="lambda", AssumeRolePolicyDocument=json.dumps(trust))["Role"]["Arn"]
    return arn


@pytest.fixture
def function(stack: Stack, lambda_role: str) -> Callable[..., str]:
    """Make a Python function of this source; gives its ARN."""

    def make(source: str, *, name: str = "provider", timeout: int = 10, **properties: Any) -> str:
        result = stack.create(
            "AWS::Lambda::Function",
            {
                "FunctionName": name,
                "Role": lambda_role,
                "Runtime": "python3.13",
                "Handler": "index.handler",
                "Timeout": timeout,
                "Code": {"ZipFile": source},
                **properties,
            },
        )
        arn: str = result.attributes["Arn"]
        return arn

    return make


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
def described() -> Callable[[Iterable[Mapping[str, str]]], dict[str, str]]:
    """Tags as a mapping."""

    def flat(tags: Iterable[Mapping[str, str]]) -> dict[str, str]:
        return {tag["Key"]: tag["Value"] for tag in tags}

    return flat
