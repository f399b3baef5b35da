"""The CDK app: creates one cdk.Stage for each file in environments/; `-c env=` selects one by name or file path."""

from __future__ import annotations

from pathlib import Path

from hyperpod_cdk_stacks import synthesize

synthesize(Path(__file__).parent)
