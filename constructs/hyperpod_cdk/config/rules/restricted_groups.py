"""Rules about restricted instance groups and what they share."""

from __future__ import annotations

from collections.abc import Iterator

from hyperpod_cdk.catalog import hyperpod, lustre
from hyperpod_cdk.catalog import instance_groups as rules
from hyperpod_cdk.catalog.rules import listing
from hyperpod_cdk.config.environment import Environment
from hyperpod_cdk.config.restricted_group import RestrictedGroup, RestrictedLustre
from hyperpod_cdk.config.rules.book import Book, Problem, restricted_groups, warning
from hyperpod_cdk.config.source import DataPath

BOOK = Book()

_GROUPS: DataPath = ("hyperpod", "restricted_instance_groups")
_SHARED: DataPath = ("hyperpod", "restricted_environment")


@BOOK.whole
def some_group_exists(environment: Environment) -> Iterator[Problem]:
    """Refuse a cluster without nodes of either kind."""
    groups = len(environment.hyperpod.all_groups)
    if not groups and (problem := hyperpod.INSTANCE_GROUPS.count_problem(groups, what="instance groups")):
        yield Problem(("hyperpod", "instance_groups"), problem)


for _name, _rule in rules.OF_RESTRICTED_GROUPS.items():
    BOOK.about(restricted_groups, _name, _rule)


@BOOK.each(restricted_groups)
def restricted_types_have_accelerators(
    environment: Environment, path: DataPath, group: RestrictedGroup
) -> Iterator[Problem]:
    """Warn of types without accelerators."""
    row = environment.instance_type(group.instance_type)
    if row is not None and not row.is_accelerated:
        yield warning(
            (*path, "instance_type"),
            f"Nova models are customized on accelerators, got {row.name}, which has none; set instance_type to one that"
            " the recipe names, such as ml.p5.48xlarge",
        )


@BOOK.each(restricted_groups)
def restricted_groups_have_a_file_system(
    environment: Environment, path: DataPath, group: RestrictedGroup
) -> Iterator[Problem]:
    """Refuse a group with neither its own file system nor the shared one: jobs keep their state there."""
    if group.lustre is None and environment.hyperpod.restricted_environment is None:
        yield Problem(
            (*path, "lustre"),
            "is missing, and there is no hyperpod.restricted_environment to share; add lustre: {capacity_gib: 9600}",
        )


@BOOK.whole
def restricted_capacity_is_on_offer(environment: Environment) -> Iterator[Problem]:
    """Refuse capacities that FSx does not sell."""
    systems: list[tuple[DataPath, RestrictedLustre]] = [
        ((*path, "lustre"), group.lustre) for path, group in restricted_groups(environment) if group.lustre is not None
    ]
    shared = environment.hyperpod.restricted_environment
    if shared is not None:
        systems.append(((*_SHARED, "lustre"), shared.lustre))
    for path, system in systems:
        problem = lustre.capacity_problem(
            system.capacity_gib, throughput_mbps_per_tib=system.throughput_mbps_per_tib, efa=False
        )
        if problem:
            yield Problem((*path, "capacity_gib"), problem)


@BOOK.whole
def shared_environment_has_users(environment: Environment) -> Iterator[Problem]:
    """Refuse a shared environment without restricted groups; warn of one that no group uses."""
    if environment.hyperpod.restricted_environment is None:
        return
    groups = environment.hyperpod.restricted_instance_groups
    if not groups:
        yield Problem(_SHARED, "needs restricted_instance_groups, got none; add one or remove restricted_environment")
    elif all(group.lustre is not None for group in groups):
        yield warning(
            (*_SHARED, "lustre"),
            "every restricted group has its own file system, so no group uses the shared one, which is billed;"
            " remove restricted_environment, or the lustre of a group",
        )


@BOOK.alone(restricted_groups)
def restricted_buckets_are_named_once(path: DataPath, group: RestrictedGroup) -> Iterator[Problem]:
    """Refuse repeated buckets: output buckets are read as well."""
    for key, index, problem in rules.bucket_problems(group.input_buckets, group.output_buckets):
        yield Problem((*path, key, index), problem)


@BOOK.each(restricted_groups)
def restricted_jobs_reach_their_data(
    environment: Environment,  # noqa: ARG001 - the shape of a rule
    path: DataPath,
    group: RestrictedGroup,
) -> Iterator[Problem]:
    """Warn of jobs that could not read or write: restricted nodes have only the permissions of their execution role."""
    if not group.output_buckets:
        yield warning(
            (*path, "output_buckets"),
            "jobs on restricted nodes have only the permissions of the group's role, which can write to no bucket;"
            " add output_buckets, with the bucket that recipes name as output_s3_path",
        )


@BOOK.whole
def restricted_groups_are_offered(environment: Environment) -> Iterator[Problem]:
    """Warn if the region is not known to have restricted groups, and of steps that the file cannot do for them."""
    if not environment.hyperpod.restricted_instance_groups:
        return
    if environment.region not in hyperpod.RESTRICTED_REGIONS:
        yield warning(
            _GROUPS,
            f"restricted instance groups were not seen in {environment.region} on {hyperpod.AS_OF}; if the cluster is"
            f" refused, set region: {listing(hyperpod.RESTRICTED_REGIONS)}",
        )


@BOOK.whole
def restricted_dependencies_are_installed(environment: Environment) -> Iterator[Problem]:
    """Refuse restricted groups on an EKS cluster without the dependencies that they need first."""
    cluster, own = environment.hyperpod, environment.eks.existing is None
    if not cluster.restricted_instance_groups:
        return
    way = (
        f"leave the restricted groups out, deploy {environment.name}/foundation, run it, put the groups back"
        if own
        else "run it on the cluster"
    )
    if cluster.restricted_dependencies is None:
        yield Problem(
            _GROUPS,
            "needs copies of the VPC CNI and CoreDNS on the EKS cluster before the HyperPod cluster is "
            "created, which HyperPod's install_rig_dependencies.sh creates from the objects that run there, and no "
            "stack can; follow"
            f" docs/restricted-groups.md: {way}, and set hyperpod.restricted_dependencies: installed",
        )
    elif own:
        yield warning(
            ("hyperpod", "restricted_dependencies"),
            f"is only true once {environment.name}/foundation was deployed alone and install_rig_dependencies.sh was"
            " run on its EKS cluster: without that, pods on restricted nodes find no network; follow"
            " docs/restricted-groups.md",
        )


@BOOK.whole
def restricted_groups_suit_the_cluster(environment: Environment) -> Iterator[Problem]:
    """Warn of what is not known to work together with restricted groups."""
    cluster = environment.hyperpod
    if not cluster.restricted_instance_groups:
        return
    if cluster.provisioning == "continuous":
        yield warning(
            ("hyperpod", "provisioning"),
            "whether restricted groups support continuous provisioning is not documented, and AWS's own Terraform"
            " leaves"
            " it out with them; set provisioning: all_or_nothing if the cluster is refused",
        )
    if cluster.checkpoints_in_memory:
        yield warning(
            ("hyperpod", "tiered_checkpointing"),
            "whether restricted nodes reserve memory for checkpoints is not documented; their jobs write checkpoints to"
            " the service's own file system: rely on the other groups only",
        )
    if not cluster.instance_groups:
        yield warning(
            ("hyperpod", "instance_groups"),
            "restricted nodes carry a taint that add-ons and controllers do not tolerate, so these would never start;"
            " add a small group such as two ml.m5.2xlarge named system",
        )
