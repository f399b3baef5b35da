"""Puts operations on stacks into as few steps as possible. Knows neither AWS nor templates, only the order."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from hyperpod_cdk.transitions.model import Action


@dataclass(frozen=True, kw_only=True)
class Order:
    """One stack's operation comes before another's, and why.

    ``is_checked`` says whether CloudFormation refuses the opposite order; a service does not refuse it, and does
    damage.
    """

    first: str
    then: str
    why: str
    is_checked: bool = True


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Stacks of one step, in their order."""

    action: Action
    stacks: tuple[str, ...]


class CircleError(Exception):
    """No order satisfies all of ``orders``: each leads to the next, and the last one to the first."""

    def __init__(self, orders: Sequence[Order]) -> None:
        super().__init__("; ".join(order.why for order in orders))
        self.orders: tuple[Order, ...] = tuple(orders)


def batches(
    actions: Mapping[str, Action],
    orders: Sequence[Order],
    dependencies: Mapping[str, Iterable[str]],
) -> list[Batch]:
    """Return the fewest steps that satisfy all ``orders``.

    ``actions`` are the operations by stack; ``dependencies`` are those of the app, by which ``cdk deploy`` orders the
    stacks of one call. Deployed stacks also follow them unless an order contradicts, and deleted stacks follow them in
    reverse. Stacks are deleted as late as that allows. Raises CircleError.
    """
    known = [order for order in orders if order.first in actions and order.then in actions]
    then: dict[str, set[str]] = {name: set() for name in actions}
    for order in known:
        then[order.first].add(order.then)
    _refuse_circles(then, known)
    of_app = {
        name: {each for each in dependencies.get(name, ()) if actions.get(each) == action}
        for name, action in actions.items()
    }
    for name, action in actions.items():
        for needed in sorted(of_app[name]):
            # what others depend on is created before them, and deleted after them
            first, last = (needed, name) if action == "deploy" else (name, needed)
            if not _leads(then, last, first):
                then[first].add(last)
    return _fewest(actions, then, of_app)


def _refuse_circles(then: Mapping[str, set[str]], orders: Sequence[Order]) -> None:
    try:
        TopologicalSorter(then).prepare()
    except CycleError as error:
        # each comes before the next by the given followers
        circle = list(reversed(error.args[1]))
        between = {(order.first, order.then): order for order in orders}
        raise CircleError([between[pair] for pair in pairwise(circle)]) from None


def _leads(then: Mapping[str, set[str]], first: str, last: str) -> bool:
    seen, pending = set[str](), [first]
    while pending:
        name = pending.pop()
        if name == last:
            return True
        if name not in seen:
            seen.add(name)
            pending += then[name]
    return False


def _fewest(actions: Mapping[str, Action], then: Mapping[str, set[str]], of_app: Mapping[str, set[str]]) -> list[Batch]:
    """Remove whole steps from the end until nothing is left: the largest possible step is always right."""
    start = frozenset(actions)
    ways: dict[frozenset[str], list[Batch]] = {start: []}
    pending = deque([start])
    while pending:
        left = pending.popleft()
        if not left:
            return ways[left]
        for action in ("delete", "deploy"):
            taken = _last(left, action, actions, then, of_app)
            rest = left - set(taken)
            if taken and rest not in ways:
                ways[rest] = [Batch(action=action, stacks=tuple(taken)), *ways[left]]
                pending.append(rest)
    raise AssertionError("a graph without circles always has a last operation")


def _last(
    left: frozenset[str],
    action: Action,
    actions: Mapping[str, Action],
    then: Mapping[str, set[str]],
    of_app: Mapping[str, set[str]],
) -> list[str]:
    """Return the most operations of one kind that can be the last step of what is left, in their order."""
    taken: list[str] = []
    is_growing = True
    while is_growing:
        is_growing = False
        for name in reversed([each for each in actions if each in left and actions[each] == action]):
            if name in taken:
                continue
            later = then[name] & left
            if later <= set(taken) and (action == "delete" or _ordered_by_app(name, later, taken, of_app)):
                taken.insert(0, name)
                is_growing = True
    return taken


def _ordered_by_app(name: str, later: set[str], taken: Sequence[str], of_app: Mapping[str, set[str]]) -> bool:
    """Whether one ``cdk deploy`` of ``taken`` and this one deploys it before all of ``later``."""
    after = {name}
    is_growing = True
    while is_growing:
        more = {each for each in taken if each not in after and of_app[each] & after}
        after |= more
        is_growing = bool(more)
    return later <= after
