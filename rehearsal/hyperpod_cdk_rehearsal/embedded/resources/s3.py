"""AWS::S3: buckets and bucket policies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from botocore.exceptions import ClientError

from hyperpod_cdk_rehearsal.embedded.resources._calls import (
    as_list,
    call,
    changed,
    document,
    error_code,
    ignoring,
    is_true,
    refusal,
    tag_list,
    take,
    undone_by,
)
from hyperpod_cdk_rehearsal.embedded.resources.registry import (
    HandlerError,
    ResourceHandler,
    ResourceRequest,
    ResourceResult,
    handles,
)

CANNED_ACLS = {
    "AuthenticatedRead": "authenticated-read",
    "AwsExecRead": "aws-exec-read",
    "BucketOwnerFullControl": "bucket-owner-full-control",
    "BucketOwnerRead": "bucket-owner-read",
    "LogDeliveryWrite": "log-delivery-write",
    "Private": "private",
    "PublicRead": "public-read",
    "PublicReadWrite": "public-read-write",
}
WEBSITE_DASH_REGIONS = frozenset(
    {
        "ap-northeast-1",
        "ap-southeast-1",
        "ap-southeast-2",
        "eu-west-1",
        "sa-east-1",
        "us-east-1",
        "us-gov-west-1",
        "us-west-1",
        "us-west-2",
    }
)
"""Regions whose website endpoint joins with a dash (S3 user guide, website endpoints); newer ones join with a dot."""
NO_BUCKET = ("NoSuchBucket", "404")


def _client(request: ResourceRequest) -> Any:
    return request.context.client("s3")


@handles("AWS::S3::Bucket")
class Bucket(ResourceHandler):
    """A bucket. `Ref` is its name.

    Encryption, versioning, public access block, ownership, logging, lifecycle, CORS, website, EventBridge
    notification, ACL and tags reach the bucket; other properties are accepted and have no effect here.
    """

    def create(self, request: ResourceRequest) -> ResourceResult:
        client, properties, context = _client(request), request.properties, request.context
        name = properties.get("BucketName") or request.generated_name(max_length=63, lower=True)
        if _exists(client, name):
            raise HandlerError("AlreadyExists", f"{name} already exists")
        arguments: dict[str, Any] = {"Bucket": name}
        if context.region != "us-east-1":
            arguments["CreateBucketConfiguration"] = {"LocationConstraint": context.region}
        if is_true(properties.get("ObjectLockEnabled")):
            arguments["ObjectLockEnabledForBucket"] = True
        client.create_bucket(**arguments)
        with undone_by(lambda: client.delete_bucket(Bucket=name)):
            for property_name, setting in SETTINGS.items():
                if properties.get(property_name) is not None:
                    setting(client, name, properties[property_name])
        return self._result(request, name)

    def update(self, request: ResourceRequest) -> ResourceResult:
        client, name = _client(request), request.existing_id
        for property_name, setting in SETTINGS.items():
            if changed(request, property_name):
                setting(client, name, request.properties.get(property_name))
        return self._result(request, name)

    def delete(self, request: ResourceRequest) -> None:
        client, name = _client(request), request.existing_id
        with ignoring(*NO_BUCKET):
            listing = client.list_object_versions(Bucket=name, MaxKeys=1)
            if listing.get("Versions") or listing.get("DeleteMarkers"):
                status = client.get_bucket_versioning(Bucket=name).get("Status")
                versions = " You must delete all versions in the bucket." if status else ""
                raise refusal(
                    "BucketNotEmpty",
                    f"The bucket you tried to delete is not empty.{versions}",
                    "DeleteBucket",
                    status=409,
                )
            client.delete_bucket(Bucket=name)

    @staticmethod
    def _result(request: ResourceRequest, name: str) -> ResourceResult:
        context = request.context
        joint = "-" if context.region in WEBSITE_DASH_REGIONS else "."
        return ResourceResult(
            name,
            {
                "Arn": f"arn:{context.partition}:s3:::{name}",
                "DomainName": f"{name}.s3.{context.url_suffix}",
                "DualStackDomainName": f"{name}.s3.dualstack.{context.region}.{context.url_suffix}",
                "RegionalDomainName": f"{name}.s3.{context.region}.{context.url_suffix}",
                "WebsiteURL": f"http://{name}.s3-website{joint}{context.region}.{context.url_suffix}",
            },
        )


def _exists(client: Any, name: str) -> bool:
    with ignoring(*NO_BUCKET):
        client.head_bucket(Bucket=name)
        return True
    return False


def _set_encryption(client: Any, name: str, value: Any) -> None:
    if value is None:
        client.delete_bucket_encryption(Bucket=name)
        return
    rules = [
        take(rule, "BucketKeyEnabled", ApplyServerSideEncryptionByDefault="ServerSideEncryptionByDefault")
        for rule in as_list(value["ServerSideEncryptionConfiguration"])
    ]
    call(
        client,
        "put_bucket_encryption",
        {"Bucket": name, "ServerSideEncryptionConfiguration": {"Rules": rules}},
    )


def _set_versioning(client: Any, name: str, value: Any) -> None:
    configuration = value or {"Status": "Suspended"}
    client.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": configuration["Status"]})


def _set_public_access_block(client: Any, name: str, value: Any) -> None:
    if value is None:
        client.delete_public_access_block(Bucket=name)
        return
    call(client, "put_public_access_block", {"Bucket": name, "PublicAccessBlockConfiguration": value})


def _set_ownership(client: Any, name: str, value: Any) -> None:
    if value is None:
        client.delete_bucket_ownership_controls(Bucket=name)
        return
    rules = as_list(value["Rules"])
    client.put_bucket_ownership_controls(Bucket=name, OwnershipControls={"Rules": rules})


def _set_acl(client: Any, name: str, value: Any) -> None:
    client.put_bucket_acl(Bucket=name, ACL=CANNED_ACLS[value or "Private"])


def _set_logging(client: Any, name: str, value: Any) -> None:
    if value is None:
        client.put_bucket_logging(Bucket=name, BucketLoggingStatus={})
        return
    enabled = {
        "TargetBucket": value.get("DestinationBucketName", name),
        "TargetPrefix": value.get("LogFilePrefix", ""),
    }
    client.put_bucket_logging(Bucket=name, BucketLoggingStatus={"LoggingEnabled": enabled})


def _set_lifecycle(client: Any, name: str, value: Any) -> None:
    if value is None:
        client.delete_bucket_lifecycle(Bucket=name)
        return
    rules = [_lifecycle_rule(rule) for rule in as_list(value["Rules"])]
    call(
        client,
        "put_bucket_lifecycle_configuration",
        {"Bucket": name, "LifecycleConfiguration": {"Rules": rules}},
    )


def _lifecycle_rule(rule: dict[str, Any]) -> dict[str, Any]:
    """A rule of CloudFormation's shape in the API's."""
    made: dict[str, Any] = take(rule, "Status", "AbortIncompleteMultipartUpload", ID="Id")
    made["Filter"] = _lifecycle_filter(rule)
    expiration = take(rule, "ExpiredObjectDeleteMarker", Days="ExpirationInDays", Date="ExpirationDate")
    if expiration:
        made["Expiration"] = expiration
    noncurrent = rule.get("NoncurrentVersionExpiration") or take(
        rule, NoncurrentDays="NoncurrentVersionExpirationInDays"
    )
    if noncurrent:
        made["NoncurrentVersionExpiration"] = noncurrent
    transitions = as_list(rule.get("Transitions") or rule.get("Transition"))
    if transitions:
        made["Transitions"] = [
            take(item, "StorageClass", Days="TransitionInDays", Date="TransitionDate") for item in transitions
        ]
    old_versions = as_list(rule.get("NoncurrentVersionTransitions") or rule.get("NoncurrentVersionTransition"))
    if old_versions:
        made["NoncurrentVersionTransitions"] = [
            take(item, "StorageClass", "NewerNoncurrentVersions", NoncurrentDays="TransitionInDays")
            for item in old_versions
        ]
    return made


def _lifecycle_filter(rule: dict[str, Any]) -> dict[str, Any]:
    parts: dict[str, Any] = take(rule, "Prefix", "ObjectSizeGreaterThan", "ObjectSizeLessThan")
    tags = tag_list(rule.get("TagFilters"))
    if len(parts) + len(tags) > 1:
        return {"And": parts | ({"Tags": tags} if tags else {})}
    if tags:
        return {"Tag": tags[0]}
    return parts or {"Prefix": ""}


def _set_cors(client: Any, name: str, value: Any) -> None:
    if value is None:
        client.delete_bucket_cors(Bucket=name)
        return
    rules = [
        take(
            rule,
            "AllowedHeaders",
            "AllowedMethods",
            "AllowedOrigins",
            ExposeHeaders="ExposedHeaders",
            ID="Id",
            MaxAgeSeconds="MaxAge",
        )
        for rule in as_list(value["CorsRules"])
    ]
    call(client, "put_bucket_cors", {"Bucket": name, "CORSConfiguration": {"CORSRules": rules}})


def _set_notification(client: Any, name: str, value: Any) -> None:
    wanted = (value or {}).get("EventBridgeConfiguration") is not None
    events: dict[str, Any] = {"EventBridgeConfiguration": {}} if wanted else {}
    client.put_bucket_notification_configuration(Bucket=name, NotificationConfiguration=events)


def _set_tags(client: Any, name: str, value: Any) -> None:
    tags = tag_list(value)
    if tags:
        client.put_bucket_tagging(Bucket=name, Tagging={"TagSet": tags})
    else:
        client.delete_bucket_tagging(Bucket=name)


SETTINGS: dict[str, Callable[[Any, str, Any], None]] = {
    # the order matters: ownership decides whether an ACL is taken
    "OwnershipControls": _set_ownership,
    "AccessControl": _set_acl,
    "BucketEncryption": _set_encryption,
    "VersioningConfiguration": _set_versioning,
    "PublicAccessBlockConfiguration": _set_public_access_block,
    "LoggingConfiguration": _set_logging,
    "LifecycleConfiguration": _set_lifecycle,
    "CorsConfiguration": _set_cors,
    "NotificationConfiguration": _set_notification,
    "Tags": _set_tags,
}


@handles("AWS::S3::BucketPolicy")
class BucketPolicy(ResourceHandler):
    """A bucket's policy. `Ref` is the bucket's name."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        client, bucket = _client(request), request.properties["Bucket"]
        try:
            client.get_bucket_policy(Bucket=bucket)
        except ClientError as error:
            if error_code(error) != "NoSuchBucketPolicy":
                raise
        else:
            raise HandlerError("AlreadyExists", f"The bucket policy already exists on bucket {bucket}.")
        return self._put(request)

    def update(self, request: ResourceRequest) -> ResourceResult:
        return self._put(request)

    def delete(self, request: ResourceRequest) -> None:
        with ignoring(*NO_BUCKET, "NoSuchBucketPolicy"):
            _client(request).delete_bucket_policy(Bucket=request.existing_id)

    @staticmethod
    def _put(request: ResourceRequest) -> ResourceResult:
        bucket = request.properties["Bucket"]
        _client(request).put_bucket_policy(Bucket=bucket, Policy=document(request.properties["PolicyDocument"]))
        return ResourceResult(bucket)
