"""Settings of the environment file that affect several stacks and that the shipped files do not use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from hyperpod_cdk.config import load_environment
from tests.support.assembly import ENVIRONMENTS, Synthesized, synthesize_unchecked

Synthesize = Callable[[Callable[[dict[str, Any]], object]], Synthesized]


@pytest.fixture
def synthesize(project: Path, tmp_path: Path) -> Synthesize:
    """Synthesizes prod after a change to its file; whether the templates are sound is tested elsewhere."""

    def made(change: Callable[[dict[str, Any]], object]) -> Synthesized:
        file = project / ENVIRONMENTS["prod"]
        values = yaml.safe_load(file.read_text(encoding="utf-8"))
        change(values)
        environment = load_environment(file, text=yaml.safe_dump(values, sort_keys=False)).environment
        return synthesize_unchecked(environment, project=project, outdir=tmp_path / "out")

    return made


@pytest.mark.parametrize(
    ("boundary", "found"),
    [
        ("Boundary", ["arn:", {"Ref": "AWS::Partition"}, ":iam::111122223333:policy/Boundary"]),
        ("arn:aws:iam::111122223333:policy/team/Boundary", "arn:aws:iam::111122223333:policy/team/Boundary"),
    ],
)
def test_every_role_has_the_permissions_boundary(synthesize: Synthesize, boundary: str, found: object) -> None:
    synthesized = synthesize(lambda values: values.update(permissions_boundary=boundary))

    roles = synthesized.of_type("AWS::IAM::Role")
    expected = found if isinstance(found, str) else {"Fn::Join": ["", found]}
    assert len(roles) >= 10
    assert [synthesized.resource(node)["Properties"].get("PermissionsBoundary") for node in roles] == [expected] * len(
        roles
    )


def test_without_a_boundary_no_role_has_one(prod: Synthesized) -> None:
    roles = prod.of_type("AWS::IAM::Role")
    assert [node for node in roles if "PermissionsBoundary" in prod.resource(node)["Properties"]] == []


def test_file_systems_of_similar_names_get_claims_of_their_own(synthesize: Synthesize) -> None:
    def change(values: dict[str, Any]) -> None:
        (scratch,) = values["storage"]["lustre"]
        scratch["claim"] = {"namespaces": ["default", "hyperpod-ns-research"], "name": "scratch"}
        values["storage"]["lustre"].append({**scratch, "name": "scratch-own", "claim": {"namespaces": ["default"]}})
        values["storage"]["lustre"][1]["claim"]["name"] = "other"

    synthesized = synthesize(change)

    manifests = synthesized.of_type("Custom::AWSCDK-EKS-KubernetesResource")
    # a volume with its claim in three places, a namespace for the two that no quota brings, Pod Security for the third
    assert len(manifests) == 6


def test_a_zone_that_is_appended_moves_nothing(synthesize: Synthesize, prod: Synthesized) -> None:
    def change(values: dict[str, Any]) -> None:
        values["network"]["availability_zones"]["use1-az6"] = {"node_cidr": "10.6.0.0/16"}

    synthesized = synthesize(change)

    # routes of the new subnet and its place in a policy: no interruption, says CloudFormation of both; and the gate,
    # which compares again
    changes = {"NetworkS3Endpoint635CABAC", "ExecutionRolePolicyBE642E51", "QuotaGate364CCD2B"}
    changed = set()
    for stack, template in prod.templates.items():
        now = synthesized.templates[stack]["Resources"]
        changed |= {
            name
            for name, resource in template["Resources"].items()
            # the chart waits for the new subnet's route too, which is no change of it
            if {**now.get(name, {}), "DependsOn": []} != {**resource, "DependsOn": []}
        }
    assert changed == changes


def test_people_reach_a_node_and_its_story_by_the_outputs(prod: Synthesized) -> None:
    outputs = {
        output["Description"]: output["Value"]
        for output in prod.templates["prod-hyperpod"]["Outputs"].values()
        if "Description" in output
    }
    cluster_id = {"Fn::Select": [1, {"Fn::Split": ["/", {"Fn::GetAtt": ["ClusterEB0386A7", "ClusterArn"]}]}]}

    def joined(before: str, after: str = "") -> dict[str, Any]:
        return {"Fn::Join": ["", [before, cluster_id, *([after] if after else [])]]}

    target = "for 'aws ssm start-session --target'"
    assert outputs == {
        "Log group of the nodes' lifecycle scripts": joined("/aws/sagemaker/Clusters/prod/"),
        "Command that lists node events": "aws sagemaker list-cluster-events --region us-east-1 --cluster-name prod",
        f"A node of h100, {target}": joined("sagemaker-cluster:", "_h100-<instance-id>"),
        f"A node of system, {target}": joined("sagemaker-cluster:", "_system-<instance-id>"),
    }


def test_a_stated_row_outweighs_the_catalogs(synthesize: Synthesize) -> None:
    def change(values: dict[str, Any]) -> None:
        stated = {"vcpu": 8, "memory_gib": 32, "accelerator_kind": "nvidia-x", "accelerator_count": 1}
        values["instance_types"] = {"ml.m5.2xlarge": stated}
        values["hyperpod"]["instance_groups"][0] |= {
            "capacity": "on_demand",
            "deep_health_checks": ["instance_stress"],
        }

    synthesized = synthesize(change)

    (cluster,) = synthesized.of_type("AWS::SageMaker::Cluster")
    groups = {each["InstanceGroupName"]: each for each in synthesized.resource(cluster)["Properties"]["InstanceGroups"]}
    assert groups["system"]["OnStartDeepHealthChecks"] == ["InstanceStress"]
