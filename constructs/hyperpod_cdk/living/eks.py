"""The EKS cluster, its add-ons and its access entries, as EKS has them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

import yaml

from hyperpod_cdk.checks.answers import NotAnswered
from hyperpod_cdk.living.look import TAGS, Kind, Look, Properties, Stated, keyed, reading, siblings, taken
from hyperpod_cdk.templates.assembly import Assembly
from hyperpod_cdk.yaml_reading import read_inner

_GONE: Final = "ResourceNotFoundException"
_ADD_ON: Final = "AWS::EKS::Addon"
_ENTRY: Final = "AWS::EKS::AccessEntry"
_OF_GUARDDUTY: Final = "aws-guardduty-agent"
"""GuardDuty installs it automatically if it monitors EKS (GuardDuty user guide, automated agent configuration)."""

_OF_HYPERPOD: Final = "HYPERPOD_LINUX"
"""Type of the access entries that HyperPod creates for the execution roles of its groups."""


def _cluster(look: Look) -> Properties | None:
    found = look.found("eks", "describe_cluster", _GONE, name=look.id)
    if found is None:
        return None
    with reading("eks:DescribeCluster"):
        cluster = found["cluster"]
        network = cluster["resourcesVpcConfig"]
        logs = cluster.get("logging", {}).get("clusterLogging", [])
        return {
            "Name": cluster["name"],
            "Version": cluster["version"],
            "RoleArn": cluster["roleArn"],
            "AccessConfig": {"AuthenticationMode": cluster.get("accessConfig", {}).get("authenticationMode")},
            **_modes(cluster),
            "UpgradePolicy": {"SupportType": cluster.get("upgradePolicy", {}).get("supportType")},
            "ResourcesVpcConfig": {
                "EndpointPublicAccess": network["endpointPublicAccess"],
                "EndpointPrivateAccess": network["endpointPrivateAccess"],
                "PublicAccessCidrs": network.get("publicAccessCidrs", []),
                "SecurityGroupIds": network.get("securityGroupIds", []),
                "SubnetIds": network.get("subnetIds", []),
            },
            "Logging": {
                "ClusterLogging": {
                    "EnabledTypes": [{"Type": kind} for row in logs if row.get("enabled") for kind in row["types"]]
                }
            },
            "Addons": [{"Name": name} for name in _add_ons(look)],
            "AccessEntries": [{"Name": name} for name in _entries(look)],
            "Tags": keyed(cluster.get("tags", {})),
        }


def _modes(cluster: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a cluster that EKS reports; missing members say nothing."""
    network = cluster.get("kubernetesNetworkConfig", {})
    return {
        "ComputeConfig": {"Enabled": cluster.get("computeConfig", {}).get("enabled")},
        "ControlPlaneScalingConfig": {"Tier": cluster.get("controlPlaneScalingConfig", {}).get("tier", "standard")},
        "EncryptionConfig": [
            {"Provider": {"KeyArn": each["provider"].get("keyArn")}, "Resources": each["resources"]}
            for each in cluster.get("encryptionConfig", [])
        ],
        "KubernetesNetworkConfig": {
            "ElasticLoadBalancing": {"Enabled": network.get("elasticLoadBalancing", {}).get("enabled")},
            "IpFamily": network.get("ipFamily"),
            "ServiceIpv4Cidr": network.get("serviceIpv4Cidr"),
        },
        "StorageConfig": {
            "BlockStorage": {"Enabled": cluster.get("storageConfig", {}).get("blockStorage", {}).get("enabled")}
        },
        "ZonalShiftConfig": {"Enabled": cluster.get("zonalShiftConfig", {}).get("enabled")},
    }


def _of_cluster(stated: Stated) -> Properties:
    # the other member is write-only (CloudFormation schema)
    access = taken(stated.properties.get("AccessConfig") or {}, "AuthenticationMode")
    add_ons = [each.get("AddonName") for each in _members(stated.assembly, _ADD_ON, stated.id)]
    entries = [each.get("PrincipalArn") for each in _members(stated.assembly, _ENTRY, stated.id)]
    return {
        **stated.properties,
        "AccessConfig": access,
        "Addons": [{"Name": each} for each in add_ons if isinstance(each, str)],
        "AccessEntries": [{"Name": each} for each in entries if isinstance(each, str)],
    }


def _members(assembly: Assembly, kind: str, cluster: str) -> list[dict[str, Any]]:
    return siblings(assembly, kind, of=("ClusterName", cluster))


def _add_ons(look: Look) -> list[str]:
    """Return the installed add-ons, and those of the templates: a missing one is reported as a resource of its own."""
    ours = [str(each.get("AddonName")) for each in _members(look.deployed, _ADD_ON, look.id)]
    names = look.aws.pages("eks", "list_addons", "addons", clusterName=look.id)
    return [*dict.fromkeys([*ours, *(str(name) for name in names if name != _OF_GUARDDUTY)])]


def _entries(look: Look) -> list[str]:
    """Return the access entries, as ``_add_ons``, without those that HyperPod and AWS's services create."""
    ours = [each.get("PrincipalArn") for each in _members(look.deployed, _ENTRY, look.id)]
    if not all(isinstance(each, str) for each in ours):
        raise NotAnswered("a template has an access entry for an ARN that CloudFormation does not show")
    names = look.aws.pages("eks", "list_access_entries", "accessEntries", clusterName=look.id)
    others = [str(name) for name in names if name not in ours and ":role/aws-service-role/" not in str(name)]
    return [*map(str, ours), *(name for name in others if _type_of(look, name) not in (None, _OF_HYPERPOD))]


def _type_of(look: Look, principal: str) -> str | None:
    entry = look.found("eks", "describe_access_entry", _GONE, clusterName=look.id, principalArn=principal)
    return None if entry is None else str(entry["accessEntry"].get("type", ""))


def _add_on(look: Look) -> Properties | None:
    asked = {"clusterName": look.stated["ClusterName"], "addonName": look.stated["AddonName"]}
    found = look.found("eks", "describe_addon", _GONE, **asked)
    if found is None:
        return None
    with reading("eks:DescribeAddon"):
        addon = found["addon"]
        return {
            "ClusterName": addon["clusterName"],
            "AddonName": addon["addonName"],
            "AddonVersion": addon["addonVersion"],
            "ServiceAccountRoleArn": addon.get("serviceAccountRoleArn"),
            "ConfigurationValues": _parsed(addon.get("configurationValues")),
            "Tags": keyed(addon.get("tags", {})),
        }


def _of_add_on(stated: Stated) -> Properties:
    return {**stated.properties, "ConfigurationValues": _parsed(stated.properties.get("ConfigurationValues"))}


def _parsed(values: Any) -> Any:
    """Return configuration values as data: EKS takes JSON and YAML, and the same values can be written in many ways.

    Empty values are None, however they are written.
    """
    if not isinstance(values, str):
        return values
    try:
        return json.loads(values) or None
    except ValueError:
        pass
    try:
        return read_inner(values) or None
    except (yaml.YAMLError, RecursionError):
        return values


def _entry(look: Look) -> Properties | None:
    asked = {"clusterName": look.stated["ClusterName"], "principalArn": look.stated["PrincipalArn"]}
    found = look.found("eks", "describe_access_entry", _GONE, **asked)
    if found is None:
        return None
    policies = look.listed("eks", "list_associated_access_policies", "associatedAccessPolicies", _GONE, **asked)
    if policies is None:
        return None
    with reading("eks:DescribeAccessEntry"):
        entry = found["accessEntry"]
        return {
            "ClusterName": entry["clusterName"],
            "PrincipalArn": entry["principalArn"],
            "Type": entry.get("type"),
            "Username": entry.get("username"),
            "KubernetesGroups": entry.get("kubernetesGroups", []),
            "AccessPolicies": [
                {
                    "PolicyArn": each["policyArn"],
                    "AccessScope": {
                        "Type": each["accessScope"]["type"],
                        "Namespaces": each["accessScope"].get("namespaces", []),
                    },
                }
                for each in policies
            ],
            "Tags": keyed(entry.get("tags", {})),
        }


def _pod_identity(look: Look) -> Properties | None:
    cluster = look.stated["ClusterName"]
    where = {"namespace": look.stated["Namespace"], "serviceAccount": look.stated["ServiceAccount"]}
    rows = look.listed("eks", "list_pod_identity_associations", "associations", _GONE, clusterName=cluster, **where)
    if not rows:
        return None
    with reading("eks:ListPodIdentityAssociations"):
        asked = {"clusterName": cluster, "associationId": rows[0]["associationId"]}
    found = look.found("eks", "describe_pod_identity_association", _GONE, **asked)
    if found is None:
        return None
    with reading("eks:DescribePodIdentityAssociation"):
        one = found["association"]
        told = {"ClusterName": "clusterName", "Namespace": "namespace", "ServiceAccount": "serviceAccount"}
        return {
            **{ours: one[theirs] for ours, theirs in told.items()},
            "RoleArn": one["roleArn"],
            "Tags": keyed(one.get("tags", {})),
        }


def _protection(look: Look) -> Properties | None:
    name = look.properties.get("EksClusterName")
    if name is None:
        # it removes the protection of its stack and keeps no other state
        return {}
    found = look.found("eks", "describe_cluster", _GONE, name=str(name))
    if found is None:
        # a missing cluster is a difference of the cluster itself
        return look.stated
    with reading("eks:DescribeCluster"):
        return {"EksClusterName": name, "Enabled": bool(found["cluster"].get("deletionProtection"))}


def _of_protection(stated: Stated) -> Properties:
    return {"Enabled": True, **stated.properties} if "EksClusterName" in stated.properties else {}


KINDS: Final[Mapping[str, Kind]] = {
    "AWS::EKS::Cluster": Kind(
        properties=(
            "Name",
            "Version",
            "RoleArn",
            "AccessConfig",
            "ComputeConfig",
            "ControlPlaneScalingConfig",
            "EncryptionConfig",
            "KubernetesNetworkConfig",
            "StorageConfig",
            "UpgradePolicy",
            "ResourcesVpcConfig",
            "Logging",
            "ZonalShiftConfig",
            "Tags",
        ),
        read=_cluster,
        state=_of_cluster,
        made_by_hand=re.compile(
            rf"{TAGS}|Addons\[.+\]|AccessEntries\[.+\]|\w+Config\.(?:\w+\.)?Enabled|EncryptionConfig"
        ),
        members={"Addons": "the add-on", "AccessEntries": "the access entry"},
        same=(
            re.compile(r"Version|ResourcesVpcConfig\..+|Logging\..+"),
            "EKS refuses an update that changes nothing; AWS does not document whether CloudFormation sends it",
        ),
    ),
    _ADD_ON: Kind(
        properties=(
            "ClusterName",
            "AddonName",
            "AddonVersion",
            "ServiceAccountRoleArn",
            "ConfigurationValues",
            "Tags",
        ),
        read=_add_on,
        state=_of_add_on,
        made_by_hand=re.compile(rf"{TAGS}|ConfigurationValues\b.*|ServiceAccountRoleArn"),
    ),
    _ENTRY: Kind(
        properties=(
            "ClusterName",
            "PrincipalArn",
            "Type",
            "Username",
            "KubernetesGroups",
            "AccessPolicies",
            "Tags",
        ),
        read=_entry,
        made_by_hand=re.compile(rf"{TAGS}|AccessPolicies\[.+\]|KubernetesGroups"),
    ),
    "AWS::EKS::PodIdentityAssociation": Kind(
        properties=("ClusterName", "Namespace", "ServiceAccount", "RoleArn", "Tags"), read=_pod_identity
    ),
    "Custom::HyperPodDeletionProtection": Kind(
        properties=("EksClusterName", "Enabled"),
        read=_protection,
        state=_of_protection,
        is_sent_whole=True,
        resent="the function behind it switches the protection with every update",
    ),
}
