"""Imports an existing HyperPod cluster with calls that only read: what AWS does not answer is skipped, never
guessed."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, NoReturn

from hyperpod_cdk.catalog import addons, kubernetes
from hyperpod_cdk.catalog.arns import arn_parts
from hyperpod_cdk.catalog.closest import closest
from hyperpod_cdk.catalog.sentences import plural
from hyperpod_cdk.checks import aws_shapes
from hyperpod_cdk.checks.answers import (
    EksClusterAnswer,
    LustreAnswer,
    NotAnswered,
    SubnetAnswer,
)
from hyperpod_cdk.checks.side_by_side import together
from hyperpod_cdk.config.documents import DocumentError
from hyperpod_cdk.config.eks import OWN_ADDONS
from hyperpod_cdk.config.source import Source
from hyperpod_cdk.findings import Finding, Severity
from hyperpod_cdk.handlers.quota_gate.reading import NotFound
from hyperpod_cdk.importing import create_cluster, live_teams
from hyperpod_cdk.importing.asking import Asking, readable, unless_gone
from hyperpod_cdk.importing.document import Log, Node
from hyperpod_cdk.importing.draft import Draft, Known, name_in_file
from hyperpod_cdk.review.deployed import Api
from hyperpod_cdk.review.stored import objects

_OPERATORS: Final[Mapping[str, str]] = {
    addons.TRAINING_OPERATOR: "training",
    addons.INFERENCE: "inference",
    addons.OBSERVABILITY: "observability",
}
"""The add-ons that a section of the file needs, by its name below operators."""

_PLANS_THAT_SERVE: Final = frozenset({"Active", "Scheduled"})
_MOST_SCRIPTS: Final = 10


def read_living_cluster(aws: Api, name: str, known: Known, log: Log) -> Draft:
    """Return a draft of the cluster ``name`` of the region that ``aws`` asks; ``known`` comes before what AWS says.

    Raises DocumentError if there is no such cluster, it cannot be read, or it is not on EKS.
    """
    asking = Asking(aws=aws, log=log)
    label = f"cluster {name}"
    try:
        with readable(label):
            cluster = dict(aws.call("sagemaker", "describe_cluster", ClusterName=name))
    except NotFound:
        _refuse(label, _no_such_cluster(aws, name))
    except NotAnswered as missing:
        _refuse(label, f"cannot be read: {missing.sentence}")
    # the user named it
    cluster.setdefault("ClusterName", name)
    arn = str(cluster.get("ClusterArn", ""))

    def ask_tags() -> dict[str, Mapping[str, Any]]:
        rows = aws.pages("sagemaker", "list_tags", "Tags", ResourceArn=arn)
        return {str(row["Key"]): row for row in rows}

    tags = asking.answer("its tags", ask_tags, path="tags") or {}
    cluster["Tags"] = [row for key, row in tags.items() if not key.startswith("aws:")]
    node = Node(Source(file=label, data=cluster), cluster, (), log)
    eks = asking.answer("its EKS cluster", lambda: _eks_of(asking, cluster), path="eks.existing")
    subnets = asking.answer("its subnets", lambda: _subnets_of(asking, cluster), path="network") or []
    draft = Draft(_known(known, eks, subnets), log)
    create_cluster.read_cluster(node, draft)
    log.raise_errors()
    part = asking.answer
    part(
        "the stack that created it",
        lambda: _read_pins(asking, draft, cluster, tags.values()),
        path="hyperpod.instance_groups",
    )
    part("the zones of its nodes", lambda: _read_nodes(asking, draft, cluster), path="hyperpod.instance_groups")
    part("its plans", lambda: _read_plans(asking, draft), path="hyperpod.instance_groups")
    part("its scripts", lambda: _read_scripts(asking, cluster), path="hyperpod.lifecycle")
    if draft.hyperpod.get("autoscaling") == "karpenter" and not known.is_takeover:
        log.note(
            "lost",
            "Karpenter's node pools are in Kubernetes, which was not read, and AWS does not show which groups they"
            " use: here a group above 0 keeps its count, and the groups of 0 are one pool",
            path="hyperpod.karpenter_pools",
        )
    if eks is not None:
        part("its VPC", lambda: _read_network(asking, draft, eks.vpc_id), path="network.existing")
        part("the EKS cluster", lambda: _read_eks(asking, draft, eks), path="eks.existing")
        part("file systems", lambda: _read_lustre(asking, draft, eks.vpc_id, subnets), path="storage.lustre")
    part("policy and quotas", lambda: live_teams.read_teams(asking, draft, arn), path="task_governance")
    try:
        with readable(label):
            (_as_it_stands if known.is_takeover else _say_what_a_deployment_does)(draft, cluster, eks)
    except NotAnswered as missing:
        _refuse(label, f"cannot be read: {missing.sentence}")
    return draft


def _as_it_stands(draft: Draft, cluster: Mapping[str, Any], eks: EksClusterAnswer | None) -> None:
    """Note what HyperPod never changes of the cluster, and leave out what no stack can own."""
    vpc = cluster.get("VpcConfig") or {}
    _say_networks(draft, cluster)
    _say_roles(draft, cluster)
    if draft.hyperpod.get("autoscaling") == "karpenter":
        draft.hyperpod["existing_karpenter_pools"] = True
        draft.log.note(
            "unsafe",
            "which groups Karpenter scales is in Kubernetes, which was not read: write count: 0 for each that a"
            " HyperpodNodeClass names ('kubectl get hyperpodnodeclasses -o yaml'); its nodes stay. With another count"
            " every later deployment brings the group back to it",
            path="hyperpod.instance_groups",
        )
    draft.network["existing"]["cluster_subnet_ids"] = list(vpc.get("Subnets", ()))
    groups = list(vpc.get("SecurityGroupIds", ()))
    if eks is not None and len(groups) == 1 and groups[0] in eks.security_group_ids:
        # nodes have the one group that the control plane has, too, and not the one that EKS created
        draft.eks["existing"]["security_group_id"] = groups[0]
        draft.known = replace(draft.known, eks_security_group_id=None)
    if draft.sections.pop("storage", None) is not None:
        said = "file systems stay as they are: CloudFormation does not import AWS::FSx::FileSystem"
        draft.log.note("lost", said, path="storage")
    draft.log.drop("missing", "storage.")
    _take_add_ons(draft)
    draft.log.note(
        "unsafe",
        f"{cluster.get('ClusterName')} already exists: do not deploy this file before the takeover, which the same"
        " command does once the file exists",
        path="hyperpod.cluster_name",
    )


def _take_add_ons(draft: Draft) -> None:
    """Give the environment the add-ons that it would create with the same settings; others are used as they are."""
    existing, operators = draft.eks.get("existing", {}), draft.sections.get("operators", {})
    asked = {
        addons.TASK_GOVERNANCE: "task_governance" in draft.sections,
        addons.TRAINING_OPERATOR: "training" in operators,
        addons.CERT_MANAGER: bool(operators.keys() & {"training", "inference", "spaces"}),
    }
    installed = existing.get("installed_addons", [])
    comes = [name for name in installed if asked.get(name) and draft.addon_settings.get(name) == ""]
    existing["installed_addons"] = [name for name in installed if name not in comes]
    if comes:
        draft.log.note(
            "changed",
            f"the environment takes over {', '.join(comes)} unchanged, and 'hyperpod-cdk destroy' then deletes them:"
            " add those that you want to keep to it",
            path="eks.existing.installed_addons",
        )
    for name in installed:
        if asked.get(name) and (why := draft.addon_settings.get(name)):
            draft.log.note("lost", f"{name} stays yours: it has {why}", path="eks.existing.installed_addons")


def _say_networks(draft: Draft, cluster: Mapping[str, Any]) -> None:
    free = free_groups(cluster)
    for index, group in enumerate(draft.groups):
        if group.is_restricted or group.name not in free:
            continue
        group.existing["cluster_network"] = True
        zones = [zone for each in group.subnets if (zone := draft.known.subnet_zones.get(each))]
        group.zone = group.zone or next(iter(zones), None)
        if len(set(zones)) > 1:
            draft.log.note(
                "unsafe",
                f"{group.name} has no subnets of its own, which HyperPod never changes: new nodes can come up in any of"
                f" {', '.join(dict.fromkeys(zones))}. EFA traffic and volumes do not cross zones",
                at=group.at,
                path=f"hyperpod.instance_groups[{index}].existing.cluster_network",
            )


def _say_roles(draft: Draft, cluster: Mapping[str, Any]) -> None:
    """Let the environment take over the role of most groups, and name that of each other group."""
    of_group = {str(row["InstanceGroupName"]): str(row["ExecutionRole"]) for row in cluster.get("InstanceGroups") or ()}
    count = Counter(of_group.values())
    for place, arn in enumerate(sorted(count, key=lambda arn: (-count[arn], arn))):
        names = [name for name, role in of_group.items() if role == arn]
        if place == 0:
            said = f"the environment takes over {arn}: a deployment replaces its policies by those of its nodes"
            draft.log.note("changed", f"{said}; other permissions are lost", path="hyperpod.instance_groups")
            continue
        for group in draft.groups:
            if group.name in names and not group.is_restricted:
                group.existing["execution_role_arn"] = arn
        draft.log.note(
            "changed",
            f"{arn} of {', '.join(names)} stays yours, and no stack owns it: a deployment attaches the policy of nodes"
            " to it, and changes nothing else of it",
            path="hyperpod.instance_groups",
        )


def _refuse(label: str, message: str) -> NoReturn:
    finding = Finding(severity=Severity.ERROR, message=message, file=label, rule="import")
    raise DocumentError([finding], file=label)


def _no_such_cluster(aws: Api, name: str) -> str:
    none = "there is no HyperPod cluster of this name in this account and region"
    try:
        names = [str(row["ClusterName"]) for row in aws.pages("sagemaker", "list_clusters", "ClusterSummaries")]
    except (NotAnswered, LookupError, TypeError):
        return f"{none}; name another, or give --region"
    near = closest(name, names)
    others = (
        f"; did you mean {near}?"
        if near
        else f"; there is {', '.join(sorted(names))}"
        if names
        else ", and none of another name; give --region"
    )
    return f"{none}{others}"


def _known(known: Known, eks: EksClusterAnswer | None, subnets: Sequence[SubnetAnswer]) -> Known:
    zones = {each.subnet_id: each.availability_zone_id for each in subnets}
    return replace(
        known,
        vpc_id=known.vpc_id or (eks.vpc_id if eks else None) or next((each.vpc_id for each in subnets), None),
        eks_security_group_id=known.eks_security_group_id or (eks.cluster_security_group_id if eks else None) or None,
        kubernetes_version=known.kubernetes_version or (eks.kubernetes_version if eks else None),
        subnet_zones={**zones, **known.subnet_zones},
    )


def _eks_of(asking: Asking, cluster: Mapping[str, Any]) -> EksClusterAnswer | None:
    arn = str(((cluster.get("Orchestrator") or {}).get("Eks") or {}).get("ClusterArn", ""))
    if not arn:
        return None
    name = arn.rpartition("/")[2]

    def ask() -> EksClusterAnswer:
        return aws_shapes.eks_cluster(asking.aws.call("eks", "describe_cluster", name=name)["cluster"])

    found = asking.answer(f"the EKS cluster {name}, its network, add-ons and access entries", ask, path="eks.existing")
    if found is not None and found.authentication_mode not in kubernetes.ACCESS_ENTRY_MODES:
        asking.log.note(
            "unsafe",
            f"authentication mode of {name} is {found.authentication_mode}, and HyperPod and this environment need"
            f" access entries: 'aws eks update-cluster-config --name {name} --access-config"
            " authenticationMode=API_AND_CONFIG_MAP'",
            path="eks.existing.cluster_name",
        )
    return found


def _subnets_of(asking: Asking, cluster: Mapping[str, Any]) -> list[SubnetAnswer]:
    configs = [cluster.get("VpcConfig")]
    for key in ("InstanceGroups", "RestrictedInstanceGroups"):
        configs += [row.get("OverrideVpcConfig") for row in cluster.get(key) or ()]
    ids = list(dict.fromkeys(subnet for config in configs if config for subnet in config.get("Subnets", ())))
    if not ids:
        return []

    def ask() -> list[SubnetAnswer]:
        # a filter and not SubnetIds: a deleted one would hide the others
        filters = [{"Name": "subnet-id", "Values": ids}]
        rows = asking.aws.pages("ec2", "describe_subnets", "Subnets", Filters=filters)
        return [aws_shapes.subnet(row) for row in rows]

    where = "network.existing.node_subnet_ids"
    found = asking.answer(f"the zones of {', '.join(ids)}", ask, path=where)
    if found is not None and (gone := sorted(set(ids) - {each.subnet_id for each in found})):
        asking.log.note("unsafe", f"{', '.join(gone)}: this subnet no longer exists in EC2", path=where)
    return found or []


def _read_network(asking: Asking, draft: Draft, vpc_id: str) -> None:
    def ask() -> list[str]:
        (row,) = asking.aws.call("ec2", "describe_vpcs", VpcIds=[vpc_id])["Vpcs"]
        return list(aws_shapes.vpc(row, dns_support=True, dns_hostnames=True).cidrs)

    path = "network.existing.vpc_cidrs"
    if blocks := asking.answer(f"the blocks of {vpc_id}", ask, path=path):
        draft.network["existing"]["vpc_cidrs"] = blocks


def _read_eks(asking: Asking, draft: Draft, eks: EksClusterAnswer) -> None:
    aws, log = asking.aws, asking.log
    path = "eks.existing.installed_addons"
    names = asking.answer(
        f"the add-ons of {eks.name}", lambda: aws.pages("eks", "list_addons", "addons", clusterName=eks.name), path=path
    )
    gone: list[str] = []
    described = asking.each(
        "add-on",
        lambda name: aws.call("eks", "describe_addon", clusterName=eks.name, addonName=name)["addon"],
        names or (),
        path=path,
        gone=gone,
    )
    installed = [name for name in OWN_ADDONS if name in (names or ()) and name not in gone]
    if installed:
        draft.eks["existing"]["installed_addons"] = installed
    versions = sorted(f"{each['addonName']} {each.get('addonVersion', '')}".strip() for each in described)
    draft.addon_settings = {str(each["addonName"]): _own_settings(each) for each in described}
    if versions:
        log.note("lost", f"existing add-ons stay as they are, without a version in the file: {', '.join(versions)}")
    operators = {
        section: {"enabled": True, **({"elastic": False} if section == "training" and _is_unsure(draft) else {})}
        for addon, section in _OPERATORS.items()
        if addon in installed
    }
    if operators:
        draft.sections["operators"] = operators
    _read_provider(asking, draft, eks)
    _read_entries(asking, eks, is_takeover=draft.known.is_takeover)
    log.note(
        "lost",
        f"what is in Kubernetes on {eks.name} was not read: HyperPod's chart, claims, queues, jobs and RBAC",
        path="eks.existing",
    )


def _own_settings(addon: Mapping[str, Any]) -> str:
    """Say which settings of an add-on the environment would remove; empty if none."""
    told = {
        "serviceAccountRoleArn": "a role of its own (serviceAccountRoleArn)",
        "configurationValues": "configuration values of its own",
        "podIdentityAssociations": "pod identity associations of its own",
    }
    return ", ".join(words for key, words in told.items() if addon.get(key))


def _is_unsure(draft: Draft) -> bool:
    """Return whether it is certain that jobs cannot be elastic: with tiered checkpointing, and on Spot."""
    tiered = (draft.hyperpod.get("tiered_checkpointing") or {"enabled": False}).get("enabled", True)
    return bool(tiered) or any(each.capacity == "spot" for each in draft.groups)


def _read_provider(asking: Asking, draft: Draft, eks: EksClusterAnswer) -> None:
    what, path = f"whether IAM has the OIDC provider of {eks.name}", "eks.existing.oidc_provider_arn"
    of = arn_parts(eks.arn)
    if not eks.oidc_issuer:
        asking.skip(what, NotAnswered("EKS does not show the issuer of the cluster"), path=path)
        return
    if not of.account:
        asking.skip(what, NotAnswered("EKS does not show the ARN of the cluster"), path=path)
        return
    arn = f"arn:{of.partition}:iam::{of.account}:oidc-provider/{eks.oidc_issuer.removeprefix('https://')}"
    found = asking.answer(
        what,
        lambda: asking.aws.call("iam", "get_open_id_connect_provider", OpenIDConnectProviderArn=arn),
        path=path,
    )
    if found is not None:
        draft.eks["existing"]["oidc_provider_arn"] = arn


def _read_entries(asking: Asking, eks: EksClusterAnswer, *, is_takeover: bool) -> None:
    aws = asking.aws
    names = asking.answer(
        f"the access entries of {eks.name}",
        lambda: aws.pages("eks", "list_access_entries", "accessEntries", clusterName=eks.name),
        path="eks.admin_role_arns",
    )
    people = [str(name) for name in names or () if ":role/aws-service-role/" not in str(name)]
    if people:
        # a role with an entry of the environment loses its access if the environment is destroyed
        more = "; the takeover imports the entries of roles that you write here" if is_takeover else ""
        asking.log.note(
            "lost",
            f"access entries of {eks.name} stay, and the file names none of them: {', '.join(sorted(people))}{more}",
            path="eks.admin_role_arns",
        )


def _read_lustre(asking: Asking, draft: Draft, vpc_id: str, subnets: Sequence[SubnetAnswer]) -> None:
    def ask() -> list[LustreAnswer]:
        rows = asking.aws.pages("fsx", "describe_file_systems", "FileSystems")
        return [aws_shapes.lustre(row) for row in rows if row["FileSystemType"] == "LUSTRE"]

    found = asking.answer("the file systems of FSx for Lustre", ask, path="storage.lustre")
    for each in found or ():
        if not each.vpc_id:
            missing = NotAnswered("FSx does not show its VPC")
            asking.skip(f"whether {each.file_system_id} is the cluster's", missing, path="storage.lustre")
    ours = [each for each in found or () if each.vpc_id == vpc_id]
    zones = {each.subnet_id: each.availability_zone_id for each in subnets}
    others = sorted({each.subnet_ids[0] for each in ours if each.subnet_ids} - set(zones))
    if others:
        filters = [{"Name": "subnet-id", "Values": others}]
        rows = asking.answer(
            f"the zones of {', '.join(others)}",
            lambda: [
                aws_shapes.subnet(row)
                for row in asking.aws.pages("ec2", "describe_subnets", "Subnets", Filters=filters)
            ],
            path="storage.lustre",
        )
        zones |= {each.subnet_id: each.availability_zone_id for each in rows or ()}
    of_nodes = {draft.known.subnet_zones.get(subnet) for subnet, _ in draft.subnets}
    entries: list[dict[str, Any]] = []
    for each in sorted(ours, key=lambda one: one.file_system_id):
        zone = zones.get(each.subnet_ids[0]) if each.subnet_ids else None
        if zone is None or zone not in of_nodes:
            where = zone or "a zone that was not read"
            asking.log.note(
                "lost",
                f"{each.file_system_id} is in {where}, where the cluster has no subnet for nodes",
                path="storage.lustre",
            )
            continue
        existing: dict[str, Any] = {"file_system_id": each.file_system_id, "mount_name": each.mount_name}
        if each.dns_name:
            existing["dns_name"] = each.dns_name
        if each.capacity_gib:
            existing["capacity_gib"] = each.capacity_gib
        taken = [entry["name"] for entry in entries]
        name = name_in_file(each.tags.get("Name", ""), otherwise=each.file_system_id, taken=taken)
        entries.append({"name": name, "availability_zone_id": zone, "existing": existing})
        asking.log.note(
            "missing",
            f"which namespaces mount {each.file_system_id} is in Kubernetes, which was not read; write claim:"
            " {namespaces: [...]}, or remove the file system, which stays as it is",
            path=f"storage.lustre[{len(entries) - 1}].claim",
        )
    if entries:
        draft.sections["storage"] = {"lustre": entries}


def _read_pins(asking: Asking, draft: Draft, cluster: Mapping[str, Any], tags: Iterable[Mapping[str, Any]]) -> None:
    """Name the zones that parameters of AWS's set-up stack request and that its template did not use for the group."""
    free = free_groups(cluster)
    stack = next((str(each.get("Value")) for each in tags if each.get("Key") == "aws:cloudformation:stack-id"), None)
    if not free or stack is None:
        return

    def ask() -> dict[str, str]:
        (nested,) = asking.aws.call("cloudformation", "describe_stacks", StackName=stack)["Stacks"]
        root = nested.get("RootId") or nested.get("StackId")
        (main,) = asking.aws.call("cloudformation", "describe_stacks", StackName=root)["Stacks"]
        return dict(_pins(main.get("Parameters") or ()))

    for name, zone in (asking.answer("the parameters of the stack that created it", ask) or {}).items():
        index = next((at for at, group in enumerate(draft.groups) if group.name == name), None)
        if name in free and index is not None:
            asking.log.note(
                "unsafe",
                f"{name} was meant for {zone}, and that template silently dropped the pin: its nodes can be in any zone"
                " of the cluster's subnets",
                at=draft.groups[index].at,
                path=f"hyperpod.instance_groups[{index}].availability_zone_id",
            )


def free_groups(cluster: Mapping[str, Any]) -> set[str]:
    """Return the names of the groups of a cluster that have no subnets of their own."""
    rows = cluster.get("InstanceGroups") or ()
    return {str(row["InstanceGroupName"]) for row in rows if not (row.get("OverrideVpcConfig") or {}).get("Subnets")}


def _pins(parameters: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    for each in parameters:
        if not re.fullmatch(r"InstanceGroupSettings\d+", str(each.get("ParameterKey"))):
            continue
        try:
            found = json.loads(each.get("ParameterValue") or "[]")
        except ValueError:
            # that template drops such a group, and then the cluster does not have it
            continue
        for row in found if isinstance(found, list) else [found]:
            if isinstance(row, dict) and row.get("TargetAvailabilityZoneId"):
                yield str(row.get("InstanceGroupName")), str(row["TargetAvailabilityZoneId"])


def _read_nodes(asking: Asking, draft: Draft, found: Mapping[str, Any]) -> None:
    """Give a group that can be in several zones the one zone of all its nodes."""
    cluster = str(found["ClusterName"])
    free = free_groups(found)
    wanted = [
        (index, group)
        for index, group in enumerate(draft.groups)
        if not group.zone and len({draft.known.subnet_zones.get(each) for each in group.subnets}) > 1
    ]

    def ask(name: str) -> list[str]:
        asked = {"ClusterName": cluster, "InstanceGroupNameContains": name}
        with readable(f"the nodes of {name}"):
            rows = unless_gone(
                partial(asking.aws.pages, "sagemaker", "list_cluster_nodes", "ClusterNodeSummaries", **asked)
            )
            return [str(row["InstanceId"]) for row in rows or () if row["InstanceGroupName"] == name]

    # in parallel: each page of a large group has to wait for the one before
    answers = together(ask, [group.name for _, group in wanted])
    for (index, group), nodes in zip(wanted, answers, strict=True):
        path = f"hyperpod.{'restricted_' if group.is_restricted else ''}instance_groups[{index}].availability_zone_id"
        if isinstance(nodes, NotAnswered):
            asking.skip(f"the zones of the nodes of {group.name}", nodes, path=path)
            continue
        gone: list[str] = []
        zone_of = partial(_zone_of, asking, cluster)
        stand = Counter(asking.each("node", zone_of, nodes, path=path, gone=gone))
        if not stand or sum(stand.values()) + len(gone) < len(nodes):
            continue
        # the zone of most nodes, if the file pins nothing
        (first, *others) = [zone for zone, _ in stand.most_common()]
        is_free = draft.known.is_takeover and group.name in free
        if is_free:
            group.zone = first
        if others:
            counts = ", ".join(f"{number} in {zone}" for zone, number in sorted(stand.items()))
            asking.log.note("unsafe", f"{group.name} is spread over zones: {counts}", at=group.at, path=path)
            continue
        if is_free:
            continue
        group.zone = first
        inside = stand[first]
        asking.log.note(
            "changed",
            f"{group.name} is pinned to no zone; its {inside} {plural(inside, 'node')} {plural(inside, 'is', 'are')} in"
            f" {first}, to which the file pins it",
            at=group.at,
            path=path,
        )


def _zone_of(asking: Asking, cluster: str, node: str) -> str:
    found = asking.aws.call("sagemaker", "describe_cluster_node", ClusterName=cluster, NodeId=node)
    return str(found["NodeDetails"]["Placement"]["AvailabilityZoneId"])


def _read_plans(asking: Asking, draft: Draft) -> None:
    for index, group in enumerate(draft.groups):
        if group.plan:
            path = f"hyperpod.{'restricted_' if group.is_restricted else ''}instance_groups[{index}].training_plan_arn"
            if problem := asking.answer(f"its plan {group.plan}", partial(_plan_problem, asking.aws, group.plan)):
                asking.log.note("unsafe", problem, at=group.at, path=path)


def _plan_problem(aws: Api, arn: str) -> str:
    """Say why a plan gives no nodes; empty if it does."""
    try:
        plan = aws_shapes.training_plan(aws.call("sagemaker", "describe_training_plan", TrainingPlanName=arn))
    except NotFound:
        return f"the plan {arn} no longer exists"
    if plan.status in _PLANS_THAT_SERVE:
        return ""
    ended = f", it ended {plan.end:%Y-%m-%d %H:%M} UTC" if plan.end else ""
    return f"the plan {plan.name} is {plan.status}{ended}"


def _read_scripts(asking: Asking, cluster: Mapping[str, Any]) -> None:
    uris = dict.fromkeys(
        str(row["LifeCycleConfig"]["SourceS3Uri"])
        for row in cluster.get("InstanceGroups") or ()
        if (row.get("LifeCycleConfig") or {}).get("SourceS3Uri")
    )
    path = "hyperpod.lifecycle"
    for uri in uris:
        names = asking.answer(f"the scripts of {uri}", partial(_scripts, asking.aws, uri), path=path)
        if names is None:
            continue
        shown = ", ".join(names[:_MOST_SCRIPTS]) or "nothing: new nodes cannot start"
        more = f" and {len(names) - _MOST_SCRIPTS} more" if len(names) > _MOST_SCRIPTS else ""
        asking.log.note("lost" if names else "unsafe", f"{uri} holds {shown}{more}", path=path)


def _scripts(aws: Api, uri: str) -> list[str]:
    """Return the files of a folder in S3 by their path in it; none where the bucket is gone, too."""
    bucket, _, prefix = uri.removeprefix("s3://").partition("/")
    folder = f"{prefix.rstrip('/')}/" if prefix else ""
    return sorted(str(row["Key"]).removeprefix(folder) for row in objects(aws, bucket, folder) or ())


def _say_what_a_deployment_does(draft: Draft, cluster: Mapping[str, Any], eks: EksClusterAnswer | None) -> None:
    name = str(cluster.get("ClusterName"))
    status = str(cluster.get("ClusterStatus", ""))
    if status and status != "InService":
        draft.log.note("unsafe", f"the cluster is {status} and not InService", path="hyperpod")
    orchestrator = eks.name if eks else (draft.eks.get("existing") or {}).get("cluster_name", "its EKS cluster")
    draft.log.note(
        "unsafe",
        f"{name} already exists: a deployment of this file creates a second HyperPod cluster and does not take over the"
        f" existing one. It fails because the name {name} is taken, and {orchestrator} orchestrates only one HyperPod"
        " cluster: for a second one set another cluster_name, and another EKS cluster or remove eks.existing",
        path="hyperpod.cluster_name",
    )
