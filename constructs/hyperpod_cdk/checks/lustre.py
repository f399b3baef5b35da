"""Whether file systems can be linked and changed and are in the zone of their users; mounted buckets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Network
from typing import cast

from hyperpod_cdk.catalog import lustre as catalog
from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.checks.answers import Aws, LustreAnswer, NotAnswered, SecurityGroupRule, SubnetAnswer
from hyperpod_cdk.checks.job_buckets import in_region
from hyperpod_cdk.checks.model import LOOKED, Case, Found, check, error, unanswered, warning
from hyperpod_cdk.checks.side_by_side import answered, together
from hyperpod_cdk.config import Environment, InstanceGroup, Lustre
from hyperpod_cdk.config.lustre_clients import far_over_efa, placed
from hyperpod_cdk.config.storage import ExistingLustre

AREA = "lustre"

_STACK_TAG = "aws:cloudformation:stack-name"
_NAME_TAG = "Name"
_AVAILABLE = frozenset({"AVAILABLE", "UPDATING"})
_CHANGING = frozenset({"CREATING", "DELETING"})
_BOTH_WAYS = frozenset({"throughput_mbps_per_tib"})
_DONE = frozenset({"COMPLETED", "FAILED", "CANCELLED"})
_TCP = frozenset({"tcp", "6"})
_ALL = "-1"
# states of a stack in which a deployment creates it as if there were none
_MADE_ANEW = frozenset({"REVIEW_IN_PROGRESS", "ROLLBACK_COMPLETE"})


@check(
    area=AREA,
    asks=("bucket",),
    inputs="s3_uri of every data repository of every file system.",
    passes="Each bucket exists, and in the environment's region. It may belong to another account.",
    fails="There is no such bucket, or it is in another region: links import changes, which FSx does within a region"
    " only.",
    skips="AWS gives no answer about a bucket, for example about one of another account whose owner does not allow it"
    " yet; the"
    " others are still compared.",
    by_hand="aws s3api head-bucket --bucket my-datasets",
)
def data_repositories_are_in_the_region(case: Case, aws: Aws) -> Iterator[Found]:
    """Look for the bucket of each link."""
    region = case.environment.region
    paths: dict[str, list[str]] = {}
    for index, system in enumerate(case.environment.storage.lustre):
        for link, repository in enumerate(system.data_repositories):
            bucket = repository.s3_uri.removeprefix("s3://").partition("/")[0]
            paths.setdefault(bucket, []).append(f"storage.lustre[{index}].data_repositories[{link}].s3_uri")

    def far(name: str, place: str, there: str) -> Found:
        return error(
            place,
            f"must name a bucket in {region}, got {name} in {there}, because FSx imports within a region only; copy the"
            f" data to a bucket in {region} and use that",
        )

    yield from in_region(aws, paths, region, make=lambda name: f"create it with {_made(name, region)}", far=far)


@check(
    area=AREA,
    asks=("lustre_file_systems", "stack"),
    may_lack=("stack",),
    inputs="capacity_gib, throughput, metadata_iops and name of every file system that the environment creates; the"
    " stack"
    " <name>-storage and what it has created already.",
    passes="Every existing file system is AVAILABLE, none has more than the file says, and none that the file changes"
    " was changed a short time ago. One that was retained when an earlier environment of the name was destroyed does"
    " not count: the stack creates another.",
    fails="The file says less than a file system has: it can only grow, and the update would be rolled back. Or"
    " one is still being created, or is being deleted; one that FAILED or is MISCONFIGURED is a warning. Or the storage"
    " should grow within six hours of the last increase; the same for throughput and metadata performance is a warning,"
    " and so is a change that FSx has not completed.",
    skips="AWS gives no answer about the file systems of the account or the stack.",
    by_hand="aws fsx describe-file-systems --query 'FileSystems[].[FileSystemId,StorageCapacity,Tags]'",
)
def file_systems_only_grow(case: Case, aws: Aws) -> Iterator[Found]:
    """Compare capacities with those of the existing file systems."""
    environment = case.environment
    if not environment.storage.made_lustre:
        return
    standing = _standing(environment, aws)
    for index, system in enumerate(environment.storage.lustre):
        present = None if system.existing else standing.get(f"{environment.name}-{system.name}")
        if present is None:
            continue
        if present.lifecycle not in _AVAILABLE:
            say = error if present.lifecycle in _CHANGING else warning
            yield say(
                f"storage.lustre[{index}].name",
                f"needs {present.file_system_id}, which exists, to be AVAILABLE, got {present.lifecycle}; check with"
                " 'aws fsx"
                f" describe-file-systems --file-system-ids {present.file_system_id}' and deploy when it is",
            )
        for key, what, wanted, has in (
            ("capacity_gib", "capacity", system.capacity_gib, present.capacity_gib),
            (
                "throughput_capacity_mbps",
                "throughput",
                system.throughput_capacity_mbps,
                present.throughput_capacity_mbps,
            ),
            (
                "metadata_iops",
                "metadata operations per second",
                system.provisioned_metadata_iops,
                # in automatic mode they follow the capacity, whose line reports it
                None
                if system.resolved_metadata_iops is None and present.metadata_iops is None
                else present.provisioned_metadata_iops,
            ),
        ):
            if wanted is not None and has is not None and wanted < has:
                yield _shrunk(f"storage.lustre[{index}].{key}", key, what, wanted=wanted, has=has, present=present)
        for key, wanted, has in (
            ("capacity_gib", system.capacity_gib, present.capacity_gib),
            ("throughput_mbps_per_tib", system.resolved_throughput_mbps_per_tib, present.throughput_mbps_per_tib),
            ("throughput_capacity_mbps", system.throughput_capacity_mbps, present.throughput_capacity_mbps),
            ("metadata_iops", system.resolved_metadata_iops, present.provisioned_metadata_iops),
        ):
            is_changed = (
                wanted is not None and has is not None and (wanted > has or (key in _BOTH_WAYS and wanted != has))
            )
            if wanted is not None and is_changed:
                yield from _too_soon(f"storage.lustre[{index}].{key}", key, wanted, present=present, now=case.now)


@check(
    area=AREA,
    inputs="Zone, efa and claim of every file system; zones and types of the groups that use it: those with the types"
    " in"
    " the quotas of the teams whose namespaces have the claim; without such teams, the groups with accelerators, or all"
    " groups if there are none.",
    passes="Every group that uses a file system is in its zone, or has another one in its own that is mounted in"
    " the same namespaces, over EFA if this one is. Nodes and file systems of one zone share a subnet, and so the"
    " /16 that EFA requires. validate reports a file system in a zone without any group, and users without"
    " EFA in another zone.",
    fails="A file system with efa has users that could reach it over EFA and are in another zone, which EFA does not"
    " cross.",
    skips="Never.",
    by_hand="hyperpod-cdk preflight prod --offline --only lustre",
)
def file_systems_stand_beside_their_users(case: Case, aws: Aws) -> Iterator[Found]:  # noqa: ARG001 - asks nobody
    """Compare the zone of each file system with those of the groups that use it."""
    environment = case.environment
    for index, system in enumerate(environment.storage.lustre):
        yield LOOKED
        over_efa = far_over_efa(environment, system)
        if over_efa:
            yield error(
                f"storage.lustre[{index}].efa",
                catalog.far_users_problem(
                    system.availability_zone_id,
                    far=placed(over_efa),
                    move=f"move {_them(over_efa)} or the file system",
                ),
            )


@check(
    area=AREA,
    asks=("lustre_file_systems", "subnets", "interface_groups", "security_groups"),
    inputs="existing of every file system: ID, mount name, DNS name; its zone; network.existing.",
    passes="Each file system exists, is AVAILABLE (or being updated), has the mount name and DNS name that the file"
    " says, is in the environment's VPC and in the zone that the file says, and its security groups allow Lustre's"
    " ports from the nodes' group, or from their subnet.",
    fails="One of these is not so: pods would wait for their mounts forever.",
    skips="AWS gives no answer about the file systems, or about the network of one that exists; one that it showed is"
    " still compared.",
    by_hand="aws fsx describe-file-systems --file-system-ids fs-0a1b2c3d4e5f67890",
)
def existing_file_systems_serve_the_nodes(case: Case, aws: Aws) -> Iterator[Found]:
    """Compare each existing file system with what the file says about it."""
    environment = case.environment
    named = [
        (f"storage.lustre[{index}]", system, system.existing)
        for index, system in enumerate(environment.storage.lustre)
        if system.existing is not None
    ]
    if not named:
        return
    standing = aws.lustre_file_systems()
    for path, system, existing in named:
        try:
            present = standing.named(existing.file_system_id)
        except NotAnswered as missing:
            yield unanswered(missing, f"{path}.existing.file_system_id", about=existing.file_system_id)
            continue
        if present is None:
            yield error(
                f"{path}.existing.file_system_id",
                f"must be an FSx for Lustre file system of the account in {environment.region}, got"
                f" {existing.file_system_id}, which is not; correct the ID",
            )
            continue
        try:
            yield from _reached(environment, path, system, aws, existing=existing, present=present)
        except NotAnswered as missing:
            yield unanswered(missing, path, about=f"the network of {existing.file_system_id}")


@check(
    area=AREA,
    asks=("file_system_backup", "lustre_file_systems", "stack"),
    may_lack=("stack",),
    inputs="from_backup and capacity_gib of every file system; the stack <name>-storage and what it has created"
    " already.",
    passes="Each backup exists in the account and region, is AVAILABLE, is one of a Lustre file system, and has the"
    " capacity that the file says. One whose file system exists is not checked: it is not needed any more.",
    fails="One of these is not so, and FSx would not create the file system.",
    skips="AWS gives no answer about a backup (the others are still compared), or about what exists.",
    by_hand="aws fsx describe-backups --backup-ids backup-0a1b2c3d4e5f67890",
)
def backups_can_be_restored(case: Case, aws: Aws) -> Iterator[Found]:
    """Look for each backup that a file system is created from."""
    environment = case.environment
    named = {
        f"storage.lustre[{index}]": system
        for index, system in enumerate(environment.storage.lustre)
        if system.from_backup is not None
    }
    if not named:
        return
    standing = _standing(environment, aws)
    named = {path: each for path, each in named.items() if f"{environment.name}-{each.name}" not in standing}
    answers = together(aws.file_system_backup, [system.from_backup or "" for system in named.values()])
    for (path, system), answer in zip(named.items(), answers, strict=True):
        here = f"{path}.from_backup"
        if isinstance(answer, NotAnswered):
            yield unanswered(answer, here, about=f"the backup {system.from_backup}")
        elif answer is None:
            yield error(
                here,
                f"must be a backup of the account in {environment.region}, got {system.from_backup}, which is not;"
                " correct the ID",
            )
        elif answer.kind != "LUSTRE" or answer.lifecycle != "AVAILABLE":
            yield error(
                here,
                f"must be an AVAILABLE backup of a LUSTRE file system, got {system.from_backup}, which is"
                f" {answer.lifecycle}, of {answer.kind}; wait for it, or use another one",
            )
        elif system.capacity_gib is not None and system.capacity_gib != answer.capacity_gib:
            yield error(
                f"{path}.capacity_gib",
                f"must be that of {system.from_backup}, {answer.capacity_gib}, until the file system exists, got"
                f" {system.capacity_gib}; set capacity_gib: {answer.capacity_gib}",
            )


@check(
    area=AREA,
    asks=("bucket",),
    inputs="bucket of every entry of storage.s3.",
    passes="Each bucket exists, and in the environment's region. It may belong to another account.",
    fails="There is no such bucket, or it is in another region: pods mount it with the environment's region, and would"
    " wait forever.",
    skips="AWS gives no answer about a bucket; the others are still compared.",
    by_hand="aws s3api head-bucket --bucket my-checkpoints",
)
def mounted_buckets_are_in_the_region(case: Case, aws: Aws) -> Iterator[Found]:
    """Look for each bucket that pods mount."""
    environment = case.environment
    paths: dict[str, str] = {}
    for index, volume in enumerate(environment.storage.s3):
        paths.setdefault(volume.bucket, f"storage.s3[{index}].bucket")
    for (name, path), answer in zip(paths.items(), together(aws.bucket, paths), strict=True):
        if isinstance(answer, NotAnswered):
            yield unanswered(answer, path, about=f"the bucket {name}")
        elif answer is None:
            yield error(
                path,
                f"must name a bucket that exists, got {name}; correct the name, or create it with"
                f" {_made(name, environment.region)}",
            )
        elif answer.region != environment.region:
            yield error(
                path,
                f"must name a bucket in {environment.region}, where pods mount it, got {name} in {answer.region};"
                f" copy the data to a bucket in {environment.region} and use that",
            )


def _standing(environment: Environment, aws: Aws) -> dict[str, LustreAnswer]:
    """Return the file systems of the storage stack by name; the smallest, if one of a destroyed stack exists too."""
    stack = f"{environment.name}-storage"
    # the smallest of a name is unknown if only a part of the list was read
    systems = [each for each in aws.lustre_file_systems().whole() if each.tags.get(_STACK_TAG) == stack]
    if not systems:
        return {}
    standing = aws.stack(stack)
    if standing is None or standing.status in _MADE_ANEW:
        return {}
    largest_first = sorted(systems, key=lambda each: -each.capacity_gib)
    return {each.tags.get(_NAME_TAG, ""): each for each in largest_first}


def _made(bucket: str, region: str) -> str:
    # everywhere else the API needs the region a second time
    place = "" if region == "us-east-1" else f" --create-bucket-configuration LocationConstraint={region}"
    return f"'aws s3api create-bucket --bucket {bucket} --region {region}{place}'"


def _shrunk(path: str, key: str, what: str, *, wanted: int, has: int, present: LustreAnswer) -> Found:
    return error(
        path,
        f"must be at least {has}, the {what} of {present.file_system_id}, which can only grow, got"
        f" {wanted}; set {key}: {has}, or create a smaller one with another name",
    )


def _too_soon(path: str, key: str, wanted: int, *, present: LustreAnswer, now: datetime) -> Iterator[Found]:
    last = max((each for each in present.changes if key in each.target), key=lambda each: each.asked, default=None)
    if last is None:
        return
    begins = last.asked + timedelta(hours=catalog.HOURS_BETWEEN_CHANGES)
    if now < begins:
        # a request with another value together with storage may not have changed it
        say = error if key == "capacity_gib" else warning
        yield say(
            path,
            f"must not become {wanted} before {begins.astimezone(UTC):%Y-%m-%d %H:%M} UTC, because FSx refuses another"
            f" change for {catalog.HOURS_BETWEEN_CHANGES} hours and {present.file_system_id} was to become"
            f" {last.target[key]} at {last.asked.astimezone(UTC):%H:%M} UTC; deploy after that",
        )
    elif last.status not in _DONE:
        yield warning(
            path,
            f"may be refused as {wanted} before FSx has completed the last change of {present.file_system_id}, got"
            f" {last.status}; check with 'aws fsx describe-file-systems --file-system-ids {present.file_system_id}'"
            " and deploy"
            " when it is COMPLETED",
        )


def _reached(
    environment: Environment,
    path: str,
    system: Lustre,
    aws: Aws,
    *,
    existing: ExistingLustre,
    present: LustreAnswer,
) -> Iterator[Found]:
    """Compare an existing file system with what the file says about it, and with the nodes' network."""
    here = f"{path}.existing"
    if present.lifecycle not in _AVAILABLE:
        yield error(
            f"{here}.file_system_id",
            f"must be AVAILABLE, got {existing.file_system_id} as {present.lifecycle}; wait for it, or use another one",
        )
    for key, said, has in (
        ("mount_name", existing.mount_name, present.mount_name),
        ("dns_name", existing.dns_name or present.dns_name, present.dns_name),
    ):
        if said != has:
            yield error(f"{here}.{key}", f"must be that of {existing.file_system_id}, got {said}; set {key}: {has}")
    network = environment.network.existing
    if network is None:
        return
    if present.vpc_id != network.vpc_id:
        yield error(
            f"{here}.file_system_id",
            f"must be in {network.vpc_id}, got {existing.file_system_id} in {present.vpc_id}; use a file system of"
            " this VPC",
        )
        return
    node_subnet = network.node_subnet_ids.get(system.availability_zone_id, "")
    asked = answered(
        lambda: aws.subnets((*present.subnet_ids, node_subnet)),
        lambda: aws.interface_groups(present.network_interface_ids),
    )
    subnets = cast("Mapping[str, SubnetAnswer]", asked[0])
    groups = cast("Mapping[str, tuple[str, ...]]", asked[1])
    zones = {subnets[each].availability_zone_id for each in present.subnet_ids if each in subnets}
    if zones and system.availability_zone_id not in zones:
        why = ", and EFA does not cross zones" if present.efa else ""
        yield error(
            f"{path}.availability_zone_id",
            f"must be that of {existing.file_system_id}, {', '.join(sorted(zones))}{why}, got"
            f" {system.availability_zone_id}; set availability_zone_id: {min(zones)}",
        )
    nodes = [IPv4Network(subnets[node_subnet].cidr)] if node_subnet in subnets else []
    ids = sorted({each for found in groups.values() for each in found})
    if ids:
        yield from _doors(here, ids, aws, own=network.security_group_id, nodes=nodes)


def _doors(
    here: str,
    ids: Sequence[str],
    aws: Aws,
    *,
    own: str | None,
    nodes: list[IPv4Network],
) -> Iterator[Found]:
    """Look for Lustre's ports in the rules of the servers' security groups."""
    rules = [rule for group in aws.security_groups(ids).values() for rule in group.ingress]
    shut = [ports for ports in catalog.TCP_PORTS if not any(_admits(rule, ports, own, nodes) for rule in rules)]
    if shut:
        shown = joined(str(first) if first == last else f"{first}-{last}" for first, last in shut)
        whom = f"{own}, the nodes' group" if own else "the nodes' subnet, because their group does not exist yet"
        yield error(
            f"{here}.file_system_id",
            f"must allow TCP {shown} from the nodes, got {joined(ids)} without a rule for {whom}; ask its owner"
            " for one",
        )


def _admits(rule: SecurityGroupRule, ports: tuple[int, int], own: str | None, nodes: Iterable[IPv4Network]) -> bool:
    if rule.protocol != _ALL:
        first, last = rule.from_port, rule.to_port
        if rule.protocol not in _TCP or first is None or last is None or first > ports[0] or last < ports[1]:
            return False
    if own is not None and own in rule.group_ids:
        return True
    blocks = [IPv4Network(cidr) for cidr in rule.cidrs if ":" not in cidr]
    return any(node.subnet_of(block) for node in nodes for block in blocks)


def _them(groups: list[InstanceGroup]) -> str:
    return groups[0].name if len(groups) == 1 else "these groups"
