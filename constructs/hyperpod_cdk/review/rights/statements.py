"""Reads the permissions of policies: one block per statement, principal, effect and condition."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from hyperpod_cdk.catalog import regions
from hyperpod_cdk.review.rights import words
from hyperpod_cdk.review.rights.views import Place, View, is_unknown, place_of
from hyperpod_cdk.review.rights.words import Principal
from hyperpod_cdk.templates.assembly import Resource

Kind = Literal["permission", "trust", "resource policy", "cluster access"]
Term = tuple[str, tuple[str, ...]]
"""One action or resource, ``("", ("s3:getobject",))``; everything but some, ``("but", (...))``; a policy by name."""

_ITSELF: Final = {
    "AWS::S3::BucketPolicy": ("PolicyDocument", ("Bucket",)),
    "AWS::S3::AccessPoint": ("Policy", ()),
    "AWS::KMS::Key": ("KeyPolicy", ()),
    "AWS::KMS::ReplicaKey": ("KeyPolicy", ()),
    "AWS::SNS::TopicPolicy": ("PolicyDocument", ("Topics",)),
    "AWS::SNS::TopicInlinePolicy": ("PolicyDocument", ("TopicArn",)),
    "AWS::SQS::QueuePolicy": ("PolicyDocument", ("Queues",)),
    "AWS::SQS::QueueInlinePolicy": ("PolicyDocument", ("Queue",)),
    "AWS::ECR::Repository": ("RepositoryPolicyText", ()),
    "AWS::SecretsManager::ResourcePolicy": ("ResourcePolicy", ("SecretId",)),
    "AWS::EFS::FileSystem": ("FileSystemPolicy", ()),
    "AWS::Backup::BackupVault": ("AccessPolicy", ()),
    "AWS::OpenSearchService::Domain": ("AccessPolicies", ()),
    "AWS::SageMaker::ModelPackageGroup": ("ModelPackageGroupPolicy", ()),
}
"""Where a type has its policy, and the properties that name the policy's resource; none is the resource itself."""

_REGIONAL: Final = {
    "AWS::Logs::ResourcePolicy": "PolicyDocument",
    "AWS::ECR::RegistryPolicy": "PolicyText",
    "AWS::XRay::ResourcePolicy": "PolicyDocument",
}
"""Policies of an account in a Region, whose resources are their own."""

_READ_BY_KIND: Final = frozenset(
    {
        *("AWS::IAM::Role", "AWS::IAM::User", "AWS::IAM::Group", "AWS::IAM::ManagedPolicy", "AWS::IAM::Policy"),
        *("AWS::IAM::RolePolicy", "AWS::IAM::UserPolicy", "AWS::IAM::GroupPolicy", "AWS::EC2::VPCEndpoint"),
        *("AWS::Lambda::Permission", "AWS::Events::EventBusPolicy"),
    }
)
READ: Final = frozenset({*_ITSELF, *_REGIONAL, *_READ_BY_KIND})
"""The types whose policies are read by their own rules; those of any other type are found by their shape."""

_HOLDERS: Final = {"Roles": "AWS::IAM::Role", "Users": "AWS::IAM::User", "Groups": "AWS::IAM::Group"}
_HOLDER: Final = {
    "AWS::IAM::RolePolicy": ("RoleName", "AWS::IAM::Role"),
    "AWS::IAM::UserPolicy": ("UserName", "AWS::IAM::User"),
    "AWS::IAM::GroupPolicy": ("GroupName", "AWS::IAM::Group"),
}
_LITERAL: Final = {"AWS::IAM::Role": "role", "AWS::IAM::User": "user", "AWS::IAM::Group": "group"}
_ALL_OF_A_KIND: Final = re.compile(r"arn:[^:]*:(?:s3:[^:]*:[^:]*:\*/\*|(?!s3:)[^:]*:[^:]*:[^:]*:[a-z-]+[/:]\*)")
_EVERYTHING: Final[dict[str, Any]] = {"Effect": "Allow", "Principal": "*", "Action": "*", "Resource": "*"}


class Heading(NamedTuple):
    """What blocks that are compared with each other have in common."""

    kind: Kind
    who: Principal
    effect: Literal["Allow", "Deny"]
    condition: str
    """The conditions as canonical JSON, empty without."""
    through: str = ""
    """The token of the VPC endpoint that the statement filters; in Kubernetes the namespace or cluster, in words."""
    namespace: str = ""
    """The namespace that limits a statement of Kubernetes, empty if none does."""


class Block(NamedTuple):
    """Every action on every resource."""

    actions: frozenset[Term]
    resources: frozenset[Term]


@dataclass
class Permissions:
    """The permissions of one side, and the place of each statement."""

    blocks: dict[Heading, dict[Block, Place]] = field(default_factory=dict)
    wildcards: int = 0
    spelling: dict[str, str] = field(default_factory=dict)
    """Actions as they are written, which are not case-sensitive in IAM."""
    boundaries: dict[str, tuple[str, Place]] = field(default_factory=dict)
    """The permissions boundary of a role or user, by token."""
    attached: set[str] = field(default_factory=set)
    """The managed policies that principals of the templates have, by token."""
    unread: dict[Place, list[str]] = field(default_factory=dict)
    """What could not be read, in words."""

    def add(self, heading: Heading, block: Block, place: Place) -> None:
        """Add a block; the first place with it counts."""
        if block.actions and block.resources:
            self.blocks.setdefault(heading, {}).setdefault(block, place)


def permissions(view: View) -> Permissions:
    """Read every policy of one side."""
    return _Reader(view).read()


def items(value: Any) -> list[Any]:
    """Return one or many as a list."""
    return value if isinstance(value, list) else [] if value is None else [value]


def may_be(value: Any, *values: str) -> bool:
    """Whether a value is one of these, or may be one as far as the templates show."""
    said = text(value)
    return said in values or is_unknown(said)


def text(value: Any) -> str:
    """Return a value of a policy as the text that IAM compares: ``true``, ``1``."""
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def names_below(value: Any, is_meant: Callable[[str], bool]) -> tuple[str, ...]:
    """Return the names of the wanted properties, at any depth, without those in policies."""
    found: dict[str, None] = {}
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, list):
            pending += item
        elif isinstance(item, dict) and not looks_like_policy(item):
            found |= dict.fromkeys(key for key in item if is_meant(key))
            pending += [each for key, each in item.items() if not is_meant(key)]
    return tuple(found)


def looks_like_policy(value: Any) -> bool:
    """Whether a value has the shape of a policy document: a statement in it allows or denies."""
    # most values of templates have no such key, and this is called for all of them
    if not isinstance(value, dict) or "Statement" not in value:
        return False
    return any(isinstance(each, dict) and each.get("Effect") in ("Allow", "Deny") for each in items(value["Statement"]))


def is_wildcard(block: Block) -> bool:
    """Whether an action contains a wildcard, or a resource is only a wildcard, or there is an "everything but"."""
    return any(kind == "but" or any("*" in name or "?" in name for name in names) for kind, names in block.actions) or (
        any(kind == "but" or any(is_any_resource(name) for name in names) for kind, names in block.resources)
    )


def is_covered_by(block: Block, others: Iterable[Block]) -> bool:
    """Whether every action on every resource is also within another block, by its wildcards."""
    patterns = [(_patterns(other.actions), _patterns(other.resources)) for other in others if other != block]
    if not patterns or any(kind for terms in block for kind, _ in terms):
        return False
    return all(
        any(actions(action[0]) and resources(name[0]) for actions, resources in patterns)
        for _, action in block.actions
        for _, name in block.resources
    )


def _patterns(terms: Iterable[Term]) -> Callable[[str], bool]:
    names = [name for kind, each in terms if not kind for name in each]
    plain = {name for name in names if "*" not in name and "?" not in name}
    pattern = "|".join(
        "".join({"*": ".*", "?": "."}.get(each, re.escape(each)) for each in name)
        for name in sorted(set(names) - plain)
    )
    matches = re.compile(pattern, re.DOTALL).fullmatch if pattern else lambda _: None
    return lambda name: name in plain or matches(name) is not None


def is_any_resource(name: str) -> bool:
    """Whether a resource is ``*``, or an ARN with a wildcard for the part after the account."""
    return name == "*" or (name.startswith("arn:") and name.split(":", 5)[-1] == "*")


def is_all_of_a_kind(name: str) -> bool:
    """Whether a resource is any at all, or every one of a kind: ``key/*``, ``table/*``, every object of any bucket."""
    return is_any_resource(name) or _ALL_OF_A_KIND.fullmatch(name) is not None


class _Reader:
    def __init__(self, view: View) -> None:
        self.view = view
        self.found = Permissions()
        self._holders: dict[str, dict[Principal, Resource]] = {}

    def read(self) -> Permissions:
        roles = [
            (resource, self.view.properties(resource))
            for resource in self.view.of_type("AWS::IAM::Role", "AWS::IAM::User", "AWS::IAM::Group")
        ]
        managed = [(each, self.view.properties(each)) for each in self.view.of_type("AWS::IAM::ManagedPolicy")]
        for resource, properties in roles:
            self._identity(resource, properties)
        for resource, properties in managed:
            token = self.view.token(resource)
            holders = {who: self.view.cause(resource, role) for who, role in self._holders.get(token, {}).items()}
            for who in self._attached(properties):
                holders.setdefault(who, place_of(resource))
            if holders:
                self.found.attached.add(token)
            else:
                holders["holders", token] = place_of(resource)
            self._document(resource, properties.get("PolicyDocument"), "permission", holders)
        for resource in self.view.of_type("AWS::IAM::Policy"):
            properties = self.view.properties(resource)
            attached = dict.fromkeys(self._attached(properties), place_of(resource))
            self._document(resource, properties.get("PolicyDocument"), "permission", attached)
        for type_, (name, holder) in _HOLDER.items():
            for resource in self.view.of_type(type_):
                properties = self.view.properties(resource)
                who = self._holder(holder, properties.get(name))
                self._document(resource, properties.get("PolicyDocument"), "permission", {who: place_of(resource)})
        self._members()
        self._resource_policies()
        for resource in self.view.resources:
            if resource.type not in READ:
                self._policies_within(resource, self.view.properties(resource))
        return self.found

    def _identity(self, resource: Resource, properties: dict[str, Any]) -> None:
        token = self.view.token(resource)
        who: Principal = ("resource", token)
        for policy in items(properties.get("Policies")):
            if isinstance(policy, dict):
                self._document(resource, policy.get("PolicyDocument"), "permission", {who: place_of(resource)})
            else:
                self._unread(resource, policy)
        for arn in items(properties.get("ManagedPolicyArns")):
            self._attach(resource, who, text(arn))
        if boundary := properties.get("PermissionsBoundary"):
            self.found.boundaries[token] = (text(boundary), place_of(resource))
        if resource.type == "AWS::IAM::Role":
            self._document(resource, properties.get("AssumeRolePolicyDocument"), "trust", {}, itself=(token,))
        for group in items(properties.get("Groups")):
            self._named(resource, who, "member", _token_only(self.view.named("AWS::IAM::Group", text(group))))

    def _attach(self, resource: Resource, who: Principal, arn: str) -> None:
        token = _token_only(arn)
        found = self.view.find(token)
        if found is not None and found.type == "AWS::IAM::ManagedPolicy":
            self._holders.setdefault(token, {})[who] = resource
        else:
            self._named(resource, who, "policy", arn)

    def _named(self, resource: Resource, who: Principal, kind: str, name: str) -> None:
        block = Block(frozenset({(kind, (name,))}), frozenset({(kind, ("",))}))
        self.found.add(Heading("permission", who, "Allow", ""), block, place_of(resource))

    def _members(self) -> None:
        for resource in self.view.of_type("AWS::IAM::UserToGroupAddition"):
            properties = self.view.properties(resource)
            group = _token_only(self.view.named("AWS::IAM::Group", text(properties.get("GroupName"))))
            for user in items(properties.get("Users")):
                self._named(resource, self._holder("AWS::IAM::User", user), "member", group)
        for resource in self.view.of_type("AWS::IAM::InstanceProfile"):
            for role in items(self.view.properties(resource).get("Roles")):
                profile: Principal = ("resource", self.view.token(resource))
                token = _token_only(self.view.named("AWS::IAM::Role", text(role)))
                block = Block(frozenset({("", ("sts:assumerole",))}), frozenset({("", (token,))}))
                self.found.spelling.setdefault("sts:assumerole", "sts:AssumeRole")
                self.found.add(Heading("trust", profile, "Allow", ""), block, place_of(resource))

    def _attached(self, properties: dict[str, Any]) -> Iterator[Principal]:
        for name, type_ in _HOLDERS.items():
            for each in items(properties.get(name)):
                yield self._holder(type_, each)

    def _holder(self, type_: str, value: Any) -> Principal:
        name = _token_only(self.view.named(type_, text(value)))
        return ("resource", name) if self.view.find(name) else (_LITERAL[type_], name)

    def _resource_policies(self) -> None:
        for type_, (document, targets) in _ITSELF.items():
            for resource in self.view.of_type(type_):
                properties = self.view.properties(resource)
                itself = tuple(
                    self._target(type_, text(each)) for name in targets for each in items(properties.get(name))
                ) or (self.view.token(resource),)
                if document in properties:
                    self._document(resource, properties[document], "resource policy", {}, itself=itself)
                elif type_ == "AWS::KMS::Key":
                    everything = {**_EVERYTHING, "Principal": {"AWS": "${AWS::AccountId}"}, "Action": "kms:*"}
                    self._statement(resource, everything, "resource policy", {}, itself, counts=False)
        for type_, document in _REGIONAL.items():
            for resource in self.view.of_type(type_):
                self._document(resource, self.view.properties(resource).get(document), "resource policy", {})
        for resource in self.view.of_type("AWS::EC2::VPCEndpoint"):
            stated = self.view.properties(resource).get("PolicyDocument")
            through = self.view.token(resource)
            if stated is None:
                self._statement(resource, _EVERYTHING, "resource policy", {}, through=through, counts=False)
            else:
                self._document(resource, stated, "resource policy", {}, through=through)
        for resource in self.view.of_type("AWS::Lambda::Permission"):
            self._invocation(resource, self.view.properties(resource))
        for resource in self.view.of_type("AWS::Events::EventBusPolicy"):
            self._bus(resource, self.view.properties(resource))

    def _policies_within(self, resource: Resource, value: Any) -> None:
        """Read the policies anywhere in a resource of a type without a rule for their place."""
        document: Any = value
        if isinstance(value, str) and '"Statement"' in value:
            try:
                document = json.loads(value)
            except (ValueError, RecursionError):
                return
        if looks_like_policy(document):
            token = self.view.token(resource)
            for statement in items(document["Statement"]):
                if not isinstance(statement, dict):
                    self._unread(resource, statement)
                elif "Principal" in statement or "NotPrincipal" in statement:
                    self._statement(resource, statement, "resource policy", {}, (token,))
                else:
                    self._statement(resource, statement, "permission", {("holders", token): place_of(resource)})
            return
        parts = document.values() if isinstance(document, dict) else document if isinstance(document, list) else ()
        for item in parts:
            if isinstance(item, (dict, list)) or (isinstance(item, str) and '"Statement"' in item):
                self._policies_within(resource, item)

    def _target(self, type_: str, value: str) -> str:
        if type_ != "AWS::S3::BucketPolicy":
            return value
        named = self.view.named("AWS::S3::Bucket", value)
        if self.view.find(named):
            return f"{named[:-1]}.Arn}}"
        return f"arn:{regions.partition_of(self.view.assembly.region) or 'aws'}:s3:::{value}"

    def _invocation(self, resource: Resource, properties: dict[str, Any]) -> None:
        who = text(properties.get("Principal"))
        condition: dict[str, Any] = {}
        for name, key, operator in (
            ("SourceArn", "aws:SourceArn", "ArnLike"),
            ("SourceAccount", "aws:SourceAccount", "StringEquals"),
            ("PrincipalOrgID", "aws:PrincipalOrgID", "StringEquals"),
            ("FunctionUrlAuthType", "lambda:FunctionUrlAuthType", "StringEquals"),
            ("EventSourceToken", "lambda:EventSourceToken", "StringEquals"),
        ):
            if properties.get(name):
                condition.setdefault(operator, {})[key] = properties[name]
        is_service = who.endswith((".amazonaws.com", ".amazonaws.com.cn"))
        statement = {
            "Effect": "Allow",
            "Principal": {"Service" if is_service else "AWS": who},
            "Action": properties.get("Action"),
            "Resource": properties.get("FunctionName"),
            "Condition": condition,
        }
        self._statement(resource, statement, "resource policy", {})

    def _bus(self, resource: Resource, properties: dict[str, Any]) -> None:
        bus = text(properties.get("EventBusName") or "default event bus")
        if "Statement" in properties:
            self._document(resource, {"Statement": properties["Statement"]}, "resource policy", {}, itself=(bus,))
            return
        stated = properties.get("Condition")
        parts = [text(stated.get(name)) for name in ("Type", "Key", "Value")] if isinstance(stated, dict) else []
        condition = {parts[0]: {parts[1]: parts[2]}} if parts else {}
        statement = {
            "Effect": "Allow",
            "Principal": "*" if properties.get("Principal") == "*" else {"AWS": properties.get("Principal")},
            "Action": properties.get("Action"),
            "Resource": bus,
            "Condition": condition,
        }
        self._statement(resource, statement, "resource policy", {}, (bus,))

    def _document(
        self,
        resource: Resource,
        stated: Any,
        kind: Kind,
        holders: Mapping[Principal, Place],
        *,
        itself: tuple[str, ...] = (),
        through: str = "",
    ) -> None:
        if isinstance(stated, str):
            try:
                document = json.loads(stated)
            except ValueError:
                document = stated
        else:
            document = stated
        if not isinstance(document, dict):
            if document is not None:
                self._unread(resource, document)
            return
        for statement in items(document.get("Statement")):
            self._statement(resource, statement, kind, holders, itself, through=through)

    def _statement(
        self,
        resource: Resource,
        stated: Any,
        kind: Kind,
        holders: Mapping[Principal, Place],
        itself: tuple[str, ...] = (),
        *,
        through: str = "",
        counts: bool = True,
    ) -> None:
        effect = stated.get("Effect") if isinstance(stated, dict) else None
        if effect not in ("Allow", "Deny"):
            self._unread(resource, stated)
            return
        actions = self._terms(stated, "Action", self._action)
        resources: frozenset[Term]
        if kind == "trust":
            resources = frozenset(("", (each,)) for each in itself)
        elif "Resource" not in stated and "NotResource" not in stated:
            resources = frozenset(("", (each,)) for each in itself or ("*",))
        else:
            resources = self._terms(stated, "Resource", text)
            if itself and (any_ := ("", ("*",))) in resources:
                # the star of a resource policy is that resource
                resources = resources - {any_} | {("", (each,)) for each in itself}
        condition = _canonical(stated.get("Condition"))
        block = Block(actions, resources)
        if kind != "permission":
            holders = dict.fromkeys(self._principals(stated), place_of(resource))
        for who, place in holders.items():
            self.found.add(Heading(kind, who, effect, condition, through), block, place)
        # an endpoint's policy only narrows what other statements allow
        if counts and not through and effect == "Allow" and kind != "trust" and is_wildcard(block):
            self.found.wildcards += 1

    def _terms(self, stated: dict[str, Any], name: str, read: Callable[[Any], str]) -> frozenset[Term]:
        if f"Not{name}" in stated:
            return frozenset({("but", tuple(sorted({read(each) for each in items(stated[f"Not{name}"])})))})
        return frozenset(("", (read(each),)) for each in items(stated.get(name)))

    def _action(self, value: Any) -> str:
        written = text(value)
        lowered = written if "${" in written else written.lower()
        self.found.spelling.setdefault(lowered, written)
        return lowered

    def _principals(self, stated: dict[str, Any]) -> list[Principal]:
        if "NotPrincipal" in stated:
            return [("but", json.dumps(sorted(self._principal(stated["NotPrincipal"]))))]
        return sorted(self._principal(stated.get("Principal")))

    def _principal(self, stated: Any) -> set[Principal]:
        if not isinstance(stated, dict):
            stated = {"AWS": stated}
        found: set[Principal] = set()
        for kind, values in stated.items():
            for each in items(values):
                value = text(each)
                token = _token_only(value)
                if kind == "AWS" and self.view.find(token):
                    found.add(("resource", token))
                elif kind == "AWS" and (account := words.account_of(value)):
                    own = self.view.account
                    found.add(("account", own if own and account == "${AWS::AccountId}" else account))
                else:
                    found.add((kind, value))
        return found

    def _unread(self, resource: Resource, value: Any) -> None:
        self.found.unread.setdefault(place_of(resource), []).append(words.shown(self.view, text(value)))


def _token_only(value: str) -> str:
    """Return a reference to a resource without its attribute, so that its name and its ARN are the same."""
    if value.startswith("${") and value.endswith("}") and value.count("${") == 1 and "/" in value:
        stack, _, logical_id = value[2:-1].rpartition("/")
        return f"${{{stack}/{logical_id.partition('.')[0]}}}"
    return value


def _canonical(stated: Any) -> str:
    if not stated:
        return ""
    if not isinstance(stated, dict):
        return json.dumps(text(stated))
    found: dict[str, Any] = {}
    for operator, keys in stated.items():
        if isinstance(keys, dict):
            found[str(operator)] = {str(key): sorted({text(each) for each in items(keys[key])}) for key in keys}
        else:
            found[str(operator)] = text(keys)
    return json.dumps(found, sort_keys=True)
