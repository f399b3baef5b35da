"""Lambda functions with their code and permissions, and layer versions, as Lambda has them."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, Final

from hyperpod_cdk.checks.answers import NotAnswered
from hyperpod_cdk.living.facts import UNKNOWN, holds_unknown
from hyperpod_cdk.living.look import TAGS, Kind, Look, Properties, Stated, keyed, reading, statements, taken
from hyperpod_cdk.review.stored import content
from hyperpod_cdk.templates.values import resolve

_GONE: Final = "ResourceNotFoundException"
_SETTINGS: Final = (
    "Architectures",
    "DeadLetterConfig",
    "Description",
    "EphemeralStorage",
    "Handler",
    "KmsKeyArn",
    "MemorySize",
    "Role",
    "Runtime",
    "Timeout",
    "TracingConfig",
)
_LOGGING: Final = {"LogFormat": "Text", "ApplicationLogLevel": "INFO", "SystemLogLevel": "INFO"}
"""Lambda's defaults for a function's logging settings (developer guide, "Configuring advanced logging controls"),
without its log group."""

_UPLOADED: Final = "as uploaded"
_OTHER_CODE: Final = "code that differs from what was uploaded"
_OTHER_VALUE: Final = "another value"
_BY_HAND: Final = "a value that no template has"
"""Values of variables that were set by hand are not shown: one can be a secret."""

_SERVICE: Final = ".amazonaws.com"
_PERMISSION: Final = "AWS::Lambda::Permission"


def _function(look: Look) -> Properties | None:
    found = look.found("lambda", "get_function", _GONE, FunctionName=look.id)
    if found is None:
        return None
    policy = look.found("lambda", "get_policy", _GONE, FunctionName=look.id) or {}
    with reading("lambda:GetFunction"):
        told = found["Configuration"]
        environment = told.get("Environment", {})
        if "Error" in environment:
            raise NotAnswered("Lambda does not show its environment variables")
        return {
            **taken(told, *_SETTINGS),
            "Code": _UPLOADED if told["CodeSha256"] == _digest(look) else _OTHER_CODE,
            "Environment": {"Variables": _hidden(look, environment.get("Variables", {}))},
            "Layers": [each["Arn"] for each in told.get("Layers", [])],
            "LoggingConfig": _logging(look, told.get("LoggingConfig", {})),
            "VpcConfig": taken(told.get("VpcConfig", {}), "SubnetIds", "SecurityGroupIds"),
            "ReservedConcurrentExecutions": _at_once(found.get("Concurrency", {}).get("ReservedConcurrentExecutions")),
            "Permissions": statements(_without_resource(json.loads(policy.get("Policy", "{}")))),
            "Tags": keyed(found.get("Tags", {})),
        }


def _logging(look: Look, told: Mapping[str, str]) -> dict[str, str]:
    """Return a function's logging settings, without Lambda's defaults for what the template does not state."""
    filled = {**_LOGGING, "LogGroup": f"/aws/lambda/{look.id}"}
    stated = look.stated.get("LoggingConfig") or {}
    return {name: each for name, each in told.items() if name in stated or each != filled.get(name)}


def _at_once(number: Any) -> Any:
    """Say how many executions run at once; 0 means that the function never runs."""
    return number if number is None or holds_unknown(number) else f"{number} at once"


def _digest(look: Look) -> str:
    """Return the hash that Lambda shows for the archive that the template names (Lambda API reference, CodeSha256)."""
    code = look.properties["Code"]
    archive = content(look.aws, str(code["S3Bucket"]), str(code["S3Key"]))
    return base64.b64encode(hashlib.sha256(archive).digest()).decode()


def _hidden(look: Look, variables: Mapping[str, str]) -> list[dict[str, Any]]:
    stated = {each["Key"]: each["Value"] for each in look.stated["Environment"]["Variables"]}

    def shown(name: str, value: str) -> str:
        if name not in stated:
            return _BY_HAND
        return value if holds_unknown(stated[name]) or str(stated[name]) == value else _OTHER_VALUE

    return keyed({name: shown(name, value) for name, value in variables.items()})


def _without_resource(policy: Mapping[str, Any]) -> dict[str, Any]:
    """Return the policy of a function without the function's name: a permission can name it in several ways."""
    rows = policy.get("Statement", [])
    return {"Statement": [{key: each for key, each in row.items() if key != "Resource"} for row in rows]}


def _of_function(stated: Stated) -> Properties:
    code = stated.properties.get("Code")
    if not isinstance(code, Mapping) or "S3Key" not in code:
        raise NotAnswered("its code is in the template or in an image, and Lambda shows only a hash of that")
    variables = (stated.properties.get("Environment") or {}).get("Variables") or {}
    return {
        **stated.properties,
        "ReservedConcurrentExecutions": _at_once(stated.properties.get("ReservedConcurrentExecutions")),
        "Code": _UPLOADED,
        "Environment": {"Variables": keyed(variables)},
        "Permissions": _permissions(stated),
    }


def _permissions(stated: Stated) -> list[dict[str, Any]]:
    """Return the templates' permissions for a function as the statements that Lambda creates from them."""
    found = []
    for each in stated.assembly.of_type(_PERMISSION):
        row = resolve(stated.assembly, each.stack, dict(each.properties))
        function = row.get("FunctionName") if isinstance(row, dict) else None
        if not isinstance(row, dict) or holds_unknown(function):
            raise NotAnswered(f"{each.name} names a function that CloudFormation does not show")
        name = stated.ids.get((each.stack, each.logical_id))
        if str(function).rpartition(":")[2] == stated.id and name is not None:
            found += statements({"Statement": [_statement(name, row)]})
    return found


def _statement(name: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what AddPermission writes (Lambda API reference); UNKNOWN if a permission has an unknown member."""
    principal, arn = row.get("Principal"), row.get("SourceArn")
    is_known = set(row) <= {"FunctionName", "Action", "Principal", "SourceArn", "SourceAccount"}
    if not is_known or not str(principal).endswith(_SERVICE):
        return {"Sid": name, "Effect": UNKNOWN}
    conditions = {
        **({"ArnLike": {"AWS:SourceArn": arn}} if arn is not None else {}),
        **({"StringEquals": {"AWS:SourceAccount": row["SourceAccount"]}} if "SourceAccount" in row else {}),
    }
    return {
        "Sid": name,
        "Effect": "Allow",
        "Principal": {"Service": principal},
        "Action": row.get("Action"),
        **({"Condition": conditions} if conditions else {}),
    }


def _layer(look: Look) -> Properties | None:
    layer, _, version = look.id.rpartition(":")
    found = look.found("lambda", "get_layer_version", _GONE, LayerName=layer, VersionNumber=int(version))
    return None if found is None else {}


KINDS: Final[Mapping[str, Kind]] = {
    "AWS::Lambda::Function": Kind(
        properties=(
            *_SETTINGS,
            "Code",
            "Environment",
            "Layers",
            "LoggingConfig",
            "VpcConfig",
            "ReservedConcurrentExecutions",
            "Tags",
        ),
        read=_function,
        state=_of_function,
        made_by_hand=re.compile(
            rf"{TAGS}|Environment\..+|Layers|LoggingConfig\..+|VpcConfig\..+|ReservedConcurrentExecutions|Permissions\[.+\]"
        ),
        members={"Permissions": "the permission"},
        # no page says whether the handler sends unchanged values, and what it leaves out
        is_left_surely=False,
    ),
    # a version never changes
    "AWS::Lambda::LayerVersion": Kind(properties=(), read=_layer),
}
