"""The storage section: FSx for Lustre file systems, S3 buckets, and the claims through which pods mount them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Strict

from hyperpod_cdk.catalog import lustre
from hyperpod_cdk.catalog.arns import KMS_KEY_ARN
from hyperpod_cdk.catalog.rules import Bound, Pattern
from hyperpod_cdk.config.instance_group import AvailabilityZoneId
from hyperpod_cdk.config.section import PAIRED_BRACKETS, Check, Section, counted, filled, like, one_of, within

DNS_LABEL = Pattern(
    regex=r"[a-z0-9]([-a-z0-9]*[a-z0-9])?",
    maximum=63,
    describes="1 to 63 lower-case letters, digits and hyphens, beginning and ending with a letter or digit",
    example="scratch",
)
FILE_SYSTEM_NAME = Pattern(
    regex=r"[a-z]([-a-z0-9]*[a-z0-9])?",
    maximum=30,
    describes="1 to 30 lower-case letters, digits and hyphens, beginning with a letter, ending with a letter or digit",
    example="scratch",
)
LUSTRE_PATH = Pattern(
    regex=r"/[^\x00\x85\u2028\u2029\r\n]*",
    maximum=4096,
    describes="an absolute path in the file system of at most 4096 characters",
    example="/datasets",
    source="CloudFormation schema AWS::FSx::DataRepositoryAssociation",
)
S3_URI = Pattern(
    regex=r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[^\x00\x85\u2028\u2029\r\n]*)?",
    maximum=4357,
    describes="the S3 address of a bucket or a prefix",
    refers=True,
    example="s3://my-datasets/",
    source="CloudFormation schema AWS::FSx::DataRepositoryAssociation",
)
BUCKET = Pattern(
    regex=r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]",
    minimum=3,
    maximum=63,
    describes="the name of an S3 bucket, without s3://",
    refers=True,
    example="my-checkpoints",
)
PREFIX = Pattern(
    # what Mountpoint takes as one word of its options, and IAM not for a wildcard
    regex=r"([0-9A-Za-z!_.'()=+@:,-][0-9A-Za-z!_.'()=+@:,/-]*/)?",
    minimum=0,
    maximum=900,
    describes="empty, or a prefix that ends with / and does not begin with it, without spaces, * and ?",
    example="runs/",
)
FILE_SYSTEM_ID = Pattern(
    regex=r"fs-[0-9a-f]{8,17}",
    minimum=11,
    maximum=20,
    describes="the ID of an FSx file system",
    refers=True,
    example="fs-0a1b2c3d4e5f67890",
)
MOUNT_NAME = Pattern(
    regex=r"[A-Za-z0-9_-]+",
    maximum=8,
    describes="the mount name that FSx gave the file system, 1 to 8 letters, digits, - or _",
    refers=True,
    example="abcdefgh",
)
DNS_NAME = Pattern(
    regex=r"[a-z0-9-]+([.][a-z0-9-]+)+",
    minimum=4,
    maximum=253,
    describes="the DNS name of the file system",
    refers=True,
    example="fs-0a1b2c3d4e5f67890.fsx.us-east-1.amazonaws.com",
)
BACKUP_ID = Pattern(
    regex=r"backup-[0-9a-f]{8,}",
    minimum=15,
    maximum=128,
    describes="the ID of an FSx backup",
    refers=True,
    example="backup-0a1b2c3d4e5f67890",
    source="botocore fsx, BackupId",
)
DAILY_TIME = Pattern(
    regex=r"([01][0-9]|2[0-3]):[0-5][0-9]",
    minimum=5,
    maximum=5,
    describes="a time of day in UTC, HH:MM",
    example="03:00",
    source="botocore fsx, DailyTime",
)
WEEKLY_TIME = Pattern(
    regex=r"[1-7]:([01][0-9]|2[0-3]):[0-5][0-9]",
    minimum=7,
    maximum=7,
    describes="a day of the week (1 is Monday) and a time in UTC, d:HH:MM",
    example="7:03:00",
    source="botocore fsx, WeeklyTime",
)
POSIX_ID = Bound(minimum=0, maximum=4294967294)
"""What Linux takes for a user or a group."""

Event = Literal["new", "changed", "deleted"]


class DataRepository(Section):
    """A link between a folder of the file system and an S3 prefix."""

    path: Annotated[str, like(LUSTRE_PATH)] = Field(
        description="Folder of the file system. Another one is another link.", examples=["/datasets"]
    )
    s3_uri: Annotated[str, like(S3_URI)] = Field(
        description="Bucket or prefix, which exists. Another one is another link.", examples=["s3://my-datasets/"]
    )
    auto_import: Annotated[tuple[Event, ...], Strict(strict=False)] = Field(
        default=("new", "changed", "deleted"),
        description="Changes in the bucket that show in the folder by themselves.",
        examples=[["new", "changed"]],
    )
    auto_export: Annotated[tuple[Event, ...], Strict(strict=False)] = Field(
        default=("new", "changed"),
        description="Changes in the folder that are written to the bucket by themselves.",
        examples=[["new", "changed", "deleted"]],
    )
    batch_import: bool = Field(
        default=True,
        description="Whether what is in the bucket shows at once. Another value is another link.",
    )
    imported_file_chunk_size_mib: Annotated[int, within(lustre.IMPORTED_FILE_CHUNK_SIZE_MIB)] | None = Field(
        default=None,
        description="Most of an imported file on one disk, in MiB. Default: FSx's, 1024.",
        examples=[2048],
    )


class ReadCache(Section):
    """The SSD read cache of an Intelligent-Tiering file system."""

    sizing: Literal["none", "proportional", "provisioned"] = Field(
        description="none, proportional to the throughput, or provisioned with size_gib.", examples=["proportional"]
    )
    size_gib: Annotated[int, within(Bound(minimum=1))] | None = Field(
        default=None,
        description="Size in GiB: 32 to 131072 for each 4000 MB/s of throughput. Only with sizing: provisioned.",
        examples=[4096],
    )


class Backups(Section):
    """Daily backups that FSx makes by itself."""

    retention_days: Annotated[int, within(lustre.BACKUP_RETENTION_DAYS)] = Field(
        description="Days that a backup is kept; 0 switches backups off.", examples=[7]
    )
    start_time: Annotated[str, like(DAILY_TIME)] | None = Field(
        default=None, description="Time of day in UTC, HH:MM, in quotes. Default: FSx's choice.", examples=["03:00"]
    )
    copy_tags: bool = Field(
        default=False,
        description=(
            "Whether backups carry the file system's tags. Chosen with the file system: a change, adding or removing"
            " backups with it included, replaces the file system."
        ),
    )


class ExistingLustre(Section):
    """A file system that somebody else made and keeps: nothing of it is made or changed, pods get claims only."""

    file_system_id: Annotated[str, like(FILE_SYSTEM_ID)] = Field(
        description="ID of the file system, in the VPC of network.existing. A claim keeps its file system: another one"
        " needs another claim.name.",
        examples=["fs-0a1b2c3d4e5f67890"],
    )
    mount_name: Annotated[str, like(MOUNT_NAME)] = Field(
        description="Its mount name (LustreConfiguration.MountName).", examples=["abcdefgh"]
    )
    dns_name: Annotated[str, like(DNS_NAME)] | None = Field(
        default=None,
        description="Its DNS name. Default: <file_system_id>.fsx.<region> with the partition's domain.",
        examples=["fs-0a1b2c3d4e5f67890.fsx.us-east-1.amazonaws.com"],
    )
    capacity_gib: Annotated[int, within(Bound(minimum=1))] = Field(
        default=lustre.SMALLEST_CAPACITY_GIB,
        description="What the persistent volumes say of their size, in GiB. Nothing depends on it.",
        examples=[4800],
    )


class Claim(Section):
    """The persistent volume claim through which pods mount a file system or a bucket."""

    namespaces: Annotated[tuple[Annotated[str, like(DNS_LABEL)], ...], Strict(strict=False), filled("namespace")] = (
        Field(
            description="Namespaces that get the claim; that of a team is hyperpod-ns-<team>.",
            examples=[["hyperpod-ns-research"]],
        )
    )
    name: Annotated[str, like(DNS_LABEL)] | None = Field(
        default=None, description="Name of the claim in each namespace. Default: the name of what it mounts."
    )


class Lustre(Section):
    """An FSx for Lustre file system, kept when its stack is deleted; or one that exists already."""

    name: Annotated[str, like(FILE_SYSTEM_NAME)] = Field(
        description="Name within the environment.", examples=["scratch"]
    )
    availability_zone_id: AvailabilityZoneId = Field(
        description="Availability zone ID; the one where the nodes that use it are. A change replaces the file system.",
        examples=["use1-az5"],
    )
    deployment_type: Literal["persistent_2", "scratch_2"] = Field(
        default="persistent_2",
        description=(
            "persistent_2 keeps its data when a server fails; scratch_2 does not, and has neither throughput tiers nor"
            " backups nor EFA. A change replaces the file system."
        ),
    )
    storage_type: Literal["ssd", "intelligent_tiering"] = Field(
        default="ssd",
        description=(
            "ssd has capacity_gib; intelligent_tiering grows and shrinks with the data, and has"
            " throughput_capacity_mbps and read_cache. Chosen at creation for good."
        ),
    )
    capacity_gib: Annotated[int, within(Bound(minimum=lustre.SMALLEST_CAPACITY_GIB))] | None = Field(
        default=None,
        description=(
            "Capacity in GiB, for ssd; can grow, never shrink. 1200 or a multiple of 2400; with efa a multiple of"
            " 38400, 19200, 9600 or 4800 at 125, 250, 500 or 1000 MB/s per TiB."
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
        description="Throughput tier in MB/s per TiB, for persistent_2 on ssd. Default: 250. With efa it stays.",
        examples=[250],
    )
    throughput_capacity_mbps: (
        Annotated[int, Check(lambda value, key: lustre.tiering_throughput_problem(value, key=key), "bounds")] | None
    ) = Field(
        default=None,
        description="Throughput in MB/s, for intelligent_tiering: a multiple of 4000, which can only grow.",
        examples=[4000],
    )
    read_cache: ReadCache | None = Field(
        default=None,
        description="SSD read cache, which intelligent_tiering has to state.",
        examples=[{"sizing": "proportional"}],
    )
    metadata_iops: Annotated[int, within(Bound(minimum=1))] | None = Field(
        default=None,
        description=(
            "Metadata operations per second, for persistent_2: 1500, 3000, 6000 or a multiple of 12000 up to 192000 on"
            " ssd, 6000 or 12000 on intelligent_tiering. Can grow only. Default: automatic, by the capacity;"
            " 6000 on intelligent_tiering."
        ),
        examples=[12000],
    )
    efa: bool = Field(
        default=False,
        description=(
            "Whether clients reach it over EFA, for which the lifecycle scripts set nodes up:"
            " docs/lifecycle-scripts.md. Chosen at creation for good, for large systems only."
        ),
    )
    compression: Literal["lz4", "none"] = Field(default="lz4", description="Compression of the data at rest.")
    data_repositories: Annotated[
        tuple[DataRepository, ...], Strict(strict=False), counted(lustre.DATA_REPOSITORIES, "data repositories")
    ] = Field(
        default=(),
        description="S3 prefixes that appear as folders. A file system with one has no backups.",
        examples=[[{"path": "/datasets", "s3_uri": "s3://my-datasets/"}]],
    )
    backups: Backups | None = Field(
        default=None,
        description="Daily backups, for persistent_2 without data_repositories. Default: none.",
        examples=[{"retention_days": 7, "start_time": "03:00"}],
    )
    from_backup: Annotated[str, like(BACKUP_ID)] | None = Field(
        default=None,
        description=(
            "ID of the backup that the file system is made from, of the same capacity. A change replaces the file"
            " system, so it stays after the restore."
        ),
        examples=["backup-0a1b2c3d4e5f67890"],
    )
    maintenance_window: Annotated[str, like(WEEKLY_TIME)] | None = Field(
        default=None,
        description="Begin of the weekly maintenance in UTC, d:HH:MM in quotes, 1 being Monday. Default: FSx's choice.",
        examples=["7:03:00"],
    )
    log_level: Literal["warnings", "errors", "warnings_and_errors"] | None = Field(
        default=None,
        description=(
            "What goes to a log group of the file system's own about its data repositories,"
            " /aws/fsx/<environment>-<name>. Default: nothing."
        ),
        examples=["warnings_and_errors"],
    )
    existing: ExistingLustre | None = Field(
        default=None,
        description="A file system that exists already. Then everything else but name, zone and claim is its owner's.",
        examples=[{"file_system_id": "fs-0a1b2c3d4e5f67890", "mount_name": "abcdefgh"}],
    )
    claim: Claim | None = Field(
        default=None,
        description="Claim through which pods mount it. Default: none.",
        examples=[{"namespaces": ["hyperpod-ns-research"], "name": "scratch"}],
    )

    @property
    def resolved_claim_name(self) -> str:
        """The claim's name, the default filled in."""
        return self.name if self.claim is None or self.claim.name is None else self.claim.name

    @property
    def is_tiering(self) -> bool:
        """Whether its storage is Intelligent-Tiering."""
        return self.storage_type == lustre.INTELLIGENT_TIERING

    @property
    def resolved_throughput_mbps_per_tib(self) -> int | None:
        """The throughput tier, the default filled in; None where there are no tiers."""
        if self.throughput_mbps_per_tib is not None or self.is_tiering or self.deployment_type == lustre.SCRATCH:
            return self.throughput_mbps_per_tib
        return lustre.DEFAULT_THROUGHPUT_MBPS_PER_TIB

    @property
    def resolved_metadata_iops(self) -> int | None:
        """The metadata operations per second, Intelligent-Tiering's default filled in; None is automatic."""
        return lustre.TIERING_METADATA_IOPS[0] if self.is_tiering and self.metadata_iops is None else self.metadata_iops

    @property
    def volume_capacity_gib(self) -> int:
        """What persistent volumes say of their size, in GiB."""
        if self.existing is not None:
            return self.existing.capacity_gib
        return lustre.SMALLEST_CAPACITY_GIB if self.capacity_gib is None else self.capacity_gib


class S3Volume(Section):
    """An S3 bucket, or a prefix of one, that pods mount with Mountpoint for Amazon S3. The bucket exists."""

    name: Annotated[str, like(FILE_SYSTEM_NAME)] = Field(
        description="Name within the environment.", examples=["checkpoints"]
    )
    bucket: Annotated[str, like(BUCKET)] = Field(
        description="Name of the bucket, in the environment's region. It exists: nothing makes or deletes it. A claim"
        " keeps its bucket: another one needs another claim.name.",
        examples=["my-checkpoints"],
    )
    prefix: Annotated[str, like(PREFIX), PAIRED_BRACKETS] = Field(
        default="", description="Prefix that is mounted, ending with /. Default: the whole bucket.", examples=["runs/"]
    )
    read_only: bool = Field(
        default=False,
        description="Whether pods may only read. A claim keeps this: to change it, give it another claim.name.",
    )
    allow_delete: bool = Field(default=False, description="Whether pods may delete objects.")
    allow_overwrite: bool = Field(default=False, description="Whether pods may replace objects.")
    uid: Annotated[int, within(POSIX_ID)] | None = Field(
        default=None,
        description="User that files belong to. Default: root; pods of other users need it stated.",
        examples=[1000],
    )
    gid: Annotated[int, within(POSIX_ID)] | None = Field(
        default=None, description="Group that files belong to. Default: root's.", examples=[1000]
    )
    kms_key_arn: Annotated[str, like(KMS_KEY_ARN)] | None = Field(
        default=None,
        description="KMS key of the bucket's objects; its policy must let the account use it. Default: S3's own.",
        examples=[KMS_KEY_ARN.example],
    )
    claim: Claim = Field(
        description="Claim through which pods mount it.", examples=[{"namespaces": ["hyperpod-ns-research"]}]
    )

    @property
    def resolved_claim_name(self) -> str:
        """The claim's name, the default filled in."""
        return self.name if self.claim.name is None else self.claim.name


class Storage(Section):
    """File systems and buckets of the environment."""

    lustre: Annotated[tuple[Lustre, ...], Strict(strict=False)] = Field(
        default=(), description="FSx for Lustre file systems."
    )
    s3: Annotated[tuple[S3Volume, ...], Strict(strict=False)] = Field(
        default=(), description="S3 buckets, existing ones, that pods mount as folders."
    )

    @property
    def made_lustre(self) -> tuple[Lustre, ...]:
        """The file systems that the environment makes."""
        return tuple(system for system in self.lustre if system.existing is None)
