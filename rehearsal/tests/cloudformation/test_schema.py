"""The registry: coercion, problems in CloudFormation's words, tags, replacement paths."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from hyperpod_cdk_rehearsal.embedded.cloudformation.schema import Registry, ResourceSchema, values_at
from rehearsal.tests.support.tables import row_by_row

REGISTRY = Registry("us-east-1")


def schema(resource_type: str) -> ResourceSchema:
    found = REGISTRY.schema(resource_type)
    assert found is not None
    return found


BUCKET = "AWS::S3::Bucket"
CLUSTER = "AWS::SageMaker::Cluster"
PARAMETER = "AWS::SSM::Parameter"


@row_by_row(
    "resource_type, properties, problems",
    [
        (BUCKET, {}, []),
        (BUCKET, {"BucketName": "good-name"}, []),
        (BUCKET, {"Bucketname": "x"}, ["#: extraneous key [Bucketname] is not permitted"]),
        (BUCKET, {"Arn": "arn"}, ["#: Encountered unsupported property Arn"]),
        (BUCKET, {"Tags": {"a": "b"}}, ["#/Tags: expected type: JSONArray, found: JSONObject"]),
        (BUCKET, {"Tags": [{"Key": "a"}]}, ["#/Tags/0: required key [Value] not found"]),
        (BUCKET, {"AccessControl": "Nobody"}, ["#/AccessControl: Nobody is not a valid enum value"]),
        (
            BUCKET,
            {"BucketName": "UPPER"},
            ["#/BucketName: string [UPPER] does not match pattern ^([a-z0-9][a-z0-9.-]*[a-z0-9])?$"],
        ),
        (
            BUCKET,
            {"BucketEncryption": {}},
            ["#/BucketEncryption: required key [ServerSideEncryptionConfiguration] not found"],
        ),
        (PARAMETER, {"Type": "String"}, ["#: required key [Value] not found"]),
        # a pattern of Java's character classes, as a key of a map
        (PARAMETER, {"Type": "String", "Value": "x", "Tags": {"Team": "ml"}}, []),
        (
            CLUSTER,
            {"NodeRecovery": "Sometimes", "InstanceGroups": []},
            [
                "#/InstanceGroups: expected minimum item count: 1, found: 0",
                "#/NodeRecovery: Sometimes is not a valid enum value",
            ],
        ),
        (
            "AWS::Lambda::Function",
            {"Code": {}, "Role": "arn:aws:iam::111122223333:role/r", "Timeout": 0},
            ["#/Timeout: 0 is not greater or equal to 1"],
        ),
        ("AWS::EC2::VPC", {"CidrBlock": 5}, ["#/CidrBlock: expected type: String, found: Integer"]),
    ],
)
def test_problems(resource_type: str, properties: dict[str, Any], problems: list[str]) -> None:
    assert schema(resource_type).problems(properties) == problems


@row_by_row(
    "resource_type, given, expected",
    [
        ("AWS::Lambda::Function", {"Timeout": "30"}, {"Timeout": 30}),
        (PARAMETER, {"Tags": {"cost": 1}}, {"Tags": {"cost": "1"}}),
        ("AWS::EC2::VPC", {"EnableDnsSupport": "true"}, {"EnableDnsSupport": True}),
        (CLUSTER, {"InstanceGroups": [{"InstanceCount": "2"}]}, {"InstanceGroups": [{"InstanceCount": 2}]}),
        (
            CLUSTER,  # one of several alternatives
            {"InstanceGroups": [{"InstanceStorageConfigs": [{"EbsVolumeConfig": {"VolumeSizeInGB": "500"}}]}]},
            {"InstanceGroups": [{"InstanceStorageConfigs": [{"EbsVolumeConfig": {"VolumeSizeInGB": 500}}]}]},
        ),
        (PARAMETER, {"Value": 1}, {"Value": "1"}),
        (PARAMETER, {"Value": True}, {"Value": "true"}),
        ("AWS::Lambda::Function", {"Timeout": "soon"}, {"Timeout": "soon"}),
        ("AWS::Lambda::Function", {"Timeout": "1.5"}, {"Timeout": "1.5"}),
    ],
)
def test_coerced(resource_type: str, given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert schema(resource_type).coerced(given) == expected


@pytest.mark.parametrize(
    ("resource_type", "name", "as_map"),
    [
        (BUCKET, "Tags", False),
        (PARAMETER, "Tags", True),
        ("AWS::FSx::FileSystem", "Tags", False),
        ("AWS::EC2::Route", None, False),
    ],
)
def test_tags(resource_type: str, name: str | None, *, as_map: bool) -> None:
    assert (schema(resource_type).tag_property, schema(resource_type).tags_are_map) == (name, as_map)


def test_a_type_is_known_only_where_its_region_has_it() -> None:
    assert Registry("us-east-1").schema("AWS::SageMaker::ComputeQuota") is not None
    assert Registry("ca-west-1").schema("AWS::SageMaker::ComputeQuota") is None
    assert Registry("us-east-1").schema("AWS::Nothing::Here") is None


def test_an_unlisted_region_has_the_fallback_registry() -> None:
    assert Registry("xx-nowhere-1").schema(BUCKET) is not None


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (("A",), 1),
        (("B", "C"), 2),
        (("L", "*", "X"), [1, 2]),
        (("L", "X"), [1, 2]),
        (("Nope", "C"), None),
        (("B", "*"), None),
    ],
)
def test_values_at(path: tuple[str, ...], expected: Any) -> None:
    assert values_at({"A": 1, "B": {"C": 2}, "L": [{"X": 1}, {"X": 2}]}, path) == expected


@pytest.mark.parametrize(
    ("attribute", "supported"),
    [("Arn", True), ("DomainName", True), ("Nope", False)],
)
def test_attributes(attribute: str, *, supported: bool) -> None:
    assert schema(BUCKET).supports_attribute(attribute) is supported


def test_what_takes_long_to_load_is_not_loaded() -> None:
    package = "hyperpod_cdk_rehearsal.embedded.cloudformation"
    code = (
        f"import sys; from {package}.graph import ordered; from {package}.schema import Registry\n"
        "ordered({'A': frozenset()}); assert Registry('us-east-1').schema('AWS::S3::Bucket')\n"
        "print([name for name in ('cfnlint', 'networkx') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "[]\n"), ran.stderr
