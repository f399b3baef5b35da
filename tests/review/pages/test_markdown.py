"""The report as a comment: it stays below the limit, and what a template says stays text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from hyperpod_cdk.review.model import (
    Attention,
    Capacity,
    Cause,
    Change,
    CostLine,
    Effect,
    Fabric,
    FabricSubject,
    Level,
    Policy,
    PolicyFinding,
    Proof,
    Report,
    Side,
)
from hyperpod_cdk.review.pages.markdown import GITHUB_LIMIT, SMALLEST_LIMIT, markdown, marker
from tests.review.sample import ABOUT, HOSTILE, quiet_report, rich_report
from tests.support.tables import row_by_row

GITHUB = MarkdownIt("commonmark").enable(["table", "strikethrough"])
"""What of GitHub's renderer there is to test with; what it does after Markdown is LIVE below."""

LIVE = re.compile(r"@\w|(?<!&)#\d|\bGH-\d|\$|://|\bwww\.\w|:[a-z0-9_+-]+:|\b[0-9a-f]{40}\b", re.IGNORECASE)
"""What GitHub turns into a mention, an issue, mathematics, a link, an emoji or a commit wherever it is plain text."""


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def tokens(text: str) -> list[Token]:
    return GITHUB.parse(text)


def inline(text: str) -> Iterator[Token]:
    for token in tokens(text):
        yield from token.children or ()


def plain_texts(text: str) -> list[str]:
    return [each.content for each in inline(text) if each.type == "text"]


def code_spans(text: str) -> list[str]:
    return [each.content for each in inline(text) if each.type == "code_inline"]


def tables(text: str) -> list[tuple[int, list[int]]]:
    """Return of each table the number of its columns, and of the cells of each row."""
    found: list[tuple[int, list[int]]] = []
    for token in tokens(text):
        if token.type == "table_open":
            found.append((0, []))
        elif token.type == "th_open":
            found[-1] = (found[-1][0] + 1, found[-1][1])
        elif token.type == "tr_open" and found[-1][0]:
            found[-1][1].append(0)
        elif token.type == "td_open":
            found[-1][1][-1] += 1
    return found


def html_of(text: str) -> list[str]:
    blocks = [token.content.strip() for token in tokens(text) if token.type == "html_block"]
    return blocks + [token.content for token in inline(text) if token.type == "html_inline"]


def attended(message: str, *, before: str | None = None, after: str | None = None, count: int = 1) -> Report:
    cause = Cause(file="environments/prod.yaml", line=31, path="hyperpod.instance_groups[1].count")
    item = Attention(
        effect=Effect.REPLACED,
        resource="prod-data / Lustre/scratch",
        property="StorageCapacity",
        before=before,
        after=after,
        message=message,
        causes=(cause,),
    )
    report = rich_report(resources=2, rows=2, hostile=())
    # each says something of its own, so that none is folded into another
    attention = tuple(
        item.model_copy(update={"resource": f"{item.resource}{number}", "message": f"{message}{number or ''}"})
        for number in range(count)
    )
    only = {"attention": attention, "needs_approval": (), "excepted": ()}
    return report.model_copy(update={"verdict": report.verdict.model_copy(update=only)})


def test_nothing_changes() -> None:
    assert markdown(quiet_report()) == (
        "<!-- hyperpod-cdk review: prod -->\n"
        "\n"
        "**Needs no approval, because no deployed resource changes.**\n"
        "\n"
        "## \U0001f7e2 no change: review of prod\n"
        "\n"
        "**Nothing changes.**\n"
        "\n"
        "Nodes 0 · Accelerators 0 · A month `$0` · Grants added 0 · Networks broken 0 of 0 · Deployment none\n"
        "\n"
        "Base `main`, head `main`.\n"
        "\n"
        "### What to look at\n"
        "\n"
        "Nothing in particular.\n"
        "\n"
        "### Blast radius\n"
        "\n"
        "No resource changes.\n"
        "\n"
        "### Capacity\n"
        "\n"
        "There is no instance group.\n"
        "\n"
        "### Cost\n"
        "\n"
        "`$0` a month. Prices in us-east-1 as of 2026-11-20.\n"
        "\n"
        "### Access\n"
        "\n"
        "0 grants added, 0 removed; statements with a wildcard 0\n"
        "\n"
        "### EFA network proof\n"
        "\n"
        "There is no instance group and no file system.\n"
        "\n"
        "### Timeline\n"
        "\n"
        "Nothing to deploy.\n"
        "\n"
        "### Policy\n"
        "\n"
        "No finding.\n"
    )


def test_the_verdict_and_what_to_look_at_stand_first() -> None:
    text = markdown(attended("Its data is lost.", before="1200", after="2400"))
    assert text.startswith(
        "<!-- hyperpod-cdk review: prod -->\n"
        "\n"
        "**Needs approval by platform: 1 replacement; by a person: 1 cost.**\n"
        "\n"
        "## \U0001f534 replaced: review of prod\n"
        "\n"
        "**The file system scratch is replaced and its data is lost; 16 nodes of train are interrupted.**\n"
        "\n"
        "Nodes 32 -> 40 (+8) · Accelerators 256 -> 320 (+64) · A month at least `$12,345 -> $13,000` (`+$655`) · "
        "Grants added 1 · Networks broken 1 of 3, 1 unknown · Deployment 35 min to 2 h 5 min\n"
        "\n"
        "Base `main` at commit `5c92d1c0ffee` with `environments/prod.yaml`, head `feature/bigger | faster` with"
        " `environments/prod.yaml`.\n"
        "\n"
        "### What to look at\n"
        "\n"
        "- \U0001f534 **replaced** `prod-data / Lustre/scratch0` `StorageCapacity`\n"
        "  - Its data is lost.\n"
        "  - `1200` -> `2400`\n"
        "  - Caused by `environments/prod.yaml:31 hyperpod.instance_groups[1].count`\n"
        "\n"
        "### Blast radius\n"
    )


def test_the_sections_stand_in_the_order_of_their_weight() -> None:
    titles = re.findall(r"^### (.+)$", markdown(rich_report()), re.MULTILINE)
    assert titles == [
        "Who must approve, and why",
        "Excepted by review.yaml",
        "What to look at",
        "Blast radius",
        "Capacity",
        "Cost",
        "Access",
        "EFA network proof",
        "Timeline",
        "Policy",
        "What could not be determined",
    ]


def test_a_reference_to_what_is_replaced_is_no_difference_to_read() -> None:
    said = markdown(attended("It refers to Vpc, which is replaced.", before="Vpc1A2B", after="Vpc1A2B (replaced)"))
    assert "  - It refers to Vpc, which is replaced.\n  - Caused by" in said
    unsure = markdown(attended("It refers to Vpc.", before="Vpc1A2B", after="Vpc1A2B (perhaps another one)"))
    assert "  - `Vpc1A2B` -> `Vpc1A2B (perhaps another one)`\n" in unsure


@pytest.mark.parametrize(
    ("about", "before", "after", "shown"),
    [
        ("access", None, "Allow", ""),
        ("access", "Deny", None, ""),
        ("fabric", None, "broken", ""),
        ("fabric", "holds", "broken", "  - `holds` -> `broken`\n"),
        ("quota", None, "16", "  - (none) -> `16`\n"),
        ("protection", "Retain", None, "  - `Retain` -> (none)\n"),
    ],
)
def test_what_the_sentence_says_is_not_repeated(about: str, before: str | None, after: str | None, shown: str) -> None:
    report = attended("It is so.", before=before, after=after)
    item = report.verdict.attention[0].model_copy(update={"effect": None, "about": about, "causes": ()})
    verdict = report.verdict.model_copy(update={"attention": (item,)})
    said = markdown(report.model_copy(update={"verdict": verdict})).partition("### Blast radius")[0]

    assert said.endswith(f"  - It is so.\n{shown}\n")


def test_a_cause_that_all_changes_have_is_reported_once() -> None:
    line = "`environments/prod.yaml:31 hyperpod.instance_groups[1].count`"
    once = f"### What to look at\n\nEvery resource below changes because of {line}.\n\n- "
    two, three = (markdown(attended("It goes.", count=count)).partition("### Blast radius")[0] for count in (2, 3))

    assert two.count(f"  - Caused by {line}\n") == 2
    assert once in three
    assert three.count(line) == 1

    report = attended("It goes.", count=3)
    first, *others = report.verdict.attention
    other = first.model_copy(update={"causes": (first.causes[0].model_copy(update={"line": 32}),)})
    report = report.model_copy(update={"verdict": report.verdict.model_copy(update={"attention": (other, *others)})})
    mixed = markdown(report).partition("### Blast radius")[0]
    assert "because of" not in mixed
    assert mixed.count("  - Caused by ") == 3


def line_of_figures(**sections: Any) -> str:
    (line,) = [
        each
        for each in markdown(rich_report(rows=2, hostile=()).model_copy(update=sections)).splitlines()
        if each.startswith("Nodes") and " · " in each
    ]
    return line


SAMPLE = rich_report(rows=2, hostile=())
NONE = Change(before=None, after=None)


@row_by_row(
    "change, said",
    [
        # nothing is known: not "at least 0"
        (NONE, ["Nodes unknown", "Accelerators unknown"]),
        (Change(before=0, after=0), ["Nodes 0", "Accelerators 0"]),
    ],
)
def test_nodes_of_which_nothing_is_known_are_no_zero(change: Change, said: list[str]) -> None:
    group = SAMPLE.capacity.groups[0].model_copy(update={"nodes": change, "accelerators": change})
    assert line_of_figures(capacity=Capacity(groups=(group,))).split(" · ")[:2] == said
    known = group.model_copy(update=dict.fromkeys(("nodes", "accelerators"), Change(before=2, after=2)))
    at_least = " at least" if change == NONE else ""
    line = line_of_figures(capacity=Capacity(groups=(group, known)))
    assert line.split(" · ")[:2] == [f"Nodes{at_least} 2", f"Accelerators{at_least} 2"]


@row_by_row(
    "results, said",
    [
        (("unknown",), "0 of 1, 1 unknown"),
        (("holds",), "0 of 1"),
        (("broken", "unknown"), "1 of 2, 1 unknown"),
        (("broken", "holds"), "1 of 2"),
    ],
)
def test_a_network_without_a_proof_is_not_counted_as_proved(
    results: tuple[Literal["holds", "broken", "unknown"], ...], said: str
) -> None:
    subjects = tuple(
        FabricSubject(
            subject=f"train-{number}",
            kind="instance group",
            stack="prod-hyperpod",
            logical_id="Cluster",
            proofs=(Proof(name="ECR", result=result, detail=""),),
        )
        for number, result in enumerate(results)
    )
    assert f" · Networks broken {said} · " in line_of_figures(fabric=Fabric(subjects=subjects))


def test_a_denial_is_no_grant() -> None:
    grant = SAMPLE.access.grants[0].model_copy(update={"change": "added", "effect": "Deny"})
    assert " · Grants added 0 · " in line_of_figures(access=SAMPLE.access.model_copy(update={"grants": (grant,)}))


@pytest.mark.parametrize(
    ("skipped", "said"), [((), "No finding."), (("cdk-nag",), "No finding. Not everything was checked.")]
)
def test_a_policy_without_findings_says_whether_it_was_checked(skipped: tuple[str, ...], said: str) -> None:
    text = markdown(SAMPLE.model_copy(update={"policy": Policy(skipped=skipped)}))
    assert f"### Policy\n\n{said}\n" in text


@row_by_row(
    "said",
    [
        "Nodes 96 -> 104 (+8), accelerators 768 -> 832 (+64), EFA interfaces at least 2,560",
        "`$12,345 -> $13,000` a month (`+$655`), at least. Prices in us-east-1 as of 2026-11-20.",
        "| `h100-april` | `ml.p5.48xlarge` | 16 -> 24 (+8) of 16 |",
        "| `$739,297 -> $744,297` (`+$5,000`) |",
        "| `$0.045` per hour | `$0.00 -> $32.85` (`+$32.85`) |",
        "| \U0001f7e1 **unknown** | `$0 -> unknown` |",
        "statements with a wildcard 2 -> 3 (+1)",
        "35 min to 2 h 5 min for 6 steps, from published typical durations as of 2026-10-15.",
        "The network of 7 instance groups and file systems: broken for 1, unknown for 1, proved for 5.",
        "| \U0001f534 **short** | ml.p5.48xlarge for cluster usage `L-1234ABCD` | 16 -> 24 (+8) | 20 | 2026-11-01 |",
        "2 new, 2 standing, 2 resolved; 1 of them suppressed with a reason.",
    ],
)
def test_numbers_and_money_read_as_a_change(said: str) -> None:
    assert said in markdown(rich_report(hostile=()))


def test_every_table_has_as_many_cells_as_columns() -> None:
    found = tables(markdown(rich_report(rows=len(HOSTILE))))
    assert len(found) == 14
    for columns, rows in found:
        assert columns >= 2
        assert set(rows) == {columns}


def test_no_html_but_the_marker_and_what_folds() -> None:
    text = markdown(rich_report(rows=len(HOSTILE)))
    allowed = re.compile(
        r"<details>\n<summary>[A-Za-z ,]+ \([\d,]+\)</summary>|</details>|<!-- hyperpod-cdk review: prod -->"
    )
    blocks = html_of(text)
    assert len(blocks) > 10
    assert [each for each in blocks if not allowed.fullmatch(each)] == []
    assert sum(each.startswith("<details>") for each in blocks) == blocks.count("</details>") > 0


def test_only_sources_are_links() -> None:
    report = rich_report(rows=len(HOSTILE))
    links = [token for token in inline(markdown(report)) if token.type in ("link_open", "image")]
    assert {token.type for token in links} == {"link_open"}
    assert {str(token.attrs["href"]).split("/")[2] for token in links} == {"docs.aws.amazon.com"}


@row_by_row("text", HOSTILE)
def test_a_hostile_text_is_shown_as_it_is_and_does_nothing(text: str) -> None:
    comment = markdown(attended(text, before=text, after="x"))
    shown = plain_texts(comment)
    assert [each for each in shown if LIVE.search(each)] == []
    (item,) = re.findall(r"### What to look at\n\n(.+?)\n\n###", comment, re.DOTALL)
    rendered = " ".join(each.content for each in inline(item) if each.type in ("text", "code_inline", "text_special"))
    for word in re.findall(r"[A-Za-z0-9]{4,}", text):
        assert word in rendered
    types = {token.type for token in inline(item)}
    assert types <= {"text", "text_special", "code_inline", "strong_open", "strong_close"}
    # the item is still one list of one entry with its own list
    assert [token.type for token in tokens(item)].count("bullet_list_open") == 2


@row_by_row(
    "value, shown",
    [
        ("a | b", "`a | b`"),
        ("`", "`` ` ``"),
        ("a`b", "`` a`b ``"),
        ("``", "` `` `"),
        ("", "(empty)"),
        ("  ", "(empty)"),
        ("one\ntwo", "`one⏎two`"),
        ("one\r\ntwo", "`one⏎two`"),
        ("\u202eevil", "`\\u202eevil`"),
        ("@octocat", "`@octocat`"),
    ],
)
def test_a_value_is_a_code_span(value: str, shown: str) -> None:
    assert f"  - {shown} -> `x`\n" in markdown(attended("It changes.", before=value, after="x"))


def test_what_was_not_there_is_shown() -> None:
    assert "  - (none) -> `x`\n" in markdown(attended("It is new.", after="x"))
    assert "  - `x` -> (none)\n" in markdown(attended("It goes.", before="x"))


def test_a_pipe_in_a_table_is_the_pipe_that_was_meant() -> None:
    values = ("a|b", "a\\|b", "a\\\\|b", "|", "||", "\\")
    for value in values:
        line = CostLine(
            resource=value,
            kind="other",
            what=value,
            unit_price=1.0,
            unit="hour",
            monthly=Change(before=0, after=1),
        )
        report = quiet_report()
        text = markdown(report.model_copy(update={"cost": report.cost.model_copy(update={"lines": (line,)})}))
        ((columns, rows),) = tables(text)
        assert (columns, rows) == (5, [5])
        assert value in code_spans(text)


def test_two_long_values_are_cut_where_they_differ() -> None:
    same = "s" * 5_000
    comment = markdown(attended("It changes.", before=f"{same}-old-{same}", after=f"{same}-new-{same}"))
    spans = code_spans(comment)
    assert any("-old-" in span for span in spans)
    assert any("-new-" in span for span in spans)
    assert max(map(len, spans)) <= 240


SIGNS = {"fabric": "🔴", "policy": "🔴", "cost": "🟡"}


@row_by_row("about", ABOUT)
def test_what_is_no_change_to_a_resource_has_its_own_badge(about: str) -> None:
    lines = markdown(rich_report(hostile=())).splitlines()
    at = lines.index(f"  - Look at the {about}.")
    assert lines[at - 1] == f"- {SIGNS.get(about, '🟠')} **{about}** `prod-hyperpod / plain`"


@pytest.mark.parametrize(("resources", "rows"), [(1, 0), (200, 13), (8, 200), (3_000, 0), (1_000, 1_000)])
def test_the_comment_stays_below_the_limit(resources: int, rows: int) -> None:
    text = markdown(rich_report(resources=resources, rows=rows))
    assert len(text) <= units(text) < GITHUB_LIMIT
    for each in rich_report().verdict.attention:
        end = f"(number {each.message.rsplit(' ', 1)[-1]}" if each.effect else each.message
        assert end in text
    for columns, cells in tables(text):
        assert set(cells) <= {columns}


def test_the_least_important_is_cut_first() -> None:
    report = rich_report(resources=60, rows=100)

    def complete(limit: int) -> list[str]:
        text = markdown(report, limit=limit)
        assert units(text) < limit
        sections = re.split(r"^### ", text, flags=re.MULTILINE)[4:]
        return [each.splitlines()[0] for each in sections if "ee the HTML report" not in each]

    order = ["Blast radius", "Capacity", "Cost", "Access", "EFA network proof", "Timeline", "Policy"]
    whole = units(markdown(report, limit=10**9))
    assert complete(10**9) == [*order, "What could not be determined"]
    sizes = [complete(int(whole * part)) for part in (0.95, 0.7, 0.4)]
    assert len(sizes[-1]) < len(sizes[0]) < len(complete(10**9))
    for wider, tighter in pairwise(sizes):
        assert set(tighter) <= set(wider)
    for kept in sizes:
        short = [each for each in kept if each != "What could not be determined"]
        assert short == order[: len(short)]


def test_a_cut_table_says_how_many_rows_are_left() -> None:
    text = markdown(rich_report(resources=8, rows=400))
    (groups,) = re.findall(r"<summary>Instance groups \(400\)</summary>\n\n(.+?)\n\n</details>", text, re.DOTALL)
    *table, _, last = groups.splitlines()
    (left,) = re.findall(r"^\*… and (\d+) more \(see the HTML report\)\*$", last)
    assert len(table) - len(("titles", "rule")) + int(left) == 400


def test_what_to_look_at_is_cut_last_and_says_so() -> None:
    report = attended("word " * 400, before="a" * 10_000, after="b" * 10_000, count=1_000)
    text = markdown(report)
    assert units(text) < GITHUB_LIMIT
    assert "`prod-data / Lustre/scratch0` `StorageCapacity`" in text
    (left,) = re.findall(r"^- … and ([\d,]+) more \(see the HTML report\)$", text, re.MULTILINE)
    shown = text.count("**replaced** `prod-data")
    assert shown + int(left.replace(",", "")) == 1_000
    assert shown > 500


@pytest.mark.parametrize("length", [1_000, 100_000])
@pytest.mark.parametrize("character", ["x", "|", "`", "<", "\U0001f680", "\n", "@a ", "\u0000"])
def test_one_gigantic_value_breaks_nothing(character: str, length: int) -> None:
    huge = character * (length // len(character))
    report = attended(huge, before=huge, after=f"{huge}!")
    report = report.model_copy(
        update={
            "environment": huge,
            "head": Side(label=huge, commit=huge, environment_file=huge),
            "notes": (huge,),
            "policy": report.policy.model_copy(
                update={
                    "findings": (PolicyFinding(rule=huge, severity="error", resource=huge, message=huge, status="new"),)
                }
            ),
            "verdict": report.verdict.model_copy(update={"sentence": huge}),
        }
    )
    for limit in (SMALLEST_LIMIT, GITHUB_LIMIT):
        text = markdown(report, limit=limit)
        assert units(text) < limit
        assert "### What to look at" in text
        assert "StorageCapacity" in text
        assert {len(set(rows) | {columns}) for columns, rows in tables(text) if rows} <= {1}


def test_a_limit_that_no_verdict_fits_into_is_refused() -> None:
    with pytest.raises(ValueError, match=f"limit: must be {SMALLEST_LIMIT} or more, got 100"):
        markdown(quiet_report(), limit=100)


@pytest.mark.parametrize(
    ("environment", "line"),
    [
        ("prod", "<!-- hyperpod-cdk review: prod -->"),
        ("two-teams", "<!-- hyperpod-cdk review: two-teams -->"),
        ("a --> b", "<!-- hyperpod-cdk review: a-b -->"),
        ("", "<!-- hyperpod-cdk review:  -->"),
        ("x\ny", "<!-- hyperpod-cdk review: x-y -->"),
    ],
)
def test_the_first_line_is_found_again(environment: str, line: str) -> None:
    assert marker(environment) == line
    report = quiet_report().model_copy(update={"environment": environment})
    assert markdown(report).splitlines()[0] == line


@row_by_row("level", list(Level))
def test_the_level_is_written_in_words(level: Level) -> None:
    report = quiet_report()
    changed = report.model_copy(update={"verdict": report.verdict.model_copy(update={"level": level})})
    assert re.search(rf"^## \S {level}: review of prod$", markdown(changed), re.MULTILINE)


def test_the_critical_path_is_a_chart_that_mermaid_reads() -> None:
    text = markdown(rich_report(rows=len(HOSTILE) * 2))
    (chart,) = re.findall(r"```mermaid\n(.*?)\n```", text, re.DOTALL)
    lines = chart.splitlines()
    assert lines[:5] == [
        "gantt",
        "    title Critical path at its longest, as hours and minutes after the start",
        "    dateFormat YYYY-MM-DD HH:mm:ss",
        "    axisFormat %H:%M",
        "    todayMarker off",
    ]
    task = re.compile(r" {4}\d+ [\w./ -]+ :2000-01-\d\d \d\d:\d\d:\d\d, [1-9]\d*s")
    section = re.compile(r" {4}section [\w./ -]+")
    assert [line for line in lines[5:] if not task.fullmatch(line) and not section.fullmatch(line)] == []
    assert sum(bool(task.fullmatch(line)) for line in lines) == len(HOSTILE)
    fences = [token for token in tokens(text) if token.type == "fence"]
    assert [token.info for token in fences] == ["mermaid"]


@settings(max_examples=15, deadline=None)
@given(st.text(), st.text())
def test_whatever_a_value_is_the_comment_keeps_its_shape(before: str, after: str) -> None:
    text = markdown(attended(f"{before} {after}", before=before, after=after))
    assert [each for each in plain_texts(text) if LIVE.search(each)] == []
    assert {len(set(rows) | {columns}) for columns, rows in tables(text) if rows} == {1}
    assert not [each for each in inline(text) if each.type in ("html_inline", "image", "em_open", "s_open")]
    assert text.isprintable() or not re.search(r"[\x00-\x09\x0b-\x1f\u202a-\u202e\u2066-\u2069]", text)
