"""Restricted groups, what they share, their role: what is emitted, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2

from hyperpod_cdk.hyperpod.cluster import HyperPodCluster
from hyperpod_cdk.hyperpod.execution_role import NodeExecutionRole
from hyperpod_cdk.hyperpod.instance_groups import InstanceGroup
from hyperpod_cdk.hyperpod.lifecycle import LifecycleScripts
from hyperpod_cdk.hyperpod.restricted_groups import (
    RestrictedExecutionRole,
    RestrictedGroup,
    ServiceLustre,
    SharedEnvironment,
)
from tests.support.templates import HERE, app, of_type, template_of

KEY = "arn:aws-us-gov:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
PLAN = "arn:aws:sagemaker:{}:{}:training-plan/nova-april"
LUSTRE = ServiceLustre(capacity_gib=9600)


class Foreign:
    """Somebody else's stack with what a restricted group needs."""

    def __init__(self) -> None:
        self.stack = cdk.Stack(app(), "foreign", env=HERE)
        self.subnet = ec2.Subnet.from_subnet_id(self.stack, "Subnet", "subnet-0123456789abcdef0")
        self.security_group = ec2.SecurityGroup.from_security_group_id(self.stack, "Group", "sg-0123456789abcdef0")
        self.eks_arn = self.stack.format_arn(service="eks", resource="cluster", resource_name="theirs")
        self.lifecycle = LifecycleScripts(self.stack, "Scripts")
        vpc = ec2.Vpc.from_vpc_attributes(self.stack, "Vpc", vpc_id="vpc-0123456789abcdef0", availability_zones=["a"])
        self.node_role = NodeExecutionRole(
            self.stack,
            "Nodes",
            bucket=self.lifecycle.bucket,
            eks_cluster_arn=self.eks_arn,
            vpc=vpc,
            subnets=[self.subnet],
            security_groups=[self.security_group],
        )

    def role(self, construct_id: str = "Nova", **given: Any) -> RestrictedExecutionRole:
        return RestrictedExecutionRole(self.stack, construct_id, node_role=self.node_role, **given)

    def group(self, role: RestrictedExecutionRole, name: str = "nova", **given: Any) -> RestrictedGroup:
        plain: dict[str, Any] = {
            "instance_type": "ml.p5.48xlarge",
            "count": 4,
            "subnet": self.subnet,
            "security_groups": [self.security_group],
            "capacity": "on_demand",
            "lustre": LUSTRE,
        }
        return RestrictedGroup(name=name, execution_role=role, **{**plain, **given})

    def system(self) -> InstanceGroup:
        return InstanceGroup(
            name="system",
            instance_type="ml.m5.2xlarge",
            count=2,
            subnet=self.subnet,
            security_groups=[self.security_group],
        )

    def cluster(self, *groups: RestrictedGroup, **given: Any) -> HyperPodCluster:
        plain: dict[str, Any] = {
            "instance_groups": [self.system()],
            "provisioning": "all_or_nothing",
            "restricted_dependencies": "installed" if groups else None,
        }
        return HyperPodCluster(
            self.stack,
            "Cluster",
            cluster_name="nova",
            eks_cluster_arn=self.eks_arn,
            vpc_subnets=[self.subnet],
            security_groups=[self.security_group],
            execution_role=self.node_role,
            lifecycle=self.lifecycle,
            restricted_groups=groups,
            **{**plain, **given},
        )

    def policy(self, description: str) -> list[dict[str, Any]]:
        (found,) = [
            each["Properties"]["PolicyDocument"]["Statement"]
            for each in of_type(template_of(self.stack), "AWS::IAM::ManagedPolicy").values()
            if each["Properties"]["Description"] == description
        ]
        return list(found)


@pytest.fixture
def foreign() -> Foreign:
    return Foreign()


def refused(make: Callable[..., object], *args: Any, **given: Any) -> str:
    with pytest.raises(ValueError, match=r".") as caught:
        make(*args, **given)
    return str(caught.value)


def test_a_group_of_its_own_file_system(foreign: Foreign) -> None:
    role = foreign.role(output_buckets=["nova-results"])
    foreign.cluster(
        foreign.group(
            role,
            deep_health_checks=["instance_stress"],
            capacity="training_plan",
            training_plan_arn=PLAN.format("us-east-1", "111122223333"),
        ),
        provisioning="continuous",
    )
    template = template_of(foreign.stack)

    (cluster,) = of_type(template, "AWS::SageMaker::Cluster").values()
    (nova,) = cluster["Properties"]["RestrictedInstanceGroups"]
    role_arn = nova.pop("ExecutionRole")
    assert nova == {
        "InstanceGroupName": "nova",
        "InstanceType": "ml.p5.48xlarge",
        "InstanceCount": 4,
        "ThreadsPerCore": 2,
        "EnvironmentConfig": {"FSxLustreConfig": {"SizeInGiB": 9600, "PerUnitStorageThroughput": 250}},
        "InstanceStorageConfigs": [{"EbsVolumeConfig": {"VolumeSizeInGB": 500}}],
        "OnStartDeepHealthChecks": ["InstanceStress"],
        "OverrideVpcConfig": {
            "SecurityGroupIds": ["sg-0123456789abcdef0"],
            "Subnets": ["subnet-0123456789abcdef0"],
        },
        "TrainingPlanArn": PLAN.format("us-east-1", "111122223333"),
    }
    assert role_arn == foreign.stack.resolve(role.role.role_arn)
    policies = set(of_type(template, "AWS::IAM::ManagedPolicy"))
    assert policies <= set(cluster["DependsOn"])
    assert len(policies) == 2


def test_groups_that_share_a_file_system(foreign: Foreign) -> None:
    role = foreign.role()
    foreign.cluster(
        foreign.group(role, "b", lustre=None),
        foreign.group(role, "a"),
        shared_environment=SharedEnvironment(
            lustre=ServiceLustre(capacity_gib=1200, throughput_mbps_per_tib=1000), when_unused="delete"
        ),
    )
    (cluster,) = of_type(template_of(foreign.stack), "AWS::SageMaker::Cluster").values()
    properties = cluster["Properties"]

    groups = properties["RestrictedInstanceGroups"]
    assert [(each["InstanceGroupName"], "EnvironmentConfig" in each) for each in groups] == [("a", True), ("b", False)]
    assert properties["RestrictedInstanceGroupsConfig"] == {
        "SharedEnvironmentConfig": {
            "FSxLustreDeletionPolicy": "DeleteIfNotUsed",
            "FSxLustreConfig": {"SizeInGiB": 1200, "PerUnitStorageThroughput": 1000},
        }
    }


def test_a_cluster_of_restricted_groups_alone(foreign: Foreign) -> None:
    foreign.cluster(foreign.group(foreign.role()), instance_groups=[])
    (cluster,) = of_type(template_of(foreign.stack), "AWS::SageMaker::Cluster").values()
    assert "InstanceGroups" not in cluster["Properties"]
    assert len(cluster["Properties"]["RestrictedInstanceGroups"]) == 1


def test_the_role_reaches_the_data(foreign: Foreign) -> None:
    foreign.role(
        input_buckets=["nova-data"], output_buckets=["nova-results"], kms_key_arns=[KEY], reward_functions=True
    )
    s3 = "arn:${AWS::Partition}:s3:::"
    statements = {each["Sid"]: each for each in foreign.policy("Nova customization: data of the jobs")}
    resolved = {
        sid: ["".join(part if isinstance(part, str) else f"${{{part['Ref']}}}" for part in _parts(arn)) for arn in arns]
        for sid, arns in ((sid, _listed(each["Resource"])) for sid, each in statements.items())
    }
    assert resolved == {
        "ListData": [f"{s3}nova-data", f"{s3}nova-results"],
        "GetData": [f"{s3}nova-data/*"],
        "PutResults": [f"{s3}nova-results/*"],
        "Keys": [KEY],
        "RewardFunctions": ["arn:${AWS::Partition}:lambda:${AWS::Region}:${AWS::AccountId}:function:*SageMaker*"],
        "RewardQueues": ["arn:${AWS::Partition}:sqs:${AWS::Region}:${AWS::AccountId}:*SageMaker*"],
    }
    assert statements["PutResults"]["Action"] == ["s3:DeleteObject", "s3:GetObject", "s3:PutObject"]
    assert statements["ListData"]["Action"] == ["s3:GetBucketLocation", "s3:ListBucket"]


def test_the_role_writes_metrics(foreign: Foreign) -> None:
    """Developer guide, observability add-on: "Additional prerequisites for Restricted Instance Groups"."""
    workspace = "arn:aws-us-gov:aps:us-east-1:111122223333:workspace/ws-1"
    foreign.role(prometheus_workspace_arn=workspace)
    assert foreign.policy("Nova customization: data of the jobs") == [
        {"Sid": "Metrics", "Effect": "Allow", "Action": ["aps:RemoteWrite"], "Resource": [workspace]}
    ]


def test_the_role_takes_a_workspace_by_its_arn(foreign: Foreign) -> None:
    assert "prometheus_workspace_arn" in refused(foreign.role, prometheus_workspace_arn="ws-1")


def test_a_role_without_data_gets_no_policy_more(foreign: Foreign) -> None:
    role = foreign.role()
    assert role.policies is foreign.node_role.policies
    assert role.node.children == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"capacity_gib": 1199}, "capacity_gib must be at least 1200, got 1199; set capacity_gib to 1200 or more"),
        (
            {"capacity_gib": 100801},
            "capacity_gib must be at most 100800, got 100801; set capacity_gib to 100800 or less",
        ),
        (
            {"capacity_gib": 1300},
            "capacity_gib must be 1200 GiB or a multiple of 2400 GiB, got 1300; set capacity_gib=2400",
        ),
        (
            {"capacity_gib": 1200, "throughput_mbps_per_tib": 124},
            "throughput_mbps_per_tib must be at least 125, got 124; set throughput_mbps_per_tib to 125 or more",
        ),
        (
            {"capacity_gib": 1200, "throughput_mbps_per_tib": 300},
            (
                "throughput_mbps_per_tib must be 125, 250, 500 or 1000 MB/s per TiB, got 300; set "
                "throughput_mbps_per_tib=500"
            ),
        ),
    ],
)
def test_file_systems_that_are_not_offered(given: dict[str, int], message: str) -> None:
    assert refused(ServiceLustre, **given) == message


@pytest.mark.parametrize("capacity_gib", [1200, 2400, 100800])
@pytest.mark.parametrize("throughput", [125, 1000])
def test_file_systems_at_the_bounds(capacity_gib: int, throughput: int) -> None:
    system = ServiceLustre(capacity_gib=capacity_gib, throughput_mbps_per_tib=throughput)
    assert (system.capacity_gib, system.throughput_mbps_per_tib) == (capacity_gib, throughput)


def test_tokens_are_not_judged() -> None:
    size = cast("int", cdk.Token.as_number({"Ref": "Size"}))
    assert ServiceLustre(capacity_gib=size, throughput_mbps_per_tib=size).capacity_gib == size


def test_another_policy_of_deletion() -> None:
    assert refused(SharedEnvironment, lustre=LUSTRE, when_unused="retain") == (
        'when_unused: must be keep or delete, got "retain"; set when_unused to one of these'
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"capacity": "spot"},
            (
                'restricted instance group "nova": capacity must be on_demand or training_plan, got "spot"; set'
                " capacity to one of these"
            ),
        ),
        (
            {"capacity": None},
            (
                'restricted instance group "nova": capacity must say where ml.p5.48xlarge comes from (on_demand '
                "or training_plan), because on-demand capacity of accelerated types is scarce; set "
                'capacity="training_plan" with its training_plan_arn'
            ),
        ),
        (
            {"threads_per_core": 3},
            (
                'restricted instance group "nova": threads_per_core must be at most 2, got 3; set '
                "threads_per_core to 2 or less"
            ),
        ),
    ],
)
def test_groups_that_aws_refuses(foreign: Foreign, given: dict[str, Any], message: str) -> None:
    assert refused(foreign.group, foreign.role(), **given) == message


def test_clusters_that_aws_refuses(foreign: Foreign) -> None:
    role = foreign.role()
    assert refused(foreign.cluster, foreign.group(role, "system")) == (
        'restricted_groups[0].name must be unique, got "system" as in instance_groups[0]; rename one of the two'
    )


def test_a_group_without_a_file_system(foreign: Foreign) -> None:
    assert refused(foreign.cluster, foreign.group(foreign.role(), lustre=None)) == (
        'restricted instance group "nova": lustre is missing, and there is no shared_environment; set'
        " lustre=ServiceLustre(...)"
    )


def test_a_group_of_another_region(foreign: Foreign) -> None:
    nova = foreign.group(
        foreign.role(), capacity="training_plan", training_plan_arn=PLAN.format("us-west-2", "111122223333")
    )
    assert refused(foreign.cluster, nova) == (
        'restricted instance group "nova": training_plan_arn must be a plan in us-east-1, got one in us-west-2; name a'
        " plan of us-east-1"
    )


def test_a_shared_environment_without_groups(foreign: Foreign) -> None:
    assert refused(foreign.cluster, shared_environment=SharedEnvironment(lustre=LUSTRE)) == (
        "shared_environment needs restricted_groups, got none; pass one or leave out shared_environment"
    )


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _parts(value: Any) -> list[Any]:
    return value["Fn::Join"][1] if isinstance(value, dict) else [value]


def test_restricted_groups_without_their_dependencies_are_refused(foreign: Foreign) -> None:
    group = foreign.group(foreign.role())
    assert refused(foreign.cluster, group, restricted_dependencies=None) == (
        "restricted_dependencies must say what installs copies of the VPC CNI and CoreDNS for restricted nodes on the"
        " EKS cluster before this one is created, got none; run HyperPod's install_rig_dependencies.sh there, then pass"
        ' "installed"'
    )


def test_the_cluster_waits_for_what_installs_the_dependencies(foreign: Foreign) -> None:
    installs = cdk.CfnResource(foreign.stack, "Installs", type="AWS::CloudFormation::WaitConditionHandle")
    foreign.cluster(foreign.group(foreign.role()), restricted_dependencies=installs)
    (cluster,) = of_type(template_of(foreign.stack), "AWS::SageMaker::Cluster").values()
    assert "Installs" in cluster["DependsOn"]
