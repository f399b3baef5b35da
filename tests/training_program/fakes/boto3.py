"""S3's client over a folder: a bucket is a folder below $FAKE_S3, answers come in pages of two."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


class _Client:
    def __init__(self) -> None:
        self._root = Path(os.environ["FAKE_S3"])

    def get_bucket_location(self, *, Bucket: str) -> dict[str, str | None]:  # noqa: N803 - S3's names
        assert (self._root / Bucket).is_dir()
        return {"LocationConstraint": "eu-west-1"}

    def delete_object(self, *, Bucket: str, Key: str) -> None:  # noqa: N803 - as above
        (self._root / Bucket / Key).unlink()

    def get_paginator(self, operation: str) -> _Client:
        assert operation == "list_objects_v2"
        return self

    def paginate(self, *, Bucket: str, Prefix: str) -> Iterator[dict[str, list[dict[str, str]]]]:  # noqa: N803 - as above
        bucket = self._root / Bucket
        names = sorted(path.relative_to(bucket).as_posix() for path in bucket.rglob("*") if path.is_file())
        found = [name for name in names if name.startswith(Prefix)]
        for at in range(0, len(found), 2):
            yield {"Contents": [{"Key": name} for name in found[at : at + 2]]}
        yield {}


def client(service: str) -> _Client:
    assert service == "s3"
    return _Client()
