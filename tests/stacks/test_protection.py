"""What stays when a stack goes, and what `deletion_protection: false` changes about that."""

from __future__ import annotations

import pytest

from tests.support.assembly import Node, Synthesized

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

# without its role a cluster that stays loses its nodes' network and cannot replace a node
GOES_WITH_THE_CLUSTERS = {
    "ClusterEB0386A7",
    "ControlPlaneCluster8AFA2E51",
    "ControlPlaneEksPodIdentityAgent46FEC91D",
    "ControlPlaneKubeProxyF2CFAA08",
    "ControlPlaneRoleC1F9F2DA",
    "ControlPlaneVpcCni0A213BA8",
    "ExecutionRoleCDF74862",
    "ExecutionRolePolicyBE642E51",
}


def policies(synthesized: Synthesized, node: Node) -> tuple[str | None, str | None]:
    resource = synthesized.resource(node)
    return resource.get("DeletionPolicy"), resource.get("UpdateReplacePolicy")


def test_what_holds_state_stays(created: Synthesized) -> None:
    nodes = created.of_type(*DATA, *CLUSTERS, *WORKSPACES)

    expected = {
        node: ("Retain" if node[1] in STAYS_EVEN_IF_ITS_CREATION_FAILS else "RetainExceptOnCreate", "Retain")
        for node in nodes
    }
    assert {node: policies(created, node) for node in nodes} == expected
    assert {created.resource(node)["Type"] for node in nodes} >= {*CLUSTERS, *DATA} - {"AWS::FSx::FileSystem"}


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
    assert policies(synthesized, chart) == ("RetainExceptOnCreate", "Retain")


def test_stacks_and_eks_refuse_to_be_deleted(created: Synthesized) -> None:
    foundation = f"{created.environment.name}-foundation"
    # CloudFormation refuses to delete it while the HyperPod stack imports from it
    assert {name for name, on in created.termination_protection.items() if not on} == {foundation}
    (eks,) = created.of_type("AWS::EKS::Cluster")
    assert created.resource(eks)["Properties"]["DeletionProtection"] is True


def test_without_protection_stacks_and_eks_can_be_deleted(unprotected: Synthesized) -> None:
    assert set(unprotected.termination_protection.values()) == {False}
    (eks,) = unprotected.of_type("AWS::EKS::Cluster")
    assert unprotected.resource(eks)["Properties"]["DeletionProtection"] is False


def test_without_protection_the_clusters_go_and_nothing_else(prod: Synthesized, unprotected: Synthesized) -> None:
    changed = {
        node[1]: policies(unprotected, node)[0]
        for stack, template in prod.templates.items()
        for node in ((stack, logical_id) for logical_id in template["Resources"])
        if policies(prod, node) != policies(unprotected, node)
    }

    assert changed.keys() == GOES_WITH_THE_CLUSTERS
    assert set(changed.values()) <= {"Delete", None}, "CloudFormation's own default is to delete"


@pytest.mark.parametrize("resource_type", DATA)
def test_without_protection_data_stays(unprotected: Synthesized, resource_type: str) -> None:
    nodes = unprotected.of_type(resource_type)

    assert nodes
    assert {policies(unprotected, node)[1] for node in nodes} == {"Retain"}
    assert {policies(unprotected, node)[0] for node in nodes} <= {"Retain", "RetainExceptOnCreate"}


def test_protection_changes_nothing_else(prod: Synthesized, unprotected: Synthesized) -> None:
    for stack, template in prod.templates.items():
        other = unprotected.templates[stack]["Resources"]
        assert template["Resources"].keys() == other.keys()
        differing = {
            logical_id
            for logical_id, resource in template["Resources"].items()
            if resource["Properties"] != other[logical_id]["Properties"]
        }
        assert differing <= {"ControlPlaneCluster8AFA2E51"}
