"""Values of an environment that follow from others."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperpod_cdk.catalog import governance, hyperpod, regions
from hyperpod_cdk.catalog import lustre as lustre_catalog
from hyperpod_cdk.catalog import network as network_catalog
from hyperpod_cdk.config import Environment, LoadedEnvironment, Network, Sharing, TaskGovernance
from hyperpod_cdk.config.environment import NAME_LENGTH
from hyperpod_cdk.config.shape import bare, item_type, type_at
from tests.support.tables import row_by_row

Changed = Callable[[Mapping[str, str]], str]
Load = Callable[[str], LoadedEnvironment]

SMALLEST = """
name: dev
account: "111122223333"
region: us-east-1
network:
  availability_zones:
    use1-az4:
    use1-az6: {}
hyperpod:
  instance_groups:
    - {name: system, instance_type: ml.m5.2xlarge, count: 1, availability_zone_id: use1-az4}
"""


def test_smallest_file(load: Load) -> None:
    loaded = load(SMALLEST)
    environment = loaded.environment
    # no administrator and no address can be a default
    assert sorted(warning.path for warning in loaded.warnings) == ["eks.admin_role_arns", "eks.public_access_cidrs"]
    assert environment.partition == "aws"
    assert environment.hyperpod_cluster_name == "dev"
    assert environment.eks_cluster_name == "dev-eks"
    assert environment.deletion_protection is True
    assert environment.task_governance is None
    assert environment.storage.lustre == ()
    assert environment.network.node_cidrs() == {"use1-az4": "10.4.0.0/16", "use1-az6": "10.6.0.0/16"}
    group = environment.hyperpod.instance_groups[0]
    assert group.resolved_capacity == "on_demand"
    assert group.volume_gib == 500
    assert group.script == ("on_create", "on_create.sh")
    assert environment.hyperpod.provisioning == "continuous"
    assert environment.hyperpod.node_recovery == "automatic"


@pytest.mark.parametrize(
    ("line", "meaning"),
    [("", "enforce"), ("quota_check: enforce", "enforce"), ("quota_check: warn", "warn"), ("quota_check: off", "off")],
)
def test_quota_check(changed: Changed, load: Load, line: str, meaning: str) -> None:
    assert load(changed({"permissions_boundary: null": line})).environment.quota_check == meaning


def test_stated_names(changed: Changed, load: Load) -> None:
    environment = load(changed({"cluster_name: null": "cluster_name: big-cluster"})).environment
    assert environment.hyperpod_cluster_name == "big-cluster"


@pytest.mark.parametrize(
    ("types", "threads"),
    [
        ("instance_type: ml.p5.48xlarge", 2),
        ("instance_type: ml.m6g.2xlarge", 1),
        ("instance_types: [ml.m5.2xlarge, ml.m6g.2xlarge]", 1),
        ("instance_types: [ml.m5.2xlarge, ml.m5.4xlarge]", 2),
        ("instance_type: ml.m5.2xlarge, threads_per_core: 1", 1),
    ],
)
def test_threads_per_core(load: Load, types: str, threads: int) -> None:
    text = SMALLEST.replace("instance_type: ml.m5.2xlarge", f"{types}, capacity: on_demand")
    environment = load(text).environment
    assert environment.threads_per_core(environment.hyperpod.instance_groups[0]) == threads


def test_stated_instance_type(load: Load) -> None:
    text = SMALLEST.replace("ml.m5.2xlarge", "ml.m99.large") + (
        "instance_types: {ml.m99.large: {vcpu: 4, memory_gib: 16, ips_per_node: 10, threads_per_core: 1}}\n"
    )
    environment = load(text).environment
    row = environment.instance_type("ml.m99.large")
    assert row is not None
    assert (row.name, row.ec2_name, row.family, row.vcpu, row.ips_per_node) == (
        "ml.m99.large",
        "m99.large",
        "m99",
        4,
        10,
    )
    assert row.has_smt is False
    assert not row.is_accelerated
    assert environment.threads_per_core(environment.hyperpod.instance_groups[0]) == 1
    assert environment.instance_type("ml.m98.large") is None


def network_of(vpc_cidr: str, zones: Mapping[str, str | None]) -> Network:
    stated = {az_id: {} if block is None else {"node_cidr": block} for az_id, block in zones.items()}
    return Network.model_validate({"vpc_cidr": vpc_cidr, "availability_zones": stated})


class TestNodeBlocks:
    def test_own_number_else_every_tenth(self) -> None:
        network = network_of("10.4.0.0/16", {"use1-az4": None, "use1-az6": None})
        assert network.node_cidrs() == {"use1-az4": "10.14.0.0/16", "use1-az6": "10.6.0.0/16"}

    def test_a_local_zone_has_none_of_a_zone(self) -> None:
        network = network_of("10.192.0.0/16", {"use1-az1": None, "use1-dfw2-az1": None})
        assert network.node_cidrs() == {"use1-az1": "10.1.0.0/16", "use1-dfw2-az1": "10.10.0.0/16"}

    def test_beside_a_vpc_outside_ten(self) -> None:
        network = network_of("192.168.0.0/16", {"use1-az4": None, "use1-az6": "100.64.0.0/24"})
        assert network.node_cidrs() == {"use1-az4": "100.68.0.0/16", "use1-az6": "100.64.0.0/24"}

    def test_a_stated_block_moves_no_default(self) -> None:
        alone = network_of("192.168.0.0/16", {"use1-az1": None, "use1-az2": None})
        beside = network_of("192.168.0.0/16", {"use1-az1": None, "use1-az2": "100.65.0.0/16"})
        assert alone.default_node_cidr("use1-az1") == beside.default_node_cidr("use1-az1") == "100.65.0.0/16"

    @given(
        numbers=st.lists(st.integers(1, 9), min_size=3, max_size=9, unique=True),
        vpc=st.sampled_from(["10.192.0.0/16", "10.1.0.0/16", "10.3.0.0/20", "172.16.0.0/16", "192.168.0.0/24"]),
    )
    def test_adding_a_zone_moves_no_other(self, numbers: list[int], vpc: str) -> None:
        blocks = [
            network_of(vpc, {f"use1-az{n}": None for n in numbers[:length]}).node_cidrs()
            for length in range(2, len(numbers) + 1)
        ]
        for fewer, more in pairwise(blocks):
            assert fewer.items() < more.items()
        for az_id, cidr in blocks[-1].items():
            others = [other for name, other in blocks[-1].items() if name != az_id]
            assert network_catalog.secondary_cidr_problem(cidr, primary=vpc, others=others) is None


def test_name_length_leaves_room_for_the_lifecycle_bucket() -> None:
    longest = max(regions.HYPERPOD_REGIONS, key=len)
    assert len(f"sagemaker-{'n' * NAME_LENGTH}-1a2b3c4d-111122223333-{longest}") == 63


def test_priority_classes_by_default(load: Load) -> None:
    def classes(section: str) -> list[tuple[str, int]]:
        governance_section = load(f"{SMALLEST}task_governance: {section}\n").environment.task_governance
        assert isinstance(governance_section, TaskGovernance)
        return [(each.name, each.weight) for each in governance_section.resolved_priority_classes]

    assert classes("{}") == []
    assert classes("{ordering: priority}") == [("inference", 100), ("training", 80)]
    assert classes("{ordering: priority, priority_classes: [{name: only, weight: 1}]}") == [("only", 1)]


def test_borrow_limit_by_default() -> None:
    assert Sharing().resolved_borrow_limit_percent == 50
    assert Sharing(borrow_limit_percent=100).resolved_borrow_limit_percent == 100
    assert Sharing(strategy="lend").resolved_borrow_limit_percent is None


def test_claim_name_by_default(changed: Changed, load: Load) -> None:
    named = load(changed({"name: scratch}": "name: other}"})).environment.storage.lustre[0]
    assert named.resolved_claim_name == "other"
    unnamed = load(changed({", name: scratch}": "}"})).environment.storage.lustre[0]
    assert unnamed.resolved_claim_name == "scratch"


@row_by_row(
    "path, words",
    [
        (("hyperpod", "node_recovery"), tuple(hyperpod.NODE_RECOVERY)),
        (("hyperpod", "provisioning"), tuple(hyperpod.PROVISIONING)),
        (("hyperpod", "instance_groups", 0, "deep_health_checks", 0), tuple(hyperpod.DEEP_HEALTH_CHECKS)),
        (("hyperpod", "instance_groups", 0, "taints", 0, "effect"), hyperpod.TAINT_EFFECTS),
        (("hyperpod", "instance_groups", 0, "patching", "strategy"), tuple(hyperpod.PATCHING_STRATEGIES)),
        (("storage", "lustre", 0, "compression"), lustre_catalog.COMPRESSIONS),
        (("task_governance", "ordering"), governance.ORDERINGS),
        (("task_governance", "idle_compute"), tuple(governance.IDLE_COMPUTE)),
        (("task_governance", "teams", 0, "sharing", "strategy"), tuple(governance.SHARING)),
        (("task_governance", "teams", 0, "preemption"), tuple(governance.PREEMPTION)),
        (("task_governance", "teams", 0, "access"), governance.ACCESS),
    ],
)
def test_words_are_those_of_the_catalog(path: tuple[str | int, ...], words: tuple[str, ...]) -> None:
    assert set(get_args(bare(type_at(Environment, path)))) == set(words)


def test_types_at_paths() -> None:
    assert bare(type_at(Environment, ("hyperpod", "instance_groups", 3, "min_count"))) is int
    assert item_type(type_at(Environment, ("network", "availability_zones"))) is type_at(
        Environment, ("network", "availability_zones", "use1-az1")
    )
    assert item_type(str) is not str


def test_every_field_says_what_it_is() -> None:
    """A description becomes the reference page and the editor's hint: a sentence, with its unit where it has one."""
    schema = Environment.model_json_schema()
    for name, section in {"Environment": schema, **schema["$defs"]}.items():
        for key, field in section["properties"].items():
            described = field if "description" in field else schema["$defs"][field["$ref"].rpartition("/")[2]]
            assert re.fullmatch(r"[A-Za-z].*\.", described["description"], re.DOTALL), f"{name}.{key}"


def test_groups_of_both_kinds(changed: Changed, load: Load) -> None:
    nova = (
        "node_recovery: automatic\n  restricted_dependencies: installed\n  restricted_instance_groups:\n"
        "    - {name: nova, instance_type: ml.p5.48xlarge,"
        " count: 3, availability_zone_id: use1-az5, capacity: on_demand, lustre: {capacity_gib: 1200}}"
    )
    cluster = load(changed({"node_recovery: automatic": nova})).environment.hyperpod
    assert [group.name for group in cluster.all_groups] == ["system", "h100", "nova"]
    assert [path for path, _ in cluster.placed_groups] == [
        ("hyperpod", "instance_groups", 0),
        ("hyperpod", "instance_groups", 1),
        ("hyperpod", "restricted_instance_groups", 0),
    ]
    (group,) = cluster.restricted_instance_groups
    assert (group.resolved_capacity, group.all_instance_types, group.taints) == ("on_demand", ("ml.p5.48xlarge",), ())
    assert group.lustre is not None
    assert (group.lustre.throughput_mbps_per_tib, group.volume_gib) == (250, 500)
