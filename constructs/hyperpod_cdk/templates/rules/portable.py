"""Values that tie a template to one account or partition, or that do not exist."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from hyperpod_cdk.templates.groups import SUBNET
from hyperpod_cdk.templates.rules.rule import Context, Spot
from hyperpod_cdk.templates.values import imports

_DUMMY = re.compile(r"dummy1[abc]|dummy-value-for-.*|vpc-12345|[sp]-12345")
_LITERAL_ARN = re.compile(r"arn:aws[a-z-]*:(?P<service>[a-z0-9-]*)(?::[a-z0-9-]*:(?P<account>\d{12})(?!\d))?[^\s\"',]*")


def no_get_azs(context: Context) -> Iterator[Spot]:
    """Find Fn::GetAZs in any property."""
    for resource in context.of_type():
        for place in _places_of_key(resource.properties, "Fn::GetAZs", "Properties"):
            yield Spot(
                resource=resource,
                place=place,
                message="must not use Fn::GetAZs, whose zones differ from account to account; name Availability "
                "Zone IDs",
            )


def no_dummy_values(context: Context) -> Iterator[Spot]:
    """Find CDK's placeholders for a lookup."""
    for resource in context.of_type():
        for place, text in _strings(resource.properties, "Properties"):
            if _DUMMY.fullmatch(text):
                yield Spot(
                    resource=resource,
                    place=place,
                    message=f"must be a real value, got {text}, which is CDK's placeholder without a lookup; pass "
                    "the value instead of a lookup",
                )


def imports_are_exported(context: Context) -> Iterator[Spot]:
    """Find imports of other stacks that no stack exports, for example after one stack has replaced another.

    An export whose name does not begin with that of one of these stacks belongs to others and is unknown; one that CDK
    has named for a stack of this environment belongs to a stack that no longer exists.
    """
    assembly = context.assembly
    of_cdk = re.compile(rf"{re.escape(assembly.environment)}-.*:ExportsOutput") if assembly.environment else None
    for stack in assembly.stacks:
        if None in (name for other in assembly.stacks for name in other.export_names.values()):
            # any of these may be the missing one
            return
        for name in dict.fromkeys(imports(stack)):
            exporter = name.partition(":")[0]
            is_known = exporter in assembly.by_name or (of_cdk is not None and of_cdk.match(name))
            if not is_known or name in assembly.exports:
                continue
            importer = next((each for each in stack.resources.values() if name in imports(stack, each.body)), None)
            if importer is not None:
                yield Spot(
                    resource=importer,
                    place="",
                    message=f"must import an export of {exporter}, got {name}, which does not exist; export it "
                    f"from {exporter}, or keep that stack as hyperpod-cdk creates it",
                )


def partition_from_token(context: Context) -> Iterator[Spot]:
    """Find ARNs with a literal partition, except for those with an account, which a user named."""
    for resource in context.of_type():
        for place, text in _strings(resource.properties, "Properties"):
            for match in _LITERAL_ARN.finditer(text):
                if match["account"] is None:
                    yield Spot(
                        resource=resource,
                        place=place,
                        message=f"must use AWS::Partition, got {match[0]}; write "
                        f"arn:${{AWS::Partition}}:{match['service']}",
                    )


def subnet_zone_by_id(context: Context) -> Iterator[Spot]:
    """Find subnets that name their zone by its name."""
    for resource in context.of_type(SUBNET):
        if "AvailabilityZone" in resource.properties:
            got = resource.properties["AvailabilityZone"]
            yield Spot(
                resource=resource,
                place="Properties.AvailabilityZone",
                message=f"must name its zone by ID, got the name {got if isinstance(got, str) else json.dumps(got)}; "
                "set AvailabilityZoneId",
            )


def _strings(value: Any, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _strings(inner, f"{place}.{key}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _strings(inner, f"{place}.{index}")


def _places_of_key(value: Any, key: str, place: str) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == key:
                yield place
            yield from _places_of_key(inner, key, f"{place}.{name}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _places_of_key(inner, key, f"{place}.{index}")
