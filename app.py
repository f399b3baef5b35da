"""The CDK app: each file of environments/ becomes one cdk.Stage; `-c env=` takes a name there or a file's path."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

from hyperpod_cdk.packaged_node import use_packaged_node
from hyperpod_cdk.templates.engine import warm_up

# a process this short only loses time by looking for garbage
gc.disable()
use_packaged_node()
warm_up()

from hyperpod_cdk_stacks.app import synthesize  # noqa: E402 - jsii reads JSII_NODE when aws_cdk is first imported

synthesize(Path(__file__).parent)

# the assembly is written; taking a million objects apart one by one would take a fifth of the whole run again
sys.stdout.flush()
sys.stderr.flush()
os._exit(0)
