"""`hyperpod-cdk charts images`: the images that nodes pull for the chart, and those that a closed network must copy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hyperpod_cdk.catalog import images
from hyperpod_cdk.config import Environment
from hyperpod_cdk.eks import charts
from hyperpod_cdk.eks.chart_values import chart_values, rendered_images


@dataclass(frozen=True, kw_only=True)
class Images:
    """The images of the chart as an environment installs it; ``source`` is where they were read from.

    ``copies``: the names in a closed network of the images that are not in Amazon ECR of its Region; None if the
    file has no ``eks.image_registry``.
    """

    source: str
    names: tuple[str, ...]
    copies: dict[str, str | None]

    def as_dict(self) -> dict[str, object]:
        """Return the images as data for JSON."""
        rows = [{"image": name, "to_copy": name in self.copies, "copy": self.copies.get(name)} for name in self.names]
        return {"source": self.source, "images": rows}

    def render(self) -> str:
        """Return the images as text, first those to copy, each with the name of its copy."""
        there = [f"  {name}" for name in self.names if name not in self.copies]
        copied = [f"  {name} -> {copy or '<eks.image_registry>/...'}" for name, copy in self.copies.items()]
        parts = [self.source]
        if copied:
            parts += ["not in ECR of the region, a closed network needs copies:", *copied]
        if there:
            parts += ["in ECR of the region:", *there]
        return "\n".join(parts)


def images_of(environment: Environment, project: Path) -> Images:
    """Read the images from the chart pulled into ``project``, or from the catalog's table if there is none.

    Raises charts.ChartError if a pulled chart does not match the lock file or Helm cannot render it.
    """
    types = environment.types_of_groups
    region, partitions = environment.region, environment.hyperpod.gpu_partitions
    if (project / charts.CHART_DIRECTORY).exists():
        lock = charts.ChartLock.load(project)
        values = chart_values(types, region=region, gpu_partitions=partitions)
        found = rendered_images(charts.render(charts.verify(project), values))
        source = f"rendered from the pulled chart, {lock.repository} at {lock.commit[:12]}"
    else:
        listed = images.chart_images(types, region=region, gpu_partitions=partitions)
        found = frozenset(image.image for image in listed)
        source = (
            f"from the catalog of {images.AS_OF}, chart at {images.CHART_COMMIT[:12]}; the chart is not pulled, "
            f"run '{charts.PULL_COMMAND}' and then this command again to read the chart itself"
        )
    registry = environment.eks.image_registry
    copies = {
        name: images.copied_name(name, registry) if registry else None
        for name in sorted(found)
        if images.ecr_region(name) != region
    }
    return Images(source=source, names=tuple(sorted(found)), copies=copies)
