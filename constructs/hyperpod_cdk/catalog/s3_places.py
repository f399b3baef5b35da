"""Places in S3: buckets, and prefixes in them, by name or by ``s3://`` address."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def overlaps(places: Sequence[str], *, key: str) -> Iterator[tuple[int, str]]:
    """Give the index of every place that holds an earlier one or lies in it, with the sentence that refuses.

    ``key`` is the name of the list. Each place is reported once.
    """
    addresses = [place if place.startswith("s3://") else f"s3://{place}" for place in places]
    for index, address in enumerate(addresses):
        for first, other in enumerate(addresses[:index]):
            if _holds(address, other) or _holds(other, address):
                yield (
                    index,
                    (
                        f"must not overlap another place, got {places[index]} beside {places[first]} of"
                        f" {key}[{first}]; name the wider of the two only"
                    ),
                )
                break


def _holds(outer: str, inner: str) -> bool:
    return inner == outer or inner.startswith(f"{outer.rstrip('/')}/")
