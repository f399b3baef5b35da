"""Builds a site with MkDocs from README, docs/ and the files that they link to.

The pages keep their paths in the repository, so that links work in both. A file that is not a page, such as an
example, gets a page with its content; a folder gets a page that lists it. A link to a file that is not in the
repository, or to a heading that a page does not have, fails the build.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import yaml

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "build" / "site-pages"
SETTINGS = ROOT / "build" / "mkdocs.yml"
OWN = ROOT / "site"
TEMPLATE = OWN / "mkdocs.yml"
MKDOCS = ROOT / ".cache" / "site" / "bin" / "mkdocs"
USES = "tests/strangers_app.py"
TOP = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")

_LINK = re.compile(r"(?<!!)\]\((?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]*)?\)")
_FENCE = re.compile(r"^(```|~~~).*?^\1[ \t]*$", re.DOTALL | re.MULTILINE)
# an option or a status that must not wrap at its hyphens; longer ones may not fit on a phone
_WORD_OF_CODE = re.compile(r"<code>([^<\s]{1,32})</code>")
_WORDS_OF_CODE = re.compile(r"<code>([^<\n]+ [^<\n]+)</code>")
_OPTION = re.compile(r"(?<=\s)--?[A-Za-z][A-Za-z-]{0,30}(?=[\s=]|$)")
_LANGUAGES = {".yaml": "yaml", ".yml": "yaml", ".json": "json", ".py": "python", ".sh": "bash", ".toml": "toml"}
_MOST_LINES = 2_000
_THEIR_WORKER = "https://unpkg.com/iframe-worker/shim"
_OUR_WORKER = "assets/worker.js"
_WEIGHTS = {"Start": 4, "How to": 3, "Reference": 0.5}
_SHOWN_WEIGHT = 0.3
_PICTURES = frozenset({".png", ".svg"})


def main() -> int:
    """Build the site in build/site; returns MkDocs' exit code, which is 1 after a warning."""
    shutil.rmtree(PAGES, ignore_errors=True)
    texts = pages(ROOT)
    for asset in (OWN / "assets").iterdir():
        target = PAGES / "assets" / asset.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(asset, target)
    for name in pictures(ROOT):
        target = PAGES / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, target)
    weights = search_weights(TEMPLATE.read_text(encoding="utf-8"))
    for name, text in texts.items():
        target = PAGES / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(weighed(text, weights.get(name, _SHOWN_WEIGHT)), encoding="utf-8")
    SETTINGS.write_text(settings(TEMPLATE.read_text(encoding="utf-8"), list(texts)), encoding="utf-8")
    # only the content of the pages: no analytics, no check for newer versions
    done = subprocess.run(
        [str(MKDOCS), "build", "--strict", "--config-file", str(SETTINGS)],
        check=False,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    if done.returncode:
        return done.returncode
    site = ROOT / "build" / "site"
    finish(site)
    print(f"wrote {site.relative_to(ROOT)}: {len(texts)} pages; start with index.html")
    return 0


def search_weights(template: str) -> dict[str, float]:
    """Return the search weight of a page by its name: guides rank above reference pages.

    All pages of a section of the navigation have the same weight; pages that are in no section have the lowest.
    """
    nav = yaml.safe_load(template[template.index("\nnav:") :].replace("DECISIONS", "[]").replace("FILES", "[]"))["nav"]
    weights: dict[str, float] = {}
    for section in nav:
        ((title, listed),) = section.items()
        for each in listed:
            page = each if isinstance(each, str) else next(iter(each.values()))
            if page:
                weights[page] = _WEIGHTS.get(title, 1)
    return weights


def weighed(text: str, weight: float) -> str:
    """Return a page with the metadata for its search weight in Material."""
    return f"---\nsearch:\n  boost: {weight}\n---\n{text}"


def finish(site: Path) -> None:
    """Prevent the pages of a built site from loading external files, and remove 404.html.

    Material's 404.html expects its styles and pages at the root of a server; these pages can be below any path, or be
    opened as files. A server has its own page for missing files.
    """
    (site / "404.html").unlink(missing_ok=True)
    for page in site.rglob("*.html"):
        html = closed(page.read_text(encoding="utf-8"), page.relative_to(site))
        html = _WORDS_OF_CODE.sub(_with_whole_options, html)
        page.write_text(_WORD_OF_CODE.sub(r'<code class="word">\1</code>', html), encoding="utf-8")


def _with_whole_options(code: re.Match[str]) -> str:
    words = _OPTION.sub(r'<span class="word">\g<0></span>', code[1])
    return f"<code>{words}</code>"


def closed(html: str, page: Path) -> str:
    """Return a page that loads no external files; raises ValueError for an external file without a local replacement.

    Pages that are opened as files fetch a script of Material's that the search needs; it is replaced by a local one.
    """
    up = "../" * (len(page.parts) - 1)
    html = html.replace(f'<script src="{_THEIR_WORKER}"></script>', f'<script src="{up}{_OUR_WORKER}"></script>')
    fetched = re.findall(r'<(?:script|img|iframe)\b[^>]*\bsrc="((?:https?:)?//[^"]+)"', html)
    fetched += re.findall(r'<link\b[^>]*\brel="(?:stylesheet|preload)"[^>]*\bhref="((?:https?:)?//[^"]+)"', html)
    if fetched:
        raise ValueError(f"{page.as_posix()}: loads {fetched[0]} from another site, which may be unreachable")
    return html


def pages(root: Path) -> dict[str, str]:
    """Return the text of each page by its name; raises FileNotFoundError for a link to a missing file."""
    waiting = [*(root / name for name in TOP), *sorted((root / "docs").rglob("*.md"))]
    own = {path.relative_to(root).as_posix() for path in waiting}
    texts = {"api.md": api_page(root)}
    while waiting:
        path = waiting.pop(0)
        name = path.relative_to(root).as_posix()
        page = place(path, root, own)
        if page in texts or path.suffix in _PICTURES:
            continue
        if name in own:
            text, found = linked(path, root, own)
        elif path.is_dir():
            listed = [each for each in sorted(path.iterdir()) if each.is_file() and not each.name.startswith(".")]
            rows = [f"- [{each.name}]({os.path.relpath(place(each, root, own), Path(page).parent)})" for each in listed]
            text, found = "\n".join([f"# {name}/", "", *rows, ""]), listed
        else:
            text, found = shown(path, name), []
        texts[page] = text
        waiting += found
    return texts


def pictures(root: Path) -> list[str]:
    """Return the names of the images in pages, which keep their paths."""
    shown_by = [*(root / name for name in TOP), *sorted((root / "docs").rglob("*.md"))]
    own = {path.relative_to(root).as_posix() for path in shown_by}
    found = {each for path in shown_by for each in linked(path, root, own)[1] if each.suffix in _PICTURES}
    return sorted(each.relative_to(root).as_posix() for each in found)


def linked(path: Path, root: Path, own: set[str]) -> tuple[str, list[Path]]:
    """Return a page with links for the site, and the files that it links to."""
    text = path.read_text(encoding="utf-8")
    found: list[Path] = []

    def replaced(match: re.Match[str]) -> str:
        target = Path(os.path.normpath(path.parent / unquote(match[1])))
        if not target.exists():
            raise FileNotFoundError(f"{path.relative_to(root)}: links to {match[1]}, which does not exist")
        found.append(target)
        if target.suffix in _PICTURES:
            return match[0]
        here = path.relative_to(root).parent
        return f"]({os.path.relpath(place(target, root, own), here)}{match[2] or ''})"

    parts, last = [], 0
    for fence in _FENCE.finditer(text):
        parts += [_LINK.sub(replaced, _shown(text[last : fence.start()])), fence[0]]
        last = fence.end()
    return "".join([*parts, _LINK.sub(replaced, _shown(text[last:]))]), found


def _shown(text: str) -> str:
    """Return an escaped < as an HTML entity, because Python's Markdown, unlike GitHub's, would start a tag."""
    return text.replace("\\<", "&lt;")


def place(path: Path, root: Path, own: set[str]) -> str:
    """Return the page of a file or folder."""
    name = path.relative_to(root).as_posix()
    return name if name in own else page_of(name)


def page_of(name: str) -> str:
    """Return the page's name for a file that is not a page."""
    return f"files/{name}.md"


def shown(path: Path, name: str) -> str:
    """Return the page that shows the content of a file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    if len(lines) > _MOST_LINES:
        return f"# {name}\n\n{len(lines):,} lines, in the repository.\n"
    fence = "````" if any(line.startswith("```") for line in lines) else "```"
    return "\n".join([f"# {name}", "", f"{fence}{_LANGUAGES.get(path.suffix, 'text')}", *lines, fence, ""])


def api_page(root: Path) -> str:
    """Return the page of the exports of ``hyperpod_cdk``, each with its parameters and docstring."""
    homes = exports(root)
    says = (
        "The exports of `hyperpod_cdk`. [Build a cluster with them](docs/library.md). Each construct has an example"
        f" from an app that a test synthesizes, `{USES}`; `hp` is `hyperpod_cdk`, `self` the stack."
    )
    lines, used = ["# Constructs", "", says, ""], uses(root)
    for name in homes:
        lines += [f"::: hyperpod_cdk.{name}", ""]
        if given := gives(root, name, homes):
            lines += ["Attributes and methods:", "", *(f"- {each}" for each in given), ""]
        if name in used:
            lines += ["```python", used[name], "```", ""]
    return "\n".join(lines)


def exports(root: Path) -> dict[str, str]:
    """Return the module of each export, by its name."""
    module = ast.parse((root / "constructs" / "hyperpod_cdk" / "__init__.py").read_text(encoding="utf-8"))
    (homes,) = [
        ast.literal_eval(statement.value)
        for statement in module.body
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "_HOME"
    ]
    return dict(homes)


def gives(root: Path, name: str, homes: dict[str, str]) -> list[str]:
    """Return the attributes and methods of an export other than its arguments, each with its docstring."""
    path = (root / "constructs" / "hyperpod_cdk").joinpath(*homes[name].split(".")).with_suffix(".py")
    module = ast.parse(path.read_text(encoding="utf-8"))
    (made,) = [each for each in module.body if isinstance(each, ast.ClassDef) and each.name == name]
    told: dict[str, str] = {}
    for base in (ast.unparse(each) for each in made.bases):
        if base in homes:
            told |= {line.split("`")[1]: line for line in gives(root, base, homes)}
    for node in ast.walk(made):
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target).startswith("self."):
            told[ast.unparse(node.target).removeprefix("self.")] = f": `{ast.unparse(node.annotation)}`"
    for method in (each for each in made.body if isinstance(each, ast.FunctionDef)):
        words = " ".join((ast.get_docstring(method) or "").split("\n\n")[0].split())
        is_value = any("property" in ast.unparse(each) for each in method.decorator_list)
        result = "" if method.returns is None or not is_value else f" (`{ast.unparse(method.returns)}`)"
        told[method.name] = f"{'' if is_value else '()'}{result}: {words.replace('``', '`')}"
    return [line if line.startswith("`") else f"`{each}`{line}" for each, line in told.items() if each[0] != "_"]


def uses(root: Path) -> dict[str, str]:
    """Return the first use of each export, by its name, in the app that uses all constructs."""
    text = (root / USES).read_text(encoding="utf-8")
    found: dict[str, str] = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("hp."):
            # unchanged lines, the first one with the indentation of the last
            *lines, last = text.splitlines()[node.lineno - 1 : node.end_lineno]
            depth = len(last) - len(last.lstrip())
            first = (ast.get_source_segment(text, node) or "").splitlines()[0]
            code = "\n".join([first, *(line[depth:] for line in [*lines[1:], *([last] if lines else [])])])
            found.setdefault(ast.unparse(node.func).removeprefix("hp."), code)
    return found


def settings(template: str, names: list[str]) -> str:
    """Return MkDocs' settings, with the decisions and the shown files in the navigation."""
    decisions = sorted(name for name in names if name.startswith("docs/decisions/"))
    files = sorted(name for name in names if name.startswith("files/"))
    missing = {name for name in names if name not in template} - {*decisions, *files}
    if missing:
        raise ValueError(f"site/mkdocs.yml: nav must also contain {', '.join(sorted(missing))}")
    return (
        template.replace("DECISIONS", yaml.safe_dump(decisions, default_flow_style=True).strip())
        .replace("FILES", yaml.safe_dump(files, default_flow_style=True).strip())
        .replace("../build/", "")
        .replace("../constructs", str(ROOT / "constructs"))
    )


if __name__ == "__main__":
    sys.exit(main())
