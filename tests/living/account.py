"""An environment dev that is deployed, and the AWS that has it: what a test plants in AWS's answers is drift."""

from __future__ import annotations

import base64
import copy
import hashlib
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hyperpod_cdk.checks.aws import LiveAws
from hyperpod_cdk.handlers.quota_gate.reading import Own
from hyperpod_cdk.living.drift import drift
from hyperpod_cdk.living.model import Difference, Drift
from hyperpod_cdk.living.standing import read_living
from hyperpod_cdk.templates.assembly import Assembly, Stack
from tests.support.scripted_aws import WHO, Fails, ScriptedSession

ACCOUNT, REGION = "111122223333", "us-east-1"
CLUSTER_ARN = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:cluster/abcdefabcdef"
ROLE_ARN = f"arn:aws:iam::{ACCOUNT}:role/dev-nodes"
EKS_ARN = f"arn:aws:eks:{REGION}:{ACCOUNT}:cluster/dev-eks"

POLICY_ARN = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSViewPolicy"
QUOTA_ARN = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:compute-quota/0a1b2c3d4e5f"
CONFIG_ARN = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:cluster-scheduler-config/0a1b2c3d4e5f"
TOPIC_ARN = f"arn:aws:sns:{REGION}:{ACCOUNT}:dev-told"
CHANNEL_ARN = f"arn:aws:chatbot::{ACCOUNT}:chat-configuration/slack-channel/dev"
ADMIN_ARN = f"arn:aws:iam::{ACCOUNT}:role/admin"

IDS = {
    "Role": "dev-nodes",
    "Efa": "sg-0a1b",
    "Subnet": "subnet-0a1b",
    "Eks": "dev-eks",
    "Cluster": CLUSTER_ARN,
    "Table": "rtb-0a1b",
    "Nat": "nat-0a1b",
    "Endpoint": "vpce-0a1b",
    "FileSystem": "fs-0123456789abcdef0",
    "Bucket": "sagemaker-dev",
    "BucketPolicy": "sagemaker-dev",
    "Key": "0a1b-2c3d",
    "Quota": QUOTA_ARN,
    "Config": CONFIG_ARN,
    "Vpc": "vpc-0a1b",
    "FlowLog": "fl-0a1b",
    "Policy": f"arn:aws:iam::{ACCOUNT}:policy/dev-more",
    "Log": "/dev/nodes",
    "Alarm": "dev-nodes-fail",
    "Rule": "dev-node-health",
    "Filter": "dev-filter",
    "Function": "dev-told",
    "Layer": f"arn:aws:lambda:{REGION}:{ACCOUNT}:layer:dev:1",
    "Permission": "dev-told-by-rule",
    "Dashboard": "dev-hyperpod",
    "Topic": TOPIC_ARN,
    "TopicPolicy": "dev-topic-policy",
    "Subscription": f"{TOPIC_ARN}:0a1b",
    "Channel": CHANNEL_ARN,
    "Budget": "dev-budget",
    "Grafana": "g-0a1b",
    "Prometheus": f"arn:aws:aps:{REGION}:{ACCOUNT}:workspace/ws-0a1b",
    "Repository": "dra-0123456789abcdef0",
    "KeyAlias": "alias/dev",
    "Provider": f"arn:aws:iam::{ACCOUNT}:oidc-provider/oidc.eks",
    "Address": "192.0.2.1",
    "Gateway": "igw-0a1b",
}
"""Physical IDs by logical ID; a resource that is not here has its own."""


_READ_ONLY = "AmazonFSxReadOnlyAccess"
_TRUST = {"Effect": "Allow", "Principal": {"Service": "sagemaker.amazonaws.com"}, "Action": "sts:AssumeRole"}
_PUBLISHES = {
    "Sid": "Alarms",
    "Effect": "Allow",
    "Principal": {"Service": "cloudwatch.amazonaws.com"},
    "Action": "sns:Publish",
    "Resource": TOPIC_ARN,
}
CODE = b"an archive"
_WRITES_LOGS = {"Sid": "Logs", "Effect": "Allow", "Action": ["logs:PutLogEvents"], "Resource": "*"}
_EVENTS_WRITE = {
    "Effect": "Allow",
    "Principal": {"Service": "events.amazonaws.com"},
    "Action": ["logs:PutLogEvents"],
    "Resource": "arn:aws:logs:us-east-1:111122223333:log-group:/dev/nodes:*",
}
_READS_BUCKET = {"Sid": "Bucket", "Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::mine/*"}


def _group(name: str, count: int, **more: Any) -> dict[str, Any]:
    return {
        "InstanceGroupName": name,
        "InstanceType": "ml.p5.48xlarge",
        "InstanceCount": count,
        "ExecutionRole": {"Fn::GetAtt": ["Role", "Arn"]},
        "ThreadsPerCore": 2,
        "LifeCycleConfig": {"OnCreate": "on_create.sh", "SourceS3Uri": "s3://sagemaker-dev/0a"},
        "InstanceStorageConfigs": [{"EbsVolumeConfig": {"VolumeSizeInGB": 500}}],
        "OverrideVpcConfig": {"SecurityGroupIds": [{"Fn::GetAtt": ["Efa", "GroupId"]}], "Subnets": [{"Ref": "Subnet"}]},
        **more,
    }


TEMPLATES: Mapping[str, dict[str, Any]] = {
    "dev-foundation": {
        "Resources": {
            "Role": {
                "Type": "AWS::IAM::Role",
                "Properties": {
                    "Description": "nodes",
                    "AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": [_TRUST]},
                    "ManagedPolicyArns": [
                        {
                            "Fn::Join": [
                                "",
                                ["arn:", {"Ref": "AWS::Partition"}, ":iam::aws:policy/AmazonFSxReadOnlyAccess"],
                            ]
                        }
                    ],
                    "Policies": [{"PolicyName": "logs", "PolicyDocument": {"Statement": [_WRITES_LOGS]}}],
                },
            },
            "Inline": {
                "Type": "AWS::IAM::Policy",
                "Properties": {
                    "PolicyName": "bucket",
                    "PolicyDocument": {"Statement": [_READS_BUCKET]},
                    "Roles": [{"Ref": "Role"}],
                },
            },
            "Policy": {
                "Type": "AWS::IAM::ManagedPolicy",
                "Properties": {"PolicyDocument": {"Statement": [_READS_BUCKET]}, "Roles": [{"Ref": "Role"}]},
            },
            "Vpc": {
                "Type": "AWS::EC2::VPC",
                "Properties": {"CidrBlock": "10.0.0.0/16", "EnableDnsHostnames": True, "EnableDnsSupport": True},
            },
            "FlowLog": {
                "Type": "AWS::EC2::FlowLog",
                "Properties": {
                    "ResourceId": {"Ref": "Vpc"},
                    "ResourceType": "VPC",
                    "TrafficType": "ALL",
                    "LogDestinationType": "cloud-watch-logs",
                    "LogGroupName": {"Ref": "Log"},
                },
            },
            "Log": {
                "Type": "AWS::Logs::LogGroup",
                "Properties": {
                    "LogGroupName": "/dev/nodes",
                    "RetentionInDays": 90,
                    "ResourcePolicyDocument": {"Statement": [_EVENTS_WRITE]},
                    "Tags": [{"Key": "team", "Value": "ml"}],
                },
            },
            "Settings": {
                "Type": "Custom::HyperPodLogSettings",
                "Properties": {
                    "LogGroupName": "/aws/eks/dev-eks/cluster",
                    "RetentionInDays": 90,
                    "Tags": {"team": "ml"},
                },
            },
            "Filter": {
                "Type": "AWS::Logs::MetricFilter",
                "Properties": {
                    "LogGroupName": {"Ref": "Log"},
                    "FilterPattern": "failed",
                    "MetricTransformations": [
                        {"MetricName": "failing", "MetricNamespace": "dev", "MetricValue": "1", "DefaultValue": 0}
                    ],
                },
            },
            "Alarm": {
                "Type": "AWS::CloudWatch::Alarm",
                "Properties": {
                    "AlarmName": "dev-nodes-fail",
                    "Threshold": 1,
                    "Metrics": [
                        {"Id": "used", "Expression": "failing / all", "Label": "used"},
                        {
                            "Id": "failing",
                            "MetricStat": {"Metric": {"MetricName": "failing"}, "Period": 300, "Stat": "Maximum"},
                            "ReturnData": False,
                        },
                    ],
                },
            },
            "Rule": {
                "Type": "AWS::Events::Rule",
                "Properties": {
                    "EventPattern": {"source": ["aws.sagemaker"]},
                    "Targets": [{"Id": "Target0", "Arn": {"Fn::GetAtt": ["Log", "Arn"]}}],
                },
            },
            "Association": {
                "Type": "AWS::EC2::SubnetRouteTableAssociation",
                "Properties": {"SubnetId": {"Ref": "Subnet"}, "RouteTableId": {"Ref": "Table"}},
            },
            "Efa": {
                "Type": "AWS::EC2::SecurityGroup",
                "Properties": {
                    "GroupDescription": "EFA",
                    "SecurityGroupEgress": [{"CidrIp": "0.0.0.0/0", "IpProtocol": "-1"}],
                },
            },
            "FromItself": {
                "Type": "AWS::EC2::SecurityGroupIngress",
                "Properties": {
                    "GroupId": {"Fn::GetAtt": ["Efa", "GroupId"]},
                    "IpProtocol": "-1",
                    "SourceSecurityGroupId": {"Fn::GetAtt": ["Efa", "GroupId"]},
                    "Description": "nodes",
                },
            },
            "Table": {"Type": "AWS::EC2::RouteTable", "Properties": {"VpcId": "vpc-0a1b"}},
            "Nat": {"Type": "AWS::EC2::NatGateway", "Properties": {"SubnetId": {"Ref": "Subnet"}}},
            "Out": {
                "Type": "AWS::EC2::Route",
                "Properties": {
                    "RouteTableId": {"Ref": "Table"},
                    "DestinationCidrBlock": "0.0.0.0/0",
                    "NatGatewayId": {"Ref": "Nat"},
                },
            },
            "Endpoint": {
                "Type": "AWS::EC2::VPCEndpoint",
                "Properties": {
                    "ServiceName": "com.amazonaws.us-east-1.ecr.api",
                    "VpcEndpointType": "Interface",
                    "VpcId": "vpc-0a1b",
                    "PrivateDnsEnabled": True,
                    "SubnetIds": [{"Ref": "Subnet"}],
                    "SecurityGroupIds": [{"Fn::GetAtt": ["Efa", "GroupId"]}],
                },
            },
            "FileSystem": {
                "Type": "AWS::FSx::FileSystem",
                "Properties": {
                    "FileSystemType": "LUSTRE",
                    "StorageCapacity": 4800,
                    "SecurityGroupIds": [{"Fn::GetAtt": ["Efa", "GroupId"]}],
                    "LustreConfiguration": {
                        "DeploymentType": "PERSISTENT_2",
                        "PerUnitStorageThroughput": 250,
                        "DataCompressionType": "LZ4",
                        "EfaEnabled": False,
                    },
                },
            },
            "Bucket": {
                "Type": "AWS::S3::Bucket",
                "Properties": {
                    "VersioningConfiguration": {"Status": "Enabled"},
                    "PublicAccessBlockConfiguration": {"BlockPublicAcls": True, "BlockPublicPolicy": True},
                    "BucketEncryption": {
                        "ServerSideEncryptionConfiguration": [
                            {"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}
                        ]
                    },
                    "LoggingConfiguration": {"DestinationBucketName": "dev-access-logs"},
                },
            },
            "BucketPolicy": {
                "Type": "AWS::S3::BucketPolicy",
                "Properties": {
                    "Bucket": {"Ref": "Bucket"},
                    "PolicyDocument": {
                        "Version": "2012-10-17",
                        "Statement": [
                            {
                                "Sid": "OnlyTheUploadWrites",
                                "Effect": "Deny",
                                "Principal": "*",
                                "Action": ["s3:PutObject*", "s3:DeleteObject*"],
                                "Resource": {"Fn::Join": ["", [{"Fn::GetAtt": ["Bucket", "Arn"]}, "/*"]]},
                                "Condition": {"ArnNotEquals": {"aws:PrincipalArn": {"Fn::GetAtt": ["Role", "Arn"]}}},
                            }
                        ],
                    },
                },
            },
            "Key": {
                "Type": "AWS::KMS::Key",
                "Properties": {
                    "Description": "of dev",
                    "EnableKeyRotation": True,
                    "KeyPolicy": {
                        "Statement": [
                            {
                                "Effect": "Allow",
                                "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"},
                                "Action": "kms:*",
                                "Resource": "*",
                            }
                        ]
                    },
                },
            },
            "Eks": {
                "Type": "AWS::EKS::Cluster",
                "Properties": {
                    "Name": "dev-eks",
                    "Version": "1.34",
                    "AccessConfig": {"AuthenticationMode": "API", "BootstrapClusterCreatorAdminPermissions": False},
                    "ResourcesVpcConfig": {
                        "EndpointPublicAccess": True,
                        "EndpointPrivateAccess": True,
                        "PublicAccessCidrs": ["192.0.2.0/24"],
                    },
                    "Logging": {"ClusterLogging": {"EnabledTypes": [{"Type": "api"}, {"Type": "audit"}]}},
                    "ControlPlaneScalingConfig": {"Tier": "standard"},
                    "KubernetesNetworkConfig": {"IpFamily": "ipv4", "ElasticLoadBalancing": {"Enabled": False}},
                    "ZonalShiftConfig": {"Enabled": True},
                },
            },
            "Protection": {
                "Type": "Custom::HyperPodDeletionProtection",
                "Properties": {"Enabled": True, "EksClusterName": "dev-eks"},
            },
            # of a stack alone
            "StackProtection": {"Type": "Custom::HyperPodDeletionProtection", "Properties": {"Enabled": True}},
            "Addon": {
                "Type": "AWS::EKS::Addon",
                "Properties": {
                    "ClusterName": {"Ref": "Eks"},
                    "AddonName": "vpc-cni",
                    "AddonVersion": "v1.20.0-eksbuild.1",
                    "ResolveConflicts": "OVERWRITE",
                    "ConfigurationValues": '{"env": {"ENABLE_PREFIX_DELEGATION": "true"}}',
                },
            },
            "Entry": {
                "Type": "AWS::EKS::AccessEntry",
                "Properties": {
                    "ClusterName": {"Ref": "Eks"},
                    "PrincipalArn": ADMIN_ARN,
                    "Type": "STANDARD",
                    "AccessPolicies": [{"PolicyArn": POLICY_ARN, "AccessScope": {"Type": "cluster"}}],
                },
            },
            "Quota": {
                "Type": "AWS::SageMaker::ComputeQuota",
                "Properties": {
                    "Name": "dev-research",
                    "ClusterArn": {"Ref": "Cluster"},
                    "ComputeQuotaTarget": {"TeamName": "research", "FairShareWeight": 100},
                    "ComputeQuotaConfig": {
                        "ComputeQuotaResources": [{"InstanceType": "ml.p5.48xlarge", "Count": 2}],
                        "ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 50},
                    },
                },
            },
            "Config": {
                "Type": "AWS::SageMaker::ClusterSchedulerConfig",
                "Properties": {
                    "Name": "dev-policy",
                    "ClusterArn": {"Ref": "Cluster"},
                    "SchedulerConfig": {
                        "FairShare": "Enabled",
                        "PriorityClasses": [{"Name": "training", "Weight": 80}],
                    },
                },
            },
            "Function": {
                "Type": "AWS::Lambda::Function",
                "Properties": {
                    "Code": {"S3Bucket": "assets", "S3Key": "0a.zip"},
                    "Environment": {"Variables": {"SETTINGS": "of dev"}},
                    "Handler": "index.handler",
                    "Layers": [{"Ref": "Layer"}],
                    "LoggingConfig": {"LogFormat": "JSON", "LogGroup": {"Ref": "Log"}},
                    "MemorySize": 256,
                    "Role": {"Fn::GetAtt": ["Role", "Arn"]},
                    "Runtime": "python3.14",
                },
            },
            "Layer": {"Type": "AWS::Lambda::LayerVersion", "Properties": {"Content": {"S3Key": "0b.zip"}}},
            "Permission": {
                "Type": "AWS::Lambda::Permission",
                "Properties": {
                    "FunctionName": {"Fn::GetAtt": ["Function", "Arn"]},
                    "Action": "lambda:InvokeFunction",
                    "Principal": "events.amazonaws.com",
                    "SourceArn": {"Fn::GetAtt": ["Rule", "Arn"]},
                },
            },
            "Dashboard": {
                "Type": "AWS::CloudWatch::Dashboard",
                "Properties": {
                    "DashboardBody": {"Fn::Join": ["", ['{"widgets": [{"region": "', {"Ref": "AWS::Region"}, '"}]}']]}
                },
            },
            "Topic": {"Type": "AWS::SNS::Topic", "Properties": {"DisplayName": "on call"}},
            "TopicPolicy": {
                "Type": "AWS::SNS::TopicPolicy",
                "Properties": {"Topics": [{"Ref": "Topic"}], "PolicyDocument": {"Statement": [_PUBLISHES]}},
            },
            "Subscription": {
                "Type": "AWS::SNS::Subscription",
                "Properties": {"TopicArn": {"Ref": "Topic"}, "Protocol": "email", "Endpoint": "ml@example.com"},
            },
            "Channel": {
                "Type": "AWS::Chatbot::SlackChannelConfiguration",
                "Properties": {"SlackChannelId": "C0A", "SnsTopicArns": [{"Ref": "Topic"}], "LoggingLevel": "ERROR"},
            },
            "Budget": {
                "Type": "AWS::Budgets::Budget",
                "Properties": {
                    "Budget": {
                        "BudgetType": "COST",
                        "TimeUnit": "MONTHLY",
                        "BudgetLimit": {"Amount": 1000, "Unit": "USD"},
                    },
                    "NotificationsWithSubscribers": [
                        {
                            "Notification": {
                                "NotificationType": "ACTUAL",
                                "ComparisonOperator": "GREATER_THAN",
                                "Threshold": 80,
                            },
                            "Subscribers": [{"SubscriptionType": "SNS", "Address": {"Ref": "Topic"}}],
                        }
                    ],
                },
            },
            "Grafana": {
                "Type": "AWS::Grafana::Workspace",
                "Properties": {
                    "AuthenticationProviders": ["AWS_SSO"],
                    "DataSources": ["PROMETHEUS", "CLOUDWATCH"],
                    "PluginAdminEnabled": True,
                    "PermissionType": "CUSTOMER_MANAGED",
                },
            },
            "Prometheus": {"Type": "AWS::APS::Workspace", "Properties": {"Alias": "dev"}},
            "Repository": {
                "Type": "AWS::FSx::DataRepositoryAssociation",
                "Properties": {
                    "FileSystemId": {"Ref": "FileSystem"},
                    "FileSystemPath": "/data",
                    "S3": {"AutoImportPolicy": {"Events": ["NEW", "CHANGED"]}},
                },
            },
            "KeyAlias": {
                "Type": "AWS::KMS::Alias",
                "Properties": {"AliasName": "alias/dev", "TargetKeyId": {"Fn::GetAtt": ["Key", "Arn"]}},
            },
            "Provider": {"Type": "AWS::IAM::OIDCProvider", "Properties": {"ClientIdList": ["sts.amazonaws.com"]}},
            "Address": {"Type": "AWS::EC2::EIP", "Properties": {"Domain": "vpc"}},
            "Gateway": {"Type": "AWS::EC2::InternetGateway", "Properties": {}},
            "Attachment": {
                "Type": "AWS::EC2::VPCGatewayAttachment",
                "Properties": {"InternetGatewayId": {"Ref": "Gateway"}, "VpcId": {"Ref": "Vpc"}},
            },
            "Subnet": {"Type": "AWS::EC2::Subnet", "Properties": {"CidrBlock": "10.0.0.0/24"}},
            "Cluster": {
                "Type": "AWS::SageMaker::Cluster",
                "Properties": {
                    "ClusterName": "dev",
                    "NodeRecovery": "Automatic",
                    "NodeProvisioningMode": "Continuous",
                    "Orchestrator": {"Eks": {"ClusterArn": EKS_ARN}},
                    "VpcConfig": {"SecurityGroupIds": [{"Fn::GetAtt": "Efa.GroupId"}], "Subnets": [{"Ref": "Subnet"}]},
                    "InstanceGroups": [
                        _group("h100", 2, OnStartDeepHealthChecks=["InstanceStress", "InstanceConnectivity"]),
                        _group(
                            "system",
                            2,
                            ImageReleaseVersion="2.1.0",
                            KubernetesConfig={
                                "Labels": {"role": "system"},
                                "Taints": [{"Key": "system", "Value": "true", "Effect": "NoSchedule"}],
                            },
                        ),
                    ],
                    "Tags": [{"Key": "cost-center", "Value": "42"}],
                },
            },
        }
    },
}


def described_cluster() -> dict[str, Any]:
    """Return what DescribeCluster says of the cluster as it was deployed, with what AWS fills in, in another order."""

    def group(name: str, **more: Any) -> dict[str, Any]:
        return {
            "InstanceGroupName": name,
            "InstanceType": "ml.p5.48xlarge",
            "CurrentCount": 2,
            "TargetCount": 2,
            "ExecutionRole": ROLE_ARN,
            "ThreadsPerCore": 2,
            "Status": "InService",
            "LifeCycleConfig": {"SourceS3Uri": "s3://sagemaker-dev/0a", "OnCreate": "on_create.sh"},
            "InstanceStorageConfigs": [{"EbsVolumeConfig": {"VolumeSizeInGB": 500, "RootVolume": False}}],
            "OverrideVpcConfig": {"SecurityGroupIds": ["sg-0a1b"], "Subnets": ["subnet-0a1b"]},
            "CurrentImageReleaseVersion": "2.1.0",
            "DesiredImageReleaseVersion": "2.1.0",
            "CurrentImageId": "ami-0a",
            "DesiredImageId": "ami-0a",
            **more,
        }

    labels, taints = {"role": "system"}, [{"Effect": "NoSchedule", "Key": "system", "Value": "true"}]
    return {
        "ClusterArn": CLUSTER_ARN,
        "ClusterName": "dev",
        "ClusterStatus": "InService",
        "NodeRecovery": "Automatic",
        "NodeProvisioningMode": "Continuous",
        "Orchestrator": {"Eks": {"ClusterArn": EKS_ARN}},
        "VpcConfig": {"SecurityGroupIds": ["sg-0a1b"], "Subnets": ["subnet-0a1b"]},
        "InstanceGroups": [
            group(
                "system",
                KubernetesConfig={
                    "CurrentLabels": labels,
                    "DesiredLabels": labels,
                    "CurrentTaints": taints,
                    "DesiredTaints": taints,
                },
            ),
            group("h100", OnStartDeepHealthChecks=["InstanceConnectivity", "InstanceStress"]),
        ],
    }


def _answers() -> dict[str, Any]:
    """Return what the other services say of what was deployed, with what they fill in, in another order."""
    statement = {
        "Sid": "OnlyTheUploadWrites",
        "Effect": "Deny",
        "Principal": {"AWS": "*"},
        "Action": ["s3:DeleteObject*", "s3:PutObject*"],
        "Resource": "arn:aws:s3:::sagemaker-dev/*",
        "Condition": {"ArnNotEquals": {"aws:PrincipalArn": ROLE_ARN}},
    }
    root = {"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}, "Action": "kms:*", "Resource": "*"}
    itself = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": "sg-0a1b", "Description": "nodes"}]}
    everywhere = {"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
    return {
        "iam:GetRole": {
            "Role": {
                "RoleName": "dev-nodes",
                "Path": "/",
                "Description": "nodes",
                "MaxSessionDuration": 3600,
                "AssumeRolePolicyDocument": json.dumps({"Statement": {**_TRUST, "Action": ["sts:AssumeRole"]}}),
            }
        },
        "iam:ListAttachedRolePolicies": {
            "AttachedPolicies": [
                {"PolicyName": "dev-more", "PolicyArn": f"arn:aws:iam::{ACCOUNT}:policy/dev-more"},
                {
                    "PolicyName": "AmazonFSxReadOnlyAccess",
                    "PolicyArn": "arn:aws:iam::aws:policy/AmazonFSxReadOnlyAccess",
                },
            ]
        },
        "iam:ListRolePolicies": {"PolicyNames": ["bucket", "logs"]},
        "iam:GetRolePolicy": lambda params: {
            **params,
            "PolicyDocument": json.dumps(
                {"Statement": [_WRITES_LOGS if params["PolicyName"] == "logs" else _READS_BUCKET]}
            ),
        },
        "iam:GetPolicy": {"Policy": {"DefaultVersionId": "v1"}},
        "iam:GetPolicyVersion": {
            "PolicyVersion": {"Document": json.dumps({"Statement": [_READS_BUCKET]}), "VersionId": "v1"}
        },
        "ec2:DescribeVpcs": {
            "Vpcs": [
                {
                    "VpcId": "vpc-0a1b",
                    "CidrBlockAssociationSet": [
                        {"CidrBlock": "10.0.0.0/16", "CidrBlockState": {"State": "associated"}}
                    ],
                }
            ]
        },
        "ec2:DescribeVpcAttribute": {"EnableDnsHostnames": {"Value": True}, "EnableDnsSupport": {"Value": True}},
        "ec2:DescribeSubnets": {"Subnets": [{"SubnetId": "subnet-0a1b", "MapPublicIpOnLaunch": False}]},
        "ec2:DescribeFlowLogs": {
            "FlowLogs": [
                {
                    "FlowLogId": "fl-0a1b",
                    "ResourceId": "vpc-0a1b",
                    "TrafficType": "ALL",
                    "LogDestinationType": "cloud-watch-logs",
                    "LogGroupName": "/dev/nodes",
                }
            ]
        },
        "ec2:DescribeNatGateways": {
            "NatGateways": [{"NatGatewayId": "nat-0a1b", "SubnetId": "subnet-0a1b", "State": "available"}]
        },
        "logs:DescribeLogGroups": {
            "logGroups": [
                _log_group("/dev/nodes", retentionInDays=90),
                _log_group("/dev/nodes-2"),
                _log_group("/aws/eks/dev-eks/cluster", retentionInDays=90),
            ]
        },
        "logs:ListTagsForResource": {"tags": {"team": "ml"}},
        "logs:DescribeResourcePolicies": {
            "resourcePolicies": [{"policyDocument": json.dumps({"Statement": [_EVENTS_WRITE]})}]
        },
        "logs:DescribeMetricFilters": {
            "metricFilters": [
                {
                    "filterName": "dev-filter",
                    "filterPattern": "failed",
                    "metricTransformations": [
                        {"metricName": "failing", "metricNamespace": "dev", "metricValue": "1", "defaultValue": 0.0}
                    ],
                }
            ]
        },
        "cloudwatch:DescribeAlarms": {
            "MetricAlarms": [
                {
                    "AlarmName": "dev-nodes-fail",
                    "ActionsEnabled": True,
                    "AlarmArn": f"arn:aws:cloudwatch:{REGION}:{ACCOUNT}:alarm:dev-nodes-fail",
                    "Threshold": 1.0,
                    "AlarmActions": [],
                    "Metrics": [
                        {
                            "Id": "failing",
                            "MetricStat": {
                                "Metric": {"MetricName": "failing", "Dimensions": []},
                                "Period": 300,
                                "Stat": "Maximum",
                            },
                            "ReturnData": False,
                        },
                        {"Id": "used", "Expression": "failing / all", "Label": "used", "ReturnData": True},
                    ],
                }
            ]
        },
        "cloudwatch:ListTagsForResource": {"Tags": []},
        "events:ListTagsForResource": {"Tags": []},
        "events:DescribeRule": {
            "Name": "dev-node-health",
            "Arn": f"arn:aws:events:{REGION}:{ACCOUNT}:rule/dev-node-health",
            "State": "ENABLED",
            "EventPattern": '{"source":["aws.sagemaker"]}',
        },
        "events:ListTargetsByRule": {
            "Targets": [{"Id": "Target0", "Arn": f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:/dev/nodes:*"}]
        },
        "ec2:DescribeSecurityGroups": {
            "SecurityGroups": [
                {"GroupId": "sg-0a1b", "IpPermissions": [itself], "IpPermissionsEgress": [everywhere], "Tags": []}
            ]
        },
        "ec2:DescribeRouteTables": {
            "RouteTables": [
                {
                    "RouteTableId": "rtb-0a1b",
                    "Associations": [{"SubnetId": "subnet-0a1b"}],
                    "Routes": [
                        {"DestinationCidrBlock": "10.0.0.0/16", "GatewayId": "local", "Origin": "CreateRouteTable"},
                        {"DestinationPrefixListId": "pl-0a", "GatewayId": "vpce-s3", "Origin": "CreateRoute"},
                        {"DestinationCidrBlock": "0.0.0.0/0", "NatGatewayId": "nat-0a1b", "Origin": "CreateRoute"},
                    ],
                }
            ]
        },
        "ec2:DescribeVpcEndpoints": {
            "VpcEndpoints": [
                {
                    "VpcEndpointId": "vpce-0a1b",
                    "ServiceName": "com.amazonaws.us-east-1.ecr.api",
                    "VpcEndpointType": "Interface",
                    "VpcId": "vpc-0a1b",
                    "PrivateDnsEnabled": True,
                    "SubnetIds": ["subnet-0a1b"],
                    "Groups": [{"GroupId": "sg-0a1b", "GroupName": "efa"}],
                    "PolicyDocument": json.dumps(
                        {"Statement": [{"Effect": "Allow", "Principal": "*", "Action": "*", "Resource": "*"}]}
                    ),
                }
            ]
        },
        "fsx:DescribeFileSystems": {
            "FileSystems": [
                {
                    "FileSystemId": "fs-0123456789abcdef0",
                    "FileSystemType": "LUSTRE",
                    "FileSystemTypeVersion": "2.15",
                    "StorageCapacity": 4800,
                    "StorageType": "SSD",
                    "NetworkInterfaceIds": ["eni-0a1b", "eni-0a1c"],
                    "LustreConfiguration": {
                        "DeploymentType": "PERSISTENT_2",
                        "PerUnitStorageThroughput": 250,
                        "DataCompressionType": "LZ4",
                        "WeeklyMaintenanceStartTime": "1:05:00",
                        "MountName": "fsx",
                    },
                }
            ]
        },
        "ec2:DescribeNetworkInterfaces": {
            "NetworkInterfaces": [
                {"NetworkInterfaceId": name, "Groups": [{"GroupId": "sg-0a1b", "GroupName": "efa"}]}
                for name in ("eni-0a1b", "eni-0a1c")
            ]
        },
        "s3:GetBucketVersioning": {"Status": "Enabled"},
        "s3:GetBucketLogging": {"LoggingEnabled": {"TargetBucket": "dev-access-logs", "TargetPrefix": ""}},
        "s3:GetBucketEncryption": {
            "ServerSideEncryptionConfiguration": {
                "Rules": [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}, "BucketKeyEnabled": False}]
            }
        },
        "s3:GetPublicAccessBlock": {
            "PublicAccessBlockConfiguration": {
                "BlockPublicAcls": True,
                "BlockPublicPolicy": True,
                "IgnorePublicAcls": True,
            }
        },
        "s3:GetBucketLifecycleConfiguration": Fails("NoSuchLifecycleConfiguration", "There is none", 404),
        "s3:GetBucketTagging": Fails("NoSuchTagSet", "The TagSet does not exist", 404),
        "s3:GetBucketPolicy": {"Policy": json.dumps({"Version": "2012-10-17", "Statement": [statement]})},
        "kms:DescribeKey": {"KeyMetadata": {"KeyId": "0a1b-2c3d", "KeyState": "Enabled", "Description": "of dev"}},
        "kms:ListResourceTags": {"Tags": []},
        "kms:GetKeyPolicy": {"Policy": json.dumps({"Statement": root})},
        "kms:GetKeyRotationStatus": {"KeyRotationEnabled": True},
        "eks:DescribeCluster": {
            "cluster": {
                "name": "dev-eks",
                "version": "1.34",
                "roleArn": ROLE_ARN,
                "accessConfig": {"authenticationMode": "API"},
                "upgradePolicy": {"supportType": "EXTENDED"},
                "kubernetesNetworkConfig": {
                    "ipFamily": "ipv4",
                    "serviceIpv4Cidr": "172.20.0.0/16",
                    "elasticLoadBalancing": {"enabled": False},
                },
                "controlPlaneScalingConfig": {"tier": "standard"},
                "zonalShiftConfig": {"enabled": True},
                "deletionProtection": True,
                "resourcesVpcConfig": {
                    "endpointPublicAccess": True,
                    "endpointPrivateAccess": True,
                    "publicAccessCidrs": ["192.0.2.0/24"],
                },
                "logging": {
                    "clusterLogging": [
                        {"types": ["audit", "api"], "enabled": True},
                        {"types": ["scheduler"], "enabled": False},
                    ]
                },
            }
        },
        "eks:ListAddons": {"addons": ["vpc-cni", "aws-guardduty-agent"]},
        "eks:DescribeAddon": {
            "addon": {
                "addonName": "vpc-cni",
                "clusterName": "dev-eks",
                "addonVersion": "v1.20.0-eksbuild.1",
                "configurationValues": "env:\n  ENABLE_PREFIX_DELEGATION: 'true'\n",
            }
        },
        "eks:ListAccessEntries": {
            "accessEntries": [
                ADMIN_ARN,
                ROLE_ARN,
                f"arn:aws:iam::{ACCOUNT}:role/aws-service-role/eks.amazonaws.com/AWSServiceRoleForAmazonEKS",
            ]
        },
        "eks:DescribeAccessEntry": _entry,
        "eks:ListAssociatedAccessPolicies": {
            "associatedAccessPolicies": [
                {"policyArn": POLICY_ARN, "accessScope": {"type": "cluster", "namespaces": []}}
            ]
        },
        "lambda:GetFunction": {
            "Configuration": {
                "CodeSha256": base64.b64encode(hashlib.sha256(CODE).digest()).decode(),
                "Environment": {"Variables": {"SETTINGS": "of dev"}},
                "Handler": "index.handler",
                "Layers": [{"Arn": f"arn:aws:lambda:{REGION}:{ACCOUNT}:layer:dev:1"}],
                "LoggingConfig": {
                    "LogFormat": "JSON",
                    "LogGroup": "/dev/nodes",
                    "ApplicationLogLevel": "INFO",
                    "SystemLogLevel": "INFO",
                },
                "MemorySize": 256,
                "Role": ROLE_ARN,
                "Runtime": "python3.14",
                "Timeout": 3,
                "TracingConfig": {"Mode": "PassThrough"},
                "VpcConfig": {"SubnetIds": [], "SecurityGroupIds": [], "VpcId": ""},
            },
        },
        "s3:GetObject": lambda _: {"ContentLength": len(CODE), "Body": io.BytesIO(CODE)},
        "lambda:GetPolicy": {
            "Policy": json.dumps(
                {
                    "Statement": [
                        {
                            "Sid": "dev-told-by-rule",
                            "Effect": "Allow",
                            "Principal": {"Service": "events.amazonaws.com"},
                            "Action": "lambda:InvokeFunction",
                            "Resource": f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:dev-told",
                            "Condition": {
                                "ArnLike": {"AWS:SourceArn": f"arn:aws:events:{REGION}:{ACCOUNT}:rule/dev-node-health"}
                            },
                        }
                    ]
                }
            )
        },
        "lambda:GetLayerVersion": {"Version": 1},
        "cloudwatch:GetDashboard": {
            "DashboardArn": f"arn:aws:cloudwatch::{ACCOUNT}:dashboard/dev-hyperpod",
            "DashboardBody": json.dumps({"widgets": [{"region": REGION}]}),
        },
        "sns:GetTopicAttributes": {
            "Attributes": {"DisplayName": "on call", "Policy": json.dumps({"Statement": [_PUBLISHES]})}
        },
        "sns:ListSubscriptionsByTopic": {
            "Subscriptions": [
                # nobody has confirmed it yet
                {"SubscriptionArn": "PendingConfirmation", "Protocol": "email", "Endpoint": "ml@example.com"},
                {"SubscriptionArn": "Deleted", "Protocol": "email", "Endpoint": "gone@example.com"},
            ]
        },
        "sns:ListTagsForResource": {"Tags": []},
        "chatbot:DescribeSlackChannelConfigurations": {
            "SlackChannelConfigurations": [
                {
                    "ChatConfigurationArn": CHANNEL_ARN,
                    "SlackChannelId": "C0A",
                    "SnsTopicArns": [TOPIC_ARN],
                    "LoggingLevel": "ERROR",
                }
            ]
        },
        "budgets:DescribeBudget": {
            "Budget": {
                "BudgetType": "COST",
                "TimeUnit": "MONTHLY",
                "BudgetLimit": {"Amount": "1000.0", "Unit": "USD"},
                "BudgetName": "dev-budget",
            }
        },
        "budgets:DescribeNotificationsForBudget": {
            "Notifications": [
                {
                    "NotificationType": "ACTUAL",
                    "ComparisonOperator": "GREATER_THAN",
                    "Threshold": 80.0,
                    "ThresholdType": "PERCENTAGE",
                }
            ]
        },
        "budgets:DescribeSubscribersForNotification": {
            "Subscribers": [{"SubscriptionType": "SNS", "Address": TOPIC_ARN}]
        },
        "grafana:DescribeWorkspaceConfiguration": {
            "configuration": '{"plugins": {"pluginAdminEnabled": true}, "unifiedAlerting": {"enabled": false}}'
        },
        "grafana:DescribeWorkspace": {
            "workspace": {
                "id": "g-0a1b",
                "status": "ACTIVE",
                "authentication": {"providers": ["AWS_SSO"]},
                "dataSources": ["CLOUDWATCH", "PROMETHEUS"],
                "permissionType": "CUSTOMER_MANAGED",
                "grafanaVersion": "10.4",
            }
        },
        "aps:DescribeWorkspace": {"workspace": {"alias": "dev", "status": {"statusCode": "ACTIVE"}}},
        "fsx:DescribeDataRepositoryAssociations": {
            "Associations": [
                {
                    "AssociationId": "dra-0123456789abcdef0",
                    "FileSystemId": "fs-0123456789abcdef0",
                    "FileSystemPath": "/data",
                    "Lifecycle": "AVAILABLE",
                    "S3": {"AutoImportPolicy": {"Events": ["CHANGED", "NEW"]}},
                }
            ]
        },
        "iam:GetOpenIDConnectProvider": {"ClientIDList": ["sts.amazonaws.com"], "Url": "oidc.eks"},
        "ec2:DescribeAddresses": {"Addresses": [{"PublicIp": "192.0.2.1", "Domain": "vpc"}]},
        "ec2:DescribeInternetGateways": {
            "InternetGateways": [
                {"InternetGatewayId": "igw-0a1b", "Attachments": [{"VpcId": "vpc-0a1b", "State": "available"}]}
            ]
        },
        "sagemaker:ListComputeQuotas": {"ComputeQuotaSummaries": [_quota_row("dev-research")]},
        "sagemaker:DescribeComputeQuota": {
            "ComputeQuotaArn": QUOTA_ARN,
            "Name": "dev-research",
            "ActivationState": "Enabled",
            "ComputeQuotaTarget": {"TeamName": "research", "FairShareWeight": 100},
            "ComputeQuotaConfig": {
                "ComputeQuotaResources": [{"InstanceType": "ml.p5.48xlarge", "Count": 2}],
                "ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 50},
                "PreemptTeamTasks": "LowerPriority",
            },
        },
        "sagemaker:DescribeClusterSchedulerConfig": {
            "ClusterSchedulerConfigArn": CONFIG_ARN,
            "Name": "dev-policy",
            "SchedulerConfig": {"FairShare": "Enabled", "PriorityClasses": [{"Name": "training", "Weight": 80}]},
        },
    }


def _log_group(name: str, **more: Any) -> dict[str, Any]:
    return {"logGroupName": name, "logGroupArn": f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:{name}", **more}


def _entry(params: Mapping[str, Any]) -> dict[str, Any]:
    kind = "HYPERPOD_LINUX" if params["principalArn"] == ROLE_ARN else "STANDARD"
    groups: list[str] = []
    return {"accessEntry": {**params, "type": kind, "username": params["principalArn"], "kubernetesGroups": groups}}


def _quota_row(name: str) -> dict[str, Any]:
    return {"ComputeQuotaArn": QUOTA_ARN, "Name": name}


@dataclass
class Account:
    """What CloudFormation and the services answer. A plant edits ``answers``, a change of the file ``head``.

    ``stack`` is what DescribeStacks says of each stack beside its name, ``app`` what the app says of it.
    """

    deployed: dict[str, dict[str, Any]] = field(default_factory=lambda: copy.deepcopy(dict(TEMPLATES)))
    head: dict[str, dict[str, Any]] = field(default_factory=lambda: copy.deepcopy(dict(TEMPLATES)))
    cluster: dict[str, Any] = field(default_factory=described_cluster)
    tags: list[dict[str, str]] = field(default_factory=lambda: [{"Key": "cost-center", "Value": "42"}])
    statuses: dict[str, str] = field(default_factory=dict)
    stack: dict[str, Any] = field(default_factory=dict)
    app: dict[str, Any] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Set responses of all services for which a test has none."""
        self.more = {**_answers(), **self.more}

    def group(self, name: str) -> dict[str, Any]:
        """Return a group as DescribeCluster has it."""
        found: dict[str, Any] = next(
            each for each in self.cluster["InstanceGroups"] if each["InstanceGroupName"] == name
        )
        return found

    def in_file(self, name: str = "Cluster") -> dict[str, Any]:
        """Return the properties of a resource as the file says them now."""
        found: dict[str, Any] = self.head["dev-foundation"]["Resources"][name]["Properties"]
        return found

    def group_in_file(self, name: str) -> dict[str, Any]:
        """Return a group as the file says it now."""
        groups = self.in_file()["InstanceGroups"]
        found: dict[str, Any] = next(each for each in groups if each["InstanceGroupName"] == name)
        return found

    def assembly(self) -> Assembly:
        """Return what the file says now."""
        stacks = (
            Stack(
                name=name,
                template=each,
                account=ACCOUNT,
                region=REGION,
                shown=name.replace("-", "/", 1),
                **{"termination_protection": True, **self.app},
            )
            for name, each in self.head.items()
        )
        return Assembly(environment="dev", stacks=tuple(stacks))

    def aws(self) -> LiveAws:
        """Open the account."""
        arn = f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/{{}}/0"
        stacks = [
            {
                "StackName": name,
                "StackId": arn.format(name),
                "StackStatus": self.statuses.get(name, "CREATE_COMPLETE"),
                "EnableTerminationProtection": True,
                **self.stack,
            }
            for name in self.deployed
        ]

        def resources(params: Mapping[str, Any]) -> dict[str, Any]:
            rows = self.deployed[params["StackName"]]["Resources"]
            return {
                "StackResourceSummaries": [
                    {"LogicalResourceId": name, "PhysicalResourceId": IDS.get(name, name), "ResourceType": each["Type"]}
                    for name, each in rows.items()
                ]
            }

        scripted = ScriptedSession(
            {
                "sts:GetCallerIdentity": WHO,
                "cloudformation:DescribeStacks": {"Stacks": stacks},
                "cloudformation:GetTemplate": lambda params: {"TemplateBody": self.deployed[params["StackName"]]},
                "cloudformation:ListStackResources": resources,
                "cloudformation:GetStackPolicy": {},
                "sagemaker:DescribeCluster": self.cluster,
                "sagemaker:ListTags": lambda params: {
                    "Tags": self.tags if params["ResourceArn"] == CLUSTER_ARN else []
                },
                "sagemaker:ListClusterOperations": {"ClusterOperationSummaries": []},
                **self.more,
            },
            asked=self.asked,
        )
        own = Own(stacks=(), hyperpod_cluster="", eks_cluster="")
        return LiveAws.open(region=REGION, account=ACCOUNT, own=own, session=scripted.session())

    def drift(self) -> Drift:
        """Look."""
        aws = self.aws()
        return drift(aws, read_living(aws, self.assembly()))


Plant = Callable[[Account], object]


def only(found: Drift) -> Difference:
    """Return the one difference."""
    (difference,) = found.differences
    return difference
