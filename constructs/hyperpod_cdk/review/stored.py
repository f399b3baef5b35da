"""Reads objects of S3 and the files of archives: lifecycle scripts, and assets as they were deployed.

Imported where AWS is asked only, since it needs botocore.
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
"""How S3 says that there is no bucket of a name (S3 API reference, "Error responses")."""


def content(aws: Api, bucket: str, key: str, *, account: str = "") -> bytes:
    """Read an object, of nobody's bucket but ``account``'s where that is given. Raises NotAnswered."""
    owner = {"ExpectedBucketOwner": account} if account else {}
    # each time, since what came of a stream comes once
    found = aws.send("s3", "get_object", Bucket=bucket, Key=key, **owner)
    try:
        if int(found["ContentLength"]) > LARGEST:
            raise NotAnswered(f"{key} has more than {LARGEST} bytes")
        read: bytes = found["Body"].read()
    except (BotoCoreError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise NotAnswered(f"the answer to s3:GetObject cannot be read: {error}") from None
    return read


def objects(aws: Api, bucket: str, folder: str) -> list[Any] | None:
    """List what lies in a folder of a bucket as S3 does; None where there is no such bucket. Raises NotAnswered.

    Of an empty folder the answer has no ``Contents`` at all (S3 API reference, ListObjectsV2), which is no half answer.
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
    """Give the files of an archive by name. Raises NotAnswered, with ``key`` as its name."""
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            rows = [each for each in opened.infolist() if not each.is_dir()]
            if sum(each.file_size for each in rows) > LARGEST:
                raise NotAnswered(f"{key} has more than {LARGEST} bytes")
            return {each.filename: opened.read(each) for each in rows}
    except (zipfile.BadZipFile, OSError, RuntimeError, NotImplementedError) as error:
        raise NotAnswered(f"{key} is no archive: {error}") from None


def asset(aws: Api, bucket: str, key: str, *, account: str) -> dict[str, bytes] | None:
    """Give the files of an asset that is deployed, of a lone file under no name; None where it cannot be read.

    Nobody has to be permitted ``s3:GetObject`` of the bootstrap's bucket, and its lifecycle rules may have deleted it.
    """
    try:
        read = content(aws, bucket, key, account=account)
        return files_of(read, key=key) if key.endswith(".zip") else {"": read}
    except NotAnswered:
        return None
