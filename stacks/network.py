"""The network stack: the quota gate, then VPC, subnets, routes, endpoints and EFA group, as far as they are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from hyperpod_cdk import EfaSecurityGroup, ExistingNetwork, HyperPodChart, InterfaceEndpoints, Network, QuotaGate
from hyperpod_cdk.checks.requirements import own, required_quotas
from hyperpod_cdk.config import Environment
from hyperpod_cdk.config.encryption import CREATE
from hyperpod_cdk.config.endpoints import interface_endpoints
from hyperpod_cdk.dependencies import refuse_placeholder
from stacks.encryption import encryption_key


@dataclass(frozen=True, kw_only=True)
class NetworkParts:
    """What other stacks take from the network, whoever made it.

    ``security_group`` is the nodes' own, with EFA's rules; a control plane that is made carries it too. It is somebody
    else's where ``brings_own_group`` says so: then nothing is added to it. ``eks_security_group`` is an existing EKS
    cluster's, through which it and the nodes talk.
    """

    network: Network | ExistingNetwork
    security_group: ec2.ISecurityGroup
    brings_own_group: bool
    eks_security_group: ec2.ISecurityGroup | None

    @property
    def node_security_groups(self) -> Sequence[ec2.ISecurityGroup]:
        """The groups of every node, each once."""
        groups = [self.security_group, *([self.eks_security_group] if self.eks_security_group else [])]
        return list({group.security_group_id: group for group in groups}.values())


class NetworkStack(cdk.Stack):
    """Everything that outlives the clusters in it; deployed first, so it also refuses a placeholder chart at once."""

    @staticmethod
    def has_resources(environment: Environment) -> bool:
        """Say whether anything of the network is made; CloudFormation refuses a stack without resources."""
        existing = environment.network.existing
        makes_key = environment.encryption.logs == CREATE
        return existing is None or existing.security_group_id is None or makes_key or _has_gate(environment)

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: Environment,
        chart: HyperPodChart,
        termination_protection: bool,
    ) -> None:
        super().__init__(scope, construct_id, termination_protection=termination_protection)
        self.gate = _quota_gate(self, environment)
        self.parts = network_parts(self, environment)
        if self.gate is not None:
            self.gate.before(self)
        # what the gate logs stays where it refuses the first deployment, and so does the key, which it waits for
        self.log_key = encryption_key(self, environment, "logs", removal_policy=cdk.RemovalPolicy.RETAIN)
        if self.log_key is not None:
            self.log_key.allow_log_groups()
        if chart.is_placeholder:
            refuse_placeholder(self)


def network_parts(stack: cdk.Stack, environment: Environment) -> NetworkParts:
    """Make the network in ``stack``, or name the existing one, which adds nothing to the template."""
    section, eks = environment.network.existing, environment.eks.existing
    network = _network(stack, environment)
    if section is None or section.security_group_id is None:
        security_group = EfaSecurityGroup(stack, "Efa", vpc=network.vpc).security_group
    else:
        security_group = _existing_group(stack, "ExistingGroup", section.security_group_id)
    if isinstance(network, Network) and network.endpoint_subnet_ids:
        InterfaceEndpoints(
            stack,
            "Endpoints",
            vpc=network.vpc,
            subnet_ids=network.endpoint_subnet_ids,
            services=interface_endpoints(environment),
            clients=[security_group],
            # the kubectl function stands in the VPC's own block, with a group that EKS makes with the cluster
            client_cidrs=[environment.network.vpc_cidr],
        )
    return NetworkParts(
        network=network,
        security_group=security_group,
        brings_own_group=section is not None and section.security_group_id is not None,
        eks_security_group=None if eks is None else _existing_group(stack, "EksGroup", eks.security_group_id),
    )


def _has_gate(environment: Environment) -> bool:
    return environment.quota_check != "off" and bool(required_quotas(environment))


def _quota_gate(stack: cdk.Stack, environment: Environment) -> QuotaGate | None:
    if environment.quota_check == "off" or not _has_gate(environment):
        return None
    gate = QuotaGate(
        stack,
        "QuotaGate",
        requirements=required_quotas(environment),
        mode=environment.quota_check,
        own=own(environment),
        environment_name=environment.name,
    )
    cdk.CfnOutput(stack, "QuotaFindings", value=gate.findings, description="Quotas that do not suffice, or may not")
    cdk.CfnOutput(stack, "QuotasSkipped", value=gate.skipped, description="Quotas that could not be compared")
    return gate


def _network(stack: cdk.Stack, environment: Environment) -> Network | ExistingNetwork:
    section, existing = environment.network, environment.network.existing
    if existing is None:
        return Network(
            stack,
            "Network",
            vpc_cidr=section.vpc_cidr,
            availability_zones=section.node_cidrs(),
            nat_gateways=None if section.is_closed else section.nat_gateways,
            egress=section.egress,
            endpoint_zones=section.endpoint_zones() if section.is_closed else None,
        )
    return ExistingNetwork(
        stack,
        "Network",
        vpc_id=existing.vpc_id,
        node_subnet_ids=existing.node_subnet_ids,
        control_plane_subnet_ids=existing.control_plane_subnet_ids,
        vpc_cidr=next(iter(existing.vpc_cidrs), None),
    )


def _existing_group(stack: cdk.Stack, construct_id: str, group_id: str) -> ec2.ISecurityGroup:
    return ec2.SecurityGroup.from_security_group_id(stack, construct_id, group_id, mutable=False)
