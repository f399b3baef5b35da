"""Lays a report out: its content and order, the same for every rendering."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from hyperpod_cdk.review.changes.excerpts import IN_SENTENCE, differing
from hyperpod_cdk.review.model import (
    Access,
    AssetChange,
    Attention,
    BlastRadius,
    Capacity,
    Cause,
    Change,
    Cost,
    Effect,
    Excepted,
    Fabric,
    FabricSubject,
    Policy,
    PolicyFinding,
    PropertyEffect,
    Reason,
    Report,
    ResourceEffect,
    Shown,
    Side,
    Step,
    Timeline,
    Unpriced,
    Verdict,
)
from hyperpod_cdk.review.pages.alike import (
    Said,
    alike,
    causes_of_some,
    how_many,
    many,
    moved_alike,
    pattern,
    sentence,
    shape,
)
from hyperpod_cdk.review.pages.page import (
    ABOUT_TONES,
    FIRST_LOOK,
    KIND_TONES,
    TONES,
    Block,
    Cell,
    Column,
    Entries,
    Entry,
    Figure,
    Listing,
    Many,
    Moved,
    Page,
    Row,
    Section,
    Table,
    Tone,
    Word,
)
from hyperpod_cdk.review.pages.wording import (
    UNKNOWN,
    at_most,
    changes,
    counted,
    difference,
    money,
    number,
    place,
    span,
    unit_price,
    visible,
)

SAID_ONCE = 3
"""From this number on, a cause that all changes have is stated above them and not with each."""


MOST_FILES = 12
"""The number of an asset's files that are named; the JSON names all."""


MOST_UNPRICED = 3
"""The number of items without a price that are named next to the known part of the cost."""


def page(report: Report) -> Page:
    """Lay the report out, the most important first."""
    sections = (
        _blast_radius(report.blast_radius),
        _capacity(report.capacity),
        _cost(report.cost),
        _access(report.access),
        *_assets(report.assets),
        _fabric(report.fabric),
        _timeline(report.timeline, ends_early=_is_refused(report.blast_radius)),
        _policy(report.policy),
        *(_shown(each) for each in report.extensions),
    )
    lead = f"{counted(len(report.notes), 'thing')}, and why."
    asked = _asked(report.verdict)
    others = [each for each in report.verdict.attention if not any(each is one for _, one in asked)]
    cause = _only_cause(report.verdict.attention)
    told = Section("notes", "What could not be determined", _say(lead), _listing("", report.notes), len(report.notes))
    return Page(
        environment=visible(report.environment),
        level=str(report.verdict.level),
        tone="grave" if report.verdict.is_wrong else TONES[report.verdict.level],
        approval=visible(report.verdict.approval),
        sentence=visible(report.verdict.sentence),
        compared=(Word("Base"), *_side(report.base), Word(", head"), *_side(report.head)),
        because=tuple(_because(cause)) if cause else (),
        reasons=_entries([_reason(reason, item) for reason, item in asked], cause),
        excepted=_entries([_excepted(each, report.verdict.reviewed_on) for each in report.verdict.excepted], cause),
        attention=_entries([_Told(each) for each in others if not _is_excepted(each, report.verdict)], cause),
        figures=tuple(_figures(report)),
        sections=(*sections, told) if report.notes else sections,
    )


def _asked(verdict: Verdict) -> list[tuple[Reason, Attention | None]]:
    """Return each reason with the matching line of what to look at that has more details, if there is one."""
    left = list(verdict.attention)
    found: list[tuple[Reason, Attention | None]] = []
    for reason in verdict.needs_approval:
        item = next((each for each in left if _is_of(reason, each)), None)
        left = [each for each in left if each is not item]
        found.append((reason, item))
    return found


def _is_of(reason: Reason, item: Attention) -> bool:
    told = (item.resource, item.property, item.message, item.causes)
    return told == (reason.resource, reason.property, reason.sentence, reason.causes)


def _is_excepted(item: Attention, verdict: Verdict) -> bool:
    return any(_is_of(each.reason, item) for each in verdict.excepted)


@dataclass(frozen=True)
class _Told:
    """One entry above the sections, with the badge and the last line that only a reason or an exception has."""

    item: Attention
    badge: Word | None = None
    last: str = ""
    folded: bool = False


def _reason(reason: Reason, item: Attention | None) -> _Told:
    shown = item or Attention(
        effect=None, resource=reason.resource, property=reason.property, message=reason.sentence, causes=reason.causes
    )
    is_effect = item is not None and item.effect and item.effect is not Effect.IN_PLACE
    badge = None if is_effect else Word(str(reason.kind), "badge", KIND_TONES[reason.kind])
    return _Told(shown, badge, f"Approved by {', '.join(reason.approvers)}." if reason.approvers else "")


def _excepted(each: Excepted, on: str | None) -> _Told:
    reason = each.reason
    item = Attention(effect=None, resource=reason.resource, property=reason.property, message=reason.sentence)
    until = f"Excepted by {each.owner} until {each.expires}{f', judged on {on}' if on else ''}: {each.because}"
    return _Told(item, Word(str(reason.kind), "badge"), until, folded=True)


def _entries(told: Iterable[_Told], cause: Cause | None) -> tuple[Entry, ...]:
    """Show each, similar ones combined."""

    def said(each: _Told) -> Said:
        item = each.item
        # the sentence states whether a grant or a broken network begins or ends
        is_said = item.about in ("access", "fabric") and (item.before is None) != (item.after is None)
        return Said(
            resource=item.resource,
            property=item.property,
            sentence=item.message,
            moved=None if is_said else _moved(item.before, item.after),
            causes=tuple(line for line in item.causes if line != cause),
        )

    groups = alike(told, said, lambda each: (_shown_as(each), each.last, each.folded))
    return tuple(_entry(together[0], [said(each) for each in together]) for together in groups)


def _shown_as(told: _Told) -> Word:
    if told.badge:
        return told.badge
    item = told.item
    return _badge(item.effect) if item.effect else Word(item.about, "badge", ABOUT_TONES.get(item.about, "doubt"))


def _entry(told: _Told, together: Sequence[Said]) -> Entry:
    first = together[0]
    is_one = len(together) == 1
    # names and values of only one of them are listed below it
    are_of_one = len({each.resource for each in together}) == 1
    path = first.property if is_one else pattern(first.property)
    name: list[Word | Moved] = [Word(visible(first.resource), "code")] if are_of_one else []
    name += [Word(visible(path), "code")] if path is not None else []
    name += [] if is_one else [Word(how_many(together), "badge")]
    lines: list[Cell | Many] = [_say(sentence(together))] if first.sentence.strip() else []
    moved = moved_alike(together)
    lines += [(moved,)] if moved else []
    lines += [] if is_one else [many(together)]
    if len({each.causes for each in together}) == 1:
        lines += _causes(first.causes)
    else:
        lines.append(causes_of_some(together))
    lines += [_say(told.last)] if told.last else []
    return Entry(_shown_as(told), tuple(name), tuple(lines), folded=told.folded, number=len(together))


def _figures(report: Report) -> Iterable[Figure]:
    nodes = [each.nodes for each in report.capacity.groups]
    accelerators = [each.accelerators for each in report.capacity.groups]
    yield Figure(f"Nodes{_at_least(nodes)}", (_count(_sum(nodes)),))
    yield Figure(f"Accelerators{_at_least(accelerators)}", (_count(_sum(accelerators)),))
    title = f"A month{' at least' if report.cost.is_lower_bound else ''}"
    yield Figure(title, _headline(report.cost, most=1), is_cost=True)
    added = sum(each.change == "added" and each.effect == "Allow" for each in report.access.grants)
    yield Figure("Grants added", _say(f"{added:,}"))
    results = [_result(each) for each in report.fabric.subjects]
    doubt = f", {results.count(UNKNOWN):,} {UNKNOWN}" if UNKNOWN in results else ""
    yield Figure("Networks broken", _say(f"{results.count('broken'):,} of {len(results):,}{doubt}"))
    lasts = at_most(report.timeline.total) if report.timeline.steps else "none"
    yield Figure("Deployment", _say("refused" if _is_refused(report.blast_radius) else lasts))


def _is_refused(blast: BlastRadius) -> bool:
    """Whether the service refuses a part of it, so that the deployment fails."""
    return any(
        each.effect is Effect.REFUSED or any(one.effect is Effect.REFUSED for one in each.properties)
        for each in blast.resources
    )


def _side(side: Side) -> Cell:
    words = [Word(visible(side.label), "code")]
    if side.commit and side.commit != side.label:
        words += [Word("at commit"), Word(visible(side.commit), "code")]
    if side.environment_file:
        words += [Word("with"), Word(visible(side.environment_file), "code")]
    return tuple(words)


def _only_cause(items: Iterable[Attention]) -> Cause | None:
    """Return the line that caused every change of a resource, if there is one and it would be repeated."""
    causes = [each.causes for each in items if each.effect]
    if len(causes) < SAID_ONCE or len(causes[0]) != 1 or any(each != causes[0] for each in causes):
        return None
    return causes[0][0]


def _because(cause: Cause) -> Iterable[Word | Moved]:
    yield from (Word("Every resource below changes because of"), Word(visible(place(cause)), "code"))
    moved = _moved(cause.before, cause.after)
    if moved:
        yield moved


def _causes(causes: Iterable[Cause]) -> Iterable[Cell]:
    for cause in causes:
        words: list[Word | Moved] = [Word("Caused by"), Word(visible(place(cause)), "code")]
        moved = _moved(cause.before, cause.after)
        yield (*words, moved) if moved else tuple(words)


def _moved(before: str | None, after: str | None) -> Moved | None:
    # a reference to a replaced resource is unchanged as text, and the sentence next to it states what happens to that
    if before == after is None or (before is not None and after == f"{before} ({Effect.REPLACED})"):
        return None
    return Moved(None if before is None else visible(before), None if after is None else visible(after))


def _badge(effect: Effect) -> Word:
    return Word(str(effect), "badge", TONES[effect])


def _blast_radius(blast: BlastRadius) -> Section:
    named = [f"{effect} {blast.counts[effect]:,}" for effect in Effect if blast.counts.get(effect)]
    lead = f"Resources: {', '.join(named)}." if named else "No resource changes."
    if blast.schemas_as_of:
        lead += f" Decided by the CloudFormation schemas of {blast.schemas_as_of}."
    blocks: list[Block] = []
    if blast.resources:
        blocks.append(Entries("Resources", tuple(_resources(blast.resources))))
    if blast.left_behind:
        rows = tuple(
            Row(
                (
                    _code(f"{each.stack} / {each.name}"),
                    _code(each.type),
                    _say(each.why),
                    _say({True: "yes", False: "no", None: UNKNOWN}[each.costs_money]),
                )
            )
            for each in blast.left_behind
        )
        columns = (Column("resource"), Column("type"), Column("why it stays"), Column("costs money"))
        blocks.append(Table("Left behind in the account", columns, rows))
    return Section("blast-radius", "Blast radius", _say(lead), tuple(blocks), len(blast.resources))


def _resources(resources: Iterable[ResourceEffect]) -> Iterator[Entry]:
    """Show each, combined if the same happens for the same changes."""

    def beside(each: ResourceEffect) -> object:
        told = tuple((shape(_property(each, one)), one.effect, one.source) for one in each.properties)
        return each.effect, each.type, each.stateful, told

    for together in alike(resources, _resource, beside):
        yield _changed(together)


def _resource(resource: ResourceEffect) -> Said:
    ends = {
        each
        for one in resource.properties
        for each in (one.before, one.after, *differing(one.before, one.after, IN_SENTENCE))
    }
    names = frozenset(filter(None, ends))
    return Said(f"{resource.stack} / {resource.name}", None, resource.summary, causes=resource.causes, names=names)


def _property(resource: ResourceEffect, change: PropertyEffect) -> Said:
    # the cause of the resource's change is stated below it
    return Said(f"{resource.stack} / {resource.name}", change.path, change.reason, _moved(change.before, change.after))


def _changed(together: Sequence[ResourceEffect]) -> Entry:
    """Show one resource, or many similar ones with all of their changes."""
    first, told = together[0], [_resource(each) for each in together]
    is_one = len(together) == 1
    name: list[Word | Moved] = [Word(visible(told[0].resource), "code")] if is_one else []
    name.append(Word(visible(first.type), "faint"))
    name += [] if is_one else [Word(how_many(told), "badge")]
    if first.stateful:
        name.append(Word("stateful", "badge"))
    # the values that distinguish each are next to its properties
    summary = sentence(told)
    told = [replace(each, sentence=summary) for each in told]
    changed = [line for places in _properties(first) for line in _lines(together, places)]
    has_one_cause = len({each.causes for each in together}) == 1
    are_named = has_one_cause and any(isinstance(line, Many) for line in changed)
    lines: list[Cell | Many] = [_say(summary), *([] if is_one or are_named else [many(told)]), *changed]
    if has_one_cause:
        lines += _causes(first.causes)
    else:
        lines.append(causes_of_some(told))
    return Entry(
        _badge(first.effect), tuple(name), tuple(lines), folded=first.effect not in FIRST_LOOK, number=len(together)
    )


def _properties(resource: ResourceEffect) -> Iterator[list[int]]:
    """Return the places of the changed properties, similar items combined."""

    def beside(place_: int) -> object:
        return resource.properties[place_].effect, resource.properties[place_].source

    return alike(range(len(resource.properties)), lambda each: _property(resource, resource.properties[each]), beside)


def _lines(resources: Sequence[ResourceEffect], places: Sequence[int]) -> Iterator[Cell | Many]:
    """Return what the properties at these places become, for all of the resources."""
    told = [_property(each, each.properties[at]) for each in resources for at in places]
    first = resources[0].properties[places[0]]
    paths = {each.property for each in told}
    words: list[Word | Moved] = [Word(visible(first.path if len(paths) == 1 else pattern(first.path) or ""), "code")]
    words.append(_badge(first.effect))
    words += [] if len(places) == 1 else [Word(how_many(told), "badge")]
    moved = moved_alike(told)
    words += [moved] if moved else []
    words.append(Word(visible(sentence(told))))
    words += [Word(visible(first.source), "source")] if first.source else []
    yield tuple(words)
    if len({(each.property, each.moved, each.sentence) for each in told}) > 1:
        yield many(told)


def _capacity(capacity: Capacity) -> Section:
    groups = capacity.groups
    counted_by = {
        "nodes": [each.nodes for each in groups],
        "accelerators": [each.accelerators for each in groups],
        "EFA interfaces": [each.efa_interfaces for each in groups],
    }
    lead: list[Word | Moved] = []
    for title, numbers in counted_by.items():
        said = f"{title}{_at_least(numbers)}"
        lead += [Word(f", {said}" if lead else f"{said[0].upper()}{said[1:]}"), _count(_sum(numbers))]
    blocks: list[Block] = []
    if groups:
        rows = [
            _capacity_row(
                (
                    _code(each.name),
                    _codes(each.instance_types),
                    _codes(each.zone_ids),
                    _say(each.capacity),
                    _say(each.accelerator or "none"),
                ),
                (each.nodes, each.accelerators, each.efa_interfaces),
            )
            for each in groups
        ]
        blocks.append(
            _table("Instance groups", ("group", "type", "zone", "capacity", "accelerator", *_numbers(counted_by)), rows)
        )
    if capacity.totals:
        rows = [
            _capacity_row(
                (_code(each.instance_type), _code(each.zone_id)), (each.nodes, each.accelerators, each.efa_interfaces)
            )
            for each in capacity.totals
        ]
        blocks.append(_table("By type and zone", ("type", "zone", *_numbers(counted_by)), rows))
    blocks += [*_plans(capacity), *_blocks(capacity), *_quotas(capacity), *_listing("Notes", capacity.notes)]
    told = tuple(lead) if groups else _say("There is no instance group.")
    return Section("capacity", "Capacity", told, tuple(blocks), len(groups))


def _capacity_row(cells: tuple[Cell, ...], numbers: tuple[Change, ...]) -> Row:
    return Row((*cells, *((_count(each),) for each in numbers)), any(changes(each) for each in numbers))


def _plans(capacity: Capacity) -> Iterable[Block]:
    rows = [
        Row(
            (
                _code(each.plan),
                _code(each.instance_type),
                _part(each.used, each.seats),
                _code(each.recorded_on) if each.recorded_on else _say("never"),
                (Word("problem", "badge", "grave"), Word(visible(each.problem))) if each.problem else _say("none"),
            ),
            changes(each.used) or each.problem is not None,
        )
        for each in capacity.plans
    ]
    if rows:
        yield _table(
            "Training plans", ("plan", "type", Column("instances used", is_number=True), "recorded", "problem"), rows
        )


def _blocks(capacity: Capacity) -> Iterable[Block]:
    rows = [
        Row(
            (
                _code(each.subnet),
                _code(each.cidr),
                _code(each.zone_id),
                _part(each.used, each.usable),
                _say(each.note),
            ),
            changes(each.used),
        )
        for each in capacity.blocks
    ]
    if rows:
        yield _table("Addresses", ("subnet", "block", "zone", Column("used", is_number=True), "note"), rows)


def _quotas(capacity: Capacity) -> Iterable[Block]:
    tones: dict[str, Tone] = {"short": "grave", UNKNOWN: "doubt", "enough": "good"}
    ordered = sorted(capacity.quotas, key=lambda each: list(tones).index(each.result))
    rows = [
        Row(
            (
                (Word(each.result, "badge", tones[each.result]),),
                (Word(visible(each.name)), *([Word(visible(each.code), "code")] if each.code else [])),
                (_count(each.needed),),
                _say(UNKNOWN if each.recorded is None else number(each.recorded)),
                _say(each.recorded_on or ("" if each.recorded is None else "AWS's default")),
            ),
            changes(each.needed) or each.result != "enough",
        )
        for each in ordered
    ]
    if rows:
        numbers = (Column("needed", is_number=True), Column("quota", is_number=True))
        yield _table("Quotas", ("result", "quota of", *numbers, "recorded"), rows)


def _cost(cost: Cost) -> Section:
    ending = ", at least." if cost.is_lower_bound else "."
    lead: list[Word | Moved] = [*_headline(cost, "a month"), Word(ending)]
    region = f" in {cost.region}" if cost.region else ""
    lead.append(Word(visible(f"Prices{region} as of {cost.prices_as_of or UNKNOWN}.")))
    blocks: list[Block] = []
    if cost.lines:
        ordered = sorted(cost.lines, key=lambda each: -abs(difference(each.monthly) or 0))
        rows = [
            Row(
                (
                    _code(each.resource),
                    _say(each.what),
                    (Word(UNKNOWN, "badge", "doubt"),)
                    if each.unit_price is None
                    else (Word(unit_price(each.unit_price), "amount"), Word(visible(f"per {each.unit}"))),
                    (_dollars(each.monthly),),
                    _say("; ".join(filter(None, (each.note, each.missing)))),
                ),
                changes(each.monthly) or changes(each.quantity),
            )
            for each in ordered
        ]
        columns = ("resource", "what", Column("price", is_number=True), Column("a month", is_number=True), "note")
        blocks.append(_table("By resource", columns, rows))
    if cost.unpriced:
        rows = [
            Row(
                (_say(each.what), (_count(each.quantity),), _say(each.unit), _say(each.missing)), changes(each.quantity)
            )
            for each in cost.unpriced
        ]
        heads = ("what", Column("quantity", is_number=True), "unit", "what is missing")
        blocks.append(_table("Without a known price", heads, rows))
    if cost.plans:
        rows = [
            Row(
                (
                    _code(each.plan),
                    (_dollars(each.fee),),
                    _say(f"{each.starts or UNKNOWN} to {each.ends or UNKNOWN}"),
                    (_dollars(each.environment_during_window),),
                    _say(each.note),
                ),
                changes(each.fee) or changes(each.environment_during_window),
            )
            for each in cost.plans
        ]
        numbers = (
            Column("upfront fee, once", is_number=True),
            "window",
            Column("everything else meanwhile", is_number=True),
        )
        blocks.append(_table("Training plans", ("plan", *numbers, "note"), rows))
    blocks += _listing("Without a known price, or billed by usage", cost.unknown)
    blocks += _listing("Notes", cost.notes)
    return Section("cost", "Cost", tuple(lead), tuple(blocks), len(cost.lines))


def _access(access: Access) -> Section:
    added = sum(each.change == "added" for each in access.grants)
    removed = len(access.grants) - added
    reach = f", {counted(len(access.reach), 'change')} of network reach" if access.reach else ""
    lead: list[Word | Moved] = [
        Word(f"{counted(added, 'grant')} added, {removed:,} removed{reach}; statements with a wildcard"),
        _count(access.wildcards),
    ]
    blocks: list[Block] = []
    for change in ("added", "removed"):
        rows = [
            Row(
                (
                    _flags(each.change, ("wildcard", each.is_wildcard), ("deny", each.effect == "Deny")),
                    _say(each.kind),
                    (Word(visible(each.sentence)),),
                    _code(f"{each.stack} / {each.logical_id}"),
                )
            )
            for each in sorted(access.grants, key=lambda each: not each.is_wildcard)
            if each.change == change
        ]
        if rows:
            blocks.append(_table(f"Grants {change}", ("change", "kind", "who can do what to which", "where"), rows))
    rows = [
        Row(
            (
                _flags(each.change, ("any address", each.is_world)),
                _say(each.sentence),
                _code(f"{each.stack} / {each.logical_id}"),
            )
        )
        for each in sorted(access.reach, key=lambda each: (each.change != "added", not each.is_world))
    ]
    if rows:
        blocks.append(_table("Network reach", ("change", "what reaches what", "where"), rows))
    blocks += _listing("Notes", access.notes)
    return Section("access", "Access", tuple(lead), tuple(blocks), len(access.grants) + len(access.reach))


def _assets(assets: Sequence[AssetChange]) -> Iterator[Section]:
    """Return no section if no resource gets other files: most changes concern only the templates."""
    if not assets:
        return
    rows = [
        Row((_say(each.kind), _codes(each.used_by), _codes(_few(each.files or ())) if each.files else _say(each.note)))
        for each in assets
    ]
    lead = (
        f"{counted(len(assets), 'asset')} that resources get in addition. The section about access shows the "
        "permissions of the code."
    )
    table = _table("Files", ("what", "which resources get it", "what differs"), rows)
    yield Section("assets", "Code and files", _say(lead), (table,), len(assets))


def _few(files: Sequence[str]) -> list[str]:
    more = len(files) - MOST_FILES
    return list(files) if more <= 1 else [*files[:MOST_FILES], f"{more} more"]


def _flags(change: str, *flags: tuple[str, bool]) -> Cell:
    tone: Tone = "warning" if change == "added" else "calm"
    marks = tuple(Word(name, "badge", "grave" if change == "added" else "plain") for name, is_so in flags if is_so)
    return (Word(change, "badge", tone), *marks)


_PROOF_TONES: dict[str, Tone] = {"broken": "grave", UNKNOWN: "doubt", "holds": "good"}
_PROOF_WORDS = {"broken": "broken", UNKNOWN: UNKNOWN, "holds": "proved"}


def _fabric(fabric: Fabric) -> Section:
    results = [_result(each) for each in fabric.subjects]
    each = counted(len(results), "instance group or file system", "instance groups and file systems")
    named = [f"{word} for {results.count(result):,}" for result, word in _PROOF_WORDS.items() if result in results]
    lead = f"The network of {each}: {', '.join(named)}."
    ordered = sorted(fabric.subjects, key=lambda each: list(_PROOF_TONES).index(_result(each)))
    entries = Entries("Proofs", tuple(_subject(each) for each in ordered))
    if not results:
        return Section("fabric", "EFA network proof", _say("There is no instance group and no file system."))
    return Section("fabric", "EFA network proof", _say(lead), (entries,), len(results))


def _result(subject: FabricSubject) -> str:
    found = {proof.result for proof in subject.proofs}
    return next((result for result in _PROOF_TONES if result in found), UNKNOWN)


def _subject(subject: FabricSubject) -> Entry:
    result = _result(subject)
    name: list[Word | Moved] = [Word(visible(subject.subject), "code"), Word(subject.kind, "faint")]
    name.append(Word(visible(f"{subject.stack} / {subject.logical_id}"), "faint"))
    lines: list[Cell] = []
    for proof in sorted(subject.proofs, key=lambda each: list(_PROOF_TONES).index(each.result)):
        newly = [Word("held before", "badge", "grave")] if proof.name in subject.newly_broken else []
        words = (Word(proof.result, "badge", _PROOF_TONES[proof.result]), *newly, Word(visible(proof.name), "strong"))
        lines.append((*words, Word(visible(proof.detail))))
    return Entry(Word(result, "badge", _PROOF_TONES[result]), tuple(name), tuple(lines), folded=result == "holds")


def _timeline(timeline: Timeline, *, ends_early: bool) -> Section:
    if not timeline.steps:
        return Section("timeline", "Timeline", _say("Nothing to deploy."), tuple(_listing("Notes", timeline.notes)))
    total = timeline.total
    lead = f"{at_most(total)} for {counted(len(timeline.steps), 'step')}, from published typical durations"
    lead += f" as of {timeline.durations_as_of}." if timeline.durations_as_of else "."
    if at_most(total) != span(total):
        # if a range is wide, a few steps cause it
        wide = max(timeline.steps, key=lambda each: (each.is_critical, each.lasts.high - each.lasts.low))
        lead += f" {visible(f'{wide.stack} / {wide.name}')} alone lasts {span(wide.lasts)}."
    if ends_early:
        lead += " The deployment fails: the service refuses a part of the change."
    blocks: list[Block] = []
    if timeline.critical_path:
        items = tuple(_code(each) for each in timeline.critical_path)
        blocks.append(
            Listing("Critical path: the deployment takes longer if one of these steps does", items, is_ordered=True)
        )
    ordered = sorted(timeline.steps, key=lambda each: not each.is_critical)
    blocks.append(
        _table(
            "Steps",
            ("step", "action", "starts after", "lasts", "source of the duration"),
            [_step(each) for each in ordered],
        )
    )
    blocks.append(_failures(timeline))
    blocks += _listing("Notes", timeline.notes)
    return Section("timeline", "Timeline", _say(lead), tuple(blocks), len(timeline.steps))


def _failures(timeline: Timeline) -> Table:
    """Return what exists if a step fails, once for all steps with the same text."""
    names: dict[str, list[str]] = {}
    for step in timeline.steps:
        names.setdefault(step.if_it_fails, []).append(f"{step.stack} / {step.name}")
    rows = [
        Row(((*_code(first), *([Word(f"and {counted(len(others), 'other step')}")] if others else [])), _say(text)))
        for text, (first, *others) in names.items()
    ]
    return _table("If a step fails", ("step", "what there is by then"), rows)


def _step(step: Step) -> Row:
    tones: dict[str, Tone] = {"replace": "grave", "delete": "grave", "update": "calm", "create": "good"}
    critical = [Word("critical", "badge", "warning")] if step.is_critical else []
    return Row(
        (
            (Word(visible(f"{step.stack} / {step.name}"), "code"), *critical),
            (Word(step.action, "badge", tones[step.action]),),
            _say(span(step.starts)),
            _say(span(step.lasts)),
            (Word(visible(step.source), "source" if step.source.startswith("https://") else "faint"),),
        ),
        step.is_critical,
    )


def _policy(policy: Policy) -> Section:
    order = ("new", "standing", "resolved")
    named = [
        f"{count:,} {status}" for status in order if (count := sum(each.status == status for each in policy.findings))
    ]
    suppressed = sum(each.suppressed is not None for each in policy.findings)
    lead = f"{', '.join(named)}" if named else "No finding"
    lead += f"; {suppressed:,} of them suppressed with a reason." if suppressed else "."
    lead += " Not everything was checked." if policy.skipped else ""
    ordered = sorted(
        policy.findings,
        key=lambda each: (each.suppressed is not None, order.index(each.status), each.severity != "error"),
    )
    blocks: list[Block] = []
    if ordered:
        columns = ("status", "severity", "rule", "resource", "finding")
        blocks.append(_table("Findings", columns, [_finding(each) for each in ordered]))
    blocks += _listing("Not checked", policy.skipped)
    return Section("policy", "Policy", _say(lead), tuple(blocks), len(ordered))


def _shown(shown: Shown) -> Section:
    changed = [each for each in shown.rows if shown.base_is_known and each.before != each.after]
    told = f"{len(changed):,} of {counted(len(shown.rows), 'value')} changed."
    if not shown.base_is_known:
        told = "The deployed stacks contain no values of extensions, so nothing is compared."
    rows = [
        Row(
            (_code(each.what), (Moved(each.before, each.after),) if each in changed else _say(each.after or "")),
            each in changed,
        )
        for each in shown.rows
    ]
    blocks = (_table("Values", ("what", "value"), rows),) if rows else ()
    lead = (Word(visible(shown.says)), Word(told)) if shown.says else _say(told)
    title = shown.extension.replace("_", " ").capitalize()
    return Section(f"extension-{shown.extension}", visible(title), lead, blocks, len(changed))


def _finding(finding: PolicyFinding) -> Row:
    tones: dict[str, Tone] = {"new": "warning", "standing": "plain", "resolved": "good"}
    counts = finding.status == "new" and finding.suppressed is None
    tone: Tone = "grave" if counts and finding.severity == "error" else tones[finding.status]
    return Row(
        (
            (Word(finding.status, "badge", tone),),
            _say(finding.severity),
            _code(finding.rule),
            _code(finding.resource),
            (
                Word(visible(finding.message)),
                *(
                    [Word("suppressed", "badge"), Word(visible(finding.suppressed))]
                    if finding.suppressed is not None
                    else []
                ),
            ),
        ),
        finding.status == "new",
    )


def _table(title: str, columns: Sequence[str | Column], rows: Iterable[Row]) -> Table:
    # rows that the change affects are first; Python's sort keeps the order otherwise
    ordered = sorted(rows, key=lambda row: not row.changes)
    return Table(title, tuple(Column(each) if isinstance(each, str) else each for each in columns), tuple(ordered))


def _numbers(titles: Iterable[str]) -> tuple[Column, ...]:
    return tuple(Column(each, is_number=True) for each in titles)


def _listing(title: str, sentences: Iterable[str]) -> tuple[Listing, ...]:
    items = tuple(_say(each) for each in sentences)
    return (Listing(title, items),) if items else ()


def _say(text: str) -> Cell:
    return (Word(visible(text)),)


def _code(text: str) -> Cell:
    return (Word(visible(text), "code"),)


def _codes(texts: Iterable[str]) -> Cell:
    return tuple(Word(visible(each), "code") for each in texts) or (Word(UNKNOWN),)


def _part(used: Change, whole: int | None) -> Cell:
    if used.before is None and used.after is None and whole is None:
        return _say(UNKNOWN)
    return (_count(used), Word(f"of {UNKNOWN if whole is None else number(whole)}"))


def _sum(numbers: Sequence[Change]) -> Change:
    """Add what is known on both sides: a number that is known on one only would look like a change.

    Unknown if nothing is.
    """
    known = _known(numbers)
    if numbers and not known:
        return Change(before=None, after=None)
    return Change(before=sum(before for before, _ in known), after=sum(after for _, after in known))


def _known(numbers: Iterable[Change]) -> list[tuple[float, float]]:
    return [(each.before, each.after) for each in numbers if each.before is not None and each.after is not None]


def _at_least(numbers: Sequence[Change]) -> str:
    return " at least" if 0 < len(_known(numbers)) < len(numbers) else ""


def _count(change: Change) -> Moved:
    before, after = (UNKNOWN if each is None else number(each) for each in (change.before, change.after))
    more = difference(change)
    return Moved(before, after, "number", "" if not more else f"{'+' if more > 0 else ''}{number(more)}")


def _headline(cost: Cost, period: str = "", *, most: int = MOST_UNPRICED) -> Cell:
    """Return the known part of the cost, and next to it what it does not contain, of ``most`` things with
    quantities."""
    words: list[Word | Moved] = [_dollars(cost.monthly, period)]
    shown = sorted(cost.unpriced, key=lambda each: (not changes(each.quantity), each.kind != "nodes"))
    for each in shown[:most]:
        words += [Word("+"), _quantity(each)]
    if len(shown) > most:
        words.append(Word(f"+ {counted(len(shown) - most, 'other thing')}"))
    return (*words, Word("without a known price")) if shown else tuple(words)


def _quantity(each: Unpriced) -> Moved:
    unit = f"{each.unit} of {each.what}" if each.unit not in ("", "instance") else f"x {each.what}"
    return replace(_count(each.quantity), difference="", unit=visible(unit))


def _dollars(change: Change, period: str = "") -> Moved:
    more = difference(change)
    exact = max(abs(each) for each in (change.before or 0, change.after or 0)) < 100
    # two amounts that differ must not read the same
    cents = None if not more else exact or abs(more) < 100
    before, after = (UNKNOWN if each is None else money(each, cents=cents) for each in (change.before, change.after))
    sign = "+" if more and more > 0 else ""
    return Moved(before, after, "amount", f"{sign}{money(more, cents=cents)}" if more else "", period)
