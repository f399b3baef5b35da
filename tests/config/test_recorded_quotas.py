"""The record of quotas: its format, strict reading, and refusal of a record of another environment."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperpod_cdk.config import EnvironmentFileError, load_environment
from hyperpod_cdk.config.loading import quotas_file
from hyperpod_cdk.config.record_file import RecordError
from hyperpod_cdk.config.recorded_quotas import (
    SCHEMA_VERSION,
    RecordedQuota,
    RecordedQuotas,
    parse_record,
    read_record,
)
from hyperpod_cdk.findings import Severity
from tests.support.tables import row_by_row

FILE = "environments/prod.quotas.json"
ANEW = "restore it from version control, or write it again with 'hyperpod-cdk quotas show prod --record'"
P5 = "ml.p5.48xlarge for cluster usage"


def entry(name: str = P5, **changes: Any) -> dict[str, Any]:
    made = {
        "service": "sagemaker",
        "name": name,
        "code": "L-8762A75F",
        "value": 8.0,
        "is_default": False,
        "used": {"cluster:ml.p5.48xlarge": 2.0},
    }
    return {**made, **changes}


def record(*quotas: dict[str, Any], **changes: Any) -> dict[str, Any]:
    made = {
        "schema_version": SCHEMA_VERSION,
        "recorded": "2026-11-20",
        "account": "111122223333",
        "region": "us-east-1",
        "quotas": list(quotas),
    }
    return {**made, **changes}


def parsed(data: Any) -> RecordedQuotas:
    return parse_record(json.dumps(data, indent=1), file=FILE, called="prod")


def refused(text: str) -> str:
    with pytest.raises(RecordError) as caught:
        parse_record(text, file=FILE, called="prod")
    return caught.value.finding.render()


def test_a_quota_is_found_by_its_name_as_aws_writes_it() -> None:
    found = parsed(record(entry(), entry("VPCs per Region", service="vpc", used={})))
    assert found.recorded == date(2026, 11, 20)
    quota = found.find("sagemaker", "ML.P5.48xlarge for Cluster Usage")
    assert quota is not None
    assert (quota.value, quota.used_by_others("cluster:ml.p5.48xlarge"), quota.used_by_others("x")) == (8, 2, None)
    assert found.find("vpc", P5) is None


@given(
    st.lists(
        st.builds(
            RecordedQuota,
            service=st.sampled_from(["vpc", "sagemaker"]),
            name=st.text("abc ", min_size=1),
            code=st.text("L-01"),
            value=st.floats(0, 1e9),
            is_default=st.booleans(),
            used=st.dictionaries(st.text("ab:"), st.none() | st.floats(0, 1e9), max_size=3),
        ),
        unique_by=lambda quota: (quota.service, " ".join(quota.name.split())),
    )
)
def test_what_is_written_is_read(quotas: list[RecordedQuota]) -> None:
    made = RecordedQuotas.model_validate({**record(), "quotas": tuple(quotas)})
    again = parse_record(made.text(), file=FILE, called="prod")
    assert again.text() == made.text()
    assert all(again.find(each.service, each.name) == each for each in made.quotas)
    assert len(again.quotas) == len(made.quotas)


@row_by_row(
    "data, message",
    [
        ([], "must be a mapping, got a list"),
        (record(schema_version=2), f"{FILE}:2 schema_version: must be 1, which this hyperpod-cdk reads, got 2; update"),
        (
            record(schema_version=0),
            f"{FILE}:2 schema_version: must be 1, which this hyperpod-cdk reads, got 0; restore",
        ),
        (record(recorded="yesterday"), f'{FILE}:3 recorded: must be a day such as 2026-11-21, got "yesterday"; {ANEW}'),
        (record(region=None), f"{FILE}:5 region: must be text, got nothing; {ANEW}"),
        (record(quota=[]), f"{FILE}:7 quota: is not a known key here, quotas is; {ANEW}"),
        (record(entry(value=-1)), f"{FILE}:11 quotas[0].value: must be 0 or more, got -1; {ANEW}"),
        (record(entry(value="x")), f'{FILE}:11 quotas[0].value: must be a number, got "x"; {ANEW}'),
        (record(entry(is_default=1)), f"{FILE}:12 quotas[0].is_default: must be true or false, got 1; {ANEW}"),
        (record(entry(names=1)), f"{FILE}:16 quotas[0].names: is not a known key here, name is; {ANEW}"),
        (record(entry(), entry()), f"{FILE}:19 quotas[1].name: must be unique, got that of quotas[0]; {ANEW}"),
    ],
)
def test_a_record_of_another_form_is_refused_with_its_line(data: Any, message: str) -> None:
    assert message in refused(json.dumps(data, indent=1))


def test_half_a_record_is_refused() -> None:
    text = json.dumps(record(entry()), indent=1)
    assert refused(text[: len(text) // 2]).startswith(f"{FILE}:")
    assert refused(text.replace("8.0", "NaN")) == f"{FILE}: is not JSON: NaN is not a JSON number; {ANEW}"
    assert "quota" in refused(text.replace('"code"', '"name"'))


def test_a_folder_is_no_record(tmp_path: Path) -> None:
    with pytest.raises(RecordError) as caught:
        read_record(tmp_path, file=FILE, called="prod")
    assert caught.value.finding.render() == f"{FILE}: is not a file; {ANEW}"


@pytest.fixture
def environment(project: Path, tmp_path: Path) -> Path:
    """The file of prod, alone in a folder."""
    file = tmp_path / "environments" / "prod.yaml"
    file.parent.mkdir()
    file.write_bytes((project / "environments/prod.yaml").read_bytes())
    return file


def test_an_environment_comes_with_its_record(environment: Path) -> None:
    assert load_environment(environment).recorded_quotas is None
    quotas_file(environment).write_text(json.dumps(record(entry())), encoding="utf-8")
    found = load_environment(environment).recorded_quotas
    assert found is not None
    assert [quota.name for quota in found.quotas] == [P5]
    assert load_environment(environment, with_record=False).recorded_quotas is None


@pytest.mark.parametrize(
    ("change", "theirs"),
    [
        (
            {"account": "999988887777"},
            "999988887777 in us-east-1",
        ),
        (
            {"region": "us-west-2"},
            "111122223333 in us-west-2",
        ),
    ],
)
def test_a_record_of_another_account_is_refused(
    environment: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, str], theirs: str
) -> None:
    monkeypatch.chdir(environment.parent)
    quotas_file(environment).write_text(json.dumps(record(entry(), **change), indent=1), encoding="utf-8")
    with pytest.raises(EnvironmentFileError) as caught:
        load_environment(environment)
    (finding,) = [each for each in caught.value.findings if each.severity is Severity.ERROR]
    assert finding.render().endswith(
        f"{next(iter(change))}: must be a record of account 111122223333 in us-east-1, the environment's, got one of"
        f" account {theirs}; {ANEW}"
    )
    assert finding.line == (4 if "account" in change else 5)
