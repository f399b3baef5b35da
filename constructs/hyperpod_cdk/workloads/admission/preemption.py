"""The jobs that Kueue preempts: within a team by priority, among teams to reclaim quota and to share it fairly."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from hyperpod_cdk.workloads.admission.cohort import (
    ZERO,
    Amounts,
    ClusterModel,
    InUse,
    Key,
    TeamQueue,
    is_borrowing,
    with_more,
)
from hyperpod_cdk.workloads.admission.requests import PodSet, Workload

_Fits = Callable[[InUse], bool]


@dataclass(frozen=True, kw_only=True)
class Running:
    """A workload, or one step in the growth of an elastic one; ``order`` is its position in the order of admission."""

    workload: Workload
    team: str
    priority: int
    order: int
    pod_sets: tuple[PodSet, ...]
    wanted: Amounts


def in_use(running: Iterable[Running]) -> InUse:
    """Return the amounts that each team uses."""
    total: dict[tuple[str, Key], Decimal] = {}
    for each in running:
        for key, value in each.wanted.items():
            total[each.team, key] = total.get((each.team, key), ZERO) + value
    return total


def victims(
    cluster: ClusterModel, queue: TeamQueue, wanted: Amounts, priority: int, running: Sequence[Running]
) -> list[Running] | None:
    """Return the jobs to preempt, as few as Kueue finds: empty if none is needed, None if preemption does not suffice.

    Candidates are the team's own jobs of lower priority, if it preempts its own, and jobs of teams that borrow the
    scarce resources; jobs of others first, then by lowest priority, then the most recent.
    """
    before = in_use(running)
    contested = [key for key, value in wanted.items() if value > cluster.available(queue, key, before)]
    if not contested:
        return []
    candidates = [
        each
        for each in running
        if any(each.wanted.get(key) for key in contested)
        and (
            (queue.preempts_own and each.priority < priority)
            if each.team == queue.team
            else is_borrowing(cluster.queue(each.team), contested, before)
        )
    ]
    candidates.sort(key=lambda each: (each.team == queue.team, each.priority, -each.order))
    search = _Search(cluster, queue, wanted, contested, before)
    return search.fair(candidates) if cluster.shares_fairly else search.classic(candidates)


@dataclass(frozen=True)
class _Search:
    cluster: ClusterModel
    queue: TeamQueue
    wanted: Amounts
    contested: Sequence[Key]
    before: InUse

    def classic(self, candidates: Sequence[Running]) -> list[Running] | None:
        """First come, first served: reclaim lent quota up to the own quota; beyond it, preempt only own jobs."""
        for borrowing in (True, False):

            def fits(trial: InUse, *, borrowing: bool = borrowing) -> bool:
                within = not is_borrowing(self.queue, self.wanted, self._after(trial))
                return self._fits(trial) and (borrowing or within)

            reclaims = not borrowing or not is_borrowing(self.queue, self.contested, self._after(self.before))
            trial, taken = self.before, list[Running]()
            for each in candidates:
                is_own = each.team == self.queue.team
                if not is_own and not (reclaims and is_borrowing(self.cluster.queue(each.team), self.contested, trial)):
                    continue
                trial = with_more(trial, each.team, each.wanted, sign=-1)
                taken.append(each)
                if fits(trial):
                    return _fewest(taken, trial, fits)
        return None

    def fair(self, candidates: Sequence[Running]) -> list[Running] | None:
        """Fair sharing: preempt the team that borrows most for its weight, never for one that would borrow more."""
        trial, taken, refused = self.before, list[Running](), list[Running]()
        left = list(candidates)
        is_entitled = not is_borrowing(self.queue, self.contested, self._after(self.before))
        while (team := self._greediest(left, trial)) is not None:
            mine = self.cluster.share(self.queue.team, self._after(trial))
            for each in [each for each in left if each.team == team]:
                left.remove(each)
                without = with_more(trial, team, each.wanted, sign=-1)
                if team != self.queue.team and not is_entitled and mine > self.cluster.share(team, without):
                    refused.append(each)
                    continue
                trial = without
                taken.append(each)
                break
            if taken and self._fits(trial):
                return _fewest(taken, trial, self._fits)
        # the second rule compares shares before the removal, and preempts at most one job of each team
        while (team := self._greediest(refused, trial)) is not None:
            first = next(each for each in refused if each.team == team)
            refused = [each for each in refused if each.team != team]
            if self.cluster.share(self.queue.team, self._after(trial)) < self.cluster.share(team, trial):
                trial = with_more(trial, team, first.wanted, sign=-1)
                taken.append(first)
                if self._fits(trial):
                    return _fewest(taken, trial, self._fits)
        return None

    def _greediest(self, candidates: Sequence[Running], trial: InUse) -> str | None:
        """Return the team with the greatest share among those with candidates that borrow; the own need not borrow."""
        after, teams = self._after(trial), dict.fromkeys(each.team for each in candidates)
        shares = {team: self.cluster.share(team, after) for team in teams}
        eligible = [team for team in teams if team == self.queue.team or shares[team] > (0, ZERO)]
        return max(eligible, key=shares.__getitem__, default=None)

    def _after(self, trial: InUse) -> InUse:
        return with_more(trial, self.queue.team, self.wanted)

    def _fits(self, trial: InUse) -> bool:
        return self.cluster.fits(self.queue, self.wanted, trial)


def _fewest(taken: Sequence[Running], trial: InUse, fits: _Fits) -> list[Running]:
    """Restore every job whose preemption is not needed, from the last but one to the first."""
    needed = [taken[-1]]
    for each in reversed(taken[:-1]):
        again = with_more(trial, each.team, each.wanted)
        if fits(again):
            trial = again
        else:
            needed.insert(0, each)
    return needed
