"""The environment file: models, loading, errors. Imports neither aws_cdk nor boto3, so a check takes milliseconds.

Every name below is loaded on first use: building the models takes longer than what needs none of them, such as the
review of two cloud assemblies.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hyperpod_cdk.config.checkpointing import CheckpointAccount, TieredCheckpointing
    from hyperpod_cdk.config.eks import Eks, ExistingEks
    from hyperpod_cdk.config.environment import Environment
    from hyperpod_cdk.config.extensions import Extension, section_of
    from hyperpod_cdk.config.hyperpod import HyperPod, KarpenterPool
    from hyperpod_cdk.config.instance_group import Batch, Image, InstanceGroup, Patching, Taint
    from hyperpod_cdk.config.instance_types import StatedInstanceType
    from hyperpod_cdk.config.loading import (
        EnvironmentFileError,
        LoadedEnvironment,
        UsageError,
        environment_files,
        environment_names,
        load_environment,
        missing_scripts,
        resolve_environment_file,
        shared_names,
    )
    from hyperpod_cdk.config.network import AvailabilityZone, ExistingNetwork, InterfaceEndpoints, Network
    from hyperpod_cdk.config.operators import (
        InferenceOperator,
        Metrics,
        Observability,
        Operators,
        Spaces,
        TrainingOperator,
    )
    from hyperpod_cdk.config.restricted_group import AnyGroup, RestrictedEnvironment, RestrictedGroup, RestrictedLustre
    from hyperpod_cdk.config.schema import environment_schema
    from hyperpod_cdk.config.section import Section
    from hyperpod_cdk.config.storage import Claim, DataRepository, Lustre, S3Volume, Storage
    from hyperpod_cdk.config.task_governance import PriorityClass, Quota, Sharing, TaskGovernance, Team

__all__ = [
    "AnyGroup",
    "AvailabilityZone",
    "Batch",
    "CheckpointAccount",
    "Claim",
    "DataRepository",
    "Eks",
    "Environment",
    "EnvironmentFileError",
    "ExistingEks",
    "ExistingNetwork",
    "Extension",
    "HyperPod",
    "Image",
    "InferenceOperator",
    "InstanceGroup",
    "InterfaceEndpoints",
    "KarpenterPool",
    "LoadedEnvironment",
    "Lustre",
    "Metrics",
    "Network",
    "Observability",
    "Operators",
    "Patching",
    "PriorityClass",
    "Quota",
    "RestrictedEnvironment",
    "RestrictedGroup",
    "RestrictedLustre",
    "S3Volume",
    "Section",
    "Sharing",
    "Spaces",
    "StatedInstanceType",
    "Storage",
    "Taint",
    "TaskGovernance",
    "Team",
    "TieredCheckpointing",
    "TrainingOperator",
    "UsageError",
    "environment_files",
    "environment_names",
    "environment_schema",
    "load_environment",
    "missing_scripts",
    "resolve_environment_file",
    "section_of",
    "shared_names",
]

_HOME = {
    "AnyGroup": "restricted_group",
    "AvailabilityZone": "network",
    "Batch": "instance_group",
    "CheckpointAccount": "checkpointing",
    "Claim": "storage",
    "DataRepository": "storage",
    "Eks": "eks",
    "Environment": "environment",
    "EnvironmentFileError": "loading",
    "ExistingEks": "eks",
    "ExistingNetwork": "network",
    "Extension": "extensions",
    "HyperPod": "hyperpod",
    "Image": "instance_group",
    "InferenceOperator": "operators",
    "InstanceGroup": "instance_group",
    "InterfaceEndpoints": "network",
    "KarpenterPool": "hyperpod",
    "LoadedEnvironment": "loading",
    "Lustre": "storage",
    "Metrics": "operators",
    "Network": "network",
    "Observability": "operators",
    "Operators": "operators",
    "Patching": "instance_group",
    "PriorityClass": "task_governance",
    "Quota": "task_governance",
    "RestrictedEnvironment": "restricted_group",
    "RestrictedGroup": "restricted_group",
    "RestrictedLustre": "restricted_group",
    "S3Volume": "storage",
    "Section": "section",
    "Sharing": "task_governance",
    "Spaces": "operators",
    "StatedInstanceType": "instance_types",
    "Storage": "storage",
    "Taint": "instance_group",
    "TaskGovernance": "task_governance",
    "Team": "task_governance",
    "TieredCheckpointing": "checkpointing",
    "TrainingOperator": "operators",
    "UsageError": "loading",
    "environment_files": "loading",
    "environment_names": "loading",
    "environment_schema": "schema",
    "load_environment": "loading",
    "missing_scripts": "loading",
    "resolve_environment_file": "loading",
    "section_of": "extensions",
    "shared_names": "loading",
}


def __getattr__(name: str) -> object:
    """Import the module of a name when it is first asked for."""
    try:
        module = import_module(f"hyperpod_cdk.config.{_HOME[name]}")
    except KeyError:
        raise AttributeError(f"module 'hyperpod_cdk.config' has no attribute {name!r}") from None
    value: object = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
