"""The task_governance section: the cluster policy and the compute quotas of teams."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Strict

from hyperpod_cdk.catalog import governance
from hyperpod_cdk.catalog.rules import Bound
from hyperpod_cdk.config.eks import RoleArn
from hyperpod_cdk.config.instance_group import InstanceTypeName
from hyperpod_cdk.config.section import Section, counted, filled, like, within

_QUOTA_COUNT = Bound(minimum=1, maximum=governance.QUOTA_COUNT.maximum, source=governance.QUOTA_COUNT.source)


class PriorityClass(Section):
    """A class that a task may name; tasks of greater weight go first."""

    name: Annotated[str, like(governance.PRIORITY_CLASS_NAME)] = Field(
        description="Name of the class; tasks name it with '-priority' at its end.", examples=["training"]
    )
    weight: Annotated[int, within(governance.PRIORITY_WEIGHT)] = Field(
        description="Weight of the class.", examples=[80]
    )


class Quota(Section):
    """Instances of one type that belong to a team."""

    instance_type: InstanceTypeName = Field(description="Instance type, ml. included.", examples=["ml.p5.48xlarge"])
    count: Annotated[int, within(_QUOTA_COUNT)] = Field(description="How many instances.", examples=[2])


class Sharing(Section):
    """Whether the team lends its idle compute and borrows that of others."""

    strategy: Literal["lend_and_borrow", "lend", "dont_lend"] = Field(
        default="lend_and_borrow", description="What the team does with idle compute."
    )
    borrow_limit_percent: Annotated[int, within(governance.BORROW_LIMIT_PERCENT)] | None = Field(
        default=None,
        description=(
            "Most that the team borrows, in percent of its own quota. Default:"
            f" {governance.DEFAULT_BORROW_LIMIT_PERCENT} with lend_and_borrow; the other strategies have none."
        ),
        examples=[governance.DEFAULT_BORROW_LIMIT_PERCENT],
    )

    @property
    def resolved_borrow_limit_percent(self) -> int | None:
        """The borrow limit, the default filled in; None for a strategy that never borrows."""
        if self.strategy != "lend_and_borrow":
            return None
        return self.borrow_limit_percent or governance.DEFAULT_BORROW_LIMIT_PERCENT


class Team(Section):
    """A team with its share of the cluster; its namespace is hyperpod-ns-<name>."""

    name: Annotated[str, like(governance.TEAM_NAME)] = Field(description="Name of the team.", examples=["research"])
    fair_share_weight: Annotated[int, within(governance.FAIR_SHARE_WEIGHT)] = Field(
        default=governance.DEFAULT_FAIR_SHARE_WEIGHT,
        description="Weight with which the team gets idle compute; greater goes first, 0 goes last.",
    )
    preemption: Literal["lower_priority", "never"] = Field(
        default="lower_priority",
        description="Whether a task of the team may preempt the team's tasks of lower priority.",
    )
    quota: Annotated[
        tuple[Quota, ...],
        Strict(strict=False),
        filled("instance type"),
        counted(governance.QUOTA_RESOURCES, "instance types"),
    ] = Field(
        description="Instances that belong to the team.",
        examples=[[{"instance_type": "ml.p5.48xlarge", "count": 2}]],
    )
    sharing: Sharing = Field(default_factory=Sharing, description="Lending and borrowing of idle compute.")
    member_role_arns: Annotated[tuple[RoleArn, ...], Strict(strict=False)] = Field(
        default=(), description="IAM roles of the team's members."
    )

    @property
    def namespace(self) -> str:
        """The namespace that task governance makes for the team."""
        return governance.namespace(self.name)


class TaskGovernance(Section):
    """Kueue, managed by HyperPod: who gets which compute, and which task goes first."""

    ordering: Literal["first_come_first_served", "priority"] = Field(
        default="first_come_first_served", description="How waiting tasks are admitted."
    )
    priority_classes: Annotated[
        tuple[PriorityClass, ...], Strict(strict=False), counted(governance.PRIORITY_CLASSES, "priority classes")
    ] = Field(
        default=(),
        description="Classes for ordering: priority. Default: inference with weight 100 and training with weight 80.",
        examples=[[{"name": "inference", "weight": 100}, {"name": "training", "weight": 80}]],
    )
    idle_compute: Literal["fair_share", "first_come_first_served"] = Field(
        default="fair_share",
        description="How idle compute is given to teams: by fair-share weight, or to who asks first.",
    )
    teams: Annotated[tuple[Team, ...], Strict(strict=False)] = Field(
        default=(), description="Teams with their compute quotas."
    )

    @property
    def resolved_priority_classes(self) -> tuple[PriorityClass, ...]:
        """The priority classes, the defaults filled in; none where tasks are served as they come."""
        if self.ordering != "priority" or self.priority_classes:
            return self.priority_classes
        return tuple(PriorityClass(name=name, weight=weight) for name, weight in governance.DEFAULT_PRIORITY_CLASSES)
