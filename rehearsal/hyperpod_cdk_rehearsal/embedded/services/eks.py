"""EKS control planes: clusters, their updates, tags and versions."""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import uuid
from collections.abc import Mapping, MutableMapping
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from botocore.exceptions import ClientError

from hyperpod_cdk_rehearsal.embedded import kubernetes_api
from hyperpod_cdk_rehearsal.embedded.account import account_of
from hyperpod_cdk_rehearsal.embedded.context import Context
from hyperpod_cdk_rehearsal.embedded.operations import ServiceError, operation
from hyperpod_cdk_rehearsal.embedded.published import kubernetes, quotas
from hyperpod_cdk_rehearsal.embedded.published.network import ZONES_WITHOUT_CONTROL_PLANE
from hyperpod_cdk_rehearsal.embedded.services import kubernetes_store
from hyperpod_cdk_rehearsal.embedded.services.guardduty import put_agent_endpoint
from hyperpod_cdk_rehearsal.embedded.services.interfaces import give_up, make_interface
from hyperpod_cdk_rehearsal.embedded.services.keys import key_problem
from hyperpod_cdk_rehearsal.embedded.services.network import ANYWHERE, Network
from hyperpod_cdk_rehearsal.embedded.services.principals import can_be_assumed_by
from hyperpod_cdk_rehearsal.embedded.services.quotas import effective_value
from hyperpod_cdk_rehearsal.embedded.services.stores import (
    AccessEntry,
    Addon,
    EksCluster,
    EksStore,
    eks_clusters,
    hyperpod_cluster_on,
)
from hyperpod_cdk_rehearsal.embedded.services.timeline import GONE, Timeline

CREATE_SECONDS = 1.0
UPDATE_SECONDS = 0.2
DELETE_SECONDS = 0.5

ROLLBACK_WINDOW = timedelta(days=7)
"""For how long after an upgrade EKS takes a control plane back by one minor version (user guide, rollback-cluster)."""

MOST_INTERFACES = 4
SERVICE_PRINCIPAL = "eks.amazonaws.com"
PLATFORM_VERSION = "eks.1"
SERVICE_CIDRS = ("172.20.0.0/16", "10.100.0.0/16")
"""What EKS chooses for services: the second where the VPC is in 172.20.0.0/16's way."""

LOG_TYPES = ("api", "audit", "authenticator", "controllerManager", "scheduler")

CONFIG_UPDATES = {
    "logging": ("LoggingUpdate", "ClusterLogging"),
    "resourcesVpcConfig": ("VpcConfigUpdate", "EndpointPublicAccess"),
    "accessConfig": ("AccessConfigUpdate", "AuthenticationMode"),
    "upgradePolicy": ("UpgradePolicyUpdate", "UpgradePolicy"),
    "zonalShiftConfig": ("ZonalShiftConfigUpdate", "ZonalShiftConfig"),
    "deletionProtection": ("DeletionProtectionUpdate", "DeletionProtection"),
    "remoteNetworkConfig": ("RemoteNetworkConfigUpdate", "RemoteNetworkConfig"),
    "computeConfig": ("AutoModeUpdate", "ComputeConfig"),
    "storageConfig": ("AutoModeUpdate", "StorageConfig"),
    "kubernetesNetworkConfig": ("AutoModeUpdate", "KubernetesNetworkConfig"),
    "controlPlaneScalingConfig": ("ControlPlaneScalingConfigUpdate", "UpdatedTier"),
}
"""Members of UpdateClusterConfig with the update's type and the parameter that names it."""

COPIED = (
    "computeConfig",
    "controlPlaneScalingConfig",
    "encryptionConfig",
    "remoteNetworkConfig",
    "storageConfig",
    "zonalShiftConfig",
)
"""Members of CreateCluster that DescribeCluster tells as they were asked for."""

UNPROTECTED = frozenset({"CREATING", "DELETING", "FAILED"})
"""States in which deletion protection does not hold: it is for active clusters (user guide, deletion protection)."""

AUTHENTICATION_STEPS = {"CONFIG_MAP": ("API_AND_CONFIG_MAP",), "API_AND_CONFIG_MAP": ("API",), "API": ()}
"""Where the authentication mode may go; there is no way back."""


@operation("eks", "CreateCluster")
def create_cluster(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Check what EKS checks, make the cluster security group, and begin to create the control plane."""
    name = request["name"]
    clusters = eks_clusters(context)
    if name in clusters:
        raise ServiceError("ResourceInUseException", f"Cluster already exists with name: {name}", 409)
    limit = effective_value(context, quotas.get("eks", quotas.EKS_CLUSTERS))
    if len(clusters) >= limit:
        raise ServiceError(
            "ResourceLimitExceededException", f"Cluster limit exceeded: the account may have {limit:g} clusters."
        )
    version = request.get("version") or kubernetes.DEFAULT
    if version not in {row.version for row in offered_versions(context)}:
        raise ServiceError("InvalidParameterException", f"unsupported Kubernetes version {version}")
    _check_role(context, request["roleArn"])
    _check_keys(context, request)
    _check_endpoint(request["resourcesVpcConfig"])
    subnets = _check_network(context, name, request["resourcesVpcConfig"])
    cluster = new_cluster(context, request, version, subnets)
    with context.state.lock:
        context.state.store(EksStore).clusters[name] = cluster
    _write_logs(context, cluster)
    _join_network(context, cluster)
    if account_of(context).guardduty is not None:
        put_agent_endpoint(context, cluster.vpc_id, cluster.view["resourcesVpcConfig"]["subnetIds"])
    return {"cluster": cluster_view(context, cluster)}


@operation("eks", "DescribeCluster")
def describe_cluster(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """The cluster."""
    return {"cluster": cluster_view(context, find_cluster(context, request["name"]))}


@operation("eks", "ListClusters")
def list_clusters(context: Context, _request: dict[str, Any]) -> dict[str, Any]:
    """Names of the clusters."""
    return {"clusters": sorted(eks_clusters(context))}


@operation("eks", "DeleteCluster")
def delete_cluster(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Delete a cluster that no HyperPod cluster uses."""
    cluster = find_cluster(context, request["name"])
    status = cluster.timeline.at(context.clock.now())
    if cluster.view.get("deletionProtection") and status not in UNPROTECTED:
        raise ServiceError("InvalidRequestException", f"Cluster {cluster.name} has deletion protection enabled.")
    hyperpod = hyperpod_cluster_on(context, cluster.arn)
    if hyperpod is not None:
        raise ServiceError(
            "ResourceInUseException",
            f"Cluster {cluster.name} is in use by the SageMaker HyperPod cluster {hyperpod.name}. Delete that "
            "cluster first.",
            409,
        )
    if status != "DELETING":
        give_up(context, cluster.interfaces)
        _delete_security_group(context, cluster.view["resourcesVpcConfig"]["clusterSecurityGroupId"])
        with context.state.lock:
            cluster.timeline = Timeline.begin(context.clock, "DELETING", (DELETE_SECONDS, GONE))
            kubernetes_store.remove_cluster(context, cluster.name)
        # logs arrive late, after somebody else may have deleted the group (terraform-aws-eks issue 920)
        _write_logs(context, cluster)
    return {"cluster": cluster_view(context, cluster)}


@operation("eks", "UpdateClusterConfig")
def update_cluster_config(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Change one thing of the configuration."""
    cluster = find_cluster(context, request["name"])
    _require_active(context, cluster)
    given = [member for member in CONFIG_UPDATES if request.get(member) is not None]
    kinds = {CONFIG_UPDATES[member][0] for member in given}
    if len(kinds) != 1:
        text = (
            "Only one type of update can be allowed." if kinds else "No changes needed for the cluster config provided"
        )
        raise ServiceError("InvalidParameterException", text)
    if "resourcesVpcConfig" in given:
        _check_endpoint({**cluster.view["resourcesVpcConfig"], **request["resourcesVpcConfig"]})
    for member in given:
        _change(cluster, member, request[member])
    _write_logs(context, cluster)
    kind, parameter = CONFIG_UPDATES[given[0]]
    return _begin_update(context, cluster, kind, [{"type": parameter, "value": str(request[given[0]])}])


@operation("eks", "UpdateClusterVersion")
def update_cluster_version(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Go to the next minor version, or back to the one before within some days of an upgrade."""
    cluster = find_cluster(context, request["name"])
    _require_active(context, cluster)
    wanted = request["version"]
    is_back = _is_way_back(context, cluster, wanted)
    if wanted not in {row.version for row in offered_versions(context)}:
        raise ServiceError("InvalidParameterException", f"unsupported Kubernetes version {wanted}")
    if not is_back and minor_number(wanted) != minor_number(cluster.version) + 1:
        raise ServiceError(
            "InvalidParameterException",
            f"Unsupported Kubernetes minor version update from {cluster.version} to {wanted}",
        )
    cluster.view["version"] = wanted
    cluster.upgraded = None if is_back else context.clock.now()
    kind = "VersionRollback" if is_back else "VersionUpdate"
    return _begin_update(context, cluster, kind, [{"type": "Version", "value": wanted}])


def _is_way_back(context: Context, cluster: EksCluster, wanted: str) -> bool:
    """Whether it is the version of before an upgrade that is young enough (user guide, rollback-cluster)."""
    if cluster.upgraded is None or minor_number(wanted) != minor_number(cluster.version) - 1:
        return False
    return context.clock.now() - cluster.upgraded <= ROLLBACK_WINDOW


@operation("eks", "DescribeUpdate")
def describe_update(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """An update of the cluster or of one of its add-ons."""
    cluster = find_cluster(context, request["name"])
    if request["updateId"] not in cluster.updates:
        raise ServiceError("ResourceNotFoundException", f"No update found for ID: {request['updateId']}", 404)
    return {"update": update_view(context, cluster, request["updateId"])}


@operation("eks", "ListUpdates")
def list_updates(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """IDs of the updates, oldest first."""
    return {"updateIds": list(find_cluster(context, request["name"]).updates)}


@operation("eks", "DescribeClusterVersions")
def describe_cluster_versions(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """The Kubernetes versions that EKS offers, newest first: its calendar's, where the account file says nothing."""
    wanted = request.get("clusterVersions")
    rows = [row for row in offered_versions(context) if not wanted or row.version in wanted]
    views = [_version_view(context, row) for row in rows]
    views = [view for view in views if request.get("includeAll") or view["versionStatus"] != "UNSUPPORTED"]
    if request.get("defaultOnly"):
        views = [view for view in views if view["defaultVersion"]]
    if request.get("versionStatus"):
        views = [view for view in views if view["versionStatus"] == request["versionStatus"]]
    return {"clusterVersions": views}


@operation("eks", "TagResource")
def tag_resource(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Tag a cluster, an add-on, an access entry or a pod identity association."""
    _tags_of(context, request["resourceArn"]).update(request["tags"])
    return {}


@operation("eks", "UntagResource")
def untag_resource(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Take tags away."""
    tags = _tags_of(context, request["resourceArn"])
    for key in request["tagKeys"]:
        tags.pop(key, None)
    return {}


@operation("eks", "ListTagsForResource")
def list_tags_for_resource(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """The tags of a resource."""
    return {"tags": dict(_tags_of(context, request["resourceArn"]))}


def offered_versions(context: Context) -> list[kubernetes.Version]:
    """The versions that EKS lists, newest first."""
    stated = account_of(context).kubernetes.versions
    return [row for row in reversed(kubernetes.VERSIONS) if stated.get(row.version) != "gone"]


def find_cluster(context: Context, name: str) -> EksCluster:
    """The cluster of this name. Raises ServiceError ResourceNotFoundException."""
    cluster = eks_clusters(context).get(name)
    if cluster is None:
        raise ServiceError("ResourceNotFoundException", f"No cluster found for name: {name}.", 404)
    return cluster


def find_active_cluster(context: Context, name: str) -> EksCluster:
    """The cluster of this name, which must not be on its way in or out. Raises ServiceError."""
    cluster = find_cluster(context, name)
    status = cluster.timeline.at(context.clock.now())
    if status not in {"ACTIVE", "UPDATING"}:
        raise ServiceError("InvalidRequestException", f"Cluster '{name}' is not in ACTIVE status: {status}")
    return cluster


def cluster_view(context: Context, cluster: EksCluster) -> dict[str, Any]:
    """The cluster as DescribeCluster gives it."""
    status = cluster.timeline.at(context.clock.now())
    view = {**cluster.view, "status": status}
    if status == "CREATING":
        for member in ("endpoint", "certificateAuthority", "identity"):
            view.pop(member)
        return view
    return {**view, **kubernetes_api.reachable(context, view)}


def begin_update(
    context: Context, cluster: EksCluster, kind: str, parameters: list[dict[str, str]], seconds: float
) -> dict[str, Any]:
    """Note an update that succeeds after so many seconds, and give its view."""
    update_id = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{cluster.arn}/{len(cluster.updates)}"))
    view = {"id": update_id, "type": kind, "params": parameters, "createdAt": context.clock.now(), "errors": []}
    cluster.updates[update_id] = (view, Timeline.begin(context.clock, "InProgress", (seconds, "Successful")))
    return update_view(context, cluster, update_id)


def update_view(context: Context, cluster: EksCluster, update_id: str) -> dict[str, Any]:
    """An update as DescribeUpdate gives it."""
    view, timeline = cluster.updates[update_id]
    return {**view, "status": timeline.at(context.clock.now())}


def _begin_update(context: Context, cluster: EksCluster, kind: str, parameters: list[dict[str, str]]) -> dict[str, Any]:
    with context.state.lock:
        cluster.timeline = Timeline.begin(context.clock, "UPDATING", (UPDATE_SECONDS, "ACTIVE"))
        return {"update": begin_update(context, cluster, kind, parameters, UPDATE_SECONDS)}


def _check_role(context: Context, role_arn: str) -> None:
    if not can_be_assumed_by(context, role_arn, SERVICE_PRINCIPAL):
        raise ServiceError(
            "InvalidParameterException",
            f"Role with arn: {role_arn}, could not be assumed because it does not exist or the trusted entity is not "
            "correct",
        )


def _check_keys(context: Context, request: Mapping[str, Any]) -> None:
    for item in request.get("encryptionConfig") or []:
        key = item.get("provider", {}).get("keyArn", "")
        problem = key_problem(context, key)
        if problem:
            raise ServiceError("InvalidParameterException", f"The KMS key {key} {problem}")


def _check_endpoint(config: Mapping[str, Any]) -> None:
    """Somebody must reach the API server, and from addresses that exist."""
    if not config.get("endpointPublicAccess", True) and not config.get("endpointPrivateAccess", False):
        raise ServiceError("InvalidParameterException", "Private and public endpoint access cannot be false")
    blocks = config.get("publicAccessCidrs") or []
    for kind, are_of_it in (("invalid", _is_no_block), ("not allowed", _is_reserved)):
        refused = [block for block in blocks if are_of_it(block)]
        if refused:
            raise ServiceError(
                "InvalidParameterException",
                f"The following CIDRs are {kind} in publicAccessCidrs: [{', '.join(refused)}]",
            )


def _is_no_block(text: str) -> bool:
    """No IPv4 block; IPv6 is for clusters of that address family alone (EKS user guide, cluster endpoint)."""
    try:
        ipaddress.IPv4Network(text, strict=False)
    except ValueError:
        return True
    return False


def _is_reserved(text: str) -> bool:
    """Inside a block that the internet does not route.

    Source: AWS re:Post, "lock down API access to specific IP addresses": the blocks "can't include reserved addresses".
    AWS lists none; refusals that were seen are of RFC 5737 and RFC 1918. So IANA's registry, as Python knows it. A
    block that reserved ones are a part of, as of EKS's own default 0.0.0.0/0, passes.
    """
    block = ipaddress.IPv4Network(text, strict=False)
    return block.is_multicast or not block.is_global


def _check_network(context: Context, name: str, config: Mapping[str, Any]) -> list[dict[str, Any]]:
    network = Network(context)
    subnets = []
    for subnet_id in config.get("subnetIds") or []:
        subnet = network.subnet(subnet_id)
        if subnet is None:
            raise ServiceError("InvalidParameterException", f"The subnet ID '{subnet_id}' does not exist")
        subnets.append(subnet)
    zones = {subnet["AvailabilityZoneId"]: subnet["AvailabilityZone"] for subnet in subnets}
    if len(zones) < 2:
        raise ServiceError("InvalidParameterException", "Subnets specified must be in at least two different AZs")
    _check_zones(context, name, zones)
    vpcs = sorted({subnet["VpcId"] for subnet in subnets})
    if len(vpcs) > 1:
        raise ServiceError("InvalidParameterException", f"Subnets must be in the same VPC, got {', '.join(vpcs)}")
    for group_id in config.get("securityGroupIds") or []:
        group = network.security_group(group_id)
        if group is None:
            raise ServiceError("InvalidParameterException", f"The security group ID '{group_id}' does not exist")
        if group["VpcId"] != vpcs[0]:
            raise ServiceError(
                "InvalidParameterException", f"Security group {group_id} and the subnets belong to different VPCs"
            )
    return subnets


def _check_zones(context: Context, name: str, zones: Mapping[str, str]) -> None:
    unsupported = ZONES_WITHOUT_CONTROL_PLANE
    refused = [zone for zone_id, zone in zones.items() if zone_id in unsupported]
    if not refused:
        return
    described = context.client("ec2").describe_availability_zones()["AvailabilityZones"]
    usable = sorted(zone["ZoneName"] for zone in described if zone["ZoneId"] not in unsupported)
    raise ServiceError(
        "UnsupportedAvailabilityZoneException",
        f"Cannot create cluster '{name}' because EKS does not support creating control plane instances in "
        f"{refused[0]}, the "
        "targeted availability zone. Retry cluster creation using control plane subnets that span at least two of "
        "these "
        f"availability zones: {', '.join(usable)}. Note, post cluster creation, you can run worker nodes in separate "
        "subnets/availability zones from control plane subnets/availability zones passed during cluster creation.",
    )


def new_cluster(
    context: Context,
    request: dict[str, Any],
    version: str,
    subnets: list[dict[str, Any]],
    *,
    security_group_id: str | None = None,
) -> EksCluster:
    """A cluster that begins to be created; its own security group is made unless one is given."""
    name = request["name"]
    arn = context.arn("eks", f"cluster/{name}")
    vpc_id = subnets[0]["VpcId"]
    token = hashlib.sha256(arn.encode()).hexdigest()[:32].upper()
    domain = f"{context.region}.eks.{context.url_suffix}"
    config = request["resourcesVpcConfig"]
    access = request.get("accessConfig") or {}
    view: dict[str, Any] = {
        "name": name,
        "arn": arn,
        "createdAt": context.clock.now(),
        "version": version,
        "platformVersion": PLATFORM_VERSION,
        "roleArn": request["roleArn"],
        "endpoint": f"https://{token}.gr7.{domain}",
        "certificateAuthority": {"data": base64.b64encode(f"certificate authority of {arn}".encode()).decode()},
        "identity": {"oidc": {"issuer": f"https://oidc.eks.{context.region}.{context.url_suffix}/id/{token}"}},
        "resourcesVpcConfig": {
            "subnetIds": list(config["subnetIds"]),
            "securityGroupIds": list(config.get("securityGroupIds") or []),
            "clusterSecurityGroupId": security_group_id or _create_security_group(context, name, vpc_id),
            "vpcId": vpc_id,
            "endpointPublicAccess": config.get("endpointPublicAccess", True),
            "endpointPrivateAccess": config.get("endpointPrivateAccess", False),
            "publicAccessCidrs": list(config.get("publicAccessCidrs") or [ANYWHERE]),
        },
        "kubernetesNetworkConfig": {"ipFamily": "ipv4", "serviceIpv4Cidr": _service_cidr(context, vpc_id)}
        | (request.get("kubernetesNetworkConfig") or {}),
        "logging": _logging(request.get("logging")),
        "accessConfig": {
            "authenticationMode": access.get("authenticationMode", "CONFIG_MAP"),
            "bootstrapClusterCreatorAdminPermissions": access.get("bootstrapClusterCreatorAdminPermissions", True),
        },
        "upgradePolicy": request.get("upgradePolicy") or {"supportType": "EXTENDED"},
        "deletionProtection": bool(request.get("deletionProtection")),
        "tags": dict(request.get("tags") or {}),
        "health": {"issues": []},
    }
    view.update({member: request[member] for member in COPIED if request.get(member)})
    timeline = Timeline.begin(context.clock, "CREATING", (CREATE_SECONDS, "ACTIVE"))
    return EksCluster(name=name, arn=arn, view=view, timeline=timeline)


def _create_security_group(context: Context, name: str, vpc_id: str) -> str:
    ec2 = context.client("ec2")
    suffix = hashlib.sha256(f"{name}/{vpc_id}/{context.clock.now()}".encode()).hexdigest()[:9]
    group_id = str(
        ec2.create_security_group(
            GroupName=f"eks-cluster-sg-{name}-{int(suffix, 16)}",
            Description="EKS created security group applied to ENI that is attached to EKS Control Plane master nodes, "
            "as well as any managed workloads.",
            VpcId=vpc_id,
        )["GroupId"]
    )
    itself = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group_id}]}]
    ec2.authorize_security_group_ingress(GroupId=group_id, IpPermissions=itself)
    # for EFA (EKS user guide, "Default cluster security group")
    ec2.authorize_security_group_egress(GroupId=group_id, IpPermissions=itself)
    ec2.create_tags(Resources=[group_id], Tags=[{"Key": f"kubernetes.io/cluster/{name}", "Value": "owned"}])
    return group_id


def _delete_security_group(context: Context, group_id: str) -> None:
    try:
        context.client("ec2").delete_security_group(GroupId=group_id)
    except ClientError as error:
        # somebody's rule still names the group: EKS leaves it behind then, and so does the rehearsal
        if error.response.get("Error", {}).get("Code") not in {"DependencyViolation", "InvalidGroup.NotFound"}:
            raise


def _service_cidr(context: Context, vpc_id: str) -> str:
    vpc = context.client("ec2").describe_vpcs(VpcIds=[vpc_id])["Vpcs"][0]
    return SERVICE_CIDRS[1] if vpc["CidrBlock"].startswith("172.") else SERVICE_CIDRS[0]


def _logging(wanted: Mapping[str, Any] | None) -> dict[str, Any]:
    enabled = {
        kind
        for setup in (wanted or {}).get("clusterLogging", [])
        if setup.get("enabled")
        for kind in setup.get("types", [])
    }
    setups = (
        (True, [kind for kind in LOG_TYPES if kind in enabled]),
        (False, [kind for kind in LOG_TYPES if kind not in enabled]),
    )
    return {"clusterLogging": [{"types": kinds, "enabled": on} for on, kinds in setups if kinds]}


def _join_network(context: Context, cluster: EksCluster) -> None:
    """Put EKS's interfaces into the subnets, two to four (EKS user guide, "networking requirements for VPC")."""
    config = cluster.view["resourcesVpcConfig"]
    cluster.interfaces = [
        make_interface(
            context,
            subnet_id=subnet_id,
            group_ids=[config["clusterSecurityGroupId"], *config["securityGroupIds"]],
            description=f"Amazon EKS {cluster.name}",
        )
        for subnet_id in config["subnetIds"][:MOST_INTERFACES]
    ]


def _write_logs(context: Context, cluster: EksCluster) -> None:
    """Make the log group that EKS writes to, where logging is on and there is none; it never expires."""
    if any(setup["enabled"] for setup in cluster.view["logging"]["clusterLogging"]):
        logs = context.client("logs")
        with suppress(logs.exceptions.ResourceAlreadyExistsException):
            logs.create_log_group(logGroupName=f"/aws/eks/{cluster.name}/cluster")


def _require_active(context: Context, cluster: EksCluster) -> None:
    status = cluster.timeline.at(context.clock.now())
    if status != "ACTIVE":
        raise ServiceError("ResourceInUseException", f"Cannot update cluster {cluster.name}: it is {status}", 409)


def _change(cluster: EksCluster, member: str, value: Any) -> None:
    view: MutableMapping[str, Any] = cluster.view
    if member == "accessConfig":
        _change_authentication(cluster, value["authenticationMode"])
    elif member == "logging":
        view["logging"] = _logging(value)
    elif isinstance(value, Mapping):
        view[member] = {**view.get(member, {}), **value}
    else:
        view[member] = value


def _change_authentication(cluster: EksCluster, wanted: str) -> None:
    current = cluster.authentication_mode
    if wanted not in AUTHENTICATION_STEPS[current]:
        raise ServiceError(
            "InvalidParameterException", f"Unsupported authentication mode update from {current} to {wanted}"
        )
    cluster.view["accessConfig"]["authenticationMode"] = wanted


def minor_number(version: str) -> int:
    """Return 34 of Kubernetes 1.34."""
    return int(version.split(".")[1])


def _version_view(context: Context, row: kubernetes.Version) -> dict[str, Any]:
    today = context.clock.now().date()
    status = "STANDARD_SUPPORT"
    if today >= row.standard_support_ends:
        status = "EXTENDED_SUPPORT"
    if today >= row.extended_support_ends:
        status = "UNSUPPORTED"
    status = account_of(context).kubernetes.versions.get(row.version, status)
    return {
        "clusterVersion": row.version,
        "clusterType": "eks",
        "defaultPlatformVersion": PLATFORM_VERSION,
        "defaultVersion": row.version == kubernetes.DEFAULT,
        "status": status.lower().replace("_", "-"),
        "versionStatus": status,
        "endOfStandardSupportDate": _midnight(row.standard_support_ends),
        "endOfExtendedSupportDate": _midnight(row.extended_support_ends),
    }


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=UTC)


def _tags_of(context: Context, arn: str) -> dict[str, str]:
    for cluster in eks_clusters(context).values():
        if arn == cluster.arn:
            found: dict[str, str] = cluster.view["tags"]
            return found
        records: list[Addon | AccessEntry] = [*cluster.addons.values(), *cluster.access_entries.values()]
        for record in records:
            if arn == record.arn:
                return record.tags
        for association in cluster.associations.values():
            if arn == association["associationArn"]:
                tags: dict[str, str] = association["tags"]
                return tags
    raise ServiceError("NotFoundException", f"Resource {arn} not found", 404)
