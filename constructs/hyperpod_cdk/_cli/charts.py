"""`hyperpod-cdk charts images`: what nodes pull for the dependency chart, and what a closed network has to copy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hyperpod_cdk.catalog import images
from hyperpod_cdk.config import Environment
from hyperpod_cdk.eks import charts
from hyperpod_cdk.eks.chart_values import chart_values, rendered_images


@dataclass(frozen=True, kw_only=True)
class Images:
    """The images of the chart as an environment installs it; ``source`` says what they were read from.

    ``copies``: under what name a closed network has those that do not come from ECR of its region; None where the
    file states no ``eks.image_registry``.
    """

    source: str
    names: tuple[str, ...]
    copies: dict[str, str | None]

    def as_dict(self) -> dict[str, object]:
        """The images as JSON has them."""
        rows = [{"image": name, "to_copy": name in self.copies, "copy": self.copies.get(name)} for name in self.names]
        return {"source": self.source, "images": rows}

    def render(self) -> str:
        """The images for people: those to copy first, each with its copy."""
        there = [f"  {name}" for name in self.names if name not in self.copies]
        copied = [f"  {name} -> {copy or '<eks.image_registry>/...'}" for name, copy in self.copies.items()]
        parts = [self.source]
        if copied:
            parts += ["not in ECR of the region, a closed network needs copies:", *copied]
        if there:
            parts += ["in ECR of the region:", *there]
        return "\n".join(parts)


def images_of(environment: Environment, project: Path) -> Images:
    """Read them from the chart pulled into ``project``, else from the catalog's table.

    Raises charts.ChartError for a pulled chart that is not what the lock says, or that helm cannot render.
    """
    names = {name for group in environment.hyperpod.all_groups for name in group.all_instance_types}
    types = [row for name in sorted(names) if (row := environment.instance_type(name)) is not None]
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
            f"'{charts.PULL_COMMAND}' and this verb then read it itself"
        )
    registry = environment.eks.image_registry
    copies = {
        name: f"{registry}/{name.partition('/')[2]}" if registry else None
        for name in sorted(found)
        if images.ecr_region(name) != region
    }
    return Images(source=source, names=tuple(sorted(found)), copies=copies)
