"""Baselines: the published runs, the GPUs for a name, and that nothing is compared with TCP."""

from __future__ import annotations

from typing import get_args

import pytest

from hyperpod_cdk.catalog import _data, baselines, instance_types
from hyperpod_cdk.workloads.job import Collective
from tests.support.tables import row_by_row

ROWS = _data.load("baselines")["runs"]


def test_every_run_is_of_a_type_and_a_collective_that_are_known() -> None:
    for row in ROWS:
        assert instance_types.get(row["type"]) is not None, row
        assert row["collective"] in get_args(Collective), row
        assert row["network"] in get_args(baselines.Network), row
        assert row["nodes"] >= 1
        assert row["bytes"] > 0
        assert row["bus_gb_s"] > 0


def test_a_run_on_one_node_used_no_network_and_others_one_their_type_has() -> None:
    for row in ROWS:
        assert (row["network"] == "none") == (row["nodes"] == 1), row
        kind = instance_types.get(row["type"])
        assert kind is not None
        assert row["network"] != "efa" or kind.efa_supported, row


def test_no_baseline_over_tcp_reaches_efa() -> None:
    for row in ROWS:
        slow = baselines.over_tcp(row["type"], row["collective"])
        if slow is not None and row["network"] == "efa":
            assert row["bus_gb_s"] > 2 * slow.bus_gb_s


def test_a_baseline_names_its_source_in_full_and_runs_over_tcp_are_none() -> None:
    (found,) = baselines.of("ml.p4d.24xlarge", "all_reduce")
    assert (found.bus_gb_s, found.nodes, found.bytes, found.network) == (77.35, 2, 2147483648, "efa")
    assert found.source == (
        "skypilot-org/skypilot examples/aws_efa/README.md (read 2026-11-22): all_reduce_perf on HyperPod with and"
        " without EFA, out-of-place"
    )
    slow = baselines.over_tcp("ml.p4d.24xlarge", "all_reduce")
    assert slow is not None
    assert slow.bus_gb_s == 4.13


def test_the_run_that_was_handed_to_this_project_is_in_doubt() -> None:
    (found,) = baselines.of("ml.g5.8xlarge", "all_reduce")
    assert (found.bus_gb_s, found.network) == (2.88, "unknown")
    assert "does not say which network NCCL used" in found.unsure[0]


@pytest.mark.parametrize(
    ("instance_type", "collective"), [("ml.p5.48xlarge", "all_gather"), ("ml.g6.8xlarge", "all_reduce")]
)
def test_unpublished_values_are_empty(instance_type: str, collective: str) -> None:
    assert baselines.of(instance_type, collective) == ()
    assert baselines.over_tcp(instance_type, collective) is None


def test_the_tolerance_is_that_of_nccl_tests() -> None:
    assert baselines.TOLERANCE == 0.9


@row_by_row(
    "device, at_least, names",
    [
        ("NVIDIA A100-SXM4-40GB", 8, ["ml.p4d.24xlarge"]),
        ("A100-SXM4-80GB", 8, ["ml.p4de.24xlarge"]),
        ("NVIDIA H100 80GB HBM3", 1, ["ml.p5.48xlarge", "ml.p5.4xlarge"]),
        ("NVIDIA H100 80GB HBM3", 8, ["ml.p5.48xlarge"]),
        ("NVIDIA A10G", 8, ["ml.g5.48xlarge"]),
        ("Tesla T4", 4, ["ml.g4dn.12xlarge"]),
        ("T4", 4, ["ml.g4dn.12xlarge"]),
        ("NVIDIA L40S", 8, ["ml.g6e.48xlarge"]),
        ("NVIDIA L4", 8, ["ml.g6.48xlarge"]),
        ("NVIDIA B200", 8, ["ml.p6-b200.48xlarge"]),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", 8, ["ml.g7e.48xlarge"]),
        ("NVIDIA GeForce GTX 1080", 1, []),
        ("", 1, []),
    ],
)
def test_a_gpu_is_known_by_the_name_that_drivers_give_it(device: str, at_least: int, names: list[str]) -> None:
    assert [row.name for row in baselines.types_with(device, at_least=at_least)] == names
