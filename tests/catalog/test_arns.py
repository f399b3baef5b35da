"""The required partition, account and Region of ARNs: each rule when it passes, and with one different part."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hyperpod_cdk.catalog import arns
from tests.support.tables import row_by_row

KEY = "key/1234abcd-12ab-34cd-56ef-1234567890ab"
REPLICA = "key/mrk-1234abcd12ab34cd56ef1234567890ab"


@pytest.mark.parametrize(
    ("arn", "problem"),
    [
        (f"arn:aws:kms:us-east-1:111122223333:{KEY}", None),
        (f"arn:aws:kms:us-east-1:444455556666:{KEY}", None),
        (
            f"arn:aws:kms:us-west-2:111122223333:{KEY}",
            (
                "must be a key of us-east-1, the region of what it encrypts, got"
                f" arn:aws:kms:us-west-2:111122223333:{KEY}; name a key of us-east-1"
            ),
        ),
        (
            f"arn:aws:kms:us-west-2:111122223333:{REPLICA}",
            (
                "must be a key of us-east-1, the region of what it encrypts, got"
                f" arn:aws:kms:us-west-2:111122223333:{REPLICA}; name the replica,"
                f" arn:aws:kms:us-east-1:111122223333:{REPLICA}, after it is created"
            ),
        ),
        # a key is never replicated into another partition, whatever its region says
        (
            f"arn:aws-cn:kms:us-east-1:111122223333:{REPLICA}",
            (
                "must be a key of us-east-1, the region of what it encrypts, got"
                f" arn:aws-cn:kms:us-east-1:111122223333:{REPLICA}; name a key of us-east-1"
            ),
        ),
        (
            f"arn:aws-cn:kms:cn-north-1:111122223333:{REPLICA}",
            (
                "must be a key of us-east-1, the region of what it encrypts, got"
                f" arn:aws-cn:kms:cn-north-1:111122223333:{REPLICA}; name a key of us-east-1"
            ),
        ),
    ],
)
def test_a_key_is_in_the_stack_of_what_it_encrypts(arn: str, problem: str | None) -> None:
    assert arns.key_reach_problem(arn, partition="aws", region="us-east-1") == problem


def test_an_alias_is_no_key() -> None:
    for alias in ("alias/logs", "arn:aws:kms:us-east-1:111122223333:alias/logs"):
        said = (
            f'the ARN of the key itself, got the alias "{alias}", which can be moved to another key; write what'
            f" 'aws kms describe-key --key-id {alias} --query KeyMetadata.Arn' shows"
        )
        assert arns.key_alias_problem(alias) == f"must be {said}"
        assert arns.key_alias_problem(alias, or_else="create or ") == f"must be create or {said}"
    for other in (f"arn:aws:kms:us-east-1:111122223333:{KEY}", "create", "logs"):
        assert arns.key_alias_problem(other) is None


def test_the_key_of_a_bucket_is_in_its_region() -> None:
    here, there = (f"arn:aws:kms:{region}:111122223333:{KEY}" for region in ("us-east-1", "us-west-2"))
    assert arns.bucket_key_problem(here, region="us-east-1") is None
    assert arns.bucket_key_problem(there, region="us-east-1") == (
        f"must be a key in us-east-1, where the bucket is, got {there}; name the bucket's key"
    )


def test_a_name_is_of_the_partition_of_its_region() -> None:
    assert arns.partition_problem("arn:aws-cn:s3:::ours", partition="aws-cn", region="cn-north-1") is None
    assert arns.partition_problem("arn:aws:s3:::ours", partition="aws-cn", region="cn-north-1") == (
        "must begin with arn:aws-cn:, the partition of cn-north-1, got arn:aws:; write arn:aws-cn:"
    )


def test_a_role_that_enters_is_of_the_partition() -> None:
    role = "arn:aws:iam::111122223333:role/a:aws:b"
    assert arns.role_partition_problem(role, partition="aws", region="us-east-1") is None
    assert arns.role_partition_problem(role, partition="aws-cn", region="cn-north-1") == (
        f"must be a role of the partition aws-cn, that of cn-north-1, got {role}; write"
        " arn:aws-cn:iam::111122223333:role/a:aws:b"
    )


@pytest.mark.parametrize(
    "home", ["aws:iam::444455556666", "aws-cn:iam::111122223333"], ids=["another account", "another partition"]
)
def test_a_role_is_at_home_in_account_and_partition(home: str) -> None:
    def problem(arn: str) -> str | None:
        return arns.home_problem("a role", arn, partition="aws", account="111122223333", key="role_arn")

    assert problem("arn:aws:iam::111122223333:role/ours") is None
    assert problem(f"arn:{home}:role/of:ours") == (
        f"must be a role of account 111122223333 in the partition aws, got arn:{home}:role/of:ours; set role_arn:"
        " arn:aws:iam::111122223333:role/of:ours"
    )


def test_the_issuer_is_of_a_cluster_in_the_region() -> None:
    def problem(host: str) -> str | None:
        arn = f"arn:aws:iam::111122223333:oidc-provider/{host}/id/ABC"
        return arns.issuer_problem(arn, region="us-east-1", key="oidc_provider_arn")

    assert problem("oidc.eks.us-east-1.amazonaws.com") is None
    assert problem("oidc.eks.us-east-10.amazonaws.com") == (
        "must be the OIDC provider of a cluster in us-east-1, got"
        " arn:aws:iam::111122223333:oidc-provider/oidc.eks.us-east-10.amazonaws.com/id/ABC; set oidc_provider_arn to"
        " the one that 'aws iam list-open-id-connect-providers' shows for the cluster's issuer"
    )


@pytest.mark.parametrize(
    ("arn", "is_at_home"),
    [
        ("arn:aws:aps:us-west-2:111122223333:workspace/ws-1", True),
        ("arn:aws:aps:us-west-2:444455556666:workspace/ws-1", False),
        ("arn:aws-cn:aps:us-west-2:111122223333:workspace/ws-1", False),
    ],
)
def test_a_workspace_is_at_home_in_account_and_partition(arn: str, *, is_at_home: bool) -> None:
    assert arns.workspace_home_problem(arn, partition="aws", account="111122223333", otherwise="leave it out") == (
        None
        if is_at_home
        else f"must be a workspace of account 111122223333 in the partition aws, got {arn}; name one of the account,"
        " or leave it out"
    )


def test_a_workspace_is_reached_in_its_region() -> None:
    here, there = (f"arn:aws:aps:{region}:111122223333:workspace/ws-1" for region in ("us-east-1", "us-west-2"))
    assert arns.workspace_region_problem(here, region="us-east-1", otherwise="leave it out") is None
    assert arns.workspace_region_problem(there, region="us-east-1", otherwise="leave it out") == (
        "must be a workspace in us-east-1, for whose endpoint the collector signs, got"
        f" {there}; name one of the region, or leave it out"
    )


@pytest.mark.parametrize(
    ("text", "parts", "name"),
    [
        (
            "arn:aws:sns:us-east-1:111122223333:on-call",
            ("aws", "sns", "us-east-1", "111122223333", "on-call"),
            "on-call",
        ),
        (
            "arn:aws-us-gov:iam::aws:policy/service-role/A",
            ("aws-us-gov", "iam", "", "aws", "policy/service-role/A"),
            "A",
        ),
        ("arn:aws:lambda:us-east-1:1:function:f:live", ("aws", "lambda", "us-east-1", "1", "function:f:live"), "live"),
        # of a template
        (
            "arn:${AWS::Partition}:events:${AWS::Region}:${AWS::AccountId}:event-bus/ml",
            ("${AWS::Partition}", "events", "${AWS::Region}", "${AWS::AccountId}", "event-bus/ml"),
            "ml",
        ),
        ("arn:aws:iam::111122223333", ("", "", "", "", ""), ""),
        ("alias/aws/sns", ("", "", "", "", ""), ""),
        ("", ("", "", "", "", ""), ""),
    ],
)
def test_the_parts_of_an_arn(text: str, parts: tuple[str, ...], name: str) -> None:
    assert (arns.arn_parts(text), arns.arn_parts(text).name) == (parts, name)


def test_no_other_place_takes_an_arn_apart(project: Path) -> None:
    """What runs in Lambda alone may, and an expression of CloudFormation does."""
    apart = re.compile(r"""split\(["']:["'](, *\d)?\)""")
    found = {
        path.relative_to(project).as_posix()
        for path in (project / "constructs" / "hyperpod_cdk").rglob("*.py")
        if apart.search(path.read_text(encoding="utf-8")) and "handlers" not in path.parts
    }
    assert found == {"constructs/hyperpod_cdk/review/rights/statements.py"}


def test_what_is_done_with_a_key_as_calls() -> None:
    logs = ("kms:Encrypt", "kms:Decrypt", "kms:ReEncryptTo", "kms:GenerateDataKey", "kms:DescribeKey")
    assert arns.key_calls(arns.LOGS_KEY_ACTIONS) == logs
    assert arns.key_calls(arns.TOPIC_KEY_ACTIONS) == arns.OBJECT_KEY_ACTIONS
    assert arns.key_calls(arns.VOLUME_KEY_ACTIONS) == arns.VOLUME_KEY_ACTIONS


NO_ROLE = (
    'must be the ARN of an IAM role, got "{}"; name the role that people assume, such as'
    " arn:aws:iam::111122223333:role/platform-admin"
).format
SESSION = (
    "must be the ARN of an IAM role, got the session {}, which ends with its login; set role_arn:"
    " arn:aws:iam::111122223333:role/{} (with the role's path, if it has one)"
).format
ASSUMED = "arn:aws:sts::111122223333:assumed-role/{}".format


@row_by_row(
    "arn, problem",
    [
        ("arn:aws:iam::111122223333:role/admin", None),
        ("arn:aws:iam::111122223333:role/a/path/admin", None),
        *((ASSUMED(name), SESSION(ASSUMED(name), "admin")) for name in ("admin/me", "admin", "admin/me/2")),
        *((arn, NO_ROLE(arn)) for arn in ("admin", "arn:aws:iam::111122223333:user/admin")),
        *((arn, NO_ROLE(arn)) for arn in (ASSUMED("").rstrip("/"), "arn:aws:sts::111122223333:federated-user/me")),
        ("arn:aws:iam::111122223333:assumed-role/admin", NO_ROLE("arn:aws:iam::111122223333:assumed-role/admin")),
    ],
)
def test_what_people_assume_is_a_role(arn: str, problem: str | None) -> None:
    assert arns.role_arn_problem(arn, "role_arn") == problem
