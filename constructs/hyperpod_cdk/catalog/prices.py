"""Prices as a dated file: what one unit costs in one region, since when, and the source.

The file is JSON. ``format`` is 1, ``as_of`` the day of the newest price in it (of the shipped file: the day on which it
was compiled), ``sources`` says what each short name of a source means, and ``prices`` is a list of rows:

- ``region``: ``us-east-1``, or ``any`` for what costs the same in every region that is billed in US dollars;
- ``sku``: what is sold, one of the names that ``unit_of`` knows (``node.ml.p5.48xlarge``, ``nat_gateway``);
- ``usd``: US dollars as text, so that no digit is lost (``"0.045"``);
- ``unit``: what the price is for (``instance-hour``, ``GB-month``), always the one that ``unit_of`` gives;
- ``as_of``: the day on which AWS published it or somebody read it, null if unknown;
- ``source``: a name of ``sources``;
- ``unsure``: why the price is not reliable. Left out if it is.

Prices are the list's: on demand, before taxes, discounts, savings plans and free tiers. ``data/prices.json`` ships with
the package and contains what public material states. A project's own ``prices.json``, in its root next to
``environments/``, replaces it completely; ``hyperpod-cdk prices refresh`` writes it from the AWS Pricing API.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, NoReturn

from hyperpod_cdk.catalog import _data, instance_types
from hyperpod_cdk.catalog.regions import REGION_REGEX
from hyperpod_cdk.file_reading import TooLargeError, read_bytes, reason_of

AS_OF: date = _data.as_of("prices")

FILE: Final = "prices.json"
"""Name of a project's own price file, in its root."""

FORMAT: Final = 1

ANY: Final = "any"
"""The region of what costs the same everywhere."""

HOURS_PER_MONTH: Final = Decimal(730)
"""AWS's own month: 365 days / 12, in hours."""

MAX_BYTES: Final = 8_000_000
"""A larger file is refused before it is parsed; one with all regions has about 2 MB."""

Billing = Literal["free", "by use", "by hour"]
Kind = Literal["nodes", "volumes", "storage", "network", "control plane", "logs", "other"]

_DEARER: Final = Decimal(100_000)
_AMOUNT: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,12})?")
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_REGION: Final = re.compile(rf"{REGION_REGEX}\d*")
_UNITS: Final = (
    (re.compile(rf"node\.{instance_types.NAME.regex}"), "instance-hour"),
    (re.compile(r"node_volume|ebs\.gp3"), "GB-month"),
    (re.compile(r"eks\.(cluster|extended_support|provisioned\.tier-[a-z0-9]+)"), "cluster-hour"),
    (re.compile(r"nat_gateway"), "gateway-hour"),
    (re.compile(r"public_ipv4"), "address-hour"),
    (re.compile(r"interface_endpoint"), "endpoint-hour"),
    (re.compile(r"lustre\.(scratch|(ssd|hdd)\.\d+|read_cache)"), "GB-month"),
    (re.compile(r"lustre\.tiering\.throughput"), "MBps-month"),
    (re.compile(r"lustre\.metadata_iops"), "IOPS-month"),
    (re.compile(r"kms\.key"), "key-month"),
    (re.compile(r"cloudwatch\.alarm(\.high_resolution)?"), "alarm-month"),
    (re.compile(r"cloudwatch\.dashboard"), "dashboard-month"),
)


class PricesError(Exception):
    """A price file cannot be used; the text is one line that names it and says what is wrong."""


@dataclass(frozen=True, kw_only=True)
class Price:
    """What one unit of something costs in one region; the fields are those of a row of the file."""

    region: str
    sku: str
    usd: Decimal
    unit: str
    as_of: date | None
    source: str
    unsure: str = ""

    @property
    def monthly(self) -> Decimal:
        """US dollars for one unit in a month of 730 hours."""
        return self.usd * HOURS_PER_MONTH if self.unit.endswith("-hour") else self.usd

    @property
    def doubt(self) -> str:
        """What a reader must know before relying on it, empty if nothing is in doubt."""
        return f"price of {self.as_of or 'an unknown day'}, not confirmed" if self.unsure else ""

    def remark(self, table: date) -> str:
        """What a reader must know in addition to the day of its ``table``: another day, and doubt."""
        if self.unsure or self.as_of == table:
            return self.doubt
        return f"price of {self.as_of or 'an unknown day'}"

    def as_data(self) -> dict[str, str | None]:
        """Return the row as in a file."""
        row: dict[str, str | None] = {
            "region": self.region,
            "sku": self.sku,
            "usd": format(self.usd, "f"),
            "unit": self.unit,
            "as_of": self.as_of.isoformat() if self.as_of else None,
            "source": self.source,
        }
        return {**row, "unsure": self.unsure} if self.unsure else row


@dataclass(frozen=True, kw_only=True)
class Prices:
    """A price file. ``where`` is how messages call it."""

    as_of: date
    sources: Mapping[str, str]
    rows: Mapping[tuple[str, str], Price] = field(repr=False)
    where: str = ""

    def find(self, region: str, sku: str) -> Price | None:
        """Return the price of something in a region, None if the file has none.

        A price for ``any`` region counts in regions that are billed in US dollars; China's are not.
        """
        found = self.rows.get((region, sku))
        if found is None and region and not region.startswith("cn-"):
            found = self.rows.get((ANY, sku))
        return found

    def regions(self) -> tuple[str, ...]:
        """Return the regions that have a price of their own, sorted."""
        return tuple(sorted({region for region, _ in self.rows} - {ANY}))

    def of_region(self, region: str) -> tuple[Price, ...]:
        """Return every price that applies in a region, by name."""
        skus = sorted({sku for _, sku in self.rows})
        return tuple(price for sku in skus if (price := self.find(region, sku)) is not None)

    def text(self) -> str:
        """Return the file's text: one row a line, sorted, a final newline. Reading and writing keep it."""
        head = {"format": FORMAT, "as_of": self.as_of.isoformat(), "sources": dict(sorted(self.sources.items()))}
        lines = [json.dumps(head, indent=2, ensure_ascii=False)[:-2] + ',\n  "prices": [']
        ordered = [self.rows[key] for key in sorted(self.rows)]
        for price in ordered:
            comma = "" if price is ordered[-1] else ","
            lines.append(f"    {json.dumps(price.as_data(), ensure_ascii=False)}{comma}")
        return "\n".join([*lines, "  ]", "}", ""])


@dataclass(frozen=True, kw_only=True)
class TypeBilling:
    """How a CloudFormation type is billed: ``free``, ``by use`` (of ``what``), or ``by hour``."""

    billing: Billing
    kind: Kind
    what: str = ""


def unit_of(sku: str) -> str | None:
    """Return the unit in which something is sold, None for a name that this package does not use."""
    return next((unit for pattern, unit in _UNITS if pattern.fullmatch(sku)), None)


@cache
def shipped() -> Prices:
    """Return the prices in the package."""
    return _read(_data.load("prices"), "the shipped prices")


def of_project(root: Path) -> Prices:
    """Return the prices of the project in ``root``: its own ``prices.json``, else the package's. Raises PricesError."""
    file = root / FILE
    return read_prices(file, where=FILE) if file.exists() or file.is_symlink() else shipped()


def read_prices(file: Path, *, where: str) -> Prices:
    """Read a price file; ``where`` is how messages call it. Raises PricesError."""
    try:
        raw = read_bytes(file, most=MAX_BYTES)
    except TooLargeError as error:
        _refuse_size(where, error.size)
    except OSError as error:
        _refuse(where, f"cannot be read: {error.strerror or error}")
    return read_content(raw, where=where)


def read_content(raw: bytes, *, where: str) -> Prices:
    """Read the content of a price file; ``where`` is how messages call it. Raises PricesError."""
    if len(raw) > MAX_BYTES:
        _refuse_size(where, len(raw))
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        _refuse(where, f"is not UTF-8 text: byte 0x{raw[error.start]:02x}")
    return parse_prices(text, where=where)


def parse_prices(text: str, *, where: str) -> Prices:
    """Read the text of a price file. Raises PricesError."""
    try:
        document = json.loads(text, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        raise PricesError(f"{where}:{error.lineno}: is not JSON: {error.msg}; {_ANEW}") from None
    except (ValueError, RecursionError) as error:
        _refuse(where, f"is not JSON: {reason_of(error)}")
    return _read(document, where)


def billing_of(resource_type: str) -> TypeBilling | None:
    """Say how a CloudFormation type is billed, None if that is unknown.

    A custom resource costs nothing itself: the function behind it does.
    """
    found = _types().get(resource_type)
    if found is None and resource_type.startswith("Custom::"):
        return TypeBilling(billing="free", kind="other")
    return found


def by_use_addon(name: str) -> str | None:
    """Say what an EKS add-on costs by use, None for one that costs nothing itself."""
    addons: Mapping[str, str] = _data.load("prices")["by_use_addons"]
    return addons.get(name)


_ANEW: Final = "write it again with 'hyperpod-cdk prices refresh'"


@cache
def _types() -> dict[str, TypeBilling]:
    return {
        name: TypeBilling(billing=row["billing"], kind=row["kind"], what=row.get("what", ""))
        for row in _data.load("prices")["types"]
        for name in row["types"]
    }


def _refuse_size(where: str, size: int) -> NoReturn:
    _refuse(where, f"must have at most {MAX_BYTES} bytes, got {size}")


def _refuse(where: str, problem: str) -> NoReturn:
    raise PricesError(f"{where}: {problem}; {_ANEW}")


def _unique(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r} is repeated")
        found[key] = value
    return found


def _read(document: Any, where: str) -> Prices:
    if not isinstance(document, dict):
        _refuse(where, "must be an object with format, as_of, sources and prices")
    version = document.get("format")
    if version != FORMAT or isinstance(version, bool):
        _refuse(where, f"format: must be {FORMAT}, which this hyperpod-cdk reads, got {json.dumps(version)}")
    as_of = _day(document.get("as_of"))
    if as_of is None:
        _refuse(where, f"as_of: must be a day such as 2026-11-21, got {json.dumps(document.get('as_of'))}")
    sources = document.get("sources")
    if not isinstance(sources, dict) or not sources or not all(isinstance(text, str) for text in sources.values()):
        _refuse(where, "sources: must say what each source is")
    listed = document.get("prices")
    if not isinstance(listed, list) or not listed:
        _refuse(where, "prices: must be a list of prices, got none")
    rows: dict[tuple[str, str], Price] = {}
    for index, raw in enumerate(listed):
        price = _price(raw, sources, where, f"prices[{index}]")
        if (price.region, price.sku) in rows:
            _refuse(where, f"prices[{index}]: {price.sku} of {price.region} is repeated")
        rows[price.region, price.sku] = price
    return Prices(as_of=as_of, sources=sources, rows=rows, where=where)


def _price(raw: Any, sources: Mapping[str, str], where: str, place: str) -> Price:
    if not isinstance(raw, dict):
        _refuse(where, f"{place}: must be an object, got {_shown(raw)}")
    region, sku, usd, unit, source = (raw.get(name) for name in ("region", "sku", "usd", "unit", "source"))
    if not isinstance(region, str) or not (region == ANY or _REGION.fullmatch(region)):
        _refuse(where, f"{place}.region: must be an AWS region or {ANY!r}, got {_shown(region)}")
    wanted = unit_of(sku) if isinstance(sku, str) else None
    if not isinstance(sku, str) or wanted is None:
        _refuse(where, f"{place}.sku: is not a known name: {_shown(sku)}")
    if unit != wanted:
        _refuse(where, f"{place}.unit: must be {wanted!r} for {sku}, got {_shown(unit)}")
    amount = amount_of(usd)
    if amount is None:
        _refuse(where, f'{place}.usd: must be US dollars as text such as "0.045", got {_shown(usd)}')
    day = _day(raw.get("as_of"))
    if day is None and raw.get("as_of", "") is not None:
        _refuse(where, f"{place}.as_of: must be a day such as 2026-11-21, or null, got {_shown(raw.get('as_of'))}")
    if not isinstance(source, str) or source not in sources:
        _refuse(where, f"{place}.source: must be one of sources, got {_shown(source)}")
    unsure = raw.get("unsure", "")
    if not isinstance(unsure, str):
        _refuse(where, f"{place}.unsure: must be text, got {_shown(unsure)}")
    return Price(region=region, sku=sku, usd=amount, unit=wanted, as_of=day, source=source, unsure=unsure)


def amount_of(text: object) -> Decimal | None:
    """Return an amount in plain decimal text that is plausible as a price, else None."""
    if not isinstance(text, str) or not _AMOUNT.fullmatch(text):
        return None
    amount = Decimal(text)
    return amount if amount < _DEARER else None


def _day(value: object) -> date | None:
    if not isinstance(value, str) or not _DAY.fullmatch(value):
        return None
    try:
        return date.fromisoformat(value)
    except ValueError:
        return None


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."
