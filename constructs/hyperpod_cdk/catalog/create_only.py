"""What CloudFormation cannot change in place: each resource type's create-only properties, as its schema lists them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from functools import cache

from hyperpod_cdk.catalog import _data

_DATA = _data.load("create_only")

AS_OF: date = _data.as_of("create_only")

SCHEMAS_AS_OF: date = date.fromisoformat(_DATA["registry_as_of"])
"""The date of the CloudFormation schemas."""

Path = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class UpdateRule:
    """What the schema of one type says of updates.

    Paths are steps below the properties without items of lists (``("Orchestrator", "Eks")``). ``name`` is what two
    resources of the type cannot share, empty where AWS names it. ``deletes_first``: the old one goes before its
    replacement is made; otherwise after.
    """

    create_only: tuple[Path, ...] = ()
    conditionally: tuple[Path, ...] = ()
    name: tuple[Path, ...] = ()
    deletes_first: bool = False

    def is_create_only(self, path: Path) -> bool:
        """Whether a change at, above or below ``path`` needs a new resource."""
        return any(overlap(path, each) for each in self.create_only)

    def is_conditional(self, path: Path) -> bool:
        """Whether a change at, above or below ``path`` needs a new resource under a condition that is not stated."""
        return any(overlap(path, each) for each in self.conditionally)


def overlap(one: Path, other: Path) -> bool:
    """Whether one path is the other, or a part of it."""
    return one[: len(other)] == other[: len(one)]


@cache
def update_rule(resource_type: str) -> UpdateRule | None:
    """Give a type's rule, None where the registry does not have the type."""
    text: str | None = _DATA["types"].get(resource_type)
    if text is None:
        return None
    words = text.split()
    paths = [word for word in words if word[0] not in "=!"]
    return UpdateRule(
        create_only=tuple(_path(word) for word in paths if not word.endswith("?")),
        conditionally=tuple(_path(word.rstrip("?")) for word in paths if word.endswith("?")),
        name=tuple(_path(word[1:]) for word in words if word.startswith("=")),
        deletes_first="!" in words,
    )


def _path(word: str) -> Path:
    return tuple(step for step in word.split("/") if step != "*")
