"""What a rule is, what it finds, and what every rule may ask of the templates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from hyperpod_cdk.findings import Severity
from hyperpod_cdk.templates.assembly import Assembly, Resource, Stack
from hyperpod_cdk.templates.groups import CLUSTER, InstanceGroup, Subnet, instance_groups, subnets
from hyperpod_cdk.templates.values import Reference, Unknown, resolve, target

EKS_CLUSTER: Final = "AWS::EKS::Cluster"


@dataclass(frozen=True, kw_only=True)
class Spot:
    """One place that breaks a rule. ``severity`` is the rule's where it is None."""

    resource: Resource
    place: str
    message: str
    severity: Severity | None = None


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One rule: ``reason`` is why it stands, in one sentence, ``source`` where that is said, ``fix`` what fixes it.

    An error is what fails for certain or loses data, or what this project never does; the rest warns. ``is_house``
    marks what only this project never does, and AWS takes: on the templates of others it warns.
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
    """An instance group with what its template says: ``place`` is where it stands, ``body`` as written."""

    read: InstanceGroup
    place: str
    body: Mapping[str, Any]


class Context:
    """The templates that belong together, with what several rules read of them, read once."""

    def __init__(self, assembly: Assembly) -> None:
        self.assembly = assembly

    def value(self, resource: Resource, *steps: str) -> Any:
        """Give a resolved property; None where there is none, Unknown where an expression stands in its way."""
        value: Any = resource.properties
        for step in steps:
            if isinstance(value, dict) and step not in value and len(value) == 1:
                value = resolve(self.assembly, resource.stack, value)
            if isinstance(value, (Reference, Unknown)):
                return value
            value = value.get(step) if isinstance(value, dict) else None
        return resolve(self.assembly, resource.stack, value)

    def target(self, resource: Resource, value: Any) -> Resource | None:
        """Give the resource that a value of ``resource`` refers to, through exports."""
        return target(self.assembly, resource.stack, value)

    @cached_property
    def clusters(self) -> list[Resource]:
        """The HyperPod clusters."""
        return list(self.assembly.of_type(CLUSTER))

    @cached_property
    def groups(self) -> list[Group]:
        """The instance groups of both kinds that their templates state as a list."""
        found = []
        for group in instance_groups(self.assembly):
            kind = "RestrictedInstanceGroups" if group.is_restricted else "InstanceGroups"
            stated = group.cluster.properties.get(kind)
            body = stated[group.index] if isinstance(stated, list) and group.index < len(stated) else None
            if isinstance(body, dict):
                found.append(Group(read=group, place=f"Properties.{kind}.{group.index}", body=body))
        return found

    @cached_property
    def subnets(self) -> list[Subnet]:
        """Every subnet with what stands in it."""
        return subnets(self.assembly)

    @cached_property
    def policies(self) -> dict[tuple[str, str], list[Resource]]:
        """The policies that are resources of their own, by (stack, logical id) of each role that has them."""
        found: dict[tuple[str, str], list[Resource]] = {}
        for policy in self.assembly.of_type("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy", "AWS::IAM::RolePolicy"):
            roles = [*listed(policy.properties.get("Roles")), policy.properties.get("RoleName")]
            for role in filter(None, (self.target(policy, each) for each in roles)):
                found.setdefault((role.stack, role.logical_id), []).append(policy)
        for role in self.assembly.of_type("AWS::IAM::Role"):
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
    """Give a list, or the one thing in a list of its own (``Action: s3:*``); nothing for None."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
