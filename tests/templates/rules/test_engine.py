"""What the engine is given, and what it says of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hyperpod_cdk.templates.assembly import Stack, read_template
from hyperpod_cdk.templates.rules.engine import engine_problems
from hyperpod_cdk.templates.rules.engine_process import EngineError, problems_apart

TEMPLATE = """\
Resources:
  Queue:
    Type: AWS::SQS::Queue
    Properties:
      NoSuchProperty: 1
"""


def test_the_mark_of_windows_editors_is_no_part_of_a_template(tmp_path: Path) -> None:
    said = []
    for name, encoding in (("plain.yaml", "utf-8"), ("marked.yaml", "utf-8-sig")):
        file = tmp_path / name
        file.write_text(TEMPLATE, encoding=encoding)
        (stack,) = read_template(file).stacks
        said.append([(each.rule, each.place, each.line) for each in engine_problems(stack)])

    assert said[0] == said[1]
    assert [line for _, _, line in said[0]] == [5]


def test_a_process_of_its_own_says_the_same() -> None:
    resources = {
        "Role": {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": {}, "Unknown": 1}},
        "Bucket": {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": "A_B"}},
    }
    stack = Stack(name="prod", template={"Resources": resources}, region="us-east-1")
    said = list(engine_problems(stack))
    assert {each.logical_id for each in said} == {"Role", "Bucket"}
    assert problems_apart(stack) == said


def test_a_cluster_in_pieces_has_the_outputs_of_the_whole_once() -> None:
    groups = [{"InstanceGroupName": f"group-{index}", "InstanceType": "ml.m5.2xlarge"} for index in range(25)]
    stack = Stack(
        name="prod",
        template={
            "Resources": {"It": {"Type": "AWS::SageMaker::Cluster", "Properties": {"InstanceGroups": groups}}},
            "Outputs": {"Bad": {"Value": {"Fn::GetAtt": ["It", "NoSuchAttribute"]}}},
        },
        region="us-east-1",
    )
    assert ["NoSuchAttribute" in each.message for each in engine_problems(stack)].count(True) == 1


def test_a_template_that_the_engine_cannot_be_given() -> None:
    stack = Stack(name="prod", template={"Resources": {"It": {"Type": "AWS::SNS::Topic", "Properties": {"A": {1, 2}}}}})
    with pytest.raises(EngineError, match=r"^the template contains a value that JSON cannot represent: "):
        problems_apart(stack)


def test_a_process_that_fails_says_its_last_line(tmp_path: Path) -> None:
    for gone in (tmp_path / "gone.yaml", tmp_path / ("a" * 200) / ("b" * 200)):
        stack = Stack(name="prod", template={"Resources": {"It": {"Type": "AWS::SNS::Topic"}}}, file=gone)
        with pytest.raises(EngineError) as failed:
            problems_apart(stack)
        assert str(failed.value) == f"FileNotFoundError: [Errno 2] No such file or directory: '{gone}'"[:300]
