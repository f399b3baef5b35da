"""Rules about teams, queues, priorities and quotas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from hyperpod_cdk.catalog import governance, scheduling
from hyperpod_cdk.catalog.rules import listing
from hyperpod_cdk.catalog.sentences import Removal, Sentence, Setting
from hyperpod_cdk.config import TaskGovernance, Team
from hyperpod_cdk.config.rules.book import Problem, warning
from hyperpod_cdk.config.suggest import closest
from hyperpod_cdk.findings import Severity
from hyperpod_cdk.workloads.admission.cohort import GIB, ZERO, ClusterModel
from hyperpod_cdk.workloads.nodes import EFA_RESOURCE, mig_profile
from hyperpod_cdk.workloads.rules import elastic, nodes
from hyperpod_cdk.workloads.rules.book import Book, Context, Found, fix_for, or_less

BOOK = Book()

_PREFIX = governance.namespace("")
_UNITS: Mapping[str, tuple[int, str]] = {
    "cpu": (1, "vCPUs"),
    "memory": (GIB, "GiB of memory"),
    EFA_RESOURCE: (1, "EFA interfaces"),
}
"""Resources other than accelerators: their units, and the units' names."""
_ENDLESS = Decimal(10**6)
"""A number of pods that means unlimited: more than a cluster has nodes."""


@BOOK.rule
def team_is_there(context: Context) -> Found:
    """Refuse teams that the environment does not have, and a team with an inactive quota."""
    name, teams = context.job.team, context.teams
    if name is None:
        return
    at = ("team",)
    if not teams:
        yield Problem(
            at,
            Sentence(
                f"must be left out, since {context.environment.name} has no teams under task_governance, got"
                f' "{name}"; ',
                Removal("team"),
            ),
        )
        return
    names = [team.name for team in teams]
    if name not in names:
        bare = name.removeprefix(_PREFIX)
        fix = f"did you mean {bare}?" if bare in names else fix_for(name, names, key="team")
        said = f'must be a team of {context.environment.name} ({listing(names)}), got "{name}"; '
        yield Problem(at, Sentence(said, fix))
    elif context.team is not None and not context.team.active:
        yield Problem(
            at,
            f"must be a team with an active quota, got {name} with active: false, so that the job would wait"
            " forever; set active: true in the environment, or name another team",
        )


@BOOK.rule
def pods_may_run_in_the_namespace(context: Context) -> Found:
    """Refuse a team whose namespace allows no container that runs as root, because all images of jobs do."""
    team = context.team
    if team is not None and team.pod_security == "restricted":
        yield Problem(
            ("team",),
            f"must be a team whose containers may run as root, as those of every kind of job do, got"
            f" {team.name} with pod_security: restricted; set pod_security: baseline in the environment, or name"
            " another team",
        )


@BOOK.rule
def namespaces_of_teams_go_with_teams(context: Context) -> Found:
    """Refuse a namespace together with a team, and a team's namespace without the team."""
    namespace = context.job.namespace
    if namespace is None:
        return
    at = ("namespace",)
    if context.job.team is not None:
        own = governance.namespace(context.job.team)
        yield Problem(
            at,
            Sentence(
                f"cannot be set together with team, whose namespace is {own}, got {namespace}; ",
                *(Removal("namespace"), ", or ", Removal("team")),
            ),
        )
        return
    owners = {team.namespace: team.name for team in context.teams}
    if namespace in owners:
        yield Problem(
            at,
            Sentence(
                "must not be the namespace of a team without the team, which would bypass its queue and quota, got"
                f" {namespace}; ",
                Setting("team", owners[namespace]),
                " in place of namespace",
            ),
        )
    elif namespace.startswith(_PREFIX):
        near = closest(namespace.removeprefix(_PREFIX), owners.values())
        fix = f"did you mean team: {near} in place of namespace?" if near else "name another namespace"
        yield Problem(at, f"must not begin with {_PREFIX}, which is for teams, got {namespace} and no such team; {fix}")


@BOOK.rule
def jobs_have_a_quota(context: Context) -> Found:
    """Warn about a job outside of all quotas if there are teams."""
    namespace = context.job.namespace
    names = [team.name for team in context.teams if team.active]
    job = context.job
    if job.priority or job.topology or job.restart.spares:
        return  # these are refused without a team
    if job.team is None and names and not (namespace or "").startswith(_PREFIX):
        yield warning(
            ("team",),
            Sentence(
                "without a team the job runs outside of all quotas, on nodes that belong to the quotas of teams; ",
                Setting("team", listing(names), verb="add"),
            ),
        )


@BOOK.rule
def priority_is_a_class(context: Context) -> Found:
    """Refuse a priority without effect, and classes that the environment does not have."""
    name, section = context.job.priority, context.environment.task_governance
    if name is None:
        return
    at = ("priority",)
    if section is None or section.ordering != "priority":
        got = "no task_governance" if section is None else f"ordering: {section.ordering}"
        yield Problem(
            at,
            Sentence(
                f"must be left out if waiting jobs are not ordered by priority ({got}), got {name}; ",
                Removal("priority"),
                "" if section is None else ", or set ordering: priority in the environment",
            ),
        )
        return
    names = _classes(section)
    if name not in names:
        bare = name.removesuffix(governance.priority_class(""))
        fix = f"did you mean {bare}?" if bare in names else fix_for(name, names, key="priority")
        said = f'must be a priority class of {context.environment.name} ({listing(names)}), got "{name}"; '
        yield Problem(at, Sentence(said, fix))
    elif context.job.team is None:
        yield Problem(
            at,
            f"needs a team, because priorities order the jobs of queues, got {name}; set team, or remove priority",
        )


@BOOK.rule
def spares_have_a_queue(context: Context) -> Found:
    """Refuse spare nodes outside of a queue, because Kueue reserves them."""
    spares = context.job.restart.spares
    if spares and context.job.team is None:
        yield Problem(
            ("restart", "spares"),
            f"needs a team, because Kueue reserves the spare nodes, got {spares}; set team, or remove spares",
        )


@BOOK.rule
def teams_can_have_what_is_asked(context: Context) -> Found:
    """Refuse jobs that Kueue never admits: beyond the quota and the borrowing limit. Warn about borrowing."""
    team = context.team
    if team is None or not team.active or _refused_already(context):
        return
    sizes, spares = context.job.elastic, context.job.restart.spares
    # an elastic job is admitted with its initial number of nodes, and then grows
    pods = 2 if _is_in_pairs(context) else context.nodes
    shares = _shares(context, team)
    if not shares:
        owned = dict.fromkeys(row.instance_type for row in team.quota)
        yield Problem(
            ("team",),
            f"must have a quota of {context.types}, the type of group {context.group.name}, got {team.name} with a"
            f" quota of {listing(owned, last='and')}; add one to the team in the environment, or name another team",
        )
        return
    # the pods of one job use one type: the best type decides
    best = max(shares, key=lambda each: each.most_pods)
    if best.most_pods < pods + spares:
        yield _beyond(context, team.name, best, pods + spares)
        return
    own = max(each.own_pods for each in shares)
    if own < context.nodes + spares:
        yield warning(
            ("nodes",),
            f"{team.name} owns compute for {_nodes(own)} of this job, got {context.nodes + spares}: it borrows the"
            " rest, waits until it is idle, and loses it when its owners reclaim it",
        )
    if sizes is not None and best.most_pods < sizes.max_nodes:
        yield warning(
            ("elastic", "max_nodes"),
            f"{team.name} has compute for at most {_nodes(best.most_pods)} of this job, including what it"
            f" may borrow, got {sizes.max_nodes}; the job never grows so far",
        )


@dataclass(frozen=True, kw_only=True)
class _Share:
    """The amounts of an instance type that a team can use and that one pod uses, by Kubernetes resource name."""

    instance_type: str
    pod: Mapping[str, Decimal]
    own: Mapping[str, Decimal]
    most: Mapping[str, Decimal]

    @property
    def own_pods(self) -> int:
        """Return how many pods fit into the team's own quota."""
        return int(min(self.own[name] // wanted for name, wanted in self.pod.items()))

    @property
    def most_pods(self) -> int:
        """Return the maximum number of pods, including what can be borrowed."""
        # Karpenter can add nodes without a limit
        bounded = [self.most[name] // wanted for name, wanted in self.pod.items() if self.most[name].is_finite()]
        return int(min(bounded, default=_ENDLESS))


def _shares(context: Context, team: Team) -> list[_Share]:
    """Yield what the team can use of each type of the group, except types without a quota and borrowing limit."""
    plan, model = context.plan, ClusterModel.of(context.environment)
    queue = model.queue(team.name)
    device = context.shape.accelerator_resource
    wanted = {
        scheduling.name_in_quotas(device) if device else "": plan.accelerators,
        "cpu": plan.vcpu,
        "memory": plan.memory_gib * GIB,
        EFA_RESOURCE: plan.efa,
    }
    pod = {name: Decimal(value) for name, value in wanted.items() if value}
    return [
        _Share(
            instance_type=name,
            pod=pod,
            own={each: queue.nominal.get((name, each), ZERO) for each in pod},
            most={each: max(ZERO, model.available(queue, (name, each), {})) for each in pod},
        )
        for name in context.group.all_instance_types
        if name in queue.types
    ]


def _beyond(context: Context, team: str, best: _Share, pods: int) -> Problem:
    # accelerators are reported before other scarce resources
    resource = min(best.pod, key=lambda name: best.most[name] // best.pod[name])
    unit, what = _UNITS.get(resource, (1, _device(context)))
    most, own = best.most[resource] / unit, best.own[resource] / unit
    borrowed = (
        f"{_number(own)} of its own and {_number(most - own)} that it may borrow" if most > own else "all its own"
    )
    pair = " for one pair" if _is_in_pairs(context) else ""
    sizes = context.job.elastic
    # a test between nodes needs two nodes
    least = sizes.min_nodes if sizes is not None else 2 if context.kind == "nccl" else 1
    fewer = (Setting("nodes", or_less(best.most_pods)), ", or ") if best.most_pods >= least else ()
    # explains a number that is not in the job file
    of_default = f" on all {context.nodes} nodes of group {context.group.name}, the default"
    default = of_default if context.job.nodes is None and not pair else ""
    return Problem(
        ("nodes",),
        Sentence(
            f"must be at most the {_number(most)} {what} of {best.instance_type} that team {team} can use"
            f" ({borrowed}), got {_number(pods * best.pod[resource] / unit)}{pair}{default}; ",
            *fewer,
            "raise the team's quota in the environment",
        ),
    )


def _device(context: Context) -> str:
    profile = mig_profile(context.group)
    return f"partitions {profile}" if profile else "accelerators"


def _number(value: Decimal) -> str:
    return f"{float(round(value, 2)):g}"


def _refused_already(context: Context) -> bool:
    """Return whether the job requests more than the group has, so that the quota is not the cause."""
    found = (problem for book in (nodes.BOOK, elastic.BOOK) for rule in book.rules for problem in rule.run(context))
    return any(problem.severity is Severity.ERROR for problem in found)


def _is_in_pairs(context: Context) -> bool:
    """Return whether each pair of nodes is a separate job, which does not wait for others."""
    return context.kind == "nccl" and context.job.measure.pairs


def _nodes(count: int) -> str:
    return f"{count} {'node' if count == 1 else 'nodes'}"


def _classes(section: TaskGovernance) -> list[str]:
    return [each.name for each in section.resolved_priority_classes]
