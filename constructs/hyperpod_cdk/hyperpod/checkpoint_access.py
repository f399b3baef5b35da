"""Permissions of training pods for managed tiered checkpointing: checkpoints in S3, logs and metrics in CloudWatch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from aws_cdk import Stack
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct

from hyperpod_cdk.catalog import addons, arns, regions, s3_places
from hyperpod_cdk.catalog.arns import OBJECT_KEY_ACTIONS
from hyperpod_cdk.catalog.rules import repeated_problem
from hyperpod_cdk.catalog.sentences import in_python
from hyperpod_cdk.common.acknowledgments import RESOURCE, acknowledge
from hyperpod_cdk.common.stack_arns import HERE, arn_here
from hyperpod_cdk.config import checkpointing as fields
from hyperpod_cdk.config.argument_types import judged
from hyperpod_cdk.config.arguments import is_token, refuse, refuse_all, refuse_for
from hyperpod_cdk.eks.node_addons import POD_IDENTITY_TRUST, check_addon

# the first four as in the README of amzn-sagemaker-checkpointing; a checkpoint is uploaded in parts of 32 MiB
_OBJECT_ACTIONS = (
    "s3:AbortMultipartUpload",
    "s3:DeleteObject",
    "s3:GetObject",
    "s3:ListMultipartUploadParts",
    "s3:PutObject",
)
_LOG_ACTIONS = ("logs:CreateLogGroup", "logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents")


@judged(whole=("kms_key_arns",))
class CheckpointAccess(Construct):
    """The permissions of the pods of one Kubernetes service account, with EKS Pod Identity.

    The eks-pod-identity-agent add-on must be installed before the pods start. The owner of the namespace creates the
    service account; neither must exist yet.

    ``eks_cluster_name`` (str): the EKS cluster of the HyperPod cluster. Raises ValueError for a name that EKS refuses.

    ``namespace`` (str): namespace of the pods. Raises ValueError for a name that Kubernetes refuses.

    ``service_account`` (str): service account of the pods. EKS gives each account one role: a second construct for the
    same account fails to deploy. Raises ValueError for a name that Kubernetes refuses, and for the service account of
    an add-on.

    ``buckets`` (Sequence[str]): names of buckets, or ``s3://bucket/prefix``, that the pods read and write. A prefix
    allows all keys that begin with it and a slash. The bucket policy of another account's bucket must allow
    ``role_arn`` too. Raises ValueError without a bucket, and for one whose name or prefix contains a wildcard or that
    is in another one.

    ``kms_key_arns`` (Sequence[str], ARNs): KMS keys of these buckets. Default: none. Raises ValueError for text that is
    not the ARN of a key, a repeated key, and one of another partition.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        eks_cluster_name: str,
        namespace: str,
        service_account: str,
        buckets: Sequence[str],
        kms_key_arns: Sequence[str] = (),
    ) -> None:
        super().__init__(scope, construct_id)
        region = Stack.of(self).region
        refuse_all(
            lambda: check_addon(eks_cluster_name),
            (
                lambda: refuse(fields.CheckpointAccount, namespace=namespace),
                lambda: refuse_for(_service_account_problems(namespace, service_account)),
            ),
            lambda: refuse(fields.CheckpointAccount, called={"name": "service_account"}, name=service_account),
            (
                lambda: refuse(fields.CheckpointAccount, buckets=buckets),
                lambda: refuse_for(_bucket_problems(buckets)),
            ),
            (
                lambda: refuse(fields.CheckpointAccount, kms_key_arns=kms_key_arns),
                lambda: refuse_for(_key_problems(kms_key_arns, region=region)),
            ),
        )
        places = [_place(address) for address in buckets]
        policy = iam.CfnRole.PolicyProperty(
            policy_name="Checkpoints",
            policy_document={"Version": "2012-10-17", "Statement": list(_statements(places, kms_key_arns))},
        )
        # the policy within the role: the association makes the role usable, so it must be complete before
        self.role: iam.CfnRole = iam.CfnRole(
            self,
            "Role",
            description=f"Tiered checkpointing of {namespace}/{service_account}",
            assume_role_policy_document=POD_IDENTITY_TRUST,
            policies=[policy],
        )
        self.role_arn: str = self.role.attr_arn
        self.association: eks.CfnPodIdentityAssociation = eks.CfnPodIdentityAssociation(
            self,
            "PodIdentityAssociation",
            cluster_name=eks_cluster_name,
            namespace=namespace,
            service_account=service_account,
            role_arn=self.role.attr_arn,
        )
        logs = "jobs name their log groups themselves; they have only the permission to write"
        acknowledge(
            self.role,
            {
                **{
                    RESOURCE.format(f"arn:<AWS::Partition>:s3:::{bucket}/{prefix}*"): "all checkpoints below the prefix"
                    for bucket, prefix in places
                    if not is_token(bucket)
                },
                RESOURCE.format("arn:<AWS::Partition>:logs:<AWS::Region>:<AWS::AccountId>:log-group:*"): logs,
                RESOURCE.format("*"): "cloudwatch:PutMetricData supports no resource",
            },
        )


def _service_account_problems(namespace: str, service_account: str) -> Iterator[str]:
    if problem := addons.service_account_problem(namespace, service_account):
        yield f"service_account: {problem}"


def _bucket_problems(buckets: Sequence[str]) -> Iterator[str]:
    for index, problem in s3_places.overlaps([each for each in buckets if not is_token(each)], key="buckets"):
        yield f"buckets[{index}]: {in_python(problem)}"


def _key_problems(kms_key_arns: Sequence[str], *, region: str) -> Iterator[str]:
    known = [arn for arn in kms_key_arns if not is_token(arn)]
    if problem := repeated_problem(known, key="kms_key_arns"):
        yield problem
    partition = None if is_token(region) else regions.partition_of(region)
    for arn in known if partition else ():
        if problem := arns.partition_problem(arn, partition=partition or "", region=region):
            yield f"kms_key_arns[{kms_key_arns.index(arn)}]: {problem}"


def _place(address: str) -> tuple[str, str]:
    """Return bucket and prefix; the prefix is empty or ends with a slash."""
    if is_token(address):
        return address, ""
    bucket, _, prefix = address.removeprefix("s3://").partition("/")
    prefix = prefix.strip("/")
    return bucket, f"{prefix}/" if prefix else ""


def _statements(places: Sequence[tuple[str, str]], keys: Sequence[str]) -> Iterator[dict[str, Any]]:
    for index, (bucket, prefix) in enumerate(places):
        listing = _allow(f"List{index}", ["s3:ListBucket"], [_bucket(bucket)])
        if prefix:
            listing["Condition"] = {"StringLike": {"s3:prefix": [prefix.rstrip("/"), f"{prefix}*"]}}
        yield listing
    buckets = list(dict.fromkeys(bucket for bucket, _ in places))
    whole = ["s3:GetBucketLocation", "s3:ListBucketMultipartUploads"]
    yield _allow("Buckets", whole, [_bucket(bucket) for bucket in buckets])
    yield _allow("Checkpoints", _OBJECT_ACTIONS, [f"{_bucket(bucket)}/{prefix}*" for bucket, prefix in places])
    if keys:
        yield _allow("Keys", OBJECT_KEY_ACTIONS, keys)
    log_groups = arn_here("logs", "log-group:*")
    yield _allow("Logs", _LOG_ACTIONS, [log_groups])
    yield _allow("Metrics", ["cloudwatch:PutMetricData"], ["*"])


def _bucket(name: str) -> str:
    return f"arn:{HERE.partition}:s3:::{name}"


def _allow(sid: str, actions: Sequence[str], resources: Sequence[str]) -> dict[str, Any]:
    return {"Sid": sid, "Effect": "Allow", "Action": list(actions), "Resource": list(resources)}
