"""Between an add-on and the first answer of its webhooks the API server refuses what they are called for."""

from __future__ import annotations

from typing import Any

import pytest

from hyperpod_cdk_rehearsal.embedded.services import webhooks
from hyperpod_cdk_rehearsal.embedded.services.stores import eks_clusters

CLUSTER = "prod-eks"
GOVERNANCE = "amazon-sagemaker-hyperpod-taskgovernance"
TRAINING = "amazon-sagemaker-hyperpod-training-operator"
BY_KUEUE = (
    'Internal error occurred: failed calling webhook "mdeployment.kb.io": failed to call webhook: Post '
    '"https://kueue-webhook-service.kueue-system.svc:443/mutate-apps-v1-deployment?timeout=10s": dial tcp '
    "172.20.113.40:443: connect: connection refused"
)
BY_CERT_MANAGER = (
    'Internal error occurred: failed calling webhook "webhook.cert-manager.io": failed to call webhook: Post '
    '"https://cert-manager-webhook.cert-manager.svc:443/validate?timeout=30s": dial tcp 172.20.41.7:443: connect: '
    "connection refused"
)


@pytest.fixture
def cluster(world: Any) -> Any:
    """An EKS cluster with a node that runs; its webhooks answer ten seconds after ACTIVE."""
    world.account_file(kubernetes={"webhook_seconds": 10})
    world.make_hyperpod(world.group(count=2))
    world.settle()
    return world


def install(world: Any, name: str) -> dict[str, Any]:
    """Create an add-on and give it as it is once it has settled, with webhooks that do not answer yet."""
    world.client("eks").create_addon(clusterName=CLUSTER, addonName=name)
    world.clock.sleep(1)
    addon: dict[str, Any] = world.client("eks").describe_addon(clusterName=CLUSTER, addonName=name)["addon"]
    return addon


def said(world: Any, kind: str, api: str = "apps/v1", namespace: str | None = "team") -> str | None:
    item = {"apiVersion": api, "kind": kind, "metadata": {"name": "x", "namespace": namespace}}
    return webhooks.refusal_of_object(world.context, eks_clusters(world.context)[CLUSTER], item)


@pytest.mark.parametrize(("first", "second"), [(GOVERNANCE, "cert-manager"), ("cert-manager", GOVERNANCE)])
def test_kueue_stands_against_deployments_outside_kube_system(cluster: Any, first: str, second: str) -> None:
    assert install(cluster, first)["status"] == "ACTIVE"
    addon = install(cluster, second)
    if first == GOVERNANCE:
        # botocore, AddonIssueCode
        assert (addon["status"], addon["health"]["issues"]) == (
            "CREATE_FAILED",
            [{"code": "AdmissionRequestDenied", "message": BY_KUEUE}],
        )
    else:
        assert addon["status"] == "ACTIVE"


def test_kube_system_is_out_of_kueues_sight(cluster: Any) -> None:
    install(cluster, GOVERNANCE)
    assert install(cluster, "metrics-server")["status"] == "ACTIVE"
    assert install(cluster, "coredns")["status"] == "ACTIVE"


def test_a_webhook_that_responds_refuses_nothing(cluster: Any) -> None:
    install(cluster, GOVERNANCE)
    cluster.clock.sleep(10)
    assert install(cluster, "cert-manager")["status"] == "ACTIVE"


def test_a_failed_addon_comes_back_once_it_is_made_again(cluster: Any) -> None:
    install(cluster, GOVERNANCE)
    assert install(cluster, "cert-manager")["status"] == "CREATE_FAILED"
    cluster.client("eks").delete_addon(clusterName=CLUSTER, addonName="cert-manager")
    cluster.clock.sleep(10)
    assert install(cluster, "cert-manager")["status"] == "ACTIVE"


def test_certificates_wait_for_cert_manager(cluster: Any) -> None:
    install(cluster, "cert-manager")
    assert said(cluster, "Certificate", "cert-manager.io/v1") == BY_CERT_MANAGER
    assert install(cluster, TRAINING)["health"]["issues"] == [
        {"code": "AdmissionRequestDenied", "message": BY_CERT_MANAGER}
    ]
    cluster.clock.sleep(10)
    assert said(cluster, "Certificate", "cert-manager.io/v1") is None


def test_an_update_meets_a_webhook_that_does_not_answer(cluster: Any) -> None:
    install(cluster, "cert-manager")
    install(cluster, GOVERNANCE)
    cluster.client("eks").update_addon(clusterName=CLUSTER, addonName="cert-manager")
    cluster.clock.sleep(1)
    addon = cluster.client("eks").describe_addon(clusterName=CLUSTER, addonName="cert-manager")["addon"]
    assert addon["status"] == "UPDATE_FAILED"


@pytest.mark.parametrize(
    ("kind", "api", "namespace", "webhook"),
    [
        ("Deployment", "apps/v1", "team", "mdeployment.kb.io"),
        ("StatefulSet", "apps/v1", "aws-hyperpod", "mstatefulset.kb.io"),
        ("Pod", "v1", None, "mpod.kb.io"),
        ("Job", "batch/v1", "default", "mjob.kb.io"),
        ("PyTorchJob", "kubeflow.org/v1", "team", "mpytorchjob.kb.io"),
        ("ClusterQueue", "kueue.x-k8s.io/v1beta2", None, "mclusterqueue.kb.io"),
        ("ResourceFlavor", "kueue.x-k8s.io/v1beta1", None, "mresourceflavor.kb.io"),
        ("Deployment", "apps/v1", "kube-system", None),
        ("Job", "batch/v1", "kueue-system", None),
        # no webhook of Kueue's manifests is called for these
        ("DaemonSet", "apps/v1", "team", None),
        ("Namespace", "v1", None, None),
        ("PersistentVolumeClaim", "v1", "team", None),
        ("ResourceQuota", "v1", "team", None),
        ("LocalQueue", "kueue.x-k8s.io/v1beta2", "team", None),
        ("Role", "rbac.authorization.k8s.io/v1", "team", None),
    ],
)
def test_whom_kueues_webhooks_are_called_for(
    cluster: Any, kind: str, api: str, namespace: str | None, webhook: str | None
) -> None:
    assert said(cluster, kind, api, namespace) is None
    install(cluster, GOVERNANCE)
    refusal = said(cluster, kind, api, namespace)
    assert (refusal is None) if webhook is None else (f'failed calling webhook "{webhook}"' in str(refusal))


def test_without_a_node_no_webhook_ever_answers(world: Any) -> None:
    world.account_file(nodes={"system": {"never": "all"}})
    world.make_hyperpod(world.group(count=2), continuous=True)
    world.settle()
    install(world, GOVERNANCE)
    world.settle()
    assert said(world, "Deployment") == BY_KUEUE


@pytest.mark.parametrize(("effect", "answers"), [("NoSchedule", 0), ("NoExecute", 0), ("PreferNoSchedule", 4)])
def test_pods_without_tolerations_stay_off_tainted_nodes(world: Any, effect: str, answers: int) -> None:
    # Kubernetes, "Taints and Tolerations"
    taints = {"Taints": [{"Key": "dedicated", "Value": "jobs", "Effect": effect}]}
    world.make_hyperpod(world.group(KubernetesConfig=taints))
    world.settle()
    install(world, "cert-manager")
    install(world, GOVERNANCE)
    world.settle()
    shown = webhooks.deployments(world.context, eks_clusters(world.context)[CLUSTER])
    assert len([each for each in shown if "availableReplicas" in each["status"]]) == answers
    status = world.client("eks").describe_addon(clusterName=CLUSTER, addonName="cert-manager")["addon"]["status"]
    assert status == ("ACTIVE" if answers else "DEGRADED")


def test_a_quota_fails_where_its_cluster_queue_is_refused(cluster: Any) -> None:
    install(cluster, GOVERNANCE)
    arn = cluster.client("sagemaker").describe_cluster(ClusterName="prod")["ClusterArn"]
    made = cluster.client("sagemaker").create_compute_quota(
        Name="research",
        ClusterArn=arn,
        ComputeQuotaConfig={"ComputeQuotaResources": [{"InstanceType": "ml.m5.2xlarge", "Count": 1}]},
        ComputeQuotaTarget={"TeamName": "research", "FairShareWeight": 10},
    )
    cluster.clock.sleep(1)
    found = cluster.client("sagemaker").describe_compute_quota(ComputeQuotaId=made["ComputeQuotaId"])
    assert found["Status"] == "CreateFailed"
    assert 'failed calling webhook "mclusterqueue.kb.io"' in found["FailureReason"]


def test_the_deployments_show_when_they_answer(cluster: Any) -> None:
    install(cluster, GOVERNANCE)
    standing = eks_clusters(cluster.context)[CLUSTER]
    (before,) = webhooks.deployments(cluster.context, standing)
    cluster.clock.sleep(10)
    (after,) = webhooks.deployments(cluster.context, standing)
    # Kubernetes API, DeploymentStatus: a number that is 0 is left out
    assert (before["status"], after["status"]) == ({"replicas": 1}, {"replicas": 1, "availableReplicas": 1})
