"""Drift of resources around the cluster: each planted difference is found once, and nothing else."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from hyperpod_cdk.living.drift import NOT_IN_CHANGE
from hyperpod_cdk.living.kinds import is_left_out
from hyperpod_cdk.living.model import Next
from tests.living.account import ACCOUNT, CLUSTER_ARN, TOPIC_ARN, Account, only
from tests.support.assembly import PROJECT
from tests.support.scripted_aws import Fails
from tests.support.tables import row_by_row

LEFT = Next(effect="nothing", sentence="Nothing: no template has it, and CloudFormation leaves it as it is.")
UNCHANGED = Next(effect="nothing", sentence=NOT_IN_CHANGE)

STAYS_AWAY = Next(effect="nothing", sentence=f"{NOT_IN_CHANGE} It is not created again.")


def _later(what: str, sentence: str) -> Next:
    """Return what becomes of what its call overwrites whole."""
    return Next(
        effect="nothing", sentence=NOT_IN_CHANGE, later=f"The next change of any part of this {what}: {sentence}"
    )


_ENABLED = _later("rule", "Sets State from DISABLED to ENABLED.")
_PUTS_ALL = "its custom resource sets retention, key and tags with every update"
_ANYTHING = {"Effect": "Allow", "Principal": "*", "Action": "*", "Resource": "*"}

_TRUSTS = '{{"Action": ["sts:AssumeRole"], "Effect": "Allow", "Principal": {who}}}'

SSH = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "IpRanges": [{"CidrIp": "203.0.113.0/24"}]}
EVERYBODY = {"Sid": "Everybody", "Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "*"}

Edit = Callable[[dict[str, Any]], object]


def _first(answer: dict[str, Any], key: str) -> dict[str, Any]:
    found: dict[str, Any] = answer[key][0]
    return found


def _policy(answer: dict[str, Any], edit: Callable[[list[Any]], object]) -> None:
    document = json.loads(answer["Policy"])
    rows = document["Statement"] if isinstance(document["Statement"], list) else [document["Statement"]]
    edit(rows)
    answer["Policy"] = json.dumps({**document, "Statement": rows})


Row = tuple[str, Edit, str, str | None, str | None, Next]
"""The call whose answer is edited, the place, what was deployed there, what AWS has, what the next deployment does."""

ROWS: tuple[Row, ...] = (
    # security groups
    (
        "ec2:DescribeSecurityGroups",
        lambda answer: _first(answer, "SecurityGroups")["IpPermissions"].append(SSH),
        "Ingress[tcp 22 from 203.0.113.0/24]",
        None,
        "there",
        LEFT,
    ),
    (
        "ec2:DescribeSecurityGroups",
        lambda answer: _first(answer, "SecurityGroups").update(IpPermissions=[]),
        "Ingress[all traffic from sg-0a1b]",
        "there",
        None,
        UNCHANGED,
    ),
    (
        "ec2:DescribeSecurityGroups",
        lambda answer: _first(answer, "SecurityGroups").update(IpPermissionsEgress=[]),
        "Egress[all traffic to 0.0.0.0/0]",
        "there",
        None,
        UNCHANGED,
    ),
    # routes
    (
        "ec2:DescribeRouteTables",
        lambda answer: _first(answer, "RouteTables")["Routes"].append(
            {"DestinationCidrBlock": "172.16.0.0/12", "TransitGatewayId": "tgw-0a1b", "Origin": "CreateRoute"}
        ),
        "Routes[172.16.0.0/12]",
        None,
        "tgw-0a1b",
        LEFT,
    ),
    (
        "ec2:DescribeRouteTables",
        lambda answer: _first(answer, "RouteTables")["Routes"].pop(),
        "Routes[0.0.0.0/0]",
        "nat-0a1b",
        None,
        UNCHANGED,
    ),
    # endpoints
    (
        "ec2:DescribeVpcEndpoints",
        lambda answer: _first(answer, "VpcEndpoints").update(PrivateDnsEnabled=False),
        "PrivateDnsEnabled",
        "true",
        "false",
        UNCHANGED,
    ),
    (
        "ec2:DescribeVpcEndpoints",
        lambda answer: _first(answer, "VpcEndpoints").update(Groups=[{"GroupId": "sg-9", "GroupName": "other"}]),
        "SecurityGroupIds",
        "sg-0a1b",
        "sg-9",
        UNCHANGED,
    ),
    # file systems
    (
        "fsx:DescribeFileSystems",
        lambda answer: _first(answer, "FileSystems").update(StorageCapacity=9600),
        "StorageCapacity",
        "4800",
        "9600",
        UNCHANGED,
    ),
    (
        "fsx:DescribeFileSystems",
        lambda answer: _first(answer, "FileSystems")["LustreConfiguration"].update(PerUnitStorageThroughput=500),
        "LustreConfiguration.PerUnitStorageThroughput",
        "250",
        "500",
        UNCHANGED,
    ),
    (
        "fsx:DescribeFileSystems",
        lambda answer: _first(answer, "FileSystems")["LustreConfiguration"].update(DataCompressionType="NONE"),
        "LustreConfiguration.DataCompressionType",
        "LZ4",
        "NONE",
        UNCHANGED,
    ),
    # descriptions of rules, subnets, the VPC and what it logs
    (
        "ec2:DescribeSecurityGroups",
        lambda answer: _first(answer, "SecurityGroups")["IpPermissions"][0]["UserIdGroupPairs"][0].update(
            Description="by hand"
        ),
        "Ingress[all traffic from sg-0a1b].Description",
        "nodes",
        "by hand",
        UNCHANGED,
    ),
    (
        "ec2:DescribeVpcEndpoints",
        lambda answer: _first(answer, "VpcEndpoints").update(
            PolicyDocument=json.dumps({"Statement": [{**_ANYTHING, "Effect": "Deny"}]})
        ),
        "PolicyDocument",
        "full access",
        json.dumps(
            [
                {
                    "Key": "Deny *",
                    "Value": json.dumps(
                        {"Action": ["*"], "Effect": "Deny", "Principal": {"AWS": ["*"]}, "Resource": ["*"]},
                        sort_keys=True,
                    ),
                }
            ]
        ),
        UNCHANGED,
    ),
    (
        "ec2:DescribeSubnets",
        lambda answer: _first(answer, "Subnets").update(MapPublicIpOnLaunch=True),
        "MapPublicIpOnLaunch",
        "false",
        "true",
        UNCHANGED,
    ),
    (
        "ec2:DescribeVpcAttribute",
        lambda answer: answer.update(EnableDnsHostnames={"Value": False}),
        "EnableDnsHostnames",
        "true",
        "false",
        UNCHANGED,
    ),
    (
        "ec2:DescribeVpcs",
        lambda answer: _first(answer, "Vpcs")["CidrBlockAssociationSet"].append(
            {"CidrBlock": "10.9.0.0/16", "CidrBlockState": {"State": "associated"}}
        ),
        "CidrBlocks[10.9.0.0/16]",
        None,
        "there",
        LEFT,
    ),
    ("ec2:DescribeFlowLogs", lambda answer: answer.update(FlowLogs=[]), "", "there", None, STAYS_AWAY),
    (
        "ec2:DescribeNatGateways",
        lambda answer: _first(answer, "NatGateways").update(State="deleted"),
        "",
        "there",
        None,
        STAYS_AWAY,
    ),
    # roles
    (
        "iam:GetRole",
        lambda answer: answer["Role"].update(
            AssumeRolePolicyDocument=answer["Role"]["AssumeRolePolicyDocument"].replace(
                '{"Service": "sagemaker.amazonaws.com"}', '"*"'
            )
        ),
        "AssumeRolePolicyDocument[Allow sts:AssumeRole]",
        _TRUSTS.format(who='{"Service": ["sagemaker.amazonaws.com"]}'),
        _TRUSTS.format(who='{"AWS": ["*"]}'),
        UNCHANGED,
    ),
    (
        "iam:ListAttachedRolePolicies",
        lambda answer: answer["AttachedPolicies"].append({"PolicyArn": "arn:aws:iam::aws:policy/AdministratorAccess"}),
        "Attached[arn:aws:iam::aws:policy/AdministratorAccess]",
        None,
        "there",
        LEFT,
    ),
    (
        "iam:ListAttachedRolePolicies",
        lambda answer: answer["AttachedPolicies"].pop(),
        "Attached[arn:aws:iam::aws:policy/AmazonFSxReadOnlyAccess]",
        "there",
        None,
        UNCHANGED,
    ),
    (
        "iam:ListRolePolicies",
        lambda answer: answer["PolicyNames"].append("by-hand"),
        "Inline[by-hand]",
        None,
        "there",
        LEFT,
    ),
    (
        "iam:ListRolePolicies",
        lambda answer: answer["PolicyNames"].remove("bucket"),
        "Inline[bucket]",
        "there",
        None,
        UNCHANGED,
    ),
    (
        "iam:GetPolicyVersion",
        lambda answer: answer["PolicyVersion"].update(
            Document=json.dumps(
                {
                    "Statement": [
                        *json.loads(answer["PolicyVersion"]["Document"])["Statement"],
                        {**EVERYBODY, "Sid": "More"},
                    ]
                }
            )
        ),
        "PolicyDocument[More]",
        None,
        json.dumps(
            {
                "Action": ["s3:GetObject"],
                "Effect": "Allow",
                "Principal": {"AWS": ["*"]},
                "Resource": ["*"],
                "Sid": "More",
            },
            sort_keys=True,
        ),
        UNCHANGED,
    ),
    # logs, alarms and events
    (
        "logs:DescribeLogGroups",
        lambda answer: answer["logGroups"][0].pop("retentionInDays"),
        "RetentionInDays",
        "90",
        "never",
        UNCHANGED,
    ),
    (
        "logs:DescribeLogGroups",
        lambda answer: answer["logGroups"][2].update(retentionInDays=1),
        "RetentionInDays",
        "90",
        "1",
        _later("custom resource", f"Sets RetentionInDays from 1 to 90: {_PUTS_ALL}."),
    ),
    (
        "logs:DescribeMetricFilters",
        lambda answer: _first(answer, "metricFilters").update(filterPattern="error"),
        "FilterPattern",
        "failed",
        "error",
        UNCHANGED,
    ),
    (
        "cloudwatch:DescribeAlarms",
        lambda answer: _first(answer, "MetricAlarms").update(ActionsEnabled=False),
        "ActionsEnabled",
        "true",
        "false",
        _later("alarm", "Sets ActionsEnabled from false to true."),
    ),
    (
        "cloudwatch:DescribeAlarms",
        lambda answer: _first(answer, "MetricAlarms").update(Threshold=5.0),
        "Threshold",
        "1",
        "5",
        _later("alarm", "Sets Threshold from 5 to 1."),
    ),
    ("events:DescribeRule", lambda answer: answer.update(State="DISABLED"), "State", "ENABLED", "DISABLED", _ENABLED),
    (
        "events:ListTargetsByRule",
        lambda answer: answer.update(Targets=[]),
        "Targets[Target0]",
        "there",
        None,
        UNCHANGED,
    ),
    # buckets
    (
        "s3:GetBucketVersioning",
        lambda answer: answer.update(Status="Suspended"),
        "VersioningConfiguration.Status",
        "Enabled",
        "Suspended",
        UNCHANGED,
    ),
    (
        "s3:GetPublicAccessBlock",
        lambda answer: answer["PublicAccessBlockConfiguration"].update(BlockPublicPolicy=False),
        "PublicAccessBlockConfiguration.BlockPublicPolicy",
        "true",
        "false",
        UNCHANGED,
    ),
    (
        "s3:GetBucketPolicy",
        lambda answer: _policy(answer, lambda rows: rows.append(EVERYBODY)),
        "PolicyDocument[Everybody]",
        None,
        json.dumps(
            {**EVERYBODY, "Action": ["s3:GetObject"], "Principal": {"AWS": ["*"]}, "Resource": ["*"]}, sort_keys=True
        ),
        UNCHANGED,
    ),
    # keys
    (
        "kms:DescribeKey",
        lambda answer: answer["KeyMetadata"].update(KeyState="PendingDeletion"),
        "KeyState",
        "Enabled",
        "PendingDeletion",
        UNCHANGED,
    ),
    (
        "kms:GetKeyRotationStatus",
        lambda answer: answer.update(KeyRotationEnabled=False),
        "EnableKeyRotation",
        "true",
        "false",
        UNCHANGED,
    ),
    # EKS
    (
        "eks:DescribeCluster",
        lambda answer: answer["cluster"].update(version="1.35"),
        "Version",
        "1.34",
        "1.35",
        UNCHANGED,
    ),
    (
        "eks:DescribeCluster",
        lambda answer: answer["cluster"]["resourcesVpcConfig"].update(publicAccessCidrs=["0.0.0.0/0"]),
        "ResourcesVpcConfig.PublicAccessCidrs",
        "192.0.2.0/24",
        "0.0.0.0/0",
        UNCHANGED,
    ),
    (
        "eks:DescribeCluster",
        lambda answer: answer["cluster"]["logging"].update(clusterLogging=[{"types": ["api"], "enabled": True}]),
        "Logging.ClusterLogging.EnabledTypes",
        '{"Type": "api"}, {"Type": "audit"}',
        '{"Type": "api"}',
        UNCHANGED,
    ),
    ("eks:ListAddons", lambda answer: answer["addons"].append("coredns"), "Addons[coredns]", None, "there", LEFT),
    (
        "eks:DescribeAddon",
        lambda answer: answer["addon"].update(addonVersion="v1.21.0-eksbuild.1"),
        "AddonVersion",
        "v1.20.0-eksbuild.1",
        "v1.21.0-eksbuild.1",
        UNCHANGED,
    ),
    (
        "eks:DescribeAddon",
        lambda answer: answer["addon"].update(configurationValues='{"env": {"ENABLE_PREFIX_DELEGATION": "false"}}'),
        "ConfigurationValues.env.ENABLE_PREFIX_DELEGATION",
        "true",
        "false",
        UNCHANGED,
    ),
    (
        "eks:DescribeAddon",
        lambda answer: answer["addon"].update(
            configurationValues='{"env": {"ENABLE_PREFIX_DELEGATION": "true", "MORE": "1"}}'
        ),
        "ConfigurationValues.env.MORE",
        None,
        "1",
        UNCHANGED,
    ),
    (
        "eks:ListAccessEntries",
        lambda answer: answer["accessEntries"].append(f"arn:aws:iam::{ACCOUNT}:role/dana"),
        f"AccessEntries[arn:aws:iam::{ACCOUNT}:role/dana]",
        None,
        "there",
        LEFT,
    ),
    (
        "eks:ListAssociatedAccessPolicies",
        lambda answer: answer["associatedAccessPolicies"].append(
            {
                "policyArn": "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy",
                "accessScope": {"type": "cluster"},
            }
        ),
        "AccessPolicies[arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy]",
        None,
        "there",
        UNCHANGED,
    ),
    # task governance
    (
        "sagemaker:ListComputeQuotas",
        lambda answer: answer["ComputeQuotaSummaries"].append(
            {**answer["ComputeQuotaSummaries"][0], "Name": "by-hand"}
        ),
        "ComputeQuotas[by-hand]",
        None,
        "there",
        LEFT,
    ),
    (
        "sagemaker:DescribeComputeQuota",
        lambda answer: _first(answer["ComputeQuotaConfig"], "ComputeQuotaResources").update(Count=8),
        "ComputeQuotaConfig.ComputeQuotaResources[ml.p5.48xlarge].Count",
        "2",
        "8",
        UNCHANGED,
    ),
    (
        "sagemaker:DescribeComputeQuota",
        lambda answer: answer["ComputeQuotaConfig"]["ResourceSharingConfig"].update(BorrowLimit=100),
        "ComputeQuotaConfig.ResourceSharingConfig.BorrowLimit",
        "50",
        "100",
        UNCHANGED,
    ),
    (
        "sagemaker:DescribeComputeQuota",
        lambda answer: answer["ComputeQuotaTarget"].update(FairShareWeight=1),
        "ComputeQuotaTarget.FairShareWeight",
        "100",
        "1",
        UNCHANGED,
    ),
    (
        "sagemaker:DescribeClusterSchedulerConfig",
        lambda answer: answer["SchedulerConfig"].update(FairShare="Disabled"),
        "SchedulerConfig.FairShare",
        "Enabled",
        "Disabled",
        UNCHANGED,
    ),
    (
        "sagemaker:DescribeClusterSchedulerConfig",
        lambda answer: answer["SchedulerConfig"]["PriorityClasses"].append({"Name": "urgent", "Weight": 99}),
        "SchedulerConfig.PriorityClasses[urgent]",
        None,
        "there",
        UNCHANGED,
    ),
    # functions; values of variables may be secrets
    (
        "lambda:GetFunction",
        lambda answer: answer["Configuration"].update(CodeSha256="another"),
        "Code",
        "as uploaded",
        "code that differs from what was uploaded",
        UNCHANGED,
    ),
    (
        "lambda:GetFunction",
        lambda answer: answer["Configuration"].update(MemorySize=128),
        "MemorySize",
        "256",
        "128",
        UNCHANGED,
    ),
    (
        "lambda:GetFunction",
        lambda answer: answer["Configuration"]["Environment"]["Variables"].update(SETTINGS="hush"),
        "Environment.Variables[SETTINGS]",
        "of dev",
        "another value",
        UNCHANGED,
    ),
    (
        "lambda:GetFunction",
        lambda answer: answer["Configuration"]["Environment"]["Variables"].update(TOKEN="hush"),
        "Environment.Variables[TOKEN]",
        None,
        "a value that no template has",
        UNCHANGED,
    ),
    (
        "lambda:GetFunction",
        lambda answer: answer["Configuration"].pop("Environment"),
        "Environment.Variables[SETTINGS]",
        "of dev",
        None,
        UNCHANGED,
    ),
    (
        "lambda:GetFunction",
        lambda answer: answer.update(Concurrency={"ReservedConcurrentExecutions": 0}),
        "ReservedConcurrentExecutions",
        None,
        "0 at once",
        UNCHANGED,
    ),
    (
        "lambda:GetFunction",
        lambda answer: answer["Configuration"]["Layers"].append({"Arn": "arn:aws:lambda:us-east-1:1:layer:spy:1"}),
        "Layers",
        f"arn:aws:lambda:us-east-1:{ACCOUNT}:layer:dev:1",
        f"arn:aws:lambda:us-east-1:{ACCOUNT}:layer:dev:1, arn:aws:lambda:us-east-1:1:layer:spy:1",
        UNCHANGED,
    ),
    (
        "lambda:GetPolicy",
        lambda answer: _policy(answer, lambda rows: rows.append({**_ANYTHING, "Sid": "all"})),
        "Permissions[all]",
        None,
        json.dumps({"Action": ["*"], "Effect": "Allow", "Principal": {"AWS": ["*"]}, "Sid": "all"}, sort_keys=True),
        LEFT,
    ),
    # what a team is told by, and what it looks at
    (
        "cloudwatch:GetDashboard",
        lambda answer: answer.update(DashboardBody='{"widgets": []}'),
        "DashboardBody",
        "as deployed",
        "widgets that differ from the deployed ones",
        _later("dashboard", "Sets DashboardBody from widgets that differ from the deployed ones to as deployed."),
    ),
    (
        "sns:GetTopicAttributes",
        lambda answer: answer["Attributes"].update(DisplayName="off call"),
        "DisplayName",
        "on call",
        "off call",
        UNCHANGED,
    ),
    (
        "sns:ListSubscriptionsByTopic",
        lambda answer: answer["Subscriptions"][0].update(SubscriptionArn="Deleted"),
        "Subscriptions[email to ml@example.com]",
        "there",
        None,
        UNCHANGED,
    ),
    (
        "sns:ListSubscriptionsByTopic",
        lambda answer: answer["Subscriptions"].append(
            {"SubscriptionArn": "arn", "Protocol": "https", "Endpoint": "https://spy.example.com"}
        ),
        "Subscriptions[https to https://spy.example.com]",
        None,
        "there",
        LEFT,
    ),
    (
        "sns:GetTopicAttributes",
        lambda answer: _policy(answer["Attributes"], lambda rows: rows.append({**_ANYTHING, "Sid": "all"})),
        "PolicyDocument[all]",
        None,
        json.dumps(
            {**_ANYTHING, "Action": ["*"], "Principal": {"AWS": ["*"]}, "Resource": ["*"], "Sid": "all"}, sort_keys=True
        ),
        UNCHANGED,
    ),
    (
        "chatbot:DescribeSlackChannelConfigurations",
        lambda answer: _first(answer, "SlackChannelConfigurations").update(SlackChannelId="C0B"),
        "SlackChannelId",
        "C0A",
        "C0B",
        UNCHANGED,
    ),
    (
        "budgets:DescribeBudget",
        lambda answer: answer["Budget"]["BudgetLimit"].update(Amount="50000.0"),
        "Budget.BudgetLimit.Amount",
        "1000",
        "50000",
        UNCHANGED,
    ),
    (
        "budgets:DescribeNotificationsForBudget",
        lambda answer: answer.update(Notifications=[]),
        "Notifications[ACTUAL GREATER_THAN 80]",
        "there",
        None,
        UNCHANGED,
    ),
    (
        "grafana:DescribeWorkspace",
        lambda answer: answer["workspace"].update(dataSources=["CLOUDWATCH", "PROMETHEUS", "XRAY"]),
        "DataSources",
        "CLOUDWATCH, PROMETHEUS",
        "CLOUDWATCH, PROMETHEUS, XRAY",
        UNCHANGED,
    ),
    (
        "aps:DescribeWorkspace",
        lambda answer: answer["workspace"].update(alias="mine"),
        "Alias",
        "dev",
        "mine",
        UNCHANGED,
    ),
    (
        "fsx:DescribeDataRepositoryAssociations",
        lambda answer: _first(answer, "Associations")["S3"].update(AutoExportPolicy={"Events": ["NEW"]}),
        "S3.AutoExportPolicy.Events",
        None,
        "NEW",
        UNCHANGED,
    ),
    (
        "iam:GetOpenIDConnectProvider",
        lambda answer: answer.update(ClientIDList=["sts.amazonaws.com", "mine"]),
        "ClientIdList",
        "sts.amazonaws.com",
        "mine, sts.amazonaws.com",
        UNCHANGED,
    ),
    (
        "ec2:DescribeInternetGateways",
        lambda answer: _first(answer, "InternetGateways").update(Attachments=[]),
        "Attachments[vpc-0a1b]",
        "there",
        None,
        UNCHANGED,
    ),
    # members that stand beside what their service tells first
    (
        "lambda:GetFunction",
        lambda answer: answer["Configuration"]["LoggingConfig"].update(LogGroup="/mine"),
        "LoggingConfig.LogGroup",
        "/dev/nodes",
        "/mine",
        UNCHANGED,
    ),
    (
        "lambda:GetFunction",
        lambda answer: answer["Configuration"]["LoggingConfig"].update(ApplicationLogLevel="FATAL"),
        "LoggingConfig.ApplicationLogLevel",
        None,
        "FATAL",
        UNCHANGED,
    ),
    (
        "budgets:DescribeSubscribersForNotification",
        lambda answer: answer["Subscribers"].append({"SubscriptionType": "EMAIL", "Address": "me@example.com"}),
        "Notifications[ACTUAL GREATER_THAN 80].Subscribers[EMAIL to me@example.com]",
        None,
        "there",
        LEFT,
    ),
    (
        "budgets:DescribeSubscribersForNotification",
        lambda answer: answer.update(Subscribers=[]),
        f"Notifications[ACTUAL GREATER_THAN 80].Subscribers[SNS to {TOPIC_ARN}]",
        "there",
        None,
        UNCHANGED,
    ),
    (
        "logs:DescribeResourcePolicies",
        lambda answer: answer.update(resourcePolicies=[]),
        "ResourcePolicyDocument[Allow logs:PutLogEvents]",
        json.dumps(
            {
                "Action": ["logs:PutLogEvents"],
                "Effect": "Allow",
                "Principal": {"Service": ["events.amazonaws.com"]},
                "Resource": [f"arn:aws:logs:us-east-1:{ACCOUNT}:log-group:/dev/nodes:*"],
            }
        ),
        None,
        UNCHANGED,
    ),
    (
        "logs:DescribeMetricFilters",
        lambda answer: answer["metricFilters"][0]["metricTransformations"][0].update(metricName="mine"),
        "MetricTransformations",
        '{"DefaultValue": "0", "MetricName": "failing", "MetricNamespace": "dev", "MetricValue": "1"}',
        '{"DefaultValue": "0", "MetricName": "mine", "MetricNamespace": "dev", "MetricValue": "1"}',
        UNCHANGED,
    ),
    (
        "cloudwatch:DescribeAlarms",
        lambda answer: answer["MetricAlarms"][0]["Metrics"][0]["MetricStat"].update(Stat="Average"),
        "Metrics[failing].MetricStat.Stat",
        "Maximum",
        "Average",
        _later("alarm", "Sets Metrics[failing].MetricStat.Stat from Average to Maximum."),
    ),
    (
        "events:ListTagsForResource",
        lambda answer: answer["Tags"].append({"Key": "mine", "Value": "yes"}),
        "Tags[mine]",
        None,
        "yes",
        LEFT,
    ),
    (
        "kms:ListResourceTags",
        lambda answer: answer["Tags"].append({"TagKey": "mine", "TagValue": "yes"}),
        "Tags[mine]",
        None,
        "yes",
        LEFT,
    ),
    (
        "kms:DescribeKey",
        lambda answer: answer["KeyMetadata"].update(Description="mine"),
        "Description",
        "of dev",
        "mine",
        UNCHANGED,
    ),
    (
        "grafana:DescribeWorkspaceConfiguration",
        lambda answer: answer.update(configuration="{}"),
        "PluginAdminEnabled",
        "true",
        None,
        UNCHANGED,
    ),
    (
        "s3:GetBucketLogging",
        lambda answer: answer.clear(),
        "LoggingConfiguration.DestinationBucketName",
        "dev-access-logs",
        None,
        UNCHANGED,
    ),
    (
        "ec2:DescribeNetworkInterfaces",
        lambda answer: answer["NetworkInterfaces"][1].update(Groups=[{"GroupId": "sg-9", "GroupName": "mine"}]),
        "SecurityGroupIds",
        "sg-0a1b",
        "sg-9",
        UNCHANGED,
    ),
    (
        "eks:DescribeCluster",
        lambda answer: answer["cluster"].update(zonalShiftConfig={"enabled": False}),
        "ZonalShiftConfig.Enabled",
        "true",
        "false",
        UNCHANGED,
    ),
    (
        "eks:DescribeCluster",
        lambda answer: answer["cluster"].update(controlPlaneScalingConfig={"tier": "tier-xl"}),
        "ControlPlaneScalingConfig.Tier",
        "standard",
        "tier-xl",
        UNCHANGED,
    ),
    (
        "eks:DescribeCluster",
        lambda answer: answer["cluster"].update(computeConfig={"enabled": True}),
        "ComputeConfig.Enabled",
        None,
        "true",
        UNCHANGED,
    ),
    ("ec2:DescribeAddresses", lambda answer: answer.update(Addresses=[]), "", "there", None, STAYS_AWAY),
)


@pytest.mark.parametrize("row", ROWS, ids=[f"{row[0]} {row[2]}" for row in ROWS])
def test_a_difference_is_found_once(row: Row) -> None:
    call, edit, path, deployed, actual, expected = row
    account = Account()
    account.more[call] = copy.deepcopy(account.more[call])
    edit(account.more[call])
    found = account.drift()
    difference = only(found)
    assert (difference.path, difference.deployed, difference.file, difference.actual) == (
        path,
        deployed,
        deployed,
        actual,
    )
    assert found.skipped == ()
    if expected is LEFT or difference.type != "AWS::SageMaker::Cluster":
        assert difference.next == expected


@row_by_row(
    "call, code, resource",
    [
        ("eks:DescribeAddon", "ResourceNotFoundException", "Addon"),
        ("eks:DescribeCluster", "ResourceNotFoundException", "Eks"),
        ("fsx:DescribeFileSystems", "FileSystemNotFound", "FileSystem"),
        ("ec2:DescribeSecurityGroups", "InvalidGroup.NotFound", "Efa"),
        ("ec2:DescribeRouteTables", "InvalidRouteTableID.NotFound", "Table"),
        ("ec2:DescribeVpcEndpoints", "InvalidVpcEndpointId.NotFound", "Endpoint"),
        ("s3:GetBucketPolicy", "NoSuchBucketPolicy", "BucketPolicy"),
        ("s3:GetBucketVersioning", "NoSuchBucket", "Bucket"),
        ("sagemaker:DescribeComputeQuota", "ResourceNotFound", "Quota"),
        ("iam:GetRole", "NoSuchEntity", "Role"),
        ("iam:GetPolicy", "NoSuchEntity", "Policy"),
        ("ec2:DescribeVpcs", "InvalidVpcID.NotFound", "Vpc"),
        ("ec2:DescribeSubnets", "InvalidSubnetID.NotFound", "Subnet"),
        ("ec2:DescribeNatGateways", "NatGatewayNotFound", "Nat"),
        ("events:DescribeRule", "ResourceNotFoundException", "Rule"),
        ("logs:DescribeMetricFilters", "ResourceNotFoundException", "Filter"),
        # gone since the call before found it
        ("events:ListTargetsByRule", "ResourceNotFoundException", "Rule"),
        ("iam:ListAttachedRolePolicies", "NoSuchEntity", "Role"),
        ("iam:ListRolePolicies", "NoSuchEntity", "Role"),
        ("iam:GetPolicyVersion", "NoSuchEntity", "Policy"),
        ("eks:ListAssociatedAccessPolicies", "ResourceNotFoundException", "Entry"),
        ("lambda:GetFunction", "ResourceNotFoundException", "Function"),
        ("lambda:GetLayerVersion", "ResourceNotFoundException", "Layer"),
        ("cloudwatch:GetDashboard", "ResourceNotFound", "Dashboard"),
        ("budgets:DescribeBudget", "NotFoundException", "Budget"),
        ("grafana:DescribeWorkspace", "ResourceNotFoundException", "Grafana"),
        ("aps:DescribeWorkspace", "ResourceNotFoundException", "Prometheus"),
        ("fsx:DescribeDataRepositoryAssociations", "DataRepositoryAssociationNotFound", "Repository"),
        ("iam:GetOpenIDConnectProvider", "NoSuchEntity", "Provider"),
        ("ec2:DescribeAddresses", "InvalidAddress.NotFound", "Address"),
        ("ec2:DescribeInternetGateways", "InvalidInternetGatewayID.NotFound", "Gateway"),
    ],
)
def test_a_resource_deleted_by_hand(call: str, code: str, resource: str) -> None:
    account = Account()
    account.more[call] = Fails(code, "not found", 404)
    difference = only(account.drift())
    assert (difference.resource, difference.path, difference.deployed, difference.actual) == (
        resource,
        "",
        "there",
        None,
    )


@row_by_row("call", sorted({row[0] for row in ROWS}))
def test_what_is_denied_is_skipped(call: str) -> None:
    account = Account()
    account.more[call] = Fails("AccessDeniedException", "no", 403)
    found = account.drift()
    assert (found.passed, found.differences) == (None, ())
    assert {each.aws_said for each in found.skipped} == {"no"}


def test_a_value_that_changes_elsewhere_too_is_unknown() -> None:
    """Whether CloudFormation's handlers send what did not change is documented of no type."""
    account = Account()
    account.more["fsx:DescribeFileSystems"]["FileSystems"][0]["StorageCapacity"] = 9600
    account.in_file("FileSystem")["LustreConfiguration"]["DataCompressionType"] = "NONE"
    assert only(account.drift()).next.effect == "unknown"


def test_a_property_of_the_first_level_is_sent_whole() -> None:
    """UpdateComputeQuota takes ComputeQuotaConfig as one."""
    account = Account()
    account.more["sagemaker:DescribeComputeQuota"]["ComputeQuotaConfig"]["ComputeQuotaResources"][0]["Count"] = 8
    account.in_file("Quota")["ComputeQuotaConfig"]["ResourceSharingConfig"]["BorrowLimit"] = 10
    difference = only(account.drift())
    assert difference.next.sentence == (
        "Sets ComputeQuotaConfig.ComputeQuotaResources[ml.p5.48xlarge].Count from 8 to 2."
    )


def test_a_file_system_does_not_shrink() -> None:
    """FSx user guide, "Managing storage capacity": you can only increase it."""
    account = Account()
    account.more["fsx:DescribeFileSystems"]["FileSystems"][0]["StorageCapacity"] = 9600
    account.in_file("FileSystem")["StorageCapacity"] = 7200
    assert only(account.drift()).next.effect == "fails"


@pytest.mark.parametrize(
    ("call", "code", "resources"),
    [
        ("sns:GetTopicAttributes", "NotFound", ["Topic", "TopicPolicy"]),
        ("kms:DescribeKey", "NotFoundException", ["Key", "KeyAlias"]),
    ],
)
def test_what_goes_with_what_was_deleted_by_hand(call: str, code: str, resources: list[str]) -> None:
    account = Account()
    account.more[call] = Fails(code, "not found", 404)
    assert [(each.resource, each.path) for each in account.drift().differences] == [(each, "") for each in resources]


def test_no_value_of_a_variable_is_shown_that_no_template_has() -> None:
    account = Account()
    account.more["lambda:GetFunction"]["Configuration"]["Environment"]["Variables"] = {
        "SETTINGS": "hush",
        "TOKEN": "hush",
    }
    assert "hush" not in account.drift().model_dump_json()


@pytest.mark.parametrize("code", [{"ZipFile": "x = 1"}, {"ImageUri": "an image"}])
def test_code_of_which_only_its_hash_is_known_is_skipped(code: dict[str, str]) -> None:
    account = Account()
    for templates in (account.deployed, account.head):
        templates["dev-foundation"]["Resources"]["Function"]["Properties"]["Code"] = code
    found = account.drift()
    assert (found.differences, found.passed) == ((), None)
    (skipped,) = found.skipped
    assert skipped.reason == "its code is in the template or in an image, and Lambda shows only a hash of that"


def test_variables_that_lambda_does_not_show_are_skipped() -> None:
    """FunctionConfiguration, EnvironmentResponse: Error where the key of the variables cannot be used."""
    account = Account()
    account.more["lambda:GetFunction"]["Configuration"]["Environment"] = {"Error": {"ErrorCode": "AccessDenied"}}
    found = account.drift()
    assert (found.differences, [each.reason for each in found.skipped]) == (
        (),
        ["Lambda does not show its environment variables"],
    )


def _by_function(account: Account, name: str, kind: str) -> None:
    for templates in (account.deployed, account.head):
        resource = templates["dev-foundation"]["Resources"][name]
        resource["Type"] = kind


@pytest.mark.parametrize(
    ("edit", "path", "effect", "sentence"),
    [
        (None, "ComputeQuotaConfig.ComputeQuotaResources[ml.p5.48xlarge].Count", "nothing", NOT_IN_CHANGE),
        (
            {"Description": "theirs"},
            "ComputeQuotaConfig.ComputeQuotaResources[ml.p5.48xlarge].Count",
            "sets",
            (
                "Sets ComputeQuotaConfig.ComputeQuotaResources[ml.p5.48xlarge].Count from 8 to 2: its custom"
                " resource sends all of it with every update."
            ),
        ),
    ],
)
def test_a_quota_of_a_region_without_the_type_is_compared(
    edit: dict[str, Any] | None, path: str, effect: str, sentence: str
) -> None:
    """There a function of this library makes it by the same calls, and knows what it made by a tag."""
    account = Account()
    _by_function(account, "Quota", "Custom::ComputeQuota")
    _by_function(account, "Config", "Custom::ClusterSchedulerConfig")
    account.more["sagemaker:ListTags"] = lambda params: {
        "Tags": account.tags if params["ResourceArn"] == CLUSTER_ARN else [{"Key": "hyperpod-cdk:owner", "Value": "x"}]
    }
    assert account.drift().differences == ()
    account.more["sagemaker:DescribeComputeQuota"]["ComputeQuotaConfig"]["ComputeQuotaResources"][0]["Count"] = 8
    account.in_file("Quota").update(edit or {})
    difference = only(account.drift())
    assert (difference.path, difference.next.effect, difference.next.sentence) == (path, effect, sentence)


@pytest.mark.parametrize(
    ("edit", "effect", "sentence"),
    [
        ({}, "nothing", f"{NOT_IN_CHANGE} It is not created again."),
        (
            {"Description": "theirs"},
            "makes",
            "Creates it again: its custom resource sends all of it with every update.",
        ),
    ],
)
def test_a_quota_that_the_function_made_comes_back(edit: dict[str, Any], effect: str, sentence: str) -> None:
    account = Account()
    _by_function(account, "Quota", "Custom::ComputeQuota")
    account.more["sagemaker:DescribeComputeQuota"] = Fails("ResourceNotFound", "not found", 404)
    account.in_file("Quota").update(edit)
    difference = only(account.drift())
    assert (difference.path, difference.next.effect, difference.next.sentence) == ("", effect, sentence)


def test_every_type_that_the_library_makes_is_compared_or_named() -> None:
    """By their golden templates; whoever adds a type says how it is compared, or why not."""
    golden = [*(PROJECT / "tests/stacks/golden").glob("*.yaml"), *(PROJECT / "synthesized/prod").glob("*.yaml")]
    types = {
        each
        for file in golden
        for each in re.findall(r" Type: ((?:AWS|Custom)::[\w:-]+)$", file.read_text(), re.MULTILINE)
    }
    assert "AWS::SageMaker::Cluster" in types
    assert {each for each in types if is_left_out(each)} == {
        # what a chart made of its values is not known here (docs/decisions/0020-drift.md)
        "Custom::AWSCDK-EKS-HelmChart",
        # Grafana tells its dashboards only to its own users
        "Custom::HyperPodGrafanaDashboards",
    }
