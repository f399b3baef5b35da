"""The library's writer and reader, over a folder below $FAKE_MEMORY instead of the nodes' memory."""

from __future__ import annotations

import os
from pathlib import Path

from amzn_sagemaker_checkpointing.config.sagemaker_checkpoint_config import SageMakerCheckpointConfig
from torch.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from torch.distributed.checkpoint.metadata import Metadata


def _folder(config: SageMakerCheckpointConfig) -> Path:
    return Path(os.environ["FAKE_MEMORY"], f"{config.namespace}-of-{config.world_size}")


class SageMakerTieredStorageWriter(FileSystemWriter):
    def __init__(self, checkpoint_config: SageMakerCheckpointConfig, step: int) -> None:
        tiers = f"memory and {checkpoint_config.s3_tier_base_path}" if checkpoint_config.save_to_s3 else "memory"
        print(f"step {step} goes to {tiers}", flush=True)
        super().__init__(_folder(checkpoint_config) / f"{step:010d}")


class SageMakerTieredStorageReader(FileSystemReader):
    def __init__(self, checkpoint_config: SageMakerCheckpointConfig) -> None:
        self._steps = sorted(_folder(checkpoint_config).glob("*/.metadata"))
        super().__init__(self._steps[-1].parent if self._steps else _folder(checkpoint_config))

    def read_metadata(self) -> Metadata:
        # as the library: nothing found is metadata of nothing
        return super().read_metadata() if self._steps else Metadata({})
