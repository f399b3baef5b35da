"""What an environment costs before and after: per resource and month, and while each training plan runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from hyperpod_cdk.catalog import kubernetes
from hyperpod_cdk.catalog import prices as catalog
from hyperpod_cdk.catalog.prices import HOURS_PER_MONTH, Prices
from hyperpod_cdk.catalog.sentences import plural
from hyperpod_cdk.review.model import Change, Cost, CostLine, Paid, Unpriced
from hyperpod_cdk.templates.assembly import Assembly

if TYPE_CHECKING:
    from hyperpod_cdk.config import LoadedEnvironment
from hyperpod_cdk.review.figures.charge_lines import REFRESH, Charge, cents
from hyperpod_cdk.review.figures.charges import KINDS, Charged
from hyperpod_cdk.review.figures.plan_fees import as_change, plan_fees, sides_of, unknown_fees


def cost(
    base: Assembly,
    head: Assembly,
    *,
    prices: Prices | None = None,
    base_environment: LoadedEnvironment | None = None,
    head_environment: LoadedEnvironment | None = None,
) -> Cost:
    """Return the cost of the account's resources before and after, in US dollars at list prices.

    ``prices`` are the project's (``catalog.prices.of_project``). Default: those of the package. The environments have
    the records of their training plans; without a record a plan's fee is unknown. Items without a known price, or with
    one by use, count as nothing and are named in ``unknown``, so that the total is a lower bound. Support dates of
    Kubernetes are judged on the catalog's date, because a report does not read the clock.
    """
    of = prices or catalog.shipped()
    sides = Charged(base, of), Charged(head, of)
    before, after = ({item.key: item for item in side.items()} for side in sides)
    keys = sorted({**after, **before}, key=lambda key: KINDS.index((after.get(key) or before[key]).kind))
    lines = tuple(_line(before.get(key), after.get(key)) for key in keys)
    monthly = (_total(line.monthly.before for line in lines), _total(line.monthly.after for line in lines))
    unknown = tuple(dict.fromkeys([*_unknown(after.values()), *_gone(before, after)]))
    plans = tuple(plan_fees(sides, monthly, base_environment, head_environment))
    return Cost(
        region=head.region or base.region,
        prices_as_of=of.as_of.isoformat(),
        lines=lines,
        monthly=as_change(*monthly),
        unpriced=(*_unpriced(before, after), *unknown_fees(plans, sides)),
        is_lower_bound=bool(unknown) or any(each.fee.after is None for each in plans),
        plans=plans,
        unknown=(
            *unknown,
            *(f"training plan {each.plan}: {each.note}" for each in plans if None in sides_of(each.fee)),
        ),
        notes=tuple(_notes(of, lines, sides)),
    )


def _line(before: Charge | None, after: Charge | None) -> CostLine:
    item = after or before
    assert item is not None  # noqa: S101 - every key is one of the two sides'
    changed = before is not None and after is not None and before.what != after.what
    return CostLine(
        resource=item.resource,
        of=_paid(item),
        kind=item.kind,
        what=f"{item.what}; before: {before.what}" if changed and before else item.what,
        unit_price=float(item.price.usd) if item.price else None,
        unit=item.unit,
        monthly=as_change(_side(before), _side(after)),
        quantity=_quantity([before], [after]),
        missing=item.missing,
        is_confirmed=item.is_confirmed,
        note=item.note,
    )


def _unpriced(before: Mapping[tuple[str, ...], Charge], after: Mapping[tuple[str, ...], Charge]) -> Iterator[Unpriced]:
    """Return what is on either side and has no known price, similar items together."""
    sides = before, after
    alike = {(item.sold, item.kind, item.counted_in): item for side in sides for item in side.values() if item.sold}
    for key, item in alike.items():
        of = {name for side in sides for name, each in side.items() if (each.sold, each.kind, each.counted_in) == key}
        # one that has a price on the other side is counted there, too: a condition is unknown on one side only
        counted = [
            [each for name, each in side.items() if name in of and each.sold in ("", item.sold)] for side in sides
        ]
        yield Unpriced(
            what=item.sold,
            kind=item.kind,
            unit=item.counted_in,
            quantity=_quantity(*counted),
            is_accelerated=item.is_accelerated and item.kind == "nodes",
            missing=item.missing,
            of=tuple(dict.fromkeys(_changed(*counted))),
        )


def _paid(item: Charge) -> Paid | None:
    if item.is_of_type:
        return None
    stack, logical_id, *_ = item.key
    return Paid(stack=stack, logical_id=logical_id, item=item.group, properties=item.properties)


def _changed(before: Sequence[Charge], after: Sequence[Charge]) -> Iterator[Paid]:
    """Return what is counted with different numbers on the two sides, or with an unknown one."""
    old, new = ({each.key: each for each in side} for side in (before, after))
    for key in dict.fromkeys((*old, *new)):
        was, will = old.get(key), new.get(key)
        item = will or was
        paid = None if item is None else _paid(item)
        if paid is not None and (was is None or will is None or was.count is None or was.count != will.count):
            yield paid


def _quantity(before: Sequence[Charge | None], after: Sequence[Charge | None]) -> Change:
    numbers = []
    for side in (before, after):
        counts = [Decimal(0) if item is None else item.count for item in side]
        numbers.append(
            None if None in counts else sum((Decimal(each) for each in counts if each is not None), Decimal(0))
        )
    return as_change(*numbers)


def _side(item: Charge | None) -> Decimal | None:
    return Decimal(0) if item is None else None if item.monthly is None else cents(item.monthly)


def _total(amounts: Iterable[float | None]) -> Decimal:
    """Add known amounts; each line is rounded to whole cents already, so that the lines add up to the total."""
    return sum((cents(Decimal(str(amount))) for amount in amounts if amount is not None), Decimal(0))


def _unknown(items: Iterable[Charge]) -> Iterator[str]:
    return (item.unknown for item in items if item.unknown)


def _gone(before: Mapping[tuple[str, ...], Charge], after: Mapping[tuple[str, ...], Charge]) -> Iterator[str]:
    """Return the unknown items of the side before for which the side after has none."""
    for key, item in before.items():
        if item.unknown and not (key in after and after[key].unknown):
            yield f"before: {item.unknown}"


def _notes(prices: Prices, lines: Iterable[CostLine], sides: tuple[Charged, Charged]) -> Iterator[str]:
    yield (
        f"list prices of {prices.where or 'the price file'}, as of {prices.as_of}: on demand, before taxes, discounts, "
        f"savings plans and free tiers; a month has {HOURS_PER_MONTH} hours"
    )
    doubts = sum(not line.is_confirmed for line in lines)
    if doubts:
        yield (
            f"{doubts} {plural(doubts, 'line')} with a price that is not confirmed: 'hyperpod-cdk prices "
            f"show' shows why; {REFRESH}"
        )
    if any(side.groups for side in sides):
        yield "root volumes of nodes are not counted: it is not documented whether HyperPod charges for them"
    yield from _dearer(prices, sides[1])


def _dearer(prices: Prices, side: Charged) -> Iterator[str]:
    """Return a note on when a cluster starts to cost more, unless it is upgraded."""
    for each in side.versions:
        price = prices.find(each.region, "eks.extended_support")
        more = f"{cents(price.monthly)} US dollars a month more" if price else "more, at an unknown price"
        on = "on an unknown day" if each.ends is None else f"on {each.ends}"
        what = f"EKS upgrades it {on}" if each.is_upgraded else f"costs {more} from {each.ends}"
        ends = f"when standard support of {each.version} ends (dates as of {kubernetes.AS_OF})"
        yield f"{each.cluster}: {what}, {ends}"
