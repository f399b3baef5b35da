"""The storage stack: FSx for Lustre in the zones of the nodes that use it."""

from __future__ import annotations

import aws_cdk as cdk
from constructs import Construct

from hyperpod_cdk import LustreFileSystem
from hyperpod_cdk.catalog import lustre as catalog
from hyperpod_cdk.config import Environment, Lustre
from hyperpod_cdk.storage.lustre import DataRepository, ReadCache
from hyperpod_cdk_stacks.encryption import encryption_key
from hyperpod_cdk_stacks.exports import export_always
from hyperpod_cdk_stacks.network import NetworkParts


class StorageStack(cdk.Stack):
    """The file systems, which do not depend on a cluster and are retained when the stack is deleted.

    ``environment`` (Environment): the environment, as its file describes it.

    ``network`` (NetworkParts): the network of the environment.

    ``termination_protection`` (bool): whether CloudFormation refuses to delete the stack.
    """

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
        systems = environment.storage.made_lustre
        # FSx encrypts scratch file systems with its own key
        takes_key = any(lustre.deployment_type != catalog.SCRATCH for lustre in systems)
        key = encryption_key(self, environment, "file_systems") if takes_key else None
        for lustre in systems:
            zone = lustre.availability_zone_id
            cache, backups = lustre.read_cache, lustre.backups
            self.lustre[lustre.name] = LustreFileSystem(
                self,
                f"Lustre-{lustre.name}",
                vpc=network.network.vpc,
                subnet=network.network.node_subnets[zone],
                availability_zone_id=zone,
                client_security_group=network.security_group,
                join_client_group=network.brings_own_group,
                deployment_type=lustre.deployment_type,
                storage_type=lustre.storage_type,
                capacity_gib=lustre.capacity_gib,
                throughput_mbps_per_tib=lustre.throughput_mbps_per_tib,
                throughput_capacity_mbps=lustre.throughput_capacity_mbps,
                read_cache=ReadCache(sizing=cache.sizing, size_gib=cache.size_gib) if cache else None,
                metadata_iops=lustre.metadata_iops,
                efa=lustre.efa,
                compression=lustre.compression,
                data_repositories=_links(lustre),
                backup_retention_days=backups.retention_days if backups else None,
                backup_start_time=backups.start_time if backups else None,
                copy_tags_to_backups=backups.copy_tags if backups else False,
                from_backup=lustre.from_backup,
                maintenance_window=lustre.maintenance_window,
                log_level=lustre.log_level,
                kms_key=key.key if key and lustre.deployment_type != catalog.SCRATCH else None,
                name=f"{environment.name}-{lustre.name}",
            )
            made = self.lustre[lustre.name]
            # a removed claim is removed from the platform stack last
            export_always(self, made.file_system_id, made.dns_name, made.mount_name)


def _links(lustre: Lustre) -> list[DataRepository]:
    return [
        DataRepository(
            path=each.path,
            s3_uri=each.s3_uri,
            auto_import=each.auto_import,
            auto_export=each.auto_export,
            batch_import=each.batch_import,
            imported_file_chunk_size_mib=each.imported_file_chunk_size_mib,
        )
        for each in lustre.data_repositories
    ]
