"""Whether a report is still valid: its base is still deployed, and what was reviewed is what will be deployed.

A pipeline deploys hours after its review, and another deployment may have run in the meantime. A template has
everything that a review compares, so its digest shows whether the comparison would have another result now.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from hyperpod_cdk.file_reading import read_text
from hyperpod_cdk.templates.assembly import Assembly, AssemblyError
from hyperpod_cdk.templates.deployment import shown

_MOST_BYTES = 64 * 2**20


def fingerprints(assembly: Assembly) -> dict[str, str]:
    """Return the SHA-256 of each stack by name: its template, with the values of its parameters, and its settings."""
    compared = {
        stack.name: [
            stack.account,
            stack.region,
            stack.template,
            {name: shown(setting) for name, setting in stack.settings.items()},
        ]
        for stack in assembly.stacks
    }
    return {
        name: hashlib.sha256(json.dumps(each, sort_keys=True, default=str).encode()).hexdigest()
        for name, each in compared.items()
    }


LOCKS: Final = ("read.*.lock", "synth.lock")
"""The files that a CDK CLI keeps in the folder of an assembly while it works on it (its class ``RWLock``)."""


def _is_lock(file: Path) -> bool:
    return len(file.parts) == 1 and any(fnmatchcase(file.name, each) for each in LOCKS)


def digest_of(folder: Path) -> str:
    """Return the SHA-256 over all files of a cloud assembly by name and content: templates do not show the content of
    assets.

    ``LOCKS`` are excluded: each CDK CLI that works on the folder adds and removes them.
    """
    found = hashlib.sha256()
    files = (each for each in folder.rglob("*") if each.is_file() and not _is_lock(each.relative_to(folder)))
    for file in sorted(files, key=lambda each: each.as_posix()):
        content = hashlib.sha256(file.read_bytes()).digest()
        found.update(file.relative_to(folder).as_posix().encode() + b"\0" + content)
    return found.hexdigest()


def copied(folder: Path, target: Path) -> Path:
    """Copy a cloud assembly into a new folder, without ``LOCKS``, and return that folder.

    Raises AssemblyError if a file is removed in the meantime.
    """

    def locks(where: str, names: list[str]) -> list[str]:
        return [each for each in names if _is_lock(Path(where, each).relative_to(folder))]

    try:
        return Path(shutil.copytree(folder, target, symlinks=True, ignore=locks))
    except OSError as error:
        raise AssemblyError(f"{folder}: the cloud assembly could not be copied: {error}") from None


def outdated(report: Path, base: Assembly, head: Assembly, *, digest: str | None = None) -> list[str]:
    """Return a line for each stack that differs from the report at ``report`` (JSON); none if the report is still
    valid.

    ``digest`` is that of the head's files if it is an existing cloud assembly (``digest_of``): a report on one is valid
    only for the same files. Raises AssemblyError if the file is not such a report.
    """
    try:
        document = json.loads(read_text(report, most=_MOST_BYTES))
        before = {side: dict(document[side]["stacks"]) for side in ("base", "head")}
    except (OSError, ValueError, RecursionError, KeyError, TypeError) as error:
        raise AssemblyError(f"{report}: not a report of 'hyperpod-cdk review --out report.json': {error!r}") from None
    if document["base"].get("label") != "deployed":
        raise AssemblyError(f"{report}: compares with {document['base'].get('label')}, not with the deployed stacks")
    found = [
        *_differences(before["base"], fingerprints(base), "the deployed environment"),
        *_differences(before["head"], fingerprints(head), "the environment to deploy"),
    ]
    reviewed = document["head"].get("assembly")
    if not found and reviewed is not None and reviewed != digest:
        found.append("the cloud assembly: its files differ from the reviewed ones, although its templates do not")
    return found


def _differences(before: Mapping[str, str], now: Mapping[str, str], what: str) -> list[str]:
    found = []
    for name in sorted(before.keys() | now.keys()):
        if name not in before:
            found.append(f"{name}: {what} has this stack now, but did not have it at the review")
        elif name not in now:
            found.append(f"{name}: {what} had this stack at the review, but does not have it now")
        elif before[name] != now[name]:
            found.append(f"{name}: {what} differs from the review")
    return found
