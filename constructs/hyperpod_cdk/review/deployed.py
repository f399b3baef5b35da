"""Reads what is deployed: the environment's stacks as CloudFormation has them. The only side that needs credentials.

Imported only for ``review --deployed``, because calls of AWS load botocore.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final, Protocol

from hyperpod_cdk.catalog.arns import arn_parts
from hyperpod_cdk.checks.answers import NotAnswered, reading
from hyperpod_cdk.config.environment import STACKS, stack_name
from hyperpod_cdk.review.mangled import restored
from hyperpod_cdk.review.nouns import count
from hyperpod_cdk.templates.assembly import Assembly, AssemblyError, Stack, parse_template, with_loops
from hyperpod_cdk.templates.deployment import TOPICS
from hyperpod_cdk.templates.values import imports

WITHOUT_RESOURCES = frozenset({"REVIEW_IN_PROGRESS", "ROLLBACK_COMPLETE", "DELETE_COMPLETE"})
"""States of a stack that has no resources, and counts as missing."""

_TAKEN_BACK: Final = "IMPORT_ROLLBACK_COMPLETE"
"""State of a stack that has "the previous template" (user guide, "Stack status codes"): a new stack has none."""

_NOT_TAKEN_BACK: Final = "IMPORT_ROLLBACK_FAILED"
"""State of a stack for which "results will be available for the resources CloudFormation successfully imported" (the
same page): a new stack may have resources, too."""

SETTLED = frozenset(
    {"CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "IMPORT_COMPLETE", "IMPORT_ROLLBACK_COMPLETE"}
)
"""States of a stack that matches its template."""

_HIDDEN = "****"
"""What CloudFormation returns as the value of a parameter with NoEcho."""

_MANGLED = (
    "CloudFormation returns a question mark for each character that is not ASCII: {values} of {stack} are assumed "
    "to be as in the file. A change of only such characters is not detected."
)


class Api(Protocol):
    """Asks CloudFormation: ``checks.aws.LiveAws``. Both raise checks.answers.NotAnswered."""

    def call(self, service: str, operation: str, **params: Any) -> Mapping[str, Any]:
        """Make one call."""
        ...

    def pages(self, service: str, operation: str, key: str, **params: Any) -> list[Any]:
        """Return the items of ``key`` of all pages."""
        ...

    def send(self, service: str, operation: str, **params: Any) -> Mapping[str, Any]:
        """Make one call each time it is called: for values that change in the meantime."""
        ...


@dataclass(frozen=True, kw_only=True)
class Deployed:
    """What is deployed, and the head as it would be deployed there.

    An existing stack keeps the values of its parameters, so these replace the head's defaults. ``notes`` state problems
    of the stacks, ``statuses`` are those of all stacks that were found, by name, ``protected`` the names of those with
    termination protection, ``empty`` of those that an import has created and could not fill, ``without_template`` of
    those that it may have filled and for which CloudFormation returns no template, ``arns`` the stacks' ARNs by name,
    ``outputs`` the values of their outputs by their keys, ``watched`` the alarms that roll their updates back, and for
    how many minutes after each.
    """

    base: Assembly
    head: Assembly
    notes: tuple[str, ...] = ()
    statuses: Mapping[str, str] = field(default_factory=dict)
    protected: frozenset[str] = frozenset()
    empty: frozenset[str] = frozenset()
    without_template: frozenset[str] = frozenset()
    arns: Mapping[str, str] = field(default_factory=dict)
    outputs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    watched: Mapping[str, tuple[tuple[str, ...], int]] = field(default_factory=dict)


def read_deployed(aws: Api, head: Assembly) -> Deployed:
    """Read the deployed stacks of the head's environment; one that does not exist is omitted.

    It reads the stacks of the head and those that the environment can have had before it. Raises AssemblyError if AWS
    does not answer.
    """
    try:
        found = _described(aws, head)
        with reading("cloudformation:GetTemplate"):
            whole = {str(each["StackName"]): _stack(aws, each, head) for each in found if _may_hold(each)}
        statuses = {str(each["StackName"]): str(each["StackStatus"]) for each in found}
        bare = frozenset(name for name, stack in whole.items() if stack is None)
        empty = frozenset(name for name in bare if statuses[name] == _TAKEN_BACK)
        notes = [note for each in found for note in _notes(each, is_empty=each["StackName"] in empty)]
        notes += [f"CloudFormation shows no template of {name}: its resources are unknown." for name in bare - empty]
        read = [stack for stack in whole.values() if stack is not None]
        with reading("cloudformation:GetTemplate"):
            stacks = [_restored(stack, head.by_name.get(stack.name)) for stack in read]
            notes += [
                _MANGLED.format(stack=stack.name, values=count(number, "value")) for stack, number in stacks if number
            ]
            base = Assembly(environment=head.environment, stacks=_in_order([stack for stack, _ in stacks]))
            stands = _with_exports(_with_parameters(head, found), base)
    except NotAnswered as missing:
        raise AssemblyError(f"the deployed stacks cannot be read: {missing.sentence}") from None
    return Deployed(
        base=base,
        head=stands,
        notes=tuple(notes),
        statuses=statuses,
        protected=frozenset(str(each["StackName"]) for each in found if each.get("EnableTerminationProtection")),
        empty=empty,
        without_template=bare - empty,
        arns={str(each["StackName"]): str(each["StackId"]) for each in found if each.get("StackId")},
        outputs={
            str(each["StackName"]): {
                str(row["OutputKey"]): str(row["OutputValue"])
                for row in each.get("Outputs") or ()
                if "OutputKey" in row and "OutputValue" in row
            }
            for each in found
        },
        watched={str(each["StackName"]): watched for each in found if (watched := _watched(each))[0]},
    )


_PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "Outputs": ("OutputKey",),
    "Parameters": ("ParameterKey",),
    "Tags": ("Key", "Value"),
}
"""The keys of the lists in an item of DescribeStacks that are read."""


def _complete(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an item of DescribeStacks that has all keys that are read; raises KeyError for an incomplete one."""
    parts = [(each, member) for name, members in _PARTS.items() for each in row.get(name, ()) for member in members]
    for part, member in [*((row, name) for name in ("StackName", "StackId", "StackStatus")), *parts]:
        if member not in part:
            raise KeyError(member)
    return row


def stack_of(aws: Api, name: str) -> Mapping[str, Any]:
    """Return a stack by name or ID as DescribeStacks shows it at this moment. Raises NotAnswered."""
    answer = aws.send("cloudformation", "describe_stacks", StackName=name)
    with reading("cloudformation:DescribeStacks"):
        (row,) = answer["Stacks"]
        return _complete(row)


def _may_hold(described: Mapping[str, Any]) -> bool:
    return described["StackStatus"] not in WITHOUT_RESOURCES


def _stack(aws: Api, described: Mapping[str, Any], head: Assembly) -> Stack | None:
    """Read a stack; None if an import has created it and it has no template."""
    name = str(described["StackName"])
    body = aws.call("cloudformation", "get_template", StackName=name, TemplateStage="Original")["TemplateBody"]
    if not body and described["StackStatus"] in (_TAKEN_BACK, _NOT_TAKEN_BACK):
        return None
    where = f"the deployed stack {name}"
    # botocore parses a template that is JSON, and returns one in YAML as text
    template = parse_template(body, where) if isinstance(body, str) else with_loops(body, where)
    of = arn_parts(str(described.get("StackId", "")))
    return Stack(
        name=name,
        template=_with_values(template, described),
        told=frozenset(_values(described)),
        account=of.account or head.account,
        region=of.region or head.region,
        termination_protection=bool(described.get("EnableTerminationProtection")),
        exported={
            str(each["OutputKey"]): str(each["ExportName"])
            for each in described.get("Outputs", ())
            if each.get("ExportName")
        },
        tags={str(tag["Key"]): str(tag["Value"]) for tag in described.get("Tags", ())},
        settings={
            "cloudFormationExecutionRoleArn": (described["RoleARN"],) if described.get("RoleARN") else (),
            TOPICS: tuple(described.get("NotificationARNs", ())),
        },
        settings_are_whole=False,
    )


def _watched(described: Mapping[str, Any]) -> tuple[tuple[str, ...], int]:
    """Return the rollback triggers that CloudFormation has saved for a stack: a user has set them, not an app."""
    stated = described.get("RollbackConfiguration") or {}
    arns = (str(each["Arn"]) for each in stated.get("RollbackTriggers") or () if "Arn" in each)
    alarms = tuple(arn.partition(":alarm:")[2] or arn for arn in arns)
    return alarms, int(stated.get("MonitoringTimeInMinutes") or 0)


def unsettled(aws: Api, head: Assembly) -> list[str]:
    """Say which of these stacks do not match their templates: CloudFormation works on them, or left them halfway.

    Raises AssemblyError as ``read_deployed`` does.
    """
    try:
        found = _described(aws, head)
    except NotAnswered as missing:
        raise AssemblyError(f"the deployed stacks cannot be read: {missing.sentence}") from None
    return [f"{each['StackName']} is {each['StackStatus']}" for each in found if each["StackStatus"] not in SETTLED]


def _described(aws: Api, head: Assembly) -> list[Mapping[str, Any]]:
    """Return what DescribeStacks says of the stacks of the head and of its environment. Raises NotAnswered."""
    names = [stack.name for stack in head.stacks]
    if head.environment:
        names += [name for stack in STACKS if (name := stack_name(head.environment, stack)) not in names]
    rows = aws.pages("cloudformation", "describe_stacks", "Stacks")
    with reading("cloudformation:DescribeStacks"):
        described = {str(each["StackName"]): _complete(each) for each in rows}
    return [described[name] for name in names if name in described]


def _restored(stack: Stack, stated: Stack | None) -> tuple[Stack, int]:
    """Return a deployed stack with the characters that CloudFormation does not show, and how many values have such."""
    if stated is None:
        return stack, 0
    template, number = restored(dict(stack.template), dict(stated.template))
    tags, number_of_tags = restored(dict(stack.tags), dict(stated.tags))
    return replace(stack, template=template, tags=tags), number + number_of_tags


def _notes(described: Mapping[str, Any], *, is_empty: bool) -> list[str]:
    name, status = described["StackName"], described["StackStatus"]
    if is_empty or status in WITHOUT_RESOURCES:
        return [f"The deployed stack {name} is {status}: it has no resources and counts as missing."]
    if status not in SETTLED:
        return [f"The deployed stack {name} is {status}: its resources may differ from its template."]
    return []


def _with_parameters(head: Assembly, found: list[Any]) -> Assembly:
    described = {str(each["StackName"]): each for each in found if _may_hold(each)}
    stacks = (
        replace(
            stack,
            template=_with_values(stack.template, described[stack.name]),
            told=frozenset(_values(described[stack.name])),
        )
        if stack.name in described
        else stack
        for stack in head.stacks
    )
    return replace(head, stacks=tuple(stacks))


def _with_exports(head: Assembly, base: Assembly) -> Assembly:
    """Return the head with CloudFormation's names of the exports that it has unchanged."""

    def stated(stack: Stack, key: str) -> Any:
        return (stack.outputs.get(key) or {}).get("Export")

    def told(stack: Stack) -> Stack:
        old = base.by_name.get(stack.name)
        names = {} if old is None else old.exported
        same = {key: name for key, name in names.items() if old and stated(old, key) == stated(stack, key)}
        return replace(stack, exported=same) if same else stack

    return replace(head, stacks=tuple(told(stack) for stack in head.stacks))


def _with_values(template: Mapping[str, Any], described: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a template whose parameters default to the deployed stack's values."""
    values = _values(described)
    parameters = template.get("Parameters")
    if not values or not isinstance(parameters, dict):
        return template
    told = {
        name: {**stated, "Default": values[name]} if name in values and isinstance(stated, dict) else stated
        for name, stated in parameters.items()
    }
    return {**template, "Parameters": told}


def _values(described: Mapping[str, Any]) -> dict[str, str]:
    """Return the values of a deployed stack that CloudFormation shows, by parameter."""
    return {
        each["ParameterKey"]: each["ParameterValue"]
        for each in described.get("Parameters", ())
        if each.get("ParameterValue", _HIDDEN) != _HIDDEN
    }


def _in_order(stacks: list[Stack]) -> tuple[Stack, ...]:
    """Order stacks by their imports, as the deployment of an assembly does with its manifest."""
    by_name = {stack.name: stack for stack in stacks}
    exports = Assembly(environment="", stacks=tuple(stacks)).exports
    needed = {
        stack.name: tuple(
            sorted(
                {
                    exports[name][0].name
                    for name in imports(stack)
                    if name in exports and exports[name][0].name != stack.name
                }
            )
        )
        for stack in stacks
    }
    try:
        ordered = list(TopologicalSorter(needed).static_order())
    except CycleError:
        ordered = [stack.name for stack in stacks]
    return tuple(replace(by_name[name], dependencies=needed[name]) for name in ordered)
