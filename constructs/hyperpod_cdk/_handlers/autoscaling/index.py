"""Serve Custom::HyperPodNodeCounts and Custom::HyperPodAutoscaler for a cluster that Karpenter scales.

Node counts: how many nodes each autoscaled group has now, so that an update of the cluster asks for those and not for
the zero of the file. Autoscaler: done when HyperPod's Karpenter is in service, before which the Kubernetes API server
does not know its objects. Standard library and boto3 only, both of which Lambda's Python runtimes carry.
"""

from __future__ import annotations

import http.client
import json
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

LOG = logging.getLogger(__name__)
LOG.setLevel(logging.INFO)

NODE_COUNTS = "Custom::HyperPodNodeCounts"
POLL_SECONDS = 10.0
STOP_WAITING_SECONDS = 30.0
"""How long before Lambda's timeout waiting ends, so that there is time to answer."""
REASON_LIMIT = 1500
"""CloudFormation takes answers of up to 4096 bytes; characters of the reason that are kept."""
PUT_PAUSES = (1.0, 2.0, 4.0)

Properties = Mapping[str, Any]


class AutoscalingError(Exception):
    """Something that CloudFormation has to be told in words."""


def handler(event: Mapping[str, Any], context: Any) -> None:
    """Handle one CloudFormation event and answer its response URL."""
    handle(event, context, client=_sagemaker, put=put)


def handle(
    event: Mapping[str, Any],
    context: Any,
    *,
    client: Callable[[], Any],
    put: Callable[[str, bytes], None],
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Handle one event with the given SageMaker client, sender and sleep.

    Raises only if the answer cannot be sent, so that Lambda invokes the handler again.
    """
    answer: dict[str, Any] = {
        "Status": "SUCCESS",
        "RequestId": event["RequestId"],
        "StackId": event["StackId"],
        "LogicalResourceId": event["LogicalResourceId"],
        # always the same: nothing is made that could be replaced
        "PhysicalResourceId": event["LogicalResourceId"],
    }
    try:
        if event["RequestType"] != "Delete":
            properties = event["ResourceProperties"]
            if event["ResourceType"] == NODE_COUNTS:
                answer["Data"] = node_counts(properties, client())
            else:
                _wait_for_autoscaler(properties, client(), context, sleep)
    except Exception as error:
        LOG.exception("%s of %s failed", event["RequestType"], event["LogicalResourceId"])
        answer |= {"Status": "FAILED", "Reason": (str(error) or type(error).__name__)[:REASON_LIMIT]}
    LOG.info("%s %s %s", answer["Status"], event["ResourceType"], answer.get("Data", ""))
    _put_patiently(event["ResponseURL"], json.dumps(answer).encode(), put, sleep)


def node_counts(properties: Properties, sagemaker: Any) -> dict[str, int]:
    """Give ``Count0``, ``Count1`` ... in the order of ``Groups``: what each has to have so that none loses a node.

    Zero where Karpenter does not scale the cluster (yet) or there is no such cluster or group. An error of AWS is
    raised: a deployment that does not know the counts would remove the nodes.
    """
    cluster = _cluster(sagemaker, str(properties["ClusterName"]))
    autoscaled = (cluster or {}).get("AutoScaling", {}).get("Mode") == "Enable"
    groups = (cluster or {}).get("InstanceGroups", []) if autoscaled else []
    targets = {group["InstanceGroupName"]: int(group.get("TargetCount", 0)) for group in groups}
    return {f"Count{index}": targets.get(name, 0) for index, name in enumerate(properties["Groups"])}


def _wait_for_autoscaler(properties: Properties, sagemaker: Any, context: Any, sleep: Callable[[float], None]) -> None:
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
        if context.get_remaining_time_in_millis() / 1000 < STOP_WAITING_SECONDS + POLL_SECONDS:
            raise AutoscalingError(
                f"autoscaling of cluster {name} is still {status}; see 'aws sagemaker describe-cluster --cluster-name"
                f" {name} --query AutoScaling', and deploy again once it is InService"
            )
        sleep(POLL_SECONDS)


def _cluster(sagemaker: Any, name: str) -> Mapping[str, Any] | None:
    try:
        found: Mapping[str, Any] = sagemaker.describe_cluster(ClusterName=name)
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") in {"ResourceNotFound", "ResourceNotFoundException"}:
            return None
        raise
    return found


def put(url: str, body: bytes) -> None:
    """Send the answer to CloudFormation's response URL (https; a local stand-in may use http)."""
    parts = urlsplit(url)
    connection_type = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = connection_type(parts.netloc, timeout=5)
    try:
        target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
        # the URL is signed for an empty content type
        connection.request("PUT", target, body=body, headers={"Content-Type": ""})
        response = connection.getresponse()
        response.read()
    finally:
        connection.close()
    if response.status >= 400:
        raise OSError(f"HTTP {response.status} {response.reason}")


def _put_patiently(url: str, body: bytes, send: Callable[[str, bytes], None], sleep: Callable[[float], None]) -> None:
    for pause in (*PUT_PAUSES, None):
        try:
            send(url, body)
        except (OSError, http.client.HTTPException) as error:
            LOG.warning("CloudFormation does not take the answer: %s", error)
            if pause is None:
                raise
            sleep(pause)
        else:
            return


def _sagemaker() -> Any:
    return boto3.client(
        "sagemaker", config=Config(connect_timeout=5, read_timeout=20, retries={"mode": "standard", "max_attempts": 5})
    )
