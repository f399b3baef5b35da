"""The quota gate stands before everything of the network stack, unless the environment turns it off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hyperpod_cdk._handlers.quota_gate.comparison import from_properties
from hyperpod_cdk._handlers.quota_gate.reading import calls_of
from hyperpod_cdk.checks.requirements import own, required_quotas
from hyperpod_cdk.config import load_environment
from tests.support.assembly import ENVIRONMENTS, Node, Synthesized, synthesize_unchecked

GATE = "Custom::HyperPodQuotaGate"


def gate_of(synthesized: Synthesized) -> Node:
    (found,) = synthesized.of_type(GATE)
    return found


def resources(synthesized: Synthesized) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = synthesized.templates[f"{synthesized.environment.name}-network"]["Resources"]
    return found


def test_every_resource_of_the_network_waits_for_it_by_name(synthesized: Synthesized) -> None:
    stack, gate = gate_of(synthesized)
    assert stack == f"{synthesized.environment.name}-network"
    waits_not = [each for each in resources(synthesized).items() if gate not in each[1].get("DependsOn", [])]
    # a key of the logs stands before what the gate itself logs
    waits_not = [each for each in waits_not if not each[0].startswith("LogsKey")]
    assert [each["Type"] for _, each in waits_not] == [
        "AWS::Logs::LogGroup",
        "AWS::IAM::Role",
        "AWS::Lambda::Function",
        GATE,
    ]
    assert all(name.startswith("QuotaGate") for name, _ in waits_not)
    assert list(resources(synthesized))[:4] == [name for name, _ in waits_not], "the gate is read first"


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
    outputs = synthesized.templates["prod-network"]["Outputs"].keys() & {"QuotaFindings", "QuotasSkipped"}
    if mode == "off":
        assert gates == []
        assert outputs == set()
        assert not [name for name in resources(synthesized) if name.startswith("QuotaGate")]
        assert not [name for name, each in resources(synthesized).items() if "QuotaGate" in str(each)]
    else:
        assert synthesized.resource(gates[0])["Properties"]["Mode"] == "warn"
        assert len(outputs) == 2
