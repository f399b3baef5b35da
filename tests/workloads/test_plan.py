"""A job gets all defaults from its group, and never more than a node has."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperpod_cdk.catalog import fabric, scheduling
from hyperpod_cdk.config import Environment
from hyperpod_cdk.workloads.allocatable import allocatable
from hyperpod_cdk.workloads.job import JOB_NAME, KINDS, TRAINING, Job, Kind
from hyperpod_cdk.workloads.plan import MPI, plan
from tests.support.tables import row_by_row
from tests.workloads.groups import TYPES, environment, planned

IMAGE = "registry.example.com/training:1"
TRAINING_FIELDS: dict[str, Any] = {"name": "train", "image": IMAGE, "command": ["train.py"]}


@row_by_row(
    "instance_type, kind, expected",
    [
        # (accelerators, EFA, vCPU, memory, shared memory, huge pages)
        ("ml.g5.12xlarge", "pytorch", (4, 1, 44, 153, 76, 0)),
        ("ml.g5.12xlarge", "nccl", (4, 1, 43, 151, 75, 5120)),
        ("ml.g5.12xlarge", "dcgm", (4, 0, 44, 153, 76, 0)),
        ("ml.g5.12xlarge", "efa-info", (0, 1, 1, 2, 1, 0)),
        ("ml.p5.48xlarge", "nccl", (8, 32, 178, 1847, 923, 5120)),
        ("ml.trn1.32xlarge", "nccom", (16, 8, 118, 432, 216, 5120)),
        ("ml.g5.xlarge", "nccl", (1, 0, 2, 9, 4, 0)),
        ("ml.m5.2xlarge", "pytorch", (0, 0, 7, 24, 12, 0)),
    ],
)
def test_a_pod_gets_what_a_node_has_to_give(instance_type: str, kind: Kind, expected: tuple[int, ...]) -> None:
    made = planned(instance_type, kind, **(TRAINING_FIELDS if kind in TRAINING else {}))
    assert (
        made.accelerators,
        made.efa,
        made.vcpu,
        made.memory_gib,
        made.shared_memory_gib,
        made.hugepages_mib,
    ) == expected


@pytest.mark.parametrize("kind", TRAINING)
def test_training_does_without_huge_pages_unless_it_asks(kind: Kind) -> None:
    made = planned("ml.p5.48xlarge", kind, **TRAINING_FIELDS)
    assert (made.hugepages_mib, made.variables["FI_EFA_USE_HUGE_PAGE"]) == (0, "0")
    asked = planned("ml.p5.48xlarge", kind, **TRAINING_FIELDS, huge_pages_mib=5120)
    assert asked.hugepages_mib == 5120
    assert "FI_EFA_USE_HUGE_PAGE" not in asked.variables


def test_a_part_of_a_node_is_its_part_of_everything_and_no_efa() -> None:
    made = planned("ml.g5.12xlarge", "pytorch", **TRAINING_FIELDS, accelerators_per_node=1)
    assert (made.accelerators, made.efa, made.vcpu, made.memory_gib, made.hugepages_mib) == (1, 0, 11, 38, 0)
    assert "FI_PROVIDER" not in made.variables
    assert made.variables["NCCL_NET"] == "Socket"
    assert not made.fills_its_nodes


def test_a_part_of_a_trainium_node_has_no_variables_of_efa() -> None:
    made = planned("ml.trn1.32xlarge", "pytorch", **TRAINING_FIELDS, accelerators_per_node=8)
    assert (made.efa, dict(made.variables)) == (0, {})


def test_what_the_job_states_wins() -> None:
    stated = {
        "accelerators_per_node": 2,
        "efa_per_node": 1,
        "vcpu_per_node": 5,
        "memory_gib_per_node": 7,
        "shared_memory_gib": 3,
        "nodes": 2,
        "environment": {"FI_PROVIDER": "tcp", "MINE": "1"},
    }
    made = planned("ml.g5.12xlarge", "pytorch", **TRAINING_FIELDS, **stated)
    assert (made.accelerators, made.efa, made.vcpu, made.memory_gib, made.shared_memory_gib) == (2, 1, 5, 7, 3)
    assert made.nodes == 2
    assert made.variables["FI_PROVIDER"] == "tcp"
    assert made.variables["MINE"] == "1"


def test_a_team_says_namespace_queue_and_names_of_resources() -> None:
    made = planned("ml.g5.12xlarge", "nccl", team="research", priority="training")
    assert (made.namespace, made.queue, made.priority_class) == (
        "hyperpod-ns-research",
        "hyperpod-ns-research-localqueue",
        "training-priority",
    )
    # no cluster queue covers them: Kueue would never admit the job
    assert made.hugepages_mib == 0
    assert made.variables["FI_EFA_USE_HUGE_PAGE"] == "0"
    asked = planned("ml.g5.12xlarge", "nccl", team="research", huge_pages_mib=1024)
    assert asked.hugepages_mib == 1024
    assert "FI_EFA_USE_HUGE_PAGE" not in asked.variables


@pytest.mark.parametrize(("stated", "namespace"), [({}, "default"), ({"namespace": "lab"}, "lab")])
def test_without_a_team_there_is_no_queue(stated: dict[str, str], namespace: str) -> None:
    made = planned("ml.g5.12xlarge", "nccl", **stated)
    assert (made.namespace, made.queue, made.priority_class) == (namespace, None, None)


@pytest.mark.parametrize(
    ("group", "fields", "name"),
    [
        ("work", {"kind": "nccl"}, "nccl-work"),
        ("work", {"kind": "nccl", "measure": {"pairs": True}}, "nccl-pairs-work"),
        ("Big-H100", {"kind": "efa-info"}, "efa-info-big-h100"),
        ("h" * 62, {"kind": "dcgm"}, "dcgm-" + "h" * 40),
        ("a" * 39 + "-b", {"kind": "dcgm"}, "dcgm-" + "a" * 39),
        ("work", {"kind": "nccl", "name": "mine"}, "mine"),
    ],
)
def test_a_test_has_a_name_of_its_own(group: str, fields: dict[str, Any], name: str) -> None:
    about = environment("ml.g5.12xlarge", group={"name": group})
    made = plan(about, Job.model_validate({"group": group, **fields}))
    assert made.name == name
    assert JOB_NAME.matches(name)


def test_partitions_have_no_efa() -> None:
    cut = environment("ml.p4d.24xlarge", group={"labels": {"nvidia.com/mig.config": "all-3g.20gb"}})
    made = planned(cut, "pytorch", **TRAINING_FIELDS)
    # a process of CUDA sees one of them
    assert (made.accelerators, made.efa, made.hugepages_mib) == (1, 0, 0)
    assert "FI_PROVIDER" not in made.variables
    assert planned(cut, "pytorch", **TRAINING_FIELDS, accelerators_per_node=16).accelerators == 16
    assert planned(cut, "dcgm").accelerators == 16


def test_a_flexible_group_gets_what_all_its_types_have() -> None:
    made = planned(("ml.g6.12xlarge", "ml.g6.48xlarge"), "pytorch", **TRAINING_FIELDS)
    small = planned("ml.g6.12xlarge", "pytorch", **TRAINING_FIELDS)
    assert (made.accelerators, made.efa, made.vcpu, made.memory_gib) == (
        small.accelerators,
        small.efa,
        small.vcpu,
        small.memory_gib,
    )
    # a second pod would find room on the larger type
    assert small.fills_its_nodes
    assert not made.fills_its_nodes


def test_memory_for_checkpoints_is_not_given_to_pods() -> None:
    without = planned("ml.p5.48xlarge", "pytorch", **TRAINING_FIELDS)
    tiered = environment("ml.p5.48xlarge", hyperpod={"tiered_checkpointing": {"memory_percent": 50}})
    assert without.memory_gib - planned(tiered, "pytorch", **TRAINING_FIELDS).memory_gib == 1024


def test_a_node_with_an_interface_on_every_second_card_gets_what_aws_tests_with() -> None:
    assert planned("ml.p6e-gb200.36xlarge", "nccl").efa == 4


def test_all_nodes_of_the_group_or_one_that_is_still_to_come() -> None:
    assert planned("ml.g5.12xlarge", "nccl").nodes == 4
    growing = environment("ml.g5.12xlarge", group={"count": 0}, hyperpod={"autoscaling": "karpenter"})
    made = planned(growing, "nccl")
    assert made.nodes == 1
    assert made.is_autoscaled
    assert not planned("ml.g5.12xlarge", "nccl").is_autoscaled


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kind": None}, "must have a kind, got none; set kind"),
        ({"group": "other"}, 'must name an instance group of the environment, got "other"; set group'),
        ({"kind": "pytorch", "image": IMAGE}, "training must have a name, got none; set name"),
        ({"kind": "pytorch", "name": "train"}, "training must have an image, got none; set image"),
    ],
)
def test_what_the_rules_refuse_cannot_be_planned(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        planned("ml.g5.12xlarge", **{"kind": "nccl", **fields})


def test_a_group_of_several_types_gets_what_all_of_them_have() -> None:
    assert planned("ml.p6e-gb200.36xlarge", "efa-info").efa == 4
    assert planned(("ml.p6e-gb200.36xlarge", "ml.g5.xlarge"), "efa-info").efa == 0
    assert planned(("ml.trn1.32xlarge", "ml.p5.48xlarge"), "efa-info").shape.accelerator_resource is None


def test_a_job_on_an_unknown_type_cannot_be_planned() -> None:
    with pytest.raises(
        ValueError, match=r'^the values of a type of group "work" are unknown; set them in instance_types$'
    ):
        planned("ml.p9.48xlarge", "nccl")
    with pytest.raises(ValueError, match=r"^the values of a type of group"):
        planned(("ml.p5.48xlarge", "ml.p9.48xlarge"), "nccl")


@given(types=st.one_of(st.sampled_from(TYPES), st.tuples(*[st.sampled_from(TYPES)] * 2)), kind=st.sampled_from(KINDS))
def test_no_pod_asks_for_more_than_its_node_gives(types: str | tuple[str, str], kind: Kind) -> None:
    made = planned(types, kind, **(TRAINING_FIELDS if kind in TRAINING else {}))
    vcpu, memory_gib = allocatable(made.shape)
    assert 1 <= made.vcpu <= vcpu
    assert 1 <= made.shared_memory_gib <= made.memory_gib
    assert made.memory_gib <= max(memory_gib, scheduling.LAUNCHER_MEMORY_GIB)
    assert made.hugepages_mib <= min(fabric.hugepages_kept_mib(row) for row in made.shape.rows)
    if kind in MPI and vcpu > 1 and memory_gib > 2:
        assert made.vcpu + scheduling.LAUNCHER_VCPU <= vcpu
        assert made.memory_gib + scheduling.LAUNCHER_MEMORY_GIB <= max(memory_gib, 3)
    assert 0 <= made.accelerators <= made.shape.accelerator_count
    assert 0 <= made.efa <= max(row.efa_count or row.efa_supported for row in made.shape.rows)
    assert (made.hugepages_mib == 0) or made.efa


@given(accelerators=st.integers(1, 8))
def test_pods_that_share_a_node_fit_on_it_together(accelerators: int) -> None:
    made = planned("ml.p5.48xlarge", "pytorch", **TRAINING_FIELDS, accelerators_per_node=accelerators)
    vcpu, memory_gib = allocatable(made.shape)
    together = 8 // accelerators
    assert made.vcpu * together <= vcpu
    assert made.memory_gib * together <= memory_gib


def test_the_same_job_has_the_same_plan() -> None:
    about: Environment = environment("ml.p5.48xlarge")
    assert planned(about, "nccl") == planned(about, "nccl")
