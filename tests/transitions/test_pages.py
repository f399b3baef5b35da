"""A plan as text, Markdown and JSON; nothing of a stranger's template gets out of its place."""

from __future__ import annotations

import json
from pathlib import Path

from jsonschema import Draft202012Validator

from hyperpod_cdk._cli.answers import answer_schema_text
from hyperpod_cdk.transitions.model import Plan
from hyperpod_cdk.transitions.pages import as_json, markdown, text
from tests.transitions.stacks import assembly, planned, stack

OUT = planned(
    assembly(stack("a", exports=["it"]), stack("b", imports=["it"], after=["a"])),
    assembly(stack("a"), stack("b", after=["a"])),
    notes=["a \x1b[31mnote"],
)
REFUSED = planned(
    assembly(stack("a", exports=["old"]), stack("b", imports=["old"], after=["a"])),
    assembly(stack("a", exports=["new"]), stack("b", imports=["new"], after=["a"])),
)


def test_committed_schema_is_the_generated_one(project: Path) -> None:
    committed = (project / "schemas" / "plan.schema.json").read_text(encoding="utf-8")
    assert committed == answer_schema_text("plan"), "run 'make docs' and commit schemas/plan.schema.json"


def test_json_is_as_its_schema_says() -> None:
    validator = Draft202012Validator(json.loads(answer_schema_text("plan")))
    for plan in (OUT, REFUSED):
        assert [error.message for error in validator.iter_errors(json.loads(as_json(plan)))] == []
        assert Plan.model_validate_json(as_json(plan)) == plan


def test_text() -> None:
    assert text(OUT).splitlines() == [
        "dev: 2 steps. CloudFormation needs 30 s to 3 min.",
        "From deployed to working tree.",
        "",
        "step 1 of 2, 15 s to 2 min",
        "  $ hyperpod-cdk cdk deploy dev/b --exclusively -c env=dev --concurrency 3 --require-approval never",
        "  does: dev-b: 1 deleted.",
        "  to go back: Deploy the current version again, in 1 step.",
        f"  the next step is needed because: {OUT.steps[0].why[0]}",
        "",
        "step 2 of 2, 15 s to 2 min",
        "  $ hyperpod-cdk cdk deploy 'dev/*' -c env=dev --concurrency 3 --require-approval never",
        "  does: dev-a: 1 deleted.",
        "  to go back: Deploy the current version again, in 1 step.",
        "",
        "note: a \\x1b[31mnote",
    ]


def test_text_of_a_refusal() -> None:
    assert text(REFUSED).splitlines()[:4] == [
        "dev: Refused: 1 reason; nothing would be changed.",
        "From deployed to working tree.",
        "",
        f"refused: {REFUSED.refusals[0].why}",
    ]


def test_markdown() -> None:
    lines = markdown(OUT).splitlines()
    assert lines[0] == "## Plan of `dev`"
    assert (
        "- `hyperpod-cdk cdk deploy dev/b --exclusively -c env=dev --concurrency 3 --require-approval never`" in lines
    )
    assert "\x1b" not in markdown(OUT)
    assert "**Do instead**" in markdown(REFUSED)
