"""Resources that are retained when a stack is deleted, and the effect of `deletion_protection: false`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.assembly import Node, Synthesized, shipped

DATA = ("AWS::FSx::FileSystem", "AWS::S3::Bucket", "AWS::KMS::Key", "AWS::Logs::LogGroup")
CLUSTERS = ("AWS::EKS::Cluster", "AWS::SageMaker::Cluster")
WORKSPACES = ("AWS::APS::Workspace", "AWS::Grafana::Workspace")

# a bucket with objects in it cannot be deleted, so that rolling back its creation would fail;
# the logs of CDK's own functions are CDK's to make; the gate's hold why a first deployment was refused;
# what a key has encrypted and stays could not be read without it
STAYS_EVEN_IF_ITS_CREATION_FAILS = {
    "ControlPlaneKubectlProviderHandlerLogGroup6493E7C5",
    "ControlPlaneKubectlProviderframeworkonEventLogGroup8D94A18D",
    "LifecycleBucketKey78EDAC3F",
    "LifecycleScriptsAccessLogs486B0B7F",
    "LifecycleScriptsBucketBB67840B",
    "LifecycleScriptsUploadLogs902B8BF1",
    "LogsKey195F8DFC",
    "QuotaGateLogs8B0BB020",
    "TaskGovernanceHandlerLogs5C537A96",
}

GUARD = "Custom::HyperPodDeletionProtection"
PROTECTED = {"storage", "hyperpod", "platform", "observability"}


def policies(synthesized: Synthesized, node: Node) -> tuple[str | None, str | None]:
    resource = synthesized.resource(node)
    return resource.get("DeletionPolicy"), resource.get("UpdateReplacePolicy")


def test_data_stays(created: Synthesized) -> None:
    nodes = created.of_type(*DATA, *WORKSPACES)

    expected = {
        node: ("Retain" if node[1] in STAYS_EVEN_IF_ITS_CREATION_FAILS else "RetainExceptOnCreate", "Retain")
        for node in nodes
    }
    assert {node: policies(created, node) for node in nodes} == expected
    assert {created.resource(node)["Type"] for node in nodes} >= {*DATA} - {"AWS::FSx::FileSystem"}


def test_clusters_and_their_roles_go_with_their_stack_and_stay_where_they_are_replaced(created: Synthesized) -> None:
    """Nothing that costs by the hour is orphaned: what keeps a cluster is that its stack cannot be deleted."""
    of_the_nodes = [
        node for node in created.of_type("AWS::IAM::Role", "AWS::IAM::ManagedPolicy") if "ExecutionRole" in node[1]
    ]
    nodes = [*created.of_type(*CLUSTERS), *of_the_nodes]

    assert {node: policies(created, node) for node in nodes} == dict.fromkeys(nodes, ("Delete", "Retain"))
    assert len(of_the_nodes) >= 2


def test_what_a_file_system_that_stays_needs_stays_too_and_nothing_else(prod: Synthesized) -> None:
    network = prod.of_type(
        "AWS::EC2::SecurityGroup",
        "AWS::EC2::SecurityGroupIngress",
        "AWS::EC2::SecurityGroupEgress",
        "AWS::EC2::Subnet",
        "AWS::EC2::VPC",
        "AWS::EC2::VPCCidrBlock",
        "AWS::EC2::NatGateway",
        "AWS::EC2::VPCEndpoint",
    )
    staying = {node[1].rstrip("0123456789ABCDEF") for node in network if policies(prod, node)[0] is not None}

    assert staying == {
        "NetworkVpc",
        "NetworkNodeCidrUse1Az",
        "NetworkNodeSubnetUse1Az",
        "LustrescratchGroup",
        "LustrescratchServersIn",
        "LustrescratchServersOut",
    }
    subnets = [node for node in network if node[1].startswith("NetworkNodeSubnet")]
    assert [policies(prod, node) for node in subnets] == [("RetainExceptOnCreate", "Retain"), (None, None)]


def test_the_chart_stays_in_a_cluster_that_stays(synthesized: Synthesized) -> None:
    (chart,) = synthesized.of_type("Custom::AWSCDK-EKS-HelmChart")
    assert policies(synthesized, chart) == ("Retain", "Retain")


def test_every_stack_but_the_foundation_refuses_to_be_deleted(synthesized: Synthesized) -> None:
    found = {name.rpartition("-")[2]: is_on for name, is_on in synthesized.termination_protection.items()}

    assert found == {name: name in PROTECTED for name in found}
    assert {"foundation", "hyperpod", "observability"} <= found.keys()


def test_the_foundation_cannot_be_deleted_under_a_cluster(synthesized: Synthesized) -> None:
    """CloudFormation refuses to delete a stack whose exports are imported."""
    name = synthesized.environment.name
    hyperpod = json.dumps(synthesized.templates[f"{name}-hyperpod"])

    assert f'"Fn::ImportValue": "{name}-foundation:' in hyperpod


def is_of_eks(logical_id: str) -> bool:
    return logical_id.startswith("EksProtection")


def guards(synthesized: Synthesized) -> dict[str, tuple[str, dict[str, Any]]]:
    """The resource that protects each stack, by the stack's last name: logical id, properties."""
    found = {}
    for stack, logical_id in synthesized.of_type(GUARD):
        if is_of_eks(logical_id):
            continue
        resource = synthesized.resource((stack, logical_id))
        properties = {key: value for key, value in resource["Properties"].items() if key != "ServiceToken"}
        found[stack.rpartition("-")[2]] = (logical_id, properties)
    return found


@pytest.mark.parametrize("enabled", [True, False])
def test_each_protected_stack_has_what_lifts_its_protection(
    prod: Synthesized, unprotected: Synthesized, *, enabled: bool
) -> None:
    found = guards(prod if enabled else unprotected)

    assert found.keys() == PROTECTED
    plain = {"ServiceTimeout": 900, "Enabled": enabled}
    assert {properties["Enabled"] for _, properties in found.values()} == {enabled}
    assert [found[name][1] for name in sorted(PROTECTED)] == [plain] * 4


@pytest.mark.parametrize("enabled", [True, False])
def test_eks_is_protected_while_nothing_else_asks_anything_of_it(
    prod: Synthesized, unprotected: Synthesized, *, enabled: bool
) -> None:
    """EKS is UPDATING meanwhile, and refuses other updates, perhaps a cluster's creation on it, too."""
    templates = prod if enabled else unprotected
    ((stack, logical_id),) = [node for node in templates.of_type(GUARD) if is_of_eks(node[1])]
    switch, resources = templates.resource((stack, logical_id)), templates.templates[stack]["Resources"]

    assert stack == "prod-platform"
    assert (switch["Properties"]["EksClusterName"], switch["Properties"]["Enabled"]) == ("prod-eks", enabled)
    of_eks = {name for name, each in resources.items() if each["Type"].startswith("AWS::EKS::")}
    assert of_eks
    assert {name for name in of_eks if logical_id not in resources[name]["DependsOn"]} == set()
    (nodes,) = templates.of_type("Custom::HyperPodNodesReady")
    assert not templates.waits_for((stack, logical_id), nodes), "it takes the time of the wait for nodes"


def test_it_waits_for_nothing_and_nothing_begins_before_it(synthesized: Synthesized) -> None:
    for stack, logical_id in synthesized.of_type(GUARD):
        if is_of_eks(logical_id):
            continue
        resources = synthesized.templates[stack]["Resources"]
        (begun,) = [
            name for name, each in resources.items() if each["Type"] == "AWS::CloudFormation::WaitConditionHandle"
        ]
        text = json.dumps([each for name, each in resources.items() if name != logical_id])
        assert "DependsOn" not in resources[logical_id]
        assert '"Ref": "' not in json.dumps(resources[logical_id]["Properties"])
        assert logical_id not in text, "what waits for it would have to be deleted before it"
        waiting = {name for name, each in resources.items() if begun in each.get("DependsOn", [])}
        # the cluster begins with it: five seconds that every node would come later
        cluster = {name for name, each in resources.items() if each["Type"] == "AWS::SageMaker::Cluster"}
        assert waiting == resources.keys() - {logical_id, begun} - cluster


def test_an_eks_cluster_of_others_is_never_changed(assemblies: Path) -> None:
    shared = shipped(assemblies, "shared")

    assert not [node for node in shared.of_type(GUARD) if "EksClusterName" in shared.resource(node)["Properties"]]
    (role,) = [node for node in shared.of_type("AWS::IAM::Role") if "DeletionProtection" in node[1]]
    assert "eks:" not in json.dumps(shared.resource(role))


def test_eks_protection_is_no_property_of_the_cluster(created: Synthesized) -> None:
    (eks,) = created.of_type("AWS::EKS::Cluster")
    assert "DeletionProtection" not in created.resource(eks)["Properties"]


def test_without_protection_every_stack_can_be_deleted(unprotected: Synthesized) -> None:
    assert set(unprotected.termination_protection.values()) == {False}


@pytest.mark.parametrize("resource_type", DATA)
def test_without_protection_data_stays(unprotected: Synthesized, resource_type: str) -> None:
    nodes = unprotected.of_type(resource_type)

    assert nodes
    assert {policies(unprotected, node)[1] for node in nodes} == {"Retain"}
    assert {policies(unprotected, node)[0] for node in nodes} <= {"Retain", "RetainExceptOnCreate"}


def test_protection_changes_nothing_else(prod: Synthesized, unprotected: Synthesized) -> None:
    for stack, template in prod.templates.items():
        other = unprotected.templates[stack]["Resources"]
        differing = {
            name: template["Resources"][name] for name in other if template["Resources"].get(name) != other[name]
        }
        assert template["Resources"].keys() == other.keys()
        assert {each["Type"] for each in differing.values()} == ({GUARD} if stack != "prod-foundation" else set())
