"""Arguments of constructs, judged by the annotations of their constructors before anything is made of them.

Without this, a wrong type fails wherever it is first used, in Python or in the JavaScript kernel, with an error that
names neither the argument nor what it takes, and a token chooses whatever the last branch of a construct does.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from hyperpod_cdk.catalog.rules import joined, listing
from hyperpod_cdk.config.arguments import is_token, refuse_for
from hyperpod_cdk.config.problems import without_unit
from hyperpod_cdk.config.source import describe

T = TypeVar("T")

_WHOLE_LIST = "#{Token["
_TOKEN_IN_TEXT = re.compile(r"""["']?[^\s"',;()]*[$#]\{Token\[[^\]]*\]\}[^\s"',;()\]]*["']?|-1\.888\d*e\+289""")

_PROXY = re.compile(r"\._(I[A-Z]\w*)Proxy\b")
"""CDK's proxy of an interface, such as ``aws_cdk.aws_ec2._IVpcProxy``."""


def judged(*, known: Sequence[str] = (), whole: Sequence[str] = ()) -> Callable[[type[T]], type[T]]:
    """Let a class raise ValueError for arguments of other types than its constructor's annotations.

    A choice (``Literal``) must be known at synthesis, and so must the arguments in ``known``: whatever is in a
    construct ID, in a name that is cut, in a file, or in a decision of the construct. A list must have a known length,
    because its items are judged and used one by one, except those in ``whole``, which a template takes as they are.
    """

    def with_judge(cls: type[T]) -> type[T]:
        make = cls.__init__
        parameters = [*inspect.signature(make).parameters][1:]

        @functools.wraps(make)
        def judging(self: T, *args: Any, **given: Any) -> None:
            problems: list[str] = []
            for name, value in {**dict(zip(parameters, args, strict=False)), **given}.items():
                kind = _annotations(make).get(name, Any)
                problems.extend(_problems(kind, value, name))
                problems.extend(_token_problems(kind, value, name, is_known=name in known, is_whole=name in whole))
            refuse_for(_readable(each) for each in problems)
            try:
                make(self, *args, **given)
            except ValueError as refused:
                refused.args = tuple(_readable(each) if isinstance(each, str) else each for each in refused.args)
                raise

        cls.__init__ = judging  # type: ignore[assignment, method-assign]  # checkers read the original signature
        return cls

    return with_judge


@functools.cache
def _annotations(of: Any) -> Mapping[str, Any]:
    return get_type_hints(of)


def _readable(said: str) -> str:
    """Return a message without CDK's encoding of tokens, which means nothing to its reader."""
    return _TOKEN_IN_TEXT.sub("a token", said)


def _problems(kind: Any, value: Any, key: str) -> Iterator[str]:
    """Yield what is wrong with the type of ``value`` and of what is in it."""
    origin, of = get_origin(kind), get_args(kind)
    if origin in {Union, UnionType}:
        yield from _of_a_union(of, value, key)
    elif origin is not None and origin is not Literal and _fits(kind, value):
        yield from (_in_a_mapping if issubclass(origin, Mapping) else _in_a_list)(of, value, key)
    elif not _fits(kind, value):
        yield f"{key}: must be {_name_of(kind)}, got {_got(value)}; {_fix_of(kind, value, key)}"
    else:
        for field, kind_of_field, held in _fields(value):
            yield from _problems(kind_of_field, held, f"{key}.{field}")


def _of_a_union(of: Sequence[Any], value: Any, key: str) -> Iterator[str]:
    kinds = [each for each in of if each is not NoneType]
    if value is None and len(kinds) < len(of):
        return
    fitting = [each for each in kinds if _fits(each, value)]
    if fitting:
        yield from _problems(fitting[0], value, key)
    else:
        named = listing([_name_of(each) for each in kinds])
        yield f"{key}: must be {named}, got {_got(value)}; {_fix_of(kinds[0], value, key)}"


def _in_a_mapping(of: Sequence[Any], value: Mapping[Any, Any], key: str) -> Iterator[str]:
    for each, item in value.items():
        if not _fits(of[0], each):
            yield f"{key}: must have {_name_of(of[0])} as its keys, got {_got(each)}; correct the key"
        yield from _problems(of[1], item, f"{key}[{each!r}]")


def _in_a_list(of: Sequence[Any], value: Sequence[Any], key: str) -> Iterator[str]:
    for index, item in enumerate(value):
        yield from _problems(of[0], item, f"{key}[{index}]")


def _fits(kind: Any, value: Any) -> bool:
    """Return whether ``value`` is of this type, whatever is in it; text of a choice is judged by its field."""
    origin = get_origin(kind)
    if kind in {Any, object}:
        return True
    if kind in _PLAIN:
        return _PLAIN[kind][0](value)
    if origin is Literal:
        return isinstance(value, str)
    if origin is None:
        return _is_a(kind, value)
    if issubclass(origin, Mapping):
        return isinstance(value, Mapping)
    # order and length of a generator or a set are not those of what a user wrote
    wanted = origin if origin is Collection else Sequence
    return isinstance(value, wanted) and not isinstance(value, str | bytes | Mapping)


def _fields(value: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield name, annotation and value of each field of a dataclass; nothing of other objects."""
    kind: Any = type(value)
    is_dataclass: bool = dataclasses.is_dataclass(kind)
    for each in dataclasses.fields(kind) if is_dataclass else ():
        yield each.name, _annotations(kind)[each.name], getattr(value, each.name)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_whole_number(value: object) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, float) and is_token(value))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_truth_value(value: object) -> bool:
    return isinstance(value, bool)


_PLAIN: Mapping[Any, tuple[Callable[[object], bool], str]] = {
    str: (_is_text, "text"),
    int: (_is_whole_number, "a whole number"),
    float: (_is_number, "a number"),
    bool: (_is_truth_value, "True or False"),
}
"""Type -> whether a value is one, and its name in a sentence."""


def _is_a(kind: Any, value: Any) -> bool:
    if not getattr(kind, "_is_protocol", False):
        return isinstance(value, kind)
    if not hasattr(kind, "__jsii_type__"):
        return all(hasattr(value, name) for name in _members(kind))
    # protocols refuse issubclass
    wanted = {kind, kind.__jsii_proxy_class__()}
    parts = _classes(value)
    named = (each for part in parts for each in (part, *getattr(part, "__jsii_ifaces__", ())))
    members = _members(kind)
    return any(wanted & {*each.__mro__} for each in named) or (
        bool(members) and all(any(hasattr(part, name) for part in parts) for name in members)
    )


def _members(kind: Any) -> list[str]:
    return [name for base in kind.__mro__ for name in vars(base) if not name.startswith("_")]


def _classes(value: Any) -> list[Any]:
    """Return the class of a value; of what CDK returns as an interface, those of the proxy's delegates.

    Asking such a value itself for an attribute would ask Node.js.
    """
    held = getattr(value, "__dict__", {})
    return [type(each) for each in held.get("_delegates", [value])]


def _name_of(kind: Any) -> str:
    origin = get_origin(kind)
    if kind in _PLAIN:
        return _PLAIN[kind][1]
    if origin is Literal:
        return listing(get_args(kind))
    if origin is not None:
        return "a mapping" if issubclass(origin, Mapping) else "a list"
    is_of_cdk = hasattr(kind, "__jsii_type__") and not kind.__module__.startswith("hyperpod_cdk")
    # a protocol of ours takes whatever is like the class that is passed
    name = f"{kind.__module__.rpartition('.')[2]}.{kind.__name__}" if is_of_cdk else _class_like(kind)
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"


def _fix_of(kind: Any, value: Any, key: str) -> str:
    origin = get_origin(kind)
    if origin is Literal:
        return f"set {key} to one of these"
    if kind in _PLAIN:
        return _fix_of_plain(kind, value, key)
    if origin is not None:
        is_listed = hasattr(value, "__iter__") and not isinstance(value, str | Mapping)
        text = f'["{value}"]' if isinstance(value, str) else "list(...)" if is_listed else "[...]"
        return f"write {key}={'{...}' if issubclass(origin, Mapping) else text}"
    if issubclass(kind, Enum):
        return f"write one of its members, such as {kind.__name__}.{next(iter(kind)).name}"
    is_cdks = hasattr(kind, "__jsii_type__")
    return "pass such a construct" if is_cdks else f"write {key}={_class_like(kind)}(...)"


def _class_like(kind: Any) -> str:
    """Return the name of a class, or of the one that a protocol such as ``TaintLike`` is named after."""
    return str(kind.__name__).removesuffix("Like") or "Like"


def _fix_of_plain(kind: Any, value: Any, key: str) -> str:
    if kind is bool:
        return f"write {key}=True or {key}=False"
    if kind is str:
        return f'write {key}="{value}"' if _is_number(value) else f"write {key} as text"
    text = value.strip() if isinstance(value, str) else ""
    number = int(text) if text.isdecimal() else without_unit(key, text)
    return f"write {key} in digits" if number is None else f"write {key}={number}"


def _got(value: object) -> str:
    if value is None or isinstance(value, str | int | float | list | tuple | dict):
        return "None" if value is None else str(value) if isinstance(value, bool) else describe(value)
    named = joined([f"{each.__module__}.{each.__qualname__}" for each in _classes(value)])
    readable = _PROXY.sub(r".\1", named.removeprefix("builtins."))
    return f"an object of {readable}"


def _token_problems(kind: Any, value: Any, key: str, *, is_known: bool, is_whole: bool) -> Iterator[str]:
    """Yield where a token is in place of what must be known at synthesis, or of a whole list."""
    if isinstance(value, list | tuple):
        if not is_whole and any(_WHOLE_LIST in each for each in value if isinstance(each, str)):
            yield (
                f"{key}: must be a list of known length, got a token of a whole list; pass its items one by one, such"
                " as Fn.select(0, ...)"
            )
        for index, item in enumerate(value):
            yield from _token_problems(kind, item, f"{key}[{index}]", is_known=is_known, is_whole=True)
    elif isinstance(value, Mapping):
        for each, item in value.items():
            yield from _token_problems(kind, each, f"a key of {key}", is_known=True, is_whole=True)
            yield from _token_problems(kind, item, f"{key}[{each!r}]", is_known=is_known, is_whole=True)
    elif (is_known or _is_choice(kind)) and is_token(value):
        yield f"{key}: must be known at synthesis, got a token; write the value out"
    else:
        for field, kind_of_field, held in _fields(value):
            yield from _token_problems(kind_of_field, held, f"{key}.{field}", is_known=is_known, is_whole=True)


def _is_choice(kind: Any) -> bool:
    return get_origin(kind) is Literal or any(map(_is_choice, get_args(kind)))
