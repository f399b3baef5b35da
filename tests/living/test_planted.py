"""Drifts that are planted in the embedded AWS, each found once; then what is said of them is done and compared.

What the next deployment does about each was written down from AWS's material before it was run: CloudFormation compares
templates and not what AWS has (user guide, "Update behaviors of stack resources"), so that nothing becomes of a drift
whose resource is in no change. Where it is in one, UpdateCluster sets every group to what it gets (SageMaker API
reference), PutMetricAlarm and PutRule overwrite all they are about (CloudWatch, EventBridge), kubectl applies the whole
manifest (Kubernetes, "Declarative management"), tags go where the templates differ, and what was deleted outside of
CloudFormation fails (user guide, "Update rollback failed"). Of all else no page tells: "unknown".
"""

from __future__ import annotations

import copy
import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
import yaml

from hyperpod_cdk.checks.aws import LiveAws
from hyperpod_cdk.config import load_environment
from hyperpod_cdk.handlers.quota_gate.reading import Own
from hyperpod_cdk.living.adopting import adopted, properties_of, tagged_in
from hyperpod_cdk.living.model import Difference, Drift
from hyperpod_cdk.living.standing import read_living
from hyperpod_cdk.templates.assembly import read_assembly
from tests.living.test_life import look
from tests.support.pairs import Person
from tests.transitions.test_lives import ACCOUNT, SMALL, Life, WithPlaceholder, living

TEXT = f"""{
    SMALL.replace(
        "count: 1, availability_zone_id: use1-az6}",
        '''count: 3, availability_zone_id: use1-az6, labels: {use: web}}
    - {name: spare, instance_type: ml.m5.2xlarge, count: 1, availability_zone_id: use1-az6}''',
    )
}
task_governance:
  ordering: priority
  priority_classes: [{{name: inference, weight: 100}}, {{name: training, weight: 80}}]
  idle_compute: fair_share
  teams:
    - name: red
      fair_share_weight: 10
      preemption: lower_priority
      quota: [{{instance_type: ml.m5.2xlarge, count: 2}}]
      sharing: {{strategy: lend}}
    - name: blue
      fair_share_weight: 20
      preemption: lower_priority
      quota: [{{instance_type: ml.m5.2xlarge, count: 1}}]
      sharing: {{strategy: lend}}
"""


@dataclass
class Account:
    """What is deployed, by service."""

    life: Life

    def of(self, service: str) -> Any:
        """Return a client."""
        return self.life.aws.client(service)

    @cached_property
    def ids(self) -> list[tuple[str, str, str]]:
        """Return type, logical and physical ID of all that is deployed."""
        rows = [
            row
            for stack in self.life.stacks()
            for row in self.of("cloudformation").describe_stack_resources(StackName=stack)["StackResources"]
        ]
        return [(row["ResourceType"], row["LogicalResourceId"], row["PhysicalResourceId"]) for row in rows]

    def id(self, kind: str, word: str = "") -> str:
        """Return the physical ID of the first resource of a type whose logical ID has a word in it."""
        return next(each for type_, name, each in self.ids if type_ == kind and word in name)

    @property
    def cluster(self) -> Any:
        """Return the cluster as DescribeCluster does."""
        return self.of("sagemaker").describe_cluster(ClusterName="small")

    def group(self, name: str) -> dict[str, Any]:
        """Return a group as UpdateCluster takes it."""
        row = next(each for each in self.cluster["InstanceGroups"] if each["InstanceGroupName"] == name)
        kept = ("InstanceType", "LifeCycleConfig", "ExecutionRole", "ThreadsPerCore", "OverrideVpcConfig")
        storage = {"InstanceStorageConfigs": row["InstanceStorageConfigs"]} if "InstanceStorageConfigs" in row else {}
        labels = (row.get("KubernetesConfig") or {}).get("DesiredLabels")
        more = {"KubernetesConfig": {"Labels": labels}} if labels else {}
        return {
            "InstanceGroupName": name,
            "InstanceCount": row["TargetCount"],
            **{each: row[each] for each in kept},
            **storage,
            **more,
        }

    def quota(self, name: str) -> dict[str, Any]:
        """Return a quota."""
        rows = self.of("sagemaker").list_compute_quotas()["ComputeQuotaSummaries"]
        found = next(row for row in rows if row["Name"] == name)
        answer: dict[str, Any] = self.of("sagemaker").describe_compute_quota(ComputeQuotaId=found["ComputeQuotaId"])
        return answer

    def live(self) -> LiveAws:
        """Open the account as the command does."""
        own = Own(stacks=(), hyperpod_cluster="", eks_cluster="")
        return LiveAws.open(region=self.life.data["region"], account=ACCOUNT, own=own)


def _of_cluster(account: Account) -> None:
    """Scale one group out and one in, make one, delete one, label one, and turn recovery off."""
    sagemaker = account.of("sagemaker")
    system, far = account.group("system"), account.group("far")
    extra = {**account.group("spare"), "InstanceGroupName": "extra"}
    sagemaker.update_cluster(
        ClusterName="small",
        NodeRecovery="None",
        InstanceGroups=[
            {**system, "InstanceCount": 2},
            {**far, "InstanceCount": 2, "KubernetesConfig": {"Labels": {"use": "batch"}}},
            extra,
        ],
        InstanceGroupsToDelete=["spare"],
    )
    sagemaker.add_tags(
        ResourceArn=account.cluster["ClusterArn"],
        Tags=[{"Key": "cost-center", "Value": "43"}, {"Key": "owner", "Value": "dana"}],
    )


def _of_teams(account: Account) -> None:
    sagemaker = account.of("sagemaker")
    red = account.quota("small-red")
    config = copy.deepcopy(red["ComputeQuotaConfig"])
    config["ComputeQuotaResources"][0]["Count"] = 1
    sagemaker.update_compute_quota(
        ComputeQuotaId=red["ComputeQuotaId"],
        TargetVersion=red["ComputeQuotaVersion"],
        ComputeQuotaConfig=config,
        ComputeQuotaTarget={**red["ComputeQuotaTarget"], "FairShareWeight": 77},
    )
    sagemaker.create_compute_quota(
        Name="by-hand",
        ClusterArn=account.cluster["ClusterArn"],
        ComputeQuotaConfig=config,
        ComputeQuotaTarget={"TeamName": "green", "FairShareWeight": 1},
    )
    policy = sagemaker.list_cluster_scheduler_configs()["ClusterSchedulerConfigSummaries"][0]
    found = sagemaker.describe_cluster_scheduler_config(ClusterSchedulerConfigId=policy["ClusterSchedulerConfigId"])
    rows = [
        {**each, "Weight": 50} if each["Name"] == "training" else each
        for each in found["SchedulerConfig"]["PriorityClasses"]
    ]
    sagemaker.update_cluster_scheduler_config(
        ClusterSchedulerConfigId=policy["ClusterSchedulerConfigId"],
        TargetVersion=found["ClusterSchedulerConfigVersion"],
        SchedulerConfig={**found["SchedulerConfig"], "PriorityClasses": rows},
    )


def _of_eks(account: Account) -> None:
    eks = account.of("eks")
    where = {"clusterName": account.id("AWS::EKS::Cluster")}
    eks.update_addon(**where, addonName="vpc-cni", configurationValues=json.dumps({"env": {"WARM_IP_TARGET": "9"}}))
    eks.create_addon(**where, addonName="metrics-server")
    eks.create_access_entry(**where, principalArn=_dana(account))
    admin = f"arn:aws:iam::{ACCOUNT}:role/admin"
    (policy,) = eks.list_associated_access_policies(**where, principalArn=admin)["associatedAccessPolicies"]
    eks.disassociate_access_policy(**where, principalArn=admin, policyArn=policy["policyArn"])
    eks.associate_access_policy(
        **where,
        principalArn=admin,
        policyArn="arn:aws:eks::aws:cluster-access-policy/AmazonEKSViewPolicy",
        accessScope={"type": "cluster"},
    )
    _settled(account)
    eks.update_cluster_config(name=where["clusterName"], resourcesVpcConfig={"publicAccessCidrs": ["3.4.0.0/16"]})
    _settled(account)
    kinds = [{"types": ["audit"], "enabled": False}]
    eks.update_cluster_config(name=where["clusterName"], logging={"clusterLogging": kinds})
    _settled(account)
    eks.update_cluster_config(name=where["clusterName"], deletionProtection=False)
    _settled(account)


def _dana(account: Account) -> str:
    trust = {"Statement": [{"Effect": "Allow", "Principal": {"AWS": ACCOUNT}, "Action": "sts:AssumeRole"}]}
    made = account.of("iam").create_role(RoleName="dana", AssumeRolePolicyDocument=json.dumps(trust))
    return str(made["Role"]["Arn"])


def _settled(account: Account) -> None:
    """Wait until EKS takes the next change."""
    eks, name = account.of("eks"), account.id("AWS::EKS::Cluster")
    for _ in range(300):
        if eks.describe_cluster(name=name)["cluster"]["status"] == "ACTIVE":
            return
        time.sleep(0.05)


def _of_network(account: Account) -> None:
    ec2 = account.of("ec2")
    group = account.id("AWS::EC2::SecurityGroup", "Efa")
    ec2.authorize_security_group_ingress(
        GroupId=group,
        IpPermissions=[{"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "IpRanges": [{"CidrIp": "203.0.113.0/24"}]}],
    )
    rules = ec2.describe_security_group_rules(Filters=[{"Name": "group-id", "Values": [group]}])["SecurityGroupRules"]
    inward = [each for each in rules if not each["IsEgress"] and each.get("ReferencedGroupInfo")]
    ec2.revoke_security_group_ingress(GroupId=group, SecurityGroupRuleIds=[inward[0]["SecurityGroupRuleId"]])
    lustre = account.id("AWS::EC2::SecurityGroup", "Lustrenear")
    rules = ec2.describe_security_group_rules(Filters=[{"Name": "group-id", "Values": [lustre]}])["SecurityGroupRules"]
    one = next(each for each in rules if not each["IsEgress"] and each.get("FromPort") == 988)
    # moto changes descriptions of blocks only, so the same rule comes anew
    pair = {"GroupId": one["ReferencedGroupInfo"]["GroupId"], "Description": "changed by hand"}
    ports = {name: one[name] for name in ("IpProtocol", "FromPort", "ToPort")}
    ec2.revoke_security_group_ingress(GroupId=lustre, SecurityGroupRuleIds=[one["SecurityGroupRuleId"]])
    ec2.authorize_security_group_ingress(GroupId=lustre, IpPermissions=[{**ports, "UserIdGroupPairs": [pair]}])
    tables = [each for kind, _, each in account.ids if kind == "AWS::EC2::RouteTable"]
    ec2.create_route(
        RouteTableId=tables[0], DestinationCidrBlock="172.16.0.0/12", GatewayId=account.id("AWS::EC2::InternetGateway")
    )
    ec2.delete_route(RouteTableId=tables[1], DestinationCidrBlock="0.0.0.0/0")
    associations = (
        each
        for table in ec2.describe_route_tables(RouteTableIds=tables)["RouteTables"]
        for each in table["Associations"]
    )
    one = next(each for each in associations if each.get("SubnetId"))
    other = next(each for each in tables if each != one["RouteTableId"])
    ec2.replace_route_table_association(AssociationId=one["RouteTableAssociationId"], RouteTableId=other)
    subnets = [each for kind, _, each in account.ids if kind == "AWS::EC2::Subnet"]
    ec2.modify_subnet_attribute(SubnetId=subnets[-1], MapPublicIpOnLaunch={"Value": True})
    ec2.modify_vpc_attribute(VpcId=account.id("AWS::EC2::VPC"), EnableDnsHostnames={"Value": False})
    ec2.modify_vpc_endpoint(
        VpcEndpointId=account.id("AWS::EC2::VPCEndpoint"),
        PolicyDocument=json.dumps(
            {"Statement": [{"Effect": "Deny", "Principal": "*", "Action": "*", "Resource": "*"}]}
        ),
    )
    ec2.create_tags(Resources=[account.id("AWS::EC2::VPC")], Tags=[{"Key": "owner", "Value": "dana"}])


def _of_storage(account: Account) -> None:
    fsx, s3, kms = account.of("fsx"), account.of("s3"), account.of("kms")
    near, far = (account.id("AWS::FSx::FileSystem", f"Lustre{name}") for name in ("near", "far"))
    fsx.update_file_system(FileSystemId=near, StorageCapacity=2400)
    fsx.update_file_system(FileSystemId=far, LustreConfiguration={"DataCompressionType": "NONE"})
    bucket = account.cluster["InstanceGroups"][0]["LifeCycleConfig"]["SourceS3Uri"].removeprefix("s3://").partition("/")
    s3.put_bucket_versioning(Bucket=bucket[0], VersioningConfiguration={"Status": "Suspended"})
    s3.put_public_access_block(
        Bucket=bucket[0],
        PublicAccessBlockConfiguration={
            "BlockPublicAcls": True,
            "BlockPublicPolicy": False,
            "IgnorePublicAcls": True,
            "RestrictPublicBuckets": True,
        },
    )
    policy = json.loads(s3.get_bucket_policy(Bucket=bucket[0])["Policy"])
    row = {"Sid": "Everybody", "Effect": "Allow", "Principal": "*", "Action": "s3:GetObject"}
    policy["Statement"].append({**row, "Resource": f"arn:aws:s3:::{bucket[0]}/*"})
    s3.put_bucket_policy(Bucket=bucket[0], Policy=json.dumps(policy))
    expires = {"ID": "old", "Status": "Enabled", "Filter": {"Prefix": "old/"}, "Expiration": {"Days": 1}}
    s3.put_bucket_lifecycle_configuration(Bucket=bucket[0], LifecycleConfiguration={"Rules": [expires]})
    first, second = (row["Key"] for row in s3.list_objects_v2(Bucket=bucket[0], Prefix=bucket[2])["Contents"][:2])
    s3.put_object(Bucket=bucket[0], Key=first, Body=b"#!/bin/bash\n")
    s3.delete_object(Bucket=bucket[0], Key=second)
    s3.put_object(Bucket=bucket[0], Key=f"{bucket[2]}/extra.sh", Body=b"#!/bin/bash\n")
    key = account.id("AWS::KMS::Key", "Volume")
    kms.disable_key_rotation(KeyId=key)
    document = json.loads(kms.get_key_policy(KeyId=key, PolicyName="default")["Policy"])
    document["Statement"].append(
        {
            "Sid": "Dana",
            "Effect": "Allow",
            "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"},
            "Action": "kms:Decrypt",
            "Resource": "*",
        }
    )
    kms.put_key_policy(KeyId=key, PolicyName="default", Policy=json.dumps(document))


def _of_roles(account: Account) -> None:
    iam = account.of("iam")
    role = account.cluster["InstanceGroups"][0]["ExecutionRole"].rpartition("/")[2]
    iam.attach_role_policy(RoleName=role, PolicyArn="arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess")
    iam.put_role_permissions_boundary(RoleName=role, PermissionsBoundary="arn:aws:iam::aws:policy/ReadOnlyAccess")
    attached = iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"]
    gone = next(
        each["PolicyArn"] for each in attached if each["PolicyName"] == "AmazonSageMakerClusterInstanceRolePolicy"
    )
    iam.detach_role_policy(RoleName=role, PolicyArn=gone)
    anything = {
        "Version": "2012-10-17",
        "Statement": [{"Sid": "Any", "Effect": "Allow", "Action": "*", "Resource": "*"}],
    }
    iam.put_role_policy(RoleName=role, PolicyName="by-hand", PolicyDocument=json.dumps(anything))
    trust = iam.get_role(RoleName=role)["Role"]["AssumeRolePolicyDocument"]
    trust["Statement"].append(
        {
            "Sid": "Dana",
            "Effect": "Allow",
            "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"},
            "Action": "sts:AssumeRole",
        }
    )
    iam.update_assume_role_policy(RoleName=role, PolicyDocument=json.dumps(trust))
    flow = account.id("AWS::IAM::Role", "FlowLog")
    (name,) = iam.list_role_policies(RoleName=flow)["PolicyNames"]
    document = iam.get_role_policy(RoleName=flow, PolicyName=name)["PolicyDocument"]
    document["Statement"].append({"Sid": "More", "Effect": "Allow", "Action": "logs:DeleteLogGroup", "Resource": "*"})
    iam.put_role_policy(RoleName=flow, PolicyName=name, PolicyDocument=json.dumps(document))


def _of_watch(account: Account) -> None:
    alarm = account.id("AWS::CloudWatch::Alarm")
    account.of("cloudwatch").disable_alarm_actions(AlarmNames=[alarm])
    logs = account.of("logs")
    groups = [each for kind, _, each in account.ids if kind == "AWS::Logs::LogGroup"]
    logs.put_retention_policy(logGroupName=groups[0], retentionInDays=1)
    logs.delete_retention_policy(logGroupName=groups[1])
    rule = account.id("AWS::Events::Rule").rpartition("|")[2]
    (target, *_) = account.of("events").list_targets_by_rule(Rule=rule)["Targets"]
    account.of("events").remove_targets(Rule=rule, Ids=[target["Id"]])
    name = account.id("AWS::Logs::MetricFilter", "Errors")
    (found,) = logs.describe_metric_filters(filterNamePrefix=name)["metricFilters"]
    kept = {each: found[each] for each in ("filterName", "logGroupName", "metricTransformations")}
    logs.put_metric_filter(**kept, filterPattern="nothing")
    account.of("events").disable_rule(Name=account.id("AWS::Events::Rule").rpartition("|")[2])


def _of_kubernetes(account: Account) -> None:
    aws, cluster = account.live(), account.id("AWS::EKS::Cluster")
    keeps = {"spec": {"persistentVolumeReclaimPolicy": "Delete"}}
    aws.kubernetes_patch(cluster, "/api/v1/persistentvolumes/default.near", keeps)
    allows = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}}
    aws.kubernetes_patch(cluster, "/api/v1/namespaces/hyperpod-ns-red", allows)


PLANTS: tuple[Callable[[Account], None], ...] = (
    _of_cluster,
    _of_teams,
    _of_eks,
    _of_network,
    _of_storage,
    _of_roles,
    _of_watch,
    _of_kubernetes,
)


def edited(data: dict[str, Any]) -> None:
    """Change other parts of what drifted, and some of the same."""
    data["hyperpod"]["instance_groups"][0]["labels"] = {"use": "system"}
    data["task_governance"]["teams"][0]["fair_share_weight"] = 30
    data["eks"]["public_access_cidrs"] = ["13.32.0.0/15"]
    data["storage"]["lustre"][0]["capacity_gib"] = 4800
    data["storage"]["lustre"][1]["compression"] = "none"


def retagged(data: dict[str, Any]) -> None:
    """Put everything into the change that has tags."""
    data["tags"]["cost-center"] = "44"


EXPECTED = """
AWS::CloudWatch::Alarm ActionsEnabled: nothing, sets
AWS::EC2::RouteTable Routes[0.0.0.0/0]: nothing, nothing
AWS::EC2::RouteTable Routes[172.16.0.0/12]: nothing, nothing
AWS::EC2::SecurityGroup Ingress[all traffic from sg-]: nothing, unknown
AWS::EC2::SecurityGroup Ingress[tcp 22 from 203.0.113.0/24]: nothing, nothing
AWS::EC2::SecurityGroup Ingress[tcp 988 from sg-].Description: nothing, unknown
AWS::EC2::Subnet MapPublicIpOnLaunch: nothing, unknown
AWS::EC2::Subnet RouteTableId: nothing, nothing
AWS::EC2::VPC EnableDnsHostnames: nothing, unknown
AWS::EC2::VPC Tags[owner]: nothing, nothing
AWS::EC2::VPCEndpoint PolicyDocument: nothing, unknown
AWS::EKS::AccessEntry AccessPolicies[AmazonEKSClusterAdminPolicy]: nothing, unknown
AWS::EKS::AccessEntry AccessPolicies[AmazonEKSViewPolicy]: nothing, unknown
AWS::EKS::Addon ConfigurationValues.env.WARM_IP_TARGET: nothing, unknown
AWS::EKS::Cluster AccessEntries[arn:aws:iam::111122223333:role/dana]: nothing, nothing
AWS::EKS::Cluster Addons[metrics-server]: nothing, nothing
AWS::EKS::Cluster Logging.ClusterLogging.EnabledTypes: unknown, unknown
AWS::EKS::Cluster ResourcesVpcConfig.PublicAccessCidrs: sets, sets
AWS::Events::Rule State: nothing, sets
AWS::Events::Rule Targets[LogGroup]: nothing, unknown
AWS::FSx::FileSystem LustreConfiguration.DataCompressionType: agrees, agrees
AWS::FSx::FileSystem StorageCapacity: sets, sets
AWS::IAM::Role AssumeRolePolicyDocument[Dana]: nothing, unknown
AWS::IAM::Role PermissionsBoundary: nothing, unknown
AWS::IAM::Role Attached[arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess]: nothing, unknown
AWS::IAM::Role Attached[arn:aws:iam::aws:policy/AmazonSageMakerClusterInstanceRolePolicy]: nothing, unknown
AWS::IAM::Role Inline[WriteFlowLogs].Statements[More]: nothing, unknown
AWS::IAM::Role Inline[by-hand]: nothing, unknown
AWS::KMS::Key EnableKeyRotation: nothing, unknown
AWS::KMS::Key KeyPolicy[Dana]: nothing, unknown
AWS::Logs::LogGroup RetentionInDays: nothing, unknown
AWS::Logs::LogGroup RetentionInDays: nothing, unknown
AWS::Logs::MetricFilter FilterPattern: nothing, nothing
AWS::S3::Bucket LifecycleRules[old]: nothing, nothing
AWS::S3::Bucket PublicAccessBlockConfiguration.BlockPublicPolicy: nothing, unknown
AWS::S3::Bucket VersioningConfiguration.Status: nothing, unknown
AWS::S3::BucketPolicy PolicyDocument[Everybody]: nothing, nothing
AWS::SageMaker::Cluster ComputeQuotas[by-hand]: nothing, nothing
AWS::SageMaker::Cluster InstanceGroups[extra]: unknown, unknown
AWS::SageMaker::Cluster InstanceGroups[far].InstanceCount: sets, sets
AWS::SageMaker::Cluster InstanceGroups[far].KubernetesConfig.Labels.use: sets, sets
AWS::SageMaker::Cluster InstanceGroups[spare]: makes, makes
AWS::SageMaker::Cluster InstanceGroups[system].InstanceCount: sets, sets
AWS::SageMaker::Cluster NodeRecovery: sets, sets
AWS::SageMaker::Cluster Tags[cost-center]: unknown, sets
AWS::SageMaker::Cluster Tags[owner]: nothing, nothing
AWS::SageMaker::ClusterSchedulerConfig SchedulerConfig.PriorityClasses[training].Weight: nothing, unknown
AWS::SageMaker::ComputeQuota ComputeQuotaConfig.ComputeQuotaResources[ml.m5.2xlarge].Count: unknown, unknown
AWS::SageMaker::ComputeQuota ComputeQuotaTarget.FairShareWeight: sets, sets
Custom::AWSCDK-EKS-KubernetesResource Objects[Namespace hyperpod-ns-red].metadata.labels.pod-security.kubernetes.io/enforce: nothing, nothing
Custom::AWSCDK-EKS-KubernetesResource Objects[PersistentVolume default.near].spec.persistentVolumeReclaimPolicy: sets, sets
Custom::CDKBucketDeployment Objects[environment.conf]: nothing, nothing
Custom::HyperPodDeletionProtection Enabled: nothing, nothing
Custom::CDKBucketDeployment Objects[extra.sh]: nothing, nothing
Custom::CDKBucketDeployment Objects[node/configure-efa-fsx-lustre-client.conf]: nothing, nothing
"""  # noqa: E501 - a table
"""What is planted, and what the next deployment does about it: of ``edited``, and of that and ``retagged``.

Of the file as it was deployed it is "nothing", of all.
"""


_GROUPS, _TEAM = "hyperpod.instance_groups", "task_governance.teams[0]"
LINES = {
    "AWS::EKS::Cluster ResourcesVpcConfig.PublicAccessCidrs": "eks.public_access_cidrs",
    "AWS::FSx::FileSystem LustreConfiguration.DataCompressionType": "storage.lustre[1].compression",
    "AWS::FSx::FileSystem StorageCapacity": "storage.lustre[0].capacity_gib",
    "AWS::SageMaker::Cluster InstanceGroups[far].InstanceCount": f"{_GROUPS}[1].count",
    "AWS::SageMaker::Cluster InstanceGroups[far].KubernetesConfig.Labels.use": f"{_GROUPS}[1].labels.use",
    "AWS::SageMaker::Cluster InstanceGroups[spare]": f"{_GROUPS}[2]",
    "AWS::SageMaker::Cluster InstanceGroups[system].InstanceCount": f"{_GROUPS}[0].count",
    "AWS::SageMaker::Cluster NodeRecovery": "hyperpod.node_recovery",
    "AWS::SageMaker::Cluster Tags[cost-center]": "tags.cost-center",
    "AWS::SageMaker::ClusterSchedulerConfig SchedulerConfig.PriorityClasses[training].Weight": (
        "task_governance.priority_classes[1].weight"
    ),
    "AWS::SageMaker::ComputeQuota ComputeQuotaConfig.ComputeQuotaResources[ml.m5.2xlarge].Count": (
        f"{_TEAM}.quota[0].count"
    ),
    "Custom::HyperPodDeletionProtection Enabled": "deletion_protection",
    "AWS::SageMaker::ComputeQuota ComputeQuotaTarget.FairShareWeight": f"{_TEAM}.fair_share_weight",
}
"""The field of the file that decides what is planted; of all else the library decides, or nobody knows."""


def _row(each: Difference) -> str:
    path = re.sub(r"arn:aws:eks::aws:cluster-access-policy/", "", re.sub(r"sg-[0-9a-f]+", "sg-", each.path))
    return f"{each.type} {path}"


def _said(found: Drift) -> list[str]:
    return sorted(f"{_row(each)}: {each.next.effect}" for each in found.differences)


def _expected(column: int) -> list[str]:
    rows = (line.rpartition(": ") for line in EXPECTED.strip().splitlines())
    return sorted(f"{place}: {effects.split(', ')[column]}" for place, _, effects in rows)


def _values(found: Drift) -> dict[tuple[str, str, str], str | None]:
    return {(each.stack, each.resource, each.path): each.actual for each in found.differences}


def _compared(said: Drift, after: Drift) -> None:
    """Hold what was said against what was done; of what was unknown either may be."""
    left, before = _values(after), _values(said)
    effects = {key: each.next.effect for key, each in zip(before, said.differences, strict=True)}
    wrong = [
        (key, effect, left.get(key))
        for key, effect in effects.items()
        if (effect == "nothing" and left.get(key) != before[key])
        or (effect in ("sets", "makes", "agrees", "deletes") and key in left)
    ]
    assert wrong == []
    assert set(left) <= set(before)


@pytest.mark.examples
@pytest.mark.timeout(900)
def test_each_is_found_once_and_becomes_what_was_announced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with living(tmp_path, monkeypatch, text=TEXT) as life:
        assert look(life).differences == ()
        account = Account(life)
        for plant in PLANTS:
            plant(account)
        found = look(life)
        assert found.skipped == ()
        places = [line.rpartition(": ")[0] for line in EXPECTED.strip().splitlines()]
        assert _said(found) == sorted(f"{each}: nothing" for each in places)
        assert {_row(each): each.line.path for each in found.differences if each.line} == LINES

        # the files as they were deployed: nothing becomes of any
        life.change()
        assert _values(look(life)) == _values(found)

        data = copy.deepcopy(life.data)
        edited(data)
        said = look(life, data)
        assert _said(said) == _expected(0)
        # both before anything is deployed: what the first deployment does would change the second list
        both = copy.deepcopy(data)
        retagged(both)
        assert _said(look(life, both)) == _expected(1)

        life.change(edited)
        after = look(life)
        _compared(said, after)
        counts = {each["InstanceGroupName"]: each["TargetCount"] for each in account.cluster["InstanceGroups"]}
        assert (counts["system"], counts["far"], counts["spare"]) == (1, 3, 1)

        data = copy.deepcopy(life.data)
        retagged(data)
        said = look(life, data)
        life.change(retagged)
        _compared(said, look(life))


def _adoptable(account: Account) -> None:
    """Change what the file has fields for: counts, labels, recovery, a group, a quota."""
    sagemaker = account.of("sagemaker")
    system, far = account.group("system"), account.group("far")
    sagemaker.update_cluster(
        ClusterName="small",
        NodeRecovery="None",
        InstanceGroups=[
            {**system, "InstanceCount": 2},
            {**far, "InstanceCount": 2, "KubernetesConfig": {"Labels": {"use": "on"}}},
            account.group("spare"),
            {**account.group("spare"), "InstanceGroupName": "extra", "InstanceCount": 2},
        ],
    )
    red = account.quota("small-red")
    config = copy.deepcopy(red["ComputeQuotaConfig"])
    config["ComputeQuotaResources"][0]["Count"] = 1
    sagemaker.update_compute_quota(
        ComputeQuotaId=red["ComputeQuotaId"],
        TargetVersion=red["ComputeQuotaVersion"],
        ComputeQuotaConfig=config,
        ComputeQuotaTarget=red["ComputeQuotaTarget"],
    )


@pytest.mark.examples
@pytest.mark.timeout(900)
def test_what_is_adopted_is_no_drift_once_it_is_deployed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file then says what AWS has, each difference agrees with it, and its deployment leaves everything there."""
    with living(tmp_path, monkeypatch, text=TEXT) as life:
        account = Account(life)
        _adoptable(account)
        read = read_living(account.live(), read_assembly(life.folder / f"assembly-{life.count}", "small"))
        rows = account.cluster["InstanceGroups"]
        found = look(life)
        assert len(found.differences) == 6
        done = adopted(
            TEXT,
            found.differences,
            properties_of(read),
            environment="small",
            rows=lambda _: rows,
            tagged=tagged_in(read),
        )
        assert done.left == ()
        data = yaml.safe_load(done.text)
        load_environment(Path("small.yaml"), text=done.text)
        before = account.cluster["InstanceGroups"]
        assert {each.next.effect for each in look(life, data).differences} <= {"agrees", "unknown", "fails"}
        life.change(lambda of: of.update(data))
        assert look(life).differences == ()
        counts = [{each["InstanceGroupName"]: each["TargetCount"] for each in of} for of in (before, rows)]
        assert counts[0] == counts[1]


def _attempted(life: Life, edit: Callable[[dict[str, Any]], None]) -> bool:
    """Deploy an edited file of which it was said that it fails; give whether it did not."""
    data = copy.deepcopy(life.data)
    edit(data)
    file, assembly = life.folder / "attempt.yaml", life.folder / "attempt"
    file.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
    life.cdk.synth(file, assembly)
    return life.deployment(assembly, Person(), WithPlaceholder(life.cdk, data["name"])).run()


def _admits_dana(data: dict[str, Any]) -> None:
    data["eks"]["admin_role_arns"].append(f"arn:aws:iam::{ACCOUNT}:role/dana")


def _quota_of_blue(data: dict[str, Any]) -> None:
    data["task_governance"]["teams"][1]["fair_share_weight"] = 55


@pytest.mark.examples
@pytest.mark.timeout(900)
def test_what_is_reported_as_failing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What somebody made, and the file makes, too; what somebody deleted, and the file changes."""
    with living(tmp_path, monkeypatch, text=TEXT) as life:
        account = Account(life)
        eks, cluster = account.of("eks"), account.id("AWS::EKS::Cluster")
        eks.create_access_entry(clusterName=cluster, principalArn=_dana(account))
        data = copy.deepcopy(life.data)
        _admits_dana(data)
        (one,) = look(life, data).differences
        assert (one.path, one.next.effect) == ("AccessEntries[arn:aws:iam::111122223333:role/dana]", "fails")
        assert not _attempted(life, _admits_dana)
        # as it says: what was made by hand goes first
        eks.delete_access_entry(clusterName=cluster, principalArn=f"arn:aws:iam::{ACCOUNT}:role/dana")
        life.change(_admits_dana)
        assert look(life).differences == ()

        # each is gone as a whole; of a file as it was deployed nothing becomes of them
        account.of("ec2").delete_flow_logs(FlowLogIds=[account.id("AWS::EC2::FlowLog")])
        account.of("ec2").delete_vpc_endpoints(VpcEndpointIds=[account.id("AWS::EC2::VPCEndpoint")])
        account.of("cloudwatch").delete_alarms(AlarmNames=[account.id("AWS::CloudWatch::Alarm")])
        account.of("sagemaker").delete_compute_quota(ComputeQuotaId=account.quota("small-blue")["ComputeQuotaId"])
        eks.delete_access_entry(clusterName=cluster, principalArn=f"arn:aws:iam::{ACCOUNT}:role/dana")
        gone = look(life)
        assert sorted((each.type, each.path, each.next.effect) for each in gone.differences) == [
            ("AWS::CloudWatch::Alarm", "", "nothing"),
            ("AWS::EC2::FlowLog", "", "nothing"),
            ("AWS::EC2::VPCEndpoint", "", "nothing"),
            ("AWS::EKS::AccessEntry", "", "nothing"),
            ("AWS::SageMaker::ComputeQuota", "", "nothing"),
        ]
        life.change()
        assert _values(look(life)) == _values(gone)

        data = copy.deepcopy(life.data)
        _quota_of_blue(data)
        said = {each.type: each.next.effect for each in look(life, data).differences}
        assert (said["AWS::SageMaker::ComputeQuota"], said["AWS::EC2::FlowLog"]) == ("fails", "nothing")
        assert not _attempted(life, _quota_of_blue)


def _by_hyperpod(account: Account) -> None:
    """What HyperPod does by itself or on request, after which the cluster is asked for what it was."""
    sagemaker = account.of("sagemaker")
    # nodes that are replaced and rebooted: test_life; one more and one less again
    added = {"InstanceGroupName": "far", "IncrementTargetCountBy": 1}
    sagemaker.batch_add_cluster_nodes(ClusterName="small", NodesToAdd=[added])
    _running(account, "far", 4)
    rows = sagemaker.list_cluster_nodes(ClusterName="small", InstanceGroupNameContains="far")["ClusterNodeSummaries"]
    sagemaker.batch_delete_cluster_nodes(ClusterName="small", NodeIds=[rows[0]["InstanceId"]])
    _running(account, "far", 3)
    # a patched image
    sagemaker.update_cluster_software(ClusterName="small")
    _running(account, "far", 3)
    # the same quota and the same policy, of another version
    red = account.quota("small-red")
    sagemaker.update_compute_quota(
        ComputeQuotaId=red["ComputeQuotaId"],
        TargetVersion=red["ComputeQuotaVersion"],
        ComputeQuotaConfig=red["ComputeQuotaConfig"],
        ComputeQuotaTarget=red["ComputeQuotaTarget"],
    )
    # a tag that somebody gave and took back
    arn = account.cluster["ClusterArn"]
    sagemaker.add_tags(ResourceArn=arn, Tags=[{"Key": "owner", "Value": "dana"}])
    sagemaker.delete_tags(ResourceArn=arn, TagKeys=["owner"])


def _running(account: Account, group: str, number: int) -> None:
    rows: list[Any] = []
    for _ in range(600):
        rows = account.of("sagemaker").list_cluster_nodes(ClusterName="small")["ClusterNodeSummaries"]
        ours = [row for row in rows if row["InstanceGroupName"] == group]
        states = {row["InstanceStatus"]["Status"] for row in rows}
        if len(ours) == number and states == {"Running"} and account.cluster["ClusterStatus"] == "InService":
            return
        time.sleep(0.05)
    raise AssertionError(rows)


def _by_eks(account: Account) -> None:
    """Entries and add-ons of AWS's services, and what comes back as it was."""
    eks, where = account.of("eks"), {"clusterName": account.id("AWS::EKS::Cluster")}
    linked = account.of("iam").create_service_linked_role(AWSServiceName="eks-fargate.amazonaws.com")["Role"]["Arn"]
    eks.create_access_entry(**where, principalArn=linked)
    # the same values, written otherwise
    found = eks.describe_addon(**where, addonName="vpc-cni")["addon"]
    values = json.loads(found.get("configurationValues") or "{}")
    eks.update_addon(**where, addonName="vpc-cni", configurationValues=yaml.safe_dump(values))
    admin = f"arn:aws:iam::{ACCOUNT}:role/admin"
    (policy,) = eks.list_associated_access_policies(**where, principalArn=admin)["associatedAccessPolicies"]
    eks.disassociate_access_policy(**where, principalArn=admin, policyArn=policy["policyArn"])
    eks.associate_access_policy(
        **where, principalArn=admin, policyArn=policy["policyArn"], accessScope=policy["accessScope"]
    )
    # a pod identity of a workload's own
    pods = {"Effect": "Allow", "Principal": {"Service": "pods.eks.amazonaws.com"}}
    trust = {"Statement": [{**pods, "Action": ["sts:AssumeRole", "sts:TagSession"]}]}
    made = account.of("iam").create_role(RoleName="web", AssumeRolePolicyDocument=json.dumps(trust))
    role = made["Role"]["Arn"]
    eks.create_pod_identity_association(**where, namespace="default", serviceAccount="web", roleArn=role)
    _settled(account)


def _beside(account: Account) -> None:
    """Things of others in the VPC, and rules and routes that come back as they were."""
    ec2 = account.of("ec2")
    vpc = account.id("AWS::EC2::VPC")
    ec2.create_security_group(GroupName="others", Description="others", VpcId=vpc)
    subnets = [each for kind, _, each in account.ids if kind == "AWS::EC2::Subnet"]
    ec2.create_network_interface(SubnetId=subnets[-1])
    ec2.create_vpc_endpoint(VpcId=vpc, ServiceName="com.amazonaws.us-east-1.dynamodb", VpcEndpointType="Gateway")
    lustre = account.id("AWS::EC2::SecurityGroup", "Lustrenear")
    (group,) = ec2.describe_security_groups(GroupIds=[lustre])["SecurityGroups"]
    rule = group["IpPermissions"][0]
    ec2.revoke_security_group_ingress(GroupId=lustre, IpPermissions=[rule])
    ec2.authorize_security_group_ingress(GroupId=lustre, IpPermissions=[rule])


def _of_data(account: Account) -> None:
    """Uses of a bucket and a key, and a policy whose parts stand in another order."""
    s3, kms = account.of("s3"), account.of("kms")
    bucket = account.cluster["InstanceGroups"][0]["LifeCycleConfig"]["SourceS3Uri"].removeprefix("s3://").partition("/")
    s3.put_object(Bucket=bucket[0], Key="of-somebody-else/notes.txt", Body=b"notes")
    first = s3.list_objects_v2(Bucket=bucket[0], Prefix=bucket[2])["Contents"][0]["Key"]
    body = s3.get_object(Bucket=bucket[0], Key=first)["Body"].read()
    s3.put_object(Bucket=bucket[0], Key=first, Body=body)
    policy = json.loads(s3.get_bucket_policy(Bucket=bucket[0])["Policy"])
    policy["Statement"] = [dict(reversed(each.items())) for each in reversed(policy["Statement"])]
    s3.put_bucket_policy(Bucket=bucket[0], Policy=json.dumps(policy))
    key = account.id("AWS::KMS::Key", "Volume")
    kms.create_grant(KeyId=key, GranteePrincipal=f"arn:aws:iam::{ACCOUNT}:role/admin", Operations=["Decrypt"])


def _of_use(account: Account) -> None:
    """A role in an instance profile, one action for a list of it, an alarm that went off, and log streams."""
    iam, logs = account.of("iam"), account.of("logs")
    role = account.cluster["InstanceGroups"][0]["ExecutionRole"].rpartition("/")[2]
    iam.create_instance_profile(InstanceProfileName="others")
    iam.add_role_to_instance_profile(InstanceProfileName="others", RoleName=role)
    flow = account.id("AWS::IAM::Role", "FlowLog")
    (name,) = iam.list_role_policies(RoleName=flow)["PolicyNames"]
    document = iam.get_role_policy(RoleName=flow, PolicyName=name)["PolicyDocument"]
    for each in document["Statement"]:
        each["Action"] = sorted(each["Action"], reverse=True) if isinstance(each["Action"], list) else [each["Action"]]
    iam.put_role_policy(RoleName=flow, PolicyName=name, PolicyDocument=json.dumps(document))
    alarm = account.id("AWS::CloudWatch::Alarm")
    account.of("cloudwatch").set_alarm_state(AlarmName=alarm, StateValue="ALARM", StateReason="a node failed")
    group = account.id("AWS::Logs::LogGroup")
    logs.create_log_stream(logGroupName=group, logStreamName="node")


def _in_kubernetes(account: Account) -> None:
    """What controllers add to objects: labels, annotations and a status that no manifest states."""
    aws, cluster = account.live(), account.id("AWS::EKS::Cluster")
    added = {"metadata": {"annotations": {"controller": "seen"}, "labels": {"kueue.x-k8s.io/managed": "true"}}}
    aws.kubernetes_patch(cluster, "/api/v1/namespaces/hyperpod-ns-red", added)
    bound = {"status": {"phase": "Bound"}, "spec": {"claimRef": {"name": "near", "namespace": "default"}}}
    aws.kubernetes_patch(cluster, "/api/v1/persistentvolumes/default.near", bound)


NOT_DRIFT: tuple[Callable[[Account], None], ...] = (_by_hyperpod, _by_eks, _beside, _of_data, _of_use, _in_kubernetes)


@pytest.mark.examples
@pytest.mark.timeout(900)
def test_what_is_no_drift_is_not_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What AWS's services do by themselves, what others have beside, what says the same in other words."""
    with living(tmp_path, monkeypatch, text=TEXT) as life:
        account = Account(life)
        for happens in NOT_DRIFT:
            happens(account)
            found = look(life)
            differences = [(each.resource, each.path, each.deployed, each.actual) for each in found.differences]
            assert (happens.__name__, differences, found.skipped) == (happens.__name__, [], ())
