"""The only access to moto's tables. moto is not thread-safe, so all reads and changes are serialized."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

moto_lock = threading.RLock()
"""Held for every request that moto handles. Never call AWS while you hold it: the request would wait for you."""


@contextmanager
def moto_state(service: str, account: str, region: str) -> Iterator[Any]:
    """Yield moto's own backend of a service, with exclusive access.

    Args:
        service: moto's name of the service: `ec2`, `iam`, `lambda`, `logs`.
        account: Account ID.
        region: Region, or the partition where the service has no regions.
    """
    from moto.backends import get_backend  # noqa: PLC0415 - moto loads after the account ID is set

    # moto's stubs want a literal per service
    backends: Any = get_backend
    with moto_lock:
        yield backends(service)[account][region]


def every_moto_state(service: str) -> Iterator[Any]:
    """Yield moto's backends of a service in all accounts and regions; hold `moto_lock` while you walk through them."""
    from moto.backends import get_backend  # noqa: PLC0415 - moto loads after the account ID is set

    backends: Any = get_backend
    for account in list(backends(service).values()):
        yield from list(account.values())
