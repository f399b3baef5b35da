"""The JSON Schema for editors: equal to the models, and as strict about single values."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from hyperpod_cdk.config import environment_schema, load_environment
from hyperpod_cdk.config.schema import schema_text

Changed = Callable[[Mapping[str, str]], str]
FILES = (
    "environments/prod.yaml",
    "examples/two-teams.yaml",
    "examples/elastic-training.yaml",
    "examples/existing-vpc-and-eks.yaml",
)


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    schema = environment_schema()
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def test_committed_schema_is_the_generated_one(project: Path) -> None:
    committed = (project / "schemas" / "environment.schema.json").read_text(encoding="utf-8")
    assert committed == schema_text(), "run 'make docs' and commit schemas/environment.schema.json"


@pytest.mark.parametrize("file", FILES)
def test_real_file(project: Path, validator: Draft202012Validator, file: str) -> None:
    path = project / file
    loaded = load_environment(path)
    # a date that passes, and what nobody but the reader can fill in
    expected = {"kubernetes_version_is_supported", "public_endpoint_names_its_callers"}
    assert [warning for warning in loaded.warnings if warning.rule not in expected] == []
    assert list(validator.iter_errors(yaml.safe_load(path.read_text(encoding="utf-8")))) == []


@pytest.mark.parametrize("file", FILES)
def test_real_file_names_its_schema(project: Path, file: str) -> None:
    first = (project / file).read_text(encoding="utf-8").splitlines()[0]
    prefix, _, target = first.partition("$schema=")
    assert prefix == "# yaml-language-server: "
    assert ((project / file).parent / target).resolve() == project / "schemas" / "environment.schema.json"


def test_base_file(base: str, validator: Draft202012Validator) -> None:
    assert list(validator.iter_errors(yaml.safe_load(base))) == []


@pytest.mark.parametrize(
    "change",
    [
        {"name: prod\n": "name: Prod\n"},
        {"name: prod\n": ""},
        {'"111122223333"': "111122223333"},
        {'"111122223333"': '"1"'},
        {"us-east-1\n": "nowhere\n"},
        {"{cost-center: ml-platform}": "{'aws:x': y}"},
        {"{cost-center: ml-platform}": "{a: 'ml & co'}"},
        {"vpc_cidr: 10.192.0.0/16": "vpc_cidr: 10.192.0.0/8"},
        {"vpc_cidr: 10.192.0.0/16": "vpc_cidr: 10.292.0.0/16"},
        {"use1-az4: {": "us-east-1b: {"},
        {"    use1-az4: {node_cidr: 10.2.0.0/16}\n": ""},
        {"nat_gateways: 1": "nat_gateways: 0"},
        {"nat_gateways: 1": "nat_gateway: 1"},
        {'"1.35"': '"1.12"'},
        {'"1.35"': "1.30"},
        {"public_and_private": "public"},
        {"role/platform-admin": "user/alice"},
        {"cluster_name: null": "cluster_name: my cluster"},
        {"node_recovery: automatic": "node_recovery: Automatic"},
        {"node_recovery: automatic": "tiered_checkpointing: {memory_percent: 10}"},
        {"ml.m5.2xlarge\n      count: 2": "m5.2xlarge\n      count: 2"},
        {"ml.m5.2xlarge\n      count: 2": "ml.m5.2xlarge\n      count: -1"},
        {"ml.m5.2xlarge\n      count: 2": "ml.m5.2xlarge\n      count: 6759"},
        {"availability_zone_id: use1-az4": "availability_zone_id: us-east-1b"},
        {"capacity: training_plan": "capacity: reserved"},
        {"training-plan/": "plan/"},
        {"volume_gib: 500": "volume_gib: 16385"},
        {"volume_gib: 500": "threads_per_core: 3"},
        {"volume_gib: 500": "taints: [{key: a}]"},
        {"volume_gib: 500": "patching: {schedule: sunday}"},
        {"throughput_mbps_per_tib: 250": "throughput_mbps_per_tib: 300"},
        {"compression: lz4": "compression: zip"},
        {"namespaces: [hyperpod-ns-research]": "namespaces: []"},
        {"s3://my-datasets/": "my-datasets"},
        {"borrow_limit_percent: 50": "borrow_limit_percent: 900"},
        {"name: research": "name: Research"},
        {"permissions_boundary: null": "quota_check: ignore"},
    ],
    ids=lambda change: next(iter(change.values()))[:50].strip() or "left out",
)
def test_schema_refuses(changed: Changed, validator: Draft202012Validator, change: Mapping[str, str]) -> None:
    assert list(validator.iter_errors(yaml.safe_load(changed(change)))) != []


def test_schema_allows_a_type_that_is_stated(changed: Changed, validator: Draft202012Validator) -> None:
    text = changed(
        {
            "ml.m5.2xlarge": "ml.m99.2xlarge",
            "permissions_boundary: null": "instance_types: {ml.m99.2xlarge: {vcpu: 8, memory_gib: 32}}",
        }
    )
    assert list(validator.iter_errors(yaml.safe_load(text))) == []


def test_schema_allows_an_empty_zone(changed: Changed, validator: Draft202012Validator) -> None:
    text = changed({"use1-az4: {node_cidr: 10.2.0.0/16}": "use1-az4:"})
    assert list(validator.iter_errors(yaml.safe_load(text))) == []


def test_schema_completes_instance_types() -> None:
    group = environment_schema()["$defs"]["InstanceGroup"]["properties"]["instance_type"]
    assert "ml.p5.48xlarge" in json.dumps(group)


def test_every_property_has_a_description() -> None:
    schema = environment_schema()
    sections: dict[str, Any] = {"Environment": schema, **schema["$defs"]}
    assert [
        f"{name}.{key}"
        for name, section in sections.items()
        for key, value in section["properties"].items()
        if not value.get("description") and not schema["$defs"][value["$ref"].rpartition("/")[2]].get("description")
    ] == []
