"""The platform stack: add-ons, operators, task governance and persistent volumes, which need running nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import aws_cdk as cdk
from aws_cdk import aws_eks_v2 as eks
from constructs import Construct, DependencyGroup, IDependable

from hyperpod_cdk import (
    AwaitedGroup,
    CheckpointAccess,
    CoreDns,
    EbsCsiDriver,
    FsxCsiDriver,
    InferenceOperator,
    KarpenterPools,
    LustreClaims,
    NodeAddon,
    NodesReady,
    S3Claims,
    S3CsiDriver,
    Spaces,
    TaskGovernance,
    TrainingOperator,
    WebhookReady,
)
from hyperpod_cdk.catalog import addons, governance
from hyperpod_cdk.common.selection import resources_of
from hyperpod_cdk.config import Environment, Lustre, S3Volume
from hyperpod_cdk.config.awaited_nodes import addon_groups, comes_soon
from hyperpod_cdk.config.rules.operators import inference_has_an_oidc_provider
from hyperpod_cdk.config.source import render_path
from hyperpod_cdk.governance.teams import PriorityClass
from hyperpod_cdk.storage.s3_claims import MountedBucket
from hyperpod_cdk.storage.volume_claims import VolumeClaims
from hyperpod_cdk_stacks.foundation import FoundationStack
from hyperpod_cdk_stacks.hyperpod import HyperPodStack
from hyperpod_cdk_stacks.observability import ObservabilityStack
from hyperpod_cdk_stacks.storage import StorageStack
from hyperpod_cdk_stacks.teams import governed_teams, is_native_here

_CERT_MANAGER_ID = "TrainingOperatorCertManager4A661BB6"


class PlatformStack(cdk.Stack):
    """Add-ons and objects that only become healthy when HyperPod nodes have joined the cluster.

    ``environment`` (Environment): the environment, as its file describes it.

    ``foundation`` (FoundationStack): the stack with the network, the EKS cluster and the roles.

    ``storage`` (StorageStack | None): the stack with the file systems; None if there are none.

    ``hyperpod`` (HyperPodStack): the stack with the HyperPod cluster.

    ``termination_protection`` (bool): whether CloudFormation refuses to delete the stack.
    """

    @staticmethod
    def has_resources(environment: Environment) -> bool:
        """Return whether anything in ``environment`` needs nodes; CloudFormation refuses a stack without resources."""
        eks = environment.eks
        return (
            eks.installs(addons.COREDNS)
            or environment.task_governance is not None
            or bool(environment.hyperpod.resolved_karpenter_pools)
            or any(eks.installs(addon) for addon in _operator_addons(environment))
            or any(lustre.claim is not None for lustre in environment.storage.lustre)
            or _writes_checkpoints(environment)
            or bool(environment.storage.s3)
            # it is in another stack, and waits for the nodes of this one
            or (ObservabilityStack.has_addon(environment) and bool(addon_groups(environment)))
        )

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: Environment,
        foundation: FoundationStack,
        storage: StorageStack | None,
        hyperpod: HyperPodStack,
        termination_protection: bool,
    ) -> None:
        super().__init__(scope, construct_id, termination_protection=termination_protection)
        self._environment = environment
        self._eks_name = environment.eks_cluster_name
        self._versions = environment.eks.addon_versions
        self._installs = environment.eks.installs
        self._namespaces: dict[str, eks.KubernetesManifest] = {}
        # without a node for pods, no webhook ever responds
        self._has_nodes = bool(addon_groups(environment))
        if self._installs(addons.COREDNS):
            CoreDns(self, "CoreDns", eks_cluster_name=self._eks_name, addon_version=self._versions.get(addons.COREDNS))
        self._karpenter_pools(foundation, hyperpod)
        self.governance = self._governance(foundation, hyperpod)
        self._operators(foundation, hyperpod)
        self._checkpoint_access()
        self._claims(foundation, storage)
        self._wait_for_nodes(hyperpod)
        self._order_by_kueues_webhooks()

    def _order_by_kueues_webhooks(self) -> None:
        """Prevent add-ons from creating workloads while Kueue's webhooks are registered but do not respond yet.

        cert-manager is installed before task governance, because others wait for it anyway; they are installed when
        Kueue responds. Add-ons in namespaces that Kueue ignores wait for neither. Without nodes, nothing waits, and
        Kueue is installed last.
        """
        if self.governance is None or self.governance.addon is None:
            return
        for node in resources_of(self, "AWS::EKS::Addon"):
            if not isinstance(node, eks.CfnAddon) or node is self.governance.addon:
                continue
            name = node.addon_name
            if addons.row(name).namespace in governance.OUT_OF_KUEUES_SIGHT:
                continue
            if name == addons.CERT_MANAGER or self.governance.ready is None:
                self.governance.addon.node.add_dependency(node)
            else:
                node.node.add_dependency(self.governance.ready)

    def _wait_for_nodes(self, hyperpod: HyperPodStack) -> None:
        """Let everything that runs on nodes wait for a node, unless no group can have nodes."""
        environment, groups = self._environment, addon_groups(self._environment)
        needy = resources_of(self, "AWS::EKS::Addon")
        if self.governance is not None and self.governance.addon is None:
            needy.append(self.governance.scheduler_config)
        if not groups or not (needy or ObservabilityStack.has_addon(environment)):
            return
        nodes = NodesReady(
            self,
            "NodesReady",
            cluster_arn=hyperpod.cluster.cluster_arn,
            groups=[
                AwaitedGroup(name=group.name, count=group.count, expected=comes_soon(environment, group))
                for group in groups
            ],
            timeout_minutes=environment.hyperpod.node_wait_minutes,
            waiter=hyperpod.node_waiter,
        )
        for node in needy:
            node.node.add_dependency(nodes)
        cdk.CfnOutput(self, "Nodes", description="Nodes of each instance group before the add-ons", value=nodes.groups)

    def _karpenter_pools(self, foundation: FoundationStack, hyperpod: HyperPodStack) -> None:
        section, autoscaling = self._environment.hyperpod, hyperpod.autoscaling
        if autoscaling is not None and autoscaling.ready is not None:
            KarpenterPools(
                self,
                "KarpenterPools",
                cluster=foundation.cluster,
                pools=section.resolved_karpenter_pools,
                taints={group.name: group.taints for group in section.autoscaled_groups},
                after=[autoscaling.ready],
            )

    def _governance(self, foundation: FoundationStack, hyperpod: HyperPodStack) -> TaskGovernance | None:
        environment = self._environment
        section = environment.task_governance
        if section is None:
            return None
        return TaskGovernance(
            self,
            "TaskGovernance",
            eks_cluster_name=self._eks_name,
            cluster_arn=hyperpod.cluster.cluster_arn,
            name_prefix=self._environment.name,
            ordering=section.ordering,
            priority_classes=[PriorityClass(name=c.name, weight=c.weight) for c in section.resolved_priority_classes],
            idle_compute=section.idle_compute,
            share_unallocated=section.idle_resource_sharing,
            teams=governed_teams(environment, section),
            description=section.description,
            policy_name=section.policy_name,
            native_scheduler_config=is_native_here(environment, section, governance.SCHEDULER_CONFIG),
            native_compute_quota=is_native_here(environment, section, governance.COMPUTE_QUOTA),
            install_addon=self._installs(addons.TASK_GOVERNANCE),
            addon_version=self._versions.get(addons.TASK_GOVERNANCE),
            cluster=foundation.cluster,
            await_webhooks=self._has_nodes,
            admin_role_arns=self._environment.eks.admin_role_arns,
            tags=self._environment.tags,
        )

    def _operators(self, foundation: FoundationStack, hyperpod: HyperPodStack) -> None:
        operators, versions, asked = self._environment.operators, self._versions, _operator_addons(self._environment)
        prerequisites: dict[str, IDependable] = {}
        if operators.need_cert_manager and self._installs(addons.CERT_MANAGER):
            cert_manager = NodeAddon(
                self,
                "CertManager",
                eks_cluster_name=self._eks_name,
                addon_name=addons.CERT_MANAGER,
                addon_version=versions.get(addons.CERT_MANAGER),
            )
            # the ID that it had as a part of the training operator; with another ID it would be installed a second time
            cert_manager.addon.override_logical_id(_CERT_MANAGER_ID)
            # its users create certificates, which its webhook validates
            prerequisites[addons.CERT_MANAGER] = (
                WebhookReady(
                    self,
                    "CertManagerReady",
                    cluster=foundation.cluster,
                    addon=cert_manager.addon,
                    namespace=str(addons.row(addons.CERT_MANAGER).namespace),
                    deployments=addons.CERT_MANAGER_DEPLOYMENTS,
                )
                if self._has_nodes
                else cert_manager
            )
        if addons.TRAINING_OPERATOR in asked and self._installs(addons.TRAINING_OPERATOR):
            TrainingOperator(
                self,
                "TrainingOperator",
                eks_cluster_name=self._eks_name,
                addon_version=versions.get(addons.TRAINING_OPERATOR),
                cert_manager=prerequisites.get(addons.CERT_MANAGER, DependencyGroup()),
            )
        if addons.INFERENCE in asked and self._installs(addons.INFERENCE):
            self._inference(foundation, hyperpod, prerequisites)
        if addons.SPACES in asked and self._installs(addons.SPACES):
            if self._installs(addons.EBS_CSI_DRIVER):
                prerequisites[addons.EBS_CSI_DRIVER] = EbsCsiDriver(
                    self,
                    "EbsCsiDriver",
                    eks_cluster_name=self._eks_name,
                    addon_version=versions.get(addons.EBS_CSI_DRIVER),
                )
            Spaces(
                self,
                "Spaces",
                eks_cluster_name=self._eks_name,
                name=self._environment.name,
                prerequisites=_needed_by(addons.SPACES, prerequisites),
                remote_access=operators.spaces.remote_access,
                addon_version=versions.get(addons.SPACES),
            )

    def _inference(
        self, foundation: FoundationStack, hyperpod: HyperPodStack, prerequisites: dict[str, IDependable]
    ) -> None:
        section, versions = self._environment.operators.inference, self._versions
        network = foundation.network.network
        if self._installs(addons.METRICS_SERVER):
            prerequisites[addons.METRICS_SERVER] = NodeAddon(
                self,
                "MetricsServer",
                eks_cluster_name=self._eks_name,
                addon_name=addons.METRICS_SERVER,
                addon_version=versions.get(addons.METRICS_SERVER),
            )
        prerequisites[addons.FSX_CSI_DRIVER] = self._fsx_csi_driver
        prerequisites[addons.S3_CSI_DRIVER] = self._s3_csi_driver
        provider = foundation.oidc_provider
        if provider is None:
            problems = inference_has_an_oidc_provider(self._environment)
            raise ValueError("; ".join(f"{render_path(each.path)}: {each.message}" for each in problems))
        InferenceOperator(
            self,
            "InferenceOperator",
            eks_cluster_name=self._eks_name,
            cluster_arn=hyperpod.cluster.cluster_arn,
            oidc_provider_arn=provider.arn,
            oidc_issuer=provider.issuer,
            name=self._environment.name,
            prerequisites=_needed_by(addons.INFERENCE, prerequisites),
            gated_models=section.gated_models,
            load_balancer_controller=section.load_balancer_controller,
            keda=section.keda,
            subnets=(*network.node_subnets.values(), *network.control_plane_subnets),
            addon_version=versions.get(addons.INFERENCE),
        )

    @cached_property
    def _fsx_csi_driver(self) -> IDependable:
        """Return the only FSx CSI driver of the cluster, which is created when it is first needed."""
        if not self._installs(addons.FSX_CSI_DRIVER):
            return DependencyGroup()
        version = self._versions.get(addons.FSX_CSI_DRIVER)
        return FsxCsiDriver(self, "FsxCsiDriver", eks_cluster_name=self._eks_name, addon_version=version)

    @cached_property
    def _s3_csi_driver(self) -> IDependable:
        """Return the only S3 CSI driver of the cluster, created when first needed, with all necessary permissions."""
        if not self._installs(addons.S3_CSI_DRIVER):
            return DependencyGroup()
        inference = self._environment.operators.inference
        models = inference.model_buckets if inference.enabled else ()
        return S3CsiDriver(
            self,
            "S3CsiDriver",
            eks_cluster_name=self._eks_name,
            buckets=[
                *(self._mounted(volume) for volume in self._environment.storage.s3),
                *(MountedBucket(bucket=name, read_only=True) for name in models),
            ],
            addon_version=self._versions.get(addons.S3_CSI_DRIVER),
        )

    @staticmethod
    def _mounted(volume: S3Volume) -> MountedBucket:
        return MountedBucket(
            bucket=volume.bucket,
            prefix=volume.prefix,
            read_only=volume.read_only,
            allow_delete=volume.allow_delete,
            allow_overwrite=volume.allow_overwrite,
            kms_key_arn=volume.kms_key_arn,
        )

    def _checkpoint_access(self) -> None:
        section = self._environment.hyperpod.tiered_checkpointing
        for account in section.service_accounts if section else ():
            CheckpointAccess(
                self,
                f"CheckpointAccess-{account.namespace}.{account.name}",
                eks_cluster_name=self._eks_name,
                namespace=account.namespace,
                service_account=account.name,
                buckets=account.buckets,
                kms_key_arns=account.kms_key_arns,
            )

    def _claims(self, foundation: FoundationStack, storage: StorageStack | None) -> None:
        for lustre in self._environment.storage.lustre:
            if lustre.claim is None:
                continue
            file_system_id, dns_name, mount_name = self._source(lustre, storage)
            driver = self._fsx_csi_driver
            for own, namespaces in self._by_maker(lustre.claim.namespaces):
                claims = LustreClaims(
                    self,
                    f"OwnClaims-{lustre.name}" if own else f"Claims-{lustre.name}",
                    cluster=foundation.cluster,
                    file_system_id=file_system_id,
                    dns_name=dns_name,
                    mount_name=mount_name,
                    capacity_gib=lustre.volume_capacity_gib,
                    claim_name=lustre.resolved_claim_name,
                    namespaces=namespaces,
                    create_namespaces=own,
                )
                self._order_claims(claims, driver, own=own)
        for volume in self._environment.storage.s3:
            driver = self._s3_csi_driver
            for own, namespaces in self._by_maker(volume.claim.namespaces):
                mounted = S3Claims(
                    self,
                    f"OwnS3Claims-{volume.name}" if own else f"S3Claims-{volume.name}",
                    cluster=foundation.cluster,
                    bucket=self._mounted(volume),
                    region=self._environment.region,
                    claim_name=volume.resolved_claim_name,
                    namespaces=namespaces,
                    uid=volume.uid,
                    gid=volume.gid,
                    create_namespaces=own,
                )
                self._order_claims(mounted, driver, own=own)

    def _source(self, lustre: Lustre, storage: StorageStack | None) -> tuple[str, str, str]:
        """Return the ID, DNS name and mount name of a file system."""
        existing = lustre.existing
        if existing is not None:
            default = f"{existing.file_system_id}.fsx.{self._environment.region}.{cdk.Aws.URL_SUFFIX}"
            return existing.file_system_id, existing.dns_name or default, existing.mount_name
        if storage is None:
            raise ValueError(f"storage: must be given, which makes the file system {lustre.name}, got none")
        made = storage.lustre[lustre.name]
        return made.file_system_id, made.dns_name, made.mount_name

    def _by_maker(self, namespaces: Sequence[str]) -> Iterator[tuple[bool, list[str]]]:
        """Yield the namespaces that SageMaker creates for teams (False), and those that this stack creates (True)."""
        made_by_sagemaker = set(self._team_namespaces())
        for own in (False, True):
            chosen = [each for each in namespaces if (each not in made_by_sagemaker) is own]
            if chosen:
                yield own, chosen

    def _order_claims(self, claims: VolumeClaims, driver: IDependable, *, own: bool) -> None:
        claims.node.add_dependency(driver)
        for name, namespace in claims.namespaces.items():
            # if two resources apply a namespace at once, both find none, and the slower one fails with "already exists"
            if name in self._namespaces:
                namespace.node.add_dependency(self._namespaces[name])
            self._namespaces[name] = namespace
        if self.governance is not None and not own:
            claims.node.add_dependency(*self.governance.quotas.values())

    def _team_namespaces(self) -> list[str]:
        section = self._environment.task_governance
        return [] if section is None else [governance.namespace(t.name) for t in section.teams]


def _operator_addons(environment: Environment) -> set[str]:
    """Return the add-ons of the enabled operators in this stack."""
    operators = environment.operators
    is_on = {
        addons.TRAINING_OPERATOR: operators.training.enabled,
        addons.INFERENCE: operators.inference.enabled,
        addons.SPACES: operators.spaces.enabled,
    }
    return {name for name, on in is_on.items() if on}


def _needed_by(addon: str, made: Mapping[str, IDependable]) -> list[IDependable]:
    return [made[name] for name in addons.row(addon).requires if name in made]


def _writes_checkpoints(environment: Environment) -> bool:
    section = environment.hyperpod.tiered_checkpointing
    return section is not None and bool(section.service_accounts)
