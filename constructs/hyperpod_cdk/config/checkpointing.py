"""Managed tiered checkpointing of the hyperpod section, and who may write checkpoints."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, Strict

from hyperpod_cdk.catalog import hyperpod, kubernetes
from hyperpod_cdk.catalog.arns import KMS_KEY_ARN
from hyperpod_cdk.catalog.rules import brackets_problem
from hyperpod_cdk.catalog.s3_places import (
    BUCKET_NAME_MINIMUM,
    BUCKET_OR_PREFIX,
    refused_name_problem,
)
from hyperpod_cdk.config.section import Check, Section, filled, like, within


def _place_problem(text: str, key: str) -> str | None:
    if BUCKET_OR_PREFIX.matches(text):
        return brackets_problem(text, key=key)
    if refused := refused_name_problem(text, key=key, example=BUCKET_OR_PREFIX.example):
        return refused
    # correcting it letter by letter could name somebody else's bucket
    return f'must be {BUCKET_OR_PREFIX.describes}, got "{text}"; write {key} as {BUCKET_OR_PREFIX.example}'


Place = Annotated[
    str,
    Check(
        _place_problem,
        "pattern",
        {
            "pattern": f"^(?:{BUCKET_OR_PREFIX.regex})$",
            "minLength": BUCKET_NAME_MINIMUM,
            "maxLength": BUCKET_OR_PREFIX.maximum,
        },
    ),
]


class CheckpointAccount(Section):
    """A Kubernetes service account whose pods write checkpoints to S3 with EKS Pod Identity."""

    namespace: Annotated[str, like(kubernetes.DNS_LABEL)] = Field(
        description=(
            "Namespace of the jobs; the namespace of a team is hyperpod-ns-<team>. It does not have to exist yet."
        ),
        examples=["hyperpod-ns-research"],
    )
    name: Annotated[str, like(kubernetes.SERVICE_ACCOUNT_NAME)] = Field(
        description=(
            "Service account of the pods. The owner of the namespace creates it; the service account default"
            " always exists."
        ),
        examples=["trainer"],
    )
    buckets: Annotated[tuple[Place, ...], Strict(strict=False), filled("bucket or prefix")] = Field(
        description=(
            "Buckets, or prefixes of buckets, for checkpoints. Checkpoints are pickle files: anyone who can"
            " write to these buckets can run code in the training pods. If a bucket is in another account,"
            " its bucket policy must allow the role too."
        ),
        examples=[["s3://my-checkpoints/llama-70b"]],
    )
    kms_key_arns: Annotated[tuple[Annotated[str, like(KMS_KEY_ARN)], ...], Strict(strict=False)] = Field(
        default=(),
        description=(
            "KMS keys of the buckets. Default: none, for buckets that use S3's key or the AWS managed key of"
            " the account."
        ),
        examples=[[KMS_KEY_ARN.example]],
    )


class TieredCheckpointing(Section):
    """Managed tiered checkpointing: checkpoints are written to the memory of the nodes, and less often to S3."""

    enabled: bool = Field(
        default=True,
        description=(
            "false: disables it on a cluster that has it. Without this section, no setting is sent to AWS,"
            " which may then leave the current setting. Service accounts keep their permissions in both"
            " cases."
        ),
    )
    memory_percent: Annotated[int, within(hyperpod.TIERED_CHECKPOINTING_MEMORY_PERCENT)] = Field(
        default=hyperpod.TIERED_CHECKPOINTING_MEMORY_PERCENT.minimum or 0,
        description="Percentage of the memory of each node that is reserved for checkpoints.",
    )
    service_accounts: Annotated[tuple[CheckpointAccount, ...], Strict(strict=False)] = Field(
        default=(),
        description=(
            "Service accounts whose pods can read and write checkpoints in S3 and send logs and metrics to"
            " CloudWatch. Default: none; checkpoints then remain in memory, unless the pods get permissions"
            " in another way."
        ),
        examples=[[{"namespace": "hyperpod-ns-research", "name": "trainer", "buckets": ["my-checkpoints"]}]],
    )
