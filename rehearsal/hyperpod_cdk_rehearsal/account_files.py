"""Account files that are created from an environment: what a section takes from it, and an account that satisfies it.

The embedded AWS knows account files only, not environments.
"""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from ipaddress import IPv4Network, collapse_addresses
from itertools import chain, cycle
from pathlib import Path
from typing import Any

from hyperpod_cdk.catalog import iam, images, regions
from hyperpod_cdk.catalog.arns import arn_parts
from hyperpod_cdk.checks.job_buckets import job_buckets
from hyperpod_cdk.config import Environment, load_environment
from hyperpod_cdk.config.rules.encryption import named_keys
from hyperpod_cdk.config.suggest import closest
from hyperpod_cdk.quotas.needs import required_quotas
from hyperpod_cdk_rehearsal.embedded.account import (
    DEFAULT_ACCOUNT_FILE,
    AccountFile,
    AccountFileError,
    Existing,
    line_of,
    read_account_file,
    read_with_lines,
    validated,
)
from hyperpod_cdk_rehearsal.embedded.account_existing import (
    DEFAULT_VPC_CIDR,
    ExistingBackup,
    ExistingCluster,
    ExistingFileSystem,
    ExistingKmsKey,
    ExistingRole,
    ExistingS3Bucket,
    ExistingSecurityGroup,
    ExistingSubnet,
    ExistingTopic,
    ExistingVpc,
)
from hyperpod_cdk_rehearsal.embedded.published.network import ZONES_WITHOUT_CONTROL_PLANE

DEPLOYER = "deployer"
PLAN_RESOURCE = ":training-plan/"
KUBECTL_POLICIES = ("service-role/AWSLambdaVPCAccessExecutionRole",)
NODE_POLICIES = ("AmazonSageMakerClusterInstanceRolePolicy",)


def load_document(account_file: Path | None = None, environment_file: Path | None = None) -> dict[str, Any]:
    """Return the resolved document of an account file (default: the shipped one) for an environment, if any.

    Raises AccountFileError if the file is invalid, or refers to groups that the environment does not have.
    """
    path = account_file or DEFAULT_ACCOUNT_FILE
    document, lines = read_with_lines(path)
    if environment_file is None:
        # the shipped file is written for any environment
        return document if account_file else {name: _without_switch(told) for name, told in document.items()}
    environment = load_environment(environment_file).environment
    problems = [f"{path}:{line_of(lines, place)} {text}" for place, text in _foreign_nodes(document, environment)]
    if problems:
        raise AccountFileError("; ".join(problems))
    return resolved(document, environment)


def _without_switch(section: Any) -> Any:
    if not isinstance(section, Mapping):
        return section
    return {name: value for name, value in section.items() if name != "from_environment"}


def resolved(document: Mapping[str, Any], environment: Environment) -> dict[str, Any]:
    """Return the document with every `from_environment: true` filled in from an environment; other values are kept."""
    file = validated(document, "account file")
    result = dict(document)
    if file.training_plans.from_environment:
        stated = {plan.name for plan in file.training_plans.plans}
        plans = [plan.model_dump(mode="json") for plan in file.training_plans.plans]
        plans += [plan for plan in _plans_of(environment) if plan["name"] not in stated]
        result["training_plans"] = {**_stated(document, "training_plans"), "plans": plans}
        result["training_plans"].pop("from_environment", None)
    if file.quotas.get("from_environment"):
        granted = _quotas_of(environment)
        services = sorted({*granted, *file.quotas} - {"from_environment"})
        result["quotas"] = {each: {**granted.get(each, {}), **file.applied_quotas(each)} for each in services}
    if file.existing.from_environment:
        roles = {*file.existing.iam_roles, *_roles_of(environment)}
        result["existing"] = {
            **_stated(document, "existing"),
            "iam_roles": sorted(roles),
            **_joined(file.existing, environment),
            "workspaces": {**_workspaces_of(environment), **file.existing.workspaces},
            "container_images": sorted({*_copied_images(environment), *file.existing.container_images}),
            "event_buses": sorted({*_existing_event_buses(environment), *file.existing.event_buses}),
            "slack_workspaces": sorted({*_existing_slack_workspaces(environment), *file.existing.slack_workspaces}),
        }
        result["existing"].pop("from_environment", None)
    if file.zones.from_environment:
        local = {zone_id: zone.model_dump() for zone_id, zone in file.zones.local.items()}
        result["zones"] = {**_stated(document, "zones"), "local": {**_local_zones_of(environment), **local}}
        result["zones"].pop("from_environment", None)
    return result


def _local_zones_of(environment: Environment) -> dict[str, Any]:
    """Return the local zones that an environment names by ID: use1-dfw2-az1 is us-east-1-dfw-2a everywhere."""
    found = {}
    for zone_id in environment.network.zone_ids():
        place = re.fullmatch(r"[a-z]+\d-([a-z]{3})(\d)-az(\d)", zone_id)
        if place:
            city, number, index = place.groups()
            letter = "abcdefghi"[int(index) - 1]
            found[zone_id] = {"name": f"{environment.region}-{city}-{number}{letter}", "opted_in": True}
    return found


def _foreign_nodes(document: Mapping[str, Any], environment: Environment) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield problems of nodes in the file that the environment does not have."""
    counts = {group.name: group.count for group in environment.hyperpod.all_groups}
    for name, told in AccountFile.model_validate(document).nodes.items():
        problem = ""
        if name not in counts:
            near = closest(name, counts)
            fix = f"did you mean {near}?" if near else f"use one of {', '.join(counts)}"
            problem = f"must be an instance group of environment {environment.name}, got {name}; {fix}"
        elif told.most() > counts[name]:
            most = f"at most the {counts[name]} nodes of the group"
            problem = f"must describe {most}, got {told.most()}; lower never or failing"
        if problem:
            yield ("nodes", name), f"nodes.{name}: {problem}"


def _stated(document: Mapping[str, Any], section: str) -> dict[str, Any]:
    return dict(document.get(section) or {})


def _joined(stated: Existing, environment: Environment) -> dict[str, list[dict[str, Any]]]:
    """Return the existing resources that an environment uses, except those that the file already contains."""
    found: dict[str, list[dict[str, Any]]] = {}
    for section, key, made in (
        ("networks", "vpc_id", _existing_networks(environment)),
        ("eks_clusters", "name", _existing_clusters(environment)),
        ("roles", "name", _existing_roles(environment)),
        ("file_systems", "file_system_id", _existing_file_systems(environment)),
        ("backups", "backup_id", _existing_backups(environment)),
        ("kms_keys", "key_id", _existing_kms_keys(environment)),
        ("buckets", "name", _existing_buckets(environment)),
        ("topics", "name", _existing_topics(environment)),
    ):
        rows = [row.model_dump(mode="json") for row in getattr(stated, section)]
        known = {row[key] for row in rows}
        rows += [row for row in made if row[key] not in known]
        if rows:
            found[section] = rows
    return found


def _workspaces_of(environment: Environment) -> dict[str, str]:
    section = environment.operators.observability
    named = (section.prometheus_workspace, section.grafana_workspace) if section.enabled else ()
    return {arn: "ACTIVE" for arn in named if arn and arn.startswith("arn:")}


def _plans_of(environment: Environment) -> Iterator[dict[str, Any]]:
    home = f":{environment.region}:{environment.account}{PLAN_RESOURCE}"
    counts: Counter[str] = Counter()
    first: dict[str, Any] = {}
    for group in environment.hyperpod.all_groups:
        arn = group.training_plan_arn
        # a plan of another Region or account does not exist in this account, neither on AWS nor in the rehearsal
        if arn and home in arn:
            counts[arn] += group.count
            first.setdefault(arn, group)
    for arn, count in counts.items():
        yield {
            "name": arn.rsplit("/", 1)[-1],
            "instance_type": next(iter(_types_of(first[arn]))),
            "instance_count": max(count, 1),
            "availability_zone_id": first[arn].availability_zone_id,
        }


def _quotas_of(environment: Environment) -> dict[str, dict[str, float]]:
    granted: dict[str, dict[str, float]] = {}
    for requirement in required_quotas(environment):
        needed, with_spare = requirement.needed, requirement.needed + requirement.spare
        if requirement.service == "sagemaker" or with_spare > requirement.default:
            # twice the need, so that a rehearsed replacement can have the old and the new cluster for a while
            value = float(max(2 * needed, with_spare, requirement.default))
            granted.setdefault(requirement.service, {})[requirement.name] = value
    return granted


def _roles_of(environment: Environment) -> Iterable[str]:
    arns = list(environment.eks.admin_role_arns)
    governance = environment.task_governance
    for team in governance.teams if governance else ():
        arns += getattr(team, "member_role_arns", None) or ()
    return (arn.partition(":role/")[2] for arn in arns)


def _types_of(group: Any) -> Iterable[str]:
    return [group.instance_type] if group.instance_type else list(group.instance_types or ())


def _existing_topics(environment: Environment) -> Iterator[dict[str, Any]]:
    """Yield the topic for notifications, if it must exist already."""
    arn = environment.notify.sns_topic_arn if environment.notify else None
    if arn and _is_here(arn, environment):
        publishers = ("cloudwatch.amazonaws.com", "budgets.amazonaws.com")
        yield ExistingTopic(name=arn_parts(arn).name, publishers=publishers).model_dump(mode="json")


def _existing_slack_workspaces(environment: Environment) -> list[str]:
    """Return the Slack workspace for notifications, as if it was authorized."""
    slack = environment.notify.slack if environment.notify else None
    return [slack.workspace_id] if slack else []


def _existing_event_buses(environment: Environment) -> list[str]:
    """Return the event bus for notifications, if it must exist already."""
    arn = environment.notify.event_bus_arn if environment.notify else None
    return [arn_parts(arn).name] if arn and _is_here(arn, environment) else []


def _copied_images(environment: Environment) -> list[str]:
    """Return the copies of the chart's images, if their registry is one of ECR."""
    registry = environment.eks.image_registry
    return list(environment.copied_images) if registry and images.ecr_registry(registry) else []


def _existing_kms_keys(environment: Environment) -> Iterator[dict[str, Any]]:
    """Yield the keys that an environment uses, except those of another account or Region."""
    for arn in dict.fromkeys(arn for _, arn in named_keys(environment) if _is_here(arn, environment)):
        yield ExistingKmsKey(key_id=arn_parts(arn).name).model_dump(mode="json")


def _is_here(arn: str, environment: Environment) -> bool:
    of = arn_parts(arn)
    return (of.region, of.account) == (environment.region, environment.account)


def _existing_buckets(environment: Environment) -> Iterator[dict[str, Any]]:
    """Yield the bucket for an environment's lifecycle scripts, if it must exist already."""
    bucket = environment.hyperpod.lifecycle.existing_bucket
    if bucket is not None:
        yield ExistingS3Bucket(name=bucket.name, kms_key=bucket.kms_key_arn or "").model_dump(mode="json")


def _existing_file_systems(environment: Environment) -> Iterator[dict[str, Any]]:
    """Yield the existing file systems that an environment mounts, with access from the nodes' security group."""
    network = environment.network.existing
    if network is None:
        return
    for system in environment.storage.lustre:
        subnet_id = network.node_subnet_ids.get(system.availability_zone_id)
        if system.existing is None or subnet_id is None:
            continue
        yield ExistingFileSystem(
            file_system_id=system.existing.file_system_id,
            mount_name=system.existing.mount_name,
            subnet_id=subnet_id,
            security_group_ids=(network.security_group_id,) if network.security_group_id else (),
            capacity_gib=system.existing.capacity_gib,
        ).model_dump(mode="json")


def _existing_backups(environment: Environment) -> Iterator[dict[str, Any]]:
    """Yield the backups that an environment restores."""
    for system in environment.storage.made_lustre:
        if system.from_backup is not None:
            backup = ExistingBackup(backup_id=system.from_backup, capacity_gib=system.volume_capacity_gib)
            yield backup.model_dump(mode="json")


def _existing_networks(environment: Environment) -> Iterator[dict[str, Any]]:
    """Yield the existing VPC that an environment uses, with everything it needs."""
    section = environment.network.existing
    if section is None:
        return
    cidrs = tuple(section.vpc_cidrs) or (DEFAULT_VPC_CIDR,)
    zones = _zones_of_subnets(environment)
    eks = environment.eks.existing
    groups = [section.security_group_id, eks.security_group_id if eks else None]
    yield ExistingVpc(
        vpc_id=section.vpc_id,
        cidrs=cidrs,
        subnets=tuple(
            ExistingSubnet(subnet_id=subnet_id, availability_zone_id=zone, cidr=cidr)
            for (subnet_id, zone), cidr in zip(zones.items(), _blocks(cidrs, len(zones)), strict=False)
        ),
        security_groups=tuple(ExistingSecurityGroup(group_id=each) for each in dict.fromkeys(groups) if each),
    ).model_dump(mode="json")


def _existing_clusters(environment: Environment) -> Iterator[dict[str, Any]]:
    """Yield the existing EKS cluster that an environment uses, with its stated add-ons."""
    eks, network = environment.eks.existing, environment.network.existing
    if eks is None or network is None:
        return
    made = ExistingCluster.model_fields["addons"].default
    yield ExistingCluster(
        name=eks.cluster_name,
        subnet_ids=tuple(network.control_plane_subnet_ids) or tuple(network.node_subnet_ids.values()),
        cluster_security_group_id=eks.security_group_id,
        kubernetes_version=environment.eks.kubernetes_version,
        addons={**made, **dict.fromkeys(eks.installed_addons, "")},
        oidc_provider_arn=eks.oidc_provider_arn or "",
        access_entries=() if eks.kubectl_role_arn is None else (eks.kubectl_role_arn,),
    ).model_dump(mode="json")


def _existing_roles(environment: Environment) -> Iterator[dict[str, Any]]:
    """Yield the role of an environment's kubectl, if it is given, and the roles that its groups keep."""
    eks = environment.eks.existing
    if eks is not None and eks.kubectl_role_arn is not None:
        yield _role(eks.kubectl_role_arn, trusts="lambda.amazonaws.com", managed_policies=KUBECTL_POLICIES)
    kept = (group.execution_role_arn for group in environment.hyperpod.instance_groups)
    for arn in dict.fromkeys(filter(None, kept)):
        yield _role(arn, trusts="sagemaker.amazonaws.com", managed_policies=NODE_POLICIES)


def _role(arn: str, *, trusts: str, managed_policies: tuple[str, ...]) -> dict[str, Any]:
    path, _, name = arn.partition(":role/")[2].rpartition("/")
    role = ExistingRole(
        name=name, path=f"/{path}/" if path else "/", trusts=(trusts,), managed_policies=managed_policies
    )
    return role.model_dump(mode="json")


def _zones_of_subnets(environment: Environment) -> dict[str, str]:
    """Return the zone of each subnet: from the file for node subnets; the others are spread over zones of EKS."""
    section = environment.network.existing
    if section is None:
        return {}
    zones = {subnet_id: zone for zone, subnet_id in section.node_subnet_ids.items()}
    known = dict.fromkeys(chain(section.node_subnet_ids, regions.known_az_ids(environment.region)))
    usable = cycle([zone for zone in known if zone not in ZONES_WITHOUT_CONTROL_PLANE])
    for subnet_id in section.control_plane_subnet_ids:
        if subnet_id not in zones:
            zones[subnet_id] = next(usable)
    return zones


def _blocks(cidrs: tuple[str, ...], count: int) -> Iterator[str]:
    """Divide blocks into at least ``count`` parts of the same, largest possible size."""
    blocks = list(collapse_addresses(map(IPv4Network, cidrs)))
    for prefix in range(min(block.prefixlen for block in blocks), 29):
        parts = [part for block in blocks if block.prefixlen <= prefix for part in block.subnets(new_prefix=prefix)]
        # EC2 does not allow subnets larger than /16
        if len(parts) >= count and prefix >= 16:
            yield from map(str, parts)
            return
    raise ValueError(f"{', '.join(cidrs)} cannot be divided into {count} subnets")


def satisfying(environment: Environment) -> dict[str, Any]:
    """Return the document of an account file with everything that the environment needs and no other resources.

    Its plans, roles, buckets and versions are those in the environment; a quota is AWS's default, or twice what is
    needed if that is more.
    """
    document = resolved(copy.deepcopy(_default()), environment)
    partition = regions.partition_of(environment.region) or "aws"
    account = environment.account
    roles = document["existing"]["iam_roles"]
    document["existing"] = {**document["existing"], "iam_roles": sorted({*roles, DEPLOYER})}
    document["quotas"] = _enough_quotas(environment, document["quotas"])
    document["iam"] = {
        "caller": f"arn:{partition}:sts::{account}:assumed-role/{DEPLOYER}/preflight",
        "service_linked_roles": {role.name: role.service for role in iam.SERVICE_LINKED_ROLES if not role.is_made_anew},
        "policies": list(_policies(environment, partition)),
    }
    document["bootstrap"] = {"version": iam.MINIMUM_BOOTSTRAP_VERSION, "qualifier": iam.BOOTSTRAP_QUALIFIER}
    document["buckets"] = dict.fromkeys(_buckets(environment), environment.region)
    document["kubernetes"] = {
        "addons": {name: [version] for name, version in sorted(environment.eks.addon_versions.items())},
        "api": "answers",
    }
    return document


@cache
def _default() -> dict[str, Any]:
    # cached, because tests of many environments read the shipped file each time
    return read_account_file(DEFAULT_ACCOUNT_FILE)


def _enough_quotas(environment: Environment, granted: dict[str, Any]) -> dict[str, Any]:
    merged = {service: dict(values) for service, values in granted.items()}
    for need in required_quotas(environment):
        values = merged.setdefault(need.service, {})
        enough = max(need.default, 2 * (need.needed + need.spare))
        values[need.name] = max(float(values.get(need.name, 0)), float(enough))
    return merged


def _policies(environment: Environment, partition: str) -> Iterable[str]:
    boundary = environment.permissions_boundary
    if not boundary:
        return
    arn = boundary if boundary.startswith("arn:") else f"arn:{partition}:iam::{environment.account}:policy/{boundary}"
    if f"::{environment.account}:" in arn:
        yield arn


def _buckets(environment: Environment) -> Iterable[str]:
    for file_system in environment.storage.lustre:
        for repository in file_system.data_repositories:
            yield repository.s3_uri.removeprefix("s3://").partition("/")[0]
    for volume in environment.storage.s3:
        yield volume.bucket
    yield from job_buckets(environment)
