"""Whether the task-governance add-on can become the version that the environment wants, and serves its queues."""

from __future__ import annotations

from collections.abc import Iterator

from hyperpod_cdk.catalog import addons, governance
from hyperpod_cdk.checks.answers import Aws, NotAnswered
from hyperpod_cdk.checks.model import Case, Found, check, error
from hyperpod_cdk.config import Environment

AREA = "task-governance"

_ADDON = addons.TASK_GOVERNANCE
_PIN = f"eks.addon_versions.{_ADDON}"


@check(
    area=AREA,
    asks=("eks_cluster", "installed_addons"),
    may_lack=("eks_cluster",),
    inputs=f"{_PIN}; the version of the add-on on the EKS cluster, if both exist already.",
    passes="No version is pinned, or the add-on is not installed yet, or AWS documents the step from the installed"
    " version to the pinned one.",
    fails="The step needs a migration of Kueue's custom resource definitions, which EKS's update of the add-on does not"
    " do.",
    skips="EKS does not answer.",
    by_hand=f"aws eks describe-addon --cluster-name prod-eks --addon-name {_ADDON} --query addon.addonVersion",
)
def task_governance_can_be_updated(case: Case, aws: Aws) -> Iterator[Found]:
    """Compare the installed version with the pinned one."""
    wanted = case.environment.eks.addon_versions.get(_ADDON)
    installed = None if wanted is None else _installed(case.environment, aws)
    problem = governance.update_problem(installed, wanted) if installed and wanted else None
    if problem:
        yield error(
            _PIN,
            f"{problem}; update the add-on in the HyperPod console, which migrates them, and then deploy, or pin"
            f" {installed}",
        )


@check(
    area=AREA,
    asks=("eks_cluster", "installed_addons", "addon_versions"),
    may_lack=("eks_cluster",),
    inputs=f"teams[].default_queue, {_PIN}; the version of the add-on on the EKS cluster, else EKS's default version.",
    passes=f"No team has a default queue, or a version is pinned, or the Kueue of the version serves"
    f" {governance.KUEUE_API}, which is the API version of queues if no version is pinned.",
    fails="It is older, and the cluster would not have this kind.",
    skips="EKS does not answer, or does not show its default version. Another check reports whether EKS has the add-on"
    " at all.",
    by_hand="kubectl api-versions | grep kueue.x-k8s.io",
)
def task_governance_serves_the_default_queues(case: Case, aws: Aws) -> Iterator[Found]:
    """Find the current or future version on the cluster."""
    environment = case.environment
    teams = [] if environment.task_governance is None else environment.task_governance.teams
    index = next((index for index, team in enumerate(teams) if team.default_queue), None)
    if index is None or _ADDON in environment.eks.addon_versions:
        return
    version = _installed(environment, aws)
    if version is None:
        offered = aws.addon_versions(_ADDON, environment.eks.kubernetes_version)
        if offered is not None and not offered.default:
            raise NotAnswered(f"EKS does not show which version of {_ADDON} it installs by default")
        version = None if offered is None else offered.default
    if version is None or governance.serves_kueue_api(version, governance.KUEUE_API):
        return
    fix = (
        f"set {_PIN}: {version}, and queues are written for it"
        if environment.eks.installs(_ADDON)
        else "have its owner update the add-on"
    )
    yield error(
        f"task_governance.teams[{index}].default_queue",
        f"needs a task governance whose Kueue serves {governance.KUEUE_API}, got {version}; {fix}, or set"
        " default_queue: false",
    )


def _installed(environment: Environment, aws: Aws) -> str | None:
    """The version on the environment's EKS cluster, None if it is not installed or the cluster does not exist yet."""
    cluster = aws.eks_cluster(environment.eks_cluster_name)
    if cluster is None:
        if environment.eks.is_existing:
            raise NotAnswered(f"there is no EKS cluster {environment.eks_cluster_name}")
        return None
    addon = aws.installed_addons(cluster.name).named(_ADDON)
    return None if addon is None else addon.version
