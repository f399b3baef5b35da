"""The values with which the HyperPod dependency chart is installed for chosen instance types, and its images."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hyperpod_cdk.catalog import images
from hyperpod_cdk.catalog import instance_types as catalog
from hyperpod_cdk.catalog.instance_types import InstanceType

_INSTANCE_TYPE_LABEL = "node.kubernetes.io/instance-type"
_GPU_OPERATOR_FOLDERS = {
    "operator": "",
    "toolkit": "/mirror-k8s",
    "devicePlugin": "",
    "gfd": "",
    "migManager": "/mirror-cloud-native",
    "validator": "/mirror-cloud-native",
}
"""The paths of AWS's copies of the GPU operator's images in its registries: the chart's ``regional-values``."""


def chart_values(
    types: Sequence[InstanceType], *, region: str, gpu_partitions: bool, image_registry: str | None = None
) -> Mapping[str, Any]:
    """Return the chart's values for nodes of these types in ``region``.

    ``gpu_partitions``: a group partitions its GPUs (MIG) with NVIDIA's GPU operator; the operator's device plugin
    replaces the chart's own, because two of them would offer each GPU twice.

    ``image_registry``: see ``HyperPodDependencies``; default: images come from the chart's registries.

    Raises ValueError if the operator is needed and AWS has no copy of it in ``region``.
    """
    own = _own_values(types, region=region, gpu_partitions=gpu_partitions)
    if image_registry is None:
        return own
    copied = images.images_to_copy(types, region=region, gpu_partitions=gpu_partitions)
    return _merged(own, images.registry_values(image_registry, copied))


def rendered_images(documents: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    """Return the images of a rendered chart, each with registry and tag, as nodes pull them.

    The images of pods, and those that the GPU operator starts for its ClusterPolicy.
    """
    found = {image for document in documents for image in _pod_images(document)}
    for document in documents:
        if document.get("kind") == "ClusterPolicy":
            found |= set(_policy_images(document["spec"]))
    return frozenset(_with_registry(image) for image in found)


def _merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> Mapping[str, Any]:
    """Merge both; sections with the same name are merged."""
    return {
        **first,
        **{key: _merged(first[key], value) if key in first else value for key, value in second.items()},
    }


def _own_values(types: Sequence[InstanceType], *, region: str, gpu_partitions: bool) -> Mapping[str, Any]:
    # of all types, not only those in use: another group then neither restarts a plugin nor removes it from nodes
    every = _with_known(types)
    nvidia = [row.name for row in every if row.is_nvidia] if any(row.is_nvidia for row in types) else []
    neuron = [row.name for row in types if row.is_neuron]
    efa = [row.name for row in every if row.efa_supported] if any(row.efa_supported for row in types) else []
    return {
        "global": {"region": region},
        "health-monitoring-agent": {"region": region},
        "cert-manager": {"enabled": False},
        "nvidia-device-plugin": {
            "devicePlugin": {"enabled": bool(nvidia) and not gpu_partitions},
            **({"affinity": _affinity(nvidia)} if nvidia and not gpu_partitions else {}),
        },
        "neuron-device-plugin": {"devicePlugin": {"enabled": bool(neuron)}},
        "aws-efa-k8s-device-plugin": {
            "devicePlugin": {"enabled": bool(efa)},
            **({"supportedInstanceLabels": {"values": efa}} if efa else {}),
        },
        **({"gpu-operator": _gpu_operator(region)} if gpu_partitions else {}),
    }


def _with_known(types: Sequence[InstanceType]) -> list[InstanceType]:
    """Return the catalog's types and the given ones, by name; a given row replaces the catalog's."""
    known = [row for name in catalog.names() if (row := catalog.get(name))]
    rows = {row.name: row for row in (*known, *types)}
    return [rows[name] for name in sorted(rows)]


def check_gpu_operator(region: str) -> None:
    """Raise ValueError for a region for which the chart has no copy of NVIDIA's GPU operator."""
    if images.gpu_operator_registry(region) is None:
        raise ValueError(
            "gpu_partitions: must be left out in a region without a copy of NVIDIA's GPU operator in the chart, got"
            f" {region} "
            f"(chart as of {images.AS_OF}); leave out the label nvidia.com/mig.config too"
        )


def _gpu_operator(region: str) -> Mapping[str, Any]:
    check_gpu_operator(region)
    registry = images.gpu_operator_registry(region)
    # the wrapper and the chart of NVIDIA in it have the same name
    sections = {section: {"repository": f"{registry}{folder}"} for section, folder in _GPU_OPERATOR_FOLDERS.items()}
    return {"enabled": True, "gpu-operator": sections}


def _affinity(names: Sequence[str]) -> Mapping[str, Any]:
    expression = {"key": _INSTANCE_TYPE_LABEL, "operator": "In", "values": list(names)}
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def _pod_images(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key in {"containers", "initContainers"} and isinstance(item, list):
                yield from (str(each["image"]) for each in item if isinstance(each, Mapping) and "image" in each)
            else:
                yield from _pod_images(item)
    elif isinstance(value, list):
        for item in value:
            yield from _pod_images(item)


def _policy_images(spec: Mapping[str, Any]) -> Iterator[str]:
    # parts for virtual machines start only if sandboxWorkloads is enabled, independent of their own switch
    sandboxed = {"ccManager", "kataSandboxDevicePlugin", "sandboxDevicePlugin", "vfioManager"}
    for name, section in spec.items():
        if not isinstance(section, Mapping) or not {"repository", "image", "version"} <= section.keys():
            continue
        if section.get("enabled", True) and name not in sandboxed:
            yield f"{section['repository']}/{section['image']}:{section['version']}"


def _with_registry(image: str) -> str:
    """Add Docker Hub to an image without a registry."""
    host, slash, _ = image.partition("/")
    if not slash:
        return f"docker.io/library/{image}"
    return image if "." in host or ":" in host else f"docker.io/{image}"
