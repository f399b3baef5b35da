"""A CloudFormation template: parsed from JSON or YAML and checked as far as its text alone allows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import yaml

from hyperpod_cdk_rehearsal.embedded.operations import ServiceError

_SECTIONS = frozenset(
    {
        "AWSTemplateFormatVersion",
        "Conditions",
        "Description",
        "Hooks",
        "Mappings",
        "Metadata",
        "Outputs",
        "Parameters",
        "Resources",
        "Rules",
        "Transform",
    }
)
_RESOURCE_ATTRIBUTES = frozenset(
    {
        "Condition",
        "CreationPolicy",
        "DeletionPolicy",
        "DependsOn",
        "Description",
        "Metadata",
        "Properties",
        "Type",
        "UpdatePolicy",
        "UpdateReplacePolicy",
        "Version",
    }
)
_LIMITS = {"Resources": 500, "Parameters": 200, "Outputs": 200, "Mappings": 200}
"""Members per section; the "CloudFormation quotas" page of the user guide."""
_DESCRIPTION_BYTES = 1024
_FORMAT_VERSION = "2010-09-09"
_PARAMETER_TYPE = re.compile(r"String|Number|CommaDelimitedList|List<(String|Number|AWS::[\w:]+)>|AWS::[\w:]+(<(.+)>)?")
_DELETION_POLICIES = ("Delete", "Retain", "RetainExceptOnCreate", "Snapshot")
_REPLACE_POLICIES = ("Delete", "Retain", "Snapshot")
_TRANSFORMS = frozenset({"AWS::LanguageExtensions"})


class TemplateError(ServiceError):
    """A template or parameter that CloudFormation refuses: code ValidationError."""

    def __init__(self, message: str) -> None:
        super().__init__("ValidationError", message)


@dataclass(frozen=True)
class ResourceDefinition:
    """One member of the Resources section, intrinsic functions unresolved."""

    logical_id: str
    resource_type: str
    properties: dict[str, Any]
    metadata: dict[str, Any]
    depends_on: tuple[str, ...]
    condition: str | None
    deletion_policy: str
    update_replace_policy: str
    creation_policy: dict[str, Any]
    update_policy: dict[str, Any]
    states_deletion_policy: bool = False

    @property
    def is_custom(self) -> bool:
        """Whether a Lambda function or topic of the user's provisions it."""
        return self.resource_type.startswith("Custom::") or (
            self.resource_type == "AWS::CloudFormation::CustomResource"
        )


@dataclass(frozen=True)
class Template:
    """A template whose shape is valid; what it refers to is checked by `references.check_references`."""

    body: str
    document: dict[str, Any]

    @classmethod
    def parse(cls, body: str) -> Template:
        """The template in `body`, JSON or YAML; raises TemplateError as AWS words it."""
        try:
            template = cls(body, _load(body))
            template.check_shape()
        except RecursionError as error:
            # nested too deeply to be read
            raise TemplateError("Template format error: unsupported structure.") from error
        return template

    @property
    def description(self) -> str:
        """The Description, empty where there is none."""
        return str(self.document.get("Description", ""))

    @property
    def parameters(self) -> dict[str, dict[str, Any]]:
        """The Parameters section."""
        return self._section("Parameters")

    @property
    def mappings(self) -> dict[str, dict[str, Any]]:
        """The Mappings section."""
        return self._section("Mappings")

    @property
    def conditions(self) -> dict[str, Any]:
        """The Conditions section."""
        return self._section("Conditions")

    @property
    def rules(self) -> dict[str, dict[str, Any]]:
        """The Rules section."""
        return self._section("Rules")

    @property
    def outputs(self) -> dict[str, dict[str, Any]]:
        """The Outputs section."""
        return self._section("Outputs")

    @property
    def metadata(self) -> dict[str, Any]:
        """The Metadata section."""
        return self._section("Metadata")

    @property
    def transforms(self) -> list[str]:
        """The declared transforms, always as a list."""
        value = self.document.get("Transform", [])
        return [value] if isinstance(value, str) else list(value)

    @cached_property
    def resources(self) -> dict[str, ResourceDefinition]:
        """The Resources section, in the template's order."""
        return {name: _definition(name, raw) for name, raw in self._section("Resources").items()}

    def check_shape(self) -> None:
        """Raise TemplateError for what is wrong whatever the parameters are."""
        unknown = sorted(set(self.document) - _SECTIONS)
        if unknown:
            raise TemplateError(f"Invalid template property or properties [{', '.join(unknown)}]")
        for section in ("Parameters", "Mappings", "Conditions", "Rules", "Outputs", "Metadata", "Resources"):
            if not isinstance(self.document.get(section) or {}, dict):
                raise TemplateError(f"Template format error: {section} section must be an object")
        self._check_limits()
        for path in _nulls(self.document, ""):
            raise TemplateError(f"[{path}] 'null' values are not allowed in templates")
        for transform in self.transforms:
            if transform not in _TRANSFORMS:
                raise TemplateError(f"No transform named {transform} found.")
        for definition in self.resources.values():
            _check_definition(definition)
        _check_parameters(self.parameters)
        for name, output in self.outputs.items():
            if not isinstance(output, dict) or "Value" not in output:
                raise TemplateError(
                    f"Template format error: [/Outputs/{name}] Every Outputs member must contain a Value object"
                )

    def _check_limits(self) -> None:
        if str(self.document.get("AWSTemplateFormatVersion", _FORMAT_VERSION)) != _FORMAT_VERSION:
            raise TemplateError("Template format error: unsupported value for AWSTemplateFormatVersion.")
        for section, limit in _LIMITS.items():
            count, what = len(self._section(section)), section.lower()
            if count > limit:
                raise TemplateError(
                    f"Template format error: Number of {what}, {count}, is greater than maximum allowed, {limit}"
                )
        if len(self.description.encode()) > _DESCRIPTION_BYTES:
            raise TemplateError(f"Template format error: 'Description' length is greater than {_DESCRIPTION_BYTES}.")
        if not self._section("Resources"):
            raise TemplateError("Template format error: At least one Resources member must be defined.")

    def _section(self, name: str) -> dict[str, Any]:
        value: dict[str, Any] = self.document.get(name) or {}
        return value


def _load(body: str) -> dict[str, Any]:
    try:
        document = json.loads(body)
    except json.JSONDecodeError:
        try:
            # SafeLoader with CloudFormation's short tags added
            document = yaml.load(body, Loader=_CloudFormationLoader)  # noqa: S506
        except yaml.YAMLError as error:
            raise TemplateError(f"Template format error: YAML not well-formed. ({error})") from error
    if not isinstance(document, dict):
        raise TemplateError("Template format error: unsupported structure.")
    return document


def _definition(logical_id: str, raw: Any) -> ResourceDefinition:
    where = f"[/Resources/{logical_id}]"
    if not isinstance(raw, dict) or not isinstance(raw.get("Type"), str):
        raise TemplateError(f"Template format error: {where} Every Resources object must contain a Type member.")
    unknown = sorted(set(raw) - _RESOURCE_ATTRIBUTES)
    if unknown:
        raise TemplateError(f"Invalid template resource property '{unknown[0]}'")
    depends_on = raw.get("DependsOn", [])
    deletion_policy = raw.get("DeletionPolicy", "Delete")
    return ResourceDefinition(
        logical_id=logical_id,
        resource_type=raw["Type"],
        properties=raw.get("Properties") or {},
        metadata=raw.get("Metadata") or {},
        depends_on=(depends_on,) if isinstance(depends_on, str) else tuple(depends_on),
        condition=raw.get("Condition"),
        deletion_policy=deletion_policy,
        states_deletion_policy="DeletionPolicy" in raw,
        update_replace_policy=raw.get("UpdateReplacePolicy", "Delete"),
        creation_policy=raw.get("CreationPolicy") or {},
        update_policy=raw.get("UpdatePolicy") or {},
    )


def _check_definition(definition: ResourceDefinition) -> None:
    name = definition.logical_id
    if not re.fullmatch(r"[A-Za-z0-9]{1,255}", name):
        raise TemplateError(f"Template format error: Resource name {name} is non alphanumeric.")
    if not isinstance(definition.properties, dict):
        raise TemplateError(f"Template format error: [/Resources/{name}/Properties] must be an object")
    if definition.deletion_policy not in _DELETION_POLICIES:
        raise TemplateError(f"Template error: DeletionPolicy {definition.deletion_policy} of {name} is not supported")
    if definition.update_replace_policy not in _REPLACE_POLICIES:
        raise TemplateError(
            f"Template error: UpdateReplacePolicy {definition.update_replace_policy} of {name} is not supported"
        )


def _check_parameters(parameters: Mapping[str, Any]) -> None:
    for parameter in parameters.values():
        if not isinstance(parameter, dict) or "Type" not in parameter:
            raise TemplateError("Template format error: Every Parameters object must contain a Type member.")
        if not _PARAMETER_TYPE.fullmatch(str(parameter["Type"])):
            raise TemplateError(f"Template format error: Unrecognized parameter type: {parameter['Type']}")


def _nulls(value: Any, path: str) -> Iterator[str]:
    if value is None:
        yield path
    elif isinstance(value, Mapping):
        for key, member in value.items():
            yield from _nulls(member, f"{path}/{key}")
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from _nulls(member, f"{path}/{index}")


class _CloudFormationLoader(yaml.SafeLoader):
    """YAML with CloudFormation's short tags (!Ref, !GetAtt, !Sub ...); dates stay text."""


def _construct_function(loader: yaml.SafeLoader, tag: str, node: yaml.Node) -> dict[str, Any]:
    value: Any = None
    if isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    elif isinstance(node, yaml.MappingNode):
        value = loader.construct_mapping(node, deep=True)
    elif isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
    if tag in ("Ref", "Condition"):
        return {tag: value}
    if tag == "GetAtt" and isinstance(value, str):
        value = value.split(".", 1)
    return {f"Fn::{tag}": value}


_CloudFormationLoader.add_multi_constructor("!", _construct_function)
_CloudFormationLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
