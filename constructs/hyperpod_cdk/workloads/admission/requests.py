"""The workloads in manifests that Kueue admits, with their sets of pods and requests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from hyperpod_cdk.catalog import governance, scheduling
from hyperpod_cdk.workloads.admission.manifest_shape import objects
from hyperpod_cdk.workloads.admission.quantities import amount

Manifest = Mapping[str, Any]

_REPLICAS = {"MPIJob": "mpiReplicaSpecs", "PyTorchJob": "pytorchReplicaSpecs"}
_ALONE = ("Deployment", "Pod")
"""Kinds whose pods are separate workloads; the pods of all other kinds start together or not at all."""


@dataclass(frozen=True, kw_only=True)
class PodSet:
    """``count`` equal pods; ``requests`` are those of one pod: vCPUs, bytes, devices."""

    name: str
    count: int
    requests: Mapping[str, Decimal]
    pod: Manifest

    def may_run_on(self, instance_type: str) -> bool:
        """Return whether node selector and required affinity allow nodes of this type; other labels are ignored."""
        chosen = self.pod.get("nodeSelector", {}).get(scheduling.INSTANCE_TYPE_LABEL, instance_type)
        affinity = self.pod.get("affinity", {}).get("nodeAffinity", {})
        required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {"nodeSelectorTerms": [{}]})
        return chosen == instance_type and any(
            all(_holds(each, instance_type) for each in term.get("matchExpressions", ()))
            for term in required["nodeSelectorTerms"]
        )


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A unit that Kueue admits as a whole.

    ``queue`` and ``priority_class`` are the values of Kueue's labels, or None. ``queue_on_pods`` is true if only the
    pod template has the queue's label. ``sizes`` are the numbers of pods to which an elastic job can grow, ascending;
    its last set is the one that grows.
    """

    kind: str
    namespace: str
    name: str
    queue: str | None
    priority_class: str | None
    pod_sets: tuple[PodSet, ...]
    queue_on_pods: bool = False
    sizes: tuple[int, ...] = ()

    @property
    def job(self) -> str:
        """``Kind namespace/name``."""
        return f"{self.kind} {self.namespace}/{self.name}"


def workloads(manifests: Iterable[Manifest]) -> tuple[Workload, ...]:
    """Return the workloads in ``manifests``, also in lists, in their order; objects without pods have none.

    Raises:
        ValueError: for an unknown kind with pods, and for a manifest that Kubernetes would reject.
    """
    return tuple(workload for manifest in manifests for each in objects(manifest) for workload in _workloads(each))


def _workloads(manifest: Manifest) -> Iterator[Workload]:
    kind, metadata = str(manifest["kind"]), manifest["metadata"]
    found = list(_templates(kind, manifest))
    if not found:
        return
    labels = metadata.get("labels", {})
    on_pods = [template.get("metadata", {}).get("labels", {}) for _, _, template in found]
    queue = labels.get(governance.QUEUE_LABEL)
    if kind in {"Deployment", "StatefulSet"} and queue is None:
        queue = on_pods[0].get(governance.QUEUE_LABEL)
    whole = Workload(
        kind=kind,
        namespace=metadata.get("namespace", "default"),
        name=metadata["name"],
        queue=queue,
        priority_class=labels.get(governance.PRIORITY_LABEL),
        queue_on_pods=queue is None and any(governance.QUEUE_LABEL in each for each in on_pods),
        pod_sets=tuple(
            PodSet(name=name, count=count, requests=requests(template["spec"]), pod=template["spec"])
            for name, count, template in found
        ),
        sizes=_sizes(manifest.get("spec", {})),
    )
    if kind not in _ALONE or whole.pod_sets[0].count == 1:
        yield whole
        return
    (pods,) = whole.pod_sets
    one = PodSet(name=pods.name, count=1, requests=pods.requests, pod=pods.pod)
    for index in range(pods.count):
        yield Workload(
            kind=kind,
            namespace=whole.namespace,
            name=f"{whole.name}-{index}",
            queue=whole.queue,
            priority_class=whole.priority_class,
            pod_sets=(one,),
        )


def requests(pod: Manifest) -> dict[str, Decimal]:
    """Return the requests of one pod: the sum of its containers, or those of its largest init container if larger."""
    total = _sum(_of_container(each) for each in pod.get("containers", ()))
    aside = [each for each in pod.get("initContainers", ()) if each.get("restartPolicy") == "Always"]
    total = _sum([total, *(_of_container(each) for each in aside)])
    for container in pod.get("initContainers", ()):
        if container not in aside:
            before = _of_container(container)
            total = {
                name: max(total.get(name, Decimal(0)), before.get(name, Decimal(0))) for name in {**total, **before}
            }
    overhead = {name: amount(quantity) for name, quantity in pod.get("overhead", {}).items()}
    return _sum([total, overhead])


def _of_container(container: Manifest) -> dict[str, Decimal]:
    resources = container.get("resources", {})
    # a limit without a request is also the request
    asked = {**resources.get("limits", {}), **resources.get("requests", {})}
    return {name: amount(quantity) for name, quantity in asked.items()}


def _sum(parts: Iterable[Mapping[str, Decimal]]) -> dict[str, Decimal]:
    total: dict[str, Decimal] = {}
    for part in parts:
        for name, value in part.items():
            total[name] = total.get(name, Decimal(0)) + value
    return total


def _templates(kind: str, manifest: Manifest) -> Iterator[tuple[str, int, Manifest]]:
    """Yield the name, number of pods and template of each set of pods."""
    spec = manifest.get("spec", {})
    if kind in _REPLICAS:
        for role, replica in spec.get(_REPLICAS[kind], {}).items():
            yield role.lower(), replica.get("replicas", 1), replica["template"]
    elif kind == "HyperPodPyTorchJob":
        for replica in spec.get("replicaSpecs", ()):
            yield replica["name"], replica.get("replicas", 0) + replica.get("spares", 0), replica["template"]
    elif kind == "Pod":
        yield "main", 1, {"metadata": manifest["metadata"], "spec": spec}
    elif kind == "Job":
        parallel = spec.get("parallelism", 1)
        yield "main", min(parallel, spec.get("completions", parallel)), spec["template"]
    elif kind in {"Deployment", "StatefulSet"}:
        yield "main", spec.get("replicas", 1), spec["template"]
    elif "template" in spec or "containers" in spec:
        raise ValueError(
            f"must be a kind whose admission is known (MPIJob, PyTorchJob, HyperPodPyTorchJob, Job, Pod, Deployment,"
            f" StatefulSet), got {kind} {manifest['metadata']['name']}; omit it"
        )


def _sizes(spec: Manifest) -> tuple[int, ...]:
    """Return the numbers of pods to which an elastic HyperPodPyTorchJob can grow."""
    policy = spec.get("elasticPolicy", {})
    if "replicaSpecs" not in spec or "maxReplicas" not in policy:
        return ()
    begins = sum(replica.get("replicas", 0) for replica in spec["replicaSpecs"])
    most, least = policy["maxReplicas"], policy.get("minReplicas", begins)
    steps = policy.get("replicaDiscreteValues") or range(least, most + 1, policy.get("replicaIncrementStep", 1))
    return tuple(sorted(size for size in steps if begins < size <= most))


def _holds(expression: Manifest, instance_type: str) -> bool:
    if expression["key"] != scheduling.INSTANCE_TYPE_LABEL:
        return True
    is_listed = instance_type in expression.get("values", ())
    return {"In": is_listed, "NotIn": not is_listed, "Exists": True}.get(expression["operator"], False)
