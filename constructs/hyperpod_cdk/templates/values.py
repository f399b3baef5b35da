"""Resolves references through an environment's stacks, as far as the templates show."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # an assembly reads the names of its exports with this module
    from hyperpod_cdk.templates.assembly import Assembly, Resource, Stack

_SUBSTITUTION = re.compile(r"\$\{([^!}][^}]*)\}")
_DEPTH = 100
_LONGEST_MEANING = 1000
_YAML_BOOLEANS = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n"})
"""Words that some YAML parsers read as booleans, in any case."""
_NUMERIC = re.compile(r"[-+]?[.0-9][-+.:_0-9a-fx]*", re.IGNORECASE)
"""A text that could be a number which YAML writes in another way: 1.0, 010, 0x1F, 1_000."""
_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]*)")
STORED = "AWS::SSM::Parameter::Value<"
UNKNOWN_MARKS = ("${", "{Fn::", "{if ", "{import ", "{{resolve:")
"""The start of a part of a resolved text that only the deployment knows."""
UNKNOWN_PART = re.compile(r"\$\{(?:[^{}]|\{[^{}]*\})*\}|\{(?:Fn::|if |import )(?:[^{}]|\{[^{}]*\})*\}")
"""Such a part as a whole, except for a dynamic reference."""


@dataclass(frozen=True)
class Reference:
    """A value that AWS provides when the resource exists: ``Ref`` of a resource, or one of its attributes."""

    stack: str
    logical_id: str
    attribute: str = ""


@dataclass(frozen=True)
class Unknown:
    """A value that the templates do not show: a parameter without default, an import from elsewhere, a condition.

    The text contains everything that it depends on, so that two are equal only if nothing of it has changed.
    """

    text: str
    is_choice: bool = field(default=False, compare=False)
    """Whether a condition that the templates do not show chooses between two values."""


def resolve(assembly: Assembly, stack: str, value: Any) -> Any:
    """Resolve a template value as far as possible.

    Returns plain data in which every reference to a resource of the assembly is a ``Reference`` and every value that
    only the deployment knows is an ``Unknown``. A text with such a part becomes a text with ``${...}`` in it.
    """
    found = _Resolver(assembly).resolve(assembly.by_name[stack], value, 0)
    return None if found is _NO_VALUE else found


def resolved_properties(assembly: Assembly, resource: Resource) -> Any:
    """Return the properties of a resource of the assembly as ``resolve`` does, but only once: callers do not change
    them."""
    key = ("properties", resource.stack, resource.logical_id)
    body, found = assembly.read.get(key, (None, None))
    if body is not resource.body:
        found = resolve(assembly, resource.stack, resource.properties)
        assembly.read[key] = (resource.body, found)
    return found


def target(assembly: Assembly, stack: str, value: Any) -> Resource | None:
    """Return the resource of the assembly that a value refers to, through exports, None for anything else."""
    found = resolve(assembly, stack, value)
    return assembly.find(found.stack, found.logical_id) if isinstance(found, Reference) else None


def plain(value: Any) -> str:
    """Return a resolved value in readable form, on one line."""
    if isinstance(value, Reference):
        return f"{value.logical_id}.{value.attribute}" if value.attribute else value.logical_id
    if isinstance(value, Unknown):
        return value.text
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(plain(item) for item in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {plain(item)}' for key, item in value.items())}}}"
    return "" if value is None else str(value)


def is_function(value: Any) -> bool:
    """Whether a value of a template is an intrinsic function or a ``Ref``."""
    return isinstance(value, dict) and len(value) == 1 and all(key == "Ref" or key.startswith("Fn::") for key in value)


def is_known(value: Any) -> bool:
    """Whether a resolved value is known as a whole: nothing of it is left to the deployment."""
    if isinstance(value, str):
        return not any(mark in value for mark in UNKNOWN_MARKS)
    if isinstance(value, (list, dict)):
        return all(is_known(each) for each in (value.values() if isinstance(value, dict) else value))
    return not isinstance(value, (Unknown, Reference))


def choices(assembly: Assembly, stack: str, value: Any) -> tuple[list[Any], list[str]]:
    """Return the values among which conditions choose that the templates do not show, and those conditions.

    One value if the templates show which; None is none at all. What is inside the values is not resolved.
    """
    if not (is_function(value) and isinstance(stated := value.get("Fn::If"), list) and len(stated) == 3):
        return [None if value == {"Ref": "AWS::NoValue"} else value], []
    holds = resolve(assembly, stack, {"Fn::If": [stated[0], True, False]})
    below = [stated[1 if holds else 2]] if isinstance(holds, bool) else stated[1:]
    each = [choices(assembly, stack, one) for one in below]
    names = [] if isinstance(holds, bool) else [_named(assembly.by_name[stack], plain(stated[0]))]
    return [one for found, _ in each for one in found], list(
        dict.fromkeys([*names, *(n for _, more in each for n in more)])
    )


def references(value: Any) -> Iterator[tuple[str, str]]:
    """Return (logical ID, attribute) of every reference in one template's value; a ``Ref`` has no attribute."""
    # parts without references are skipped: this is called for everything in templates
    pending: list[Any] = _holding([value])
    while pending:
        item = pending.pop()
        if isinstance(item, list):
            pending += _holding(item)
            continue
        if "Ref" in item and isinstance(item["Ref"], str):
            yield item["Ref"], ""
        if "Fn::GetAtt" in item and (attribute := _attribute(item["Fn::GetAtt"]) or _of_any(item["Fn::GetAtt"])):
            yield attribute
        if "Fn::Sub" in item:
            substitution = item["Fn::Sub"]
            text = substitution[0] if isinstance(substitution, list) and substitution else substitution
            for name in _SUBSTITUTION.findall(text) if isinstance(text, str) else ():
                logical_id, _, attribute_name = name.partition(".")
                yield logical_id, attribute_name
        pending += _holding(item.values())


def imports(stack: Stack, value: Any = None) -> Iterator[str]:
    """Return the name of every export that a stack, or ``value`` of its template, imports, if it is known."""
    found = stack.imported if value is None else _imported(stack, value)
    yield from (name for name in found if name is not None)


def imports_unknown(stack: Stack) -> bool:
    """Whether a stack imports something with a name that only the deployment knows."""
    return None in stack.imported


def export_name(stack: Stack, stated: Any) -> str | None:
    """Return the name of an export as a stack's template states it, None if only the deployment knows it."""
    name = alone(stack, stated)
    return name if isinstance(name, str) and is_known(name) else None


def alone(stack: Stack, value: Any) -> Any:
    """Resolve a value of a template as far as possible with its own parameters, conditions and mappings."""
    return _Resolver(None).resolve(stack, value, 0)


def holds(stack: Stack, condition: Any) -> bool | None:
    """Whether a condition of a stack is true, by its name; None if only the deployment knows it, or if it does not
    exist."""
    return _Resolver(None).holds(stack, {"Condition": condition}, 0)


def meaning(stack: Stack, condition: str) -> str:
    """Return ``true`` or ``false`` for a condition of a stack, by its name, or else what its value depends on.

    The text contains everything that decides it, with parameters, mappings and other conditions resolved: two are equal
    only if the conditions are true for the same deployments, as far as the templates show.
    """
    return _Resolver(None).meaning(stack, {"Condition": condition}, 0)


def imported(stack: Stack) -> tuple[str | None, ...]:
    """Return the value of ``Stack.imported``: the name of each import of a template, None if it is unknown."""
    return tuple(_imported(stack, dict(stack.template)))


def _imported(stack: Stack, value: Any) -> Iterator[str | None]:
    pending: list[Any] = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, list):
            pending += _holding(item)
        elif isinstance(item, dict):
            if "Fn::ImportValue" in item:
                yield export_name(stack, item["Fn::ImportValue"])
            pending += _holding(item.values())


def _holding(values: Iterable[Any]) -> list[Any]:
    """Return the values that may contain something to resolve: most are plain."""
    return [value for value in values if isinstance(value, (dict, list))]


def _attribute(value: Any) -> tuple[str, str] | None:
    if isinstance(value, str):
        logical_id, _, name = value.partition(".")
        return logical_id, name
    if isinstance(value, list) and len(value) == 2 and all(isinstance(each, str) for each in value):
        return value[0], value[1]
    return None


def _of_any(value: Any) -> tuple[str, str] | None:
    """Return a reference to a resource of which a function names the attribute: it may be the resource itself."""
    is_by_function = isinstance(value, list) and len(value) == 2 and isinstance(value[0], str) and is_function(value[1])
    return (value[0], "") if is_by_function else None


class _Resolver:
    def __init__(self, assembly: Assembly | None) -> None:
        self.assembly = assembly
        self._importing: set[str] = set()

    def resolve(self, stack: Stack, value: Any, depth: int) -> Any:
        if depth > _DEPTH:
            return Unknown("...")
        below = depth + 1
        # most values are plain, and a call for each would take most of the time
        if isinstance(value, list):
            items = [self.resolve(stack, item, below) if isinstance(item, (dict, list)) else item for item in value]
            return [item for item in items if item is not _NO_VALUE]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            ((key, argument),) = value.items()
            handler = self._FUNCTIONS.get(key)
            if handler is not None:
                return handler(self, stack, argument, below)
            if key.startswith("Fn::"):
                return _unknown(key, self.resolve(stack, argument, below))
        resolved = {
            key: self.resolve(stack, item, below) if isinstance(item, (dict, list)) else item
            for key, item in value.items()
        }
        return {key: item for key, item in resolved.items() if item is not _NO_VALUE}

    def _ref(self, stack: Stack, name: Any, depth: int) -> Any:
        if is_function(name):
            # AWS::LanguageExtensions allows it (CloudFormation template reference, Ref)
            name = self.resolve(stack, name, depth)
            if not (isinstance(name, str) and is_known(name)):
                return Unknown(f"${{{_shown(name)}}}")
        if not isinstance(name, str):
            return Unknown("{Ref}")
        if name == "AWS::NoValue":
            return _NO_VALUE
        if name in stack.logical_ids:
            return Reference(stack.name, name)
        return _given(stack, name)

    def _get_att(self, stack: Stack, argument: Any, depth: int) -> Any:
        if isinstance(argument, list) and any(is_function(each) for each in argument):
            # AWS::LanguageExtensions allows it (CloudFormation template reference, Fn::GetAtt)
            argument = self.resolve(stack, argument, depth)
            if not is_known(argument):
                return _unknown("Fn::GetAtt", argument)
        attribute = _attribute(argument)
        if attribute is None or attribute[0] not in stack.logical_ids:
            return Unknown(f"{{Fn::GetAtt: {argument}}}")
        return Reference(stack.name, *attribute)

    def _import(self, stack: Stack, argument: Any, depth: int) -> Any:
        name = self.resolve(stack, argument, depth)
        exported = self.assembly.exports.get(name) if self.assembly is not None and isinstance(name, str) else None
        if exported is None:
            return Unknown(f"{{import {plain(name)}}}")
        if name in self._importing:
            # two exports that need each other, which no deployment can create
            return Unknown("{import ...}")
        self._importing.add(name)
        try:
            return self.resolve(exported[0], exported[1], depth)
        finally:
            self._importing.remove(name)

    def _join(self, stack: Stack, argument: Any, depth: int) -> Any:
        if not isinstance(argument, list) or len(argument) != 2:
            return _unknown("Fn::Join", self.resolve(stack, argument, depth))
        parts = self.resolve(stack, argument[1], depth)
        if not isinstance(parts, list):
            return _unknown("Fn::Join", [argument[0], parts])
        return str(argument[0]).join(_embedded(part) for part in parts)

    def _sub(self, stack: Stack, argument: Any, depth: int) -> Any:
        text, own = argument if isinstance(argument, list) and len(argument) == 2 else (argument, {})
        if not isinstance(text, str):
            return _unknown("Fn::Sub", self.resolve(stack, argument, depth))

        def meant(name: str) -> Any:
            if isinstance(own, dict) and name in own:
                return self.resolve(stack, own[name], depth)
            return self.resolve(stack, {"Fn::GetAtt": name} if "." in name else {"Ref": name}, depth)

        def replaced(found: re.Match[str]) -> str:
            return _embedded(meant(found[1]))

        whole = _SUBSTITUTION.fullmatch(text)
        if whole and isinstance(only := meant(whole[1]), (Reference, Unknown)):
            # only a reference: the same as the reference itself
            return only
        return _SUBSTITUTION.sub(replaced, text).replace("${!", "${")

    def _select(self, stack: Stack, argument: Any, depth: int) -> Any:
        if isinstance(argument, list) and len(argument) == 2:
            index, items = self.resolve(stack, argument[0], depth), self.resolve(stack, argument[1], depth)
            if isinstance(items, list) and str(index).isdecimal() and int(index) < len(items):
                return items[int(index)]
            return _unknown("Fn::Select", [index, items])
        return _unknown("Fn::Select", self.resolve(stack, argument, depth))

    def _split(self, stack: Stack, argument: Any, depth: int) -> Any:
        if isinstance(argument, list) and len(argument) == 2:
            text = self.resolve(stack, argument[1], depth)
            if isinstance(text, str) and is_known(text) and argument[0]:
                return text.split(str(argument[0]))
            return _unknown("Fn::Split", [argument[0], text])
        return _unknown("Fn::Split", self.resolve(stack, argument, depth))

    def _find_in_map(self, stack: Stack, argument: Any, depth: int) -> Any:
        if isinstance(argument, list) and len(argument) >= 3:
            keys = [_key(self.resolve(stack, each, depth)) for each in argument[:3]]
            more = [self.resolve(stack, each, depth) for each in argument[3:]]
            found: Any = stack.mappings
            for index, key in enumerate(keys):
                if isinstance(found, dict) and not (isinstance(key, str) and is_known(key)):
                    # whatever the key will be, it is one of these
                    return Unknown(f"{{Fn::FindInMap: {_shown([*keys[index:], *more])} of {plain(found)}}}")
                if isinstance(found, dict) and key not in found and "Fn::Transform" not in found and more:
                    return self._default_of_map(stack, argument, depth)
                found = found.get(key) if isinstance(found, dict) else None
            if found is not None:
                return found
        return _unknown("Fn::FindInMap", self.resolve(stack, argument, depth))

    def _default_of_map(self, stack: Stack, argument: list[Any], depth: int) -> Any:
        """Return the DefaultValue of AWS::LanguageExtensions for a key that a mapping does not have."""
        stated = argument[3]
        if isinstance(stated, dict) and set(stated) == {"DefaultValue"}:
            return self.resolve(stack, stated["DefaultValue"], depth)
        return _unknown("Fn::FindInMap", self.resolve(stack, argument, depth))

    def _if(self, stack: Stack, argument: Any, depth: int) -> Any:
        if not isinstance(argument, list) or len(argument) != 3 or not isinstance(argument[0], str):
            return _unknown("Fn::If", self.resolve(stack, argument, depth))
        holds = self.holds(stack, {"Condition": argument[0]}, depth)
        if holds is None:
            one, other = (_shown(self.resolve(stack, each, depth)) for each in argument[1:])
            return Unknown(f"{{if {_named(stack, argument[0])}: {one}, else {other}}}", is_choice=True)
        return self.resolve(stack, argument[1 if holds else 2], depth)

    def holds(self, stack: Stack, condition: Any, depth: int) -> bool | None:
        if depth > _DEPTH or not isinstance(condition, dict) or len(condition) != 1:
            return None
        ((key, argument),) = condition.items()
        if key == "Condition" and isinstance(argument, str):
            if argument not in stack.held:
                # a condition that needs itself is unknown, and one that others need often is evaluated once
                stack.held[argument] = None
                stack.held[argument] = self.holds(stack, stack.conditions.get(argument), depth + 1)
            return stack.held[argument]
        arguments = argument if isinstance(argument, list) else []
        if key == "Fn::Equals":
            values = [self.resolve(stack, each, depth + 1) for each in arguments]
            are_known = len(values) == 2 and all(is_known(each) for each in values)
            return _is_equal(values[0], values[1]) if are_known else None
        return _combined(key, [self.holds(stack, each, depth + 1) for each in arguments])

    def meaning(self, stack: Stack, condition: Any, depth: int) -> str:
        holds = self.holds(stack, condition, depth)
        if holds is not None:
            return str(holds).lower()
        if depth > _DEPTH or not isinstance(condition, dict) or len(condition) != 1:
            return _shown(condition)
        ((key, argument),) = condition.items()
        if key == "Condition" and isinstance(argument, str):
            if argument not in stack.meant:
                # of a condition that needs itself
                stack.meant[argument] = argument
                stated = stack.conditions.get(argument)
                found = (
                    self._missing(stack, argument, depth) if stated is None else self.meaning(stack, stated, depth + 1)
                )
                stack.meant[argument] = _cut(found)
            return stack.meant[argument]
        arguments = argument if isinstance(argument, list) else [argument]
        if key == "Fn::Equals":
            return " = ".join(_quoted(self.resolve(stack, each, depth + 1)) for each in arguments)
        parts = [self.meaning(stack, each, depth + 1) for each in arguments]
        word = {"Fn::And": " and ", "Fn::Or": " or "}.get(key)
        return f"({word.join(parts)})" if word else f"{key.removeprefix('Fn::').lower()} ({', '.join(parts)})"

    def _missing(self, stack: Stack, condition: str, depth: int) -> str:
        """Return the meaning of a condition that is not stated: a loop whose list is not shown may define it."""
        loops = {name: each for name, each in stack.conditions.items() if name.startswith("Fn::")}
        return f"{condition} of {_shown(self.resolve(stack, loops, depth))}" if loops else condition

    _FUNCTIONS = {  # noqa: RUF012 - a table of this class's own functions
        "Ref": _ref,
        "Fn::GetAtt": _get_att,
        "Fn::ImportValue": _import,
        "Fn::Join": _join,
        "Fn::Sub": _sub,
        "Fn::Select": _select,
        "Fn::Split": _split,
        "Fn::FindInMap": _find_in_map,
        "Fn::If": _if,
    }


def _given(stack: Stack, name: str) -> Any:
    """Return the value of a parameter or pseudo parameter of a stack, by its name."""
    pseudo = {
        "AWS::Region": stack.region,
        "AWS::AccountId": stack.account,
        "AWS::StackName": stack.name if stack.is_named else "",
    }
    if pseudo.get(name):
        return pseudo[name]
    parameter = stack.parameters.get(name)
    kind = str(parameter.get("Type", "")) if isinstance(parameter, dict) else ""
    if isinstance(parameter, dict) and "Default" in parameter:
        return _default(kind, parameter["Default"])
    return Unknown(f"{{{{resolve:ssm:${{{name}}}}}}}" if kind.startswith(STORED) else f"${{{name}}}")


def _default(kind: str, value: Any) -> Any:
    """Return the value of a parameter by its type if no other one is stated."""
    if kind.startswith(STORED):
        # it is the name of a value that is read from Parameter Store at deployment
        return Unknown(f"{{{{resolve:ssm:{value}}}}}")
    return [part.strip() for part in str(value).split(",")] if "List" in kind else value


def _named(stack: Stack, condition: str) -> str:
    """Return a condition's name, with its meaning if the other side of a comparison means something else by it."""
    meant = stack.unlike.get(condition)
    return f"{condition} ({meant})" if meant else condition


def _quoted(value: Any) -> str:
    return _shown(value) if isinstance(value, Unknown) else f'"{_shown(value)}"'


def _cut(text: str) -> str:
    """Return the meaning of a condition, by its digest if it is long: others can contain it many times."""
    if len(text) <= _LONGEST_MEANING:
        return text
    return f"#{hashlib.sha256(text.encode(errors='replace')).hexdigest()[:12]}"


def _key(value: Any) -> Any:
    """Return a key of a mapping as text, which it is in every template."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _is_equal(one: Any, other: Any) -> bool | None:
    """Compare two known values as Fn::Equals does, which compares texts; None if a template writes one in another form.

    What a template states without quotes has lost its text: ``true`` is "true", and 1 is "1", but ``yes`` or 010 may be
    read in more than one way.
    """
    if type(one) is type(other):
        return bool(one == other)
    if not all(isinstance(each, (str, bool, int, float)) for each in (one, other)):
        return bool(one == other)
    texts = [str(each).lower() if isinstance(each, bool) else str(each) for each in (one, other)]
    if texts[0] == texts[1]:
        return True
    if any(isinstance(each, bool) for each in (one, other)):
        is_open = all(each.lower() in _YAML_BOOLEANS for each in texts) and not {"true", "false"}.issuperset(texts)
    else:
        is_open = all(_NUMERIC.fullmatch(each) for each in texts) and not all(
            _DECIMAL.fullmatch(each) for each in texts
        )
    return None if is_open else False


_DECISIVE = {"Fn::And": False, "Fn::Or": True}
"""What one condition must be to decide the result alone."""


def _combined(function: str, parts: list[bool | None]) -> bool | None:
    """Evaluate Fn::Not, Fn::And or Fn::Or of conditions of which some may be unknown."""
    if function == "Fn::Not":
        (part,) = parts if len(parts) == 1 else (None,)
        return None if part is None else not part
    decisive = _DECISIVE.get(function)
    if decisive is None or not parts:
        return None
    if decisive in parts:
        return decisive
    return None if None in parts else not decisive


def _unknown(function: str, argument: Any) -> Unknown:
    shown = _shown(argument)
    return Unknown(f"{{{function}: {shown}}}" if shown else f"{{{function}}}")


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_shown(item) for item in value)}]"
    return "nothing" if value is _NO_VALUE else plain(value)


def _embedded(value: Any) -> str:
    if value is _NO_VALUE:
        return ""
    if isinstance(value, Reference):
        return f"${{{plain(value)}}}"
    return plain(value)


_NO_VALUE = object()
