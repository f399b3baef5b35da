"""The account: whose credentials these are, the state of the stacks, and what an earlier deployment left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar, cast

from hyperpod_cdk.checks.answers import Aws, HyperPodClusterAnswer, NotAnswered, StackAnswer, Undescribed
from hyperpod_cdk.checks.model import Case, Found, Skipped, check, error, unanswered, warning
from hyperpod_cdk.checks.side_by_side import together
from hyperpod_cdk.config import Environment
from hyperpod_cdk.config.environment import FOUNDATION, HYPERPOD, STACKS, STORAGE, stack_name
from hyperpod_cdk.findings import Finding

# the stack is only a plan: a deployment creates it as if there were none (CDK CLI, performDeployment)
_ONLY_PLANNED = "REVIEW_IN_PROGRESS"
_FIRST_FAILED = ("ROLLBACK_COMPLETE", "ROLLBACK_FAILED")
_HYPERPOD_READY, _EKS_READY = "InService", "ACTIVE"
_GOING = frozenset({"Deleting", "DELETING"})
_FAILED = frozenset({"Failed", "FAILED"})
_STACK_TAG = "aws:cloudformation:stack-name"
_TAKE_OVER = "'cdk deploy --import-existing-resources'"

FirstT = TypeVar("FirstT")
SecondT = TypeVar("SecondT")


def stack_names(environment: Environment) -> tuple[str, ...]:
    """Return the names of the stacks that a deployment of this environment creates or changes."""
    stacks = (stack for stack in STACKS if stack != STORAGE or environment.storage.made_lustre)
    return tuple(stack_name(environment.name, stack) for stack in stacks)


@check(
    area="account",
    asks=("caller",),
    inputs="account, and the credentials in the environment.",
    passes="The credentials belong to the account that the file names.",
    fails="They belong to another account: every other answer would be about that one, and the CDK CLI refuses to"
    " deploy.",
    skips="AWS does not say whose credentials they are.",
    by_hand="aws sts get-caller-identity",
)
def credentials_belong_to_the_account(case: Case, aws: Aws) -> Iterator[Found]:
    """All other questions go to the account of the credentials."""
    caller = aws.caller()
    if caller.account != case.environment.account:
        yield error(
            "account",
            f"needs credentials of account {case.environment.account}, got those of {caller.account} ({caller.arn});"
            " use another profile, or correct account",
        )


@check(
    area="account",
    asks=("stack",),
    may_lack=("stack",),
    inputs="name, storage; the stacks <name>-foundation, -storage, -hyperpod, -platform and -observability.",
    passes="Each stack does not exist yet, is a plan that was never executed, is in a state from which"
    " CloudFormation can update it, or is the remainder of a first deployment that failed, which the CDK CLI deletes"
    " before it deploys again.",
    fails="A stack is being changed, waits after a failure, or is the remainder of a first deployment that failed and"
    " has termination protection, which the CDK CLI does not lift. A warning where the CDK CLI has to delete what"
    " CloudFormation could not roll back.",
    skips="CloudFormation does not answer, or a stack is in a state that this version does not know; each stack on its"
    " own.",
    by_hand="aws cloudformation describe-stacks --stack-name prod-foundation",
)
def stacks_are_ready_to_deploy(case: Case, aws: Aws) -> Iterator[Found]:
    """A stack in a failed state stops the whole deployment, in the worst case after an hour of other stacks."""
    names = stack_names(case.environment)
    for name, stack in zip(names, together(aws.stack, names), strict=True):
        if isinstance(stack, NotAnswered):
            yield unanswered(stack, "name", about=name)
        elif stack is not None:
            yield from _stuck(stack, case.called)


@check(
    area="account",
    asks=("eks_cluster", "stack"),
    may_lack=("eks_cluster", "stack"),
    inputs="name; the EKS cluster <name>-eks and the stack <name>-foundation. Nothing with eks.existing.",
    passes="There is no such cluster, or the stack exists, the cluster's tags name it or no stack and it is ACTIVE.",
    fails="There is one and the stack does not exist, or the cluster's tags name another stack or none: EKS refuses a"
    " second one with this name. Or the cluster is being changed or deleted; one that FAILED is a warning.",
    skips="AWS does not answer about the cluster or the stack.",
    by_hand="aws eks describe-cluster --name prod-eks --query cluster.tags",
)
def eks_cluster_name_is_free_or_ours(case: Case, aws: Aws) -> Iterator[Found]:
    """A cluster counts as the environment's only if its tags name our stack; deleting others is never proposed."""
    environment = case.environment
    if environment.eks.existing is not None:
        return
    name, maker = environment.eks_cluster_name, stack_name(environment.name, FOUNDATION)
    cluster, stack = _both(lambda: aws.eks_cluster(name), lambda: aws.stack(maker))
    owner = cluster.tags.get(_STACK_TAG) if cluster is not None else None
    if cluster is None:
        return
    if _stands(stack) and owner in {None, maker}:
        if cluster.status != _EKS_READY:
            see = f"'aws eks describe-cluster --name {name}'"
            yield _not_ready("name", f"the EKS cluster {name}", cluster.status, _EKS_READY, see)
        return
    if owner == maker:
        yield error(
            "name",
            f"needs the EKS cluster {name} to be created by {maker}, got one that an earlier stack of that name"
            " created"
            " and that belongs to no stack now; choose another name, name the cluster in eks.existing, or let the"
            " stack import"
            f" it with {_TAKE_OVER}",
        )
    else:
        whose = f"one of the stack {owner}" if owner else f"one without the tag {_STACK_TAG}, which has another owner"
        yield error(
            "name",
            f"needs the EKS cluster {name} to be created by {maker}, got {whose}; choose another name, or name the"
            " cluster in eks.existing",
        )


@check(
    area="account",
    asks=("hyperpod_clusters", "stack"),
    may_lack=("stack",),
    inputs="hyperpod.cluster_name (default: name); the stack <name>-hyperpod.",
    passes="There is no HyperPod cluster with that name, or the stack exists and the cluster is InService. The list of"
    " clusters does not show which stack created one: if the stack exists, the cluster counts as the stack's.",
    fails="There is one and the stack does not exist: SageMaker refuses a second one with this name. Or the stack"
    " exists"
    " and its cluster is being changed, rolled back or deleted; one that Failed is a warning.",
    skips="AWS does not answer about the clusters or the stack.",
    by_hand="aws sagemaker list-clusters --name-contains prod",
)
def hyperpod_cluster_name_is_free_or_ours(case: Case, aws: Aws) -> Iterator[Found]:
    """Unlike the EKS cluster it cannot be imported by name: CloudFormation identifies it by an ARN that ends with an"
    " ID."""
    environment = case.environment
    name, maker = environment.hyperpod_cluster_name, stack_name(environment.name, HYPERPOD)
    clusters, stack = _both(aws.hyperpod_clusters, lambda: aws.stack(maker))
    # the list has enough about a cluster here
    there: list[HyperPodClusterAnswer | Undescribed] = [*clusters.read, *clusters.unread]
    own = next((each for each in there if each.name == name), None)
    if own is None:
        if clusters.broken_off is not None:
            yield unanswered(clusters.broken_off, _cluster_path(environment), about=name)
    elif not _stands(stack):
        yield error(
            _cluster_path(environment),
            f"needs the HyperPod cluster {name} to be created by {maker}, got one that is {own.status}"
            " already; set hyperpod.cluster_name to another name, and find its owner with"
            f" 'aws sagemaker list-tags --resource-arn {own.arn}'",
        )
    elif own.status != _HYPERPOD_READY:
        see = f"'aws sagemaker describe-cluster --cluster-name {name}'"
        yield _not_ready(_cluster_path(environment), f"the HyperPod cluster {name}", own.status, _HYPERPOD_READY, see)


def _not_ready(path: str, what: str, status: str, ready: str, see: str) -> Finding:
    """Say that AWS refuses, or may refuse, to change something in its current state."""
    if status in _FAILED:
        # a change may repair it, but AWS does not document that it does
        return warning(path, f"{what} is {status}, and a deployment may not repair it; find the cause with {see} first")
    if status in _GOING:
        return error(
            path,
            f"needs {what} to be {ready}, got {status}: it is being deleted; see {see}, and deploy after"
            " it and its stack are deleted",
        )
    return error(
        path,
        f"needs {what} to be {ready}, got {status}, in which AWS refuses to change it; wait until {see} shows {ready}",
    )


def _stuck(stack: StackAnswer, called: str) -> Iterator[Found]:
    """Say what prevents ``cdk deploy`` from deploying a stack."""
    name, status = stack.name, stack.status
    why = f"'aws cloudformation describe-stack-events --stack-name {name}'"
    recover = f"run 'hyperpod-cdk recover {called}'"
    state = fix = ""
    if status in _FIRST_FAILED:
        # the CDK CLI deletes such a stack first; with termination protection CloudFormation refuses
        if stack.is_protected:
            state = "the remainder of a first deployment that failed, with termination protection"
            fix = f"{recover}, which deletes the remainder, then deploy"
        elif status == "ROLLBACK_FAILED":
            yield warning(
                "name",
                f"{name} is ROLLBACK_FAILED: a first deployment failed and could not be rolled back; the CDK CLI tries"
                f" to delete it before it deploys again, and {why} shows what could not be deleted; "
                "'hyperpod-cdk deploy' needs it deleted first:"
                f" {recover}, which names what will be deleted and deletes it",
            )
    elif status == "DELETE_FAILED":
        state = "its deletion failed"
        fix = f"{recover}, which names what blocks the deletion and completes it"
    elif status.endswith("_IN_PROGRESS") and status != _ONLY_PLANNED:
        state, fix = "somebody else's deployment or deletion", "wait until it has ended"
    elif status.endswith("_FAILED"):
        state, fix = "a deployment stopped halfway", f"{recover}, which names the cause and the fix"
    elif not status.endswith("_COMPLETE") and status != _ONLY_PLANNED:
        yield Skipped(reason=f"{name} is {status}, which this version does not know", path="name")
    if fix:
        yield error("name", f"needs {name} in a state that can be updated, got {status} ({state}); {fix}")


def _stands(stack: StackAnswer | None) -> bool:
    return stack is not None and stack.status != _ONLY_PLANNED


def _cluster_path(environment: Environment) -> str:
    return "hyperpod.cluster_name" if environment.hyperpod.cluster_name else "name"


def _both(first: Callable[[], FirstT], second: Callable[[], SecondT]) -> tuple[FirstT, SecondT]:
    """Ask two questions in parallel; raises the NotAnswered of either."""
    asks: tuple[Callable[[], FirstT | SecondT], ...] = (first, second)
    answers = together(lambda ask: ask(), asks)
    for answer in answers:
        if isinstance(answer, NotAnswered):
            raise answer
    return cast("tuple[FirstT, SecondT]", tuple(answers))
