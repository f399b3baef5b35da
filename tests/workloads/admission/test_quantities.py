"""Kubernetes quantities are read as Kubernetes reads them."""

from __future__ import annotations

from decimal import Decimal

import pytest

from hyperpod_cdk.workloads.admission.quantities import amount
from tests.support.tables import row_by_row


@row_by_row(
    "quantity, number",
    [
        (2, 2),
        (0.5, "0.5"),
        ("0", 0),
        ("1.", 1),
        (".5", "0.5"),
        ("500m", "0.5"),
        ("100u", "0.0001"),
        ("5n", "0.000000005"),
        ("2k", 2000),
        ("1Ki", 1024),
        ("1.5Gi", 1610612736),
        ("64Gi", 64 * 2**30),
        ("1Ti", 2**40),
        ("3M", 3_000_000),
        ("12E", 12 * 10**18),
        ("12e3", 12000),
        ("1E-2", "0.01"),
        ("-1Gi", -(2**30)),
        ("+1", 1),
    ],
)
def test_quantities(quantity: object, number: int | str) -> None:
    """Suffixes of both kinds, exponents and signs."""
    assert amount(quantity) == Decimal(number)


@row_by_row("text", ["", "1GB", "1 Gi", "Gi", "1Zi", "1mi", "1e", "1e3Gi", "0x1", "1,5", None, True, [1]])
def test_what_is_no_quantity(text: object) -> None:
    """Everything else is refused in one sentence."""
    with pytest.raises(ValueError, match="must be a Kubernetes quantity such as 2, 500m or 64Gi, got ") as caught:
        amount(text)
    assert str(caught.value).endswith(repr(text))
