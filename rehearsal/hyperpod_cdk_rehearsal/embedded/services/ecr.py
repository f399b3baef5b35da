"""Amazon ECR: the images that the account file lists; those of the account's own repositories are moto's."""

from __future__ import annotations

import hashlib
from typing import Any

from hyperpod_cdk_rehearsal.embedded.account import account_of
from hyperpod_cdk_rehearsal.embedded.context import Context
from hyperpod_cdk_rehearsal.embedded.operations import PassToMoto, ServiceError, operation


@operation("ecr", "DescribeImages")
def describe_images(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """The images of a repository by their tags; a registry of another account has those of the account file alone."""
    account, repository = request.get("registryId") or context.account, request["repositoryName"]
    named = [name.partition("/") for name in account_of(context).existing.container_images]
    tags = {
        path.rpartition(":")[2]
        for host, _, path in named
        if host.startswith(f"{account}.") and f".{context.region}." in host and path.rpartition(":")[0] == repository
    }
    if not tags and account == context.account:
        raise PassToMoto
    if not tags:
        raise ServiceError(
            "RepositoryNotFoundException",
            f"The repository with name '{repository}' does not exist in the registry with id '{account}'",
        )
    wanted = [each.get("imageTag", "") for each in request.get("imageIds") or []] or sorted(tags)
    for tag in wanted:
        if tag not in tags:
            raise ServiceError(
                "ImageNotFoundException",
                f"The image with imageId {{imageDigest:'null', imageTag:'{tag}'}} does not exist within the repository"
                f" with name '{repository}' in the registry with id '{account}'",
            )
    return {
        "imageDetails": [
            {
                "registryId": account,
                "repositoryName": repository,
                "imageDigest": f"sha256:{hashlib.sha256(f'{repository}:{tag}'.encode()).hexdigest()}",
                "imageTags": [tag],
            }
            for tag in wanted
        ]
    }
