"""Choices of the environment file that reach across stacks and that the shipped files do not make."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
import yaml

from hyperpod_cdk import HyperPodChart
from hyperpod_cdk.config import load_environment
from stacks.app import FEATURE_FLAGS
from stacks.environment import HyperPodEnvironment
from tests.support.assembly import ENVIRONMENTS, Synthesized, read_assembly

ROLE = "arn:aws:iam::111122223333:role/alice"
Synthesize = Callable[[Callable[[dict[str, Any]], object]], Synthesized]


@pytest.fixture
def synthesize(project: Path, tmp_path: Path) -> Synthesize:
    """Synthesizes prod after a change to its file; whether the templates are sound is tested elsewhere."""

    def made(change: Callable[[dict[str, Any]], object]) -> Synthesized:
        file = project / ENVIRONMENTS["prod"]
        values = yaml.safe_load(file.read_text(encoding="utf-8"))
        change(values)
        environment = load_environment(file, text=yaml.safe_dump(values, sort_keys=False)).environment
        app = cdk.App(context=FEATURE_FLAGS, builtin_cloud_formation_validation=False, outdir=str(tmp_path / "out"))
        HyperPodEnvironment(
            app,
            environment.name,
            environment=environment,
            chart=HyperPodChart.placeholder(),
            lifecycle_scripts=project / "lifecycle_scripts",
        )
        app.synth()
        return read_assembly(Path(app.outdir), environment)

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
    assert len(roles) == 8
    assert [synthesized.resource(node)["Properties"].get("PermissionsBoundary") for node in roles] == [expected] * 8


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
    # a volume with its claim in three places, and a namespace for the two that no quota brings
    assert len(manifests) == 5


def test_a_zone_that_is_appended_moves_nothing(synthesize: Synthesize, prod: Synthesized) -> None:
    def change(values: dict[str, Any]) -> None:
        values["network"]["availability_zones"]["use1-az6"] = {"node_cidr": "10.6.0.0/16"}

    synthesized = synthesize(change)

    # routes of the new subnet and its place in a policy: no interruption, says CloudFormation of both
    changes = {"NetworkS3Endpoint635CABAC", "ExecutionRolePolicyBE642E51"}
    changed = set()
    for stack, template in prod.templates.items():
        now = synthesized.templates[stack]["Resources"]
        changed |= {name for name, resource in template["Resources"].items() if now.get(name) != resource}
    assert changed == changes


def test_a_member_who_is_an_administrator_is_refused_before_eks_does(synthesize: Synthesize) -> None:
    def change(values: dict[str, Any]) -> None:
        values["eks"]["admin_role_arns"] = [ROLE]
        values["task_governance"]["teams"][0]["member_role_arns"] = [ROLE]

    with pytest.raises(ValueError, match=ROLE):
        synthesize(change)
