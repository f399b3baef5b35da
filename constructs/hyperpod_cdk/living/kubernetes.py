"""Nodes, operators and cordons as Kubernetes has them: from its API server, with AWS credentials."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol, runtime_checkable
from urllib.parse import quote

from hyperpod_cdk.catalog import addons, governance
from hyperpod_cdk.checks.answers import NotAnswered, Refused
from hyperpod_cdk.checks.side_by_side import answered, together
from hyperpod_cdk.living.look import reading
from hyperpod_cdk.living.model import Handled, Operator
from hyperpod_cdk.living.nodes import KUBERNETES, NodeError
from hyperpod_cdk.review.nouns import count

CORDONED_BY: Final = "sagemaker.amazonaws.com/cordoned-by"
"""The label of nodes that HyperPod cordons to patch them when they are idle (developer guide, AMI
auto-patching)."""

HEALTH: Final = "sagemaker.amazonaws.com/node-health-status"

_MIRROR: Final = "kubernetes.io/config.mirror"
_GONE: Final = ("Succeeded", "Failed")
"""Phases of a pod that no longer runs (Kubernetes, pod lifecycle)."""

MOST_NODES: Final = 100
"""For more nodes at once, such as a whole group, their pods are not listed: each node is a call."""

_WORKLOADS: Final = {"deployments": "Deployment", "daemonsets": "DaemonSet", "statefulsets": "StatefulSet"}
_ON_A_PAGE: Final = 500
_MOST_PAGES: Final = 20
_MOST_PODS: Final = 100
"""Pods of one workload that are read: most of them have the same problem."""

_OF_CHARTS: Final = ("kubeflow", "mpi-operator")
"""Namespaces of kubeflow's training-operator and mpi-operator, which the dependency chart installs."""

_OF_USERS: Final = "default"


@runtime_checkable
class Kubernetes(Protocol):
    """Asks the API server of an EKS cluster: ``checks.aws.LiveAws``. Both raise NotAnswered."""

    def kubernetes_read(self, cluster: str, path: str) -> Mapping[str, Any]:
        """GET a path."""
        ...

    def kubernetes_patch(self, cluster: str, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """PATCH the object at a path, with a strategic merge."""
        ...


def eks_cluster(found: Mapping[str, Any]) -> str:
    """Return the name of the EKS cluster in an answer of DescribeCluster."""
    with reading("sagemaker:DescribeCluster"):
        return str(found["Orchestrator"]["Eks"]["ClusterArn"]).rpartition("/")[2]


def jobs_on(api: object, cluster: str, nodes: Sequence[Handled]) -> list[tuple[str, ...] | NotAnswered]:
    """Return the pods of each node by their owners, without DaemonSets, whose pods are created again automatically."""
    if not isinstance(api, Kubernetes):
        return [NotAnswered("Kubernetes was not asked") for _ in nodes]
    if len(nodes) > MOST_NODES:
        return [NotAnswered(f"Kubernetes is asked about at most {MOST_NODES} nodes") for _ in nodes]
    return together(lambda node: _jobs(api, cluster, node), nodes)


def _jobs(api: Kubernetes, cluster: str, node: Handled) -> tuple[str, ...]:
    if not node.id:
        return ()
    field = quote(f"spec.nodeName={KUBERNETES}{node.id}", safe="")
    answer = api.kubernetes_read(cluster, f"/api/v1/pods?fieldSelector={field}")
    with reading(f"the pods of {node.name}"):
        owners = Counter(
            _owner(pod)
            for pod in answer["items"]
            if pod.get("status", {}).get("phase") not in _GONE
            and _MIRROR not in pod["metadata"].get("annotations", {})
            and all(each["kind"] != "DaemonSet" for each in pod["metadata"].get("ownerReferences", ()))
        )
        return tuple(f"{owner}: {count(number, 'pod')}" for owner, number in owners.items())


def _owner(pod: Mapping[str, Any]) -> str:
    metadata = pod["metadata"]
    space = str(metadata["namespace"])
    owner = governance.team_of(space)
    team = f" (team {owner})" if owner is not None else ""
    owners = metadata.get("ownerReferences") or [{"kind": "Pod", "name": metadata["name"]}]
    return f"{owners[0]['kind']} {owners[0]['name']} of namespace {space}{team}"


def operators(api: object, cluster: str) -> tuple[Operator, ...]:
    """Return the workloads of operators: of Kubernetes, EKS add-ons and the dependency chart, not of teams and users.

    They are counted by workload: a DaemonSet can have a pod on each of thousands of nodes. Raises NotAnswered.
    """
    if not isinstance(api, Kubernetes):
        raise NotAnswered("Kubernetes was not asked")
    lists: list[Any] = answered(*(partial(_workloads, api, cluster, plural) for plural in _WORKLOADS))
    return tuple(sorted((each for found in lists for each in found), key=lambda each: (each.namespace, each.name)))


def _workloads(api: Kubernetes, cluster: str, plural: str) -> list[Operator]:
    found: list[Operator] = []
    path = f"/apis/apps/v1/{plural}?limit={_ON_A_PAGE}"
    more = ""
    for _ in range(_MOST_PAGES):
        page = api.kubernetes_read(cluster, path + more)
        with reading(f"the {plural}"):
            rows = [row for row in page["items"] if _is_of_operators(str(row["metadata"]["namespace"]))]
            found += [_operator(_WORKLOADS[plural], row) for row in rows]
            token = page.get("metadata", {}).get("continue")
        if not token:
            return found
        more = f"&continue={quote(str(token), safe='')}"
    raise NotAnswered(f"the API server has more than {_MOST_PAGES * _ON_A_PAGE} {plural}")


def _is_of_operators(namespace: str) -> bool:
    of_addons = {addons.row(name).namespace for name in addons.names()}
    return namespace in of_addons.union(_OF_CHARTS) or (
        namespace != _OF_USERS and governance.is_namespace_of_others(namespace)
    )


def _operator(kind: str, row: Mapping[str, Any]) -> Operator:
    status = row.get("status", {})
    if kind == "DaemonSet":
        wanted, ready = status["desiredNumberScheduled"], status["numberReady"]
    else:
        # a missing member means one replica, and none ready (Kubernetes API reference)
        wanted, ready = row["spec"].get("replicas", 1), status.get("readyReplicas", 0)
    metadata = row["metadata"]
    return Operator(
        namespace=str(metadata["namespace"]),
        name=str(metadata["name"]),
        kind=kind,
        wanted=int(wanted),
        ready=int(ready),
    )


def with_reasons(
    api: object, cluster: str, found: Sequence[Operator], *, of: Sequence[Operator]
) -> tuple[Operator, ...]:
    """Return operators, some with the reason why most of their pods are not ready, if the API server shows it."""

    def told(each: Operator) -> Operator:
        if each not in of or not isinstance(api, Kubernetes):
            return each
        try:
            return each.model_copy(update={"reason": _reason(api, cluster, each)})
        except NotAnswered:
            # it is still known that they are not ready
            return each

    return tuple(each for each in together(told, found) if isinstance(each, Operator))


def _reason(api: Kubernetes, cluster: str, operator: Operator) -> str:
    space = f"namespaces/{quote(operator.namespace, safe='')}"
    plural = next(plural for plural, kind in _WORKLOADS.items() if kind == operator.kind)
    made = api.kubernetes_read(cluster, f"/apis/apps/v1/{space}/{plural}/{quote(operator.name, safe='')}")
    with reading(operator.name):
        labels = ",".join(f"{key}={value}" for key, value in made["spec"]["selector"].get("matchLabels", {}).items())
    if not labels:
        return ""
    pods = api.kubernetes_read(
        cluster, f"/api/v1/{space}/pods?labelSelector={quote(labels, safe='')}&limit={_MOST_PODS}"
    )
    with reading(f"the pods of {operator.name}"):
        said = Counter(told for pod in pods["items"] if (told := next(_not_ready(pod["status"]), "")))
    return next((text for text, _ in said.most_common(1)), "")


def _not_ready(status: Mapping[str, Any]) -> Iterator[str]:
    """Say why a pod is not ready: why a container does not run, else why the pod has no node."""
    for each in (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())):
        state = each.get("state", {})
        failed = state.get("terminated", {}) if state.get("terminated", {}).get("exitCode") else {}
        stops = state.get("waiting") or failed
        # a container that waits for the others of its pod does not show the reason
        if stops.get("reason") and stops["reason"] not in _WAITS_FOR_OTHERS:
            yield ": ".join(str(stops[key]) for key in ("reason", "message") if stops.get(key))
    for each in status.get("conditions", ()):
        if each["type"] == "PodScheduled" and each["status"] == "False":
            yield ": ".join(str(each[key]) for key in ("reason", "message") if each.get(key))


_WAITS_FOR_OTHERS: Final = ("ContainerCreating", "PodInitializing")
"""Reasons of a container that has not started yet (Kubernetes, pkg/kubelet)."""


def standing(api: object, cluster: str, node: Handled) -> tuple[bool, str]:
    """Return whether a node is cordoned, and HyperPod's labels. Raises NotAnswered, and NodeError if there is no
    node."""
    if not isinstance(api, Kubernetes):
        raise NotAnswered("Kubernetes was not asked")
    try:
        answer = api.kubernetes_read(cluster, _path(node))
    except Refused as refused:
        if refused.code == "404":
            raise NodeError(f"Kubernetes has no node {KUBERNETES}{node.id}; it has not joined, or has left") from None
        raise
    with reading(f"node {node.name}"):
        labels = answer["metadata"].get("labels", {})
        return bool(answer["spec"].get("unschedulable")), str(labels.get(CORDONED_BY) or "")


def cordon(api: object, cluster: str, node: Handled, *, is_cordoned: bool) -> None:
    """Cordon or uncordon a node; raises NotAnswered."""
    if not isinstance(api, Kubernetes):
        raise NotAnswered("Kubernetes was not asked")
    api.kubernetes_patch(cluster, _path(node), {"spec": {"unschedulable": is_cordoned}})


def _path(node: Handled) -> str:
    return f"/api/v1/nodes/{quote(f'{KUBERNETES}{node.id}', safe='')}"
