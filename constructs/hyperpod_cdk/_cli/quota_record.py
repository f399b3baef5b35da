"""Writes the quotas that ``quotas show`` read to the record next to the environment file."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import NoReturn

import typer

from hyperpod_cdk._cli.common import FINDINGS, old_record, usage
from hyperpod_cdk._cli.plans import write_atomically
from hyperpod_cdk.catalog.quotas import normalized
from hyperpod_cdk.checks.answers import allowing
from hyperpod_cdk.checks.quotas import Compared
from hyperpod_cdk.config import LoadedEnvironment
from hyperpod_cdk.config.loading import quotas_file
from hyperpod_cdk.config.recorded_quotas import (
    SCHEMA_VERSION,
    RecordedQuota,
    RecordedQuotas,
    read_record,
)
from hyperpod_cdk.handlers.quota_gate.comparison import number


@dataclass(frozen=True, kw_only=True)
class Written:
    """A record that was written: its file as messages show it, and the differences from the previous record."""

    file: str
    changes: tuple[str, ...]
    previous: date | None

    @property
    def sentence(self) -> str:
        """Return the message about what was written."""
        if self.previous is None or self.changes:
            return f"wrote {self.file}; commit it with the environment"
        return f"wrote {self.file}; nothing changed since {self.previous}"


def record(file: Path, loaded: LoadedEnvironment, compared: Sequence[Compared], *, today: date) -> Written:
    """Write every quota that was read to the record of the environment's ``file``.

    Exits with code 1 and keeps the old record if a quota could not be read, because a review would treat it as not
    needed. Usage by others may be missing and is then recorded as unknown.
    """
    missing = [each for each in compared if each.reading.value is None]
    if missing:
        _not_recorded(missing)
    path, shown = quotas_file(file), str(quotas_file(Path(loaded.file)))
    old = old_record(path, shown, read=lambda: read_record(path, file=shown, called=loaded.called))
    new = recorded_quotas(loaded, compared, today=today)
    try:
        write_atomically(path, new.text())
    except OSError as error:
        usage(f"cannot write {shown}: {error.strerror or error}; the old file is unchanged")
    return Written(file=shown, changes=tuple(changes(old, new)), previous=old.recorded if old else None)


def recorded_quotas(loaded: LoadedEnvironment, compared: Sequence[Compared], *, today: date) -> RecordedQuotas:
    """Return the record of the quotas that were read; all requirements of a quota are one entry."""
    by_name: dict[tuple[str, str], list[Compared]] = {}
    for each in compared:
        need = each.requirement
        by_name.setdefault((need.service, normalized(need.name)), []).append(each)
    return RecordedQuotas(
        schema_version=SCHEMA_VERSION,
        recorded=today,
        account=loaded.environment.account,
        region=loaded.environment.region,
        quotas=tuple(_recorded(members) for _, members in sorted(by_name.items())),
    )


def changes(old: RecordedQuotas | None, new: RecordedQuotas) -> Iterator[str]:
    """Yield one line per difference between two records, except for the date and the usage by others."""
    before = {(quota.service, normalized(quota.name)): quota for quota in (old.quotas if old else ())}
    after = {(quota.service, normalized(quota.name)): quota for quota in new.quotas}
    for key, quota in after.items():
        was = before.get(key)
        if was is None:
            yield f"{quota.name}: new, {_value(quota)}"
        elif (was.value, was.is_default) != (quota.value, quota.is_default):
            yield f"{quota.name}: {_value(was)} -> {_value(quota)}"
    for key, quota in before.items():
        if key not in after:
            yield f"{quota.name}: no longer needed"


def _recorded(members: Sequence[Compared]) -> RecordedQuota:
    first = members[0]
    return RecordedQuota(
        service=first.requirement.service,
        name=first.requirement.name,
        code=first.code,
        value=first.reading.value or 0.0,
        is_default=first.reading.is_default,
        used={
            each.requirement.key: each.reading.used.at_least if each.reading.used.is_whole else None for each in members
        },
    )


def _value(quota: RecordedQuota) -> str:
    return f"{number(quota.value)} (default)" if quota.is_default else number(quota.value)


def _not_recorded(missing: Sequence[Compared]) -> NoReturn:
    for each in missing:
        problem = each.reading.problem or "AWS gave no answer"
        allow = allowing(each.reading.action, problem)
        print(f"{each.requirement.name}: {problem}{allow}; nothing was written", file=sys.stderr)
    raise typer.Exit(FINDINGS)
