"""An embedded CloudFormation on resources in a dictionary: every handler call is seen and can be made to fail."""

from __future__ import annotations

import io
import json
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.exceptions import ClientError

from hyperpod_cdk_rehearsal.embedded.cloudformation import api
from hyperpod_cdk_rehearsal.embedded.cloudformation.provision import Provisioner
from hyperpod_cdk_rehearsal.embedded.cloudformation.service import service_of
from hyperpod_cdk_rehearsal.embedded.cloudformation.stacks import Stack, stacks_of
from hyperpod_cdk_rehearsal.embedded.context import Context
from hyperpod_cdk_rehearsal.embedded.operations import ServiceError, operation_for
from hyperpod_cdk_rehearsal.embedded.resources.registry import (
    HandlerError,
    ResourceHandler,
    ResourceRequest,
    ResourceResult,
)

assert api.__all__  # importing the package registers the operations

Call = tuple[str, str]


class FakeClients:
    """The few calls of CloudFormation itself: parameters, zones, template objects."""

    def __init__(self) -> None:
        self.parameters: dict[str, str] = {}
        self.objects: dict[tuple[str, str], str] = {}

    def get_parameter(self, *, Name: str, WithDecryption: bool) -> dict[str, Any]:  # noqa: N803 - boto3's keywords
        assert WithDecryption
        if Name not in self.parameters:
            raise ClientError({"Error": {"Code": "ParameterNotFound", "Message": "none"}}, "GetParameter")
        return {"Parameter": {"Value": self.parameters[Name]}}

    def get_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803 - as above
        return {"Body": io.BytesIO(self.objects[Bucket, Key].encode())}

    def describe_availability_zones(self) -> dict[str, Any]:
        return {"AvailabilityZones": [{"ZoneName": f"us-west-2{letter}"} for letter in "cab"]}


class FakeContext(Context):
    """A context without a server behind it."""

    fake: FakeClients

    def client(self, service: str, region: str | None = None) -> Any:
        assert service in ("ssm", "ec2", "s3"), region
        return self.fake


@dataclass
class FakeHandler(ResourceHandler):
    """Handles every type: the n-th creation of A is `A-<n>`, its `Arn` is `arn:A-<n>`."""

    calls: list[Call] = field(default_factory=list)
    existing: dict[str, dict[str, Any]] = field(default_factory=dict)
    failures: dict[Call, list[Exception]] = field(default_factory=dict)
    attributes: dict[str, dict[str, Any]] = field(default_factory=dict)
    before_call: Callable[[str, ResourceRequest], None] = lambda _verb, _request: None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _made: Counter[str] = field(default_factory=Counter)

    def fail(self, verb: str, logical_id: str, *errors: Exception) -> None:
        """Make the next calls of this kind fail, with one error each."""
        self.failures[verb, logical_id] = list(errors) or [HandlerError("GeneralServiceException", "no luck")]

    def create(self, request: ResourceRequest) -> ResourceResult:
        self._call("create", request)
        with self._lock:
            self._made[request.logical_id] += 1
            physical_id = f"{request.logical_id}-{self._made[request.logical_id]}"
            self.existing[physical_id] = request.properties
        return ResourceResult(physical_id, self._attributes(request, physical_id))

    def read(self, request: ResourceRequest, identifier: Mapping[str, str]) -> ResourceResult:
        self._call("read", request)
        physical_id = "|".join(identifier.values())
        if physical_id not in self.existing:
            raise HandlerError("NotFound", f"there is no {physical_id}")
        return ResourceResult(physical_id, self._attributes(request, physical_id))

    def update(self, request: ResourceRequest) -> ResourceResult:
        self._call("update", request)
        self.existing[request.existing_id] = request.properties
        return ResourceResult(request.existing_id, self._attributes(request, request.existing_id))

    def delete(self, request: ResourceRequest) -> None:
        self._call("delete", request)
        self.existing.pop(request.existing_id, None)

    def _attributes(self, request: ResourceRequest, physical_id: str) -> dict[str, Any]:
        return {"Arn": f"arn:{physical_id}", **self.attributes.get(request.logical_id, {})}

    def _call(self, verb: str, request: ResourceRequest) -> None:
        self.before_call(verb, request)
        with self._lock:
            self.calls.append((verb, request.logical_id))
            failures = self.failures.get((verb, request.logical_id), [])
            failure = failures.pop(0) if failures else None
        if failure is not None:
            raise failure


class Cloud:
    """CloudFormation's API on fake resources; every deployment is waited for."""

    def __init__(self) -> None:
        self.context = FakeContext(
            account="111122223333",
            region="us-west-2",
            partition="aws",
            url_suffix="amazonaws.com",
            endpoint="http://127.0.0.1:1",
        )
        self.clients = self.context.fake = FakeClients()
        self.handler = FakeHandler()
        service_of(self.context).provisioner = Provisioner(self.context, lambda _type: self.handler)

    def ask(self, operation: str, **request: Any) -> dict[str, Any]:
        """Call an API operation."""
        function = operation_for("cloudformation", operation)
        assert function is not None
        return function(self.context, request) or {}

    def refused(self, operation: str, **request: Any) -> str:
        """Code and message of the error with which an operation is refused."""
        with pytest.raises(ServiceError) as caught:
            self.ask(operation, **request)
        return f"{caught.value.code}: {caught.value.message}"

    def deploy(self, name: str, template: dict[str, Any], **request: Any) -> str:
        """Create or update a stack directly; returns its status."""
        found = stacks_of(self.context).find(name)
        self.handler.calls.clear()
        operation = "UpdateStack" if found else "CreateStack"
        self.ask(operation, StackName=name, TemplateBody=json.dumps(template), **request)
        return self.settled(name)

    def delete(self, name: str, **request: Any) -> str:
        """Delete a stack; returns its status."""
        stack = self.stack(name)
        self.handler.calls.clear()
        self.ask("DeleteStack", StackName=name, **request)
        return self.settled(stack.stack_id)

    def settled(self, name: str) -> str:
        """The stack's status once nothing runs."""
        stack = self.stack(name)
        stack.wait_while_in_progress(10)
        return stack.status

    def stack(self, name: str) -> Stack:
        """The stack itself."""
        return stacks_of(self.context).get(name)

    def events(self, name: str) -> list[tuple[str, str]]:
        """Logical id and status of every event of the last operation, oldest first."""
        stack = self.stack(name)
        last = stack.events[-1].operation_id
        return [(event.logical_id, event.status) for event in stack.events if event.operation_id == last]

    def reason(self, name: str, logical_id: str) -> str:
        """The reason of the last failure of a resource (or, by the stack's name, of the stack)."""
        return next(
            event.reason or ""
            for event in reversed(self.stack(name).events)
            if event.logical_id == logical_id and event.reason
        )

    def outputs(self, name: str) -> dict[str, str]:
        """The stack's outputs."""
        return {key: output.value for key, output in self.stack(name).outputs.items()}
