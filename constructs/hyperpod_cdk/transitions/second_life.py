"""What a stack retained when it left the template, and what stands in the way of the same resource's second life.

A name that has part of the stack's id, or that somebody has given, is the same the next time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from hyperpod_cdk.checks.answers import NotAnswered
from hyperpod_cdk.review.deployed import Api
from hyperpod_cdk.templates.assembly import Assembly, Resource, Stack
from hyperpod_cdk.transitions.model import Refusal

_KEPT: Final = "DELETE_SKIPPED"
_NAMES: Final[Mapping[str, str]] = {"AWS::S3::Bucket": "BucketName", "AWS::Logs::LogGroup": "LogGroupName"}
"""Types that are retained, whose name is taken as long as they stand, and the property that gives it."""

_ASK_WITHOUT: Final[Mapping[str, str]] = {
    "AWS::S3::Bucket": "empty and delete it (aws s3 rb --force s3://{name}) if what it holds is not needed",
    "AWS::Logs::LogGroup": "delete it (aws logs delete-log-group --log-group-name {name}) if its logs are not needed",
}


@dataclass(frozen=True, kw_only=True)
class InTheWay:
    """What is in the way, as reasons not to begin; ``unseen`` is why that was not looked at."""

    refusals: tuple[Refusal, ...] = ()
    unseen: tuple[str, ...] = ()


def in_the_way(aws: Api, base: Assembly, head: Assembly) -> InTheWay:
    """Look which names of what the head makes in stacks that stand are taken by what these have retained before.

    CloudFormation tells events of the last 90 days; what was retained before that is not known.
    """
    refusals: list[Refusal] = []
    unseen: list[str] = []
    for stack in head.stacks:
        old = base.by_name.get(stack.name)
        made = _made_again(old, stack) if old is not None else {}
        if not made:
            continue
        try:
            kept = _kept(aws, stack.name, made)
            for logical_id, name in kept.items():
                if _STANDS[made[logical_id].type](aws, name):
                    refusals.append(_refusal(made[logical_id], name))
        except NotAnswered as missing:
            unseen.append(
                f"Whether what {stack.name} retained is in the way of {', '.join(each.name for each in made.values())} "
                f"could not be looked at: {missing.sentence}"
            )
    return InTheWay(refusals=tuple(refusals), unseen=tuple(unseen))


def _made_again(old: Stack, new: Stack) -> dict[str, Resource]:
    return {
        key: each
        for key, each in new.resources.items()
        if key not in old.resources and each.type in _NAMES and _NAMES[each.type] in each.properties
    }


def _kept(aws: Api, stack: str, made: Mapping[str, Resource]) -> dict[str, str]:
    """Give the names of what a stack has retained, by the logical id, where that was the last that happened to it."""
    events: list[Any] = aws.pages("cloudformation", "describe_stack_events", "StackEvents", StackName=stack)
    last: dict[str, Any] = {}
    for each in events:
        key = str(each["LogicalResourceId"])
        if key in made and each.get("ResourceType") == made[key].type and each.get("PhysicalResourceId"):
            # the newest comes first; a creation that failed says nothing of what was retained before
            is_failure = (
                str(each["ResourceStatus"]).endswith("_FAILED") or each["ResourceStatus"] == "CREATE_IN_PROGRESS"
            )
            if key not in last and not is_failure and each["ResourceStatus"] != "DELETE_COMPLETE":
                last[key] = each
    return {key: str(each["PhysicalResourceId"]) for key, each in last.items() if each["ResourceStatus"] == _KEPT}


def _bucket_stands(aws: Api, name: str) -> bool:
    return any(each["Name"] == name for each in aws.pages("s3", "list_buckets", "Buckets"))


def _group_stands(aws: Api, name: str) -> bool:
    groups = aws.pages("logs", "describe_log_groups", "logGroups", logGroupNamePrefix=name)
    return any(each["logGroupName"] == name for each in groups)


_STANDS: Final[Mapping[str, Callable[[Api, str], bool]]] = {
    "AWS::S3::Bucket": _bucket_stands,
    "AWS::Logs::LogGroup": _group_stands,
}


def _refusal(resource: Resource, name: str) -> Refusal:
    return Refusal(
        why=(
            f"{resource.stack} / {resource.name}: {name} stays from an earlier life of it, retained by this stack, and "
            "a new one cannot have its name."
        ),
        what_works=(
            f"See to what it holds, and {_ASK_WITHOUT[resource.type].format(name=name)}, then plan again; or leave in "
            "the file what it is in place of."
        ),
    )
