"""The storage section: FSx for Lustre file systems and the claims through which pods mount them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Strict

from hyperpod_cdk.catalog import lustre
from hyperpod_cdk.catalog.rules import Bound, Pattern
from hyperpod_cdk.config.instance_group import AvailabilityZoneId
from hyperpod_cdk.config.section import Section, counted, filled, like, one_of, within

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
    example="s3://my-datasets/",
    source="CloudFormation schema AWS::FSx::DataRepositoryAssociation",
)


class DataRepository(Section):
    """A link between a folder of the file system and an S3 prefix."""

    path: Annotated[str, like(LUSTRE_PATH)] = Field(description="Folder of the file system.", examples=["/datasets"])
    s3_uri: Annotated[str, like(S3_URI)] = Field(description="Bucket or prefix.", examples=["s3://my-datasets/"])


class Claim(Section):
    """The persistent volume claim through which pods mount the file system."""

    namespaces: Annotated[tuple[Annotated[str, like(DNS_LABEL)], ...], Strict(strict=False), filled("namespace")] = (
        Field(
            description="Namespaces that get the claim; that of a team is hyperpod-ns-<team>.",
            examples=[["hyperpod-ns-research"]],
        )
    )
    name: Annotated[str, like(DNS_LABEL)] | None = Field(
        default=None, description="Name of the claim in each namespace. Default: the file system's name."
    )


class Lustre(Section):
    """An FSx for Lustre file system (PERSISTENT_2, SSD), kept when its stack is deleted."""

    name: Annotated[str, like(FILE_SYSTEM_NAME)] = Field(
        description="Name within the environment.", examples=["scratch"]
    )
    availability_zone_id: AvailabilityZoneId = Field(
        description="Availability zone ID; the one where the nodes that use it are.", examples=["use1-az5"]
    )
    capacity_gib: Annotated[int, within(Bound(minimum=1))] = Field(
        description=(
            "Capacity in GiB; can grow, never shrink. 1200 or a multiple of 2400; with efa a multiple of 38400,"
            " 19200, 9600 or 4800 at 125, 250, 500 or 1000 MB/s per TiB."
        ),
        examples=[4800],
    )
    throughput_mbps_per_tib: Annotated[
        int,
        one_of(lustre.THROUGHPUTS_MBPS_PER_TIB, lambda value, key: lustre.throughput_problem(value, key=key)),
    ] = Field(default=250, description="Throughput tier in MB/s per TiB.")
    efa: bool = Field(
        default=False,
        description="Whether clients reach it over EFA. Chosen at creation for good, for large systems only.",
    )
    compression: Literal["lz4", "none"] = Field(default="lz4", description="Compression of the data at rest.")
    data_repositories: Annotated[
        tuple[DataRepository, ...], Strict(strict=False), counted(lustre.DATA_REPOSITORIES, "data repositories")
    ] = Field(
        default=(),
        description="S3 prefixes that appear as folders. A file system with one has no backups.",
        examples=[[{"path": "/datasets", "s3_uri": "s3://my-datasets/"}]],
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


class Storage(Section):
    """File systems of the environment."""

    lustre: Annotated[tuple[Lustre, ...], Strict(strict=False)] = Field(
        default=(), description="FSx for Lustre file systems."
    )
