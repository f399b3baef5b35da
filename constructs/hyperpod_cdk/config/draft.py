"""Builds a model from a wrong file, so that one run reports errors of single values and of several values together."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NoReturn, TypeVar, get_origin

from pydantic import BaseModel

from hyperpod_cdk.config.shape import bare, item_type, model_of, optional
from hyperpod_cdk.config.source import DataPath
from hyperpod_cdk.config.suggest import meant_key

Model = TypeVar("Model", bound=BaseModel)
Item = TypeVar("Item")


class UnknownValueError(TypeError):
    """A rule used a value that is wrong in the file, so its result is uncertain."""


class Unknown:
    """Replaces a value that is reported already: any use of it in a rule raises UnknownValueError."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNKNOWN"


def _touched(_unknown: object, *_: object) -> NoReturn:
    raise UnknownValueError


# set afterwards: these take whatever they are given, which no signature of a special method says
for _what in (
    *("getattr", "getitem", "iter", "contains", "len", "bool", "call", "hash", "str", "format"),
    *("eq", "ne", "lt", "le", "gt", "ge", "add", "radd", "sub", "rsub", "mul", "rmul"),
):
    setattr(Unknown, f"__{_what}__", _touched)

UNKNOWN: Any = Unknown()


class PartialMapping(dict[str, Any]):
    """A mapping with entries left out: the missing entries and its length are unknown."""

    def __missing__(self, key: str) -> NoReturn:
        raise UnknownValueError

    def __contains__(self, key: object) -> bool:
        if super().__contains__(key):
            return True
        raise UnknownValueError

    def __len__(self) -> int:
        raise UnknownValueError

    def get(self, key: str, default: Any = None) -> Any:  # noqa: ARG002 - the shape of dict.get
        """Return the value of ``key``; `UNKNOWN` if it is absent."""
        return self[key]


def known(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Go through the entries that are there, for rules that look at one entry at a time."""
    yield from dict.items(values) if isinstance(values, dict) else values.items()


def certain(found: Iterator[Item]) -> Iterator[Item]:
    """Go through what a rule finds until it uses a value that is not known."""
    try:
        yield from found
    except UnknownValueError:
        return
    except TypeError as error:
        # C functions (re, str.join) call no method of an unknown value, they only report its type
        if Unknown.__name__ not in str(error):
            raise


class Faults:
    """Where a file is wrong: the paths that errors name, and the mappings that may be incomplete."""

    likely: Mapping[DataPath, object]
    """Replacements for wrong values that the rest of the file determines, by path."""

    def __init__(self, exact: Collection[DataPath], *, lists: Collection[DataPath], keys: Collection[DataPath]) -> None:
        """Take values to leave unknown, lists and mappings of a wrong size, and mappings with missing entries."""
        self.likely = {}
        self.exact: frozenset[DataPath] = frozenset(exact)
        self.lists: frozenset[DataPath] = frozenset(lists)
        self.keys: frozenset[DataPath] = frozenset(keys)
        touched = self.exact | self.lists | self.keys
        self._above = {path[:length] for path in touched for length in range(len(path) + 1)}

    def touch(self, path: DataPath) -> bool:
        """Return whether something at or below ``path`` is wrong."""
        return path in self._above


def draft(
    model: type[Model], data: object, faults: Faults, likely: Mapping[DataPath, object] = MappingProxyType({})
) -> Model:
    """Build ``model`` from data whose faults are known: faulty values are `UNKNOWN`, others as in a valid file.

    ``likely`` has replacements for some faulty values, by path.
    """
    faults.likely = likely
    built: Model = _value(model, data, (), faults)
    return built


def _value(annotation: Any, data: object, path: DataPath, faults: Faults) -> Any:
    if path in faults.exact:
        return faults.likely.get(path, UNKNOWN)
    model = model_of(annotation)
    if model is not None:
        if not faults.touch(path):
            return None if data is None and optional(annotation) else model.model_validate({} if data is None else data)
        return _model(model, data if isinstance(data, dict) else {}, path, faults)
    kind = get_origin(bare(annotation))
    if kind is tuple and isinstance(data, list):
        items = item_type(annotation)
        return tuple(_value(items, item, (*path, index), faults) for index, item in enumerate(data))
    if kind is dict and isinstance(data, dict):
        values = item_type(annotation)
        built = {
            key: _value(values, value, (*path, key), faults)
            for key, value in data.items()
            if (*path, key) not in faults.keys
        }
        partial = path in faults.lists or len(built) < len(data)
        return PartialMapping(built) if partial else built
    return data


def _model(model: type[Model], data: dict[str, Any], path: DataPath, faults: Faults) -> Model:
    values = {}
    misspelt = _misspelt(model, data)
    for name, info in model.model_fields.items():
        if name in misspelt:
            values[name] = UNKNOWN
        elif name in data or (*path, name) in faults.exact:
            values[name] = _value(info.annotation, data.get(name), (*path, name), faults)
    return model.model_construct(**values)


def _misspelt(model: type[BaseModel], data: dict[str, Any]) -> set[str]:
    """Return the fields that unknown keys were probably meant for: whether they are absent is unknown."""
    absent = [name for name in model.model_fields if name not in data]
    near = (meant_key(str(key), absent) for key in data if key not in model.model_fields)
    return {name for name in near if name is not None}
