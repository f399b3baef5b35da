"""Handlers of the EKS types: cluster, add-on, access entry, pod identity association."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

from hyperpod_cdk_rehearsal.embedded.resources._calls import as_list, call, changed, ignoring, is_true, retag, tag_map
from hyperpod_cdk_rehearsal.embedded.resources._waiting import wait_until_gone, wait_while
from hyperpod_cdk_rehearsal.embedded.resources.registry import (
    HandlerError,
    ResourceHandler,
    ResourceRequest,
    ResourceResult,
    handles,
)
from hyperpod_cdk_rehearsal.embedded.services.eks import minor_number

NOT_FOUND = "ResourceNotFoundException"
PASSING = ("CREATING", "UPDATING")

CLUSTER_PROPERTIES = (
    "AccessConfig",
    "BootstrapSelfManagedAddons",
    "ComputeConfig",
    "ControlPlaneScalingConfig",
    "DeletionProtection",
    "EncryptionConfig",
    "KubeApiServerConfig",
    "KubeControllerManagerConfig",
    "KubeSchedulerConfig",
    "KubernetesNetworkConfig",
    "OutpostConfig",
    "RemoteNetworkConfig",
    "ResourcesVpcConfig",
    "RoleArn",
    "StorageConfig",
    "UpgradePolicy",
    "Version",
    "ZonalShiftConfig",
)
"""Properties that the API takes under the same name, first letter small."""

UPDATES = (
    ("ResourcesVpcConfig",),
    ("AccessConfig",),
    ("UpgradePolicy",),
    ("ZonalShiftConfig",),
    ("DeletionProtection",),
    ("RemoteNetworkConfig",),
    ("ComputeConfig", "KubernetesNetworkConfig", "StorageConfig"),
    ("ControlPlaneScalingConfig",),
)
"""Properties that change in place; EKS takes one group of them at a time."""


@handles("AWS::EKS::Cluster")
class ClusterHandler(ResourceHandler):
    """`Ref` is the name."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        """Create the control plane and wait until it is ACTIVE."""
        properties = request.properties
        name = str(properties.get("Name") or request.generated_name(max_length=100))
        arguments = {"name": name, **{_small(key): _api(properties.get(key)) for key in CLUSTER_PROPERTIES}}
        arguments["logging"] = _logging(properties)
        arguments["tags"] = tag_map(properties.get("Tags")) or None
        call(_eks(request), "create_cluster", arguments)
        return self._settled(request, name)

    def read(self, request: ResourceRequest, identifier: Mapping[str, str]) -> ResourceResult:
        """Find a cluster by name."""
        return self._settled(request, identifier["Name"])

    def update(self, request: ResourceRequest) -> ResourceResult:
        """Change one thing after another, the version last, as EKS wants it."""
        name = request.existing_id
        properties = request.properties
        if changed(request, "Logging"):
            logging = _logging(properties) or {"clusterLogging": [{"types": [], "enabled": False}]}
            self._configure(request, {"name": name, "logging": logging})
        for group in UPDATES:
            if changed(request, *group):
                changes = {_small(key): _api(properties.get(key)) for key in group}
                # who created the cluster is settled; the API takes no word about it any more
                (changes.get("accessConfig") or {}).pop("bootstrapClusterCreatorAdminPermissions", None)
                self._configure(request, {"name": name, **changes})
        if changed(request, "Version"):
            _refuse_to_go_back(request)
            call(_eks(request), "update_cluster_version", {"name": name, "version": properties["Version"]})
        result = self._settled(request, name)
        _retag(request, str(result.attributes["Arn"]))
        return result

    def delete(self, request: ResourceRequest) -> None:
        """Delete the control plane and wait until it is gone."""
        name = request.existing_id
        with ignoring(NOT_FOUND):
            _eks(request).delete_cluster(name=name)
        wait_until_gone(request.context, lambda: _eks(request).describe_cluster(name=name), NOT_FOUND)

    def _configure(self, request: ResourceRequest, arguments: Mapping[str, Any]) -> None:
        call(_eks(request), "update_cluster_config", arguments)
        self._settled(request, str(arguments["name"]))

    def _settled(self, request: ResourceRequest, name: str) -> ResourceResult:
        answer = wait_while(
            request.context,
            lambda: dict(_eks(request).describe_cluster(name=name)),
            lambda found: str(found["cluster"]["status"]),
            *PASSING,
        )
        cluster = answer["cluster"]
        if cluster["status"] != "ACTIVE":
            raise HandlerError("NotStabilized", f"Cluster {name} is {cluster['status']}")
        key = next((item["provider"]["keyArn"] for item in cluster.get("encryptionConfig", [])), "")
        network = cluster["kubernetesNetworkConfig"]
        attributes = {
            "Id": "",
            "Name": name,
            "Arn": cluster["arn"],
            "Endpoint": cluster["endpoint"],
            "CertificateAuthorityData": cluster["certificateAuthority"]["data"],
            "CertificateAuthority.Data": cluster["certificateAuthority"]["data"],
            "ClusterSecurityGroupId": cluster["resourcesVpcConfig"]["clusterSecurityGroupId"],
            "EncryptionConfigKeyArn": key,
            "OpenIdConnectIssuerUrl": cluster["identity"]["oidc"]["issuer"],
            "KubernetesNetworkConfig.ServiceIpv4Cidr": network["serviceIpv4Cidr"],
            "KubernetesNetworkConfig.ServiceIpv6Cidr": network.get("serviceIpv6Cidr", ""),
        }
        return ResourceResult(name, attributes)


def _refuse_to_go_back(request: ResourceRequest) -> None:
    """Refuse the version before, which EKS takes and a stack that is rolled back does not bring.

    EKS user guide, rollback-cluster. The words are EKS's for a version that it does not take, as people meet them there
    (containers-roadmap issue 497).
    """
    wanted = str(request.properties["Version"])
    stands = str(_eks(request).describe_cluster(name=request.existing_id)["cluster"]["version"])
    # of any other version EKS itself says what is wrong
    if minor_number(wanted) == minor_number(stands) - 1:
        said = {
            "Code": "InvalidParameterException",
            "Message": f"Unsupported Kubernetes minor version update from {stands} to {wanted}",
        }
        response: Any = {"Error": said, "ResponseMetadata": {"HTTPStatusCode": 400}}
        raise ClientError(response, "UpdateClusterVersion")


@handles("AWS::EKS::Addon")
class AddonHandler(ResourceHandler):
    """`Ref` is "cluster|add-on"."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        """Install the add-on and wait until it is ACTIVE or DEGRADED; one that failed is removed again.

        CloudFormation takes DEGRADED, which an add-on is for want of nodes, as finished
        (hashicorp/terraform-provider-aws issue 44669).
        """
        arguments = {**self._arguments(request), "tags": tag_map(request.properties.get("Tags")) or None}
        namespace = request.properties.get("NamespaceConfig")
        call(_eks(request), "create_addon", {**arguments, "namespaceConfig": _api(namespace)})
        try:
            return self._settled(request)
        except HandlerError:
            self.delete(request)
            raise

    def read(self, request: ResourceRequest, identifier: Mapping[str, str]) -> ResourceResult:
        """Find an add-on by cluster and name."""
        names = {"clusterName": identifier["ClusterName"], "addonName": identifier["AddonName"]}
        addon = _eks(request).describe_addon(**names)["addon"]
        return ResourceResult("|".join(names.values()), {"Arn": addon["addonArn"]})

    def update(self, request: ResourceRequest) -> ResourceResult:
        """Change version, configuration or rights in place."""
        members = ("AddonVersion", "ConfigurationValues", "ServiceAccountRoleArn", "PodIdentityAssociations")
        if changed(request, *members):
            call(_eks(request), "update_addon", self._arguments(request))
        result = self._settled(request)
        _retag(request, str(result.attributes["Arn"]))
        return result

    def delete(self, request: ResourceRequest) -> None:
        """Remove the add-on and wait until it is gone."""
        names = self._names(request)
        with ignoring(NOT_FOUND):
            _eks(request).delete_addon(**names, preserve=is_true(request.properties.get("PreserveOnDelete")))
        wait_until_gone(request.context, lambda: _eks(request).describe_addon(**names), NOT_FOUND)

    def _names(self, request: ResourceRequest) -> dict[str, str]:
        return {"clusterName": request.properties["ClusterName"], "addonName": request.properties["AddonName"]}

    def _arguments(self, request: ResourceRequest) -> dict[str, Any]:
        members = ("AddonVersion", "ConfigurationValues", "ResolveConflicts", "ServiceAccountRoleArn")
        properties = request.properties
        return {
            **self._names(request),
            **{_small(member): properties.get(member) for member in members},
            "podIdentityAssociations": _api(properties.get("PodIdentityAssociations")),
        }

    def _settled(self, request: ResourceRequest) -> ResourceResult:
        names = self._names(request)
        addon = wait_while(
            request.context,
            lambda: dict(_eks(request).describe_addon(**names)["addon"]),
            lambda found: str(found["status"]),
            *PASSING,
        )
        if addon["status"] not in {"ACTIVE", "DEGRADED"}:
            issues = "; ".join(f"{issue['code']}: {issue['message']}" for issue in addon["health"]["issues"])
            raise HandlerError(
                "NotStabilized",
                f"Addon {names['addonName']} of cluster {names['clusterName']} is {addon['status']}: {issues}",
            )
        return ResourceResult(f"{names['clusterName']}|{names['addonName']}", {"Arn": addon["addonArn"]})


@handles("AWS::EKS::AccessEntry")
class AccessEntryHandler(ResourceHandler):
    """`Ref` is "principal|cluster", in the order of the schema's primary identifier."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        """Make the entry and associate its policies."""
        members = ("KubernetesGroups", "Type", "Username")
        arguments = {**self._names(request), **{_small(member): request.properties.get(member) for member in members}}
        arguments["tags"] = tag_map(request.properties.get("Tags")) or None
        entry = call(_eks(request), "create_access_entry", arguments)["accessEntry"]
        self._associate(request, self._policies(request.properties))
        return self._result(request, entry)

    def read(self, request: ResourceRequest, identifier: Mapping[str, str]) -> ResourceResult:
        """Find the entry of a principal."""
        names = {"clusterName": identifier["ClusterName"], "principalArn": identifier["PrincipalArn"]}
        entry = _eks(request).describe_access_entry(**names)["accessEntry"]
        return ResourceResult(
            f"{names['principalArn']}|{names['clusterName']}", {"AccessEntryArn": entry["accessEntryArn"]}
        )

    def update(self, request: ResourceRequest) -> ResourceResult:
        """Change groups, user name and policies in place."""
        properties = request.properties
        arguments = {
            **self._names(request),
            "kubernetesGroups": properties.get("KubernetesGroups", []),
            "username": properties.get("Username"),
        }
        entry = call(_eks(request), "update_access_entry", arguments)["accessEntry"]
        before, after = self._policies(request.previous or {}), self._policies(properties)
        for arn in before:
            if arn not in after:
                _eks(request).disassociate_access_policy(**self._names(request), policyArn=arn)
        self._associate(request, {arn: scope for arn, scope in after.items() if before.get(arn) != scope})
        _retag(request, entry["accessEntryArn"])
        return self._result(request, entry)

    def delete(self, request: ResourceRequest) -> None:
        """Delete the entry with its associations."""
        with ignoring(NOT_FOUND):
            _eks(request).delete_access_entry(**self._names(request))

    def _names(self, request: ResourceRequest) -> dict[str, str]:
        return {"clusterName": request.properties["ClusterName"], "principalArn": request.properties["PrincipalArn"]}

    def _policies(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        return {item["PolicyArn"]: _api(item["AccessScope"]) for item in as_list(properties.get("AccessPolicies"))}

    def _associate(self, request: ResourceRequest, policies: Mapping[str, Any]) -> None:
        for arn, scope in policies.items():
            call(
                _eks(request),
                "associate_access_policy",
                {**self._names(request), "policyArn": arn, "accessScope": scope},
            )

    def _result(self, request: ResourceRequest, entry: Mapping[str, Any]) -> ResourceResult:
        names = self._names(request)
        return ResourceResult(
            f"{names['principalArn']}|{names['clusterName']}", {"AccessEntryArn": entry["accessEntryArn"]}
        )


@handles("AWS::EKS::PodIdentityAssociation")
class PodIdentityAssociationHandler(ResourceHandler):
    """`Ref` is the association's ARN."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        """Make the association."""
        members = (
            "ClusterName",
            "Namespace",
            "ServiceAccount",
            "RoleArn",
            "DisableSessionTags",
            "TargetRoleArn",
            "Policy",
        )
        arguments = {_small(member): request.properties.get(member) for member in members}
        arguments["tags"] = tag_map(request.properties.get("Tags")) or None
        return self._result(call(_eks(request), "create_pod_identity_association", arguments)["association"])

    def read(self, request: ResourceRequest, identifier: Mapping[str, str]) -> ResourceResult:
        """Find an association by ARN, which names its cluster."""
        _, cluster, association = identifier["AssociationArn"].rsplit("/", 2)
        asked = {"clusterName": cluster, "associationId": association}
        return self._result(_eks(request).describe_pod_identity_association(**asked)["association"])

    def update(self, request: ResourceRequest) -> ResourceResult:
        """Change the role in place."""
        members = ("RoleArn", "DisableSessionTags", "TargetRoleArn", "Policy")
        arguments = {**self._names(request), **{_small(member): request.properties.get(member) for member in members}}
        result = self._result(call(_eks(request), "update_pod_identity_association", arguments)["association"])
        _retag(request, result.physical_id)
        return result

    def delete(self, request: ResourceRequest) -> None:
        """Delete the association."""
        with ignoring(NOT_FOUND):
            _eks(request).delete_pod_identity_association(**self._names(request))

    def _names(self, request: ResourceRequest) -> dict[str, str]:
        return {
            "clusterName": request.properties["ClusterName"],
            "associationId": request.existing_id.rsplit("/", 1)[-1],
        }

    def _result(self, association: Mapping[str, Any]) -> ResourceResult:
        arn = association["associationArn"]
        attributes = {"AssociationArn": arn, "AssociationId": association["associationId"], "ExternalId": ""}
        return ResourceResult(arn, attributes)


def _eks(request: ResourceRequest) -> Any:
    return request.context.client("eks")


def _retag(request: ResourceRequest, arn: str) -> None:
    eks = _eks(request)
    retag(
        request,
        add=lambda tags: eks.tag_resource(resourceArn=arn, tags=tags),
        remove=lambda keys: eks.untag_resource(resourceArn=arn, tagKeys=keys),
    )


def _small(name: str) -> str:
    return name[:1].lower() + name[1:]


def _api(value: Any) -> Any:
    """A property value with the keys that the API uses, first letter small at every level."""
    if isinstance(value, Mapping):
        return {_small(str(key)): _api(item) for key, item in value.items()}
    return [_api(item) for item in value] if isinstance(value, list) else value


def _logging(properties: Mapping[str, Any]) -> dict[str, Any] | None:
    enabled = ((properties.get("Logging") or {}).get("ClusterLogging") or {}).get("EnabledTypes")
    if not enabled:
        return None
    return {"clusterLogging": [{"types": [item["Type"] for item in enabled], "enabled": True}]}
