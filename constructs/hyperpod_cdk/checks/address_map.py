"""Draws the address blocks of an environment for a terminal: a bar for each block, a legend with the numbers."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network
from string import ascii_uppercase
from typing import Any

from hyperpod_cdk.catalog import network as catalog
from hyperpod_cdk.catalog.sentences import plural
from hyperpod_cdk.config.addresses import AddressBudget, AddressNeed, Kind

WIDTH = 100
"""No line is longer."""

_LONGEST_BAR = 48
_GROUPS_DRAWN = 8
_LONGEST_NAME = 22
_LONGEST_TYPE = 22


@dataclass(frozen=True, kw_only=True)
class Subnet:
    """A subnet to draw. ``in_use`` counts the addresses that something else uses, without AWS's own."""

    budget: AddressBudget
    cidr: str
    in_use: int = 0
    zone: str = ""

    @property
    def available(self) -> int:
        """Addresses for what the budget needs."""
        return catalog.usable_addresses(self.cidr) - self.in_use

    @property
    def label(self) -> str:
        """What the subnet is for, and its zone."""
        return f"{self.budget.role} {self.zone or self.budget.availability_zone_id}".rstrip()


@dataclass(frozen=True, kw_only=True)
class _Glyphs:
    """The characters of a drawing; each is one column wide."""

    left: str
    right: str
    nodes: str
    spare: str
    reserved: str
    in_use: str
    free: str
    too_many: str
    other: str
    file_system: str
    eks: str
    kubectl: str
    nat_gateway: str
    endpoint: str
    cut: str


_BLOCKS = _Glyphs(
    left="▕",
    right="▏",
    nodes="█",
    spare="▓",
    reserved="▪",
    in_use="▒",
    free="░",
    too_many="×",  # noqa: RUF001 - a cross on purpose
    other="+",
    file_system="◆",
    eks="▲",
    kubectl="▸",
    nat_gateway="●",
    endpoint="◇",
    cut="…",
)
_ASCII = _Glyphs(
    left="[",
    right="]",
    nodes="=",
    spare="-",
    reserved="#",
    in_use="%",
    free=".",
    too_many="x",
    other="+",
    file_system="*",
    eks="^",
    kubectl=">",
    nat_gateway="@",
    endpoint="o",
    cut="~",
)


@dataclass(frozen=True, kw_only=True)
class _Segment:
    """A run of addresses: ``mark`` is its first character, ``fill`` the others."""

    addresses: int
    mark: str
    fill: str


def draw(subnets: Sequence[Subnet], *, vpc_cidr: str = "", blocks: bool | None = None) -> str:
    """Draw subnets, those of ``vpc_cidr`` below a row of that block, with a legend; no line is longer than WIDTH.

    A bar begins with the addresses that AWS reserves and ends with the free ones; each segment has at least one
    character, so that small ones are drawn too large and the legend has the numbers. What goes beyond the block is
    crossed out. ``blocks`` False uses ASCII only. Default: block characters if standard output supports them.
    """
    glyphs = _BLOCKS if (_takes_blocks() if blocks is None else blocks) else _ASCII
    inside = [subnet for subnet in subnets if vpc_cidr and _within(subnet.cidr, vpc_cidr)]
    outside = [subnet for subnet in subnets if subnet not in inside]
    letters = _letters(subnets)
    indent = "  " if inside else ""
    places = [*(f"{indent}{subnet.cidr}" for subnet in inside), *(subnet.cidr for subnet in outside)]
    labels = [subnet.label for subnet in subnets]
    numbers = [_number(subnet) for subnet in subnets]
    place_width = max(map(len, [*places, vpc_cidr]))
    label_width = max(map(len, [*labels, "VPC" if inside else ""]))
    number_width = max(map(len, numbers))
    bar_width = min(_LONGEST_BAR, WIDTH - place_width - label_width - number_width - len("  ") * 3 - 2)

    def row(place: str, label: str, bar: str, number: str) -> str:
        drawn = f"{glyphs.left}{bar}{glyphs.right}"
        return f"{place:<{place_width}}  {label:<{label_width}}  {drawn}  {number:>{number_width}}"

    lines = []
    if inside:
        taken = f"{len(inside)} subnets"
        lines.append(row(vpc_cidr, "VPC", _vpc_bar(vpc_cidr, inside, bar_width, glyphs), taken))
    for place, subnet in zip(places, [*inside, *outside], strict=True):
        bar = _bar(list(_segments(subnet, letters, glyphs)), subnet, bar_width, glyphs)
        lines.append(row(place, subnet.label, bar, _number(subnet)))
    return "\n".join([*lines, "", *_legend(subnets, letters, glyphs, has_vpc=bool(inside))])


def data(subnets: Iterable[Subnet]) -> dict[str, Any]:
    """Return the numbers of the drawing as plain data: addresses by subnet and need."""
    return {
        "subnets": [
            {
                "role": subnet.budget.role,
                "availability_zone_id": subnet.zone or subnet.budget.availability_zone_id,
                "cidr": subnet.cidr,
                **({"subnet_id": subnet.budget.subnet_id} if subnet.budget.subnet_id else {}),
                "reserved": catalog.AWS_RESERVED_PER_SUBNET,
                "in_use": subnet.in_use,
                "available": subnet.available,
                "needed": subnet.budget.needed,
                "free": subnet.available - subnet.budget.needed,
                "needs": [_need_data(need) for need in subnet.budget.needs],
            }
            for subnet in subnets
        ]
    }


def _need_data(need: AddressNeed) -> dict[str, Any]:
    named = {"name": need.name} if need.name else {}
    typed = {"instance_type": need.instance_type, "is_estimate": need.is_estimate} if need.instance_type else {}
    return {"kind": need.kind, **named, **typed, "count": need.count, "each": need.each, "total": need.total}


def _takes_blocks() -> bool:
    try:
        "".join(vars(_BLOCKS).values()).encode(sys.stdout.encoding or "ascii")
    except (LookupError, UnicodeEncodeError):
        return False
    return True


def _within(cidr: str, block: str) -> bool:
    return IPv4Network(cidr).subnet_of(IPv4Network(block))


def _number(subnet: Subnet) -> str:
    over = " !" if subnet.budget.needed > subnet.available else ""
    return f"{subnet.budget.needed:,} of {subnet.available:,}{over}"


def _letters(subnets: Sequence[Subnet]) -> Mapping[str, str]:
    """Return the path of each group that is drawn separately -> its letter, in the order of the file."""
    with_nodes = sum(any(need.kind == "nodes" for need in subnet.budget.needs) for subnet in subnets)
    most = min(_GROUPS_DRAWN, len(ascii_uppercase) // max(1, with_nodes))
    drawn: set[str] = set()
    for subnet in subnets:
        groups = [need for need in subnet.budget.needs if need.kind == "nodes"]
        drawn.update(need.path for need in sorted(groups, key=lambda need: -need.total)[:most])
    in_order = [need.path for subnet in subnets for need in subnet.budget.needs if need.path in drawn]
    return dict(zip(dict.fromkeys(in_order), ascii_uppercase, strict=False))


def _segments(subnet: Subnet, letters: Mapping[str, str], glyphs: _Glyphs) -> Iterator[_Segment]:
    yield _Segment(addresses=catalog.AWS_RESERVED_PER_SUBNET, mark=glyphs.reserved, fill=glyphs.reserved)
    yield _Segment(addresses=subnet.in_use, mark=glyphs.in_use, fill=glyphs.in_use)
    others = 0
    for need in subnet.budget.needs:
        if need.kind in {"nodes", "spare"}:
            letter = letters.get(need.path)
            if letter is None:
                others += need.total
            elif need.kind == "nodes":
                yield _Segment(addresses=need.total, mark=letter, fill=glyphs.nodes)
            else:
                yield _Segment(addresses=need.total, mark=letter.lower(), fill=glyphs.spare)
    yield _Segment(addresses=others, mark=glyphs.other, fill=glyphs.nodes)
    for kind, glyph in _single(glyphs).items():
        total = sum(need.total for need in subnet.budget.needs if need.kind == kind)
        yield _Segment(addresses=total, mark=glyph, fill=glyph)
    yield _Segment(addresses=max(0, subnet.available - subnet.budget.needed), mark=glyphs.free, fill=glyphs.free)


def _single(glyphs: _Glyphs) -> Mapping[Kind, str]:
    return {
        "file system": glyphs.file_system,
        "EKS": glyphs.eks,
        "kubectl": glyphs.kubectl,
        "NAT gateway": glyphs.nat_gateway,
        "endpoint": glyphs.endpoint,
    }


def _bar(segments: Sequence[_Segment], subnet: Subnet, width: int, glyphs: _Glyphs) -> str:
    shown = [segment for segment in segments if segment.addresses > 0]
    cells = _cells([segment.addresses for segment in shown], width)
    size = IPv4Network(subnet.cidr).num_addresses
    total = sum(segment.addresses for segment in shown)
    end = max(1, width * size // total)
    bar = ""
    for segment, count in zip(shown, cells, strict=True):
        inside = max(0, min(count, end - len(bar)) - 1)
        bar += segment.mark + segment.fill * inside + glyphs.too_many * (count - 1 - inside)
    return bar


def _cells(amounts: Sequence[int], width: int) -> list[int]:
    """Share ``width`` characters among amounts: one for each, the others by size, left-overs to the largest first."""
    spare = width - len(amounts)
    total = sum(amounts)
    exact = [amount * spare / total for amount in amounts]
    cells = [1 + int(part) for part in exact]
    by_remainder = sorted(range(len(amounts)), key=lambda index: (int(exact[index]) - exact[index], -amounts[index]))
    for index in by_remainder[: width - sum(cells)]:
        cells[index] += 1
    return cells


def _vpc_bar(vpc_cidr: str, subnets: Sequence[Subnet], width: int, glyphs: _Glyphs) -> str:
    """Mark each subnet at its position in the block; subnets of one character are moved apart."""
    block = IPv4Network(vpc_cidr)
    bar = [glyphs.free] * width
    placed = sorted(subnets, key=lambda subnet: IPv4Network(subnet.cidr).network_address)
    middle = block.network_address + block.num_addresses // 2
    lower = [subnet for subnet in placed if IPv4Network(subnet.cidr).network_address < middle]
    upper = [subnet for subnet in placed if subnet not in lower]
    end = 0
    for subnet in lower:
        first, last = _span(subnet.cidr, block, width)
        first = max(first, end)
        end = max(last, first + 1)
        bar[first:end] = _mark(subnet, glyphs) * (end - first)
    end = width
    for subnet in reversed(upper):
        first, last = _span(subnet.cidr, block, width)
        last = min(last, end)
        end = min(first, last - 1)
        bar[end:last] = _mark(subnet, glyphs) * (last - end)
    return "".join(bar)


def _span(cidr: str, block: IPv4Network, width: int) -> tuple[int, int]:
    network = IPv4Network(cidr)
    offset = int(network.network_address) - int(block.network_address)
    first = offset * width // block.num_addresses
    last = -(-(offset + network.num_addresses) * width // block.num_addresses)
    return first, last


def _mark(subnet: Subnet, glyphs: _Glyphs) -> str:
    return {"public": glyphs.nat_gateway, "endpoints": glyphs.endpoint}.get(subnet.budget.role, glyphs.eks)


def _legend(subnets: Sequence[Subnet], letters: Mapping[str, str], glyphs: _Glyphs, *, has_vpc: bool) -> list[str]:
    rows = [*_group_rows(subnets, letters, glyphs), *_file_system_rows(subnets, glyphs)]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(5)]
    lines = [
        (
            f"{row[0]:<{widths[0]}} {row[1]:<{widths[1]}}  {row[2]:<{widths[2]}}  {row[3]:<{widths[3]}}"
            f"  {row[4]:>{widths[4]}}"
        ).rstrip()
        for row in rows
    ]
    reserved = f"{glyphs.reserved} reserved by AWS, {catalog.AWS_RESERVED_PER_SUBNET} each"
    words = [*_single_words(subnets, glyphs), reserved]
    if any(subnet.in_use for subnet in subnets):
        words.append(f"{glyphs.in_use} in use already")
    words.append(f"{glyphs.free} free")
    if any(subnet.budget.needed > subnet.available for subnet in subnets):
        words.append(f"{glyphs.too_many} beyond the block (!)")
    if any(need.is_estimate for subnet in subnets for need in subnet.budget.needs):
        words.append("~ an estimate")
    if has_vpc:
        words.append("VPC: where its subnets are in it")
    return [*lines, *_wrapped(words)]


def _wrapped(words: Sequence[str]) -> Iterator[str]:
    line = ""
    for word in words:
        if line and len(line) + len(word) + 3 > WIDTH:
            yield line
            line = word
        else:
            line = f"{line}   {word}" if line else word
    yield line


_Row = tuple[str, str, str, str, str]


def _group_rows(subnets: Sequence[Subnet], letters: Mapping[str, str], glyphs: _Glyphs) -> Iterator[_Row]:
    for subnet in subnets:
        spares = {need.path: need for need in subnet.budget.needs if need.kind == "spare"}
        others: list[AddressNeed] = []
        for need in subnet.budget.needs:
            if need.kind != "nodes":
                continue
            both = [need, *([spares[need.path]] if need.path in spares else [])]
            letter = letters.get(need.path)
            if letter is None:
                others += both
                continue
            nodes = f"({need.count:,} + {both[1].count} spare)" if len(both) > 1 else f"{need.count:,}"
            yield (
                letter + letter.lower() * (len(both) - 1),
                _cut(need.name, glyphs),
                f"{_cut(need.instance_type, glyphs, _LONGEST_TYPE)} in {_zone(subnet)}",
                f"{nodes} x {'~' if need.is_estimate else ''}{need.each:,}",
                f"{sum(each.total for each in both):,}",
            )
        if others:
            count = sum(need.kind == "nodes" for need in others)
            total = sum(need.total for need in others)
            yield (
                glyphs.other,
                f"{count} other {plural(count, 'group')}",
                f"in {_zone(subnet)}",
                "",
                f"{total:,}",
            )


def _file_system_rows(subnets: Sequence[Subnet], glyphs: _Glyphs) -> Iterator[_Row]:
    for subnet in subnets:
        for need in subnet.budget.needs:
            if need.kind == "file system":
                name = _cut(f"file system {need.name}", glyphs)
                yield glyphs.file_system, name, f"in {_zone(subnet)}", f"{need.count} servers", f"{need.total:,}"


def _single_words(subnets: Sequence[Subnet], glyphs: _Glyphs) -> Iterator[str]:
    kinds = {need.kind: need.total for subnet in subnets for need in subnet.budget.needs}
    for kind, words in _WORDS.items():
        if kind in kinds:
            yield f"{_single(glyphs)[kind]} {words}, {kinds[kind]} each"


_WORDS: Mapping[Kind, str] = {
    "EKS": "EKS control plane",
    "kubectl": "kubectl function",
    "NAT gateway": "NAT gateway",
    "endpoint": "interface endpoints",
}


def _zone(subnet: Subnet) -> str:
    return subnet.zone or subnet.budget.availability_zone_id


def _cut(name: str, glyphs: _Glyphs, longest: int = _LONGEST_NAME) -> str:
    """Shorten a long name in its middle: beginning and end distinguish names."""
    half = longest // 2
    return name if len(name) <= longest else f"{name[: longest - half - 1]}{glyphs.cut}{name[-half:]}"
