"""The lines of the environment file that determine properties of AWS's types, and that they do so."""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import botocore.session
import pytest
import yaml
from pydantic import BaseModel

from hyperpod_cdk.config import Environment, load_environment
from hyperpod_cdk.review.changes.causes import other_paths, property_paths
from tests.support.assembly import ENVIRONMENTS, Synthesized, shipped, synthesized_once
from tests.support.schemas import resource_schema
from tests.support.tables import row_by_row

HERE = Path(__file__).parent
COVERAGE: dict[str, dict[str, dict[str, str]]] = property_paths()
FIXTURES = ("every_property.yaml",)
"""Unrealistic environments with fields that no example uses."""

OTHERS: dict[str, dict[str, dict[str, Any]]] = yaml.safe_load((HERE / "other_types.yaml").read_text(encoding="utf-8"))
for _type, _paths in other_paths().items():
    assert "from" not in OTHERS[_type], f"{_type}: what the file decides stands in property_paths.json"
    OTHERS[_type] = {"from": _paths, **OTHERS[_type]}
"""The types of which the file decides a few properties, and the library the others."""

API: dict[str, Any] = yaml.safe_load((HERE / "api_only.yaml").read_text(encoding="utf-8"))
"""What AWS's API takes and CloudFormation does not, with the reasons."""


@pytest.fixture(scope="module")
def environments(assemblies: Path) -> list[Synthesized]:
    """Every environment that ships, and the fixtures."""
    made = [load_environment(HERE / file) for file in FIXTURES]
    return [
        *(shipped(assemblies, name) for name in ENVIRONMENTS),
        *(synthesized_once(assemblies, loaded.environment.name, loaded) for loaded in made),
    ]


@pytest.mark.parametrize("resource_type", COVERAGE)
def test_every_property_is_listed_and_nothing_else(resource_type: str) -> None:
    table, known = COVERAGE[resource_type], set(properties(resource_type))
    left_out = {each for name in table["left_out"] for each in known if is_below(each, name)}
    assert sorted(known - left_out - set(table["from"])) == [], "not listed"
    assert sorted(set(table["from"]) - known) == [], "not in the schema"
    assert sorted(name for name in table["left_out"] if not any(is_below(each, name) for each in known)) == []
    assert sorted(left_out & set(table["from"])) == [], "left out, and yet from the file"


@pytest.mark.parametrize("resource_type", COVERAGE)
def test_every_place_in_the_file_exists(resource_type: str) -> None:
    there = set(places(Environment))
    assert sorted(set(COVERAGE[resource_type]["from"].values()) - there) == []


@pytest.mark.parametrize("resource_type", COVERAGE)
def test_every_property_gets_into_some_template(environments: list[Synthesized], resource_type: str) -> None:
    written = written_of(environments, resource_type)
    assert sorted(set(COVERAGE[resource_type]["from"]) - written) == [], "in no template"
    left_out = COVERAGE[resource_type]["left_out"]
    assert sorted(each for each in written if any(is_below(each, name) for name in left_out)) == []


def test_every_type_of_the_templates_is_in_one_of_the_tables(environments: list[Synthesized]) -> None:
    written = {
        resource["Type"]
        for synthesized in environments
        for template in synthesized.templates.values()
        for resource in template["Resources"].values()
    }
    # what handlers of ours and of CDK's are given, and what has no properties
    ours = {
        each for each in written if each.startswith("Custom::") or each == "AWS::CloudFormation::WaitConditionHandle"
    }
    assert sorted(written - ours) == sorted(COVERAGE.keys() | OTHERS.keys())
    assert sorted(COVERAGE.keys() & OTHERS.keys()) == []


@row_by_row("resource_type", OTHERS)
def test_every_property_of_another_type_is_decided_once(resource_type: str) -> None:
    known, stated = properties(resource_type), decided(resource_type)
    by = {name: [each for each in stated if is_below(name, each)] for name in known}
    assert [name for name, rows in by.items() if not rows] == [], "nobody decides"
    assert {name: rows for name, rows in by.items() if len(rows) > 1} == {}, "decided twice"
    assert [each for each in stated if not any(is_below(name, each) for name in known)] == [], "not in the schema"


@pytest.mark.parametrize("resource_type", OTHERS)
def test_what_is_reported_about_another_type_is_true(environments: list[Synthesized], resource_type: str) -> None:
    written = written_of(environments, resource_type)
    stated = decided(resource_type)
    assert [name for name, how in stated.items() if how != "left_out" and name not in written] == [], "in no template"
    left_out = [name for name, how in stated.items() if how == "left_out"]
    assert [each for each in sorted(written) if any(is_below(each, name) for name in left_out)] == [], "in a template"
    places_of_the_file = OTHERS[resource_type].get("from", {}).values()
    assert sorted(set(places_of_the_file) - set(places(Environment))) == [], "not in the environment file"


def test_the_walk_sees_through_references_lists_and_alternatives() -> None:
    found = set(properties("AWS::SageMaker::Cluster"))
    assert "InstanceGroups.InstanceStorageConfigs.EbsVolumeConfig.VolumeSizeInGB" in found
    assert "InstanceGroups.InstanceStorageConfigs.FsxLustreConfig.DnsName" in found
    # what only AWS writes, and what is no leaf
    assert {"ClusterArn", "InstanceGroups.CurrentCount", "InstanceGroups"} & found == set()


@row_by_row("resource_type", API["compared"])
def test_what_the_api_has_and_cloudformation_lacks_is_listed_with_its_reason(resource_type: str) -> None:
    found = api_only(resource_type)
    listed = [each for names in API["lacks"].get(resource_type, {}).values() for each in names]
    by = {name: [each for each in listed if is_in_call(name, each)] for name in found}
    assert [name for name, rows in by.items() if not rows] == [], "nobody has decided"
    assert {name: rows for name, rows in by.items() if len(rows) > 1} == {}, "decided twice"
    assert [each for each in listed if not any(is_in_call(name, each) for name in found)] == [], "CloudFormation has it"


def test_every_type_is_compared_with_the_api_or_says_why_not() -> None:
    left_out = [each for names in API["not_compared"].values() for each in names]
    compared = set(API["compared"])
    others = (COVERAGE.keys() | OTHERS.keys()) - compared
    assert sorted(name for name in others if not any(f"{name}::".startswith(f"{each}::") for each in left_out)) == []
    assert sorted(each for each in left_out if not any(f"{name}::".startswith(f"{each}::") for name in others)) == []
    assert sorted(compared - COVERAGE.keys() - OTHERS.keys()) == []
    assert sorted(API["lacks"].keys() - compared) == []


def test_what_made_this_list_necessary_is_found() -> None:
    found = api_only("AWS::SageMaker::Cluster")
    assert {
        "InstanceGroups.AutoPatchConfig.PatchingStrategy=DrainFirst",
        "InstanceGroups.AutoPatchConfig.IdleWaitWindowInSeconds",
        "InstanceGroups.OnStartDeepHealthChecks=MultiNodeTrainingValidation",
    } <= set(found)


def is_in_call(name: str, parent: str) -> bool:
    """Return whether a property or value of a call is another one or a part of it."""
    return name == parent or name.startswith((f"{parent}.", f"{parent}="))


def api_only(resource_type: str) -> list[str]:
    """Return the members, and the values of enumerations, that the calls of a type take and its schema does not know.

    Names are compared without their case and by themselves, since both sides nest them differently.
    """
    schema = resource_schema(resource_type)
    known, values = set[str](), dict[str, set[str]]()
    _words(schema, schema.get("definitions", {}), known, values)
    row = API["compared"][resource_type]
    model = botocore.session.get_session().get_service_model(row["service"])
    found: dict[str, None] = {}
    for call in row["calls"]:
        for path, choices in _members(model.operation_model(call).input_shape, "", ()):
            name = path.rpartition(".")[2].lower()
            if name not in known:
                found[path] = None
            elif choices and values.get(name):
                found |= {f"{path}={each}": None for each in choices if each not in values[name]}
    return list(found)


def _members(shape: Any, prefix: str, within: tuple[str, ...]) -> Iterator[tuple[str, list[str]]]:
    for name, member in shape.members.items():
        inner = member
        while inner.type_name == "list":
            inner = inner.member
        path = f"{prefix}{name}"
        if inner.type_name == "structure" and inner.members and inner.name not in within:
            yield from _members(inner, f"{path}.", (*within, inner.name))
        else:
            yield path, list(getattr(inner, "enum", ()))


def _words(schema: Any, definitions: Mapping[str, Any], known: set[str], values: dict[str, set[str]]) -> None:
    """Collect the names of all properties, without their case, and what their enumerations allow."""
    if isinstance(schema, list):
        for each in schema:
            _words(each, definitions, known, values)
    elif isinstance(schema, dict):
        for key, value in schema.items():
            for name, inner in value.items() if key == "properties" and isinstance(value, dict) else ():
                known.add(name.lower())
                values.setdefault(name.lower(), set()).update(_choices(inner, definitions))
            _words(value, definitions, known, values)


def _choices(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> list[str]:
    if str(schema.get("$ref", "")).startswith("#/definitions/"):
        return _choices(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "items" in schema:
        return _choices(schema["items"], definitions)
    return [str(each) for each in schema.get("enum", ())]


def decided(resource_type: str) -> dict[str, str]:
    """What the table has of a type: property -> from, made or left_out."""
    table = OTHERS[resource_type]
    rows = [(name, "from") for name in table.get("from", {})]
    rows += [(name, how) for how in ("made", "left_out") for names in table.get(how, {}).values() for name in names]
    assert len(rows) == len({name for name, _ in rows}), "named twice"
    return dict(rows)


def is_below(name: str, parent: str) -> bool:
    """Return whether a property is another one or a part of it."""
    return name == parent or name.startswith(f"{parent}.")


@cache
def properties(resource_type: str) -> tuple[str, ...]:
    """The properties of a type that hold values and that a template may state, lists left out of their names."""
    schema = resource_schema(resource_type)
    read_only = {
        ".".join(step for step in pointer.split("/")[2:] if step != "*")
        for pointer in schema.get("readOnlyProperties", [])
    }
    leaves = dict.fromkeys(_leaves(schema, schema.get("definitions", {}), "", frozenset()))
    # an alternative of a schema may repeat a property without its inner ones
    leaves = {name: None for name in leaves if not any(each.startswith(f"{name}.") for each in leaves)}
    return tuple(name for name in leaves if not any(is_below(name, each) for each in read_only))


def _leaves(
    schema: Mapping[str, Any], definitions: Mapping[str, Any], name: str, seen: frozenset[str]
) -> Iterator[str]:
    reference = schema.get("$ref")
    if reference:
        inner = reference.rsplit("/", 1)[-1]
        if inner not in seen:
            yield from _leaves(definitions[inner], definitions, name, seen | {inner})
        return
    children: list[tuple[str, Mapping[str, Any]]] = [
        (f"{name}.{key}".lstrip("."), value) for key, value in schema.get("properties", {}).items()
    ]
    children += [(name, schema["items"])] if "items" in schema else []
    children += [(name, each) for key in ("oneOf", "anyOf", "allOf") for each in schema.get(key, [])]
    if not schema.get("properties") and "items" not in schema and name:
        yield name
    for place, value in children:
        yield from _leaves(value, definitions, place, seen)


def places(model: type[BaseModel], name: str = "", seen: frozenset[type[BaseModel]] = frozenset()) -> Iterator[str]:
    """Every place of the environment file, keys of mappings and numbers of lists left out."""
    for key, field in model.model_fields.items():
        place = f"{name}.{key}".lstrip(".")
        yield place
        for inner in _models(field.annotation):
            if inner not in seen:
                yield from places(inner, place, seen | {inner})


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for each in typing.get_args(annotation):
        yield from _models(each)


def written_of(environments: list[Synthesized], resource_type: str) -> set[str]:
    """The properties of a type that any template states."""
    return {
        name
        for synthesized in environments
        for node in synthesized.of_type(resource_type)
        for name in names_in(synthesized.resource(node)["Properties"])
    }


def names_in(value: Any, name: str = "") -> Iterator[str]:
    """Every property of a resource as it stands in a template, lists left out of the names."""
    if isinstance(value, list):
        for each in value:
            yield from names_in(each, name)
    elif isinstance(value, dict):
        for key, each in value.items():
            yield f"{name}.{key}".lstrip(".")
            yield from names_in(each, f"{name}.{key}")
