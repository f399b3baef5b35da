"""IMPORT change sets: existing resources are added to a stack, as in CloudFormation's user guide and API reference.

User guide, "Import AWS resources into a CloudFormation stack manually": every resource to import has a DeletionPolicy
and identifiers by its type's primary identifier; it exists, its properties hold to the schema, and no other stack of
the Region owns it; nothing else is created, changed or deleted. Values of the template are not compared with reality.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hyperpod_cdk_rehearsal.embedded.cloudformation.changes import preview
from hyperpod_cdk_rehearsal.embedded.cloudformation.deployment import Deployment
from hyperpod_cdk_rehearsal.embedded.cloudformation.graph import WorkFailedError
from hyperpod_cdk_rehearsal.embedded.cloudformation.provision import Provisioner, ResourceFailure
from hyperpod_cdk_rehearsal.embedded.cloudformation.schema import ResourceSchema
from hyperpod_cdk_rehearsal.embedded.cloudformation.stacks import Settings, Stack, StackResource, stacks_of
from hyperpod_cdk_rehearsal.embedded.cloudformation.template import ResourceDefinition, TemplateError
from hyperpod_cdk_rehearsal.embedded.cloudformation.workspace import Workspace
from hyperpod_cdk_rehearsal.embedded.context import Context

MOST = 200
"""Members of ResourcesToImport (CloudFormation API reference, CreateChangeSet)."""

_NEEDED_HANDLERS = frozenset({"create", "read", "update", "delete", "list"})
"""A type without one of them does not support import operations, and is not in the documented list.

Some types are not in the list although their schema has them (CloudFormation user guide, "Resource type support").
"""
_IMPORTED = "Resource import completed."
_TAGS = "Apply stack-level tags to imported resource if applicable."


@dataclass(frozen=True)
class Wanted:
    """One member of ResourcesToImport, checked."""

    logical_id: str
    resource_type: str
    identifier: Mapping[str, str]


def wanted_of(
    context: Context, stack: Stack, settings: Settings, provisioner: Provisioner, rows: Sequence[Mapping[str, Any]]
) -> list[Wanted]:
    """Return what a change set imports; raises TemplateError for what CloudFormation refuses."""
    if not rows:
        raise TemplateError("You must specify ResourcesToImport when ChangeSetType is IMPORT")
    if len(rows) > MOST:
        raise TemplateError(f"You can import at most {MOST} resources at once, got {len(rows)}")
    found = [
        Wanted(str(row["LogicalResourceId"]), str(row["ResourceType"]), dict(row["ResourceIdentifier"])) for row in rows
    ]
    template, names = settings.template, [each.logical_id for each in found]
    for each in found:
        definition = template.resources.get(each.logical_id)
        if definition is None or definition.resource_type != each.resource_type or names.count(each.logical_id) > 1:
            raise TemplateError(
                f"ResourcesToImport names {each.logical_id} of type {each.resource_type}, which is not one resource of"
                " the template"
            )
        if each.logical_id in stack.resources and stack.resources[each.logical_id].exists:
            raise TemplateError(f"Resource {each.logical_id} is already part of stack {stack.name}")
    unsupported = sorted({each.resource_type for each in found if not imports(provisioner, each.resource_type)})
    if unsupported:
        raise TemplateError(f"ResourceTypes [{', '.join(unsupported)}] are not supported for Import")
    without = [each.logical_id for each in found if not template.resources[each.logical_id].states_deletion_policy]
    if without:
        # aws-quickstart/quickstart-awx issue 38
        raise TemplateError(
            f"The following resources to import [{', '.join(without)}] must have DeletionPolicy attribute specified in"
            " the template."
        )
    for each in found:
        _check_identifier(provisioner, each)
    _check_rest(context, stack, settings, provisioner, names)
    return found


def imports(provisioner: Provisioner, resource_type: str) -> bool:
    """Return whether a type can be imported, by the handlers that its schema declares."""
    schema = None if resource_type.startswith("Custom::") else provisioner.registry.schema(resource_type)
    return schema is not None and set(schema.document.get("handlers", {})) >= _NEEDED_HANDLERS


def identifiers_of(schema: ResourceSchema) -> list[frozenset[str]]:
    """Return the sets of keys by which a type is identified, the primary one first."""
    pointers = [schema.document.get("primaryIdentifier", []), *schema.document.get("additionalIdentifiers", [])]
    return [frozenset(each.rpartition("/")[2] for each in pointer) for pointer in pointers]


def changes_of(found: Sequence[Wanted]) -> list[dict[str, Any]]:
    """Return the changes as DescribeChangeSet has them."""
    return [
        {
            "Type": "Resource",
            "ResourceChange": {
                "Action": "Import",
                "LogicalResourceId": each.logical_id,
                "PhysicalResourceId": "|".join(each.identifier.values()),
                "ResourceType": each.resource_type,
                "Scope": [],
                "Details": [],
            },
        }
        for each in found
    ]


def run_import(workspace: Workspace, settings: Settings, found: Sequence[Wanted]) -> None:
    """Import resources into the stack; after a failure, the stack and the resources are unchanged."""
    stack = workspace.stack
    deployment = Deployment(workspace, settings, creating=False)
    try:
        for each in found:
            deployment.refers_to_what_stands()
            _import(workspace, settings, deployment, each)
    except (WorkFailedError, TemplateError) as error:
        reason = error.message if isinstance(error, TemplateError) else f"Resource import failed: [{error}]"
        stack.set_status("IMPORT_ROLLBACK_IN_PROGRESS", reason)
        with stack.lock:
            for each in found:
                stack.resources.pop(each.logical_id, None)
        stack.set_status("IMPORT_ROLLBACK_COMPLETE")
        return
    with stack.lock:
        stack.settings = settings
        stack.updated = workspace.context.clock.now()
    stack.set_status("IMPORT_COMPLETE")


def _import(workspace: Workspace, settings: Settings, deployment: Deployment, each: Wanted) -> None:
    stack, provisioner = workspace.stack, workspace.provisioner
    definition = settings.template.resources[each.logical_id]
    properties = deployment.prepared(definition, settings.tags)
    resource = _record(workspace, definition, properties)
    stack.set_resource_status(resource, "IMPORT_IN_PROGRESS")
    try:
        provisioner.check(each.logical_id, each.resource_type, properties)
        made = provisioner.read(workspace.request(resource, properties), each.identifier)
        _check_owner(workspace, each, made.physical_id)
    except ResourceFailure as failure:
        raise workspace.fail(resource, "IMPORT_FAILED", failure.reason) from failure
    resource.physical_id, resource.attributes = made.physical_id, dict(made.attributes)
    stack.set_resource_status(resource, "IMPORT_COMPLETE", _IMPORTED)
    own = deployment.prepared(definition, {})
    if own != properties:
        stack.set_resource_status(resource, "UPDATE_IN_PROGRESS", _TAGS)
        request = workspace.request(
            resource, properties, previous=own, physical_id=made.physical_id, tags=settings.tags
        )
        try:
            provisioner.update(request, stack)
        except ResourceFailure as failure:
            raise workspace.fail(resource, "UPDATE_FAILED", failure.reason) from failure
        stack.set_resource_status(resource, "UPDATE_COMPLETE", _TAGS)


def _record(workspace: Workspace, definition: ResourceDefinition, properties: dict[str, Any]) -> StackResource:
    resource = StackResource(
        logical_id=definition.logical_id,
        resource_type=definition.resource_type,
        physical_id=None,
        status="IMPORT_IN_PROGRESS",
        properties=properties,
        attributes={},
        metadata=definition.metadata,
        deletion_policy=definition.deletion_policy,
        depends_on=frozenset(),
        updated=workspace.context.clock.now(),
    )
    with workspace.stack.lock:
        workspace.stack.resources[definition.logical_id] = resource
    return resource


def _check_identifier(provisioner: Provisioner, each: Wanted) -> None:
    schema = provisioner.registry.schema(each.resource_type)
    known = identifiers_of(schema) if schema else []
    if frozenset(each.identifier) not in known or not all(each.identifier.values()):
        wanted = ", ".join(sorted(known[0])) if known else "none"
        raise TemplateError(
            f"ResourceIdentifier of {each.logical_id} must have the keys [{wanted}], got [{', '.join(each.identifier)}]"
        )


def _check_rest(
    context: Context, stack: Stack, settings: Settings, provisioner: Provisioner, names: Sequence[str]
) -> None:
    """Refuse a template with changes other than the imported resources."""
    found = preview(context, stack, settings, provisioner)
    others = [
        change["ResourceChange"]["LogicalResourceId"]
        for change in found.changes
        if change["ResourceChange"]["LogicalResourceId"] not in names
    ]
    if others:
        raise TemplateError(
            f"You have modified resources [{', '.join(sorted(others))}] in your template that are not being imported."
            " Update, create or delete operations cannot be executed during import operations."
        )
    if found.outputs_change:
        # awslabs/aws-security-assessment-solution issue 6
        raise TemplateError("As part of the import operation, you cannot modify or add [Outputs]")


def _check_owner(workspace: Workspace, each: Wanted, physical_id: str) -> None:
    for other in stacks_of(workspace.context).active():
        for resource in list(other.resources.values()):
            is_itself = other is workspace.stack and resource.logical_id == each.logical_id
            same = resource.resource_type == each.resource_type and resource.physical_id == physical_id
            if same and resource.exists and not is_itself:
                raise ResourceFailure(f"Resource {physical_id} already exists in stack {other.stack_id}")
