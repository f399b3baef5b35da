"""The API servers of the embedded EKS clusters: HTTPS on loopback, for the few reads that our commands make."""

from __future__ import annotations

import base64
import json
import threading
import uuid
from dataclasses import dataclass, field
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from hyperpod_cdk_rehearsal.embedded import loopback_tls
from hyperpod_cdk_rehearsal.embedded.account import account_of
from hyperpod_cdk_rehearsal.embedded.published import addons
from hyperpod_cdk_rehearsal.embedded.services import kubernetes_store
from hyperpod_cdk_rehearsal.embedded.services.addon_health import addon_status
from hyperpod_cdk_rehearsal.embedded.services.stores import EksCluster, eks_clusters
from hyperpod_cdk_rehearsal.embedded.signatures import RefusedSignatureError, SignedRequest, signer_of

if TYPE_CHECKING:
    from hyperpod_cdk_rehearsal.embedded.context import Context

TOKEN_PREFIX = "Bearer k8s-aws-v1."  # noqa: S105 - how every EKS token begins
GROUPS = ("apps", "batch", "rbac.authorization.k8s.io")
KUEUE_GROUP = "kueue.x-k8s.io"
DAEMON_SETS = ["apis", "apps", "v1", "namespaces"]
WORKLOADS = {"deployments": "Deployment", "daemonsets": "DaemonSet", "statefulsets": "StatefulSet"}
"""What is listed of all namespaces, with how many of its pods are ready."""

NAMESPACED = 4
ONE_OBJECT = 2
"""Parts of a path below a version: namespaces, a name, kind, name; kind, name."""

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
CLUSTER_SCOPED = frozenset(
    {
        "ClusterQueue",
        "ClusterRole",
        "ClusterRoleBinding",
        "CustomResourceDefinition",
        "HyperpodNodeClass",
        "IngressClass",
        "Namespace",
        "NodePool",
        "PersistentVolume",
        "PriorityClass",
        "ResourceFlavor",
        "StorageClass",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "WorkloadPriorityClass",
    }
)
"""Kinds that stand in no namespace (Kubernetes, Kueue and Karpenter references)."""

ADDON_DAEMON_SETS = {"vpc-cni": ("aws-node", "amazon-k8s-cni"), "kube-proxy": ("kube-proxy", "eks/kube-proxy")}
"""Add-ons that run on every node: the DaemonSet's name and the image's."""

REGISTRY = "602401143452.dkr.ecr"
"""Where EKS keeps its images in most regions."""


@dataclass
class KubernetesApi:
    """The servers of one account, on one port: the first part of a path is the cluster's name."""

    context: Context

    @cached_property
    def address(self) -> str:
        """Where it listens; it begins to when first asked for."""
        return f"https://127.0.0.1:{self._server.server_address[1]}"

    def answer(self, path: str, token: str, patch: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Return status and body for a GET, or a PATCH of an object that was applied."""
        # all stands on one page
        name, *parts = path.partition("?")[0].strip("/").split("/")
        cluster = eks_clusters(self.context).get(name)
        if cluster is None:
            return 404, {}
        admission = account_of(self.context).kubernetes.api
        if not _is_known(token, name) or admission == "unknown_caller":
            return 401, {}
        if admission == "forbidden":
            return 403, {}
        if patch is not None:
            self._patch(cluster, parts, patch)
        found = self._found(cluster, parts)
        return (404, {}) if found is None else (200, found)

    def _patch(self, cluster: EksCluster, parts: list[str], patch: dict[str, Any]) -> None:
        """Merge into an object; what is no mapping is replaced."""
        found = self._of_store(cluster, parts)
        if found is not None and "metadata" in found:
            kubernetes_store.patch(self.context, cluster.name, found, patch)

    def _found(self, cluster: EksCluster, parts: list[str]) -> dict[str, Any] | None:
        if parts == ["apis"]:
            return {"kind": "APIGroupList", "groups": [{"name": group} for group in self._groups(cluster.name)]}
        if parts[: len(DAEMON_SETS)] == DAEMON_SETS and parts[-1] == "daemonsets":
            return {"kind": "DaemonSetList", "items": self._daemon_sets(cluster, parts[len(DAEMON_SETS)])}
        if parts[:-1] == DAEMON_SETS[:-1] and parts[-1] in WORKLOADS:
            kind = WORKLOADS[parts[-1]]
            return {"kind": f"{kind}List", "metadata": {}, "items": self._workloads(cluster, kind)}
        return self._of_store(cluster, parts) if parts[:1] in (["api"], ["apis"]) else None

    def _of_store(self, cluster: EksCluster, parts: list[str]) -> dict[str, Any] | None:
        """Return the kinds of a version, or one object as it was applied; None where there is none."""
        of_core = parts[0] == "api"
        version, rest = ("/".join(parts[1:2]), parts[2:]) if of_core else ("/".join(parts[1:3]), parts[3:])
        stored = [each for each in self._standing(cluster.name) if each.get("apiVersion") == version]
        if not rest:
            return {"kind": "APIResourceList", "groupVersion": version, "resources": _kinds(stored)} if stored else None
        space = None
        if rest[0] == "namespaces" and len(rest) == NAMESPACED:
            space, rest = rest[1], rest[2:]
        if len(rest) != ONE_OBJECT:
            return None
        return next(
            (
                _as_kept(each)
                for each in stored
                if kubernetes_store.plural(str(each.get("kind"))) == rest[0]
                and each["metadata"]["name"] == rest[1]
                and (str(each["kind"]) in CLUSTER_SCOPED or (each["metadata"].get("namespace") or "default") == space)
            ),
            None,
        )

    def _standing(self, cluster: str) -> list[dict[str, Any]]:
        """Return what was applied, and the namespaces that Kubernetes makes by itself."""
        stored = kubernetes_store.objects(self.context, cluster)
        there = {each["metadata"]["name"] for each in stored if each.get("kind") == "Namespace"}
        own = [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            for name in sorted(kubernetes_store.BUILT_IN_NAMESPACES - there)
        ]
        return [*stored, *own]

    def stop(self) -> None:
        """Listen no more."""
        if "_server" in self.__dict__:
            self._server.shutdown()
            self._server.server_close()

    def _groups(self, cluster: str) -> list[str]:
        releases = kubernetes_store.releases(self.context, cluster)
        kueue = any(release.is_of(kubernetes_store.KUEUE_CHART) for release in releases)
        return [*GROUPS, *([KUEUE_GROUP] if kueue else [])]

    def _daemon_sets(self, cluster: EksCluster, namespace: str) -> list[dict[str, Any]]:
        stored = [
            each
            for each in kubernetes_store.objects(self.context, cluster.name)
            if each.get("kind") == "DaemonSet" and each["metadata"].get("namespace") == namespace
        ]
        of_addons = [
            _daemon_set(*ADDON_DAEMON_SETS[name], self.context.region, addon.version)
            for name, addon in cluster.addons.items()
            if name in ADDON_DAEMON_SETS and namespace == "kube-system"
        ]
        return [*stored, *of_addons]

    def _workloads(self, cluster: EksCluster, kind: str) -> list[dict[str, Any]]:
        """Return what was applied, all of whose pods are ready, and one for each add-on, ready where the add-on is."""
        stored = [(each, True) for each in kubernetes_store.objects(self.context, cluster.name) if each["kind"] == kind]
        own = [
            (_of_addon(name), addon_status(self.context, cluster, addon)[0] == "ACTIVE")
            for name, addon in cluster.addons.items()
            if kind == ("DaemonSet" if name in ADDON_DAEMON_SETS else "Deployment")
        ]
        return [_counted(each, kind, is_ready=is_ready) for each, is_ready in (*stored, *own)]

    @cached_property
    def _server(self) -> ThreadingHTTPServer:
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(None)

            def do_PATCH(self) -> None:
                self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

            def _answer(self, patch: dict[str, Any] | None) -> None:
                status, body = api.answer(self.path, self.headers.get("Authorization", ""), patch)
                text = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's signature
                """Say nothing: the standard error is the log of the embedded AWS."""

        return loopback_tls.serve(Handler, name="kubernetes-api")


def _kinds(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    kinds = sorted({str(each["kind"]) for each in objects})
    return [
        {"name": kubernetes_store.plural(kind), "kind": kind, "namespaced": kind not in CLUSTER_SCOPED}
        for kind in kinds
    ]


def _as_kept(item: dict[str, Any]) -> dict[str, Any]:
    """Return an object with what every API server adds to it (Kubernetes API reference, ObjectMeta)."""
    metadata = item["metadata"]
    applied = {LAST_APPLIED: json.dumps(item), **(metadata.get("annotations") or {})}
    return {
        **item,
        "metadata": {
            **metadata,
            "uid": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{item['kind']}/{metadata['name']}")),
            "resourceVersion": "1",
            "annotations": applied,
        },
    }


@dataclass
class _Running:
    api: KubernetesApi | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


def reachable(context: Context, view: dict[str, Any]) -> dict[str, Any]:
    """Return the endpoint and certificate authority of a cluster with a reachable API server, otherwise nothing."""
    if account_of(context).kubernetes.api == "unreachable" or not view["resourcesVpcConfig"]["endpointPublicAccess"]:
        return {}
    running = context.state.store(_Running)
    with running.lock:
        running.api = running.api or KubernetesApi(context)
        authority = base64.b64encode(loopback_tls.certificate()[0].encode()).decode()
        return {"endpoint": f"{running.api.address}/{view['name']}", "certificateAuthority": {"data": authority}}


def stop(context: Context) -> None:
    """Stop the servers of an account that another takes the place of."""
    running = context.state.store(_Running)
    if running.api is not None:
        running.api.stop()


def _is_known(token: str, cluster: str) -> bool:
    """Whether a token is what EKS takes: sts:GetCallerIdentity for this cluster, presigned with a key of this run."""
    encoded = token.removeprefix(TOKEN_PREFIX)
    try:
        url = urlsplit(base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode())
        headers = {"host": url.netloc, "x-k8s-aws-id": cluster}
        signer_of(SignedRequest("GET", f"{url.path}?{url.query}", headers, b""))
    except (ValueError, RefusedSignatureError):
        return False
    asked = parse_qs(url.query)
    is_identity = asked.get("Action") == ["GetCallerIdentity"]
    return token.startswith(TOKEN_PREFIX) and is_identity and "x-k8s-aws-id" in asked["X-Amz-SignedHeaders"][0]


def _of_addon(name: str) -> dict[str, Any]:
    row = addons.get(name)
    return {"metadata": {"name": name, "namespace": (row and row.namespace) or "kube-system"}}


def _counted(item: dict[str, Any], kind: str, *, is_ready: bool) -> dict[str, Any]:
    """Return a workload with its status (Kubernetes API reference, DaemonSetStatus, DeploymentStatus)."""
    spec = item.get("spec") or {}
    replicas = int(spec.get("replicas", 1))
    ready = replicas if is_ready else 0
    status = {"replicas": replicas, "readyReplicas": ready}
    if kind == "DaemonSet":
        status = {"desiredNumberScheduled": replicas, "numberReady": ready}
    metadata = {"namespace": "default", **item["metadata"]}
    return {**item, "metadata": metadata, "spec": spec, "status": status}


def _daemon_set(name: str, image: str, region: str, version: str) -> dict[str, Any]:
    path = f"{REGISTRY}.{region}.amazonaws.com/{image}:{version}"
    containers = [{"name": name, "image": path}]
    return {
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": "kube-system"},
        "spec": {"template": {"spec": {"containers": containers}}},
    }
