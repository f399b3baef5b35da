"""Fixtures for tests of reviews: cdk-nag without a process for each template."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from threading import Lock

import pytest

from hyperpod_cdk.review import nag

Violations = Callable[[str], tuple[nag.NagViolation, ...]]


@pytest.fixture(scope="session")
def looks_here(tmp_path_factory: pytest.TempPathFactory) -> Violations:
    """Return cdk-nag's findings for a template, from this process."""
    apart: Violations = nag._violations_in
    file, one_at_a_time = tmp_path_factory.mktemp("nag") / "template.json", Lock()

    @cache
    def look(text: str) -> tuple[nag.NagViolation, ...]:
        try:
            # a review asks for several templates at once, and jsii answers one thread at a time
            with one_at_a_time:
                file.write_text(text, encoding="utf-8")
                found = nag._look(file)
        except Exception:  # noqa: BLE001 - what CDK cannot read, the process of its own tells as it is told to users
            return apart(text)
        return tuple(sorted(found, key=lambda each: (each.logical_id, each.rule)))

    return look


@pytest.fixture
def nag_here(looks_here: Violations, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let cdk-nag look within this process; for tests of other parts of a review: its own takes 1.5 s a template.

    That the process of its own says the same is test_policy's, and what it keeps apart test_isolation's.
    """
    monkeypatch.setattr(nag, "_violations_in", looks_here)
