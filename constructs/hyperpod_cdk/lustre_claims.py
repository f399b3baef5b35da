"""Makes a Lustre file system mountable by pods: a volume and a claim per namespace, and the driver behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aws_cdk import Aws, RemovalPolicy
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct

from hyperpod_cdk.acknowledgments import MANAGED_POLICY, acknowledge
from hyperpod_cdk.catalog import addons
from hyperpod_cdk.catalog import lustre as rules
from hyperpod_cdk.node_addons import POD_IDENTITY_TRUST


class LustreClaims(Construct):
    """A persistent volume and a claim named ``claim_name`` in each of ``namespaces``, bound to each other.

    Every namespace gets a volume of its own, because a volume binds to one claim; all lead to the same files. Pods of
    many nodes may read and write at once. Nothing is deleted from the file system when claim or volume go.

    ``capacity_gib`` is what the volume says of itself and follows a file system that grows. The claim asks for the
    smallest file system there is: Kubernetes refuses to change what a claim on a volume like this asks for ("only
    dynamically provisioned pvc can be resized"), and nothing but the binding depends on it.

    The namespaces have to exist, unless ``create_namespaces``: then those that do not exist are made, and stay when the
    stack goes, since whatever runs in them would go with them. Let this depend on what makes the namespaces (a team's
    compute quota) and on ``FsxCsiDriver``.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: eks.ICluster,
        file_system_id: str,
        dns_name: str,
        mount_name: str,
        capacity_gib: int,
        claim_name: str,
        namespaces: Sequence[str],
        create_namespaces: bool = False,
    ) -> None:
        super().__init__(scope, construct_id)
        if len(set(namespaces)) != len(namespaces):
            raise ValueError(f"namespaces: must be different, got {', '.join(namespaces)}; remove the repeated ones")
        capacity = f"{capacity_gib}Gi"
        source = {
            "driver": rules.CSI_DRIVER,
            "volumeHandle": file_system_id,
            "volumeAttributes": {"dnsname": dns_name, "mountname": mount_name},
        }
        self._manifests: dict[str, eks.KubernetesManifest] = {}
        for namespace in namespaces:
            claim = {"namespace": namespace, "name": claim_name}
            # volumes share one name space; a dot, which no namespace contains, keeps the two parts apart
            volume_name = f"{namespace}.{claim_name}"
            manifest = eks.KubernetesManifest(
                self,
                f"Claim-{namespace}",
                cluster=cluster,
                prune=False,
                manifest=[
                    _volume(volume_name, claim, capacity=capacity, source=source),
                    _claim(volume_name, claim),
                ],
            )
            if create_namespaces:
                manifest.node.add_dependency(self._namespace(cluster, namespace))
            self._manifests[namespace] = manifest

    @property
    def manifests(self) -> Mapping[str, eks.KubernetesManifest]:
        """The volume and claim of each namespace."""
        return self._manifests

    def _namespace(self, cluster: eks.ICluster, namespace: str) -> eks.KubernetesManifest:
        return eks.KubernetesManifest(
            self,
            f"Namespace-{namespace}",
            cluster=cluster,
            prune=False,
            # one that is there already, of Kubernetes itself or of another file system's claims, is no failure
            overwrite=True,
            manifest=[{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}],
            removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
        )


class FsxCsiDriver(Construct):
    """The FSx CSI driver as an EKS add-on, with its rights from a pod identity association of its own.

    Needs the add-on ``eks-pod-identity-agent`` and, to become active, a node. ``addon_version`` left out means EKS's
    default version for the cluster's Kubernetes version.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        addon_version: str | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        driver = addons.row(addons.FSX_CSI_DRIVER)
        role = iam.CfnRole(
            self,
            "Role",
            description="FSx CSI driver, through EKS pod identity",
            assume_role_policy_document=POD_IDENTITY_TRUST,
            managed_policy_arns=[f"arn:{Aws.PARTITION}:iam::aws:policy/{name}" for name in driver.managed_policies],
        )
        reason = "EKS documents this policy for the driver, which creates and mounts file systems"
        acknowledge(role, {MANAGED_POLICY.format(name): reason for name in driver.managed_policies})
        self._addon = eks.CfnAddon(
            self,
            "Addon",
            cluster_name=cluster_name,
            addon_name=driver.name,
            addon_version=addon_version,
            resolve_conflicts="OVERWRITE",
        )
        for account in driver.service_accounts:
            association = eks.CfnPodIdentityAssociation(
                self,
                f"PodIdentity-{account}",
                cluster_name=cluster_name,
                namespace=driver.namespace or "",
                service_account=account,
                role_arn=role.attr_arn,
            )
            # pods read their association when they start
            self._addon.add_resource_dependency(association)

    @property
    def addon(self) -> eks.CfnAddon:
        """The add-on."""
        return self._addon


def _volume(name: str, claim: Mapping[str, str], *, capacity: str, source: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": capacity},
            "volumeMode": "Filesystem",
            "accessModes": ["ReadWriteMany"],
            "mountOptions": ["flock"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "",
            "claimRef": claim,
            "csi": source,
        },
    }


def _claim(volume_name: str, claim: Mapping[str, str]) -> Mapping[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": claim,
        "spec": {
            "accessModes": ["ReadWriteMany"],
            # an empty class keeps the default class from provisioning another volume
            "storageClassName": "",
            "volumeName": volume_name,
            "resources": {"requests": {"storage": f"{rules.SMALLEST_CAPACITY_GIB}Gi"}},
        },
    }
