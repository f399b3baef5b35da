"""Checkpoints in an S3 bucket, written and read directly without a disk.

Needs s3torchconnector and boto3 in the image, and a service account with permissions for the bucket.
"""

from __future__ import annotations

import importlib
import logging
import re
from typing import Any, cast

import torch.distributed as dist
from torch.distributed.checkpoint.storage import StorageReader, StorageWriter

from checkpoints import MissingLibraryError

_STEP = re.compile(r"step-(\d{10})/")

log = logging.getLogger(__name__)


class Bucket:
    """A prefix of a bucket with one prefix per checkpoint; see checkpoints.Storage.

    The metadata is written last and S3 has no partly written objects, so a checkpoint with it is complete. S3's own
    checksums refuse data that was damaged on the way.
    """

    def __init__(self, uri: str, *, keep: int, group: dist.ProcessGroup) -> None:
        try:
            self._connector = importlib.import_module("s3torchconnector.dcp")
            boto3 = importlib.import_module("boto3")
        except ImportError as error:
            raise MissingLibraryError(
                f"checkpoints in S3 need the packages s3torchconnector[dcp] and boto3 in the image: {error}"
            ) from error
        self._uri = uri.rstrip("/")
        self._bucket, _, prefix = self._uri.removeprefix("s3://").partition("/")
        self._prefix = f"{prefix}/" if prefix else ""
        self._client: Any = boto3.client("s3")
        self._keep = keep
        self._group = group
        self._rank = dist.get_rank(group)
        # the Region of the bucket, whatever Region the nodes are in; S3 returns none for us-east-1
        location = self._client.get_bucket_location(Bucket=self._bucket)["LocationConstraint"]
        self._region: str = location or "us-east-1"

    def newest(self) -> StorageReader | None:
        """See `checkpoints.Storage`."""
        found: list[dict[int, bool]] = [self._found() if self._rank == 0 else {}]
        dist.broadcast_object_list(found, group=self._group, group_src=0)
        for step, finished in sorted(found[0].items(), reverse=True):
            if finished:
                return cast("StorageReader", self._connector.S3StorageReader(region=self._region, path=self._of(step)))
            if self._rank == 0:
                log.warning("checkpoint: passing over step %d, which was never finished", step)
        return None

    def writer(self, step: int) -> StorageWriter:
        """See `checkpoints.Storage`."""
        if self._rank == 0:
            self._remove(step)
        dist.barrier(group=self._group)
        return cast("StorageWriter", self._connector.S3StorageWriter(region=self._region, path=self._of(step)))

    def tidy(self) -> None:
        """See `checkpoints.Storage`. The newest checkpoints are kept."""
        if self._rank != 0:
            return
        found = self._found()
        finished = sorted(step for step, is_finished in found.items() if is_finished)
        for step in found:
            if step < finished[-1] and step not in finished[-self._keep :]:
                self._remove(step)

    def _of(self, step: int) -> str:
        return f"{self._uri}/step-{step:010d}"

    def _found(self) -> dict[int, bool]:
        """Return the steps with objects, and whether they have the metadata."""
        found: dict[int, bool] = {}
        for key in self._keys(self._prefix):
            matched = _STEP.match(key.removeprefix(self._prefix))
            if matched:
                step = int(matched[1])
                found[step] = found.get(step, False) or key.endswith("/.metadata")
        return found

    def _remove(self, step: int) -> None:
        # first the object that marks it as complete, because the process may be killed in between
        keys = sorted(self._keys(f"{self._prefix}step-{step:010d}/"), key=lambda key: not key.endswith("/.metadata"))
        for key in keys:
            self._client.delete_object(Bucket=self._bucket, Key=key)

    def _keys(self, prefix: str) -> list[str]:
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix)
        return [found["Key"] for page in pages for found in page.get("Contents", ())]
