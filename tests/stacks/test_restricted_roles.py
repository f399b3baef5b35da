"""Permissions of the roles of restricted groups, other than for their buckets, in a complete environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from hyperpod_cdk.config import load_environment
from tests.support.assembly import ENVIRONMENTS, synthesize_unchecked

WORKSPACE = "arn:aws:aps:us-east-1:111122223333:workspace/ws-1234"
MADE_LATER = ["arn:", {"Ref": "AWS::Partition"}, ":aps:", {"Ref": "AWS::Region"}, ":", {"Ref": "AWS::AccountId"}]


@pytest.mark.parametrize(
    ("workspace", "resource"),
    [(WORKSPACE, WORKSPACE), ("create", {"Fn::Join": ["", [*MADE_LATER, ":workspace/*"]]})],
)
def test_the_role_of_a_restricted_group_writes_to_the_workspace(
    project: Path, tmp_path: Path, workspace: str, resource: Any
) -> None:
    file = project / ENVIRONMENTS["nova"]
    values = yaml.safe_load(file.read_text(encoding="utf-8"))
    values["operators"] = {"observability": {"enabled": True, "prometheus_workspace": workspace}}
    environment = load_environment(file, text=yaml.safe_dump(values, sort_keys=False)).environment
    synthesized = synthesize_unchecked(environment, project=project, outdir=tmp_path)
    policies = [synthesized.resource(node)["Properties"] for node in synthesized.of_type("AWS::IAM::ManagedPolicy")]
    statements = [each for policy in policies for each in policy["PolicyDocument"]["Statement"]]
    assert [each["Resource"] for each in statements if "aps:RemoteWrite" in each["Action"]] == [[resource]]
