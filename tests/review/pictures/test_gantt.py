"""The timeline as a picture: rows, bars, folding, and that nothing lies on anything else."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest

from hyperpod_cdk.review.model import Minutes, Step, Timeline
from hyperpod_cdk.review.pictures.gantt import ROWS, WIDTH, gantt
from hyperpod_cdk.review.pictures.svg import text_width

SVG = "{http://www.w3.org/2000/svg}"


def step(name: str, starts: float, low: float, high: float, *, stack: str = "prod-network", **rest: object) -> Step:
    """Return a step; ``starts`` is that of the slow case."""
    stated = {"action": "create", "is_critical": False, "source": "a log", "if_it_fails": "It stays.", **rest}
    return Step.model_validate(
        {
            "stack": stack,
            "logical_id": name,
            "type": "AWS::SNS::Topic",
            "name": name,
            "starts": {"low": 0, "high": starts},
            "lasts": {"low": low, "high": high},
            **stated,
        }
    )


def of(*steps: Step) -> Timeline:
    end = max((each.starts.high + each.lasts.high for each in steps), default=0)
    return Timeline(steps=steps, total=Minutes(low=end / 2, high=end))


def drawn(timeline: Timeline) -> ET.Element:
    return ET.fromstring(gantt(timeline))  # noqa: S314 - our own picture


def words(picture: ET.Element) -> list[str]:
    """Return the texts without their tooltips."""
    return ["".join([each.text or "", *(child.tail or "" for child in each)]) for each in picture.iter(f"{SVG}text")]


def bars(picture: ET.Element, kind: str) -> list[tuple[float, float]]:
    """Return the beginning and the width of every bar of a kind below the legend."""
    return [
        (float(each.attrib["x"]), float(each.attrib["width"]))
        for each in picture.iter(f"{SVG}rect")
        if each.attrib["class"] == kind and float(each.attrib["y"]) > 80
    ]


def test_nothing_to_deploy() -> None:
    picture = drawn(Timeline())
    assert words(picture) == ["Nothing to deploy"]
    assert picture.attrib["aria-label"] == "Nothing to deploy"


def test_it_says_how_long_and_scales() -> None:
    picture = drawn(of(step("Nat", 1, 2, 5), step("Fs", 6, 5, 15)))
    assert words(picture)[0] == "Deployment in 10 \N{EN DASH} 21 min, 2 steps"
    assert picture.attrib["role"] == "img"
    assert picture.attrib["viewBox"].startswith("0 0 1200 ")


def test_a_bar_is_full_to_the_least_and_pale_to_the_most() -> None:
    picture = drawn(of(step("Nat", 0, 2, 5), step("Fs", 5, 5, 15, is_critical=True)))
    scale = (WIDTH - 340 - 120) / 20
    assert bars(picture, "low") == [pytest.approx((340, 2 * scale), abs=0.02)]
    assert bars(picture, "high") == [pytest.approx((340, 5 * scale), abs=0.02)]
    assert bars(picture, "low-critical") == [pytest.approx((340 + 5 * scale, 5 * scale), abs=0.02)]
    assert bars(picture, "high-critical") == [pytest.approx((340 + 5 * scale, 15 * scale), abs=0.02)]


def test_a_deletion_is_drawn_unlike_the_rest() -> None:
    picture = drawn(of(step("Old", 0, 1, 2, action="delete", is_critical=True), step("New", 0, 1, 2, action="replace")))
    assert len(bars(picture, "low-delete")) == 1
    assert {"delete Old", "replace New", "deletion"} <= set(words(picture))


def test_quick_steps_are_one_row_for_each_stack() -> None:
    steps = [step(f"Q{number}", number * 0.5, 0.1, 0.5) for number in range(34)]
    picture = drawn(of(*steps, step("Nat", 0, 1, 5), step("Only", 17, 0.1, 0.5, stack="prod-late")))
    assert {"34 quick steps", "1 quick step", "Nat", "prod-network", "prod-late"} <= set(words(picture))
    assert "Q3" not in words(picture)
    # steps without a gap between them are one bar, and "prod-late" has its own
    assert len(bars(picture, "high")) == 1 + 1 + 1


def test_a_tooltip_says_everything() -> None:
    titles = [each.text for each in drawn(of(step("Nat", 3, 1.4, 5))).iter(f"{SVG}title")]
    assert titles[-1] == (
        "create Nat (AWS::SNS::Topic): 1.4 \N{EN DASH} 5 min, from minute 0 to 3 on. a log. If it fails: It stays."
    )


@pytest.mark.parametrize("stacks", [1, 6, 19, 30, 60])
def test_the_rows_stay_readable(stacks: int) -> None:
    steps = [
        step(f"S{number}", number, 1, 5 + number % 7, stack=f"stack-{number % stacks}", is_critical=number % 2 == 0)
        for number in range(300)
    ]
    picture = drawn(of(*steps))
    labels = {float(each.attrib["y"]) for each in picture.iter(f"{SVG}text")}
    assert len(labels) <= ROWS + 3
    assert (f"{stacks - ROWS + 1} more stacks" in words(picture)) == (2 * stacks > ROWS and stacks >= ROWS)


def test_what_lasts_longest_keeps_its_row() -> None:
    steps = [step(f"S{number}", 0, 1, 2 + number / 100) for number in range(100)]
    shown = words(drawn(of(*steps)))
    assert "S99" in shown
    assert "S0" not in shown
    assert "62 more steps" in shown


def test_many_alike_do_not_crowd_out_the_rest() -> None:
    alike = [step(f"S{number}", 0, 5, 30, type="AWS::FSx::DataRepositoryAssociation") for number in range(100)]
    assert "Nat" in words(drawn(of(*alike, step("Nat", 0, 1, 2, type="AWS::EC2::NatGateway"))))


def test_no_text_lies_on_another_or_outside() -> None:
    steps = [
        step(f"A/very/long/{'path' * 30}/{number}", number, 0.2, 3 + number, stack=f"stack-{number // 9}")
        for number in range(30)
    ]
    lines: dict[str, list[tuple[float, float]]] = {}
    for each in drawn(of(*steps)).iter(f"{SVG}text"):
        shown = "".join([each.text or "", *(child.tail or "" for child in each)])
        width = text_width(shown, float(each.attrib["font-size"]), bold="font-weight" in each.attrib)
        x = float(each.attrib["x"]) - {"middle": width / 2, "end": width}.get(each.attrib.get("text-anchor", ""), 0)
        lines.setdefault(each.attrib["y"], []).append((x, x + width))
    for spans in lines.values():
        spans.sort()
        assert spans[0][0] >= 0
        assert spans[-1][1] <= WIDTH
        assert all(before[1] <= after[0] for before, after in pairwise(spans))


def test_names_are_escaped() -> None:
    timeline = of(step("<b>&\x00", 0, 1, 2, source="a < b"))
    assert "&lt;b&gt;&amp;\ufffd" in gantt(timeline)
    assert "<b>&\ufffd" in words(drawn(timeline))


def test_the_same_timeline_gives_the_same_bytes() -> None:
    timeline = of(step("Nat", 1, 2, 5), step("Fs", 6, 5, 15))
    assert gantt(timeline) == gantt(timeline)


def test_it_needs_nothing_from_elsewhere() -> None:
    text = gantt(of(step("Nat", 1, 2, 5)))
    assert re.findall(r"https?://[^\s\"']+", text) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"<script|url\(|@import|href", text)
