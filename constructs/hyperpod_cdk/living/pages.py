"""Drift, status and nodes as text and JSON, with their JSON Schemas."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.catalog.sentences import plural
from hyperpod_cdk.json_schema import Model
from hyperpod_cdk.living.model import (
    Attachment,
    Difference,
    Drift,
    Event,
    Extensions,
    Group,
    Handled,
    Node,
    NodeDetails,
    NodeLogs,
    Nodes,
    NodesDescribed,
    NodeWork,
    Status,
)
from hyperpod_cdk.review.nouns import count, noun
from hyperpod_cdk.review.pages.wording import WIDTH, in_columns, shortened, visible, wrapped

_LONGEST_VALUE: Final = 60


def text(found: Drift) -> str:
    """Return the report for a terminal of 80 columns; the caller adds what was not checked."""
    lines = [*wrapped(f"{found.environment}: {found.verdict}")]
    place = ""
    for each in found.differences:
        here = f"{each.stack} / {each.resource} ({noun(each.type)})"
        if here != place:
            lines += ["", *wrapped(here)]
        place = here
        lines += _difference_lines(each)
    notes = [f"note: {note}" for note in found.notes]
    if found.not_compared:
        kinds = joined([f"{kind} ({number})" for kind, number in found.not_compared.items()])
        notes.append(f"not compared: {kinds}")
    lines += ["", *(line for note in notes for line in wrapped(note))] if notes else []
    return "\n".join(visible(line) for line in lines) + "\n"


def _difference_lines(each: Difference) -> Iterator[str]:
    yield f"  {each.path or 'the resource itself'}"
    values = (("deployed", each.deployed), ("file", each.file), ("AWS has", each.actual))
    for word, value in values:
        yield f"    {word:<9} {'-' if value is None else shortened(value, _LONGEST_VALUE)}"
    if each.line:
        yield f"    line      {each.line.file}:{each.line.line} {each.line.path}"
    if each.since:
        yield f"    since     {each.since}"
    yield from wrapped(f"next      {each.next.sentence}", indent="    ", hanging="              ")
    if each.next.later:
        yield from wrapped(f"later     {each.next.later}", indent="    ", hanging="              ")


def as_json(found: Model) -> str:
    """Return a report as JSON, with the keys in the model's order and a newline at the end."""
    return found.model_dump_json(indent=2).encode("utf-8", "backslashreplace").decode("utf-8") + "\n"


def as_line(found: Model) -> str:
    """Return a report as one line of JSON."""
    return found.model_dump_json().encode("utf-8", "backslashreplace").decode("utf-8") + "\n"


def status_text(found: Status) -> str:
    """Return the cluster on one screen of 80 columns; the caller adds what was not checked."""
    lines = [*wrapped(f"{found.environment}: {found.verdict}")]
    lines += wrapped(f"failure: {found.failure}") if found.failure else []
    if found.groups:
        rows: list[tuple[str, ...]] = [("group", "type", "file", "wanted", "runs", "fails", "checks", "changes")]
        rows += [
            (
                each.name,
                _types(each),
                _number(each.in_file) if each.is_in_file else "none",
                str(each.target),
                *(_number(value) for value in (each.running, each.failing, each.checking, each.changing)),
            )
            for each in found.groups
        ]
        lines += ["", *_columns(rows)]
    for group in found.groups:
        for reason in group.reasons:
            lines += wrapped(f"{group.name}, {count(reason.nodes, 'node')}: {reason.text}")
    for plan in found.plans:
        left = "" if plan.hours_left is None else f", its nodes leave in {plan.hours_left:g} h at {plan.nodes_leave}"
        lines += wrapped(f"plan {plan.name}: {plan.status}{left}")
    for each in found.file_systems:
        size = ", capacity unknown" if each.capacity_gib is None else f", {each.capacity_gib:,} GiB"
        size = size if each.capacity_gib != 0 else ""
        lines += wrapped(
            f"file system {each.name} ({each.id}): {each.lifecycle}{size}{f'. {each.reason}' * bool(each.reason)}"
        )
    for alarm in found.alarms:
        if alarm.state != "OK":
            lines += wrapped(f"alarm {alarm.name}: {alarm.state}{f'. {alarm.reason}' * bool(alarm.reason)}")
    for team in found.teams:
        lines += wrapped(f"team {team.name}: quota of {team.quota or 'nothing'}, {team.status}")
    lines += _pods(found)
    for quota in found.quotas:
        of = f"{quota.allowed:g} (AWS's default)" if quota.is_default else f"{quota.allowed:g}"
        lines += wrapped(f"quota {quota.name}: {quota.used:g} of {of} used, {quota.left:g} left")
    for named in found.named:
        lines += wrapped(f"{named.path}: {named.message}")
    lines += [""] if found.events else []
    for event in found.events:
        lines += wrapped(_event(event))
    return "\n".join(visible(line) for line in lines) + "\n"


def _pods(found: Status) -> Iterator[str]:
    """Yield the operators with missing pods, and the number of those with all pods."""
    short = [each for each in found.operators if each.ready < each.wanted]
    for each in short:
        why = f". {each.reason}" if each.reason else ""
        told = f"operator {each.namespace}/{each.name} ({each.kind}): {each.ready} of {each.wanted} pods ready{why}"
        yield from wrapped(told)
    if found.operators:
        whole = len(found.operators) - len(short)
        yield from wrapped(f"operators: {whole} of {len(found.operators)} have all their pods ready")


def _event(event: Event) -> str:
    where = " ".join(part for part in (event.group, event.node) if part)
    return f"{event.time} {event.level} {where}: {event.text}"


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


def _types(group: Group) -> str:
    first, *others = group.instance_type.split(", ")
    return f"{first.removeprefix('ml.')}{f' +{len(others)}' if others else ''}"


def _columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield rows in columns; the first, the name of a group, is shortened if a line would be too long."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    widths[0] = min(widths[0], WIDTH - sum(widths[1:]) - 2 * (len(widths) - 1))
    for row in rows:
        name = row[0] if len(row[0]) <= widths[0] else f"{row[0][: widths[0] - 1]}…"
        cells = [name.ljust(widths[0]), row[1].ljust(widths[1])]
        cells += [cell.rjust(width) for cell, width in zip(row[2:], widths[2:], strict=True)]
        yield "  ".join(cells)


def nodes_text(found: Nodes) -> str:
    """Return a list of nodes, a line each with why it fails; the caller adds what was not checked."""
    lines = [*wrapped(f"{found.environment}: {found.verdict}")]
    if found.nodes:
        rows: list[tuple[str, ...]] = [("group", "node", "type", "status", "launched")]
        rows += [
            (each.group, each.name, each.instance_type.removeprefix("ml."), each.status, each.launched[:16])
            for each in found.nodes
        ]
        header, *told = in_columns(rows)
        lines += ["", header]
        for each, line in zip(found.nodes, told, strict=True):
            lines.append(line)
            lines += wrapped(each.message, indent="  ", hanging="  ") if each.message else []
    return "\n".join(visible(line) for line in lines) + "\n"


def nodes_described_text(found: NodesDescribed) -> str:
    """Return nodes with all that is known of each; the caller adds what was not checked."""
    lines = [*wrapped(f"{found.environment}: {found.verdict}")]
    for node in found.nodes:
        lines += ["", *wrapped(_named(node))]
        lines += [
            f"  {word:<10}  {value}"
            for word, value in (
                ("kubernetes", node.kubernetes_name),
                ("logical ID", node.logical_id),
                ("zone", node.availability_zone_id),
                ("address", node.address),
                ("capacity", _capacity(node)),
                ("launched", node.launched),
                ("software", " ".join(part for part in (node.software, node.software_status) if part)),
                ("labels", ", ".join(f"{key}={value}" for key, value in node.labels.items())),
                ("taints", ", ".join(node.taints)),
                ("shell", node.shell),
                ("log group", node.log_group),
                ("log stream", node.log_stream),
            )
            if value
        ]
        for event in node.events:
            lines += wrapped(_event(event), indent="  ", hanging="    ")
    return "\n".join(visible(line) for line in lines) + "\n"


def _capacity(node: NodeDetails) -> str:
    if not node.plan:
        return node.capacity
    type_of_aws = f" (CapacityType {node.capacity})" if node.capacity else ""
    return f"training plan {node.plan.rpartition('/')[2]} of its group{type_of_aws}"


def _named(node: Node) -> str:
    told = f"{node.status}: {node.message}" if node.message else node.status
    return f"node {node.name} of group {node.group}, {node.instance_type}: {told}"


def proposed_text(work: NodeWork) -> str:
    """Return what is to be done to nodes and its effects; the caller adds what was not checked."""
    lines = [*wrapped(f"{work.environment}: {work.verdict}"), ""]
    for node in work.nodes:
        lines += wrapped(_named(node))
        lines += wrapped(node.place, indent="  ", hanging="    ") if node.place else []
        lines += ["  only pods that are created again automatically run on it"] if node.jobs == () else []
        for job in node.jobs or ():
            lines += wrapped(f"runs {job}", indent="  ", hanging="    ")
    lines += [line for told in work.warnings for line in wrapped(told)]
    return "\n".join(visible(line) for line in lines) + "\n"


def done_text(work: NodeWork) -> str:
    """Return HyperPod's answer for each node."""
    done = {"cordon": "cordoned", "uncordon": "uncordoned"}.get(work.action, "begun")
    lines = [line for node in work.nodes for line in wrapped(f"{node.name}: {_answered(node, done)}")]
    lines += wrapped(f"{work.environment}: {work.verdict}")
    return "\n".join(visible(line) for line in lines) + "\n"


def _answered(node: Handled, done: str) -> str:
    if node.accepted:
        return done
    code = f"{node.error_code}: " if node.error_code else ""
    unknown = f"unknown whether it {'has' if done == 'begun' else 'is'} {done}"
    return f"{f'not {done}' if node.accepted is False else unknown}, {code}{node.error}"


def logs_text(found: NodeLogs) -> str:
    """Return the lines of a log, each with its time; the caller adds what was not checked."""
    lines = [f"{each.time} {visible(each.text)}" for each in found.lines]
    return "\n".join([*lines, *wrapped(visible(f"{found.environment}: {found.verdict}"))]) + "\n"


def extensions_text(found: Extensions) -> str:
    """Return the extensions of an environment's plans; the caller adds what was not checked."""
    lines = [*wrapped(f"{found.environment}: {found.verdict}")]
    for plan in found.plans:
        until = "it is too late to extend it" if plan.too_late else f"it can be extended until {plan.buy_until}"
        until = "it is unknown until when it can be extended" if plan.too_late is None else until
        lines += ["", *wrapped(f"plan {plan.name} is {plan.status} and ends at {plan.ends or 'an unknown time'}")]
        leave = f"its nodes leave at {plan.nodes_leave or 'an unknown time'}"
        lines += wrapped(f"{leave}; {until}", indent="  ", hanging="  ")
        lines += wrapped(f"these groups end with it: {'; '.join(plan.groups)}", indent="  ", hanging="  ")
        for each in plan.history or ():
            days = "an unknown time" if each.days is None else count_of_days(each.days)
            said = f"was extended at {each.at or 'an unknown time'} by {days} ({each.status}, payment {each.payment})"
            lines += wrapped(said, indent="  ", hanging="  ")
        if plan.teams:
            lines += wrapped(f"teams with quotas for its type: {'; '.join(plan.teams)}", indent="  ", hanging="  ")
        rows: list[tuple[str, ...]] = [("days", "per accelerator-hour", "fee", "then ends", "offer")]
        rows += [
            (
                "unknown" if each.days is None else f"{each.days:g}",
                f"{each.price} {each.currency}" if each.price else "unknown",
                f"{each.fee} {each.currency}" if each.fee else "unknown",
                each.ends,
                each.id,
            )
            for each in plan.extensions
        ]
        lines += in_columns(rows) if plan.extensions else []
        days = ", ".join(map(str, plan.days_unknown))
        if days:
            lines += wrapped(f"the offers for these days are unknown: {days}", indent="  ", hanging="  ")
        elif not plan.extensions:
            lines.append("  no extension is offered for these durations")
    return "\n".join(visible(line) for line in lines) + "\n"


def count_of_days(days: float) -> str:
    """Return ``1 day``, ``7 days``, ``1.5 days``."""
    return f"{days:g} {plural(days, 'day')}"


def attachment_text(found: Attachment) -> str:
    """Return the effect of a plan on a group's nodes; the caller adds what was not checked."""
    nodes = "an unknown number of nodes" if found.nodes_standing is None else count(found.nodes_standing, "node")
    now = f"{found.group} is paid by {found.before}, has {nodes} and wants {found.nodes_wanted}"
    leave = f"the plan's nodes leave at {found.nodes_leave}" if found.nodes_leave else ""
    lines = [*wrapped(f"{found.environment}: {found.verdict}"), *wrapped(f"{now}.")]
    lines += wrapped(f"{leave[0].upper()}{leave[1:]}.") if leave else []
    lines += [line for each in found.told for line in wrapped(each)]
    return "\n".join(visible(line) for line in lines) + "\n"
