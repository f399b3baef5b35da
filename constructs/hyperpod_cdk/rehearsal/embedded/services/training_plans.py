"""SageMaker training plans of the account file, and how many of their instances HyperPod clusters use."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from hyperpod_cdk.rehearsal.embedded.account import TrainingPlan, account_of
from hyperpod_cdk.rehearsal.embedded.context import Context
from hyperpod_cdk.rehearsal.embedded.operations import ServiceError, operation
from hyperpod_cdk.rehearsal.embedded.services.stores import hyperpod_clusters
from hyperpod_cdk.rehearsal.embedded.services.timeline import page

PLAN_DAYS = 30
"""How long a plan lasts whose file says no end."""

OFFERING_HOURS = 24
END_HOUR, END_MINUTE = 11, 30
"""Training plans end at 11:30 UTC."""

MAX_OFFERED_INSTANCES = 64


@dataclass(frozen=True)
class Plan:
    """A plan as it stands now: its file entry, its ARN, its window, and the instances in use."""

    entry: TrainingPlan
    arn: str
    start: datetime
    end: datetime
    in_use: int

    @property
    def available(self) -> int:
        """Instances that no cluster has taken."""
        return max(self.entry.instance_count - self.in_use, 0)

    @property
    def has_started(self) -> bool:
        """Whether nodes can be had from it now."""
        return self.entry.status == "Active"


def find_plan(context: Context, name_or_arn: str, *, without_cluster: str | None = None) -> Plan | None:
    """The plan of this name or ARN in this account and region; `without_cluster` leaves one cluster's use out."""
    name = name_or_arn.rsplit("/", 1)[-1]
    entry = account_of(context).training_plan(name)
    if entry is None:
        return None
    plan = _plan(context, entry, without_cluster)
    return plan if name_or_arn in {name, plan.arn} else None


@operation("sagemaker", "DescribeTrainingPlan")
def describe_training_plan(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """One plan, by name or ARN."""
    plan = find_plan(context, request["TrainingPlanName"])
    if plan is None:
        raise ServiceError("ResourceNotFound", f"Training plan {request['TrainingPlanName']} not found.")
    return _view(context, plan)


@operation("sagemaker", "ListTrainingPlans")
def list_training_plans(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Every plan, filtered by status where asked."""
    wanted = {item["Value"] for item in request.get("Filters", [])}
    plans = [_plan(context, entry, None) for entry in account_of(context).training_plans.plans]
    views = [_view(context, plan) for plan in plans if not wanted or plan.entry.status in wanted]
    for view in views:
        del view["UnhealthyInstanceCount"]
    shown, token = page(views, request.get("NextToken"), request.get("MaxResults") or 100)
    return {"TrainingPlanSummaries": shown, **({"NextToken": token} if token else {})}


@operation("sagemaker", "SearchTrainingPlanOfferings")
def search_training_plan_offerings(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """One offering, in the zone of a plan of that type or of its on-demand capacity; none where neither is known."""
    instance_type, count = request.get("InstanceType"), request.get("InstanceCount") or 1
    zone = _zone_of_type(context, instance_type) if instance_type else None
    if instance_type is None or zone is None or count > MAX_OFFERED_INSTANCES:
        return {"TrainingPlanOfferings": []}
    hours = request.get("DurationHours") or OFFERING_HOURS
    start = request.get("StartTimeAfter") or context.clock.now() + timedelta(hours=1)
    digest = hashlib.sha256(f"{instance_type}/{count}/{hours}/{zone}".encode()).hexdigest()[:20]
    capacity = {
        "InstanceType": instance_type,
        "InstanceCount": count,
        "AvailabilityZone": _zone_name(context, zone),
        "DurationHours": hours,
        "StartTime": start,
        "EndTime": start + timedelta(hours=hours),
    }
    offering = {
        "TrainingPlanOfferingId": f"tpo-{digest}",
        "TargetResources": request.get("TargetResources") or ["hyperpod-cluster"],
        "DurationHours": hours,
        "UpfrontFee": "0.00",
        "CurrencyCode": "USD",
        "ReservedCapacityOfferings": [capacity],
    }
    return {"TrainingPlanOfferings": [offering]}


def _plan(context: Context, entry: TrainingPlan, without_cluster: str | None) -> Plan:
    arn = context.arn("sagemaker", f"training-plan/{entry.name}")
    now = context.clock.now()
    start = entry.start_time or _boundary(now, -1 if entry.status == "Active" else 7)
    end = entry.end_time or _boundary(start, PLAN_DAYS)
    in_use = sum(
        int(group.spec["InstanceCount"])
        for cluster in hyperpod_clusters(context).values()
        if cluster.name != without_cluster and cluster.timeline.final != "Failed"
        for group in cluster.groups.values()
        if group.spec.get("TrainingPlanArn") == arn
    )
    return Plan(entry=entry, arn=arn, start=start, end=end, in_use=in_use)


def _boundary(moment: datetime, days: int) -> datetime:
    return (moment + timedelta(days=days)).replace(hour=END_HOUR, minute=END_MINUTE, second=0, microsecond=0)


def _view(context: Context, plan: Plan) -> dict[str, Any]:
    hours, minutes = divmod(int((plan.end - plan.start).total_seconds()) // 60, 60)
    window = {"StartTime": plan.start, "EndTime": plan.end, "DurationHours": hours, "DurationMinutes": minutes}
    capacity = {
        "ReservedCapacityArn": context.arn("sagemaker", f"reserved-capacity/{plan.entry.name}"),
        "ReservedCapacityType": "Instance",
        "InstanceType": plan.entry.instance_type,
        "TotalInstanceCount": plan.entry.instance_count,
        "Status": plan.entry.status,
        "AvailabilityZoneId": plan.entry.availability_zone_id,
        "AvailabilityZone": _zone_name(context, plan.entry.availability_zone_id),
        **window,
    }
    return {
        "TrainingPlanArn": plan.arn,
        "TrainingPlanName": plan.entry.name,
        "Status": plan.entry.status,
        "UpfrontFee": plan.entry.upfront_fee,
        "CurrencyCode": "USD",
        "TotalInstanceCount": plan.entry.instance_count,
        "AvailableInstanceCount": plan.available,
        "InUseInstanceCount": plan.in_use,
        "UnhealthyInstanceCount": 0,
        "TargetResources": list(plan.entry.target_resources),
        "ReservedCapacitySummaries": [capacity],
        **window,
    }


def _zone_of_type(context: Context, instance_type: str) -> str | None:
    file = account_of(context)
    zones = [plan.availability_zone_id for plan in file.training_plans.plans if plan.instance_type == instance_type]
    return next(iter([*zones, *file.capacity.get(instance_type, ())]), None)


def _zone_name(context: Context, zone_id: str) -> str:
    zones = context.client("ec2").describe_availability_zones()["AvailabilityZones"]
    # a local zone of no moto region keeps its ID: the member is descriptive
    return next((zone["ZoneName"] for zone in zones if zone["ZoneId"] == zone_id), zone_id)
