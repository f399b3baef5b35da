"""Training plans as the API shows them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

PLAN = {"name": "h100", "instance_type": "ml.p5.48xlarge", "instance_count": 4, "availability_zone_id": "use1-az5"}
ARN = "arn:aws:sagemaker:us-east-1:123456789012:training-plan/h100"


def test_by_name_or_arn(world: Any, refusal: Any) -> None:
    world.account_file(training_plans={"plans": [PLAN]})
    describe = world.client("sagemaker").describe_training_plan
    plan = describe(TrainingPlanName="h100")
    assert plan == describe(TrainingPlanName=ARN)
    assert (plan["TrainingPlanArn"], plan["Status"], plan["TargetResources"]) == (ARN, "Active", ["hyperpod-cluster"])
    assert (plan["StartTime"], plan["EndTime"]) == (
        datetime(2026, 3, 31, 11, 30, tzinfo=UTC),
        datetime(2026, 4, 30, 11, 30, tzinfo=UTC),
    )
    capacity = plan["ReservedCapacitySummaries"][0]
    assert (capacity["AvailabilityZoneId"], capacity["AvailabilityZone"]) == ("use1-az5", "us-east-1f")
    assert refusal(describe, TrainingPlanName="h200") == ("ResourceNotFound", "Training plan h200 not found.")


def test_stated_times_are_kept(world: Any) -> None:
    times = {"start_time": "2026-06-01T11:30:00Z", "end_time": "2026-06-02T11:30:00Z", "status": "Scheduled"}
    world.account_file(training_plans={"plans": [{**PLAN, **times}]})
    plan = world.client("sagemaker").describe_training_plan(TrainingPlanName="h100")
    assert (plan["DurationHours"], plan["DurationMinutes"]) == (24, 0)


def test_instances_in_use(world: Any) -> None:
    world.account_file(training_plans={"plans": [PLAN]})
    world.make_hyperpod(world.group("h100", "ml.p5.48xlarge", 3, TrainingPlanArn=ARN))
    plan = world.client("sagemaker").describe_training_plan(TrainingPlanName="h100")
    assert (plan["TotalInstanceCount"], plan["InUseInstanceCount"], plan["AvailableInstanceCount"]) == (4, 3, 1)


def test_listed_by_status(world: Any) -> None:
    world.account_file(training_plans={"plans": [PLAN, {**PLAN, "name": "old", "status": "Expired"}]})
    list_plans = world.client("sagemaker").list_training_plans
    assert [plan["TrainingPlanName"] for plan in list_plans()["TrainingPlanSummaries"]] == ["h100", "old"]
    only = list_plans(Filters=[{"Name": "Status", "Value": "Expired"}])["TrainingPlanSummaries"]
    assert [plan["TrainingPlanName"] for plan in only] == ["old"]


def test_offerings_are_where_plans_or_capacity_are(world: Any) -> None:
    world.account_file(training_plans={"plans": [PLAN]}, capacity={"ml.p5en.48xlarge": ["use1-az4"]})
    search = world.client("sagemaker").search_training_plan_offerings
    for name, zone in (("ml.p5.48xlarge", "us-east-1f"), ("ml.p5en.48xlarge", "us-east-1d")):
        offering = search(InstanceType=name, InstanceCount=2, DurationHours=48)["TrainingPlanOfferings"][0]
        capacity = offering["ReservedCapacityOfferings"][0]
        assert (capacity["AvailabilityZone"], capacity["DurationHours"]) == (zone, 48)
    assert search(InstanceType="ml.p4d.24xlarge", InstanceCount=2, DurationHours=48)["TrainingPlanOfferings"] == []
    assert search(InstanceType="ml.p5.48xlarge", InstanceCount=65, DurationHours=48)["TrainingPlanOfferings"] == []
