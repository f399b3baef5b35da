"""The CDK app: each file of environments/ becomes one cdk.Stage; `-c env=` takes a name there or a file's path."""

from __future__ import annotations

from pathlib import Path

from hyperpod_cdk_stacks import synthesize

synthesize(Path(__file__).parent)
