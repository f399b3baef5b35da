"""Operations on templates (get, summarize, validate) and on resource types."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from hyperpod_cdk_rehearsal.embedded.cloudformation.service import required_capabilities, service_of
from hyperpod_cdk_rehearsal.embedded.cloudformation.stacks import Stacks, stacks_of
from hyperpod_cdk_rehearsal.embedded.cloudformation.template import Template, TemplateError
from hyperpod_cdk_rehearsal.embedded.context import Context
from hyperpod_cdk_rehearsal.embedded.operations import ServiceError, operation

_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_IAM_REASON = "The following resource(s) require capabilities: [{}]"


@operation("cloudformation", "GetTemplate")
def get_template(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Return the original template of a stack or change set; empty for a stack in review."""
    stacks = stacks_of(context)
    stack = stacks.find(request.get("StackName", ""))
    if stack is not None and stack.settings is None and "ChangeSetName" not in request:
        return {"TemplateBody": "", "StagesAvailable": []}
    # what the CDK CLI expects: it compares with a template of which it has done the same (mangleLikeCloudFormation)
    body = _NOT_ASCII.sub("?", _deployed(stacks, request).body)
    return {"TemplateBody": body, "StagesAvailable": ["Original", "Processed"]}


@operation("cloudformation", "GetTemplateSummary")
def get_template_summary(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Parameters, resource types and needed capabilities of a template."""
    service = service_of(context)
    if "StackName" in request:
        template = _deployed(service.stacks, request)
    else:
        template = Template.parse(service.template_body(request))
    service.check_template(template)
    types = sorted({definition.resource_type for definition in template.resources.values()})
    return {
        "Parameters": [
            {
                "ParameterKey": key,
                "ParameterType": str(declared.get("Type", "String")),
                "NoEcho": _no_echo(declared),
                **_default(declared),
                **_text(declared, "Description"),
                "ParameterConstraints": {"AllowedValues": [str(v) for v in declared.get("AllowedValues", [])]},
            }
            for key, declared in template.parameters.items()
        ],
        "ResourceTypes": types,
        "Metadata": json.dumps(template.metadata),
        "DeclaredTransforms": template.transforms,
        "Version": str(template.document.get("AWSTemplateFormatVersion", "2010-09-09")),
        **({"Description": template.description} if template.description else {}),
        **_capabilities(template),
    }


@operation("cloudformation", "ValidateTemplate")
def validate_template(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Check a template as far as possible without its parameters."""
    service = service_of(context)
    template = Template.parse(service.template_body(request))
    service.check_template(template)
    return {
        "Parameters": [
            {
                "ParameterKey": key,
                "NoEcho": _no_echo(declared),
                **_default(declared),
                **_text(declared, "Description"),
            }
            for key, declared in template.parameters.items()
        ],
        "DeclaredTransforms": template.transforms,
        **({"Description": template.description} if template.description else {}),
        **_capabilities(template),
    }


@operation("cloudformation", "DescribeType")
def describe_type(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """A resource type's schema, from the region's registry."""
    name = request.get("TypeName") or str(request.get("Arn", "")).rpartition("/")[2].replace("-", "::")
    schema = service_of(context).provisioner.registry.schema(name)
    if schema is None:
        raise ServiceError("TypeNotFoundException", f"The type '{name}' cannot be found.", 404)
    arn = f"arn:{context.partition}:cloudformation:{context.region}::type/resource/{name.replace('::', '-')}"
    return {
        "Arn": arn,
        "Type": "RESOURCE",
        "TypeName": name,
        "Schema": json.dumps(schema.document),
        "Visibility": "PUBLIC",
        "DeprecatedStatus": "LIVE",
    }


def _deployed(stacks: Stacks, request: Mapping[str, Any]) -> Template:
    if "StackName" not in request:
        raise TemplateError("StackName or ChangeSetName must be specified")
    stack = stacks.get(request["StackName"])
    wanted = request.get("ChangeSetName")
    for change_set in stack.change_sets.values() if wanted else ():
        if wanted in (change_set.name, change_set.change_set_id):
            return change_set.settings.template
    if wanted:
        raise ServiceError("ChangeSetNotFound", f"ChangeSet [{wanted}] does not exist", 404)
    return stack.template


def _capabilities(template: Template) -> dict[str, Any]:
    needed = required_capabilities(template)
    if not needed:
        return {}
    iam = sorted({d.resource_type for d in template.resources.values() if d.resource_type.startswith("AWS::IAM::")})
    return {"Capabilities": needed, "CapabilitiesReason": _IAM_REASON.format(", ".join(iam))}


def _no_echo(declared: Mapping[str, Any]) -> bool:
    return str(declared.get("NoEcho", "false")).lower() == "true"


def _default(declared: Mapping[str, Any]) -> dict[str, str]:
    return {"DefaultValue": str(declared["Default"])} if "Default" in declared else {}


def _text(declared: Mapping[str, Any], name: str) -> dict[str, str]:
    return {name: str(declared[name])} if name in declared else {}
