"""The HyperPod cluster itself, orchestrated by EKS."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Literal

from aws_cdk import Annotations, CfnTag, Fn, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct, IDependable

from hyperpod_cdk.catalog import hyperpod
from hyperpod_cdk.catalog import instance_groups as rules
from hyperpod_cdk.catalog.rules import same_name_problem
from hyperpod_cdk.catalog.sentences import in_python
from hyperpod_cdk.common.acknowledgments import acknowledge, ignore_in_template
from hyperpod_cdk.common.removal import goes_with_its_stack
from hyperpod_cdk.common.stack_arns import id_of
from hyperpod_cdk.config.argument_types import judged
from hyperpod_cdk.config.arguments import is_token, problems, refuse_for, unlike
from hyperpod_cdk.config.environment import Environment
from hyperpod_cdk.config.hyperpod import HyperPod
from hyperpod_cdk.hyperpod.autoscaling import KarpenterAutoscaling
from hyperpod_cdk.hyperpod.execution_role import NodeExecutionRole
from hyperpod_cdk.hyperpod.instance_groups import InstanceGroup
from hyperpod_cdk.hyperpod.lifecycle import LifecycleScripts
from hyperpod_cdk.hyperpod.restricted_groups import RestrictedGroup, SharedEnvironment

_DEFAULT_AMI = "default"
_DEFAULT_IMAGE = "AWS::SageMaker::Cluster takes the word default for the image too, as its schema's pattern says"
_IN_CLUSTER_NETWORK = (
    "{} had no network of its own when the cluster was taken over, and HyperPod gives no group another one later"
)
_UNCHECKED = "they keep every new node from work for about two hours; deep_health_checks of the group decides"


@judged()
class HyperPodCluster(Construct):
    """A HyperPod cluster of instance groups, attached to one EKS cluster.

    It is created after the role's policies and the upload of the lifecycle scripts. The HyperPod chart, the rules of
    the security groups and the route tables must exist too: pass them to ``add_dependency``. A group that is removed
    from ``instance_groups``, or renamed there, is deleted with its nodes.

    It is deleted with its stack, and retained if an update replaces it.

    ``cluster_name`` (str): name of the cluster. Changing it replaces the cluster. Raises ValueError unless it is 1 to
    63 letters, digits and hyphens.

    ``eks_cluster_arn`` (str, ARN): the EKS cluster, with authentication mode API or API_AND_CONFIG_MAP. Changing it
    replaces the cluster. Raises ValueError for text that is not the ARN of an EKS cluster.

    ``vpc_subnets`` (Sequence[ec2.ISubnet]): subnets of the cluster's own network, 1 to 16. HyperPod never allows it to
    change, so pass one subnet that stays; in addition, each group has its own. Raises ValueError for none, and for
    more.

    ``security_groups`` (Sequence[ec2.ISecurityGroup]): security groups of the cluster's own network, 1 to 5, which
    never change either. Raises ValueError for none, and for more.

    ``instance_groups`` (Sequence[InstanceGroup]): the groups, emitted in the order of their names; at least one, unless
    there are restricted ones, and at most 100. Raises ValueError for another number, two groups with one name, a group
    of another region or account, and a group that ``provisioning`` or ``autoscaling`` excludes.

    ``execution_role`` (NodeExecutionRole): the execution role of all groups except the restricted ones.

    ``lifecycle`` (LifecycleScripts): the lifecycle scripts, with the ``on_create`` script of each group. Raises
    ValueError if a group's script is not in them.

    ``restricted_groups`` (Sequence[RestrictedGroup]): groups for the customization of Amazon Nova models, each with its
    own execution role. Default: none. Raises ValueError for more than 100, two groups with one name, a group of another
    region or account, and a group without a file system of its own or in ``shared_environment``.

    ``restricted_dependencies`` (IDependable | "installed"): the resource that installs the copies of the VPC CNI and
    CoreDNS for restricted nodes on the EKS cluster; the cluster depends on it. ``"installed"`` if HyperPod's
    install_rig_dependencies.sh has created them. Default: none, and restricted groups are refused. Raises ValueError
    for other text.

    ``shared_environment`` (SharedEnvironment): what restricted groups share. Default: nothing; then each has its own
    file system. Raises ValueError without restricted groups.

    ``node_recovery`` ("automatic" | "none"): ``automatic`` replaces or reboots faulty nodes, ``none`` only labels them.
    Default: ``automatic``. Raises ValueError for another value.

    ``provisioning`` ("continuous" | "all_or_nothing"): ``continuous`` starts with the available nodes and keeps trying;
    ``all_or_nothing`` rolls back unless all nodes join. Fixed at creation, as far as AWS documents it. Default:
    ``continuous``. Raises ValueError for another value.

    ``autoscaling`` (KarpenterAutoscaling): HyperPod's Karpenter adds and removes the nodes of every group whose
    ``count`` is 0; at least one group must have more, for add-ons and controllers. Not for groups with deep health
    checks or a training plan. Later deployments keep its counts. Default: none. Raises ValueError unless provisioning
    is ``continuous`` and node recovery ``automatic``, and unless there is a group of count 0 and one above 0.

    ``tiered_checkpointing_memory_percent`` (int, percent): share of each node's memory for checkpoints. Default:
    disabled. Raises ValueError unless it is 20 to 100.

    ``switched_off`` (Collection["autoscaling" | "tiered_checkpointing"]): features that an earlier deployment enabled:
    they are sent as disabled. AWS may keep a setting that is only left out, because UpdateCluster changes what the
    request contains. Default: none. Raises ValueError for another value, and for a feature that is enabled.

    ``tags`` (Mapping[str, str]): tags of the cluster, in addition to ``SageMaker=true``, which the training operator's
    policy requires. Default: none. Raises ValueError for a key or value that AWS refuses as a tag, and for more than 50
    tags in all.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        eks_cluster_arn: str,
        vpc_subnets: Sequence[ec2.ISubnet],
        security_groups: Sequence[ec2.ISecurityGroup],
        instance_groups: Sequence[InstanceGroup],
        execution_role: NodeExecutionRole,
        lifecycle: LifecycleScripts,
        restricted_groups: Sequence[RestrictedGroup] = (),
        restricted_dependencies: IDependable | Literal["installed"] | None = None,
        shared_environment: SharedEnvironment | None = None,
        node_recovery: Literal["automatic", "none"] = "automatic",
        provisioning: Literal["continuous", "all_or_nothing"] = "continuous",
        autoscaling: KarpenterAutoscaling | None = None,
        tiered_checkpointing_memory_percent: int | None = None,
        switched_off: Collection[Literal["autoscaling", "tiered_checkpointing"]] = (),
        tags: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        all_tags = {**(tags or {}), **hyperpod.REQUIRED_TAGS}
        switches = {
            "autoscaling": autoscaling is not None,
            "tiered_checkpointing": tiered_checkpointing_memory_percent is not None,
        }
        refuse_for(
            itertools.chain(
                (
                    f"{key}: {problem}"
                    for key, problem in unlike(hyperpod.EKS_CLUSTER_ARN, eks_cluster_arn=eks_cluster_arn)
                ),
                _problems(
                    stack=Stack.of(self),
                    cluster_name=cluster_name,
                    vpc_subnets=vpc_subnets,
                    security_groups=security_groups,
                    instance_groups=instance_groups,
                    restricted_groups=restricted_groups,
                    restricted_dependencies=restricted_dependencies,
                    shared_environment=shared_environment,
                    lifecycle=lifecycle,
                    node_recovery=node_recovery,
                    provisioning=provisioning,
                    tiered_checkpointing_memory_percent=tiered_checkpointing_memory_percent,
                    tags=all_tags,
                ),
                ()
                if autoscaling is None
                else _autoscaling_problems(instance_groups, node_recovery=node_recovery, provisioning=provisioning),
                _switch_problems(switched_off, switches),
            )
        )
        self._groups = sorted(instance_groups, key=lambda group: group.name)
        self._provisioning = provisioning
        self.cluster_name: str = cluster_name
        cfn = sagemaker.CfnCluster
        role_arn, source_s3_uri = execution_role.role.role_arn, lifecycle.source_s3_uri
        self.resource: sagemaker.CfnCluster = cfn(
            self,
            "Resource",
            cluster_name=cluster_name,
            orchestrator=cfn.OrchestratorProperty(
                eks=cfn.ClusterOrchestratorEksConfigProperty(cluster_arn=eks_cluster_arn)
            ),
            vpc_config=cfn.VpcConfigProperty(
                subnets=[id_of(subnet, "subnet_id") for subnet in vpc_subnets],
                security_group_ids=[id_of(group, "security_group_id") for group in security_groups],
            ),
            instance_groups=[
                group.cloudformation(execution_role_arn=role_arn, lifecycle_source_s3_uri=source_s3_uri)
                for group in self._groups
            ]
            or None,
            restricted_instance_groups=[
                group.cloudformation() for group in sorted(restricted_groups, key=lambda group: group.name)
            ]
            or None,
            restricted_instance_groups_config=shared_environment.cloudformation() if shared_environment else None,
            node_recovery=hyperpod.NODE_RECOVERY[node_recovery],
            node_provisioning_mode=hyperpod.PROVISIONING[provisioning],
            tiered_storage_config=_tiered_storage(
                tiered_checkpointing_memory_percent, is_off="tiered_checkpointing" in switched_off
            ),
            auto_scaling=cfn.ClusterAutoScalingConfigProperty(mode="Disable")
            if "autoscaling" in switched_off
            else None,
            tags=[CfnTag(key=key, value=value) for key, value in sorted(all_tags.items())],
        )
        if autoscaling is not None:
            self._autoscale(autoscaling, role_arn=role_arn, source_s3_uri=source_s3_uri)
        goes_with_its_stack(self.resource)
        self.cluster_arn: str = self.resource.attr_cluster_arn
        self.add_dependency(execution_role.policies, lifecycle.deployment)
        self.add_dependency(*(group.execution_role.policies for group in restricted_groups))
        if restricted_dependencies is not None and not isinstance(restricted_dependencies, str):
            self.add_dependency(restricted_dependencies)
        checked = [bool(each.deep_health_checks) for each in instance_groups]
        checked += [bool(each.deep_health_checks) for each in restricted_groups]
        if not all(checked):
            acknowledge(self.resource, {"hyperpod-cdk::deep-health-checks": _UNCHECKED})
        kept = [group.name for group in instance_groups if group.cluster_network]
        if kept:
            acknowledge(
                self.resource,
                {"hyperpod-cdk::instance-group-complete": _IN_CLUSTER_NETWORK.format(", ".join(kept))},
            )
        if any(group.ami_id == _DEFAULT_AMI for group in instance_groups):
            ignore_in_template(self.resource, {"E1152": _DEFAULT_IMAGE})
        warning = hyperpod.INSTANCE_GROUPS.count_warning(len(instance_groups), what="instance groups")
        if warning:
            Annotations.of(self).add_warning_v2("hyperpod-cdk:instance-groups", f"instance_groups {warning}")

    def _autoscale(self, autoscaling: KarpenterAutoscaling, *, role_arn: str, source_s3_uri: str) -> None:
        resource, scaled = self.resource, [group.name for group in self._groups if group.count == 0]
        counts = autoscaling.counts(
            cluster_name=self.cluster_name,
            groups=scaled,
            watched={
                "InstanceGroups": resource.instance_groups,
                "NodeRecovery": resource.node_recovery,
                "RestrictedInstanceGroups": resource.restricted_instance_groups,
                "RestrictedInstanceGroupsConfig": resource.restricted_instance_groups_config,
                "TieredStorageConfig": resource.tiered_storage_config,
                # a token, because tags may still come from the stack above
                "Tags": resource.cdk_tag_manager.rendered_tags,
            },
        )
        of_group = dict(zip(scaled, counts, strict=True))
        resource.instance_groups = [
            group.cloudformation(
                execution_role_arn=role_arn, lifecycle_source_s3_uri=source_s3_uri, count=of_group.get(group.name)
            )
            for group in self._groups
        ]
        resource.cluster_role = autoscaling.role.attr_arn
        resource.auto_scaling = autoscaling.properties
        autoscaling.wait_for(cluster_arn=resource.attr_cluster_arn)

    def add_dependency(self, *dependables: IDependable) -> None:
        """Create the cluster after ``dependables``: the HyperPod chart, rules of security groups, route tables."""
        self.resource.node.add_dependency(*dependables)

    @cached_property
    def cluster_id(self) -> str:
        """The last part of the cluster's ARN, which is in the names of its logs and Session Manager targets."""
        return Fn.select(1, Fn.split("/", self.cluster_arn))

    @property
    def log_group_name(self) -> str:
        """The CloudWatch log group of the nodes, with streams ``LifecycleConfig/<group>/<instance id>``."""
        return hyperpod.log_group(self.cluster_name, self.cluster_id)

    def ssm_target(self, group_name: str, instance_id: str = "<instance-id>") -> str:
        """Return the target for ``aws ssm start-session --target``.

        ``group_name``: name of an instance group of the cluster. ``instance_id``: ID of one of its nodes, such as
        ``i-0a1b2c3d4e5f67890``. Default: a placeholder to replace. Raises ValueError for an unknown group.
        """
        names = [group.name for group in self._groups]
        if group_name not in names:
            raise ValueError(
                f'group_name must be an instance group of the cluster, got "{group_name}"; '
                f"set group_name to one of {', '.join(names)}"
            )
        return f"sagemaker-cluster:{self.cluster_id}_{group_name}-{instance_id}"

    @property
    def events_command(self) -> str | None:
        """The command that lists the events of each node; None without continuous provisioning, which has events.

        With continuous provisioning the cluster is in service before its nodes are: only events show failures.
        """
        if self._provisioning != "continuous":
            return None
        region = Stack.of(self).region
        return f"aws sagemaker list-cluster-events --region {region} --cluster-name {self.cluster_name}"


def _tiered_storage(
    memory_percent: int | None, *, is_off: bool
) -> sagemaker.CfnCluster.TieredStorageConfigProperty | None:
    if is_off:
        return sagemaker.CfnCluster.TieredStorageConfigProperty(mode="Disable")
    if memory_percent is None:
        return None
    return sagemaker.CfnCluster.TieredStorageConfigProperty(
        mode="Enable", instance_memory_allocation_percentage=memory_percent
    )


def _problems(
    *,
    stack: Stack,
    cluster_name: str,
    vpc_subnets: Sequence[ec2.ISubnet],
    security_groups: Sequence[ec2.ISecurityGroup],
    instance_groups: Sequence[InstanceGroup],
    restricted_groups: Sequence[RestrictedGroup],
    restricted_dependencies: object,
    shared_environment: SharedEnvironment | None,
    lifecycle: LifecycleScripts,
    node_recovery: str,
    provisioning: str,
    tiered_checkpointing_memory_percent: int | None,
    tags: Mapping[str, str],
) -> Iterator[str]:
    if not is_token(cluster_name) and (problem := hyperpod.CLUSTER_NAME.problem(cluster_name, key="cluster_name")):
        yield f"cluster_name {in_python(problem)}"
    yield from problems(HyperPod, {"node_recovery": node_recovery, "provisioning": provisioning})
    for key, count, bound, what in (
        ("vpc_subnets", len(vpc_subnets), hyperpod.SUBNETS, "subnets"),
        ("security_groups", len(security_groups), hyperpod.SECURITY_GROUPS, "security groups"),
        *(
            (key, len(groups), hyperpod.INSTANCE_GROUPS, "instance groups")
            for key, groups in (("instance_groups", instance_groups), ("restricted_groups", restricted_groups))
            # one kind may be empty if the other is not
            if groups or (key == "instance_groups" and not restricted_groups)
        ),
    ):
        if problem := bound.count_problem(count, what=what):
            yield f"{key} {problem}"
    yield from problems(Environment, {"tags": {key: tags[key] for key in tags if key not in hyperpod.REQUIRED_TAGS}})
    percent, key = tiered_checkpointing_memory_percent, "tiered_checkpointing_memory_percent"
    if percent is not None and not is_token(percent):
        problem = hyperpod.TIERED_CHECKPOINTING_MEMORY_PERCENT.problem(percent, key=key)
        if problem:
            yield f"{key} {in_python(problem)}"
    yield from _group_problems(stack, instance_groups, lifecycle, provisioning)
    with_keys = [each.name for each in instance_groups if each.volume_kms_key_arn is not None]
    for name in with_keys if provisioning != "continuous" else ():
        problem = rules.volume_key_problem(provisioning)
        yield (
            f'instance group "{name}": volume_kms_key_arn {in_python(problem)}; set provisioning="continuous", or leave'
            " volume_kms_key_arn out"
        )
    if isinstance(restricted_dependencies, str) and restricted_dependencies != "installed":
        yield (
            'restricted_dependencies must be "installed" or the resource that installs them, got'
            f' "{restricted_dependencies}"; pass'
            ' "installed"'
        )
    if restricted_groups and restricted_dependencies is None:
        yield (
            "restricted_dependencies must say what installs copies of the VPC CNI and CoreDNS for restricted nodes on"
            " the"
            " EKS cluster before this one is created, got none; run HyperPod's install_rig_dependencies.sh there, then"
            ' pass "installed"'
        )
    taken = {group.name: f"instance_groups[{index}]" for index, group in enumerate(instance_groups)}
    yield from _restricted_problems(stack, restricted_groups, shared_environment, taken=taken)


def _restricted_problems(
    stack: Stack, groups: Sequence[RestrictedGroup], shared: SharedEnvironment | None, *, taken: Mapping[str, str]
) -> Iterator[str]:
    seen = dict(taken)
    for index, group in enumerate(groups):
        here = f"restricted_groups[{index}]"
        if group.name in seen:
            yield f"{here}.name {same_name_problem(group.name, seen[group.name])}"
        seen.setdefault(group.name, here)
        where = f'restricted instance group "{group.name}": '
        if group.lustre is None and shared is None:
            yield f"{where}lustre is missing, and there is no shared_environment; set lustre=ServiceLustre(...)"
        yield from (where + problem for problem in group.place_problems(region=stack.region, account=stack.account))
    if shared is not None and not groups:
        yield "shared_environment needs restricted_groups, got none; pass one or leave out shared_environment"


def _group_problems(
    stack: Stack, instance_groups: Sequence[InstanceGroup], lifecycle: LifecycleScripts, provisioning: str
) -> Iterator[str]:
    region, account = stack.region, stack.account
    seen: dict[str, str] = {}
    for index, group in enumerate(instance_groups):
        here = f"instance_groups[{index}]"
        if group.name in seen:
            yield f"{here}.name {same_name_problem(group.name, seen[group.name])}"
        seen.setdefault(group.name, here)
        where = f'instance group "{group.name}": '
        yield from (where + problem for problem in group.provisioning_problems(provisioning))
        yield from (where + problem for problem in group.place_problems(region=region, account=account))
        key = "on_create" if group.on_init_complete is None else "on_init_complete"
        if not is_token(group.script) and (problem := lifecycle.script_problem(group.script, key=key)):
            yield where + problem


def _switch_problems(switched_off: Collection[str], switches: Mapping[str, bool]) -> Iterator[str]:
    for name in sorted(set(switched_off) - set(switches)):
        yield f'switched_off must be autoscaling or tiered_checkpointing, got "{name}"; leave it out'
    for name, is_on in switches.items():
        if is_on and name in switched_off:
            yield f'switched_off must name what is disabled, got "{name}", which is enabled; leave it out'


def _autoscaling_problems(groups: Sequence[InstanceGroup], *, node_recovery: str, provisioning: str) -> Iterator[str]:
    way_out = "leave out autoscaling"
    needed = {"node_recovery": node_recovery, "provisioning": provisioning}
    for problem in rules.autoscaled_cluster_problems(**needed, of="", way_out=way_out):
        yield f"autoscaling {in_python(problem)}"
    if lacking := rules.autoscaled_counts_problem([group.count for group in groups], way_out=way_out):
        yield f"autoscaling {in_python(lacking)}"
    for group in groups:
        if group.count == 0:
            yield from (f'instance group "{group.name}": {unscaled}' for unscaled in group.autoscaling_problems())
