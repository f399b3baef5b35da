"""Workloads are read from manifests as Kueue reads them."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import pytest

from hyperpod_cdk.workloads.admission.requests import PodSet, requests, workloads
from tests.support.tables import row_by_row

Manifest = dict[str, Any]
TYPE = "node.kubernetes.io/instance-type"


def _container(**resources: Manifest) -> Manifest:
    return {"name": "a", "image": "b:1", "resources": resources}


def _job(kind: str, spec: Manifest, **metadata: Any) -> Manifest:
    return {"kind": kind, "apiVersion": "v1", "metadata": {"name": "a", "namespace": "b", **metadata}, "spec": spec}


TEMPLATE = {"spec": {"containers": [_container(requests={"cpu": 1})]}}
QUEUE = {"kueue.x-k8s.io/queue-name": "q"}


@pytest.mark.parametrize(
    ("kind", "spec", "sets"),
    [
        (
            "MPIJob",
            {
                "mpiReplicaSpecs": {
                    "Launcher": {"template": TEMPLATE},
                    "Worker": {"replicas": 4, "template": TEMPLATE},
                }
            },
            [("launcher", 1), ("worker", 4)],
        ),
        ("PyTorchJob", {"pytorchReplicaSpecs": {"Worker": {"replicas": 2, "template": TEMPLATE}}}, [("worker", 2)]),
        (
            "HyperPodPyTorchJob",
            {"replicaSpecs": [{"name": "pods", "replicas": 3, "spares": 2, "template": TEMPLATE}]},
            [("pods", 5)],
        ),
        ("Job", {"template": TEMPLATE}, [("main", 1)]),
        ("Job", {"parallelism": 4, "completions": 2, "template": TEMPLATE}, [("main", 2)]),
        ("StatefulSet", {"replicas": 3, "template": TEMPLATE}, [("main", 3)]),
        ("Pod", TEMPLATE["spec"], [("main", 1)]),
    ],
)
def test_sets_of_pods(kind: str, spec: Manifest, sets: list[tuple[str, int]]) -> None:
    """Each kind makes one workload with its sets of pods."""
    (workload,) = workloads([_job(kind, spec, labels={**QUEUE, "kueue.x-k8s.io/priority-class": "p"})])
    assert [(each.name, each.count) for each in workload.pod_sets] == sets
    assert (workload.job, workload.queue, workload.priority_class) == (f"{kind} b/a", "q", "p")
    assert not workload.queue_on_pods


def test_pods_of_a_deployment_are_workloads_of_their_own() -> None:
    """The label may stand on the pods alone; each pod is admitted by itself."""
    template = {"metadata": {"labels": QUEUE}, **TEMPLATE}
    found = workloads([_job("Deployment", {"replicas": 2, "template": template})])
    assert [(each.name, each.queue, each.pod_sets[0].count) for each in found] == [("a-0", "q", 1), ("a-1", "q", 1)]
    (one,) = workloads([_job("Deployment", {"template": template})])
    assert one.name == "a"


def test_a_jobs_label_is_not_looked_for_on_its_pods() -> None:
    """A PyTorchJob with the label on its pods only has no queue, and says where the label stands."""
    template = {"metadata": {"labels": QUEUE}, **TEMPLATE}
    (job,) = workloads([_job("PyTorchJob", {"pytorchReplicaSpecs": {"Worker": {"template": template}}})])
    assert (job.queue, job.queue_on_pods) == (None, True)


def test_what_has_no_pods_is_no_workload() -> None:
    """Services and the like are passed over; a kind with pods that is not known is refused."""
    assert workloads([_job("Service", {"selector": {"app": "a"}}), {"kind": "Secret", "metadata": {"name": "b"}}]) == ()
    with pytest.raises(ValueError, match="must be a kind") as caught:
        workloads([_job("DaemonSet", {"template": TEMPLATE})])
    assert str(caught.value) == (
        "must be a kind whose admission is known (MPIJob, PyTorchJob, HyperPodPyTorchJob, Job, Pod, Deployment,"
        " StatefulSet), got DaemonSet a; omit it"
    )


def test_a_list_is_its_items() -> None:
    """What kubectl get -o yaml writes is a list; keys without a value are as if they were not there."""
    written = _job("Job", {"parallelism": None, "template": {"metadata": None, **TEMPLATE}}, labels=None)
    (job,) = workloads([{"kind": "List", "apiVersion": "v1", "metadata": {}, "items": [written]}])
    assert (job.job, job.queue, job.pod_sets[0].count) == ("Job b/a", None, 1)


@row_by_row(
    "manifest, says",
    [
        ({}, "kind: is missing"),
        ({"kind": "List", "items": 3}, "List: items: must be a list of Kubernetes objects, got 3"),
        ({"kind": "Job"}, "Job: metadata.name: is missing"),
        ({"kind": "Job", "metadata": 3}, "Job: metadata: must be a mapping, got 3"),
        (_job("ConfigMap", {}, labels=[]), "ConfigMap: metadata.labels: must be a mapping, got []"),
        (_job("Foo", {}) | {"spec": 3}, "Foo a: spec: must be a mapping, got 3"),
        (_job("Job", {}), "Job a: spec.template: is missing"),
        (_job("Job", {"template": 3}), "Job a: spec.template: must be a mapping, got 3"),
        (
            _job("Job", {"parallelism": "x", "template": TEMPLATE}),
            "Job a: spec.parallelism: must be a valid integer, got 'x'",
        ),
        (
            _job("Pod", {"containers": [_container(limits={"nvidia.com/gpu": "lots"})]}),
            (
                'Pod a: spec.containers[0].resources.limits["nvidia.com/gpu"]: must be a Kubernetes quantity such as 2,'
                " 500m or 64Gi, got 'lots'"
            ),
        ),
    ],
)
def test_what_kubernetes_would_not_take_is_refused_at_its_place(manifest: Manifest, says: str) -> None:
    """The first thing of a manifest that is not of its type."""
    with pytest.raises(ValueError, match=re.escape(says)) as caught:
        workloads([manifest])
    assert str(caught.value) == says


@pytest.mark.parametrize(
    ("policy", "sizes"),
    [
        ({}, ()),
        ({"minReplicas": 2, "maxReplicas": 6}, (4, 5, 6)),
        ({"minReplicas": 2, "maxReplicas": 8, "replicaIncrementStep": 2}, (4, 6, 8)),
        ({"minReplicas": 2, "maxReplicas": 16, "replicaDiscreteValues": [2, 4, 16, 8]}, (4, 8, 16)),
        ({"minReplicas": 2, "maxReplicas": 3}, ()),
    ],
)
def test_sizes_of_elastic_jobs(policy: Manifest, sizes: tuple[int, ...]) -> None:
    """The sizes beyond the first, by steps or by values."""
    spec = {"replicaSpecs": [{"name": "pods", "replicas": 3, "template": TEMPLATE}], "elasticPolicy": policy}
    (workload,) = workloads([_job("HyperPodPyTorchJob", spec)])
    assert workload.sizes == sizes


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        ({"containers": [_container()]}, {}),
        ({"containers": [_container(limits={"cpu": 2, "a/b": 1}, requests={"cpu": 1})]}, {"cpu": 1, "a/b": 1}),
        ({"containers": [_container(requests={"cpu": 1}), _container(requests={"cpu": "500m"})]}, {"cpu": "1.5"}),
        (
            {
                "initContainers": [_container(requests={"cpu": 3, "memory": "1Gi"})],
                "containers": [_container(requests={"cpu": 2, "memory": "2Gi"})],
            },
            {"cpu": 3, "memory": 2**31},
        ),
        (
            {
                "initContainers": [{**_container(requests={"cpu": 1}), "restartPolicy": "Always"}],
                "containers": [_container(requests={"cpu": 2})],
                "overhead": {"cpu": "250m"},
            },
            {"cpu": "3.25"},
        ),
    ],
)
def test_requests_of_a_pod(pod: Manifest, expected: dict[str, int | str]) -> None:
    """Containers together, the largest init container, sidecars, overhead; limits stand for missing requests."""
    assert requests(pod) == {name: Decimal(value) for name, value in expected.items()}


def _term(operator: str, *values: str, key: str = TYPE) -> Manifest:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@row_by_row(
    "selector, terms, may",
    [
        ({}, None, True),
        ({TYPE: "ml.g5.12xlarge"}, None, True),
        ({TYPE: "ml.p5.48xlarge"}, None, False),
        ({"sagemaker.amazonaws.com/instance-group-name": "h100"}, None, True),
        ({}, [_term("In", "ml.g5.12xlarge", "ml.p5.48xlarge")], True),
        ({}, [_term("In", "ml.p5.48xlarge")], False),
        ({}, [_term("NotIn", "ml.g5.12xlarge")], False),
        ({}, [_term("Exists")], True),
        ({}, [_term("DoesNotExist")], False),
        ({}, [_term("In", "ml.p5.48xlarge"), _term("In", "x", key="zone")], True),
        ({TYPE: "ml.p5.48xlarge"}, [_term("In", "ml.g5.12xlarge")], False),
    ],
)
def test_types_that_pods_may_run_on(selector: dict[str, str], terms: list[Manifest] | None, may: bool) -> None:  # noqa: FBT001 - a column of the table
    """Selector and affinity count where they are about the type, terms of an affinity by turns."""
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    pod = {"nodeSelector": selector, **({"affinity": {"nodeAffinity": required}} if terms else {})}
    assert PodSet(name="a", count=1, requests={}, pod=pod).may_run_on("ml.g5.12xlarge") is may
