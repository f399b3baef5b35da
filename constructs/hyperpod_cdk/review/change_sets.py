"""The second witness: what CloudFormation itself says that it would change, by a change set for each deployed stack.

A change set is made, read and deleted, also where this fails or is interrupted, and never executed. It tells whether
CloudFormation updates or replaces a resource, and nothing of what the service does then; so it can only make a review
graver. Only stacks that are there are asked for: a change set of a new stack would leave the stack behind.
"""

from __future__ import annotations

import json
import signal
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from hyperpod_cdk.checks.answers import NotAnswered, Refused, reading
from hyperpod_cdk.review.changes.effects import GRAVEST_FIRST, rank
from hyperpod_cdk.review.changes.summaries import effect_on
from hyperpod_cdk.review.model import BlastRadius, Effect, PropertyEffect, Reason, ReasonKind, ResourceEffect
from hyperpod_cdk.templates.assembly import Assembly, AssemblyError, Resource, Stack

if TYPE_CHECKING:
    from hyperpod_cdk.review.deployed import Api

MOST_BODY_BYTES: Final = 51_200
"""A template that is given with the call may be no larger; larger ones are read from S3 (CloudFormation quotas)."""

SOURCE: Final = "CloudFormation change set"

_CAPABILITIES: Final = ["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"]
_WAIT_SECONDS: Final = 300
_POLL_SECONDS: Final = 1.0
_NOTHING: Final = ("didn't contain changes", "No updates are to be performed")
"""How CloudFormation says that a change set holds no change: it then counts as failed."""


@dataclass(frozen=True, kw_only=True)
class Witness:
    """What CloudFormation says of one stack: its ``ResourceChange`` by logical id, or why there is no answer.

    ``is_refused`` where CloudFormation refused to make the change set; else ``missing`` says why it was not asked.
    """

    stack: str
    changes: Mapping[str, Mapping[str, Any]]
    missing: str = ""
    is_refused: bool = False


def ask(aws: Api, base: Assembly, head: Assembly, *, pause: Callable[[float], None] = time.sleep) -> list[Witness]:
    """Let CloudFormation make a change set for each stack of the head that is deployed; none of them stays.

    Raises AssemblyError where the credentials do not allow it.
    """
    return [
        _witness(aws, stack, base.by_name[stack.name], pause) for stack in head.stacks if stack.name in base.by_name
    ]


def _witness(aws: Api, stack: Stack, deployed: Stack, pause: Callable[[float], None]) -> Witness:
    body = _body(stack)
    if len(body) > MOST_BODY_BYTES:
        missing = (
            f"skipped: its template has {len(body):,} bytes; without S3 CloudFormation takes {MOST_BODY_BYTES:,}, and "
            "a review uploads nothing"
        )
        return Witness(stack=stack.name, changes={}, missing=missing)
    name = f"hyperpod-cdk-review-{uuid.uuid4().hex}"
    request: dict[str, Any] = {
        "StackName": stack.name,
        "ChangeSetName": name,
        "ChangeSetType": "UPDATE",
        "Description": "made by 'hyperpod-cdk review --change-set' to be read and deleted; never executed",
        "TemplateBody": body,
        "Capabilities": _CAPABILITIES,
        "Parameters": [
            {"ParameterKey": key, "UsePreviousValue": True} for key in stack.parameters if key in deployed.parameters
        ],
    }
    if stack.tags:
        request["Tags"] = [{"Key": key, "Value": value} for key, value in stack.tags.items()]
    with _ended_by_sigterm():
        try:
            aws.send("cloudformation", "create_change_set", **request)
            return _read(aws, stack.name, name, pause)
        except NotAnswered as missing:
            if missing.action:
                raise AssemblyError(f"--change-set: {missing.sentence}") from None
            return Witness(stack=stack.name, changes={}, missing=missing.sentence, is_refused=True)
        finally:
            _delete(aws, stack.name, name, pause)


def _body(stack: Stack) -> str:
    """Give the template as short as it goes; what construct and rule wrote beside a resource is no part of it."""
    resources = {
        key: {name: value for name, value in body.items() if name != "Metadata"} if isinstance(body, dict) else body
        for key, body in stack.template.get("Resources", {}).items()
    }
    return json.dumps({**stack.template, "Resources": resources}, separators=(",", ":"))


def _read(aws: Api, stack: str, name: str, pause: Callable[[float], None]) -> Witness:
    until = time.monotonic() + _WAIT_SECONDS
    asked: dict[str, Any] = {"StackName": stack, "ChangeSetName": name, "IncludePropertyValues": True}
    while (found := aws.send("cloudformation", "describe_change_set", **asked))["Status"].endswith(
        ("_PENDING", "_IN_PROGRESS")
    ):
        if time.monotonic() > until:
            missing = f"CloudFormation did not finish it within {_WAIT_SECONDS} seconds"
            return Witness(stack=stack, changes={}, missing=missing, is_refused=True)
        pause(_POLL_SECONDS)
    if found["Status"] == "FAILED":
        why = str(found.get("StatusReason", "it gives no reason"))
        if any(each in why for each in _NOTHING):
            return Witness(stack=stack, changes={})
        return Witness(stack=stack, changes={}, missing=why.rstrip("."), is_refused=True)
    changes = aws.pages("cloudformation", "describe_change_set", "Changes", **asked)
    with reading("cloudformation:DescribeChangeSet"):
        of = [each["ResourceChange"] for each in changes if "ResourceChange" in each]
        return Witness(stack=stack, changes={str(each["LogicalResourceId"]): each for each in of})


def _delete(aws: Api, stack: str, name: str, pause: Callable[[float], None]) -> None:
    """Delete the change set, whatever became of it: one that is still being made cannot be deleted yet."""
    said = ""
    for _ in range(60):
        try:
            aws.send("cloudformation", "delete_change_set", StackName=stack, ChangeSetName=name)
        except NotAnswered as missing:
            said = missing.sentence
            # the stack itself may be gone, or may never have been there
            if isinstance(missing, Refused) and (missing.code == "ChangeSetNotFound" or missing.is_of_no_stack):
                return
            if missing.action:
                break
            pause(_POLL_SECONDS)
        else:
            return
    raise AssemblyError(
        f"--change-set: the change set {name} of {stack} could not be deleted: {said}; delete it by 'aws "
        f"cloudformation delete-change-set --stack-name {stack} --change-set-name {name}'"
    )


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end this as Ctrl-C does, so that what follows is still cleaned up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(*_: object) -> None:
        raise SystemExit(128 + signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def heard(
    radius: BlastRadius, witnesses: Sequence[Witness], base: Assembly, head: Assembly
) -> tuple[BlastRadius, list[Reason], list[str]]:
    """Give the blast radius with what CloudFormation contradicts, reasons to ask a person, and notes.

    What CloudFormation calls graver counts as it says; what it calls less grave is said and counts as before.
    """
    effects = {(each.stack, each.logical_id): each for each in radius.resources}
    notes: list[str] = []
    reasons: list[Reason] = []
    for witness in witnesses:
        if witness.missing:
            said = "made no change set" if witness.is_refused else "was not asked"
            notes.append(f"{witness.stack}: CloudFormation {said}: {witness.missing}.")
            if witness.is_refused:
                unheard = f"CloudFormation refuses to make a change set: {witness.missing}."
                reasons.append(Reason(kind=ReasonKind.UNKNOWN, resource=witness.stack, sentence=unheard))
            continue
        for logical_id, change in witness.changes.items():
            here = (witness.stack, logical_id)
            found = _contradicted(effects.get(here), witness.stack, change, base, head)
            if isinstance(found, ResourceEffect):
                effects[here] = found
            elif found:
                notes.append(found)
        for (stack, logical_id), effect in effects.items():
            if stack == witness.stack and logical_id not in witness.changes and effect.effect is not Effect.ADDED:
                notes.append(
                    f"{stack} / {effect.name}: the templates say {effect.effect}; CloudFormation changes nothing."
                )
    resources = sorted(effects.values(), key=lambda each: (rank(each.effect), not each.stateful))
    counts = Counter(each.effect for each in resources)
    changed = radius.model_copy(
        update={
            "resources": tuple(resources),
            "counts": {effect: counts[effect] for effect in GRAVEST_FIRST if counts[effect]},
        }
    )
    return changed, reasons, notes


def _contradicted(
    ours: ResourceEffect | None, stack: str, change: Mapping[str, Any], base: Assembly, head: Assembly
) -> ResourceEffect | str | None:
    """Give the resource as CloudFormation has it where that is graver, else a note where both do not agree."""
    theirs, sentence = _theirs(change)
    if theirs is None:
        return None
    told = tuple(_properties(change, theirs, sentence))
    if ours is None:
        if theirs is Effect.IN_PLACE and not _is_certain(change):
            # what only follows from another change may come to nothing
            return None
        logical_id = str(change["LogicalResourceId"])
        resource = head.find(stack, logical_id) or base.find(stack, logical_id)
        # what a macro makes stands in neither template
        resource = resource or Resource(stack=stack, logical_id=logical_id, type=str(change["ResourceType"]), body={})
        return effect_on(resource, theirs, sentence, told)
    if rank(ours.effect) <= rank(theirs):
        return _less_grave(ours, theirs)
    kept = [each for each in ours.properties if each.path not in {one.path for one in told}]
    return ours.model_copy(update={"effect": theirs, "summary": sentence, "properties": (*told, *kept)})


def _less_grave(ours: ResourceEffect, theirs: Effect) -> str | None:
    name = f"{ours.stack} / {ours.name}"
    if ours.effect is Effect.UNKNOWN and theirs is Effect.IN_PLACE:
        return f"{name}: CloudFormation does not replace it; what its service does stays unknown."
    # refused and interrupted are no words of CloudFormation's
    is_contradicted = ours.effect in (Effect.REPLACED, Effect.DELETED) and theirs not in (ours.effect, Effect.UNKNOWN)
    return f"{name}: the templates say {ours.effect}; CloudFormation says {theirs}." if is_contradicted else None


_ACTIONS: Final = {
    "Add": (Effect.ADDED, "CloudFormation makes it; the templates did not show it."),
    "Import": (Effect.ADDED, "CloudFormation takes it into the stack; the templates did not show it."),
    "Dynamic": (Effect.UNKNOWN, "CloudFormation cannot tell before the deployment what it does to it."),
    "Remove": (Effect.DELETED, "CloudFormation deletes it; the templates did not show it."),
}
_REPLACEMENTS: Final = {
    "True": (Effect.REPLACED, "CloudFormation replaces it; the templates did not show it."),
    "Conditional": (Effect.UNKNOWN, "CloudFormation may replace it, which shows during the deployment only."),
    "False": (Effect.IN_PLACE, "CloudFormation changes it; the templates did not show it."),
}


def _theirs(change: Mapping[str, Any]) -> tuple[Effect | None, str]:
    """Give what a change comes to (ResourceChange in CloudFormation's API), None for what wakes nobody."""
    action = change["Action"]
    if action == "Remove" and change.get("PolicyAction") == "Retain":
        return Effect.LEFT_BEHIND, "CloudFormation takes it out of its stack; the templates did not show it."
    if action != "Modify":
        return _ACTIONS.get(action, (Effect.UNKNOWN, f"CloudFormation says {action}, which is not known here."))
    # the metadata was left out of what was asked
    if set(change.get("Scope", ())) == {"Metadata"}:
        return None, ""
    return _REPLACEMENTS.get(str(change.get("Replacement")), _REPLACEMENTS["Conditional"])


def _is_certain(change: Mapping[str, Any]) -> bool:
    return any(
        each.get("Evaluation") == "Static" and each.get("Target", {}).get("Attribute") == "Properties"
        for each in change.get("Details", ())
    )


def _properties(change: Mapping[str, Any], effect: Effect, sentence: str) -> Iterator[PropertyEffect]:
    recreates = {Effect.REPLACED: ("Always",), Effect.UNKNOWN: ("Always", "Conditionally")}.get(effect, ())
    seen = set()
    for each in change.get("Details", ()):
        target = each.get("Target", {})
        path = str(target.get("Path", "")).removeprefix("/Properties/").replace("/", ".") or str(target.get("Name", ""))
        if not path or path in seen or (recreates and target.get("RequiresRecreation") not in recreates):
            continue
        seen.add(path)
        yield PropertyEffect(
            path=path,
            before=target.get("BeforeValue"),
            after=target.get("AfterValue"),
            effect=effect,
            reason=sentence,
            source=SOURCE,
            is_indirect=each.get("ChangeSource") in ("ResourceReference", "ResourceAttribute"),
        )
