"""Reads YAML text as data with the line of every value; ambiguous values are refused, never guessed."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

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
            "prod.yaml:1: is not YAML: did not find expected ',' or ']'; close the [...] that opens in this line",
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
            " quotes",
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
            "a: 1\n \u00a0b: 2",
            "prod.yaml:2: is not YAML: mapping values are not allowed in this context; write a space in place of the"
            " no-break space (U+00A0)",
            id="no-break space",
        ),
        pytest.param(
            "a:\u00a01\nb: 2",
            "prod.yaml:1: is not YAML: mapping values are not allowed in this context; write a space in place of the"
            " no-break space (U+00A0)",
            id="no-break space after a colon, noticed in the next line",
        ),
        pytest.param(
            "a:\n  \u00a0b: 2",
            'prod.yaml:2 a["\u00a0b"]: a key holds the no-break space (U+00A0); write plain spaces, or remove it',
            id="no-break space before the only key",
        ),
        pytest.param(
            "a: 1\nb\uff1a2\nc: 3",
            "prod.yaml:2: is not YAML: could not find expected ':'; write ':' and a space in place of the fullwidth"
            " colon (U+FF1A)",
            id="colon of a Chinese keyboard",
        ),
        pytest.param(
            "a:\n- 1\n\u2013 2\nb: 3",
            "prod.yaml:3: is not YAML: could not find expected ':'; write '-' and a space in place of the en dash"
            " (U+2013)",
            id="dash of a word processor",
        ),
        pytest.param(
            "a:\n-\tb: 1",
            "prod.yaml:2: is not YAML: found character that cannot start any token; indent with spaces, not with a tab",
            id="tab after a dash",
        ),
        pytest.param(
            "a:\n  - b: 1\n   c: 2\n",
            "prod.yaml:3: is not YAML: did not find expected '-' indicator; indent this line with 4 spaces",
            id="a space too few",
        ),
        pytest.param(
            "a:\n   b: 1\n  c: 2\n",
            "prod.yaml:3: is not YAML: did not find expected key; indent this line with 3 spaces",
            id="two lines that do not agree",
        ),
        pytest.param(
            "a:\n  b: 1\n c: 2\n",
            "prod.yaml:3: is not YAML: did not find expected key; indent this line with 0 or 2 spaces",
            id="between two sections",
        ),
        pytest.param(
            " a: 1\nb: 2\nc: 3\n",
            "prod.yaml:1: is not YAML: did not find expected <document start>; indent this line with 0 spaces",
            id="the first key is indented",
        ),
        pytest.param(
            "a:\n  -b: 1\n  - c: 2\n",
            "prod.yaml:2: is not YAML: did not find expected key; write a space after '-'",
            id="no space after a dash",
        ),
        pytest.param(
            "a: 1\nb = 2\nc: 3\n",
            "prod.yaml:2: is not YAML: could not find expected ':'; write a colon and a space after the key",
            id="equals sign",
        ),
        pytest.param(
            "a: 1\nb\n  - c: 1\n",
            "prod.yaml:2: is not YAML: could not find expected ':'; write a colon after the key",
            id="no colon before a list",
        ),
        pytest.param(
            "a: {b: c #d}\ne: 1\n",
            "prod.yaml:1: is not YAML: did not find expected ',' or '}'; put text that holds ': ', ',' or '#' in"
            " quotes",
            id="comment in braces",
        ),
        pytest.param(
            "a: 'bob's'\nb: 1\n",
            "prod.yaml:1: is not YAML: did not find expected key; put the whole value in one pair of double quotes",
            id="apostrophe in quotes",
        ),
        pytest.param(
            'a: "C:\\Users"\n',
            "prod.yaml:1: is not YAML: did not find expected hexdecimal number; put the value in single quotes, in"
            " which a backslash is text",
            id="backslash",
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
            "prod.yaml:2: holds a second YAML document; keep one environment per file: move what follows the '---'"
            " line to a file of its own, and remove that line",
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


SLIPS: dict[str, Callable[[str], str]] = {
    "a space less": lambda row: row.removeprefix(" "),
    "a space more": lambda row: f" {row}",
    "two spaces more": lambda row: f"  {row}",
    "no space after the dash": lambda row: row.replace("- ", "-", 1) if row.lstrip().startswith("- ") else row,
    "no space after the colon": lambda row: row.replace(": ", ":", 1),
    "an equals sign": lambda row: row.replace(":", " =", 1),
    "no colon": lambda row: row.removesuffix(":"),
}
INDENT = re.compile(r"indent this line with (\d+)(?: or (\d+))? spaces")


def fixed_rows(row: str, fix: str) -> list[str]:
    """Carry out a fix of one line, once for each value that it leaves to choose; empty where it says no such thing."""
    if indent := INDENT.fullmatch(fix):
        return [" " * int(column) + row.lstrip() for column in indent.groups() if column]
    if fix == "write a space after '-'":
        return [re.sub("^( *-)", r"\1 ", row)]
    if fix == "write a colon and a space after the key":
        return [re.sub(r"^([ -]*\w+)(?: =|:)", r"\1: ", row)]
    return [f"{row}:"] if fix == "write a colon after the key" else []


def test_a_fix_of_one_line_is_one() -> None:
    text = (Path(__file__).parent / "base.yaml").read_text(encoding="utf-8")
    rows, right = text.splitlines(), read_source(text, "prod.yaml").data
    applied, wrong = 0, []
    for slip, change in SLIPS.items():
        for at, row in enumerate(rows):
            slipped = [*rows[:at], change(row), *rows[at + 1 :]]
            found = read_source("\n".join(slipped), "prod.yaml").findings
            if not row.strip() or not found or found[0].rule != "yaml_syntax":
                continue
            at_line = (found[0].line or 0) - 1
            fixed = fixed_rows(slipped[at_line], found[0].message.rpartition("; ")[2])
            again = [
                read_source("\n".join([*slipped[:at_line], each, *slipped[at_line + 1 :]]), "prod.yaml")
                for each in fixed
            ]
            applied += bool(fixed)
            # with two columns the reader chooses the section
            if any(each.findings for each in again) or (fixed and all(each.data != right for each in again)):
                wrong.append(f"{slip}: {row} -> {found[0].render()}")
    assert not wrong, "\n".join(wrong)
    assert applied > 200


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
