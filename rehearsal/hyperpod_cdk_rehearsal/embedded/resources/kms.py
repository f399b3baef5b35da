"""AWS::KMS: keys and aliases."""

from __future__ import annotations

from typing import Any

from hyperpod_cdk_rehearsal.embedded.resources._calls import (
    call,
    changed,
    document,
    ignoring,
    is_true,
    retag,
    tag_map,
    take,
)
from hyperpod_cdk_rehearsal.embedded.resources.registry import (
    ResourceHandler,
    ResourceRequest,
    ResourceResult,
    handles,
)

GONE = "NotFoundException"
PENDING_WINDOW_DAYS = 30


def _client(request: ResourceRequest) -> Any:
    return request.context.client("kms")


def _kms_tags(tags: dict[str, str]) -> list[dict[str, str]]:
    return [{"TagKey": key, "TagValue": text} for key, text in tags.items()]


@handles("AWS::KMS::Key")
class Key(ResourceHandler):
    """A key. `Ref` is its id."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        client, properties = _client(request), request.properties
        key = call(
            client,
            "create_key",
            take(
                properties,
                "Description",
                "KeySpec",
                "KeyUsage",
                "MultiRegion",
                "Origin",
                "BypassPolicyLockoutSafetyCheck",
                Policy="KeyPolicy",
            )
            | {"Tags": _kms_tags(tag_map(properties.get("Tags"))) or None},
        )["KeyMetadata"]
        self._set_rotation(request, key["KeyId"])
        if not is_true(properties.get("Enabled", True)):
            client.disable_key(KeyId=key["KeyId"])
        return self._result(key)

    def update(self, request: ResourceRequest) -> ResourceResult:
        client, key_id = _client(request), request.existing_id
        if changed(request, "KeyPolicy") and request.properties.get("KeyPolicy"):
            policy = document(request.properties["KeyPolicy"])
            client.put_key_policy(KeyId=key_id, PolicyName="default", Policy=policy)
        if changed(request, "Description"):
            client.update_key_description(KeyId=key_id, Description=request.properties.get("Description", ""))
        if changed(request, "EnableKeyRotation", "RotationPeriodInDays"):
            self._set_rotation(request, key_id)
        if changed(request, "Enabled"):
            enabled = is_true(request.properties.get("Enabled", True))
            (client.enable_key if enabled else client.disable_key)(KeyId=key_id)
        retag(
            request,
            add=lambda tags: client.tag_resource(KeyId=key_id, Tags=_kms_tags(tags)),
            remove=lambda keys: client.untag_resource(KeyId=key_id, TagKeys=keys),
        )
        return self._result(client.describe_key(KeyId=key_id)["KeyMetadata"])

    def delete(self, request: ResourceRequest) -> None:
        client, key_id = _client(request), request.existing_id
        with ignoring(GONE):
            if client.describe_key(KeyId=key_id)["KeyMetadata"]["KeyState"] == "PendingDeletion":
                return
            days = int(request.properties.get("PendingWindowInDays", PENDING_WINDOW_DAYS))
            client.schedule_key_deletion(KeyId=key_id, PendingWindowInDays=days)

    @staticmethod
    def _set_rotation(request: ResourceRequest, key_id: str) -> None:
        client = _client(request)
        if is_true(request.properties.get("EnableKeyRotation", False)):
            call(
                client,
                "enable_key_rotation",
                {"KeyId": key_id} | take(request.properties, "RotationPeriodInDays"),
            )
        elif request.previous and is_true(request.previous.get("EnableKeyRotation", False)):
            client.disable_key_rotation(KeyId=key_id)

    @staticmethod
    def _result(key: dict[str, Any]) -> ResourceResult:
        return ResourceResult(key["KeyId"], {"Arn": key["Arn"], "KeyId": key["KeyId"]})


@handles("AWS::KMS::Alias")
class Alias(ResourceHandler):
    """An alias of a key. `Ref` is the alias."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        call(_client(request), "create_alias", take(request.properties, "AliasName", "TargetKeyId"))
        return ResourceResult(request.properties["AliasName"])

    def update(self, request: ResourceRequest) -> ResourceResult:
        call(_client(request), "update_alias", take(request.properties, "AliasName", "TargetKeyId"))
        return ResourceResult(request.existing_id)

    def delete(self, request: ResourceRequest) -> None:
        with ignoring(GONE):
            _client(request).delete_alias(AliasName=request.existing_id)
