"""Five independent errors are reported at once, without consequential errors."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping

import pytest

from hyperpod_cdk.config import EnvironmentFileError, load_environment
from hyperpod_cdk.findings import Severity
from tests.config.conftest import FILE, TODAY, Refuse, rows_of

Said = frozenset[tuple[str, str]]

_INDEX = re.compile(r"\[\d+\]")
_SECTION = re.compile(r"(?m)^([a-z_]+):")
READ_ELSEWHERE = (
    # what one of these says decides what is right in other sections, so that a mistake there is no independent one
    *("account:", "region:", "existing", "use1-az", "availability_zone", "instance_type", "count:", "capacity:"),
    *(
        "provisioning",
        "egress",
        "vpc_cidr",
        "node_cidr",
        "10.1.",
        "instance_groups",
        "karpenter",
        "groups",
        "oidc",
        "enabled",
    ),
    *("ml.", "admin_role", "member_role", "name:", "<<", "&", "*"),
)
"""Words of the base file and of rows that other sections read."""


def text_of(base: str, changes: list[Mapping[str, str]]) -> str:
    """Apply all of these changes to the base file, in which each text is there once."""
    spans = sorted((base.index(old), old, new) for change in changes for old, new in change.items())
    for start, old, new in reversed(spans):
        base = base[:start] + new + base[start + len(old) :]
    return base


def errors(text: str) -> Said:
    """Return place and sentence of every error; numbers of lists do not count, which other changes move."""
    try:
        load_environment(FILE, text=text, today=TODAY)
    except EnvironmentFileError as error:
        found = [each for each in error.findings if each.severity is Severity.ERROR]
        return frozenset((_INDEX.sub("[]", each.path), _INDEX.sub("[]", each.message)) for each in found)
    return frozenset()


def rows(base: str) -> Iterator[tuple[str, Mapping[str, str], frozenset[str]]]:
    """Yield the rows that concern one part of a file, with the sections that they change."""
    heads = [(found.start(), found[1]) for found in _SECTION.finditer(base)]
    for table, cases in rows_of("wrong_files.yaml").items():
        for case, row in cases.items():
            change = row["change"]
            if any(word in text for pair in change.items() for text in pair for word in READ_ELSEWHERE):
                continue
            spans = [(base.index(old), base.index(old) + len(old)) for old in change]
            at = [[name for start, name in heads if start <= begin][-1] for begin, _ in spans]
            yield f"{table}-{case}", change, frozenset(at)


@pytest.mark.parametrize("seed", range(30))
def test_five_mistakes_are_found_at_once(base: str, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - the same mistakes for the same seed
    table = list(rows(base))
    chance.shuffle(table)
    chosen: list[tuple[str, Mapping[str, str]]] = []
    taken: set[str] = set()
    for name, change, sections in table:
        if len(chosen) < 5 and not sections & taken:
            chosen.append((name, change))
            taken |= sections
    assert len(chosen) == 5
    alone: Said = frozenset().union(*(errors(text_of(base, [change])) for _, change in chosen))
    together = errors(text_of(base, [change for _, change in chosen]))
    assert together == alone, [name for name, _ in chosen]


def test_enough_rows_are_independent(base: str) -> None:
    assert len(list(rows(base))) >= 100


def test_an_unknown_region_hides_no_other_error_about_regions(base: str) -> None:
    """The zones tell which region is meant, so that the rules which read it run."""
    beside = [
        {"h100-april": "h100-april/x"},
        {"vpc_cidr: 10.192.0.0/16": "vpc_cidr: 10.192.0.0/28"},
        {"training-plan": "training-plan", "sagemaker:us-east-1": "sagemaker:us-west-2"},
        {"availability_zone_id: use1-az4": "availability_zone_id: use1-az6"},
    ]
    for change in beside:
        right = errors(text_of(base, [change]))
        wrong = errors(text_of(base, [change, {"region: us-east-1": "region: us-east-9"}]))
        assert right
        assert {path for path, _ in wrong} == {path for path, _ in right} | {"region"}


def test_a_file_below_a_name_is_one_mistake(base: str, refuse: Refuse) -> None:
    text = "prod:\n" + "".join(f"  {line}\n" for line in base.splitlines())
    (finding,) = refuse(text)
    assert finding.render() == (
        "environments/prod.yaml:1 prod: is not a known key here; remove this line, and indent the keys below it as far"
        " as it was"
    )
