"""The HyperPod stack: lifecycle scripts, execution role and the cluster itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import aws_cdk as cdk
from constructs import Construct

from hyperpod_cdk import HyperPodCluster, InstanceGroup, LifecycleScripts, NodeExecutionRole
from hyperpod_cdk.config import Environment
from stacks.control_plane import ControlPlaneStack
from stacks.network import NetworkParts


class HyperPodStack(cdk.Stack):
    """`AWS::SageMaker::Cluster` with all its instance groups in plain sight, and what only it uses."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: Environment,
        network: NetworkParts,
        control_plane: ControlPlaneStack,
        lifecycle_scripts: Path | None,
        termination_protection: bool,
    ) -> None:
        super().__init__(scope, construct_id, termination_protection=termination_protection)
        hyperpod = environment.hyperpod
        # a cluster that outlives its stack costs money until somebody finds it: see docs/decisions/0003
        removal_policy = (
            cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE
            if environment.deletion_protection
            else cdk.RemovalPolicy.DESTROY
        )
        subnets = network.network.node_subnets
        security_groups = network.node_security_groups
        lifecycle = LifecycleScripts(
            self,
            "LifecycleScripts",
            directory=lifecycle_scripts,
            name=environment.name,
        )
        role = NodeExecutionRole(
            self,
            "ExecutionRole",
            bucket=lifecycle.bucket,
            cluster_arn=control_plane.cluster.cluster_arn,
            vpc=network.network.vpc,
            subnets=list(subnets.values()),
            security_groups=security_groups,
            removal_policy=removal_policy,
        )
        stated = {name: row.as_catalog_row(name) for name, row in environment.instance_types.items()}
        first_zone = environment.network.zone_ids()[0]
        self.cluster = HyperPodCluster(
            self,
            "Cluster",
            cluster_name=environment.hyperpod_cluster_name,
            eks_cluster_arn=control_plane.cluster.cluster_arn,
            vpc_subnets=[subnets[first_zone]],
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
                    labels=group.labels,
                    taints=group.taints,
                    ami_id=group.image.ami_id,
                    release_version=group.image.release_version,
                    patching=group.patching,
                    on_create=group.on_create,
                    stated_types=stated,
                )
                for group in hyperpod.instance_groups
            ],
            execution_role=role,
            lifecycle=lifecycle,
            node_recovery=hyperpod.node_recovery,
            provisioning=hyperpod.provisioning,
            tiered_checkpointing_memory_percent=(
                hyperpod.tiered_checkpointing.memory_percent if hyperpod.tiered_checkpointing else None
            ),
            tags=environment.tags,
            removal_policy=removal_policy,
        )
        self._outputs([group.name for group in hyperpod.instance_groups])

    def _outputs(self, groups: Sequence[str]) -> None:
        cluster = self.cluster
        cdk.CfnOutput(
            self, "NodeLogGroup", description="Where the lifecycle scripts of nodes log", value=cluster.log_group_name
        )
        if cluster.events_command is not None:
            cdk.CfnOutput(self, "Events", description="What became of each node", value=cluster.events_command)
        for name in sorted(groups):
            # below the cluster: there an id gets a hash, and the groups a-b and ab an output each
            cdk.CfnOutput(
                cluster,
                f"SsmTarget-{name}",
                description=f"A node of {name}, for 'aws ssm start-session --target'",
                value=cluster.ssm_target(name),
            )
