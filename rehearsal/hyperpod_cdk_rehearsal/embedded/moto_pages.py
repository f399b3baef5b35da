"""Pages of lists, as botocore's paginators name them: moto and the functions here give everything at once."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any
from xml.etree import ElementTree as ET

import botocore.session
from botocore.exceptions import DataNotFoundError

from hyperpod_cdk_rehearsal.embedded.protocol import WireRequest, WireResponse, service_model
from hyperpod_cdk_rehearsal.embedded.services.timeline import page

EC2_PAGE = 1000
"""The most that EC2 gives at once."""

PAGE = 100
"""The most that other services give at once, where their model does not state less (EKS, ListClusters)."""

_NOT_NAMED: Mapping[str, Mapping[str, str]] = {
    "fsx:DescribeDataRepositoryAssociations": {
        "input_token": "NextToken",
        "output_token": "NextToken",
        "limit_key": "MaxResults",
        "result_key": "Associations",
    },
}
"""Lists whose request and answer have a token (botocore's service models), and of which botocore has no paginator."""

LEFT_TO_MOTO = frozenset({"DescribeNetworkInterfaces"})
"""Lists of EC2 before which a function here only does something."""


def with_limit(service: str, operation: str, request: dict[str, Any], page_size: int | None) -> dict[str, Any]:
    """The request with at most ``page_size`` results asked for, where the operation has pages."""
    limit = limit_member(service, operation)
    if page_size is None or limit is None:
        return request
    return {**request, limit: min(request.get(limit) or page_size, page_size)}


def limit_member(service: str, operation: str) -> str | None:
    """The member that says how many results are wanted, None where the operation has no pages."""
    return paginated(service, operation).get("limit_key")


def in_pages(
    service: str, operation: str, request: Mapping[str, Any], answer: dict[str, Any] | None
) -> dict[str, Any] | None:
    """The page that was asked for of an answer of a function here, which gives its list whole or pages it itself."""
    pages = paginated(service, operation)
    member, start = pages.get("result_key"), request.get(pages.get("input_token", ""))
    if answer is None or not isinstance(member, str) or not isinstance(answer.get(member), list):
        return answer
    size = request.get(pages.get("limit_key", "")) or _most(service, operation)
    if len(answer[member]) <= size:
        return answer
    shown, token = page(answer[member], start, size)
    more = {pages["output_token"]: token} if token else {}
    flag = {pages["more_results"]: bool(token)} if "more_results" in pages else {}
    return {**answer, member: shown, **flag, **more}


def _most(service: str, operation: str) -> int:
    if service == "ec2":
        return EC2_PAGE
    shape = service_model(service).operation_model(operation).input_shape
    limit = limit_member(service, operation)
    stated = shape.members[limit].metadata.get("max") if shape and limit else None
    return min(stated or PAGE, PAGE)


def limit_json(environ: dict[str, Any], service: str, operation: str, page_size: int | None) -> None:
    """Ask moto for no more than ``page_size`` results in a request of the JSON protocols, which it heeds."""
    limit = limit_member(service, operation)
    if page_size is None or limit is None or service_model(service).metadata["protocol"] != "json":
        return
    length = int(environ.get("CONTENT_LENGTH") or 0)
    wanted = json.loads(environ["wsgi.input"].read(length) or b"{}")
    body = json.dumps(with_limit(service, operation, wanted, page_size)).encode()
    environ.update({"wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body))})


def ec2_page(
    operation: str, request: WireRequest, page_size: int | None, respond: Callable[[], WireResponse]
) -> WireResponse:
    """One page of an EC2 list that moto gives whole; with IDs in the request there are no pages."""
    pages = paginated("ec2", operation)
    if not pages.get("limit_key"):
        return respond()
    size = min(int(request.values.get("MaxResults") or EC2_PAGE), page_size or EC2_PAGE)
    whole = respond()
    if whole.status != 200:
        return whole
    root = ET.fromstring(whole.body)  # noqa: S314 - moto's own answer
    namespace = root.tag.partition("}")[0] + "}" if "}" in root.tag else ""
    listed = root.find(f"{namespace}{_list_element(operation, pages['result_key'])}")
    if listed is None or (len(listed) <= size and not request.values.get("NextToken")):
        return whole
    shown, token = page(list(listed), request.values.get("NextToken"), size)
    listed[:] = shown
    for old in root.findall(f"{namespace}nextToken"):
        root.remove(old)
    if token:
        ET.SubElement(root, f"{namespace}nextToken").text = token
    return WireResponse(whole.status, whole.headers, ET.tostring(root))


def _list_element(operation: str, member: str | list[str]) -> str:
    shape = service_model("ec2").operation_model(operation).output_shape
    name = member if isinstance(member, str) else member[0]
    return str(shape.members[name].serialization["name"]) if shape else name


def paginated(service: str, operation: str) -> Mapping[str, Any]:
    """How botocore pages an operation; empty where it does not."""
    return _paginators(service).get(operation) or _NOT_NAMED.get(f"{service}:{operation}", {})


@cache
def _paginators(service: str) -> Mapping[str, Mapping[str, Any]]:
    loader = botocore.session.get_session().get_component("data_loader")
    try:
        found: Mapping[str, Mapping[str, Any]] = loader.load_service_model(service, "paginators-1")["pagination"]
    except DataNotFoundError:
        return {}
    return found
