"""Rules about the EKS cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from ipaddress import IPv4Network

from hyperpod_cdk.catalog import addons, arns, kubernetes
from hyperpod_cdk.catalog import network as catalog
from hyperpod_cdk.catalog.rules import again_problem, repeated
from hyperpod_cdk.config.draft import known
from hyperpod_cdk.config.eks import ADDONS, OWNERS_ADDONS
from hyperpod_cdk.config.environment import Environment
from hyperpod_cdk.config.rules.book import Book, Problem, warning
from hyperpod_cdk.config.source import DataPath, render_path
from hyperpod_cdk.config.suggest import closest
from hyperpod_cdk.config.wanted_addons import EVERYWHERE, asked_for

BOOK = Book()

"""A list of blocks with at least this share of all addresses protects nothing."""


@BOOK.dated
def kubernetes_version_is_supported(environment: Environment, today: date) -> Iterator[Problem]:
    """Warn of a version whose standard support is over."""
    existing = environment.eks_cluster_name if environment.eks.is_existing else None
    doubt = kubernetes.support_warning(environment.eks.kubernetes_version, on=today, existing=existing)
    if doubt:
        yield warning(("eks", "kubernetes_version"), doubt)


@BOOK.whole
def scaling_tier_is_listed(environment: Environment) -> Iterator[Problem]:
    """Warn of a size of the control plane that the EKS API does not list."""
    doubt = kubernetes.scaling_tier_warning(environment.eks.scaling_tier)
    if doubt:
        yield warning(("eks", "scaling_tier"), doubt)


@BOOK.whole
def public_cidrs_need_a_public_endpoint(environment: Environment) -> Iterator[Problem]:
    """Refuse public blocks where the endpoint is private: they would be ignored."""
    section = environment.eks
    if problem := catalog.private_endpoint_problem(section.endpoint_access, section.public_access_cidrs):
        yield Problem(("eks", "public_access_cidrs"), problem)


@BOOK.whole
def public_endpoint_names_its_callers(environment: Environment) -> Iterator[Problem]:
    """Warn of an API server that is open to the whole internet, unless the file says that this is intended."""
    section = environment.eks
    # another rule covers closed networks
    if environment.network.egress == "closed" or section.is_existing or section.endpoint_access == "private":
        return
    if not section.public_access_cidrs:
        yield warning(
            ("eks", "public_access_cidrs"),
            "is missing, so the API server is open to the whole internet; list"
            f" {catalog.YOUR_BLOCKS}, set endpoint_access: private, or write public_access_cidrs: [0.0.0.0/0] if that"
            " is intended",
        )
    elif (
        catalog.opens_everywhere(section.public_access_cidrs) and catalog.EVERYWHERE not in section.public_access_cidrs
    ):
        share = catalog.internet_share(section.public_access_cidrs)
        yield warning(
            ("eks", "public_access_cidrs"),
            f"contains {round(share * 100)} % of the internet's addresses, so almost anyone can try to log in to"
            " the API server; list the blocks that you connect from, set endpoint_access: private, or write"
            " public_access_cidrs: [0.0.0.0/0] if that is intended",
        )


@BOOK.whole
def public_blocks_are_of_callers(environment: Environment) -> Iterator[Problem]:
    """Warn of blocks that EKS is likely to refuse: those that contain reserved addresses."""
    for index, cidr in enumerate(environment.eks.public_access_cidrs):
        at = ("eks", "public_access_cidrs", index)
        doubt = catalog.public_cidr_warning(cidr)
        if doubt:
            yield warning(at, doubt)


@BOOK.whole
def services_have_addresses_of_their_own(environment: Environment) -> Iterator[Problem]:
    """Refuse a block of Kubernetes services that overlaps one of the VPC, as EKS does."""
    services = environment.eks.service_ipv4_cidr
    if services is None:
        return
    for path, block in environment.network.blocks().items():
        if block.overlaps(IPv4Network(services)):
            whose = f"the nodes in {path[-1]}" if "availability_zones" in path else render_path(path)
            yield Problem(
                ("eks", "service_ipv4_cidr"),
                f"must not overlap a block of the VPC, got {services} and {block} of {whose}; choose another private"
                " block",
            )


@BOOK.whole
def somebody_administers_the_cluster(environment: Environment) -> Iterator[Problem]:
    """Warn of a cluster that nobody can access: EKS admits only roles with an access entry, not the creator."""
    section = environment.eks
    if not section.is_existing and not section.admin_role_arns:
        yield warning(
            ("eks", "admin_role_arns"),
            "is missing, so nobody has access to the cluster and kubectl answers Unauthorized, even for the "
            "identity that deploys it;"
            f" name your role, such as admin_role_arns: [arn:{environment.partition}:iam::{environment.account}"
            ":role/platform-admin]",
        )


@BOOK.whole
def eks_is_made_or_exists(environment: Environment) -> Iterator[Problem]:
    """Refuse settings of a new cluster together with an existing cluster: they would be ignored."""
    if not environment.eks.is_existing:
        return
    whose = {
        "endpoint_access": "endpoint",
        "public_access_cidrs": "endpoint",
        "service_ipv4_cidr": "network",
        "support_type": "control plane",
        "scaling_tier": "control plane",
        "zonal_shift": "control plane",
    }
    for key, what in whose.items():
        if key in environment.eks.model_fields_set:
            yield Problem(
                ("eks", key),
                f"cannot be set together with existing, whose {what} belongs to its owner; remove {key}, or "
                "remove existing to create a cluster",
            )
    if environment.eks.oidc_provider:
        yield Problem(
            ("eks", "oidc_provider"),
            "cannot be set together with existing, whose provider belongs to its owner; set it in"
            " eks.existing.oidc_provider_arn instead",
        )


@BOOK.whole
def existing_eks_stands_in_an_existing_network(environment: Environment) -> Iterator[Problem]:
    """Refuse an existing cluster in a VPC that does not exist yet."""
    if environment.eks.is_existing and not environment.network.is_existing:
        yield Problem(
            ("eks", "existing"),
            "needs network.existing, because an existing cluster is in an existing VPC; add network.existing with"
            " the cluster's vpc_id, or remove eks.existing",
        )


@BOOK.whole
def existing_eks_states_its_version(environment: Environment) -> Iterator[Problem]:
    """Require the version of an existing cluster: kubectl must match it."""
    if environment.eks.is_existing and "kubernetes_version" not in environment.eks.model_fields_set:
        yield Problem(
            ("eks", "kubernetes_version"),
            "is required together with existing, because kubectl must match that cluster; add kubernetes_version, such"
            " as"
            f" kubernetes_version: \"{kubernetes.DEFAULT}\", as 'aws eks describe-cluster' shows it",
        )


@BOOK.whole
def existing_eks_is_of_the_account(environment: Environment) -> Iterator[Problem]:
    """Refuse a role or an OIDC provider of another account, partition or region than the cluster's."""
    existing = environment.eks.existing
    if existing is None:
        return
    for key, what, arn in (
        ("kubectl_role_arn", "a role", existing.kubectl_role_arn),
        ("oidc_provider_arn", "an OIDC provider", existing.oidc_provider_arn),
    ):
        if arn is None:
            continue
        problem = arns.home_problem(what, arn, partition=environment.partition, account=environment.account, key=key)
        if problem is None and key == "oidc_provider_arn":
            problem = arns.issuer_problem(arn, region=environment.region, key=key)
        if problem:
            yield Problem(("eks", "existing", key), problem)


@BOOK.whole
def installed_addons_are_distinct(environment: Environment) -> Iterator[Problem]:
    """Refuse an add-on named twice."""
    existing = environment.eks.existing
    for index, first, name in repeated(() if existing is None else existing.installed_addons):
        yield Problem(
            ("eks", "existing", "installed_addons", index),
            again_problem(name, first),
        )


@BOOK.whole
def admin_roles_are_distinct_and_near(environment: Environment) -> Iterator[Problem]:
    """Refuse repeated roles and roles of another partition."""
    yield from role_problems(environment, ("eks", "admin_role_arns"), environment.eks.admin_role_arns)


@BOOK.whole
def addon_versions_are_of_known_addons(environment: Environment) -> Iterator[Problem]:
    """Refuse versions of add-ons that this library never installs, and versions too old for HyperPod."""
    for name, version in known(environment.eks.addon_versions):
        path = ("eks", "addon_versions", name)
        if name not in ADDONS:
            # a known add-on is not a misspelling, even if it is similar to another one
            near = None if addons.get(name) else closest(name, ADDONS)
            fix = f"did you mean {near}?" if near else f"remove it, or write one of {', '.join(ADDONS)}"
            yield Problem(path, f'must be an add-on that this version installs, got "{name}"; {fix}')
            continue
        problem = addons.version_problem(name, version)
        if problem:
            yield Problem(path, problem)


@BOOK.whole
def addon_versions_are_of_addons_asked_for(environment: Environment) -> Iterator[Problem]:
    """Refuse the version of an add-on that the environment does not install: it would have no effect."""
    for name, _ in known(environment.eks.addon_versions):
        if name in ADDONS and not environment.eks.installs(name):
            whose = "that of the cluster's owner" if name in OWNERS_ADDONS else "named in eks.existing.installed_addons"
            yield Problem(
                ("eks", "addon_versions", name),
                f"must be the version of an add-on that the environment installs, got {name}, which is {whose}; remove"
                " the version",
            )
            continue
        way = _missing_cause(environment, name)
        if way:
            yield Problem(
                ("eks", "addon_versions", name),
                f"must be the version of an add-on that the environment installs, got {name}; {way}, or remove the"
                " version",
            )


_OPERATOR = "set operators.{}: {{enabled: true}}"
_WAYS: Mapping[str, str] = {
    addons.TASK_GOVERNANCE: "add task_governance",
    addons.TRAINING_OPERATOR: _OPERATOR.format("training"),
    addons.CERT_MANAGER: _OPERATOR.format("training"),
    addons.INFERENCE: _OPERATOR.format("inference"),
    addons.METRICS_SERVER: _OPERATOR.format("inference"),
    addons.OBSERVABILITY: _OPERATOR.format("observability"),
    addons.SPACES: _OPERATOR.format("spaces"),
    addons.EBS_CSI_DRIVER: _OPERATOR.format("spaces"),
    addons.FSX_CSI_DRIVER: "give a file system under storage.lustre a claim",
    addons.S3_CSI_DRIVER: "add a bucket under storage.s3",
}


def _missing_cause(environment: Environment, addon: str) -> str | None:
    """Say what would install an add-on that is not installed; None for one that is."""
    if addon in EVERYWHERE or addon in asked_for(environment):
        return None
    return _WAYS.get(addon)


def role_problems(environment: Environment, path: DataPath, role_arns: Sequence[str]) -> Iterator[Problem]:
    """Find role ARNs that are repeated or belong to another partition; warn of those of another account."""
    for index, first, arn in repeated(role_arns):
        yield Problem((*path, index), again_problem(arn, first))
    for index, arn in enumerate(role_arns):
        account = arns.arn_parts(arn).account
        if account != environment.account:
            yield warning(
                (*path, index),
                f"should be a role of account {environment.account}, got one of {account} ({arn}), whose owner controls"
                " access; correct the account unless this is intended",
            )
        problem = arns.role_partition_problem(arn, partition=environment.partition, region=environment.region)
        if problem:
            yield Problem((*path, index), problem)
