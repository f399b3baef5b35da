"""The HyperPod cluster itself, orchestrated by EKS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from aws_cdk import Annotations, CfnTag, Fn, RemovalPolicy, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct, IDependable

from hyperpod_cdk.catalog import hyperpod
from hyperpod_cdk.execution_role import NodeExecutionRole
from hyperpod_cdk.instance_groups import InstanceGroup, is_token
from hyperpod_cdk.lifecycle import LifecycleScripts


class HyperPodCluster(Construct):
    """A HyperPod cluster of instance groups, attached to one EKS cluster.

    It is made after the role's policies and the upload of the lifecycle scripts. The HyperPod chart, the rules of
    the security groups and the route tables must be there too: pass them to ``add_dependency``. A group that is
    gone from ``instance_groups``, or renamed there, is deleted with its nodes.

    ``cluster_name``: 1 to 63 letters, digits and hyphens. Changing it replaces the cluster.

    ``eks_cluster_arn``: the EKS cluster, with authentication mode API or API_AND_CONFIG_MAP. Changing it replaces
    the cluster.

    ``vpc_subnets``, ``security_groups``: the cluster's own network. HyperPod never lets it change, so pass one
    subnet that stays; each group has its own besides.

    ``instance_groups``: at least one; emitted in the order of their names.

    ``execution_role``: of all groups.

    ``lifecycle``: holds the ``on_create`` script of each group.

    ``node_recovery``: ``automatic`` replaces or reboots faulty nodes, ``none`` only labels them.

    ``provisioning``: ``continuous`` starts with the nodes there are and goes on trying; ``all_or_nothing`` rolls
    back unless all come up. Fixed at creation, as far as AWS documents it.

    ``tiered_checkpointing_memory_percent``: share of each node's memory for checkpoints, 20 to 100. Default: off.

    ``tags``: of the cluster, besides ``SageMaker=true``, which the training operator's policy asks for.

    ``removal_policy``: what becomes of the cluster when the stack is deleted or the cluster replaced. Default: it
    stays, unless the very deployment that makes it fails, so that the next one does not meet its name.
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
        node_recovery: Literal["automatic", "none"] = "automatic",
        provisioning: Literal["continuous", "all_or_nothing"] = "continuous",
        tiered_checkpointing_memory_percent: int | None = None,
        tags: Mapping[str, str] | None = None,
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    ) -> None:
        super().__init__(scope, construct_id)
        all_tags = {**(tags or {}), **hyperpod.REQUIRED_TAGS}
        problem = next(
            _problems(
                stack=Stack.of(self),
                cluster_name=cluster_name,
                vpc_subnets=vpc_subnets,
                security_groups=security_groups,
                instance_groups=instance_groups,
                lifecycle=lifecycle,
                node_recovery=node_recovery,
                provisioning=provisioning,
                tiered_checkpointing_memory_percent=tiered_checkpointing_memory_percent,
                tags=all_tags,
            ),
            None,
        )
        if problem:
            raise ValueError(problem)
        self._groups = sorted(instance_groups, key=lambda group: group.name)
        self._provisioning = provisioning
        self.cluster_name = cluster_name
        cfn = sagemaker.CfnCluster
        role_arn, source_s3_uri = execution_role.role.role_arn, lifecycle.source_s3_uri
        self.resource = cfn(
            self,
            "Resource",
            cluster_name=cluster_name,
            orchestrator=cfn.OrchestratorProperty(
                eks=cfn.ClusterOrchestratorEksConfigProperty(cluster_arn=eks_cluster_arn)
            ),
            vpc_config=cfn.VpcConfigProperty(
                subnets=[subnet.subnet_id for subnet in vpc_subnets],
                security_group_ids=[group.security_group_id for group in security_groups],
            ),
            instance_groups=[
                group.cloudformation(execution_role_arn=role_arn, lifecycle_source_s3_uri=source_s3_uri)
                for group in self._groups
            ],
            node_recovery=hyperpod.NODE_RECOVERY[node_recovery],
            node_provisioning_mode=hyperpod.PROVISIONING[provisioning],
            tiered_storage_config=None
            if tiered_checkpointing_memory_percent is None
            else cfn.TieredStorageConfigProperty(
                mode="Enable", instance_memory_allocation_percentage=tiered_checkpointing_memory_percent
            ),
            tags=[CfnTag(key=key, value=value) for key, value in sorted(all_tags.items())],
        )
        self.resource.apply_removal_policy(removal_policy)
        self.cluster_arn = self.resource.attr_cluster_arn
        self.add_dependency(execution_role.policies, lifecycle.deployment)
        warning = hyperpod.INSTANCE_GROUPS.count_warning(len(instance_groups), what="instance groups")
        if warning:
            Annotations.of(self).add_warning_v2("hyperpod-cdk:instance-groups", f"instance_groups {warning}")

    def add_dependency(self, *dependables: IDependable) -> None:
        """Make the cluster after ``dependables``: the HyperPod chart, rules of security groups, route tables."""
        self.resource.node.add_dependency(*dependables)

    @property
    def cluster_id(self) -> str:
        """The last part of the cluster's ARN, which names its logs and Session Manager targets."""
        return Fn.select(1, Fn.split("/", self.cluster_arn))

    @property
    def log_group_name(self) -> str:
        """The CloudWatch log group in which nodes log, with streams ``LifecycleConfig/<group>/<instance id>``."""
        return f"/aws/sagemaker/Clusters/{self.cluster_name}/{self.cluster_id}"

    def ssm_target(self, group_name: str, instance_id: str = "<instance-id>") -> str:
        """Give the target for ``aws ssm start-session --target``; raises ValueError for an unknown group."""
        names = [group.name for group in self._groups]
        if group_name not in names:
            raise ValueError(
                f'group_name must be an instance group of the cluster, got "{group_name}"; '
                f"set group_name to one of {', '.join(names)}"
            )
        return f"sagemaker-cluster:{self.cluster_id}_{group_name}-{instance_id}"

    @property
    def events_command(self) -> str | None:
        """The command that lists what became of each node; None without continuous provisioning, which has no events.

        With continuous provisioning the cluster is in service before its nodes are: failures show up here only.
        """
        if self._provisioning != "continuous":
            return None
        region = Stack.of(self).region
        return f"aws sagemaker list-cluster-events --region {region} --cluster-name {self.cluster_name}"


def _problems(
    *,
    stack: Stack,
    cluster_name: str,
    vpc_subnets: Sequence[ec2.ISubnet],
    security_groups: Sequence[ec2.ISecurityGroup],
    instance_groups: Sequence[InstanceGroup],
    lifecycle: LifecycleScripts,
    node_recovery: str,
    provisioning: str,
    tiered_checkpointing_memory_percent: int | None,
    tags: Mapping[str, str],
) -> Iterator[str]:
    if not is_token(cluster_name) and (problem := hyperpod.CLUSTER_NAME.problem(cluster_name, key="cluster_name")):
        yield f"cluster_name {problem}"
    for key, value, choices in (
        ("node_recovery", node_recovery, tuple(hyperpod.NODE_RECOVERY)),
        ("provisioning", provisioning, tuple(hyperpod.PROVISIONING)),
    ):
        if value not in choices:
            yield f'{key} must be one of {", ".join(choices)}, got "{value}"; set {key} to one of these'
    for key, count, bound, what in (
        ("vpc_subnets", len(vpc_subnets), hyperpod.SUBNETS, "subnets"),
        ("security_groups", len(security_groups), hyperpod.SECURITY_GROUPS, "security groups"),
        ("instance_groups", len(instance_groups), hyperpod.INSTANCE_GROUPS, "instance groups"),
        ("tags", len(tags), hyperpod.TAGS, "tags (SageMaker=true is one of them)"),
    ):
        if problem := bound.count_problem(count, what=what):
            yield f"{key} {problem}"
    percent, key = tiered_checkpointing_memory_percent, "tiered_checkpointing_memory_percent"
    if percent is not None and not is_token(percent):
        problem = hyperpod.TIERED_CHECKPOINTING_MEMORY_PERCENT.problem(percent, key=key)
        if problem:
            yield f"{key} {problem}"
    yield from _group_problems(stack, instance_groups, lifecycle, provisioning)


def _group_problems(
    stack: Stack, instance_groups: Sequence[InstanceGroup], lifecycle: LifecycleScripts, provisioning: str
) -> Iterator[str]:
    region, account = stack.region, stack.account
    seen: set[str] = set()
    for group in instance_groups:
        if group.name in seen:
            yield f'instance_groups must not repeat a name, got "{group.name}" twice; rename one'
        seen.add(group.name)
        where = f'instance group "{group.name}": '
        if provisioning != "continuous" and group.needs_continuous:
            yield (
                f'{where}{group.needs_continuous} needs continuous provisioning, got provisioning="{provisioning}"; '
                'set provisioning="continuous"'
            )
        if problem := group.region_problem(region=region, account=account):
            yield where + problem
        if not is_token(group.on_create) and (problem := lifecycle.script_problem(group.on_create)):
            yield where + problem
