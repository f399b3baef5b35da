"""The environment file as a whole."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from hyperpod_cdk.catalog import hyperpod as rules
from hyperpod_cdk.catalog import images, instance_types, regions, tags
from hyperpod_cdk.catalog.arns import ACCOUNT_ID, ACCOUNT_ID_LENGTH
from hyperpod_cdk.catalog.iam import PERMISSIONS_BOUNDARY
from hyperpod_cdk.catalog.images import ChartImage
from hyperpod_cdk.catalog.instance_types import InstanceType
from hyperpod_cdk.catalog.rules import SLUG_REGEX, Bound, Pattern
from hyperpod_cdk.catalog.s3_places import BUCKET_NAME_MAXIMUM
from hyperpod_cdk.config.eks import Eks
from hyperpod_cdk.config.encryption import Encryption
from hyperpod_cdk.config.hyperpod import HyperPod
from hyperpod_cdk.config.instance_types import StatedInstanceType
from hyperpod_cdk.config.network import Network
from hyperpod_cdk.config.notify import Notify
from hyperpod_cdk.config.operators import Operators
from hyperpod_cdk.config.restricted_group import AnyGroup
from hyperpod_cdk.config.section import Check, Section, entries, like
from hyperpod_cdk.config.source import Ambiguous
from hyperpod_cdk.config.storage import Storage
from hyperpod_cdk.config.task_governance import TaskGovernance

FOUNDATION, STORAGE, HYPERPOD, PLATFORM, OBSERVABILITY = STACKS = (
    "foundation",
    "storage",
    "hyperpod",
    "platform",
    "observability",
)
"""The stacks of an environment, in the order of their deployment."""

_STACK_ID_LENGTH = len("1a2b3c4d")
_LONGEST_REGION = max(len(region) for region in regions.HYPERPOD_REGIONS)

NAME_LENGTH = BUCKET_NAME_MAXIMUM - (
    len(rules.LIFECYCLE_BUCKET_PREFIX)
    + len("-")
    + _STACK_ID_LENGTH
    + len("-")
    + ACCOUNT_ID_LENGTH
    + len("-")
    + _LONGEST_REGION
)
"""Longest environment name: the longest that fits every physical name. The shortest limit is that of the lifecycle
bucket, 63 characters for ``sagemaker-<name>-<part of the stack's id>-<account>-<region>`` in the HyperPod region with
the longest name. A longer name would be cut there, and two environments could get the same bucket name. Role names
(64) and stack names (128) allow more."""

ENVIRONMENT_NAME = Pattern(
    regex=SLUG_REGEX,
    maximum=NAME_LENGTH,
    describes=(
        f"1 to {NAME_LENGTH} lower-case letters, digits and single hyphens, beginning with a letter, ending with a"
        " letter or digit (bucket names leave no more)"
    ),
    example="prod",
)


def stack_name(environment: str, stack: str) -> str:
    """Return the name of one of ``STACKS`` of an environment."""
    return f"{environment}-{stack}"


def _boundary_problem(text: str, key: str) -> str | None:
    if PERMISSIONS_BOUNDARY.matches(text):
        return None
    return (
        f'must be {PERMISSIONS_BOUNDARY.describes}, got "{text}"; write the name, such as {key}:'
        f" {PERMISSIONS_BOUNDARY.example}, or the ARN with :policy/ in it"
    )


TAGS = Bound(minimum=0, maximum=(rules.TAGS.maximum or 0) - len(rules.REQUIRED_TAGS), source=rules.TAGS.source)

TagKey = Annotated[
    str,
    Check(tags.key_problem, "tag_key", {"pattern": f"^(?![aA][wW][sS]:){tags.NO_OTHER_MARK}{{1,{tags.KEY_LENGTH}}}$"}),
]
TagValue = Annotated[
    str, Check(tags.value_problem, "tag_value", {"pattern": f"^{tags.NO_OTHER_MARK}{{1,{tags.VALUE_LENGTH}}}$"})
]
PermissionsBoundary = Annotated[
    str,
    Check(
        _boundary_problem,
        "pattern",
        {"pattern": f"^(?:{PERMISSIONS_BOUNDARY.regex})$", "maxLength": PERMISSIONS_BOUNDARY.maximum, "minLength": 1},
    ),
]
Region = Annotated[
    str,
    Check(
        lambda value, key: regions.region_problem(value, key=key),
        "region",
        {"anyOf": [{"enum": list(regions.HYPERPOD_REGIONS)}, {"pattern": f"^{regions.REGION_REGEX}$"}]},
    ),
]


def _unquoted_off(value: object) -> object:
    """Read an unquoted ``off``, a Boolean in YAML 1.1 and text in YAML 1.2, as text."""
    return value.text if isinstance(value, Ambiguous) and value.text == "off" else value


QuotaCheck = Annotated[Literal["enforce", "warn", "off"], BeforeValidator(_unquoted_off)]


class Environment(Section):
    """One environment: a SageMaker HyperPod cluster on EKS with network, storage and governance."""

    name: Annotated[str, like(ENVIRONMENT_NAME)] = Field(
        description=(
            "Name of the environment. Every stack name and physical name begins with it; a change replaces all of them."
        ),
        examples=["prod"],
    )
    account: Annotated[str, like(ACCOUNT_ID)] = Field(
        description="AWS account ID, in quotes; without quotes, YAML reads a number.", examples=["111122223333"]
    )
    region: Region = Field(description="AWS Region; one in which HyperPod is available.", examples=["us-east-1"])
    tags: Annotated[dict[TagKey, TagValue], entries(TAGS, "tags")] = Field(
        default_factory=dict, description="Tags for every resource.", examples=[{"cost-center": "ml-platform"}]
    )
    permissions_boundary: PermissionsBoundary | None = Field(
        default=None,
        description=(
            "IAM policy, by name or ARN, that is set as the permissions boundary of every role of the"
            " environment. Default: none."
        ),
    )
    deletion_protection: bool = Field(
        default=True,
        description=(
            "Whether the stacks and the EKS cluster have deletion protection after they were created. To"
            " delete them, set this to false and deploy first."
        ),
    )
    network: Network = Field(
        description="VPC, Availability Zones and CIDR blocks.",
        examples=[{"availability_zones": {"use1-az5": {}, "use1-az4": {}}}],
    )
    eks: Eks = Field(default_factory=Eks, description="The EKS cluster that orchestrates the nodes.")
    hyperpod: HyperPod = Field(
        description="The HyperPod cluster and its instance groups.", examples=[{"instance_groups": []}]
    )
    encryption: Encryption = Field(
        default_factory=Encryption,
        description="Customer managed KMS keys. Default: AWS's own keys, except for Kubernetes secrets.",
    )
    storage: Storage = Field(default_factory=Storage, description="File systems and buckets that pods mount.")
    operators: Operators = Field(default_factory=Operators, description="Add-ons that run workloads.")
    notify: Notify | None = Field(
        default=None,
        description=(
            "Who is notified about events of the cluster, by email, SNS, Slack or EventBridge. Default: nobody."
        ),
        examples=[{"emails": ["ml-on-call@example.com"]}],
    )
    task_governance: TaskGovernance | None = Field(
        default=None, description="Quotas and priorities of teams. Default: disabled.", examples=[{"teams": []}]
    )
    quota_check: QuotaCheck = Field(
        default="enforce",
        description=(
            "What the quota gate of the foundation stack does before the deployment creates anything that"
            " takes long or costs money. enforce: the deployment fails if the account's quotas are too low."
            " warn: it only reports them. off: there is no quota gate. The gate runs when the foundation"
            " stack is created, or created again after a failed creation, and when the instance groups"
            " change. It does not run when you deploy again because a later stack failed; use 'hyperpod-cdk"
            " preflight ENV --only quotas' then."
        ),
    )
    instance_types: dict[str, StatedInstanceType] = Field(
        default_factory=dict,
        description="Properties of instance types that this version does not know, by name.",
        examples=[{"ml.p7.48xlarge": {"vcpu": 192, "memory_gib": 4096}}],
        json_schema_extra={"propertyNames": {"pattern": f"^{instance_types.NAME.regex}$"}},
    )

    @property
    def partition(self) -> str:
        """The partition of the region: aws, aws-cn ..."""
        return regions.partition_of(self.region) or "aws"

    @property
    def hyperpod_cluster_name(self) -> str:
        """The HyperPod cluster's name, or its default."""
        return self.hyperpod.cluster_name or self.name

    @property
    def eks_cluster_name(self) -> str:
        """The name of the EKS cluster, existing or to be created."""
        return f"{self.name}-eks" if self.eks.existing is None else self.eks.existing.cluster_name

    @property
    def stated_types(self) -> dict[str, InstanceType]:
        """The instance types whose numbers the file states, in the shape of the catalog's."""
        return {name: row.as_catalog_row(name) for name, row in self.instance_types.items()}

    def instance_type(self, name: str) -> InstanceType | None:
        """Return the numbers of an instance type: those in the file, else the catalog's, else None."""
        stated = self.instance_types.get(name)
        return instance_types.get(name) if stated is None else stated.as_catalog_row(name)

    @property
    def types_of_groups(self) -> tuple[InstanceType, ...]:
        """The numbers of every instance type of the groups, by name; types whose numbers are unknown are left out."""
        names = {name for group in self.hyperpod.all_groups for name in group.all_instance_types}
        return tuple(row for name in sorted(names) if (row := self.instance_type(name)) is not None)

    @property
    def images_to_copy(self) -> tuple[ChartImage, ...]:
        """The images of the dependency chart that nodes need and ECR of the region does not have, by the catalog."""
        partitions = self.hyperpod.gpu_partitions
        return images.images_to_copy(self.types_of_groups, region=self.region, gpu_partitions=partitions)

    @property
    def copied_images(self) -> tuple[str, ...]:
        """The images of the dependency chart that nodes pull from ``eks.image_registry``; none without a registry.

        By the catalog's table. What a template of the chart names is not among them: no value changes it.
        """
        registry = self.eks.image_registry
        if registry is None:
            return ()
        return tuple(images.copied_name(each.image, registry) for each in self.images_to_copy if each.value)

    def threads_per_core(self, group: AnyGroup) -> int:
        """Return the threads per core of a group: the file's value, else 2 if all its types have SMT, else 1."""
        if group.threads_per_core is not None:
            return group.threads_per_core
        rows = [self.instance_type(name) for name in group.all_instance_types]
        return 2 if rows and all(row is not None and row.has_smt for row in rows) else 1
