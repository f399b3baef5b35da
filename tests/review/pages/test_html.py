"""The report as a page: self-contained, safe, and readable in a real browser, small and wide, light and dark."""

from __future__ import annotations

import html as entities
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from hyperpod_cdk.review.model import Attention, Effect, Level, Report
from hyperpod_cdk.review.pages.html import html
from hyperpod_cdk.review.pictures.gantt import gantt
from hyperpod_cdk.review.pictures.svg import Picture
from tests.review.sample import ABOUT, HOSTILE, quiet_report, rich_report
from tests.support.tables import row_by_row

SECTIONS = [
    "attention",
    "blast-radius",
    "capacity",
    "cost",
    "access",
    "fabric",
    "timeline",
    "policy",
    "picture",
    "notes",
]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
VOID = {"meta", "input", "br", "link", "img", "hr"}
WIDTHS = {"phone": 390, "desk": 1280}
LEAST_CONTRAST = 4.5
"""What WCAG 2 asks of text of usual size (level AA)."""

SPOILT = (
    ".lead { min-width: 60rem } .faint { color: #777 !important } .sentence { width: 5rem; overflow: hidden;"
    " white-space: nowrap } tr { min-width: 50rem } body { background-image: url(https://example.com/x.png) }"
)
"""Style that does everything wrong, to see that the measuring sees it."""

MEASURE = """
const faults = [], contrasts = [];
const linear = c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
const rgba = text => (text.match(/[\\d.]+/g) || []).map(Number);
const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
function ground(element) {
  for (let e = element; e; e = e.parentElement) {
    const c = rgba(getComputedStyle(e).backgroundColor);
    if (c.length === 3 || c[3] === 1) return c;
  }
  return [255, 255, 255];
}
function look(state) {
  const wide = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > wide) faults.push(`${state}: the page scrolls sideways`);
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, element = node.parentElement;
    if (!node.data.trim() || element.closest('svg, script, .skip, thead')) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const boxes = [...range.getClientRects()].filter(box => box.width > 0);
    if (!boxes.length) continue;
    const own = getComputedStyle(element);
    const a = light(rgba(own.color)), b = light(ground(element));
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    contrasts.push(contrast);
    if (contrast < 4.5) faults.push(`${state}: contrast ${contrast.toFixed(2)} of ${node.data.trim().slice(0, 40)}`);
    if (element.closest('.scroll, .long')) continue;
    for (const box of boxes)
      if (box.left < -0.5 || box.right > wide + 0.5) faults.push(`${state}: outside: ${node.data.trim().slice(0, 40)}`);
  }
  for (const element of document.querySelectorAll('body *:not(svg *)')) {
    const own = getComputedStyle(element);
    const clips = own.overflowX === 'hidden' || own.overflowX === 'clip';
    if (clips && !element.closest('thead, svg') && element.scrollWidth > element.clientWidth + 1)
      faults.push(`${state}: clipped: ${element.className}`);
    if (wide < 768 && element.matches('.scroll:not(.picture)') && element.scrollWidth > element.clientWidth + 1)
      faults.push(`${state}: a table scrolls on a phone`);
  }
}
look('first');
const hidden = key => [...document.querySelectorAll(key)].filter(e => getComputedStyle(e).display === 'none').length;
const filters = [...document.querySelectorAll('#blast-radius [data-filter]')];
const before = hidden('#blast-radius [data-key]');
for (const each of filters) each.checked = false;
const after = hidden('#blast-radius [data-key]');
for (const each of document.querySelectorAll('[data-filter]')) each.checked = true;
for (const each of document.querySelectorAll('details')) each.open = true;
look('unfolded');
parent.postMessage({
  name: location.hash.slice(1), faults, texts: contrasts.length, filters: filters.length, before, after,
  sections: [...document.querySelectorAll('main > section')].filter(e => e.offsetHeight > 40).map(e => e.id),
  requests: performance.getEntriesByType('resource').length,
  scheme: matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light',
  sticky: getComputedStyle(document.querySelector('nav')).position,
  banner: getComputedStyle(document.querySelector('.banner')).backgroundColor,
  height: document.documentElement.scrollHeight,
  pictures: document.querySelectorAll('main svg').length,
}, '*');
"""


def picture() -> str:
    drawn = Picture(1_200, 300, "prod")
    drawn.text(10, 40, "use1-az5", size=14)
    return drawn.render()


def full_page() -> str:
    report = rich_report(resources=8, rows=14)
    long = Attention(
        effect=Effect.REPLACED,
        resource="prod-data / Policy",
        property="Policy" * 40,
        before="a" * 4_000,
        after="a" * 3_990 + "b" * 10,
        message="It holds a value of 4,000 letters.",
    )
    attention = (*report.verdict.attention, long)
    report = report.model_copy(update={"verdict": report.verdict.model_copy(update={"attention": attention})})
    return html(report, diagram=picture(), gantt=gantt(report.timeline))


class Elements(HTMLParser):
    """Collects every element with its attributes, and what is open at the end."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.fixture(scope="module")
def rich() -> str:
    return full_page()


@pytest.fixture(scope="module")
def elements(rich: str) -> Elements:
    return Elements(rich)


def test_every_element_is_closed_and_every_id_is_one(elements: Elements) -> None:
    assert elements.open == []
    ids = [attributes["id"] for _, attributes in elements.found if "id" in attributes]
    assert len(ids) == len(set(ids)) > len(SECTIONS)


def test_the_page_needs_and_runs_nothing(elements: Elements) -> None:
    tags = {tag for tag, _ in elements.found}
    assert tags.isdisjoint({"script", "img", "link", "iframe", "object", "embed", "base", "form"})
    for tag, attributes in elements.found:
        assert not [name for name in attributes if name.startswith("on")], tag
        assert "src" not in attributes
    policies = [each["content"] for tag, each in elements.found if tag == "meta" and "http-equiv" in each]
    assert policies == [
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    ]


def test_links_lead_into_the_page_or_to_sources(elements: Elements) -> None:
    ids = {attributes.get("id") for _, attributes in elements.found}
    links = [attributes for tag, attributes in elements.found if tag == "a"]
    inner = [str(each["href"])[1:] for each in links if str(each["href"]).startswith("#")]
    assert inner == ["approval", "approval", *SECTIONS]
    assert set(inner) <= ids
    outer = [each for each in links if not str(each["href"]).startswith("#")]
    assert {str(each["href"]).split("/")[2] for each in outer} == {"docs.aws.amazon.com"}
    assert {each["rel"] for each in outer} == {"noopener noreferrer"}


def test_the_style_loads_nothing(rich: str) -> None:
    (style,) = re.findall(r"<style>\n(.+?)</style>\n</head>", rich, re.DOTALL)
    assert "@import" not in style
    assert "url(" not in style
    assert "{%" not in style


@pytest.mark.parametrize("text", [each for each in HOSTILE if each.strip()])
def test_a_hostile_text_is_shown_as_it_is(elements: Elements, text: str) -> None:
    shown = re.sub(r"\r?\n", "⏎", text)
    escaped = "".join(
        each if each.isprintable() or each == "\u200d" else each.encode("unicode_escape").decode() for each in shown
    )
    assert escaped in elements.words


def test_a_source_that_is_no_address_is_no_link() -> None:
    report = rich_report(resources=1)
    (resource,) = report.blast_radius.resources
    evil = resource.properties[0].model_copy(update={"source": "javascript:alert(1)"})
    changed = resource.model_copy(update={"properties": (evil,)})
    text = html(
        report.model_copy(update={"blast_radius": report.blast_radius.model_copy(update={"resources": (changed,)})})
    )
    assert "(javascript:alert(1))" in text
    assert 'href="javascript' not in text


def test_without_pictures_there_is_no_place_for_them() -> None:
    found = Elements(html(quiet_report())).found
    assert "svg" not in {tag for tag, _ in found}
    ids = [each["id"] for tag, each in found if tag == "section"]
    assert ids == [key for key in SECTIONS if key not in ("picture", "notes")]


def test_a_picture_stands_before_the_notes_or_last() -> None:
    ids = [each["id"] for tag, each in Elements(html(quiet_report(), diagram=picture())).found if tag == "section"]
    assert ids == [key for key in SECTIONS if key != "notes"]


@row_by_row(
    "level, tone",
    [
        (Level.REPLACED, "grave"),
        (Level.DELETED, "grave"),
        (Level.REFUSED, "grave"),
        (Level.INTERRUPTED, "warning"),
        (Level.UNKNOWN, "doubt"),
        (Level.IN_PLACE, "calm"),
        (Level.ADDED, "good"),
        (Level.NONE, "good"),
    ],
)
def test_the_verdict_is_a_word_and_a_color(level: Level, tone: str) -> None:
    report = quiet_report()
    text = html(report.model_copy(update={"verdict": report.verdict.model_copy(update={"level": level})}))
    assert f'<header class="banner {tone}">' in text
    assert f"<h1>{level}</h1>" in text
    assert f"<title>{level}: review of prod</title>" in text


def test_a_wrong_head_is_grave_whatever_changes() -> None:
    report = quiet_report()
    text = html(report.model_copy(update={"verdict": report.verdict.model_copy(update={"is_wrong": True})}))
    assert '<header class="banner grave">' in text
    assert "<h1>no change</h1>" in text


TONES = {
    "protection": "warning",
    "fabric": "grave",
    "quota": "warning",
    "plan": "warning",
    "addresses": "warning",
    "access": "warning",
    "policy": "grave",
    "cost": "doubt",
}


@pytest.mark.parametrize("about", ABOUT)
def test_what_is_no_change_to_a_resource_has_its_own_badge(rich: str, about: str) -> None:
    opening, _, after = rich.partition(f"Look at the {about}.")
    assert after
    summary = opening[opening.rindex("<summary>") :]
    assert summary.startswith(f'<summary><span class="badge {TONES[about]}">{about}</span> <span class="name">')


def test_every_effect_can_be_filtered(rich: str) -> None:
    (style,) = re.findall(r"<style>\n(.+?)</style>\n</head>", rich, re.DOTALL)
    for key in set(re.findall(r'data-filter="([a-z-]+)"', rich)) - {"same"}:
        assert f'.entries:has([data-filter="{key}"]:not(:checked)) > [data-key="{key}"]' in style
    assert len(re.findall(r"\[data-key=", style)) == len(set(Effect)) + len({"broken", "holds"})


def test_a_long_table_shows_at_first_what_changes() -> None:
    assert 'type="checkbox" data-filter="same"' in html(rich_report(rows=13))
    short: Report = rich_report(rows=6)
    assert 'type="checkbox" data-filter="same"' not in html(short)
    assert 'type="checkbox" checked data-filter="same"' in html(short)


def test_a_long_value_is_folded_and_whole() -> None:
    text = full_page()
    assert "(4,000 characters)" in text
    assert f">{'a' * 4_000}</code>" in text
    # both summaries show the place where the values differ
    opening = re.findall(r'<details class="long"><summary><code dir="auto">(…a+.*?)</code>', text)
    assert len(opening) == 2
    assert "b" in opening[1]
    assert "b" not in opening[0].replace("more", "")


def test_the_same_report_gives_the_same_page() -> None:
    assert full_page() == full_page()


@pytest.fixture(scope="module")
def browser() -> str:
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("install Debian's chromium")
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_a_browser(browser: str, rich: str, tmp_path: Path, scheme: str) -> None:
    measured, log = in_browser(browser, rich, tmp_path, scheme)
    if scheme == "light":
        spoilt = measured.pop("spoilt")["faults"]
        faults = ["page scrolls sideways", "contrast 4.", "outside: ", "clipped: sentence", "table scrolls on a phone"]
        assert [fault for fault in faults if not [each for each in spoilt if fault in each]] == []
    assert sorted(measured) == ["desk", "phone"]
    for seen in measured.values():
        assert seen["faults"] == []
        assert seen["scheme"] == scheme
        assert seen["sections"] == ["approval", "excepted", *SECTIONS]
        assert seen["requests"] == 0
        assert seen["texts"] > 1_000
        assert seen["pictures"] == 2
        assert seen["banner"] == "rgb(155, 28, 28)"
        assert (seen["filters"], seen["before"], seen["after"]) == (len(Effect), 0, 8)
    assert measured["desk"]["sticky"] == "sticky"
    assert measured["phone"]["sticky"] == "static"
    # the one is the picture that the spoilt page asks for in vain
    assert len([line for line in log.splitlines() if "CONSOLE" in line]) == (scheme == "light")
    shot = tmp_path / f"{scheme}.png"
    assert shot.stat().st_size > 50_000


def in_browser(browser: str, page: str, folder: Path, scheme: str) -> tuple[dict[str, Any], str]:
    """Open a copy of the page as wide as a phone and as a desk, side by side; leaves ``SCHEME.png`` in the folder.

    The copy may run the one script that measures; everything else of its content policy stays.
    """
    copy = page.replace("default-src 'none';", "default-src 'none'; script-src 'nonce-measure';", 1)
    copy = copy.replace("</body>", f'<script nonce="measure">{MEASURE}</script>\n</body>')
    widths = WIDTHS | ({"spoilt": 390} if scheme == "light" else {})
    for name in widths:
        style = f"{SPOILT}</style>\n</head>" if name == "spoilt" else "</style>\n</head>"
        (folder / f"{name}.html").write_text(copy.replace("</style>\n</head>", style), encoding="utf-8")
    # a window of a browser has a least width, a frame has none
    frames = "".join(
        f'<iframe src="{name}.html#{name}" style="width:{width}px;height:2000px;border:0"></iframe>'
        for name, width in widths.items()
    )
    # the script has to listen before the frames speak
    listens = (
        "const seen = {}; addEventListener('message', e => { seen[e.data.name] = e.data;"
        "document.getElementById('seen').textContent = JSON.stringify(seen); });"
    )
    outer = f'<body style="margin:0;display:flex"><pre id="seen" hidden></pre><script>{listens}</script>{frames}'
    (folder / "outer.html").write_text(f"<!doctype html>{outer}", encoding="utf-8")
    done = subprocess.run(
        [
            browser,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            "--enable-logging=stderr",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            f"--user-data-dir={folder / 'profile'}",
            f"--blink-settings=preferredColorScheme={0 if scheme == 'dark' else 1}",
            f"--window-size={sum(widths.values())},2000",
            "--virtual-time-budget=2000",
            f"--screenshot={folder / f'{scheme}.png'}",
            "--dump-dom",
            (folder / "outer.html").as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    (seen,) = re.findall(r'<pre id="seen"[^>]*>(.*?)</pre>', done.stdout, re.DOTALL)
    found: dict[str, Any] = json.loads(entities.unescape(seen))
    return found, done.stderr
