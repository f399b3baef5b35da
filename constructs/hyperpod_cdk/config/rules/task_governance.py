"""Rules about teams and the cluster policy."""

from __future__ import annotations

from collections.abc import Iterator

from hyperpod_cdk.catalog import addons, governance, regions
from hyperpod_cdk.catalog.rules import repeated, same_name_problem
from hyperpod_cdk.catalog.sentences import Sentence, Setting
from hyperpod_cdk.config.draft import known
from hyperpod_cdk.config.environment import Environment
from hyperpod_cdk.config.rules.book import Book, Problem, file_systems, teams, warning
from hyperpod_cdk.config.rules.eks import role_problems
from hyperpod_cdk.config.source import DataPath
from hyperpod_cdk.config.task_governance import Team

BOOK = Book()

_SECTION = "task_governance"


@BOOK.whole
def priority_classes_go_with_priority(environment: Environment) -> Iterator[Problem]:
    """Refuse priority classes with ordering: first_come_first_served, and two classes with the same name."""
    section = environment.task_governance
    if section is None:
        return
    at = (_SECTION, "priority_classes")
    if section.ordering == "first_come_first_served" and section.priority_classes:
        yield Problem(at, governance.unranked_classes_problem(section.ordering))
    for index, first, name in repeated([each.name for each in section.priority_classes]):
        yield Problem((*at, index, "name"), same_name_problem(name, f"priority_classes[{first}]"))


@BOOK.whole
def team_names_are_unique(environment: Environment) -> Iterator[Problem]:
    """Refuse two teams with the same name."""
    named = [team for _, team in teams(environment)]
    for index, first, name in repeated([team.name for team in named]):
        yield Problem(
            (_SECTION, "teams", index, "name"),
            same_name_problem(name, f"teams[{first}]"),
        )


@BOOK.whole
def quota_names_are_unique(environment: Environment) -> Iterator[Problem]:
    """Refuse the name of another quota, set or default; warn of the name of the cluster policy."""
    section = environment.task_governance
    if section is None:
        return
    named = list(teams(environment))
    wanted = [(team.name, team.quota_name) for _, team in named]
    for taken in governance.names_taken(environment.name, wanted, section.policy_name):
        path, team = named[taken.team]
        if not taken.is_policys and team.quota_name is not None:
            yield Problem(
                (*path, "quota_name"),
                governance.same_quota_name_problem(taken.name),
            )
        elif taken.is_policys:
            # each kind has its own calls and IDs (SageMaker API reference); no page says whether both can have one name
            yield warning(
                (*path, "quota_name") if team.quota_name else (*path, "name"),
                f'gives the quota the name of the cluster policy, "{taken.name}", and whether SageMaker accepts both is'
                " not documented; if it refuses, set another quota_name or policy_name",
            )


@BOOK.each(teams)
def team_names_are_no_namespaces(environment: Environment, path: DataPath, team: Team) -> Iterator[Problem]:
    """Warn of a team with the name of a namespace: its namespace would have the prefix twice."""
    name = team.name
    prefix = governance.namespace("")
    claimed = {each for _, system in file_systems(environment) if system.claim for each in system.claim.namespaces}
    if name.startswith(prefix):
        yield warning(
            (*path, "name"),
            Sentence(
                f'the namespace of the team would be {team.namespace}, since task governance puts "{prefix}" before the'
                " name; ",
                Setting("name", name.removeprefix(prefix) or governance.TEAM_NAME.example),
            ),
        )
    elif name in claimed and team.namespace not in claimed:
        yield warning(
            (*path, "name"),
            f"a claim of storage.lustre names the namespace {name}, and the team's is {team.namespace}; use that one"
            " in the claim if it is for the team",
        )


@BOOK.whole
def region_has_the_native_types(environment: Environment) -> Iterator[Problem]:
    """Warn of CloudFormation's own types in regions whose dated registry lists do not have them."""
    section = environment.task_governance
    if section is None or section.provider != "native":
        return
    wanted = [governance.SCHEDULER_CONFIG, *([governance.COMPUTE_QUOTA] if section.teams else [])]
    doubt = regions.types_warning(environment.region, wanted)
    if doubt:
        yield warning((_SECTION, "provider"), f"{doubt}; if the deployment is refused, set provider: auto or api")


@BOOK.each(teams)
def default_queue_is_known_to_kueue(environment: Environment, path: DataPath, team: Team) -> Iterator[Problem]:
    """Refuse a default queue with an add-on version whose Kueue does not support it."""
    version = dict(known(environment.eks.addon_versions)).get(addons.TASK_GOVERNANCE)
    problem = None if version is None or not team.default_queue else governance.default_queue_problem(version)
    if problem:
        fix = (problem, "; raise the version in eks.addon_versions, or ", Setting("default_queue", "false"))
        yield Problem((*path, "default_queue"), Sentence(*fix))


@BOOK.alone(teams)
def limited_resources_are_counted(path: DataPath, team: Team) -> Iterator[Problem]:
    """Refuse limits that Kubernetes refuses, or never enforces: it counts requests of extended resources."""
    for name, _ in known(team.resource_quota):
        problem = governance.limited_resource_problem(name)
        if problem:
            yield Problem((*path, "resource_quota", name), problem)


@BOOK.each(teams)
def member_roles_are_distinct_and_near(environment: Environment, path: DataPath, team: Team) -> Iterator[Problem]:
    """Refuse repeated roles and roles of another partition."""
    yield from role_problems(environment, (*path, "member_role_arns"), team.member_role_arns)


@BOOK.each(teams)
def members_are_no_administrators(environment: Environment, path: DataPath, team: Team) -> Iterator[Problem]:
    """Refuse a role that is also an administrator of the cluster: EKS allows one access entry per role."""
    for index, arn in enumerate(team.member_role_arns):
        problem = governance.member_problem(arn, environment.eks.admin_role_arns, listed="eks.admin_role_arns")
        if problem:
            yield Problem((*path, "member_role_arns", index), problem)
