"""The form of answers: which members they had, how often, and which states."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from botocore import xform_name
from botocore.model import ListShape, MapShape, Shape, StructureShape

from hyperpod_cdk.catalog.answers import members
from hyperpod_cdk.living.observing.model import Form, Member, Operation
from hyperpod_cdk.living.observing.recorder import Answer
from hyperpod_cdk.living.observing.redaction import Redactor, model_of, published, texts

_FORMS: Final[Mapping[Form, tuple[Any, ...]]] = {
    "structure": (Mapping,),
    "map": (Mapping,),
    "list": (list, tuple),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "float": (float, int),
    "timestamp": (datetime,),
    "blob": (bytes,),
}
"""The Python types of botocore's types."""

_SAME: Final[Mapping[str, Form]] = {"long": "integer", "double": "float"}

_DECODED: Final = ("TemplateBody", "policyDocumentType")
"""Shapes of texts that botocore decodes with its own handlers if they are JSON."""


@dataclass
class _Seen:
    came: int = 0
    of: int = 0
    words: set[str] = field(default_factory=set)
    unpublished: set[str] = field(default_factory=set)
    mistyped: set[Form] = field(default_factory=set)


def output_of(answer: Answer) -> tuple[str, Shape | None]:
    """Return the name of an operation as IAM has it, and the shape of its answer by the installed model."""
    model = model_of(answer.service)
    name = next(each for each in model.operation_names if xform_name(each) == answer.operation)
    return f"{answer.service}:{name}", model.operation_model(name).output_shape


def operations(answers: Sequence[Answer], redactor: Redactor) -> tuple[Operation, ...]:
    """Return the form of the answers to each operation."""
    found: dict[str, dict[str, _Seen]] = {}
    counted: dict[str, int] = defaultdict(int)
    for answer in answers:
        name, shape = output_of(answer)
        seen = found.setdefault(name, defaultdict(_Seen))
        counted[name] += 1
        if isinstance(shape, StructureShape) and answer.key:
            # only the items of pages were kept
            _walk(shape.members[answer.key], answer.body[answer.key], answer.key, seen)
        else:
            _walk(shape, answer.body, "", seen)
    return tuple(
        Operation(
            operation=name,
            answers=counted[name],
            members=tuple(
                _member(place, each, redactor)
                for place, each in sorted(seen.items())
                # of members that were never there, only those that are assumed to be always there matter
                if each.came or each.words or each.unpublished or each.mistyped or (members(name) or {}).get(place)
            ),
        )
        for name, seen in sorted(found.items())
    )


def everybodys(answers: Sequence[Answer]) -> list[str]:
    """Return every text of the answers that belongs to the account."""
    return [text for answer in answers for text in texts(output_of(answer)[1], answer.body)]


def _member(place: str, seen: _Seen, redactor: Redactor) -> Member:
    unpublished = sorted({redactor.state(each) for each in seen.unpublished})
    return Member(
        place=place,
        came=seen.came,
        of=seen.of,
        words=tuple(sorted(seen.words)),
        unpublished=tuple(unpublished),
        mistyped=tuple(sorted(seen.mistyped)),
    )


def _is_of(value: Any, form: Form) -> bool:
    return isinstance(value, _FORMS[form]) and (form == "boolean" or not isinstance(value, bool))


def _form(value: Any) -> Form:
    for form in _FORMS:
        if _is_of(value, form):
            return form
    return "unknown"


def _walk(shape: Shape | None, value: Any, place: str, seen: Mapping[str, _Seen]) -> None:
    if shape is None or shape.name in _DECODED:
        return
    form: Any = _SAME.get(shape.type_name, shape.type_name)
    if not _is_of(value, form):
        seen[place].mistyped.add(_form(value))
    elif isinstance(shape, StructureShape):
        for name, member in shape.members.items():
            inner = f"{place}.{name}" if place else name
            row = seen[inner]
            row.of += 1
            if value.get(name) is not None:
                row.came += 1
                _walk(member, value[name], inner, seen)
    elif isinstance(shape, ListShape):
        for each in value:
            _walk(shape.member, each, f"{place}[]", seen)
    elif isinstance(shape, MapShape):
        for each in value.values():
            _walk(shape.value, each, f"{place}{{}}", seen)
    elif known := published(shape):
        row = seen[place]
        # EC2 answers 'available' where its model has 'Available'
        is_known = value in known or value.lower() in {each.lower() for each in known}
        (row.words if is_known else row.unpublished).add(value)
