"""Places in S3: buckets, and prefixes in them, by name or by ``s3://`` address."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hyperpod_cdk.catalog.rules import Pattern
from hyperpod_cdk.catalog.sentences import Correction, Sentence, Truth

BUCKET_NAME_SOURCE = "S3 user guide, General purpose bucket naming rules, 2026-11"
BUCKET_NAME_MINIMUM = 3
BUCKET_NAME_MAXIMUM = 63
_RESERVED_PREFIXES = ("xn--", "sthree-", "amzn-s3-demo-")
_RESERVED_SUFFIXES = ("-s3alias", "--ol-s3", ".mrap", "--x-s3", "--table-s3")
_END = "(?:/|$)"
_ADDRESS = r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}"
BUCKET_NAME_REGEX = (
    rf"(?!{'|'.join(_RESERVED_PREFIXES)})(?![^/]*(?:{'|'.join(map(re.escape, _RESERVED_SUFFIXES))}){_END})"
    rf"(?![^/]*\.\.)(?!{_ADDRESS}{_END})"
    rf"[a-z0-9][a-z0-9.-]{{{BUCKET_NAME_MINIMUM - 2},{BUCKET_NAME_MAXIMUM - 2}}}[a-z0-9]"
)
"""The name of a general purpose bucket, alone or with a ``/`` and a prefix after it."""


@dataclass(frozen=True, kw_only=True)
class BucketPattern(Pattern):
    """A pattern whose texts are or begin with the name of a bucket; of a name that S3 reserves it says so."""

    def problem(self, text: str, *, key: str) -> str | None:
        """Say what is wrong with ``text`` and what to set ``key`` to, or return None."""
        if self.matches(text):
            return None
        return refused_name_problem(text, key=key, example=self.example) or super().problem(text, key=key)


BUCKET = BucketPattern(
    regex=BUCKET_NAME_REGEX,
    minimum=BUCKET_NAME_MINIMUM,
    maximum=BUCKET_NAME_MAXIMUM,
    describes="the name of an S3 bucket, without s3://",
    refers=True,
    example="my-checkpoints",
    source=BUCKET_NAME_SOURCE,
)
S3_URI = BucketPattern(
    regex=rf"s3://{BUCKET_NAME_REGEX}(/[^\x00\x85\u2028\u2029\r\n]*)?",
    maximum=4357,
    describes="the S3 address of a bucket or a prefix",
    refers=True,
    example="s3://my-datasets/",
    source=f"CloudFormation schema AWS::FSx::DataRepositoryAssociation; {BUCKET_NAME_SOURCE}",
)
BUCKET_OR_PREFIX = BucketPattern(
    # braces would begin a policy variable, * and ? are wildcards in one
    regex=rf"{BUCKET_NAME_REGEX}|s3://{BUCKET_NAME_REGEX}(/[A-Za-z0-9!_.()'+=,@:/-]*)?",
    minimum=BUCKET_NAME_MINIMUM,
    maximum=1092,
    describes="the name of a bucket, or the S3 address of a bucket or a prefix without wildcards",
    refers=True,
    example="s3://my-checkpoints/llama-70b",
    source=f"{BUCKET_NAME_SOURCE}; safe characters of keys",
)
MOUNT_PREFIX = Pattern(
    # what Mountpoint reads as one word of its options, and IAM does not read as a wildcard
    regex=r"([0-9A-Za-z!_.'()=+@:,-][0-9A-Za-z!_.'()=+@:,/-]*/)?",
    minimum=0,
    maximum=900,
    describes="empty, or a prefix that ends with / and does not begin with it, without spaces, * and ?",
    example="runs/",
)
FOLDER = Pattern(
    regex=r"[A-Za-z0-9!_.*'()-]+(/[A-Za-z0-9!_.*'()-]+)*",
    # CDK tags the bucket with the key aws-cdk:cr-owned:FOLDER:12345678, of at most 128 characters; the version of the
    # scripts and its / take 33 of FOLDER
    maximum=69,
    describes="folders joined by /, without one at either end, of at most 69 characters",
    example="hyperpod/prod",
    source="S3 user guide, safe characters of object keys; aws-cdk-lib, BucketDeployment",
)


def refused_name_problem(text: str, *, key: str, example: str) -> str | None:
    """Say which rule the bucket of ``text`` breaks although its characters and its length are right, or return None."""
    why = _refusal(text.removeprefix("s3://").partition("/")[0])
    # letter by letter, another name would be somebody else's bucket
    return Sentence(f'{why}, got "{text}"; ', Correction(key, example)) if why else None


def _refusal(name: str) -> str | None:
    for prefix in _RESERVED_PREFIXES:
        if name.startswith(prefix):
            return f"must not be a bucket name that begins with {prefix}, which S3 reserves"
    for suffix in _RESERVED_SUFFIXES:
        if name.endswith(suffix):
            return f"must not be a bucket name that ends with {suffix}, which S3 reserves"
    if ".." in name:
        return "must not be a bucket name with two adjacent periods"
    return "must not be a bucket name that looks like an IP address" if re.fullmatch(_ADDRESS, name) else None


def overlaps(places: Sequence[str], *, key: str) -> Iterator[tuple[int, str]]:
    """Yield the index of every place that contains an earlier one or is in it, with the sentence of the error.

    ``key`` is the name of the list. Each place is reported once.
    """
    addresses = [place if place.startswith("s3://") else f"s3://{place}" for place in places]
    for index, address in enumerate(addresses):
        for first, other in enumerate(addresses[:index]):
            if _holds(address, other) or _holds(other, address):
                yield (
                    index,
                    (
                        f"must not overlap another place, got {places[index]} and {places[first]} of"
                        f" {key}[{first}]; list only the wider of the two"
                    ),
                )
                break


def read_only_problems(*, read_only: bool, allow_delete: bool, allow_overwrite: bool) -> Iterator[tuple[str, str]]:
    """Yield each write permission with a read-only mount, with the sentence of the error."""
    for name, allowed in (("allow_delete", allow_delete), ("allow_overwrite", allow_overwrite)):
        if read_only and allowed:
            said = (
                "must be ",
                Truth(value=False),
                " with read_only, got ",
                Truth(value=True),
                "; set one of the two to ",
            )
            yield name, Sentence(*said, Truth(value=False))


def _holds(outer: str, inner: str) -> bool:
    return inner == outer or inner.startswith(f"{outer.rstrip('/')}/")
