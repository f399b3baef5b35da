"""Volumes and claims over S3 buckets, and what their driver may do."""

from __future__ import annotations

import json
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_eks_v2 as eks

from hyperpod_cdk.storage.s3_claims import MountedBucket, S3Claims, S3CsiDriver
from tests.support.templates import of_type, stack, template_of

MANIFEST = "Custom::AWSCDK-EKS-KubernetesResource"


def claims(own: cdk.Stack, bucket: MountedBucket | None = None, **options: Any) -> S3Claims:
    cluster = eks.Cluster.from_cluster_attributes(
        own,
        "Eks",
        cluster_name="prod-eks",
        kubectl_provider=eks.KubectlProvider.from_kubectl_provider_attributes(
            own,
            "Kubectl",
            service_token=cdk.Fn.import_value("kubectl"),
            role=cdk.aws_iam.Role.from_role_name(own, "Role", "kubectl"),
        ),
    )
    given: dict[str, Any] = {
        "cluster": cluster,
        "bucket": bucket or MountedBucket(bucket="my-runs", prefix="llama/"),
        "region": "us-east-1",
        "claim_name": "runs",
        "namespaces": ["hyperpod-ns-research"],
        **options,
    }
    return S3Claims(own, "Claims", **given)


def manifests(own: cdk.Stack) -> list[list[dict[str, Any]]]:
    return [json.loads(row["Properties"]["Manifest"]) for row in of_type(template_of(own), MANIFEST).values()]


def options_of(bucket: MountedBucket, **options: Any) -> list[str]:
    own = stack()
    claims(own, bucket, **options)
    ((volume, _),) = manifests(own)
    found: list[str] = volume["spec"]["mountOptions"]
    return found


def statements(*buckets: MountedBucket) -> list[dict[str, Any]]:
    own = stack()
    S3CsiDriver(own, "Driver", eks_cluster_name="prod-eks", buckets=buckets)
    (role,) = of_type(template_of(own), "AWS::IAM::Role").values()
    (policy,) = role["Properties"]["Policies"]
    found: list[dict[str, Any]] = policy["PolicyDocument"]["Statement"]
    return found


def arn(rest: str) -> dict[str, Any]:
    return {"Fn::Join": ["", ["arn:", {"Ref": "AWS::Partition"}, f":s3:::{rest}"]]}


def test_a_volume_and_a_claim_bound_to_each_other() -> None:
    own = stack()
    claims(own)
    ((volume, claim),) = manifests(own)

    assert volume == {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "hyperpod-ns-research.runs"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "volumeMode": "Filesystem",
            "accessModes": ["ReadWriteMany"],
            "mountOptions": ["region us-east-1", "prefix llama/"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "",
            "claimRef": {"namespace": "hyperpod-ns-research", "name": "runs"},
            "csi": {
                "driver": "s3.csi.aws.com",
                "volumeHandle": "hyperpod-ns-research.runs",
                "volumeAttributes": {"bucketName": "my-runs"},
            },
        },
    }
    assert claim == {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"namespace": "hyperpod-ns-research", "name": "runs"},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "",
            "volumeName": "hyperpod-ns-research.runs",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def test_every_volume_has_a_handle_of_its_own() -> None:
    own = stack()
    claims(own, namespaces=["a", "b"])
    assert [rows[0]["spec"]["csi"]["volumeHandle"] for rows in manifests(own)] == ["a.runs", "b.runs"]


def test_a_read_only_bucket() -> None:
    own = stack()
    claims(own, MountedBucket(bucket="my-corpus", read_only=True))
    ((volume, claim),) = manifests(own)
    assert volume["spec"]["accessModes"] == claim["spec"]["accessModes"] == ["ReadOnlyMany"]
    assert volume["spec"]["mountOptions"] == ["region us-east-1", "read-only"]


@pytest.mark.parametrize(
    ("bucket", "options", "expected"),
    [
        (MountedBucket(bucket="data"), {}, []),
        (MountedBucket(bucket="data", allow_delete=True), {}, ["allow-delete"]),
        (MountedBucket(bucket="data", allow_overwrite=True), {}, ["allow-overwrite"]),
        (MountedBucket(bucket="data"), {"uid": 1000}, ["uid=1000", "allow-other"]),
        (MountedBucket(bucket="data"), {"uid": 0, "gid": 0}, ["uid=0", "gid=0", "allow-other"]),
    ],
)
def test_mount_options(bucket: MountedBucket, options: dict[str, Any], expected: list[str]) -> None:
    assert options_of(bucket, **options) == ["region us-east-1", *expected]


def test_rights_end_at_the_prefix() -> None:
    assert statements(MountedBucket(bucket="my-runs", prefix="llama/")) == [
        {
            "Effect": "Allow",
            "Action": "s3:ListBucket",
            "Resource": arn("my-runs"),
            "Condition": {"StringLike": {"s3:prefix": "llama/*"}},
        },
        {
            "Effect": "Allow",
            "Action": ["s3:AbortMultipartUpload", "s3:GetObject", "s3:PutObject"],
            "Resource": arn("my-runs/llama/*"),
        },
    ]


def test_only_who_may_delete_gets_the_right() -> None:
    _, objects = statements(MountedBucket(bucket="b01", allow_delete=True))
    assert "s3:DeleteObject" in objects["Action"]


@pytest.mark.parametrize(
    ("read_only", "actions"), [(True, ["kms:Decrypt"]), (False, ["kms:Decrypt", "kms:GenerateDataKey"])]
)
def test_a_key_is_used_through_s3_only(read_only: bool, actions: list[str]) -> None:  # noqa: FBT001 - a table's column
    *_, objects, key = statements(
        MountedBucket(bucket="b01", read_only=read_only, kms_key_arn=cdk.Fn.import_value("key"))
    )
    assert objects["Action"] == (
        ["s3:GetObject"] if read_only else ["s3:AbortMultipartUpload", "s3:GetObject", "s3:PutObject"]
    )
    assert key == {
        "Effect": "Allow",
        "Action": actions,
        "Resource": {"Fn::ImportValue": "key"},
        "Condition": {
            "StringEquals": {
                "kms:ViaService": {
                    "Fn::Join": ["", ["s3.", {"Ref": "AWS::Region"}, ".", {"Ref": "AWS::URLSuffix"}]],
                }
            }
        },
    }


def test_without_buckets_the_driver_may_do_nothing() -> None:
    own = stack()
    S3CsiDriver(own, "Driver", eks_cluster_name="prod-eks")
    (role,) = of_type(template_of(own), "AWS::IAM::Role").values()
    assert "Policies" not in role["Properties"]


def test_the_driver_takes_its_rights_from_pod_identity() -> None:
    own = stack()
    driver = S3CsiDriver(own, "Driver", eks_cluster_name="prod-eks", addon_version="v2.1.0-eksbuild.1")
    template = template_of(own)
    ((association_id, association),) = of_type(template, "AWS::EKS::PodIdentityAssociation").items()
    ((role_id, _),) = of_type(template, "AWS::IAM::Role").items()
    ((addon_id, addon),) = of_type(template, "AWS::EKS::Addon").items()

    assert association["Properties"] == {
        "ClusterName": "prod-eks",
        "Namespace": "kube-system",
        "ServiceAccount": "s3-csi-driver-sa",
        "RoleArn": {"Fn::GetAtt": [role_id, "Arn"]},
    }
    assert addon["Properties"] == {
        "ClusterName": "prod-eks",
        "AddonName": "aws-mountpoint-s3-csi-driver",
        "AddonVersion": "v2.1.0-eksbuild.1",
        "ResolveConflicts": "OVERWRITE",
    }
    assert addon["DependsOn"] == [association_id]
    assert own.resolve(driver.addon.ref) == {"Ref": addon_id}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"prefix": "runs"},
            (
                "prefix: must be empty, or a prefix that ends with / and does not begin with it, without spaces, * and"
                ' ?, got "runs"; set prefix="runs/"'
            ),
        ),
        (
            {"prefix": "/runs/"},
            (
                "prefix: must be empty, or a prefix that ends with / and does not begin with it, without spaces, * and"
                ' ?, got "/runs/"; set prefix="runs/"'
            ),
        ),
        (
            {"read_only": True, "allow_delete": True},
            "allow_delete: must be False with read_only, got True; set one of the two to False",
        ),
        (
            {"read_only": True, "allow_overwrite": True},
            "allow_overwrite: must be False with read_only, got True; set one of the two to False",
        ),
    ],
)
def test_misuse_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as refusal:  # noqa: PT011 - the whole message is compared below
        MountedBucket(bucket="data", **options)
    assert str(refusal.value) == message


def test_a_token_is_no_wrong_prefix() -> None:
    prefix = cdk.CfnParameter(stack(), "Prefix").value_as_string
    assert MountedBucket(bucket="my-runs", prefix=prefix).prefix == prefix
