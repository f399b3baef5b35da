"""AWS's template engine in a separate process: it uses 240 MB before it has read a template, and never frees them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from hyperpod_cdk.file_reading import reason_of
from hyperpod_cdk.findings import Severity
from hyperpod_cdk.templates.assembly import Stack
from hyperpod_cdk.templates.rules.engine import engine_problems
from hyperpod_cdk.templates.rules.rule import Problem

MANY: Final = 100
"""From this number of resources on, another process is worth its start of half a second."""

_SECONDS: Final = 120


class EngineError(Exception):
    """The engine could not run; the text gives the reason in one line."""


def problems_apart(stack: Stack) -> list[Problem]:
    """Return what ``engine_problems`` returns, without its memory in this process. Raises EngineError."""
    given = {"name": stack.name, "region": stack.region, "file": str(stack.file) if stack.file else None}
    try:
        text = json.dumps({**given, "template": stack.template})
    except (TypeError, ValueError, RecursionError) as error:
        raise EngineError(f"the template contains a value that JSON cannot represent: {reason_of(error)}") from None
    command = [sys.executable, "-m", "hyperpod_cdk.templates.rules.engine_process"]
    try:
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise EngineError(f"it did not end within {_SECONDS} seconds") from None
    if done.returncode:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        raise EngineError(lines[-1][:300] if lines else f"it ended with {done.returncode}")
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    return [Problem(stack=stack, **{**row, "severity": Severity(row["severity"])}) for row in rows]


def _answer(text: str) -> str:
    given = json.loads(text)
    file = Path(given["file"]) if given["file"] else None
    stack = Stack(name=given["name"], template=given["template"], region=given["region"], file=file)
    names = ("rule", "severity", "message", "logical_id", "place", "line")
    return json.dumps([{name: getattr(each, name) for name in names} for each in engine_problems(stack)])


if __name__ == "__main__":
    sys.stdout.write(_answer(sys.stdin.read()))
