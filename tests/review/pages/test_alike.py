"""What says the same of many is one entry that counts them, names some and has all behind it."""

from __future__ import annotations

import io
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from hyperpod_cdk.review.model import (
    Attention,
    BlastRadius,
    Cause,
    Effect,
    Excepted,
    PropertyEffect,
    Reason,
    ReasonKind,
    Report,
    ResourceEffect,
)
from hyperpod_cdk.review.pages.alike import FEW
from hyperpod_cdk.review.pages.html import html
from hyperpod_cdk.review.pages.markdown import GITHUB_LIMIT, markdown
from hyperpod_cdk.review.pages.page import Cell, Entries, Entry, Many, Moved, joined
from hyperpod_cdk.review.pages.sections import page
from hyperpod_cdk.review.pages.text import text
from tests.review.sample import quiet_report

GROUPS = [f"g{number}" for number in range(100)]


def reason(
    resource: str = "x / Cluster", path: str | None = None, sentence: str = "Nodes go.", line: int = 0
) -> Reason:
    causes = (Cause(file="prod.yaml", line=line, path="count"),) if line else ()
    return Reason(kind=ReasonKind.INTERRUPTION, resource=resource, property=path, sentence=sentence, causes=causes)


def asked(*reasons: Reason, excepted: tuple[Excepted, ...] = ()) -> Report:
    report = quiet_report()
    verdict = report.verdict.model_copy(update={"needs_approval": reasons, "excepted": excepted})
    return report.model_copy(update={"verdict": verdict})


def plain(cell: Cell) -> str:
    return joined(cell, lambda each: f"{each.before} -> {each.after}" if isinstance(each, Moved) else each.text)


def said(entry: Entry) -> list[str]:
    """An entry as lines, of many the line that names some."""
    lines = [plain(each.some if isinstance(each, Many) else each) for each in entry.lines]
    return [plain((entry.badge, *entry.name)), *lines]


def behind(entry: Entry) -> list[str]:
    return [plain(one) for each in entry.lines if isinstance(each, Many) for one in each.all]


@pytest.mark.parametrize("number", [1, 2, FEW, FEW + 1, 20, 100])
def test_few_stand_alone_and_many_as_one(number: int) -> None:
    groups = GROUPS[:number]
    reasons = page(asked(*(reason(path=f"InstanceGroups[{each}].InstanceCount") for each in groups))).reasons
    assert sum(each.number for each in reasons) == number
    if number <= FEW:
        assert [said(each) for each in reasons] == [
            [f"interruption x / Cluster InstanceGroups[{each}].InstanceCount", "Nodes go."] for each in groups
        ]
        return
    assert [said(each) for each in reasons] == [
        [
            f"interruption x / Cluster InstanceGroups[…].InstanceCount {number} items",
            "Nodes go.",
            f"g0, g1, g2 and {number - 3} more",
        ]
    ]
    assert behind(reasons[0]) == groups


@pytest.mark.parametrize(
    ("reasons", "lines", "last"),
    [
        (
            [reason(f"x / Topic{each}", "Policy") for each in GROUPS],
            ["interruption Policy 100 resources", "Nodes go.", "x / Topicg0, x / Topicg1, x / Topicg2 and 97 more"],
            "x / Topicg99",
        ),
        (
            [reason(f"x / role {each} (x)", sentence=f"Role {each} (x) has AWS's policy P.") for each in GROUPS],
            [
                "interruption 100 resources",
                "Each has AWS's policy P.",
                "x / role g0 (x), x / role g1 (x), x / role g2 (x) and 97 more",
            ],
            "x / role g99 (x) Role g99 (x) has AWS's policy P.",
        ),
        (
            [reason(path=f"Groups[{each}]", sentence=f"Who has {each} gets in.") for each in GROUPS],
            ["interruption x / Cluster Groups[…] 100 items", "Who has … gets in.", "g0, g1, g2 and 97 more"],
            "g99 Who has g99 gets in.",
        ),
        (
            [reason(f"x / {each}", f"Groups[{each}].Rules[0]") for each in GROUPS],
            [
                "interruption Groups[…].Rules[…] 100 times",
                "Nodes go.",
                "x / g0 Groups[g0].Rules[0], x / g1 Groups[g1].Rules[0], x / g2 Groups[g2].Rules[0] and 97 more",
            ],
            "x / g99 Groups[g99].Rules[0]",
        ),
        (
            [reason(path=f"Groups[{each}]", sentence=f"Group {each} goes, then {each}.") for each in GROUPS],
            ["interruption x / Cluster Groups[…] 100 items", "Group … goes, then …", "g0, g1, g2 and 97 more"],
            "g99 Group g99 goes, then g99.",
        ),
        (
            [reason(path=f"Groups[{each}]", line=line) for line, each in enumerate(GROUPS, 1)],
            [
                "interruption x / Cluster Groups[…] 100 items",
                "Nodes go.",
                "g0, g1, g2 and 97 more",
                "Caused by prod.yaml:1 count, prod.yaml:2 count, prod.yaml:3 count and 97 more lines",
            ],
            "g99 Caused by prod.yaml:100 count",
        ),
        (
            [reason(path=f"Groups[{each}]", line=7) for each in GROUPS],
            [
                "interruption x / Cluster Groups[…] 100 items",
                "Nodes go.",
                "g0, g1, g2 and 97 more",
                "Caused by prod.yaml:7 count",
            ],
            "g99",
        ),
    ],
    ids=["resources", "named first", "named within", "named twice", "both", "other lines", "one line"],
)
def test_what_distinguishes_them_is_named(reasons: list[Reason], lines: list[str], last: str) -> None:
    (entry,) = page(asked(*reasons)).reasons
    assert said(entry) == lines
    assert behind(entry)[-1] == last
    assert entry.number == len(behind(entry)) == 100


@pytest.mark.parametrize(
    "other",
    [
        reason(path="InstanceGroups[g1].InstanceType"),
        reason(path="InstanceGroups[g1].InstanceCount", sentence="Nodes stay."),
        reason(path="InstanceGroups[g1].InstanceCount").model_copy(update={"kind": ReasonKind.UNKNOWN}),
        reason(path="InstanceGroups[g1].InstanceCount").model_copy(update={"approvers": ("security",)}),
        # a number is no name: 4 GB and 5 GB are not the same
        reason(path="InstanceGroups[4].InstanceCount", sentence="Nodes lose 4 GB."),
    ],
)
def test_what_says_something_else_stands_alone(other: Reason) -> None:
    alike = [reason(path=f"InstanceGroups[{each}].InstanceCount") for each in GROUPS]
    assert [each.number for each in page(asked(*alike[:50], other, *alike[50:])).reasons] == [100, 1]


def test_what_each_was_and_is_stands_behind() -> None:
    items = tuple(
        Attention(
            effect=None,
            about="protection",
            resource=f"x / Logs{number}",
            property="RetentionInDays",
            before=str(30 + number),
            after="7",
            message=f"Logs are kept for 7, until now {30 + number}.",
        )
        for number in range(100)
    )
    report = quiet_report()
    verdict = report.verdict.model_copy(update={"attention": items})
    (entry,) = page(report.model_copy(update={"verdict": verdict})).attention
    assert said(entry) == [
        "protection RetentionInDays 100 resources",
        "Logs are kept for 7, until now …",
        "x / Logs0 30 -> 7, x / Logs1 31 -> 7, x / Logs2 32 -> 7 and 97 more",
    ]
    assert behind(entry)[99] == "x / Logs99 129 -> 7 Logs are kept for 7, until now 129."


def test_exceptions_fold_too_where_one_answers_many() -> None:
    excepted = tuple(
        Excepted(reason=reason(path=f"G[{each}]"), because="Agreed.", owner="ops", expires="2027-01-01")
        for each in GROUPS
    )
    (entry,) = page(asked(excepted=excepted)).excepted
    assert (entry.number, entry.folded) == (100, True)
    assert said(entry)[-1] == "Excepted by ops until 2027-01-01: Agreed."


NAMES = st.lists(
    st.sampled_from(["a", "b", "it", "4", "prod", "…", "nodes"]) | st.text("ab[].", max_size=3), max_size=12
)


@given(NAMES)
def test_no_reason_is_lost(names: list[str]) -> None:
    reasons = [reason(f"x / {each}", f"Groups[{each}]", f"The nodes of {each} go.") for each in names]
    entries = page(asked(*reasons)).reasons
    assert sum(each.number for each in entries) == len(reasons)
    for entry in entries:
        assert len(behind(entry)) == (entry.number if entry.number > FEW else 0)
    whole = " ".join(line for entry in entries for line in (*said(entry), *behind(entry)))
    assert [each for each in reasons if each.sentence not in whole] == []


def logs(number: int, before: str = "7", after: str = "30", effect: Effect = Effect.IN_PLACE) -> ResourceEffect:
    told = PropertyEffect(path="RetentionInDays", before=before, after=after, effect=effect, reason="Kept longer.")
    return ResourceEffect(
        stack="x",
        logical_id=f"Logs{number}",
        type="AWS::Logs::LogGroup",
        name=f"Logs{number}",
        effect=effect,
        stateful=True,
        summary=f"RetentionInDays {before} -> {after} changes in place: kept longer.",
        properties=(told,),
    )


def changed(*resources: ResourceEffect) -> Report:
    counts = {each: sum(one.effect is each for one in resources) for each in Effect}
    return quiet_report().model_copy(update={"blast_radius": BlastRadius(resources=resources, counts=counts)})


def radius(report: Report) -> tuple[Entry, ...]:
    (entries,) = next(each for each in page(report).sections if each.key == "blast-radius").blocks
    assert isinstance(entries, Entries)
    return entries.entries


@pytest.mark.parametrize("number", [1, 2, FEW, FEW + 1, 20, 100])
def test_resources_that_change_alike_are_one_entry(number: int) -> None:
    entries = radius(changed(*(logs(each) for each in range(number))))
    assert sum(each.number for each in entries) == number
    if number <= FEW:
        assert [said(each)[0] for each in entries] == [
            f"in place x / Logs{each} AWS::Logs::LogGroup stateful" for each in range(number)
        ]
        return
    assert [said(each) for each in entries] == [
        [
            f"in place AWS::Logs::LogGroup {number} resources stateful",
            "RetentionInDays 7 -> 30 changes in place: kept longer.",
            f"x / Logs0, x / Logs1, x / Logs2 and {number - 3} more",
            "RetentionInDays in place 7 -> 30 Kept longer.",
        ]
    ]
    assert behind(entries[0]) == [f"x / Logs{each}" for each in range(number)]


def test_resources_with_other_values_are_listed_with_them() -> None:
    (entry,) = radius(changed(*(logs(each, before=str(each)) for each in range(50))))
    assert said(entry) == [
        "in place AWS::Logs::LogGroup 50 resources stateful",
        "RetentionInDays … -> 30 changes in place: kept longer.",
        "RetentionInDays in place Kept longer.",
        "x / Logs0 0 -> 30, x / Logs1 1 -> 30, x / Logs2 2 -> 30 and 47 more",
    ]
    assert behind(entry)[49] == "x / Logs49 49 -> 30"


@pytest.mark.parametrize(
    "other",
    [
        logs(50, effect=Effect.UNKNOWN),
        logs(50).model_copy(update={"type": "AWS::SNS::Topic"}),
        logs(50).model_copy(update={"stateful": False}),
        logs(50).model_copy(update={"summary": "It is deleted."}),
        logs(50).model_copy(update={"properties": (*logs(50).properties, *logs(50).properties)}),
        logs(50).model_copy(
            update={"properties": tuple(e.model_copy(update={"source": "a page"}) for e in logs(50).properties)}
        ),
        logs(50).model_copy(
            update={"properties": tuple(e.model_copy(update={"path": "KmsKeyId"}) for e in logs(50).properties)}
        ),
    ],
    ids=["effect", "type", "stateful", "summary", "one property more", "source", "property"],
)
def test_a_resource_with_another_change_is_listed_separately(other: ResourceEffect) -> None:
    alike = [logs(each) for each in range(50)]
    assert [each.number for each in radius(changed(*alike, other))] == [50, 1]


def test_a_cause_of_each_is_named_with_each() -> None:
    causes = [(Cause(file="prod.yaml", line=each + 1, path="days"),) for each in range(4)]
    (entry,) = radius(changed(*(logs(i).model_copy(update={"causes": each}) for i, each in enumerate(causes))))
    assert said(entry)[-1] == "Caused by prod.yaml:1 days, prod.yaml:2 days, prod.yaml:3 days and 1 more line"
    assert behind(entry)[3] == "x / Logs3 Caused by prod.yaml:4 days"


@given(st.lists(st.tuples(st.sampled_from(["1", "7", "30"]), st.sampled_from(["1", "7", "30"])), max_size=12))
def test_no_resource_and_no_value_is_lost(values: list[tuple[str, str]]) -> None:
    resources = [logs(number, before, after) for number, (before, after) in enumerate(values)]
    entries = radius(changed(*resources)) if resources else ()
    assert sum(each.number for each in entries) == len(resources)
    lines = [line for entry in entries for line in (*said(entry), *behind(entry))]
    for number, (before, after) in enumerate(values):
        assert any(re.search(rf"Logs{number}(?!\d)", line) for line in lines)
        assert any(f"{before} -> {after}" in line for line in lines)


def test_renderings_count_resources_and_not_entries() -> None:
    grave = [logs(each, effect=Effect.UNKNOWN) for each in range(40)]
    report = changed(*grave, *(logs(each) for each in range(40, 100)))
    assert '> unknown <span class="faint">40</span>' in html(report)
    assert '> in place <span class="faint">60</span>' in html(report)
    assert Behind.of(html(report)) == [f"x / Logs{each}" for each in range(40, 100)]
    assert "<summary>Others (60)</summary>" in markdown(report)
    out = io.StringIO()
    text(report, Console(file=out, width=100))
    assert "[in place] AWS::Logs::LogGroup [60 resources] [stateful]\n" in out.getvalue()
    many = [logs(each).model_copy(update={"type": f"X::Y::T{each // 5}"}) for each in range(100)]
    out = io.StringIO()
    text(changed(*many), Console(file=out, width=100))
    assert "and 40 more (--out writes all)\n" in out.getvalue()


def test_renderings_name_all_or_say_how_many_are_left() -> None:
    report = asked(*(reason(path=f"InstanceGroups[{each}].InstanceCount") for each in GROUPS))
    folded = markdown(report)
    assert "  - `g0`, `g1`, `g2` and 97 more\n    <details><summary>All 100</summary>\n\n    - `g0`\n" in folded
    assert folded.count("<details>") == folded.count("</details>")
    assert re.findall(r"^    - `(g\d+)`$", folded, re.MULTILINE) == GROUPS
    out = io.StringIO()
    text(report, Console(file=out, width=100))
    assert "    g0, g1, g2 and 97 more\n" in out.getvalue()
    assert "g3" not in out.getvalue()
    assert Behind.of(html(report)) == GROUPS
    assert "Who must approve <span>100</span>" in html(report)
    # a comment that is too long leaves the names to the report before it cuts any part
    long = asked(*(reason(path=f"InstanceGroups[{'n' * 200}{each}].InstanceCount") for each in range(1_000)))
    short = markdown(long)
    assert len(short) < GITHUB_LIMIT
    assert "**1,000 items**" in short
    assert "<summary>All 1,000</summary>" not in short


class Behind(HTMLParser):
    """Reads what a page lists of many."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = False
        self.names: list[str] = []

    @classmethod
    def of(cls, page_: str) -> list[str]:
        found = cls()
        found.feed(page_)
        return found.names

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "details":
            self.inside = ("class", "many") in attrs
            self.names = [] if self.inside else self.names
        if tag == "li" and self.inside:
            self.names.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag == "details":
            self.inside = False

    def handle_data(self, data: str) -> None:
        if self.inside and self.names:
            self.names[-1] += data.strip()
