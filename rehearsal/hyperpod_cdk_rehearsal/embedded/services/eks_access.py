"""Access to an EKS cluster: access entries, their policies, and pod identity associations."""

from __future__ import annotations

import hashlib
import uuid
from typing import Any

from hyperpod_cdk_rehearsal.embedded.context import Context
from hyperpod_cdk_rehearsal.embedded.operations import ServiceError, operation
from hyperpod_cdk_rehearsal.embedded.services.eks import find_active_cluster, find_cluster
from hyperpod_cdk_rehearsal.embedded.services.principals import can_be_assumed_by, principal_exists
from hyperpod_cdk_rehearsal.embedded.services.stores import AccessEntry, EksCluster

POD_IDENTITY_PRINCIPAL = "pods.eks.amazonaws.com"
POD_IDENTITY_ACTIONS = ("sts:AssumeRole", "sts:TagSession")
STANDARD = "STANDARD"
ENTRY_TYPES = ("STANDARD", "EC2_LINUX", "EC2_WINDOWS", "FARGATE_LINUX", "HYBRID_LINUX", "HYPERPOD_LINUX", "EC2")


@operation("eks", "CreateAccessEntry")
def create_access_entry(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Create an access entry for an IAM principal."""
    cluster = find_active_cluster(context, request["clusterName"])
    principal, entry_type = request["principalArn"], request.get("type") or STANDARD
    if cluster.authentication_mode == "CONFIG_MAP":
        raise ServiceError(
            "InvalidRequestException",
            "The cluster's authentication mode must be set to one of [API, API_AND_CONFIG_MAP] to perform this "
            "operation.",
        )
    if entry_type not in ENTRY_TYPES:
        raise ServiceError("InvalidParameterException", f"The specified type {entry_type} is not supported.")
    if ":assumed-role/" in principal or not principal_exists(context, principal):
        raise ServiceError("InvalidParameterException", "The specified principalArn is invalid: invalid principal.")
    _check_groups(request.get("kubernetesGroups") or [])
    present = cluster.access_entries.get(principal)
    if present is not None:
        raise ServiceError(
            "ResourceInUseException", "The specified access entry resource is already in use on this cluster.", 409
        )
    now = context.clock.now()
    kind, name = principal.split(":", 5)[-1].split("/", 1)
    entry = AccessEntry(
        principal_arn=principal,
        arn=context.arn("eks", f"access-entry/{cluster.name}/{kind}/{context.account}/{name}/{uuid.uuid4()}"),
        type=entry_type,
        username=request.get("username") or _username(principal, entry_type),
        kubernetes_groups=list(request.get("kubernetesGroups") or []),
        created=now,
        modified=now,
        tags=dict(request.get("tags") or {}),
    )
    with context.state.lock:
        cluster.access_entries[principal] = entry
    return {"accessEntry": _entry_view(cluster, entry)}


@operation("eks", "DescribeAccessEntry")
def describe_access_entry(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """An access entry."""
    cluster, entry = _find(context, request)
    return {"accessEntry": _entry_view(cluster, entry)}


@operation("eks", "ListAccessEntries")
def list_access_entries(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Principals with an entry."""
    cluster = find_cluster(context, request["clusterName"])
    policy = request.get("associatedPolicyArn")
    found = sorted(name for name, entry in cluster.access_entries.items() if policy is None or policy in entry.policies)
    return {"accessEntries": found}


@operation("eks", "UpdateAccessEntry")
def update_access_entry(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Change the groups or the user name."""
    cluster, entry = _find(context, request)
    _check_groups(request.get("kubernetesGroups") or [])
    with context.state.lock:
        if request.get("kubernetesGroups") is not None:
            entry.kubernetes_groups = list(request["kubernetesGroups"])
        entry.username = request.get("username") or entry.username
        entry.modified = context.clock.now()
    return {"accessEntry": _entry_view(cluster, entry)}


@operation("eks", "DeleteAccessEntry")
def delete_access_entry(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Delete the access entry of an IAM principal."""
    cluster, entry = _find(context, request)
    with context.state.lock:
        del cluster.access_entries[entry.principal_arn]
    return {}


@operation("eks", "AssociateAccessPolicy")
def associate_access_policy(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Associate an access policy with an entry, for the cluster or for namespaces."""
    cluster, entry = _find(context, request)
    policy = request["policyArn"]
    if ":eks::aws:cluster-access-policy/" not in policy:
        raise ServiceError("InvalidParameterException", f"The policyArn parameter format is not valid: {policy}")
    if entry.type != STANDARD:
        raise ServiceError(
            "InvalidRequestException", f"Access policies cannot be associated with an entry of type {entry.type}."
        )
    scope = request["accessScope"]
    if scope["type"] == "namespace" and not scope.get("namespaces"):
        raise ServiceError(
            "InvalidParameterException", "The accessScope of type namespace must name at least one namespace."
        )
    now = context.clock.now()
    associated = {"policyArn": policy, "accessScope": scope, "associatedAt": now, "modifiedAt": now}
    with context.state.lock:
        entry.policies[policy] = associated
    return {"clusterName": cluster.name, "principalArn": entry.principal_arn, "associatedAccessPolicy": associated}


@operation("eks", "DisassociateAccessPolicy")
def disassociate_access_policy(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Disassociate an access policy from an entry."""
    _, entry = _find(context, request)
    with context.state.lock:
        if entry.policies.pop(request["policyArn"], None) is None:
            raise ServiceError("ResourceNotFoundException", f"No association with {request['policyArn']} found.", 404)
    return {}


@operation("eks", "ListAssociatedAccessPolicies")
def list_associated_access_policies(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """The access policies of an entry."""
    cluster, entry = _find(context, request)
    policies = [entry.policies[arn] for arn in sorted(entry.policies)]
    return {"clusterName": cluster.name, "principalArn": entry.principal_arn, "associatedAccessPolicies": policies}


@operation("eks", "CreatePodIdentityAssociation")
def create_pod_identity_association(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Create a pod identity association, with which pods of a service account assume a role."""
    cluster = find_active_cluster(context, request["clusterName"])
    _check_role(context, request["roleArn"])
    wanted = (request["namespace"], request["serviceAccount"])
    with context.state.lock:
        for present in cluster.associations.values():
            if (present["namespace"], present["serviceAccount"]) == wanted:
                said = f"Association already exists: {present['associationId']}"
                raise ServiceError("ResourceInUseException", said, 409)
        return {"association": add_association(context, cluster, request)}


@operation("eks", "DescribePodIdentityAssociation")
def describe_pod_identity_association(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """A pod identity association."""
    return {"association": _find_association(context, request)}


@operation("eks", "ListPodIdentityAssociations")
def list_pod_identity_associations(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """The pod identity associations of a cluster, a namespace or a service account."""
    cluster = find_cluster(context, request["clusterName"])
    found = [
        item
        for item in cluster.associations.values()
        if request.get("namespace") in {None, item["namespace"]}
        and request.get("serviceAccount") in {None, item["serviceAccount"]}
    ]
    members = ("clusterName", "namespace", "serviceAccount", "associationArn", "associationId", "ownerArn")
    return {"associations": [{name: item[name] for name in members if name in item} for item in found]}


@operation("eks", "UpdatePodIdentityAssociation")
def update_pod_identity_association(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Change the role."""
    association = _find_association(context, request)
    if request.get("roleArn"):
        _check_role(context, request["roleArn"])
    with context.state.lock:
        for member in ("roleArn", "disableSessionTags", "targetRoleArn", "policy"):
            if request.get(member) is not None:
                association[member] = request[member]
        association["modifiedAt"] = context.clock.now()
    return {"association": association}


@operation("eks", "DeletePodIdentityAssociation")
def delete_pod_identity_association(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Delete a pod identity association."""
    association = _find_association(context, request)
    with context.state.lock:
        remove_association(find_cluster(context, request["clusterName"]), association["associationArn"])
    return {"association": association}


def add_association(context: Context, cluster: EksCluster, request: dict[str, Any]) -> dict[str, Any]:
    """Record an association and give its view."""
    now = context.clock.now()
    key = f"{cluster.arn}/{request['namespace']}/{request['serviceAccount']}"
    association_id = f"a-{hashlib.sha256(key.encode()).hexdigest()[:17]}"
    members = ("namespace", "serviceAccount", "roleArn", "ownerArn", "disableSessionTags", "targetRoleArn", "policy")
    association = {
        "clusterName": cluster.name,
        "associationId": association_id,
        "associationArn": context.arn("eks", f"podidentityassociation/{cluster.name}/{association_id}"),
        "tags": dict(request.get("tags") or {}),
        "createdAt": now,
        "modifiedAt": now,
        **{member: request[member] for member in members if request.get(member) is not None},
    }
    cluster.associations[association_id] = association
    return association


def remove_association(cluster: EksCluster, association_arn: str) -> None:
    """Remove an association; a missing one is no error."""
    cluster.associations.pop(association_arn.rsplit("/", 1)[-1], None)


def _check_role(context: Context, role_arn: str) -> None:
    if not can_be_assumed_by(context, role_arn, POD_IDENTITY_PRINCIPAL, *POD_IDENTITY_ACTIONS):
        raise ServiceError(
            "InvalidParameterException",
            f"Role {role_arn} does not exist or does not trust {POD_IDENTITY_PRINCIPAL} with "
            f"{' and '.join(POD_IDENTITY_ACTIONS)}",
        )


def _check_groups(groups: list[str]) -> None:
    reserved = ("system:", "eks:", "aws:", "amazon:", "iam:")
    for group in groups:
        if group.startswith(reserved):
            raise ServiceError(
                "InvalidParameterException",
                f"The kubernetes group name {group} is invalid, it cannot start with {', '.join(reserved)}",
            )


def _find(context: Context, request: dict[str, Any]) -> tuple[EksCluster, AccessEntry]:
    cluster = find_cluster(context, request["clusterName"])
    entry = cluster.access_entries.get(request["principalArn"])
    if entry is None:
        raise ServiceError(
            "ResourceNotFoundException",
            "The specified principalArn could not be found. You can view your available access entries with "
            "'list-access-entries'.",
            404,
        )
    return cluster, entry


def _find_association(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    cluster = find_cluster(context, request["clusterName"])
    association = cluster.associations.get(request["associationId"])
    if association is None:
        raise ServiceError(
            "ResourceNotFoundException",
            f"The specified association ID {request['associationId']} could not be found.",
            404,
        )
    return association


def _username(principal: str, entry_type: str) -> str:
    if entry_type != STANDARD:
        return "system:node:{{EC2PrivateDNSName}}"
    name = principal.rsplit("/", 1)[-1]
    account = principal.split(":")[4]
    if ":role/" in principal:
        return f"arn:{principal.split(':')[1]}:sts::{account}:assumed-role/{name}/{{{{SessionName}}}}"
    return principal


def _entry_view(cluster: EksCluster, entry: AccessEntry) -> dict[str, Any]:
    return {
        "clusterName": cluster.name,
        "principalArn": entry.principal_arn,
        "accessEntryArn": entry.arn,
        "type": entry.type,
        "username": entry.username,
        "kubernetesGroups": entry.kubernetes_groups,
        "createdAt": entry.created,
        "modifiedAt": entry.modified,
        "tags": entry.tags,
    }
