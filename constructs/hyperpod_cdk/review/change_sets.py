"""The second source: what CloudFormation itself would change, from a change set for each deployed stack.

A change set is created, read and deleted, also after a failure or an interruption, and never executed. It shows whether
CloudFormation updates or replaces a resource, but not what the service then does; so it can only make a review more
serious. Only existing stacks get a change set: that of a new stack would leave the stack behind.
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
"""The largest template that a call may contain; larger ones are read from S3 (CloudFormation quotas)."""

SOURCE: Final = "CloudFormation change set"

_CAPABILITIES: Final = ["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"]
_WAIT_SECONDS: Final = 300
_POLL_SECONDS: Final = 1.0
_NOTHING: Final = ("didn't contain changes", "No updates are to be performed")
"""CloudFormation's reasons for a change set without changes, whose status is FAILED."""


@dataclass(frozen=True, kw_only=True)
class Witness:
    """What CloudFormation reports for one stack: its ``ResourceChange`` by logical ID, or why there is no answer.

    ``is_refused`` if CloudFormation refused to create the change set; otherwise ``missing`` is why it was not asked.
    """

    stack: str
    changes: Mapping[str, Mapping[str, Any]]
    missing: str = ""
    is_refused: bool = False


def ask(aws: Api, base: Assembly, head: Assembly, *, pause: Callable[[float], None] = time.sleep) -> list[Witness]:
    """Let CloudFormation create a change set for each stack of the head that is deployed; all of them are deleted.

    Raises AssemblyError if the credentials do not allow it.
    """
    return [
        _witness(aws, stack, base.by_name[stack.name], pause) for stack in head.stacks if stack.name in base.by_name
    ]


def _witness(aws: Api, stack: Stack, deployed: Stack, pause: Callable[[float], None]) -> Witness:
    body = _body(stack)
    if len(body) > MOST_BODY_BYTES:
        missing = (
            f"skipped: its template has {len(body):,} bytes; without S3 CloudFormation accepts {MOST_BODY_BYTES:,}, "
            "and a review uploads nothing"
        )
        return Witness(stack=stack.name, changes={}, missing=missing)
    name = f"hyperpod-cdk-review-{uuid.uuid4().hex}"
    request: dict[str, Any] = {
        "StackName": stack.name,
        "ChangeSetName": name,
        "ChangeSetType": "UPDATE",
        "Description": "created by 'hyperpod-cdk review --change-set' to be read and deleted; never executed",
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
    """Return the template in its shortest form, without the metadata that constructs and rules add to resources."""
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
    """Delete the change set in any state: one that is still being created cannot be deleted yet."""
    said = ""
    for _ in range(60):
        try:
            aws.send("cloudformation", "delete_change_set", StackName=stack, ChangeSetName=name)
        except NotAnswered as missing:
            said = missing.sentence
            # the stack itself may be deleted, or may never have existed
            if isinstance(missing, Refused) and (missing.code == "ChangeSetNotFound" or missing.is_of_no_stack):
                return
            if missing.action:
                break
            pause(_POLL_SECONDS)
        else:
            return
    raise AssemblyError(
        f"--change-set: the change set {name} of {stack} could not be deleted: {said}; delete it with 'aws "
        f"cloudformation delete-change-set --stack-name {stack} --change-set-name {name}'"
    )


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end this as Ctrl-C does, so that the change set is still deleted."""
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


def with_change_sets(
    radius: BlastRadius, witnesses: Sequence[Witness], base: Assembly, head: Assembly
) -> tuple[BlastRadius, list[Reason], list[str]]:
    """Return the blast radius with CloudFormation's corrections, reasons for an approval, and notes.

    If CloudFormation reports a more serious effect, that one counts; a less serious one is noted, and ours counts.
    """
    effects = {(each.stack, each.logical_id): each for each in radius.resources}
    notes: list[str] = []
    reasons: list[Reason] = []
    for witness in witnesses:
        if witness.missing:
            said = "created no change set" if witness.is_refused else "was not asked"
            notes.append(f"{witness.stack}: CloudFormation {said}: {witness.missing}.")
            if witness.is_refused:
                problem = f"CloudFormation refuses to create a change set: {witness.missing}."
                reasons.append(Reason(kind=ReasonKind.UNKNOWN, resource=witness.stack, sentence=problem))
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
                    f"{stack} / {effect.name}: the templates show {effect.effect}; CloudFormation changes nothing."
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
    """Return the resource with CloudFormation's effect if that is more serious, else a note if both differ."""
    theirs, sentence = _theirs(change)
    if theirs is None:
        return None
    told = tuple(_properties(change, theirs, sentence))
    if ours is None:
        if theirs is Effect.IN_PLACE and not _is_certain(change):
            # a change that only follows from another one may turn out to be none
            return None
        logical_id = str(change["LogicalResourceId"])
        resource = head.find(stack, logical_id) or base.find(stack, logical_id)
        # a resource of a macro is in neither template
        resource = resource or Resource(stack=stack, logical_id=logical_id, type=str(change["ResourceType"]), body={})
        return effect_on(resource, theirs, sentence, told)
    if rank(ours.effect) <= rank(theirs):
        return _less_grave(ours, theirs)
    kept = [each for each in ours.properties if each.path not in {one.path for one in told}]
    return ours.model_copy(update={"effect": theirs, "summary": sentence, "properties": (*told, *kept)})


def _less_grave(ours: ResourceEffect, theirs: Effect) -> str | None:
    name = f"{ours.stack} / {ours.name}"
    if ours.effect is Effect.UNKNOWN and theirs is Effect.IN_PLACE:
        return f"{name}: CloudFormation does not replace it; what its service does is unknown."
    # CloudFormation does not know the effects refused and interrupted
    is_contradicted = ours.effect in (Effect.REPLACED, Effect.DELETED) and theirs not in (ours.effect, Effect.UNKNOWN)
    return f"{name}: the templates show {ours.effect}; CloudFormation reports {theirs}." if is_contradicted else None


_ACTIONS: Final = {
    "Add": (Effect.ADDED, "CloudFormation creates it; the templates did not show it."),
    "Import": (Effect.ADDED, "CloudFormation imports it into the stack; the templates did not show it."),
    "Dynamic": (Effect.UNKNOWN, "CloudFormation cannot determine before the deployment what it does to it."),
    "Remove": (Effect.DELETED, "CloudFormation deletes it; the templates did not show it."),
}
_REPLACEMENTS: Final = {
    "True": (Effect.REPLACED, "CloudFormation replaces it; the templates did not show it."),
    "Conditional": (Effect.UNKNOWN, "CloudFormation may replace it; only the deployment shows that."),
    "False": (Effect.IN_PLACE, "CloudFormation changes it; the templates did not show it."),
}


def _theirs(change: Mapping[str, Any]) -> tuple[Effect | None, str]:
    """Return the effect of a change (ResourceChange in CloudFormation's API), None if it concerns no one."""
    action = change["Action"]
    if action == "Remove" and change.get("PolicyAction") == "Retain":
        return Effect.LEFT_BEHIND, "CloudFormation removes it from its stack; the templates did not show it."
    if action != "Modify":
        return _ACTIONS.get(action, (Effect.UNKNOWN, f"CloudFormation reports {action}, which is unknown here."))
    # the metadata was omitted from the request
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
