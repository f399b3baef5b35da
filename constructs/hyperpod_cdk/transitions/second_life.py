"""What a stack retained when it left the template, and what prevents creating the same resource again.

A name that contains part of the stack's id, or that a user gave, is the same the next time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import Any, Final

from hyperpod_cdk.checks.answers import NotAnswered, reading
from hyperpod_cdk.review.deployed import Api
from hyperpod_cdk.templates.assembly import Assembly, Resource, Stack
from hyperpod_cdk.templates.values import references
from hyperpod_cdk.transitions.failures import plain_reason
from hyperpod_cdk.transitions.model import Refusal

_KEPT: Final = "DELETE_SKIPPED"
_GIVEN_UP: Final = "DELETE_FAILED"
_OBJECTS: Final = "Custom::AWSCDK-EKS-KubernetesResource"
_FILE_SYSTEM: Final = "AWS::FSx::FileSystem"
_BLOCK: Final = "AWS::EC2::VPCCidrBlock"
_LINK: Final = "AWS::FSx::DataRepositoryAssociation"
_ONCE: Final = (_BLOCK, _LINK)
"""Types of which no two with the same block, or the same folder, can exist at once."""
_NAMES: Final[Mapping[str, str]] = {"AWS::S3::Bucket": "BucketName", "AWS::Logs::LogGroup": "LogGroupName"}
"""Types that are retained, whose name is taken as long as they exist, and the property that gives it."""

_ASK_WITHOUT: Final[Mapping[str, str]] = {
    # 'aws s3 rb --force' keeps the versions of a versioned bucket, and S3 deletes no bucket with versions (CLI
    # reference)
    "AWS::S3::Bucket": (
        "if none of that is needed, empty it with all versions of its objects ('Empty' in the S3 console) and "
        "delete it (aws s3api delete-bucket --bucket {name})"
    ),
    "AWS::Logs::LogGroup": "delete it (aws logs delete-log-group --log-group-name {name}) if its logs are not needed",
}


@dataclass(frozen=True, kw_only=True)
class InTheWay:
    """What prevents a deployment, as refusals; ``unseen`` is why something was not checked.

    ``left`` says why an earlier deployment could not delete Kubernetes objects that are created again, by stack and
    logical ID: CloudFormation does not know whether they still exist.
    """

    refusals: tuple[Refusal, ...] = ()
    unseen: tuple[str, ...] = ()
    left: Mapping[tuple[str, str], str] = field(default_factory=dict)


def in_the_way(aws: Api, base: Assembly, head: Assembly) -> InTheWay:
    """Check which names of new resources are taken by resources that the same deployed stacks have retained.

    CloudFormation shows events of the last 90 days; what was retained before that is unknown.
    """
    refusals: list[Refusal] = []
    unseen: list[str] = []
    left: dict[tuple[str, str], str] = {}
    for stack in head.stacks:
        old = base.by_name.get(stack.name)
        if old is None:
            continue
        for what, look in _INSIDE.items():
            try:
                refusals += look(aws, old, stack)
            except NotAnswered as missing:
                unseen.append(
                    f"Whether {what} conflicts with one that {stack.name} adds could not be checked: {missing.sentence}"
                )
        try:
            refusals += _grown(aws, old, stack)
        except NotAnswered as missing:
            unseen.append(
                f"Whether a file system of {stack.name} has already grown could not be checked: {missing.sentence}"
            )
        objects = [key for key, each in stack.resources.items() if key not in old.resources and each.type == _OBJECTS]
        try:
            left |= {
                (stack.name, key): why for key, why in (_left(aws, stack.name, objects) if objects else {}).items()
            }
        except NotAnswered as missing:
            unseen.append(
                f"Whether {stack.name} left Kubernetes objects behind that it creates again could not be checked: "
                f"{missing.sentence}"
            )
        made = _made_again(old, stack)
        if not made:
            continue
        try:
            kept = _kept(aws, stack.name, made)
            for logical_id, name in kept.items():
                if _STANDS[made[logical_id].type](aws, name):
                    refusals.append(_refusal(made[logical_id], name))
        except NotAnswered as missing:
            unseen.append(
                f"Whether what {stack.name} retained conflicts with {', '.join(each.name for each in made.values())} "
                f"could not be checked: {missing.sentence}"
            )
    return InTheWay(refusals=tuple(refusals), unseen=tuple(unseen), left=left)


def _grown(aws: Api, old: Stack, new: Stack) -> Iterator[Refusal]:
    """Refuse a capacity that a file system already has or exceeds: FSx accepts only a greater one.

    The stack does not know the capacity if it was increased by hand, or if a rollback could not reduce it and skipped
    it (FSx API reference, UpdateFileSystem, StorageCapacity).
    """
    changed = {
        key: (before, wanted)
        for key, each in new.resources.items()
        if each.type == _FILE_SYSTEM
        # for ONTAP FSx also accepts a smaller one
        and each.properties.get("FileSystemType") == "LUSTRE"
        and (was := old.resources.get(key)) is not None
        and isinstance(before := was.properties.get("StorageCapacity"), int)
        and isinstance(wanted := each.properties.get("StorageCapacity"), int)
        and wanted > before
    }
    if not changed:
        return
    ids = _ids(aws, new.name)
    for key, (before, wanted) in changed.items():
        if not (physical := ids.get(key)):
            continue
        found = aws.pages("fsx", "describe_file_systems", "FileSystems", FileSystemIds=[physical])
        with reading("fsx:DescribeFileSystems"):
            capacity = int(found[0]["StorageCapacity"])
        if capacity > before and wanted <= capacity:
            yield _grown_refusal(f"{new.name} / {new.resources[key].name}: {physical}", before, capacity, wanted)


def _grown_refusal(which: str, before: int, capacity: int, wanted: int) -> Refusal:
    return Refusal(
        why=(
            f"{which} already has {capacity} GiB, and CloudFormation does not know that. FSx accepts only a greater"
            f" capacity, so an update to {wanted} GiB fails."
        ),
        what_works=(
            f"Write the deployed {before} GiB into the file: the file system keeps its {capacity} GiB, and nothing"
            f" of it changes. Or write more than {capacity} GiB."
        ),
    )


def _left(aws: Api, stack: str, wanted: Collection[str]) -> dict[str, str]:
    """Return why CloudFormation gave up on the deletion of resources, if that was their last event."""
    events: list[Any] = aws.pages("cloudformation", "describe_stack_events", "StackEvents", StackName=stack)
    last: dict[str, Any] = {}
    for each in events:
        # the newest comes first
        if each["LogicalResourceId"] in wanted:
            last.setdefault(str(each["LogicalResourceId"]), each)
    return {
        key: plain_reason(str(each.get("ResourceStatusReason") or "no reason is given"))
        for key, each in last.items()
        if each["ResourceStatus"] == _GIVEN_UP
    }


def kept_in_the_way(old: Stack, new: Stack) -> list[Resource]:
    """Return what a stack removed and retained, and the new resource with the same name or block."""
    again = {**_made_again(old, new), **{key: each for key, each in new.resources.items() if each.type in _ONCE}}
    return [each for key, each in again.items() if key not in old.resources and each.is_kept_on_delete]


def _made_again(old: Stack, new: Stack) -> dict[str, Resource]:
    """Return the new resources of a deployed stack with a name that an earlier one may have had.

    A name that contains the ID of another new resource, as that of a file system's group does, is different each time.
    """
    found = {
        key: each
        for key, each in new.resources.items()
        if key not in old.resources and each.type in _NAMES and _NAMES[each.type] in each.properties
    }
    made = {key for key in new.resources if key not in old.resources}
    return {
        key: each
        for key, each in found.items()
        if made.isdisjoint(name for name, _ in references(each.properties[_NAMES[each.type]]))
    }


def _taken_blocks(aws: Api, old: Stack, new: Stack) -> list[Refusal]:
    """Refuse address blocks that overlap one that the VPC has although no stack has it.

    The block of a removed zone stays with the file systems in its subnet.
    """
    added = {
        each.name: (str(each.properties["VpcId"]["Ref"]), ip_network(each.properties["CidrBlock"]))
        for key, each in new.resources.items()
        if key not in old.resources and each.type == _BLOCK and _is_plain(each, old)
    }
    if not added:
        return []
    ids = _ids(aws, new.name)
    vpcs = {vpc: ids[vpc] for vpc, _ in added.values() if ids.get(vpc)}
    found: list[Any] = aws.pages("ec2", "describe_vpcs", "Vpcs", VpcIds=sorted(set(vpcs.values()))) if vpcs else []
    has = {
        str(vpc["VpcId"]): [
            each
            for each in vpc.get("CidrBlockAssociationSet", [])
            if each["CidrBlockState"]["State"] in ("associating", "associated")
            and each["AssociationId"] not in ids.values()
        ]
        for vpc in found
    }
    return [
        _block_refusal(new.name, name, str(block), vpcs[vpc], str(each["CidrBlock"]))
        for name, (vpc, block) in added.items()
        for each in has.get(vpcs.get(vpc, ""), [])
        if ip_network(each["CidrBlock"]).overlaps(block)
    ]


def _ids(aws: Api, stack: str) -> dict[str, str]:
    """Return the physical IDs of a stack's resources, by logical ID."""
    rows: list[Any] = aws.pages("cloudformation", "list_stack_resources", "StackResourceSummaries", StackName=stack)
    return {str(each["LogicalResourceId"]): str(each.get("PhysicalResourceId") or "") for each in rows}


def _is_plain(block: Resource, old: Stack) -> bool:
    vpc, cidr = block.properties.get("VpcId"), block.properties.get("CidrBlock")
    return isinstance(cidr, str) and isinstance(vpc, dict) and vpc.get("Ref") in old.resources


def _taken_folders(aws: Api, old: Stack, new: Stack) -> list[Refusal]:
    """Refuse links of folders that overlap one that the file system has although no stack has it.

    A removed link stays in force, and FSx links no folder twice, and none inside of another.
    """
    added = {
        each.name: (str(each.properties["FileSystemId"]["Ref"]), str(each.properties["FileSystemPath"]))
        for key, each in new.resources.items()
        if key not in old.resources and each.type == _LINK and _is_of(each, old)
    }
    if not added:
        return []
    ids = _ids(aws, new.name)
    found: list[Refusal] = []
    for name, (system, path) in added.items():
        here = [{"Name": "file-system-id", "Values": [ids.get(system, "")]}]
        links: list[Any] = aws.pages("fsx", "describe_data_repository_associations", "Associations", Filters=here)
        found += [
            _folder_refusal(new.name, name, path, each)
            for each in links
            if each["AssociationId"] not in ids.values()
            and each.get("Lifecycle") != "DELETING"
            and _is_inside(path, str(each.get("FileSystemPath", "")))
        ]
    return found


def _is_of(link: Resource, old: Stack) -> bool:
    system, path = link.properties.get("FileSystemId"), link.properties.get("FileSystemPath")
    return isinstance(path, str) and isinstance(system, dict) and system.get("Ref") in old.resources


def _is_inside(one: str, other: str) -> bool:
    first, second = (f"{each.rstrip('/')}/" for each in (one, other))
    return first.startswith(second) or second.startswith(first)


def _folder_refusal(stack: str, name: str, path: str, link: Mapping[str, Any]) -> Refusal:
    number, system = link["AssociationId"], link["FileSystemId"]
    command = f"aws fsx delete-data-repository-association --association-id {number} --no-delete-data-in-file-system"
    return Refusal(
        why=(
            f"{stack} / {name}: {system} links {link['FileSystemPath']} to {link.get('DataRepositoryPath')} by "
            f"{number}, which is no longer in any stack, and FSx cannot link {path} at the same time. A link that is "
            "removed from the file stays in force."
        ),
        what_works=(
            f"Run '{command}', which removes that link and leaves the files where they are (wait until auto-export has "
            "ended), then plan again. Or keep the file as it is deployed."
        ),
    )


_INSIDE: Final[Mapping[str, Callable[[Api, Stack, Stack], list[Refusal]]]] = {
    "an address block of the VPC": _taken_blocks,
    "a linked folder of the file system": _taken_folders,
}


def _block_refusal(stack: str, name: str, wanted: str, vpc: str, taken: str) -> Refusal:
    return Refusal(
        why=(
            f"{stack} / {name}: {vpc} has the address block {taken}, which is no longer in any stack, and EC2 does not "
            f"add {wanted} to it. The block of a zone that was removed stays, with the file systems in its subnet."
        ),
        what_works=(
            f"Give the zone another node_cidr. Or check the file systems in {taken}; if they are not needed, delete "
            "them, the subnet and the block, then plan again."
        ),
    )


def _kept(aws: Api, stack: str, made: Mapping[str, Resource]) -> dict[str, str]:
    """Return the names of what a stack has retained, by logical ID, if that was its last event."""
    events: list[Any] = aws.pages("cloudformation", "describe_stack_events", "StackEvents", StackName=stack)
    last: dict[str, Any] = {}
    for each in events:
        key = str(each["LogicalResourceId"])
        if key in made and each.get("ResourceType") == made[key].type and each.get("PhysicalResourceId"):
            # the newest comes first; a failed creation says nothing about what was retained before
            status = str(each["ResourceStatus"])
            is_failure = status in ("CREATE_FAILED", "UPDATE_FAILED", "CREATE_IN_PROGRESS")
            if key not in last and not is_failure and status != "DELETE_COMPLETE":
                last[key] = each
    return {
        key: str(each["PhysicalResourceId"])
        for key, each in last.items()
        if each["ResourceStatus"] in (_KEPT, _GIVEN_UP)
    }


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
            f"{resource.stack} / {resource.name}: {name} exists from an earlier deployment of this stack, which "
            "retained it, and a new one cannot have the same name."
        ),
        what_works=(
            f"Check what it holds, and {_ASK_WITHOUT[resource.type].format(name=name)}, then plan again. Or keep in "
            "the file what it replaces."
        ),
    )
