"""Custom resources: the provider's own code is run where this machine can, its documented effect played elsewhere."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from botocore.exceptions import ClientError

from hyperpod_cdk_rehearsal.embedded.context import Context
from hyperpod_cdk_rehearsal.embedded.lambda_runner.code import (
    FunctionCode,
    NotExecutableError,
    UnknownFunctionError,
    function_code,
)
from hyperpod_cdk_rehearsal.embedded.lambda_runner.responses import ResponseServer
from hyperpod_cdk_rehearsal.embedded.lambda_runner.runner import (
    Invocation,
    in_background,
    invoke,
    log_group_of,
    new_log_stream,
    write_log,
)
from hyperpod_cdk_rehearsal.embedded.resources import _played, _sdk_call, kubernetes
from hyperpod_cdk_rehearsal.embedded.resources.registry import (
    HandlerError,
    ResourceHandler,
    ResourceRequest,
    ResourceResult,
    handles,
)

RequestType = Literal["Create", "Update", "Delete"]
Mode = Literal["ran", "played", "skipped"]

RESPONSE_MAX_BYTES = 4096
"""The largest response CloudFormation takes (user guide, custom resource response objects)."""
SERVICE_TIMEOUT_SECONDS = 3600
"""ServiceTimeout's default."""
POLL_SECONDS = 0.25
LATE_ANSWER_SECONDS = 2.0
"""How long a function that ended well may leave its answer to somebody else, when nothing else runs."""

FRAMEWORK_HANDLER = "framework.onEvent"
ON_EVENT = "USER_ON_EVENT_FUNCTION_ARN"
IS_COMPLETE = "USER_IS_COMPLETE_FUNCTION_ARN"
CREATE_FAILED_ID = "AWSCDK::CustomResourceProviderFramework::CREATE_FAILED"
IS_COMPLETE_POLL_SECONDS = 5.0
IS_COMPLETE_POLLS = 360
"""CDK's defaults of queryInterval (5 s) and totalTimeout (30 min)."""


class CustomResourceError(HandlerError):
    """The provider said no, or nothing. `physical_id` is what a rollback must delete, None where nothing was made."""

    def __init__(self, message: str, physical_id: str | None = None) -> None:
        super().__init__("GeneralServiceException", message, physical_id=physical_id)


@dataclass(frozen=True)
class Execution:
    """How one request to a custom resource was served: its provider's code ran, was played, or was skipped."""

    mode: Mode
    resource_type: str
    logical_id: str
    reason: str
    stack_name: str = ""
    request_type: str = ""

    def as_dict(self) -> dict[str, str]:
        """The execution as it goes over HTTP."""
        return {
            "how": self.mode,
            "type": self.resource_type,
            "logical_id": self.logical_id,
            "reason": self.reason,
            "stack": self.stack_name,
            "request": self.request_type,
        }


@dataclass
class Executions:
    """Every execution so far, in order."""

    rows: list[Execution] = field(default_factory=list)


def executions(context: Context) -> list[Execution]:
    """Every custom resource execution so far, in order."""
    with context.state.lock:
        return list(context.state.store(Executions).rows)


@dataclass(frozen=True)
class _Exchange:
    """One request to a provider."""

    request: ResourceRequest
    request_type: RequestType
    function: FunctionCode
    request_id: str

    @property
    def context(self) -> Context:
        return self.request.context

    def event(self, response_url: str) -> dict[str, Any]:
        """The request object of the user guide; CloudFormation sends every scalar as text."""
        request = self.request
        event: dict[str, Any] = {
            "RequestType": self.request_type,
            "ServiceToken": request.properties["ServiceToken"],
            "ResponseURL": response_url,
            "StackId": request.stack_id,
            "RequestId": self.request_id,
            "LogicalResourceId": request.logical_id,
            "ResourceType": request.resource_type,
            "ResourceProperties": as_text(request.properties),
        }
        if self.request_type != "Create":
            event["PhysicalResourceId"] = request.existing_id
        if self.request_type == "Update":
            event["OldResourceProperties"] = as_text(request.previous or {})
        return event

    def failed(self, reason: str, physical_id: str | None = None) -> CustomResourceError:
        """CloudFormation's words for a provider's FAILED."""
        return CustomResourceError(
            "Received response status [FAILED] from custom resource. "
            f"Message returned: {reason} (RequestId: {self.request_id})",
            physical_id,
        )

    def log(self, text: str) -> None:
        """Write to the log of the function behind the service token, for what that function would have logged."""
        write_log(self.context, log_group_of(self.context, self.function.name), new_log_stream(), text)

    def record(self, mode: Mode, reason: str) -> None:
        """Note how the request was served."""
        request = self.request
        execution = Execution(
            mode, request.resource_type, request.logical_id, reason, request.stack_name, self.request_type
        )
        with self.context.state.lock:
            self.context.state.store(Executions).rows.append(execution)


@handles("AWS::CloudFormation::CustomResource")
class CustomResource(ResourceHandler):
    """A custom resource of any `Custom::…` type. `Ref` is the id its provider gives it.

    An update that answers with another physical id is a replacement: the engine deletes the old id afterwards.
    """

    def create(self, request: ResourceRequest) -> ResourceResult:
        return self._serve(request, "Create")

    def update(self, request: ResourceRequest) -> ResourceResult:
        return self._serve(request, "Update")

    def delete(self, request: ResourceRequest) -> None:
        self._serve(request, "Delete")

    @staticmethod
    def _serve(request: ResourceRequest, request_type: RequestType) -> ResourceResult:
        exchange = _Exchange(request, request_type, _provider(request), str(uuid.uuid4()))
        play = _player(request)
        try:
            if play is not None:
                return _play(exchange, play)
            if exchange.function.handler == FRAMEWORK_HANDLER and ON_EVENT in exchange.function.environment:
                result = _through_framework(exchange)
                exchange.record(
                    "ran", "the function itself; the steps of CDK's provider framework around it are played"
                )
            else:
                result = _run(exchange)
                exchange.record("ran", "")
        except NotExecutableError as error:
            exchange.record("skipped", str(error))
            return ResourceResult(request.physical_id or exchange.request_id)
        except CustomResourceError as error:
            if play is None:
                exchange.record("ran", error.message)
            if request_type == "Create" and error.physical_id is None:
                # CloudFormation makes one itself, and has it deleted in the rollback (coverage roadmap, issue 1814)
                error.physical_id = request.generated_name(max_length=255)
            raise
        return result


def as_text(value: Any) -> Any:
    """Properties as CloudFormation sends them: numbers and booleans are text, nulls are left out."""
    if isinstance(value, dict):
        return {key: as_text(item) for key, item in value.items() if item is not None}
    if isinstance(value, (list, tuple)):
        return [as_text(item) for item in value]
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else str(value)


def _provider(request: ResourceRequest) -> FunctionCode:
    """The function behind the service token; the words for one that is missing are Lambda's."""
    token = str(request.properties.get("ServiceToken", ""))
    if ":sns:" in token:
        raise CustomResourceError(f"the rehearsal serves no custom resource through SNS: {token}")
    try:
        return function_code(request.context, token)
    except UnknownFunctionError as error:
        raise CustomResourceError(f"Function not found: {token}") from error
    except NotExecutableError as error:
        raise CustomResourceError(str(error)) from error


Player = Callable[[_played.Play], _played.Answer]


def _player(request: ResourceRequest) -> Player | None:
    """What plays the provider of this resource, None where its code runs."""
    if _sdk_call.is_sdk_call(request.properties):
        return _sdk_call.sdk_call
    return kubernetes.PLAYERS.get(request.resource_type) or _played.PLAYERS.get(request.resource_type)


def _play(exchange: _Exchange, player: Player) -> ResourceResult:
    """Bring about the documented effect of a provider that cannot run here."""
    request = exchange.request
    play = _played.Play(
        context=exchange.context,
        request_type=exchange.request_type,
        properties=as_text(request.properties),
        previous=as_text(request.previous or {}),
        physical_id=request.physical_id,
        logical_id=request.logical_id,
        function_name=exchange.function.name,
    )
    if exchange.request_type == "Delete" and request.physical_id == CREATE_FAILED_ID:
        return ResourceResult(CREATE_FAILED_ID)
    try:
        answer = player(play)
    except (_played.PlayFailed, ClientError) as failure:
        exchange.record("played", f"refused: {failure}")
        exchange.log(str(failure))
        raise exchange.failed(str(failure), request.physical_id or CREATE_FAILED_ID) from failure
    exchange.record("played", answer.reason)
    return ResourceResult(answer.physical_id or request.physical_id or exchange.request_id, answer.data)


def _run(exchange: _Exchange) -> ResourceResult:
    """Run the provider's function, which answers at its ResponseURL."""
    with exchange.context.state.lock:
        server = exchange.context.state.store(ResponseServer)
    with server.expect() as response:
        invocation = invoke(
            exchange.context,
            exchange.function.arn,
            json.dumps(exchange.event(response.url)),
            request_id=exchange.request_id,
        )
        body = response.wait(0) or _late_answer(exchange, invocation, response)
    if body is None:
        raise CustomResourceError(_no_response(exchange, invocation), exchange.request.physical_id)
    return _accepted(exchange, body)


def _late_answer(exchange: _Exchange, invocation: Invocation, response: Any) -> bytes | None:
    """Wait for an answer that the function left to another one, which it started; an hour on AWS."""
    if invocation.error:
        return None
    seconds = float(exchange.request.properties.get("ServiceTimeout", SERVICE_TIMEOUT_SECONDS))
    body: bytes | None = response.wait(min(LATE_ANSWER_SECONDS, seconds))
    while body is None and in_background(exchange.context) and seconds > 0:
        body = response.wait(POLL_SECONDS)
        seconds -= POLL_SECONDS
    return body


def _no_response(exchange: _Exchange, invocation: Invocation) -> str:
    """CloudFormation's words, which on AWS come after the whole ServiceTimeout, and what the log says."""
    text = (
        "CloudFormation did not receive a response from your Custom Resource. "
        f"Please check your logs for requestId [{exchange.request_id}]."
    )
    if not invocation.error:
        return f"{text} The function {exchange.function.name} ended without one."
    return f"{text} The function {exchange.function.name} failed: {invocation.error_message}"


def _accepted(exchange: _Exchange, body: bytes) -> ResourceResult:
    """The provider's answer, checked as CloudFormation checks it."""
    known_id = exchange.request.physical_id
    if len(body) > RESPONSE_MAX_BYTES:
        raise CustomResourceError("Response object is too long.", known_id)
    try:
        answer = json.loads(body)
    except ValueError as error:
        raise CustomResourceError("Invalid response: the response is not a JSON document.", known_id) from error
    physical_id = answer.get("PhysicalResourceId") if isinstance(answer, dict) else None
    if not isinstance(physical_id, str) or not physical_id:
        raise CustomResourceError("Invalid PhysicalResourceId", known_id)
    if answer.get("Status") == "FAILED":
        raise exchange.failed(str(answer.get("Reason", "")), physical_id)
    if answer.get("Status") != "SUCCESS":
        raise CustomResourceError("Invalid Status in the response: must be SUCCESS or FAILED", physical_id)
    return ResourceResult(physical_id, answer.get("Data") or {})


def _through_framework(exchange: _Exchange) -> ResourceResult:
    """What CDK's provider framework does around the user's functions, its Node.js code apart."""
    request = exchange.request
    if exchange.request_type == "Delete" and request.physical_id == CREATE_FAILED_ID:
        return ResourceResult(CREATE_FAILED_ID)
    marker = request.physical_id or CREATE_FAILED_ID
    event = exchange.event("...")
    answer = _user_function(exchange, ON_EVENT, event, marker)
    physical_id = str(answer.get("PhysicalResourceId") or _default_id(exchange))
    if exchange.request_type == "Delete" and physical_id != request.physical_id:
        reason = (
            f'Error: DELETE: cannot change the physical resource ID from "{request.physical_id}" '
            f'to "{physical_id}" during deletion'
        )
        raise exchange.failed(reason, marker)
    event = {**event, **answer, "PhysicalResourceId": physical_id}
    if IS_COMPLETE in exchange.function.environment:
        event = _until_complete(exchange, event)
    return ResourceResult(str(event["PhysicalResourceId"]), event.get("Data") or {})


def _default_id(exchange: _Exchange) -> str:
    return exchange.request_id if exchange.request_type == "Create" else exchange.request.existing_id


def _until_complete(exchange: _Exchange, event: dict[str, Any]) -> dict[str, Any]:
    for _ in range(IS_COMPLETE_POLLS):
        answer = _user_function(exchange, IS_COMPLETE, event, event["PhysicalResourceId"])
        if answer.get("IsComplete"):
            return {**event, **answer, "Data": {**(event.get("Data") or {}), **(answer.get("Data") or {})}}
        if answer.get("Data"):
            raise exchange.failed(
                'Error: "Data" is not allowed if "IsComplete" is "False"', event["PhysicalResourceId"]
            )
        exchange.context.clock.sleep(IS_COMPLETE_POLL_SECONDS)
    raise exchange.failed("Operation timed out", event["PhysicalResourceId"])


def _user_function(exchange: _Exchange, variable: str, event: dict[str, Any], physical_id: str) -> dict[str, Any]:
    """Call one of the user's functions as the framework does; its failure reads as the framework words it."""
    arn = exchange.function.environment[variable]
    try:
        invocation = invoke(exchange.context, arn, json.dumps(event))
    except UnknownFunctionError as error:
        raise exchange.failed(f"Error: Function not found: {arn}", physical_id) from error
    if invocation.error:
        name = arn.rpartition(":")[2]
        reason = f"Error: {invocation.error_message}\n\nLogs: /aws/lambda/{name}\n"
        exchange.log(reason)
        raise exchange.failed(reason, physical_id)
    result = invocation.result or {}
    if not isinstance(result, dict):
        text = f'Error: return values from user-handlers must be JSON objects. got: "{invocation.payload}"'
        raise exchange.failed(text, physical_id)
    return result
