"""The rules for one instance group, each when it passes and with one different value, by its complete message."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hyperpod_cdk.catalog import hyperpod, instance_groups, instance_types
from hyperpod_cdk.catalog.instance_types import InstanceType
from tests.support.tables import row_by_row

PLAN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/h100"


def known(name: str) -> InstanceType:
    row = instance_types.get(name)
    assert row is not None
    return row


DOCUMENTED, DOUBTED, WITHOUT = known("ml.p5.48xlarge"), known("ml.p6-b300.48xlarge"), known("ml.m5.2xlarge")


def test_a_taint_is_of_one_key_and_effect() -> None:
    a, b = ("a", "NoSchedule"), ("a", "NoExecute")
    assert list(instance_groups.repeated_taints([])) == []
    assert list(instance_groups.repeated_taints([a, b, ("b", "NoSchedule")])) == []
    said = "must be unique by key and effect, got {} as in taints[{}]; remove one of the two".format
    assert list(instance_groups.repeated_taints([a, b, a, b, a])) == [
        (2, said('"a" with NoSchedule', 0)),
        (3, said('"a" with NoExecute', 1)),
        (4, said('"a" with NoSchedule', 0)),
    ]


def test_plans_are_sold_for_some_types() -> None:
    of_all = {"choices": instance_groups.CAPACITIES}
    assert instance_groups.plan_problem(DOCUMENTED, **of_all) is None
    assert instance_groups.plan_problem(WITHOUT, **of_all) == (
        "must not be training_plan for ml.m5.2xlarge, for which no plans are sold (as of"
        f" {instance_types.as_of()}); set capacity: on_demand or spot"
    )


REGION = "must be a plan in {0}, got one in {1}; name a plan of {0}, or set region: {2}".format
ACCOUNT = (
    "must be a plan of account 444455556666, got one of 111122223333; plans cannot be shared: name a plan of"
    ' 444455556666, or set account: "111122223333"'
)


@row_by_row(
    "arn, partition, region, account, problems",
    [
        (PLAN, "aws", "us-east-1", "111122223333", []),
        (PLAN, "aws", "us-west-2", "111122223333", [REGION("us-west-2", "us-east-1", "us-east-1")]),
        (PLAN, "aws", "us-east-1", "444455556666", [ACCOUNT]),
        (PLAN, "aws", "us-west-2", "444455556666", [REGION("us-west-2", "us-east-1", "us-east-1"), ACCOUNT]),
        # what nobody knows yet is not compared
        (PLAN, "aws", "", "", []),
        (PLAN, "aws-cn", "", "444455556666", [ACCOUNT]),
        (PLAN, "aws", "us-west-2", "", [REGION("us-west-2", "us-east-1", "us-east-1")]),
        (
            PLAN,
            "aws-cn",
            "us-east-1",
            "111122223333",
            ["must begin with arn:aws-cn:, the partition of us-east-1, got arn:aws:; write arn:aws-cn:"],
        ),
        (
            PLAN.replace("us-east-1", ""),
            "aws",
            "us-east-1",
            "111122223333",
            [REGION("us-east-1", "no region", "us-east-1")],
        ),
    ],
)
def test_a_plan_is_of_the_clusters_home(
    arn: str, partition: str, region: str, account: str, problems: list[str]
) -> None:
    found = instance_groups.plan_home_problems(arn, partition=partition, region=region, account=account)
    assert list(found) == problems


def test_ultraservers_come_with_a_plan() -> None:
    name = "ml.p6e-gb200.36xlarge"
    for capacity in (None, "training_plan"):
        assert instance_groups.ultraserver_problem(name, capacity) is None
    for capacity in ("on_demand", "spot"):
        assert instance_groups.ultraserver_problem("ml.p5.48xlarge", capacity) is None
        assert instance_groups.ultraserver_problem(name, capacity) == (
            "must be training_plan for ml.p6e-gb200.36xlarge, which is sold as UltraServers of 9"
            " (u-p6e-gb200x36) or 18 (u-p6e-gb200x72) instances, got"
            f" {capacity}; set capacity: training_plan with its training_plan_arn"
        )


def test_ultraservers_stand_in_one_region() -> None:
    name = "ml.p6e-gb200.36xlarge"
    server = hyperpod.ultraserver(name)
    assert server is not None
    assert instance_groups.ultraserver_region_problem(name, region=server.region) is None
    assert instance_groups.ultraserver_region_problem("ml.p5.48xlarge", region="moon-1") is None
    for region in ("aa-moon-1", "zz-moon-1"):
        assert instance_groups.ultraserver_region_problem(name, region=region) == (
            f"must be a type of {region}, got {name}, whose UltraServers are in {server.zone_name} only (as of"
            f" {hyperpod.AS_OF}); name another type, or set region: {server.region}"
        )


AS_OF = instance_types.as_of()
P5 = "1g.10gb, 1g.20gb, 2g.20gb, 3g.40gb, 4g.40gb or 7g.80gb, such as all-1g.10gb"
B300 = "1g.34gb, 1g.67gb, 2g.67gb, 3g.135gb, 4g.135gb or 7g.269gb, such as all-1g.34gb"
NO_SLICES = (
    f"ml.m5.2xlarge is not known to support GPU partitions (catalog of {AS_OF}); remove the label if nodes do not"
    " become Ready"
)
MUST_PARTITION = (
    f"must partition ml.p5.48xlarge into MIG profiles that it supports, got {{}}; set it to a configuration of {P5}"
).format


@pytest.mark.parametrize(
    ("configuration", "rows", "problems"),
    [
        ("all-1g.10gb", [DOCUMENTED], []),
        ("all-1g.10gb", [], []),
        ("all-disabled", [DOCUMENTED, DOUBTED], []),
        (
            "all-1g.34gb",
            [DOCUMENTED, DOUBTED],
            [(True, MUST_PARTITION("1g.34gb"))],
        ),
        (
            "all-1g.10gb",
            [DOUBTED, DOCUMENTED],
            [
                (
                    False,
                    (
                        f"ml.p6-b300.48xlarge is not known to support the MIG profile 1g.10gb (catalog of {AS_OF});"
                        f" set it to a configuration of {B300}, if nodes do not become Ready"
                    ),
                )
            ],
        ),
        ("all-1g.10gb", [WITHOUT, DOCUMENTED], [(False, NO_SLICES)]),
        (
            # each slice once, those that the type has left out
            "1g.5gb-1g.10gb-2g.10gb-1g.5gb",
            [WITHOUT, DOCUMENTED],
            [
                (False, NO_SLICES),
                *((True, MUST_PARTITION(each)) for each in ("1g.5gb", "2g.10gb")),
            ],
        ),
    ],
)
def test_slices_of_gpus(configuration: str, rows: list[InstanceType], problems: list[tuple[bool, str]]) -> None:
    assert list(instance_groups.mig_problems(configuration, rows)) == problems


CHART = "must be a configuration that the dependency chart gives the GPU operator, which otherwise does not partition"


@row_by_row(
    "configuration, rows, problem",
    [
        *((name, rows, None) for name in hyperpod.MIG_CONFIGS for rows in ([], [DOCUMENTED])),
        # told by the slices already
        ("all-9g.90gb", [DOCUMENTED], None),
        ("all-9g.90gb", [WITHOUT, DOCUMENTED], None),
        ("ours", [WITHOUT], f"{CHART} GPUs, got ours; remove it"),
        ("ours", [], f"{CHART} GPUs, got ours; remove it"),
        ("all-9g.90gb", [], f"{CHART} GPUs, got all-9g.90gb; remove it"),
    ],
)
def test_configurations_of_the_chart(configuration: str, rows: list[InstanceType], problem: str | None) -> None:
    assert instance_groups.mig_configuration_problem(configuration, rows) == problem


def test_an_unknown_configuration_is_answered_with_those_of_the_type() -> None:
    fix = "set it to all-1g.10gb, all-3g.40gb or all-7g.80gb, or to a mixture of the chart's default-mig-config"
    for rows in ([DOCUMENTED], [WITHOUT, DOCUMENTED], [replace(DOCUMENTED, mig_documented=False)]):
        found = instance_groups.mig_configuration_problem("all-1g.10gb-3", rows)
        assert found == f"{CHART} GPUs, got all-1g.10gb-3; {fix}"


def test_a_restricted_group_names_a_bucket_once() -> None:
    assert list(instance_groups.bucket_problems(["a", "b"], ["c"])) == []
    found = list(instance_groups.bucket_problems(["a", "b", "a"], ["c", "c", "b"]))
    assert [(key, index) for key, index, _ in found] == [
        ("input_buckets", 2),
        ("output_buckets", 1),
        ("input_buckets", 1),
    ]
    assert found[2][2] == "must be named once, got b in output_buckets too, which are read as well; remove it here"


def test_one_script_sets_a_node_up() -> None:
    assert instance_groups.scripts_problem(None, None) is None
    assert instance_groups.scripts_problem("a.sh", None) is None
    assert instance_groups.scripts_problem(None, "b.sh") is None
    assert instance_groups.scripts_problem("a.sh", "b.sh") == (
        "cannot be set together with on_create, got a.sh and b.sh; remove on_create if HyperPod itself should set up"
        " the nodes, otherwise remove on_init_complete"
    )
    assert instance_groups.volume_key_problem("all_or_nothing") == (
        "needs continuous provisioning, got provisioning: all_or_nothing"
    )
