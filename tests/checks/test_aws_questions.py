"""Every method of Aws: its calls, and how it reads their responses."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, cast
from urllib.parse import quote

import pytest

from hyperpod_cdk.checks.answers import (
    QUESTIONS,
    AddonVersions,
    Aws,
    BackupAnswer,
    BucketAnswer,
    BucketSettings,
    Decision,
    EksClusterAnswer,
    Endpoint,
    HyperPodClusterAnswer,
    ImageAnswer,
    InstalledAddon,
    InstancesInCluster,
    KmsKeyAnswer,
    KubernetesVersionAnswer,
    LustreAnswer,
    NotAnswered,
    Offering,
    Partial,
    QuotaRequest,
    QuotaValue,
    ReservedCapacity,
    RoleAnswer,
    Route,
    RouteTable,
    SecurityGroupAnswer,
    SecurityGroupRule,
    SlackChannelAnswer,
    StackAnswer,
    SubnetAnswer,
    TopicAnswer,
    TrainingPlan,
    VpcAnswer,
    Zone,
)
from hyperpod_cdk.checks.aws import LiveAws
from hyperpod_cdk.checks.aws_shapes import endpoint_service
from hyperpod_cdk.handlers.quota_gate.comparison import Usage
from hyperpod_cdk.handlers.quota_gate.reading import Own
from tests.support.scripted_aws import (
    ACCOUNT,
    ARN,
    REGION,
    WHO,
    Fails,
    Script,
    Scripted,
    ScriptedSession,
    holds_to_shape,
)
from tests.support.tables import row_by_row

Open = Callable[[Script], LiveAws]

BERLIN = timezone(timedelta(hours=1))
NOON = datetime(2026, 12, 1, 13, tzinfo=BERLIN)
NOON_UTC = datetime(2026, 12, 1, 12, tzinfo=UTC)
PLAN = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-plan/h100"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/aws-reserved/sso.amazonaws.com/eu-west-1/AWSReservedSSO_Admin_0123"
TRUST = {
    "Statement": [
        {"Effect": "Allow", "Principal": {"Service": ["sagemaker.amazonaws.com", "eks.amazonaws.com"]}},
        {"Effect": "Allow", "Principal": {"Service": "sagemaker.amazonaws.com"}},
        {"Effect": "Allow", "Principal": {"AWS": "arn:aws:iam::1:root"}},
        {"Effect": "Allow", "Principal": "*"},
        {"Effect": "Deny", "Principal": {"Service": "ec2.amazonaws.com"}},
    ]
}
EKS = {
    "cluster": {
        "name": "prod",
        "arn": "arn:aws:eks:us-east-1:111122223333:cluster/prod",
        "status": "ACTIVE",
        "version": "1.35",
        "endpoint": "https://0123.gr7.us-east-1.eks.amazonaws.com",
        "resourcesVpcConfig": {
            "subnetIds": ["subnet-1", "subnet-2"],
            "securityGroupIds": ["sg-1"],
            "clusterSecurityGroupId": "sg-2",
            "vpcId": "vpc-1",
            "endpointPublicAccess": True,
            "endpointPrivateAccess": False,
            "publicAccessCidrs": ["0.0.0.0/0"],
        },
        "accessConfig": {"authenticationMode": "API"},
        "certificateAuthority": {"data": "LS0t"},
        "identity": {"oidc": {"issuer": "https://oidc"}},
        "kubernetesNetworkConfig": {"ipFamily": "ipv6"},
        "tags": {"team": "ml"},
    }
}

CASES: dict[str, tuple[tuple[Any, ...], Script, Any]] = {
    "quota": (
        ("vpc", "VPCs per Region", "L-F678F1CE"),
        {
            "servicequotas:GetServiceQuota": {
                "Quota": {"QuotaName": "VPCs per Region", "QuotaCode": "L-F678F1CE", "Value": 7.0, "Adjustable": True}
            }
        },
        QuotaValue(name="VPCs per Region", code="L-F678F1CE", value=7.0),
    ),
    "usage": (
        ("vpcs",),
        {
            "ec2:DescribeVpcs": {
                "Vpcs": [
                    {"VpcId": "vpc-1", "CidrBlock": "10.0.0.0/16", "Tags": [{"Key": "Name", "Value": "x"}]},
                    {
                        "VpcId": "vpc-2",
                        "CidrBlock": "10.1.0.0/16",
                        "Tags": [{"Key": "aws:cloudformation:stack-name", "Value": "prod-network"}],
                    },
                ]
            }
        },
        Usage(at_least=1),
    ),
    "quota_requests": (
        ("ec2", "L-1"),
        {
            "servicequotas:ListRequestedServiceQuotaChangeHistoryByQuota": {
                "RequestedQuotas": [
                    {"Id": "old", "ServiceCode": "ec2", "QuotaCode": "L-1", "DesiredValue": 8.0, "Status": "DENIED"},
                    {
                        "Id": "new",
                        "ServiceCode": "ec2",
                        "QuotaCode": "L-1",
                        "QuotaName": "EIPs",
                        "DesiredValue": 9.0,
                        "Status": "CASE_OPENED",
                        "Created": NOON,
                        "CaseId": "77",
                    },
                ]
            }
        },
        (
            QuotaRequest(
                request_id="new",
                service="ec2",
                code="L-1",
                name="EIPs",
                desired=9.0,
                status="CASE_OPENED",
                created=NOON_UTC,
                case_id="77",
            ),
            QuotaRequest(request_id="old", service="ec2", code="L-1", name="", desired=8.0, status="DENIED"),
        ),
    ),
    "training_plan": (
        (PLAN,),
        {
            "sagemaker:DescribeTrainingPlan": {
                "TrainingPlanArn": PLAN,
                "TrainingPlanName": "h100",
                "Status": "Scheduled",
                "TotalInstanceCount": 4,
                "AvailableInstanceCount": 3,
                "InUseInstanceCount": 1,
                "TargetResources": ["hyperpod-cluster"],
                "StartTime": NOON,
                "UpfrontFee": "100.50",
                "CurrencyCode": "USD",
                "ReservedCapacitySummaries": [
                    {
                        "ReservedCapacityArn": "arn:aws:sagemaker:us-east-1:111122223333:reserved-capacity/1",
                        "InstanceType": "ml.p5.48xlarge",
                        "TotalInstanceCount": 4,
                        "Status": "Scheduled",
                        "AvailabilityZone": "us-east-1a",
                        "AvailabilityZoneId": "use1-az5",
                        "StartTime": NOON,
                    }
                ],
            }
        },
        TrainingPlan(
            arn=PLAN,
            name="h100",
            status="Scheduled",
            status_message="",
            total=4,
            available=3,
            in_use=1,
            unhealthy=None,
            target_resources=("hyperpod-cluster",),
            blocks=(
                ReservedCapacity(
                    instance_type="ml.p5.48xlarge",
                    count=4,
                    status="Scheduled",
                    availability_zone="us-east-1a",
                    availability_zone_id="use1-az5",
                    start=NOON_UTC,
                    end=None,
                ),
            ),
            start=NOON_UTC,
            end=None,
            upfront_fee="100.50",
            currency="USD",
        ),
    ),
    "hyperpod_clusters": (
        (),
        {
            "sagemaker:ListClusters": {
                "ClusterSummaries": [
                    {
                        "ClusterArn": f"arn:aws:sagemaker:us-east-1:111122223333:cluster/{name}",
                        "ClusterName": name,
                        "CreationTime": NOON,
                        "ClusterStatus": "InService",
                    }
                    for name in ("prod", "gone")
                ]
            },
            "sagemaker:DescribeCluster": lambda params: (
                Fails("ResourceNotFound", "Cluster not found")
                if params["ClusterName"] == "gone"
                else {
                    "ClusterArn": "arn:aws:sagemaker:us-east-1:111122223333:cluster/abc",
                    "ClusterStatus": "InService",
                    "Orchestrator": {"Eks": {"ClusterArn": "arn:eks"}},
                    "InstanceGroups": [
                        {
                            "InstanceGroupName": "h100",
                            "InstanceType": "ml.p5.48xlarge",
                            "CurrentCount": 1,
                            "TargetCount": 2,
                            "TrainingPlanArn": PLAN,
                        },
                        {
                            "InstanceGroupName": "mixed",
                            "InstanceRequirements": {"DesiredInstanceTypes": ["ml.g5.xlarge", "ml.g6.xlarge"]},
                            "CurrentCount": 3,
                            "TargetCount": 3,
                            "CapacityRequirements": {"Spot": {}},
                        },
                    ],
                    "RestrictedInstanceGroups": [
                        {
                            "InstanceGroupName": "nova",
                            "InstanceType": "ml.p5.48xlarge",
                            "CurrentCount": 5,
                            "TargetCount": 0,
                        }
                    ],
                }
            ),
        },
        Partial(
            read=(
                HyperPodClusterAnswer(
                    name="prod",
                    arn="arn:aws:sagemaker:us-east-1:111122223333:cluster/abc",
                    status="InService",
                    eks_cluster_arn="arn:eks",
                    groups=(
                        InstancesInCluster(
                            group="h100",
                            types=("ml.p5.48xlarge",),
                            current=1,
                            target=2,
                            spot=False,
                            training_plan_arn=PLAN,
                        ),
                        InstancesInCluster(
                            group="mixed",
                            types=("ml.g5.xlarge", "ml.g6.xlarge"),
                            current=3,
                            target=3,
                            spot=True,
                            training_plan_arn="",
                        ),
                        InstancesInCluster(
                            group="nova",
                            types=("ml.p5.48xlarge",),
                            current=5,
                            target=0,
                            spot=False,
                            training_plan_arn="",
                        ),
                    ),
                ),
            ),
        ),
    ),
    "zones": (
        (),
        {
            "ec2:DescribeAvailabilityZones": {
                "AvailabilityZones": [
                    {
                        "ZoneId": "use1-az5",
                        "ZoneName": "us-east-1a",
                        "State": "available",
                        "ZoneType": "availability-zone",
                        "OptInStatus": "opt-in-not-required",
                    },
                    {
                        "ZoneId": "use1-atl1-az1",
                        "ZoneName": "us-east-1-atl-1a",
                        "State": "available",
                        "ZoneType": "local-zone",
                        "OptInStatus": "not-opted-in",
                    },
                ]
            }
        },
        (
            Zone(zone_id="use1-az5", name="us-east-1a", state="available", kind="availability-zone", opted_in=True),
            Zone(
                zone_id="use1-atl1-az1", name="us-east-1-atl-1a", state="available", kind="local-zone", opted_in=False
            ),
        ),
    ),
    "images": (
        (["ami-0123456789abcdef0", "ami-00000000000000000"],),
        {
            "ec2:DescribeImages": {
                "Images": [
                    {
                        "ImageId": "ami-0123456789abcdef0",
                        "OwnerId": ACCOUNT,
                        "State": "available",
                        "Architecture": "arm64",
                        "Public": False,
                        "BlockDeviceMappings": [
                            {"DeviceName": "/dev/xvda", "Ebs": {"Encrypted": True, "VolumeSize": 100}},
                            {"DeviceName": "/dev/xvdb", "VirtualName": "ephemeral0"},
                        ],
                    }
                ]
            }
        },
        {
            "ami-0123456789abcdef0": ImageAnswer(
                image_id="ami-0123456789abcdef0",
                owner=ACCOUNT,
                state="available",
                architecture="arm64",
                volumes=1,
                encrypted=True,
                public=False,
            )
        },
    ),
    "alarms": (
        (["node-deficit", "anything-wrong", "none"],),
        {
            "cloudwatch:DescribeAlarms": {
                "MetricAlarms": [{"AlarmName": "node-deficit", "StateValue": "OK"}],
                "CompositeAlarms": [{"AlarmName": "anything-wrong", "StateValue": "ALARM"}],
            }
        },
        {"node-deficit": "OK", "anything-wrong": "ALARM"},
    ),
    "instance_type_zones": (
        (["p5.48xlarge", "p9.large"],),
        {
            "ec2:DescribeInstanceTypeOfferings": {
                "InstanceTypeOfferings": [
                    {"InstanceType": "p5.48xlarge", "Location": "use1-az5"},
                    {"InstanceType": "p5.48xlarge", "Location": "use1-az4"},
                ]
            }
        },
        {"p5.48xlarge": frozenset({"use1-az5", "use1-az4"}), "p9.large": frozenset()},
    ),
    "endpoint_services": (
        (["ecr.api", "sts", "none"],),
        {
            "ec2:DescribeVpcEndpointServices": {
                "ServiceDetails": [
                    {"ServiceName": "com.amazonaws.us-east-1.ecr.api", "AvailabilityZoneIds": ["use1-az5", "use1-az4"]},
                    {"ServiceName": "com.amazonaws.us-east-1.sts", "AvailabilityZoneIds": ["use1-az5"]},
                    {"ServiceName": "com.amazonaws.us-east-1.sns", "AvailabilityZoneIds": ["use1-az5"]},
                ]
            },
        },
        {"ecr.api": frozenset({"use1-az5", "use1-az4"}), "sts": frozenset({"use1-az5"}), "none": frozenset()},
    ),
    "vpc": (
        ("vpc-1",),
        {
            "ec2:DescribeVpcs": {
                "Vpcs": [
                    {
                        "VpcId": "vpc-1",
                        "CidrBlock": "10.0.0.0/16",
                        "CidrBlockAssociationSet": [
                            {"CidrBlock": block, "CidrBlockState": {"State": state}}
                            for block, state in (
                                ("100.64.0.0/16", "associated"),
                                ("10.0.0.0/16", "associated"),
                                ("10.9.0.0/16", "disassociated"),
                            )
                        ],
                        "OwnerId": "444455556666",
                        "Tags": [{"Key": "Name", "Value": "shared"}],
                    }
                ]
            },
            "ec2:DescribeVpcAttribute": lambda params: {
                params["Attribute"][0].upper() + params["Attribute"][1:]: {
                    "Value": params["Attribute"] == "enableDnsSupport"
                }
            },
        },
        VpcAnswer(
            vpc_id="vpc-1",
            cidrs=("10.0.0.0/16", "100.64.0.0/16"),
            tags={"Name": "shared"},
            dns_support=True,
            dns_hostnames=False,
            owner="444455556666",
        ),
    ),
    "subnets": (
        (["subnet-1", "subnet-2"],),
        {
            "ec2:DescribeSubnets": {
                "Subnets": [
                    {
                        "SubnetId": "subnet-1",
                        "VpcId": "vpc-1",
                        "AvailabilityZoneId": "use1-az5",
                        "CidrBlock": "10.0.0.0/24",
                        "AvailableIpAddressCount": 250,
                        "MapPublicIpOnLaunch": False,
                    }
                ]
            }
        },
        {
            "subnet-1": SubnetAnswer(
                subnet_id="subnet-1",
                vpc_id="vpc-1",
                availability_zone_id="use1-az5",
                cidr="10.0.0.0/24",
                free=250,
                assigns_public_addresses=False,
            )
        },
    ),
    "route_tables": (
        ("vpc-1",),
        {
            "ec2:DescribeRouteTables": {
                "RouteTables": [
                    {
                        "RouteTableId": "rtb-1",
                        "Associations": [{"Main": True}, {"Main": False, "SubnetId": "subnet-1"}],
                        "Routes": [
                            {"DestinationCidrBlock": "10.0.0.0/16", "GatewayId": "local", "State": "active"},
                            {"DestinationCidrBlock": "0.0.0.0/0", "NatGatewayId": "nat-1", "State": "blackhole"},
                            {"DestinationPrefixListId": "pl-1", "GatewayId": "vpce-1", "State": "active"},
                            {
                                "DestinationIpv6CidrBlock": "::/0",
                                "EgressOnlyInternetGatewayId": "eigw-1",
                                "State": "active",
                            },
                            {
                                "DestinationCidrBlock": "10.7.0.0/16",
                                "InstanceId": "i-1",
                                "NetworkInterfaceId": "eni-1",
                                "State": "active",
                            },
                        ],
                    }
                ]
            }
        },
        (
            RouteTable(
                route_table_id="rtb-1",
                is_main=True,
                subnet_ids=("subnet-1",),
                routes=(
                    Route(destination="10.0.0.0/16", target="local"),
                    Route(destination="0.0.0.0/0", target="nat-1", state="blackhole"),
                    Route(destination="pl-1", target="vpce-1"),
                    Route(destination="::/0", target="eigw-1"),
                    Route(destination="10.7.0.0/16", target="eni-1"),
                ),
            ),
        ),
    ),
    "endpoints": (
        ("vpc-1",),
        {
            "ec2:DescribeVpcEndpoints": {
                "VpcEndpoints": [
                    {
                        "VpcEndpointId": "vpce-1",
                        "ServiceName": "com.amazonaws.us-east-1.ecr.api",
                        "VpcEndpointType": "Interface",
                        "State": "Available",
                        "SubnetIds": ["subnet-1"],
                        "Groups": [{"GroupId": "sg-1", "GroupName": "endpoints"}],
                        "PrivateDnsEnabled": True,
                    },
                    {
                        "VpcEndpointId": "vpce-2",
                        "ServiceName": "com.amazonaws.us-east-1.s3",
                        "VpcEndpointType": "Gateway",
                        "State": "available",
                        "RouteTableIds": ["rtb-1"],
                    },
                ]
            }
        },
        (
            Endpoint(
                endpoint_id="vpce-1",
                service="ecr.api",
                kind="Interface",
                state="available",
                route_table_ids=(),
                subnet_ids=("subnet-1",),
                security_group_ids=("sg-1",),
                private_dns=True,
            ),
            Endpoint(
                endpoint_id="vpce-2",
                service="s3",
                kind="Gateway",
                state="available",
                route_table_ids=("rtb-1",),
                subnet_ids=(),
                security_group_ids=(),
                private_dns=False,
            ),
        ),
    ),
    "security_groups": (
        (["sg-1"],),
        {
            "ec2:DescribeSecurityGroups": {
                "SecurityGroups": [
                    {
                        "GroupId": "sg-1",
                        "VpcId": "vpc-1",
                        "IpPermissions": [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": "sg-1"}]}],
                        "IpPermissionsEgress": [
                            {
                                "IpProtocol": "tcp",
                                "FromPort": 443,
                                "ToPort": 443,
                                "IpRanges": [{"CidrIp": "0.0.0.0/0"}],
                                "Ipv6Ranges": [{"CidrIpv6": "::/0"}],
                                "PrefixListIds": [{"PrefixListId": "pl-1"}],
                            }
                        ],
                    }
                ]
            }
        },
        {
            "sg-1": SecurityGroupAnswer(
                group_id="sg-1",
                vpc_id="vpc-1",
                ingress=(
                    SecurityGroupRule(protocol="-1", from_port=None, to_port=None, group_ids=("sg-1",), cidrs=()),
                ),
                egress=(
                    SecurityGroupRule(
                        protocol="tcp",
                        from_port=443,
                        to_port=443,
                        group_ids=(),
                        cidrs=("0.0.0.0/0", "::/0"),
                        prefix_list_ids=("pl-1",),
                    ),
                ),
            )
        },
    ),
    "kubernetes_versions": (
        (),
        {
            "eks:DescribeClusterVersions": {
                "clusterVersions": [
                    {"clusterVersion": "1.35", "versionStatus": "STANDARD_SUPPORT", "endOfStandardSupportDate": NOON},
                    {"clusterVersion": "1.29", "status": "extended-support"},
                ]
            }
        },
        (
            KubernetesVersionAnswer(
                version="1.35",
                status="STANDARD_SUPPORT",
                end_of_standard_support=NOON_UTC,
                end_of_extended_support=None,
            ),
            KubernetesVersionAnswer(
                version="1.29", status="EXTENDED_SUPPORT", end_of_standard_support=None, end_of_extended_support=None
            ),
        ),
    ),
    "addon_versions": (
        ("vpc-cni", "1.35"),
        {
            "eks:DescribeAddonVersions": {
                "addons": [
                    {
                        "addonName": "vpc-cni",
                        "addonVersions": [
                            {
                                "addonVersion": version,
                                "compatibilities": [
                                    {"clusterVersion": "1.34", "defaultVersion": True},
                                    {"clusterVersion": "1.35", "defaultVersion": default},
                                ],
                            }
                            for version, default in (
                                ("v1.19.9-eksbuild.3", True),
                                ("v1.19.10-eksbuild.1", False),
                                ("v1.20.0-eksbuild.1", False),
                            )
                        ],
                    }
                ]
            }
        },
        AddonVersions(
            addon="vpc-cni",
            kubernetes_version="1.35",
            versions=("v1.20.0-eksbuild.1", "v1.19.10-eksbuild.1", "v1.19.9-eksbuild.3"),
            default="v1.19.9-eksbuild.3",
        ),
    ),
    "eks_cluster": (
        ("prod",),
        {"eks:DescribeCluster": EKS},
        EksClusterAnswer(
            name="prod",
            arn="arn:aws:eks:us-east-1:111122223333:cluster/prod",
            status="ACTIVE",
            kubernetes_version="1.35",
            authentication_mode="API",
            vpc_id="vpc-1",
            subnet_ids=("subnet-1", "subnet-2"),
            security_group_ids=("sg-1",),
            cluster_security_group_id="sg-2",
            endpoint="https://0123.gr7.us-east-1.eks.amazonaws.com",
            endpoint_public=True,
            endpoint_private=False,
            public_access_cidrs=("0.0.0.0/0",),
            certificate_authority="LS0t",
            oidc_issuer="https://oidc",
            ip_family="ipv6",
            tags={"team": "ml"},
        ),
    ),
    "installed_addons": (
        ("prod",),
        {
            "eks:ListAddons": {"addons": ["vpc-cni", "gone"]},
            "eks:DescribeAddon": lambda params: (
                Fails("ResourceNotFoundException", "No addon")
                if params["addonName"] == "gone"
                else {"addon": {"addonName": "vpc-cni", "addonVersion": "v1.20.0-eksbuild.1", "status": "ACTIVE"}}
            ),
        },
        Partial(read=(InstalledAddon(name="vpc-cni", version="v1.20.0-eksbuild.1", status="ACTIVE"),)),
    ),
    "role": (
        ("AWSReservedSSO_Admin_0123",),
        {
            "iam:GetRole": {
                "Role": {
                    "RoleName": "AWSReservedSSO_Admin_0123",
                    "Path": "/aws-reserved/sso.amazonaws.com/eu-west-1/",
                    "RoleId": "AROAEXAMPLEEXAMPLE",
                    "Arn": ROLE,
                    "CreateDate": NOON,
                    "AssumeRolePolicyDocument": quote(json.dumps(TRUST)),
                    "PermissionsBoundary": {"PermissionsBoundaryArn": "arn:aws:iam::1:policy/edge"},
                }
            }
        },
        RoleAnswer(
            name="AWSReservedSSO_Admin_0123",
            arn=ROLE,
            trusts=("sagemaker.amazonaws.com", "eks.amazonaws.com"),
            boundary_arn="arn:aws:iam::1:policy/edge",
        ),
    ),
    "prometheus_workspace": (
        ("arn:aws:aps:us-east-1:111122223333:workspace/ws-1",),
        {
            "aps:DescribeWorkspace": {
                "workspace": {
                    "arn": "arn:aws:aps:us-east-1:111122223333:workspace/ws-1",
                    "createdAt": 1.0,
                    "status": {"statusCode": "ACTIVE"},
                    "workspaceId": "ws-1",
                }
            }
        },
        "ACTIVE",
    ),
    "topic": (
        ("arn:aws:sns:us-east-1:111122223333:on-call",),
        {
            "sns:GetTopicAttributes": {
                "Attributes": {
                    "TopicArn": "arn:aws:sns:us-east-1:111122223333:on-call",
                    "Owner": "111122223333",
                    "KmsMasterKeyId": "alias/aws/sns",
                    "SubscriptionsConfirmed": "1",
                    "Policy": '{"Version": "2008-10-17", "Statement": []}',
                }
            }
        },
        TopicAnswer(
            arn="arn:aws:sns:us-east-1:111122223333:on-call",
            kms_key="alias/aws/sns",
            policy={"Version": "2008-10-17", "Statement": []},
        ),
    ),
    "slack_workspaces": (
        (),
        {
            "chatbot:DescribeSlackWorkspaces": {
                "SlackWorkspaces": [
                    {"SlackTeamId": "T0123ABCD", "SlackTeamName": "ours", "State": "ENABLED"},
                    {"SlackTeamId": "T0123ABCE", "SlackTeamName": "of old", "State": "DISABLED"},
                    {"SlackTeamId": "T0123ABCF", "SlackTeamName": "of before there were states"},
                ]
            }
        },
        frozenset({"T0123ABCD", "T0123ABCF"}),
    ),
    "slack_channels": (
        (),
        {
            "chatbot:DescribeSlackChannelConfigurations": {
                "SlackChannelConfigurations": [
                    {
                        "SlackTeamName": "ours",
                        "SlackTeamId": "T0123ABCD",
                        "SlackChannelId": "C0123ABCD",
                        "SlackChannelName": "on-call",
                        "ChatConfigurationArn": "arn:aws:chatbot::111122223333:chat-configuration/slack-channel/x",
                        "IamRoleArn": ROLE,
                        "SnsTopicArns": [],
                        "ConfigurationName": "x",
                    }
                ]
            }
        },
        (SlackChannelAnswer(workspace_id="T0123ABCD", channel_id="C0123ABCD", name="x"),),
    ),
    "event_bus_exists": (
        ("ml-platform",),
        {
            "events:DescribeEventBus": {
                "Name": "ml-platform",
                "Arn": "arn:aws:events:us-east-1:111122223333:event-bus/ml-platform",
            }
        },
        True,
    ),
    "grafana_workspace": (
        ("arn:aws:grafana:us-east-1:111122223333:/workspaces/g-0123456789",),
        {
            "grafana:DescribeWorkspace": {
                "workspace": {
                    "id": "g-0123456789",
                    "status": "UPDATING",
                    "created": 1.0,
                    "modified": 1.0,
                    "dataSources": [],
                    "endpoint": "g-0123456789.grafana-workspace.us-east-1.amazonaws.com",
                    "grafanaVersion": "10.4",
                    "authentication": {"providers": ["AWS_SSO"]},
                }
            }
        },
        "UPDATING",
    ),
    "policy_exists": (
        ("arn:aws:iam::111122223333:policy/edge",),
        {"iam:GetPolicy": {"Policy": {"PolicyName": "edge"}}},
        True,
    ),
    "simulate": (
        (ARN, ["eks:CreateCluster", "ec2:CreateVpc", "fsx:CreateFileSystem"]),
        {
            "iam:SimulatePrincipalPolicy": {
                "EvaluationResults": [
                    {
                        "EvalActionName": "ec2:CreateVpc",
                        "EvalDecision": "implicitDeny",
                        "OrganizationsDecisionDetail": {"AllowedByOrganizations": False},
                    },
                    {"EvalActionName": "eks:CreateCluster", "EvalDecision": "allowed"},
                    {
                        "EvalActionName": "fsx:CreateFileSystem",
                        "EvalDecision": "implicitDeny",
                        "MissingContextValues": ["aws:ViaAWSService"],
                        "ResourceSpecificResults": [
                            {
                                "EvalResourceName": "*",
                                "EvalResourceDecision": "implicitDeny",
                                "MissingContextValues": ["aws:PrincipalTag/team", "aws:ViaAWSService"],
                            }
                        ],
                        "OrganizationsDecisionDetail": {"AllowedByOrganizations": True},
                        "PermissionsBoundaryDecisionDetail": {"AllowedByPermissionsBoundary": False},
                    },
                ]
            }
        },
        {
            "eks:CreateCluster": Decision(action="eks:CreateCluster", decision="allowed"),
            "ec2:CreateVpc": Decision(action="ec2:CreateVpc", decision="implicitDeny", denied_by_organization=True),
            "fsx:CreateFileSystem": Decision(
                action="fsx:CreateFileSystem",
                decision="implicitDeny",
                denied_by_boundary=True,
                unknown_keys=("aws:PrincipalTag/team", "aws:ViaAWSService"),
            ),
        },
    ),
    "bootstrap_version": (
        ("hnb659fds",),
        {"ssm:GetParameter": {"Parameter": {"Name": "/cdk-bootstrap/hnb659fds/version", "Value": "30"}}},
        30,
    ),
    "lustre_file_systems": (
        (),
        {
            "fsx:DescribeFileSystems": {
                "FileSystems": [
                    {
                        "FileSystemId": "fs-0123456789abcdef0",
                        "FileSystemType": "LUSTRE",
                        "StorageCapacity": 4800,
                        "VpcId": "vpc-01234567",
                        "SubnetIds": ["subnet-01234567"],
                        "Lifecycle": "AVAILABLE",
                        "LustreConfiguration": {
                            "DeploymentType": "PERSISTENT_2",
                            "PerUnitStorageThroughput": 1000,
                            "EfaEnabled": True,
                            "MetadataConfiguration": {"Mode": "AUTOMATIC", "Iops": 6000},
                        },
                        "Tags": [{"Key": "Name", "Value": "scratch"}],
                    },
                    {"FileSystemId": "fs-0123456789abcdef1", "FileSystemType": "ONTAP"},
                ]
            }
        },
        Partial(
            read=(
                LustreAnswer(
                    file_system_id="fs-0123456789abcdef0",
                    deployment_type="PERSISTENT_2",
                    capacity_gib=4800,
                    vpc_id="vpc-01234567",
                    subnet_ids=("subnet-01234567",),
                    lifecycle="AVAILABLE",
                    efa=True,
                    provisioned_metadata_iops=6000,
                    throughput_mbps_per_tib=1000,
                    tags={"Name": "scratch"},
                ),
            ),
        ),
    ),
    "container_image_exists": (
        ("111122223333", "mirror/nvidia/k8s-device-plugin", "v0.16.1"),
        {"ecr:DescribeImages": {"imageDetails": [{"imageTags": ["v0.16.1"]}]}},
        True,
    ),
    "file_system_backup": (
        ("backup-01234567",),
        {
            "fsx:DescribeBackups": {
                "Backups": [
                    {
                        "BackupId": "backup-01234567",
                        "Lifecycle": "AVAILABLE",
                        "Type": "AUTOMATIC",
                        "CreationTime": NOON,
                        "FileSystem": {"FileSystemType": "LUSTRE", "StorageCapacity": 4800},
                    }
                ]
            }
        },
        BackupAnswer(backup_id="backup-01234567", lifecycle="AVAILABLE", kind="LUSTRE", capacity_gib=4800),
    ),
    "interface_groups": (
        (["eni-01234567"],),
        {
            "ec2:DescribeNetworkInterfaces": {
                "NetworkInterfaces": [
                    {"NetworkInterfaceId": "eni-01234567", "Groups": [{"GroupId": "sg-01234567", "GroupName": "fsx"}]}
                ]
            }
        },
        {"eni-01234567": ("sg-01234567",)},
    ),
    "bucket": (
        ("datasets",),
        {"s3:HeadBucket": {"BucketRegion": "eu-central-1", "ResponseMetadata": {"HTTPHeaders": {}}}},
        BucketAnswer(name="datasets", region="eu-central-1"),
    ),
    "bucket_settings": (
        ("sagemaker-scripts",),
        {
            "s3:ListBuckets": {"Buckets": [{"Name": "sagemaker-scripts", "CreationDate": NOON}]},
            "s3:GetBucketPolicyStatus": {"PolicyStatus": {"IsPublic": True}},
            "s3:GetBucketVersioning": {"Status": "Enabled"},
            "s3:GetBucketEncryption": {
                "ServerSideEncryptionConfiguration": {
                    "Rules": [
                        {
                            "ApplyServerSideEncryptionByDefault": {
                                "SSEAlgorithm": "aws:kms",
                                "KMSMasterKeyID": "arn:aws:kms:us-east-1:111122223333:key/k",
                            },
                            "BucketKeyEnabled": True,
                        }
                    ]
                }
            },
        },
        BucketSettings(owned=True, public=True, versioned=True, kms_key="arn:aws:kms:us-east-1:111122223333:key/k"),
    ),
    "kms_key": (
        ("arn:aws:kms:us-east-1:111122223333:key/k",),
        {
            "kms:DescribeKey": {
                "KeyMetadata": {
                    "KeyId": "k",
                    "Arn": "arn:aws:kms:us-east-1:111122223333:key/k",
                    "KeyState": "Enabled",
                    "KeySpec": "SYMMETRIC_DEFAULT",
                    "KeyUsage": "ENCRYPT_DECRYPT",
                }
            }
        },
        KmsKeyAnswer(
            arn="arn:aws:kms:us-east-1:111122223333:key/k",
            state="Enabled",
            spec="SYMMETRIC_DEFAULT",
            usage="ENCRYPT_DECRYPT",
        ),
    ),
    "kms_key_policy": (
        ("arn:aws:kms:us-east-1:111122223333:key/k",),
        {"kms:GetKeyPolicy": {"Policy": '{"Version": "2012-10-17", "Statement": []}', "PolicyName": "default"}},
        {"Version": "2012-10-17", "Statement": []},
    ),
    "stack": (
        ("prod-network",),
        {
            "cloudformation:DescribeStacks": {
                "Stacks": [
                    {
                        "StackName": "prod-network",
                        "CreationTime": NOON,
                        "StackStatus": "ROLLBACK_COMPLETE",
                        "StackStatusReason": "no more EIPs",
                        "EnableTerminationProtection": True,
                    }
                ]
            }
        },
        StackAnswer(name="prod-network", status="ROLLBACK_COMPLETE", status_reason="no more EIPs", is_protected=True),
    ),
}
"""For each question its arguments, AWS's answers and ours; those that need more stand in tests of their own."""

MISSING: dict[str, tuple[tuple[Any, ...], Script, Any]] = {
    "quota": (
        ("vpc", "No such", "L-0"),
        {
            "servicequotas:GetServiceQuota": Fails("NoSuchResourceException"),
            "servicequotas:GetAWSDefaultServiceQuota": Fails("NoSuchResourceException"),
            "servicequotas:ListServiceQuotas": {"Quotas": []},
            "servicequotas:ListAWSDefaultServiceQuotas": {"Quotas": []},
        },
        None,
    ),
    "quota_requests": (
        ("ec2", "L-0"),
        {"servicequotas:ListRequestedServiceQuotaChangeHistoryByQuota": Fails("NoSuchResourceException")},
        (),
    ),
    "training_plan": ((PLAN,), {"sagemaker:DescribeTrainingPlan": Fails("ResourceNotFound", "no plan")}, None),
    "vpc": (
        ("vpc-0",),
        {"ec2:DescribeVpcs": {"Vpcs": []}, "ec2:DescribeVpcAttribute": Fails("InvalidVpcID.NotFound")},
        None,
    ),
    "subnets": ((["subnet-0"],), {"ec2:DescribeSubnets": {"Subnets": []}}, {}),
    "security_groups": ((["sg-0"],), {"ec2:DescribeSecurityGroups": {"SecurityGroups": []}}, {}),
    "addon_versions": (("nope", "1.35"), {"eks:DescribeAddonVersions": {"addons": []}}, None),
    "eks_cluster": (("nope",), {"eks:DescribeCluster": Fails("ResourceNotFoundException", "No cluster", 404)}, None),
    "role": (("nope",), {"iam:GetRole": Fails("NoSuchEntity", "no role", 404)}, None),
    "prometheus_workspace": (
        ("arn:aws:aps:us-east-1:1:workspace/nope",),
        {"aps:DescribeWorkspace": Fails("ResourceNotFoundException", status=404)},
        None,
    ),
    "topic": (
        ("arn:aws:sns:us-east-1:1:nope",),
        {"sns:GetTopicAttributes": Fails("NotFound", "Topic does not exist", 404)},
        None,
    ),
    "slack_workspaces": ((), {"chatbot:DescribeSlackWorkspaces": {"SlackWorkspaces": []}}, frozenset()),
    "slack_channels": ((), {"chatbot:DescribeSlackChannelConfigurations": {"SlackChannelConfigurations": []}}, ()),
    "event_bus_exists": (("nope",), {"events:DescribeEventBus": Fails("ResourceNotFoundException")}, False),
    "grafana_workspace": (
        ("arn:aws:grafana:us-east-1:1:/workspaces/g-0",),
        {"grafana:DescribeWorkspace": Fails("ResourceNotFoundException", status=404)},
        None,
    ),
    "policy_exists": (("arn:aws:iam::1:policy/nope",), {"iam:GetPolicy": Fails("NoSuchEntity", status=404)}, False),
    "bootstrap_version": (("nope",), {"ssm:GetParameter": Fails("ParameterNotFound")}, None),
    "container_image_exists": (
        ("111122223333", "mirror/nvidia/k8s-device-plugin", "v0.16.2"),
        {"ecr:DescribeImages": Fails("ImageNotFoundException")},
        False,
    ),
    "file_system_backup": (("backup-76543210",), {"fsx:DescribeBackups": Fails("BackupNotFound")}, None),
    "interface_groups": (
        (["eni-0"],),
        {"ec2:DescribeNetworkInterfaces": {"NetworkInterfaces": []}},
        {},
    ),
    "bucket": (("nope",), {"s3:HeadBucket": Fails("404", "Not Found", 404)}, None),
    "bucket_settings": (
        ("scripts",),
        {
            "s3:ListBuckets": {"Buckets": []},
            "s3:GetBucketPolicyStatus": Fails("NoSuchBucketPolicy", "no policy", 404),
            "s3:GetBucketVersioning": {},
            "s3:GetBucketEncryption": Fails("ServerSideEncryptionConfigurationNotFoundError", "none", 404),
        },
        BucketSettings(owned=False, public=False, versioned=False, kms_key=""),
    ),
    "kms_key": (("arn:aws:kms:us-east-1:1:key/n",), {"kms:DescribeKey": Fails("NotFoundException")}, None),
    "stack": (
        ("nope",),
        {"cloudformation:DescribeStacks": Fails("ValidationError", "Stack with id nope does not exist")},
        None,
    ),
    "training_plan_offerings": (
        (),
        {"sagemaker:SearchTrainingPlanOfferings": {"TrainingPlanOfferings": []}},
        (),
    ),
}
OFFERED: dict[str, Any] = {
    "instance_type": "ml.p5.48xlarge",
    "count": 2,
    "duration_hours": 72,
    "start_after": None,
    "end_before": NOON_UTC,
}


@pytest.fixture
def aws_with() -> Open:
    """Opens AWS on a script; the environment's own stacks are those of prod."""

    def make(script: Script) -> LiveAws:
        session = ScriptedSession({"sts:GetCallerIdentity": WHO, **script}).session()
        return LiveAws.open(region=REGION, account=ACCOUNT, own=Own(stacks=("prod-network",)), session=session)

    return make


def names(aws: LiveAws) -> set[str]:
    return {call.name for call in aws.calls} - {"sts:GetCallerIdentity"}


@pytest.mark.parametrize("question", CASES)
def test_the_answer_is_read(question: str, aws_with: Open) -> None:
    arguments, script, expected = CASES[question]
    aws = aws_with(script)
    assert getattr(aws, question)(*arguments) == expected
    assert names(aws) == set(script)
    assert names(aws) <= set(QUESTIONS[question].calls)


@pytest.mark.parametrize("question", MISSING)
def test_what_is_not_there_is_an_answer(question: str, aws_with: Open) -> None:
    arguments, script, expected = MISSING[question]
    aws = aws_with(script)
    named = OFFERED if question == "training_plan_offerings" else {}
    assert getattr(aws, question)(*arguments, **named) == expected
    assert names(aws) <= set(QUESTIONS[question].calls)


@row_by_row("question", CASES)
def test_the_answers_of_these_tests_are_of_awss_shape(question: str) -> None:
    for name, answer in CASES[question][1].items():
        prefix, _, operation = name.partition(":")
        if isinstance(answer, Mapping):
            holds_to_shape({"servicequotas": "service-quotas", "aps": "amp"}.get(prefix, prefix), operation, answer)


def test_every_question_is_tested_and_has_its_calls_listed() -> None:
    questions = {name for name, member in inspect.getmembers(Aws, inspect.isfunction) if not name.startswith("_")}
    questions -= {"open"}
    elsewhere = {"caller", "training_plan_offerings", "kubernetes_api_groups", "kubernetes_daemon_sets"}
    assert set(QUESTIONS) == questions
    assert set(CASES) == questions - elsewhere


def test_live_aws_is_an_aws(aws_with: Open) -> None:
    aws: Aws = aws_with({})
    assert aws.caller().account == ACCOUNT


def test_offerings(aws_with: Open) -> None:
    block = {"InstanceType": "ml.p5.48xlarge", "InstanceCount": 2, "AvailabilityZone": "us-east-1a", "StartTime": NOON}
    answer = {
        "TrainingPlanOfferings": [
            {
                "TrainingPlanOfferingId": "tpo-1",
                "TargetResources": ["hyperpod-cluster"],
                "DurationHours": 72,
                "UpfrontFee": "4500.00",
                "CurrencyCode": "USD",
                "ReservedCapacityOfferings": [block],
            }
        ]
    }
    holds_to_shape("sagemaker", "SearchTrainingPlanOfferings", answer)
    asked: list[Mapping[str, Any]] = []

    def offer(params: Mapping[str, Any]) -> Mapping[str, Any]:
        asked.append(params)
        return answer

    aws = aws_with({"sagemaker:SearchTrainingPlanOfferings": offer})
    assert aws.training_plan_offerings(**OFFERED) == (
        Offering(
            offering_id="tpo-1",
            instance_type="ml.p5.48xlarge",
            count=2,
            duration_hours=72,
            upfront_fee="4500.00",
            currency="USD",
            target_resources=("hyperpod-cluster",),
            blocks=(
                ReservedCapacity(
                    instance_type="ml.p5.48xlarge",
                    count=2,
                    status="",
                    availability_zone="us-east-1a",
                    availability_zone_id="",
                    start=NOON_UTC,
                    end=None,
                ),
            ),
        ),
    )
    assert asked == [
        {
            "InstanceType": "ml.p5.48xlarge",
            "InstanceCount": 2,
            "DurationHours": 72,
            "TargetResources": ["hyperpod-cluster"],
            "EndTimeBefore": NOON_UTC,
        }
    ]


@pytest.mark.parametrize(
    ("arn", "reason"),
    [
        (
            PLAN.replace("us-east-1", "us-west-2"),
            "the plan is in us-west-2 of account 111122223333, the environment in us-east-1 of 111122223333",
        ),
        (
            PLAN.replace(ACCOUNT, "999988887777"),
            "the plan is in us-east-1 of account 999988887777, the environment in us-east-1 of 111122223333",
        ),
        ("h100", "the plan is in no region of account unknown, the environment in us-east-1 of 111122223333"),
    ],
)
def test_a_plan_of_elsewhere_is_not_asked_for(arn: str, reason: str, aws_with: Open) -> None:
    aws = aws_with({})
    with pytest.raises(NotAnswered) as caught:
        aws.training_plan(arn)
    assert caught.value.reason == reason
    assert names(aws) == set()


def test_a_plan_that_sagemaker_calls_invalid_because_it_is_not_there(aws_with: Open) -> None:
    aws = aws_with(
        {"sagemaker:DescribeTrainingPlan": Fails("ValidationException", "Requested resource could not be found.")}
    )
    assert aws.training_plan(PLAN) is None
    aws = aws_with({"sagemaker:DescribeTrainingPlan": Fails("ValidationException", "Value fails to satisfy pattern")})
    with pytest.raises(NotAnswered) as caught:
        aws.training_plan(PLAN)
    assert caught.value.reason == (
        "sagemaker:DescribeTrainingPlan was refused with ValidationException: Value fails to satisfy pattern"
    )


@pytest.mark.parametrize(
    ("name", "service"),
    [
        ("com.amazonaws.us-east-1.s3", "s3"),
        ("com.amazonaws.us-gov-west-1.sagemaker.api", "sagemaker.api"),
        ("cn.com.amazonaws.cn-north-1.ecr.dkr", "ecr.dkr"),
        ("com.amazonaws.eusc-de-east-1.logs", "logs"),
        ("com.amazonaws.s3-global.accesspoint", "com.amazonaws.s3-global.accesspoint"),
        ("com.amazonaws.vpce.us-east-1.vpce-svc-0123", "vpce-svc-0123"),
    ],
)
def test_the_service_of_an_endpoint_is_what_follows_the_region(name: str, service: str) -> None:
    assert endpoint_service(name) == service


def test_a_bucket_of_others_is_not_missing(aws_with: Open) -> None:
    aws = aws_with({"s3:HeadBucket": Fails("403", "Forbidden", 403)})
    with pytest.raises(NotAnswered) as caught:
        aws.bucket("datasets")
    assert (caught.value.reason, caught.value.action) == (
        "no permission for s3:ListBucket, or the bucket has another owner",
        "s3:ListBucket",
    )


def test_the_region_of_a_bucket_may_stand_in_the_header_only(aws_with: Open) -> None:
    answer = {"ResponseMetadata": {"HTTPHeaders": {"x-amz-bucket-region": "us-west-2"}}}
    assert aws_with({"s3:HeadBucket": answer}).bucket("datasets") == BucketAnswer(name="datasets", region="us-west-2")


class TestSimulation:
    """Who is simulated, and how many actions at once."""

    ROLE_ANSWER: Mapping[str, Any] = CASES["role"][1]["iam:GetRole"]  # type: ignore[assignment] # a dict in this case

    def simulated(self, arn: str, aws_with: Open) -> list[Mapping[str, Any]]:
        asked: list[Mapping[str, Any]] = []

        def decide(params: Mapping[str, Any]) -> Mapping[str, Any]:
            asked.append(params)
            return {"EvaluationResults": [{"EvalActionName": "ec2:CreateVpc", "EvalDecision": "allowed"}]}

        aws = aws_with({"iam:GetRole": self.ROLE_ANSWER, "iam:SimulatePrincipalPolicy": decide})
        assert [each.decision for each in aws.simulate(arn, ["ec2:CreateVpc"]).values()] == ["allowed"]
        assert names(aws) <= set(QUESTIONS["simulate"].calls)
        return asked

    @pytest.mark.parametrize(
        ("arn", "identity"),
        [
            (ARN, ARN),
            (f"arn:aws:iam::{ACCOUNT}:role/deployer", f"arn:aws:iam::{ACCOUNT}:role/deployer"),
            (f"arn:aws:sts::{ACCOUNT}:assumed-role/AWSReservedSSO_Admin_0123/dana@example.com", ROLE),
        ],
        ids=["user", "role", "session"],
    )
    def test_a_session_counts_as_its_role(self, arn: str, identity: str, aws_with: Open) -> None:
        (asked,) = self.simulated(arn, aws_with)
        assert asked["PolicySourceArn"] == identity
        assert asked["ContextEntries"] == [
            {"ContextKeyName": "aws:RequestedRegion", "ContextKeyValues": [REGION], "ContextKeyType": "string"}
        ]

    @pytest.mark.parametrize(
        ("arn", "reason"),
        [
            (
                f"arn:aws:iam::{ACCOUNT}:root",
                "the caller is the account's root user, which IAM cannot simulate; use a role",
            ),
            (
                f"arn:aws:sts::{ACCOUNT}:federated-user/dana",
                "the caller is a federated user, which IAM cannot simulate; use a role",
            ),
            (
                f"arn:aws:sts::{ACCOUNT}:assumed-role/gone/dana",
                f"the role of arn:aws:sts::{ACCOUNT}:assumed-role/gone/dana is gone",
            ),
        ],
    )
    def test_who_cannot_be_simulated(self, arn: str, reason: str, aws_with: Open) -> None:
        with pytest.raises(NotAnswered) as caught:
            aws_with({"iam:GetRole": Fails("NoSuchEntity")}).simulate(arn, ["ec2:CreateVpc"])
        assert caught.value.reason == reason

    @pytest.mark.parametrize(
        ("count", "batches"), [(0, []), (1, [1]), (100, [100]), (101, [1, 100]), (230, [30, 100, 100])]
    )
    def test_actions_go_in_batches(self, count: int, batches: list[int], aws_with: Open) -> None:
        sizes = []

        def decide(params: Mapping[str, Any]) -> Mapping[str, Any]:
            sizes.append(len(params["ActionNames"]))
            rows = [{"EvalActionName": name.lower(), "EvalDecision": "allowed"} for name in params["ActionNames"]]
            return {"EvaluationResults": rows, "IsTruncated": False}

        actions = [f"ec2:Create{number}" for number in range(count)]
        decisions = aws_with({"iam:SimulatePrincipalPolicy": decide}).simulate(ARN, actions)
        assert [each.action for each in decisions.values()] == actions
        assert sorted(sizes) == batches

    def test_an_action_without_a_decision_is_no_answer(self, aws_with: Open) -> None:
        aws = aws_with({"iam:SimulatePrincipalPolicy": {"EvaluationResults": []}})
        with pytest.raises(NotAnswered) as caught:
            aws.simulate(ARN, ["ec2:CreateVpc"])["ec2:CreateVpc"]
        assert caught.value.reason == (
            "the answer to iam:SimulatePrincipalPolicy cannot be read: 'ec2:createvpc' is missing"
        )


class TestRequestingAQuota:
    """The one thing that writes."""

    HISTORY = "servicequotas:ListRequestedServiceQuotaChangeHistoryByQuota"
    REQUEST = "servicequotas:RequestServiceQuotaIncrease"

    @staticmethod
    def row(status: str, request_id: str = "r-1") -> dict[str, Any]:
        return {
            "Id": request_id,
            "ServiceCode": "sagemaker",
            "QuotaCode": "L-1",
            "QuotaName": "ml.p5.48xlarge for cluster usage",
            "DesiredValue": 16.0,
            "Status": status,
        }

    def test_it_is_requested(self, aws_with: Open) -> None:
        answer = {"RequestedQuota": self.row("PENDING")}
        holds_to_shape("service-quotas", "RequestServiceQuotaIncrease", answer)
        aws = aws_with({self.HISTORY: {"RequestedQuotas": [self.row("DENIED", "r-0")]}, self.REQUEST: answer})
        request = aws.request_quota("sagemaker", "L-1", 16.0)
        assert (request.request_id, request.is_open, request.desired) == ("r-1", True, 16.0)

    def test_an_open_request_is_given_instead(self, aws_with: Open) -> None:
        aws = aws_with({self.HISTORY: {"RequestedQuotas": [self.row("CASE_OPENED")]}})
        assert aws.request_quota("sagemaker", "L-1", 32.0).request_id == "r-1"
        assert names(aws) == {self.HISTORY}

    def test_one_that_came_first_is_given(self, aws_with: Open) -> None:
        aws = aws_with(
            {
                self.HISTORY: [{"RequestedQuotas": []}, {"RequestedQuotas": [self.row("PENDING")]}],
                self.REQUEST: Fails("ResourceAlreadyExistsException", "Only one open request is allowed"),
            }
        )
        assert aws.request_quota("sagemaker", "L-1", 16.0).request_id == "r-1"

    def test_answers_from_before_are_not_used(self, aws_with: Open) -> None:
        history: list[Scripted] = [
            {"RequestedQuotas": []},
            {"RequestedQuotas": []},
            {"RequestedQuotas": [self.row("PENDING")]},
        ]
        aws = aws_with({self.HISTORY: history, self.REQUEST: {"RequestedQuota": self.row("PENDING")}})
        assert aws.quota_requests("sagemaker", "L-1") == ()
        aws.request_quota("sagemaker", "L-1", 16.0)
        aws.request_quota("sagemaker", "L-1", 16.0)
        assert [call.name for call in aws.calls].count(self.REQUEST) == 1

    @pytest.mark.parametrize(
        ("fails", "reason", "action"),
        [
            (
                Fails(
                    "AccessDeniedException",
                    f"User: {ARN} is not authorized to perform: servicequotas:RequestServiceQuotaIncrease on "
                    "resource: x because no identity-based policy allows the "
                    "servicequotas:RequestServiceQuotaIncrease action",
                ),
                "no permission for servicequotas:RequestServiceQuotaIncrease (no identity-based policy)",
                "servicequotas:RequestServiceQuotaIncrease",
            ),
            (
                Fails(
                    "IllegalArgumentException", "You must provide a quota value greater than the current quota value."
                ),
                (
                    "servicequotas:RequestServiceQuotaIncrease was refused with IllegalArgumentException: "
                    "You must provide a quota value greater than the current quota value"
                ),
                "",
            ),
            (
                Fails("QuotaExceededException", "20 open requests"),
                "servicequotas:RequestServiceQuotaIncrease was refused with QuotaExceededException: 20 open requests",
                "",
            ),
        ],
    )
    def test_a_refusal_is_reported(self, fails: Fails, reason: str, action: str, aws_with: Open) -> None:
        aws = aws_with({self.HISTORY: {"RequestedQuotas": []}, self.REQUEST: fails})
        with pytest.raises(NotAnswered) as caught:
            aws.request_quota("sagemaker", "L-1", 16.0)
        assert (caught.value.reason, caught.value.action) == (reason, action)


@pytest.mark.parametrize("question", CASES)
def test_an_answer_that_lost_its_members_is_no_answer(question: str, aws_with: Open) -> None:
    arguments, script, _ = CASES[question]
    aws = aws_with({name: {} for name in script})
    if question == "policy_exists":  # whatever GetPolicy gives, the policy is there
        return
    if question == "usage":  # what was not read is a part of its answer
        (unread,) = aws.usage("vpcs").unread
        assert unread.reason == "the answer to ec2:DescribeVpcs cannot be read: 'Vpcs' is missing"
        return
    with pytest.raises(NotAnswered, match=r"^the answer to .* cannot be read: '[\w-]+' is missing$"):
        _all_of(getattr(aws, question)(*arguments))


def _all_of(answer: object) -> object:
    if isinstance(answer, Partial):
        return answer.whole()
    for part in vars(answer).values() if isinstance(answer, BucketSettings) else ():
        if isinstance(part, NotAnswered):
            raise part
    return answer


class TestPartOfAnAnswer:
    """What was read counts; what was not is neither there nor missing."""

    DENIED = Fails("UnauthorizedOperation", "You are not authorized to perform this operation.", 403)

    def test_names_go_in_batches_of_which_one_is_throttled(self, aws_with: Open) -> None:
        def alarms(params: Mapping[str, Any]) -> Mapping[str, Any] | Fails:
            names = params["AlarmNames"]
            if "a-120" in names:
                return Fails("Throttling", "Rate exceeded")
            (kind,) = params["AlarmTypes"]
            pages = {"": (names[:50], {"NextToken": "1"}), "1": (names[50:], {})}
            shown, more = pages[params.get("NextToken", "")]
            # the last of each page is a composite alarm
            of_kind = shown[-1:] if kind == "CompositeAlarm" else shown[:-1]
            return {f"{kind}s": [{"AlarmName": name, "StateValue": "OK"} for name in of_kind if name != "a-7"], **more}

        found = aws_with({"cloudwatch:DescribeAlarms": alarms}).alarms([f"a-{number}" for number in range(150)])
        assert [found.get(name) for name in ("a-1", "a-7", "a-49", "a-51", "a-99")] == ["OK", None, "OK", "OK", "OK"]
        for ask in (lambda: found.get("a-120"), lambda: "a-149" in found, lambda: list(found), lambda: len(found)):
            with pytest.raises(NotAnswered, match=r"^AWS throttled cloudwatch:DescribeAlarms"):
                ask()

    def test_a_second_page_that_is_denied_leaves_the_first(self, aws_with: Open) -> None:
        first = cast("dict[str, Any]", CASES["subnets"][1]["ec2:DescribeSubnets"])
        pages: list[Scripted] = [{**first, "NextToken": "more"}, self.DENIED]
        (known,) = (row["SubnetId"] for row in first["Subnets"])
        found = aws_with({"ec2:DescribeSubnets": pages}).subnets([known, "subnet-0a"])
        assert found[known].subnet_id == known
        with pytest.raises(NotAnswered, match="no permission for ec2:DescribeSubnets"):
            found.get("subnet-0a")

    def test_attributes_of_a_vpc_are_asked_for_one_by_one(self, aws_with: Open) -> None:
        _, script, _ = CASES["vpc"]
        vpc = aws_with({**script, "ec2:DescribeVpcAttribute": self.DENIED}).vpc("vpc-01234567")
        assert vpc is not None
        assert isinstance(vpc.dns_support, NotAnswered)
        assert isinstance(vpc.dns_hostnames, NotAnswered)
        assert vpc.cidrs

    @pytest.mark.parametrize(
        ("call", "part"),
        [
            ("s3:ListBuckets", "owned"),
            ("s3:GetBucketPolicyStatus", "public"),
            ("s3:GetBucketVersioning", "versioned"),
            ("s3:GetBucketEncryption", "kms_key"),
        ],
    )
    def test_settings_of_a_bucket_are_asked_for_one_by_one(self, call: str, part: str, aws_with: Open) -> None:
        arguments, script, _ = CASES["bucket_settings"]
        settings = aws_with({**script, call: Fails("AccessDenied", "Access Denied", 403)}).bucket_settings(*arguments)
        assert [name for name, value in vars(settings).items() if isinstance(value, NotAnswered)] == [part]

    def test_decisions_of_one_batch_are_known_without_the_other(self, aws_with: Open) -> None:
        def decide(params: Mapping[str, Any]) -> Mapping[str, Any] | Fails:
            if "ec2:Create100" in params["ActionNames"]:
                return Fails("Throttling", "Rate exceeded")
            rows = [{"EvalActionName": name, "EvalDecision": "implicitDeny"} for name in params["ActionNames"]]
            return {"EvaluationResults": rows}

        actions = [f"ec2:Create{number}" for number in range(101)]
        found = aws_with({"iam:SimulatePrincipalPolicy": decide}).simulate(ARN, actions)
        assert (len(found.read), list(found.unread)) == (100, ["ec2:Create100"])

    def test_file_systems_of_the_first_page_count(self, aws_with: Open) -> None:
        first = cast("dict[str, Any]", CASES["lustre_file_systems"][1]["fsx:DescribeFileSystems"])
        script: Script = {
            "fsx:DescribeFileSystems": [{**first, "NextToken": "more"}, Fails("AccessDeniedException", "no", 400)]
        }
        found = aws_with(script).lustre_file_systems()
        assert [each.file_system_id for each in found.read] == ["fs-0123456789abcdef0"]
        assert found.broken_off is not None

    def test_a_quota_that_only_the_list_shows_is_read_there(self, aws_with: Open) -> None:
        rows = [{"QuotaName": "Clusters", "QuotaCode": "L-1", "Value": 7.0}]
        script: Script = {
            "servicequotas:GetServiceQuota": Fails("AccessDeniedException", "no"),
            "servicequotas:ListServiceQuotas": {"Quotas": rows},
            "servicequotas:ListAWSDefaultServiceQuotas": {"Quotas": [{**rows[0], "Value": 1.0}]},
        }
        found = aws_with(script).quota("eks", "Clusters", "L-1")
        assert found is not None
        assert (found.value, found.is_default) == (7.0, False)

    def test_a_quota_that_neither_shows_names_the_smaller_right(self, aws_with: Open) -> None:
        denied = Fails("AccessDeniedException", "no")
        script: Script = {
            f"servicequotas:{name}": denied
            for name in ("GetServiceQuota", "ListServiceQuotas", "ListAWSDefaultServiceQuotas")
        }
        with pytest.raises(NotAnswered) as caught:
            aws_with(script).quota("eks", "Clusters", "L-1")
        assert caught.value.action == "servicequotas:GetServiceQuota"
