"""Instance groups of a HyperPod cluster, each checked on its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_sagemaker as sagemaker

from hyperpod_cdk.catalog import arns, hyperpod, regions
from hyperpod_cdk.catalog import instance_groups as rules
from hyperpod_cdk.catalog import instance_types as catalog
from hyperpod_cdk.catalog.sentences import in_python
from hyperpod_cdk.common.stack_arns import id_of
from hyperpod_cdk.config import instance_group as fields
from hyperpod_cdk.config.argument_types import judged
from hyperpod_cdk.config.arguments import (
    Flaw,
    flaws,
    for_rules,
    is_token,
    refuse_for,
    unknown_type_problem,
    unlike,
    written,
)
from hyperpod_cdk.config.draft import certain
from hyperpod_cdk.config.section import Section
from hyperpod_cdk.config.source import DataPath

DeepHealthCheck = Literal["instance_stress", "instance_connectivity"]
TaintEffect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
PatchingStrategy = Literal["when_idle", "when_all_idle"]
NetworkInterface = Literal["efa", "efa_only"]


class TaintLike(Protocol):
    """Anything with the attributes of ``Taint``."""

    @property
    def key(self) -> str: ...
    @property
    def effect(self) -> TaintEffect: ...
    @property
    def value(self) -> str | None: ...


class BatchLike(Protocol):
    """Anything with the attributes of ``Batch``."""

    @property
    def instances(self) -> int | None: ...
    @property
    def percent(self) -> int | None: ...


class PatchingLike(Protocol):
    """Anything with the attributes of ``Patching``."""

    @property
    def schedule(self) -> str | None: ...
    @property
    def max_batch(self) -> BatchLike | None: ...
    @property
    def rollback_batch(self) -> BatchLike | None: ...
    @property
    def wait_seconds(self) -> int: ...
    @property
    def rollback_alarms(self) -> Sequence[str]: ...
    @property
    def strategy(self) -> PatchingStrategy | None: ...


@judged()
@dataclass(frozen=True, kw_only=True)
class Taint:
    """A Kubernetes taint of a group's nodes.

    ``key`` (str): key of the taint. Checked by ``InstanceGroup``, which raises ValueError for a key that Kubernetes
    refuses or HyperPod reserves.

    ``effect`` ("NoSchedule" | "PreferNoSchedule" | "NoExecute"): what Kubernetes does with pods that do not tolerate
    the taint. Checked by ``InstanceGroup``, which raises ValueError for another value.

    ``value`` (str): value of the taint. Default: none, it is left out. Checked by ``InstanceGroup``, which raises
    ValueError for a value that Kubernetes refuses.
    """

    key: str
    effect: TaintEffect
    value: str | None = None


@judged()
@dataclass(frozen=True, kw_only=True)
class Batch:
    """How much of a group is patched at once: ``instances``, or ``percent`` of the group; exactly one of them.

    ``instances`` (int, nodes): number of nodes. Default: none. Checked by ``InstanceGroup``, which raises ValueError
    for less than 1, and unless exactly one of the two is given.

    ``percent`` (int, percent of the group): share of the nodes. Default: none. Checked by ``InstanceGroup``, which
    raises ValueError unless it is 1 to 100.
    """

    instances: int | None = None
    percent: int | None = None


@judged()
@dataclass(frozen=True, kw_only=True)
class Patching:
    """When a group gets new AMI releases: at fixed times (``schedule``) or when no job runs (``strategy``).

    ``max_batch``, ``rollback_batch``, ``wait_seconds`` and ``rollback_alarms`` apply to both; AWS documents them only
    for rolling updates, which no strategy here is.

    ``schedule`` (str): ``cron(minute hour day month weekday year)``, in UTC. Default: none. Checked by
    ``InstanceGroup``, which raises ValueError for text of another form, and unless exactly one of ``schedule`` and
    ``strategy`` is given.

    ``max_batch`` (BatchLike): nodes patched at the same time. Default: the service's choice.

    ``rollback_batch`` (BatchLike): nodes rolled back at the same time. Default: the service's choice. Checked by
    ``InstanceGroup``, which raises ValueError without ``max_batch``.

    ``wait_seconds`` (int, seconds): time between two batches. Default: 0. Checked by ``InstanceGroup``, which raises
    ValueError unless it is 0 to 3600.

    ``rollback_alarms`` (Sequence[str]): names of CloudWatch alarms, at most 10, any one of which rolls the update back.
    Default: none. Checked by ``InstanceGroup``, which raises ValueError for more, and for a name that CloudWatch
    refuses.

    ``strategy`` ("when_idle" | "when_all_idle"): ``when_idle`` patches each node when it becomes idle,
    ``when_all_idle`` waits until the whole group is idle. Default: none. Checked by ``InstanceGroup``, which raises
    ValueError for another value.
    """

    schedule: str | None = None
    max_batch: BatchLike | None = None
    rollback_batch: BatchLike | None = None
    wait_seconds: int = 0
    rollback_alarms: Sequence[str] = ()
    strategy: PatchingStrategy | None = None


@judged()
@dataclass(frozen=True, kw_only=True)
class InstanceGroup:
    """Nodes with the same configuration. Tokens are not checked.

    ``instance_type``, or for a flexible group ``instance_types``, tried in their order: exactly one of the two.

    ``name`` (str): name of the group. The service refuses to change the type, the threads per core, the network and the
    kind of capacity of a group that exists: give the changed group a new name. Raises ValueError unless it is 1 to 63
    letters, digits and hyphens.

    ``count`` (int, nodes): nodes of the group; 0 is allowed. Raises ValueError for less than 0, and for more
    than HyperPod takes.

    ``subnet`` (ec2.ISubnet): private subnet in the group's availability zone. Raises ValueError for None.

    ``security_groups`` (Sequence[ec2.ISecurityGroup]): security groups of the nodes, 1 to 5. For EFA, one of them needs
    rules from and to itself. Raises ValueError for none, and for more.

    ``instance_type`` (str): the one type of the group, such as ``ml.p5.48xlarge``. Default: none. Raises ValueError
    together with ``instance_types``, if both are left out, and for a type that is neither in the catalog nor in
    ``stated_types``.

    ``instance_types`` (Sequence[str]): the types of a flexible group, tried in their order, at most 20. Default: none.
    Raises ValueError for an unknown or repeated type, and for more.

    ``min_count`` (int, nodes): nodes that must join within 3 hours, else the group rolls back. Default: none. Raises
    ValueError unless it is 0 to ``count``.

    ``availability_zone_id`` (str): ID of the subnet's zone, such as ``use1-az5``, compared with the stack's region.
    Default: not compared. Raises ValueError for text that is not an AZ ID, such as the name of a zone;
    ``HyperPodCluster`` also for a zone of another region.

    ``capacity`` ("on_demand" | "spot" | "training_plan"): source of the instances; ``training_plan`` needs
    ``training_plan_arn``. Default: on-demand. Raises ValueError for another value, if it is left out for an accelerated
    type, and for a plan of a type for which AWS sells none.

    ``training_plan_arn`` (str, ARN): the training plan. Default: none. Raises ValueError for text that is not the ARN
    of a plan, with another ``capacity``, and if it is left out for ``training_plan``; ``HyperPodCluster`` also for a
    plan of another region or account.

    ``deep_health_checks`` (Sequence["instance_stress" | "instance_connectivity"]): stress and connectivity tests of
    about 2 hours before a node is used. Default: none. Raises ValueError for another or repeated value, for types
    without accelerators, and together with ``taints``.

    ``threads_per_core`` (int, threads): threads of each core, always emitted, because AWS's default is 1 and a p5 then
    has half its vCPUs. Default: 2 if the type has simultaneous multithreading or is a token, else 1. Raises ValueError
    unless it is 1 or 2, and for 2 threads of a type that has 1.

    ``network_interface`` ("efa" | "efa_only"): ``efa``: every EFA interface also carries IP traffic; ``efa_only``: none
    does. Default: the service's choice. Raises ValueError for another value, and for a type without EFA.

    ``volume_gib`` (int | None, GiB): size of an extra EBS volume, mounted at /opt/sagemaker, for images and pods; None
    leaves it out. Default: 500. Raises ValueError unless it is 1 to 16384.

    ``volume_kms_key_arn`` (str, ARN): KMS key of that volume and of the root volume. Default: keys that AWS owns.
    Raises ValueError for text that is not the ARN of a key.

    ``labels`` (Mapping[str, str]): labels of the Kubernetes nodes, at most 50. Default: none. Raises ValueError for
    more, for a key or value that Kubernetes refuses, a key that HyperPod reserves, and a configuration of GPU
    partitions that the dependency chart or, of the types whose partitions AWS documents, the type does not have.

    ``taints`` (Sequence[TaintLike]): taints of the Kubernetes nodes (``Taint``), at most 50. Default: none. Raises
    ValueError for more, for a key or value that Kubernetes refuses, a key that HyperPod reserves, and two taints of one
    key and effect.

    ``ami_id`` (str): a custom AMI built on HyperPod's, or ``default``. Default: HyperPod's newest AMI. Raises
    ValueError for text of another form.

    ``release_version`` (str): release of HyperPod's AMI, such as ``1.2.3``. Default: the newest when the group is
    created. Raises ValueError for text of another form.

    ``patching`` (PatchingLike): when new AMI releases are installed (``Patching``). Default: when you request it.
    Raises ValueError for values that ``Patching`` does not allow.

    ``on_create`` (str): the script in the lifecycle folder that a new node runs and that configures it. Default:
    on_create.sh, unless ``on_init_complete`` is given. Raises ValueError for what is not a path below the folder, and
    together with ``on_init_complete``; ``HyperPodCluster`` also if the folder does not have it.

    ``on_init_complete`` (str): the script that runs after HyperPod itself has configured the node, without
    ``on_create``. Default: none. Raises ValueError for what is not a path below the folder; ``HyperPodCluster`` also if
    the folder does not have it.

    ``execution_role_arn`` (str, ARN): another execution role, of the stack's account. Default: the cluster's. Raises
    ValueError for text that is not the ARN of a role; ``HyperPodCluster`` also for a role of another account or
    partition.

    ``cluster_network`` (bool): the group has no subnets and security groups of its own but uses the cluster's, like a
    group that was created without ``OverrideVpcConfig``, which HyperPod never changes; ``subnet`` is then only where
    nodes are counted. Default: no, it has its own.

    ``stated_types`` (Mapping[str, InstanceType]): your own rows, by name, for types that the catalog does not have or
    whose row is wrong. Default: none.
    """

    name: str
    count: int
    subnet: ec2.ISubnet
    security_groups: Sequence[ec2.ISecurityGroup]
    instance_type: str | None = None
    instance_types: Sequence[str] = ()
    min_count: int | None = None
    availability_zone_id: str | None = None
    capacity: rules.Capacity | None = None
    training_plan_arn: str | None = None
    deep_health_checks: Sequence[DeepHealthCheck] = ()
    threads_per_core: int | None = None
    network_interface: NetworkInterface | None = None
    volume_gib: int | None = 500
    volume_kms_key_arn: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[TaintLike] = ()
    ami_id: str | None = None
    release_version: str | None = None
    patching: PatchingLike | None = None
    on_create: str | None = None
    on_init_complete: str | None = None
    execution_role_arn: str | None = None
    cluster_network: bool = False
    stated_types: Mapping[str, catalog.InstanceType] = field(default_factory=dict)

    def __post_init__(self) -> None:
        refuse_for(self._problems(), where=f'instance group "{self.name}"')

    @property
    def types(self) -> tuple[str, ...]:
        """The one instance type, or all of a flexible group."""
        return (self.instance_type,) if self.instance_type is not None else tuple(self.instance_types)

    @property
    def script(self) -> str:
        """The script in the lifecycle folder that a new node runs."""
        return self.on_init_complete or self.on_create or hyperpod.LIFECYCLE_SCRIPT.example

    @property
    def resolved_threads_per_core(self) -> int:
        """The value of ``ThreadsPerCore``."""
        if self.threads_per_core is not None:
            return self.threads_per_core
        return 2 if all(row.has_smt for row in self._known_types()) else 1

    def provisioning_problems(self, provisioning: str) -> Iterator[str]:
        """Yield what in this group needs continuous provisioning if the cluster has another one.

        ``provisioning``: that of the cluster, ``continuous`` or ``all_or_nothing``.
        """
        return in_lines(rules.provisioning_problems(self, provisioning, key="provisioning"))

    def cloudformation(
        self, *, execution_role_arn: str, lifecycle_source_s3_uri: str, count: float | None = None
    ) -> sagemaker.CfnCluster.ClusterInstanceGroupProperty:
        """Return the group as an element of ``InstanceGroups``.

        ``execution_role_arn``: ARN of the role of the nodes, if the group has none of its own.
        ``lifecycle_source_s3_uri``: ``s3://`` address of the folder of the lifecycle scripts. ``count``: number of
        nodes, or a token of one. Default: the group's own.
        """
        cfn = sagemaker.CfnCluster
        return cfn.ClusterInstanceGroupProperty(
            instance_group_name=self.name,
            instance_type=self.instance_type,
            instance_requirements=cfn.InstanceRequirementsProperty(instance_types=list(self.instance_types))
            if self.instance_types
            else None,
            instance_count=self.count if count is None else count,
            min_instance_count=self.min_count,
            execution_role=self.execution_role_arn or execution_role_arn,
            life_cycle_config=cfn.ClusterLifeCycleConfigProperty(
                source_s3_uri=lifecycle_source_s3_uri,
                on_create=self.script if self.on_init_complete is None else None,
                on_init_complete=self.on_init_complete,
            ),
            threads_per_core=self.resolved_threads_per_core,
            # although the cluster has its own network: that can never change, this belongs to the group
            override_vpc_config=None
            if self.cluster_network
            else cfn.VpcConfigProperty(
                security_group_ids=[id_of(group, "security_group_id") for group in self.security_groups],
                subnets=[id_of(self.subnet, "subnet_id")],
            ),
            instance_storage_configs=list(self._volumes()) or None,
            network_interface=cfn.ClusterNetworkInterfaceProperty(
                interface_type=hyperpod.NETWORK_INTERFACES[self.network_interface]
            )
            if self.network_interface
            else None,
            # OnDemand is the default of this property, which can never change. A training plan can be attached to a
            # group and detached: with an explicit OnDemand, the change from one to the other would be refused.
            capacity_requirements=cfn.ClusterCapacityRequirementsProperty(spot={}) if self.capacity == "spot" else None,
            training_plan_arn=self.training_plan_arn,
            on_start_deep_health_checks=[hyperpod.DEEP_HEALTH_CHECKS[check] for check in self.deep_health_checks]
            or None,
            image_id=self.ami_id,
            image_release_version=self.release_version,
            kubernetes_config=_kubernetes(self.labels, self.taints),
            scheduled_update_config=_scheduled(self.patching),
            auto_patch_config=_automatic(self.patching),
        )

    def _volumes(self) -> Iterator[sagemaker.CfnCluster.ClusterInstanceStorageConfigProperty]:
        cfn, key = sagemaker.CfnCluster, self.volume_kms_key_arn
        if self.volume_gib is not None:
            second = cfn.ClusterEbsVolumeConfigProperty(volume_size_in_gb=self.volume_gib, volume_kms_key_id=key)
            yield cfn.ClusterInstanceStorageConfigProperty(ebs_volume_config=second)
        if key is not None:
            # a root volume is listed only for its key: HyperPod fixes its size, and refuses the element without a key
            root = cfn.ClusterEbsVolumeConfigProperty(root_volume=True, volume_kms_key_id=key)
            yield cfn.ClusterInstanceStorageConfigProperty(ebs_volume_config=root)

    def autoscaling_problems(self) -> Iterator[str]:
        """Yield why HyperPod's Karpenter cannot scale this group."""
        return in_lines(rules.autoscaling_problems(self, self._known_types))

    def place_problems(self, *, region: str, account: str) -> Iterator[str]:
        """Yield what in this group belongs to another region or account than its stack.

        ``region``, ``account``: those of the stack; a token is not compared.
        """
        if self.availability_zone_id is not None and not is_token(self.availability_zone_id) and not is_token(region):
            problem = regions.az_id_problem(self.availability_zone_id, region=region)
            if problem:
                yield f"availability_zone_id {in_python(problem)}"
        here = {"region": "" if is_token(region) else region, "account": "" if is_token(account) else account}
        for name in self.types if here["region"] else ():
            if problem := rules.ultraserver_region_problem(name, region=region):
                yield f"{'instance_type' if self.instance_type else 'instance_types'} {in_python(problem)}"
        role = self.execution_role_arn
        if role is not None and not is_token(role) and here["account"] and here["region"]:
            of_region = regions.partition_of(region) or arns.arn_parts(role).partition
            key = "execution_role_arn"
            if problem := arns.home_problem("a role", role, partition=of_region, account=account, key=key):
                yield f"{key} {in_python(problem)}"
        plan = self.training_plan_arn
        if plan is not None and not is_token(plan):
            partition = (regions.partition_of(region) if here["region"] else None) or arns.arn_parts(plan).partition
            for problem in rules.plan_home_problems(
                plan, partition=partition, region=here["region"], account=here["account"]
            ):
                yield f"training_plan_arn {in_python(problem)}"

    def _known_types(self) -> list[catalog.InstanceType]:
        rows = (self._row(name) for name in self.types)
        return [row for row in rows if row is not None]

    def _row(self, name: str) -> catalog.InstanceType | None:
        return self.stated_types.get(name) or catalog.get(name)

    def _problems(self) -> Iterator[str]:
        found = [*value_flaws(self, fields.InstanceGroup), *self._own_flaws()]
        yield from in_lines(found)
        known = for_rules(self, [place for place, _ in found])
        yield from in_lines(rules.problems(known, self._known_types, certain=certain))

    def _own_flaws(self) -> Iterator[Flaw]:
        """Yield what is wrong with values that the file names otherwise, or has as sections."""
        yield from flaws(fields.Image, {"ami_id": self.ami_id, "release_version": self.release_version})
        yield from flaws(fields.ExistingGroup, {"execution_role_arn": self.execution_role_arn})
        for argument, problem in unlike(arns.KMS_KEY_ARN, volume_kms_key_arn=self.volume_kms_key_arn):
            yield (argument,), problem
        for index, name in enumerate(self.instance_types):
            if unknown := unknown_type_problem(name, key="instance_types", stated=self.stated_types):
                yield ("instance_types", index), unknown
        if too_many := hyperpod.TAINTS.count_problem(len(self.taints), what="taints"):
            yield ("taints",), too_many
        for index, taint in enumerate(self.taints):
            values = {"key": taint.key, "effect": taint.effect, "value": taint.value}
            yield from _below(("taints", index), flaws(fields.Taint, values))
        if self.patching is not None:
            yield from _below(("patching",), _patching_flaws(self.patching))


class _AnyGroup(Protocol):
    """What groups of both kinds have, restricted or not."""

    @property
    def instance_type(self) -> str | None: ...
    @property
    def security_groups(self) -> Sequence[ec2.ISecurityGroup]: ...
    @property
    def availability_zone_id(self) -> str | None: ...
    @property
    def stated_types(self) -> Mapping[str, catalog.InstanceType]: ...


def value_flaws(group: _AnyGroup, section: type[Section]) -> Iterator[Flaw]:
    """Yield what is wrong with values of a group of either kind, each by itself; ``section`` is that of its kind."""
    values = {name: getattr(group, name) for name in section.model_fields if name in _AS_IN_FILES}
    yield from flaws(section, values)
    if group.instance_type is not None:
        key = "instance_type"
        if problem := unknown_type_problem(group.instance_type, key=key, stated=group.stated_types):
            yield (key,), problem
    if problem := hyperpod.SECURITY_GROUPS.count_problem(len(group.security_groups), what="security groups"):
        yield ("security_groups",), problem
    zone = group.availability_zone_id
    if zone is not None and not is_token(zone):
        # the cluster compares the stack's region; the region of an AZ ID is in the ID
        region = zone[:-1] if regions.is_az_name(zone) else (regions.region_of_az_id(zone) or "")
        if problem := regions.az_id_problem(zone, region=region):
            yield ("availability_zone_id",), in_python(problem)


_AS_IN_FILES = frozenset(
    {
        "name",
        "instance_type",
        "instance_types",
        "count",
        "min_count",
        "availability_zone_id",
        "capacity",
        "training_plan_arn",
        "deep_health_checks",
        "threads_per_core",
        "network_interface",
        "volume_gib",
        "labels",
        "on_create",
        "on_init_complete",
    }
)
"""Arguments that are fields of the file's section too, of the same type."""


def _patching_flaws(patching: PatchingLike) -> Iterator[Flaw]:
    names = ("schedule", "strategy", "wait_seconds", "rollback_alarms")
    yield from flaws(fields.Patching, {name: getattr(patching, name) for name in names})
    for key, batch in (("max_batch", patching.max_batch), ("rollback_batch", patching.rollback_batch)):
        if batch is not None:
            sizes = {"instances": batch.instances, "percent": batch.percent}
            yield from _below((key,), flaws(fields.Batch, sizes))


def _below(place: DataPath, found: Iterator[Flaw]) -> Iterator[Flaw]:
    return (((*place, *below), problem) for below, problem in found)


def in_lines(found: Iterable[Flaw]) -> Iterator[str]:
    """Write each sentence after its place, in the words of a caller in Python."""
    return (f"{written(place)} {in_python(problem)}" for place, problem in found)


def _kubernetes(
    labels: Mapping[str, str], taints: Sequence[TaintLike]
) -> sagemaker.CfnCluster.ClusterKubernetesConfigProperty | None:
    if not labels and not taints:
        return None
    cfn = sagemaker.CfnCluster
    return cfn.ClusterKubernetesConfigProperty(
        labels=dict(sorted(labels.items())) or None,
        taints=[
            cfn.ClusterKubernetesTaintProperty(key=taint.key, value=taint.value, effect=taint.effect)
            for taint in taints
        ]
        or None,
    )


def _scheduled(patching: PatchingLike | None) -> sagemaker.CfnCluster.ScheduledUpdateConfigProperty | None:
    if patching is None or patching.schedule is None:
        return None
    return sagemaker.CfnCluster.ScheduledUpdateConfigProperty(
        schedule_expression=patching.schedule, deployment_config=_deployment(patching)
    )


def _deployment(patching: PatchingLike) -> sagemaker.CfnCluster.DeploymentConfigProperty | None:
    cfn = sagemaker.CfnCluster
    alarms = [cfn.AlarmDetailsProperty(alarm_name=name) for name in patching.rollback_alarms]
    rolling = None
    if patching.max_batch is not None:
        rolling = cfn.RollingUpdatePolicyProperty(
            maximum_batch_size=_batch(patching.max_batch),
            rollback_maximum_batch_size=_batch(patching.rollback_batch) if patching.rollback_batch else None,
        )
    if not (rolling or alarms or patching.wait_seconds):
        return None
    return cfn.DeploymentConfigProperty(
        rolling_update_policy=rolling,
        wait_interval_in_seconds=patching.wait_seconds,
        auto_rollback_configuration=alarms or None,
    )


def _automatic(patching: PatchingLike | None) -> sagemaker.CfnCluster.AutoPatchConfigProperty | None:
    if patching is None or patching.strategy is None:
        return None
    strategy = hyperpod.PATCHING_STRATEGIES[patching.strategy]
    return sagemaker.CfnCluster.AutoPatchConfigProperty(
        patching_strategy=strategy, deployment_config=_deployment(patching)
    )


def _batch(batch: BatchLike) -> sagemaker.CfnCluster.CapacitySizeConfigProperty:
    if batch.percent is not None:
        return sagemaker.CfnCluster.CapacitySizeConfigProperty(type="CAPACITY_PERCENTAGE", value=batch.percent)
    return sagemaker.CfnCluster.CapacitySizeConfigProperty(type="INSTANCE_COUNT", value=batch.instances or 1)
