"""The order of a template's resources, and running work in this order."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter

from hyperpod_cdk_rehearsal.embedded.cloudformation.references import resource_references
from hyperpod_cdk_rehearsal.embedded.cloudformation.template import Template, TemplateError

_PARALLEL = 10
"""Resources of one stack worked on at once."""


class WorkFailedError(Exception):
    """Raised by work on one resource that failed; nothing new is started after it."""


@dataclass
class Outcome:
    """Which of the resources failed, and which were never started because of it."""

    failed: list[str] = field(default_factory=list)
    not_started: list[str] = field(default_factory=list)


def dependencies(template: Template, included: Collection[str]) -> dict[str, frozenset[str]]:
    """What each included resource waits for: DependsOn, and every resource its properties refer to."""
    found = {}
    for logical_id in included:
        definition = template.resources[logical_id]
        needs = resource_references(template, definition.properties) | set(definition.depends_on)
        found[logical_id] = frozenset((needs - {logical_id}) & set(included))
    return found


def check_acyclic(template: Template) -> None:
    """Raise TemplateError if resources wait for each other, regardless of conditions."""
    loops = [
        name
        for name, definition in template.resources.items()
        if name in {*definition.depends_on, *resource_references(template, definition.properties)}
    ]
    members = _in_circles(dependencies(template, template.resources))
    if members or loops:
        raise TemplateError(f"Circular dependency between resources: [{', '.join(members or loops)}]")


def ordered(waits_for: Mapping[str, frozenset[str]]) -> list[str]:
    """Return the resources, each after those it waits for; otherwise in the given order."""
    position = {name: index for index, name in enumerate(waits_for)}
    names = list(waits_for)
    sorter = _sorter(waits_for)
    sorter.prepare()
    ready, order = [position[name] for name in sorter.get_ready()], list[str]()
    heapq.heapify(ready)
    while ready:
        order.append(names[heapq.heappop(ready)])
        sorter.done(order[-1])
        for name in sorter.get_ready():
            heapq.heappush(ready, position[name])
    return order


def reverse(waits_for: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    """Return the reversed edges: the resources that must be deleted before each one."""
    reversed_edges: dict[str, set[str]] = {name: set() for name in waits_for}
    for name, needs in waits_for.items():
        for needed in needs:
            if needed in reversed_edges:
                reversed_edges[needed].add(name)
    return {name: frozenset(edges) for name, edges in reversed_edges.items()}


def run(
    waits_for: Mapping[str, frozenset[str]], work: Callable[[str], None], *, stop_on_failure: bool = True
) -> Outcome:
    """Run the work of each resource after that of its dependencies, independent ones in parallel.

    Work fails by raising WorkFailedError. With `stop_on_failure`, nothing new starts after a failure; without it, only
    dependents of the failed resource are skipped. Running work is always awaited.
    """
    remaining = {name: {need for need in needs if need in waits_for} for name, needs in waits_for.items()}
    outcome = Outcome()
    running: dict[Future[None], str] = {}
    with ThreadPoolExecutor(_PARALLEL, thread_name_prefix=threading.current_thread().name) as pool:
        while True:
            may_start = not (outcome.failed and stop_on_failure)
            for name in [name for name, needs in remaining.items() if not needs] if may_start else []:
                del remaining[name]
                running[pool.submit(work, name)] = name
            if not running:
                break
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                name = running.pop(future)
                try:
                    future.result()
                except WorkFailedError:
                    outcome.failed.append(name)
                else:
                    for needs in remaining.values():
                        needs.discard(name)
    outcome.not_started = list(remaining)
    return outcome


def _in_circles(waits_for: Mapping[str, frozenset[str]]) -> list[str]:
    """Return the resources that wait for themselves, directly or indirectly."""
    try:
        _sorter(waits_for).prepare()
    except CycleError:
        # takes a tenth of a second to load, and valid templates never need it
        import networkx as nx  # noqa: PLC0415 - as above

        graph = nx.DiGraph((needed, name) for name, needs in waits_for.items() for needed in needs)
        parts = nx.strongly_connected_components(graph)
        return sorted({name for part in parts if len(part) > 1 for name in part})
    return []


def _sorter(waits_for: Mapping[str, frozenset[str]]) -> TopologicalSorter[str]:
    return TopologicalSorter({name: needs & waits_for.keys() for name, needs in waits_for.items()})
