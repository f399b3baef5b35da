"""Cordons and jobs of nodes over a real TLS connection to an API server on this machine: told, done twice, refused."""

from __future__ import annotations

import json
import re
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from typer.testing import Result

from tests.checks.test_api_server import certificate
from tests.living.test_nodes import Runs, script
from tests.support.answers import answered
from tests.support.scripted_aws import Fails

NODE, OTHER = "i-00000000000000005", "i-00000000000000001"
CORDONED = "sagemaker.amazonaws.com/cordoned-by"


@dataclass
class Cluster:
    """Nodes and pods as the API server has them; ``statuses`` answer in place of a method with an HTTP status."""

    nodes: dict[str, dict[str, Any]]
    pods: list[dict[str, Any]] = field(default_factory=list)
    statuses: dict[str, int] = field(default_factory=dict)
    patched: list[tuple[str, str, Any]] = field(default_factory=list)
    described: dict[str, Any] = field(default_factory=dict)

    def answer(self, method: str, path: str, kind: str, body: Any) -> tuple[int, Any]:
        if method in self.statuses:
            return self.statuses[method], {"kind": "Status"}
        address = urlsplit(path)
        if address.path == "/api/v1/pods":
            (selector,) = parse_qs(address.query)["fieldSelector"]
            node = selector.removeprefix("spec.nodeName=")
            return 200, {"kind": "PodList", "items": [pod for pod in self.pods if pod["spec"]["nodeName"] == node]}
        name = address.path.removeprefix("/api/v1/nodes/")
        if name not in self.nodes:
            return 404, {"kind": "Status"}
        if method == "PATCH":
            self.patched.append((name, kind, body))
            self.nodes[name]["spec"] |= body["spec"]
        return 200, self.nodes[name]


def node(**labels: str) -> dict[str, Any]:
    return {"kind": "Node", "metadata": {"labels": labels}, "spec": {}}


def pod(
    name: str, owner: tuple[str, str] | None, *, space: str = "default", phase: str = "Running", **more: Any
) -> Any:
    owners = [{"kind": owner[0], "name": owner[1]}] if owner else []
    return {
        "metadata": {"name": name, "namespace": space, "ownerReferences": owners, **more},
        "spec": {"nodeName": f"hyperpod-{NODE}"},
        "status": {"phase": phase},
    }


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    file, authority = certificate(tmp_path)
    found = Cluster(nodes={f"hyperpod-{NODE}": node(), f"hyperpod-{OTHER}": node()})

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(None)

        def do_PATCH(self) -> None:
            self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _answer(self, sent: Any) -> None:
            assert re.fullmatch(r"Bearer k8s-aws-v1\.[\w-]+", self.headers["Authorization"])
            status, answer = found.answer(self.command, self.path, self.headers.get("Content-Type", ""), sent)
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's signature
            """Keep the test's output clean."""

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    listening.socket = context.wrap_socket(listening.socket, server_side=True)
    network = {"subnetIds": [], "vpcId": "vpc-1", "endpointPublicAccess": True, "endpointPrivateAccess": True}
    found.described = {
        "cluster": {
            "name": "dev-eks",
            "arn": "arn",
            "status": "ACTIVE",
            "version": "1.35",
            "endpoint": f"https://127.0.0.1:{listening.server_port}",
            "certificateAuthority": {"data": authority},
            "resourcesVpcConfig": network,
        }
    }
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield found
    listening.shutdown()
    thread.join()
    listening.server_close()


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    # what is confirmed is typed at a terminal, which no test has
    monkeypatch.setattr("hyperpod_cdk._cli.transitions.is_terminal", lambda: True)
    return Runs(folder=tmp_path)


def does(run: Runs, cluster: Cluster, verb: str, *words: str, typed: str = "") -> Result:
    return run(verb, *words, aws=script(eks_DescribeCluster=cluster.described), typed=typed)


def test_a_cordon_is_shown_done_and_taken_back_without_a_question(run: Runs, cluster: Cluster) -> None:
    done = does(run, cluster, "cordon", f"hyperpod-{NODE}")
    assert done.exit_code == 0
    assert done.stdout == (
        "dev: 1 node to be cordoned.\n"
        "\n"
        f"node {NODE} of group system, ml.p5.48xlarge: Running\n"
        "Kubernetes schedules no new pods on the node; running pods continue. HyperPod\n"
        "  does not learn of it: its health labels and taints stay, it still reboots or\n"
        "  replaces the node if it fails, and a replacement has no cordon.\n"
        f"{NODE}: cordoned\n"
        "dev: 1 of 1 node cordoned.\n"
    )
    patch = "application/strategic-merge-patch+json"
    assert cluster.patched == [(f"hyperpod-{NODE}", patch, {"spec": {"unschedulable": True}})]
    # HyperPod is asked what the node is, and nothing else
    assert {name for name, _ in run.asked} == {
        *("sts:GetCallerIdentity", "sagemaker:DescribeCluster", "sagemaker:DescribeClusterNode", "eks:DescribeCluster"),
    }
    assert does(run, cluster, "uncordon", NODE).exit_code == 0
    assert cluster.nodes[f"hyperpod-{NODE}"]["spec"] == {"unschedulable": False}


def test_twice_is_once(run: Runs, cluster: Cluster) -> None:
    for _ in range(2):
        done = does(run, cluster, "cordon", NODE, "--format", "json")
        found = answered("node-work", done.stdout)
        assert (done.exit_code, found["passed"], found["nodes"][0]["accepted"]) == (0, True, True)
    assert len(cluster.patched) == 1


def test_two_at_once_leave_it_cordoned(run: Runs, cluster: Cluster) -> None:
    # both have read it as it was: a merge of one field does not undo the other's
    for _ in range(2):
        cluster.answer("PATCH", f"/api/v1/nodes/hyperpod-{NODE}", "", {"spec": {"unschedulable": True}})
    assert does(run, cluster, "cordon", NODE).exit_code == 0
    assert cluster.nodes[f"hyperpod-{NODE}"]["spec"] == {"unschedulable": True}


def test_what_hyperpod_cordoned_itself_is_uncordoned_only_by_somebody_who_types_it(run: Runs, cluster: Cluster) -> None:
    cluster.nodes[f"hyperpod-{NODE}"] = node(**{CORDONED: "auto-patching"})
    cluster.nodes[f"hyperpod-{NODE}"]["spec"] = {"unschedulable": True}
    done = does(run, cluster, "uncordon", NODE, typed="no\n")
    assert (done.exit_code, cluster.patched) == (1, [])
    assert f"HyperPod cordoned {NODE} itself" in done.stdout
    done = does(run, cluster, "uncordon", NODE, "--format", "json")
    assert (done.exit_code, cluster.patched, done.stdout) == (2, [], "")
    assert does(run, cluster, "uncordon", NODE, typed=f"{NODE}\n").exit_code == 0
    assert len(cluster.patched) == 1


@pytest.mark.parametrize(
    ("statuses", "said"),
    [
        ({"GET": 401}, "does not recognize the caller; it needs an access entry"),
        ({"GET": 403}, "does not allow the caller to read /api/v1/nodes/"),
        ({"GET": 500}, "answered HTTP 500"),
    ],
)
def test_who_cannot_reach_it_is_reported_in_one_line(
    run: Runs, cluster: Cluster, statuses: dict[str, int], said: str
) -> None:
    cluster.statuses = statuses
    done = does(run, cluster, "cordon", NODE)
    assert (done.exit_code, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert said in done.stderr
    assert done.stderr.endswith("; nothing was done\n")


def test_no_reach_at_all_is_one_line(run: Runs, cluster: Cluster) -> None:
    cluster.described["cluster"]["endpoint"] = "https://127.0.0.1:1"
    done = does(run, cluster, "cordon", NODE)
    assert (done.exit_code, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert "the API server of EKS cluster dev-eks is not reachable from here" in done.stderr


def test_a_node_that_has_not_joined_is_named(run: Runs, cluster: Cluster) -> None:
    del cluster.nodes[f"hyperpod-{NODE}"]
    done = does(run, cluster, "cordon", NODE)
    assert (done.exit_code, done.stderr) == (
        2,
        f"Kubernetes has no node hyperpod-{NODE}; it has not joined, or has left\n",
    )
    done = does(run, cluster, "cordon", "h100-new")
    assert (done.exit_code, done.stderr) == (
        2,
        "node h100-new has no instance yet (it is Pending); wait until it has one\n",
    )


def test_one_that_may_only_look_changes_nothing(run: Runs, cluster: Cluster) -> None:
    cluster.statuses = {"PATCH": 403}
    done = does(run, cluster, "cordon", NODE, OTHER)
    assert done.exit_code == 1
    assert f"{NODE}: not cordoned, " in done.stdout
    assert "AmazonEKSClusterAdminPolicy" in done.stdout
    assert done.stdout.endswith("dev: 0 of 2 nodes cordoned; 2 not.\n")


PODS = [
    pod("train-0", ("PyTorchJob", "llama"), space="hyperpod-ns-research"),
    pod("train-1", ("PyTorchJob", "llama"), space="hyperpod-ns-research"),
    pod("done", ("Job", "old"), phase="Succeeded"),
    pod("agent", ("DaemonSet", "aws-node"), space="kube-system"),
    pod("static", ("Node", "x"), annotations={"kubernetes.io/config.mirror": "x"}),
    pod("alone", None),
]


def test_a_reboot_names_what_runs_there(run: Runs, cluster: Cluster) -> None:
    cluster.pods = PODS
    done = does(run, cluster, "reboot", NODE, OTHER, typed="2 nodes\n")
    assert done.exit_code == 0
    assert done.stdout.startswith(
        "dev: 2 nodes to be rebooted.\n"
        "\n"
        f"node {NODE} of group system, ml.p5.48xlarge: Running\n"
        "  runs PyTorchJob llama of namespace hyperpod-ns-research (team research): 2\n"
        "    pods\n"
        "  runs Pod alone of namespace default: 1 pod\n"
        f"node {OTHER} of group h100, ml.p5.48xlarge: Running\n"
        "  only pods that are created again automatically run on it\n"
    )
    assert "skipped" not in done.stdout
    found = answered("node-work", does(run, cluster, "reboot", NODE, "--confirm", NODE, "--format", "json").stdout)
    assert found["nodes"][0]["jobs"] == [
        "PyTorchJob llama of namespace hyperpod-ns-research (team research): 2 pods",
        "Pod alone of namespace default: 1 pod",
    ]


def test_a_reboot_goes_on_where_kubernetes_does_not_answer(run: Runs) -> None:
    aws = script(eks_DescribeCluster=Fails("AccessDeniedException", "no", 403))
    done = run("reboot", NODE, "--confirm", NODE, "--format", "json", aws=aws)
    found = json.loads(done.stdout)
    assert (done.exit_code, found["nodes"][0]["jobs"], found["skipped"][0]["what"]) == (0, None, "jobs on the nodes")
