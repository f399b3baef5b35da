"""The cluster policy and the compute quotas of an existing cluster, in the file's words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hyperpod_cdk.catalog import governance
from hyperpod_cdk.catalog.arns import arn_parts
from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.config.source import Source
from hyperpod_cdk.importing.asking import Asking
from hyperpod_cdk.importing.document import Node
from hyperpod_cdk.importing.draft import Draft

_AMOUNTS: Final = {"Count": "count", "Accelerators": "accelerators", "VCpu": "vcpu", "MemoryInGiB": "memory_gib"}
"""What a member of the API's ComputeQuotaResourceConfig is called in the file."""

_OF_ANSWERS: Final = (
    *("ComputeQuotaArn", "ComputeQuotaId", "ComputeQuotaVersion", "Status", "FailureReason", "ClusterArn"),
    *("CreationTime", "CreatedBy", "LastModifiedTime", "LastModifiedBy", "ResponseMetadata", "Name"),
    *("ClusterSchedulerConfigArn", "ClusterSchedulerConfigId", "ClusterSchedulerConfigVersion", "StatusDetails"),
)
"""Members of an answer that are not part of a request."""


def read_teams(asking: Asking, draft: Draft, cluster_arn: str) -> None:
    """Read policy and quotas, if the cluster has any, as task_governance."""
    aws, path = asking.aws, "task_governance"

    def listed(operation: str, key: str, member: str) -> list[str]:
        rows = aws.pages("sagemaker", operation, key, ClusterArn=cluster_arn)
        return [str(row[member]) for row in rows]

    policies = asking.answer(
        "the cluster policy",
        lambda: listed("list_cluster_scheduler_configs", "ClusterSchedulerConfigSummaries", "ClusterSchedulerConfigId"),
        path=path,
    )
    quotas = asking.answer(
        "the compute quotas",
        lambda: listed("list_compute_quotas", "ComputeQuotaSummaries", "ComputeQuotaId"),
        path=f"{path}.teams",
    )
    section: dict[str, Any] = {}
    for policy in asking.each(
        "cluster policy",
        lambda one: aws.call("sagemaker", "describe_cluster_scheduler_config", ClusterSchedulerConfigId=one),
        (policies or [])[:1],
        path=path,
    ):
        section |= _policy(_node(policy, "policy", draft))
        if draft.known.is_takeover:
            section["policy_name"] = str(policy["Name"])
    teams = asking.each(
        "compute quota",
        lambda one: aws.call("sagemaker", "describe_compute_quota", ComputeQuotaId=one),
        sorted(quotas or ()),
        path=f"{path}.teams",
    )
    found = [_team(_node(each, "compute quota", draft)) for each in teams]
    if draft.known.is_takeover:
        for team, answer in zip(found, teams, strict=True):
            if team is not None:
                # no label that its namespace may be without: Kubernetes would refuse pods of its jobs
                team |= {"quota_name": str(answer["Name"]), "pod_security": "privileged"}
    if found:
        section["teams"] = sorted((each for each in found if each), key=lambda team: str(team["name"]))
        draft.log.note(
            "lost",
            "roles of the teams' members: their access entries are on the EKS cluster and stay there",
            path=f"{path}.teams",
        )
    if policies or quotas:
        draft.sections["task_governance"] = section or {"teams": []}
        if draft.known.is_takeover:
            _take_over(draft, arn_parts(cluster_arn).region, has_policy=bool(policies), has_quotas=bool(quotas))


def _take_over(draft: Draft, region: str, *, has_policy: bool, has_quotas: bool) -> None:
    """Note what a takeover of policy and quotas needs, and leave them out if the stacks cannot import them."""
    path = "task_governance"
    stand = {governance.SCHEDULER_CONFIG: has_policy, governance.COMPUTE_QUOTA: has_quotas}
    custom = [kind for kind, is_there in stand.items() if is_there and not governance.is_native(kind, region)]
    if custom:
        del draft.sections[path]
        draft.log.note(
            "lost",
            f"cluster policy and quotas stay as they are and belong to no stack: in {region} a custom resource"
            f" replaces {joined(custom)}, and CloudFormation imports no custom resource",
            path=path,
        )
        return
    draft.log.note(
        "unsafe",
        f"CloudFormation's guide does not list {governance.SCHEDULER_CONFIG} and {governance.COMPUTE_QUOTA} among the"
        " types that it imports, and their schemas have all handlers that an import needs (unsure): the takeover tries"
        " it after the cluster. If CloudFormation refuses, they are unchanged; then remove this section",
        path=path,
    )
    if not has_policy:
        draft.log.note(
            "changed",
            "the cluster has no policy: a deployment creates one that admits tasks in their order and distributes"
            " idle compute by fair-share weight",
            path=path,
        )
    if not has_quotas:
        return
    draft.log.note(
        "unsafe",
        "labels of the teams' namespaces are in Kubernetes, which was not read: pod_security: privileged limits no pod."
        " If a namespace enforces another level, write that one, because a deployment sets it",
        path=f"{path}.teams",
    )
    if draft.hyperpod.get("autoscaling") == "karpenter":
        draft.log.note(
            "changed",
            "with Karpenter, a deployment gives each team's namespace a ResourceQuota with what the team owns and can"
            " borrow: Kubernetes refuses pods above it. resource_quota sets other limits",
            path=f"{path}.teams",
        )


def _node(answer: Mapping[str, Any], what: str, draft: Draft) -> Node:
    node = Node(Source(file=f"{what} {answer.get('Name', '')}", data=answer), answer, (), draft.log)
    node.asked.update(_OF_ANSWERS)
    return node


def _policy(node: Node) -> dict[str, Any]:
    section: dict[str, Any] = {}
    if text := node.text("Description"):
        section["description"] = text
    config = node.section("SchedulerConfig")
    if config is not None:
        classes = [{"name": row.text("Name"), "weight": row.number("Weight")} for row in config.rows("PriorityClasses")]
        if classes:
            section |= {"ordering": "priority", "priority_classes": classes}
        if (word := config.word("FairShare", governance.IDLE_COMPUTE)) == "first_come_first_served":
            section["idle_compute"] = word
        if config.text("IdleResourceSharing") == "Enabled":
            section["idle_resource_sharing"] = True
        config.rest()
    else:
        node.log.note("skipped", "its answer does not show its settings", at=node.place())
    node.rest()
    return section


def _team(node: Node) -> dict[str, Any] | None:
    target = node.section("ComputeQuotaTarget")
    config = node.section("ComputeQuotaConfig")
    if target is None or config is None or target.text("TeamName") is None:
        node.log.note("skipped", "its answer shows neither team nor amounts", at=node.place())
        return None
    team: dict[str, Any] = {"name": target.text("TeamName"), "fair_share_weight": target.number("FairShareWeight")}
    if text := node.text("Description"):
        team["description"] = text
    if node.text("ActivationState") == "Disabled":
        team["active"] = False
    if (word := config.word("PreemptTeamTasks", governance.PREEMPTION)) == "never":
        team["preemption"] = word
    team["quota"] = [_amounts(row) for row in config.rows("ComputeQuotaResources")]
    shared = config.section("ResourceSharingConfig")
    if shared is not None:
        sharing: dict[str, Any] = {"strategy": shared.word("Strategy", governance.SHARING)}
        if sharing["strategy"] == "lend_and_borrow":
            sharing["borrow_limit_percent"] = shared.number("BorrowLimit")
        else:
            shared.asked.add("BorrowLimit")
        if limits := [_amounts(row) for row in shared.rows("AbsoluteBorrowLimits")]:
            sharing["absolute_borrow_limits"] = limits
        team["sharing"] = {key: value for key, value in sharing.items() if value is not None}
        shared.rest()
    else:
        node.log.note("skipped", "its answer does not show whether it lends and borrows", at=node.place())
    target.rest()
    config.rest()
    node.rest()
    return {key: value for key, value in team.items() if value not in (None, {})}


def _amounts(row: Node) -> dict[str, Any]:
    """Return a row of a quota; SageMaker adds missing vCPU and memory to a quota of accelerators."""
    entry: dict[str, Any] = {"instance_type": row.text("InstanceType")}
    for theirs, ours in _AMOUNTS.items():
        amount = row.value.get(theirs)
        row.asked.add(theirs)
        # a service also returns floats for whole numbers
        if isinstance(amount, int | float) and not isinstance(amount, bool) and amount:
            entry[ours] = int(amount) if ours in ("count", "accelerators") else float(amount)
    partition = row.section("AcceleratorPartition")
    if partition is not None:
        entry["accelerator_partition"] = {"profile": partition.text("Type"), "count": partition.number("Count")}
        partition.rest()
    row.rest()
    return entry
