"""The CDK app: each file of environments/ becomes one cdk.Stage; `-c env=` takes a name there or a file's path."""

from __future__ import annotations

from pathlib import Path

from hyperpod_cdk.node import use_packaged_node

use_packaged_node()

from stacks.app import synthesize  # noqa: E402 - jsii reads JSII_NODE when aws_cdk is first imported

synthesize(Path(__file__).parent)
