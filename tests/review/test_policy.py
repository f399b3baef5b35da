"""The policy pack's findings of two sides: from the report of a synthesis, or from the templates alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from hyperpod_cdk.findings import Severity
from hyperpod_cdk.review.model import Policy, PolicyFinding
from hyperpod_cdk.review.nag import NagError, NagViolation, nag_violations
from hyperpod_cdk.review.policy import policy
from hyperpod_cdk.templates.assembly import EMPTY, Assembly, Stack, read_assembly, read_template
from tests.support.assembly import shipped

ROLE = {
    "Type": "AWS::IAM::Role",
    "Properties": {
        "AssumeRolePolicyDocument": {
            "Statement": [{"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "a:b"}]
        }
    },
}
OPEN = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "CidrIp": "0.0.0.0/0"}


def group(
    *ports: int, path: str = "dev/network/Ssh/Resource", metadata: dict[str, Any] | None = None
) -> dict[str, Any]:
    rules = [{**OPEN, "FromPort": port, "ToPort": port} for port in ports]
    return {
        "Type": "AWS::EC2::SecurityGroup",
        "Metadata": {"aws:cdk:path": path, **(metadata or {})},
        "Properties": {"GroupDescription": "a", "VpcId": "vpc-0a1b2c3d4e5f60718", "SecurityGroupIngress": rules},
    }


def environment(**resources: Any) -> Assembly:
    stack = Stack(name="dev-network", template={"Resources": resources}, region="us-east-1")
    return Assembly(environment="dev", stacks=(stack,))


def of(found: Policy, rule: str) -> list[tuple[str, str, str | None]]:
    return [(each.status, each.message, each.suppressed) for each in found.findings if each.rule == rule]


def reachable(port: int, index: int = 0) -> str:
    return (
        f"SecurityGroupIngress.{index}.CidrIp: must not be reachable from anywhere, got tcp {port} from 0.0.0.0/0; "
        "name the security group or the block that needs it"
    )


def test_findings_are_new_standing_or_resolved() -> None:
    new, old = (group(port, path=f"dev/network/{name}") for port, name in ((8003, "New"), (8002, "Old")))
    base, head = environment(Ssh=group(8000, 8001), Old=old), environment(Ssh=group(8001), New=new)

    found = policy(base, head)

    assert [(each.status, each.resource, each.message) for each in found.findings if each.rule == "world-ingress"] == [
        ("new", "dev-network / New", reachable(8003)),
        ("standing", "dev-network / Ssh", reachable(8001)),
        ("resolved", "dev-network / Old", reachable(8002)),
        ("resolved", "dev-network / Ssh", reachable(8000)),
    ]
    assert found.skipped == (
        (
            "cdk-nag was not run on the base: it runs in 'cdk synth', whose validation-report.json is not next to "
            "these templates"
        ),
        (
            "cdk-nag was not run on the head: it runs in 'cdk synth', whose validation-report.json is not next to "
            "these templates"
        ),
    )


def test_the_same_on_both_sides_stands() -> None:
    side = environment(Ssh=group(8000))

    assert {each.status for each in policy(side, side).findings} == {"standing"}


def test_another_number_in_the_message_makes_no_new_finding() -> None:
    found = policy(environment(Ssh=group(8000)), environment(Ssh=group(9000)))

    assert of(found, "world-ingress") == [("standing", reachable(9000), None)]


def test_nothing_on_either_side() -> None:
    assert policy(EMPTY, EMPTY) == Policy()


def test_a_group_keeps_its_finding_when_others_come_before_it() -> None:
    def cluster(*names: str) -> Assembly:
        groups = [{"InstanceGroupName": name, "InstanceCount": 1} for name in names]
        return environment(Pod={"Type": "AWS::SageMaker::Cluster", "Properties": {"InstanceGroups": groups}})

    found = policy(cluster("b"), cluster("a", "b"))

    states = {each.message.partition(":")[0]: each.status for each in found.findings if "[" in each.message}
    assert states == {"InstanceGroups[a]": "new", "InstanceGroups[b]": "standing"}


def test_a_suppressed_finding_is_shown_with_its_reason() -> None:
    known = {"cdk_nag": {"rules_to_suppress": [{"id": "world-ingress", "reason": "a bastion"}]}}

    found = policy(EMPTY, environment(Ssh=group(8000, metadata=known)))

    assert of(found, "world-ingress") == [("new", reachable(8000), "a bastion")]
    assert of(found, "suppression-without-reason") == []


def test_a_suppression_without_a_reason_is_a_finding() -> None:
    unsaid = {"cfn-lint": {"config": {"ignore_checks": ["world-ingress"]}}}

    found = policy(EMPTY, environment(Ssh=group(8000, metadata=unsaid)))

    assert of(found, "world-ingress") == [("new", reachable(8000), "no reason given")]
    assert [each for each in found.findings if each.rule == "suppression-without-reason"] == [
        PolicyFinding(
            rule="suppression-without-reason",
            severity="warning",
            resource="dev-network / Ssh",
            message="Metadata world-ingress: must state why world-ingress is suppressed; list it with its reason in "
            "Metadata.cdk_nag.rules_to_suppress",
            status="new",
        )
    ]


def test_what_nobody_knows_of_comes_first_and_errors_before_warnings() -> None:
    known = {"cdk_nag": {"rules_to_suppress": [{"id": "world-ingress", "reason": "a bastion"}]}}
    head = environment(
        Ssh=group(8000, metadata=known),
        Web=group(8001),
        Zone={"Type": "AWS::EC2::Subnet", "Properties": {"AvailabilityZone": {"Ref": "Z"}, "VpcId": "v"}},
    )

    order = [(each.suppressed is None, each.severity) for each in policy(EMPTY, head).findings]
    assert order == sorted(order, key=lambda each: (not each[0], each[1]))
    assert order[-1] == (False, "warning")


@pytest.fixture
def lone(tmp_path: Path) -> Path:
    """A template in a file of its own."""
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps({"Resources": {"Role": {**ROLE, "Metadata": {"cdk_nag": {"rules_to_suppress": [
        {"id": "AwsSolutions-IAM4", "reason": "known"}
    ]}}}}}))  # fmt: skip
    return file


def test_a_lone_template_goes_through_cdk_nag(lone: Path) -> None:
    seen: list[Mapping[str, Any]] = []

    def nag(template: Mapping[str, Any]) -> Sequence[NagViolation]:
        seen.append(template)
        return [
            NagViolation(rule=f"AwsSolutions-{rule}", severity=Severity.ERROR, message="a policy", logical_id="Role")
            for rule in ("IAM4[Policy::a]", "IAM5[Action::*]")
        ]

    found = policy(EMPTY, read_template(lone), nag=nag)

    assert seen == [json.loads(lone.read_text())]
    assert found.skipped == ()
    assert of(found, "AwsSolutions-IAM4[Policy::a]") == [("new", "a policy", "known")]
    assert of(found, "AwsSolutions-IAM5[Action::*]") == [("new", "a policy", None)]


def test_what_cdk_cannot_read_is_skipped_and_reported(lone: Path) -> None:
    def nag(_: Mapping[str, Any]) -> Sequence[NagViolation]:
        raise NagError("CDK cannot read the template: it is odd")

    found = policy(EMPTY, read_template(lone), nag=nag)

    assert found.skipped == ("cdk-nag was not run on cluster: CDK cannot read the template: it is odd",)


def test_a_nested_stack_is_named() -> None:
    nested = {"Type": "AWS::CloudFormation::Stack", "Properties": {"TemplateURL": "https://example.com/a.yaml"}}

    found = policy(EMPTY, environment(Vpc=nested))

    assert "dev-network / Vpc: a nested stack, whose template is not checked" in found.skipped


def report(folder: Path, *plugins: dict[str, Any], environments: Sequence[str] = ("dev", "prod")) -> None:
    """Write an assembly of environments with one stack each, and the report of its validation."""
    stages: dict[str, Any] = {}
    for name in environments:
        inner = folder / f"assembly-{name}"
        inner.mkdir(parents=True)
        path = f"{name}/network/Ssh/Resource"
        template = {"Resources": {"Ssh": group(8000, path=path), "Role": ROLE}}
        (inner / f"{name}net.template.json").write_text(json.dumps(template))
        (inner / f"{name}net.metadata.json").write_text(
            json.dumps(
                {
                    f"/{name}/network/Role": [
                        {
                            "type": "aws:cdk:acknowledged-rules",
                            "data": {"Annotation::AwsSolutions-IAM5[Action::*]": "why", "@aws-cdk/x:y": "no"},
                        }
                    ]
                }
            )
        )
        stack = {"type": "aws:cloudformation:stack", "environment": "aws://111122223333/us-east-1"}
        properties = {"templateFile": f"{name}net.template.json", "stackName": f"{name}-network"}
        (inner / "manifest.json").write_text(json.dumps({"artifacts": {"net": {**stack, "properties": properties}}}))
        nested = {"directoryName": f"assembly-{name}", "displayName": name}
        stages[f"assembly-{name}"] = {"type": "cdk:cloud-assembly", "properties": nested}
    (folder / "manifest.json").write_text(json.dumps({"artifacts": stages}))
    (folder / "validation-report.json").write_text(json.dumps({"pluginReports": plugins}))


def violation(name: str, rule: str, **more: Any) -> dict[str, Any]:
    located = {"templatePath": f"assembly-{name}/{name}net.template.json", "logicalId": "Ssh"}
    construct = {"constructPath": f"{name}/network/Ssh/Resource", "cloudFormationResource": located}
    return {
        "ruleName": rule,
        "description": "a text",
        "severity": "warning",
        "violatingConstructs": [construct],
        **more,
    }


def test_the_report_of_a_synthesis_is_read_for_its_environment(tmp_path: Path) -> None:
    by_path = {"violatingConstructs": [{"constructPath": "dev/network/Ssh"}], "severity": "error"}
    plugins = (
        {
            "pluginName": "hyperpod-cdk",
            "violations": [violation("dev", "world-ingress"), violation("prod", "world-ingress")],
            "suppressedViolations": [violation("dev", "W3005", reason="CDK writes it")],
        },
        {"pluginName": "AwsSolutions", "violations": [violation("dev", "AwsSolutions-EC23", **by_path)]},
    )
    report(tmp_path / "head", *plugins)

    found = policy(EMPTY, read_assembly(tmp_path / "head", "dev"))

    assert [
        (each.rule, each.severity, each.resource, each.message, each.status, each.suppressed) for each in found.findings
    ] == [
        ("AwsSolutions-EC23", "error", "dev-network / Ssh", "a text", "new", None),
        ("world-ingress", "warning", "dev-network / Ssh", "a text", "new", None),
        (
            "AwsSolutions-IAM5[Action::*]",
            "error",
            "dev-network / Role",
            "is acknowledged for this construct and its children",
            "new",
            "why",
        ),
        ("W3005", "warning", "dev-network / Ssh", "a text", "new", "CDK writes it"),
    ]
    assert found.skipped == ()


def test_what_cdk_nag_found_on_one_side_only_stands(tmp_path: Path) -> None:
    report(tmp_path / "head", {"pluginName": "AwsSolutions", "violations": [violation("dev", "AwsSolutions-EC23")]})

    found = policy(environment(Ssh=group(8000)), read_assembly(tmp_path / "head", "dev"))

    assert of(found, "AwsSolutions-EC23") == [("standing", "a text", None)]
    assert "cdk-nag was not run on the base: its findings in the head are shown as existing" in found.skipped


def test_a_report_that_is_half_written_is_as_none(tmp_path: Path) -> None:
    report(tmp_path / "head")
    (tmp_path / "head" / "validation-report.json").write_text('{"pluginReports": [')

    found = policy(EMPTY, read_assembly(tmp_path / "head", "dev"))

    assert of(found, "world-ingress") == [("new", reachable(8000), None)]


def test_a_report_without_a_word_of_cdk_nag(tmp_path: Path) -> None:
    report(tmp_path / "head")
    (tmp_path / "head" / "assembly-dev" / "devnet.metadata.json").unlink()

    found = policy(EMPTY, read_assembly(tmp_path / "head", "dev"))

    assert found.findings == ()
    assert found.skipped == ("it is unknown whether cdk-nag was run on the head: its report has no finding of it",)


# what ships names no callers: only who deploys it knows them, and is warned until they are named
WITHOUT_CALLERS = {"prod": ["eks-public-endpoint"], "closed": []}


@pytest.mark.parametrize(("name", "known"), [("prod", "W9009"), ("closed", "deep-health-checks")])
def test_what_ships_has_no_finding_without_a_reason(assemblies: Path, name: str, known: str) -> None:
    shipped(assemblies, name)
    head = read_assembly(assemblies / name, name)

    found = policy(EMPTY, head)
    unreasoned = [each.rule for each in found.findings if each.suppressed in (None, "", "no reason given")]
    assert unreasoned == WITHOUT_CALLERS[name]
    assert {known, "AwsSolutions-L1", "W3005"} <= {each.rule for each in found.findings}
    assert found.skipped == ()

    # as deployed stacks are read: the pack runs, and finds what the report of the synthesis has
    bare = policy(EMPTY, Assembly(environment=name, stacks=head.stacks))
    own = {(each.rule, each.suppressed) for each in found.findings if "AwsSolutions" not in each.rule}
    assert {(each.rule, each.suppressed) for each in bare.findings} == own


ODD = """
Transform: [AWS::LanguageExtensions, AWS::Serverless-2016-10-31]
Parameters: { Name: { Type: String }, Ids: { Type: CommaDelimitedList } }
Conditions: { Wanted: !Equals [!Ref Name, a] }
Resources:
  Bucket:
    Type: AWS::S3::Bucket
    Condition: Wanted
    Properties:
      BucketName: !Sub "${Name}-b"
      Tags: !If [Wanted, [{ Key: a, Value: !Select [0, !Ref Ids] }], !Ref "AWS::NoValue"]
  Role:
    Type: AWS::IAM::Role
    Properties:
      AssumeRolePolicyDocument: { Statement: [{ Effect: Allow, Principal: { AWS: "*" }, Action: "sts:AssumeRole" }] }
      ManagedPolicyArns: !Ref Ids
      Policies: [{ PolicyName: a, PolicyDocument: { Statement: [{ Effect: Allow, Action: "s3:*", Resource: "*" }] } }]
  Nested: { Type: AWS::CloudFormation::Stack, Properties: { TemplateURL: !Ref Name } }
  Function: { Type: AWS::Serverless::Function, Properties: { Runtime: python3.13, Handler: a.b, InlineCode: a } }
  Own: { Type: Custom::Thing, Properties: { ServiceToken: !Ref Name, Anything: { "Fn::Base64": !Ref Name } } }
"""


def test_cdk_nag_reads_what_others_write(tmp_path: Path) -> None:
    file = tmp_path / "odd.yaml"
    file.write_text(ODD)

    found = policy(EMPTY, read_template(file))

    of_role = [each.rule for each in found.findings if each.resource == "odd / Role" and "AwsSolutions" in each.rule]
    assert of_role == ["AwsSolutions-IAM5[Action::s3:*]", "AwsSolutions-IAM5[Resource::*]"]
    assert of(found, "AwsSolutions-S1") == [("new", "The S3 Bucket has server access logs disabled.", None)]
    assert found.skipped == (
        "odd / Nested: a nested stack, whose template is not checked",
        "odd / Role: AwsSolutions-IAM4 cannot judge it, because it expects a value where an expression is",
    )


def test_what_cdk_does_not_read_brings_nothing_down() -> None:
    with pytest.raises(NagError, match=r"^CDK cannot read the template: .*NoSuchThing"):
        nag_violations(
            {"Resources": {"A": {"Type": "AWS::S3::Bucket", "Properties": {"Tags": {"Ref": "NoSuchThing"}}}}}
        )


@pytest.mark.examples
def test_within_a_process_that_runs_cdk_nag_says_the_same(
    looks_here: Callable[[str], tuple[NagViolation, ...]],
) -> None:
    text = json.dumps({"Resources": {"Bucket": {"Type": "AWS::S3::Bucket"}, "Topic": {"Type": "AWS::SNS::Topic"}}})
    apart = nag_violations(json.loads(text))
    assert len({each.logical_id for each in apart}) == 2
    assert list(looks_here(text)) == apart
