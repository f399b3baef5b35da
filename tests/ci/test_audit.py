"""scripts/audit.py: checkov's findings are told, and its silence counts only where it has read everything."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

PROJECT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def audit() -> ModuleType:
    spec = importlib.util.spec_from_file_location("audit", PROJECT / "scripts" / "audit.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def report(*failed: dict[str, Any], **counts: int) -> dict[str, Any]:
    """What checkov prints about templates with ten resources, of which it skipped some."""
    return {
        "check_type": "cloudformation",
        "results": {"failed_checks": list(failed)},
        "summary": {"failed": len(failed), "skipped": 3, "parsing_errors": 0, "resource_count": 10, **counts},
    }


def test_a_finding_is_one_line(audit: ModuleType) -> None:
    finding = {
        "file_path": "/assembly-prod/prodstorage.template.json",
        "resource": "AWS::EC2::SecurityGroup.Group",
        "check_id": "CKV_AWS_23",
        "check_name": "Ensure every security groups rule has a description",
    }
    (line,) = audit.findings(report(finding))
    assert line == (
        "assembly-prod/prodstorage.template.json AWS::EC2::SecurityGroup.Group: CKV_AWS_23: Ensure every security "
        "groups rule has a description"
    )
    assert list(audit.findings(report())) == []


@pytest.mark.parametrize(
    ("found", "lines"),
    [
        (report(), []),
        (
            report(parsing_errors=1, resource_count=9),
            ["checkov could not read 1 of the templates", "checkov saw 9 resources, but the templates contain 10"],
        ),
        (report(resource_count=11), ["checkov saw 11 resources, but the templates contain 10"]),
        (
            report(skipped=0),
            ["checkov skipped nothing: it does not read the reasons in the templates' metadata any more"],
        ),
        (
            {"failed": 0, "skipped": 0, "parsing_errors": 0, "resource_count": 0},
            [
                "checkov saw 0 resources, but the templates contain 10",
                "checkov skipped nothing: it does not read the reasons in the templates' metadata any more",
            ],
        ),
    ],
    ids=["all read", "unreadable", "counted twice", "nothing skipped", "nothing at all"],
)
def test_silence_counts_only_where_everything_was_read(
    audit: ModuleType, found: dict[str, Any], lines: list[str]
) -> None:
    assert list(audit.doubts(found, resources=10)) == lines


def test_the_lock_pins_what_is_asked_for_and_names_no_registry() -> None:
    asked = (PROJECT / "audit" / "requirements.in").read_text(encoding="utf-8").splitlines()
    lock = (PROJECT / "audit" / "requirements.lock").read_text(encoding="utf-8")

    wanted = [line for line in asked if not line.startswith("#")]
    assert [line for line in wanted if f"\n{line} \\\n    --hash=sha256:" not in lock] == []
    assert wanted
    assert re.findall(r"\S+://\S+|--(?:extra-)?index-url|--find-links", lock) == []
