"""Draws places of files that cosmic-ray can change and gives each changed file: JSON in, JSON out.

Left out are annotations, which nothing evaluates (``from __future__ import annotations``), arguments of decorators (a
dataclass that is no longer frozen gives the same answers), and the ``*`` between parameters.
"""

import hashlib
import json
import random
import sys
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

IDENTITY = {
    f"core/ReplaceComparisonOperator_{one}_{other}"
    for one, other in (("Eq", "Is"), ("Is", "Eq"), ("NotEq", "IsNot"), ("IsNot", "NotEq"))
}
"""What is compared is None, a short text or a small number, of which CPython has one object: the same answers."""
LEFT_OUT = {"core/RemoveDecorator", "core/VariableReplacer", "core/VariableInserter", *IDENTITY}
"""Operators that need arguments, one that takes ``@cache`` away (slower, with the same answers), and ``IDENTITY``."""
KNOWN = Path(sys.prefix) / "places.json"
"""The places of each text, by its SHA-256: finding them takes longer than the tests of most mutants."""


def is_left_out(node: object) -> bool:
    """Say whether a node stands in an annotation or a decorator."""
    while node is not None:
        parent = node.parent
        if parent is None:
            return False
        if parent.type in ("decorator", "parameters"):
            # of parameters only their defaults are looked at, which are in nodes of their own
            return parent.type == "decorator" or node.type == "operator"
        if parent.type == "tfpdef" and node is parent.children[-1]:
            return True
        if parent.type == "annassign" and node is parent.children[1]:
            return True
        if parent.type == "funcdef" and node.type not in ("parameters", "suite") and parent.annotation is node:
            return True
        node = parent
    return False


def compiles(text: str) -> bool:
    """Say whether Python reads it: what it does not read proves nothing about a test."""
    try:
        compile(text, "mutant", "exec")
    except SyntaxError:
        return False
    return True


def places_of(text: str) -> list[tuple[int, int, str, int]]:
    """Give line, column, operator and its occurrence of every place of a file."""
    tree = get_ast(text)
    nodes = list(ast_nodes(tree))
    found = []
    for name in sorted(set(operator_names()) - LEFT_OUT):
        occurrence = 0
        operator = get_operator(name)()
        for node in nodes:
            for start, _ in operator.mutation_positions(node):
                if not is_left_out(node):
                    found.append((*start, name, occurrence))
                occurrence += 1
    return found


def main() -> None:
    """Read what is asked and answer with one mutant for each place that is drawn."""
    asked = json.load(sys.stdin)
    texts = {file: Path(asked["root"], file).read_text(encoding="utf-8") for file in asked["files"]}
    known = json.loads(KNOWN.read_text(encoding="utf-8")) if KNOWN.exists() else {}
    places: dict[tuple[str, int, int], list[tuple[str, int]]] = {}
    for file, text in texts.items():
        digest = hashlib.sha256(text.encode()).hexdigest()
        if digest not in known:
            known[digest] = places_of(text)
        for line, column, name, occurrence in known[digest]:
            places.setdefault((file, line, column), []).append((name, occurrence))
    KNOWN.write_text(json.dumps(known), encoding="utf-8")
    chance = random.Random(asked["seed"])  # noqa: S311 - drawn to be drawn again
    order = sorted(places)
    chance.shuffle(order)
    answer = []
    for file, line, column in order:
        if len(answer) == asked["draw"]:
            break
        candidates = places[file, line, column]
        chance.shuffle(candidates)
        for name, occurrence in candidates:
            after = mutate_code(texts[file], get_operator(name)(), occurrence)
            if compiles(after):
                answer.append({"file": file, "line": line, "operator": name.removeprefix("core/"), "after": after})
                break
    answer.sort(key=lambda mutant: (mutant["file"], mutant["line"]))
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
