"""The simulation preempts the jobs that Kueue preempts.

The cases of fair sharing are those that Kueue checks itself with (preemption_fair_test.go of kubernetes-sigs/kueue,
read 2026-11-22), as numbers: three teams that own 3 vCPUs each, and one that owns none.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from hyperpod_cdk.workloads.admission.cohort import ClusterModel, Key, TeamQueue
from hyperpod_cdk.workloads.admission.preemption import Running, in_use, victims
from hyperpod_cdk.workloads.admission.requests import Workload
from tests.support.tables import row_by_row

KEY: Key = ("ml.m5.large", "cpu")
ENDLESS = Decimal(1000)

Jobs = Mapping[str, float | tuple[float, int]]
"""Jobs of a team by name: the vCPUs, and a priority other than 0."""


def _cluster(nominal: Mapping[str, int], weights: Mapping[str, int], *, fair: bool) -> ClusterModel:
    return ClusterModel(
        queues=tuple(
            TeamQueue(
                team=team,
                nominal={KEY: Decimal(owned)},
                borrows={KEY: ENDLESS},
                weight=weights.get(team, 1),
            )
            for team, owned in nominal.items()
        ),
        shares_fairly=fair,
    )


def _running(admitted: Mapping[str, Jobs]) -> list[Running]:
    """What runs; of equals the one that is named first is the youngest."""
    found: list[Running] = []
    for team, jobs in admitted.items():
        for name, about in jobs.items():
            vcpu, priority = about if isinstance(about, tuple) else (about, 0)
            workload = Workload(kind="Job", namespace=team, name=name, queue=None, priority_class=None, pod_sets=())
            found.append(
                Running(
                    workload=workload,
                    team=team,
                    priority=priority,
                    order=-len(found),
                    pod_sets=(),
                    wanted={KEY: Decimal(str(vcpu))},
                )
            )
    return found


def _stopped(cluster: ClusterModel, admitted: Mapping[str, Jobs], team: str, vcpu: float) -> set[str] | None:
    running = _running(admitted)
    found = victims(cluster, cluster.queue(team), {KEY: Decimal(str(vcpu))}, 0, running)
    if found is not None:
        # without them there is room, and none could be spared
        left = [each for each in running if each not in found]
        queue, wanted = cluster.queue(team), {KEY: Decimal(str(vcpu))}
        assert cluster.fits(queue, wanted, in_use(left))
        assert not any(cluster.fits(queue, wanted, in_use([*left, each])) for each in found)
    return None if found is None else {each.workload.name for each in found}


THREE = {"a": 3, "b": 3, "c": 3, "none": 0}
UNITS_A = {"a1": 1, "a2": 1, "a3": 1}
UNITS_B = {"b1": 1, "b2": 1, "b3": 1, "b4": 1, "b5": 1}

FAIR: dict[str, tuple[Mapping[str, Jobs], str, float, set[str] | None]] = {
    "own quota, from who uses most": ({"a": UNITS_A, "b": UNITS_B, "c": {"c1": 1}}, "c", 1, {"b1"}),
    "own quota, where one of the greatest is not enough": (
        {"a": {"a1": 3, "a2": 1}, "b": {"b1": 2, "b2": 3}},
        "c",
        3,
        {"a1"},
    ),
    "borrowing, from who uses most": ({"a": UNITS_A, "b": UNITS_B, "c": {"c1": 1}}, "a", 1, {"b1"}),
    "one of each who borrows": (
        {"a": {"a1": 0.5, "a2": 0.5, "a3": 3}, "b": {"b1": 0.5, "b2": 0.5, "b3": 3}},
        "c",
        2,
        {"a1", "b1"},
    ),
    "nobody borrows": (
        {"a": UNITS_A, "b": {"b1": 1, "b2": 1, "b3": 1}, "c": {"c1": 1, "c2": 1, "c3": 1}},
        "c",
        1,
        None,
    ),
    "it would only turn the imbalance": ({"a": UNITS_A, "b": UNITS_B}, "a", 2, None),
    "own jobs of lower priority": (
        {"a": {"a1": (1, -1), "a2": (1, -1), "a3": 1, "a4": 1}, "b": UNITS_B},
        "a",
        2,
        {"a1", "a2"},
    ),
    "own jobs and those of who uses most": (
        {"a": {"a1": (1, -1), "a2": 1, "a3": 1}, "b": {**UNITS_B, "b6": 1}},
        "a",
        2,
        {"a1", "b1"},
    ),
    "a huge job, if there is no other": ({"b": {"b1": 9}}, "a", 2, {"b1"}),
    "no huge job for a huge one": ({"a": {"a1": 2}, "b": {"b1": 7}}, "a", 5, None),
    "no smaller ones for a huge one": ({"b": {"b1": 2, "b2": 2, "b3": 3}}, "a", 6, None),
    "own and others beyond the quota": (
        {"a": {"a1": (2, -1), "a2": (1, -1)}, "b": {"b1": 3, "b2": 3}},
        "a",
        4,
        {"a1", "b1"},
    ),
    "what leaves the other with no greater share": (
        {"b": {"b1": 2, "b2": 1, "b3": 2}, "c": {"c1": 1}},
        "a",
        3.5,
        {"b2"},
    ),
    "of two teams, if the greatest share becomes less": (
        {"b": {"b1": 2, "b2": 2.5}, "c": {"c1": 2, "c2": 2.5}},
        "a",
        3.5,
        {"b1", "c1"},
    ),
    "and not back again": ({"a": {"a1": 3.5}, "b": {"b2": 2.5}, "c": {"c2": 2.5}}, "b", 2, None),
    "none that would put the other below its quota": (
        {"b": {"b1": 3, "b2": 3}, "c": {"c1": 3}},
        "a",
        4,
        None,
    ),
    "low priorities of others do not count": (
        {
            "a": UNITS_A,
            "b": {"b1": 1, "b2": 1, "b3": 1},
            "none": {"n1": (1, -3), "n2": (1, -3), "n3": (1, -3)},
        },
        "a",
        2,
        None,
    ),
}


@row_by_row("name", FAIR)
def test_fair_sharing(name: str) -> None:
    """Each case of Kueue's own, with both of its strategies and equal weights."""
    admitted, team, vcpu, expected = FAIR[name]
    assert _stopped(_cluster(THREE, {}, fair=True), admitted, team, vcpu) == expected


WEIGHTS: dict[str, tuple[Mapping[str, int], Mapping[str, int], Mapping[str, Jobs], str, set[str] | None]] = {
    "a greater weight takes more": (
        {"a": 3, "b": 3, "c": 10},
        {"a": 2, "b": 1, "c": 1},
        {"a": {f"a{n}": 1 for n in range(1, 8)}, "b": {f"b{n}": 1 for n in range(1, 8)}, "c": {"c1": 1, "c2": 1}},
        "a",
        {"b1"},
    ),
    "a smaller weight does not": (
        {"a": 3, "b": 3, "c": 10},
        {"a": 2, "b": 1, "c": 1},
        {"a": {f"a{n}": 1 for n in range(1, 8)}, "b": {f"b{n}": 1 for n in range(1, 8)}, "c": {"c1": 1, "c2": 1}},
        "b",
        None,
    ),
    "borrowed without a weight": (
        {"a": 3, "b": 3},
        {"a": 1, "b": 0},
        {"a": UNITS_A, "b": {"b1": 1, "b2": 1}, "c": {}},
        "a",
        set(),
    ),
    "anything borrowed without a weight": (
        {"a": 3, "b": 0, "c": 3},
        {"a": 1, "b": 0, "c": 1},
        {"a": UNITS_A, "b": {"b1": 1, "b2": 1, "b3": 1}},
        "a",
        {"b1"},
    ),
    "nothing owned, even without a weight": (
        {"a": 3, "b": 3},
        {"a": 1, "b": 0},
        {"a": UNITS_A, "b": {"b1": 1, "b2": 1, "b3": 1}},
        "a",
        None,
    ),
    "the own, without a weight": (
        {"a": 3, "b": 3},
        {"a": 0, "b": 1},
        {"b": {"b1": 1, "b2": 1, "b3": 1, "b4": 1, "b5": 1, "b6": 1}},
        "a",
        {"b1"},
    ),
    "nothing from a weight for one who has none": (
        {"a": 0, "b": 0, "c": 6},
        {"a": 0, "b": 1, "c": 1},
        {"b": {"b1": 3, "b2": 3}},
        "a",
        None,
    ),
    "among two without a weight who borrows more": (
        {"a": 0, "b": 0, "c": 6},
        {"a": 0, "b": 0, "c": 1},
        {"b": {f"b{n}": 1 for n in range(1, 7)}},
        "a",
        {"b1"},
    ),
}


@row_by_row("name", WEIGHTS)
def test_weights(name: str) -> None:
    """One vCPU for a team, by weights; a weight of 0 is beyond all others once something is borrowed."""
    nominal, weights, admitted, team, expected = WEIGHTS[name]
    assert _stopped(_cluster(nominal, weights, fair=True), admitted, team, 1) == expected


def test_a_greater_weight_takes_two() -> None:
    """Kueue's own case: twice the weight, so twice as much may be borrowed."""
    cluster = _cluster({"a": 3, "b": 3, "c": 3}, {"a": 2}, fair=True)
    assert _stopped(cluster, {"a": UNITS_A, "b": {**UNITS_B, "b6": 1}}, "a", 2) == {"b1", "b2"}


CLASSIC: dict[str, tuple[Mapping[str, Jobs], str, float, set[str] | None]] = {
    "there is room": ({"a": {"a1": 3}}, "b", 6, set()),
    "the own is taken back from who borrows": ({"a": {"a1": 3, "a2": 3}, "b": {"b1": 3}}, "c", 3, {"a1"}),
    "as few as possible": ({"a": {"a1": 0.5, "a2": 1, "a3": 3, "a4": 1.5}, "b": {"b1": 3}}, "c", 1, {"a2"}),
    "nobody who keeps to the own": ({"a": {"a1": 3}, "b": {"b1": 3}, "c": {"c1": 3}}, "c", 1, None),
    "no borrowing at the cost of others": ({"a": {"a1": 3, "a2": 3}, "b": {"b1": 3}}, "b", 3, None),
    "own jobs of lower priority, beyond the own quota too": (
        {"a": {"a1": (3, -1), "a2": 3}, "b": {"b1": 3}},
        "a",
        3,
        {"a1"},
    ),
    "others before the own": ({"a": {"a1": (1, -1)}, "b": {"b1": 3, "b2": 3}, "c": {"c1": 2}}, "a", 2, {"b1"}),
    "the own where others cannot be asked": (
        {"a": {"a1": (1, -1), "a2": 2}, "b": {"b1": 3}, "c": {"c1": 3}},
        "a",
        1,
        {"a1"},
    ),
}


@row_by_row("name", CLASSIC)
def test_first_come_first_served(name: str) -> None:
    """Without fair sharing: up to the own quota from who borrows, beyond it from own jobs alone."""
    admitted, team, vcpu, expected = CLASSIC[name]
    assert _stopped(_cluster(THREE, {}, fair=False), admitted, team, vcpu) == expected
