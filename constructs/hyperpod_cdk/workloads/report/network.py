"""Checks which network the traffic of a test used, from messages of NCCL and fi_info."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hyperpod_cdk.catalog.instance_types import InstanceType
from hyperpod_cdk.catalog.sentences import plural
from hyperpod_cdk.workloads.report import log
from hyperpod_cdk.workloads.report.measures import hosts
from hyperpod_cdk.workloads.report.model import Check, Fabric, Network, Verdict
from hyperpod_cdk.workloads.report.weighing import Point, evidence, weighed

_SPOKEN: tuple[log.Signal, ...] = ("efa", "libfabric", "socket", "infiniband", "other provider")
_AGAINST: tuple[log.Signal, ...] = (
    "socket",
    "socket ready",
    "no plugin",
    "no provider",
    "other provider",
    "infiniband",
)
_NO_LINES = (
    "run it with NCCL_DEBUG=INFO (jobs of hyperpod-cdk do), and provide the complete log, which shows what NCCL uses"
)
_NO_PLUGIN = "use an image with aws-ofi-nccl, and add its folder to LD_LIBRARY_PATH"
_COPIES = (
    "set FI_EFA_USE_DEVICE_RDMA=1 for all ranks, and use an image whose aws-ofi-nccl was built with CUDA; otherwise"
    " the data is copied through memory"
)
_OTHER_NODES = "check which nodes the log is from, and specify their instance type (--instance-type)"
_NO_DEVICE = "request vpc.amazonaws.com/efa in every pod, and run the EFA device plugin on its nodes"


def network(found: log.Log, *, nodes: int | None) -> Network:
    """Return which network was in use. On one node it is none, even if NCCL prepared one."""
    signals = found.signals
    fast = "efa" in signals or ("libfabric" in signals and "other provider" not in signals)
    without = _without_plugin(found)
    slow = "socket" in signals or bool(without)
    if nodes == 1:
        state = "unused"
    elif fast and slow:
        state = "mixed"
    elif fast:
        state = "efa"
    elif slow:
        state = "tcp"
    else:
        state = "other" if "other provider" in signals or "infiniband" in signals else "unknown"
    kinds = _AGAINST
    if state in ("efa", "unused"):
        kinds = ("efa", "libfabric")
    elif state == "mixed":
        kinds = ("socket", "efa", "no plugin", "no provider")
    lines = [line for kind in kinds if kind in signals for line in signals[kind].lines]
    speaks = any(kind in signals for kind in _SPOKEN)
    return Network.model_validate(
        {
            "state": state,
            "interfaces": min(found.interfaces, default=None),
            "gpudirect": "gpudirect" in signals if speaks and state in ("efa", "mixed") else None,
            "hosts_on_tcp": tuple(sorted(_spoke(found, "socket") | without - {""})),
            "evidence": evidence(lines),
        }
    )


def _without_plugin(found: log.Log) -> set[str]:
    """Return the hosts that prepared only TCP; an empty name if no line contains a host."""
    ready = _spoke(found, "socket ready")
    if not ready:
        fast = any(signal in found.signals for signal in ("efa", "libfabric", "infiniband"))
        return {""} if "socket ready" in found.signals and not fast else set()
    return ready - _spoke(found, "efa") - _spoke(found, "libfabric") - _spoke(found, "infiniband")


def _spoke(found: log.Log, signal: log.Signal) -> set[str]:
    return found.signals[signal].hosts if signal in found.signals else set()


def _silent(found: log.Log) -> list[str]:
    """Return the hosts that took part and logged nothing about their network, while others did."""
    spoke = set().union(*(tally.hosts for tally in found.signals.values()))
    named = {host for run in found.runs if not run.pair for host in hosts(run)}
    return sorted(named - spoke) if spoke else []


def _copies(found: log.Log, types: Sequence[InstanceType]) -> bool:
    """Return whether a host's channels do not use GPUDirect RDMA although every possible instance type supports it."""
    if not types or not all(row.gpudirect_rdma for row in types) or "channel" not in found.signals:
        return False
    return "gpudirect" not in found.signals or bool(_spoke(found, "channel") - _spoke(found, "gpudirect"))


def network_check(found: log.Log, told: Network, types: Sequence[InstanceType]) -> Check | None:
    """Return the check of the network; None if there was none, or if it was not logged and no type has EFA."""
    with_efa = [row.efa_supported for row in types]
    verdict, says, fix = Verdict.UNKNOWN, "", ""
    match told.state:
        case "unused":
            return None
        case "efa":
            return _efa_check(found, told, types)
        case "mixed":
            verdict, says = Verdict.FAIL, f"some nodes use TCP, others EFA{_hosts(told.hosts_on_tcp)}"
            fix = "; ".join(_causes(found))
        case "unknown":
            if types and not any(with_efa):
                return None
            if not any(run.tool == "nccl-tests" for run in found.runs):
                return None
            says, fix = "the log does not say whether EFA or TCP is in use", _NO_LINES
        case _:
            name = "TCP is" if told.state == "tcp" else "a network other than EFA is"
            says = f"{name} in use"
            if types and all(with_efa):
                verdict, says, fix = Verdict.FAIL, f"{name} in use instead of EFA", "; ".join(_causes(found))
            elif types and not any(with_efa):
                verdict, says = Verdict.PASS, f"{name} in use; the instance type has no EFA"
            else:
                says += "; whether the instance type has EFA is unknown"
                fix = "specify the instance type (--instance-type)"
    return Check(name="network", verdict=verdict, says=says, fix=fix, evidence=told.evidence)


def _efa_check(found: log.Log, told: Network, types: Sequence[InstanceType]) -> Check | None:
    """Check EFA: every host must log that it uses EFA, and with GPUDirect RDMA if the type supports it."""
    missing = None
    if silent := _silent(found):
        says = f"EFA is in use; {len(silent)} {plural(len(silent), 'node')} did not log the network ({_listed(silent)})"
        missing = Point(says=says, fix=_NO_LINES, lines=_lines(found))
    elif _copies(found, types):
        says = "EFA is in use, without GPUDirect RDMA, which the instance type supports"
        missing = Point(says=says, fix=_COPIES, lines=found.signals["channel"].lines)
    direct = ", with GPUDirect RDMA" if told.gpudirect else ""
    return weighed("network", missing=missing, proof=Point(says=f"EFA is in use{direct}", lines=_lines(found)))


def _lines(found: log.Log) -> list[log.Line]:
    return [line for kind in ("efa", "libfabric") if kind in found.signals for line in found.signals[kind].lines]


def fabrics(found: log.Log) -> tuple[Fabric, ...]:
    """Return the devices that fi_info lists, for each pod and rank."""
    return tuple(
        Fabric(of=str(speaker), provider=provider, devices=tuple(sorted(devices)))
        for speaker, providers in sorted(found.fabrics.items(), key=lambda each: str(each[0]))
        for provider, devices in sorted(providers.items())
    )


def interfaces_check(found: log.Log, told: Network, row: InstanceType | None) -> Check | None:
    """Compare the number of EFA interfaces in pods with that of the instance type; None if the log does not show it."""
    if found.counted:
        return _counted_check(found)
    counted = list(_seen(found))
    if not counted and told.interfaces is None:
        return _none_seen(found, row)
    numbers = [count for _, count in counted] + ([told.interfaces] if told.interfaces is not None else [])
    least, most = min(numbers), max([*numbers, *found.interfaces])
    lines = [*found.fabric_lines.lines, *(found.signals["efa"].lines if "efa" in found.signals else ())]
    expected = row.efa_count if row is not None and row.efa_supported else None
    whose = next((f" ({speaker})" for speaker, count in counted if speaker and count == least), "")
    verdict, fix = Verdict.PASS, ""
    if expected is None:
        verdict = Verdict.UNKNOWN if least == 0 or row is None else Verdict.PASS
        says = f"{_interfaces(least)} found on each node, or more"
        if row is None:
            fix = "specify the instance type (--instance-type) to compare the number with that of the type"
    elif most > expected and row is not None:
        # evidence that contradicts the type is no proof
        verdict, fix = Verdict.FAIL, _OTHER_NODES
        says = f"{_interfaces(most)} found on a node, {row.name} has {expected}"
    elif least < expected:
        verdict, fix = (
            Verdict.FAIL,
            _NO_DEVICE if least == 0 else f"request vpc.amazonaws.com/efa: {expected} in every pod",
        )
        says = f"{least} of {_interfaces(expected)} found{whose}"
    else:
        says = f"all {_interfaces(expected)} found" if expected > 1 else "the EFA interface was found"
    return Check(name="interfaces", verdict=verdict, says=says, fix=fix, evidence=evidence(lines[: log.KEPT]))


def _counted_check(found: log.Log) -> Check:
    lacking = [each for each in found.counted if each.found < each.expected]
    excess = next((each for each in found.counted if each.found > each.expected), None)
    if excess is not None and not lacking:
        return Check(
            name="interfaces",
            verdict=Verdict.FAIL,
            says=f"{_interfaces(excess.found)} found on {excess.node}, the job expected {excess.expected}",
            fix=_OTHER_NODES,
            evidence=evidence([excess.line]),
        )
    if not lacking:
        says = f"every EFA interface was found on {len(found.counted)} {plural(len(found.counted), 'node')}"
        lines = evidence(each.line for each in found.counted[: log.KEPT])
        return Check(name="interfaces", verdict=Verdict.PASS, says=says, fix="", evidence=lines)
    told = "; ".join(f"{each.found} of {each.expected} on {each.node}" for each in lacking[:4])
    more = f"; {len(lacking) - 4} more nodes" if len(lacking) > 4 else ""
    return Check(
        name="interfaces",
        verdict=Verdict.FAIL,
        says=f"EFA interfaces are missing: {told}{more}",
        fix=f"{_NO_DEVICE}; if other nodes have all of them, replace the node",
        evidence=evidence(each.line for each in lacking[: log.KEPT]),
    )


def _none_seen(found: log.Log, row: InstanceType | None) -> Check | None:
    if not found.no_fabric.count:
        return None
    lacks = row is not None and not row.efa_supported
    return Check(
        name="interfaces",
        verdict=Verdict.PASS if lacks else Verdict.FAIL,
        says="no EFA interface was found" + ("; the instance type has none" if lacks else ""),
        fix="" if lacks else _NO_DEVICE,
        evidence=evidence(found.no_fabric.lines),
    )


def _seen(found: log.Log) -> Iterator[tuple[str, int]]:
    for speaker, providers in found.fabrics.items():
        of_efa = (devices for name, devices in providers.items() if name.startswith("efa"))
        yield str(speaker), len(set().union(*of_efa))


def _causes(found: log.Log) -> Iterator[str]:
    if "no plugin" in found.signals:
        yield _NO_PLUGIN
    if "no provider" in found.signals or "no plugin" not in found.signals:
        yield _NO_DEVICE


def _hosts(names: Sequence[str]) -> str:
    return f" (TCP: {_listed(names)})" if names else ""


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _interfaces(count: int) -> str:
    return f"{count} {plural(count, 'EFA interface')}"
