"""Bootstrap stack, boundary, service-linked roles, and the rights of the caller and of CloudFormation's role."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from hyperpod_cdk.bootstrap_policy import statements
from hyperpod_cdk.catalog import deployer_actions, iam
from hyperpod_cdk.checks.answers import Among, BucketAnswer, Caller, Decision, NotAnswered, RoleAnswer
from hyperpod_cdk.checks.iam import WHEN, needed_types, qualifier
from hyperpod_cdk.checks.model import Case, Result, Status
from hyperpod_cdk.config import load_environment
from hyperpod_cdk.config.extensions import activate
from hyperpod_cdk.templates.assembly import read_assembly
from hyperpod_cdk_rehearsal.embedded.published.policies import evaluate
from tests.support.assembly import shipped
from tests.support.fake_aws import FakeAws

BOOTSTRAP = "cdk_bootstrap_is_new_enough"
BOUNDARY = "permissions_boundary_exists"
LINKED = "service_linked_roles_exist_or_can_be_made"
LINKING = "data_repositories_may_be_linked"
CALLER = "caller_may_use_the_bootstrap_roles"
DEPLOYER = "deployer_may_make_the_stacks"

ME = "arn:aws:iam::111122223333:user/me"
PLACE = "111122223333-us-east-1"
EXECUTOR = f"arn:aws:iam::111122223333:role/cdk-hnb659fds-cfn-exec-role-{PLACE}"
DEPLOY = f"arn:aws:iam::111122223333:role/cdk-hnb659fds-deploy-role-{PLACE}"
PUBLISH = f"arn:aws:iam::111122223333:role/cdk-hnb659fds-file-publishing-role-{PLACE}"
NO_SIMULATOR = NotAnswered("not allowed to ask", action="iam:SimulatePrincipalPolicy")
ROLES = {"AWSServiceRoleForSageMakerHyperPod", "AWSServiceRoleForAmazonEKS", "AWSServiceRoleForAmazonFSx"}
REPOSITORY = {"storage.lustre[0].data_repositories": [{"path": "/datasets", "s3_uri": "s3://my-datasets/"}]}

Run = Callable[..., Result]


@pytest.fixture
def run(case_of: Any, run_check: Any, fake_aws: FakeAws) -> Run:
    """Runs a check on prod.yaml, with changes, in an account that is bootstrapped and allows everything."""
    fake_aws.answers.caller = Caller(account="111122223333", arn=ME)
    fake_aws.answers.bootstrap_version = {"hnb659fds": 33}
    fake_aws.answers.simulate = {}
    fake_aws.answers.role = {
        name: RoleAnswer(name=name, arn=f"arn:aws:iam::111122223333:role/{name}", trusts=()) for name in ROLES
    }

    def on(check: str, changes: dict[str, Any] | None = None) -> Result:
        result: Result = run_check(check, case_of(changes or {}), fake_aws)
        return result

    return on


def said(result: Result) -> list[str]:
    return [f"{finding.severity.value}: {finding.path}: {finding.message}" for finding in result.findings]


def denied(action: str, by: str = "implicitDeny", *, organization: bool = False, boundary: bool = False) -> Decision:
    return Decision(action=action, decision=by, denied_by_organization=organization, denied_by_boundary=boundary)


@pytest.mark.check("cdk_bootstrap_is_new_enough", "passes")
@pytest.mark.parametrize("version", [6, 7, 33])
def test_a_new_enough_bootstrap_stack(run: Run, fake_aws: FakeAws, version: int) -> None:
    fake_aws.answers.bootstrap_version = {"hnb659fds": version}
    assert run(BOOTSTRAP).status is Status.PASSED


@pytest.mark.check("cdk_bootstrap_is_new_enough", "fails")
@pytest.mark.parametrize(
    ("version", "message"),
    [
        (
            None,
            (
                "needs CDK's bootstrap stack in us-east-1, got none; run 'hyperpod-cdk bootstrap-policy prod --out"
                " policy.json', then the commands that it prints"
            ),
        ),
        (
            5,
            (
                "needs version 6 of CDK's bootstrap stack in us-east-1, got 5;"
                " run 'hyperpod-cdk bootstrap-policy prod --out policy.json', then the commands that it prints"
            ),
        ),
    ],
)
def test_an_old_bootstrap_stack(run: Run, fake_aws: FakeAws, version: int | None, message: str) -> None:
    fake_aws.answers.bootstrap_version = {"hnb659fds": version}
    assert said(run(BOOTSTRAP)) == [f"error: region: {message}"]


@pytest.mark.check("cdk_bootstrap_is_new_enough", "fails")
@pytest.mark.parametrize(
    ("bucket", "told"),
    [
        (
            BucketAnswer(name="cdk-hnb659fds-assets-111122223333-us-east-1", region="us-east-1"),
            (
                ", and 'cdk bootstrap' fails while cdk-hnb659fds-assets-111122223333-us-east-1 exists, the bucket of a"
                " bootstrap that failed or was deleted; check with 'aws s3 ls"
                " s3://cdk-hnb659fds-assets-111122223333-us-east-1 --recursive' whether it can be deleted, then run"
            ),
        ),
        (None, "; run"),
        (NotAnswered("no", action="s3:ListBucket"), "; run"),
    ],
)
def test_what_a_failed_bootstrap_left(
    run: Run, fake_aws: FakeAws, bucket: BucketAnswer | NotAnswered | None, told: str
) -> None:
    fake_aws.answers.bootstrap_version = {"hnb659fds": None}
    fake_aws.answers.bucket = {"cdk-hnb659fds-assets-111122223333-us-east-1": bucket}
    (message,) = said(run(BOOTSTRAP))
    assert message == (
        f"error: region: needs CDK's bootstrap stack in us-east-1, got none{told} 'hyperpod-cdk bootstrap-policy prod"
        " --out policy.json', then the commands that it prints"
    )


@pytest.mark.check("cdk_bootstrap_is_new_enough", "skips")
def test_a_bootstrap_stack_that_cannot_be_read(run: Run, fake_aws: FakeAws) -> None:
    fake_aws.answers.bootstrap_version = {"hnb659fds": NotAnswered("no", action="ssm:GetParameter")}
    assert [each.action for each in run(BOOTSTRAP).skipped] == ["ssm:GetParameter"]


def test_the_version_is_the_one_that_the_templates_ask_for(project: Path) -> None:
    golden = yaml.load((project / "tests/stacks/golden/prod.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader)
    refused = [
        template["Rules"]["CheckBootstrapVersion"]["Assertions"][0]["Assert"]["Fn::Not"][0]["Fn::Contains"][0]
        for template in golden.values()
    ]
    assert refused == [[str(version) for version in range(1, iam.MINIMUM_BOOTSTRAP_VERSION)]] * len(golden)


@pytest.mark.check("permissions_boundary_exists", "passes")
@pytest.mark.parametrize("boundary", ["developer", "arn:aws:iam::111122223333:policy/developer"])
def test_a_boundary_that_exists(run: Run, fake_aws: FakeAws, boundary: str) -> None:
    fake_aws.answers.policy_exists = {"arn:aws:iam::111122223333:policy/developer": True}
    assert run(BOUNDARY, {"permissions_boundary": boundary}).status is Status.PASSED
    assert run(BOUNDARY).status is Status.NOT_NEEDED


@pytest.mark.check("permissions_boundary_exists", "fails")
def test_a_boundary_that_is_not_there(run: Run, fake_aws: FakeAws) -> None:
    arn = "arn:aws:iam::111122223333:policy/developer"
    fake_aws.answers.policy_exists = {arn: False}
    assert said(run(BOUNDARY, {"permissions_boundary": "developer"})) == [
        (
            f"error: permissions_boundary: needs the policy {arn}, got none in account 111122223333; create it,"
            f" correct the"
            " name, or write its ARN if it has a path"
        )
    ]
    assert said(run(BOUNDARY, {"permissions_boundary": arn})) == [
        (
            f"error: permissions_boundary: needs the policy {arn}, got none in account 111122223333; create it,"
            f" correct the"
            " name"
        )
    ]


@pytest.mark.check("permissions_boundary_exists", "skips")
def test_a_boundary_without_an_answer(run: Run) -> None:
    assert run(BOUNDARY, {"permissions_boundary": "developer"}).status is Status.SKIPPED


@pytest.mark.check("service_linked_roles_exist_or_can_be_made", "passes")
def test_service_linked_roles_that_exist(run: Run, fake_aws: FakeAws) -> None:
    assert run(LINKED).status is Status.PASSED
    assert {question[1] for question in fake_aws.asked} == ROLES


def test_service_linked_roles_that_can_be_made(run: Run, fake_aws: FakeAws) -> None:
    fake_aws.answers.role = dict.fromkeys(ROLES)
    assert run(LINKED, REPOSITORY).status is Status.PASSED
    simulated = {
        (question[1], question[3], str(question[4])) for question in fake_aws.asked if question[0] == "simulate"
    }
    roles = "arn:aws:iam::111122223333:role/aws-service-role"
    assert simulated == {
        (EXECUTOR, f"{roles}/{service}/{name}", str({"iam:AWSServiceName": service}))
        for service, name in (
            ("hyperpod.sagemaker.amazonaws.com", "AWSServiceRoleForSageMakerHyperPod"),
            ("eks.amazonaws.com", "AWSServiceRoleForAmazonEKS"),
            ("fsx.amazonaws.com", "AWSServiceRoleForAmazonFSx"),
            ("s3.data-source.lustre.fsx.amazonaws.com", "AWSServiceRoleForFSxS3Access_*"),
        )
    }


def test_only_the_roles_that_the_file_needs_are_asked_for(run: Run, fake_aws: FakeAws) -> None:
    run(LINKED, {"storage": ...})
    assert {question[1] for question in fake_aws.asked} == ROLES - {"AWSServiceRoleForAmazonFSx"}


@pytest.mark.check("service_linked_roles_exist_or_can_be_made", "fails")
@pytest.mark.parametrize(
    ("decision", "said_of_it"),
    [
        (denied("", "implicitDeny"), ("error", "no policy allows")),
        (denied("", "explicitDeny"), ("error", "a policy refuses")),
        (denied("", "implicitDeny", boundary=True), ("error", "the permissions boundary refuses")),
        (denied("", "explicitDeny", organization=True), ("warning", "a service control policy refuses")),
    ],
)
def test_a_service_linked_role_that_cannot_be_made(
    run: Run, fake_aws: FakeAws, decision: Decision, said_of_it: tuple[str, str]
) -> None:
    missing = "AWSServiceRoleForSageMakerHyperPod"
    fake_aws.answers.role = {**fake_aws.answers.role, missing: None}  # type: ignore[dict-item]
    fake_aws.answers.simulate = {"iam:CreateServiceLinkedRole": decision}
    severity, who = said_of_it
    assert said(run(LINKED)) == [
        (
            f"{severity}: hyperpod: needs the service-linked role {missing} for the HyperPod cluster, got none, and"
            f" {who}"
            f" iam:CreateServiceLinkedRole to cdk-hnb659fds-cfn-exec-role-{PLACE}; allow it there, or run 'aws iam"
            " create-service-linked-role --aws-service-name hyperpod.sagemaker.amazonaws.com' with an identity that may"
        )
    ]


def test_a_role_that_a_service_may_do_without_is_a_warning(run: Run, fake_aws: FakeAws) -> None:
    """The service authorization reference has it with grafana:CreateWorkspace; that one is made no document says."""
    fake_aws.answers.role = {**fake_aws.answers.role, "AWSServiceRoleForAmazonGrafana": None}  # type: ignore[dict-item]
    fake_aws.answers.simulate = {"iam:CreateServiceLinkedRole": denied("")}
    workspace = {"enabled": True, "prometheus_workspace": "create", "grafana_workspace": "create"}
    assert said(run(LINKED, {"operators.observability": workspace})) == [
        (
            "warning: operators.observability.grafana_workspace: needs the service-linked role "
            "AWSServiceRoleForAmazonGrafana for the Grafana workspace (a workspace without a VPC may not create "
            "it), got none, and no policy allows iam:CreateServiceLinkedRole to "
            f"cdk-hnb659fds-cfn-exec-role-{PLACE}; allow it there, or run 'aws iam create-service-linked-role "
            "--aws-service-name grafana.amazonaws.com' with an identity that may"
        )
    ]


def test_a_role_that_each_file_system_gets_cannot_be_made_before(run: Run, fake_aws: FakeAws) -> None:
    fake_aws.answers.simulate = {"iam:CreateServiceLinkedRole": denied("")}
    assert said(run(LINKED, REPOSITORY)) == [
        (
            "error: storage.lustre: needs the service-linked role AWSServiceRoleForFSxS3Access_* for the data"
            " repositories,"
            " got none, and no policy allows iam:CreateServiceLinkedRole to"
            f" cdk-hnb659fds-cfn-exec-role-{PLACE}; allow it there"
        )
    ]


@pytest.mark.check("data_repositories_may_be_linked", "passes")
def test_a_bucket_that_may_be_linked(run: Run, fake_aws: FakeAws) -> None:
    assert run(LINKING, REPOSITORY).status is Status.PASSED
    simulated = [(question[1], question[2], question[3]) for question in fake_aws.asked if question[0] == "simulate"]
    assert sorted(simulated) == [
        (EXECUTOR, ("s3:GetBucketPolicy", "s3:ListBucket"), "arn:aws:s3:::my-datasets"),
        (EXECUTOR, ("s3:GetObject", "s3:PutObject"), "arn:aws:s3:::my-datasets/*"),
    ]


@pytest.mark.check("data_repositories_may_be_linked", "fails")
@pytest.mark.parametrize(
    ("decision", "severity", "who"),
    [
        (denied("s3:ListBucket", "explicitDeny"), "error", "a refusal by a policy"),
        (denied("s3:ListBucket", boundary=True), "error", "a refusal by the permissions boundary"),
        # the bucket's own policy may allow it
        (denied("s3:ListBucket"), "warning", "no policy that allows it"),
        (
            denied("s3:ListBucket", "explicitDeny", organization=True),
            "warning",
            "a refusal by a service control policy",
        ),
    ],
)
def test_a_bucket_that_may_not_be_linked(
    run: Run, fake_aws: FakeAws, decision: Decision, severity: str, who: str
) -> None:
    fake_aws.answers.simulate = {"s3:ListBucket": decision}
    assert said(run(LINKING, REPOSITORY)) == [
        (
            f"{severity}: storage.lustre[0].data_repositories[0].s3_uri: needs s3://my-datasets/ open to"
            f" cdk-hnb659fds-cfn-exec-role-{PLACE}, whose permissions FSx uses to check the bucket when it is linked,"
            f" got {who}: s3:ListBucket; allow s3:Get*, s3:List*, s3:PutObject on the bucket and the prefix, as"
            " 'hyperpod-cdk bootstrap-policy' does, or in the bucket's policy"
        )
    ]


@pytest.mark.check("data_repositories_may_be_linked", "skips")
@pytest.mark.parametrize("is_bootstrapped", [True, False])
def test_links_without_an_answer(run: Run, fake_aws: FakeAws, *, is_bootstrapped: bool) -> None:
    if is_bootstrapped:
        fake_aws.answers.simulate = NO_SIMULATOR
    else:
        fake_aws.answers.bootstrap_version = {"hnb659fds": None}
    assert run(LINKING, REPOSITORY).status is Status.SKIPPED


def test_without_a_link_nothing_is_simulated(run: Run, fake_aws: FakeAws) -> None:
    assert run(LINKING).status is Status.NOT_NEEDED
    assert fake_aws.asked == []


@pytest.mark.check("service_linked_roles_exist_or_can_be_made", "skips")
def test_roles_without_an_answer(run: Run, fake_aws: FakeAws) -> None:
    fake_aws.answers.role = {
        **dict.fromkeys(ROLES),
        "AWSServiceRoleForAmazonEKS": NotAnswered("not allowed to ask", action="iam:GetRole"),
    }
    fake_aws.answers.simulate = NO_SIMULATOR
    assert [(each.path, each.reason, each.action) for each in run(LINKED).skipped] == [
        ("hyperpod", "AWSServiceRoleForSageMakerHyperPod: not allowed to ask", "iam:SimulatePrincipalPolicy"),
        ("eks", "AWSServiceRoleForAmazonEKS: not allowed to ask", "iam:GetRole"),
        ("storage.lustre", "AWSServiceRoleForAmazonFSx: not allowed to ask", "iam:SimulatePrincipalPolicy"),
    ]
    fake_aws.answers.bootstrap_version = {"hnb659fds": None}
    assert run(LINKED).skipped[0].reason == (
        "AWSServiceRoleForSageMakerHyperPod: the role does not exist, and CDK is not bootstrapped, so CloudFormation"
        " has no execution role"
    )


@pytest.mark.check("caller_may_use_the_bootstrap_roles", "passes")
def test_a_caller_who_may_assume_the_roles(run: Run, fake_aws: FakeAws) -> None:
    assert run(CALLER).status is Status.PASSED
    assert [question[1:4] for question in fake_aws.asked if question[0] == "simulate"] in (
        [(ME, ("sts:AssumeRole",), DEPLOY), (ME, ("sts:AssumeRole",), PUBLISH)],
        [(ME, ("sts:AssumeRole",), PUBLISH), (ME, ("sts:AssumeRole",), DEPLOY)],
    )


def test_a_caller_with_rights_of_his_own(run: Run, fake_aws: FakeAws) -> None:
    fake_aws.answers.simulate = {"sts:AssumeRole": denied("sts:AssumeRole")}
    assert run(CALLER).status is Status.PASSED


@pytest.mark.check("caller_may_use_the_bootstrap_roles", "fails")
@pytest.mark.parametrize(
    ("decision", "severity", "got"),
    [
        (denied("sts:AssumeRole"), "error", "no policy that allows it"),
        (denied("sts:AssumeRole", "explicitDeny"), "error", "a refusal by a policy"),
        (denied("sts:AssumeRole", boundary=True), "error", "a refusal by the permissions boundary"),
        (denied("sts:AssumeRole", organization=True), "warning", "a refusal by a service control policy"),
    ],
)
def test_a_caller_who_may_do_neither(run: Run, fake_aws: FakeAws, decision: Decision, severity: str, got: str) -> None:
    fake_aws.answers.simulate = {
        f"sts:AssumeRole {PUBLISH}": decision,
        "s3:PutObject": denied("s3:PutObject"),
    }
    assert said(run(CALLER)) == [
        (
            f"{severity}: account: needs sts:AssumeRole on {PUBLISH}, got {got} for {ME};"
            " allow it, or give the caller s3:GetObject, s3:PutObject"
        )
    ]


def test_a_caller_who_may_not_pass_the_execution_role(run: Run, fake_aws: FakeAws) -> None:
    fake_aws.answers.simulate = {
        f"sts:AssumeRole {DEPLOY}": denied("sts:AssumeRole"),
        f"iam:PassRole {EXECUTOR}": denied("iam:PassRole"),
    }
    (told,) = said(run(CALLER))
    assert told.startswith(f"error: account: needs sts:AssumeRole on {DEPLOY}, got no policy that allows it for {ME};")
    assert told.endswith("cloudformation:UpdateTerminationProtection, iam:PassRole")


def test_a_caller_with_a_condition_is_warned(run: Run, fake_aws: FakeAws) -> None:
    wants_mfa = Decision(action="sts:AssumeRole", decision="explicitDeny", unknown_keys=("aws:MultiFactorAuthPresent",))
    fake_aws.answers.simulate = {
        f"sts:AssumeRole {PUBLISH}": wants_mfa,
        "s3:PutObject": denied("s3:PutObject"),
    }
    assert said(run(CALLER)) == [
        (
            f"warning: account: needs sts:AssumeRole on {PUBLISH}, got a refusal by a policy (without the values of"
            f" aws:MultiFactorAuthPresent) for {ME}; allow it, or give the caller s3:GetObject, s3:PutObject"
        )
    ]


@pytest.mark.check("caller_may_use_the_bootstrap_roles", "skips")
def test_a_caller_that_cannot_be_simulated(run: Run, fake_aws: FakeAws) -> None:
    fake_aws.answers.simulate = NO_SIMULATOR
    assert [(each.reason, each.action) for each in run(CALLER).skipped] == [
        ("sts:AssumeRole on cdk-…-deploy-role: not allowed to ask", "iam:SimulatePrincipalPolicy"),
        ("sts:AssumeRole on cdk-…-file-publishing-role: not allowed to ask", "iam:SimulatePrincipalPolicy"),
    ]


@pytest.mark.check("deployer_may_make_the_stacks", "passes")
def test_an_execution_role_that_may_do_everything(run: Run, fake_aws: FakeAws) -> None:
    result = run(DEPLOYER)
    assert (result.status, said(result)) == (Status.PASSED, [])
    (detail,) = result.details
    count = len(detail.data["actions"])
    assert detail.text == f"{count} of {count} actions are allowed to cdk-hnb659fds-cfn-exec-role-{PLACE}"
    assert [question[1] for question in fake_aws.asked if question[0] == "simulate"] == [EXECUTOR]


def test_rights_for_single_resources_are_enough(run: Run, fake_aws: FakeAws) -> None:
    role = "arn:aws:iam::111122223333:role/prod-example"
    fake_aws.answers.simulate = {
        "iam:CreateRole": denied("iam:CreateRole"),
        f"iam:CreateRole {role}": Decision(action="iam:CreateRole", decision="allowed"),
    }
    assert run(DEPLOYER).status is Status.PASSED


@pytest.mark.check("deployer_may_make_the_stacks", "fails")
def test_an_execution_role_without_a_permission(run: Run, fake_aws: FakeAws) -> None:
    fake_aws.answers.simulate = {"sagemaker:CreateCluster": denied("sagemaker:CreateCluster")}
    assert said(run(DEPLOYER)) == [
        (
            f"error: account: needs one more action allowed to cdk-hnb659fds-cfn-exec-role-{PLACE}, got no policy that"
            " allows it: sagemaker:CreateCluster; add them to its policies"
        )
    ]


def test_the_policy_that_bootstrap_policy_writes_passes(run: Run, fake_aws: FakeAws, assemblies: Path) -> None:
    """Every question is judged by that policy, as IAM would."""
    prod = shipped(assemblies, "prod").environment
    written = [each.document() for each in statements(read_assembly(assemblies / "prod", "prod"), prod)]

    def simulate(
        _principal: str, actions: Sequence[str], *, resource: str = "*", context: Mapping[str, str] | None = None
    ) -> Among[Decision]:
        keys = {key.lower(): value for key, value in (context or {}).items()} | {"aws:requestedregion": prod.region}
        return Among(
            {each: Decision(action=each, decision=evaluate(written, each, resource, keys)) for each in actions}
        )

    fake_aws.simulate = simulate  # type: ignore[method-assign, assignment]  # one answer for every question does not do here
    result = run(DEPLOYER)
    assert (result.status, said(result)) == (Status.PASSED, [])
    (detail,) = result.details
    assert detail.data["not_judged"] == [
        "lambda:DeleteLayerVersion",
        "lambda:GetLayerVersion",
        "lambda:PublishLayerVersion",
        "s3:GetObject",
        "s3:GetObjectVersion",
    ]


def test_refusals_are_distinguished(run: Run, fake_aws: FakeAws) -> None:
    fake_aws.answers.simulate = {
        "ec2:CreateVpc": denied("ec2:CreateVpc", "explicitDeny"),
        "ec2:CreateSubnet": denied("ec2:CreateSubnet", "explicitDeny"),
        "iam:PassRole": denied("iam:PassRole"),
        "kms:CreateKey": denied("kms:CreateKey", boundary=True),
        "eks:CreateCluster": denied("eks:CreateCluster", "explicitDeny", organization=True),
    }
    assert said(run(DEPLOYER)) == [
        (
            f"error: account: needs 5 more actions allowed to cdk-hnb659fds-cfn-exec-role-{PLACE}, got a refusal by"
            f" a policy:"
            " ec2:CreateSubnet|CreateVpc; a refusal by a service control policy: eks:CreateCluster; a refusal by the"
            " permissions boundary: kms:CreateKey; no policy that allows it: iam:PassRole; add them to its policies"
        )
    ]


@pytest.mark.parametrize(
    ("decision", "listed"),
    [
        (denied("iam:PassRole"), "no policy that allows it: iam:PassRole"),
        (
            denied("sagemaker:CreateCluster", "explicitDeny", organization=True),
            "a refusal by a service control policy: sagemaker:CreateCluster",
        ),
    ],
)
def test_what_is_no_certain_failure_warns(run: Run, fake_aws: FakeAws, decision: Decision, listed: str) -> None:
    fake_aws.answers.simulate = {decision.action: decision}
    assert said(run(DEPLOYER)) == [
        (
            "warning: account: CloudFormation may need actions that the policy simulator refuses to"
            f" cdk-hnb659fds-cfn-exec-role-{PLACE} for all resources (registry schemas, {deployer_actions.AS_OF}):"
            f" {listed}; allow them if they are not allowed for single resources already"
        )
    ]


def test_a_policy_with_conditions_is_no_certain_refusal(run: Run, fake_aws: FakeAws) -> None:
    """As one that lets roles be made with a boundary only, or by a principal with a tag."""
    key = "aws:PrincipalTag/team"
    fake_aws.answers.simulate = {
        "iam:CreateRole": Decision(action="iam:CreateRole", decision="implicitDeny", unknown_keys=(key,)),
        "sagemaker:CreateCluster": Decision(
            action="sagemaker:CreateCluster", decision="explicitDeny", unknown_keys=(key,)
        ),
    }
    assert said(run(DEPLOYER)) == [
        (
            "warning: account: CloudFormation may need actions that the policy simulator refuses to"
            f" cdk-hnb659fds-cfn-exec-role-{PLACE} for all resources (registry schemas, {deployer_actions.AS_OF}): no"
            f" policy that allows it (without the values of {key}): iam:CreateRole; a refusal by a policy (without the"
            f" values of {key}): sagemaker:CreateCluster; allow them if they are not allowed for single resources"
            " already"
        )
    ]


def test_the_boundary_is_part_of_what_is_simulated(run: Run, fake_aws: FakeAws) -> None:
    run(DEPLOYER, {"permissions_boundary": "developer"})
    contexts: list[Any] = [question[4] for question in fake_aws.asked if question[0] == "simulate"]
    assert [each["iam:PermissionsBoundary"] for each in contexts] == ["arn:aws:iam::111122223333:policy/developer"]


def test_the_qualifier_of_the_project_is_asked_for(
    case_of: Any, run_check: Any, fake_aws: FakeAws, tmp_path: Path
) -> None:
    (tmp_path / "cdk.json").write_text('{"context": {"@aws-cdk/core:bootstrapQualifier": "ours"}}', encoding="utf-8")
    fake_aws.answers.bootstrap_version = {"ours": 33}
    fake_aws.answers.simulate = {}
    fake_aws.answers.caller = Caller(account="111122223333", arn=ME)
    case = case_of({}, project=tmp_path)
    for check in (BOOTSTRAP, DEPLOYER, CALLER):
        assert run_check(check, case, fake_aws).status is Status.PASSED
    simulated = [question for question in fake_aws.asked if question[0] == "simulate"]
    assert simulated[0][1] == f"arn:aws:iam::111122223333:role/cdk-ours-cfn-exec-role-{PLACE}"
    assert {question[3] for question in simulated[1:]} == {
        f"arn:aws:iam::111122223333:role/cdk-ours-{role}-role-{PLACE}" for role in ("deploy", "file-publishing")
    }


@pytest.mark.parametrize("text", [None, "", "[]", "{}", '{"context": []}', '{"context": {}}', "\xff"])
def test_without_a_qualifier_it_is_cdks(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "cdk.json").write_bytes(text.encode("latin-1"))
    assert qualifier(tmp_path) == "hnb659fds"


def test_a_role_that_may_do_nothing_is_reported_in_one_line(run: Run, fake_aws: FakeAws) -> None:
    actions = {action for each in deployer_actions.TYPES for action in each.actions}
    fake_aws.answers.simulate = {action: denied(action) for action in actions}
    result = run(DEPLOYER)
    (finding,), (detail,) = result.findings, result.details
    judged = set(detail.data["actions"]) - set(detail.data["not_judged"])
    certain = {action for each in needed_types(environment()) for action in each.certain} & judged
    assert [action for action in certain if action.partition(":")[2] not in finding.message] == []
    rest = len(judged) - len(certain)
    assert f" and {rest} more; add them" in finding.message


@pytest.mark.check("deployer_may_make_the_stacks", "skips")
def test_an_execution_role_that_cannot_be_simulated(run: Run, fake_aws: FakeAws) -> None:
    fake_aws.answers.simulate = NO_SIMULATOR
    assert [each.action for each in run(DEPLOYER).skipped] == ["iam:SimulatePrincipalPolicy"]
    fake_aws.answers.bootstrap_version = {"hnb659fds": None}
    assert [each.reason for each in run(DEPLOYER).skipped] == [
        "CDK is not bootstrapped, so CloudFormation has no execution role"
    ]


@pytest.fixture
def builds(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A project with an extension that adds resources, and one that does not."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "ours.py").write_text(
        "from hyperpod_cdk.config.extensions import Extension\n"
        "def parameter(stage, section): ...\n"
        "BUILDS, ELSE = Extension(constructs=parameter), Extension()\n",
        encoding="utf-8",
    )
    (tmp_path / "pyproject.toml").write_text(
        '[tool.hyperpod-cdk.extensions]\nparameters = "ours:BUILDS"\nothers = "ours:ELSE"\n', encoding="utf-8"
    )
    activate(tmp_path)
    yield
    activate(project)


@pytest.mark.check("deployer_may_make_the_stacks", "skips")
@pytest.mark.usefixtures("builds", "run")
@pytest.mark.parametrize(
    ("types", "reason"),
    [
        (
            None,
            (
                "only the templates show what parameters of pyproject.toml adds; give the assembly that 'cdk synth"
                " --output' writes with --head"
            ),
        ),
        (
            frozenset({"AWS::SSM::Parameter", "AWS::CDK::Metadata", "AWS::S3::Bucket"}),
            (
                "the actions that CloudFormation needs for AWS::SSM::Parameter are unknown; allow those of the type by"
                " a policy of your own"
            ),
        ),
        (
            frozenset({"AWS::SSM::Parameter", "AWS::ECR::Repository"}),
            (
                "the actions that CloudFormation needs for AWS::ECR::Repository and AWS::SSM::Parameter are unknown;"
                " allow those of the types by a policy of your own"
            ),
        ),
    ],
)
def test_what_an_extension_adds_is_not_asked_about(
    case_of: Callable[..., Case],
    run_check: Callable[..., Result],
    fake_aws: FakeAws,
    types: frozenset[str] | None,
    reason: str,
) -> None:
    result = run_check(DEPLOYER, replace(case_of({}), types=types), fake_aws)
    assert [each.reason for each in result.skipped] == [reason]
    assert result.status is Status.SKIPPED
    assert result.details


@pytest.mark.check("deployer_may_make_the_stacks", "passes")
@pytest.mark.usefixtures("builds", "run")
def test_known_types_that_an_extension_adds_are_asked_about(
    case_of: Callable[..., Case], run_check: Callable[..., Result], fake_aws: FakeAws
) -> None:
    added = deployer_actions.resource_type("AWS::Budgets::Budget")
    assert added is not None
    without, with_it = (
        run_check(DEPLOYER, replace(case_of({}), types=types), fake_aws)
        for types in (frozenset(), frozenset({added.name, "AWS::CloudFormation::WaitConditionHandle"}))
    )
    assert (with_it.status, with_it.skipped) == (Status.PASSED, ())
    actions = [set(result.details[-1].data["actions"]) for result in (without, with_it)]
    assert actions[1] - actions[0] == set(added.actions) - actions[0]
    assert set(added.actions) - actions[0]


def environment(name: str = "environments/prod.yaml") -> Any:
    return load_environment(Path(__file__).parents[2] / name).environment


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("environments/prod.yaml", "prod"),
        ("examples/two-teams.yaml", "two-teams"),
        ("examples/elastic-training.yaml", "elastic-training"),
    ],
)
def test_the_types_are_those_of_the_templates(assemblies: Path, file: str, name: str) -> None:
    templates = shipped(assemblies, name).templates.values()
    made = {resource["Type"] for template in templates for resource in template["Resources"].values()}
    wanted = {each.name for each in needed_types(environment(file))} - {deployer_actions.CUSTOM_RESOURCE}
    # a wait condition's handle is an address of CloudFormation's own
    made -= {"AWS::CloudFormation::WaitConditionHandle"}
    assert wanted == {each for each in made if each.startswith("AWS::")}


def test_words_of_the_tables_are_known_and_used() -> None:
    types = (*deployer_actions.TYPES, *deployer_actions.FEATURES)
    used = {each.when for each in types} | {each.when for each in iam.SERVICE_LINKED_ROLES}
    assert used - set(WHEN) == set()
    assert set(WHEN) - used == set()


ADMIN = "arn:aws:iam::111122223333:role/platform-admin"
SSO = "AWSReservedSSO_Admin_1f9ff11932198c00"
ACCESS = "roles_with_access_exist"


def role(arn: str) -> RoleAnswer:
    return RoleAnswer(name=arn.rpartition("/")[2], arn=arn, trusts=())


@pytest.mark.check("roles_with_access_exist", "passes")
def test_roles_with_access_that_exist(run: Run, fake_aws: FakeAws) -> None:
    fake_aws.answers.role = {"platform-admin": role(ADMIN)}
    assert run(ACCESS).status is Status.PASSED


def test_a_role_of_several_teams_is_asked_for_once(run: Run, fake_aws: FakeAws) -> None:
    member = "arn:aws:iam::111122223333:role/member"
    teams = [
        {"name": name, "quota": [{"instance_type": "ml.p5.48xlarge", "count": 1}], "member_role_arns": [member]}
        for name in ("research", "serving")
    ]
    fake_aws.answers.role = {"platform-admin": role(ADMIN), "member": None}
    done = run(ACCESS, {"task_governance.teams": teams})
    assert [each.path for each in done.findings] == ["task_governance.teams[0].member_role_arns[0]"]
    assert sorted(str(question[1]) for question in fake_aws.asked) == ["member", "platform-admin"]


@pytest.mark.check("roles_with_access_exist", "fails")
def test_roles_with_access_that_do_not_exist(run: Run, fake_aws: FakeAws) -> None:
    whole = f"arn:aws:iam::111122223333:role/aws-reserved/sso.amazonaws.com/eu-west-1/{SSO}"
    short = f"arn:aws:iam::111122223333:role/{SSO}"
    fake_aws.answers.role = {"platform-admin": None, SSO: role(whole)}
    done = run(ACCESS, {"eks.admin_role_arns": [ADMIN, short]})
    assert said(done) == [
        (
            f"error: eks.admin_role_arns[0]: must be a role that exists, got {ADMIN}, which IAM does not have; correct"
            " the ARN"
        ),
        f"error: eks.admin_role_arns[1]: must be the ARN that IAM has, got {short}; write {whole}",
    ]
    assert run(ACCESS, {"eks.admin_role_arns": [whole]}).status is Status.PASSED


def test_an_execution_role_that_a_group_keeps_has_to_exist(run: Run, fake_aws: FakeAws) -> None:
    kept = "arn:aws:iam::111122223333:role/ml/training-nodes"
    fake_aws.answers.role = {"platform-admin": role(ADMIN), "training-nodes": role(kept.replace("ml/", ""))}
    done = run(ACCESS, {"hyperpod.instance_groups[0].existing": {"execution_role_arn": kept}})
    assert said(done) == [
        (
            "error: hyperpod.instance_groups[0].existing.execution_role_arn: must be the ARN that IAM has, got"
            f" {kept}; write {kept.replace('ml/', '')}"
        )
    ]


@pytest.mark.check("roles_with_access_exist", "skips")
def test_roles_with_access_without_an_answer(run: Run, fake_aws: FakeAws) -> None:
    theirs = "arn:aws:iam::444455556666:role/auditor"
    fake_aws.answers.role = {"platform-admin": NotAnswered("not allowed to ask", action="iam:GetRole"), "gone": None}
    done = run(ACCESS, {"eks.admin_role_arns": [ADMIN, theirs, "arn:aws:iam::111122223333:role/gone"]})
    assert [each.path for each in done.findings] == ["eks.admin_role_arns[2]"]
    assert {each.path: each.reason for each in done.skipped} == {
        "eks.admin_role_arns[0]": "not allowed to ask",
        "eks.admin_role_arns[1]": f"{theirs} belongs to account 444455556666, which is not queried",
    }
