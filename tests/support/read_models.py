"""Loaded by the process from which functions are forked: boto3 and the models of the services that functions call."""

from __future__ import annotations

import gc
from functools import cache
from typing import Any

import boto3
from botocore.loaders import JSONFileLoader

ASKED = ("cloudformation", "ec2", "eks", "fsx", "iam", "logs", "s3", "sagemaker", "service-quotas", "sts")
"""Services that the functions of an environment call; models of others are read by the function itself."""


def _read_once() -> None:
    """Share the models that were read before, because a session only caches its own."""
    load_file = JSONFileLoader.load_file

    @cache
    def loaded(path: str) -> Any:
        return load_file(JSONFileLoader(), path)

    setattr(JSONFileLoader, "load_file", lambda _loader, path: loaded(path))  # noqa: B010 - a patch
    session = boto3.session.Session(aws_access_key_id="none", aws_secret_access_key="none", region_name="us-east-1")
    make: Any = session.client
    for service in ASKED:
        make(service)
    # forks share unchanged memory
    gc.freeze()


_read_once()
