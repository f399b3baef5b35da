"""Pydantic's errors in the terms of the file: the place, the value, what is allowed, the smallest fix."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from hyperpod_cdk.catalog import aws_words
from hyperpod_cdk.catalog.regions import REGION_REGEX, is_az_id, is_az_name
from hyperpod_cdk.catalog.rules import listing
from hyperpod_cdk.catalog.sentences import (
    Advice,
    Choosing,
    Example,
    OnlyInFiles,
    Removal,
    Sentence,
    Setting,
    Stated,
    Truth,
    as_text,
)
from hyperpod_cdk.config.draft import Faults
from hyperpod_cdk.config.shape import bare, field_at, item_type, model_of, optional, places_of, type_at
from hyperpod_cdk.config.source import Ambiguous, DataPath, Refused, Source, describe
from hyperpod_cdk.config.suggest import closest, meant_key

_KEY = "[key]"

THE_KEY = "the key"
"""What sentences about a key of a mapping call it."""

_MOST_KEYS = 4
"""How many keys of a section a message names if the file has none."""


@dataclass(frozen=True)
class ValueProblem:
    """One error about one value, in our words."""

    path: DataPath
    message: str
    rule: str


def translate(model: type[BaseModel], source: Source, errors: Iterable[ErrorDetails]) -> list[ValueProblem]:
    """Say in our words what pydantic found in ``source.data``; without errors that the reader of the text reported."""
    details = [(_path(error["loc"]), error) for error in errors]
    misspelt = _misspelt(model, source, details)
    wrapped = _wrapped(model, source, details)
    found = []
    for path, error in details:
        if isinstance(error["input"], Refused) or _reported(error, path, source):
            continue
        if error["type"] == "missing" and (path in misspelt.values() or path in wrapped):
            continue
        found.append(_translated(model, source, path, error, misspelt))
    return found


def faults(errors: Iterable[ErrorDetails]) -> Faults:
    """Say where the data is wrong, for a draft."""
    exact: set[DataPath] = set()
    lists: set[DataPath] = set()
    keys: set[DataPath] = set()
    for error in errors:
        path = _path(error["loc"])
        if error["type"] == "extra_forbidden" or error["loc"][-1:] == (_KEY,):
            keys.add(path)
        elif _about_size(error) and error["input"]:
            lists.add(path)
        else:
            exact.add(path)
    return Faults(exact, lists=lists, keys=keys)


def _path(location: Sequence[int | str]) -> DataPath:
    return tuple(step for step in location if step != _KEY)


def _reported(error: ErrorDetails, path: DataPath, source: Source) -> bool:
    """In a mapping with a merge key, the merged keys are missing."""
    return error["type"] == "missing" and path[:-1] in source.incomplete


def _misspelt(
    model: type[BaseModel], source: Source, details: Sequence[tuple[DataPath, ErrorDetails]]
) -> dict[DataPath, DataPath]:
    """Return unknown key -> the key that was probably meant: one that is not written there too, a missing one first."""
    missing = {path for path, error in details if error["type"] == "missing"}
    meant = {}
    for path, error in details:
        if error["type"] != "extra_forbidden":
            continue
        section = model_of(type_at(model, path[:-1]))
        written = _value_at(source.data, path[:-1])
        names = [name for name in ({} if section is None else section.model_fields) if name not in written]
        lacking = [name for name in names if (*path[:-1], name) in missing]
        near = meant_key(str(path[-1]), lacking) or meant_key(str(path[-1]), names)
        if near:
            meant[path] = (*path[:-1], near)
    return meant


def _wrapped(model: type[BaseModel], source: Source, details: Sequence[tuple[DataPath, ErrorDetails]]) -> set[DataPath]:
    """Return the keys that are one level too deep, below an unknown key that only keys of this level are below."""
    return {
        (*path[:-1], key)
        for path, error in details
        if error["type"] == "extra_forbidden"
        for key in _too_deep(model, source, path)
    }


def _too_deep(model: type[BaseModel], source: Source, path: DataPath) -> set[Any]:
    section = model_of(type_at(model, path[:-1]))
    held = set(_value_at(source.data, path))
    return held if section is not None and len(held) > 1 and held <= set(section.model_fields) else set()


def _translated(
    model: type[BaseModel],
    source: Source,
    path: DataPath,
    error: ErrorDetails,
    misspelt: Mapping[DataPath, DataPath],
) -> ValueProblem:
    kind = error["type"]
    key = _key_of(path)
    if kind == "check":
        check = _context(error)["check"]
        about_key = error["loc"][-1] == _KEY
        message = check.problem(error["input"], THE_KEY if about_key else key)
        return ValueProblem(path, _of_the_file(message, source, error["input"]), check.name)
    if kind == "missing":
        return ValueProblem(path, _of_the_file(_missing(model, path), source, None), "missing_key")
    if kind == "extra_forbidden":
        return ValueProblem(path, _unknown_key(model, source, path, misspelt.get(path)), "unknown_key")
    if kind == "literal_error":
        return ValueProblem(path, _choice(type_at(model, path), error["input"], key), "choice")
    if not _IS_ABOUT_TYPE.search(kind) or not _has_words(type_at(model, path)):
        return ValueProblem(path, f"{_as_pydantic_says(error)}{_fix_of_own(error, key)}", "type")
    message = _type_message(model, source, path, error["input"])
    return ValueProblem(path, _of_the_file(message, source, error["input"]), "type")


_IS_ABOUT_TYPE = re.compile(r"_(type|parsing|from_float)$")
"""Refusals of this library's own fields: their bounds are checks. Sections of extensions use pydantic's own."""

_OWN_WORDS = frozenset({"value_error", "assertion_error"})


def _has_words(annotation: Any) -> bool:
    """Return whether this module has a sentence for an error type; any other type comes from an extension's section."""
    kind = bare(annotation)
    return kind in {str, int, float, bool} or get_origin(kind) in {Literal, tuple, dict} or model_of(kind) is not None


def _as_pydantic_says(error: ErrorDetails) -> str:
    """Return a refusal in pydantic's words, or in those of the validator that refused."""
    if error["type"] in _OWN_WORDS:
        return str(_context(error)["error"])
    says = re.sub(r"^[\w ]+? should ", "must ", error["msg"])
    return f"{says}, got {describe(error['input'])}"


def _fix_of_own(error: ErrorDetails, key: str) -> str:
    value = error["input"]
    if isinstance(value, Ambiguous):
        return f", which YAML reads as {value.reading}; write {key}: {_quoted(value.text)}"
    return "" if error["type"] in _OWN_WORDS else f"; change {key}"


def _of_the_file(message: str, source: Source, value: object) -> str:
    """Write the file's own account and region into the examples, in place of the examples' own."""
    data = source.data if isinstance(source.data, dict) else {}

    def of_the_file(example: str) -> str:
        for key, usual, form in (
            ("account", "111122223333", r"[0-9]{12}"),
            ("region", "us-east-1", REGION_REGEX),
        ):
            own = data.get(key)
            if isinstance(own, str) and re.fullmatch(form, own) and usual not in str(value):
                example = example.replace(usual, own)
        return example

    return message.with_examples(of_the_file) if isinstance(message, Sentence) else message


def _about_size(error: ErrorDetails) -> bool:
    return error["type"] == "check" and _context(error)["check"].name == "count"


def _context(error: ErrorDetails) -> dict[str, Any]:
    return error.get("ctx", {})


def _key_of(path: DataPath) -> str:
    index = max((n for n, step in enumerate(path) if isinstance(step, str)), default=0)
    return str(path[index]) + "".join(f"[{step}]" for step in path[index + 1 :]) if path else "it"


def _missing(model: type[BaseModel], path: DataPath) -> str:
    info = field_at(model, path)
    examples = info.examples if info is not None else None
    example = examples[0] if examples else None
    if example is None or isinstance(example, dict | list):
        return f"is missing; add {path[-1]} ({_first_sentence(info.description or '') if info else 'it is required'})"
    return Sentence(f"is missing; add {path[-1]}, such as {path[-1]}: ", Example(_as_yaml(example)))


def _first_sentence(text: str) -> str:
    sentence = text.split(". ", maxsplit=1)[0].rstrip(".")
    return sentence[:1].lower() + sentence[1:] if sentence[1:2].islower() else sentence


def _unknown_key(model: type[BaseModel], source: Source, path: DataPath, meant: DataPath | None) -> str:
    word = aws_words.counterpart(str(path[-1]))
    is_of_this_file = word is not None and re.split(r"[.\[]", word.here)[0] in model.model_fields
    is_this_word = meant is not None and _letters(meant[-1]) == _letters(path[-1])
    if word is not None and is_of_this_file and not is_this_word:
        section = model_of(type_at(model, path[:-1]))
        is_here = section is not None and word.key in section.model_fields and _is_beside(word, path)
        form = f", {word.form}" if word.form else ""
        here = word.key if is_here else word.here
        return f"is not a known key here: AWS calls it {word.aws}; here: {here}{form}"
    elsewhere = places_of(model, str(path[-1]))
    if elsewhere and not is_this_word:
        return f"is not a known key here; it belongs {_in_places(elsewhere, path)}"
    if meant is not None:
        return f"is not a known key here; did you mean {meant[-1]}?"
    section = model_of(type_at(model, path[:-1]))
    fields = section.model_fields if section else {}
    zones = next((name for name in _BY_ZONE if name in fields), None)
    if zones and (is_az_id(str(path[-1])) or is_az_name(str(path[-1]))):
        return f"is not a known key here; write it below {zones}, indented"
    if _too_deep(model, source, path):
        return "is not a known key here; remove this line, and indent the keys below it as far as it was"
    names = ", ".join(name for name in fields if name not in _value_at(source.data, path[:-1]))
    return f"is not a known key here; remove it, or write one of {names}"


_MOST_PLACES = 3


_BY_ZONE = ("availability_zones", "node_subnet_ids")


def _value_at(data: object, path: DataPath) -> Mapping[Any, object]:
    """Return the mapping at ``path``, empty if there is none."""
    for step in path:
        if isinstance(data, dict):
            data = data.get(step)
        elif isinstance(data, list) and isinstance(step, int):
            data = data[step]
        else:
            return {}
    return data if isinstance(data, dict) else {}


def _in_places(places: Sequence[str], path: DataPath) -> str:
    """Write where a key belongs, the sections nearest to ``path`` first."""
    steps = [f"{step}" for step in path[:-1] if isinstance(step, str)]

    def distance(place: str) -> tuple[int, int]:
        other = place.replace("[]", "").split(".") if place else []
        pairs = list(zip(steps, other, strict=False))
        shared = next((n for n, (ours, theirs) in enumerate(pairs) if ours != theirs), len(pairs))
        return -shared, len(other)

    near = sorted(places, key=distance)
    listed = [f"in {place}" if place else "at the top level" for place in near[:_MOST_PLACES]]
    more = f" (and in {len(near) - _MOST_PLACES} other sections)" if len(near) > _MOST_PLACES else ""
    return f"{listing(listed)}{more}"


def _is_beside(word: aws_words.Word, path: DataPath) -> bool:
    """Return whether a word's field is in the section of ``path``: elsewhere its last key means something else.

    Restricted groups have the keys of other groups, and file systems of theirs those of other file systems.
    """
    above = word.here.rpartition(".")[0].rpartition(".")[2].removesuffix("[]")
    section = next((step for step in reversed(path[:-1]) if isinstance(step, str)), "")
    return above in {"*", section.removeprefix("restricted_")} or (above == "" and len(path) == 1)


def _letters(step: object) -> str:
    return str(step).lower().replace("-", "").replace("_", "")


def _choice(annotation: Any, value: object, key: str) -> str:
    choices = list(get_args(bare(annotation)))
    allowed = listing([_as_yaml(choice) for choice in choices])
    near = closest(value, [str(choice) for choice in choices]) if isinstance(value, str) else None
    fix: tuple[str | Advice, ...] = (f"did you mean {near}?",) if near else (Choosing(key), " one of these")
    return Sentence(f"must be {allowed}, got ", _got(value), "; ", *fix)


def _type_message(model: type[BaseModel], source: Source, path: DataPath, value: object) -> str:
    annotation = type_at(model, path)
    kind = bare(annotation)
    key = _key_of(path)
    if get_origin(kind) is Literal:
        return _choice(annotation, value, key)
    if model_of(annotation) is not None or get_origin(kind) is dict:
        return _mapping_message(value, key, annotation, is_required=_is_needed(model, source, path))
    if get_origin(kind) is tuple:
        return Sentence("must be a list, got ", _got(value), "; ", _list_fix(model, source, path, value, key))
    messages: dict[Any, Callable[[Source, DataPath, object, str, Any], str]] = {
        int: _number_message,
        float: _fraction_message,
        bool: _truth_message,
    }
    number = without_unit(key, value) if kind in {int, float} and isinstance(value, str) else None
    if number is not None and _refusal(model, path, number) is None:
        what = "a whole number" if kind is int else "a number"
        said = f"must be {what}, without a unit, got {describe(value)}; "
        return Sentence(said, Setting(key, number, verb="write"))
    info = field_at(model, path)
    example = info.examples[0] if info is not None and info.examples else None
    if kind is str:
        return _text_message(model, source, path, value, example)
    return messages[kind](source, path, value, key, example)


_UNITS = {
    "mbps": ("mbps", "mb/s", "mib/s"),
    "gib": ("g", "gb", "gi", "gib"),
    "mib": ("m", "mb", "mi", "mib"),
    "percent": ("%", "percent"),
    "seconds": ("s", "sec", "second", "seconds"),
    "minutes": ("m", "min", "minute", "minutes"),
    "days": ("d", "day", "days"),
    "usd": ("$", "usd"),
}
"""How people write the unit in the name of a key; AWS calls the GiB of volumes and file systems GB."""

_WITH_UNIT = re.compile(r"(?P<before>\$?)(?P<number>\d+)\s*(?P<unit>[a-z%/$]*)")


def without_unit(key: str, text: str) -> int | None:
    """Return the number of a text such as 500GB if its unit is the one in the name of the key."""
    found = _WITH_UNIT.fullmatch(text.strip().lower())
    unit = next((each for each in _UNITS if each in key.split("_")), None)
    if found is None or unit is None or (found["before"] or found["unit"]) not in _UNITS[unit]:
        return None
    return int(found["number"])


def _is_required(model: type[BaseModel], path: DataPath) -> bool:
    info = field_at(model, path)
    return info is not None and info.is_required()


_IN_PLACE_OF: dict[DataPath, str] = {
    ("network", "availability_zones"): "existing",
    ("hyperpod", "instance_groups"): "restricted_instance_groups",
}
"""What a file without a key needs beside it, as the rules of the section say."""


def _is_needed(model: type[BaseModel], source: Source, path: DataPath) -> bool:
    """Return whether a file without the key at ``path`` is refused."""
    other = _IN_PLACE_OF.get(path)
    return _is_required(model, path) or (other is not None and not _value_at(source.data, path[:-1]).get(other))


def _refusal(model: type[BaseModel], path: DataPath, value: object) -> str | None:
    """Say why a value would be refused at ``path``, as its check says it; None if it would be accepted."""
    info = field_at(model, path)
    annotation: Any = type_at(model, path)
    if info is not None and info.metadata:
        parts = (info.annotation, *info.metadata)
        annotation = Annotated[parts]
    try:
        TypeAdapter(annotation).validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = _key_of((*path, *_path(first["loc"])))
        if first["type"] == "check":
            problem: str = _context(first)["check"].problem(first["input"], key)
            return problem
        return _as_pydantic_says(first)
    return None


def _mapping_message(value: object, key: str, annotation: Any, *, is_required: bool) -> str:
    section = model_of(annotation)
    if isinstance(value, bool) and section is not None and "enabled" in section.model_fields:
        return f"must be a mapping, got {describe(value)}; write {key}: {{enabled: {_as_yaml(value)}}}"
    if value is None:
        or_else = "" if is_required else f", or remove {key}"
        return f"must be a mapping, got nothing; write its keys below {key}, indented{or_else}"
    fix = f"write its keys{_keys_of(section)} below {key}, each as 'key: value'"
    if section is None and isinstance(value, list) and (items := _as_keys(value, annotation)):
        fix = f"write each item as a key: {key}: {{{', '.join(items)}}}"
    return f"must be a mapping, got {describe(value)}; {fix}"


def _as_keys(value: Sequence[object], annotation: Any) -> list[str]:
    """Return the items of a list as keys of a mapping, if it shows what they mean; empty if not."""
    names = [each for each in value if isinstance(each, str)]
    if model_of(item_type(annotation)):
        return [f"{each}: {{}}" for each in names] if len(names) == len(value) else []
    pairs = [_pair(each) for each in value]
    return [f"{as_text(each[0])}: {as_text(each[1])}" for each in pairs if each] if all(pairs) else []


def _pair(item: object) -> tuple[str, str] | None:
    """Return key and value of an item as AWS and shells write them: ``{Key: team, Value: ml}``, ``team=ml``."""
    if isinstance(item, str):
        name, _, text = item.partition("=")
        return (name, text) if name and text else None
    members = {str(name).lower(): value for name, value in item.items()} if isinstance(item, dict) else {}
    if set(members) == {"key", "value"} and all(isinstance(each, str) for each in members.values()):
        return members["key"], members["value"]
    if len(members) == 1 and isinstance(item, dict):
        ((name, text),) = item.items()
        return (str(name), text) if isinstance(text, str) else None
    return None


def _keys_of(section: type[BaseModel] | None) -> str:
    """Name the required keys of a section, else its first optional keys."""
    fields = {} if section is None else section.model_fields
    required = [name for name, field in fields.items() if field.is_required()]
    keys = required or [*fields][:_MOST_KEYS]
    more = ", ..." if len(keys) < len(fields) else ""
    return f" ({', '.join(keys)}{more})" if keys else ""


def _list_fix(model: type[BaseModel], source: Source, path: DataPath, value: object, key: str) -> str:
    if value is None:
        or_else = "" if _is_needed(model, source, path) else f", or remove {key}"
        return f"write items below {key}, each after '- '{or_else}"
    if isinstance(value, dict):
        named = next(iter(value), None)
        if value and all(isinstance(each, dict | None) for each in value.values()):
            item = model_of(item_type(type_at(model, path)))
            if item is None or "name" not in item.model_fields:
                return f"write each item below {key} after '- ', without {named}: and its like before it"
            return f"write each item below {key} as one that begins with '- name: {named}' and has its keys below that"
        return f"write '- ' before the first key of {key} and indent the others as far, or in braces {key}: [{{...}}]"
    items = value.split() if isinstance(value, str) and value.strip() else [value]
    if _refusal(model, path, items) is None:
        listed = f"[{', '.join(_as_yaml(each) for each in items)}]"
        return Sentence(Setting(key, listed, python=json.dumps(items, ensure_ascii=False)))
    kind = bare(item_type(type_at(model, path)))
    shown = f", such as {key}: [{get_args(kind)[0]}]" if get_origin(kind) is Literal else ""
    return f"write its items below {key}, each after '- '{shown}"


def _text_message(model: type[BaseModel], source: Source, path: DataPath, value: object, example: object) -> str:
    """Say how to write a value as text and, if its check would refuse that too, why."""
    key, written = _key_of(path), source.written(path)
    if isinstance(value, Ambiguous):
        written, reading = value.text, value.reading
    elif isinstance(value, bool | int | float) and written is not None:
        reading = "true or false" if isinstance(value, bool) else f"the number {value}"
    elif value is None:
        or_else = "" if _is_required(model, path) else f", or remove {key}"
        return f"must be text, got nothing; write a value after {key}:{or_else}"
    else:
        shown = (", such as ", Example(_as_yaml(example))) if example else ()
        return Sentence("must be text, got ", _got(value), f"; write {key} as text", *shown)
    said, quoted = f"must be text, got {written}, which YAML reads as {reading}", _quoted(written)
    if reading == "true or false" and optional(type_at(model, path)) and _truth_of(written) is False:
        return Sentence(f"{said}; ", Removal(key))
    problem = _refusal(model, path, written)
    if problem:
        return Sentence(f"{said}; as text it ", _of_the_file(problem, source, quoted))
    return Sentence(said, "; ", Setting(key, quoted, verb="write", python=quoted))


def _number_message(source: Source, path: DataPath, value: object, key: str, example: object) -> str:  # noqa: ARG001
    if isinstance(value, str) and value.strip().isdecimal():
        said = f"must be a whole number, got the text {describe(value)}; "
        return Sentence(said, Setting(key, int(value), verb="write"), " without quotes")
    if isinstance(value, Ambiguous):
        return f"must be a whole number, got {value.text}, which YAML reads as {value.reading}; write plain digits"
    return Sentence("must be a whole number, got ", _got(value), "; write digits", *_such_digits(key, example))


def _fraction_message(source: Source, path: DataPath, value: object, key: str, example: object) -> str:  # noqa: ARG001
    if isinstance(value, str) and value.strip().replace(".", "", 1).isdecimal():
        fix = Setting(key, value.strip(), verb="write", python=value.strip())
        return Sentence(f"must be a number, got the text {describe(value)}; ", fix, " without quotes")
    return Sentence("must be a number, got ", _got(value), "; write digits", *_such_digits(key, example))


def _such_digits(key: str, example: object) -> tuple[str | Advice, ...]:
    return (OnlyInFiles(f" after {key}:"),) if example is None else (", such as ", Stated(key, example))


def _got(value: object) -> str | Advice:
    return Truth(value) if isinstance(value, bool) else describe(value)


def _truth_message(source: Source, path: DataPath, value: object, key: str, example: object) -> str:  # noqa: ARG001
    word = value.text if isinstance(value, Ambiguous) else value
    meant = str(_truth_of(str(word))).lower()
    fix = Setting(key, meant, verb="write")
    other = () if isinstance(word, str | int) else (" or ", Stated(key, "false"))
    return Sentence(
        "must be ", Truth(value=True), " or ", Truth(value=False), f", got {describe(value)}; ", fix, *other
    )


def _truth_of(word: str) -> bool:
    return word.lower() not in {"no", "off", "false", "n", "0"}


def _as_yaml(value: object) -> str:
    if isinstance(value, Ambiguous):
        return value.text
    if isinstance(value, str):
        plain = value.replace("-", "").replace("_", "").replace(".", "").replace(":", "").replace("/", "")
        return value if plain.isalnum() and not plain.isdecimal() else _quoted(value)
    return json.dumps(value)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
