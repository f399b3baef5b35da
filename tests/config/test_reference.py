"""The page of all fields: every section has an example from a tested file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from hyperpod_cdk.config import load_environment
from tests.support.tables import row_by_row

HERE = Path(__file__).parent
PAGE = (HERE.parent.parent / "docs" / "environment-file.md").read_text(encoding="utf-8")
SECTIONS = {
    section.split("\n", 1)[0].replace("\\<", "<"): section
    for section in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]
}


@row_by_row("title", SECTIONS)
def test_every_section_has_an_example_of_its_own_fields(title: str) -> None:
    text = SECTIONS[title]
    fields = set(re.findall(r"^\| `(\w+)` \|", text, flags=re.MULTILINE))
    (example,) = re.findall(r"```yaml\n(.*?)```", text, flags=re.DOTALL)
    stated: Any = yaml.safe_load(example)
    for part in [] if title == "top level" else title.replace("[]", "").split("."):
        stated = next(iter(stated.values())) if part == "<name>" else stated[part]
        stated = stated[0] if isinstance(stated, list) else stated

    assert fields
    assert set(stated) & fields
    assert set(stated) <= fields


def test_the_file_of_the_last_sections_is_accepted() -> None:
    loaded = load_environment(HERE / "own_bucket_and_type.yaml")

    assert [warning.path for warning in loaded.warnings] == [
        "eks.public_access_cidrs",
        'instance_types["ml.p7.48xlarge"]',
    ]
