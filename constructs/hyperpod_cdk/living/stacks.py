"""Settings of a stack itself: termination protection, tags, topics, rollback triggers and the stack policy."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from hyperpod_cdk.catalog import regions
from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.checks.answers import NotAnswered, reading
from hyperpod_cdk.checks.side_by_side import together
from hyperpod_cdk.living.facts import UNKNOWN, canonical
from hyperpod_cdk.living.model import Difference, Next, Unread
from hyperpod_cdk.living.standing import Living
from hyperpod_cdk.review.deployed import SETTLED, Api
from hyperpod_cdk.review.nouns import count
from hyperpod_cdk.templates.assembly import Assembly, Stack
from hyperpod_cdk.templates.deployment import TOPICS, topics
from hyperpod_cdk.templates.difference import compare
from hyperpod_cdk.templates.values import resolve

STACK: Final = "AWS::CloudFormation::Stack"

PROTECTION: Final = "TerminationProtection"
_POLICY: Final = "StackPolicy"
_PROTECTS: Final = "Custom::HyperPodDeletionProtection"

_COMPARED: Final = "'cdk deploy' compares it with the app's, even if nothing else of the stack changes"
"""CDK CLI 2.1148.1, ``canSkipDeploy`` and ``updateTerminationProtection``."""

_UNKNOWN_WHO: Final = (
    "it differs from the app, and so does the template: it is unknown whether a person changed it or the app did"
)


def of_stacks(aws: Api, living: Living) -> tuple[list[Difference], list[Unread]]:
    """Compare the settings of the stacks themselves that a person can change, for stacks whose resources are complete.

    CloudFormation keeps no record of what the last deployment set there. For the protection, a resource of this library
    in the deployed template shows it; otherwise a stack whose template equals the app's was deployed as the app says.
    """
    stacks = [each for each in living.deployed.stacks if living.statuses.get(each.name) in SETTLED]
    differences: list[Difference] = []
    skipped: list[Unread] = []
    changed = {each.resource.stack for each in compare(living.deployed, living.head)}
    policies = together(lambda each: _policy(aws, each), stacks)
    for stack, policy in zip(stacks, policies, strict=True):
        for path, deployed, file, actual in _settings(living, stack):
            if deployed == UNKNOWN:
                skipped.append(Unread(what=f"{path} of {stack.name}", reason=_UNKNOWN_WHO))
                continue
            differences.append(
                _difference(living, stack, path, deployed, file, actual, _next_of_setting(path, file, actual))
            )
        if isinstance(policy, NotAnswered):
            what = f"{_POLICY} of {stack.name}"
            skipped.append(Unread(what=what, reason=policy.reason, action=policy.action, aws_said=policy.said))
        elif policy is not None:
            after = _next_of_policy(stack, changed)
            differences.append(_difference(living, stack, _POLICY, None, None, policy, after))
    return differences, skipped


def _settings(living: Living, stack: Stack) -> Iterator[tuple[str, Any, str | None, str | None]]:
    """Yield the differences of a stack: place, deployed value or UNKNOWN, value of the app, value of the stack."""
    head = living.head.by_name.get(stack.name)
    if head is None:
        # it is deleted in any case
        return
    is_same = head.template == stack.template
    for path, file, actual in _pairs(stack, head):
        deployed: Any = file if is_same else UNKNOWN
        if path == PROTECTION and (proof := _proof(living.deployed, stack)) is not None:
            deployed = proof
        if (deployed == UNKNOWN and file != actual) or (deployed not in (UNKNOWN, actual)):
            yield path, deployed, file, actual


def _proof(deployed: Assembly, stack: Stack) -> str | None:
    """Return whether the last deployment protected a stack, by the resource that removes the protection."""
    for each in stack.resources.values():
        if each.type == _PROTECTS and "EksClusterName" not in each.properties:
            return str(resolve(deployed, stack.name, each.properties.get("Enabled", True))).lower()
    return None


def _pairs(stack: Stack, head: Stack) -> Iterator[tuple[str, str | None, str | None]]:
    """Yield each setting with its value in the app and on the stack."""
    yield PROTECTION, str(head.termination_protection).lower(), str(stack.termination_protection).lower()
    for key in sorted({*stack.tags, *head.tags}):
        yield f"Tags[{key}]", head.tags.get(key), stack.tags.get(key)
    if TOPICS in head.settings:
        wanted, told = _topics(head, head), _topics(stack, head)
        for each in sorted({*wanted, *told}):
            yield f"NotificationARNs[{each}]", "there" if each in wanted else None, "there" if each in told else None


def _topics(stack: Stack, head: Stack) -> frozenset[str]:
    """Return the ARNs of a stack's topics as they are in the account and Region of the head."""
    partition = regions.partition_of(head.region) or "aws"
    told = topics(stack.settings, account=head.account, region=head.region)
    return frozenset(each.replace("arn:*:", f"arn:{partition}:") for each in told)


def still_notified(base: Assembly, head: Assembly) -> Iterator[str]:
    """Say which stacks keep sending notifications to topics that the head does not name."""
    for stack in head.stacks:
        old = base.by_name.get(stack.name)
        if old is None or TOPICS in stack.settings or not (kept := _topics(old, stack)):
            continue
        yield (
            f"{stack.name} still sends its events to {joined(sorted(kept))}: the app names no topics, and 'cdk deploy'"
            " then keeps those of the stack."
        )


def with_triggers(watched: Mapping[str, tuple[tuple[str, ...], int]], stacks: Collection[str]) -> Iterator[str]:
    """Name the alarms that make CloudFormation roll an update back: a stack keeps them once they are set.

    Source: CloudFormation API reference, RollbackConfiguration and RollbackTrigger (read 2026-11-28).
    """
    for name, (alarms, minutes) in watched.items():
        if name not in stacks:
            continue
        after = f" or within {count(minutes, 'minute')} after it" if minutes else ""
        any_of = joined(alarms, last="or")
        yield (
            f"{name} has rollback triggers, which were set outside of the app: CloudFormation rolls its update back if "
            f"{any_of} goes into ALARM during it{after}, and also if {any_of} does not exist then, for example "
            "because a step deletes it."
        )


def _policy(aws: Api, stack: Stack) -> str | None:
    """Return the policy of a stack as one text; None if there is none, or one that allows every update.

    A policy can be replaced and not removed (user guide, "Prevent updates to stack resources"), so one that allows
    everything means that a policy was taken back.
    """
    answer = aws.call("cloudformation", "get_stack_policy", StackName=stack.name)
    with reading("cloudformation:GetStackPolicy"):
        body = answer.get("StackPolicyBody")
        if not body:
            return None
        policy = json.loads(body)
        statements = policy["Statement"]
        rows = statements if isinstance(statements, list) else [statements]
        if all(each["Effect"] == "Allow" for each in rows) and any(_allows_all(each) for each in rows):
            return None
        return canonical(policy)


def _allows_all(statement: Mapping[str, Any]) -> bool:
    all_of = {"Action": "Update:*", "Resource": "*"}
    return "Condition" not in statement and all(
        statement.get(name) in (value, [value]) for name, value in all_of.items()
    )


def _next_of_setting(path: str, file: str | None, actual: str | None) -> Next:
    if file == actual:
        return Next(effect="agrees", sentence="The file says what AWS has: nothing changes.")
    if path == PROTECTION:
        return Next(effect="sets", sentence=f"{'Enables' if file == 'true' else 'Disables'} it: {_COMPARED}.")
    shown = f"Sets {path} from {actual or 'nothing'} to {file or 'nothing'}"
    also = ", and on all resources of the stack that take tags" if path.startswith("Tags[") else ""
    return Next(effect="sets", sentence=f"{shown}{also}: {_COMPARED}.")


def _next_of_policy(stack: Stack, changed: Collection[str]) -> Next:
    refuses = "CloudFormation refuses every update of a resource that the policy does not allow, and rolls back"
    if stack.name in changed:
        return Next(
            effect="unknown",
            sentence=f"Unknown: it changes resources of this stack, and {refuses}. 'cdk deploy' keeps the policy.",
        )
    return Next(
        effect="nothing",
        sentence="Nothing: 'cdk deploy' keeps the policy, and this stack is not in the change.",
        later=f"The next change of this stack: {refuses}.",
    )


def _difference(  # noqa: PLR0917 - the three sides of a place and what comes of it
    living: Living,
    stack: Stack,
    path: str,
    deployed: str | None,
    file: str | None,
    actual: str | None,
    after: Next,
) -> Difference:
    return Difference(
        stack=stack.name,
        resource=stack.name,
        type=STACK,
        id=living.arns.get(stack.name, ""),
        path=path,
        deployed=deployed,
        file=file,
        actual=actual,
        next=after,
    )
