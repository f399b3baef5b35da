"""A custom resource that is complete when a HyperPod cluster has nodes on which add-ons can run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from hyperpod_cdk.catalog import hyperpod
from hyperpod_cdk.catalog.arns import STACK_NAME
from hyperpod_cdk.catalog.sentences import in_python
from hyperpod_cdk.common.acknowledgments import RESOURCE, acknowledge
from hyperpod_cdk.common.handler_functions import document, handler_function, handler_role
from hyperpod_cdk.common.stack_arns import arn_here
from hyperpod_cdk.config.argument_types import judged
from hyperpod_cdk.config.arguments import refuse, refuse_all, refuse_for, refuse_unlike
from hyperpod_cdk.config.instance_group import InstanceGroup

_INVOCATION_SECONDS = 900
_ANSWER_SECONDS = 240
"""How long after the time limit CloudFormation still accepts the answer, which names the cause."""


@judged(known=("count",))
@dataclass(frozen=True, kw_only=True)
class AwaitedGroup:
    """An instance group on which add-on pods may run.

    ``name`` (str): name of the instance group. Raises ValueError unless it is 1 to 63 letters, digits and hyphens.

    ``count`` (int, nodes): nodes that it should have; ``NodesReady`` needs at least 1. Raises ValueError for less
    than 0, and for more than HyperPod takes.

    ``expected`` (bool): whether its nodes join within minutes, as those without accelerators do: if they repeatedly
    fail in the same way, the wait ends early, even if other groups may still get nodes. Default: yes.
    """

    name: str
    count: int
    expected: bool = True

    def __post_init__(self) -> None:
        refuse_all(
            lambda: refuse_unlike(hyperpod.INSTANCE_GROUP_NAME, name=self.name),
            lambda: refuse(InstanceGroup, where=f"instance group {self.name}", count=self.count),
        )


@judged()
class NodeWaiter(Construct):
    """The Lambda function of ``NodesReady``, with its role and its log group.

    It needs no cluster, so it can be created before or in parallel. Its role may read any HyperPod cluster of its
    account and region (a cluster's ARN is not known before the cluster) and the status of the stacks ``stack_names``
    that have a
    ``NodesReady`` (default: this stack), and invoke the function itself, because a wait may outlast an invocation.

    ``stack_names`` (Sequence[str]): names of the stacks that have a ``NodesReady``. Default: this stack. Raises
    ValueError for a name that CloudFormation refuses.
    """

    def __init__(self, scope: Construct, construct_id: str, *, stack_names: Sequence[str] = ()) -> None:
        super().__init__(scope, construct_id)
        refuse_unlike(STACK_NAME, stack_names=stack_names)
        names = stack_names or (cdk.Stack.of(self).stack_name,)
        self.log_group: logs.CfnLogGroup = logs.CfnLogGroup(self, "Logs", retention_in_days=90)
        self.log_group.apply_removal_policy(cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)
        role = handler_role(
            self,
            "Role",
            description="HyperPod node wait: reads clusters, their nodes and events",
            policy_name="node-wait",
            statements=[
                {
                    "Action": [
                        "sagemaker:DescribeCluster",
                        "sagemaker:DescribeClusterEvent",
                        "sagemaker:ListClusterEvents",
                        "sagemaker:ListClusterNodes",
                    ],
                    "Resource": [arn_here("sagemaker", "cluster/*")],
                },
                # whether an update is a rollback
                {
                    "Action": ["cloudformation:DescribeStacks"],
                    "Resource": [arn_here("cloudformation", f"stack/{name}/*") for name in names],
                },
                {"Action": ["logs:CreateLogStream", "logs:PutLogEvents"], "Resource": [self.log_group.attr_arn]},
            ],
        )
        acknowledge(
            role,
            {
                _nag(
                    "sagemaker", "cluster/*"
                ): "the function is created before the cluster, whose ARN contains an ID; it only reads",
                **{
                    _nag(
                        "cloudformation", f"stack/{name}/*"
                    ): "a stack's ARN ends with an ID that is assigned at its creation"
                    for name in names
                },
            },
        )
        self.function: lambda_.CfnFunction = handler_function(
            self,
            "Function",
            description="HyperPod node wait: responds when nodes are running",
            serves="node_wait",
            role=role,
            log_group=self.log_group,
            timeout_seconds=_INVOCATION_SECONDS,
            memory_mib=256,
        )
        # separate from the role, which the function needs before it has an ARN
        self._may_go_on = iam.CfnRolePolicy(
            self,
            "GoesOn",
            role_name=role.ref,
            policy_name="node-wait-goes-on",
            policy_document=document({"Action": ["lambda:InvokeFunction"], "Resource": [self.function.attr_arn]}),
        )

    @property
    def service_token(self) -> str:
        """The function's ARN for a custom resource; a token."""
        return self.function.attr_arn

    def before(self, resource: cdk.CfnResource) -> None:
        """Make ``resource`` depend on the function and its permissions; in another stack, that stack on this one."""
        resource.node.add_dependency(self._may_go_on)


@judged(known=("nodes", "timeout_minutes"))
class NodesReady(Construct):
    """A custom resource that is complete once ``nodes`` nodes of ``groups`` together are ``Running``.

    A HyperPod cluster with continuous provisioning is in service before it has a node, and CloudFormation treats an EKS
    add-on that is degraded because it has no nodes as complete. Resources that need a node depend on this construct. It
    calls HyperPod (ListClusterNodes, counted per group), so any group can provide the node: one without capacity does
    not delay the others.

    If no node joins, it fails at the time limit, ``timeout_minutes`` (5 to 55; CloudFormation waits at most an hour),
    with groups, nodes, HyperPod's messages and the log streams of lifecycle scripts; earlier, if every instance of the
    expected groups repeatedly failed in the same way. HyperPod replaces a node that fails, so one failure does not end
    the wait. Default: 30 minutes, as AWS's own setup waits for a first node (awsome-distributed-ai,
    ``wait-for-hyperpod-nodes.sh``: 60 times 30 s), or 55 if no group is expected soon.

    An update waits only if cluster or groups changed, and never while the stack rolls back; a deletion never waits.
    ``nodes`` is 1 by default: no add-on requires its replicas to run on different nodes.

    ``cluster_arn`` (str, ARN): the HyperPod cluster. Raises ValueError for text that is not the ARN of a HyperPod
    cluster.

    ``groups`` (Sequence[AwaitedGroup]): the instance groups of which one must have a node. Raises ValueError for none,
    and for a group with a count of 0.

    ``nodes`` (int, nodes): nodes that must run before it is complete. Default: 1. Raises ValueError unless it is 1 to
    the count of all ``groups``.

    ``timeout_minutes`` (int, minutes): longest wait. Default: 30, or 55 if no group is expected soon. Raises ValueError
    unless it is 5 to 55.

    ``waiter`` (NodeWaiter): the ``NodeWaiter`` that reads the cluster; it can serve several of these. Default: its own.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_arn: str,
        groups: Sequence[AwaitedGroup],
        nodes: int = 1,
        timeout_minutes: int | None = None,
        waiter: NodeWaiter | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        soon = any(group.expected for group in groups)
        default = hyperpod.NODE_WAIT_DEFAULT_MINUTES if soon else hyperpod.NODE_WAIT_LONGEST_MINUTES
        minutes = default if timeout_minutes is None else timeout_minutes
        refuse_all(
            lambda: refuse_unlike(hyperpod.CLUSTER_ARN, cluster_arn=cluster_arn),
            lambda: refuse_for(_problems(groups, nodes=nodes, minutes=minutes)),
        )
        waiter = waiter or NodeWaiter(self, "Waiter")
        self.resource: cdk.CfnResource = cdk.CfnResource(
            self,
            "Resource",
            type="Custom::HyperPodNodesReady",
            properties={
                "ServiceToken": waiter.service_token,
                "ServiceTimeout": minutes * 60 + _ANSWER_SECONDS,
                "Cluster": cluster_arn,
                "Groups": [{"Name": group.name, "Count": group.count, "Expected": group.expected} for group in groups],
                "Nodes": nodes,
                "TimeoutSeconds": minutes * 60,
            },
        )
        waiter.before(self.resource)

    @property
    def running_nodes(self) -> str:
        """How many nodes of the groups ran when the wait ended; a token."""
        return self.resource.get_att("RunningNodes").to_string()

    @property
    def groups(self) -> str:
        """Every group of the cluster with its nodes when the wait ended, ``system: 1 of 2 Running; ...``; a token."""
        return self.resource.get_att("Groups").to_string()


def _problems(groups: Sequence[AwaitedGroup], *, nodes: int, minutes: int) -> Iterator[str]:
    if not groups:
        yield "groups: must name instance groups whose nodes can run add-on pods, got none; leave out the wait"
    for group in groups:
        if group.count < 1:
            yield f"groups: must have nodes, got {group.count} for {group.name}; leave out groups without nodes"
    total = sum(group.count for group in groups)
    # of groups without nodes no number is right
    if all(group.count > 0 for group in groups) and groups and not 1 <= nodes <= total:
        yield f"nodes: must be between 1 and the {total} of the groups, got {nodes}; leave it out for 1"
    if problem := hyperpod.NODE_WAIT_MINUTES.problem(minutes, key="timeout_minutes"):
        yield f"timeout_minutes {in_python(problem)}"


def _nag(service: str, resource: str) -> str:
    """The finding of cdk-nag about such an ARN, as it spells it."""
    return RESOURCE.format(f"arn:<AWS::Partition>:{service}:<AWS::Region>:<AWS::AccountId>:{resource}")
