"""Instance types as EC2 and SageMaker describe them, compared with the catalog's row by row: their differences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from hyperpod_cdk.catalog import hyperpod
from hyperpod_cdk.catalog import instance_types as catalog
from hyperpod_cdk_rehearsal.embedded.published import instance_types

MIB_PER_GIB = 1024

GUIDE_ROUNDS = "the catalog has the whole GiB that EC2's guide prints"
NEURON_SAYS = (
    "EC2 answers 512 GiB for each chip and 8 TiB for trn2.48xlarge; AWS Neuron's Trainium2 Architecture Guide says 96 "
    "GiB for each chip, as the catalog does"
)
DIFFERENCES: Mapping[tuple[str, str], tuple[Any, Any, str]] = {
    # field, family: (EC2's answer, the catalog's value, the reason)
    ("accelerator_memory_gib", "g5"): (22.3515625, 22, GUIDE_ROUNDS),
    ("accelerator_memory_gib", "g6"): (22.3515625, 22, GUIDE_ROUNDS),
    ("accelerator_memory_gib", "gr6"): (22.3515625, 22, GUIDE_ROUNDS),
    ("accelerator_memory_gib", "g6e"): (44.703125, 44, GUIDE_ROUNDS),
    ("accelerator_memory_gib", "p6-b200"): (179.0615234375, 179, GUIDE_ROUNDS),
    ("accelerator_memory_gib", "p6-b300"): (268.59375, 268, GUIDE_ROUNDS),
    ("accelerator_memory_gib", "trn2"): (512.0, 96, NEURON_SAYS),
}
OTHER_NAMES = {"rtx-pro-6000": "rtx-pro-server-6000"}
"""Accelerators whose name in the catalog, the one that NVIDIA's documents have, is not EC2's."""


def ec2_values(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an answer of DescribeInstanceTypes says, by the fields of the catalog."""
    processor, network, threads = answer["ProcessorInfo"], answer["NetworkInfo"], answer["VCpuInfo"]
    gpus = (answer.get("GpuInfo") or {}).get("Gpus", [])
    devices = gpus or (answer.get("NeuronInfo") or {}).get("NeuronDevices", [])
    values = {
        "architecture": next(each for each in processor["SupportedArchitectures"] if each != "i386"),
        "vcpu": threads["DefaultVCpus"],
        "memory_gib": answer["MemoryInfo"]["SizeInMiB"] / MIB_PER_GIB,
        "network_cards": network["MaximumNetworkCards"],
        "max_enis": network["MaximumNetworkInterfaces"],
        "ips_per_eni": network["Ipv4AddressesPerInterface"],
        "efa_supported": network["EfaSupported"],
        "default_threads_per_core": threads["DefaultThreadsPerCore"],
        "accelerator_count": sum(each["Count"] for each in devices),
        "accelerator_memory_gib": next((each["MemoryInfo"]["SizeInMiB"] / MIB_PER_GIB for each in devices), None),
    }
    if "EfaInfo" in network or not network["EfaSupported"]:
        values["efa_count"] = network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0)
    if "ValidThreadsPerCore" in threads:
        values["valid_threads_per_core"] = tuple(threads["ValidThreadsPerCore"])
    return values


def rows() -> list[catalog.InstanceType]:
    return [row for name in instance_types.cluster_types() if (row := catalog.get(name)) is not None]


def test_clusters_take_the_same_types() -> None:
    assert set(instance_types.cluster_types()) == set(catalog.names())


def test_of_each_type_of_a_cluster_there_is_material() -> None:
    """A type that botocore names before moto has it must be restated, or the embedded AWS judges nothing about it."""
    assert [name for name in instance_types.cluster_types() if instance_types.described(name) is None] == []


def test_what_moto_has_is_not_restated() -> None:
    from moto.ec2.models.instance_types import INSTANCE_TYPES  # noqa: PLC0415 - after the account id is set

    assert not set(instance_types.RESTATED) & set(INSTANCE_TYPES)


def test_ec2_says_the_same_but_for_the_differences() -> None:
    seen = set()
    for row in rows():
        answer = instance_types.answer(row.name)
        assert answer is not None, row.name
        for field, value in ec2_values(answer).items():
            ours = getattr(row, field)
            if value != ours:
                known = DIFFERENCES.get((field, row.family), ())
                assert known[:2] == (value, ours), (row.name, field, value, ours)
                seen.add((field, row.family))
    assert seen == set(DIFFERENCES), "a difference that is none any more"


def test_what_requests_are_judged_by_is_ec2s_answer() -> None:
    for row in rows():
        found = instance_types.described(row.name)
        assert found is not None
        assert (
            *(found.vcpu, found.memory_gib, found.threads_per_core, found.accelerators),
            *(found.network_cards, found.addresses_per_interface, found.has_efa),
        ) == (
            *(row.vcpu, row.memory_gib, row.default_threads_per_core, row.accelerator_count),
            *(row.network_cards, row.ips_per_eni, row.efa_supported),
        ), row.name


def test_accelerators_have_the_same_names() -> None:
    for row in rows():
        answer = instance_types.answer(row.name) or {}
        devices = (answer.get("GpuInfo") or {}).get("Gpus") or (answer.get("NeuronInfo") or {}).get("NeuronDevices")
        named = devices[0].get("Name") if devices else None
        if named is not None:
            ours = (row.accelerator_kind or "").partition("-")[2]
            assert OTHER_NAMES.get(ours, ours) == named.lower().replace(" ", "-"), row.name


def test_a_node_takes_as_many_addresses() -> None:
    for row in rows():
        found = instance_types.described(row.name)
        assert found is not None
        for efa_only in (False, True):
            assert found.addresses_per_node(efa_only=efa_only) == row.addresses_per_node(efa_only=efa_only), row.name


@pytest.mark.parametrize(
    ("name", "addresses"),
    # the guide's own number, and EC2's tables of network interfaces
    [("ml.p5.48xlarge", 81), ("ml.g5.8xlarge", 30), ("ml.t3.medium", 6)],
)
def test_addresses_of_a_node(name: str, addresses: int) -> None:
    found = instance_types.described(name)
    assert found is not None
    assert found.addresses_per_node(efa_only=False) == addresses


def test_the_same_types_have_health_checks_partitions_plans_and_ultraservers() -> None:
    for row in rows():
        assert instance_types.has_deep_health_checks(row.name) == row.deep_health_check, row.name
        assert instance_types.partitions(row.name) == row.mig_profiles, row.name
        assert (row.name in instance_types.plan_types()) == row.training_plan_supported, row.name
        ultraserver = hyperpod.ultraserver(row.name)
        assert (row.name in instance_types.WITH_ULTRASERVERS) == (ultraserver is not None), row.name


def test_of_an_unknown_type_nothing_is_assumed() -> None:
    assert instance_types.described("ml.p99.48xlarge") is None
    assert not instance_types.has_deep_health_checks("ml.p99.48xlarge")
    assert instance_types.partitions("ml.p99.48xlarge") == ()
