"""Each parameter of a public class has a line with its type, unit and default; arguments of methods are named."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import sys
import textwrap
import types
from collections.abc import Iterator
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import hyperpod_cdk
import hyperpod_cdk_stacks
from hyperpod_cdk_stacks import environment, foundation, hyperpod, network, observability, platform, storage
from tests.support.tables import row_by_row

_STACKS = (
    environment.HyperPodEnvironment,
    foundation.FoundationStack,
    hyperpod.HyperPodStack,
    network.NetworkParts,
    observability.ObservabilityStack,
    platform.PlatformStack,
    storage.StorageStack,
)
CLASSES: dict[str, type] = {name: getattr(hyperpod_cdk, name) for name in hyperpod_cdk.__all__}
CLASSES |= {each.__name__: each for each in _STACKS}
"""The public classes of the library and of the stacks that an extension gets, by name."""

_LINE = re.compile(r"``(\w+)``(?= \(|:|, ``)")


@row_by_row("name", CLASSES)
def test_each_parameter_has_a_line_of_its_own(name: str) -> None:
    public = CLASSES[name]
    assert sorted(_lines(public)) == sorted(each for each, _ in _parameters(public))


@row_by_row("name", CLASSES)
def test_the_stated_type_is_that_of_the_annotation(name: str) -> None:
    public = CLASSES[name]
    lines = _lines(public)
    wrong = {}
    for parameter, default in _parameters(public):
        kind = _hints(public)[parameter]
        written = _written(kind)
        if default is None:
            written = written.removesuffix(" | None")
        unit, is_needed = "ARNs?", re.search(r"(^|_)arns?($|_for_)", parameter) is not None
        if {int, float} & {*_parts(kind)}:
            unit, is_needed = "[A-Za-z/' ]+", True
        told = rf"{re.escape(written)}(, {unit}){'' if is_needed else '?'}"
        if not re.match(rf"``{parameter}`` \({told}\): \S", lines[parameter]):
            wrong[parameter] = f"{written}{', and a unit' if is_needed else ''}"
    assert wrong == {}


@row_by_row("name", hyperpod_cdk.__all__)
def test_types_can_be_named(name: str) -> None:
    """What a parameter takes, and what an attribute or a method returns, has a public name."""
    public = CLASSES[name]
    hints = [_hints(public)[parameter] for parameter, _ in _parameters(public)]
    for _, function in _methods(public):
        hints += get_type_hints(function).values()
    for each in vars(public).values():
        if isinstance(each, property):
            hints += get_type_hints(each.fget).values()
    hints += _annotated(public)
    nameless = {
        part
        for hint in hints
        for part in _parts(hint)
        if part.__module__.startswith("hyperpod_cdk.") and not _is_public(part)
    }
    assert nameless == set()


@row_by_row("name", CLASSES)
def test_the_stated_default_is_the_one_there_is(name: str) -> None:
    public = CLASSES[name]
    lines = _lines(public)
    wrong = {}
    for parameter, default in _parameters(public):
        said = lines[parameter].partition("Default: ")[2]
        if default is _NEEDED:
            if said:
                wrong[parameter] = f"is needed, said: {said}"
        elif not re.match(_told(default), said):
            wrong[parameter] = f"is {default!r}, said: {said or 'nothing'}"
    assert wrong == {}


@row_by_row("name", hyperpod_cdk.__all__)
def test_what_is_refused_is_reported(name: str) -> None:
    public = CLASSES[name]
    says = "Raises ValueError" in " ".join((inspect.getdoc(public) or "").split())
    own = any(_raises(each, public, set(), others=False) for each in _constructors(public))
    all_of_it = any(_raises(each, public, set(), others=True) for each in _constructors(public))
    assert (says or not own, all_of_it or not says) == (True, True)


def test_the_function_of_an_app_says_its_type() -> None:
    lines = _lines(hyperpod_cdk_stacks.synthesize)
    assert list(lines) == list(inspect.signature(hyperpod_cdk_stacks.synthesize).parameters)
    assert lines["project"].startswith("``project`` (Path): ")


@row_by_row("name", CLASSES)
def test_each_argument_of_a_method_is_named(name: str) -> None:
    public = CLASSES[name]
    unnamed = {}
    for method, function in _methods(public):
        text = inspect.getdoc(function) or ""
        of_caller = [each for each in inspect.signature(function).parameters if each not in {"self", "cls"}]
        missing = [each for each in of_caller if f"``{each}``" not in text]
        if missing:
            unnamed[method] = missing
    assert unnamed == {}


_NEEDED = object()


def _lines(public: object) -> dict[str, str]:
    """Return the line of each parameter, by its name; of a line that two share, only the first has one."""
    blocks = (" ".join(block.split()) for block in re.split(r"\n\s*\n", inspect.getdoc(public) or ""))
    return {found[1]: block for block in blocks if (found := _LINE.match(block))}


def _hints(public: type) -> dict[str, Any]:
    return get_type_hints(public if dataclasses.is_dataclass(public) else inspect.getattr_static(public, "__init__"))


def _written(kind: Any) -> str:
    """Return a type as a caller writes it, with the usual names of CDK's modules."""
    origin, of = get_origin(kind), get_args(kind)
    if kind is types.NoneType:
        return "None"
    if origin is Literal:
        return " | ".join(f'"{each}"' for each in of)
    if origin in (Union, types.UnionType):
        return " | ".join(map(_written, of))
    if origin is not None:
        return f"{origin.__name__}[{', '.join('...' if each is ... else _written(each) for each in of)}]"
    module, _, service = kind.__module__.partition(".aws_")
    return f"{service or 'cdk'}.{kind.__name__}" if module == "aws_cdk" else str(kind.__name__)


def _parts(kind: Any) -> Iterator[Any]:
    """Yield the classes in a type."""
    if get_origin(kind) is None:
        yield from () if kind in (..., Any) else (kind,)
    elif get_origin(kind) is not Literal:
        for each in get_args(kind):
            yield from _parts(each)


def _annotated(public: type) -> list[Any]:
    """Return the types of the attributes that a constructor sets."""
    names = vars(sys.modules[public.__module__])
    constructors = [each for each in _constructors(public) if isinstance(each, types.FunctionType)]
    return [
        eval(ast.unparse(node.annotation), names)  # noqa: S307 - of this library's own source
        for each in constructors
        if each.__code__.co_filename != "<string>"
        for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(each))))
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target).startswith("self.")
        if not ast.unparse(node.target).startswith("self._")
    ]


def _is_public(kind: Any) -> bool:
    return kind.__name__ in hyperpod_cdk.__all__ and getattr(hyperpod_cdk, kind.__name__) is kind


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
    return [inspect.unwrap(vars(public)[each]) for each in ("__init__", "__post_init__") if each in vars(public)]


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
