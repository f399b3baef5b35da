"""Nodes that are replaced, rebooted or checked manually."""

from __future__ import annotations

from typing import Any

import pytest

from hyperpod_cdk_rehearsal.embedded.services.nodes import HEALTH_CHECK_SECONDS, NODE_SECONDS

UNKNOWN = "i-00000000000000000"
OPERATIONS = ("batch_replace_cluster_nodes", "batch_reboot_cluster_nodes")


def nodes(world: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = world.client("sagemaker").list_cluster_nodes(
        ClusterName="prod", IncludeNodeLogicalIds=True
    )["ClusterNodeSummaries"]
    return found


def states(world: Any) -> list[str]:
    return [node["InstanceStatus"]["Status"] for node in nodes(world)]


def texts(world: Any) -> list[str]:
    events = world.client("sagemaker").list_cluster_events(ClusterName="prod", SortOrder="Ascending")["Events"]
    return [str(event["Description"]) for event in events]


@pytest.mark.parametrize("mode", ["Continuous", None])
def test_a_replacement_is_a_new_instance_in_the_same_group(world: Any, mode: str | None) -> None:
    world.make_hyperpod(world.group(count=2), NodeProvisioningMode=mode)
    first, second = (node["InstanceId"] for node in nodes(world))
    answer = world.client("sagemaker").batch_replace_cluster_nodes(ClusterName="prod", NodeIds=[first])
    assert answer == {"Successful": [first]}
    assert states(world) == ["ShuttingDown", "Running"]
    world.clock.sleep(NODE_SECONDS)
    new, other = (node["InstanceId"] for node in nodes(world))
    assert (new != first, other, states(world)) == (True, second, ["Pending", "Running"])
    world.clock.sleep(NODE_SECONDS)
    assert states(world) == ["Running", "Running"]
    if mode:
        assert texts(world)[-2:] == [
            f"Instance {new} is starting as part of instance replacement in Cluster prod and IG system",
            f"EC2 Instance {new} successfully provisioned in Cluster prod and InstanceGroup system",
        ]


def test_a_reboot_keeps_the_instance(world: Any) -> None:
    world.make_hyperpod()
    (node,) = (node["InstanceId"] for node in nodes(world))
    answer = world.client("sagemaker").batch_reboot_cluster_nodes(ClusterName="prod", NodeIds=[node])
    assert (answer, states(world)) == ({"Successful": [node]}, ["Pending"])
    assert texts(world)[-1] == f"Reboot of EC2 Instance {node} is currently in progress on Cluster prod and IG system"
    world.clock.sleep(NODE_SECONDS)
    assert ([each["InstanceId"] for each in nodes(world)], states(world)) == ([node], ["Running"])


@pytest.mark.parametrize("operation", OPERATIONS)
def test_each_node_fails_by_itself(world: Any, operation: str) -> None:
    checked = world.group("h100", "ml.p5.48xlarge", 1, OnStartDeepHealthChecks=["InstanceStress"])
    world.make_hyperpod(checked, world.group())
    h100, system = (node["InstanceId"] for node in nodes(world))
    configuration = {"InstanceGroupName": "h100", "DeepHealthChecks": ["InstanceStress"]}
    sagemaker = world.client("sagemaker")
    sagemaker.start_cluster_health_check(ClusterName="prod", DeepHealthCheckConfigurations=[configuration])
    do = getattr(sagemaker, operation)
    answer = do(ClusterName="prod", NodeIds=[system, UNKNOWN, h100])
    what = "replacement" if "replace" in operation else "rebooting"
    assert answer == {
        "Successful": [system],
        "Failed": [
            {
                "NodeId": UNKNOWN,
                "ErrorCode": "InstanceIdNotFound",
                "Message": f"Instance {UNKNOWN} does not exist in cluster prod.",
            },
            {
                "NodeId": h100,
                "ErrorCode": "InvalidInstanceStatus",
                "Message": f"Instance {h100} is DeepHealthCheckInProgress, a state that does not allow {what}.",
            },
        ],
    }
    (again,) = do(ClusterName="prod", NodeIds=[system])["Failed"]
    assert again["ErrorCode"] == "InstanceIdInUse"


@pytest.mark.parametrize("operation", OPERATIONS)
def test_logical_ids_are_for_continuous_clusters(world: Any, refusal: Any, operation: str) -> None:
    world.make_hyperpod(NodeProvisioningMode=None)
    (node,) = nodes(world)
    do = getattr(world.client("sagemaker"), operation)
    assert refusal(do, ClusterName="prod", NodeLogicalIds=[node["NodeLogicalId"]]) == (
        "ValidationException",
        (
            "NodeLogicalIds is only supported with NodeProvisioningMode Continuous, which cluster prod does not have;"
            " use NodeIds."
        ),
    )
    assert refusal(do, ClusterName="prod") == (
        "ValidationException",
        "Either NodeIds or NodeLogicalIds must be provided.",
    )


@pytest.mark.parametrize("operation", OPERATIONS)
def test_logical_ids_are_answered_apart(world: Any, operation: str) -> None:
    world.make_hyperpod()
    (node,) = nodes(world)
    answer = getattr(world.client("sagemaker"), operation)(
        ClusterName="prod", NodeLogicalIds=[node["NodeLogicalId"], "gone"]
    )
    assert answer["SuccessfulNodeLogicalIds"] == [node["NodeLogicalId"]]
    assert [(each["NodeLogicalId"], each["ErrorCode"]) for each in answer["FailedNodeLogicalIds"]] == [
        ("gone", "InstanceIdNotFound")
    ]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_request_has_25_nodes_at_most(world: Any, refusal: Any, operation: str) -> None:
    world.make_hyperpod()
    do = getattr(world.client("sagemaker"), operation)
    named = [f"i-{each:017x}" for each in range(26)]
    assert refusal(do, ClusterName="prod", NodeIds=named)[0] == "ValidationException"
    assert len(do(ClusterName="prod", NodeIds=named[:25])["Failed"]) == 25


def test_checks_run_on_named_nodes_or_whole_groups(world: Any, refusal: Any) -> None:
    world.make_hyperpod(world.group("h100", "ml.p5.48xlarge", 2), world.group())
    start = world.client("sagemaker").start_cluster_health_check

    def checked(group: str, *ids: str) -> dict[str, Any]:
        named = {"InstanceIds": list(ids)} if ids else {}
        row = {"InstanceGroupName": group, "DeepHealthChecks": ["InstanceStress"], **named}
        return {"ClusterName": "prod", "DeepHealthCheckConfigurations": [row]}

    first = nodes(world)[0]["InstanceId"]
    assert start(**checked("h100", first)) == {
        "ClusterArn": world.client("sagemaker").describe_cluster(ClusterName="prod")["ClusterArn"]
    }
    assert states(world) == ["DeepHealthCheckInProgress", "Running", "Running"]
    world.clock.sleep(HEALTH_CHECK_SECONDS)
    start(**checked("h100"))
    assert states(world) == ["DeepHealthCheckInProgress", "DeepHealthCheckInProgress", "Running"]
    assert refusal(start, **checked("gone")) == (
        "ValidationException",
        "Instance group gone not found in cluster prod.",
    )
    assert refusal(start, **checked("system")) == (
        "ValidationException",
        "Instance group 'system': deep health checks are not supported for ml.m5.2xlarge.",
    )
    assert refusal(start, **checked("h100", UNKNOWN)) == (
        "ValidationException",
        f"Instances not found in instance group h100: {UNKNOWN}.",
    )
