"""Which resource refers to which: the properties of an assembly that contain a resource's ID or one of its
attributes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from hyperpod_cdk.templates.assembly import Assembly, Resource, Stack
from hyperpod_cdk.templates.difference import NAMES
from hyperpod_cdk.templates.values import Reference, imports, is_function, references, resolve

Key = tuple[str, str]


class Uses:
    """The references of one assembly, from the target to its users; read at the first use."""

    @classmethod
    def in_(cls, assembly: Assembly) -> Uses:
        """Return those of an assembly, which are read once for all callers."""
        if (found := assembly.read.get(cls)) is None:
            found = assembly.read[cls] = cls(assembly)
        return found

    def __init__(self, assembly: Assembly) -> None:
        self.assembly = assembly
        self._places: dict[Key, dict[Key, list[tuple[tuple[str, ...], Reference]]]] = {}

    def of(self, stack: str, logical_id: str) -> list[Resource]:
        """Return the resources that refer to one, through exports too, in the order of deployment."""
        return self._users.get((stack, logical_id), [])

    def places(self, user: Resource, stack: str, logical_id: str) -> list[tuple[tuple[str, ...], Reference]]:
        """Return where in its properties ``user`` refers to a resource, as the steps of a ``PropertyChange``."""
        own = user.stack, user.logical_id
        if own not in self._places:
            places = self._places.setdefault(own, {})
            for steps, found in self._found(self.assembly.by_name[user.stack], user.properties, ()):
                places.setdefault((found.stack, found.logical_id), []).append((steps, found))
        return self._places[own].get((stack, logical_id), [])

    def referred(self, stack: str, value: Any) -> list[Key]:
        """Return the resources that a value of a stack's template refers to, through exports too."""
        found = self._referred(self.assembly.by_name[stack], value)
        return list(dict.fromkeys((each.stack, each.logical_id) for each in found))

    @cached_property
    def _users(self) -> dict[Key, list[Resource]]:
        users: dict[Key, list[Resource]] = {}
        for stack in self.assembly.stacks:
            for resource in stack.resources.values():
                used = {(each.stack, each.logical_id): None for each in self._referred(stack, resource.properties)}
                for key in used:
                    users.setdefault(key, []).append(resource)
        return users

    def _referred(self, stack: Stack, value: Any) -> Iterator[Reference]:
        for logical_id, attribute in references(value):
            if logical_id in stack.resources:
                yield Reference(stack.name, logical_id, attribute)
        # most stacks import little, and this is called for every value in them
        for name in imports(stack, value) if stack.imported else ():
            exported = self.assembly.exports.get(name)
            if exported is not None and exported[0] is not stack:
                yield from self._referred(*exported)

    def _found(self, stack: Stack, value: Any, steps: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Reference]]:
        if isinstance(value, list):
            for item, name in zip(value, _names(value), strict=True):
                yield from self._found(stack, item, (*steps, *name))
        elif isinstance(value, dict):
            function = next(iter(value)) if len(value) == 1 else ""
            if function == "Fn::If":
                for branch in self._branches(stack, value[function]):
                    yield from self._found(stack, branch, steps)
            elif function == "Ref":
                # most references have this form, and other content of one is not a resource
                if isinstance(name := value["Ref"], str) and name in stack.resources:
                    yield steps, Reference(stack.name, name)
            elif function.startswith("Fn::"):
                for found in self._referred(stack, value):
                    yield steps, found
            else:
                for key, item in value.items():
                    yield from self._found(stack, item, (*steps, key))

    def _branches(self, stack: Stack, argument: Any) -> list[Any]:
        if not isinstance(argument, list) or len(argument) != 3:
            return []
        holds = resolve(self.assembly, stack.name, {"Fn::If": [argument[0], True, False]})
        return [argument[1 if holds else 2]] if isinstance(holds, bool) else argument[1:]


def _names(items: list[Any]) -> list[tuple[str, ...]]:
    """Return each item's step as ``difference.compare`` names it, none if items are not mappings."""
    if not all(isinstance(item, dict) for item in items) or any(is_function(item) for item in items):
        return [()] * len(items)
    for name in NAMES:
        found = [item.get(name) for item in items]
        if all(isinstance(each, str) for each in found) and len(set(found)) == len(items):
            return [(f"[{each}]",) for each in found]
    return [(f"[{index}]",) for index in range(len(items))]
