"""Instance groups: every value at and next to its limit, each rule of the catalog once, every resulting property."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any, cast

import aws_cdk as cdk
import jsii
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_sagemaker as sagemaker
from aws_cdk.assertions import Template

from hyperpod_cdk.catalog import hyperpod, instance_types
from hyperpod_cdk.catalog.sentences import in_python
from hyperpod_cdk.config.arguments import is_token
from hyperpod_cdk.hyperpod.instance_groups import Batch, InstanceGroup, Patching, Taint
from tests.support.tables import row_by_row
from tests.support.templates import app

SOLD_ALONE = [name for name in instance_types.names() if hyperpod.ultraserver(name) is None]
PLAN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/h100-april"
ROLE = "arn:aws-us-gov:iam::111122223333:role/nodes"
SCRIPTS = "s3://sagemaker-scripts/0123456789abcdef"

MIG, RESERVED = "nvidia.com/mig.config", "sagemaker.amazonaws.com"

Make = Callable[..., InstanceGroup]


@pytest.fixture(scope="module")
def stack() -> cdk.Stack:
    """A stack to hold what the groups refer to; the groups themselves put nothing into it."""
    return cdk.Stack(app(), "foreign")


@pytest.fixture(scope="module")
def make(stack: cdk.Stack) -> Make:
    """Makes a group that is good but for what is given."""
    subnet = ec2.Subnet.from_subnet_id(stack, "Subnet", "subnet-0123456789abcdef0")
    security_group = ec2.SecurityGroup.from_security_group_id(stack, "Group", "sg-0123456789abcdef0")

    def made(**given: Any) -> InstanceGroup:
        one = {} if "instance_types" in given else {"instance_type": "ml.p5.48xlarge", "capacity": "on_demand"}
        network = {"subnet": subnet, "security_groups": [security_group]}
        return InstanceGroup(**{"name": "workers", "count": 2, **network, **one, **given})

    return made


def refusal(make: Make, **given: Any) -> str:
    with pytest.raises(ValueError, match=r"workers|my_group") as raised:
        make(**given)
    return cast("str", raised.value.args[0])


def emitted(group: InstanceGroup) -> dict[str, Any]:
    """The group as an element of the template of a cluster."""
    own = cdk.Stack(app(), "foreign")
    sagemaker.CfnCluster(
        own,
        "Cluster",
        instance_groups=[group.cloudformation(execution_role_arn=ROLE, lifecycle_source_s3_uri=SCRIPTS)],
    )
    (cluster,) = Template.from_stack(own).find_resources("AWS::SageMaker::Cluster").values()
    (found,) = cluster["Properties"]["InstanceGroups"]
    return cast("dict[str, Any]", found)


PLAIN = {
    "InstanceGroupName": "workers",
    "InstanceType": "ml.p5.48xlarge",
    "InstanceCount": 2,
    "ExecutionRole": ROLE,
    "LifeCycleConfig": {"SourceS3Uri": SCRIPTS, "OnCreate": "on_create.sh"},
    "ThreadsPerCore": 2,
    "OverrideVpcConfig": {"SecurityGroupIds": ["sg-0123456789abcdef0"], "Subnets": ["subnet-0123456789abcdef0"]},
    "InstanceStorageConfigs": [{"EbsVolumeConfig": {"VolumeSizeInGB": 500}}],
}


class TestAdopted:
    def test_keeps_its_role_and_has_no_network(self, make: Make) -> None:
        own = "arn:aws:iam::111122223333:role/ml/own"
        plain = {key: value for key, value in PLAIN.items() if key != "OverrideVpcConfig"}
        assert emitted(make(execution_role_arn=own, cluster_network=True)) == {**plain, "ExecutionRole": own}

    def test_a_role_is_named_by_its_arn(self, make: Make) -> None:
        with pytest.raises(ValueError, match='execution_role_arn must be the ARN of an IAM role, got "own"'):
            make(execution_role_arn="own")


class TestCloudFormation:
    def test_a_plain_group(self, make: Make) -> None:
        assert emitted(make()) == PLAIN

    @pytest.mark.parametrize(
        ("given", "changes"),
        [
            ({"count": 0}, {"InstanceCount": 0}),
            ({"min_count": 2}, {"MinInstanceCount": 2}),
            ({"volume_gib": 1000}, {"InstanceStorageConfigs": [{"EbsVolumeConfig": {"VolumeSizeInGB": 1000}}]}),
            ({"threads_per_core": 1}, {"ThreadsPerCore": 1}),
            ({"capacity": "on_demand"}, {}),
            ({"capacity": "spot"}, {"CapacityRequirements": {"Spot": {}}}),
            ({"capacity": "training_plan", "training_plan_arn": PLAN}, {"TrainingPlanArn": PLAN}),
            (
                {"deep_health_checks": ["instance_stress", "instance_connectivity"]},
                {"OnStartDeepHealthChecks": ["InstanceStress", "InstanceConnectivity"]},
            ),
            ({"ami_id": "ami-0123456789abcdef0"}, {"ImageId": "ami-0123456789abcdef0"}),
            ({"ami_id": "default"}, {"ImageId": "default"}),
            ({"release_version": "1.2.3"}, {"ImageReleaseVersion": "1.2.3"}),
            (
                {"labels": {"team": "b", "example.com/fooBar_baz": "1.x"}},
                {"KubernetesConfig": {"Labels": {"example.com/fooBar_baz": "1.x", "team": "b"}}},
            ),
            (
                {"taints": [Taint(key="dedicated", value="gpu", effect="NoSchedule")]},
                {"KubernetesConfig": {"Taints": [{"Key": "dedicated", "Value": "gpu", "Effect": "NoSchedule"}]}},
            ),
            (
                {"taints": [Taint(key="dedicated", effect="NoExecute")]},
                {"KubernetesConfig": {"Taints": [{"Key": "dedicated", "Effect": "NoExecute"}]}},
            ),
            (
                {"on_create": "on_create_noop.sh"},
                {"LifeCycleConfig": {"SourceS3Uri": SCRIPTS, "OnCreate": "on_create_noop.sh"}},
            ),
            (
                {"on_init_complete": "on_init_complete.sh"},
                {"LifeCycleConfig": {"SourceS3Uri": SCRIPTS, "OnInitComplete": "on_init_complete.sh"}},
            ),
            ({"network_interface": "efa"}, {"NetworkInterface": {"InterfaceType": "efa"}}),
            ({"network_interface": "efa_only"}, {"NetworkInterface": {"InterfaceType": "efa-only"}}),
            (
                {"patching": Patching(strategy="when_idle", wait_seconds=60)},
                {
                    "AutoPatchConfig": {
                        "PatchingStrategy": "WhenIdle",
                        "DeploymentConfig": {"WaitIntervalInSeconds": 60},
                    }
                },
            ),
            (
                {"patching": Patching(strategy="when_all_idle")},
                {"AutoPatchConfig": {"PatchingStrategy": "WhenAllIdle"}},
            ),
            (
                {"patching": Patching(schedule="cron(0 3 ? * SUN *)")},
                {"ScheduledUpdateConfig": {"ScheduleExpression": "cron(0 3 ? * SUN *)"}},
            ),
            (
                {
                    "patching": Patching(
                        schedule="cron(0 3 ? * SUN *)",
                        max_batch=Batch(instances=1),
                        rollback_batch=Batch(percent=10),
                        wait_seconds=60,
                        rollback_alarms=["node-deficit"],
                    )
                },
                {
                    "ScheduledUpdateConfig": {
                        "ScheduleExpression": "cron(0 3 ? * SUN *)",
                        "DeploymentConfig": {
                            "RollingUpdatePolicy": {
                                "MaximumBatchSize": {"Type": "INSTANCE_COUNT", "Value": 1},
                                "RollbackMaximumBatchSize": {"Type": "CAPACITY_PERCENTAGE", "Value": 10},
                            },
                            "WaitIntervalInSeconds": 60,
                            "AutoRollbackConfiguration": [{"AlarmName": "node-deficit"}],
                        },
                    }
                },
            ),
        ],
        ids=lambda given: " ".join(given) if isinstance(given, dict) else None,
    )
    def test_each_choice_changes_one_property(self, make: Make, given: dict[str, Any], changes: dict[str, Any]) -> None:
        assert emitted(make(**given)) == {**PLAIN, **changes}

    def test_no_second_volume(self, make: Make) -> None:
        without = {key: value for key, value in PLAIN.items() if key != "InstanceStorageConfigs"}
        assert emitted(make(volume_gib=None)) == without

    @pytest.mark.parametrize("volume_gib", [1000, None])
    def test_one_key_for_both_volumes(self, make: Make, volume_gib: int | None) -> None:
        key = "arn:aws-us-gov:kms:us-gov-west-1:111122223333:key/0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
        second = {"VolumeSizeInGB": volume_gib, "VolumeKmsKeyId": key}
        root = {"RootVolume": True, "VolumeKmsKeyId": key}
        assert emitted(make(volume_gib=volume_gib, volume_kms_key_arn=key))["InstanceStorageConfigs"] == [
            {"EbsVolumeConfig": volume} for volume in ([second, root] if volume_gib else [root])
        ]

    def test_a_flexible_group_keeps_the_order_of_its_types(self, make: Make) -> None:
        group = make(instance_types=["ml.p5en.48xlarge", "ml.p5.48xlarge"], capacity="on_demand")

        expected = {key: value for key, value in PLAIN.items() if key != "InstanceType"}
        expected["InstanceRequirements"] = {"InstanceTypes": ["ml.p5en.48xlarge", "ml.p5.48xlarge"]}
        assert emitted(group) == expected


class TestThreadsPerCore:
    @row_by_row("name", instance_types.names())
    def test_is_two_where_the_type_has_smt(self, make: Make, name: str) -> None:
        row = instance_types.get(name)
        assert row is not None

        is_planned = hyperpod.ultraserver(name) is not None
        capacity = {"capacity": "training_plan", "training_plan_arn": PLAN} if is_planned else {"capacity": "on_demand"}
        group = make(instance_type=name, **capacity)
        assert group.resolved_threads_per_core == (2 if row.has_smt else 1)

    @pytest.mark.parametrize(
        ("types", "threads"),
        [
            (["ml.m5.2xlarge", "ml.c5.2xlarge"], 2),
            (["ml.m6g.2xlarge", "ml.m7g.2xlarge"], 1),
            (["ml.m5.2xlarge", "ml.m6g.2xlarge"], 1),
        ],
    )
    def test_of_a_flexible_group_suits_every_type(self, make: Make, types: list[str], threads: int) -> None:
        assert make(instance_types=types).resolved_threads_per_core == threads

    @pytest.mark.parametrize("threads", [None, 1, 2])
    def test_of_a_misspelt_type_makes_no_difference(self, make: Make, threads: int | None) -> None:
        assert refusal(make, instance_type="ml.p5.48xlarg", threads_per_core=threads) == (
            f'instance group "workers": instance_type must be a HyperPod instance type known on {AS_OF}, '
            'got "ml.p5.48xlarg"; did you mean ml.p5.48xlarge? If not, state the type\'s numbers in stated_types'
        )
        assert refusal(
            make, instance_types=["ml.p5.48xlarge", "hopper"], capacity="spot", threads_per_core=threads
        ) == (
            f'instance group "workers": instance_types[1] must be a HyperPod instance type known on {AS_OF}, '
            'got "hopper"; set instance_types to one of the 209 known, or state the type\'s numbers in stated_types'
        )


AS_OF = instance_types.as_of()


class TestNeedsContinuous:
    def test_says_what(self, make: Make) -> None:
        flexible = make(instance_types=["ml.m5.2xlarge"])
        assert list(flexible.provisioning_problems("all_or_nothing")) == [
            (
                'instance_types a flexible group needs continuous provisioning, got provisioning="all_or_nothing"; set'
                ' provisioning="continuous", or name one instance_type'
            )
        ]
        assert list(flexible.provisioning_problems("continuous")) == []


BOUNDS = [
    ("count", hyperpod.INSTANCE_COUNT),
    ("volume_gib", hyperpod.VOLUME_GIB),
    ("threads_per_core", hyperpod.THREADS_PER_CORE),
]


class TestBounds:
    @pytest.mark.parametrize(("key", "bound"), BOUNDS)
    def test_both_ends_are_allowed(self, make: Make, key: str, bound: Any) -> None:
        make(**{key: bound.minimum})
        make(**{key: bound.maximum})

    @pytest.mark.parametrize(("key", "bound"), BOUNDS)
    @pytest.mark.parametrize("end", ["minimum", "maximum"])
    def test_beyond_is_refused_with_the_rule(self, make: Make, key: str, bound: Any, end: str) -> None:
        value = bound.minimum - 1 if end == "minimum" else bound.maximum + 1

        assert (
            refusal(make, **{key: value})
            == f'instance group "workers": {key} {in_python(bound.problem(value, key=key))}'
        )

    def test_says_the_whole_rule(self, make: Make) -> None:
        assert refusal(make, count=-1) == (
            'instance group "workers": count must be at least 0, got -1; set count to 0 or more'
        )

    def test_min_count_is_not_negative(self, make: Make) -> None:
        assert refusal(make, min_count=-1) == (
            'instance group "workers": min_count must be at least 0, got -1; set min_count to 0 or more'
        )

    @pytest.mark.parametrize(
        ("key", "allowed", "refused", "message"),
        [
            (
                "instance_types",
                SOLD_ALONE[:20],
                SOLD_ALONE[:21],
                "must hold at most 20 instance types, got 21; remove 1",
            ),
            (
                "labels",
                {f"l{n}": "v" for n in range(50)},
                {f"l{n}": "v" for n in range(51)},
                "must hold at most 50 labels, got 51; remove 1",
            ),
            (
                "taints",
                [Taint(key=f"t{n}", effect="NoSchedule") for n in range(50)],
                [Taint(key=f"t{n}", effect="NoSchedule") for n in range(51)],
                "must hold at most 50 taints, got 51; remove 1",
            ),
        ],
        ids=["instance_types", "labels", "taints"],
    )
    def test_lists_are_no_longer_than_aws_takes(
        self, make: Make, key: str, allowed: Any, refused: Any, message: str
    ) -> None:
        make(**{key: allowed, "capacity": "on_demand"})

        assert refusal(make, **{key: refused, "capacity": "on_demand"}) == f'instance group "workers": {key} {message}'

    @pytest.mark.parametrize(
        ("number", "message"),
        [
            (0, "must hold security groups, got none; add one"),
            (6, "must hold at most 5 security groups, got 6; remove 1"),
        ],
    )
    def test_one_to_five_security_groups(self, stack: cdk.Stack, make: Make, number: int, message: str) -> None:
        security_group = ec2.SecurityGroup.from_security_group_id(stack, f"Of{number}", "sg-0123456789abcdef0")

        got = refusal(make, security_groups=[security_group] * number)
        assert got == f'instance group "workers": security_groups {message}'


class TestWords:
    @pytest.mark.parametrize(
        ("given", "message"),
        [
            (
                {"name": "my_group"},
                (
                    "name must be 1 to 63 letters, digits and hyphens, beginning and ending with a "
                    'letter or digit, got "my_group"; set name="my-group"'
                ),
            ),
            (
                {"instance_type": "p5.48xlarge"},
                (
                    f'instance_type must be a HyperPod instance type known on {AS_OF}, got "p5.48xlarge"; did you mean '
                    "ml.p5.48xlarge? If not, state the type's numbers in stated_types"
                ),
            ),
            (
                {"capacity": "reserved"},
                ('capacity must be on_demand, spot or training_plan, got "reserved"; set capacity to one of these'),
            ),
            (
                {"capacity": "training_plan", "training_plan_arn": "h100-april"},
                (
                    'training_plan_arn must be the ARN of a training plan, got "h100-april"; '
                    "correct training_plan_arn, which must look like"
                    " arn:<partition>:sagemaker:<region>:<account>:training-plan/<name>"
                ),
            ),
            (
                {"deep_health_checks": ["instance_stres"]},
                (
                    'deep_health_checks[0] must be instance_stress or instance_connectivity, got "instance_stres"; did'
                    " you mean instance_stress?"
                ),
            ),
            (
                {"labels": {"-team": "a"}},
                (
                    "labels['-team'] must be a Kubernetes label key of 1 to 317 characters, got \"-team\"; set the key"
                    ' to "team"'
                ),
            ),
            (
                {"taints": [Taint(key="gpu", effect=cast("Any", "Never"))]},
                (
                    'taints[0].effect must be NoSchedule, PreferNoSchedule or NoExecute, got "Never"; set effect to one'
                    " of these"
                ),
            ),
            (
                {"ami_id": "ami-1"},
                (
                    'ami_id must be an AMI id (ami- and 8 to 17 hexadecimal digits) or "default", '
                    'got "ami-1"; correct ami_id, which must look like ami-0a1b2c3d4e5f67890'
                ),
            ),
            (
                {"on_create": "../on_create.sh"},
                (
                    "on_create must be the path of a script below the folder of lifecycle scripts, without / at its"
                    ' beginning, "." and "..", got "../on_create.sh"; set on_create="on_create.sh"'
                ),
            ),
            (
                {"release_version": "1.2"},
                (
                    'release_version must be a release version MAJOR.MINOR.PATCH, got "1.2"; correct release_version,'
                    " which must look like 1.2.3"
                ),
            ),
            (
                {"on_create": ""},
                (
                    'on_create must be the name of a script, 1 to 128 characters, got ""; correct on_create, which must'
                    " look like on_create.sh"
                ),
            ),
        ],
        ids=lambda given: " ".join(given) if isinstance(given, dict) else None,
    )
    def test_misuse_is_refused_with_the_whole_rule(self, make: Make, given: dict[str, Any], message: str) -> None:
        assert refusal(make, **given) == f'instance group "{given.get("name", "workers")}": {message}'

    def test_types_without_accelerator_need_no_capacity(self, make: Make) -> None:
        assert make(instance_type="ml.m5.2xlarge", capacity=None).capacity is None


class TestPatching:
    @pytest.mark.parametrize(
        ("patching", "message"),
        [
            (
                Patching(strategy=cast("Any", "drain_first")),
                (
                    'patching.strategy must be when_idle or when_all_idle, got "drain_first"; set strategy to one of'
                    " these"
                ),
            ),
            (
                Patching(schedule="rate(1 day)"),
                f"patching.schedule {hyperpod.CRON.problem('rate(1 day)', key='schedule')}",
            ),
            (
                Patching(schedule="cron(0 3 ? * SUN *)", max_batch=Batch(instances=0)),
                "patching.max_batch.instances must be at least 1, got 0; set instances to 1 or more",
            ),
            (
                Patching(schedule="cron(0 3 ? * SUN *)", max_batch=Batch(percent=101)),
                ("patching.max_batch.percent must be at most 100, got 101; set percent to 100 or less"),
            ),
            (
                Patching(schedule="cron(0 3 ? * SUN *)", wait_seconds=3601),
                "patching.wait_seconds must be at most 3600, got 3601; set wait_seconds to 3600 or less",
            ),
            (
                Patching(schedule="cron(0 3 ? * SUN *)", rollback_alarms=[f"a{n}" for n in range(11)]),
                "patching.rollback_alarms must hold at most 10 alarms, got 11; remove 1",
            ),
            (
                Patching(schedule="cron(0 3 ? * SUN *)", rollback_alarms=[" "]),
                (
                    "patching.rollback_alarms[0] must be the name of a CloudWatch alarm, 1 to 256 characters, "
                    'got " "; correct rollback_alarms[0], which must look like node-deficit'
                ),
            ),
        ],
    )
    def test_misuse_is_refused_with_the_whole_rule(self, make: Make, patching: Patching, message: str) -> None:
        assert refusal(make, patching=patching) == f'instance group "workers": {message}'

    def test_bounds_are_allowed(self, make: Make) -> None:
        alarms = [f"a{n}" for n in range(10)]
        for batch in (Batch(instances=1), Batch(percent=1), Batch(percent=100)):
            for wait in (0, 3600):
                make(patching=Patching(schedule="cron(0 3 ? * 7L 2027)", max_batch=batch, wait_seconds=wait))
        make(patching=Patching(schedule="cron(0 3 ? * SUN *)", rollback_alarms=alarms))


class TestRegion:
    @pytest.mark.parametrize(
        ("given", "problem"),
        [
            ({"availability_zone_id": "use1-az5"}, None),
            ({}, None),
            ({"capacity": "training_plan", "training_plan_arn": PLAN}, None),
            (
                {"capacity": "training_plan", "training_plan_arn": PLAN.replace("us-east-1", "us-west-2")},
                "training_plan_arn must be a plan in us-east-1, got one in us-west-2; name a plan of us-east-1",
            ),
        ],
    )
    def test_must_be_the_stacks(self, make: Make, given: dict[str, Any], problem: str | None) -> None:
        found = list(make(**given).place_problems(region="us-east-1", account="111122223333"))
        assert found == ([] if problem is None else [problem])

    @pytest.mark.parametrize(
        ("zone", "said"),
        [
            (
                "us-east-1a",
                (
                    'must be an availability zone ID such as use1-az1, got the name "us-east-1a", which means another'
                    " zone in each account; find its ID with 'aws ec2 describe-availability-zones --region us-east-1'"
                    " and set availability_zone_id to it"
                ),
            ),
            ("az5", 'must be an availability zone ID such as use1-az1, got "az5"; correct availability_zone_id'),
        ],
    )
    def test_a_zone_must_be_an_id(self, make: Make, zone: str, said: str) -> None:
        with pytest.raises(ValueError, match=re.escape(said)):
            make(availability_zone_id=zone)

    def test_a_zone_must_be_of_the_region(self, make: Make) -> None:
        there = make(availability_zone_id="usw2-az1")
        (problem,) = there.place_problems(region="us-east-1", account="111122223333")
        assert problem.startswith("availability_zone_id must be an availability zone ID of us-east-1 ")

    @pytest.mark.parametrize(
        ("role", "problem"),
        [
            ("arn:aws:iam::111122223333:role/ml/own", None),
            (
                "arn:aws:iam::444455556666:role/own",
                (
                    "execution_role_arn must be a role of account 111122223333 in the partition aws, got"
                    ' arn:aws:iam::444455556666:role/own; set execution_role_arn="arn:aws:iam::111122223333:role/own"'
                ),
            ),
        ],
    )
    def test_a_role_of_its_own_must_be_the_accounts(self, make: Make, role: str, problem: str | None) -> None:
        group = make(execution_role_arn=role)
        found = list(group.place_problems(region="us-east-1", account="111122223333"))
        assert found == ([] if problem is None else [problem])

    def test_nothing_is_compared_with_a_token(self, make: Make) -> None:
        group = make(
            availability_zone_id="usw2-az1",
            capacity="training_plan",
            training_plan_arn=PLAN,
            execution_role_arn="arn:aws:iam::444455556666:role/own",
        )

        assert list(group.place_problems(region=cdk.Aws.REGION, account=cdk.Aws.ACCOUNT_ID)) == []


class TestTokens:
    def test_are_known_without_asking_cdk(self, stack: cdk.Stack) -> None:
        number = cdk.CfnParameter(stack, "Number", type="Number")
        text = cdk.CfnParameter(stack, "Text")

        assert is_token(text.value_as_string)
        assert is_token(f"prefix-{text.value_as_string}")
        assert is_token(number.value_as_number)
        assert [value for value in ("", "text", "${AWS::Region}", 0, -1, 6758, None) if is_token(value)] == []

    def test_are_not_judged(self, stack: cdk.Stack, make: Make) -> None:
        text = cdk.Lazy.string(Late("!"))
        number = cast("int", cdk.CfnParameter(stack, "Count", type="Number").value_as_number)

        group = make(
            name=text,
            instance_type=text,
            count=number,
            min_count=number,
            threads_per_core=number,
            volume_gib=number,
            training_plan_arn=text,
            capacity="training_plan",
            ami_id=text,
            release_version=text,
            labels={"team": text},
            taints=[Taint(key=text, value=text, effect="NoSchedule")],
            on_create=text,
            patching=Patching(schedule=text, max_batch=Batch(percent=number), wait_seconds=number),
        )
        assert group.count == number


@jsii.implements(cdk.IStableStringProducer)
class Late:
    """Says its text at synthesis."""

    def __init__(self, text: str) -> None:
        self.text = text

    def produce(self) -> str:
        return self.text


class TestNodes:
    @pytest.mark.parametrize(
        ("given", "message"),
        [
            (
                {"network_interface": "ena"},
                'network_interface must be efa or efa_only, got "ena"; did you mean efa?',
            ),
            (
                {"labels": {"node-role.kubernetes.io/worker": "worker"}},
                (
                    "labels['node-role.kubernetes.io/worker'] must not be node-role.kubernetes.io/worker: kubelet sets"
                    " no labels of kubernetes.io and k8s.io, which Kubernetes reserves, except those of"
                    " kubelet.kubernetes.io and node.kubernetes.io; use a prefix of your own, such as"
                    " example.com/worker"
                ),
            ),
        ],
    )
    def test_misuse_is_refused_with_the_whole_rule(self, make: Make, given: dict[str, Any], message: str) -> None:
        assert refusal(make, **given) == f'instance group "workers": {message}'


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"instance_type": None}, "instance_type is missing;"),
    ({"instance_types": ["ml.m5.large", "ml.m5.large"]}, "instance_types[1] must be named once,"),
    ({"min_count": 3}, "min_count must be at most count,"),
    ({"instance_type": "ml.g5.2xlarge", "network_interface": "efa"}, "network_interface must be left out for"),
    ({"instance_type": "ml.p6e-gb200.36xlarge", "capacity": "spot"}, "capacity must be training_plan for"),
    ({"capacity": "training_plan"}, "training_plan_arn is missing,"),
    ({"capacity": None}, "capacity must say where ml.p5.48xlarge comes from (on_demand, spot or training_plan),"),
    ({"instance_type": "ml.m7g.2xlarge", "threads_per_core": 2}, "threads_per_core must be 1 for ml.m7g.2xlarge,"),
    ({"deep_health_checks": ["instance_stress"] * 2}, "deep_health_checks[1] must be named once,"),
    ({"taints": [Taint(key="gpu", effect="NoSchedule")] * 2}, "taints[1] must be unique by key and effect,"),
    ({"on_create": "a.sh", "on_init_complete": "b.sh"}, "on_init_complete cannot be set together with on_create,"),
    ({"labels": {MIG: "all-9g.99gb"}}, f"labels['{MIG}'] must partition ml.p5.48xlarge into MIG profiles"),
    ({"labels": {MIG: "ours"}}, f"labels['{MIG}'] must be a configuration that the dependency chart gives"),
    (
        {"instance_types": ["ml.p5.48xlarge"], "capacity": "spot", "labels": {MIG: "all-1g.10gb"}},
        f"labels['{MIG}'] must be left out of a flexible group,",
    ),
    ({"labels": {f"{RESERVED}/x": "y"}}, f"labels['{RESERVED}/x'] must not begin with {RESERVED}/,"),
    (
        {"taints": [Taint(key=f"{RESERVED}/x", effect="NoExecute")]},
        f"taints[0].key must not begin with {RESERVED}/,",
    ),
    ({"patching": Patching()}, "patching must have schedule or strategy, got neither;"),
    (
        {"patching": Patching(schedule="cron(0 3 ? * SUN *)", max_batch=Batch())},
        "patching.max_batch must have instances or percent,",
    ),
]


@row_by_row("given, begins", REFUSED)
def test_each_rule_of_the_catalog_is_applied(make: Make, given: dict[str, Any], begins: str) -> None:
    """The whole sentences: tests/catalog/test_instance_groups.py."""
    assert refusal(make, **given).startswith(f'instance group "workers": {begins}')


@row_by_row(
    "first, second",
    [pair for pair in itertools.combinations(REFUSED, 2) if not pair[0][0].keys() & pair[1][0].keys()],
)
def test_what_is_wrong_is_said_at_once(
    make: Make, first: tuple[dict[str, Any], str], second: tuple[dict[str, Any], str]
) -> None:
    lines = refusal(make, **first[0], **second[0]).splitlines()
    for given, begins in (first, second):
        alone = refusal(make, **given)
        if alone in lines:
            continue
        # a rule that reads both values says something else, or nothing more, of the two together
        assert alone.startswith(f'instance group "workers": {begins}')
        assert given.keys() & OF_SEVERAL, (given, lines)


OF_SEVERAL = {"instance_type", "instance_types", "capacity", "labels", "network_interface"}
"""Arguments that rules about other ones read."""


@pytest.mark.parametrize(
    ("given", "lines"),
    [
        (
            {"count": -1, "min_count": -2, "ami_id": "ours", "taints": [Taint(key="gpu", effect="NoSchedule")] * 2},
            [
                "count must be at least 0, got -1; set count to 0 or more",
                "min_count must be at least 0, got -2; set min_count to 0 or more",
                (
                    'ami_id must be an AMI id (ami- and 8 to 17 hexadecimal digits) or "default", got "ours"; correct'
                    " ami_id, which must look like ami-0a1b2c3d4e5f67890"
                ),
                (
                    'taints[1] must be unique by key and effect, got "gpu" with NoSchedule as in taints[0]; remove one'
                    " of the two"
                ),
            ],
        ),
        # what a wrong value would have to be compared with is not
        (
            {"count": -1, "min_count": 4, "threads_per_core": 3},
            [
                "count must be at least 0, got -1; set count to 0 or more",
                "threads_per_core must be at most 2, got 3; set threads_per_core to 2 or less",
            ],
        ),
    ],
)
def test_every_wrong_value_has_a_line(make: Make, given: dict[str, Any], lines: list[str]) -> None:
    with pytest.raises(ValueError, match="instance group") as raised:
        make(**given)
    where = f'instance group "{given.get("name", "workers")}": '
    assert str(raised.value).splitlines() == [where + line for line in lines]


@pytest.mark.parametrize(
    ("given", "lines"),
    [
        # of what has another type nothing else is said
        (
            {"count": None, "min_count": -2, "labels": ["a"], "taints": "gpu", "security_groups": None},
            [
                "count: must be a whole number, got None; write count in digits",
                "labels: must be a mapping, got a list; write labels={...}",
                'taints: must be a list, got "gpu"; write taints=["gpu"]',
                "security_groups: must be a list, got None; write security_groups=[...]",
            ],
        ),
        (
            {"taints": [{"key": "gpu", "effect": "NoSchedule"}], "patching": {"schedule": "cron(0 3 ? * SUN *)"}},
            [
                "taints[0]: must be a Taint, got a mapping; write taints[0]=Taint(...)",
                "patching: must be a Patching, got a mapping; write patching=Patching(...)",
            ],
        ),
        # a group without a subnet would use the cluster's own, in another zone
        ({"subnet": None}, ["subnet: must be an aws_ec2.ISubnet, got None; pass such a construct"]),
    ],
)
def test_every_value_of_another_type_has_a_line(make: Make, given: dict[str, Any], lines: list[str]) -> None:
    with pytest.raises(ValueError, match="must be a") as raised:
        make(**given)
    assert sorted(str(raised.value).splitlines()) == sorted(lines)
