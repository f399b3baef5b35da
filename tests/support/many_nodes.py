"""An AWS on loopback with many nodes on many pages, with the latency of a network for each call."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from hyperpod_cdk.catalog import quotas
from hyperpod_cdk.config.wanted_addons import EVERYWHERE
from hyperpod_cdk_rehearsal.embedded import loopback_tls

ACCOUNT, REGION = "111122223333", "us-east-1"
_CALLER = (
    '<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>'
    f"<Arn>arn:aws:iam::{ACCOUNT}:user/dana</Arn><UserId>AIDA</UserId><Account>{ACCOUNT}</Account>"
    "</GetCallerIdentityResult></GetCallerIdentityResponse>"
)


def environment(address: str) -> dict[str, str]:
    """Return the variables with which a command asks this SageMaker."""
    keys = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_EC2_METADATA_DISABLED": "true"}
    return {**keys, "AWS_ENDPOINT_URL": address, "AWS_DEFAULT_REGION": REGION, "no_proxy": "127.0.0.1"}


@contextmanager
def many_nodes(*, groups: int, nodes: int, on_a_page: int, latency_s: float) -> Iterator[tuple[str, list[str]]]:
    """Yield the address of an AWS with this number of running nodes and groups, and the calls that it answers."""
    names = [f"g{number:02}" for number in range(groups)]
    rows = [_node(name, number) for number, name in enumerate(sorted(names * (nodes // groups)))]
    asked: list[str] = []

    def answer(operation: str, sent: dict[str, Any]) -> dict[str, Any]:
        if operation == "DescribeCluster":
            return _cluster(names, nodes // groups)
        if operation == "ListClusterNodes":
            found = [row for row in rows if sent.get("InstanceGroupNameContains", "") in row["InstanceGroupName"]]
            first = int(sent.get("NextToken", 0))
            more = {"NextToken": str(first + on_a_page)} if first + on_a_page < len(found) else {}
            return {"ClusterNodeSummaries": found[first : first + on_a_page], **more}
        others: dict[str, dict[str, Any]] = {
            "ListClusterEvents": {"Events": []},
            "DescribeFileSystems": {"FileSystems": []},
            "ListAddons": {"addons": list(EVERYWHERE)},
            "ListClusters": {"ClusterSummaries": [{"ClusterName": "dev"}]},
            "GetServiceQuota": {
                "Quota": {"QuotaName": _QUOTAS.get(sent.get("QuotaCode", "")), "QuotaCode": "L-1", "Value": nodes}
            },
            "DescribeAlarms": {"MetricAlarms": [{"AlarmName": "dev-hyperpod-events", "StateValue": "OK"}]},
        }
        return others[operation]

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            # EKS alone is asked so
            told = answer("ListAddons", {}) if "/addons" in self.path else {"cluster": _eks_cluster(api.server_port)}
            self._say(self.path, "application/json", lambda: json.dumps(told).encode())

        def do_POST(self) -> None:
            sent = self.rfile.read(int(self.headers["Content-Length"]))
            target = self.headers.get("X-Amz-Target")
            if target:
                operation = target.rpartition(".")[2]
                told = "application/x-amz-json-1.1"
                self._say(operation, told, lambda: json.dumps(answer(operation, json.loads(sent))).encode())
            elif self.path.startswith("/service/"):
                operation = self.path.rpartition("/")[2]
                self._say(operation, "application/cbor", lambda: _cbor(answer(operation, {})))
            else:
                self._say("GetCallerIdentity", "text/xml", _CALLER.encode)

        def _say(self, operation: str, content: str, body_of: Callable[[], bytes]) -> None:
            asked.append(operation)
            time.sleep(latency_s)
            body = body_of()
            self.send_response(200)
            self.send_header("Content-Type", content)
            self.send_header("smithy-protocol", "rpc-v2-cbor")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the base class names it
            pass

    class ApiServer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            time.sleep(latency_s)
            body = json.dumps({"items": [_daemon_set(nodes)] if "daemonsets" in self.path else []}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the base class names it
            pass

    class Server(ThreadingHTTPServer):
        request_queue_size = 128

    api = loopback_tls.serve(ApiServer, name="api-server")
    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            api.shutdown()
            api.server_close()
            server.shutdown()
            thread.join()


def _cbor(value: Any) -> bytes:
    """Write short texts, lists and maps as CloudWatch does (RFC 8949, section 3)."""
    if isinstance(value, str):
        text = value.encode()
        return bytes((0x78, len(text))) + text
    if isinstance(value, list):
        return bytes((0x80 + len(value),)) + b"".join(map(_cbor, value))
    return bytes((0xA0 + len(value),)) + b"".join(_cbor(key) + _cbor(each) for key, each in value.items())


_QUOTAS = {
    each.code: each.name for each in (quotas.cluster_usage("ml.p5.48xlarge"), quotas.get("hyperpod_instances_total"))
}


def _eks_cluster(port: int) -> dict[str, Any]:
    authority = base64.b64encode(loopback_tls.certificate()[0].encode()).decode()
    network = {"vpcId": "vpc-0a1b", "subnetIds": [], "endpointPublicAccess": True, "endpointPrivateAccess": True}
    return {
        "name": "dev-eks",
        "arn": f"arn:aws:eks:{REGION}:{ACCOUNT}:cluster/dev-eks",
        "status": "ACTIVE",
        "version": "1.34",
        "endpoint": f"https://127.0.0.1:{port}",
        "certificateAuthority": {"data": authority},
        "resourcesVpcConfig": network,
    }


def _daemon_set(nodes: int) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "kube-system", "name": "aws-node"},
        "spec": {},
        "status": {"desiredNumberScheduled": nodes, "numberReady": nodes},
    }


def _cluster(names: list[str], count: int) -> dict[str, Any]:
    group = {"InstanceType": "ml.p5.48xlarge", "TargetCount": count, "CurrentCount": count, "Status": "InService"}
    return {
        "ClusterArn": f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:cluster/abcdefabcdef",
        "ClusterName": "dev",
        "ClusterStatus": "InService",
        "NodeProvisioningMode": "Continuous",
        "Orchestrator": {"Eks": {"ClusterArn": f"arn:aws:eks:{REGION}:{ACCOUNT}:cluster/dev-eks"}},
        "InstanceGroups": [{"InstanceGroupName": name, **group} for name in names],
    }


def _node(group: str, number: int) -> dict[str, Any]:
    return {
        "InstanceGroupName": group,
        "InstanceId": f"i-{number:017x}",
        "InstanceType": "ml.p5.48xlarge",
        "LaunchTime": 1_795_400_000,
        "InstanceStatus": {"Status": "Running"},
    }
