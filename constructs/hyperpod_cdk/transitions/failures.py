"""Reads a failure from the events of a stack: which resource failed first, why, and what was rolled back or not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from hyperpod_cdk.checks.answers import NotAnswered
from hyperpod_cdk.templates.stack_events import CANCELLED, CUSTOM, HANDLER, REPLACES

Event = Mapping[str, Any]

_STACK: Final = "AWS::CloudFormation::Stack"

_BEGINS: Final = {
    "CREATE": "CREATE_IN_PROGRESS",
    "ROLLBACK": "CREATE_IN_PROGRESS",
    "UPDATE": "UPDATE_IN_PROGRESS",
    "DELETE": "DELETE_IN_PROGRESS",
    "IMPORT": "IMPORT_IN_PROGRESS",
}
"""The status of the stack with which an operation begins, by the first word of its final status."""

_UNDOES: Final = {
    "ROLLBACK_FAILED": ("ROLLBACK_IN_PROGRESS", "DELETE_FAILED"),
    "UPDATE_ROLLBACK_FAILED": ("UPDATE_ROLLBACK_IN_PROGRESS", "UPDATE_FAILED"),
    "IMPORT_ROLLBACK_FAILED": ("IMPORT_ROLLBACK_IN_PROGRESS", "IMPORT_ROLLBACK_FAILED"),
    "DELETE_FAILED": ("DELETE_IN_PROGRESS", "DELETE_FAILED"),
    # "CloudFormation tries to delete a resource three times before CloudFormation skips the resource and continues the
    # cleanup process" (repost.aws/knowledge-center/cloudformation-stack-cleanup-stuck, read 2026-11-28)
    "UPDATE_COMPLETE": ("UPDATE_IN_PROGRESS", "DELETE_FAILED"),
    # so does the clean-up of a rollback with what the update has made (user guide, "Stack status codes",
    # UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS)
    "UPDATE_ROLLBACK_COMPLETE": ("UPDATE_ROLLBACK_IN_PROGRESS", "DELETE_FAILED"),
}
"""The status with which the failed operation began, and the status of the failed resources, by the stack's status."""

_STABLE: Final = frozenset(
    {"CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "IMPORT_COMPLETE", "IMPORT_ROLLBACK_COMPLETE"}
)
"""Statuses to which RollbackStack returns; without one it deletes all of a stack's resources (API reference)."""

_REQUEST: Final = re.compile(r" ?\((?:Service|RequestToken|RequestId): [^()]*\)")
_ROLLED_BACK: Final = re.compile(r"\.? ?Rollback requested by user\.?$")

_VERBS: Final = {"CREATE": "made", "UPDATE": "changed", "DELETE": "deleted", "IMPORT": "imported"}


_CLUSTER: Final = "AWS::EKS::Cluster"
_FILE_SYSTEM: Final = "AWS::FSx::FileSystem"
_INSIDE: Final = re.compile(
    r"Custom::AWSCDK-EKS-(HelmChart|KubernetesResource)|AWS::EKS::(AccessEntry|Addon|PodIdentityAssociation)"
)
"""Types that exist only in an EKS cluster. EKS deletes them with the cluster (DeleteCluster), even if retained."""


@dataclass(frozen=True, kw_only=True)
class Failure:
    """One resource that failed, or the stack itself, without a type, if CloudFormation names no resource."""

    logical_id: str
    type: str
    reason: str
    could_not: str = ""
    status: str = ""
    physical_id: str = ""
    nested: str = ""
    """Name of the nested stack that it is in; empty if it is in the stack itself."""

    @property
    def place(self) -> str:
        """Its logical ID, in a nested stack as ContinueUpdateRollback takes it: NestedStackName.ResourceLogicalID."""
        return f"{self.nested}.{self.logical_id}" if self.nested else self.logical_id

    @property
    def is_nested_stack(self) -> bool:
        """Whether it is a nested stack, whose own events show more."""
        return self.type == _STACK

    @property
    def is_of_a_control_plane(self) -> bool:
        """Whether it is an EKS cluster."""
        return self.type == _CLUSTER

    @property
    def is_of_a_file_system(self) -> bool:
        """Whether it is a file system of FSx."""
        return self.type == _FILE_SYSTEM

    @property
    def is_of_stack(self) -> bool:
        """Whether the stack itself failed."""
        return not self.type


def is_inside_a_cluster(resource_type: str) -> bool:
    """Whether EKS deletes a resource of a type with its cluster, even if its stack could not delete it."""
    return _INSIDE.fullmatch(resource_type) is not None


def deletes_a_cluster(rows: Iterable[Mapping[str, Any]]) -> bool:
    """Whether events or summaries of a stack's resources show that its EKS cluster was deleted."""
    return any(each["ResourceType"] == _CLUSTER and each["ResourceStatus"] == "DELETE_COMPLETE" for each in rows)


def first_failure(events: Sequence[Event], status: str) -> Failure | None:
    """Return what failed first in the operation that brought a stack into ``status``; None if no event shows it.

    ``events`` are all events of the stack, the newest first, as DescribeStackEvents returns them. Resources that were
    cancelled because of another one do not count.
    """
    happened = _since(events, _BEGINS.get(status.partition("_")[0], ""))
    for each in happened:
        if _has_failed(each):
            return _failure(each)
    for each in happened:
        said = str(each.get("ResourceStatusReason") or "")
        is_wrong = _is_of_stack(each) and ("FAILED" in each["ResourceStatus"] or "ROLLBACK" in each["ResourceStatus"])
        if is_wrong and said and not CANCELLED.fullmatch(said):
            return Failure(logical_id=str(each["LogicalResourceId"]), type="", reason=plain_reason(said))
    return None


LEAVES_BEHIND: Final = ("UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE")
"""Successful statuses with which a stack can leave a resource in the account, because CloudFormation gave up on it."""


def left_behind(failure: Failure) -> str:
    """Say that CloudFormation gave up on a deletion, so that a resource is left in the account."""
    what = " ".join(each for each in (failure.type, failure.physical_id) if each)
    why = failure.reason or "CloudFormation gives no reason"
    return (
        f"{failure.place} ({what}) could not be deleted: {why}. CloudFormation gave up and left it in the account; it "
        "belongs to no stack."
    )


EventsOf = Callable[[str], Sequence[Event]]
"""Gives the events of a stack by its ID, the newest first. Raises NotAnswered."""


def inside(failure: Failure, events_of: EventsOf) -> Failure:
    """Return what failed first inside a nested stack instead of the nested stack, as deep as events show it."""
    if not failure.is_nested_stack:
        return failure
    found = first_failure(_events_of_nested(failure, events_of), failure.status)
    if found is None or found.is_of_stack:
        return failure
    return inside(replace(found, nested=_name(failure.physical_id)), events_of)


def all_inside(failures: Iterable[Failure], status: str, events_of: EventsOf) -> list[Failure]:
    """Return what prevented a rollback or a deletion, for nested stacks the resources in them, as deep as events
    show."""
    found: list[Failure] = []
    for each in failures:
        inner = held_back(_events_of_nested(each, events_of), status) if each.is_nested_stack else []
        within = [replace(one, nested=_name(each.physical_id)) for one in inner]
        found += all_inside(within, status, events_of) if within else [each]
    return found


def _events_of_nested(nested: Failure, events_of: EventsOf) -> Sequence[Event]:
    if not nested.physical_id.startswith("arn:"):
        return ()
    try:
        return events_of(nested.physical_id)
    except NotAnswered:
        # then the event of its parent is used
        return ()


def _name(stack_id: str) -> str:
    return stack_id.split("/")[1] if "/" in stack_id else ""


def held_back(events: Sequence[Event], status: str) -> list[Failure]:
    """Return the resources at which the last rollback or deletion failed, or that an update or its rollback left
    behind.

    Nothing for other statuses.

    Each resource once, without those at which another try has succeeded.
    """
    begins, failed = _UNDOES.get(status, ("", ""))
    found: dict[tuple[str, str], Failure] = {}
    for each in _since(events, begins) if begins else ():
        key = (str(each["LogicalResourceId"]), str(each.get("PhysicalResourceId") or ""))
        if each["ResourceStatus"] == failed and _has_failed(each):
            found[key] = _failure(each)
        elif each["ResourceStatus"] == f"{failed.partition('_')[0]}_COMPLETE":
            found.pop(key, None)
    return list({each.logical_id: each for each in found.values()}.values())


def made_in_update(events: Sequence[Event]) -> dict[str, bool] | None:
    """Return the logical IDs of what the last update created and its rollback deletes; True if it replaced another one.

    None if the stack was never created completely: then all of it is deleted.
    """
    if not any(_is_of_stack(each) and each["ResourceStatus"] in _STABLE for each in events):
        return None
    found: dict[str, bool] = {}
    for each in _since(events, "UPDATE_IN_PROGRESS"):
        is_replacement = REPLACES in str(each.get("ResourceStatusReason") or "")
        if not _is_of_stack(each) and (is_replacement or each["ResourceStatus"].startswith("CREATE_")):
            found[str(each["LogicalResourceId"])] = is_replacement or found.get(str(each["LogicalResourceId"]), False)
    return found


def last_of_resource(events: Sequence[Event]) -> Event | None:
    """Return the newest event of a resource, None if there is none."""
    return next((each for each in events if not _is_of_stack(each)), None)


def began(events: Sequence[Event]) -> Event | None:
    """Return the event with which the current operation on a stack began."""
    mine = [each for each in events if _is_of_stack(each)]
    return next((each for each in mine if each["ResourceStatus"] in _BEGINS.values()), None)


def plain_reason(reason: str) -> str:
    """Return a reason without what does not help a reader: wrappers, request ids, line breaks."""
    text = " ".join(reason.split())
    for wrapper in (HANDLER, CUSTOM):
        if found := wrapper.search(text) if wrapper is HANDLER else wrapper.fullmatch(text):
            text = found[1]
    return _ROLLED_BACK.sub("", _REQUEST.sub("", text)).strip().rstrip(".")


def _failure(event: Event) -> Failure:
    verb = _VERBS.get(str(event["ResourceStatus"]).partition("_")[0], "")
    return Failure(
        logical_id=str(event["LogicalResourceId"]),
        type=str(event["ResourceType"]),
        reason=plain_reason(str(event.get("ResourceStatusReason") or "")),
        could_not=verb,
        status=str(event["ResourceStatus"]),
        physical_id=str(event.get("PhysicalResourceId") or ""),
    )


def _since(events: Sequence[Event], begins: str) -> list[Event]:
    """Return the events from the last one with which the stack was in ``begins``, the oldest first."""
    found: list[Event] = []
    for each in events:
        found.append(each)
        if _is_of_stack(each) and each["ResourceStatus"] == begins:
            return found[::-1]
    return []


def _has_failed(event: Event) -> bool:
    said = str(event.get("ResourceStatusReason") or "")
    return not _is_of_stack(event) and event["ResourceStatus"].endswith("_FAILED") and not CANCELLED.fullmatch(said)


def _is_of_stack(event: Event) -> bool:
    # a nested stack is a resource, too, of another id
    return event["ResourceType"] == _STACK and event.get("PhysicalResourceId") == event.get("StackId")
