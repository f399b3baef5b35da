"""How one resource type is compared: how it is read from AWS, and which properties of its template count."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from hyperpod_cdk.checks.answers import NotAnswered, Refused
from hyperpod_cdk.checks.answers import reading as reading  # noqa: PLC0414 - re-exported in this package
from hyperpod_cdk.handlers.quota_gate.reading import NotFound
from hyperpod_cdk.living.facts import UNKNOWN, canonical, holds_unknown
from hyperpod_cdk.review.deployed import Api
from hyperpod_cdk.templates.assembly import Assembly, Resource
from hyperpod_cdk.templates.values import Reference, Unknown, resolve

Properties = Mapping[str, Any]

Ids = Mapping[tuple[str, str], str]
"""Physical IDs by stack and logical ID."""

ANY_TAG: Final = r"Tags\[.+\]"
TAGS: Final = r"Tags\[(?!aws:).+\]"
"""Tags without AWS's own, whose keys begin with ``aws:``."""


@dataclass(frozen=True, kw_only=True)
class Look:
    """One deployed resource: what its deployed template says, with references resolved, and its ID in AWS."""

    aws: Api
    deployed: Assembly
    resource: Resource
    stated: Properties
    id: str

    @property
    def properties(self) -> Properties:
        """All that the deployed template says, with references resolved."""
        found = resolve(self.deployed, self.resource.stack, dict(self.resource.properties))
        return found if isinstance(found, dict) else {}

    def found(self, service: str, operation: str, *missing: str, **params: Any) -> Mapping[str, Any] | None:
        """Make one call, once in a run; None if AWS answers with a code of ``missing``: the thing does not exist.

        Raises NotAnswered.
        """
        try:
            return self.aws.call(service, operation, **params)
        except NotFound:
            return None
        except Refused as refused:
            if refused.code in missing:
                return None
            raise

    def listed(self, service: str, operation: str, key: str, *missing: str, **params: Any) -> list[Any] | None:
        """Return the items of all pages; None if AWS answers with a code of ``missing``: their parent does not exist.

        This can happen a moment after another call found it. Raises NotAnswered.
        """
        try:
            return self.aws.pages(service, operation, key, **params)
        except Refused as refused:
            if refused.code in missing:
                return None
            raise


Read = Callable[[Look], Properties | None]
"""Gives what AWS has in the form of the template, None if AWS has no such thing. Raises NotAnswered."""


@dataclass(frozen=True, kw_only=True)
class Stated:
    """What one template says of a resource with an ID in AWS: the properties that count, with references resolved."""

    assembly: Assembly
    resource: Resource
    properties: Properties
    id: str
    ids: Ids = field(default_factory=dict)


State = Callable[[Stated], Properties]
"""Converts a template's properties into the form of ``Read``; other resources can add to them. Raises NotAnswered."""


def as_stated(stated: Stated) -> Properties:
    """Take the properties as the template says them."""
    return stated.properties


@dataclass(frozen=True, kw_only=True)
class Kind:
    """How one type is compared.

    - ``properties``: the properties of the template that count; ``state`` converts them into the form of ``read``.
    - ``made_by_hand``: matches places that count if only AWS has them. Everywhere else, what the template does not
    state is AWS's default.
    - ``is_sent_whole``: its handler is assumed to send all of it with any change of its template.
    - ``left``: what happens to what no template has; if not ``is_left_surely``, only while the resource is in no
    change.
    - ``members``: the places, by their first level, that are resources of their own in a template, and their names; if
      not ``are_members_apart``, they can also be in the resource itself.
    - ``resent``: why every update sends all of it again; with ``is_made_again`` that update creates it if it is
    missing.
    - ``same``: matches places for which the service refuses an update to the value that it has, and the reason.
    - ``differing``: matches places that are assumed to go to the service only if the two templates differ, whatever AWS
      has.
    - ``unsure``: matches places that only AWS has, for which no page says what an update that leaves them out does.
    """

    properties: tuple[str, ...]
    read: Read
    state: State = as_stated
    made_by_hand: re.Pattern[str] = field(default=re.compile(TAGS))
    is_sent_whole: bool = False
    left: str = "Nothing: no template has it, and CloudFormation leaves it as it is."
    is_left_surely: bool = True
    members: Mapping[str, str] = field(default_factory=dict)
    are_members_apart: bool = True
    resent: str = ""
    is_made_again: bool = False
    same: tuple[re.Pattern[str], str] | None = None
    differing: re.Pattern[str] = field(default=re.compile(ANY_TAG))
    unsure: re.Pattern[str] = field(default=re.compile(r"(?!)"))


def taken(answer: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return those of the members that an answer has."""
    return {name: answer[name] for name in names if name in answer}


def siblings(assembly: Assembly, resource_type: str, *, of: tuple[str, str]) -> list[dict[str, Any]]:
    """Return the resolved properties of all resources of a type whose property ``of`` has this value."""
    name, value = of
    resolved = (resolve(assembly, each.stack, dict(each.properties)) for each in assembly.of_type(resource_type))
    return [each for each in resolved if isinstance(each, dict) and each.get(name) == value]


def statements(document: Any) -> list[dict[str, Any]]:
    """Return the statements of an IAM policy by name, each as one value: an action and a list with only it are the
    same.

    Services give a policy as text, and a template can. Raises NotAnswered if the text is no policy.
    """
    if isinstance(document, (Reference, Unknown)):
        raise NotAnswered("a policy is known only at deployment")
    try:
        document = json.loads(document) if isinstance(document, str) else document
    except ValueError:
        raise NotAnswered("a policy is not valid JSON") from None
    found = document.get("Statement", []) if isinstance(document, Mapping) else []
    named: dict[str, Any] = {}
    for each in found if isinstance(found, (list, tuple)) else [found]:
        row = _statement(each)
        name = str(row.get("Sid") or f"{row.get('Effect')} {', '.join(sorted(map(str, row.get('Action', []))))}")
        number = 2
        while (key := name if name not in named else f"{name} #{number}") in named:
            number += 1
        named[key] = UNKNOWN if holds_unknown(row) else canonical(row)
    return keyed(named)


def with_statements(stated: Stated) -> Properties:
    """Return properties with a PolicyDocument that is compared statement by statement."""
    return {**stated.properties, "PolicyDocument": statements(stated.properties.get("PolicyDocument"))}


def keyed(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a map of tags as the list that templates have; differences name its items by their keys."""
    return [{"Key": key, "Value": value} for key, value in values.items()]


def _statement(statement: Mapping[str, Any]) -> dict[str, Any]:
    lists = ("Action", "NotAction", "Resource", "NotResource")
    listed = {name: _listed(statement[name]) for name in lists if name in statement}
    principals = {name: _principal(statement[name]) for name in ("Principal", "NotPrincipal") if name in statement}
    conditions = {
        operator: {key: _listed(value) for key, value in keys.items()}
        for operator, keys in (statement.get("Condition") or {}).items()
    }
    return {**statement, **listed, **principals, **({"Condition": conditions} if conditions else {})}


def _principal(principal: Any) -> Any:
    if principal == "*":
        return {"AWS": ["*"]}
    return {kind: _listed(value) for kind, value in principal.items()} if isinstance(principal, Mapping) else principal


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]
