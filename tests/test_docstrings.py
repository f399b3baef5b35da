"""Each parameter of a public class has a line of its own, which says what it is and what it is by default."""

from __future__ import annotations

import dataclasses
import inspect
import re

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
def test_what_may_be_left_out_has_its_default_said(name: str) -> None:
    public = getattr(hyperpod_cdk, name)
    blocks = re.split(r"\n\s*\n", inspect.getdoc(public) or "")
    silent = set()
    for parameter, is_optional in _parameters(public):
        own = [block for block in blocks if (m := _NAMES.match(block)) and f"``{parameter}``" in m[1]]
        if is_optional and not any(re.search(r"[Dd]efault|[Ll]eft out|None leaves", block) for block in own):
            silent.add(parameter)
    assert silent == set()


def _parameters(public: type) -> list[tuple[str, bool]]:
    """Give the arguments that a caller writes, and whether each may be left out."""
    if dataclasses.is_dataclass(public):
        missing = dataclasses.MISSING
        return [
            (each.name, each.default is not missing or each.default_factory is not missing)
            for each in dataclasses.fields(public)
        ]
    # the metaclass of jsii hides what a construct takes
    constructor = inspect.getattr_static(public, "__init__", object.__init__)
    return [
        (each.name, each.default is not each.empty)
        for each in inspect.signature(constructor).parameters.values()
        if each.kind is each.KEYWORD_ONLY
    ]
