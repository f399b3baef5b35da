"""Findings that a template suppresses, with the reason that it states."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from hyperpod_cdk.file_reading import read_text
from hyperpod_cdk.templates.assembly import Resource, Stack
from hyperpod_cdk.templates.assets import MOST_BYTES

WITHOUT_REASON: Final = "suppression-without-reason"
"""The finding for a suppression without a reason."""

OWN: Final = "hyperpod-cdk::"
"""CDK's prefix for the IDs of this pack's findings in acknowledgments."""

_TEMPLATE: Final = ".template.json"
_METADATA: Final = ".metadata.json"
_ACKNOWLEDGED: Final = "aws:cdk:acknowledged-rules"
_LOGICAL_ID: Final = "aws:cdk:logicalId"


@dataclass(frozen=True)
class Suppression:
    """The suppression of a finding; ``reason`` is empty if none is given."""

    reason: str = ""


@dataclass(frozen=True)
class _Beside:
    """CDK's metadata file of a template: reasons by construct path and rule, paths by logical ID."""

    reasons: dict[str, dict[str, str]] = field(default_factory=dict)
    paths: dict[str, str] = field(default_factory=dict)


class Suppressions:
    """Suppressions in the metadata of templates, and in the acknowledgments that CDK wrote next to them."""

    def __init__(self) -> None:
        self._read: dict[Path, _Beside] = {}

    def of(self, stack: Stack, resource: Resource | None, rule: str) -> Suppression | None:
        """Return the suppression of a finding of ``rule``, None if there is none.

        It reads ``cdk_nag.rules_to_suppress`` in the resource's metadata (IDs and reasons, also of this pack's rules,
        with or without CDK's prefix ``hyperpod-cdk::``; an ID without its brackets suppresses every finding of the
        rule), the acknowledgments of its construct and of those around it, and ``cfn-lint.config.ignore_checks``, which
        has only IDs: their reason is taken from the other two.
        """
        if resource is None:
            return None
        stated = resource.body.get("Metadata")
        metadata = stated if isinstance(stated, dict) else {}
        for entry in _entries(metadata, "cdk_nag", "rules_to_suppress"):
            if isinstance(entry, dict) and _covers(entry, rule):
                return Suppression(_reason(entry))
        beside = self._beside(stack)
        steps = (resource.construct_path or beside.paths.get(resource.logical_id, "")).split("/")
        for end in range(len(steps), 0, -1) if beside.reasons else ():
            reasons = beside.reasons.get("/".join(steps[:end]), {})
            if rule in reasons:
                return Suppression(reasons[rule])
        ignored = rule in _entries(metadata, "cfn-lint", "config", "ignore_checks")
        return Suppression() if ignored else None

    def acknowledged(self, stack: Stack) -> dict[str, dict[str, str]]:
        """Return the reasons by construct path and rule from CDK's metadata file next to a template."""
        return self._beside(stack).reasons

    def _beside(self, stack: Stack) -> _Beside:
        file = stack.file
        if file is None or not file.name.endswith(_TEMPLATE):
            return _Beside()
        if file not in self._read:
            self._read[file] = _read(file.with_name(file.name.removesuffix(_TEMPLATE) + _METADATA))
        return self._read[file]


def _read(file: Path) -> _Beside:
    found = _Beside()
    try:
        document = json.loads(read_text(file, most=MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        # a template that was not written by CDK has none
        return found
    for key, entries in document.items() if isinstance(document, dict) else ():
        path = str(key).removeprefix("/")
        for entry in entries if isinstance(entries, list) else ():
            data = entry.get("data") if isinstance(entry, dict) else None
            if isinstance(data, str) and entry.get("type") == _LOGICAL_ID:
                found.paths[data] = path
            if isinstance(data, dict) and entry.get("type") == _ACKNOWLEDGED:
                reasons = found.reasons.setdefault(path, {})
                reasons.update({_plain(rule): " ".join(str(why).split()) for rule, why in data.items()})
    return found


def _plain(rule: str) -> str:
    return re.sub(r"^annotation::", "", rule, flags=re.IGNORECASE).removeprefix(OWN)


def _covers(entry: Mapping[str, Any], rule: str) -> bool:
    stated = entry.get("id")
    if not isinstance(stated, str):
        return False
    known = stated.removeprefix(OWN)
    if known == rule:
        return True
    name, _, finding = rule.removesuffix("]").partition("[")
    applies_to = entry.get("applies_to")
    return known == name and (not isinstance(applies_to, list) or finding in applies_to)


def _reason(entry: Mapping[str, Any]) -> str:
    stated = entry.get("reason")
    if not isinstance(stated, str):
        return ""
    if entry.get("is_reason_encoded") is True:
        # cdk-nag wrote non-ASCII reasons in this form
        try:
            stated = b64decode(stated, validate=True).decode()
        except ValueError:
            return ""
    return " ".join(stated.split())


def _entries(metadata: Mapping[str, Any], *steps: str) -> list[Any]:
    value: Any = metadata
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    return value if isinstance(value, list) else []
