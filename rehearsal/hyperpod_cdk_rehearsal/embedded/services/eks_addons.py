"""EKS add-ons: install, describe, update, delete, and the versions on offer."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from hyperpod_cdk_rehearsal.embedded.account import account_of
from hyperpod_cdk_rehearsal.embedded.context import Context
from hyperpod_cdk_rehearsal.embedded.operations import ServiceError, operation
from hyperpod_cdk_rehearsal.embedded.published import addons, task_governance
from hyperpod_cdk_rehearsal.embedded.services import webhooks
from hyperpod_cdk_rehearsal.embedded.services.addon_health import addon_status
from hyperpod_cdk_rehearsal.embedded.services.eks import (
    begin_update,
    find_active_cluster,
    find_cluster,
    offered_versions,
)
from hyperpod_cdk_rehearsal.embedded.services.eks_access import add_association, remove_association
from hyperpod_cdk_rehearsal.embedded.services.principals import can_be_assumed_by
from hyperpod_cdk_rehearsal.embedded.services.stores import Addon, EksCluster
from hyperpod_cdk_rehearsal.embedded.services.timeline import GONE, Timeline

CREATE_SECONDS = 0.4
UPDATE_SECONDS = 0.2
DELETE_SECONDS = 0.2

VERSION_PATTERN = re.compile(r"v\d+\.\d+\.\d+-eksbuild\.\d+")

OFFERED_VERSIONS = {
    addons.VPC_CNI: "v1.20.4-eksbuild.1",
    addons.COREDNS: "v1.12.4-eksbuild.1",
    addons.POD_IDENTITY_AGENT: "v1.3.9-eksbuild.1",
    addons.CERT_MANAGER: "v1.18.2-eksbuild.2",
    addons.METRICS_SERVER: "v0.8.0-eksbuild.2",
    addons.FSX_CSI_DRIVER: "v1.6.0-eksbuild.1",
    addons.S3_CSI_DRIVER: "v2.1.0-eksbuild.1",
    addons.EBS_CSI_DRIVER: "v1.48.0-eksbuild.1",
    addons.TASK_GOVERNANCE: "v1.6.0-eksbuild.1",
    addons.TRAINING_OPERATOR: "v1.2.1-eksbuild.1",
    addons.INFERENCE: "v1.2.0-eksbuild.1",
    addons.OBSERVABILITY: "v1.0.4-eksbuild.1",
    addons.SPACES: "v0.2.0-eksbuild.2",
}
"""One version of each add-on that is used as EKS's default; the versions that EKS offers are unknown offline."""

FALLBACK_VERSION = "v1.0.0-eksbuild.1"


@operation("eks", "CreateAddon")
def create_addon(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Begin to install an add-on."""
    cluster = find_active_cluster(context, request["clusterName"])
    name = request["addonName"]
    if name in _living(context, cluster):
        raise ServiceError("ResourceInUseException", "Addon already exists.", 409)
    row = addons.get(name)
    if row is None or not _supports(row, cluster.version) or not offered(context, name, cluster.version):
        raise ServiceError(
            "InvalidParameterException",
            f"Addon {name} specified is not supported in {cluster.version} kubernetes version",
        )
    version = request.get("addonVersion") or offered(context, name, cluster.version)[0]
    _check_version(context, cluster, name, version)
    _check_request(context, row, version, request)
    now = context.clock.now()
    addon = Addon(
        name=name,
        arn=context.arn("eks", f"addon/{cluster.name}/{name}/{_uuid_like(cluster, name)}"),
        version=version,
        created=now,
        modified=now,
        timeline=Timeline.begin(context.clock, "CREATING", (CREATE_SECONDS, "ACTIVE")),
        request=dict(request),
        tags=dict(request.get("tags") or {}),
        refused=webhooks.refusal_of_addon(context, cluster, name, row.namespace or "kueue-system"),
    )
    if name in webhooks.SERVERS:
        wait = webhooks.answers_after(context, name) * context.clock.scale
        addon.answers_at = addon.timeline.steps[-1][0] + timedelta(seconds=wait)
    with context.state.lock:
        cluster.addons[name] = addon
        addon.request["associationArns"] = _associate(context, cluster, row, request)
    return {"addon": _view(context, cluster, addon)}


@operation("eks", "DescribeAddon")
def describe_addon(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """An add-on with its health."""
    cluster = find_cluster(context, request["clusterName"])
    return {"addon": _view(context, cluster, _find(context, cluster, request["addonName"]))}


@operation("eks", "ListAddons")
def list_addons(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Names of the add-ons of a cluster."""
    cluster = find_cluster(context, request["clusterName"])
    return {"addons": sorted(_living(context, cluster))}


@operation("eks", "UpdateAddon")
def update_addon(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Begin to change an add-on's version or configuration."""
    cluster = find_active_cluster(context, request["clusterName"])
    addon = _find(context, cluster, request["addonName"])
    row = addons.row(addon.name)
    version = request.get("addonVersion") or addon.version
    if version != addon.version:
        _check_version(context, cluster, addon.name, version)
    _check_request(context, row, version, request)
    _check_step(addon, version)
    members = ("serviceAccountRoleArn", "configurationValues", "resolveConflicts")
    with context.state.lock:
        addon.request.update({member: request[member] for member in members if member in request})
        if "podIdentityAssociations" in request:
            for arn in addon.request.get("associationArns", []):
                remove_association(cluster, arn)
            addon.request["associationArns"] = _associate(context, cluster, row, request)
        addon.version, addon.modified, addon.judged = version, context.clock.now(), False
        # its own webhooks keep responding: a deployment with one pod starts the new pod before it ends the old one
        addon.refused = webhooks.refusal_of_addon(context, cluster, addon.name, row.namespace or "kueue-system")
        addon.timeline = Timeline.begin(context.clock, "UPDATING", (UPDATE_SECONDS, "ACTIVE"))
        parameters = [{"type": "AddonVersion", "value": version}]
        return {"update": begin_update(context, cluster, "AddonUpdate", parameters, UPDATE_SECONDS)}


@operation("eks", "DeleteAddon")
def delete_addon(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Begin to remove an add-on."""
    cluster = find_cluster(context, request["clusterName"])
    addon = _find(context, cluster, request["addonName"])
    with context.state.lock:
        for arn in addon.request.get("associationArns", []):
            remove_association(cluster, arn)
        addon.timeline = Timeline.begin(context.clock, "DELETING", (DELETE_SECONDS, GONE))
    return {"addon": _view(context, cluster, addon)}


@operation("eks", "DescribeAddonVersions")
def describe_addon_versions(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """The versions of each add-on, said to suit every Kubernetes version that the add-on supports.

    There is one for each, unless the account file names others.
    """
    wanted, only = request.get("kubernetesVersion"), request.get("addonName")
    rows = [addons.row(name) for name in sorted(addons.names()) if only in {None, name}]
    versions = [row.version for row in offered_versions(context) if wanted in {None, row.version}]
    infos = [info for row in rows if (info := _info(context, row, versions))["addonVersions"]]
    return {"addons": infos}


def offered(context: Context, name: str, kubernetes_version: str) -> tuple[str, ...]:
    """The versions of an add-on for a Kubernetes version, EKS's default first."""
    stated = _stated(context, kubernetes_version)
    return stated[name] if name in stated else (default_version(name, kubernetes_version),)


def _stated(context: Context, kubernetes_version: str) -> Mapping[str, tuple[str, ...]]:
    offer = account_of(context).kubernetes
    return {**offer.addons, **offer.addons_for.get(kubernetes_version, {})}


def default_version(name: str, kubernetes_version: str) -> str:
    """The version that stands for EKS's default; kube-proxy's is the cluster's own."""
    if name == addons.KUBE_PROXY:
        return f"v{kubernetes_version}.0-eksbuild.1"
    return OFFERED_VERSIONS.get(name, FALLBACK_VERSION)


def _living(context: Context, cluster: EksCluster) -> dict[str, Addon]:
    now = context.clock.now()
    with context.state.lock:
        for name in [name for name, addon in cluster.addons.items() if addon.timeline.at(now) == GONE]:
            del cluster.addons[name]
        return dict(cluster.addons)


def _find(context: Context, cluster: EksCluster, name: str) -> Addon:
    addon = _living(context, cluster).get(name)
    if addon is None:
        raise ServiceError("ResourceNotFoundException", f"No addon: {name} found in cluster: {cluster.name}", 404)
    return addon


def _check_version(context: Context, cluster: EksCluster, name: str, version: str) -> None:
    """Refuse what EKS has not for the cluster's Kubernetes version, as in awsdocs/amazon-eks-user-guide pull 1170."""
    is_stated = name in _stated(context, cluster.version)
    is_offered = version in offered(context, name, cluster.version) if is_stated else _may_be(name, version, cluster)
    if not VERSION_PATTERN.fullmatch(version) or not is_offered:
        raise ServiceError("InvalidParameterException", f"Addon version specified is not supported: {version}")


def _may_be(name: str, version: str, cluster: EksCluster) -> bool:
    """Return whether a version that no account file lists may be one for the cluster.

    EKS user guide, "Manage kube-proxy": kube-proxy has Kubernetes' skew policy, not newer than the API server and at
    most three minor versions older (kubernetes.io/releases/version-skew-policy).
    """
    minor = re.match(r"v1\.(\d+)\.", version)
    return name != addons.KUBE_PROXY or minor is None or 0 <= _minor(cluster.version) - int(minor[1]) <= 3


def _check_request(context: Context, row: addons.Addon, version: str, request: dict[str, Any]) -> None:
    associations = request.get("podIdentityAssociations") or []
    if associations and not row.takes_associations:
        raise ServiceError(
            "InvalidParameterException", f"Pod Identity feature is not supported for addon version {row.name}:{version}"
        )
    for item in associations:
        if not can_be_assumed_by(
            context, item["roleArn"], "pods.eks.amazonaws.com", "sts:AssumeRole", "sts:TagSession"
        ):
            raise ServiceError(
                "InvalidParameterException",
                f"Role {item['roleArn']} does not exist or does not trust pods.eks.amazonaws.com with sts:AssumeRole "
                "and "
                "sts:TagSession",
            )
    if request.get("configurationValues"):
        _check_configuration(request["configurationValues"])


def _check_configuration(text: str) -> None:
    # EKS takes JSON or YAML; what begins like JSON must be JSON
    if text.lstrip().startswith("{"):
        try:
            json.loads(text)
        except json.JSONDecodeError as error:
            raise ServiceError(
                "InvalidParameterException", f"ConfigurationValue provided in request is not valid JSON: {error.msg}"
            ) from error


def _check_step(addon: Addon, version: str) -> None:
    if addon.name == addons.TASK_GOVERNANCE and task_governance.skips_a_release(addon.version, version):
        raise ServiceError(
            "InvalidParameterException",
            f"Addon {addon.name} cannot be updated from {addon.version} to {version} directly",
        )


def _associate(context: Context, cluster: EksCluster, row: addons.Addon, request: dict[str, Any]) -> list[str]:
    owner = context.arn("eks", f"addon/{cluster.name}/{row.name}")
    return [
        add_association(
            context,
            cluster,
            {
                "namespace": row.namespace or "kube-system",
                "serviceAccount": item["serviceAccount"],
                "roleArn": item["roleArn"],
                "ownerArn": owner,
            },
        )["associationArn"]
        for item in request.get("podIdentityAssociations") or []
    ]


def _view(context: Context, cluster: EksCluster, addon: Addon) -> dict[str, Any]:
    status, issue = addon_status(context, cluster, addon)
    view: dict[str, Any] = {
        "addonName": addon.name,
        "clusterName": cluster.name,
        "status": status,
        "addonVersion": addon.version,
        "addonArn": addon.arn,
        "createdAt": addon.created,
        "modifiedAt": addon.modified,
        "health": {"issues": [{"code": issue[0], "message": issue[1]}] if issue else []},
        "tags": addon.tags,
    }
    for member in ("serviceAccountRoleArn", "configurationValues"):
        if addon.request.get(member):
            view[member] = addon.request[member]
    if addon.request.get("associationArns"):
        view["podIdentityAssociations"] = addon.request["associationArns"]
    if addon.request.get("namespaceConfig"):
        view["namespaceConfig"] = addon.request["namespaceConfig"]
    return view


def _info(context: Context, row: addons.Addon, kubernetes_versions: list[str]) -> dict[str, Any]:
    suited: dict[str, list[dict[str, Any]]] = {}
    # oldest first, as EKS lists them
    for wanted in sorted((item for item in kubernetes_versions if _supports(row, item)), key=_minor):
        for index, version in enumerate(offered(context, row.name, wanted)):
            suited.setdefault(version, []).append(
                {"clusterVersion": wanted, "platformVersions": ["*"], "defaultVersion": index == 0}
            )
    return {
        "addonName": row.name,
        "owner": "aws",
        "publisher": "eks",
        "defaultNamespace": row.namespace or "kube-system",
        "addonVersions": [
            {
                "addonVersion": version,
                "architecture": ["amd64", "arm64"],
                "compatibilities": compatibilities,
                "requiresConfiguration": False,
                "requiresIamPermissions": row.needs_role and row.takes_associations,
            }
            for version, compatibilities in suited.items()
        ],
    }


def _supports(row: addons.Addon, version: str) -> bool:
    least = row.minimum_kubernetes
    return least is None or _minor(version) >= _minor(least)


def _minor(version: str) -> int:
    return int(version.split(".")[1])


def _uuid_like(cluster: EksCluster, name: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{cluster.arn}/{name}"))
