"""KMS keys: whether a key can be used, and who is allowed to use it by its policy.

Grants are not made here. A principal is let through where the key's policy names it, or where it leaves the decision to
IAM policies of the account and those allow the action (KMS developer guide, "Key policies").
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from hyperpod_cdk_rehearsal.embedded.context import Context
from hyperpod_cdk_rehearsal.embedded.published.policies import conditions_met, listed, speaks_of_action
from hyperpod_cdk_rehearsal.embedded.services.principals import Role

SYMMETRIC = "SYMMETRIC_DEFAULT"
ENCRYPTING = "ENCRYPT_DECRYPT"
_CONTEXT = "kms:encryptioncontext"

Statement = Mapping[str, Any]


@dataclass(frozen=True)
class Key:
    """A KMS key of this account. ``state`` is KMS's: Enabled, Disabled, PendingDeletion ..."""

    arn: str
    state: str
    spec: str
    usage: str
    statements: tuple[Statement, ...]

    @property
    def problem(self) -> str | None:
        """Why no service can encrypt with it, in the middle of a sentence; None for one that works."""
        if self.state != "Enabled":
            return f"is {self.state}"
        if (self.spec, self.usage) != (SYMMETRIC, ENCRYPTING):
            return f"is not a symmetric encryption key ({self.spec}, {self.usage})"
        return None

    def lets_service(self, service: str, *actions: str, context: Mapping[str, str], account: str) -> bool:
        """Whether the policy lets a service principal do all of ``actions`` with this encryption context.

        ``account`` is that of the resource that the service encrypts.
        """
        keys = {
            **{f"{_CONTEXT}:{name}": value for name, value in context.items()},
            "aws:sourceaccount": account,
            "kms:calleraccount": account,
        }
        return all(self._decides(action, keys, lambda who: _names_service(who, service)) for action in actions)

    def lets_role(self, role: Role, action: str, *, via: str) -> bool:
        """Whether a role may do ``action`` through the service ``via`` (its host name), without encryption context."""
        account = role.arn.split(":")[4]
        keys = {"kms:viaservice": via, "kms:calleraccount": account, "kms:grantisforawsresource": "true"}
        named = self._decides(action, keys, lambda who: _names_principal(who, role.arn))
        left_to_iam = self._decides(action, keys, lambda who: _names_account(who, account))
        return named or (left_to_iam and role.allows(action, self.arn))

    def _decides(self, action: str, keys: Mapping[str, str], is_meant: Any) -> bool:
        allowed = False
        for statement in self.statements:
            if not is_meant(statement.get("Principal")) or not _covers(statement, action):
                continue
            if not _conditions_hold(statement.get("Condition") or {}, keys):
                continue
            if statement.get("Effect") == "Deny":
                return False
            allowed = True
        return allowed


def find_key(context: Context, key_id: str) -> Key | None:
    """A key of this account by id, ARN or alias; None where there is none."""
    client = context.client("kms")
    try:
        found = client.describe_key(KeyId=key_id)["KeyMetadata"]
        policy = client.get_key_policy(KeyId=found["KeyId"], PolicyName="default")["Policy"]
    except ClientError:
        return None
    return Key(
        arn=found["Arn"],
        state=found["KeyState"],
        spec=found.get("KeySpec", SYMMETRIC),
        usage=found.get("KeyUsage", ENCRYPTING),
        statements=tuple(listed(json.loads(policy).get("Statement"))),
    )


def is_of_another_account(context: Context, key_id: str) -> bool:
    """Whether an ARN names another account, whose keys nothing is known of here."""
    parts = key_id.split(":")
    return len(parts) > 4 and parts[4] != context.account


def key_problem(context: Context, key_id: str) -> str | None:
    """Why a key cannot be used, in the middle of a sentence; None for one that can, and for another account's."""
    if is_of_another_account(context, key_id):
        return None
    key = find_key(context, key_id)
    return "does not exist" if key is None else key.problem


def _covers(statement: Statement, action: str) -> bool:
    # a key's policy speaks of that key alone, whatever its Resource says: only "*" and the key itself are taken
    return speaks_of_action(statement, action)


def _names_service(principal: Any, service: str) -> bool:
    if principal == "*":
        return True
    services = {str(each) for each in listed((principal or {}).get("Service"))}
    # a service answers to its regional name and, where it has one, to the one without the region
    name, _, rest = service.partition(".")
    return bool({service, f"{name}.{rest.partition('.')[2]}"} & services) or "*" in _aws(principal)


def _names_principal(principal: Any, arn: str) -> bool:
    return principal == "*" or bool({"*", arn} & {str(each) for each in _aws(principal)})


def _names_account(principal: Any, account: str) -> bool:
    return any(str(each) == account or str(each).endswith(f":iam::{account}:root") for each in _aws(principal))


def _aws(principal: Any) -> list[Any]:
    return listed(principal.get("AWS")) if isinstance(principal, Mapping) else []


def _conditions_hold(conditions: Mapping[str, Mapping[str, Any]], keys: Mapping[str, str]) -> bool:
    """Whether all hold; one on a key that is not known here does, save on an encryption context, which is all known."""
    for operator, wanted in conditions.items():
        for name, values in wanted.items():
            key = name.lower()
            if key not in keys and not key.startswith(_CONTEXT):
                continue
            if not conditions_met({"Condition": {operator: {name: values}}}, keys):
                return False
    return True
