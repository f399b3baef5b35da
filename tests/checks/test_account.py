"""The account's credentials, the state of the stacks, and names that an earlier environment still uses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from hyperpod_cdk.checks import account
from hyperpod_cdk.checks.answers import (
    Caller,
    EksClusterAnswer,
    HyperPodClusterAnswer,
    NotAnswered,
    Partial,
    StackAnswer,
    Undescribed,
)
from hyperpod_cdk.checks.model import Result, Status
from tests.support.fake_aws import FakeAws

CREDENTIALS = "credentials_belong_to_the_account"
STACKS = "stacks_are_ready_to_deploy"
EKS = "eks_cluster_name_is_free_or_ours"
HYPERPOD = "hyperpod_cluster_name_is_free_or_ours"

NAMES = ("prod-foundation", "prod-storage", "prod-hyperpod", "prod-platform", "prod-observability")
DENIED = NotAnswered("not allowed to ask", action="cloudformation:DescribeStacks")

Run = Callable[..., Result]


@pytest.fixture
def run(case_of: Any, run_check: Any, fake_aws: FakeAws) -> Run:
    """Runs a check on prod.yaml, with changes."""

    def on(check: str, changes: dict[str, Any] | None = None) -> Result:
        result: Result = run_check(check, case_of(changes or {}), fake_aws)
        return result

    return on


def stack(name: str, status: str, *, is_protected: bool = False) -> StackAnswer:
    return StackAnswer(name=name, status=status, is_protected=is_protected)


def eks_cluster(name: str, tags: dict[str, str]) -> EksClusterAnswer:
    return EksClusterAnswer(
        name=name,
        arn=f"arn:aws:eks:us-east-1:111122223333:cluster/{name}",
        status="ACTIVE",
        kubernetes_version="1.35",
        authentication_mode="API",
        vpc_id="vpc-0a1b2c3d4e5f67890",
        subnet_ids=(),
        security_group_ids=(),
        cluster_security_group_id="sg-0a1b2c3d4e5f67890",
        endpoint="https://example",
        endpoint_public=True,
        endpoint_private=True,
        public_access_cidrs=("0.0.0.0/0",),
        certificate_authority="",
        oidc_issuer="",
        tags=tags,
    )


def said(result: Result) -> list[str]:
    return [f"{finding.severity.value}: {finding.path}: {finding.message}" for finding in result.findings]


@pytest.mark.check("credentials_belong_to_the_account", "passes")
def test_credentials_of_the_account(run: Run, fake_aws: FakeAws) -> None:
    fake_aws.answers.caller = Caller(account="111122223333", arn="arn:aws:iam::111122223333:user/me")
    assert run(CREDENTIALS).status is Status.PASSED


@pytest.mark.check("credentials_belong_to_the_account", "fails")
def test_credentials_of_another_account(run: Run, fake_aws: FakeAws) -> None:
    fake_aws.answers.caller = Caller(account="444455556666", arn="arn:aws:iam::444455556666:user/me")
    assert said(run(CREDENTIALS)) == [
        (
            "error: account: needs credentials of account 111122223333, got those of 444455556666"
            " (arn:aws:iam::444455556666:user/me); use another profile, or correct account"
        )
    ]


@pytest.mark.check("credentials_belong_to_the_account", "skips")
def test_credentials_of_an_unknown_identity(run: Run) -> None:
    assert run(CREDENTIALS).status is Status.SKIPPED


def test_the_stacks_are_those_of_the_templates(project: Path, case_of: Any) -> None:
    golden = yaml.load((project / "tests/stacks/golden/prod.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader)
    assert account.stack_names(case_of().environment) == tuple(golden) == NAMES
    without = case_of({"storage": ...}).environment
    assert account.stack_names(without) == tuple(name for name in NAMES if name != "prod-storage")


@pytest.mark.check("stacks_are_ready_to_deploy", "passes")
@pytest.mark.parametrize(
    "status",
    [
        "",
        "CREATE_COMPLETE",
        "UPDATE_COMPLETE",
        "UPDATE_ROLLBACK_COMPLETE",
        "IMPORT_COMPLETE",
        "REVIEW_IN_PROGRESS",
        "IMPORT_ROLLBACK_COMPLETE",
        "DELETE_COMPLETE",
        "ROLLBACK_COMPLETE",
    ],
)
def test_stacks_that_can_be_deployed(run: Run, fake_aws: FakeAws, status: str) -> None:
    fake_aws.answers.stack = {name: stack(name, status) if status else None for name in NAMES}
    result = run(STACKS)
    assert (result.status, said(result)) == (Status.PASSED, [])


@pytest.mark.check("stacks_are_ready_to_deploy", "fails")
@pytest.mark.parametrize(
    ("name", "status", "message"),
    [
        (
            "prod-hyperpod",
            "DELETE_FAILED",
            (
                "needs prod-hyperpod in a state that can be updated, got DELETE_FAILED (its deletion failed); run"
                " 'hyperpod-cdk recover prod', which names what blocks the deletion and completes it"
            ),
        ),
        (
            "prod-platform",
            "UPDATE_IN_PROGRESS",
            (
                "needs prod-platform in a state that can be updated, got UPDATE_IN_PROGRESS (somebody else's"
                " deployment or deletion); wait until it has ended"
            ),
        ),
        (
            "prod-storage",
            "UPDATE_ROLLBACK_FAILED",
            (
                "needs prod-storage in a state that can be updated, got UPDATE_ROLLBACK_FAILED (a deployment stopped"
                " halfway); run"
                " 'hyperpod-cdk recover prod', which names the cause and the fix"
            ),
        ),
    ],
)
def test_a_stuck_stack(run: Run, fake_aws: FakeAws, name: str, status: str, message: str) -> None:
    fake_aws.answers.stack = {**dict.fromkeys(NAMES), name: stack(name, status)}
    assert said(run(STACKS)) == [f"error: name: {message}"]


@pytest.mark.parametrize(
    "status",
    [
        "CREATE_IN_PROGRESS",
        "ROLLBACK_IN_PROGRESS",
        "DELETE_IN_PROGRESS",
        "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS",
        "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS",
        "IMPORT_IN_PROGRESS",
        "CREATE_FAILED",
        "UPDATE_FAILED",
        "IMPORT_ROLLBACK_FAILED",
    ],
)
def test_states_that_block(run: Run, fake_aws: FakeAws, status: str) -> None:
    fake_aws.answers.stack = {**dict.fromkeys(NAMES), "prod-foundation": stack("prod-foundation", status)}
    (finding,) = run(STACKS).findings
    assert finding.message.startswith(f"needs prod-foundation in a state that can be updated, got {status} (")


@pytest.mark.check("stacks_are_ready_to_deploy", "skips")
def test_a_state_that_cloudformation_adds_is_skipped(run: Run, fake_aws: FakeAws) -> None:
    fake_aws.answers.stack = {**dict.fromkeys(NAMES), "prod-foundation": stack("prod-foundation", "PAUSED")}
    found = run(STACKS)
    assert (found.status, [each.placed for each in found.skipped]) == (
        Status.SKIPPED,
        ["name: prod-foundation is PAUSED, which this version does not know"],
    )


@pytest.mark.parametrize("status", ["ROLLBACK_COMPLETE", "ROLLBACK_FAILED"])
def test_protection_that_outlived_a_failed_first_deployment(run: Run, fake_aws: FakeAws, status: str) -> None:
    left = stack("prod-platform", status, is_protected=True)
    fake_aws.answers.stack = {**dict.fromkeys(NAMES), "prod-platform": left}
    assert said(run(STACKS)) == [
        (
            f"error: name: needs prod-platform in a state that can be updated, got {status} (the remainder of a first"
            " deployment that failed,"
            " with termination protection); run 'hyperpod-cdk recover prod', which deletes the remainder, then deploy"
        )
    ]


def test_a_first_deployment_that_could_not_be_taken_back(run: Run, fake_aws: FakeAws) -> None:
    fake_aws.answers.stack = {**dict.fromkeys(NAMES), "prod-foundation": stack("prod-foundation", "ROLLBACK_FAILED")}
    assert said(run(STACKS)) == [
        (
            "warning: name: prod-foundation is ROLLBACK_FAILED: a first deployment failed and could not be rolled"
            " back; the CDK CLI tries to delete it before it deploys again, and 'aws cloudformation"
            " describe-stack-events"
            " --stack-name prod-foundation' shows what could not be deleted; 'hyperpod-cdk deploy' needs it deleted"
            " first: run 'hyperpod-cdk recover prod', which names what will be deleted and deletes it"
        )
    ]


@pytest.mark.check("stacks_are_ready_to_deploy", "skips")
def test_one_stack_without_an_answer_hides_no_other(run: Run, fake_aws: FakeAws) -> None:
    fake_aws.answers.stack = {
        **dict.fromkeys(NAMES),
        "prod-foundation": DENIED,
        "prod-platform": stack("prod-platform", "UPDATE_FAILED"),
    }
    result = run(STACKS)
    assert [(each.reason, each.action) for each in result.skipped] == [
        ("prod-foundation: not allowed to ask", "cloudformation:DescribeStacks")
    ]
    assert len(result.findings) == 1
    fake_aws.answers.stack = {**dict.fromkeys(NAMES), "prod-foundation": DENIED}
    assert run(STACKS).status is Status.SKIPPED


@pytest.mark.check("eks_cluster_name_is_free_or_ours", "passes")
@pytest.mark.parametrize("tags", [{}, {"aws:cloudformation:stack-name": "prod-foundation"}])
def test_an_eks_cluster_that_is_ours(run: Run, fake_aws: FakeAws, tags: dict[str, str]) -> None:
    fake_aws.answers.stack = {"prod-foundation": stack("prod-foundation", "UPDATE_COMPLETE")}
    fake_aws.answers.eks_cluster = {"prod-eks": eks_cluster("prod-eks", tags)}
    assert run(EKS).status is Status.PASSED
    fake_aws.answers.stack = {"prod-foundation": None}
    fake_aws.answers.eks_cluster = {"prod-eks": None}
    assert run(EKS).status is Status.PASSED


@pytest.mark.check("eks_cluster_name_is_free_or_ours", "fails")
@pytest.mark.parametrize(
    ("tags", "whose"),
    [
        (
            {"aws:cloudformation:stack-name": "prod-foundation"},
            (
                "one that an earlier stack of that name created and that belongs to no stack now; choose another name,"
                " name the cluster in eks.existing, or let the stack import it with 'cdk deploy"
                " --import-existing-resources'"
            ),
        ),
        (
            {},
            (
                "one without the tag aws:cloudformation:stack-name, which has another owner; choose another name, or"
                " name the cluster in eks.existing"
            ),
        ),
    ],
)
def test_an_eks_cluster_that_no_stack_has(run: Run, fake_aws: FakeAws, tags: dict[str, str], whose: str) -> None:
    fake_aws.answers.stack = {"prod-foundation": None}
    fake_aws.answers.eks_cluster = {"prod-eks": eks_cluster("prod-eks", tags)}
    expected = f"error: name: needs the EKS cluster prod-eks to be created by prod-foundation, got {whose}"
    assert said(run(EKS)) == [expected]


@pytest.mark.parametrize("present", [None, stack("prod-foundation", "CREATE_COMPLETE")])
def test_an_eks_cluster_of_another_stack(run: Run, fake_aws: FakeAws, present: StackAnswer | None) -> None:
    fake_aws.answers.stack = {"prod-foundation": present}
    fake_aws.answers.eks_cluster = {"prod-eks": eks_cluster("prod-eks", {"aws:cloudformation:stack-name": "other"})}
    assert said(run(EKS)) == [
        (
            "error: name: needs the EKS cluster prod-eks to be created by prod-foundation, got one of the stack other;"
            " choose another name, or name the cluster in eks.existing"
        )
    ]


@pytest.mark.check("eks_cluster_name_is_free_or_ours", "skips")
def test_an_eks_cluster_without_an_answer(run: Run, fake_aws: FakeAws) -> None:
    fake_aws.answers.stack = {"prod-foundation": None}
    fake_aws.answers.eks_cluster = {"prod-eks": NotAnswered("no", action="eks:DescribeCluster")}
    result = run(EKS)
    assert [(each.reason, each.action) for each in result.skipped] == [("no", "eks:DescribeCluster")]


def hyperpod_cluster(name: str) -> HyperPodClusterAnswer:
    return HyperPodClusterAnswer(
        name=name,
        arn="arn:aws:sagemaker:us-east-1:111122223333:cluster/abc",
        status="InService",
        eks_cluster_arn="",
        groups=(),
    )


@pytest.mark.check("hyperpod_cluster_name_is_free_or_ours", "passes")
def test_a_hyperpod_cluster_that_is_ours(run: Run, fake_aws: FakeAws) -> None:
    fake_aws.answers.hyperpod_clusters = (hyperpod_cluster("prod"),)
    fake_aws.answers.stack = {"prod-hyperpod": stack("prod-hyperpod", "CREATE_COMPLETE")}
    assert run(HYPERPOD).status is Status.PASSED
    fake_aws.answers.hyperpod_clusters = (hyperpod_cluster("production"),)
    fake_aws.answers.stack = {"prod-hyperpod": None}
    assert run(HYPERPOD).status is Status.PASSED


@pytest.mark.check("hyperpod_cluster_name_is_free_or_ours", "fails")
def test_a_hyperpod_cluster_that_was_left(run: Run, fake_aws: FakeAws) -> None:
    fake_aws.answers.hyperpod_clusters = (hyperpod_cluster("prod"),)
    fake_aws.answers.stack = {"prod-hyperpod": None}
    assert said(run(HYPERPOD)) == [
        (
            "error: name: needs the HyperPod cluster prod to be created by prod-hyperpod, got one that is InService"
            " already; set hyperpod.cluster_name to another name, and find its owner with 'aws sagemaker list-tags"
            " --resource-arn arn:aws:sagemaker:us-east-1:111122223333:cluster/abc'"
        )
    ]


@pytest.mark.check("hyperpod_cluster_name_is_free_or_ours", "fails")
@pytest.mark.parametrize("is_described", [True, False])
@pytest.mark.parametrize(
    ("status", "said_of_it"),
    [
        (
            "Deleting",
            (
                "error: name: needs the HyperPod cluster prod to be InService, got Deleting: it is being deleted; see"
                " 'aws sagemaker describe-cluster --cluster-name prod', and deploy after it and its stack are deleted"
            ),
        ),
        (
            "Failed",
            (
                "warning: name: the HyperPod cluster prod is Failed, and a deployment may not repair it; find the"
                " cause with 'aws sagemaker describe-cluster --cluster-name prod' first"
            ),
        ),
        *(
            (
                busy,
                (
                    f"error: name: needs the HyperPod cluster prod to be InService, got {busy}, in which AWS refuses to"
                    " change it; wait until 'aws sagemaker describe-cluster --cluster-name prod' shows InService"
                ),
            )
            # ClusterStatus of botocore's sagemaker model, but for those above and InService
            for busy in ("Creating", "RollingBack", "SystemUpdating", "Updating")
        ),
    ],
)
def test_an_own_hyperpod_cluster_that_cannot_be_updated(
    run: Run, fake_aws: FakeAws, status: str, said_of_it: str, *, is_described: bool
) -> None:
    """The list of clusters has the status already."""
    own = replace(hyperpod_cluster("prod"), status=status)
    fake_aws.answers.hyperpod_clusters = (
        Partial(read=(own,))
        if is_described
        else Partial(unread=(Undescribed(name="prod", arn=own.arn, status=status, why=DENIED),))
    )
    fake_aws.answers.stack = {"prod-hyperpod": stack("prod-hyperpod", "CREATE_COMPLETE")}
    assert said(run(HYPERPOD)) == [said_of_it]


@pytest.mark.check("hyperpod_cluster_name_is_free_or_ours", "fails")
def test_the_list_alone_proves_that_a_name_is_taken(run: Run, fake_aws: FakeAws) -> None:
    listed = Undescribed(name="prod", arn="arn", status="InService", why=DENIED)
    fake_aws.answers.hyperpod_clusters = Partial(unread=(listed,), broken_off=DENIED)
    fake_aws.answers.stack = {"prod-hyperpod": None}
    assert run(HYPERPOD).status is Status.FAILED


@pytest.mark.check("hyperpod_cluster_name_is_free_or_ours", "skips")
def test_a_list_of_clusters_that_broke_off(run: Run, fake_aws: FakeAws) -> None:
    fake_aws.answers.hyperpod_clusters = Partial(read=(hyperpod_cluster("other"),), broken_off=DENIED)
    fake_aws.answers.stack = {"prod-hyperpod": None}
    assert run(HYPERPOD).status is Status.SKIPPED


@pytest.mark.check("hyperpod_cluster_name_is_free_or_ours", "skips")
def test_hyperpod_clusters_without_an_answer(run: Run, fake_aws: FakeAws) -> None:
    fake_aws.answers.hyperpod_clusters = ()
    fake_aws.answers.stack = {"prod-hyperpod": DENIED}
    assert run(HYPERPOD).status is Status.SKIPPED
