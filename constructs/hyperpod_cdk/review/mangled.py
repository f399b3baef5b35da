"""Characters that GetTemplate does not return: CloudFormation replaces each that is not ASCII by a question mark.

The CDK CLI handles it, too: ``cdk diff`` compares with a template that it has changed in the same way (2.1148.1,
``mangleLikeCloudFormation``).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from hyperpod_cdk.templates.difference import NAMES

_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]")


def mangled(value: Any) -> Any:
    """Return a value as GetTemplate does: with a question mark for each character that is not ASCII."""
    if isinstance(value, str):
        return _NOT_ASCII.sub("?", value)
    if isinstance(value, list):
        return [mangled(each) for each in value]
    if isinstance(value, dict):
        return {mangled(name): mangled(each) for name, each in value.items()}
    return value


def restored(deployed: Any, head: Any) -> tuple[Any, int]:
    """Return the deployed value with the head's characters if the head's value would be returned the same, and how
    many.

    A value that differs only in such characters counts as the head's: CloudFormation does not distinguish them.
    """
    found = _Restoring()
    return found.of(deployed, head), found.number


class _Restoring:
    def __init__(self) -> None:
        self.number = 0

    def of(self, deployed: Any, head: Any) -> Any:
        if isinstance(deployed, str) and isinstance(head, str):
            if deployed == head or deployed != mangled(head):
                return deployed
            self.number += 1
            return head
        if isinstance(deployed, dict) and isinstance(head, dict):
            return self._members(deployed, head)
        if isinstance(deployed, list) and isinstance(head, list):
            return self._items(deployed, head)
        return deployed

    def _members(self, deployed: dict[str, Any], head: dict[str, Any]) -> dict[str, Any]:
        names = {mangled(name): name for name in head if name not in deployed}
        found = {}
        for key, value in deployed.items():
            name = key if key in head else names.get(key, key)
            self.number += name != key
            found[name] = self.of(value, head.get(name))
        return found

    def _items(self, deployed: list[Any], head: list[Any]) -> list[Any]:
        """Restore each item from its counterpart: one that reads the same, at its position if possible, else by its
        name."""
        # lost characters make items equal, and then the ones at the same position are meant
        pairs = zip(deployed, head, strict=False)
        own = {place: each for place, (item, each) in enumerate(pairs) if item == mangled(each)}
        left = {place: each for place, each in enumerate(head) if place not in own}
        for is_same in _SAME:
            for place, item in enumerate(deployed):
                found = next((other for other, each in left.items() if is_same(item, each)), None)
                if place not in own and found is not None:
                    own[place] = left.pop(found)
        if len(deployed) == len(head):
            own |= {place: left[place] for place in range(len(deployed)) if place not in own and place in left}
        return [self.of(item, own.get(place)) for place, item in enumerate(deployed)]


def _is_named_alike(deployed: Any, head: Any) -> bool:
    if not isinstance(deployed, dict) or not isinstance(head, dict):
        return False
    name = next((each for each in NAMES if isinstance(deployed.get(each), str)), None)
    return name is not None and deployed[name] == mangled(head.get(name))


_SAME: Final[tuple[Callable[[Any, Any], bool], ...]] = (
    lambda deployed, head: bool(deployed == head),
    lambda deployed, head: bool(deployed == mangled(head)),
    _is_named_alike,
)
