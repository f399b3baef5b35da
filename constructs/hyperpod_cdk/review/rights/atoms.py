"""Statements split into single actions and resources, so that their division does not matter, and combined again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal

from hyperpod_cdk.review.rights.statements import Block, Term
from hyperpod_cdk.review.rights.views import Place

_MOST_ATOMS: Final = 200_000
"""With more atoms, the statements of one principal are compared as they are written: no valid policy has that many."""

Atom = tuple[Term, Term]


def differing(was: Mapping[Block, Place], will: Mapping[Block, Place]) -> tuple[dict[Atom, Place], dict[Atom, Place]]:
    """Return what only the first permits and what only the second does."""
    if sum(len(block.actions) * len(block.resources) for block in (*was, *will)) > _MOST_ATOMS:
        was, will = (
            {block: place for block, place in some.items() if block not in others}
            for some, others in ((was, will), (will, was))
        )
    old, new = _expanded(was), _expanded(will)
    return (
        {atom: place for atom, place in old.items() if atom not in new},
        {atom: place for atom, place in new.items() if atom not in old},
    )


def _expanded(blocks: Mapping[Block, Place]) -> dict[Atom, Place]:
    found: dict[Atom, Place] = {}
    for block, place in blocks.items():
        for action in block.actions:
            for resource in block.resources:
                found.setdefault((action, resource), place)
    return found


def grouped(atoms: Mapping[Atom, Place]) -> Iterator[tuple[Block, Place]]:
    """Return as few blocks as possible that contain each atom once; each "everything but" has its own block."""
    kinds: dict[tuple[Term, Term], dict[Atom, Place]] = {}
    for atom, place in atoms.items():
        action, resource = (term if term[0] == "but" else (term[0], ()) for term in atom)
        kinds.setdefault((action, resource), {})[atom] = place
    for _, some in sorted(kinds.items()):
        by_action, by_resource = _rows(some, 0), _rows(some, 1)
        if len(by_action) < len(by_resource):
            blocks = [Block(actions, resources) for resources, actions in by_action.items()]
        else:
            blocks = [Block(actions, resources) for actions, resources in by_resource.items()]
        for block in blocks:
            yield block, min(some[action, resource] for action in block.actions for resource in block.resources)


def _rows(atoms: Iterable[Atom], side: Literal[0, 1]) -> dict[frozenset[Term], frozenset[Term]]:
    """Return the actions (0) that have the same resources, or the resources (1) with the same actions, by those."""
    of: dict[Term, set[Term]] = {}
    for atom in atoms:
        of.setdefault(atom[side], set()).add(atom[1 - side])
    rows: dict[frozenset[Term], set[Term]] = {}
    for term, others in of.items():
        rows.setdefault(frozenset(others), set()).add(term)
    return {others: frozenset(terms) for others, terms in rows.items()}
