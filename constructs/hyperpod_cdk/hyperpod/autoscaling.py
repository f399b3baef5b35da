"""Karpenter for a HyperPod cluster: its role, and a custom resource that keeps its node counts in a deployment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct, IDependable

from hyperpod_cdk.catalog import hyperpod
from hyperpod_cdk.catalog.arns import KMS_KEY_ARN
from hyperpod_cdk.common.acknowledgments import RESOURCE, acknowledge
from hyperpod_cdk.common.handler_functions import document, handler_function, handler_role
from hyperpod_cdk.common.removal import goes_with_its_stack
from hyperpod_cdk.common.stack_arns import HERE, arn_here
from hyperpod_cdk.config.argument_types import judged
from hyperpod_cdk.config.arguments import refuse_unlike

_TIMEOUT_SECONDS = 900
_ANSWER_SECONDS = 1000
_GRANT_OPERATIONS = (
    "CreateGrant",
    "Decrypt",
    "DescribeKey",
    "GenerateDataKeyWithoutPlaintext",
    "ReEncryptFrom",
    "ReEncryptTo",
    "RetireGrant",
)


@judged(whole=("kms_key_arns",))
class KarpenterAutoscaling(Construct):
    """What ``HyperPodCluster(autoscaling=...)`` needs so that HyperPod's own Karpenter scales its groups of count 0.

    The role that Karpenter adds and removes nodes with. AWS refuses another role while autoscaling is enabled, so the
    role depends on no name and no argument of the cluster: it may change any HyperPod cluster of its account and
    region, because a cluster's ARN is not known before the cluster, which needs the role.

    The counts. CloudFormation sends every group's count with any update of the cluster, and a count of 0 would remove
    the nodes that Karpenter has added. So the cluster gets those counts from a custom resource, which reads them
    whenever anything else of the cluster changes; see docs/decisions/0011-karpenter-counts.md.

    The role is deleted with its stack, as the cluster is.

    ``kms_key_arns`` (Sequence[str], ARNs): KMS keys of the nodes' volumes. Default: none. Raises ValueError for text
    that is not the ARN of a key.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        kms_key_arns: Sequence[str] = (),
    ) -> None:
        super().__init__(scope, construct_id)
        refuse_unlike(KMS_KEY_ARN, kms_key_arns=kms_key_arns)
        self.role: iam.CfnRole = iam.CfnRole(
            self,
            "Role",
            description="HyperPod's Karpenter: adds and removes nodes",
            assume_role_policy_document=document(
                {"Principal": {"Service": hyperpod.KARPENTER_PRINCIPAL}, "Action": "sts:AssumeRole"}
            ),
            # inline, so that the permissions exist as long as the role
            policies=[
                iam.CfnRole.PolicyProperty(policy_name="karpenter", policy_document=document(*_rights(kms_key_arns)))
            ],
        )
        goes_with_its_stack(self.role)
        own = "the ARN of a cluster is unknown before its creation, which needs the role; only clusters of this account"
        acknowledge(self.role, {_CLUSTERS_FINDING: own})
        self.log_group: logs.CfnLogGroup = logs.CfnLogGroup(self, "HandlerLogs", retention_in_days=90)
        self.log_group.apply_removal_policy(cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)
        self._function = self._handler()
        self.ready: IDependable | None = None

    @property
    def properties(self) -> sagemaker.CfnCluster.ClusterAutoScalingConfigProperty:
        """The ``AutoScaling`` property of the cluster."""
        return sagemaker.CfnCluster.ClusterAutoScalingConfigProperty(mode="Enable", auto_scaler_type="Karpenter")

    def counts(self, *, cluster_name: str, groups: Sequence[str], watched: Mapping[str, Any]) -> list[int | float]:
        """Return the number of nodes of each group as a token, read when one of ``watched`` changes.

        ``cluster_name``: name of the HyperPod cluster. ``groups``: names of the groups that Karpenter scales.
        ``watched``: the properties of the cluster, with counts of 0 for ``groups``.
        """
        resource = cdk.CfnResource(
            self,
            "NodeCounts",
            type="Custom::HyperPodNodeCounts",
            properties={
                "ServiceToken": self._function.attr_arn,
                "ServiceTimeout": _ANSWER_SECONDS,
                "ClusterName": cluster_name,
                "Groups": list(groups),
                "Cluster": {key: value for key, value in watched.items() if value is not None},
            },
        )
        return [cdk.Token.as_number(resource.get_att(f"Count{index}")) for index, _ in enumerate(groups)]

    def wait_for(self, *, cluster_arn: str) -> None:
        """Set ``ready``, which is complete when the Kubernetes API server has Karpenter's custom resources.

        ``cluster_arn``: ARN of the HyperPod cluster.
        """
        self.ready = cdk.CfnResource(
            self,
            "Autoscaler",
            type="Custom::HyperPodAutoscaler",
            properties={
                "ServiceToken": self._function.attr_arn,
                "ServiceTimeout": _ANSWER_SECONDS,
                "ClusterName": cluster_arn,
            },
        )

    def _handler(self) -> lambda_.CfnFunction:
        role = handler_role(
            self,
            "HandlerRole",
            description="HyperPod autoscaling custom resources: reads the cluster",
            policy_name="autoscaling",
            statements=[
                {"Action": ["sagemaker:DescribeCluster"], "Resource": [arn_here("sagemaker", "cluster/*")]},
                {"Action": ["logs:CreateLogStream", "logs:PutLogEvents"], "Resource": [self.log_group.attr_arn]},
            ],
        )
        acknowledge(role, {_CLUSTERS_FINDING: "the counts are read before the cluster is created; it only reads"})
        return handler_function(
            self,
            "Handler",
            description="HyperPod autoscaling: keeps node counts, waits for Karpenter",
            serves="autoscaling",
            role=role,
            log_group=self.log_group,
            timeout_seconds=_TIMEOUT_SECONDS,
            memory_mib=256,
        )


_CLUSTERS_FINDING = RESOURCE.format("arn:<AWS::Partition>:sagemaker:<AWS::Region>:<AWS::AccountId>:cluster/*")


def _rights(key_arns: Sequence[str]) -> list[dict[str, Any]]:
    rights: list[dict[str, Any]] = [
        {
            "Action": ["sagemaker:BatchAddClusterNodes", "sagemaker:BatchDeleteClusterNodes"],
            "Resource": [arn_here("sagemaker", "cluster/*")],
        }
    ]
    if key_arns:
        keys = list(key_arns)
        through = {"StringEquals": {"kms:ViaService": f"sagemaker.{HERE.region}.{cdk.Aws.URL_SUFFIX}"}}
        rights += [
            {
                "Action": ["kms:CreateGrant"],
                "Resource": keys,
                "Condition": {
                    **through,
                    "Bool": {"kms:GrantIsForAWSResource": "true"},
                    "ForAllValues:StringEquals": {"kms:GrantOperations": list(_GRANT_OPERATIONS)},
                },
            },
            # separate from the grant, whose condition keys are not in a request to describe
            {"Action": ["kms:DescribeKey"], "Resource": keys, "Condition": through},
        ]
    return rights
