"""Which EKS add-ons an environment needs, and which part of its file needs them."""

from __future__ import annotations

from hyperpod_cdk.catalog import addons
from hyperpod_cdk.config.environment import Environment

EVERYWHERE = (addons.VPC_CNI, addons.KUBE_PROXY, addons.POD_IDENTITY_AGENT, addons.COREDNS)
"""Add-ons that every cluster has, independent of the file."""


def asked_for(environment: Environment) -> dict[str, str]:
    """Return each add-on that a section of the file needs -> the first place that needs it.

    Leaves out ``EVERYWHERE``; includes add-ons that are already on an existing cluster.
    """
    operators, found = environment.operators, dict[str, str]()
    if environment.task_governance is not None:
        found[addons.TASK_GOVERNANCE] = "task_governance"
    for name, section, is_on in (
        (addons.TRAINING_OPERATOR, "training", operators.training.enabled),
        (addons.INFERENCE, "inference", operators.inference.enabled),
        (addons.OBSERVABILITY, "observability", operators.observability.enabled),
        (addons.SPACES, "spaces", operators.spaces.enabled),
    ):
        if is_on:
            for needed in (*addons.row(name).requires, name):
                found.setdefault(needed, f"operators.{section}")
    for index, system in enumerate(environment.storage.lustre):
        if system.claim is not None:
            found.setdefault(addons.FSX_CSI_DRIVER, f"storage.lustre[{index}].claim")
    for index, _ in enumerate(environment.storage.s3):
        found.setdefault(addons.S3_CSI_DRIVER, f"storage.s3[{index}]")
    return {name: cause for name, cause in found.items() if name not in EVERYWHERE}
