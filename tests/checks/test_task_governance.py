"""Task governance's add-on: the step to the pinned version, and the API version of default queues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hyperpod_cdk.checks.answers import AddonVersions, EksClusterAnswer, InstalledAddon, NotAnswered
from hyperpod_cdk.checks.model import Result, Status
from tests.support.fake_aws import FakeAws

UPDATE = "task_governance_can_be_updated"
QUEUES = "task_governance_serves_the_default_queues"
GOVERNANCE = "amazon-sagemaker-hyperpod-taskgovernance"
PINNED = {"eks.addon_versions": {GOVERNANCE: "v1.6.0-eksbuild.1"}}
QUEUE = {"task_governance.teams[0].default_queue": True}

CLUSTER = EksClusterAnswer(
    name="prod-eks",
    arn="arn:aws:eks:us-east-1:111122223333:cluster/prod-eks",
    status="ACTIVE",
    kubernetes_version="1.35",
    authentication_mode="API",
    vpc_id="vpc-0c1f4e8a9b7d26350",
    subnet_ids=(),
    security_group_ids=(),
    cluster_security_group_id="sg-03e9b5d7f1a8c2646",
    endpoint="https://4C7E.gr7.us-east-1.eks.amazonaws.com",
    endpoint_public=True,
    endpoint_private=True,
    public_access_cidrs=("0.0.0.0/0",),
    certificate_authority="",
    oidc_issuer="",
)

Run = Callable[..., Result]


@pytest.fixture
def run(case_of: Any, run_check: Any, fake_aws: FakeAws) -> Run:
    """Runs a check on environments/prod.yaml with changes; ``installed`` is the add-on's version on the cluster."""

    def on(check: str, changes: dict[str, Any], *, installed: str | None = None, default: str = "") -> Result:
        case = case_of(changes)
        version = case.environment.eks.kubernetes_version
        addon = InstalledAddon(name=GOVERNANCE, version=installed or "", status="ACTIVE")
        fake_aws.answers.eks_cluster = {"prod-eks": CLUSTER if installed else None}
        fake_aws.answers.installed_addons = {"prod-eks": (addon,)}
        offered = AddonVersions(addon=GOVERNANCE, kubernetes_version=version, versions=(default,), default=default)
        fake_aws.answers.addon_versions = {(GOVERNANCE, version): offered if default else None}
        result: Result = run_check(check, case, fake_aws)
        return result

    return on


def said(result: Result) -> list[str]:
    return [f"{finding.severity.value}: {finding.path}: {finding.message}" for finding in result.findings]


@pytest.mark.check("task_governance_can_be_updated", "fails")
@pytest.mark.parametrize("installed", ["v1.3.1-eksbuild.2", "v1.0.0-eksbuild.4"])
def test_a_step_that_skips_the_migration(run: Run, installed: str) -> None:
    assert said(run(UPDATE, PINNED, installed=installed)) == [
        (
            f"error: eks.addon_versions.{GOVERNANCE}: must not skip from {installed} to v1.6.0-eksbuild.1, because"
            " releases before 1.4 store Kueue's custom resource definitions in a version that releases from 1.5 on no"
            " longer have; update the add-on in the HyperPod console, which migrates them, and then deploy, or pin"
            f" {installed}"
        )
    ]


@pytest.mark.check("task_governance_can_be_updated", "passes")
@pytest.mark.parametrize("installed", ["v1.4.0-eksbuild.1", "v1.5.0-eksbuild.1", "v1.6.0-eksbuild.1", None])
def test_steps_that_eks_takes(run: Run, installed: str | None) -> None:
    assert run(UPDATE, PINNED, installed=installed).status is Status.PASSED


def test_without_a_pinned_version_nothing_is_updated(run: Run, fake_aws: FakeAws) -> None:
    assert run(UPDATE, {}, installed="v1.3.1-eksbuild.2").status is Status.NOT_NEEDED
    assert fake_aws.asked == []


@pytest.mark.check("task_governance_can_be_updated", "skips")
@pytest.mark.check("task_governance_serves_the_default_queues", "skips")
@pytest.mark.parametrize(("check", "changes"), [(UPDATE, PINNED), (QUEUES, QUEUE)])
def test_eks_does_not_answer(
    case_of: Any, run_check: Any, fake_aws: FakeAws, check: str, changes: dict[str, Any]
) -> None:
    fake_aws.answers.eks_cluster = NotAnswered("EKS does not answer")
    assert [each.reason for each in run_check(check, case_of(changes), fake_aws).skipped] == ["EKS does not answer"]


@pytest.mark.check("task_governance_serves_the_default_queues", "fails")
@pytest.mark.parametrize("where", ["installed", "default"])
def test_a_kueue_that_is_too_old_for_the_queue(run: Run, where: str) -> None:
    assert said(run(QUEUES, QUEUE, **{where: "v1.4.0-eksbuild.1"})) == [
        (
            "error: task_governance.teams[0].default_queue: needs a task governance whose Kueue serves"
            f" kueue.x-k8s.io/v1beta2, got v1.4.0-eksbuild.1; set eks.addon_versions.{GOVERNANCE}: v1.4.0-eksbuild.1,"
            " and queues are written for it, or set default_queue: false"
        )
    ]


@pytest.mark.check("task_governance_serves_the_default_queues", "passes")
def test_a_kueue_that_serves_the_queue(run: Run) -> None:
    old = {**QUEUE, "eks.addon_versions": {GOVERNANCE: "v1.4.0-eksbuild.1"}}
    assert run(QUEUES, QUEUE, installed="v1.5.0-eksbuild.1").status is Status.PASSED
    assert run(QUEUES, QUEUE, default="v1.6.0-eksbuild.1").status is Status.PASSED
    assert run(QUEUES, QUEUE).status is Status.SKIPPED, "no such add-on: another check's to report"
    assert run(QUEUES, old, installed="v1.4.0-eksbuild.1").status is Status.NOT_NEEDED, "the file says so itself"
    assert run(QUEUES, {}, installed="v1.4.0-eksbuild.1").status is Status.NOT_NEEDED
