"""The content of the Kubernetes clusters of the embedded AWS: Helm releases and objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hyperpod_cdk_rehearsal.embedded.context import Context

TEAM_NAMESPACE_PREFIX = "hyperpod-ns-"
HYPERPOD_CHART = "hyperpod"
KUEUE_CHART = "kueue"

BUILT_IN_NAMESPACES = frozenset({"default", "kube-node-lease", "kube-public", "kube-system"})

ObjectKey = tuple[str, str, str, str]


@dataclass(frozen=True)
class Release:
    """A Helm release: its name, its namespace, the chart's name, path or address, and the values it was given."""

    name: str
    namespace: str
    chart: str
    values: Mapping[str, Any] = field(default_factory=dict)

    def is_of(self, word: str) -> bool:
        """Whether the release or its chart is called after this word."""
        return word in self.name.lower() or word in self.chart.lower()


@dataclass
class KubernetesStore:
    """Releases and objects of every EKS cluster, by the cluster's name."""

    releases: dict[str, dict[tuple[str, str], Release]] = field(default_factory=dict)
    objects: dict[str, dict[ObjectKey, dict[str, Any]]] = field(default_factory=dict)


def record_helm_release(  # noqa: PLR0917 - what identifies a release, in the order helm names it
    context: Context, cluster_name: str, release: str, namespace: str, chart: str, values: Mapping[str, Any]
) -> Release:
    """Install or upgrade a release."""
    installed = Release(name=release, namespace=namespace, chart=chart, values=dict(values))
    with context.state.lock:
        _store(context).releases.setdefault(cluster_name, {})[namespace, release] = installed
    return installed


def remove_helm_release(context: Context, cluster_name: str, release: str, namespace: str) -> None:
    """Uninstall a release; one that is not there is no error."""
    with context.state.lock:
        _store(context).releases.get(cluster_name, {}).pop((namespace, release), None)


def record_manifest(context: Context, cluster_name: str, objects: Iterable[Mapping[str, Any]]) -> None:
    """Apply objects; one with the same kind, namespace and name is replaced. A `List` is taken apart."""
    with context.state.lock:
        stored = _store(context).objects.setdefault(cluster_name, {})
        for manifest in _flat(objects):
            stored[_key(manifest)] = dict(manifest)


def patch(context: Context, cluster_name: str, item: Mapping[str, Any], change: Mapping[str, Any]) -> None:
    """Merge a change into an object of the store: null removes, mappings merge, everything else replaces."""
    with context.state.lock:
        stored = _store(context).objects.setdefault(cluster_name, {})
        key = _key(item)
        if key in stored:
            stored[key] = merged(stored[key], change)


def merged(base: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON merge patch: null removes, mappings merge, everything else replaces."""
    found = dict(base)
    for key, value in change.items():
        if value is None:
            found.pop(key, None)
        elif isinstance(value, Mapping):
            inner = found.get(key)
            found[key] = merged(inner if isinstance(inner, Mapping) else {}, value)
        else:
            found[key] = value
    return found


def remove_manifest(context: Context, cluster_name: str, objects: Iterable[Mapping[str, Any]]) -> None:
    """Delete objects; those that are not there are no error."""
    with context.state.lock:
        stored = _store(context).objects.get(cluster_name, {})
        for manifest in _flat(objects):
            stored.pop(_key(manifest), None)


def remove_cluster(context: Context, cluster_name: str) -> None:
    """Remove everything of a deleted cluster."""
    with context.state.lock:
        _store(context).releases.pop(cluster_name, None)
        _store(context).objects.pop(cluster_name, None)


def releases(context: Context, cluster_name: str) -> list[Release]:
    """The releases of a cluster, by namespace and name."""
    with context.state.lock:
        installed = _store(context).releases.get(cluster_name, {})
        return [installed[key] for key in sorted(installed)]


def objects(context: Context, cluster_name: str) -> list[dict[str, Any]]:
    """The objects of a cluster, by kind, namespace and name."""
    with context.state.lock:
        stored = _store(context).objects.get(cluster_name, {})
        return [stored[key] for key in sorted(stored)]


def team_objects(team: str) -> list[dict[str, Any]]:
    """What task governance makes for a team: its namespace, its cluster queue and its local queue."""
    namespace = f"{TEAM_NAMESPACE_PREFIX}{team}"
    labels = {"sagemaker.amazonaws.com/sagemaker-managed-queue": "true"}
    cluster_queue = f"{namespace}-clusterqueue"
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}},
        {
            "apiVersion": "kueue.x-k8s.io/v1beta1",
            "kind": "ClusterQueue",
            "metadata": {"name": cluster_queue, "labels": labels},
        },
        {
            "apiVersion": "kueue.x-k8s.io/v1beta1",
            "kind": "LocalQueue",
            "metadata": {"name": f"{namespace}-localqueue", "namespace": namespace, "labels": labels},
            "spec": {"clusterQueue": cluster_queue},
        },
    ]


def plural(kind: str) -> str:
    """The resource name of a kind, by English rules; kubectl asks the server."""
    word = kind.lower()
    if word.endswith(("s", "x", "ch")):
        return f"{word}es"
    if word.endswith("y"):
        return f"{word[:-1]}ies"
    return f"{word}s"


def _store(context: Context) -> KubernetesStore:
    return context.state.store(KubernetesStore)


def _flat(objects: Iterable[Mapping[str, Any]]) -> Iterable[Mapping[str, Any]]:
    for manifest in objects:
        if manifest.get("kind") == "List":
            yield from _flat(manifest.get("items", []))
        else:
            yield manifest


def _key(manifest: Mapping[str, Any]) -> ObjectKey:
    metadata = manifest.get("metadata") or {}
    return (
        str(manifest.get("apiVersion", "")),
        str(manifest.get("kind", "")),
        str(metadata.get("namespace", "")),
        str(metadata.get("name", "")),
    )
