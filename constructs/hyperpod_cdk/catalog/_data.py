"""Reads the catalog's data files, once each."""

from __future__ import annotations

import json
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

DIRECTORY = Path(__file__).parent / "data"


@cache
def load(name: str) -> dict[str, Any]:
    """Return the document ``data/<name>.json``; callers share it and must not change it."""
    document: dict[str, Any] = json.loads((DIRECTORY / f"{name}.json").read_text(encoding="utf-8"))
    return document


def as_of(name: str) -> date:
    """Return the date on which the facts of ``data/<name>.json`` were read."""
    return date.fromisoformat(load(name)["as_of"])
