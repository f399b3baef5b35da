"""What the handlers share: arguments fitted to botocore's model, tags, and errors in AWS's form."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

from botocore.exceptions import ClientError
from botocore.model import ListShape, MapShape, Shape, StructureShape

from hyperpod_cdk_rehearsal.embedded.resources.registry import HandlerError, ResourceRequest

TRUE_WORDS = frozenset({"true", "True", "TRUE"})


def call(client: Any, method: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Call `client.<method>` with arguments fitted to its input model; None values are left out.

    A template may say "60" for 60, "true" for true, and a document for the string that holds it; CloudFormation
    takes all of them, botocore does not.
    """
    operation = client.meta.method_to_api_mapping[method]
    shape = client.meta.service_model.operation_model(operation).input_shape
    fitted = _fit(shape, arguments) if shape else {}
    return cast("dict[str, Any]", getattr(client, method)(**fitted))


def take(properties: Mapping[str, Any], *names: str, **renamed: str) -> dict[str, Any]:
    """The given properties that are set; `ApiName="PropertyName"` renames."""
    wanted = {**{name: name for name in names}, **renamed}
    return {api: properties[name] for api, name in wanted.items() if properties.get(name) is not None}


def document(value: Any) -> str:
    """A policy (or other JSON) document as text, whatever form the template gives it in."""
    return value if isinstance(value, str) else json.dumps(value)


def is_true(value: Any) -> bool:
    """Whether a template's boolean, real or written as text, is true."""
    return value is True or value in TRUE_WORDS


def as_list(value: Any) -> list[Any]:
    """A list property's value; CloudFormation takes a single item for a list of one."""
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


def tag_map(value: Any) -> dict[str, str]:
    """Tags of either form (list of Key/Value, or a mapping) as a mapping."""
    if not value:
        return {}
    if isinstance(value, Mapping):
        return {str(key): str(text) for key, text in value.items()}
    return {str(tag["Key"]): str(tag.get("Value", "")) for tag in value}


def tag_list(value: Any) -> list[dict[str, str]]:
    """Tags of either form as the list of Key/Value."""
    return [{"Key": key, "Value": text} for key, text in tag_map(value).items()]


def stack_tags(request: ResourceRequest) -> list[dict[str, str]]:
    """The tags of CloudFormation itself: by its stack's an environment knows what it made for its own."""
    marks = {"stack-name": request.stack_name, "stack-id": request.stack_id, "logical-id": request.logical_id}
    return tag_list({f"aws:cloudformation:{name}": value for name, value in marks.items()})


def retag(
    request: ResourceRequest,
    *,
    add: Callable[[dict[str, str]], Any],
    remove: Callable[[list[str]], Any],
    name: str = "Tags",
) -> None:
    """Bring the tags of a resource from the previous properties to the new ones."""
    before = tag_map((request.previous or {}).get(name))
    after = tag_map(request.properties.get(name))
    dropped = [key for key in before if key not in after]
    changed = {key: text for key, text in after.items() if before.get(key) != text}
    if dropped:
        remove(dropped)
    if changed:
        add(changed)


def changed(request: ResourceRequest, *names: str) -> bool:
    """Whether any of these properties differs from what was last deployed."""
    previous = request.previous or {}
    return any(previous.get(name) != request.properties.get(name) for name in names)


def error_code(error: ClientError) -> str:
    """AWS's code of an error response."""
    return str(error.response.get("Error", {}).get("Code", ""))


@contextmanager
def ignoring(*codes: str) -> Iterator[None]:
    """Let these error codes pass: what should be gone is gone already."""
    try:
        yield
    except ClientError as error:
        if error_code(error) not in codes:
            raise


@contextmanager
def undone_by(cleanup: Callable[[], Any]) -> Iterator[None]:
    """Take back what a create made so far when a later step of it fails."""
    try:
        yield
    except (ClientError, HandlerError):
        cleanup()
        raise


def refusal(code: str, message: str, operation: str, status: int = 400) -> ClientError:
    """The error that AWS answers where moto would let the call through."""
    return ClientError(
        {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}},  # type: ignore[typeddict-item]  # botocore fills in the rest
        operation,
    )


def pages(client: Any, method: str, key: str, **arguments: Any) -> Iterable[Any]:
    """Every item of a paginated operation, or of a single answer where the operation has no pages."""
    if client.can_paginate(method):
        for page in client.get_paginator(method).paginate(**arguments):
            yield from page.get(key, [])
        return
    yield from getattr(client, method)(**arguments).get(key, [])


def _fit(shape: Shape, value: Any) -> Any:
    if isinstance(shape, StructureShape):
        return _fit_structure(shape, value)
    if isinstance(shape, ListShape):
        return [_fit(shape.member, item) for item in as_list(value)]
    if isinstance(shape, MapShape):
        return {str(key): _fit(shape.value, item) for key, item in value.items() if item is not None}
    return _fit_scalar(shape.type_name, value)


def _fit_structure(shape: StructureShape, value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {
        name: _fit(shape.members[name], item) if name in shape.members else item
        for name, item in value.items()
        if item is not None
    }


def _fit_scalar(type_name: str, value: Any) -> Any:
    if type_name == "boolean":
        return is_true(value)
    if type_name in {"integer", "long"} and isinstance(value, str):
        return int(value)
    if type_name in {"float", "double"} and isinstance(value, str):
        return float(value)
    if type_name == "string" and not isinstance(value, str):
        return json.dumps(value)
    return value
