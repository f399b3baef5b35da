"""The environment file: models, loading, errors. Imports neither aws_cdk nor boto3, so a check takes milliseconds."""

from __future__ import annotations

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
