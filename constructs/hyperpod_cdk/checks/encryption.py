"""KMS keys that the file names: whether they can encrypt, and whether their policies let the services use them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hyperpod_cdk.catalog.arns import arn_parts
from hyperpod_cdk.catalog.iam_matching import listed, matches, names_action
from hyperpod_cdk.checks.answers import Aws, KmsKeyAnswer, NotAnswered
from hyperpod_cdk.checks.model import Case, Found, check, error, unanswered, warning
from hyperpod_cdk.checks.side_by_side import together
from hyperpod_cdk.config import Environment
from hyperpod_cdk.config.rules.encryption import named_keys

AREA = "encryption"

_LOGS = "encryption.logs"
_LOGS_ACTIONS = ("kms:Encrypt", "kms:Decrypt", "kms:ReEncryptTo", "kms:GenerateDataKey", "kms:DescribeKey")
_TOPIC = "encryption.notifications"
_OBJECT_ACTIONS = ("kms:Decrypt", "kms:GenerateDataKey")
_GRANT_ACTIONS = ("kms:CreateGrant", "kms:DescribeKey")
_CONTEXT = "kms:encryptioncontext:"
_LOG_GROUP_CONTEXT = f"{_CONTEXT}aws:logs:arn"

Statement = Mapping[str, Any]


@check(
    area=AREA,
    asks=("kms_key",),
    inputs="Every KMS key that the file names by ARN.",
    passes="Each exists, is Enabled, symmetric and for encryption; a multi-Region key too.",
    fails="There is no such key, or it is disabled or about to be deleted, or of another kind: whatever it should"
    " encrypt cannot be made.",
    skips="AWS gives no answer about a key, as about one of another account that its owner has not opened; the others"
    " are compared all the same.",
    by_hand="aws kms describe-key --key-id ARN --query KeyMetadata",
)
def kms_keys_can_encrypt(case: Case, aws: Aws) -> Iterator[Found]:
    """Ask KMS what each key is."""
    keys = _keys(case.environment)
    for (arn, paths), answer in zip(keys.items(), together(aws.kms_key, keys), strict=True):
        problem = None if isinstance(answer, NotAnswered) else _key_problem(answer)
        if isinstance(answer, NotAnswered):
            yield unanswered(answer, paths[0], about=f"the key {arn}")
        elif problem is not None:
            yield error(paths[0], f"needs an enabled symmetric key for encryption, got {arn}{_also(paths)}, {problem}")


@check(
    area=AREA,
    asks=("kms_key_policy",),
    inputs="Every KMS key of the account that the file names by ARN, with what it is to encrypt. A key of another"
    " account has a policy that only its owner may read.",
    passes="The policy of the key of the logs lets CloudWatch Logs use it for the environment's log groups, that of the"
    " key of the notifications CloudWatch, and Budgets where there is a budget. Its policy and the others'"
    " leave the decision to IAM policies of the account, as KMS's own default does.",
    fails="The policy of the key of the logs does not name the service, or only for other log groups; that of the"
    " notifications does not name what publishes. Another key's"
    " policy lets nobody of the account use it; a warning where it names some: the roles of the stacks get their names"
    " only when they are made. Deny statements, and conditions on other things than an encryption context, are not"
    " judged.",
    skips="AWS gives no answer about a policy; the others are compared all the same.",
    by_hand="aws kms get-key-policy --key-id ARN --policy-name default --output text",
)
def kms_key_policies_let_the_services_in(case: Case, aws: Aws) -> Iterator[Found]:
    """Nothing is changed in the policy of a key that stands, so it has to fit before."""
    environment = case.environment
    keys = {arn: paths for arn, paths in _keys(environment).items() if arn_parts(arn).account == environment.account}
    for (arn, paths), answer in zip(keys.items(), together(aws.kms_key_policy, keys), strict=True):
        if isinstance(answer, NotAnswered):
            yield unanswered(answer, paths[0], about=f"the policy of {arn}")
            continue
        statements = allowing(answer)
        for path in paths:
            found = None
            if path == _LOGS:
                found = _logs_problem(environment, arn, statements)
            elif path == _TOPIC:
                found = publishers_problem(environment, _TOPIC, arn, statements)
            if path != _LOGS and found is None:
                found = _iam_problem(environment, arn, statements, path)
            if found is not None:
                yield found


def _keys(environment: Environment) -> dict[str, list[str]]:
    """Give ARN -> the places that name it."""
    keys: dict[str, list[str]] = {}
    for path, arn in named_keys(environment):
        keys.setdefault(arn, []).append(".".join(map(str, path)))
    return keys


def _key_problem(key: KmsKeyAnswer | None) -> str | None:
    if key is None:
        return "which does not exist; correct the ARN, or write create to create a key"
    if key.state == "PendingDeletion":
        return f"which is about to be deleted; run 'aws kms cancel-key-deletion --key-id {key.arn}', or name another"
    if key.state != "Enabled":
        return f"which is {key.state}; run 'aws kms enable-key --key-id {key.arn}', or name another"
    if (key.spec, key.usage) != ("SYMMETRIC_DEFAULT", "ENCRYPT_DECRYPT"):
        return f"which is {key.spec} for {key.usage}; name another"
    return None


def _logs_problem(environment: Environment, arn: str, statements: list[Statement]) -> Found | None:
    service = f"logs.{environment.region}.amazonaws.com"
    for group in _log_groups(environment):
        group_arn = f"arn:{environment.partition}:logs:{environment.region}:{environment.account}:log-group:{group}"
        fitting = [
            each for each in statements if _names_logs(each, environment.region) and _context_fits(each, group_arn)
        ]
        if not all(any(names_action(each, action) for each in fitting) for action in _LOGS_ACTIONS):
            return error(
                _LOGS,
                f"needs a key whose policy lets {service} use it for {group}, got {arn}, whose policy does not; add a"
                " statement for that service with kms:Encrypt, kms:Decrypt, kms:ReEncrypt*, kms:GenerateDataKey* and"
                " kms:DescribeKey",
            )
    return None


def allowing(policy: Mapping[str, Any]) -> list[Statement]:
    """Give the statements of a policy that allow something."""
    return [each for each in listed(policy.get("Statement")) if each.get("Effect") == "Allow"]


def publishers_problem(environment: Environment, path: str, arn: str, statements: list[Statement]) -> Found | None:
    """Say at ``path`` what publishes notifications and may not use their key by these statements, or give None."""
    has_budget = environment.notify is not None and environment.notify.monthly_budget_usd is not None
    for service in ("cloudwatch.amazonaws.com", *(["budgets.amazonaws.com"] if has_budget else [])):
        fitting = [each for each in statements if names_service(each, {service}) and not _has_context(each)]
        if not all(any(names_action(each, action) for each in fitting) for action in _OBJECT_ACTIONS):
            return error(
                path,
                f"needs a key whose policy lets {service} use it, got {arn}, whose policy does not; add a statement for"
                " that service with kms:Decrypt and kms:GenerateDataKey*",
            )
    return None


def _log_groups(environment: Environment) -> list[str]:
    """Give a log group of each kind of name: with part of a stack's id, a service's own, and one made up."""
    named = [f"/aws/events/{environment.hyperpod_cluster_name}-hyperpod-1a2b3c4d"]
    if not environment.eks.is_existing:
        named.append(f"/aws/eks/{environment.eks_cluster_name}/cluster")
    return [*named, f"{environment.name}-hyperpod-LifecycleScriptsUploadLogs"]


def _iam_problem(environment: Environment, arn: str, statements: list[Statement], path: str) -> Found | None:
    actions = _OBJECT_ACTIONS if "bucket" in path or path == _TOPIC else _GRANT_ACTIONS
    without_context = [each for each in statements if not _has_context(each)]

    def let_in(is_meant: Callable[[str], bool]) -> bool:
        fitting = [each for each in without_context if any(map(is_meant, principals(each)))]
        return all(any(names_action(each, action) for each in fitting) for action in actions)

    home = f"arn:{environment.partition}:iam::{environment.account}:"
    root = f"{home}root"
    if let_in(lambda principal: principal in {root, environment.account, "*"}):
        return None
    fix = f"add a statement that allows {' and '.join(actions)} to {root}"
    if let_in(lambda principal: principal.startswith(home)):
        return warning(
            path,
            f"the policy of {arn} lets single principals use it, and the roles of the stacks get their names only when"
            f" they are made; {fix}, unless it names them already",
        )
    return error(path, f"needs a key whose policy lets account {environment.account} use it, got {arn}; {fix}")


def _names_logs(statement: Statement, region: str) -> bool:
    return names_service(statement, {f"logs.{region}.amazonaws.com", "logs.amazonaws.com"})


def names_service(statement: Statement, names: set[str]) -> bool:
    """Say whether a statement is about one of these services, as it is about everybody."""
    principal = statement.get("Principal")
    if principal == "*":
        return True
    services = listed(principal.get("Service")) if isinstance(principal, Mapping) else []
    return any(str(each).removesuffix(".cn") in names for each in services)


def principals(statement: Statement) -> list[str]:
    """Give the accounts, roles and users that a statement names."""
    principal = statement.get("Principal")
    named = principal.get("AWS") if isinstance(principal, Mapping) else principal
    return [str(each) for each in listed(named)]


def _context_fits(statement: Statement, group_arn: str) -> bool:
    """Say whether conditions on the encryption context let a log group pass."""
    for operator, wanted in (statement.get("Condition") or {}).items():
        for key, values in wanted.items():
            if key.lower() != _LOG_GROUP_CONTEXT or "Not" in operator:
                continue
            like = "Like" in operator or "Arn" in operator
            patterns = [str(each) for each in listed(values)]
            if not any(matches(each, group_arn) if like else group_arn == each for each in patterns):
                return False
    return True


def _has_context(statement: Statement) -> bool:
    conditions = (statement.get("Condition") or {}).values()
    return any(key.lower().startswith(_CONTEXT) for wanted in conditions for key in wanted)


def _also(paths: list[str]) -> str:
    return f" (also in {', '.join(paths[1:])})" if paths[1:] else ""
