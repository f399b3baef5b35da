"""AWS::SSM: parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hyperpod_cdk_rehearsal.embedded.resources._calls import call, ignoring, retag, tag_list, take
from hyperpod_cdk_rehearsal.embedded.resources.registry import (
    HandlerError,
    ResourceHandler,
    ResourceRequest,
    ResourceResult,
    handles,
)

VALUES = ("Type", "Value", "Description", "AllowedPattern", "Tier", "DataType", "Policies")


_MOST: Final = {"Standard": 4096, "Advanced": 8192, "Intelligent-Tiering": 8192}
"""Characters of a value by tier (Systems Manager user guide, "Managing parameter tiers", sizes of 4 KB and 8 KB); with
intelligent tiering a longer value is an advanced parameter."""


def _refuse_long(properties: Mapping[str, Any]) -> None:
    """Refuse a value that is too long for its tier; moto takes values of any length."""
    tier = str(properties.get("Tier") or "Standard")
    most = _MOST.get(tier, _MOST["Standard"])
    if len(str(properties.get("Value", ""))) > most:
        larger = (
            " To create a larger parameter value, upgrade the parameter to use the advanced-parameter tier. For more"
            " information, see https://docs.aws.amazon.com/systems-manager/latest/userguide/"
            "parameter-store-advanced-parameters.html"
        )
        name = "Standard" if most == _MOST["Standard"] else "Advanced"
        raise HandlerError(
            "InvalidRequest",
            f"{name} tier parameters support a maximum parameter value of {most} characters."
            f"{larger if name == 'Standard' else ''}",
        )


def _client(request: ResourceRequest) -> Any:
    return request.context.client("ssm")


@handles("AWS::SSM::Parameter")
class Parameter(ResourceHandler):
    """A parameter. `Ref` is its name."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        properties = request.properties
        _refuse_long(properties)
        name = properties.get("Name") or f"CFN-{request.logical_id}-{request.context.unique_suffix(12)}"
        tags = tag_list(properties.get("Tags"))
        call(
            _client(request),
            "put_parameter",
            take(properties, *VALUES) | {"Name": name, "Overwrite": False, "Tags": tags or None},
        )
        return self._result(request, name)

    def update(self, request: ResourceRequest) -> ResourceResult:
        _refuse_long(request.properties)
        client, name = _client(request), request.existing_id
        call(client, "put_parameter", take(request.properties, *VALUES) | {"Name": name, "Overwrite": True})
        target = {"ResourceType": "Parameter", "ResourceId": name}
        retag(
            request,
            add=lambda tags: client.add_tags_to_resource(**target, Tags=tag_list(tags)),
            remove=lambda keys: client.remove_tags_from_resource(**target, TagKeys=keys),
        )
        return self._result(request, name)

    def delete(self, request: ResourceRequest) -> None:
        with ignoring("ParameterNotFound"):
            _client(request).delete_parameter(Name=request.existing_id)

    @staticmethod
    def _result(request: ResourceRequest, name: str) -> ResourceResult:
        path = name if name.startswith("/") else f"/{name}"
        return ResourceResult(
            name,
            {
                "Arn": request.context.arn("ssm", f"parameter{path}"),
                "Name": name,
                "Type": request.properties["Type"],
                "Value": request.properties["Value"],
            },
        )
