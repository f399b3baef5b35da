"""A persistent volume and a claim in each of several namespaces, bound to each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from aws_cdk import RemovalPolicy
from aws_cdk import aws_eks_v2 as eks
from constructs import Construct

from hyperpod_cdk.catalog import governance
from hyperpod_cdk.catalog.rules import repeated_problem
from hyperpod_cdk.common.manifests import applied_manifest
from hyperpod_cdk.config import storage as fields
from hyperpod_cdk.config.arguments import refuse, refuse_all, refuse_for

MakeVolume = Callable[[str], Mapping[str, Any]]


class VolumeClaims(Construct):
    """A persistent volume and a claim named ``claim_name`` in each of ``namespaces``, bound to each other.

    Every namespace gets its own volume, because a volume binds to one claim; all are the same files. Nothing that is
    mounted is deleted when claim or volume are deleted. ``volume`` gets a volume's name and returns its spec without
    the binding: capacity, access modes, mount options, CSI source. The claim requests ``request``, with the same access
    modes.

    The namespaces must exist, unless ``create_namespaces`` is set: then missing ones are created, and retained when the
    stack is deleted, because their workloads would be deleted with them. They get the Pod Security level baseline,
    except those of Kubernetes and of operators, whose pods may need more.

    Raises ValueError without a namespace, for repeated ones, and for names that Kubernetes refuses.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: eks.ICluster,
        claim_name: str,
        namespaces: Sequence[str],
        volume: MakeVolume,
        request: str,
        create_namespaces: bool = False,
    ) -> None:
        super().__init__(scope, construct_id)
        check_claims(claim_name, namespaces)
        self._manifests: dict[str, eks.KubernetesManifest] = {}
        self._namespaces: dict[str, eks.KubernetesManifest] = {}
        for namespace in namespaces:
            claim = {"namespace": namespace, "name": claim_name}
            # volumes share one name space; a dot, which no namespace contains, separates the two parts
            volume_name = f"{namespace}.{claim_name}"
            spec = volume(volume_name)
            manifest = applied_manifest(
                self,
                # with another name it is another claim, and the old one is deleted: an update would leave it
                f"Claim-{namespace}-{claim_name}",
                cluster=cluster,
                objects=[
                    _volume(volume_name, claim, spec),
                    _claim(volume_name, claim, access_modes=spec["accessModes"], request=request),
                ],
            )
            if create_namespaces:
                self._namespaces[namespace] = self._namespace(cluster, namespace)
                manifest.node.add_dependency(self._namespaces[namespace])
            self._manifests[namespace] = manifest

    @property
    def manifests(self) -> Mapping[str, eks.KubernetesManifest]:
        """The volume and claim of each namespace."""
        return self._manifests

    @property
    def namespaces(self) -> Mapping[str, eks.KubernetesManifest]:
        """The namespaces that are created here; resources that create the same one must depend on each other."""
        return self._namespaces

    def _namespace(self, cluster: eks.ICluster, namespace: str) -> eks.KubernetesManifest:
        metadata: dict[str, Any] = {"name": namespace}
        if not governance.is_namespace_of_others(namespace):
            metadata["labels"] = governance.pod_security_labels(governance.POD_SECURITY[0])
        # an existing one, of Kubernetes itself or of other claims, is not an error
        return applied_manifest(
            self,
            f"Namespace-{namespace}",
            cluster=cluster,
            objects=[{"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}],
            # a namespace may have existed before, with other objects in it: not even a creation
            # that is rolled back may delete it
            removal_policy=RemovalPolicy.RETAIN,
        )


def _volume(name: str, claim: Mapping[str, str], spec: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": spec["capacity"],
            "volumeMode": "Filesystem",
            "accessModes": spec["accessModes"],
            "mountOptions": spec["mountOptions"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "",
            "claimRef": claim,
            "csi": spec["csi"],
        },
    }


def _claim(
    volume_name: str, claim: Mapping[str, str], *, access_modes: Sequence[str], request: str
) -> Mapping[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": claim,
        "spec": {
            "accessModes": access_modes,
            # an empty class keeps the default class from provisioning another volume
            "storageClassName": "",
            "volumeName": volume_name,
            "resources": {"requests": {"storage": request}},
        },
    }


def check_claims(claim_name: str, namespaces: Sequence[str]) -> None:
    """Raise ValueError for a name that Kubernetes refuses, and for no, a repeated or an invalid namespace."""
    again = repeated_problem(namespaces, key="namespaces")
    refuse_all(
        lambda: refuse(fields.Claim, namespaces=namespaces),
        lambda: refuse(fields.Claim, called={"name": "claim_name"}, name=claim_name),
        lambda: refuse_for([again] if again else ()),
    )
