"""The IAM policy that preflight needs, created from the cards of the checks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from hyperpod_cdk.checks.answers import QUESTIONS, Question
from hyperpod_cdk.checks.model import Check
from hyperpod_cdk.handlers.quota_gate.reading import calls_of as calls_of_kind

FIRST_QUESTION = "caller"
"""Needed in every run, for any choice of checks."""


@dataclass(frozen=True, kw_only=True)
class Verb:
    """What a command other than preflight asks AWS: questions as in ``Check.asks``, and further actions.

    ``when_unseen`` says what its exit code and "passed" are if AWS did not answer everything.
    """

    name: str
    asks: tuple[str, ...]
    further: tuple[str, ...] = ()
    when_unseen: str

    @property
    def actions(self) -> tuple[str, ...]:
        """The IAM actions that it may need, sorted."""
        asked = {action for ask in (FIRST_QUESTION, *self.asks) for action in question(ask).actions}
        return tuple(sorted({*asked, *self.further}))


_STANDING = (
    "cloudformation:DescribeStackEvents",
    "cloudformation:DescribeStacks",
    "cloudformation:GetTemplate",
    "cloudformation:ListChangeSets",
    "cloudformation:ListImports",
)
"""What is asked before a plan is created."""
_BEFORE = (
    "cloudformation:ListStackResources",
    "ec2:DescribeVpcs",
    "fsx:DescribeDataRepositoryAssociations",
    "fsx:DescribeFileSystems",
    "logs:DescribeLogGroups",
    "s3:ListAllMyBuckets",
)
"""What shows whether something retained, or something that has grown, conflicts with a planned change."""
_ROOM = ("sagemaker:DescribeCluster", "sagemaker:DescribeTrainingPlan", "sagemaker:ListClusters")
"""What shows, with quotas, whether groups have room together with those that they replace."""
_DELETES = (
    "cloudformation:DeleteStack",
    "cloudformation:DescribeStackEvents",
    "cloudformation:UpdateTerminationProtection",
)
"""What deletes a stack, and shows why it was not deleted."""
_NULL = '`"passed": null`, exit code 0, with `--strict` 1'
_WORK = (
    "nothing is done and exit code 2 if it does not describe a node; 1 always if the action does not "
    "start for each node"
)
_NODE = ("sagemaker:DescribeCluster", "sagemaker:DescribeClusterNode")
"""What is asked about a node that is named."""
_IMPORT = (
    "cloudformation:DescribeStacks",
    "ec2:DescribeSubnets",
    "ec2:DescribeVpcs",
    "eks:DescribeAddon",
    "eks:DescribeCluster",
    "eks:ListAccessEntries",
    "eks:ListAddons",
    "fsx:DescribeFileSystems",
    "iam:GetOpenIDConnectProvider",
    "s3:ListBucket",
    "sagemaker:DescribeCluster",
    "sagemaker:DescribeClusterNode",
    "sagemaker:DescribeClusterSchedulerConfig",
    "sagemaker:DescribeComputeQuota",
    "sagemaker:DescribeTrainingPlan",
    "sagemaker:ListClusterNodes",
    "sagemaker:ListClusterSchedulerConfigs",
    "sagemaker:ListClusters",
    "sagemaker:ListComputeQuotas",
    "sagemaker:ListTags",
)
"""What is asked about an existing cluster."""
_STATUS = (
    "cloudwatch:DescribeAlarms",
    "eks:ListAddons",
    "fsx:DescribeFileSystems",
    "sagemaker:DescribeCluster",
    "sagemaker:DescribeTrainingPlan",
    "sagemaker:ListClusterEvents",
    "sagemaker:ListClusterNodes",
    "sagemaker:ListClusterSchedulerConfigs",
    "sagemaker:ListComputeQuotas",
)
"""What is asked about the current state of a cluster."""
_OF_OTHERS = (
    *("alarms", "bucket", "bucket_settings", "event_bus_exists", "grafana_workspace", "images", "kms_key"),
    *("kms_key_policy", "prometheus_workspace", "role", "slack_channels", "slack_workspaces", "topic"),
)
"""What the checks of ``run.OF_OTHERS`` ask."""
_DRIFT = (
    "aps:DescribeWorkspace",
    "budgets:ViewBudget",
    "chatbot:DescribeSlackChannelConfigurations",
    "cloudformation:DescribeStacks",
    "cloudformation:GetStackPolicy",
    "cloudformation:GetTemplate",
    "cloudformation:ListStackResources",
    "cloudwatch:DescribeAlarms",
    "cloudwatch:GetDashboard",
    "cloudwatch:ListTagsForResource",
    "ec2:DescribeAddresses",
    "ec2:DescribeFlowLogs",
    "ec2:DescribeInternetGateways",
    "ec2:DescribeNatGateways",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeRouteTables",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSubnets",
    "ec2:DescribeVpcAttribute",
    "ec2:DescribeVpcEndpoints",
    "ec2:DescribeVpcs",
    "eks:DescribeAccessEntry",
    "eks:DescribeAddon",
    "eks:DescribeCluster",
    "eks:DescribePodIdentityAssociation",
    "eks:ListAccessEntries",
    "eks:ListAddons",
    "eks:ListAssociatedAccessPolicies",
    "eks:ListPodIdentityAssociations",
    "events:DescribeRule",
    "events:ListTagsForResource",
    "events:ListTargetsByRule",
    "fsx:DescribeDataRepositoryAssociations",
    "fsx:DescribeFileSystems",
    "grafana:DescribeWorkspace",
    "grafana:DescribeWorkspaceConfiguration",
    "iam:GetOpenIDConnectProvider",
    "iam:GetPolicy",
    "iam:GetPolicyVersion",
    "iam:GetRole",
    "iam:GetRolePolicy",
    "iam:ListAttachedRolePolicies",
    "iam:ListRolePolicies",
    "kms:DescribeKey",
    "kms:GetKeyPolicy",
    "kms:GetKeyRotationStatus",
    "kms:ListResourceTags",
    "lambda:GetFunction",
    "lambda:GetLayerVersion",
    "lambda:GetPolicy",
    "logs:DescribeLogGroups",
    "logs:DescribeMetricFilters",
    "logs:DescribeResourcePolicies",
    "logs:ListTagsForResource",
    "s3:GetBucketLogging",
    "s3:GetBucketPolicy",
    "s3:GetBucketPublicAccessBlock",
    "s3:GetBucketTagging",
    "s3:GetBucketVersioning",
    "s3:GetEncryptionConfiguration",
    "s3:GetLifecycleConfiguration",
    "s3:GetObject",
    "s3:ListBucket",
    "sagemaker:DescribeCluster",
    "sagemaker:DescribeClusterSchedulerConfig",
    "sagemaker:DescribeComputeQuota",
    "sagemaker:ListClusterOperations",
    "sagemaker:ListComputeQuotas",
    "sagemaker:ListTags",
    "sns:GetTopicAttributes",
    "sns:ListSubscriptionsByTopic",
    "sns:ListTagsForResource",
)
"""What is asked to compare AWS with what was deployed."""
VERBS = (
    Verb(name="quotas show", asks=("quota", "usage"), when_unseen=_NULL),
    Verb(
        name="quotas request",
        asks=("quota", "usage", "quota_requests"),
        further=("servicequotas:RequestServiceQuotaIncrease",),
        when_unseen='`"passed": null`, exit code 1 always: a missing increase may not have been requested',
    ),
    Verb(
        name="plans search",
        asks=("training_plan_offerings", "zones", "quota"),
        when_unseen=f"{_NULL}; 1 always if nothing was found",
    ),
    Verb(
        name="plans record",
        asks=("training_plan", "zones"),
        when_unseen="nothing is written, exit code 1 always",
    ),
    Verb(
        name="plans extend",
        asks=(),
        further=(
            "sagemaker:DescribeTrainingPlan",
            "sagemaker:DescribeTrainingPlanExtensionHistory",
            "sagemaker:ExtendTrainingPlan",
            "sagemaker:SearchTrainingPlanOfferings",
        ),
        when_unseen=f"{_NULL}; 1 always if it is unknown whether it bought one",
    ),
    Verb(
        name="plans attach",
        asks=(),
        further=("sagemaker:DescribeCluster", "sagemaker:DescribeTrainingPlan"),
        when_unseen=f"{_NULL}; 2 always if it does not describe the plan",
    ),
    Verb(
        name="prices refresh",
        asks=(),
        further=("pricing:GetProducts",),
        when_unseen=f"{_NULL}; nothing is written and 1 always if AWS did not answer at all",
    ),
    Verb(
        name="review --deployed",
        asks=(),
        further=(
            *("cloudformation:DescribeStacks", "cloudformation:GetTemplate"),
            *("s3:GetObject", "sagemaker:DescribeCluster"),
        ),
        when_unseen="there is no review, exit code 2 always; without DescribeCluster or GetObject a note",
    ),
    Verb(
        name="status",
        # the API server's own authorization decides which pods are shown
        asks=("quota", "eks_cluster", *_OF_OTHERS),
        further=(*_STATUS, "sagemaker:ListClusters"),
        when_unseen=_NULL,
    ),
    Verb(
        name="drift",
        asks=(),
        further=_DRIFT,
        when_unseen=f"{_NULL}; 2 always if CloudFormation did not answer",
    ),
    Verb(
        name="observe",
        asks=(),
        further=(*_DRIFT, *_STATUS, "cloudformation:DescribeStackEvents", "sagemaker:DescribeClusterNode"),
        when_unseen=f"{_NULL}; 2 always if CloudFormation did not answer",
    ),
    Verb(
        name="import",
        asks=(),
        further=_IMPORT,
        when_unseen=f"{_NULL}; nothing is written and 1 always if it does not describe the cluster",
    ),
    Verb(
        name="import --takeover",
        asks=(),
        # the read handlers of imported resources use the permissions of the caller
        further=(
            *_IMPORT,
            "cloudformation:CreateChangeSet",
            "cloudformation:DeleteChangeSet",
            "cloudformation:DescribeChangeSet",
            "cloudformation:DescribeStackEvents",
            "cloudformation:DescribeStackResources",
            "cloudformation:ExecuteChangeSet",
            "cloudformation:ListStackResources",
            "eks:DescribeAccessEntry",
            "eks:DescribePodIdentityAssociation",
            "eks:ListAssociatedAccessPolicies",
            "eks:ListPodIdentityAssociations",
            "iam:GetRole",
            "iam:GetRolePolicy",
            "iam:ListAttachedRolePolicies",
            "iam:ListRolePolicies",
        ),
        when_unseen="nothing more is imported, exit code 1 always; the same command continues",
    ),
    Verb(
        name="node list",
        asks=(),
        further=("sagemaker:DescribeCluster", "sagemaker:ListClusterNodes"),
        when_unseen=_NULL,
    ),
    Verb(
        name="node describe",
        asks=(),
        further=(*_NODE, "sagemaker:ListClusterEvents"),
        when_unseen=f"{_NULL}; 2 always if it does not describe a node",
    ),
    Verb(
        name="node logs",
        asks=(),
        further=(*_NODE, "logs:DescribeLogStreams", "logs:FilterLogEvents", "logs:GetLogEvents"),
        when_unseen='`"passed": null`, exit code 1 always; 2 if it does not describe the node',
    ),
    Verb(
        name="node replace",
        asks=(),
        further=(
            *_NODE,
            "eks:DescribeCluster",
            "sagemaker:BatchReplaceClusterNodes",
            "sagemaker:DescribeTrainingPlan",
        ),
        when_unseen=_WORK,
    ),
    Verb(
        name="node reboot",
        asks=(),
        further=(*_NODE, "eks:DescribeCluster", "sagemaker:BatchRebootClusterNodes"),
        when_unseen=_WORK,
    ),
    Verb(
        name="node check",
        asks=(),
        further=(*_NODE, "eks:DescribeCluster", "sagemaker:ListClusterNodes", "sagemaker:StartClusterHealthCheck"),
        when_unseen=_WORK,
    ),
    Verb(name="node cordon", asks=(), further=(*_NODE, "eks:DescribeCluster"), when_unseen=_WORK),
    Verb(name="node uncordon", asks=(), further=(*_NODE, "eks:DescribeCluster"), when_unseen=_WORK),
    Verb(
        name="plan",
        asks=("quota",),
        further=(*_STANDING, *_BEFORE, *_ROOM),
        when_unseen="there is no plan, exit code 2 always; a note without DescribeCluster, and without the calls about"
        " buckets, log groups, address blocks, linked folders and Kubernetes objects, made if a stack creates again"
        " what remains of an earlier deployment, and about file systems, made if one should grow; quotas, other"
        " clusters and a training plan that are unknown, read if a group replaces another, are reported"
        " in the step",
    ),
    Verb(
        name="deploy",
        asks=("quota",),
        # the CDK CLI deploys with CDK's bootstrap roles, which it assumes
        further=tuple(dict.fromkeys([*_STANDING, *_BEFORE, *_DELETES, *_ROOM])),
        when_unseen="nothing more is done, exit code 2 always; notes as those of plan",
    ),
    Verb(
        name="destroy",
        asks=(),
        further=(*_STANDING, *_DELETES),
        when_unseen="nothing more is deleted, exit code 2 if it cannot be read, 1 if it cannot be deleted",
    ),
    Verb(
        name="upgrade",
        asks=(),
        further=(
            "eks:DescribeAddon",
            "eks:DescribeAddonVersions",
            "eks:DescribeCluster",
            "eks:DescribeUpdate",
            "eks:ListUpdates",
            "sagemaker:DescribeCluster",
            "sagemaker:ListClusterNodes",
        ),
        when_unseen="what was not read is listed as skipped; refused, exit code 1, if it decides whether a version"
        " of the file fits",
    ),
    Verb(
        name="recover",
        asks=(),
        further=(
            "cloudformation:DescribeStacks",
            "cloudformation:DescribeStackEvents",
            "cloudformation:GetTemplate",
            "cloudformation:ListChangeSets",
            "cloudformation:ListStackResources",
            "cloudformation:ListStacks",
            "cloudformation:ContinueUpdateRollback",
            "cloudformation:DeleteChangeSet",
            "cloudformation:DeleteStack",
            "cloudformation:RollbackStack",
            "cloudformation:UpdateTerminationProtection",
        ),
        when_unseen="nothing is done, exit code 2 always; without ListStacks a note, and without another change 1",
    ),
)
"""Every command that calls AWS, except preflight, whose checks say what they ask."""


def actions_of(check: Check) -> tuple[str, ...]:
    """Return the IAM actions that a check may need, sorted."""
    return tuple(sorted({action for ask in check.asks for action in question(ask).actions}))


def calls_of(check: Check) -> tuple[str, ...]:
    """Return the API calls that a check may make, sorted."""
    return tuple(sorted({call for ask in check.asks for call in question(ask).calls}))


def question(ask: str) -> Question:
    """Return the calls and actions behind an entry of ``Check.asks``; raises KeyError for an unknown question."""
    name, _, kind = ask.partition(":")
    return Question(calls=calls_of_kind(kind), actions=calls_of_kind(kind)) if kind else QUESTIONS[name]


def policy_of(*names: str) -> dict[str, Any]:
    """Return the policy document that allows these commands; raises KeyError for one that is not in VERBS."""
    verbs = {verb.name: verb for verb in VERBS}
    return _document("HyperPodVerbs", {action for name in names for action in verbs[name].actions})


def policy(checks: Iterable[Check]) -> dict[str, Any]:
    """Return the policy document that allows these checks.

    Every action reads. They are on all resources: most have no resource level, and the environment file decides which
    plan, bucket or role is read.
    """
    wanted = {action for check in checks for action in actions_of(check)} | set(QUESTIONS[FIRST_QUESTION].actions)
    return _document("HyperPodPreflight", wanted)


def _document(sid: str, actions: Iterable[str]) -> dict[str, Any]:
    statement = {"Sid": sid, "Effect": "Allow", "Action": sorted(actions), "Resource": "*"}
    return {"Version": "2012-10-17", "Statement": [statement]}
