"""Serve Custom::HyperPodNodeCounts and Custom::HyperPodAutoscaler for a cluster that Karpenter scales.

Node counts: how many nodes each autoscaled group has now, so that an update of the cluster asks for those and not for
the zero of the file. Autoscaler: done when HyperPod's Karpenter is in service, before which the Kubernetes API server
does not know its objects.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any

# relative, since in Lambda the package above has another name
from ..answering import Answer, Clients, Put, Sleep, ToldError, Turn, client, error_code, put, serve  # noqa: TID252

LOG = logging.getLogger(__name__)
LOG.setLevel(logging.INFO)

NODE_COUNTS = "Custom::HyperPodNodeCounts"
POLL_SECONDS = 10.0

Properties = Mapping[str, Any]


class AutoscalingError(ToldError):
    """Karpenter does not come into service."""


def handler(event: Mapping[str, Any], context: Any) -> None:
    """Handle one CloudFormation event and answer its response URL."""
    handle(event, context, clients=client, put=put)


def handle(event: Mapping[str, Any], context: Any, *, clients: Clients, put: Put, sleep: Sleep = time.sleep) -> None:
    """Handle one event with the given AWS clients, sender and sleep."""

    def work(turn: Turn) -> Answer:
        if turn.kind == "Delete":
            return Answer()
        properties = event["ResourceProperties"]
        sagemaker = turn.client("sagemaker")
        if event["ResourceType"] == NODE_COUNTS:
            return Answer(data=node_counts(properties, sagemaker))
        _wait_for_autoscaler(properties, sagemaker, turn)
        return Answer()

    serve(event, context, work, clients=clients, put=put, sleep=sleep)


def node_counts(properties: Properties, sagemaker: Any) -> dict[str, int]:
    """Return ``Count0``, ``Count1`` ... in the order of ``Groups``: what each has to have so that none loses a node.

    Zero where Karpenter does not scale the cluster (yet) or there is no such cluster or group. An error of AWS is
    raised, and KeyError for a count that SageMaker does not show: a deployment that does not know the counts would
    remove the nodes.
    """
    cluster = _cluster(sagemaker, str(properties["ClusterName"]))
    autoscaled = (cluster or {}).get("AutoScaling", {}).get("Mode") == "Enable"
    groups = cluster["InstanceGroups"] if cluster and autoscaled else []
    targets = {group["InstanceGroupName"]: int(group["TargetCount"]) for group in groups}
    return {f"Count{index}": targets.get(name, 0) for index, name in enumerate(properties["Groups"])}


def _wait_for_autoscaler(properties: Properties, sagemaker: Any, turn: Turn) -> None:
    name = str(properties["ClusterName"])
    while True:
        cluster = _cluster(sagemaker, name)
        if cluster is None:
            raise AutoscalingError(f"cluster {name} does not exist")
        state = cluster.get("AutoScaling", {})
        status = state.get("Status", "not reported")
        if status == "InService":
            return
        if status == "Failed":
            raise AutoscalingError(f"autoscaling of cluster {name} failed: {state.get('FailureMessage', 'no reason')}")
        if turn.seconds_left() < POLL_SECONDS:
            raise AutoscalingError(
                f"autoscaling of cluster {name} is still {status}; see 'aws sagemaker describe-cluster --cluster-name"
                f" {name} --query AutoScaling', and deploy again once it is InService"
            )
        turn.sleep(POLL_SECONDS)


def _cluster(sagemaker: Any, name: str) -> Mapping[str, Any] | None:
    try:
        found: Mapping[str, Any] = sagemaker.describe_cluster(ClusterName=name)
    except Exception as error:
        if error_code(error) in {"ResourceNotFound", "ResourceNotFoundException"}:
            return None
        raise
    return found
