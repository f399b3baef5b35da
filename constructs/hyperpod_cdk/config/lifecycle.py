"""The lifecycle scripts of the hyperpod section: where they are stored."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hyperpod_cdk.catalog import hyperpod
from hyperpod_cdk.catalog.arns import KMS_KEY_ARN
from hyperpod_cdk.catalog.s3_places import (
    BUCKET_NAME_MAXIMUM,
    BUCKET_NAME_MINIMUM,
    BUCKET_NAME_REGEX,
    BUCKET_NAME_SOURCE,
    FOLDER,
    BucketPattern,
)
from hyperpod_cdk.config.section import Section, like

BUCKET_NAME = BucketPattern(
    # CDK refuses a name with a dot next to a hyphen, which is not valid in DNS
    regex=rf"(?={hyperpod.LIFECYCLE_BUCKET_PREFIX})(?!.*(?:\.-|-\.)){BUCKET_NAME_REGEX}",
    minimum=BUCKET_NAME_MINIMUM,
    maximum=BUCKET_NAME_MAXIMUM,
    describes=f"a bucket whose name begins with {hyperpod.LIFECYCLE_BUCKET_PREFIX}, the only ones that HyperPod reads"
    " scripts from, of at most 63 lower-case letters, digits, hyphens and dots between letters or digits",
    refers=True,
    example="sagemaker-lifecycle-scripts",
    source=f"SageMaker developer guide, AmazonSageMakerClusterInstanceRolePolicy; {BUCKET_NAME_SOURCE};"
    " aws-cdk-lib, Bucket.validateBucketName",
)


class ExistingBucket(Section):
    """An existing bucket for the lifecycle scripts. The bucket itself is not changed."""

    name: Annotated[str, like(BUCKET_NAME)] = Field(
        description="Name of the bucket, in the account and Region of the environment. It must begin with sagemaker-.",
        examples=["sagemaker-lifecycle-scripts"],
    )
    prefix: Annotated[str, like(FOLDER)] | None = Field(
        default=None,
        description=(
            "Prefix in the bucket. Each version of the scripts is stored in its own folder below it, and"
            " older versions are retained. Default: none."
        ),
        examples=["hyperpod/prod"],
    )
    kms_key_arn: Annotated[str, like(KMS_KEY_ARN)] | None = Field(
        default=None,
        description=(
            "The KMS key that encrypts the bucket. The upload function and the nodes get permission to use"
            " it. Default: S3's own key."
        ),
        examples=["arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"],
    )


class Lifecycle(Section):
    """Where the lifecycle scripts are stored."""

    existing_bucket: ExistingBucket | None = Field(
        default=None,
        description="An existing bucket. Default: a bucket is created.",
        examples=[{"name": "sagemaker-lifecycle-scripts", "prefix": "hyperpod/prod"}],
    )
