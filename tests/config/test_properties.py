"""Any file results in an environment, or in findings with a place in the file."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hyperpod_cdk.config import EnvironmentFileError, LoadedEnvironment, load_environment
from hyperpod_cdk.findings import Finding, Severity

BASE = (Path(__file__).parent / "base.yaml").read_text(encoding="utf-8")
DATA = yaml.safe_load(BASE)

Place = tuple[str | int, ...]


def load_or_findings(text: str) -> LoadedEnvironment | None:
    """Load a text; where it is refused every finding must be whole and stand in the file."""
    last_line = len(re.split(r"\r\n|\r|\n", text))
    loaded: LoadedEnvironment | None = None
    findings: tuple[Finding, ...] = ()
    try:
        loaded = load_environment(Path("environments/prod.yaml"), text=text, today=date(2026, 11, 20))
    except EnvironmentFileError as error:
        findings = error.findings
    assert (loaded is None) == any(finding.severity is Severity.ERROR for finding in findings)
    for finding in (*findings, *(loaded.warnings if loaded else ())):
        assert finding.message
        assert finding.rule
        assert len(finding.render().splitlines()) == 1
        assert len(finding.render()) < 3000
        assert finding.line is None or 1 <= finding.line <= last_line
    return loaded


def as_yaml(data: Any) -> str:
    """Write data as YAML, fast."""
    text: str = yaml.dump(data, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True)
    return text


def places(value: Any, place: Place = ()) -> Iterator[Place]:
    """Go through every place of plain data."""
    yield place
    if isinstance(value, dict):
        for key, each in value.items():
            yield from places(each, (*place, key))
    if isinstance(value, list):
        for index, each in enumerate(value):
            yield from places(each, (*place, index))


PLACES = [place for place in places(DATA) if place]
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False)
    | st.text(max_size=20)
    | st.sampled_from(
        [
            "",
            "use1-az9",
            "us-east-1a",
            "ml.p5.48xlarge",
            "ml.x",
            "10.0.0.0/8",
            "10.1.0.0/16",
            "arn:aws:iam::1:role/x",
            "1.30",
        ]
    )
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def edited(draw: st.DrawFn) -> Any:
    """The valid data with a few places replaced, removed or doubled."""
    data = copy.deepcopy(DATA)
    for *above, last in draw(st.lists(st.sampled_from(PLACES), min_size=1, max_size=4)):
        parent: Any = data
        try:
            for step in above:
                parent = parent[step]
            old = parent[last]
        except (KeyError, IndexError, TypeError):
            continue
        if isinstance(parent, str):
            continue
        action = draw(st.sampled_from(["replace", "remove", "rename", "double"]))
        if action == "replace":
            parent[last] = draw(values)
        elif action == "remove":
            del parent[last]
        elif action == "double" and isinstance(parent, list):
            parent.append(copy.deepcopy(old))
        elif action == "rename" and isinstance(parent, dict):
            parent[draw(st.text(max_size=12))] = parent.pop(last)
    return data


@given(edited())
@settings(max_examples=150, deadline=None)
def test_edited_data(data: Any) -> None:
    load_or_findings(as_yaml(data))


@given(st.integers(0, len(BASE)), st.integers(0, 60), st.text(max_size=12))
@settings(max_examples=150, deadline=None)
@example(0, len(BASE), "a: &a [*a]")
@example(len(BASE), 0, "\x85")
def test_edited_text(start: int, length: int, new: str) -> None:
    load_or_findings(BASE[:start] + new + BASE[start + length :])


@given(st.text(alphabet=st.characters(), max_size=60))
@settings(max_examples=150, deadline=None)
@example("? ")
@example("- - - ? : -")
@example("\ufeff")
@example("a: \ud800")
@example("%YAML 1.2\n--- a")
@example("a: !<!> b")
@example("{a: 1, <<: 2}")
@example("'\\x00'")
@example('"\\0": 1')
@example('name: "\\u0007\\n"')
def test_any_text(text: str) -> None:
    load_or_findings(text)


@given(edited())
@settings(max_examples=100, deadline=None)
def test_what_is_loaded_is_what_was_written(data: Any) -> None:
    """Values are never converted: what a model holds equals what the file says."""
    loaded = load_or_findings(as_yaml(data))
    if loaded is not None:
        assert _same(loaded.environment.model_dump(mode="python", exclude_unset=True), data)


def _same(held: Any, written: Any) -> bool:
    if isinstance(held, dict):
        written = {} if written is None else written
        return (
            isinstance(written, dict)
            and held.keys() == written.keys()
            and all(_same(value, written[key]) for key, value in held.items())
        )
    if isinstance(held, tuple | list):
        return (
            isinstance(written, list)
            and len(held) == len(written)
            and all(_same(one, other) for one, other in zip(held, written, strict=True))
        )
    return type(held) is type(written) and held == written
