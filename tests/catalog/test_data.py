"""Every data file has a date, sources and the stable format, and loading the catalog is fast."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest

from hyperpod_cdk import catalog
from hyperpod_cdk.catalog import _data
from tests.support.tables import row_by_row

MODULES = sorted(catalog.__all__)


def test_every_module_has_a_data_file_and_no_file_is_left_over() -> None:
    assert sorted(path.name for path in _data.DIRECTORY.iterdir()) == [f"{name}.json" for name in MODULES]


def test_every_file_is_dated(document: dict[str, Any]) -> None:
    assert date(2026, 1, 1) <= date.fromisoformat(document["as_of"])


def test_every_file_names_its_sources(document: dict[str, Any]) -> None:
    assert document["sources"]
    assert all(key and text for key, text in document["sources"].items())


def test_every_source_of_a_row_is_explained(document: dict[str, Any]) -> None:
    known = set(document["sources"])
    for row in _rows(document):
        sources = row["sources"] if "sources" in row else row["source"].split(";")[0].split(", ")
        assert set(sources) <= known, row


def test_a_mark_of_doubt_says_why(document: dict[str, Any]) -> None:
    for row in _rows(document):
        doubts = row.get("unsure", [])
        for doubt in doubts if isinstance(doubts, list) else [doubts]:
            assert len(doubt.split()) > 2, row


@row_by_row("name", MODULES)
def test_every_module_gives_the_date_of_its_facts(name: str) -> None:
    module = getattr(catalog, name)
    assert date.fromisoformat(_data.load(name)["as_of"]) == module.AS_OF


def test_an_unknown_module_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"^module 'hyperpod_cdk\.catalog' has no attribute 'lustres'$"):
        _ = catalog.lustres


def test_all_is_exact_and_listed() -> None:
    assert catalog.__all__ == sorted(catalog.__all__)
    assert set(catalog.__all__) <= set(dir(catalog))


def test_importing_the_package_loads_no_module_and_no_data() -> None:
    loaded = _loaded_after("import hyperpod_cdk.catalog")
    assert [name for name in loaded if name.startswith("hyperpod_cdk.catalog.")] == []
    assert "json" not in loaded
    assert "dataclasses" not in loaded


def test_the_whole_catalog_needs_no_heavy_package() -> None:
    loaded = _loaded_after("from hyperpod_cdk import catalog; [getattr(catalog, name) for name in catalog.__all__]")
    heavy = {"aws_cdk", "boto3", "botocore", "constructs", "jsii", "pydantic", "yaml", "moto", "cfnlint", "rapidfuzz"}
    assert heavy & set(loaded) == set()
    assert f"hyperpod_cdk.catalog.{MODULES[0]}" in loaded


def test_the_table_of_instance_types_waits_for_the_first_question() -> None:
    program = "from hyperpod_cdk.catalog import _data, instance_types; print(_data.load.cache_info().currsize)"
    assert _output(program) == "0"


def _rows(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, list):
        for item in value:
            yield from _rows(item)
    elif isinstance(value, dict):
        if "source" in value or ("sources" in value and isinstance(value["sources"], list)):
            yield value
        for item in value.values():
            yield from _rows(item)


def _loaded_after(statement: str) -> list[str]:
    modules: list[str] = json.loads(
        _output(f"{statement}; import sys; names = sorted(sys.modules); import json; print(json.dumps(names))")
    )
    return modules


def _output(program: str) -> str:
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    return run.stdout.strip()
