"""AWS::Events: rules."""

from __future__ import annotations

from typing import Any

from hyperpod_cdk_rehearsal.embedded.resources._calls import as_list, call, ignoring, retag, tag_list, take
from hyperpod_cdk_rehearsal.embedded.resources.registry import (
    HandlerError,
    ResourceHandler,
    ResourceRequest,
    ResourceResult,
    handles,
)

GONE = "ResourceNotFoundException"
DEFAULT_BUS = "default"


def _client(request: ResourceRequest) -> Any:
    return request.context.client("events")


@handles("AWS::Events::Rule")
class Rule(ResourceHandler):
    """A rule and its targets. `Ref` is the name, `<bus>|<name>` on another bus than the default one."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        name = request.properties.get("Name") or request.generated_name(max_length=64)
        return self._put(request, name)

    def update(self, request: ResourceRequest) -> ResourceResult:
        name = request.existing_id.rpartition("|")[2]
        kept = [target["Id"] for target in as_list(request.properties.get("Targets"))]
        previous = as_list((request.previous or {}).get("Targets"))
        self._remove_targets(request, name, [row["Id"] for row in previous if row["Id"] not in kept])
        result = self._put(request, name)
        client, arn = _client(request), result.attributes["Arn"]
        retag(
            request,
            add=lambda tags: client.tag_resource(ResourceARN=arn, Tags=tag_list(tags)),
            remove=lambda keys: client.untag_resource(ResourceARN=arn, TagKeys=keys),
        )
        return result

    def delete(self, request: ResourceRequest) -> None:
        name = request.existing_id.rpartition("|")[2]
        with ignoring(GONE):
            targets = [target["Id"] for target in as_list(request.properties.get("Targets"))]
            self._remove_targets(request, name, targets)
            call(_client(request), "delete_rule", {"Name": name} | _bus(request))

    @staticmethod
    def _remove_targets(request: ResourceRequest, name: str, ids: list[str]) -> None:
        if ids:
            with ignoring(GONE):
                call(_client(request), "remove_targets", {"Rule": name, "Ids": ids} | _bus(request))

    @staticmethod
    def _put(request: ResourceRequest, name: str) -> ResourceResult:
        client, properties = _client(request), request.properties
        tags = tag_list(properties.get("Tags")) if request.previous is None else []
        arn = call(
            client,
            "put_rule",
            take(properties, "Description", "EventPattern", "ScheduleExpression", "RoleArn")
            | {"Name": name, "State": properties.get("State", "ENABLED"), "Tags": tags or None}
            | _bus(request),
        )["RuleArn"]
        targets = as_list(properties.get("Targets"))
        if targets:
            answer = call(client, "put_targets", {"Rule": name, "Targets": targets} | _bus(request))
            if answer.get("FailedEntryCount"):
                raise HandlerError("InvalidRequest", answer["FailedEntries"][0]["ErrorMessage"])
        bus = properties.get("EventBusName", DEFAULT_BUS)
        physical_id = name if bus == DEFAULT_BUS else f"{bus}|{name}"
        return ResourceResult(physical_id, {"Arn": arn, "RuleName": name})


def _bus(request: ResourceRequest) -> dict[str, Any]:
    return take(request.properties, "EventBusName")
