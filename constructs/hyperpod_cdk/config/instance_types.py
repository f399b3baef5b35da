"""The instance_types section: numbers of instance types that the catalog does not know yet."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from hyperpod_cdk.catalog import hyperpod
from hyperpod_cdk.catalog.instance_types import InstanceType
from hyperpod_cdk.catalog.rules import Bound, Pattern
from hyperpod_cdk.config.section import Section, like, within

ACCELERATOR_KIND = Pattern(
    regex=r"(nvidia|aws)-[a-z0-9-]+",
    maximum=40,
    describes="nvidia- or aws- and the model in lower case",
    example="nvidia-h100",
)
_Count = Annotated[int, within(Bound(minimum=0))]
_Positive = Annotated[int, within(Bound(minimum=1))]


class StatedInstanceType(Section):
    """The properties of one instance type, as listed in the EC2 user guide."""

    vcpu: _Positive = Field(description="Number of vCPUs.", examples=[192])
    memory_gib: _Positive = Field(description="Memory of the instance in GiB.", examples=[2048])
    architecture: Literal["x86_64", "arm64"] = Field(default="x86_64", description="Processor architecture.")
    accelerator_kind: Annotated[str, like(ACCELERATOR_KIND)] | None = Field(
        default=None, description="Manufacturer and model of the accelerators. Default: the type has no accelerators."
    )
    accelerator_count: _Count = Field(default=0, description="Number of accelerators per instance.")
    accelerator_memory_gib: _Positive | None = Field(default=None, description="Memory of one accelerator in GiB.")
    efa_count: _Count = Field(
        default=0, description="Number of EFA interfaces per instance; 0 if the type does not support EFA."
    )
    rdma: bool = Field(
        default=False, description="Whether EFA supports RDMA read and write on this type (Nitro v4 and later)."
    )
    network_cards: _Positive = Field(default=1, description="Number of network cards per instance.")
    ips_per_node: _Positive | None = Field(
        default=None,
        description=(
            "Number of IP addresses that one node uses in its subnet: those of the primary interface (at most"
            " 50) and one for each other network card. Default: unknown; the size of the node CIDR block is"
            " then not checked."
        ),
    )
    threads_per_core: Annotated[int, within(hyperpod.THREADS_PER_CORE)] = Field(
        default=2, description="Threads per CPU core: 2 if the type has SMT, otherwise 1."
    )
    training_plan_supported: bool = Field(default=False, description="Whether AWS sells training plans for this type.")

    def as_catalog_row(self, name: str) -> InstanceType:
        """Return the numbers in the catalog's own shape, so that every rule reads them alike."""
        ec2_name = name.removeprefix("ml.")
        return InstanceType(
            name=name,
            ec2_name=ec2_name,
            family=ec2_name.partition(".")[0],
            architecture=self.architecture,
            vcpu=self.vcpu,
            memory_gib=self.memory_gib,
            accelerator_kind=self.accelerator_kind,
            accelerator_count=self.accelerator_count,
            accelerator_memory_gib=self.accelerator_memory_gib,
            efa_supported=self.efa_count > 0,
            efa_count=self.efa_count,
            network_cards=self.network_cards,
            rdma_read=self.rdma,
            rdma_write=self.rdma,
            fsx_efa_client=self.rdma,
            ips_per_node=self.ips_per_node,
            default_threads_per_core=self.threads_per_core,
            valid_threads_per_core=tuple(range(1, self.threads_per_core + 1)),
            deep_health_check=self.accelerator_count > 0,
            training_plan_supported=self.training_plan_supported,
        )
