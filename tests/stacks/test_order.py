"""The order that must hold in the templates: each edge that is missing here has cost somebody a cluster."""

from __future__ import annotations

import networkx as nx
import pytest

from tests.support.assembly import Node, Synthesized

BEFORE_THE_CLUSTER = {
    "the HyperPod chart": ["Custom::AWSCDK-EKS-HelmChart"],
    "the lifecycle upload": ["Custom::CDKBucketDeployment"],
    "the security-group rules": ["AWS::EC2::SecurityGroupIngress", "AWS::EC2::SecurityGroupEgress"],
    "the routes": ["AWS::EC2::Route", "AWS::EC2::SubnetRouteTableAssociation"],
    "the endpoints": ["AWS::EC2::VPCEndpoint"],
    "the EKS cluster": ["AWS::EKS::Cluster"],
}
NEEDS_A_NODE = (
    "amazon-sagemaker-hyperpod-taskgovernance",
    "amazon-sagemaker-hyperpod-training-operator",
    "aws-fsx-csi-driver",
    "cert-manager",
    "coredns",
)
NEEDS_NO_NODE = ("eks-pod-identity-agent", "kube-proxy", "vpc-cni")
SCHEDULER = ("AWS::SageMaker::ClusterSchedulerConfig", "Custom::ClusterSchedulerConfig")
QUOTA = ("AWS::SageMaker::ComputeQuota", "Custom::ComputeQuota")


def cluster(synthesized: Synthesized) -> Node:
    (found,) = synthesized.of_type("AWS::SageMaker::Cluster")
    return found


def test_nothing_waits_for_itself(synthesized: Synthesized) -> None:
    assert nx.is_directed_acyclic_graph(synthesized.graph)


@pytest.mark.parametrize("what", BEFORE_THE_CLUSTER)
def test_stands_before_the_cluster(created: Synthesized, what: str) -> None:
    earlier = created.of_type(*BEFORE_THE_CLUSTER[what])
    # rules that a file system adds for its own ports belong to storage, which lives beside the cluster
    earlier = [node for node in earlier if not node[0].endswith("-storage")]
    assert earlier
    assert [n for n in earlier if not created.waits_for(cluster(created), n)] == []


def test_every_policy_of_the_execution_role_stands_before_the_cluster(synthesized: Synthesized) -> None:
    node = cluster(synthesized)
    group = synthesized.resource(node)["Properties"]["InstanceGroups"][0]
    role = group["ExecutionRole"]["Fn::GetAtt"][0]
    policies = [
        each
        for each in synthesized.of_type("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy", "AWS::IAM::RolePolicy")
        if each[0] == node[0] and {"Ref": role} in _roles(synthesized, each)
    ]
    assert policies
    assert [n for n in policies if not synthesized.waits_for(node, n)] == []


@pytest.mark.parametrize("name", NEEDS_A_NODE)
def test_addon_whose_pods_need_a_node_waits_for_the_cluster(created: Synthesized, name: str) -> None:
    wanted = {
        "aws-fsx-csi-driver": any(lustre.claim for lustre in created.environment.storage.lustre),
        "amazon-sagemaker-hyperpod-training-operator": created.environment.operators.training.enabled,
        "cert-manager": created.environment.operators.training.enabled,
    }
    if not wanted.get(name, True):
        assert name not in _addons(created)
        return
    assert created.waits_for(created.addon(name), cluster(created))


@pytest.mark.parametrize("name", NEEDS_NO_NODE)
def test_addon_that_needs_no_node_stands_before_the_cluster(created: Synthesized, name: str) -> None:
    assert created.waits_for(cluster(created), created.addon(name))


def test_governance_goes_addon_then_policy_then_quotas(synthesized: Synthesized) -> None:
    addon = synthesized.addon("amazon-sagemaker-hyperpod-taskgovernance")
    (scheduler,) = synthesized.of_type(*SCHEDULER)
    quotas = synthesized.of_type(*QUOTA)
    assert len(quotas) == len(synthesized.environment.task_governance.teams)  # type: ignore[union-attr]
    assert synthesized.waits_for(scheduler, addon)
    assert [q for q in quotas if not synthesized.waits_for(q, scheduler)] == []


def test_training_operator_waits_for_cert_manager_and_its_identity(created: Synthesized) -> None:
    if not created.environment.operators.training.enabled:
        assert created.environment.name == "two-teams"
        return
    operator = created.addon("amazon-sagemaker-hyperpod-training-operator")
    identities = [
        node
        for node in created.of_type("AWS::EKS::PodIdentityAssociation")
        if created.resource(node)["Properties"]["ServiceAccount"] == "hp-training-operator-controller-manager"
    ]
    assert len(identities) == 1
    assert created.waits_for(operator, identities[0])
    assert created.waits_for(operator, created.addon("cert-manager"))
    assert "PodIdentityAssociations" not in created.resource(operator)["Properties"]


def test_file_system_ports_are_open_before_the_file_system(created: Synthesized) -> None:
    for system in created.of_type("AWS::FSx::FileSystem"):
        rules = [
            node
            for node in created.of_type("AWS::EC2::SecurityGroupIngress", "AWS::EC2::SecurityGroupEgress")
            if node[0] == system[0]
        ]
        assert rules
        assert [n for n in rules if not created.waits_for(system, n)] == []


def test_storage_and_control_plane_go_side_by_side(synthesized: Synthesized) -> None:
    name = synthesized.environment.name
    if not synthesized.environment.storage.lustre:
        assert f"{name}-storage" not in synthesized.templates
        return
    assert f"{name}-storage" not in synthesized.stack_dependencies[f"{name}-control-plane"]
    assert f"{name}-control-plane" not in synthesized.stack_dependencies[f"{name}-storage"]


def _roles(synthesized: Synthesized, node: Node) -> list[object]:
    properties = synthesized.resource(node)["Properties"]
    return [*properties.get("Roles", []), properties.get("RoleName")]


def _addons(synthesized: Synthesized) -> set[str]:
    return {synthesized.resource(node)["Properties"]["AddonName"] for node in synthesized.of_type("AWS::EKS::Addon")}
