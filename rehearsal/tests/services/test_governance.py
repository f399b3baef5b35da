"""Cluster scheduler configs and compute quotas."""

from __future__ import annotations

from typing import Any

import pytest

from hyperpod_cdk_rehearsal.embedded.services import kubernetes_store

GOVERNANCE = "amazon-sagemaker-hyperpod-taskgovernance"
PRIORITIES = {
    "PriorityClasses": [{"Name": "training", "Weight": 80}],
    "FairShare": "Enabled",
    "IdleResourceSharing": "Disabled",
}


@pytest.fixture
def governed(world: Any) -> Any:
    """A cluster with task governance; its ARN is `world.cluster_arn`."""
    world.cluster_arn = world.make_hyperpod(world.group(count=2))
    world.client("eks").create_addon(clusterName="prod-eks", addonName=GOVERNANCE)
    world.settle()
    return world


def policy(world: Any, **members: Any) -> dict[str, Any]:
    return {"Name": "prod", "ClusterArn": world.cluster_arn, "SchedulerConfig": PRIORITIES, **members}


def quota(world: Any, team: str = "research", count: int = 2, **members: Any) -> dict[str, Any]:
    config = {"ComputeQuotaResources": [{"InstanceType": "ml.m5.2xlarge", "Count": count}]}
    return {
        "Name": team,
        "ClusterArn": world.cluster_arn,
        "ComputeQuotaConfig": config,
        "ComputeQuotaTarget": {"TeamName": team, "FairShareWeight": 10},
        **members,
    }


class TestAddonComesFirst:
    @pytest.mark.parametrize("kind", ["scheduler", "quota"])
    def test_without_it(self, world: Any, refusal: Any, kind: str) -> None:
        world.cluster_arn = world.make_hyperpod()
        sagemaker = world.client("sagemaker")
        expected = (
            "ValidationException",
            (
                f"The EKS add-on {GOVERNANCE} of cluster prod-eks is not installed; task governance requires it to be "
                "ACTIVE."
            ),
        )
        if kind == "scheduler":
            assert refusal(sagemaker.create_cluster_scheduler_config, **policy(world)) == expected
        else:
            assert refusal(sagemaker.create_compute_quota, **quota(world)) == expected

    def test_before_it_is_active(self, world: Any, refusal: Any) -> None:
        world.cluster_arn = world.make_hyperpod()
        world.client("eks").create_addon(clusterName="prod-eks", addonName=GOVERNANCE)
        assert refusal(world.client("sagemaker").create_compute_quota, **quota(world)) == (
            "ValidationException",
            f"The EKS add-on {GOVERNANCE} of cluster prod-eks is CREATING; task governance requires it to be ACTIVE.",
        )


class TestSchedulerConfig:
    def test_states_and_versions(self, governed: Any, refusal: Any) -> None:
        sagemaker = governed.client("sagemaker")
        made = sagemaker.create_cluster_scheduler_config(**policy(governed))
        key = {"ClusterSchedulerConfigId": made["ClusterSchedulerConfigId"]}
        assert sagemaker.describe_cluster_scheduler_config(**key)["Status"] == "Creating"
        governed.settle()
        found = sagemaker.describe_cluster_scheduler_config(**key)
        assert (found["Status"], found["ClusterSchedulerConfigVersion"], found["SchedulerConfig"]) == (
            "Created",
            1,
            PRIORITIES,
        )
        wanted = {**PRIORITIES, "FairShare": "Disabled"}
        assert refusal(sagemaker.update_cluster_scheduler_config, **key, TargetVersion=2, SchedulerConfig=wanted) == (
            "ConflictException",
            (
                f"The target version 2 of cluster scheduler config {made['ClusterSchedulerConfigId']} is not its "
                "current "
                "version 1."
            ),
        )
        updated = sagemaker.update_cluster_scheduler_config(**key, TargetVersion=1, SchedulerConfig=wanted)
        assert updated["ClusterSchedulerConfigVersion"] == 2
        governed.settle()
        assert sagemaker.describe_cluster_scheduler_config(**key)["Status"] == "Updated"
        first = sagemaker.describe_cluster_scheduler_config(**key, ClusterSchedulerConfigVersion=1)
        assert first["SchedulerConfig"] == PRIORITIES

    def test_the_service_fills_in_what_is_left_out(self, governed: Any) -> None:
        sagemaker = governed.client("sagemaker")
        made = sagemaker.create_cluster_scheduler_config(**policy(governed, SchedulerConfig={}))
        found = sagemaker.describe_cluster_scheduler_config(ClusterSchedulerConfigId=made["ClusterSchedulerConfigId"])
        assert found["SchedulerConfig"] == {"FairShare": "Enabled", "IdleResourceSharing": "Disabled"}

    def test_not_while_one_is_under_way(self, governed: Any, refusal: Any) -> None:
        sagemaker = governed.client("sagemaker")
        made = sagemaker.create_cluster_scheduler_config(**policy(governed))["ClusterSchedulerConfigId"]
        assert refusal(sagemaker.update_cluster_scheduler_config, ClusterSchedulerConfigId=made, TargetVersion=1) == (
            "ConflictException",
            f"The cluster scheduler config {made} cannot be updated while it is Creating.",
        )

    def test_one_for_each_cluster(self, governed: Any, refusal: Any) -> None:
        sagemaker = governed.client("sagemaker")
        sagemaker.create_cluster_scheduler_config(**policy(governed))
        assert refusal(sagemaker.create_cluster_scheduler_config, **policy(governed, Name="second")) == (
            "ConflictException",
            f"Cluster {governed.cluster_arn} already has the cluster scheduler config prod.",
        )

    def test_deleted_and_listed(self, governed: Any, refusal: Any) -> None:
        sagemaker = governed.client("sagemaker")
        made = sagemaker.create_cluster_scheduler_config(**policy(governed))["ClusterSchedulerConfigId"]
        listed = sagemaker.list_cluster_scheduler_configs(ClusterArn=governed.cluster_arn)
        assert [item["Name"] for item in listed["ClusterSchedulerConfigSummaries"]] == ["prod"]
        sagemaker.delete_cluster_scheduler_config(ClusterSchedulerConfigId=made)
        governed.settle()
        assert sagemaker.list_cluster_scheduler_configs()["ClusterSchedulerConfigSummaries"] == []
        assert refusal(sagemaker.describe_cluster_scheduler_config, ClusterSchedulerConfigId=made) == (
            "ResourceNotFound",
            f"The cluster scheduler config {made} does not exist.",
        )

    @pytest.mark.parametrize("count", [10, 11])
    def test_ten_priority_classes(self, governed: Any, refusal: Any, count: int) -> None:
        classes = {"PriorityClasses": [{"Name": f"p{number}", "Weight": number} for number in range(count)]}
        create = governed.client("sagemaker").create_cluster_scheduler_config
        if count == 10:
            assert create(**policy(governed, SchedulerConfig=classes))["ClusterSchedulerConfigId"]
            return
        assert refusal(create, **policy(governed, SchedulerConfig=classes))[0] == "ValidationException"


class TestComputeQuota:
    def test_the_teams_namespace_appears(self, governed: Any) -> None:
        governed.client("sagemaker").create_compute_quota(**quota(governed))
        found = [
            (item["kind"], item["metadata"]["name"]) for item in kubernetes_store.objects(governed.context, "prod-eks")
        ]
        assert sorted(found) == [
            ("ClusterQueue", "hyperpod-ns-research-clusterqueue"),
            ("LocalQueue", "hyperpod-ns-research-localqueue"),
            ("Namespace", "hyperpod-ns-research"),
        ]

    def test_the_queues_go_with_it_and_the_namespace_stays(self, governed: Any) -> None:
        sagemaker = governed.client("sagemaker")
        made = sagemaker.create_compute_quota(**quota(governed))["ComputeQuotaId"]
        sagemaker.delete_compute_quota(ComputeQuotaId=made)
        found = [item["kind"] for item in kubernetes_store.objects(governed.context, "prod-eks")]
        assert found == ["Namespace"]

    def test_versions(self, governed: Any, refusal: Any) -> None:
        sagemaker = governed.client("sagemaker")
        made = sagemaker.create_compute_quota(**quota(governed))["ComputeQuotaId"]
        governed.settle()
        config = {"ComputeQuotaResources": [{"InstanceType": "ml.m5.2xlarge", "Count": 1}]}
        sagemaker.update_compute_quota(ComputeQuotaId=made, TargetVersion=1, ComputeQuotaConfig=config)
        governed.settle()
        found = sagemaker.describe_compute_quota(ComputeQuotaId=made)
        assert (found["Status"], found["ComputeQuotaVersion"], found["ComputeQuotaConfig"]) == ("Updated", 2, config)
        assert refusal(sagemaker.update_compute_quota, ComputeQuotaId=made, TargetVersion=1) == (
            "ConflictException",
            f"The target version 1 of compute quota {made} is not its current version 2.",
        )

    def test_the_team_does_not_change(self, governed: Any, refusal: Any) -> None:
        sagemaker = governed.client("sagemaker")
        made = sagemaker.create_compute_quota(**quota(governed))["ComputeQuotaId"]
        governed.settle()
        target = {"TeamName": "other"}
        assert refusal(
            sagemaker.update_compute_quota, ComputeQuotaId=made, TargetVersion=1, ComputeQuotaTarget=target
        ) == ("ValidationException", "The team of a compute quota cannot be changed.")

    def test_one_for_each_team(self, governed: Any, refusal: Any) -> None:
        sagemaker = governed.client("sagemaker")
        sagemaker.create_compute_quota(**quota(governed))
        assert refusal(sagemaker.create_compute_quota, **quota(governed, Name="again")) == (
            "ConflictException",
            f"Team research of cluster {governed.cluster_arn} already has the compute quota research.",
        )

    def test_the_service_fills_in_what_goes_with_accelerators(self, governed: Any) -> None:
        resources = [{"InstanceType": "ml.p5.48xlarge", "Accelerators": 4}]
        config = {"ComputeQuotaResources": resources}
        made = governed.client("sagemaker").create_compute_quota(**quota(governed, ComputeQuotaConfig=config))
        found = governed.client("sagemaker").describe_compute_quota(ComputeQuotaId=made["ComputeQuotaId"])
        assert found["ComputeQuotaConfig"]["ComputeQuotaResources"] == [
            {"InstanceType": "ml.p5.48xlarge", "Accelerators": 4, "VCpu": 96.0, "MemoryInGiB": 1024.0}
        ]

    @pytest.mark.parametrize(
        ("stated", "filled"),
        [
            ({"VCpu": 48.0}, {"Accelerators": 0, "MemoryInGiB": 512.0}),
            ({"MemoryInGiB": 512.0}, {"Accelerators": 0, "VCpu": 48.0}),
            ({"Accelerators": 4, "MemoryInGiB": 10.0}, {"VCpu": 96.0}),
            (
                {"AcceleratorPartition": {"Type": "mig-3g.40gb", "Count": 4}},
                {"VCpu": 48.0, "MemoryInGiB": 512.0},
            ),
        ],
        ids=["vCPU", "memory", "memory overrides", "partitions"],
    )
    def test_the_service_fills_in_by_ratio(self, governed: Any, stated: dict[str, Any], filled: dict[str, Any]) -> None:
        resource = {"InstanceType": "ml.p5.48xlarge", **stated}
        config = {"ComputeQuotaResources": [resource]}
        made = governed.client("sagemaker").create_compute_quota(**quota(governed, ComputeQuotaConfig=config))
        found = governed.client("sagemaker").describe_compute_quota(ComputeQuotaId=made["ComputeQuotaId"])
        assert found["ComputeQuotaConfig"]["ComputeQuotaResources"] == [{**resource, **filled}]
        assert found["ActivationState"] == "Enabled"

    @pytest.mark.parametrize(
        ("resource", "message"),
        [
            (
                {"InstanceType": "ml.p5.48xlarge", "Count": 1, "Accelerators": 2},
                "ml.p5.48xlarge: Count cannot be stated together with Accelerators.",
            ),
            (
                {"InstanceType": "ml.m5.2xlarge", "Accelerators": 1},
                "ml.m5.2xlarge: The instance type has no accelerators.",
            ),
            (
                {"InstanceType": "ml.p5.48xlarge", "AcceleratorPartition": {"Type": "mig-1g.5gb", "Count": 1}},
                "ml.p5.48xlarge: The accelerator partition type mig-1g.5gb is not supported for the instance type.",
            ),
        ],
        ids=["both", "no accelerators", "profile of another"],
    )
    @pytest.mark.parametrize("where", ["quota", "limit"])
    def test_amounts_that_make_no_sense(
        self, governed: Any, refusal: Any, where: str, resource: dict[str, Any], message: str
    ) -> None:
        config: dict[str, Any] = {"ComputeQuotaResources": [resource]}
        if where == "limit":
            config = {"ResourceSharingConfig": {"Strategy": "LendAndBorrow", "AbsoluteBorrowLimits": [resource]}}
        create = governed.client("sagemaker").create_compute_quota
        assert refusal(create, **quota(governed, ComputeQuotaConfig=config)) == ("ValidationException", message)

    def test_names_are_unique_on_one_cluster(self, governed: Any, refusal: Any) -> None:
        sagemaker = governed.client("sagemaker")
        sagemaker.create_compute_quota(**quota(governed, "a", Name="same"))
        assert refusal(sagemaker.create_compute_quota, **quota(governed, "b", Name="same")) == (
            "ConflictException",
            f"A compute quota with the name same already exists on cluster {governed.cluster_arn}.",
        )

    @pytest.mark.parametrize(("counts", "warned"), [((1, 1), False), ((2, 1), True)])
    def test_more_than_the_cluster_has_only_warns(self, governed: Any, counts: tuple[int, int], warned: bool) -> None:  # noqa: FBT001 - table
        for team, count in zip(("a", "b"), counts, strict=True):
            governed.client("sagemaker").create_compute_quota(**quota(governed, team, count))
        events = governed.client("sagemaker").list_cluster_events(ClusterName="prod")["Events"]
        warnings = [event["Description"] for event in events if event["EventLevel"] == "Warn"]
        assert warnings == (["Compute quotas promise 3 ml.m5.2xlarge, the cluster has 2."] if warned else [])

    def test_listed_with_what_they_give(self, governed: Any) -> None:
        governed.client("sagemaker").create_compute_quota(**quota(governed))
        found = governed.client("sagemaker").list_compute_quotas(NameContains="rese")["ComputeQuotaSummaries"]
        assert [item["ComputeQuotaTarget"]["TeamName"] for item in found] == ["research"]


def test_a_governed_cluster_is_not_deleted(governed: Any, refusal: Any) -> None:
    sagemaker = governed.client("sagemaker")
    config = sagemaker.create_cluster_scheduler_config(**policy(governed))["ClusterSchedulerConfigId"]
    team = sagemaker.create_compute_quota(**quota(governed))["ComputeQuotaId"]
    assert refusal(sagemaker.delete_cluster, ClusterName="prod") == (
        "ConflictException",
        (
            "Cluster prod cannot be deleted while task governance policies are attached to it: prod, research. Delete "
            "the cluster "
            "policy and the compute allocations first."
        ),
    )
    sagemaker.delete_cluster_scheduler_config(ClusterSchedulerConfigId=config)
    sagemaker.delete_compute_quota(ComputeQuotaId=team)
    governed.settle()
    sagemaker.delete_cluster(ClusterName="prod")


def test_policies_are_tagged(governed: Any) -> None:
    sagemaker = governed.client("sagemaker")
    made = sagemaker.create_compute_quota(**quota(governed, Tags=[{"Key": "a", "Value": "1"}]))["ComputeQuotaArn"]
    assert sagemaker.list_tags(ResourceArn=made)["Tags"] == [{"Key": "a", "Value": "1"}]
