"""SageMaker training plans of the account file, and how many of their instances HyperPod clusters use."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from hyperpod_cdk_rehearsal.embedded.account import PlanBlock, PlanOffer, TrainingPlan, account_of
from hyperpod_cdk_rehearsal.embedded.context import Context
from hyperpod_cdk_rehearsal.embedded.operations import ServiceError, operation
from hyperpod_cdk_rehearsal.embedded.published import quotas
from hyperpod_cdk_rehearsal.embedded.services.stores import PlanExtension, SageMakerStore, hyperpod_clusters

PLAN_DAYS = 30
"""The duration of a plan without an end in the file."""

OFFERING_HOURS = 24
END_HOUR, END_MINUTE = 11, 30
"""Training plans end at 11:30 UTC."""

MAX_OFFERED_INSTANCES = 64
MOST_OFFERINGS = 3
"""The search gives no more, the best match first."""

EXTENDED_BY_DAY, EXTENDED_DAYS = 14, 182
"""Extensions are sold by the day up to the first, by the week up to the second."""

_ZONE_ID = re.compile(r"[a-z]{3}\d-az\d")
"""What the API can write as a zone's ID; that of a local zone it leaves out."""


@dataclass(frozen=True)
class Plan:
    """A plan as it stands now: its file entry, its ARN, its blocks, and the instances in use."""

    entry: TrainingPlan
    arn: str
    blocks: tuple[PlanBlock, ...]
    in_use: int

    @property
    def start(self) -> datetime:
        """When its first block begins."""
        return min(block.start_time for block in self.blocks)

    @property
    def end(self) -> datetime:
        """When its last block ends."""
        return max(block.end_time for block in self.blocks)

    @property
    def available(self) -> int:
        """Return the number of healthy instances that are not in use."""
        return max(self.entry.instance_count - self.in_use - self.entry.unhealthy_count, 0)

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
    return {"TrainingPlanSummaries": views}


@operation("sagemaker", "SearchTrainingPlanOfferings")
def search_training_plan_offerings(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """What the account file offers for exactly the duration that is asked for, rounded up to whole days.

    Without offers in the file: one offering, in the zone of a plan of that type or of its on-demand capacity; none
    where neither is known. More instances than the stated reserved-capacity quota leaves are refused. Of a plan that
    is named: an extension of that duration.
    """
    if request.get("TrainingPlanArn"):
        return {"TrainingPlanOfferings": [], "TrainingPlanExtensionOfferings": _extensions_on_offer(context, request)}
    instance_type, count = request.get("InstanceType"), request.get("InstanceCount") or 1
    if instance_type is not None:
        _check_quota(context, instance_type, count)
    offers = account_of(context).training_plans.offers
    if offers is None:
        made = _offer_where_capacity_is(context, request)
        return {"TrainingPlanOfferings": [] if made is None else [_offering(context, request, made, count)]}
    found = [offer for offer in offers if _matches(context, request, offer, count)]
    found.sort(key=lambda offer: (len(offer.blocks), offer.blocks[0].start_time, offer.price_per_instance_hour))
    return {"TrainingPlanOfferings": [_offering(context, request, offer, count) for offer in found[:MOST_OFFERINGS]]}


@operation("sagemaker", "ExtendTrainingPlan")
def extend_training_plan(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Buy an extension that was found: the plan ends later from then on. One is sold once."""
    store = context.state.store(SageMakerStore)
    offer_id = request["TrainingPlanExtensionOfferingId"]
    with context.state.lock:
        offer = store.extension_offers.pop(offer_id, None)
        plan = None if offer is None else find_plan(context, offer.plan)
        if offer is None or plan is None or not _can_be_extended(context, plan):
            raise ServiceError("ResourceNotFound", f"Training plan extension offering {offer_id} not found.")
        store.extensions.append(replace(offer, bought=context.clock.now()))
    return {"TrainingPlanExtensions": _history(context, offer.plan)}


@operation("sagemaker", "DescribeTrainingPlanExtensionHistory")
def describe_training_plan_extension_history(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """What a plan was extended by, the first extension first."""
    plan = find_plan(context, request["TrainingPlanArn"])
    if plan is None:
        raise ServiceError("ResourceNotFound", f"Training plan {request['TrainingPlanArn']} not found.")
    return {"TrainingPlanExtensions": _history(context, plan.entry.name)}


def _extensions_on_offer(context: Context, request: dict[str, Any]) -> list[dict[str, Any]]:
    """One for a plan that can be extended, for 1 to 14 days or whole weeks up to 182 (developer guide)."""
    plan = find_plan(context, str(request["TrainingPlanArn"]))
    if plan is None:
        raise ServiceError("ResourceNotFound", f"Training plan {request['TrainingPlanArn']} not found.")
    days = _days(timedelta(hours=request.get("DurationHours") or OFFERING_HOURS))
    is_sold = days <= EXTENDED_BY_DAY or (days <= EXTENDED_DAYS and days % 7 == 0)
    if not is_sold or not _can_be_extended(context, plan):
        return []
    zone_id = plan.entry.availability_zone_id
    digest = hashlib.sha256(f"{plan.arn}/{plan.end}/{days}".encode()).hexdigest()[:20]
    offer = PlanExtension(
        offer_id=f"tpeo-{digest}",
        plan=plan.entry.name,
        zone_name=_zone_name(context, zone_id),
        zone_id=zone_id,
        start=_utc(plan.end),
        end=_utc(plan.end) + timedelta(days=days),
    )
    with context.state.lock:
        context.state.store(SageMakerStore).extension_offers[offer.offer_id] = offer
    view = _extension(offer)
    view.pop("AvailabilityZoneId", None)
    return [view]


def _can_be_extended(context: Context, plan: Plan) -> bool:
    """Whether it runs or is to, for an hour yet ("Prerequisites" of the developer guide's page)."""
    until_end = _utc(plan.end) - _utc(context.clock.now())
    return plan.entry.status in {"Active", "Scheduled"} and until_end >= timedelta(hours=1)


def _history(context: Context, plan: str) -> list[dict[str, Any]]:
    bought = [each for each in context.state.store(SageMakerStore).extensions if each.plan == plan]
    now = _utc(context.clock.now())
    return [
        {
            **_extension(each),
            "ExtendedAt": each.bought,
            "Status": "Scheduled" if now < each.start else "Active" if now < each.end else "Expired",
            "PaymentStatus": "Paid",
        }
        for each in bought
    ]


def _extension(extension: PlanExtension) -> dict[str, Any]:
    zone_id = extension.zone_id
    return {
        "TrainingPlanExtensionOfferingId": extension.offer_id,
        "AvailabilityZone": extension.zone_name,
        **({"AvailabilityZoneId": zone_id} if _ZONE_ID.fullmatch(zone_id) else {}),
        "StartDate": extension.start,
        "EndDate": extension.end,
        "DurationHours": int((extension.end - extension.start).total_seconds()) // 3600,
        # the cost of an extension is unknown: it is free here
        "UpfrontFee": "0.00",
        "CurrencyCode": "USD",
    }


def _matches(context: Context, request: dict[str, Any], offer: PlanOffer, count: int) -> bool:
    after = _utc(request.get("StartTimeAfter") or context.clock.now())
    before = request.get("EndTimeBefore")
    # training-job is what the developer guide calls the default
    targets = request.get("TargetResources") or ["training-job"]
    return (
        offer.instance_type == request.get("InstanceType")
        and count <= offer.instance_count
        and set(targets) <= set(offer.target_resources)
        and _days(_length(offer.blocks)) == _days(timedelta(hours=request.get("DurationHours") or OFFERING_HOURS))
        and _utc(offer.blocks[0].start_time) >= after
        and (before is None or _utc(offer.blocks[-1].end_time) <= _utc(before))
    )


def _offer_where_capacity_is(context: Context, request: dict[str, Any]) -> PlanOffer | None:
    instance_type, count = request.get("InstanceType"), request.get("InstanceCount") or 1
    zone = _zone_of_type(context, instance_type) if instance_type else None
    if instance_type is None or zone is None or count > MAX_OFFERED_INSTANCES:
        return None
    hours = request.get("DurationHours") or OFFERING_HOURS
    start = request.get("StartTimeAfter") or context.clock.now() + timedelta(hours=1)
    return PlanOffer(
        instance_type=instance_type,
        instance_count=count,
        availability_zone_id=zone,
        price_per_instance_hour=Decimal(0),
        blocks=(PlanBlock(start_time=start, end_time=start + timedelta(hours=hours)),),
        target_resources=tuple(request.get("TargetResources") or ["hyperpod-cluster"]),
    )


def _offering(context: Context, request: dict[str, Any], offer: PlanOffer, count: int) -> dict[str, Any]:
    zone_name = _zone_name(context, offer.availability_zone_id)
    length = _length(offer.blocks)
    digest = hashlib.sha256(f"{offer.model_dump_json()}/{count}".encode()).hexdigest()[:20]
    fee = offer.price_per_instance_hour * count * Decimal(int(length.total_seconds())) / 3600
    after = request.get("StartTimeAfter")
    return {
        "TrainingPlanOfferingId": f"tpo-{digest}",
        "TargetResources": list(offer.target_resources),
        **({"RequestedStartTimeAfter": after} if after else {}),
        **_duration(length),
        "UpfrontFee": f"{fee:.2f}",
        "CurrencyCode": "USD",
        "ReservedCapacityOfferings": [
            {
                "InstanceType": offer.instance_type,
                "InstanceCount": count,
                "AvailabilityZone": zone_name,
                "StartTime": block.start_time,
                "EndTime": block.end_time,
                **_duration(_length([block])),
            }
            for block in offer.blocks
        ],
    }


def _check_quota(context: Context, instance_type: str, count: int) -> None:
    file = account_of(context)
    quota = quotas.training_plan_capacity(instance_type)
    value = file.applied_quota(quota.service, quota.name)
    if value is None:
        # AWS's default of 0 would leave nothing to search in accounts whose file says nothing of plans
        return
    used = sum(
        plan.instance_count
        for plan in file.training_plans.plans
        if plan.instance_type == instance_type and plan.status not in {"Expired", "Failed"}
    )
    if used + count > value:
        raise ServiceError(
            "ResourceLimitExceeded",
            f"The account-level service limit '{quota.name}' is {value:g} Instances, with current utilization of {used}"
            f" Instances and a request delta of {count} Instances. Please use AWS Service Quotas to request an increase"
            " for this quota. If AWS Service Quotas is not available, contact AWS support to request an increase for"
            " this quota.",
        )


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
    more = (each for each in context.state.store(SageMakerStore).extensions if each.plan == entry.name)
    return Plan(
        entry=entry,
        arn=arn,
        blocks=(
            *(entry.blocks or (PlanBlock(start_time=start, end_time=end),)),
            *(PlanBlock(start_time=each.start, end_time=each.end) for each in more),
        ),
        in_use=in_use + entry.in_use_by_others,
    )


def _boundary(moment: datetime, days: int) -> datetime:
    return (moment + timedelta(days=days)).replace(hour=END_HOUR, minute=END_MINUTE, second=0, microsecond=0)


def _view(context: Context, plan: Plan) -> dict[str, Any]:
    entry = plan.entry
    zone_id = entry.availability_zone_id
    place = {
        "AvailabilityZone": _zone_name(context, zone_id),
        **({"AvailabilityZoneId": zone_id} if _ZONE_ID.fullmatch(zone_id) else {}),
    }
    capacities = [
        {
            "ReservedCapacityArn": context.arn("sagemaker", f"reserved-capacity/{entry.name}{f'-{n}' if n else ''}"),
            "ReservedCapacityType": "Instance",
            "InstanceType": entry.instance_type,
            "TotalInstanceCount": block.instance_count or entry.instance_count,
            "Status": _block_status(context, plan, block),
            **place,
            "StartTime": block.start_time,
            "EndTime": block.end_time,
            **_duration(_length([block])),
        }
        for n, block in enumerate(plan.blocks)
    ]
    return {
        "TrainingPlanArn": plan.arn,
        "TrainingPlanName": entry.name,
        "Status": entry.status,
        **({"StatusMessage": entry.status_message} if entry.status_message else {}),
        "UpfrontFee": entry.upfront_fee,
        "CurrencyCode": "USD",
        "TotalInstanceCount": entry.instance_count,
        "AvailableInstanceCount": plan.available,
        "InUseInstanceCount": plan.in_use,
        "UnhealthyInstanceCount": entry.unhealthy_count,
        "TargetResources": list(entry.target_resources),
        "ReservedCapacitySummaries": capacities,
        "StartTime": plan.start,
        "EndTime": plan.end,
        **_duration(_length(plan.blocks)),
    }


def _block_status(context: Context, plan: Plan, block: PlanBlock) -> str:
    if len(plan.blocks) == 1 or plan.entry.status not in {"Active", "Scheduled"}:
        return plan.entry.status
    now = _utc(context.clock.now())
    if _utc(block.end_time) <= now:
        return "Expired"
    return "Active" if _utc(block.start_time) <= now else "Scheduled"


def _length(blocks: Iterable[PlanBlock]) -> timedelta:
    return sum((block.end_time - block.start_time for block in blocks), timedelta())


def _days(length: timedelta) -> int:
    """Whole days, rounded up."""
    return -(-length // timedelta(days=1))


def _duration(length: timedelta) -> dict[str, int]:
    hours, minutes = divmod(int(length.total_seconds()) // 60, 60)
    return {"DurationHours": hours, "DurationMinutes": minutes}


def _utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def _zone_of_type(context: Context, instance_type: str) -> str | None:
    file = account_of(context)
    zones = [plan.availability_zone_id for plan in file.training_plans.plans if plan.instance_type == instance_type]
    return next(iter([*zones, *file.capacity.get(instance_type, ())]), None)


def _zone_name(context: Context, zone_id: str) -> str:
    zones = context.client("ec2").describe_availability_zones(AllAvailabilityZones=True)["AvailabilityZones"]
    # a local zone of no moto region keeps its ID: the member is descriptive
    return next((zone["ZoneName"] for zone in zones if zone["ZoneId"] == zone_id), zone_id)
