"""The HyperPod stack: lifecycle scripts, execution role and the cluster itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_s3 as s3
from constructs import Construct

from hyperpod_cdk import (
    EncryptionKey,
    HyperPodCluster,
    InstanceGroup,
    KarpenterAutoscaling,
    LifecycleScripts,
    NodeExecutionRole,
    RestrictedExecutionRole,
    RestrictedGroup,
    ServiceLustre,
    SharedEnvironment,
    config,
)
from hyperpod_cdk.config import Environment
from stacks.control_plane import ControlPlaneStack
from stacks.encryption import encryption_key
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
        lifecycle = self._lifecycle(environment, lifecycle_scripts)
        volume_key = encryption_key(self, environment, "node_volumes")
        role = NodeExecutionRole(
            self,
            "ExecutionRole",
            bucket=lifecycle.bucket,
            cluster_arn=control_plane.cluster.cluster_arn,
            vpc=network.network.vpc,
            subnets=list(subnets.values()),
            security_groups=security_groups,
            volume_key=volume_key.key if volume_key else None,
            removal_policy=removal_policy,
        )
        if volume_key is not None:
            volume_key.allow_node_volumes(role.role.role_arn)
        self.autoscaling = None
        if hyperpod.autoscaling == "karpenter":
            self.autoscaling = KarpenterAutoscaling(
                self,
                "Autoscaling",
                encryption_key_arns=[volume_key.key.key_arn] if volume_key else [],
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
                    volume_kms_key_arn=volume_key.key.key_arn if volume_key else None,
                    labels=group.labels,
                    taints=group.taints,
                    ami_id=group.image.ami_id,
                    release_version=group.image.release_version,
                    patching=group.patching,
                    network_interface=group.network_interface,
                    on_create=group.script[1],
                    on_init_complete=group.on_init_complete,
                    stated_types=stated,
                )
                for group in hyperpod.instance_groups
            ],
            execution_role=role,
            lifecycle=lifecycle,
            restricted_groups=[
                self._restricted_group(
                    group,
                    environment=environment,
                    network=network,
                    cluster_arn=control_plane.cluster.cluster_arn,
                    lifecycle=lifecycle,
                    volume_key=volume_key,
                    removal_policy=removal_policy,
                )
                for group in hyperpod.restricted_instance_groups
            ],
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
            removal_policy=removal_policy,
        )
        self._outputs([group.name for group in hyperpod.instance_groups])

    def _lifecycle(self, environment: Environment, directory: Path | None) -> LifecycleScripts:
        existing = environment.hyperpod.lifecycle.existing_bucket
        if existing is None:
            # the bucket stays after a first deployment that failed, and so does its key
            key = encryption_key(self, environment, "lifecycle_bucket", removal_policy=cdk.RemovalPolicy.RETAIN)
            return LifecycleScripts(
                self,
                "LifecycleScripts",
                directory=directory,
                encryption_key=key.key if key else None,
                name=environment.name,
            )
        arn = existing.kms_key_arn
        bucket = s3.Bucket.from_bucket_attributes(
            self,
            "ExistingBucket",
            bucket_name=existing.name,
            encryption_key=EncryptionKey(self, "ExistingBucketKey", arn=arn).key if arn else None,
        )
        return LifecycleScripts(self, "LifecycleScripts", directory=directory, bucket=bucket, prefix=existing.prefix)

    def _restricted_group(
        self,
        group: config.RestrictedGroup,
        *,
        environment: Environment,
        network: NetworkParts,
        cluster_arn: str,
        lifecycle: LifecycleScripts,
        volume_key: EncryptionKey | None,
        removal_policy: cdk.RemovalPolicy,
    ) -> RestrictedGroup:
        subnet = network.network.node_subnets[group.availability_zone_id]
        node_role = NodeExecutionRole(
            self,
            f"RestrictedNodeRole-{group.name}",
            bucket=lifecycle.bucket,
            cluster_arn=cluster_arn,
            vpc=network.network.vpc,
            subnets=[subnet],
            security_groups=network.node_security_groups,
            volume_key=volume_key.key if volume_key else None,
            removal_policy=removal_policy,
        )
        if volume_key is not None:
            volume_key.allow_node_volumes(node_role.role.role_arn)
        return RestrictedGroup(
            name=group.name,
            instance_type=group.instance_type,
            count=group.count,
            availability_zone_id=group.availability_zone_id,
            subnet=subnet,
            security_groups=network.node_security_groups,
            execution_role=RestrictedExecutionRole(
                self,
                f"RestrictedRole-{group.name}",
                node_role=node_role,
                input_buckets=group.input_buckets,
                output_buckets=group.output_buckets,
                reward_functions=group.reward_functions,
                kms_key_arns=group.kms_key_arns,
                removal_policy=removal_policy,
            ),
            lustre=_service_lustre(group.lustre) if group.lustre else None,
            capacity=group.resolved_capacity,
            training_plan_arn=group.training_plan_arn,
            deep_health_checks=group.deep_health_checks,
            threads_per_core=environment.threads_per_core(group),
            volume_gib=group.volume_gib,
            volume_kms_key_arn=volume_key.key.key_arn if volume_key else None,
            stated_types={name: row.as_catalog_row(name) for name, row in environment.instance_types.items()},
        )

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


def _shared(environment: config.RestrictedEnvironment | None) -> SharedEnvironment | None:
    if environment is None:
        return None
    return SharedEnvironment(lustre=_service_lustre(environment.lustre), when_unused=environment.when_unused)


def _service_lustre(system: config.RestrictedLustre) -> ServiceLustre:
    return ServiceLustre(capacity_gib=system.capacity_gib, throughput_mbps_per_tib=system.throughput_mbps_per_tib)
