"""What every handler of AWS::EC2 does alike: the client, and tags."""

from __future__ import annotations

from typing import Any

from hyperpod_cdk_rehearsal.embedded.resources._calls import retag, stack_tags, tag_list
from hyperpod_cdk_rehearsal.embedded.resources.registry import ResourceRequest


def client_of(request: ResourceRequest) -> Any:
    """Return boto3's client of EC2, in the account and region of a request."""
    return request.context.client("ec2")


def tag_specifications(request: ResourceRequest, resource_type: str) -> dict[str, Any]:
    """Return the parameter with which a call that creates something tags it: the resource's tags and the stack's."""
    tags = [*tag_list(request.properties.get("Tags")), *stack_tags(request)]
    return {"TagSpecifications": [{"ResourceType": resource_type, "Tags": tags}]}


def retag_by_ec2(request: ResourceRequest, resource_id: str | None = None) -> None:
    """Write the tags of an update that changed; ``resource_id`` is what has them. Default: the resource itself."""
    client = client_of(request)
    target = resource_id or request.existing_id
    retag(
        request,
        add=lambda tags: client.create_tags(Resources=[target], Tags=tag_list(tags)),
        remove=lambda keys: client.delete_tags(Resources=[target], Tags=[{"Key": key} for key in keys]),
    )
