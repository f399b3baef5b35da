"""Dated facts about AWS as data, behind typed questions; knows neither boto3 nor aws_cdk nor pydantic.

Every table lives in ``data/*.json`` with the date it was read (``as_of``) and its ``sources``; a row that is
not confirmed says so in ``unsure``, and a rule that uses such a row warns instead of refusing. Modules are
imported when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

    from hyperpod_cdk.catalog import (
        addons,
        answers,
        aws_words,
        baselines,
        create_only,
        deployer_actions,
        durations,
        fabric,
        governance,
        grave_actions,
        hyperpod,
        iam,
        images,
        instance_types,
        kubernetes,
        lustre,
        managed_policies,
        network,
        operators,
        prices,
        quotas,
        regions,
        scheduling,
        training,
        training_images,
        updates,
    )

__all__ = [
    "addons",
    "answers",
    "aws_words",
    "baselines",
    "create_only",
    "deployer_actions",
    "durations",
    "fabric",
    "governance",
    "grave_actions",
    "hyperpod",
    "iam",
    "images",
    "instance_types",
    "kubernetes",
    "lustre",
    "managed_policies",
    "network",
    "operators",
    "prices",
    "quotas",
    "regions",
    "scheduling",
    "training",
    "training_images",
    "updates",
]


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
