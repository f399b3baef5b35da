"""Checks whether pods reach their file systems over EFA, from what the pods report."""

from __future__ import annotations

from collections.abc import Collection

from hyperpod_cdk.workloads.report import log
from hyperpod_cdk.workloads.report.model import Check, Verdict
from hyperpod_cdk.workloads.report.weighing import evidence

_SHOWN = 4
_FIX = (
    "read the output of step 50_lustre_client in the log of the node's lifecycle script, and 'journalctl -u"
    " hyperpod-lustre-efa' on the node"
)
_UNSEEN = "check on the node: 'lnetctl net show' lists a network efa whose interfaces are up"


def lustre_check(found: log.Log) -> Check | None:
    """Return the check of the transport to file systems with EFA; None if no pod reports it."""
    slow, unseen, fast = (found.lustre.get(way) for way in ("tcp", "unknown", "efa"))
    if slow is not None:
        says = f"Lustre over TCP instead of EFA{_on(slow.hosts)}"
        return Check(name="lustre", verdict=Verdict.FAIL, says=says, fix=_FIX, evidence=evidence(slow.lines))
    if unseen is not None:
        says = f"pods cannot see whether Lustre uses EFA{_on(unseen.hosts)}"
        return Check(name="lustre", verdict=Verdict.UNKNOWN, says=says, fix=_UNSEEN, evidence=evidence(unseen.lines))
    if fast is not None:
        return Check(name="lustre", verdict=Verdict.PASS, says="Lustre over EFA", fix="", evidence=evidence(fast.lines))
    return None


def _on(hosts: Collection[str]) -> str:
    if not hosts:
        return ""
    shown = ", ".join(sorted(hosts)[:_SHOWN])
    return f" on {shown}{f' and {len(hosts) - _SHOWN} more' if len(hosts) > _SHOWN else ''}"
