"""Rules about teams, quotas and the cluster policy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from hyperpod_cdk.config.environment import Environment
from hyperpod_cdk.config.rules._book import Book, Problem, duplicates, teams
from hyperpod_cdk.config.rules.eks import role_problems
from hyperpod_cdk.config.rules.instance_groups import unknown_type
from hyperpod_cdk.config.source import DataPath
from hyperpod_cdk.config.suggest import closest
from hyperpod_cdk.config.task_governance import Team

BOOK = Book()

_SECTION = "task_governance"
_POLICY = "policy"


@BOOK.whole
def priority_classes_go_with_priority(environment: Environment) -> Iterator[Problem]:
    """Refuse priority classes where tasks are served as they come, and two classes of one name."""
    section = environment.task_governance
    if section is None:
        return
    at = (_SECTION, "priority_classes")
    if section.ordering == "first_come_first_served" and section.priority_classes:
        yield Problem(
            at,
            "must be left out with ordering: first_come_first_served; set ordering: priority or remove"
            " priority_classes",
        )
    for index, first, name in duplicates([each.name for each in section.priority_classes]):
        yield Problem(
            (*at, index, "name"), f'must be unique, got "{name}" as in priority_classes[{first}]; rename one of the two'
        )


@BOOK.whole
def team_names_are_unique(environment: Environment) -> Iterator[Problem]:
    """Refuse two teams of one name, and the name under which the cluster policy is kept."""
    names = [team.name for _, team in teams(environment)]
    for index, first, name in duplicates(names):
        yield Problem(
            (_SECTION, "teams", index, "name"),
            f'must be unique, got "{name}" as in teams[{first}]; rename one of the two',
        )
    for index, name in enumerate(names):
        if name == _POLICY:
            yield Problem(
                (_SECTION, "teams", index, "name"),
                f'must not be "{_POLICY}", which is the name of the cluster policy; rename the team',
            )


@BOOK.each(teams)
def quotas_are_of_types_in_the_cluster(environment: Environment, path: DataPath, team: Team) -> Iterator[Problem]:
    """Refuse quotas of types that no instance group has."""
    for index, first, name in duplicates([quota.instance_type for quota in team.quota]):
        yield Problem(
            (*path, "quota", index, "instance_type"),
            f"must be unique, got {name} as in quota[{first}]; add the counts up in one of the two",
        )
    present = {name for group in environment.hyperpod.instance_groups for name in group.all_instance_types}
    if any(environment.instance_type(name) is None for name in present):
        return  # a misspelt type of a group is reported there; which one was meant is not certain
    for index, quota in enumerate(team.quota):
        if quota.instance_type in present:
            continue
        at = (*path, "quota", index, "instance_type")
        if environment.instance_type(quota.instance_type) is None:
            yield from unknown_type(environment, at, quota.instance_type)
            continue
        near = closest(quota.instance_type, sorted(present))
        fix = f"set instance_type: {near}" if near else "add an instance group of it"
        yield Problem(
            at,
            f"must be a type of an instance group ({', '.join(sorted(present))}), got {quota.instance_type}; {fix}",
        )


@BOOK.whole
def quotas_are_within_capacity(environment: Environment) -> Iterator[Problem]:
    """Refuse guarantees that the cluster cannot keep: all quotas of a type against all nodes that may have it."""
    capacity: Counter[str] = Counter()
    for group in environment.hyperpod.instance_groups:
        for name in group.all_instance_types:
            capacity[name] += group.count
    promised: Counter[str] = Counter()
    for path, team in teams(environment):
        for index, quota in enumerate(team.quota):
            name = quota.instance_type
            before = promised[name]
            promised[name] += quota.count
            if name in capacity and before <= capacity[name] < promised[name]:
                yield Problem(
                    (*path, "quota", index, "count"),
                    f"teams must share at most the {capacity[name]} {name} of the instance groups, got"
                    f" {promised[name]} with this team; set count: {capacity[name] - before} or less"
                    if capacity[name] > before
                    else f"teams must share at most the {capacity[name]} {name} of the instance groups, got"
                    f" {promised[name]} with this team; lower the quotas of other teams first, or add nodes",
                )


@BOOK.alone(teams)
def borrow_limit_goes_with_borrowing(path: DataPath, team: Team) -> Iterator[Problem]:
    """Refuse a borrow limit where the team does not borrow."""
    sharing = team.sharing
    if sharing.borrow_limit_percent is not None and sharing.strategy != "lend_and_borrow":
        yield Problem(
            (*path, "sharing", "borrow_limit_percent"),
            f"must go with strategy: lend_and_borrow, got strategy: {sharing.strategy}; remove borrow_limit_percent"
            " or set strategy: lend_and_borrow",
        )


@BOOK.each(teams)
def member_roles_are_distinct_and_near(environment: Environment, path: DataPath, team: Team) -> Iterator[Problem]:
    """Refuse the same role twice and roles of another partition."""
    yield from role_problems(environment, (*path, "member_role_arns"), team.member_role_arns)


@BOOK.each(teams)
def members_are_no_administrators(environment: Environment, path: DataPath, team: Team) -> Iterator[Problem]:
    """Refuse a role that is an administrator of the cluster too: EKS takes one access entry per role."""
    for index, arn in enumerate(team.member_role_arns):
        if arn in environment.eks.admin_role_arns:
            first = environment.eks.admin_role_arns.index(arn)
            yield Problem(
                (*path, "member_role_arns", index),
                f"must be no administrator of the cluster, got {arn} as in eks.admin_role_arns[{first}]: EKS takes one"
                " access entry per role; remove it here, administrators may do what members may",
            )
