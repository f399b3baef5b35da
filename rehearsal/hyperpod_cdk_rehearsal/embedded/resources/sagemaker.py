"""Handlers of the SageMaker types: HyperPod cluster, cluster scheduler config, compute quota."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar

from hyperpod_cdk_rehearsal.embedded.resources._calls import (
    as_list,
    call,
    changed,
    ignoring,
    retag,
    tag_list,
    take,
)
from hyperpod_cdk_rehearsal.embedded.resources._waiting import wait_until_gone, wait_while
from hyperpod_cdk_rehearsal.embedded.resources.registry import (
    HandlerError,
    ResourceHandler,
    ResourceRequest,
    ResourceResult,
    handles,
)

NOT_FOUND = "ResourceNotFound"
PASSING = ("Creating", "Updating", "RollingBack", "SystemUpdating", "Deleting")

CLUSTER_PROPERTIES = (
    "AutoScaling",
    "ClusterRole",
    "InstanceGroups",
    "NodeProvisioningMode",
    "NodeRecovery",
    "RestrictedInstanceGroups",
    "RestrictedInstanceGroupsConfig",
    "TieredStorageConfig",
)


@handles("AWS::SageMaker::Cluster")
class ClusterHandler(ResourceHandler):
    """`Ref` is the cluster's ARN, the schema's primary identifier."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        """Create the cluster and wait; one that fails is deleted again, its reason is the resource's."""
        properties = request.properties
        arguments = {
            "ClusterName": properties.get("ClusterName") or request.generated_name(max_length=63),
            **take(properties, *CLUSTER_PROPERTIES, "Orchestrator", "VpcConfig"),
            "Tags": tag_list(properties.get("Tags")) or None,
        }
        arn = call(_sagemaker(request), "create_cluster", arguments)["ClusterArn"]
        try:
            return self._settled(request, arn)
        except HandlerError:
            self._delete(request, arn)
            raise

    def read(self, request: ResourceRequest, identifier: Mapping[str, str]) -> ResourceResult:
        """Find a cluster by ARN or name."""
        name = identifier.get("ClusterArn") or identifier["ClusterName"]
        found = _sagemaker(request).describe_cluster(ClusterName=name)
        return self._settled(request, str(found["ClusterArn"]))

    def update(self, request: ResourceRequest) -> ResourceResult:
        """Change instance groups and settings in place; a new image release is a software update."""
        arn = request.existing_id
        releases = _releases(request)
        if changed(request, *CLUSTER_PROPERTIES):
            arguments = {
                "ClusterName": arn,
                **take(request.properties, *CLUSTER_PROPERTIES),
                "InstanceGroupsToDelete": _dropped(request) or None,
            }
            call(_sagemaker(request), "update_cluster", arguments)
            self._settled(request, arn)
        if releases:
            groups = [{"InstanceGroupName": name, "ImageReleaseVersion": version} for name, version in releases.items()]
            _sagemaker(request).update_cluster_software(ClusterName=arn, InstanceGroups=groups)
        _retag(request, arn)
        return self._settled(request, arn)

    def delete(self, request: ResourceRequest) -> None:
        """Delete the cluster and wait until it is gone."""
        self._delete(request, request.existing_id)

    def _delete(self, request: ResourceRequest, arn: str) -> None:
        with ignoring(NOT_FOUND):
            _sagemaker(request).delete_cluster(ClusterName=arn)
        wait_until_gone(request.context, lambda: _sagemaker(request).describe_cluster(ClusterName=arn), NOT_FOUND)

    def _settled(self, request: ResourceRequest, arn: str) -> ResourceResult:
        cluster = wait_while(
            request.context,
            lambda: dict(_sagemaker(request).describe_cluster(ClusterName=arn)),
            lambda found: str(found["ClusterStatus"]),
            *PASSING,
        )
        if cluster["ClusterStatus"] != "InService" or cluster.get("FailureMessage"):
            raise HandlerError(
                "NotStabilized", cluster.get("FailureMessage") or f"Cluster is {cluster['ClusterStatus']}"
            )
        attributes = {
            "ClusterArn": arn,
            "ClusterStatus": cluster["ClusterStatus"],
            "CreationTime": _moment(cluster["CreationTime"]),
            "FailureMessage": "",
        }
        return ResourceResult(arn, attributes)


class _PolicyHandler(ResourceHandler):
    """What scheduler configs and compute quotas share; `Ref` is the ARN, the schema's primary identifier."""

    prefix: ClassVar[str]
    method: ClassVar[str]
    updatable: ClassVar[tuple[str, ...]]
    also_created_with: ClassVar[tuple[str, ...]]

    def create(self, request: ResourceRequest) -> ResourceResult:
        """Create the policy and wait until it is Created."""
        arguments = {
            **take(request.properties, *self.also_created_with, *self.updatable),
            "Tags": tag_list(request.properties.get("Tags")) or None,
        }
        made = call(_sagemaker(request), f"create_{self.method}", arguments)
        return self._settled(request, made[f"{self.prefix}Id"])

    def read(self, request: ResourceRequest, identifier: Mapping[str, str]) -> ResourceResult:
        """Find it by ARN or id."""
        (name,) = identifier.values()
        return self._settled(request, name.rsplit("/", 1)[-1])

    def update(self, request: ResourceRequest) -> ResourceResult:
        """Make the next version, on the version that Describe gives."""
        policy_id = request.existing_id.rsplit("/", 1)[-1]
        if changed(request, *self.updatable):
            current = self._describe(request, policy_id)
            arguments = {
                f"{self.prefix}Id": policy_id,
                "TargetVersion": current[f"{self.prefix}Version"],
                **take(request.properties, *self.updatable),
            }
            call(_sagemaker(request), f"update_{self.method}", arguments)
        _retag(request, request.existing_id)
        return self._settled(request, policy_id)

    def delete(self, request: ResourceRequest) -> None:
        """Delete the policy and wait until it is gone."""
        policy_id = request.existing_id.rsplit("/", 1)[-1]
        with ignoring(NOT_FOUND):
            getattr(_sagemaker(request), f"delete_{self.method}")(**{f"{self.prefix}Id": policy_id})
        wait_until_gone(request.context, lambda: self._describe(request, policy_id), NOT_FOUND)

    def _describe(self, request: ResourceRequest, policy_id: str) -> dict[str, Any]:
        return dict(getattr(_sagemaker(request), f"describe_{self.method}")(**{f"{self.prefix}Id": policy_id}))

    def _settled(self, request: ResourceRequest, policy_id: str) -> ResourceResult:
        policy = wait_while(
            request.context, lambda: self._describe(request, policy_id), lambda found: str(found["Status"]), *PASSING
        )
        if policy["Status"] not in {"Created", "Updated"}:
            raise HandlerError("NotStabilized", policy.get("FailureReason") or f"{self.prefix} is {policy['Status']}")
        arn = policy[f"{self.prefix}Arn"]
        attributes = {
            f"{self.prefix}Arn": arn,
            f"{self.prefix}Id": policy_id,
            f"{self.prefix}Version": policy[f"{self.prefix}Version"],
            "Status": policy["Status"],
            "CreationTime": _moment(policy["CreationTime"]),
            "LastModifiedTime": _moment(policy["LastModifiedTime"]),
        }
        return ResourceResult(arn, attributes)


@handles("AWS::SageMaker::ClusterSchedulerConfig")
class ClusterSchedulerConfigHandler(_PolicyHandler):
    """The cluster's policy."""

    prefix = "ClusterSchedulerConfig"
    method = "cluster_scheduler_config"
    updatable = ("SchedulerConfig", "Description")
    also_created_with = ("Name", "ClusterArn")


@handles("AWS::SageMaker::ComputeQuota")
class ComputeQuotaHandler(_PolicyHandler):
    """A team's share."""

    prefix = "ComputeQuota"
    method = "compute_quota"
    updatable = ("ComputeQuotaConfig", "ComputeQuotaTarget", "ActivationState", "Description")
    also_created_with = ("Name", "ClusterArn")


def _sagemaker(request: ResourceRequest) -> Any:
    return request.context.client("sagemaker")


def _retag(request: ResourceRequest, arn: str) -> None:
    sagemaker = _sagemaker(request)
    retag(
        request,
        add=lambda tags: sagemaker.add_tags(ResourceArn=arn, Tags=tag_list(tags)),
        remove=lambda keys: sagemaker.delete_tags(ResourceArn=arn, TagKeys=keys),
    )


def _dropped(request: ResourceRequest) -> list[str]:
    """The groups of a kind of which none is left: a list that a request leaves out changes nothing."""
    before = request.previous or {}
    return [
        group["InstanceGroupName"]
        for member in ("InstanceGroups", "RestrictedInstanceGroups")
        if not request.properties.get(member)
        for group in as_list(before.get(member))
    ]


def _releases(request: ResourceRequest) -> dict[str, str]:
    """The image release of each group that stays and whose release changes."""
    before = _release_of(request.previous or {})
    after = _release_of(request.properties)
    return {name: version for name, version in after.items() if version and name in before and before[name] != version}


def _release_of(properties: Mapping[str, Any]) -> dict[str, str]:
    groups = as_list(properties.get("InstanceGroups"))
    return {group["InstanceGroupName"]: group.get("ImageReleaseVersion", "") for group in groups}


def _moment(value: datetime) -> str:
    return value.isoformat()
