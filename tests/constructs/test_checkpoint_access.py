"""What pods may do for tiered checkpointing."""

from __future__ import annotations

from typing import Any

import aws_cdk as cdk
import pytest

from hyperpod_cdk.hyperpod.checkpoint_access import CheckpointAccess
from tests.support.templates import of_type, stack, template_of

KEY = "arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"


def made(**given: Any) -> dict[str, Any]:
    foreign = stack("foreign")
    plain = {
        "eks_cluster_name": "prod-eks",
        "namespace": "hyperpod-ns-research",
        "service_account": "trainer",
        "buckets": ["my-checkpoints"],
    }
    CheckpointAccess(foreign, "Access", **{**plain, **given})
    return template_of(foreign)


def statements(template: dict[str, Any]) -> dict[str, dict[str, Any]]:
    (role,) = of_type(template, "AWS::IAM::Role").values()
    (policy,) = role["Properties"]["Policies"]
    return {each["Sid"]: each for each in policy["PolicyDocument"]["Statement"]}


def arn(text: str) -> dict[str, Any]:
    return {"Fn::Join": ["", ["arn:", {"Ref": "AWS::Partition"}, text]]}


def test_the_account_gets_the_role() -> None:
    template = made()
    ((role_id, role),) = of_type(template, "AWS::IAM::Role").items()
    (association,) = of_type(template, "AWS::EKS::PodIdentityAssociation").values()
    assert association["Properties"] == {
        "ClusterName": "prod-eks",
        "Namespace": "hyperpod-ns-research",
        "ServiceAccount": "trainer",
        "RoleArn": {"Fn::GetAtt": [role_id, "Arn"]},
    }
    assert role["Properties"]["AssumeRolePolicyDocument"]["Statement"] == [
        {
            "Effect": "Allow",
            "Principal": {"Service": "pods.eks.amazonaws.com"},
            "Action": ["sts:AssumeRole", "sts:TagSession"],
        }
    ]


def test_a_whole_bucket() -> None:
    found = statements(made())
    assert list(found) == ["List0", "Buckets", "Checkpoints", "Logs", "Metrics"]
    assert found["List0"] == {
        "Sid": "List0",
        "Effect": "Allow",
        "Action": ["s3:ListBucket"],
        "Resource": [arn(":s3:::my-checkpoints")],
    }
    assert found["Checkpoints"]["Resource"] == [arn(":s3:::my-checkpoints/*")]
    assert found["Checkpoints"]["Action"] == [
        "s3:AbortMultipartUpload",
        "s3:DeleteObject",
        "s3:GetObject",
        "s3:ListMultipartUploadParts",
        "s3:PutObject",
    ]
    assert found["Buckets"]["Action"] == ["s3:GetBucketLocation", "s3:ListBucketMultipartUploads"]
    assert found["Logs"]["Action"] == [
        "logs:CreateLogGroup",
        "logs:CreateLogStream",
        "logs:DescribeLogStreams",
        "logs:PutLogEvents",
    ]
    assert found["Metrics"]["Action"] == ["cloudwatch:PutMetricData"]


@pytest.mark.parametrize("address", ["s3://my-checkpoints/llama-70b", "s3://my-checkpoints/llama-70b/"])
def test_a_prefix_is_not_the_beginning_of_another(address: str) -> None:
    found = statements(made(buckets=[address, "s3://others"]))
    assert found["Checkpoints"]["Resource"] == [arn(":s3:::my-checkpoints/llama-70b/*"), arn(":s3:::others/*")]
    assert found["List0"]["Condition"] == {"StringLike": {"s3:prefix": ["llama-70b", "llama-70b/*"]}}
    assert "Condition" not in found["List1"]
    assert found["Buckets"]["Resource"] == [arn(":s3:::my-checkpoints"), arn(":s3:::others")]


def test_two_prefixes_of_one_bucket() -> None:
    found = statements(made(buckets=["s3://my-checkpoints/a", "s3://my-checkpoints/b"]))
    assert found["Buckets"]["Resource"] == [arn(":s3:::my-checkpoints")]
    assert len(found["Checkpoints"]["Resource"]) == 2


def test_keys_of_the_buckets() -> None:
    found = statements(made(kms_key_arns=[KEY]))
    assert (found["Keys"]["Action"], found["Keys"]["Resource"]) == (["kms:Decrypt", "kms:GenerateDataKey"], [KEY])


def test_without_a_bucket() -> None:
    with pytest.raises(ValueError, match=r"^buckets: must hold at least one bucket or prefix, got none; add one$"):
        made(buckets=[])


@pytest.mark.parametrize("address", ["my-*", "s3://my-checkpoints/${aws:username}", "ab", "s3:///models"])
def test_places_that_are_none(address: str) -> None:
    with pytest.raises(ValueError, match=r"buckets") as caught:
        made(buckets=[address])
    assert str(caught.value) == (
        "buckets[0]: must be the name of a bucket, or the S3 address of a bucket or a prefix without wildcards, got"
        f' "{address}"; write buckets[0] as s3://my-checkpoints/llama-70b'
    )


def test_tokens_are_not_judged() -> None:
    bucket = cdk.Token.as_string({"Fn::ImportValue": "Checkpoints"})
    assert "Checkpoints" in statements(made(buckets=[bucket]))
