"""The quotas that an environment needs: counted from its file, and the same in its synthesized templates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperpod_cdk.catalog import lustre, quotas
from hyperpod_cdk.checks.model import Case
from hyperpod_cdk.config import Environment, load_environment
from hyperpod_cdk.config.environment import STACKS
from hyperpod_cdk.handlers.quota_gate.comparison import Requirement, from_properties, to_properties
from hyperpod_cdk.handlers.quota_gate.reading import calls_of
from hyperpod_cdk.quotas.needs import (
    interfaces_per_node,
    kind_of,
    own,
    per_node,
    required_quotas,
)
from tests.support.assembly import shipped

CaseOf = Callable[..., Case]
FILES = (
    "environments/prod.yaml",
    "examples/two-teams.yaml",
    "examples/elastic-training.yaml",
    "examples/existing-vpc-and-eks.yaml",
    "examples/closed-network.yaml",
)
H100 = "hyperpod.instance_groups[1]"
WITHOUT_TEAMS: Mapping[str, Any] = {"task_governance": ..., "storage.lustre[0].claim": ...}
ON_DEMAND: Mapping[str, Any] = {f"{H100}.capacity": "on_demand", f"{H100}.training_plan_arn": ..., **WITHOUT_TEAMS}


def needs(case: Case) -> dict[str, Requirement]:
    return {each.key: each for each in required_quotas(case.environment)}


def numbers(case: Case, *keys: str) -> dict[str, tuple[float, float]]:
    found = needs(case)
    return {key: (found[key].needed, found[key].spare) for key in keys}


def group(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "count": 1, "availability_zone_id": "use1-az4", **more}


def test_prod(case_of: CaseOf) -> None:
    found = {key: (each.needed, each.spare, each.path) for key, each in needs(case_of()).items()}
    assert found == {
        "cluster:ml.m5.2xlarge": (2, 0, "hyperpod.instance_groups[0].count"),
        "cluster:ml.p5.48xlarge": (2, 1, "hyperpod.instance_groups[1].count"),
        "hyperpod_instances_total": (4, 1, "hyperpod.instance_groups"),
        "hyperpod_instances_per_cluster": (4, 1, "hyperpod.instance_groups"),
        "hyperpod_ebs_volume_gb": (1000, 0, "hyperpod.instance_groups[1].volume_gib"),
        # 2 x 1 and 2 x 32 cards; 6 of EKS and 1 of kubectl in two zones, 1 NAT gateway, 3 servers of Lustre
        "network_interfaces": (2 + 64 + 14 + 1 + 3, 32, "hyperpod.instance_groups[1].count"),
        "security_groups": (4, 0, "network"),
        "vpcs": (1, 0, "network"),
        "internet_gateways": (1, 0, "network"),
        "elastic_ips": (1, 0, "network.nat_gateways"),
        "nat_gateways_per_az:use1-az5": (1, 0, "network.nat_gateways"),
        "subnets_per_vpc": (5, 0, "network.availability_zones"),
        "cidrs_per_vpc": (3, 0, "network.availability_zones"),
        "gateway_endpoints": (1, 0, "network"),
        "eks_clusters": (1, 0, "eks"),
        "lustre_persistent_2_file_systems": (1, 0, "storage.lustre"),
        "lustre_persistent_2_capacity_gib": (4800, 0, "storage.lustre[0].capacity_gib"),
    }


@pytest.mark.parametrize("file", FILES)
def test_counts_are_those_of_the_templates(file: str, project: Path, assemblies: Path) -> None:
    environment = load_environment(project / file).environment
    templates = shipped(assemblies, environment.name).templates.values()
    resources = [resource for template in templates for resource in template["Resources"].values()]
    made = Counter(each["Type"] for each in resources)
    found = {each.key: each.needed for each in required_quotas(environment)}
    endpoints = Counter(
        each["Properties"]["VpcEndpointType"] for each in resources if each["Type"] == "AWS::EC2::VPCEndpoint"
    )
    nat = [each for key, each in found.items() if key.startswith("nat_gateways_per_az:")]
    assert found.get("vpcs", 0) == made["AWS::EC2::VPC"]
    assert found.get("internet_gateways", 0) == made["AWS::EC2::InternetGateway"]
    assert found.get("elastic_ips", 0) == made["AWS::EC2::EIP"]
    assert sum(nat) == made["AWS::EC2::NatGateway"]
    assert found.get("subnets_per_vpc", 0) == made["AWS::EC2::Subnet"]
    assert found.get("cidrs_per_vpc", 0) == made["AWS::EC2::VPC"] + made["AWS::EC2::VPCCidrBlock"]
    assert endpoints["Gateway"] == found.get("gateway_endpoints", 0)
    assert endpoints["Interface"] == found.get("interface_endpoints_per_vpc", 0)
    # a VPC and an EKS cluster each make a group of their own
    unseen = made["AWS::EC2::VPC"] + made["AWS::EKS::Cluster"]
    assert found.get("security_groups", 0) == made["AWS::EC2::SecurityGroup"] + unseen
    assert found.get("eks_clusters", 0) == made["AWS::EKS::Cluster"]
    file_systems = [each["Properties"] for each in resources if each["Type"] == "AWS::FSx::FileSystem"]
    assert found.get("lustre_persistent_2_file_systems", 0) == len(file_systems)
    assert found.get("lustre_persistent_2_capacity_gib", 0) == sum(each["StorageCapacity"] for each in file_systems)
    (cluster,) = (each["Properties"] for each in resources if each["Type"] == "AWS::SageMaker::Cluster")
    assert found["hyperpod_instances_total"] == sum(each["InstanceCount"] for each in cluster["InstanceGroups"])
    volumes = [
        volume["EbsVolumeConfig"]["VolumeSizeInGB"]
        for each in cluster["InstanceGroups"]
        for volume in each["InstanceStorageConfigs"]
        # the root volume has none
        if "VolumeSizeInGB" in volume["EbsVolumeConfig"]
    ]
    assert found["hyperpod_ebs_volume_gb"] == max(volumes)


def test_own_stacks_are_those_of_the_stage(project: Path, assemblies: Path) -> None:
    mine = own(load_environment(project / FILES[0]).environment)
    assert shipped(assemblies, "prod").templates.keys() == set(mine.stacks)
    assert len(mine.stacks) == len(STACKS)
    assert (mine.hyperpod_cluster, mine.eks_cluster) == ("prod", "prod-eks")


def test_groups_of_one_type_add_up(case_of: CaseOf) -> None:
    case = case_of(
        {
            "hyperpod.instance_groups[2]": group("more", instance_type="ml.p5.48xlarge", count=3, capacity="on_demand"),
            f"{H100}.count": 2,
        }
    )
    found = needs(case)["cluster:ml.p5.48xlarge"]
    assert (found.needed, found.spare, found.lever) == (5, 1, "the counts together")
    assert found.path == "hyperpod.instance_groups[2].count"
    assert found.spare_for == "replacing a faulty node"


@pytest.mark.parametrize(("recovery", "spare"), [("automatic", 1), ("none", 0)])
def test_spare_follows_node_recovery(case_of: CaseOf, recovery: str, spare: int) -> None:
    case = case_of({"hyperpod.node_recovery": recovery})
    keys = ("cluster:ml.p5.48xlarge", "cluster:ml.m5.2xlarge", "hyperpod_instances_total", "network_interfaces")
    assert [each for _, each in numbers(case, *keys).values()] == [spare, 0, spare, 32 * spare]
    said = "replacing faulty nodes" if spare else ""
    assert [needs(case)[each].spare_for for each in keys[2:]] == [said, said]


def test_spot_has_quotas_of_its_own_and_counts_in_the_totals(case_of: CaseOf) -> None:
    spot = group("spot", instance_type="ml.g5.12xlarge", count=3, capacity="spot")
    found = needs(case_of({"hyperpod.instance_groups[2]": spot}))
    assert found["spot:ml.g5.12xlarge"].needed == 3
    assert found["spot:ml.g5.12xlarge"].name == "ml.g5.12xlarge for cluster spot instance usage"
    assert found["spot:ml.g5.12xlarge"].usage == "hyperpod_spot_instances:ml.g5.12xlarge"
    assert "cluster:ml.g5.12xlarge" not in found
    assert {key: found[key].needed for key in found if key.startswith("hyperpod_") and "instances" in key} == {
        "hyperpod_instances_total": 7,
        "hyperpod_instances_per_cluster": 7,
        "hyperpod_spot_instances_total": 3,
        "hyperpod_spot_instances_per_cluster": 3,
    }
    assert found["hyperpod_spot_instances_total"].path == "hyperpod.instance_groups[2].count"


def test_a_flexible_group_needs_its_first_type_and_may_need_the_others(case_of: CaseOf) -> None:
    flexible = group("flexible", instance_types=["ml.g5.12xlarge", "ml.g6.12xlarge"], count=4, capacity="on_demand")
    fixed = group("fixed", instance_type="ml.g6.12xlarge", count=1, capacity="on_demand")
    found = needs(case_of({"hyperpod.instance_groups[2]": flexible, "hyperpod.instance_groups[3]": fixed}))
    first, second = found["cluster:ml.g5.12xlarge"], found["cluster:ml.g6.12xlarge"]
    assert (first.needed, first.spare, first.spare_for) == (4, 1, "replacing a faulty node")
    assert (second.needed, second.spare) == (1, 1 + 4)
    assert second.spare_for == "replacing a faulty node and group flexible, which may use this type"
    assert second.path == "hyperpod.instance_groups[3].count"
    total = found["hyperpod_instances_total"]
    # a replacement of each type that nodes are created with
    assert (total.needed, total.spare) == (4 + 4 + 1, 3)


def test_a_type_that_only_flexible_groups_may_take_is_not_needed(case_of: CaseOf) -> None:
    flexible = group("flexible", instance_types=["ml.m5.large", "ml.c5.large"], count=4)
    found = needs(case_of({"hyperpod.instance_groups[2]": flexible}))["cluster:ml.c5.large"]
    assert (found.needed, found.spare, found.lever) == (0, 4, "")
    assert found.path == "hyperpod.instance_groups[2].count"


def test_groups_without_nodes_need_the_size_of_their_volume_only(case_of: CaseOf) -> None:
    found = needs(case_of({f"{H100}.count": 0, f"{H100}.volume_gib": 1500, **WITHOUT_TEAMS}))
    assert "cluster:ml.p5.48xlarge" not in found
    assert found["hyperpod_instances_total"].needed == 2
    assert found["hyperpod_ebs_volume_gb"].needed == 1500


def test_the_first_node_that_karpenter_adds_is_spare(project: Path) -> None:
    environment = load_environment(project / "examples/karpenter-spot.yaml").environment
    found = {each.key: each for each in required_quotas(environment)}
    numbers = {
        key: (each.needed, each.spare)
        for key, each in found.items()
        if key.startswith(("cluster", "spot", "hyperpod_"))
    }
    # one node more of each type and market is advice; what EKS' add-ons run on is needed
    assert numbers == {
        "cluster:ml.m5.2xlarge": (2, 0),
        "cluster:ml.g5.12xlarge": (0, 1),
        "spot:ml.g5.12xlarge": (0, 1),
        "spot:ml.g5.24xlarge": (0, 1),
        "hyperpod_instances_total": (2, 1),
        "hyperpod_instances_per_cluster": (2, 1),
        "hyperpod_spot_instances_total": (0, 1),
        "hyperpod_spot_instances_per_cluster": (0, 1),
        "hyperpod_ebs_volume_gb": (500, 0),
    }
    assert found["spot:ml.g5.24xlarge"].spare_for == ("the first node that Karpenter adds to spot-1 or spot-2")
    assert found["cluster:ml.g5.12xlarge"].spare_for == "the first node that Karpenter adds to on-demand"
    assert found["hyperpod_spot_instances_total"].path == "hyperpod.instance_groups"


def test_a_type_that_nodes_karpenter_and_a_replacement_may_need(case_of: CaseOf) -> None:
    flexible = group("flexible", instance_types=["ml.g5.12xlarge", "ml.g6.12xlarge"], count=2, capacity="on_demand")
    later = group("later", instance_type="ml.g6.12xlarge", capacity="on_demand")
    changes = {
        "hyperpod.autoscaling": "karpenter",
        "hyperpod.instance_groups[2]": flexible,
        "hyperpod.instance_groups[3]": {**later, "count": 0},
        "hyperpod.karpenter_pools": [{"name": "gpu", "instance_groups": ["later"]}],
    }
    found = needs(case_of(changes))
    maybe, total = found["cluster:ml.g6.12xlarge"], found["hyperpod_instances_total"]
    assert (maybe.needed, maybe.spare, maybe.path) == (0, 1 + 2 + 1, "hyperpod.instance_groups[2].count")
    assert maybe.spare_for == (
        "replacing a faulty node and group flexible, which may use this type and the first node that Karpenter adds "
        "to later"
    )
    # a replacement of each type that nodes are created with, and Karpenter's
    assert (total.needed, total.spare) == (6, 3)
    assert total.spare_for == "replacing faulty nodes and the first node that Karpenter adds to later"


def test_nodes_of_a_type_are_replaced_one_at_a_time(case_of: CaseOf) -> None:
    more = group("more", instance_type="ml.p5.48xlarge", count=3, capacity="on_demand")
    other = group("other", instance_type="ml.p4d.24xlarge", capacity="on_demand")
    case = case_of({"hyperpod.instance_groups[2]": more, "hyperpod.instance_groups[3]": other})
    assert numbers(case, "hyperpod_instances_total", "network_interfaces") == {
        "hyperpod_instances_total": (8, 2),
        # 2 nodes of one card, 5 of 32 and 1 of 4, and 18 of everything else
        "network_interfaces": (2 + 160 + 4 + 18, 32 + 4),
    }
    assert needs(case)["network_interfaces"].path == "hyperpod.instance_groups[2].count"


def test_a_cluster_without_nodes_needs_interfaces_for_the_rest(case_of: CaseOf) -> None:
    found = needs(case_of({"hyperpod.instance_groups[0].count": 0, f"{H100}.count": 0, **WITHOUT_TEAMS}))
    assert not [key for key in found if key.startswith(("cluster:", "hyperpod_instances"))]
    interfaces = found["network_interfaces"]
    assert (interfaces.needed, interfaces.spare, interfaces.spare_for, interfaces.path) == (18, 0, "", "network")


@pytest.mark.parametrize(
    ("changes", "gib", "index"),
    [({f"{H100}.volume_gib": ...}, 500, 0), ({"hyperpod.instance_groups[0].volume_gib": 1200}, 1200, 0), ({}, 1000, 1)],
)
def test_the_largest_volume_counts(case_of: CaseOf, changes: dict[str, Any], gib: int, index: int) -> None:
    volume = needs(case_of(changes))["hyperpod_ebs_volume_gb"]
    assert (volume.needed, volume.path) == (gib, f"hyperpod.instance_groups[{index}].volume_gib")


@pytest.mark.parametrize(("gateways", "zones"), [(1, ["use1-az5"]), (2, ["use1-az5", "use1-az4"])])
def test_nat_gateways_stand_in_the_first_zones(case_of: CaseOf, gateways: int, zones: list[str]) -> None:
    found = needs(case_of({"network.nat_gateways": gateways}))
    assert [key for key in found if key.startswith("nat")] == [f"nat_gateways_per_az:{zone}" for zone in zones]
    assert (found["elastic_ips"].needed, found["subnets_per_vpc"].needed) == (gateways, 4 + gateways)


def test_a_closed_network_needs_endpoints_in_place_of_gateways(case_of: CaseOf) -> None:
    zones: dict[str, Any] = {"use1-az5": {}, "use1-az4": {}, "use1-az6": {}}
    network = {"egress": "closed", "availability_zones": zones, "endpoints": {"additional": ["kms"]}}
    found = needs(case_of({"network": network}))
    assert not {"internet_gateways", "elastic_ips"}.intersection(found)
    # 13 of nodes and kubectl, FSx for the claim, and kms
    assert found["interface_endpoints_per_vpc"].needed == 15
    assert found["interface_endpoints_per_vpc"].path == "network.endpoints.additional"
    # nodes and control plane, and the endpoints' own in the third zone
    assert found["subnets_per_vpc"].needed == 3 + 2 + 1
    assert found["cidrs_per_vpc"].needed == 4
    # nodes', endpoints', the VPC's, EKS's and the file system's
    assert found["security_groups"].needed == 5
    open_network = {"availability_zones": zones}
    more = found["network_interfaces"].needed - needs(case_of({"network": open_network}))["network_interfaces"].needed
    # an interface of each endpoint in each zone, and none of a NAT gateway
    assert more == 3 * 15 - 1


def test_an_existing_network_needs_no_vpc(case_of: CaseOf) -> None:
    existing = {
        "vpc_id": "vpc-0a1b2c3d4e5f67890",
        "node_subnet_ids": {"use1-az5": "subnet-0a1b2c3d4e5f67890", "use1-az4": "subnet-0a1b2c3d4e5f67891"},
        "control_plane_subnet_ids": ["subnet-0a1b2c3d4e5f67892", "subnet-0a1b2c3d4e5f67893"],
    }
    found = needs(case_of({"network": {"existing": existing}}))
    assert {key for key, each in found.items() if kind_of(each) == "network"} == {
        "network_interfaces",
        "security_groups",
    }
    # the nodes', EKS's own and the file system's
    assert found["security_groups"].needed == 3
    given_group = {**existing, "security_group_id": "sg-0a1b2c3d4e5f67890"}
    assert needs(case_of({"network": {"existing": given_group}}))["security_groups"].needed == 1


def test_an_existing_group_and_an_existing_cluster_need_no_security_group(project: Path) -> None:
    environment = load_environment(project / "examples/existing-vpc-and-eks.yaml").environment
    found = {each.key: (each.needed, each.spare) for each in required_quotas(environment)}
    assert not {"security_groups", "eks_clusters", "vpcs", "rules_per_security_group"} & found.keys()
    # in subnets that others use, too: 2 + 4 nodes, 3 servers of Lustre and 1 of kubectl
    assert found["network_interfaces"] == (10, 1)


def test_file_systems_of_other_kinds_count_against_their_own_quotas(case_of: CaseOf) -> None:
    zone = {"availability_zone_id": "use1-az5"}
    tiering = {**zone, "storage_type": "intelligent_tiering", "throughput_capacity_mbps": 4000}
    proportional = {"read_cache": {"sizing": "proportional"}}
    systems = [
        {"name": "a", **zone, "deployment_type": "scratch_2", "capacity_gib": 2400},
        {"name": "b", **zone, "deployment_type": "scratch_2", "capacity_gib": 4800},
        {"name": "c", **tiering, "read_cache": {"sizing": "provisioned", "size_gib": 128}},
        {"name": "d", **tiering, **proportional, "throughput_capacity_mbps": 8000},
        {"name": "e", **tiering, "read_cache": {"sizing": "provisioned", "size_gib": 64}},
        {"name": "f", **zone, "capacity_gib": 2400},
        {"name": "g", **zone, "capacity_gib": 4800},
        {"name": "h", **zone, "capacity_gib": 1200},
    ]
    found = {key: need for key, need in needs(case_of({"storage.lustre": systems})).items() if "lustre" in key}
    assert {key: (need.needed, need.path) for key, need in found.items()} == {
        "lustre_persistent_2_file_systems": (6, "storage.lustre"),
        "lustre_persistent_2_capacity_gib": (8400, "storage.lustre[6].capacity_gib"),
        "lustre_scratch_capacity_gib": (7200, "storage.lustre[1].capacity_gib"),
        "lustre_intelligent_tiering_mbps": (16_000, "storage.lustre[3].throughput_capacity_mbps"),
        "lustre_intelligent_tiering_read_cache_gib": (192, "storage.lustre[2].read_cache.size_gib"),
    }
    # two could be made smaller in many ways, one in one
    lone = needs(case_of({"storage.lustre": [systems[0], systems[2]]}))
    both, one = ({key: each.lever for key, each in some.items() if key in found} for some in (found, lone))
    assert both["lustre_scratch_capacity_gib"] == both["lustre_intelligent_tiering_mbps"] == ""
    assert one["lustre_scratch_capacity_gib"] == "capacity_gib"
    assert one["lustre_intelligent_tiering_mbps"] == "throughput_capacity_mbps"


# FSx for Lustre guide, managing storage capacity and throughput capacity
@pytest.mark.parametrize(
    ("system", "key", "step"),
    [
        ({"capacity_gib": 4800}, "lustre_persistent_2_capacity_gib", 2400),
        ({"capacity_gib": 4800, "throughput_mbps_per_tib": 1000}, "lustre_persistent_2_capacity_gib", 2400),
        (
            {"capacity_gib": 4800, "throughput_mbps_per_tib": 1000, "efa": True},
            "lustre_persistent_2_capacity_gib",
            4800,
        ),
        (
            {"capacity_gib": 38_400, "throughput_mbps_per_tib": 125, "efa": True},
            "lustre_persistent_2_capacity_gib",
            38_400,
        ),
        ({"capacity_gib": 2400, "deployment_type": "scratch_2"}, "lustre_scratch_capacity_gib", 2400),
        (
            {
                "storage_type": "intelligent_tiering",
                "throughput_capacity_mbps": 8000,
                "read_cache": {"sizing": "proportional"},
            },
            "lustre_intelligent_tiering_mbps",
            4000,
        ),
    ],
)
def test_a_file_system_gets_smaller_in_steps(case_of: CaseOf, system: dict[str, Any], key: str, step: float) -> None:
    found = needs(case_of({"storage.lustre": [{"name": "a", "availability_zone_id": "use1-az5", **system}]}))
    assert found[key].step == step


def test_rules_of_the_nodes_group_count_where_they_come_near(case_of: CaseOf) -> None:
    systems = [{"name": f"fs{n}", "availability_zone_id": "use1-az5", "capacity_gib": 1200} for n in range(15)]
    few = needs(case_of({"storage.lustre": systems[:14]}))
    many = needs(case_of({"storage.lustre": systems}))
    assert "rules_per_security_group" not in few
    assert many["rules_per_security_group"].needed == 2 + 15 * len(lustre.TCP_PORTS)
    # to a file system over EFA one rule allows all protocols
    over_efa = [{**system, "efa": True, "capacity_gib": 4800, "throughput_mbps_per_tib": 1000} for system in systems]
    both = needs(case_of({"storage.lustre": [*systems, *[{**each, "name": f"e{each['name']}"} for each in over_efa]]}))
    assert both["rules_per_security_group"].needed == 2 + 15 * len(lustre.TCP_PORTS) + 15


@pytest.mark.parametrize(
    ("instance_type", "cards"), [("ml.p5.48xlarge", 32), ("ml.m5.2xlarge", 1), ("ml.p4d.24xlarge", 4)]
)
def test_interfaces_of_a_node(case_of: CaseOf, instance_type: str, cards: int) -> None:
    case = case_of(
        {f"{H100}.instance_type": instance_type, **ON_DEMAND, f"{H100}.deep_health_checks": ..., "task_governance": ...}
    )
    assert interfaces_per_node(case.environment, case.environment.hyperpod.instance_groups[1]) == cards


def test_a_node_of_a_type_that_nobody_knows_has_one_interface(case_of: CaseOf) -> None:
    environment = case_of().environment
    other = environment.hyperpod.instance_groups[1].model_copy(update={"instance_type": "ml.new.large"})
    assert interfaces_per_node(environment, other) == 1


@pytest.mark.parametrize(
    ("capacity", "takes"),
    [
        ("on_demand", {"cluster:ml.p5.48xlarge": 1}),
        (
            "spot",
            {"spot:ml.p5.48xlarge": 1, "hyperpod_spot_instances_total": 1, "hyperpod_spot_instances_per_cluster": 1},
        ),
    ],
)
def test_what_one_more_node_takes(case_of: CaseOf, capacity: str, takes: dict[str, float]) -> None:
    case = case_of({**ON_DEMAND, f"{H100}.capacity": capacity, f"{H100}.deep_health_checks": ..., **WITHOUT_TEAMS})
    of_every_node = {"hyperpod_instances_total": 1, "hyperpod_instances_per_cluster": 1, "network_interfaces": 32}
    assert per_node(case.environment, case.environment.hyperpod.instance_groups[1]) == {**of_every_node, **takes}


@pytest.mark.parametrize("file", FILES)
def test_every_requirement_is_whole(file: str, project: Path) -> None:
    environment = load_environment(project / file).environment
    found = required_quotas(environment)
    assert len({each.key for each in found}) == len(found)
    assert from_properties(to_properties(found)) == found
    for each in found:
        assert quotas.find(each.service, each.name) or each.key.partition(":")[0] in {"cluster", "spot"}
        assert each.code, f"{each.name} has no code: every page of {each.service} would be read"
        assert not each.usage or calls_of(each.usage)
        assert each.path
        assert each.unit
    for group_ in environment.hyperpod.instance_groups:
        assert per_node(environment, group_).keys() <= {each.key for each in found}


@settings(max_examples=15, deadline=None)
@given(counts=st.lists(st.integers(0, 40), min_size=2, max_size=2), spot=st.booleans())
def test_needs_are_sums_over_groups(case_of: CaseOf, counts: list[int], spot: bool) -> None:  # noqa: FBT001 - drawn
    capacity = "spot" if spot else "on_demand"
    environment = case_of(
        {
            "hyperpod.instance_groups[0].count": counts[0] + 1,
            f"{H100}.count": counts[1],
            f"{H100}.capacity": capacity,
            f"{H100}.training_plan_arn": ...,
            **WITHOUT_TEAMS,
        }
    ).environment
    assert _taken(environment, "hyperpod_instances_total") == counts[0] + 1 + counts[1]
    assert _taken(environment, "hyperpod_spot_instances_total") == (counts[1] if spot else 0)
    assert _taken(environment, f"{'spot' if spot else 'cluster'}:ml.p5.48xlarge") == counts[1]


def _taken(environment: Environment, key: str) -> float:
    return sum(each.needed for each in required_quotas(environment) if each.key == key)


def test_restricted_groups(case_of: CaseOf) -> None:
    def nova(index: int, count: int, lustre: Mapping[str, int] | None) -> Mapping[str, Any]:
        return {
            f"hyperpod.restricted_instance_groups[{index}]": {
                "name": f"nova-{index}",
                "instance_type": "ml.p5.48xlarge",
                "count": count,
                "availability_zone_id": "use1-az5",
                "capacity": "on_demand",
                "volume_gib": 1100,
                **({"lustre": lustre} if lustre else {}),
            }
        }

    changes = {
        "hyperpod.restricted_dependencies": "installed",
        "hyperpod.restricted_instance_groups": [],
        **nova(0, 3, {"capacity_gib": 2400}),
        # the file system of a group without nodes stays
        **nova(1, 0, {"capacity_gib": 4800}),
        **nova(2, 1, None),
        "hyperpod.restricted_environment": {"lustre": {"capacity_gib": 1200}},
    }
    found = needs(case_of(changes))
    assert (found["cluster:ml.p5.48xlarge"].needed, found["hyperpod_instances_per_cluster"].needed) == (6, 8)
    volume = found["hyperpod_ebs_volume_gb"]
    assert (volume.needed, volume.path) == (1100, "hyperpod.restricted_instance_groups[0].volume_gib")
    lustre = found["hyperpod_restricted_lustre_tib"]
    assert (lustre.needed, lustre.path) == (8400 / 1024, "hyperpod.restricted_instance_groups[1].lustre.capacity_gib")
