"""The quota gate precedes everything that takes long or costs money, unless the environment disables it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from hyperpod_cdk.config import load_environment
from hyperpod_cdk.handlers.quota_gate.comparison import from_properties
from hyperpod_cdk.handlers.quota_gate.reading import calls_of
from hyperpod_cdk.quotas.needs import own, required_quotas
from hyperpod_cdk_stacks.foundation import nodes_made
from tests.support.assembly import ENVIRONMENTS, Node, Synthesized, synthesize_unchecked

GATE = "Custom::HyperPodQuotaGate"
QUICK_AND_FREE = {
    "AWS::EC2::FlowLog",
    "AWS::EC2::InternetGateway",
    "AWS::EC2::Route",
    "AWS::EC2::RouteTable",
    "AWS::EC2::SecurityGroup",
    "AWS::EC2::SecurityGroupEgress",
    "AWS::EC2::SecurityGroupIngress",
    "AWS::EC2::Subnet",
    "AWS::EC2::SubnetRouteTableAssociation",
    "AWS::EC2::VPC",
    "AWS::EC2::VPCCidrBlock",
    "AWS::EC2::VPCEndpoint",
    "AWS::EC2::VPCGatewayAttachment",
    "AWS::IAM::Role",
    "AWS::KMS::Alias",
    "AWS::KMS::Key",
    "AWS::Logs::LogGroup",
}
"""What EKS needs before it, and what that stands in; a key is paid by the month, and is none where the gate refuses."""


def gate_of(synthesized: Synthesized) -> Node:
    (found,) = synthesized.of_type(GATE)
    return found


def resources(synthesized: Synthesized) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = synthesized.templates[f"{synthesized.environment.name}-foundation"]["Resources"]
    return found


def test_only_what_is_quick_and_free_is_made_beside_it(synthesized: Synthesized) -> None:
    stack, gate = gate_of(synthesized)
    assert stack == f"{synthesized.environment.name}-foundation"
    beside = {
        name: each
        for name, each in resources(synthesized).items()
        if not synthesized.waits_for((stack, name), (stack, gate))
    }
    assert {each["Type"] for name, each in beside.items() if not name.startswith("QuotaGate")} <= QUICK_AND_FREE
    assert {name for name, each in beside.items() if each["Type"].startswith(("AWS::Lambda::", "Custom::"))} == {
        name for name in beside if name.startswith("QuotaGateFunction")
    }
    endpoints = [each for each in beside.values() if each["Type"] == "AWS::EC2::VPCEndpoint"]
    assert {each["Properties"]["VpcEndpointType"] for each in endpoints} <= {"Gateway"}
    assert list(resources(synthesized))[:4] == [name for name in resources(synthesized) if name.startswith("QuotaGate")]


def test_the_other_stacks_wait_for_it(synthesized: Synthesized) -> None:
    gate = gate_of(synthesized)
    elsewhere = [
        (stack, name)
        for stack, template in synthesized.templates.items()
        for name in template["Resources"]
        if stack != gate[0]
    ]
    assert elsewhere
    assert [node for node in elsewhere if not synthesized.waits_for(node, gate)] == []


def test_what_travels_is_what_preflight_compares(synthesized: Synthesized) -> None:
    properties = synthesized.resource(gate_of(synthesized))["Properties"]
    environment = synthesized.environment
    assert from_properties(properties["Requirements"]) == required_quotas(environment)
    mine = own(environment)
    assert properties["Own"] == {
        "Stacks": list(mine.stacks),
        "HyperPodCluster": mine.hyperpod_cluster,
        "EksCluster": mine.eks_cluster,
    }
    assert set(synthesized.templates) <= set(mine.stacks)
    assert (properties["Mode"], properties["EnvironmentName"]) == ("enforce", environment.name)


def test_what_makes_nodes_asks_it_anew(synthesized: Synthesized) -> None:
    """A group that is renamed takes new nodes beside the old ones, and no requirement changes."""
    environment = synthesized.environment
    hyperpod = environment.hyperpod
    if not hyperpod.instance_groups:
        return
    groups = (hyperpod.instance_groups[0].model_copy(update={"name": "renamed"}), *hyperpod.instance_groups[1:])
    renamed = environment.model_copy(update={"hyperpod": hyperpod.model_copy(update={"instance_groups": groups})})
    assert required_quotas(renamed) == required_quotas(environment)
    canonical = json.dumps(nodes_made(environment), sort_keys=True, separators=(",", ":")).encode()
    makes = synthesized.resource(gate_of(synthesized))["Properties"]["Makes"]
    assert makes == hashlib.sha256(canonical).hexdigest()
    assert nodes_made(renamed) != nodes_made(environment)


def test_the_role_reads_what_is_compared_and_nothing_else(synthesized: Synthesized) -> None:
    role = next(each for name, each in resources(synthesized).items() if name.startswith("QuotaGateRole"))
    (policy,) = role["Properties"]["Policies"]
    actions = {action for each in policy["PolicyDocument"]["Statement"] for action in each["Action"]}
    kinds = {each.usage for each in required_quotas(synthesized.environment) if each.usage}
    assert {action for action in actions if not action.startswith(("servicequotas:", "logs:", "cloudformation:"))} == {
        action for kind in kinds for action in calls_of(kind)
    }
    assert not any("*" in action for action in actions)


@pytest.mark.parametrize("mode", ["warn", "off"])
def test_it_can_only_warn_or_not_be_there(mode: str, project: Path, tmp_path: Path) -> None:
    environment = load_environment(project / ENVIRONMENTS["prod"]).environment
    synthesized = synthesize_unchecked(
        environment.model_copy(update={"quota_check": mode}), project=project, outdir=tmp_path
    )
    gates = synthesized.of_type(GATE)
    outputs = synthesized.templates["prod-foundation"]["Outputs"].keys() & {"QuotaFindings", "QuotasSkipped"}
    if mode == "off":
        assert gates == []
        assert outputs == set()
        assert not [name for name in resources(synthesized) if name.startswith("QuotaGate")]
        assert not [name for name, each in resources(synthesized).items() if "QuotaGate" in str(each)]
    else:
        assert synthesized.resource(gates[0])["Properties"]["Mode"] == "warn"
        assert len(outputs) == 2
