"""The pages of the site: the targets of links, and the shown content."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from constructs import Construct

import hyperpod_cdk
from scripts.build_site import (
    OWN,
    PAGES,
    TEMPLATE,
    TOP,
    USES,
    api_page,
    closed,
    exports,
    finish,
    gives,
    linked,
    pages,
    pictures,
    search_weights,
    settings,
    shown,
    uses,
    weighed,
)
from tests.support.assembly import PROJECT
from tests.support.tables import row_by_row

DOCUMENTS = [*(PROJECT / name for name in TOP), *sorted((PROJECT / "docs").rglob("*.md"))]
ABSTRACT: set[str] = set()
MODULE = '''
class Network:
    def __init__(self) -> None:
        self.arn: str = ""
        self._id: str = ""

    @property
    def vpc(self) -> ec2.IVpc:
        """The VPC, for
        ``others``.

        More.
        """

    def before(self, *scopes: str) -> None:
        """Let others wait."""

class Spaces(Network):
    pass
'''


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in (*TOP, "docs/a.md", "docs/more/b.md", "examples/x.yaml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"# {name}\n", encoding="utf-8")
    package = tmp_path / "constructs" / "hyperpod_cdk"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text('_HOME = {"Network": "net.vpc", "Spaces": "net.vpc"}\n', encoding="utf-8")
    (package / "net").mkdir()
    (package / "net" / "vpc.py").write_text(MODULE, encoding="utf-8")
    (tmp_path / "tests").mkdir()
    (tmp_path / USES).write_text(
        "def app(self):\n    if self:\n        hp.Network(\n            self,\n            'Net',\n        )\n",
        encoding="utf-8",
    )
    return tmp_path


def test_a_link_to_a_page_stays_and_one_to_a_file_leads_to_what_shows_it(root: Path) -> None:
    text = "[a](../a.md#top) [x](../../examples/x.yaml) [all](../../examples) [w](https://example.com/x) [here](#b)\n"
    (root / "docs" / "more" / "b.md").write_text(text, encoding="utf-8")
    made = pages(root)
    assert made["docs/more/b.md"] == (
        "[a](../a.md#top) [x](../../files/examples/x.yaml.md) [all](../../files/examples.md) "
        "[w](https://example.com/x) [here](#b)\n"
    )
    assert made["files/examples/x.yaml.md"] == "# examples/x.yaml\n\n```yaml\n# examples/x.yaml\n```\n"
    assert made["files/examples.md"] == "# examples/\n\n- [x.yaml](examples/x.yaml.md)\n"


def test_a_picture_is_shown_where_it_stands(root: Path) -> None:
    (root / "docs" / "p").mkdir()
    (root / "docs" / "p" / "a.svg").write_text("<svg/>", encoding="utf-8")
    (root / "docs" / "new.md").write_text("![what it shows](p/a.svg) and [the file](p/a.svg)\n", encoding="utf-8")
    assert pages(root)["docs/new.md"] == "![what it shows](p/a.svg) and [the file](p/a.svg)\n"
    assert "docs/p/a.svg" in pictures(root)
    assert "files/docs/p/a.svg.md" not in pages(root)


def test_text_in_a_code_block_is_no_link(root: Path) -> None:
    text = "```markdown\n[a](gone.md)\n```\n[a](a.md)\n"
    (root / "docs" / "a.md").write_text(text, encoding="utf-8")
    assert pages(root)["docs/a.md"] == text


def test_an_escaped_sign_begins_no_tag(root: Path) -> None:
    page = root / "docs" / "escaped.md"
    page.write_text("## zones.\\<name>\n\n```yaml\na: \\<b>\n```\n", encoding="utf-8")
    assert linked(page, root, {"docs/escaped.md"})[0] == "## zones.&lt;name>\n\n```yaml\na: \\<b>\n```\n"


def test_a_link_to_a_missing_file(root: Path) -> None:
    (root / "docs" / "a.md").write_text("[b](b.md)\n", encoding="utf-8")
    with pytest.raises(FileNotFoundError, match=r"^docs/a\.md: links to b\.md, which does not exist$"):
        pages(root)


def test_a_page_without_a_place_in_the_navigation() -> None:
    with pytest.raises(ValueError, match=r"^site/mkdocs\.yml: nav must also contain docs/forgotten\.md$"):
        settings(TEMPLATE.read_text(encoding="utf-8"), ["README.md", "docs/forgotten.md", "files/x.md"])


def test_every_page_of_this_project_is_made() -> None:
    made = pages(PROJECT)
    assert {path.relative_to(PROJECT).as_posix() for path in DOCUMENTS} <= set(made)
    assert not PAGES.is_relative_to(PROJECT / "docs")
    settings(TEMPLATE.read_text(encoding="utf-8"), list(made))


def test_the_search_shows_what_to_do_before_what_is_generated() -> None:
    template = TEMPLATE.read_text(encoding="utf-8")
    weights = search_weights(template)
    assert weights["docs/day-two.md"] > weights["docs/faults.md"] > weights["docs/checks.md"] == weights["api.md"]
    assert set(weights) == set(re.findall(r"[\w/-]+\.md", template.partition("\nnav:")[2]))
    assert weighed("# Day two\n", 4) == "---\nsearch:\n  boost: 4\n---\n# Day two\n"


def test_pages_of_files_are_searched_with_a_script_of_ours() -> None:
    theirs = '<script src="https://unpkg.com/iframe-worker/shim"></script>'
    assert closed(theirs, Path("index.html")) == '<script src="assets/worker.js"></script>'
    assert closed(theirs, Path("docs/more/a.html")) == '<script src="../../assets/worker.js"></script>'
    assert (OWN / "assets" / "worker.js").is_file()


def test_a_command_is_copied_without_its_prompt() -> None:
    """Material takes the text that a block shows while it has this attribute."""
    styles = (OWN / "assets" / "narrow.css").read_text(encoding="utf-8")
    assert re.search(r"\[data-md-copying\] \.gp,\s*\[data-md-copying\] \.go \{\s*display: none;", styles)


def test_no_page_looks_for_the_root_of_a_server(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "404.html").write_text('<link rel="stylesheet" href="/assets/main.css">', encoding="utf-8")
    for name in ("index.html", "docs/cli.html"):
        (tmp_path / name).write_text(f"<p>{name}</p>", encoding="utf-8")
    finish(tmp_path)
    left = {each.relative_to(tmp_path).as_posix() for each in tmp_path.rglob("*.html")}
    assert left == {"index.html", "docs/cli.html"}
    finish(tmp_path)


def test_an_option_is_not_broken_at_its_hyphens(tmp_path: Path) -> None:
    text = "<code>--training-plan-arn</code> <code>{}</code> <code>a b</code> <pre><code><span>x</span></code></pre>"
    page = tmp_path / "index.html"
    page.write_text(text.format("x" * 33), encoding="utf-8")
    finish(tmp_path)
    whole = page.read_text(encoding="utf-8")
    assert re.findall(r'<code class="word">(.*?)</code>', whole) == ["--training-plan-arn"]
    finish(tmp_path)
    assert page.read_text(encoding="utf-8") == whole


def test_no_option_of_a_command_is_broken_either(tmp_path: Path) -> None:
    page = tmp_path / "index.html"
    page.write_text(
        "<code>status prod --watch</code> <code>a -c env=b --format=json</code> <code>a - b</code>"
        "<pre><code>x <span>--out</span>\n--in a</code></pre>",
        encoding="utf-8",
    )
    finish(tmp_path)
    whole = page.read_text(encoding="utf-8")
    assert re.findall(r'<span class="word">(.*?)</span>', whole) == ["--watch", "-c", "--format"]
    finish(tmp_path)
    assert page.read_text(encoding="utf-8") == whole


def test_links_may_lead_elsewhere() -> None:
    html = '<a href="https://example.com">x</a> <link rel="canonical" href="https://example.com/a">'
    assert closed(html, Path("a.html")) == html


@pytest.mark.parametrize(
    "html",
    [
        '<script async src="https://example.com/a.js"></script>',
        '<img src="//example.com/a.js">',
        '<link rel="stylesheet" href="https://example.com/a.js">',
    ],
)
def test_a_page_that_loads_something_from_elsewhere(html: str) -> None:
    with pytest.raises(
        ValueError, match=r"^docs/a\.html: loads (https:)?//example\.com/a\.js from another site, which"
    ):
        closed(html, Path("docs/a.html"))


def test_every_export_is_on_the_page_of_constructs(root: Path) -> None:
    assert re.findall(r"^::: (\S+)$", api_page(root), flags=re.MULTILINE) == [
        "hyperpod_cdk.Network",
        "hyperpod_cdk.Spaces",
    ]


def test_beneath_a_construct_stands_how_it_is_used(root: Path) -> None:
    assert uses(root) == {"Network": "hp.Network(\n    self,\n    'Net',\n)"}
    assert "Let others wait.\n\n```python\nhp.Network(\n    self,\n    'Net',\n)\n```\n" in api_page(root)


GIVEN = ["`arn`: `str`", "`vpc` (`ec2.IVpc`): The VPC, for `others`.", "`before`(): Let others wait."]


def test_the_members_of_an_export_are_listed_below_it(root: Path) -> None:
    homes = exports(root)
    assert gives(root, "Network", homes) == gives(root, "Spaces", homes) == GIVEN
    assert "::: hyperpod_cdk.Network\n\nAttributes and methods:\n\n- `arn`: `str`\n" in api_page(root)


@row_by_row("name", [name for name in hyperpod_cdk.__all__ if issubclass(getattr(hyperpod_cdk, name), Construct)])
def test_what_a_construct_gives_is_named_with_its_type(name: str) -> None:
    given = gives(PROJECT, name, exports(PROJECT))
    assert [each for each in given if not re.match(r"`\w+`(: `.+`$|\(\): .+|.*: [A-Z`].+)", each)] == []


def test_every_construct_has_an_example_that_a_test_synthesizes() -> None:
    exported = {name: getattr(hyperpod_cdk, name) for name in hyperpod_cdk.__all__}
    made = {name for name, each in exported.items() if isinstance(each, type) and issubclass(each, Construct)}
    found = uses(PROJECT)
    assert sorted(made - found.keys() - ABSTRACT) == []
    for code in found.values():
        compile(code, USES, "eval")


def test_a_file_with_fences_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "x.txt"
    file.write_text("```\nx\n```\n", encoding="utf-8")
    assert shown(file, "x.txt") == "# x.txt\n\n````text\n```\nx\n```\n````\n"
