"""HyperPod's managed tiered checkpoints: first in the nodes' memory, and less often in S3.

They need a cluster with tiered storage, and amzn-sagemaker-checkpointing in the image. A checkpoint only works
with the number of workers that wrote it, so it does not support elastic training.
"""

from __future__ import annotations

import importlib
import logging
from typing import Any, cast

import torch.distributed as dist
from torch.distributed.checkpoint.storage import StorageReader, StorageWriter

from checkpoints import MissingLibraryError

_LIBRARY = "amzn_sagemaker_checkpointing"

log = logging.getLogger(__name__)


class Tiered:
    """Checkpoints under one name in the memory of the cluster's nodes; see checkpoints.Storage."""

    def __init__(self, namespace: str, *, s3_uri: str | None, s3_every: int, group: dist.ProcessGroup) -> None:
        try:
            self._storage = importlib.import_module(f"{_LIBRARY}.checkpointing.filesystem.filesystem")
            self._config = importlib.import_module(f"{_LIBRARY}.config.sagemaker_checkpoint_config")
        except ImportError as error:
            raise MissingLibraryError(
                f"--tiered needs the package amzn-sagemaker-checkpointing with s3torchconnector, tenacity and boto3"
                f" in the image: {error}"
            ) from error
        self._namespace = namespace
        self._s3_uri = s3_uri
        self._s3_every = s3_every
        self._group = group

    def newest(self) -> StorageReader | None:
        """Return the newest checkpoint of either tier. The library itself falls back from memory to S3."""
        reader = cast("StorageReader", self._storage.SageMakerTieredStorageReader(checkpoint_config=self._settings()))
        # if nothing is found, the library returns empty metadata
        found = bool(reader.read_metadata().state_dict_metadata)
        everybodys = [found] * dist.get_world_size(self._group)
        dist.all_gather_object(everybodys, found, group=self._group)
        if any(everybodys) and not all(everybodys):
            missing = ", ".join(str(rank) for rank, has in enumerate(everybodys) if not has)
            raise RuntimeError(
                f"workers {missing} see no checkpoint in {self._namespace}, the others do: is the memory service of"
                " each node running?"
            )
        return reader if found else None

    def writer(self, step: int) -> StorageWriter:
        """Return a writer to memory and, every few steps, also to S3."""
        settings = self._settings(save_to_s3=self._s3_uri is not None and step % self._s3_every == 0)
        return cast("StorageWriter", self._storage.SageMakerTieredStorageWriter(checkpoint_config=settings, step=step))

    def tidy(self) -> None:
        """Do nothing, because the service itself keeps the newest checkpoints."""

    def _settings(self, **more: bool) -> Any:
        return self._config.SageMakerCheckpointConfig(
            namespace=self._namespace,
            world_size=dist.get_world_size(self._group),
            s3_tier_base_path=self._s3_uri or "",
            logger=log,
            **more,
        )
