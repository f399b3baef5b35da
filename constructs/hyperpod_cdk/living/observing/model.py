"""A bundle: observations of one environment, without names and values of the account. Its schema is published."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from hyperpod_cdk.json_schema import Model
from hyperpod_cdk.living.model import Unread

VERSION: Final = 1

Table = Literal["answers", "states", "defaults", "durations", "updates", "messages"]
"""The kind of the contradicted assumption: a table of the catalog by name; ``states`` are those that AWS publishes."""

Form = Literal["structure", "map", "list", "string", "boolean", "integer", "float", "timestamp", "blob", "unknown"]
"""The type of a value, in the words of botocore's models."""

LONGEST_S: Final = 10_000_000
"""Longer than CloudFormation keeps the events of a stack."""

Seconds = Annotated[float, Field(ge=0, le=LONGEST_S, allow_inf_nan=False)]

Text = Annotated[str, Field(max_length=4000)]
Name = Annotated[str, Field(max_length=300)]


class Member(Model):
    """One member of the answers to one operation; list items are under ``[]``, values of mappings under ``{}``."""

    place: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+(\[\]|\{\})*(\.[A-Za-z0-9_-]+(\[\]|\{\})*)*$", max_length=300)]
    came: int = Field(ge=0)
    """How often it was there."""
    of: int = Field(ge=0)
    """How often its parent was there."""
    words: tuple[Name, ...] = ()
    """Its values, if AWS publishes the allowed ones."""
    unpublished: tuple[Name, ...] = ()
    """Its values that botocore's model does not have."""
    mistyped: tuple[Form, ...] = ()
    """Its type, if it differs from the type in botocore's model."""


class Operation(Model):
    """The form of the answers to one operation."""

    operation: Annotated[str, Field(pattern=r"^[a-z0-9-]+:[A-Za-z0-9]+$", max_length=300)]
    """The IAM action: ``sagemaker:DescribeCluster``."""
    answers: int = Field(ge=0)
    members: tuple[Member, ...] = ()


class Times(Model):
    """How much time CloudFormation needed for resources of one type."""

    type: Name
    action: Literal["create", "update", "delete"]
    when: Name | None
    """The circumstance of the catalog's row; null if the events do not show it."""
    seconds: Annotated[tuple[Seconds, ...], Field(min_length=1)]


class Filled(Model):
    """A place that no template states and that has a default of AWS."""

    type: Name
    place: Name
    values: tuple[Name, ...]


class Updated(Model):
    """An update by CloudFormation, and its effect by the catalog."""

    type: Name
    places: tuple[Name, ...]
    outcome: Literal["in place", "replaced", "refused"]
    foretold: tuple[Name, ...]


class Message(Model):
    """Why a resource failed, in AWS's words."""

    type: Name
    status: Name
    text: Text
    code: Name = ""
    form: Literal["handler", "custom", "service", "other"]


class Deviation(Model):
    """One deviation from an assumption."""

    table: Table
    row: Name
    """The contradicted row or rule."""
    assumed: Text
    observed: Text
    samples: int
    """How often it was observed."""


class Compared(Model):
    """How many things of each kind were compared. Whether anything else is as assumed is unknown."""

    members: int = 0
    states: int = 0
    defaults: int = 0
    times: int = 0
    updates: int = 0
    messages: int = 0


class Bundle(Model):
    """Observations of an environment, and their deviations from the assumptions."""

    version: Literal[1] = VERSION
    made_by: Name
    """Version of hyperpod-cdk whose assumptions these are."""
    botocore: Name
    """Version of botocore's models, with which answers were read: members that it does not have are not visible."""
    region: Annotated[str, Field(pattern=r"^[a-z0-9-]{0,40}$")]
    verdict: Text
    passed: bool | None
    """False if something deviates, null if something could not be read, true if all was read and is as assumed."""
    deviations: tuple[Deviation, ...] = ()
    compared: Compared = Compared()
    skipped: tuple[Unread, ...] = ()
    """What could not be read. Whether it is as assumed is unknown."""
    answers: tuple[Operation, ...] = ()
    times: tuple[Times, ...] = ()
    defaults: tuple[Filled, ...] = ()
    updates: tuple[Updated, ...] = ()
    messages: tuple[Message, ...] = ()
