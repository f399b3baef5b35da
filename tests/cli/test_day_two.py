"""The recipes of docs/day-two.md speak of fields that there are; its commands tests/test_pages.py reads."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "day-two.md").read_text(encoding="utf-8")


def test_every_field_it_names_is_one_of_the_environment_file(project: Path) -> None:
    reference = (project / "docs" / "environment-file.md").read_text(encoding="utf-8")
    named = re.findall(r"`([a-z_]+(?:\.[a-z_]+)*)(?:: [^`]*)?`", PAGE)
    fields = {word.rpartition(".")[2] for word in named} - {"preflight"}
    assert fields
    assert [field for field in fields if field not in reference] == []
