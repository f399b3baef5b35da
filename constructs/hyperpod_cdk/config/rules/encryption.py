"""Rules about KMS keys and about an existing bucket that they encrypt."""

from __future__ import annotations

from collections.abc import Iterator

from hyperpod_cdk.catalog import arns, instance_groups, lustre
from hyperpod_cdk.catalog.rules import listing
from hyperpod_cdk.catalog.sentences import Sentence, Setting
from hyperpod_cdk.config.encryption import CREATE, Encryption, key_arn
from hyperpod_cdk.config.environment import Environment
from hyperpod_cdk.config.rules.book import Book, Problem, warning
from hyperpod_cdk.config.source import DataPath

BOOK = Book()


def named_keys(environment: Environment) -> Iterator[tuple[DataPath, str]]:
    """Go through the keys that are named by ARN, with their paths."""
    for field in Encryption.model_fields:
        arn = key_arn(getattr(environment.encryption, field))
        if arn is not None:
            yield ("encryption", field), arn
    bucket = environment.hyperpod.lifecycle.existing_bucket
    if bucket is not None and bucket.kms_key_arn is not None:
        yield ("hyperpod", "lifecycle", "existing_bucket", "kms_key_arn"), bucket.kms_key_arn


def keys_of_buckets(environment: Environment) -> Iterator[tuple[DataPath, str]]:
    """Go through the keys of buckets that jobs and pods use; such a bucket may be in another region."""
    checkpointing = environment.hyperpod.tiered_checkpointing
    for index, account in enumerate(checkpointing.service_accounts if checkpointing else ()):
        for place, arn in enumerate(account.kms_key_arns):
            yield ("hyperpod", "tiered_checkpointing", "service_accounts", index, "kms_key_arns", place), arn
    for index, group in enumerate(environment.hyperpod.restricted_instance_groups):
        for place, arn in enumerate(group.kms_key_arns):
            yield ("hyperpod", "restricted_instance_groups", index, "kms_key_arns", place), arn
    for index, volume in enumerate(environment.storage.s3):
        if volume.kms_key_arn is not None:
            yield ("storage", "s3", index, "kms_key_arn"), volume.kms_key_arn


@BOOK.each(named_keys)
def keys_are_in_reach(environment: Environment, path: DataPath, arn: str) -> Iterator[Problem]:
    """Refuse keys of another region, which cannot be used; warn of keys of another account, whose owner must agree."""
    account = arns.arn_parts(arn).account
    problem = arns.key_reach_problem(arn, partition=environment.partition, region=environment.region)
    if problem:
        yield Problem(path, problem)
    elif account != environment.account:
        yield warning(
            path,
            f"belongs to account {account}; its key policy must allow account {environment.account} to use it, and"
            " preflight cannot read that policy; use a key of your own if you can",
        )


@BOOK.whole
def node_volumes_are_encrypted_with_continuous_provisioning(environment: Environment) -> Iterator[Problem]:
    """Refuse a key for the nodes if HyperPod accepts none (developer guide, "Customer managed AWS KMS key")."""
    if environment.encryption.node_volumes is not None and environment.hyperpod.provisioning != "continuous":
        yield Problem(
            ("encryption", "node_volumes"),
            Sentence(
                instance_groups.volume_key_problem(environment.hyperpod.provisioning),
                "; ",
                Setting("hyperpod.provisioning", "continuous"),
                ", or remove node_volumes",
            ),
        )


@BOOK.whole
def node_volumes_of_restricted_groups_keep_the_key_of_aws(environment: Environment) -> Iterator[Problem]:
    """Say which nodes do not use the key (developer guide, "Customer managed AWS KMS key"); refuse it if none does."""
    hyperpod = environment.hyperpod
    if environment.encryption.node_volumes is None or not hyperpod.restricted_instance_groups:
        return
    why = "HyperPod accepts no customer managed key for the volumes of restricted instance groups"
    if hyperpod.instance_groups:
        yield warning(
            ("encryption", "node_volumes"),
            f"does not apply to {listing([group.name for group in hyperpod.restricted_instance_groups], last='and')}:"
            f" {why}; these use a key that AWS owns",
        )
    else:
        yield Problem(
            ("encryption", "node_volumes"), f"cannot be set without instance_groups: {why}; remove node_volumes"
        )


@BOOK.whole
def encrypted_images_need_the_key_of_the_root_volume(environment: Environment) -> Iterator[Problem]:
    """Warn of a custom AMI together with a new key: an AMI encrypted with another key would not boot."""
    if environment.encryption.node_volumes != CREATE:
        return
    for index, group in enumerate(environment.hyperpod.instance_groups):
        ami_id = group.image.ami_id
        if ami_id is not None and ami_id != "default":
            yield warning(
                ("hyperpod", "instance_groups", index, "image", "ami_id"),
                f"if {ami_id} is encrypted, the root volume must have the same key, and encryption.node_volumes creates"
                " another; write the AMI's key there instead of create",
            )


@BOOK.whole
def secrets_key_is_of_a_cluster_to_make(environment: Environment) -> Iterator[Problem]:
    """Refuse a key for an existing cluster: it would be ignored."""
    if environment.encryption.eks_secrets is not None and environment.eks.is_existing:
        yield Problem(
            ("encryption", "eks_secrets"),
            "cannot be set together with eks.existing, whose secrets have their owner's key; remove eks_secrets",
        )


@BOOK.whole
def notifications_key_has_a_topic(environment: Environment) -> Iterator[Problem]:
    """Refuse a key for a topic that is not created: it would be ignored."""
    if environment.encryption.notifications is None:
        return
    if environment.notify is None:
        yield Problem(
            ("encryption", "notifications"),
            "needs the topic that notify creates, got no notify; add notify, or remove notifications",
        )
    elif environment.notify.sns_topic_arn is not None:
        yield Problem(
            ("encryption", "notifications"),
            "cannot be set together with notify.sns_topic_arn, a topic that is not changed; remove "
            "notifications,"
            " and set the key on that topic itself",
        )


@BOOK.whole
def file_systems_key_has_file_systems(environment: Environment) -> Iterator[Problem]:
    """Refuse a key for file systems if no file system would use it."""
    if environment.encryption.file_systems is None:
        return
    takes_key = [system for system in environment.storage.made_lustre if system.deployment_type != lustre.SCRATCH]
    if not takes_key:
        yield Problem(
            ("encryption", "file_systems"),
            "needs a new file system that is not scratch_2, which FSx encrypts with its own key, got none;"
            " add one under storage.lustre, or remove file_systems",
        )


@BOOK.whole
def bucket_key_is_of_a_bucket_to_make(environment: Environment) -> Iterator[Problem]:
    """Refuse a key for an existing bucket: that bucket is not changed."""
    if environment.encryption.lifecycle_bucket is not None and environment.hyperpod.lifecycle.existing_bucket:
        yield Problem(
            ("encryption", "lifecycle_bucket"),
            "cannot be set together with hyperpod.lifecycle.existing_bucket, which is not changed; "
            "set its key in"
            " hyperpod.lifecycle.existing_bucket.kms_key_arn, and remove lifecycle_bucket",
        )
