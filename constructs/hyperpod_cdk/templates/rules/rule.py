"""Rules, their findings, and the data of the templates that every rule can use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from hyperpod_cdk.findings import Severity
from hyperpod_cdk.templates.assembly import Assembly, Resource, Stack
from hyperpod_cdk.templates.groups import CLUSTER, InstanceGroup, Subnet, exists, instance_groups, subnets
from hyperpod_cdk.templates.values import Reference, Unknown, is_function, resolve, target

EKS_CLUSTER: Final = "AWS::EKS::Cluster"


@dataclass(frozen=True, kw_only=True)
class Spot:
    """One place that breaks a rule. ``severity`` is the rule's if it is None."""

    resource: Resource
    place: str
    message: str
    severity: Severity | None = None


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One rule: ``reason`` is its reason in one sentence, ``source`` its documentation, ``fix`` what fixes it.

    An error fails for certain, loses data, or breaks a convention of this project; the rest are warnings. ``is_house``
    marks conventions of this project that AWS does not have: for other templates they are warnings.
    """

    id: str
    severity: Severity
    reason: str
    source: str
    fix: str
    check: Callable[[Context], Iterator[Spot]] = field(repr=False)
    is_house: bool = False


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One finding of a rule or of the engine. ``place`` is a path inside the resource, ``line`` counts from 1."""

    stack: Stack
    rule: str
    severity: Severity
    message: str
    logical_id: str = ""
    place: str = ""
    line: int | None = None

    @property
    def resource(self) -> Resource | None:
        """The resource that it is about, None for the template as a whole."""
        return self.stack.resources.get(self.logical_id)


@dataclass(frozen=True, kw_only=True)
class Group:
    """An instance group with its part of the template: ``place`` is its path, ``body`` as written."""

    read: InstanceGroup
    place: str
    body: Mapping[str, Any]


class Context:
    """The templates that belong together, with data that several rules use, read once."""

    def __init__(self, assembly: Assembly) -> None:
        self.assembly = assembly

    def of_type(self, *types: str) -> Iterator[Resource]:
        """Return the resources of these types, or all, without those whose condition is false."""
        found = self.assembly.of_type(*types) if types else self.assembly.resources()
        return (each for each in found if exists(self.assembly, each) is not False)

    def value(self, resource: Resource, *steps: str) -> Any:
        """Return a resolved property; None if it does not exist, Unknown if an expression prevents reading it."""
        value: Any = resource.properties
        for step in steps:
            if isinstance(value, dict) and step not in value and len(value) == 1:
                value = resolve(self.assembly, resource.stack, value)
            if isinstance(value, (Reference, Unknown)):
                return value
            value = value.get(step) if isinstance(value, dict) else None
        return resolve(self.assembly, resource.stack, value)

    def target(self, resource: Resource, value: Any) -> Resource | None:
        """Return the resource that a value of ``resource`` refers to, through exports."""
        return target(self.assembly, resource.stack, value)

    @cached_property
    def clusters(self) -> list[Resource]:
        """The HyperPod clusters."""
        return list(self.of_type(CLUSTER))

    @cached_property
    def groups(self) -> list[Group]:
        """The instance groups of both kinds that their templates state as a list."""
        found = []
        for group in instance_groups(self.assembly):
            kind = "RestrictedInstanceGroups" if group.is_restricted else "InstanceGroups"
            stated = group.cluster.properties.get(kind)
            body = stated[group.index] if isinstance(stated, list) and group.index < len(stated) else None
            if is_function(body):
                body = resolve(self.assembly, group.cluster.stack, body)
            if isinstance(body, dict):
                found.append(Group(read=group, place=f"Properties.{kind}.{group.index}", body=body))
        return found

    @cached_property
    def subnets(self) -> list[Subnet]:
        """Every subnet with its users."""
        return subnets(self.assembly)

    @cached_property
    def policies(self) -> dict[tuple[str, str], list[Resource]]:
        """The policies that are separate resources, by (stack, logical ID) of each role that has them."""
        found: dict[tuple[str, str], list[Resource]] = {}
        for policy in self.of_type("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy", "AWS::IAM::RolePolicy"):
            roles = [*listed(policy.properties.get("Roles")), policy.properties.get("RoleName")]
            for role in filter(None, (self.target(policy, each) for each in roles)):
                found.setdefault((role.stack, role.logical_id), []).append(policy)
        for role in self.of_type("AWS::IAM::Role"):
            for arn in listed(role.properties.get("ManagedPolicyArns")):
                named = self.target(role, arn) if isinstance(arn, dict) else None
                if named is not None:
                    found.setdefault((role.stack, role.logical_id), []).append(named)
        return found

    @cached_property
    def orchestrators(self) -> list[Resource]:
        """The EKS clusters of these templates that a HyperPod cluster runs on."""
        found: dict[tuple[str, str], Resource] = {}
        for cluster in self.clusters:
            orchestrator = cluster.properties.get("Orchestrator")
            eks = orchestrator.get("Eks") if isinstance(orchestrator, dict) else None
            control_plane = self.target(cluster, eks.get("ClusterArn")) if isinstance(eks, dict) else None
            if control_plane is not None and control_plane.type == EKS_CLUSTER:
                found[control_plane.stack, control_plane.logical_id] = control_plane
        return list(found.values())


def listed(value: Any) -> list[Any]:
    """Return a list, or a single item as a list (``Action: s3:*``); nothing for None."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
