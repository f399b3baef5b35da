"""The network of an environment: the VPC, subnets, routes, endpoints and EFA security group that it creates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from constructs import DependencyGroup, IConstruct, IDependable

from hyperpod_cdk import EfaSecurityGroup, ExistingNetwork, InterfaceEndpoints, Network
from hyperpod_cdk.common.stack_arns import id_of
from hyperpod_cdk.config import Environment
from hyperpod_cdk.config.endpoints import interface_endpoints


@dataclass(frozen=True, kw_only=True)
class NetworkParts:
    """The parts of a new or existing network that the rest of an environment uses.

    ``network`` (Network | ExistingNetwork): the VPC with its subnets.

    ``security_group`` (ec2.ISecurityGroup): group of the nodes, with the rules for EFA; a new control plane also has
    it.

    ``brings_own_group`` (bool): whether others own that group: nothing is added to it then, and ``made_groups`` is
    empty.

    ``eks_security_group`` (ec2.ISecurityGroup | None): group of an existing EKS cluster for traffic with the nodes.

    ``made_groups`` (Sequence[IConstruct]): the groups that the stack creates.

    ``ready`` (IDependable): what clients in the network depend on: the group's rules, the private routes and all
    endpoints.
    """

    network: Network | ExistingNetwork
    security_group: ec2.ISecurityGroup
    brings_own_group: bool
    eks_security_group: ec2.ISecurityGroup | None
    made_groups: Sequence[IConstruct]
    ready: IDependable

    @property
    def node_security_groups(self) -> Sequence[ec2.ISecurityGroup]:
        """Return the security groups of every node, without duplicates."""
        groups = [self.security_group, *([self.eks_security_group] if self.eks_security_group else [])]
        return list({id_of(group, "security_group_id"): group for group in groups}.values())


def network_parts(stack: cdk.Stack, environment: Environment) -> NetworkParts:
    """Create the network in ``stack``, or import the existing one, which adds nothing to the template."""
    section, eks = environment.network.existing, environment.eks.existing
    network = _network(stack, environment)
    ready: list[IDependable] = [network.ready] if isinstance(network, Network) else []
    made_groups: list[IConstruct] = []
    if section is None or section.security_group_id is None:
        efa = EfaSecurityGroup(stack, "Efa", vpc=network.vpc)
        security_group = efa.security_group
        made_groups.append(efa)
        ready.append(efa.rules)
    else:
        security_group = _existing_group(stack, "ExistingGroup", section.security_group_id)
    if isinstance(network, Network) and network.endpoint_subnet_ids:
        endpoints = InterfaceEndpoints(
            stack,
            "Endpoints",
            vpc=network.vpc,
            subnet_ids=network.endpoint_subnet_ids,
            services=interface_endpoints(environment),
            clients=[security_group],
            # instances in the VPC's primary block, such as one that runs kubectl, have other security groups
            client_cidrs=[environment.network.vpc_cidr],
        )
        ready.append(endpoints.ready)
    return NetworkParts(
        network=network,
        security_group=security_group,
        brings_own_group=section is not None and section.security_group_id is not None,
        eks_security_group=None if eks is None else _existing_group(stack, "EksGroup", eks.security_group_id),
        made_groups=made_groups,
        ready=DependencyGroup(*ready),
    )


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
            file_system_zones=sorted({lustre.availability_zone_id for lustre in environment.storage.made_lustre}),
            retain=section.retain,
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
