"""Suppressions of findings in templates and in CDK."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hyperpod_cdk.templates.assembly import Resource, Stack
from hyperpod_cdk.templates.rules import Suppression, Suppressions
from tests.support.tables import row_by_row


def resource(metadata: Any) -> Resource:
    return Resource(stack="dev", logical_id="Role", type="AWS::IAM::Role", body={"Metadata": metadata})


def nag(**entry: Any) -> dict[str, Any]:
    return {"cdk_nag": {"rules_to_suppress": [entry]}}


@row_by_row(
    "metadata, rule, expected",
    [
        (nag(id="node-role", reason="a  test\nof it"), "node-role", Suppression("a test of it")),
        (nag(id="hyperpod-cdk::node-role", reason="known"), "node-role", Suppression("known")),
        (nag(id="node-role", reason="known"), "lustre-zone", None),
        (nag(id="AwsSolutions-IAM5", reason="known"), "AwsSolutions-IAM5[Action::s3:*]", Suppression("known")),
        (nag(id="AwsSolutions-IAM5[Action::s3:*]", reason="k"), "AwsSolutions-IAM5[Action::s3:*]", Suppression("k")),
        (nag(id="AwsSolutions-IAM5[Action::a:*]", reason="k"), "AwsSolutions-IAM5[Action::s3:*]", None),
        (
            nag(id="AwsSolutions-IAM5", reason="known", applies_to=["Action::s3:*"]),
            "AwsSolutions-IAM5[Action::s3:*]",
            Suppression("known"),
        ),
        (nag(id="AwsSolutions-IAM5", reason="k", applies_to=["Action::a:*"]), "AwsSolutions-IAM5[Action::s3:*]", None),
        (nag(id="node-role", reason="w6Ru", is_reason_encoded=True), "node-role", Suppression("än")),
        (nag(id="node-role", reason="%%", is_reason_encoded=True), "node-role", Suppression("")),
        (nag(id="node-role"), "node-role", Suppression("")),
        (nag(id=["node-role"], reason="known"), "node-role", None),
        (nag(id="node-role", reason={"Ref": "A"}), "node-role", Suppression("")),
        ({"cfn-lint": {"config": {"ignore_checks": ["W3005"]}}}, "W3005", Suppression("")),
        (
            {"cfn-lint": {"config": {"ignore_checks": ["W3005"]}}, **nag(id="W3005", reason="CDK writes it")},
            "W3005",
            Suppression("CDK writes it"),
        ),
        ({"cfn-lint": {"config": {"ignore_checks": "W3005"}}}, "W3005", None),
        ({"cfn-lint": ["config"], "cdk_nag": {"rules_to_suppress": ["node-role"]}}, "node-role", None),
        ("node-role", "node-role", None),
        (None, "node-role", None),
    ],
)
def test_what_metadata_says(metadata: Any, rule: str, expected: Suppression | None) -> None:
    stack = Stack(name="dev", template={})

    assert Suppressions().of(stack, resource(metadata), rule) == expected


def test_a_finding_of_the_whole_template_is_not_suppressed() -> None:
    assert Suppressions().of(Stack(name="dev", template={}), None, "E1001") is None


def test_cdk_keeps_acknowledgments_beside_the_template(tmp_path: Path) -> None:
    def acknowledged(**rules: str) -> dict[str, Any]:
        return {"type": "aws:cdk:acknowledged-rules", "data": rules}

    (tmp_path / "dev.metadata.json").write_text(
        json.dumps(
            {
                "/dev/network": [acknowledged(**{"Annotation::AwsSolutions-VPC7": "no flow logs"})],
                "/dev/network/Role": [
                    acknowledged(**{"hyperpod-cdk::node-role": "a  test"}),
                    acknowledged(**{"annotation::AwsSolutions-IAM4": "old form"}),
                ],
                "/dev/network/Role/Resource": [{"type": "aws:cdk:logicalId", "data": "Role"}],
            }
        )
    )
    stack = Stack(name="dev-network", template={}, file=tmp_path / "dev.template.json")
    suppressions = Suppressions()
    inside = resource({"aws:cdk:path": "dev/network/Role/Resource"})
    beside = resource({"aws:cdk:path": "dev/network/RoleOfAnother"})

    assert suppressions.of(stack, inside, "node-role") == Suppression("a test")
    assert suppressions.of(stack, inside, "AwsSolutions-IAM4") == Suppression("old form")
    assert suppressions.of(stack, inside, "AwsSolutions-VPC7") == Suppression("no flow logs")
    # CDK writes paths into a template for its command line only
    assert suppressions.of(stack, resource(None), "node-role") == Suppression("a test")
    assert suppressions.of(stack, beside, "node-role") is None
    assert suppressions.acknowledged(stack)["dev/network"] == {"AwsSolutions-VPC7": "no flow logs"}


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"/a": "b"}', '{"/a": ["b", {"type": "aws:cdk:acknowledged-rules"}]}']
)
def test_invalid_metadata(tmp_path: Path, text: str) -> None:
    (tmp_path / "dev.metadata.json").write_text(text)

    assert Suppressions().acknowledged(Stack(name="dev", template={}, file=tmp_path / "dev.template.json")) == {}
