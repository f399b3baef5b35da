"""The IAM actions that CloudFormation's handlers need to create the resources of the stacks.

The lists are the handler permissions of the registry's schemas, without those of features that no stack uses. They
are wider than one deployment: a schema names what its handler may ever call. ``certain`` is what it calls for each
resource. Which resources an action can be limited to is AWS's service authorization reference.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Any, Final

from hyperpod_cdk.catalog import _data

AS_OF: date = _data.as_of("deployer_actions")


@dataclass(frozen=True, kw_only=True)
class ResourceType:
    """One type with its actions, sorted.

    ``when`` is a word for the environments that create such a resource: ``always``, ``new_network``, ``lustre`` and the
    like; ``checks/iam.py`` knows what each means.
    """

    name: str
    when: str
    certain: tuple[str, ...]
    actions: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Feature(ResourceType):
    """What the handler of a type needs in addition to its row if a ``property`` is set, its names joined by dots.

    ``default`` is the value that needs nothing.
    """

    property: str
    default: str

    def is_in(self, type_name: str, properties: Any) -> bool:
        """Return whether a resource of this type and with these properties has the feature."""
        return type_name == self.name and _has(properties, self.property.split("."), self.default)


@dataclass(frozen=True, kw_only=True)
class Limitable:
    """A resource type of the service authorization reference, in lower case, with its ARN in an environment.

    ``arn`` has ``{partition}``, ``{region}``, ``{account}`` and, if names are given and not generated, ``{value}`` to
    fill in. ``named_by`` are the types and properties of templates that name such resources; where the first of them
    names none, CloudFormation generates the name ``generated`` of the environment's ``{name}`` or the ``{logical_id}``.
    """

    service: str
    type: str
    arn: str
    named_by: tuple[tuple[str, str], ...] = ()
    generated: str = ""

    def example(self, name: str, *, partition: str, region: str, account: str) -> str | None:
        """Return a possible ARN in environment ``name``; None if only templates show the resource's name."""
        if "{value}" in self.arn and "{name}" not in self.generated:
            return None
        value = self.generated.format(name=name)
        filled = self.arn.replace("{value}", value).format(partition=partition, region=region, account=account)
        return filled.replace("*", "example")


@dataclass(frozen=True, kw_only=True)
class Limit:
    """A condition that narrows actions; ``actions`` is a pattern of whole actions, ``key`` the condition's name.

    ``why`` says what it prevents.
    """

    actions: re.Pattern[str]
    key: str
    why: str


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """Actions that the handlers of ``types`` name for features that no stack uses; ``actions`` matches whole actions.

    ``properties``, their names joined by dots, would need it, and no template sets them; there are none if
    ``why`` has another reason.
    """

    types: tuple[str, ...]
    properties: tuple[str, ...]
    actions: re.Pattern[str]
    why: str


_DATA = _data.load("deployer_actions")

LIMITABLE: tuple[Limitable, ...] = tuple(
    Limitable(**{**row, "named_by": tuple((kind, name) for kind, name in row.get("named_by", ()))})
    for row in _DATA["resources"]
)

LIMITS: tuple[Limit, ...] = tuple(
    Limit(actions=re.compile(row["actions"]), key=row["key"], why=row["why"]) for row in _DATA["limits"]
)

LIMITED_TO: Mapping[str, tuple[str, ...]] = {action: tuple(types) for action, types in _DATA["limited_to"].items()}
"""The types of LIMITABLE that each action can be limited to; none: AWS has no resource type for it."""

LEFT_OUT: tuple[LeftOut, ...] = tuple(
    LeftOut(
        types=tuple(row["types"]),
        properties=tuple(row["properties"]),
        actions=re.compile(row["actions"]),
        why=row["why"],
    )
    for row in _DATA["left_out"]
)
"""What the handlers of single types name for features that no stack uses."""

DATA_REPOSITORY = "AWS::FSx::DataRepositoryAssociation"
"""The link between a file system and a prefix of a bucket."""

DATA_REPOSITORY_ACTIONS = ("s3:Get*", "s3:List*", "s3:PutObject")
"""What the identity that links a bucket needs on bucket and prefix, in addition to the handlers' actions.

Source: FSx for Lustre user guide, "Unable to validate access to an S3 bucket when creating a DRA".
"""

CUSTOM_RESOURCE = "AWS::CloudFormation::CustomResource"
"""The row of every ``Custom::...`` type."""


FEATURES: tuple[Feature, ...] = tuple(
    Feature(**{**row, "certain": tuple(row["certain"]), "actions": tuple(row["actions"])}) for row in _DATA["features"]
)
"""Actions of features that few environments use."""


def is_left_out(type_name: str, action: str) -> bool:
    """Return whether the handler of a type names an action only for features that no stack uses."""
    return any(type_name in each.types and each.actions.fullmatch(action) for each in LEFT_OUT)


@cache
def limit_of(action: str) -> Limit | None:
    """Return the condition that narrows an action, None if none does."""
    return next((each for each in LIMITS if each.actions.fullmatch(action)), None)


NOTHING_MADE: Final = frozenset({"AWS::CDK::Metadata", "AWS::CloudFormation::WaitConditionHandle"})
"""Types for which CloudFormation calls no service."""


def resource_type(name: str) -> ResourceType | None:
    """Return the row of a type by its name in templates, None if there is none."""
    wanted = CUSTOM_RESOURCE if name.startswith("Custom::") else name
    return next((each for each in TYPES if each.name == wanted), None)


def _has(value: Any, steps: Sequence[str], default: str) -> bool:
    if isinstance(value, list):
        return any(_has(each, steps, default) for each in value)
    if not steps:
        return value not in (None, default)
    return isinstance(value, Mapping) and _has(value.get(steps[0]), steps[1:], default)


TYPES: tuple[ResourceType, ...] = tuple(
    ResourceType(**{**row, "certain": tuple(row["certain"]), "actions": tuple(row["actions"])})
    for row in _DATA["types"]
)
