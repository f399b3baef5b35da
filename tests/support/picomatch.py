"""Selects stacks as the CDK CLI does: by picomatch, whose "*" ends at a slash."""

from __future__ import annotations

import re
from functools import cache


def matches(path: str, pattern: str) -> bool:
    """Return whether picomatch matches a path with a pattern of names, ``*`` and a trailing ``/**``."""
    return _compiled(pattern).fullmatch(path) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    below = "(?:/.*)?" if pattern.endswith("/**") else ""
    parts = pattern.removesuffix("/**").split("*")
    return re.compile("[^/]*".join(re.escape(each) for each in parts) + below)
