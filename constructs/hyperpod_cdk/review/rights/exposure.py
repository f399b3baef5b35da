"""What any type says of accounts, addresses and public access outside of policies and security groups.

Policies, security groups, routes and clusters are read by what they mean (``statements``, ``reach``,
``cluster_access``). Every other type is read here by the words that all types share, so that no account, no address
block and no switch that opens something is added without a row.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from hyperpod_cdk.review.rights.reach import is_internet
from hyperpod_cdk.review.rights.statements import READ, looks_like_policy, text
from hyperpod_cdk.review.rights.views import TOKEN, Place, View, place_of
from hyperpod_cdk.templates.difference import ResourceChange

_READ_AS_NETWORK: Final = frozenset(
    {
        *("AWS::EC2::SecurityGroup", "AWS::EC2::SecurityGroupIngress", "AWS::EC2::SecurityGroupEgress"),
        *("AWS::EC2::Route", "AWS::EC2::NetworkAclEntry", "AWS::EKS::Cluster", "AWS::EC2::VPC", "AWS::EC2::Subnet"),
        *("AWS::EC2::VPCCidrBlock", "AWS::EC2::SubnetCidrBlock", "AWS::EC2::VPCPeeringConnection"),
    }
)
_READ_AS_ENTRIES: Final = frozenset(
    {
        "AWS::EC2::VPCPeeringConnection",
        "AWS::EKS::AccessEntry",
        "AWS::EKS::PodIdentityAssociation",
        "AWS::RAM::ResourceShare",
    }
)
_READ_AS_OPENINGS: Final = READ | {"AWS::Lambda::Url", "AWS::RAM::ResourceShare"}
_READ_ELSEWHERE: Final = READ | _READ_AS_ENTRIES
_ACCOUNT: Final = re.compile(r"\d{12}")
_ARN: Final = re.compile(r"arn:[\w-]+:[^:]*:[^:]*:(\d{12}):")
_OPENS: Final[dict[str, tuple[str, ...]]] = {
    "AcceptanceRequired": ("false",),
    "AllowedPrincipals": ("*",),
    "AssignPublicIp": ("ENABLED",),
    "AssociatePublicIpAddress": ("true",),
    "AuthType": ("NONE",),
    "AuthorizationType": ("NONE",),
    "BlockPublicSecurityGroupRules": ("false",),
    "DirectInternetAccess": ("Enabled",),
    "Principal": ("*",),
    "Principals": ("*",),
    "PubliclyAccessible": ("true",),
    "UserGroups": ("all",),
}
"""Properties, of whatever type, whose value opens something: an instance, a database, a function, an image."""
_REPLICATION: Final = ("ReplicationConfiguration", "Rules", "Destination", "Bucket")


class Exposure(NamedTuple):
    """One thing that is newly open or named, in words."""

    sentence: str
    place: Place
    is_world: bool
    is_grave: bool


def exposures(before: View, after: View, changes: Sequence[ResourceChange]) -> Iterator[Exposure]:
    """Give what resources newly say of other accounts, of address blocks, and of being public."""
    for change in changes:
        if change.after is None:
            continue
        was = list(_leaves(before.properties(change.before))) if change.before is not None else []
        old, old_values = set(was), {value for _, value in was}
        name, place, type_ = after.name(change.after), place_of(change.after), change.after.type
        for path, value in dict.fromkeys(_leaves(after.properties(change.after))):
            if (path, value) in old:
                continue
            where = ".".join(path)
            if path[-1] in _OPENS and value in _OPENS[path[-1]] and type_ not in _READ_AS_OPENINGS:
                yield Exposure(f"{name} is opened: {where} is {value}", place, is_world=True, is_grave=True)
            elif type_ == "AWS::EC2::SnapshotBlockPublicAccess" and value == "unblocked":
                yield Exposure(f"{name} no longer blocks public snapshots", place, is_world=True, is_grave=True)
            elif type_ == "AWS::S3::Bucket" and path[-4:] == _REPLICATION and not TOKEN.search(value):
                yield Exposure(
                    f"{name} is replicated to {value}, which no template holds", place, is_world=False, is_grave=True
                )
            elif value in old_values:
                continue
            elif (account := _account(after, value)) and type_ not in _READ_ELSEWHERE:
                whose = "another account" if after.account else "which the template does not tell from its own"
                yield Exposure(
                    f"{name} names account {account} ({whose}) in {where}", place, is_world=False, is_grave=True
                )
            elif _is_block(value) and type_ not in _READ_AS_NETWORK:
                is_world = is_internet(value)
                yield Exposure(f"{name} names the address block {value} in {where}", place, is_world, is_world)


def _leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Give every plain value with the keys that lead to it, but for policies, which are read by what they permit."""
    if isinstance(value, dict):
        if looks_like_policy(value):
            return
        for key, item in value.items():
            yield from _leaves(item, (*path, str(key)))
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item, path)
    elif path:
        yield path, text(value)


def _account(view: View, value: str) -> str:
    found = _ARN.match(value)
    account = found[1] if found else value if _ACCOUNT.fullmatch(value) else ""
    return account if account != view.account else ""


def _is_block(value: str) -> bool:
    if "/" not in value:
        return False
    try:
        ipaddress.ip_network(value, strict=False)
    except ValueError:
        return False
    return True
