"""Locations in S3: bucket names at and next to each bound of the rules of S3, and which locations overlap."""

from __future__ import annotations

import re

import pytest

from hyperpod_cdk.catalog.s3_places import (
    BUCKET,
    BUCKET_NAME_REGEX,
    BUCKET_OR_PREFIX,
    S3_URI,
    overlaps,
    read_only_problems,
)
from hyperpod_cdk.config.checkpointing import CheckpointAccount
from hyperpod_cdk.config.lifecycle import BUCKET_NAME as LIFECYCLE
from hyperpod_cdk.config.restricted_group import BUCKET_NAME as RESTRICTED
from hyperpod_cdk.storage.s3_claims import MountedBucket
from tests.support.tables import row_by_row


@row_by_row(
    "one, other, do",
    [
        ("ours", "ours", True),
        ("ours", "s3://ours", True),
        ("ours", "s3://ours/", True),
        ("s3://ours/a", "s3://ours/a/", True),
        ("s3://ours/a/", "s3://ours/a/b", True),
        ("s3://ours/a", "s3://ours/a/b/c", True),
        ("ours", "s3://ours/a", True),
        ("ours", "theirs", False),
        ("ours", "s3://ours-too", False),
        ("s3://ours/a", "s3://ours/ab", False),
        ("s3://ours/a", "s3://ours/b", False),
        ("s3://ours/a", "s3://theirs/a", False),
    ],
)
def test_two_places(one: str, other: str, *, do: bool) -> None:
    for first, second in ((one, other), (other, one)):
        said = f"must not overlap another place, got {second} and {first} of places[0]; list only the wider of the two"
        assert list(overlaps([first, second], key="places")) == ([(1, said)] if do else [])


def test_each_is_reported_once_with_the_first_that_it_meets() -> None:
    found = list(overlaps(["a", "b", "s3://b/x", "s3://b/x/y", "c", "a"], key="places"))
    assert [(index, said.partition(";")[0]) for index, said in found] == [
        (2, "must not overlap another place, got s3://b/x and b of places[1]"),
        (3, "must not overlap another place, got s3://b/x/y and b of places[1]"),
        (5, "must not overlap another place, got a and a of places[0]"),
    ]


BEGINS, ENDS = "must not be a bucket name that begins with {}", "must not be a bucket name that ends with {}"
NAMES: list[tuple[str, str | None]] = [
    ("abc", None),
    ("ab", "must be"),
    ("a" * 63, None),
    ("a" * 64, "must be"),
    ("0-a.b-9", None),
    ("Abc", "must be"),
    ("a_c", "must be"),
    ("-abc", "must be"),
    ("abc-", "must be"),
    (".abc", "must be"),
    ("abc.", "must be"),
    ("a.b", None),
    ("a..b", "must not be a bucket name with two adjacent periods"),
    ("a.-b", None),
    ("192.168.5.4", "must not be a bucket name that looks like an IP address"),
    ("192.168.5", None),
    ("192.168.5.4.1", None),
    ("192.168.5.4a", None),
    ("1920.168.5.4", None),
    *((f"{prefix}a", BEGINS.format(prefix)) for prefix in ("xn--", "sthree-", "amzn-s3-demo-")),
    *((f"a{prefix}a", None) for prefix in ("xn--", "sthree-", "amzn-s3-demo-")),
    *((name, None) for name in ("xn-a", "sthreea", "amzn-s3-demoa")),
    *((f"a{suffix}", ENDS.format(suffix)) for suffix in ("-s3alias", "--ol-s3", ".mrap", "--x-s3", "--table-s3")),
    *((f"a{suffix}a", None) for suffix in ("-s3alias", "--ol-s3", ".mrap", "--x-s3", "--table-s3")),
    *((name, None) for name in ("as3alias", "a-ol-s3", "amrap", "a-x-s3", "a-table-s3")),
]


@pytest.mark.parametrize(("name", "problem"), NAMES)
def test_a_bucket_is_named_by_the_rules_of_s3(name: str, problem: str | None) -> None:
    for pattern in (BUCKET, RESTRICTED, BUCKET_OR_PREFIX):
        said = pattern.problem(name, key="bucket")
        assert (said is None) if problem is None else str(said).startswith(problem), pattern.describes
    for pattern in (S3_URI, BUCKET_OR_PREFIX):
        for address in (f"s3://{name}", f"s3://{name}/a-s3alias/..xn--"):
            said = pattern.problem(address, key="s3_uri")
            assert (said is None) if problem is None else str(said).startswith(problem), address


@pytest.mark.parametrize(("name", "problem"), NAMES)
def test_constructs_judge_it_alike(name: str, problem: str | None) -> None:
    if problem is None:
        assert MountedBucket(bucket=name).bucket == name
        return
    with pytest.raises(ValueError, match=re.escape(f"bucket: {problem}")):
        MountedBucket(bucket=name)


def test_the_whole_sentence() -> None:
    assert BUCKET.problem("sthree-data", key="bucket") == (
        'must not be a bucket name that begins with sthree-, which S3 reserves, got "sthree-data"; correct bucket, '
        "which must look like my-checkpoints"
    )
    with pytest.raises(ValueError, match=r"must not be a bucket name that ends with \.mrap"):
        CheckpointAccount(namespace="research", name="trainer", buckets=("s3://ours.mrap/a",))


def test_the_bucket_of_lifecycle_scripts_has_its_prefix_and_what_cdk_asks_for() -> None:
    for name, fits in {
        "sagemaker-a": True,
        "sagemaker--a.b": True,
        "sagemaker-": False,
        "my-sagemaker-a": False,
        "sagemaker-a.-b": False,
        "sagemaker-a-.b": False,
        "sagemaker-a..b": False,
        "sagemaker-a-s3alias": False,
        f"sagemaker-{'a' * 53}": True,
        f"sagemaker-{'a' * 54}": False,
    }.items():
        assert LIFECYCLE.matches(name) is fits, name


def test_the_pattern_ends_with_the_name() -> None:
    assert re.match(BUCKET_NAME_REGEX, "ours/theirs")
    assert not re.match(BUCKET_NAME_REGEX, "ours.mrap/theirs")


@row_by_row(
    "read_only, allowed, refused",
    [
        (True, (False, False), []),
        (True, (True, False), ["allow_delete"]),
        (True, (False, True), ["allow_overwrite"]),
        (True, (True, True), ["allow_delete", "allow_overwrite"]),
        (False, (True, True), []),
    ],
)
def test_a_read_only_mount_writes_nothing(
    read_only: bool,  # noqa: FBT001 - a column
    allowed: tuple[bool, bool],
    refused: list[str],
) -> None:
    found = read_only_problems(read_only=read_only, allow_delete=allowed[0], allow_overwrite=allowed[1])
    said = "must be false with read_only, got true; set one of the two to false"
    assert list(found) == [(name, said) for name in refused]
