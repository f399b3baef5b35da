"""What the tests of the rehearsal take of the repository, where they lie in one."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def project() -> Path:
    """Return the root of the repository, with its environments, examples and CDK CLI; without them, skip."""
    root = Path(__file__).parents[2]
    if not (root / "environments").is_dir():
        pytest.skip(f"needs the files of the repository, which are not in {root}")
    return root
