"""Imports of app.py during the start of Node.js do not call it: jsii supports one thread at a time."""

from __future__ import annotations

import subprocess
import sys

import pytest

from hyperpod_cdk_stacks import _BESIDE_NODE

REFUSING = """
import sys
from importlib import import_module

import aws_cdk
from jsii._kernel.providers.process import _NodeProcess


def refuse(_, request, *others):
    sys.exit(f"asked Node.js: {type(request).__name__}")


_NodeProcess.send = refuse
for module in sys.argv[1:]:
    import_module(module)
print("imported all")
aws_cdk.Aws.PARTITION
"""


@pytest.mark.examples
def test_no_import_asks_node_anything() -> None:
    done = subprocess.run([sys.executable, "-c", REFUSING, *_BESIDE_NODE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "imported all\n"), done.stderr
    assert done.stderr == "asked Node.js: StaticGetRequest\n"
