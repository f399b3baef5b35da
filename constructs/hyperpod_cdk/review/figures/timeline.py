"""The deployment in time: dependencies, the duration of each step, and the state if it fails there.

Stacks that depend on each other are deployed in sequence, others in parallel, as with ``cdk deploy --concurrency``, and
within a stack CloudFormation works on all resources at once whose references are complete. Deletions are last in a
stack.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal

from hyperpod_cdk.catalog import durations
from hyperpod_cdk.catalog.durations import Duration
from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.review.model import BlastRadius, Effect, Minutes, Step, Timeline
from hyperpod_cdk.review.nouns import count, noun
from hyperpod_cdk.templates.assembly import Assembly, Resource, Stack
from hyperpod_cdk.templates.difference import PropertyChange, ResourceChange
from hyperpod_cdk.templates.groups import InstanceGroup, instance_groups
from hyperpod_cdk.templates.values import references

CLUSTER: Final = "AWS::SageMaker::Cluster"
QUICK_MINUTES: Final = 1.0
"""A step that takes at most less than this is not named on the critical path."""

_Action = Literal["create", "update", "replace", "delete"]


def timeline(base: Assembly, head: Assembly, changes: Sequence[ResourceChange], blast: BlastRadius) -> Timeline:
    """Return the deployment of ``changes`` in time; the durations are the catalog's ranges.

    ``starts`` of a step is when it starts if everything is as fast, and as slow, as possible. ``is_critical`` and
    ``critical_path`` are those of the slow case; the path names steps of a minute or more. A resource of a stack that
    was removed from the app is no step: ``cdk deploy`` does not delete stacks.
    """
    effects = {(each.stack, each.logical_id): each.effect for each in blast.resources}
    conditions = {(each.stack, each.logical_id): each.condition for each in blast.resources}
    work: dict[str, list[_Work]] = {}
    for change in (*changes, *_consequences(base, head, changes, blast)):
        for item in _work(change, head, effects):
            item.condition = conditions.get((item.resource.stack, item.resource.logical_id))
            work.setdefault(item.resource.stack, []).append(item)
    stacks = _stacks(base, head, work)
    schedule = [item for stack in stacks for item in stack.items]
    low, high = _schedule(stacks, "low"), _schedule(stacks, "high")
    _mark_critical(stacks)
    costs = _Costs(base, head, stacks)
    return Timeline(
        steps=tuple(_step(item, costs) for item in schedule),
        total=Minutes(low=_rounded(low), high=_rounded(high)),
        critical_path=tuple(_critical_path(stacks)),
        durations_as_of=durations.AS_OF.isoformat() if schedule else "",
        notes=tuple(_notes(base, head, stacks)),
    )


@dataclass(eq=False, kw_only=True)
class _Work:
    """One step; the mutable half is the result of the schedule."""

    resource: Resource
    action: _Action
    duration: Duration
    is_refused: bool = False
    is_cleanup: bool = False
    condition: str | None = None
    """The condition of the resource, if the template does not show whether it is true."""
    waits_for: list[_Work] = field(default_factory=list)
    starts_low: float = 0.0
    starts_high: float = 0.0
    is_critical: bool = False

    @property
    def ends_high(self) -> float:
        return self.starts_high + self.duration.high

    @property
    def name(self) -> str:
        name = f"{self.resource.name} (the old one)" if self.is_cleanup else self.resource.name
        return f"{name} (only if {self.condition} is true)" if self.condition else name


@dataclass(frozen=True, eq=False)
class _StackWork:
    """The steps of one stack, each after its dependencies, deletions last; ``after`` are the stacks that it depends
    on."""

    name: str
    items: tuple[_Work, ...]
    after: tuple[_StackWork, ...]

    @property
    def ends_high(self) -> float:
        return max(item.ends_high for item in self.items)

    @cached_property
    def earlier(self) -> Mapping[str, None]:
        """The names of all stacks that are complete before this one begins, the first one first."""
        return {name: None for each in self.after for name in (*each.earlier, each.name)}

    @property
    def parts(self) -> tuple[list[_Work], list[_Work]]:
        """What is created or changed, and what is deleted after that is complete."""
        made = [item for item in self.items if item.action != "delete"]
        return made, [item for item in self.items if item.action == "delete"]


def _consequences(
    base: Assembly, head: Assembly, changes: Sequence[ResourceChange], blast: BlastRadius
) -> Iterator[ResourceChange]:
    """Return what changes only because something that it refers to is replaced."""
    told = {(change.resource.stack, change.resource.logical_id) for change in changes}
    for each in blast.resources:
        before, after = (assembly.find(each.stack, each.logical_id) for assembly in (base, head))
        if (each.stack, each.logical_id) not in told and before and after:
            yield ResourceChange(
                before=before,
                after=after,
                properties=tuple(
                    PropertyChange(steps=tuple(change.path.split(".")), before=change.before, after=change.after)
                    for change in each.properties
                ),
            )


def _work(change: ResourceChange, head: Assembly, effects: Mapping[tuple[str, str], Effect]) -> Iterator[_Work]:
    before, after = change.before, change.after
    if after is None:
        assert before is not None  # noqa: S101 - compare() makes no change without a side
        # a retained resource is only removed from the stack, which takes no time
        if before.stack in head.by_name and not before.is_kept_on_delete:
            yield _Work(resource=before, action="delete", duration=_duration(before, "delete"))
        return
    if before is None:
        yield _Work(resource=after, action="create", duration=_duration(after, "create"))
        return
    effect = effects.get((after.stack, after.logical_id))
    if effect is Effect.REPLACED or before.type != after.type:
        yield _Work(resource=after, action="replace", duration=_duration(after, "create"))
        if not before.is_kept_on_replacement:
            yield _Work(resource=before, action="delete", duration=_duration(before, "delete"), is_cleanup=True)
        return
    changed = {step for each in change.properties for step in each.schema_path[:2]}
    yield _Work(
        resource=after,
        action="update",
        duration=_duration(after, "update", changed),
        is_refused=effect is Effect.REFUSED,
    )


def _duration(resource: Resource, action: durations.Action, changed: Iterable[str] = ()) -> Duration:
    return durations.duration(resource.type, action, when=circumstance(resource, action, set(changed)))


def circumstance(resource: Resource, action: str, changed: set[str]) -> str:  # noqa: PLR0911 - one for each
    """Return the circumstance of the catalog's durations that applies to a resource; ``changed`` are its properties."""
    properties = resource.properties
    match resource.type:
        case "AWS::EKS::Cluster" if action == "update" and "Version" in changed:
            return "version"
        case "AWS::FSx::FileSystem":
            lustre = properties.get("LustreConfiguration")
            if {"PerUnitStorageThroughput", "ThroughputCapacity"} & changed:
                return "throughput"
            return "efa" if isinstance(lustre, dict) and str(lustre.get("EfaEnabled")).lower() == "true" else ""
        case "AWS::EC2::VPCEndpoint":
            return "interface" if properties.get("VpcEndpointType") in ("Interface", "GatewayLoadBalancer") else ""
        case "AWS::Lambda::Function":
            return "vpc" if properties.get("VpcConfig") else ""
        case "AWS::SageMaker::Cluster" if properties.get("NodeProvisioningMode") != "Continuous":
            groups = properties.get("InstanceGroups")
            checked = isinstance(groups, list) and any(
                isinstance(group, dict) and group.get("OnStartDeepHealthChecks") for group in groups
            )
            nodes_change = action == "create" or bool({"InstanceGroups", "RestrictedInstanceGroups"} & changed)
            return "deep health checks" if checked and nodes_change else ""
        case _:
            return ""


def _stacks(base: Assembly, head: Assembly, work: Mapping[str, list[_Work]]) -> list[_StackWork]:
    """Return the stacks with steps in the order of the assembly, in which each is after those that it needs."""
    # a stack depends on the dependencies of an unchanged stack
    behind: dict[str, tuple[_StackWork, ...]] = {}
    found: list[_StackWork] = []
    for stack in head.stacks:
        needed = [each for name in stack.dependencies for each in behind.get(name, ())]
        behind[stack.name] = tuple({id(each): each for each in needed}.values())
        if items := work.get(stack.name):
            ordered = _ordered(stack, base.by_name.get(stack.name), items)
            found.append(_StackWork(name=stack.name, items=ordered, after=behind[stack.name]))
            behind[stack.name] = (found[-1],)
    return found


def _ordered(stack: Stack, old: Stack | None, items: list[_Work]) -> tuple[_Work, ...]:
    """Put a stack's steps into an order in which every step is after its dependencies, deletions last."""
    made = {item.resource.logical_id: item for item in items if item.action != "delete"}
    gone = {item.resource.logical_id: item for item in items if item.action == "delete"}
    ordered = list(_linked(stack.resources, made, is_deletion=False))
    if gone and old is not None:
        ordered += _linked(old.resources, gone, is_deletion=True)
    return tuple(ordered)


def _linked(resources: Mapping[str, Resource], items: Mapping[str, _Work], *, is_deletion: bool) -> Iterator[_Work]:
    needs = {name: _needs(resource, resources) for name, resource in resources.items()}
    order = _topological(needs)
    if is_deletion:
        order.reverse()
        turned: dict[str, set[str]] = {name: set() for name in needs}
        for name, needed in needs.items():
            for each in needed:
                turned[each].add(name)
        needs = turned
    # a step depends on the dependencies of an unchanged resource
    behind: dict[str, dict[int, _Work]] = {}
    for name in order:
        reached: dict[int, _Work] = {}
        for each in sorted(needs[name]):
            reached.update(behind.get(each, {}))
        item = items.get(name)
        if item is None:
            behind[name] = reached
            continue
        item.waits_for = list(reached.values())
        behind[name] = {id(item): item}
        yield item


def _needs(resource: Resource, resources: Mapping[str, Resource]) -> set[str]:
    found = {name for name, _ in references(resource.properties)}
    stated = resource.body.get("DependsOn")
    found.update([stated] if isinstance(stated, str) else [each for each in stated or () if isinstance(each, str)])
    found.discard(resource.logical_id)
    return found & resources.keys()


def _topological(needs: Mapping[str, set[str]]) -> list[str]:
    waiting = {name: len(needed) for name, needed in needs.items()}
    dependents: dict[str, list[str]] = {name: [] for name in needs}
    for name, needed in needs.items():
        for each in needed:
            dependents[each].append(name)
    rank = {name: number for number, name in enumerate(needs)}
    ready = [name for name in needs if waiting[name] == 0]
    order: list[str] = []
    for name in ready:
        order.append(name)
        for each in sorted(dependents[name], key=rank.__getitem__):
            waiting[each] -= 1
            if waiting[each] == 0:
                ready.append(each)
    # CloudFormation refuses a cycle; the report shows its resources nevertheless
    return [*order, *(name for name in needs if waiting[name] > 0)]


def _schedule(stacks: Sequence[_StackWork], case: Literal["low", "high"]) -> float:
    """Place every step in time if all durations are low, or high; return when the last one ends."""

    def minutes(duration: Duration) -> float:
        return duration.low if case == "low" else duration.high

    done: dict[int, float] = {}
    for stack in stacks:
        now = max((done[id(each)] for each in stack.after), default=0.0) + minutes(durations.STACK)
        ends: dict[int, float] = {}
        made = now
        for item in stack.items:
            earliest = made if item.action == "delete" else now
            start = max([earliest, *(ends[id(each)] for each in item.waits_for if id(each) in ends)])
            end = ends[id(item)] = start + minutes(item.duration)
            if case == "low":
                item.starts_low = start
            else:
                item.starts_high = start
            if item.action != "delete":
                made = max(made, end)
        done[id(stack)] = max([now, *ends.values()])
    return max(done.values(), default=0.0)


def _mark_critical(stacks: Sequence[_StackWork]) -> None:
    """Mark every step that has no slack in the slow case."""
    total = max((stack.ends_high for stack in stacks), default=0.0)
    latest_ends = {id(stack): total for stack in stacks}
    for stack in reversed(stacks):
        end = latest_ends[id(stack)]
        for part in reversed(stack.parts):
            latest = {id(item): end for item in part}
            for item in reversed(part):
                item.is_critical = latest[id(item)] - item.ends_high < _EPSILON
                end = min(end, latest[id(item)] - item.duration.high)
                for each in item.waits_for:
                    if id(each) in latest:
                        latest[id(each)] = min(latest[id(each)], latest[id(item)] - item.duration.high)
        for needed in stack.after:
            latest_ends[id(needed)] = min(latest_ends[id(needed)], end - durations.STACK.high)


def _critical_path(stacks: Sequence[_StackWork]) -> Iterator[str]:
    chain: list[_Work] = []
    stack = max(stacks, key=lambda each: each.ends_high, default=None)
    while stack is not None:
        for part in reversed(stack.parts):
            chain += _backwards(part)
        stack = max(stack.after, key=lambda each: each.ends_high, default=None)
    chain.reverse()
    named = [item for item in chain if item.duration.high >= QUICK_MINUTES] or chain
    for item in named:
        yield f"{item.resource.stack} / {item.name}"


def _backwards(part: Sequence[_Work]) -> Iterator[_Work]:
    members = {id(item) for item in part}
    item = max(part, key=lambda each: each.ends_high, default=None)
    while item is not None:
        yield item
        start = item.starts_high
        item = next(
            (each for each in item.waits_for if id(each) in members and start - each.ends_high < _EPSILON), None
        )


def _step(item: _Work, costs: _Costs) -> Step:
    return Step(
        stack=item.resource.stack,
        logical_id=item.resource.logical_id,
        type=item.resource.type,
        name=item.name,
        action=item.action,
        starts=Minutes(low=_rounded(item.starts_low), high=_rounded(item.starts_high)),
        lasts=Minutes(low=item.duration.low, high=item.duration.high),
        is_critical=item.is_critical,
        source=f"{item.duration.source} ({item.duration.unsure})" if item.duration.unsure else item.duration.source,
        if_it_fails=costs.if_it_fails(item),
    )


_KINDS: Final[Mapping[str, tuple[str, str]]] = {
    "AWS::EC2::NatGateway": ("the NAT gateway {}", "{} NAT gateways"),
    "AWS::EC2::VPCEndpoint": ("the interface endpoint {}", "{} interface endpoints"),
    "AWS::EKS::Cluster": ("the EKS control plane {}", "{} EKS control planes"),
    "AWS::FSx::FileSystem": ("the file system {}", "{} file systems"),
    CLUSTER: ("the nodes of the HyperPod cluster {}", "the nodes of {} HyperPod clusters"),
}
"""What costs money by the hour, used or not."""

_NAMED: Final = 3


class _Costs:
    """What exists and costs money at each moment of a slow deployment."""

    def __init__(self, base: Assembly, head: Assembly, stacks: Sequence[_StackWork]) -> None:
        schedule = [item for stack in stacks for item in stack.items]
        makers = {(item.resource.stack, item.resource.logical_id): item for item in schedule if item.action != "delete"}
        self._old_stacks = base.by_name
        self._earlier = {stack.name: list(stack.earlier) for stack in stacks}
        self._costing = [
            (resource, makers.get((resource.stack, resource.logical_id)))
            for resource in head.resources()
            if _costs_by_the_hour(resource)
        ]
        self._said: dict[tuple[int, ...], str] = {}

    def if_it_fails(self, item: _Work) -> str:
        """Return what CloudFormation does then, and what exists by then and costs money."""
        there = tuple(number for number, (_, maker) in enumerate(self._costing) if _is_there(maker, item))
        sentences = []
        if item.is_refused:
            sentences.append("The service refuses this change, so that the deployment fails here.")
        sentences.append(self._what_cloudformation_does(item, there))
        if item.resource.type == CLUSTER and item.action in ("create", "replace"):
            sentences.append("Nodes that have started cost money until they are terminated.")
        if there not in self._said:
            self._said[there] = _what_costs([self._costing[number][0] for number in there])
        return " ".join([*sentences, self._said[there]])

    def _what_cloudformation_does(self, item: _Work, there: tuple[int, ...]) -> str:
        stack = item.resource.stack
        if item.action == "delete":
            return (
                f"CloudFormation leaves it in the account and still completes the update of {stack}; it is not "
                "deleted later."
            )
        earlier = self._earlier[stack]
        stays = f"; {joined(earlier)} {'stays' if len(earlier) == 1 else 'stay'} as deployed" if earlier else ""
        if stack in self._old_stacks:
            return f"CloudFormation rolls {stack} back to its earlier state{stays}."
        kept = [
            resource.name
            for resource, _ in (self._costing[number] for number in there)
            if resource.stack == stack and resource.body.get("DeletionPolicy") == "Retain"
        ]
        but = f" but keeps {joined(kept)}" if kept else ""
        return f"CloudFormation deletes what it created of {stack}{but}{stays}."


def _is_there(maker: _Work | None, item: _Work) -> bool:
    """Whether something costs money when ``item`` fails; None if it was created before the deployment."""
    if maker is None or maker.action in ("update", "replace"):
        return True
    return maker is not item and maker.ends_high <= item.starts_high + _EPSILON


def _costs_by_the_hour(resource: Resource) -> bool:
    is_gateway = resource.type == "AWS::EC2::VPCEndpoint" and resource.properties.get("VpcEndpointType") != "Interface"
    return resource.type in _KINDS and not is_gateway


def _what_costs(resources: Sequence[Resource]) -> str:
    by_kind: dict[str, list[str]] = {}
    for resource in resources:
        by_kind.setdefault(resource.type, []).append(resource.name)
    parts = []
    for kind, (one, several) in _KINDS.items():
        names = by_kind.get(kind, [])
        if len(names) == 1:
            parts.append(one.format(names[0]))
        elif names:
            parts.append(several.format(len(names)) + (f" ({joined(names)})" if len(names) <= _NAMED else ""))
    return f"Existing by then, and costing money by the hour: {joined(parts)}." if parts else _NOTHING


def _notes(base: Assembly, head: Assembly, stacks: Sequence[_StackWork]) -> Iterator[str]:
    schedule = [item for stack in stacks for item in stack.items]
    if any(len(stack.earlier) < number for number, stack in enumerate(stacks)):
        yield (
            "Stacks that do not depend on each other are deployed in parallel, as with cdk deploy --concurrency 3; "
            "one after another, the CLI's default, they take longer."
        )
    if any(item.duration.source == durations.OTHERS.source for item in schedule):
        yield "AWS publishes few durations: ranges without a published source are defaults, and each step states which."
    yield from _unpublished(schedule)
    yield from (
        f"cdk deploy leaves the stack {stack.name} as it is, which is no longer in the app; delete it with "
        "CloudFormation."
        for stack in base.stacks
        if stack.name not in head.by_name
    )
    yield from _checked_later(head, schedule)


def _unpublished(schedule: Sequence[_Work]) -> Iterator[str]:
    """Return a note on what counts as seconds here, although CloudFormation itself allows for hours."""
    slow = [
        (item.resource, durations.WAITS[item.resource.type])
        for item in schedule
        if item.resource.type in durations.WAITS and item.duration.source == durations.OTHERS.source
    ]
    if slow:
        kinds = joined([count(number, kind) for kind, number in Counter(noun(each.type) for each, _ in slow).items()])
        it = "It counts" if len(slow) == 1 else "They count"
        yield (
            f"It is not published how long {kinds} will take. {it} as seconds here, and can take hours: "
            f"CloudFormation waits for up to {max(minutes for _, minutes in slow) / 60:.0f}."
        )


def _checked_later(head: Assembly, schedule: Sequence[_Work]) -> Iterator[str]:
    """Return a note on the groups whose deep health checks CloudFormation does not wait for."""
    busy = {
        (item.resource.stack, item.resource.logical_id)
        for item in schedule
        if item.resource.type == CLUSTER and item.action != "delete"
    }
    names = []
    for group in instance_groups(head) if busy else ():
        cluster = group.cluster
        if (cluster.stack, cluster.logical_id) in busy and _is_checked_later(group):
            names.append(group.name)
    if names:
        checks = durations.DEEP_HEALTH_CHECKS
        shown = joined(names) if len(names) <= _NAMED else f"{len(names)} groups"
        yield (
            f"New nodes of {shown} run deep health checks for another {checks.low:g} to {checks.high:g} minutes before "
            "pods may use them; with continuous provisioning CloudFormation does not wait for that."
        )


def _is_checked_later(group: InstanceGroup) -> bool:
    properties = group.cluster.properties
    groups = properties.get("RestrictedInstanceGroups" if group.is_restricted else "InstanceGroups")
    body = groups[group.index] if isinstance(groups, list) else None
    is_checked = isinstance(body, dict) and bool(body.get("OnStartDeepHealthChecks"))
    return is_checked and properties.get("NodeProvisioningMode") == "Continuous"


def _rounded(minutes: float) -> float:
    return round(minutes, 2)


_EPSILON: Final = 1e-6
_NOTHING: Final = "Nothing that costs money by the hour exists by then."
