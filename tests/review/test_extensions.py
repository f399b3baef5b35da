"""The sections of extensions in a review: before and after, and nothing of what a side made up."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hyperpod_cdk.review.extensions import extensions
from hyperpod_cdk.review.model import Shown, ShownRow
from hyperpod_cdk.review.pages.markdown import markdown
from hyperpod_cdk.templates.assembly import EMPTY, Assembly, Stack
from hyperpod_cdk.templates.extension_sections import FILE, LONGEST, MOST_ROWS
from tests.review.sample import quiet_report

STACK = Stack(name="prod-foundation", template={})


def side(folder: Path, said: object) -> Assembly:
    folder.mkdir()
    (folder / "manifest.json").write_text("{}", encoding="utf-8")
    (folder / FILE).write_text(said if isinstance(said, str) else json.dumps({"prod": said}), encoding="utf-8")
    return Assembly(environment="prod", stacks=(STACK,), folder=folder)


def test_what_differs_is_shown_before_and_after(tmp_path: Path) -> None:
    base = side(tmp_path / "base", {"ours": {"says": "Days.", "rows": {"a": "30", "gone": "1"}}})
    head = side(tmp_path / "head", {"ours": {"says": "Days kept.", "rows": {"a": "90", "new": "7"}}})
    assert extensions(base, head) == (
        Shown(
            extension="ours",
            says="Days kept.",
            base_is_known=True,
            rows=(
                ShownRow(what="a", before="30", after="90"),
                ShownRow(what="new", after="7"),
                ShownRow(what="gone", before="1"),
            ),
        ),
    )


def test_what_is_deployed_tells_none(tmp_path: Path) -> None:
    head = side(tmp_path / "head", {"ours": {"says": "", "rows": {"a": "90"}}})
    deployed = replace(head, folder=None)
    (shown,) = extensions(deployed, head)
    assert not shown.base_is_known
    text = markdown(quiet_report().model_copy(update={"extensions": (shown,)}))
    assert "The deployed stacks contain no values of extensions, so nothing is compared." in text
    assert "->" not in text.partition("What is deployed tells")[2]


def test_before_the_first_deployment_all_is_new(tmp_path: Path) -> None:
    (shown,) = extensions(EMPTY, side(tmp_path / "head", {"ours": {"says": "", "rows": {"a": "90"}}}))
    assert (shown.base_is_known, shown.rows) == (True, (ShownRow(what="a", after="90"),))


@pytest.mark.parametrize(
    "said",
    [
        "not JSON",
        "[]",
        {"Ours Of <b>": {"says": "", "rows": {"a": "b"}}},
        {"ours": "text"},
        ["ours"],
    ],
)
def test_a_side_that_makes_it_up_shows_nothing(tmp_path: Path, said: object) -> None:
    assert extensions(EMPTY, side(tmp_path / "head", said)) == ()


def test_what_is_too_long_or_no_text_is_left_out(tmp_path: Path) -> None:
    rows: dict[str, object] = {"number": 7, "long": "x" * (LONGEST + 1), "bound": "x" * LONGEST}
    (shown,) = extensions(EMPTY, side(tmp_path / "head", {"ours": {"says": "y" * 2 * LONGEST, "rows": rows}}))
    assert [each.what for each in shown.rows] == ["bound"]
    assert len(shown.says) == LONGEST
    many = {str(number): "x" for number in range(MOST_ROWS + 1)}
    (shown,) = extensions(EMPTY, side(tmp_path / "many", {"ours": {"says": "", "rows": many}}))
    assert len(shown.rows) == MOST_ROWS
