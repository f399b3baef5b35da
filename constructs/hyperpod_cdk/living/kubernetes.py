"""What Kubernetes knows of nodes and operators, and cordons of nodes: over its API server, with AWS's credentials."""

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
"""The label of nodes that HyperPod itself cordons, to patch them when they are idle (developer guide, AMI
auto-patching)."""

HEALTH: Final = "sagemaker.amazonaws.com/node-health-status"

_MIRROR: Final = "kubernetes.io/config.mirror"
_GONE: Final = ("Succeeded", "Failed")
"""Phases of a pod that runs no more (Kubernetes, pod lifecycle)."""

MOST_NODES: Final = 100
"""Of more at once, as of a whole group that is checked, what runs there is not asked: each is a call."""

_TEAM: Final = "hyperpod-ns-"

_WORKLOADS: Final = {"deployments": "Deployment", "daemonsets": "DaemonSet", "statefulsets": "StatefulSet"}
_ON_A_PAGE: Final = 500
_MOST_PAGES: Final = 20
_MOST_PODS: Final = 100
"""Of one workload: what is wrong with one of them is wrong with most."""

_OF_CHARTS: Final = ("kubeflow", "mpi-operator")
"""Where kubeflow's training-operator and mpi-operator, which the dependency chart brings, have their controllers."""

_OF_USERS: Final = "default"


@runtime_checkable
class Kubernetes(Protocol):
    """Asks the API server of an EKS cluster: ``checks.aws.LiveAws``. Both raise NotAnswered."""

    def kubernetes_read(self, cluster: str, path: str) -> Mapping[str, Any]:
        """GET a path."""
        ...

    def kubernetes_patch(self, cluster: str, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """PATCH what stands under a path, by a strategic merge."""
        ...


def eks_cluster(found: Mapping[str, Any]) -> str:
    """Give the name of the EKS cluster of what DescribeCluster answered."""
    with reading("sagemaker:DescribeCluster"):
        return str(found["Orchestrator"]["Eks"]["ClusterArn"]).rpartition("/")[2]


def jobs_on(api: object, cluster: str, nodes: Sequence[Handled]) -> list[tuple[str, ...] | NotAnswered]:
    """Give for each node what runs on it, by the owner of its pods; what DaemonSets put there comes back by itself."""
    if not isinstance(api, Kubernetes):
        return [NotAnswered("Kubernetes is not asked") for _ in nodes]
    if len(nodes) > MOST_NODES:
        return [NotAnswered(f"Kubernetes is asked about {MOST_NODES} nodes at most") for _ in nodes]
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
    team = f" (team {space.removeprefix(_TEAM)})" if space.startswith(_TEAM) else ""
    owners = metadata.get("ownerReferences") or [{"kind": "Pod", "name": metadata["name"]}]
    return f"{owners[0]['kind']} {owners[0]['name']} of namespace {space}{team}"


def operators(api: object, cluster: str) -> tuple[Operator, ...]:
    """Give what runs the pods of operators: of Kubernetes, EKS add-ons and the dependency chart, of no team and user.

    They are counted by what they belong to: a DaemonSet may have a pod for each of thousands of nodes. Raises
    NotAnswered.
    """
    if not isinstance(api, Kubernetes):
        raise NotAnswered("Kubernetes is not asked")
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
        # what is left out is one replica, and none that is ready (Kubernetes API reference)
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
    """Give operators, some of them with why most of their pods are not ready, where the API server tells it."""

    def told(each: Operator) -> Operator:
        if each not in of or not isinstance(api, Kubernetes):
            return each
        try:
            return each.model_copy(update={"reason": _reason(api, cluster, each)})
        except NotAnswered:
            # that they are not ready is known all the same
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
    """Say why a pod is not ready: what keeps a container from running, else what keeps the pod from a node."""
    for each in (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())):
        state = each.get("state", {})
        failed = state.get("terminated", {}) if state.get("terminated", {}).get("exitCode") else {}
        stops = state.get("waiting") or failed
        # a container that waits for the others of its pod says nothing of why
        if stops.get("reason") and stops["reason"] not in _WAITS_FOR_OTHERS:
            yield ": ".join(str(stops[key]) for key in ("reason", "message") if stops.get(key))
    for each in status.get("conditions", ()):
        if each["type"] == "PodScheduled" and each["status"] == "False":
            yield ": ".join(str(each[key]) for key in ("reason", "message") if each.get(key))


_WAITS_FOR_OTHERS: Final = ("ContainerCreating", "PodInitializing")
"""Reasons of a container that is not begun yet (Kubernetes, pkg/kubelet)."""


def standing(api: object, cluster: str, node: Handled) -> tuple[bool, str]:
    """Give whether a node is cordoned, and what HyperPod says by labels; raises NotAnswered, NodeError for no node."""
    if not isinstance(api, Kubernetes):
        raise NotAnswered("Kubernetes is not asked")
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
    """Let Kubernetes put nothing new on a node, or let it again; raises NotAnswered."""
    if not isinstance(api, Kubernetes):
        raise NotAnswered("Kubernetes is not asked")
    api.kubernetes_patch(cluster, _path(node), {"spec": {"unschedulable": is_cordoned}})


def _path(node: Handled) -> str:
    return f"/api/v1/nodes/{quote(f'{KUBERNETES}{node.id}', safe='')}"
