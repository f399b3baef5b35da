"""CDK constructs for Amazon SageMaker HyperPod clusters on EKS.

Every name below is loaded on first use: reading an environment file (``hyperpod_cdk.config``) costs milliseconds and
never starts Node.js, using a construct imports aws_cdk.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hyperpod_cdk.cluster import HyperPodCluster
    from hyperpod_cdk.control_plane import ControlPlane, ExistingControlPlane
    from hyperpod_cdk.dependencies import HyperPodChart, HyperPodDependencies
    from hyperpod_cdk.execution_role import NodeExecutionRole
    from hyperpod_cdk.instance_groups import InstanceGroup
    from hyperpod_cdk.lifecycle import LifecycleScripts
    from hyperpod_cdk.lustre import LustreFileSystem
    from hyperpod_cdk.lustre_claims import FsxCsiDriver, LustreClaims
    from hyperpod_cdk.network import EfaSecurityGroup, ExistingNetwork, Network
    from hyperpod_cdk.node_addons import CoreDns, NodeAddon
    from hyperpod_cdk.node_events import NodeEvents
    from hyperpod_cdk.quota_gate import QuotaGate
    from hyperpod_cdk.task_governance import TaskGovernance, Team
    from hyperpod_cdk.template_checks import TemplateChecks
    from hyperpod_cdk.training_operator import TrainingOperator

__all__ = [
    "ControlPlane",
    "CoreDns",
    "EfaSecurityGroup",
    "ExistingControlPlane",
    "ExistingNetwork",
    "FsxCsiDriver",
    "HyperPodChart",
    "HyperPodCluster",
    "HyperPodDependencies",
    "InstanceGroup",
    "LifecycleScripts",
    "LustreClaims",
    "LustreFileSystem",
    "Network",
    "NodeAddon",
    "NodeEvents",
    "NodeExecutionRole",
    "QuotaGate",
    "TaskGovernance",
    "Team",
    "TemplateChecks",
    "TrainingOperator",
]

_HOME = {
    "ControlPlane": "control_plane",
    "CoreDns": "node_addons",
    "EfaSecurityGroup": "network",
    "ExistingControlPlane": "control_plane",
    "ExistingNetwork": "network",
    "FsxCsiDriver": "lustre_claims",
    "HyperPodChart": "dependencies",
    "HyperPodCluster": "cluster",
    "HyperPodDependencies": "dependencies",
    "InstanceGroup": "instance_groups",
    "LifecycleScripts": "lifecycle",
    "LustreClaims": "lustre_claims",
    "LustreFileSystem": "lustre",
    "Network": "network",
    "NodeAddon": "node_addons",
    "NodeEvents": "node_events",
    "NodeExecutionRole": "execution_role",
    "QuotaGate": "quota_gate",
    "TaskGovernance": "task_governance",
    "Team": "task_governance",
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
