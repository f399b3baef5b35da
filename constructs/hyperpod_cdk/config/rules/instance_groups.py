"""Rules about instance groups."""

from __future__ import annotations

from collections.abc import Iterator

from hyperpod_cdk.catalog import arns, hyperpod, images, instance_types, kubernetes, regions
from hyperpod_cdk.catalog import instance_groups as rules
from hyperpod_cdk.catalog.rules import listing, repeated, same_name_problem
from hyperpod_cdk.catalog.sentences import plural
from hyperpod_cdk.config.environment import Environment
from hyperpod_cdk.config.instance_group import InstanceGroup
from hyperpod_cdk.config.restricted_group import AnyGroup, RestrictedGroup
from hyperpod_cdk.config.rules.book import Book, Problem, all_groups, groups, known_types, warning
from hyperpod_cdk.config.rules.network import is_all_of, zone_problem
from hyperpod_cdk.config.source import DataPath

BOOK = Book()

_SYSTEM = "system"


@BOOK.whole
def group_names_are_unique(environment: Environment) -> Iterator[Problem]:
    """Refuse two groups with the same name."""
    members = list(all_groups(environment))
    for index, first, name in repeated([group.name for _, group in members]):
        _, kind, place = members[first][0]
        yield Problem((*members[index][0], "name"), same_name_problem(name, f"{kind}[{place}]"))


@BOOK.whole
def groups_are_not_too_many(environment: Environment) -> Iterator[Problem]:
    """Warn of more groups than the developer guide allows."""
    doubt = hyperpod.INSTANCE_GROUPS.count_warning(len(environment.hyperpod.instance_groups), what="instance groups")
    if doubt:
        yield warning(("hyperpod", "instance_groups"), f"{doubt} (as of {hyperpod.AS_OF})")


for _name, _rule in rules.OF_GROUPS.items():
    BOOK.about(groups, _name, _rule)
for _name, _any_rule in rules.OF_ANY_GROUP.items():
    BOOK.about(all_groups, _name, _any_rule)


@BOOK.each(all_groups)
def instance_types_are_known(environment: Environment, path: DataPath, group: AnyGroup) -> Iterator[Problem]:
    """Refuse types that neither the catalog nor the file knows, with their near miss."""
    if group.instance_type is not None:
        yield from unknown_type(environment, (*path, "instance_type"), group.instance_type)
    if isinstance(group, RestrictedGroup):
        return
    for index, name in enumerate(group.instance_types):
        yield from unknown_type(environment, (*path, "instance_types", index), name)


def unknown_type(environment: Environment, path: DataPath, name: str) -> Iterator[Problem]:
    """Find one unknown type."""
    key = str(path[-1] if path[-1] == "instance_type" else path[-2])
    if problem := instance_types.unknown_type_problem(name, key=key, stated=environment.instance_types):
        yield Problem(path, problem)


@BOOK.each(all_groups)
def group_stands_in_a_listed_zone(environment: Environment, path: DataPath, group: AnyGroup) -> Iterator[Problem]:
    """Refuse names, zones of other regions and zones that the network does not list."""
    yield from unlisted_zone(environment, (*path, "availability_zone_id"), group.availability_zone_id)


def unlisted_zone(environment: Environment, path: DataPath, az_id: str) -> Iterator[Problem]:
    """Find a zone in which the network has no node subnet."""
    problem = zone_problem(environment, az_id, key="availability_zone_id")
    network = environment.network
    zones = network.availability_zones if network.existing is None else network.existing.node_subnet_ids
    if problem is None and zones and az_id not in zones:
        where, what = (
            ("existing.node_subnet_ids", "its subnet") if network.is_existing else ("availability_zones", "the zone")
        )
        right = [each for each in zones if zone_problem(environment, each, key="the key") is None]
        listed, choice = (
            (f" ({', '.join(right)})", "set availability_zone_id to one of these, or ") if right else ("", "")
        )
        problem = f"must be one of network.{where}{listed}, got {az_id}; {choice}add {what} there"
    if problem:
        yield Problem(path, problem)


@BOOK.each(groups)
def adopted_groups_are_of_this_cluster(
    environment: Environment, path: DataPath, group: InstanceGroup
) -> Iterator[Problem]:
    """Refuse roles of other accounts, and nodes in the cluster's own subnets if these are not in the file."""
    key = "execution_role_arn"
    if (role := group.execution_role_arn) and (
        problem := arns.home_problem(
            "a role", role, partition=environment.partition, account=environment.account, key=key
        )
    ):
        yield Problem((*path, "existing", key), problem)
    network = environment.network.existing
    if group.is_in_cluster_network and not (network and network.cluster_subnet_ids):
        yield Problem(
            (*path, "existing", "cluster_network"),
            "needs network.existing.cluster_subnet_ids, the subnets of the existing cluster, got none; list them, or"
            " remove cluster_network",
        )


@BOOK.each(all_groups)
def plan_belongs_to_the_environment(environment: Environment, path: DataPath, group: AnyGroup) -> Iterator[Problem]:
    """Refuse a plan of another partition, region or account; plans cannot be shared."""
    if group.training_plan_arn is None:
        return
    home = {"partition": environment.partition, "region": environment.region, "account": environment.account}
    of = arns.arn_parts(group.training_plan_arn)
    can_move, can_belong = is_all_of(environment, region=of.region), is_all_of(environment, account=of.account)
    found = rules.plan_home_problems(group.training_plan_arn, **home, can_move=can_move, can_belong=can_belong)
    for problem in found:
        yield Problem((*path, "training_plan_arn"), problem)


@BOOK.whole
def a_plan_is_of_one_type(environment: Environment) -> Iterator[Problem]:
    """Warn of one plan for several types, of one group or of several, or for several zones.

    Offerings are for one type and one zone. CreateTrainingPlan mentions reserved capacities "each defined by a specific
    instance type", but you cannot search for offerings of several types: no source says whether such a plan exists.
    """
    first: dict[str, AnyGroup] = {}
    for path, group in environment.hyperpod.placed_groups:
        if group.training_plan_arn is None:
            continue
        if len(group.all_instance_types) > 1:
            yield warning(
                (*path, "training_plan_arn"),
                f"is the plan of a group of {', '.join(group.all_instance_types)}, and plans are offered for one"
                " instance type in one zone; keep in instance_types only the one that the plan was bought for",
            )
        other = first.setdefault(group.training_plan_arn, group)
        theirs = (other.all_instance_types, other.availability_zone_id)
        if (group.all_instance_types, group.availability_zone_id) != theirs:
            yield warning(
                (*path, "training_plan_arn"),
                f"is the plan of group {other.name} too, of {', '.join(other.all_instance_types)} in"
                f" {other.availability_zone_id}, and plans are offered for one instance type in one zone; name the plan"
                f" that was bought for {', '.join(group.all_instance_types)} in {group.availability_zone_id}",
            )


@BOOK.each(groups)
def continuous_provisioning_where_needed(
    environment: Environment, path: DataPath, group: InstanceGroup
) -> Iterator[Problem]:
    """Refuse what all-or-nothing provisioning cannot do."""
    provisioning = environment.hyperpod.provisioning
    for at, problem in rules.provisioning_problems(group, provisioning, key="hyperpod.provisioning"):
        yield Problem((*path, *at), problem)


@BOOK.each(groups)
def a_minimum_is_met_in_time(environment: Environment, path: DataPath, group: InstanceGroup) -> Iterator[Problem]:
    """Warn of a minimum with a start that takes hours: HyperPod rolls back a group below its minimum after 3 hours."""
    if not group.min_count or group.min_count > group.count or environment.hyperpod.provisioning != "continuous":
        return
    slow = []
    if group.capacity == "training_plan":
        slow.append(
            "nodes of a training plan join when it starts, and AWS does not document whether the 3 hours begin then"
        )
    if group.deep_health_checks:
        slow.append("deep health checks take about two of these hours")
    if slow:
        yield warning(
            (*path, "min_count"),
            "HyperPod gives a group 3 hours to reach its minimum, then sets minimum and count back, to 0 for a new"
            f" group (developer guide, scaling); {'; '.join(slow)}; leave out min_count until the nodes run",
        )


@BOOK.each(groups)
def partitions_have_their_operator(environment: Environment, path: DataPath, group: InstanceGroup) -> Iterator[Problem]:
    """Refuse GPU partitions that nothing in the region would make; warn if it is not known that a type has them."""
    at = (*path, "labels", hyperpod.MIG_LABEL)
    if hyperpod.MIG_LABEL in group.labels and images.gpu_operator_registry(environment.region) is None:
        yield Problem(
            at,
            f"must be left out in {environment.region}, where AWS has no copy of NVIDIA's GPU operator, which"
            " partitions"
            f" GPUs (chart as of {images.AS_OF}); remove the label",
        )
    for below, doubt in rules.partition_doubts(group, lambda: known_types(environment, group)):
        yield warning((*path, *below), doubt)


@BOOK.alone(groups)
def own_image_has_no_release(path: DataPath, group: InstanceGroup) -> Iterator[Problem]:
    """Warn of a release of HyperPod's AMI for nodes with a custom AMI."""
    if group.image.ami_id not in (None, "default") and group.image.release_version is not None:
        yield warning(
            (*path, "image", "release_version"),
            f"names a release of HyperPod's own AMI, but the nodes boot from {group.image.ami_id}; remove"
            " release_version or ami_id",
        )


@BOOK.each(groups)
def ultraservers_are_in_their_zone(environment: Environment, path: DataPath, group: InstanceGroup) -> Iterator[Problem]:
    """Refuse UltraServers in regions without them; warn of another zone than theirs."""
    if next(rules.ultraserver_problems(group, list), None) is not None:
        return
    for name in group.all_instance_types:
        known = hyperpod.ultraserver(name)
        if known is None:
            continue
        if problem := rules.ultraserver_region_problem(name, region=environment.region):
            yield Problem((*path, "instance_type") if group.instance_type else (*path, "instance_types"), problem)
        elif group.availability_zone_id != known.zone_id:
            yield warning(
                (*path, "availability_zone_id"),
                f"UltraServers of {name} are in the Local Zone {known.zone_name} only (as of {hyperpod.AS_OF}), got"
                f" {group.availability_zone_id}; set availability_zone_id: {known.zone_id}, unless the plan names"
                " another zone",
            )


@BOOK.whole
def ultraservers_have_their_kubernetes(environment: Environment) -> Iterator[Problem]:
    """Warn of UltraServers on a Kubernetes version that AWS does not name for them."""
    version = environment.eks.kubernetes_version
    for name in dict.fromkeys(name for _, group in groups(environment) for name in group.all_instance_types):
        if doubt := rules.ultraserver_version_doubt(name, kubernetes_version=version):
            yield warning(("eks", "kubernetes_version"), doubt)


@BOOK.alone(groups)
def keys_are_not_those_of_kubernetes(path: DataPath, group: InstanceGroup) -> Iterator[Problem]:
    """Warn of labels and taints that Kubernetes reserves, unless a node with them is certain not to start."""
    placed = [
        *((("labels", key), key) for key in group.labels if not kubernetes.node_label_problem(key)),
        *((("taints", index, "key"), taint.key) for index, taint in enumerate(group.taints)),
    ]
    for at, key in placed:
        owner, prefix = hyperpod.reserved_prefix(key) or ("", "")
        if owner == "kubernetes":
            yield warning(
                (*path, *at), f"{prefix} is reserved for Kubernetes itself, got {key}; use a prefix of your own"
            )


@BOOK.alone(groups)
def patching_by_strategy_has_no_batches(path: DataPath, group: InstanceGroup) -> Iterator[Problem]:
    """Warn of details that AWS documents for rolling updates only."""
    patching = group.patching
    if patching is None or patching.schedule is not None or patching.strategy is None:
        return
    for key in ("max_batch", "rollback_batch", "wait_seconds", "rollback_alarms"):
        if getattr(patching, key):
            yield warning(
                (*path, "patching", key),
                f"AWS documents {key} for rolling updates only, and strategy: {patching.strategy} is not one;"
                " expect"
                " no effect, or use schedule",
            )
            break


@BOOK.whole
def addons_have_a_place(environment: Environment) -> Iterator[Problem]:
    """Warn if add-ons and controllers would run on accelerated nodes, or stop when a plan ends."""
    members = environment.hyperpod.instance_groups
    rows = [known_types(environment, group) for group in members]
    if members and all(types and all(row.is_accelerated for row in types) for types in rows):
        yield warning(
            ("hyperpod", "instance_groups"),
            "every group has accelerators, so add-ons and controllers use part of their capacity; add a small group"
            " such as"
            " two ml.m5.2xlarge named system",
        )
    for index, group in enumerate(members):
        if group.name == _SYSTEM and group.capacity == "training_plan":
            yield warning(
                ("hyperpod", "instance_groups", index, "capacity"),
                "a system group on a training plan stops with its add-ons when the plan ends; set capacity: on_demand",
            )


@BOOK.whole
def efa_groups_share_a_zone(environment: Environment) -> Iterator[Problem]:
    """Warn of one accelerated type in several zones: EFA traffic does not cross them."""
    first: dict[str, InstanceGroup] = {}
    for index, group in enumerate(environment.hyperpod.instance_groups):
        for row in known_types(environment, group):
            if not (row.is_accelerated and row.efa_supported) or not regions.is_az_id(group.availability_zone_id):
                continue
            other = first.setdefault(row.name, group)
            if other.availability_zone_id != group.availability_zone_id and not _have_other_labels(group, other):
                yield warning(
                    ("hyperpod", "instance_groups", index, "availability_zone_id"),
                    f"{row.name} is in {group.availability_zone_id} here and in {other.availability_zone_id} in"
                    " group"
                    f' "{other.name}"; EFA traffic does not cross zones, so a job across both falls back to'
                    " TCP: keep jobs within one group",
                )


def _have_other_labels(group: AnyGroup, other: AnyGroup) -> bool:
    """Return whether a label of their nodes lets a job choose one of the two."""
    labels, others = (each.labels if isinstance(each, InstanceGroup) else {} for each in (group, other))
    return any(key in others and others[key] != value for key, value in labels.items())


@BOOK.whole
def elastic_training_suits_the_cluster(environment: Environment) -> Iterator[Problem]:
    """Warn of settings that elastic training does not support."""
    if not environment.operators.training.enabled or not environment.operators.training.elastic:
        return
    spot = [group.name for group in environment.hyperpod.instance_groups if group.capacity == "spot"]
    if spot:
        yield warning(
            ("operators", "training"),
            f"elastic training does not work on Spot capacity, got the {plural(len(spot), 'group')}"
            f" {listing(spot, last='and')}; run elastic jobs on other groups",
        )
    if environment.hyperpod.checkpoints_in_memory:
        yield warning(
            ("hyperpod", "tiered_checkpointing"),
            "elastic training does not work with tiered checkpointing; jobs that scale must write their checkpoints"
            " to storage",
        )
