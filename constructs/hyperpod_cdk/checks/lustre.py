"""Whether file systems can be linked, can be changed and stand beside the nodes that use them."""

from __future__ import annotations

from collections.abc import Iterator

from hyperpod_cdk.checks.answers import Aws, LustreAnswer, NotAnswered
from hyperpod_cdk.checks.model import Case, Found, Skipped, check, error, warning
from hyperpod_cdk.checks.side_by_side import together
from hyperpod_cdk.config import Environment, InstanceGroup, Lustre

AREA = "lustre"

_STACK_TAG = "aws:cloudformation:stack-name"
_NAME_TAG = "Name"
# states of a stack in which a deployment makes it as if there were none
_MADE_ANEW = frozenset({"REVIEW_IN_PROGRESS", "ROLLBACK_COMPLETE"})


@check(
    area=AREA,
    asks=("bucket",),
    inputs="s3_uri of every data repository of every file system.",
    passes="Each bucket exists, and in the environment's region. It may belong to another account.",
    fails="There is no such bucket, or it is in another region: links import changes, which FSx does within a region"
    " only.",
    skips="AWS gives no answer about a bucket, as about one of another account that its owner has not opened yet; the"
    " others are compared all the same.",
    by_hand="aws s3api head-bucket --bucket my-datasets",
)
def data_repositories_are_in_the_region(case: Case, aws: Aws) -> Iterator[Found]:
    """Find the bucket of each link."""
    environment = case.environment
    paths: dict[str, list[str]] = {}
    for index, system in enumerate(environment.storage.lustre):
        for link, repository in enumerate(system.data_repositories):
            bucket = repository.s3_uri.removeprefix("s3://").partition("/")[0]
            paths.setdefault(bucket, []).append(f"storage.lustre[{index}].data_repositories[{link}].s3_uri")
    for (name, places), answer in zip(paths.items(), together(aws.bucket, paths), strict=True):
        if isinstance(answer, NotAnswered):
            yield Skipped(reason=f"the bucket {name}: {answer.reason}", action=answer.action, path=places[0])
        elif answer is None:
            also = "" if len(places) == 1 else f" (also in {', '.join(places[1:])})"
            yield error(
                places[0],
                f"must name a bucket that exists, got {name}{also}; correct the name, or make it with"
                f" {_made(name, environment.region)}",
            )
        elif answer.region != environment.region:
            yield error(
                places[0],
                f"must name a bucket in {environment.region}, got {name} in {answer.region}, since FSx imports within a"
                f" region only; copy the data to a bucket in {environment.region} and name that",
            )


@check(
    area=AREA,
    asks=("lustre_file_systems", "stack"),
    inputs="capacity_gib and name of every file system; the stack <name>-storage and what it has made already.",
    passes="No file system that stands is larger than the file says. One that was retained when an earlier environment"
    " of the name was destroyed does not count: the stack makes another.",
    fails="The file says less than a file system has: FSx only lets it grow, and the update would be rolled back.",
    skips="AWS gives no answer about the file systems of the account or the stack.",
    by_hand="aws fsx describe-file-systems --query 'FileSystems[].[FileSystemId,StorageCapacity,Tags]'",
)
def file_systems_only_grow(case: Case, aws: Aws) -> Iterator[Found]:
    """Compare capacities with those of the file systems that stand."""
    environment = case.environment
    if not environment.storage.lustre:
        return
    standing = _standing(environment, aws)
    for index, system in enumerate(environment.storage.lustre):
        present = standing.get(f"{environment.name}-{system.name}")
        if present is not None and system.capacity_gib < present.capacity_gib:
            yield _shrunk(f"storage.lustre[{index}].capacity_gib", system, present)


@check(
    area=AREA,
    inputs="Zone, efa and claim of every file system; zones and types of the groups that use it: those of the types in"
    " the quotas of the teams whose namespaces have the claim; without such teams, the groups with accelerators, or all"
    " groups where there are none.",
    passes="Every group that uses a file system stands in its zone. Nodes and file systems of one zone share a subnet,"
    " and so the /16 that EFA wants. A file system in a zone without any group is validate's to report.",
    fails="A file system with efa has users that could reach it over EFA and stand in another zone, which EFA does not"
    " cross. Without efa, users in another zone are a warning: traffic between zones is slow and billed.",
    skips="Never.",
    by_hand="hyperpod-cdk preflight prod --offline --only lustre",
)
def file_systems_stand_beside_their_users(case: Case, aws: Aws) -> Iterator[Found]:  # noqa: ARG001 - asks nobody
    """Compare the zone of each file system with those of the groups that use it."""
    environment = case.environment
    zones = {group.availability_zone_id for group in environment.hyperpod.instance_groups}
    for index, system in enumerate(environment.storage.lustre):
        if system.availability_zone_id not in zones:
            continue
        away = [
            group
            for group in _users(environment, system)
            if group.count and group.availability_zone_id != system.availability_zone_id
        ]
        if not away:
            continue
        path = f"storage.lustre[{index}]"
        over_efa = [group for group in away if system.efa and _has_efa_client(environment, group)]
        if over_efa:
            yield error(
                f"{path}.efa",
                f"must have its users in {system.availability_zone_id}, since EFA does not cross zones, got"
                f" {_placed(over_efa)}; move {_them(over_efa)} or the file system, or set efa: false",
            )
        else:
            yield warning(
                f"{path}.availability_zone_id",
                f"{_placed(away)} {'uses' if len(away) == 1 else 'use'} {system.name} in"
                f" {system.availability_zone_id}, and traffic between zones is slow and billed;"
                f" {_nearer(environment, system)}",
            )


def _standing(environment: Environment, aws: Aws) -> dict[str, LustreAnswer]:
    """Give the file systems of the storage stack by name; the smallest, where one of a destroyed stack is left too."""
    stack = f"{environment.name}-storage"
    systems = [each for each in aws.lustre_file_systems() if each.tags.get(_STACK_TAG) == stack]
    if not systems:
        return {}
    standing = aws.stack(stack)
    if standing is None or standing.status in _MADE_ANEW:
        return {}
    largest_first = sorted(systems, key=lambda each: -each.capacity_gib)
    return {each.tags.get(_NAME_TAG, ""): each for each in largest_first}


def _made(bucket: str, region: str) -> str:
    # everywhere else the API wants the region a second time
    place = "" if region == "us-east-1" else f" --create-bucket-configuration LocationConstraint={region}"
    return f"'aws s3api create-bucket --bucket {bucket} --region {region}{place}'"


def _shrunk(path: str, system: Lustre, present: LustreAnswer) -> Found:
    return error(
        path,
        f"must be at least {present.capacity_gib}, the capacity of {present.file_system_id}, which can grow and never"
        f" shrink, got {system.capacity_gib}; set capacity_gib: {present.capacity_gib}, or make a smaller one under"
        " another name",
    )


def _users(environment: Environment, system: Lustre) -> list[InstanceGroup]:
    groups = list(environment.hyperpod.instance_groups)
    governance = environment.task_governance
    namespaces = system.claim.namespaces if system.claim else ()
    teams = [team for team in governance.teams if team.namespace in namespaces] if governance else []
    if teams and len(teams) == len(namespaces):
        types = {row.instance_type for team in teams for row in team.quota}
        return [group for group in groups if types.intersection(group.all_instance_types)]
    accelerated = [group for group in groups if _is_accelerated(environment, group)]
    return accelerated or groups


def _is_accelerated(environment: Environment, group: InstanceGroup) -> bool:
    rows = [environment.instance_type(name) for name in group.all_instance_types]
    return any(row is not None and row.is_accelerated for row in rows)


def _has_efa_client(environment: Environment, group: InstanceGroup) -> bool:
    rows = [environment.instance_type(name) for name in group.all_instance_types]
    return any(row is not None and row.fsx_efa_client for row in rows)


def _placed(groups: list[InstanceGroup]) -> str:
    return " and ".join(f"{group.name} in {group.availability_zone_id}" for group in groups)


def _them(groups: list[InstanceGroup]) -> str:
    return groups[0].name if len(groups) == 1 else "these groups"


def _nearer(environment: Environment, system: Lustre) -> str:
    """Say where the file system stands beside most of the nodes that use it."""
    nodes: dict[str, int] = {}
    for group in _users(environment, system):
        nodes[group.availability_zone_id] = nodes.get(group.availability_zone_id, 0) + group.count
    best = max(nodes, key=lambda az_id: (nodes[az_id], az_id == system.availability_zone_id))
    if best == system.availability_zone_id:
        return "put these nodes into one zone, or make a file system in each"
    return f"set availability_zone_id: {best}"
