"""A line about the charge for a resource: its price, or the reason why it has none."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Final

from hyperpod_cdk.catalog import instance_types
from hyperpod_cdk.catalog import prices as catalog
from hyperpod_cdk.catalog.prices import Kind, Price, Prices
from hyperpod_cdk.review.nouns import noun
from hyperpod_cdk.templates.assembly import Assembly, Resource
from hyperpod_cdk.templates.values import resolve

REFRESH: Final = "run 'hyperpod-cdk prices refresh'"

_UNITS: Final = {
    "GB-month": "GB",
    "MBps-month": "MB/s",
    "IOPS-month": "IOPS",
    "instance-hour": "instance",
}
"""The counted unit, if it is not a single item."""
_THINGS: Final[Mapping[str, str]] = {
    "node_volume": "additional EBS volume of HyperPod nodes",
    "ebs.gp3": "gp3 volume",
    "eks.cluster": "EKS cluster",
    "eks.extended_support": "EKS extended support",
    "nat_gateway": "NAT gateway",
    "public_ipv4": "public IPv4 address",
    "interface_endpoint": "interface endpoint",
    "lustre.scratch": "FSx for Lustre, scratch",
    "lustre.read_cache": "FSx for Lustre, SSD read cache",
    "lustre.metadata_iops": "FSx for Lustre, metadata IOPS",
    "lustre.tiering.throughput": "FSx for Lustre, throughput of Intelligent-Tiering",
    "kms.key": "KMS key",
    "cloudwatch.alarm": "CloudWatch alarm",
    "cloudwatch.alarm.high_resolution": "CloudWatch alarm of high resolution",
    "cloudwatch.dashboard": "CloudWatch dashboard",
}


@dataclass(frozen=True, kw_only=True)
class Charge:
    """One side of a line. ``monthly`` is None if it is unknown; ``unknown`` then gives the reason."""

    key: tuple[str, ...]
    is_of_type: bool = False
    """Whether it counts all resources of a type, named by the type, and belongs to none of them."""
    resource: str
    kind: Kind
    what: str
    unit: str
    monthly: Decimal | None
    group: str = ""
    """The instance group of the resource that it is about; empty if it is about the whole resource."""
    price: Price | None = None
    is_confirmed: bool = True
    note: str = ""
    unknown: str = ""
    count: Decimal | int | None = None
    """How many are paid, None if that is unknown."""
    sold: str = ""
    """The counted unit if it has no known price; empty if it has one, or if nothing is counted."""
    counted_in: str = ""
    is_accelerated: bool = False
    missing: str = ""
    properties: tuple[str, ...] = ()
    """The properties that decide ``count`` and what is sold, by name; empty if they are not known one by one."""


@dataclass(frozen=True, kw_only=True)
class Supported:
    """A cluster whose Kubernetes version has standard support, until the day ``ends``, None if that is unknown.

    A version costs more only in extended support, whatever the cluster's upgrade policy is (EKS user guide, "Add
    flexibility to plan Kubernetes version upgrades by enabling EKS extended support"); with the policy ``STANDARD`` it
    is upgraded before (``is_upgraded``).
    """

    cluster: str
    region: str
    version: str
    ends: date | None
    is_upgraded: bool


class Lines:
    """One assembly with the prices of its region: makes the lines of what costs money in it.

    ``versions`` are the clusters whose version of Kubernetes has standard support, each when its lines are made.
    """

    def __init__(self, assembly: Assembly, prices: Prices) -> None:
        self.assembly = assembly
        self.prices = prices
        self.versions: list[Supported] = []

    def get(self, resource: Resource, name: str) -> Any:
        """Return a property, resolved."""
        value = resource.properties.get(name)
        return resolve(self.assembly, resource.stack, value) if isinstance(value, (dict, list)) else value

    def region(self, stack: str) -> str:
        """Return the Region of a stack, that of the assembly where the stack names none."""
        return self.assembly.by_name[stack].region or self.assembly.region

    def priced(
        self,
        resource: Resource,
        kind: Kind,
        sku: str,
        count: Decimal | int | None,
        what: str,
        *,
        part: str = "",
        group: str = "",
        note: str = "",
        why: str = "",
        properties: tuple[str, ...] = (),
    ) -> Charge:
        """Return the line of ``count`` units of a sku; a count of None is unknown, for the reason ``why``."""
        region = self.region(resource.stack)
        price = self.prices.find(region, sku)
        shown = name_of(resource, group)
        missing = ""
        if count is not None and count < 0:
            count, why = None, f"it is stated as {count}"
        if count is None:
            monthly, unknown = None, f"{shown}: {why}"
        elif count == 0:
            monthly, unknown = Decimal(0), ""
        elif price is None:
            monthly, unknown = None, self.no_price(sku, region)
        else:
            monthly, unknown = price.monthly * count, ""
        if price is None:
            missing = self.no_price(sku, region)
        unit = catalog.unit_of(sku) or ""
        notes = [note, price.remark(self.prices.as_of) if price and monthly else ""]
        return Charge(
            key=(resource.stack, resource.logical_id, part, sku, region),
            resource=shown,
            kind=kind,
            what=what,
            unit=unit,
            monthly=monthly,
            group=group,
            price=price,
            is_confirmed=not (price and monthly and price.unsure),
            note="; ".join(filter(None, notes)),
            unknown=unknown,
            count=count,
            sold=thing(sku) if monthly is None else "",
            counted_in=_UNITS.get(unit, ""),
            missing=missing or (f"{why}" if count is None else ""),
            properties=properties,
        )

    def no_price(self, sku: str, region: str) -> str:
        """Say that there is no price of a sku in a Region."""
        if not region:
            return f"{thing(sku)}: the templates name no Region, and prices differ between Regions"
        return f"{thing(sku)} in {region}: no price in the file of {self.prices.as_of}; {REFRESH}"

    def unpriced(
        self,
        resource: Resource,
        kind: Kind,
        what: str,
        why: str,
        *,
        part: str = "",
        count: int | None = 1,
        sold: str = "",
        counted_in: str = "",
        is_accelerated: bool = False,
        properties: tuple[str, ...] = (),
    ) -> Charge:
        """Return the line of something that has no price: ``count`` of what is ``sold``, by default one of its type."""
        return Charge(
            key=(resource.stack, resource.logical_id, part, "", ""),
            resource=name_of(resource),
            kind=kind,
            what=what,
            unit="",
            monthly=None,
            unknown=f"{name_of(resource)} ({resource.type}): {why}",
            count=count,
            sold=sold or f"{noun(resource.type)}{f' ({part})' if part else ''}",
            counted_in=counted_in,
            is_accelerated=is_accelerated,
            missing=why,
            properties=properties,
        )


def thing(sku: str) -> str:
    """Return the name of what is sold with a key of the price file: ``NAT gateway``, ``ml.p5.48xlarge``."""
    family, _, rest = sku.partition(".")
    if family == "node":
        return rest
    if sku.startswith("eks.provisioned."):
        return f"EKS Provisioned Control Plane, {sku.rpartition('.')[2]}"
    if sku.startswith(("lustre.ssd.", "lustre.hdd.")):
        _, storage, tier = sku.split(".")
        return f"FSx for Lustre, {storage.upper()} at {tier} MB/s per TiB"
    return _THINGS.get(sku, sku)


def is_accelerated_type(name: str) -> bool:
    """Whether an instance type has accelerators. One that is not in the catalog is judged by its family's name.

    Source of the families: docs.aws.amazon.com/ec2/latest/instancetypes/instance-type-names.html.
    """
    row = instance_types.get(name if name.startswith("ml.") else f"ml.{name}")
    if row is not None:
        return row.accelerator_count > 0
    return re.match(r"(ml\.)?(dl|f|g|gr|inf|p|trn|vt)\d", name) is not None


def at(value: Any, key: str) -> Any:
    """Return what stands under a key, None of what is no mapping."""
    return value.get(key) if isinstance(value, dict) else None


def name_of(resource: Resource, group: str = "") -> str:
    """Return the stack and the name of a resource, and of which of its groups."""
    return f"{resource.stack} / {resource.name}{f'[{group}]' if group else ''}"


def cents(amount: Decimal) -> Decimal:
    """Round an amount to whole cents."""
    return amount.quantize(Decimal("0.01"), rounding=ROUND_HALF_UP)
