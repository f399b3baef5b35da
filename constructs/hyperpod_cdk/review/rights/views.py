"""One side of a comparison in words that do not depend on the side: what is the same on both has the same text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from functools import cached_property
from typing import Any, Final

from hyperpod_cdk.review import nouns
from hyperpod_cdk.templates.assembly import Assembly, Resource
from hyperpod_cdk.templates.difference import ResourceChange
from hyperpod_cdk.templates.groups import exists
from hyperpod_cdk.templates.values import UNKNOWN_MARKS, Reference, Unknown, resolve, resolved_properties

Place = tuple[str, str]
"""A resource: the name of its stack, its logical ID."""

TOKEN: Final = re.compile(r"\$\{([^{}/$]+)/([^{}/.$]+)(?:\.([^{}/$]+))?\}")
"""A resource inside a text: ``${stack/LogicalId.Attribute}``, in the head's terms if it has the resource."""

_PARAMETER: Final = re.compile(r"\$\{[^{}/:!]+\}")
"""A parameter whose value no template shows."""

_UNKNOWN_STARTS: Final = tuple(mark for mark in UNKNOWN_MARKS if mark != "${")

_EMBEDDED = re.compile(r"\$\{([^{}/!]+)\}")
_PHYSICAL_NAMES: Final = {
    "AWS::IAM::Role": "RoleName",
    "AWS::IAM::User": "UserName",
    "AWS::IAM::Group": "GroupName",
    "AWS::IAM::ManagedPolicy": "ManagedPolicyName",
    "AWS::IAM::InstanceProfile": "InstanceProfileName",
    "AWS::EKS::Cluster": "Name",
    "AWS::S3::Bucket": "BucketName",
    "AWS::EC2::SecurityGroup": "GroupName",
}
_NOUNS: Final = {
    "AWS::IAM::Role": "role",
    "AWS::IAM::User": "user",
    "AWS::IAM::Group": "group",
    "AWS::ApiGateway::RestApi": "REST API",
    "AWS::IAM::ManagedPolicy": "managed policy",
    "AWS::IAM::InstanceProfile": "instance profile",
    "AWS::IAM::OIDCProvider": "identity provider",
    "AWS::IAM::SAMLProvider": "SAML provider",
    "AWS::KMS::Key": "key",
    "AWS::SNS::Topic": "topic",
    "AWS::SQS::Queue": "queue",
    "AWS::Logs::LogGroup": "log group",
    "AWS::ECR::Repository": "repository",
    "AWS::Lambda::Function": "function",
    "AWS::EC2::EIPAssociation": "Elastic IP association",
    "AWS::EC2::VPCBlockPublicAccessExclusion": "VPC block public access exclusion",
    "AWS::EC2::VPNGateway": "VPN gateway",
    "AWS::EC2::VPCPeeringConnection": "VPC peering",
    "AWS::EC2::EgressOnlyInternetGateway": "egress-only internet gateway",
    "AWS::EKS::Addon": "add-on",
    "Custom::AWSCDK-EKS-KubernetesResource": "Kubernetes manifest",
}
_LAST_STEPS: Final = {"AWS::EC2::SecurityGroup": ("Group", "SecurityGroup"), "AWS::IAM::ManagedPolicy": ("Policy",)}


def is_unknown(value: str) -> bool:
    """Whether only the deployment knows a value as a whole: a parameter, a condition, an import, a secret."""
    return _PARAMETER.fullmatch(value) is not None or value.startswith(_UNKNOWN_STARTS)


def views(base: Assembly, head: Assembly, changes: Sequence[ResourceChange]) -> tuple[View, View]:
    """Return both sides in common terms.

    A resource is the same on both sides if its type and logical ID are. One that is only in the head is the one that is
    only in the base if both have the type and the same physical name, or else the same construct path: so an access
    that stays when a construct's logical ID changes is no change. All others are different resources, even if they look
    alike.
    """
    gone = [change.before for change in changes if change.before is not None and _is_another(change)]
    new = [change.after for change in changes if change.after is not None and _is_another(change)]
    found: dict[Place, Place] = {}
    for key_of in (_physical_name, _construct_path):
        by_key: dict[tuple[str, str], list[Resource]] = {}
        for resource in gone:
            if (key := key_of(base, resource)) and place_of(resource) not in found:
                by_key.setdefault(key, []).append(resource)
        taken = set(found.values())
        for resource in new:
            same = by_key.get(key, []) if (key := key_of(head, resource)) else []
            if len(same) == 1 and place_of(resource) not in taken and place_of(same[0]) not in found:
                found[place_of(same[0])] = place_of(resource)
    replaced = {place_of(resource) for resource in new}
    # a type that changed with the same logical ID is another resource, which must not share the token of the new one
    others = {
        place_of(resource): (resource.stack, f"{resource.logical_id} ({resource.type})")
        for resource in gone
        if place_of(resource) in replaced and place_of(resource) not in found
    }
    changed = {place_of(each) for change in changes for each in (change.before, change.after) if each is not None}
    common = View(head, {}, None, changed)
    return View(base, found | others, common, changed), common


def place_of(resource: Resource) -> Place:
    """Return the place of a resource."""
    return resource.stack, resource.logical_id


class View:
    """One side of a comparison; ``places`` has the common place of a resource if it differs from its own.

    Names are those of ``common``, the head's view, if the head has the resource, so that both sides use the same.
    """

    def __init__(
        self, assembly: Assembly, places: dict[Place, Place], common: View | None, changed: Container[Place]
    ) -> None:
        self.assembly = assembly
        self.unknown: dict[Place, list[str]] = {}
        self._places = places
        self._common = common
        self._changed = changed
        self._texts: dict[tuple[str, str], str] = {}
        self._properties: dict[Place, dict[str, Any]] = {}

    @cached_property
    def resources(self) -> tuple[Resource, ...]:
        """What is deployed: every resource whose condition is not known to be false."""
        return tuple(each for each in self.assembly.resources() if exists(self.assembly, each) is not False)

    def of_type(self, *types: str) -> Iterator[Resource]:
        """Return every deployed resource of these types."""
        for each in types:
            yield from self._by_type.get(each, ())

    def properties(self, resource: Resource) -> dict[str, Any]:
        """Return a resource's properties as plain data: references as TOKEN, unknown values as their own text."""
        place = place_of(resource)
        found = self._properties.get(place)
        if found is None:
            plain = self._plain(resource, resolved_properties(self.assembly, resource))
            found = self._properties[place] = plain if isinstance(plain, dict) else {}
        return found

    def cause(self, *resources: Resource) -> Place:
        """Return the place of the first of these that changes, of the first one if none does."""
        places = [place_of(resource) for resource in resources]
        return next((place for place in places if place in self._changed), places[0])

    def token(self, resource: Resource) -> str:
        """Return the text that represents a resource on both sides."""
        stack, logical_id = self._place(place_of(resource))
        return f"${{{stack}/{logical_id}}}"

    def find(self, token: str) -> Resource | None:
        """Return the deployed resource of this side that a text consists of, None for any other text."""
        found = TOKEN.fullmatch(token)
        return self._by_place.get((found[1], found[2])) if found else None

    @property
    def account(self) -> str:
        """The account of both sides, empty if neither states one."""
        return self.assembly.account or (self._common.account if self._common else "")

    def name(self, resource: Resource) -> str:
        """Return the readable name of a resource of this side."""
        return self.label(self._place(place_of(resource)))

    def label(self, place: Place, *, with_stack: bool = True) -> str:
        """Return the readable name of the resource at a common place: ``role ExecutionRole (prod-hyperpod)``."""
        common = self._common
        if common is not None and place in common._by_place:  # noqa: SLF001 - another object of this class
            return common.label(place, with_stack=with_stack)
        resource = self._by_place.get(place)
        if resource is None:
            return f"{place[1]} ({place[0]})" if with_stack else place[1]
        kind, name = noun(resource.type), self._name(resource)
        is_ambiguous = self._names[resource.type, name] > 1
        return f"{kind} {name} ({resource.stack})" if with_stack or is_ambiguous else f"{kind} {name}"

    def named(self, type_: str, name: str) -> str:
        """Return the token of the resource with this physical name, or the name itself if no resource has it."""
        found = self._by_physical_name.get((type_, name))
        return self.token(found) if found else name

    def _name(self, resource: Resource) -> str:
        if resource.type == "AWS::EKS::Cluster" and (name := _physical_name(self.assembly, resource)):
            return name[1]
        if self._short_names[resource.type, resource.stack, short_name(resource)] == 1:
            return short_name(resource)
        return resource.name if self._full_names[resource.type, resource.name] == 1 else resource.logical_id

    @cached_property
    def _names(self) -> Counter[tuple[str, str]]:
        return Counter((resource.type, self._name(resource)) for resource in self.resources)

    @cached_property
    def _full_names(self) -> Counter[tuple[str, str]]:
        return Counter((resource.type, resource.name) for resource in self.resources)

    @cached_property
    def _short_names(self) -> Counter[tuple[str, str, str]]:
        return Counter((resource.type, resource.stack, short_name(resource)) for resource in self.resources)

    @cached_property
    def _by_type(self) -> dict[str, list[Resource]]:
        found: dict[str, list[Resource]] = {}
        for resource in self.resources:
            found.setdefault(resource.type, []).append(resource)
        return found

    @cached_property
    def _by_place(self) -> dict[Place, Resource]:
        return {self._place(place_of(resource)): resource for resource in self.resources}

    @cached_property
    def _by_physical_name(self) -> dict[tuple[str, str], Resource]:
        return {
            key: resource
            for each in _PHYSICAL_NAMES
            for resource in self.of_type(each)
            if (key := _physical_name(self.assembly, resource))
        }

    @cached_property
    def _stacks_of(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for resource in self.assembly.resources():
            found.setdefault(resource.logical_id, []).append(resource.stack)
        return found

    def _place(self, place: Place) -> Place:
        return self._places.get(place, place)

    def _plain(self, resource: Resource, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(resource.stack, value) if "${" in value or "arn:" in value else value
        if isinstance(value, dict):
            return {str(key): self._plain(resource, item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._plain(resource, item) for item in value]
        if isinstance(value, Reference):
            stack, logical_id = self._place((value.stack, value.logical_id))
            return f"${{{stack}/{logical_id}.{value.attribute}}}" if value.attribute else f"${{{stack}/{logical_id}}}"
        if isinstance(value, Unknown):
            text = self._text(resource.stack, value.text)
            self.unknown.setdefault(place_of(resource), []).append(text)
            return text
        return value

    def _text(self, stack: str, text: str) -> str:
        found = self._texts.get((stack, text))
        if found is None:
            found = self._texts[stack, text] = self._written(stack, text)
        return found

    def _written(self, stack: str, text: str) -> str:
        own = self.assembly.by_name[stack]
        region = own.region
        partition = next((f"aws-{each}" for each in ("cn", "us-gov") if region.startswith(f"{each}-")), "aws")

        def replaced(found: re.Match[str]) -> str:
            logical_id, _, attribute = found[1].partition(".")
            if logical_id == "AWS::Partition":
                return partition
            if logical_id == "AWS::URLSuffix":
                return "amazonaws.com.cn" if partition == "aws-cn" else "amazonaws.com"
            # the text of a reference through an export has lost the stack that it refers to
            stacks = [stack] if logical_id in own.resources else self._stacks_of.get(logical_id, [])
            if len(stacks) != 1 or (stacks != [stack] and logical_id in own.parameters):
                return found[0]
            place = "/".join(self._place((stacks[0], logical_id)))
            return f"${{{place}.{attribute}}}" if attribute else f"${{{place}}}"

        written = _EMBEDDED.sub(replaced, text)
        return _BUCKET_ARN.sub(r"${\1.Arn}", written)


_BUCKET_ARN = re.compile(r"^arn:[\w-]+:s3:::\$\{([^{}/$]+/[^{}/.$]+)\}")


def noun(type_: str) -> str:
    """Return the readable name of a type: ``role``, ``security group``."""
    return _NOUNS.get(type_) or nouns.noun(type_)


def short_name(resource: Resource) -> str:
    """Return a resource's name without a last step that only repeats its type: ``LifecycleScripts`` of a bucket."""
    first, _, last = resource.name.rpartition("/")
    steps = _LAST_STEPS.get(resource.type, ()) or (resource.type.rpartition("::")[2],)
    return first if first and last.lower() in {step.lower() for step in steps} else resource.name


def _is_another(change: ResourceChange) -> bool:
    return change.before is None or change.after is None or change.before.type != change.after.type


def _physical_name(assembly: Assembly, resource: Resource) -> tuple[str, str] | None:
    name = _PHYSICAL_NAMES.get(resource.type)
    stated = resource.properties.get(name) if name else None
    if stated is None:
        return None
    value = resolve(assembly, resource.stack, stated)
    return (resource.type, value) if isinstance(value, str) and value and "{" not in value else None


def _construct_path(_: Assembly, resource: Resource) -> tuple[str, str] | None:
    return (resource.type, resource.construct_path) if resource.construct_path else None
