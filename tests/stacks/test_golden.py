"""Each environment's templates equal the golden text in tests/stacks/golden: complete, or differences to prod's."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hyperpod_cdk.config import Environment
from tests.support.assembly import ENVIRONMENTS, Synthesized
from tests.support.differences import applied, changes
from tests.support.tables import row_by_row

GOLDEN = Path(__file__).parent / "golden"
SECTIONS = ("Parameters", "Rules", "Conditions", "Resources", "Outputs")
SHOWN_LINES = 120
ADVICE = (
    "read the difference as a deployed stack would feel it; where it is meant, run "
    "'pytest tests/stacks --update-golden' and commit the file"
)

WHOLE = ("prod", "closed")
"""Environments whose templates are reviewed whole; of all others, what differs from prod's is."""

HEADER = (
    "# How the templates differ from those in prod.yaml with this environment's name, region and account:\n"
    "# '+' added, '-' removed, '~' changed from the first value to the second (tests/support/differences.py).\n"
)

# names of assets and of the scripts' folder follow from their content, which is reviewed elsewhere
CONTENT_HASH = re.compile(r"\b(?:[0-9a-f]{64}|[0-9a-f]{32})\b")


def test_templates_are_the_reviewed_ones(
    synthesized: Synthesized, prod: Synthesized, pytestconfig: pytest.Config
) -> None:
    environment = synthesized.environment.name
    file = GOLDEN / golden_name(environment)
    text = rendered(stacks_of(synthesized)) if environment in WHOLE else difference_from_prod(prod, synthesized)
    if pytestconfig.getoption("--update-golden", default=False):
        file.write_text(text, encoding="utf-8")
    golden = file.read_text(encoding="utf-8") if file.is_file() else ""
    if text != golden:
        pytest.fail(difference(golden, text, file), pytrace=False)


def test_every_reviewed_file_is_of_an_environment(pytestconfig: pytest.Config) -> None:
    wanted = {golden_name(environment) for environment in ENVIRONMENTS}
    if pytestconfig.getoption("--update-golden", default=False):
        for path in GOLDEN.iterdir():
            if path.name not in wanted:
                path.unlink()
    assert {path.name for path in GOLDEN.iterdir()} == wanted


def test_nothing_changes_beside_prod_and_the_difference(synthesized: Synthesized, prod: Synthesized) -> None:
    before, after = stacks_like(prod, synthesized.environment), stacks_of(synthesized)
    made = applied(before, yaml.safe_load(rendered(changes(before, after))))
    # as JSON, in which 1, "1" and true are three things
    assert json.dumps(made, sort_keys=True) == json.dumps(after, sort_keys=True)


def test_a_difference_says_where_it_is_and_what_to_do() -> None:
    assert difference("a:\n  b: 1\n", "a:\n  b: 2\n", Path("prod.yaml")) == (
        "the templates are not those of prod.yaml:\n"
        "--- reviewed\n"
        "+++ synthesized\n"
        "@@ -1,2 +1,2 @@\n"
        " a:\n"
        "-  b: 1\n"
        "+  b: 2\n"
        "read the difference as a deployed stack would feel it; where it is meant, run "
        "'pytest tests/stacks --update-golden' and commit the file"
    )


X, Y = {"Key": "x"}, {"Key": "y"}


@row_by_row(
    "before, after, found",
    [
        ({"a": 1}, {"a": 1}, {}),
        ({"a": 1}, {"a": 2}, {"~ a": [1, 2]}),
        ({"a": "1"}, {"a": 1}, {"~ a": ["1", 1]}),
        ({"a": 1}, {"a": True}, {"~ a": [1, True]}),
        ({"a": 1}, {"a": None}, {"~ a": [1, None]}),
        ({"a": 1, "b": 2}, {"b": 2}, {"- a": None}),
        ({"b": 2}, {"a": None, "b": 2}, {"+ a": None}),
        ({"a": 1}, {"a": {"b": 1}}, {"~ a": [1, {"b": 1}]}),
        ({"a": [1]}, {"a": {"b": 1}}, {"~ a": [[1], {"b": 1}]}),
        ({"a": {"b": {"c": 1, "d": 2}}}, {"a": {"b": {"c": 3, "d": 2}}}, {"a": {"b": {"~ c": [1, 3]}}}),
        ({"a": [1, 2, 3]}, {"a": [1, 4, 3]}, {"a": {"~ [1]": [2, 4]}}),
        ({"a": [1, 1]}, {"a": [1, True]}, {"a": {"~ [1]": [1, True]}}),
        ({"a": [1, 2, 3]}, {"a": [1, 3]}, {"a": {"~ [1:2]": []}}),
        ({"a": [1, 3]}, {"a": [1, 2, 3]}, {"a": {"~ [1:1]": [2]}}),
        ({"a": [1, 1]}, {"a": [1, 1, 1]}, {"a": {"~ [2:2]": [1]}}),
        ({"a": [1, 2, 3]}, {"a": []}, {"a": {"~ [0:3]": []}}),
        ({"a": [{"b": 1}, [2]]}, {"a": [{"b": 2}, [3]]}, {"a": {"[0]": {"~ b": [1, 2]}, "[1]": {"~ [0]": [2, 3]}}}),
        ({"a": [{"Key": "x", "n": 1}]}, {"a": [{"Key": "x", "n": 2}]}, {"a": {"[Key: x]": {"~ n": [1, 2]}}}),
        ({"a": [X, Y]}, {"a": [Y]}, {"a": {"- [Key: x]": None}}),
        ({"a": [X]}, {"a": [X, Y]}, {"a": {"+ [Key: y]": Y}}),
        ({"a": [X]}, {"a": [Y, X]}, {"a": {"+ [Key: y]": Y, "= order": ["[Key: y]", "[Key: x]"]}}),
        ({"a": [X, Y]}, {"a": [Y, X]}, {"a": {"= order": ["[Key: y]", "[Key: x]"]}}),
        ({"a": [X, X]}, {"a": [X, Y]}, {"a": {"[1]": {"~ Key": ["x", "y"]}}}),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, {"= order": ["b", "a"]}),
        ({"a": 1, "b": 2}, {"b": 3, "c": 4, "a": 1}, {"~ b": [2, 3], "+ c": 4, "= order": ["b", "a"]}),
    ],
)
def test_a_difference_names_what_is_added_removed_and_changed(before: Any, after: Any, found: Any) -> None:
    assert repr(changes(before, after)) == repr(found)
    assert applied(before, found) == after


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "1", "a"]),
    lambda inside: (
        st.lists(inside, max_size=4)
        | st.dictionaries(st.sampled_from("abc"), inside, max_size=3)
        | st.lists(st.fixed_dictionaries({"Key": st.sampled_from("xyz"), "value": inside}), max_size=4)
        | st.lists(st.fixed_dictionaries({"Name": st.sampled_from("xyz"), "value": inside}), max_size=4)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from("abc"), VALUES), st.dictionaries(st.sampled_from("abc"), VALUES))
def test_a_difference_has_all_of_it(before: Any, after: Any) -> None:
    made = applied(before, changes(before, after))
    assert json.dumps(made, sort_keys=True) == json.dumps(after, sort_keys=True)
    assert (changes(before, after) == {}) == (json.dumps(before) == json.dumps(after))


def test_a_key_that_looks_like_a_sign_is_refused() -> None:
    with pytest.raises(AssertionError, match="would be read as a sign"):
        changes({}, {"+ a": 1})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("prod-network", "spot-network"),
        ("arn:x:us-east-1:prod", "arn:x:eu-west-1:spot"),
        ("production", "production"),
        ("us-east-1a", "us-east-1a"),
    ],
)
def test_only_whole_words_are_replaced(value: str, text: str) -> None:
    words = {"prod": "spot", "us-east-1": "eu-west-1"}
    assert in_words({value: [value, 1]}, words) == {text: [text, 1]}


@row_by_row(
    "value, text",
    [
        ({"Ref": "Vpc"}, "${Vpc}"),
        ({"Fn::GetAtt": ["Group", "GroupId"]}, "${Group.GroupId}"),
        ({"Fn::ImportValue": "prod-network:Vpc"}, "${import prod-network:Vpc}"),
        ({"Fn::Join": ["", ["arn:", {"Ref": "AWS::Partition"}, ":s3:::b"]]}, "arn:${AWS::Partition}:s3:::b"),
        ({"Fn::Join": ["", ['{"a":"', {"Ref": "A"}, '"}']]}, {"a": "${A}"}),
        ({"Fn::Select": [0, {"Ref": "A"}]}, {"Fn::Select": [0, "${A}"]}),
        (f"s3://assets/{'0f' * 32}.zip", "s3://assets/<hash>.zip"),
        ("2012-10-17", "2012-10-17"),
    ],
)
def test_values_are_shown_as_one_would_write_them(value: object, text: object) -> None:
    assert readable(value) == text


def golden_name(environment: str) -> str:
    """Return the reviewed file of an environment, which is named like the environment's own file."""
    return PurePath(ENVIRONMENTS[environment]).name


def stacks_of(synthesized: Synthesized) -> dict[str, Any]:
    """All stacks without metadata; references as in Fn::Sub, JSON in texts as YAML."""
    return {
        stack: {section: _section(template[section]) for section in SECTIONS if section in template}
        for stack, template in synthesized.templates.items()
    }


def stacks_like(prod: Synthesized, environment: Environment) -> dict[str, Any]:
    """Prod's stacks with the name, the region and the account of another environment."""
    words = {getattr(prod.environment, each): getattr(environment, each) for each in ("name", "region", "account")}
    made: dict[str, Any] = in_words(stacks_of(prod), words)
    return made


def in_words(value: Any, words: Mapping[str, str]) -> Any:
    """A value with other words in all its texts and keys; a word ends where a letter or a digit does not follow."""
    match value:
        case dict():
            return {in_words(key, words): in_words(each, words) for key, each in value.items()}
        case list():
            return [in_words(each, words) for each in value]
        case str():
            pattern = "|".join(map(re.escape, words))
            return re.sub(rf"(?<![A-Za-z0-9])(?:{pattern})(?![A-Za-z0-9])", lambda found: words[found[0]], value)
    return value


def difference_from_prod(prod: Synthesized, synthesized: Synthesized) -> str:
    """What an environment's stacks have that prod's have not, and the other way round."""
    return HEADER + rendered(changes(stacks_like(prod, synthesized.environment), stacks_of(synthesized)))


def rendered(stacks: dict[str, Any]) -> str:
    """Stacks, or the differences of stacks, as YAML."""
    text: str = yaml.safe_dump(stacks, sort_keys=False, width=10_000, allow_unicode=True)
    return text


def difference(golden: str, text: str, file: Path) -> str:
    """What changed against the reviewed text, cut where nobody would read on."""
    before, after = golden.splitlines(), text.splitlines()
    lines = list(difflib.unified_diff(before, after, "reviewed", "synthesized", lineterm=""))
    if len(lines) > SHOWN_LINES:
        lines = [*lines[:SHOWN_LINES], f"... and {len(lines) - SHOWN_LINES} lines more"]
    return "\n".join(
        [
            f"the templates are not those of {file.name}:",
            *lines,
            ADVICE,
        ]
    )


def readable(value: Any) -> Any:
    """A value of a template with its references as Fn::Sub spells them."""
    shown = value
    match value:
        case {"Ref": str(name)}:
            shown = f"${{{name}}}"
        case {"Fn::GetAtt": [str(name), str(attribute)]}:
            shown = f"${{{name}.{attribute}}}"
        case {"Fn::ImportValue": str(name)}:
            shown = f"${{import {name}}}"
        case {"Fn::Join": ["", list(parts)]}:
            shown = _joined([readable(part) for part in parts])
        case dict():
            shown = {key: readable(each) for key, each in value.items()}
        case list():
            shown = [readable(each) for each in value]
        case str():
            shown = _text(value)
    return shown


def _joined(parts: list[Any]) -> Any:
    if all(isinstance(part, str) for part in parts):
        return _text("".join(parts))
    return {"Fn::Join": ["", parts]}


def _section(section: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {
        name: readable({key: value for key, value in each.items() if key != "Metadata"})
        for name, each in section.items()
    }


def _text(text: str) -> Any:
    if text.startswith(("{", "[")):
        try:
            return readable(json.loads(text))
        except ValueError:
            # a pattern of CloudWatch Logs, not JSON
            pass
    return CONTENT_HASH.sub("<hash>", text)
