"""Buckets and bucket policies, seen through S3's own operations."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from hyperpod_cdk_rehearsal.embedded.resources.registry import HandlerError

TLS_ONLY = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Deny",
            "Principal": "*",
            "Action": "s3:*",
            "Resource": ["arn:aws:s3:::scripts", "arn:aws:s3:::scripts/*"],
            "Condition": {"Bool": {"aws:SecureTransport": "false"}},
        }
    ],
}


@pytest.fixture
def s3(context: Any) -> Any:
    return context.client("s3")


@pytest.fixture
def bucket(stack: Any) -> Any:
    return stack.create("AWS::S3::Bucket", {"BucketName": "scripts"})


def test_the_bootstrap_bucket(stack: Any, s3: Any) -> None:
    made = stack.create(
        "AWS::S3::Bucket",
        {
            "BucketName": "cdk-assets",
            "AccessControl": "Private",
            "BucketEncryption": {
                "ServerSideEncryptionConfiguration": [
                    {
                        "BucketKeyEnabled": "true",
                        "ServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": "key"},
                    }
                ]
            },
            "PublicAccessBlockConfiguration": {
                "BlockPublicAcls": True,
                "BlockPublicPolicy": True,
                "IgnorePublicAcls": True,
                "RestrictPublicBuckets": True,
            },
            "OwnershipControls": {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]},
            "VersioningConfiguration": {"Status": "Enabled"},
            "LifecycleConfiguration": {
                "Rules": [
                    {
                        "Id": "CleanupOldVersions",
                        "Status": "Enabled",
                        "NoncurrentVersionExpiration": {"NoncurrentDays": 30},
                    },
                    {
                        "Id": "Abort",
                        "Status": "Enabled",
                        "Prefix": "tmp/",
                        "ExpirationInDays": "7",
                        "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1},
                        "Transitions": [{"StorageClass": "GLACIER", "TransitionInDays": 3}],
                    },
                ]
            },
            "Tags": [{"Key": "team", "Value": "ml"}],
        },
    )
    assert made.attributes == {
        "Arn": "arn:aws:s3:::cdk-assets",
        "DomainName": "cdk-assets.s3.amazonaws.com",
        "DualStackDomainName": "cdk-assets.s3.dualstack.us-east-1.amazonaws.com",
        "RegionalDomainName": "cdk-assets.s3.us-east-1.amazonaws.com",
        "WebsiteURL": "http://cdk-assets.s3-website-us-east-1.amazonaws.com",
    }
    [rule] = s3.get_bucket_encryption(Bucket="cdk-assets")["ServerSideEncryptionConfiguration"]["Rules"]
    assert rule["ApplyServerSideEncryptionByDefault"]["KMSMasterKeyID"] == "key"
    assert s3.get_bucket_versioning(Bucket="cdk-assets")["Status"] == "Enabled"
    block = s3.get_public_access_block(Bucket="cdk-assets")["PublicAccessBlockConfiguration"]
    assert all(block.values())
    rules = s3.get_bucket_lifecycle_configuration(Bucket="cdk-assets")["Rules"]
    assert rules[0]["NoncurrentVersionExpiration"] == {"NoncurrentDays": 30}
    assert rules[1]["Expiration"]["Days"] == 7
    assert rules[1]["Filter"] == {"Prefix": "tmp/"}
    assert s3.get_bucket_tagging(Bucket="cdk-assets")["TagSet"] == [{"Key": "team", "Value": "ml"}]

    stack.update("cdk-assets", LifecycleConfiguration=None, Tags=None, PublicAccessBlockConfiguration=None)
    for method in ("get_bucket_lifecycle_configuration", "get_bucket_tagging", "get_public_access_block"):
        with pytest.raises(ClientError):
            getattr(s3, method)(Bucket="cdk-assets")
    stack.update("cdk-assets", VersioningConfiguration=None)
    assert s3.get_bucket_versioning(Bucket="cdk-assets")["Status"] == "Suspended"


def test_a_generated_name_is_lower_case(stack: Any) -> None:
    made = stack.create("AWS::S3::Bucket", {}, "LifecycleBucket")
    assert made.physical_id.startswith("prod-lifecyclebucket-")
    assert made.physical_id == made.physical_id.lower()


def test_access_logs_go_to_another_bucket(stack: Any, s3: Any, bucket: Any) -> None:
    stack.create("AWS::S3::Bucket", {"BucketName": "logs", "AccessControl": "LogDeliveryWrite"})
    stack.update(
        bucket.physical_id, LoggingConfiguration={"DestinationBucketName": "logs", "LogFilePrefix": "scripts/"}
    )
    enabled = s3.get_bucket_logging(Bucket="scripts")["LoggingEnabled"]
    assert (enabled["TargetBucket"], enabled["TargetPrefix"]) == ("logs", "scripts/")


def test_a_name_that_is_taken(stack: Any, bucket: Any) -> None:
    with pytest.raises(HandlerError) as error:
        stack.create("AWS::S3::Bucket", {"BucketName": bucket.physical_id})
    assert (error.value.code, error.value.message) == ("AlreadyExists", "scripts already exists")


@pytest.mark.parametrize(
    ("versioning", "text"),
    [
        (None, "The bucket you tried to delete is not empty."),
        (
            {"Status": "Enabled"},
            "The bucket you tried to delete is not empty. You must delete all versions in the bucket.",
        ),
    ],
)
def test_a_bucket_with_objects_stays(stack: Any, s3: Any, bucket: Any, versioning: Any, text: str) -> None:
    stack.update(bucket.physical_id, VersioningConfiguration=versioning)
    s3.put_object(Bucket="scripts", Key="a", Body=b"1")
    with pytest.raises(ClientError) as error:
        stack.delete(bucket.physical_id)
    assert str(error.value) == f"An error occurred (BucketNotEmpty) when calling the DeleteBucket operation: {text}"
    if versioning is None:
        s3.delete_object(Bucket="scripts", Key="a")
        stack.delete(bucket.physical_id)
        stack.delete(bucket.physical_id)
        assert s3.list_buckets()["Buckets"] == []


def test_a_tls_only_policy_removes_no_access(stack: Any, s3: Any, bucket: Any) -> None:
    made = stack.create("AWS::S3::BucketPolicy", {"Bucket": bucket.physical_id, "PolicyDocument": TLS_ONLY})
    assert made.physical_id == "scripts"
    s3.put_object(Bucket="scripts", Key="a", Body=b"1")
    assert s3.get_object(Bucket="scripts", Key="a")["Body"].read() == b"1"
    assert json.loads(s3.get_bucket_policy(Bucket="scripts")["Policy"]) == TLS_ONLY
    with pytest.raises(HandlerError) as error:
        stack.create("AWS::S3::BucketPolicy", {"Bucket": bucket.physical_id, "PolicyDocument": TLS_ONLY})
    assert error.value.message == "The bucket policy already exists on bucket scripts."


def test_a_policy_is_replaced_and_removed(stack: Any, s3: Any, bucket: Any) -> None:
    made = stack.create("AWS::S3::BucketPolicy", {"Bucket": bucket.physical_id, "PolicyDocument": TLS_ONLY})
    stack.update(made.physical_id, PolicyDocument={**TLS_ONLY, "Id": "two"})
    assert json.loads(s3.get_bucket_policy(Bucket="scripts")["Policy"])["Id"] == "two"
    for _ in range(2):
        stack._handler("AWS::S3::BucketPolicy").delete(
            stack.request("AWS::S3::BucketPolicy", "Policy", {"Bucket": "scripts"}, physical_id="scripts")
        )
    with pytest.raises(ClientError):
        s3.get_bucket_policy(Bucket="scripts")
