"""What EC2 takes for address blocks of a VPC, and where EKS places no control plane."""

from __future__ import annotations

from ipaddress import IPv4Network

BLOCK_PREFIXES = range(16, 29)
"""VPC user guide, "VPC CIDR blocks": between a /28 and a /16."""

_RFC_1918 = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")
_OF_AWS = ("198.19.0.0/16",)
_BESIDE_172 = ("172.31.0.0/16",)

ZONES_WITHOUT_CONTROL_PLANE = frozenset({"cac1-az3", "use1-az3", "usw1-az2"})
"""EKS user guide, "Amazon EKS VPC and subnet requirements and considerations"."""


def is_block_size(block: str) -> bool:
    """Return whether a block is one that a VPC or a subnet may have."""
    return IPv4Network(block, strict=False).prefixlen in BLOCK_PREFIXES


def restricted_beside(primary: str) -> tuple[str, ...]:
    """Return the ranges of which a VPC gets no further block, by the range of its first one.

    VPC user guide, "IPv4 CIDR block association restrictions".
    """
    first = IPv4Network(primary)
    home = next((each for each in (*_RFC_1918, *_OF_AWS) if first.subnet_of(IPv4Network(each))), None)
    others = tuple(each for each in _RFC_1918 if each != home)
    if home == "172.16.0.0/12":
        return (*others, *_BESIDE_172, *_OF_AWS)
    return others if home in _OF_AWS else (*others, *_OF_AWS)
