"""AWS::ECR: repositories."""

from __future__ import annotations

from typing import Any

from hyperpod_cdk_rehearsal.embedded.resources._calls import (
    call,
    changed,
    document,
    ignoring,
    is_true,
    retag,
    tag_list,
    take,
)
from hyperpod_cdk_rehearsal.embedded.resources.registry import (
    ResourceHandler,
    ResourceRequest,
    ResourceResult,
    handles,
)

GONE = "RepositoryNotFoundException"


def _client(request: ResourceRequest) -> Any:
    return request.context.client("ecr")


@handles("AWS::ECR::Repository")
class Repository(ResourceHandler):
    """A repository with its lifecycle and access policy. `Ref` is its name."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        client, properties = _client(request), request.properties
        name = properties.get("RepositoryName") or request.generated_name(max_length=256, lower=True)
        encryption = properties.get("EncryptionConfiguration")
        call(
            client,
            "create_repository",
            take(properties, imageTagMutability="ImageTagMutability")
            | {
                "repositoryName": name,
                "imageScanningConfiguration": _scanning(properties),
                "encryptionConfiguration": take(encryption, encryptionType="EncryptionType", kmsKey="KmsKey")
                if encryption
                else None,
                "tags": tag_list(properties.get("Tags")) or None,
            },
        )
        self._set_policies(request, name)
        return self._result(client, name)

    def update(self, request: ResourceRequest) -> ResourceResult:
        client, name, properties = _client(request), request.existing_id, request.properties
        if changed(request, "ImageTagMutability"):
            mutability = properties.get("ImageTagMutability", "MUTABLE")
            client.put_image_tag_mutability(repositoryName=name, imageTagMutability=mutability)
        if changed(request, "ImageScanningConfiguration"):
            scanning = _scanning(properties) or {"scanOnPush": False}
            client.put_image_scanning_configuration(repositoryName=name, imageScanningConfiguration=scanning)
        self._set_policies(request, name)
        result = self._result(client, name)
        arn = result.attributes["Arn"]
        retag(
            request,
            add=lambda tags: client.tag_resource(resourceArn=arn, tags=tag_list(tags)),
            remove=lambda keys: client.untag_resource(resourceArn=arn, tagKeys=keys),
        )
        return result

    def delete(self, request: ResourceRequest) -> None:
        force = is_true(request.properties.get("EmptyOnDelete", False))
        with ignoring(GONE):
            _client(request).delete_repository(repositoryName=request.existing_id, force=force)

    @staticmethod
    def _set_policies(request: ResourceRequest, name: str) -> None:
        client, properties = _client(request), request.properties
        if changed(request, "LifecyclePolicy"):
            text = (properties.get("LifecyclePolicy") or {}).get("LifecyclePolicyText")
            if text:
                client.put_lifecycle_policy(repositoryName=name, lifecyclePolicyText=text)
            else:
                with ignoring("LifecyclePolicyNotFoundException"):
                    client.delete_lifecycle_policy(repositoryName=name)
        if changed(request, "RepositoryPolicyText"):
            policy = properties.get("RepositoryPolicyText")
            if policy:
                client.set_repository_policy(repositoryName=name, policyText=document(policy))
            else:
                with ignoring("RepositoryPolicyNotFoundException"):
                    client.delete_repository_policy(repositoryName=name)

    @staticmethod
    def _result(client: Any, name: str) -> ResourceResult:
        row = client.describe_repositories(repositoryNames=[name])["repositories"][0]
        return ResourceResult(name, {"Arn": row["repositoryArn"], "RepositoryUri": row["repositoryUri"]})


def _scanning(properties: dict[str, Any]) -> dict[str, bool] | None:
    configuration = properties.get("ImageScanningConfiguration")
    return {"scanOnPush": is_true(configuration.get("ScanOnPush", False))} if configuration else None
