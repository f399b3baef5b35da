"""Nodes, accelerators, plans, addresses and quotas before and after, and what stays unknown with its reason."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from hyperpod_cdk.config import LoadedEnvironment, load_environment
from hyperpod_cdk.config.addresses import address_budgets
from hyperpod_cdk.config.recorded_plans import RecordedPlan, RecordedPlans
from hyperpod_cdk.config.recorded_quotas import RecordedQuota, RecordedQuotas
from hyperpod_cdk.handlers.quota_gate.comparison import Requirement, to_properties
from hyperpod_cdk.quotas.needs import required_quotas
from hyperpod_cdk.review.figures.capacity import capacity
from hyperpod_cdk.review.model import Capacity, Change, QuotaNeed
from hyperpod_cdk.templates.assembly import EMPTY, Assembly, Stack, read_assembly
from tests.support.assembly import ENVIRONMENTS, shipped
from tests.support.tables import row_by_row

PLAN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/h100-april"
ACCOUNT, REGION, DAY = "111122223333", "us-east-1", date(2026, 11, 20)
P5 = "ml.p5.48xlarge for cluster usage"


def group(name: str = "h100", instance_type: Any = "ml.p5.48xlarge", count: Any = 2, **more: Any) -> dict[str, Any]:
    network = {"Subnets": [{"Ref": "S"}], "SecurityGroupIds": []}
    types = {"InstanceType": instance_type} if isinstance(instance_type, str) else {}
    several = {"InstanceRequirements": {"InstanceTypes": instance_type}} if isinstance(instance_type, list) else {}
    body = {"InstanceGroupName": name, "InstanceCount": count, "OverrideVpcConfig": network}
    return {**body, **types, **several, **more}


def template(*groups: dict[str, Any], **more: Any) -> dict[str, Any]:
    subnet = {"VpcId": "vpc-1", "CidrBlock": "10.0.0.0/24", "AvailabilityZoneId": "use1-az5"}
    properties = {"InstanceGroups": list(groups), "NodeRecovery": "Automatic"}
    return {
        "Parameters": {"Asked": {"Type": "String"}},
        "Resources": {
            "C": {"Type": "AWS::SageMaker::Cluster", "Properties": properties},
            "S": {"Type": "AWS::EC2::Subnet", "Properties": subnet},
            **more,
        },
    }


def assembly(*groups: dict[str, Any], **more: Any) -> Assembly:
    return Assembly(environment="", stacks=(Stack(name="lab", template=template(*groups, **more)),))


def of(change: Change) -> tuple[float | None, float | None]:
    return change.before, change.after


@pytest.fixture
def loaded(project: Path) -> LoadedEnvironment:
    """The environment file of prod, whose records the tests make."""
    return load_environment(project / "environments/prod.yaml", with_record=False)


def seen(loaded: LoadedEnvironment, *quotas: RecordedQuota, seats: int | None = None) -> LoadedEnvironment:
    plan = RecordedPlan(
        arn=PLAN, name="h100-april", status="Active", target_resources=(), instance_count=seats or 0, blocks=()
    )
    owner: dict[str, Any] = {"schema_version": 1, "recorded": DAY, "account": ACCOUNT, "region": REGION}
    plans = RecordedPlans(**owner, plans=(plan,)) if seats is not None else None
    return replace(loaded, recorded_plans=plans, recorded_quotas=RecordedQuotas(**owner, quotas=quotas))


def test_groups_are_matched_by_name() -> None:
    found = capacity(
        assembly(group(count=2), group("gone", "ml.m5.2xlarge", 1)),
        assembly(group(count=4, TrainingPlanArn=PLAN), group("new", "ml.g5.12xlarge", 3)),
    )
    assert [
        (each.name, each.capacity, each.accelerator, of(each.nodes), of(each.accelerators), of(each.efa_interfaces))
        for each in found.groups
    ] == [
        ("h100", "training plan h100-april", "H100 80 GB", (2, 4), (16, 32), (64, 128)),
        ("new", "on-demand", "A10G 22 GB", (0, 3), (0, 12), (0, 3)),
        ("gone", "on-demand", None, (1, 0), (0, 0), (0, 0)),
    ]
    assert {each.zone_ids for each in found.groups} == {("use1-az5",)}
    assert [(each.instance_type, each.zone_id, of(each.nodes)) for each in found.totals] == [
        ("ml.p5.48xlarge", "use1-az5", (2, 4)),
        ("ml.g5.12xlarge", "use1-az5", (0, 3)),
        ("ml.m5.2xlarge", "use1-az5", (1, 0)),
    ]


def test_totals_add_up_groups_of_a_type_in_a_zone() -> None:
    other = {"Subnets": ["subnet-elsewhere"], "SecurityGroupIds": []}
    head = assembly(group("a"), group("b", count=3), group("c", count=1, OverrideVpcConfig=other))
    assert [(each.zone_id, of(each.nodes), of(each.accelerators)) for each in capacity(EMPTY, head).totals] == [
        ("use1-az5", (0, 5), (0, 40)),
        ("", (0, 1), (0, 8)),
    ]


@row_by_row(
    "changed, nodes, accelerators, note",
    [
        ({"count": {"Ref": "Asked"}}, None, None, "The number of nodes of h100 is unknown: ${Asked} sets it."),
        ({"instance_type": "ml.x9.metal"}, 2, None, None),
        (
            {"instance_type": None},
            2,
            None,
            "The instance type of h100 is unknown: it is set at deployment.",
        ),
        ({"instance_type": "ml.m5.2xlarge", "count": {"Ref": "Asked"}}, None, 0, None),
        (
            {"instance_type": ["ml.g5.12xlarge", "ml.g5.24xlarge"]},
            2,
            8,
            (
                "h100 gets its nodes from ml.g5.12xlarge or ml.g5.24xlarge, depending on availability; its count is "
                "for all of them."
            ),
        ),
        ({"instance_type": ["ml.g5.12xlarge", "ml.p5.48xlarge"]}, 2, None, None),
        ({"instance_type": ["ml.g5.12xlarge", "ml.p5.48xlarge"], "count": 0}, 0, 0, None),
        (
            {"instance_type": "ml.p6e-gb200.36xlarge"},
            2,
            8,
            "ml.p6e-gb200.36xlarge is sold as UltraServers of 9 or 18 instances.",
        ),
    ],
)
def test_what_is_not_shown_is_unknown_and_says_why(
    changed: dict[str, Any], nodes: float | None, accelerators: float | None, note: str | None
) -> None:
    found = capacity(EMPTY, assembly(group(**changed)))
    (only,) = found.groups
    assert (only.nodes.after, only.accelerators.after) == (nodes, accelerators)
    assert note is None or note in found.notes


@row_by_row(
    "types, said",
    [
        ("ml.m5.2xlarge", None),
        ("ml.p5.48xlarge", "H100 80 GB"),
        ("ml.x9.metal", "unknown"),
        (None, "unknown"),
        (["ml.p5.48xlarge", "ml.x9.metal"], "H100 80 GB or unknown"),
        (["ml.m5.2xlarge", "ml.x9.metal"], "unknown"),
    ],
)
def test_the_accelerator_of_an_unknown_type_is_unknown(types: Any, said: str | None) -> None:
    (only,) = capacity(EMPTY, assembly(group(instance_type=types))).groups
    assert only.accelerator == said


def test_karpenter_s_nodes_are_not_counted() -> None:
    head = assembly(group("spot", "ml.g5.12xlarge", 0, CapacityRequirements={"Spot": {}}))
    scaled = copy.deepcopy(dict(head.stacks[0].template))
    scaled["Resources"]["C"]["Properties"]["AutoScaling"] = {"Mode": "Enable"}
    found = capacity(EMPTY, Assembly(environment="", stacks=(Stack(name="lab", template=scaled),)))
    assert [(each.capacity, of(each.nodes), of(each.accelerators)) for each in found.groups] == [
        ("spot", (0, None), (0, None))
    ]
    assert [(of(each.used), each.note) for each in found.blocks] == [
        ((0, 0), "without the nodes that Karpenter adds to spot")
    ]
    assert "The number of nodes of spot is unknown: Karpenter sets it." in found.notes


def test_a_type_without_a_catalog_row_has_the_values_of_the_environment_file(loaded: LoadedEnvironment) -> None:
    head = assembly(group(instance_type="ml.x9.metal"))
    found = capacity(EMPTY, head)
    assert any(note.startswith("ml.x9.metal is not in the catalog of ") for note in found.notes)
    assert of(found.blocks[0].used) == (0, None)
    assert found.blocks[0].note == "the number of addresses of a node of ml.x9.metal is unknown"
    row = {"architecture": "x86_64", "vcpu": 192, "memory_gib": 2048, "ips_per_node": 20}
    stated = loaded.environment.model_validate(
        {**loaded.environment.model_dump(mode="json", exclude_unset=True), "instance_types": {"ml.x9.metal": row}}
    )
    found = capacity(EMPTY, head, head_environment=replace(loaded, environment=stated))
    assert of(found.blocks[0].used) == (0, 60)
    assert not any(note.startswith("ml.x9.metal is not") for note in found.notes)


@pytest.mark.parametrize(
    ("seats", "problem"),
    [
        (5, None),
        (
            4,
            (
                "needs 5 instances of plan h100-april for a and b, which has 4 (environments/prod.plans.json of"
                " 2026-11-20); lower count by 1 or name another plan"
            ),
        ),
        (None, None),
    ],
)
def test_groups_of_one_plan_share_its_seats(loaded: LoadedEnvironment, seats: int | None, problem: str | None) -> None:
    base = assembly(group("a", count=2, TrainingPlanArn=PLAN))
    head = assembly(group("a", count=3, TrainingPlanArn=PLAN), group("b", count=2, TrainingPlanArn=PLAN), group("c"))
    known = replace(seen(loaded, seats=seats), file="environments/prod.yaml")
    (plan,) = capacity(base, head, head_environment=known).plans
    assert (plan.plan, plan.instance_type, of(plan.used)) == ("h100-april", "ml.p5.48xlarge", (2, 5))
    assert (plan.seats, plan.recorded_on) == ((seats, "2026-11-20") if seats else (None, None))
    assert plan.problem == problem


def test_a_plan_that_is_no_longer_used_has_no_users() -> None:
    (plan,) = capacity(assembly(group(TrainingPlanArn=PLAN)), assembly(group())).plans
    assert (of(plan.used), plan.seats, plan.problem) == ((2, 0), None, None)


@row_by_row("name", ENVIRONMENTS)
def test_addresses_of_shipped_environments_are_those_of_preflight(name: str, assemblies: Path) -> None:
    environment = shipped(assemblies, name).environment
    found = capacity(EMPTY, read_assembly(assemblies / name, name))
    blocks = {each.cidr or each.subnet: (each.used.after, each.usable) for each in found.blocks}
    budgets = address_budgets(environment)
    assert blocks == {each.cidr or each.subnet_id: (each.needed, each.usable or None) for each in budgets}


@row_by_row("name", ENVIRONMENTS)
def test_quotas_of_shipped_environments_are_those_of_the_gate(name: str, assemblies: Path) -> None:
    environment = shipped(assemblies, name).environment
    found = capacity(EMPTY, read_assembly(assemblies / name, name)).quotas
    assert [(each.name.partition(" (")[0], each.needed.after) for each in found] == [
        (each.name, each.needed) for each in required_quotas(environment)
    ]


def test_blocks_before_and_after() -> None:
    fs = {
        "Type": "AWS::FSx::FileSystem",
        "Properties": {
            "FileSystemType": "LUSTRE",
            "StorageCapacity": 4800,
            "SubnetIds": [{"Ref": "S"}],
            "LustreConfiguration": {"MetadataConfiguration": {"Mode": "USER_PROVISIONED", "Iops": 24000}},
        },
    }
    load = {"Type": "AWS::ElasticLoadBalancingV2::LoadBalancer", "Properties": {"Subnets": [{"Ref": "S"}]}}
    found = capacity(assembly(group(count=1)), assembly(group(count=3), Fs=fs, Lb=load))
    (block,) = found.blocks
    assert (block.subnet, block.cidr, block.zone_id, block.usable) == ("S", "10.0.0.0/24", "use1-az5", 251)
    assert of(block.used) == (2 * 81, 4 * 81 + 4)
    assert block.note == "h100: 3 nodes and 1 spare of ml.p5.48xlarge, 81 each; file systems: 4; without Lb"


@pytest.mark.parametrize(
    ("settings", "servers"),
    [
        ({"MetadataConfiguration": {"Mode": "AUTOMATIC"}}, 22),
        ({"MetadataConfiguration": {"Mode": "AUTOMATIC"}, "PerUnitStorageThroughput": 1000, "EfaEnabled": True}, 12),
        ({"MetadataConfiguration": {"Mode": "AUTOMATIC"}, "PerUnitStorageThroughput": 1000, "EfaEnabled": False}, 22),
        ({"PerUnitStorageThroughput": 250}, 21),
        ({"PerUnitStorageThroughput": 1000, "EfaEnabled": {"Ref": "Efa"}}, None),
        ({"PerUnitStorageThroughput": {"Ref": "Tier"}, "EfaEnabled": True}, None),
    ],
)
def test_addresses_of_file_systems(settings: dict[str, Any], servers: int | None) -> None:
    """48,000 GiB: 20 servers of 2.4 TiB, or 10 of 4.8 TiB with EFA; 24,000 metadata operations in automatic mode."""
    fs = {
        "Type": "AWS::FSx::FileSystem",
        "Properties": {
            "FileSystemType": "LUSTRE",
            "StorageCapacity": 48_000,
            "SubnetIds": [{"Ref": "S"}],
            "LustreConfiguration": settings,
        },
    }
    (block,) = capacity(EMPTY, assembly(group(count=1), Fs=fs)).blocks
    assert block.used.after == (None if servers is None else 2 * 81 + servers)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"count": {"Ref": "Asked"}}, "the count of h100 is unknown: ${Asked} sets it"),
        (
            {"OverrideVpcConfig": {"Subnets": [{"Ref": "S"}, "subnet-2"]}},
            "h100 has 2 subnets, and how many of its nodes are here is unknown",
        ),
        ({"instance_type": None}, "the number of addresses of a node of the type of h100 is unknown"),
    ],
)
def test_addresses_that_are_unknown(change: dict[str, Any], reason: str) -> None:
    block = capacity(EMPTY, assembly(group(**change))).blocks[0]
    assert (block.used.after, block.note) == (None, reason)


def gate(*requirements: Requirement) -> dict[str, Any]:
    return {"Type": "Custom::HyperPodQuotaGate", "Properties": {"Requirements": to_properties(requirements)}}


def need(needed: float, name: str = P5, key: str = "cluster:ml.p5.48xlarge", **more: Any) -> Requirement:
    return Requirement(
        **{"key": key, "service": "sagemaker", "name": name, "code": "L-1", "default": 5, "needed": needed, **more}
    )


def quota(value: float, *, used: float | None = 0, key: str = "cluster:ml.p5.48xlarge") -> RecordedQuota:
    return RecordedQuota(
        service="sagemaker",
        name="ML.P5.48xlarge for cluster usage",
        code="L-1",
        value=value,
        is_default=False,
        used={key: used},
    )


def only(found: Capacity) -> QuotaNeed:
    (each,) = found.quotas
    return each


@pytest.mark.parametrize(
    ("recorded", "value", "day", "result"),
    [
        ([], 5, None, "enough"),
        ([quota(5)], 5, "2026-11-20", "enough"),
        ([quota(4)], 4, "2026-11-20", "enough"),
        ([quota(3)], 3, "2026-11-20", "short"),
        ([quota(6, used=2)], 6, "2026-11-20", "enough"),
        ([quota(6, used=3)], 6, "2026-11-20", "short"),
        ([quota(6, used=None)], 6, "2026-11-20", "unknown"),
        ([quota(3, used=None)], 3, "2026-11-20", "short"),
        ([quota(6, key="another")], 6, "2026-11-20", "unknown"),
    ],
)
def test_quotas_against_the_record(
    loaded: LoadedEnvironment, recorded: list[RecordedQuota], value: float, day: str | None, result: str
) -> None:
    base, head = (assembly(Gate=gate(need(number))) for number in (2, 4))
    found = only(capacity(base, head, head_environment=seen(loaded, *recorded)))
    assert (found.name, found.code, of(found.needed)) == (P5, "L-1", (2, 4))
    assert (found.recorded, found.recorded_on, found.result) == (value, day, result)


@pytest.mark.parametrize(
    ("requirement", "result"),
    [(need(5), "enough"), (need(6), "unknown"), (need(5, unsure_default="seen otherwise"), "unknown")],
)
def test_aws_s_default_never_proves_a_shortage(requirement: Requirement, result: str) -> None:
    found = only(capacity(EMPTY, assembly(Gate=gate(requirement))))
    assert (found.recorded, found.recorded_on, found.result) == (5, None, result)


def test_what_a_gate_no_longer_lists_is_no_longer_needed() -> None:
    nat = need(1, "NAT gateways per Availability Zone", "nat_gateways_per_az:use1-az5")
    found = capacity(assembly(Gate=gate(need(2), nat)), assembly(Gate=gate(need(2)))).quotas
    assert [(each.name, of(each.needed)) for each in found] == [
        (P5, (2, 2)),
        ("NAT gateways per Availability Zone (use1-az5)", (1, 0)),
    ]


def test_a_template_without_a_gate_shows_what_it_can() -> None:
    volume = [{"EbsVolumeConfig": {"VolumeSizeInGB": 700}}]
    head = assembly(
        group(count=3, InstanceStorageConfigs=volume),
        group("b", ["ml.p5.48xlarge", "ml.p5e.48xlarge"], 2),
        group("s", "ml.g5.12xlarge", 1, CapacityRequirements={"Spot": {}}),
        V={"Type": "AWS::EC2::VPC"},
        K={"Type": "AWS::EKS::Cluster"},
    )
    needs = {each.name: of(each.needed) for each in capacity(assembly(group(count=1)), head).quotas}
    assert needs == {
        P5: (1, 5),
        "ml.g5.12xlarge for cluster spot instance usage": (0, 1),
        "Total number of instances allowed across SageMaker HyperPod clusters": (1, 6),
        "Maximum number instances allowed per SageMaker HyperPod cluster": (1, 6),
        "Total number of Spot instances allowed across SageMaker HyperPod clusters": (0, 1),
        "Maximum number Spot instances allowed per SageMaker HyperPod cluster": (0, 1),
        "Maximum size of EBS volume in GB for a SageMaker HyperPod cluster instance": (None, 700),
        "VPCs per Region": (None, 1),
        "Clusters": (None, 1),
    }
    # nothing is known of a count that is unknown
    head = assembly(group(count={"Ref": "Asked"}))
    assert {(each.needed.after, each.result) for each in capacity(EMPTY, head).quotas} == {(None, "unknown")}


def test_a_gate_of_another_version_is_reported() -> None:
    broken = {"Type": "Custom::HyperPodQuotaGate", "Properties": {"Requirements": [{"Key": "x"}]}}
    found = capacity(EMPTY, assembly(group(), Gate=broken))
    assert P5 in {each.name for each in found.quotas}
    assert any(
        note.startswith("The list of Gate in lab could not be read: a requirement must have") for note in found.notes
    )


def test_notes_say_which_records_are_missing(loaded: LoadedEnvironment) -> None:
    head = assembly(group(TrainingPlanArn=PLAN))
    assert capacity(EMPTY, head, head_environment=loaded).notes == (
        "No training plan is recorded; 'hyperpod-cdk plans record prod' writes AWS's data of them.",
        (
            "No quota is recorded, so needs are compared with AWS's defaults, without other usage of the account; "
            "'hyperpod-cdk quotas show prod --record' writes the account's values."
        ),
    )
    assert capacity(EMPTY, head, head_environment=seen(loaded, seats=8)).notes == ()
    assert capacity(EMPTY, EMPTY) == Capacity()


def test_clusters_with_groups_of_one_name_are_distinguished() -> None:
    second = {"Type": "AWS::SageMaker::Cluster", "Properties": {"InstanceGroups": [group(count=1)]}}
    found = capacity(EMPTY, assembly(group(), D=second))
    assert [(each.name, each.nodes.after) for each in found.groups] == [("C / h100", 2), ("D / h100", 1)]
    assert [each.nodes.after for each in found.totals] == [3]


def test_every_group_of_the_largest_environment_is_counted() -> None:
    labels = {"Labels": {f"label-{index}": "value" for index in range(50)}}
    head = assembly(*(group(f"g{index}", KubernetesConfig=labels) for index in range(100)))
    base = Assembly(
        environment="", stacks=(Stack(name="lab", template=json.loads(json.dumps(head.stacks[0].template))),)
    )
    assert len(capacity(base, head).groups) == 100
