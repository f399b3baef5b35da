"""Reads the deployed versions: of the control plane, its add-ons and the software of nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from hyperpod_cdk.checks.answers import NotAnswered, Refused
from hyperpod_cdk.checks.side_by_side import together
from hyperpod_cdk.handlers.quota_gate.reading import NotFound
from hyperpod_cdk.living.hyperpod import describe_cluster
from hyperpod_cdk.living.look import reading
from hyperpod_cdk.review.deployed import Api

_UPGRADE: Final = "VersionUpdate"
_TAKEN_BACK: Final = "VersionRollback"
_DONE: Final = "Successful"
_GONE: Final = "ResourceNotFoundException"


@dataclass(frozen=True, kw_only=True)
class Offer:
    """The versions of an add-on that EKS has for one Kubernetes version."""

    versions: frozenset[str]
    default: str | None


@dataclass(frozen=True, kw_only=True)
class Software:
    """The software of a group: its AMI's release, and when the node with the oldest software got it."""

    release: str | None
    updated: datetime | None
    """None if it has no nodes."""


@dataclass(kw_only=True)
class Ages:
    """The deployed versions; what could not be read or does not exist is None, or missing in a mapping.

    ``skipped`` says what could not be read, and why.
    """

    is_asked: bool = True
    """Whether AWS was asked; if not, the versions in the file are used as the deployed ones."""
    is_deployed: bool | None = None
    kubernetes: str | None = None
    upgraded: datetime | None = None
    """When the last upgrade of the control plane began, None if there was none or EKS has rolled it back since."""
    are_updates_read: bool = False
    """Whether EKS listed its updates, so that an empty list means that there was no upgrade."""
    addons: dict[str, str] = field(default_factory=dict)
    offers: dict[str, dict[str, Offer]] = field(default_factory=dict)
    """By add-on and Kubernetes version."""
    groups: dict[str, Software] | None = None
    skipped: list[str] = field(default_factory=list)


def read_ages(aws: Api, *, eks_cluster: str, cluster: str, addons: Sequence[str]) -> Ages:
    """Ask AWS for the deployed versions, and for compatible versions of ``addons``; what is not answered is skipped."""
    found = Ages()
    try:
        control_plane = _found(aws, "describe_cluster", name=eks_cluster)
        found.is_deployed = control_plane is not None
        if control_plane is not None:
            with reading("eks:DescribeCluster"):
                found.kubernetes = str(control_plane["cluster"]["version"])
    except NotAnswered as missing:
        found.skipped.append(f"the version of {eks_cluster}: {missing.sentence}")
    if found.is_deployed:
        upgraded = f"when {eks_cluster} was upgraded"
        found.are_updates_read = _read_into(found, upgraded, lambda: _upgraded(aws, eks_cluster), "upgraded")
        _read_into(found, "the software of nodes", lambda: _groups(aws, cluster), "groups")
        for name, answer in zip(addons, together(lambda each: _stands(aws, eks_cluster, each), addons), strict=True):
            if isinstance(answer, NotAnswered):
                found.skipped.append(f"the version of {name}: {answer.sentence}")
            elif answer is not None:
                found.addons[name] = answer
    for name, offers in zip(addons, together(lambda each: _offers(aws, each), addons), strict=True):
        if isinstance(offers, NotAnswered):
            found.skipped.append(f"the compatible versions of {name}: {offers.sentence}")
        else:
            found.offers[name] = offers
    return found


def _read_into(found: Ages, what: str, ask: Callable[[], Any], name: str) -> bool:
    try:
        setattr(found, name, ask())
    except NotAnswered as missing:
        found.skipped.append(f"{what}: {missing.sentence}")
        return False
    return True


def _upgraded(aws: Api, eks_cluster: str) -> datetime | None:
    ids = aws.pages("eks", "list_updates", "updateIds", name=eks_cluster)
    answers = together(lambda each: aws.call("eks", "describe_update", name=eks_cluster, updateId=each), ids)
    moments: list[tuple[datetime, str]] = []
    for answer in answers:
        if isinstance(answer, NotAnswered):
            raise answer
        with reading("eks:DescribeUpdate"):
            update = answer["update"]
            if update["type"] in (_UPGRADE, _TAKEN_BACK) and update["status"] == _DONE:
                moments.append((update["createdAt"], update["type"]))
    moment, kind = max(moments, default=(None, _UPGRADE))
    return moment if kind == _UPGRADE else None


def _groups(aws: Api, cluster: str) -> dict[str, Software]:
    described = describe_cluster(aws, cluster)
    if described is None:
        return {}
    nodes = aws.pages("sagemaker", "list_cluster_nodes", "ClusterNodeSummaries", ClusterName=cluster)
    with reading("sagemaker:ListClusterNodes"):
        moments: dict[str, list[datetime]] = {}
        for node in nodes:
            moment = node.get("LastSoftwareUpdateTime") or node["LaunchTime"]
            moments.setdefault(str(node["InstanceGroupName"]), []).append(moment)
    with reading("sagemaker:DescribeCluster"):
        return {
            str(each["InstanceGroupName"]): Software(
                release=each.get("CurrentImageReleaseVersion"),
                updated=min(moments.get(str(each["InstanceGroupName"]), []), default=None),
            )
            for each in described["InstanceGroups"]
        }


def _stands(aws: Api, eks_cluster: str, name: str) -> str | None:
    answer = _found(aws, "describe_addon", clusterName=eks_cluster, addonName=name)
    if answer is None:
        return None
    with reading("eks:DescribeAddon"):
        return str(answer["addon"]["addonVersion"])


def _found(aws: Api, operation: str, **params: Any) -> Mapping[str, Any] | None:
    """Make one call of EKS; None if it says that there is no such thing. Raises NotAnswered."""
    try:
        return aws.call("eks", operation, **params)
    except NotFound:
        return None
    except Refused as refused:
        if refused.code != _GONE:
            raise
        return None


def _offers(aws: Api, name: str) -> dict[str, Offer]:
    rows = aws.pages("eks", "describe_addon_versions", "addons", addonName=name)
    fitting: dict[str, set[str]] = {}
    defaults: dict[str, str] = {}
    with reading("eks:DescribeAddonVersions"):
        for row in rows:
            for each in row["addonVersions"]:
                for fit in each["compatibilities"]:
                    fitting.setdefault(str(fit["clusterVersion"]), set()).add(str(each["addonVersion"]))
                    if fit.get("defaultVersion"):
                        defaults[str(fit["clusterVersion"])] = str(each["addonVersion"])
    return {
        version: Offer(versions=frozenset(versions), default=defaults.get(version))
        for version, versions in fitting.items()
    }
