"""Lets pods mount a Lustre file system: a volume and a claim per namespace, and their driver."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct

from hyperpod_cdk.catalog import addons
from hyperpod_cdk.catalog import lustre as rules
from hyperpod_cdk.common.acknowledgments import MANAGED_POLICY, acknowledge
from hyperpod_cdk.common.stack_arns import arn_of_aws
from hyperpod_cdk.config import storage as fields
from hyperpod_cdk.config.argument_types import judged
from hyperpod_cdk.config.arguments import refuse, refuse_all
from hyperpod_cdk.eks.node_addons import POD_IDENTITY_TRUST, check_addon, driver_addon
from hyperpod_cdk.storage.volume_claims import VolumeClaims, check_claims


@judged(known=("claim_name", "namespaces"))
class LustreClaims(VolumeClaims):
    """A persistent volume and a claim named ``claim_name`` in each of ``namespaces``, bound to each other.

    Every namespace gets its own volume, because a volume binds to one claim; all are the same files. Pods of many nodes
    can read and write at the same time. Nothing is deleted from the file system when claim or volume are deleted.

    ``capacity_gib`` is the size that the volume states; it follows a file system that grows. The claim requests the
    smallest file system: Kubernetes refuses to change the request of a claim on a volume like this ("only dynamically
    provisioned pvc can be resized"), and only the binding depends on it.

    The namespaces must exist, unless ``create_namespaces`` is set: then missing ones are created, and retained when the
    stack is deleted, because their workloads would be deleted with them. This must depend on what creates the
    namespaces (a team's compute quota) and on ``FsxCsiDriver``.

    ``cluster`` (eks_v2.ICluster): the CDK construct of the EKS cluster, with a kubectl provider. Raises ValueError for
    a cluster without one.

    ``file_system_id`` (str): ID of the file system, ``fs-...``. Raises ValueError for text of another form.

    ``dns_name`` (str): DNS name of the file system. Raises ValueError for text of another form.

    ``mount_name`` (str): Lustre's mount name of the file system. Raises ValueError unless it is 1 to 8 letters, digits,
    ``-`` and ``_``.

    ``capacity_gib`` (int, GiB): size that the volume states. Raises ValueError unless it is 1 to 2147483647.

    ``claim_name`` (str): name of the claim in each namespace. Raises ValueError for a name that Kubernetes refuses.

    ``namespaces`` (Sequence[str]): namespaces that get a claim, each once. Raises ValueError for none, a repeated one,
    and a name that Kubernetes refuses.

    ``create_namespaces`` (bool): whether missing namespaces are created. Default: no.
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
        source = {
            "driver": rules.CSI_DRIVER,
            "volumeHandle": file_system_id,
            "volumeAttributes": {"dnsname": dns_name, "mountname": mount_name},
        }
        refuse_all(
            lambda: refuse(
                fields.ExistingLustre,
                file_system_id=file_system_id,
                dns_name=dns_name,
                mount_name=mount_name,
                capacity_gib=capacity_gib,
            ),
            lambda: check_claims(claim_name, namespaces),
        )
        super().__init__(
            scope,
            construct_id,
            cluster=cluster,
            claim_name=claim_name,
            namespaces=namespaces,
            volume=lambda _: {
                "capacity": {"storage": f"{capacity_gib}Gi"},
                "accessModes": ["ReadWriteMany"],
                "mountOptions": ["flock"],
                "csi": source,
            },
            request=f"{rules.SMALLEST_CAPACITY_GIB}Gi",
            create_namespaces=create_namespaces,
        )


@judged()
class FsxCsiDriver(Construct):
    """The FSx CSI driver as an EKS add-on, with permissions from its own pod identity association.

    Needs the add-on ``eks-pod-identity-agent`` and, to become active, a node.

    Volumes of existing file systems, as those of ``LustreClaims``, need no permission at all: the driver mounts them by
    their DNS name, and calls FSx only to create, grow or delete a file system (aws-fsx-csi-driver, ``pkg/driver``). Its
    role prevents the driver from using the node's. ``makes_file_systems`` adds the policy with which storage classes
    can create file systems, AmazonFSxFullAccess.

    ``eks_cluster_name`` (str): name of the EKS cluster. Raises ValueError for a name that EKS refuses.

    ``addon_version`` (str): version of the add-on, such as ``v1.2.3-eksbuild.1``. Default: EKS's default for the
    Kubernetes version. Raises ValueError for text of another form.

    ``makes_file_systems`` (bool): whether the driver may create file systems for storage classes. Default: no.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        eks_cluster_name: str,
        addon_version: str | None = None,
        makes_file_systems: bool = False,
    ) -> None:
        super().__init__(scope, construct_id)
        check_addon(eks_cluster_name, addon_version)
        driver = addons.row(addons.FSX_CSI_DRIVER)
        policies = driver.managed_policies if makes_file_systems else ()
        role = iam.CfnRole(
            self,
            "Role",
            description="FSx CSI driver, through EKS pod identity",
            assume_role_policy_document=POD_IDENTITY_TRUST,
            managed_policy_arns=[arn_of_aws("iam", f"policy/{name}") for name in policies] or None,
        )
        reason = "EKS documents this policy for the driver, which makes file systems for storage classes"
        acknowledge(role, {MANAGED_POLICY.format(name): reason for name in policies})
        self._addon = driver_addon(
            self, driver, eks_cluster_name=eks_cluster_name, addon_version=addon_version, role_arn=role.attr_arn
        )

    @property
    def addon(self) -> eks.CfnAddon:
        """The add-on."""
        return self._addon
