"""Makes a Lustre file system mountable by pods: a volume and a claim per namespace, and the driver behind them."""

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
from hyperpod_cdk.config.arguments import refuse
from hyperpod_cdk.eks.node_addons import POD_IDENTITY_TRUST, driver_addon
from hyperpod_cdk.storage.volume_claims import VolumeClaims


class LustreClaims(VolumeClaims):
    """A persistent volume and a claim named ``claim_name`` in each of ``namespaces``, bound to each other.

    Every namespace gets a volume of its own, because a volume binds to one claim; all lead to the same files. Pods of
    many nodes may read and write at once. Nothing is deleted from the file system when claim or volume go.

    ``capacity_gib`` is what the volume says of itself and follows a file system that grows. The claim asks for the
    smallest file system there is: Kubernetes refuses to change what a claim on a volume like this asks for ("only
    dynamically provisioned pvc can be resized"), and nothing but the binding depends on it.

    The namespaces have to exist, unless ``create_namespaces``: then those that do not exist are made, and stay when the
    stack goes, since whatever runs in them would go with them. Let this depend on what makes the namespaces (a team's
    compute quota) and on ``FsxCsiDriver``.

    ``cluster``: the EKS cluster as CDK has it, with a kubectl provider.

    ``file_system_id``: ID of the file system, ``fs-...``.

    ``dns_name``: DNS name of the file system.

    ``mount_name``: Lustre's mount name of the file system.

    ``capacity_gib``: what the volume says that it holds, in GiB.

    ``claim_name``: name of the claim in each namespace.

    ``namespaces``: namespaces that get a claim, each once; at least one.

    ``create_namespaces``: whether namespaces that do not exist are made. Default: no.

    Raises ValueError for names that Kubernetes refuses, and for a namespace twice.
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
        refuse(
            fields.ExistingLustre,
            file_system_id=file_system_id,
            dns_name=dns_name,
            mount_name=mount_name,
            capacity_gib=capacity_gib,
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


class FsxCsiDriver(Construct):
    """The FSx CSI driver as an EKS add-on, with its rights from a pod identity association of its own.

    Needs the add-on ``eks-pod-identity-agent`` and, to become active, a node. ``addon_version`` left out means EKS's
    default version for the cluster's Kubernetes version.

    Volumes of file systems that exist, as those of ``LustreClaims``, need no right at all: the driver mounts them by
    their DNS name, and asks FSx only where it makes, grows or deletes a file system (aws-fsx-csi-driver,
    ``pkg/driver``). Its role still keeps it from taking the node's. ``makes_file_systems`` gives it the policy with
    which storage classes can make file systems, AmazonFSxFullAccess. Default: no.

    Raises ValueError for what is no name of an EKS cluster or no version of an add-on.

    ``eks_cluster_name``: name of the EKS cluster.

    ``addon_version``: version of the add-on, such as ``v1.2.3-eksbuild.1``. Default: EKS's default for the
    Kubernetes version.

    ``makes_file_systems``: whether the driver may make file systems for storage classes. Default: no.
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
