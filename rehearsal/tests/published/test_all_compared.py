"""Each public function of ``published`` is in one of these tests, which compare it with the catalog."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

from hyperpod_cdk_rehearsal.embedded import published

TESTS = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py"))
MODULES = [each.name for each in pkgutil.iter_modules(published.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_every_public_function_is_in_a_test(name: str) -> None:
    module = importlib.import_module(f"{published.__name__}.{name}")
    # unwrapped, because a cached function is none
    found = {each: inspect.unwrap(value) for each, value in vars(module).items() if callable(value)}
    public = [
        each
        for each, value in found.items()
        if inspect.isfunction(value) and value.__module__ == module.__name__ and not each.startswith("_")
    ]
    assert [each for each in public if not re.search(rf"\b(published_types|{name})\.{each}\b", TESTS)] == []
    assert public or name == "kubernetes", "only tables"
