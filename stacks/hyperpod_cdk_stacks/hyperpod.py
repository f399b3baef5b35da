"""The HyperPod stack: the cluster, and resources that only the cluster uses."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from hyperpod_cdk import (
    HyperPodCluster,
    InstanceGroup,
    KarpenterAutoscaling,
    NodeExecutionRole,
    NodeWaiter,
    RestrictedExecutionRole,
    RestrictedGroup,
    ServiceLustre,
    SharedEnvironment,
    config,
)
from hyperpod_cdk.common.stack_arns import arn_here
from hyperpod_cdk.config import Environment
from hyperpod_cdk.config.environment import PLATFORM, stack_name
from hyperpod_cdk.config.operators import CREATE
from hyperpod_cdk_stacks.exports import export_always
from hyperpod_cdk_stacks.foundation import FoundationStack


class HyperPodStack(cdk.Stack):
    """`AWS::SageMaker::Cluster` with all its instance groups, and resources that only the cluster uses.

    ``environment`` (Environment): the environment, as its file describes it.

    ``foundation`` (FoundationStack): the stack with the network, the EKS cluster and the roles.

    ``termination_protection`` (bool): whether CloudFormation refuses to delete the stack.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: Environment,
        foundation: FoundationStack,
        termination_protection: bool,
    ) -> None:
        super().__init__(scope, construct_id, termination_protection=termination_protection)
        hyperpod = environment.hyperpod
        subnets = foundation.network.network.node_subnets
        security_groups = foundation.network.node_security_groups
        volume_key_arn = foundation.volume_key.key.key_arn if foundation.volume_key else None
        self.autoscaling = None
        if hyperpod.autoscaling == "karpenter":
            self.autoscaling = KarpenterAutoscaling(
                self,
                "Autoscaling",
                kms_key_arns=[volume_key_arn] if volume_key_arn else [],
            )
        # in parallel with the cluster, so that it exists before anything waits for nodes
        self.node_waiter = NodeWaiter(self, "NodeWaiter", stack_names=[stack_name(environment.name, PLATFORM)])
        stated = environment.stated_types
        existing = environment.network.existing
        named = () if existing is None else existing.cluster_subnet_ids
        own_subnets: Sequence[ec2.ISubnet] = [
            ec2.Subnet.from_subnet_id(self, f"ClusterSubnet{number}", subnet) for number, subnet in enumerate(named, 1)
        ] or [subnets[environment.network.zone_ids()[0]]]
        self.cluster = HyperPodCluster(
            self,
            "Cluster",
            cluster_name=environment.hyperpod_cluster_name,
            eks_cluster_arn=foundation.cluster.cluster_arn,
            vpc_subnets=own_subnets,
            security_groups=security_groups,
            instance_groups=[
                InstanceGroup(
                    name=group.name,
                    instance_type=group.instance_type,
                    instance_types=group.instance_types,
                    count=group.count,
                    min_count=group.min_count,
                    availability_zone_id=group.availability_zone_id,
                    subnet=subnets[group.availability_zone_id],
                    security_groups=security_groups,
                    capacity=group.resolved_capacity,
                    training_plan_arn=group.training_plan_arn,
                    deep_health_checks=group.deep_health_checks,
                    threads_per_core=environment.threads_per_core(group),
                    volume_gib=group.volume_gib,
                    volume_kms_key_arn=volume_key_arn,
                    labels=group.labels,
                    taints=group.taints,
                    ami_id=group.image.ami_id,
                    release_version=group.image.release_version,
                    patching=group.patching,
                    network_interface=group.network_interface,
                    on_create=group.on_create,
                    on_init_complete=group.on_init_complete,
                    execution_role_arn=group.execution_role_arn,
                    cluster_network=group.is_in_cluster_network,
                    stated_types=stated,
                )
                for group in hyperpod.instance_groups
            ],
            execution_role=foundation.execution_role,
            lifecycle=foundation.lifecycle,
            restricted_groups=[
                _restricted_group(
                    group,
                    environment=environment,
                    foundation=foundation,
                    execution_role=self._restricted_role(group, environment, foundation),
                )
                for group in hyperpod.restricted_instance_groups
            ],
            restricted_dependencies=hyperpod.restricted_dependencies,
            shared_environment=_shared(hyperpod.restricted_environment),
            node_recovery=hyperpod.node_recovery,
            provisioning=hyperpod.provisioning,
            autoscaling=self.autoscaling,
            tiered_checkpointing_memory_percent=(
                hyperpod.tiered_checkpointing.memory_percent
                if hyperpod.tiered_checkpointing and hyperpod.checkpoints_in_memory
                else None
            ),
            switched_off=hyperpod.switched_off,
            tags=environment.tags,
        )
        # without any node for add-ons, the platform stack does not wait for nodes, and is updated after this one
        export_always(self, self.cluster.cluster_arn, self.node_waiter.service_token)
        self._outputs([group.name for group in hyperpod.instance_groups])

    def _restricted_role(
        self, group: config.RestrictedGroup, environment: Environment, foundation: FoundationStack
    ) -> RestrictedExecutionRole:
        """Return the role of a restricted group; it is in this stack so that both are removed together."""
        network, observability = foundation.network, environment.operators.observability
        workspace = observability.prometheus_workspace
        if workspace == CREATE:
            # it is created in a later stack
            workspace = arn_here("aps", "workspace/*")
        return RestrictedExecutionRole(
            self,
            f"RestrictedRole-{group.name}",
            node_role=NodeExecutionRole(
                self,
                f"RestrictedNodeRole-{group.name}",
                bucket=foundation.lifecycle.bucket,
                eks_cluster_arn=foundation.eks_cluster_arn,
                vpc=network.network.vpc,
                subnets=[network.network.node_subnets[group.availability_zone_id]],
                security_groups=network.node_security_groups,
            ),
            prometheus_workspace_arn=workspace if observability.enabled else None,
            input_buckets=group.input_buckets,
            output_buckets=group.output_buckets,
            reward_functions=group.reward_functions,
            kms_key_arns=group.kms_key_arns,
        )

    def _outputs(self, groups: Sequence[str]) -> None:
        cluster = self.cluster
        cdk.CfnOutput(
            self, "NodeLogGroup", description="Log group of the nodes' lifecycle scripts", value=cluster.log_group_name
        )
        if cluster.events_command is not None:
            cdk.CfnOutput(self, "Events", description="Command that lists node events", value=cluster.events_command)
        for name in sorted(groups):
            # below the cluster, where IDs have a hash, so that the groups a-b and ab have separate outputs
            cdk.CfnOutput(
                cluster,
                f"SsmTarget-{name}",
                description=f"A node of {name}, for 'aws ssm start-session --target'",
                value=cluster.ssm_target(name),
            )


def _restricted_group(
    group: config.RestrictedGroup,
    *,
    environment: Environment,
    foundation: FoundationStack,
    execution_role: RestrictedExecutionRole,
) -> RestrictedGroup:
    return RestrictedGroup(
        name=group.name,
        instance_type=group.instance_type,
        count=group.count,
        availability_zone_id=group.availability_zone_id,
        subnet=foundation.network.network.node_subnets[group.availability_zone_id],
        security_groups=foundation.network.node_security_groups,
        execution_role=execution_role,
        lustre=_service_lustre(group.lustre) if group.lustre else None,
        capacity=group.resolved_capacity,
        training_plan_arn=group.training_plan_arn,
        deep_health_checks=group.deep_health_checks,
        threads_per_core=environment.threads_per_core(group),
        volume_gib=group.volume_gib,
        stated_types=environment.stated_types,
    )


def _shared(environment: config.RestrictedEnvironment | None) -> SharedEnvironment | None:
    if environment is None:
        return None
    return SharedEnvironment(lustre=_service_lustre(environment.lustre), when_unused=environment.when_unused)


def _service_lustre(system: config.RestrictedLustre) -> ServiceLustre:
    return ServiceLustre(capacity_gib=system.capacity_gib, throughput_mbps_per_tib=system.throughput_mbps_per_tib)
