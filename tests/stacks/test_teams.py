"""The teams of a file in task governance: the kind of resources, and limits with Karpenter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from hyperpod_cdk import HyperPodChart
from hyperpod_cdk.config import Environment, load_environment
from hyperpod_cdk.config.task_governance import TaskGovernance
from hyperpod_cdk.governance.teams import Team
from hyperpod_cdk_stacks.environment import HyperPodEnvironment
from hyperpod_cdk_stacks.teams import governed_teams, is_native_here
from tests.support.assembly import ENVIRONMENTS, PROJECT, light_app

SCHEDULER, QUOTA = "AWS::SageMaker::ClusterSchedulerConfig", "AWS::SageMaker::ComputeQuota"
GPU, EFA = "requests.nvidia.com/gpu", "requests.vpc.amazonaws.com/efa"


def two_teams(*, autoscaling: str = "none", count: int = 4, **changes: Any) -> tuple[Environment, TaskGovernance]:
    """examples/two-teams.yaml with changes of its first team, or of the section where the key is of the section."""
    file = PROJECT / ENVIRONMENTS["two-teams"]
    data = yaml.safe_load(file.read_text(encoding="utf-8"))
    data["hyperpod"]["autoscaling"] = autoscaling
    data["hyperpod"]["instance_groups"][1]["count"] = count
    section = data["task_governance"]
    for key, value in changes.items():
        (section if key in TaskGovernance.model_fields else section["teams"][0])[key] = value
    environment = load_environment(Path("environments/x.yaml"), text=yaml.safe_dump(data)).environment
    assert environment.task_governance is not None
    return environment, environment.task_governance


def first(**changes: Any) -> Team:
    return governed_teams(*two_teams(**changes))[0]


@pytest.mark.parametrize(
    ("provider", "scheduler", "quota"), [("auto", False, True), ("native", True, True), ("api", False, False)]
)
def test_the_provider_chooses_the_kind_of_resources(
    provider: str,
    scheduler: bool,  # noqa: FBT001 - table
    quota: bool,  # noqa: FBT001 - table
) -> None:
    environment, section = two_teams(provider=provider)
    assert is_native_here(environment, section, SCHEDULER) is scheduler
    assert is_native_here(environment, section, QUOTA) is quota


def test_every_word_of_a_team_arrives() -> None:
    row = {"instance_type": "ml.g5.12xlarge", "accelerators": 6, "memory_gib": 300.5}
    limit = {"instance_type": "ml.g5.12xlarge", "count": 1}
    member = "arn:aws:iam::111122223333:role/alice"
    team = first(
        active=False,
        quota=[row],
        sharing={"strategy": "lend_and_borrow", "absolute_borrow_limits": [limit]},
        access="rbac",
        member_role_arns=[member],
        resource_quota={GPU: "12"},
    )
    assert (team.active, team.access, team.default_queue, team.member_role_arns) == (False, "rbac", True, (member,))
    assert team.resource_quota == {GPU: "12"}
    assert team.quota_config() == {
        "ComputeQuotaResources": [{"InstanceType": "ml.g5.12xlarge", "Accelerators": 6, "MemoryInGiB": 300.5}],
        "ResourceSharingConfig": {
            "Strategy": "LendAndBorrow",
            "BorrowLimit": 50,
            "AbsoluteBorrowLimits": [{"InstanceType": "ml.g5.12xlarge", "Count": 1}],
        },
        "PreemptTeamTasks": "LowerPriority",
    }


def test_partitions_arrive() -> None:
    partition = {"profile": "mig-1g.10gb", "count": 7}
    environment, section = two_teams()
    quota = (
        section.teams[0]
        .quota[0]
        .model_validate({"instance_type": "ml.p5.48xlarge", "accelerator_partition": partition})
    )
    team = section.teams[0].model_copy(update={"quota": (quota,)})
    (found, *_) = governed_teams(environment, section.model_copy(update={"teams": (team,)}))
    assert found.quota[0].properties()["AcceleratorPartition"] == {"Type": "mig-1g.10gb", "Count": 7}


def test_a_type_that_the_file_states_is_known_to_every_construct(tmp_path: Path) -> None:
    data = yaml.safe_load((PROJECT / ENVIRONMENTS["two-teams"]).read_text(encoding="utf-8"))
    numbers = {"vcpu": 192, "memory_gib": 2048, "accelerator_kind": "nvidia-x9", "accelerator_count": 8}
    data["instance_types"] = {"ml.p9.48xlarge": {**numbers, "ips_per_node": 50}}
    data["hyperpod"]["instance_groups"][1].update(instance_type="ml.p9.48xlarge")
    for team in data["task_governance"]["teams"]:
        team["quota"] = [{"instance_type": "ml.p9.48xlarge", "accelerators": 8}]
        team.get("sharing", {}).pop("absolute_borrow_limits", None)
    data["notify"] = {"emails": ["ml-on-call@example.com"]}
    environment = load_environment(Path("environments/x.yaml"), text=yaml.safe_dump(data)).environment
    built = HyperPodEnvironment(
        light_app(tmp_path),
        environment.name,
        environment=environment,
        chart=HyperPodChart.placeholder(),
        lifecycle_scripts=None,
    )
    assert built.observability is not None


def test_no_limits_without_karpenter() -> None:
    assert first().resource_quota == {}


def test_karpenter_brings_limits_that_the_file_overrides_and_adds_to() -> None:
    derived = first(autoscaling="karpenter", count=0)
    assert derived.resource_quota == {GPU: "18", EFA: "5"}, "three nodes of its own, and half as much to borrow"
    stated = first(autoscaling="karpenter", count=0, resource_quota={EFA: "3", "pods": "40"})
    assert stated.resource_quota == {GPU: "18", EFA: "3", "pods": "40"}
