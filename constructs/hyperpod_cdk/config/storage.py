"""The storage section: FSx for Lustre file systems, S3 buckets, and the claims through which pods mount them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Strict

from hyperpod_cdk.catalog import kubernetes, lustre
from hyperpod_cdk.catalog.arns import KMS_KEY_ARN
from hyperpod_cdk.catalog.kubernetes import DNS_LABEL
from hyperpod_cdk.catalog.rules import Bound, Pattern
from hyperpod_cdk.catalog.s3_places import (
    BUCKET,
    MOUNT_PREFIX,
    S3_URI,
)
from hyperpod_cdk.config.instance_group import AvailabilityZoneId
from hyperpod_cdk.config.section import PAIRED_BRACKETS, Check, Section, counted, filled, like, one_of, within

FILE_SYSTEM_NAME = Pattern(
    regex=kubernetes.DNS_1035_LABEL_REGEX,
    maximum=30,
    describes="1 to 30 lower-case letters, digits and hyphens, beginning with a letter, ending with a letter or digit",
    example="scratch",
)
POSIX_ID = Bound(minimum=0, maximum=4294967294)
"""The user and group IDs that Linux accepts."""

Event = Literal["new", "changed", "deleted"]


class DataRepository(Section):
    """A data repository association: a link between a folder of the file system and an S3 prefix."""

    path: Annotated[str, like(lustre.PATH)] = Field(
        description="Folder of the file system. A change replaces the link.", examples=["/datasets"]
    )
    s3_uri: Annotated[str, like(S3_URI)] = Field(
        description="Existing bucket or prefix. A change replaces the link.", examples=["s3://my-datasets/"]
    )
    auto_import: Annotated[tuple[Event, ...], Strict(strict=False)] = Field(
        default=("new", "changed", "deleted"),
        description="Which changes in the bucket are imported to the folder automatically.",
        examples=[["new", "changed"]],
    )
    auto_export: Annotated[tuple[Event, ...], Strict(strict=False)] = Field(
        default=("new", "changed"),
        description="Which changes in the folder are exported to the bucket automatically.",
        examples=[["new", "changed", "deleted"]],
    )
    batch_import: bool = Field(
        default=True,
        description=(
            "Whether the current content of the bucket is imported when the link is created. A change"
            " replaces the link."
        ),
    )
    imported_file_chunk_size_mib: Annotated[int, within(lustre.IMPORTED_FILE_CHUNK_SIZE_MIB)] | None = Field(
        default=None,
        description="Maximum amount of data of an imported file on one disk, in MiB. Default: FSx's default, 1024.",
        examples=[2048],
    )


class ReadCache(Section):
    """The SSD read cache of an Intelligent-Tiering file system."""

    sizing: Literal["none", "proportional", "provisioned"] = Field(
        description=(
            "none: no read cache. proportional: the size is proportional to the throughput. provisioned: the"
            " size is size_gib."
        ),
        examples=["proportional"],
    )
    size_gib: Annotated[int, within(Bound(minimum=1))] | None = Field(
        default=None,
        description="Size in GiB: 32 to 131072 for each 4000 MB/s of throughput. Only with sizing: provisioned.",
        examples=[4096],
    )


class Backups(Section):
    """Automatic daily backups of FSx."""

    retention_days: Annotated[int, within(lustre.BACKUP_RETENTION_DAYS)] = Field(
        description="Number of days to retain a backup; 0 disables backups.", examples=[7]
    )
    start_time: Annotated[str, like(lustre.DAILY_TIME)] | None = Field(
        default=None, description="Time of day in UTC, HH:MM, in quotes. Default: chosen by FSx.", examples=["03:00"]
    )
    copy_tags: bool = Field(
        default=False,
        description=(
            "Whether backups get the tags of the file system. Set when the file system is created: a change"
            " replaces the file system, also if you add or remove backups with this setting."
        ),
    )


class ExistingLustre(Section):
    """An existing file system with another owner. Nothing of it is created or changed; pods only get claims for it."""

    file_system_id: Annotated[str, like(lustre.FILE_SYSTEM_ID)] = Field(
        description=(
            "ID of the file system, in the VPC of network.existing. The file system of a claim cannot change:"
            " for another file system, use another claim.name."
        ),
        examples=["fs-0a1b2c3d4e5f67890"],
    )
    mount_name: Annotated[str, like(lustre.MOUNT_NAME)] = Field(
        description="Mount name of the file system (LustreConfiguration.MountName).", examples=["abcdefgh"]
    )
    dns_name: Annotated[str, like(lustre.DNS_NAME)] | None = Field(
        default=None,
        description=(
            "DNS name of the file system. Default: <file_system_id>.fsx.<region> with the domain of the partition."
        ),
        examples=["fs-0a1b2c3d4e5f67890.fsx.us-east-1.amazonaws.com"],
    )
    capacity_gib: Annotated[int, within(Bound(minimum=1, maximum=lustre.LARGEST_CAPACITY_GIB))] = Field(
        default=lustre.SMALLEST_CAPACITY_GIB,
        description="Size that the persistent volumes state, in GiB. Nothing depends on it.",
        examples=[4800],
    )


class Claim(Section):
    """The persistent volume claim through which pods mount a file system or a bucket."""

    namespaces: Annotated[tuple[Annotated[str, like(DNS_LABEL)], ...], Strict(strict=False), filled("namespace")] = (
        Field(
            description="Namespaces in which the claim is created; the namespace of a team is hyperpod-ns-<team>.",
            examples=[["hyperpod-ns-research"]],
        )
    )
    name: Annotated[str, like(DNS_LABEL)] | None = Field(
        default=None,
        description="Name of the claim in each namespace. Default: the name of the file system or bucket entry.",
    )


_STEPS_ALONE = Check(lambda _value, _key: None, "bounds", {"minimum": lustre.SMALLEST_CAPACITY_GIB})
"""The smallest capacity, for editors: which ones there are depends on other fields, and is a rule of the file."""


class Lustre(Section):
    """An FSx for Lustre file system, which is retained when its stack is deleted; or an existing file system."""

    name: Annotated[str, like(FILE_SYSTEM_NAME)] = Field(
        description="Name of the file system within the environment.", examples=["scratch"]
    )
    availability_zone_id: AvailabilityZoneId = Field(
        description=(
            "Availability Zone ID; use the zone of the nodes that use the file system. A change replaces the"
            " file system."
        ),
        examples=["use1-az5"],
    )
    deployment_type: Literal["persistent_2", "scratch_2"] = Field(
        default="persistent_2",
        description=(
            "persistent_2: data is preserved if a server fails. scratch_2: data is lost if a server fails;"
            " there are no throughput tiers, no backups and no EFA. A change replaces the file system."
        ),
    )
    storage_type: Literal["ssd", "intelligent_tiering"] = Field(
        default="ssd",
        description=(
            "ssd: the size is capacity_gib. intelligent_tiering: the size grows and shrinks with the data;"
            " needs throughput_capacity_mbps and read_cache. Cannot be changed after creation."
        ),
    )
    capacity_gib: Annotated[int, _STEPS_ALONE] | None = Field(
        default=None,
        description=(
            "Capacity in GiB, for ssd. Can only be increased. 1200 or a multiple of 2400; with efa, a"
            " multiple of 38400, 19200, 9600 or 4800 at 125, 250, 500 or 1000 MB/s per TiB."
        ),
        examples=[4800],
    )
    throughput_mbps_per_tib: (
        Annotated[
            int,
            one_of(lustre.THROUGHPUTS_MBPS_PER_TIB, lambda value, key: lustre.throughput_problem(value, key=key)),
        ]
        | None
    ) = Field(
        default=None,
        description=(
            "Throughput tier in MB/s per TiB, for persistent_2 on ssd. With efa it cannot be changed. Default: 250."
        ),
        examples=[250],
    )
    throughput_capacity_mbps: (
        Annotated[int, Check(lambda value, key: lustre.tiering_throughput_problem(value, key=key), "bounds")] | None
    ) = Field(
        default=None,
        description="Throughput in MB/s, for intelligent_tiering: a multiple of 4000. Can only be increased.",
        examples=[4000],
    )
    read_cache: ReadCache | None = Field(
        default=None,
        description="SSD read cache. Required for intelligent_tiering.",
        examples=[{"sizing": "proportional"}],
    )
    metadata_iops: Annotated[int, within(Bound(minimum=1))] | None = Field(
        default=None,
        description=(
            "Metadata operations per second, for persistent_2: 1500, 3000, 6000 or a multiple of 12000 up to"
            " 192000 on ssd, 6000 or 12000 on intelligent_tiering. Can only be increased. Default: automatic,"
            " depending on the capacity; 6000 on intelligent_tiering."
        ),
        examples=[12000],
    )
    efa: bool = Field(
        default=False,
        description=(
            "Whether clients can use EFA; the lifecycle scripts configure the nodes for it:"
            " docs/lifecycle-scripts.md. Only for large file systems. Cannot be changed after creation."
        ),
    )
    compression: Literal["lz4", "none"] = Field(default="lz4", description="Compression of the stored data.")
    data_repositories: Annotated[
        tuple[DataRepository, ...], Strict(strict=False), counted(lustre.DATA_REPOSITORIES, "data repositories")
    ] = Field(
        default=(),
        description="S3 prefixes that appear as folders. A file system with data repositories cannot have backups.",
        examples=[[{"path": "/datasets", "s3_uri": "s3://my-datasets/"}]],
    )
    backups: Backups | None = Field(
        default=None,
        description="Daily backups, for persistent_2 without data_repositories. Default: none.",
        examples=[{"retention_days": 7, "start_time": "03:00"}],
    )
    from_backup: Annotated[str, like(lustre.BACKUP_ID)] | None = Field(
        default=None,
        description=(
            "ID of the backup from which the file system is created, with the same capacity. A change"
            " replaces the file system, so keep this field after the restore."
        ),
        examples=["backup-0a1b2c3d4e5f67890"],
    )
    maintenance_window: Annotated[str, like(lustre.WEEKLY_TIME)] | None = Field(
        default=None,
        description=(
            "Start of the weekly maintenance window in UTC, d:HH:MM in quotes, where 1 is Monday. Default:"
            " chosen by FSx."
        ),
        examples=["7:03:00"],
    )
    log_level: Literal["warnings", "errors", "warnings_and_errors"] | None = Field(
        default=None,
        description=(
            "Which events of the data repositories are logged, in the file system's own log group"
            " /aws/fsx/<environment>-<name>. Default: none."
        ),
        examples=["warnings_and_errors"],
    )
    existing: ExistingLustre | None = Field(
        default=None,
        description="An existing file system. Its owner decides everything except name, zone and claim.",
        examples=[{"file_system_id": "fs-0a1b2c3d4e5f67890", "mount_name": "abcdefgh"}],
    )
    claim: Claim | None = Field(
        default=None,
        description="Claim through which pods mount it. Default: none.",
        examples=[{"namespaces": ["hyperpod-ns-research"], "name": "scratch"}],
    )

    @property
    def resolved_claim_name(self) -> str:
        """The claim's name, or its default."""
        return self.name if self.claim is None or self.claim.name is None else self.claim.name

    @property
    def is_tiering(self) -> bool:
        """Whether its storage is Intelligent-Tiering."""
        return self.storage_type == lustre.INTELLIGENT_TIERING

    @property
    def resolved_throughput_mbps_per_tib(self) -> int | None:
        """The throughput tier, or its default; None if there are no tiers."""
        if self.throughput_mbps_per_tib is not None or self.is_tiering or self.deployment_type == lustre.SCRATCH:
            return self.throughput_mbps_per_tib
        return lustre.DEFAULT_THROUGHPUT_MBPS_PER_TIB

    @property
    def resolved_metadata_iops(self) -> int | None:
        """The metadata operations per second, or the default of Intelligent-Tiering; None is automatic."""
        return lustre.TIERING_METADATA_IOPS[0] if self.is_tiering and self.metadata_iops is None else self.metadata_iops

    @property
    def provisioned_metadata_iops(self) -> int | None:
        """The metadata operations per second that FSx provisions in either mode; None if it does not provision any."""
        metadata_iops = self.resolved_metadata_iops
        if metadata_iops is None and self.deployment_type != lustre.SCRATCH:
            return lustre.automatic_metadata_iops(self.capacity_gib or 0)
        return metadata_iops

    @property
    def address_count(self) -> int:
        """How many addresses its servers use in the subnet."""
        return lustre.ip_addresses(
            self.capacity_gib,
            metadata_iops=self.provisioned_metadata_iops,
            throughput_capacity_mbps=self.throughput_capacity_mbps,
            efa_throughput_mbps_per_tib=self.resolved_throughput_mbps_per_tib if self.efa else None,
        )

    @property
    def volume_capacity_gib(self) -> int:
        """The size that persistent volumes state, in GiB."""
        if self.existing is not None:
            return self.existing.capacity_gib
        return lustre.SMALLEST_CAPACITY_GIB if self.capacity_gib is None else self.capacity_gib


class S3Volume(Section):
    """An existing S3 bucket, or a prefix of it, that pods mount with Mountpoint for Amazon S3."""

    name: Annotated[str, like(FILE_SYSTEM_NAME)] = Field(
        description="Name of the volume within the environment.", examples=["checkpoints"]
    )
    bucket: Annotated[str, like(BUCKET)] = Field(
        description=(
            "Name of an existing bucket, in the Region of the environment. The bucket is never created or"
            " deleted. The bucket of a claim cannot change: for another bucket, use another claim.name."
        ),
        examples=["my-checkpoints"],
    )
    prefix: Annotated[str, like(MOUNT_PREFIX), PAIRED_BRACKETS] = Field(
        default="", description="Prefix to mount, ending with /. Default: the whole bucket.", examples=["runs/"]
    )
    read_only: bool = Field(
        default=False,
        description=(
            "Whether pods can only read. This cannot be changed for a claim: to change it, use another claim.name."
        ),
    )
    allow_delete: bool = Field(default=False, description="Whether pods can delete objects.")
    allow_overwrite: bool = Field(default=False, description="Whether pods can overwrite objects.")
    uid: Annotated[int, within(POSIX_ID)] | None = Field(
        default=None,
        description="User ID of the owner of the files. Default: root; set it if pods run as another user.",
        examples=[1000],
    )
    gid: Annotated[int, within(POSIX_ID)] | None = Field(
        default=None, description="Group ID of the files. Default: the group of root.", examples=[1000]
    )
    kms_key_arn: Annotated[str, like(KMS_KEY_ARN)] | None = Field(
        default=None,
        description=(
            "KMS key of the objects in the bucket. Its key policy must allow the account to use it. Default:"
            " S3's own key."
        ),
        examples=[KMS_KEY_ARN.example],
    )
    claim: Claim = Field(
        description="Claim through which pods mount it.", examples=[{"namespaces": ["hyperpod-ns-research"]}]
    )

    @property
    def resolved_claim_name(self) -> str:
        """The claim's name, or its default."""
        return self.name if self.claim.name is None else self.claim.name


class Storage(Section):
    """File systems and buckets of the environment."""

    lustre: Annotated[tuple[Lustre, ...], Strict(strict=False)] = Field(
        default=(), description="FSx for Lustre file systems."
    )
    s3: Annotated[tuple[S3Volume, ...], Strict(strict=False)] = Field(
        default=(), description="Existing S3 buckets that pods mount as folders."
    )

    @property
    def made_lustre(self) -> tuple[Lustre, ...]:
        """The file systems that the environment creates."""
        return tuple(system for system in self.lustre if system.existing is None)
