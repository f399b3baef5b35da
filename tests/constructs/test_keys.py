"""KMS keys made and named, the statements that services need, and a key for every log group."""

from __future__ import annotations

import re
from typing import Any, cast

import aws_cdk as cdk
import jsii
import pytest
from aws_cdk import assertions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct, IConstruct

from hyperpod_cdk import EncryptionKey
from hyperpod_cdk.common.acknowledgments import acknowledge_log_group, ignore_in_checkov
from hyperpod_cdk.common.keys import encrypt_log_groups
from tests.support import templates

ARN = "arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
ROLE = "arn:aws:iam::111122223333:role/nodes"


@pytest.fixture
def stack() -> cdk.Stack:
    return templates.stack("prod")


def template(stack: cdk.Stack) -> assertions.Template:
    return assertions.Template.from_stack(stack)


def statements(stack: cdk.Stack) -> list[dict[str, Any]]:
    """Return the statements of the only key's policy, except the one that delegates to IAM."""
    (key,) = template(stack).find_resources("AWS::KMS::Key").values()
    stated: list[dict[str, Any]] = key["Properties"]["KeyPolicy"]["Statement"]
    first, *rest = stated
    assert (first["Action"], first["Principal"]["AWS"]["Fn::Join"][1][-1]) == ("kms:*", ":iam::111122223333:root")
    return rest


def test_a_key_is_made_with_its_alias(stack: cdk.Stack) -> None:
    EncryptionKey(stack, "Key", alias="alias/prod-logs", description="logs of prod")
    found = template(stack)
    found.has_resource(
        "AWS::KMS::Key",
        {
            "Properties": {"EnableKeyRotation": True, "Description": "logs of prod"},
            "DeletionPolicy": "RetainExceptOnCreate",
            "UpdateReplacePolicy": "Retain",
        },
    )
    (alias,) = found.find_resources("AWS::KMS::Alias").values()
    assert alias["Properties"]["AliasName"] == "alias/prod-logs"
    # the name goes with the stack, so that the stack can be made again
    assert "DeletionPolicy" not in alias


def test_it_is_kept_as_what_it_encrypts(stack: cdk.Stack) -> None:
    EncryptionKey(stack, "Key", removal_policy=cdk.RemovalPolicy.RETAIN)
    template(stack).has_resource("AWS::KMS::Key", {"DeletionPolicy": "Retain"})
    template(stack).resource_count_is("AWS::KMS::Alias", 0)


def test_logs_may_use_it_for_groups_of_the_account(stack: cdk.Stack) -> None:
    EncryptionKey(stack, "Key").allow_log_groups()
    (statement,) = statements(stack)
    assert statement["Principal"] == {
        "Service": {"Fn::Join": ["", ["logs.", {"Ref": "AWS::Region"}, ".", {"Ref": "AWS::URLSuffix"}]]}
    }
    assert statement["Action"] == [
        "kms:Decrypt",
        "kms:DescribeKey",
        "kms:Encrypt",
        "kms:GenerateDataKey*",
        "kms:ReEncrypt*",
    ]
    parts = statement["Condition"]["ArnLike"]["kms:EncryptionContext:aws:logs:arn"]["Fn::Join"][1]
    assert (parts[0], parts[-1]) == ("arn:", ":log-group:*")
    assert parts[1:-1] == [{"Ref": "AWS::Partition"}, ":logs:", {"Ref": "AWS::Region"}, ":", {"Ref": "AWS::AccountId"}]


def test_hyperpod_may_make_grants_as_each_role(stack: cdk.Stack) -> None:
    EncryptionKey(stack, "Key").allow_node_volumes(ROLE, f"{ROLE}-karpenter")
    found = statements(stack)
    assert [(each["Principal"]["AWS"], each["Action"]) for each in found] == [
        (ROLE, "kms:CreateGrant"),
        (ROLE, "kms:DescribeKey"),
        (f"{ROLE}-karpenter", "kms:CreateGrant"),
        (f"{ROLE}-karpenter", "kms:DescribeKey"),
    ]
    via = {"Fn::Join": ["", ["sagemaker.", {"Ref": "AWS::Region"}, ".amazonaws.com"]]}
    assert [each["Condition"] for each in found[:2]] == [
        {"StringEquals": {"kms:ViaService": via}, "Bool": {"kms:GrantIsForAWSResource": "true"}},
        {"StringEquals": {"kms:ViaService": via}},
    ]
    # HyperPod sends none, and a condition on one would shut it out
    assert "EncryptionContext" not in str(found)


def test_nothing_is_created_for_an_existing_key(stack: cdk.Stack) -> None:
    named = EncryptionKey(stack, "Key", arn=ARN)
    named.allow_log_groups()
    named.allow_node_volumes(ROLE)
    assert stack.resolve(named.key.key_arn) == ARN
    assert "Resources" not in template(stack).to_json()


@pytest.mark.parametrize("words", [{"alias": "alias/mine"}, {"description": "mine"}])
def test_an_existing_key_has_its_own_message(stack: cdk.Stack, words: dict[str, str]) -> None:
    with pytest.raises(
        ValueError,
        match="alias and description are for a key that is made, got one together with arn; leave them out: nothing"
        " of an existing key is changed",
    ):
        EncryptionKey(stack, "Key", arn=ARN, alias=words.get("alias"), description=words.get("description"))


def test_every_log_group_below_gets_the_key(stack: cdk.Stack) -> None:
    other = kms.Key.from_key_arn(stack, "Other", ARN.replace("1234abcd", "5678abcd"))
    logs.CfnLogGroup(stack, "First")
    logs.LogGroup(stack, "Second")
    logs.LogGroup(stack, "Own", encryption_key=other)
    iam.CfnRole(stack, "Role", assume_role_policy_document={})
    encrypt_log_groups(stack, EncryptionKey(stack, "Key", arn=ARN).key)
    groups = template(stack).find_resources("AWS::Logs::LogGroup")
    keys = {name.rstrip("0123456789ABCDEF"): each["Properties"]["KmsKeyId"] for name, each in groups.items()}
    assert keys == {"First": ARN, "Second": ARN, "Own": other.key_arn}


def test_what_comes_after_the_key_gets_it_too(stack: cdk.Stack) -> None:
    encrypt_log_groups(stack, EncryptionKey(stack, "Key", arn=ARN).key)
    logs.CfnLogGroup(stack, "Later")
    (group,) = template(stack).find_resources("AWS::Logs::LogGroup").values()
    assert group["Properties"]["KmsKeyId"] == ARN


def test_of_two_keys_the_first_one_stays(stack: cdk.Stack) -> None:
    logs.CfnLogGroup(stack, "Group")
    for name, arn in (("First", ARN), ("Second", ARN.replace("1234abcd", "5678abcd"))):
        encrypt_log_groups(stack, EncryptionKey(stack, name, arn=arn).key)
    (group,) = template(stack).find_resources("AWS::Logs::LogGroup").values()
    assert group["Properties"]["KmsKeyId"] == ARN


@jsii.implements(cdk.IAspect)
class Adds:
    """Adds a log group where it comes by last: below the last construct of a stack."""

    def __init__(self, key: str | None) -> None:
        self.key = key

    def visit(self, node: IConstruct) -> None:
        if node.node.id == "Last":
            logs.CfnLogGroup(cast("Construct", node), "Added", kms_key_id=self.key)


@pytest.mark.parametrize("key", [None, ARN])
def test_a_group_that_an_aspect_adds_afterwards_has_to_have_a_key(stack: cdk.Stack, key: str | None) -> None:
    encrypt_log_groups(stack, EncryptionKey(stack, "Key", arn=ARN).key)
    Construct(stack, "Last")
    cdk.Aspects.of(stack).add(cast("cdk.IAspect", Adds(key)))
    if key:
        assert len(template(stack).find_resources("AWS::Logs::LogGroup")) == 1
        return
    with pytest.raises(
        RuntimeError,
        match=re.escape(
            "[prod/EncryptedLogGroups] prod/Last/Added: must have a key like every log group below prod, got none from"
            " the aspect that added it; give it the key there"
        ),
    ):
        template(stack)


def test_a_group_that_gets_the_key_needs_no_answer_for_having_none(stack: cdk.Stack) -> None:
    plain, other = logs.CfnLogGroup(stack, "Plain"), logs.CfnLogGroup(stack, "Other")
    for group in (plain, other):
        acknowledge_log_group(group)
        group.add_metadata("of", "mine")
    ignore_in_checkov(other, {"CKV_AWS_66": "another finding"})
    encrypt_log_groups(stack, EncryptionKey(stack, "Key", arn=ARN).key)
    groups = template(stack).find_resources("AWS::Logs::LogGroup")
    assert {name: each["Metadata"] for name, each in groups.items()} == {
        "Plain": {"of": "mine"},
        "Other": {"of": "mine", "checkov": {"skip": [{"id": "CKV_AWS_66", "comment": "another finding"}]}},
    }
