"""A HyperPod cluster that Karpenter scales: what it takes, what stays fixed, how nodes come."""

from __future__ import annotations

from typing import Any

import pytest

PRINCIPAL = "hyperpod.sagemaker.amazonaws.com"
ON = {"Mode": "Enable", "AutoScalerType": "Karpenter"}
NODES = {"*": ["sagemaker:BatchAddClusterNodes", "sagemaker:BatchDeleteClusterNodes"]}


@pytest.fixture
def role_arn(world: Any) -> str:
    """The role that Karpenter works with."""
    arn: str = world.role("karpenter", PRINCIPAL, actions=NODES)
    return arn


def counts(world: Any) -> dict[str, int]:
    groups = world.client("sagemaker").describe_cluster(ClusterName="prod")["InstanceGroups"]
    return {group["InstanceGroupName"]: group["TargetCount"] for group in groups}


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"ClusterRole": ...}, "ClusterRole is required when AutoScaling is enabled."),
        ({"NodeProvisioningMode": ...}, "AutoScaling requires NodeProvisioningMode Continuous."),
        ({"NodeRecovery": "None"}, "AutoScaling requires NodeRecovery Automatic, got None in us-east-1."),
    ],
)
def test_what_it_needs(world: Any, refusal: Any, role_arn: str, members: dict[str, Any], message: str) -> None:
    world.make_eks()
    request = {**world.hyperpod_request(AutoScaling=ON, ClusterRole=role_arn), **members}
    request = {key: value for key, value in request.items() if value is not ...}
    assert refusal(world.client("sagemaker").create_cluster, **request) == ("ValidationException", message)


def test_the_role_is_the_services_and_may_scale(world: Any, refusal: Any) -> None:
    world.make_eks()
    create = world.client("sagemaker").create_cluster
    another = world.role("another", "sagemaker.amazonaws.com", actions=NODES)
    assert refusal(create, **world.hyperpod_request(AutoScaling=ON, ClusterRole=another)) == (
        "ValidationException",
        (
            f"Could not assume role {another}. Please ensure that the role exists and allows principal '{PRINCIPAL}' "
            "to assume the role."
        ),
    )
    powerless = world.role("powerless", PRINCIPAL, actions={"*": ["sagemaker:BatchAddClusterNodes"]})
    assert refusal(create, **world.hyperpod_request(AutoScaling=ON, ClusterRole=powerless)) == (
        "ValidationException",
        f"The role {powerless} is not authorized to perform: sagemaker:BatchDeleteClusterNodes",
    )


def test_the_role_stays_while_autoscaling_is_on(world: Any, refusal: Any, role_arn: str) -> None:
    group = world.group()
    world.make_hyperpod(group, AutoScaling=ON, ClusterRole=role_arn)
    other = world.role("other", PRINCIPAL, actions=NODES)
    update = world.client("sagemaker").update_cluster
    assert refusal(update, ClusterName="prod", InstanceGroups=[group], ClusterRole=other) == (
        "ValidationException",
        "ClusterRole cannot be updated while autoscaling is enabled.",
    )
    update(ClusterName="prod", InstanceGroups=[group], ClusterRole=other, AutoScaling={"Mode": "Disable"})
    world.settle()
    assert world.client("sagemaker").describe_cluster(ClusterName="prod")["ClusterRole"] == other


def test_nodes_come_one_by_one_and_go_with_an_update_that_does_not_ask_for_them(world: Any, role_arn: str) -> None:
    system, gpu = world.group(), world.group("gpu", "ml.g5.12xlarge", 0)
    world.make_hyperpod(system, gpu, AutoScaling=ON, ClusterRole=role_arn)
    sagemaker = world.client("sagemaker")
    added = sagemaker.batch_add_cluster_nodes(
        ClusterName="prod",
        NodesToAdd=[
            {"InstanceGroupName": "gpu", "IncrementTargetCountBy": 2},
            {"InstanceGroupName": "none", "IncrementTargetCountBy": 1},
        ],
    )
    assert [(node["InstanceGroupName"], node["Status"]) for node in added["Successful"]] == [("gpu", "Pending")] * 2
    assert [(each["InstanceGroupName"], each["ErrorCode"], each["FailedCount"]) for each in added["Failed"]] == [
        ("none", "InstanceGroupNotFound", 1)
    ]
    world.settle()
    assert counts(world) == {"gpu": 2, "system": 1}

    sagemaker.update_cluster(ClusterName="prod", InstanceGroups=[system, gpu])
    world.settle()
    assert counts(world) == {"gpu": 0, "system": 1}
    assert len(sagemaker.list_cluster_nodes(ClusterName="prod")["ClusterNodeSummaries"]) == 1


def test_nodes_one_by_one_need_continuous_provisioning(world: Any, refusal: Any) -> None:
    world.make_eks()
    request = world.hyperpod_request()
    del request["NodeProvisioningMode"]
    world.client("sagemaker").create_cluster(**request)
    world.settle()
    nodes = [{"InstanceGroupName": "system", "IncrementTargetCountBy": 1}]
    assert refusal(world.client("sagemaker").batch_add_cluster_nodes, ClusterName="prod", NodesToAdd=nodes) == (
        "ValidationException",
        "Cluster prod does not have NodeProvisioningMode Continuous.",
    )


@pytest.mark.parametrize(
    ("type_name", "members", "message"),
    [
        (
            "ml.m5.2xlarge",
            {"NetworkInterface": {"InterfaceType": "efa"}},
            "Instance group 'g': NetworkInterface is not supported for ml.m5.2xlarge.",
        ),
        (
            "ml.p5.48xlarge",
            {
                "OnStartDeepHealthChecks": ["InstanceStress"],
                "KubernetesConfig": {"Taints": [{"Key": "a", "Effect": "NoSchedule"}]},
            },
            "Instance group 'g': Taints are not supported with OnStartDeepHealthChecks.",
        ),
        (
            None,
            {
                "InstanceRequirements": {"InstanceTypes": ["ml.p5.48xlarge"]},
                "KubernetesConfig": {"Labels": {"nvidia.com/mig.config": "all-1g.10gb"}},
            },
            "Instance group 'g': MIG is not supported with InstanceRequirements.",
        ),
    ],
)
def test_what_a_group_cannot_be(
    world: Any, refusal: Any, type_name: str | None, members: dict[str, Any], message: str
) -> None:
    world.make_eks()
    group = {key: value for key, value in world.group("g", type_name or "").items() if value}
    request = world.hyperpod_request({**group, **members})
    assert refusal(world.client("sagemaker").create_cluster, **request) == ("ValidationException", message)
