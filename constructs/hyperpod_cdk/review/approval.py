"""Who must approve a change, and why: the reasons that no exception covers, and the first line of the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from typing import Final

from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.catalog.sentences import plural
from hyperpod_cdk.review.attention import Found, dollars
from hyperpod_cdk.review.model import Excepted, Reason, ReasonKind
from hyperpod_cdk.review.nouns import count
from hyperpod_cdk.review.review_file import Exception_, ReviewRules

_NOUNS: Final[dict[ReasonKind, tuple[str, str]]] = {
    ReasonKind.REPLACEMENT: ("replacement", "replacements"),
    ReasonKind.DELETION: ("deletion", "deletions"),
    ReasonKind.REFUSAL: ("refusal by the service", "refusals by the service"),
    ReasonKind.INTERRUPTION: ("interruption", "interruptions"),
    ReasonKind.UNKNOWN: ("unknown effect", "unknown effects"),
    ReasonKind.ACCESS: ("gain of access", "gains of access"),
    ReasonKind.PROTECTION: ("protection removed", "protections removed"),
    ReasonKind.COST: ("cost", "costs"),
    ReasonKind.PROOF: ("network proof lost", "network proofs lost"),
    ReasonKind.QUOTA: ("quota that is short", "quotas that are short"),
    ReasonKind.PLAN: ("training plan", "training plans"),
    ReasonKind.ADDRESSES: ("block without enough addresses", "blocks without enough addresses"),
    ReasonKind.REVIEW_FILE: ("change of what reviews are judged by", "changes of what reviews are judged by"),
}
_DONE: Final = {
    ReasonKind.REPLACEMENT: "replaced",
    ReasonKind.DELETION: "deleted",
    ReasonKind.INTERRUPTION: "interrupted",
}
_NONE: Final = {
    ReasonKind.UNKNOWN: "nothing is unknown about resources that contain data, nodes or an address",
    ReasonKind.ACCESS: "no high-risk access is granted",
    ReasonKind.PROTECTION: "no protection is removed",
    ReasonKind.PROOF: "no proof is lost",
}
"""Texts of the first line for kinds of which nothing was found, excepted or not."""


def judged(
    found: Iterable[Found], more: Sequence[Reason], rules: ReviewRules, on: date | None
) -> tuple[tuple[Reason, ...], tuple[Excepted, ...]]:
    """Return the reasons for which a person must approve, and those that an exception covers.

    ``more`` are reasons in addition to ``found``, which no exception covers. An exception is valid until the end of its
    last day (UTC). It covers a line about several resources only if it covers each of them.
    """
    asked: list[Reason] = []
    excepted: list[Excepted] = []
    for each in found:
        if each.kind is None:
            continue
        reason = Reason(
            kind=each.kind,
            resource=each.item.resource,
            property=each.item.property,
            sentence=each.item.message,
            causes=each.item.causes,
            approvers=rules.approvers_of(each.kind),
        )
        exception = _exception(reason, each.resources or (each.item.resource,), rules.exceptions, on)
        if exception is None:
            asked.append(reason)
            continue
        excepted.append(
            Excepted(reason=reason, because=exception.reason, owner=exception.owner, expires=exception.expires)
        )
    asked += [each.model_copy(update={"approvers": rules.approvers_of(each.kind)}) for each in more]
    return tuple(asked), tuple(excepted)


def not_answering(asked: Iterable[Reason], rules: ReviewRules, on: date | None) -> Iterator[str]:
    """Describe exceptions that concern a change that needs approval but do not cover it: expired, or of another
    property."""
    for each in rules.exceptions:
        properties = [reason.property for reason in asked if each.is_about(reason, reason.resource)]
        if on is None or not properties:
            continue
        called = f"review.yaml: the exception of {each.owner} for {each.resource} ({each.kind}) does not apply"
        if each.last_day < on:
            yield f"{called}: {each.expires} was its last day."
        elif each.property not in properties:
            found, stated = properties[0], each.property or "none"
            fix = f"write property: {found}" if found else "remove its property"
            differ = f"the reason is about {found or 'no property'}, the exception about {stated}"
            yield f"{called}: {differ}; {fix}, if that is intended."


def _exception(
    reason: Reason, resources: Sequence[str], exceptions: Iterable[Exception_], on: date | None
) -> Exception_ | None:
    if on is None:
        return None
    return next(
        (each for each in exceptions if each.last_day >= on and all(each.answers(reason, one) for one in resources)),
        None,
    )


def first_line(
    asked: Sequence[Reason],
    excepted: Sequence[Excepted],
    *,
    changes: bool,
    wrong: Sequence[str] = (),
    rules: ReviewRules,
    costs_are_known: bool = True,
) -> str:
    """Return the line that states who must approve what, or why no approval is needed.

    If none is needed, the line names only kinds of which nothing was found. ``wrong`` are failures that no approval can
    change. ``costs_are_known`` is whether everything that costs money has a known price.
    """
    failed = f"Fails, and no approval can change that: {' '.join(wrong)}" if wrong else ""
    if asked:
        by_approvers: dict[tuple[str, ...], list[Reason]] = {}
        for each in asked:
            by_approvers.setdefault(each.approvers, []).append(each)
        parts = [f"by {joined(who) if who else 'a person'}: {_counted(some)}" for who, some in by_approvers.items()]
        return f"{failed} Needs approval {'; '.join(parts)}.".lstrip()
    if failed:
        return failed
    if not changes and not excepted:
        return "Needs no approval, because no deployed resource changes."
    threshold = rules.thresholds.monthly_increase_usd
    less = f"less than {dollars(threshold, cents_from=float('inf'))} more" if threshold else "no more"
    answered = ""
    if excepted:
        owners = joined(list(dict.fromkeys(each.owner for each in excepted)))
        last = min(each.expires for each in excepted)
        answered = f" {count(len(excepted), 'reason')} {plural(len(excepted), 'is', 'are')} excepted by {owners}, "
        answered += f"until {last}."
    left = {each.reason.kind for each in excepted}
    done = [text for kind, text in _DONE.items() if kind not in left]
    parts = [f"nothing is {joined(done, last='or')}"] if done else []
    parts += [text for kind, text in _NONE.items() if kind not in left]
    if ReasonKind.COST not in left:
        priced = "" if costs_are_known else ", as far as prices are known"
        parts.append(f"it costs {less} a month{priced}")
    return f"Needs no approval, because {', '.join(parts[:-1])}, and {parts[-1]}.{answered}"


def _counted(reasons: Iterable[Reason]) -> str:
    numbers = Counter(each.kind for each in reasons)
    return joined([f"{number} {_NOUNS[kind][number > 1]}" for kind, number in numbers.items()])
