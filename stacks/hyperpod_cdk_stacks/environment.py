"""One environment: the stacks of a HyperPod cluster, at most five, in the order of their dependencies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct

from hyperpod_cdk import DeletionProtection, HyperPodChart
from hyperpod_cdk.common.keys import encrypt_log_groups
from hyperpod_cdk.common.selection import resources_of
from hyperpod_cdk.common.stack_arns import HERE
from hyperpod_cdk.config import Environment
from hyperpod_cdk.config.environment import FOUNDATION, HYPERPOD, OBSERVABILITY, PLATFORM, STORAGE
from hyperpod_cdk_stacks.foundation import FoundationStack
from hyperpod_cdk_stacks.hyperpod import HyperPodStack
from hyperpod_cdk_stacks.observability import ObservabilityStack
from hyperpod_cdk_stacks.platform import PlatformStack
from hyperpod_cdk_stacks.storage import StorageStack

_ASK_EKS = (
    # CDK derives the name of a resource's class from its type
    *(
        f"AWS::EKS::{name.removeprefix('Cfn')}"
        for name, made in vars(eks).items()
        if isinstance(made, type) and issubclass(made, cdk.CfnResource)
    ),
    "AWS::SageMaker::Cluster",
    "AWS::SageMaker::ClusterSchedulerConfig",
)
"""Types of resources that call the EKS cluster when they are created."""

# importers of this module read environments: the model is built now, in parallel with the start of Node.js
Environment.model_rebuild()


class HyperPodEnvironment(cdk.Stage):
    """The stage of one environment file; its stacks are named ``<environment>-<stack>``.

    CloudFormation refuses to remove an export that another stack imports. If a zone or a file system is removed from
    the file, it must therefore be removed first from the stacks that use it: `cdk deploy --exclusively` for hyperpod
    and storage, or platform, then for all of them.

    ``environment`` (Environment): the environment, as its file describes it.

    ``chart`` (HyperPodChart): the HyperPod chart to install.

    ``lifecycle_scripts`` (Path): folder of the project's lifecycle scripts. Default: the library's own scripts.

    ``lifecycle_steps`` (Sequence[Path]): scripts that extensions add to those of the folder. Default: none.

    ``reviewed_by`` (str): name and SHA-256 of each file that reviews of the environment use, an output of the
    foundation stack. Default: empty, none.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: Environment,
        chart: HyperPodChart,
        lifecycle_scripts: Path | None = None,
        lifecycle_steps: Sequence[Path] = (),
        reviewed_by: str = "",
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            env=cdk.Environment(account=environment.account, region=environment.region),
        )
        protected = environment.deletion_protection
        self.foundation = FoundationStack(
            self,
            FOUNDATION,
            environment=environment,
            chart=chart,
            lifecycle_scripts=lifecycle_scripts,
            lifecycle_steps=lifecycle_steps,
            reviewed_by=reviewed_by,
        )
        # CloudFormation refuses stacks without resources, and storage and platform may have none
        self.storage = (
            StorageStack(
                self,
                STORAGE,
                environment=environment,
                network=self.foundation.network,
                termination_protection=protected,
            )
            if environment.storage.made_lustre
            else None
        )
        self.hyperpod = HyperPodStack(
            self,
            HYPERPOD,
            environment=environment,
            foundation=self.foundation,
            termination_protection=protected,
        )
        self.platform = (
            PlatformStack(
                self,
                PLATFORM,
                environment=environment,
                foundation=self.foundation,
                storage=self.storage,
                hyperpod=self.hyperpod,
                termination_protection=protected,
            )
            if PlatformStack.has_resources(environment)
            else None
        )
        self.observability = ObservabilityStack(
            self,
            OBSERVABILITY,
            environment=environment,
            hyperpod=self.hyperpod,
            storage=self.storage,
            termination_protection=protected,
        )
        self._protect(environment)
        self._order(environment)
        for key, value in environment.tags.items():
            cdk.Tags.of(self).add(key, value)
        if self.foundation.log_key is not None:
            encrypt_log_groups(self, self.foundation.log_key.key)
        if environment.permissions_boundary:
            iam.PermissionsBoundary.of(self).apply(self._boundary(environment.permissions_boundary))

    def _protect(self, environment: Environment) -> None:
        """Remove a stack's protection if its first creation fails, and protect EKS while there are nodes.

        With ``deletion_protection: false``, the same resources remove the protection.
        """
        self._protect_eks(environment)
        for stack in (self.storage, self.hyperpod, self.platform, self.observability):
            if stack is None:
                continue
            protection = DeletionProtection(
                stack,
                "DeletionProtection",
                function=self.foundation.protection,
                enabled=environment.deletion_protection,
            )
            # nodes take the longest: the creation of the cluster does not wait for the protection
            protection.before(stack, beside=[self.hyperpod.cluster] if stack is self.hyperpod else [])

    def _protect_eks(self, environment: Environment) -> None:
        """Change EKS's own deletion protection while nothing else calls EKS, because the cluster is then updating.

        This is while the platform stack waits for nodes or, without such a stack, when the HyperPod cluster exists.
        """
        name = self.foundation.protection.eks_cluster_name
        if name is None:
            return
        stack = self.platform or self.hyperpod
        users = resources_of(stack, *_ASK_EKS)
        switch = DeletionProtection(
            stack,
            "EksProtection",
            function=self.foundation.protection,
            enabled=environment.deletion_protection,
            eks_cluster_name=name,
        )
        if stack is self.platform:
            for each in users:
                each.add_resource_dependency(switch.resource)
        else:
            switch.node.add_dependency(*users)

    def _order(self, environment: Environment) -> None:
        """Add stack dependencies that do not follow from references: routes before nodes, nodes before workloads."""
        self.hyperpod.add_stack_dependency(self.foundation)
        if self.platform is not None:
            self.platform.add_stack_dependency(self.hyperpod)
        if self.storage is not None:
            self.storage.add_stack_dependency(self.foundation)
        if self.storage is not None and self.platform is not None:
            self.platform.add_stack_dependency(self.storage)
        self.observability.add_stack_dependency(self.hyperpod)
        if self.platform is not None and ObservabilityStack.has_addon(environment):
            self.observability.add_stack_dependency(self.platform)

    def _boundary(self, name_or_arn: str) -> iam.IManagedPolicy:
        arn = name_or_arn
        if not arn.startswith("arn:"):
            arn = f"arn:{HERE.partition}:iam::{self.account}:policy/{name_or_arn}"
        # an imported policy must be in a stack; its ARN is the same in all of them
        return iam.ManagedPolicy.from_managed_policy_arn(self.foundation, "PermissionsBoundary", arn)
