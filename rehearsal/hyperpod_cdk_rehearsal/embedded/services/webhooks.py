"""Admission webhooks of add-ons: registered with the add-on's other objects, answered once its pod is ready.

In between the API server refuses what they are called for (``failurePolicy: Fail``), in words as in
kubernetes-sigs/kueue issues 3150 and 12008. Whom they are called for is Kueue's and cert-manager's own material: Kueue
v0.19.2, ``charts/kueue/templates/webhook/manifests.yaml``, with the settings of HyperPod's add-on (SageMaker developer
guide, "Task governance setup"); cert-manager, ``deploy/charts/cert-manager/templates/webhook-validating-webhook.yaml``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hyperpod_cdk_rehearsal.embedded.account import account_of
from hyperpod_cdk_rehearsal.embedded.context import Context
from hyperpod_cdk_rehearsal.embedded.published import addons
from hyperpod_cdk_rehearsal.embedded.services.nodes import nodes_for_addons
from hyperpod_cdk_rehearsal.embedded.services.stores import Addon, EksCluster

UNSEEN_BY_KUEUE = frozenset({"kube-system", "kueue-system"})
"""``managedJobsNamespaceSelector`` of the add-on's settings: NotIn these two."""

WORKLOADS: Mapping[str, str] = {
    "Deployment": "mdeployment.kb.io /mutate-apps-v1-deployment",
    "StatefulSet": "mstatefulset.kb.io /mutate-apps-v1-statefulset",
    "Pod": "mpod.kb.io /mutate--v1-pod",
    "Job": "mjob.kb.io /mutate-batch-v1-job",
    "JobSet": "mjobset.kb.io /mutate-jobset-x-k8s-io-v1alpha2-jobset",
    "MPIJob": "mmpijob.kb.io /mutate-kubeflow-org-v2beta1-mpijob",
    "PyTorchJob": "mpytorchjob.kb.io /mutate-kubeflow-org-v1-pytorchjob",
    "RayCluster": "mraycluster.kb.io /mutate-ray-io-v1-raycluster",
    "RayJob": "mrayjob.kb.io /mutate-ray-io-v1-rayjob",
}
"""Webhooks of Kueue that are called for workloads in the namespaces that it sees."""

OWN_KINDS: Mapping[str, str] = {
    "ClusterQueue": "mclusterqueue.kb.io /mutate-kueue-x-k8s-io-v1beta2-clusterqueue",
    "ResourceFlavor": "mresourceflavor.kb.io /mutate-kueue-x-k8s-io-v1beta2-resourceflavor",
    "Workload": "mworkload.kb.io /mutate-kueue-x-k8s-io-v1beta2-workload",
    "Cohort": "vcohort.kb.io /validate-kueue-x-k8s-io-v1beta2-cohort",
}
"""Webhooks of Kueue that are called for its own kinds wherever they are."""

CERTIFICATE_GROUPS = frozenset({"cert-manager.io", "acme.cert-manager.io"})

BRING_CERTIFICATES = frozenset({addons.TRAINING_OPERATOR, addons.INFERENCE, addons.SPACES})
"""Add-ons with certificates among their objects: each names cert-manager among its prerequisites in AWS's guides."""


@dataclass(frozen=True, kw_only=True)
class Server:
    """What serves an add-on's webhooks: deployments, a service, and its address within the cluster."""

    namespace: str
    deployments: tuple[str, ...]
    service: str
    address: str
    timeout_seconds: int


SERVERS: Mapping[str, Server] = {
    addons.TASK_GOVERNANCE: Server(
        namespace="kueue-system",
        deployments=("kueue-controller-manager",),
        service="kueue-webhook-service",
        address="172.20.113.40",
        timeout_seconds=10,
    ),
    addons.CERT_MANAGER: Server(
        namespace="cert-manager",
        deployments=("cert-manager", "cert-manager-cainjector", "cert-manager-webhook"),
        service="cert-manager-webhook",
        address="172.20.41.7",
        timeout_seconds=30,
    ),
}


def refusal_of_addon(context: Context, cluster: EksCluster, name: str, namespace: str) -> str | None:
    """What the API server says as EKS applies an add-on's deployments and certificates, None where it takes them."""
    if namespace not in UNSEEN_BY_KUEUE and not _answers(context, cluster, addons.TASK_GOVERNANCE):
        return _sentence(addons.TASK_GOVERNANCE, WORKLOADS["Deployment"])
    if name in BRING_CERTIFICATES and not _answers(context, cluster, addons.CERT_MANAGER):
        return _sentence(addons.CERT_MANAGER, "webhook.cert-manager.io /validate")
    return None


def refusal_of_object(context: Context, cluster: EksCluster, item: Mapping[str, Any]) -> str | None:
    """What the API server says to an object that is applied, None where no webhook stands against it."""
    kind, group = str(item.get("kind")), str(item.get("apiVersion", "")).rpartition("/")[0]
    namespace = str((item.get("metadata") or {}).get("namespace") or "default")
    if group in CERTIFICATE_GROUPS and not _answers(context, cluster, addons.CERT_MANAGER):
        return _sentence(addons.CERT_MANAGER, "webhook.cert-manager.io /validate")
    webhook = OWN_KINDS.get(kind) if group == "kueue.x-k8s.io" else WORKLOADS.get(kind)
    if webhook is None or (group != "kueue.x-k8s.io" and namespace in UNSEEN_BY_KUEUE):
        return None
    return None if _answers(context, cluster, addons.TASK_GOVERNANCE) else _sentence(addons.TASK_GOVERNANCE, webhook)


def refusal_of_queue(context: Context, cluster: EksCluster) -> str | None:
    """What the API server says to the cluster queue of a compute quota.

    What SageMaker makes of that is published nowhere. AWS's Terraform makes quotas only once Kueue's deployment is
    available (awsome-distributed-ai, ``modules/task_governance/main.tf``), so here the quota fails.
    """
    if _answers(context, cluster, addons.TASK_GOVERNANCE):
        return None
    return _sentence(addons.TASK_GOVERNANCE, OWN_KINDS["ClusterQueue"])


def deployments(context: Context, cluster: EksCluster) -> list[dict[str, Any]]:
    """The deployments behind the webhooks, as `kubectl get` shows them: without ``availableReplicas`` while none is."""
    return [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": deployment, "namespace": server.namespace},
            "status": {"replicas": 1} | ({"availableReplicas": 1} if _answers(context, cluster, name) else {}),
        }
        for name, server in SERVERS.items()
        if name in cluster.addons
        for deployment in server.deployments
    ]


def answers_after(context: Context, name: str) -> float:
    """Seconds from ACTIVE until an add-on's webhooks answer; 0 for an add-on without."""
    return account_of(context).kubernetes.webhook_seconds if name in SERVERS else 0.0


def _answers(context: Context, cluster: EksCluster, name: str) -> bool:
    """Whether an add-on's webhooks are answered, or are not there."""
    addon = cluster.addons.get(name)
    if addon is None or addon.answers_at is None:
        # not registered, or working since before this account was looked at
        return True
    return addon.answers_at <= context.clock.now() and _runs(context, cluster, addon)


def _runs(context: Context, cluster: EksCluster, addon: Addon) -> bool:
    return addon.refused is None and bool(nodes_for_addons(context, cluster.arn))


def _sentence(name: str, webhook: str) -> str:
    server = SERVERS[name]
    called, path = webhook.split(" ")
    url = f"https://{server.service}.{server.namespace}.svc:443{path}?timeout={server.timeout_seconds}s"
    return (
        f'Internal error occurred: failed calling webhook "{called}": failed to call webhook: Post "{url}": '
        f"dial tcp {server.address}:443: connect: connection refused"
    )
