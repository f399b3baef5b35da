"""CloudFormation's schemas of resource types from cfn-lint."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from hyperpod_cdk_rehearsal.embedded.cloudformation.schema import cfn_lint_data

FOLDER = cfn_lint_data() / "schemas"


@cache
def resource_schema(resource_type: str) -> dict[str, Any]:
    """Return the schema of a type in us-east-1; not to be changed."""
    path = FOLDER / "resources" / f"{_files()[resource_type]}.json"
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


@cache
def _files() -> dict[str, str]:
    files: dict[str, str] = json.loads((FOLDER / "providers" / "us-east-1.json").read_text(encoding="utf-8"))
    return files
