"""KMS keys that the file names: whether they can encrypt, and whether their policies allow the services to use them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hyperpod_cdk.catalog import hyperpod, kubernetes
from hyperpod_cdk.catalog.arns import (
    LOGS_KEY_ACTIONS,
    OBJECT_KEY_ACTIONS,
    TOPIC_KEY_ACTIONS,
    VOLUME_KEY_ACTIONS,
    arn_parts,
    key_calls,
)
from hyperpod_cdk.catalog.iam_matching import (
    Answer,
    Statement,
    all_of,
    answers,
    is_positive,
    listed,
    matches,
    names_account,
    names_service,
    principals,
)
from hyperpod_cdk.catalog.notifications import principal, publishers
from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.checks.answers import Aws, KmsKeyAnswer, NotAnswered
from hyperpod_cdk.checks.model import Case, Found, Skipped, check, error, unanswered, warning
from hyperpod_cdk.checks.side_by_side import together
from hyperpod_cdk.config import Environment
from hyperpod_cdk.config.rules.encryption import keys_of_buckets, named_keys
from hyperpod_cdk.config.source import DataPath, render_path

AREA = "encryption"

_LOGS = "encryption.logs"
_TOPIC = "encryption.notifications"
_CONTEXT = "kms:encryptioncontext:"
_LOG_GROUP_CONTEXT = f"{_CONTEXT}aws:logs:arn"


@check(
    area=AREA,
    asks=("kms_key",),
    inputs="Every KMS key that the file names by ARN.",
    passes="Each exists, is Enabled, symmetric and for encryption; a multi-Region key too.",
    fails="There is no such key, or it is disabled or about to be deleted, or of another kind: what it should"
    " encrypt cannot be created.",
    skips="AWS gives no answer about a key, for example about one of another account whose owner does not allow it, or"
    " the key of a bucket is in another region; the others are still compared.",
    by_hand="aws kms describe-key --key-id ARN --query KeyMetadata",
)
def kms_keys_can_encrypt(case: Case, aws: Aws) -> Iterator[Found]:
    """Ask KMS for the properties of each key."""
    environment = case.environment
    keys = _keys([*named_keys(environment), *keys_of_buckets(environment)])
    for arn in [arn for arn in keys if arn_parts(arn).region != environment.region]:
        yield Skipped(reason=f"{arn} is of another region, which is not asked", path=keys.pop(arn)[0])
    for (arn, paths), answer in zip(keys.items(), together(aws.kms_key, keys), strict=True):
        problem = None if isinstance(answer, NotAnswered) else _key_problem(answer, paths)
        if isinstance(answer, NotAnswered):
            yield unanswered(answer, paths[0], about=f"the key {arn}")
        elif problem is not None:
            yield error(paths[0], f"needs an enabled symmetric key for encryption, got {arn}{_also(paths)}, {problem}")


@check(
    area=AREA,
    asks=("kms_key_policy",),
    inputs="Every KMS key of the account that the file names by ARN, with what it should encrypt. A key of another"
    " account has a policy that only its owner may read.",
    passes="The policy of the key of the logs allows CloudWatch Logs to use it for the environment's log groups, that"
    " of the"
    " key of the notifications CloudWatch, and Budgets where there is a budget. Its policy and the others'"
    " leave the decision to IAM policies of the account, as KMS's own default does.",
    fails="The policy of the key of the logs does not name the service, or only for other log groups; that of the"
    " notifications does not name what publishes. Another key's"
    " policy allows nobody in the account to use it. Or a statement denies it to them. A warning where it names some:"
    " the"
    " roles of the stacks get their names only when they are created; and where it allows them to use it on conditions"
    " that"
    " are unknown here, or denies it on such, or to everyone except some.",
    skips="AWS gives no answer about a policy; the others are still compared.",
    by_hand="aws kms get-key-policy --key-id ARN --policy-name default --output text",
)
def kms_key_policies_let_the_services_in(case: Case, aws: Aws) -> Iterator[Found]:
    """The policy of an existing key is not changed, so it must fit before."""
    environment = case.environment
    named = _keys(named_keys(environment))
    keys = {arn: paths for arn, paths in named.items() if arn_parts(arn).account == environment.account}
    for (arn, paths), answer in zip(keys.items(), together(aws.kms_key_policy, keys), strict=True):
        if isinstance(answer, NotAnswered):
            yield unanswered(answer, paths[0], about=f"the policy of {arn}")
            continue
        for path in paths:
            if path == _LOGS:
                found = [_logs_problem(environment, arn, answer)]
            else:
                found = list(publishers_problems(environment, _TOPIC, arn, answer)) if path == _TOPIC else []
                found = found or [_iam_problem(environment, arn, answer, path)]
            yield from filter(None, found)


def _keys(named: Iterable[tuple[DataPath, str]]) -> dict[str, list[str]]:
    """Return ARN -> the places that name it."""
    keys: dict[str, list[str]] = {}
    for path, arn in named:
        keys.setdefault(arn, []).append(render_path(path))
    return keys


def _key_problem(key: KmsKeyAnswer | None, paths: Sequence[str]) -> str | None:
    if key is None:
        create = ", or write create to create a key" if all(each.startswith(f"{AREA}.") for each in paths) else ""
        return f"which does not exist; correct the ARN{create}"
    if key.state == "PendingDeletion":
        return f"which is about to be deleted; run 'aws kms cancel-key-deletion --key-id {key.arn}', or name another"
    if key.state != "Enabled":
        return f"which is {key.state}; run 'aws kms enable-key --key-id {key.arn}', or name another"
    if (key.spec, key.usage) != ("SYMMETRIC_DEFAULT", "ENCRYPT_DECRYPT"):
        return f"which is {key.spec} for {key.usage}; name another"
    return None


@dataclass(frozen=True)
class _User:
    """Who uses a key: services by their principals, else the roles of the account; ``context`` is its resource."""

    account: str
    services: frozenset[str] = frozenset()
    context: str = ""


def _lets(policy: Mapping[str, Any], arn: str, user: _User, actions: Sequence[str]) -> Answer:
    """Return whether the policy of a key allows a principal to use it, action by action."""
    return all_of(
        [
            answers(
                policy,
                action,
                arn,
                names=lambda statement: _names(statement, user),
                holds=lambda operator, key, values: _holds(operator, key, values, user),
            )
            for action in actions
        ]
    )


def _names(statement: Statement, user: _User) -> bool | None:
    if names_service(statement, user.services):
        return True
    if user.services:
        return False
    # the roles of the stacks get their names only when they are created
    return names_account(statement, user.account)


def _holds(operator: str, key: str, values: Sequence[str], user: _User) -> bool | None:
    """Return whether a condition is true for a use of a key, for the condition keys of AWS's own examples, else
    None."""
    if key.startswith(_CONTEXT) and key != _LOG_GROUP_CONTEXT:
        return False if is_positive(operator, may_lack=False) else None
    if not is_positive(operator, may_lack=bool(user.services)):
        return None
    if key == "aws:securetransport":
        return "true" in [each.lower() for each in values]
    if key == _LOG_GROUP_CONTEXT:
        like = "Like" in operator or "Arn" in operator
        return any(matches(each, user.context) if like else user.context == each for each in values)
    if key == ("aws:sourceaccount" if user.services else "kms:calleraccount"):
        return any(matches(each, user.account) for each in values)
    return None


def _unknown(path: str, arn: str, who: str) -> Found:
    return warning(
        path,
        f"whether the policy of {arn} allows {who} to use it is unknown, because of its conditions or a statement that"
        " denies; check that it does before you deploy",
    )


def _denied(path: str, arn: str, who: str) -> Found:
    return error(
        path,
        f"needs a key whose policy allows {who} to use it, got {arn}, whose policy denies it; take {who} out of the"
        " statement"
        " that denies",
    )


def _logs_problem(environment: Environment, arn: str, policy: Mapping[str, Any]) -> Found | None:
    service = f"logs.{environment.region}.amazonaws.com"
    unknown = None
    for group in _log_groups(environment):
        group_arn = f"arn:{environment.partition}:logs:{environment.region}:{environment.account}:log-group:{group}"
        user = _User(environment.account, frozenset({service, "logs.amazonaws.com"}), group_arn)
        found = _lets(policy, arn, user, key_calls(LOGS_KEY_ACTIONS))
        if found == "denies":
            return _denied(_LOGS, arn, service)
        if found == "silent":
            return error(
                _LOGS,
                f"needs a key whose policy allows {service} to use it for {group}, got {arn}, whose policy does not;"
                f" add a statement for that service with {joined(LOGS_KEY_ACTIONS)}",
            )
        unknown = _unknown(_LOGS, arn, service) if found == "unknown" else unknown
    return unknown


def publishers_problems(environment: Environment, path: str, arn: str, policy: Mapping[str, Any]) -> Iterator[Found]:
    """Yield a finding at ``path`` for each service that publishes notifications and may not use their key."""
    has_budget = environment.notify is not None and environment.notify.monthly_budget_usd is not None
    for service in map(principal, publishers(has_budget=has_budget)):
        found = _lets(policy, arn, _User(environment.account, frozenset({service})), key_calls(TOPIC_KEY_ACTIONS))
        if found == "denies":
            yield _denied(path, arn, service)
        elif found == "silent":
            yield error(
                path,
                f"needs a key whose policy allows {service} to use it, got {arn}, whose policy does not; add a"
                f" statement for that service with {joined(TOPIC_KEY_ACTIONS)}",
            )
        elif found == "unknown":
            yield _unknown(path, arn, service)


def _log_groups(environment: Environment) -> list[str]:
    """Return a log group of each kind of name: with part of a stack's id, a service's own, and a generated one."""
    named = [hyperpod.events_log_group(environment.hyperpod_cluster_name, stack_part="1a2b3c4d")]
    if not environment.eks.is_existing:
        named.append(kubernetes.control_plane_log_group(environment.eks_cluster_name))
    return [*named, f"{environment.name}-hyperpod-LifecycleScriptsUploadLogs"]


def _iam_problem(environment: Environment, arn: str, policy: Mapping[str, Any], path: str) -> Found | None:
    if path == _TOPIC:
        actions = key_calls(TOPIC_KEY_ACTIONS)
    else:
        actions = OBJECT_KEY_ACTIONS if "bucket" in path else VOLUME_KEY_ACTIONS
    who, root = f"account {environment.account}", f"arn:{environment.partition}:iam::{environment.account}:root"
    found = _lets(policy, arn, _User(environment.account), actions)
    fix = f"add a statement that allows {joined(actions)} to {root}"
    if found == "denies":
        return _denied(path, arn, who)
    if found == "silent":
        return error(path, f"needs a key whose policy allows {who} to use it, got {arn}; {fix}")
    if found == "unknown" and _lets(_without_single_ones(policy), arn, _User(environment.account), actions) == "silent":
        return warning(
            path,
            f"the policy of {arn} allows single principals to use it, and the roles of the stacks get their names only"
            " when"
            f" they are created; {fix}, unless it names them already",
        )
    return _unknown(path, arn, who) if found == "unknown" else None


def _without_single_ones(policy: Mapping[str, Any]) -> dict[str, Any]:
    """Return the statements of a policy that do not apply only to single roles and users."""
    whole = [
        each
        for each in listed(policy.get("Statement"))
        if each.get("Principal") is None
        or any(one == "*" or one.isdecimal() or one.endswith(":root") for one in principals(each))
    ]
    return {"Statement": whole}


def _also(paths: list[str]) -> str:
    return f" (also in {', '.join(paths[1:])})" if paths[1:] else ""
