"""The health of EKS add-ons: what they need from the cluster, and their status if it is missing."""

from __future__ import annotations

import json
import re

from hyperpod_cdk_rehearsal.embedded.context import Context
from hyperpod_cdk_rehearsal.embedded.published import addons
from hyperpod_cdk_rehearsal.embedded.services import kubernetes_store
from hyperpod_cdk_rehearsal.embedded.services.nodes import nodes_for_addons
from hyperpod_cdk_rehearsal.embedded.services.principals import can_be_assumed_by_web_identity
from hyperpod_cdk_rehearsal.embedded.services.stores import Addon, EksCluster, hyperpod_cluster_on

REPLICAS = (
    "InsufficientNumberOfReplicas",
    "The add-on is unhealthy because it doesn't have the desired number of replicas.",
)
REQUIRED_TAG = ("SageMaker", "true")

FAILING_ADDONS = frozenset({addons.TASK_GOVERNANCE, addons.TRAINING_OPERATOR, addons.INFERENCE, addons.SPACES})
"""Add-ons that end CREATE_FAILED, for good, where others stay DEGRADED until what they miss is there.

For want of nodes these are DEGRADED too: whether AWS's would fail for good is published nowhere.
"""

THROUGH_PODS = frozenset({addons.TRAINING_OPERATOR, addons.OBSERVABILITY, addons.SPACES, addons.EBS_CSI_DRIVER})
"""Add-ons whose pods can do nothing without a pod identity association of their service accounts."""

Issue = tuple[str, str]


def addon_status(context: Context, cluster: EksCluster, addon: Addon) -> tuple[str, Issue | None]:
    """Return the add-on's current status, and its health issue."""
    state = addon.timeline.at(context.clock.now())
    if state != "ACTIVE":
        return state, None
    if addon.refused is not None:
        return _failed(addon), ("AdmissionRequestDenied", addon.refused)
    if addon.name not in FAILING_ADDONS:
        issue = _issue(context, cluster, addon)
        return ("DEGRADED", issue) if issue else ("ACTIVE", None)
    if not addon.judged:
        addon.judged = True
        addon.failure = _lacking(context, cluster, addon)
    if addon.failure is None:
        issue = _without_nodes(context, cluster, addon)
        return ("DEGRADED", issue) if issue else ("ACTIVE", None)
    return _failed(addon), addon.failure


def _failed(addon: Addon) -> str:
    return "UPDATE_FAILED" if addon.timeline.steps[0][1] == "UPDATING" else "CREATE_FAILED"


def _issue(context: Context, cluster: EksCluster, addon: Addon) -> Issue | None:
    return _lacking(context, cluster, addon) or _without_nodes(context, cluster, addon)


def _lacking(context: Context, cluster: EksCluster, addon: Addon) -> Issue | None:
    """Return what the add-on needs from the cluster in addition to nodes and does not have, or None."""
    if addon.name == addons.TASK_GOVERNANCE:
        own = [
            release.name
            for release in kubernetes_store.releases(context, cluster.name)
            if release.is_of(kubernetes_store.KUEUE_CHART)
        ]
        if own:
            return "ConfigurationConflict", f"Kueue is installed already by the Helm release {own[0]}. Remove it first."
    row = addons.get(addon.name)
    if row is None:
        return None
    issue = _missing_addon(context, cluster, row) or _missing_rights(context, cluster, addon, row)
    if issue is None and addon.name == addons.TRAINING_OPERATOR:
        issue = _missing_tag(context, cluster)
    if issue is None and addon.name == addons.FSX_CSI_DRIVER and addons.POD_IDENTITY_AGENT not in cluster.addons:
        issue = "K8sResourceNotFound", addons.POD_IDENTITY_AGENT_IS_MISSING
    return issue


def _without_nodes(context: Context, cluster: EksCluster, addon: Addon) -> Issue | None:
    row = addons.get(addon.name)
    if row is None:
        return None
    nodes = nodes_for_addons(context, cluster.arn)
    if row.needs_nodes and not nodes:
        return REPLICAS
    least = row.minimum_node_xlarge
    if least is not None and max(_size(node.instance_type) for node in nodes) < least:
        return REPLICAS
    return None


def _missing_addon(context: Context, cluster: EksCluster, row: addons.Addon) -> Issue | None:
    for required, least in row.requires.items():
        other = cluster.addons.get(required)
        status = addon_status(context, cluster, other)[0] if other else "not installed"
        if other is None or status != "ACTIVE":
            return "K8sResourceNotFound", f"The add-on {required} is required, it is {status}."
        if least is not None and addons.is_older(other.version, least):
            return "K8sResourceNotFound", f"The add-on {required} is required in {least}, it is {other.version}."
    return None


def _missing_rights(context: Context, cluster: EksCluster, addon: Addon, row: addons.Addon) -> Issue | None:
    if row.through_web_identity:
        return _missing_role(context, cluster, addon)
    if addon.name not in THROUGH_PODS:
        return None
    held = {(item["namespace"], item["serviceAccount"]) for item in cluster.associations.values()}
    for account in row.service_accounts:
        if (row.namespace, account) not in held:
            return (
                "AddonPermissionFailure",
                f"The service account {row.namespace}/{account} has no pod identity association.",
            )
    return None


def _missing_role(context: Context, cluster: EksCluster, addon: Addon) -> Issue | None:
    """Find what the inference add-on misses in its configuration, and roles that its pods could not take."""
    values = json.loads(addon.request.get("configurationValues") or "{}")
    for key in ("executionRoleArn", "tlsCertificateS3Bucket"):
        if not values.get(key):
            return "ConfigurationConflict", f"{key} must be set."
    name = values["executionRoleArn"].rsplit("/", 1)[-1]
    if not name.startswith(addons.INFERENCE_ROLE_PREFIX):
        prefix = addons.INFERENCE_ROLE_PREFIX
        return "ConfigurationConflict", f"executionRoleArn must have a role name with prefix '{prefix}'"
    issuer = str(cluster.view["identity"]["oidc"]["issuer"]).removeprefix("https://")
    roles = {"operator": values["executionRoleArn"]}
    alb, keda = values.get("alb") or {}, values.get("keda") or {}
    if alb.get("enabled", True):
        roles["load_balancer"] = (alb.get("serviceAccount") or {}).get("roleArn") or ""
    if keda.get("enabled", True):
        roles["keda"] = ((keda.get("auth") or {}).get("aws") or {}).get("irsa", {}).get("roleArn") or ""
    for who, arn in roles.items():
        account = addons.INFERENCE_ACCOUNTS[who]
        if not can_be_assumed_by_web_identity(context, arn, issuer, f"system:serviceaccount:{account}"):
            named = arn or "that is not set"
            text = f"{account.replace(':', '/')} may not assume the role {named} with web identity of {issuer}."
            return "AddonPermissionFailure", f"The service account {text}"
    return None


def _missing_tag(context: Context, cluster: EksCluster) -> Issue | None:
    hyperpod = hyperpod_cluster_on(context, cluster.arn)
    key, value = REQUIRED_TAG
    if hyperpod is not None and hyperpod.tags.get(key) != value:
        return "AccessDenied", f"The HyperPod cluster {hyperpod.name} does not carry the tag {key}={value}."
    return None


def _size(instance_type: str) -> int:
    """Return 4 for ``ml.c5.4xlarge``; types whose name tells no multiple of ``xlarge`` count as smallest."""
    match = re.search(r"\.([0-9]*)xlarge$", instance_type)
    return int(match[1] or 1) if match else 0
