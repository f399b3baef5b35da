"""Customer-managed KMS keys: made or named, each with what the services that use it need in its policy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import jsii
from aws_cdk import Aspects, Aws, IAspect, RemovalPolicy, Stack, Token
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct, IConstruct, IValidation

from hyperpod_cdk.catalog import arns, notifications, regions
from hyperpod_cdk.catalog.sentences import in_python
from hyperpod_cdk.common.acknowledgments import withdraw_log_group
from hyperpod_cdk.common.log_settings import SETTINGS, LogSettings
from hyperpod_cdk.common.selection import resources_of
from hyperpod_cdk.common.stack_arns import HERE, arn_here
from hyperpod_cdk.config.argument_types import judged
from hyperpod_cdk.config.arguments import refuse_for


@judged()
class EncryptionKey(Construct):
    """A symmetric KMS key for what an environment keeps.

    A key that is made rotates yearly and stays when its stack goes: what it encrypted could not be read without it. Its
    policy leaves all rights to IAM policies of the account, as KMS's own default does, and FSx, EKS and S3, which use a
    key in the name of whoever calls them, need no more. Call ``allow_log_groups``, ``allow_node_volumes`` and
    ``allow_publishers`` for the services that need a statement of their own in the policy.

    ``arn`` (str, ARN): an existing key. Its policy is not changed: ``allow_log_groups``, ``allow_node_volumes`` and
    ``allow_publishers`` do nothing, and its owner adds the statements. ``removal_policy`` is ignored. Default: a key is
    made. Raises ValueError for text that is not the ARN of a key of the stack's region.

    ``alias`` (str): ``alias/<words>`` of the key that is made, unique in account and region. It goes with the stack,
    unlike the key, so that the stack can be made again. Default: none. Raises ValueError together with ``arn``, and for
    an alias that KMS refuses.

    ``description`` (str): what the key that is made is for, at most 8192 characters. Default: none. Raises ValueError
    together with ``arn``, and for longer text.

    ``removal_policy`` (cdk.RemovalPolicy): removal policy of the key that is made; give it that of what the key
    encrypts. Default: it stays, unless the very deployment that makes it fails.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        arn: str | None = None,
        alias: str | None = None,
        description: str | None = None,
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    ) -> None:
        super().__init__(scope, construct_id)
        refuse_for(_problems(arn, alias, description, region=Stack.of(self).region))
        self.key: kms.IKey
        if arn is not None:
            self.key = kms.Key.from_key_arn(self, "Resource", arn)
            return
        made = kms.Key(
            self,
            "Resource",
            alias=alias,
            description=description,
            enable_key_rotation=True,
            removal_policy=removal_policy,
        )
        # jsii gives interfaces as protocols, and names the parameter of one method otherwise than the class
        self.key = cast("kms.IKey", made)

    def allow_log_groups(self) -> None:
        """Let CloudWatch Logs use the key for log groups of the stack's account and region."""
        groups = arn_here("logs", "log-group:*")
        self._allow(
            sorted(arns.LOGS_KEY_ACTIONS),
            iam.ServicePrincipal(f"logs.{HERE.region}.{Aws.URL_SUFFIX}"),
            {"ArnLike": {"kms:EncryptionContext:aws:logs:arn": groups}},
        )

    def allow_node_volumes(self, *role_arns: str) -> None:
        """Let HyperPod use the key for volumes of nodes with these execution roles, by grants that it makes as them.

        ``role_arns``: ARNs of the execution roles. HyperPod sends no encryption context, so there must not be a
        condition on one.
        """
        for role_arn in role_arns:
            service = {"StringEquals": {"kms:ViaService": f"sagemaker.{HERE.region}.amazonaws.com"}}
            principal = iam.ArnPrincipal(role_arn)
            # without the condition, who can act as the role could hand the key on to anybody
            self._allow(["kms:CreateGrant"], principal, {**service, "Bool": {"kms:GrantIsForAWSResource": "true"}})
            self._allow(["kms:DescribeKey"], principal, service)

    def allow_publishers(self, *services: str) -> None:
        """Let services of AWS publish to a topic with the key, for the stack's account.

        ``services``: first parts of their principals, such as ``cloudwatch`` for ``cloudwatch.amazonaws.com``.
        """
        for service in services:
            principal = iam.ServicePrincipal(notifications.principal(service))
            self._allow(arns.TOPIC_KEY_ACTIONS, principal, {"StringEquals": {"aws:SourceAccount": HERE.account}})

    def _allow(self, actions: Sequence[str], principal: object, conditions: dict[str, Any]) -> None:
        self.key.add_to_resource_policy(
            iam.PolicyStatement(
                actions=list(actions),
                principals=[cast("iam.IPrincipal", principal)],
                resources=["*"],
                conditions=conditions,
            )
        )


def encrypt_log_groups(scope: IConstruct, key: kms.IKey) -> None:
    """Give ``key`` to every log group below ``scope`` that has none, those that CDK makes for its functions too.

    ``LogSettings`` passes it on to groups that a service makes. Others of services, such as HyperPod's own, are not
    below any scope. What is added later gets it, too, until the app is synthesized: a log group without a key that an
    aspect adds then is refused.
    """
    asked = scope.node.try_find_child(_ENCRYPTED) or Construct(cast("Construct", scope), _ENCRYPTED)
    log_groups = _LogGroups(scope, key)
    # an aspect of the scope itself would be asked about each construct below it, a thousand calls out of Node.js
    Aspects.of(asked).add(cast("IAspect", log_groups))
    asked.node.add_validation(cast("IValidation", log_groups))


_ENCRYPTED = "EncryptedLogGroups"


@jsii.implements(IAspect, IValidation)
class _LogGroups:
    def __init__(self, scope: IConstruct, key: kms.IKey) -> None:
        self._scope = scope
        self._key = key

    def visit(self, _node: IConstruct) -> None:
        for group in self._without_key():
            group.kms_key_id = self._key.key_arn
            withdraw_log_group(group)
        for resource in resources_of(self._scope, SETTINGS):
            settings = resource.node.scope
            if isinstance(settings, LogSettings) and settings.kms_key_arn is None:
                settings.encrypt_with(self._key.key_arn)

    def validate(self) -> list[str]:
        return [
            f"{group.node.path}: must have a key like every log group below {self._scope.node.path or 'the app'}, got"
            " none from the aspect that added it; give it the key there"
            for group in self._without_key()
        ]

    def _without_key(self) -> list[logs.CfnLogGroup]:
        groups = cast("list[logs.CfnLogGroup]", resources_of(self._scope, "AWS::Logs::LogGroup"))
        return [group for group in groups if group.kms_key_id is None]


def _problems(arn: str | None, alias: str | None, description: str | None, *, region: str) -> Iterator[str]:
    if arn is not None and (alias or description):
        yield (
            "alias and description are for a key that is made, got one together with arn; leave them"
            " out: nothing of an existing key is changed"
        )
    for key, text, pattern in (
        ("alias", alias, arns.KEY_ALIAS),
        ("description", description, arns.KEY_DESCRIPTION),
    ):
        if text is not None and not Token.is_unresolved(text) and (problem := pattern.problem(text, key=key)):
            yield f"{key}: {in_python(problem)}"
    if arn is not None and not Token.is_unresolved(arn) and (problem := _arn_problem(arn, region=region)):
        yield f"arn: {in_python(problem)}"


def _arn_problem(arn: str, *, region: str) -> str | None:
    problem = arns.key_alias_problem(arn) or arns.KMS_KEY_ARN.problem(arn, key="arn")
    if problem is None and not Token.is_unresolved(region):
        partition = regions.partition_of(region) or arns.arn_parts(arn).partition
        problem = arns.key_reach_problem(arn, partition=partition, region=region)
    return problem
