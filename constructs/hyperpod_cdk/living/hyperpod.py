"""The HyperPod cluster, its policy and its quotas as SageMaker has them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from hyperpod_cdk.catalog import governance
from hyperpod_cdk.checks.answers import NotAnswered
from hyperpod_cdk.handlers.governance.index import OWNER_TAG
from hyperpod_cdk.handlers.quota_gate.reading import NotFound
from hyperpod_cdk.living import groups
from hyperpod_cdk.living.look import ANY_TAG, TAGS, Kind, Look, Properties, Stated, reading, taken
from hyperpod_cdk.review.deployed import Api
from hyperpod_cdk.templates.assembly import Assembly
from hyperpod_cdk.templates.values import resolve

_OWN_QUOTA: Final = "Custom::ComputeQuota"
QUOTAS: Final = (governance.COMPUTE_QUOTA, _OWN_QUOTA)
"""Types of a team's quota: CloudFormation's, and the custom resource for Regions without it."""

_OF_GROUP: Final = {
    "InstanceType": "InstanceType",
    "InstanceCount": "TargetCount",
    "MinInstanceCount": "MinCount",
    "ExecutionRole": "ExecutionRole",
    "ThreadsPerCore": "ThreadsPerCore",
    "LifeCycleConfig": "LifeCycleConfig",
    "OnStartDeepHealthChecks": "OnStartDeepHealthChecks",
    "TrainingPlanArn": "TrainingPlanArn",
    "OverrideVpcConfig": "OverrideVpcConfig",
    "ScheduledUpdateConfig": "ScheduledUpdateConfig",
    "CapacityRequirements": "CapacityRequirements",
    "NetworkInterface": "NetworkInterface",
    "InstanceStorageConfigs": "InstanceStorageConfigs",
    "ImageId": "DesiredImageId",
    "ImageReleaseVersion": "DesiredImageReleaseVersion",
    "EnvironmentConfig": "EnvironmentConfig",
}
"""What a member of a group in the template is called in DescribeCluster (botocore 1.44.5, both shapes).

``TargetCount`` is what was asked for; ``CurrentCount`` is on its way there.
"""

_OF_PATCHING: Final = ("PatchingStrategy", "DeploymentConfig", "IdleWaitWindowInSeconds")


def describe_cluster(aws: Api, name: str) -> Mapping[str, Any] | None:
    """Return a HyperPod cluster by name or ARN as DescribeCluster does, None if there is none. Raises NotAnswered."""
    try:
        return aws.call("sagemaker", "describe_cluster", ClusterName=name)
    except NotFound:
        return None


def is_on_eks(cluster: Mapping[str, Any]) -> bool:
    """Return whether the orchestrator of a cluster, as DescribeCluster shows it, is EKS."""
    orchestrator = cluster.get("Orchestrator")
    return isinstance(orchestrator, Mapping) and "Eks" in orchestrator


def describe_training_plan(aws: Api, name: str) -> Mapping[str, Any]:
    """Return a training plan by name or ARN as DescribeTrainingPlan does. Raises NotAnswered, also if there is none."""
    try:
        return aws.call("sagemaker", "describe_training_plan", TrainingPlanName=name)
    except NotFound:
        raise NotAnswered("AWS has no such plan") from None


PLAN_WORKS: Final = ("Active", "Scheduled")
"""Statuses of a plan that a group can use (developer guide, "Utilize training plans for HyperPod clusters")."""


def _cluster(look: Look) -> Properties | None:
    found = describe_cluster(look.aws, look.id)
    if found is None:
        return None
    if not is_on_eks(found):
        raise NotAnswered(f"cluster {found.get('ClusterName', look.id)} runs Slurm or nothing yet, not EKS")
    with reading("sagemaker:DescribeCluster"):
        tags = look.aws.pages("sagemaker", "list_tags", "Tags", ResourceArn=found["ClusterArn"])
        return {
            **taken(found, "ClusterName", "ClusterRole", "VpcConfig", "NodeRecovery", "NodeProvisioningMode"),
            **taken(found, "Orchestrator", "TieredStorageConfig"),
            "AutoScaling": taken(found.get("AutoScaling", {}), "Mode", "AutoScalerType"),
            "InstanceGroups": [_group(row) for row in found["InstanceGroups"]],
            "RestrictedInstanceGroups": [_group(row) for row in found.get("RestrictedInstanceGroups", ())],
            "RestrictedInstanceGroupsConfig": _shared(found.get("RestrictedInstanceGroupsConfig", {})),
            "ComputeQuotas": [{"Name": name} for name in _quotas(look)],
            "Tags": tags,
        }


def _quotas(look: Look) -> list[str]:
    """Return the names of the quotas that exist, if the templates have any: else the stacks do not manage governance.

    One that the templates have and HyperPod does not is a difference of its own: here it counts as there.
    """
    ours = _stated_quotas(look.deployed)
    if not ours:
        return []
    rows = look.aws.pages("sagemaker", "list_compute_quotas", "ComputeQuotaSummaries", ClusterArn=look.id)
    return [*dict.fromkeys([*ours, *(str(row["Name"]) for row in rows)])]


def _stated_quotas(assembly: Assembly) -> list[str]:
    names = (resolve(assembly, each.stack, each.properties.get("Name")) for each in assembly.of_type(*QUOTAS))
    return [name for name in names if isinstance(name, str)]


def _of_cluster(stated: Stated) -> Properties:
    quotas = [{"Name": name} for name in _stated_quotas(stated.assembly)]
    return {**groups.without_scaled(stated), "ComputeQuotas": quotas}


def described_in_template(found: Mapping[str, Any], *, like: Properties) -> dict[str, Any]:
    """Return the answer of DescribeCluster in the form of a template, without tags and empty values.

    Images that the groups of ``like``, a template's, do not pin are left out: AWS shows the one that a group got.
    """
    rows = like.get("InstanceGroups")
    pinned = {
        str(row.get("InstanceGroupName")): {"ImageId", "ImageReleaseVersion"} & set(row)
        for row in (rows if isinstance(rows, list) else ())
    }
    groups = []
    for row in found["InstanceGroups"]:
        group = _group(row)
        left = {"ImageId", "ImageReleaseVersion"} - pinned.get(group["InstanceGroupName"], set())
        groups.append({key: value for key, value in group.items() if key not in left and value not in ({}, [], None)})
    scaling = taken(found.get("AutoScaling") or {}, "Mode", "AutoScalerType")
    return {
        **taken(found, "ClusterName", "ClusterRole", "VpcConfig", "NodeRecovery", "NodeProvisioningMode"),
        **taken(found, "Orchestrator", "TieredStorageConfig"),
        **({"AutoScaling": scaling} if scaling else {}),
        "InstanceGroups": groups,
    }


def _group(row: Mapping[str, Any]) -> dict[str, Any]:
    group = {"InstanceGroupName": row["InstanceGroupName"]}
    group |= {ours: row[theirs] for ours, theirs in _OF_GROUP.items() if theirs in row}
    if "InstanceRequirements" in row:
        group["InstanceRequirements"] = {"InstanceTypes": row["InstanceRequirements"].get("DesiredInstanceTypes", [])}
    kubernetes = row.get("KubernetesConfig", {})
    group["KubernetesConfig"] = {
        name: kubernetes[f"Desired{name}"] for name in ("Labels", "Taints") if kubernetes.get(f"Desired{name}")
    }
    patching = row.get("AutoPatchConfig")
    if patching:
        group["AutoPatchConfig"] = taken(patching, *_OF_PATCHING)
    return group


def _shared(told: Mapping[str, Any]) -> dict[str, Any]:
    shared = told.get("SharedEnvironmentConfig", {})
    names = ("FSxLustreConfig", "FSxLustreDeletionPolicy")
    return {"SharedEnvironmentConfig": {name: shared[each] for name in names if (each := f"Desired{name}") in shared}}


def _quota(look: Look) -> Properties | None:
    found = look.found("sagemaker", "describe_compute_quota", ComputeQuotaId=look.id.rpartition("/")[2])
    if found is None:
        return None
    with reading("sagemaker:DescribeComputeQuota"):
        told = taken(found, "Name", "Description", "ComputeQuotaConfig", "ComputeQuotaTarget", "ActivationState")
        return {**told, "Tags": _tags(look, found["ComputeQuotaArn"])}


def _policy(look: Look) -> Properties | None:
    asked = {"ClusterSchedulerConfigId": look.id.rpartition("/")[2]}
    found = look.found("sagemaker", "describe_cluster_scheduler_config", **asked)
    if found is None:
        return None
    with reading("sagemaker:DescribeClusterSchedulerConfig"):
        arn = found["ClusterSchedulerConfigArn"]
        return {**taken(found, "Name", "Description", "SchedulerConfig"), "Tags": _tags(look, arn)}


def _tags(look: Look, arn: str) -> list[Any]:
    rows = look.aws.pages("sagemaker", "list_tags", "Tags", ResourceArn=arn)
    # the function of a custom resource finds what it created by this tag
    return [each for each in rows if each["Key"] != OWNER_TAG]


_GROUP: Final = r"(?:Restricted)?InstanceGroups\[[^\]]+\]"

_OF_QUOTA: Final = Kind(
    properties=("Name", "Description", "ComputeQuotaConfig", "ComputeQuotaTarget", "ActivationState", "Tags"),
    read=_quota,
    made_by_hand=re.compile(rf"{TAGS}|ComputeQuotaConfig\.ComputeQuotaResources\[.+\]"),
)
_OF_POLICY: Final = Kind(
    properties=("Name", "Description", "SchedulerConfig", "Tags"),
    read=_policy,
    made_by_hand=re.compile(rf"{TAGS}|SchedulerConfig\.PriorityClasses\[.+\]"),
)
_BY_FUNCTION: Final[Mapping[str, Any]] = {
    "is_sent_whole": True,
    "resent": "its custom resource sends all of it with every update",
    "is_made_again": True,
}
"""What differs if a function of this library does the work of CloudFormation's handler (handlers/governance)."""

KINDS: Final[Mapping[str, Kind]] = {
    "AWS::SageMaker::Cluster": Kind(
        properties=(
            "ClusterName",
            "ClusterRole",
            "VpcConfig",
            "NodeRecovery",
            "NodeProvisioningMode",
            "Orchestrator",
            "AutoScaling",
            "TieredStorageConfig",
            "InstanceGroups",
            "RestrictedInstanceGroups",
            "RestrictedInstanceGroupsConfig",
            "Tags",
        ),
        read=_cluster,
        state=_of_cluster,
        made_by_hand=re.compile(
            rf"{TAGS}|{_GROUP}|ComputeQuotas\[.+\]|(?:AutoScaling|TieredStorageConfig)\.Mode"
            rf"|{_GROUP}\.(?:MinInstanceCount|TrainingPlanArn|KubernetesConfig\.(?:Labels|Taints)\b.*"
            r"|OnStartDeepHealthChecks|ScheduledUpdateConfig\..*)"
        ),
        is_sent_whole=True,
        members={"ComputeQuotas": "the quota"},
        differing=re.compile(rf"{ANY_TAG}|{_GROUP}\.Image(?:Id|ReleaseVersion)"),
    ),
    governance.COMPUTE_QUOTA: _OF_QUOTA,
    _OWN_QUOTA: replace(_OF_QUOTA, **_BY_FUNCTION),
    governance.SCHEDULER_CONFIG: _OF_POLICY,
    "Custom::ClusterSchedulerConfig": replace(_OF_POLICY, **_BY_FUNCTION),
}
