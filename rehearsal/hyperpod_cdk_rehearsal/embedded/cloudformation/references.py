"""What a template's values refer to: the resources, parameters, attributes, conditions and exports named in them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from hyperpod_cdk_rehearsal.embedded.cloudformation.template import Template, TemplateError

SUB_PLACEHOLDER = re.compile(r"\$\{(?P<literal>!)?(?P<name>[^}]+)\}")
"""`${Name}`, `${Name.Attribute}` and the literal `${!Name}` of Fn::Sub."""

PSEUDO_PARAMETERS = frozenset(
    {
        "AWS::AccountId",
        "AWS::NoValue",
        "AWS::NotificationARNs",
        "AWS::Partition",
        "AWS::Region",
        "AWS::StackId",
        "AWS::StackName",
        "AWS::URLSuffix",
    }
)


@dataclass(frozen=True)
class Reference:
    """One mention of another part of the template."""

    kind: Literal["ref", "attribute", "condition", "mapping"]
    name: str
    attribute: str = ""


def references(value: Any) -> Iterator[Reference]:
    """Every reference inside a value, nested functions included."""
    if isinstance(value, list):
        for member in value:
            yield from references(member)
    if not isinstance(value, Mapping):
        return
    for key, argument in value.items():
        yield from _of_function(key, argument)
        # Fn::Sub's map and every other argument may nest further functions
        yield from references(argument)


def resource_references(template: Template, value: Any) -> frozenset[str]:
    """The logical ids of the template's resources that a value refers to."""
    return frozenset(
        found.name
        for found in references(value)
        if found.kind in ("ref", "attribute") and found.name in template.resources
    )


def split_attribute(argument: Any) -> tuple[str, Any]:
    """Logical id and attribute name of a Fn::GetAtt argument, list or dotted text."""
    if isinstance(argument, str):
        logical_id, _, attribute = argument.partition(".")
        return logical_id, attribute
    if isinstance(argument, list) and len(argument) >= 2 and isinstance(argument[0], str):
        rest = argument[1] if len(argument) == 2 else ".".join(str(part) for part in argument[1:])
        return argument[0], rest
    raise TemplateError(
        "Template error: every Fn::GetAtt object requires two non-empty parameters, "
        "the resource name and the resource attribute"
    )


def check_references(template: Template) -> None:
    """Raise TemplateError where the template refers to something it does not hold."""
    known = set(template.parameters) | PSEUDO_PARAMETERS
    with_resources = known | set(template.resources)
    for definition in template.resources.values():
        _check_names(template, definition.properties, with_resources, "Resources")
        _check_names(template, definition.metadata, with_resources, "Resources")
        unknown = [name for name in definition.depends_on if name not in template.resources]
        if unknown:
            raise _unresolved(unknown, "Resources")
        _check_condition(template, definition.condition, "Resources")
    for output in template.outputs.values():
        _check_names(template, output.get("Value"), with_resources, "Outputs")
        _check_names(template, output.get("Export", {}), with_resources, "Outputs")
        _check_condition(template, output.get("Condition"), "Outputs")
    _check_names(template, template.conditions, known, "Conditions")


def _of_function(key: str, argument: Any) -> Iterator[Reference]:
    if key == "Ref" and isinstance(argument, str):
        yield Reference("ref", argument)
    elif key == "Condition" and isinstance(argument, str):
        yield Reference("condition", argument)
    elif key == "Fn::GetAtt":
        logical_id, attribute = split_attribute(argument)
        yield Reference("attribute", logical_id, attribute if isinstance(attribute, str) else "")
    elif key == "Fn::If" and isinstance(argument, list) and argument and isinstance(argument[0], str):
        yield Reference("condition", argument[0])
    elif key == "Fn::FindInMap" and isinstance(argument, list) and argument and isinstance(argument[0], str):
        yield Reference("mapping", argument[0])
    elif key == "Fn::Sub":
        yield from _of_sub(argument)


def _of_sub(argument: Any) -> Iterator[Reference]:
    text, own = (argument, {}) if isinstance(argument, str) else (argument[0], argument[1])
    for match in SUB_PLACEHOLDER.finditer(text):
        name = match["name"]
        if match["literal"] or name in own:
            continue
        logical_id, dot, attribute = name.partition(".")
        yield Reference("attribute", logical_id, attribute) if dot else Reference("ref", name)


def _check_names(template: Template, value: Any, known: set[str], block: str) -> None:
    for found in references(value):
        if found.kind == "condition":
            _check_condition(template, found.name, block)
        elif found.kind == "mapping" and found.name not in template.mappings:
            raise TemplateError(
                f"Template error: Mapping named '{found.name}' is not present in the 'Mappings' section."
            )
        elif found.kind == "ref" and found.name not in known:
            raise _unresolved([found.name], block)
        elif found.kind == "attribute" and found.name not in template.resources:
            raise TemplateError(f"Template error: instance of Fn::GetAtt references undefined resource {found.name}")


def _check_condition(template: Template, name: str | None, block: str) -> None:
    if name is not None and name not in template.conditions:
        raise TemplateError(
            f"Template format error: Unresolved condition dependency {name} in the {block} block of the template"
        )


def _unresolved(names: list[str], block: str) -> TemplateError:
    return TemplateError(
        f"Template format error: Unresolved resource dependencies [{', '.join(names)}] "
        f"in the {block} block of the template"
    )
