"""The foundation stack: what the HyperPod cluster needs, from the quota gate to the nodes' roles and scripts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_s3 as s3
from constructs import Construct

from hyperpod_cdk import (
    ControlPlane,
    DeletionProtectionFunction,
    EncryptionKey,
    ExistingControlPlane,
    HyperPodChart,
    HyperPodDependencies,
    LifecycleScripts,
    Network,
    NodeExecutionRole,
    QuotaGate,
)
from hyperpod_cdk.common.stack_arns import HERE, id_of
from hyperpod_cdk.config import Environment, judged_by, lustre_clients
from hyperpod_cdk.config.encryption import key_arn
from hyperpod_cdk.config.environment import FOUNDATION, STACKS
from hyperpod_cdk.eks.control_plane import OidcProvider
from hyperpod_cdk.hyperpod.lifecycle import bucket_name
from hyperpod_cdk.quotas.needs import own, required_quotas
from hyperpod_cdk_stacks.encryption import encryption_key
from hyperpod_cdk_stacks.exports import export_always
from hyperpod_cdk_stacks.network import network_parts

PROTECTED = tuple(stack for stack in STACKS if stack != FOUNDATION)
"""The stacks with termination protection if ``deletion_protection`` is set.

They import from the foundation, so it cannot be deleted before them.
"""

_BUCKET_NAME = "ExportsOutputRefLifecycleScriptsBucketBB67840B3C5C0C35"
_BUCKET_ARN = "ExportsOutputFnGetAttLifecycleScriptsBucketBB67840BArn6FC9BD90"
"""The outputs with which CDK exports the bucket of this stack to other stacks; a test checks the names."""


class FoundationStack(cdk.Stack):
    """Network, EKS with the chart, scripts and roles: everything before the first node is requested.

    It is one stack, so that resources only wait for what they need (docs/decisions/0015-one-foundation.md). The quota
    gate runs while EKS's own prerequisites are created, which are quick and free; everything else waits for it.

    It has no termination protection: the HyperPod stack imports its exports, so that CloudFormation refuses to delete
    it while there is a cluster, and the next ``cdk deploy`` deletes a first creation that failed.

    ``environment`` (Environment): the environment, as its file describes it.

    ``chart`` (HyperPodChart): the HyperPod chart to install.

    ``lifecycle_scripts`` (Path | None): folder of the project's lifecycle scripts; None for the library's own.

    ``lifecycle_steps`` (Sequence[Path]): scripts that extensions add to those of the folder. Default: none.

    ``reviewed_by`` (str): name and SHA-256 of each file that reviews of the environment use, an output of the stack.
    Default: empty, none.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: Environment,
        chart: HyperPodChart,
        lifecycle_scripts: Path | None,
        lifecycle_steps: Sequence[Path] = (),
        reviewed_by: str = "",
    ) -> None:
        super().__init__(scope, construct_id)
        self._environment = environment
        self.gate = self._quota_gate()
        self.network = network_parts(self, environment)
        self.control_plane = self._control_plane()
        self.cluster = self.control_plane.cluster
        self._chart(chart)
        self.lifecycle = self._lifecycle(lifecycle_scripts, lifecycle_steps)
        self.volume_key = encryption_key(self, environment, "node_volumes")
        self.protection = DeletionProtectionFunction(
            self,
            "DeletionProtection",
            stack_names=[f"{environment.name}-{name}" for name in PROTECTED],
            eks_cluster_name=None if environment.eks.existing else environment.eks_cluster_name,
        )
        self.execution_role = self._node_role()
        if self.gate is not None:
            self._hold(self.gate)
        # if the gate refuses the first deployment, its log remains, and so does the key of the log
        self.log_key = encryption_key(self, environment, "logs", removal_policy=cdk.RemovalPolicy.RETAIN)
        if self.log_key is not None:
            self.log_key.allow_log_groups()
        self._exports()
        cdk.CfnOutput(
            self,
            "UpdateKubeconfig",
            description=_who_may_enter(environment),
            value=f"aws eks update-kubeconfig --region {self.region} --name {environment.eks_cluster_name}",
        )
        if reviewed_by:
            said = "SHA-256 of the files by which reviews are judged, as they were at this deployment"
            cdk.CfnOutput(self, judged_by.OUTPUT, value=reviewed_by, description=said)

    def _quota_gate(self) -> QuotaGate | None:
        environment = self._environment
        requirements = required_quotas(environment)
        if environment.quota_check == "off" or not requirements:
            return None
        gate = QuotaGate(
            self,
            "QuotaGate",
            requirements=requirements,
            mode=environment.quota_check,
            own=own(environment),
            environment_name=environment.name,
            makes=nodes_made(environment),
        )
        cdk.CfnOutput(self, "QuotaFindings", value=gate.findings, description="Quotas that do not suffice, or may not")
        cdk.CfnOutput(self, "QuotasSkipped", value=gate.skipped, description="Quotas that could not be compared")
        return gate

    def _hold(self, gate: QuotaGate) -> None:
        """Let everything wait for the gate except EKS's prerequisites, which are quick, free and rolled back."""
        network = self.network.network
        beside = [network, *self.network.made_groups]
        if isinstance(self.control_plane, ControlPlane):
            beside += self.control_plane.prerequisites
        gate.before(self, beside=beside)
        if isinstance(network, Network):
            gate.before(*network.billed)

    def _control_plane(self) -> ControlPlane | ExistingControlPlane:
        environment, parts = self._environment, self.network
        section, existing = environment.eks, environment.eks.existing
        secrets_arn = key_arn(environment.encryption.eks_secrets)
        if existing is None or parts.eks_security_group is None:
            return ControlPlane(
                self,
                "ControlPlane",
                vpc=parts.network.vpc,
                subnets=parts.network.control_plane_subnets,
                eks_cluster_name=environment.eks_cluster_name,
                kubernetes_version=section.kubernetes_version,
                security_group=parts.security_group,
                endpoint_access=section.endpoint_access,
                public_access_cidrs=section.public_access_cidrs,
                service_ipv4_cidr=section.service_ipv4_cidr,
                support_type=section.support_type,
                scaling_tier=section.scaling_tier,
                zonal_shift=section.zonal_shift,
                admin_role_arns=section.admin_role_arns,
                addon_versions=section.addon_versions,
                oidc_provider=section.oidc_provider,
                log_group_tags=environment.tags,
                secrets_key=EncryptionKey(self, "EksSecretsKey", arn=secrets_arn).key if secrets_arn else None,
            )
        return ExistingControlPlane(
            self,
            "ControlPlane",
            vpc=parts.network.vpc,
            subnets=parts.network.control_plane_subnets,
            eks_cluster_name=existing.cluster_name,
            kubernetes_version=section.kubernetes_version,
            security_group=parts.eks_security_group,
            oidc_provider_arn=existing.oidc_provider_arn,
            kubectl_role_arn=existing.kubectl_role_arn,
            admin_role_arns=section.admin_role_arns,
        )

    def _chart(self, chart: HyperPodChart) -> HyperPodDependencies:
        environment = self._environment
        names = {name for group in environment.hyperpod.all_groups for name in group.all_instance_types}
        dependencies = HyperPodDependencies(
            self,
            "HyperPodDependencies",
            cluster=self.cluster,
            # the file may contain the values of a type that is not in the catalog
            instance_types=[environment.instance_type(name) or name for name in sorted(names)],
            chart=chart,
            gpu_partitions=environment.hyperpod.gpu_partitions,
            image_registry=environment.eks.image_registry,
        )
        # the add-ons are not part of it, because Helm does not wait for pods
        dependencies.node.add_dependency(self.control_plane.ready, self.network.ready)
        return dependencies

    def _lifecycle(self, directory: Path | None, steps: Sequence[Path]) -> LifecycleScripts:
        environment = self._environment
        existing = environment.hyperpod.lifecycle.existing_bucket
        if existing is None:
            # the bucket and its key remain after a first deployment that failed
            key = encryption_key(self, environment, "lifecycle_bucket", removal_policy=cdk.RemovalPolicy.RETAIN)
            return LifecycleScripts(
                self,
                "LifecycleScripts",
                directory=directory,
                steps=steps,
                encryption_key=key.key if key else None,
                name=environment.name,
                lustre=lustre_clients.types_with_claims(environment),
                lustre_over_efa=lustre_clients.efa_interfaces(environment),
                stated_types=environment.stated_types,
            )
        arn = existing.kms_key_arn
        bucket = s3.Bucket.from_bucket_attributes(
            self,
            "ExistingBucket",
            bucket_name=existing.name,
            encryption_key=EncryptionKey(self, "ExistingBucketKey", arn=arn).key if arn else None,
        )
        return LifecycleScripts(
            self,
            "LifecycleScripts",
            directory=directory,
            steps=steps,
            bucket=bucket,
            prefix=existing.prefix,
            lustre=lustre_clients.types_with_claims(environment),
            lustre_over_efa=lustre_clients.efa_interfaces(environment),
            stated_types=environment.stated_types,
        )

    def _node_role(self) -> NodeExecutionRole:
        network, environment = self.network.network, self._environment
        existing, groups = environment.network.existing, environment.hyperpod.instance_groups
        # nodes of a group without its own network start in any of these subnets; a zone may have several of them
        anywhere = (
            existing.cluster_subnet_ids if existing and any(each.is_in_cluster_network for each in groups) else ()
        )
        others = list(dict.fromkeys(each.execution_role_arn for each in groups if each.execution_role_arn))
        role = NodeExecutionRole(
            self,
            "ExecutionRole",
            bucket=self.lifecycle.bucket,
            eks_cluster_arn=self.eks_cluster_arn,
            vpc=network.vpc,
            subnets=[
                *(network.node_subnets[zone] for zone in environment.network.zone_ids()),
                *(
                    ec2.Subnet.from_subnet_id(self, f"ClusterSubnet{number}", subnet)
                    for number, subnet in enumerate(anywhere, 1)
                ),
            ],
            security_groups=self.network.node_security_groups,
            volume_key=self.volume_key.key if self.volume_key else None,
            others=others,
        )
        if self.volume_key is not None:
            self.volume_key.allow_node_volumes(role.role.role_arn, *others)
        return role

    @property
    def eks_cluster_arn(self) -> str:
        """Return the EKS cluster's ARN by its name; with a reference, IAM resources would wait for the cluster."""
        return self.format_arn(service="eks", resource="cluster", resource_name=self._environment.eks_cluster_name)

    def _exports(self) -> None:
        network, bucket = self.network.network, self.lifecycle.bucket
        keys = (self.volume_key, self.log_key)
        export_always(
            self,
            id_of(network.vpc, "vpc_id"),
            *(id_of(subnet, "subnet_id") for subnet in network.node_subnets.values()),
            id_of(self.network.security_group, "security_group_id"),
            self.cluster.cluster_name,
            self.execution_role.role.role_arn,
            bucket.bucket_name,
            bucket.bucket_arn,
            self.protection.service_token,
            *(key.key.key_arn for key in keys if key is not None),
            *([key.key_arn] if (key := bucket.encryption_key) is not None else []),
            *([kubectl.service_token] if (kubectl := self.cluster.kubectl_provider) is not None else []),
            # the issuer of the cluster, which remains if the provider is removed with the operator that needs it
            *([self.control_plane.issuer_url] if isinstance(self.control_plane, ControlPlane) else []),
        )
        if self._environment.hyperpod.lifecycle.existing_bucket is not None:
            self._go_on_exporting_the_own_bucket()

    def _go_on_exporting_the_own_bucket(self) -> None:
        """Export the name of a bucket of this stack, which the deployed HyperPod stack may still import.

        The bucket remains if ``existing_bucket`` replaces it, and its name contains the stack's ID.
        """
        name = bucket_name(self._environment.name)
        for output, value in ((_BUCKET_NAME, name), (_BUCKET_ARN, f"arn:{HERE.partition}:s3:::{name}")):
            cdk.CfnOutput(self, output, value=value, export_name=f"{self.stack_name}:{output}")

    @property
    def oidc_provider(self) -> OidcProvider | None:
        """Return the cluster's OIDC provider for other stacks, or None if there is none.

        They import values of the cluster, because CloudFormation would refuse to remove exports of a removed provider.
        """
        found = self.control_plane.oidc_provider
        if found is None or isinstance(self.control_plane, ExistingControlPlane):
            return found
        arn = f"arn:{HERE.partition}:iam::{HERE.account}:oidc-provider/{found.issuer}"
        return OidcProvider(arn=arn, issuer_url=found.issuer_url)


def nodes_made(environment: Environment) -> list[dict[str, object]]:
    """Return a factory of node resources: a renamed or moved group gets new ones while the old ones still exist."""
    return [
        {
            "name": group.name,
            "types": list(group.all_instance_types),
            "count": group.count,
            "zone": group.availability_zone_id,
            "capacity": group.capacity,
            "plan": group.training_plan_arn,
        }
        for group in environment.hyperpod.all_groups
    ]


def _who_may_enter(environment: Environment) -> str:
    if environment.eks.admin_role_arns:
        return "Configure kubectl, with a role in eks.admin_role_arns: EKS allows no other administrator"
    if environment.eks.is_existing:
        return "Configure kubectl, with a role that has an access entry of the cluster"
    return "Configure kubectl; the cluster returns Unauthorized until eks.admin_role_arns contains your role"
