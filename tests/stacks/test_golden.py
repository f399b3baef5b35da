"""Each environment's templates against the reviewed text in tests/stacks/golden."""

from __future__ import annotations

import difflib
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.assembly import Synthesized

GOLDEN = Path(__file__).parent / "golden"
SECTIONS = ("Parameters", "Rules", "Conditions", "Resources", "Outputs")
SHOWN_LINES = 120
ADVICE = (
    "read the difference as a deployed stack would feel it; where it is meant, run "
    "'pytest tests/stacks --update-golden' and commit the file"
)

# names of assets and of the scripts' folder follow from their content, which is reviewed elsewhere
CONTENT_HASH = re.compile(r"\b(?:[0-9a-f]{64}|[0-9a-f]{32})\b")


def test_templates_are_the_reviewed_ones(synthesized: Synthesized, pytestconfig: pytest.Config) -> None:
    file = GOLDEN / f"{synthesized.environment.name}.yaml"
    text = rendered(synthesized)
    if pytestconfig.getoption("--update-golden", default=False):
        file.write_text(text, encoding="utf-8")
    golden = file.read_text(encoding="utf-8") if file.is_file() else ""
    if text != golden:
        pytest.fail(difference(golden, text, file), pytrace=False)


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


def test_a_long_difference_is_cut() -> None:
    text = difference("", "".join(f"{n}\n" for n in range(500)), Path("prod.yaml"))

    assert len(text.splitlines()) == SHOWN_LINES + 3
    assert text.splitlines()[-2] == "... and 383 lines more"


@pytest.mark.parametrize(
    ("value", "text"),
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


def rendered(synthesized: Synthesized) -> str:
    """All stacks as YAML, without metadata; references as in Fn::Sub, JSON in texts as YAML."""
    stacks = {
        stack: {section: _section(template[section]) for section in SECTIONS if section in template}
        for stack, template in synthesized.templates.items()
    }
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
