"""``fleet.yaml``: valid files, and all errors of a file at once, each with its line and fix."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from hyperpod_cdk.config.documents import DocumentError
from hyperpod_cdk.config.fleet import Fleet, Wave, fleet_of, fleet_schema_text, read_fleet
from tests.support.tables import row_by_row

FILE = Path("fleet.yaml")
NAMES = ("prod-eu", "prod-us", "staging")
WHOLE = """\
waves:
  - name: staging
    environments: [staging]
    soak_minutes: 60
    checks: [status, drift]
  - name: prod
    environments: [prod-us, prod-eu]
    approval: true
"""


def refused(text: str, names: tuple[str, ...] = NAMES) -> list[str]:
    with pytest.raises(DocumentError) as caught:
        read_fleet(FILE, names, text=text)
    return [each.render() for each in caught.value.findings]


def test_a_whole_file() -> None:
    fleet = read_fleet(FILE, NAMES, text=WHOLE)
    assert fleet == Fleet(
        waves=(
            Wave(name="staging", environments=("staging",), soak_minutes=60, checks=("status", "drift")),
            Wave(name="prod", environments=("prod-us", "prod-eu"), approval=True),
        )
    )
    assert fleet.environments == ("staging", "prod-us", "prod-eu")
    assert (fleet.wave_of("prod-eu"), fleet.wave_of("other")) == ("prod", "")
    assert fleet.waves[1].checks == ("status",)


def one(**keys: object) -> str:
    wave = {"name": "all", "environments": list(NAMES), **keys}
    return yaml.safe_dump({"waves": [{key: value for key, value in wave.items() if value is not None}]}, width=200)


@row_by_row(
    "text, said",
    [
        ("", ["fleet.yaml:1: is empty; write its waves, or delete the file"]),
        ("waves: []", ["fleet.yaml:1 waves: must hold at least one wave, got none; add one"]),
        ("wave: []", ["fleet.yaml:1 wave: is not a known key here; did you mean waves?"]),
        (
            "waves:\n  - staging\n",
            [
                (
                    'fleet.yaml:2 waves[0]: must be a mapping, got "staging"; write its keys (name, environments, ...)'
                    " below waves[0], each as"
                    " 'key: value'"
                )
            ],
        ),
        (
            one(soak_minutes=-1),
            ["fleet.yaml:7 waves[0].soak_minutes: must be at least 0, got -1; set soak_minutes: 0 or more"],
        ),
        (
            one(soak_minutes=331),
            ["fleet.yaml:7 waves[0].soak_minutes: must be at most 330, got 331; set soak_minutes: 330 or less"],
        ),
        (
            one(soak_minutes="1h"),
            [
                (
                    'fleet.yaml:7 waves[0].soak_minutes: must be a whole number, got "1h"; write digits, such as'
                    " soak_minutes: 60"
                )
            ],
        ),
        (
            one(checks=["statu"]),
            ['fleet.yaml:3 waves[0].checks[0]: must be status or drift, got "statu"; did you mean status?'],
        ),
        (
            one(checks=["drift", "drift"]),
            ["fleet.yaml:4 waves[0].checks[1]: must be named once, got drift again after [0]; remove one of the two"],
        ),
        (
            one(name="Pre Prod"),
            [
                (
                    "fleet.yaml:6 waves[0].name: must be at most 32 lower-case letters, digits and single hyphens"
                    ' between them, a letter first, got "Pre Prod"; set name: pre-prod'
                )
            ],
        ),
        (
            one(environments=["staging", "prod-eu", "prod-uss", "prod-us"]),
            [
                (
                    "fleet.yaml:5 waves[0].environments[2]: must be an environment of environments/, got prod-uss; did"
                    " you mean prod-us?"
                )
            ],
        ),
        (
            one(environments=["staging"]),
            [
                (
                    "fleet.yaml:1 waves: must hold every environment of environments/, got none of prod-eu, prod-us;"
                    " add each to a wave"
                )
            ],
        ),
        (
            (
                "waves:\n  - {name: a, environments: [staging, prod-us]}\n"
                "  - {name: a, environments: [prod-eu, staging]}\n"
            ),
            [
                (
                    "fleet.yaml:3 waves[1].environments[1]: must be in one wave only, got staging again after"
                    " waves[0].environments[0]; remove one of the two"
                ),
                "fleet.yaml:3 waves[1].name: must be named once, got a again after waves[0]; remove one of the two",
            ],
        ),
        (
            # a wrong name hides no other one
            (
                "waves:\n  - {name: A, environments: [staging]}\n  - {name: a, environments: [prod-us]}\n"
                "  - {name: a, environments: [prod-eu]}\n"
            ),
            [
                (
                    "fleet.yaml:2 waves[0].name: must be at most 32 lower-case letters, digits and single hyphens"
                    ' between them, a letter first, got "A"; set name: a'
                ),
                "fleet.yaml:4 waves[2].name: must be named once, got a again after waves[1]; remove one of the two",
            ],
        ),
    ],
)
def test_what_is_wrong(text: str, said: list[str]) -> None:
    assert refused(text) == said


@pytest.mark.parametrize("minutes", [0, 1, 329, 330])
def test_a_soak_at_its_bounds(minutes: int) -> None:
    assert read_fleet(FILE, NAMES, text=one(soak_minutes=minutes)).waves[0].soak_minutes == minutes


def test_everything_is_reported_at_once() -> None:
    text = "waves:\n  - {name: A, environments: [staging], soak: 1}\n  - {name: b, environments: [], approval: yes}\n"
    assert [line.partition(": ")[0] for line in refused(text)] == [
        "fleet.yaml:2 waves[0].name",
        "fleet.yaml:2 waves[0].soak",
        "fleet.yaml:3 waves[1].approval",
        "fleet.yaml:3 waves[1].environments",
    ]


def test_a_project_without_the_file_has_no_fleet(tmp_path: Path) -> None:
    assert fleet_of(tmp_path, NAMES) is None
    (tmp_path / "fleet.yaml").symlink_to(tmp_path / "nowhere")
    with pytest.raises(DocumentError, match="does not exist; write it"):
        fleet_of(tmp_path, NAMES)


@pytest.mark.parametrize(
    ("data", "is_right"),
    [
        (yaml.safe_load(WHOLE), True),
        ({"waves": []}, False),
        ({"waves": [{"name": "a"}]}, False),
        ({"waves": [{"name": "a", "environments": ["b"], "soak_minutes": 331}]}, False),
        ({"waves": [{"name": "A", "environments": ["b"]}]}, False),
        ({"waves": [{"name": "a", "environments": ["b"]}], "more": 1}, False),
    ],
)
def test_the_schema_of_editors_says_the_same(data: Any, *, is_right: bool, project: Path) -> None:
    schema = json.loads(fleet_schema_text())
    assert jsonschema.Draft202012Validator(schema).is_valid(data) is is_right
    assert (project / "schemas" / "fleet.schema.json").read_text(encoding="utf-8") == fleet_schema_text()
