"""An environment in an existing VPC and EKS cluster: what it creates, what it does not change, and the order."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
import yaml

from hyperpod_cdk.catalog import kubernetes
from hyperpod_cdk.config import Environment, load_environment
from hyperpod_cdk_stacks.app import build
from tests.support.assembly import Synthesized, light_app, read_assembly, shipped, synthesize_unchecked

FILE = "examples/existing-vpc-and-eks.yaml"
NETWORK_KINDS = (
    "AWS::EC2::InternetGateway",
    "AWS::EC2::NatGateway",
    "AWS::EC2::Route",
    "AWS::EC2::RouteTable",
    "AWS::EC2::SecurityGroup",
    "AWS::EC2::SecurityGroupEgress",
    "AWS::EC2::SecurityGroupIngress",
    "AWS::EC2::Subnet",
    "AWS::EC2::VPC",
    "AWS::EC2::VPCEndpoint",
    "AWS::EKS::Cluster",
)
OWNERS_ADDONS = {"cert-manager", "coredns", "eks-pod-identity-agent", "kube-proxy", "vpc-cni"}

Change = Callable[[dict[str, Any]], object]
Synthesize = Callable[[Change], Synthesized]


@pytest.fixture(scope="module")
def shared(project: Path, assemblies: Path) -> Synthesized:
    """The example, with nag and the template checks."""
    loaded = load_environment(project / FILE, today=kubernetes.AS_OF)
    assert loaded.warnings == ()
    return shipped(assemblies, loaded.environment.name)


def checked(text: str, root: Path, outdir: Path) -> Synthesized:
    loaded = load_environment(Path(FILE), text=text, today=kubernetes.AS_OF)
    assert loaded.warnings == ()
    app = light_app(outdir)
    build(app, [loaded], root=root)
    app.synth()
    return read_assembly(outdir, loaded.environment)


@pytest.fixture
def synthesize(project: Path, tmp_path: Path) -> Synthesize:
    """Synthesizes the example after a change to its file."""

    def made(change: Change) -> Synthesized:
        values = yaml.safe_load((project / FILE).read_text(encoding="utf-8"))
        change(values)
        environment = load_environment(project / FILE, text=yaml.safe_dump(values, sort_keys=False)).environment
        return synthesize_unchecked(environment, project=project, outdir=tmp_path / "out")

    return made


def cluster(synthesized: Synthesized) -> dict[str, Any]:
    (node,) = synthesized.of_type("AWS::SageMaker::Cluster")
    properties: dict[str, Any] = synthesized.resource(node)["Properties"]
    return properties


def addons(synthesized: Synthesized) -> set[str]:
    return {synthesized.resource(node)["Properties"]["AddonName"] for node in synthesized.of_type("AWS::EKS::Addon")}


def test_nothing_of_the_owner_is_made(shared: Synthesized) -> None:
    assert shared.of_type(*NETWORK_KINDS) == []
    assert addons(shared) & OWNERS_ADDONS == set()
    assert addons(shared) == {"amazon-sagemaker-hyperpod-taskgovernance", "aws-fsx-csi-driver"}


def test_no_zone_name_and_no_token_reaches_a_template(shared: Synthesized) -> None:
    text = json.dumps(shared.templates)
    assert re.findall(r"us-east-1[a-z]\b|Fn::GetAZs|\$\{Token", text) == []


def test_nodes_stand_in_the_named_subnets_with_both_groups(shared: Synthesized) -> None:
    network, eks = shared.environment.network.existing, shared.environment.eks.existing
    assert network is not None
    assert eks is not None
    groups = [network.security_group_id, eks.security_group_id]
    properties = cluster(shared)
    assert properties["VpcConfig"] == {"Subnets": ["subnet-0d5a9e3b71c84f206"], "SecurityGroupIds": groups}
    assert {group["InstanceGroupName"]: group["OverrideVpcConfig"] for group in properties["InstanceGroups"]} == {
        "system": {"Subnets": ["subnet-02b6f8d4e9a13c75e"], "SecurityGroupIds": groups},
        "gpu": {"Subnets": ["subnet-0d5a9e3b71c84f206"], "SecurityGroupIds": groups},
    }


def test_the_cluster_joins_the_named_eks_cluster(shared: Synthesized) -> None:
    arn = json.dumps(cluster(shared)["Orchestrator"]["Eks"]["ClusterArn"])
    assert "cluster/platform" in arn
    for kind in ("AWS::EKS::AccessEntry", "AWS::EKS::Addon", "AWS::EKS::PodIdentityAssociation"):
        rows = [shared.resource(node)["Properties"]["ClusterName"] for node in shared.of_type(kind)]
        assert set(rows) == {"platform"}


def test_order(shared: Synthesized) -> None:
    assert nx.is_directed_acyclic_graph(shared.graph)
    (node,) = shared.of_type("AWS::SageMaker::Cluster")
    earlier = shared.of_type(
        "Custom::HyperPodQuotaGate",
        "Custom::AWSCDK-EKS-HelmChart",
        "Custom::CDKBucketDeployment",
    )
    assert len(earlier) == 3
    assert [each for each in earlier if not shared.waits_for(node, each)] == []
    (chart,) = shared.of_type("Custom::AWSCDK-EKS-HelmChart")
    entries = shared.of_type("AWS::EKS::AccessEntry")
    assert entries
    assert [each for each in entries if each[0] == chart[0] and not shared.waits_for(chart, each)] == []
    for name in addons(shared):
        assert shared.waits_for(shared.addon(name), node)
    assert "shared-hyperpod" not in shared.stack_dependencies["shared-storage"]


def test_templates_with_everything_left_out_that_may_be_pass_the_checks(
    project: Path, no_chart: Path, tmp_path: Path
) -> None:
    values = yaml.safe_load((project / FILE).read_text(encoding="utf-8"))
    for key in ("kubectl_role_arn", "oidc_provider_arn", "installed_addons"):
        del values["eks"]["existing"][key]
    for key in ("security_group_id", "control_plane_subnet_ids", "vpc_cidrs"):
        del values["network"]["existing"][key]
    synthesized = checked(yaml.safe_dump(values, sort_keys=False), no_chart, tmp_path)
    assert len(synthesized.of_type("AWS::EKS::AccessEntry")) == 2
    places = [
        synthesized.resource(node)["Properties"]["VpcConfig"]
        for node in synthesized.of_type("AWS::Lambda::Function")
        if "KubectlProvider" in node[1]
    ]
    subnets = ["subnet-0d5a9e3b71c84f206", "subnet-02b6f8d4e9a13c75e"]
    assert places == [{"SubnetIds": subnets, "SecurityGroupIds": ["sg-03e9b5d7f1a8c2646"]}] * 2


def test_one_group_for_network_and_cluster_is_named_once(synthesize: Synthesize) -> None:
    def change(values: dict[str, Any]) -> None:
        values["eks"]["existing"]["security_group_id"] = values["network"]["existing"]["security_group_id"]

    assert cluster(synthesize(change))["VpcConfig"]["SecurityGroupIds"] == ["sg-0f2c7a9d4e6b81503"]


def test_a_group_is_made_where_none_is_named(synthesize: Synthesize) -> None:
    synthesized = synthesize(lambda values: values["network"]["existing"].pop("security_group_id"))
    made = {stack for stack, _ in synthesized.of_type("AWS::EC2::SecurityGroup")}
    assert made == {"shared-foundation", "shared-storage"}
    vpcs = {synthesized.resource(n)["Properties"]["VpcId"] for n in synthesized.of_type("AWS::EC2::SecurityGroup")}
    assert vpcs == {"vpc-0c1f4e8a9b7d26350"}
    imported, own = cluster(synthesized)["VpcConfig"]["SecurityGroupIds"]
    assert "Fn::ImportValue" in imported
    assert own == "sg-03e9b5d7f1a8c2646"


def test_no_stack_is_empty_where_nothing_of_the_network_is_made(synthesize: Synthesize) -> None:
    synthesized = synthesize(
        lambda values: values.update(quota_check="off", permissions_boundary="Boundary", tags={"team": "a"})
    )
    assert sorted(synthesized.templates) == [
        "shared-foundation",
        "shared-hyperpod",
        "shared-observability",
        "shared-platform",
        "shared-storage",
    ]
    assert [stack for stack, template in synthesized.templates.items() if not template["Resources"]] == []
    assert synthesized.stack_dependencies["shared-storage"] == ["shared-foundation"]


def test_a_platform_of_which_nothing_is_made_has_no_stack(synthesize: Synthesize) -> None:
    def change(values: dict[str, Any]) -> None:
        del values["task_governance"], values["storage"]

    synthesized = synthesize(change)
    assert "shared-platform" not in synthesized.templates
    assert "shared-storage" not in synthesized.templates
    assert [stack for stack, template in synthesized.templates.items() if not template["Resources"]] == []


def test_installed_addons_are_left_alone(synthesize: Synthesize) -> None:
    def change(values: dict[str, Any]) -> None:
        values["operators"] = {"training": {"enabled": True}}
        values["eks"]["existing"]["installed_addons"] += [
            "aws-fsx-csi-driver",
            "amazon-sagemaker-hyperpod-taskgovernance",
        ]

    synthesized = synthesize(change)
    assert addons(synthesized) == {"amazon-sagemaker-hyperpod-training-operator"}
    # the claim, and the Pod Security labels of the team's namespace
    assert len(synthesized.of_type("Custom::AWSCDK-EKS-KubernetesResource")) == 2
    assert len(synthesized.of_type("AWS::SageMaker::ComputeQuota")) == 1


def test_an_eks_cluster_is_made_in_an_existing_network(synthesize: Synthesize) -> None:
    def change(values: dict[str, Any]) -> None:
        values["eks"] = {"kubernetes_version": "1.35"}

    synthesized = synthesize(change)
    ((_, logical_id),) = synthesized.of_type("AWS::EKS::Cluster")
    config = synthesized.templates["shared-foundation"]["Resources"][logical_id]["Properties"]["ResourcesVpcConfig"]
    assert config["SubnetIds"] == ["subnet-09e47b1c6d2f8a035", "subnet-0a83d5f2e7c1b6490"]
    assert config["SecurityGroupIds"] == ["sg-0f2c7a9d4e6b81503"]
    assert cluster(synthesized)["VpcConfig"]["SecurityGroupIds"] == ["sg-0f2c7a9d4e6b81503"]
    assert addons(synthesized) >= OWNERS_ADDONS - {"cert-manager"}


def test_node_blocks_of_an_existing_network_are_not_in_the_file(project: Path) -> None:
    environment: Environment = load_environment(project / FILE).environment
    assert environment.network.zone_ids() == ("use1-az6", "use1-az4")
    assert environment.eks_cluster_name == "platform"
    with pytest.raises(ValueError, match="the node blocks of the existing vpc-0c1f4e8a9b7d26350 are not in the file"):
        environment.network.node_cidrs()
