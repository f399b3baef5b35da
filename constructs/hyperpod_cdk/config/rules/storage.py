"""Rules about file systems and their claims."""

from __future__ import annotations

from collections.abc import Iterator

from hyperpod_cdk.catalog import governance
from hyperpod_cdk.catalog import lustre as catalog
from hyperpod_cdk.config.environment import Environment
from hyperpod_cdk.config.rules._book import Book, Problem, duplicates, file_systems, listing, warning
from hyperpod_cdk.config.rules.instance_groups import unlisted_zone
from hyperpod_cdk.config.source import DataPath
from hyperpod_cdk.config.storage import Lustre
from hyperpod_cdk.config.suggest import closest

BOOK = Book()

_TEAM_PREFIX = governance.namespace("")


@BOOK.whole
def file_system_names_are_unique(environment: Environment) -> Iterator[Problem]:
    """Refuse two file systems of one name."""
    for index, first, name in duplicates([system.name for system in environment.storage.lustre]):
        yield Problem(
            ("storage", "lustre", index, "name"),
            f'must be unique, got "{name}" as in lustre[{first}]; rename one of the two',
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
            f"no instance group stands in {system.availability_zone_id}, so every read and write crosses zones, which"
            f" is slow and billed; set availability_zone_id: {listing(sorted(zones))}",
        )


@BOOK.alone(file_systems)
def capacity_is_on_offer(path: DataPath, system: Lustre) -> Iterator[Problem]:
    """Refuse capacities that FSx does not sell."""
    problem = catalog.capacity_problem(
        system.capacity_gib, throughput_mbps_per_tib=system.throughput_mbps_per_tib, efa=system.efa
    )
    if problem:
        yield Problem((*path, "capacity_gib"), problem)


@BOOK.each(file_systems)
def region_has_the_file_system(environment: Environment, path: DataPath, system: Lustre) -> Iterator[Problem]:
    """Refuse file systems that FSx does not offer in the region."""
    if catalog.region_problem(environment.region, efa=False):
        yield Problem(path, f"{catalog.region_problem(environment.region, efa=False)} (as of {catalog.AS_OF})")
    elif problem := catalog.region_problem(environment.region, efa=system.efa):
        yield Problem((*path, "efa"), f"{problem} (as of {catalog.AS_OF})")


@BOOK.each(file_systems)
def efa_has_clients(environment: Environment, path: DataPath, system: Lustre) -> Iterator[Problem]:
    """Warn of nodes that reach an EFA file system over TCP only."""
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
            f" use{'s' if len(accelerated) == 1 else ''} TCP; set efa: false unless other nodes use it",
        )
    elif not able:
        yield warning(
            (*path, "efa"),
            f"no group in {system.availability_zone_id} can reach a file system over EFA, which does not cross zones;"
            " set efa: false, or put the file system beside the nodes that use it",
        )


@BOOK.alone(file_systems)
def data_repositories_do_not_overlap(path: DataPath, system: Lustre) -> Iterator[Problem]:
    """Refuse links of which one folder holds the other, or of one prefix twice."""
    for index, repository in enumerate(system.data_repositories):
        for first, other in enumerate(system.data_repositories[:index]):
            if catalog.contains(repository.path, other.path) or catalog.contains(other.path, repository.path):
                yield Problem(
                    (*path, "data_repositories", index, "path"),
                    f"must not overlap another link, got {repository.path} beside {other.path} of"
                    f" data_repositories[{first}]; choose folders of which none holds the other",
                )
    prefixes = [repository.s3_uri.rstrip("/") for repository in system.data_repositories]
    for index, first, prefix in duplicates(prefixes):
        yield Problem(
            (*path, "data_repositories", index, "s3_uri"),
            f"must be linked once, got {prefix} again after data_repositories[{first}]; remove one of the two",
        )


@BOOK.whole
def claims_are_unique(environment: Environment) -> Iterator[Problem]:
    """Refuse two claims of one name in one namespace."""
    seen: dict[tuple[str, str], DataPath] = {}
    for path, system in file_systems(environment):
        if system.claim is None:
            continue
        for index, namespace in enumerate(system.claim.namespaces):
            key = (namespace, system.resolved_claim_name)
            first = seen.setdefault(key, path)
            if first is path and index == system.claim.namespaces.index(namespace):
                continue
            where = "again" if first is path else f"as in lustre[{first[-1]}]"
            yield Problem(
                (*path, "claim", "namespaces", index),
                f'must hold the claim "{key[1]}" once, got {namespace} {where}; remove one of the two, or'
                f" set another claim.name",
            )


@BOOK.each(file_systems)
def claims_name_teams(environment: Environment, path: DataPath, system: Lustre) -> Iterator[Problem]:
    """Refuse a team's namespace without the team: nobody would make it, and the claim would fail."""
    if system.claim is None:
        return
    governance_section = environment.task_governance
    namespaces = [] if governance_section is None else [team.namespace for team in governance_section.teams]
    for index, namespace in enumerate(system.claim.namespaces):
        if not namespace.startswith(_TEAM_PREFIX) or namespace in namespaces:
            continue
        near = closest(namespace, namespaces)
        if near:
            fix = f"did you mean {near}?"
        else:
            team = namespace.removeprefix(_TEAM_PREFIX)
            fix = f'add the team "{team}" to task_governance.teams, or name another namespace'
        yield Problem(
            (*path, "claim", "namespaces", index),
            f"must be the namespace of a team, got {namespace} and no such team; {fix}",
        )
