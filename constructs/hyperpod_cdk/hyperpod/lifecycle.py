"""Lifecycle scripts: the scripts that HyperPod runs on each new node, in their own bucket."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import cast

from aws_cdk import Names, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_s3_deployment as s3_deployment
from constructs import Construct, IDependable

from hyperpod_cdk.catalog import hyperpod, instance_types, regions
from hyperpod_cdk.catalog.lustre import efa_interfaces
from hyperpod_cdk.catalog.rules import slug
from hyperpod_cdk.catalog.s3_places import BUCKET_NAME_MAXIMUM
from hyperpod_cdk.catalog.sentences import in_python
from hyperpod_cdk.common.acknowledgments import acknowledge_bucket_deployment, acknowledge_log_group, ignore_in_checkov
from hyperpod_cdk.common.physical_names import STACK_PART_LENGTH, stack_part
from hyperpod_cdk.common.stack_arns import HERE
from hyperpod_cdk.config.argument_types import judged
from hyperpod_cdk.config.arguments import refuse, refuse_all, refuse_for, unknown_type_problem
from hyperpod_cdk.config.lifecycle import ExistingBucket
from hyperpod_cdk.script_files import (
    ENVIRONMENT,
    EXCLUDED,
    STEPS,
    check_scripts,
    check_steps,
    content_hash,
    environment_text,
    library_scripts,
    name_problem,
    script_names,
    shebang_problem,
)

# the upload unzips the folder and starts the AWS CLI: with Lambda's own 128 MiB it takes minutes
_UPLOAD_MEMORY_MIB = 512

_WRITES = (
    "s3:BypassGovernanceRetention",
    "s3:DeleteObject*",
    "s3:PutObject*",
    "s3:ReplicateDelete",
    "s3:ReplicateObject",
    "s3:RestoreObject",
)

_ACCOUNT_LENGTH = len("111122223333")


@judged(known=("directory", "name", "entry_points", "lustre", "lustre_over_efa"))
class LifecycleScripts(Construct):
    """Uploads a folder of lifecycle scripts to S3, under a prefix that depends on the folder's content.

    A changed folder gets a new prefix and older ones remain, so that a node that is being created never gets parts of
    two versions, and a rollback is a change of address. The new address reaches every instance group
    through UpdateCluster, which does not change running nodes: scripts run on new nodes, and on all nodes of a
    group when UpdateClusterSoftware patches it (developer guide, "Updating a cluster with new or updated
    lifecycle scripts", written for Slurm; unsure for EKS, whose page only says that the path may be changed).
    HyperPod refuses every update while deep health checks run.

    HyperPod's managed policy for nodes reads only buckets whose name begins with ``sagemaker-``; this bucket's does.
    The bucket is retained, so its name contains part of the stack's id: a stack that is created again, after its
    deletion or after a failed first deployment, would otherwise conflict with the earlier stack's bucket.

    ``directory`` (str | Path): the folder to upload. Default: the library's own scripts, which move container data to
    the data disk, choose the container runtime and load the kernel modules of EFA and Lustre. Raises ValueError for a
    folder that would fail on a node: missing, empty or too large, or with a script that has Windows line endings or a
    first line that does not name its interpreter.

    ``bucket`` (s3.IBucket): the bucket to upload to. Default: a new one, versioned, encrypted, private and TLS only,
    with access logs in a second bucket; both are retained. The scripts run as root on nodes, and AWS's policy
    AmazonSageMakerFullAccess allows writing to every bucket with ``sagemaker`` in its name: a policy on the new bucket
    denies writing and deleting objects to everyone except the function of this upload. The policy is deleted with the
    stack, so that the retained bucket can be emptied. A bucket that you pass is not changed: its owner decides who may
    write to it. Raises ValueError for a bucket whose name does not begin with ``sagemaker-``.

    ``prefix`` (str): folders, joined by ``/``, above the folder that is named by the content. Default: none. Raises
    ValueError for a ``/`` at either end, and for text that is too long.

    ``encryption_key`` (kms.IKey): encrypts the new bucket. Default: S3's own keys (SSE-S3). Raises ValueError together
    with ``bucket``, which has its own key.

    ``name`` (str): a word in the new bucket's name, shortened if it is too long; another one for each construct of a
    stack. Default: made from the construct's path. Raises ValueError for a token, which cannot be shortened.

    ``steps`` (Sequence[Path]): scripts that are uploaded into ``steps/`` with those of the folder; ``on_create.sh``
    runs all of them in the order of their names: two digits, _ and a word (``60_ours.sh``). Default: none. Raises
    ValueError for another name, and for a script that would fail on a node.

    ``entry_points`` (Sequence[str]): scripts that must exist. Default: none are checked here; ``HyperPodCluster``
    checks those that its instance groups name in ``on_create``. Raises ValueError for a script that is not in the
    folder.

    ``lustre`` (Sequence[str]): instance types (``ml.*``) whose nodes mount an FSx for Lustre file system; one without a
    Lustre client fails. Default: none. Raises ValueError for a type that is neither in the catalog nor in
    ``stated_types``.

    ``lustre_over_efa`` (Mapping[str, int], EFA interfaces): instance type (``ml.*``) -> EFA interfaces that its nodes
    use for Lustre, 0 if they cannot; ``catalog.lustre.efa_interfaces`` returns them. Default: Lustre uses TCP. Both are
    uploaded as ``environment.conf``, which the library's scripts read. Raises ValueError for an unknown type, a number
    below 0, and one above the type's network cards.

    ``stated_types`` (Mapping[str, InstanceType]): your own rows, by name, for types that the catalog does not have or
    whose row is wrong. Default: none.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        directory: str | Path | None = None,
        bucket: s3.IBucket | None = None,
        prefix: str | None = None,
        encryption_key: kms.IKey | None = None,
        name: str | None = None,
        steps: Sequence[Path] = (),
        entry_points: Sequence[str] = (),
        lustre: Sequence[str] = (),
        lustre_over_efa: Mapping[str, int] = MappingProxyType({}),
        stated_types: Mapping[str, instance_types.InstanceType] = MappingProxyType({}),
    ) -> None:
        super().__init__(scope, construct_id)
        both = (
            "encryption_key is for a new bucket, got both bucket and encryption_key; "
            "leave out encryption_key: the given bucket has its own"
        )
        folder = prefix or ""
        self.directory: Path = library_scripts() if directory is None else Path(directory)
        refuse_all(
            lambda: refuse_for([both] if bucket is not None and encryption_key is not None else ()),
            lambda: refuse(ExistingBucket, prefix=prefix or None),
            lambda: refuse(
                ExistingBucket, called={"name": "bucket"}, name=None if bucket is None else bucket.bucket_name
            ),
            lambda: refuse_for(_type_problems(lustre, lustre_over_efa, stated_types)),
            (
                lambda: check_scripts(self.directory),
                lambda: check_steps(steps, self.directory),
                lambda: self._check_entry_points(entry_points),
            ),
        )
        text = environment_text(lustre=lustre, lustre_over_efa=lustre_over_efa)
        written = {f"{STEPS}/{step.name}": step.read_text(encoding="utf-8") for step in steps}
        if text:
            written[ENVIRONMENT] = text
        self.content_hash: str = content_hash(self.directory, written)
        self._folder = "/".join(part for part in (folder, self.content_hash) if part)
        self.bucket: s3.IBucket = bucket or self._new_bucket(encryption_key, name)
        upload_logs = logs.LogGroup(
            self,
            "UploadLogs",
            retention=logs.RetentionDays.ONE_MONTH,
            removal_policy=RemovalPolicy.RETAIN,
        )
        acknowledge_log_group(upload_logs, is_new=True)
        self._deployment = s3_deployment.BucketDeployment(
            self,
            "Upload",
            destination_bucket=self.bucket,
            destination_key_prefix=self._folder,
            sources=[
                s3_deployment.Source.asset(str(self.directory), exclude=[f"**/{excluded}" for excluded in EXCLUDED]),
                *(s3_deployment.Source.data(name, said) for name, said in written.items()),
            ],
            prune=False,
            retain_on_delete=True,
            memory_limit=_UPLOAD_MEMORY_MIB,
            log_group=upload_logs,
        )
        acknowledge_bucket_deployment(self._deployment, bucket=self.bucket)
        if bucket is None:
            self.bucket.add_to_resource_policy(_only_written_by(self._deployment.handler_role, self.bucket))

    @property
    def source_s3_uri(self) -> str:
        """``s3://bucket/prefix`` of the uploaded folder, for ``LifeCycleConfig.SourceS3Uri``."""
        return f"s3://{self.bucket.bucket_name}/{self._folder}"

    @property
    def deployment(self) -> IDependable:
        """The upload; resources that create nodes must depend on it."""
        return self._deployment

    def _check_entry_points(self, entry_points: Sequence[str]) -> None:
        # of the folder as it is hashed; every instance group uses them
        self._names = script_names(self.directory)
        found = (
            self.script_problem(entry_point, key=f"entry_points[{index}]")
            for index, entry_point in enumerate(entry_points)
        )
        refuse_for(problem for problem in found if problem)

    def script_problem(self, script: str, *, key: str = "on_create") -> str | None:
        """Say why ``script``, which ``key`` names, cannot run on a node from this folder, or return None."""
        if problem := hyperpod.script_problem(script, key=key):
            return f"{key} {in_python(problem)}"
        if problem := name_problem(script, self._names, where=str(self.directory)):
            return f"{key} {problem}"
        return shebang_problem(self.directory / script)

    def _new_bucket(self, encryption_key: kms.IKey | None, name: str | None) -> s3.IBucket:
        # independent of the app's feature flags: without it S3 writes its logs with an ACL, which new buckets refuse
        self.node.set_context("@aws-cdk/aws-s3:serverAccessLogsUseBucketPolicy", value=True)
        access_logs = s3.Bucket(
            self,
            "AccessLogs",
            # S3 delivers access logs only to buckets with its own keys
            encryption=s3.BucketEncryption.S3_MANAGED,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            enforce_ssl=True,
            versioned=True,
            removal_policy=RemovalPolicy.RETAIN,
        )
        ignore_in_checkov(
            cast("s3.CfnBucket", access_logs.node.default_child),
            {"CKV_AWS_18": "It receives the other bucket's access logs; its own would be a log of logging"},
        )
        return s3.Bucket(
            self,
            "Bucket",
            # of this construct's path, not of the stack, which may have a second one
            bucket_name=bucket_name(name or Names.unique_resource_name(self, max_length=_room_of_word())),
            encryption=s3.BucketEncryption.KMS if encryption_key else s3.BucketEncryption.S3_MANAGED,
            encryption_key=encryption_key,
            bucket_key_enabled=True if encryption_key else None,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            enforce_ssl=True,
            versioned=True,
            server_access_logs_bucket=access_logs,
            removal_policy=RemovalPolicy.RETAIN,
        )


def _only_written_by(role: iam.IRole, bucket: s3.IBucket) -> iam.PolicyStatement:
    """Deny every other principal, of any account, all changes of objects."""
    return iam.PolicyStatement(
        sid="OnlyTheUploadWrites",
        effect=iam.Effect.DENY,
        principals=[cast("iam.IPrincipal", iam.AnyPrincipal())],
        actions=list(_WRITES),
        resources=[bucket.arn_for_objects("*")],
        # the role of a session; a condition still applies if a role with the same name is created again
        conditions={"ArnNotEquals": {"aws:PrincipalArn": role.role_arn}},
    )


def bucket_name(label: str) -> str:
    """Return ``sagemaker-<label>-<part of the stack's id>-<account>-<region>``, the last three as tokens.

    ``label`` is lower-cased, without characters that S3 refuses, and shortened so that the name fits in every region.
    """
    word = _bucket_word(label)
    return f"{hyperpod.LIFECYCLE_BUCKET_PREFIX}{word}-{stack_part()}-{HERE.account}-{HERE.region}"


def _bucket_word(label: str) -> str:
    return slug(label, room=_room_of_word()) or "hyperpod"


def _room_of_word() -> int:
    rest = ("", "0" * STACK_PART_LENGTH, "0" * _ACCOUNT_LENGTH, max(regions.names(), key=len))
    return BUCKET_NAME_MAXIMUM - len(hyperpod.LIFECYCLE_BUCKET_PREFIX) - len("-".join(rest))


def _type_problems(
    lustre: Sequence[str],
    lustre_over_efa: Mapping[str, int],
    stated_types: Mapping[str, instance_types.InstanceType],
) -> Iterator[str]:
    for key, types in (("lustre", lustre), ("lustre_over_efa", lustre_over_efa)):
        for each in types:
            if problem := unknown_type_problem(each, key=key, stated=stated_types):
                yield f"{key}: {in_python(problem)}"
    for each, number in lustre_over_efa.items():
        if number < 0:
            yield f"lustre_over_efa[{each!r}]: must be at least 0, got {number}; set 0 for none"
        row = stated_types.get(each) or instance_types.get(each)
        if row is not None and number > row.network_cards:
            yield (
                f"lustre_over_efa[{each!r}]: must be at most {row.network_cards}, one for each network card, got"
                f" {number}; set {efa_interfaces(row)}"
            )
