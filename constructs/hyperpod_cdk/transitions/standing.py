"""What only AWS shows of deployed stacks: their state, their owner, and other stacks that import from them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.checks.answers import NotAnswered, Refused
from hyperpod_cdk.config.environment import STACKS, stack_name
from hyperpod_cdk.living.stacks import with_triggers
from hyperpod_cdk.living.taken import Taken, taken
from hyperpod_cdk.review.changes.entries import is_stateful
from hyperpod_cdk.review.deployed import WITHOUT_RESOURCES, Api, Deployed, read_deployed
from hyperpod_cdk.templates.assembly import Assembly, AssemblyError, Stack, parse_template, with_loops
from hyperpod_cdk.templates.difference import compare
from hyperpod_cdk.templates.values import imports
from hyperpod_cdk.transitions.model import Refusal, Way
from hyperpod_cdk.transitions.needs import Needs, needs
from hyperpod_cdk.transitions.room import Room, room_for
from hyperpod_cdk.transitions.second_life import InTheWay, in_the_way

POLL_SECONDS: Final = 10.0
"""How long to wait before CloudFormation is asked again for the progress."""

"""CloudFormation's answer to ListImports if no stack imports an export."""

WAYS: Final[Mapping[str, Way]] = {
    **dict.fromkeys(("CREATE_COMPLETE", "UPDATE_COMPLETE", "DELETE_COMPLETE"), Way.NONE_NEEDED),
    **dict.fromkeys(("IMPORT_COMPLETE", "IMPORT_ROLLBACK_COMPLETE"), Way.NONE_NEEDED),
    **dict.fromkeys(("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "DELETE_IN_PROGRESS"), Way.WAIT),
    **dict.fromkeys(("ROLLBACK_IN_PROGRESS", "UPDATE_ROLLBACK_IN_PROGRESS"), Way.WAIT),
    **dict.fromkeys(("IMPORT_IN_PROGRESS", "IMPORT_ROLLBACK_IN_PROGRESS"), Way.WAIT),
    "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS": Way.WAIT,
    "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS": Way.WAIT,
    "UPDATE_ROLLBACK_COMPLETE": Way.DEPLOY,
    "ROLLBACK_COMPLETE": Way.DEPLOY,
    "ROLLBACK_FAILED": Way.DEPLOY,
    "REVIEW_IN_PROGRESS": Way.DELETE_NEVER_MADE,
    "CREATE_FAILED": Way.ROLL_BACK,
    "UPDATE_FAILED": Way.ROLL_BACK,
    "UPDATE_ROLLBACK_FAILED": Way.CONTINUE_ROLLBACK,
    "DELETE_FAILED": Way.DELETE,
    "IMPORT_ROLLBACK_FAILED": Way.NONE_KNOWN,
}
"""How a stack gets out of each status.

Sources: CloudFormation user guide, "Stack status codes", "Continue rolling back an update" and "Stack failure options";
API reference, ContinueUpdateRollback, RollbackStack, DeleteStack; what the CDK CLI 2.1148.1 does automatically: its
``StackStatus`` (``isCreationFailure``, ``rollbackChoice``) and ``deployStack``.
"""

MADE_ANEW: Final = frozenset({"ROLLBACK_COMPLETE", "ROLLBACK_FAILED"})
"""A failed first deployment: ``cdk deploy`` deletes what is left of it and creates it again."""

_NEVER_MADE: Final = "REVIEW_IN_PROGRESS"
"""A stack that has at most change sets."""

WITH_REMAINS: Final = "ROLLBACK_FAILED"
"""One of these that could not be rolled back, so that something of it is left."""


@dataclass(frozen=True, kw_only=True)
class Standing:
    """The deployed stacks, the head as it would be deployed there, and what else ``plan.plan`` needs to know of AWS."""

    base: Assembly
    head: Assembly
    importers: Mapping[str, tuple[str, ...]]
    blockers: tuple[Refusal, ...] = ()
    takes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    statuses: Mapping[str, str] = field(default_factory=dict)
    """The statuses of all stacks that were found, by name."""
    room: Room = field(default_factory=Room)
    """AWS's answers about quotas and training plans, if groups replace others."""
    left: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Why Kubernetes objects that are created again could not be deleted, by stack and logical ID."""


def way_of(status: str) -> Way:
    """Return how a stack gets out of a status; unknown for a status that is newer than ``WAYS``."""
    return WAYS.get(status, Way.NONE_KNOWN)


def recovers(word: str) -> str:
    """Return the command for stacks that accept no deployment."""
    return f"hyperpod-cdk recover {word}"


def settle(
    opened: Callable[[], Api],
    environment: str,
    *,
    others: Collection[str] = (),
    say: Callable[[str], None],
    pause: Callable[[float], None],
) -> None:
    """Wait until CloudFormation works on no stack of an environment: it continues interrupted deployments on its own.

    ``opened`` opens a new session, ``others`` are the names of the app's stacks that are not the library's. Raises
    AssemblyError if AWS does not answer.
    """
    names = {*others, *(stack_name(environment, stack) for stack in STACKS)}
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
        raise AssemblyError(f"the deployed stacks cannot be read: {missing.sentence}") from None
    return sorted(
        str(each.get("StackName"))
        for each in described
        # the reader of the deployed stacks reports incomplete rows
        if each.get("StackName") in names and way_of(str(each.get("StackStatus"))) is Way.WAIT
    )


def read_standing(aws: Api, head: Assembly) -> Standing:
    """Read the deployed stacks of the head's environment. Raises AssemblyError if AWS does not answer."""
    found = read_deployed(aws, head)
    base = replace(
        found.base, stacks=tuple(each for each in found.base.stacks if found.statuses[each.name] != WITH_REMAINS)
    )
    blockers = [
        *_unsettled(found, head, strangers={stack.name for stack in _strangers(base, found.head)}),
        *of_others(base, found.head),
        *_empty_of_others(aws, found, head),
    ]
    ours = {stack.name for stack in base.stacks}
    wanted = Needs() if blockers else needs(base, found.head, compare(base, found.head))
    going = wanted.going
    try:
        importers = {name: _others(aws, name, ours) for name in going}
    except NotAnswered as missing:
        raise AssemblyError(f"which stacks import changed exports cannot be read: {missing.sentence}") from None
    beside = Taken() if blockers else taken(aws, base, found.head)
    before = InTheWay() if blockers else in_the_way(aws, base, found.head)
    return Standing(
        base=base,
        head=found.head,
        importers={name: names for name, names in importers.items() if names},
        blockers=(*blockers, *before.refusals, *(_made_again(why, head.word) for why in beside.gone)),
        takes=beside.sentences,
        notes=(
            *found.notes,
            *with_triggers(found.watched, [name for name, each in wanted.actions.items() if each == "deploy"]),
            *beside.unseen,
            *before.unseen,
        ),
        statuses=found.statuses,
        room=Room() if blockers else room_for(aws, base, found.head),
        left=before.left,
    )


def read_to_destroy(aws: Api, head: Assembly) -> Standing:
    """Read all deployed stacks with names of the head's environment, in any state.

    The head of the result is an environment without a stack; dependencies are those of the file and of the imports.
    Raises AssemblyError if AWS does not answer.
    """
    found = read_deployed(aws, head)
    stacks = [_as_in_file(each, head.by_name.get(each.name)) for each in found.base.stacks]
    read = {stack.name for stack in stacks}
    bare: dict[str, Any] = {"Resources": {}}
    blockers = [
        *_under_way(found.statuses),
        *_not_known(found.statuses, head),
        *of_others(found.base, found.head),
        *_empty_of_others(aws, found, head),
    ]
    proofs = {name: _proof(aws, found, head, name) for name in found.statuses if name not in read}
    stacks += [
        Stack(
            name=name,
            template=bare,
            account=head.account,
            region=head.region,
            termination_protection=name in found.protected,
        )
        for name in found.statuses
        if proofs.get(name)
    ]
    whole = replace(found.base, stacks=tuple(stacks))
    try:
        importers = {} if blockers else {name: _others(aws, name, read) for name in whole.exports}
    except NotAnswered as missing:
        raise AssemblyError(f"which stacks import removed exports cannot be read: {missing.sentence}") from None
    return Standing(
        base=whole,
        head=replace(head, stacks=()),
        importers={name: names for name, names in importers.items() if names},
        blockers=tuple(blockers),
        notes=(*found.notes, *_left_alone(found, head, proofs)),
        statuses=found.statuses,
    )


def _as_in_file(deployed: Stack, stated: Stack | None) -> Stack:
    """Return a stack with what only the file shows: its other dependencies, and the names of its constructs."""
    if stated is None:
        return deployed
    dependencies = tuple(dict.fromkeys([*deployed.dependencies, *stated.dependencies]))
    return replace(deployed, dependencies=dependencies, paths=stated.paths)


def _others(aws: Api, export: str, ours: Collection[str]) -> tuple[str, ...]:
    return tuple(each for each in _importers(aws, export) if each not in ours)


def _made_again(why: str, word: str) -> Refusal:
    """Refuse to update what no longer exists, and say how to create it again."""
    return Refusal(
        why=why,
        what_works=(
            f"'hyperpod-cdk destroy {word}' and 'hyperpod-cdk deploy {word}' create all of it again; "
            "what is retained stays. Until then keep its settings in the file as they are deployed."
        ),
    )


def _under_way(statuses: Mapping[str, str]) -> Iterator[Refusal]:
    for name, status in statuses.items():
        if way_of(status) is Way.WAIT:
            yield Refusal(
                why=f"{name} is {status}: CloudFormation works on it.",
                what_works="Wait until it has ended, then plan again.",
            )


def _not_known(statuses: Mapping[str, str], head: Assembly) -> Iterator[Refusal]:
    for name, status in statuses.items():
        if way_of(status) is Way.NONE_KNOWN:
            yield Refusal(
                why=f"{name} is {status}: it is unknown whether CloudFormation deletes it, and which resources.",
                what_works=(
                    f"'{recovers(head.word)}' names what failed and what it holds; bring it into a state with "
                    "_COMPLETE, then destroy it."
                ),
            )


def _importers(aws: Api, export: str) -> list[str]:
    try:
        return [str(each) for each in aws.pages("cloudformation", "list_imports", "Imports", ExportName=export)]
    except Refused as refused:
        if refused.is_of_no_import:
            return []
        raise


def _unsettled(found: Deployed, head: Assembly, *, strangers: Collection[str]) -> Iterator[Refusal]:
    """Say for each stack that accepts no deployment what it waits for; 'recover' refuses each of ``strangers``."""
    yield from _under_way(found.statuses)
    recover = f"'{recovers(head.word)}' names the cause and"
    for name, status in found.statuses.items():
        if name in strangers:
            continue
        way = way_of(status)
        if way in (Way.ROLL_BACK, Way.CONTINUE_ROLLBACK):
            yield Refusal(
                why=f"{name} is {status}: CloudFormation does not accept a deployment of it.",
                what_works=f"{recover} rolls back the rest of the last deployment; then plan again.",
            )
        elif way is Way.DELETE:
            yield Refusal(
                why=(
                    f"{name} is {status}: its deletion has begun, and CloudFormation does not accept a "
                    "deployment of it."
                ),
                what_works=f"{recover} finishes the deletion; then deploy it again.",
            )
        elif name in found.empty:
            yield Refusal(
                why=f"{name} is {status} and empty: an import created it and failed.",
                what_works=f"{recover} deletes it; then plan again.",
            )
        elif way is Way.NONE_KNOWN:
            yield Refusal(
                why=f"{name} is {status}: it is unknown whether CloudFormation accepts a deployment of it.",
                what_works=f"'{recovers(head.word)}' names what failed; bring it into a state with _COMPLETE.",
            )
        elif status == WITH_REMAINS:
            yield Refusal(
                why=(
                    f"{name} is {status}: a failed creation could not be rolled back. What is left of it"
                    f"{_remains(found.base, name)} would be deleted to create it again, and holds what it imports."
                ),
                what_works=f"{recover} what will be deleted, and deletes the rest of it; then plan again.",
            )
        elif status in MADE_ANEW and name in found.protected and name in head.by_name:
            yield Refusal(
                why=f"{name} is {status} and protected against deletion; it must be deleted to be created again.",
                what_works=f"{recover} deletes the rest of it; then plan again.",
            )


def _remains(base: Assembly, name: str) -> str:
    """Name what can be left of a stack and has data or nodes; ``recover`` reads which of it exists."""
    resources = base.by_name[name].resources.values() if name in base.by_name else ()
    held = [each.name for each in resources if is_stateful(each)]
    return f", which can be {joined(held)}," if held else ""


def of_others(base: Assembly, head: Assembly) -> Iterator[Refusal]:
    """Name the stacks that have a name of this environment and nothing in common with it."""
    for stack in _strangers(base, head):
        is_left = stack.name not in head.by_name
        yield Refusal(
            why=(
                f"{stack.name} is deployed and "
                + (
                    "uses nothing of this environment's stacks, and they use nothing of it"
                    if is_left
                    else "has no resource in common with the stack of that name"
                )
                + f": it belongs to somebody else, or to another app (SHA-256 of its template: {_digest(stack)})."
            ),
            what_works="Give this environment another name, or delete that stack if it is yours.",
        )


def _strangers(base: Assembly, head: Assembly) -> Iterator[Stack]:
    own = {stack.name for stack in base.stacks if (new := head.by_name.get(stack.name)) and is_alike(stack, new)}
    for stack in base.stacks:
        if stack.name in own or (stack.name not in head.by_name and _is_joined(stack, base, own)):
            continue
        yield stack


def _digest(stack: Stack) -> str:
    """Return a short identifier of a template: the beginning of the SHA-256 of its JSON, with sorted keys."""
    return hashlib.sha256(json.dumps(stack.template, sort_keys=True, default=str).encode()).hexdigest()[:12]


def is_ours(aws: Api, name: str, status: str, own: Stack | None, *, is_imported: bool = False) -> bool | None:
    """Return whether a stack without resources is proven to be of an environment, whose stack of that name is ``own``.

    The proof is its last template or, before anything was created, those of its change sets; None if it has none.
    ``is_imported``: an import created it and failed, which its events prove. Raises NotAnswered.
    """
    if is_imported:
        events = aws.pages("cloudformation", "describe_stack_events", "StackEvents", StackName=name)
        wanted = {} if own is None else {key: each.type for key, each in own.resources.items()}
        return any(wanted.get(str(each["LogicalResourceId"])) == each["ResourceType"] for each in events)
    asked: list[dict[str, str]] = [{}]
    if status == _NEVER_MADE:
        sets = aws.pages("cloudformation", "list_change_sets", "Summaries", StackName=name)
        asked = [{"ChangeSetName": str(each["ChangeSetName"])} for each in sets]
    found = [
        aws.call("cloudformation", "get_template", StackName=name, TemplateStage="Original", **each) for each in asked
    ]
    if not found:
        return None
    return own is not None and all(is_alike(_parsed(name, each["TemplateBody"]), own) for each in found)


def is_of_others(name: str, status: str, *, is_imported: bool = False) -> Refusal:
    """Refuse any action while a stack without resources has a name of the file and belongs to somebody else."""
    what = "what was to be imported" if is_imported else "its template"
    return Refusal(
        why=f"{name} is {status}, and {what} has no resource in common with the stack of that name.",
        what_works="Give this environment another name, or delete that stack if it is yours.",
    )


def left_alone(name: str, status: str) -> str:
    """Say that a stack without resources stays, because its owner is unknown."""
    return f"{name} is {status} and empty; nothing proves that it belongs to this environment. It stays unchanged."


def _proof(aws: Api, found: Deployed, head: Assembly, name: str) -> bool | None:
    is_imported = name in found.empty | found.without_template
    try:
        return is_ours(aws, name, found.statuses[name], head.by_name.get(name), is_imported=is_imported)
    except NotAnswered as missing:
        raise AssemblyError(f"the owner of {name} cannot be read: {missing.sentence}") from None


def _left_alone(found: Deployed, head: Assembly, proofs: Mapping[str, bool | None]) -> Iterator[str]:
    """Name what stays; a refusal names stacks that have a name of the file and belong to somebody else."""
    for name, proof in proofs.items():
        if proof is None or (proof is False and name not in head.by_name):
            yield left_alone(name, found.statuses[name])


def _empty_of_others(aws: Api, found: Deployed, head: Assembly) -> Iterator[Refusal]:
    for name, status in found.statuses.items():
        is_imported = name in found.empty | found.without_template
        is_empty = is_imported or status in WITHOUT_RESOURCES
        if is_empty and name in head.by_name and _proof(aws, found, head, name) is False:
            yield is_of_others(name, status, is_imported=is_imported)


def _parsed(name: str, body: Any) -> Stack:
    where = f"the deployed stack {name}"
    # botocore parses a template that is JSON, and gives one in YAML as text
    template = parse_template(body or "{}", where) if isinstance(body, str) else with_loops(body, where)
    return Stack(name=name, template=template, account="", region="")


def is_alike(one: Stack, other: Stack) -> bool:
    """Whether two stacks have a resource in common: the same type with the same logical ID."""
    resources = {name: each.type for name, each in other.resources.items()}
    return any(resources.get(name) == each.type for name, each in one.resources.items())


def _is_joined(stack: Stack, base: Assembly, own: set[str]) -> bool:
    """Whether it imports from stacks that certainly belong to this environment, or they from it."""
    of_own = {name for name, (exporter, _) in base.exports.items() if exporter.name in own}
    of_it = {name for name, (exporter, _) in base.exports.items() if exporter.name == stack.name}
    used = {name for each in base.stacks if each.name in own for name in imports(each)}
    return bool(of_own & set(imports(stack)) or of_it & used)
