"""Whether a report still stands: what it compared with is still deployed, and what it reviewed is what will be.

A pipeline deploys hours after its review, and somebody else may have deployed meanwhile. A template says all that a
review compares, so its digest says whether the comparison would be another one today.
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
    """Give the SHA-256 of each stack by name: its template, with the values of its parameters, and its settings."""
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
"""What a CDK CLI writes into the folder of an assembly for as long as it works on it (its class ``RWLock``)."""


def _is_lock(file: Path) -> bool:
    return len(file.parts) == 1 and any(fnmatchcase(file.name, each) for each in LOCKS)


def digest_of(folder: Path) -> str:
    """Give the SHA-256 over all files of a cloud assembly by name and content: no template says what an asset holds.

    ``LOCKS`` are left out: they come and go with each CDK CLI that works on the folder, and say nothing of it.
    """
    found = hashlib.sha256()
    files = (each for each in folder.rglob("*") if each.is_file() and not _is_lock(each.relative_to(folder)))
    for file in sorted(files, key=lambda each: each.as_posix()):
        content = hashlib.sha256(file.read_bytes()).digest()
        found.update(file.relative_to(folder).as_posix().encode() + b"\0" + content)
    return found.hexdigest()


def copied(folder: Path, target: Path) -> Path:
    """Copy a cloud assembly into a folder that is not there yet, without ``LOCKS``, and give that folder.

    Raises AssemblyError where what is copied goes away meanwhile.
    """

    def locks(where: str, names: list[str]) -> list[str]:
        return [each for each in names if _is_lock(Path(where, each).relative_to(folder))]

    try:
        return Path(shutil.copytree(folder, target, symlinks=True, ignore=locks))
    except OSError as error:
        raise AssemblyError(f"{folder}: the cloud assembly could not be copied: {error}") from None


def outdated(report: Path, base: Assembly, head: Assembly, *, digest: str | None = None) -> list[str]:
    """Give a line for each stack that is not what the report at ``report`` (JSON) compared; none where it stands.

    ``digest`` is the one of the head's files where it is a cloud assembly that lies there (``digest_of``): a report of
    one holds for the same files alone. Raises AssemblyError where the file is no such report.
    """
    try:
        document = json.loads(read_text(report, most=_MOST_BYTES))
        before = {side: dict(document[side]["stacks"]) for side in ("base", "head")}
    except (OSError, ValueError, RecursionError, KeyError, TypeError) as error:
        raise AssemblyError(f"{report}: not a report of 'hyperpod-cdk review --out report.json': {error!r}") from None
    if document["base"].get("label") != "deployed":
        raise AssemblyError(f"{report}: compares with {document['base'].get('label')}, not with what is deployed")
    found = [
        *_differences(before["base"], fingerprints(base), "what is deployed"),
        *_differences(before["head"], fingerprints(head), "what is to be deployed"),
    ]
    reviewed = document["head"].get("assembly")
    if not found and reviewed is not None and reviewed != digest:
        found.append("the cloud assembly: its files are not those that were reviewed, though its templates are")
    return found


def _differences(before: Mapping[str, str], now: Mapping[str, str], what: str) -> list[str]:
    found = []
    for name in sorted(before.keys() | now.keys()):
        if name not in before:
            found.append(f"{name}: {what} has this stack now, and had not at the review")
        elif name not in now:
            found.append(f"{name}: {what} had this stack at the review, and has not now")
        elif before[name] != now[name]:
            found.append(f"{name}: {what} is not what was reviewed")
    return found
