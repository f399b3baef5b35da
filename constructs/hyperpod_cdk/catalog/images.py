"""Container images of the HyperPod dependency chart, which of them a region's ECR has, and how to name others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal, NamedTuple

from hyperpod_cdk.catalog import _data
from hyperpod_cdk.catalog.instance_types import InstanceType

AS_OF: date = _data.as_of("images")

CHART_COMMIT: str = _data.load("images")["chart_commit"]
"""The commit of aws/sagemaker-hyperpod-cli whose rendered chart the table was read from."""

_REGIONAL = "{regional}"
"""Means in the table a registry in ECR of each region that the part's ``registries`` lists."""


@dataclass(frozen=True, kw_only=True)
class ChartImage:
    """An image of one part of the chart, with its registry and tag.

    ``value`` is the path of the chart's value that names it; empty if a template has it, where no value can change
    it. ``value_holds``: the image's repository, or the whole image with its tag.
    """

    part: str
    image: str
    value: tuple[str, ...]
    value_holds: Literal["repository", "image"] = "repository"

    @property
    def path(self) -> str:
        """The image without its registry: ``nvidia/k8s-device-plugin:v0.16.1``."""
        return self.image.partition("/")[2]

    @property
    def repository(self) -> str:
        """The image without registry and tag."""
        return self.path.partition(":")[0]

    def is_in_ecr_of(self, region: str) -> bool:
        """Return whether nodes of ``region`` pull it from ECR of their own region, as a closed network must."""
        return ecr_region(self.image) == region


PUBLIC_REGISTRIES: frozenset[str] = frozenset(
    {
        row["image"].partition("/")[0]
        for row in _data.load("images")["images"]
        if ".dkr.ecr." not in row["image"] and not row["image"].startswith(_REGIONAL)
    }
    | set(_data.load("images")["pull_through"]["upstreams"])
)
"""Registries on the internet, which a closed network cannot reach."""

_ECR = re.compile(
    r"(?P<account>[0-9]{12})\.dkr(?:\.|(?P<dual_stack>-))ecr(?P<fips>-fips)?"
    r"\.(?P<region>[a-z0-9-]+)\.[a-z0-9.]+(:[0-9]+)?"
)


class EcrRegistry(NamedTuple):
    """The registry of an account in ECR, by one of its four host names (AWS general reference, "Amazon ECR endpoints
    and quotas", 2026-11)."""

    account: str
    region: str
    is_dual_stack: bool
    """``dkr-ecr``, to which no interface endpoint leads (ECR user guide, "Making requests to Amazon ECR registries",
    2026-11)."""
    is_fips: bool


def ecr_registry(registry: str) -> EcrRegistry | None:
    """Return the parts of an ECR registry, with or without a path, or None for another registry."""
    match = _ECR.fullmatch(registry.partition("/")[0])
    if match is None:
        return None
    return EcrRegistry(match["account"], match["region"], bool(match["dual_stack"]), bool(match["fips"]))


def ecr_region(registry: str) -> str | None:
    """Return the region of an ECR registry, with or without a path, or None for another registry."""
    found = ecr_registry(registry)
    return found.region if found else None


def chart_images(types: Iterable[InstanceType], *, region: str, gpu_partitions: bool) -> tuple[ChartImage, ...]:
    """Return the images that nodes of these types pull for the chart in ``region``, from ECR there or elsewhere.

    ``gpu_partitions``: a group partitions its GPUs (MIG), for which NVIDIA's GPU operator replaces the device
    plugin.
    """
    rows = list(types)
    nvidia = any(row.is_nvidia for row in rows)
    needs = {
        "always": True,
        "accelerated": any(row.is_accelerated for row in rows),
        "nvidia": nvidia and not gpu_partitions,
        "mig": gpu_partitions,
        "neuron": any(row.is_neuron for row in rows),
        "efa": any(row.efa_supported for row in rows),
    }
    return tuple(
        ChartImage(
            part=row["part"],
            image=row["image"].replace(_REGIONAL, _registry(row["part"], region)),
            value=tuple(row["value"]),
            value_holds=row.get("value_holds", "repository"),
        )
        for row in _data.load("images")["images"]
        if needs[row["needed_by"]]
    )


def images_to_copy(types: Iterable[InstanceType], *, region: str, gpu_partitions: bool) -> tuple[ChartImage, ...]:
    """Return those of ``chart_images`` that are not in ECR of ``region``."""
    found = chart_images(types, region=region, gpu_partitions=gpu_partitions)
    return tuple(image for image in found if not image.is_in_ecr_of(region))


def copied_name(image: str, registry: str) -> str:
    """Return the name of an image's copy in ``registry``, with or without a path: there it keeps its upstream name."""
    return f"{registry}/{image.partition('/')[2]}"


def gpu_operator_registry(region: str) -> str | None:
    """Return the registry of AWS's copy of the GPU operator in ECR of ``region``, None if the chart has none."""
    account = _data.load("images")["registries"]["gpu-operator"]["accounts"].get(region)
    return f"{account}.dkr.ecr.{region}.amazonaws.com" if account else None


def registry_values(registry: str, images: Iterable[ChartImage]) -> Mapping[str, Any]:
    """Return the chart values with which ``images`` come from ``registry``, under their upstream names."""
    values: dict[str, Any] = {}
    for image in images:
        if not image.value:
            continue
        *steps, last = image.value
        section = values
        for step in steps:
            section = section.setdefault(step, {})
        section[last] = f"{registry}/{image.path if image.value_holds == 'image' else image.repository}"
    return values


def _registry(part: str, region: str) -> str:
    """The ECR registry of a part in ``region``, or in the region that its template falls back to."""
    row = _data.load("images")["registries"].get(part, {})
    home = region if region in row.get("accounts", {}) else row.get("fallback", region)
    return f"{row.get('accounts', {}).get(home, '000000000000')}.dkr.ecr.{home}.amazonaws.com"
