"""The sections of extensions on both sides."""

from __future__ import annotations

from hyperpod_cdk.review.model import Shown, ShownRow
from hyperpod_cdk.templates.assembly import EMPTY, Assembly
from hyperpod_cdk.templates.extension_sections import read_sections


def extensions(base: Assembly, head: Assembly) -> tuple[Shown, ...]:
    """Compare the sections of both sides, each as the extension of its own side wrote it.

    A deployed side has none, and neither has a single template: then the values before are unknown.
    """
    old, new = (read_sections(side) for side in (base, head))
    is_known = old is not None or base is EMPTY or not base.stacks
    before, after = old or {}, new or {}
    found = []
    for name in sorted({**before, **after}):
        was, now = (side.get(name, ("", {})) for side in (before, after))
        rows = (
            ShownRow(what=what, before=was[1].get(what), after=now[1].get(what))
            for what in dict.fromkeys((*now[1], *was[1]))
        )
        found.append(Shown(extension=name, says=now[0] or was[0], base_is_known=is_known, rows=tuple(rows)))
    return tuple(found)
