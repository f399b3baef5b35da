"""SageMaker HyperPod clusters: instance groups, nodes, events, operations, software updates, tags.

A cluster that provisions all or nothing and whose instances cannot be launched ends `Failed` with the reason, and an
update rolls back with it. A Continuous cluster is `InService` without its nodes (`nodes.py`): why they do not come
stands in its events.
"""

from __future__ import annotations

import copy
import hashlib
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from hyperpod_cdk_rehearsal.embedded.context import Context
from hyperpod_cdk_rehearsal.embedded.operations import PassToMoto, ServiceError, operation
from hyperpod_cdk_rehearsal.embedded.published import node_images
from hyperpod_cdk_rehearsal.embedded.services import rules
from hyperpod_cdk_rehearsal.embedded.services.cluster_events import (
    Level,
    counts_of,
    describe_event,
    describe_operation,
    list_events,
    list_operations,
    record,
    record_scaling,
)
from hyperpod_cdk_rehearsal.embedded.services.network import Network
from hyperpod_cdk_rehearsal.embedded.services.nodes import (
    IMAGE_RELEASE_VERSION,
    NODE_SECONDS,
    begin_minimum,
    plan_nodes,
    settle_nodes,
    try_again,
)
from hyperpod_cdk_rehearsal.embedded.services.stores import (
    AccessEntry,
    HyperPodCluster,
    InstanceGroup,
    Node,
    Policy,
    SageMakerStore,
    compute_quotas,
    eks_cluster_by_arn,
    hyperpod_clusters,
    scheduler_configs,
)
from hyperpod_cdk_rehearsal.embedded.services.timeline import GONE, Timeline, page
from hyperpod_cdk_rehearsal.embedded.services.training_plans import find_plan

CREATE_SECONDS = 1.0
UPDATE_SECONDS = 0.2
DELETE_SECONDS = 0.5
"""How long the embedded AWS takes over what takes AWS minutes or hours."""

DEFAULT_THREADS_PER_CORE = 1
HYPERPOD_LINUX = "HYPERPOD_LINUX"

CLUSTER_MEMBERS = (
    "VpcConfig",
    "Orchestrator",
    "NodeRecovery",
    "NodeProvisioningMode",
    "TieredStorageConfig",
    "ClusterRole",
    "AutoScaling",
    "RestrictedInstanceGroupsConfig",
)
UPDATABLE_MEMBERS = tuple(member for member in CLUSTER_MEMBERS if member not in {"VpcConfig", "Orchestrator"})


@operation("sagemaker", "CreateCluster")
def create_cluster(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Check the request, join the execution roles to the EKS cluster, and bring the nodes up."""
    name = request["ClusterName"]
    if name in hyperpod_clusters(context):
        raise ServiceError("ResourceInUse", f"Resource In Use: a cluster with the name {name} already exists.")
    wanted = {**request, "InstanceGroups": request.get("InstanceGroups") or []}
    rules.check_cluster(context, wanted)
    cluster = _new_cluster(context, request)
    plan = plan_nodes(context, cluster, wanted, rules.groups_of(wanted), in_service_after=CREATE_SECONDS)
    problem = plan.problem
    with context.state.lock:
        cluster.groups = {
            str(group["InstanceGroupName"]): InstanceGroup(spec=dict(group), restricted=restricted)
            for member, restricted in (("InstanceGroups", False), ("RestrictedInstanceGroups", True))
            for group in wanted.get(member) or []
        }
        for group in cluster.groups.values():
            begin_minimum(context, group, {})
        cluster.timeline = Timeline.begin(
            context.clock, "Creating", (CREATE_SECONDS, "Failed" if problem else "InService")
        )
        cluster.failure_message = problem
        context.state.store(SageMakerStore).clusters[name] = cluster
        _report_what_is_not_judged(context, cluster, rules.groups_of(wanted))
        _join(context, cluster)
        if problem:
            _report_failure(context, cluster, "creation", problem)
        else:
            text = f"Cluster {name} creation completed successfully"
            record(context, cluster, "Cluster", text, level="Info", after=CREATE_SECONDS)
            settle_nodes(context, cluster, plan.nodes)
    return {"ClusterArn": cluster.arn}


@operation("sagemaker", "DescribeCluster")
def describe_cluster(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """The cluster by name or ARN."""
    cluster = find_cluster(context, request["ClusterName"])
    now = context.clock.now()
    status = cluster.timeline.at(now)
    view: dict[str, Any] = {
        "ClusterArn": cluster.arn,
        "ClusterName": cluster.name,
        "ClusterStatus": status,
        "CreationTime": cluster.created,
        "InstanceGroups": [
            _group_view(context, group, status) for _, group in sorted(cluster.groups.items()) if not group.restricted
        ],
        **{
            member: cluster.request[member]
            for member in CLUSTER_MEMBERS
            if cluster.request.get(member) and not member.startswith("Restricted")
        },
    }
    restricted = [
        _restricted_view(context, group, status) for _, group in sorted(cluster.groups.items()) if group.restricted
    ]
    if restricted:
        view["RestrictedInstanceGroups"] = restricted
    shared = (cluster.request.get("RestrictedInstanceGroupsConfig") or {}).get("SharedEnvironmentConfig")
    if shared:
        members = {f"{when}{member}": value for when in ("Current", "Desired") for member, value in shared.items()}
        view["RestrictedInstanceGroupsConfig"] = {"SharedEnvironmentConfig": members}
    if cluster.failure_message and status in {"Failed", "RollingBack", "InService"}:
        view["FailureMessage"] = cluster.failure_message
    if "AutoScaling" in view:
        view["AutoScaling"] = {"Status": "InService", **view["AutoScaling"]}
    return view


@operation("sagemaker", "ListClusters")
def list_clusters(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Clusters in the order they were made, or by name."""
    clusters = [
        cluster
        for cluster in hyperpod_clusters(context).values()
        if request.get("NameContains", "") in cluster.name and _uses_plan(cluster, request.get("TrainingPlanArn"))
    ]
    clusters.sort(
        key=(lambda cluster: cluster.name) if request.get("SortBy") == "NAME" else (lambda cluster: cluster.created),
        reverse=request.get("SortOrder") == "Descending",
    )
    shown, token = page(clusters, request.get("NextToken"), request.get("MaxResults") or 100)
    now = context.clock.now()
    summaries = [
        {
            "ClusterArn": cluster.arn,
            "ClusterName": cluster.name,
            "CreationTime": cluster.created,
            "ClusterStatus": cluster.timeline.at(now),
        }
        for cluster in shown
    ]
    return {"ClusterSummaries": summaries, **({"NextToken": token} if token else {})}


@operation("sagemaker", "UpdateCluster")
def update_cluster(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Bring the cluster to the instance groups given: those left out, or named for deletion, go with their nodes."""
    cluster = find_cluster(context, request["ClusterName"])
    _require_settled(context, cluster)
    after = _groups_after(cluster, request)
    specs = rules.groups_of(after)
    for spec in specs:
        before = cluster.groups.get(spec["InstanceGroupName"])
        if before is not None:
            rules.check_immutable(before.spec, spec)
    updates = {member: request[member] for member in UPDATABLE_MEMBERS if member in request}
    wanted = {**cluster.request, **updates, **after}
    if not after["RestrictedInstanceGroups"] and "RestrictedInstanceGroupsConfig" not in request:
        wanted.pop("RestrictedInstanceGroupsConfig", None)
    changed = [spec for spec in specs if _grows(cluster.groups.get(spec["InstanceGroupName"]), spec)]
    rules.check_cluster_role(cluster.request, wanted)
    rules.check_cluster(context, wanted, existing=cluster.name, groups=changed)
    plan = plan_nodes(context, cluster, wanted, changed, in_service_after=UPDATE_SECONDS)
    problem = plan.problem
    with context.state.lock:
        cluster.failure_message = problem
        _report_what_is_not_judged(context, cluster, changed)
        if problem:
            cluster.timeline = Timeline.begin(
                context.clock, "Updating", (UPDATE_SECONDS, "RollingBack"), (UPDATE_SECONDS, "InService")
            )
            _report_failure(context, cluster, "update", problem)
        else:
            counts = counts_of(cluster, context.clock.now())
            cluster.request.update(updates)
            if "RestrictedInstanceGroupsConfig" not in wanted:
                cluster.request.pop("RestrictedInstanceGroupsConfig", None)
            _apply(context, cluster, after, plan.nodes)
            record_scaling(context, cluster, counts)
    return {"ClusterArn": cluster.arn}


@operation("sagemaker", "DeleteCluster")
def delete_cluster(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Delete the cluster and its nodes; task-governance policies must be gone first."""
    cluster = find_cluster(context, request["ClusterName"])
    status = cluster.timeline.at(context.clock.now())
    if status in {"Creating", "Updating", "SystemUpdating", "RollingBack"}:
        raise ServiceError("ConflictException", f"Cluster {cluster.name} cannot be deleted while it is {status}.")
    policies = [*_policies_of(scheduler_configs(context), cluster), *_policies_of(compute_quotas(context), cluster)]
    if policies:
        raise ServiceError(
            "ConflictException",
            f"Cluster {cluster.name} cannot be deleted while task governance policies are attached to it: "
            f"{', '.join(sorted(policies))}. Delete the cluster policy and the compute allocations first.",
        )
    if status != "Deleting":
        with context.state.lock:
            cluster.timeline = Timeline.begin(context.clock, "Deleting", (DELETE_SECONDS, GONE))
            _leave(context, cluster)
    return {"ClusterArn": cluster.arn}


@operation("sagemaker", "ListClusterNodes")
def list_cluster_nodes(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """The nodes, by group and number."""
    cluster = find_cluster(context, request["ClusterName"])
    part = request.get("InstanceGroupNameContains", "")
    # a node without an instance is listed by its logical ID, which has to be asked for
    named = request.get("IncludeNodeLogicalIds", False)
    nodes = [node for node in _living_nodes(context, cluster) if part in node.group and (node.instance_id or named)]
    shown, token = page(nodes, request.get("NextToken"), request.get("MaxResults") or 100)
    return {
        "ClusterNodeSummaries": [_node_summary(context, node, named=named) for node in shown],
        **({"NextToken": token} if token else {}),
    }


@operation("sagemaker", "DescribeClusterNode")
def describe_cluster_node(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """One node, by instance ID or logical ID."""
    cluster = find_cluster(context, request["ClusterName"])
    wanted = request.get("NodeId") or request.get("NodeLogicalId")
    for node in _living_nodes(context, cluster):
        if wanted in {node.instance_id, node.logical_id}:
            return {"NodeDetails": _node_details(context, cluster, node)}
    raise ServiceError("ResourceNotFound", f"Node {wanted} not found in cluster {cluster.name}.")


@operation("sagemaker", "ListClusterEvents")
def list_cluster_events(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """The events, newest first; Continuous clusters only."""
    return list_events(context, find_cluster(context, request["ClusterName"]), request)


@operation("sagemaker", "DescribeClusterEvent")
def describe_cluster_event(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """One event with what it says of its subject; Continuous clusters only."""
    return describe_event(context, find_cluster(context, request["ClusterName"]), request["EventId"])


@operation("sagemaker", "ListClusterOperations")
def list_cluster_operations(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """The requests that scaled the cluster or checked its health, newest first."""
    return list_operations(context, find_cluster(context, request["ClusterName"]), request)


@operation("sagemaker", "DescribeClusterOperation")
def describe_cluster_operation(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """One such request with what it changed of each group."""
    return describe_operation(context, find_cluster(context, request["ClusterName"]), request["OperationId"])


@operation("sagemaker", "UpdateClusterSoftware")
def update_cluster_software(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Bring the nodes of all groups, or of those named, to an image release."""
    cluster = find_cluster(context, request["ClusterName"])
    _require_settled(context, cluster)
    named = {item["InstanceGroupName"]: item.get("ImageReleaseVersion") for item in request.get("InstanceGroups") or []}
    unknown = sorted(set(named) - set(cluster.groups))
    if unknown:
        raise ServiceError(
            "ValidationException", f"Instance groups not found in cluster {cluster.name}: {', '.join(unknown)}."
        )
    rules.check_releases(context, cluster.eks_cluster_arn, dict(named))
    eks = eks_cluster_by_arn(context, cluster.eks_cluster_arn) if cluster.eks_cluster_arn else None
    newest = node_images.newest(eks.version) if eks else None
    with context.state.lock:
        cluster.timeline = Timeline.begin(context.clock, "SystemUpdating", (UPDATE_SECONDS, "InService"))
        for group in cluster.groups.values():
            if named and group.name not in named:
                continue
            # where none is named the latest one is used (botocore, ClusterInstanceGroupSpecification)
            version = named.get(group.name) or newest or IMAGE_RELEASE_VERSION
            group.spec["ImageReleaseVersion"] = version
            for node in group.nodes:
                node.image_release_version, node.updated = version, context.clock.now()
                if node.problem:
                    continue
                node.timeline = Timeline.begin(context.clock, "SystemUpdating", (NODE_SECONDS, "Running"))
        record(context, cluster, "Cluster", "Software update started.", level="Info")
    return {"ClusterArn": cluster.arn}


@operation("sagemaker", "BatchAddClusterNodes")
def batch_add_cluster_nodes(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Raise the target counts of groups and launch the nodes; Continuous clusters only."""
    cluster = find_cluster(context, request["ClusterName"])
    if not cluster.is_continuous:
        raise ServiceError(
            "ValidationException", f"Cluster {cluster.name} does not have NodeProvisioningMode Continuous."
        )
    wanted = {str(item["InstanceGroupName"]): int(item["IncrementTargetCountBy"]) for item in request["NodesToAdd"]}
    specs = [dict(group.spec) for _, group in sorted(cluster.groups.items())]
    for spec in specs:
        spec["InstanceCount"] = int(spec["InstanceCount"]) + wanted.get(str(spec["InstanceGroupName"]), 0)
    after = {**cluster.request, "InstanceGroups": specs}
    growing = [spec for spec in specs if spec["InstanceGroupName"] in wanted]
    rules.check_cluster(context, after, existing=cluster.name, groups=growing)
    plan = plan_nodes(context, cluster, after, growing, in_service_after=0.0)
    failed = [
        {"InstanceGroupName": name, "ErrorCode": "InstanceGroupNotFound", "FailedCount": count, "Message": ""}
        for name, count in wanted.items()
        if name not in cluster.groups
    ]
    with context.state.lock:
        counts = counts_of(cluster, context.clock.now())
        for spec in growing:
            cluster.groups[str(spec["InstanceGroupName"])].spec["InstanceCount"] = spec["InstanceCount"]
        settle_nodes(context, cluster, plan.nodes)
        record_scaling(context, cluster, counts)
    added = [
        {"NodeLogicalId": node.logical_id, "InstanceGroupName": node.group, "Status": "Pending"}
        for nodes in plan.nodes.values()
        for node in nodes
    ]
    return {"Successful": added, "Failed": failed}


@operation("sagemaker", "BatchDeleteClusterNodes")
def batch_delete_cluster_nodes(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Delete nodes by instance ID; their groups' target counts go down with them."""
    cluster = find_cluster(context, request["ClusterName"])
    known = {node.instance_id: node for node in _living_nodes(context, cluster)}
    wanted: list[str] = request.get("NodeIds") or []
    with context.state.lock:
        counts = counts_of(cluster, context.clock.now())
        for instance_id in wanted:
            if instance_id in known:
                group = cluster.groups[known[instance_id].group]
                group.nodes.remove(known[instance_id])
                group.spec["InstanceCount"] = max(int(group.spec["InstanceCount"]) - 1, 0)
        record_scaling(context, cluster, counts)
    failed = [
        {"Code": "NodeIdNotFound", "Message": f"Node {name} not found in cluster {cluster.name}.", "NodeId": name}
        for name in wanted
        if name not in known
    ]
    done = [name for name in wanted if name in known]
    return {**({"Successful": done} if done else {}), **({"Failed": failed} if failed else {})}


@operation("sagemaker", "AddTags")
def add_tags(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Tag a cluster or a policy; other resources are moto's."""
    tags = _tags_of(context, request["ResourceArn"])
    with context.state.lock:
        tags.update(tag_map(request["Tags"]))
    return {"Tags": tag_list(tags)}


@operation("sagemaker", "DeleteTags")
def delete_tags(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Untag a cluster or a policy."""
    tags = _tags_of(context, request["ResourceArn"])
    with context.state.lock:
        for key in request["TagKeys"]:
            tags.pop(key, None)
    return {}


@operation("sagemaker", "ListTags")
def list_tags(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """The tags of a cluster or a policy."""
    return {"Tags": tag_list(_tags_of(context, request["ResourceArn"]))}


def find_cluster(context: Context, name_or_arn: str) -> HyperPodCluster:
    """The cluster of this name or ARN. Raises ServiceError ResourceNotFound."""
    for cluster in hyperpod_clusters(context).values():
        if name_or_arn in {cluster.name, cluster.arn}:
            found: HyperPodCluster = cluster
            try_again(context, found)
            return found
    raise ServiceError("ResourceNotFound", f"Cluster with name {name_or_arn} not found.")


def record_event(context: Context, cluster: HyperPodCluster, description: str, level: Level) -> None:
    """Add an event of the whole cluster."""
    with context.state.lock:
        record(context, cluster, "Cluster", description, level=level)


def _report_what_is_not_judged(context: Context, cluster: HyperPodCluster, groups: Iterable[Mapping[str, Any]]) -> None:
    for name in rules.types_without_source(groups):
        text = (
            f"Rehearsal: neither moto nor a restated source describes {name}; each of its nodes takes one address, and "
            "nothing is checked that depends on its processors, accelerators or network interfaces."
        )
        record(context, cluster, "Cluster", text, level="Warn")


def tag_map(tags: Iterable[Mapping[str, str]] | None) -> dict[str, str]:
    """Tags as a mapping."""
    return {tag["Key"]: tag["Value"] for tag in tags or []}


def tag_list(tags: Mapping[str, str]) -> list[dict[str, str]]:
    """Tags as SageMaker lists them."""
    return [{"Key": key, "Value": value} for key, value in sorted(tags.items())]


def unique_id(context: Context, kind: str, name: str) -> str:
    """Twelve lower-case characters, the same in every rehearsal, another for each resource ever made of that name."""
    store = context.state.store(SageMakerStore)
    with context.state.lock:
        generation = store.generations.get(f"{kind}/{name}", 0)
        store.generations[f"{kind}/{name}"] = generation + 1
    text = f"{context.account}/{context.region}/{kind}/{name}/{generation}"
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _new_cluster(context: Context, request: dict[str, Any]) -> HyperPodCluster:
    cluster_id = unique_id(context, "cluster", request["ClusterName"])
    return HyperPodCluster(
        name=request["ClusterName"],
        cluster_id=cluster_id,
        arn=context.arn("sagemaker", f"cluster/{cluster_id}"),
        created=context.clock.now(),
        request={
            "NodeRecovery": "Automatic",
            **{member: request[member] for member in CLUSTER_MEMBERS if member in request},
        },
        timeline=Timeline.begin(context.clock, "Creating"),
        tags=tag_map(request.get("Tags")),
    )


def _apply(
    context: Context, cluster: HyperPodCluster, after: Mapping[str, Any], planned: Mapping[str, list[Node]]
) -> None:
    cluster.timeline = Timeline.begin(context.clock, "Updating", (UPDATE_SECONDS, "InService"))
    kept: dict[str, InstanceGroup] = {}
    restricted = {str(spec["InstanceGroupName"]) for spec in after["RestrictedInstanceGroups"]}
    for spec in rules.groups_of(after):
        name = str(spec["InstanceGroupName"])
        group = cluster.groups.get(name) or InstanceGroup(spec={}, restricted=name in restricted)
        before, group.spec = group.spec, {"ThreadsPerCore": DEFAULT_THREADS_PER_CORE, **copy.deepcopy(dict(spec))}
        begin_minimum(context, group, before)
        del group.nodes[int(spec["InstanceCount"]) :]
        kept[name] = group
    gone = sorted(set(cluster.groups) - set(kept))
    cluster.groups = kept
    settle_nodes(context, cluster, planned)
    for name in gone:
        record(context, cluster, "InstanceGroup", f"Instance group {name} was deleted.", level="Info")
    _join(context, cluster)


def _groups_after(cluster: HyperPodCluster, request: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Both lists of groups as the request leaves them: a list that it does not hold stays."""
    present = cluster.as_requested()
    dropped = set(request.get("InstanceGroupsToDelete") or [])
    return {
        member: [
            dict(spec) for spec in request.get(member) or present[member] if spec["InstanceGroupName"] not in dropped
        ]
        for member in ("InstanceGroups", "RestrictedInstanceGroups")
    }


def _grows(before: InstanceGroup | None, after: Mapping[str, Any]) -> bool:
    if before is None:
        return True
    members = ("TrainingPlanArn", "LifeCycleConfig", "InstanceStorageConfigs")
    changed = any(before.spec.get(member) != after.get(member) for member in members)
    return changed or int(after["InstanceCount"]) > len(before.nodes)


def _require_settled(context: Context, cluster: HyperPodCluster) -> None:
    now = context.clock.now()
    status = cluster.timeline.at(now)
    if status != "InService":
        raise ServiceError("ConflictException", f"Cluster {cluster.name} cannot be updated while it is {status}.")
    checking = [node for node in cluster.nodes() if node.timeline.at(now) == "DeepHealthCheckInProgress"]
    if checking:
        raise ServiceError(
            "ConflictException",
            f"Cluster {cluster.name} cannot be updated while deep health checks run on {len(checking)} of its "
            "instances.",
        )


def _join(context: Context, cluster: HyperPodCluster) -> None:
    """Create for every execution role its HYPERPOD_LINUX access entry, as the service does."""
    eks = eks_cluster_by_arn(context, cluster.eks_cluster_arn) if cluster.eks_cluster_arn else None
    if eks is None:
        return
    now = context.clock.now()
    for group in cluster.groups.values():
        role = group.spec["ExecutionRole"]
        if role in eks.access_entries:
            continue
        eks.access_entries[role] = AccessEntry(
            principal_arn=role,
            arn=context.arn(
                "eks", f"access-entry/{eks.name}/role/{context.account}/{role.rsplit('/', 1)[-1]}/{uuid.uuid4()}"
            ),
            type=HYPERPOD_LINUX,
            username="system:node:{{SessionName}}",
            kubernetes_groups=[],
            created=now,
            modified=now,
            tags={},
            made_by=cluster.name,
        )


def _leave(context: Context, cluster: HyperPodCluster) -> None:
    eks = eks_cluster_by_arn(context, cluster.eks_cluster_arn) if cluster.eks_cluster_arn else None
    for principal, entry in list(eks.access_entries.items() if eks else ()):
        if eks and entry.made_by == cluster.name:
            del eks.access_entries[principal]


def _group_view(context: Context, group: InstanceGroup, cluster_status: str) -> dict[str, Any]:
    spec = group.spec
    of_nodes = group.nodes[0].image_release_version if group.nodes else IMAGE_RELEASE_VERSION
    version = spec.get("ImageReleaseVersion") or of_nodes
    view: dict[str, Any] = {
        "InstanceGroupName": group.name,
        "CurrentCount": group.current_count(context.clock.now()),
        "TargetCount": int(spec["InstanceCount"]),
        "ThreadsPerCore": DEFAULT_THREADS_PER_CORE,
        "Status": cluster_status if cluster_status in {"Creating", "Updating", "Failed", "Deleting"} else "InService",
        "CurrentImageReleaseVersion": version,
        "DesiredImageReleaseVersion": version,
    }
    copied = (
        "InstanceType",
        "LifeCycleConfig",
        "ExecutionRole",
        "ThreadsPerCore",
        "InstanceStorageConfigs",
        "OnStartDeepHealthChecks",
        "TrainingPlanArn",
        "OverrideVpcConfig",
        "ScheduledUpdateConfig",
        "CapacityRequirements",
        "NetworkInterface",
        "SlurmConfig",
    )
    view.update({member: spec[member] for member in copied if spec.get(member) is not None})
    if spec.get("MinInstanceCount") is not None:
        view["MinCount"] = spec["MinInstanceCount"]
    if spec.get("InstanceRequirements"):
        types = rules.types_of(spec)
        view["InstanceRequirements"] = {"CurrentInstanceTypes": types, "DesiredInstanceTypes": types}
    if spec.get("KubernetesConfig"):
        view["KubernetesConfig"] = _kubernetes_view(spec["KubernetesConfig"], group=True)
    if spec.get("ImageId"):
        view.update(CurrentImageId=spec["ImageId"], DesiredImageId=spec["ImageId"])
    if spec.get("AutoPatchConfig"):
        members = ("PatchingStrategy", "DeploymentConfig", "IdleWaitWindowInSeconds", "DrainPolicy")
        view["AutoPatchConfig"] = {
            name: spec["AutoPatchConfig"][name] for name in members if name in spec["AutoPatchConfig"]
        }
    plan = find_plan(context, spec["TrainingPlanArn"]) if spec.get("TrainingPlanArn") else None
    if plan is not None:
        view["TrainingPlanStatus"] = plan.entry.status
    return view


def _restricted_view(context: Context, group: InstanceGroup, cluster_status: str) -> dict[str, Any]:
    view = _group_view(context, group, cluster_status)
    members = (
        "InstanceGroupName",
        "CurrentCount",
        "TargetCount",
        "InstanceType",
        "ExecutionRole",
        "ThreadsPerCore",
        "InstanceStorageConfigs",
        "OnStartDeepHealthChecks",
        "Status",
        "TrainingPlanArn",
        "TrainingPlanStatus",
        "OverrideVpcConfig",
        "ScheduledUpdateConfig",
    )
    found = {member: view[member] for member in members if member in view}
    if group.spec.get("EnvironmentConfig"):
        found["EnvironmentConfig"] = group.spec["EnvironmentConfig"]
    return found


def _kubernetes_view(config: Mapping[str, Any], *, group: bool) -> dict[str, Any]:
    view: dict[str, Any] = {}
    for member in ("Labels", "Taints"):
        if config.get(member):
            view[f"Current{member}"] = config[member]
            view[f"Desired{member}"] = config[member]
    return view if group or view else {"CurrentLabels": {}}


def _living_nodes(context: Context, cluster: HyperPodCluster) -> list[Node]:
    if cluster.timeline.at(context.clock.now()) == "Deleting":
        return []
    return [node for _, group in sorted(cluster.groups.items()) for node in group.nodes]


def _status(context: Context, node: Node) -> str:
    return node.timeline.at(context.clock.now())


def _node_summary(context: Context, node: Node, *, named: bool = True) -> dict[str, Any]:
    status = _status(context, node)
    summary = {
        "InstanceGroupName": node.group,
        "InstanceId": node.instance_id,
        "NodeLogicalId": node.logical_id,
        "InstanceType": node.instance_type,
        "LaunchTime": node.launched,
        "LastSoftwareUpdateTime": node.updated or node.launched,
        "InstanceStatus": {"Status": status, "Message": node.problem if status == "Failure" else ""},
        "PrivateDnsHostname": _hostname(context, node),
        "CurrentImageReleaseVersion": node.image_release_version,
    }
    left_out = {"NodeLogicalId"} if not named else set[str]()
    if not node.private_ip:
        left_out.add("PrivateDnsHostname")
    return {member: value for member, value in summary.items() if member not in left_out}


def _node_details(context: Context, cluster: HyperPodCluster, node: Node) -> dict[str, Any]:
    spec = cluster.groups[node.group].spec
    copied = ("LifeCycleConfig", "OverrideVpcConfig", "ThreadsPerCore", "InstanceStorageConfigs")
    details = {
        **_node_summary(context, node),
        **{member: spec[member] for member in copied if spec.get(member) is not None},
        "PrivatePrimaryIp": node.private_ip,
        "Placement": {"AvailabilityZone": _zone_name(context, node), "AvailabilityZoneId": node.availability_zone_id},
        "DesiredImageReleaseVersion": node.image_release_version,
        "CapacityType": "Spot" if rules.is_spot(spec) else "OnDemand",
    }
    if spec.get("KubernetesConfig"):
        details["KubernetesConfig"] = _kubernetes_view(spec["KubernetesConfig"], group=False)
    return details


def _hostname(context: Context, node: Node) -> str:
    domain = "ec2.internal" if context.region == "us-east-1" else f"{context.region}.compute.internal"
    return f"ip-{node.private_ip.replace('.', '-')}.{domain}"


def _zone_name(context: Context, node: Node) -> str:
    subnet = Network(context).subnet(node.subnet_id)
    return str(subnet["AvailabilityZone"]) if subnet else ""


def _uses_plan(cluster: HyperPodCluster, plan_arn: str | None) -> bool:
    return plan_arn is None or any(group.spec.get("TrainingPlanArn") == plan_arn for group in cluster.groups.values())


def _policies_of(table: Mapping[str, Policy], cluster: HyperPodCluster) -> list[str]:
    return [str(policy.request["Name"]) for policy in table.values() if policy.cluster_arn == cluster.arn]


def _tags_of(context: Context, arn: str) -> dict[str, str]:
    for table in (hyperpod_clusters(context), scheduler_configs(context), compute_quotas(context)):
        for tagged in table.values():
            if tagged.arn == arn:
                tags: dict[str, str] = tagged.tags
                return tags
    if ":cluster/" in arn or ":cluster-scheduler-config/" in arn or ":compute-quota/" in arn:
        raise ServiceError("ResourceNotFound", f"Resource {arn} not found.")
    raise PassToMoto


def _report_failure(context: Context, cluster: HyperPodCluster, what: str, problem: str) -> None:
    text = f"Cluster {cluster.name} {what} failed"
    record(context, cluster, "Cluster", text, level="Error", metadata={"FailureMessage": problem})
