"""The table of instance types is consistent with botocore, with EC2's values and with itself."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields, replace
from datetime import date
from typing import Any

import pytest

from hyperpod_cdk.catalog import _data, instance_types
from hyperpod_cdk.catalog.instance_types import InstanceType
from tests.support.tables import row_by_row


def known(name: str) -> InstanceType:
    found = instance_types.get(name)
    assert found is not None
    return found


each_row = row_by_row("row", [known(name) for name in instance_types.names()], ids=lambda row: row.name)


def test_names_are_exactly_those_of_the_api_in_its_order(sagemaker_shapes: dict[str, Any]) -> None:
    assert list(instance_types.names()) == sagemaker_shapes["ClusterInstanceType"]["enum"]


def test_training_plans_take_exactly_the_api_s_types(sagemaker_shapes: dict[str, Any]) -> None:
    supported = [name for name in instance_types.names() if known(name).training_plan_supported]
    assert sorted(supported) == sorted(sagemaker_shapes["ReservedCapacityInstanceType"]["enum"])


def test_documented_mig_profiles_are_exactly_those_of_the_api(sagemaker_shapes: dict[str, Any]) -> None:
    api = set(sagemaker_shapes["MIGProfileType"]["enum"])
    rows = [known(name) for name in instance_types.names()]
    documented = {profile for row in rows if row.mig_documented for profile in row.mig_profiles}
    others = {profile for row in rows if not row.mig_documented for profile in row.mig_profiles}
    assert documented <= api
    assert api <= documented | others


def test_mig_profiles_that_no_guide_documents_are_marked() -> None:
    rows = [known(name) for name in instance_types.names()]
    undocumented = [row for row in rows if row.mig_profiles and not row.mig_documented]
    assert [row.name for row in undocumented] == ["ml.p6e-gb200.36xlarge", "ml.p6-b300.48xlarge"]
    assert all(any(mark.startswith("mig_profiles: hyperpod-cli only") for mark in row.unsure) for row in undocumented)


def test_nothing_of_the_reading_was_lost() -> None:
    rows = [known(name) for name in instance_types.names()]
    assert len(rows) == 209
    assert sum(row.is_accelerated for row in rows) == 57
    assert sum(row.training_plan_supported for row in rows) == 11
    assert sum(row.max_pods is not None for row in rows) == 143
    assert sum(row.in_hyperpod_cli_table for row in rows) == 122
    assert sum(bool(row.mig_profiles) for row in rows) == 8
    assert sum(row.mig_documented for row in rows) == 6
    assert sum(row.cluster_quota_code is not None for row in rows) == 134
    assert sum(row.spot_quota_code is not None for row in rows) == 13
    assert sum(row.training_plan_quota_code is not None for row in rows) == 11
    assert sum(row.fsx_efa_client for row in rows) == 41


@each_row
def test_each_row_is_sourced_and_consistent(row: InstanceType) -> None:
    assert row.sources
    assert set(row.sources) <= set(_data.load("instance_types")["sources"])
    assert row.ec2_name == row.name.removeprefix("ml.")
    assert row.family == row.ec2_name.split(".")[0]
    assert row.architecture in {"x86_64", "arm64"}
    assert row.vcpu > 0
    assert row.memory_gib > 0
    assert row.deep_health_check == row.is_accelerated
    assert (row.accelerator_kind is None) == (row.accelerator_count == 0) == (row.accelerator_memory_gib is None)
    assert row.is_accelerated == (row.is_nvidia or row.is_neuron)
    assert not (row.is_nvidia and row.is_neuron)


@each_row
def test_each_row_s_network_is_consistent(row: InstanceType) -> None:
    assert row.network_cards >= 1
    assert row.ips_per_node is not None
    assert row.ips_basis
    assert row.ips_per_node >= row.network_cards
    assert row.efa_supported == (row.efa_count != 0)
    assert row.efa_count is None or row.efa_count <= row.network_cards
    assert row.efa_supported or not (row.rdma_read or row.rdma_write or row.gpudirect_rdma)
    assert row.rdma_read or not row.rdma_write
    assert row.fsx_efa_client <= (row.rdma_read and row.rdma_write)


@each_row
def test_each_row_s_cores_are_consistent(row: InstanceType) -> None:
    assert row.default_threads_per_core in {1, 2}
    assert row.has_smt == (row.default_threads_per_core == 2)
    assert row.cores is not None
    assert row.cores * (row.default_threads_per_core or 0) == row.vcpu
    assert not (row.architecture == "arm64" and row.has_smt)


def test_pods_come_from_the_guide_or_from_the_addresses() -> None:
    row = replace(known("ml.p5.48xlarge"), max_pods=17, ips_per_node=81, network_cards=32)
    assert row.pods_per_node == 17
    assert replace(row, ips_per_node=None).pods_per_node == 17
    assert replace(row, max_pods=None).pods_per_node == 81 - 31 - 1
    assert replace(row, max_pods=None, ips_per_node=None).pods_per_node is None


@each_row
def test_each_quota_name_carries_the_type(row: InstanceType) -> None:
    assert row.cluster_quota_name is not None
    assert row.ec2_name.replace(".", "-") in row.cluster_quota_name.replace(".", "-")
    for name in (row.spot_quota_name, row.training_plan_quota_name):
        assert name is None or row.name in name


def test_no_two_rows_share_a_quota_code() -> None:
    rows = [known(name) for name in instance_types.names()]
    codes = Counter(
        code
        for row in rows
        for code in (row.cluster_quota_code, row.spot_quota_code, row.training_plan_quota_code)
        if code is not None
    )
    assert [code for code, times in codes.items() if times > 1] == []


@row_by_row(
    "name, accelerators, network",
    [
        ("ml.p5.48xlarge", (8, "nvidia-h100", 80), (32, 32, 81)),
        ("ml.p5.4xlarge", (1, "nvidia-h100", 80), (1, 1, 30)),
        ("ml.p5en.48xlarge", (8, "nvidia-h200", 141), (16, 16, 65)),
        ("ml.p4d.24xlarge", (8, "nvidia-a100", 40), (4, 4, 53)),
        ("ml.p6-b300.48xlarge", (8, "nvidia-b300", 268), (16, 17, 66)),
        ("ml.g5.8xlarge", (1, "nvidia-a10g", 22), (1, 1, 30)),
        ("ml.trn1.32xlarge", (16, "aws-trainium", 32), (8, 8, 57)),
        ("ml.trn2.48xlarge", (16, "aws-trainium2", 96), (16, 16, 65)),
        ("ml.m5.2xlarge", (0, None, None), (0, 1, 15)),
    ],
)
def test_types_people_build_clusters_of(
    name: str, accelerators: tuple[int, str | None, int | None], network: tuple[int, int, int]
) -> None:
    row = known(name)
    assert (row.accelerator_count, row.accelerator_kind, row.accelerator_memory_gib) == accelerators
    assert (row.efa_count, row.network_cards, row.ips_per_node) == network


@pytest.mark.parametrize(
    ("name", "reads", "writes", "fsx"),
    [
        ("ml.p5.48xlarge", True, True, True),
        ("ml.g6e.24xlarge", True, True, True),
        ("ml.trn1.32xlarge", True, True, True),
        ("ml.trn2.48xlarge", True, True, False),
        ("ml.p4d.24xlarge", True, False, False),
        ("ml.g5.8xlarge", False, False, False),
        ("ml.c5n.18xlarge", False, False, False),
    ],
)
def test_rdma(name: str, reads: bool, writes: bool, fsx: bool) -> None:  # noqa: FBT001 - columns of the table
    row = known(name)
    assert (row.rdma_read, row.rdma_write, row.fsx_efa_client) == (reads, writes, fsx)


@row_by_row(
    "name, smt",
    [
        ("ml.p5.48xlarge", True),
        ("ml.m5.2xlarge", True),
        ("ml.g5.8xlarge", True),
        ("ml.c6a.large", True),
        ("ml.c7g.medium", False),
        ("ml.m8a.16xlarge", False),
        ("ml.g7.2xlarge", False),
        ("ml.p6e-gb200.36xlarge", False),
    ],
)
def test_smt(name: str, smt: bool) -> None:  # noqa: FBT001 - a column of the table
    assert known(name).has_smt is smt


def test_what_ec2_has_not_shown_is_marked() -> None:
    row = known("ml.p6e-gb200.36xlarge")
    assert "moto-ec2" not in row.sources
    assert any(mark.startswith("default_threads_per_core") for mark in row.unsure)
    assert row.efa_count == 4
    assert any(mark.startswith("efa_count") for mark in row.unsure)


@pytest.mark.parametrize(
    ("name", "addresses"),
    [
        ("ml.g7.2xlarge", 64),
        ("ml.g7.48xlarge", 65),
        ("ml.g7e.48xlarge", 67),
        ("ml.c8a.16xlarge", 64),
        ("ml.g6.xlarge", 15),
    ],
)
def test_a_node_takes_what_the_vpc_cni_takes(name: str, addresses: int) -> None:
    assert known(name).ips_per_node == addresses


@each_row
def test_no_node_is_counted_with_fewer_addresses_than_its_first_interface_has(row: InstanceType) -> None:
    assert (row.ips_per_node or 0) >= (row.ips_per_eni or 0)


def test_what_nobody_states_is_unknown_or_none() -> None:
    row = InstanceType(
        name="ml.x9.large",
        ec2_name="x9.large",
        family="x9",
        architecture="x86_64",
        vcpu=2,
        memory_gib=4,
        network_cards=1,
    )
    assert row.has_smt is None
    assert row.cores is None
    assert (row.accelerator_kind, row.accelerator_count) == (None, 0)
    assert row.efa_count == 0
    flags = {field.name for field in fields(InstanceType) if field.type == "bool"}
    assert len(flags) == 10
    assert [name for name in sorted(flags) if getattr(row, name)] == []
    assert (row.is_accelerated, row.is_nvidia, row.is_neuron) == (False, False, False)


@pytest.mark.parametrize(
    ("cards", "addresses", "efa_only", "used"),
    [(32, 81, False, 81), (32, 81, True, 50), (1, 15, True, 15), (32, 31, True, 1), (32, None, True, None)],
)
def test_efa_only_interfaces_have_no_address(
    cards: int, addresses: int | None, used: int | None, *, efa_only: bool
) -> None:
    row = replace(known("ml.p5.48xlarge"), network_cards=cards, ips_per_node=addresses)
    assert row.addresses_per_node(efa_only=efa_only) == used


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("ml.c5.4xlarge", 4),
        ("ml.p5.48xlarge", 48),
        ("ml.c5.xlarge", 1),
        ("ml.c5.large", 0),
        ("ml.c5.medium", 0),
        ("ml.c5.0xlarge", 0),
        ("ml.c5.metal", None),
        ("4xlarge", None),
        ("", None),
    ],
)
def test_sizes_in_names(name: str, size: int | None) -> None:
    assert instance_types.xlarge(name) == size


def test_the_odd_quota_name_is_kept() -> None:
    row = known("ml.r7i.12xlarge")
    assert (row.cluster_quota_name, row.cluster_quota_code) == (
        "cluster-ml-r7i-12xlarge for cluster usage",
        "L-EB92BE12",
    )


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("ml.p5.48xlarge", "ml.p5.48xlarge"),
        ("p5.48xlarge", "ml.p5.48xlarge"),
        ("ML.P5.48XLARGE", "ml.p5.48xlarge"),
        ("ml.p5.48xlage", "ml.p5.48xlarge"),
        ("ml.p5en.48xlrge", "ml.p5en.48xlarge"),
        ("ml.g5.8xl", "ml.g5.8xlarge"),
        ("hopper", None),
    ],
)
def test_closest(text: str, meant: str | None) -> None:
    assert instance_types.closest(text) == meant


def test_an_unknown_type_is_answered_with_none() -> None:
    assert instance_types.get("p5.48xlarge") is None


def test_a_known_type_is_no_problem() -> None:
    assert instance_types.unknown_type_problem("ml.p5.48xlarge") is None


def test_a_near_miss_is_named() -> None:
    assert instance_types.unknown_type_problem("ml.p5.48xlage") == (
        f'must be a HyperPod instance type known on {instance_types.AS_OF}, got "ml.p5.48xlage"; '
        "did you mean ml.p5.48xlarge? If not, state the type's numbers under instance_types:"
    )


def test_a_near_miss_of_a_type_that_the_caller_states_is_named() -> None:
    stated = ["ml.p9.48xlarge"]
    assert instance_types.unknown_type_problem("ml.p9.48xlarge", stated=stated) is None
    assert instance_types.unknown_type_problem("ml.p9.48xlage", where="in stated_types", stated=stated) == (
        'must be an instance type that is known, got "ml.p9.48xlage"; '
        "did you mean ml.p9.48xlarge, stated in stated_types?"
    )
    # only "ml." is missing
    assert "did you mean ml.p5.48xlarge? If not" in str(
        instance_types.unknown_type_problem("p5.48xlarge", stated=stated)
    )


@row_by_row(
    "name, types",
    [
        ("ml.p5.24xlarge", "ml.p5.48xlarge or ml.p5.4xlarge"),
        ("P5.24xlarge", "ml.p5.48xlarge or ml.p5.4xlarge"),
        ("ml.p6.48xlarge", "ml.p6-b200.48xlarge or ml.p6-b300.48xlarge"),
    ],
)
def test_a_size_that_its_family_lacks_is_answered_with_the_family(name: str, types: str) -> None:
    assert instance_types.unknown_type_problem(name) == (
        f'must be a HyperPod instance type known on {instance_types.AS_OF}, got "{name}"; set instance_type to {types},'
        " or state the type's numbers under instance_types:"
    )


def test_a_far_miss_says_how_to_go_on() -> None:
    assert instance_types.unknown_type_problem("hopper", key="type") == (
        f'must be a HyperPod instance type known on {instance_types.AS_OF}, got "hopper"; '
        "set type to one of the 209 known, which 'hyperpod-cdk schema' lists, or state the type's numbers under"
        " instance_types:"
    )


def test_the_date_is_that_of_the_file() -> None:
    assert instance_types.AS_OF == instance_types.as_of() == date(2026, 11, 20)


def test_other_attributes_do_not_exist() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'AS_ON'"):
        _ = instance_types.AS_ON
