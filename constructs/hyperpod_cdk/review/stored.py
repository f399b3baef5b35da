"""Reads objects of S3 and the files of archives: lifecycle scripts, and assets as they were deployed.

Imported only if AWS is called, because it needs botocore.
"""

from __future__ import annotations

import io
import zipfile
from typing import Any, Final

from botocore.exceptions import BotoCoreError

from hyperpod_cdk.checks.answers import NotAnswered, Refused
from hyperpod_cdk.review.deployed import Api

LARGEST: Final = 50_000_000
"""Bytes of an object, or of an archive's files together, that are read; lifecycle scripts have some 100,000."""

NO_BUCKET: Final = "NoSuchBucket"
"""S3's error code for a bucket that does not exist (S3 API reference, "Error responses")."""


def content(aws: Api, bucket: str, key: str, *, account: str = "") -> bytes:
    """Read an object, only from a bucket of ``account`` if that is given. Raises NotAnswered."""
    owner = {"ExpectedBucketOwner": account} if account else {}
    # each time, because a stream can be read only once
    found = aws.send("s3", "get_object", Bucket=bucket, Key=key, **owner)
    try:
        if int(found["ContentLength"]) > LARGEST:
            raise NotAnswered(f"{key} has more than {LARGEST} bytes")
        read: bytes = found["Body"].read()
    except (BotoCoreError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise NotAnswered(f"the answer to s3:GetObject cannot be read: {error}") from None
    return read


def objects(aws: Api, bucket: str, folder: str) -> list[Any] | None:
    """List a folder of a bucket as S3 does; None if there is no such bucket. Raises NotAnswered.

    For an empty folder the answer has no ``Contents`` at all (S3 API reference, ListObjectsV2), so it is complete.
    """
    asked = {"Bucket": bucket, "Prefix": folder}
    try:
        first = aws.call("s3", "list_objects_v2", **asked)
        if "Contents" not in first and not first.get("KeyCount"):
            return []
        found: list[Any] = aws.pages("s3", "list_objects_v2", "Contents", **asked)
    except Refused as refused:
        if refused.code == NO_BUCKET:
            return None
        raise
    return found


def files_of(archive: bytes, *, key: str) -> dict[str, bytes]:
    """Return the files of an archive by name. Raises NotAnswered, with ``key`` as its name."""
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            rows = [each for each in opened.infolist() if not each.is_dir()]
            if sum(each.file_size for each in rows) > LARGEST:
                raise NotAnswered(f"{key} has more than {LARGEST} bytes")
            return {each.filename: opened.read(each) for each in rows}
    except (zipfile.BadZipFile, OSError, RuntimeError, NotImplementedError) as error:
        raise NotAnswered(f"{key} is not an archive: {error}") from None


def asset(aws: Api, bucket: str, key: str, *, account: str) -> dict[str, bytes] | None:
    """Return the files of a deployed asset, a single file with an empty name; None if it cannot be read.

    Users need not have ``s3:GetObject`` for the bootstrap's bucket, and its lifecycle rules may have deleted the asset.
    """
    try:
        read = content(aws, bucket, key, account=account)
        return files_of(read, key=key) if key.endswith(".zip") else {"": read}
    except NotAnswered:
        return None
