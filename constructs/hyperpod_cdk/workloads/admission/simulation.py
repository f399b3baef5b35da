"""Simulates how Kueue admits jobs under the environment's task governance, in the order of their submission.

Kueue's own rules (concepts and sources of release 0.19): quotas by instance type in one cohort, limits of lending and
borrowing, priorities within a team, reclaiming of lent quota, fair sharing by weight, all or nothing for each job.
AWS documents parts of the objects that HyperPod creates for Kueue: a flavor for each instance type, with all vCPUs,
memory, accelerators and EFA interfaces of the instances; a team that reclaims its quota preempts the borrower's jobs.
Further assumptions:

- a part of an instance has its share of the EFA interfaces, rounded up;
- a team that lends nothing keeps its whole quota, and a team with an inactive quota admits nothing;
- compute outside all quotas can be borrowed with ``idle_resource_sharing``, up to each team's limit;
- an elastic job grows only into idle compute.

Nodes do not affect admission and only cause warnings: Kueue counts quotas, and admitted pods may still wait for a node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Literal

from hyperpod_cdk.catalog import governance, scheduling
from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.config import Environment
from hyperpod_cdk.workloads.admission.cohort import (
    GIB,
    ZERO,
    Amounts,
    ClusterModel,
    InUse,
    Key,
    TeamQueue,
    is_borrowing,
    of_node,
    plus,
    with_more,
)
from hyperpod_cdk.workloads.admission.preemption import Running, in_use, victims
from hyperpod_cdk.workloads.admission.requests import Manifest, PodSet, Workload, workloads
from hyperpod_cdk.workloads.nodes import NodeShape, is_accelerator

__all__ = ["Admission", "Amount", "ClusterModel", "Decision", "Status", "Usage", "simulate"]

Status = Literal["admitted", "waiting", "never", "unmanaged"]
"""``waiting``: others use the quota; ``never``: impossible with this setup; ``unmanaged``: runs outside quotas."""

OUTSIDE_QUOTAS = "outside all quotas"
"""The lender of compute that no quota covers."""

_CORES = "aws.amazon.com/neuroncore"


@dataclass(frozen=True, kw_only=True)
class Amount:
    """An amount of a resource: devices, vCPUs or bytes."""

    instance_type: str
    resource: str
    amount: Decimal

    @property
    def said(self) -> str:
        """Return the amount as text without its instance type: ``8 nvidia.com/gpu``."""
        return _text(self.resource, self.amount)

    def __str__(self) -> str:
        """Return the amount as text, such as ``8 nvidia.com/gpu of ml.g5.12xlarge``."""
        return f"{self.said} of {self.instance_type}"


@dataclass(frozen=True, kw_only=True)
class Usage:
    """How much of the capacity of all nodes is in use; ``capacity`` counts the nodes in the environment file."""

    resource: str
    used: Decimal
    capacity: Decimal

    @property
    def percent(self) -> float | None:
        """Return the share in percent, or None if no node is known to have any, as with Karpenter."""
        return round(float(100 * self.used / self.capacity), 1) if self.capacity else None


@dataclass(frozen=True, kw_only=True)
class Decision:
    """The result of submitting one job, with the reason.

    ``own`` and ``borrowed`` are the amounts from its team's quota and from others, ``lenders`` the owners of the idle
    quota (teams, or ``OUTSIDE_QUOTAS``). ``preempted`` are the jobs that were preempted. ``pods`` is the number of
    pods, including an elastic job's growth. ``before`` and ``after`` count everything that runs. ``warnings`` are
    about what quotas do not cover.
    """

    job: str
    kind: str
    namespace: str
    name: str
    team: str | None
    queue: str | None
    priority: int
    status: Status
    why: str
    pods: int = 0
    own: tuple[Amount, ...] = ()
    borrowed: tuple[Amount, ...] = ()
    lenders: tuple[str, ...] = ()
    preempted: tuple[str, ...] = ()
    before: tuple[Usage, ...] = ()
    after: tuple[Usage, ...] = ()
    warnings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the decision as plain data for ``--format json``; memory in bytes."""

        def amounts(of: Sequence[Amount]) -> list[dict[str, Any]]:
            return [
                {"instance_type": each.instance_type, "resource": each.resource, "amount": float(each.amount)}
                for each in of
            ]

        def usage(of: Sequence[Usage]) -> dict[str, dict[str, float | None]]:
            return {
                each.resource: {
                    "used": float(each.used),
                    "capacity": float(each.capacity),
                    "percent": each.percent,
                }
                for each in of
            }

        texts = ("job", "kind", "namespace", "name", "team", "queue", "priority", "status", "why", "pods")
        lists = ("lenders", "preempted", "warnings")
        return {
            **{name: getattr(self, name) for name in texts},
            **{name: list(getattr(self, name)) for name in lists},
            "own": amounts(self.own),
            "borrowed": amounts(self.borrowed),
            "before": usage(self.before),
            "after": usage(self.after),
        }


class Admission:
    """Admits jobs one after the other; an admitted job runs until it is preempted or finished."""

    def __init__(self, model: ClusterModel) -> None:
        """Begin with an empty cluster."""
        self.model = model
        self._running: list[Running] = []
        self._outside: list[Workload] = []
        self._waiting: list[Workload] = []
        self._admissions = 0

    @property
    def running(self) -> tuple[str, ...]:
        """Return the jobs that run now under a quota, without duplicates, in the order of their admission."""
        return tuple(dict.fromkeys(each.workload.job for each in self._running))

    @property
    def waiting(self) -> tuple[str, ...]:
        """Return the jobs that wait, including preempted ones."""
        return tuple(each.job for each in self._waiting)

    def submit(self, manifests: Iterable[Manifest]) -> tuple[Decision, ...]:
        """Submit manifests that are applied together; returns one decision per job, in order.

        Raises:
            ValueError: for a kind whose admission is unknown, for a manifest that Kubernetes would reject, and for a
                job that was submitted before and has not ended, which is the same job in Kubernetes.
        """
        return tuple(self._submitted(workload) for workload in workloads(manifests))

    def finish(self, job: str) -> tuple[Decision, ...]:
        """End a job (``Kind namespace/name``) and return the decisions for the jobs that can then start.

        Raises:
            ValueError: if the job does not run.
        """
        outside = [each for each in self._outside if each.job != job]
        left = [each for each in self._running if each.workload.job != job]
        if len(left) == len(self._running) and len(outside) == len(self._outside):
            raise ValueError(f"must be a running job ({', '.join(self.running) or 'there is none'}), got {job}")
        self._running, self._outside = left, outside
        queued, self._waiting = self._waiting, []
        decisions = []
        while queued:
            chosen = self._next(queued)
            queued.remove(chosen)
            decisions.append(self._decide(chosen))
        for each in list(self._running):
            self._grow(each.workload, self.model.queue(each.team))
        return tuple(each for each in decisions if each.status == "admitted")

    def _submitted(self, workload: Workload) -> Decision:
        outside = [each.job for each in self._outside]
        if workload.job in {*self.running, *self.waiting, *outside}:
            raise ValueError(f"must have a unique name, got {workload.job} again; give it another name")
        return self._decide(workload)

    def _decide(self, workload: Workload) -> Decision:
        before = self._usage()
        name = self._queue_name(workload)
        decision = Decision(
            job=workload.job,
            kind=workload.kind,
            namespace=workload.namespace,
            name=workload.name,
            team=None,
            queue=name,
            priority=0,
            status="never",
            why="",
            pods=sum(each.count for each in workload.pod_sets),
            before=before,
            warnings=tuple(self._warnings(workload)),
        )
        if name is None or not self.model.is_governed:
            self._outside.append(workload)
            return replace(decision, status="unmanaged", why=self._why_unmanaged(workload), after=self._usage())
        team = self.model.local_queues.get((workload.namespace, name))
        refusal = self._refusal(workload, name, team)
        if refusal is not None or team is None:
            return replace(decision, team=team, why=refusal or "", after=before)
        decision = replace(decision, team=team, priority=self._priority(workload))
        decided = self._admit(workload, self.model.queue(team), decision)
        return replace(decided, after=self._usage())

    def _refusal(self, workload: Workload, name: str, team: str | None) -> str | None:
        """Return why the job can never start, regardless of quotas, or None."""
        if team is None:
            known = sorted(queue for namespace, queue in self.model.local_queues if namespace == workload.namespace)
            return (
                f"must name a queue of its namespace ({', '.join(known) or 'there is none'}), got {name} in"
                f" {workload.namespace}; set the label {governance.QUEUE_LABEL}, or the namespace of the team"
            )
        if workload.priority_class is not None and workload.priority_class not in self.model.priorities:
            known = sorted(self.model.priorities)
            return (
                f"must name a priority class of the cluster ({', '.join(known) or 'there is none'}), got"
                f" {workload.priority_class}; set the label {governance.PRIORITY_LABEL}"
            )
        if not self.model.queue(team).is_active:
            return f"the compute quota of {team} is not active; set active: true"
        return None

    def _admit(self, workload: Workload, queue: TeamQueue, decision: Decision) -> Decision:
        if self._place(workload.pod_sets, queue, {}) is None:
            return replace(decision, why=self._why_never(workload, queue))
        used = in_use(self._running)
        wanted = self._place(workload.pod_sets, queue, used, may_preempt=True)
        stopped = None if wanted is None else victims(self.model, queue, wanted, decision.priority, self._running)
        if wanted is None or stopped is None:
            self._waiting.append(workload)
            return replace(decision, status="waiting", why=self._why_waiting(workload, queue, used))
        gone = {each.order for each in stopped}
        self._running = [each for each in self._running if each.order not in gone]
        used = in_use(self._running)
        self._start(workload, queue, workload.pod_sets, wanted)
        pods = self._grow(workload, queue)
        taken = {
            key: value - used.get((team, key), ZERO)
            for (team, key), value in in_use(self._running).items()
            if team == queue.team
        }
        own, borrowed = _split(queue, taken, used)
        admitted = replace(
            decision,
            status="admitted",
            pods=pods,
            own=own,
            borrowed=borrowed,
            lenders=self._lenders(queue, borrowed, used),
            preempted=tuple(dict.fromkeys(each.workload.job for each in stopped)),
        )
        self._put_back(stopped)
        return replace(admitted, why=_why_admitted(admitted, decision.pods))

    def _start(self, workload: Workload, queue: TeamQueue, pod_sets: tuple[PodSet, ...], wanted: Amounts) -> None:
        self._admissions += 1
        self._running.append(
            Running(
                workload=workload,
                team=queue.team,
                priority=self._priority(workload),
                order=self._admissions,
                pod_sets=pod_sets,
                wanted=wanted,
            )
        )

    def _grow(self, workload: Workload, queue: TeamQueue) -> int:
        """Let an elastic job grow into idle compute, with a workload per step as its operator does; return its pods."""
        pods = sum(
            each.count for running in self._running if running.workload.job == workload.job for each in running.pod_sets
        )
        for size in (size for size in workload.sizes if size > pods):
            more = (replace(workload.pod_sets[-1], count=size - pods),)
            wanted = self._place(more, queue, in_use(self._running))
            if wanted is None:
                break
            self._start(workload, queue, more, wanted)
            pods = size
        return pods

    def _put_back(self, stopped: Sequence[Running]) -> None:
        """Put preempted jobs back into their queues, and start those that fit without preemption."""
        for job in dict.fromkeys(each.workload.job for each in stopped):
            if job in self.running:
                continue  # an elastic job that only shrank
            victim = next(each for each in stopped if each.workload.job == job)
            queue = self.model.queue(victim.team)
            wanted = self._place(victim.workload.pod_sets, queue, in_use(self._running))
            if wanted is None:
                self._waiting.append(victim.workload)
            else:
                self._start(victim.workload, queue, victim.workload.pod_sets, wanted)

    def _next(self, queued: Sequence[Workload]) -> Workload:
        """Return the next job: each team's job with the highest priority, and of those the one that borrows least."""
        used = in_use(self._running)
        heads: dict[str, Workload] = {}
        for workload in sorted(queued, key=lambda each: -self._priority(each)):
            heads.setdefault(self._team(workload), workload)

        def borrowed(team: str) -> tuple[int, Decimal]:
            queue = self.model.queue(team)
            wanted = self._place(heads[team].pod_sets, queue, used, may_preempt=True) or {}
            after = with_more(used, team, wanted)
            if self.model.shares_fairly:
                return self.model.share(team, after)
            return int(is_borrowing(queue, wanted, after)), ZERO

        return heads[min(heads, key=lambda team: (borrowed(team), -self._priority(heads[team])))]

    def _team(self, workload: Workload) -> str:
        """Return the team of a waiting workload, which always has one."""
        return self.model.local_queues[workload.namespace, self._queue_name(workload) or ""]

    def _queue_name(self, workload: Workload) -> str | None:
        return workload.queue or self.model.default_queues.get(workload.namespace)

    def _priority(self, workload: Workload) -> int:
        return self.model.priorities.get(workload.priority_class or "", 0)

    def _place(
        self, pod_sets: Sequence[PodSet], queue: TeamQueue, used: InUse, *, may_preempt: bool = False
    ) -> dict[Key, Decimal] | None:
        """Return an instance type for each set of pods, and the sum of their requests; None if a set does not fit.

        The type is the first one with enough quota or, with ``may_preempt``, the first one with jobs to preempt.
        """
        total: dict[Key, Decimal] = {}
        for pods in pod_sets:
            if not any(pods.requests.get(name) for name in (*queue.resources, *_uncounted(pods, queue))):
                continue  # none of its requests are counted, so no quota restricts it
            possible = [plus(total, _wanted(pods, name, queue)) for name in queue.types if pods.may_run_on(name)]
            if _uncounted(pods, queue):
                return None
            fitting = [each for each in possible if self.model.fits(queue, each, used)]
            reachable = [each for each in possible if may_preempt and self._may_preempt(queue, each)]
            if not fitting and not reachable:
                return None
            total = (fitting or reachable)[0]
        return total

    def _may_preempt(self, queue: TeamQueue, wanted: Amounts) -> bool:
        """Return whether Kueue looks for jobs to preempt: within the own quota, or for all with fair sharing."""
        within = all(value <= queue.nominal.get(key, ZERO) for key, value in wanted.items())
        return self.model.fits(queue, wanted, {}) and (within or self.model.shares_fairly)

    def _lenders(self, queue: TeamQueue, borrowed: Sequence[Amount], used: InUse) -> tuple[str, ...]:
        """Return the owners of idle quota that can be borrowed; Kueue does not record lenders, so all that can lend."""
        keys = [(each.instance_type, each.resource) for each in borrowed]
        idle = [
            other.team
            for other in self.model.queues
            if other is not queue
            and other.lends
            and other.is_active
            and any(other.nominal.get(key, ZERO) > used.get((other.team, key), ZERO) for key in keys)
        ]
        return (*idle, *([OUTSIDE_QUOTAS] if any(self.model.unassigned.get(key) for key in keys) else []))

    def _usage(self) -> tuple[Usage, ...]:
        used: dict[str, Decimal] = {}
        outside = [workload.pod_sets for workload in self._outside]
        for pods in (each for sets in (*outside, *(running.pod_sets for running in self._running)) for each in sets):
            for name, value in pods.requests.items():
                resource = scheduling.name_in_quotas(name)
                used[resource] = used.get(resource, ZERO) + pods.count * value
        return tuple(
            Usage(resource=resource, used=used.get(resource, ZERO), capacity=value)
            for resource, value in self.model.capacity().items()
        )

    def _warnings(self, workload: Workload) -> Iterator[str]:
        """Yield warnings about what quotas do not cover: pods that fit on no node."""
        for pods in workload.pod_sets:
            shapes = [
                shape for shape, _ in self.model.nodes if any(pods.may_run_on(name) for name in shape.instance_types)
            ]
            if not shapes:
                yield f"no instance group has nodes of the types that its {pods.name} pods need"
            elif not any(_can_hold(shape, pods) for shape in shapes):
                most = max(shapes, key=lambda shape: (shape.accelerator_count, shape.memory_gib))
                asked = ", ".join(_text(name, value) for name, value in pods.requests.items())
                yield (
                    f"no node has room for one of its {pods.name} pods, which request {asked}: a node of"
                    f" {most.group.name} has {', '.join(_text(n, v) for n, v in of_node(most).items())}"
                )
            aside = [n for n in pods.requests if not scheduling.is_in_quotas(n) and not is_accelerator(n)]
            if workload.queue is not None and aside:
                yield (
                    f"its {pods.name} pods request {joined(aside)}, which AWS does not show in a team's queue: unless"
                    " Kueue is configured to ignore it, the job is never admitted"
                )

    def _why_unmanaged(self, workload: Workload) -> str:
        if not self.model.is_governed:
            return "the environment has no task governance, so jobs start at once"
        label = governance.QUEUE_LABEL
        queues = [queue for namespace, queue in self.model.local_queues if namespace == workload.namespace]
        fix = (
            f"set the label {label}: {queues[0]}" if queues else "submit it in the namespace of a team, with its queue"
        )
        where = (
            f"only its pods have the label {label}, and Kueue reads the job's"
            if workload.queue_on_pods
            else f"it has no label {label}"
        )
        return f"{where}, so it starts outside all quotas; {fix}"

    def _why_never(self, workload: Workload, queue: TeamQueue) -> str:
        """Return what is missing for the first set of pods that could not start in an empty cluster."""
        first = next(
            index
            for index in range(len(workload.pod_sets))
            if self._place(workload.pod_sets[: index + 1], queue, {}) is None
        )
        pods = workload.pod_sets[first]
        uncounted = _uncounted(pods, queue)
        if uncounted:
            counted = scheduling.name_in_quotas(uncounted[0])
            fix = "add it to the team's quota" if counted == uncounted[0] else f"request {counted}"
            return f"its {pods.name} pods request {uncounted[0]}, which the queue of {queue.team} does not count; {fix}"
        types = [name for name in queue.types if pods.may_run_on(name)]
        if not types:
            return (
                f"its {pods.name} pods select nodes for which {queue.team} has no quota (it has"
                f" {', '.join(queue.types) or 'none'}); add them to the team's quota"
            )
        key, value = self._lacking(workload.pod_sets[: first + 1], types[0], queue, {})
        owned = queue.nominal.get(key, ZERO)
        borrowable = max(ZERO, self.model.available(queue, key, {}) - owned)
        return (
            f"requests {_text(key[1], value)} of {key[0]}, of which {queue.team} owns {_text(key[1], owned)} and may"
            f" borrow at most {_text(key[1], borrowable)}; request less, or raise the team's quota or borrow limit"
        )

    def _why_waiting(self, workload: Workload, queue: TeamQueue, used: InUse) -> str:
        counted = [each for each in workload.pod_sets if any(each.requests.get(name) for name in queue.resources)]
        name = next(name for name in queue.types if counted[-1].may_run_on(name))
        key, value = self._lacking(workload.pod_sets, name, queue, used)
        free = max(ZERO, self.model.available(queue, key, used))
        taken, owned = used.get((queue.team, key), ZERO), queue.nominal.get(key, ZERO)
        return (
            f"requests {_text(key[1], value)} of {key[0]}, of which {_text(key[1], free)} are free for {queue.team} now"
            f" (it owns {_text(key[1], owned)} and uses {_text(key[1], taken)}), and no job may be preempted for it; it"
            " starts when others end"
        )

    def _lacking(self, pod_sets: Sequence[PodSet], name: str, queue: TeamQueue, used: InUse) -> tuple[Key, Decimal]:
        """Return the scarcest resource if all pods that can run on a type do so, and the amount that they request."""
        wanted: dict[Key, Decimal] = {}
        for pods in pod_sets:
            if pods.may_run_on(name):
                wanted = plus(wanted, _wanted(pods, name, queue))

        def excess(key: Key) -> Decimal:
            return (wanted[key] - max(ZERO, self.model.available(queue, key, used))) / wanted[key]

        # accelerators are reported before vCPUs and memory
        short = [key for key in wanted if is_accelerator(key[1]) and excess(key) > 0]
        key = max(short or wanted, key=excess)
        return key, wanted[key]


def simulate(environment: Environment, submissions: Iterable[Iterable[Manifest]]) -> tuple[Decision, ...]:
    """Return the decisions for jobs that are submitted one after the other to an empty cluster.

    Raises:
        ValueError: for a kind whose admission is unknown, and for an invalid quantity.
    """
    admission = Admission(ClusterModel.of(environment))
    return tuple(decision for manifests in submissions for decision in admission.submit(manifests))


def _can_hold(shape: NodeShape, pods: PodSet) -> bool:
    has = of_node(shape)
    wanted = {scheduling.name_in_quotas(name): value for name, value in pods.requests.items()}
    # no quota states how many cores a Neuron device has
    counted = [name for name in wanted if name in has or (is_accelerator(name) and name != _CORES)]
    return all(wanted[name] <= has.get(name, ZERO) for name in counted)


def _uncounted(pods: PodSet, queue: TeamQueue) -> list[str]:
    """Return the requested accelerators that the team's quota does not count, so that Kueue never admits the pods."""
    return [n for n, value in pods.requests.items() if value and is_accelerator(n) and n not in queue.resources]


def _wanted(pods: PodSet, instance_type: str, queue: TeamQueue) -> dict[Key, Decimal]:
    return {
        (instance_type, name): pods.count * value
        for name, value in pods.requests.items()
        if value and name in queue.resources
    }


def _split(queue: TeamQueue, taken: Amounts, used: InUse) -> tuple[tuple[Amount, ...], tuple[Amount, ...]]:
    """Split what a job uses into the team's own quota and what is borrowed."""
    own, borrowed = list[Amount](), list[Amount]()
    for key, value in taken.items():
        left = max(ZERO, queue.nominal.get(key, ZERO) - used.get((queue.team, key), ZERO))
        for to, part in ((own, min(value, left)), (borrowed, value - min(value, left))):
            if part > 0:
                to.append(Amount(instance_type=key[0], resource=key[1], amount=part))
    return tuple(own), tuple(borrowed)


def _why_admitted(decision: Decision, began: int) -> str:
    parts = [f"within the quota of {decision.team}"]
    if decision.borrowed:
        places = [each if each == OUTSIDE_QUOTAS else f"in the quota of {each}" for each in decision.lenders]
        parts = [f"borrows {_amounts(decision.borrowed)}, idle {joined(places)}"]
    elif not decision.own:
        parts = ["requests nothing that a quota counts"]
    if decision.pods > began:
        parts.append(f"grows from {began} to {decision.pods} pods with idle compute")
    if decision.preempted:
        parts.append(f"preempts {joined(decision.preempted)}")
    return "; ".join(parts)


def _amounts(of: Sequence[Amount]) -> str:
    """Return amounts as text, grouped by instance type, accelerators first."""
    by_type = {each.instance_type: list[Amount]() for each in of}
    for each in sorted(of, key=lambda each: not is_accelerator(each.resource)):
        by_type[each.instance_type].append(each)
    return joined([f"{joined([_text(e.resource, e.amount) for e in row])} of {name}" for name, row in by_type.items()])


def _text(resource: str, value: Decimal) -> str:
    if resource == "memory":
        return f"{float(value) / GIB:g} GiB of memory"
    return f"{float(value):g} {'vCPUs' if resource == 'cpu' else resource}"
