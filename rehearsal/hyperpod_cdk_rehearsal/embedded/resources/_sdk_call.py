"""CDK's AwsCustomResource, played: one SDK call per request, made with boto3 instead of the JavaScript SDK."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import botocore.session
from botocore import xform_name
from botocore.exceptions import BotoCoreError, ClientError

from hyperpod_cdk_rehearsal.embedded.lambda_runner import NotExecutableError
from hyperpod_cdk_rehearsal.embedded.resources._calls import call, error_code
from hyperpod_cdk_rehearsal.embedded.resources._played import NO_SDK, Answer, Play, PlayFailed

PHYSICAL_ID_MARKER = "PHYSICAL:RESOURCEID:"
BOTO_NAMES = {
    # JavaScript SDK package, dashes and case apart: boto3's name, where the two differ
    "cloudwatchevents": "events",
    "cloudwatchlogs": "logs",
    "eventbridge": "events",
    "elasticloadbalancing": "elb",
    "elasticloadbalancingv2": "elbv2",
    "sfn": "stepfunctions",
}


def is_sdk_call(properties: Mapping[str, Any]) -> bool:
    """Whether these are the properties of an AwsCustomResource, whatever type it is given."""
    return "InstallLatestAwsSdk" in properties


def sdk_call(play: Play) -> Answer:
    """Make the call the request's type has, answer with its flattened response."""
    calls = {
        kind: json.loads(play.properties[kind]) for kind in ("Create", "Update", "Delete") if kind in play.properties
    }
    physical_id = _physical_id(play, calls)
    wanted = calls.get(play.request_type)
    if wanted is None:
        return Answer(physical_id)
    try:
        flat = dict(_flat(_response(play, wanted, physical_id)))
    except ClientError as error:
        pattern = wanted.get("ignoreErrorCodesMatching")
        if pattern and re.search(pattern, error_code(error)):
            return Answer(physical_id)
        raise PlayFailed(str(error).partition(" operation: ")[2] or str(error)) from error
    except BotoCoreError as error:
        raise PlayFailed(str(error)) from error
    path = (wanted.get("physicalResourceId") or {}).get("responsePath")
    paths = wanted.get("outputPaths") or ([wanted["outputPath"]] if wanted.get("outputPath") else [""])
    data = {key: value for key, value in flat.items() if any(key.startswith(prefix) for prefix in paths)}
    return Answer(str(flat[path]) if path else physical_id, data, f"{NO_SDK}; its {_name(wanted)} was made with boto3")


def _name(wanted: Mapping[str, Any]) -> str:
    return f"{wanted['service']}:{wanted['action']}"


def _physical_id(play: Play, calls: Mapping[str, Any]) -> str:
    order = ("Create", "Update", "Delete") if play.request_type == "Create" else (play.request_type,)
    ids = ((calls.get(kind) or {}).get("physicalResourceId", {}).get("id") for kind in order)
    return str(next((found for found in ids if found), play.physical_id or play.logical_id))


def _response(play: Play, wanted: Mapping[str, Any], physical_id: str) -> Mapping[str, Any]:
    client = play.context.client(_boto_service(wanted), wanted.get("region"))
    action = str(wanted["action"]).removesuffix("Command")
    method = xform_name(action[:1].upper() + action[1:])
    if method not in client.meta.method_to_api_mapping:
        raise NotExecutableError(f"boto3 has no {_name(wanted)}")
    answer = call(client, method, _with_id(wanted.get("parameters") or {}, physical_id))
    answer.pop("ResponseMetadata", None)
    return answer


def _boto_service(wanted: Mapping[str, Any]) -> str:
    name = re.sub(r"[^a-z0-9]", "", str(wanted["service"]).lower().removeprefix("@aws-sdk/client-"))
    known = {service.replace("-", ""): service for service in botocore.session.get_session().get_available_services()}
    found = BOTO_NAMES.get(name) or known.get(name)
    if found is None:
        raise NotExecutableError(f"boto3 has no service for {wanted['service']}")
    return found


def _with_id(value: Any, physical_id: str) -> Any:
    if value == PHYSICAL_ID_MARKER:
        return physical_id
    if isinstance(value, Mapping):
        return {key: _with_id(item, physical_id) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_id(item, physical_id) for item in value]
    return value


def _flat(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Leaves by dotted path, list items by number."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _flat(item, (*path, str(key)))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _flat(item, (*path, str(index)))
    else:
        yield ".".join(path), value.isoformat() if isinstance(value, datetime) else value
