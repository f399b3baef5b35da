"""AWS::Logs: log groups, log streams, metric filters and resource policies."""

from __future__ import annotations

import json
from typing import Any

from botocore.exceptions import ClientError

from hyperpod_cdk_rehearsal.embedded.resources._calls import (
    as_list,
    call,
    changed,
    document,
    error_code,
    ignoring,
    retag,
    tag_map,
    take,
)
from hyperpod_cdk_rehearsal.embedded.resources.registry import (
    HandlerError,
    ResourceHandler,
    ResourceRequest,
    ResourceResult,
    handles,
)
from hyperpod_cdk_rehearsal.embedded.services.log_keys import LogGroupPolicies

GONE = "ResourceNotFoundException"
EXISTS = "ResourceAlreadyExistsException"
POLICY_ACTIONS = {"logs:CreateLogStream", "logs:PutLogEvents"}


def _client(request: ResourceRequest) -> Any:
    return request.context.client("logs")


def already_exists(resource_type: str, **identifier: str) -> HandlerError:
    """What CloudFormation says of a resource that somebody else made."""
    pointers = json.dumps({f"/properties/{name}": value for name, value in identifier.items()}, separators=(",", ":"))
    return HandlerError(
        "AlreadyExists", f"Resource of type '{resource_type}' with identifier '{pointers}' already exists."
    )


@handles("AWS::Logs::LogGroup")
class LogGroup(ResourceHandler):
    """A log group. `Ref` is its name."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        client, properties = _client(request), request.properties
        name = properties.get("LogGroupName") or request.generated_name(max_length=512)
        try:
            call(
                client,
                "create_log_group",
                take(properties, kmsKeyId="KmsKeyId", logGroupClass="LogGroupClass")
                | {"logGroupName": name, "tags": tag_map(properties.get("Tags")) or None},
            )
        except ClientError as error:
            if error_code(error) == EXISTS:
                raise already_exists("AWS::Logs::LogGroup", LogGroupName=name) from error
            raise
        if properties.get("RetentionInDays"):
            client.put_retention_policy(logGroupName=name, retentionInDays=int(properties["RetentionInDays"]))
        _keep_policy(request, name)
        return self._result(request, name)

    def update(self, request: ResourceRequest) -> ResourceResult:
        client, name = _client(request), request.existing_id
        if changed(request, "RetentionInDays"):
            days = request.properties.get("RetentionInDays")
            if days:
                client.put_retention_policy(logGroupName=name, retentionInDays=int(days))
            else:
                client.delete_retention_policy(logGroupName=name)
        if changed(request, "KmsKeyId"):
            key = request.properties.get("KmsKeyId")
            if key:
                client.associate_kms_key(logGroupName=name, kmsKeyId=key)
            else:
                client.disassociate_kms_key(logGroupName=name)
        _keep_policy(request, name)
        retag(
            request,
            add=lambda tags: client.tag_log_group(logGroupName=name, tags=tags),
            remove=lambda keys: client.untag_log_group(logGroupName=name, tags=keys),
        )
        return self._result(request, name)

    def delete(self, request: ResourceRequest) -> None:
        with ignoring(GONE):
            _client(request).delete_log_group(logGroupName=request.existing_id)
        _policies(request).pop(request.existing_id, None)

    @staticmethod
    def _result(request: ResourceRequest, name: str) -> ResourceResult:
        return ResourceResult(name, {"Arn": request.context.arn("logs", f"log-group:{name}:*")})


def _policies(request: ResourceRequest) -> dict[str, dict[str, Any]]:
    return request.context.state.store(LogGroupPolicies).by_group


def _keep_policy(request: ResourceRequest, name: str) -> None:
    """Put, replace or take away the one policy of a log group, which takes what PutResourcePolicy takes."""
    policy = request.properties.get("ResourcePolicyDocument")
    if not policy:
        _policies(request).pop(name, None)
        return
    parsed = json.loads(policy) if isinstance(policy, str) else policy
    for statement in as_list(parsed.get("Statement")):
        others = set(as_list(statement.get("Action"))) - POLICY_ACTIONS
        principal = statement.get("Principal")
        if others or not isinstance(principal, dict) or set(principal) != {"Service"}:
            # CloudWatch Logs API reference, PutResourcePolicy: "Supported actions", "Supported principals"
            raise HandlerError("InvalidRequest", "Invalid Parameter: policyDocument")
    _policies(request)[name] = parsed


@handles("AWS::Logs::LogStream")
class LogStream(ResourceHandler):
    """A log stream. `Ref` is its name."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        name = request.properties.get("LogStreamName") or request.generated_name(max_length=512)
        group = request.properties["LogGroupName"]
        _client(request).create_log_stream(logGroupName=group, logStreamName=name)
        return ResourceResult(name)

    def delete(self, request: ResourceRequest) -> None:
        with ignoring(GONE):
            _client(request).delete_log_stream(
                logGroupName=request.properties["LogGroupName"], logStreamName=request.existing_id
            )


@handles("AWS::Logs::MetricFilter")
class MetricFilter(ResourceHandler):
    """A metric filter. `Ref` is its name."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        name = request.properties.get("FilterName") or request.generated_name(max_length=512)
        return self._put(request, name)

    def update(self, request: ResourceRequest) -> ResourceResult:
        return self._put(request, request.existing_id)

    def delete(self, request: ResourceRequest) -> None:
        with ignoring(GONE):
            _client(request).delete_metric_filter(
                logGroupName=request.properties["LogGroupName"], filterName=request.existing_id
            )

    @staticmethod
    def _put(request: ResourceRequest, name: str) -> ResourceResult:
        properties, client = request.properties, _client(request)
        group = properties["LogGroupName"]
        groups = client.describe_log_groups(logGroupNamePrefix=group)["logGroups"]
        if group not in [row["logGroupName"] for row in groups]:
            raise HandlerError("NotFound", "The specified log group does not exist.")
        call(
            client,
            "put_metric_filter",
            {
                "logGroupName": group,
                "filterName": name,
                "filterPattern": properties.get("FilterPattern", ""),
                "metricTransformations": [
                    _transformation(item) for item in as_list(properties["MetricTransformations"])
                ],
            },
        )
        return ResourceResult(name)


def _transformation(item: dict[str, Any]) -> dict[str, Any]:
    made = take(
        item,
        metricName="MetricName",
        metricNamespace="MetricNamespace",
        metricValue="MetricValue",
        defaultValue="DefaultValue",
        unit="Unit",
    )
    dimensions = {row["Key"]: row["Value"] for row in as_list(item.get("Dimensions"))}
    return made | ({"dimensions": dimensions} if dimensions else {})


@handles("AWS::Logs::ResourcePolicy")
class ResourcePolicy(ResourceHandler):
    """CloudWatch Logs' account-wide resource policy. `Ref` is its name."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        return self._put(request)

    def update(self, request: ResourceRequest) -> ResourceResult:
        return self._put(request)

    def delete(self, request: ResourceRequest) -> None:
        with ignoring(GONE):
            _client(request).delete_resource_policy(policyName=request.existing_id)

    @staticmethod
    def _put(request: ResourceRequest) -> ResourceResult:
        name = request.properties["PolicyName"]
        _client(request).put_resource_policy(
            policyName=name, policyDocument=document(request.properties["PolicyDocument"])
        )
        return ResourceResult(name)
