"""The account's quotas on one day, in a file next to the environment file, so that a review does not need AWS."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated

from pydantic import Field, PrivateAttr, Strict

from hyperpod_cdk.catalog.quotas import normalized
from hyperpod_cdk.catalog.rules import repeated
from hyperpod_cdk.config.environment import Environment
from hyperpod_cdk.config.record_file import parse, read_text, refuse
from hyperpod_cdk.config.recorded_plans import Day
from hyperpod_cdk.config.section import Section

SCHEMA_VERSION = 1
"""Version of the record's form. A record of another version is refused, never guessed at."""

Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class RecordedQuota(Section):
    """One quota as AWS gave it. ``is_default`` says that the account had no value of its own.

    ``code`` is empty if AWS gave none. ``used`` is what others in the account use, by the key of the requirement
    that is counted so (quotas for NAT gateways are counted by zone); a key with None is one that could not be read.
    """

    service: str
    name: str
    code: str
    value: Amount
    is_default: bool
    used: Mapping[str, Amount | None]

    def used_by_others(self, key: str) -> float | None:
        """Return what others use, None if that was not read or not queried for this requirement."""
        return self.used.get(key)


class RecordedQuotas(Section):
    """The record of the quotas that one environment uses; ``recorded`` is the day, in UTC, of AWS's answers."""

    schema_version: int
    recorded: Day
    account: str
    region: str
    quotas: Annotated[tuple[RecordedQuota, ...], Strict(strict=False)]
    _lines: Mapping[str, int] = PrivateAttr(default_factory=dict)

    def line_of(self, key: str) -> int | None:
        """Return the line of one of these keys in the file that was read, or None where none was."""
        return self._lines.get(key)

    def find(self, service: str, name: str) -> RecordedQuota | None:
        """Return a quota by its service and name, compared as AWS compares names, or None if it was not recorded."""
        return self._by_name.get((service, normalized(name)))

    @cached_property
    def _by_name(self) -> dict[tuple[str, str], RecordedQuota]:
        return {(quota.service, normalized(quota.name)): quota for quota in self.quotas}

    def text(self) -> str:
        """Return the record as the text of its file: JSON, quotas by service and name, a final newline."""
        data = self.model_dump(mode="json")
        data["quotas"] = [
            {**quota, "used": dict(sorted(quota["used"].items()))}
            for quota in sorted(data["quotas"], key=lambda quota: (quota["service"], quota["name"]))
        ]
        return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def read_record(path: Path, *, file: str, called: str) -> RecordedQuotas:
    """Read the record at ``path``; ``file`` is how findings show it, ``called`` as in loading.

    Raises RecordError with one finding if it cannot be read, is not JSON or has another form.
    """
    return parse_record(read_text(path, file=file, fix=written_anew(called)), file=file, called=called)


def parse_record(text: str, *, file: str, called: str) -> RecordedQuotas:
    """Read the text of a record. Raises RecordError as `read_record` does."""
    recorded, source = parse(
        text, RecordedQuotas, version=SCHEMA_VERSION, fields_at=_fields_at, file=file, fix=written_anew(called)
    )
    names = [f"{quota.service} {normalized(quota.name)}" for quota in recorded.quotas]
    for index, before, _ in repeated(names):
        refuse(
            file,
            f"must be unique, got that of quotas[{before}]",
            fix=written_anew(called),
            path=f"quotas[{index}].name",
            line=source.line_of(("quotas", index, "name")),
        )
    recorded._lines = {key: source.line_of((key,)) for key in RecordedQuotas.model_fields}  # noqa: SLF001 - of the model above
    return recorded


def require_own(environment: Environment, recorded: RecordedQuotas, *, file: str, called: str) -> None:
    """Raise RecordError where the record is of another account or region than the environment."""
    mine, theirs = (environment.account, environment.region), (recorded.account, recorded.region)
    if mine != theirs:
        key = "account" if mine[0] != theirs[0] else "region"
        refuse(
            file,
            f"must be a record of account {mine[0]} in {mine[1]}, the environment's, got one of account"
            f" {theirs[0]} in {theirs[1]}",
            fix=written_anew(called),
            path=key,
            line=recorded.line_of(key),
        )


def written_anew(called: str) -> str:
    """Return the fix for a record that cannot be used, which ends its message."""
    return f"restore it from version control, or write it again with 'hyperpod-cdk quotas show {called} --record'"


def _fields_at(path: Sequence[str | int]) -> Sequence[str]:
    return list((RecordedQuotas if len(path) == 1 else RecordedQuota).model_fields)
