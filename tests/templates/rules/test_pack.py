"""The policy pack on templates made by hand: each rule that has no test with the plugin passes and fails here."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hyperpod_cdk.config import extensions
from hyperpod_cdk.findings import Severity
from hyperpod_cdk.templates.assembly import Assembly, Stack
from hyperpod_cdk.templates.rules import RULES, TABLE
from hyperpod_cdk.templates.rules.pack import problems
from hyperpod_cdk.templates.rules.rule import Context, Spot
from tests.support.tables import row_by_row
from tests.support.unknown_values import UNKNOWN, with_unknown

Resources = dict[str, Any]
Change = Callable[[Resources], Any]

KEPT = {"DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain"}
SOUND: Resources = {
    "Vpc": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/16"}},
    "S3": {
        "Type": "AWS::EC2::VPCEndpoint",
        "Properties": {"VpcId": {"Ref": "Vpc"}, "ServiceName": {"Fn::Sub": "com.amazonaws.${AWS::Region}.s3"}},
    },
    "Near": {
        "Type": "AWS::EC2::Subnet",
        "Properties": {"VpcId": {"Ref": "Vpc"}, "CidrBlock": "10.0.0.0/23", "AvailabilityZoneId": "use1-az5"},
    },
    "Far": {
        "Type": "AWS::EC2::Subnet",
        "Properties": {"VpcId": {"Ref": "Vpc"}, "CidrBlock": "10.0.2.0/23", "AvailabilityZoneId": "use1-az4"},
    },
    "Sg": {
        "Type": "AWS::EC2::SecurityGroup",
        "Properties": {
            "VpcId": {"Ref": "Vpc"},
            "SecurityGroupIngress": [{"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, "CidrIp": "10.0.0.0/16"}],
        },
    },
    "EfaIn": {
        "Type": "AWS::EC2::SecurityGroupIngress",
        "Properties": {"GroupId": {"Ref": "Sg"}, "SourceSecurityGroupId": {"Ref": "Sg"}, "IpProtocol": -1},
    },
    "EfaOut": {
        "Type": "AWS::EC2::SecurityGroupEgress",
        "Properties": {"GroupId": {"Ref": "Sg"}, "DestinationSecurityGroupId": {"Ref": "Sg"}, "IpProtocol": "-1"},
    },
    "Files": {
        "Type": "AWS::FSx::FileSystem",
        **KEPT,
        "Properties": {"FileSystemType": "LUSTRE", "SubnetIds": [{"Ref": "Near"}]},
    },
    "Bucket": {
        "Type": "AWS::S3::Bucket",
        "Properties": {
            "BucketName": {"Fn::Sub": "sagemaker-scripts-${AWS::AccountId}"},
            "PublicAccessBlockConfiguration": {"BlockPublicAcls": True},
        },
    },
    "Role": {
        "Type": "AWS::IAM::Role",
        "Properties": {
            "ManagedPolicyArns": [
                {"Fn::Sub": "arn:${AWS::Partition}:iam::aws:policy/AmazonSageMakerClusterInstanceRolePolicy"}
            ],
            "Policies": [
                {
                    "PolicyDocument": {
                        "Statement": {"Effect": "Allow", "Action": "ec2:Describe*", "Resource": "*"},
                    }
                }
            ],
        },
    },
    "Eks": {
        "Type": "AWS::EKS::Cluster",
        **KEPT,
        "Properties": {
            "Version": "1.35",
            "AccessConfig": {"AuthenticationMode": "API"},
            "Logging": {"ClusterLogging": {"EnabledTypes": [{"Type": "audit"}]}},
            "ResourcesVpcConfig": {"PublicAccessCidrs": ["203.0.113.0/24"], "SubnetIds": []},
        },
    },
    "Pod": {
        "Type": "AWS::SageMaker::Cluster",
        **KEPT,
        "Properties": {
            "NodeRecovery": "Automatic",
            "NodeProvisioningMode": "Continuous",
            "Orchestrator": {"Eks": {"ClusterArn": {"Fn::GetAtt": ["Eks", "Arn"]}}},
            "Tags": [{"Key": "SageMaker", "Value": "true"}],
            "VpcConfig": {"SecurityGroupIds": [{"Ref": "Sg"}], "Subnets": [{"Ref": "Near"}]},
            "InstanceGroups": [
                {
                    "InstanceGroupName": "gpu",
                    "InstanceType": "ml.p5.48xlarge",
                    "InstanceCount": 6,
                    "ThreadsPerCore": 2,
                    "ExecutionRole": {"Fn::GetAtt": ["Role", "Arn"]},
                    "OnStartDeepHealthChecks": ["InstanceStress"],
                    "LifeCycleConfig": {"OnCreate": "a.sh", "SourceS3Uri": {"Fn::Sub": "s3://${Bucket}/v1"}},
                    "OverrideVpcConfig": {"SecurityGroupIds": [{"Ref": "Sg"}], "Subnets": [{"Ref": "Near"}]},
                }
            ],
        },
    },
}
STAYS = "must be retained when its stack is deleted or replaces it, to keep {}, got {}; set {}"
NARROW = (
    "must give the nodes only the permissions that they use, because every pod on the host network has them, too, "
    "got {}; name actions and resources"
)
NOBODY = {"AuthenticationMode": "API", "BootstrapClusterCreatorAdminPermissions": False}
LOCKED_OUT = (
    "must give someone access, got false for its creator and no access entry with a policy for a role from "
    "elsewhere; add AWS::EKS::AccessEntry with AmazonEKSClusterAdminPolicy for the role that you use"
)
OPEN = (
    "must answer to known addresses only, got a public endpoint open to 0.0.0.0/0{}; set PublicAccessCidrs, or "
    "EndpointPublicAccess: false and EndpointPrivateAccess: true"
)


def group(resources: Resources) -> dict[str, Any]:
    found: dict[str, Any] = resources["Pod"]["Properties"]["InstanceGroups"][0]
    return found


def assembly(resources: Resources, *, condition: Any = None) -> Assembly:
    template = {"Conditions": {"Made": condition}, "Resources": resources}
    stack = Stack(name="dev", template=template, account="111122223333", region="us-east-1")
    return Assembly(environment="", stacks=(stack,))


def spots(resources: Resources, *, condition: Any = None) -> list[tuple[str, Severity, str, str, str]]:
    context = Context(assembly(resources, condition=condition))
    return [
        (rule.id, spot.severity or rule.severity, spot.resource.logical_id, spot.place, spot.message)
        for rule in TABLE
        for spot in rule.check(context)
    ]


def test_the_rules_of_an_extension_are_judged_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def check(context: Context) -> Iterator[Spot]:
        for each in context.assembly.of_type("AWS::SageMaker::Cluster"):
            yield Spot(resource=each, place="", message="is there")

    rule = replace(TABLE[0], id="ours", check=check)
    monkeypatch.setattr(extensions, "active", lambda: (extensions.Extension(name="of-us", rules=(rule,)),))
    found = problems(assembly(changed()), engine=lambda _: ())
    assert [(each.rule, each.logical_id, each.message) for each in found] == [("ours", "Pod", "is there")]


def importing(name: Any) -> Resources:
    return {"Queue": {"Type": "AWS::SQS::Queue", "Properties": {"KmsMasterKeyId": {"Fn::ImportValue": name}}}}


MISSED = (
    "must import an export of {}, got {}:{}, which does not exist; export it from {}, or keep that stack as "
    "hyperpod-cdk creates it"
)


@pytest.mark.parametrize(
    ("exported", "imported", "missed"),
    [
        ("prod-storage:Key", "prod-storage:Key", None),
        ("prod-storage:Key", "prod-storage:Other", ("prod-storage", "Other")),
        (
            {"Fn::Sub": "${AWS::StackName}:Key"},
            {"Fn::Join": [":", ["prod-storage", "Other"]]},
            ("prod-storage", "Other"),
        ),
        # of a stack that is no longer among them
        ("prod-storage:Key", "prod-foundation:ExportsOutputRefVpc", ("prod-foundation", "ExportsOutputRefVpc")),
        # of somebody else, or of whom only the deployment knows
        ("prod-storage:Key", "prod-shared:Key", None),
        ("prod-storage:Key", "network:ExportsOutputRefVpc", None),
        ("prod-storage:Key", {"Ref": "Name"}, None),
        ({"Ref": "Name"}, "prod-storage:Other", None),
    ],
)
def test_what_stacks_import_of_each_other_is_exported(
    exported: Any, imported: Any, missed: tuple[str, str] | None
) -> None:
    outputs = {"Key": {"Value": "key", "Export": {"Name": exported}}}
    parameters = {"Name": {"Type": "String"}}
    storage = Stack(name="prod-storage", template={"Parameters": parameters, "Resources": {}, "Outputs": outputs})
    platform = Stack(name="prod-platform", template={"Parameters": parameters, "Resources": importing(imported)})
    found = problems(Assembly(environment="prod", stacks=(storage, platform)), engine=lambda _: ())
    said = [(each.rule, each.severity, each.stack.name, each.logical_id, each.message) for each in found]
    if missed is None:
        assert said == []
    else:
        message = MISSED.format(missed[0], *missed, missed[0])
        assert said == [("imports-are-exported", Severity.ERROR, "prod-platform", "Queue", message)]


def test_an_import_of_others_hides_none_that_is_missing() -> None:
    storage = Stack(name="prod-storage", template={"Resources": {}, "Outputs": {}})
    resources = {
        name: importing(imported)["Queue"]
        for name, imported in (("A", "prod-shared:Key"), ("B", "prod-storage:Other"), ("C", "prod-storage:Other"))
    }
    platform = Stack(name="prod-platform", template={"Resources": resources})
    found = problems(Assembly(environment="prod", stacks=(storage, platform)), engine=lambda _: ())
    # once, where it is imported first
    assert [(each.rule, each.logical_id) for each in found] == [("imports-are-exported", "B")]


@row_by_row(
    "egress",
    [
        [{"IpProtocol": "-1", "CidrIp": each} for each in ("0.0.0.0/1", "128.0.0.0/1")],
        [{"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, "CidrIp": "0.0.0.0/0"}],
        [{"IpProtocol": "-1", "CidrIpv6": "::/0"}],
        [{"IpProtocol": "-1", "CidrIp": "10.0.0.0/16"}],
    ],
)
def test_other_rules_of_the_group_stay(egress: list[dict[str, Any]]) -> None:
    assert [
        each for each in spots(changed(setting("Sg", SecurityGroupEgress=egress))) if each[0] == "kept-egress"
    ] == []


def test_a_rule_for_all_traffic_stays_without_a_separate_one() -> None:
    open_out = [{"IpProtocol": "-1", "CidrIp": "0.0.0.0/0"}, {"IpProtocol": "-1", "CidrIp": "10.0.0.0/16"}]
    resources = changed(setting("Sg", SecurityGroupEgress=open_out), lambda r: r.pop("EfaOut"))
    assert "kept-egress" not in [each[0] for each in spots(resources)]


def test_house_rules_warn_on_the_templates_of_others() -> None:
    """AWS takes a partition that is spelt out and a zone by its name; it refuses a cluster without access entries."""
    resources = changed(
        setting("Eks", AccessConfig={"AuthenticationMode": "CONFIG_MAP"}),
        setting("Eks", RoleArn="arn:aws:s3:::data"),
    )
    found = {
        name: {each.rule: each.severity for each in problems(assembly(resources), is_own=is_own) if each.rule in RULES}
        for name, is_own in (("others", False), ("ours", True))
    }
    assert found["others"]["partition-from-token"] is Severity.WARNING
    assert found["ours"]["partition-from-token"] is Severity.ERROR
    assert {found[name]["eks-authentication"] for name in found} == {Severity.ERROR}
    assert [rule.id for rule in TABLE if rule.is_house] == [
        "no-get-azs",
        "partition-from-token",
        "subnet-zone-by-id",
        "cluster-tag",
        "instance-group-complete",
    ]


def changed(*changes: Change) -> Resources:
    copy = deepcopy(SOUND)
    for change in changes:
        change(copy)
    return copy


def setting(name: str, **properties: Any) -> Change:
    return lambda resources: resources[name]["Properties"].update(properties)


def without(name: str, *properties: str) -> Change:
    return lambda resources: [resources[name]["Properties"].pop(each) for each in properties]


def of_group(**properties: Any) -> Change:
    return lambda resources: group(resources).update(properties)


def in_turn(*changes: Change) -> Change:
    return lambda resources: [change(resources) for change in changes]


def with_entry(**properties: Any) -> Change:
    """A cluster whose maker does not get in, and an access entry."""

    def change(resources: Resources) -> None:
        resources["Eks"]["Properties"]["AccessConfig"] = NOBODY
        policy = {"PolicyArn": "AmazonEKSClusterAdminPolicy", "AccessScope": {"Type": "cluster"}}
        entry: dict[str, Any] = {"ClusterName": {"Ref": "Eks"}, "PrincipalArn": "arn:aws:iam::111122223333:role/me"}
        entry = {**entry, "AccessPolicies": [policy], **properties}
        resources["Entry"] = {"Type": "AWS::EKS::AccessEntry", "Properties": entry}

    return change


def guarded(**properties: Any) -> Change:
    """Clusters that go with their stack, and what protects it."""

    def change(resources: Resources) -> None:
        for name in ("Pod", "Eks"):
            resources[name]["DeletionPolicy"] = "Delete"
        resources["Eks"]["Properties"]["Name"] = "prod-eks"
        given = {"ServiceToken": "arn", "Enabled": True, "EksClusterName": "prod-eks", **properties}
        resources["Guard"] = {"Type": "Custom::HyperPodDeletionProtection", "Properties": given}

    return change


def long_document(characters: int) -> dict[str, Any]:
    """A policy of so many characters as JSON without blanks, and of a token and blanks that do not count."""
    document = {"Statement": [{"Effect": "Allow", "Action": ["s3:GetObject"], "Resource": [""]}]}
    room = characters - len(json.dumps(document, separators=(",", ":")))
    document["Statement"][0]["Resource"] = [f"${{AWS::Partition}} {'a' * room}"]
    return document


def with_inline_policy(characters: int) -> Change:
    """The role with one inline policy beside none."""
    return setting("Role", Policies=[{"PolicyName": "p", "PolicyDocument": long_document(characters)}])


def with_managed_policy(characters: int) -> Change:
    """A managed policy of nobody."""
    wide = {"Type": "AWS::IAM::ManagedPolicy", "Properties": {"PolicyDocument": long_document(characters)}}
    return lambda resources: resources.update(Wide=wide)


def unchecked(resources: Resources) -> None:
    del group(resources)["OnStartDeepHealthChecks"]


def over_both(resources: Resources) -> None:
    group(resources)["OverrideVpcConfig"]["Subnets"] = [{"Ref": "Near"}, {"Ref": "Far"}]


def test_a_sound_template_has_nothing_to_say() -> None:
    assert spots(SOUND) == []


def test_every_rule_has_a_reason_a_source_and_a_fix() -> None:
    assert len(RULES) == len(set(RULES)) == 26
    for rule in TABLE:
        assert all(text.strip() for text in (rule.reason, rule.source, rule.fix))
        assert rule.reason.endswith(".")
        assert rule.fix.endswith(".") or rule.fix.endswith("}.")


BREAKING = [
    pytest.param(
        setting("Role", ManagedPolicyArns=["arn:aws:iam::111122223333:policy/team/AdministratorAccess"]),
        "node-role",
        "Role",
        "Properties.ManagedPolicyArns.0",
        NARROW.format("AdministratorAccess"),
        id="administrator",
    ),
    pytest.param(
        setting(
            "Role",
            Policies=[
                {
                    "PolicyDocument": {
                        "Statement": [{"Effect": "Allow", "Action": ["s3:*", "ec2:RunInstances"], "Resource": "*"}]
                    }
                }
            ],
        ),
        "node-role",
        "Role",
        "Properties.Policies.0.PolicyDocument.Statement.0",
        NARROW.format("s3:* on *"),
        id="wildcard in the role",
    ),
    pytest.param(
        lambda r: r.update(
            Wide={
                "Type": "AWS::IAM::Policy",
                "Properties": {
                    "Roles": [{"Ref": "Role"}],
                    "PolicyDocument": {"Statement": [{"Effect": "Allow", "Action": "*", "Resource": ["*"]}]},
                },
            }
        ),
        "node-role",
        "Wide",
        "Properties.PolicyDocument.Statement.0",
        NARROW.format("* on *"),
        id="wildcard in a policy of its own",
    ),
    pytest.param(
        setting("Bucket", BucketName="scripts"),
        "lifecycle-bucket",
        "Bucket",
        "Properties.BucketName",
        "must have a name that begins with sagemaker-, the only buckets that AWS's policy for nodes can read, "
        "got scripts, and Role has no permission of its own for s3:GetObject; rename the bucket or grant the "
        "permission",
        id="bucket of another name",
    ),
    pytest.param(
        with_inline_policy(10_241),
        "policies-fit",
        "Role",
        "Properties.Policies",
        "must have inline policies of at most 10,240 characters together, got 10,241 or more; name fewer "
        "resources, or their common prefix",
        id="inline policy one character too long",
    ),
    pytest.param(
        with_managed_policy(6_145),
        "policies-fit",
        "Wide",
        "Properties.PolicyDocument",
        "must have at most 6,144 characters, got 6,145 or more; name fewer resources, or their common prefix",
        id="managed policy one character too long",
    ),
    pytest.param(
        without("Bucket", "BucketName"),
        "lifecycle-bucket",
        "Bucket",
        "Properties.BucketName",
        "must have a name that begins with sagemaker-, the only buckets that AWS's policy for nodes can read, "
        "got a generated name, and Role has no permission of its own for s3:GetObject; rename the bucket or "
        "grant the permission",
        id="bucket without a name",
    ),
    pytest.param(
        of_group(LifeCycleConfig={"SourceS3Uri": "s3://scripts/v1"}),
        "lifecycle-bucket",
        "Pod",
        "Properties.InstanceGroups.0.LifeCycleConfig.SourceS3Uri",
        "must have a name that begins with sagemaker-, the only buckets that AWS's policy for nodes can read, "
        "got scripts, and Role has no permission of its own for s3:GetObject; rename the bucket or grant the "
        "permission",
        id="existing bucket of another name",
    ),
    pytest.param(
        setting("Bucket", PublicAccessBlockConfiguration={"BlockPublicAcls": "false", "BlockPublicPolicy": False}),
        "lifecycle-bucket",
        "Bucket",
        "Properties.PublicAccessBlockConfiguration",
        "must block public access, because anyone who can write its scripts runs as root on every node, got "
        "BlockPublicAcls: false, BlockPublicPolicy: false; set them to true",
        id="public bucket",
    ),
    pytest.param(
        lambda r: [r["Files"].pop(name) for name in KEPT],
        "kept-on-delete",
        "Files",
        "DeletionPolicy",
        STAYS.format(
            "its files",
            "DeletionPolicy not stated, UpdateReplacePolicy not stated",
            "DeletionPolicy: Retain and UpdateReplacePolicy: Retain",
        ),
        id="files that go",
    ),
    pytest.param(
        lambda r: r["Pod"].update(UpdateReplacePolicy="Delete"),
        "kept-on-delete",
        "Pod",
        "UpdateReplacePolicy",
        STAYS.format("its nodes and their workloads", "UpdateReplacePolicy Delete", "UpdateReplacePolicy: Retain"),
        id="cluster that goes when replaced",
    ),
    pytest.param(
        guarded(EksClusterName="other-eks"),
        "kept-on-delete",
        "Eks",
        "DeletionPolicy",
        STAYS.format("every object in it", "DeletionPolicy Delete", "DeletionPolicy: Retain"),
        id="another cluster is protected",
    ),
    pytest.param(
        setting("Pod", NodeRecovery="None"),
        "node-recovery",
        "Pod",
        "Properties.NodeRecovery",
        "must replace or reboot failed nodes automatically, got NodeRecovery None; set NodeRecovery: Automatic",
        id="recovery off",
    ),
    pytest.param(
        without("Pod", "NodeRecovery"),
        "node-recovery",
        "Pod",
        "Properties.NodeRecovery",
        "must replace or reboot failed nodes automatically, got NodeRecovery not stated; set NodeRecovery: Automatic",
        id="recovery not stated",
    ),
    pytest.param(
        without("Pod", "NodeProvisioningMode"),
        "provisioning-mode",
        "Pod",
        "Properties.NodeProvisioningMode",
        "must state how nodes are provisioned, got no NodeProvisioningMode: without it one unavailable "
        "instance rolls all others back; set NodeProvisioningMode: Continuous",
        id="all or nothing",
    ),
    pytest.param(
        unchecked,
        "deep-health-checks",
        "Pod",
        "Properties.InstanceGroups.0",
        "instance group gpu must check its nodes before they run jobs, got 6 nodes of ml.p5.48xlarge without "
        "OnStartDeepHealthChecks: one faulty accelerator stops a job that runs on all of them; set "
        "OnStartDeepHealthChecks: [InstanceStress, InstanceConnectivity]",
        id="unchecked nodes",
    ),
    pytest.param(
        over_both,
        "group-in-one-zone",
        "Pod",
        "Properties.InstanceGroups.0.OverrideVpcConfig.Subnets",
        "instance group gpu must be in one Availability Zone, because EFA does not cross zones, got subnets in "
        "use1-az4, use1-az5; set OverrideVpcConfig with the subnets of one zone",
        id="two zones",
    ),
    pytest.param(
        in_turn(over_both, of_group(InstanceCount=2)),
        "group-in-one-zone",
        "Pod",
        "Properties.InstanceGroups.0.OverrideVpcConfig.Subnets",
        "instance group gpu must be in one Availability Zone, because EFA does not cross zones, got subnets in "
        "use1-az4, use1-az5; set OverrideVpcConfig with the subnets of one zone",
        id="two nodes in two zones",
    ),
    pytest.param(
        in_turn(unchecked, of_group(InstanceCount=2)),
        "deep-health-checks",
        "Pod",
        "Properties.InstanceGroups.0",
        "instance group gpu must check its nodes before they run jobs, got 2 nodes of ml.p5.48xlarge without "
        "OnStartDeepHealthChecks: one faulty accelerator stops a job that runs on all of them; set "
        "OnStartDeepHealthChecks: [InstanceStress, InstanceConnectivity]",
        id="two unchecked nodes",
    ),
    pytest.param(
        setting("Files", SubnetIds=[{"Ref": "Far"}]),
        "lustre-zone",
        "Files",
        "Properties.SubnetIds",
        "must be in a zone of its nodes, use1-az5 (gpu), got use1-az4: traffic between zones is slower, "
        "charged, and never EFA; set SubnetIds to a subnet of the nodes' zone",
        id="files far away",
    ),
    pytest.param(
        in_turn(
            of_group(InstanceType="ml.m5.2xlarge", OnStartDeepHealthChecks=[]),
            setting("Files", SubnetIds=[{"Ref": "Far"}]),
        ),
        "lustre-zone",
        "Files",
        "Properties.SubnetIds",
        "must be in a zone of its nodes, use1-az5 (gpu), got use1-az4: traffic between zones is slower, "
        "charged, and never EFA; set SubnetIds to a subnet of the nodes' zone",
        id="files far away from nodes without accelerators",
    ),
    pytest.param(
        lambda r: r.pop("S3"),
        "s3-gateway-endpoint",
        "Vpc",
        "Properties",
        "must have a gateway endpoint for S3, with which nodes in Near (dev) load scripts, images and "
        "checkpoints, got none; add AWS::EC2::VPCEndpoint for s3 on the nodes' route tables, which costs "
        "nothing",
        id="no endpoint",
    ),
    pytest.param(
        setting("Sg", SecurityGroupIngress=[{"IpProtocol": "-1", "CidrIpv6": "::/0"}]),
        "world-ingress",
        "Sg",
        "Properties.SecurityGroupIngress.0.CidrIpv6",
        "must not be reachable from anywhere, got all traffic from ::/0; name the security group or the block that "
        "needs it",
        id="open in the group",
    ),
    pytest.param(
        lambda r: r.update(
            Ssh={
                "Type": "AWS::EC2::SecurityGroupIngress",
                "Properties": {
                    "GroupId": {"Ref": "Sg"},
                    "IpProtocol": "tcp",
                    "FromPort": 1,
                    "ToPort": 22,
                    "CidrIp": "0.0.0.0/0",
                },
            }
        ),
        "world-ingress",
        "Ssh",
        "Properties.CidrIp",
        "must not be reachable from anywhere, got tcp 1-22 from 0.0.0.0/0; name the security group or the block "
        "that needs it",
        id="open beside the group",
    ),
    pytest.param(
        setting("Sg", SecurityGroupEgress=[{"IpProtocol": -1, "CidrIp": "0.0.0.0/0", "Description": "everything"}]),
        "kept-egress",
        "Sg",
        "Properties.SecurityGroupEgress.0",
        "must not allow all traffic to 0.0.0.0/0 in one rule, got also EfaOut: CloudFormation removes the one rule "
        "before it creates the other; allow 0.0.0.0/1 and 128.0.0.0/1 instead",
        id="a rule that CloudFormation removes",
    ),
    pytest.param(
        without("Eks", "ResourcesVpcConfig"),
        "eks-public-endpoint",
        "Eks",
        "Properties.ResourcesVpcConfig",
        OPEN.format(", the default of EKS"),
        id="endpoint not stated",
    ),
    pytest.param(
        setting("Eks", ResourcesVpcConfig={"PublicAccessCidrs": ["203.0.113.0/24", "0.0.0.0/0"]}),
        "eks-public-endpoint",
        "Eks",
        "Properties.ResourcesVpcConfig",
        OPEN.format(""),
        id="endpoint open",
    ),
    pytest.param(
        setting("Eks", AccessConfig=NOBODY),
        "eks-administrators",
        "Eks",
        "Properties.AccessConfig.BootstrapClusterCreatorAdminPermissions",
        LOCKED_OUT,
        id="nobody gets in",
    ),
    pytest.param(
        with_entry(PrincipalArn={"Fn::GetAtt": ["Role", "Arn"]}),
        "eks-administrators",
        "Eks",
        "Properties.AccessConfig.BootstrapClusterCreatorAdminPermissions",
        LOCKED_OUT,
        id="a function alone gets in",
    ),
    pytest.param(
        with_entry(AccessPolicies=[]),
        "eks-administrators",
        "Eks",
        "Properties.AccessConfig.BootstrapClusterCreatorAdminPermissions",
        LOCKED_OUT,
        id="an entry without rights",
    ),
    pytest.param(
        setting("Eks", Logging={"ClusterLogging": {"EnabledTypes": [{"Type": "api"}]}}),
        "eks-audit-log",
        "Eks",
        "Properties.Logging",
        "must log the requests to the API server, got api; add the type audit to EnabledTypes",
        id="no audit log",
    ),
    pytest.param(
        without("Eks", "AccessConfig"),
        "eks-authentication",
        "Eks",
        "Properties.AccessConfig.AuthenticationMode",
        "must support access entries, which HyperPod creates for its nodes, got none stated, which means "
        "CONFIG_MAP; set AuthenticationMode: API",
        id="config map",
    ),
    pytest.param(
        setting("Eks", Version="1.36"),
        "kubernetes-version",
        "Eks",
        "Properties.Version",
        "must be a Kubernetes version that HyperPod accepts (1.30 to 1.35 on 2026-11-20), got "
        '"1.36" (HyperPod has AMIs for it since July 2026, but its prerequisites do not name it yet); set '
        'Version: "1.35"',
        id="too new for HyperPod",
    ),
]
"""A change of a sound template each, with the rule, the resource, the place and the sentence."""


@row_by_row("change, rule, resource, place, message", BREAKING)
def test_what_breaks_a_rule(change: Change, rule: str, resource: str, place: str, message: str) -> None:
    severity = next(each.severity for each in TABLE if each.id == rule)

    assert spots(changed(change)) == [(rule, severity, resource, place, message)]


@row_by_row("change, rule, resource, place, message", BREAKING)
@pytest.mark.parametrize("first", [True, False], ids=["after others", "before others"])
def test_others_of_its_type_hide_nothing(
    change: Change, rule: str, resource: str, place: str, message: str, *, first: bool
) -> None:
    """Next to what breaks the rule stand resources of which nothing is known, and sound ones."""
    broken = changed(change)
    others: Resources = {}
    for name, each in changed().items():
        # an unknown one of these may be the one that is missing
        if name not in NEEDED:
            others[f"Asked{name}"] = {**each, "Properties": {key: {"Ref": "Asked"} for key in each["Properties"]}}
        others[f"Sound{name}"] = renamed(each)
    found = spots({**others, **broken} if first else {**broken, **others})
    # one names the groups of all clusters
    said = [(row[0], *row[2:-1], row[-1].replace("(gpu, gpu)", "(gpu)")) for row in found]
    assert (rule, resource, place, message) in said


@pytest.mark.parametrize("kind", UNKNOWN)
def test_an_unknown_value_breaks_no_rule(kind: str) -> None:
    found = {place: spots(resources) for place, resources in with_unknown(SOUND, kind)}
    assert {place: each for place, each in found.items() if each} == {}
    assert len(found) >= 30


NEVER = {"Fn::Equals": ["a", "b"]}
PERHAPS = {"Fn::Equals": [{"Ref": "Asked"}, "a"]}
NEEDED = {"S3": "s3-gateway-endpoint", "EfaIn": "efa-security-group", "EfaOut": "efa-security-group"}
"""Resources without which another one breaks a rule."""


@pytest.mark.parametrize("name", SOUND)
def test_a_resource_that_is_never_created_satisfies_no_rule(name: str) -> None:
    resources = changed()
    resources[name]["Condition"] = "Made"
    assert {row[0] for row in spots(resources, condition=NEVER)} == ({NEEDED[name]} if name in NEEDED else set())
    assert spots(resources, condition=PERHAPS) == []


ELSEWHERE = {"node-role", "lifecycle-bucket", "s3-gateway-endpoint", "eks-authentication"}
"""Rules about a resource that another one uses: without it, its stack fails in any case."""


@row_by_row("change, rule, resource, place, message", BREAKING)
def test_a_resource_that_is_never_created_breaks_no_rule(
    change: Change, rule: str, resource: str, place: str, message: str
) -> None:
    broken = changed(change)
    broken[resource]["Condition"] = "Made"
    found = [(row[0], *row[2:]) for row in spots(broken, condition=NEVER)]
    assert (rule, resource, place, message) not in found or rule in ELSEWHERE
    found = [(row[0], *row[2:]) for row in spots(broken, condition=PERHAPS)]
    assert (rule, resource, place, message) in found


def renamed(value: Any) -> Any:
    """Return the copy of a sound resource whose references lead to the other sound ones."""
    if isinstance(value, list):
        return [renamed(each) for each in value]
    if not isinstance(value, dict):
        return value.replace("${Bucket}", "${SoundBucket}") if isinstance(value, str) else value
    if "Ref" in value:
        return {"Ref": f"Sound{value['Ref']}"}
    if "Fn::GetAtt" in value:
        name, attribute = value["Fn::GetAtt"]
        return {"Fn::GetAtt": [f"Sound{name}", attribute]}
    return {key: renamed(each) for key, each in value.items()}


@pytest.mark.parametrize(
    ("count", "instance_type", "severity", "message"),
    [
        (
            7,
            "ml.p5.48xlarge",
            Severity.ERROR,
            (
                "must have addresses for its nodes, 567 (gpu 567), got 10.0.0.0/23 with 507, and AWS cannot resize "
                "a subnet; set CidrBlock to a /22"
            ),
        ),
        (
            8,
            "ml.p5en.48xlarge",
            Severity.WARNING,
            (
                "must have addresses for its nodes, 520 (gpu 520, partly estimated), got 10.0.0.0/23 with 507, and "
                "AWS cannot resize a subnet; set CidrBlock to a /22"
            ),
        ),
        (
            34,
            "ml.p5.4xlarge",
            Severity.WARNING,
            # of the 1,024 of a /22, AWS reserves five
            (
                "must have addresses for its nodes, 1020 (gpu 1020, partly estimated), got 10.0.0.0/23 with 507, and "
                "AWS cannot resize a subnet; set CidrBlock to a /21"
            ),
        ),
        (7, "ml.p5en.48xlarge", None, ""),
        (6, "ml.p5.48xlarge", None, ""),
    ],
)
def test_a_shortage_of_documented_addresses_is_an_error(
    count: int, instance_type: str, severity: Severity | None, message: str
) -> None:
    found = spots(changed(of_group(InstanceCount=count, InstanceType=instance_type)))

    expected = [("node-subnet-size", severity, "Near", "Properties.CidrBlock", message)] if severity else []
    assert found == expected


@row_by_row(
    "changes",
    [
        pytest.param((unchecked, of_group(InstanceCount=1)), id="one node"),
        pytest.param((over_both, of_group(InstanceCount=1)), id="one node, which is in one zone"),
        pytest.param((unchecked, of_group(InstanceType="ml.g5.12xlarge")), id="no type for training"),
        pytest.param(
            (setting("Files", FileSystemType="OPENZFS", SubnetIds=[{"Ref": "Far"}]),),
            id="files of another kind far away",
        ),
        pytest.param((unchecked, of_group(KubernetesConfig={"Taints": [{"Key": "a"}]})), id="taints"),
        pytest.param((over_both, of_group(InstanceType="ml.m5.xlarge", InstanceCount=2)), id="no EFA"),
        pytest.param((over_both, setting("Far", AvailabilityZoneId={"Ref": "Zone"})), id="a zone unknown"),
        pytest.param((setting("Eks", Version={"Ref": "Version"}),), id="a version unknown"),
        pytest.param((setting("Eks", ResourcesVpcConfig={"EndpointPublicAccess": "false"}),), id="private endpoint"),
        pytest.param((setting("Eks", ResourcesVpcConfig={"Ref": "Unknown"}),), id="an endpoint not told"),
        pytest.param((with_entry(),), id="an administrator"),
        pytest.param((with_entry(PrincipalArn={"Ref": "Administrator"}),), id="an administrator not told"),
        pytest.param((with_entry(ClusterName="lab"), setting("Eks", Name="lab")), id="an administrator by name"),
        pytest.param((with_entry(ClusterName={"Fn::Join": []}),), id="an entry of a cluster not told"),
        pytest.param((setting("Pod", NodeRecovery={"Ref": "Recovery"}),), id="a recovery not told"),
        pytest.param(
            (lambda r: [r["Eks"].pop(name) for name in KEPT], setting("Eks", DeletionProtection=True)), id="protected"
        ),
        pytest.param((guarded(),), id="protected by a resource of ours"),
        pytest.param(
            (guarded(Enabled="true"),),
            id="protected by a resource of ours, in CloudFormation's words",
        ),
        pytest.param((setting("S3", ServiceName={"Ref": "Service"}),), id="a service not told"),
        pytest.param((setting("Near", CidrBlock={"Ref": "Block"}),), id="a block unknown"),
        pytest.param((of_group(InstanceCount={"Ref": "Count"}),), id="a count not told"),
        pytest.param(
            (of_group(ExecutionRole="arn:aws:iam::111122223333:role/n"), setting("Bucket", BucketName="a")),
            id="a role of somebody else",
        ),
        pytest.param(
            (
                of_group(ExecutionRole={"Fn::GetAtt": ["Maker", "RoleArn"]}),
                lambda r: r.update(Maker={"Type": "Custom::RoleOfNodes", "Properties": {}}),
                setting("Bucket", BucketName="a"),
            ),
            id="a role that a custom resource returns",
        ),
        pytest.param(
            (
                setting("Bucket", BucketName="a"),
                setting(
                    "Role",
                    Policies=[
                        {"PolicyDocument": {"Statement": {"Effect": "Allow", "Action": "s3:Get*", "Resource": "a"}}}
                    ],
                ),
            ),
            id="a right of its own",
        ),
        # a role of this length has a right of its own to no script: its bucket is named as nodes may read it
        pytest.param((with_inline_policy(10_240), with_managed_policy(6_144)), id="policies as long as IAM takes"),
    ],
)
def test_what_breaks_none(changes: tuple[Change, ...]) -> None:
    assert spots(changed(*changes)) == []


def policies_of(*statements: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"PolicyDocument": {"Statement": [{"Effect": "Allow", **each} for each in statements]}}]


def another_group(**properties: Any) -> Change:
    """A second group like the first, but without nodes."""

    def change(resources: Resources) -> None:
        more = {**deepcopy(group(resources)), "InstanceGroupName": "more", "InstanceCount": 0, **properties}
        resources["Pod"]["Properties"]["InstanceGroups"].append(more)

    return change


def another_cluster(**properties: Any) -> Change:
    """An EKS cluster like the first, on which no HyperPod cluster runs."""

    def change(resources: Resources) -> None:
        resources["Own"] = deepcopy(resources["Eks"])
        resources["Own"]["Properties"].update(properties)

    return change


def half_in_the_role(resources: Resources) -> None:
    resources["Role"]["Properties"]["Policies"] = [{"PolicyDocument": long_document(5_120)}]
    for name, kind in (("Inline", "AWS::IAM::Policy"), ("Managed", "AWS::IAM::ManagedPolicy")):
        properties = {"Roles": [{"Ref": "Role"}], "PolicyDocument": long_document(5_121)}
        resources[name] = {"Type": kind, "Properties": properties}


def named_zones(resources: Resources) -> None:
    for name, zone in (("Near", "us-east-1a"), ("Far", "us-east-1b")):
        del resources[name]["Properties"]["AvailabilityZoneId"]
        resources[name]["Properties"]["AvailabilityZone"] = zone


def flexible(*types: str) -> Change:
    def change(resources: Resources) -> None:
        del group(resources)["InstanceType"]
        group(resources)["InstanceRequirements"] = {"InstanceTypes": list(types)}

    return change


def without_of_group(name: str) -> Change:
    return lambda resources: group(resources).pop(name)


UNTOLD = {"Ref": "Asked"}
AWS_MANAGED = [
    {"Fn::Sub": f"arn:${{AWS::Partition}}:iam::aws:policy/{name}"}
    for name in ("ReadOnlyAccess", "AmazonS3FullAccess", "job-function/PowerUserAccess")
]
OF_SCRIPTS = "scripts, and Role has no permission of its own for s3:GetObject"
OF_OTHERS = "other, and Role has no permission of its own for s3:GetObject"
PUBLIC = "a public endpoint open to 0.0.0.0/0"
NO_ENTRY = "false for its creator and no access entry with a policy for a role from elsewhere"
PLACE_OF_SCRIPTS = "Properties.InstanceGroups.{}.LifeCycleConfig.SourceS3Uri"
PLACE_OF_SUBNETS = "Properties.InstanceGroups.0.OverrideVpcConfig.Subnets"
PLACE_OF_POLICY = "Properties.Policies.0.PolicyDocument.Statement.{}"


@row_by_row(
    "changes, said",
    [
        pytest.param(
            (
                setting(
                    "Role",
                    Policies=policies_of(
                        {"Action": "s3:*", "Resource": "arn"},
                        {"Effect": "Deny", "Action": "*", "Resource": "*"},
                        {"Action": ["s3:*", "ec2:*", "iam:Get*"], "Resource": ["arn", "*"]},
                    ),
                ),
            ),
            [("node-role", "Role", PLACE_OF_POLICY.format(2), "s3:*, ec2:* on *")],
            id="the whole of a service is too much only on everything",
        ),
        pytest.param(
            (setting("Role", ManagedPolicyArns=AWS_MANAGED),),
            [
                ("node-role", "Role", "Properties.ManagedPolicyArns.1", "AmazonS3FullAccess"),
                ("node-role", "Role", "Properties.ManagedPolicyArns.2", "PowerUserAccess"),
            ],
            id="policies of AWS that give too much",
        ),
        pytest.param(
            (
                lambda r: r.pop("Pod"),
                setting("Files", SubnetIds=[]),
                setting("Role", ManagedPolicyArns=AWS_MANAGED[1:2]),
                lambda r: r.update(
                    Nodes={"Type": "AWS::EKS::Nodegroup", "Properties": {"NodeRole": {"Fn::GetAtt": ["Role", "Arn"]}}}
                ),
            ),
            [("node-role", "Role", "Properties.ManagedPolicyArns.0", "AmazonS3FullAccess")],
            id="a role of EKS' own nodes",
        ),
        pytest.param(
            (
                setting("Role", ManagedPolicyArns=[{"Ref": "Wide"}, "arn"]),
                lambda r: r.update(
                    Wide={
                        "Type": "AWS::IAM::ManagedPolicy",
                        "Properties": {
                            "PolicyDocument": {"Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}}
                        },
                    }
                ),
            ),
            [("node-role", "Wide", "Properties.PolicyDocument.Statement.0", "* on *")],
            id="a policy of these templates that the role names",
        ),
        pytest.param(
            (half_in_the_role,),
            [("policies-fit", "Role", "Properties.Policies", "10,241 or more")],
            id="inline policies count together, managed ones by themselves",
        ),
        pytest.param(
            (setting("Bucket", BucketName="scripts"), another_group()),
            [("lifecycle-bucket", "Bucket", "Properties.BucketName", OF_SCRIPTS)],
            id="a bucket of two groups is named once",
        ),
        pytest.param(
            (of_group(LifeCycleConfig={"Ref": "A"}), another_group(LifeCycleConfig={"SourceS3Uri": "s3://scripts/v"})),
            [("lifecycle-bucket", "Pod", PLACE_OF_SCRIPTS.format(1), OF_SCRIPTS)],
            id="scripts that are not told hide no others",
        ),
        pytest.param(
            (
                of_group(LifeCycleConfig={"SourceS3Uri": "s3://scripts/v1"}),
                another_group(LifeCycleConfig={"SourceS3Uri": "s3://scripts/v1"}),
                another_group(LifeCycleConfig={"SourceS3Uri": "s3://other/v1"}),
            ),
            [
                ("lifecycle-bucket", "Pod", PLACE_OF_SCRIPTS.format(0), OF_SCRIPTS),
                ("lifecycle-bucket", "Pod", PLACE_OF_SCRIPTS.format(2), OF_OTHERS),
            ],
            id="two buckets are named each",
        ),
        *(
            pytest.param(
                (setting("Eks", ResourcesVpcConfig={"EndpointPublicAccess": public, **cidrs}),),
                [("eks-public-endpoint", "Eks", "Properties.ResourcesVpcConfig", f"{PUBLIC}{more}")] if is_open else [],
                id=f"endpoint {public} {cidrs}",
            )
            for public, is_open in ((True, True), ("true", True), (False, False), ("false", False), (UNTOLD, False))
            for cidrs, more in (({}, ", the default of EKS"), ({"PublicAccessCidrs": ["0.0.0.0/0"]}, ""))
        ),
        *(
            pytest.param(
                (
                    setting(
                        "Eks",
                        AccessConfig={"AuthenticationMode": mode, "BootstrapClusterCreatorAdminPermissions": maker},
                    ),
                ),
                [
                    (
                        "eks-administrators",
                        "Eks",
                        "Properties.AccessConfig.BootstrapClusterCreatorAdminPermissions",
                        NO_ENTRY,
                    )
                ]
                if is_locked
                else [],
                id=f"{mode} and {maker}",
            )
            for mode, maker, is_locked in (
                ("API", False, True),
                ("API", "false", True),
                ("API", True, False),
                ("API", UNTOLD, False),
                ("API_AND_CONFIG_MAP", False, False),
                ("API_AND_CONFIG_MAP", "false", False),
            )
        ),
        pytest.param(
            (setting("Eks", AccessConfig={"AuthenticationMode": "CONFIG_MAP"}),),
            [("eks-authentication", "Eks", "Properties.AccessConfig.AuthenticationMode", "CONFIG_MAP")],
            id="the old way of access",
        ),
        pytest.param(
            (with_entry(ClusterName="lab"), setting("Eks", Name="lab"), another_cluster(Name="own")),
            [
                (
                    "eks-administrators",
                    "Own",
                    "Properties.AccessConfig.BootstrapClusterCreatorAdminPermissions",
                    NO_ENTRY,
                )
            ],
            id="an entry of one cluster opens no other",
        ),
        pytest.param(
            (setting("Eks", Logging={"ClusterLogging": {"EnabledTypes": [{"Type": "api"}, {"Type": "scheduler"}]}}),),
            [("eks-audit-log", "Eks", "Properties.Logging", "api, scheduler")],
            id="other logs",
        ),
        pytest.param(
            (without("Eks", "Logging"),),
            [("eks-audit-log", "Eks", "Properties.Logging", "no control-plane log")],
            id="no log",
        ),
        # not a version for HyperPod, and no concern of a cluster without HyperPod
        pytest.param((another_cluster(Version="1.36"),), [], id="a new version beside HyperPod"),
        pytest.param(
            (setting("Eks", Version=1.36),),
            [
                (
                    "kubernetes-version",
                    "Eks",
                    "Properties.Version",
                    '"1.36" (HyperPod has AMIs for it since July 2026, but its prerequisites do not name it yet)',
                )
            ],
            id="a version as a number",
        ),
        pytest.param(
            (setting("Pod", Tags=[{"Key": "SageMaker", "Value": "false"}, {"Key": UNTOLD, "Value": "true"}]),),
            [("cluster-tag", "Pod", "Properties.Tags", "false")],
            id="a tag that is stated decides",
        ),
        pytest.param(
            (setting("Pod", Tags=[{"Key": "Other", "Value": "true"}]),),
            [("cluster-tag", "Pod", "Properties.Tags", "none")],
            id="another tag",
        ),
        pytest.param((setting("Pod", Tags=[{"Key": UNTOLD, "Value": "true"}]),), [], id="a tag that is not told"),
        *(
            pytest.param(
                (without_of_group(name),),
                [("instance-group-complete", "Pod", "Properties.InstanceGroups.0", "")],
                id=f"a group without {name}",
            )
            for name in ("OverrideVpcConfig", "ThreadsPerCore", "LifeCycleConfig")
        ),
        pytest.param((without("Pod", "Orchestrator", "NodeProvisioningMode"),), [], id="a cluster on Slurm"),
        pytest.param(
            (over_both, of_group(InstanceType="ml.m5.xlarge", InstanceCount=2, TrainingPlanArn="arn")),
            [("group-in-one-zone", "Pod", PLACE_OF_SUBNETS, "subnets in use1-az4, use1-az5")],
            id="a plan in two zones",
        ),
        pytest.param(
            (over_both, named_zones),
            [
                ("subnet-zone-by-id", "Near", "Properties.AvailabilityZone", "the name us-east-1a"),
                ("subnet-zone-by-id", "Far", "Properties.AvailabilityZone", "the name us-east-1b"),
                ("group-in-one-zone", "Pod", PLACE_OF_SUBNETS, "subnets in us-east-1a, us-east-1b"),
            ],
            id="zones by their names",
        ),
        pytest.param((over_both, setting("Far", AvailabilityZoneId="use1-az5")), [], id="two subnets of one zone"),
        pytest.param((unchecked, flexible("ml.p5.48xlarge", "ml.g5.12xlarge")), [], id="a type that no check is for"),
        pytest.param((unchecked, flexible("ml.p5.48xlarge", "ml.new.large")), [], id="a type that nobody knows"),
        pytest.param((unchecked, of_group(InstanceCount=UNTOLD)), [], id="a number of nodes that is not told"),
    ],
)
def test_what_rules_find_together(changes: tuple[Change, ...], said: list[tuple[str, str, str, str]]) -> None:
    found = [
        (rule, resource, place, message.partition(", got ")[2].partition("; ")[0])
        for rule, _, resource, place, message in spots(changed(*changes))
    ]
    assert found == said


def with_groups_of_its_own(*names: str) -> Change:
    """Security groups without rules of their own."""
    made = {name: {"Type": "AWS::EC2::SecurityGroup", "Properties": {"VpcId": {"Ref": "Vpc"}}} for name in names}
    return lambda resources: resources.update(made)


def security_groups(*, of_cluster: list[Any], of_nodes: list[Any]) -> Change:
    def change(resources: Resources) -> None:
        resources["Pod"]["Properties"]["VpcConfig"]["SecurityGroupIds"] = of_cluster
        group(resources)["OverrideVpcConfig"]["SecurityGroupIds"] = of_nodes

    return change


def in_a_third_zone(resources: Resources) -> None:
    resources["Third"] = deepcopy(resources["Far"])
    resources["Third"]["Properties"].update(CidrBlock="10.0.4.0/23", AvailabilityZoneId="use1-az6")
    resources["Files"]["Properties"]["SubnetIds"] = [{"Ref": "Third"}]


FAR = {"SecurityGroupIds": [{"Ref": "Sg"}], "Subnets": [{"Ref": "Far"}]}
EFA_OF_CLUSTER = "Properties.VpcConfig.SecurityGroupIds"
EFA_OF_NODES = "Properties.InstanceGroups.0.OverrideVpcConfig.SecurityGroupIds"


@row_by_row(
    "changes, said",
    [
        pytest.param(
            (with_groups_of_its_own("Z"), security_groups(of_cluster=["sg-1"], of_nodes=[{"Ref": "Z"}])),
            [("efa-security-group", EFA_OF_NODES, "Z")] * 2,
            id="groups from elsewhere hide no others",
        ),
        *(
            pytest.param((change,), [], id=f"a rule that may be of all traffic with itself {number}")
            for number, change in enumerate(
                (
                    setting("EfaIn", GroupId=UNTOLD),
                    setting("EfaIn", SourceSecurityGroupId=UNTOLD),
                    setting("EfaIn", GroupId=UNTOLD, SourceSecurityGroupId=UNTOLD),
                    in_turn(
                        lambda r: r.pop("EfaIn"),
                        setting(
                            "Sg", SecurityGroupIngress=[{"IpProtocol": "-1", "SourceSecurityGroupId": {"Ref": "Sg"}}]
                        ),
                    ),
                )
            )
        ),
        pytest.param(
            (security_groups(of_cluster=[], of_nodes=[{"Ref": "Sg"}]),),
            [("efa-security-group", EFA_OF_CLUSTER, "no security group")] * 2,
            id="no group",
        ),
        pytest.param(
            (
                with_groups_of_its_own("Z", "A"),
                security_groups(of_cluster=[{"Ref": "Z"}, {"Ref": "Sg"}], of_nodes=[{"Ref": "Z"}, {"Ref": "A"}]),
            ),
            [("efa-security-group", EFA_OF_NODES, "A, Z")] * 2,
            id="one of the groups is enough",
        ),
        *(
            pytest.param(
                (change,),
                [("efa-security-group", place, "Sg") for place in (EFA_OF_CLUSTER, EFA_OF_NODES)],
                id=f"a rule that is not of all traffic with itself {number}",
            )
            for number, change in enumerate(
                (
                    setting("EfaIn", IpProtocol="tcp"),
                    setting("EfaIn", SourceSecurityGroupId="sg-1"),
                    without("EfaIn", "SourceSecurityGroupId"),
                    in_turn(with_groups_of_its_own("Z"), setting("EfaIn", GroupId={"Ref": "Z"})),
                    # of a rule of which one side is not told, the other one is
                    in_turn(
                        with_groups_of_its_own("Z"),
                        setting("EfaIn", GroupId=UNTOLD, SourceSecurityGroupId={"Ref": "Z"}),
                    ),
                    in_turn(
                        with_groups_of_its_own("Z"),
                        setting("EfaIn", GroupId={"Ref": "Z"}, SourceSecurityGroupId=UNTOLD),
                    ),
                    setting("EfaOut", IpProtocol=6),
                )
            )
        ),
        *(
            pytest.param(
                (
                    setting(
                        "Sg",
                        SecurityGroupIngress=[
                            {"IpProtocol": "tcp", "CidrIp": "10.0.0.0/8"},
                            "no rule",
                            {**rule, "CidrIp": "0.0.0.0/0"},
                        ],
                    ),
                ),
                [("world-ingress", "Properties.SecurityGroupIngress.2.CidrIp", f"{ports} from 0.0.0.0/0")],
                id=f"open {ports}",
            )
            for rule, ports in (
                ({"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22}, "tcp 22"),
                ({"IpProtocol": "tcp", "FromPort": 1, "ToPort": 9}, "tcp 1-9"),
                ({"IpProtocol": "tcp", "FromPort": 22, "ToPort": UNTOLD}, "tcp 22-${Asked}"),
                ({"IpProtocol": "udp"}, "udp"),
                ({"IpProtocol": -1, "FromPort": 1, "ToPort": 9}, "all traffic"),
            )
        ),
        pytest.param(
            (
                setting(
                    "Sg",
                    SecurityGroupIngress=[
                        {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "CidrIp": "0.0.0.0/0", "CidrIpv6": "::/0"}
                    ],
                ),
            ),
            [
                ("world-ingress", "Properties.SecurityGroupIngress.0.CidrIp", "tcp 22 from 0.0.0.0/0"),
                ("world-ingress", "Properties.SecurityGroupIngress.0.CidrIpv6", "tcp 22 from ::/0"),
            ],
            id="open in both kinds of addresses",
        ),
        *(
            pytest.param(
                (setting("S3", **properties),),
                [] if serves else [("s3-gateway-endpoint", "Properties", "none")],
                id=f"endpoint {properties}",
            )
            for properties, serves in (
                ({"VpcEndpointType": "Gateway"}, True),
                ({"VpcEndpointType": UNTOLD}, True),
                ({"VpcEndpointType": "Interface"}, False),
                ({"ServiceName": "com.amazonaws.us-east-1.dynamodb"}, False),
                ({"ServiceName": "com.amazonaws.us-east-1.s3express"}, False),
                ({"VpcId": "vpc-1"}, False),
                ({"VpcId": UNTOLD}, True),
            )
        ),
        pytest.param(
            (
                another_group(InstanceType="ml.m5.xlarge", InstanceCount=1, OverrideVpcConfig=FAR),
                setting("Files", SubnetIds=[{"Ref": "Far"}]),
            ),
            [
                (
                    "lustre-zone",
                    "Properties.SubnetIds",
                    "use1-az4: traffic between zones is slower, charged, and never EFA",
                )
            ],
            id="files near the nodes without accelerators",
        ),
        pytest.param(
            (another_group(OverrideVpcConfig=FAR), setting("Files", SubnetIds=[{"Ref": "Far"}])),
            [],
            id="files near one of two groups",
        ),
        pytest.param(
            (
                setting(
                    "Sg",
                    SecurityGroupEgress=[
                        {"IpProtocol": "-1", "CidrIp": "10.0.0.0/8"},
                        {"IpProtocol": "-1", "CidrIp": "0.0.0.0/0"},
                    ],
                ),
            ),
            [
                (
                    "kept-egress",
                    "Properties.SecurityGroupEgress.1",
                    "also EfaOut: CloudFormation removes the one rule before it creates the other",
                )
            ],
            id="a rule for all traffic behind another one",
        ),
    ],
)
def test_what_rules_find_in_a_network(changes: tuple[Change, ...], said: list[tuple[str, str, str]]) -> None:
    found = [
        (rule, place, message.partition(", got ")[2].partition("; ")[0])
        for rule, _, _, place, message in spots(changed(*changes))
    ]
    assert found == said


def test_a_separate_rule_before_its_group_hides_nothing() -> None:
    open_out = [{"IpProtocol": "-1", "CidrIp": "0.0.0.0/0"}]
    resources = changed(setting("Sg", SecurityGroupEgress=open_out))
    found = spots({"EfaOut": resources.pop("EfaOut"), **resources})
    assert [(rule, resource) for rule, _, resource, _, _ in found] == [("kept-egress", "Sg")]


def test_nodes_whose_number_is_not_told_take_no_addresses_for_certain() -> None:
    ((rule, _, _, _, message),) = spots(changed(of_group(InstanceCount=7), another_group(InstanceCount=UNTOLD)))
    assert rule == "node-subnet-size"
    assert message.startswith("must have addresses for its nodes, 567 (gpu 567), got 10.0.0.0/23 with 507, ")


@pytest.mark.parametrize(
    ("types", "severity"),
    [
        (("ml.p5.48xlarge", "ml.p5.4xlarge"), Severity.WARNING),
        (("ml.p5.4xlarge", "ml.p5.48xlarge"), Severity.WARNING),
        (("ml.p5.48xlarge", "ml.p5.48xlarge"), Severity.ERROR),
    ],
)
def test_of_several_types_all_nodes_may_be_of_the_one_with_the_most_addresses(
    types: tuple[str, ...], severity: Severity
) -> None:
    ((rule, found, _, _, message),) = spots(changed(of_group(InstanceCount=7), flexible(*types)))
    assert (rule, found) == ("node-subnet-size", severity)
    assert message.startswith("must have addresses for its nodes, 567 (gpu 567")


def test_files_far_from_several_groups_are_told_all_of_them() -> None:
    ((rule, _, resource, _, message),) = spots(changed(another_group(OverrideVpcConfig=FAR), in_a_third_zone))
    assert (rule, resource) == ("lustre-zone", "Files")
    assert message.startswith("must be in a zone of its nodes, use1-az4, use1-az5 (gpu, more), got use1-az6: ")


def test_a_version_that_eks_no_longer_runs_is_named_for_every_cluster() -> None:
    found = spots(changed(without("Eks", "Version"), another_cluster(Version="1.29")))
    assert [(rule, resource, place) for rule, _, resource, place, _ in found] == [
        ("kubernetes-version", "Own", "Properties.Version")
    ]
    assert found[0][-1].startswith("EKS ended extended support for Kubernetes 1.29 on 2026-03-23, ")


def test_protection_that_is_switched_off_keeps_nothing() -> None:
    resources = changed(guarded(Enabled=False))
    assert [(rule, name, place) for rule, _, name, place, _ in spots(resources)] == [
        ("kept-on-delete", "Eks", "DeletionPolicy"),
        ("kept-on-delete", "Pod", "DeletionPolicy"),
    ]


def test_a_restricted_group_takes_no_continuous_provisioning() -> None:
    def restrict(resources: Resources) -> None:
        properties = resources["Pod"]["Properties"]
        properties["RestrictedInstanceGroups"] = properties.pop("InstanceGroups")
        del properties["NodeProvisioningMode"]

    assert spots(changed(restrict)) == []


def test_a_launch_template_with_efa_is_judged_once() -> None:
    interface = {"InterfaceType": "efa", "Groups": [{"Ref": "Sg"}]}

    def launch(resources: Resources) -> None:
        del resources["EfaOut"]
        del resources["Pod"]
        resources["Files"]["Properties"]["SubnetIds"] = []
        data = {"NetworkInterfaces": [{"InterfaceType": "interface"}, interface, interface]}
        resources["Launch"] = {"Type": "AWS::EC2::LaunchTemplate", "Properties": {"LaunchTemplateData": data}}

    ((rule, severity, resource, place, _),) = spots(changed(launch))
    assert (rule, severity, resource) == ("efa-security-group", Severity.ERROR, "Launch")
    assert place == "Properties.LaunchTemplateData.NetworkInterfaces.1.Groups"


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["0.0.0.0/0", "AWS::NoValue"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["Ref", "Fn::If", "Fn::Sub", "Fn::GetAtt", "a"]), inner, max_size=2)
    ),
    max_leaves=6,
)
PLACES = [(name, key) for name, resource in SOUND.items() for key in resource["Properties"]]
GROUP_PLACES = [("", key) for key in SOUND["Pod"]["Properties"]["InstanceGroups"][0]]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(place=st.sampled_from([*PLACES, *GROUP_PLACES]), junk=JUNK)
def test_no_property_brings_a_rule_down(place: tuple[str, str], junk: Any) -> None:
    resources = deepcopy(SOUND)
    name, key = place
    (resources[name]["Properties"] if name else group(resources))[key] = junk

    assert {rule for rule, *_ in spots(resources)} <= set(RULES)


def test_the_page_holds_every_rule(project: Path) -> None:
    page = (project / "docs" / "policy-pack.md").read_text(encoding="utf-8")

    assert re.findall(r"^\| `([\w-]+)` \| (?:error|warning) \|", page, re.MULTILINE) == list(RULES)
