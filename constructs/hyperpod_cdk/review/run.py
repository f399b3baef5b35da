"""Builds the report: what differs, what that does, and what a reviewer must look at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.config.loading import PLANS_SUFFIX, QUOTAS_SUFFIX
from hyperpod_cdk.review.approval import not_answering
from hyperpod_cdk.review.attention import grows, lifted_protection
from hyperpod_cdk.review.change_sets import Witness, with_change_sets
from hyperpod_cdk.review.changes.assets import Stored, changed_assets, not_compared
from hyperpod_cdk.review.changes.blast_radius import blast_radius
from hyperpod_cdk.review.changes.causes import with_causes
from hyperpod_cdk.review.delivery import changed_settings
from hyperpod_cdk.review.extensions import extensions
from hyperpod_cdk.review.figures.capacity import capacity
from hyperpod_cdk.review.figures.cost import cost
from hyperpod_cdk.review.figures.timeline import timeline
from hyperpod_cdk.review.model import Capacity, Reason, ReasonKind, Report, Side
from hyperpod_cdk.review.network.fabric import fabric
from hyperpod_cdk.review.nouns import count
from hyperpod_cdk.review.parameters import hidden_by_defaults, moved_defaults
from hyperpod_cdk.review.policy import policy
from hyperpod_cdk.review.review_file import NO_RULES, Decided
from hyperpod_cdk.review.rights.access import access
from hyperpod_cdk.review.standing import fingerprints
from hyperpod_cdk.review.tags import retagged
from hyperpod_cdk.review.verdict import verdict
from hyperpod_cdk.templates.assembly import EMPTY, Assembly, Stack, word_of
from hyperpod_cdk.templates.difference import apart, by_meaning, compare
from hyperpod_cdk.templates.values import plain

if TYPE_CHECKING:
    from hyperpod_cdk.catalog.prices import Prices
    from hyperpod_cdk.config import LoadedEnvironment

NOTHING_DECIDED: Final = Decided(rules=NO_RULES)

_NESTED_STACK: Final = "AWS::CloudFormation::Stack"
_LANGUAGE_EXTENSIONS: Final = "AWS::LanguageExtensions"


def review(
    base: Assembly,
    head: Assembly,
    *,
    base_side: Side,
    head_side: Side,
    base_environment: LoadedEnvironment | None = None,
    head_environment: LoadedEnvironment | None = None,
    prices: Prices | None = None,
    notes: Sequence[str] = (),
    rules: Decided = NOTHING_DECIDED,
    on: date | None = None,
    witnesses: Sequence[Witness] = (),
    reasons: Sequence[Reason] = (),
    stored: Stored | None = None,
) -> Report:
    """Return the report on deploying ``head`` over ``base``; either may be ``assembly.EMPTY``.

    The environments are those from which the assemblies were synthesized, None if only templates were given: with them
    the report names the line of the file that caused a change, and knows recorded plans. ``prices`` are the project's,
    by default those of the package. ``notes`` state what could not be read of the two sides. ``rules`` are those of
    ``review.yaml`` that apply (``review_file.decided``), ``on`` the day (UTC) on which its exceptions are judged: a
    report does not read the clock, and without a day no exception counts. ``witnesses`` are CloudFormation's own change
    sets. ``reasons`` are additional reasons for an approval, which neither side shows. ``stored`` reads assets of a
    base that is deployed.
    """
    base = apart(base, head)
    base, head = by_meaning(base, head), by_meaning(head, base)
    stays = tuple(stack for stack in base.stacks if stack.name not in head.by_name)
    changes = compare(base, head)
    radius, refused, contradictions = with_change_sets(blast_radius(base, head, changes), witnesses, base, head)
    radius = with_causes(
        radius,
        base,
        head,
        base_environment=base_environment,
        head_environment=head_environment,
    )
    of_capacity = capacity(base, head, base_environment=base_environment, head_environment=head_environment)
    # no one deletes a stack that the app no longer has: its costs continue
    of_cost = cost(
        base,
        replace(head, stacks=(*head.stacks, *stays)),
        prices=prices,
        base_environment=base_environment,
        head_environment=head_environment,
    )
    of_access = access(base, head, changes)
    of_fabric = fabric(base, head)
    of_policy = policy(base, head)
    assets = changed_assets(base, head, changes, stored)
    of_verdict = verdict(
        radius,
        capacity=of_capacity,
        cost=of_cost,
        access=of_access,
        fabric=of_fabric,
        policy=of_policy,
        word=word_of(base, head),
        protection=lifted_protection(base, head, changes, radius.resources),
        settings=[*changed_settings(base, head), *retagged(base, head, changes, radius.resources)],
        rules=rules.rules,
        reasons=[
            *reasons,
            *opaque(base, head),
            *hidden_by_defaults(base, head, radius),
            *refused,
            *rules.reasons,
            *_by_records(rules.records, of_capacity),
        ],
        on=on,
    )
    return Report(
        environment=name_of(base, head),
        base=base_side.model_copy(update={"stacks": fingerprints(base)}),
        head=head_side.model_copy(update={"stacks": fingerprints(head)}),
        verdict=of_verdict,
        blast_radius=radius,
        capacity=of_capacity,
        cost=of_cost,
        access=of_access,
        assets=assets,
        fabric=of_fabric,
        timeline=timeline(base, head, changes, radius),
        policy=of_policy,
        extensions=extensions(base, head),
        notes=tuple(
            dict.fromkeys(
                [
                    *contradictions,
                    *not_compared(assets),
                    *notes,
                    *rules.notes,
                    *not_answering(of_verdict.needs_approval, rules.rules, on),
                    *moved_defaults(base, head),
                    *_going_on(base, stays, prices),
                    *left_open(base, head),
                ]
            )
        ),
    )


def opaque(base: Assembly, head: Assembly) -> list[Reason]:
    """Return reasons for changed stacks whose template a macro rewrites: the effect on their resources is unknown."""
    found = []
    for stack in head.stacks:
        old = base.by_name.get(stack.name)
        macros = _macros(stack)
        if macros and (old is None or old.template != stack.template):
            said = (
                f"The macro {joined(macros)} changes the template during the deployment: what happens to the "
                "resources is unknown."
            )
            found.append(Reason(kind=ReasonKind.UNKNOWN, resource=stack.name, sentence=said))
        gone = [each for each in _macros(old) if each not in macros] if old is not None else []
        if gone:
            said = (
                f"The macro {joined(gone)} no longer changes the template: what it had changed, and what happens to "
                "that, is unknown."
            )
            found.append(Reason(kind=ReasonKind.UNKNOWN, resource=stack.name, sentence=said))
        found += [
            Reason(kind=ReasonKind.UNKNOWN, resource=stack.name, property=section, sentence=said)
            for section, said in _SECTIONS.items()
            if old is not None and _section(old, section) != _section(stack, section)
        ]
    return found


_SECTIONS: Final = {
    "Hooks": "The hooks of the template change: which deployments CodeDeploy creates for them, and how, is unknown.",
    "Rules": "The rules of the template change: whether CloudFormation refuses the stack's parameters is unknown.",
}
"""Sections of a template that affect how or whether it is deployed, and what is unknown if they change.

Source: CloudFormation template reference, Hooks (AWS::CodeDeploy::BlueGreen) and Rules.
"""


def _section(stack: Stack, name: str) -> dict[str, Any]:
    """Return a section without the rule with which CDK requires a newer bootstrap stack."""
    section = stack.template.get(name)
    return {key: each for key, each in section.items() if key != _BY_CDK} if isinstance(section, dict) else {}


_BY_CDK: Final = "CheckBootstrapVersion"


def _macros(stack: Stack) -> list[str]:
    """Return the macros that rewrite a template, or parts of it, in the order in which it names them."""
    named = [*_listed(stack.template.get("Transform")), *_macros_within(stack.template)]
    return list(dict.fromkeys(plain(macro) for macro in named if macro != _LANGUAGE_EXTENSIONS))


def _macros_within(value: Any) -> Iterator[Any]:
    """Return the names of the macros that a template calls with ``Fn::Transform`` in any place."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            if "Fn::Transform" in item:
                called = item["Fn::Transform"]
                yield called.get("Name") if isinstance(called, dict) else called
            pending += [each for each in item.values() if isinstance(each, (dict, list))]
        elif isinstance(item, list):
            pending += [each for each in item if isinstance(each, (dict, list))]


def _by_records(records: Sequence[str], found: Capacity) -> list[Reason]:
    """Return a reason for each record that changes together with needs that it allows: the head would approve
    itself."""
    grown = [each.name for each in found.quotas if each.result != "short" and grows(each.needed)]
    plans = [each.plan for each in found.plans if each.seats is not None and grows(each.used)]
    by_suffix = ((QUOTAS_SUFFIX, grown, "quota"), (PLANS_SUFFIX, plans, "training plan"))
    return [
        Reason(
            kind=ReasonKind.REVIEW_FILE,
            resource=record,
            sentence=f"{record} changes together with the needs that are compared with it: more is needed of "
            f"{count(len(names), noun)}, and only the changed record shows whether it suffices.",
        )
        for record in records
        for suffix, names, noun in by_suffix
        if record.endswith(suffix) and names
    ]


def _going_on(base: Assembly, stays: Sequence[Stack], prices: Prices | None) -> list[str]:
    """Return a note on the stacks that the change leaves as they are, and on their continuing costs."""
    if not stays:
        return []
    # the cost of a first deployment of these stacks alone
    monthly = cost(EMPTY, replace(base, stacks=tuple(stays)), prices=prices)
    known = monthly.monthly.after or 0
    costs = f"${known:,.2f} a month{' or more' if monthly.is_lower_bound else ''}"
    if monthly.is_lower_bound and not known:
        costs = "an unknown amount"
    names = joined([stack.name for stack in stays])
    verb, them, they = ("is", "it", "it continues") if len(stays) == 1 else ("are", "them", "they continue")
    goes_on = f"'cdk deploy' does not delete {them}, and {they} to run and cost {costs}"
    return [f"{names} {verb} no longer in the app: {goes_on}."]


def name_of(base: Assembly, head: Assembly) -> str:
    """Return the environment's name, or that of the single template if there is no environment."""
    for assembly in (head, base):
        if assembly.environment:
            return assembly.environment
    return next((stack.name for assembly in (head, base) for stack in assembly.stacks), "")


def left_open(base: Assembly, head: Assembly) -> list[str]:
    """Return notes on what templates leave open: nested stacks, macros, the account and the Region."""
    nested = sorted({f"{each.stack} / {each.name}" for side in (base, head) for each in side.of_type(_NESTED_STACK)})
    notes = [f"The template of the nested stack {name} is another file, which was not read." for name in nested]
    macros = {
        (stack.name, plain(macro))
        for side in (base, head)
        for stack in side.stacks
        for macro in _listed(stack.template.get("Transform"))
    }
    notes += [
        f"The macro {macro} changes the template of {stack} during the deployment; the result is unknown."
        for stack, macro in sorted(macros)
        if macro != _LANGUAGE_EXTENSIONS
    ]
    if head.stacks and not head.region:
        notes.append("The template names no Region, so nothing that differs between Regions is shown.")
    return notes


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
