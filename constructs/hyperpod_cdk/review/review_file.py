"""``review.yaml`` beside ``environments/``: thresholds, who approves what, and exceptions that expire."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from hyperpod_cdk.config import documents
from hyperpod_cdk.config.documents import DocumentError, Said
from hyperpod_cdk.config.source import MAX_BYTES, Ambiguous, Wording
from hyperpod_cdk.findings import Severity
from hyperpod_cdk.json_schema import as_text, schema_of_file
from hyperpod_cdk.review.attention import MONTHLY_INCREASE_USD
from hyperpod_cdk.review.model import Reason, ReasonKind

FILE: Final = "review.yaml"
"""Name of the file, in the project's root."""

WORDING: Final = Wording(
    noun="review",
    a_file="a review.yaml",
    example="thresholds: {monthly_increase_usd: 1000}",
    when_empty="write thresholds, approvers or exceptions, or delete the file",
    when_missing="write it, or go on without: then the built-in thresholds count",
)

_GIT_SECONDS: Final = 60
_SHOWN: Final = 3
"""So many errors of the base's file are shown."""

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

Text = Annotated[str, Field(min_length=1, max_length=500)]
Label = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 _./@-]{0,63}$")]


_DAY: Final = re.compile("^[0-9]{4}-[0-9]{2}-[0-9]{2}$")


def _written(value: object) -> object:
    # YAML 1.1 reads a date where 1.2 reads text: here it is what stands there
    return value.text if isinstance(value, Ambiguous) and value.reading == "a date" else value


Day = Annotated[str, BeforeValidator(_written), WithJsonSchema({"type": "string", "pattern": _DAY.pattern})]


Labels = tuple[Label, ...] | None


class _Section(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Thresholds(_Section):
    """From what on money needs approval."""

    monthly_increase_usd: float = Field(default=MONTHLY_INCREASE_USD, ge=0, le=1_000_000_000, allow_inf_nan=False)
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
    """One reason that need not be asked about again, until a day."""

    kind: Kind
    """The kind of the reason, as the report says it. A change of review.yaml itself cannot be excepted."""
    resource: Text
    """The resource as the report says it (``prod-hyperpod / Cluster``); ``*`` stands for any text."""
    sentence: Text
    """The sentence as the report says it; ``*`` stands for any text."""
    reason: Text
    """Why nobody need be asked."""
    owner: Label
    """Who answers for it."""
    expires: Day
    """The last day on which it counts, in UTC, such as 2027-03-31."""

    @property
    def last_day(self) -> date:
        """The last day on which it counts. Raises ValueError for one that the calendar does not have."""
        if not _DAY.fullmatch(self.expires):
            raise ValueError(self.expires)
        return date.fromisoformat(self.expires)

    def answers(self, reason: Reason, resource: str) -> bool:
        """Whether it is about this reason, for this one of its resources."""
        return (
            self.kind == reason.kind.value
            and _matches(self.resource, resource)
            and _matches(self.sentence, reason.sentence)
        )


class ReviewRules(_Section):
    """What a project says about its reviews."""

    thresholds: Thresholds = Thresholds()
    """From what on money needs approval."""
    approvers: Approvers = Approvers()
    """Who approves which kind of reason: teams or people, as labels for the pipelines."""
    default_approvers: tuple[Label, ...] = ()
    """Who approves every kind that ``approvers`` does not name."""
    exceptions: tuple[Exception_, ...] = ()
    """Reasons that need not be asked about again, each with its reason, owner and last day."""

    def approvers_of(self, kind: ReasonKind) -> tuple[str, ...]:
        """Give who approves a kind of reason, nobody by name where the file names nobody."""
        found: tuple[str, ...] | None = getattr(self.approvers, kind.value)
        return self.default_approvers if found is None else found


NO_RULES: Final = ReviewRules()
"""What counts where there is no ``review.yaml``."""


@dataclass(frozen=True, kw_only=True)
class Decided:
    """The rules that decide, and what the two sides' files say about themselves.

    ``reasons`` need approval whatever the rules say: that the file changes, or that the base's cannot be read.
    """

    rules: ReviewRules
    reasons: tuple[Reason, ...] = ()
    notes: tuple[str, ...] = ()


def read_rules(path: Path, *, text: str | None = None) -> ReviewRules:
    """Read a ``review.yaml``; ``text`` is read in place of its content. Raises DocumentError with all that is wrong."""
    source = documents.open_source(path, WORDING, text=text)
    rules, said = documents.validated(ReviewRules, source)
    said += [
        Said(severity=Severity.ERROR, path=("exceptions", index, key), message=message, rule="exceptions")
        for index, each in enumerate(rules.exceptions)
        if not said
        for key, message in _wrong(each)
    ]
    found = documents.in_order([*source.findings, *(each.found_in(source) for each in said)])
    if any(each.severity is Severity.ERROR for each in found):
        raise DocumentError(found)
    return rules


def _wrong(each: Exception_) -> Iterator[tuple[str, str]]:
    if each.kind == ReasonKind.REVIEW_FILE.value:
        yield "kind", "a change of review.yaml itself cannot be excepted; leave this exception out"
    try:
        _ = each.last_day
    except ValueError:
        yield "expires", f"must be a day that the calendar has, such as 2027-03-31, got {each.expires}"


def decided(project: Path, *, base: str | None, head: str | None) -> Decided:
    """Give the rules by which a review is judged: the base's, so that no change lifts its own approval.

    ``base`` and ``head`` are commits, None for the project as it lies there. Raises DocumentError where the file of the
    head, or the only one, is wrong.
    """
    new = _bytes(project, head)
    rules = NO_RULES if new is None else _rules(project, new)
    if base is None:
        return Decided(rules=rules)
    old = _bytes(project, base)
    if old == new:
        return Decided(rules=rules)
    what = "is new" if old is None else "is deleted" if new is None else "changes"
    said = f"{FILE} {what}: this review is judged by the base's, and what the head's says counts once it is merged."
    changed = Reason(kind=ReasonKind.REVIEW_FILE, resource=FILE, sentence=said)
    if old is None:
        return Decided(rules=NO_RULES, reasons=(changed,))
    try:
        return Decided(rules=_rules(project, old), reasons=(changed,))
    except DocumentError as error:
        lines = "; ".join(each.render() for each in error.findings[:_SHOWN])
        note = f"The base's {FILE} is wrong, so that no threshold, approver or exception of it counts: {lines}"
        return Decided(rules=NO_RULES, reasons=(changed,), notes=(note,))


def _rules(project: Path, raw: bytes) -> ReviewRules:
    path = project / FILE
    if len(raw) > MAX_BYTES:
        # refused with the size, before it is parsed
        return read_rules(path, text=" " * len(raw))
    return read_rules(path, text=documents.decoded(raw, documents.shown(path)))


def _bytes(project: Path, commit: str | None) -> bytes | None:
    """Give the file of one side as it is, None where it is not there. Raises DocumentError where it cannot be read."""
    if commit is not None:
        return _committed(project, commit)
    file = project / FILE
    if not file.exists() and not file.is_symlink():
        return None
    if not file.is_file():
        # a folder or a link that leads nowhere: refused in the house's words
        documents.open_source(file, WORDING)
    with file.open("rb") as stream:
        return stream.read(MAX_BYTES + 1)


def _committed(project: Path, commit: str) -> bytes | None:
    asked: Sequence[str] = ("git", "-C", str(project), "show", "--end-of-options", f"{commit}:./{FILE}")
    variables = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(asked, capture_output=True, check=False, timeout=_GIT_SECONDS, env=variables)
    return done.stdout if done.returncode == 0 else None


def rules_schema() -> dict[str, Any]:
    """Give the JSON Schema (2020-12) of ``review.yaml``, for editors."""
    return schema_of_file(ReviewRules, title=FILE)


def rules_schema_text() -> str:
    """Give the schema as the text of its file."""
    return as_text(rules_schema())


def _matches(pattern: str, text: str) -> bool:
    return re.fullmatch(".*".join(re.escape(each) for each in pattern.split("*")), text, re.DOTALL) is not None
