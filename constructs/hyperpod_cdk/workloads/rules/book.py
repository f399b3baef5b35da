"""Defines, registers and runs rules for a whole job file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from hyperpod_cdk.catalog import governance
from hyperpod_cdk.catalog.rules import listing
from hyperpod_cdk.catalog.sentences import Setting
from hyperpod_cdk.config import Environment, InstanceGroup, Team
from hyperpod_cdk.config.draft import Unknown, UnknownValueError, certain
from hyperpod_cdk.config.rules.book import Problem
from hyperpod_cdk.config.suggest import closest
from hyperpod_cdk.workloads.job import Job
from hyperpod_cdk.workloads.nodes import NodeShape, node_shape
from hyperpod_cdk.workloads.plan import DEFAULT_NAMESPACE, Plan, default_accelerators
from hyperpod_cdk.workloads.plan import plan as planned

Item = TypeVar("Item")


@dataclass(frozen=True)
class Context:
    """A job in its environment, for rules.

    The job may be incomplete. Access to a missing or wrong value, which another rule reports, raises
    UnknownValueError, which ends the rule because its result would be uncertain.
    """

    environment: Environment
    job: Job
    has_file: bool

    @cached_property
    def kind(self) -> str:
        """Return the kind of the job."""
        return _stated(self.job.kind)

    @cached_property
    def group(self) -> InstanceGroup:
        """Return the instance group of the job."""
        name = _stated(self.job.group)
        groups = self.environment.hyperpod.instance_groups
        return _stated(next((group for group in groups if group.name == name), None))

    @cached_property
    def is_autoscaled(self) -> bool:
        """Return whether Karpenter adds the group's nodes."""
        return self.environment.hyperpod.is_autoscaled(self.group)

    @cached_property
    def shape(self) -> NodeShape:
        """Return the resources of a node of the group."""
        return _stated(node_shape(self.environment, self.group))

    @cached_property
    def types(self) -> str:
        """Return the types of the group as a choice: ``ml.g5.12xlarge or ml.g5.24xlarge``."""
        return listing(self.group.all_instance_types)

    @cached_property
    def teams(self) -> tuple[Team, ...]:
        """Return the teams of the environment, which has none without task governance."""
        section = self.environment.task_governance
        return () if section is None else section.teams

    @cached_property
    def team(self) -> Team | None:
        """Return the job's team, or None if it has none."""
        name = self.job.team
        if name is None:
            return None
        return _stated(next((team for team in self.teams if team.name == name), None))

    @cached_property
    def namespace(self) -> str:
        """Return the namespace of the job."""
        return governance.namespace(self.team.name) if self.team else self.job.namespace or DEFAULT_NAMESPACE

    @cached_property
    def nodes(self) -> int:
        """Return the number of nodes, with the default filled in."""
        return self.job.nodes or _stated(self.group.count or None)

    @cached_property
    def accelerators(self) -> int:
        """Return the accelerators of a pod, with the default filled in."""
        stated = self.job.accelerators_per_node
        return default_accelerators(self.kind, self.shape) if stated is None else stated

    @cached_property
    def plan(self) -> Plan:
        """Return the planned job, with all defaults filled in."""
        try:
            # fields that are missing, which is reported, do not change the requests of pods
            return planned(
                self.environment,
                self.job.model_copy(update={"name": "job", "image": self.job.image or "registry/job:1"}),
            )
        except ValueError:
            raise UnknownValueError from None


Found = Iterator[Problem]


@dataclass(frozen=True)
class Rule:
    """A rule with its stable name."""

    name: str
    run: Callable[[Context], Found]


class Book:
    """The rules of one module, in the order of their definition."""

    def __init__(self) -> None:
        self.rules: list[Rule] = []

    def rule(self, function: Callable[[Context], Found]) -> Callable[[Context], Found]:
        """Register a rule."""
        self.rules.append(Rule(function.__name__, lambda context: certain(function(context))))
        return function


def fix_for(word: str, known: Sequence[str], *, key: str, likely: str | None = None) -> str | Setting:
    """Return the fix for an unknown name: a similar name, or the likely one. Default: the first known name."""
    near = closest(word, known)
    return f"did you mean {near}?" if near else Setting(key, likely or known[0])


def or_less(most: int) -> str:
    """Return the allowed numbers from 1 as text: ``4 or less``, or ``1`` if there is no other."""
    return f"{most} or less" if most > 1 else str(most)


def is_unknown(value: object) -> bool:
    """Return whether a value is already reported."""
    return type(value) is Unknown


def _stated(value: Item | None) -> Item:
    if value is None:
        raise UnknownValueError
    return value
