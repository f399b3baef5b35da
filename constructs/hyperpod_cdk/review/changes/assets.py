"""Which resources get other code or files, and which of these files differ."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from hyperpod_cdk.review.model import AssetChange
from hyperpod_cdk.review.nouns import count
from hyperpod_cdk.templates.assembly import Assembly
from hyperpod_cdk.templates.assets import Files, Upload, differing_files, number_of_files, other_contents, uploads
from hyperpod_cdk.templates.difference import ResourceChange

_SAME: Final = "the same files, with another name or other build options"


Stored = Callable[[str, str], Files | None]
"""Reads an asset as it is deployed, by bucket and key; None if it cannot be read."""

_KEY: Final = re.compile(r'(?:"|s3://[^/"]+/)((?:[\w-]+/)*[0-9a-f]{64}\.\w+)"')
"""How CDK names uploads: by a fingerprint, below a prefix of the bootstrap if it has one; charts by their address."""


def changed_assets(
    base: Assembly, head: Assembly, changes: Sequence[ResourceChange], stored: Stored | None = None
) -> tuple[AssetChange, ...]:
    """Return the assets of the head that resources newly get, in the order of the changes, each once.

    A template names an asset only by its key; here its files are compared with those of the asset that the same
    property named before. Without a base, or without an assembly of the head, there is nothing to compare. ``stored``
    reads those of a base that is deployed, which has templates and no files.
    """
    if head.folder is None or not base.stacks:
        return ()
    new = _by_name(head)
    old: dict[str, Path | Files] = {name: each.path for name, each in _by_name(base).items()}
    if base.folder is None and stored is not None:
        old |= _deployed(head, new, changes, stored)
    pairs: dict[tuple[str | None, str, bool], list[str]] = {}
    for change in changes:
        if change.after is not None:
            resource = f"{change.after.stack} / {change.after.name}"
            for pair in _pairs(change, old, new):
                users = pairs.setdefault(pair, [])
                if resource not in users:
                    users.append(resource)
    if base.folder is not None:
        for place in other_contents(base.folder, head.folder):
            name = uploads(head.folder)[place].name
            pairs.setdefault((name, name, False), []).extend(_users(head, name))
    return tuple(
        _asset_change(None if was is None else old[was], new[will], users, is_read=is_new or base.folder is not None)
        for (was, will, is_new), users in pairs.items()
    )


def not_compared(assets: Sequence[AssetChange]) -> list[str]:
    """Return a note about the assets whose deployed files were not read, nothing if there are none."""
    names = [each.name for each in assets if not each.is_read]
    if not names:
        return []
    said = (
        f"The files of {count(len(names), 'asset')} that change were not compared with the deployed ones, which are "
        "in the account and were not read: this report does not show what differs in them. Use --base with the "
        "deployed revision, or, for assets other than images, credentials with s3:GetObject."
    )
    return [said]


def _deployed(
    head: Assembly, new: Mapping[str, Upload], changes: Sequence[ResourceChange], stored: Stored
) -> Iterator[tuple[str, Files]]:
    """Read the assets that the properties named so far, in the bucket to which the new one is uploaded."""
    read: set[str] = set()
    for each in (each for change in changes if change.before is not None for each in change.properties):
        was, will = _text(each.before), _text(each.after)
        gone = [key for key in dict.fromkeys(_KEY.findall(was)) if key not in will]
        fresh = [new[name] for name in _named(each.after, new) if name not in was]
        for key, upload in zip(gone, fresh, strict=False) if len(gone) == len(fresh) else ():
            bucket = upload.place.removeprefix("s3://").partition("/")[0]
            bucket = bucket.replace("${AWS::AccountId}", head.account).replace("${AWS::Region}", head.region)
            if upload.dockerfile is not None or key in read or "$" in bucket:
                continue
            read.add(key)
            if (files := stored(bucket, key)) is not None:
                yield key, files


def _asset_change(old: Path | Files | None, new: Upload, users: Sequence[str], *, is_read: bool) -> AssetChange:
    files = None if old is None else tuple(differing_files(old, new.path))
    note = ""
    if files is None:
        held = count(number_of_files(new.path), "file")
        unread = "not compared: the deployed files are in the account, and were not read"
        note = f"{held}, and none until now" if is_read else f"{held}, {unread}"
    elif not files:
        note = _SAME
    return AssetChange(
        name=new.name,
        kind="files" if new.dockerfile is None else "image",
        used_by=tuple(users),
        files=files,
        is_read=is_read or files is not None,
        note=note,
    )


def _pairs(
    change: ResourceChange, old: Mapping[str, object], new: Mapping[str, Upload]
) -> Iterator[tuple[str | None, str, bool]]:
    """Return (name so far, new name, whether the resource is new) of each asset that a resource gets."""
    if change.before is None:
        properties = {} if change.after is None else change.after.properties
        yield from ((None, name, True) for name in _named(properties, new))
        return
    for each in change.properties:
        text = _text(each.before)
        fresh = [name for name in _named(each.after, new) if name not in text]
        gone = [name for name in _named(each.before, old) if name not in _text(each.after)]
        # if a list gets longer, it is unknown which item replaces which
        for place, name in enumerate(fresh):
            yield (gone[place] if len(gone) == len(fresh) else None), name, False


def _users(side: Assembly, name: str) -> list[str]:
    return [f"{each.stack} / {each.name}" for each in side.resources() if name in _text(each.properties)]


def _by_name(side: Assembly) -> dict[str, Upload]:
    return {} if side.folder is None else {each.name: each for each in uploads(side.folder).values() if each.name}


def _named(value: Any, assets: Mapping[str, object]) -> list[str]:
    """Return the assets that a value names, in their order."""
    text = _text(value)
    return sorted((name for name in assets if name in text), key=text.index)


def _text(value: Any) -> str:
    return json.dumps(value, default=str)
