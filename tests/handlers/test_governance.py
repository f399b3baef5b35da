"""The governance Lambda: one response to every event, and the matching state in SageMaker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hyperpod_cdk.handlers.governance import index

QUOTA = "Custom::ComputeQuota"
POLICY = "Custom::ClusterSchedulerConfig"
ARN = "arn:aws:sagemaker:us-east-1:111122223333:compute-quota/000000000001"


def test_create_answers_with_the_native_attributes(cloudformation: Any, quota: Any) -> None:
    answer = cloudformation.send("Create", QUOTA, quota())

    assert answer == {
        "Status": "SUCCESS",
        "Reason": "",
        "PhysicalResourceId": ARN,
        "StackId": "arn:aws:cloudformation:us-east-1:111122223333:stack/prod-platform/0a1b2c3d-guid",
        "RequestId": "request-1",
        "LogicalResourceId": "ResearchQuota",
        "Data": {
            "ComputeQuotaArn": ARN,
            "ComputeQuotaId": "000000000001",
            "ComputeQuotaVersion": 1,
            "Status": "Created",
        },
    }


def test_numbers_arrive_as_text_and_leave_as_numbers(cloudformation: Any, sagemaker: Any, quota: Any) -> None:
    properties = quota()
    properties["ComputeQuotaConfig"]["ComputeQuotaResources"][0] |= {
        "Accelerators": 8,
        "VCpu": 96.5,
        "MemoryInGiB": 1024,
    }

    cloudformation.send("Create", QUOTA, properties)

    sent = sagemaker.calls[0][1]
    assert sent["ComputeQuotaTarget"]["FairShareWeight"] == 100
    assert sent["ComputeQuotaConfig"]["ComputeQuotaResources"] == [
        {"InstanceType": "ml.p5.48xlarge", "Count": 2, "Accelerators": 8, "VCpu": 96.5, "MemoryInGiB": 1024.0}
    ]
    assert "ServiceToken" not in sent
    assert "ServiceTimeout" not in sent


def test_a_policy_is_served_by_the_same_code(cloudformation: Any, sagemaker: Any, policy: Any) -> None:
    answer = cloudformation.send("Create", POLICY, policy(weight=80))

    arn = answer["PhysicalResourceId"]
    assert arn == "arn:aws:sagemaker:us-east-1:111122223333:cluster-scheduler-config/000000000001"
    assert answer["Data"]["ClusterSchedulerConfigId"] == "000000000001"
    assert sagemaker.records[arn].request["SchedulerConfig"]["PriorityClasses"] == [{"Name": "training", "Weight": 80}]


def test_an_update_contains_the_current_version(cloudformation: Any, sagemaker: Any, quota: Any) -> None:
    cloudformation.send("Create", QUOTA, quota(count=2))
    cloudformation.send("Update", QUOTA, quota(count=4), PhysicalResourceId=ARN, OldResourceProperties=quota(count=2))
    answer = cloudformation.send(
        "Update", QUOTA, quota(count=8), PhysicalResourceId=ARN, OldResourceProperties=quota(count=4)
    )

    assert answer["Status"] == "SUCCESS"
    assert answer["PhysicalResourceId"] == ARN
    assert answer["Data"]["ComputeQuotaVersion"] == 3
    updates = [request for operation, request in sagemaker.calls if operation == "UpdateComputeQuota"]
    assert [update["TargetVersion"] for update in updates] == [1, 2]
    assert not {"Name", "ClusterArn", "Tags"} & updates[0].keys()


@pytest.mark.parametrize(
    "changed",
    [
        {"name": "prod-other"},
        {"name": "prod-vision", "team": "vision"},
        {
            "name": "prod-research",
            "ClusterArn": "arn:aws:sagemaker:us-east-1:111122223333:cluster/zzzzzz012345",
        },
    ],
    ids=["name", "team", "cluster"],
)
def test_what_cannot_change_in_place_is_replaced(
    cloudformation: Any, sagemaker: Any, quota: Any, changed: dict[str, str]
) -> None:
    cloudformation.send("Create", QUOTA, quota())

    answer = cloudformation.send(
        "Update", QUOTA, quota(**changed), PhysicalResourceId=ARN, OldResourceProperties=quota()
    )

    assert answer["Status"] == "SUCCESS"
    assert answer["PhysicalResourceId"] != ARN
    assert len(sagemaker.live("ComputeQuota")) == 2, "CloudFormation deletes the old one afterwards"


def test_another_team_under_the_same_name_is_refused_in_words(cloudformation: Any, quota: Any) -> None:
    cloudformation.send("Create", QUOTA, quota())

    answer = cloudformation.send(
        "Update", QUOTA, quota(team="vision"), PhysicalResourceId=ARN, OldResourceProperties=quota()
    )

    assert answer["Status"] == "FAILED"
    assert answer["PhysicalResourceId"] == ARN
    assert answer["Reason"] == (
        "the compute quota prod-research cannot go to another team under its name; change the name as well"
    )


def test_a_rolled_back_replacement_takes_the_old_one_up_again(cloudformation: Any, sagemaker: Any, quota: Any) -> None:
    cloudformation.send("Create", QUOTA, quota(count=2))
    new = quota(name="prod-other")
    replaced = cloudformation.send("Update", QUOTA, new, PhysicalResourceId=ARN, OldResourceProperties=quota())

    answer = cloudformation.send(
        "Update",
        QUOTA,
        quota(count=2),
        PhysicalResourceId=replaced["PhysicalResourceId"],
        OldResourceProperties=new,
    )

    assert answer["Status"] == "SUCCESS"
    assert answer["PhysicalResourceId"] == ARN
    assert len(sagemaker.live("ComputeQuota")) == 2


def test_a_repeated_create_takes_up_what_the_first_one_made(cloudformation: Any, sagemaker: Any, quota: Any) -> None:
    first = cloudformation.send("Create", QUOTA, quota())
    second = cloudformation.send("Create", QUOTA, quota(count=3))

    assert second["PhysicalResourceId"] == first["PhysicalResourceId"]
    (record,) = sagemaker.live("ComputeQuota")
    assert record.request["ComputeQuotaConfig"]["ComputeQuotaResources"][0]["Count"] == 3


def test_a_quota_of_others_is_not_changed(cloudformation: Any, sagemaker: Any, quota: Any) -> None:
    cloudformation.send("Create", QUOTA, quota(), LogicalResourceId="Foreign")

    answer = cloudformation.send("Create", QUOTA, quota(count=9))

    assert answer["Status"] == "FAILED"
    assert answer["Reason"] == (
        f"a compute quota named prod-research exists on this cluster and is not this stack's ({ARN}); "
        "delete it or choose another name"
    )
    assert answer["PhysicalResourceId"] == "ResearchQuota-0a1b2c3d-guid"
    (record,) = sagemaker.live("ComputeQuota")
    assert record.request["ComputeQuotaConfig"]["ComputeQuotaResources"][0]["Count"] == 2
    assert cloudformation.send("Delete", QUOTA, quota(), PhysicalResourceId=answer["PhysicalResourceId"])["Status"] == (
        "SUCCESS"
    )
    assert len(sagemaker.live("ComputeQuota")) == 1


def test_a_name_that_only_contains_ours_is_no_match(cloudformation: Any, quota: Any) -> None:
    for name, logical_id in (
        ("prod-research-b", "B"),
        ("prod-research-c", "C"),
        ("prod-research", "Foreign"),
    ):
        cloudformation.send("Create", QUOTA, quota(name=name), LogicalResourceId=logical_id)

    answer = cloudformation.send("Create", QUOTA, quota())

    assert "compute-quota/000000000003" in answer["Reason"], "found on the third page"


def test_a_failed_create_is_deleted_and_made_again(cloudformation: Any, sagemaker: Any, quota: Any) -> None:
    sagemaker.faults = {"create": ["fail"]}

    answer = cloudformation.send("Create", QUOTA, quota())

    assert answer["Status"] == "SUCCESS"
    (record,) = sagemaker.live("ComputeQuota")
    assert record.arn == answer["PhysicalResourceId"]
    assert record.status == "Created"


def test_a_create_that_fails_twice_says_why_and_what_to_clean_up(
    cloudformation: Any, sagemaker: Any, quota: Any
) -> None:
    sagemaker.faults = {"create": ["fail", "fail"]}

    answer = cloudformation.send("Create", QUOTA, quota())

    assert answer["Status"] == "FAILED"
    assert answer["Reason"] == (
        "the compute quota prod-research could not be created: CreateFailed, the quota does not fit"
    )
    assert cloudformation.send("Delete", QUOTA, quota(), PhysicalResourceId=answer["PhysicalResourceId"])["Status"] == (
        "SUCCESS"
    )
    assert sagemaker.live("ComputeQuota") == []


def test_a_failed_update_is_tried_once_more(cloudformation: Any, sagemaker: Any, quota: Any) -> None:
    cloudformation.send("Create", QUOTA, quota())
    sagemaker.faults = {"update": ["fail"]}

    answer = cloudformation.send("Update", QUOTA, quota(count=4), PhysicalResourceId=ARN, OldResourceProperties=quota())

    assert answer["Status"] == "SUCCESS"
    assert sagemaker.records[ARN].request["ComputeQuotaConfig"]["ComputeQuotaResources"][0]["Count"] == 4


def test_an_update_that_fails_twice_keeps_the_physical_id(cloudformation: Any, sagemaker: Any, quota: Any) -> None:
    cloudformation.send("Create", QUOTA, quota())
    sagemaker.faults = {"update": ["fail", "fail"]}

    answer = cloudformation.send("Update", QUOTA, quota(count=4), PhysicalResourceId=ARN, OldResourceProperties=quota())

    assert answer["Status"] == "FAILED"
    assert answer["PhysicalResourceId"] == ARN
    assert answer["Reason"] == (
        "the compute quota prod-research could not be updated: UpdateFailed, the quota does not fit"
    )


def test_a_failed_replacement_leaves_nothing_behind(cloudformation: Any, sagemaker: Any, quota: Any) -> None:
    cloudformation.send("Create", QUOTA, quota())
    sagemaker.faults = {"create": ["fail", "fail"]}

    answer = cloudformation.send(
        "Update", QUOTA, quota(name="prod-other"), PhysicalResourceId=ARN, OldResourceProperties=quota()
    )

    assert answer["Status"] == "FAILED"
    assert answer["PhysicalResourceId"] == ARN
    assert [record.arn for record in sagemaker.live("ComputeQuota")] == [ARN]


def test_an_update_of_something_gone_makes_it_again(cloudformation: Any, sagemaker: Any, quota: Any) -> None:
    answer = cloudformation.send(
        "Update",
        QUOTA,
        quota(count=4),
        PhysicalResourceId=ARN.replace("1", "9"),
        OldResourceProperties=quota(),
    )

    assert answer["Status"] == "SUCCESS"
    assert answer["PhysicalResourceId"] == ARN
    assert len(sagemaker.live("ComputeQuota")) == 1


def test_an_update_waits_for_work_under_way(cloudformation: Any, sagemaker: Any, quota: Any) -> None:
    cloudformation.send("Create", QUOTA, quota())
    record = sagemaker.records[ARN]
    record.status, record.target, record.busy = "Updating", "Updated", 5

    answer = cloudformation.send("Update", QUOTA, quota(count=4), PhysicalResourceId=ARN, OldResourceProperties=quota())

    assert answer["Status"] == "SUCCESS"
    assert answer["Data"]["ComputeQuotaVersion"] == 2


def test_a_conflict_is_repeated_and_then_reported(cloudformation: Any, sagemaker: Any, quota: Any) -> None:
    sagemaker.faults = {"create": ["ConflictException"] * len(index.CONFLICT_PAUSES)}
    assert cloudformation.send("Create", QUOTA, quota())["Status"] == "SUCCESS"

    sagemaker.faults = {"create": ["ConflictException"] * (len(index.CONFLICT_PAUSES) + 1)}
    answer = cloudformation.send("Create", QUOTA, quota(name="prod-vision", team="vision"))
    assert answer["Status"] == "FAILED"
    assert "ConflictException" in answer["Reason"]


def test_another_error_is_reported_at_once(cloudformation: Any, sagemaker: Any, quota: Any) -> None:
    sagemaker.faults = {"create": ["ResourceLimitExceeded"]}

    answer = cloudformation.send("Create", QUOTA, quota())

    assert answer["Status"] == "FAILED"
    assert answer["Reason"] == (
        "An error occurred (ResourceLimitExceeded) when calling the CreateComputeQuota operation: "
        "ResourceLimitExceeded from the fake"
    )
    assert len(sagemaker.calls) == 1


def test_delete_waits_until_it_is_gone_and_may_be_repeated(cloudformation: Any, sagemaker: Any, quota: Any) -> None:
    cloudformation.send("Create", QUOTA, quota())

    assert cloudformation.send("Delete", QUOTA, quota(), PhysicalResourceId=ARN)["Status"] == "SUCCESS"
    assert sagemaker.live("ComputeQuota") == []
    assert cloudformation.send("Delete", QUOTA, quota(), PhysicalResourceId=ARN)["Status"] == "SUCCESS"


def test_a_failed_delete_is_tried_once_more(cloudformation: Any, sagemaker: Any, quota: Any) -> None:
    cloudformation.send("Create", QUOTA, quota())
    sagemaker.faults = {"delete": ["fail"]}
    assert cloudformation.send("Delete", QUOTA, quota(), PhysicalResourceId=ARN)["Status"] == "SUCCESS"

    answer = cloudformation.send("Create", QUOTA, quota())
    sagemaker.faults = {"delete": ["fail", "fail"]}
    answer = cloudformation.send("Delete", QUOTA, quota(), PhysicalResourceId=answer["PhysicalResourceId"])
    assert answer["Status"] == "FAILED"
    assert answer["Reason"] == (
        "the compute quota prod-research could not be deleted: DeleteFailed, the quota does not fit"
    )


def test_a_dropped_description_and_activation_state_go_back_to_the_defaults(
    cloudformation: Any, sagemaker: Any, quota: Any
) -> None:
    old = quota(Description="for the paper", ActivationState="Disabled")
    cloudformation.send("Create", QUOTA, old)

    cloudformation.send("Update", QUOTA, quota(), PhysicalResourceId=ARN, OldResourceProperties=old)

    request = sagemaker.records[ARN].request
    assert (request["Description"], request["ActivationState"]) == ("", "Enabled")


def test_partitions_limits_and_descriptions_reach_the_api(cloudformation: Any, sagemaker: Any, quota: Any) -> None:
    properties = quota(Description="for the paper", ActivationState="Disabled")
    config = properties["ComputeQuotaConfig"]
    partition = {"Type": "mig-1g.10gb", "Count": 14}
    config["ComputeQuotaResources"] = [{"InstanceType": "ml.p5.48xlarge", "AcceleratorPartition": partition}]
    config["ResourceSharingConfig"]["AbsoluteBorrowLimits"] = [{"InstanceType": "ml.p5.48xlarge", "VCpu": 2.5}]

    assert cloudformation.send("Create", QUOTA, properties)["Status"] == "SUCCESS"

    sent = sagemaker.calls[0][1]
    assert (sent["Description"], sent["ActivationState"]) == ("for the paper", "Disabled")
    assert sent["ComputeQuotaConfig"]["ComputeQuotaResources"][0]["AcceleratorPartition"] == partition
    assert sent["ComputeQuotaConfig"]["ResourceSharingConfig"] == {
        "Strategy": "LendAndBorrow",
        "BorrowLimit": 50,
        "AbsoluteBorrowLimits": [{"InstanceType": "ml.p5.48xlarge", "VCpu": 2.5}],
    }


def test_dropped_borrow_limits_go_back_to_none(cloudformation: Any, sagemaker: Any, quota: Any) -> None:
    old = quota()
    old["ComputeQuotaConfig"]["ResourceSharingConfig"]["AbsoluteBorrowLimits"] = [
        {"InstanceType": "ml.p5.48xlarge", "Count": 1}
    ]
    cloudformation.send("Create", QUOTA, old)

    cloudformation.send("Update", QUOTA, quota(), PhysicalResourceId=ARN, OldResourceProperties=old)

    sharing = sagemaker.records[ARN].request["ComputeQuotaConfig"]["ResourceSharingConfig"]
    assert sharing == {"Strategy": "LendAndBorrow", "BorrowLimit": 50, "AbsoluteBorrowLimits": []}


def test_dropped_idle_resource_sharing_goes_back_to_disabled(cloudformation: Any, sagemaker: Any, policy: Any) -> None:
    old = policy()
    old["SchedulerConfig"]["IdleResourceSharing"] = "Enabled"
    arn = cloudformation.send("Create", POLICY, old)["PhysicalResourceId"]

    cloudformation.send("Update", POLICY, policy(), PhysicalResourceId=arn, OldResourceProperties=old)

    assert sagemaker.records[arn].request["SchedulerConfig"]["IdleResourceSharing"] == "Disabled"


def test_a_section_that_is_gone_as_a_whole_is_left_out() -> None:
    resets = {"Config": {"Limits": []}, "Description": ""}
    old = {"Config": {"Limits": [1]}, "Description": "a"}
    assert index.with_resets(resets, old, {}) == {"Description": ""}
    assert index.with_resets(resets, {}, {"Config": {}}) == {"Config": {}}
    assert index.with_resets(resets, old, {"Config": {"Other": "b"}}) == {
        "Config": {"Other": "b", "Limits": []},
        "Description": "",
    }


def test_a_failed_policy_says_which_part_failed(cloudformation: Any, sagemaker: Any, policy: Any) -> None:
    sagemaker.faults = {"create": ["fail", "fail"]}

    assert cloudformation.send("Create", POLICY, policy())["Reason"] == (
        "the cluster policy prod could not be created: CreateFailed (PriorityClasses CreateFailed), the quota does not"
        " fit"
    )


def test_tags_follow_and_the_owner_tag_stays(cloudformation: Any, sagemaker: Any, quota: Any) -> None:
    old = quota(Tags=[{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "1"}])
    new = quota(Tags=[{"Key": "b", "Value": "2"}, {"Key": "c", "Value": "1"}])
    cloudformation.send("Create", QUOTA, old)

    cloudformation.send("Update", QUOTA, new, PhysicalResourceId=ARN, OldResourceProperties=old)

    assert sagemaker.tags[ARN] == {"b": "2", "c": "1", index.OWNER_TAG: "0a1b2c3d-guid/ResearchQuota"}


def test_waiting_ends_in_time_to_answer(cloudformation: Any, sagemaker: Any, quota: Any) -> None:
    sagemaker.busy = 10_000

    answer = cloudformation.send("Create", QUOTA, quota())

    assert answer["Status"] == "FAILED"
    assert answer["PhysicalResourceId"] == ARN, "CloudFormation can delete it"
    assert answer["Reason"] == (f"Lambda ran out of time: {ARN} is still Creating; deploy again once it has settled")


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ({"ResourceType": "Custom::Other"}, "KeyError: 'Custom::Other'"),
        ({"RequestType": "Rename"}, "RequestType: must be Create, Update or Delete, got 'Rename'"),
        (
            {"ResourceProperties": {"Name": "x", "ClusterArn": "y", "Color": "red"}},
            "Color: the SDK of this Lambda runtime does not know it in CreateComputeQuotaRequest",
        ),
    ],
    ids=["type", "request", "property"],
)
def test_its_own_errors_are_answered_too(cloudformation: Any, quota: Any, event: dict[str, Any], reason: str) -> None:
    answer = cloudformation.send("Create", QUOTA, quota(), **event)

    assert (answer["Status"], answer["Reason"]) == ("FAILED", reason)


def test_a_client_that_cannot_be_made_is_answered(quota: Any, cloudformation: Any) -> None:
    class NoClient:
        def __getattr__(self, name: str) -> Any:
            raise RuntimeError("no credentials")

    cloudformation.sagemaker = NoClient()
    assert cloudformation.send("Create", QUOTA, quota())["Reason"] == "RuntimeError: no credentials"


FAULTS = st.lists(
    st.sampled_from(["fail", "", "ConflictException", "ThrottlingException", "ResourceNotFound"]), max_size=3
)
STEP = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["prod-a", "prod-b"]),
        "count": st.integers(0, 4),
        "faults": st.dictionaries(st.sampled_from(["create", "describe", "update", "delete"]), FAULTS, max_size=2),
        "busy": st.sampled_from([0, 1, 4, 10_000]),
        "gone": st.booleans(),
    }
)


@given(steps=st.lists(STEP, min_size=1, max_size=5))
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_any_sequence_of_events_gets_one_answer_each_and_a_state_that_fits(
    steps: list[dict[str, Any]],
    sagemaker_model: Any,
    quota: Callable[..., dict[str, Any]],
    request: pytest.FixtureRequest,
) -> None:
    """Drive a resource as CloudFormation does: create, update, clean up what was replaced, delete."""
    conftest = request.config.pluginmanager.get_plugin(str(request.path.parent / "conftest.py"))
    assert conftest is not None
    sagemaker = conftest.FakeSageMaker(sagemaker_model)
    cloudformation = conftest.CloudFormation(sagemaker)
    physical_id: str = ""
    properties: dict[str, Any] = {}
    for step in steps:
        sagemaker.busy = step["busy"]
        if step["gone"]:
            sagemaker.records.clear()
        sagemaker.faults = {verb: list(faults) for verb, faults in step["faults"].items()}
        new = quota(name=step["name"], team=step["name"].removeprefix("prod-"), count=step["count"])
        if physical_id:
            answer = cloudformation.send(
                "Update", QUOTA, new, PhysicalResourceId=physical_id, OldResourceProperties=properties
            )
        else:
            answer = cloudformation.send("Create", QUOTA, new)
        sagemaker.faults, sagemaker.busy = {}, 1
        for record in sagemaker.records.values():
            record.busy = min(record.busy, 1)
        if answer["Status"] == "FAILED":
            if not physical_id:
                cloudformation.send("Delete", QUOTA, new, PhysicalResourceId=answer["PhysicalResourceId"])
            continue
        if physical_id and answer["PhysicalResourceId"] != physical_id:
            cloudformation.send("Delete", QUOTA, properties, PhysicalResourceId=physical_id)
        physical_id, properties = answer["PhysicalResourceId"], new
        record = sagemaker.records[physical_id]
        assert record.status in index.READY
        assert record.request["Name"] == step["name"]
        assert record.request["ComputeQuotaConfig"]["ComputeQuotaResources"][0]["Count"] == step["count"]
    if physical_id:
        assert cloudformation.send("Delete", QUOTA, properties, PhysicalResourceId=physical_id)["Status"] == "SUCCESS"
        assert physical_id not in sagemaker.records
