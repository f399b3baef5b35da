"""Training plans as the API shows them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

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


APRIL = [
    {"start_time": "2026-04-02T11:30:00Z", "end_time": "2026-04-05T11:30:00Z"},
    {"start_time": "2026-04-10T11:30:00Z", "end_time": "2026-04-12T11:30:00Z", "instance_count": 2},
]


def test_two_blocks(world: Any) -> None:
    world.account_file(training_plans={"plans": [{**PLAN, "status": "Scheduled", "blocks": APRIL}]})
    describe = world.client("sagemaker").describe_training_plan
    plan = describe(TrainingPlanName="h100")
    first, second = plan["ReservedCapacitySummaries"]
    assert (plan["StartTime"].day, plan["EndTime"].day, plan["DurationHours"]) == (2, 12, 120)
    assert [(each["TotalInstanceCount"], each["DurationHours"], each["Status"]) for each in (first, second)] == [
        (4, 72, "Scheduled"),
        (2, 48, "Scheduled"),
    ]
    assert first["ReservedCapacityArn"] != second["ReservedCapacityArn"]
    world.clock.sleep(5 * 24 * 3600)
    blocks = describe(TrainingPlanName="h100")["ReservedCapacitySummaries"]
    assert [each["Status"] for each in blocks] == ["Expired", "Scheduled"]
    world.clock.sleep(5 * 24 * 3600)
    blocks = describe(TrainingPlanName="h100")["ReservedCapacitySummaries"]
    assert [each["Status"] for each in blocks] == ["Expired", "Active"]


def test_unhealthy_and_unlisted_instances(world: Any) -> None:
    stated = {"unhealthy_count": 1, "in_use_by_others": 2, "status_message": "one instance is replaced"}
    world.account_file(training_plans={"plans": [{**PLAN, **stated}]})
    plan = world.client("sagemaker").describe_training_plan(TrainingPlanName="h100")
    counters = [plan[f"{name}InstanceCount"] for name in ("Total", "Available", "InUse", "Unhealthy")]
    assert (counters, plan["StatusMessage"]) == ([4, 1, 2, 1], "one instance is replaced")


def test_a_local_zone_has_only_a_name(world: Any) -> None:
    world.account_file(
        zones={"local": {"use1-dfw2-az1": {"name": "us-east-1-dfw-2a"}}},
        training_plans={"plans": [{**PLAN, "availability_zone_id": "use1-dfw2-az1"}]},
    )
    plan = world.client("sagemaker").describe_training_plan(TrainingPlanName="h100")
    (capacity,) = plan["ReservedCapacitySummaries"]
    assert (capacity["AvailabilityZone"], "AvailabilityZoneId" in capacity) == ("us-east-1-dfw-2a", False)


def offer(start: int, end: int, **changes: Any) -> dict[str, Any]:
    """Up to eight instances from one day of April to another."""
    block = {"start_time": f"2026-04-{start:02}T11:30:00Z", "end_time": f"2026-04-{end:02}T11:30:00Z"}
    made = {
        "instance_type": "ml.p5.48xlarge",
        "instance_count": 8,
        "availability_zone_id": "use1-az5",
        "price_per_instance_hour": 30,
        "blocks": [block],
    }
    return {**made, **changes}


OFFERS = [
    offer(10, 12),
    offer(3, 5, availability_zone_id="use1-az4", price_per_instance_hour=31.46),
    offer(2, 3, blocks=[*offer(2, 3)["blocks"], *offer(6, 7)["blocks"]]),
    offer(20, 22),
    offer(3, 10),
    offer(3, 5, target_resources=["training-job"], price_per_instance_hour=7),
    offer(3, 5, instance_type="ml.p5en.48xlarge"),
]


def found(world: Any, hours: int = 48, count: int = 2, **members: Any) -> list[tuple[str, int, str]]:
    """Search and give zone, number of blocks and fee of each offering."""
    request = {"InstanceType": "ml.p5.48xlarge", "TargetResources": ["hyperpod-cluster"], **members}
    answer = world.client("sagemaker").search_training_plan_offerings(
        InstanceCount=count, DurationHours=hours, **request
    )
    return [
        (
            each["ReservedCapacityOfferings"][0]["AvailabilityZone"],
            len(each["ReservedCapacityOfferings"]),
            each["UpfrontFee"],
        )
        for each in answer["TrainingPlanOfferings"]
    ]


def test_offers_of_the_file(world: Any) -> None:
    world.account_file(training_plans={"offers": OFFERS})
    # one block before two, the earliest first, never more than three
    assert found(world) == [
        ("us-east-1d", 1, "3020.16"),
        ("us-east-1f", 1, "2880.00"),
        ("us-east-1f", 1, "2880.00"),
    ]
    assert found(world, hours=168) == [("us-east-1f", 1, "10080.00")]
    assert found(world, hours=24) == found(world, hours=72) == []
    # what is asked for is rounded up to whole days
    assert found(world, hours=25) == found(world, hours=48)
    assert found(world, count=8)[0] == ("us-east-1d", 1, "12080.64")
    assert found(world, count=9) == []
    assert found(world, TargetResources=["training-job"]) == [("us-east-1f", 1, "672.00")]


def test_offers_within_a_window(world: Any) -> None:
    world.account_file(training_plans={"offers": OFFERS})
    after, before = datetime(2026, 4, 5, tzinfo=UTC), datetime(2026, 4, 7, 11, 30, tzinfo=UTC)
    assert [zone for zone, *_ in found(world, StartTimeAfter=after)] == ["us-east-1f", "us-east-1f"]
    assert found(world, EndTimeBefore=before) == [("us-east-1d", 1, "3020.16"), ("us-east-1f", 2, "2880.00")]
    world.clock.sleep(7 * 24 * 3600)
    assert len(found(world)) == 2


def test_no_offers_are_none(world: Any) -> None:
    world.account_file(training_plans={"plans": [PLAN], "offers": []})
    assert found(world) == []


def test_the_reserved_capacity_quota_refuses(world: Any, refusal: Any) -> None:
    name = "Number of ml.p5.48xlarge instances in reserved capacity across training plans per Region"
    old = {**PLAN, "name": "old", "status": "Expired"}
    world.account_file(quotas={"sagemaker": {name: 8}}, training_plans={"plans": [PLAN, old], "offers": OFFERS})
    assert len(found(world, count=4)) == 3
    search = world.client("sagemaker").search_training_plan_offerings
    code, message = refusal(search, InstanceType="ml.p5.48xlarge", InstanceCount=5, DurationHours=48)
    assert code == "ResourceLimitExceeded"
    assert message.startswith(
        f"The account-level service limit '{name}' is 8 Instances, with current utilization of 4 Instances and a"
        " request delta of 5 Instances."
    )


class TestExtensions:
    """Developer guide, "Training plans extension"."""

    def plan(self, world: Any, **more: Any) -> None:
        ends = {"start_time": "2026-04-01T00:00:00Z", "end_time": "2026-04-10T11:30:00Z"}
        world.account_file(training_plans={"plans": [{**PLAN, "name": "h100", "status": "Active", **ends, **more}]})

    def offers(self, world: Any, days: int) -> list[dict[str, Any]]:
        answer = world.client("sagemaker").search_training_plan_offerings(
            TrainingPlanArn=world.context.arn("sagemaker", "training-plan/h100"), DurationHours=days * 24
        )
        assert answer["TrainingPlanOfferings"] == []
        found: list[dict[str, Any]] = answer["TrainingPlanExtensionOfferings"]
        return found

    @pytest.mark.parametrize(
        ("days", "sold"), [(1, [24]), (14, [336]), (15, []), (21, [504]), (182, [4368]), (189, [])]
    )
    def test_by_the_day_up_to_14_and_by_the_week_up_to_182(self, world: Any, days: int, sold: list[int]) -> None:
        self.plan(world)
        assert [offer["DurationHours"] for offer in self.offers(world, days)] == sold

    @pytest.mark.parametrize("status", ["Pending", "Expired", "Failed"])
    def test_only_plans_that_run_or_are_to(self, world: Any, status: str) -> None:
        self.plan(world, status=status)
        assert self.offers(world, 7) == []

    def test_until_an_hour_before_the_end(self, world: Any) -> None:
        self.plan(world)
        end = datetime(2026, 4, 10, 11, 30, tzinfo=UTC)
        world.clock.sleep((end - world.clock.now()).total_seconds() - 3600)
        assert len(self.offers(world, 7)) == 1
        world.clock.sleep(1)
        assert self.offers(world, 7) == []

    def test_a_plan_that_is_extended_ends_later(self, world: Any, refusal: Any) -> None:
        self.plan(world)
        (offer,) = self.offers(world, 7)
        sagemaker = world.client("sagemaker")
        bought = offer["TrainingPlanExtensionOfferingId"]
        (extension,) = sagemaker.extend_training_plan(TrainingPlanExtensionOfferingId=bought)["TrainingPlanExtensions"]
        assert (extension["Status"], extension["PaymentStatus"]) == ("Scheduled", "Paid")
        plan = sagemaker.describe_training_plan(TrainingPlanName="h100")
        assert plan["EndTime"] == datetime(2026, 4, 17, 11, 30, tzinfo=UTC)
        history = sagemaker.describe_training_plan_extension_history(TrainingPlanArn=plan["TrainingPlanArn"])
        assert history["TrainingPlanExtensions"] == [extension]
        # it is sold once
        assert refusal(sagemaker.extend_training_plan, TrainingPlanExtensionOfferingId=bought) == (
            "ResourceNotFound",
            f"Training plan extension offering {bought} not found.",
        )
        assert self.offers(world, 7)[0]["StartDate"] == plan["EndTime"]
