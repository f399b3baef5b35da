"""Places in S3: buckets, and prefixes in them, by name or by ``s3://`` address."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def overlaps(places: Sequence[str], *, key: str) -> Iterator[tuple[int, str]]:
    """Give the index of every place that contains an earlier one or is in it, with the sentence of the error.

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
    """Give each write permission with a read-only mount, with the sentence of the error."""
    for name, allowed in (("allow_delete", allow_delete), ("allow_overwrite", allow_overwrite)):
        if read_only and allowed:
            yield name, "must be false with read_only, got true; set one of the two to false"


def _holds(outer: str, inner: str) -> bool:
    return inner == outer or inner.startswith(f"{outer.rstrip('/')}/")
