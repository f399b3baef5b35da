"""What only AWS tells of stacks that are deployed: their state, whose they are, and who else imports from them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from hyperpod_cdk.checks.answers import NotAnswered
from hyperpod_cdk.quotas.needs import STACKS
from hyperpod_cdk.review.deployed import SETTLED, WITHOUT_RESOURCES, Api, read_deployed
from hyperpod_cdk.review.nouns import joined
from hyperpod_cdk.templates.assembly import Assembly, AssemblyError, Stack
from hyperpod_cdk.templates.difference import compare
from hyperpod_cdk.templates.values import imports
from hyperpod_cdk.transitions.model import Refusal
from hyperpod_cdk.transitions.needs import needs

POLL_SECONDS: Final = 10.0
"""How long to wait before CloudFormation is asked again how far it is."""

_NOT_IMPORTED: Final = "is not imported by any stack"
"""How CloudFormation answers ListImports where nobody imports an export."""

_MADE_ANEW: Final = "ROLLBACK_FAILED"
"""A first deployment that could not be taken back: ``cdk deploy`` deletes what is left of it and makes it anew."""


@dataclass(frozen=True, kw_only=True)
class Standing:
    """What is deployed, the head as it would be deployed there, and what ``plan.plan`` has to know of AWS beside it."""

    base: Assembly
    head: Assembly
    importers: Mapping[str, tuple[str, ...]]
    blockers: tuple[Refusal, ...] = ()
    notes: tuple[str, ...] = ()


def settle(
    opened: Callable[[], Api], environment: str, *, say: Callable[[str], None], pause: Callable[[float], None]
) -> None:
    """Wait until CloudFormation works on no stack of an environment: what was interrupted goes on there by itself.

    ``opened`` opens AWS anew. Raises AssemblyError where AWS does not answer.
    """
    names = {f"{environment}-{stack}" for stack in STACKS}
    told: list[str] = []
    while busy := _busy(opened(), names):
        if busy != told:
            say(f"CloudFormation works on {joined(busy)}; waiting until it has ended")
        told = busy
        pause(POLL_SECONDS)


def _busy(aws: Api, names: Collection[str]) -> list[str]:
    try:
        described = aws.pages("cloudformation", "describe_stacks", "Stacks")
    except NotAnswered as missing:
        raise AssemblyError(f"what is deployed cannot be read: {missing.sentence}") from None
    return sorted(
        str(each["StackName"])
        for each in described
        if each["StackName"] in names and _is_under_way(str(each["StackStatus"]))
    )


def read_standing(aws: Api, head: Assembly) -> Standing:
    """Read what is deployed of the head's environment. Raises AssemblyError where AWS does not answer."""
    found = read_deployed(aws, head)
    base = replace(
        found.base, stacks=tuple(each for each in found.base.stacks if found.statuses[each.name] != _MADE_ANEW)
    )
    blockers = [*_unsettled(found.statuses, head), *_of_others(base, found.head)]
    ours = {stack.name for stack in base.stacks}
    going = {} if blockers else needs(base, found.head, compare(base, found.head)).going
    try:
        importers = {name: _others(aws, name, ours) for name in going}
    except NotAnswered as missing:
        raise AssemblyError(f"who imports what would change cannot be read: {missing.sentence}") from None
    return Standing(
        base=base,
        head=found.head,
        importers={name: names for name, names in importers.items() if names},
        blockers=tuple(blockers),
        notes=found.notes,
    )


def read_to_destroy(aws: Api, head: Assembly) -> Standing:
    """Read all that is deployed under the names of the head's environment, whatever state it is in.

    The head of what it gives is an environment without a stack; what depends on what is the file's word and that of the
    imports. Raises AssemblyError where AWS does not answer.
    """
    found = read_deployed(aws, head)
    stacks = [_as_in_file(each, head.by_name.get(each.name)) for each in found.base.stacks]
    read = {stack.name for stack in stacks}
    bare: dict[str, Any] = {"Resources": {}}
    stacks += [
        Stack(name=name, template=bare, account=head.account, region=head.region)
        for name in found.statuses
        if name not in read
    ]
    whole = replace(found.base, stacks=tuple(stacks))
    blockers = [*_under_way(found.statuses), *_of_others(found.base, found.head)]
    try:
        importers = {} if blockers else {name: _others(aws, name, read) for name in whole.exports}
    except NotAnswered as missing:
        raise AssemblyError(f"who imports what would go cannot be read: {missing.sentence}") from None
    return Standing(
        base=whole,
        head=replace(head, stacks=()),
        importers={name: names for name, names in importers.items() if names},
        blockers=tuple(blockers),
        notes=found.notes,
    )


def _as_in_file(deployed: Stack, stated: Stack | None) -> Stack:
    """Give a stack with what only the file tells: what else it depends on, and the names of its constructs."""
    if stated is None:
        return deployed
    dependencies = tuple(dict.fromkeys([*deployed.dependencies, *stated.dependencies]))
    return replace(deployed, dependencies=dependencies, paths=stated.paths)


def _others(aws: Api, export: str, ours: Collection[str]) -> tuple[str, ...]:
    return tuple(each for each in _importers(aws, export) if each not in ours)


def _under_way(statuses: Mapping[str, str]) -> Iterator[Refusal]:
    for name, status in statuses.items():
        if _is_under_way(status):
            yield Refusal(
                why=f"{name} is {status}: CloudFormation works on it.",
                what_works="Wait until it has ended, then plan again.",
            )


def _importers(aws: Api, export: str) -> list[str]:
    try:
        return [str(each) for each in aws.pages("cloudformation", "list_imports", "Imports", ExportName=export)]
    except NotAnswered as missing:
        if _NOT_IMPORTED in missing.sentence:
            return []
        raise


def _is_under_way(status: str) -> bool:
    return status.endswith("_IN_PROGRESS") and status not in WITHOUT_RESOURCES


def _unsettled(statuses: Mapping[str, str], head: Assembly) -> Iterator[Refusal]:
    """Say of each stack that takes no deployment what it waits for."""
    yield from _under_way(statuses)
    for name, status in statuses.items():
        shown = head.by_name[name].shown if name in head.by_name else name
        if _is_under_way(status):
            continue
        if status in ("UPDATE_ROLLBACK_FAILED", "UPDATE_FAILED", "CREATE_FAILED"):
            yield Refusal(
                why=f"{name} is {status}: CloudFormation takes no deployment of it.",
                what_works=f"'cdk rollback {shown}' takes back what is left of the last one; then plan again.",
            )
        elif status == "DELETE_FAILED":
            yield Refusal(
                why=f"{name} is DELETE_FAILED: its destroy has begun, and CloudFormation takes no deployment of it.",
                what_works="Destroy it to its end, then deploy it anew; its events name what holds it.",
            )
        elif status not in SETTLED | WITHOUT_RESOURCES | {_MADE_ANEW}:
            yield Refusal(
                why=f"{name} is {status}: whether CloudFormation takes a deployment of it is not known.",
                what_works="Look at its events, and bring it into a state that ends with _COMPLETE.",
            )


def _of_others(base: Assembly, head: Assembly) -> Iterator[Refusal]:
    """Name the stacks that have a name of this environment and nothing in common with it."""
    own = {stack.name for stack in base.stacks if (new := head.by_name.get(stack.name)) and _is_alike(stack, new)}
    for stack in base.stacks:
        if stack.name in own:
            continue
        is_left = stack.name not in head.by_name
        if is_left and _is_joined(stack, base, own):
            continue
        yield Refusal(
            why=(
                f"{stack.name} is deployed and "
                + (
                    "uses nothing of this environment's stacks, nor they of it"
                    if is_left
                    else "has no resource in common with the stack of that name"
                )
                + ": it is somebody else's, or of another app."
            ),
            what_works="Give this environment another name, or delete that stack if it is yours.",
        )


def _is_alike(one: Stack, other: Stack) -> bool:
    resources = {name: each.type for name, each in other.resources.items()}
    return any(resources.get(name) == each.type for name, each in one.resources.items())


def _is_joined(stack: Stack, base: Assembly, own: set[str]) -> bool:
    """Whether it imports from stacks that are certainly of this environment, or they from it."""
    of_own = {name for name, (exporter, _) in base.exports.items() if exporter.name in own}
    of_it = {name for name, (exporter, _) in base.exports.items() if exporter.name == stack.name}
    used = {name for each in base.stacks if each.name in own for name in imports(dict(each.template))}
    return bool(of_own & set(imports(dict(stack.template))) or of_it & used)
