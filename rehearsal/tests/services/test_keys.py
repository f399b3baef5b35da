"""Whom the policy of a KMS key lets use it, and what services say where it lets them not."""

from __future__ import annotations

import json
from typing import Any

import pytest

ACCOUNT = "123456789012"
ROOT = {"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}, "Action": "kms:*", "Resource": "*"}
LOGS = {
    "Effect": "Allow",
    "Principal": {"Service": "logs.us-east-1.amazonaws.com"},
    "Action": ["kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:DescribeKey"],
    "Resource": "*",
}
GROUP = f"arn:aws:logs:us-east-1:{ACCOUNT}:log-group:mine"
NODES = f"arn:aws:iam::{ACCOUNT}:role/nodes"
GRANTS = {"Effect": "Allow", "Action": ["kms:CreateGrant", "kms:DescribeKey"], "Resource": "*"}


def key(world: Any, *statements: Any, **members: Any) -> str:
    """Make a key with a policy of these statements."""
    policy = json.dumps({"Version": "2012-10-17", "Statement": list(statements)})
    return str(world.client("kms").create_key(Policy=policy, **members)["KeyMetadata"]["Arn"])


def only_for(pattern: str, operator: str = "ArnLike") -> dict[str, Any]:
    return {**LOGS, "Condition": {operator: {"kms:EncryptionContext:aws:logs:arn": pattern}}}


def to_the_role(**condition: Any) -> dict[str, Any]:
    return {**GRANTS, "Principal": {"AWS": NODES}, "Condition": condition}


class TestKeyPairs:
    def test_a_key_that_signs_has_its_own(self, world: Any) -> None:
        kms = world.client("kms")
        for spec, algorithm in (("RSA_2048", "RSASSA_PSS_SHA_256"), ("ECC_NIST_P384", "ECDSA_SHA_384")):
            signing = {"KeyId": key(world, ROOT, KeySpec=spec, KeyUsage="SIGN_VERIFY"), "SigningAlgorithm": algorithm}
            signature = kms.sign(Message=b"text", **signing)["Signature"]
            assert kms.verify(Message=b"text", Signature=signature, **signing)["SignatureValid"]

    def test_a_symmetric_key_encrypts_without(self, world: Any) -> None:
        kms = world.client("kms")
        ciphertext = kms.encrypt(KeyId=key(world, ROOT), Plaintext=b"text")["CiphertextBlob"]
        assert kms.decrypt(CiphertextBlob=ciphertext)["Plaintext"] == b"text"


class TestLogGroups:
    @pytest.mark.parametrize(
        "statement",
        [
            LOGS,
            {**LOGS, "Principal": {"Service": ["ec2.amazonaws.com", "logs.amazonaws.com"]}},
            {**LOGS, "Action": "kms:*"},
            only_for(f"arn:aws:logs:us-east-1:{ACCOUNT}:log-group:*"),
            only_for(GROUP, "ArnEquals"),
            {**LOGS, "Condition": {"StringEquals": {"aws:SourceAccount": ACCOUNT}}},
        ],
    )
    def test_a_policy_that_names_the_service_passes(self, world: Any, statement: Any) -> None:
        arn = key(world, ROOT, statement)
        logs = world.client("logs")
        logs.create_log_group(logGroupName="mine", kmsKeyId=arn)
        assert logs.describe_log_groups()["logGroups"][0]["kmsKeyId"] == arn

    @pytest.mark.parametrize(
        "statement",
        [
            ROOT,
            {**LOGS, "Principal": {"Service": "logs.eu-west-1.amazonaws.com"}},
            {**LOGS, "Action": "kms:Decrypt"},
            only_for(f"arn:aws:logs:us-east-1:{ACCOUNT}:log-group:other"),
            only_for("arn:aws:logs:us-east-1:444455556666:log-group:*"),
            {**LOGS, "Condition": {"StringEquals": {"aws:SourceAccount": "444455556666"}}},
        ],
    )
    def test_another_is_refused_at_creation_and_later(self, world: Any, refusal: Any, statement: Any) -> None:
        arn, logs = key(world, ROOT, statement), world.client("logs")
        logs.create_log_group(logGroupName="mine2")
        expected = "The specified KMS key does not exist or is not allowed to be used with Arn '{}'"
        assert refusal(logs.create_log_group, logGroupName="mine", kmsKeyId=arn) == (
            "AccessDeniedException",
            expected.format(GROUP),
        )
        assert refusal(logs.associate_kms_key, logGroupName="mine2", kmsKeyId=arn) == (
            "AccessDeniedException",
            expected.format(f"{GROUP}2"),
        )

    def test_a_refusal_in_the_policy_wins(self, world: Any, refusal: Any) -> None:
        arn = key(world, ROOT, LOGS, {**LOGS, "Effect": "Deny", "Action": "kms:Decrypt"})
        assert refusal(world.client("logs").create_log_group, logGroupName="mine", kmsKeyId=arn)[0] == (
            "AccessDeniedException"
        )

    def test_a_key_is_added_and_removed(self, world: Any) -> None:
        arn, logs = key(world, ROOT, LOGS), world.client("logs")
        logs.create_log_group(logGroupName="mine")
        logs.associate_kms_key(logGroupName="mine", kmsKeyId=arn)
        assert logs.describe_log_groups()["logGroups"][0]["kmsKeyId"] == arn
        logs.disassociate_kms_key(logGroupName="mine")
        assert "kmsKeyId" not in logs.describe_log_groups()["logGroups"][0]

    def test_a_key_that_does_not_work_is_treated_as_missing(self, world: Any, refusal: Any) -> None:
        arn, logs = key(world, ROOT, LOGS), world.client("logs")
        world.client("kms").disable_key(KeyId=arn.rpartition("/")[2])
        expected = ("InvalidParameterException", "The specified KMS Key Id could not be found.")
        assert refusal(logs.create_log_group, logGroupName="mine", kmsKeyId=arn) == expected

    def test_another_accounts_key_is_not_judged(self, world: Any) -> None:
        foreign = "arn:aws:kms:us-east-1:444455556666:key/1234abcd-12ab-34cd-56ef-1234567890ab"
        world.client("logs").create_log_group(logGroupName="mine", kmsKeyId=foreign)

    def test_a_group_that_is_not_there(self, world: Any, refusal: Any) -> None:
        expected = ("ResourceNotFoundException", "The specified log group does not exist.")
        assert refusal(world.client("logs").disassociate_kms_key, logGroupName="mine") == expected


class TestNodeVolumes:
    @pytest.mark.parametrize(
        "statement",
        [
            to_the_role(),
            to_the_role(StringEquals={"kms:ViaService": "sagemaker.us-east-1.amazonaws.com"}),
            to_the_role(Bool={"kms:GrantIsForAWSResource": "true"}),
            {**GRANTS, "Principal": "*", "Condition": {"StringEquals": {"kms:CallerAccount": ACCOUNT}}},
        ],
    )
    def test_a_policy_that_names_the_role_passes(self, world: Any, statement: Any) -> None:
        world.make_hyperpod(volumes(world, key(world, statement)))

    def test_the_account_may_leave_it_to_a_policy_of_the_role(self, world: Any) -> None:
        arn = key(world, ROOT)
        world.allow("nodes", {arn: ["kms:CreateGrant", "kms:DescribeKey"]}, "volumes")
        world.make_hyperpod(volumes(world, arn))

    @pytest.mark.parametrize(
        "statement",
        [
            ROOT,
            to_the_role(StringEquals={"kms:ViaService": "ec2.us-east-1.amazonaws.com"}),
            to_the_role(StringEquals={"kms:EncryptionContext:team": "research"}),
            {**GRANTS, "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:role/others"}},
        ],
    )
    def test_a_key_that_allows_no_grants_is_refused(self, world: Any, refusal: Any, statement: Any) -> None:
        arn = key(world, statement)
        assert refused(world, refusal, volumes(world, arn)) == (
            f"Instance group 'system': the role {NODES} is not authorized to perform kms:CreateGrant, kms:DescribeKey"
            f" on the KMS key {arn}. Rehearsal: neither the key's policy nor, where that leaves it to IAM, a policy of"
            " the role allows it."
        )

    def test_a_key_about_to_be_deleted_is_refused(self, world: Any, refusal: Any) -> None:
        arn = key(world, to_the_role())
        world.client("kms").schedule_key_deletion(KeyId=arn.rpartition("/")[2])
        assert refused(world, refusal, volumes(world, arn)) == (
            f"Instance group 'system': the KMS key {arn} is PendingDeletion."
        )

    def test_a_key_of_another_kind_is_refused(self, world: Any, refusal: Any) -> None:
        arn = key(world, to_the_role(), KeySpec="RSA_2048", KeyUsage="SIGN_VERIFY")
        assert refused(world, refusal, volumes(world, arn)) == (
            f"Instance group 'system': the KMS key {arn} is not a symmetric encryption key (RSA_2048, SIGN_VERIFY)."
        )

    def test_keys_need_continuous_provisioning(self, world: Any, refusal: Any) -> None:
        group = volumes(world, key(world, to_the_role()))
        world.make_eks()
        request = world.hyperpod_request(group)
        del request["NodeProvisioningMode"]
        assert refusal(world.client("sagemaker").create_cluster, **request) == (
            "ValidationException",
            "Instance group 'system': VolumeKmsKeyId requires NodeProvisioningMode Continuous.",
        )

    @pytest.mark.parametrize(
        ("configs", "text"),
        [
            ([{"RootVolume": True}], "RootVolume requires VolumeKmsKeyId and does not take VolumeSizeInGB."),
            (
                [{"RootVolume": True, "VolumeSizeInGB": 100, "VolumeKmsKeyId": "KEY"}],
                "RootVolume requires VolumeKmsKeyId and does not take VolumeSizeInGB.",
            ),
            ([{"VolumeKmsKeyId": "KEY"}], "VolumeSizeInGB is required for a secondary volume."),
            ([{"VolumeSizeInGB": 1}, {"VolumeSizeInGB": 2}], "specify at most one secondary volume, got 2."),
        ],
    )
    def test_what_a_volume_must_say(self, world: Any, refusal: Any, configs: list[Any], text: str) -> None:
        arn = key(world, to_the_role())
        stated = [{name: arn if value == "KEY" else value for name, value in each.items()} for each in configs]
        group = world.group(InstanceStorageConfigs=[{"EbsVolumeConfig": each} for each in stated])
        assert refused(world, refusal, group) == f"Instance group 'system': {text}"

    def test_a_group_without_a_key_takes_one_and_keeps_it(self, world: Any, refusal: Any) -> None:
        first, second = key(world, to_the_role()), key(world, to_the_role())
        world.make_hyperpod(world.group(InstanceStorageConfigs=[{"EbsVolumeConfig": {"VolumeSizeInGB": 100}}]))
        update = world.client("sagemaker").update_cluster
        update(ClusterName="prod", InstanceGroups=[volumes(world, first)])
        world.settle()
        expected = (
            f"Instance group 'system': VolumeKmsKeyId cannot be changed from {first} to {second}. Create a new instance"
            " group instead."
        )
        assert refusal(update, ClusterName="prod", InstanceGroups=[volumes(world, second)]) == (
            "ValidationException",
            expected,
        )


def volumes(world: Any, arn: str) -> Any:
    """Return a group whose two volumes have a key."""
    configs = [{"VolumeSizeInGB": 100, "VolumeKmsKeyId": arn}, {"RootVolume": True, "VolumeKmsKeyId": arn}]
    return world.group(InstanceStorageConfigs=[{"EbsVolumeConfig": each} for each in configs])


def refused(world: Any, refusal: Any, group: Any) -> str:
    """Return the text with which CreateCluster refuses a group."""
    world.make_eks()
    code, message = refusal(world.client("sagemaker").create_cluster, **world.hyperpod_request(group))
    assert code == "ValidationException"
    return str(message)
