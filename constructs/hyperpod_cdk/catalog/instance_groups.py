"""What AWS accepts of one instance group: rules over its values, for environment files and for constructs.

A rule that takes a group and its ``Rows`` gives each problem with its place in the group, for which the file and the
construct have the same name. The other rules give sentences alone, and each caller names the place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal, Protocol, get_args

from hyperpod_cdk.catalog import arns, hyperpod, instance_types, kubernetes
from hyperpod_cdk.catalog.instance_types import InstanceType
from hyperpod_cdk.catalog.rules import again_problem, listing, repeated
from hyperpod_cdk.catalog.sentences import Advice, Companion, Removal, Sentence, Setting, Stated, plural

_MIG_PROFILE = re.compile(r"\d+g\.\d+gb")

Capacity = Literal["on_demand", "spot", "training_plan"]
CAPACITIES: tuple[str, ...] = get_args(Capacity)
RestrictedCapacity = Literal["on_demand", "training_plan"]
RESTRICTED_CAPACITIES: tuple[str, ...] = get_args(RestrictedCapacity)

Placed = tuple[tuple[str | int, ...], str]
"""Where among the values of a group something is wrong, and the sentence that says it."""


class _Taint(Protocol):
    @property
    def key(self) -> str: ...
    @property
    def effect(self) -> str: ...


class _Batch(Protocol):
    @property
    def instances(self) -> int | None: ...
    @property
    def percent(self) -> int | None: ...


class _Patching(Protocol):
    @property
    def schedule(self) -> str | None: ...
    @property
    def strategy(self) -> str | None: ...
    @property
    def max_batch(self) -> _Batch | None: ...
    @property
    def rollback_batch(self) -> _Batch | None: ...


class WithCapacity(Protocol):
    """Where the nodes of a group come from."""

    @property
    def capacity(self) -> str | None: ...
    @property
    def training_plan_arn(self) -> str | None: ...


class AnyGroupLike(WithCapacity, Protocol):
    """What the rules read of a group, restricted or not."""

    @property
    def deep_health_checks(self) -> Sequence[str]: ...
    @property
    def threads_per_core(self) -> int | None: ...
    @property
    def taints(self) -> Sequence[_Taint]: ...


class GroupLike(AnyGroupLike, Protocol):
    """What the rules read of a group that is not restricted."""

    @property
    def instance_type(self) -> str | None: ...
    @property
    def instance_types(self) -> Sequence[str]: ...
    @property
    def count(self) -> int: ...
    @property
    def min_count(self) -> int | None: ...
    @property
    def network_interface(self) -> str | None: ...
    @property
    def labels(self) -> Mapping[str, str]: ...
    @property
    def patching(self) -> _Patching | None: ...
    @property
    def on_create(self) -> str | None: ...
    @property
    def on_init_complete(self) -> str | None: ...


Rows = Callable[[], Iterable[InstanceType]]
"""Looks up the known types of a group, without those that neither the catalog nor the caller knows."""

_BY_PLAN: tuple[str | Advice, ...] = (
    Setting("capacity", "training_plan"),
    " with ",
    Companion("training_plan_arn"),
)
"""What a sentence proposes for capacity from a training plan."""


def type_problems(group: GroupLike, _: Rows) -> Iterator[Placed]:
    """Yield why the types of a group are wrong: no type, both fields, or one type twice."""
    if group.instance_type is not None and group.instance_types:
        yield (
            ("instance_types",),
            (
                "cannot be set together with instance_type; remove instance_type for a flexible group, otherwise remove"
                " instance_types"
            ),
        )
    if group.instance_type is None and not group.instance_types:
        yield (
            ("instance_type",),
            Sentence(
                "is missing; ",
                Setting("instance_type", "ml.p5.48xlarge", verb="add"),
                ", or instance_types for a flexible group",
            ),
        )
    for index, first, name in repeated(group.instance_types):
        yield ("instance_types", index), again_problem(name, first)


def capacity_problems(group: WithCapacity, rows: Rows, *, choices: Sequence[str] = CAPACITIES) -> Iterator[Placed]:
    """Yield why a group with accelerators must say which of the ``choices`` its capacity comes from.

    On-demand capacity is scarce and expensive.
    """
    row = next((row for row in rows() if row.is_accelerated), None)
    if group.capacity is not None or row is None:
        return
    able = [choice for choice in choices if choice != "training_plan" or row.training_plan_supported]
    fix = _BY_PLAN if row.training_plan_supported else (Setting("capacity", "on_demand"),)
    yield (
        ("capacity",),
        Sentence(
            f"must say where {row.name} comes from ({listing(able)}), because on-demand capacity of accelerated types"
            " is scarce; ",
            *fix,
        ),
    )


def plan_problems(group: WithCapacity, rows: Rows, *, choices: Sequence[str] = CAPACITIES) -> Iterator[Placed]:
    """Yield why plan and capacity do not match, and for which types no plans are sold.

    ``choices`` are the kinds of capacity that there are.
    """
    known = [*rows()]
    if group.capacity == "training_plan":
        for row in known:
            if not row.training_plan_supported:
                others = [choice for choice in choices if choice != "training_plan"]
                yield (
                    ("capacity",),
                    Sentence(
                        f"must not be training_plan for {row.name}, for which no plans are sold (as of"
                        f" {instance_types.as_of()}); ",
                        Setting("capacity", listing(others)),
                        *((", and ", Removal("training_plan_arn")) if group.training_plan_arn else ()),
                    ),
                )
        if group.training_plan_arn is None:
            yield (
                ("training_plan_arn",),
                Sentence(
                    "is missing, and ",
                    Stated("capacity", "training_plan"),
                    " needs it; add the ARN that 'aws sagemaker list-training-plans' shows",
                ),
            )
    elif group.training_plan_arn is not None:
        are_sold = all(row.training_plan_supported for row in known)
        yield (
            ("training_plan_arn",),
            Sentence(
                "needs ",
                Stated("capacity", "training_plan"),
                ", got ",
                Stated("capacity", group.capacity) if group.capacity else "no capacity",
                "; ",
                *((Setting("capacity", "training_plan"), " or ") if are_sold else ()),
                Removal("training_plan_arn"),
            ),
        )


def provisioning_problems(group: GroupLike, provisioning: str, *, key: str) -> Iterator[Placed]:
    """Yield what in a group needs continuous provisioning if the cluster, under ``key``, has another."""
    if provisioning == "continuous":
        return
    for name, what, way_out, is_used in (
        ("capacity", "spot", Setting("capacity", "on_demand"), group.capacity == "spot"),
        ("min_count", "a minimum", "remove min_count", group.min_count is not None),
        ("instance_types", "a flexible group", "name one instance_type", bool(group.instance_types)),
    ):
        if is_used:
            yield (
                (name,),
                Sentence(
                    f"{what} needs continuous provisioning, got ",
                    Stated("provisioning", provisioning),
                    "; ",
                    Setting(key, "continuous"),
                    ", or ",
                    way_out,
                ),
            )


def minimum_problems(group: GroupLike, _: Rows) -> Iterator[Placed]:
    """Yield why a group can never reach its minimum."""
    least, count = group.min_count, group.count
    if least is not None and least > count:
        said = f"must be at most count, {count}, got {least}; "
        yield ("min_count",), Sentence(said, Setting("min_count", f"{count} or less"))


def health_check_problems(group: AnyGroupLike, rows: Rows) -> Iterator[Placed]:
    """Yield why deep health checks cannot run on nodes of a type or with taints."""
    if not group.deep_health_checks:
        return
    at = "deep_health_checks"
    for index, first, check in repeated(group.deep_health_checks):
        yield (at, index), again_problem(check, first)
    for row in rows():
        if not row.deep_health_check:
            yield (
                (at,),
                f"must be left out for {row.name}, which has no accelerators to check; remove deep_health_checks",
            )
    if group.taints:
        yield (
            (at,),
            (
                f'cannot be set together with taints, got the taint "{group.taints[0].key}": HyperPod taints the nodes'
                " itself while it checks; remove taints or deep_health_checks"
            ),
        )


def threads_problems(group: AnyGroupLike, rows: Rows) -> Iterator[Placed]:
    """Yield the types whose cores have one thread, if more are requested."""
    threads = group.threads_per_core
    if threads is None:
        return
    for row in rows():
        if threads > 1 and row.has_smt is False:
            yield (
                ("threads_per_core",),
                Sentence(
                    f"must be 1 for {row.name}, whose cores have one thread, got {threads}; ",
                    Setting("threads_per_core", 1),
                    " or remove it",
                ),
            )


def network_interface_problems(group: GroupLike, rows: Rows) -> Iterator[Placed]:
    """Yield the types that have no EFA, if a kind of network interface is requested."""
    got = group.network_interface
    if got is None:
        return
    for row in rows():
        if not row.efa_supported:
            yield (
                ("network_interface",),
                f"must be left out for {row.name}, which has no EFA, got {got}; remove network_interface",
            )


def key_problems(group: GroupLike, _: Rows) -> Iterator[Placed]:
    """Yield why keys of labels and taints are not valid for a node, or are reserved by HyperPod or by kubelet."""
    for key in group.labels:
        yield from ((("labels", key), problem) for problem in _key_problems(key))
        if problem := kubernetes.node_label_problem(key):
            yield ("labels", key), problem
    for index, taint in enumerate(group.taints):
        yield from ((("taints", index, "key"), problem) for problem in _key_problems(taint.key))


def _key_problems(key: str) -> Iterator[str]:
    if problem := hyperpod.key_name_problem(key):
        yield f"{problem}; shorten it"
    owner, prefix = hyperpod.reserved_prefix(key) or ("", "")
    if owner == "hyperpod":
        yield f"must not begin with {prefix}/, which HyperPod reserves, got {key}; use another prefix"


def patching_problems(group: GroupLike, _: Rows) -> Iterator[Placed]:
    """Yield why patching has no kind or both, and a rollback batch without an update batch."""
    patching, at = group.patching, "patching"
    if patching is None:
        return
    if patching.schedule is None and patching.strategy is None:
        example = hyperpod.CRON.example
        fix = (Setting("schedule", example, python=f'"{example}"'), " or ", Stated("strategy", "when_idle"))
        yield (at,), Sentence("must have schedule or strategy, got neither; ", *fix)
    if patching.schedule is not None and patching.strategy is not None:
        yield (at,), "must have schedule or strategy, got both; remove schedule or strategy"
    if patching.rollback_batch is not None and patching.max_batch is None:
        yield (at, "rollback_batch"), Sentence("needs max_batch, got none; ", _one_instance("max_batch", verb="add"))


def _one_instance(key: str, *, verb: str = "set") -> Setting:
    return Setting(key, "{instances: 1}", verb=verb, python="Batch(instances=1)")


def batch_problems(group: GroupLike, _: Rows) -> Iterator[Placed]:
    """Yield the batches with both measures or with none."""
    if group.patching is None:
        return
    batches: Mapping[str, _Batch | None] = {
        "max_batch": group.patching.max_batch,
        "rollback_batch": group.patching.rollback_batch,
    }
    for key, batch in batches.items():
        if batch is not None and (batch.instances is None) == (batch.percent is None):
            got = "neither" if batch.instances is None else "both"
            yield ("patching", key), Sentence(f"must have instances or percent, got {got}; ", _one_instance(key))


def autoscaling_problems(group: AnyGroupLike, rows: Rows) -> Iterator[Placed]:
    """Yield why HyperPod's Karpenter cannot create nodes of a group with a count of 0."""
    if group.capacity == "training_plan":
        yield (
            ("capacity",),
            Sentence(
                "must be on_demand or spot in a group that Karpenter scales, got training_plan; set count to the"
                " plan's nodes, or ",
                Stated("capacity", "on_demand"),
            ),
        )
    if group.deep_health_checks:
        yield (
            ("deep_health_checks",),
            (
                "must be left out of a group that Karpenter scales: pods would wait for hours, and Karpenter would add"
                " more nodes for them; remove deep_health_checks, or set a count"
            ),
        )
    for row in rows():
        if row.architecture not in hyperpod.KARPENTER_ARCHITECTURES:
            yield (
                ("count",),
                Sentence(
                    f"must be above 0 for {row.name}: HyperPod's Karpenter supports"
                    f" {listing(hyperpod.KARPENTER_ARCHITECTURES)} only, got {row.architecture}; ",
                    Setting("count", "1 or more"),
                    ", or name another instance type",
                ),
            )


def autoscaled_cluster_problems(*, node_recovery: str, provisioning: str, of: str, way_out: str) -> Iterator[str]:
    """Yield what Karpenter needs of its cluster: ``of`` precedes the two keys, ``way_out`` is the other fix."""
    for what, key, value, needed in (
        ("continuous provisioning", "provisioning", provisioning, "continuous"),
        ("automatic node recovery", "node_recovery", node_recovery, "automatic"),
    ):
        if value != needed:
            said = (f"needs {what}, got ", Stated(key, value), "; ")
            yield Sentence(*said, Setting(f"{of}{key}", needed), f", or {way_out}")


def autoscaled_counts_problem(counts: Sequence[int], *, way_out: str) -> str | None:
    """Say that Karpenter has no group to scale, or the add-ons have no node to start on."""
    if 0 not in counts:
        return Sentence(
            "needs a group with ",
            Stated("count", 0),
            ", because Karpenter scales only these, got none; ",
            Setting("count", 0),
            f" in one, or {way_out}",
        )
    if not any(counts):
        return (
            "needs a group with a count above 0, for add-ons and controllers, which run before any pod requests a"
            " node, got none; add two ml.m5.2xlarge named system"
        )
    return None


def taint_problems(group: AnyGroupLike, _: Rows) -> Iterator[Placed]:
    """Yield every repeated taint, by key and effect, which Kubernetes refuses."""
    for index, first, (key, effect) in repeated([(taint.key, taint.effect) for taint in group.taints]):
        yield (
            ("taints", index),
            f'must be unique by key and effect, got "{key}" with {effect} as in taints[{first}]; remove one of the two',
        )


def plan_home_problems(
    arn: str, *, partition: str, region: str, account: str, can_move: bool = True, can_belong: bool = True
) -> Iterator[str]:
    """Yield why a training plan is not in the cluster's partition, region or account; plans cannot be shared.

    ``can_move`` and ``can_belong`` say that the plan's region and account can be chosen instead, because nothing else
    is of the cluster's. An empty ``region`` or ``account`` is not known yet, and is not compared.
    """
    of = arns.arn_parts(arn)
    if region and of.region != region:
        instead = (Setting("region", of.region, or_in_files=", or "),) if of.region and can_move else ()
        said = f"must be a plan in {region}, got one in {of.region or 'no region'}; name a plan of {region}"
        yield Sentence(said, *instead)
    elif region and (problem := arns.partition_problem(arn, partition=partition, region=region)):
        yield problem
    if account and of.account != account:
        said = f"must be a plan of account {account}, got one of {of.account}; plans cannot be shared: name a plan of"
        yield Sentence(f"{said} {account}", *((", or ", Setting("account", f'"{of.account}"')) if can_belong else ()))


def other_types_sentence(plan: str, types: Sequence[str], wanted: Sequence[str], *, seen: str = "") -> str:
    """Return the sentence for a group of which no type is among the ``types`` that a plan reserves.

    ``wanted`` are the types of the group; ``seen`` is where and when the plan was as stated, if not just now.
    """
    return (
        f"must be {listing(types)}, which plan {plan} reserves{_after(seen)}, got {listing(wanted, last='and')}; set"
        f" instance_type: {types[0]} or name another plan"
    )


def other_zone_sentence(plan: str, zones: Sequence[str], wanted: str, *, also: str, seen: str = "") -> str:
    """Return the sentence for a group in another zone than those of its plan; ``seen`` as for types.

    ``also`` ends the fix: what else the first of ``zones`` needs.
    """
    return (
        f"must be {listing(zones)}, where plan {plan} is{_after(seen)}, got {wanted}; set availability_zone_id:"
        f" {zones[0]}{also}"
    )


def seats_problem(plan: str, seats: int, *, needed: int, groups: Sequence[str], seen: str = "") -> str | None:
    """Say that groups need more instances of a plan than its ``seats``, or return None; ``seen`` as for types."""
    if needed <= seats:
        return None
    return (
        f"needs {needed} {plural(needed, 'instance')} of plan {plan} for {listing(groups, last='and')},"
        f" which has {seats}{_after(seen)}; lower count by {needed - seats} or name another plan"
    )


def _after(seen: str) -> str:
    return f" {seen}" if seen else ""


def ultraserver_problems(group: GroupLike, _: Rows) -> Iterator[Placed]:
    """Yield the types that are sold only with a training plan, if the capacity is another one."""
    if group.capacity in {None, "training_plan"}:
        return
    for name in (group.instance_type,) if group.instance_type is not None else group.instance_types:
        known = hyperpod.ultraserver(name)
        if known is None:
            continue
        sizes = [f"{count} ({size})" for size, count in known.sizes.items()]
        yield (
            ("capacity",),
            Sentence(
                f"must be training_plan for {name}, which is sold as UltraServers of {listing(sizes)} instances, got"
                f" {group.capacity}; ",
                *_BY_PLAN,
            ),
        )


def ultraserver_version_doubt(instance_type: str, *, kubernetes_version: str) -> str | None:
    """Warn of UltraServers on a Kubernetes version older than the one that the EKS user guide names for them."""
    known = hyperpod.ultraserver(instance_type)
    if known is None or not kubernetes.is_newer(known.kubernetes_version, kubernetes_version):
        return None
    step = kubernetes.step_to(kubernetes.DEFAULT, kubernetes_version, key="kubernetes_version")
    return (
        f"EKS supports {instance_type} from Kubernetes {known.kubernetes_version} on (EKS user guide, UltraServers, as"
        f" of {hyperpod.AS_OF}), because jobs use the NVLink between its nodes through Dynamic Resource Allocation, got"
        f' "{kubernetes_version}"; {step}'
    )


def ultraserver_region_problem(instance_type: str, *, region: str) -> str | None:
    """Say that the UltraServers of a type are in another region than the cluster."""
    known = hyperpod.ultraserver(instance_type)
    if known is None or region == known.region:
        return None
    return Sentence(
        f"must be a type of {region}, got {instance_type}, whose UltraServers are in"
        f" {known.zone_name} only (as of {hyperpod.AS_OF}); name another type",
        Setting("region", known.region, or_in_files=", or "),
    )


def partition_problems(group: GroupLike, rows: Rows) -> Iterator[Placed]:
    """Yield why the GPUs of a group cannot be partitioned (MIG) as its label says."""
    if hyperpod.MIG_LABEL not in group.labels:
        return
    at, configuration = ("labels", hyperpod.MIG_LABEL), group.labels[hyperpod.MIG_LABEL]
    if group.instance_types:
        yield (
            at,
            "must be left out of a flexible group, whose GPUs cannot be partitioned; set one instance_type instead",
        )
    known = [*rows()]
    yield from ((at, problem) for is_certain, problem in _slice_problems(configuration, known) if is_certain)
    if problem := _configuration_problem(configuration, known):
        yield at, problem


def partition_doubts(group: GroupLike, rows: Rows) -> Iterator[Placed]:
    """Yield why it is not known whether the GPUs of a group can be partitioned as its label says."""
    if hyperpod.MIG_LABEL in group.labels:
        for is_certain, doubt in _slice_problems(group.labels[hyperpod.MIG_LABEL], [*rows()]):
            if not is_certain:
                yield ("labels", hyperpod.MIG_LABEL), doubt


def _slice_problems(configuration: str, rows: Sequence[InstanceType]) -> Iterator[tuple[bool, str]]:
    """Yield what is wrong with a configuration, and whether that is certain."""
    profiles = tuple(dict.fromkeys(_MIG_PROFILE.findall(configuration)))
    for row in rows:
        sold = hyperpod.ultraserver(row.name)
        if profiles and sold is not None and not sold.gpu_slices:
            yield (
                False,
                (
                    f"partitions the GPUs of {row.name}, whose NVIDIA driver 580 and newer does not support that (EKS"
                    " user"
                    f" guide, UltraServers, as of {hyperpod.AS_OF}); remove the label"
                ),
            )
            continue
        if not row.mig_profiles:
            yield (
                False,
                (
                    f"{row.name} is not known to support GPU partitions (catalog of {instance_types.as_of()}); remove"
                    " the label if"
                    " nodes do not become Ready"
                ),
            )
            continue
        known = [profile.removeprefix("mig-") for profile in row.mig_profiles]
        for profile in profiles:
            if profile in known:
                continue
            fix = f"set it to a configuration of {listing(known)}, such as all-{known[0]}"
            if row.mig_documented:
                yield True, f"must partition {row.name} into MIG profiles that it supports, got {profile}; {fix}"
            else:
                yield (
                    False,
                    (
                        f"{row.name} is not known to support the MIG profile {profile} (catalog of"
                        f" {instance_types.as_of()});"
                        f" {fix}, if nodes do not become Ready"
                    ),
                )


def _configuration_problem(configuration: str, rows: Sequence[InstanceType]) -> str | None:
    """Say that the dependency chart has no such configuration, unless ``_slice_problems`` reports more about it."""
    if configuration in hyperpod.MIG_CONFIGS:
        return None
    sizes = {profile.removeprefix("mig-") for row in rows for profile in row.mig_profiles}
    if any(row.mig_documented for row in rows) and not sizes.issuperset(_MIG_PROFILE.findall(configuration)):
        return None
    choice = [
        name
        for name in hyperpod.MIG_CONFIGS
        if name.startswith("all-") and _MIG_PROFILE.search(name) and sizes.issuperset(_MIG_PROFILE.findall(name))
    ]
    fix = f"set it to {listing(choice)}, or to a mixture of the chart's default-mig-config" if choice else "remove it"
    return (
        "must be a configuration that the dependency chart gives the GPU operator, which otherwise does not "
        "partition GPUs, got"
        f" {configuration}; {fix}"
    )


def bucket_problems(inputs: Sequence[str], outputs: Sequence[str]) -> Iterator[tuple[str, int, str]]:
    """Yield the buckets that a restricted group names twice: name of the list, index in it, and the sentence.

    Output buckets are read as well.
    """
    for key, buckets in (("input_buckets", inputs), ("output_buckets", outputs)):
        for index, first, name in repeated(buckets):
            yield key, index, again_problem(name, first)
    for index, name in enumerate(inputs):
        if name in outputs:
            yield (
                "input_buckets",
                index,
                (f"must be named once, got {name} in output_buckets too, which are read as well; remove it here"),
            )


def volume_key_problem(provisioning: str) -> str:
    """Say that HyperPod accepts a key for node volumes only with continuous provisioning, got ``provisioning``.

    Developer guide, "Customer managed AWS KMS key encryption for SageMaker HyperPod".
    """
    return Sentence("needs continuous provisioning, got ", Stated("provisioning", provisioning))


def script_problems(group: GroupLike, _: Rows) -> Iterator[Placed]:
    """Yield why both scripts cannot be set: one sets up the node, the other runs after HyperPod has set it up."""
    if group.on_create is not None and group.on_init_complete is not None:
        yield (
            ("on_init_complete",),
            (
                f"cannot be set together with on_create, got {group.on_create} and {group.on_init_complete}; remove"
                " on_create if HyperPod itself should set up the nodes, otherwise remove on_init_complete"
            ),
        )


def _restricted(rule: Callable[..., Iterator[Placed]]) -> Callable[[AnyGroupLike, Rows], Iterator[Placed]]:
    """Return a rule about capacity for restricted groups, which have fewer kinds of it."""

    def restricted(group: AnyGroupLike, rows: Rows) -> Iterator[Placed]:
        return rule(group, rows, choices=RESTRICTED_CAPACITIES)

    return restricted


OF_ANY_GROUP: Mapping[str, Callable[[AnyGroupLike, Rows], Iterator[Placed]]] = {
    "deep_health_checks_can_run": health_check_problems,
    "threads_per_core_exist": threads_problems,
}
"""The rules about every group, restricted or not, under the names that stay when their sentences change."""

OF_GROUPS: Mapping[str, Callable[[GroupLike, Rows], Iterator[Placed]]] = {
    "group_names_its_types": type_problems,
    "ultraservers_come_with_a_plan": ultraserver_problems,
    "plan_goes_with_its_capacity": plan_problems,
    "accelerated_groups_say_their_capacity": capacity_problems,
    "min_count_is_within_count": minimum_problems,
    "network_interface_suits_the_type": network_interface_problems,
    "keys_are_not_reserved": key_problems,
    "taints_are_unique": taint_problems,
    "gpus_can_be_partitioned": partition_problems,
    "one_script_starts_a_node": script_problems,
    "patching_is_by_schedule_or_strategy": patching_problems,
    "batches_are_by_number_or_percent": batch_problems,
}
"""The rules about a group that is not restricted, in addition to those of any group."""

OF_RESTRICTED_GROUPS: Mapping[str, Callable[[AnyGroupLike, Rows], Iterator[Placed]]] = {
    "restricted_plan_goes_with_its_capacity": _restricted(plan_problems),
    "restricted_groups_say_their_capacity": _restricted(capacity_problems),
}
"""The rules about a restricted group, in addition to those of any group."""


def problems(
    group: GroupLike, rows: Rows, *, certain: Callable[[Iterator[Placed]], Iterator[Placed]] = iter
) -> Iterator[Placed]:
    """Yield everything that is wrong with a group that is not restricted, as far as its own values show.

    ``certain`` ends a rule that reads a value which is not known, so that the others still run.
    """
    for rule in (*OF_GROUPS.values(), *OF_ANY_GROUP.values()):
        yield from certain(rule(group, rows))


def restricted_problems(
    group: AnyGroupLike, rows: Rows, *, certain: Callable[[Iterator[Placed]], Iterator[Placed]] = iter
) -> Iterator[Placed]:
    """Yield everything that is wrong with a restricted group; ``certain`` as for ``problems``."""
    for rule in (*OF_RESTRICTED_GROUPS.values(), *OF_ANY_GROUP.values()):
        yield from certain(rule(group, rows))
