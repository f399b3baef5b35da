"""The rules for one instance group, each when it passes and with one different value, by its complete message."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pytest

from hyperpod_cdk.catalog import hyperpod, instance_groups, instance_types, kubernetes
from hyperpod_cdk.catalog.instance_types import InstanceType
from hyperpod_cdk.config.draft import UNKNOWN, UnknownValueError, certain
from tests.support.tables import row_by_row

PLAN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/h100"


def known(name: str) -> InstanceType:
    row = instance_types.get(name)
    assert row is not None
    return row


DOCUMENTED, DOUBTED, WITHOUT = known("ml.p5.48xlarge"), known("ml.p6-b300.48xlarge"), known("ml.m5.2xlarge")
ULTRASERVER = known("ml.p6e-gb200.36xlarge")


@dataclass(frozen=True, kw_only=True)
class A:
    """A taint, a batch or a patching, with the attributes that are set."""

    key: str = ""
    effect: str = ""
    instances: int | None = None
    percent: int | None = None
    schedule: str | None = None
    strategy: str | None = None
    max_batch: A | None = None
    rollback_batch: A | None = None


@dataclass(frozen=True, kw_only=True)
class Group:
    """A group that no rule refuses."""

    instance_type: str | None = "ml.p5.48xlarge"
    instance_types: Sequence[str] = ()
    count: int = 2
    min_count: int | None = None
    capacity: str | None = "on_demand"
    training_plan_arn: str | None = None
    deep_health_checks: Sequence[str] = ()
    threads_per_core: int | None = None
    network_interface: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[A] = ()
    patching: A | None = None
    on_create: str | None = None
    on_init_complete: str | None = None

    def rows(self) -> Iterator[InstanceType]:
        names = [self.instance_type] if self.instance_type else self.instance_types
        return (row for name in names if (row := instance_types.get(name)) is not None)


Rule = Callable[[Group, instance_groups.Rows], Iterator[instance_groups.Placed]]

RULES: Mapping[str, Rule] = {
    "types": instance_groups.type_problems,
    "capacity": instance_groups.capacity_problems,
    "plan": instance_groups.plan_problems,
    "minimum": instance_groups.minimum_problems,
    "checks": instance_groups.health_check_problems,
    "threads": instance_groups.threads_problems,
    "interface": instance_groups.network_interface_problems,
    "taints": instance_groups.taint_problems,
    "patching": instance_groups.patching_problems,
    "batches": instance_groups.batch_problems,
    "scripts": instance_groups.script_problems,
}
CPU, ARM, NO_EFA, NO_PLANS = "ml.m5.2xlarge", "ml.m7g.2xlarge", "ml.g5.2xlarge", "ml.g5.12xlarge"
MISSING_PLAN = (
    "training_plan_arn is missing, and capacity: training_plan needs it; add the ARN that 'aws sagemaker"
    " list-training-plans' shows"
)
ALONE = (
    "training_plan_arn needs capacity: training_plan, got {}; set capacity: training_plan or remove training_plan_arn"
).format
UNSOLD = "training_plan_arn needs capacity: training_plan, got no capacity; remove training_plan_arn"
NOT_SOLD = f"capacity must not be training_plan for {{}}, for which no plans are sold (as of {instance_types.as_of()});"
CRON = "cron(0 3 ? * SUN *)"
NO_KIND = "patching must have schedule or strategy, got {}; {}".format
MEASURE = "patching.{0} must have instances or percent, got {1}; set {0}: {{instances: 1}}".format
NO_CHECKS = "deep_health_checks must be left out for {}, which has no accelerators to check; remove deep_health_checks"
STRESS, TAINT = ["instance_stress"], A(key="gpu", effect="NoSchedule")
NO_TAINTS = (
    'deep_health_checks cannot be set together with taints, got the taint "gpu": HyperPod taints the nodes itself while'
    " it checks; remove taints or deep_health_checks"
)
ONE_THREAD = (
    "threads_per_core must be 1 for {}, whose cores have one thread, got 2; set threads_per_core: 1 or remove it"
)
NO_INTERFACE = "network_interface must be left out for {}, which has no EFA, got {}; remove network_interface".format
UNIQUE = "taints[{}] must be unique by key and effect, got {} as in taints[{}]; remove one of the two".format


@row_by_row(
    "changes, problems",
    [
        ({}, {}),
        (
            {"instance_type": None},
            {
                "types": [
                    (
                        "instance_type is missing; add instance_type: ml.p5.48xlarge, or instance_types for a flexible"
                        " group"
                    )
                ]
            },
        ),
        (
            {"instance_types": [CPU]},
            {
                "types": [
                    (
                        "instance_types cannot be set together with instance_type; remove instance_type for a flexible"
                        " group, otherwise remove instance_types"
                    )
                ]
            },
        ),
        (
            {"instance_type": None, "instance_types": ["a", "b", "a", "a"]},
            {
                "types": [
                    f"instance_types[{index}] must be named once, got a again after [0]; remove one of the two"
                    for index in (2, 3)
                ]
            },
        ),
        ({"instance_type": CPU, "capacity": None}, {}),
        ({"instance_type": "misspelt", "capacity": None}, {}),
        (
            {"capacity": None},
            {
                "capacity": [
                    (
                        "capacity must say where ml.p5.48xlarge comes from (on_demand, spot or training_plan), because"
                        " on-demand capacity of accelerated types is scarce; set capacity: training_plan with its"
                        " training_plan_arn"
                    )
                ]
            },
        ),
        (
            {"capacity": None, "instance_type": None, "instance_types": [CPU, NO_PLANS, "ml.p5.48xlarge"]},
            {
                "capacity": [
                    (
                        "capacity must say where ml.g5.12xlarge comes from (on_demand or spot), because on-demand"
                        " capacity of accelerated types is scarce; set capacity: on_demand"
                    )
                ]
            },
        ),
        ({"capacity": "training_plan", "training_plan_arn": PLAN}, {}),
        ({"capacity": "training_plan"}, {"plan": [MISSING_PLAN]}),
        ({"training_plan_arn": PLAN}, {"plan": [ALONE("capacity: on_demand")]}),
        ({"instance_type": CPU, "training_plan_arn": PLAN, "capacity": None}, {"plan": [UNSOLD]}),
        (
            {"instance_type": None, "instance_types": [NO_PLANS, "ml.p5.48xlarge", CPU], "capacity": "training_plan"},
            {
                "plan": [
                    *(f"{NOT_SOLD.format(name)} set capacity: on_demand or spot" for name in (NO_PLANS, CPU)),
                    MISSING_PLAN,
                ]
            },
        ),
        *(({"min_count": least}, {}) for least in (0, 1, 2)),
        ({"min_count": 0, "count": 0}, {}),
        (
            {"min_count": 1, "count": 0},
            {"minimum": ["min_count must be at most count, 0, got 1; set min_count: 0 or less"]},
        ),
        ({"min_count": 3}, {"minimum": ["min_count must be at most count, 2, got 3; set min_count: 2 or less"]}),
        ({"deep_health_checks": ["instance_stress", "instance_connectivity"]}, {}),
        ({"taints": [TAINT]}, {}),
        (
            {
                "deep_health_checks": STRESS * 2,
                "taints": [TAINT, A(key="other", effect="NoSchedule")],
                "instance_type": None,
                "instance_types": [CPU, "ml.p5.48xlarge", ARM],
            },
            {
                "checks": [
                    (
                        "deep_health_checks[1] must be named once, got instance_stress again after [0]; remove one of"
                        " the two"
                    ),
                    NO_CHECKS.format(CPU),
                    NO_CHECKS.format(ARM),
                    NO_TAINTS,
                ]
            },
        ),
        ({"threads_per_core": 2}, {}),
        ({"threads_per_core": 1, "instance_type": ARM}, {}),
        # the bound of the value refuses it
        ({"threads_per_core": 0, "instance_type": ARM}, {}),
        ({"threads_per_core": 2, "instance_type": "misspelt"}, {}),
        (
            {"threads_per_core": 2, "instance_type": None, "instance_types": [CPU, ARM]},
            {"threads": [ONE_THREAD.format(ARM)]},
        ),
        ({"network_interface": "efa"}, {}),
        (
            {"network_interface": "efa_only", "instance_type": None, "instance_types": [NO_EFA, "ml.p5.48xlarge", CPU]},
            {"interface": [NO_INTERFACE(NO_EFA, "efa_only"), NO_INTERFACE(CPU, "efa_only")]},
        ),
        ({"taints": [A(key="a", effect="e"), A(key="a", effect="f"), A(key="b", effect="e")]}, {}),
        (
            {"taints": [A(key=key, effect=effect) for key, effect in ("ae", "af", "ae", "af", "ae")]},
            {"taints": [UNIQUE(2, '"a" with e', 0), UNIQUE(3, '"a" with f', 1), UNIQUE(4, '"a" with e', 0)]},
        ),
        ({"patching": A(schedule=CRON, max_batch=A(percent=1), rollback_batch=A(instances=1))}, {}),
        ({"patching": A(strategy="when_idle")}, {}),
        ({"patching": A()}, {"patching": [NO_KIND("neither", f"set schedule: {CRON} or strategy: when_idle")]}),
        (
            {"patching": A(schedule=CRON, strategy="when_idle", rollback_batch=A())},
            {
                "patching": [
                    NO_KIND("both", "remove schedule or strategy"),
                    "patching.rollback_batch needs max_batch, got none; add max_batch: {instances: 1}",
                ],
                "batches": [MEASURE("rollback_batch", "neither")],
            },
        ),
        (
            {"patching": A(schedule=CRON, max_batch=A(), rollback_batch=A(instances=1, percent=1))},
            {"batches": [MEASURE("max_batch", "neither"), MEASURE("rollback_batch", "both")]},
        ),
        ({"on_create": "a.sh"}, {}),
        ({"on_init_complete": "b.sh"}, {}),
        (
            {"on_create": "a.sh", "on_init_complete": "b.sh"},
            {
                "scripts": [
                    (
                        "on_init_complete cannot be set together with on_create, got a.sh and b.sh; remove on_create if"
                        " HyperPod itself should set up the nodes, otherwise remove on_init_complete"
                    )
                ]
            },
        ),
    ],
)
def test_a_group(changes: Mapping[str, Any], problems: Mapping[str, list[str]]) -> None:
    group = Group(**changes)
    found = {name: list(placed(rule(group, group.rows))) for name, rule in RULES.items()}
    assert {name: said for name, said in found.items() if said} == problems


def test_a_type_of_unknown_threads_takes_any_number() -> None:
    unknown = replace(known(ARM), default_threads_per_core=None)
    assert list(instance_groups.threads_problems(Group(threads_per_core=2), lambda: [unknown])) == []


def test_a_restricted_group_has_no_spot_capacity() -> None:
    choices = instance_groups.RESTRICTED_CAPACITIES
    group = Group(capacity=None)
    assert list(placed(instance_groups.capacity_problems(group, group.rows, choices=choices))) == [
        (
            "capacity must say where ml.p5.48xlarge comes from (on_demand or training_plan), because on-demand capacity"
            " of accelerated types is scarce; set capacity: training_plan with its training_plan_arn"
        )
    ]
    group = Group(capacity="training_plan", instance_type=NO_PLANS, training_plan_arn=PLAN)
    assert list(placed(instance_groups.plan_problems(group, group.rows, choices=choices))) == [
        f"{NOT_SOLD.format(NO_PLANS)} set capacity: on_demand, and remove training_plan_arn"
    ]


NEEDS = "{} needs continuous provisioning, got provisioning: all_or_nothing; set key: continuous, or {}".format


@row_by_row(
    "changes, problems",
    [
        ({}, []),
        ({"capacity": "training_plan"}, []),
        ({"capacity": "spot"}, [NEEDS("capacity spot", "set capacity: on_demand")]),
        ({"min_count": 0}, [NEEDS("min_count a minimum", "remove min_count")]),
        (
            {"capacity": "spot", "min_count": 1, "instance_type": None, "instance_types": [CPU]},
            [
                NEEDS("capacity spot", "set capacity: on_demand"),
                NEEDS("min_count a minimum", "remove min_count"),
                NEEDS("instance_types a flexible group", "name one instance_type"),
            ],
        ),
    ],
)
def test_continuous_provisioning(changes: Mapping[str, Any], problems: list[str]) -> None:
    group = Group(**changes)
    assert list(placed(instance_groups.provisioning_problems(group, "all_or_nothing", key="key"))) == problems
    assert list(instance_groups.provisioning_problems(group, "continuous", key="key")) == []


@row_by_row(
    "changes, problems",
    [
        ({}, []),
        ({"instance_type": CPU, "capacity": "spot"}, []),
        (
            {"capacity": "training_plan", "deep_health_checks": STRESS, "instance_type": "ml.p6e-gb200.36xlarge"},
            [
                (
                    "capacity must be on_demand or spot in a group that Karpenter scales, got training_plan; set count"
                    " to the plan's nodes, or capacity: on_demand"
                ),
                (
                    "deep_health_checks must be left out of a group that Karpenter scales: pods would wait for hours,"
                    " and Karpenter would add more nodes for them; remove deep_health_checks, or set a count"
                ),
                (
                    "count must be above 0 for ml.p6e-gb200.36xlarge: HyperPod's Karpenter supports x86_64 only, got"
                    " arm64; set count: 1 or more, or name another instance type"
                ),
            ],
        ),
    ],
)
def test_groups_that_karpenter_scales(changes: Mapping[str, Any], problems: list[str]) -> None:
    group = Group(**changes)
    assert list(placed(instance_groups.autoscaling_problems(group, group.rows))) == problems


def test_clusters_with_karpenter() -> None:
    def found(recovery: str, provisioning: str) -> list[str]:
        return list(
            instance_groups.autoscaled_cluster_problems(
                node_recovery=recovery, provisioning=provisioning, of="of.", way_out="else"
            )
        )

    assert found("automatic", "continuous") == []
    assert found("none", "all_or_nothing") == [
        "needs continuous provisioning, got provisioning: all_or_nothing; set of.provisioning: continuous, or else",
        "needs automatic node recovery, got node_recovery: none; set of.node_recovery: automatic, or else",
    ]
    counts = partial(instance_groups.autoscaled_counts_problem, way_out="else")
    assert counts([0, 1]) is None
    assert counts([1, 2]) == (
        "needs a group with count: 0, because Karpenter scales only these, got none; set count: 0 in one, or else"
    )
    assert counts([0, 0]) == (
        "needs a group with a count above 0, for add-ons and controllers, which run before any pod requests a node, got"
        " none; add two ml.m5.2xlarge named system"
    )


@row_by_row(
    "key, problem",
    [
        ("team", None),
        (f"example.com/{'x' * 63}", None),
        (
            f"example.com/{'x' * 64}",
            "must have at most 63 characters after the prefix, Kubernetes' limit, got 64; shorten it",
        ),
        (
            "sagemaker.amazonaws.com/x",
            (
                "must not begin with sagemaker.amazonaws.com/, which HyperPod reserves, got sagemaker.amazonaws.com/x;"
                " use another prefix"
            ),
        ),
        ("node-role.kubernetes.io/worker", None),
    ],
)
def test_keys_of_labels_and_taints(key: str, problem: str | None) -> None:
    wrong = [] if problem is None else [problem]
    kubelet = kubernetes.node_label_problem(key)
    labelled, tainted = (
        Group(labels={key: "x"}),
        Group(taints=(A(key="a", effect="NoExecute"), A(key=key, effect="NoSchedule"))),
    )
    assert list(instance_groups.key_problems(labelled, list)) == [
        (("labels", key), said) for said in (*wrong, *([] if kubelet is None else [kubelet]))
    ]
    assert list(instance_groups.key_problems(tainted, list)) == [(("taints", 1, "key"), said) for said in wrong]


def placed(found: Iterable[instance_groups.Placed]) -> Iterator[str]:
    """Write each sentence after its place."""
    for place, said in found:
        steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
        yield f"{steps} {said}".removeprefix(".")


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
        (
            PLAN.replace("111122223333", "444455556666"),
            "aws",
            "us-east-1",
            "111122223333",
            [
                (
                    "must be a plan of account 111122223333, got one of 444455556666; plans cannot be shared: name a"
                    ' plan of 111122223333, or set account: "444455556666"'
                )
            ],
        ),
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
            ["must be a plan in us-east-1, got one in no region; name a plan of us-east-1"],
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

    def found(capacity: str | None, *types: str, one: str | None = None) -> list[instance_groups.Placed]:
        group = Group(instance_type=one, instance_types=types, capacity=capacity)
        return list(instance_groups.ultraserver_problems(group, list))

    for capacity in (None, "training_plan"):
        assert found(capacity, one=name) == []
    for capacity in ("on_demand", "spot"):
        assert found(capacity, one="ml.p5.48xlarge") == []
        said = (
            "must be training_plan for ml.p6e-gb200.36xlarge, which is sold as UltraServers of 9"
            " (u-p6e-gb200x36) or 18 (u-p6e-gb200x72) instances, got"
            f" {capacity}; set capacity: training_plan with its training_plan_arn"
        )
        assert found(capacity, one=name) == [(("capacity",), said)]
        assert found(capacity, "ml.p5.48xlarge", name) == [(("capacity",), said)]


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
NO_DRIVER = (
    "partitions the GPUs of ml.p6e-gb200.36xlarge, whose NVIDIA driver 580 and newer does not support that (EKS user"
    f" guide, UltraServers, as of {hyperpod.AS_OF}); remove the label"
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
        ("all-disabled", [ULTRASERVER], []),
        ("all-1g.10gb", [ULTRASERVER, WITHOUT], [(False, NO_DRIVER), (False, NO_SLICES)]),
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
    group = Group(instance_type="ml.p5.48xlarge", labels={hyperpod.MIG_LABEL: configuration})
    at = ("labels", hyperpod.MIG_LABEL)
    certain = [(at, said) for is_certain, said in problems if is_certain]
    # what the chart lacks is another sentence, with another test
    refused = [found for found in instance_groups.partition_problems(group, lambda: rows) if CHART not in found[1]]
    assert refused == certain
    doubts = [(at, said) for is_certain, said in problems if not is_certain]
    assert list(instance_groups.partition_doubts(group, lambda: rows)) == doubts


def of_the_chart(configuration: str, rows: list[InstanceType]) -> str | None:
    """The sentence about a configuration that the chart does not have."""
    group = Group(instance_type="ml.p5.48xlarge", labels={hyperpod.MIG_LABEL: configuration})
    found = [said for _, said in instance_groups.partition_problems(group, lambda: rows) if CHART in said]
    return found[0] if found else None


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
    assert of_the_chart(configuration, rows) == problem


def test_an_unknown_configuration_is_answered_with_those_of_the_type() -> None:
    fix = "set it to all-1g.10gb, all-3g.40gb or all-7g.80gb, or to a mixture of the chart's default-mig-config"
    for rows in ([DOCUMENTED], [WITHOUT, DOCUMENTED], [replace(DOCUMENTED, mig_documented=False)]):
        found = of_the_chart("all-1g.10gb-3", rows)
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


def test_a_key_for_volumes() -> None:
    assert instance_groups.volume_key_problem("all_or_nothing") == (
        "needs continuous provisioning, got provisioning: all_or_nothing"
    )


def test_flexible_groups_have_no_partitions() -> None:
    labels = {hyperpod.MIG_LABEL: "all-1g.10gb"}
    flexible, plain = (
        Group(instance_types=("ml.p5.48xlarge",), labels=labels),
        Group(instance_types=("ml.p5.48xlarge",)),
    )
    said = "must be left out of a flexible group, whose GPUs cannot be partitioned; set one instance_type instead"
    assert list(instance_groups.partition_problems(flexible, lambda: [DOCUMENTED])) == [
        (("labels", hyperpod.MIG_LABEL), said)
    ]
    assert list(instance_groups.partition_problems(plain, lambda: [DOCUMENTED])) == []
    assert list(instance_groups.partition_doubts(plain, lambda: [WITHOUT])) == []


def test_all_rules_are_run_as_far_as_values_are_known() -> None:
    """A rule that reads what is not known ends, and the others still say what they find."""
    wrong = Group(count=1, min_count=2, taints=(TAINT, TAINT), threads_per_core=2, instance_type=ARM)
    placed_at = [place for place, _ in instance_groups.problems(wrong, wrong.rows)]
    assert placed_at == [("min_count",), ("taints", 1), ("threads_per_core",)]
    unknown = replace(wrong, count=UNKNOWN)
    still = [place for place, _ in instance_groups.problems(unknown, unknown.rows, certain=certain)]
    assert still == [("taints", 1), ("threads_per_core",)]
    with pytest.raises(UnknownValueError):
        list(instance_groups.problems(unknown, unknown.rows))
    restricted = instance_groups.restricted_problems(replace(wrong, capacity="training_plan"), wrong.rows)
    assert [place for place, _ in restricted] == [("capacity",), ("training_plan_arn",), ("threads_per_core",)]


def test_kubernetes_of_ultraservers() -> None:
    name = "ml.p6e-gb200.36xlarge"
    server = hyperpod.ultraserver(name)
    assert server is not None
    doubt = partial(instance_groups.ultraserver_version_doubt, name)
    assert doubt(kubernetes_version=server.kubernetes_version) is None
    assert instance_groups.ultraserver_version_doubt("ml.p5.48xlarge", kubernetes_version="1.20") is None
    assert doubt(kubernetes_version="1.32") == (
        f"EKS supports {name} from Kubernetes {server.kubernetes_version} on (EKS user guide, UltraServers, as of"
        f" {hyperpod.AS_OF}), because jobs use the NVLink between its nodes through Dynamic Resource Allocation, got"
        f' "1.32"; {kubernetes.step_to(kubernetes.DEFAULT, "1.32", key="kubernetes_version")}'
    )


@pytest.mark.parametrize(("seen", "after"), [("", ""), ("(plans.json of May)", " (plans.json of May)")])
def test_groups_that_a_plan_does_not_fit(seen: str, after: str) -> None:
    seats = partial(instance_groups.seats_problem, "april", 4, groups=["a", "b"], seen=seen)
    assert (seats(needed=3), seats(needed=4)) == (None, None)
    assert seats(needed=6) == (
        f"needs 6 instances of plan april for a and b, which has 4{after}; lower count by 2 or name another plan"
    )
    assert instance_groups.seats_problem("may", 0, needed=1, groups=["a"], seen=seen) == (
        f"needs 1 instance of plan may for a, which has 0{after}; lower count by 1 or name another plan"
    )
    assert instance_groups.other_types_sentence("april", ["x", "y"], ["v", "w"], seen=seen) == (
        f"must be x or y, which plan april reserves{after}, got v and w; set instance_type: x or name another plan"
    )
    assert instance_groups.other_zone_sentence("april", ["x", "y"], "w", also=" and more", seen=seen) == (
        f"must be x or y, where plan april is{after}, got w; set availability_zone_id: x and more"
    )


NEEDS_KARPENTER = "needs {}, got {}; set autoscaling.{}, or remove autoscaling".format


@row_by_row(
    "recovery, provisioning, problems",
    [
        ("automatic", "continuous", []),
        (
            "automatic",
            "all_or_nothing",
            [NEEDS_KARPENTER("continuous provisioning", "provisioning: all_or_nothing", "provisioning: continuous")],
        ),
        (
            "none",
            "continuous",
            [NEEDS_KARPENTER("automatic node recovery", "node_recovery: none", "node_recovery: automatic")],
        ),
    ],
)
def test_karpenter_needs_of_its_cluster(recovery: str, provisioning: str, problems: list[str]) -> None:
    found = instance_groups.autoscaled_cluster_problems(
        node_recovery=recovery, provisioning=provisioning, of="autoscaling.", way_out="remove autoscaling"
    )
    assert list(found) == problems


@row_by_row(
    "configuration, problem",
    [
        # a mixture whose slices the type has, and one of which it lacks one
        ("mixed-1g.10gb-2g.20gb", "set it to all-1g.10gb, all-3g.40gb or all-7g.80gb"),
        ("mixed-1g.10gb-9g.90gb", None),
        ("mixed", "set it to all-1g.10gb, all-3g.40gb or all-7g.80gb"),
    ],
)
def test_a_mixture_that_the_chart_does_not_have(configuration: str, problem: str | None) -> None:
    found = of_the_chart(configuration, [DOCUMENTED])
    assert found == (
        problem and f"{CHART} GPUs, got {configuration}; {problem}, or to a mixture of the chart's default-mig-config"
    )
