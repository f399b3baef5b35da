"""An FSx for Lustre file system for training data, with the security group rules that must exist before it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from dataclasses import fields as dataclass_fields
from typing import Any, Literal, TypeAlias

from aws_cdk import CfnTag, RemovalPolicy, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_fsx as fsx
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct

from hyperpod_cdk.catalog import lustre as rules
from hyperpod_cdk.catalog import network, regions, tags
from hyperpod_cdk.catalog.rules import joined, repeated_problem
from hyperpod_cdk.catalog.sentences import in_python
from hyperpod_cdk.common.acknowledgments import acknowledge_log_group
from hyperpod_cdk.common.physical_names import stack_part
from hyperpod_cdk.common.stack_arns import arn_here, id_of
from hyperpod_cdk.config import storage as fields
from hyperpod_cdk.config.argument_types import judged
from hyperpod_cdk.config.arguments import is_token, refuse, refuse_all, refuse_for, refused
from hyperpod_cdk.config.draft import UNKNOWN, certain

Event = Literal["new", "changed", "deleted"]

_Link = fsx.CfnDataRepositoryAssociation
_Rule: TypeAlias = ec2.CfnSecurityGroupIngress | ec2.CfnSecurityGroupEgress
_Ports: TypeAlias = tuple[str, int | None, int | None]

_ALL_TRAFFIC: _Ports = ("-1", None, None)
_AMONG = "Among the servers of one file system"
_COMPRESSION_TYPES = {"lz4": "LZ4", "none": "NONE"}
_LOG_RETENTION_DAYS = 365
_NOT_IN_LOG_GROUPS = re.compile(r"[^.\-_/#A-Za-z0-9]+")
"""Pattern of LogGroupName in the schema of AWS::Logs::LogGroup, turned around."""


@judged(known=("path", "imported_file_chunk_size_mib"))
@dataclass(frozen=True, kw_only=True)
class DataRepository:
    """A folder of the file system that mirrors a prefix of an S3 bucket.

    ``path`` (str): folder of the file system, absolute inside it, such as ``/data``. Checked by ``LustreFileSystem``,
    which raises ValueError for another path.

    ``s3_uri`` (str): ``s3://bucket/prefix/`` that the folder mirrors. Checked by ``LustreFileSystem``, which raises
    ValueError for another address.

    ``auto_import`` (Sequence["new" | "changed" | "deleted"]): which changes in the bucket show up in the folder.
    Default: all three. Checked by ``LustreFileSystem``, which raises ValueError for another or repeated value.

    ``auto_export`` (Sequence["new" | "changed" | "deleted"]): which changes in the folder are written to the bucket;
    deleted files are not deleted from the bucket unless it says so. Default: ``new`` and ``changed``. Checked by
    ``LustreFileSystem``, which raises ValueError for another or repeated value.

    ``batch_import`` (bool): whether the folder shows at once what the bucket holds. Default: yes.

    ``imported_file_chunk_size_mib`` (int, MiB): the most of an imported file that one disk gets. Default: FSx's, 1024.
    Checked by ``LustreFileSystem``, which raises ValueError unless it is 1 to 512000.
    """

    path: str
    s3_uri: str
    auto_import: Sequence[Event] = ("new", "changed", "deleted")
    auto_export: Sequence[Event] = ("new", "changed")
    batch_import: bool = True
    imported_file_chunk_size_mib: int | None = None


@judged()
@dataclass(frozen=True, kw_only=True)
class ReadCache:
    """The SSD read cache of an Intelligent-Tiering file system.

    ``sizing`` ("none" | "proportional" | "provisioned"): whether there is none, one that follows the throughput, or one
    of ``size_gib``. Checked by ``LustreFileSystem``, which raises ValueError for another value.

    ``size_gib`` (int, GiB): size of a ``provisioned`` cache. Default: none. Checked by ``LustreFileSystem``, which
    raises ValueError for a size that FSx does not offer with the throughput, for any with another ``sizing``, and if a
    ``provisioned`` cache has none.
    """

    sizing: Literal["none", "proportional", "provisioned"]
    size_gib: int | None = None


@judged()
class LustreFileSystem(Construct):
    """A Lustre file system in one subnet, for clients in one security group. Tokens are not checked.

    ``deployment_type`` is ``persistent_2`` or ``scratch_2``, which loses data if a server fails and has neither
    throughput tiers nor metadata configuration, EFA, backups or your own key. On ``ssd``, ``capacity_gib`` is 1200 or a
    multiple of 2400; with ``efa`` the step depends on ``throughput_mbps_per_tib`` (125, 250, 500 or 1000; default 250).
    On ``intelligent_tiering`` (``persistent_2`` only) the storage grows and shrinks with the data: it has
    ``throughput_capacity_mbps``, a multiple of 4000, and ``read_cache`` instead, and no data repositories. The default
    of ``metadata_iops`` is automatic on SSD, 6000 on Intelligent-Tiering.

    Capacity, throughput in MB/s and metadata operations may grow later, never shrink. ``efa`` and ``storage_type``
    cannot be changed, and CloudFormation creates a new, empty file system for another deployment type, subnet, group,
    key, ``from_backup`` or ``copy_tags_to_backups``. ``efa`` requires all clients in the file system's own zone: pass
    their zones in ``client_availability_zone_ids`` to have that checked.

    ``data_repositories`` link folders to S3; FSx does not back up such a file system. Without them,
    ``backup_retention_days`` above 0 enables daily backups at ``backup_start_time`` (``HH:MM`` in UTC). ``from_backup``
    restores a backup of the same capacity. ``maintenance_window`` is ``d:HH:MM`` in UTC, where 1 is Monday.
    ``log_level`` says what FSx logs about the traffic between file system and data repositories (default: nothing),
    into the log group ``/aws/fsx/<name>-<id of the servers' security group>``, which always exists; with
    ``join_client_group``, 8 characters of the stack's id replace the group's. ``kms_key`` encrypts the file system;
    default: the account's FSx key.

    The security group allows Lustre's ports between clients and servers, all traffic with ``efa``, by group ID in both
    directions: FSx checks that while it creates the file system, so every rule comes first. File system, links, log,
    group and the rules among the servers are retained; the rules that name the clients' group are deleted. The file
    system then uses its VPC and subnet: pass its zone to ``Network`` in ``file_system_zones``. With
    ``join_client_group`` the servers have the clients' group, whose members must be able to communicate, and neither a
    group nor a rule is created: for a group with another owner.

    ``vpc`` (ec2.IVpc): the VPC of the file system.

    ``subnet`` (ec2.ISubnet): its subnet.

    ``availability_zone_id`` (str): AZ ID of that subnet. Raises ValueError for the name of a zone, a zone of another
    region, and a Local Zone in which FSx does not offer such a file system.

    ``client_security_group`` (ec2.ISecurityGroup): security group of the clients. With ``allow_all_outbound``, which is
    CDK's default, it gets no egress rule. With ``efa`` it always gets one, and CloudFormation then removes its rule for
    0.0.0.0/0 (``catalog.network.EVERYWHERE_IN_HALVES``): import such a group, or state 0.0.0.0/1 and 128.0.0.0/1.

    ``capacity_gib`` (int, GiB): size of the file system: 1200, or a multiple of 2400, with EFA of the step of its
    throughput. Default: none, which only Intelligent-Tiering accepts. Raises ValueError for another size, and for any
    on Intelligent-Tiering.

    ``deployment_type`` ("persistent_2" | "scratch_2"): ``scratch_2`` loses data if a server fails. Default:
    ``persistent_2``. Raises ValueError for another value, and for one that FSx does not offer in the region.

    ``storage_type`` ("ssd" | "intelligent_tiering"): SSD of a fixed capacity, or storage that grows and shrinks with
    the data. Default: ``ssd``. Raises ValueError for another value, and for ``intelligent_tiering`` with ``scratch_2``
    or where FSx does not offer it.

    ``throughput_mbps_per_tib`` (int, MB/s for each TiB): throughput on SSD: 125, 250, 500 or 1000. Default: 250 on
    ``ssd`` of ``persistent_2``. Raises ValueError for another number, and for any on ``scratch_2`` or
    Intelligent-Tiering.

    ``throughput_capacity_mbps`` (int, MB/s): throughput of Intelligent-Tiering, a multiple of 4000 up to 2000000.
    Default: none. Raises ValueError for another number, for any on SSD, and if Intelligent-Tiering has none.

    ``read_cache`` (ReadCache): read cache of Intelligent-Tiering. Default: none. Raises ValueError on SSD, if
    Intelligent-Tiering has none, and for a size that FSx does not offer with the throughput.

    ``metadata_iops`` (int, operations per second): metadata operations. Default: FSx's own number. Raises ValueError
    for a number that FSx does not offer, and for any on ``scratch_2``.

    ``efa`` (bool): whether clients can use it over EFA too. Default: no. Raises ValueError on ``scratch_2``, where FSx
    does not offer it, and if a client is in another zone.

    ``compression`` ("lz4" | "none"): how the data is compressed. Default: ``lz4``. Raises ValueError for another value.

    ``data_repositories`` (Sequence[DataRepository]): links to S3, at most 8. Default: none. Raises ValueError for more,
    on Intelligent-Tiering, for nested folders, and for one prefix twice.

    ``client_availability_zone_ids`` (Sequence[str]): AZ IDs of clients, compared with its own if EFA is enabled.
    Default: not compared. Raises ValueError for the name of a zone, and for a zone of another region.

    ``join_client_group`` (bool): whether it has the clients' group instead of its own. Default: no.

    ``backup_retention_days`` (int, days): how long automatic backups are kept. Default: no backups. Raises ValueError
    unless it is 0 to 90, for any on ``scratch_2``, and above 0 with ``data_repositories``.

    ``backup_start_time`` (str): ``HH:MM`` in UTC. Default: FSx's choice. Raises ValueError for text of another form,
    and without backups.

    ``copy_tags_to_backups`` (bool): whether backups get its tags. Default: no.

    ``from_backup`` (str): ID of the backup that it is restored from. Default: empty. Raises ValueError for text of
    another form, and with ``scratch_2``.

    ``maintenance_window`` (str): ``d:HH:MM`` in UTC, 1 is Monday. Default: FSx's choice. Raises ValueError for text of
    another form.

    ``log_level`` ("warnings" | "errors" | "warnings_and_errors"): what FSx logs about data repositories. Default: no
    log. Raises ValueError for another value.

    ``kms_key`` (kms.IKey): KMS key that encrypts it. Default: FSx's own key of the account. Raises ValueError on
    ``scratch_2``.

    ``name`` (str): its tag Name. Default: the construct's path. Raises ValueError for no text, more than 255
    characters, and characters that AWS refuses in the value of a tag.
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
        capacity_gib: int | None = None,
        deployment_type: Literal["persistent_2", "scratch_2"] = "persistent_2",
        storage_type: Literal["ssd", "intelligent_tiering"] = "ssd",
        throughput_mbps_per_tib: int | None = None,
        throughput_capacity_mbps: int | None = None,
        read_cache: ReadCache | None = None,
        metadata_iops: int | None = None,
        efa: bool = False,
        compression: Literal["lz4", "none"] = "lz4",
        data_repositories: Sequence[DataRepository] = (),
        client_availability_zone_ids: Sequence[str] = (),
        join_client_group: bool = False,
        backup_retention_days: int | None = None,
        backup_start_time: str | None = None,
        copy_tags_to_backups: bool = False,
        from_backup: str | None = None,
        maintenance_window: str | None = None,
        log_level: Literal["warnings", "errors", "warnings_and_errors"] | None = None,
        kms_key: kms.IKey | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        settings = rules.Settings(
            deployment_type=deployment_type,
            storage_type=storage_type,
            capacity_gib=capacity_gib,
            throughput_mbps_per_tib=throughput_mbps_per_tib,
            throughput_capacity_mbps=throughput_capacity_mbps,
            read_cache=None if read_cache is None else read_cache.sizing,
            read_cache_gib=None if read_cache is None else read_cache.size_gib,
            metadata_iops=metadata_iops,
            efa=efa,
            backup_days=backup_retention_days,
            from_backup=from_backup is not None,
            data_repositories=len(data_repositories),
        )
        place = _Place(Stack.of(self).region, availability_zone_id, client_availability_zone_ids)
        wrong_name = None if name is None or is_token(name) else tags.value_problem(name, "name")
        refuse_all(
            lambda: refuse_for(_problems(settings, place, has_key=kms_key is not None)),
            lambda: refuse(
                fields.Lustre,
                from_backup=from_backup,
                compression=compression,
                maintenance_window=maintenance_window,
                log_level=log_level,
            ),
            lambda: _check_data_repositories(data_repositories),
            (
                lambda: refuse_for(_backup_time_problems(backup_retention_days, backup_start_time)),
                lambda: refuse(
                    fields.Backups, called={"start_time": "backup_start_time"}, start_time=backup_start_time
                ),
            ),
            lambda: refuse_for([f"name: {wrong_name}"] if wrong_name else ()),
        )
        settings = _completed(settings)
        label = name or tags.of_path(self.node.path)
        groups: list[ec2.CfnSecurityGroup] = []
        among_servers: list[_Rule] = []
        to_clients: list[_Rule] = []
        self._security_group = client_security_group
        if not join_client_group:
            group = self._group(vpc, label)
            servers, clients = group.attr_group_id, id_of(client_security_group, "security_group_id")
            groups.append(group)
            # all traffic with and without EFA: separate port rules would remain after a change of efa, and
            # EC2 refuses an existing rule
            among_servers += self._rules({"Servers": (servers, servers)}, ports=[_ALL_TRAFFIC], description=_AMONG)
            ways = {"ClientsToServers": (clients, servers), "ServersToClients": (servers, clients)}
            # a rule in addition to one that allows everything out would remove that one; EFA needs a rule by group ID
            without_egress = () if efa or not client_security_group.allow_all_outbound else ("ClientsToServers",)
            to_clients += self._rules(
                ways,
                ports=[_ALL_TRAFFIC] if efa else [("tcp", *ports) for ports in rules.TCP_PORTS],
                description="Lustre over EFA" if efa else "Lustre",
                without_egress=without_egress,
            )
            self._security_group = ec2.SecurityGroup.from_security_group_id(self, "Imported", group.attr_group_id)
        # a file system that is removed and added again has another group, and so another log group
        # the value of a tag may have characters that the name of a log group may not have
        logged = label if is_token(label) else _NOT_IN_LOG_GROUPS.sub("-", label)
        log_group = self._log_group(f"{logged}-{groups[0].attr_group_id if groups else stack_part()}")
        log = None if log_level is None else _log_configuration(log_group, log_level)
        self._file_system = fsx.CfnFileSystem(
            self,
            "FileSystem",
            file_system_type="LUSTRE",
            file_system_type_version=rules.LUSTRE_VERSION,
            storage_capacity=capacity_gib,
            storage_type=rules.STORAGE_TYPES[storage_type],
            subnet_ids=[id_of(subnet, "subnet_id")],
            security_group_ids=[id_of(self._security_group, "security_group_id")],
            kms_key_id=kms_key.key_arn if kms_key else None,
            backup_id=from_backup,
            lustre_configuration=fsx.CfnFileSystem.LustreConfigurationProperty(
                deployment_type=rules.DEPLOYMENT_TYPES[deployment_type],
                data_compression_type=_COMPRESSION_TYPES[compression],
                automatic_backup_retention_days=backup_retention_days,
                daily_automatic_backup_start_time=backup_start_time,
                # false is FSx's own default, and without the property backups can be enabled and disabled
                copy_tags_to_backups=copy_tags_to_backups or None,
                weekly_maintenance_start_time=maintenance_window,
                log_configuration=log,
                **_performance(settings),
            ),
            tags=[CfnTag(key="Name", value=label)],
        )
        # each call is one into Node.js, and a file system has many rules and links
        self._file_system.node.add_dependency(*among_servers, *to_clients)
        file_system_id = self.file_system_id
        links = [self._link(repository, file_system_id) for repository in data_repositories]
        # the servers continue to use their group; the rules that name the clients' group are deleted, or it could not
        # be
        for kept in (*groups, *among_servers, self._file_system, *links):
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

    def _log_group(self, words: str) -> logs.CfnLogGroup:
        """Create the group, with or without a log level: retained, it could not be created again."""
        group = logs.CfnLogGroup(
            self,
            "LogGroup",
            log_group_name=f"{rules.LOG_GROUP_PREFIX}{words}",
            retention_in_days=_LOG_RETENTION_DAYS,
        )
        group.apply_removal_policy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)
        acknowledge_log_group(group, is_new=True)
        return group

    def _group(self, vpc: ec2.IVpc, label: str) -> ec2.CfnSecurityGroup:
        return ec2.CfnSecurityGroup(
            self,
            "Group",
            vpc_id=id_of(vpc, "vpc_id"),
            group_description="FSx for Lustre servers",
            # in halves, because CloudFormation removes 0.0.0.0/0 when it creates the rules below
            security_group_egress=[
                ec2.CfnSecurityGroup.EgressProperty(
                    ip_protocol="-1", cidr_ip=half, description="Everything out, to clients and data repositories"
                )
                for half in network.EVERYWHERE_IN_HALVES
            ],
            tags=[CfnTag(key="Name", value=label)],
        )

    def _rules(
        self,
        ways: Mapping[str, tuple[str, str]],
        *,
        ports: Sequence[_Ports],
        description: str,
        without_egress: Sequence[str] = (),
    ) -> Iterator[_Rule]:
        """Open ports from each first group to the second one, on both sides but for the ways ``without_egress``."""
        for label, (source, destination) in ways.items():
            for protocol, first, last in ports:
                suffix = "" if first is None else str(first)
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
                if label in without_egress:
                    continue
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

    def _link(self, repository: DataRepository, file_system_id: str) -> _Link:
        imported, exported = _events(repository.auto_import), _events(repository.auto_export)
        return _Link(
            self,
            f"DataRepository{_spelt(repository.path)}",
            file_system_id=file_system_id,
            file_system_path=repository.path,
            data_repository_path=repository.s3_uri,
            batch_import_meta_data_on_create=repository.batch_import,
            imported_file_chunk_size=repository.imported_file_chunk_size_mib,
            s3=_Link.S3Property(
                auto_import_policy=_Link.AutoImportPolicyProperty(events=imported) if imported else None,
                auto_export_policy=_Link.AutoExportPolicyProperty(events=exported) if exported else None,
            ),
        )


def _completed(settings: rules.Settings) -> rules.Settings:
    """Fill in what FSx or we default to."""
    if settings.storage_type == rules.INTELLIGENT_TIERING:
        iops = rules.TIERING_METADATA_IOPS[0] if settings.metadata_iops is None else settings.metadata_iops
        return replace(settings, metadata_iops=iops)
    if settings.deployment_type == rules.SCRATCH or settings.throughput_mbps_per_tib is not None:
        return settings
    return replace(settings, throughput_mbps_per_tib=rules.DEFAULT_THROUGHPUT_MBPS_PER_TIB)


def _performance(settings: rules.Settings) -> dict[str, Any]:
    """Return the members of LustreConfiguration that say how fast the file system is."""
    if settings.deployment_type == rules.SCRATCH:
        return {}
    found: dict[str, Any] = {
        "efa_enabled": settings.efa,
        "metadata_configuration": fsx.CfnFileSystem.MetadataConfigurationProperty(
            mode="AUTOMATIC" if settings.metadata_iops is None else "USER_PROVISIONED", iops=settings.metadata_iops
        ),
    }
    if settings.read_cache is None:
        return {**found, "per_unit_storage_throughput": settings.throughput_mbps_per_tib}
    return {
        **found,
        "throughput_capacity": settings.throughput_capacity_mbps,
        "data_read_cache_configuration": fsx.CfnFileSystem.DataReadCacheConfigurationProperty(
            sizing_mode=rules.READ_CACHES[settings.read_cache], size_gib=settings.read_cache_gib
        ),
    }


@dataclass(frozen=True)
class _Place:
    """Where a file system is and where its clients are."""

    region: str
    own_zone: str
    client_zones: Sequence[str]


def _problems(settings: rules.Settings, place: _Place, *, has_key: bool) -> Iterator[str]:
    """Yield what is wrong with settings; what one rule refuses is unknown to those after it."""
    known = settings
    wrong_zones = list(_zone_problems(place))
    yield from (f"{key}: {in_python(problem)}" for key, problem in wrong_zones)
    for rule in (
        _value_problems,
        rules.combination_problems,
        _throughput_problems,
        _capacity_problems,
        _metadata_problems,
        _tiering_problems,
        lambda known: _region_problems(known, place.region),
        lambda known: () if wrong_zones else _neighborhood_problems(known, place),
        lambda known: _key_problems(known, has_key=has_key),
    ):
        found = list(certain(iter(rule(known))))
        yield from (f"{_ARGUMENTS.get(key, key)}: {in_python(problem)}" for key, problem in found)
        wrong = {_SETTINGS.get(key, key) for key, _ in found} & _NAMES
        known = replace(known, **dict.fromkeys(wrong, UNKNOWN))


_ARGUMENTS = {"backups": "backup_retention_days"}
_SETTINGS = {
    "backups": "backup_days",
    "backup_retention_days": "backup_days",
    "read_cache.sizing": "read_cache",
    "read_cache.size_gib": "read_cache_gib",
}
"""What a sentence is about -> the setting that is wrong, where their names differ."""

_NAMES = {field.name for field in dataclass_fields(rules.Settings)}


def _value_problems(settings: rules.Settings) -> Iterator[tuple[str, str]]:
    values = {name: getattr(settings, name) for name in ("deployment_type", "storage_type", "efa")}
    yield from refused(fields.Lustre, values)
    for key, problem in refused(fields.ReadCache, {"sizing": settings.read_cache}):
        yield f"read_cache.{key}", problem
    if not is_token(settings.backup_days) and settings.backup_days is not None:
        too_many = rules.BACKUP_RETENTION_DAYS.problem(settings.backup_days, key="backup_retention_days")
        if too_many:
            yield "backup_retention_days", too_many


def _throughput_problems(settings: rules.Settings) -> Iterator[tuple[str, str]]:
    throughput = _completed(settings).throughput_mbps_per_tib
    if throughput is not None and not is_token(throughput) and (problem := rules.throughput_problem(throughput)):
        yield "throughput_mbps_per_tib", problem


def _capacity_problems(settings: rules.Settings) -> Iterator[tuple[str, str]]:
    throughput, capacity = _completed(settings).throughput_mbps_per_tib, settings.capacity_gib
    if capacity is None or is_token(capacity):
        return
    efa = settings.efa and not is_token(throughput)
    if problem := rules.capacity_problem(capacity, throughput_mbps_per_tib=throughput or 0, efa=efa):
        yield "capacity_gib", problem


def _metadata_problems(settings: rules.Settings) -> Iterator[tuple[str, str]]:
    if settings.metadata_iops is None or is_token(settings.metadata_iops):
        return
    tiering = settings.storage_type == rules.INTELLIGENT_TIERING
    judge = rules.tiering_metadata_iops_problem if tiering else rules.metadata_iops_problem
    if problem := judge(settings.metadata_iops):
        yield "metadata_iops", problem


def _tiering_problems(settings: rules.Settings) -> Iterator[tuple[str, str]]:
    in_all, size = settings.throughput_capacity_mbps, settings.read_cache_gib
    if in_all is None or is_token(in_all):
        return
    if problem := rules.tiering_throughput_problem(in_all):
        yield "throughput_capacity_mbps", problem
    elif size is None or is_token(size):
        return
    elif problem := rules.read_cache_problem(size, throughput_capacity_mbps=in_all):
        yield "read_cache.size_gib", problem


def _backup_time_problems(retention_days: int | None, start_time: str | None) -> Iterator[str]:
    if start_time is not None and not retention_days:
        yield f"backup_start_time: {rules.backup_time_problem(start_time, key='backup_retention_days')}"


def _region_problems(settings: rules.Settings, region: str) -> Iterator[tuple[str, str]]:
    kind = rules.DEPLOYMENT_TYPES[settings.deployment_type]
    if problem := rules.region_problem(region, efa=settings.efa, deployment_type=kind):
        yield "region", problem


def _zone_problems(place: _Place) -> Iterator[tuple[str, str]]:
    for key, zones in (
        ("availability_zone_id", [place.own_zone]),
        ("client_availability_zone_ids", place.client_zones),
    ):
        for zone in zones:
            problem = None if is_token(zone) else regions.az_id_problem(zone, region=place.region, key=key)
            if problem:
                yield key, problem


def _neighborhood_problems(settings: rules.Settings, place: _Place) -> Iterator[tuple[str, str]]:
    """Yield what is not offered in the zone, and what its distance from the clients rules out."""
    zone = place.own_zone
    if is_token(zone):
        return
    elsewhere = sorted({each for each in place.client_zones if each != zone and not is_token(each)})
    if settings.efa and elsewhere:
        move = f"put the file system in {elsewhere[0]}"
        yield "efa", rules.far_users_problem(zone, far=f"clients in {joined(elsewhere)}", move=move)
    yield from rules.local_zone_problems(zone, settings)


def _key_problems(settings: rules.Settings, *, has_key: bool) -> Iterator[tuple[str, str]]:
    if has_key and settings.deployment_type == rules.SCRATCH:
        said = f"must be left out with {rules.SCRATCH}, which FSx encrypts with a key of its own; leave it out, or set"
        yield "kms_key", f'{said} deployment_type="persistent_2"'


def _check_data_repositories(repositories: Sequence[DataRepository]) -> None:
    values = [asdict(each) for each in repositories]
    is_known = not any(is_token(value) for each in repositories for value in (each.path, each.s3_uri))
    refuse_all(
        (
            lambda: refuse(fields.Lustre, data_repositories=values if is_known else None),
            lambda: refuse_for(_link_problems(repositories)),
        ),
        lambda: refuse_for(_repository_problems(repositories)),
    )


def _repository_problems(repositories: Sequence[DataRepository]) -> Iterator[str]:
    problem = rules.DATA_REPOSITORIES.count_problem(len(repositories), what="data repositories")
    if problem:
        yield f"data_repositories: {problem}"
    for index, repository in enumerate(repositories):
        for key, events in (("auto_import", repository.auto_import), ("auto_export", repository.auto_export)):
            if problem := repeated_problem(events, key=key):
                yield f"data_repositories[{index}].{problem}"


def _link_problems(repositories: Sequence[DataRepository]) -> Iterator[str]:
    links = [(each.path, each.s3_uri) for each in repositories]
    for index, key, problem in rules.link_problems(links):
        yield f"data_repositories[{index}].{key}: {problem}"


def _spelt(path: str) -> str:
    """Return ``path`` without slashes, which construct IDs cannot contain, and /a/b different from /a-b."""
    return path.replace("%", "%25").replace("-", "%2D").replace("/", "-")


def _log_configuration(group: logs.CfnLogGroup, level: str) -> fsx.CfnFileSystem.LogConfigurationProperty:
    return fsx.CfnFileSystem.LogConfigurationProperty(
        level=rules.LOG_LEVELS[level],
        destination=arn_here("logs", f"log-group:{group.ref}"),
    )


def _events(events: Sequence[Event]) -> list[str]:
    return [event.upper() for event in events]
