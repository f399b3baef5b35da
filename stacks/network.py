"""The network stack: VPC, subnets by AZ ID, routes, endpoints and the EFA security group."""

from __future__ import annotations

import aws_cdk as cdk
from constructs import Construct

from hyperpod_cdk import EfaSecurityGroup, HyperPodChart, Network
from hyperpod_cdk.config import Environment
from hyperpod_cdk.dependencies import refuse_placeholder


class NetworkStack(cdk.Stack):
    """Everything that outlives the clusters in it; deployed first, so it also refuses a placeholder chart at once."""

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
        network = environment.network
        self.network = Network(
            self,
            "Network",
            vpc_cidr=network.vpc_cidr,
            availability_zones=network.node_cidrs(),
            nat_gateways=network.nat_gateways,
        )
        self.efa = EfaSecurityGroup(self, "Efa", vpc=self.network.vpc)
        if chart.is_placeholder:
            refuse_placeholder(self)
