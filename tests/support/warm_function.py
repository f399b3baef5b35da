"""A Lambda function in a copy of a process that has boto3 already (read_models.py)."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path


def execute(arguments: Sequence[str], environment: Mapping[str, str], folder: str, log: str, child: str) -> None:
    """Be the function's process: ``arguments`` as for Python, ``child`` the folder of what runs around a function."""
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(descriptor, stream.fileno())
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.path[:0] = environment["PYTHONPATH"].split(os.pathsep)
    sys.argv = list(arguments)
    runpy.run_path(str(Path(child, "sitecustomize.py")))
    runpy.run_path(arguments[0], run_name="__main__")
