"""Creates or updates a stack: resources in the order of their graph, then outputs, then the cleanup."""

from __future__ import annotations

import dataclasses
import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hyperpod_cdk_rehearsal.embedded.cloudformation import graph
from hyperpod_cdk_rehearsal.embedded.cloudformation.graph import WorkFailedError
from hyperpod_cdk_rehearsal.embedded.cloudformation.provision import ResourceFailure
from hyperpod_cdk_rehearsal.embedded.cloudformation.resolver import Resolver
from hyperpod_cdk_rehearsal.embedded.cloudformation.scope import (
    imported_names,
    included_resources,
    resolver_holds,
    resolver_of,
    with_dynamic_references,
)
from hyperpod_cdk_rehearsal.embedded.cloudformation.stacks import (
    Output,
    Settings,
    StackResource,
    stacks_of,
)
from hyperpod_cdk_rehearsal.embedded.cloudformation.template import ResourceDefinition, TemplateError
from hyperpod_cdk_rehearsal.embedded.cloudformation.workspace import (
    Workspace,
    attribute_of,
    failed_reason,
    missing_attribute,
)

_CUSTOM_NAME = (
    "CloudFormation cannot update a stack when a custom-named resource requires replacing. "
    "Rename {} and update the stack again."
)
_REFUSALS = frozenset({"AccessDenied", "InvalidRequest", "NotUpdatable", "ServiceLimitExceeded"})
"""Handler error codes of an update that the service did not start or did not complete."""
_REPLACING = "Requested update requires the creation of a new physical resource; hence creating one."

_CLEAN_UP_TRIES = 3

_log = logging.getLogger(__name__)


@dataclass
class Step:
    """What a deployment did to one resource.

    `before` is None for a new one, `attempted` the properties of an update in place, `refused` whether the service
    refused it, `debris` what a replacement that failed left behind.
    """

    before: StackResource | None
    attempted: dict[str, Any] | None = None
    refused: bool = False
    replaced: bool = False
    debris: StackResource | None = None


@dataclass
class Journal:
    """Everything needed to roll back a deployment, kept over several deployments that were not rolled back.

    `unrestored` are the resources at which the last rollback failed, `doomed` those that are no longer needed, with
    their policies: a continued rollback starts where the last one failed, and finally deletes those of both.
    """

    steps: dict[str, Step] = field(default_factory=dict)
    leftovers: list[tuple[StackResource, str]] = field(default_factory=list)
    settings: Settings | None = None
    unrestored: list[str] = field(default_factory=list)
    doomed: dict[str, tuple[StackResource, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class DeploymentOptions:
    """How a deployment behaves when something fails."""

    disable_rollback: bool = False
    delete_on_failure: bool = False
    retain_except_on_create: bool = False


class Deployment:
    """One create or update of a stack, whose operation has already started."""

    def __init__(
        self, workspace: Workspace, settings: Settings, *, creating: bool, options: DeploymentOptions | None = None
    ) -> None:
        self.workspace = workspace
        self.stack = workspace.stack
        self.settings = settings
        self.creating = creating
        self.options = options or DeploymentOptions()
        paused: Deployment | None = self.stack.paused
        self.journal: Journal = paused.journal if paused else Journal(settings=self.stack.settings)
        self._template = settings.template
        self._lock = threading.Lock()
        self._waits_for: dict[str, frozenset[str]] = {}
        self._resolver: Resolver = resolver_of(
            workspace.context, self.stack, settings, ref=self._ref, attribute=self._attribute
        )

    def run(self) -> str | None:
        """Deploy; returns None on success, otherwise the reason of the failure (the caller rolls back)."""
        if self.creating:
            self.stack.settings = self.settings
        try:
            for name in self._template.conditions:
                self._resolver.condition(name)
            included = included_resources(self._template, self._resolver)
            imports = imported_names(self._template, self._resolver, included)
            self._waits_for = graph.dependencies(self._template, included)
            outcome = graph.run(self._waits_for, self._apply)
            if outcome.failed:
                return failed_reason(sorted(outcome.failed), "create" if self.creating else "update")
            outputs = self._outputs()
            stacks_of(self.workspace.context).check_exports(self.stack, outputs)
        except TemplateError as error:
            return f"{error.message} "
        with self.stack.lock:
            self.stack.settings, self.stack.outputs, self.stack.imports = self.settings, outputs, imports
            self.stack.paused = None
            self.stack.updated = None if self.creating else self.workspace.context.clock.now()
        if self.creating:
            self.stack.set_status("CREATE_COMPLETE")
        else:
            self._clean_up(included)
        return None

    def _apply(self, logical_id: str) -> None:
        definition = self._template.resources[logical_id]
        existing = self._existing(logical_id)
        try:
            properties = self._properties(definition)
        except TemplateError as error:
            self._step(logical_id, Step(dataclasses.replace(existing) if existing else None))
            resource = existing or self._record(definition, {}, "CREATE_IN_PROGRESS")
            status = "UPDATE_FAILED" if existing else "CREATE_FAILED"
            raise self.workspace.fail(resource, status, error.message) from error
        if existing is None:
            self._create(definition, properties)
        elif properties != existing.properties or existing.status == "UPDATE_FAILED":
            self._update(definition, existing, properties)
        else:
            self._adopt(definition, existing)

    def _existing(self, logical_id: str) -> StackResource | None:
        """Return the resource to update, or None if one must be created, also to replace one that failed."""
        existing = self.stack.resources.get(logical_id)
        if existing is None or not existing.exists or existing.physical_id is None:
            return None
        if existing.status == "CREATE_FAILED":
            with self._lock:
                self.journal.leftovers.append((existing, "Delete"))
            return None
        return existing

    def _properties(self, definition: ResourceDefinition) -> dict[str, Any]:
        return self.prepared(definition, self.settings.tags)

    def refers_to_what_stands(self) -> None:
        """Resolve references to the current resources of the stack, for an import, which deploys nothing."""
        self._waits_for = {name: frozenset() for name, each in self.stack.resources.items() if each.exists}

    def prepared(self, definition: ResourceDefinition, tags: Mapping[str, str]) -> dict[str, Any]:
        """The properties as the resource gets them with tags of the stack; raises TemplateError."""
        resolved = self._resolver.properties(definition.properties)
        resolved = with_dynamic_references(self.workspace.context, resolved)
        return self.workspace.provisioner.prepared(definition.resource_type, resolved, tags)

    def _create(self, definition: ResourceDefinition, properties: dict[str, Any]) -> None:
        self._step(definition.logical_id, Step(None))
        resource = self._record(definition, properties, "CREATE_IN_PROGRESS")
        self.stack.set_resource_status(resource, "CREATE_IN_PROGRESS")
        try:
            self._provision_new(resource, properties)
        except ResourceFailure as failure:
            resource.physical_id = failure.physical_id
            raise self.workspace.fail(resource, "CREATE_FAILED", failure.reason) from failure
        recorded_only = self.workspace.provisioner.recorded_only(definition.resource_type)
        self.stack.set_resource_status(resource, "CREATE_COMPLETE", recorded_only)

    def _update(self, definition: ResourceDefinition, existing: StackResource, properties: dict[str, Any]) -> None:
        provisioner = self.workspace.provisioner
        step = self._step(definition.logical_id, Step(dataclasses.replace(existing)))
        change = provisioner.change(definition.resource_type, existing.properties, properties)
        if change == "always":
            self._replace(definition, existing, properties, step)
            return
        self.stack.set_resource_status(existing, "UPDATE_IN_PROGRESS")
        request = self.workspace.request(
            existing,
            properties,
            previous=existing.properties,
            physical_id=existing.physical_id,
            tags=self.settings.tags,
        )
        try:
            provisioner.check(definition.logical_id, definition.resource_type, properties)
            step.attempted = properties
            result = provisioner.update(request, self.stack)
        except ResourceFailure as failure:
            if change == "conditionally" and failure.code == "NotUpdatable":
                step.attempted = None
                self._replace(definition, existing, properties, step)
                return
            step.refused = failure.code in _REFUSALS
            raise self.workspace.fail(existing, "UPDATE_FAILED", failure.reason) from failure
        if result.physical_id != existing.physical_id:
            self._leave_over(existing, definition, step)
        attributes = dict(result.attributes)
        existing.attributes = attributes if definition.is_custom else {**existing.attributes, **attributes}
        existing.physical_id = result.physical_id
        existing.properties = properties
        self._adopt(definition, existing)
        self.stack.set_resource_status(existing, "UPDATE_COMPLETE")

    def _replace(
        self, definition: ResourceDefinition, existing: StackResource, properties: dict[str, Any], step: Step
    ) -> None:
        self.stack.set_resource_status(existing, "UPDATE_IN_PROGRESS", _REPLACING)
        name = self.workspace.provisioner.keeps_name(definition.resource_type, existing.properties, properties)
        if name is not None:
            raise self.workspace.fail(existing, "UPDATE_FAILED", _CUSTOM_NAME.format(name))
        before = dataclasses.replace(existing)
        try:
            self._provision_new(existing, properties)
        except ResourceFailure as failure:
            if failure.physical_id is not None:
                step.debris = dataclasses.replace(existing, physical_id=failure.physical_id, properties=properties)
            raise self.workspace.fail(existing, "UPDATE_FAILED", failure.reason) from failure
        self._leave_over(before, definition, step)
        self._adopt(definition, existing)
        self.stack.set_resource_status(existing, "UPDATE_COMPLETE")

    def _provision_new(self, resource: StackResource, properties: dict[str, Any]) -> None:
        provisioner = self.workspace.provisioner
        provisioner.check(resource.logical_id, resource.resource_type, properties)
        request = self.workspace.request(resource, properties, tags=self.settings.tags)
        result = provisioner.create(request, self.stack)
        resource.physical_id = result.physical_id
        resource.attributes = dict(result.attributes)
        resource.properties = properties

    def _leave_over(self, old: StackResource, definition: ResourceDefinition, step: Step) -> None:
        step.replaced = True
        with self._lock:
            self.journal.leftovers.append((dataclasses.replace(old), definition.update_replace_policy))

    def _adopt(self, definition: ResourceDefinition, resource: StackResource) -> None:
        """Apply changes of the definition that need no handler."""
        resource.metadata = definition.metadata
        resource.deletion_policy = definition.deletion_policy
        resource.depends_on = self._waits_for[definition.logical_id]

    def _record(self, definition: ResourceDefinition, properties: dict[str, Any], status: str) -> StackResource:
        resource = StackResource(
            logical_id=definition.logical_id,
            resource_type=definition.resource_type,
            physical_id=None,
            status=status,
            properties=properties,
            attributes={},
            metadata=definition.metadata,
            deletion_policy=definition.deletion_policy,
            depends_on=self._waits_for[definition.logical_id],
            updated=self.workspace.context.clock.now(),
        )
        with self.stack.lock:
            self.stack.resources[definition.logical_id] = resource
        return resource

    def _step(self, logical_id: str, step: Step) -> Step:
        with self._lock:
            return self.journal.steps.setdefault(logical_id, step)

    def _ref(self, logical_id: str) -> Any:
        return self._resource(logical_id).physical_id

    def _attribute(self, logical_id: str, name: str) -> Any:
        resource = self._resource(logical_id)
        value = attribute_of(resource, name)
        if value is None:
            raise TemplateError(missing_attribute(resource, name))
        return value

    def _resource(self, logical_id: str) -> StackResource:
        resource = self.stack.resources.get(logical_id)
        if resource is None or logical_id not in self._waits_for:
            raise TemplateError(
                f"Template format error: Unresolved resource dependencies [{logical_id}] "
                "in the Resources block of the template"
            )
        return resource

    def _outputs(self) -> dict[str, Output]:
        return {
            key: self._output(key, output)
            for key, output in self._template.outputs.items()
            if resolver_holds(self._resolver, output.get("Condition"))
        }

    def _output(self, key: str, output: Mapping[str, Any]) -> Output:
        value = with_dynamic_references(self.workspace.context, self._resolver.resolve(output["Value"]))
        if not isinstance(value, (str, int, float, bool)):
            raise TemplateError(
                f"Template format error: Output {key} is malformed. The Value field of every Outputs member must "
                "evaluate to a String."
            )
        export = output.get("Export")
        export_name = str(self._resolver.resolve(export["Name"])) if export else None
        text = str(value).lower() if isinstance(value, bool) else str(value)
        return Output(key, text, output.get("Description"), export_name)

    def _clean_up(self, included: list[str]) -> None:
        """Delete replaced and removed resources, dependents first; after a failure they remain, as on AWS."""
        self.stack.set_status("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS")
        doomed = {resource.logical_id: (resource, policy) for resource, policy in self.journal.leftovers}
        for logical_id, resource in list(self.stack.resources.items()):
            if logical_id not in included:
                doomed[logical_id] = (resource, resource.deletion_policy)
        clean_up(self.workspace, doomed)
        with self.stack.lock:
            for logical_id in [name for name in self.stack.resources if name not in included]:
                del self.stack.resources[logical_id]
        self.stack.set_status("UPDATE_COMPLETE")


def clean_up(workspace: Workspace, doomed: Mapping[str, tuple[StackResource, str]]) -> None:
    """Delete resources with their policies, each before what it depended on.

    Each is tried three times, as CloudFormation does; one that still fails is left behind, and the stack forgets it.
    """
    waits_for = graph.reverse({name: resource.depends_on for name, (resource, _) in doomed.items()})

    def delete(name: str) -> None:
        resource, policy = doomed[name]
        for _ in range(_CLEAN_UP_TRIES if resource.exists else 0):
            try:
                workspace.delete(resource, policy)
            except WorkFailedError:
                continue
            return
        if resource.exists:
            _log.info("%s of %s was left behind", name, workspace.stack.name)

    graph.run(waits_for, delete)
