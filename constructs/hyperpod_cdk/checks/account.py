"""The account: whose credentials these are, what state the stacks are in, and what an earlier life left behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar, cast

from hyperpod_cdk.checks.answers import Aws, NotAnswered, StackAnswer
from hyperpod_cdk.checks.model import Case, Found, Skipped, check, error, warning
from hyperpod_cdk.checks.requirements import FOUNDATION, HYPERPOD, STACKS, STORAGE
from hyperpod_cdk.checks.side_by_side import together
from hyperpod_cdk.config import Environment

# the stack is only a plan: a deployment makes it as if there were none (CDK CLI, performDeployment)
_ONLY_PLANNED = "REVIEW_IN_PROGRESS"
_STACK_TAG = "aws:cloudformation:stack-name"
_TAKE_OVER = "'cdk deploy --import-existing-resources'"

FirstT = TypeVar("FirstT")
SecondT = TypeVar("SecondT")


def stack_names(environment: Environment) -> tuple[str, ...]:
    """Give the names of the stacks that a deployment of this environment makes or changes."""
    stacks = (stack for stack in STACKS if stack != STORAGE or environment.storage.made_lustre)
    return tuple(f"{environment.name}-{stack}" for stack in stacks)


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
    """Whatever else is asked is asked of the account behind the credentials."""
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
    inputs="name, storage, deletion_protection; the stacks <name>-foundation, -storage, -hyperpod, -platform"
    " and -observability.",
    passes="Each stack does not exist yet, is a plan that was never executed, or came to rest in a state from which"
    " CloudFormation updates it.",
    fails="A stack is being changed, waits after a failure, or is the remainder of a first deployment that failed:"
    " that one CDK would delete by itself, but termination protection, which comes with deletion_protection,"
    " forbids it. A warning for the foundation and where deletion_protection is false, since the stack may still have"
    " the protection of an earlier try.",
    skips="CloudFormation does not answer; each stack by itself.",
    by_hand="aws cloudformation describe-stacks --stack-name prod-foundation",
)
def stacks_are_ready_to_deploy(case: Case, aws: Aws) -> Iterator[Found]:
    """A stuck stack stops the whole deployment, in the worst case after the stacks before it have cost an hour."""
    names = stack_names(case.environment)
    for name, stack in zip(names, together(aws.stack, names), strict=True):
        if isinstance(stack, NotAnswered):
            yield Skipped(reason=f"{name}: {stack.reason}", action=stack.action, path="name")
        elif stack is not None and (found := _stuck(stack, case.environment)):
            yield found


@check(
    area="account",
    asks=("eks_cluster", "stack"),
    inputs="name; the EKS cluster <name>-eks and the stack <name>-foundation. Nothing with eks.existing.",
    passes="There is no such cluster, or the stack made it.",
    fails="There is one and the stack does not exist, or the cluster's tags name another stack: EKS refuses a second"
    " one of the name.",
    skips="AWS does not answer about the cluster or the stack.",
    by_hand="aws eks describe-cluster --name prod-eks --query cluster.tags",
)
def eks_cluster_name_is_free_or_ours(case: Case, aws: Aws) -> Iterator[Found]:
    """With deletion_protection the cluster outlives its stack."""
    environment = case.environment
    if environment.eks.existing is not None:
        return
    name, stack_name = environment.eks_cluster_name, f"{environment.name}-{FOUNDATION}"
    cluster, stack = _both(lambda: aws.eks_cluster(name), lambda: aws.stack(stack_name))
    owner = cluster.tags.get(_STACK_TAG) if cluster is not None else None
    if cluster is None or (_stands(stack) and owner in {None, stack_name}):
        return
    if owner in {None, stack_name}:
        yield error(
            "name",
            f"needs the EKS cluster {name} to be made by {stack_name}, got one that no stack has any more; let the"
            f" stack"
            f" take it over with {_TAKE_OVER}, delete the cluster, or choose another name",
        )
    else:
        yield error(
            "name",
            f"needs the EKS cluster {name} to be made by {stack_name}, got one of the stack {owner}; choose another"
            f" name,"
            " or name the cluster in eks.existing",
        )


@check(
    area="account",
    asks=("hyperpod_clusters", "stack"),
    inputs="hyperpod.cluster_name (default: name); the stack <name>-hyperpod.",
    passes="There is no HyperPod cluster of that name, or the stack exists. The list of clusters does not say which"
    " stack made one: where the stack exists, its cluster is taken for the stack's.",
    fails="There is one and the stack does not exist: SageMaker refuses a second one of the name.",
    skips="AWS does not answer about the clusters or the stack.",
    by_hand="aws sagemaker list-clusters --name-contains prod",
)
def hyperpod_cluster_name_is_free_or_ours(case: Case, aws: Aws) -> Iterator[Found]:
    """Unlike the EKS cluster it cannot be taken over by name: CloudFormation knows it by an ARN that ends with an"
    " ID."""
    environment = case.environment
    name, stack_name = environment.hyperpod_cluster_name, f"{environment.name}-{HYPERPOD}"
    clusters, stack = _both(aws.hyperpod_clusters, lambda: aws.stack(stack_name))
    for cluster in clusters:
        if cluster.name == name and not _stands(stack):
            yield error(
                _cluster_path(environment),
                f"needs the HyperPod cluster {name} to be made by {stack_name}, got one that is {cluster.status}"
                f" already;"
                f" delete it with 'aws sagemaker delete-cluster --cluster-name {name}', or set hyperpod.cluster_name",
            )


@dataclass(frozen=True)
class _Advice:
    state: str
    fix: str


def _stuck(stack: StackAnswer, environment: Environment) -> Found | None:
    if stack.status == _ONLY_PLANNED:
        return None
    protected = environment.deletion_protection and stack.name != f"{environment.name}-{FOUNDATION}"
    if stack.status == "ROLLBACK_COMPLETE" and not protected:
        return warning(
            "name",
            f"{stack.name} is ROLLBACK_COMPLETE, the remainder of a first deployment that failed; 'cdk deploy'"
            f" deletes it"
            " first, unless an earlier try left it protected: then run 'aws cloudformation"
            f" update-termination-protection --no-enable-termination-protection --stack-name {stack.name}'",
        )
    advice = _advice(stack, environment)
    if advice is None:
        return None
    return error("name", f"needs {stack.name} at rest, got {stack.status} ({advice.state}); {advice.fix}")


def _advice(stack: StackAnswer, environment: Environment) -> _Advice | None:
    name, status = stack.name, stack.status
    delete = (
        f"run 'aws cloudformation update-termination-protection --no-enable-termination-protection --stack-name {name}'"
        f" and 'aws cloudformation delete-stack --stack-name {name}'"
    )
    if status == "ROLLBACK_COMPLETE":
        return _Advice("the remainder of a first deployment that failed", delete)
    if status in {"ROLLBACK_FAILED", "DELETE_FAILED"}:
        what = "a first deployment failed and could not be taken back" if "ROLL" in status else "its deletion failed"
        if name == f"{environment.name}-{FOUNDATION}" and environment.eks.existing is None:
            unprotect = f"aws eks update-cluster-config --name {environment.eks_cluster_name} --no-deletion-protection"
            return _Advice(what, f"run '{unprotect}' where the cluster is still there, then {delete}")
        return _Advice(
            what, f"see 'aws cloudformation describe-stack-events --stack-name {name}' for why, then {delete}"
        )
    if status.endswith("_IN_PROGRESS"):
        return _Advice("somebody else's deployment or deletion", "wait until it has come to an end")
    if status.endswith("_FAILED"):
        path = f"{environment.name}/{name.removeprefix(f'{environment.name}-')}"
        return _Advice("a deployment stopped half way", f"run 'cdk rollback {path} -c env={environment.name}'")
    return None


def _stands(stack: StackAnswer | None) -> bool:
    return stack is not None and stack.status != _ONLY_PLANNED


def _cluster_path(environment: Environment) -> str:
    return "hyperpod.cluster_name" if environment.hyperpod.cluster_name else "name"


def _both(first: Callable[[], FirstT], second: Callable[[], SecondT]) -> tuple[FirstT, SecondT]:
    """Ask two questions side by side; raises the NotAnswered of either."""
    asks: tuple[Callable[[], FirstT | SecondT], ...] = (first, second)
    answers = together(lambda ask: ask(), asks)
    for answer in answers:
        if isinstance(answer, NotAnswered):
            raise answer
    return cast("tuple[FirstT, SecondT]", tuple(answers))
