"""Reads which stacks of an environment need a recovery, why, and the solutions. Changes nothing."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from hyperpod_cdk.catalog import updates
from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.checks.answers import NotAnswered, reading
from hyperpod_cdk.config.environment import STACKS, stack_name
from hyperpod_cdk.review.changes.causes import line_of_failure
from hyperpod_cdk.review.changes.entries import is_stateful
from hyperpod_cdk.review.deployed import WITHOUT_RESOURCES, Api, Deployed, read_deployed
from hyperpod_cdk.review.model import Cause
from hyperpod_cdk.review.nouns import count, noun
from hyperpod_cdk.review.sources import Source
from hyperpod_cdk.templates.assembly import AssemblyError, Resource
from hyperpod_cdk.transitions.failures import (
    LEAVES_BEHIND,
    Event,
    Failure,
    all_inside,
    began,
    deletes_a_cluster,
    first_failure,
    held_back,
    inside,
    is_inside_a_cluster,
    last_of_resource,
    left_behind,
    made_in_update,
)
from hyperpod_cdk.transitions.model import Kept, OpenChangeSet, Recovery, Refusal, Stuck, Way
from hyperpod_cdk.transitions.services import is_view
from hyperpod_cdk.transitions.standing import (
    MADE_ANEW,
    WAYS,
    WITH_REMAINS,
    is_of_others,
    is_ours,
    left_alone,
    of_others,
    way_of,
)
from hyperpod_cdk.transitions.takeover import CHANGE_SET

_OURS: Final = re.compile(rf"cdk-(deploy|diff|bootstrap)-change-set(-[0-9a-f-]+)?|{re.escape(CHANGE_SET)}")
"""The names of change sets of the CDK CLI 2.1148.1 and of ``import --takeover``."""

_AT_REST: Final = ("CREATE_COMPLETE", "FAILED", "DELETE_FAILED")
"""Statuses of a change set on which CloudFormation does not work."""

_EXECUTED: Final = "EXECUTE_"
_GONE: Final = ("DELETE_COMPLETE", "DELETE_SKIPPED")
_EXISTS: Final = re.compile(r"already (exists|exist|in use)|AlreadyExists", re.IGNORECASE)
_CHART: Final = "Custom::AWSCDK-EKS-HelmChart"
_PENDING: Final = "another operation (install/upgrade/rollback) is in progress"
"""How Helm refuses a release that is pending-install, pending-upgrade or pending-rollback (helm issues 8987, 4558)."""

_CANCELS: Final = "UPDATE_IN_PROGRESS"
"""The only status in which CancelUpdateStack works (API reference)."""

_CALLS: Final = {
    Way.ROLL_BACK: "rollback-stack",
    Way.CONTINUE_ROLLBACK: "continue-update-rollback",
    Way.DELETE: "delete-stack",
    Way.DELETE_NEVER_MADE: "delete-stack",
}


_DEPLOYED: Final = {
    "UPDATE_ROLLBACK_COMPLETE": (
        "it is in its state before the update. Correct the cause; {deploy} continues from there."
    ),
    "REVIEW_IN_PROGRESS": "it is empty, and {deploy} creates it.",
}
_MADE: Final = "correct the cause; {deploy} deletes the rest of it and creates it again."

_DONE: Final = {
    Way.CONTINUE_ROLLBACK: (
        "Continues the rollback: changed resources get their previous properties, new resources are deleted. If that "
        "fails again, it asks whether to skip only the failed resources."
    ),
    Way.ROLL_BACK: "Rolls back the {what}, as CloudFormation does by default: new resources are deleted, or retained.",
    Way.DELETE_NEVER_MADE: (
        "Deletes the empty stack of a change set that was never executed, together with the change set."
    ),
    Way.DELETE: (
        "Finishes the deletion. If that fails again, it asks whether to leave only the failed resources behind. "
        "{deploy} creates the stack again."
    ),
    Way.NONE_KNOWN: "Nothing here: AWS documents no call that ends this state; ask AWS Support. {holds}",
}
_NEW: Final = "Nothing here: hyperpod-cdk does not know the state {status}; look it up in CloudFormation's user guide."


def read_recovery(aws: Api, head: Source) -> Recovery:
    """Read the stacks with names of the head's environment. Raises AssemblyError if AWS does not answer."""
    found = read_deployed(aws, head.assembly)
    try:
        with reading("CloudFormation"):
            return _Reading(aws=aws, head=head, found=found).recovery()
    except NotAnswered as missing:
        raise AssemblyError(f"the state of the stacks cannot be read: {missing.sentence}") from None


@dataclass(frozen=True, kw_only=True)
class _Reading:
    aws: Api
    head: Source
    found: Deployed

    def recovery(self) -> Recovery:
        environment = self.head.assembly.environment
        refusals = list(of_others(self.found.base, self.found.head))
        notes = [*self.head.notes]
        try:
            kept = self._kept()
        except NotAnswered as missing:
            kept = []
            notes.append(f"what deleted stacks left behind could not be read: {missing.sentence}")
        stacks: list[Stuck] = []
        change_sets: list[OpenChangeSet] = []
        for described in () if refusals else self._described():
            sets = self._change_sets(described)
            stuck = self._stuck(described, sets, kept)
            if isinstance(stuck, Refusal):
                refusals.append(stuck)
                continue
            if isinstance(stuck, str):
                notes.append(stuck)
                continue
            if stuck is None:
                notes += self._left_behind(described)
            stacks += [stuck] if stuck is not None else []
            if stuck is None or stuck.way not in (Way.DELETE, Way.DELETE_NEVER_MADE):
                change_sets += sets
        stacks.sort(key=self._place)
        if refusals:
            stacks, change_sets = [], []
        return Recovery(
            environment=environment,
            verdict=_verdict(stacks, change_sets, refusals),
            stacks=tuple(stacks),
            change_sets=tuple(change_sets),
            kept=tuple(kept),
            refusals=tuple(refusals),
            notes=tuple(notes),
        )

    def _described(self) -> list[Mapping[str, Any]]:
        described = self.aws.pages("cloudformation", "describe_stacks", "Stacks")
        return [each for each in described if each["StackName"] in self.found.statuses]

    def _place(self, stuck: Stuck) -> tuple[bool, int]:
        """Return a stack's place in the order: each stack before those on which it depends, deleted ones last."""
        names = [each.name for each in (*self.found.base.stacks, *self.head.assembly.stacks)]
        place = names.index(stuck.stack) if stuck.stack in names else len(names)
        is_deletion = stuck.way in (Way.DELETE, Way.DELETE_NEVER_MADE)
        return is_deletion, -place if is_deletion else place

    def _stuck(
        self, described: Mapping[str, Any], sets: Sequence[OpenChangeSet], kept: Sequence[Kept]
    ) -> Stuck | Refusal | str | None:
        """Return what has happened to a stack, or None; a refusal or a note if it is not proven to be ours."""
        name, status = str(described["StackName"]), str(described["StackStatus"])
        is_in_file = name in self.head.assembly.by_name
        is_protected = bool(described.get("EnableTerminationProtection"))
        is_empty = name in self.found.empty
        way = Way.DELETE_NEVER_MADE if is_empty else way_of(status)
        if way is Way.NONE_NEEDED:
            return None
        if status == WITH_REMAINS or (status in MADE_ANEW and (is_protected or not is_in_file)):
            # the CDK CLI would delete the first without naming it, cannot delete the second and does not know the third
            way = Way.DELETE
        if way is Way.DELETE_NEVER_MADE and not sets and is_in_file and not is_empty:
            way = Way.DEPLOY
        is_imported = is_empty or name in self.found.without_template
        if is_imported or status in WITHOUT_RESOURCES:
            proof = is_ours(self.aws, name, status, self.head.assembly.by_name.get(name), is_imported=is_imported)
            if proof is False and is_in_file:
                return is_of_others(name, status, is_imported=is_imported)
            if not is_in_file and not proof:
                return left_alone(name, status)
        events = self._events(str(described["StackId"]))
        failure = first_failure(events, status)
        cause = inside(failure, self._events) if failure else None
        loses = list(self._loses(described, way, events))
        if way is Way.DELETE and is_protected:
            loses.append(f"{name}: its termination protection, which is disabled")
        return Stuck(
            stack=name,
            status=status,
            cause=self._sentence(name, cause) if cause else None,
            blame=self._blame(name, cause) if cause else None,
            in_the_way=self._in_the_way(name, failure, [*kept, *_let_go(name, events)]) if failure else None,
            held=tuple(
                left_behind(each) if status in LEAVES_BEHIND else self._sentence(name, each)
                for each in all_inside(held_back(events, status), status, self._events)
            ),
            way=way,
            does=self._does(described, way, events),
            commands=tuple(self._commands(described, way)),
            loses=tuple(loses),
        )

    def _in_the_way(self, stack: str, failure: Failure, kept: Sequence[Kept]) -> str | None:
        if not (failure.type == _CHART and _PENDING in failure.reason):
            return _in_the_way(failure, kept)
        stated = self._resource(stack, failure.logical_id, failure.type).properties
        release, namespace = (stated.get(name) for name in ("Release", "Namespace"))
        words = [shlex.quote(release) if isinstance(release, str) else "RELEASE", "--namespace"]
        of = " ".join([*words, shlex.quote(namespace) if isinstance(namespace, str) else "default"])
        return (
            "Helm was interrupted during an operation, so it takes the release for one with a running operation: "
            f"'helm history {of}' shows its revisions. If one was deployed, run 'helm rollback {of}'; "
            f"if none was, run 'helm uninstall {of}', and the next deployment installs it again."
        )

    def _left_behind(self, described: Mapping[str, Any]) -> Iterator[str]:
        """Say what the last successful update of a stack has left in the account."""
        status = str(described["StackStatus"])
        if status in LEAVES_BEHIND:
            for each in held_back(self._events(str(described["StackId"])), status):
                yield f"{described['StackName']}: {left_behind(each)}"

    def _events(self, stack_id: str) -> list[Event]:
        found: list[Event] = self.aws.pages(
            "cloudformation", "describe_stack_events", "StackEvents", StackName=stack_id
        )
        return found

    def _loses(self, described: Mapping[str, Any], way: Way, events: Sequence[Event]) -> Iterator[str]:
        """Name what has data or nodes and is deleted by the solution; what is retained stays."""
        name = str(described["StackName"])
        status = str(described["StackStatus"])
        if status in WITHOUT_RESOURCES or way not in (Way.ROLL_BACK, Way.CONTINUE_ROLLBACK, Way.DELETE):
            return
        is_undone = way is not Way.DELETE
        made = made_in_update(events) if status.startswith("UPDATE") else None
        for logical_id, kind, physical in self._listed(described):
            if made is not None and logical_id not in made:
                continue
            resource = self._resource(name, logical_id, kind)
            # the rollback of a creation also deletes what would be retained later
            is_kept = resource.deletion_policy == "Retain" if is_undone else resource.is_kept_on_delete
            # a replacement is deleted, whatever the policy of the replaced resource is
            is_kept = is_kept and not (made or {}).get(logical_id)
            is_harmless = updates.is_made_anew_without_harm(kind) or is_view(self.found.base, resource)
            if is_kept or is_harmless or not is_stateful(resource):
                continue
            yield f"{name} / {resource.name} ({noun(kind)} {physical}): {_holds(kind)}"

    def _resource(self, stack: str, logical_id: str, kind: str) -> Resource:
        """Return a resource as it is deployed, else as the file has it; without either nothing says that it is kept."""
        for side in (self.found.base, self.found.head):
            found = side.find(stack, logical_id)
            if found is not None and found.type == kind:
                stated = self.head.assembly.find(stack, logical_id)
                return Resource(stack=stack, logical_id=logical_id, type=kind, body=found.body, path=_path_of(stated))
        return Resource(stack=stack, logical_id=logical_id, type=kind, body={})

    def _sentence(self, stack: str, failure: Failure) -> str:
        if failure.is_of_stack:
            return f"{failure.logical_id}: {failure.reason}."
        name = failure.place if failure.nested else self._resource(stack, failure.logical_id, failure.type).name
        why = failure.reason or "CloudFormation gives no reason"
        return f"{name} ({failure.type}) could not be {failure.could_not}: {why}."

    def _blame(self, stack: str, failure: Failure) -> Cause | None:
        if self.head.environment is None:
            return None
        is_known = not failure.is_of_stack and not failure.nested
        resource = self._resource(stack, failure.logical_id, failure.type) if is_known else None
        return line_of_failure(resource, failure.reason, self.head.environment)

    def _does(self, described: Mapping[str, Any], way: Way, events: Sequence[Event]) -> str:
        name, status = str(described["StackName"]), str(described["StackStatus"])
        deploy = f"'hyperpod-cdk deploy {self.head.assembly.word}'"
        if way is Way.WAIT:
            return _under_way(events, status, name)
        if way is Way.DEPLOY:
            return f"Nothing here: {_DEPLOYED.get(status, _MADE).format(deploy=deploy)}"
        if name in self.found.empty:
            return f"Deletes the empty stack that an import created; 'import --takeover' or {deploy} creates it again."
        if way is Way.DELETE and status == WITH_REMAINS:
            return f"Deletes the rest of a failed creation; correct the cause, and {deploy} creates it again."
        if way is Way.DELETE and status in MADE_ANEW:
            return "Deletes the rest of a failed creation, which the CDK CLI cannot delete."
        does = _DONE[way] if status in WAYS else _NEW
        what = "creation" if status.startswith("CREATE") else "update"
        holds = self._what_it_holds(described) if way is Way.NONE_KNOWN and status in WAYS else ""
        return does.format(deploy=deploy, status=status, what=what, holds=holds)

    def _what_it_holds(self, described: Mapping[str, Any]) -> str:
        """Say what a deletion would do to a stack whose import could not be rolled back.

        "Results will be available for the resources CloudFormation successfully imported" (user guide, "Stack status
        codes"): the listed resources are the user's, and only DeletionPolicy keeps them if the stack is deleted.
        """
        name = str(described["StackName"])
        template = self.found.base.by_name[name].resources if name in self.found.base.by_name else {}
        kept: list[str] = []
        goes: list[str] = []
        for logical_id, kind, physical in self._listed(described):
            known = template.get(logical_id)
            is_kept = known is not None and known.type == kind and known.is_kept_on_delete
            (kept if is_kept else goes).append(f"{logical_id} ({noun(kind)} {physical})")
        if goes:
            return (
                f"Do not delete it: no template that CloudFormation shows keeps {joined(goes)} with DeletionPolicy: "
                "Retain."
            )
        if not kept:
            return "CloudFormation lists nothing in it."
        return (
            f"Its template has DeletionPolicy: Retain for all that CloudFormation lists in it, {joined(kept)}, so a "
            "deletion removes nothing; AWS does not document whether CloudFormation accepts one in this state."
        )

    def _listed(self, described: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
        """Yield the resources of a stack: logical ID, type and physical ID."""
        summaries = self.aws.pages(
            "cloudformation", "list_stack_resources", "StackResourceSummaries", StackName=described["StackId"]
        )
        for each in summaries:
            if each["ResourceStatus"] not in _GONE and each.get("PhysicalResourceId"):
                yield str(each["LogicalResourceId"]), str(each["ResourceType"]), str(each["PhysicalResourceId"])

    def _commands(self, described: Mapping[str, Any], way: Way) -> Iterator[str]:
        name = str(described["StackName"])
        if way not in _CALLS:
            return
        where = f"--stack-name {shlex.quote(name)} --region {self.head.assembly.region}"
        if way is Way.DELETE and described.get("EnableTerminationProtection"):
            yield f"aws cloudformation update-termination-protection --no-enable-termination-protection {where}"
        yield f"aws cloudformation {_CALLS[way]} {where}"

    def _change_sets(self, described: Mapping[str, Any]) -> list[OpenChangeSet]:
        name = str(described["StackName"])
        found = self.aws.pages("cloudformation", "list_change_sets", "Summaries", StackName=described["StackId"])
        where = f"--stack-name {shlex.quote(name)} --region {self.head.assembly.region}"
        return [
            OpenChangeSet(
                stack=name,
                name=str(each["ChangeSetName"]),
                status=str(each["Status"]),
                is_of_cdk=_OURS.fullmatch(str(each["ChangeSetName"])) is not None,
                command=f"aws cloudformation delete-change-set {where} --change-set-name {each['ChangeSetName']}",
            )
            for each in found
            if each["Status"] in _AT_REST and not str(each.get("ExecutionStatus", "")).startswith(_EXECUTED)
        ]

    def _kept(self) -> list[Kept]:
        """Read what deleted stacks of this environment have left in the account."""
        environment = self.head.assembly.environment
        names = {stack_name(environment, stack) for stack in STACKS} | {each.name for each in self.head.assembly.stacks}
        deleted = self.aws.pages(
            "cloudformation", "list_stacks", "StackSummaries", StackStatusFilter=["DELETE_COMPLETE"]
        )
        resources = [
            (
                stack,
                self.aws.pages(
                    "cloudformation", "list_stack_resources", "StackResourceSummaries", StackName=stack["StackId"]
                ),
            )
            for stack in deleted
            if stack["StackName"] in names
        ]
        # of several deployments the last one that ended with its cluster
        gone = max((_deleted(stack) for stack, rows in resources if deletes_a_cluster(rows)), default=_NEVER)
        return [
            Kept(
                stack=str(stack["StackName"]),
                logical_id=str(each["LogicalResourceId"]),
                type=str(each["ResourceType"]),
                physical_id=str(each["PhysicalResourceId"]),
            )
            for stack, rows in resources
            for each in rows
            if each["ResourceStatus"] == "DELETE_SKIPPED"
            and each.get("PhysicalResourceId")
            and not (is_inside_a_cluster(str(each["ResourceType"])) and _deleted(stack) <= gone)
        ]


_NEVER: Final = datetime.min.replace(tzinfo=UTC)


def _deleted(stack: Mapping[str, Any]) -> datetime:
    """Return when a stack was deleted; without a time it counts as deleted last."""
    found = stack.get("DeletionTime")
    return found if isinstance(found, datetime) else datetime.max.replace(tzinfo=UTC)


def _path_of(stated: Resource | None) -> str:
    return stated.construct_path if stated is not None else ""


def _holds(kind: str) -> str:
    found = updates.STATEFUL.get(kind)
    return f"it holds {found.holds}" if found else "what it holds is unknown"


def _let_go(stack: str, events: Sequence[Event]) -> Iterator[Kept]:
    """Yield what a stack retained when it left the template, or when a creation was rolled back."""
    for each in events:
        if each["ResourceStatus"] == "DELETE_SKIPPED" and each.get("PhysicalResourceId"):
            yield Kept(
                stack=stack,
                logical_id=str(each["LogicalResourceId"]),
                type=str(each["ResourceType"]),
                physical_id=str(each["PhysicalResourceId"]),
            )


def _in_the_way(failure: Failure, kept: Sequence[Kept]) -> str | None:
    """Name what a stack retained under a name that a new resource needs."""
    if not _EXISTS.search(failure.reason):
        return None
    for each in kept:
        if re.search(rf"(?<![\w.-]){re.escape(each.physical_id)}(?![\w-])", failure.reason):
            return (
                f"{each.physical_id} ({noun(each.type)}) exists from an earlier deployment of {each.stack}: copy its "
                "contents and delete it, or give the new one another name; or bring it into the stack with 'cdk"
                " import'."
            )
    return None


def _under_way(events: Sequence[Event], status: str, name: str) -> str:
    start, last = began(events), last_of_resource(events)
    since = f" since {_time(start)}" if start else ""
    what = (
        f"; last {last['LogicalResourceId']} ({last['ResourceType']}) {last['ResourceStatus']} at {_time(last)}"
        if last
        else ""
    )
    cancel = (
        f" 'aws cloudformation cancel-update-stack --stack-name {shlex.quote(name)}' rolls the update back."
        if status == _CANCELS
        else ""
    )
    return f"Waits: CloudFormation works on it{since}{what}.{cancel}"


def _time(event: Event) -> str:
    found = event["Timestamp"]
    return found.strftime("%Y-%m-%d %H:%M:%S UTC") if isinstance(found, datetime) else str(found)


def _verdict(stacks: Sequence[Stuck], sets: Sequence[OpenChangeSet], refusals: Sequence[Refusal]) -> str:
    if refusals:
        return "Refused; nothing is changed."
    unknown = [each.stack for each in stacks if each.way is Way.NONE_KNOWN]
    waiting = [each.stack for each in stacks if each.way is Way.WAIT]
    ways = sum(each.is_done_here for each in stacks) + sum(each.is_of_cdk for each in sets)
    told = [f"{count(ways, 'solution')} to apply"] if ways else []
    told += [f"{count(len(waiting), 'stack')} to wait for"] if waiting else []
    told += [f"{count(len(unknown), 'stack')} without a known solution"] if unknown else []
    return f"{', '.join(told)}.".capitalize() if told else "Nothing needs to be recovered."
