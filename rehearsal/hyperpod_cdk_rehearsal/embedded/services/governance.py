"""Task governance: cluster scheduler configs and compute quotas, with their versions and optimistic lock."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hyperpod_cdk_rehearsal.embedded.context import Context
from hyperpod_cdk_rehearsal.embedded.operations import ServiceError, operation
from hyperpod_cdk_rehearsal.embedded.published import addons, instance_types, task_governance
from hyperpod_cdk_rehearsal.embedded.services import kubernetes_store, rules, webhooks
from hyperpod_cdk_rehearsal.embedded.services.addon_health import addon_status
from hyperpod_cdk_rehearsal.embedded.services.sagemaker import find_cluster, record_event, tag_map, unique_id
from hyperpod_cdk_rehearsal.embedded.services.stores import (
    EksCluster,
    HyperPodCluster,
    Policy,
    SageMakerStore,
    compute_quotas,
    eks_cluster_by_arn,
    scheduler_configs,
)
from hyperpod_cdk_rehearsal.embedded.services.timeline import GONE, Timeline, page

SECONDS = 0.3
DELETE_SECONDS = 0.2


@dataclass(frozen=True)
class Kind:
    """What tells the two policy types apart."""

    prefix: str
    arn_part: str
    label: str
    table: Callable[[Context], dict[str, Policy]]
    members: tuple[str, ...]

    def stored(self, context: Context) -> dict[str, Policy]:
        """The table that holds them."""
        store = context.state.store(SageMakerStore)
        return store.scheduler_configs if self.prefix == "ClusterSchedulerConfig" else store.compute_quotas


SCHEDULER_CONFIG = Kind(
    prefix="ClusterSchedulerConfig",
    arn_part="cluster-scheduler-config",
    label="cluster scheduler config",
    table=scheduler_configs,
    members=("SchedulerConfig", "Description"),
)
COMPUTE_QUOTA = Kind(
    prefix="ComputeQuota",
    arn_part="compute-quota",
    label="compute quota",
    table=compute_quotas,
    members=("ComputeQuotaConfig", "ComputeQuotaTarget", "ActivationState", "Description"),
)


@operation("sagemaker", "CreateClusterSchedulerConfig")
def create_cluster_scheduler_config(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Create the cluster's policy; there is at most one."""
    cluster = _governed_cluster(context, request["ClusterArn"])
    for policy in scheduler_configs(context).values():
        if policy.cluster_arn == cluster.arn:
            raise ServiceError(
                "ConflictException",
                f"Cluster {cluster.arn} already has the cluster scheduler config {policy.request['Name']}.",
            )
    return _create(context, SCHEDULER_CONFIG, _with_scheduler_defaults(request))


@operation("sagemaker", "DescribeClusterSchedulerConfig")
def describe_cluster_scheduler_config(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """The current version, or the one asked for."""
    return _describe(context, SCHEDULER_CONFIG, request)


@operation("sagemaker", "UpdateClusterSchedulerConfig")
def update_cluster_scheduler_config(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Make the next version of the version named."""
    return _update(context, SCHEDULER_CONFIG, _with_scheduler_defaults(request))


@operation("sagemaker", "DeleteClusterSchedulerConfig")
def delete_cluster_scheduler_config(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Delete the policy."""
    _delete(context, SCHEDULER_CONFIG, request)
    return {}


@operation("sagemaker", "ListClusterSchedulerConfigs")
def list_cluster_scheduler_configs(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Policies of a cluster, or of all."""
    return _list(context, SCHEDULER_CONFIG, request)


@operation("sagemaker", "CreateComputeQuota")
def create_compute_quota(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Create the compute quota of a team; the team's namespace and queues are created in the cluster."""
    cluster = _governed_cluster(context, request["ClusterArn"])
    _check_quota(request)
    team = request["ComputeQuotaTarget"]["TeamName"]
    for policy in compute_quotas(context).values():
        if policy.cluster_arn == cluster.arn and policy.request["ComputeQuotaTarget"]["TeamName"] == team:
            raise ServiceError(
                "ConflictException",
                f"Team {team} of cluster {cluster.arn} already has the compute quota {policy.request['Name']}.",
            )
    eks = _eks(context, cluster)
    answer = _create(context, COMPUTE_QUOTA, {"ActivationState": "Enabled", **_with_filled_resources(request)})
    refusal = webhooks.refusal_of_queue(context, eks)
    if refusal:
        policy = _find(context, COMPUTE_QUOTA, answer["ComputeQuotaId"])
        policy.failure = refusal
        policy.timeline = Timeline.begin(context.clock, "Creating", (SECONDS, "CreateFailed"))
        return answer
    kubernetes_store.record_manifest(context, eks.name, kubernetes_store.team_objects(team))
    _warn_of_sum(context, cluster)
    return answer


@operation("sagemaker", "DescribeComputeQuota")
def describe_compute_quota(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """The current version, or the one asked for."""
    return _describe(context, COMPUTE_QUOTA, request)


@operation("sagemaker", "UpdateComputeQuota")
def update_compute_quota(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Make the next version of the version named."""
    policy = _find(context, COMPUTE_QUOTA, request["ComputeQuotaId"])
    target = request.get("ComputeQuotaTarget")
    if target and target["TeamName"] != policy.request["ComputeQuotaTarget"]["TeamName"]:
        raise ServiceError("ValidationException", "The team of a compute quota cannot be changed.")
    _check_quota(request)
    answer = _update(context, COMPUTE_QUOTA, _with_filled_resources(request))
    _warn_of_sum(context, find_cluster(context, policy.cluster_arn))
    return answer


@operation("sagemaker", "DeleteComputeQuota")
def delete_compute_quota(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Delete the compute quota of a team; its queues are deleted, and its namespace remains with its workloads."""
    policy = _delete(context, COMPUTE_QUOTA, request)
    eks = _eks_of(context, policy.cluster_arn)
    if eks is not None:
        made = kubernetes_store.team_objects(policy.request["ComputeQuotaTarget"]["TeamName"])
        queues = [item for item in made if item["kind"] != "Namespace"]
        kubernetes_store.remove_manifest(context, eks.name, queues)
    return {}


@operation("sagemaker", "ListComputeQuotas")
def list_compute_quotas(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Compute quotas of a cluster, or of all."""
    return _list(context, COMPUTE_QUOTA, request)


def _create(context: Context, kind: Kind, request: dict[str, Any]) -> dict[str, Any]:
    name, cluster_arn = request["Name"], request["ClusterArn"]
    held = {policy.request["Name"] for policy in kind.table(context).values() if policy.cluster_arn == cluster_arn}
    if name in held:
        raise ServiceError(
            "ConflictException", f"A {kind.label} with the name {name} already exists on cluster {cluster_arn}."
        )
    policy_id = unique_id(context, kind.arn_part, name)
    now = context.clock.now()
    policy = Policy(
        policy_id=policy_id,
        arn=context.arn("sagemaker", f"{kind.arn_part}/{policy_id}"),
        cluster_arn=request["ClusterArn"],
        created=now,
        modified=now,
        request={key: value for key, value in request.items() if key != "Tags"},
        timeline=Timeline.begin(context.clock, "Creating", (SECONDS, "Created")),
        tags=tag_map(request.get("Tags")),
    )
    policy.versions[1] = copy.deepcopy(policy.request)
    with context.state.lock:
        kind.stored(context)[policy_id] = policy
    return {f"{kind.prefix}Arn": policy.arn, f"{kind.prefix}Id": policy_id}


def _describe(context: Context, kind: Kind, request: dict[str, Any]) -> dict[str, Any]:
    policy = _find(context, kind, request[f"{kind.prefix}Id"])
    version = request.get(f"{kind.prefix}Version") or policy.version
    if version not in policy.versions:
        raise ServiceError("ResourceNotFound", f"Version {version} of {kind.label} {policy.policy_id} not found.")
    stored = policy.versions[version]
    return {
        f"{kind.prefix}Version": version,
        **_common_view(context, kind, policy),
        **({"FailureReason": policy.failure} if policy.failure else {}),
        **{member: stored[member] for member in kind.members if member in stored},
    }


def _update(context: Context, kind: Kind, request: dict[str, Any]) -> dict[str, Any]:
    policy = _find(context, kind, request[f"{kind.prefix}Id"])
    status = policy.timeline.at(context.clock.now())
    if status not in {"Created", "Updated", "UpdateFailed"}:
        raise ServiceError(
            "ConflictException", f"The {kind.label} {policy.policy_id} cannot be updated while it is {status}."
        )
    if request["TargetVersion"] != policy.version:
        raise ServiceError(
            "ConflictException",
            f"The target version {request['TargetVersion']} of {kind.label} {policy.policy_id} is not its current "
            "version "
            f"{policy.version}.",
        )
    with context.state.lock:
        policy.version += 1
        policy.request.update({member: request[member] for member in kind.members if member in request})
        policy.versions[policy.version] = copy.deepcopy(policy.request)
        policy.modified = context.clock.now()
        policy.timeline = Timeline.begin(context.clock, "Updating", (SECONDS, "Updated"))
    return {f"{kind.prefix}Arn": policy.arn, f"{kind.prefix}Version": policy.version}


def _delete(context: Context, kind: Kind, request: dict[str, Any]) -> Policy:
    policy = _find(context, kind, request[f"{kind.prefix}Id"])
    if policy.timeline.at(context.clock.now()) != "Deleting":
        with context.state.lock:
            policy.timeline = Timeline.begin(context.clock, "Deleting", (DELETE_SECONDS, GONE))
    return policy


def _list(context: Context, kind: Kind, request: dict[str, Any]) -> dict[str, Any]:
    policies = [
        policy
        for policy in kind.table(context).values()
        if request.get("ClusterArn") in {None, policy.cluster_arn}
        and request.get("NameContains", "") in policy.request["Name"]
    ]
    policies.sort(key=lambda policy: str(policy.request["Name"]), reverse=request.get("SortOrder") == "Descending")
    shown, token = page(policies, request.get("NextToken"), request.get("MaxResults") or 100)
    members = ("ComputeQuotaConfig", "ComputeQuotaTarget", "ActivationState") if kind is COMPUTE_QUOTA else ()
    summaries = [
        {
            f"{kind.prefix}Version": policy.version,
            **_common_view(context, kind, policy),
            **{member: policy.request[member] for member in members if member in policy.request},
        }
        for policy in shown
    ]
    return {f"{kind.prefix}Summaries": summaries, **({"NextToken": token} if token else {})}


def _common_view(context: Context, kind: Kind, policy: Policy) -> dict[str, Any]:
    return {
        f"{kind.prefix}Arn": policy.arn,
        f"{kind.prefix}Id": policy.policy_id,
        "Name": policy.request["Name"],
        "Status": policy.timeline.at(context.clock.now()),
        "ClusterArn": policy.cluster_arn,
        "CreationTime": policy.created,
        "LastModifiedTime": policy.modified,
    }


def _find(context: Context, kind: Kind, policy_id: str) -> Policy:
    policy = kind.table(context).get(policy_id)
    if policy is None:
        raise ServiceError("ResourceNotFound", f"The {kind.label} {policy_id} does not exist.")
    return policy


def _governed_cluster(context: Context, cluster_arn: str) -> HyperPodCluster:
    cluster = find_cluster(context, cluster_arn)
    eks = _eks_of(context, cluster_arn)
    if eks is None:
        raise ServiceError("ValidationException", f"Cluster {cluster_arn} is not orchestrated by Amazon EKS.")
    addon = eks.addons.get(addons.TASK_GOVERNANCE)
    status = addon_status(context, eks, addon)[0] if addon else "not installed"
    if status != "ACTIVE":
        raise ServiceError(
            "ValidationException",
            f"The EKS add-on {addons.TASK_GOVERNANCE} of cluster {eks.name} is {status}; task governance requires it "
            "to be ACTIVE.",
        )
    return cluster


def _eks(context: Context, cluster: HyperPodCluster) -> EksCluster:
    eks = _eks_of(context, cluster.arn)
    if eks is None:
        raise ServiceError("ValidationException", f"Cluster {cluster.arn} is not orchestrated by Amazon EKS.")
    return eks


def _eks_of(context: Context, cluster_arn: str) -> EksCluster | None:
    arn = find_cluster(context, cluster_arn).eks_cluster_arn
    return eks_cluster_by_arn(context, arn) if arn else None


def _with_scheduler_defaults(request: dict[str, Any]) -> dict[str, Any]:
    config = request.get("SchedulerConfig")
    if config is None:
        return request
    defaults = {"FairShare": "Enabled", "IdleResourceSharing": "Disabled"}
    return {**request, "SchedulerConfig": {**defaults, **config}}


def _check_quota(request: Mapping[str, Any]) -> None:
    """The documented range of borrowing is narrower than the API's shape, which admits 0 to 10000."""
    config = request.get("ComputeQuotaConfig") or {}
    sharing = config.get("ResourceSharingConfig") or {}
    limit = sharing.get("BorrowLimit")
    percent = task_governance.BORROW_LIMIT_PERCENT
    if limit is not None and limit not in percent:
        raise ServiceError("ValidationException", f"BorrowLimit must be {percent.start} to {percent[-1]}, got {limit}.")
    for resource in (*config.get("ComputeQuotaResources", []), *sharing.get("AbsoluteBorrowLimits", [])):
        problem = _resource_problem(resource)
        if problem:
            raise ServiceError("ValidationException", f"{resource['InstanceType']}: {problem}")


def _resource_problem(resource: Mapping[str, Any]) -> str | None:
    # that whole instances and parts of them exclude each other is the console's word; the API's is not known
    problem = task_governance.amounts(resource)
    name = resource["InstanceType"]
    found = instance_types.described(name)
    if problem or found is None:
        return problem
    if resource.get("Accelerators") and not found.accelerators:
        return "The instance type has no accelerators."
    profile = (resource.get("AcceleratorPartition") or {}).get("Type")
    if profile is not None and profile not in instance_types.partitions(name):
        return f"The accelerator partition type {profile} is not supported for the instance type."
    return None


def _with_filled_resources(request: dict[str, Any]) -> dict[str, Any]:
    """The request with the accelerators, vCPU and memory that the service adds by ratio to parts of instances."""
    config = copy.deepcopy(request.get("ComputeQuotaConfig"))
    if not config:
        return request
    for resource in config.get("ComputeQuotaResources", []):
        found = instance_types.described(resource["InstanceType"])
        if found is None or "Count" in resource:
            continue
        ratio = _accelerator_share(resource, found)
        if ratio is None:
            resource["Accelerators"] = 0
            ratio = resource["VCpu"] / found.vcpu if "VCpu" in resource else resource["MemoryInGiB"] / found.memory_gib
        resource.setdefault("VCpu", float(found.vcpu * ratio))
        resource.setdefault("MemoryInGiB", float(found.memory_gib * ratio))
    return {**request, "ComputeQuotaConfig": config}


def _accelerator_share(resource: Mapping[str, Any], found: instance_types.Described) -> float | None:
    """The share of one instance's accelerators, None where the resource states none."""
    partition = resource.get("AcceleratorPartition")
    if partition is not None:
        profiles = instance_types.partitions(resource["InstanceType"])
        per_gpu = task_governance.partitions_per_accelerator(partition["Type"], profiles)
        return float(partition["Count"] / per_gpu / found.accelerators)
    return resource["Accelerators"] / found.accelerators if resource.get("Accelerators") else None


def _warn_of_sum(context: Context, cluster: HyperPodCluster) -> None:
    """Log if the quotas of teams exceed the instances of a type in the cluster, which AWS allows."""
    promised = Counter[str]()
    for policy in compute_quotas(context).values():
        if policy.cluster_arn == cluster.arn:
            promised.update(_instances(policy.request["ComputeQuotaConfig"].get("ComputeQuotaResources", [])))
    present = Counter[str]()
    for group in cluster.groups.values():
        for instance_type in rules.types_of(group.spec):
            present[instance_type] += int(group.spec["InstanceCount"])
    for instance_type, count in promised.items():
        if count > present[instance_type] + 1e-9:
            record_event(
                context,
                cluster,
                f"Compute quotas promise {count:g} {instance_type}, the cluster has {present[instance_type]}.",
                "Warn",
            )


def _instances(resources: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for resource in resources:
        name = resource["InstanceType"]
        described = instance_types.described(name)
        share = 0.0
        if described is not None and "Count" not in resource:
            share = _accelerator_share(resource, described) or resource.get("VCpu", 0) / described.vcpu
        found[name] = found.get(name, 0) + resource.get("Count", share)
    return found
