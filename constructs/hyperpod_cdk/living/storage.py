"""File systems, buckets and keys as their services have them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from hyperpod_cdk.living.facts import canonical
from hyperpod_cdk.living.look import (
    ANY_TAG,
    TAGS,
    Kind,
    Look,
    Properties,
    Stated,
    keyed,
    reading,
    statements,
    taken,
    with_statements,
)
from hyperpod_cdk.review.stored import NO_BUCKET, content, files_of, objects

_OF_LOGGING: Final = {"DestinationBucketName": "TargetBucket", "LogFilePrefix": "TargetPrefix"}
_OF_FILE_SYSTEM: Final = (
    "FileSystemType",
    "FileSystemTypeVersion",
    "StorageCapacity",
    "StorageType",
    "SubnetIds",
    "SecurityGroupIds",
    "LustreConfiguration",
    "Tags",
)
_OF_REPOSITORY: Final = ("FileSystemId", "FileSystemPath", "DataRepositoryPath", "S3", "Tags")
_OF_UPLOAD: Final = ("DestinationBucketName", "DestinationBucketKeyPrefix", "SourceBucketNames", "SourceObjectKeys")
"""Properties of templates that the service shows with the same names."""


def _file_system(look: Look) -> Properties | None:
    found = look.found("fsx", "describe_file_systems", "FileSystemNotFound", FileSystemIds=[look.id])
    if found is None:
        return None
    with reading("fsx:DescribeFileSystems"):
        (one,) = found["FileSystems"]
        return {**taken(one, *_OF_FILE_SYSTEM), "SecurityGroupIds": _groups(look, one["NetworkInterfaceIds"])}


def _groups(look: Look, interfaces: Sequence[str]) -> list[str]:
    """Return the security groups of a file system, which only its interfaces show: the first other than stated."""
    rows = look.aws.pages(
        "ec2",
        "describe_network_interfaces",
        "NetworkInterfaces",
        Filters=[{"Name": "network-interface-id", "Values": [*interfaces]}],
    )
    with reading("ec2:DescribeNetworkInterfaces"):
        found = [sorted(str(group["GroupId"]) for group in row["Groups"]) for row in rows]
    stated = look.stated.get("SecurityGroupIds") or ()
    return next((each for each in found if each != sorted(map(str, stated))), list(stated) if found else [])


def _bucket(look: Look) -> Properties | None:
    name = {"Bucket": look.id}
    versioning = look.found("s3", "get_bucket_versioning", NO_BUCKET, **name)
    if versioning is None:
        return None
    encryption = look.found("s3", "get_bucket_encryption", "ServerSideEncryptionConfigurationNotFoundError", **name)
    access = look.found("s3", "get_public_access_block", "NoSuchPublicAccessBlockConfiguration", **name)
    tags = look.found("s3", "get_bucket_tagging", "NoSuchTagSet", **name)
    expiring = _expiring(look)
    logs = look.aws.call("s3", "get_bucket_logging", **name)
    with reading("s3:GetBucketEncryption"):
        rules = [] if encryption is None else encryption["ServerSideEncryptionConfiguration"]["Rules"]
        return {
            "VersioningConfiguration": taken(versioning, "Status"),
            "PublicAccessBlockConfiguration": {} if access is None else access["PublicAccessBlockConfiguration"],
            "BucketEncryption": {
                "ServerSideEncryptionConfiguration": [
                    {
                        "ServerSideEncryptionByDefault": {
                            "SSEAlgorithm": rule["ApplyServerSideEncryptionByDefault"]["SSEAlgorithm"],
                            "KMSMasterKeyID": rule["ApplyServerSideEncryptionByDefault"].get("KMSMasterKeyID"),
                        },
                        "BucketKeyEnabled": rule.get("BucketKeyEnabled", False),
                    }
                    for rule in rules
                    if "ApplyServerSideEncryptionByDefault" in rule
                ]
            },
            "LifecycleRules": expiring,
            "LoggingConfiguration": {
                ours: target[theirs]
                for ours, theirs in _OF_LOGGING.items()
                if theirs in (target := logs.get("LoggingEnabled", {}))
            },
            "Tags": [] if tags is None else tags["TagSet"],
        }


def _expiring(look: Look) -> list[dict[str, str]]:
    """Return the lifecycle rules of a bucket whose template states none: with them S3 can delete what stacks
    uploaded."""
    if "LifecycleConfiguration" in look.properties:
        return []
    missing = "NoSuchLifecycleConfiguration"
    found = look.found("s3", "get_bucket_lifecycle_configuration", missing, Bucket=look.id)
    if found is None:
        return []
    with reading("s3:GetBucketLifecycleConfiguration"):
        # S3 gives a rule an ID if the request has none
        return [{"Key": each["ID"], "Value": canonical(each)} for each in found["Rules"]]


def _bucket_policy(look: Look) -> Properties | None:
    found = look.found("s3", "get_bucket_policy", NO_BUCKET, "NoSuchBucketPolicy", Bucket=look.stated["Bucket"])
    if found is None:
        return None
    with reading("s3:GetBucketPolicy"):
        return {"Bucket": look.stated["Bucket"], "PolicyDocument": statements(found["Policy"])}


def _key(look: Look) -> Properties | None:
    found = look.found("kms", "describe_key", "NotFoundException", KeyId=look.id)
    if found is None:
        return None
    policy = look.aws.call("kms", "get_key_policy", KeyId=look.id, PolicyName="default")
    rotation = look.aws.call("kms", "get_key_rotation_status", KeyId=look.id)
    tags = look.aws.pages("kms", "list_resource_tags", "Tags", KeyId=look.id)
    with reading("kms:GetKeyPolicy"):
        key = found["KeyMetadata"]
        return {
            "Description": key.get("Description"),
            "EnableKeyRotation": rotation["KeyRotationEnabled"],
            "KeyPolicy": statements(policy["Policy"]),
            "KeyState": key["KeyState"],
            "Tags": keyed({each["TagKey"]: each["TagValue"] for each in tags}),
        }


def _of_key(stated: Stated) -> Properties:
    is_enabled = stated.properties.get("Enabled", True)
    return {
        **{name: each for name, each in stated.properties.items() if name != "Enabled"},
        "KeyPolicy": statements(stated.properties.get("KeyPolicy")),
        "KeyState": "Enabled" if str(is_enabled).lower() == "true" else "Disabled",
    }


def _alias(look: Look) -> Properties | None:
    found = look.found("kms", "describe_key", "NotFoundException", KeyId=look.id)
    if found is None:
        return None
    with reading("kms:DescribeKey"):
        return {"TargetKeyId": found["KeyMetadata"]["KeyId"]}


def _of_alias(stated: Stated) -> Properties:
    key = stated.properties.get("TargetKeyId")
    return {"TargetKeyId": key.rpartition("/")[2] if isinstance(key, str) else key}


def _repository(look: Look) -> Properties | None:
    found = look.found(
        "fsx", "describe_data_repository_associations", "DataRepositoryAssociationNotFound", AssociationIds=[look.id]
    )
    with reading("fsx:DescribeDataRepositoryAssociations"):
        rows = () if found is None else found["Associations"]
        return next((taken(row, *_OF_REPOSITORY) for row in rows if row["Lifecycle"] != "DELETING"), None)


def _uploaded(look: Look) -> Properties | None:
    """Compare the objects under the prefix of an upload with the archives that the template names, one by one."""
    bucket, prefix = str(look.stated["DestinationBucketName"]), str(look.stated.get("DestinationBucketKeyPrefix") or "")
    wanted: dict[str, bytes] = {}
    with reading("the template"):
        archives = list(zip(look.stated["SourceBucketNames"], look.stated["SourceObjectKeys"], strict=True))
    for place, key in archives:
        wanted |= files_of(content(look.aws, str(place), str(key)), key=str(key))
    folder = f"{prefix}/" if prefix else ""
    rows = objects(look.aws, bucket, folder)
    if rows is None:
        return None
    with reading("s3:ListObjectsV2"):
        there = {str(row["Key"]).removeprefix(folder): int(row["Size"]) for row in rows}
    found: dict[str, str] = {}
    for name in sorted({*wanted, *there}):
        if name not in wanted:
            # outside the prefix of an upload, nothing says which objects a bucket may have
            found |= {name: "put there by hand"} if folder else {}
        elif name not in there:
            found[name] = "gone"
        elif there[name] != len(wanted[name]) or content(look.aws, bucket, f"{folder}{name}") != wanted[name]:
            found[name] = "content that differs from what was uploaded"
    return {
        **taken(look.stated, *_OF_UPLOAD),
        "Objects": [{"Key": name, "Value": said} for name, said in found.items()],
    }


KINDS: Final[Mapping[str, Kind]] = {
    "AWS::FSx::FileSystem": Kind(
        properties=_OF_FILE_SYSTEM,
        read=_file_system,
        # UpdateFileSystem accepts each of them alone (FSx API reference)
        differing=re.compile(rf"{ANY_TAG}|LustreConfiguration\..+"),
        same=(
            re.compile(r"StorageCapacity"),
            "FSx accepts only a greater capacity than the current one: write a greater one, or keep the old value",
        ),
    ),
    "AWS::FSx::DataRepositoryAssociation": Kind(
        properties=_OF_REPOSITORY, read=_repository, made_by_hand=re.compile(rf"{TAGS}|S3\..+")
    ),
    "AWS::KMS::Alias": Kind(properties=("TargetKeyId",), read=_alias, state=_of_alias),
    "Custom::CDKBucketDeployment": Kind(
        properties=_OF_UPLOAD,
        read=_uploaded,
        made_by_hand=re.compile(r"Objects\[.+\]"),
        left=(
            "Nothing: CloudFormation uploads only what the template names for the first time. A node that starts in"
            " the meantime uses the objects that are there."
        ),
    ),
    "AWS::S3::Bucket": Kind(
        properties=(
            "VersioningConfiguration",
            "PublicAccessBlockConfiguration",
            "BucketEncryption",
            "LoggingConfiguration",
            "Tags",
        ),
        read=_bucket,
        made_by_hand=re.compile(rf"{TAGS}|LifecycleRules\[.+\]|LoggingConfiguration\..+"),
        # PutBucketTagging puts all tags of a bucket anew, unlike the TagResource of other services (S3 API reference)
        unsure=re.compile(TAGS),
    ),
    "AWS::S3::BucketPolicy": Kind(
        properties=("Bucket", "PolicyDocument"),
        read=_bucket_policy,
        state=with_statements,
        made_by_hand=re.compile(r"PolicyDocument\[.+\]"),
    ),
    "AWS::KMS::Key": Kind(
        properties=("Description", "EnableKeyRotation", "KeyPolicy", "Enabled", "Tags"),
        read=_key,
        state=_of_key,
        made_by_hand=re.compile(rf"{TAGS}|KeyPolicy\[.+\]"),
    ),
}
