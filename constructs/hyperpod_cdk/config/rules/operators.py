"""Rules about the add-ons for workloads: what they need of the cluster, of each other and of the region."""

from __future__ import annotations

from collections.abc import Iterator

from hyperpod_cdk.catalog import addons, arns, instance_types
from hyperpod_cdk.catalog import operators as catalog
from hyperpod_cdk.catalog.rules import listing, repeated
from hyperpod_cdk.config.awaited_nodes import addon_groups
from hyperpod_cdk.config.draft import known
from hyperpod_cdk.config.environment import Environment
from hyperpod_cdk.config.operators import CREATE
from hyperpod_cdk.config.rules.book import Book, Problem, warning

BOOK = Book()

_SECTIONS = {
    addons.TRAINING_OPERATOR: "training",
    addons.INFERENCE: "inference",
    addons.OBSERVABILITY: "observability",
    addons.SPACES: "spaces",
}
"""The add-on of each operator, and its section."""


@BOOK.whole
def unused_operator_settings(environment: Environment) -> Iterator[Problem]:
    """Refuse settings of a disabled operator: they would be ignored."""
    for name in _SECTIONS.values():
        section = getattr(environment.operators, name)
        if section.enabled:
            continue
        for key in sorted(section.model_fields_set - {"enabled"}):
            yield Problem(
                ("operators", name, key),
                f"must be left out while operators.{name} is disabled, because it has no effect; remove {key}, or set"
                f" operators.{name}.enabled: true",
            )


@BOOK.whole
def elastic_training_has_a_new_operator(environment: Environment) -> Iterator[Problem]:
    """Refuse a training operator that is too old for elastic jobs."""
    name = addons.TRAINING_OPERATOR
    training, least = environment.operators.training, addons.row(name).elastic_minimum_version
    for addon, version in known(environment.eks.addon_versions):
        if addon == name and training.enabled and training.elastic and _is_older(version, least):
            yield Problem(
                ("eks", "addon_versions", name),
                f"must be {least} or newer for elastic training, got {version}; set {name}: v{least}-eksbuild.1 or"
                " newer, or set operators.training.elastic: false",
            )


@BOOK.whole
def pinned_addons_suit_the_operators(environment: Environment) -> Iterator[Problem]:
    """Refuse versions of add-ons that are too old for an operator that needs them."""
    for addon, version in known(environment.eks.addon_versions):
        for operator, name in _SECTIONS.items():
            least = addons.row(operator).requires.get(addon)
            if least and getattr(environment.operators, name).enabled and _is_older(version, least):
                suffix = "" if "-eksbuild" in least else "-eksbuild.1"
                yield Problem(
                    ("eks", "addon_versions", addon),
                    f"must be {least} or newer for operators.{name}, got {version}; set {addon}:"
                    f" v{least}{suffix} or newer, or leave it out for EKS's default",
                )


@BOOK.whole
def inference_has_an_oidc_provider(environment: Environment) -> Iterator[Problem]:
    """Refuse roles by web identity on a cluster without an OIDC provider."""
    existing = environment.eks.existing
    if not environment.operators.inference.enabled or not environment.eks.installs(addons.INFERENCE):
        return
    if existing is None and not environment.eks.oidc_provider:
        yield Problem(
            ("eks", "oidc_provider"),
            "must be true for operators.inference, whose pods get their roles through it; set oidc_provider: true",
        )
    elif existing is not None and existing.oidc_provider_arn is None:
        yield Problem(
            ("eks", "existing", "oidc_provider_arn"),
            "is missing, and operators.inference gets its roles through it; add the provider that 'aws iam"
            " list-open-id-connect-providers' shows for the cluster's issuer, or create one with 'eksctl utils"
            f" associate-iam-oidc-provider --cluster {existing.cluster_name}'",
        )


@BOOK.whole
def operators_that_stand_already_are_not_configured(environment: Environment) -> Iterator[Problem]:
    """Refuse settings of an operator that is already on the cluster: they would have no effect."""
    for addon, name in _SECTIONS.items():
        section = getattr(environment.operators, name)
        if not section.enabled or environment.eks.installs(addon):
            continue
        # only these rules use whether jobs are elastic
        for key in sorted(section.model_fields_set - {"enabled", "elastic"}):
            yield Problem(
                ("operators", name, key),
                f"must be left out while {addon} is named in eks.existing.installed_addons and used as it is; remove"
                f" {key}, or remove the add-on from that list",
            )


@BOOK.whole
def model_buckets_are_distinct(environment: Environment) -> Iterator[Problem]:
    """Refuse a bucket named twice."""
    for index, first, name in repeated(environment.operators.inference.model_buckets):
        yield Problem(
            ("operators", "inference", "model_buckets", index),
            f"must be named once, got {name} again after [{first}]; remove one of the two",
        )


@BOOK.whole
def workspaces_are_of_the_account(environment: Environment) -> Iterator[Problem]:
    """Refuse workspaces of another account or partition, and a metrics workspace in another region."""
    section = environment.operators.observability
    if not section.enabled:
        return
    for key, arn in (
        ("prometheus_workspace", section.prometheus_workspace),
        ("grafana_workspace", section.grafana_workspace),
    ):
        if arn is None or arn == CREATE:
            continue
        otherwise = f"set {key}: {CREATE}"
        problem = arns.workspace_home_problem(
            arn, partition=environment.partition, account=environment.account, otherwise=otherwise
        )
        if problem is None and key == "prometheus_workspace":
            problem = arns.workspace_region_problem(arn, region=environment.region, otherwise=otherwise)
        if problem:
            yield Problem(("operators", "observability", key), problem)


@BOOK.whole
def services_are_in_the_region(environment: Environment) -> Iterator[Problem]:
    """Warn of services that the catalog does not list for the region."""
    operators, installs = environment.operators, environment.eks.installs
    inference = operators.inference.enabled and installs(addons.INFERENCE)
    doubt = catalog.region_warning("inference", environment.region)
    if inference and doubt:
        yield warning(("operators", "inference"), f"{doubt}; set enabled: false if the add-on is refused")
    if not operators.observability.enabled or not installs(addons.OBSERVABILITY):
        return
    doubt = catalog.region_warning("prometheus", environment.region)
    if operators.observability.prometheus_workspace == CREATE and doubt:
        yield warning(("operators", "observability"), f"{doubt}; set enabled: false if the workspace is refused")
    doubt = catalog.region_warning("grafana", environment.region)
    if operators.observability.grafana_workspace == CREATE and doubt:
        yield warning(
            ("operators", "observability", "grafana_workspace"),
            f"{doubt}; use a workspace in one of these, which can read metrics of other regions too",
        )


@BOOK.whole
def operators_have_a_node_large_enough(environment: Environment) -> Iterator[Problem]:
    """Warn if no node is large enough for all pods of an operator."""
    # Karpenter adds nodes to groups without any
    scales = environment.hyperpod.autoscaling == "karpenter"
    groups = [group for group in environment.hyperpod.instance_groups if group.count or scales]
    sizes = [instance_types.xlarge(name) for group in groups for name in group.all_instance_types]
    if not sizes or None in sizes:
        return
    for addon, name in ((addons.INFERENCE, "inference"), (addons.OBSERVABILITY, "observability")):
        least = addons.row(addon).minimum_node_xlarge
        if least is None or not getattr(environment.operators, name).enabled:
            continue
        if max(size for size in sizes if size is not None) < least:
            types = listing(sorted({name for group in groups for name in group.all_instance_types}), last="and")
            yield warning(
                ("operators", name),
                f"needs a node of the size {least}xlarge or larger (as of {addons.AS_OF}), got {types}; use a larger"
                " instance_type for one group",
            )


@BOOK.whole
def operators_have_a_node_of_their_architecture(environment: Environment) -> Iterator[Problem]:
    """Warn if no node that can run its pods has the architecture of an operator's images."""
    groups = [*addon_groups(environment)]
    if environment.hyperpod.autoscaling == "karpenter":
        groups += [group for group in environment.hyperpod.instance_groups if not group.count]
    rows = [environment.instance_type(name) for group in groups for name in group.all_instance_types]
    found = {row.architecture for row in rows if row is not None}
    if not rows or None in rows:
        return
    for addon, name in _SECTIONS.items():
        wanted = addons.row(addon).architecture
        is_on = getattr(environment.operators, name).enabled and environment.eks.installs(addon)
        if is_on and wanted is not None and wanted not in found:
            yield warning(
                ("operators", name),
                f"needs a node of {wanted}, the only architecture of its images (as of {addons.AS_OF}), got"
                f" {listing(sorted(found), last='and')}; use an instance_type of {wanted} for one group",
            )


@BOOK.whole
def governance_metrics_have_governance(environment: Environment) -> Iterator[Problem]:
    """Warn of metric categories without a source on the cluster."""
    section, operators = environment.operators.observability, environment.operators
    if not section.enabled:
        return
    if section.metrics.task_governance == "advanced" and environment.task_governance is None:
        yield warning(
            ("operators", "observability", "metrics", "task_governance"),
            "task governance is disabled, so there are no such metrics; add task_governance, or remove it",
        )
    if section.metrics.scaling == "advanced" and not operators.inference.enabled:
        yield warning(
            ("operators", "observability", "metrics", "scaling"),
            "KEDA comes with operators.inference, which is disabled; remove it unless the cluster has its own KEDA",
        )


def _is_older(version: str, least: str | None) -> bool:
    got, wanted = addons.release(version), addons.release(least) if least else None
    return got is not None and wanted is not None and got < wanted
