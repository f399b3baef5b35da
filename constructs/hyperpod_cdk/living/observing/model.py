"""A bundle: what was observed of one environment, nothing of it somebody's own. Its schema is published."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from hyperpod_cdk.json_schema import Model
from hyperpod_cdk.living.model import Unread

VERSION: Final = 1

Table = Literal["answers", "states", "defaults", "durations", "updates", "messages"]
"""Which assumption is contradicted: tables of the catalog by their names, ``states`` are those that AWS publishes."""

Form = Literal["structure", "map", "list", "string", "boolean", "integer", "float", "timestamp", "blob", "unknown"]
"""What a value is, in the words of botocore's models."""

LONGEST_S: Final = 10_000_000
"""Longer than CloudFormation keeps the events of a stack."""

Seconds = Annotated[float, Field(ge=0, le=LONGEST_S, allow_inf_nan=False)]

Text = Annotated[str, Field(max_length=4000)]
Name = Annotated[str, Field(max_length=300)]


class Member(Model):
    """One member of the answers to one operation; items of lists stand under ``[]``, values of mappings ``{}``."""

    place: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+(\[\]|\{\})*(\.[A-Za-z0-9_-]+(\[\]|\{\})*)*$", max_length=300)]
    came: int = Field(ge=0)
    """How often it was there."""
    of: int = Field(ge=0)
    """How often that in which it stands was there."""
    words: tuple[Name, ...] = ()
    """Its values, where AWS publishes which it may have."""
    unpublished: tuple[Name, ...] = ()
    """Those of its values that the model of botocore does not have."""
    mistyped: tuple[Form, ...] = ()
    """What it was where that is not of the type that the model of botocore has."""


class Operation(Model):
    """What answers to one operation look like."""

    operation: Annotated[str, Field(pattern=r"^[a-z0-9-]+:[A-Za-z0-9]+$", max_length=300)]
    """As IAM calls it: ``sagemaker:DescribeCluster``."""
    answers: int = Field(ge=0)
    members: tuple[Member, ...] = ()


class Times(Model):
    """How long CloudFormation took for resources of one type."""

    type: Name
    action: Literal["create", "update", "delete"]
    when: Name | None
    """The circumstance of the catalog's row; null where the events do not show it."""
    seconds: Annotated[tuple[Seconds, ...], Field(min_length=1)]


class Filled(Model):
    """A place that no template states and that AWS has filled in."""

    type: Name
    place: Name
    values: tuple[Name, ...]


class Updated(Model):
    """An update that CloudFormation made, and what the catalog says that it does."""

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
    """One thing that is otherwise than it is taken to be."""

    table: Table
    row: Name
    """The row or rule that it contradicts."""
    assumed: Text
    observed: Text
    samples: int
    """How often it was seen."""


class Compared(Model):
    """How many things of each kind were compared. What is not among them is not known to be as assumed."""

    members: int = 0
    states: int = 0
    defaults: int = 0
    times: int = 0
    updates: int = 0
    messages: int = 0


class Bundle(Model):
    """What an environment was observed to be, and what of it is otherwise than assumed."""

    version: Literal[1] = VERSION
    made_by: Name
    """Version of hyperpod-cdk, whose assumptions these are."""
    botocore: Name
    """Version of the models by which answers were read: members that it does not know were not seen."""
    region: Annotated[str, Field(pattern=r"^[a-z0-9-]{0,40}$")]
    verdict: Text
    passed: bool | None
    """False where something deviates, null where something could not be read, true where all was read and is so."""
    deviations: tuple[Deviation, ...] = ()
    compared: Compared = Compared()
    skipped: tuple[Unread, ...] = ()
    """What could not be read. Nothing of it is known to be as assumed."""
    answers: tuple[Operation, ...] = ()
    times: tuple[Times, ...] = ()
    defaults: tuple[Filled, ...] = ()
    updates: tuple[Updated, ...] = ()
    messages: tuple[Message, ...] = ()
