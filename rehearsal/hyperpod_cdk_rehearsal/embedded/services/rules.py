"""Rules of AWS for a HyperPod cluster, which moto does not have.

`check_cluster` refuses a request immediately, as CreateCluster and UpdateCluster do. `launch_problem` returns why the
instances of a group cannot start, which AWS finds only when it launches them. Texts that public sources quote are AWS's
own; additional information of the embedded AWS follows "Rehearsal:". Other texts have a similar wording.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from hyperpod_cdk_rehearsal.embedded.account import account_of
from hyperpod_cdk_rehearsal.embedded.context import Context
from hyperpod_cdk_rehearsal.embedded.operations import ServiceError
from hyperpod_cdk_rehearsal.embedded.published import (
    addons,
    instance_types,
    kubernetes,
    lustre,
    node_images,
    quotas,
    task_governance,
)
from hyperpod_cdk_rehearsal.embedded.services import kubernetes_store
from hyperpod_cdk_rehearsal.embedded.services.keys import find_key, key_problem
from hyperpod_cdk_rehearsal.embedded.services.network import Network
from hyperpod_cdk_rehearsal.embedded.services.principals import Role, find_role
from hyperpod_cdk_rehearsal.embedded.services.quotas import effective_value
from hyperpod_cdk_rehearsal.embedded.services.stores import (
    EksCluster,
    eks_cluster_by_arn,
    hyperpod_cluster_on,
    hyperpod_clusters,
)
from hyperpod_cdk_rehearsal.embedded.services.training_plans import Plan, find_plan

SERVICE_PRINCIPAL = "sagemaker.amazonaws.com"
AUTOSCALER_ACTIONS = ("sagemaker:BatchAddClusterNodes", "sagemaker:BatchDeleteClusterNodes")
BUCKET_PREFIX = "sagemaker-"
GIB_PER_TIB = 1024
EFA_ONLY = "efa-only"
AUTHENTICATION_MODES = ("API", "API_AND_CONFIG_MAP")

EFA_TEXT = (
    "EFA health checks did not run successfully. Ensure that your VPC and security groups are properly configured "
    "before "
    "attempting to create a new cluster."
)
NETWORK_TEXT = "Instance bootstrap failed likely because of customer network misconfiguration."
LIFECYCLE_TEXT = (
    "Lifecycle scripts did not run successfully. Ensure the scripts exist in provided S3 path, are accessible, and run "
    "without errors. Please see CloudWatch logs for lifecycle script execution details."
)
CAPACITY_TEXT = "We currently do not have sufficient capacity to launch new {type} instances. Please try again."
QUOTA_TEXT = (
    "The account-level service limit '{name}' is {value:g} {unit}, with current utilization of {used:g} {unit} and "
    "a request "
    "delta of {delta:g} {unit}. Please use AWS Service Quotas to request an increase for this quota. If AWS Service "
    "Quotas "
    "is not available, contact AWS support to request an increase for this quota."
)

NODE_ACTIONS = (
    "ec2:AssignPrivateIpAddresses",
    "ec2:AttachNetworkInterface",
    "ec2:CreateNetworkInterface",
    "ec2:CreateNetworkInterfacePermission",
    "ec2:DeleteNetworkInterface",
    "ec2:DeleteNetworkInterfacePermission",
    "ec2:DescribeDhcpOptions",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeInstances",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeTags",
    "ec2:DescribeVpcs",
    "ec2:DetachNetworkInterface",
    "ec2:ModifyNetworkInterfaceAttribute",
    "ec2:UnassignPrivateIpAddresses",
    "ecr:BatchCheckLayerAvailability",
    "ecr:BatchGetImage",
    "ecr:GetAuthorizationToken",
    "ecr:GetDownloadUrlForLayer",
    "eks-auth:AssumeRoleForPodIdentity",
)
"""What the developer guide's execution role of an EKS cluster may do, beside the managed policy."""

VOLUME_KEY_ACTIONS = ("kms:CreateGrant", "kms:DescribeKey")
"""What the execution role does with the key of a volume, in the name of HyperPod."""

IMMUTABLE_MEMBERS = (
    "ExecutionRole",
    "InstanceType",
    "ThreadsPerCore",
    "OverrideVpcConfig",
    "CapacityRequirements",
)
"""Members of an instance group that UpdateCluster refuses to change."""

Spec = Mapping[str, Any]


@dataclass(frozen=True)
class Demand:
    """One quota that a request draws on."""

    quota: quotas.Quota
    used: float
    delta: float
    unit: str = "Instances"


def check_cluster(
    context: Context, request: Spec, *, existing: str | None = None, groups: Sequence[Spec] | None = None
) -> None:
    """Refuse a CreateCluster, or an UpdateCluster of the cluster `existing`, as the service does at once.

    `request` is the whole cluster as it is to become; `groups` are those of its groups that are new or grow (default:
    all).
    Raises ServiceError.
    """
    changed = groups_of(request) if groups is None else list(groups)
    network = Network(context)
    _check_groups(request, context)
    eks = _check_orchestrator(context, request, existing)
    releases = {str(group["InstanceGroupName"]): group.get("ImageReleaseVersion") for group in changed}
    check_releases(context, eks.arn if eks else None, releases)
    restricted = {group["InstanceGroupName"] for group in request.get("RestrictedInstanceGroups") or []}
    continuous = request.get("NodeProvisioningMode") == "Continuous"
    for group in changed:
        _check_vpc(network, vpc_config(request, group), eks)
        _check_role(context, group)
        _check_lifecycle(group)
        is_restricted = group["InstanceGroupName"] in restricted
        _check_volumes(context, group, continuous=continuous, restricted=is_restricted)
    _check_plans(context, network, request, changed, existing)
    _check_quotas(context, request, existing)


def check_immutable(before: Spec, after: Spec) -> None:
    """Refuse a change of an instance group that the service does not make. Raises ServiceError.

    A flexible group may gain instance types but not lose one; a type and a list of types do not turn into each other.
    ThreadsPerCore left out is no change here: the service sets it back to its default.
    """
    name = after["InstanceGroupName"]
    if bool(before.get("InstanceRequirements")) != bool(after.get("InstanceRequirements")):
        raise _validation(
            f"Instance group '{name}': InstanceType and InstanceRequirements cannot replace each other. "
            "Create a new instance group instead."
        )
    for member in IMMUTABLE_MEMBERS:
        old, new = before.get(member), after.get(member)
        if member == "ThreadsPerCore" and new is None:
            continue
        if old != new:
            raise _validation(
                f"Instance group '{name}': {member} cannot be changed from {_shown(old)} to {_shown(new)}. "
                "Create a new instance group instead."
            )
    for kind in (True, False):
        old, new = _volume_key(before, root=kind), _volume_key(after, root=kind)
        if old and old != new:
            raise _validation(
                f"Instance group '{name}': VolumeKmsKeyId cannot be changed from {old} to {_shown(new)}. "
                "Create a new instance group instead."
            )
    lost = [item for item in types_of(before) if item not in types_of(after)]
    if lost:
        raise _validation(f"Instance group '{name}': instance types in use cannot be removed: {', '.join(lost)}.")


@dataclass(frozen=True)
class LaunchProblem:
    """Why nodes do not come up: ``has_instance`` where one was launched, ``is_script`` where its script failed.

    ``is_stated`` where the account file states it under ``nodes``.
    """

    message: str
    has_instance: bool = False
    is_script: bool = False
    is_stated: bool = False


def launch_problem(context: Context, request: Spec, group: Spec, taken: Mapping[str, int]) -> LaunchProblem | None:
    """Why the instances of a group do not become nodes, in the words of HyperPod's failure message; else None.

    `taken` is how many addresses other nodes hold, by subnet.
    """
    if group["InstanceCount"] == 0 or not _launches_now(context, group):
        return None
    network, role = Network(context), find_role(context, group["ExecutionRole"])
    subnets = placement(context, network, request, group)
    before: tuple[Callable[[], str | None], ...] = (
        lambda: _capacity_problem(group, subnets),
        lambda: _address_problem(group, subnets, taken),
        lambda: _permission_problem(role, group),
    )
    message = next((problem for check in before if (problem := check())), None)
    if message:
        return LaunchProblem(message)
    booting: tuple[Callable[[], str | None], ...] = (
        lambda: _route_problem(network, subnets),
        lambda: _egress_problem(network, vpc_config(request, group)["SecurityGroupIds"]),
        lambda: _efa_problem(network, request, group),
    )
    message = next((problem for check in booting if (problem := check())), None)
    if message:
        return LaunchProblem(message, has_instance=True)
    message = _script_problem(context, role, group)
    return LaunchProblem(message, has_instance=True, is_script=True) if message else None


def groups_of(request: Spec) -> list[Spec]:
    """The groups of a cluster, restricted ones last."""
    return [*(request.get("InstanceGroups") or []), *(request.get("RestrictedInstanceGroups") or [])]


def vpc_config(request: Spec, group: Spec) -> Mapping[str, list[str]]:
    """The network of a group: its own, else the cluster's."""
    found: Mapping[str, list[str]] = (
        group.get("OverrideVpcConfig") or request.get("VpcConfig") or {"Subnets": [], "SecurityGroupIds": []}
    )
    return found


def types_of(group: Spec) -> list[str]:
    """The instance types that a group may use, most wanted first."""
    if group.get("InstanceType"):
        return [str(group["InstanceType"])]
    return [str(item) for item in (group.get("InstanceRequirements") or {}).get("InstanceTypes", [])]


def is_spot(group: Spec) -> bool:
    """Whether a group asks for Spot capacity."""
    return "Spot" in (group.get("CapacityRequirements") or {})


def addresses_per_node(group: Spec, instance_type: str) -> int:
    """Return how many addresses a node of a group takes from its subnet; 1 where no source says it of the type."""
    found = instance_types.described(instance_type)
    if found is None:
        return 1
    efa_only = (group.get("NetworkInterface") or {}).get("InterfaceType") == EFA_ONLY
    return found.addresses_per_node(efa_only=efa_only)


def types_without_source(groups: Iterable[Spec]) -> list[str]:
    """Return the instance types of groups about which no source says anything, so that nothing is judged by them."""
    named = dict.fromkeys(name for group in groups for name in types_of(group))
    return [name for name in named if instance_types.described(name) is None]


def placement(context: Context, network: Network, request: Spec, group: Spec) -> list[dict[str, Any]]:
    """The subnets of a group where its capacity is: its plan's zone, or the zones that the account file states."""
    subnets = [subnet for name in vpc_config(request, group)["Subnets"] if (subnet := network.subnet(name))]
    plan = find_plan(context, group["TrainingPlanArn"]) if group.get("TrainingPlanArn") else None
    if plan is not None:
        return [subnet for subnet in subnets if subnet["AvailabilityZoneId"] == plan.entry.availability_zone_id]
    capacity = account_of(context).capacity
    zones = {zone for name in types_of(group) if name in capacity for zone in capacity[name]}
    if all(name in capacity for name in types_of(group)):
        return [subnet for subnet in subnets if subnet["AvailabilityZoneId"] in zones]
    return subnets


def _check_groups(request: Spec, context: Context) -> None:
    groups = groups_of(request)
    if not groups:
        raise _validation("At least one of InstanceGroups or RestrictedInstanceGroups must be specified.")
    twice = [name for name, times in Counter(group["InstanceGroupName"] for group in groups).items() if times > 1]
    if twice:
        raise _validation(f"Instance group names must be unique, got more than one of: {', '.join(twice)}.")
    _check_restricted(request)
    for group in groups:
        _check_group(group, continuous=request.get("NodeProvisioningMode") == "Continuous")
    if is_autoscaled(request):
        _check_autoscaling(context, request)


def _check_autoscaling(context: Context, request: Spec) -> None:
    recovery = request.get("NodeRecovery", "Automatic")
    if recovery != "Automatic":
        raise _validation(f"AutoScaling requires NodeRecovery Automatic, got {recovery} in {context.region}.")
    if request.get("NodeProvisioningMode") != "Continuous":
        raise _validation("AutoScaling requires NodeProvisioningMode Continuous.")
    arn = request.get("ClusterRole")
    if not arn:
        raise _validation("ClusterRole is required when AutoScaling is enabled.")
    role = find_role(context, arn)
    if role is None or not role.trusts(kubernetes.KARPENTER_PRINCIPAL):
        raise _validation(
            f"Could not assume role {arn}. Please ensure that the role exists and allows principal "
            f"'{kubernetes.KARPENTER_PRINCIPAL}' to assume the role."
        )
    clusters = context.arn("sagemaker", "cluster/abcdef012345")
    missing = [action for action in AUTOSCALER_ACTIONS if not role.allows(action, clusters)]
    if missing:
        raise _validation(f"The role {arn} is not authorized to perform: {', '.join(missing)}")


def check_cluster_role(before: Spec, after: Spec) -> None:
    """Refuse another cluster role while autoscaling is on, before and after. Raises ServiceError."""
    if is_autoscaled(before) and is_autoscaled(after) and before.get("ClusterRole") != after.get("ClusterRole"):
        raise _validation("ClusterRole cannot be updated while autoscaling is enabled.")


def is_autoscaled(request: Spec) -> bool:
    """Whether Karpenter scales the cluster."""
    return bool((request.get("AutoScaling") or {}).get("Mode") == "Enable")


def _check_group(group: Spec, *, continuous: bool) -> None:
    name = group["InstanceGroupName"]
    types = types_of(group)
    if bool(group.get("InstanceType")) == bool(group.get("InstanceRequirements")):
        raise _validation(f"Instance group '{name}': specify exactly one of InstanceType and InstanceRequirements.")
    if len(set(types)) != len(types):
        raise _validation(f"Instance group '{name}': InstanceRequirements must not name an instance type twice.")
    needs_continuous = {
        "InstanceRequirements": group.get("InstanceRequirements"),
        "MinInstanceCount": group.get("MinInstanceCount"),
        "CapacityRequirements Spot": is_spot(group),
    }
    for member, used in needs_continuous.items():
        if used and not continuous:
            raise _validation(f"Instance group '{name}': {member} requires NodeProvisioningMode Continuous.")
    if (group.get("MinInstanceCount") or 0) > group["InstanceCount"]:
        raise _validation(
            f"Instance group '{name}': MinInstanceCount {group['MinInstanceCount']} must not be greater than "
            f"InstanceCount {group['InstanceCount']}."
        )
    for instance_type in types:
        _check_type(group, instance_type)
    kubernetes_config = group.get("KubernetesConfig") or {}
    if group.get("InstanceRequirements") and kubernetes.PARTITION_LABEL in (kubernetes_config.get("Labels") or {}):
        raise _validation(f"Instance group '{name}': MIG is not supported with InstanceRequirements.")
    if group.get("OnStartDeepHealthChecks") and kubernetes_config.get("Taints"):
        raise _validation(f"Instance group '{name}': Taints are not supported with OnStartDeepHealthChecks.")
    if group.get("TrainingPlanArn") and is_spot(group):
        raise _validation(f"Instance group '{name}': TrainingPlanArn is not supported with Spot capacity.")


def _check_type(group: Spec, instance_type: str) -> None:
    name = group["InstanceGroupName"]
    found = instance_types.described(instance_type)
    if found is None:
        return
    if group.get("ThreadsPerCore") == 2 and found.threads_per_core == 1:
        raise _validation(f"Instance group '{name}': ThreadsPerCore 2 is not supported for {instance_type}.")
    if group.get("NetworkInterface") and not found.has_efa:
        raise _validation(f"Instance group '{name}': NetworkInterface is not supported for {instance_type}.")
    if group.get("OnStartDeepHealthChecks") and not instance_types.has_deep_health_checks(instance_type):
        raise _validation(f"Instance group '{name}': OnStartDeepHealthChecks is not supported for {instance_type}.")


def _check_orchestrator(context: Context, request: Spec, existing: str | None) -> EksCluster | None:
    arn = ((request.get("Orchestrator") or {}).get("Eks") or {}).get("ClusterArn")
    if arn is None:
        return None
    if not request.get("VpcConfig"):
        raise _validation("VpcConfig is required for a cluster that is orchestrated by Amazon EKS.")
    eks = eks_cluster_by_arn(context, arn)
    if eks is None or eks.timeline.at(context.clock.now()) not in {"ACTIVE", "UPDATING"}:
        raise _validation(f"The EKS cluster {arn} does not exist or is not ACTIVE.")
    if eks.authentication_mode not in AUTHENTICATION_MODES:
        raise _validation(
            f"The authentication mode of the EKS cluster {arn} is {eks.authentication_mode}; HyperPod requires "
            f"{' or '.join(AUTHENTICATION_MODES)} to create its access entries."
        )
    allowed = kubernetes.OF_HYPERPOD
    if eks.version not in allowed:
        raise _validation(
            f"Kubernetes version {eks.version} of the EKS cluster {arn} is not supported by HyperPod; supported "
            "versions "
            f"are {allowed[0]} to {allowed[-1]}."
        )
    other = hyperpod_cluster_on(context, arn)
    if other is not None and other.name != existing:
        raise ServiceError(
            "ResourceInUse", f"The EKS cluster {arn} already orchestrates the HyperPod cluster {other.name}."
        )
    _check_dependencies(context, eks)
    return eks


def check_releases(context: Context, eks_cluster_arn: str | None, releases: Mapping[str, str | None]) -> None:
    """Refuse a release of the AMI that AWS's release notes list for other versions of Kubernetes only.

    The release notes list releases by version of Kubernetes; the text of the refusal is of no document.
    """
    eks = eks_cluster_by_arn(context, eks_cluster_arn) if eks_cluster_arn else None
    for group, release in releases.items():
        if eks is not None and release and node_images.is_of_others(release, eks.version):
            raise _validation(
                f"Instance group '{group}': ImageReleaseVersion {release} is not available for Kubernetes version "
                f"{eks.version}."
            )


def _check_dependencies(context: Context, eks: EksCluster) -> None:
    installed = kubernetes_store.releases(context, eks.name)
    if not any(release.is_of(kubernetes_store.HYPERPOD_CHART) for release in installed):
        raise _validation(
            f"The EKS cluster {eks.arn} is missing one or more required dependencies. Install the HyperPod Helm chart "
            "before you create the cluster."
        )
    cni = eks.addons.get(addons.VPC_CNI)
    problem = task_governance.vpc_cni(cni.version) if cni else None
    if problem:
        raise _validation(f"The Amazon VPC CNI add-on of the EKS cluster {eks.arn} {problem}.")


def _check_vpc(network: Network, config: Mapping[str, list[str]], eks: EksCluster | None) -> None:
    for group_id in config["SecurityGroupIds"]:
        group = network.security_group(group_id)
        if group is None:
            raise _validation(f"The security group '{group_id}' does not exist.")
        if eks is not None and group["VpcId"] != eks.vpc_id:
            raise _validation(f"The security group '{group_id}' is not in the VPC {eks.vpc_id} of the EKS cluster.")
    for subnet_id in config["Subnets"]:
        subnet = network.subnet(subnet_id)
        if subnet is None:
            raise _validation(f"The subnet ID '{subnet_id}' does not exist.")
        if eks is not None and subnet["VpcId"] != eks.vpc_id:
            raise _validation(f"The subnet '{subnet_id}' is not in the VPC {eks.vpc_id} of the EKS cluster.")
        if network.is_public(subnet):
            raise _validation(
                f"The subnet '{subnet_id}' is public: it has a route to an internet gateway. HyperPod requires "
                "private subnets."
            )


def _check_role(context: Context, group: Spec) -> None:
    arn = group["ExecutionRole"]
    role = find_role(context, arn)
    if role is None or not role.trusts(SERVICE_PRINCIPAL):
        raise _validation(
            f"Could not assume role {arn}. Please ensure that the role exists and allows principal "
            f"'{SERVICE_PRINCIPAL}' "
            "to assume the role."
        )
    if not role.allows("ec2:DescribeSubnets"):
        raise _validation(
            f"Unable to retrieve subnets. The role {arn} is not authorized to perform: ec2:DescribeSubnets"
        )


def _check_lifecycle(group: Spec) -> None:
    config = group.get("LifeCycleConfig") or {}
    if config.get("OnCreate") and config.get("OnInitComplete"):
        raise _validation(
            f"Instance group '{group['InstanceGroupName']}': specify one of OnCreate and OnInitComplete, not both."
        )
    uri = config.get("SourceS3Uri")
    if uri and not uri.startswith(f"s3://{BUCKET_PREFIX}"):
        raise _validation(
            f"Instance group '{group['InstanceGroupName']}': LifeCycleConfig.SourceS3Uri must start with "
            f"s3://{BUCKET_PREFIX}, got {uri}"
        )


def _check_volumes(context: Context, group: Spec, *, continuous: bool, restricted: bool) -> None:
    where = f"Instance group '{group['InstanceGroupName']}'"
    volumes = _volumes(group)
    kinds = Counter("root" if volume.get("RootVolume") else "secondary" for volume in volumes)
    for kind, times in kinds.items():
        if times > 1:
            raise _validation(f"{where}: specify at most one {kind} volume, got {times}.")
    for volume in volumes:
        key = volume.get("VolumeKmsKeyId")
        if volume.get("RootVolume") and (volume.get("VolumeSizeInGB") or not key):
            raise _validation(f"{where}: RootVolume requires VolumeKmsKeyId and does not take VolumeSizeInGB.")
        if not volume.get("RootVolume") and not volume.get("VolumeSizeInGB"):
            raise _validation(f"{where}: VolumeSizeInGB is required for a secondary volume.")
        if key and not continuous:
            raise _validation(f"{where}: VolumeKmsKeyId requires NodeProvisioningMode Continuous.")
        # developer guide, smcluster-cmk: "Restricted instance groups don't support customer managed keys."
        if key and restricted:
            raise _validation(f"{where}: VolumeKmsKeyId is not supported for restricted instance groups.")
        if key:
            _check_volume_key(context, group, key)


def _check_volume_key(context: Context, group: Spec, key_id: str) -> None:
    where = f"Instance group '{group['InstanceGroupName']}'"
    problem = key_problem(context, key_id)
    if problem:
        raise _validation(f"{where}: the KMS key {key_id} {problem}.")
    key, role = find_key(context, key_id), find_role(context, group["ExecutionRole"])
    if key is None or role is None:
        return
    via = f"sagemaker.{context.region}.amazonaws.com"
    missing = [action for action in VOLUME_KEY_ACTIONS if not key.lets_role(role, action, via=via)]
    if missing:
        raise _validation(
            f"{where}: the role {role.arn} is not authorized to perform {', '.join(missing)} on the KMS key {key.arn}. "
            "Rehearsal: neither the key's policy nor, where that leaves it to IAM, a policy of the role allows it."
        )


def _check_plans(
    context: Context, network: Network, request: Spec, changed: Iterable[Spec], existing: str | None
) -> None:
    wanted: Counter[str] = Counter()
    for group in groups_of(request):
        if group.get("TrainingPlanArn"):
            wanted[group["TrainingPlanArn"]] += group["InstanceCount"]
    for group in changed:
        arn = group.get("TrainingPlanArn")
        if not arn:
            continue
        plan = find_plan(context, arn, without_cluster=existing)
        if plan is None:
            raise _validation(f"Training plan {arn} does not exist in account {context.account} in {context.region}.")
        _check_plan(plan, group, wanted[arn])
        zones = sorted(
            {
                subnet["AvailabilityZoneId"]
                for name in vpc_config(request, group)["Subnets"]
                if (subnet := network.subnet(name))
            }
        )
        if plan.entry.availability_zone_id not in zones:
            raise _validation(
                f"No subnets in the capacity AZ. Training plan {arn} is in {plan.entry.availability_zone_id}, the "
                "subnets of "
                f"instance group '{group['InstanceGroupName']}' are in {', '.join(zones)}."
            )


def _check_plan(plan: Plan, group: Spec, wanted: int) -> None:
    entry = plan.entry
    if entry.status not in {"Scheduled", "Active"}:
        raise _validation(f"Training plan {plan.arn} is {entry.status}; it must be Scheduled or Active.")
    if "hyperpod-cluster" not in entry.target_resources:
        raise _validation(
            f"Training plan {plan.arn} is for {', '.join(entry.target_resources)}; it cannot be used for "
            "hyperpod-cluster."
        )
    if types_of(group) != [entry.instance_type]:
        raise _validation(
            f"Training plan {plan.arn} is for {entry.instance_type}, instance group '{group['InstanceGroupName']}' "
            "uses "
            f"{', '.join(types_of(group))}."
        )
    if wanted > plan.available:
        raise ServiceError(
            "ResourceLimitExceeded",
            f"Training plan {plan.arn} has {plan.available} available instances of {entry.instance_count}, "
            f"the request needs {wanted}.",
        )


def _check_quotas(context: Context, request: Spec, existing: str | None) -> None:
    for demand in _demands(context, request, existing):
        value = effective_value(context, demand.quota)
        if demand.delta > 0 and demand.used + demand.delta > value:
            text = QUOTA_TEXT.format(
                name=demand.quota.name, value=value, unit=demand.unit, used=demand.used, delta=demand.delta
            )
            raise ServiceError("ResourceLimitExceeded", text)


def _demands(context: Context, request: Spec, existing: str | None) -> Iterable[Demand]:
    clusters = hyperpod_clusters(context)
    before = _usage(group.spec for group in clusters[existing].groups.values()) if existing in clusters else Counter()
    others = Counter[str]()
    for cluster in clusters.values():
        if cluster.timeline.final != "Failed":
            others.update(_usage(group.spec for group in cluster.groups.values()))
    after = _usage(groups_of(request))
    rows = {row.name: row for row in _usage_rows(groups_of(request))}
    for name, row in rows.items():
        yield Demand(quota=row, used=others[name], delta=after[name] - before[name])
    for limit in (quotas.INSTANCES_OF_A_CLUSTER, quotas.SPOT_INSTANCES_OF_A_CLUSTER):
        row = quotas.get("sagemaker", limit)
        yield Demand(quota=row, used=before[row.name], delta=after[row.name] - before[row.name])
    largest = max((_volume_gb(group) for group in groups_of(request)), default=0)
    yield Demand(quota=quotas.get("sagemaker", quotas.VOLUME_SIZE), used=0, delta=largest, unit="Gigabytes")
    stood = _restricted_tib(clusters[existing].as_requested()) if existing in clusters else 0.0
    yield Demand(
        quota=quotas.get("sagemaker", quotas.RESTRICTED_LUSTRE),
        used=sum(_restricted_tib(cluster.as_requested()) for cluster in clusters.values()),
        delta=_restricted_tib(request) - stood,
        unit="Terabytes",
    )


def _usage(groups: Iterable[Spec]) -> Counter[str]:
    """Instances by the name of each quota that counts them; a flexible group may take all of any of its types."""
    used: Counter[str] = Counter()
    for group in groups:
        names = {row.name for row in _usage_rows([group])}
        names.add(quotas.INSTANCES_OF_A_CLUSTER)
        if is_spot(group):
            names.add(quotas.SPOT_INSTANCES_OF_A_CLUSTER)
        used.update(dict.fromkeys(names, int(group["InstanceCount"])))
    return used


def _usage_rows(groups: Iterable[Spec]) -> Iterable[quotas.Quota]:
    for group in groups:
        for instance_type in types_of(group):
            yield quotas.cluster_spot_usage(instance_type) if is_spot(group) else quotas.cluster_usage(instance_type)
        yield quotas.get("sagemaker", quotas.INSTANCES)
        if is_spot(group):
            yield quotas.get("sagemaker", quotas.SPOT_INSTANCES)


def _restricted_tib(request: Spec) -> float:
    systems = [_file_system(group) for group in request.get("RestrictedInstanceGroups") or []]
    systems.append(_file_system(_shared_environment(request)))
    return float(sum(system["SizeInGiB"] for system in systems if system)) / GIB_PER_TIB


def _shared_environment(request: Spec) -> Spec:
    found: Spec = (request.get("RestrictedInstanceGroupsConfig") or {}).get("SharedEnvironmentConfig") or {}
    return {"EnvironmentConfig": found}


def _file_system(holder: Spec) -> Spec | None:
    found: Spec | None = (holder.get("EnvironmentConfig") or {}).get("FSxLustreConfig")
    return found


def _check_restricted(request: Spec) -> None:
    groups: list[Spec] = request.get("RestrictedInstanceGroups") or []
    shared = _file_system(_shared_environment(request))
    if request.get("RestrictedInstanceGroupsConfig") and not groups:
        raise _validation("RestrictedInstanceGroupsConfig requires RestrictedInstanceGroups.")
    for group in groups:
        own = _file_system(group)
        if own is None and shared is None:
            raise _validation(
                f"Restricted instance group '{group['InstanceGroupName']}': EnvironmentConfig.FSxLustreConfig is "
                "required without a SharedEnvironmentConfig."
            )
        _check_file_system(own or shared or {}, f"Restricted instance group '{group['InstanceGroupName']}'")


def _check_file_system(system: Spec, where: str) -> None:
    size, throughput = system["SizeInGiB"], system["PerUnitStorageThroughput"]
    for member, problem in (
        ("PerUnitStorageThroughput", lustre.throughput_refusal(throughput)),
        ("SizeInGiB", lustre.capacity_refusal(size)),
    ):
        if problem:
            raise _validation(f"{where}: FSxLustreConfig.{member} {problem}.")


def _volume_gb(group: Spec) -> int:
    return max((int(volume.get("VolumeSizeInGB") or 0) for volume in _volumes(group)), default=0)


def _volumes(group: Spec) -> list[Mapping[str, Any]]:
    configs = group.get("InstanceStorageConfigs") or []
    return [storage["EbsVolumeConfig"] for storage in configs if storage.get("EbsVolumeConfig")]


def _volume_key(group: Spec, *, root: bool) -> str | None:
    keys = (volume.get("VolumeKmsKeyId") for volume in _volumes(group) if bool(volume.get("RootVolume")) is root)
    return next(keys, None)


def _launches_now(context: Context, group: Spec) -> bool:
    plan = find_plan(context, group["TrainingPlanArn"]) if group.get("TrainingPlanArn") else None
    return plan is None or plan.has_started


def _capacity_problem(group: Spec, subnets: Sequence[Spec]) -> str | None:
    sold_whole = next((name for name in types_of(group) if name in instance_types.WITH_ULTRASERVERS), None)
    if sold_whole and not group.get("TrainingPlanArn"):
        return f"{CAPACITY_TEXT.format(type=sold_whole)} Rehearsal: it is sold with training plans only."
    if subnets:
        return None
    return (
        f"{CAPACITY_TEXT.format(type=types_of(group)[0])} Rehearsal: no subnet of instance group "
        f"'{group['InstanceGroupName']}' is in a zone where the account file gives it capacity."
    )


def _route_problem(network: Network, subnets: Iterable[Spec]) -> str | None:
    for subnet in subnets:
        if not network.reaches_s3(subnet):
            return f"{NETWORK_TEXT} Rehearsal: the route table of {subnet['SubnetId']} has no S3 gateway endpoint."
        if not network.reaches_aws(subnet):
            return (
                f"{NETWORK_TEXT} Rehearsal: {subnet['SubnetId']} has neither a default route to a NAT gateway nor "
                "interface endpoints for the services that nodes call."
            )
    return None


def _egress_problem(network: Network, groups: Sequence[str]) -> str | None:
    if network.lets_out(groups):
        return None
    return f"{NETWORK_TEXT} Rehearsal: no egress rule of {', '.join(groups)} allows HTTPS to any address."


def _address_problem(group: Spec, subnets: Sequence[Spec], taken: Mapping[str, int]) -> str | None:
    each = max(addresses_per_node(group, name) for name in types_of(group))
    fitting = sum(
        max(subnet["AvailableIpAddressCount"] - taken.get(subnet["SubnetId"], 0), 0) // each for subnet in subnets
    )
    if fitting >= group["InstanceCount"]:
        return None
    return (
        f"Insufficient free IP addresses. Rehearsal: instance group '{group['InstanceGroupName']}' needs "
        f"{group['InstanceCount']} x {each} addresses, its subnets have room for {fitting} such nodes."
    )


def _efa_problem(network: Network, request: Spec, group: Spec) -> str | None:
    found = [instance_types.described(name) for name in types_of(group)]
    if not any(each is not None and each.has_efa for each in found):
        return None
    groups = vpc_config(request, group)["SecurityGroupIds"]
    if any(network.allows_itself(group_id) for group_id in groups):
        return None
    return (
        f"{EFA_TEXT} Rehearsal: none of {', '.join(groups)} has an ingress rule and an egress rule for all traffic "
        "that "
        "name the group itself."
    )


def _permission_problem(role: Role | None, group: Spec) -> str | None:
    missing = [action for action in NODE_ACTIONS if not role.allows(action)] if role else []
    if not missing:
        return None
    return f"The role {group['ExecutionRole']} is not authorized to perform: {', '.join(missing)}"


def _script_problem(context: Context, role: Role | None, group: Spec) -> str | None:
    config = group.get("LifeCycleConfig") or {}
    script = config.get("OnCreate") or config.get("OnInitComplete")
    if not config.get("SourceS3Uri") or not script:
        return None
    bucket, _, prefix = config["SourceS3Uri"].removeprefix("s3://").partition("/")
    key = "/".join(part for part in (prefix.strip("/"), script) if part)
    cause = _script_cause(context, role, group, bucket, key)
    return f"{LIFECYCLE_TEXT} Rehearsal: {cause}." if cause else None


def _script_cause(context: Context, role: Role | None, group: Spec, bucket: str, key: str) -> str | None:
    for action, resource in (("s3:ListBucket", bucket), ("s3:GetObject", f"{bucket}/{key}")):
        if role and not role.allows(action, f"arn:{context.partition}:s3:::{resource}"):
            return f"the role {group['ExecutionRole']} is not authorized to perform {action} on {resource}"
    try:
        body = context.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
    except ClientError:
        return f"s3://{bucket}/{key} does not exist"
    if not body.startswith(b"#!"):
        return f"s3://{bucket}/{key} does not begin with #!"
    return f"s3://{bucket}/{key} has Windows line ends (CRLF)" if b"\r\n" in body else None


def _validation(message: str) -> ServiceError:
    return ServiceError("ValidationException", message)


def _shown(value: Any) -> str:
    return "none" if value is None else str(value)
