"""Finds slow pairs among runs of two nodes each, and the node that is the cause."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from statistics import median

from hyperpod_cdk.catalog import baselines
from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.catalog.sentences import plural
from hyperpod_cdk.workloads.report import log
from hyperpod_cdk.workloads.report.measures import collective, gb_s, hosts, percent, plateau
from hyperpod_cdk.workloads.report.model import Check, Pair, Verdict
from hyperpod_cdk.workloads.report.weighing import evidence


def paired(runs: Sequence[log.Run]) -> bool:
    """Return whether these are runs of a test in pairs: by its headers, or two nodes each and not always the same."""
    if any(run.pair for run in runs):
        return True
    sets = [frozenset(hosts(run)) for run in runs]
    return len(runs) > 1 and all(len(each) == 2 for each in sets) and len(set(sets)) > 1


def pairs(runs: Sequence[log.Run]) -> tuple[Pair, ...]:
    """Compare every pair with the median of its collective; a pair without a measurement fails if others have one."""
    plateaus: dict[str | None, list[float]] = defaultdict(list)
    for run in runs:
        if (value := plateau(run)) is not None:
            plateaus[collective(run)[0]].append(value)
    found: list[Pair] = []
    for run in runs:
        name, value = collective(run)[0], plateau(run)
        middle = median(plateaus[name]) if plateaus[name] else 0.0
        share = value / middle if value is not None and middle > 0 else None
        if not run.sizes:
            verdict = Verdict.FAIL if any(plateaus.values()) else Verdict.UNKNOWN
        elif share is None or len(plateaus[name]) < 2:
            verdict = Verdict.UNKNOWN
        else:
            verdict = Verdict.PASS if share >= baselines.TOLERANCE else Verdict.FAIL
        found.append(
            Pair(
                hosts=hosts(run),
                collective=name,
                plateau_gb_s=value,
                of_median=None if share is None else round(share, 4),
                verdict=verdict,
            )
        )
    return tuple(found)


def suspects(found: Sequence[Pair]) -> tuple[str, ...]:
    """Return the hosts that are slow with every partner, if the partners are fast with others."""
    slow = [pair for pair in found if pair.verdict is Verdict.FAIL]
    fast = {host for pair in found if pair.verdict is Verdict.PASS for host in pair.hosts}
    counted: dict[str, int] = defaultdict(int)
    for pair in slow:
        for host in set(pair.hosts) - fast:
            counted[host] += 1
    proved = {
        host
        for pair in slow
        for host in pair.hosts
        if host not in fast and set(pair.hosts) - {host} and set(pair.hosts) - {host} <= fast
    }
    proved |= {host for host, count in counted.items() if count > 1}
    return tuple(sorted(proved))


def check(runs: Sequence[log.Run], found: Sequence[Pair], bad: Sequence[str]) -> Check | None:
    """Return the check that compares the pairs with each other; None if there are none."""
    if not found:
        return None
    slow = [(run, pair) for run, pair in zip(runs, found, strict=True) if pair.verdict is Verdict.FAIL]
    if not slow:
        is_known = all(pair.verdict is Verdict.PASS for pair in found)
        says = (
            f"all {len(found)} pairs are within {percent(1 - baselines.TOLERANCE)} of their median"
            if is_known
            else f"{len(found)} {plural(len(found), 'pair')}: too few have a measurement to compare them"
        )
        verdict = Verdict.PASS if is_known else Verdict.UNKNOWN
        fix = "run it on three nodes or more" if len(found) == 1 else ""
        lines = evidence(run.line for run in runs[: log.KEPT] if run.line is not None)
        return Check(name="pairs", verdict=verdict, says=says, fix=fix, evidence=lines)
    slow.sort(key=lambda each: each[1].of_median or 0.0)
    told = "; ".join(_pair_in_words(pair) for _, pair in slow[:4])
    more = f"; {len(slow) - 4} more" if len(slow) > 4 else ""
    named = f"; {joined(bad)} with every partner" if bad else ""
    if bad:
        fix = f"take {joined(bad)} out of service"
    else:
        fix = "run each node of the slow pair with a node of a fast pair, which shows the bad node"
    return Check(
        name="pairs",
        verdict=Verdict.FAIL,
        says=f"{len(slow)} of {len(found)} pairs slow{named}: {told}{more}",
        fix=fix,
        evidence=evidence(run.line for run, _ in slow[: log.KEPT] if run.line is not None),
    )


def _pair_in_words(pair: Pair) -> str:
    names = joined(pair.hosts) or "a pair without names"
    if pair.plateau_gb_s is None:
        return f"{names} measured nothing"
    share = f", {percent(pair.of_median)} of the median" if pair.of_median is not None else ""
    return f"{names} at {gb_s(pair.plateau_gb_s)}{share}"
