"""Reads YAML text as data with the line of every value; ambiguous values are refused, never guessed."""

from __future__ import annotations

import pytest

from hyperpod_cdk.config.source import MAX_DEPTH, Ambiguous, Refused, parse_path, read_source, render_path
from tests.support.tables import row_by_row


def read(text: str) -> object:
    source = read_source(text, "prod.yaml")
    assert source.findings == []
    return source.data


def findings(text: str) -> list[str]:
    return [finding.render() for finding in read_source(text, "prod.yaml").findings]


@row_by_row(
    "scalar, value",
    [
        ("prod", "prod"),
        ("'1.30'", "1.30"),
        ("1.30", 1.3),
        ("12", 12),
        ("-1", -1),
        ("+1", 1),
        ("0", 0),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("y", "y"),
        ("1.2.3", "1.2.3"),
        ("10.1.0.0/16", "10.1.0.0/16"),
        ("|\n  a\n  b", "a\nb"),
        ("=", "="),
    ],
)
def test_scalar(scalar: str, value: object) -> None:
    assert read(f"key: {scalar}") == {"key": value}


@row_by_row(
    "scalar, reading",
    [
        ("yes", "true or false"),
        ("No", "true or false"),
        ("on", "true or false"),
        ("OFF", "true or false"),
        ("011122223333", "an octal number"),
        ("091122223333", "a number"),
        ("0x1F", "a hexadecimal number"),
        ("0b11", "a binary number"),
        ("0o17", "a number"),
        ("1_000", "a number"),
        ("1e3", "a number"),
        (".5", "a number"),
        ("1.", "a number"),
        (".inf", "a number"),
        ("1:30", "a number to base 60"),
        ("190:20:30.15", "a number to base 60"),
        ("2026-12-31", "a date"),
        ("2026-12-31T00:00:00Z", "a date"),
        ("9" * 41, "a number"),
    ],
)
def test_scalar_that_may_mean_two_things(scalar: str, reading: str) -> None:
    assert read(f"key: {scalar}") == {"key": Ambiguous(scalar, reading)}


def test_keys_are_text_whatever_they_look_like() -> None:
    assert read("{1: a, on: b, 1.5: c, ~: d}") == {"1": "a", "on": "b", "1.5": "c", "~": "d"}


def test_lines() -> None:
    source = read_source("\n# note\na: 1\nb:\n  - x\n  - y: 2\n    z: [1,\n      2]\n", "prod.yaml")
    assert source.lines == {
        (): 3,
        ("a",): 3,
        ("b",): 4,
        ("b", 0): 5,
        ("b", 1): 6,
        ("b", 1, "y"): 6,
        ("b", 1, "z"): 7,
        ("b", 1, "z", 0): 7,
        ("b", 1, "z", 1): 8,
    }
    assert source.line_of(("b", 1, "absent")) == 6
    assert source.line_of(("absent", 3)) == 3


@row_by_row(
    "text, line",
    [
        pytest.param(
            "a: [1",
            "prod.yaml:1: is not YAML: did not find expected ',' or ']'; close the [...] that opens before",
            id="open list",
        ),
        pytest.param(
            "a: 1\n\tb: 2",
            "prod.yaml:2: is not YAML: found a tab character that violates indentation;"
            " indent with spaces, not with a tab",
            id="tab",
        ),
        pytest.param(
            "a:\n\t- 1",
            "prod.yaml:2: is not YAML: found character that cannot start any token; indent with spaces, not with a tab",
            id="tab before item",
        ),
        pytest.param(
            "a: b: c",
            "prod.yaml:1: is not YAML: mapping values are not allowed in this context; put text that holds ': ' in"
            " quotes, and check the indentation of this line",
            id="two colons",
        ),
        pytest.param(
            "a: @b",
            "prod.yaml:1: is not YAML: found character that cannot start any token; put the value in quotes",
            id="at sign",
        ),
        pytest.param(
            'a: "x\nb: 1\n',
            "prod.yaml:1: is not YAML: found unexpected end of stream; close the quote that opens in this line",
            id="open quote",
        ),
        pytest.param(
            "- a\nb: 1",
            "prod.yaml:2: is not YAML: did not find expected '-' indicator; check the indentation of this line and"
            " the line before",
            id="list then mapping",
        ),
        pytest.param(
            "a: 1\nb: \x00",
            "prod.yaml:2: holds the character U+0000, which YAML does not allow; remove it",
            id="NUL",
        ),
        pytest.param(
            "a: 1\u2028b: 2",
            "prod.yaml:1: holds the character U+2028, which YAML does not allow; remove it",
            id="line separator",
        ),
        pytest.param(
            "",
            "prod.yaml:1: is empty; write at least name, account, region, network and hyperpod, or create a new file"
            " with 'hyperpod-cdk init NAME'",
            id="empty",
        ),
        pytest.param(
            "# only a comment\n---\n",
            "prod.yaml:1: is empty; write at least name, account, region, network and hyperpod, or create a new file"
            " with 'hyperpod-cdk init NAME'",
            id="comment only",
        ),
        pytest.param(
            "- name: prod",
            "prod.yaml:1: must be a mapping of keys such as 'name: prod', got a list; start with the key 'name'",
            id="list",
        ),
        pytest.param(
            "prod",
            "prod.yaml:1: must be a mapping of keys such as 'name: prod', got \"prod\"; start with the key 'name'",
            id="text",
        ),
        pytest.param(
            "a: 1\n---\nb: 2\n",
            "prod.yaml:2: holds a second YAML document; keep one environment per file and remove the '---' line",
            id="two documents",
        ),
        pytest.param(
            "a: 1\na: 2", "prod.yaml:2 a: is written twice, first on line 1; keep one of the two", id="duplicate key"
        ),
        pytest.param(
            "a: &x 1\nb: *x",
            "prod.yaml:2 b: aliases are not supported, got *x; write the value here",
            id="alias",
        ),
        pytest.param(
            "a: {<<: {b: 1}}",
            'prod.yaml:1 a["<<"]: merge keys are not supported; write the merged keys here',
            id="merge key",
        ),
        pytest.param(
            "a: !!python/object/apply:os.system [ls]",
            "prod.yaml:1 a: tags are not supported, got !!python/object/apply:os.system; remove the tag, and put"
            " text in quotes",
            id="tag",
        ),
        pytest.param(
            "a: !Ref b",
            "prod.yaml:1 a: tags are not supported, got !Ref; remove the tag, and put text in quotes",
            id="CloudFormation tag",
        ),
        pytest.param(
            "? [a]\n: 1",
            "prod.yaml:1: a key must be plain text, got a list, a mapping or an alias; write 'key: value'",
            id="list as key",
        ),
        pytest.param('"": 1', "prod.yaml:1: a key is empty; write 'key: value'", id="empty key"),
    ],
)
def test_wrong_text(text: str, line: str) -> None:
    assert findings(text) == [line]


@pytest.mark.parametrize("levels", [MAX_DEPTH + 1, 10_000, 400_000])
def test_nesting_has_an_end(levels: int) -> None:
    assert findings("a: " + "[" * levels) == [
        "prod.yaml:1: is nested deeper than 32 levels; an environment file needs fewer than 10"
    ]


def test_nesting_inside_what_is_skipped_is_no_recursion() -> None:
    deep = "[" * 5000 + "]" * 5000
    assert len(findings(f"? {deep}\n: 1\na: !x {deep}\n")) == 2


def test_aliases_do_not_unfold() -> None:
    rows = ["a0: &a0 [x, x]"] + [f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 40)]
    source = read_source("\n".join(rows), "prod.yaml")
    assert len(source.findings) == 39 * 2
    assert isinstance(source.data, dict)
    assert source.data["a1"] == [Refused(), Refused()]


def test_an_anchor_that_holds_itself() -> None:
    assert findings("a: &a [*a]") == ["prod.yaml:1 a[0]: aliases are not supported, got *a; write the value here"]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), ""),
        (("a",), "a"),
        (("a", "b", 1, "c"), "a.b[1].c"),
        (("a", "use1-az5", "x_y"), "a.use1-az5.x_y"),
        (("labels", "example.com/team"), 'labels["example.com/team"]'),
        (("a", 'q"uo\\te', 0, 1), 'a["q\\"uo\\\\te"][0][1]'),
        (("ß",), '["ß"]'),
    ],
)
def test_path_as_text_and_back(path: tuple[str | int, ...], text: str) -> None:
    assert render_path(path) == text
    assert parse_path(text) == path


@pytest.mark.parametrize("text", ["a b", "a[", "[x]", "a..b c", 'a["open'])
def test_text_that_is_no_path(text: str) -> None:
    assert parse_path(text) is None
