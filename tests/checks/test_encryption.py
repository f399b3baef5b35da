"""KMS keys in the file: their state, and the access by their policies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hyperpod_cdk.checks.answers import KmsKeyAnswer, NotAnswered
from hyperpod_cdk.checks.model import REGISTER, Case, Result
from hyperpod_cdk.checks.run import is_needed
from hyperpod_cdk.findings import Severity
from tests.support.fake_aws import FakeAws

CaseOf = Callable[..., Case]
RunCheck = Callable[..., Result]

KEY = "arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
FOREIGN = KEY.replace("111122223333", "444455556666")
CAN = "kms_keys_can_encrypt"
LETS = "kms_key_policies_let_the_services_in"
ROOT = {"Effect": "Allow", "Principal": {"AWS": "arn:aws:iam::111122223333:root"}, "Action": "kms:*"}
LOGS = {
    "Effect": "Allow",
    "Principal": {"Service": "logs.us-east-1.amazonaws.com"},
    "Action": ["kms:Encrypt*", "kms:Decrypt*", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:Describe*"],
}
PATTERN = "arn:aws:logs:us-east-1:111122223333:log-group:"


def answer(**members: Any) -> KmsKeyAnswer:
    stated = {"arn": KEY, "state": "Enabled", "spec": "SYMMETRIC_DEFAULT", "usage": "ENCRYPT_DECRYPT", **members}
    return KmsKeyAnswer(**stated)


def said(result: Result) -> list[tuple[str, str]]:
    return [(finding.path, finding.message) for finding in result.findings]


class TestKeys:
    @pytest.mark.check("kms_keys_can_encrypt", "passes")
    def test_a_key_that_works_passes(self, case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws) -> None:
        fake_aws.answers.kms_key = {KEY: answer()}
        result = run_check(CAN, case_of({"encryption": {"logs": KEY, "node_volumes": KEY}}), fake_aws)
        assert said(result) == []
        assert fake_aws.asked == [("kms_key", KEY)]

    @pytest.mark.check("kms_keys_can_encrypt", "fails")
    @pytest.mark.parametrize(
        ("found", "text"),
        [
            (None, "which does not exist; correct the ARN, or write create to create a key"),
            (
                answer(state="PendingDeletion"),
                f"which is about to be deleted; run 'aws kms cancel-key-deletion --key-id {KEY}', or name another",
            ),
            (answer(state="Disabled"), f"which is Disabled; run 'aws kms enable-key --key-id {KEY}', or name another"),
            (answer(spec="RSA_2048", usage="SIGN_VERIFY"), "which is RSA_2048 for SIGN_VERIFY; name another"),
            (answer(usage="GENERATE_VERIFY_MAC"), "which is SYMMETRIC_DEFAULT for GENERATE_VERIFY_MAC; name another"),
        ],
    )
    def test_another_fails_where_it_is_named(
        self, case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws, found: Any, text: str
    ) -> None:
        fake_aws.answers.kms_key = {KEY: found}
        result = run_check(CAN, case_of({"encryption": {"logs": KEY, "node_volumes": KEY}}), fake_aws)
        assert said(result) == [
            (
                "encryption.node_volumes",
                f"needs an enabled symmetric key for encryption, got {KEY} (also in encryption.logs), {text}",
            )
        ]

    @pytest.mark.check("kms_keys_can_encrypt", "skips")
    def test_what_is_not_answered_is_skipped_by_itself(
        self, case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws
    ) -> None:
        missing = NotAnswered("no permission for kms:DescribeKey", action="kms:DescribeKey")
        fake_aws.answers.kms_key = {KEY: None, FOREIGN: missing}
        result = run_check(CAN, case_of({"encryption": {"logs": KEY, "node_volumes": FOREIGN}}), fake_aws)
        assert [finding.path for finding in result.findings] == ["encryption.logs"]
        assert [(each.path, each.reason, each.action) for each in result.skipped] == [
            ("encryption.node_volumes", f"the key {FOREIGN}: no permission for kms:DescribeKey", "kms:DescribeKey")
        ]

    def test_keys_of_buckets_are_looked_at_too(self, case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws) -> None:
        far = KEY.replace("us-east-1", "eu-west-1")
        fake_aws.answers.kms_key = {KEY: None}
        account = {"namespace": "hyperpod-ns-research", "name": "trainer", "buckets": ["my-checkpoints"]}
        volume = {"name": "data", "bucket": "my-data", "kms_key_arn": KEY, "claim": {"namespaces": ["research"]}}
        case = case_of(
            {
                "hyperpod.tiered_checkpointing": {"service_accounts": [{**account, "kms_key_arns": [KEY, far]}]},
                "operators.training.elastic": False,
                "storage.s3": [volume],
            }
        )
        assert is_needed(REGISTER[CAN], case.environment)
        result = run_check(CAN, case, fake_aws)
        place = "hyperpod.tiered_checkpointing.service_accounts[0].kms_key_arns"
        also = "(also in storage.s3[0].kms_key_arn)"
        sentence = (
            f"needs an enabled symmetric key for encryption, got {KEY} {also}, which does not exist; correct the ARN"
        )
        assert said(result) == [(f"{place}[0]", sentence)]
        skipped = f"{far} is of another region, which is not asked"
        assert [(each.path, each.reason) for each in result.skipped] == [(f"{place}[1]", skipped)]


TOPIC = {
    "Effect": "Allow",
    "Principal": {"Service": ["cloudwatch.amazonaws.com", "budgets.amazonaws.com"]},
    "Action": ["kms:Decrypt", "kms:GenerateDataKey*"],
    "Resource": "*",
}


class TestPolicies:
    def findings(self, case_of: CaseOf, run_check: RunCheck, aws: FakeAws, field: str, *statements: Any) -> Result:
        aws.answers.kms_key_policy = {KEY: {"Statement": list(statements)}}
        told = {"notify": {"emails": ["on-call@example.com"]}} if field == "notifications" else {}
        return run_check(LETS, case_of({"encryption": {field: KEY}, **told}), aws)

    @pytest.mark.check("kms_key_policies_let_the_services_in", "passes")
    @pytest.mark.parametrize(
        ("field", "statement"),
        [
            ("logs", LOGS),
            ("logs", {**LOGS, "Principal": {"Service": ["s3.amazonaws.com", "logs.amazonaws.com"]}}),
            ("logs", {**LOGS, "Condition": {"ArnLike": {"kms:EncryptionContext:aws:logs:arn": f"{PATTERN}*"}}}),
            ("logs", {**LOGS, "Condition": {"StringEquals": {"aws:SourceAccount": "111122223333"}}}),
            ("node_volumes", ROOT),
            ("node_volumes", {**ROOT, "Action": ["kms:CreateGrant", "kms:DescribeKey"], "Principal": "*"}),
            ("file_systems", {**ROOT, "Principal": {"AWS": "111122223333"}}),
            ("lifecycle_bucket", {**ROOT, "Action": ["kms:Decrypt", "kms:GenerateDataKey*"]}),
            ("eks_secrets", ROOT),
            ("notifications", {**ROOT, "Action": "kms:*", "Principal": "*"}),
        ],
    )
    def test_a_policy_that_lets_them_in_passes(
        self, case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws, field: str, statement: Any
    ) -> None:
        assert said(self.findings(case_of, run_check, fake_aws, field, statement)) == []

    @pytest.mark.check("kms_key_policies_let_the_services_in", "fails")
    @pytest.mark.parametrize(
        ("statement", "group"),
        [
            (ROOT, "/aws/events/prod-hyperpod-1a2b3c4d"),
            ({**LOGS, "Principal": {"Service": "logs.eu-west-1.amazonaws.com"}}, "/aws/events/prod-hyperpod-1a2b3c4d"),
            ({**LOGS, "Action": "kms:Encrypt"}, "/aws/events/prod-hyperpod-1a2b3c4d"),
            (
                {**LOGS, "Condition": {"ArnLike": {"kms:EncryptionContext:aws:logs:arn": f"{PATTERN}/aws/events/*"}}},
                "/aws/eks/prod-eks/cluster",
            ),
            (
                {**LOGS, "Condition": {"ArnLike": {"kms:EncryptionContext:aws:logs:arn": f"{PATTERN}/aws/*"}}},
                "prod-hyperpod-LifecycleScriptsUploadLogs",
            ),
        ],
    )
    def test_logs_need_the_service(
        self, case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws, statement: Any, group: str
    ) -> None:
        text = (
            f"needs a key whose policy allows logs.us-east-1.amazonaws.com to use it for {group}, got {KEY}, whose"
            " policy does not; add a statement for that service with kms:Encrypt, kms:Decrypt, kms:ReEncrypt*,"
            " kms:GenerateDataKey* and kms:DescribeKey"
        )
        assert said(self.findings(case_of, run_check, fake_aws, "logs", ROOT, statement)) == [("encryption.logs", text)]

    @pytest.mark.parametrize(
        ("statements", "says"),
        [
            ([ROOT, TOPIC], []),
            ([ROOT, {**TOPIC, "Condition": {"StringEquals": {"aws:SourceAccount": "111122223333"}}}], []),
            (
                [ROOT],
                [
                    "needs a key whose policy allows cloudwatch.amazonaws.com to use it",
                    "needs a key whose policy allows budgets.amazonaws.com to use it",
                ],
            ),
            (
                [ROOT, {**TOPIC, "Action": "kms:Decrypt"}],
                [
                    "needs a key whose policy allows cloudwatch.amazonaws.com to use",
                    "needs a key whose policy allows budgets.amazonaws.com to use",
                ],
            ),
            (
                [ROOT, {**TOPIC, "Principal": {"Service": "cloudwatch.amazonaws.com"}}],
                ["needs a key whose policy allows budgets.amazonaws.com to use it"],
            ),
            ([TOPIC], ["needs a key whose policy allows account 111122223333 to use it"]),
        ],
    )
    def test_what_publishes_needs_the_key_of_the_topic(
        self, case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws, statements: list[Any], says: list[str]
    ) -> None:
        fake_aws.answers.kms_key_policy = {KEY: {"Statement": statements}}
        notify = {"emails": ["on-call@example.com"], "monthly_budget_usd": 100}
        result = run_check(LETS, case_of({"encryption": {"notifications": KEY}, "notify": notify}), fake_aws)
        assert [path for path, _ in said(result)] == ["encryption.notifications"] * len(says)
        assert all(text.startswith(start) for (_, text), start in zip(said(result), says, strict=True))

    @pytest.mark.parametrize(
        ("statement", "severity"),
        [
            (LOGS, Severity.ERROR),
            ({**ROOT, "Action": "kms:DescribeKey"}, Severity.ERROR),
            ({**ROOT, "Condition": {"StringEquals": {"kms:EncryptionContext:team": "a"}}}, Severity.ERROR),
            ({**ROOT, "Principal": {"AWS": "arn:aws:iam::444455556666:root"}}, Severity.ERROR),
            ({**ROOT, "Principal": {"AWS": "arn:aws:iam::111122223333:role/admin"}}, Severity.WARNING),
        ],
    )
    def test_volumes_need_the_account(
        self, case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws, statement: Any, severity: Severity
    ) -> None:
        fix = "add a statement that allows kms:CreateGrant and kms:DescribeKey to arn:aws:iam::111122223333:root"
        text = {
            Severity.ERROR: f"needs a key whose policy allows account 111122223333 to use it, got {KEY}; {fix}",
            Severity.WARNING: f"the policy of {KEY} allows single principals to use it, and the roles of the stacks get"
            f" their names only when they are created; {fix}, unless it names them already",
        }
        result = self.findings(case_of, run_check, fake_aws, "node_volumes", statement)
        assert [(each.severity, each.path, each.message) for each in result.findings] == [
            (severity, "encryption.node_volumes", text[severity])
        ]

    @pytest.mark.parametrize(
        ("field", "deny", "says"),
        [
            ("logs", {"Principal": "*"}, "denies"),
            ("logs", {"Principal": {"AWS": "*"}}, "denies"),
            ("logs", {"Principal": {"Service": "logs.amazonaws.com"}}, "denies"),
            ("logs", {"Principal": {"Service": "s3.amazonaws.com"}}, ""),
            ("logs", {"Principal": {"AWS": "arn:aws:iam::111122223333:root"}}, ""),
            ("logs", {"Principal": "*", "Action": "kms:ScheduleKeyDeletion"}, ""),
            ("logs", {"Principal": "*", "Action": None, "NotAction": "kms:Decrypt"}, "denies"),
            ("logs", {"Principal": "*", "Resource": KEY.replace("1234abcd", "ffffabcd")}, ""),
            ("logs", {"Principal": "*", "Condition": {"Bool": {"aws:SecureTransport": "false"}}}, ""),
            ("logs", {"Principal": "*", "Condition": {"StringNotEquals": {"aws:PrincipalOrgID": "o-1"}}}, "unknown"),
            ("logs", {"Principal": "*", "Condition": {"StringEquals": {"aws:SourceAccount": "444455556666"}}}, ""),
            ("logs", {"NotPrincipal": {"AWS": "arn:aws:iam::111122223333:role/admin"}}, "unknown"),
            ("logs", {"Principal": "*", "Resource": None, "NotResource": "x"}, "unknown"),
            ("node_volumes", {"Principal": "*"}, "denies"),
            ("node_volumes", {"Principal": {"AWS": "111122223333"}}, "denies"),
            ("node_volumes", {"Principal": {"AWS": "arn:aws:iam::444455556666:root"}}, ""),
            ("node_volumes", {"Principal": {"AWS": "arn:aws:iam::111122223333:role/intern"}}, "unknown"),
            ("node_volumes", {"Principal": {"Service": "logs.amazonaws.com"}}, ""),
            (
                "node_volumes",
                {"Principal": "*", "Condition": {"StringNotEquals": {"kms:CallerAccount": "111122223333"}}},
                "unknown",
            ),
            (
                "node_volumes",
                {"Principal": "*", "Condition": {"StringEquals": {"kms:CallerAccount": "444455556666"}}},
                "",
            ),
            ("node_volumes", {"NotPrincipal": {"AWS": "arn:aws:iam::111122223333:root"}}, "unknown"),
            ("notifications", {"Principal": {"Service": "cloudwatch.amazonaws.com"}}, "denies"),
            ("notifications", {"Principal": "*", "Condition": {"Null": {"aws:SourceArn": "true"}}}, "unknown"),
        ],
    )
    def test_a_statement_that_denies_counts_first(  # noqa: PLR0917 - a column of the table each, and fixtures
        self, case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws, field: str, deny: dict[str, Any], says: str
    ) -> None:
        """IAM user guide, "Policy evaluation logic": an explicit deny counts before what allows."""
        who = {"logs": "logs.us-east-1.amazonaws.com", "notifications": "cloudwatch.amazonaws.com"}
        one = who.get(field, "account 111122223333")
        denying = {"Effect": "Deny", "Action": "kms:*", "Resource": "*", **deny}
        denying = {name: value for name, value in denying.items() if value is not None}
        result = self.findings(case_of, run_check, fake_aws, field, ROOT, LOGS, TOPIC, denying)
        denied = (
            f"needs a key whose policy allows {one} to use it, got {KEY}, whose policy denies it; take {one} out of"
            " the statement that denies"
        )
        unknown = (
            f"whether the policy of {KEY} allows {one} to use it is unknown, because of its conditions or a statement"
            " that denies; check that it does before you deploy"
        )
        texts = {"": [], "denies": [(Severity.ERROR, denied)], "unknown": [(Severity.WARNING, unknown)]}
        assert [(each.severity, each.message) for each in result.findings] == texts[says]

    @pytest.mark.parametrize(
        ("field", "statement"),
        [
            ("logs", {**LOGS, "Condition": {"StringEquals": {"aws:PrincipalOrgID": "o-1"}}}),
            ("logs", {**LOGS, "Condition": {"ArnNotLike": {"kms:EncryptionContext:aws:logs:arn": f"{PATTERN}x"}}}),
            ("logs", {**LOGS, "Resource": None, "NotResource": "x"}),
            ("node_volumes", {**ROOT, "Condition": {"StringEquals": {"kms:ViaService": "s3.us-east-1.amazonaws.com"}}}),
            ("node_volumes", {**ROOT, "Principal": None, "NotPrincipal": {"AWS": "444455556666"}}),
        ],
    )
    def test_what_lets_on_conditions_that_are_not_known_is_no_pass(
        self, case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws, field: str, statement: dict[str, Any]
    ) -> None:
        stated = {name: value for name, value in statement.items() if value is not None}
        result = self.findings(case_of, run_check, fake_aws, field, stated)
        assert [each.severity for each in result.findings] == [Severity.WARNING]
        assert result.findings[0].message.startswith(f"whether the policy of {KEY} allows ")

    @pytest.mark.check("kms_key_policies_let_the_services_in", "skips")
    def test_a_policy_that_is_not_shown_is_skipped(
        self, case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws
    ) -> None:
        fake_aws.answers.kms_key_policy = {KEY: NotAnswered("no permission", action="kms:GetKeyPolicy")}
        result = run_check(LETS, case_of({"encryption": {"logs": KEY, "file_systems": FOREIGN}}), fake_aws)
        assert [(each.path, each.reason, each.action) for each in result.skipped] == [
            ("encryption.logs", f"the policy of {KEY}: no permission", "kms:GetKeyPolicy")
        ]
        # another account's policy is not asked for
        assert fake_aws.asked == [("kms_key_policy", KEY)]
