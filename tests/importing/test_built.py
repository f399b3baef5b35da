"""Clusters that are built on the embedded AWS by calls, as AWS's templates and Terraform make them, and imported.

What each call says follows AWS's set-up (aws/sagemaker-hyperpod-cluster-setup, eks/cloudformation) and AWS's Terraform
module (awslabs/awsome-distributed-ai, hyperpod-eks-tf); nothing of it is made by this library.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hyperpod_cdk.checks.aws import LiveAws
from hyperpod_cdk.config import load_environment
from hyperpod_cdk.handlers.quota_gate.reading import Own
from hyperpod_cdk.importing.draft import Known
from hyperpod_cdk.importing.model import Imported
from hyperpod_cdk.importing.run import Place, imported_living
from hyperpod_cdk_rehearsal.account_files import satisfying
from tests.support.assembly import PROJECT
from tests.support.embedded import ACCOUNT, REGION, Embedded, embedded

EKS = "sagemaker-hyperpod-eks-cluster"
BUCKET = f"sagemaker-hyperpod-bucket-{ACCOUNT}"


VPC, NODES, OF_EKS = "vpc-0a1b2c3d4e5f67890", "sg-0a1b2c3d4e5f67890", "sg-0b2c3d4e5f678901a"
SUBNETS = {"use1-az4": "subnet-0a1b2c3d4e5f67890", "use1-az5": "subnet-0b2c3d4e5f678901a"}
OIDC = f"arn:aws:iam::{ACCOUNT}:oidc-provider/oidc.eks.{REGION}.amazonaws.com/id/0123456789ABCDEF0123456789ABCDEF"
STANDS: dict[str, Any] = {
    "networks": [
        {
            "vpc_id": VPC,
            "cidrs": ["10.192.0.0/16", "10.1.0.0/16", "10.2.0.0/16"],
            "subnets": [
                {"subnet_id": subnet, "availability_zone_id": zone, "cidr": f"10.{number}.0.0/16"}
                for number, (zone, subnet) in enumerate(SUBNETS.items(), start=1)
            ],
            "security_groups": [{"group_id": NODES}],
        }
    ],
    "eks_clusters": [
        {
            "name": EKS,
            "subnet_ids": list(SUBNETS.values()),
            "cluster_security_group_id": OF_EKS,
            "security_group_ids": [NODES],
            "kubernetes_version": "1.34",
            "authentication_mode": "API_AND_CONFIG_MAP",
            "hyperpod_chart": True,
        }
    ],
}
"""Resources before the calls: the network and the EKS cluster, with HyperPod's chart, which no API returns."""

_NODES = (
    "ec2:AssignPrivateIpAddresses ec2:AttachNetworkInterface ec2:CreateNetworkInterface ec2:CreateTags"
    " ec2:CreateNetworkInterfacePermission ec2:DeleteNetworkInterface ec2:DeleteNetworkInterfacePermission"
    " ec2:DescribeDhcpOptions ec2:DescribeInstances ec2:DescribeInstanceTypes ec2:DescribeNetworkInterfaces"
    " ec2:DescribeSecurityGroups ec2:DescribeSubnets ec2:DescribeTags ec2:DescribeVpcs ec2:DetachNetworkInterface"
    " ec2:ModifyNetworkInterfaceAttribute ec2:UnassignPrivateIpAddresses ecr:BatchCheckLayerAvailability"
    " ecr:BatchGetImage ecr:GetAuthorizationToken ecr:GetDownloadUrlForLayer eks-auth:AssumeRoleForPodIdentity"
    " s3:GetObject s3:ListBucket"
)
"""Permissions of the execution role in AWS's templates, in addition to its managed policy."""


@dataclass
class Builder:
    """Makes what a cluster needs by calls, then the cluster."""

    there: Embedded
    role_arn: str = ""

    def __post_init__(self) -> None:
        """Create the execution role and the bucket of the scripts."""
        self.role_arn = self.role("hyperpod-nodes", "sagemaker.amazonaws.com")
        iam, s3 = self.client("iam"), self.client("s3")
        iam.attach_role_policy(
            RoleName="hyperpod-nodes", PolicyArn="arn:aws:iam::aws:policy/AmazonSageMakerClusterInstanceRolePolicy"
        )
        statement = {"Effect": "Allow", "Action": _NODES.split(), "Resource": "*"}
        document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        iam.put_role_policy(RoleName="hyperpod-nodes", PolicyName="eks", PolicyDocument=document)
        s3.create_bucket(Bucket=BUCKET)
        s3.put_object(Bucket=BUCKET, Key="on_create.sh", Body=b"#!/bin/bash\nexit 0\n")

    def client(self, service: str) -> Any:
        """Return a client of the account."""
        return self.there.client(service)

    def role(self, name: str, service: str, *more: str) -> str:
        """Create a role that a service can assume, with ``more`` actions in its trust policy."""
        statement = {"Effect": "Allow", "Principal": {"Service": service}, "Action": ["sts:AssumeRole", *more]}
        document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        made = self.client("iam").create_role(RoleName=name, AssumeRolePolicyDocument=document)
        return str(made["Role"]["Arn"])

    @property
    def eks_arn(self) -> str:
        """The EKS cluster."""
        return f"arn:aws:eks:{REGION}:{ACCOUNT}:cluster/{EKS}"

    def group(self, name: str, count: int, zone: str | None = None, **more: Any) -> dict[str, Any]:
        """Return a group; without a zone it has no subnet of its own."""
        own = {"SecurityGroupIds": [NODES], "Subnets": [SUBNETS[zone]]} if zone else None
        group = {
            "InstanceGroupName": name,
            "InstanceType": "ml.m5.2xlarge",
            "InstanceCount": count,
            "ExecutionRole": self.role_arn,
            "ThreadsPerCore": 1,
            "LifeCycleConfig": {"SourceS3Uri": f"s3://{BUCKET}", "OnCreate": "on_create.sh"},
            "InstanceStorageConfigs": [{"EbsVolumeConfig": {"VolumeSizeInGB": 500}}],
            "OverrideVpcConfig": own,
            **more,
        }
        return {key: value for key, value in group.items() if value is not None}

    def cluster(self, *groups: Mapping[str, Any], **more: Any) -> None:
        """Create the HyperPod cluster and wait until its nodes run."""
        sagemaker = self.client("sagemaker")
        settings = {"NodeRecovery": "Automatic", "NodeProvisioningMode": "Continuous", **more}
        sagemaker.create_cluster(
            ClusterName="ml-cluster",
            Orchestrator={"Eks": {"ClusterArn": self.eks_arn}},
            InstanceGroups=list(groups),
            VpcConfig={"SecurityGroupIds": [NODES], "Subnets": list(SUBNETS.values())},
            **{key: value for key, value in settings.items() if value is not None},
        )
        wanted = sum(group["InstanceCount"] for group in groups)

        def runs() -> bool:
            if sagemaker.describe_cluster(ClusterName="ml-cluster")["ClusterStatus"] != "InService":
                return False
            nodes = sagemaker.list_cluster_nodes(ClusterName="ml-cluster")["ClusterNodeSummaries"]
            return bool(sum(node["InstanceStatus"]["Status"] == "Running" for node in nodes) == wanted)

        self.until(runs)

    def operator(self, cert_manager_values: str | None = None) -> None:
        """Install the training operator as AWS's guide and AWS's Terraform do: its association stands alone."""
        eks, iam = self.client("eks"), self.client("iam")
        role = self.role("hpto-role", "pods.eks.amazonaws.com", "sts:TagSession")
        policy = "arn:aws:iam::aws:policy/AmazonSageMakerHyperPodTrainingOperatorAccess"
        iam.attach_role_policy(RoleName="hpto-role", PolicyArn=policy)
        more = {"configurationValues": cert_manager_values} if cert_manager_values else {}
        self.addon("cert-manager", **more)
        eks.create_pod_identity_association(
            clusterName=EKS,
            namespace="aws-hyperpod",
            serviceAccount="hp-training-operator-controller-manager",
            roleArn=role,
        )
        self.addon("amazon-sagemaker-hyperpod-training-operator")

    def addon(self, name: str, **more: Any) -> None:
        """Install an add-on and wait until it is active."""
        eks = self.client("eks")
        eks.create_addon(clusterName=EKS, addonName=name, resolveConflicts="OVERWRITE", **more)
        self.until(lambda: eks.describe_addon(clusterName=EKS, addonName=name)["addon"]["status"] == "ACTIVE")

    def entry(self, name: str, policy: str) -> str:
        """Create a role for users, with an access entry and a cluster-wide policy in the EKS cluster."""
        eks, arn = self.client("eks"), self.role(name, "ec2.amazonaws.com")
        eks.create_access_entry(clusterName=EKS, principalArn=arn)
        eks.associate_access_policy(
            clusterName=EKS,
            principalArn=arn,
            policyArn=f"arn:aws:eks::aws:cluster-access-policy/{policy}",
            accessScope={"type": "cluster"},
        )
        return arn

    def governance(self, **policy: Any) -> None:
        """Install task governance; with a scheduler configuration also a cluster policy."""
        sagemaker = self.client("sagemaker")
        self.addon("amazon-sagemaker-hyperpod-taskgovernance")
        if policy:
            sagemaker.create_cluster_scheduler_config(
                Name="policy", ClusterArn=self.cluster_arn, SchedulerConfig={"FairShare": "Enabled", **policy}
            )

    def quota(self, name: str, team: str, config: Mapping[str, Any], *, FairShareWeight: int = 0, **more: Any) -> None:  # noqa: N803 - SageMaker's name
        """Create the quota of a team and wait for it."""
        sagemaker = self.client("sagemaker")
        made = sagemaker.create_compute_quota(
            Name=name,
            ClusterArn=self.cluster_arn,
            ComputeQuotaConfig=config,
            ComputeQuotaTarget={"TeamName": team, "FairShareWeight": FairShareWeight},
            **more,
        )["ComputeQuotaId"]
        self.until(lambda: sagemaker.describe_compute_quota(ComputeQuotaId=made)["Status"] == "Created")

    @property
    def cluster_arn(self) -> str:
        """The HyperPod cluster."""
        return str(self.client("sagemaker").describe_cluster(ClusterName="ml-cluster")["ClusterArn"])

    @staticmethod
    def until(is_so: Any) -> None:
        """Wait for something of the embedded AWS, whose time goes fast."""
        for _ in range(600):
            if is_so():
                return
            time.sleep(0.05)
        pytest.fail("the embedded AWS did not get there")


@pytest.fixture
def builder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Builder]:
    """An account with all but the cluster."""
    document = satisfying(load_environment(PROJECT / "examples" / "existing-vpc-and-eks.yaml").environment)
    document["existing"] = {**document["existing"], **STANDS}
    with embedded(document, is_hurried=True) as there:
        for name, value in there.environment().items():
            monkeypatch.setenv(name, value)
        yield Builder(there)


def read(folder: Path) -> tuple[Imported, str]:
    own = Own(stacks=(), hyperpod_cluster="", eks_cluster="")
    aws = LiveAws.open(region=REGION, account="", own=own)
    return imported_living(
        aws, "ml-cluster", Known(name="lab"), to=Place(target=folder / "lab.yaml", root=PROJECT, schema=None)
    )


def groups_of(text: str) -> dict[str, dict[str, Any]]:
    """Return the groups of a file by name, without what the file has by default."""
    environment = load_environment(Path("lab.yaml"), text=text).environment
    return {
        each.name: {key: value for key, value in each.model_dump(exclude_unset=True).items() if key != "name"}
        for each in environment.hyperpod.all_groups
    }


def said(found: Imported, weight: str) -> list[str]:
    return [f"{each.path}: {each.message}" for each in found.notes if each.weight == weight]


def only_read(builder: Builder, before: Mapping[str, int]) -> list[str]:
    """Return the calls since then that are none of a reader."""
    now: Mapping[str, int] = builder.there.calls()["by_operation"]
    asked = [name for name, count in now.items() if count != before.get(name, 0)]
    return [name for name in asked if not name.rpartition(":")[2].startswith(("Describe", "Get", "List"))]


PLAIN = {"instance_type": "ml.m5.2xlarge", "threads_per_core": 1}


@pytest.mark.examples
def test_as_the_set_up_stack_makes_it(builder: Builder, tmp_path: Path) -> None:
    """Groups pinned to their zones, a file system in the VPC, the training operator with cert-manager."""
    eks, fsx = builder.client("eks"), builder.client("fsx")
    builder.cluster(builder.group("system", 2, "use1-az4"), builder.group("far", 1, "use1-az5", ThreadsPerCore=2))
    for name in ("cert-manager", "amazon-sagemaker-hyperpod-training-operator"):
        eks.create_addon(clusterName=EKS, addonName=name)
    made = fsx.create_file_system(
        FileSystemType="LUSTRE",
        StorageCapacity=1200,
        SubnetIds=[SUBNETS["use1-az4"]],
        SecurityGroupIds=[NODES],
        LustreConfiguration={"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 250},
        Tags=[{"Key": "Name", "Value": "hyperpod-fsx"}],
    )["FileSystem"]
    before = builder.there.calls()["by_operation"]
    found, text = read(tmp_path)
    assert only_read(builder, before) == []
    assert [each.path for each in found.notes if each.weight in ("missing", "refused", "skipped")] == [
        "storage.lustre[0].claim"
    ]
    with_claim = text.replace(
        "      capacity_gib: 1200\n", "      capacity_gib: 1200\n    claim: {namespaces: [default]}\n"
    )
    assert groups_of(with_claim) == {
        "system": {**PLAIN, "count": 2, "availability_zone_id": "use1-az4"},
        "far": {"instance_type": "ml.m5.2xlarge", "count": 1, "availability_zone_id": "use1-az5"},
    }
    environment = load_environment(tmp_path / "lab.yaml", text=with_claim).environment
    assert environment.operators.training.enabled
    assert environment.eks.existing is not None
    assert set(environment.eks.existing.installed_addons) == {
        "cert-manager",
        "amazon-sagemaker-hyperpod-training-operator",
    }
    (system,) = environment.storage.lustre
    assert system.existing is not None
    assert (system.name, system.existing.file_system_id) == ("hyperpod-fsx", made["FileSystemId"])


@pytest.mark.examples
def test_as_the_set_up_stack_makes_it_where_the_pin_was_dropped(builder: Builder, tmp_path: Path) -> None:
    """No group has a subnet of its own: the file pins each to where its nodes stand, or asks."""
    builder.cluster(builder.group("one", 1), builder.group("none", 0))
    found, text = read(tmp_path)
    node = builder.client("sagemaker").list_cluster_nodes(ClusterName="ml-cluster")["ClusterNodeSummaries"][0]
    described = builder.client("sagemaker").describe_cluster_node(ClusterName="ml-cluster", NodeId=node["InstanceId"])
    zone = described["NodeDetails"]["Placement"]["AvailabilityZoneId"]
    assert "hyperpod.instance_groups[1].availability_zone_id: one is pinned to no zone; its 1 node" in "\n".join(
        said(found, "changed")
    )
    # DescribeCluster gives groups by name; the one without nodes stands nowhere yet
    (missing,) = said(found, "missing")
    assert missing.startswith("hyperpod.instance_groups[0].availability_zone_id: HyperPod puts its nodes into any of")
    assert f"availability_zone_id: {zone}" in text


@pytest.mark.examples
def test_as_terraform_makes_it(builder: Builder, tmp_path: Path) -> None:
    """Karpenter with a role of its own, a group of count 0 for it, deep health checks of none."""
    role = builder.role("karpenter", "hyperpod.sagemaker.amazonaws.com")
    document = json.dumps(
        {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Effect": "Allow",
                    "Action": ["sagemaker:BatchAddClusterNodes", "sagemaker:BatchDeleteClusterNodes"],
                    "Resource": "*",
                }
            ],
        }
    )
    builder.client("iam").put_role_policy(RoleName="karpenter", PolicyName="nodes", PolicyDocument=document)
    builder.cluster(
        builder.group("system", 1, "use1-az4"),
        builder.group("scaled", 0, "use1-az5"),
        AutoScaling={"Mode": "Enable", "AutoScalerType": "Karpenter"},
        ClusterRole=role,
        Tags=[{"Key": "SageMaker", "Value": "true"}, {"Key": "team", "Value": "research"}],
    )
    found, text = read(tmp_path)
    assert found.passed is True
    assert groups_of(text) == {
        "system": {**PLAIN, "count": 1, "availability_zone_id": "use1-az4"},
        "scaled": {**PLAIN, "count": 0, "availability_zone_id": "use1-az5"},
    }
    environment = load_environment(tmp_path / "lab.yaml", text=text).environment
    assert (environment.hyperpod.autoscaling, environment.tags) == ("karpenter", {"team": "research"})
    assert any(each.startswith("hyperpod.karpenter_pools: ") for each in said(found, "lost"))
    assert f": {role} is not used: the environment creates a role for Karpenter" in said(found, "changed")


@pytest.mark.examples
def test_a_cluster_created_with_the_command_line(builder: Builder, tmp_path: Path) -> None:
    """No recovery, all or nothing, a flexible group, labels and taints."""
    config = {
        "Labels": {"example.com/team": "research"},
        "Taints": [{"Key": "dedicated", "Value": "training", "Effect": "NoSchedule"}],
    }
    builder.cluster(
        builder.group("labelled", 1, "use1-az4", KubernetesConfig=config, ThreadsPerCore=2),
        builder.group("plain", 1, "use1-az5"),
        NodeRecovery="None",
        NodeProvisioningMode=None,
    )
    found, text = read(tmp_path)
    assert found.passed is True
    assert groups_of(text)["labelled"] == {
        "instance_type": "ml.m5.2xlarge",
        "count": 1,
        "availability_zone_id": "use1-az4",
        "labels": {"example.com/team": "research"},
        "taints": ({"key": "dedicated", "value": "training", "effect": "NoSchedule"},),
    }
    assert {each.partition(":")[0] for each in said(found, "unsafe")} == {
        "hyperpod.node_recovery",
        "hyperpod.provisioning",
        "hyperpod.cluster_name",
        "hyperpod.instance_groups[1].threads_per_core",
    }


@pytest.mark.examples
def test_with_teams(builder: Builder, tmp_path: Path) -> None:
    """The cluster policy and the quotas of two teams become task_governance."""
    sagemaker, eks = builder.client("sagemaker"), builder.client("eks")
    builder.cluster(builder.group("system", 2, "use1-az4"))
    name = "amazon-sagemaker-hyperpod-taskgovernance"
    eks.create_addon(clusterName=EKS, addonName=name)
    builder.until(lambda: eks.describe_addon(clusterName=EKS, addonName=name)["addon"]["status"] == "ACTIVE")
    arn = sagemaker.describe_cluster(ClusterName="ml-cluster")["ClusterArn"]
    sagemaker.create_cluster_scheduler_config(
        Name="policy",
        ClusterArn=arn,
        SchedulerConfig={"PriorityClasses": [{"Name": "training", "Weight": 80}], "FairShare": "Disabled"},
    )
    for team, weight, limit in (("research", 10, 50), ("serving", 90, None)):
        sharing = {"Strategy": "LendAndBorrow", "BorrowLimit": limit} if limit else {"Strategy": "DontLend"}
        sagemaker.create_compute_quota(
            Name=f"quota-{team}",
            ClusterArn=arn,
            ComputeQuotaConfig={
                "ComputeQuotaResources": [{"InstanceType": "ml.m5.2xlarge", "Count": 1}],
                "ResourceSharingConfig": sharing,
                "PreemptTeamTasks": "LowerPriority",
            },
            ComputeQuotaTarget={"TeamName": team, "FairShareWeight": weight},
        )
    found, text = read(tmp_path)
    assert found.passed is True
    governance = load_environment(tmp_path / "lab.yaml", text=text).environment.task_governance
    assert governance is not None
    assert governance.model_dump(exclude_unset=True) == {
        "ordering": "priority",
        "priority_classes": ({"name": "training", "weight": 80},),
        "idle_compute": "first_come_first_served",
        "teams": (
            {
                "name": "research",
                "fair_share_weight": 10,
                "quota": ({"instance_type": "ml.m5.2xlarge", "count": 1},),
                "sharing": {"strategy": "lend_and_borrow", "borrow_limit_percent": 50},
            },
            {
                "name": "serving",
                "fair_share_weight": 90,
                "quota": ({"instance_type": "ml.m5.2xlarge", "count": 1},),
                "sharing": {"strategy": "dont_lend"},
            },
        ),
    }
