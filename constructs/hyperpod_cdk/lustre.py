"""An FSx for Lustre file system for training data, with the security-group rules that have to exist before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from aws_cdk import CfnTag, RemovalPolicy, Stack, Token
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_fsx as fsx
from aws_cdk import aws_kms as kms
from constructs import Construct

from hyperpod_cdk.catalog import lustre as rules

Event = Literal["new", "changed", "deleted"]

_Link = fsx.CfnDataRepositoryAssociation

_ALL_TRAFFIC = ("-1", None, None)
_ANYWHERE = "0.0.0.0/0"
_COMPRESSION_TYPES = {"lz4": "LZ4", "none": "NONE"}
_STORAGE_TYPE = "SSD"
_MOST_BACKUP_DAYS = 90


@dataclass(frozen=True, kw_only=True)
class DataRepository:
    """A folder of the file system that mirrors a prefix of an S3 bucket.

    ``path`` is absolute inside the file system, ``s3_uri`` looks like ``s3://bucket/prefix/``. ``auto_import`` says
    which changes in the bucket show up in the folder, ``auto_export`` which changes in the folder are written to the
    bucket. Deleted files are not deleted from the bucket unless ``auto_export`` says so.
    """

    path: str
    s3_uri: str
    auto_import: Sequence[Event] = ("new", "changed", "deleted")
    auto_export: Sequence[Event] = ("new", "changed")


class LustreFileSystem(Construct):
    """A PERSISTENT_2 file system on SSD, in one subnet, for clients in one security group.

    ``capacity_gib`` is 1200 or a multiple of 2400; with ``efa`` the step depends on ``throughput_mbps_per_tib`` (125,
    250, 500 or 1000). Capacity may grow later; ``efa`` cannot be changed, the subnet and the key only by a new file
    system. Metadata performance is automatic. ``efa`` wants all clients in the file system's own zone: name theirs in
    ``client_availability_zone_ids`` to have that checked.

    ``data_repositories`` link folders to S3; FSx makes no backups of such a file system. Without them
    ``backup_retention_days`` (1 to 90) switches daily backups on; left out, there are none. ``kms_key`` encrypts the
    file system; left out, the account's FSx key does.

    The security group lets Lustre's ports pass between clients and servers, all traffic with ``efa``, by group id in
    both directions: FSx checks that while it creates the file system, so every rule stands first. File system, rules
    and links stay when the stack goes. With ``join_client_group`` the servers carry the clients' group, which must let
    its members talk to each other, and neither a group nor a rule is made: for a group that belongs to somebody else.

    Raises ValueError for what FSx refuses; tokens are not checked.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        subnet: ec2.ISubnet,
        availability_zone_id: str,
        client_security_group: ec2.ISecurityGroup,
        capacity_gib: int,
        throughput_mbps_per_tib: int = 250,
        efa: bool = False,
        compression: Literal["lz4", "none"] = "lz4",
        data_repositories: Sequence[DataRepository] = (),
        client_availability_zone_ids: Sequence[str] = (),
        join_client_group: bool = False,
        backup_retention_days: int | None = None,
        kms_key: kms.IKey | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        _check_performance(capacity_gib, throughput_mbps_per_tib, efa=efa)
        _check_place(Stack.of(self).region, availability_zone_id, client_availability_zone_ids, efa=efa)
        _check_compression(compression)
        _check_data_repositories(data_repositories)
        _check_backups(backup_retention_days, data_repositories)
        label = name or self.node.path
        groups: list[ec2.CfnSecurityGroup] = []
        passages: list[ec2.CfnSecurityGroupIngress | ec2.CfnSecurityGroupEgress] = []
        self._security_group = client_security_group
        if not join_client_group:
            group = self._group(vpc, label)
            groups.append(group)
            clients = client_security_group.security_group_id
            passages += self._passages(group.attr_group_id, clients, efa=efa)
            self._security_group = ec2.SecurityGroup.from_security_group_id(self, "Imported", group.attr_group_id)
        self._file_system = fsx.CfnFileSystem(
            self,
            "FileSystem",
            file_system_type="LUSTRE",
            file_system_type_version=rules.LUSTRE_VERSION,
            storage_capacity=capacity_gib,
            storage_type=_STORAGE_TYPE,
            subnet_ids=[subnet.subnet_id],
            security_group_ids=[self._security_group.security_group_id],
            kms_key_id=kms_key.key_arn if kms_key else None,
            lustre_configuration=fsx.CfnFileSystem.LustreConfigurationProperty(
                deployment_type=rules.DEPLOYMENT_TYPE,
                per_unit_storage_throughput=throughput_mbps_per_tib,
                data_compression_type=_COMPRESSION_TYPES[compression],
                efa_enabled=efa,
                metadata_configuration=fsx.CfnFileSystem.MetadataConfigurationProperty(mode="AUTOMATIC"),
                automatic_backup_retention_days=backup_retention_days,
                copy_tags_to_backups=True if backup_retention_days else None,
            ),
            tags=[CfnTag(key="Name", value=label)],
        )
        for passage in passages:
            self._file_system.add_resource_dependency(passage)
        links = [self._link(repository) for repository in data_repositories]
        # a file system that stays keeps its group in use, and its clients need the rules
        for kept in (*groups, *passages, self._file_system, *links):
            kept.apply_removal_policy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)

    @property
    def file_system(self) -> fsx.CfnFileSystem:
        """The file system."""
        return self._file_system

    @property
    def file_system_id(self) -> str:
        """``fs-...``, a token."""
        return self._file_system.ref

    @property
    def dns_name(self) -> str:
        """The host to mount from, a token."""
        return self._file_system.attr_dns_name

    @property
    def mount_name(self) -> str:
        """The name to mount, a token."""
        return self._file_system.attr_lustre_mount_name

    @property
    def security_group(self) -> ec2.ISecurityGroup:
        """The group of the file system's servers."""
        return self._security_group

    def _group(self, vpc: ec2.IVpc, label: str) -> ec2.CfnSecurityGroup:
        return ec2.CfnSecurityGroup(
            self,
            "Group",
            vpc_id=vpc.vpc_id,
            group_description="FSx for Lustre servers",
            # stated, because a rule of its own would make CloudFormation take the default one away
            security_group_egress=[ec2.CfnSecurityGroup.EgressProperty(ip_protocol="-1", cidr_ip=_ANYWHERE)],
            tags=[CfnTag(key="Name", value=label)],
        )

    def _passages(
        self, servers: str, client_id: str, *, efa: bool
    ) -> Iterator[ec2.CfnSecurityGroupIngress | ec2.CfnSecurityGroupEgress]:
        """Open the ports from servers and clients to the servers, and back from the servers to the clients."""
        pairs = {
            "Servers": (servers, servers),
            "ClientsToServers": (client_id, servers),
            "ServersToClients": (servers, client_id),
        }
        for label, (source, destination) in pairs.items():
            for protocol, first, last in [_ALL_TRAFFIC] if efa else [("tcp", *ports) for ports in rules.TCP_PORTS]:
                suffix = "" if first is None else str(first)
                description = "Lustre over EFA" if efa else "Lustre"
                yield ec2.CfnSecurityGroupIngress(
                    self,
                    f"{label}In{suffix}",
                    group_id=destination,
                    source_security_group_id=source,
                    ip_protocol=protocol,
                    from_port=first,
                    to_port=last,
                    description=description,
                )
                yield ec2.CfnSecurityGroupEgress(
                    self,
                    f"{label}Out{suffix}",
                    group_id=source,
                    destination_security_group_id=destination,
                    ip_protocol=protocol,
                    from_port=first,
                    to_port=last,
                    description=description,
                )

    def _link(self, repository: DataRepository) -> _Link:
        imported, exported = _events(repository.auto_import), _events(repository.auto_export)
        return _Link(
            self,
            f"DataRepository{_spelt(repository.path)}",
            file_system_id=self._file_system.ref,
            file_system_path=repository.path,
            data_repository_path=repository.s3_uri,
            batch_import_meta_data_on_create=True,
            s3=_Link.S3Property(
                auto_import_policy=_Link.AutoImportPolicyProperty(events=imported) if imported else None,
                auto_export_policy=_Link.AutoExportPolicyProperty(events=exported) if exported else None,
            ),
        )


def _check_performance(capacity_gib: int, throughput_mbps_per_tib: int, *, efa: bool) -> None:
    if not Token.is_unresolved(throughput_mbps_per_tib):
        problem = rules.throughput_problem(throughput_mbps_per_tib)
        if problem:
            raise ValueError(f"throughput_mbps_per_tib: {problem}")
    if not Token.is_unresolved(capacity_gib):
        problem = rules.capacity_problem(capacity_gib, throughput_mbps_per_tib=throughput_mbps_per_tib, efa=efa)
        if problem:
            raise ValueError(f"capacity_gib: {problem}")


def _check_place(region: str, own_zone: str, client_zones: Sequence[str], *, efa: bool) -> None:
    problem = rules.region_problem(region, efa=efa)
    if problem:
        raise ValueError(f"region: {problem}")
    elsewhere = sorted({zone for zone in client_zones if zone != own_zone and not Token.is_unresolved(zone)})
    if efa and elsewhere and not Token.is_unresolved(own_zone):
        raise ValueError(
            "availability_zone_id: must be that of all clients with EFA, which does not cross zones, "
            f"got {own_zone} and clients in {', '.join(elsewhere)}; put the file system in {elsewhere[0]}, "
            "or set efa: false"
        )


def _check_compression(compression: str) -> None:
    if compression not in rules.COMPRESSIONS:
        raise ValueError(
            f"compression: must be {' or '.join(rules.COMPRESSIONS)}, got {compression!r}; set compression: lz4"
        )


def _check_backups(retention_days: int | None, repositories: Sequence[DataRepository]) -> None:
    if retention_days is None:
        return
    if not 0 <= retention_days <= _MOST_BACKUP_DAYS:
        raise ValueError(
            f"backup_retention_days: must be between 0 and {_MOST_BACKUP_DAYS}, got {retention_days}; "
            "set 0 for no backups"
        )
    if retention_days and repositories:
        raise ValueError(
            f"backup_retention_days: must be 0 beside data_repositories, of which FSx makes no backups, "
            f"got {retention_days}; leave it out, the linked buckets hold the data"
        )


def _check_data_repositories(repositories: Sequence[DataRepository]) -> None:
    problem = rules.DATA_REPOSITORIES.count_problem(len(repositories), what="data repositories")
    if problem:
        raise ValueError(f"data_repositories: {problem}")
    for index, repository in enumerate(repositories):
        if not repository.path.startswith("/"):
            raise ValueError(
                f"data_repositories[{index}].path: must begin with /, got {repository.path!r}; set /{repository.path}"
            )
        if not Token.is_unresolved(repository.s3_uri) and not repository.s3_uri.startswith("s3://"):
            raise ValueError(
                f"data_repositories[{index}].s3_uri: must look like s3://bucket/prefix/, got {repository.s3_uri!r}"
            )
        for other in repositories[:index]:
            if rules.contains(other.path, repository.path) or rules.contains(repository.path, other.path):
                raise ValueError(
                    f"data_repositories[{index}].path: must not overlap another link's, got {repository.path} beside "
                    f"{other.path}; choose folders of which none holds the other"
                )


def _spelt(path: str) -> str:
    """Give ``path`` without slashes, which ids of constructs cannot hold, and /a/b other than /a-b."""
    return path.replace("%", "%25").replace("-", "%2D").replace("/", "-")


def _events(events: Sequence[Event]) -> list[str]:
    return [event.upper() for event in events]
