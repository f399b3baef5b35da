"""The largest valid environment is within the limits of CloudFormation and IAM."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from hyperpod_cdk.config import load_environment
from tests.support.assembly import Synthesized, synthesized_once
from tests.support.largest import FILE_SYSTEMS, GROUPS, TEAMS, largest_environment

pytestmark = pytest.mark.examples

# CloudFormation quotas, VPC quota "rules per security group", IAM and STS character quotas
RESOURCES, BODY_BYTES, OUTPUTS, PARAMETERS, NAME = 500, 1_000_000, 200, 200, 255
RULES_PER_GROUP = 60
INLINE_POLICIES, MANAGED_POLICY, TRUST_POLICY = 10_240, 6_144, 2_048
POLICIES_PER_ROLE = 10


@pytest.fixture(scope="module")
def largest(assemblies: Path) -> Synthesized:
    """The environment, template checks and nag passed."""
    text = yaml.safe_dump(largest_environment())
    return synthesized_once(assemblies, "largest", load_environment(Path("environments/largest.yaml"), text=text))


def test_it_is_as_large_as_it_should_be(largest: Synthesized) -> None:
    (cluster,) = largest.of_type("AWS::SageMaker::Cluster")
    assert len(largest.resource(cluster)["Properties"]["InstanceGroups"]) == GROUPS == 100
    assert len(largest.of_type("AWS::FSx::FileSystem")) == FILE_SYSTEMS == 10
    assert len(largest.of_type("AWS::SageMaker::ComputeQuota")) == TEAMS == 50


def test_every_stack_is_one_that_cloudformation_takes(largest: Synthesized) -> None:
    for stack, template in largest.templates.items():
        assert len(template["Resources"]) <= RESOURCES, stack
        assert len(largest.template_files[stack].read_bytes()) <= BODY_BYTES, stack
        assert len(template.get("Outputs", {})) <= OUTPUTS, stack
        assert len(template.get("Parameters", {})) <= PARAMETERS, stack
        names = [*template["Resources"], *template.get("Outputs", {}), *template.get("Parameters", {})]
        assert max(len(name) for name in names) <= NAME, stack
        exports = [output["Export"]["Name"] for output in template.get("Outputs", {}).values() if "Export" in output]
        assert max((len(name) for name in exports), default=0) <= NAME, stack


def test_no_security_group_has_more_rules_than_it_may(largest: Synthesized) -> None:
    for side in ("Ingress", "Egress"):
        rules = Counter(
            json.dumps(largest.resource(node)["Properties"]["GroupId"])
            for node in largest.of_type(f"AWS::EC2::SecurityGroup{side}")
        )
        assert max(rules.values()) <= RULES_PER_GROUP
        for node in largest.of_type("AWS::EC2::SecurityGroup"):
            stated = largest.resource(node)["Properties"].get(f"SecurityGroup{side}", [])
            assert len(stated) <= RULES_PER_GROUP


def test_no_role_has_more_policy_than_it_may(largest: Synthesized) -> None:
    inline: Counter[str] = Counter()
    managed: Counter[str] = Counter()
    for node in largest.of_type("AWS::IAM::Role"):
        properties, key = largest.resource(node)["Properties"], f"{node[0]} {node[1]}"
        assert characters(properties["AssumeRolePolicyDocument"]) <= TRUST_POLICY, key
        inline[key] += sum(characters(each["PolicyDocument"]) for each in properties.get("Policies", []))
        managed[key] += len(properties.get("ManagedPolicyArns", []))
    for node in largest.of_type("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy", "AWS::IAM::RolePolicy"):
        resource = largest.resource(node)
        properties = resource["Properties"]
        size = characters(properties["PolicyDocument"])
        roles = [each["Ref"] for each in [*properties.get("Roles", []), properties.get("RoleName")] if each]
        for role in roles:
            if resource["Type"] == "AWS::IAM::ManagedPolicy":
                assert size <= MANAGED_POLICY, node
                managed[f"{node[0]} {role}"] += 1
            else:
                inline[f"{node[0]} {role}"] += size
    assert {role: size for role, size in inline.items() if size > INLINE_POLICIES} == {}
    assert {role: count for role, count in managed.items() if count > POLICIES_PER_ROLE} == {}


def characters(document: dict[str, Any]) -> int:
    """How long a policy is once CloudFormation has put the values in; IAM counts no white space."""
    return len(json.dumps(resolved(document), separators=(",", ":")))


def resolved(value: Any) -> Any:
    """A policy with something as long as an ARN wherever only CloudFormation knows what stands there."""
    if isinstance(value, list):
        return [resolved(each) for each in value]
    if not isinstance(value, dict):
        return value
    if "Fn::Join" in value:
        separator, parts = value["Fn::Join"]
        return separator.join(str(resolved(each)) for each in parts)
    if "Ref" in value:
        return {"AWS::Partition": "aws-us-gov", "AWS::Region": "ap-southeast-4", "AWS::AccountId": "1" * 12}.get(
            value["Ref"], "x" * 64
        )
    if any(key.startswith("Fn::") for key in value):
        return "x" * 110
    return {key: resolved(each) for key, each in value.items()}
