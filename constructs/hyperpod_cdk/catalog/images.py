"""Container images of the HyperPod dependency chart that no region's ECR has by itself, and how to name others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from hyperpod_cdk.catalog import _data
from hyperpod_cdk.catalog.instance_types import InstanceType

AS_OF: date = _data.as_of("images")


@dataclass(frozen=True, kw_only=True)
class ChartImage:
    """An image of one part of the chart, with its registry and tag.

    ``value`` is the path of the chart's value that names its repository; empty where a template names it, out of the
    reach of values.
    """

    part: str
    image: str
    value: tuple[str, ...]

    @property
    def path(self) -> str:
        """The image without its registry: ``nvidia/k8s-device-plugin:v0.16.1``."""
        return self.image.partition("/")[2]

    @property
    def repository(self) -> str:
        """The image without registry and tag."""
        return self.path.partition(":")[0]


PUBLIC_REGISTRIES: frozenset[str] = frozenset(
    {row["image"].partition("/")[0] for row in _data.load("images")["images"] if ".dkr.ecr." not in row["image"]}
    | set(_data.load("images")["pull_through"]["upstreams"])
)
"""Registries of the internet, which a closed network does not reach."""

_ECR = re.compile(r"[0-9]{12}\.dkr\.ecr\.([a-z0-9-]+)\.[a-z0-9.]+")


def ecr_region(registry: str) -> str | None:
    """Give the region of an ECR registry, with or without a path, or None for another registry."""
    match = _ECR.fullmatch(registry.partition("/")[0])
    return match[1] if match else None


def chart_images(types: Iterable[InstanceType]) -> tuple[ChartImage, ...]:
    """Give the images that nodes of these types pull for the chart from elsewhere than ECR of their region."""
    rows = list(types)
    needs = {
        "always": True,
        "nvidia": any(row.is_nvidia for row in rows),
        "neuron": any(row.is_neuron for row in rows),
        "efa": any(row.efa_supported for row in rows),
    }
    return tuple(
        ChartImage(part=row["part"], image=row["image"], value=tuple(row["value"]))
        for row in _data.load("images")["images"]
        if needs[row["needed_by"]]
    )


def registry_values(registry: str, images: Iterable[ChartImage]) -> Mapping[str, Any]:
    """Give the chart values with which ``images`` come from ``registry``, under the names they have upstream."""
    values: dict[str, Any] = {}
    for image in images:
        if not image.value:
            continue
        *steps, last = image.value
        section = values
        for step in steps:
            section = section.setdefault(step, {})
        section[last] = f"{registry}/{image.repository}"
    return values
