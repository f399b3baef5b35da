"""Properties that CloudFormation cannot change in place: those that each resource type's schema lists."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Final

from hyperpod_cdk.catalog import _data

_DATA = _data.load("create_only")

AS_OF: date = _data.as_of("create_only")

SCHEMAS_AS_OF: date = date.fromisoformat(_DATA["registry_as_of"])
"""The date of the CloudFormation schemas."""

SPECIFICATION: Final = str(_DATA["sources"]["specification"]).split(" ", maxsplit=1)[0]
"""The file with the AWS pages for what is ``documented``."""

Path = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class UpdateRule:
    """What the schema of one type says of updates.

    Paths are steps below the properties without items of lists (``("Orchestrator", "Eks")``). ``name`` is what two
    resources of the type cannot share, empty if AWS names it. ``deletes_first``: the old one is deleted before its
    replacement is created; otherwise after. ``documented`` are those for which only AWS's pages say that a change
    replaces, because the schema leaves it to CloudFormation's own code, or to a condition that it does not state.
    """

    create_only: tuple[Path, ...] = ()
    conditionally: tuple[Path, ...] = ()
    name: tuple[Path, ...] = ()
    deletes_first: bool = False
    documented: tuple[Path, ...] = ()

    def is_create_only(self, path: Path) -> bool:
        """Whether a change at, above or below ``path`` needs a new resource."""
        return any(overlap(path, each) for each in self.create_only)

    def is_conditional(self, path: Path) -> bool:
        """Whether a change at, above or below ``path`` needs a new resource under a condition that is not stated."""
        return any(overlap(path, each) for each in self.conditionally)

    def documented_at(self, path: Path, at: int) -> Path:
        """Return the longest documented path that is ``path`` or above it, empty if there is none.

        ``at`` is how many steps of the path were added or removed as one: an item of a list that was has none of its
        properties changed.
        """
        found = [each for each in self.documented if path[: len(each)] == each and at >= len(each)]
        return max(found, key=len, default=())


def overlap(one: Path, other: Path) -> bool:
    """Whether one path is the other, or a part of it."""
    return one[: len(other)] == other[: len(one)]


@cache
def update_rule(resource_type: str) -> UpdateRule | None:
    """Return a type's rule, None if the registry does not have the type."""
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
        documented=tuple(_path(word) for word in _DATA["documented"].get(resource_type, "").split()),
    )


def _path(word: str) -> Path:
    return tuple(step for step in word.split("/") if step != "*")
