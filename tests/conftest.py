"""What every test stands on: the packaged Node.js, no credentials, no network."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hyperpod_cdk.node import use_packaged_node

use_packaged_node()
for _name in [n for n in os.environ if n.startswith("AWS_")]:
    del os.environ[_name]
os.environ["AWS_EC2_METADATA_DISABLED"] = "true"


@pytest.fixture(scope="session")
def project() -> Path:
    """The root of the repository."""
    return Path(__file__).parent.parent
