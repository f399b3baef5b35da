"""Evaluates a log: EFA or TCP, bandwidth, slow pairs; the verdict is pass, fail or unknown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from hyperpod_cdk.catalog import baselines, instance_types
from hyperpod_cdk.catalog.instance_types import InstanceType
from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.catalog.sentences import plural
from hyperpod_cdk.workloads.report import health, log, measures, pairs, problems
from hyperpod_cdk.workloads.report.lustre import lustre_check
from hyperpod_cdk.workloads.report.measures import Beside, gb_s, hosts
from hyperpod_cdk.workloads.report.model import Check, Report, Run, Size, Verdict, worst
from hyperpod_cdk.workloads.report.network import fabrics, interfaces_check, network, network_check
from hyperpod_cdk.workloads.report.weighing import Point, evidence, weighed

_SHOWN = 3
_CUT = "provide the complete log; if this is the complete log, check how the job's pods ended"
_NO_TEST = "provide the complete log of nccl-tests, fi_info, nccom-test or dcgmi diag"
_TIMED_OUT = 124
"""The exit code of timeout."""

_KILLED = 137
_WORKERS = "check which worker pods do not run, and that each is on its own node"
_SPLIT = "provide the logs of fewer tests at a time"
_WRONG = "run GPU diagnostics (kind: dcgm) on these nodes before you train on them"


@dataclass(frozen=True, kw_only=True)
class _Place:
    """The instance type and nodes of a test, as far as they are known."""

    row: InstanceType | None
    types: tuple[InstanceType, ...]
    type_from: Literal["option", "job", "device", "unknown"]
    nodes: int | None
    nodes_from: Literal["option", "job", "hosts", "unknown"]

    @property
    def is_contradicted(self) -> bool:
        """Whether the GPUs in the log belong to other types."""
        return self.row is not None and bool(self.types) and self.row.name not in {row.name for row in self.types}


@dataclass(frozen=True, kw_only=True)
class _Judged:
    """A run with its name and the comparison with its baseline."""

    run: log.Run
    name: str | None
    beside: Beside
    report: Run


def judge(found: log.Log, *, instance_type: str | None = None, nodes: int | None = None) -> Report:
    """Return the report on a log.

    ``instance_type`` and ``nodes`` describe where the test ran, and override the values in the log. If the log does
    not allow a check, it is omitted or unknown, never passed. Raises ValueError for a type that the catalog does not
    know.
    """
    place = _place(found, instance_type, nodes)
    is_paired = pairs.paired(found.runs)
    two = [run for run in found.runs if is_paired]
    told = network(found, nodes=_nodes_of_network(found, place))
    judged = [_judged(run, place, is_paired=is_paired) for run in found.runs]
    all_tests = health.tests(found)
    all_pairs = pairs.pairs(two)
    bad = pairs.suspects(all_pairs)
    types = (place.row,) if place.row is not None else place.types
    checks = [
        network_check(found, told, types),
        interfaces_check(found, told, place.row),
        lustre_check(found),
        *_run_checks(found, judged),
        pairs.check(two, all_pairs, bad),
        _left_out_check(found),
        _nodes_check(found, place, is_paired=is_paired),
        _type_check(found, place),
        _errors_check(found),
        health.check(found, all_tests),
    ]
    kept = tuple(check for check in checks if check is not None)
    verdict = worst(check.verdict for check in kept)
    return Report(
        version=1,
        verdict=verdict,
        summary=_summary(verdict, kept, found),
        instance_type=place.row.name if place.row is not None else None,
        instance_types=tuple(row.name for row in place.types),
        instance_type_from=place.type_from,
        nodes=place.nodes,
        nodes_from=place.nodes_from,
        checks=kept,
        network=told,
        runs=tuple(each.report for each in judged),
        pairs=all_pairs,
        suspects=bad,
        fabric=fabrics(found),
        health=all_tests,
        versions=dict(sorted(found.versions.items())),
        files=tuple(found.files),
        lines=found.lines,
    )


def _place(found: log.Log, instance_type: str | None, nodes: int | None) -> _Place:
    markers = [run.marker for run in found.runs if run.marker is not None]
    by_device = _types_by_device(found)
    row: InstanceType | None = None
    type_from: Literal["option", "job", "device", "unknown"] = "unknown"
    if instance_type is not None:
        row, type_from = instance_types.get(instance_type), "option"
        if row is None:
            near = instance_types.closest(instance_type)
            hint = f"; did you mean {near}?" if near else ""
            raise ValueError(f'must be an instance type of the catalog, got "{instance_type}"{hint}')
    else:
        stated = _rows(sorted(found.instance_types))
        if stated:
            type_from = "job"
            # a flexible group's job lists all its types; the GPUs may show which one it is
            by_device = tuple(each for each in by_device if each in stated) or by_device or stated
            row = stated[0] if len(stated) == 1 else None
        elif by_device:
            type_from = "device"
        if row is None and len(by_device) == 1:
            row = by_device[0]
    counted, nodes_from = _nodes(found, markers, nodes)
    return _Place(row=row, types=by_device, type_from=type_from, nodes=counted, nodes_from=nodes_from)


def _nodes(
    found: log.Log, markers: Sequence[log.Marker], nodes: int | None
) -> tuple[int | None, Literal["option", "job", "hosts", "unknown"]]:
    if nodes is not None:
        return nodes, "option"
    stated = {marker.nodes for marker in markers if marker.nodes is not None}
    if len(stated) == 1 and not pairs.paired(found.runs):
        return stated.pop(), "job"
    named = {host for run in found.runs for host in hosts(run)} or {each.node for each in found.counted}
    return (len(named), "hosts") if named else (None, "unknown")


def _types_by_device(found: log.Log) -> tuple[InstanceType, ...]:
    """Return the types with the GPUs in the log, and with at least as many of them as a host shows."""
    devices = {device.name for run in found.runs for device in run.devices}
    most = max((_most_per_host(run) for run in found.runs), default=0)
    fitting = [{row.name for row in baselines.types_with(name, at_least=most)} for name in devices]
    names = set.intersection(*fitting) if fitting else set()
    return _rows(name for name in instance_types.names() if name in names)


def _rows(names: Iterable[str]) -> tuple[InstanceType, ...]:
    rows = (instance_types.get(name) for name in names)
    return tuple(row for row in rows if row is not None)


def _most_per_host(run: log.Run) -> int:
    counts: dict[str, int] = {}
    for device in run.devices:
        counts[device.host] = counts.get(device.host, 0) + 1
    return max(counts.values(), default=0)


def _nodes_of_network(found: log.Log, place: _Place) -> int | None:
    """Return 1 if every run was on a single node, otherwise None."""
    counts = {len(hosts(run)) or None for run in found.runs}
    return 1 if counts == {1} or (counts <= {None} and place.nodes == 1) else None


def _judged(run: log.Run, place: _Place, *, is_paired: bool) -> _Judged:
    name, name_from = measures.collective(run)
    named = hosts(run)
    marked = run.marker.nodes if run.marker is not None else None
    nodes = len(named) or (2 if is_paired else marked or place.nodes)
    beside = measures.beside_baseline(
        run,
        instance_type=place.row.name if place.row is not None else None,
        nodes=nodes,
        name=name,
    )
    if place.row is not None and place.is_contradicted:
        beside = Beside(verdict=Verdict.UNKNOWN, says=f"the log's GPUs are not those of {place.row.name}")
    if not run.sizes:
        beside = Beside(verdict=Verdict.UNKNOWN, says="nothing was measured")
    wrong = measures.wrong(run)
    states = [beside.verdict]
    if _is_wrong(run):
        states.append(Verdict.FAIL)
    if run.exit_code is not None or not run.is_complete:
        states.append(Verdict.FAIL)
    if run.bad_rows or run.sizes_left_out or not _is_compared(run):
        states.append(Verdict.UNKNOWN)
    first = run.line or log.Line("", 0, "")
    report = Run(
        tool=run.tool,
        collective=name,
        collective_from=name_from,
        pair=named if is_paired and len(named) == 2 else (),
        hosts=named,
        nodes=nodes,
        ranks=len(run.devices) or None,
        sizes=tuple(_size(size) for size in run.sizes),
        plateau_gb_s=measures.plateau(run),
        average_gb_s=run.average_gb_s,
        wrong=wrong,
        memory_limit_bytes=run.memory_limit_bytes,
        exit_code=run.exit_code,
        complete=run.is_complete,
        verdict=worst(states),
        comparison=beside.comparison,
        begins=evidence([first])[0],
    )
    return _Judged(run=run, name=name, beside=beside, report=report)


def _size(size: log.Size) -> Size:
    wrong = [timing.wrong for timing in size.timings if timing.wrong is not None]
    return Size(
        bytes=size.bytes,
        out_of_place_gb_s=size.out_of_place.bus_gb_s if size.out_of_place else None,
        in_place_gb_s=size.in_place.bus_gb_s if size.in_place else None,
        wrong=sum(wrong) if wrong else None,
    )


def _run_checks(found: log.Log, judged: Sequence[_Judged]) -> Iterator[Check]:
    if judged:
        yield _bandwidth_check(judged)
    elif found.signals:
        spoken = evidence(next(iter(found.signals.values())).lines)
        yield Check(name="bandwidth", verdict=Verdict.UNKNOWN, says="nothing was measured", fix="", evidence=spoken)
    wrong = [each for each in judged if _is_wrong(each.run)]
    results = _results_check(judged, wrong)
    if results is not None:
        yield results
    # a program that found wrong results also has an exit code, which is then not reported again
    open_runs = [
        each for each in judged if not each.run.is_complete or (each.run.exit_code is not None and each not in wrong)
    ]
    bad_rows = [line for each in judged for line in each.run.bad_rows]
    if open_runs or bad_rows:
        said = [f"{_called(each)} {_ends(each.run)}" for each in open_runs[:_SHOWN]]
        if len(open_runs) > _SHOWN:
            said.append(f"{len(open_runs) - _SHOWN} more like this")
        if bad_rows:
            said.append(
                f"{len(bad_rows)} line{'s have' if len(bad_rows) > 1 else ' has'} no number where one is expected"
            )
        ended = [each for each in open_runs if each.run.exit_code is not None]
        last = [each.run.sizes[-1].line if each.run.sizes else each.run.line for each in ended or open_runs]
        lines = [line for line in [*last, *bad_rows] if line is not None]
        yield Check(
            name="completeness",
            verdict=Verdict.FAIL if open_runs else Verdict.UNKNOWN,
            says="; ".join(said),
            fix="check the log of its pods, and their events" if ended else _CUT,
            evidence=evidence(lines[: log.KEPT]),
        )


def _is_wrong(run: log.Run) -> bool:
    return bool(measures.wrong(run)) or run.is_out_of_bounds or any(_off_lines(run))


def _off_lines(run: log.Run) -> Iterator[log.Line]:
    return (size.line for size in run.sizes if any(timing.is_off for timing in size.timings))


def _is_compared(run: log.Run) -> bool:
    """Return whether the results of a run were verified; nccom-test does not report it."""
    return run.tool != "nccl-tests" or any(timing.is_compared for size in run.sizes for timing in size.timings)


def _results_check(judged: Sequence[_Judged], wrong: Sequence[_Judged]) -> Check | None:
    """Check the results: the number of wrong values, the program's own verdict, or an error larger than allowed."""
    against = missing = proof = None
    if wrong:
        total = sum(each.report.wrong or each.run.out_of_bounds or 0 for each in wrong)
        lines = [line for each in wrong for line in _wrong_lines(each.run)]
        names = ", ".join(dict.fromkeys(_called(each) for each in wrong))
        what = f"{total} wrong {plural(total, 'element')}" if total else "wrong results"
        against = Point(says=f"{what} ({names})", fix=_WRONG, lines=lines[: log.KEPT])
    compared = [each for each in judged if each.run.sizes and _is_compared(each.run)]
    blind = [each for each in judged if each.run.sizes and not _is_compared(each.run)]
    if blind:
        names = ", ".join(dict.fromkeys(_called(each) for each in blind))
        lines = [each.run.sizes[-1].line for each in blind]
        missing = Point(says=f"results were not verified ({names})", fix="run it with -c 1", lines=lines[: log.KEPT])
    if any(each.report.wrong is not None for each in compared):
        ends = [each.run.bounds or each.run.sizes[-1].line for each in compared]
        proof = Point(says="no wrong element", lines=ends[: log.KEPT])
    return weighed("results", against=against, missing=missing, proof=proof)


def _bandwidth_check(judged: Sequence[_Judged]) -> Check:
    """Check the bandwidth of all runs: the worst comparison counts; runs without a baseline have no effect.

    With several nodes, one collective that reaches the published bandwidth proves the network; others are reported.
    """
    compared = [each for each in judged if each.beside.comparison is not None]
    verdict = worst(each.beside.verdict for each in compared or judged)
    telling = [each for each in compared or judged if each.beside.verdict is verdict]
    told = telling[:_SHOWN] if verdict is not Verdict.PASS else telling[:1]
    says = "; ".join(f"{_called(each)} {_reached(each)}" for each in told)
    if len(telling) > len(told) and verdict is not Verdict.PASS:
        says += f"; {len(telling) - len(told)} more alike"
    lines = [line for each in told if (line := _compared_line(each)) is not None]
    return Check(
        name="bandwidth", verdict=verdict, says=says, fix=_bandwidth_fix(verdict, told), evidence=evidence(lines)
    )


def _bandwidth_fix(verdict: Verdict, told: Sequence[_Judged]) -> str:
    if verdict is Verdict.FAIL and not any(each.report.pair for each in told):
        return "check the network first; if EFA is in use on all nodes, run the test in pairs, which shows the bad node"
    if verdict is Verdict.UNKNOWN and any(each.beside.lacks_type for each in told):
        return "specify the instance type (--instance-type)"
    return ""


def _reached(each: _Judged) -> str:
    if not each.run.sizes:
        return "measured nothing"
    comparison = each.beside.comparison
    if comparison is not None:
        return f"reached {gb_s(comparison.measured_gb_s)}, {each.beside.says}"
    value = each.report.plateau_gb_s
    return f"reached {gb_s(value)}; {each.beside.says}" if value is not None else "measured no bandwidth"


def _compared_line(each: _Judged) -> log.Line | None:
    if each.beside.comparison is None:
        return each.run.sizes[-1].line if each.run.sizes else each.run.line
    wanted = each.beside.comparison.measured_bytes
    return next((size.line for size in each.run.sizes if size.bytes == wanted), None)


def _left_out_check(found: log.Log) -> Check | None:
    """Return a check about the parts of a log that exceed what is read; None if everything was read."""
    left_out = found.left_out + Counter({"sizes": sum(run.sizes_left_out for run in found.runs)})
    if not +left_out:
        return None
    said = ", ".join(f"{count} {what}" for what, count in sorted((+left_out).items()))
    return weighed("completeness", missing=Point(says=f"the log is too large: {said} were not read", fix=_SPLIT))


def _nodes_check(found: log.Log, place: _Place, *, is_paired: bool) -> Check | None:
    """Return a check about missing or additional nodes; None if there are none, or the number is unknown."""
    against = missing = None
    for run in () if is_paired else found.runs:
        marked = run.marker.nodes if run.marker is not None else None
        wanted = place.nodes if place.nodes_from == "option" else marked
        seen = len(hosts(run))
        lines = [run.line] if run.line is not None else []
        if wanted is None or seen == wanted:
            continue
        if seen:
            says = f"{seen} {plural(seen, 'node')} took part, not {wanted}"
            against = against or Point(says=says, fix=_WORKERS, lines=lines)
        elif run.sizes and not _is_of_nodes(run, place, wanted):
            says = f"the log does not show that {wanted} {plural(wanted, 'node')} took part"
            missing = missing or Point(says=says, fix="provide the complete log, with the list of ranks", lines=lines)
    return weighed("nodes", against=against, missing=missing or _without_result(found, place, is_paired=is_paired))


def _is_of_nodes(run: log.Run, place: _Place, nodes: int) -> bool:
    each = {row.accelerator_count for row in ((place.row,) if place.row is not None else place.types)}
    return len(each) == 1 and measures.fits_ranks(run, nodes * each.pop()) is True


def _without_result(found: log.Log, place: _Place, *, is_paired: bool) -> Point | None:
    """Return a point about tests of single nodes without a result, or about missing nodes; None if complete."""
    empty = [look for look in found.looks if not look.results and look.kind != "neuron-info"]
    if empty:
        names = list(dict.fromkeys(look.of for look in empty))
        shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
        lines = [look.line for look in empty]
        return Point(says=f"no result from {shown}", fix=_CUT, lines=lines[: log.KEPT])
    stated = [look.nodes for look in found.looks if look.nodes is not None]
    wanted = place.nodes if place.nodes_from == "option" else max(stated, default=None)
    if wanted is None:
        return None
    for seen, what, line in _looked_at(found, is_paired=is_paired):
        if seen != wanted:
            says = f"{what} of {seen} {plural(seen, 'node')}, not of {wanted}"
            return Point(says=says, fix="provide the logs of all pods, and check which ones do not run", lines=[line])
    return None


def _looked_at(found: log.Log, *, is_paired: bool) -> Iterator[tuple[int, str, log.Line]]:
    """Yield the number of nodes with results for each kind of test, with its first line."""
    if found.health:
        yield _distinct([each.of for each in found.health]), "diagnostics", found.health[0].line
    if found.counted:
        yield len({each.node for each in found.counted}), "interfaces", found.counted[0].line
    elif found.fabrics and not found.runs and found.fabric_lines.lines:
        yield (
            len({speaker.pod for speaker in found.fabrics}),
            "interfaces",
            found.fabric_lines.lines[0],
        )
    if is_paired and found.runs and found.runs[0].line is not None:
        yield len({host for run in found.runs for host in hosts(run)}), "pairs", found.runs[0].line


def _distinct(names: Sequence[str]) -> int:
    """Return the number of nodes; each entry without a name counts as a separate node."""
    return len({name for name in names if name}) + sum(1 for name in names if not name)


def _type_check(found: log.Log, place: _Place) -> Check | None:
    """Return a check if the GPUs in the log do not belong to the given instance type, otherwise None."""
    devices = tuple(dict.fromkeys(device.name for run in found.runs for device in run.devices))
    if place.row is None or not devices or place.row.name in {row.name for row in place.types}:
        return None
    if not place.types and not place.row.is_nvidia:
        return None
    return Check(
        name="instance type",
        verdict=Verdict.UNKNOWN,
        says=f"the GPUs of the log ({', '.join(devices[:_SHOWN])}) do not belong to {place.row.name}",
        fix="specify the instance type that it ran on (--instance-type)",
        evidence=(),
    )


def _errors_check(found: log.Log) -> Check | None:
    """Return a check about failures; None if there are none, or only failures before a test that completed later."""
    late = [name for name, problem in found.problems.items() if not _overcome(found, name, problem)]
    ended = _ended_check(found)
    is_whole = all(run.is_complete and run.exit_code is None for run in found.runs)
    has_result = bool(found.fabrics or found.health or found.counted)
    if ended is None and is_whole and found.runs:
        return _after_all_check(found, late)
    if has_result and is_whole and ended is None and not any(name != problems.UNKNOWN for name in late):
        return _warned_check(found)
    shown = late if has_result else list(found.problems)
    if not shown:
        return ended
    # a training pod can log failures from which it recovers
    is_test = bool(found.runs or has_result or found.looks or not found.signals)
    recovers = all(problems.KNOWN[name].may_pass for name in shown)
    fails = ended is not None or not recovers or (is_test and not has_result)
    return _check_of_problems(found, shown, Verdict.FAIL if fails else Verdict.UNKNOWN)


def _ended_check(found: log.Log) -> Check | None:
    """Return a check if a job failed outside of a run; None if a run or a diagnostic already reports the failure."""
    if not found.exits.count or any(run.exit_code is not None for run in found.runs):
        return None
    named = {each.node for each in found.counted if each.found < each.expected} | health.failed(found)
    if found.exits.hosts and found.exits.hosts <= named:
        return None
    names = sorted(found.exits.hosts)
    shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
    says = f"the test itself failed{f' on {shown}' if shown else ''}"
    fix = "check the preceding lines, and the events of the pods"
    return weighed("errors", against=Point(says=says, fix=fix, lines=found.exits.lines))


def _after_all_check(found: log.Log, late: Sequence[str]) -> Check | None:
    """Check the failures and warnings in the log although every run completed: a known failure results in unknown."""
    broken = [name for name in late if problems.KNOWN[name].is_hardware]
    if broken:
        return _check_of_problems(found, broken, Verdict.FAIL)
    if any(name != problems.UNKNOWN for name in late):
        return _check_of_problems(found, late, Verdict.UNKNOWN, although=", although every run completed")
    return _warned_check(found)


def _warned_check(found: log.Log) -> Check | None:
    if not found.warnings.count:
        return None
    says = f"{_warned(found)}; every run completed" if found.runs else _warned(found)
    return weighed("errors", proof=Point(says=says, lines=found.warnings.lines[:1]))


def _overcome(found: log.Log, name: str, problem: log.Problem) -> bool:
    """Return whether a test started, or had a result, after the last line of a problem: in the same pod, because only
    its lines are in the order of time, or in any pod of the file for failures after which programs retry."""
    known = problems.KNOWN[name]
    if known.is_hardware:
        return False
    for (file, pod), last in problem.last.items():
        places = [place for place in found.progress if place[0] == file] if known.may_pass else [(file, pod)]
        if not any(place in found.progress and found.progress[place].number > last.number for place in places):
            return False
    return bool(problem.last)


def _check_of_problems(found: log.Log, names: Sequence[str], verdict: Verdict, *, although: str = "") -> Check:
    """Return a check with the most severe of these problems, a line of each, and the number of NCCL warnings."""
    first = min(names, key=list(problems.KNOWN).index)
    known = problems.KNOWN[first]
    lines = [line for name in names for line in found.problems[name].tally.lines[:1]]
    lead = found.problems[first].tally.lines[0]
    lines.sort(key=lambda line: (line != lead, line not in found.warnings.lines[:1]))
    counted = f" ({_warned(found)})" if found.warnings.count > 1 else ""
    return Check(
        name="errors",
        verdict=verdict,
        says=f"{known.says}{although}{counted}",
        fix=known.fix,
        evidence=evidence(lines[: log.KEPT]),
    )


def _warned(found: log.Log) -> str:
    """Return the number of NCCL warnings and the place of the first one, as text."""
    count, first = found.warnings.count, found.warnings.lines[0]
    times = {1: "once", 2: "twice"}.get(count, f"{count} times")
    return f"NCCL warned {times}, first in line {first.number}"


def _wrong_lines(run: log.Run) -> Iterator[log.Line]:
    for size in run.sizes:
        if any(timing.wrong or timing.is_off for timing in size.timings):
            yield size.line
    if run.is_out_of_bounds and run.bounds is not None:
        yield run.bounds


def _called(each: _Judged) -> str:
    name = each.name or "a collective"
    pair = each.report.pair
    return f"{name} of {joined(pair)}" if pair else name


def _ends(run: log.Run) -> str:
    after = _after(len(run.sizes))
    if run.exit_code is None:
        return f"ends {after}"
    if run.exit_code == _TIMED_OUT:
        return f"did not end in time, {after}"
    if run.exit_code == _KILLED:
        return f"was killed {after}"
    return f"failed with exit code {run.exit_code} {after}"


def _after(sizes: int) -> str:
    return "before the first size" if sizes == 0 else f"after {sizes} {plural(sizes, 'size')}"


def _summary(verdict: Verdict, checks: Sequence[Check], found: log.Log) -> str:
    if not checks:
        return f"no test found in {found.lines} {plural(found.lines, 'line')}; {_NO_TEST}"
    said = [check.says for check in checks if check.verdict is verdict or check.name == "network"]
    if any(check.name == "pairs" and check.verdict is verdict for check in checks):
        said = [check.says for check in checks if check.says in said and check.name != "bandwidth"]
    return "; ".join(said)
