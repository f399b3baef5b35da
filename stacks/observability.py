"""The observability stack: what HyperPod says about its nodes, kept, counted and shown."""

from __future__ import annotations

import aws_cdk as cdk
from constructs import Construct

from hyperpod_cdk import NodeEvents
from hyperpod_cdk.config import Environment
from stacks.hyperpod import HyperPodStack


class ObservabilityStack(cdk.Stack):
    """Node-health events into a log group, an alarm on faults, a dashboard."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: Environment,
        hyperpod: HyperPodStack,
        termination_protection: bool,
    ) -> None:
        super().__init__(scope, construct_id, termination_protection=termination_protection)
        self.events = NodeEvents(
            self,
            "NodeEvents",
            cluster_name=environment.hyperpod_cluster_name,
            cluster_arn=hyperpod.cluster.cluster_arn,
        )
