"""Puts README, docs/ and the files that they link to together as the pages of a site, and lets MkDocs build it.

The pages keep their places in the repository, so that a link that works there works on the site. A file that is no
page, such as an example, gets a page that shows it; a folder gets one that lists it. A link to what the repository does
not hold, or to a heading that a page does not have, fails the build.
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
# an option or a status, which no browser is to break at its hyphens; longer ones may not fit a telephone
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
    """Build the site into build/site; give MkDocs' exit code, which a warning makes 1."""
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
    # nothing but the pages' own content: no counting of visitors, no question of newer versions
    done = subprocess.run(
        [str(MKDOCS), "build", "--strict", "--config-file", str(SETTINGS)],
        check=False,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    if done.returncode:
        return done.returncode
    site = ROOT / "build" / "site"
    finish(site)
    print(f"wrote {site.relative_to(ROOT)}: {len(texts)} pages; begin with index.html")
    return 0


def search_weights(template: str) -> dict[str, float]:
    """Give how much a page counts in the search, by its name: who searches for a word wants to do something with it.

    The pages of a section of the navigation count alike, and what the sections do not name counts least.
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
    """Give a page with what Material reads of its weight in the search."""
    return f"---\nsearch:\n  boost: {weight}\n---\n{text}"


def finish(site: Path) -> None:
    """Let the pages of a built site load nothing from elsewhere, and leave out the one that knows where they stand.

    Material's 404.html looks for its styles and pages at the root of a server; these pages stand below any path, or are
    opened as files. A server has a page of its own for what is not there.
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
    """Give a page that loads nothing from elsewhere; raises ValueError for what would, and has no counterpart here.

    Material has pages that are opened as files fetch a script, without which they cannot be searched; ours stands in.
    """
    up = "../" * (len(page.parts) - 1)
    html = html.replace(f'<script src="{_THEIR_WORKER}"></script>', f'<script src="{up}{_OUR_WORKER}"></script>')
    fetched = re.findall(r'<(?:script|img|iframe)\b[^>]*\bsrc="((?:https?:)?//[^"]+)"', html)
    fetched += re.findall(r'<link\b[^>]*\brel="(?:stylesheet|preload)"[^>]*\bhref="((?:https?:)?//[^"]+)"', html)
    if fetched:
        raise ValueError(f"{page.as_posix()}: loads {fetched[0]} from elsewhere, where a closed network does not lead")
    return html


def pages(root: Path) -> dict[str, str]:
    """Give the text of each page by its name; raises FileNotFoundError for a link to what is not there."""
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
    """Give the names of the pictures that pages show, which keep their places."""
    shown_by = [*(root / name for name in TOP), *sorted((root / "docs").rglob("*.md"))]
    own = {path.relative_to(root).as_posix() for path in shown_by}
    found = {each for path in shown_by for each in linked(path, root, own)[1] if each.suffix in _PICTURES}
    return sorted(each.relative_to(root).as_posix() for each in found)


def linked(path: Path, root: Path, own: set[str]) -> tuple[str, list[Path]]:
    """Give a page with its links as the site has them, and the files that it links to."""
    text = path.read_text(encoding="utf-8")
    found: list[Path] = []

    def replaced(match: re.Match[str]) -> str:
        target = Path(os.path.normpath(path.parent / unquote(match[1])))
        if not target.exists():
            raise FileNotFoundError(f"{path.relative_to(root)}: links to {match[1]}, which is not there")
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
    """Write an escaped < as HTML has it: Python's Markdown, unlike GitHub's, leaves it to begin a tag."""
    return text.replace("\\<", "&lt;")


def place(path: Path, root: Path, own: set[str]) -> str:
    """Give the page that stands for a file or folder."""
    name = path.relative_to(root).as_posix()
    return name if name in own else page_of(name)


def page_of(name: str) -> str:
    """Give the page of a file that is none."""
    return f"files/{name}.md"


def shown(path: Path, name: str) -> str:
    """Give the page that shows a file as it is."""
    lines = path.read_text(encoding="utf-8").splitlines()
    if len(lines) > _MOST_LINES:
        return f"# {name}\n\n{len(lines):,} lines, in the repository.\n"
    fence = "````" if any(line.startswith("```") for line in lines) else "```"
    return "\n".join([f"# {name}", "", f"{fence}{_LANGUAGES.get(path.suffix, 'text')}", *lines, fence, ""])


def api_page(root: Path) -> str:
    """Give the page of what ``hyperpod_cdk`` exports, each with its parameters and what its docstring says."""
    homes = exports(root)
    says = (
        "What `import hyperpod_cdk` gives. [A cluster of them](docs/library.md). Beneath each construct stands how it"
        f" is used by an app that a test synthesizes, `{USES}`; `hp` is `hyperpod_cdk`, `self` the stack."
    )
    lines, used = ["# Constructs", "", says, ""], uses(root)
    for name in homes:
        lines += [f"::: hyperpod_cdk.{name}", ""]
        if given := gives(root, name, homes):
            lines += ["It gives:", "", *(f"- {each}" for each in given), ""]
        if name in used:
            lines += ["```python", used[name], "```", ""]
    return "\n".join(lines)


def exports(root: Path) -> dict[str, str]:
    """Give the module of each export, by its name."""
    module = ast.parse((root / "constructs" / "hyperpod_cdk" / "__init__.py").read_text(encoding="utf-8"))
    (homes,) = [
        ast.literal_eval(statement.value)
        for statement in module.body
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "_HOME"
    ]
    return dict(homes)


def gives(root: Path, name: str, homes: dict[str, str]) -> list[str]:
    """Give the attributes and methods that an export has beside its arguments, each with what its docstring says."""
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
    """Give the first use of each export, by its name, in the app that uses all constructs."""
    text = (root / USES).read_text(encoding="utf-8")
    found: dict[str, str] = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("hp."):
            # lines as they stand, the first one at the depth of the last
            *lines, last = text.splitlines()[node.lineno - 1 : node.end_lineno]
            depth = len(last) - len(last.lstrip())
            first = (ast.get_source_segment(text, node) or "").splitlines()[0]
            code = "\n".join([first, *(line[depth:] for line in [*lines[1:], *([last] if lines else [])])])
            found.setdefault(ast.unparse(node.func).removeprefix("hp."), code)
    return found


def settings(template: str, names: list[str]) -> str:
    """Give MkDocs' settings, with the decisions and the shown files in the navigation."""
    decisions = sorted(name for name in names if name.startswith("docs/decisions/"))
    files = sorted(name for name in names if name.startswith("files/"))
    missing = {name for name in names if name not in template} - {*decisions, *files}
    if missing:
        raise ValueError(f"site/mkdocs.yml: nav lacks {', '.join(sorted(missing))}")
    return (
        template.replace("DECISIONS", yaml.safe_dump(decisions, default_flow_style=True).strip())
        .replace("FILES", yaml.safe_dump(files, default_flow_style=True).strip())
        .replace("../build/", "")
        .replace("../constructs", str(ROOT / "constructs"))
    )


if __name__ == "__main__":
    sys.exit(main())
