"""Plans as text, Markdown and JSON, recoveries and upgrades as text and JSON, and their JSON Schemas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hyperpod_cdk.review.pages.markdown import code, prose
from hyperpod_cdk.review.pages.wording import span, visible
from hyperpod_cdk.transitions.failures import LEAVES_BEHIND
from hyperpod_cdk.transitions.model import Plan, Recovery, Step, Stuck, Upgrade

_TAKES: Final = "removes nodes that no deployment created"


def text(plan: Plan) -> str:
    """Return the plan for a terminal: commands are on lines of their own, so that they can be copied."""
    lines = [f"{plan.environment}: {plan.verdict}{f' {_lasting(plan)}' if plan.steps else ''}"]
    lines += [f"{_TAKES}: {each}" for each in plan.takes]
    lines.append(f"From {plan.base.label} to {plan.head.label}.")
    for refusal in plan.refusals:
        lines += ["", f"refused: {refusal.why}", f"  do instead: {refusal.what_works}"]
    for number, step in enumerate(plan.steps, start=1):
        lines += ["", f"step {number} of {len(plan.steps)}, {span(step.lasts)}"]
        lines += [f"  $ {command}" for command in step.commands]
        lines += [f"  {word}: {said}" for word, said in _lines_of_step(step)]
    lines += ["", *(f"note: {note}" for note in plan.notes)] if plan.notes else []
    return "\n".join(visible(line) for line in lines) + "\n"


def markdown(plan: Plan) -> str:
    """Return the plan for a pull request."""
    lines = [
        f"## Plan of {code(plan.environment)}",
        "",
        prose(f"{plan.verdict} {_lasting(plan) if plan.steps else ''}"),
    ]
    lines += [line for each in plan.takes for line in ("", f"**{_TAKES}**: {prose(each)}")]
    lines += ["", prose(f"From {plan.base.label} to {plan.head.label}.")]
    for refusal in plan.refusals:
        lines += ["", f"- **refused**: {prose(refusal.why)}", f"  **Do instead**: {prose(refusal.what_works)}"]
    for number, step in enumerate(plan.steps, start=1):
        lines += ["", f"### Step {number} of {len(plan.steps)}, {prose(span(step.lasts))}", ""]
        lines += [f"- {code(command)}" for command in step.commands]
        lines += [f"- **{word}**: {prose(said)}" for word, said in _lines_of_step(step)]
    lines += ["", *(f"> {prose(note)}" for note in plan.notes)] if plan.notes else []
    return "\n".join(visible(line) for line in lines) + "\n"


def as_json(told: Plan | Recovery | Upgrade) -> str:
    """Return a plan, a recovery or an upgrade as JSON: keys in the model's order, a newline at its end."""
    # a template can contain half of a surrogate pair, which a file can contain only as a JSON escape
    return told.model_dump_json(indent=2).encode("utf-8", "backslashreplace").decode("utf-8") + "\n"


def recovery_text(recovery: Recovery) -> str:
    """Return a recovery for a terminal: commands are on lines of their own, so that they can be copied."""
    lines = [f"{recovery.environment}: {recovery.verdict}"]
    for refusal in recovery.refusals:
        lines += ["", f"refused: {refusal.why}", f"  do instead: {refusal.what_works}"]
    for stuck in recovery.stacks:
        lines += ["", f"{stuck.stack} is {stuck.status}"]
        lines += [f"  {word}: {said}" for word, said in _lines_of_stuck(stuck)]
        lines += [f"  $ {command}" for command in stuck.commands]
    for each in recovery.change_sets:
        what = "deletes it" if each.is_of_cdk else "not deleted: neither the CDK CLI nor 'import --takeover' created it"
        lines += ["", f"{each.stack} has the change set {each.name} open ({each.status})", f"  does: {what}"]
        lines += [f"  $ {each.command}"] if each.is_of_cdk else []
    if recovery.kept:
        lines += ["", "remains in the account from deleted stacks:"]
        lines += [f"  {each.stack} / {each.logical_id}: {each.physical_id} ({each.type})" for each in recovery.kept]
    lines += ["", *(f"note: {note}" for note in recovery.notes)] if recovery.notes else []
    return "\n".join(visible(line) for line in lines) + "\n"


def upgrade_text(upgrade: Upgrade) -> str:
    """Return an upgrade for a terminal: commands are on lines of their own, so that they can be copied."""
    lines = [f"{upgrade.environment}: {upgrade.verdict}"]
    for thing in upgrade.things:
        state = {True: "outdated", False: "up to date", None: "unknown whether outdated"}[thing.is_old]
        newer = f", newest {thing.newest}" if thing.newest and thing.newest != thing.stands else ""
        stands = f"{thing.stands}, {state}" if thing.stands else "version unknown"
        lines.append(f"  {thing.what}: {stands}{newer}; {thing.says}")
    for refusal in upgrade.refusals:
        lines += ["", f"refused: {refusal.why}", f"  do instead: {refusal.what_works}"]
    for number, step in enumerate(upgrade.steps, start=1):
        lines += ["", f"step {number} of {len(upgrade.steps)}: {step.title}"]
        lines += [f"  before: {each}" for each in step.first]
        lines += [
            f"  sets: {upgrade.file}:{each.line} {each.path}: {each.before or 'nothing'} -> {each.after}"
            for each in step.edits
        ]
        lines += [f"  $ {command}" for command in step.commands]
        lines += [f"  interrupts: {step.interrupts}", f"  to go back: {step.back}"]
    lines += ["", *upgrade.diff.splitlines()] if upgrade.diff else []
    lines += ["", *(f"note: {note}" for note in upgrade.notes)] if upgrade.notes else []
    lines += [f"skipped: {each}" for each in upgrade.skipped]
    return "\n".join(visible(line) for line in lines) + "\n"


def _lines_of_stuck(stuck: Stuck) -> Iterator[tuple[str, str]]:
    if stuck.cause:
        yield "cause", stuck.cause
    if stuck.blame:
        line = f":{stuck.blame.line}" if stuck.blame.line else ""
        yield "file", f"{stuck.blame.file}{line} ({stuck.blame.path})"
    if stuck.in_the_way:
        yield "in the way", stuck.in_the_way
    word = "left" if stuck.status in LEAVES_BEHIND else "held"
    yield from ((word, each) for each in stuck.held if each != stuck.cause)
    yield "does", stuck.does
    yield from (("loses", each) for each in stuck.loses)


def _lasting(plan: Plan) -> str:
    return f"CloudFormation needs {span(plan.total)}."


def _lines_of_step(step: Step) -> Iterator[tuple[str, str]]:
    yield from (("before", each) for each in step.first)
    yield from (("in between", each) for each in step.between)
    yield from (("does", each) for each in step.does)
    yield from (("interrupts", each) for each in step.interrupts if each not in step.loses)
    yield from (("loses", each) for each in step.loses)
    yield from (("unknown", each) for each in step.unknown)
    yield from (("retained", each) for each in step.stays)
    yield "to go back", step.back
    yield from (("the next step is needed because", each) for each in step.why)
