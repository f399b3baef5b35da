"""What ``validate`` and ``preflight`` write with ``--format json``, for their schemas."""

from __future__ import annotations

from typing import Any, Literal

from hyperpod_cdk.fleet.model import Told
from hyperpod_cdk.json_schema import as_text, schema_of_report
from hyperpod_cdk.review.model import Model


class CheckedFile(Model):
    """An environment file with everything that is wrong or doubtful in it."""

    file: str
    passed: bool
    """False where an error refuses it."""
    findings: tuple[Told, ...]


class Validation(Model):
    """What ``validate`` says, and every verb whose file is refused."""

    passed: bool
    files: tuple[CheckedFile, ...]


class Gap(Model):
    """What a check could not look at."""

    reason: str
    action: str
    """The IAM action that is missing; empty where it is something else."""
    path: str
    """The place in the file that it is about."""
    aws_said: str
    """AWS's own words; empty where it said nothing."""


class Shown(Model):
    """What a check saw."""

    text: str
    data: dict[str, Any]


class CheckResult(Model):
    """What one check found."""

    check: str
    area: str
    status: Literal["passed", "warned", "failed", "skipped", "not needed"]
    findings: tuple[Told, ...]
    skipped: tuple[Gap, ...]
    details: tuple[Shown, ...]


class Asked(Model):
    """How AWS was asked."""

    calls: int
    depth: int
    """How many calls waited for one another, at most."""


class Preflight(Model):
    """What ``preflight`` says; of a file that is refused it says what ``validate`` does."""

    passed: bool | None
    """False where a check failed, null where something was skipped."""
    file: str
    counts: dict[str, int]
    """How many checks have each status."""
    checks: tuple[CheckResult, ...]
    aws: Asked


def validation_schema_text() -> str:
    """Give the JSON Schema (2020-12) of what ``validate`` says, as the text of its file."""
    return as_text(schema_of_report(Validation, title="hyperpod-cdk validate"))


def preflight_schema_text() -> str:
    """Give the JSON Schema (2020-12) of what ``preflight`` says, as the text of its file."""
    return as_text(schema_of_report(Preflight, title="hyperpod-cdk preflight"))
