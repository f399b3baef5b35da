"""The whole report over whole environments: every part filled, the same bytes for the same input, and no AWS."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hyperpod_cdk.review.model import Level, Report, Side
from hyperpod_cdk.review.run import review
from hyperpod_cdk.templates.assembly import EMPTY, Assembly, Stack, parse_template, read_assembly
from tests.support.assembly import shipped

CLUSTER = "AWS::SageMaker::Cluster"


def reviewed(base: Assembly, head: Assembly, **given: Any) -> Report:
    return review(base, head, base_side=Side(label="main"), head_side=Side(label="working tree"), **given)


def with_template(assembly: Assembly, stack: str, template: dict[str, Any]) -> Assembly:
    stacks = tuple(replace(each, template=template) if each.name == stack else each for each in assembly.stacks)
    return replace(assembly, stacks=stacks)


def of(template: dict[str, Any], **given: Any) -> Assembly:
    return Assembly(environment="", stacks=(Stack(name="main", template=template, **given),))


@pytest.fixture(scope="module")
def two_teams(assemblies: Path) -> Assembly:
    shipped(assemblies, "two-teams")
    return read_assembly(assemblies / "two-teams")


def test_nothing_changes(two_teams: Assembly) -> None:
    report = reviewed(two_teams, two_teams, notes=("One.", "Two.", "One."))
    assert (report.environment, report.base.label, report.head.label) == ("two-teams", "main", "working tree")
    assert report.verdict.model_dump() == {
        "level": Level.NONE,
        "approval": "Needs no approval, because no deployed resource changes.",
        "sentence": "No deployed resource changes.",
        "needs_approval": (),
        "excepted": (),
        "reviewed_on": None,
        "is_wrong": False,
        "attention": (),
    }
    assert report.blast_radius.resources == ()
    assert (report.access.grants, report.access.reach, report.timeline.steps) == ((), (), ())
    assert report.capacity.groups
    assert report.fabric.subjects
    assert report.notes == ("One.", "Two.")


def test_everything_is_new(two_teams: Assembly) -> None:
    report = reviewed(EMPTY, two_teams)
    count = len(list(two_teams.resources()))
    assert report.verdict.level is Level.ADDED
    assert report.verdict.sentence == f"Adds {count} resources; no deployed resource changes."
    assert {each.kind.value for each in report.verdict.needs_approval} == {"access", "cost"}
    assert len(report.timeline.steps) == count
    assert {group.nodes.before for group in report.capacity.groups} == {0}


def test_everything_is_deleted(two_teams: Assembly) -> None:
    report = reviewed(two_teams, EMPTY)
    assert report.environment == "two-teams"
    assert report.verdict.needs_approval
    assert {group.nodes.after for group in report.capacity.groups} == {0}


def test_the_cluster_is_replaced(two_teams: Assembly) -> None:
    (cluster,) = two_teams.of_type(CLUSTER)
    template = two_teams.by_name[cluster.stack].template
    renamed = {**cluster.body, "Properties": {**cluster.properties, "ClusterName": "another"}}
    resources = {**template["Resources"], cluster.logical_id: renamed}
    report = reviewed(two_teams, with_template(two_teams, cluster.stack, {**template, "Resources": resources}))
    assert report.verdict.level is Level.REPLACED
    assert report.verdict.needs_approval
    assert report.verdict.sentence.startswith("Replaces 1 HyperPod cluster")
    first = report.verdict.attention[0]
    assert (first.resource, first.property, first.after) == (
        f"{cluster.stack} / {cluster.name}",
        "ClusterName",
        "another",
    )


def test_the_same_input_gives_the_same_bytes_without_cdk_boto3_and_networkx(
    two_teams: Assembly, assemblies: Path
) -> None:
    code = (
        "import sys; from pathlib import Path;"
        "from hyperpod_cdk.templates.assembly import EMPTY, read_assembly;"
        "from hyperpod_cdk.review.model import Side; from hyperpod_cdk.review.run import review;"
        "import hyperpod_cdk.review.sources;"
        "side = Side(label='x');"
        "print(review(EMPTY, read_assembly(Path(sys.argv[1])), base_side=side, head_side=side).model_dump_json());"
        "print([m for m in ('aws_cdk', 'jsii', 'boto3', 'botocore', 'networkx', 'cfnlint') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(assemblies / "two-teams")],
        # another order of sets than in this process, and nothing of its surroundings
        env={"PYTHONHASHSEED": "1", "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    text, loaded = done.stdout.splitlines()
    side = Side(label="x")
    assert text == review(EMPTY, two_teams, base_side=side, head_side=side).model_dump_json()
    assert loaded == "[]"


ONLY_TOKENS = """
Parameters: {A: {Type: String}, B: {Type: CommaDelimitedList}}
Conditions: {C: !Equals [!Ref A, x]}
Resources:
  Cluster:
    Type: AWS::SageMaker::Cluster
    Condition: C
    Properties:
      ClusterName: !Ref A
      InstanceGroups: !Ref B
      VpcConfig: !If [C, {SecurityGroupIds: !Ref B, Subnets: !Ref B}, !Ref "AWS::NoValue"]
      Orchestrator: !Ref A
  Fs:
    Type: AWS::FSx::FileSystem
    Properties: {SubnetIds: !Ref B, StorageCapacity: !Ref A, LustreConfiguration: !Ref A}
  Vpc: {Type: AWS::EC2::VPC, Properties: {CidrBlock: !Ref A}}
  Subnet: {Type: AWS::EC2::Subnet, Properties: {VpcId: !Ref A, CidrBlock: !Ref A, AvailabilityZone: !Ref A}}
  Open: {Type: AWS::EC2::SecurityGroup, Properties: {SecurityGroupIngress: !Ref B, SecurityGroupEgress: !Ref A}}
  Rule: {Type: AWS::EC2::SecurityGroupEgress, Properties: {GroupId: !Ref A, IpProtocol: !Ref A}}
  Eks: {Type: AWS::EKS::Cluster, Properties: {Version: !Ref A, ResourcesVpcConfig: !Ref A}}
  Role:
    Type: AWS::IAM::Role
    Properties: {AssumeRolePolicyDocument: !Ref A, Policies: !Ref B, ManagedPolicyArns: !Ref B}
  Policy: {Type: AWS::IAM::Policy, Properties: {PolicyDocument: !Ref A, Roles: !Ref B}}
  Nat: {Type: AWS::EC2::NatGateway, Properties: !Ref A}
  Endpoint: {Type: AWS::EC2::VPCEndpoint, Properties: {ServiceName: !Ref A, SubnetIds: !Ref B}}
"""


@pytest.mark.parametrize("other", ["nothing", "itself", "without"])
def test_a_template_of_tokens_only(other: str) -> None:
    template = parse_template(ONLY_TOKENS, "t")
    # a file that says so is refused; what is deployed comes another way
    template["Resources"]["Odd"] = {"Type": "AWS::S3::Bucket", "Properties": [1]}
    head = of(template)
    bare = {"Resources": {key: {"Type": body["Type"]} for key, body in template["Resources"].items()}}
    base = {"nothing": EMPTY, "itself": head, "without": of(bare)}[other]
    report = reviewed(base, head)
    assert report.environment == "main"
    assert "The template names no Region, so nothing that differs between Regions is shown." in report.notes
    proofs = [proof.result for subject in report.fabric.subjects for proof in subject.proofs]
    assert "holds" not in proofs
    assert report.cost.is_lower_bound
    back = reviewed(head, base)
    assert back.environment == "main"


def test_what_a_template_leaves_to_others() -> None:
    resources = {"Inner": {"Type": "AWS::CloudFormation::Stack", "Properties": {"TemplateURL": "https://example.com"}}}
    transform = ["AWS::LanguageExtensions", "Mine", "AWS::Serverless-2016-10-31"]
    head = of({"Resources": resources, "Transform": transform}, region="us-east-1")
    assert reviewed(EMPTY, head).notes == (
        "The template of the nested stack main / Inner is another file, which was not read.",
        (
            "The macro AWS::Serverless-2016-10-31 changes the template of main during the deployment; the result is "
            "unknown."
        ),
        "The macro Mine changes the template of main during the deployment; the result is unknown.",
    )
