"""What AWS charges for each resource of a template in a month, and which parts have no known price."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from hyperpod_cdk.catalog import prices as catalog
from hyperpod_cdk.catalog.prices import Kind, Prices
from hyperpod_cdk.review.figures import quantities
from hyperpod_cdk.review.figures.charge_lines import Charge, Lines, at, is_accelerated_type, name_of, thing
from hyperpod_cdk.review.figures.group_charges import of_group, shared_storage
from hyperpod_cdk.review.figures.type_charges import MACHINES, READERS, by_hour
from hyperpod_cdk.review.nouns import noun
from hyperpod_cdk.templates.assembly import Assembly, Resource
from hyperpod_cdk.templates.groups import (
    CLUSTER,
    InstanceGroup,
    exists,
    instance_groups,
    unknown_condition,
    whole_number,
)
from hyperpod_cdk.templates.values import resolved_properties

KINDS: Final[tuple[Kind, ...]] = (
    "nodes",
    "volumes",
    "storage",
    "network",
    "control plane",
    "logs",
    "other",
)
"""The order of the lines."""

_READ_ELSEWHERE: Final = frozenset({"AWS::SageMaker::Cluster", "AWS::EKS::Addon"})


class Charged(Lines):
    """One assembly, with the prices of its Region: the charges for everything in it that costs money."""

    def __init__(self, assembly: Assembly, prices: Prices) -> None:
        super().__init__(assembly, prices)
        self.groups: list[InstanceGroup] = [
            group for group in instance_groups(assembly) if exists(assembly, group.cluster) is not False
        ]

    def items(self) -> Iterator[Charge]:
        """Yield everything that costs money, in the order of the templates."""
        by_use: Counter[tuple[str, Kind, str]] = Counter()
        in_doubt: Counter[str] = Counter()
        groups: dict[tuple[str, str], list[InstanceGroup]] = {}
        for group in self.groups:
            groups.setdefault((group.cluster.stack, group.cluster.logical_id), []).append(group)
        for resource in self.assembly.resources():
            if exists(self.assembly, resource) is False:
                continue
            condition = unknown_condition(self.assembly, resource)
            for item in self._of(resource, groups, by_use, in_doubt):
                yield item if condition is None else _conditional(item, condition)
        for (name, kind, what), count in by_use.items():
            yield Charge(
                key=("by use", name, what),
                is_of_type=True,
                resource=name,
                kind=kind,
                what=f"{count}, charged for {what}",
                unit="by use",
                monthly=None,
                unknown=f"{name} ({count}): charged for {what}",
            )
        for name, count in in_doubt.items():
            yield Charge(
                key=("in doubt", name),
                is_of_type=True,
                resource=name,
                kind="other",
                what=f"{count}, unknown whether it costs money",
                unit="",
                monthly=None,
                unknown=f"{name} ({count}): unknown whether it costs money",
                count=count,
                sold=name,
                missing="unknown whether it costs money",
            )
        yield from self._sizes()

    def _sizes(self) -> Iterator[Charge]:
        """Yield every size of any type that is paid for, and that no other line counts."""
        for resource in self.assembly.resources():
            if exists(self.assembly, resource) is False:
                continue
            condition = unknown_condition(self.assembly, resource)
            stated = resolved_properties(self.assembly, resource)
            for each in quantities.of(resource.type, stated):
                item = Charge(
                    key=(resource.stack, resource.logical_id, "size", each.path, each.what),
                    resource=name_of(resource),
                    kind=each.kind,
                    what=f"{'?' if each.number is None else f'{each.number:f}'} {each.what}",
                    unit="",
                    monthly=None,
                    unknown=f"{name_of(resource)}: the price of its {each.path} is unknown here",
                    count=each.number,
                    sold=f"{each.what} of {noun(resource.type)} {resource.name}",
                    properties=() if each.path.endswith("machines") else (each.path.rpartition(".")[2],),
                    is_accelerated=each.kind == "nodes" and is_accelerated_type(each.what),
                    missing="not one of the prices that are recorded here",
                )
                yield item if condition is None else _conditional(item, condition)

    def _of(
        self,
        resource: Resource,
        groups: Mapping[tuple[str, str], list[InstanceGroup]],
        by_use: Counter[tuple[str, Kind, str]],
        in_doubt: Counter[str],
    ) -> Iterator[Charge]:
        for kind, what in self._used(resource):
            by_use[resource.type, kind, what] += 1
        for group in groups.get((resource.stack, resource.logical_id), ()):
            yield from of_group(self, group)
        if resource.type == CLUSTER:
            yield from shared_storage(self, resource)
        reader = READERS.get(resource.type)
        if reader is not None:
            yield from reader(self, resource)
        elif resource.type in MACHINES:
            yield by_hour(self, resource, "nodes")
        elif resource.type not in _READ_ELSEWHERE:
            billing = catalog.billing_of(resource.type)
            if billing is None:
                in_doubt[resource.type] += 1
            elif billing.billing == "by hour":
                yield by_hour(self, resource, billing.kind)

    def _used(self, resource: Resource) -> Iterator[tuple[Kind, str]]:
        """Yield the cost of a resource by use, also in addition to its cost by the hour."""
        billing = catalog.billing_of(resource.type)
        if billing is not None and billing.billing == "by use":
            yield billing.kind, billing.what
        match resource.type:
            case "AWS::EC2::NatGateway":
                yield "network", "the transferred data"
            case "AWS::EC2::VPCEndpoint":
                if self.get(resource, "VpcEndpointType") == "Interface":
                    yield "network", "the transferred data"
            case "AWS::EKS::Addon":
                use = catalog.by_use_addon(str(self.get(resource, "AddonName")))
                if use:
                    yield "other", use
            case "AWS::EKS::Cluster":
                if at(self.get(resource, "ComputeConfig"), "Enabled") is True:
                    yield "nodes", "the nodes of Auto Mode"
            case "AWS::FSx::FileSystem":
                if whole_number(at(self.get(resource, "LustreConfiguration"), "AutomaticBackupRetentionDays")):
                    yield "storage", "the backups that are kept"
                if self.get(resource, "StorageType") == "INTELLIGENT_TIERING":
                    yield "storage", "the stored and requested data"
            case _:
                pass


def _conditional(item: Charge, condition: str) -> Charge:
    """Return the charge for a resource that may not exist: its number is what there is if the condition is true."""
    unknown = f"{item.resource}: created only if condition {condition} is true, which the template does not show"
    item = replace(item, monthly=None, unknown=unknown)
    if item.price is None and not item.sold:
        return item
    # asks for approval as one without a price
    whether = f"whether condition {condition} is true, which the template does not show"
    missing = f"{item.missing}; {whether}" if item.missing else whether
    return replace(item, sold=item.sold or thing(item.price.sku if item.price else ""), missing=missing)
