"""Synthesizes a stack and validates the template with AWS's own engine."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import aws_cdk as cdk
import cloudformation_validate as engine
from aws_cdk.assertions import Template

_LEAN = {"aws:cdk:disable-asset-staging": True, "aws:cdk:disable-stack-trace": True}
HERE = cdk.Environment(account="111122223333", region="us-east-1")


def app() -> cdk.App:
    """An app without CDK's own, slow validation and what the CDK CLI reads beside templates; it copies no asset."""
    return cdk.App(builtin_cloud_formation_validation=False, tree_metadata=False, context=_LEAN)


def stack(name: str = "test", scope: cdk.App | None = None) -> cdk.Stack:
    """A stack with an account and a region, as all stacks of an environment have."""
    return cdk.Stack(scope or app(), name, env=HERE)


def template_of(stack: cdk.Stack) -> dict[str, Any]:
    """The template, after checking that it has no error and nothing that ties it to an account or partition."""
    template = dict(Template.from_stack(stack).to_json())
    text = json.dumps(template)
    errors = [
        f"{diagnostic.rule_id} {diagnostic.entity}: {diagnostic.message}"
        for diagnostic in _engine().validate_template(text.encode()).diagnostics
        if diagnostic.severity not in (engine.Severity.WARN, engine.Severity.INFO)
    ]
    assert errors == []
    assert [word for word in ("arn:aws:", "Fn::GetAZs", "dummy") if word in _GIVEN.sub("", text)] == []
    return template


def of_type(template: Mapping[str, Any], resource_type: str) -> dict[str, dict[str, Any]]:
    """The resources of one type by logical id."""
    return {name: row for name, row in template["Resources"].items() if row["Type"] == resource_type}


# the ARNs that tests hand in, as users do
_GIVEN = re.compile(r"arn:aws:[a-z]+:[a-z0-9-]*:111122223333:(role|key|training-plan)/")


@cache
def _engine() -> Any:
    return engine.CelEngine()
