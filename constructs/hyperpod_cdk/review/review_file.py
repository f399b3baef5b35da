"""``review.yaml`` next to ``environments/``: thresholds, who approves what, and exceptions that expire."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import BeforeValidator, ConfigDict, Strict, WithJsonSchema

from hyperpod_cdk.catalog.prices import MAX_BYTES as MOST_BYTES_OF_PRICES
from hyperpod_cdk.catalog.prices import Prices, PricesError, read_content, read_prices
from hyperpod_cdk.catalog.rules import Pattern
from hyperpod_cdk.config import documents, judged_by
from hyperpod_cdk.config.documents import DocumentError, Said
from hyperpod_cdk.config.section import Check, Section, like
from hyperpod_cdk.config.source import MAX_BYTES, Ambiguous, Wording
from hyperpod_cdk.file_reading import read_bytes
from hyperpod_cdk.findings import Severity
from hyperpod_cdk.json_schema import as_text, schema_of_file
from hyperpod_cdk.review.attention import MONTHLY_INCREASE_USD
from hyperpod_cdk.review.model import Reason, ReasonKind

FILE: Final = judged_by.REVIEW
"""Name of the file, in the project's root."""

LONGEST_DAYS: Final = 366
"""An exception is valid for at most this number of days from the day of the review on: it is reviewed once a year."""

_LEAST_NAMED: Final = 8
"""The least number of characters besides ``*`` that a pattern has of a sentence, and of a resource's own name."""

_LEAST_OF_STACK: Final = 4
"""The least number of characters besides ``*`` that a pattern has of the stack of a resource."""

_ALWAYS: Final = (judged_by.REVIEW, judged_by.PRICES)
"""What counts in every review; records of plans and quotas count if a need grows."""

WORDING: Final = Wording(
    noun="review",
    a_file="a review.yaml",
    example="thresholds: {monthly_increase_usd: 1000}",
    when_empty="write thresholds, approvers or exceptions, or delete the file",
    when_missing="write it, or continue without it: then the built-in thresholds apply",
)

_IN: Final = " / "
"""The separator of a stack and the name of a resource in it."""

_GIT_SECONDS: Final = 60
_SHOWN: Final = 3
"""Number of errors of the base's file that are shown."""

Kind = Literal[
    "replacement",
    "deletion",
    "refusal",
    "interruption",
    "unknown",
    "access",
    "protection",
    "cost",
    "proof",
    "quota",
    "plan",
    "addresses",
    "review",
]
"""The words of ``model.ReasonKind``."""

LABEL: Final = Pattern(
    regex=r"[A-Za-z0-9](?:[A-Za-z0-9 _./@-]*[A-Za-z0-9_./@-])?",
    maximum=64,
    describes="at most 64 letters, digits, blanks and _ . / @ -, a letter or a digit first, no blank last",
    example="security",
)
_LONGEST_TEXT: Final = 500
Label = Annotated[str, like(LABEL)]
_MOST_USD: Final = 1_000_000_000


def _dollars_problem(value: float, key: str) -> str | None:
    if 0 <= value <= _MOST_USD:
        return None
    return f"must be from 0 to {_MOST_USD} US dollars, got {value:.15g}; set {key}: {MONTHLY_INCREASE_USD:g}"


def _text_problem(value: str, key: str) -> str | None:
    if len(value) > _LONGEST_TEXT:
        return f"must have at most {_LONGEST_TEXT} characters, got {len(value)}; shorten {key}"
    return None if value.strip() else f"must not be empty, got {'blanks' if value else 'nothing'}; write {key}"


Text = Annotated[str, Check(_text_problem, "length", {"minLength": 1, "maxLength": _LONGEST_TEXT, "pattern": r"\S"})]
Dollars = Annotated[float, Check(_dollars_problem, "bounds", {"minimum": 0, "maximum": _MOST_USD})]


_DAY: Final = re.compile("^[0-9]{4}-[0-9]{2}-[0-9]{2}$")


def _written(value: object) -> object:
    # YAML 1.1 reads a date where 1.2 reads text: here it is the text as written
    return value.text if isinstance(value, Ambiguous) and value.reading == "a date" else value


Day = Annotated[str, BeforeValidator(_written), WithJsonSchema({"type": "string", "pattern": _DAY.pattern})]


Labels = Annotated[tuple[Label, ...], Strict(strict=False)] | None


class _Section(Section):
    model_config: ClassVar[ConfigDict] = ConfigDict(use_attribute_docstrings=True)


class Thresholds(_Section):
    """Amounts from which on money needs approval."""

    monthly_increase_usd: Dollars = MONTHLY_INCREASE_USD
    """US dollars a month more, as far as prices are known, that need approval; also a training plan's upfront fee."""


class Approvers(_Section):
    """Who approves which kind of reason: teams or people, as labels for the pipelines."""

    replacement: Labels = None
    deletion: Labels = None
    refusal: Labels = None
    interruption: Labels = None
    unknown: Labels = None
    access: Labels = None
    protection: Labels = None
    cost: Labels = None
    proof: Labels = None
    quota: Labels = None
    plan: Labels = None
    addresses: Labels = None
    review: Labels = None


class Exception_(_Section):  # noqa: N801 - "Exception" is Python's
    """One reason that needs no approval until a day."""

    kind: Kind
    """The kind of the reason, as in the report. A change of what reviews are judged by cannot be excepted."""
    resource: Text
    """The resource as in the report (``prod-hyperpod / Cluster``); ``*`` is any text of the stack or the name."""
    property: Text | None = None
    """The property as in the report (``InstanceGroups[train].InstanceCount``), if it has one."""
    sentence: Text
    """The sentence as in the report; ``*`` is a name that the resource has in it, and nothing else."""
    reason: Text
    """Why no approval is needed."""
    owner: Label
    """Who is responsible for it."""
    expires: Day
    """The last day on which it is valid, in UTC, such as 2027-03-31."""

    @cached_property
    def last_day(self) -> date:
        """The last day on which it is valid. Raises ValueError for one that the calendar does not have."""
        if not _DAY.fullmatch(self.expires):
            raise ValueError(self.expires)
        return date.fromisoformat(self.expires)

    def answers(self, reason: Reason, resource: str) -> bool:
        """Whether it is about this reason, for this one of its resources.

        Its author has seen one reason: its effect and property are fixed. Only names may differ.
        """
        return self.property == reason.property and self.is_about(reason, resource)

    def is_about(self, reason: Reason, resource: str) -> bool:
        """Whether it would cover the reason if it were about the same property."""
        return (
            self.kind == reason.kind.value
            and all(map(_matches, *_both(self.resource, resource)))
            and _matches_text(self.sentence, reason.sentence, resource)
        )


class ReviewRules(_Section):
    """The settings of a project for its reviews."""

    thresholds: Thresholds = Thresholds()
    """Amounts from which on money needs approval."""
    approvers: Approvers = Approvers()
    """Who approves which kind of reason: teams or people, as labels for the pipelines."""
    default_approvers: Annotated[tuple[Label, ...], Strict(strict=False)] = ()
    """Who approves every kind that ``approvers`` does not name."""
    exceptions: Annotated[tuple[Exception_, ...], Strict(strict=False)] = ()
    """Reasons that need no approval, each with its reason, owner and last day."""

    def approvers_of(self, kind: ReasonKind) -> tuple[str, ...]:
        """Return who approves a kind of reason, empty if the file names no one."""
        found: tuple[str, ...] | None = getattr(self.approvers, kind.value)
        return tuple(dict.fromkeys(self.default_approvers if found is None else found))


NO_RULES: Final = ReviewRules()
"""What applies without a ``review.yaml``."""


@dataclass(frozen=True, kw_only=True)
class Decided:
    """The rules of a review, and findings about the two sides' files.

    ``reasons`` need approval whatever the rules are: that a file changes, or that the base's cannot be read. ``prices``
    are those to use, None for those of the package. ``records`` are the changed records of plans and quotas, with which
    growing needs are not proven to fit.
    """

    rules: ReviewRules
    prices: Prices | None = None
    reasons: tuple[Reason, ...] = ()
    notes: tuple[str, ...] = ()
    records: tuple[str, ...] = ()


def read_rules(path: Path, *, text: str | None = None, on: date | None = None) -> ReviewRules:
    """Read a ``review.yaml``; ``text`` is read instead of its content.

    ``on`` is the day from which on an exception may be valid for at most ``LONGEST_DAYS``. Raises DocumentError with
    all errors.
    """
    source = documents.open_source(path, WORDING, text=text)
    rules, said = documents.validated(ReviewRules, source)
    said += [
        Said(severity=Severity.ERROR, path=("exceptions", index, key), message=message, rule="exceptions")
        # a draft has none to check
        for index, each in enumerate(() if said or source.findings else rules.exceptions)
        for key, message in _wrong(each, on)
    ]
    found = documents.in_order([*source.findings, *(each.found_in(source) for each in said)])
    if any(each.severity is Severity.ERROR for each in found):
        raise DocumentError(found)
    return rules


def _wrong(each: Exception_, on: date | None) -> Iterator[tuple[str, str]]:
    if each.kind == ReasonKind.REVIEW_FILE.value:
        yield "kind", "a change of what a review is judged by cannot be excepted; leave this exception out"
    stack, own = _parts(each.resource)
    if _is_any(own, _LEAST_NAMED) or _is_any(stack, _LEAST_OF_STACK):
        said = f"its name must have {_LEAST_NAMED} characters or more besides *, its stack {_LEAST_OF_STACK}"
        got = f"got {each.resource!r}; write the resource as in the report"
        yield "resource", f"would except unseen changes of other resources: {said}, {got}"
    if _is_any(each.sentence, _LEAST_NAMED) or each.sentence.endswith("*"):
        said = f"it must have {_LEAST_NAMED} characters or more besides *, and its end"
        got = f"got {each.sentence!r}; write the sentence as in the report"
        yield "sentence", f"would except any change of the resource: {said}, {got}"
    try:
        last = each.last_day
    except ValueError:
        yield "expires", f"must be an existing day, such as 2027-03-31, got {each.expires}"
        return
    if on is not None and (last - on).days > LONGEST_DAYS:
        latest = date.fromordinal(on.toordinal() + LONGEST_DAYS).isoformat()
        yield "expires", f"must be at most {LONGEST_DAYS} days away, {latest} or before, got {each.expires}"


def _is_any(pattern: str, least: int) -> bool:
    return "*" in pattern and len(pattern.replace("*", "").strip()) < least


def _parts(resource: str) -> tuple[str, str]:
    """Return the stack, empty if there is none, and the name in it."""
    stack, _, own = resource.partition(_IN)
    return (stack, own) if own else ("", resource)


def _both(pattern: str, resource: str) -> tuple[tuple[str, str], tuple[str, str]]:
    return _parts(pattern), _parts(resource)


def decided(
    project: Path,
    *,
    base: str | None,
    head: str | None,
    environment: str = "",
    deployed: Mapping[str, str] | None = None,
    stated: Mapping[str, str] | None = None,
    strays: Sequence[str] = (),
    on: date | None = None,
) -> Decided:
    """Return the rules of a review: nothing from the head, so that no change approves itself.

    ``base`` and ``head`` are commits, None for the project's present files. The base's files decide. If the base is no
    commit, a file of the head counts only if it is the one of the last deployment: ``deployed`` is what the base's
    foundation states about it, ``stated`` what the head's does (``config.judged_by.recorded_by``), and ``strays`` are
    other stacks of the head that claim to state it. A new or changed file is a reason itself, until it is merged or
    deployed. ``environment`` is the name whose records are read, ``on`` the day on which exceptions are judged. Raises
    DocumentError if the head's review.yaml is wrong, and PricesError if its prices.json is.
    """
    names = judged_by.names(environment)
    new = {name: _bytes(project, head, name) for name in names}
    rules, prices = _rules(project, new[judged_by.REVIEW], on), _prices(new[judged_by.PRICES])
    if base is not None:
        old = {name: _committed(project, base, name) for name in names}
        known = {name: old[name] == new[name] for name in names}
        until = "the head's file applies once it is merged"
        by = "the base's"
    else:
        now = {name: judged_by.digest(content) for name, content in new.items() if content is not None}
        then = dict(deployed or {})
        old = {name: content if then.get(name) == now.get(name) else None for name, content in new.items()}
        known = {name: then.get(name) == now.get(name) for name in names}
        until = "it applies once it is deployed with approval"
        by = "the built-in values"
        planted = [
            Reason(
                kind=ReasonKind.REVIEW_FILE,
                resource=f"{each}/{judged_by.OUTPUT}",
                sentence="This stack states the files by which reviews are judged, which only the foundation may do.",
            )
            for each in strays
        ]
        if any((stated or {}).get(name) != now.get(name) for name in names if stated or known[name]):
            said = (
                "The templates state other files by which reviews are judged than the project contains: the "
                "identity that deploys them makes those apply from then on."
            )
            planted.append(Reason(kind=ReasonKind.REVIEW_FILE, resource=judged_by.OUTPUT, sentence=said))
        if planted:
            return Decided(rules=NO_RULES, reasons=(*planted, *_changed(known, old, new, by=by, until=until)))
    notes: list[str] = []
    if not known[judged_by.REVIEW]:
        rules = _of_base(project, old[judged_by.REVIEW], on, notes)
    if not known[judged_by.PRICES]:
        prices = _prices_of_base(old[judged_by.PRICES], notes)
    return Decided(
        rules=rules,
        prices=prices,
        reasons=_changed(known, old, new, by=by, until=until),
        notes=tuple(notes),
        records=tuple(name for name in names if not known[name] and name not in _ALWAYS),
    )


def _changed(
    known: Mapping[str, bool],
    old: Mapping[str, bytes | None],
    new: Mapping[str, bytes | None],
    *,
    by: str,
    until: str,
) -> tuple[Reason, ...]:
    found = []
    for name in _ALWAYS:
        if known[name]:
            continue
        what = "is deleted" if new[name] is None else "changes" if old[name] is not None else "is new"
        if by != "the base's":
            what = "is not the one of the last deployment"
        said = f"{name} {what}: this review is judged by {by}, and {until}."
        found.append(Reason(kind=ReasonKind.REVIEW_FILE, resource=name, sentence=said))
    return tuple(found)


def _of_base(project: Path, raw: bytes | None, on: date | None, notes: list[str]) -> ReviewRules:
    try:
        return _rules(project, raw, on)
    except DocumentError as error:
        lines = "; ".join(each.render() for each in error.findings[:_SHOWN])
        notes.append(
            f"The base's {FILE} is wrong, so that none of its thresholds, approvers and exceptions applies: {lines}"
        )
        return NO_RULES


def _prices(raw: bytes | None) -> Prices | None:
    return None if raw is None else read_content(raw, where=judged_by.PRICES)


def _prices_of_base(raw: bytes | None, notes: list[str]) -> Prices | None:
    try:
        return _prices(raw)
    except PricesError as error:
        notes.append(f"The base's {judged_by.PRICES} is wrong, so that the prices of the package apply: {error}")
        return None


def _rules(project: Path, raw: bytes | None, on: date | None) -> ReviewRules:
    if raw is None:
        return NO_RULES
    path = project / FILE
    if len(raw) > MAX_BYTES:
        # refused because of its size, before it is parsed
        return read_rules(path, text=" " * len(raw))
    return read_rules(path, text=documents.decoded(raw, documents.shown(path)), on=on)


def _bytes(project: Path, commit: str | None, name: str) -> bytes | None:
    """Return the file of one side as it is, None if it does not exist.

    Raises DocumentError if it cannot be read, for prices PricesError.
    """
    if commit is not None:
        return _committed(project, commit, name)
    file = project / name
    if not file.exists() and not file.is_symlink():
        return None
    try:
        return read_bytes(file, most=MOST_BYTES_OF_PRICES if name == judged_by.PRICES else MAX_BYTES)
    except OSError:
        # a folder, a link to nothing, or too large: refused with the project's own message
        if name == judged_by.PRICES:
            read_prices(file, where=name)
        documents.open_source(file, WORDING)
        raise


def _committed(project: Path, commit: str, name: str) -> bytes | None:
    asked: Sequence[str] = ("git", "-C", str(project), "show", "--end-of-options", f"{commit}:./{name}")
    variables = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(asked, capture_output=True, check=False, timeout=_GIT_SECONDS, env=variables)
    return done.stdout if done.returncode == 0 else None


def rules_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of ``review.yaml``, for editors."""
    return schema_of_file(ReviewRules, title=FILE)


def rules_schema_text() -> str:
    """Return the schema as the text of its file."""
    return as_text(rules_schema())


def _matches(pattern: str, text: str) -> bool:
    first, *parts = pattern.split("*")
    if not parts:
        return pattern == text
    *middle, last = parts
    if len(text) < len(first) + len(last) or not text.startswith(first) or not text.endswith(last):
        return False
    # the first match of each part leaves the most for the next ones, so that no other match need be tried
    at, end = len(first), len(text) - len(last)
    for part in middle:
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


def _matches_text(pattern: str, text: str, resource: str) -> bool:
    """Whether a text matches the pattern with a name that the resource has in it for each ``*``."""
    first, *parts = pattern.split("*")
    if not text.startswith(first):
        return False
    ends = {len(first)}
    for part in parts:
        named = {end for start in ends for end in _ends_of_name(text, start, resource)}
        ends = {end + len(part) for end in named if text.startswith(part, end)}
    return len(text) in ends


def _ends_of_name(text: str, start: int, resource: str) -> Iterator[int]:
    """Yield where a match that begins at a position can end, if it is one or more whole words of the resource."""
    words, said = resource.casefold(), text.casefold()
    for end in range(start + 1, len(said) + 1):
        name = said[start:end]
        if name not in words:
            # nor is anything longer
            return
        if re.search(rf"(?<![^\W_]){re.escape(name)}(?![^\W_])", words):
            yield end
