"""Restricted instance groups in the embedded AWS: made, told, changed, refused."""

from __future__ import annotations

from typing import Any

import pytest

from hyperpod_cdk_rehearsal.embedded.resources.registry import ResourceRequest
from hyperpod_cdk_rehearsal.embedded.resources.sagemaker import ClusterHandler

SYSTEM = {"FSxLustreConfig": {"SizeInGiB": 9600, "PerUnitStorageThroughput": 250}}
SHARED = {"SharedEnvironmentConfig": {"FSxLustreDeletionPolicy": "Keep", **SYSTEM}}
TIB = "Maximum total FSx Lustre capacity in TiB across SageMaker HyperPod restricted instance groups"


@pytest.fixture
def restricted(world: Any) -> Any:
    """Makes a restricted group; the account's quotas hold two file systems of 9600 GiB."""
    quotas = world.context.account_file.document["quotas"]["sagemaker"]
    world.account_file(quotas={"sagemaker": {**quotas, TIB: 18.75}})

    def group(name: str = "nova", count: int = 2, **members: Any) -> dict[str, Any]:
        plain = world.group(name, "ml.p5.48xlarge", count, EnvironmentConfig=SYSTEM)
        del plain["LifeCycleConfig"]
        return {member: value for member, value in {**plain, **members}.items() if value is not None}

    return group


def described(world: Any) -> dict[str, Any]:
    found: dict[str, Any] = world.client("sagemaker").describe_cluster(ClusterName="prod")
    return found


def sizes(world: Any) -> dict[str, int]:
    cluster = described(world)
    groups = (*cluster["InstanceGroups"], *cluster.get("RestrictedInstanceGroups", ()))
    return {group["InstanceGroupName"]: group["CurrentCount"] for group in groups}


def refused(world: Any, refusal: Any, *groups: Any, **members: Any) -> tuple[str, str]:
    world.make_eks()
    request = world.hyperpod_request(RestrictedInstanceGroups=list(groups), **members)
    code, message = refusal(world.client("sagemaker").create_cluster, **request)
    return code, message


def test_no_key_for_their_volumes(world: Any, restricted: Any, refusal: Any) -> None:
    """Developer guide, smcluster-cmk: "Restricted instance groups don't support customer managed keys."""
    key = world.client("kms").create_key()["KeyMetadata"]["Arn"]
    world.allow("nodes", {key: ["kms:CreateGrant", "kms:DescribeKey"]}, "volumes")
    storage = [{"EbsVolumeConfig": {"VolumeSizeInGB": 100, "VolumeKmsKeyId": key}}]
    assert refused(world, refusal, restricted(InstanceStorageConfigs=storage)) == (
        "ValidationException",
        "Instance group 'nova': VolumeKmsKeyId is not supported for restricted instance groups.",
    )


def test_a_cluster_of_both_kinds(world: Any, restricted: Any) -> None:
    world.make_hyperpod(RestrictedInstanceGroups=[restricted()])

    cluster = described(world)
    (nova,) = cluster["RestrictedInstanceGroups"]
    assert [group["InstanceGroupName"] for group in cluster["InstanceGroups"]] == ["system"]
    assert nova == {
        "InstanceGroupName": "nova",
        "InstanceType": "ml.p5.48xlarge",
        "CurrentCount": 2,
        "TargetCount": 2,
        "ExecutionRole": world.node_role_arn,
        "ThreadsPerCore": 2,
        "Status": "InService",
        "EnvironmentConfig": SYSTEM,
    }
    nodes = world.client("sagemaker").list_cluster_nodes(ClusterName="prod")["ClusterNodeSummaries"]
    assert [node["InstanceGroupName"] for node in nodes] == ["nova", "nova", "system"]


def test_restricted_groups_alone(world: Any, restricted: Any) -> None:
    world.make_eks()
    request = world.hyperpod_request(RestrictedInstanceGroups=[restricted()])
    del request["InstanceGroups"]
    world.client("sagemaker").create_cluster(**request)
    world.settle()
    assert (described(world)["InstanceGroups"], sizes(world)) == ([], {"nova": 2})


def test_the_shared_environment(world: Any, restricted: Any) -> None:
    groups = [restricted(EnvironmentConfig=None)]
    world.make_hyperpod(RestrictedInstanceGroups=groups, RestrictedInstanceGroupsConfig=SHARED)
    assert described(world)["RestrictedInstanceGroupsConfig"] == {
        "SharedEnvironmentConfig": {
            "CurrentFSxLustreConfig": SYSTEM["FSxLustreConfig"],
            "DesiredFSxLustreConfig": SYSTEM["FSxLustreConfig"],
            "CurrentFSxLustreDeletionPolicy": "Keep",
            "DesiredFSxLustreDeletionPolicy": "Keep",
        }
    }


def test_an_update_leaves_the_list_that_it_does_not_hold(world: Any, restricted: Any) -> None:
    arn = world.make_hyperpod(RestrictedInstanceGroups=[restricted()])
    sagemaker = world.client("sagemaker")
    sagemaker.update_cluster(ClusterName=arn, RestrictedInstanceGroups=[restricted(count=3)])
    world.settle()
    assert sizes(world) == {"system": 1, "nova": 3}
    sagemaker.update_cluster(ClusterName=arn, InstanceGroups=[world.group(count=2)])
    world.settle()
    assert sizes(world) == {"system": 2, "nova": 3}


def test_the_last_group_goes_by_name(world: Any, restricted: Any) -> None:
    groups = [restricted(EnvironmentConfig=None)]
    arn = world.make_hyperpod(RestrictedInstanceGroups=groups, RestrictedInstanceGroupsConfig=SHARED)
    world.client("sagemaker").update_cluster(ClusterName=arn, InstanceGroupsToDelete=["nova"])
    world.settle()
    assert sizes(world) == {"system": 1}
    assert "RestrictedInstanceGroupsConfig" not in described(world)


def test_what_never_changes(world: Any, refusal: Any, restricted: Any) -> None:
    arn = world.make_hyperpod(RestrictedInstanceGroups=[restricted()])
    code, message = refusal(
        world.client("sagemaker").update_cluster,
        ClusterName=arn,
        RestrictedInstanceGroups=[restricted(InstanceType="ml.p4d.24xlarge")],
    )
    assert (code, message) == (
        "ValidationException",
        (
            "Instance group 'nova': InstanceType cannot be changed from ml.p5.48xlarge to ml.p4d.24xlarge. Create a new"
            " instance group instead."
        ),
    )


def test_one_name_for_two_groups(world: Any, refusal: Any, restricted: Any) -> None:
    assert refused(world, refusal, restricted("system")) == (
        "ValidationException",
        "Instance group names must be unique, got more than one of: system.",
    )


def test_without_a_file_system(world: Any, refusal: Any, restricted: Any) -> None:
    assert refused(world, refusal, restricted(EnvironmentConfig=None)) == (
        "ValidationException",
        (
            "Restricted instance group 'nova': EnvironmentConfig.FSxLustreConfig is required without a"
            " SharedEnvironmentConfig."
        ),
    )


def test_a_file_system_that_is_not_offered(world: Any, refusal: Any, restricted: Any) -> None:
    system = {"FSxLustreConfig": {"SizeInGiB": 3600, "PerUnitStorageThroughput": 250}}
    assert refused(world, refusal, restricted(EnvironmentConfig=system)) == (
        "ValidationException",
        (
            "Restricted instance group 'nova': FSxLustreConfig.SizeInGiB must be 1200 GiB, 2400 GiB or an increment of"
            " 2400 GiB, got 3600."
        ),
    )


def test_a_shared_environment_without_groups(world: Any, refusal: Any) -> None:
    world.make_eks()
    request = world.hyperpod_request(RestrictedInstanceGroupsConfig=SHARED)
    assert refusal(world.client("sagemaker").create_cluster, **request) == (
        "ValidationException",
        "RestrictedInstanceGroupsConfig requires RestrictedInstanceGroups.",
    )


def test_file_systems_count_against_their_quota(world: Any, refusal: Any, restricted: Any) -> None:
    code, message = refused(world, refusal, restricted("a"), restricted("b"), restricted("c"))
    assert code == "ResourceLimitExceeded"
    assert message.startswith(
        f"The account-level service limit '{TIB}' is 18.75 Terabytes, with current utilization of 0 Terabytes and a"
        " request delta of 28.125 Terabytes."
    )


def test_quotas_of_types_hold_restricted_nodes_too(world: Any, refusal: Any, restricted: Any) -> None:
    quotas = world.context.account_file.document["quotas"]["sagemaker"]
    world.account_file(quotas={"sagemaker": {**quotas, "ml.p5.48xlarge for cluster usage": 1}})
    code, message = refused(world, refusal, restricted())
    assert code == "ResourceLimitExceeded"
    assert "ml.p5.48xlarge for cluster usage" in message


def test_a_template_without_restricted_groups_any_more_deletes_them(world: Any, restricted: Any) -> None:
    groups = [restricted(EnvironmentConfig=None)]
    arn = world.make_hyperpod(RestrictedInstanceGroups=groups, RestrictedInstanceGroupsConfig=SHARED)
    before = world.hyperpod_request(RestrictedInstanceGroups=groups, RestrictedInstanceGroupsConfig=SHARED)
    after = {name: before[name] for name in before if not name.startswith("Restricted")}
    ClusterHandler().update(
        ResourceRequest(
            resource_type="AWS::SageMaker::Cluster",
            logical_id="Cluster",
            stack_name="prod-hyperpod",
            stack_id="",
            properties=after,
            previous=before,
            physical_id=arn,
            tags={},
            context=world.context,
        )
    )
    assert sizes(world) == {"system": 1}
