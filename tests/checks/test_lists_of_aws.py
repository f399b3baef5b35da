"""Paginated lists of AWS: each is read completely, and a response without its list is not an empty list."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import botocore.session
from botocore import xform_name
from botocore.exceptions import DataNotFoundError
from botocore.model import ListShape, OperationModel, Shape, StructureShape

import hyperpod_cdk
from hyperpod_cdk.checks.aws import LiveAws
from hyperpod_cdk.handlers.quota_gate.reading import Listed, Own
from tests.support.scripted_aws import ACCOUNT, REGION, WHO, ScriptedSession, api_name

SOURCE = Path(hyperpod_cdk.__file__).parent

SERVICES = (
    "amp",
    "budgets",
    "chatbot",
    "cloudformation",
    "cloudwatch",
    "ec2",
    "ecr",
    "eks",
    "events",
    "fsx",
    "grafana",
    "iam",
    "kms",
    "lambda",
    "logs",
    "pricing",
    "s3",
    "sagemaker",
    "service-quotas",
    "sns",
    "ssm",
)
"""Those whose clients the product makes."""

TO_THE_END = frozenset({"pages", "listed", "_pages", "_seen", "_ec2", "_governing", "_Filtered"})
"""Functions that read all pages, or hand on what is read so."""

OTHERWISE: Mapping[tuple[str, str], str] = {
    ("checks/aws.py", "describe_backups"): "asked for one backup by its ID",
    ("checks/aws.py", "describe_images"): "AMIs are asked in batches, an image in ECR by its tag",
    ("checks/aws.py", "describe_stacks"): "asked for one stack by its name",
    ("checks/aws.py", "list_requested_service_quota_change_history_by_quota"): "a name that pages() gets",
    **{
        (f"handlers/{name}/index.py", "describe_stacks"): "asked for one stack by its name or ID"
        for name in ("deletion_protection", "node_wait", "quota_gate")
    },
    ("handlers/governance/index.py", "list_tags"): "page by page",
    ("handlers/grafana/index.py", "list_workspace_service_accounts"): "page by page",
    ("handlers/node_wait/index.py", "list_cluster_events"): "the newest, until there are as many as are wanted",
    ("handlers/node_wait/index.py", "list_cluster_nodes"): "page by page",
    ("handlers/notifications/index.py", "filter_log_events"): "page by page",
    **{
        ("handlers/quota_gate/reading.py", f"describe_{name}"): "a row that _ec2() gets"
        for name in ("nat_gateways", "network_interfaces", "security_groups", "subnets", "vpcs")
    },
    ("handlers/quota_gate/reading.py", "list_aws_default_service_quotas"): "a name that pages() gets",
    ("handlers/quota_gate/reading.py", "list_service_quotas"): "a name that pages() gets",
    ("importing/live.py", "describe_stacks"): "asked for one stack by its name",
    ("importing/live.py", "list_cluster_nodes"): "an argument of pages()",
    ("living/extending.py", "describe_training_plan_extension_history"): "page by page, of one that was bought afresh",
    ("living/groups.py", "list_cluster_operations"): "the newest alone",
    ("living/node_logs.py", "get_log_events"): "backwards, until there are as many lines as are wanted",
    ("living/nodes.py", "list_cluster_events"): "the newest, until there are as many as are wanted; tells what it left",
    ("living/nodes.py", "list_cluster_nodes"): "page by page in bounded time; what has more is no answer",
    ("living/watching.py", "list_tags_for_resource"): "of CloudWatch or EventBridge, which have no pages of them",
    ("review/change_sets.py", "describe_change_set"): "its status, until it is made; then pages()",
    ("review/deployed.py", "describe_stacks"): "asked for one stack by its name",
    ("review/stored.py", "list_objects_v2"): "whether there is anything; then pages()",
    ("transitions/counterparts.py", "list_cluster_scheduler_configs"): "a row that pages() gets",
    ("transitions/counterparts.py", "list_compute_quotas"): "a row that pages() gets",
    ("transitions/takeover.py", "describe_change_set"): "its status, until it is made",
    ("transitions/takeover.py", "describe_stacks"): "asked for one stack by its name",
}
"""Lists that the product reads in another way, and why that misses nothing."""

MAY_LACK: Mapping[tuple[str, str], str] = {
    ("handlers/governance/index.py", "Tags"): "of the properties of what is governed",
    ("handlers/node_wait/index.py", "Events"): "they only explain a wait",
    ("handlers/notifications/index.py", "events"): "FilterLogEvents may give a page without any before the last",
    ("handlers/quota_gate/index.py", "Stacks"): "of the properties of the gate",
    ("importing/live.py", "Subnets"): "of a group",
    ("living/notifying.py", "Subscribers"): "of a template",
    ("transitions/takeover.py", "Tags"): "of GetRole, which has none of a role without tags",
}
"""Members named like a list that may be missing, by module: in an answer of AWS a missing list is no empty one."""


class Named(NamedTuple):
    """An operation with pages that a module of the product names, and by which function's call."""

    file: str
    operation: str
    by: str
    is_of_one: bool
    services: tuple[str, ...]


@cache
def _session() -> botocore.session.Session:
    return botocore.session.get_session()


@cache
def _operations(service: str) -> Mapping[str, OperationModel]:
    model = _session().get_service_model(service)
    return {xform_name(name): model.operation_model(name) for name in model.operation_names}


def _paginator(service: str, operation: OperationModel) -> Mapping[str, Any]:
    """Return how an operation pages, as botocore's paginators do where they know it; empty where it has no pages."""
    try:
        found = _session().get_paginator_model(service).get_paginator(operation.name)
    except (ValueError, DataNotFoundError):
        asked, answered = (shape.members if shape else {} for shape in (operation.input_shape, operation.output_shape))
        lists = [name for name, shape in answered.items() if shape.type_name == "list"]
        tokens = [[name for name in each if name.lower().endswith("token")] for each in (asked, answered)]
        if not lists or not all(tokens):
            return {}
        return {"input_token": tokens[0][0], "output_token": tokens[1][0], "result_key": lists[0]}
    key = found["result_key"]
    return {**found, "result_key": key[0] if isinstance(key, list) else key}


@cache
def _names() -> frozenset[str]:
    return frozenset(name for service in SERVICES for name in _operations(service) if "_" in name)


@cache
def _trees() -> Mapping[str, ast.Module]:
    """Return the modules with a word that is an operation: the others can neither call one nor lose its list."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(SOURCE.rglob("*.py"))}
    return {
        path.relative_to(SOURCE).as_posix(): ast.parse(text)
        for path, text in texts.items()
        if not _names().isdisjoint(re.findall(r"[a-z]+(?:_[a-z0-9]+)+", text))
    }


@cache
def _named() -> tuple[Named, ...]:
    return tuple(each for file, tree in _trees().items() for each in _in_module(file, tree))


def _in_module(file: str, tree: ast.Module) -> Iterator[Named]:
    of_calls: dict[int, ast.Call] = {
        id(each): node for node in ast.walk(tree) if isinstance(node, ast.Call) for each in node.args
    }
    for node in ast.walk(tree):
        call = of_calls.get(id(node))
        name: object = node.value if isinstance(node, ast.Constant) else None
        if file.startswith("handlers/") and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            # the code of functions calls botocore's clients by their methods
            call, name = node, node.func.attr
        if not (isinstance(name, str) and "_" in name):
            continue
        given = [each.value for each in call.args if isinstance(each, ast.Constant)] if call else []
        services = [each for each in SERVICES if each in given] or SERVICES
        paged = [each for each in services if (it := _operations(each).get(name)) and _paginator(each, it)]
        if paged:
            function = call.func if call else None
            yield Named(
                file=file,
                operation=name,
                by=getattr(function, "attr", getattr(function, "id", "")),
                is_of_one=call is not None and any(map(_is_one, call.keywords)),
                services=tuple(paged),
            )


def _is_one(keyword: ast.keyword) -> bool:
    """Return whether an argument names one thing by its ID or name, so that there is one row at most."""
    is_named = str(keyword.arg).endswith(("Ids", "Names"))
    return is_named and isinstance(keyword.value, ast.List) and len(keyword.value.elts) == 1


def test_every_list_is_read_to_its_end() -> None:
    otherwise = {(each.file, each.operation) for each in _named() if each.by not in TO_THE_END and not each.is_of_one}
    assert otherwise == set(OTHERWISE)


def test_an_answer_without_its_list_is_read_as_none_nowhere() -> None:
    """``answer.get("Items", ())`` takes an answer that lost its list for one of nothing."""
    found = set()
    for file, tree in _trees().items():
        lists = {
            _paginator(service, _operations(service)[each.operation])["result_key"]
            for each in _named()
            if each.file == file
            for service in each.services
        }
        for node in ast.walk(tree) if lists else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
                if ast.unparse(node.func.value).endswith("properties"):
                    # of a template
                    continue
                name = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
                if name in lists:
                    found.add((file, name))
    assert (found - set(MAY_LACK), set(MAY_LACK) - found) == (set(), set())


def _asked(service: str, operation: str, answer: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> Listed:
    """Read a list of an AWS that answers each page by a function of what it was asked."""
    model = _operations(service)[operation]
    session = ScriptedSession({"sts:GetCallerIdentity": WHO, api_name(service, model.name): answer}).session()
    aws = LiveAws.open(region=REGION, account=ACCOUNT, own=Own(), session=session)
    needed = _least(model.input_shape) if model.input_shape else {}
    return aws.listed(service, operation, str(_paginator(service, model)["result_key"]), **needed)


def _least(shape: Shape) -> Any:
    """Return a value that botocore takes for a shape."""
    if isinstance(shape, StructureShape):
        return {name: _least(shape.members[name]) for name in shape.required_members}
    if isinstance(shape, ListShape):
        return [_least(shape.member)]
    numbers = ("integer", "long", "float", "double", "timestamp")
    return True if shape.type_name == "boolean" else 1 if shape.type_name in numbers else "a" * 20


def _read_to_the_end() -> Sequence[tuple[str, str]]:
    return sorted(
        {(service, each.operation) for each in _named() if each.by in TO_THE_END for service in each.services}
    )


def test_of_each_list_all_pages_are_read() -> None:
    assert len(_read_to_the_end()) > 40
    for service, operation in _read_to_the_end():
        pages = _paginator(service, _operations(service)[operation])
        key = pages["result_key"]

        def page(asked: Mapping[str, Any], pages: Mapping[str, Any] = pages, key: str = key) -> Mapping[str, Any]:
            number = int(asked.get(pages["input_token"], "0"))
            following = {pages["output_token"]: str(number + 1)} if number < 2 else {}
            flag = {pages["more_results"]: number < 2} if "more_results" in pages else {}
            # a page may be empty though others follow
            return {key: [] if number == 1 else [f"row {number}"], **following, **flag}

        found = _asked(service, operation, page)
        assert (found.items, found.missing) == (["row 0", "row 2"], None), (service, operation)


def test_of_no_list_an_answer_without_it_is_an_empty_one() -> None:
    for service, operation in _read_to_the_end():
        model = _operations(service)[operation]
        found = _asked(service, operation, lambda _: {})
        key = _paginator(service, model)["result_key"]
        reason = f"the answer to {api_name(service, model.name)} cannot be read: '{key}' is missing"
        assert (found.items, found.missing and found.missing.reason) == ([], reason)
