"""The platform stack: what needs running nodes - add-ons, operators, task governance, persistent volumes."""

from __future__ import annotations

import aws_cdk as cdk
from constructs import Construct, DependencyGroup

from hyperpod_cdk import CoreDns, FsxCsiDriver, LustreClaims, TaskGovernance, Team, TrainingOperator
from hyperpod_cdk.catalog import addons, governance
from hyperpod_cdk.config import Environment
from hyperpod_cdk.task_governance import PriorityClass, QuotaRow, is_native
from stacks.control_plane import ControlPlaneStack
from stacks.hyperpod import HyperPodStack
from stacks.storage import StorageStack


class PlatformStack(cdk.Stack):
    """Add-ons and objects that can only become healthy once HyperPod nodes have joined the cluster."""

    @staticmethod
    def has_resources(environment: Environment) -> bool:
        """Say whether anything needs nodes; CloudFormation refuses a stack without resources."""
        eks = environment.eks
        return (
            eks.installs(addons.COREDNS)
            or environment.task_governance is not None
            or (environment.operators.training.enabled and eks.installs(addons.TRAINING_OPERATOR))
            or any(lustre.claim is not None for lustre in environment.storage.lustre)
        )

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: Environment,
        control_plane: ControlPlaneStack,
        storage: StorageStack | None,
        hyperpod: HyperPodStack,
        termination_protection: bool,
    ) -> None:
        super().__init__(scope, construct_id, termination_protection=termination_protection)
        self._environment = environment
        self._eks_name = environment.eks_cluster_name
        self._versions = environment.eks.addon_versions
        self._installs = environment.eks.installs
        if self._installs(addons.COREDNS):
            CoreDns(self, "CoreDns", eks_cluster_name=self._eks_name, addon_version=self._versions.get(addons.COREDNS))
        self.governance = self._governance(hyperpod)
        self.training_operator = self._training_operator()
        if storage is not None:
            self._claims(control_plane, storage)

    def _governance(self, hyperpod: HyperPodStack) -> TaskGovernance | None:
        section = self._environment.task_governance
        if section is None:
            return None
        region = self._environment.region
        return TaskGovernance(
            self,
            "TaskGovernance",
            eks_cluster_name=self._eks_name,
            cluster_arn=hyperpod.cluster.cluster_arn,
            name_prefix=self._environment.name,
            ordering=section.ordering,
            priority_classes=[PriorityClass(name=c.name, weight=c.weight) for c in section.resolved_priority_classes],
            idle_compute=section.idle_compute,
            teams=[
                Team(
                    name=team.name,
                    fair_share_weight=team.fair_share_weight,
                    preemption=team.preemption,
                    quota=[QuotaRow(instance_type=row.instance_type, count=row.count) for row in team.quota],
                    sharing=team.sharing.strategy,
                    borrow_limit_percent=team.sharing.resolved_borrow_limit_percent,
                    member_role_arns=team.member_role_arns,
                )
                for team in section.teams
            ],
            native_scheduler_config=is_native("AWS::SageMaker::ClusterSchedulerConfig", region),
            native_compute_quota=is_native("AWS::SageMaker::ComputeQuota", region),
            install_addon=self._installs(addons.TASK_GOVERNANCE),
            addon_version=self._versions.get(addons.TASK_GOVERNANCE),
            admin_role_arns=self._environment.eks.admin_role_arns,
            tags=self._environment.tags,
        )

    def _training_operator(self) -> TrainingOperator | None:
        if not self._environment.operators.training.enabled or not self._installs(addons.TRAINING_OPERATOR):
            return None
        return TrainingOperator(
            self,
            "TrainingOperator",
            eks_cluster_name=self._eks_name,
            addon_version=self._versions.get(addons.TRAINING_OPERATOR),
            cert_manager=None if self._installs(addons.CERT_MANAGER) else DependencyGroup(),
            cert_manager_version=self._versions.get(addons.CERT_MANAGER),
        )

    def _claims(self, control_plane: ControlPlaneStack, storage: StorageStack) -> None:
        claimed = [lustre for lustre in self._environment.storage.lustre if lustre.claim is not None]
        if not claimed:
            return
        driver = (
            FsxCsiDriver(
                self,
                "FsxCsiDriver",
                cluster_name=self._eks_name,
                addon_version=self._versions.get(addons.FSX_CSI_DRIVER),
            )
            if self._installs(addons.FSX_CSI_DRIVER)
            else DependencyGroup()
        )
        made_by_sagemaker = set(self._team_namespaces())
        for lustre in claimed:
            if lustre.claim is None:
                continue
            system = storage.lustre[lustre.name]
            for own in (False, True):
                namespaces = [n for n in lustre.claim.namespaces if (n not in made_by_sagemaker) is own]
                if not namespaces:
                    continue
                claims = LustreClaims(
                    self,
                    f"OwnClaims-{lustre.name}" if own else f"Claims-{lustre.name}",
                    cluster=control_plane.cluster,
                    file_system_id=system.file_system_id,
                    dns_name=system.dns_name,
                    mount_name=system.mount_name,
                    capacity_gib=lustre.capacity_gib,
                    claim_name=lustre.resolved_claim_name,
                    namespaces=namespaces,
                    create_namespaces=own,
                )
                claims.node.add_dependency(driver)
                if self.governance is not None and not own:
                    claims.node.add_dependency(*self.governance.quotas.values())

    def _team_namespaces(self) -> list[str]:
        section = self._environment.task_governance
        return [] if section is None else [governance.namespace(t.name) for t in section.teams]
