"""CloudFormation's schemas of resource types, as cfn-lint ships them.

Read without importing cfn-lint, which loads SymPy and takes 0.6 s in every worker.
"""

from __future__ import annotations

import importlib.util
import json
from functools import cache
from pathlib import Path
from typing import Any


def _folder() -> Path:
    spec = importlib.util.find_spec("cfnlint")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "data" / "schemas"


FOLDER = _folder()


@cache
def resource_schema(resource_type: str) -> dict[str, Any]:
    """Give the schema of a type in us-east-1; not to be changed."""
    path = FOLDER / "resources" / f"{_files()[resource_type]}.json"
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


@cache
def _files() -> dict[str, str]:
    files: dict[str, str] = json.loads((FOLDER / "providers" / "us-east-1.json").read_text(encoding="utf-8"))
    return files
