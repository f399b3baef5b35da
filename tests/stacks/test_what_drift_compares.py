"""Drift compares every value of the shipped templates, or it is listed here with the reason."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hyperpod_cdk.catalog.create_only import update_rule
from hyperpod_cdk.checks.answers import NotAnswered
from hyperpod_cdk.living.drift import stated_of
from hyperpod_cdk.living.facts import facts
from hyperpod_cdk.living.kinds import KINDS
from hyperpod_cdk.living.standing import grounded
from hyperpod_cdk.templates.assembly import Assembly, Resource, Stack
from tests.support.assembly import Synthesized

Path = tuple[str | int, ...]

ELSEWHERE = {
    "AWS::CloudWatch::Dashboard": r"DashboardBody",
    "AWS::IAM::ManagedPolicy": r"Roles\.\*",
    "AWS::Lambda::Function": r"Code\..+",
    "Custom::AWSCDK-EKS-KubernetesResource": r"ClusterName",
    "Custom::HyperPodDeletionProtection": r"Enabled",
    "Custom::HyperPodLogSettings": r"LogGroupName",
}
"""What is read for the comparison, which then says whether it is the same: a body, an archive, where to look; or is
compared with another resource: with the role that a policy is attached to, with the stack that is protected."""

NOT_TOLD = {
    "AWS::EKS::Addon": r"ResolveConflicts",
    "Custom::AWSCDK-EKS-KubernetesResource": r"Overwrite",
    "Custom::CDKBucketDeployment": (
        r"OutputObjectKeys|Prune|RetainOnDelete|SourceMarkers.*|WaitForDistributionInvalidation"
    ),
}
"""What is said to CloudFormation or a function alone: AWS has nothing of it."""

_EVERYWHERE = re.compile(r"ServiceToken|ServiceTimeout|(?:.+\.)?\w*(?:Policy|PolicyDocument)\.Version|ClusterArn")
"""Of custom resources, where they are made and by whom; of policies, the version of their language."""


def test_every_value_of_a_template_is_compared_or_named(synthesized: Synthesized) -> None:
    """A value that is none of both would be called as deployed, whatever AWS has."""
    region = synthesized.environment.region
    stacks = [
        Stack(name=name, template=each, account="111122223333", region=region)
        for name, each in synthesized.templates.items()
    ]
    assembly = Assembly(environment="any", stacks=tuple(stacks))
    ids = {(each.stack, each.logical_id): f"arn:aws:any:::{each.logical_id}" for each in assembly.resources()}
    arns = {each.name: f"arn:aws:cloudformation:{region}:111122223333:stack/{each.name}/0a1b-2c3d" for each in stacks}
    assembly = grounded(assembly, ids, arns)
    found = {
        f"{resource.type} {place}"
        for resource in assembly.resources()
        if resource.type in KINDS
        for place in _overlooked(assembly, resource, ids)
    }
    assert found == set()


def _overlooked(assembly: Assembly, resource: Resource, ids: dict[tuple[str, str], str]) -> Iterator[str]:
    properties, rule = dict(resource.properties), update_rule(resource.type)
    before = _compared(assembly, resource, properties, ids)
    named = [each[resource.type] for each in (ELSEWHERE, NOT_TOLD) if resource.type in each]
    for path in _places(properties):
        steps = tuple("*" if isinstance(each, int) else each for each in path)
        place = ".".join(steps)
        if _EVERYWHERE.fullmatch(place) or any(re.fullmatch(each, place) for each in named):
            continue
        # its service changes it as little as CloudFormation
        if rule is not None and rule.is_create_only(steps):
            continue
        if _compared(assembly, resource, _changed(properties, path), ids) == before:
            yield place


def _compared(
    assembly: Assembly, resource: Resource, properties: dict[str, Any], ids: dict[tuple[str, str], str]
) -> object:
    stack = assembly.by_name[resource.stack]
    body = {**resource.body, "Properties": properties}
    template = {**stack.template, "Resources": {**stack.template["Resources"], resource.logical_id: body}}
    stacks = (replace(each, template=template) if each is stack else each for each in assembly.stacks)
    edited = Assembly(environment="any", stacks=tuple(stacks))
    one = edited.find(resource.stack, resource.logical_id)
    assert one is not None
    try:
        return facts(stated_of(edited, one, physical=ids[resource.stack, resource.logical_id], ids=ids))
    except NotAnswered as missing:
        return missing.reason


def _places(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield where the values stand; a reference is one."""
    is_reference = isinstance(value, dict) and len(value) == 1 and next(iter(value)).startswith(("Fn::", "Ref"))
    if isinstance(value, dict) and value and not is_reference:
        for key, each in value.items():
            yield from _places(each, (*path, key))
    elif isinstance(value, list) and value:
        for number, each in enumerate(value):
            yield from _places(each, (*path, number))
    elif path:
        yield path


def _changed(properties: dict[str, Any], path: Path) -> dict[str, Any]:
    edited: Any = copy.deepcopy(properties)
    holder = edited
    for step in path[:-1]:
        holder = holder[step]
    old = holder[path[-1]]
    holder[path[-1]] = (not old) if isinstance(old, bool) else old + 1 if isinstance(old, int) else "another"
    return dict(edited)
