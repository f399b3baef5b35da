"""AWS::CloudWatch: metric alarms and dashboards.

Composite alarms have no handler: moto has no operation for them, so the engine records them like any unhandled type.
"""

from __future__ import annotations

from typing import Any

from hyperpod_cdk_rehearsal.embedded.resources._calls import call, document, ignoring, retag, tag_list, take
from hyperpod_cdk_rehearsal.embedded.resources.registry import (
    HandlerError,
    ResourceHandler,
    ResourceRequest,
    ResourceResult,
    handles,
)

METRIC_ALARM = (
    "ActionsEnabled",
    "AlarmActions",
    "AlarmDescription",
    "ComparisonOperator",
    "DatapointsToAlarm",
    "Dimensions",
    "EvaluateLowSampleCountPercentile",
    "EvaluationPeriods",
    "ExtendedStatistic",
    "InsufficientDataActions",
    "MetricName",
    "Metrics",
    "Namespace",
    "OKActions",
    "Period",
    "Statistic",
    "Threshold",
    "ThresholdMetricId",
    "TreatMissingData",
    "Unit",
)


def _client(request: ResourceRequest) -> Any:
    return request.context.client("cloudwatch")


@handles("AWS::CloudWatch::Alarm")
class Alarm(ResourceHandler):
    """A metric alarm. `Ref` is its name."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        name = request.properties.get("AlarmName") or request.generated_name(max_length=255)
        return self._put(request, name, tag_list(request.properties.get("Tags")))

    def update(self, request: ResourceRequest) -> ResourceResult:
        client = _client(request)
        result = self._put(request, request.existing_id, [])
        arn = result.attributes["Arn"]
        retag(
            request,
            add=lambda tags: client.tag_resource(ResourceARN=arn, Tags=tag_list(tags)),
            remove=lambda keys: client.untag_resource(ResourceARN=arn, TagKeys=keys),
        )
        return result

    def delete(self, request: ResourceRequest) -> None:
        with ignoring("ResourceNotFound"):
            _client(request).delete_alarms(AlarmNames=[request.existing_id])

    @staticmethod
    def _put(request: ResourceRequest, name: str, tags: list[dict[str, str]]) -> ResourceResult:
        call(
            _client(request),
            "put_metric_alarm",
            take(request.properties, *METRIC_ALARM) | {"AlarmName": name, "Tags": tags or None},
        )
        return ResourceResult(name, {"Arn": request.context.arn("cloudwatch", f"alarm:{name}")})


@handles("AWS::CloudWatch::Dashboard")
class Dashboard(ResourceHandler):
    """A dashboard. `Ref` is its name."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        return self._put(request, request.properties.get("DashboardName") or request.generated_name())

    def update(self, request: ResourceRequest) -> ResourceResult:
        return self._put(request, request.existing_id)

    def delete(self, request: ResourceRequest) -> None:
        with ignoring("ResourceNotFound", "DashboardNotFoundError"):
            _client(request).delete_dashboards(DashboardNames=[request.existing_id])

    @staticmethod
    def _put(request: ResourceRequest, name: str) -> ResourceResult:
        client = _client(request)
        body = document(request.properties["DashboardBody"])
        answer = client.put_dashboard(DashboardName=name, DashboardBody=body)
        messages = answer.get("DashboardValidationMessages") or []
        if messages:
            raise HandlerError("InvalidRequest", messages[0].get("Message", "The dashboard body is invalid."))
        arn = client.get_dashboard(DashboardName=name)["DashboardArn"]
        retag(
            request,
            add=lambda tags: client.tag_resource(ResourceARN=arn, Tags=tag_list(tags)),
            remove=lambda keys: client.untag_resource(ResourceARN=arn, TagKeys=keys),
        )
        return ResourceResult(name)
