"""The packages of the library and their allowed imports: each contract of import-linter passes, and can fail."""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import grimp
import pytest
from importlinter import Contract, configuration
from importlinter.contracts.forbidden import ForbiddenContract
from importlinter.contracts.layers import LayersContract

ROOT = Path(__file__).parent.parent
SETTINGS: Mapping[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
    "importlinter"
]
CONTRACTS: Mapping[str, Mapping[str, Any]] = {each["name"]: each for each in SETTINGS["contracts"]}
configuration.configure()
LIBRARY = ROOT / "constructs" / "hyperpod_cdk"


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph(*SETTINGS["root_packages"], include_external_packages=True, cache_dir=None)


def layers() -> list[list[str]]:
    (found,) = (each["layers"] for each in CONTRACTS.values() if each["type"] == "layers")
    return [[room.strip() for room in layer.split("|")] for layer in found]


def forbidden_imports() -> Iterator[tuple[str, str, str]]:
    """The contract, who would import, and what: each that a contract names at least once."""
    for name, contract in CONTRACTS.items():
        if contract["type"] == "layers":
            rows = layers()
            yield name, rows[-1][0], rows[0][0]
            for row in rows:
                if len(row) > 1:
                    yield name, row[0], row[-1]
        else:
            first, *others = contract["source_modules"]
            for target in contract["forbidden_modules"]:
                yield name, first, target
            for source in others:
                yield name, source, contract["forbidden_modules"][0]


def kept(name: str, graph: grimp.ImportGraph) -> bool:
    options = {key: value for key, value in CONTRACTS[name].items() if key not in ("name", "type")}
    kind = LayersContract if CONTRACTS[name]["type"] == "layers" else ForbiddenContract
    contract: Contract = kind(name=name, session_options=dict(SETTINGS), contract_options=options)
    return bool(contract.check(deepcopy(graph), verbose=False).kept)


def test_every_package_is_in_one_layer() -> None:
    stated = [room for row in layers() for room in row]
    rooms = {
        f"hyperpod_cdk.{path.stem}"
        for path in LIBRARY.iterdir()
        if (path.suffix == ".py" and path.stem != "__init__") or (path / "__init__.py").is_file()
    }
    assert sorted(stated) == sorted(rooms | {"hyperpod_cdk_rehearsal", "hyperpod_cdk_stacks"})


@pytest.mark.parametrize("name", CONTRACTS)
def test_a_contract_is_kept(name: str, graph: grimp.ImportGraph) -> None:
    assert kept(name, graph)


@pytest.mark.parametrize(("name", "importer", "imported"), list(forbidden_imports()))
def test_a_contract_refuses_what_it_forbids(name: str, importer: str, imported: str, graph: grimp.ImportGraph) -> None:
    changed = deepcopy(graph)
    changed.add_import(importer=importer, imported=imported, line_number=1, line_contents=f"import {imported}")
    assert not kept(name, changed)


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("hyperpod_cdk_stacks.environment", "hyperpod_cdk._cli.output"),
        ("hyperpod_cdk_stacks.foundation", "hyperpod_cdk_rehearsal.driver"),
        ("hyperpod_cdk_stacks.teams", "boto3"),
        ("hyperpod_cdk.hyperpod.cluster", "boto3"),
        ("hyperpod_cdk.review.run", "boto3"),
        ("hyperpod_cdk.living.model", "boto3"),
        ("hyperpod_cdk.templates.assembly", "boto3"),
        ("hyperpod_cdk.handlers.answering", "hyperpod_cdk.catalog.durations"),
        ("hyperpod_cdk.handlers.answering", "hyperpod_cdk.findings"),
        ("hyperpod_cdk.review.run", "hyperpod_cdk.checks.aws"),
        ("hyperpod_cdk.importing.draft", "aws_cdk"),
        ("hyperpod_cdk_rehearsal.embedded.services.fsx", "hyperpod_cdk.living.storage"),
        ("hyperpod_cdk_rehearsal.embedded.services.fsx", "hyperpod_cdk.transitions.room"),
        ("hyperpod_cdk_rehearsal.embedded.services.nodes", "hyperpod_cdk.catalog.instance_types"),
        ("hyperpod_cdk_rehearsal.embedded.published.lustre", "hyperpod_cdk_rehearsal.embedded.services.fsx"),
        ("hyperpod_cdk.scratch", "boto3"),
        ("hyperpod_cdk.yaml_reading", "botocore"),
        ("hyperpod_cdk_stacks.teams", "hyperpod_cdk.workloads.job"),
        ("hyperpod_cdk.hyperpod.cluster", "hyperpod_cdk.templates.assembly"),
        ("hyperpod_cdk.eks.control_plane", "hyperpod_cdk.templates.assembly"),
        ("hyperpod_cdk.storage.lustre", "hyperpod_cdk.checks.model"),
        ("hyperpod_cdk._cli.plans", "aws_cdk"),
        ("hyperpod_cdk.cli", "aws_cdk"),
        *(
            (importer, package)
            for importer in ("hyperpod_cdk.handlers.answering", "hyperpod_cdk.catalog.lustre", "hyperpod_cdk.findings")
            for package in ("rapidfuzz", "typer")
        ),
        *(
            (f"hyperpod_cdk_rehearsal.embedded.{module}", rules)
            for module in ("serve", "operations", "validation", "kubernetes_api")
            for rules in ("hyperpod_cdk.catalog.instance_groups", "hyperpod_cdk.catalog.lustre")
        ),
    ],
)
def test_some_contract_refuses(importer: str, imported: str, graph: grimp.ImportGraph) -> None:
    changed = deepcopy(graph)
    assert {importer, imported} <= changed.modules
    changed.add_import(importer=importer, imported=imported, line_number=1, line_contents=f"import {imported}")
    assert not all(kept(name, changed) for name in CONTRACTS)


OTHERS_CODE = {
    "hyperpod_cdk.handlers": {"boto3", "botocore"},  # what Lambda's runtime of Python has
    "hyperpod_cdk.catalog": {"hyperpod_cdk.file_reading"},
    "hyperpod_cdk.findings": set[str](),
    "hyperpod_cdk.scratch": set[str](),
    "hyperpod_cdk_rehearsal.embedded.published": {"botocore", "moto"},
}
"""What is imported besides Python's standard library and the package itself."""


def other_code(room: str, graph: grimp.ImportGraph) -> set[str]:
    """Return the modules of others, and of this library outside the room, that a room imports itself."""
    imported = {
        each
        for importer in (room, *graph.find_descendants(room))
        for each in graph.find_modules_directly_imported_by(importer)
    }
    return {
        each
        for each in imported
        if each.partition(".")[0] not in sys.stdlib_module_names and not f"{each}.".startswith(f"{room}.")
    }


@pytest.mark.parametrize("room", OTHERS_CODE)
def test_a_room_imports_no_package_that_is_not_named(room: str, graph: grimp.ImportGraph) -> None:
    """Contracts forbid packages by name; a package that none of them names is refused here."""
    assert other_code(room, graph) == OTHERS_CODE[room]
    for package in ("requests", "httpx", "hyperpod_cdk.config"):
        changed = deepcopy(graph)
        changed.add_import(importer=room, imported=package, line_number=1, line_contents=f"import {package}")
        assert package in other_code(room, changed) - OTHERS_CODE[room]


BOTO = {
    "hyperpod_cdk.handlers": "runs in Lambda",
    "hyperpod_cdk_rehearsal": "its own clients",
}
"""Rooms that may import boto3, and why."""


def test_every_other_room_is_refused_boto3() -> None:
    refused = {
        source
        for contract in CONTRACTS.values()
        if contract["type"] == "forbidden" and {"boto3", "botocore"} <= set(contract["forbidden_modules"])
        for source in contract["source_modules"]
    }
    assert {room for row in layers() for room in row} - refused == set(BOTO)


OF_THE_REPOSITORY = {"app", "conftest", "rehearsal", "scripts", "tests"}
"""What can be imported where the root of the repository is on Python's path, and is not installed."""


def test_the_tests_of_the_rehearsal_import_nothing_of_these() -> None:
    """They need what is installed, and what lies below their folder; these tests may import from them."""
    files = sorted((ROOT / "rehearsal" / "tests").rglob("*.py"))
    assert len(files) > 60
    taken = {
        (file.relative_to(ROOT).as_posix(), module)
        for file in files
        for module in _imported(file.read_text(encoding="utf-8"))
        if module.partition(".")[0] in OF_THE_REPOSITORY and not module.startswith("rehearsal.tests.")
    }
    assert taken == set()
    for line in ("import tests.a", "import os, tests.a as b", "from tests.a import b", "def c():\n    import tests.a"):
        assert "tests.a" in _imported(line)


def _imported(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


def test_no_room_takes_a_private_module_of_another(graph: grimp.ImportGraph) -> None:
    taken = {
        (importer, imported)
        for importer in graph.modules
        if importer.startswith("hyperpod_cdk")
        for imported in graph.find_modules_directly_imported_by(importer)
        if imported.startswith("hyperpod_cdk") and _private_home(imported) not in ("", *_parents(importer))
    }
    # the command's own package, which the entry point alone may open
    assert {pair for pair in taken if not (pair[0] == "hyperpod_cdk.cli" and "._cli" in pair[1])} == set()


def _private_home(module: str) -> str:
    """The package in which a private module may be used; empty where no part of the name is private."""
    parts = module.split(".")
    for position, part in enumerate(parts):
        if part.startswith("_"):
            return ".".join(parts[:position])
    return ""


def _parents(module: str) -> list[str]:
    parts = module.split(".")
    return [".".join(parts[: length + 1]) for length in range(len(parts))]
