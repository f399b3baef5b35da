"""The eks section: Kubernetes version, who reaches the API server and who administers the cluster."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import Annotated, Literal

from pydantic import Field, Strict

from hyperpod_cdk.catalog import addons, kubernetes
from hyperpod_cdk.catalog.rules import Pattern
from hyperpod_cdk.config.section import Check, Section

ROLE_ARN = Pattern(
    regex=r"arn:aws[a-z-]*:iam::[0-9]{12}:role/(?:[\x21-\x7e]{1,511}/)?[A-Za-z0-9_+=,.@-]{1,64}",
    minimum=20,
    maximum=2048,
    describes="the ARN of an IAM role",
    example="arn:aws:iam::111122223333:role/platform-admin",
)
ADDON_VERSION = Pattern(
    regex=r"v[0-9]+\.[0-9]+\.[0-9]+(?:-[0-9A-Za-z.-]+)?",
    minimum=6,
    maximum=64,
    describes="an add-on version as EKS writes it",
    example="v1.20.4-eksbuild.1",
)

ADDONS = (
    addons.VPC_CNI,
    addons.KUBE_PROXY,
    addons.POD_IDENTITY_AGENT,
    addons.COREDNS,
    addons.FSX_CSI_DRIVER,
    addons.CERT_MANAGER,
    addons.TRAINING_OPERATOR,
    addons.TASK_GOVERNANCE,
)
"""The add-ons that an environment can have; the version of any other would be accepted and ignored."""


def _addon_version_problem(version: str, key: str) -> str | None:
    if ADDON_VERSION.matches(version):
        return None
    return (
        f'must be {ADDON_VERSION.describes}, got "{version}"; set {key} to one that EKS lists for it,'
        f" such as {ADDON_VERSION.example}, or leave it out for EKS's default"
    )


def role_arn_problem(arn: str, key: str) -> str | None:
    """Say why ``arn`` names no IAM role, or give None; a session's ARN is answered with its role's."""
    if ROLE_ARN.matches(arn):
        return None
    parts = arn.split(":", 5)
    session = parts[5].split("/") if len(parts) == 6 and parts[2] == "sts" else []
    if len(session) >= 2 and session[0] == "assumed-role":
        role = f"arn:{parts[1]}:iam::{parts[4]}:role/{session[1]}"
        return (
            f"must be the ARN of an IAM role, got the session {arn}, which ends with its login; set {key}: {role}"
            " (with the role's path, if it has one)"
        )
    return f'must be the ARN of an IAM role, got "{arn}"; set {key}: {ROLE_ARN.example}'


def _public_cidr_problem(block: str, key: str) -> str | None:
    try:
        network = IPv4Network(block, strict=False)
    except ValueError:
        return f'must be an IPv4 CIDR block such as 203.0.113.0/24, got "{block}"; set {key}: 203.0.113.0/24'
    if str(network) != block:
        return f'must be a CIDR block in its canonical form, got "{block}"; set {key}: {network}'
    return None


AddonVersion = Annotated[
    str,
    Check(
        _addon_version_problem, "pattern", {"pattern": f"^{ADDON_VERSION.regex}$", "maxLength": ADDON_VERSION.maximum}
    ),
]
RoleArn = Annotated[
    str,
    Check(role_arn_problem, "role_arn", {"pattern": f"^{ROLE_ARN.regex}$", "maxLength": ROLE_ARN.maximum}),
]
PublicCidr = Annotated[
    str,
    Check(
        _public_cidr_problem,
        "cidr_block",
        {"pattern": r"^[0-9]{1,3}(\.[0-9]{1,3}){3}/([0-9]|[12][0-9]|3[0-2])$"},
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


class Eks(Section):
    """The EKS cluster that orchestrates the nodes."""

    kubernetes_version: KubernetesVersion = Field(
        default=kubernetes.DEFAULT,
        description=(
            "Kubernetes minor version, in quotes: without them YAML reads 1.30 as 1.3. HyperPod accepts fewer"
            " versions than EKS does."
        ),
        examples=[kubernetes.DEFAULT],
    )
    endpoint_access: Literal["public_and_private", "private"] = Field(
        default="public_and_private",
        description="Where the API server answers; with private it answers inside the VPC only.",
    )
    public_access_cidrs: Annotated[tuple[PublicCidr, ...], Strict(strict=False)] = Field(
        default=(),
        description="CIDR blocks from which the public endpoint answers. Default: EKS's own, which is everywhere.",
        examples=[["203.0.113.0/24"]],
    )
    admin_role_arns: Annotated[tuple[RoleArn, ...], Strict(strict=False)] = Field(
        default=(),
        description="IAM roles that administer the cluster, each with an access entry of its own.",
        examples=[[ROLE_ARN.example]],
    )
    addon_versions: dict[str, AddonVersion] = Field(
        default_factory=dict,
        description=(
            "Add-on name -> version, for add-ons that the file asks for. Default: for each add-on EKS's default for the"
            " Kubernetes version."
        ),
        examples=[{addons.VPC_CNI: ADDON_VERSION.example}],
        json_schema_extra={"propertyNames": {"enum": list(ADDONS)}},
    )
