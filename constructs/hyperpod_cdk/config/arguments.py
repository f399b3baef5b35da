"""Arguments of constructs, judged as the environment file's values are: by the field of a section.

The sentences are those of the file, in the words of a caller in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Annotated, Any

from pydantic import BaseModel, TypeAdapter, ValidationError, create_model
from pydantic_core import ErrorDetails

from hyperpod_cdk.catalog import instance_types
from hyperpod_cdk.catalog.instance_types import InstanceType
from hyperpod_cdk.catalog.rules import Pattern
from hyperpod_cdk.catalog.sentences import Correction, Sentence, Setting, in_python
from hyperpod_cdk.config.documents import tidy
from hyperpod_cdk.config.draft import UNKNOWN, PartialMapping
from hyperpod_cdk.config.problems import ValueProblem, translate
from hyperpod_cdk.config.shape import item_type
from hyperpod_cdk.config.source import DataPath, Source

# CDK writes a token among numbers as -1.888...e289; a count is never near that
_LARGEST_TOKEN_NUMBER = -1e280
_TOKEN_MARKS = ("${Token[", "#{Token[")

Flaw = tuple[DataPath, str]
"""The place of a wrong value among arguments, and the sentence that says what is wrong, in Python's words."""


def is_token(value: object) -> bool:
    """Return whether CDK fills in ``value`` only at synthesis or deployment, so that no rule can judge it.

    Reads CDK's encoding of tokens in text and numbers, which spares a call into the JavaScript kernel per value.
    """
    if isinstance(value, str):
        return any(mark in value for mark in _TOKEN_MARKS)
    return isinstance(value, float | int) and value < _LARGEST_TOKEN_NUMBER


def problems(
    section: type[BaseModel], values: Mapping[str, Any], *, called: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Return what ``refused`` gives as sentences of one line that begin with the name of the argument and a colon."""
    return (tidy(f"{argument}: {problem}") for argument, problem in refused(section, values, called=called))


def refused(
    section: type[BaseModel], values: Mapping[str, Any], *, called: Mapping[str, str] | None = None
) -> Iterator[tuple[str, str]]:
    """Yield what ``flaws`` gives, each place written as in Python: ``labels['team']``."""
    return ((written(place), problem) for place, problem in flaws(section, values, called=called))


def flaws(
    section: type[BaseModel],
    values: Mapping[str, Any],
    *,
    called: Mapping[str, str] | None = None,
) -> Iterator[Flaw]:
    """Yield what the fields of ``section`` refuse of ``values``, arguments by the names of the fields.

    A value of None counts as left out. Tokens are not judged; of a list or mapping with a token, the other items are
    judged. ``called`` maps a field to its argument where the names differ (field -> argument).
    """
    for name, value in values.items():
        argument = (called or {}).get(name, name)
        asked = section if argument == name else _with_its_field_called(section, name, argument)
        for problem in field_problems(asked, argument, value):
            yield problem.path, in_python(_of_its_entry(problem) if isinstance(value, Mapping) else problem.message)


def _of_its_entry(problem: ValueProblem) -> str:
    """Return a sentence about an entry of a mapping with the mapping named in it: the key alone is no argument."""
    message, place = problem.message, problem.path
    if len(place) == 1 or not isinstance(message, Sentence):
        return message
    return Sentence(
        *(
            replace(part, key=written(place))
            if isinstance(part, Setting | Correction) and part.key == place[-1]
            else part
            for part in message.parts
        )
    )


def field_problems(section: type[BaseModel], name: str, value: Any) -> Sequence[ValueProblem]:
    """Return what a field of ``section`` refuses of ``value``, in its sentences; nothing of None, which is left out."""
    if value is None or is_token(value):
        return ()
    return translate(section, Source(file="", data={name: value}), _errors(section, name, value))


def for_rules(arguments: object, flawed: Collection[DataPath], **more: object) -> Any:
    """Return ``arguments`` for rules to read: what is ``flawed``, or a token, is `UNKNOWN` to them.

    ``more`` are attributes that rules read and the arguments do not have.
    """
    return _ForRules(arguments, (), frozenset(flawed), more)


class _ForRules:
    """An object whose attributes rules read."""

    def __init__(
        self, arguments: object, path: DataPath, flawed: Collection[DataPath], more: Mapping[str, object]
    ) -> None:
        self._arguments, self._path, self._flawed, self._more = arguments, path, flawed, more

    def __getattr__(self, name: str) -> Any:
        if name in self._more:
            return self._more[name]
        return _for_rules(getattr(self._arguments, name), (*self._path, name), self._flawed)


def _for_rules(value: Any, path: DataPath, flawed: Collection[DataPath]) -> Any:
    if path in flawed or is_token(value):
        return UNKNOWN
    if isinstance(value, Mapping):
        there = {key: each for key, each in value.items() if not is_token(key) and (*path, key) not in flawed}
        items = {key: _for_rules(each, (*path, key), flawed) for key, each in there.items()}
        return items if len(items) == len(value) else PartialMapping(items)
    if isinstance(value, list | tuple):
        return tuple(_for_rules(each, (*path, index), flawed) for index, each in enumerate(value))
    return value if value is None or isinstance(value, str | int | float) else _ForRules(value, path, flawed, {})


def refuse(
    section: type[BaseModel], *, where: str = "", called: Mapping[str, str] | None = None, **values: Any
) -> None:
    """Raise ValueError with the sentences of ``problems``.

    ``where`` says whose arguments they are; it is put before each sentence.
    """
    refuse_for(problems(section, values, called=called), where=where)


def refuse_for(found: Iterable[str], *, where: str = "") -> None:
    """Raise ValueError with every sentence of ``found``, each in a line of its own; do nothing if there is none.

    ``where`` as for ``refuse``.
    """
    lines = [f"{where}: {problem}" if where else problem for problem in found]
    if lines:
        raise ValueError("\n".join(dict.fromkeys(lines)))


def refuse_all(*checks: Callable[[], object] | Sequence[Callable[[], object]]) -> None:
    """Call every check, and raise ValueError with the lines of all that raise one, in their order.

    Checks of one sequence are called in turn until one raises: a later one reads what an earlier one judges, and what
    follows from a wrong value is not said.
    """
    lines: list[str] = []
    for check in checks:
        try:
            for each in [check] if callable(check) else check:
                each()
        except ValueError as refused:
            lines += str(refused).split("\n")
    refuse_for(lines)


def refuse_unlike(pattern: Pattern, **values: str | Sequence[str] | Mapping[str, str] | None) -> None:
    """Raise ValueError for the texts that do not match ``pattern``; for arguments without a field in the file.

    Each item of a list and each value of a mapping is judged. None counts as left out, and tokens are not judged.
    """
    refuse_for(f"{key}: {problem}" for key, problem in unlike(pattern, **values))


def unlike(pattern: Pattern, **values: str | Sequence[str] | Mapping[str, str] | None) -> Iterator[tuple[str, str]]:
    """Yield the argument, and what is wrong with it, for each text that ``refuse_unlike`` refuses."""
    for name, value in values.items():
        for key, text in _texts(name, value).items():
            if text is not None and not is_token(text) and (problem := pattern.problem(text, key=key)):
                yield key, in_python(problem)


def unknown_type_problem(
    name: str, *, key: str, stated: Iterable[str] = (), otherwise: str = "state the type's numbers in stated_types"
) -> str | None:
    """Say of an instance type what the file says: that neither the catalog nor the caller knows it. None for a token.

    ``stated``: names of the types whose numbers the caller states; ``otherwise``: how it states them.
    """
    if is_token(name):
        return None
    problem = instance_types.unknown_type_problem(
        name, key=key, otherwise=otherwise, stated=stated, where="in stated_types"
    )
    return None if problem is None else in_python(problem)


def refuse_unknown_types(**values: Iterable[str | InstanceType]) -> None:
    """Raise ValueError for the names of instance types that the catalog does not have.

    An ``InstanceType`` in place of a name is a type with numbers of its own, and is not judged.
    """
    refuse_for(
        f"{name}: {problem}"
        for name, types in values.items()
        for each in types
        if not isinstance(each, InstanceType)
        and (problem := unknown_type_problem(each, key=name, otherwise="pass an InstanceType with its numbers"))
    )


def _texts(name: str, value: str | Sequence[str] | Mapping[str, str] | None) -> Mapping[str, str | None]:
    if value is None or isinstance(value, str):
        return {name: value}
    pairs = value.items() if isinstance(value, Mapping) else enumerate(value)
    return {f"{name}[{key!r}]": each for key, each in pairs}


def written(path: DataPath) -> str:
    """Return a place among arguments as Python writes it: ``taints[0].key``."""
    name, *steps = path
    below = (f".{step}" if isinstance(step, str) and step.isidentifier() else f"[{step!r}]" for step in steps)
    return f"{name}{''.join(below)}"


def _errors(section: type[BaseModel], name: str, value: Any) -> Iterator[ErrorDetails]:
    value = _frozen(value)
    if isinstance(value, dict):
        holds_token = any(is_token(each) for pair in value.items() for each in pair)
        items = [((name, key), each) for key, each in value.items() if not is_token(key)]
    elif isinstance(value, tuple):
        holds_token = any(is_token(each) for each in value)
        items = [((name, index), each) for index, each in enumerate(value)]
    else:
        holds_token, items = False, []
    if not holds_token:
        yield from _found(_judge(section, name), value, (name,))
        return
    for path, each in items:
        if not is_token(each):
            yield from _found(_judge_of_items(section, name), each, path)


def _frozen(value: Any) -> Any:
    """Return lists as tuples, and any mapping as a dict, at every level: a strict field accepts nothing else."""
    if isinstance(value, Mapping):
        return {key: _frozen(each) for key, each in value.items()}
    return tuple(_frozen(each) for each in value) if isinstance(value, list | tuple) else value


def _found(judge: TypeAdapter[Any], value: Any, path: tuple[str | int, ...]) -> Iterator[ErrorDetails]:
    try:
        judge.validate_python(value, strict=True)
    except ValidationError as refused:
        for error in refused.errors(include_url=False):
            yield {**error, "loc": (*path, *error["loc"])}


@cache
def _with_its_field_called(section: type[BaseModel], name: str, argument: str) -> type[BaseModel]:
    """Return a section with only this field, under another name, so that its sentences use that name."""
    field = section.model_fields[name]
    fields: dict[str, Any] = {argument: (field.annotation, field)}
    return create_model(section.__name__, **fields)


@cache
def _judge(section: type[BaseModel], name: str) -> TypeAdapter[Any]:
    field = section.model_fields[name]
    return TypeAdapter(_strictly(field.annotation, field.metadata))


@cache
def _judge_of_items(section: type[BaseModel], name: str) -> TypeAdapter[Any]:
    return TypeAdapter(_strictly(item_type(section.model_fields[name].annotation), []))


def _strictly(annotation: Any, metadata: list[Any]) -> Any:
    for each in metadata:
        annotation = Annotated[annotation, each]
    return annotation
