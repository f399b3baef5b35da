"""The control-plane stack: EKS, access entries, node-independent add-ons and the HyperPod dependency chart."""

from __future__ import annotations

from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_eks_v2 as eks
from constructs import Construct

from hyperpod_cdk import ControlPlane, HyperPodChart, HyperPodDependencies
from hyperpod_cdk.config import Environment
from stacks.network import NetworkStack


class ControlPlaneStack(cdk.Stack):
    """The EKS cluster with all that HyperPod expects to find before its own cluster is created."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: Environment,
        network: NetworkStack,
        chart: HyperPodChart,
        termination_protection: bool,
    ) -> None:
        super().__init__(scope, construct_id, termination_protection=termination_protection)
        section = environment.eks
        self.control_plane = ControlPlane(
            self,
            "ControlPlane",
            vpc=network.network.vpc,
            subnets=network.network.control_plane_subnets,
            cluster_name=environment.eks_cluster_name,
            kubernetes_version=section.kubernetes_version,
            security_group=network.efa.security_group,
            endpoint_access=section.endpoint_access,
            public_access_cidrs=section.public_access_cidrs,
            admin_role_arns=section.admin_role_arns,
            addon_versions=section.addon_versions,
            deletion_protection=environment.deletion_protection,
        )
        # jsii gives interfaces as protocols, and Cluster lacks one member that only imported clusters have
        self.cluster = cast("eks.ICluster", self.control_plane.cluster)
        names = {name for group in environment.hyperpod.instance_groups for name in group.all_instance_types}
        # the file may state the numbers of a type that the catalog does not know
        types = [environment.instance_type(name) or name for name in sorted(names)]
        self.hyperpod_dependencies = HyperPodDependencies(
            self, "HyperPodDependencies", cluster=self.cluster, instance_types=types, chart=chart
        )
        self.hyperpod_dependencies.node.add_dependency(self.control_plane.addons)
        cdk.CfnOutput(
            self,
            "UpdateKubeconfig",
            description="Point kubectl at the cluster",
            value=f"aws eks update-kubeconfig --region {self.region} --name {environment.eks_cluster_name}",
        )
