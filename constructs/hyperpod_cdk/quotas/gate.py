"""The quota gate: a deployment that exceeds the account's quotas fails in its first minute, not in its last."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any, Literal, get_args

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct, IConstruct

from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.common.acknowledgments import acknowledge_quota_gate
from hyperpod_cdk.common.handler_functions import handler_function, handler_role
from hyperpod_cdk.common.stack_arns import arn_here
from hyperpod_cdk.common.waiting import wait_for
from hyperpod_cdk.config.argument_types import judged
from hyperpod_cdk.config.arguments import refuse, refuse_all, refuse_for
from hyperpod_cdk.config.environment import Environment
from hyperpod_cdk.config.source import describe
from hyperpod_cdk.handlers.quota_gate.comparison import Requirement, to_properties
from hyperpod_cdk.handlers.quota_gate.reading import QUOTA_ACTIONS, Own, calls_of

__all__ = ["Mode", "Own", "QuotaGate", "Requirement"]

Mode = Literal["enforce", "warn"]

_LAMBDA_TRIES = 3
_LAMBDA_PAUSES_SECONDS = 60 + 120
_SHORTEST_TIMEOUT_SECONDS = 60
_LONGEST_TIMEOUT_SECONDS = 900


@judged(known=("requirements", "timeout_seconds"))
class QuotaGate(Construct):
    """A custom resource that compares ``requirements`` with the account's quotas and fails if they are too low.

    ``requirements`` name quotas as Service Quotas does (``Requirement``); ``quotas.needs.required_quotas`` gives those
    of an environment. Resources that depend on the gate (``before``) are not created if one is too low, and the
    stack's event says what is needed, what the quota is and what to do. It compares when it is created, again when its
    stack's creation failed and is repeated, and whenever a requirement or ``makes`` changes. It does not compare if
    CloudFormation changes nothing of it: its stack is deployed and another one, whose creation or update failed, is
    deployed again. An update that needs more than before can be refused; a need that was granted before is reported,
    not refused, and a rollback never is refused.

    ``mode="warn"`` never fails: the findings are in the log and in ``findings``. What could not be read (no permission,
    throttled) never fails either, and does not count as compared: it is in the log and in ``skipped``.

    ``makes`` is plain data (for JSON) about what is created, such as groups and their zones: if it changes, the gate
    runs even if no requirement changes. A digest of it is a property.

    ``environment_name`` goes into the findings' advice to run ``hyperpod-cdk quotas request``. CloudFormation waits
    long enough for the function and Lambda's two retries.

    Its role may read the quotas and what these requirements' kinds of use need, and nothing else. The log group is
    retained when the stack is deleted, also after a failed first deployment: it has what does not fit into an event.

    ``requirements`` (Sequence[Requirement]): what is needed of each quota. Raises ValueError for none, two of one
    ``key``, and a ``usage`` that the gate cannot read.

    ``mode`` ("enforce" | "warn"): whether a quota that is too low fails the deployment or is only reported. Default:
    ``enforce``. Raises ValueError for another value.

    ``own`` (Own): stacks and clusters that are the deployment itself, so that their use does not count as others'.
    Default: this stack.

    ``environment_name`` (str): name of the environment in the advice of findings. Default: none. Raises ValueError
    unless it is empty or 1 to 16 lower-case letters, digits and single hyphens.

    ``makes`` (object): data that determines nodes, for JSON; a change runs the gate again. Default: none.

    ``timeout_seconds`` (int, seconds): how long its function may run. Default: 120. Raises ValueError unless it is 60
    to 900.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        requirements: Sequence[Requirement],
        mode: Mode = "enforce",
        own: Own | None = None,
        environment_name: str = "",
        makes: object = None,
        timeout_seconds: int = 120,
    ) -> None:
        super().__init__(scope, construct_id)
        refuse_all(
            lambda: refuse_for(_problems(requirements, mode=mode, timeout_seconds=timeout_seconds)),
            lambda: refuse(Environment, called={"name": "environment_name"}, name=environment_name or None),
        )
        own = own or Own(stacks=(cdk.Stack.of(self).stack_name,))
        self.log_group: logs.CfnLogGroup = logs.CfnLogGroup(self, "Logs", retention_in_days=90)
        self.log_group.apply_removal_policy(cdk.RemovalPolicy.RETAIN)
        self.role: iam.CfnRole = self._role(requirements)
        self.function: lambda_.CfnFunction = self._function(timeout_seconds)
        self.resource: cdk.CfnResource = cdk.CfnResource(
            self,
            "Resource",
            type="Custom::HyperPodQuotaGate",
            properties={
                "ServiceToken": self.function.attr_arn,
                "ServiceTimeout": _answer_seconds(timeout_seconds),
                "Mode": mode,
                "EnvironmentName": environment_name,
                # CloudFormation calls only if a property changed
                **({} if makes is None else {"Makes": _digest(makes)}),
                "Own": {
                    "Stacks": list(own.stacks),
                    "HyperPodCluster": own.hyperpod_cluster,
                    "EksCluster": own.eks_cluster,
                },
                "Requirements": to_properties(requirements),
            },
        )

    @property
    def findings(self) -> str:
        """What is too low or doubtful, a line each, or ``none``; a token."""
        return self.resource.get_att("Findings").to_string()

    @property
    def skipped(self) -> str:
        """What could not be read and why, a line each, or ``none``; a token."""
        return self.resource.get_att("Skipped").to_string()

    def before(self, *scopes: IConstruct, beside: Sequence[IConstruct] = ()) -> None:
        """Make every current resource below ``scopes`` depend on the gate; its own and those ``beside`` do not.

        Call it for the stack itself as the last thing of its constructor: then all of the stack waits.
        """
        wait_for(self.resource, scopes, beside=(self, *beside))

    def _role(self, requirements: Sequence[Requirement]) -> iam.CfnRole:
        role = handler_role(
            self,
            "Role",
            description="HyperPod quota gate: reads quotas and what uses them up",
            policy_name="quota-gate",
            statements=_rights(requirements, self._log_groups()),
        )
        acknowledge_quota_gate(role, log_group=self.log_group)
        return role

    def _log_groups(self) -> str:
        """Return the ARN of the log group by the name that CloudFormation generates, so that the role need not wait."""
        name = f"{cdk.Aws.STACK_NAME}-{self.log_group.logical_id}-*"
        return arn_here("logs", f"log-group:{name}")

    def _function(self, timeout_seconds: int) -> lambda_.CfnFunction:
        return handler_function(
            self,
            "Function",
            description="HyperPod quota gate: compares a deployment's needs with the account's quotas",
            serves="quota_gate",
            role=self.role,
            log_group=self.log_group,
            timeout_seconds=timeout_seconds,
            # most of a short run is spent on loading boto3's models, which memory, and the processor with it, shortens
            memory_mib=1024,
        )


def _digest(data: object) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _problems(requirements: Sequence[Requirement], *, mode: str, timeout_seconds: int) -> Iterator[str]:
    if mode not in get_args(Mode):
        yield (
            f"mode: must be {joined(get_args(Mode), last='or')}, got {describe(mode)};"
            " leave out the gate to turn it off"
        )
    if not _SHORTEST_TIMEOUT_SECONDS <= timeout_seconds <= _LONGEST_TIMEOUT_SECONDS:
        yield (
            f"timeout_seconds: must be between {_SHORTEST_TIMEOUT_SECONDS} and {_LONGEST_TIMEOUT_SECONDS}, "
            f"got {timeout_seconds}; leave it out for 120"
        )
    if not requirements:
        yield "requirements: must have at least one requirement, got none; leave out the gate"
    keys = [requirement.key for requirement in requirements]
    for key in dict.fromkeys(each for each in keys if keys.count(each) > 1):
        yield f"requirements: must have a key each, got {key} twice; give the second another key"
    for requirement in requirements:
        if requirement.usage and not _is_readable(requirement):
            got = repr(requirement.usage)
            yield f"requirements: {requirement.key} must name a kind of use that the gate can read, got {got}"


def _is_readable(requirement: Requirement) -> bool:
    try:
        calls_of(requirement.usage)
    except KeyError:
        return False
    return True


def _answer_seconds(timeout_seconds: int) -> int:
    """Return how long CloudFormation waits: for the first run and the two that Lambda makes after a failed one."""
    return _LAMBDA_TRIES * timeout_seconds + _LAMBDA_PAUSES_SECONDS


def _rights(requirements: Sequence[Requirement], log_groups_arn: str) -> list[dict[str, Any]]:
    kinds = {requirement.usage for requirement in requirements if requirement.usage}
    needed = {action for kind in kinds for action in calls_of(kind)}
    describing = {"sagemaker:DescribeCluster"} & needed
    return [
        {"Action": sorted({*QUOTA_ACTIONS, *(needed - describing)}), "Resource": ["*"]},
        *({"Action": [action], "Resource": [arn_here("sagemaker", "cluster/*")]} for action in describing),
        # whether an update is a rollback
        {"Action": ["cloudformation:DescribeStacks"], "Resource": [cdk.Aws.STACK_ID]},
        {"Action": ["logs:CreateLogStream", "logs:PutLogEvents"], "Resource": [log_groups_arn]},
    ]
