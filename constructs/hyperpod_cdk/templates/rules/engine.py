"""AWS's own template engine (cloudformation-validate) over the stacks of an assembly."""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hyperpod_cdk.catalog import regions
from hyperpod_cdk.findings import Severity
from hyperpod_cdk.templates.assembly import Stack
from hyperpod_cdk.templates.engine import validation_engine
from hyperpod_cdk.templates.groups import CLUSTER
from hyperpod_cdk.templates.rules.rule import Problem

LEFT_OUT: Mapping[str, str] = {
    "E3644": (
        "its lists of instance types per Region come from price data and do not have some, such as ml.p5e.48xlarge"
    ),
    "W9002": "users name ARNs of roles, plans and topics; partition-from-token checks the others",
    "W9013": "users name ARNs of roles, plans and topics; partition-from-token checks the others",
}
"""Rules of the engine that are not reported, and why."""

DATED: Mapping[str, str] = {
    "F3006": "its lists of types per Region are as old as the engine, and AWS adds to them every month",
}
"""Rules of the engine that refuse because of a dated table, and are reported as warnings, with the reason."""

_GROUPS_AT_ONCE = 4
_LARGE = 20


def engine_problems(stack: Stack) -> Iterator[Problem]:
    """Return the engine's findings on one template: errors and warnings, for the stack's Region if it is known."""
    import cloudformation_validate as engine  # noqa: PLC0415 - native code, read when it is needed

    region = stack.region if regions.is_known(stack.region) else None
    config = engine.ValidateConfig(
        exclude=engine.RuleFilterConfig(ids=list(LEFT_OUT)),
        detail_level=engine.DetailLevel.STANDARD,
        severity_level=engine.Severity.WARN,
        pseudo_parameter_overrides=engine.PseudoParameterOverrides(
            region=region, partition=regions.partition_of(region) if region else None
        ),
    )
    for piece in _pieces(stack):
        for diagnostic in validation_engine().validate_template(piece.source, config).diagnostics:
            logical_id = diagnostic.entity.logical_id if diagnostic.entity else ""
            place = piece.place_in_whole(logical_id, diagnostic.property_path or "")
            if place is None:
                continue
            parts = (diagnostic.message, diagnostic.suggested_fix)
            yield Problem(
                stack=stack,
                rule=diagnostic.rule_id,
                severity=_severity(diagnostic.rule_id, is_warning=diagnostic.severity == engine.Severity.WARN),
                message="; ".join(part for part in parts if part),
                logical_id=logical_id,
                place=place,
                line=diagnostic.start_line if piece.is_whole else None,
            )


def _severity(rule: str, *, is_warning: bool) -> Severity:
    return Severity.WARNING if is_warning or rule in DATED else Severity.ERROR


@dataclass(frozen=True, kw_only=True)
class _Piece:
    """A template as the engine reads it: whole, or with only a few of its cluster's instance groups."""

    source: str | bytes
    cluster: str = ""
    first_group: int = 0

    @property
    def is_whole(self) -> bool:
        return not self.cluster

    def place_in_whole(self, logical_id: str, place: str) -> str | None:
        """Return the place in the whole template; None for one that the previous piece has reported already."""
        found = re.fullmatch(r"Properties\.InstanceGroups\.(\d+)(.*)", place)
        if self.cluster == logical_id and found:
            return f"Properties.InstanceGroups.{int(found[1]) + self.first_group}{found[2]}"
        return None if self.first_group else place


def _pieces(stack: Stack) -> Iterator[_Piece]:
    """Split a template whose cluster has many groups: the engine's time grows with the square of one resource's
    size."""
    large = [
        resource
        for resource in stack.resources.values()
        if resource.type == CLUSTER
        and isinstance(groups := resource.properties.get("InstanceGroups"), list)
        and len(groups) > _LARGE
    ]
    if len(large) != 1:
        yield _Piece(source=_whole(stack))
        return
    (cluster,) = large
    name = cluster.logical_id
    groups = cluster.properties["InstanceGroups"]
    for first in range(0, len(groups), _GROUPS_AT_ONCE):
        few = {**cluster.properties, "InstanceGroups": groups[first : first + _GROUPS_AT_ONCE]}
        resources = {**stack.template["Resources"], name: {**cluster.body, "Properties": few}}
        piece = {**stack.template, "Resources": resources}
        if first:
            # an output for each group, which the first piece has reported
            piece.pop("Outputs", None)
        yield _Piece(source=_encoded(piece), cluster=name, first_group=first)


def _whole(stack: Stack) -> str | bytes:
    if stack.file is None:
        return _encoded(stack.template)
    with stack.file.open("rb") as stream:
        # the engine reads the byte order mark of Windows' editors as a part of the template
        is_marked = stream.read(len(BOM_UTF8)) == BOM_UTF8
        return stream.read() if is_marked else str(stack.file)


def _encoded(template: Mapping[str, Any]) -> bytes:
    return json.dumps(template).encode()
