"""IAM: the bootstrap stack, the permissions boundary, service-linked roles, and whether the deployer may do it all."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from hyperpod_cdk.catalog import addons, deployer_actions, iam, regions
from hyperpod_cdk.catalog.arns import arn_parts
from hyperpod_cdk.catalog.deployer_actions import ResourceType
from hyperpod_cdk.catalog.hyperpod import SERVICE_PRINCIPAL
from hyperpod_cdk.catalog.iam import ServiceLinkedRole
from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.checks.answers import Among, Aws, Decision, NotAnswered
from hyperpod_cdk.checks.model import Case, Detail, Found, Skipped, check, error, unanswered, warning
from hyperpod_cdk.checks.side_by_side import together
from hyperpod_cdk.config import Environment
from hyperpod_cdk.config.encryption import CREATE, Encryption, key_arn
from hyperpod_cdk.config.environment import FOUNDATION, stack_name
from hyperpod_cdk.config.extensions import builders
from hyperpod_cdk.config.wanted_addons import asked_for
from hyperpod_cdk.file_reading import read_text

_CREATE_ROLE = "iam:CreateServiceLinkedRole"
_ASSUME = "sts:AssumeRole"
_QUALIFIER = "@aws-cdk/core:bootstrapQualifier"
_SHOWN_ACTIONS = 12
_LONGEST_SETTINGS = 1_000_000
_NOT_BOOTSTRAPPED = "CDK is not bootstrapped, so CloudFormation has no execution role"


def _makes_security_group(environment: Environment) -> bool:
    existing = environment.network.existing
    return existing is None or existing.security_group_id is None or bool(environment.storage.made_lustre)


def _installed(environment: Environment) -> list[str]:
    return [name for name in asked_for(environment) if environment.eks.installs(name)]


def _uses_pod_identity(environment: Environment) -> bool:
    return any(name in addons.THROUGH_POD_IDENTITY for name in _installed(environment))


def _installs_addons(environment: Environment) -> bool:
    return environment.eks.existing is None or bool(_installed(environment))


def _makes_workspace(environment: Environment, key: str) -> bool:
    section = environment.operators.observability
    return section.enabled and environment.eks.installs(addons.OBSERVABILITY) and getattr(section, key) == CREATE


def _aliased_keys(environment: Environment) -> bool:
    encryption = environment.encryption
    return any(getattr(encryption, field) == CREATE for field in Encryption.model_fields if field != "eks_secrets")


def _makes_key(environment: Environment) -> bool:
    makes_secrets_key = environment.eks.existing is None and key_arn(environment.encryption.eks_secrets) is None
    return makes_secrets_key or _aliased_keys(environment)


WHEN: Mapping[str, Callable[[Environment], bool]] = {
    "always": lambda _: True,
    "new_network": lambda environment: environment.network.existing is None,
    "security_group": _makes_security_group,
    "new_eks_cluster": lambda environment: environment.eks.existing is None,
    "kms_key": _makes_key,
    "kms_alias": _aliased_keys,
    "addon": _installs_addons,
    "pod_identity": _uses_pod_identity,
    "lustre": lambda environment: bool(environment.storage.made_lustre),
    "data_repository": lambda environment: any(lustre.data_repositories for lustre in environment.storage.lustre),
    "task_governance": lambda environment: environment.task_governance is not None,
    "oidc_provider": lambda environment: environment.eks.oidc_provider,
    "custom_ami": lambda environment: any(
        group.image.ami_id not in (None, "default") for group in environment.hyperpod.instance_groups
    ),
    "notify": lambda environment: environment.notify is not None,
    "notify_topic": lambda environment: environment.notify is not None and environment.notify.sns_topic_arn is None,
    "notify_emails": lambda environment: environment.notify is not None and bool(environment.notify.emails),
    "notify_slack": lambda environment: environment.notify is not None and environment.notify.slack is not None,
    "notify_budget": lambda environment: (
        environment.notify is not None and environment.notify.monthly_budget_usd is not None
    ),
    "prometheus_workspace": lambda environment: _makes_workspace(environment, "prometheus_workspace"),
    "grafana_workspace": lambda environment: _makes_workspace(environment, "grafana_workspace"),
}
"""The meaning of the tables' words for an environment."""

# native only if the registry has them; elsewhere a function of the stack calls the API
_REGIONAL = frozenset({"AWS::SageMaker::ClusterSchedulerConfig", "AWS::SageMaker::ComputeQuota"})

# what the CDK CLI does itself if it may not assume a role of the same account
_INSTEAD_OF_DEPLOY = (
    "cloudformation:CreateChangeSet",
    "cloudformation:DeleteChangeSet",
    "cloudformation:DescribeChangeSet",
    "cloudformation:DescribeStackEvents",
    "cloudformation:DescribeStacks",
    "cloudformation:ExecuteChangeSet",
    "cloudformation:GetTemplate",
    "cloudformation:UpdateTerminationProtection",
)
_PASS_ROLE = "iam:PassRole"  # noqa: S105 - the name of an action
_LOOK_INTO_BUCKET = ("s3:GetBucketPolicy", "s3:ListBucket")
_LOOK_INTO_PREFIX = ("s3:GetObject", "s3:PutObject")
_INSTEAD_OF_PUBLISHING = ("s3:GetObject", "s3:PutObject")


def needed_types(environment: Environment) -> tuple[ResourceType, ...]:
    """Return the types of AWS resources that a deployment of the environment creates, with the actions they need."""
    return tuple(
        each
        for each in (*deployer_actions.TYPES, *deployer_actions.FEATURES)
        if WHEN[each.when](environment)
        and (each.name not in _REGIONAL or regions.has_type(environment.region, each.name))
    )


def qualifier(project: Path) -> str:
    """Return the qualifier of CDK's bootstrap stack: that of the project's ``cdk.json``, or CDK's default."""
    try:
        context = json.loads(read_text(project / "cdk.json", most=_LONGEST_SETTINGS))["context"]
        return str(context[_QUALIFIER])
    except (OSError, ValueError, LookupError, TypeError):
        # the CDK CLI reports a broken file
        return iam.BOOTSTRAP_QUALIFIER


@check(
    area="iam",
    asks=("bootstrap_version", "bucket"),
    inputs="account, region; the SSM parameter /cdk-bootstrap/hnb659fds/version, or that of the qualifier which"
    " cdk.json sets in @aws-cdk/core:bootstrapQualifier. The templates require version"
    f" {iam.MINIMUM_BOOTSTRAP_VERSION} (table of {iam.AS_OF}).",
    passes="The region is bootstrapped with this version or a newer one.",
    fails="It is not bootstrapped, or older: CloudFormation then refuses every template. If the bucket of the"
    " bootstrap stack exists without it, because 'cdk bootstrap' retains it, the finding names it: 'cdk bootstrap'"
    " fails until it is deleted.",
    skips="AWS does not answer about the parameter. A qualifier that is set elsewhere than in cdk.json is not known.",
    by_hand="aws ssm get-parameter --name /cdk-bootstrap/hnb659fds/version",
)
def cdk_bootstrap_is_new_enough(case: Case, aws: Aws) -> Iterator[Found]:
    """The bucket, the roles and the version that 'cdk bootstrap' creates in a region."""
    environment = case.environment
    version = aws.bootstrap_version(qualifier(case.project))
    # 'cdk bootstrap' alone makes CloudFormation's execution role an administrator
    command = f"run 'hyperpod-cdk bootstrap-policy {case.called} --out policy.json', then the commands that it prints"
    if version is None:
        bucket = _asset_bucket(case)
        first = ""
        # a bucket that AWS does not show is not reported: it may not exist, as it should be
        with suppress(NotAnswered):
            if aws.bucket(bucket) is not None:
                first = (
                    f", and 'cdk bootstrap' fails while {bucket} exists, the bucket of a bootstrap that failed or was"
                    f" deleted; check with 'aws s3 ls s3://{bucket} --recursive' whether it can be deleted, then"
                )
        yield error("region", f"needs CDK's bootstrap stack in {environment.region}, got none{first or ';'} {command}")
    elif version < iam.MINIMUM_BOOTSTRAP_VERSION:
        yield error(
            "region",
            f"needs version {iam.MINIMUM_BOOTSTRAP_VERSION} of CDK's bootstrap stack in {environment.region}, got"
            f" {version}; {command}",
        )


@check(
    area="iam",
    asks=("policy_exists",),
    inputs="permissions_boundary.",
    passes="The policy exists, or no boundary is set.",
    fails="There is no such policy: every role of the stacks would be refused. What the boundary allows is not checked:"
    " its roles do not exist yet.",
    skips="IAM does not answer.",
    by_hand="aws iam get-policy --policy-arn arn:aws:iam::111122223333:policy/developer-boundary",
)
def permissions_boundary_exists(case: Case, aws: Aws) -> Iterator[Found]:
    """IAM refuses a role with a boundary that does not exist."""
    environment = case.environment
    arn = boundary_arn(environment)
    if arn is None:
        return
    if not aws.policy_exists(arn):
        hint = "" if arn == environment.permissions_boundary else ", or write its ARN if it has a path"
        yield error(
            "permissions_boundary",
            f"needs the policy {arn}, got none in account {environment.account}; create it, correct the name{hint}",
        )


@check(
    area="iam",
    asks=("role", "bootstrap_version", "simulate"),
    may_lack=("role",),
    inputs="What the file needs: always AWSServiceRoleForSageMakerHyperPod, AWSServiceRoleForAmazonEKS for a new EKS"
    " cluster, AWSServiceRoleForAmazonFSx for file systems, AWSServiceRoleForFSxS3Access_<file system> for data"
    " repositories, AWSServiceRoleForAWSChatbot for a channel of Slack, AWSServiceRoleForAmazonGrafana for a Grafana"
    f" workspace (table of {iam.AS_OF}).",
    passes="The role exists, or the policy simulator allows CDK's execution role to create it for that service.",
    fails="It does not exist and the execution role may not create it. A warning where only a service control policy"
    " forbids it, or a policy with conditions: the simulator does not have everything that a real request has. A"
    " warning"
    " for AWSServiceRoleForAmazonGrafana, which a workspace without a VPC may not need.",
    skips="The role could not be read, IAM could not simulate, or CDK is not bootstrapped; each role on its own.",
    by_hand="aws iam get-role --role-name AWSServiceRoleForSageMakerHyperPod",
)
def service_linked_roles_exist_or_can_be_made(case: Case, aws: Aws) -> Iterator[Found]:
    """The service creates the role at its first use, with the caller's permissions; organizations often forbid"
    " that."""
    environment = case.environment
    roles = [role for role in iam.SERVICE_LINKED_ROLES if WHEN[role.when](environment)]
    for role, answer in zip(roles, together(lambda role: _creation(role, case, aws), roles), strict=True):
        if isinstance(answer, NotAnswered):
            yield unanswered(answer, _role_path(role), about=role.name)
        elif answer is not None and answer.decision != "allowed":
            say = warning if role.unsure or _is_uncertain(answer) else error
            doubt = f" ({role.unsure})" if role.unsure else ""
            yield say(
                _role_path(role),
                f"needs the service-linked role {role.name} for {role.needed_for}{doubt}, got none, and"
                f" {_who_denies(answer)} {_CREATE_ROLE} to {_executor(case).rpartition('/')[2]}{_unknown(answer)};"
                f" allow it there{_or_make(role)}",
            )


@check(
    area="iam",
    asks=("role",),
    may_lack=("role",),
    inputs="eks.admin_role_arns, task_governance.teams[].member_role_arns and"
    " hyperpod.instance_groups[].existing.execution_role_arn.",
    passes="IAM has each role of the environment's account under exactly this ARN, including its path.",
    fails="It has no role with this name, or one with another path: EKS refuses the access entry (invalid principal)"
    " after"
    " the control plane exists, IAM attaches no policy to an execution role, and CloudFormation rolls back.",
    skips="IAM does not answer about a role, or the role belongs to another account; the others are still compared.",
    by_hand="aws iam get-role --role-name platform-admin --query Role.Arn",
)
def roles_with_access_exist(case: Case, aws: Aws) -> Iterator[Found]:
    """EKS creates access entries only for roles that exist.

    Roles of IAM Identity Center have the path aws-reserved/sso.amazonaws.com, which their names do not show
    (https://github.com/terraform-aws-modules/terraform-aws-eks/issues/2969).
    """
    environment = case.environment
    own: dict[str, str] = {}
    for path, arn in _roles_with_access(environment):
        if arn in own:
            continue
        account = arn_parts(arn).account
        own[arn] = path
        if account != environment.account:
            yield Skipped(reason=f"{arn} belongs to account {account}, which is not queried", path=path)
    asked = [arn for arn in own if arn_parts(arn).account == environment.account]
    for arn, answer in zip(asked, together(lambda arn: aws.role(arn.rpartition("/")[2]), asked), strict=True):
        if isinstance(answer, NotAnswered):
            yield unanswered(answer, own[arn])
        elif answer is None:
            yield error(own[arn], f"must be a role that exists, got {arn}, which IAM does not have; correct the ARN")
        elif answer.arn != arn:
            yield error(own[arn], f"must be the ARN that IAM has, got {arn}; write {answer.arn}")


def _roles_with_access(environment: Environment) -> Iterator[tuple[str, str]]:
    for index, arn in enumerate(environment.eks.admin_role_arns):
        yield f"eks.admin_role_arns[{index}]", arn
    for index, group in enumerate(environment.hyperpod.instance_groups):
        if group.execution_role_arn is not None:
            yield f"hyperpod.instance_groups[{index}].existing.execution_role_arn", group.execution_role_arn
    teams = environment.task_governance.teams if environment.task_governance else ()
    for place, team in enumerate(teams):
        for index, arn in enumerate(team.member_role_arns):
            yield f"task_governance.teams[{place}].member_role_arns[{index}]", arn


@check(
    area="iam",
    asks=("caller", "simulate"),
    inputs="The caller and CDK's roles cdk-hnb659fds-deploy-role and -file-publishing-role in the environment's account"
    " and region.",
    passes="The policy simulator allows the caller to assume both, or to do what the CDK CLI does without them.",
    fails="It allows neither. A warning if only a service control policy forbids it, or a policy with"
    " conditions on keys that a simulated request does not have. CDK's lookup and"
    " image-publishing roles do not matter: nothing is looked up, no image is built. Whether a role's trust policy"
    " allows the caller is not simulated.",
    skips="IAM could not simulate the caller, such as the root user.",
    by_hand="aws iam simulate-principal-policy --policy-source-arn ROLE --action-names sts:AssumeRole --resource-arns"
    " arn:aws:iam::111122223333:role/cdk-hnb659fds-deploy-role-111122223333-us-east-1",
)
def caller_may_use_the_bootstrap_roles(case: Case, aws: Aws) -> Iterator[Found]:
    """The CDK CLI deploys with these roles; if it may not, it continues with the caller's own permissions."""
    caller = aws.caller()
    ways = (
        ("deploy", (*_INSTEAD_OF_DEPLOY, _PASS_ROLE), partial(_may_deploy, aws, case)),
        ("file-publishing", _INSTEAD_OF_PUBLISHING, partial(_may_publish, aws, case)),
    )
    arns = [_bootstrap_role(role, case) for role, _, _ in ways]
    answers = together(lambda arn: aws.simulate(caller.arn, (_ASSUME,), resource=arn)[_ASSUME], arns)
    for (role, instead, may_do_without), arn, answer in zip(ways, arns, answers, strict=True):
        if isinstance(answer, NotAnswered):
            yield unanswered(answer, "account", about=f"{_ASSUME} on cdk-…-{role}-role")
        elif answer.decision != "allowed" and not may_do_without(caller.arn):
            say = warning if _is_uncertain(answer) else error
            yield say(
                "account",
                f"needs {_ASSUME} on {arn}, got {_refusal(answer)} for {caller.arn}; allow it, or give the caller"
                f" {', '.join(instead)}",
            )


@check(
    area="iam",
    asks=("bootstrap_version", "simulate"),
    inputs="What the stacks of the file create, and what the templates have if they are given; for each type of"
    " resource the actions that CloudFormation's handlers need (registry schemas, table of"
    f" {deployer_actions.AS_OF}); CDK's role cdk-hnb659fds-cfn-exec-role.",
    passes="The policy simulator allows the execution role all of them. With 'cdk bootstrap' by default the role is"
    " an administrator; the policy of 'hyperpod-cdk bootstrap-policy' passes as well.",
    fails="It refuses an action that is certainly called, for all resources and for one with the stacks' names;"
    " if only the templates show the name, a refusal for all resources does not count."
    " A warning if other actions of the table are refused, which a handler may or may not call or which may be"
    " allowed for some resources only, and if only a service control policy refuses, or a policy with conditions:"
    " the simulator does not have everything that a real request has. One finding names all, by service.",
    skips="IAM could not simulate, or CDK is not bootstrapped; what an extension adds, if no templates are given"
    " (--head), and its types whose actions are unknown.",
    by_hand="aws iam simulate-principal-policy --action-names sagemaker:CreateCluster eks:CreateCluster"
    " --policy-source-arn arn:aws:iam::111122223333:role/cdk-hnb659fds-cfn-exec-role-111122223333-us-east-1",
)
def deployer_may_make_the_stacks(case: Case, aws: Aws) -> Iterator[Found]:
    """CloudFormation uses the execution role; a missing permission shows only after the earlier resources exist."""
    environment = case.environment
    if aws.bootstrap_version(qualifier(case.project)) is None:
        yield Skipped(reason=_NOT_BOOTSTRAPPED, path="account")
        return
    own = [extension.name for extension, _ in builders(environment)]
    if own and case.types is None:
        yield Skipped(
            reason=f"only the templates show what {joined(own)} of pyproject.toml adds; give the assembly that 'cdk"
            " synth --output' writes with --head",
            path="account",
        )
    added = {name: deployer_actions.resource_type(name) for name in sorted(case.types or ())}
    if unknown := [name for name, row in added.items() if row is None and name not in deployer_actions.NOTHING_MADE]:
        yield Skipped(
            reason=f"the actions that CloudFormation needs for {joined(unknown)} are unknown; allow those of the"
            f" {'type' if len(unknown) == 1 else 'types'} by a policy of your own",
            path="account",
        )
    types = tuple(dict.fromkeys([*needed_types(environment), *(row for row in added.values() if row is not None)]))
    actions = sorted({action for each in types for action in each.actions})
    executor, context = _executor(case), _context(environment)
    decisions = aws.simulate(executor, actions, context=context)
    for why in dict.fromkeys(decisions.unread.values()):
        unread = [action for action in actions if decisions.unread.get(action) is why]
        yield unanswered(why, "account", about=f"{len(unread)} of {len(actions)} actions")
    refused = {action: each for action, each in decisions.read.items() if each.decision != "allowed"}
    limited, not_judged = _for_single_resources(aws, case, refused)
    refused = {action: limited.get(action, decision) for action, decision in refused.items()}
    refused = {
        action: decision
        for action, decision in refused.items()
        if decision.decision != "allowed" and action not in not_judged
    }
    if refused:
        certain = {action for each in types for action in each.certain}
        yield _denied(case, refused, {action: refused[action] for action in refused if action in certain})
    asked = [action for action in decisions.read if action not in not_judged]
    yield Detail(
        text=f"{len(asked) - len(refused)} of {len(asked)} actions are allowed to {executor.rpartition('/')[2]}",
        data={"denied": sorted(refused), "actions": actions, "not_judged": sorted(not_judged)},
    )


@check(
    area="iam",
    asks=("bootstrap_version", "simulate"),
    inputs="s3_uri of every data repository of every file system; CDK's role cdk-hnb659fds-cfn-exec-role. FSx looks"
    " into a linked bucket with the permissions of the identity that links it: s3:Get*, s3:List* and"
    " s3:PutObject on bucket and prefix"
    " (FSx for Lustre user guide, Unable to validate access to an S3 bucket when creating a DRA), of which"
    " s3:GetBucketPolicy, s3:ListBucket, s3:GetObject and s3:PutObject are checked.",
    passes="The policy simulator allows the execution role all four on each bucket and prefix.",
    fails="A policy or the permissions boundary refuses one. A warning if only a service control policy refuses it,"
    " a policy with conditions, or no policy allows it: the bucket's own policy may, which the simulator does not"
    " read.",
    skips="IAM could not simulate, or CDK is not bootstrapped; each bucket on its own.",
    by_hand="aws iam simulate-principal-policy --action-names s3:GetObject s3:PutObject --resource-arns"
    " arn:aws:s3:::my-datasets/prefix/* --policy-source-arn"
    " arn:aws:iam::111122223333:role/cdk-hnb659fds-cfn-exec-role-111122223333-us-east-1",
)
def data_repositories_may_be_linked(case: Case, aws: Aws) -> Iterator[Found]:
    """FSx refuses a link to a bucket that CloudFormation's role may not read, after the file system was created."""
    environment = case.environment
    links = {
        f"storage.lustre[{index}].data_repositories[{link}].s3_uri": repository.s3_uri
        for index, system in enumerate(environment.storage.lustre)
        for link, repository in enumerate(system.data_repositories)
    }
    if not links:
        return
    if aws.bootstrap_version(qualifier(case.project)) is None:
        for path in links:
            yield Skipped(reason=_NOT_BOOTSTRAPPED, path=path)
        return
    role = _executor(case).rpartition("/")[2]
    for (path, uri), answer in zip(
        links.items(), together(lambda uri: _linking(uri, case, aws), links.values()), strict=True
    ):
        if isinstance(answer, NotAnswered):
            yield unanswered(answer, path, about=f"rights on {uri}")
            continue
        refused = [decision for decision in answer if decision.decision != "allowed"]
        if refused:
            is_certain = any(
                not _is_uncertain(each) and (each.decision == "explicitDeny" or each.denied_by_boundary)
                for each in refused
            )
            listed = "; ".join(
                f"{who}: {', '.join(actions)}" for who, actions in _by_refusal(refused, surely=()).items()
            )
            say = error if is_certain else warning
            yield say(
                path,
                f"needs {uri} open to {role}, whose permissions FSx uses to check the bucket when it is linked, got"
                f" {listed}; allow {', '.join(deployer_actions.DATA_REPOSITORY_ACTIONS)} on the bucket and the prefix,"
                " as 'hyperpod-cdk bootstrap-policy' does, or in the bucket's policy",
            )


def _linking(uri: str, case: Case, aws: Aws) -> list[Decision]:
    """Return the decisions on FSx's actions on a bucket and a prefix when they are linked."""
    bucket, _, prefix = uri.removeprefix("s3://").partition("/")
    arn = f"arn:{case.environment.partition}:s3:::{bucket}"
    places = {arn: _LOOK_INTO_BUCKET, f"{arn}/{prefix}*": _LOOK_INTO_PREFIX}
    return [
        decision
        for place, actions in places.items()
        for decision in aws.simulate(_executor(case), actions, resource=place).values()
    ]


def _for_single_resources(
    aws: Aws, case: Case, refused: Mapping[str, Decision]
) -> tuple[dict[str, Decision], frozenset[str]]:
    """Ask again if a policy may allow an action for some resources only, with names as the stacks give them.

    Gives the decisions, and the actions whose resources only the templates name: for those the result is unknown.
    """
    environment = case.environment
    place = {"partition": environment.partition, "region": environment.region, "account": environment.account}
    actions: dict[str, list[str]] = {}
    unnamed = set()
    for action, decision in refused.items():
        types = deployer_actions.LIMITED_TO.get(action, ())
        if not types or decision.decision != "implicitDeny" or decision.denied_by_organization:
            continue
        rows = [
            each
            for each in deployer_actions.LIMITABLE
            if each.service == action.partition(":")[0] and each.type in types
        ]
        named = [arn for each in rows if (arn := each.example(environment.name, **place)) is not None]
        for arn in named:
            actions.setdefault(arn, []).append(action)
        if not named:
            unnamed.add(action)

    def again(arn: str) -> Among[Decision]:
        return aws.simulate(_executor(case), actions[arn], resource=arn, context=_context(environment))

    found: dict[str, Decision] = {}
    unread: dict[str, NotAnswered] = {}
    for answer, asked in zip(together(again, list(actions)), actions.values(), strict=True):
        among = Among({}, dict.fromkeys(asked, answer)) if isinstance(answer, NotAnswered) else answer
        unread.update(among.unread)
        for action, decision in among.read.items():
            # the reference does not show which of its types an action needs
            if action not in found or decision.decision == "allowed":
                found[action] = decision
    for action, why in unread.items():
        if action not in found or found[action].decision != "allowed":
            raise why
    return found, frozenset(unnamed)


def _denied(case: Case, refused: Mapping[str, Decision], surely: Mapping[str, Decision]) -> Found:
    is_certain = any(not _is_uncertain(decision) for decision in surely.values())
    listed = "; ".join(
        f"{who}: {_by_service(actions, surely)}" for who, actions in _by_refusal(refused.values(), surely).items()
    )
    role = _executor(case).rpartition("/")[2]
    if is_certain:
        text = (
            f"needs {len(refused)} more actions allowed to {role}"
            if len(refused) > 1
            else f"needs one more action allowed to {role}"
        )
        return error("account", f"{text}, got {listed}; add them to its policies")
    return warning(
        "account",
        f"CloudFormation may need actions that the policy simulator refuses to {role} for all resources (registry"
        f" schemas, {deployer_actions.AS_OF}): {listed}; allow them if they are not allowed for single resources"
        " already",
    )


def _by_refusal(refused: Iterable[Decision], surely: Container[str]) -> dict[str, list[str]]:
    """Group actions by who refuses them, those that are certainly called first."""
    groups: dict[str, list[str]] = {}
    for decision in sorted(refused, key=lambda each: (each.action not in surely, each.action)):
        groups.setdefault(_refusal(decision), []).append(decision.action)
    return groups


def _by_service(actions: Sequence[str], surely: Container[str]) -> str:
    """Write actions by service, shortened if there are many: ``ec2 CreateVpc, CreateSubnet and 3 more``."""
    services: dict[str, list[str]] = {}
    shown = actions[: max(_SHOWN_ACTIONS, sum(action in surely for action in actions))]
    for action in shown:
        service, _, name = action.partition(":")
        services.setdefault(service, []).append(name)
    text = ", ".join(f"{service}:{'|'.join(names)}" for service, names in services.items())
    rest = len(actions) - len(shown)
    return f"{text} and {rest} more" if rest else text


def _creation(role: ServiceLinkedRole, case: Case, aws: Aws) -> Decision | None:
    """Return whether the role may be created; None where it need not be, because it exists."""
    if not role.is_made_anew and aws.role(role.name) is not None:
        return None
    if aws.bootstrap_version(qualifier(case.project)) is None:
        raise NotAnswered(f"the role does not exist, and {_NOT_BOOTSTRAPPED}")
    return aws.simulate(
        _executor(case),
        (_CREATE_ROLE,),
        resource=role.arn(partition=case.environment.partition, account=case.environment.account),
        context={"iam:AWSServiceName": role.service},
    )[_CREATE_ROLE]


def _may_deploy(aws: Aws, case: Case, principal_arn: str) -> bool:
    passing = {"iam:PassedToService": "cloudformation.amazonaws.com"}
    decisions = (
        *aws.simulate(principal_arn, _INSTEAD_OF_DEPLOY, resource=_stack_arn(case.environment)).values(),
        *aws.simulate(principal_arn, (_PASS_ROLE,), resource=_executor(case), context=passing).values(),
    )
    return all(each.decision == "allowed" for each in decisions)


def _may_publish(aws: Aws, case: Case, principal_arn: str) -> bool:
    decisions = aws.simulate(principal_arn, _INSTEAD_OF_PUBLISHING, resource=_asset_arn(case))
    return all(each.decision == "allowed" for each in decisions.values())


def _context(environment: Environment) -> dict[str, str]:
    """Return the condition keys of requests that CloudFormation makes for the stacks."""
    boundary = boundary_arn(environment)
    return {
        "aws:ResourceTag/aws:cloudformation:stack-name": f"{environment.name}-example",
        "iam:PassedToService": SERVICE_PRINCIPAL,
        "iam:PolicyARN": f"arn:{environment.partition}:iam::{environment.account}:policy/{environment.name}-example",
        "kms:GrantIsForAWSResource": "true",
        **({} if boundary is None else {"iam:PermissionsBoundary": boundary}),
    }


def boundary_arn(environment: Environment) -> str | None:
    """Return the ARN of the permissions boundary that the file sets, None if it sets none."""
    boundary = environment.permissions_boundary
    if boundary is None or boundary.startswith("arn:"):
        return boundary
    return f"arn:{environment.partition}:iam::{environment.account}:policy/{boundary}"


def _is_uncertain(decision: Decision) -> bool:
    """Whether a real request may have another result.

    The simulator evaluates conditions of an organization's policies without a real request (github.com/aws/aws-sdk,
    issue 102), and those of other policies without the keys that it was not given.
    """
    return decision.denied_by_organization or bool(decision.unknown_keys)


def _refusal(decision: Decision) -> str:
    return f"{_refuser(decision)}{_unknown(decision)}"


def _refuser(decision: Decision) -> str:
    if decision.denied_by_organization:
        return "a refusal by a service control policy"
    if decision.denied_by_boundary:
        return "a refusal by the permissions boundary"
    return "a refusal by a policy" if decision.decision == "explicitDeny" else "no policy that allows it"


def _who_denies(decision: Decision) -> str:
    if decision.denied_by_organization:
        return "a service control policy refuses"
    if decision.denied_by_boundary:
        return "the permissions boundary refuses"
    return "a policy refuses" if decision.decision == "explicitDeny" else "no policy allows"


def _unknown(decision: Decision) -> str:
    return f" (without the values of {', '.join(decision.unknown_keys)})" if decision.unknown_keys else ""


def _or_make(role: ServiceLinkedRole) -> str:
    if role.is_made_anew:
        return ""
    return f", or run 'aws iam create-service-linked-role --aws-service-name {role.service}' with an identity that may"


def _role_path(role: ServiceLinkedRole) -> str:
    return _ROLE_PATHS[role.when]


_ROLE_PATHS = {
    "always": "hyperpod",
    "new_eks_cluster": "eks",
    "lustre": "storage.lustre",
    "data_repository": "storage.lustre",
    "notify_slack": "notify.slack",
    "grafana_workspace": "operators.observability.grafana_workspace",
}
"""Where the file needs the service of a service-linked role, by the word for when it does."""


def _bootstrap_role(role: str, case: Case) -> str:
    environment = case.environment
    return iam.bootstrap_role_arn(
        role,
        partition=environment.partition,
        account=environment.account,
        region=environment.region,
        qualifier=qualifier(case.project),
    )


_executor = partial(_bootstrap_role, "cfn-exec")


def _stack_arn(environment: Environment) -> str:
    place = f"{environment.partition}:cloudformation:{environment.region}:{environment.account}"
    return f"arn:{place}:stack/{stack_name(environment.name, FOUNDATION)}/*"


def _asset_arn(case: Case) -> str:
    return f"arn:{case.environment.partition}:s3:::{_asset_bucket(case)}/*"


def _asset_bucket(case: Case) -> str:
    environment = case.environment
    return iam.bootstrap_bucket(
        account=environment.account, region=environment.region, qualifier=qualifier(case.project)
    )
