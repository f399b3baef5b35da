"""Quota rows and teams by themselves, and the ResourceQuota that leaves a team what it may use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hyperpod_cdk.catalog import instance_types
from hyperpod_cdk.catalog.instance_types import InstanceType
from hyperpod_cdk.governance.teams import AcceleratorPartition, QuotaRow, Team, resource_limits
from tests.support.tables import row_by_row

P5, M5, TRN = "ml.p5.48xlarge", "ml.m5.2xlarge", "ml.trn1.32xlarge"
GPU, EFA, NEURON = "requests.nvidia.com/gpu", "requests.vpc.amazonaws.com/efa", "requests.aws.amazon.com/neuron"
SLICES = AcceleratorPartition(profile="mig-1g.10gb", count=14)


def numbers(*names: str) -> dict[str, InstanceType]:
    return {name: row for name in names if (row := instance_types.get(name)) is not None}


def team(*rows: QuotaRow, **rest: Any) -> Team:
    return Team(name="research", quota=rows or [QuotaRow(instance_type=P5, count=2)], **rest)


@pytest.mark.parametrize(
    ("row", "resource"),
    [
        (QuotaRow(instance_type=P5, count=2), {"Count": 2}),
        (QuotaRow(instance_type=P5, vcpu=2.5), {"VCpu": 2.5}),
        (QuotaRow(instance_type=P5, accelerators=4, memory_gib=10), {"Accelerators": 4, "MemoryInGiB": 10}),
        (
            QuotaRow(instance_type=P5, accelerator_partition=SLICES, vcpu=8),
            {"VCpu": 8, "AcceleratorPartition": {"Type": "mig-1g.10gb", "Count": 14}},
        ),
    ],
    ids=["instances", "vCPU", "accelerators", "partitions"],
)
def test_a_row_in_the_api_s_words(row: QuotaRow, resource: dict[str, Any]) -> None:
    assert row.properties() == {"InstanceType": P5, **resource}


def test_borrow_limits_of_single_types_go_beside_the_percentage() -> None:
    limits = [QuotaRow(instance_type=P5, accelerators=8)]
    config = team(absolute_borrow_limits=limits).quota_config()
    assert config["ResourceSharingConfig"] == {
        "Strategy": "LendAndBorrow",
        "BorrowLimit": 50,
        "AbsoluteBorrowLimits": [{"InstanceType": P5, "Accelerators": 8}],
    }


def test_one_type_in_several_profiles_is_several_rows() -> None:
    rows = [
        QuotaRow(instance_type=P5, count=1),
        QuotaRow(instance_type=P5, accelerator_partition=SLICES),
        QuotaRow(instance_type=P5, accelerator_partition=AcceleratorPartition(profile="mig-3g.40gb", count=2)),
    ]
    assert len(team(*rows).quota_config()["ComputeQuotaResources"]) == 3


@pytest.mark.parametrize(
    ("member", "limits"),
    [
        (team(sharing="lend"), {GPU: "16", EFA: "64"}),
        (team(), {GPU: "24", EFA: "96"}),
        (team(borrow_limit_percent=30), {GPU: "21", EFA: "84"}),
        (team(absolute_borrow_limits=[QuotaRow(instance_type=P5, count=1)]), {GPU: "24", EFA: "96"}),
        (team(QuotaRow(instance_type=P5, accelerators=4), sharing="lend"), {GPU: "4", EFA: "16"}),
        (team(QuotaRow(instance_type=P5, vcpu=96), sharing="lend"), {}),
        (
            team(QuotaRow(instance_type=P5, accelerator_partition=SLICES), sharing="lend"),
            {"requests.nvidia.com/mig-1g.10gb": "14"},
        ),
        (team(QuotaRow(instance_type=TRN, count=1), sharing="lend"), {NEURON: "16", f"{NEURON}device": "16", EFA: "8"}),
        (team(QuotaRow(instance_type=M5, count=4)), {}),
        (team(QuotaRow(instance_type="ml.g5.12xlarge", count=4)), {}),
    ],
    ids=[
        "owned",
        "half as much again",
        "rounded up",
        "one instance more",
        "half a node",
        "no accelerators",
        "partitions",
        "Neuron",
        "no accelerators of the type",
        "a type of which no numbers are given",
    ],
)
def test_limits_leave_what_the_team_owns_and_may_borrow(member: Team, limits: dict[str, str]) -> None:
    assert resource_limits(member, numbers(P5, M5, TRN)) == limits


STATED = instance_types.InstanceType(
    name="ml.p9.48xlarge",
    ec2_name="p9.48xlarge",
    family="p9",
    architecture="x86_64",
    vcpu=8,
    memory_gib=1,
    network_cards=1,
)
UNKNOWN = f"must be a HyperPod instance type known on {instance_types.as_of()}, got"


def test_a_type_that_neither_the_catalog_nor_the_caller_knows_is_refused() -> None:
    assert QuotaRow(instance_type="ml.p9.48xlarge", count=1, stated_types={STATED.name: STATED}).key == STATED.name
    with pytest.raises(ValueError) as near:  # noqa: PT011 - the whole message is compared below
        QuotaRow(instance_type="ml.p5.48xlarg", count=1)
    assert str(near.value) == (
        f'quota of ml.p5.48xlarg: instance_type: {UNKNOWN} "ml.p5.48xlarg"; did you mean ml.p5.48xlarge? '
        "If not, state the type's numbers in stated_types"
    )
    with pytest.raises(ValueError) as of_the_callers:  # noqa: PT011 - as above
        QuotaRow(instance_type="ml.p9.48xlarg", count=1, stated_types={STATED.name: STATED})
    assert str(of_the_callers.value) == (
        'quota of ml.p9.48xlarg: instance_type: must be an instance type that is known, got "ml.p9.48xlarg"; '
        "did you mean ml.p9.48xlarge, stated in stated_types?"
    )


@row_by_row(
    "make, message",
    [
        (
            lambda: QuotaRow(instance_type=P5, count=1, vcpu=4),
            (
                "quota of ml.p5.48xlarge: must state count without other amounts, got count and vcpu; remove count, or"
                " remove vcpu"
            ),
        ),
        (
            lambda: QuotaRow(instance_type=P5, vcpu=-0.5),
            "quota of ml.p5.48xlarge: vcpu: must be at least 1, got -0.5; set vcpu to 1 or more",
        ),
        (
            lambda: AcceleratorPartition(profile="mig-1g.10gb", count=10_000_001),
            "partition mig-1g.10gb: count: must be at most 10000000, got 10000001; set count to 10000000 or less",
        ),
        (
            lambda: team(*[QuotaRow(instance_type=P5, accelerator_partition=SLICES)] * 2),
            (
                "team research: quota[1].instance_type: must be unique, got ml.p5.48xlarge with mig-1g.10gb as in"
                " quota[0]; add the counts up in one of the two"
            ),
        ),
        (
            lambda: team(sharing="lend", absolute_borrow_limits=[QuotaRow(instance_type=P5, count=1)]),
            (
                'team research: absolute_borrow_limits: needs sharing="lend_and_borrow", got sharing="lend"; remove'
                ' absolute_borrow_limits or set sharing="lend_and_borrow"'
            ),
        ),
        (
            lambda: team(
                absolute_borrow_limits=[QuotaRow(instance_type=name, count=1) for name in instance_types.names()[:16]]
            ),
            "team research: must hold at most 15 borrow limits, got 16; remove 1",
        ),
        (
            lambda: team(access="admin"),
            'team research: access: must be access_policies or rbac, got "admin"; set access to one of these',
        ),
        (
            lambda: team(description="a\nb"),
            (
                "team research: description: must be 1 to 1024 characters of text on one line, without invisible ones, "
                'got "a\\x0ab"; set description="a-b"'
            ),
        ),
        (
            lambda: team(resource_quota={GPU: "many"}),
            (
                "team research: resource_quota['requests.nvidia.com/gpu']: must be a Kubernetes quantity, got"
                ' "many"; set resource_quota[\'requests.nvidia.com/gpu\'] to "64", "512Gi" or the like'
            ),
        ),
    ],
)
def test_what_aws_would_refuse_is_refused_at_once(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the whole message is compared below
        make()

    assert str(error.value) == message


def test_an_unknown_profile_is_answered_with_those_that_there_are() -> None:
    with pytest.raises(ValueError, match=r"^partition 3g") as refusal:
        AcceleratorPartition(profile="3g.40gb", count=1)
    assert str(refusal.value) == (
        'partition 3g.40gb: profile: must be a MIG profile that compute quotas take, got "3g.40gb"; did you mean'
        " mig-3g.40gb?"
    )
