"""Kubernetes' Pod Security Standards, judged by themselves (kubernetes.io, "Pod Security Standards")."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

BASELINE_CAPABILITIES = frozenset(
    {
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE"),
        *("SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    }
)
BASELINE_SYSCTLS = frozenset(
    {
        *("kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_unprivileged_port_start"),
        *("net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range", "net.ipv4.ip_local_reserved_ports"),
        *("net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl"),
        "net.ipv4.tcp_keepalive_probes",
    }
)
RESTRICTED_VOLUMES = frozenset(
    {
        *("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"),
        "name",
    }
)


def pods(value: Any) -> Iterator[Mapping[str, Any]]:
    """Find every pod specification in a manifest: what has containers."""
    if isinstance(value, Mapping):
        if "containers" in value:
            yield value
            return
        for each in value.values():
            yield from pods(each)
    elif isinstance(value, list):
        for each in value:
            yield from pods(each)


def baseline(pod: Mapping[str, Any]) -> list[str]:
    """Return what the level baseline forbids in a pod."""
    found = [name for name in ("hostNetwork", "hostPID", "hostIPC") if pod.get(name)]
    found += [f"hostPath {each['name']}" for each in pod.get("volumes", ()) if "hostPath" in each]
    own = pod.get("securityContext", {})
    found += [f"sysctl {each['name']}" for each in own.get("sysctls", ()) if each["name"] not in BASELINE_SYSCTLS]
    for container in containers(pod):
        context = container.get("securityContext", {})
        if context.get("privileged"):
            found.append("privileged")
        added = context.get("capabilities", {}).get("add", ())
        found += [f"capability {name}" for name in added if name not in BASELINE_CAPABILITIES]
        found += [f"hostPort {port['hostPort']}" for port in container.get("ports", ()) if port.get("hostPort")]
        if context.get("procMount", "Default") != "Default":
            found.append("procMount")
    for context in (own, *(each.get("securityContext", {}) for each in containers(pod))):
        for profile in ("seccompProfile", "appArmorProfile"):
            if context.get(profile, {}).get("type") == "Unconfined":
                found.append(f"{profile} Unconfined")
    return found


def restricted(pod: Mapping[str, Any]) -> list[str]:
    """Return what the level restricted forbids in a pod."""
    own, found = pod.get("securityContext", {}), baseline(pod)
    found += [f"volume {each['name']}" for each in pod.get("volumes", ()) if set(each) - RESTRICTED_VOLUMES]
    for container in containers(pod):
        context = {**own, **container.get("securityContext", {})}
        if context.get("allowPrivilegeEscalation") is not False:
            found.append("allowPrivilegeEscalation")
        if context.get("runAsNonRoot") is not True or context.get("runAsUser") == 0:
            found.append("root")
        if context.get("seccompProfile", {}).get("type") not in {"RuntimeDefault", "Localhost"}:
            found.append("seccompProfile")
        if "ALL" not in context.get("capabilities", {}).get("drop", ()):
            found.append("capabilities")
    return found


def containers(pod: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the containers of a pod, those that come before included."""
    return [*pod.get("initContainers", ()), *pod["containers"], *pod.get("ephemeralContainers", ())]
