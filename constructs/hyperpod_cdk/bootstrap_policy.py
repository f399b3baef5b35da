"""The policy for ``cdk bootstrap``: what CloudFormation may do when it deploys one environment, by its templates.

``cdk bootstrap`` gives CloudFormation's execution role AdministratorAccess unless the option
``--cloudformation-execution-policies`` is given. The statements here allow the actions with which CloudFormation's
handlers create, read, update and delete the resource types of an environment's templates, on resources whose names
begin with the environment's name or are in its templates, in its account and Region. AWS's service authorization
reference (``catalog/data/deployer_actions.json``) says what an action can be limited to; where it names no resource
type for an action, the statement says ``*``.

Sources: IAM user guide, "IAM and AWS STS quotas" (6,144 characters without white space a managed policy, 10 managed
policies a role), "Grant a user permissions to pass a role", "Delegate permission management by using permissions
boundaries"; CloudFormation user guide, "Resource tag".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from hyperpod_cdk.catalog import iam, regions
from hyperpod_cdk.catalog.deployer_actions import (
    DATA_REPOSITORY,
    DATA_REPOSITORY_ACTIONS,
    FEATURES,
    LEFT_OUT,
    LIMITABLE,
    LIMITED_TO,
    LIMITS,
    NOTHING_MADE,
    Feature,
    LeftOut,
    Limitable,
    ResourceType,
    limit_of,
    resource_type,
)
from hyperpod_cdk.catalog.iam_matching import listed, matches
from hyperpod_cdk.checks.iam import WHEN, boundary_arn
from hyperpod_cdk.config import Environment
from hyperpod_cdk.templates.assembly import Assembly, Resource
from hyperpod_cdk.templates.values import Reference, Unknown, plain, resolve

MOST_CHARACTERS = 6144
"""The largest managed policy, white space not counted."""

MOST_POLICIES = 10
"""The largest number of managed policies on a role, unless the account's quota was raised."""

NO_RESOURCE = "AWS has no resource for these actions in its service authorization reference"
"""Why a statement says ``*``."""

_TAGGING = re.compile(r":(Tag|Untag|ListTags|AddTags|RemoveTags|DeleteTags|CreateTags)")
_REFERENCE = re.compile(r"\$\{(\w+)\}")
_ROLE = "AWS::IAM::Role"
_STACK_NAME = "aws:ResourceTag/aws:cloudformation:stack-name"
_BOUNDARY = "iam:PermissionsBoundary"
_CREATE_ROLE_OF_SERVICE = "iam:CreateServiceLinkedRole"
_ATTACH_TO_KEPT = ("iam:AttachRolePolicy", "iam:DetachRolePolicy")
_WRITE_ROLE_OF_DATA = ("iam:AttachRolePolicy", "iam:PutRolePolicy")
_READ_PARAMETERS = "ssm:GetParameters"
_SSM_PARAMETER = "AWS::SSM::Parameter::Value<"
_ADD_ON_ROLES = "eks.amazonaws.com"


class BootstrapPolicyError(ValueError):
    """No policy can be written; the text is one line with the reason."""


@dataclass(frozen=True, kw_only=True)
class Statement:
    """One statement, with the reason for its actions, or the reason why its resources are not limited."""

    sid: str
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    condition: Mapping[str, Mapping[str, Any]]
    why: str

    def document(self) -> dict[str, Any]:
        """Return the statement as policies write it."""
        written = {
            "Sid": self.sid,
            "Effect": "Allow",
            "Action": list(self.actions),
            "Resource": list(self.resources),
        }
        return {**written, "Condition": dict(self.condition)} if self.condition else written


@dataclass(frozen=True, kw_only=True)
class Policy:
    """One managed policy: its name, and the statements that fit into it."""

    name: str
    statements: tuple[Statement, ...]

    @property
    def document(self) -> dict[str, Any]:
        """The policy document."""
        return _document(self.statements)

    @property
    def characters(self) -> int:
        """How many of the 6,144 characters it uses."""
        return _characters(self.statements)


def policies(assembly: Assembly, environment: Environment, *, base: Assembly | None = None) -> tuple[Policy, ...]:
    """Compute the managed policies for the execution role of one environment's stacks.

    ``base`` are its stacks as they are deployed: with them the policies suffice for the update from these, which also
    deletes and detaches what the new templates no longer name. They allow nothing for ``unknown_types``. Raises
    BootstrapPolicyError where more policies would be needed than a role takes.
    """
    parts: list[list[Statement]] = []
    for statement in statements(assembly, environment, base=base):
        if _characters([statement]) > MOST_CHARACTERS:
            raise BootstrapPolicyError(f"the statement {statement.sid} alone exceeds {MOST_CHARACTERS} characters")
        roomy = next((part for part in parts if _characters([*part, statement]) <= MOST_CHARACTERS), None)
        if roomy is None:
            parts.append([statement])
        else:
            roomy.append(statement)
    if len(parts) > MOST_POLICIES:
        raise BootstrapPolicyError(
            f"{environment.name} needs {len(parts)} managed policies, and a role takes {MOST_POLICIES}"
        )
    stem = f"{environment.name}-deploy"
    names = [f"{stem}-{number}" for number in range(1, len(parts) + 1)] if len(parts) > 1 else [stem]
    return tuple(Policy(name=name, statements=tuple(part)) for name, part in zip(names, parts, strict=True))


def statements(assembly: Assembly, environment: Environment, *, base: Assembly | None = None) -> tuple[Statement, ...]:
    """Compute the statements of one environment's stacks, by service, with what an update from ``base`` also needs.

    They allow nothing for ``unknown_types``.
    """
    found: dict[str, Statement] = {}
    for side in (assembly, base):
        for each in _Writer(side, environment).statements() if side else ():
            found[each.sid] = _both(found[each.sid], each) if each.sid in found else each
    return tuple(found.values())


def unknown_types(*assemblies: Assembly) -> dict[str, tuple[str, ...]]:
    """Return the types in the templates whose actions are unknown, each with its resources by stack and logical ID.

    The stacks of this library have no such type; an extension can add resources of any type.
    """
    found: dict[str, list[str]] = {}
    for assembly in assemblies:
        for each in assembly.resources():
            if each.type not in NOTHING_MADE and resource_type(each.type) is None:
                found.setdefault(each.type, []).append(f"{each.stack}/{each.logical_id}")
    return {name: tuple(dict.fromkeys(found[name])) for name in sorted(found)}


def left_out(*assemblies: Assembly) -> tuple[LeftOut, ...]:
    """Return the actions of CloudFormation's handlers for the templates' types that the policy leaves out, and why."""
    made = {resource.type for assembly in assemblies for resource in assembly.resources()}
    return tuple(
        replace(each, types=tuple(name for name in each.types if name in made))
        for each in LEFT_OUT
        if made & set(each.types)
    )


def _both(one: Statement, other: Statement) -> Statement:
    """Merge two statements of one name into one with the actions of both; their conditions have the same keys."""
    condition = {
        operator: {
            key: value if value == other.condition[operator][key] else sorted({*value, *other.condition[operator][key]})
            for key, value in keys.items()
        }
        for operator, keys in one.condition.items()
    }
    return replace(
        one,
        actions=tuple(dict.fromkeys((*one.actions, *other.actions))),
        resources=tuple(sorted({*one.resources, *other.resources})),
        condition=condition,
    )


class _Writer:
    def __init__(self, assembly: Assembly, environment: Environment) -> None:
        self._assembly = assembly
        self._environment = environment
        self._own = f"{environment.name}-*"
        self._types = dict(self._needed())

    def statements(self) -> Iterator[Statement]:
        groups: dict[tuple[str, str], list[str]] = {}
        for action in sorted(
            {action for each in (*self._types.values(), *self._features()) for action in each.actions}
        ):
            limit = limit_of(action)
            is_limitable = bool(LIMITED_TO[action])
            key = limit.key if limit else ""
            service = action.partition(":")[0] if is_limitable else ""
            groups.setdefault((service, key), []).append(action)
        for (service, key), actions in sorted(groups.items()):
            if key == "PassRole":
                yield self._pass_role(actions)
            elif service:
                yield self._on_resources(service, key, actions)
            else:
                yield self._anywhere(key, actions)
        yield from self._kept_roles()
        yield from self._data_repositories()
        yield from self._service_linked_roles()
        yield from self._parameters()

    def _needed(self) -> Iterator[tuple[str, ResourceType]]:
        for resource in self._assembly.resources():
            found = resource_type(resource.type)
            if found is not None:
                yield found.name, found

    def _features(self) -> Iterator[Feature]:
        for each in FEATURES:
            if any(each.is_in(found.type, found.properties) for found in self._assembly.of_type(each.name)):
                yield each

    def _pass_role(self, actions: Sequence[str]) -> Statement:
        return Statement(
            sid="IamPassRole",
            actions=tuple(actions),
            resources=tuple(sorted({*self._arns("iam", ("role",)), *self._kept})),
            condition={"StringEquals": {"iam:PassedToService": sorted(self._trusted_services())}},
            why=_why("PassRole"),
        )

    def _on_resources(self, service: str, key: str, actions: Sequence[str]) -> Statement:
        # every type of a service can have tags: the other actions show which types are meant
        telling = [action for action in actions if not _TAGGING.search(action)]
        types = {each for action in telling for each in LIMITED_TO[action]}
        condition = self._condition(key)
        return Statement(
            sid=f"{service.title().replace('-', '')}{key if condition else ''}{'Roles' if key == 'Boundary' else ''}",
            actions=tuple(actions) + self._boundary_actions(key),
            resources=self._arns(service, types),
            condition=condition,
            why=_why(key) if condition else "resources of the environment, by the names in its templates",
        )

    def _anywhere(self, key: str, actions: Sequence[str]) -> Statement:
        here = {"StringEquals": {"aws:RequestedRegion": self._environment.region}}
        return Statement(
            sid=key or "WithoutResource",
            actions=tuple(actions),
            resources=("*",),
            condition={} if key == "AnyRegion" else here,
            why=f"{NO_RESOURCE}; {_why(key)}" if key else NO_RESOURCE,
        )

    def _data_repositories(self) -> Iterator[Statement]:
        places = set()
        for each in self._assembly.of_type(DATA_REPOSITORY):
            bucket, _, prefix = (
                self._pattern(each, each.properties["DataRepositoryPath"]).removeprefix("s3://").partition("/")
            )
            places |= {self._filled(f"arn:{{partition}}:s3:::{place}") for place in (bucket, f"{bucket}/{prefix}*")}
        if places:
            yield Statement(
                sid="DataRepositories",
                actions=DATA_REPOSITORY_ACTIONS,
                resources=tuple(sorted(places)),
                condition={},
                why="FSx reads the linked buckets with the permissions of the identity that links them",
            )

    def _service_linked_roles(self) -> Iterator[Statement]:
        for role in iam.SERVICE_LINKED_ROLES:
            if not WHEN[role.when](self._environment):
                continue
            arn = role.arn(partition=self._environment.partition, account=self._environment.account)
            name = role.name.rstrip("_*")
            yield Statement(
                sid=f"Create{name}",
                actions=(_CREATE_ROLE_OF_SERVICE,),
                resources=(arn,),
                condition={"StringLike": {"iam:AWSServiceName": role.service}},
                why=f"{role.needed_for}: {_why('ServiceLinked')}",
            )
            if role.is_made_anew:
                yield Statement(
                    sid=f"Write{name}",
                    actions=_WRITE_ROLE_OF_DATA,
                    resources=(arn,),
                    condition={},
                    why=(
                        f"{role.needed_for}: FSx lets its role reach the bucket with the rights of the"
                        " identity that links it"
                    ),
                )

    def _parameters(self) -> Iterator[Statement]:
        names = {
            str(parameter["Default"])
            for stack in self._assembly.stacks
            for parameter in stack.parameters.values()
            if str(parameter.get("Type", "")).startswith(_SSM_PARAMETER) and "Default" in parameter
        }
        if names:
            place = self._filled("arn:{partition}:ssm:{region}:{account}:parameter/{value}")
            yield Statement(
                sid="TemplateParameters",
                actions=(_READ_PARAMETERS,),
                resources=tuple(place.replace("{value}", name.lstrip("/")) for name in sorted(names)),
                condition={},
                why="CloudFormation reads these parameters of the templates as the stack's role",
            )

    def _condition(self, key: str) -> dict[str, dict[str, Any]]:
        boundary = boundary_arn(self._environment)
        bounded = {"StringEquals": {_BOUNDARY: boundary}} if boundary else {}
        if key == "Boundary":
            return bounded
        if key == "AttachedPolicies":
            return {**bounded, "ArnLike": {"iam:PolicyARN": sorted(self._attached_policies())}}
        if key == "OwnStacks":
            return {"StringLike": {_STACK_NAME: self._own}}
        if key == "Grant":
            return {"Bool": {"kms:GrantIsForAWSResource": "true"}}
        return {}

    def _boundary_actions(self, key: str) -> tuple[str, ...]:
        return ("iam:PutRolePermissionsBoundary",) if key == "Boundary" and boundary_arn(self._environment) else ()

    def _arns(self, service: str, types: Iterable[str]) -> tuple[str, ...]:
        wanted = set(types)
        rows = [each for each in LIMITABLE if each.service == service and each.type in wanted]
        found = {arn for row in rows for arn in self._arns_of(row)}
        # a policy is attached to a role by its name, which does not show the role's path
        kept = {arn.rpartition("/")[2] for arn in self._kept} if service == "iam" else set()
        return tuple(sorted(arn for arn in found if ":role/" not in arn or arn.rpartition("/")[2] not in kept))

    @cached_property
    def _kept(self) -> frozenset[str]:
        """The roles that instance groups keep, which no stack owns."""
        return frozenset(
            text
            for cluster in self._assembly.of_type("AWS::SageMaker::Cluster")
            for role in _at(cluster.properties, "InstanceGroups.ExecutionRole")
            if (text := self._pattern(cluster, role)).startswith("arn:")
        )

    def _kept_roles(self) -> Iterator[Statement]:
        if self._kept:
            own = {each for each in self._arns("iam", ("policy",)) if self._own in each}
            yield Statement(
                sid="KeptRoles",
                actions=_ATTACH_TO_KEPT,
                resources=tuple(sorted(self._kept)),
                condition={"ArnLike": {"iam:PolicyARN": sorted(own)}},
                why="roles that instance groups keep get the environment's policy for nodes; nothing else changes",
            )

    def _arns_of(self, row: Limitable) -> Iterator[str]:
        arn = self._filled(row.arn)
        if row.service == "kms" and row.type == "key":
            yield from self._keys_elsewhere(arn)
        existing = self._environment.network.existing
        if (row.service, row.type) == ("ec2", "vpc") and existing is not None:
            # its ARN has the account of its owner, who may share it
            yield self._filled(row.arn.replace("{account}", "*").replace("vpc/*", f"vpc/{existing.vpc_id}"))
            return
        if not row.named_by:
            yield arn
            return
        for value in self._values(row):
            # an existing role is named by its ARN, which shows its path
            yield value if value.startswith("arn:") else arn.replace("{value}", value).replace("**", "*")

    def _values(self, row: Limitable) -> Iterator[str]:
        for kind, path in row.named_by:
            for resource in self._assembly.of_type(kind):
                names = [self._pattern(resource, each) for each in _at(resource.properties, path)]
                if not names and row.generated and kind == row.named_by[0][0]:
                    names = [row.generated.format(name=self._environment.name, logical_id=resource.logical_id)]
                for name in names:
                    if name:
                        # what begins as the environment's own names do may be named anew
                        own = row.generated.format(name=self._environment.name, logical_id="") or name
                        yield own if matches(own, name) else name

    def _pattern(self, resource: Resource, value: Any) -> str:
        """Return the known part of a name, with a star for the rest; empty if something else sets the name."""
        found = resolve(self._assembly, resource.stack, value)
        if isinstance(found, Reference | Unknown):
            return ""
        text = self._in_partition(plain(found))
        # the name of another resource, which CloudFormation makes
        text = _REFERENCE.sub(lambda each: self._generated(resource.stack, each), text)
        known, mark, _ = text.replace("${", "{").partition("{")
        return f"{known}*" if mark else known

    def _generated(self, stack: str, reference: re.Match[str]) -> str:
        return self._own if self._assembly.find(stack, reference[1]) else reference[0]

    def _in_partition(self, text: str) -> str:
        partition = self._environment.partition
        return text.replace("${AWS::Partition}", partition).replace("${AWS::URLSuffix}", regions.dns_suffix(partition))

    def _filled(self, arn: str) -> str:
        environment = self._environment
        return (
            arn.replace("{partition}", environment.partition)
            .replace("{region}", environment.region)
            .replace("{account}", environment.account)
        )

    def _trusted_services(self) -> set[str]:
        """Name the services that the roles of the templates trust, and EKS, which takes the roles of add-ons."""
        found = {_ADD_ON_ROLES} if any(kind.startswith("AWS::EKS::") for kind in self._types) else set()
        for role in self._assembly.of_type(_ROLE):
            document = resolve(self._assembly, role.stack, role.properties.get("AssumeRolePolicyDocument"))
            document = json.loads(document) if isinstance(document, str) else document
            for statement in listed((document or {}).get("Statement")):
                principal = statement.get("Principal")
                services = principal.get("Service") if isinstance(principal, Mapping) else None
                found |= {self._in_partition(plain(each)) for each in listed(services)}
        return found

    def _attached_policies(self) -> set[str]:
        found = set(self._arns("iam", ("policy",)))
        for role in self._assembly.of_type(_ROLE):
            for value in _either(role.properties.get("ManagedPolicyArns")):
                found |= {self._pattern(role, value)} - {""}
        return found

    def _keys_elsewhere(self, own: str) -> Iterator[str]:
        """Yield the keys of other accounts and regions that the templates name."""
        for text in _texts([dict(each.properties) for each in self._assembly.resources()]):
            if matches("arn:*:kms:*:key/*", text) and "{" not in text and not matches(own, text):
                yield text


def _why(key: str) -> str:
    return next((limit.why for limit in LIMITS if limit.key == key), "")


def _document(part: Iterable[Statement]) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": [each.document() for each in part]}


def _characters(part: Iterable[Statement]) -> int:
    return len(json.dumps(_document(part), separators=(",", ":")))


def _at(properties: Mapping[str, Any], path: str) -> list[Any]:
    """Return the value at a path, and each item if it is a list."""
    found: list[Any] = [properties]
    for step in path.split("."):
        found = [item for each in found if isinstance(each, Mapping) for item in listed(each.get(step))]
    return found


def _either(value: Any) -> Iterator[Any]:
    """Yield the items of a list, and of each that depends on a condition both that it can be."""
    for each in listed(value):
        if isinstance(each, Mapping) and "Fn::If" in each:
            yield from _either(each["Fn::If"][1:])
        else:
            yield each


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for each in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        yield from _texts(each)
