"""Each parameter of a public class has a separate line with its default, and each argument of a method is described."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import sys
import textwrap
import types
from collections.abc import Iterator

import hyperpod_cdk
from tests.support.tables import row_by_row

_NAMES = re.compile(r"((?:``\w+``(?:, )?)+):")


@row_by_row("name", hyperpod_cdk.__all__)
def test_each_parameter_has_a_line(name: str) -> None:
    public = getattr(hyperpod_cdk, name)
    text = inspect.getdoc(public) or ""
    told = {word for line in text.splitlines() if (m := _NAMES.match(line)) for word in re.findall(r"``(\w+)``", m[1])}
    assert {each for each, _ in _parameters(public)} - told == set()


@row_by_row("name", hyperpod_cdk.__all__)
def test_the_default_said_is_the_one_there_is(name: str) -> None:
    public = getattr(hyperpod_cdk, name)
    blocks = [" ".join(block.split()) for block in re.split(r"\n\s*\n", inspect.getdoc(public) or "")]
    wrong = {}
    for parameter, default in _parameters(public):
        own = " ".join(block for block in blocks if (m := _NAMES.match(block)) and f"``{parameter}``" in m[1])
        said = own.partition("Default: ")[2]
        if default is _NEEDED:
            if said:
                wrong[parameter] = f"is needed, said: {said}"
        elif not re.match(_told(default), said):
            wrong[parameter] = f"is {default!r}, said: {said or 'nothing'}"
    assert wrong == {}


@row_by_row("name", hyperpod_cdk.__all__)
def test_what_is_refused_is_said(name: str) -> None:
    public = getattr(hyperpod_cdk, name)
    says = "Raises ValueError" in " ".join((inspect.getdoc(public) or "").split())
    own = any(_raises(each, public, set(), others=False) for each in _constructors(public))
    all_of_it = any(_raises(each, public, set(), others=True) for each in _constructors(public))
    assert (says or not own, all_of_it or not says) == (True, True)


@row_by_row("name", hyperpod_cdk.__all__)
def test_each_argument_of_a_method_is_named(name: str) -> None:
    public = getattr(hyperpod_cdk, name)
    unnamed = {}
    for method, function in _methods(public):
        text = inspect.getdoc(function) or ""
        of_caller = [each for each in inspect.signature(function).parameters if each not in {"self", "cls"}]
        missing = [each for each in of_caller if f"``{each}``" not in text]
        if missing:
            unnamed[method] = missing
    assert unnamed == {}


_NEEDED = object()


def _told(default: object) -> str:
    """Return what a sentence about ``default`` begins with, as a pattern; what None and nothing mean is free."""
    if isinstance(default, bool):
        return r"yes\b" if default else r"no\b"
    if isinstance(default, int):
        return rf"{default}\b(?!,)"
    # an enumeration of CDK's is said in words
    if type(default) is str and default:
        return f"``{default}``"
    return r"(?!yes\b|no[.,;]|\d+[.]$)."


def _constructors(public: type) -> list[object]:
    return [vars(public)[each] for each in ("__init__", "__post_init__") if each in vars(public)]


def _raises(function: object, owner: type | None, seen: set[object], *, others: bool) -> bool:
    """Return whether a function of ours can raise ValueError itself or by what it calls by name.

    With ``others`` also by the constructors of public classes that it makes, which speak for themselves.
    """
    if isinstance(function, staticmethod | classmethod):
        function = function.__func__
    if not isinstance(function, types.FunctionType) or not function.__module__.startswith("hyperpod_cdk"):
        return False
    # a dataclass has an __init__ that no file holds
    if function in seen or function.__code__.co_filename == "<string>":
        return False
    seen.add(function)
    module = sys.modules[function.__module__]
    nodes = list(ast.walk(ast.parse(textwrap.dedent(inspect.getsource(function)))))
    if any(isinstance(each, ast.Raise) and each.exc and "ValueError" in ast.unparse(each.exc) for each in nodes):
        return True
    for call in (each.func for each in nodes if isinstance(each, ast.Call)):
        for called, its_owner in _called(call, module, owner, others=others):
            if _raises(called, its_owner, seen, others=others):
                return True
    return False


def _called(
    call: ast.expr, module: types.ModuleType, owner: type | None, *, others: bool
) -> Iterator[tuple[object, type | None]]:
    found: object = None
    if isinstance(call, ast.Name):
        found = getattr(module, call.id, None)
    elif isinstance(call, ast.Attribute) and isinstance(call.value, ast.Name):
        place = owner if call.value.id == "self" else getattr(module, call.value.id, None)
        found = inspect.getattr_static(place, call.attr, None)
    elif isinstance(call, ast.Attribute) and ast.unparse(call.value) == "super()" and owner is not None:
        for base in owner.__bases__:
            yield inspect.getattr_static(base, call.attr, None), base
    if not isinstance(found, type):
        yield found, owner
    elif others or found.__name__ not in hyperpod_cdk.__all__:
        yield from ((each, found) for each in _constructors(found))


def _methods(public: type) -> Iterator[tuple[str, types.FunctionType]]:
    """Yield the functions that a class has of its own for those who use it."""
    for name, found in vars(public).items():
        function = found.__func__ if isinstance(found, staticmethod | classmethod) else found
        if isinstance(function, types.FunctionType) and not name.startswith("_"):
            yield name, function


def _parameters(public: type) -> list[tuple[str, object]]:
    """Return the arguments that a caller writes, each with its default."""
    if dataclasses.is_dataclass(public):
        missing = dataclasses.MISSING
        return [
            (
                each.name,
                each.default_factory()
                if each.default_factory is not missing
                else _NEEDED
                if each.default is missing
                else each.default,
            )
            for each in dataclasses.fields(public)
        ]
    # the metaclass of jsii hides what a construct takes
    constructor = inspect.getattr_static(public, "__init__", object.__init__)
    return [
        (each.name, _NEEDED if each.default is each.empty else each.default)
        for each in inspect.signature(constructor).parameters.values()
        if each.kind is each.KEYWORD_ONLY
    ]
