"""The required order in the templates: each missing dependency would break a cluster."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
import yaml

from hyperpod_cdk.catalog import addons
from hyperpod_cdk.config import load_environment
from hyperpod_cdk.config.wanted_addons import asked_for
from tests.support.assembly import ENVIRONMENTS, PROJECT, Node, Synthesized, shipped, synthesize_unchecked
from tests.support.tables import row_by_row

BEFORE_THE_CLUSTER = {
    "the HyperPod chart": ["Custom::AWSCDK-EKS-HelmChart"],
    "the lifecycle upload": ["Custom::CDKBucketDeployment"],
    "the security-group rules": ["AWS::EC2::SecurityGroupIngress", "AWS::EC2::SecurityGroupEgress"],
    "the routes": ["AWS::EC2::Route", "AWS::EC2::SubnetRouteTableAssociation"],
    "the endpoints": ["AWS::EC2::VPCEndpoint"],
    "the EKS cluster": ["AWS::EKS::Cluster"],
}
NEEDS_A_NODE = (
    "amazon-sagemaker-hyperpod-inference",
    "amazon-sagemaker-hyperpod-observability",
    "amazon-sagemaker-hyperpod-taskgovernance",
    "amazon-sagemaker-hyperpod-training-operator",
    "amazon-sagemaker-spaces",
    "aws-ebs-csi-driver",
    "aws-fsx-csi-driver",
    "cert-manager",
    "coredns",
    "metrics-server",
)
NEEDS_NO_NODE = ("eks-pod-identity-agent", "kube-proxy", "vpc-cni")
GOVERNANCE = "amazon-sagemaker-hyperpod-taskgovernance"
DRIVERS = {"fsx.csi.aws.com": "aws-fsx-csi-driver", "s3.csi.aws.com": "aws-mountpoint-s3-csi-driver"}
OUTSIDE_KUBE_SYSTEM = {
    *("cert-manager", "amazon-sagemaker-hyperpod-training-operator", "amazon-sagemaker-hyperpod-inference"),
    *("amazon-sagemaker-hyperpod-observability", "amazon-sagemaker-spaces"),
}
"""Add-ons with a namespace of their own (each one's page in EKS's or SageMaker's guide)."""
SCHEDULER = ("AWS::SageMaker::ClusterSchedulerConfig", "Custom::ClusterSchedulerConfig")
QUOTA = ("AWS::SageMaker::ComputeQuota", "Custom::ComputeQuota")


def cluster(synthesized: Synthesized) -> Node:
    (found,) = synthesized.of_type("AWS::SageMaker::Cluster")
    return found


def ready(synthesized: Synthesized) -> Node:
    (found,) = synthesized.of_type("Custom::HyperPodNodesReady")
    return found


def test_nothing_waits_for_itself(synthesized: Synthesized) -> None:
    assert nx.is_directed_acyclic_graph(synthesized.graph)


@row_by_row("what", BEFORE_THE_CLUSTER)
def test_it_precedes_the_cluster(synthesized: Synthesized, what: str) -> None:
    earlier = synthesized.of_type(*BEFORE_THE_CLUSTER[what])
    # rules that a file system adds for its own ports belong to storage, which lives beside the cluster
    earlier = [node for node in earlier if not node[0].endswith("-storage")]
    assert earlier or what in _brought_along(synthesized)
    assert [n for n in earlier if not synthesized.waits_for(cluster(synthesized), n)] == []


def test_what_works_in_the_network_goes_before_its_routes(synthesized: Synthesized) -> None:
    # kubectl and helm run in the network: without routes to the API they would hang while the stack is destroyed
    workers = synthesized.of_type("Custom::AWSCDK-EKS-HelmChart", "Custom::AWSCDK-EKS-KubernetesResource")
    ways = synthesized.of_type(*BEFORE_THE_CLUSTER["the routes"], *BEFORE_THE_CLUSTER["the endpoints"])
    assert [(a, b) for a in workers for b in ways if not synthesized.waits_for(a, b)] == []


def test_a_claim_waits_for_its_driver_and_for_the_quota_that_brings_its_namespace(synthesized: Synthesized) -> None:
    installed, quotas = _addons(synthesized), synthesized.of_type(*QUOTA)
    for node in synthesized.of_type("Custom::AWSCDK-EKS-KubernetesResource"):
        manifest = json.dumps(synthesized.resource(node)["Properties"]["Manifest"])
        needed = [synthesized.addon(each) for word, each in DRIVERS.items() if word in manifest and each in installed]
        if "PersistentVolumeClaim" in manifest and "hyperpod-ns-" in manifest:
            needed += [
                each
                for each in quotas
                if f"hyperpod-ns-{_team(synthesized, each)}" in re.findall(r"hyperpod-ns-[a-z0-9-]+", manifest)
            ]
        assert [each for each in needed if not synthesized.waits_for(node, each)] == []


def test_kubectl_runs_after_the_log_groups_that_it_would_make_itself(synthesized: Synthesized) -> None:
    groups = [
        node
        for node in synthesized.of_type("AWS::Logs::LogGroup")
        if "/aws/lambda/" in json.dumps(synthesized.resource(node)["Properties"].get("LogGroupName"))
    ]
    workers = synthesized.of_type("Custom::AWSCDK-EKS-HelmChart", "Custom::AWSCDK-EKS-KubernetesResource")
    assert len(groups) == 2  # the handler's and its framework's
    assert [(a, b) for a in workers for b in groups if not synthesized.waits_for(a, b)] == []


def test_every_kubernetes_object_can_be_sent_twice(synthesized: Synthesized) -> None:
    # what is created and not applied fails at each deployment after one that failed halfway (manifests.py)
    manifests = synthesized.of_type("Custom::AWSCDK-EKS-KubernetesResource")
    assert [node for node in manifests if synthesized.resource(node)["Properties"].get("Overwrite") is not True] == []


def test_no_two_make_one_namespace_at_once(synthesized: Synthesized) -> None:
    made: dict[str, list[Node]] = {}
    for node in synthesized.of_type("Custom::AWSCDK-EKS-KubernetesResource"):
        manifest = synthesized.resource(node)["Properties"]["Manifest"]
        if isinstance(manifest, str) and json.loads(manifest)[0]["kind"] == "Namespace":
            made.setdefault(json.loads(manifest)[0]["metadata"]["name"], []).append(node)
    pairs = [pair for nodes in made.values() for pair in combinations(nodes, 2)]
    assert [(a, b) for a, b in pairs if not (synthesized.waits_for(a, b) or synthesized.waits_for(b, a))] == []


def test_a_closed_network_has_endpoints_and_no_way_out(created: Synthesized) -> None:
    endpoints = {
        created.resource(node)["Properties"]["VpcEndpointType"] for node in created.of_type("AWS::EC2::VPCEndpoint")
    }
    ways_out = created.of_type("AWS::EC2::Route", "AWS::EC2::NatGateway", "AWS::EC2::InternetGateway")
    is_closed = created.environment.network.is_closed
    assert endpoints == ({"Gateway", "Interface"} if is_closed else {"Gateway"})
    assert bool(ways_out) is not is_closed


def test_every_policy_of_the_execution_role_precedes_the_cluster(synthesized: Synthesized) -> None:
    node = cluster(synthesized)
    properties = synthesized.resource(node)["Properties"]
    groups = (*properties.get("InstanceGroups", ()), *properties.get("RestrictedInstanceGroups", ()))
    for stack, role in {_origin(synthesized, node[0], group["ExecutionRole"]) for group in groups}:
        policies = [
            each
            for each in synthesized.of_type("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy", "AWS::IAM::RolePolicy")
            if each[0] == stack and {"Ref": role} in _roles(synthesized, each)
        ]
        assert policies
        assert [n for n in policies if not synthesized.waits_for(node, n)] == []


def test_pods_get_rights_after_the_agent_that_brings_them(created: Synthesized) -> None:
    associations = created.of_type("AWS::EKS::PodIdentityAssociation")
    agent = created.addon(addons.POD_IDENTITY_AGENT)
    assert [each for each in associations if not created.waits_for(each, agent)] == []


@row_by_row("name", NEEDS_A_NODE)
def test_addon_whose_pods_need_a_node_waits_for_the_cluster(created: Synthesized, name: str) -> None:
    if name != "coredns" and name not in asked_for(created.environment):
        assert name not in _addons(created)
        return
    assert created.waits_for(created.addon(name), cluster(created))


@row_by_row("name", NEEDS_A_NODE)
def test_addon_whose_pods_need_a_node_waits_for_one_that_runs(synthesized: Synthesized, name: str) -> None:
    if name not in _addons(synthesized):
        return
    assert synthesized.waits_for(synthesized.addon(name), ready(synthesized))


def test_quotas_wait_for_a_node_that_runs(synthesized: Synthesized) -> None:
    policies = synthesized.of_type(*SCHEDULER, *QUOTA)
    assert [each for each in policies if not synthesized.waits_for(each, ready(synthesized))] == []


def test_the_wait_begins_with_the_cluster_and_finds_its_function_made(synthesized: Synthesized) -> None:
    assert synthesized.waits_for(ready(synthesized), cluster(synthesized))
    (function,) = [
        node
        for node in synthesized.of_type("AWS::Lambda::Function")
        if synthesized.resource(node)["Properties"].get("Description", "").startswith("HyperPod node wait")
    ]
    assert function[0] == cluster(synthesized)[0]
    assert not synthesized.waits_for(function, cluster(synthesized))


def test_the_wait_is_for_groups_that_take_addons(synthesized: Synthesized) -> None:
    groups = synthesized.resource(ready(synthesized))["Properties"]["Groups"]
    expected = [
        {"Name": group.name, "Count": group.count, "Expected": group.name == "system"}
        for group in synthesized.environment.hyperpod.instance_groups
        if group.count
    ]
    assert groups == expected


@row_by_row("name", NEEDS_NO_NODE)
def test_an_addon_that_needs_no_node_precedes_the_cluster(created: Synthesized, name: str) -> None:
    assert created.waits_for(cluster(created), created.addon(name))


def test_no_addon_meets_a_kueue_that_does_not_answer(synthesized: Synthesized) -> None:
    # awsome-distributed-ai, task_governance/main.tf: what comes after the add-on waits for kueue-controller-manager
    kueue = [node for node in synthesized.of_type("AWS::EKS::Addon") if _addon_name(synthesized, node) == GOVERNANCE]
    for node in kueue:
        (answering,) = _deployments(synthesized, "kueue-system")
        assert answering[1] == "kueue-controller-manager"
        assert synthesized.waits_for(answering[0], node)
        for other in synthesized.of_type("AWS::EKS::Addon"):
            name = _addon_name(synthesized, other)
            # the namespaces of HyperPod's Kueue settings: NotIn [kube-system, kueue-system]
            if name in OUTSIDE_KUBE_SYSTEM:
                assert synthesized.waits_for(other, answering[0]) or synthesized.waits_for(node, other), name
            elif name != GOVERNANCE:
                assert not synthesized.waits_for(node, other) or other[0] != node[0], f"{name} holds governance up"


def test_policy_and_quotas_wait_for_kueues_webhooks(synthesized: Synthesized) -> None:
    policies = synthesized.of_type(*SCHEDULER, *QUOTA)
    for answering, _name in _deployments(synthesized, "kueue-system"):
        assert [each for each in policies if not synthesized.waits_for(each, answering)] == []


def test_certificates_wait_for_cert_managers_webhook(synthesized: Synthesized) -> None:
    if addons.CERT_MANAGER not in _addons(synthesized):
        return
    cert_manager = synthesized.addon(addons.CERT_MANAGER)
    asked = _deployments(synthesized, "cert-manager")
    # awsome-distributed-ai, hyperpod_cluster/cert_manager.tf: these three
    assert {name for _node, name in asked} == {"cert-manager", "cert-manager-cainjector", "cert-manager-webhook"}
    assert [node for node, _name in asked if not synthesized.waits_for(node, cert_manager)] == []
    for name in {addons.TRAINING_OPERATOR, addons.INFERENCE, addons.SPACES} & set(_addons(synthesized)):
        operator = synthesized.addon(name)
        assert [node for node, _name in asked if not synthesized.waits_for(operator, node)] == []


def test_a_wait_asks_for_what_is_not_there_while_no_pod_is_ready(synthesized: Synthesized) -> None:
    for node in synthesized.of_type("Custom::AWSCDK-EKS-KubernetesObjectValue"):
        properties = synthesized.resource(node)["Properties"]
        # Kubernetes API, DeploymentStatus: availableReplicas is left out while it is 0; AWS's Terraform waits 300 s
        assert (properties["ObjectType"], properties["JsonPath"]) == ("deployment", ".status.availableReplicas")
        assert properties["TimeoutSeconds"] == 300
        assert properties["ServiceTimeout"] == 960
        # CDK's handler asks on an update and on its way back too: nothing in it may follow the add-on's version
        assert "AddonVersion" not in properties


def test_without_a_node_for_addons_nothing_waits_and_kueue_is_last(tmp_path: Path) -> None:
    data = yaml.safe_load((PROJECT / ENVIRONMENTS["prod"]).read_text(encoding="utf-8"))
    for group in data["hyperpod"]["instance_groups"]:
        group["taints"] = [{"key": "dedicated", "value": "jobs", "effect": "NoSchedule"}]
        group.pop("deep_health_checks", None)
    loaded = load_environment(PROJECT / ENVIRONMENTS["prod"], text=yaml.safe_dump(data))
    tainted = synthesize_unchecked(loaded.environment, project=PROJECT, outdir=tmp_path / "out")
    assert tainted.of_type("Custom::AWSCDK-EKS-KubernetesObjectValue", "Custom::HyperPodNodesReady") == []
    kueue = tainted.addon(addons.TASK_GOVERNANCE)
    for name in (addons.CERT_MANAGER, addons.TRAINING_OPERATOR):
        assert tainted.waits_for(kueue, tainted.addon(name))


def test_governance_goes_addon_then_policy_then_quotas(synthesized: Synthesized) -> None:
    if synthesized.environment.task_governance is None:
        assert synthesized.of_type(*SCHEDULER, *QUOTA) == []
        return
    addon = synthesized.addon("amazon-sagemaker-hyperpod-taskgovernance")
    (scheduler,) = synthesized.of_type(*SCHEDULER)
    quotas = synthesized.of_type(*QUOTA)
    assert len(quotas) == len(synthesized.environment.task_governance.teams)
    assert synthesized.waits_for(scheduler, addon)
    assert [q for q in quotas if not synthesized.waits_for(q, scheduler)] == []


def test_objects_in_a_teams_namespace_wait_for_its_quota(synthesized: Synthesized) -> None:
    governance = synthesized.environment.task_governance
    teams = () if governance is None else governance.teams
    quotas = {
        synthesized.resource(node)["Properties"]["ComputeQuotaTarget"]["TeamName"]: node
        for node in synthesized.of_type(*QUOTA)
    }
    for team in teams:
        inside = [
            node
            for node in synthesized.of_type("Custom::AWSCDK-EKS-KubernetesResource")
            if f'"namespace":"{team.namespace}"' in str(synthesized.resource(node)["Properties"]["Manifest"])
        ]
        assert inside or not team.default_queue
        assert [node for node in inside if not synthesized.waits_for(node, quotas[team.name])] == []


def test_training_operator_waits_for_cert_manager_and_its_identity(created: Synthesized) -> None:
    if not created.environment.operators.training.enabled:
        assert addons.TRAINING_OPERATOR not in _addons(created)
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


@pytest.mark.parametrize("name", [addons.TRAINING_OPERATOR, addons.INFERENCE, addons.OBSERVABILITY, addons.SPACES])
def test_an_operator_waits_for_what_it_requires_and_for_its_rights(synthesized: Synthesized, name: str) -> None:
    if name not in asked_for(synthesized.environment):
        assert name not in _addons(synthesized)
        return
    operator, row, installs = synthesized.addon(name), addons.row(name), synthesized.environment.eks.installs
    required = [synthesized.addon(each) for each in row.requires if installs(each)]
    identities = [
        node
        for node in synthesized.of_type("AWS::EKS::PodIdentityAssociation")
        if synthesized.resource(node)["Properties"]["Namespace"] == row.namespace
    ]
    assert len(identities) == (0 if row.needs_oidc_provider else len(row.service_accounts))
    assert [node for node in [*required, *identities] if not synthesized.waits_for(operator, node)] == []


def test_the_observability_addon_waits_for_dns_and_its_workspaces(created: Synthesized) -> None:
    if not created.environment.operators.observability.enabled:
        assert addons.OBSERVABILITY not in _addons(created)
        return
    addon = created.addon(addons.OBSERVABILITY)
    workspaces = created.of_type("AWS::APS::Workspace", "AWS::Grafana::Workspace")
    assert len(workspaces) == 2
    assert [node for node in [*workspaces, created.addon("coredns")] if not created.waits_for(addon, node)] == []


def test_file_system_ports_are_open_before_the_file_system(created: Synthesized) -> None:
    for system in created.of_type("AWS::FSx::FileSystem"):
        (group,) = created.resource(system)["Properties"]["SecurityGroupIds"]
        rules = [
            node
            for node in created.of_type("AWS::EC2::SecurityGroupIngress", "AWS::EC2::SecurityGroupEgress")
            if node[0] == system[0] and group in created.resource(node)["Properties"].values()
        ]
        assert rules
        assert [n for n in rules if not created.waits_for(system, n)] == []


def test_storage_and_hyperpod_go_side_by_side(synthesized: Synthesized) -> None:
    name = synthesized.environment.name
    assert synthesized.stack_dependencies[f"{name}-foundation"] == []
    assert synthesized.stack_dependencies[f"{name}-hyperpod"] == [f"{name}-foundation"]
    if synthesized.environment.storage.made_lustre:
        assert synthesized.stack_dependencies[f"{name}-storage"] == [f"{name}-foundation"]


def _deployments(synthesized: Synthesized, namespace: str) -> list[tuple[Node, str]]:
    """Return the waits for deployments of a namespace, each with the deployment's name."""
    asked = [
        (node, synthesized.resource(node)["Properties"])
        for node in synthesized.of_type("Custom::AWSCDK-EKS-KubernetesObjectValue")
    ]
    return [(node, p["ObjectName"]) for node, p in asked if p["ObjectNamespace"] == namespace]


def _origin(synthesized: Synthesized, stack: str, value: dict[str, Any]) -> Node:
    """Return the resource behind an attribute: of the stack itself, or of another that it imports from."""
    return (stack, value["Fn::GetAtt"][0]) if "Fn::GetAtt" in value else _exporter(synthesized, value)


def _exporter(synthesized: Synthesized, value: dict[str, str]) -> Node:
    """Return the resource whose attribute one stack imports from another."""
    stack = value["Fn::ImportValue"].partition(":")[0]
    (output,) = [
        each
        for each in synthesized.templates[stack]["Outputs"].values()
        if each.get("Export", {}).get("Name") == value["Fn::ImportValue"]
    ]
    return stack, output["Value"]["Fn::GetAtt"][0]


def _roles(synthesized: Synthesized, node: Node) -> list[object]:
    properties = synthesized.resource(node)["Properties"]
    return [*properties.get("Roles", []), properties.get("RoleName")]


def _addon_name(synthesized: Synthesized, node: Node) -> str:
    return str(synthesized.resource(node)["Properties"]["AddonName"])


def _addons(synthesized: Synthesized) -> set[str]:
    return {synthesized.resource(node)["Properties"]["AddonName"] for node in synthesized.of_type("AWS::EKS::Addon")}


def _brought_along(synthesized: Synthesized) -> set[str]:
    """Name what an environment joins instead of making it."""
    environment, found = synthesized.environment, set[str]()
    if environment.network.existing is not None:
        found |= {"the security-group rules", "the routes", "the endpoints"}
    if environment.eks.existing is not None:
        found |= {"the EKS cluster"}
    if synthesized.of_type("Custom::CDKBucketDeployment") == [] and environment.hyperpod.lifecycle.existing_bucket:
        found |= {"the lifecycle upload"}
    return found


def _team(synthesized: Synthesized, quota: Node) -> str:
    properties = synthesized.resource(quota)["Properties"]
    return str(properties["ComputeQuotaTarget"]["TeamName"])


def test_karpenter_is_asked_before_the_cluster_changes_and_has_pools_once_it_is_there(assemblies: Path) -> None:
    spot = shipped(assemblies, "spot")
    (counts,) = spot.of_type("Custom::HyperPodNodeCounts")
    (autoscaler,) = spot.of_type("Custom::HyperPodAutoscaler")
    pools = [
        node
        for node in spot.of_type("Custom::AWSCDK-EKS-KubernetesResource")
        if "HyperpodNodeClass" in json.dumps(spot.resource(node)["Properties"]["Manifest"])
    ]
    assert len(pools) == 1
    assert spot.waits_for(cluster(spot), counts)
    assert spot.waits_for(autoscaler, cluster(spot))
    assert [pool for pool in pools if not spot.waits_for(pool, autoscaler)] == []
