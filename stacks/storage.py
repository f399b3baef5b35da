"""The storage stack: FSx for Lustre beside the nodes that use it."""

from __future__ import annotations

import aws_cdk as cdk
from constructs import Construct

from hyperpod_cdk import LustreFileSystem
from hyperpod_cdk.config import Environment
from hyperpod_cdk.lustre import DataRepository
from stacks.network import NetworkParts


class StorageStack(cdk.Stack):
    """The file systems: they outlive every cluster and are retained when the stack goes."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: Environment,
        network: NetworkParts,
        termination_protection: bool,
    ) -> None:
        super().__init__(scope, construct_id, termination_protection=termination_protection)
        self.lustre: dict[str, LustreFileSystem] = {}
        for lustre in environment.storage.lustre:
            zone = lustre.availability_zone_id
            self.lustre[lustre.name] = LustreFileSystem(
                self,
                f"Lustre-{lustre.name}",
                vpc=network.network.vpc,
                subnet=network.network.node_subnets[zone],
                availability_zone_id=zone,
                client_security_group=network.security_group,
                join_client_group=network.brings_own_group,
                capacity_gib=lustre.capacity_gib,
                throughput_mbps_per_tib=lustre.throughput_mbps_per_tib,
                efa=lustre.efa,
                compression=lustre.compression,
                data_repositories=[DataRepository(path=r.path, s3_uri=r.s3_uri) for r in lustre.data_repositories],
                name=f"{environment.name}-{lustre.name}",
            )
