"""The account file: what the rehearsed AWS account owns before anything is deployed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hyperpod_cdk.catalog import quotas
from hyperpod_cdk.rehearsal.embedded.context import Context

if TYPE_CHECKING:
    from hyperpod_cdk.config import Environment

DEFAULT_ACCOUNT_FILE = Path(__file__).parent.parent / "account.yaml"
"""The account file that ships with the package."""

PLAN_RESOURCE = ":training-plan/"


class AccountFileError(ValueError):
    """The account file cannot be read; the message says where and how to mend it."""


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TrainingPlan(_Section):
    """A training plan that the account bought."""

    name: Annotated[str, Field(pattern=r"^[a-zA-Z0-9](-*[a-zA-Z0-9]){0,63}$")]
    instance_type: str
    instance_count: Annotated[int, Field(ge=1)]
    availability_zone_id: str
    status: Literal["Pending", "Active", "Scheduled", "Expired", "Failed"] = "Active"
    target_resources: tuple[Literal["training-job", "hyperpod-cluster", "endpoint", "studio-apps"], ...] = (
        "hyperpod-cluster",
    )
    start_time: datetime | None = None
    end_time: datetime | None = None
    upfront_fee: str = "0.00"


class TrainingPlans(_Section):
    """The plans stated in the file, and whether the plans that the environment names exist as well."""

    from_environment: bool = False
    plans: tuple[TrainingPlan, ...] = ()


class Existing(_Section):
    """What stood in the account before: names of IAM roles and of S3 buckets (None: any bucket exists)."""

    from_environment: bool = False
    iam_roles: tuple[str, ...] = ()
    s3_buckets: tuple[str, ...] | None = None


class AccountFile(_Section):
    """The account file. Every section may be left out; then the account has AWS's defaults and owns nothing.

    `quotas` maps a service code (sagemaker, vpc, ec2, eks, fsx) to applied values by quota name. `capacity` maps an
    instance type to the availability zone IDs that have capacity for it on demand; a type not named has it everywhere.
    """

    quotas: Mapping[str, Mapping[str, float] | bool] = {}
    training_plans: TrainingPlans = TrainingPlans()
    existing: Existing = Existing()
    capacity: Mapping[str, tuple[str, ...]] = {}

    def applied_quota(self, service: str, name: str) -> float | None:
        """The value the account was granted, None where it has AWS's default."""
        values = self.quotas.get(service) or {}
        return values.get(name) if isinstance(values, Mapping) else None

    def applied_quotas(self, service: str) -> Mapping[str, float]:
        """Every value granted for a service, by quota name."""
        values = self.quotas.get(service) or {}
        return values if isinstance(values, Mapping) else {}

    def training_plan(self, name: str) -> TrainingPlan | None:
        """The plan of this name."""
        return next((plan for plan in self.training_plans.plans if plan.name == name), None)


@dataclass
class _Parsed:
    file: AccountFile | None = None


def account_of(context: Context) -> AccountFile:
    """The account file of this embedded AWS, read once."""
    parsed = context.state.store(_Parsed)
    with context.state.lock:
        if parsed.file is None:
            parsed.file = _validated(context.account_file.document, "account file")
        return parsed.file


def existing_role_names(context: Context) -> frozenset[str]:
    """Roles that the account file says exist, though no stack of the rehearsal made them."""
    return frozenset(account_of(context).existing.iam_roles)


def read_account_file(path: Path) -> dict[str, Any]:
    """The document of an account file; raises AccountFileError where it is no mapping or has an unknown key."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (OSError, yaml.YAMLError) as error:
        raise AccountFileError(f"{path}: {error}") from error
    if not isinstance(document, dict):
        raise AccountFileError(f"{path}: must be a mapping, got {type(document).__name__}")
    _validated(document, str(path))
    return document


def load_document(account_file: Path | None = None, environment_file: Path | None = None) -> dict[str, Any]:
    """The resolved document of an account file (default: the shipped one) for the environment of a file, if any."""
    # the configuration's models are only needed where an environment is given
    from hyperpod_cdk.config import load_environment  # noqa: PLC0415

    document = read_account_file(account_file or DEFAULT_ACCOUNT_FILE)
    if environment_file is None:
        return document
    return resolved(document, load_environment(environment_file).environment)


def resolved(document: Mapping[str, Any], environment: Environment) -> dict[str, Any]:
    """The document with every `from_environment: true` filled in from an environment; what is stated stays."""
    file = _validated(document, "account file")
    result = dict(document)
    if file.training_plans.from_environment:
        stated = {plan.name for plan in file.training_plans.plans}
        plans = [plan.model_dump(mode="json") for plan in file.training_plans.plans]
        plans += [plan for plan in _plans_of(environment) if plan["name"] not in stated]
        result["training_plans"] = {"plans": plans}
    if file.quotas.get("from_environment"):
        stated_quotas = dict(file.applied_quotas("sagemaker"))
        others = {service: values for service, values in file.quotas.items() if service != "from_environment"}
        result["quotas"] = {**others, "sagemaker": {**_quotas_of(environment), **stated_quotas}}
    if file.existing.from_environment:
        roles = {*file.existing.iam_roles, *_roles_of(environment)}
        result["existing"] = {**_stated(document, "existing"), "iam_roles": sorted(roles)}
        result["existing"].pop("from_environment", None)
    return result


def _validated(document: Mapping[str, Any], where: str) -> AccountFile:
    try:
        return AccountFile.model_validate(dict(document))
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, problem['loc']))}: {problem['msg'].lower()}" for problem in error.errors()
        )
        raise AccountFileError(f"{where}: {problems}") from error


def _stated(document: Mapping[str, Any], section: str) -> dict[str, Any]:
    return dict(document.get(section) or {})


def _plans_of(environment: Environment) -> Iterator[dict[str, Any]]:
    home = f":{environment.region}:{environment.account}{PLAN_RESOURCE}"
    counts: Counter[str] = Counter()
    first: dict[str, Any] = {}
    for group in environment.hyperpod.instance_groups:
        arn = group.training_plan_arn
        # a plan of another region or account is not this account's: AWS does not find it, neither does the rehearsal
        if arn and home in arn:
            counts[arn] += group.count
            first.setdefault(arn, group)
    for arn, count in counts.items():
        yield {
            "name": arn.rsplit("/", 1)[-1],
            "instance_type": next(iter(_types_of(first[arn]))),
            "instance_count": max(count, 1),
            "availability_zone_id": first[arn].availability_zone_id,
        }


def _quotas_of(environment: Environment) -> dict[str, float]:
    needs: Counter[quotas.Quota] = Counter()
    largest_volume = 0
    for group in environment.hyperpod.instance_groups:
        spot = group.capacity == "spot"
        keys = ["hyperpod_instances_total", "hyperpod_instances_per_cluster"]
        keys += ["hyperpod_spot_instances_total", "hyperpod_spot_instances_per_cluster"] if spot else []
        usage = quotas.cluster_spot_usage if spot else quotas.cluster_usage
        rows = [*map(quotas.get, keys), *map(usage, _types_of(group))]
        needs.update(dict.fromkeys(rows, group.count))
        largest_volume = max(largest_volume, group.volume_gib or 0)
    # twice the need, so that a rehearsed replacement may hold the old cluster and the new one for a while
    granted = {row.name: float(max(2 * need, row.default)) for row, need in needs.items()}
    return {**granted, quotas.get("hyperpod_ebs_volume_gb").name: float(largest_volume)}


def _roles_of(environment: Environment) -> Iterable[str]:
    arns = list(environment.eks.admin_role_arns)
    governance = environment.task_governance
    for team in governance.teams if governance else ():
        arns += getattr(team, "member_role_arns", None) or ()
    return (arn.rsplit("/", 1)[-1] for arn in arns)


def _types_of(group: Any) -> Iterable[str]:
    return [group.instance_type] if group.instance_type else list(group.instance_types or ())
