"""The names a stack's template is resolved with: its parameters, pseudo parameters, resources and imports."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from botocore.exceptions import ClientError

from hyperpod_cdk_rehearsal.embedded.cloudformation.references import references
from hyperpod_cdk_rehearsal.embedded.cloudformation.resolver import Resolver, Scope
from hyperpod_cdk_rehearsal.embedded.cloudformation.stacks import Settings, Stack, stacks_of
from hyperpod_cdk_rehearsal.embedded.cloudformation.template import Template, TemplateError
from hyperpod_cdk_rehearsal.embedded.context import Context

_DYNAMIC = re.compile(r"\{\{resolve:(?P<service>[a-z-]+):(?P<rest>[^}]+)\}\}")

RefFunction = Callable[[str], Any]
AttributeFunction = Callable[[str, str], Any]


def resolver_of(
    context: Context,
    stack: Stack,
    settings: Settings,
    *,
    ref: RefFunction | None = None,
    attribute: AttributeFunction | None = None,
) -> Resolver:
    """A resolver of a stack's new template; without `ref` and `attribute` no resource may be referred to."""

    def refuse_ref(name: str) -> Any:
        raise TemplateError(f"Template error: {name} is a resource and cannot be referred to here")

    def refuse_attribute(name: str, _attribute: str) -> Any:
        raise TemplateError(f"Template error: {name} is a resource and cannot be referred to here")

    scope = Scope(
        template=settings.template,
        parameters={key: parameter.value for key, parameter in settings.parameters.items()},
        pseudo=pseudo_parameters(context, stack, settings),
        ref=ref or refuse_ref,
        attribute=attribute or refuse_attribute,
        import_value=stacks_of(context).export,
        availability_zones=lambda region: availability_zones(context, region),
    )
    return Resolver(scope)


def pseudo_parameters(context: Context, stack: Stack, settings: Settings) -> dict[str, Any]:
    """The AWS::… parameters of a stack."""
    return {
        "AWS::AccountId": context.account,
        "AWS::NotificationARNs": list(settings.notification_arns),
        "AWS::Partition": context.partition,
        "AWS::Region": context.region,
        "AWS::StackId": stack.stack_id,
        "AWS::StackName": stack.name,
        "AWS::URLSuffix": context.url_suffix,
    }


def included_resources(template: Template, resolver: Resolver) -> list[str]:
    """Logical ids whose condition holds, in the template's order."""
    return [
        name
        for name, definition in template.resources.items()
        if definition.condition is None or resolver.condition(definition.condition)
    ]


def imported_names(template: Template, resolver: Resolver, included: list[str]) -> frozenset[str]:
    """Names of the exports that the included resources and outputs import; raises TemplateError for an absent one."""
    values: list[Any] = [template.resources[name].properties for name in included]
    values += [output for output in template.outputs.values() if resolver_holds(resolver, output.get("Condition"))]
    names = frozenset(name for value in values for name in _imports(resolver, value))
    for name in sorted(names):
        resolver.scope.import_value(name)
    return names


def resolver_holds(resolver: Resolver, condition: str | None) -> bool:
    """Whether a member with this condition (or none) is there."""
    return condition is None or resolver.condition(condition)


def ssm_parameter(context: Context, name: str) -> str:
    """The text of a Systems Manager parameter; raises TemplateError where there is none."""
    try:
        found = context.client("ssm").get_parameter(Name=name, WithDecryption=True)
    except ClientError as error:
        raise TemplateError(f"Unable to fetch parameters [{name}] from parameter store for this account.") from error
    return str(found["Parameter"]["Value"])


def availability_zones(context: Context, region: str) -> list[str]:
    """Names of a region's zones."""
    zones = context.client("ec2", region).describe_availability_zones()["AvailabilityZones"]
    return sorted(str(zone["ZoneName"]) for zone in zones)


def with_dynamic_references(context: Context, value: Any) -> Any:
    """The value with every `{{resolve:…}}` in its texts replaced; done when a resource is provisioned, as AWS does."""
    if isinstance(value, Mapping):
        return {key: with_dynamic_references(context, member) for key, member in value.items()}
    if isinstance(value, list):
        return [with_dynamic_references(context, member) for member in value]
    if isinstance(value, str) and "{{resolve:" in value:
        return _DYNAMIC.sub(lambda match: _dynamic(context, match["service"], match["rest"]), value)
    return value


def _dynamic(context: Context, service: str, rest: str) -> str:
    if service in ("ssm", "ssm-secure"):
        return ssm_parameter(context, rest)
    raise TemplateError(f"the rehearsal does not resolve {{{{resolve:{service}:{rest}}}}}; use ssm or ssm-secure")


def _imports(resolver: Resolver, value: Any) -> list[str]:
    if isinstance(value, list):
        return [name for member in value for name in _imports(resolver, member)]
    if not isinstance(value, Mapping):
        return []
    found = []
    for key, argument in value.items():
        if key == "Fn::ImportValue" and not _needs_resource(resolver.scope.template, argument):
            found.append(str(resolver.resolve(argument)))
        elif key == "Fn::If" and isinstance(argument, list) and len(argument) == 3:
            found += _imports(resolver, argument[1] if resolver.condition(argument[0]) else argument[2])
        else:
            found += _imports(resolver, argument)
    return found


def _needs_resource(template: Template, value: Any) -> bool:
    return any(found.name in template.resources for found in references(value) if found.kind in ("ref", "attribute"))
