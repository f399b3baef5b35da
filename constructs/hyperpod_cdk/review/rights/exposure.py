"""What any type says of accounts, addresses and public access outside of policies and security groups.

Policies, security groups, routes and clusters are read by what they mean (``statements``, ``reach``,
``cluster_access``). Every other type is read here by the words that all types share, so that no account, no address
block and no switch that opens something is added without a row.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final, NamedTuple

from hyperpod_cdk.review.rights import images
from hyperpod_cdk.review.rights.reach import is_internet
from hyperpod_cdk.review.rights.statements import READ, looks_like_policy, text
from hyperpod_cdk.review.rights.views import TOKEN, Place, View, place_of
from hyperpod_cdk.templates.assembly import Resource
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
_OPENS_IN: Final[dict[tuple[str, str], tuple[tuple[str, ...], str]]] = {
    ("AWS::S3::Bucket", "AllowedOrigins"): (("*",), "scripts of any site may read it (CORS)"),
    ("AWS::S3::Bucket", "IndexDocument"): ((), "it is a website"),
    ("AWS::S3::Bucket", "HostName"): ((), "it is a website"),
}
"""Properties of one type whose value opens it, any value where none is named, with what that means."""

_OUTSIDE: Final = ("http", "https", "email", "email-json", "sms")
"""Protocols by which a subscription of SNS sends what is published to somewhere outside of AWS."""

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
        for path, value in dict.fromkeys(_leaves(after.properties(change.after))):
            if (path, value) in old:
                continue
            found = _opening(after, change.after, path, value, was)
            if found is None and value not in old_values:
                found = _naming(after, change.after, path, value, old_values)
            if found is not None:
                yield found


def _opening(
    view: View, resource: Resource, path: tuple[str, ...], value: str, was: Sequence[tuple[tuple[str, ...], str]]
) -> Exposure | None:
    """Say what a value newly opens, wherever else it stood before."""
    name, place, type_ = view.name(resource), place_of(resource), resource.type
    if path[-1] in _OPENS and value in _OPENS[path[-1]] and type_ not in _READ_AS_OPENINGS:
        return Exposure(f"{name} is opened: {'.'.join(path)} is {value}", place, is_world=True, is_grave=True)
    if said := _opened(type_, path[-1], value, was):
        return Exposure(f"{name} is opened: {said}", place, is_world=True, is_grave=True)
    if type_ == "AWS::EC2::SnapshotBlockPublicAccess" and value == "unblocked":
        return Exposure(f"{name} no longer blocks public snapshots", place, is_world=True, is_grave=True)
    if type_ == "AWS::S3::Bucket" and path[-4:] == _REPLICATION and not TOKEN.search(value):
        said = f"{name} is replicated to {value}, which no template holds"
        return Exposure(said, place, is_world=False, is_grave=True)
    return None


def _naming(
    view: View, resource: Resource, path: tuple[str, ...], value: str, old_values: Collection[str]
) -> Exposure | None:
    """Say whom or what a value names that nothing of the resource named before."""
    name, place, type_, where = view.name(resource), place_of(resource), resource.type, ".".join(path)
    if type_ == "AWS::SNS::Subscription" and path == ("Endpoint",):
        protocol = text(view.properties(resource).get("Protocol"))
        if protocol in _OUTSIDE:
            said = f"{name} sends what is published to {value}, outside of AWS"
            return Exposure(said, place, is_world=False, is_grave=True)
    is_code = path[-1] in images.PROPERTIES and images.repository(value) not in map(images.repository, old_values)
    if is_code and (whose := images.publisher(value, view.account)):
        return Exposure(f"{name} runs the image {value} of {whose}", place, is_world=False, is_grave=True)
    if (account := _account(view, value)) and type_ not in _READ_ELSEWHERE:
        whose = "another account" if view.account else "which the template does not tell from its own"
        said = f"{name} names account {account} ({whose}) in {where}"
        return Exposure(said, place, is_world=False, is_grave=True)
    if _is_block(value) and type_ not in _READ_AS_NETWORK:
        is_world = is_internet(value)
        return Exposure(f"{name} names the address block {value} in {where}", place, is_world, is_world)
    return None


def _opened(type_: str, name: str, value: str, was: Sequence[tuple[tuple[str, ...], str]]) -> str:
    """Say what a value of a property opens of a type, empty for nothing; any value opens only what had none."""
    values, said = _OPENS_IN.get((type_, name), ((), ""))
    if not said or (values and value not in values):
        return ""
    return "" if not values and any(path[-1] == name for path, _ in was) else said


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
