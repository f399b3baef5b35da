"""The documented effects of CDK's own custom resource providers whose code needs what this machine lacks."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hyperpod_cdk_rehearsal.embedded.context import Context
from hyperpod_cdk_rehearsal.embedded.resources._calls import as_list, ignoring

AUTO_DELETE_TAG = "aws-cdk:auto-delete-objects"
NO_SDK = "its Node.js code needs the AWS SDK that only Lambda's runtime brings"
PROVIDER_LOG_RETENTION_DAYS = 1


class PlayFailed(Exception):  # noqa: N818 - a provider's FAILED, which is an answer
    """The provider would answer FAILED with this reason."""


@dataclass(frozen=True)
class Play:
    """One request to a played provider, its properties as text as CloudFormation sends them."""

    context: Context
    request_type: str
    properties: Mapping[str, Any]
    previous: Mapping[str, Any]
    physical_id: str | None
    logical_id: str
    function_name: str

    @property
    def is_delete(self) -> bool:
        """Whether the resource is being deleted."""
        return self.request_type == "Delete"


@dataclass(frozen=True)
class Answer:
    """A provider's answer; None leaves the physical id as it is, or to the request's id on create."""

    physical_id: str | None = None
    data: dict[str, Any] = field(default_factory=dict)
    reason: str = NO_SDK


def auto_delete_objects(play: Play) -> Answer:
    """Custom::S3AutoDeleteObjects: on delete, empty a tagged bucket and let nothing be put into it any more."""
    bucket = play.properties.get("BucketName")
    if play.request_type == "Update":
        return Answer(bucket or play.previous.get("BucketName"))
    if not play.is_delete:
        return Answer()
    if not bucket:
        raise PlayFailed("Error: No BucketName was provided.")
    client = play.context.client("s3")
    with ignoring("NoSuchBucket", "NoSuchTagSet"):
        tags = {row["Key"]: row["Value"] for row in client.get_bucket_tagging(Bucket=bucket)["TagSet"]}
        if tags.get(AUTO_DELETE_TAG) == "true":
            _deny_new_objects(play, client, bucket)
            _empty(client, bucket)
    return Answer()


def _deny_new_objects(play: Play, client: Any, bucket: str) -> None:
    policy: dict[str, Any] = {"Version": "2012-10-17", "Statement": []}
    with ignoring("NoSuchBucketPolicy"):
        policy = json.loads(client.get_bucket_policy(Bucket=bucket)["Policy"])
    deny = {
        "Principal": "*",
        "Effect": "Deny",
        "Action": ["s3:PutObject"],
        "Resource": [f"arn:{play.context.partition}:s3:::{bucket}/*"],
    }
    policy["Statement"] = [*as_list(policy["Statement"]), deny]
    client.put_bucket_policy(Bucket=bucket, Policy=json.dumps(policy))


def _empty(client: Any, bucket: str) -> None:
    for page in client.get_paginator("list_object_versions").paginate(Bucket=bucket):
        rows = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
        objects = [{"Key": row["Key"], "VersionId": row["VersionId"]} for row in rows]
        if objects:
            client.delete_objects(Bucket=bucket, Delete={"Objects": objects})


def restrict_default_security_group(play: Play) -> Answer:
    """Custom::VpcRestrictDefaultSG: take the default group's rules away, and give them back on delete."""
    group, account = play.properties["DefaultSecurityGroupId"], play.properties["Account"]
    client = play.context.client("ec2")
    before = play.previous.get("DefaultSecurityGroupId")
    if play.is_delete:
        _default_rules(client, "authorize", group, account, ignored="InvalidPermission.Duplicate")
    elif before != group:
        if before:
            _default_rules(client, "authorize", before, account, ignored="InvalidPermission.Duplicate")
        _default_rules(client, "revoke", group, account, ignored="InvalidPermission.NotFound")
    return Answer()


def _default_rules(client: Any, verb: str, group: str, account: str, *, ignored: str) -> None:
    itself = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group, "UserId": account}]}]
    anywhere = [{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}]
    with ignoring(ignored):
        getattr(client, f"{verb}_security_group_ingress")(GroupId=group, IpPermissions=itself)
    with ignoring(ignored):
        getattr(client, f"{verb}_security_group_egress")(GroupId=group, IpPermissions=anywhere)


def log_retention(play: Play) -> Answer:
    """Custom::LogRetention: the log group exists and keeps its events so long."""
    properties = play.properties
    group, days = properties["LogGroupName"], properties.get("RetentionInDays")
    client = play.context.client("logs", properties.get("LogGroupRegion"))
    if play.is_delete:
        if properties.get("RemovalPolicy") == "destroy":
            with ignoring("ResourceNotFoundException"):
                client.delete_log_group(logGroupName=group)
        return Answer(group, {"LogGroupName": group})
    _retain(client, group, int(days) if days else None)
    if play.request_type == "Create":
        own = f"/aws/lambda/{play.function_name}"
        _retain(play.context.client("logs"), own, PROVIDER_LOG_RETENTION_DAYS)
    return Answer(group, {"LogGroupName": group})


def _retain(client: Any, group: str, days: int | None) -> None:
    with ignoring("ResourceAlreadyExistsException"):
        client.create_log_group(logGroupName=group)
    if days:
        client.put_retention_policy(logGroupName=group, retentionInDays=days)
    else:
        client.delete_retention_policy(logGroupName=group)


PLAYERS: dict[str, Callable[[Play], Answer]] = {
    "Custom::S3AutoDeleteObjects": auto_delete_objects,
    "Custom::VpcRestrictDefaultSG": restrict_default_security_group,
    "Custom::LogRetention": log_retention,
}
