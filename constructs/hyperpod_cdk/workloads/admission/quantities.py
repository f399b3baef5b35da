"""Kubernetes quantities: ``2``, ``500m``, ``64Gi``."""

from __future__ import annotations

import re
from decimal import Decimal

_QUANTITY = re.compile(r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(?:[eE]([+-]?[0-9]+)|([numkMGTPE]|[KMGTPE]i)?)")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}


def amount(quantity: object) -> Decimal:
    """Return a quantity as a number: bytes of memory, vCPUs or devices.

    Raises:
        ValueError: if it is not a Kubernetes quantity.
    """
    text = str(quantity) if isinstance(quantity, str | int | float) and not isinstance(quantity, bool) else ""
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise ValueError(f"must be a Kubernetes quantity such as 2, 500m or 64Gi, got {quantity!r}")
    number, exponent, suffix = match.groups()
    if suffix in _BINARY:
        return Decimal(number) * Decimal(1024) ** _BINARY[suffix]
    return Decimal(number).scaleb(int(exponent) if exponent else _DECIMAL.get(suffix or "", 0))
