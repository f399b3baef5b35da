"""The groups that use a file system, and what their nodes must support."""

from __future__ import annotations

from collections.abc import Callable

from hyperpod_cdk.config import LoadedEnvironment
from hyperpod_cdk.config.lustre_clients import efa_interfaces, types_with_claims, users

Load = Callable[[str], LoadedEnvironment]

FILE = """
name: dev
account: "111122223333"
region: us-east-1
network:
  availability_zones: {use1-az4: {}, use1-az5: {}}
hyperpod:
  instance_groups:
    - {name: system, instance_type: ml.m5.2xlarge, count: 1, availability_zone_id: use1-az5}
    - {name: p5, instance_type: ml.p5.48xlarge, count: 1, availability_zone_id: use1-az5, capacity: on_demand}
    - {name: p4d, instance_type: ml.p4d.24xlarge, count: 1, availability_zone_id: use1-az5, capacity: on_demand}
    - {name: far, instance_type: ml.p5en.48xlarge, count: 1, availability_zone_id: use1-az4, capacity: on_demand}
    - {name: cpu, instance_type: ml.c6i.32xlarge, count: 1, availability_zone_id: use1-az5}
storage:
  lustre:
    - {name: fast, availability_zone_id: use1-az5, capacity_gib: 19200, efa: true, claim: {namespaces: [team-a]}}
"""
TEAM = """
task_governance:
  teams:
    - {name: a, namespace: team-a, quota: [{instance_type: ml.m5.2xlarge, count: 1}]}
"""


def test_accelerated_groups_use_a_file_system_of_nobody_in_particular(load: Load) -> None:
    environment = load(FILE).environment

    assert [group.name for group in users(environment, environment.storage.lustre[0])] == ["p5", "p4d", "far"]
    assert types_with_claims(environment) == ("ml.p4d.24xlarge", "ml.p5.48xlarge", "ml.p5en.48xlarge")


def test_all_groups_use_it_where_none_is_accelerated(load: Load) -> None:
    lines = [line for line in FILE.splitlines() if "ml.p" not in line]
    environment = load("\n".join(lines)).environment

    assert types_with_claims(environment) == ("ml.c6i.32xlarge", "ml.m5.2xlarge")


def test_a_file_system_without_a_claim_is_not_needed(load: Load) -> None:
    environment = load(FILE.replace(", claim: {namespaces: [team-a]}", "")).environment

    assert types_with_claims(environment) == ()
    assert efa_interfaces(environment)["ml.p5.48xlarge"] == 8


def test_types_beside_a_file_system_with_efa_go_over_efa_or_cannot(load: Load) -> None:
    # not m5, which does not use it; not p5en, to whose zone EFA does not go; c6i, which does not use it, could
    assert efa_interfaces(load(FILE).environment) == {"ml.c6i.32xlarge": 1, "ml.p4d.24xlarge": 0, "ml.p5.48xlarge": 8}


def test_a_file_system_without_efa_asks_nothing_of_nodes(load: Load) -> None:
    assert efa_interfaces(load(FILE.replace(", efa: true", "")).environment) == {}


def test_beside_a_file_system_of_somebody_else_who_can_is_ready(load: Load) -> None:
    existing = "existing: {file_system_id: fs-0a1b2c3d4e5f67890, mount_name: abcdefgh}, claim: {namespaces: [team-a]}"
    text = FILE.split("storage:", maxsplit=1)[0].replace(
        "availability_zones: {use1-az4: {}, use1-az5: {}}",
        "existing: {vpc_id: vpc-0a1b2c3d, node_subnet_ids: {use1-az4: subnet-0a1b2c3d, use1-az5: subnet-0a1b2c3e},"
        " control_plane_subnet_ids: [subnet-0a1b2c3d, subnet-0a1b2c3e], security_group_id: sg-0a1b2c3d,"
        " vpc_cidrs: [10.0.0.0/16]}",
    )
    storage = f"storage:\n  lustre:\n    - {{name: theirs, availability_zone_id: use1-az5, {existing}}}\n"

    assert efa_interfaces(load(text + storage).environment) == {"ml.c6i.32xlarge": 1, "ml.p5.48xlarge": 8}


def test_users_are_the_groups_of_the_quotas_of_the_claim(load: Load) -> None:
    environment = load(
        FILE.replace("[team-a]", "[hyperpod-ns-a]") + TEAM.replace(", namespace: team-a", "")
    ).environment

    assert types_with_claims(environment) == ("ml.m5.2xlarge",)
    assert efa_interfaces(environment) == {"ml.c6i.32xlarge": 1, "ml.m5.2xlarge": 0, "ml.p5.48xlarge": 8}
