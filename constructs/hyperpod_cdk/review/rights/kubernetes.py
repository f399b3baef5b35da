"""Reads Kubernetes objects in all places of templates, and states which of them have power over a cluster.

The limits of a Pod are the baseline of Kubernetes' own Pod Security Standards; other ways to more permissions are those
of its RBAC good practices. An object of an unknown kind is unknown, which is never harmless.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from hyperpod_cdk.review.rights import images
from hyperpod_cdk.review.rights.statements import items, text

_MOST_DEPTH: Final = 20
_CAPABILITIES: Final = frozenset(
    {
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE"),
        *("SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    }
)
_SYSCTLS: Final = frozenset(
    {
        *("kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_unprivileged_port_start"),
        *("net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range", "net.ipv4.ip_local_reserved_ports"),
        *("net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl"),
        *("net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"),
    }
)
"""What the baseline lets a Pod add. Source: kubernetes.io/docs/concepts/security/pod-security-standards/#baseline."""

_LEVELS: Final = ("privileged", "baseline", "restricted")
_ENFORCE: Final = "pod-security.kubernetes.io/enforce"
_ROLE_ARN: Final = "eks.amazonaws.com/role-arn"
_BALANCER: Final = "service.beta.kubernetes.io/aws-load-balancer-"
_READ_AS_RBAC: Final = frozenset({"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"})
_JUDGED: Final = frozenset({"Namespace", "NetworkPolicy", "Service", "Ingress", "ServiceAccount", "Secret"})
_WORKLOADS: Final = frozenset(
    {
        *("Pod", "PodTemplate", "Deployment", "DaemonSet", "StatefulSet", "ReplicaSet", "ReplicationController"),
        *("Job", "CronJob", "PyTorchJob", "HyperPodPyTorchJob", "MPIJob"),
    }
)
HARMLESS: Final = frozenset(
    {
        *("ConfigMap", "LimitRange", "ResourceQuota", "PriorityClass", "PodDisruptionBudget", "StorageClass"),
        *("PersistentVolume", "PersistentVolumeClaim", "VolumeSnapshot", "VolumeSnapshotClass", "RuntimeClass"),
        *("HorizontalPodAutoscaler", "CSIDriver", "Lease", "Endpoints", "EndpointSlice", "IngressClass"),
        *("LocalQueue", "ClusterQueue", "ResourceFlavor", "WorkloadPriorityClass", "AdmissionCheck", "Cohort"),
        *("Topology", "NodePool", "NodeClaim", "HyperpodNodeClass", "EC2NodeClass", "ServiceMonitor", "PodMonitor"),
        *("PrometheusRule", "CustomResourceDefinition", "TargetGroupBinding", "IngressClassParams"),
    }
)
"""Kinds that give no permission by themselves; the blast radius shows changes of their content."""

_GUARDS: Final = frozenset(
    {
        *("NetworkPolicy", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"),
        *("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicy"),
        *("MutatingAdmissionPolicyBinding",),
    }
)
"""Kinds that restrict something: other content, or none, may allow more."""

_NAMED: Final = " named "
"""No kind of Kubernetes contains a space."""


class Power(NamedTuple):
    """What an object gives, in words; ``roles`` are the IAM roles that it assumes, by ARN or token."""

    what: str
    roles: tuple[str, ...] = ()


def objects(value: Any, depth: int = 0) -> Iterator[dict[str, Any]]:
    """Yield every Kubernetes object in a value: in JSON texts, in lists of any kind, deep in values of a chart."""
    if depth > _MOST_DEPTH:
        return
    if isinstance(value, str):
        if '"kind"' in value:
            try:
                yield from objects(json.loads(value), depth + 1)
            except (ValueError, RecursionError):
                return
    elif isinstance(value, list):
        for each in value:
            yield from objects(each, depth + 1)
    elif isinstance(value, dict):
        kind = value.get("kind")
        if isinstance(kind, str) and kind.endswith("List") and isinstance(value.get("items"), list):
            for each in value["items"]:
                # items of a list of one kind may omit the kind
                named = {"kind": kind.removesuffix("List"), **each} if isinstance(each, dict) else each
                yield from objects(named, depth + 1)
        elif isinstance(kind, str) and ("apiVersion" in value or "metadata" in value):
            yield value
        else:
            for each in value.values():
                yield from objects(each, depth + 1)


def called(each: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return the kind, the namespace and the name of an object."""
    metadata = each.get("metadata")
    found = metadata if isinstance(metadata, dict) else {}
    return text(each.get("kind")), text(found.get("namespace") or ""), text(found.get("name") or "")


def named(kind: str, name: str) -> str:
    """Return a resource of an RBAC rule: all of a kind, or the one with a name if it states one."""
    return f"{kind}{_NAMED}{name}" if name else kind


def kind_and_name(resource: str) -> tuple[str, str]:
    """Return the two parts from which ``named`` made a resource."""
    kind, _, name = resource.partition(_NAMED)
    return kind, name


def guard(each: Mapping[str, Any]) -> str:
    """Return what an object restricts, as a text that differs if it may restrict less; empty for none."""
    kind = text(each.get("kind"))
    if kind in _GUARDS:
        return json.dumps({key: each[key] for key in sorted(each) if key not in ("metadata", "status")}, sort_keys=True)
    return ""


def level(each: Mapping[str, Any]) -> int | None:
    """Return how strict a Namespace's Pod Security Standard is, 0 without one; None for another kind."""
    if each.get("kind") != "Namespace":
        return None
    stated = _below(each, "metadata", "labels")
    value = text(stated.get(_ENFORCE, "privileged")) if isinstance(stated, dict) else "privileged"
    return _LEVELS.index(value) if value in _LEVELS else 0


def powers(each: Mapping[str, Any], account: str = "") -> Iterator[Power]:
    """Yield what an object newly gives to anyone who runs in it, reaches it or may use it.

    ``account`` is the own one, whose ECR has no images of other publishers.
    """
    kind = text(each.get("kind"))
    metadata = each.get("metadata")
    stated = metadata.get("annotations") if isinstance(metadata, dict) else None
    annotations = stated if isinstance(stated, dict) else {}
    if kind == "ServiceAccount" and annotations.get(_ROLE_ARN):
        arn = text(annotations[_ROLE_ARN])
        yield Power(f"acts as {arn}", (arn,))
    elif kind == "Secret" and each.get("type") == "kubernetes.io/service-account-token":
        yield Power("holds a token of a service account that does not expire")
    elif kind == "Service":
        yield from _service(each, annotations)
    elif kind == "Ingress" and annotations.get("alb.ingress.kubernetes.io/scheme") == "internet-facing":
        yield Power("is reached from the internet")
    elif kind not in {*_READ_AS_RBAC, *_JUDGED, *_WORKLOADS, *HARMLESS}:
        yield Power(f"is of an unknown kind, so that its permissions are unknown: {kind}")
    for spec in _pods(each):
        for what in dict.fromkeys(_beyond_baseline(spec)):
            yield Power(f"runs Pods with {what}, beyond the baseline of the Pod Security Standards")
        for image in dict.fromkeys(_images(spec)):
            if whose := images.publisher(image, account):
                yield Power(f"runs the image {images.repository(image)} of {whose}")


def _service(each: Mapping[str, Any], annotations: Mapping[str, Any]) -> Iterator[Power]:
    spec = each.get("spec")
    found = spec if isinstance(spec, dict) else {}
    scheme, internal = text(annotations.get(f"{_BALANCER}scheme", "")), annotations.get(f"{_BALANCER}internal")
    if found.get("type") == "LoadBalancer" and scheme != "internal" and text(internal or "") != "true":
        yield Power("is reached from the internet: its load balancer is not marked as internal")
    if found.get("externalIPs"):
        yield Power("receives traffic to external addresses (externalIPs)")


def _pods(value: Any, depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """Yield every Pod's spec in an object, of any kind that creates Pods."""
    if depth > _MOST_DEPTH:
        return
    if isinstance(value, dict):
        if isinstance(value.get("containers"), list):
            yield value
        for each in value.values():
            yield from _pods(each, depth + 1)
    elif isinstance(value, list):
        for each in value:
            yield from _pods(each, depth + 1)


def _images(spec: Mapping[str, Any]) -> Iterator[str]:
    for kind in ("containers", "initContainers", "ephemeralContainers"):
        for each in _listed(spec.get(kind)):
            if isinstance(each, dict) and isinstance(each.get("image"), str):
                yield each["image"]


def _beyond_baseline(spec: Mapping[str, Any]) -> Iterator[str]:
    for name in ("hostNetwork", "hostPID", "hostIPC"):
        if spec.get(name) is True:
            yield name
    for volume in items(spec.get("volumes")):
        if isinstance(volume, dict) and "hostPath" in volume:
            yield f"hostPath {text(_below(volume, 'hostPath', 'path') or '')}".rstrip()
    contexts = [spec.get("securityContext")]
    for name in ("containers", "initContainers", "ephemeralContainers"):
        for container in items(spec.get(name)):
            if isinstance(container, dict):
                contexts.append(container.get("securityContext"))
                ports = (each for each in items(container.get("ports")) if isinstance(each, dict))
                yield from (f"hostPort {each['hostPort']}" for each in ports if each.get("hostPort"))
    for context in contexts:
        if isinstance(context, dict):
            yield from _of_context(context)


def _of_context(context: Mapping[str, Any]) -> Iterator[str]:
    if context.get("privileged") is True:
        yield "privileged containers"
    added = {text(each) for each in _listed(_below(context, "capabilities", "add"))} - _CAPABILITIES
    if added:
        yield f"capabilities {', '.join(sorted(added))}"
    for name in ("seccompProfile", "appArmorProfile"):
        if _below(context, name, "type") == "Unconfined":
            yield f"{name} Unconfined"
    if context.get("procMount") not in (None, "Default"):
        yield "an unmasked /proc"
    if _below(context, "windowsOptions", "hostProcess") is True:
        yield "hostProcess"
    names = {text(each.get("name")) for each in items(context.get("sysctls")) if isinstance(each, dict)} - _SYSCTLS
    if names:
        yield f"sysctls {', '.join(sorted(names))}"


def _listed(value: Any) -> Iterable[Any]:
    return items(value)


def _below(value: Mapping[str, Any], *steps: str) -> Any:
    found: Any = value
    for step in steps:
        found = found.get(step) if isinstance(found, dict) else None
    return found
