"""Instance types: which ones a cluster may use, what EC2 says of them, and what HyperPod makes of that.

Which ones: SageMaker's own model, as botocore ships it. Their numbers: answers of ec2:DescribeInstanceTypes, as moto
ships them. A type that moto does not have yet is restated below, in the form of an answer, with its source. Of a type
that is in neither, nothing is known, and nothing is assumed: ``described`` returns None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import botocore.session

MIB_PER_GIB = 1024

RESTATED: Mapping[str, Mapping[str, Any]] = {
    "p6e-gb200.36xlarge": {
        "ProcessorInfo": {"SupportedArchitectures": ["arm64"]},
        "VCpuInfo": {"DefaultVCpus": 144, "DefaultThreadsPerCore": 1},
        "MemoryInfo": {"SizeInMiB": 960 * MIB_PER_GIB},
        "GpuInfo": {"Gpus": [{"Count": 4, "MemoryInfo": {"SizeInMiB": 185 * MIB_PER_GIB}}]},
        "NetworkInfo": {
            "MaximumNetworkCards": 17,
            "MaximumNetworkInterfaces": 39,
            "Ipv4AddressesPerInterface": 50,
            "EfaSupported": True,
        },
    },
}
"""EC2 instance types guide, "Specifications for Amazon EC2 accelerated computing instances" (read 2026-11-29); its one
thread per core is inferred: its processors have Arm Neoverse cores."""

WITH_ULTRASERVERS = frozenset({"ml.p6e-gb200.36xlarge"})
"""Types that are sold as UltraServers only, for which EC2 has Capacity Blocks (``u-p6e-gb200x36``, ``u-p6e-gb200x72``)
and SageMaker training plans: developer guide, "Reserve training plans for your training jobs or HyperPod clusters"."""

_A100_40 = ("1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb")
_OF_80 = ("1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb")
_H200 = ("1g.18gb", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb")
_B200 = ("1g.23gb", "1g.45gb", "2g.45gb", "3g.90gb", "4g.90gb", "7g.180gb")
_B300 = ("1g.34gb", "1g.67gb", "2g.67gb", "3g.135gb", "4g.135gb", "7g.269gb")
_GB200 = ("1g.23gb", "1g.47gb", "2g.47gb", "3g.93gb", "4g.93gb", "7g.186gb")

_PARTITIONS: Mapping[str, tuple[str, ...]] = {
    "ml.p4d.24xlarge": _A100_40,
    "ml.p4de.24xlarge": _OF_80,
    "ml.p5.48xlarge": _OF_80,
    "ml.p5e.48xlarge": _H200,
    "ml.p5en.48xlarge": _H200,
    "ml.p6-b200.48xlarge": _B200,
    "ml.p6-b300.48xlarge": _B300,
    "ml.p6e-gb200.36xlarge": _GB200,
}
"""AWS's aws/sagemaker-hyperpod-cli at 011ca92 (2026-06-22), ``INSTANCE_TYPE_MIG_PROFILES``."""


@dataclass(frozen=True, kw_only=True)
class Described:
    """What EC2 says of a type. ``accelerators`` are its GPUs or Neuron devices."""

    vcpu: int
    memory_gib: float
    threads_per_core: int
    accelerators: int
    network_cards: int
    addresses_per_interface: int
    has_efa: bool

    def addresses_per_node(self, *, efa_only: bool) -> int:
        """Return how many addresses a node takes from its subnet.

        SageMaker AI developer guide, "Prerequisites for using SageMaker HyperPod": "each P5 instance can create 81 IP
        addresses (50 from the primary card plus one from each of the remaining 31 cards)". "You can't assign an IP
        address to an EFA-only network interface" (EC2 user guide, "Create and attach an Elastic Fabric Adapter to an
        Amazon EC2 instance"); "You can't use an EFA-only network interface as the primary network interface" (same
        guide, "Maximize network bandwidth on Amazon EC2 instances with multiple network cards").
        """
        return self.addresses_per_interface + (0 if efa_only else self.network_cards - 1)


@cache
def cluster_types() -> tuple[str, ...]:
    """Return the members of ``ClusterInstanceType``, as botocore ships it."""
    return _enum("ClusterInstanceType")


@cache
def plan_types() -> tuple[str, ...]:
    """Return the members of ``ReservedCapacityInstanceType``: the types that training plans are sold for."""
    return _enum("ReservedCapacityInstanceType")


def answer(instance_type: str) -> Mapping[str, Any] | None:
    """Return what ec2:DescribeInstanceTypes answers for an ``ml.`` type, or None if no material has it."""
    # moto loads after the account id is set
    from moto.ec2.models.instance_types import INSTANCE_TYPES  # noqa: PLC0415

    name = instance_type.removeprefix("ml.")
    found: Mapping[str, Any] | None = INSTANCE_TYPES.get(name) or RESTATED.get(name)
    return found


@cache
def described(instance_type: str) -> Described | None:
    """Return what EC2 says of an ``ml.`` type, or None if no material has it."""
    found = answer(instance_type)
    if found is None:
        return None
    network = found["NetworkInfo"]
    devices = (found.get("GpuInfo") or {}).get("Gpus") or (found.get("NeuronInfo") or {}).get("NeuronDevices") or []
    return Described(
        vcpu=found["VCpuInfo"]["DefaultVCpus"],
        memory_gib=found["MemoryInfo"]["SizeInMiB"] / MIB_PER_GIB,
        threads_per_core=found["VCpuInfo"]["DefaultThreadsPerCore"],
        accelerators=sum(each["Count"] for each in devices),
        network_cards=network["MaximumNetworkCards"],
        addresses_per_interface=network["Ipv4AddressesPerInterface"],
        has_efa=network["EfaSupported"],
    )


def has_deep_health_checks(instance_type: str) -> bool:
    """Return whether HyperPod runs deep health checks on instances of a type.

    SageMaker AI developer guide, "Getting started with Amazon EKS support in SageMaker HyperPod": "The HyperPod deep
    health check and health monitoring agent supports GPU and Trn instances."
    """
    found = described(instance_type)
    return found is not None and found.accelerators > 0


def partitions(instance_type: str) -> tuple[str, ...]:
    """Return the accelerator partitions of a type (``mig-1g.5gb``), none where AWS lists none."""
    return tuple(f"mig-{each}" for each in _PARTITIONS.get(instance_type, ()))


def _enum(name: str) -> tuple[str, ...]:
    shape = botocore.session.get_session().get_service_model("sagemaker").shape_for(name)
    # the stubs know texts without their values
    return tuple(getattr(shape, "enum", ()))
