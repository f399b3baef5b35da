"""An existing HyperPod cluster as AWS's setup stack creates it: the responses of the services about it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hyperpod_cdk.checks.aws import LiveAws
from hyperpod_cdk.handlers.quota_gate.reading import Own
from tests.support.scripted_aws import ACCOUNT, REGION, WHO, Fails, ScriptedSession

EKS = "sagemaker-hyperpod-eks-cluster"
CLUSTER_ARN = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:cluster/0a1b2c3d4e5f"
EKS_ARN = f"arn:aws:eks:{REGION}:{ACCOUNT}:cluster/{EKS}"
ROLE_ARN = f"arn:aws:iam::{ACCOUNT}:role/sagemaker-nodes"
PLAN_ARN = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-plan/h100-april"
VPC = "vpc-0a1b2c3d4e5f67890"
SUBNETS = {"subnet-0a1b2c3d4e5f67890": "use1-az5", "subnet-0b2c3d4e5f678901a": "use1-az4"}
NODES, OF_EKS = "sg-0a1b2c3d4e5f67890", "sg-0b2c3d4e5f678901a"
ISSUER = "oidc.eks.us-east-1.amazonaws.com/id/0123456789ABCDEF0123456789ABCDEF"
STACK = f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/main-HyperPod/1"
MAIN = f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/main/1"
ADMIN = f"arn:aws:iam::{ACCOUNT}:role/platform-admin"


def _group(name: str, instance_type: str, count: int, **more: Any) -> dict[str, Any]:
    return {
        "InstanceGroupName": name,
        "InstanceType": instance_type,
        "CurrentCount": count,
        "TargetCount": count,
        "ExecutionRole": ROLE_ARN,
        "Status": "InService",
        "LifeCycleConfig": {"SourceS3Uri": "s3://sagemaker-scripts/hyperpod", "OnCreate": "on_create.sh"},
        "InstanceStorageConfigs": [{"EbsVolumeConfig": {"VolumeSizeInGB": 500, "RootVolume": False}}],
        "CurrentImageReleaseVersion": "2.1.0",
        "DesiredImageReleaseVersion": "2.1.0",
        **more,
    }


def cluster() -> dict[str, Any]:
    """Return the answer of DescribeCluster: a group in its zone, and one whose pin the template dropped."""
    pinned = {"SecurityGroupIds": [NODES], "Subnets": ["subnet-0a1b2c3d4e5f67890"]}
    return {
        "ClusterArn": CLUSTER_ARN,
        "ClusterName": "ml-cluster",
        "ClusterStatus": "InService",
        "NodeRecovery": "Automatic",
        "NodeProvisioningMode": "Continuous",
        "Orchestrator": {"Eks": {"ClusterArn": EKS_ARN}},
        "VpcConfig": {"SecurityGroupIds": [NODES], "Subnets": list(SUBNETS)},
        "InstanceGroups": [
            _group("h100", "ml.p5.48xlarge", 2, TrainingPlanArn=PLAN_ARN, OverrideVpcConfig=pinned, ThreadsPerCore=2),
            _group("system", "ml.m5.2xlarge", 2),
        ],
    }


def answers() -> dict[str, Any]:
    """Return what every service says of it."""

    def subnets(params: Mapping[str, Any]) -> dict[str, Any]:
        (wanted,) = params["Filters"]
        return {
            "Subnets": [
                {
                    "SubnetId": subnet,
                    "VpcId": VPC,
                    "AvailabilityZoneId": zone,
                    "CidrBlock": f"10.{index}.0.0/16",
                    "AvailableIpAddressCount": 65000,
                    "MapPublicIpOnLaunch": False,
                }
                for index, (subnet, zone) in enumerate(SUBNETS.items())
                if subnet in wanted["Values"]
            ]
        }

    def nodes(params: Mapping[str, Any]) -> dict[str, Any]:
        name = params["InstanceGroupNameContains"]
        rows = [{"InstanceId": f"i-{number}", "InstanceGroupName": name} for number in (1, 2)]
        return {"ClusterNodeSummaries": [*rows, {"InstanceId": "i-9", "InstanceGroupName": f"{name}-2"}]}

    def stacks(params: Mapping[str, Any]) -> dict[str, Any]:
        if params["StackName"] == STACK:
            return {"Stacks": [{"StackId": STACK, "StackName": "main-HyperPod", "RootId": MAIN}]}
        group = {"InstanceGroupName": "system", "InstanceCount": 2, "TargetAvailabilityZoneId": "use1-az6"}
        rows = [("HyperPodClusterName", "ml-cluster"), ("InstanceGroupSettings2", json.dumps([group]))]
        rows += [("InstanceGroupSettings3", "{broken")]
        parameters = [{"ParameterKey": key, "ParameterValue": value} for key, value in rows]
        return {"Stacks": [{"StackId": MAIN, "StackName": "main", "Parameters": parameters}]}

    return {
        "sts:GetCallerIdentity": WHO,
        "sagemaker:DescribeCluster": cluster(),
        "sagemaker:ListTags": {
            "Tags": [
                {"Key": "aws:cloudformation:stack-id", "Value": STACK},
                {"Key": "SageMaker", "Value": "true"},
                {"Key": "cost-center", "Value": "42"},
            ]
        },
        "sagemaker:ListClusterNodes": nodes,
        "sagemaker:DescribeClusterNode": {"NodeDetails": {"Placement": {"AvailabilityZoneId": "use1-az4"}}},
        "sagemaker:DescribeTrainingPlan": {
            "TrainingPlanArn": PLAN_ARN,
            "TrainingPlanName": "h100-april",
            "Status": "Active",
        },
        "sagemaker:ListClusterSchedulerConfigs": {
            "ClusterSchedulerConfigSummaries": [{"ClusterSchedulerConfigId": "abc123abc123"}]
        },
        "sagemaker:DescribeClusterSchedulerConfig": {
            "ClusterSchedulerConfigArn": "arn",
            "Name": "policy",
            "Status": "Created",
            "SchedulerConfig": {"FairShare": "Enabled", "PriorityClasses": [{"Name": "training", "Weight": 80}]},
        },
        "sagemaker:ListComputeQuotas": {"ComputeQuotaSummaries": [{"ComputeQuotaId": "def456def456"}]},
        "sagemaker:DescribeComputeQuota": {
            "ComputeQuotaArn": "arn",
            "Name": "research-quota",
            "Status": "Created",
            "ActivationState": "Enabled",
            "ComputeQuotaTarget": {"TeamName": "research", "FairShareWeight": 50},
            "ComputeQuotaConfig": {
                "ComputeQuotaResources": [{"InstanceType": "ml.p5.48xlarge", "Count": 2}],
                "ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 60},
                "PreemptTeamTasks": "Never",
            },
        },
        "cloudformation:DescribeStacks": stacks,
        "ec2:DescribeSubnets": subnets,
        "ec2:DescribeVpcs": {
            "Vpcs": [
                {
                    "VpcId": VPC,
                    "CidrBlock": "10.192.0.0/16",
                    "CidrBlockAssociationSet": [
                        {"CidrBlock": block, "CidrBlockState": {"State": "associated"}}
                        for block in ("10.192.0.0/16", "10.0.0.0/16", "10.1.0.0/16")
                    ],
                }
            ]
        },
        "eks:DescribeCluster": {
            "cluster": {
                "name": EKS,
                "arn": EKS_ARN,
                "status": "ACTIVE",
                "version": "1.34",
                "accessConfig": {"authenticationMode": "API_AND_CONFIG_MAP"},
                "identity": {"oidc": {"issuer": f"https://{ISSUER}"}},
                "resourcesVpcConfig": {
                    "vpcId": VPC,
                    "subnetIds": list(SUBNETS),
                    "securityGroupIds": [NODES],
                    "clusterSecurityGroupId": OF_EKS,
                    "endpointPublicAccess": True,
                    "endpointPrivateAccess": True,
                },
            }
        },
        "eks:ListAddons": {"addons": ["vpc-cni", "cert-manager", "amazon-sagemaker-hyperpod-training-operator"]},
        "eks:DescribeAddon": lambda params: {
            "addon": {"addonName": params["addonName"], "addonVersion": "v1.2.0-eksbuild.1"}
        },
        "eks:ListAccessEntries": {
            "accessEntries": [
                ADMIN,
                f"arn:aws:iam::{ACCOUNT}:role/aws-service-role/eks.amazonaws.com/AWSServiceRoleForAmazonEKS",
            ]
        },
        "iam:GetOpenIDConnectProvider": {"Url": ISSUER},
        "fsx:DescribeFileSystems": {
            "FileSystems": [
                _lustre("fs-0a1b2c3d4e5f67890", VPC, "subnet-0a1b2c3d4e5f67890"),
                _lustre("fs-0b2c3d4e5f678901a", "vpc-0b2c3d4e5f678901a", "subnet-0c3d4e5f678901a2b"),
            ]
        },
        "s3:ListObjectsV2": {"Contents": [{"Key": "hyperpod/on_create.sh"}, {"Key": "hyperpod/steps/mount.sh"}]},
    }


def _lustre(file_system: str, vpc: str, subnet: str) -> dict[str, Any]:
    return {
        "FileSystemId": file_system,
        "FileSystemType": "LUSTRE",
        "Lifecycle": "AVAILABLE",
        "VpcId": vpc,
        "SubnetIds": [subnet],
        "DNSName": f"{file_system}.fsx.us-east-1.amazonaws.com",
        "StorageCapacity": 4800,
        "LustreConfiguration": {"DeploymentType": "PERSISTENT_2", "MountName": "abcdefgh"},
        "Tags": [{"Key": "Name", "Value": "HyperPod FSx"}],
    }


DENIED = Fails("AccessDeniedException", "not for you", 403)


def asked(**more: Any) -> tuple[LiveAws, ScriptedSession]:
    """Return an AWS that has it, and what it was asked; ``more`` are other answers, _ for : in their names."""
    scripted = ScriptedSession({**answers(), **{name.replace("_", ":"): each for name, each in more.items()}})
    own = Own(stacks=(), hyperpod_cluster="", eks_cluster="")
    return LiveAws.open(region=REGION, account="", own=own, session=scripted.session()), scripted
