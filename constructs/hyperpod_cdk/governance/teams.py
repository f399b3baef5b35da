"""Teams, priority classes and quotas of task governance, checked on their own, and in the API's terms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any, Literal

from hyperpod_cdk.catalog import governance, instance_types
from hyperpod_cdk.catalog.instance_types import InstanceType
from hyperpod_cdk.catalog.rules import repeated, repeated_problem
from hyperpod_cdk.catalog.sentences import in_python
from hyperpod_cdk.config import task_governance as fields
from hyperpod_cdk.config.argument_types import judged
from hyperpod_cdk.config.arguments import is_token, refuse, refuse_all, refuse_for, unknown_type_problem

Preemption = Literal["lower_priority", "never"]
Sharing = Literal["lend_and_borrow", "lend", "dont_lend"]
Access = Literal["access_policies", "rbac"]
PodSecurity = Literal["baseline", "privileged", "restricted"]

_API_WORDS = {"count": "Count", "accelerators": "Accelerators", "vcpu": "VCpu", "memory_gib": "MemoryInGiB"}


@judged()
@dataclass(frozen=True, kw_only=True)
class PriorityClass:
    """A class that tasks name. A task without a class has weight 0.

    ``name`` (str): name of the class. Raises ValueError unless it is 1 to 54 lower-case letters, digits and hyphens.

    ``weight`` (int, weight): rank of the class; 100 goes first. Raises ValueError unless it is 0 to 100.
    """

    name: str
    weight: int

    def __post_init__(self) -> None:
        """Check name and weight."""
        refuse(fields.PriorityClass, where=f"priority class {self.name}", name=self.name, weight=self.weight)


@judged()
@dataclass(frozen=True, kw_only=True)
class AcceleratorPartition:
    """Partitions of GPUs in a quota.

    ``profile`` (str): MIG profile of the partitions, such as ``mig-3g.40gb``. Raises ValueError for a profile that the
    API does not have; whether a type supports it is checked by ``QuotaRow``.

    ``count`` (int, partitions): number of partitions. Raises ValueError unless it is 1 to 10000000.
    """

    profile: str
    count: int

    def __post_init__(self) -> None:
        """Check that the API has the profile; whether a type supports it is not checked."""
        refuse(fields.AcceleratorPartition, where=f"partition {self.profile}", profile=self.profile, count=self.count)


@judged()
@dataclass(frozen=True, kw_only=True)
class QuotaRow:
    """The compute of one instance type that a team is guaranteed, or may borrow.

    Either whole instances (``count``), or ``accelerators``, ``vcpu`` and ``memory_gib`` (over all instances of the
    type), or partitions of GPUs, with ``vcpu`` and ``memory_gib`` if wanted. SageMaker fills in proportionally what is
    left out of accelerators, vCPU and memory; accelerators are 0 if only vCPU or memory is given.

    ``instance_type`` (str): the instance type, such as ``ml.p5.48xlarge``. Raises ValueError for a type that is neither
    in the catalog nor in ``stated_types``.

    ``count`` (int, instances): whole instances. Default: none. Raises ValueError unless it is 1 to 10000000, together
    with another amount, and if no amount is given.

    ``accelerators`` (int, accelerators): accelerators over all instances of the type. Default: none. Raises ValueError
    unless it is 1 to 10000000, and for a type without accelerators.

    ``vcpu`` (float, vCPUs): vCPUs over all instances of the type. Default: none. Raises ValueError unless it is 1 to
    10000000.

    ``memory_gib`` (float, GiB): memory over all instances of the type. Default: none. Raises ValueError unless it is 1
    to 10000000.

    ``accelerator_partition`` (AcceleratorPartition): partitions of GPUs. Default: none. Raises ValueError for a profile
    that the type does not support, and together with ``count`` or ``accelerators``.

    ``stated_types`` (Mapping[str, InstanceType]): your own rows, by name, for types that the catalog does not have or
    whose row is wrong. Default: none.
    """

    instance_type: str
    count: int | None = None
    accelerators: int | None = None
    vcpu: float | None = None
    memory_gib: float | None = None
    accelerator_partition: AcceleratorPartition | None = None
    stated_types: Mapping[str, InstanceType] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check that the type is known, that there is one kind of amounts, and nothing negative."""
        amounts = self._amounts()
        where = f"quota of {self.instance_type}"
        partition = () if self.accelerator_partition is None else ("accelerator_partition",)
        unknown = unknown_type_problem(self.instance_type, key="instance_type", stated=self.stated_types)
        numbers = self.stated_types.get(self.instance_type) or instance_types.get(self.instance_type)
        profile = None if self.accelerator_partition is None else self.accelerator_partition.profile
        refuse_all(
            lambda: check(governance.amounts_problem((*amounts, *partition)), where=where),
            lambda: refuse(fields.Quota, where=where, instance_type=self.instance_type),
            lambda: check(unknown and f"instance_type: {unknown}", where=where),
            (
                lambda: refuse(fields.Quota, where=where, **amounts),
                lambda: refuse_for(
                    (
                        f"{'.'.join(keys)}: {in_python(problem)}"
                        for row in ([] if numbers is None else [numbers])
                        for keys, problem in governance.accelerator_problems(
                            row, accelerators=self.accelerators, profile=profile
                        )
                    ),
                    where=where,
                ),
            ),
        )

    @property
    def key(self) -> str:
        """What a team can have only once: a type, or a type with a profile."""
        partition = self.accelerator_partition
        return self.instance_type if partition is None else f"{self.instance_type} with {partition.profile}"

    def properties(self) -> dict[str, Any]:
        """Return the API's ComputeQuotaResourceConfig."""
        partition = self.accelerator_partition
        return {
            "InstanceType": self.instance_type,
            **{_API_WORDS[name]: amount for name, amount in self._amounts().items()},
            **(
                {}
                if partition is None
                else {"AcceleratorPartition": {"Type": partition.profile, "Count": partition.count}}
            ),
        }

    def limited(self, numbers: InstanceType) -> dict[str, float]:
        """Return the accelerators and EFA interfaces of the row, by their names in a ResourceQuota.

        ``numbers`` are those of the instance type. Interfaces follow the share of a node's accelerators; vCPU and
        memory are left out, because a limit on them requires every pod to state its own.
        """
        partition = self.accelerator_partition
        if partition is not None:
            return {governance.limited_resource("partition", profile=partition.profile): partition.count}
        if self.count is not None:
            nodes, accelerators = float(self.count), float(self.count * numbers.accelerator_count)
        else:
            accelerators = float(self.accelerators or 0)
            nodes = accelerators / numbers.accelerator_count if numbers.accelerator_count else 0.0
        found: dict[str, float] = {}
        if numbers.is_nvidia:
            found[governance.limited_resource("gpu")] = accelerators
        elif numbers.is_neuron:
            # the device plugin offers each device under both names
            for kind in ("neuron", "neurondevice"):
                found[governance.limited_resource(kind)] = accelerators
        if numbers.efa_count:
            found[governance.limited_resource("efa")] = nodes * numbers.efa_count
        return found

    def _amounts(self) -> dict[str, Any]:
        return {name: value for name in _API_WORDS if (value := getattr(self, name)) is not None}


@judged(known=("name", "borrow_limit_percent"))
@dataclass(frozen=True, kw_only=True)
class Team:
    """A team: its guaranteed compute, how it shares idle compute, and its members. Tokens are not checked.

    ``member_role_arns`` are IAM roles that may run jobs in the team's namespace ``hyperpod-ns-<name>``; ``access`` says
    whether through AWS's access policies or through Kubernetes roles. ``pod_security`` is the level of Kubernetes' Pod
    Security Standards that the namespace enforces: members may create pods, and a privileged one is root on its node,
    with the permissions of the node's role. ``default_queue`` sends jobs of the namespace that name no queue to the
    team's. ``resource_quota`` are the limits (resource -> quantity) of a Kubernetes ResourceQuota in the namespace;
    without them there is none.

    ``name`` (str): name of the team. Raises ValueError unless it is 1 to 40 lower-case letters, digits and hyphens.

    ``quota`` (Sequence[QuotaRow]): what the team is guaranteed, each type once. Raises ValueError for no row, more than
    15, and a repeated type.

    ``fair_share_weight`` (int, weight): order of teams that request idle compute, only with fair share. Default: 0.
    Raises ValueError unless it is 0 to 100.

    ``preemption`` ("lower_priority" | "never"): whether a task of the team can preempt the team's own tasks of lower
    priority. Default: ``lower_priority``. Raises ValueError for another value.

    ``sharing`` ("lend_and_borrow" | "lend" | "dont_lend"): whether the team lends and borrows idle compute. Default:
    ``lend_and_borrow``. Raises ValueError for another value.

    ``borrow_limit_percent`` (int, percent of its quota): how much idle compute the team may borrow. Default: 50 if the
    team borrows. Raises ValueError unless it is 1 to 500, and for a team that does not borrow.

    ``absolute_borrow_limits`` (Sequence[QuotaRow]): limits of single types, independent of the percentage. Default:
    none. Raises ValueError for more than 15, a repeated type, and a team that does not borrow.

    ``active`` (bool): whether the quota has an effect. Default: yes.

    ``description`` (str): description of the quota, 1 to 1024 characters on one line. Default: none. Raises ValueError
    for other text.

    ``quota_name`` (str): name of the quota. Default: made of ``name_prefix`` and the team's name. Raises ValueError
    unless it is 1 to 63 letters, digits and hyphens.

    ``member_role_arns`` (Sequence[str], ARNs): IAM roles that may run jobs in the team's namespace, each once. Default:
    none. Raises ValueError for text that is not the ARN of a role, and for a repeated one.

    ``access`` ("access_policies" | "rbac"): whether members get access through AWS's access policies or through
    Kubernetes roles. Default: ``access_policies``. Raises ValueError for another value.

    ``pod_security`` ("baseline" | "privileged" | "restricted"): level of the Pod Security Standards that the namespace
    enforces. Default: ``baseline``. Raises ValueError for another value.

    ``default_queue`` (bool): whether jobs without a queue go to the team's. Default: no.

    ``resource_quota`` (Mapping[str, str]): resource -> quantity as text, such as ``"512Gi"``. Default: no
    ResourceQuota. Raises ValueError for a key that no ResourceQuota may have, a limit that Kubernetes does not
    enforce, and text that is not a quantity.
    """

    name: str
    quota: Sequence[QuotaRow]
    fair_share_weight: int = governance.DEFAULT_FAIR_SHARE_WEIGHT
    preemption: Preemption = "lower_priority"
    sharing: Sharing = "lend_and_borrow"
    borrow_limit_percent: int | None = None
    absolute_borrow_limits: Sequence[QuotaRow] = ()
    active: bool = True
    description: str | None = None
    quota_name: str | None = None
    member_role_arns: Sequence[str] = ()
    access: Access = "access_policies"
    pod_security: PodSecurity = "baseline"
    default_queue: bool = False
    resource_quota: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check everything that does not depend on other teams."""
        where = f"team {self.name}"
        limit = self.borrow_limit_percent
        refuse_all(
            lambda: refuse(
                fields.Team,
                where=where,
                name=self.name,
                description=self.description,
                quota_name=self.quota_name,
                fair_share_weight=self.fair_share_weight,
                preemption=self.preemption,
                access=self.access,
                pod_security=self.pod_security,
                member_role_arns=self.member_role_arns,
                resource_quota=self.resource_quota,
            ),
            lambda: check(
                None if self.quota else f"quota: {fields.SOME_QUOTA.problem(self.quota, 'quota')}",
                governance.QUOTA_RESOURCES.count_problem(len(self.quota), what="quota rows"),
                _same_row_problem([row.key for row in self.quota], listed="quota"),
                governance.ABSOLUTE_BORROW_LIMITS.count_problem(len(self.absolute_borrow_limits), what="borrow limits"),
                _same_row_problem([row.key for row in self.absolute_borrow_limits], listed="absolute_borrow_limits"),
                where=where,
            ),
            lambda: check(
                None if limit is None else governance.BORROW_LIMIT_PERCENT.problem(limit, key="borrow_limit_percent"),
                where=f"{where}: borrow_limit_percent",
            ),
            (
                lambda: refuse(fields.Sharing, where=where, called={"strategy": "sharing"}, strategy=self.sharing),
                lambda: refuse_for(self._borrowing_problems(), where=where),
            ),
            lambda: check(
                repeated_problem([arn for arn in self.member_role_arns if not is_token(arn)], key="member_role_arns"),
                *(
                    None if problem is None else f"resource_quota[{name!r}]: {problem}"
                    for name in self.resource_quota
                    if not is_token(name) and (problem := governance.limited_resource_problem(name))
                ),
                where=where,
            ),
        )

    @property
    def namespace(self) -> str:
        """The namespace that SageMaker creates for the team."""
        return governance.namespace(self.name)

    @property
    def resolved_borrow_limit_percent(self) -> int:
        """The percentage of its own quota that the team may borrow; 0 for a team that does not."""
        if self.sharing != "lend_and_borrow":
            return 0
        limit = self.borrow_limit_percent
        return governance.DEFAULT_BORROW_LIMIT_PERCENT if limit is None else limit

    def quota_config(self) -> dict[str, Any]:
        """Return the API's ComputeQuotaConfig."""
        sharing: dict[str, Any] = {"Strategy": governance.SHARING[self.sharing]}
        if self.sharing == "lend_and_borrow":
            sharing["BorrowLimit"] = self.resolved_borrow_limit_percent
        if self.absolute_borrow_limits:
            sharing["AbsoluteBorrowLimits"] = [row.properties() for row in self.absolute_borrow_limits]
        return {
            "ComputeQuotaResources": [row.properties() for row in self.quota],
            "ResourceSharingConfig": sharing,
            "PreemptTeamTasks": governance.PREEMPTION[self.preemption],
        }

    def _borrowing_problems(self) -> Iterator[str]:
        if self.sharing == "lend_and_borrow":
            return
        limits = {
            "borrow_limit_percent": self.borrow_limit_percent is not None,
            "absolute_borrow_limits": bool(self.absolute_borrow_limits),
        }
        for key in (key for key, is_given in limits.items() if is_given):
            yield f"{key}: {in_python(governance.borrowing_problem(self.sharing, key=key, strategy='sharing'))}"


def resource_limits(team: Team, instance_types: Mapping[str, InstanceType]) -> dict[str, str]:
    """Return the limits of a ResourceQuota with everything that a team owns and may borrow, for
    ``Team.resource_quota``.

    That is accelerators and EFA interfaces of the instance types in ``instance_types`` (name -> numbers); rows of other
    types are left out. A type's absolute borrow limit takes precedence over the percentage.
    """
    absolute = {row.key: row for row in team.absolute_borrow_limits}
    factor = 1 + team.resolved_borrow_limit_percent / 100
    limits: dict[str, float] = {}
    for row in team.quota:
        numbers = instance_types.get(row.instance_type)
        if numbers is None:
            continue
        share = 1.0 if row.key in absolute else factor
        for name, amount in row.limited(numbers).items():
            limits[name] = limits.get(name, 0.0) + amount * share
    for row in absolute.values():
        numbers = instance_types.get(row.instance_type)
        for name, amount in ({} if numbers is None else row.limited(numbers)).items():
            limits[name] = limits.get(name, 0.0) + amount
    return {name: str(ceil(round(amount, 6))) for name, amount in sorted(limits.items()) if amount}


def _same_row_problem(keys: Sequence[str], *, listed: str) -> str | None:
    twice = next(repeated(keys), None)
    if twice is None:
        return None
    index, first, key = twice
    said = governance.same_row_problem(key, f"{listed}[{first}]")
    return f"{listed}[{index}].instance_type: {said}"


def check(*problems: str | None, where: str) -> None:
    """Raise ValueError with all problems, each of which names its place; None is no problem."""
    refuse_for((in_python(problem) for problem in problems if problem is not None), where=where)
