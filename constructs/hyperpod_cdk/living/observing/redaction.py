"""Removes from AWS's answers everything that belongs to the account: only words that AWS publishes stay."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import botocore.session
from botocore.model import ListShape, MapShape, ServiceModel, Shape, StringShape, StructureShape

from hyperpod_cdk.catalog import create_only, instance_types
from hyperpod_cdk.living.kinds import KINDS

SERVICES: Final = ("cloudformation", "ec2", "eks", "fsx", "kms", "s3", "sagemaker", "sts")
"""Services whose published models give the allowed words. Words that only other services use are redacted."""

_WORD: Final = re.compile(r"[A-Za-z]+(?:'[a-z]{1,2})?")
_AROUND: Final = re.compile(r"^([\"'(\[{<,.;:!?]*)(.*?)([\"')\]}>,.;:!?]*)$", re.DOTALL)
_SMALL: Final = re.compile(r"-?\d{1,3}")
_NUMBER: Final = re.compile(r"-?\d{1,6}(?:\.\d{1,3})?")
"""Numbers that can be a size or a count; an account ID has twelve digits."""
_VERSION: Final = re.compile(r"v?\d{1,3}(?:\.\d{1,3}){1,2}(?:-eksbuild\.\d{1,3})?")
_STATE: Final = re.compile(r"[A-Za-z][A-Za-z_]{1,39}")
"""The form of a state that AWS has not published yet: letters and underscores."""
_OF_EVENT: Final = "ResourceStatus"
_BESIDE: Final = {"AttachmentStatus": ("available",)}
"""Values that only the text of AWS's reference has: that of an attached internet gateway (EC2 API reference,
InternetGatewayAttachment)."""

_CHOSEN: Final = frozenset({"Labels", "Tags", "Variables"})
"""Places whose keys a user chose, although a member of AWS can have the same name."""
_TYPE: Final = re.compile(r"AWS::[A-Za-z0-9]+::[A-Za-z0-9]+")


@dataclass
class Redactor:
    """Replaces each value of the account by a word, the same for the same value, numbered in order.

    ``own`` are values of the account that are also words in AWS's documentation: a team named ``research``.
    """

    own: frozenset[str] = frozenset()
    _given: dict[str, str] = field(default_factory=dict)

    def value(self, value: str) -> str:
        """Return a value of a property: unchanged if it is a number, a version or a word of AWS, else another word."""
        known = value in vocabulary().terms or value in ("true", "false", "there", "{}")
        is_plain = known or _NUMBER.fullmatch(value) or _VERSION.fullmatch(value)
        return value if is_plain else self._other(value)

    def state(self, value: str) -> str:
        """Return a value of a member whose values AWS publishes; an unpublished value must have their form."""
        return value if _STATE.fullmatch(value) and value not in self.own else self._other(value)

    def type(self, resource_type: str) -> str:
        """Return a type of CloudFormation's registry; of private types only that they are private."""
        if _TYPE.fullmatch(resource_type) and create_only.update_rule(resource_type) is not None:
            return resource_type
        return resource_type if resource_type in vocabulary().customs else "Custom::*"

    def place(self, place: str) -> str:
        """Return a place of a resource without names of items and without keys that a user chose."""
        steps = re.sub(r"\[[^\]]*\]", "[]", place).split(".")
        return ".".join(
            self._other(step) if before in _CHOSEN else self._step(step)
            for before, step in zip(("", *steps), steps, strict=False)
        )

    def text(self, text: str) -> str:
        """Return a sentence with every word replaced that AWS's documentation does not have."""
        return " ".join(self._chunk(each) for each in text.split())

    def is_action(self, action: str) -> bool:
        """Return whether AWS has such an IAM action."""
        return action in vocabulary().actions

    def _step(self, step: str) -> str:
        name = step.removesuffix("[]")
        return step if name.lower() in vocabulary().members else self._other(name) + step[len(name) :]

    def _chunk(self, chunk: str) -> str:
        found = _AROUND.match(chunk)
        before, core, after = found.groups() if found else ("", chunk, "")
        if not core:
            return chunk
        return f"{before}{core if self._is_said_by_aws(core) else self._other(core)}{after}"

    def _is_said_by_aws(self, core: str) -> bool:
        if core in self.own:
            return False
        words = vocabulary()
        if _SMALL.fullmatch(core) or core in words.terms or core in words.actions:
            return True
        if _TYPE.fullmatch(core):
            return create_only.update_rule(core) is not None
        return bool(_WORD.fullmatch(core)) and core.lower() in words.words

    def _other(self, value: str) -> str:
        return self._given.setdefault(value, f"<{len(self._given) + 1}>")


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """Words that AWS publishes: of its documentation, values of enumerations, names of members and actions."""

    words: frozenset[str]
    terms: frozenset[str]
    members: frozenset[str]
    actions: frozenset[str]
    customs: frozenset[str]


@cache
def vocabulary() -> Vocabulary:
    """Read the words of the service models that botocore ships."""
    from hyperpod_cdk.catalog import durations  # noqa: PLC0415 - only for its rows

    words: set[str] = set()
    terms: set[str] = set(instance_types.names())
    members: set[str] = set()
    actions: set[str] = set()
    loader = botocore.session.get_session().get_component("data_loader")
    for service in SERVICES:
        document = loader.load_service_model(service, "service-2")
        for text in _documentation(document):
            words.update(each.lower() for each in _WORD.findall(re.sub(r"<[^>]*>", " ", text)))
        for shape in document["shapes"].values():
            terms.update(shape.get("enum", ()))
            members.update(name.lower() for name in shape.get("members", ()))
        actions.update(f"{service}:{name}" for name in document["operations"])
        terms.update(document["operations"])
    for kind in KINDS.values():
        members.update(each.lower() for each in kind.properties)
    members |= {"ingress", "egress", "rule", "keystate", "addons", "accessentries", "computequotas", "routes"}
    # messages repeat names of members such as HandlerErrorCode
    terms |= {"HandlerErrorCode", "RequestToken"}
    return Vocabulary(
        words=frozenset(words),
        terms=frozenset(terms),
        members=frozenset(members),
        actions=frozenset(actions),
        customs=frozenset(each for each in durations.types() if each.startswith("Custom::")),
    )


def _documentation(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            if key == "documentation" and isinstance(each, str):
                yield each
            else:
                yield from _documentation(each)
    elif isinstance(value, list):
        for each in value:
            yield from _documentation(each)


@cache
def model_of(service: str) -> ServiceModel:
    """Return the model of a service by boto3's name."""
    return botocore.session.get_session().get_service_model(service)


def published(shape: Shape | None) -> frozenset[str]:
    """Return the values that AWS publishes for a text, none if any text is allowed."""
    if not isinstance(shape, StringShape):
        return frozenset()
    # an event of a stack itself has the stack's status, as the API's own example has it
    more = model_of("cloudformation").shape_for("StackStatus") if shape.name == _OF_EVENT else None
    return frozenset({*shape.enum, *(more.enum if isinstance(more, StringShape) else ()), *_BESIDE.get(shape.name, ())})


def texts(shape: Shape | None, value: Any) -> Iterator[str]:
    """Yield every text of an answer whose values AWS does not publish: these belong to the account.

    So do all texts, and all keys that are not names of members, of templates and policies, which botocore decodes.
    """
    if isinstance(shape, StringShape) and not isinstance(value, str):
        shape = None
    if isinstance(value, Mapping):
        members = shape.members if isinstance(shape, StructureShape) else {}
        inner = shape.value if isinstance(shape, MapShape) else None
        for key, each in value.items():
            if key not in members and not (shape is None and str(key).lower() in vocabulary().members):
                yield str(key)
            yield from texts(members.get(key, inner), each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from texts(shape.member if isinstance(shape, ListShape) else None, each)
    elif isinstance(value, str) and not published(shape):
        yield value


def names_in(values: Iterable[str]) -> frozenset[str]:
    """Return the texts that are one word: a sentence with such a word contains a name of the account."""
    return frozenset(each for each in values if _WORD.fullmatch(each) or _SMALL.fullmatch(each))
