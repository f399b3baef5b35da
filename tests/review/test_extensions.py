"""The sections of extensions in a review: before and after, and nothing of what a side made up."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hyperpod_cdk.config.extensions import ExtensionError, activate
from hyperpod_cdk.review.extensions import extensions
from hyperpod_cdk.review.model import Shown, ShownRow
from hyperpod_cdk.review.pages.markdown import markdown
from hyperpod_cdk.templates.assembly import EMPTY, Assembly, Stack
from hyperpod_cdk.templates.extension_sections import FILE, LONGEST, MOST_ROWS, write_sections
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


def test_what_is_deployed_shows_none(tmp_path: Path) -> None:
    head = side(tmp_path / "head", {"ours": {"says": "", "rows": {"a": "90"}}})
    deployed = replace(head, folder=None)
    (shown,) = extensions(deployed, head)
    assert not shown.base_is_known
    text = markdown(quiet_report().model_copy(update={"extensions": (shown,)}))
    assert "The deployed stacks contain no values of extensions, so nothing is compared." in text
    assert "->" not in text.partition("The deployed stacks contain no values of extensions")[2]


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


REVIEW = '''
from hyperpod_cdk.config.extensions import Extension

def shown(context):
    """What stands there.

    And more of it.
    """
    return {rows}

def silent(context):
    return {{}}

SHOWN, SILENT, NONE = Extension(review=shown), Extension(review=silent), Extension()
'''
Write = Callable[[str], object]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes the sections of extensions of which one gives these rows, and reads the file; None for no file."""
    template = {"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}}
    (tmp_path / "cdk.out").mkdir()
    (tmp_path / "cdk.out" / "prod.json").write_text(json.dumps(template), encoding="utf-8")
    stack = {
        "type": "aws:cloudformation:stack",
        "environment": "aws://111122223333/us-east-1",
        "properties": {"templateFile": "prod.json", "stackName": "prod-foundation"},
    }
    manifest = {"version": "48.0.0", "artifacts": {"prod-foundation": stack}}
    (tmp_path / "cdk.out" / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")

    def written(rows: str) -> object:
        name = f"ours_{abs(hash((tmp_path, rows)))}"
        (tmp_path / f"{name}.py").write_text(REVIEW.format(rows=rows), encoding="utf-8")
        targets = {"ours": "SHOWN", "silent": "SILENT", "none": "NONE"} if rows else {"none": "NONE"}
        table = "".join(f'{each} = "{name}:{target}"\n' for each, target in targets.items())
        text = f"[tool.hyperpod-cdk.extensions]\n{table}"
        (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
        activate(tmp_path)
        write_sections(tmp_path / "cdk.out", ["prod"])
        file = tmp_path / "cdk.out" / FILE
        return json.loads(file.read_text(encoding="utf-8")) if file.exists() else None

    monkeypatch.syspath_prepend(tmp_path)
    yield written
    none = tmp_path / "none"
    none.mkdir()
    activate(none)


def test_a_section_says_its_first_line_and_its_rows(write: Write) -> None:
    rows = "{f'{each.stack} / {each.name}': each.type for each in context.assembly.resources()}"
    assert write(rows) == {
        "prod": {
            "ours": {"says": "What stands there.", "rows": {"prod-foundation / Topic": "AWS::SNS::Topic"}},
            "silent": {"says": "", "rows": {}},
        }
    }


def test_without_sections_there_is_no_file(write: Write) -> None:
    assert write("") is None


@pytest.mark.parametrize(
    ("rows", "got"),
    [
        ("{'a': 7}", "'a': 7"),
        ("{7: 'a'}", "7: 'a'"),
        ("{'a': 'x' * 501}", f"'a': '{'x' * 494}"),
        ("{'x' * 501: 'a'}", f"'{'x' * 499}"),
        ("{7: 'a', 'a': 7, 'b': 'b'}", "7: 'a'"),
        ("{str(each): 'x' for each in range(501)}", "501 rows"),
        ("{str(each): 'x' for each in range(500)}", ""),
        ("{'x' * 500: 'y' * 500}", ""),
    ],
)
def test_a_section_is_a_page_that_people_read(write: Write, rows: str, got: str) -> None:
    if not got:
        assert write(rows)
        return
    with pytest.raises(ExtensionError) as raised:
        write(rows)
    assert str(raised.value) == (
        "the extension ours: review must return at most 500 rows, each with two texts of at most 500 characters, "
        f"got {got}; shorten it, or convert numbers with str()"
    )


@pytest.mark.parametrize(
    ("text", "is_known"),
    [
        ("{", False),
        ("[" * 100_000, False),
        ("{}", True),
        pytest.param("{}".ljust(16 * 2**20), True, id="16 MiB"),
        pytest.param("{}".ljust(16 * 2**20 + 1), False, id="more than 16 MiB"),
        ("[]", True),
        ('{"prod": []}', True),
    ],
)
def test_what_cannot_be_read_is_not_known(tmp_path: Path, text: str, *, is_known: bool) -> None:
    base = side(tmp_path / "base", text)
    (shown,) = extensions(base, side(tmp_path / "head", {"ours": {"says": "", "rows": {"a": "90"}}}))
    assert shown.base_is_known is is_known


def test_without_a_file_or_a_manifest(tmp_path: Path) -> None:
    head = side(tmp_path / "head", {"ours": {"says": "", "rows": {"a": "90"}}})
    base = side(tmp_path / "base", {})
    assert base.folder is not None
    (base.folder / FILE).unlink()
    (shown,) = extensions(base, head)
    assert shown.base_is_known
    (base.folder / "manifest.json").unlink()
    (shown,) = extensions(base, head)
    assert not shown.base_is_known


def test_a_name_is_bounded(tmp_path: Path) -> None:
    names = ["a" * 61, "a" * 62, "A", "1a", "a-b", "a_1"]
    head = side(tmp_path / "head", {name: {"says": "", "rows": {"a": "b"}} for name in names})
    assert [each.extension for each in extensions(EMPTY, head)] == ["a_1", "a" * 61]
