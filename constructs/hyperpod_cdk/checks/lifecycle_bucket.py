"""An existing bucket for the lifecycle scripts."""

from __future__ import annotations

from collections.abc import Iterator

from hyperpod_cdk.checks.answers import Aws, BucketSettings, NotAnswered
from hyperpod_cdk.checks.model import Case, Found, check, error, unanswered, warning
from hyperpod_cdk.config.lifecycle import ExistingBucket

AREA = "lifecycle-bucket"

_HERE = "hyperpod.lifecycle.existing_bucket"
_NAME = f"{_HERE}.name"
_KEY = f"{_HERE}.kms_key_arn"
# the alias of the key that AWS manages for S3, which needs no permissions
_MANAGED = "alias/aws/s3"


@check(
    area=AREA,
    asks=("bucket", "bucket_settings"),
    inputs="hyperpod.lifecycle.existing_bucket.",
    passes="The bucket exists in the environment's account and region, no policy makes it public, and its default key"
    " is the one that the file names. A warning if it is not versioned.",
    fails="There is no such bucket, or it is another account's or in another region, or public: its scripts run as root"
    " on every node. Or it has another KMS key than the file says, which neither uploads nor nodes could use.",
    skips="AWS does not answer about the bucket, or about one of these; the others are still compared.",
    by_hand="aws s3api head-bucket --bucket sagemaker-lifecycle-scripts",
)
def lifecycle_bucket_can_be_used(case: Case, aws: Aws) -> Iterator[Found]:
    """The bucket is not changed, so it must fit before."""
    environment, wanted = case.environment, case.environment.hyperpod.lifecycle.existing_bucket
    if wanted is None:
        return
    found = aws.bucket(wanted.name)
    if found is None:
        yield error(_NAME, f"needs a bucket that exists, got {wanted.name}; create it, or correct the name")
        return
    if found.region != environment.region:
        yield error(
            _NAME,
            f"needs a bucket in {environment.region}, got {wanted.name} in {found.region}; use one in"
            f" {environment.region}",
        )
        return
    yield from _settings(environment.account, wanted, aws.bucket_settings(wanted.name))


def _settings(account: str, wanted: ExistingBucket, found: BucketSettings) -> Iterator[Found]:
    for part, what in (
        (found.owned, "who owns it"),
        (found.public, "whether it is public"),
        (found.versioned, "whether it is versioned"),
        (found.kms_key, "which key encrypts it"),
    ):
        if isinstance(part, NotAnswered):
            yield unanswered(part, _NAME, about=what)
    if found.owned is False:
        yield error(
            _NAME,
            f"needs a bucket of account {account}, got {wanted.name}, which belongs to another account: anyone who can"
            " write to it"
            " can run programs as root on every node; use one of this account",
        )
    if found.public is True:
        yield error(
            _NAME,
            f"needs a bucket that is not public, got {wanted.name}: its scripts run as root on every node; use"
            " another, or have its owner make it private",
        )
    if found.versioned is False:
        yield warning(
            _NAME,
            f"{wanted.name} is not versioned, so a script that is overwritten or deleted is lost; run 'aws s3api"
            f" put-bucket-versioning --bucket {wanted.name} --versioning-configuration Status=Enabled'",
        )
    if isinstance(found.kms_key, NotAnswered):
        return
    stated = wanted.kms_key_arn or ""
    has = "" if found.kms_key.endswith(_MANAGED) else found.kms_key
    if not _same(has, stated):
        fix = f"set kms_key_arn: {has}" if has else "remove kms_key_arn"
        whose = has or "S3's own"
        yield error(
            _KEY if stated else _NAME,
            f"needs the key that encrypts {wanted.name}, which is {whose}, got {stated or 'none'}; {fix}",
        )


def _same(bucket_key: str, stated: str) -> bool:
    # a bucket may name its key by ID alone; an alias cannot be compared
    return bucket_key == stated or ":alias/" in bucket_key or (bool(bucket_key) and stated.endswith(f"/{bucket_key}"))
