"""The JSON Schema of the job file: what editors complete, and that it refuses what single values refuse."""

from __future__ import annotations

import json

import jsonschema
import pytest
import yaml

from hyperpod_cdk.workloads.job import Job
from hyperpod_cdk.workloads.schema import job_schema, schema_text
from tests.support.tables import row_by_row
from tests.workloads.test_loading import TEXT


def test_it_is_a_schema_of_every_field() -> None:
    schema = job_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["title"] == "hyperpod-cdk job"
    assert list(schema["properties"]) == list(Job.model_fields)
    assert json.loads(schema_text()) == schema


def test_it_takes_a_right_job() -> None:
    jsonschema.validate(yaml.safe_load(TEXT), job_schema())


@row_by_row(
    "old, new",
    [
        ("kind: hyperpod-pytorch", "kind: pytorch-job"),
        ("nodes: 2", "nodes: 0"),
        ("nodes: 2", "nodes: two"),
        ("name: llama", "name: Llama"),
        ("claim: scratch", "claim: Scratch"),
        ("mount_path: /data", "mount_path: data"),
        ("team: research", "teem: research"),
        ("nodes: 2", "environment: { HF-HOME: /data }"),
        ("nodes: 2", "environment: { WORKERS: 8 }"),
    ],
)
def test_it_refuses_a_wrong_value(old: str, new: str) -> None:
    assert TEXT.count(old) == 1
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(yaml.safe_load(TEXT.replace(old, new)), job_schema())
