"""The changes of a deployment, which are the contents of a change set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hyperpod_cdk_rehearsal.embedded.cloudformation import graph
from hyperpod_cdk_rehearsal.embedded.cloudformation.provision import Provisioner, Replacement, shown
from hyperpod_cdk_rehearsal.embedded.cloudformation.references import references
from hyperpod_cdk_rehearsal.embedded.cloudformation.resolver import KNOWN_AFTER_APPLY, is_unknown
from hyperpod_cdk_rehearsal.embedded.cloudformation.scope import included_resources, resolver_holds, resolver_of
from hyperpod_cdk_rehearsal.embedded.cloudformation.stacks import Settings, Stack, StackResource
from hyperpod_cdk_rehearsal.embedded.cloudformation.template import ResourceDefinition
from hyperpod_cdk_rehearsal.embedded.cloudformation.workspace import attribute_of
from hyperpod_cdk_rehearsal.embedded.context import Context

_RECREATION: dict[Replacement, str] = {"never": "Never", "conditionally": "Conditionally", "always": "Always"}
_REPLACEMENT: dict[Replacement, str] = {"never": "False", "conditionally": "Conditional", "always": "True"}
_STRICTNESS: tuple[Replacement, ...] = ("never", "conditionally", "always")
_ABSENT = object()

Path = tuple[str, ...]


@dataclass
class Preview:
    """The changes to resources, and whether anything else in the stack changes."""

    changes: list[dict[str, Any]] = field(default_factory=list)
    outputs_change: bool = False
    tags_change: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether CloudFormation would refuse to deploy for lack of changes."""
        return not (self.changes or self.outputs_change or self.tags_change)


def preview(context: Context, stack: Stack, settings: Settings, provisioner: Provisioner) -> Preview:
    """What deploying these settings would change; raises TemplateError where the template cannot be resolved."""
    return _Planner(context, stack, settings, provisioner).plan()


def without_values(change: Mapping[str, Any]) -> dict[str, Any]:
    """A change as DescribeChangeSet shows it without IncludePropertyValues."""
    resource = {key: value for key, value in change["ResourceChange"].items() if not key.endswith("Context")}
    hidden = ("Path", "BeforeValue", "AfterValue", "AttributeChangeType")
    details: list[dict[str, Any]] = []
    for detail in resource.get("Details", []):
        target = {key: value for key, value in detail["Target"].items() if key not in hidden}
        plain = {**detail, "Target": target}
        if plain not in details:
            details.append(plain)
    return {**change, "ResourceChange": {**resource, "Details": details}}


class _Planner:
    def __init__(self, context: Context, stack: Stack, settings: Settings, provisioner: Provisioner) -> None:
        self._stack = stack
        self._settings = settings
        self._provisioner = provisioner
        self._template = settings.template
        self._existing = {name: resource for name, resource in stack.resources.items() if resource.exists}
        self._unknown_refs: set[str] = set()
        self._unknown_attributes: set[str] = set()
        self._resolver = resolver_of(context, stack, settings, ref=self._ref, attribute=self._attribute)

    def plan(self) -> Preview:
        included = included_resources(self._template, self._resolver)
        found = Preview()
        for name in graph.ordered(graph.dependencies(self._template, included)):
            change = self._change(self._template.resources[name])
            if change is not None:
                found.changes.append({"Type": "Resource", "ResourceChange": change})
        for name, resource in self._existing.items():
            if name not in included:
                found.changes.append({"Type": "Resource", "ResourceChange": _removal(resource)})
        found.outputs_change = self._outputs_change()
        deployed = self._stack.settings
        found.tags_change = deployed is not None and deployed.tags != self._settings.tags
        return found

    def _ref(self, logical_id: str) -> Any:
        resource = self._existing.get(logical_id)
        return KNOWN_AFTER_APPLY if resource is None or logical_id in self._unknown_refs else resource.physical_id

    def _attribute(self, logical_id: str, name: str) -> Any:
        resource = self._existing.get(logical_id)
        if resource is None or logical_id in self._unknown_attributes:
            return KNOWN_AFTER_APPLY
        value = attribute_of(resource, name)
        return KNOWN_AFTER_APPLY if value is None else value

    def _change(self, definition: ResourceDefinition) -> dict[str, Any] | None:
        resolved = self._resolver.properties(definition.properties)
        properties = self._provisioner.prepared(definition.resource_type, resolved, self._settings.tags)
        resource = self._existing.get(definition.logical_id)
        if resource is None or resource.physical_id is None:
            return {
                "Action": "Add",
                "LogicalResourceId": definition.logical_id,
                "ResourceType": definition.resource_type,
                "Scope": [],
                "Details": [],
                "AfterContext": shown({"Properties": properties}),
            }
        return self._modification(definition, resource, properties)

    def _modification(
        self, definition: ResourceDefinition, resource: StackResource, properties: dict[str, Any]
    ) -> dict[str, Any] | None:
        details: list[dict[str, Any]] = []
        replacement: Replacement = "never"
        for path, before, after in differences(resource.properties, properties):
            needs = self._provisioner.replacement(definition.resource_type, path)
            if _STRICTNESS.index(needs) > _STRICTNESS.index(replacement):
                replacement = needs
            details.append(self._detail(definition, path, before, after, needs))
        details += _attribute_details(definition, resource)
        if not details:
            return None
        if replacement != "never":
            self._unknown_refs.add(definition.logical_id)
            self._unknown_attributes.add(definition.logical_id)
        elif definition.is_custom:
            self._unknown_attributes.add(definition.logical_id)
        change = {
            "Action": "Modify",
            "LogicalResourceId": definition.logical_id,
            "PhysicalResourceId": resource.physical_id,
            "ResourceType": definition.resource_type,
            "Replacement": _REPLACEMENT[replacement],
            "Scope": sorted({detail["Target"]["Attribute"] for detail in details}),
            "Details": details,
            "BeforeContext": shown({"Properties": resource.properties}),
            "AfterContext": shown({"Properties": properties}),
        }
        if replacement == "always":
            change["PolicyAction"] = f"ReplaceAnd{definition.update_replace_policy}"
        return change

    def _detail(
        self, definition: ResourceDefinition, path: Path, before: Any, after: Any, needs: Replacement
    ) -> dict[str, Any]:
        target: dict[str, Any] = {
            "Attribute": "Properties",
            "Name": path[0],
            "RequiresRecreation": _RECREATION[needs],
            "Path": "/Properties/" + "/".join(path),
            "AttributeChangeType": "Add" if before is _ABSENT else "Remove" if after is _ABSENT else "Modify",
        }
        if before is not _ABSENT:
            target["BeforeValue"] = _value(before)
        if after is not _ABSENT:
            target["AfterValue"] = _value(after)
        source, entity = self._source(definition, path[0])
        detail = {
            "Target": target,
            "Evaluation": "Dynamic" if is_unknown(after) else "Static",
            "ChangeSource": source,
        }
        return {**detail, "CausingEntity": entity} if entity else detail

    def _source(self, definition: ResourceDefinition, name: str) -> tuple[str, str | None]:
        """Return why a property changes: its value in the template, or what the value refers to."""
        deployed = self._stack.settings
        old = deployed.template.resources.get(definition.logical_id) if deployed else None
        raw = definition.properties.get(name)
        if old is None or deployed is None or old.properties.get(name) != raw:
            return "DirectModification", None
        for found in references(raw):
            before, after = deployed.parameters.get(found.name), self._settings.parameters.get(found.name)
            if found.kind == "ref" and after is not None and (before is None or before.value != after.value):
                return "ParameterReference", found.name
            if found.kind == "ref" and found.name in self._unknown_refs:
                return "ResourceReference", found.name
            if found.kind == "attribute" and found.name in self._unknown_attributes:
                return "ResourceAttribute", f"{found.name}.{found.attribute}"
        return "DirectModification", None

    def _outputs_change(self) -> bool:
        resolve = self._resolver.resolve
        after = {
            key: (str(resolve(output["Value"])), resolve(output.get("Export", {}).get("Name", "")))
            for key, output in self._template.outputs.items()
            if resolver_holds(self._resolver, output.get("Condition"))
        }
        return after != {key: (output.value, output.export_name or "") for key, output in self._stack.outputs.items()}


def differences(before: Any, after: Any, path: Path = ()) -> Iterator[tuple[Path, Any, Any]]:
    """Every leaf that differs, with its path; a missing side is a marker of its own."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in [*before, *(key for key in after if key not in before)]:
            yield from differences(before.get(key, _ABSENT), after.get(key, _ABSENT), (*path, str(key)))
    elif isinstance(before, list) and isinstance(after, list):
        for index in range(max(len(before), len(after))):
            old = before[index] if index < len(before) else _ABSENT
            new = after[index] if index < len(after) else _ABSENT
            yield from differences(old, new, (*path, str(index)))
    elif before != after:
        yield path, before, after


def _attribute_details(definition: ResourceDefinition, resource: StackResource) -> list[dict[str, Any]]:
    changed = {
        "Metadata": definition.metadata != resource.metadata,
        "DeletionPolicy": definition.deletion_policy != resource.deletion_policy,
    }
    return [
        {
            "Target": {"Attribute": attribute, "RequiresRecreation": "Never", "Path": f"/{attribute}"},
            "Evaluation": "Static",
            "ChangeSource": "DirectModification",
        }
        for attribute, differs in changed.items()
        if differs
    ]


def _removal(resource: StackResource) -> dict[str, Any]:
    return {
        "Action": "Remove",
        "PolicyAction": resource.deletion_policy.removesuffix("ExceptOnCreate"),
        "LogicalResourceId": resource.logical_id,
        "PhysicalResourceId": resource.physical_id,
        "ResourceType": resource.resource_type,
        "Scope": [],
        "Details": [],
        "BeforeContext": shown({"Properties": resource.properties}),
    }


def _value(value: Any) -> str:
    if isinstance(value, str):
        return value
    return shown(value)
