"""Requests of SageMaker's CreateCluster, as people keep them for the AWS CLI, and answers of DescribeCluster."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from hyperpod_cdk.catalog import hyperpod
from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.config.instance_group import DEFAULT_SCRIPT
from hyperpod_cdk.importing.document import Node
from hyperpod_cdk.importing.draft import Draft, Group, tags_of

_MIXED_UP = "a HyperPod cluster on EKS has Orchestrator.Eks.ClusterArn"
_OF_ANSWERS = (
    *("ClusterArn", "ClusterStatus", "CreationTime", "FailureMessage", "ResponseMetadata"),
    *("CurrentCount", "TargetStateCount", "Status", "TrainingPlanStatus", "SoftwareUpdateStatus"),
    *("ActiveOperations", "ActiveSoftwareUpdateConfig", "ImageVersionStatus", "CurrentImageId"),
    *("CurrentImageReleaseVersion", "CurrentLabels", "CurrentTaints", "CurrentPatchSchedule"),
)
"""Members of DescribeCluster that show a state and are not part of a request."""

_BATCHES: Mapping[str, str] = {"INSTANCE_COUNT": "instances", "CAPACITY_PERCENTAGE": "percent"}


def is_cluster(node: Node) -> bool:
    """Return whether a document is a request of CreateCluster or an answer of DescribeCluster."""
    return bool({"InstanceGroups", "RestrictedInstanceGroups"} & set(node.value)) and "Parameters" not in node.value


def is_answer(node: Node) -> bool:
    """Return whether it is an answer of DescribeCluster."""
    return "ClusterStatus" in node.value or "ClusterArn" in node.value


def read_cluster(node: Node, draft: Draft) -> None:
    """Fill a draft from a request or an answer."""
    log = draft.log
    node.asked.update(_OF_ANSWERS if is_answer(node) else ())
    draft.network["existing"] = {}
    if not _read_orchestrator(node, draft):
        return
    draft.hyperpod["cluster_name"] = node.text("ClusterName")
    if arn := (node.value.get("ClusterArn") if is_answer(node) else None):
        draft.home(str(arn), node.place("ClusterArn"))
    _read_settings(node, draft)
    vpc = node.section("VpcConfig")
    subnets: list[str] = []
    if vpc is None:
        log.refuse(node.place("VpcConfig"), f"is missing; {_MIXED_UP} and VpcConfig with its subnets")
    else:
        subnets = vpc.texts("Subnets")
        for index, each in enumerate(subnets):
            draft.subnet(each, vpc.place("Subnets", index))
        draft.security_groups(vpc.texts("SecurityGroupIds"), vpc.place("SecurityGroupIds"))
        vpc.rest()
    security_groups = [] if vpc is None else vpc.texts("SecurityGroupIds")
    for row in node.rows("InstanceGroups"):
        read_group(row, draft, subnets=subnets, security_groups=security_groups)
    for row in node.rows("RestrictedInstanceGroups"):
        read_group(row, draft, subnets=subnets, security_groups=security_groups, is_restricted=True)
    _read_roles(draft, node)
    tags_of(
        [(tag.text("Key") or "", tag.text_or_empty("Value") or "", tag.place()) for tag in node.rows("Tags")],
        draft,
    )
    node.rest()


def _read_orchestrator(node: Node, draft: Draft) -> bool:
    orchestrator = node.section("Orchestrator")
    eks = None if orchestrator is None else orchestrator.section("Eks")
    if orchestrator is None or eks is None:
        draft.log.refuse(
            node.place("Orchestrator"),
            f"must be Eks, got {'Slurm' if orchestrator is None or orchestrator.has('Slurm') else 'another'}"
            f"{' (a cluster without an orchestrator is on Slurm)' if orchestrator is None else ''}; this library is for"
            f" HyperPod on EKS, and {_MIXED_UP}",
        )
        return False
    arn = eks.text("ClusterArn")
    if arn is not None:
        at = eks.place("ClusterArn")
        draft.home(arn, at)
        if ":cluster/" not in arn:
            draft.log.refuse(at, f"must be the ARN of an EKS cluster, got {arn}")
        draft.eks["existing"] = {"cluster_name": arn.rpartition("/")[2]}
    orchestrator.rest()
    eks.rest()
    return True


def _read_settings(node: Node, draft: Draft) -> None:
    section, log = draft.hyperpod, draft.log
    recovery = node.word("NodeRecovery", hyperpod.NODE_RECOVERY)
    if recovery == "none":
        draft.no_recovery(node.place("NodeRecovery"))
    elif not node.has("NodeRecovery"):
        log.note(
            "changed",
            "NodeRecovery is left out; the environment says Automatic",
            at=node.place("NodeRecovery"),
            path="hyperpod.node_recovery",
        )
    if node.word("NodeProvisioningMode", hyperpod.PROVISIONING) != "continuous":
        draft.all_or_nothing(node.place("NodeProvisioningMode"))
    tiered = node.section("TieredStorageConfig")
    if tiered is not None:
        is_on, percent = tiered.text("Mode") == "Enable", tiered.number("InstanceMemoryAllocationPercentage")
        section["tiered_checkpointing"] = (
            {key: value for key, value in {"memory_percent": percent}.items() if value} if is_on else {"enabled": False}
        )
        tiered.rest()
    scaling = node.section("AutoScaling")
    if scaling is not None:
        section["autoscaling"] = "karpenter" if scaling.text("Mode") == "Enable" else "disabled"
        scaling.asked.update(("AutoScalerType", "Status", "FailureMessage"))
        scaling.rest()
    if node.has("ClusterRole") and not draft.known.is_takeover:
        log.note(
            "changed",
            f"{node.text('ClusterRole')} is not used: the environment creates a role for Karpenter",
            at=node.place("ClusterRole"),
        )
    shared = node.section("RestrictedInstanceGroupsConfig")
    if shared is not None:
        _read_shared_environment(shared, draft)


def _read_shared_environment(shared: Node, draft: Draft) -> None:
    config = shared.section("SharedEnvironmentConfig")
    if config is None:
        return
    config.asked.update(("CurrentFSxLustreConfig", "CurrentFSxLustreDeletionPolicy"))
    prefix = "Desired" if config.has("DesiredFSxLustreConfig") else ""
    lustre = config.section(f"{prefix}FSxLustreConfig")
    kept = config.word(f"{prefix}FSxLustreDeletionPolicy", hyperpod.RESTRICTED_LUSTRE_DELETION_POLICIES)
    if lustre is not None:
        draft.hyperpod["restricted_environment"] = {
            "lustre": _service_lustre(lustre),
            **({"when_unused": kept} if kept and kept != "keep" else {}),
        }
    config.rest()


def _service_lustre(node: Node) -> dict[str, int]:
    sizes = {
        "capacity_gib": node.number("SizeInGiB"),
        "throughput_mbps_per_tib": node.number("PerUnitStorageThroughput"),
    }
    node.rest()
    return {key: value for key, value in sizes.items() if value is not None}


def read_group(
    row: Node,
    draft: Draft,
    *,
    subnets: Sequence[str],
    security_groups: Sequence[str] = (),
    script: str | None = None,
    is_restricted: bool = False,
) -> Group | None:
    """Read an instance group; ``subnets`` and ``security_groups`` are the cluster's. None if it is refused.

    ``script`` is what a new node runs if the group names no script.
    """
    log = draft.log
    is_living = row.has("CurrentCount") or row.has("TargetCount")
    row.asked.update(_OF_ANSWERS if is_living else ())
    name = row.text("InstanceGroupName")
    count = row.number("TargetCount" if is_living else "InstanceCount")
    one = row.text("InstanceType")
    requirements = row.section("InstanceRequirements")
    types = [one] if one else []
    if requirements is not None:
        types = requirements.texts("InstanceTypes")
        requirements.asked.update(("CurrentInstanceTypes", "DesiredInstanceTypes"))
        types = types or requirements.texts("DesiredInstanceTypes") or requirements.texts("CurrentInstanceTypes")
        requirements.rest()
    if row.has("SlurmConfig"):
        log.refuse(row.place("SlurmConfig"), "is of a cluster on Slurm; this library is for HyperPod on EKS")
    counted = "TargetCount" if is_living else "InstanceCount"
    for key, is_there in (
        ("InstanceGroupName", row.has("InstanceGroupName")),
        (counted, row.has(counted)),
        ("InstanceType", row.has("InstanceType") or requirements is not None),
    ):
        if not is_there:
            log.refuse(row.place(), f"{key} is missing")
    if name is None or count is None or not types:
        return None
    group = Group(
        at=row.place(),
        name=name,
        types=types,
        is_flexible=one is None,
        count=count,
        min_count=row.number("MinCount" if is_living else "MinInstanceCount"),
        plan=row.text("TrainingPlanArn"),
        threads=row.number("ThreadsPerCore"),
        threads_at=row.place("ThreadsPerCore"),
        is_restricted=is_restricted,
    )
    if is_living:
        row.asked.add("InstanceTypeDetails")
    _read_placement(row, draft, group, subnets=subnets, security_groups=security_groups)
    _read_capacity(row, group)
    _read_volumes(row, draft, group)
    _read_software(row, draft, group)
    if is_restricted:
        _read_environment(row, draft, group)
    else:
        _read_scripts(row, draft, group, script)
    checks = {aws: ours for ours, aws in hyperpod.DEEP_HEALTH_CHECKS.items()}
    for index, check in enumerate(row.texts("OnStartDeepHealthChecks")):
        if check in checks:
            group.checks.append(checks[check])
        else:
            log.note("lost", f"is an unknown check: {check}", at=row.place("OnStartDeepHealthChecks", index))
    row.text("ExecutionRole")
    row.rest()
    draft.groups.append(group)
    return group


def _read_placement(
    row: Node, draft: Draft, group: Group, *, subnets: Sequence[str], security_groups: Sequence[str]
) -> None:
    group.subnets = subnets
    own = row.section("OverrideVpcConfig")
    if own is None:
        return
    group.subnets = own.texts("Subnets") or subnets
    for index, each in enumerate(own.texts("Subnets")):
        draft.subnet(each, own.place("Subnets", index))
    others = own.texts("SecurityGroupIds")
    if others and set(others) != set(security_groups):
        draft.log.note(
            "lost",
            f"{', '.join(others)}: the file has one security group for the nodes of every group",
            at=own.place("SecurityGroupIds"),
            path="network.existing.security_group_id",
        )
    own.rest()


def _read_capacity(row: Node, group: Group) -> None:
    wanted = row.section("CapacityRequirements")
    if wanted is not None:
        # each is an empty mapping: its presence is the setting
        group.capacity = "spot" if "Spot" in wanted.value else "on_demand" if "OnDemand" in wanted.value else None
        wanted.asked.update(("Spot", "OnDemand"))
        wanted.rest()
    interface = row.section("NetworkInterface")
    if interface is not None:
        group.interface = interface.word("InterfaceType", hyperpod.NETWORK_INTERFACES)
        interface.rest()


def _read_volumes(row: Node, draft: Draft, group: Group) -> None:
    for config in row.rows("InstanceStorageConfigs"):
        volume = config.section("EbsVolumeConfig")
        if volume is not None:
            group.volume_key = volume.text("VolumeKmsKeyId") or group.volume_key
            size = volume.number("VolumeSizeInGB")
            if volume.truth("RootVolume"):
                if size is not None:
                    draft.log.note("lost", "HyperPod fixes the size of root volumes", at=volume.place("VolumeSizeInGB"))
            elif group.volume_gib is not None:
                draft.log.note("lost", "here a node has one volume in addition to its root volume", at=volume.place())
            else:
                group.volume_gib = size
            volume.rest()
        for key in ("FsxLustreConfig", "FsxOpenZfsConfig"):
            mount = config.section(key)
            if mount is not None:
                draft.log.note(
                    "lost",
                    f"HyperPod mounts {mount.text('DnsName')} on the nodes; here pods mount an existing Lustre file"
                    " system through a claim: storage.lustre",
                    at=config.place(key),
                    path="storage.lustre",
                )
        config.rest()


def _read_software(row: Node, draft: Draft, group: Group) -> None:
    for key, names in (
        ("ami_id", ("DesiredImageId", "ImageId")),
        ("release_version", ("DesiredImageReleaseVersion", "ImageReleaseVersion")),
    ):
        # an answer shows the image of the group, not that a user pinned it
        found = [(name, row.text(name)) for name in names if row.has(name)]
        if found and found[0][0].startswith("Desired"):
            continue
        if found and found[0][1]:
            group.image[key] = found[0][1]
    nodes = row.section("KubernetesConfig")
    if nodes is not None:
        prefix = "Desired" if nodes.has("DesiredLabels") or nodes.has("DesiredTaints") else ""
        nodes.asked.update(("CurrentLabels", "CurrentTaints"))
        group.labels = nodes.mapping(f"{prefix}Labels")
        for taint in nodes.rows(f"{prefix}Taints"):
            words = {"key": taint.text("Key"), "value": taint.text("Value"), "effect": taint.text("Effect")}
            group.taints.append({key: value for key, value in words.items() if value is not None})
            taint.rest()
        nodes.rest()
    scheduled = row.section("ScheduledUpdateConfig")
    if scheduled is not None:
        group.patching["schedule"] = scheduled.text("ScheduleExpression")
        _read_deployment(scheduled, draft, group)
        scheduled.rest()
    automatic = row.section("AutoPatchConfig")
    if automatic is not None:
        strategy = automatic.word("PatchingStrategy", hyperpod.PATCHING_STRATEGIES)
        if strategy:
            group.patching["strategy"] = strategy
            _read_deployment(automatic, draft, group)
        automatic.asked.update(("CurrentPatchSchedule", "DeploymentConfig"))
        automatic.rest()


def _read_deployment(update: Node, draft: Draft, group: Group) -> None:
    config = update.section("DeploymentConfig")
    if config is None:
        return
    rolling = config.section("RollingUpdatePolicy")
    if rolling is not None:
        for key, name in (("max_batch", "MaximumBatchSize"), ("rollback_batch", "RollbackMaximumBatchSize")):
            if (batch := _batch(rolling, name, draft)) is not None:
                group.patching[key] = batch
        rolling.rest()
    wait = config.number("WaitIntervalInSeconds")
    if wait:
        group.patching["wait_seconds"] = wait
    alarms = [alarm.text("AlarmName") for alarm in config.rows("AutoRollbackConfiguration")]
    if alarms:
        group.patching["rollback_alarms"] = alarms
    config.rest()


def _batch(rolling: Node, name: str, draft: Draft) -> dict[str, Any] | None:
    size = rolling.section(name)
    if size is None:
        return None
    kind, value = size.text("Type"), size.number("Value")
    size.rest()
    if kind is None or kind not in _BATCHES or value is None:
        draft.log.refuse(size.place(), f"must have Type ({joined(_BATCHES, last='or')}) and Value")
        return None
    return {_BATCHES[kind]: value}


def _read_environment(row: Node, draft: Draft, group: Group) -> None:
    environment = row.section("EnvironmentConfig")
    if environment is None:
        return
    lustre = environment.section("FSxLustreConfig")
    if lustre is not None:
        group.lustre = _service_lustre(lustre)
    environment.asked.add("S3OutputPath")
    environment.rest()
    draft.log.note(
        "lost",
        "the policies of its execution role say which buckets its jobs read and write; add them as input_buckets and"
        " output_buckets",
        at=group.at,
    )


def _read_scripts(row: Node, draft: Draft, group: Group, script: str | None) -> None:
    config = row.section("LifeCycleConfig")
    if config is None and script is not None:
        group.on_create = script
        return
    if config is None:
        draft.log.note(
            "changed",
            f"has no LifeCycleConfig; here every new node runs {DEFAULT_SCRIPT} of lifecycle_scripts/",
            at=group.at,
        )
        return
    group.on_create, group.on_init_complete = config.text("OnCreate"), config.text("OnInitComplete")
    uri = config.text("SourceS3Uri")
    if uri:
        script = group.on_init_complete or group.on_create or DEFAULT_SCRIPT
        draft.log.note(
            "lost",
            f"the scripts of {uri} are not used: nodes get those of lifecycle_scripts/, or without that folder the"
            f" library's own {DEFAULT_SCRIPT}. To keep yours: aws s3 cp --recursive {shlex.quote(uri)}"
            f" lifecycle_scripts/, where {script} is the one that runs",
            at=config.place("SourceS3Uri"),
            path="hyperpod.lifecycle",
        )
    config.rest()


def _read_roles(draft: Draft, node: Node) -> None:
    roles: dict[str, Any] = {}
    for key in ("InstanceGroups", "RestrictedInstanceGroups"):
        for row in node.rows(key):
            if arn := row.text("ExecutionRole"):
                roles.setdefault(arn, row.place("ExecutionRole"))
    for arn, at in roles.items():
        draft.home(arn, at)
        if draft.known.is_takeover:
            continue
        draft.log.note(
            "changed",
            f"{arn} is not used: the environment creates the execution role of its nodes; other permissions of its"
            " policies are lost",
            at=at,
        )
