"""HyperPod clusters as the API shows them over time."""

from __future__ import annotations

from typing import Any

import pytest

from hyperpod_cdk_rehearsal.embedded.published import instance_types
from hyperpod_cdk_rehearsal.embedded.services import nodes as node_times
from hyperpod_cdk_rehearsal.embedded.services import sagemaker as service

NETWORK_FAILURE = "Instance bootstrap failed likely because of customer network misconfiguration."


def describe(world: Any) -> dict[str, Any]:
    found: dict[str, Any] = world.client("sagemaker").describe_cluster(ClusterName="prod")
    return found


def nodes(world: Any, **filters: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = world.client("sagemaker").list_cluster_nodes(
        ClusterName="prod", IncludeNodeLogicalIds=True, **filters
    )["ClusterNodeSummaries"]
    return found


def states(world: Any) -> list[str]:
    return [node["InstanceStatus"]["Status"] for node in nodes(world)]


def counts(world: Any, name: str) -> tuple[int, int, int | None]:
    """Return a group's current count, target and minimum."""
    (group,) = [each for each in describe(world)["InstanceGroups"] if each["InstanceGroupName"] == name]
    return group["CurrentCount"], group["TargetCount"], group.get("MinCount")


def errors(world: Any) -> list[dict[str, Any]]:
    """Every error event so far with what it says of its subject, the oldest first."""
    sagemaker = world.client("sagemaker")
    events = sagemaker.list_cluster_events(ClusterName="prod", SortOrder="Ascending")["Events"]
    return [
        sagemaker.describe_cluster_event(ClusterName="prod", EventId=event["EventId"])["EventDetails"]
        for event in events
        if event["EventLevel"] == "Error"
    ]


def test_states_follow_the_clock_not_the_number_of_calls(world: Any) -> None:
    world.make_eks()
    world.client("sagemaker").create_cluster(**world.hyperpod_request())
    assert [describe(world)["ClusterStatus"] for _ in range(5)] == ["Creating"] * 5
    world.clock.sleep(service.CREATE_SECONDS)
    assert (describe(world)["ClusterStatus"], states(world)) == ("InService", ["Pending"])
    world.clock.sleep(node_times.FIRST_NODE_SECONDS)
    assert states(world) == ["Running"]


def test_nodes_come_before_a_cluster_that_provisions_all_or_nothing(world: Any) -> None:
    world.make_eks()
    world.client("sagemaker").create_cluster(**world.hyperpod_request(NodeProvisioningMode=None))
    world.clock.sleep(node_times.NODE_SECONDS)
    assert (describe(world)["ClusterStatus"], states(world)) == ("Creating", ["Running"])


def test_nodes_come_one_by_one(world: Any) -> None:
    world.make_eks()
    world.client("sagemaker").create_cluster(**world.hyperpod_request(world.group(count=3)))
    world.clock.sleep(service.CREATE_SECONDS + node_times.FIRST_NODE_SECONDS)
    assert states(world) == ["Running", "Pending", "Pending"]
    world.clock.sleep(node_times.NEXT_NODE_SECONDS)
    assert states(world) == ["Running", "Running", "Pending"]


def test_deep_health_checks_come_before_running_and_bar_updates(world: Any, refusal: Any) -> None:
    world.make_eks()
    group = world.group("h100", "ml.p5.48xlarge", 2, OnStartDeepHealthChecks=["InstanceStress"])
    world.client("sagemaker").create_cluster(**world.hyperpod_request(group))
    assert refusal(world.client("sagemaker").update_cluster, ClusterName="prod", InstanceGroups=[group]) == (
        "ConflictException",
        "Cluster prod cannot be updated while it is Creating.",
    )
    world.clock.sleep(service.CREATE_SECONDS + node_times.FIRST_NODE_SECONDS + node_times.NEXT_NODE_SECONDS)
    assert states(world) == ["DeepHealthCheckInProgress"] * 2
    assert refusal(world.client("sagemaker").update_cluster, ClusterName="prod", InstanceGroups=[group]) == (
        "ConflictException",
        "Cluster prod cannot be updated while deep health checks run on 2 of its instances.",
    )
    world.clock.sleep(node_times.HEALTH_CHECK_SECONDS)
    assert states(world) == ["Running"] * 2


def test_an_update_waits_for_deep_health_checks_of_new_nodes(world: Any, refusal: Any) -> None:
    group = world.group("h100", "ml.p5.48xlarge", 1, OnStartDeepHealthChecks=["InstanceStress"])
    world.make_hyperpod(group)
    sagemaker = world.client("sagemaker")
    sagemaker.update_cluster(ClusterName="prod", InstanceGroups=[{**group, "InstanceCount": 2}])
    world.clock.sleep(service.UPDATE_SECONDS + node_times.FIRST_NODE_SECONDS)
    assert refusal(sagemaker.update_cluster, ClusterName="prod", InstanceGroups=[group]) == (
        "ConflictException",
        "Cluster prod cannot be updated while deep health checks run on 1 of its instances.",
    )


def test_a_minimum_that_is_not_reached_in_three_hours_takes_a_new_group_back_to_nothing(world: Any) -> None:
    world.make_eks()
    world.account_file(nodes={"gpu": {"never": 1}})
    group = world.group("gpu", "ml.g5.12xlarge", 2, MinInstanceCount=2)
    world.client("sagemaker").create_cluster(**world.hyperpod_request(world.group(), group))
    world.clock.sleep(node_times.MINIMUM_SECONDS - 1)
    assert counts(world, "gpu") == (1, 2, 2)
    world.clock.sleep(1)
    assert counts(world, "gpu") == (0, 0, 0)
    assert counts(world, "system") == (1, 1, None)
    assert errors(world)[-1]["Description"] == (
        "Instance group gpu did not reach its minimum of 2 instances in time and was rolled back to 0 instances."
    )


def test_a_minimum_of_a_group_that_stands_goes_back_to_what_it_was_and_its_clock_begins_with_it(world: Any) -> None:
    world.make_eks()
    group = world.group("gpu", "ml.g5.12xlarge", 1, MinInstanceCount=1)
    world.client("sagemaker").create_cluster(**world.hyperpod_request(group))
    world.clock.sleep(node_times.MINIMUM_SECONDS * 2)
    assert counts(world, "gpu") == (1, 1, 1)
    world.account_file(nodes={"gpu": {"never": "all"}})
    grown = {**group, "InstanceCount": 3, "MinInstanceCount": 3}
    world.client("sagemaker").update_cluster(ClusterName="prod", InstanceGroups=[grown])
    world.clock.sleep(node_times.MINIMUM_SECONDS - 1)
    assert counts(world, "gpu")[1:] == (3, 3)
    world.client("sagemaker").update_cluster(ClusterName="prod", InstanceGroups=[{**grown, "MinInstanceCount": 2}])
    world.clock.sleep(node_times.MINIMUM_SECONDS - 1)
    assert counts(world, "gpu")[1:] == (3, 2)
    world.clock.sleep(1)
    assert counts(world, "gpu") == (1, 1, 1)


def test_node_ids_are_the_same_in_every_rehearsal(world: Any) -> None:
    world.make_hyperpod(world.group(count=2))
    first, second = nodes(world)
    assert (first["InstanceId"], first["NodeLogicalId"]) == ("i-8f3c7b2f0a8fd7690", "system-1e291a54")
    assert second["InstanceId"] != first["InstanceId"]


def test_a_node_is_described_by_either_id(world: Any, refusal: Any) -> None:
    world.make_hyperpod()
    node = nodes(world)[0]
    describe_node = world.client("sagemaker").describe_cluster_node
    by_id = describe_node(ClusterName="prod", NodeId=node["InstanceId"])["NodeDetails"]
    assert by_id == describe_node(ClusterName="prod", NodeLogicalId=node["NodeLogicalId"])["NodeDetails"]
    assert (by_id["PrivatePrimaryIp"], by_id["PrivateDnsHostname"]) == ("10.0.0.4", "ip-10-0-0-4.ec2.internal")
    assert by_id["Placement"]["AvailabilityZoneId"] == "use1-az5"
    assert refusal(describe_node, ClusterName="prod", NodeId="i-00000000000000000") == (
        "ResourceNotFound",
        "Node i-00000000000000000 not found in cluster prod.",
    )


def test_nodes_are_filtered_and_paged(world: Any) -> None:
    world.make_hyperpod(world.group(count=3), world.group("gpu", "ml.g5.12xlarge", 1))
    assert [node["InstanceGroupName"] for node in nodes(world)] == ["gpu", "system", "system", "system"]
    assert [node["InstanceGroupName"] for node in nodes(world, InstanceGroupNameContains="gp")] == ["gpu"]
    page = world.client("sagemaker").list_cluster_nodes(ClusterName="prod", MaxResults=3)
    rest = world.client("sagemaker").list_cluster_nodes(ClusterName="prod", MaxResults=3, NextToken=page["NextToken"])
    assert (len(page["ClusterNodeSummaries"]), len(rest["ClusterNodeSummaries"])) == (3, 1)
    assert "NextToken" not in rest


def test_nodes_take_addresses_apart_from_each_other(world: Any) -> None:
    world.make_hyperpod(world.group("h100", "ml.p5.48xlarge", 3))
    described = [
        world.client("sagemaker").describe_cluster_node(ClusterName="prod", NodeId=node["InstanceId"])["NodeDetails"]
        for node in nodes(world)
    ]
    assert {node["PrivatePrimaryIp"] for node in described} == {"10.0.0.4", "10.0.0.85", "10.0.0.166"}


class TestUpdate:
    def test_groups_grow_shrink_come_and_go(self, world: Any) -> None:
        world.make_hyperpod(world.group(count=2), world.group("gpu", "ml.g5.12xlarge", 2))
        before = {node["InstanceId"] for node in nodes(world, InstanceGroupNameContains="system")}
        groups = [world.group(count=3), world.group("h100", "ml.p5.48xlarge", 1)]
        world.client("sagemaker").update_cluster(ClusterName="prod", InstanceGroups=groups)
        world.settle()
        found = {group["InstanceGroupName"]: group["CurrentCount"] for group in describe(world)["InstanceGroups"]}
        assert found == {"system": 3, "h100": 1}
        assert before < {node["InstanceId"] for node in nodes(world)}

    def test_shrinking_keeps_the_oldest(self, world: Any) -> None:
        world.make_hyperpod(world.group(count=3))
        oldest = nodes(world)[0]["InstanceId"]
        world.client("sagemaker").update_cluster(ClusterName="prod", InstanceGroups=[world.group(count=1)])
        world.settle()
        assert [node["InstanceId"] for node in nodes(world)] == [oldest]

    def test_a_group_can_be_named_for_deletion(self, world: Any) -> None:
        world.make_hyperpod(world.group(), world.group("gpu", "ml.g5.12xlarge", 2))
        world.client("sagemaker").update_cluster(ClusterName="prod", InstanceGroupsToDelete=["gpu"])
        world.settle()
        assert [group["InstanceGroupName"] for group in describe(world)["InstanceGroups"]] == ["system"]

    def test_threads_left_out_go_back_to_one(self, world: Any) -> None:
        world.make_hyperpod()
        group = world.group()
        del group["ThreadsPerCore"]
        world.client("sagemaker").update_cluster(ClusterName="prod", InstanceGroups=[group])
        world.settle()
        assert describe(world)["InstanceGroups"][0]["ThreadsPerCore"] == 1

    def test_cluster_settings_change_in_place(self, world: Any) -> None:
        world.make_hyperpod()
        tiered = {"Mode": "Enable", "InstanceMemoryAllocationPercentage": 20}
        world.client("sagemaker").update_cluster(
            ClusterName="prod", InstanceGroups=[world.group()], NodeRecovery="None", TieredStorageConfig=tiered
        )
        world.settle()
        assert (describe(world)["NodeRecovery"], describe(world)["TieredStorageConfig"]) == ("None", tiered)

    def test_labels_and_taints(self, world: Any) -> None:
        config = {"Labels": {"team": "research"}, "Taints": [{"Key": "gpu", "Value": "yes", "Effect": "NoSchedule"}]}
        world.make_hyperpod(world.group(KubernetesConfig=config))
        shown = describe(world)["InstanceGroups"][0]["KubernetesConfig"]
        assert shown == {
            "CurrentLabels": config["Labels"],
            "DesiredLabels": config["Labels"],
            "CurrentTaints": config["Taints"],
            "DesiredTaints": config["Taints"],
        }

    def test_a_launch_that_fails_rolls_back(self, world: Any) -> None:
        world.make_hyperpod(NodeProvisioningMode=None)
        table = world.route_tables["use1-az5"]
        world.client("ec2").delete_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0")
        world.client("sagemaker").update_cluster(ClusterName="prod", InstanceGroups=[world.group(count=2)])
        world.clock.sleep(service.UPDATE_SECONDS)
        assert describe(world)["ClusterStatus"] == "RollingBack"
        world.settle()
        cluster = describe(world)
        assert (cluster["ClusterStatus"], len(nodes(world))) == ("InService", 1)
        assert cluster["FailureMessage"].startswith(NETWORK_FAILURE)

    def test_the_next_good_update_clears_the_message(self, world: Any) -> None:
        self.test_a_launch_that_fails_rolls_back(world)
        world.client("sagemaker").update_cluster(ClusterName="prod", InstanceGroups=[world.group()])
        world.settle()
        assert "FailureMessage" not in describe(world)

    def test_a_failed_cluster_cannot_be_updated(self, world: Any, refusal: Any) -> None:
        table = world.route_tables["use1-az5"]
        world.client("ec2").delete_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0")
        world.failure_message(NodeProvisioningMode=None)
        assert refusal(
            world.client("sagemaker").update_cluster, ClusterName="prod", InstanceGroups=[world.group()]
        ) == (
            "ConflictException",
            "Cluster prod cannot be updated while it is Failed.",
        )


class TestSoftware:
    def test_a_named_group_is_updated(self, world: Any) -> None:
        world.make_hyperpod(world.group(), world.group("gpu", "ml.g5.12xlarge", 1))
        sagemaker = world.client("sagemaker")
        wanted = [{"InstanceGroupName": "gpu", "ImageReleaseVersion": "2.0.2"}]
        sagemaker.update_cluster_software(ClusterName="prod", InstanceGroups=wanted)
        assert describe(world)["ClusterStatus"] == "SystemUpdating"
        world.settle()
        found = {node["InstanceGroupName"]: node["CurrentImageReleaseVersion"] for node in nodes(world)}
        assert found == {"gpu": "2.0.2", "system": "1.0.0"}

        updated = {
            node["InstanceGroupName"]: node["LastSoftwareUpdateTime"] > node["LaunchTime"] for node in nodes(world)
        }
        assert updated == {"gpu": True, "system": False}

    @pytest.mark.parametrize(
        ("release", "is_refused"),
        [("3.0.0", True), ("2.0.1", True), ("2.1.0", False), ("1.1.0", False), ("9.9.9", False)],
    )
    def test_a_release_of_another_kubernetes_version_is_refused(
        self,
        world: Any,
        refusal: Any,
        release: str,
        is_refused: bool,  # noqa: FBT001 - table
    ) -> None:
        # the notes of August 2026 have 3.0.0 for 1.33, those of July 2.0.1 for 1.35; of 9.9.9 they know nothing
        world.make_hyperpod()
        update = world.client("sagemaker").update_cluster_software
        wanted = {
            "ClusterName": "prod",
            "InstanceGroups": [{"InstanceGroupName": "system", "ImageReleaseVersion": release}],
        }
        if not is_refused:
            update(**wanted)
            return
        assert refusal(update, **wanted) == (
            "ValidationException",
            f"Instance group 'system': ImageReleaseVersion {release} is not available for Kubernetes version 1.34.",
        )
        assert nodes(world)[0]["CurrentImageReleaseVersion"] == "1.0.0"

    def test_an_unknown_group_is_refused(self, world: Any, refusal: Any) -> None:
        world.make_hyperpod()
        wanted = [{"InstanceGroupName": "gpu"}]
        assert refusal(
            world.client("sagemaker").update_cluster_software, ClusterName="prod", InstanceGroups=wanted
        ) == (
            "ValidationException",
            "Instance groups not found in cluster prod: gpu.",
        )


def test_nodes_are_deleted_by_id(world: Any) -> None:
    world.make_hyperpod(world.group(count=2))
    first = nodes(world)[0]["InstanceId"]
    unknown = "i-00000000000000000"
    answer = world.client("sagemaker").batch_delete_cluster_nodes(ClusterName="prod", NodeIds=[first, unknown])
    assert answer == {
        "Successful": [first],
        "Failed": [
            {"Code": "NodeIdNotFound", "Message": f"Node {unknown} not found in cluster prod.", "NodeId": unknown}
        ],
    }
    group = describe(world)["InstanceGroups"][0]
    assert (group["CurrentCount"], group["TargetCount"]) == (1, 1)


class TestAccessEntries:
    def test_the_execution_role_joins_the_eks_cluster(self, world: Any) -> None:
        world.make_hyperpod()
        entry = world.client("eks").describe_access_entry(clusterName="prod-eks", principalArn=world.node_role_arn)
        assert entry["accessEntry"]["type"] == "HYPERPOD_LINUX"

    def test_it_leaves_with_the_cluster(self, world: Any) -> None:
        world.make_hyperpod()
        world.client("sagemaker").delete_cluster(ClusterName="prod")
        world.settle()
        assert world.client("eks").list_access_entries(clusterName="prod-eks")["accessEntries"] == []

    def test_an_entry_made_by_hand_stays(self, world: Any) -> None:
        world.make_eks()
        arguments = {"clusterName": "prod-eks", "principalArn": world.node_role_arn, "type": "HYPERPOD_LINUX"}
        world.client("eks").create_access_entry(**arguments)
        world.make_hyperpod()
        world.client("sagemaker").delete_cluster(ClusterName="prod")
        world.settle()
        assert world.client("eks").list_access_entries(clusterName="prod-eks")["accessEntries"] == [world.node_role_arn]


class TestEvents:
    def test_newest_first_and_filtered(self, world: Any) -> None:
        world.make_hyperpod()
        events = world.client("sagemaker").list_cluster_events(ClusterName="prod")["Events"]
        node = nodes(world)[0]["InstanceId"]
        assert [event["Description"] for event in events] == [
            "Cluster prod creation completed successfully",
            f"EC2 Instance {node} successfully provisioned in Cluster prod and InstanceGroup system",
        ]
        only = world.client("sagemaker").list_cluster_events(ClusterName="prod", ResourceType="Instance")["Events"]
        assert [event["InstanceId"] for event in only] == [node]

    def test_only_continuous_clusters_have_them(self, world: Any, refusal: Any) -> None:
        world.make_eks()
        request = world.hyperpod_request()
        del request["NodeProvisioningMode"]
        world.client("sagemaker").create_cluster(**request)
        assert refusal(world.client("sagemaker").list_cluster_events, ClusterName="prod") == (
            "ValidationException",
            "Cluster prod does not have NodeProvisioningMode Continuous; it has no events.",
        )


class TestNodesThatDoNotCome:
    """The cluster is in service whatever becomes of its nodes; HyperPod tries again with new instances."""

    def begin(self, world: Any, told: dict[str, Any], *, count: int = 1) -> None:
        world.account_file(nodes={"system": told})
        world.make_eks()
        world.client("sagemaker").create_cluster(**world.hyperpod_request(world.group(count=count)))
        world.clock.sleep(service.CREATE_SECONDS)
        assert describe(world)["ClusterStatus"] == "InService"

    def after_another_attempt(self, world: Any) -> list[str]:
        world.clock.sleep(node_times.FIRST_NODE_SECONDS + 2 * node_times.FAILURE_SECONDS)
        states(world)
        world.clock.sleep(node_times.FIRST_NODE_SECONDS)
        return states(world)

    def test_a_slow_one_comes_late(self, world: Any) -> None:
        self.begin(world, {"delay_seconds": 30})
        world.clock.sleep(node_times.FIRST_NODE_SECONDS + 29)
        assert states(world) == ["Pending"]
        world.clock.sleep(1)
        assert states(world) == ["Running"]

    def test_one_that_is_never_launched_has_a_logical_id_only(self, world: Any) -> None:
        self.begin(world, {"never": 1, "reason": "no power"}, count=2)
        assert self.after_another_attempt(world) == ["Pending", "Running"]
        (shown,) = world.client("sagemaker").list_cluster_nodes(ClusterName="prod")["ClusterNodeSummaries"]
        assert "NodeLogicalId" not in shown
        missing = nodes(world)[0]
        assert (missing["InstanceId"], "PrivateDnsHostname" in missing) == ("", False)
        first = errors(world)[0]
        assert "InstanceId" not in first
        assert first["EventDetails"]["EventMetadata"]["Instance"] == {
            "FailureMessage": "no power",
            "NodeLogicalId": missing["NodeLogicalId"],
        }
        assert describe(world)["InstanceGroups"][0]["CurrentCount"] == 1

    def test_one_that_fails_is_tried_again_with_a_new_instance(self, world: Any) -> None:
        self.begin(world, {"failing": 1, "message": "exit code 1"})
        first = nodes(world)[0]
        world.clock.sleep(node_times.FIRST_NODE_SECONDS + node_times.FAILURE_SECONDS)
        failed = nodes(world)[0]
        assert (failed["InstanceId"], failed["InstanceStatus"]) == (
            first["InstanceId"],
            {"Status": "Failure", "Message": "exit code 1"},
        )
        script, creation = errors(world)
        log_group = f"/aws/sagemaker/Clusters/prod/{describe(world)['ClusterArn'].rpartition('/')[2]}"
        assert script["Description"] == (
            f"Instance lifecycle script execution for EC2 Instance {first['InstanceId']} has Failed. To view lifecycle"
            f" script logs, visit log group {log_group}"
        )
        assert creation["Description"] == "Instance creation in Cluster prod and InstanceGroup system failed"
        assert script["EventDetails"]["EventMetadata"]["Instance"]["LcsExecutionState"] == "Failed"
        assert self.after_another_attempt(world) == ["Running"]
        second = nodes(world)[0]
        assert second["InstanceId"] != first["InstanceId"]
        assert second["NodeLogicalId"] == first["NodeLogicalId"]

    def test_what_stood_in_the_way_is_looked_at_anew(self, world: Any) -> None:
        world.client("s3").delete_object(Bucket=world.bucket, Key="abc/on_create.sh")
        self.begin(world, {})
        assert self.after_another_attempt(world) != ["Running"]
        world.client("s3").put_object(Bucket=world.bucket, Key="abc/on_create.sh", Body=b"#!/bin/bash\n")
        assert self.after_another_attempt(world) == ["Running"]

    def test_all_may_fail_for_ever(self, world: Any) -> None:
        self.begin(world, {"failing": "all", "failures": "always"}, count=2)
        for _ in range(5):
            assert "Running" not in self.after_another_attempt(world)

    def test_the_rehearsal_knows_why_each_is_missing_and_which_the_account_file_states(self, world: Any) -> None:
        world.account_file(
            nodes={"a": {"never": 1, "reason": "no power"}, "b": {"delay_seconds": 30}},
            capacity={"ml.g5.12xlarge": ["use1-az6"]},
            training_plans={
                "plans": [
                    {
                        "name": "april",
                        "instance_type": "ml.p5.48xlarge",
                        "instance_count": 2,
                        "availability_zone_id": "use1-az5",
                        "status": "Scheduled",
                    }
                ]
            },
        )
        plan = "arn:aws:sagemaker:us-east-1:123456789012:training-plan/april"
        world.make_eks()
        world.client("sagemaker").create_cluster(
            **world.hyperpod_request(
                world.group("a", count=2),
                world.group("b"),
                world.group("c", "ml.g5.12xlarge", 2),
                world.group("d", "ml.p5.48xlarge", 2, TrainingPlanArn=plan),
            )
        )
        world.clock.sleep(service.CREATE_SECONDS + node_times.FIRST_NODE_SECONDS + 2 * node_times.NEXT_NODE_SECONDS)
        found = [tuple(row.values()) for row in node_times.missing_nodes(world.context)]
        (*_, reason, is_failure) = found.pop(2)
        assert reason.endswith("'c' is in a zone where the account file gives it capacity.")
        assert is_failure
        assert found == [
            ("prod", "a", 1, "no power", False),
            ("prod", "b", 1, "not launched yet", False),
            ("prod", "d", 2, "the training plan april is Scheduled", False),
        ]

    def test_a_cluster_that_provisions_all_or_nothing_fails_with_them(self, world: Any) -> None:
        world.account_file(nodes={"system": {"never": 1, "reason": "no power"}})
        assert world.failure_message(world.group(count=2), NodeProvisioningMode=None) == "no power"


class TestDelete:
    def test_it_goes_through_deleting(self, world: Any, refusal: Any) -> None:
        world.make_hyperpod()
        world.client("sagemaker").delete_cluster(ClusterName="prod")
        assert describe(world)["ClusterStatus"] == "Deleting"
        assert nodes(world) == []
        world.settle()
        assert refusal(world.client("sagemaker").describe_cluster, ClusterName="prod") == (
            "ResourceNotFound",
            "Cluster with name prod not found.",
        )

    def test_not_while_it_is_created(self, world: Any, refusal: Any) -> None:
        world.make_eks()
        world.client("sagemaker").create_cluster(**world.hyperpod_request())
        assert refusal(world.client("sagemaker").delete_cluster, ClusterName="prod") == (
            "ConflictException",
            "Cluster prod cannot be deleted while it is Creating.",
        )

    def test_the_next_cluster_of_that_name_has_another_id(self, world: Any) -> None:
        first = world.make_hyperpod()
        world.client("sagemaker").delete_cluster(ClusterName=first)
        world.settle()
        assert world.make_hyperpod() != first


class TestList:
    def test_by_name_part_order_and_page(self, world: Any) -> None:
        world.make_hyperpod()
        sagemaker = world.client("sagemaker")
        assert [item["ClusterName"] for item in sagemaker.list_clusters()["ClusterSummaries"]] == ["prod"]
        assert sagemaker.list_clusters(NameContains="dev")["ClusterSummaries"] == []

    def test_by_training_plan(self, world: Any) -> None:
        world.make_hyperpod()
        arn = "arn:aws:sagemaker:us-east-1:123456789012:training-plan/h100"
        assert world.client("sagemaker").list_clusters(TrainingPlanArn=arn)["ClusterSummaries"] == []


class TestTags:
    def test_a_cluster_is_tagged(self, world: Any) -> None:
        arn = world.make_hyperpod()
        sagemaker = world.client("sagemaker")
        sagemaker.add_tags(ResourceArn=arn, Tags=[{"Key": "team", "Value": "ml"}])
        sagemaker.delete_tags(ResourceArn=arn, TagKeys=["SageMaker"])
        assert sagemaker.list_tags(ResourceArn=arn)["Tags"] == [{"Key": "team", "Value": "ml"}]

    def test_an_unknown_cluster_is_not(self, world: Any, refusal: Any) -> None:
        arn = "arn:aws:sagemaker:us-east-1:123456789012:cluster/abcdefabcdef"
        assert refusal(world.client("sagemaker").list_tags, ResourceArn=arn) == (
            "ResourceNotFound",
            f"Resource {arn} not found.",
        )


@pytest.mark.parametrize("types", [["ml.m5.2xlarge"], ["ml.g5.12xlarge", "ml.m5.2xlarge"]])
def test_a_flexible_group_takes_its_first_type(world: Any, types: list[str]) -> None:
    group = world.group(InstanceRequirements={"InstanceTypes": types})
    del group["InstanceType"]
    world.make_hyperpod(group)
    assert {node["InstanceType"] for node in nodes(world)} == {types[0]}
    shown = describe(world)["InstanceGroups"][0]["InstanceRequirements"]
    assert shown == {"CurrentInstanceTypes": types, "DesiredInstanceTypes": types}


class TestOperations:
    def summaries(self, world: Any, **filters: Any) -> list[tuple[str, str]]:
        found = world.client("sagemaker").list_cluster_operations(ClusterName="prod", **filters)
        return [(each["Type"], each["Status"]) for each in found["ClusterOperationSummaries"]]

    def test_each_request_that_scales_or_checks_is_one(self, world: Any) -> None:
        sagemaker = world.client("sagemaker")
        world.make_hyperpod(world.group("h100", "ml.p5.48xlarge", 1), world.group())
        assert self.summaries(world) == []
        sagemaker.batch_add_cluster_nodes(
            ClusterName="prod", NodesToAdd=[{"InstanceGroupName": "system", "IncrementTargetCountBy": 2}]
        )
        assert self.summaries(world) == [("Scaling", "InProgress")]
        world.settle()
        assert self.summaries(world) == [("Scaling", "Done")]
        groups = [world.group("h100", "ml.p5.48xlarge", 1), world.group(count=2)]
        # the second request scales nothing
        for _ in range(2):
            sagemaker.update_cluster(ClusterName="prod", InstanceGroups=groups)
            world.settle()
        assert self.summaries(world) == [("Scaling", "Done"), ("Scaling", "Superseded")]
        assert self.summaries(world, SortOrder="Ascending") == [("Scaling", "Superseded"), ("Scaling", "Done")]
        assert self.summaries(world, Status="Superseded") == [("Scaling", "Superseded")]
        assert self.summaries(world, MaxResults=1) == [("Scaling", "Done")]
        check = {"InstanceGroupName": "h100", "DeepHealthChecks": ["InstanceStress"]}
        sagemaker.start_cluster_health_check(ClusterName="prod", DeepHealthCheckConfigurations=[check])
        assert self.summaries(world, Type="DeepHealthCheck") == [("DeepHealthCheck", "InProgress")]
        world.clock.sleep(node_times.HEALTH_CHECK_SECONDS)
        assert self.summaries(world, Type="DeepHealthCheck") == [("DeepHealthCheck", "Done")]
        assert len(self.summaries(world, Type="Scaling")) == 2

    def test_it_shows_what_the_request_changed(self, world: Any, refusal: Any) -> None:
        sagemaker = world.client("sagemaker")
        world.make_hyperpod(world.group("workers", count=1), world.group())
        worker = nodes(world)[-1]["InstanceId"]
        sagemaker.batch_delete_cluster_nodes(ClusterName="prod", NodeIds=[worker])
        (summary,) = sagemaker.list_cluster_operations(ClusterName="prod")["ClusterOperationSummaries"]
        ask = {"ClusterName": "prod", "OperationId": summary["OperationId"]}
        found = sagemaker.describe_cluster_operation(**ask)
        assert found.pop("ScalingDetails") == [
            {
                "InstanceGroupName": "workers",
                "Status": "Done",
                "Original": {"CurrentCount": 1, "TargetCount": 1},
                "Desired": {"TargetCount": 0},
            }
        ]
        assert found == summary
        world.clock.sleep(14 * 24 * 60 * 60)
        assert self.summaries(world) == []
        assert refusal(sagemaker.describe_cluster_operation, **ask) == (
            "ResourceNotFound",
            f"Operation {summary['OperationId']} not found in cluster prod.",
        )


def test_a_type_without_a_source_is_named_and_not_judged(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instance_types, "described", lambda _type: None)
    world.make_eks()
    sagemaker = world.client("sagemaker")
    sagemaker.create_cluster(**world.hyperpod_request())
    events = sagemaker.list_cluster_events(ClusterName="prod")["Events"]
    (said,) = [each["Description"] for each in events if each["EventLevel"] == "Warn"]
    assert said == (
        "Rehearsal: neither moto nor a restated source describes ml.m5.2xlarge; each of its nodes takes one address, "
        "and nothing is checked that depends on its processors, accelerators or network interfaces."
    )
