"""Serve Custom::ClusterSchedulerConfig and Custom::ComputeQuota through the SageMaker API.

The custom resources take the property names of AWS::SageMaker::ClusterSchedulerConfig and
AWS::SageMaker::ComputeQuota and answer with the same attributes, so that a region that gains the native types
needs no change of values.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from botocore.exceptions import ClientError

# relative, since in Lambda the package above has another name
from ..answering import Answer, Clients, Put, Sleep, ToldError, Turn, client, error_code, put, serve  # noqa: TID252

LOG = logging.getLogger(__name__)
LOG.setLevel(logging.INFO)

OWNER_TAG = "hyperpod-cdk:owner"
"""Key of the tag that says which stack and logical id a policy or quota belongs to."""

STOP_WAITING_SECONDS = 20.0
"""How long before the work has to be done waiting ends, so that there is time to clean up."""
CONFLICT_PAUSES = (2.0, 4.0, 8.0, 16.0, 32.0, 45.0, 45.0)
"""Seconds between attempts at a call refused with ConflictException; one more attempt follows the last."""

IN_PROGRESS = frozenset({"Creating", "Updating", "Deleting"})
READY = frozenset({"Created", "Updated"})
NEVER_CREATED = frozenset({"CreateFailed", "CreateRollbackFailed"})
DELETE_FAILED = frozenset({"DeleteFailed", "DeleteRollbackFailed"})

Properties = Mapping[str, Any]
T = TypeVar("T")


class GovernanceError(ToldError):
    """A policy or quota that could not be brought to what is wanted."""


class DeadlineError(GovernanceError):
    """Lambda's time is nearly used up."""


@dataclass(frozen=True)
class Kind:
    """One of the two resource types and the names the API uses for it."""

    noun: str
    operation: str
    words: str
    resets: Mapping[str, Any]
    """What a property goes back to when it is taken out of the template; an update without it would leave it."""

    def identity(self, properties: Properties) -> tuple[str, ...]:
        """Return what cannot be changed in place; another value means another resource."""
        target = properties.get("ComputeQuotaTarget") or {}
        return (
            str(properties.get("Name", "")),
            str(properties.get("ClusterArn", "")),
            str(target.get("TeamName", "")),
        )

    def id_of(self, arn: str) -> str:
        """Return the twelve-character id that the API takes, from the ARN."""
        return arn.rpartition("/")[2]

    def is_arn(self, physical_id: str) -> bool:
        """Return whether a physical id names a resource of this kind, not one that was never made."""
        return physical_id.startswith("arn:") and f":{self.operation.replace('_', '-')}/" in physical_id


KINDS = {
    "Custom::ClusterSchedulerConfig": Kind(
        noun="ClusterSchedulerConfig",
        operation="cluster_scheduler_config",
        words="cluster policy",
        resets={
            "Description": "",
            "SchedulerConfig": {"PriorityClasses": [], "FairShare": "Enabled", "IdleResourceSharing": "Disabled"},
        },
    ),
    "Custom::ComputeQuota": Kind(
        noun="ComputeQuota",
        operation="compute_quota",
        words="compute quota",
        resets={
            "Description": "",
            "ActivationState": "Enabled",
            "ComputeQuotaTarget": {"FairShareWeight": "0"},
            "ComputeQuotaConfig": {
                "PreemptTeamTasks": "LowerPriority",
                "ResourceSharingConfig": {"AbsoluteBorrowLimits": []},
            },
        },
    ),
}


def handler(event: Mapping[str, Any], context: Any) -> None:
    """Handle one CloudFormation event and answer its response URL."""
    handle(event, context, clients=client, put=put)


def handle(event: Mapping[str, Any], context: Any, *, clients: Clients, put: Put, sleep: Sleep = time.sleep) -> None:
    """Handle one event with the given AWS clients, sender and sleep."""
    serve(event, context, _served, clients=clients, put=put, sleep=sleep)


def _served(turn: Turn) -> Answer:
    event = turn.event
    properties = event["ResourceProperties"]
    physical_id = str(event.get("PhysicalResourceId", ""))
    kind = KINDS[event["ResourceType"]]
    if turn.kind == "Delete" and not kind.is_arn(physical_id):
        return Answer()

    def remember(arn: str) -> None:
        turn.physical_id = arn

    pace = Pace(remaining=turn.seconds_left, sleep=turn.sleep)
    governance = Governance(kind, turn.client("sagemaker"), pace=pace, owner=owner_of(event), on_created=remember)
    match turn.kind:
        case "Create":
            return Answer(data=governance.attributes(governance.create(properties)))
        case "Update":
            arn = governance.update(physical_id, event.get("OldResourceProperties", {}), properties)
            return Answer(data=governance.attributes(arn))
        case _:
            governance.delete(physical_id)
            return Answer()


class Governance:
    """Create, update and delete one cluster policy or compute quota; every method may be repeated safely."""

    def __init__(
        self,
        kind: Kind,
        client: Any,
        *,
        pace: Pace,
        owner: str,
        on_created: Callable[[str], None],
    ) -> None:
        self.kind = kind
        self.client = client
        self.pace = pace
        self.owner = owner
        self.on_created = on_created

    def create(self, properties: Properties) -> str:
        """Create the resource, wait for it and give its ARN; a failed one is deleted and made once more."""
        arn = self._create_once(properties)
        self.on_created(arn)
        found = self._settled(arn)
        if found is not None and found["Status"] in NEVER_CREATED:
            self.delete(arn)
            arn = self._create_once(properties)
            self.on_created(arn)
            found = self._settled(arn)
        if found is None or found["Status"] not in READY:
            raise GovernanceError(self._failure("could not be created", found))
        return arn

    def update(self, arn: str, old: Properties, new: Properties) -> str:
        """Bring the resource to ``new`` and give its ARN, another one if name, cluster or team changed."""
        if self.kind.identity(old) != self.kind.identity(new):
            return self._replacement(arn, new)
        found = self._settled(arn) if self.kind.is_arn(arn) else None
        if found is None:
            return self._replacement(arn, new)
        if found["Status"] in NEVER_CREATED:
            self.delete(arn)
            return self._replacement(arn, new)
        wanted = with_resets(self.kind.resets, old, new)
        for _ in range(2):
            if not self._update_once(arn, wanted):
                return self._replacement(arn, new)
            found = self._settled(arn)
            if found is not None and found["Status"] in READY:
                self._retag(arn, old, new)
                return arn
        raise GovernanceError(self._failure("could not be updated", found))

    def delete(self, arn: str) -> None:
        """Delete the resource and wait until it is gone; one that is not there counts as deleted."""
        if not self.kind.is_arn(arn):
            return
        failures = 0
        while (found := self._settled(arn)) is not None:
            if found["Status"] in DELETE_FAILED:
                failures += 1
            if failures > 1:
                raise GovernanceError(self._failure("could not be deleted", found))
            self._patiently(lambda: self._delete_once(arn))
            self.pace.wait(1)

    def attributes(self, arn: str) -> Mapping[str, Any]:
        """Return the attributes of the native type, for Fn::GetAtt."""
        noun = self.kind.noun
        found = self._describe(arn)
        if found is None:
            raise GovernanceError(f"the {self.kind.words} {arn} was deleted while it was being made")
        return {
            f"{noun}Arn": arn,
            f"{noun}Id": self.kind.id_of(arn),
            f"{noun}Version": found[f"{noun}Version"],
            "Status": found["Status"],
        }

    def _create_once(self, properties: Properties) -> str:
        request = self._request("Create", properties)
        request["Tags"] = [*request.get("Tags", []), {"Key": OWNER_TAG, "Value": self.owner}]

        def attempt() -> str:
            try:
                return str(self._call("create", **request)[f"{self.kind.noun}Arn"])
            except ClientError as error:
                if error_code(error) != "ConflictException" or (existing := self._named(properties)) is None:
                    raise
                return self._adopted(existing, properties, error)

        return self._patiently(attempt)

    def _adopted(self, existing: Mapping[str, Any], properties: Properties, error: ClientError) -> str:
        arn = str(existing[f"{self.kind.noun}Arn"])
        if existing["Status"] == "Deleting":
            raise error
        if {"Key": OWNER_TAG, "Value": self.owner} not in self._tags(arn):
            name = properties["Name"]
            raise GovernanceError(
                f"a {self.kind.words} named {name} exists on this cluster and is not this stack's ({arn}); "
                "delete it or choose another name"
            ) from error
        found = self._settled(arn)
        if found is None:
            raise error
        if self.kind.identity(found) != self.kind.identity(properties):
            raise GovernanceError(
                f"the {self.kind.words} {properties['Name']} cannot go to another team under its name; "
                "change the name as well"
            ) from error
        if found["Status"] not in NEVER_CREATED and not self._update_once(arn, properties):
            raise error
        return arn

    def _replacement(self, old_arn: str, properties: Properties) -> str:
        arns: list[str] = []
        previous, self.on_created = self.on_created, arns.append
        try:
            arn = self.create(properties)
        except Exception:
            # CloudFormation keeps the old physical id after a failed update: it would never delete this one
            for made in arns:
                if made != old_arn:
                    self._delete_quietly(made)
            raise
        finally:
            self.on_created = previous
        self.on_created(arn)
        return arn

    def _delete_once(self, arn: str) -> None:
        try:
            self._call("delete", **self._id(arn))
        except ClientError as error:
            if error_code(error) != "ResourceNotFound":
                raise

    def _delete_quietly(self, arn: str) -> None:
        try:
            self.delete(arn)
        except (ClientError, GovernanceError) as error:
            LOG.warning("could not clean up %s: %s", arn, error)

    def _update_once(self, arn: str, properties: Properties) -> bool:
        """Send one update against the version that stands now; False if the resource is gone."""

        def attempt() -> bool:
            found = self._settled(arn)
            if found is None:
                return False
            request = self._request("Update", properties)
            self._call("update", **self._id(arn), TargetVersion=found[f"{self.kind.noun}Version"], **request)
            return True

        try:
            sent = self._patiently(attempt)
        except ClientError as error:
            if error_code(error) == "ResourceNotFound":
                return False
            raise
        self.pace.wait(1)
        return sent

    def _retag(self, arn: str, old: Properties, new: Properties) -> None:
        before = {tag["Key"]: tag["Value"] for tag in old.get("Tags", [])}
        after = {tag["Key"]: tag["Value"] for tag in new.get("Tags", [])}
        if gone := sorted(before.keys() - after.keys()):
            self.client.delete_tags(ResourceArn=arn, TagKeys=gone)
        if changed := [{"Key": k, "Value": v} for k, v in sorted(after.items()) if before.get(k) != v]:
            self.client.add_tags(ResourceArn=arn, Tags=changed)

    def _tags(self, arn: str) -> list[Mapping[str, str]]:
        answer = self.client.list_tags(ResourceArn=arn)
        tags = [*answer["Tags"]]
        while answer.get("NextToken"):
            answer = self.client.list_tags(ResourceArn=arn, NextToken=answer["NextToken"])
            tags.extend(answer["Tags"])
        return tags

    def _named(self, properties: Properties) -> Mapping[str, Any] | None:
        summaries = f"{self.kind.noun}Summaries"
        request = {"ClusterArn": properties["ClusterArn"], "NameContains": properties["Name"]}
        while True:
            page = self._call("list", plural="s", **request)
            for summary in page.get(summaries, []):
                if summary["Name"] == properties["Name"] and summary["Status"] != "Deleted":
                    return dict(summary)
            if not page.get("NextToken"):
                return None
            request["NextToken"] = page["NextToken"]

    def _settled(self, arn: str) -> Mapping[str, Any] | None:
        """Wait while AWS works on the resource and give its description, or None once it is gone."""
        pause = 1.0
        while True:
            found = self._describe(arn)
            if found is None or found["Status"] not in IN_PROGRESS:
                return found
            self.pace.wait(pause, f"{arn} is still {found['Status']}")
            pause = min(pause * 2, 5.0)

    def _describe(self, arn: str) -> Mapping[str, Any] | None:
        try:
            found = self._call("describe", **self._id(arn))
        except ClientError as error:
            if error_code(error) == "ResourceNotFound":
                return None
            raise
        return None if found["Status"] == "Deleted" else dict(found)

    def _patiently(self, attempt: Callable[[], T]) -> T:
        """Repeat a call that AWS refuses because something else is under way."""
        for pause in CONFLICT_PAUSES:
            try:
                return attempt()
            except ClientError as error:
                if error_code(error) != "ConflictException":
                    raise
            self.pace.wait(pause, "SageMaker answers ConflictException")
        return attempt()

    def _call(self, verb: str, *, plural: str = "", **request: Any) -> Any:
        return getattr(self.client, f"{verb}_{self.kind.operation}{plural}")(**request)

    def _id(self, arn: str) -> dict[str, str]:
        return {f"{self.kind.noun}Id": self.kind.id_of(arn)}

    def _request(self, verb: str, properties: Properties) -> dict[str, Any]:
        shape = self.client.meta.service_model.operation_model(f"{verb}{self.kind.noun}").input_shape
        ours = {"ServiceToken", "ServiceTimeout"}
        fixed = set() if verb == "Create" else {"Name", "ClusterArn", "Tags"}
        return {
            name: converted(value, shape, name)
            for name, value in properties.items()
            if name not in ours and name not in fixed
        }

    def _failure(self, what: str, found: Mapping[str, Any] | None) -> str:
        if found is None:
            return f"the {self.kind.words} {what}: it is gone"
        reason = found.get("FailureReason") or "AWS gives no reason"
        parts = found.get("StatusDetails") or {}
        details = f" ({', '.join(f'{part} {status}' for part, status in sorted(parts.items()))})" if parts else ""
        return f"the {self.kind.words} {found['Name']} {what}: {found['Status']}{details}, {reason}"


class Pace:
    """Waiting, with an eye on Lambda's timeout."""

    def __init__(self, *, remaining: Callable[[], float], sleep: Callable[[float], None]) -> None:
        self._remaining = remaining
        self._sleep = sleep

    def wait(self, seconds: float, why: str = "waiting for SageMaker") -> None:
        """Sleep, or raise DeadlineError if there would be no time left to answer afterwards."""
        if self._remaining() - seconds < STOP_WAITING_SECONDS:
            raise DeadlineError(f"Lambda ran out of time: {why}; deploy again once it has settled")
        self._sleep(seconds)


def owner_of(event: Mapping[str, Any]) -> str:
    """Name stack (by its unique id) and logical id of an event, in a tag value's 256 characters."""
    return f"{str(event['StackId']).rpartition('/')[2]}/{event['LogicalResourceId']}"[:256]


def with_resets(resets: Mapping[str, Any], old: Properties, new: Properties) -> dict[str, Any]:
    """Return ``new`` with the values of ``resets`` for what ``old`` has and ``new`` has no more, at any depth."""
    wanted = dict(new)
    for name, value in resets.items():
        if name not in old:
            continue
        if name not in new:
            # a structure that is gone as a whole is required in the template, or has nothing to go back to
            wanted.update({} if isinstance(value, Mapping) else {name: value})
        elif isinstance(value, Mapping):
            wanted[name] = with_resets(value, old[name], new[name])
    return wanted


def converted(value: Any, shape: Any, name: str) -> Any:
    """Turn one property into what the API takes; CloudFormation hands over every number as text.

    ``shape`` is the botocore shape of the structure that holds the property ``name``. Raises GovernanceError
    for a property that the SDK of the Lambda runtime does not know.
    """
    member = shape.members.get(name)
    if member is None:
        raise GovernanceError(f"{name}: the SDK of this Lambda runtime does not know it in {shape.name}")
    return _as(value, member, name)


def _as(value: Any, shape: Any, name: str) -> Any:
    match shape.type_name:
        case "structure":
            return {key: converted(inner, shape, key) for key, inner in value.items()}
        case "list":
            return [_as(item, shape.member, name) for item in value]
        case "integer" | "long":
            return int(value)
        case "float" | "double":
            return float(value)
        case _:
            return str(value)
