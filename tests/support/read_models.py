"""Loaded by the process of which functions are copies: boto3, and the models of what functions ask, read once."""

from __future__ import annotations

import gc
from functools import cache
from typing import Any

import boto3
from botocore.loaders import JSONFileLoader

ASKED = ("cloudformation", "ec2", "eks", "fsx", "iam", "logs", "s3", "sagemaker", "service-quotas", "sts")
"""Services that the functions of an environment ask; a model of another one is read by the function itself."""


def _read_once() -> None:
    """Let whatever reads a model get the one that was read before: a session keeps its own only."""
    load_file = JSONFileLoader.load_file

    @cache
    def loaded(path: str) -> Any:
        return load_file(JSONFileLoader(), path)

    setattr(JSONFileLoader, "load_file", lambda _loader, path: loaded(path))  # noqa: B010 - a patch
    session = boto3.session.Session(aws_access_key_id="none", aws_secret_access_key="none", region_name="us-east-1")
    make: Any = session.client
    for service in ASKED:
        make(service)
    # copies share what nobody touches
    gc.freeze()


_read_once()
