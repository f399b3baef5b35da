"""Checks of finished templates: each own rule passes and fails, the engine's findings come through."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_sagemaker as sagemaker
from aws_cdk import aws_sqs as sqs

from hyperpod_cdk.findings import Finding, Severity
from hyperpod_cdk.templates.cdk_plugin import LEFT_OUT, RULES, TemplateChecks, check_templates

Write = Callable[..., Path]

GROUP = {"Ref": "Efa"}
NETWORK: dict[str, Any] = {
    "Vpc": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/16"}},
    "Subnet": {
        "Type": "AWS::EC2::Subnet",
        "Properties": {"VpcId": {"Ref": "Vpc"}, "CidrBlock": "10.0.0.0/20", "AvailabilityZoneId": "use1-az5"},
    },
    "Efa": {
        "Type": "AWS::EC2::SecurityGroup",
        "Properties": {
            "GroupDescription": "EFA",
            "VpcId": {"Ref": "Vpc"},
            "SecurityGroupEgress": [{"CidrIp": each, "IpProtocol": "-1"} for each in ("0.0.0.0/1", "128.0.0.0/1")],
        },
    },
    "In": {
        "Type": "AWS::EC2::SecurityGroupIngress",
        "Properties": {
            "GroupId": {"Fn::GetAtt": ["Efa", "GroupId"]},
            "SourceSecurityGroupId": {"Fn::GetAtt": ["Efa", "GroupId"]},
            "IpProtocol": "-1",
        },
    },
    "Out": {
        "Type": "AWS::EC2::SecurityGroupEgress",
        "Properties": {"GroupId": GROUP, "DestinationSecurityGroupId": GROUP, "IpProtocol": "-1"},
    },
}
NETWORK["S3"] = {
    "Type": "AWS::EC2::VPCEndpoint",
    "Properties": {
        "VpcId": {"Ref": "Vpc"},
        "ServiceName": {"Fn::Sub": "com.amazonaws.${AWS::Region}.s3"},
        "VpcEndpointType": "Gateway",
    },
}
OUTPUTS = {
    "Group": {"Value": {"Fn::GetAtt": ["Efa", "GroupId"]}, "Export": {"Name": "network:Efa"}},
    "SubnetId": {"Value": {"Ref": "Subnet"}, "Export": {"Name": "network:Subnet"}},
}
VPC_CONFIG = {
    "SecurityGroupIds": [{"Fn::ImportValue": "network:Efa"}],
    "Subnets": [{"Fn::ImportValue": "network:Subnet"}],
}
CLUSTER: dict[str, Any] = {
    "Cluster": {
        "Type": "AWS::SageMaker::Cluster",
        "DeletionPolicy": "Retain",
        "UpdateReplacePolicy": "Retain",
        "Properties": {
            "ClusterName": "prod",
            "Orchestrator": {"Eks": {"ClusterArn": {"Fn::ImportValue": "control-plane:Arn"}}},
            "NodeRecovery": "Automatic",
            "NodeProvisioningMode": "Continuous",
            "VpcConfig": VPC_CONFIG,
            "InstanceGroups": [
                {
                    "InstanceGroupName": "h100",
                    "InstanceType": "ml.p5.48xlarge",
                    "InstanceCount": 2,
                    "ExecutionRole": {"Fn::Sub": "arn:${AWS::Partition}:iam::${AWS::AccountId}:role/node"},
                    "LifeCycleConfig": {"OnCreate": "on_create.sh", "SourceS3Uri": "s3://sagemaker-prod/abc"},
                    "ThreadsPerCore": 2,
                    "OnStartDeepHealthChecks": ["InstanceStress", "InstanceConnectivity"],
                    "OverrideVpcConfig": VPC_CONFIG,
                }
            ],
            "Tags": [{"Key": "SageMaker", "Value": "true"}],
        },
    }
}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a template and give its path."""

    def write(name: str, resources: dict[str, Any], outputs: dict[str, Any] | None = None) -> Path:
        path = tmp_path / f"{name}.template.json"
        path.write_text(json.dumps({"Resources": resources, **({"Outputs": outputs} if outputs else {})}, indent=1))
        return path

    return write


def errors(findings: list[Finding]) -> list[tuple[str, str, str]]:
    return [(each.rule, each.path, each.message) for each in findings if each.severity is Severity.ERROR]


def changed(resources: dict[str, Any], change: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    copy = deepcopy(resources)
    change(copy)
    return copy


def test_a_sound_app_has_nothing_to_say(write: Write) -> None:
    assert check_templates([write("network", NETWORK, OUTPUTS), write("hyperpod", CLUSTER)], region="us-east-1") == []


def test_get_azs(write: Write) -> None:
    bad = changed(NETWORK, lambda r: r["Vpc"]["Properties"].update(Tags=[{"Key": "a", "Value": {"Fn::GetAZs": ""}}]))

    (finding,) = [each for each in check_templates([write("n", bad)]) if each.rule in RULES]
    assert finding.rule == "no-get-azs"
    assert finding.path == "Vpc Properties.Tags.0.Value"
    assert finding.message == (
        "must not use Fn::GetAZs, whose zones differ from account to account; name Availability Zone IDs"
    )


@pytest.mark.parametrize("value", ["dummy1a", "dummy1b", "dummy1c", "vpc-12345", "s-12345", "dummy-value-for-/ssm/x"])
def test_what_cdk_puts_in_place_of_a_lookup(write: Write, value: str) -> None:
    queue = {"Queue": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": value}}}

    (finding,) = [each for each in check_templates([write("q", queue)]) if each.rule == "no-dummy-values"]
    assert (finding.severity, finding.path) == (Severity.ERROR, "Queue Properties.QueueName")
    assert finding.message == (
        f"must be a real value, got {value}, which is CDK's placeholder without a lookup; pass the value instead of "
        "a lookup"
    )


@pytest.mark.parametrize("value", ["dummy-queue", "not-dummy1a", "vpc-0123456789abcdef0"])
def test_a_user_may_call_things_dummy(write: Write, value: str) -> None:
    queue = {"Queue": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": value}}}

    assert [each for each in check_templates([write("q", queue)]) if each.rule == "no-dummy-values"] == []


@pytest.mark.parametrize(
    ("arn", "said"),
    [
        ("arn:aws:iam::aws:policy/ReadOnlyAccess", "arn:aws:iam::aws:policy/ReadOnlyAccess"),
        ({"Fn::Join": ["", ["arn:aws:iam::", {"Ref": "AWS::AccountId"}, ":policy/x"]]}, "arn:aws:iam::"),
        ({"Fn::Sub": "arn:aws-cn:s3:::${Bucket}"}, "arn:aws-cn:s3:::${Bucket}"),
        ("arn:aws:iam::111122223333:policy/x", None),
        ({"Fn::Sub": "arn:${AWS::Partition}:iam::aws:policy/x"}, None),
        ("darn:it", None),
    ],
    ids=["whole", "joined", "china", "of an account", "token", "other"],
)
def test_partition_from_token(write: Write, arn: Any, said: str | None) -> None:
    role = {
        "Bucket": {"Type": "AWS::S3::Bucket"},
        "Role": {
            "Type": "AWS::IAM::Role",
            "Metadata": {"aws:cdk:path": "prod/hyperpod/Role/Resource"},
            "Properties": {"AssumeRolePolicyDocument": {}, "Description": arn},
        },
    }

    found = [each for each in check_templates([write("r", role)]) if each.rule == "partition-from-token"]
    if said is None:
        assert found == []
        return
    (finding,) = found
    assert finding.path.startswith("prod/hyperpod/Role/Resource Properties.Description")
    service = said.split(":")[2]
    assert finding.message == (f"must use AWS::Partition, got {said}; write arn:${{AWS::Partition}}:{service}")


@pytest.mark.parametrize("zone", ["us-east-1a", {"Fn::Select": [0, ["us-east-1a"]]}], ids=["name", "expression"])
def test_subnets_name_zones_by_id(write: Write, zone: Any) -> None:
    bad = changed(NETWORK, lambda r: r["Subnet"]["Properties"].update(AvailabilityZone=zone))

    (finding,) = [each for each in check_templates([write("n", bad)]) if each.rule == "subnet-zone-by-id"]
    shown = zone if isinstance(zone, str) else '{"Fn::Select": [0, ["us-east-1a"]]}'
    assert finding.path == "Subnet Properties.AvailabilityZone"
    assert finding.message == f"must name its zone by ID, got the name {shown}; set AvailabilityZoneId"


@pytest.mark.parametrize(
    ("tags", "got"),
    [([], "none"), ([{"Key": "SageMaker", "Value": "yes"}], "yes"), ([{"Key": "sagemaker", "Value": "true"}], "none")],
)
def test_the_cluster_is_tagged(write: Write, tags: list[dict[str, str]], got: str) -> None:
    bad = changed(CLUSTER, lambda r: r["Cluster"]["Properties"].update(Tags=tags))

    found = errors(check_templates([write("network", NETWORK, OUTPUTS), write("hyperpod", bad)], region="us-east-1"))
    assert found == [
        (
            "cluster-tag",
            "Cluster Properties.Tags",
            (
                f"must have the tag SageMaker=true, got {got}; without it the training operator cannot read the "
                'nodes; add {"Key": "SageMaker", "Value": "true"}'
            ),
        )
    ]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("OverrideVpcConfig", "so that its subnet never depends on the cluster's"),
        ("ThreadsPerCore", "which an update that omits it resets"),
        ("LifeCycleConfig", "without which its nodes are not prepared"),
    ],
)
def test_every_instance_group_is_complete(write: Write, name: str, why: str) -> None:
    bad = changed(CLUSTER, lambda r: r["Cluster"]["Properties"]["InstanceGroups"][0].pop(name))

    found = errors(check_templates([write("network", NETWORK, OUTPUTS), write("hyperpod", bad)], region="us-east-1"))
    assert found == [
        (
            "instance-group-complete",
            "Cluster Properties.InstanceGroups.0",
            f"instance group h100 must state {name}, {why}; set it",
        )
    ]


@pytest.mark.parametrize(
    ("name", "messages"),
    [
        ("ThreadsPerCore", ["must state ThreadsPerCore, which an update that omits it resets; set it"]),
        ("LifeCycleConfig", []),
    ],
)
def test_a_restricted_group_runs_no_scripts(write: Write, name: str, messages: list[str]) -> None:
    def restricted(resources: dict[str, Any]) -> None:
        properties = resources["Cluster"]["Properties"]
        properties["RestrictedInstanceGroups"] = [{**properties["InstanceGroups"][0], "InstanceGroupName": "nova"}]
        del properties["RestrictedInstanceGroups"][0][name]
        properties["RestrictedInstanceGroups"][0].pop("LifeCycleConfig", None)

    bad = changed(CLUSTER, restricted)
    found = errors(check_templates([write("network", NETWORK, OUTPUTS), write("hyperpod", bad)], region="us-east-1"))
    assert found == [
        ("instance-group-complete", "Cluster Properties.RestrictedInstanceGroups.0", f"instance group nova {message}")
        for message in messages
    ]


@pytest.mark.parametrize(("removed", "side"), [("In", "ingress"), ("Out", "egress")])
def test_efa_needs_the_group_to_allow_itself_both_ways(write: Write, removed: str, side: str) -> None:
    bad = changed(NETWORK, lambda r: r.pop(removed))

    found = errors(check_templates([write("network", bad, OUTPUTS), write("hyperpod", CLUSTER)], region="us-east-1"))
    message = (
        f"must have a security group with {side} of all traffic from and to itself by its ID (EFA health checks fail "
        f"without it), got Efa; add the self-referencing {side} rule"
    )
    assert found == [
        ("efa-security-group", "Cluster Properties.VpcConfig.SecurityGroupIds", message),
        ("efa-security-group", "Cluster Properties.InstanceGroups.0.OverrideVpcConfig.SecurityGroupIds", message),
    ]


def test_self_rules_inline_count_and_a_cidr_does_not(write: Write) -> None:
    def inline(resources: dict[str, Any]) -> None:
        del resources["In"]
        resources["Efa"]["Properties"]["SecurityGroupIngress"] = [
            {"SourceSecurityGroupId": {"Ref": "Efa"}, "IpProtocol": "-1"}
        ]

    def by_cidr(resources: dict[str, Any]) -> None:
        resources["In"]["Properties"] = {"GroupId": GROUP, "CidrIp": "10.0.0.0/16", "IpProtocol": "-1"}

    def one_port(resources: dict[str, Any]) -> None:
        resources["In"]["Properties"].update(IpProtocol="tcp", FromPort=22, ToPort=22)

    rules = {}
    for change in (inline, by_cidr, one_port):
        paths = [write("network", changed(NETWORK, change), OUTPUTS), write("hyperpod", CLUSTER)]
        rules[change.__name__] = {each.rule for each in check_templates(paths) if each.rule in RULES}
    assert rules == {"inline": set(), "by_cidr": {"efa-security-group"}, "one_port": {"efa-security-group"}}


def test_a_security_group_from_elsewhere_cannot_be_judged(write: Write) -> None:
    def imported(resources: dict[str, Any]) -> None:
        for holder in (
            resources["Cluster"]["Properties"]["VpcConfig"],
            resources["Cluster"]["Properties"]["InstanceGroups"][0]["OverrideVpcConfig"],
        ):
            holder["SecurityGroupIds"] = ["sg-0123456789abcdef0"]

    assert check_templates([write("hyperpod", changed(CLUSTER, imported))], region="us-east-1") == []
    assert check_templates([write("hyperpod", CLUSTER)], region="us-east-1") == []


def test_every_own_rule_has_an_id() -> None:
    assert RULES == (
        "no-get-azs",
        "no-dummy-values",
        "partition-from-token",
        "subnet-zone-by-id",
        "cluster-tag",
        "instance-group-complete",
        "efa-security-group",
        "kept-egress",
        "node-role",
        "policies-fit",
        "lifecycle-bucket",
        "kept-on-delete",
        "node-recovery",
        "provisioning-mode",
        "deep-health-checks",
        "group-in-one-zone",
        "node-subnet-size",
        "lustre-zone",
        "s3-gateway-endpoint",
        "world-ingress",
        "eks-administrators",
        "eks-public-endpoint",
        "eks-audit-log",
        "eks-authentication",
        "kubernetes-version",
        "imports-are-exported",
    )


def test_the_engines_errors_and_warnings_come_through(write: Write) -> None:
    resources = {
        "Queue": {
            "Type": "AWS::SQS::Queue",
            "Metadata": {"aws:cdk:path": "prod/platform/Queue/Resource"},
            "Properties": {"Color": "red"},
        },
        "Function": {
            "Type": "AWS::Lambda::Function",
            "Properties": {
                "Code": {"ZipFile": "x"},
                "Role": {"Ref": "Queue"},
                "Runtime": "python3.6",
                "Handler": "i.h",
            },
        },
    }
    path = write("q", resources)

    found = check_templates([path], region="us-east-1")
    (unknown,) = [each for each in found if "Color" in each.message]
    assert unknown.severity is Severity.ERROR
    assert unknown.path.startswith("prod/platform/Queue/Resource")
    assert (unknown.file, unknown.line) == (str(path), 9)
    assert any("python3.6" in each.message for each in found)


def test_a_cluster_of_many_groups_is_read_in_pieces_and_reported_as_one(write: Write) -> None:
    def many(resources: dict[str, Any]) -> None:
        properties = resources["Cluster"]["Properties"]
        (group,) = properties["InstanceGroups"]
        properties["Color"] = "red"
        properties["InstanceGroups"] = [{**group, "InstanceGroupName": f"group-{index}"} for index in range(25)]
        properties["InstanceGroups"][7]["Color"] = properties["InstanceGroups"][23]["Color"] = "red"

    found = [each for each in check_templates([write("c", changed(CLUSTER, many))]) if "Color" in each.message]

    assert sorted((each.path, each.line) for each in found) == [
        ("Cluster Properties.Color", None),
        ("Cluster Properties.InstanceGroups.23.Color", None),
        ("Cluster Properties.InstanceGroups.7.Color", None),
    ]


def test_regions_are_distinguished(write: Write) -> None:
    policy = {
        "Policy": {
            "Type": "AWS::SageMaker::ClusterSchedulerConfig",
            "Properties": {
                "Name": "prod",
                "ClusterArn": {"Fn::Sub": "arn:${AWS::Partition}:sagemaker:us-east-1:${AWS::AccountId}:cluster/a"},
                "SchedulerConfig": {},
            },
        }
    }

    told = check_templates([write("p", policy)], region="us-west-2")
    # a dated list: AWS brings types to more regions every month
    assert [(each.rule, each.severity) for each in told] == [("F3006", Severity.WARNING)]
    assert "F3006" not in {each.rule for each in check_templates([write("p", policy)], region="us-east-1")}


def test_the_engines_incomplete_region_list_is_left_out(write: Write) -> None:
    def rare(resources: dict[str, Any]) -> None:
        resources["Cluster"]["Properties"]["InstanceGroups"][0]["InstanceType"] = "ml.p5e.48xlarge"

    paths = [write("network", NETWORK, OUTPUTS), write("hyperpod", changed(CLUSTER, rare))]
    assert check_templates(paths, region="us-east-1") == []
    assert set(LEFT_OUT) == {"E3644", "W9002", "W9013"}
    assert all(len(reason) > 20 for reason in LEFT_OUT.values())


def test_a_template_that_is_no_template(tmp_path: Path) -> None:
    path = tmp_path / "x.template.json"
    path.write_text("{}")

    (finding,) = errors(check_templates([path]))
    assert "Resources" in finding[2]


def test_the_plugin_fails_a_synthesis_with_the_construct_path(tmp_path: Path) -> None:
    app = cdk.App(outdir=str(tmp_path), builtin_cloud_formation_validation=False)
    stage = cdk.Stage(app, "prod")
    stack = cdk.Stack(stage, "hyperpod", env=cdk.Environment(region="us-east-1"))
    sagemaker.CfnCluster(stack, "Cluster", cluster_name="prod")
    cdk.Validations.of(app).add_plugins(TemplateChecks())

    with pytest.raises(RuntimeError, match=r"(?s)ValidationFailed: .*Acknowledge with 'hyperpod-cdk::cluster-tag'"):
        app.synth()

    report = json.loads((tmp_path / "validation-report.json").read_text())
    (plugin,) = report["pluginReports"]
    assert plugin["pluginName"] == "hyperpod-cdk"
    violation = next(each for each in plugin["violations"] if each["ruleName"] == "cluster-tag")
    (construct,) = violation["violatingConstructs"]
    assert construct["constructPath"] == "prod/hyperpod/Cluster"
    assert construct["cloudFormationResource"]["propertyPaths"] == ["Properties.Tags"]


def test_the_plugin_lets_a_sound_app_pass(tmp_path: Path) -> None:
    app = cdk.App(outdir=str(tmp_path), builtin_cloud_formation_validation=False)
    network = cdk.Stack(app, "network", env=cdk.Environment(account="111122223333", region="us-east-1"))
    vpc = ec2.CfnVPC(network, "Vpc", cidr_block="10.0.0.0/16")
    ec2.CfnSubnet(network, "Subnet", vpc_id=vpc.ref, cidr_block="10.0.0.0/24", availability_zone_id="use1-az5")
    sqs.CfnQueue(cdk.Stack(app, "other", env=cdk.Environment(region="ap-south-2")), "Queue")
    sqs.CfnQueue(cdk.Stack(app, "agnostic"), "Queue")
    cdk.Validations.of(app).add_plugins(TemplateChecks())

    app.synth()


def test_a_finding_can_be_acknowledged(tmp_path: Path) -> None:
    app = cdk.App(outdir=str(tmp_path), builtin_cloud_formation_validation=False)
    stack = cdk.Stack(app, "network", env=cdk.Environment(account="111122223333", region="us-east-1"))
    vpc = ec2.CfnVPC(stack, "Vpc", cidr_block="10.0.0.0/16")
    subnet = ec2.CfnSubnet(stack, "Subnet", vpc_id=vpc.ref, cidr_block="10.0.0.0/24", availability_zone="us-east-1a")
    cdk.Validations.of(app).add_plugins(TemplateChecks())
    for rule in ("hyperpod-cdk::subnet-zone-by-id", "hyperpod-cdk::W3010"):
        cdk.Validations.of(subnet).acknowledge(cdk.Acknowledgment(id=rule, reason="a test of one zone"))

    app.synth()


@pytest.mark.parametrize(
    ("metadata", "found"),
    [
        ({}, ["subnet-zone-by-id"]),
        ({"cfn-lint": {"config": {"ignore_checks": ["W3010"]}}}, ["subnet-zone-by-id"]),
        ({"cfn-lint": {"config": {"ignore_checks": ["subnet-zone-by-id"]}}}, []),
    ],
)
def test_a_resource_may_silence_a_rule(write: Write, metadata: dict[str, Any], found: list[str]) -> None:
    properties = {"VpcId": {"Ref": "Vpc"}, "CidrBlock": "10.0.0.0/24", "AvailabilityZone": {"Ref": "Zone"}}
    path = write(
        "network",
        {
            "Vpc": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/16"}},
            "Zone": {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": "us-east-1a"}},
            "Subnet": {"Type": "AWS::EC2::Subnet", "Properties": properties, "Metadata": metadata},
        },
    )

    assert [finding.rule for finding in check_templates([path], region="us-east-1")] == found


def test_the_plugin_keeps_stages_apart(tmp_path: Path) -> None:
    stages = {"a": changed(NETWORK, lambda r: r.pop("Out")), "a-b": NETWORK}
    stacks = []
    for stage, network in stages.items():
        for name, template in (
            ("network", {"Resources": network, "Outputs": OUTPUTS}),
            # of a construct within its stage, whose path the other stage's stands before
            ("pods/pod", {"Resources": CLUSTER}),
        ):
            path = tmp_path / stage / f"{Path(name).name}.template.json"
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps(template))
            stacks.append(
                SimpleNamespace(
                    template_path=str(path), stack_construct_path=f"{stage}/{name}", region="us-east-1", account_id=None
                )
            )

    report = TemplateChecks().validate(
        cast("cdk.IPolicyValidationContext", SimpleNamespace(stack_templates=stacks[::-1]))
    )

    assert not report.success
    assert {(each.rule_name, each.violating_resources[0].template_path) for each in report.violations} == {
        ("efa-security-group", str(tmp_path / "a" / "pod.template.json"))
    }


def test_the_plugin_names_its_rules_and_version() -> None:
    plugin = TemplateChecks()

    assert plugin.rule_ids[: len(RULES)] == list(RULES)
    assert "E3012" in plugin.rule_ids
    assert not set(LEFT_OUT) & set(plugin.rule_ids)
    assert plugin.version.count(".") == 2
