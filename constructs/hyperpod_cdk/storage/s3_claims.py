"""Lets pods mount S3 buckets: a volume and a claim per namespace, and the driver with its permissions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aws_cdk import Aws
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct

from hyperpod_cdk.catalog import addons, arns, s3_places
from hyperpod_cdk.catalog.sentences import in_python
from hyperpod_cdk.common.acknowledgments import RESOURCE, acknowledge
from hyperpod_cdk.common.stack_arns import HERE
from hyperpod_cdk.config import storage as fields
from hyperpod_cdk.config.argument_types import judged
from hyperpod_cdk.config.arguments import is_token, refuse, refuse_all, refuse_for
from hyperpod_cdk.config.environment import Environment
from hyperpod_cdk.eks.node_addons import POD_IDENTITY_TRUST, check_addon, driver_addon
from hyperpod_cdk.storage.volume_claims import VolumeClaims, check_claims

CSI_DRIVER = "s3.csi.aws.com"
"""Name of the Kubernetes driver in a static persistent volume."""

# Kubernetes requires one, and the driver ignores it
_ANY_CAPACITY = "1Gi"


@judged()
@dataclass(frozen=True, kw_only=True)
class MountedBucket:
    """An existing S3 bucket, or its part under ``prefix`` (empty, or ending with ``/``), and what pods may do.

    Pods read, and unless ``read_only`` write new objects; they replace objects only with ``allow_overwrite`` and delete
    them only with ``allow_delete``, as in Mountpoint. ``kms_key_arn`` names the key that encrypts the objects.

    ``bucket`` (str): name of the bucket. Raises ValueError for text that is not the name of a bucket.

    ``prefix`` (str): part of the bucket that is mounted, ending with ``/``. Default: empty, the whole bucket. Raises
    ValueError for another form, for ``*``, ``?`` and blanks, and for brackets that do not match.

    ``read_only`` (bool): whether pods only read. Default: no.

    ``allow_delete`` (bool): whether pods may delete objects. Default: no. Raises ValueError together with
    ``read_only``.

    ``allow_overwrite`` (bool): whether pods may replace objects. Default: no. Raises ValueError together with
    ``read_only``.

    ``kms_key_arn`` (str, ARN): the KMS key that encrypts the objects. Default: none. Raises ValueError for text that is
    not the ARN of a key.
    """

    bucket: str
    prefix: str = ""
    read_only: bool = False
    allow_delete: bool = False
    allow_overwrite: bool = False
    kms_key_arn: str | None = None

    def __post_init__(self) -> None:
        """Raise ValueError for contradictory values."""
        contradictory = s3_places.read_only_problems(
            read_only=self.read_only, allow_delete=self.allow_delete, allow_overwrite=self.allow_overwrite
        )
        refuse_all(
            lambda: refuse(
                fields.S3Volume,
                bucket=self.bucket,
                prefix=self.prefix,
                read_only=self.read_only,
                allow_delete=self.allow_delete,
                allow_overwrite=self.allow_overwrite,
                kms_key_arn=self.kms_key_arn,
            ),
            lambda: refuse_for(f"{key}: {in_python(problem)}" for key, problem in contradictory),
        )


@judged(known=("claim_name", "namespaces"))
class S3Claims(VolumeClaims):
    """A persistent volume and a claim named ``claim_name`` in each of ``namespaces``, over one ``MountedBucket``.

    ``region`` is the bucket's. Files belong to ``uid`` and ``gid``, by default root; pods of other users can access
    them only if one is set. Objects remain when claim or volume are deleted.

    The namespaces must exist, unless ``create_namespaces`` is set. This must depend on what creates the namespaces (a
    team's compute quota) and on ``S3CsiDriver``, which must have the bucket.

    ``cluster`` (eks_v2.ICluster): the CDK construct of the EKS cluster, with a kubectl provider. Raises ValueError for
    a cluster without one.

    ``bucket`` (MountedBucket): the bucket, or part of it, and what pods may do. Raises ValueError for a KMS key of
    another region than ``region``.

    ``region`` (str): the bucket's region. Raises ValueError for an unknown region.

    ``claim_name`` (str): name of the claim in each namespace. Raises ValueError for a name that Kubernetes refuses.

    ``namespaces`` (Sequence[str]): namespaces that get a claim, each once. Raises ValueError for none, a repeated one,
    and a name that Kubernetes refuses.

    ``uid`` (int, user ID): user that owns the files. Default: root. Raises ValueError unless it is 0 to 4294967294.

    ``gid`` (int, group ID): group that owns the files. Default: root. Raises ValueError unless it is 0 to 4294967294.

    ``create_namespaces`` (bool): whether missing namespaces are created. Default: no.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: eks.ICluster,
        bucket: MountedBucket,
        region: str,
        claim_name: str,
        namespaces: Sequence[str],
        uid: int | None = None,
        gid: int | None = None,
        create_namespaces: bool = False,
    ) -> None:
        refuse_all(
            lambda: refuse(fields.S3Volume, uid=uid, gid=gid),
            (
                lambda: refuse(Environment, region=region),
                lambda: refuse_for(_key_problems(bucket, region=region)),
            ),
            lambda: check_claims(claim_name, namespaces),
        )
        options = list(_mount_options(bucket, region=region, uid=uid, gid=gid))
        super().__init__(
            scope,
            construct_id,
            cluster=cluster,
            claim_name=claim_name,
            namespaces=namespaces,
            volume=lambda name: {
                "capacity": {"storage": _ANY_CAPACITY},
                "accessModes": ["ReadOnlyMany" if bucket.read_only else "ReadWriteMany"],
                "mountOptions": options,
                # Kubernetes mounts only one volume of a handle
                "csi": {
                    "driver": CSI_DRIVER,
                    "volumeHandle": name,
                    "volumeAttributes": {"bucketName": bucket.bucket},
                },
            },
            request=_ANY_CAPACITY,
            create_namespaces=create_namespaces,
        )


@judged()
class S3CsiDriver(Construct):
    """The Mountpoint for S3 CSI driver as an EKS add-on, with permissions for ``buckets`` and nothing else.

    The permissions come from a pod identity association, which the driver supports since 2.0.0. All pods that mount a
    bucket share them: a namespace cannot mount a bucket without a claim, but permissions are not separated by
    namespace. Without ``buckets`` it may read and write nothing. Needs the add-on ``eks-pod-identity-agent`` and, to
    become active, a node.

    ``eks_cluster_name`` (str): name of the EKS cluster. Raises ValueError for a name that EKS refuses.

    ``buckets`` (Sequence[MountedBucket]): every bucket that pods mount. Default: none, and no permissions.

    ``addon_version`` (str): version of the add-on, such as ``v2.1.0-eksbuild.1``. Default: EKS's default for the
    Kubernetes version. Raises ValueError for text of another form, and for a version before EKS Pod Identity.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        eks_cluster_name: str,
        buckets: Sequence[MountedBucket] = (),
        addon_version: str | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        driver = addons.row(addons.S3_CSI_DRIVER)
        old = None if addon_version is None else addons.s3_pod_identity_problem(addon_version)
        refuse_all(
            lambda: check_addon(eks_cluster_name, addon_version),
            lambda: refuse_for([f"addon_version: {old}"] if old else ()),
        )
        statements = list(_statements(buckets))
        role = iam.CfnRole(
            self,
            "Role",
            description="Mountpoint for S3 CSI driver, through EKS pod identity",
            assume_role_policy_document=POD_IDENTITY_TRUST,
            policies=[
                iam.CfnRole.PolicyProperty(
                    policy_name="buckets", policy_document={"Version": "2012-10-17", "Statement": statements}
                )
            ]
            if statements
            else None,
        )
        reason = "pods mount every object of the bucket, or below the prefix, whatever its name"
        objects = {RESOURCE.format(f"arn:<AWS::Partition>:s3:::{each.bucket}/{each.prefix}*") for each in buckets}
        acknowledge(role, dict.fromkeys(sorted(objects), reason))
        self._addon = driver_addon(
            self, driver, eks_cluster_name=eks_cluster_name, addon_version=addon_version, role_arn=role.attr_arn
        )

    @property
    def addon(self) -> eks.CfnAddon:
        """The add-on."""
        return self._addon


def _mount_options(bucket: MountedBucket, *, region: str, uid: int | None, gid: int | None) -> Iterator[str]:
    yield f"region {region}"
    if bucket.prefix:
        yield f"prefix {bucket.prefix}"
    if bucket.read_only:
        yield "read-only"
    if bucket.allow_delete:
        yield "allow-delete"
    if bucket.allow_overwrite:
        yield "allow-overwrite"
    for name, value in (("uid", uid), ("gid", gid)):
        if value is not None:
            yield f"{name}={value}"
    if uid is not None or gid is not None:
        yield "allow-other"


def _statements(buckets: Sequence[MountedBucket]) -> Iterator[Mapping[str, Any]]:
    """Yield the permissions of Mountpoint's own recommendation, bucket by bucket and prefix by prefix."""
    for bucket in buckets:
        arn = f"arn:{HERE.partition}:s3:::{bucket.bucket}"
        listing: dict[str, Any] = {"Effect": "Allow", "Action": "s3:ListBucket", "Resource": arn}
        if bucket.prefix:
            listing["Condition"] = {"StringLike": {"s3:prefix": f"{bucket.prefix}*"}}
        yield listing
        actions = ["s3:GetObject"]
        if not bucket.read_only:
            actions += ["s3:AbortMultipartUpload", "s3:PutObject"]
        if bucket.allow_delete:
            actions.append("s3:DeleteObject")
        yield {"Effect": "Allow", "Action": sorted(actions), "Resource": f"{arn}/{bucket.prefix}*"}
        if bucket.kms_key_arn:
            yield {
                "Effect": "Allow",
                "Action": ["kms:Decrypt"] if bucket.read_only else list(arns.OBJECT_KEY_ACTIONS),
                "Resource": bucket.kms_key_arn,
                "Condition": {"StringEquals": {"kms:ViaService": f"s3.{HERE.region}.{Aws.URL_SUFFIX}"}},
            }


def _key_problems(bucket: MountedBucket, *, region: str) -> Iterator[str]:
    key = bucket.kms_key_arn
    if key is None or is_token(key) or is_token(region):
        return
    if problem := arns.bucket_key_problem(key, region=region):
        yield f"bucket.kms_key_arn: {problem}"
