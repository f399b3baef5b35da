"""AWS::SSM: parameters."""

from __future__ import annotations

from typing import Any

from hyperpod_cdk_rehearsal.embedded.resources._calls import call, ignoring, retag, tag_list, take
from hyperpod_cdk_rehearsal.embedded.resources.registry import (
    ResourceHandler,
    ResourceRequest,
    ResourceResult,
    handles,
)

VALUES = ("Type", "Value", "Description", "AllowedPattern", "Tier", "DataType", "Policies")


def _client(request: ResourceRequest) -> Any:
    return request.context.client("ssm")


@handles("AWS::SSM::Parameter")
class Parameter(ResourceHandler):
    """A parameter. `Ref` is its name."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        properties = request.properties
        name = properties.get("Name") or f"CFN-{request.logical_id}-{request.context.unique_suffix(12)}"
        tags = tag_list(properties.get("Tags"))
        call(
            _client(request),
            "put_parameter",
            take(properties, *VALUES) | {"Name": name, "Overwrite": False, "Tags": tags or None},
        )
        return self._result(request, name)

    def update(self, request: ResourceRequest) -> ResourceResult:
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
