"""Rules about file systems and their claims."""

from __future__ import annotations

from collections.abc import Iterator

from hyperpod_cdk.catalog import addons, arns, governance, s3_places
from hyperpod_cdk.catalog import lustre as catalog
from hyperpod_cdk.catalog.rules import again_problem, listing, repeated, same_name_problem
from hyperpod_cdk.catalog.sentences import Sentence, plural
from hyperpod_cdk.config.environment import Environment
from hyperpod_cdk.config.lustre_clients import far_users, nearer, placed
from hyperpod_cdk.config.rules.book import Book, Problem, claims, file_systems, s3_volumes, warning
from hyperpod_cdk.config.rules.instance_groups import unlisted_zone
from hyperpod_cdk.config.source import DataPath
from hyperpod_cdk.config.storage import Claim, DataRepository, Lustre, S3Volume
from hyperpod_cdk.config.suggest import closest

BOOK = Book()

_OF_THE_ENTRY = frozenset({"name", "availability_zone_id", "existing", "claim"})


def makes(environment: Environment) -> Iterator[tuple[DataPath, Lustre]]:
    """Go through the file systems that the environment creates."""
    for path, system in file_systems(environment):
        if system.existing is None:
            yield path, system


def data_repositories(environment: Environment) -> Iterator[tuple[DataPath, DataRepository]]:
    """Go through the links of all file systems."""
    for path, system in makes(environment):
        for index, repository in enumerate(system.data_repositories):
            yield (*path, "data_repositories", index), repository


@BOOK.whole
def file_system_names_are_unique(environment: Environment) -> Iterator[Problem]:
    """Refuse two file systems, or two mounted buckets, with the same name."""
    for kind, names in (
        ("lustre", [system.name for system in environment.storage.lustre]),
        ("s3", [volume.name for volume in environment.storage.s3]),
    ):
        for index, first, name in repeated(names):
            yield Problem(
                ("storage", kind, index, "name"),
                same_name_problem(name, f"{kind}[{first}]"),
            )


@BOOK.each(file_systems)
def file_system_stands_in_a_listed_zone(environment: Environment, path: DataPath, system: Lustre) -> Iterator[Problem]:
    """Refuse zones that the network does not list."""
    yield from unlisted_zone(environment, (*path, "availability_zone_id"), system.availability_zone_id)


@BOOK.each(file_systems)
def file_system_is_beside_nodes(environment: Environment, path: DataPath, system: Lustre) -> Iterator[Problem]:
    """Warn of a file system in a zone without nodes: all its traffic would cross zones."""
    zones = {group.availability_zone_id for group in environment.hyperpod.instance_groups}
    if not zones:
        return
    if system.availability_zone_id in environment.network.zone_ids() and system.availability_zone_id not in zones:
        yield warning(
            (*path, "availability_zone_id"),
            f"no instance group is in {system.availability_zone_id}, so every read and write crosses zones, which"
            f" is slow and billed; {nearer(environment, system)}",
        )
    away = far_users(environment, system)
    if away:
        yield warning(
            (*path, "availability_zone_id"),
            f"{placed(away)} {'uses' if len(away) == 1 else 'use'} {system.name} in {system.availability_zone_id}, and"
            f" traffic between zones is slow and billed; {nearer(environment, system)}",
        )


@BOOK.alone(makes)
def settings_go_together(path: DataPath, system: Lustre) -> Iterator[Problem]:
    """Refuse settings that FSx does not accept together, or that need other settings."""
    for name, sentence in catalog.combination_problems(_settings(system)):
        yield Problem((*path, *name.split(".")), sentence)


@BOOK.alone(makes)
def capacity_is_on_offer(path: DataPath, system: Lustre) -> Iterator[Problem]:
    """Refuse capacities that FSx does not sell."""
    if system.capacity_gib is None or system.is_tiering:
        return
    throughput = system.resolved_throughput_mbps_per_tib
    problem = catalog.capacity_problem(
        system.capacity_gib, throughput_mbps_per_tib=throughput or 0, efa=system.efa and throughput is not None
    )
    if problem:
        yield Problem((*path, "capacity_gib"), problem)


@BOOK.alone(makes)
def metadata_iops_are_on_offer(path: DataPath, system: Lustre) -> Iterator[Problem]:
    """Refuse metadata operations per second that FSx does not provision."""
    if system.metadata_iops is None or system.deployment_type == catalog.SCRATCH:
        return
    judge = catalog.tiering_metadata_iops_problem if system.is_tiering else catalog.metadata_iops_problem
    problem = judge(system.metadata_iops)
    if problem:
        yield Problem((*path, "metadata_iops"), problem)


@BOOK.alone(makes)
def read_cache_is_on_offer(path: DataPath, system: Lustre) -> Iterator[Problem]:
    """Refuse read caches that are too small or too large for the throughput."""
    cache, throughput = system.read_cache, system.throughput_capacity_mbps
    if cache is None or cache.size_gib is None or throughput is None or cache.sizing != "provisioned":
        return
    problem = catalog.read_cache_problem(cache.size_gib, throughput_capacity_mbps=throughput)
    if problem:
        yield Problem((*path, "read_cache", "size_gib"), problem)


@BOOK.alone(makes)
def backup_time_has_backups(path: DataPath, system: Lustre) -> Iterator[Problem]:
    """Refuse the time of disabled backups."""
    backups = system.backups
    if backups is not None and backups.start_time is not None and not backups.retention_days:
        yield Problem(
            (*path, "backups", "start_time"),
            catalog.backup_time_problem(backups.start_time, key="retention_days"),
        )


@BOOK.each(makes)
def scratch_has_no_key_of_ones_own(environment: Environment, path: DataPath, system: Lustre) -> Iterator[Problem]:
    """Warn of a file system that cannot use the key for file systems, if others use it."""
    if system.deployment_type != catalog.SCRATCH or environment.encryption.file_systems is None:
        return
    if any(other.deployment_type != catalog.SCRATCH for other in environment.storage.made_lustre):
        yield warning(
            (*path, "deployment_type"),
            "FSx encrypts scratch file systems with its own key: encryption.file_systems does not apply to this one;"
            " set deployment_type: persistent_2 if it should",
        )


@BOOK.alone(makes)
def log_has_something_to_say(path: DataPath, system: Lustre) -> Iterator[Problem]:
    """Warn of a log that will always be empty."""
    if system.log_level is not None and not system.data_repositories:
        yield warning(
            (*path, "log_level"),
            "FSx logs what happens between a file system and its data repositories, and this one has none; remove it",
        )


@BOOK.alone(data_repositories)
def events_are_named_once(path: DataPath, repository: DataRepository) -> Iterator[Problem]:
    """Refuse a repeated event in a list."""
    for key, events in (("auto_import", repository.auto_import), ("auto_export", repository.auto_export)):
        for index, first, event in repeated(events):
            yield Problem((*path, key, index), again_problem(event, first, listed=key))


@BOOK.each(file_systems)
def existing_file_system_is_only_claimed(environment: Environment, path: DataPath, system: Lustre) -> Iterator[Problem]:
    """Refuse an existing file system outside the VPC, with settings that belong to its owner, or without a claim."""
    if system.existing is None:
        return
    for name in sorted(system.model_fields_set - _OF_THE_ENTRY):
        yield Problem((*path, name), "cannot be set together with existing, whose owner controls it; remove it")
    if environment.network.existing is None:
        yield Problem(
            (*path, "existing"),
            f"must be in the environment's VPC, got {system.existing.file_system_id} and a VPC that the "
            "environment creates;"
            " set the file system's VPC in network.existing",
        )
    if system.claim is None:
        yield Problem(
            (*path, "claim"),
            "is required together with existing, because nothing else is created for it; add claim, such as claim:"
            " {namespaces:"
            " [default]}",
        )


@BOOK.whole
def existing_file_systems_are_named_once(environment: Environment) -> Iterator[Problem]:
    """Refuse an existing file system under two names."""
    named = [
        (index, system.existing.file_system_id)
        for index, system in enumerate(environment.storage.lustre)
        if system.existing is not None
    ]
    for position, first, system_id in repeated([each for _, each in named]):
        yield Problem(
            ("storage", "lustre", named[position][0], "existing", "file_system_id"),
            f"must be named once, got {system_id} as in lustre[{named[first][0]}]; list all namespaces in one claim",
        )


@BOOK.each(makes)
def region_has_the_file_system(environment: Environment, path: DataPath, system: Lustre) -> Iterator[Problem]:
    """Refuse file systems that FSx does not offer in the region."""
    kind = catalog.DEPLOYMENT_TYPES[system.deployment_type]
    if problem := catalog.region_problem(environment.region, efa=False, deployment_type=kind):
        yield Problem(path, Sentence(problem, f" (as of {catalog.AS_OF})"))
    elif problem := catalog.region_problem(environment.region, efa=system.efa, deployment_type=kind):
        yield Problem((*path, "efa"), Sentence(problem, f" (as of {catalog.AS_OF})"))


@BOOK.alone(makes)
def local_zone_has_the_file_system(path: DataPath, system: Lustre) -> Iterator[Problem]:
    """Refuse file systems that FSx does not offer in a Local Zone, where p6e-gb200 nodes are."""
    for name, sentence in catalog.local_zone_problems(system.availability_zone_id, _settings(system)):
        yield Problem((*path, name), Sentence(sentence, f" (as of {catalog.AS_OF})"))


@BOOK.each(makes)
def efa_has_clients(environment: Environment, path: DataPath, system: Lustre) -> Iterator[Problem]:
    """Warn of nodes that can use an EFA file system only over TCP."""
    if not system.efa:
        return
    accelerated = []
    able = False
    for group in environment.hyperpod.instance_groups:
        for name in group.all_instance_types:
            row = environment.instance_type(name)
            if row is None or group.availability_zone_id != system.availability_zone_id:
                continue
            able = able or row.fsx_efa_client
            if row.is_accelerated and not row.fsx_efa_client and name not in accelerated:
                accelerated.append(name)
    if accelerated:
        yield warning(
            (*path, "efa"),
            f"{listing(accelerated, last='and')} cannot reach a file system over EFA (as of {catalog.AS_OF}) and"
            f" {plural(len(accelerated), 'uses', 'use')} TCP; set efa: false unless other nodes use it",
        )
    elif not able:
        yield warning(
            (*path, "efa"),
            f"no group in {system.availability_zone_id} can reach a file system over EFA, which does not cross zones;"
            " set efa: false, or put the file system in the zone of the nodes that use it",
        )


@BOOK.alone(makes)
def data_repositories_do_not_overlap(path: DataPath, system: Lustre) -> Iterator[Problem]:
    """Refuse links with nested folders, or with the same prefix."""
    links = [(repository.path, repository.s3_uri) for repository in system.data_repositories]
    for index, key, problem in catalog.link_problems(links):
        yield Problem((*path, "data_repositories", index, key), problem)


@BOOK.alone(s3_volumes)
def read_only_buckets_stay(path: DataPath, volume: S3Volume) -> Iterator[Problem]:
    """Refuse write permissions with a read-only mount."""
    for key, problem in s3_places.read_only_problems(
        read_only=volume.read_only, allow_delete=volume.allow_delete, allow_overwrite=volume.allow_overwrite
    ):
        yield Problem((*path, key), problem)


@BOOK.each(s3_volumes)
def bucket_key_is_of_the_region(environment: Environment, path: DataPath, volume: S3Volume) -> Iterator[Problem]:
    """Refuse a key that cannot encrypt objects in the region."""
    if volume.kms_key_arn is None:
        return
    problem = arns.bucket_key_problem(volume.kms_key_arn, region=environment.region)
    if problem:
        yield Problem((*path, "kms_key_arn"), problem)


@BOOK.whole
def s3_driver_knows_pod_identity(environment: Environment) -> Iterator[Problem]:
    """Refuse a release of the S3 driver that does not support EKS Pod Identity."""
    version = environment.eks.addon_versions.get(addons.S3_CSI_DRIVER) if environment.storage.s3 else None
    if version is None or not environment.eks.installs(addons.S3_CSI_DRIVER):
        return
    problem = addons.s3_pod_identity_problem(version)
    if problem:
        yield Problem(("eks", "addon_versions", addons.S3_CSI_DRIVER), problem)


@BOOK.whole
def claims_are_unique(environment: Environment) -> Iterator[Problem]:
    """Refuse two claims with the same name in one namespace."""
    seen: dict[tuple[str, str], DataPath] = {}
    for path, (name, claim) in claims(environment):
        for index, namespace in enumerate(claim.namespaces):
            key = (namespace, name)
            first = seen.setdefault(key, path)
            if first is path and index == claim.namespaces.index(namespace):
                continue
            where = f"as in {first[-2]}[{first[-1]}]"
            yield Problem(
                (*path, "claim", "namespaces", index),
                again_problem(namespace, claim.namespaces.index(namespace))
                if first is path
                else f'must hold the claim "{name}" once, got {namespace} {where}; remove one of the two, or set'
                " another claim.name",
            )


@BOOK.each(claims)
def claims_name_teams(environment: Environment, path: DataPath, named: tuple[str, Claim]) -> Iterator[Problem]:
    """Refuse a team's namespace without the team: it would not be created, and the claim would fail."""
    _, claim = named
    governance_section = environment.task_governance
    namespaces = [] if governance_section is None else [team.namespace for team in governance_section.teams]
    for index, namespace in enumerate(claim.namespaces):
        if governance.team_of(namespace) is None or namespace in namespaces:
            continue
        problem = governance.no_team_problem(namespace, near=closest(namespace, namespaces))
        yield Problem((*path, "claim", "namespaces", index), problem)


def _settings(system: Lustre) -> catalog.Settings:
    cache, backups = system.read_cache, system.backups
    return catalog.Settings(
        deployment_type=system.deployment_type,
        storage_type=system.storage_type,
        capacity_gib=system.capacity_gib,
        throughput_mbps_per_tib=system.throughput_mbps_per_tib,
        throughput_capacity_mbps=system.throughput_capacity_mbps,
        read_cache=None if cache is None else cache.sizing,
        read_cache_gib=None if cache is None else cache.size_gib,
        metadata_iops=system.metadata_iops,
        efa=system.efa,
        backup_days=None if backups is None else backups.retention_days,
        from_backup=system.from_backup is not None,
        data_repositories=len(system.data_repositories),
    )
