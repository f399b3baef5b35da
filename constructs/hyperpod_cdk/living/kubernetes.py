"""What Kubernetes knows of nodes, and cordons of them: over its API server, with AWS's credentials."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol, runtime_checkable
from urllib.parse import quote

from hyperpod_cdk.checks.answers import NotAnswered, Refused
from hyperpod_cdk.checks.side_by_side import together
from hyperpod_cdk.living.look import reading
from hyperpod_cdk.living.model import Handled
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
