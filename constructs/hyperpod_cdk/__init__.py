"""CDK constructs for Amazon SageMaker HyperPod clusters on EKS.

Every name below is loaded on first use: reading an environment file (``hyperpod_cdk.config``) costs milliseconds and
never starts Node.js, using a construct imports aws_cdk.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hyperpod_cdk.autoscaling import KarpenterAutoscaling
    from hyperpod_cdk.checkpoint_access import CheckpointAccess
    from hyperpod_cdk.cluster import HyperPodCluster
    from hyperpod_cdk.control_plane import ControlPlane, ExistingControlPlane
    from hyperpod_cdk.deletion_protection import DeletionProtection, DeletionProtectionFunction
    from hyperpod_cdk.dependencies import HyperPodChart, HyperPodDependencies
    from hyperpod_cdk.endpoints import InterfaceEndpoints
    from hyperpod_cdk.execution_role import NodeExecutionRole
    from hyperpod_cdk.inference_operator import InferenceOperator
    from hyperpod_cdk.instance_groups import InstanceGroup
    from hyperpod_cdk.karpenter_pools import KarpenterPools
    from hyperpod_cdk.keys import EncryptionKey
    from hyperpod_cdk.lifecycle import LifecycleScripts
    from hyperpod_cdk.lustre import LustreFileSystem
    from hyperpod_cdk.lustre_claims import FsxCsiDriver, LustreClaims
    from hyperpod_cdk.network import EfaSecurityGroup, ExistingNetwork, Network
    from hyperpod_cdk.node_addons import CoreDns, EbsCsiDriver, NodeAddon, PodRole
    from hyperpod_cdk.node_events import NodeEvents
    from hyperpod_cdk.node_wait import AwaitedGroup, NodesReady, NodeWaiter
    from hyperpod_cdk.observability_addon import GrafanaWorkspace, ObservabilityAddon, PrometheusWorkspace
    from hyperpod_cdk.quota_gate import QuotaGate
    from hyperpod_cdk.restricted_groups import (
        RestrictedExecutionRole,
        RestrictedGroup,
        ServiceLustre,
        SharedEnvironment,
    )
    from hyperpod_cdk.s3_claims import S3Claims, S3CsiDriver
    from hyperpod_cdk.spaces import Spaces
    from hyperpod_cdk.task_governance import TaskGovernance
    from hyperpod_cdk.teams import Team
    from hyperpod_cdk.template_checks import TemplateChecks
    from hyperpod_cdk.training_operator import TrainingOperator

__all__ = [
    "AwaitedGroup",
    "CheckpointAccess",
    "ControlPlane",
    "CoreDns",
    "DeletionProtection",
    "DeletionProtectionFunction",
    "EbsCsiDriver",
    "EfaSecurityGroup",
    "EncryptionKey",
    "ExistingControlPlane",
    "ExistingNetwork",
    "FsxCsiDriver",
    "GrafanaWorkspace",
    "HyperPodChart",
    "HyperPodCluster",
    "HyperPodDependencies",
    "InferenceOperator",
    "InstanceGroup",
    "InterfaceEndpoints",
    "KarpenterAutoscaling",
    "KarpenterPools",
    "LifecycleScripts",
    "LustreClaims",
    "LustreFileSystem",
    "Network",
    "NodeAddon",
    "NodeEvents",
    "NodeExecutionRole",
    "NodeWaiter",
    "NodesReady",
    "ObservabilityAddon",
    "PodRole",
    "PrometheusWorkspace",
    "QuotaGate",
    "RestrictedExecutionRole",
    "RestrictedGroup",
    "S3Claims",
    "S3CsiDriver",
    "ServiceLustre",
    "SharedEnvironment",
    "Spaces",
    "TaskGovernance",
    "Team",
    "TemplateChecks",
    "TrainingOperator",
]

_HOME = {
    "AwaitedGroup": "node_wait",
    "CheckpointAccess": "checkpoint_access",
    "ControlPlane": "control_plane",
    "CoreDns": "node_addons",
    "DeletionProtection": "deletion_protection",
    "DeletionProtectionFunction": "deletion_protection",
    "EbsCsiDriver": "node_addons",
    "EfaSecurityGroup": "network",
    "EncryptionKey": "keys",
    "ExistingControlPlane": "control_plane",
    "ExistingNetwork": "network",
    "FsxCsiDriver": "lustre_claims",
    "GrafanaWorkspace": "observability_addon",
    "HyperPodChart": "dependencies",
    "HyperPodCluster": "cluster",
    "HyperPodDependencies": "dependencies",
    "InferenceOperator": "inference_operator",
    "InstanceGroup": "instance_groups",
    "InterfaceEndpoints": "endpoints",
    "KarpenterAutoscaling": "autoscaling",
    "KarpenterPools": "karpenter_pools",
    "LifecycleScripts": "lifecycle",
    "LustreClaims": "lustre_claims",
    "LustreFileSystem": "lustre",
    "Network": "network",
    "NodeAddon": "node_addons",
    "NodeEvents": "node_events",
    "NodeExecutionRole": "execution_role",
    "NodeWaiter": "node_wait",
    "NodesReady": "node_wait",
    "ObservabilityAddon": "observability_addon",
    "PodRole": "node_addons",
    "PrometheusWorkspace": "observability_addon",
    "QuotaGate": "quota_gate",
    "RestrictedExecutionRole": "restricted_groups",
    "RestrictedGroup": "restricted_groups",
    "S3Claims": "s3_claims",
    "S3CsiDriver": "s3_claims",
    "ServiceLustre": "restricted_groups",
    "SharedEnvironment": "restricted_groups",
    "Spaces": "spaces",
    "TaskGovernance": "task_governance",
    "Team": "teams",
    "TemplateChecks": "template_checks",
    "TrainingOperator": "training_operator",
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
