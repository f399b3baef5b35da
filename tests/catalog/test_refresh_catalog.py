"""scripts/refresh_catalog.py: prints changes, writes them once, and keeps manual entries."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from hyperpod_cdk.catalog import _data, deployer_actions, operators, regions
from hyperpod_cdk.catalog.instance_types import _instance_type

TODAY = date(2027, 1, 15)
STALE = "the catalog is stale; run python scripts/refresh_catalog.py and review the diff"

Edit = Callable[[dict[str, Any]], object]
Run = Callable[..., tuple[int, list[str]]]


@pytest.fixture(scope="module")
def packages(refresh_catalog: ModuleType) -> Any:
    return refresh_catalog.Packages()


def test_a_type_that_is_missing_in_a_hyperpod_region_is_recorded(packages: Any) -> None:
    """Of such a type, the file is warned: CloudFormation refuses the whole template."""
    where = [packages.registry[each] for each in regions.HYPERPOD_REGIONS]
    made = {each.name for each in (*deployer_actions.TYPES, *deployer_actions.FEATURES) if "::" in each.name}
    lacking = {name for name in made if not name.startswith("Custom::") and not all(name in each for each in where)}
    # the last is warned of by the service's own list of regions
    assert lacking <= {*_data.load("regions")["registry"], "AWS::Grafana::Workspace"}
    grafana = [packages.registry[each] for each in operators.regions("grafana") if each in regions.HYPERPOD_REGIONS]
    assert all("AWS::Grafana::Workspace" in each for each in grafana)


@pytest.fixture
def run(copied: Path, packages: Any, refresh_catalog: ModuleType, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the script on the copy; returns its exit code and its output lines."""

    def main(*arguments: str) -> tuple[int, list[str]]:
        code = refresh_catalog.main(list(arguments), data=copied, today=TODAY, packages=packages)
        printed = capsys.readouterr()
        return code, [*printed.out.splitlines(), *printed.err.splitlines()]

    return main


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of the catalog's data that a test may spoil."""
    return Path(shutil.copytree(_data.DIRECTORY, tmp_path / "data"))


def test_the_catalog_agrees_with_the_installed_packages(
    refresh_catalog: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    code = refresh_catalog.main(["--check"])
    assert (code, capsys.readouterr().out) == (0, "")


@pytest.mark.parametrize(
    ("name", "edit", "line"),
    [
        (
            "instance_types",
            lambda document: document["types"].pop(0),
            "instance_types.json: types: ml.p4d.24xlarge is new",
        ),
        (
            "instance_types",
            lambda document: document["types"].append({**document["types"][0], "name": "ml.x1.large"}),
            "instance_types.json: types: ml.x1.large is gone",
        ),
        (
            "instance_types",
            lambda document: document["types"][0].update(vcpu=95, training_plan_supported=False),
            "instance_types.json: types: ml.p4d.24xlarge vcpu 95 -> 96, training_plan_supported False -> True",
        ),
        (
            "instance_types",
            lambda document: document["types"].reverse(),
            "instance_types.json: types: the order has changed",
        ),
        (
            "create_only",
            lambda document: document["types"].update({"AWS::KMS::Key": "CidrBlock"}),
            "create_only.json: types: AWS::KMS::Key CidrBlock -> ",
        ),
        (
            "create_only",
            lambda document: document["types"].pop("AWS::EC2::VPC"),
            "create_only.json: types: AWS::EC2::VPC is new",
        ),
        (
            "regions",
            lambda document: document["registry"]["AWS::SageMaker::ComputeQuota"].remove("us-east-2"),
            "regions.json: registry: AWS::SageMaker::ComputeQuota +us-east-2",
        ),
        (
            "regions",
            lambda document: document["registry_regions"].append("moon-1"),
            "regions.json: registry_regions: moon-1 is gone",
        ),
        (
            "regions",
            lambda document: document["regions"][0].update(partition="aws-cn"),
            "regions.json: regions: af-south-1 partition aws-cn -> aws",
        ),
        (
            "regions",
            lambda document: document["partitions"].pop("aws"),
            "regions.json: partitions: aws is new",
        ),
    ],
)
def test_a_stale_file_is_reported_and_fixed(name: str, edit: Edit, line: str, copied: Path, run: Run) -> None:
    path = copied / f"{name}.json"
    spoil(path, edit)
    before = path.read_bytes()

    code, told = run("--check")
    assert code == 1
    assert told[0] == f"{name}.json: as_of: {_data.load(name)['as_of']} -> 2027-01-15"
    assert line in told
    assert told[-1] == STALE
    assert path.read_bytes() == before

    code, told = run()
    assert code == 0
    assert line in told
    assert STALE not in told
    assert run("--check") == (0, [])
    assert json.loads(path.read_text(encoding="utf-8"))["as_of"] == "2027-01-15"


def test_a_fixed_file_equals_the_current_one_except_for_its_date(copied: Path, run: Run) -> None:
    path = copied / "regions.json"
    spoil(path, lambda document: document["regions"].pop(3))
    assert "regions.json: regions: ap-northeast-1 is new" in run()[1]
    corrected = json.loads(path.read_text(encoding="utf-8"))
    assert {**corrected, "as_of": ""} == {**_data.load("regions"), "as_of": ""}


def test_a_file_in_another_form_is_reported(copied: Path, run: Run) -> None:
    path = copied / "lustre.json"
    path.write_text(json.dumps(_data.load("lustre")), encoding="utf-8")
    assert run("--check") == (1, ["lustre.json: not in its stable form", STALE])
    assert run() == (0, ["lustre.json: not in its stable form"])
    assert path.read_bytes() == (_data.DIRECTORY / "lustre.json").read_bytes()


def test_a_new_type_gets_its_row_from_ec2_and_says_what_was_not_read(
    packages: Any, refresh_catalog: ModuleType
) -> None:
    document = copy.deepcopy(_data.load("instance_types"))
    without(document, "ml.g6e.24xlarge")
    new = refresh_catalog.refreshed("instance_types", document, packages, today=TODAY)
    row = _instance_type(next(row for row in new["types"] if row["name"] == "ml.g6e.24xlarge"))
    old = _instance_type(next(r for r in _data.load("instance_types")["types"] if r["name"] == "ml.g6e.24xlarge"))
    for name in (
        "family",
        "architecture",
        "vcpu",
        "memory_gib",
        "accelerator_kind",
        "accelerator_count",
        "efa_count",
        "network_cards",
        "default_threads_per_core",
        "deep_health_check",
        "cluster_quota_name",
    ):
        assert getattr(row, name) == getattr(old, name), name
    assert row.sources == ("botocore", "moto-ec2")
    assert row.unsure == ("new in the API: RDMA, MIG, max pods, FSx client and quota codes were not read",)


def test_a_new_neuron_type(packages: Any, refresh_catalog: ModuleType) -> None:
    document = copy.deepcopy(_data.load("instance_types"))
    without(document, "ml.trn1.32xlarge")
    new = refresh_catalog.refreshed("instance_types", document, packages, today=TODAY)
    row = _instance_type(next(row for row in new["types"] if row["name"] == "ml.trn1.32xlarge"))
    assert row.is_neuron
    assert (row.accelerator_count, row.accelerator_memory_gib, row.training_plan_supported) == (16, 32, True)


def test_a_type_without_numbers_stops_the_run(copied: Path, run: Run) -> None:
    path = copied / "instance_types.json"
    spoil(path, lambda document: without(document, "ml.p6e-gb200.36xlarge"))
    before = path.read_bytes()
    assert run() == (
        1,
        ["instance_types.json: ml.p6e-gb200.36xlarge is new and no package states its numbers; add its row by hand"],
    )
    assert path.read_bytes() == before


def test_a_prefix_found_by_hand_stays(packages: Any, refresh_catalog: ModuleType) -> None:
    document = copy.deepcopy(_data.load("regions"))
    row = next(row for row in document["regions"] if row["name"] == "us-iso-east-1")
    row.update(az_id_prefix="uie1")
    del row["unsure"]
    assert refresh_catalog.refreshed("regions", document, packages, today=TODAY) == document


def test_versions_in_the_sources_move_with_the_facts(packages: Any, refresh_catalog: ModuleType) -> None:
    document = copy.deepcopy(_data.load("regions"))
    document["sources"]["partitions"] = "botocore 1.0.0, partitions.json"
    assert refresh_catalog.refreshed("regions", document, packages, today=TODAY) == document
    document["partitions"].pop("aws")
    new = refresh_catalog.refreshed("regions", document, packages, today=TODAY)
    assert new["sources"]["partitions"] == f"botocore {refresh_catalog.version('botocore')}, partitions.json"
    assert new["registry_as_of"] == packages.registry_date


def test_a_document_survives_its_stable_form(document: dict[str, Any], refresh_catalog: ModuleType) -> None:
    text = refresh_catalog.dump(document)
    assert json.loads(text) == document
    assert list(json.loads(text)) == list(document)
    assert refresh_catalog.dump(json.loads(text)) == text


def test_the_stable_form_gives_long_values_a_row_each(refresh_catalog: ModuleType) -> None:
    rows = [{"name": "a", "text": "x" * 60}, {"name": "b", "text": "y" * 60}]
    assert refresh_catalog.dump({"as_of": "2027-01-15", "short": [1, 2], "rows": rows, "map": {"k": rows}}) == (
        "{\n"
        '  "as_of": "2027-01-15",\n'
        '  "short": [1, 2],\n'
        '  "rows": [\n'
        f'    {{"name": "a", "text": "{"x" * 60}"}},\n'
        f'    {{"name": "b", "text": "{"y" * 60}"}}\n'
        "  ],\n"
        '  "map": {\n'
        f'    "k": [{{"name": "a", "text": "{"x" * 60}"}}, {{"name": "b", "text": "{"y" * 60}"}}]\n'
        "  }\n"
        "}\n"
    )


def spoil(path: Path, edit: Edit) -> None:
    """Change the document in a file."""
    document = json.loads(path.read_text(encoding="utf-8"))
    edit(document)
    path.write_text(json.dumps(document), encoding="utf-8")


def without(document: dict[str, Any], name: str) -> None:
    """Drop an instance type's row."""
    document["types"] = [row for row in document["types"] if row["name"] != name]
