"""CDK constructs for Amazon SageMaker HyperPod clusters on EKS.

Every name below is loaded on first use: reading an environment file (``hyperpod_cdk.config``) costs milliseconds and
never starts Node.js, using a construct imports aws_cdk.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hyperpod_cdk.catalog.instance_types import InstanceType
    from hyperpod_cdk.common.deletion_protection import DeletionProtection, DeletionProtectionFunction
    from hyperpod_cdk.common.keys import EncryptionKey
    from hyperpod_cdk.eks.control_plane import ControlPlane, ExistingControlPlane, OidcProvider
    from hyperpod_cdk.eks.dependencies import HyperPodChart, HyperPodDependencies
    from hyperpod_cdk.eks.node_addons import CoreDns, EbsCsiDriver, NodeAddon, PodRole, WebhookReady
    from hyperpod_cdk.governance.task_governance import TaskGovernance
    from hyperpod_cdk.governance.teams import AcceleratorPartition, PriorityClass, QuotaRow, Team
    from hyperpod_cdk.handlers.quota_gate.comparison import Requirement
    from hyperpod_cdk.handlers.quota_gate.reading import Own
    from hyperpod_cdk.hyperpod.autoscaling import KarpenterAutoscaling
    from hyperpod_cdk.hyperpod.checkpoint_access import CheckpointAccess
    from hyperpod_cdk.hyperpod.cluster import HyperPodCluster
    from hyperpod_cdk.hyperpod.execution_role import NodeExecutionRole
    from hyperpod_cdk.hyperpod.instance_groups import (
        Batch,
        BatchLike,
        InstanceGroup,
        Patching,
        PatchingLike,
        Taint,
        TaintLike,
    )
    from hyperpod_cdk.hyperpod.karpenter_pools import KarpenterPools, Pool, PoolLike
    from hyperpod_cdk.hyperpod.lifecycle import LifecycleScripts
    from hyperpod_cdk.hyperpod.node_events import NodeEvents
    from hyperpod_cdk.hyperpod.node_wait import AwaitedGroup, NodesReady, NodeWaiter
    from hyperpod_cdk.hyperpod.notifications import Notifications, SlackChannel
    from hyperpod_cdk.hyperpod.restricted_groups import (
        RestrictedExecutionRole,
        RestrictedGroup,
        ServiceLustre,
        SharedEnvironment,
    )
    from hyperpod_cdk.network.endpoints import InterfaceEndpoints
    from hyperpod_cdk.network.vpc import EfaSecurityGroup, ExistingNetwork, Network
    from hyperpod_cdk.operators.grafana_dashboards import GrafanaDashboards
    from hyperpod_cdk.operators.inference_operator import InferenceOperator
    from hyperpod_cdk.operators.observability_addon import GrafanaWorkspace, ObservabilityAddon, PrometheusWorkspace
    from hyperpod_cdk.operators.spaces import Spaces
    from hyperpod_cdk.operators.training_operator import TrainingOperator
    from hyperpod_cdk.quotas.gate import QuotaGate
    from hyperpod_cdk.storage.lustre import DataRepository, LustreFileSystem, ReadCache
    from hyperpod_cdk.storage.lustre_claims import FsxCsiDriver, LustreClaims
    from hyperpod_cdk.storage.s3_claims import MountedBucket, S3Claims, S3CsiDriver
    from hyperpod_cdk.templates.cdk_plugin import TemplateChecks

__all__ = [
    "AcceleratorPartition",
    "AwaitedGroup",
    "Batch",
    "BatchLike",
    "CheckpointAccess",
    "ControlPlane",
    "CoreDns",
    "DataRepository",
    "DeletionProtection",
    "DeletionProtectionFunction",
    "EbsCsiDriver",
    "EfaSecurityGroup",
    "EncryptionKey",
    "ExistingControlPlane",
    "ExistingNetwork",
    "FsxCsiDriver",
    "GrafanaDashboards",
    "GrafanaWorkspace",
    "HyperPodChart",
    "HyperPodCluster",
    "HyperPodDependencies",
    "InferenceOperator",
    "InstanceGroup",
    "InstanceType",
    "InterfaceEndpoints",
    "KarpenterAutoscaling",
    "KarpenterPools",
    "LifecycleScripts",
    "LustreClaims",
    "LustreFileSystem",
    "MountedBucket",
    "Network",
    "NodeAddon",
    "NodeEvents",
    "NodeExecutionRole",
    "NodeWaiter",
    "NodesReady",
    "Notifications",
    "ObservabilityAddon",
    "OidcProvider",
    "Own",
    "Patching",
    "PatchingLike",
    "PodRole",
    "Pool",
    "PoolLike",
    "PriorityClass",
    "PrometheusWorkspace",
    "QuotaGate",
    "QuotaRow",
    "ReadCache",
    "Requirement",
    "RestrictedExecutionRole",
    "RestrictedGroup",
    "S3Claims",
    "S3CsiDriver",
    "ServiceLustre",
    "SharedEnvironment",
    "SlackChannel",
    "Spaces",
    "Taint",
    "TaintLike",
    "TaskGovernance",
    "Team",
    "TemplateChecks",
    "TrainingOperator",
    "WebhookReady",
]

_HOME = {
    "AcceleratorPartition": "governance.teams",
    "AwaitedGroup": "hyperpod.node_wait",
    "Batch": "hyperpod.instance_groups",
    "BatchLike": "hyperpod.instance_groups",
    "CheckpointAccess": "hyperpod.checkpoint_access",
    "ControlPlane": "eks.control_plane",
    "CoreDns": "eks.node_addons",
    "DataRepository": "storage.lustre",
    "DeletionProtection": "common.deletion_protection",
    "DeletionProtectionFunction": "common.deletion_protection",
    "EbsCsiDriver": "eks.node_addons",
    "EfaSecurityGroup": "network.vpc",
    "EncryptionKey": "common.keys",
    "ExistingControlPlane": "eks.control_plane",
    "ExistingNetwork": "network.vpc",
    "FsxCsiDriver": "storage.lustre_claims",
    "GrafanaDashboards": "operators.grafana_dashboards",
    "GrafanaWorkspace": "operators.observability_addon",
    "HyperPodChart": "eks.dependencies",
    "HyperPodCluster": "hyperpod.cluster",
    "HyperPodDependencies": "eks.dependencies",
    "InferenceOperator": "operators.inference_operator",
    "InstanceGroup": "hyperpod.instance_groups",
    "InstanceType": "catalog.instance_types",
    "InterfaceEndpoints": "network.endpoints",
    "KarpenterAutoscaling": "hyperpod.autoscaling",
    "KarpenterPools": "hyperpod.karpenter_pools",
    "LifecycleScripts": "hyperpod.lifecycle",
    "LustreClaims": "storage.lustre_claims",
    "LustreFileSystem": "storage.lustre",
    "MountedBucket": "storage.s3_claims",
    "Network": "network.vpc",
    "NodeAddon": "eks.node_addons",
    "NodeEvents": "hyperpod.node_events",
    "NodeExecutionRole": "hyperpod.execution_role",
    "NodeWaiter": "hyperpod.node_wait",
    "NodesReady": "hyperpod.node_wait",
    "Notifications": "hyperpod.notifications",
    "ObservabilityAddon": "operators.observability_addon",
    "OidcProvider": "eks.control_plane",
    "Own": "handlers.quota_gate.reading",
    "Patching": "hyperpod.instance_groups",
    "PatchingLike": "hyperpod.instance_groups",
    "PodRole": "eks.node_addons",
    "Pool": "hyperpod.karpenter_pools",
    "PoolLike": "hyperpod.karpenter_pools",
    "PriorityClass": "governance.teams",
    "PrometheusWorkspace": "operators.observability_addon",
    "QuotaGate": "quotas.gate",
    "QuotaRow": "governance.teams",
    "ReadCache": "storage.lustre",
    "Requirement": "handlers.quota_gate.comparison",
    "RestrictedExecutionRole": "hyperpod.restricted_groups",
    "RestrictedGroup": "hyperpod.restricted_groups",
    "S3Claims": "storage.s3_claims",
    "S3CsiDriver": "storage.s3_claims",
    "ServiceLustre": "hyperpod.restricted_groups",
    "SharedEnvironment": "hyperpod.restricted_groups",
    "SlackChannel": "hyperpod.notifications",
    "Spaces": "operators.spaces",
    "Taint": "hyperpod.instance_groups",
    "TaintLike": "hyperpod.instance_groups",
    "TaskGovernance": "governance.task_governance",
    "Team": "governance.teams",
    "TemplateChecks": "templates.cdk_plugin",
    "TrainingOperator": "operators.training_operator",
    "WebhookReady": "eks.node_addons",
}


def __getattr__(name: str) -> object:
    """Import the construct's module when its name is first asked for."""
    try:
        module = import_module(f"hyperpod_cdk.{_HOME[name]}")
    except KeyError:
        raise AttributeError(f"module 'hyperpod_cdk' has no attribute {name!r}") from None
    value: object = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
