"""The order of steps: as few as possible, and CloudFormation refuses none of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from itertools import chain, combinations, permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperpod_cdk.templates.assembly import Assembly, Stack
from hyperpod_cdk.templates.difference import compare
from hyperpod_cdk.transitions.model import Action
from hyperpod_cdk.transitions.needs import needs
from hyperpod_cdk.transitions.order import Batch, CircleError, Order, batches
from tests.transitions.stacks import assembly, stack

NAMES = ("a", "b", "c", "d")
"""Each may depend on those before it, as in an app."""


@st.composite
def _assembly(draw: st.DrawFn) -> Assembly:
    """Some of the stacks, each exporting some of two things and importing some of what those before it export."""
    given_: list[str] = []
    found: list[Stack] = []
    for name in NAMES:
        if not draw(st.booleans() if name in "bcd" else st.just(value=True)):
            continue
        used = sorted(draw(st.sets(st.sampled_from(given_))) if given_ else set())
        exported = sorted(f"{name}{each}" for each in draw(st.sets(st.sampled_from("12"))))
        before = [each.name.removeprefix("dev-") for each in found]
        needed = sorted({each[0] for each in used} | (draw(st.sets(st.sampled_from(before))) if before else set()))
        found.append(stack(name, exports=exported, imports=used, after=needed))
        given_ += exported
    return assembly(*found)


class CloudFormation:
    """What of exports CloudFormation refuses, and nothing else. Source: its user guide, Outputs and Fn::ImportValue."""

    def __init__(self, base: Assembly, head: Assembly) -> None:
        self.sides = {"base": self._read(base), "head": self._read(head)}
        self.dependencies = {each.name: set(each.dependencies) for each in head.stacks}

    @staticmethod
    def _read(side: Assembly) -> dict[str, tuple[frozenset[str], frozenset[str]]]:
        return {
            each.name: (
                frozenset(each.outputs),
                frozenset(
                    row["Fn::ImportValue"]
                    for row in each.template["Resources"]
                    .get("Reader", {})
                    .get("Properties", {})
                    .get("Description", {})
                    .get("Fn::Join", ["", []])[1]
                ),
            )
            for each in side.stacks
        }

    def after(self, state: Mapping[str, str], name: str, action: Action) -> dict[str, str] | None:
        """Return what stands after one operation, None where it is refused."""
        used = set(chain.from_iterable(self.sides[where][each][1] for each, where in state.items() if each != name))
        had = self.sides[state[name]][name][0] if name in state else frozenset()
        if action == "delete":
            return None if had & used else {each: where for each, where in state.items() if each != name}
        exports, imports = self.sides["head"][name]
        given_ = set(chain.from_iterable(self.sides[where][each][0] for each, where in state.items() if each != name))
        if (had - exports) & used or not imports <= given_:
            return None
        return {**state, name: "head"}

    def after_batch(self, state: Mapping[str, str], batch: Batch) -> dict[str, str] | None:
        """Return what stands after a step in whichever order the CDK CLI may work on it; None where one is refused."""
        found: dict[str, str] | None = None
        for order in self._orders(batch):
            now: dict[str, str] | None = dict(state)
            for name in order:
                now = self.after(now, name, batch.action) if now is not None else None
            if now is None:
                return None
            found = now
        return found

    def _orders(self, batch: Batch) -> Iterator[tuple[str, ...]]:
        if batch.action == "delete":
            # one after another, as they stand there
            yield batch.stacks
            return
        for order in permutations(batch.stacks):
            if all(not self.dependencies[name] & set(order[place:]) for place, name in enumerate(order)):
                yield order

    def fewest(self, start: Mapping[str, str], actions: Mapping[str, Action]) -> int | None:
        """Return the fewest steps by trying everything, None where there is no way."""
        pending = deque([(dict(start), frozenset(actions), 0)])
        seen = set()
        while pending:
            state, left, number = pending.popleft()
            if not left:
                return number
            if left in seen:
                continue
            seen.add(left)
            for action in ("deploy", "delete"):
                mine = [name for name in left if actions[name] == action]
                for size in range(1, len(mine) + 1):
                    for some in combinations(mine, size):
                        orders = [some] if action == "deploy" else list(permutations(some))
                        for one in orders:
                            now = self.after_batch(state, Batch(action=action, stacks=tuple(one)))
                            if now is not None:
                                pending.append((now, left - set(one), number + 1))
                                break
        return None


@settings(max_examples=40, deadline=None)
@given(_assembly(), _assembly())
def test_the_fewest_steps_of_which_cloudformation_refuses_none(base: Assembly, head: Assembly) -> None:
    cloudformation = CloudFormation(base, head)
    found = needs(base, head, compare(base, head))
    assert (found.missing, found.held, found.foreign) == ({}, [], {})
    start = dict.fromkeys((each.name for each in base.stacks), "base")
    # what does not differ is at the head already
    start |= {each.name: "head" for each in head.stacks if each.name not in found.actions}
    fewest = cloudformation.fewest(start, found.actions)
    dependencies = {each.name: each.dependencies for each in (*base.stacks, *head.stacks)}
    if fewest is None:
        with pytest.raises(CircleError):
            batches(found.actions, found.orders, dependencies)
        return
    ordered = batches(found.actions, found.orders, dependencies)
    state: dict[str, str] | None = start
    for batch in ordered:
        assert state is not None
        state = cloudformation.after_batch(state, batch)
    assert state == dict.fromkeys((each.name for each in head.stacks), "head"), ordered
    assert len(ordered) == fewest, ordered


def _why(first: str, then: str) -> Order:
    return Order(first=first, then=then, why=f"{first} before {then}")


@pytest.mark.parametrize(
    ("actions", "orders", "dependencies", "expected"),
    [
        pytest.param({}, [], {}, [], id="nothing"),
        pytest.param({"a": "deploy", "b": "deploy"}, [], {"b": ["a"]}, [("deploy", "a", "b")], id="the app's order"),
        pytest.param(
            {"a": "deploy", "b": "deploy"},
            [_why("b", "a")],
            {"b": ["a"]},
            [("deploy", "b"), ("deploy", "a")],
            id="against the app's order",
        ),
        pytest.param({"x": "delete", "a": "deploy"}, [], {}, [("deploy", "a"), ("delete", "x")], id="deleted last"),
        pytest.param(
            {"x": "delete", "a": "deploy", "b": "deploy"},
            [_why("b", "x"), _why("x", "a")],
            {"b": ["a"]},
            [("deploy", "b"), ("delete", "x"), ("deploy", "a")],
            id="deleted between",
        ),
        pytest.param(
            {"x": "delete", "y": "delete"}, [_why("y", "x")], {}, [("delete", "y", "x")], id="both deleted in order"
        ),
        pytest.param(
            {"a": "deploy", "b": "deploy", "c": "deploy"},
            [_why("c", "b")],
            {"b": ["a"], "c": ["a", "b"]},
            [("deploy", "a", "c"), ("deploy", "b")],
            id="what it depends on comes with it",
        ),
    ],
)
def test_orders(
    actions: dict[str, Action],
    orders: list[Order],
    dependencies: dict[str, list[str]],
    expected: list[tuple[str, ...]],
) -> None:
    assert [(each.action, *each.stacks) for each in batches(actions, orders, dependencies)] == expected


def test_a_circle_is_reported_from_its_beginning_to_its_end() -> None:
    orders = [_why("a", "b"), _why("b", "c"), _why("c", "a"), _why("c", "d")]
    with pytest.raises(CircleError) as error:
        batches(dict.fromkeys("abcd", "deploy"), orders, {})
    told = error.value.orders
    assert {each.why for each in told} == {"a before b", "b before c", "c before a"}
    assert all(one.then == other.first for one, other in zip(told, (*told[1:], told[0]), strict=True))


def test_an_unchanged_order_is_no_difference() -> None:
    assert [each.stacks for each in batches({"a": "deploy"}, [_why("b", "a"), _why("a", "c")], {})] == [("a",)]
