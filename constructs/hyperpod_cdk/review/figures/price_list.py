"""Reads the AWS Pricing API for the resources of HyperPod environments, and creates a price file from the answers.

The API's documentation does not state which product is which: the rules below use usage types as public projects have
seen them in price lists (``USW2-NatGateway-Hours``). So each product must have the expected unit: one with another
unit, another currency, without a date or with two prices is reported and omitted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any, Final, Protocol

from hyperpod_cdk.catalog import instance_types
from hyperpod_cdk.catalog.prices import ANY, Price, Prices, amount_of, unit_of
from hyperpod_cdk.review.figures.charge_lines import thing

REGION: Final = "us-east-1"
"""The Region of the API endpoint that has the prices of all Regions."""

ACTION: Final = "pricing:GetProducts"
"""What IAM must allow; the API supports only ``*`` as resource."""

SOURCE: Final = "api"

WANTED: Final = (
    "cloudwatch.alarm",
    "ebs.gp3",
    "eks.cluster",
    "eks.extended_support",
    "interface_endpoint",
    "kms.key",
    "lustre.scratch",
    "lustre.ssd.125",
    "lustre.ssd.250",
    "lustre.ssd.500",
    "lustre.ssd.1000",
    "nat_gateway",
    "node_volume",
    "public_ipv4",
)
"""Prices that every Region is expected to have, in addition to instance types; missing ones are reported."""


class Pages(Protocol):
    """Calls a service once for each page: ``checks.aws.LiveAws.pages``."""

    def __call__(self, service: str, operation: str, key: str, **params: Any) -> list[Any]:
        """Return the items of ``key`` of all pages. Raises checks.answers.NotAnswered."""
        ...


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """The result of the API. ``missing`` are prices that were not found, ``problems`` are omitted products."""

    rows: Mapping[tuple[str, str], Price]
    missing: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class _Rule:
    """Products of one kind: ``pattern`` of the usage type, and ``sku`` for what it matched.

    ``units`` are the price list's names for the unit of the sku, in lower case.
    """

    pattern: re.Pattern[str]
    sku: Callable[[re.Match[str]], str]
    units: tuple[str, ...]
    having: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class _Question:
    """One GetProducts: ``filters`` in addition to the Region's. A later question of a service is asked only for missing
    prices."""

    service: str
    filters: tuple[tuple[str, str], ...] = ()
    rules: tuple[_Rule, ...] = ()
    is_global: bool = False
    only_without: str = ""


def _named(sku: str) -> Callable[[re.Match[str]], str]:
    return lambda _: sku


_HOURS: Final = ("hrs", "hours", "hour")
_GB: Final = ("gb-mo", "gb-month")
_NODES: Final = (
    # "ReservedCluster:" and "SpotCluster:" are other products: the prefix must end right before the word
    _Rule(
        pattern=re.compile(rf"(?:[A-Z0-9]+-)?Cluster:({instance_types.NAME.regex})"),
        sku=lambda found: f"node.{found[1]}",
        units=_HOURS,
    ),
    _Rule(
        pattern=re.compile(r"(?:[A-Z0-9]+-)?Cluster:VolumeUsage\.gp[23]"),
        sku=_named("node_volume"),
        units=_GB,
    ),
)
_EKS: Final = (
    _Rule(
        pattern=re.compile(r"(?:[A-Z0-9]+-)?AmazonEKS-Hours:perCluster"),
        sku=_named("eks.cluster"),
        units=_HOURS,
    ),
    _Rule(
        pattern=re.compile(r"(?:[A-Z0-9]+-)?AmazonEKS-Hours:extendedSupport"),
        sku=_named("eks.extended_support"),
        units=_HOURS,
    ),
    _Rule(
        # not seen in any public price list: the words are those of EKS's API
        pattern=re.compile(r"(?i).*provisioned.*?[^a-z0-9]((?:[248])?xl|ultra)"),
        sku=lambda found: f"eks.provisioned.tier-{found[1].lower()}",
        units=_HOURS,
    ),
)
_LUSTRE: Final = (
    _Rule(
        pattern=re.compile(r"(?:[A-Z0-9]+-)?Storage\.(SSD|HDD)\.(\d+)"),
        sku=lambda found: f"lustre.{found[1].lower()}.{found[2]}",
        units=_GB,
    ),
    _Rule(
        pattern=re.compile(r"(?:[A-Z0-9]+-)?Storage"),
        sku=_named("lustre.scratch"),
        units=_GB,
        having={"storageType": "SSD"},
    ),
    _Rule(
        pattern=re.compile(r"(?i)(?:[A-Z0-9]+-)?.*metadata.*iops.*"),
        sku=_named("lustre.metadata_iops"),
        units=("iops-mo", "iops-month"),
    ),
    _Rule(
        # MiBps is not MBps, so that the price of a MiBps is omitted and reported
        pattern=re.compile(r"(?i)(?:[A-Z0-9]+-)?.*throughput.*"),
        sku=_named("lustre.tiering.throughput"),
        units=("mbps-mo", "mbps-month"),
    ),
    _Rule(
        pattern=re.compile(r"(?i)(?:[A-Z0-9]+-)?.*read.?cache.*"),
        sku=_named("lustre.read_cache"),
        units=_GB,
    ),
)
_VPC: Final = (
    _Rule(
        pattern=re.compile(r"(?:[A-Z0-9]+-)?VpcEndpoint-Hours"),
        sku=_named("interface_endpoint"),
        units=_HOURS,
    ),
    _Rule(
        pattern=re.compile(r"(?:[A-Z0-9]+-)?PublicIPv4:InUseAddress"),
        sku=_named("public_ipv4"),
        units=_HOURS,
    ),
)
_NAT: Final = (
    # "RegionalNatGateway-Hours" is another product
    _Rule(
        pattern=re.compile(r"(?:[A-Z0-9]+-)?NatGateway-Hours"),
        sku=_named("nat_gateway"),
        units=_HOURS,
    ),
)
_ALARMS: Final = (
    _Rule(
        pattern=re.compile(r"(?:[A-Z0-9]+-)?CW:AlarmMonitorUsage"),
        sku=_named("cloudwatch.alarm"),
        units=("alarms", "alarm"),
    ),
    _Rule(
        pattern=re.compile(r"(?:[A-Z0-9]+-)?CW:HighResAlarmMonitorUsage"),
        sku=_named("cloudwatch.alarm.high_resolution"),
        units=("alarms", "alarm"),
    ),
)
_QUESTIONS: Final = (
    _Question(service="AmazonSageMaker", filters=(("component", "Cluster"),), rules=_NODES),
    # the whole service has thousands of products: asked only if the component had another name
    _Question(service="AmazonSageMaker", rules=_NODES, only_without="node."),
    _Question(service="AmazonEKS", rules=_EKS),
    _Question(service="AmazonFSx", filters=(("fileSystemType", "Lustre"),), rules=_LUSTRE),
    _Question(service="AmazonVPC", rules=(*_VPC, *_NAT)),
    _Question(service="AmazonEC2", filters=(("productFamily", "NAT Gateway"),), rules=_NAT, only_without="nat_gateway"),
    _Question(
        service="AmazonEC2",
        filters=(("productFamily", "Storage"), ("volumeApiName", "gp3")),
        rules=(
            _Rule(
                pattern=re.compile(r"(?:[A-Z0-9]+-)?EBS:VolumeUsage\.gp3"),
                sku=_named("ebs.gp3"),
                units=_GB,
            ),
        ),
    ),
    _Question(
        service="awskms",
        rules=(
            _Rule(
                pattern=re.compile(r"[a-z0-9-]+-KMS-Keys"),
                sku=_named("kms.key"),
                units=("keys", "key"),
            ),
        ),
    ),
    _Question(service="AmazonCloudWatch", rules=_ALARMS),
    _Question(
        service="AmazonCloudWatch",
        # dashboards belong to an account, not to a Region; "-Basic" is the one of up to 50 metrics, at the same price
        filters=(("usagetype", "DashboardsUsageHour"),),
        rules=(
            _Rule(
                pattern=re.compile(r"DashboardsUsageHour"),
                sku=_named("cloudwatch.dashboard"),
                units=("dashboards", "dashboard"),
            ),
        ),
        is_global=True,
    ),
)


def fetch(pages: Pages, regions: Mapping[str, Iterable[str]]) -> Fetched:
    """Request the prices of these Regions.

    ``regions`` has the instance types that are used there: one without a price is reported. Raises
    checks.answers.NotAnswered if a question has no answer, because half a file would look like a complete one.
    """
    rows: dict[tuple[str, str], Price] = {}
    problems: list[str] = []
    missing: list[str] = []
    for question in (each for each in _QUESTIONS if each.is_global):
        found, wrong = _ask(pages, question, ANY)
        rows |= {(ANY, sku): price for sku, price in found.items()}
        problems += wrong
    for region in sorted(regions):
        of_region: dict[str, Price] = {}
        for question in _QUESTIONS:
            if question.is_global:
                continue
            if question.only_without and any(sku.startswith(question.only_without) for sku in of_region):
                continue
            found, wrong = _ask(pages, question, region)
            of_region |= found
            problems += wrong
        wanted = [*WANTED, *(f"node.{name}" for name in sorted(set(regions[region])))]
        missing += [f"{thing(sku)} in {region}" for sku in wanted if sku not in of_region]
        if not any(sku.startswith("node.") for sku in of_region):
            missing.append(f"nodes of HyperPod clusters in {region}")
        rows |= {(region, sku): price for sku, price in of_region.items()}
    if (ANY, "cloudwatch.dashboard") not in rows:
        missing.append(thing("cloudwatch.dashboard"))
    return Fetched(rows=rows, missing=tuple(missing), problems=tuple(dict.fromkeys(problems)))


def merged(fetched: Fetched, old: Prices | None, *, where: str) -> Prices | None:
    """Return the new file: the new prices, and the old ones of Regions that were not requested.

    None if there are no new prices: an empty file is never written. The file's date is that of its newest price.
    """
    if not fetched.rows:
        return None
    asked = {region for region, _ in fetched.rows}
    kept = {key: price for key, price in (old.rows if old else {}).items() if key[0] not in asked}
    rows = {**kept, **fetched.rows}
    sources = {SOURCE: "AWS Pricing API, GetProducts; the day is that on which AWS published the list"}
    used = {price.source for price in kept.values()}
    if old:
        sources = {**{name: text for name, text in old.sources.items() if name in used}, **sources}
    return Prices(
        as_of=max(price.as_of for price in rows.values() if price.as_of is not None),
        sources=sources,
        rows=rows,
        where=where,
    )


def differences(old: Prices, new: Prices) -> list[str]:
    """Return lines on the differences between the Regions of ``new`` and the earlier prices."""
    lines = []
    regions = {region for region, _ in new.rows}
    for key in sorted({*new.rows, *(key for key in old.rows if key[0] in regions)}):
        before, after = old.rows.get(key), new.rows.get(key)
        what = f"{key[0]}: {thing(key[1])}"
        if before is None and after is not None:
            lines.append(f"{what}: new, {after.usd:f} per {after.unit}")
        elif after is None and before is not None:
            lines.append(f"{what}: removed, was {before.usd:f} per {before.unit}")
        elif before is not None and after is not None and before.usd != after.usd:
            lines.append(f"{what}: {before.usd:f} -> {after.usd:f} per {after.unit}")
    return lines


def _ask(pages: Pages, question: _Question, region: str) -> tuple[dict[str, Price], list[str]]:
    filters = [*question.filters, *(() if question.is_global else (("regionCode", region),))]
    products = pages(
        "pricing",
        "get_products",
        "PriceList",
        ServiceCode=question.service,
        FormatVersion="aws_v1",
        Filters=[{"Type": "TERM_MATCH", "Field": name, "Value": value} for name, value in filters],
    )
    found: dict[str, list[Price]] = {}
    problems: list[str] = []
    for raw in products:
        product = _product(raw)
        if product is None:
            problems.append(f"{question.service} in {region}: a product that cannot be read was omitted")
            continue
        for rule in question.rules:
            price = _price(product, rule, region)
            if isinstance(price, Price):
                found.setdefault(price.sku, []).append(price)
            elif price:
                problems.append(f"{question.service} in {region}: {price}")
            if price is not None:
                break
    chosen, ambiguous = _chosen(found)
    return chosen, [*problems, *(f"{question.service} in {region}: {each}" for each in ambiguous)]


def _chosen(found: Mapping[str, Sequence[Price]]) -> tuple[dict[str, Price], list[str]]:
    """Return the one price of each sku; two prices for one item are none."""
    chosen: dict[str, Price] = {}
    ambiguous = []
    for sku, prices in found.items():
        amounts = sorted({price.usd for price in prices})
        if len(amounts) > 1:
            several = ", ".join(f"{amount:f}" for amount in amounts)
            ambiguous.append(f"{thing(sku)} has {len(amounts)} prices, {several}; none was used")
            continue
        chosen[sku] = max(prices, key=lambda price: price.as_of or date.min)
    return chosen, ambiguous


def _product(raw: Any) -> dict[str, Any] | None:
    """Read one item of a PriceList: JSON text, or the object that a client has made of it."""
    if isinstance(raw, str):
        try:
            raw = json.loads(raw)
        except (ValueError, RecursionError):
            return None
    return raw if isinstance(raw, dict) and isinstance(_at(raw, "product", "attributes"), dict) else None


def _price(product: Mapping[str, Any], rule: _Rule, region: str) -> Price | str | None:
    """Return the price of a product, a sentence if it matches the rule but is not valid, None if it does not match."""
    attributes = product["product"]["attributes"]
    usage = attributes.get("usagetype")
    matched = rule.pattern.fullmatch(usage) if isinstance(usage, str) else None
    if matched is None or any(attributes.get(name) != value for name, value in rule.having.items()):
        return None
    sku = rule.sku(matched)
    unit = unit_of(sku)
    if unit is None:
        return f"{usage} has no name here"
    dimensions = list(_dimensions(product))
    usd, day = _first(dimensions), _day(product.get("publicationDate"))
    doubt = _doubt(attributes, dimensions, rule, region=region, unit=unit)
    if doubt or usd is None or day is None:
        return f"{usage} {doubt or ('has no price in US dollars' if usd is None else 'has no date')}"
    return Price(region=region, sku=sku, usd=usd, unit=unit, as_of=day, source=SOURCE)


def _doubt(
    attributes: Mapping[str, Any], dimensions: Sequence[Mapping[str, Any]], rule: _Rule, *, region: str, unit: str
) -> str:
    """Return why a product does not match its request, empty if it does."""
    if region != ANY and attributes.get("regionCode", region) != region:
        return f"is of region {attributes['regionCode']}"
    if not dimensions:
        return "has no on-demand price"
    units = sorted({str(each.get("unit")) for each in dimensions})
    if any(each.lower() not in rule.units for each in units):
        return f"is sold by {', '.join(units)}, not by {unit}"
    return ""


def _dimensions(product: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    terms = _at(product, "terms", "OnDemand")
    for term in terms.values() if isinstance(terms, dict) else ():
        dimensions = _at(term, "priceDimensions")
        for dimension in dimensions.values() if isinstance(dimensions, dict) else ():
            if isinstance(dimension, dict):
                yield dimension


def _first(dimensions: Iterable[Mapping[str, Any]]) -> Decimal | None:
    """Return the price of the first tier that costs anything: a free tier belongs to the account, not the
    environment."""
    tiers = []
    for each in dimensions:
        begin, usd = amount_of(each.get("beginRange", "0")), amount_of(_at(each, "pricePerUnit", "USD"))
        if begin is None or usd is None:
            return None
        tiers.append((begin, usd.normalize()))
    return next((usd for _, usd in sorted(tiers) if usd > 0), None)


def _day(value: object) -> date | None:
    if not isinstance(value, str):
        return None
    try:
        return date.fromisoformat(value[:10])
    except ValueError:
        return None


def _at(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value
