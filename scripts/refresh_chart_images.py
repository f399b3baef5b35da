"""Reads the images of the pulled dependency chart from its rendering; ``--check`` prints differences to the catalog.

Run `hyperpod-cdk charts pull` first. Tags and registries are updated if a part pulls the same image with another one. A
new or removed image is only reported: write its row by hand, because the rendering does not show which value of the
chart contains it and which types need it.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from refresh_catalog import DATA, ROOT, dump

from hyperpod_cdk.catalog import images, instance_types, regions
from hyperpod_cdk.eks import charts
from hyperpod_cdk.eks.chart_values import chart_values, rendered_images

TYPES = {
    "without accelerators": ["ml.m5.2xlarge"],
    "NVIDIA without EFA": ["ml.g5.xlarge"],
    "NVIDIA with EFA": ["ml.p5.48xlarge", "ml.m5.2xlarge"],
    "Neuron": ["ml.trn1.32xlarge"],
}


@dataclass(frozen=True)
class Difference:
    """The difference between the catalog and a rendering for one kind of cluster in a Region."""

    where: str
    region: str
    listed: frozenset[str]
    rendered: frozenset[str]


def main(arguments: list[str] | None = None, *, project: Path = ROOT, data: Path = DATA) -> int:
    """Refresh the table, or with ``--check`` compare it; returns 1 if it is stale."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 when the table is stale")
    options = parser.parse_args(arguments)
    try:
        found = list(differences(charts.verify(project)))
    except charts.ChartError as error:
        print(error, file=sys.stderr)
        return 1
    file = data / "images.json"
    table = json.loads(file.read_text(encoding="utf-8"))
    commit = charts.ChartLock.load(project).commit
    for difference in found:
        print(
            f"{difference.where} in {difference.region}: listed {sorted(difference.listed - difference.rendered)}, "
            f"rendered {sorted(difference.rendered - difference.listed)}"
        )
    if table["chart_commit"] != commit:
        print(f"chart_commit: {table['chart_commit']} -> {commit}")
    stale = bool(found) or table["chart_commit"] != commit
    if stale and not options.check:
        refresh(table, found)
        table |= {"chart_commit": commit, "as_of": datetime.now(UTC).date().isoformat()}
        file.write_text(dump(table), encoding="utf-8")
    return 1 if stale else 0


def differences(chart: Path, *, every: Sequence[str] = regions.HYPERPOD_REGIONS) -> Iterator[Difference]:
    """Compare table and rendering: each kind of cluster in one region, one with NVIDIA GPUs in ``every`` region."""
    with tempfile.TemporaryDirectory() as scratch:
        helm = charts.find_helm(Path(scratch))
        for where, names in TYPES.items():
            yield from _differences(chart, where, names, every[0], helm=helm)
        for region in every[1:]:
            yield from _differences(chart, "NVIDIA with EFA", TYPES["NVIDIA with EFA"], region, helm=helm)


def _differences(chart: Path, where: str, names: Sequence[str], region: str, *, helm: Path) -> Iterator[Difference]:
    types = [row for name in names if (row := instance_types.get(name)) is not None]
    for gpu_partitions in (False, True) if any(row.is_nvidia for row in types) else (False,):
        values = chart_values(types, region=region, gpu_partitions=gpu_partitions)
        rendered = rendered_images(charts.render(chart, values, helm=helm))
        listed = images.chart_images(types, region=region, gpu_partitions=gpu_partitions)
        expected = frozenset(image.image for image in listed)
        if not any(row.is_accelerated for row in types):
            # no value disables the agent; it only runs on nodes with accelerators
            rendered = frozenset(name for name in rendered if "health-monitoring-agent" not in name)
        if rendered != expected:
            yield Difference(f"{where}{', divided' if gpu_partitions else ''}", region, expected, rendered)


def refresh(table: dict[str, Any], found: list[Difference]) -> None:
    """Write the tags and registries that have changed into the rows of the table."""
    for difference in found:
        for gone in difference.listed - difference.rendered:
            same = [name for name in difference.rendered - difference.listed if _name(name) == _name(gone)]
            for row in table["images"]:
                if len(same) == 1 and row["image"].rpartition(":")[2] == gone.rpartition(":")[2]:
                    if _name(row["image"]) != _name(gone):
                        continue
                    regional = row["image"].startswith("{regional}")
                    row["image"] = f"{{regional}}/{same[0].partition('/')[2]}" if regional else same[0]


def _name(image: str) -> str:
    return image.partition("/")[2].rpartition(":")[0]


if __name__ == "__main__":
    sys.exit(main())
