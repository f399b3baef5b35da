"""The control-plane stack: EKS, made or joined, access entries, node-independent add-ons, the dependency chart."""

from __future__ import annotations

from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_eks_v2 as eks
from constructs import Construct

from hyperpod_cdk import ControlPlane, EncryptionKey, ExistingControlPlane, HyperPodChart, HyperPodDependencies
from hyperpod_cdk.config import Environment
from hyperpod_cdk.config.encryption import key_arn
from stacks.network import NetworkParts, network_parts


class ControlPlaneStack(cdk.Stack):
    """The EKS cluster with all that HyperPod expects to find before its own cluster is created.

    Without ``network``, an existing one that has no stack, its parts are named here; ``network`` tells either way.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: Environment,
        network: NetworkParts | None,
        chart: HyperPodChart,
        termination_protection: bool,
    ) -> None:
        super().__init__(scope, construct_id, termination_protection=termination_protection)
        self.network = network or network_parts(self, environment)
        self.control_plane = self._control_plane(environment)
        # jsii gives interfaces as protocols, and Cluster lacks one member that only imported clusters have
        self.cluster = cast("eks.ICluster", self.control_plane.cluster)
        names = {name for group in environment.hyperpod.all_groups for name in group.all_instance_types}
        # the file may state the numbers of a type that the catalog does not know
        types = [environment.instance_type(name) or name for name in sorted(names)]
        self.hyperpod_dependencies = HyperPodDependencies(
            self,
            "HyperPodDependencies",
            cluster=self.cluster,
            instance_types=types,
            chart=chart,
            image_registry=environment.eks.image_registry,
        )
        self.hyperpod_dependencies.node.add_dependency(self.control_plane.ready)
        # exported whoever imports them: what is switched off leaves the platform stack last
        if self.cluster.kubectl_provider is not None:
            self.export_value(self.cluster.kubectl_provider.service_token)
        if cdk.Token.is_unresolved(self.cluster.cluster_name):
            self.export_value(self.cluster.cluster_name)
        if environment.eks.oidc_provider and self.control_plane.oidc_provider is not None:
            self.export_value(self.control_plane.oidc_provider.arn)
            self.export_value(self.control_plane.oidc_provider.issuer_url)
        cdk.CfnOutput(
            self,
            "UpdateKubeconfig",
            description="Point kubectl at the cluster",
            value=f"aws eks update-kubeconfig --region {self.region} --name {environment.eks_cluster_name}",
        )

    def _control_plane(self, environment: Environment) -> ControlPlane | ExistingControlPlane:
        section, existing, parts = environment.eks, environment.eks.existing, self.network
        secrets_arn = key_arn(environment.encryption.eks_secrets)
        if existing is None or parts.eks_security_group is None:
            return ControlPlane(
                self,
                "ControlPlane",
                vpc=parts.network.vpc,
                subnets=parts.network.control_plane_subnets,
                cluster_name=environment.eks_cluster_name,
                kubernetes_version=section.kubernetes_version,
                security_group=parts.security_group,
                endpoint_access=section.endpoint_access,
                public_access_cidrs=section.public_access_cidrs,
                admin_role_arns=section.admin_role_arns,
                addon_versions=section.addon_versions,
                oidc_provider=section.oidc_provider,
                secrets_key=EncryptionKey(self, "EksSecretsKey", arn=secrets_arn).key if secrets_arn else None,
                deletion_protection=environment.deletion_protection,
            )
        return ExistingControlPlane(
            self,
            "ControlPlane",
            vpc=parts.network.vpc,
            subnets=parts.network.control_plane_subnets,
            cluster_name=existing.cluster_name,
            kubernetes_version=section.kubernetes_version,
            security_group=parts.eks_security_group,
            oidc_provider_arn=existing.oidc_provider_arn,
            kubectl_role_arn=existing.kubectl_role_arn,
            admin_role_arns=section.admin_role_arns,
        )
