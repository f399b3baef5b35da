"""Whether an EKS add-on can work: what it needs of the cluster, and what its status is for want of it."""

from __future__ import annotations

from hyperpod_cdk.catalog import addons
from hyperpod_cdk.rehearsal.embedded.context import Context
from hyperpod_cdk.rehearsal.embedded.services import kubernetes_store
from hyperpod_cdk.rehearsal.embedded.services.stores import Addon, EksCluster, hyperpod_cluster_on, running_nodes

REPLICAS = (
    "InsufficientNumberOfReplicas",
    "The add-on is unhealthy because it doesn't have the desired number of replicas.",
)
REQUIRED_TAG = ("SageMaker", "true")

FAILING_ADDONS = frozenset({addons.TASK_GOVERNANCE, addons.TRAINING_OPERATOR})
"""Add-ons that end CREATE_FAILED, for good, where others stay DEGRADED until what they miss is there."""

Issue = tuple[str, str]


def addon_status(context: Context, cluster: EksCluster, addon: Addon) -> tuple[str, Issue | None]:
    """The add-on's status now, and the health issue behind it."""
    state = addon.timeline.at(context.clock.now())
    if state != "ACTIVE":
        return state, None
    if addon.name not in FAILING_ADDONS:
        issue = _issue(context, cluster, addon)
        return ("DEGRADED", issue) if issue else ("ACTIVE", None)
    if not addon.judged:
        addon.judged = True
        addon.failure = _issue(context, cluster, addon)
    if addon.failure is None:
        return "ACTIVE", None
    return ("UPDATE_FAILED" if addon.timeline.steps[0][1] == "UPDATING" else "CREATE_FAILED"), addon.failure


def _issue(context: Context, cluster: EksCluster, addon: Addon) -> Issue | None:
    if addon.name == addons.TASK_GOVERNANCE:
        own = [
            release.name
            for release in kubernetes_store.releases(context, cluster.name)
            if release.is_of(kubernetes_store.KUEUE_CHART)
        ]
        if own:
            return "ConfigurationConflict", f"Kueue is installed already by the Helm release {own[0]}. Remove it first."
    if addon.name == addons.TRAINING_OPERATOR:
        missing = _operator_issue(context, cluster, addon)
        if missing:
            return missing
    row = addons.get(addon.name)
    if row is not None and row.needs_nodes and not running_nodes(context, cluster.arn):
        return REPLICAS
    return None


def _operator_issue(context: Context, cluster: EksCluster, addon: Addon) -> Issue | None:
    row = addons.row(addon.name)
    for required in row.requires:
        other = cluster.addons.get(required)
        status = addon_status(context, cluster, other)[0] if other else "not installed"
        if status != "ACTIVE":
            return "K8sResourceNotFound", f"The add-on {required} is required, it is {status}."
    wanted = (row.namespace, row.service_accounts[0])
    held = {(item["namespace"], item["serviceAccount"]) for item in cluster.associations.values()}
    if wanted not in held:
        return (
            "AddonPermissionFailure",
            f"The service account {row.namespace}/{row.service_accounts[0]} has no pod identity association.",
        )
    hyperpod = hyperpod_cluster_on(context, cluster.arn)
    key, value = REQUIRED_TAG
    if hyperpod is not None and hyperpod.tags.get(key) != value:
        return "AccessDenied", f"The HyperPod cluster {hyperpod.name} does not carry the tag {key}={value}."
    return None
