"""Protection against deletion that never outlives a failed creation: of a stack, and of the EKS cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct, IConstruct

from hyperpod_cdk.catalog.arns import STACK_NAME
from hyperpod_cdk.common.acknowledgments import RESOURCE, acknowledge
from hyperpod_cdk.common.handler_functions import handler_function, handler_role
from hyperpod_cdk.common.stack_arns import arn_here
from hyperpod_cdk.common.waiting import wait_for
from hyperpod_cdk.config.argument_types import judged
from hyperpod_cdk.config.arguments import refuse, refuse_all, refuse_for, refuse_unlike
from hyperpod_cdk.config.eks import ExistingEks

__all__ = ["DeletionProtection", "DeletionProtectionFunction"]

_TIMEOUT_SECONDS = 900
"""Lambda's longest: EKS takes one update of a cluster at a time, and what goes on already may take minutes."""
_STACK = "arn:<AWS::Partition>:cloudformation:<AWS::Region>:<AWS::AccountId>:stack/{}/*"
_OWN_STACKS = "a stack's ARN ends with an ID that CloudFormation creates: these are the environment's own, by name"


@judged()
class DeletionProtectionFunction(Construct):
    """The Lambda function that serves every ``DeletionProtection`` of an environment.

    It has to be there as long as any of them: put it into a stack that they import from. ``stack_names`` are the
    stacks whose termination protection it may lift; ``eks_cluster_name`` is the EKS cluster whose deletion protection
    it may switch (default: none, for a cluster that is somebody else's). It may do nothing else.

    ``stack_names`` (Sequence[str]): names of the stacks that it may protect. Raises ValueError without a name, and for
    one that CloudFormation refuses.

    ``eks_cluster_name`` (str): name of the EKS cluster that it may protect. Default: none. Raises ValueError for a name
    that EKS refuses.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        stack_names: Sequence[str],
        eks_cluster_name: str | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        refuse_all(
            lambda: refuse_for(
                [] if stack_names else ["stack_names: must name a stack, got none; leave out the function"]
            ),
            lambda: refuse_unlike(STACK_NAME, stack_names=stack_names),
            lambda: refuse(ExistingEks, called={"cluster_name": "eks_cluster_name"}, cluster_name=eks_cluster_name),
        )
        self.stack_names: tuple[str, ...] = tuple(stack_names)
        self.eks_cluster_name: str | None = eks_cluster_name
        log_group = logs.CfnLogGroup(self, "Logs", retention_in_days=90)
        log_group.apply_removal_policy(cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)
        stacks = [arn_here("cloudformation", f"stack/{name}/*") for name in stack_names]
        role = handler_role(
            self,
            "Role",
            description="HyperPod deletion protection: lifts that of a stack whose creation failed, switches EKS's",
            policy_name="deletion-protection",
            statements=[
                {
                    "Action": ["cloudformation:DescribeStacks", "cloudformation:UpdateTerminationProtection"],
                    "Resource": stacks,
                },
                *_eks_rights(eks_cluster_name),
                {"Action": ["logs:CreateLogStream", "logs:PutLogEvents"], "Resource": [log_group.attr_arn]},
            ],
        )
        acknowledge(role, {RESOURCE.format(_STACK.format(name)): _OWN_STACKS for name in stack_names})
        self.function: lambda_.CfnFunction = handler_function(
            self,
            "Function",
            description="HyperPod deletion protection: lifts that of a stack whose creation failed, switches EKS's",
            serves="deletion_protection",
            role=role,
            log_group=log_group,
            timeout_seconds=_TIMEOUT_SECONDS,
            memory_mib=512,
        )
        self._service_token = self.function.attr_arn

    @property
    def service_token(self) -> str:
        """The function's ARN, for the resources that it serves; a token."""
        return self._service_token


@judged()
class DeletionProtection(Construct):
    """Lets a protected stack be created anew after its creation failed, and protects the EKS cluster.

    Put one into every stack that has termination protection: while that stack is rolled back, the deletion of this
    resource lifts the protection, so that CDK can delete what is left before it creates the stack again.

    It depends on nothing in its stack, and nothing depends on it: it is deleted though something else cannot be. What
    depends on it (``before``) depends on a separate wait condition handle, which CloudFormation creates in a second and
    deletes last: so this resource is on its way before anything else can fail.

    ``eks_cluster_name`` is the EKS cluster whose own deletion protection goes with it: on as long as ``enabled``, off
    with ``enabled=False``, when the stack is deleted, and when its creation is rolled back. A literal name; the cluster
    must exist when this resource is created, and is UPDATING for a while: make it depend on other users of
    EKS. ``function`` has to be the one that may do that.

    ``function`` (DeletionProtectionFunction): the ``DeletionProtectionFunction`` that switches it. Raises ValueError
    for one without a right to this stack.

    ``enabled`` (bool): whether the protection is on. Default: yes.

    ``eks_cluster_name`` (str): name of the EKS cluster to protect. Default: none, and only the stack is protected.
    Raises ValueError unless it is the cluster that ``function`` has a right to.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        function: DeletionProtectionFunction,
        enabled: bool = True,
        eks_cluster_name: str | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        stack = scope if isinstance(scope, cdk.Stack) else cdk.Stack.of(scope)
        refuse_for(_problems(function, stack.stack_name, eks_cluster_name))
        properties: dict[str, Any] = {
            "ServiceToken": function.service_token,
            "ServiceTimeout": _TIMEOUT_SECONDS,
            "Enabled": enabled,
        }
        if eks_cluster_name is not None:
            properties["EksClusterName"] = eks_cluster_name
        self.resource: cdk.CfnResource = cdk.CfnResource(
            self, "Resource", type="Custom::HyperPodDeletionProtection", properties=properties
        )
        self._begun: cdk.CfnWaitConditionHandle | None = None

    def before(self, *scopes: IConstruct, beside: Sequence[IConstruct] = ()) -> None:
        """Make every current resource below ``scopes`` wait until the creation of this one has started.

        Call it for the stack itself when everything is in it. Resources below ``beside`` do not wait (default:
        everything does): for what takes minutes, and so cannot fail before CloudFormation has begun all that waits for
        nothing.
        """
        self._begun = self._begun or cdk.CfnWaitConditionHandle(self, "Begun")
        wait_for(self._begun, scopes, beside=[self, *beside])


def _problems(function: DeletionProtectionFunction, stack: str, eks_cluster_name: str | None) -> Iterator[str]:
    if stack not in function.stack_names:
        yield (
            f"function: must have a right to the stack {stack}, got one for {', '.join(function.stack_names)}; "
            "add it to its stack_names"
        )
    if eks_cluster_name is not None and eks_cluster_name != function.eks_cluster_name:
        yield (
            f"eks_cluster_name: must be the cluster that the function has a right to, got {eks_cluster_name!r} "
            f"where that is {function.eks_cluster_name!r}; give both the same"
        )


def _eks_rights(cluster_name: str | None) -> list[dict[str, Any]]:
    if cluster_name is None:
        return []
    actions = ["eks:DescribeCluster", "eks:DescribeUpdate", "eks:UpdateClusterConfig"]
    return [{"Action": actions, "Resource": [arn_here("eks", f"cluster/{cluster_name}")]}]
