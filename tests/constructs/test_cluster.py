"""The cluster: what it emits, what it waits for, what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import aws_cdk as cdk
import botocore.loaders
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk.assertions import Annotations, Match

from hyperpod_cdk.hyperpod.autoscaling import KarpenterAutoscaling
from hyperpod_cdk.hyperpod.cluster import HyperPodCluster
from hyperpod_cdk.hyperpod.execution_role import NodeExecutionRole
from hyperpod_cdk.hyperpod.instance_groups import Batch, InstanceGroup, Patching, Taint
from hyperpod_cdk.hyperpod.lifecycle import LifecycleScripts
from tests.support.templates import HERE, app, of_type, template_of

PLAN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/h100-april"
LOGICAL_ID = "ClusterEB0386A7"

Group = Callable[..., InstanceGroup]


@pytest.fixture
def stack() -> cdk.Stack:
    """Somebody else's stack, without feature flags."""
    return cdk.Stack(app(), "foreign", env=HERE)


@pytest.fixture
def subnet(stack: cdk.Stack) -> ec2.ISubnet:
    """A subnet that exists."""
    return ec2.Subnet.from_subnet_id(stack, "Subnet", "subnet-0123456789abcdef0")


@pytest.fixture
def security_group(stack: cdk.Stack) -> ec2.ISecurityGroup:
    """A security group that exists."""
    return ec2.SecurityGroup.from_security_group_id(stack, "SecurityGroup", "sg-0123456789abcdef0")


@pytest.fixture
def group(subnet: ec2.ISubnet, security_group: ec2.ISecurityGroup) -> Group:
    """Makes a group that is good but for what is given."""

    def made(name: str = "system", **given: Any) -> InstanceGroup:
        plain: dict[str, Any] = {"subnet": subnet, "security_groups": [security_group], "count": 2}
        if "instance_types" not in given:
            plain["instance_type"] = "ml.m5.2xlarge"
        return InstanceGroup(name=name, **{**plain, **given})

    return made


@pytest.fixture
def cluster(
    stack: cdk.Stack, subnet: ec2.ISubnet, security_group: ec2.ISecurityGroup, group: Group
) -> Callable[..., HyperPodCluster]:
    """Makes a cluster that is good but for what is given."""

    def made(**given: Any) -> HyperPodCluster:
        lifecycle = LifecycleScripts(stack, "Scripts")
        eks_cluster_arn = stack.format_arn(service="eks", resource="cluster", resource_name="theirs")
        role = NodeExecutionRole(
            stack,
            "Nodes",
            bucket=lifecycle.bucket,
            eks_cluster_arn=eks_cluster_arn,
            vpc=ec2.Vpc.from_vpc_attributes(stack, "Vpc", vpc_id="vpc-0123456789abcdef0", availability_zones=["zone"]),
            subnets=[subnet],
            security_groups=[security_group],
        )
        plain: dict[str, Any] = {
            "cluster_name": "prod",
            "eks_cluster_arn": eks_cluster_arn,
            "vpc_subnets": [subnet],
            "security_groups": [security_group],
            "instance_groups": [group()],
            "execution_role": role,
            "lifecycle": lifecycle,
        }
        return HyperPodCluster(stack, "Cluster", **{**plain, **given})

    return made


Make = Callable[..., HyperPodCluster]


def resource(stack: cdk.Stack) -> dict[str, Any]:
    found: dict[str, Any] = template_of(stack)["Resources"][LOGICAL_ID]
    return found


def properties(stack: cdk.Stack) -> dict[str, Any]:
    return cast("dict[str, Any]", resource(stack)["Properties"])


def refusal(cluster: Make, **given: Any) -> str:
    with pytest.raises(ValueError, match=r"must|needs") as raised:
        cluster(**given)
    return cast("str", raised.value.args[0])


class TestProperties:
    def test_of_a_plain_cluster(self, stack: cdk.Stack, cluster: Make) -> None:
        cluster()

        found = properties(stack)
        (first,) = found.pop("InstanceGroups")
        assert found == {
            "ClusterName": "prod",
            "NodeProvisioningMode": "Continuous",
            "NodeRecovery": "Automatic",
            "Orchestrator": {
                "Eks": {
                    "ClusterArn": {
                        "Fn::Join": [
                            "",
                            [
                                "arn:",
                                {"Ref": "AWS::Partition"},
                                ":eks:us-east-1:111122223333:cluster/theirs",
                            ],
                        ]
                    }
                }
            },
            "Tags": [{"Key": "SageMaker", "Value": "true"}],
            "VpcConfig": {"SecurityGroupIds": ["sg-0123456789abcdef0"], "Subnets": ["subnet-0123456789abcdef0"]},
        }
        assert first["InstanceGroupName"] == "system"

    def test_every_group_states_network_threads_and_scripts(self, stack: cdk.Stack, cluster: Make) -> None:
        cluster()

        (first,) = properties(stack)["InstanceGroups"]
        template = template_of(stack)
        (role,) = [name for name in of_type(template, "AWS::IAM::Role") if name.startswith("Nodes")]
        (bucket,) = [name for name in of_type(template, "AWS::S3::Bucket") if name.startswith("ScriptsBucket")]
        (upload,) = of_type(template, "Custom::CDKBucketDeployment").values()
        prefix = upload["Properties"]["DestinationBucketKeyPrefix"]
        assert first["ExecutionRole"] == {"Fn::GetAtt": [role, "Arn"]}
        assert first["LifeCycleConfig"] == {
            "OnCreate": "on_create.sh",
            "SourceS3Uri": {"Fn::Join": ["", ["s3://", {"Ref": bucket}, f"/{prefix}"]]},
        }
        assert first["OverrideVpcConfig"] == properties(stack)["VpcConfig"]
        assert first["ThreadsPerCore"] == 2

    @pytest.mark.parametrize(
        ("given", "changes"),
        [
            ({"provisioning": "all_or_nothing"}, {"NodeProvisioningMode": None}),
            ({"node_recovery": "none"}, {"NodeRecovery": "None"}),
            (
                {"tiered_checkpointing_memory_percent": 20},
                {"TieredStorageConfig": {"Mode": "Enable", "InstanceMemoryAllocationPercentage": 20}},
            ),
            (
                {"switched_off": ["tiered_checkpointing"]},
                {"TieredStorageConfig": {"Mode": "Disable"}, "AutoScaling": None},
            ),
            ({"switched_off": ["autoscaling"]}, {"TieredStorageConfig": None, "AutoScaling": {"Mode": "Disable"}}),
            (
                {"tags": {"team": "ml", "SageMaker": "false"}},
                {"Tags": [{"Key": "SageMaker", "Value": "true"}, {"Key": "team", "Value": "ml"}]},
            ),
        ],
        ids=" ".join,
    )
    def test_each_choice_changes_one_property(
        self, stack: cdk.Stack, cluster: Make, given: dict[str, Any], changes: dict[str, Any]
    ) -> None:
        cluster(**given)

        found = properties(stack)
        assert {key: found.get(key) for key in changes} == changes

    def test_tags_of_the_stack_come_along(self, stack: cdk.Stack, cluster: Make) -> None:
        cdk.Tags.of(stack).add("cost-center", "ml-platform")
        cluster()

        assert {"Key": "cost-center", "Value": "ml-platform"} in properties(stack)["Tags"]

    def test_groups_come_in_the_order_of_their_names(self, stack: cdk.Stack, cluster: Make, group: Group) -> None:
        cluster(instance_groups=[group("workers"), group("system"), group("login")])

        names = [each["InstanceGroupName"] for each in properties(stack)["InstanceGroups"]]
        assert names == ["login", "system", "workers"]

    def test_a_cluster_with_everything_has_no_error(self, stack: cdk.Stack, cluster: Make, group: Group) -> None:
        gpu: dict[str, Any] = {"instance_type": "ml.p5.48xlarge"}
        cluster(
            tiered_checkpointing_memory_percent=100,
            instance_groups=[
                group("plan", **gpu, capacity="training_plan", training_plan_arn=PLAN, volume_gib=16384),
                group("spot", **gpu, capacity="spot", min_count=1, labels={"a.example/b": "c"}),
                group("flexible", instance_types=["ml.m5.2xlarge", "ml.m5.4xlarge"], count=0),
                group("checked", **gpu, capacity="on_demand", deep_health_checks=["instance_stress"]),
                group(
                    "patched",
                    release_version="1.2.3",
                    taints=[Taint(key="dedicated", value="system", effect="NoSchedule")],
                    patching=Patching(
                        schedule="cron(0 3 ? * SUN *)",
                        max_batch=Batch(percent=10),
                        wait_seconds=3600,
                        rollback_alarms=["node-deficit"],
                    ),
                ),
                group("idle", ami_id="ami-0123456789abcdef0", patching=Patching(strategy="when_idle")),
            ],
        )

        assert len(properties(stack)["InstanceGroups"]) == 6

    def test_every_property_exists_in_the_services_own_model(
        self, stack: cdk.Stack, cluster: Make, group: Group
    ) -> None:
        patching = Patching(schedule="cron(0 3 ? * SUN *)", max_batch=Batch(instances=1), rollback_alarms=["a"])
        cluster(
            tiered_checkpointing_memory_percent=50,
            instance_groups=[
                group("a", min_count=1, patching=patching, labels={"a": "b"}, taints=[]),
                group("b", instance_types=["ml.m5.2xlarge"], patching=Patching(strategy="when_idle")),
                group("c", instance_type="ml.p5.48xlarge", capacity="spot", deep_health_checks=["instance_stress"]),
                group("d", instance_type="ml.p5.48xlarge", capacity="training_plan", training_plan_arn=PLAN),
                group("e", release_version="1.2.3", taints=[Taint(key="a", value="b", effect="NoSchedule")]),
            ],
        )
        model = botocore.loaders.Loader().load_service_model("sagemaker", "service-2")

        # ImageReleaseVersion is CloudFormation's own: it calls UpdateClusterSoftware with it
        unknown = _unknown(properties(stack), "CreateClusterRequest", model["shapes"])
        assert [path for path in unknown if not path.endswith(".ImageReleaseVersion")] == []


def _unknown(value: Any, shape: str, shapes: dict[str, Any], path: str = "") -> list[str]:
    """The paths of ``value`` that the API's ``shape`` does not know."""
    described = shapes[shape]
    match described["type"], value:
        case "structure", dict() if not {"Fn::Join", "Fn::GetAtt", "Ref"} & value.keys():
            members = described["members"]
            found = [f"{path}.{key}" for key in value if key not in members]
            for key in value.keys() & members.keys():
                found += _unknown(value[key], members[key]["shape"], shapes, f"{path}.{key}")
            return found
        case "list", list():
            return [each for item in value for each in _unknown(item, described["member"]["shape"], shapes, path)]
        case "string", str() if "enum" in described and value not in described["enum"]:
            return [f"{path}={value}"]
    return []


class TestLife:
    def test_goes_with_its_stack_and_is_kept_where_it_is_replaced(self, stack: cdk.Stack, cluster: Make) -> None:
        cluster()

        found = resource(stack)
        assert (found["DeletionPolicy"], found["UpdateReplacePolicy"]) == ("Delete", "Retain")

    def test_keeps_its_logical_id(self, stack: cdk.Stack, cluster: Make) -> None:
        cluster()

        assert list(of_type(template_of(stack), "AWS::SageMaker::Cluster")) == [LOGICAL_ID]

    def test_waits_for_policies_and_upload(self, stack: cdk.Stack, cluster: Make) -> None:
        cluster()

        template = template_of(stack)
        needed = [
            *of_type(template, "AWS::IAM::ManagedPolicy"),
            *of_type(template, "Custom::CDKBucketDeployment"),
        ]
        assert len(needed) == 2
        assert set(needed) <= set(resource(stack)["DependsOn"])

    def test_waits_for_whatever_it_depends_on(self, stack: cdk.Stack, cluster: Make) -> None:
        made = cluster()
        rule = cdk.CfnResource(stack, "Rule", type="AWS::SNS::Topic")
        chart = cdk.CfnResource(stack, "Chart", type="AWS::SQS::Queue")
        made.add_dependency(rule, chart)

        assert {"Rule", "Chart"} <= set(resource(stack)["DependsOn"])


class TestOutputs:
    def test_of_a_cluster(self, stack: cdk.Stack, cluster: Make) -> None:
        made = cluster()

        arn = {"Fn::GetAtt": [LOGICAL_ID, "ClusterArn"]}
        cluster_id = {"Fn::Select": [1, {"Fn::Split": ["/", arn]}]}
        assert stack.resolve(made.cluster_arn) == arn
        assert stack.resolve(made.cluster_id) == cluster_id
        assert made.cluster_name == "prod"
        assert stack.resolve(made.log_group_name) == {"Fn::Join": ["", ["/aws/sagemaker/Clusters/prod/", cluster_id]]}
        assert stack.resolve(made.ssm_target("system")) == {
            "Fn::Join": ["", ["sagemaker-cluster:", cluster_id, "_system-<instance-id>"]]
        }
        assert stack.resolve(made.ssm_target("system", "i-0123456789abcdef0")) == {
            "Fn::Join": ["", ["sagemaker-cluster:", cluster_id, "_system-i-0123456789abcdef0"]]
        }

    @pytest.mark.parametrize(
        ("provisioning", "command"),
        [
            ("continuous", "aws sagemaker list-cluster-events --region us-east-1 --cluster-name prod"),
            ("all_or_nothing", None),
        ],
    )
    def test_events_come_with_continuous_provisioning(
        self, cluster: Make, provisioning: str, command: str | None
    ) -> None:
        assert cluster(provisioning=provisioning).events_command == command

    def test_a_target_needs_a_group_of_the_cluster(self, cluster: Make, group: Group) -> None:
        made = cluster(instance_groups=[group("system"), group("login")])

        with pytest.raises(ValueError, match="group_name") as raised:
            made.ssm_target("h100")
        assert str(raised.value) == (
            'group_name must be an instance group of the cluster, got "h100"; set group_name to one of login, system'
        )


class TestRefusals:
    @pytest.mark.parametrize(
        ("given", "message"),
        [
            (
                {"cluster_name": "my_cluster"},
                (
                    "cluster_name must be 1 to 63 letters, digits and hyphens, beginning and ending with a letter or "
                    'digit, got "my_cluster"; set cluster_name="my-cluster"'
                ),
            ),
            (
                {"node_recovery": "always"},
                'node_recovery: must be automatic or none, got "always"; set node_recovery to one of these',
            ),
            (
                {"provisioning": "batch"},
                'provisioning: must be continuous or all_or_nothing, got "batch"; set provisioning to one of these',
            ),
            ({"vpc_subnets": []}, "vpc_subnets must hold subnets, got none; add one"),
            ({"security_groups": []}, "security_groups must hold security groups, got none; add one"),
            ({"instance_groups": []}, "instance_groups must hold instance groups, got none; add one"),
            (
                {"tags": {f"t{n}": "v" for n in range(50)}},
                "tags: must hold at most 49 tags, got 50; remove 1",
            ),
            (
                {"tiered_checkpointing_memory_percent": 19},
                (
                    "tiered_checkpointing_memory_percent must be at least 20, got 19; "
                    "set tiered_checkpointing_memory_percent to 20 or more"
                ),
            ),
            (
                {"tiered_checkpointing_memory_percent": 101},
                (
                    "tiered_checkpointing_memory_percent must be at most 100, got 101; "
                    "set tiered_checkpointing_memory_percent to 100 or less"
                ),
            ),
            (
                {"tiered_checkpointing_memory_percent": 20, "switched_off": ["tiered_checkpointing"]},
                'switched_off must name what is disabled, got "tiered_checkpointing", which is enabled; leave it out',
            ),
        ],
        ids=lambda given: " ".join(given) if isinstance(given, dict) else None,
    )
    def test_of_the_cluster(self, cluster: Make, given: dict[str, Any], message: str) -> None:
        assert refusal(cluster, **given) == message

    def test_of_what_needs_continuous_provisioning(self, cluster: Make, group: Group) -> None:
        spot = group(instance_type="ml.p5.48xlarge", capacity="spot")

        assert refusal(cluster, provisioning="all_or_nothing", instance_groups=[spot]) == (
            'instance group "system": capacity spot needs continuous provisioning, got provisioning="all_or_nothing";'
            ' set provisioning="continuous", or set capacity="on_demand"'
        )

    def test_of_two_groups_of_one_name(self, cluster: Make, group: Group) -> None:
        assert refusal(cluster, instance_groups=[group("system"), group("system")]) == (
            'instance_groups[1].name must be unique, got "system" as in instance_groups[0]; rename one of the two'
        )

    def test_of_a_plan_of_another_region(self, cluster: Make, group: Group) -> None:
        elsewhere = PLAN.replace("us-east-1", "us-west-2")
        gpu = group(instance_type="ml.p5.48xlarge", capacity="training_plan", training_plan_arn=elsewhere)

        assert refusal(cluster, instance_groups=[gpu]) == (
            'instance group "system": training_plan_arn must be a plan in us-east-1, got one in us-west-2; name a plan'
            " of us-east-1"
        )

    def test_of_a_zone_of_another_region(self, cluster: Make, group: Group) -> None:
        got = refusal(cluster, instance_groups=[group(availability_zone_id="usw2-az1")])

        assert got == (
            'instance group "system": availability_zone_id must be an availability zone ID of us-east-1 (use1-az...),'
            " got usw2-az1 of us-west-2; write one of us-east-1"
        )

    def test_of_a_script_that_is_not_uploaded(self, cluster: Make, group: Group, project: Any) -> None:
        assert refusal(cluster, instance_groups=[group(on_create="gpu.sh")]) == (
            f'instance group "system": on_create must be a script in {project / "lifecycle_scripts"}, got "gpu.sh"; '
            "write it, or name one of on_create.sh, on_create_noop.sh"
        )

    @pytest.mark.parametrize(("number", "allowed"), [(100, True), (101, False)])
    def test_of_more_groups_than_a_cluster_takes(
        self,
        stack: cdk.Stack,
        cluster: Make,
        group: Group,
        number: int,
        allowed: bool,  # noqa: FBT001 - a column of the table
    ) -> None:
        groups = [group(f"g{n}") for n in range(number)]
        if allowed:
            cluster(instance_groups=groups)
            assert len(properties(stack)["InstanceGroups"]) == number
        else:
            got = refusal(cluster, instance_groups=groups)
            assert got == "instance_groups must hold at most 100 instance groups, got 101; remove 1"


class TestWarnings:
    @pytest.mark.parametrize(("number", "warnings"), [(20, 0), (21, 1)])
    def test_above_twenty_groups(
        self, stack: cdk.Stack, cluster: Make, group: Group, number: int, warnings: int
    ) -> None:
        cluster(instance_groups=[group(f"g{n}") for n in range(number)])

        found = Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp("instance_groups should hold"))
        assert len(found) == warnings


def test_it_synthesizes_without_account_and_region() -> None:
    agnostic = cdk.Stack(app(), "agnostic")
    subnet = ec2.Subnet.from_subnet_id(agnostic, "Subnet", "subnet-0123456789abcdef0")
    security_group = ec2.SecurityGroup.from_security_group_id(agnostic, "Group", "sg-0123456789abcdef0")
    lifecycle = LifecycleScripts(agnostic, "Scripts")
    eks_cluster_arn = agnostic.format_arn(service="eks", resource="cluster", resource_name="theirs")
    role = NodeExecutionRole(
        agnostic,
        "Nodes",
        bucket=lifecycle.bucket,
        eks_cluster_arn=eks_cluster_arn,
        vpc=ec2.Vpc.from_vpc_attributes(agnostic, "Vpc", vpc_id="vpc-0123456789abcdef0", availability_zones=["zone"]),
        subnets=[subnet],
        security_groups=[security_group],
    )
    HyperPodCluster(
        agnostic,
        "Cluster",
        cluster_name="prod",
        eks_cluster_arn=eks_cluster_arn,
        vpc_subnets=[subnet],
        security_groups=[security_group],
        instance_groups=[
            InstanceGroup(
                name="h100",
                instance_type="ml.p5.48xlarge",
                count=2,
                subnet=subnet,
                security_groups=[security_group],
                availability_zone_id="usw2-az1",
                capacity="training_plan",
                training_plan_arn=PLAN,
            )
        ],
        execution_role=role,
        lifecycle=lifecycle,
    )

    assert LOGICAL_ID in template_of(agnostic)["Resources"]


class TestAutoscaling:
    """Counts of Karpenter's groups come from a custom resource, which runs when the cluster changes."""

    KEY = "arn:aws-us-gov:kms:us-gov-west-1:111122223333:key/0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"

    @pytest.fixture
    def scaled(self, stack: cdk.Stack, cluster: Make, group: Group) -> Callable[..., KarpenterAutoscaling]:
        """Makes a cluster of a system group and two that Karpenter scales."""

        def made(**given: Any) -> KarpenterAutoscaling:
            autoscaling = KarpenterAutoscaling(stack, "Autoscaling", kms_key_arns=given.pop("keys", ()))
            groups = [group("b-zero", count=0), group("system"), group("a-zero", count=0)]
            cluster(autoscaling=autoscaling, **{"instance_groups": groups, **given})
            return autoscaling

        return made

    def test_the_cluster(self, stack: cdk.Stack, scaled: Callable[..., KarpenterAutoscaling]) -> None:
        scaled()

        (counts,) = of_type(template_of(stack), "Custom::HyperPodNodeCounts")
        (role,) = [name for name in of_type(template_of(stack), "AWS::IAM::Role") if name.startswith("AutoscalingRole")]
        found = properties(stack)
        assert found["AutoScaling"] == {"Mode": "Enable", "AutoScalerType": "Karpenter"}
        assert found["ClusterRole"] == {"Fn::GetAtt": [role, "Arn"]}
        assert {each["InstanceGroupName"]: each["InstanceCount"] for each in found["InstanceGroups"]} == {
            "a-zero": {"Fn::GetAtt": [counts, "Count0"]},
            "b-zero": {"Fn::GetAtt": [counts, "Count1"]},
            "system": 2,
        }

    def test_the_counts_are_read_again_whenever_the_cluster_changes(
        self, stack: cdk.Stack, scaled: Callable[..., KarpenterAutoscaling]
    ) -> None:
        cdk.Tags.of(stack).add("cost-center", "ml-platform")
        scaled(node_recovery="automatic", tiered_checkpointing_memory_percent=20)

        (counts,) = of_type(template_of(stack), "Custom::HyperPodNodeCounts").values()
        watched = counts["Properties"]["Cluster"]
        assert (counts["Properties"]["ClusterName"], counts["Properties"]["Groups"]) == ("prod", ["a-zero", "b-zero"])
        assert set(watched) == {"InstanceGroups", "NodeRecovery", "TieredStorageConfig", "Tags"}
        assert {"key": "cost-center", "value": "ml-platform"} in watched["Tags"]
        # all that the template says of the groups, save the counts that this resource itself gives
        own = properties(stack)["InstanceGroups"]
        assert [sorted(each) for each in watched["InstanceGroups"]] == [
            sorted(key[0].lower() + key[1:] for key in each) for each in own
        ]
        assert [each["instanceCount"] for each in watched["InstanceGroups"]] == [0, 0, 2]

    def test_karpenter_is_waited_for_after_the_cluster(
        self, stack: cdk.Stack, scaled: Callable[..., KarpenterAutoscaling]
    ) -> None:
        assert scaled().ready is not None

        (waiting,) = of_type(template_of(stack), "Custom::HyperPodAutoscaler").values()
        assert waiting["Properties"]["ClusterName"] == {"Fn::GetAtt": [LOGICAL_ID, "ClusterArn"]}

    @pytest.mark.parametrize("keys", [(), (KEY,)])
    def test_the_role(
        self, stack: cdk.Stack, scaled: Callable[..., KarpenterAutoscaling], keys: tuple[str, ...]
    ) -> None:
        scaled(keys=keys)

        (role,) = [
            row["Properties"]
            for name, row in of_type(template_of(stack), "AWS::IAM::Role").items()
            if name.startswith("AutoscalingRole")
        ]
        trust, (policy,) = role["AssumeRolePolicyDocument"]["Statement"], role["Policies"]
        nodes, *of_keys = policy["PolicyDocument"]["Statement"]
        assert [each["Principal"] for each in trust] == [{"Service": "hyperpod.sagemaker.amazonaws.com"}]
        assert nodes["Action"] == ["sagemaker:BatchAddClusterNodes", "sagemaker:BatchDeleteClusterNodes"]
        assert [each["Action"] for each in of_keys] == ([["kms:CreateGrant"], ["kms:DescribeKey"]] if keys else [])
        assert {arn for each in of_keys for arn in each["Resource"]} == set(keys)

    def test_settings_of_the_cluster(self, scaled: Callable[..., KarpenterAutoscaling]) -> None:
        with pytest.raises(ValueError, match="autoscaling") as refused:
            scaled(provisioning="all_or_nothing")
        assert str(refused.value) == (
            'autoscaling needs continuous provisioning, got provisioning="all_or_nothing"; set'
            ' provisioning="continuous", or leave out autoscaling'
        )

    @pytest.mark.parametrize(
        ("counts", "scaled_group", "message"),
        [
            (
                (2, 1),
                {},
                (
                    "autoscaling needs a group with count=0, because Karpenter scales only these, got none; set "
                    "count=0 in one, or leave out autoscaling"
                ),
            ),
            (
                (2, 0),
                {"instance_type": "ml.m7g.xlarge"},
                (
                    'instance group "gpu": count must be above 0 for ml.m7g.xlarge: HyperPod\'s Karpenter supports'
                    " x86_64"
                    " only, got arm64; set count to 1 or more, or name another instance type"
                ),
            ),
        ],
    )
    def test_groups_that_karpenter_cannot_scale(
        self,
        scaled: Callable[..., KarpenterAutoscaling],
        group: Group,
        counts: tuple[int, int],
        scaled_group: dict[str, Any],
        message: str,
    ) -> None:
        groups = [group("system", count=counts[0]), group("gpu", count=counts[1], **scaled_group)]
        with pytest.raises(ValueError, match=r"autoscaling|Karpenter") as refused:
            scaled(instance_groups=groups)
        assert str(refused.value) == message
