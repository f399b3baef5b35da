"""Container images of other publishers: whose code runs if a template names one."""

from __future__ import annotations

from typing import Final

from hyperpod_cdk.catalog.images import ecr_registry
from hyperpod_cdk.review.rights.views import TOKEN

PROPERTIES: Final = frozenset(
    {
        *("Image", "ImageUri", "ImageURI", "ImageIdentifier", "ContainerUri", "ContainerImage", "EcrImageUri"),
        *("ImageRepositoryUri", "image"),
    }
)
"""Properties of any type that name a container image which then runs."""

_OF_AWS: Final = "aws/codebuild/"
"""Images of CodeBuild itself, which are in no registry."""


def publisher(image: str, account: str) -> str:
    """Return whose an image is, empty if it is in the own account's ECR, or if the templates do not show it.

    ``account`` is the own one, empty if it is unknown. A name without a registry is Docker Hub's (the reference grammar
    of container images, distribution/reference).
    """
    if not image or image.startswith(_OF_AWS) or TOKEN.search(image) or "${" in image or "{" in image:
        return ""
    first = image.partition("/")[0]
    if found := ecr_registry(first):
        return "" if found.account == account else f"account {found.account}"
    is_registry = "/" in image and ("." in first or ":" in first or first == "localhost")
    return f"the registry {first if is_registry else 'docker.io'}"


def repository(image: str) -> str:
    """Return an image without its tag and digest."""
    name = image.partition("@")[0]
    head, slash, last = name.rpartition("/")
    return f"{head}{slash}{last.partition(':')[0]}"
