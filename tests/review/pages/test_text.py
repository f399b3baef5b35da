"""The report on a terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.text import Text

from hyperpod_cdk.review.model import Effect, Minutes, Report
from hyperpod_cdk.review.pages.page import Word
from hyperpod_cdk.review.pages.sections import page
from hyperpod_cdk.review.pages.text import text
from tests.review.sample import ABOUT, quiet_report, rich_report
from tests.support.tables import row_by_row


def printed(report: Report, *, width: int = 140, color: bool = False) -> str:
    stream = io.StringIO()
    text(report, Console(file=stream, width=width, force_terminal=color, color_system="truecolor" if color else None))
    return stream.getvalue()


def test_nothing_changes() -> None:
    assert printed(quiet_report()) == (
        "Needs no approval, because no deployed resource changes.\n"
        "Review of prod\n"
        "NO CHANGE\n"
        "Nothing changes.\n"
        "Base main, head main.\n"
        "\n"
        "WHAT TO LOOK AT\n"
        "Nothing in particular.\n"
        "\n"
        "BLAST RADIUS\n"
        "No resource changes.\n"
        "\n"
        "CAPACITY\n"
        "There is no instance group.\n"
        "\n"
        "COST\n"
        "$0 a month. Prices in us-east-1 as of 2026-11-20.\n"
        "\n"
        "ACCESS\n"
        "0 grants added, 0 removed; statements with a wildcard 0\n"
        "\n"
        "EFA NETWORK PROOF\n"
        "There is no instance group and no file system.\n"
        "\n"
        "TIMELINE\n"
        "Nothing to deploy.\n"
        "\n"
        "POLICY\n"
        "No finding.\n"
    )


def test_the_verdict_and_what_to_look_at_stand_first() -> None:
    lines = printed(rich_report()).splitlines()
    assert lines[:4] == [
        "Needs approval by platform: 1 replacement; by a person: 1 cost.",
        "Review of prod",
        "REPLACED",
        "The file system scratch is replaced and its data is lost; 16 nodes of train are interrupted.",
    ]
    at = lines.index("WHO MUST APPROVE, AND WHY")
    assert lines[at + 1 : at + 7] == [
        "Every resource below changes because of environments/prod.yaml:31 hyperpod.instance_groups[1].count 16 -> 24.",
        "[replacement] prod-data / Lustre/scratch LustreConfiguration.DeploymentType",
        "    The property is create-only.",
        "    Approved by platform, data | owners.",
        "[cost] cost per month",
        "    a | b",
    ]
    at = lines.index("WHAT TO LOOK AT")
    assert lines[at + 1 : at + 4] == [
        "[replaced] prod-hyperpod / Lustre/scratch LustreConfiguration.DeploymentType",
        "    a | b (number 0)",
        "    a | b -> --> <h1>out of the comment</h1>",
    ]
    at = lines.index("BLAST RADIUS")
    assert lines[at + 1 : at + 3] == [
        (
            "Resources: replaced 1, deleted 1, refused by the service 1, nodes interrupted 1, unknown 1, "
            "left behind 1, in place 1, added 1. Decided by"
        ),
        "the CloudFormation schemas of 2026-10-01.",
    ]


def test_a_refused_change_has_no_duration_to_promise() -> None:
    report = rich_report(hostile=())
    allowed = tuple(each for each in report.blast_radius.resources if each.effect is not Effect.REFUSED)
    calm = report.model_copy(
        update={"blast_radius": report.blast_radius.model_copy(update={"resources": allowed})}, deep=True
    )
    refused = "The deployment fails: the service refuses a part of the change."

    assert len(allowed) < len(report.blast_radius.resources)
    assert refused in " ".join(printed(report).split())
    assert refused not in " ".join(printed(calm).split())
    figures = {each.title: each.value for each in page(report).figures}
    assert figures["Deployment"] == (Word("refused"),)
    figures = {each.title: each.value for each in page(calm).figures}
    assert figures["Deployment"] == (Word("35 min to 2 h 5 min"),)


def test_a_wide_range_of_minutes_names_the_step_that_makes_it_wide() -> None:
    report = rich_report(hostile=())
    resources = tuple(each for each in report.blast_radius.resources if each.effect is not Effect.REFUSED)
    slow = report.timeline.steps[2].model_copy(update={"name": "Cluster", "lasts": Minutes(low=5, high=40)})
    steps = (*report.timeline.steps[:2], slow, *report.timeline.steps[3:])
    wide = report.model_copy(
        update={
            "blast_radius": report.blast_radius.model_copy(update={"resources": resources}),
            "timeline": report.timeline.model_copy(update={"steps": steps, "total": Minutes(low=7, high=50)}),
        }
    )
    assert (
        "up to 50 min for 6 steps, from published typical durations as of 2026-10-15. "
        "prod-hyperpod / Cluster alone lasts 5 min to 40 min."
    ) in " ".join(printed(wide).split())
    figures = {each.title: each.value for each in page(wide).figures}
    assert figures["Deployment"] == (Word("up to 50 min"),)


@row_by_row("about", ABOUT)
def test_what_is_no_change_to_a_resource_has_its_own_badge(about: str) -> None:
    lines = printed(rich_report(hostile=())).splitlines()
    at = lines.index(f"    Look at the {about}.")
    assert lines[at - 1] == f"[{about}] prod-hyperpod / plain"


def test_the_sections_stand_in_the_order_of_their_weight() -> None:
    titles = [
        "WHAT TO LOOK AT",
        "BLAST RADIUS",
        "CAPACITY",
        "COST",
        "ACCESS",
        "EFA NETWORK PROOF",
        "TIMELINE",
        "POLICY",
        "WHAT COULD NOT BE DETERMINED",
    ]
    assert [line for line in printed(rich_report()).splitlines() if line in titles] == titles


@pytest.mark.parametrize("width", [30, 110, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    for line in printed(rich_report(), width=width).splitlines():
        assert Console(width=width).render_str(line, markup=False, emoji=False).cell_len <= width


def test_a_narrow_terminal_gets_a_line_for_each_cell() -> None:
    lines = [line.strip() for line in printed(rich_report(), width=60).splitlines()]
    at = lines.index("train-0")
    assert lines[at : at + 8] == [
        "train-0",
        "type: ml.p5.48xlarge",
        "zone: unknown",
        "capacity: on-demand",
        "accelerator: H100 80 GB",
        "nodes: 16 -> 24 (+8)",
        "accelerators: 128 -> 192 (+64)",
        "EFA interfaces: 512",
    ]


def test_nothing_of_a_template_reaches_the_terminal_as_a_command() -> None:
    shown = printed(rich_report())
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "escape \\x1b[31mred" in shown
    # rich's markup and emoji codes stay text
    assert ":tada:" in shown


def test_color_adds_no_word() -> None:
    colored = printed(rich_report(), color=True)
    assert "\x1b[1;31m[replaced]" in colored
    without = Text.from_ansi(colored).plain
    assert [line.rstrip() for line in without.splitlines()] == [
        line.rstrip() for line in printed(rich_report()).splitlines()
    ]


def test_long_tables_say_how_much_is_left() -> None:
    shown = printed(rich_report(resources=400, rows=50))
    assert "and 48 unchanged (--out writes all)" in shown  # instance groups
    assert "and 39 more (--out writes all)" in shown  # lines of the cost, which all change but one
    assert "and 202 more (--out writes all)" in shown  # resources, of which the entries shown fold many
    assert len(shown.splitlines()) < 700
