"""The connector's writer and reader, over the folder of the fake S3."""

from __future__ import annotations

import os
from pathlib import Path

from torch.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter


def _folder(region: str, path: str) -> Path:
    assert region == "eu-west-1"
    assert path.startswith("s3://")
    return Path(os.environ["FAKE_S3"], path.removeprefix("s3://"))


class S3StorageWriter(FileSystemWriter):
    def __init__(self, region: str, path: str) -> None:
        super().__init__(_folder(region, path))


class S3StorageReader(FileSystemReader):
    def __init__(self, region: str, path: str) -> None:
        super().__init__(_folder(region, path))
