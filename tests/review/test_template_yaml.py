"""Templates as YAML: readable, and the same template."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperpod_cdk.review.isolation import Limits
from hyperpod_cdk.review.pictures.diagram import diagram
from hyperpod_cdk.review.sources import sources
from hyperpod_cdk.templates.assembly import AssemblyError, parse_template, read_assembly
from hyperpod_cdk.templates.template_yaml import differing_files, environment_yaml, template_yaml, write_files
from tests.support.assembly import ENVIRONMENTS, PROJECT, shipped

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
PLAIN = st.one_of(TEXTS, st.integers(), st.booleans(), st.floats(allow_nan=False, allow_infinity=False))
FUNCTIONS = st.sampled_from(
    ["Ref", "Fn::GetAtt", "Fn::Sub", "Fn::Join", "Fn::Base64", "Fn::If", "Condition", "Fn::Not"]
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    PLAIN,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(TEXTS, inner, max_size=3),
        st.builds(lambda name, argument: {name: argument}, FUNCTIONS, inner),
        st.builds(lambda a, b: {"Fn::GetAtt": [a, b]}, TEXTS, TEXTS),
    ),
    max_leaves=12,
)


@pytest.mark.parametrize("name", ["prod", "closed"])
def test_shipped_templates_read_back_the_same(assemblies: Path, name: str) -> None:
    shipped(assemblies, name)
    assembly = read_assembly(assemblies / name, name)

    texts = environment_yaml(assembly)

    assert list(texts) == [f"{stack.name}.yaml" for stack in assembly.stacks]
    for stack in assembly.stacks:
        assert parse_template(texts[f"{stack.name}.yaml"], stack.name) == stack.template


@given(VALUES)
def test_every_value_reads_back_the_same(value: Any) -> None:
    template = {"Resources": {"A": {"Type": "T", "Properties": {"P": value}}}}
    read = parse_template(template_yaml(template), "t")["Resources"]["A"]["Properties"]["P"]
    assert read == value
    assert repr(read) == repr(value)


def test_short_forms_are_what_people_write() -> None:
    text = template_yaml(
        {
            "Resources": {
                "A": {
                    "Type": "T",
                    "Properties": {
                        "Vpc": {"Ref": "Vpc"},
                        "Arn": {"Fn::GetAtt": ["Role", "Arn"]},
                        "Odd": {"Fn::GetAtt": ["Role", "a b"]},
                        "Name": {"Fn::Sub": "${Env}-x"},
                        "Zone": {"Fn::Select": [0, {"Fn::GetAZs": ""}]},
                        "Data": {"Fn::Base64": {"Fn::Sub": "#!/bin/sh\necho ${A}\n"}},
                        "Import": {"Fn::ImportValue": "prod-network:Vpc"},
                        "When": {"Condition": {"Bool": {"a": "false"}}},
                        "Whenever": {"Condition": ["a"]},
                        "If": {"Fn::Or": [{"Condition": "HasPlan"}, {"Condition": "HasSpot"}]},
                        "Version": "2012-10-17",
                    },
                }
            }
        }
    )
    assert text == (
        "Resources:\n"
        "  A:\n"
        "    Type: T\n"
        "    Properties:\n"
        "      Vpc: !Ref Vpc\n"
        "      Arn: !GetAtt Role.Arn\n"
        "      Odd:\n"
        "        Fn::GetAtt:\n"
        "        - Role\n"
        "        - a b\n"
        "      Name: !Sub '${Env}-x'\n"
        "      Zone: !Select\n"
        "      - 0\n"
        "      - !GetAZs ''\n"
        "      Data:\n"
        "        Fn::Base64: !Sub |\n"
        "          #!/bin/sh\n"
        "          echo ${A}\n"
        "      Import: !ImportValue prod-network:Vpc\n"
        "      When:\n"
        "        Condition:\n"
        "          Bool:\n"
        "            a: 'false'\n"
        "      Whenever:\n"
        "        Condition:\n"
        "        - a\n"
        "      If: !Or\n"
        "      - !Condition HasPlan\n"
        "      - !Condition HasSpot\n"
        "      Version: '2012-10-17'\n"
    )


def test_members_keep_their_order_and_texts_their_letters() -> None:
    text = template_yaml({"Resources": {"B": {"Type": "T", "Properties": {"Z": "grün", "A": {"Y": 1, "X": 2}}}}})
    assert text == (
        "Resources:\n  B:\n    Type: T\n    Properties:\n      Z: grün\n      A:\n        Y: 1\n        X: 2\n"
    )


@pytest.mark.parametrize(
    ("argument", "text"),
    [
        (["Nested", "Outputs.Name"], "A: !GetAtt Nested.Outputs.Name\n"),
        # the first dot of a short form is behind the resource
        (["My.Role", "Arn"], "A:\n  Fn::GetAtt:\n  - My.Role\n  - Arn\n"),
        (["Role"], "A:\n  Fn::GetAtt:\n  - Role\n"),
        (["Role", 1], "A:\n  Fn::GetAtt:\n  - Role\n  - 1\n"),
    ],
)
def test_attributes_in_their_short_form(argument: list[Any], text: str) -> None:
    assert template_yaml({"A": {"Fn::GetAtt": argument}}) == text


def test_a_folder_holds_exactly_the_texts(tmp_path: Path) -> None:
    folder = tmp_path / "synthesized" / "prod"
    assert write_files(folder, {"a.yaml": "1\n", "b.yaml": "2\n"}) == ["a.yaml", "b.yaml"]
    assert write_files(folder, {"a.yaml": "1\n", "c.yaml": "3\n"}) == ["b.yaml", "c.yaml"]
    assert differing_files(folder, {"a.yaml": "2\n", "c.yaml": "3\n"}) == ["a.yaml"]
    assert sorted(path.name for path in folder.iterdir()) == ["a.yaml", "c.yaml"]


def test_the_folder_synthesized_is_what_the_environments_make() -> None:
    own = [name for name, file in ENVIRONMENTS.items() if file.startswith("environments/")]
    for name in own:
        # the Python that cdk.json names need not be that of these tests, so that isolation may not reach what it is of
        limits = Limits(is_trusted=True)
        context = {"chart": "placeholder"}
        with sources(PROJECT, name, base=None, head=None, context=context, limits=limits) as (_, source):
            texts = {**environment_yaml(source.assembly), "diagram.svg": diagram(source.assembly)}
        assert differing_files(PROJECT / "synthesized" / name, texts) == [], "run 'hyperpod-cdk templates'"
    assert sorted(path.name for path in (PROJECT / "synthesized").iterdir()) == own


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Resources:\n  T: {Type: A::B, Properties: {A: !!binary aGk=}}\n", "t:2: not YAML: could not determine"),
        ("Resources:\n  T: {Type: A::B, Properties: {A: !!set {a}}}\n", "t:2: not YAML: could not determine"),
        ("Resources:\n  T: {Type: A::B, Properties: {A: !!timestamp 2027-01-01}}\n", "t:2: not YAML: could not"),
        (f"Resources: {'[' * 2000}{']' * 2000}\n", "t: nested too deeply for a template"),
        ("Resources: {T: {Type: A::B, Properties: [1]}}\n", "Resources.T.Properties is not an object"),
        ("Resources: {T: {Type: A::B}}\nOutputs: [1]\n", "t: not a CloudFormation template: Outputs is not an object"),
        (
            "Resources: {T: {Type: A::B}}\nParameters: 1\n",
            ("t: not a CloudFormation template: Parameters is not an object"),
        ),
    ],
)
def test_what_no_template_holds_is_one_line(text: str, problem: str) -> None:
    with pytest.raises(AssemblyError) as caught:
        parse_template(text, "t")
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["012345678901", "0089", "007"])
def test_digits_are_text_for_every_reader(text: str) -> None:
    assert template_yaml({"Outputs": {"Account": {"Value": text}}}) == f"Outputs:\n  Account:\n    Value: '{text}'\n"
