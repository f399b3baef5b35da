"""State of the embedded AWS without an AWS API: `GET /_rehearsal/state`, read by the rehearsal's report."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hyperpod_cdk_rehearsal.embedded.context import Context

PATH = "/_rehearsal/state"


@dataclass
class Recorded:
    """Resources of types without a handler, which were only checked against their schema."""

    rows: list[dict[str, str]] = field(default_factory=list)


def record(context: Context, *, resource_type: str, logical_id: str, stack_name: str) -> None:
    """Record a resource without a handler."""
    with context.state.lock:
        row = {"type": resource_type, "logical_id": logical_id, "stack": stack_name}
        context.state.store(Recorded).rows.append(row)


def inspect(context: Context) -> dict[str, Any]:
    """Return custom resources that ran or were played, recorded resources, and the state of Kubernetes.

    ``kubernetes`` has a line for each release and object; ``manifests`` and ``releases`` contain them, by cluster.
    ``missing_nodes`` has a row for each reason why nodes of an instance group are missing.
    """
    # resources import this module to note what they record
    from hyperpod_cdk_rehearsal.embedded.resources.custom import executions  # noqa: PLC0415
    from hyperpod_cdk_rehearsal.embedded.services import kubernetes_store as kubernetes  # noqa: PLC0415
    from hyperpod_cdk_rehearsal.embedded.services.nodes import missing_nodes  # noqa: PLC0415

    clusters = context.client("eks").list_clusters()["clusters"]
    return {
        "executions": [each.as_dict() for each in executions(context)],
        "missing_nodes": missing_nodes(context),
        "recorded": list(context.state.store(Recorded).rows),
        "kubernetes": [
            line
            for cluster in clusters
            for line in (
                *(f"Helm release {r.namespace}/{r.name}" for r in kubernetes.releases(context, cluster)),
                *(_name(each) for each in kubernetes.objects(context, cluster)),
            )
        ],
        "manifests": {cluster: kubernetes.objects(context, cluster) for cluster in clusters},
        "releases": {
            cluster: [dict(vars(each)) for each in kubernetes.releases(context, cluster)] for cluster in clusters
        },
    }


def _name(manifest: dict[str, Any]) -> str:
    metadata = manifest.get("metadata", {})
    namespace = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
    return f"{manifest.get('kind')} {namespace}{metadata.get('name')}"
