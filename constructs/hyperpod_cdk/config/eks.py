"""The eks section: a cluster to create, with its version, endpoint and administrators, or an existing one."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Strict

from hyperpod_cdk.catalog import addons, kubernetes
from hyperpod_cdk.catalog import network as network_rules
from hyperpod_cdk.catalog.arns import OIDC_PROVIDER_ARN, ROLE_ARN, role_arn_problem
from hyperpod_cdk.catalog.rules import Pattern
from hyperpod_cdk.config.network import SECURITY_GROUP_ID, SecurityGroupId
from hyperpod_cdk.config.section import Check, Section, counted, like
from hyperpod_cdk.config.suggest import closest

ADDONS = (
    addons.VPC_CNI,
    addons.KUBE_PROXY,
    addons.POD_IDENTITY_AGENT,
    addons.COREDNS,
    addons.FSX_CSI_DRIVER,
    addons.S3_CSI_DRIVER,
    addons.EBS_CSI_DRIVER,
    addons.CERT_MANAGER,
    addons.METRICS_SERVER,
    addons.TRAINING_OPERATOR,
    addons.INFERENCE,
    addons.OBSERVABILITY,
    addons.SPACES,
    addons.TASK_GOVERNANCE,
)
"""The add-ons that an environment can have; the version of any other would be accepted and ignored."""

OWNERS_ADDONS = (addons.VPC_CNI, addons.KUBE_PROXY, addons.POD_IDENTITY_AGENT, addons.COREDNS)
"""The add-ons that the owner of an existing cluster installs; the environment never installs them there."""

OWN_ADDONS = tuple(name for name in ADDONS if name not in OWNERS_ADDONS)
"""The add-ons that the environment installs on an existing cluster too, unless they are installed already."""


IMAGE_REGISTRY = Pattern(
    regex=r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*",
    maximum=256,
    describes="a registry's host in lower case, with a path if it has one, without https:// and without a tag",
    refers=True,
    example="111122223333.dkr.ecr.us-east-1.amazonaws.com/mirror",
)


def _addon_version_problem(version: str, key: str) -> str | None:
    if addons.VERSION.matches(version):
        return None
    return (
        f'must be {addons.VERSION.describes}, got "{version}"; set {key} to one that EKS lists for it,'
        f" such as {addons.VERSION.example}, or leave it out for EKS's default"
    )


def _own_addon_problem(name: str, key: str) -> str | None:  # noqa: ARG001 - the fix is to remove it, not to set the key
    if name in OWN_ADDONS:
        return None
    if name in OWNERS_ADDONS:
        return (
            f"must be an add-on of the environment, got {name}, which always belongs to the cluster's owner; remove it"
        )
    near = closest(name, OWN_ADDONS)
    fix = f"did you mean {near}?" if near else f"remove it, or write one of {', '.join(OWN_ADDONS)}"
    return f'must be an add-on that the environment would install, got "{name}"; {fix}'


AddonVersion = Annotated[
    str,
    Check(
        _addon_version_problem, "pattern", {"pattern": f"^{addons.VERSION.regex}$", "maxLength": addons.VERSION.maximum}
    ),
]
RoleArn = Annotated[
    str,
    Check(role_arn_problem, "role_arn", {"pattern": f"^{ROLE_ARN.regex}$", "maxLength": ROLE_ARN.maximum}),
]
OwnAddon = Annotated[str, Check(_own_addon_problem, "choice", {"enum": list(OWN_ADDONS)})]
PublicCidr = Annotated[
    str,
    Check(
        lambda value, key: network_rules.public_cidr_problem(value, key=key),
        "cidr_block",
        {"pattern": r"^[0-9]{1,3}(\.[0-9]{1,3}){3}/([0-9]|[12][0-9]|3[0-2])$"},
    ),
]
ServiceCidr = Annotated[
    str,
    Check(
        lambda value, key: network_rules.service_cidr_problem(value, key=key),
        "cidr_block",
        {"pattern": r"^(10|172|192)(\.[0-9]{1,3}){3}/(1[2-9]|2[0-4])$"},
    ),
]
KubernetesVersion = Annotated[
    str,
    Check(
        lambda value, key: kubernetes.version_problem(value, key=key),
        "kubernetes_version",
        {"enum": list(kubernetes.hyperpod_versions())},
    ),
]


SupportType = Literal["standard", "extended"]
"""What EKS does when standard support of the Kubernetes version ends (EKS API reference, UpgradePolicyRequest)."""

ScalingTier = Literal["standard", "tier-xl", "tier-2xl", "tier-4xl", "tier-8xl", "tier-ultra"]
"""Sizes of a control plane (CloudFormation schema AWS::EKS::Cluster, ControlPlaneScalingConfig)."""


class ExistingEks(Section):
    """An existing EKS cluster for the HyperPod cluster. It is not deleted with the environment."""

    cluster_name: Annotated[str, like(kubernetes.EKS_CLUSTER_NAME)] = Field(
        description="Name of the cluster; its authentication mode must be API or API_AND_CONFIG_MAP.",
        examples=[kubernetes.EKS_CLUSTER_NAME.example],
    )
    security_group_id: SecurityGroupId = Field(
        description=(
            "The cluster security group that EKS created, or another security group of the control plane that"
            " allows traffic between its members. The nodes use it in addition to their own security group,"
            " and the function that runs kubectl uses it."
        ),
        examples=[SECURITY_GROUP_ID],
    )
    oidc_provider_arn: Annotated[str, like(OIDC_PROVIDER_ARN)] | None = Field(
        default=None,
        description=(
            "The cluster's OIDC provider in IAM, for IAM roles for service accounts (IRSA), such as the roles"
            " of the inference operator. Other add-ons use EKS Pod Identity."
        ),
        examples=[OIDC_PROVIDER_ARN.example],
    )
    kubectl_role_arn: RoleArn | None = Field(
        default=None,
        description=(
            "Role of the function that runs kubectl and helm. The role must trust lambda.amazonaws.com, have"
            " permission to write logs and create network interfaces (AWSLambdaVPCAccessExecutionRole), and"
            " be an administrator of the cluster. The stack adds a policy to it with read access to the"
            " cluster and the chart. Default: a role is created, with an access entry."
        ),
        examples=["arn:aws:iam::111122223333:role/kubectl"],
    )
    installed_addons: Annotated[tuple[OwnAddon, ...], Strict(strict=False)] = Field(
        default=(),
        description=(
            "Add-ons of the environment that are already installed on the cluster and are used unchanged,"
            f" because EKS does not allow an add-on to be installed twice. {', '.join(OWNERS_ADDONS)} always"
            " belong to the owner of the cluster."
        ),
        examples=[[addons.CERT_MANAGER]],
    )


class Eks(Section):
    """The EKS cluster that orchestrates the nodes: one that the environment creates, or an existing one."""

    kubernetes_version: KubernetesVersion = Field(
        default=kubernetes.DEFAULT,
        description=(
            "Kubernetes minor version, in quotes; without quotes, YAML reads 1.30 as 1.3. HyperPod supports"
            " fewer versions than EKS. With existing, the field is required: set the version of the existing"
            " cluster, which kubectl must match."
        ),
        examples=[kubernetes.DEFAULT],
    )
    endpoint_access: Literal["public_and_private", "private"] = Field(
        default="public_and_private",
        description="Where the API server can be reached; with private, only inside the VPC.",
    )
    public_access_cidrs: Annotated[
        tuple[PublicCidr, ...], Strict(strict=False), counted(network_rules.PUBLIC_ACCESS_CIDRS, "blocks")
    ] = Field(
        default=(),
        description=(
            "CIDR blocks from which the public endpoint can be reached. Default: EKS's default, the whole"
            " internet, and validate warns; set [0.0.0.0/0] if that is intended."
        ),
        examples=[["0.0.0.0/0"]],
    )
    service_ipv4_cidr: ServiceCidr | None = Field(
        default=None,
        description=(
            "CIDR block for Kubernetes services. It must not overlap with the blocks of the VPC or of"
            " connected networks. It can be set only when the cluster is created; a change replaces the"
            " cluster. Default: EKS's default, 10.100.0.0/16 or 172.20.0.0/16."
        ),
        examples=["172.20.0.0/16"],
    )
    support_type: SupportType = Field(
        default="extended",
        description=(
            "What happens when the standard support of the Kubernetes version ends. standard: EKS upgrades"
            " the cluster automatically. extended: the version remains, and the cluster costs more per hour."
            " Default: EKS's default, extended."
        ),
        examples=["standard"],
    )
    scaling_tier: ScalingTier = Field(
        default="standard",
        description=(
            "Size of the control plane. standard: scales with the load. Other tiers: provisioned, for example"
            " for clusters with thousands of pods; they cost more per hour. Default: EKS's default, standard."
        ),
        examples=["tier-xl"],
    )
    zonal_shift: bool = Field(
        default=False,
        description=(
            "Whether Application Recovery Controller can shift traffic of the cluster away from an"
            " Availability Zone. Default: EKS's default, false."
        ),
        examples=[True],
    )
    admin_role_arns: Annotated[tuple[RoleArn, ...], Strict(strict=False)] = Field(
        default=(),
        description=(
            "IAM roles that administer the cluster; an access entry is created for each. No other identity"
            " has access, not even the one that deploys; without this field, validate warns. With existing:"
            " roles that do not have an access entry yet, or whose entry 'hyperpod-cdk import --takeover' imports."
        ),
        examples=[[ROLE_ARN.example]],
    )
    addon_versions: dict[str, AddonVersion] = Field(
        default_factory=dict,
        description=(
            "Map from add-on name to version, for add-ons that the environment installs. Default: for each"
            " add-on, EKS's default version for the Kubernetes version."
        ),
        examples=[{addons.VPC_CNI: addons.VERSION.example}],
        json_schema_extra={"propertyNames": {"enum": list(ADDONS)}},
    )
    oidc_provider: bool = Field(
        default=False,
        description=(
            "Whether to create an OIDC provider for the cluster in IAM, for IAM roles for service accounts"
            " (IRSA), such as the roles of the inference operator; with existing, set its oidc_provider_arn"
            " instead. You can disable it together with the operator that uses it."
        ),
    )
    image_registry: Annotated[str, like(IMAGE_REGISTRY)] | None = Field(
        default=None,
        description=(
            "Registry, with an optional path, to which you have copied the images that the HyperPod"
            " dependency chart pulls from public registries. Keep the upstream name of each image:"
            " nvcr.io/nvidia/k8s-device-plugin becomes <image_registry>/nvidia/k8s-device-plugin. Required in"
            " a closed network. Default: public registries."
        ),
        examples=[IMAGE_REGISTRY.example],
    )
    existing: ExistingEks | None = Field(
        default=None,
        description=(
            "An existing EKS cluster in the VPC of network.existing, instead of endpoint_access,"
            " public_access_cidrs and other settings that its owner decides. Default: the environment creates"
            " a cluster."
        ),
        examples=[{"cluster_name": kubernetes.EKS_CLUSTER_NAME.example, "security_group_id": SECURITY_GROUP_ID}],
    )

    @property
    def is_existing(self) -> bool:
        """Whether the environment uses an existing cluster."""
        return self.existing is not None

    def installs(self, addon: str) -> bool:
        """Return whether the environment installs this add-on if needed; False if the cluster has it already."""
        if self.existing is None:
            return True
        return addon in OWN_ADDONS and addon not in self.existing.installed_addons
