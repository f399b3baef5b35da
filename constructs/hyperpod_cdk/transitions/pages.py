"""A plan as text, Markdown and JSON, and the JSON Schema of the last."""

from __future__ import annotations

from collections.abc import Iterator

from hyperpod_cdk.json_schema import as_text, schema_of_report
from hyperpod_cdk.review.pages.markdown import code, prose
from hyperpod_cdk.review.pages.wording import span, visible
from hyperpod_cdk.transitions.model import Plan, Step


def text(plan: Plan) -> str:
    """Give the plan for a terminal: what is to be typed stands on lines of its own, so that it can be copied."""
    lines = [f"{plan.environment}: {plan.verdict}{f' {_lasting(plan)}' if plan.steps else ''}"]
    lines.append(f"From {plan.base.label} to {plan.head.label}.")
    for refusal in plan.refusals:
        lines += ["", f"refused: {refusal.why}", f"  what works: {refusal.what_works}"]
    for number, step in enumerate(plan.steps, start=1):
        lines += ["", f"step {number} of {len(plan.steps)}, {span(step.lasts)}"]
        lines += [f"  $ {command}" for command in step.commands]
        lines += [f"  {word}: {said}" for word, said in _said(step)]
    lines += ["", *(f"note: {note}" for note in plan.notes)] if plan.notes else []
    return "\n".join(visible(line) for line in lines) + "\n"


def markdown(plan: Plan) -> str:
    """Give the plan for a pull request."""
    lines = [
        f"## Plan of {code(plan.environment)}",
        "",
        prose(f"{plan.verdict} {_lasting(plan) if plan.steps else ''}"),
    ]
    lines += ["", prose(f"From {plan.base.label} to {plan.head.label}.")]
    for refusal in plan.refusals:
        lines += ["", f"- **refused**: {prose(refusal.why)}", f"  **What works**: {prose(refusal.what_works)}"]
    for number, step in enumerate(plan.steps, start=1):
        lines += ["", f"### Step {number} of {len(plan.steps)}, {prose(span(step.lasts))}", ""]
        lines += [f"- {code(command)}" for command in step.commands]
        lines += [f"- **{word}**: {prose(said)}" for word, said in _said(step)]
    lines += ["", *(f"> {prose(note)}" for note in plan.notes)] if plan.notes else []
    return "\n".join(visible(line) for line in lines) + "\n"


def plan_json(plan: Plan) -> str:
    """Give the plan as JSON: keys in the model's order, a newline at its end."""
    # a template may hold half of a surrogate pair, which no file can but as JSON's own escape
    return plan.model_dump_json(indent=2).encode("utf-8", "backslashreplace").decode("utf-8") + "\n"


def plan_schema_text() -> str:
    """Give the JSON Schema (2020-12) of what ``plan_json`` writes, as the text of its file."""
    return as_text(schema_of_report(Plan, title="hyperpod-cdk plan"))


def _lasting(plan: Plan) -> str:
    return f"CloudFormation works {span(plan.total)}."


def _said(step: Step) -> Iterator[tuple[str, str]]:
    yield from (("first", each) for each in step.first)
    yield from (("does", each) for each in step.does)
    yield from (("interrupts", each) for each in step.interrupts if each not in step.loses)
    yield from (("loses", each) for each in step.loses)
    yield from (("unknown", each) for each in step.unknown)
    yield from (("stays", each) for each in step.stays)
    yield "back", step.back
    yield from (("then the next, since", each) for each in step.why)
