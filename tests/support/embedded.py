"""The embedded AWS of the rehearsal's tests, and one in a hurry."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Any

from rehearsal.tests.support.embedded import ACCOUNT, REGION, SERVE, Embedded, Program
from rehearsal.tests.support.embedded import embedded as served

__all__ = ["ACCOUNT", "HURRIED_SCALE", "PROJECT", "REGION", "SLOW_SCALE", "Embedded", "embedded", "template_url"]

PROJECT = Path(__file__).parents[2]
HURRIED = "from tests.support.hurried import serve; serve()"

HURRIED_SCALE = 0.0001
"""A clock with which the six hours between two increases of a file system pass in two seconds."""
SLOW_SCALE = 0.02
"""A clock for accounts with delays: a wait of 100 seconds takes two."""


_TEMPLATES = "templates-of-tests"


def template_url(s3: Any, template: Mapping[str, Any]) -> str:
    """Upload a template, since CloudFormation takes larger ones from S3 only, and return its address."""
    # again, it is no error in us-east-1
    s3.create_bucket(Bucket=_TEMPLATES)
    s3.put_object(Bucket=_TEMPLATES, Key="template.json", Body=json.dumps(template).encode())
    return f"https://{_TEMPLATES}.s3.amazonaws.com/template.json"


def embedded(
    document: Mapping[str, Any],
    *,
    region: str = REGION,
    account: str = ACCOUNT,
    latency_ms: float = 0,
    now: datetime | None = None,
    is_hurried: bool = False,
    clock_scale: float = HURRIED_SCALE,
) -> AbstractContextManager[Embedded]:
    """Return the context of an embedded AWS as the rehearsal's tests have it.

    One that is hurried makes nobody wait for a resource, and plays the upload of files; ``clock_scale`` is what is left
    of a second of its account file.
    """
    program = Program(("-c", HURRIED, "--clock-scale", f"{clock_scale}"), PROJECT) if is_hurried else SERVE
    return served(document, region=region, account=account, latency_ms=latency_ms, now=now, program=program)
