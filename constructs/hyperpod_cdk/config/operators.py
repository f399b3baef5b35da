"""The operators section: HyperPod's add-ons for workloads."""

from __future__ import annotations

from pydantic import Field

from hyperpod_cdk.config.section import Section


class TrainingOperator(Section):
    """The HyperPod training operator: HyperPodPyTorchJob, with elastic training."""

    enabled: bool = Field(
        default=False, description="Whether to install the operator with cert-manager, which it needs."
    )


class Operators(Section):
    """Add-ons that run workloads."""

    training: TrainingOperator = Field(
        default_factory=TrainingOperator, description="The HyperPod training operator, needed for elastic training."
    )
