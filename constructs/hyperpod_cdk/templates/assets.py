"""What 'cdk deploy' uploads or builds in addition to the templates: files, folders, and the folders of images."""

from __future__ import annotations

import filecmp
import json
import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hyperpod_cdk.file_reading import read_bytes, resolved

MOST_BYTES: Final = 16 * 2**20
"""Larger files are refused: CloudFormation accepts templates of 1 MiB, a manifest is some times that."""
_MOST_MEMBERS: Final = 20_000


@dataclass(frozen=True, kw_only=True)
class Upload:
    """A file or folder of an assembly; for an image the folder of its build and the name of its Dockerfile.

    ``place`` is its destination, with its name there: ``s3://bucket/key``, ``repository:tag``.
    """

    place: str
    path: Path
    dockerfile: str | None = None

    @property
    def name(self) -> str:
        """The name by which resources refer to it: an object's key, an image's tag."""
        return self.place.removeprefix("s3://").partition("/" if self.dockerfile is None else ":")[2]


def uploads(top: Path) -> dict[str, Upload]:
    """Return what an assembly uploads and builds, by destination; ``top`` is the whole assembly.

    A manifest that cannot be read, and files outside of the assembly, are omitted: ``deployment`` refuses both.
    """
    found: dict[str, Upload] = {}
    for file in sorted(top.rglob("*.assets.json")):
        try:
            manifest = _mapped(json.loads(read_bytes(file, most=MOST_BYTES)))
        except (OSError, ValueError, RecursionError):
            continue
        for kind, path_of in (("files", "path"), ("dockerImages", "directory")):
            for asset in _mapped(manifest.get(kind)).values():
                source = _mapped(_mapped(asset).get("source"))
                path = file.parent / str(source.get(path_of, ""))
                dockerfile = str(source.get("dockerFile") or "Dockerfile") if kind == "dockerImages" else None
                if not resolved(path).is_relative_to(resolved(top)):
                    continue
                for place in map(place_of, _mapped(_mapped(asset).get("destinations")).values()):
                    found[place] = Upload(place=place, path=path, dockerfile=dockerfile)
    return found


def place_of(destination: object) -> str:
    """Return the destination in a manifest: the address of an object, or a repository with the tag of an image."""
    each = _mapped(destination)
    if "imageTag" in each:
        return f"{each.get('repositoryName')}:{each['imageTag']}"
    return f"s3://{each.get('bucketName')}/{each.get('objectKey')}"


def other_contents(base: Path, head: Path) -> list[str]:
    """Return the destinations to which both assemblies upload different content, sorted.

    CDK names most assets by a fingerprint of their content, but an app may choose any name, and no assembly states
    which files and options a fingerprint includes: so contents are compared, and names are not computed again.
    """
    old, new = uploads(base), uploads(head)
    return sorted(place for place, each in new.items() if place in old and not _is_same(old[place].path, each.path))


Files = Mapping[str, bytes]
"""Files by name, as an archive contains them; a single file with an empty name."""


def differing_files(old: Path | Files, new: Path) -> list[str]:
    """Return the differences between two files or folders: ``handler.py changes``.

    ``old`` are files, or the content of an archive of them. Files are named by their path in the folder, or in the
    archive of a ``.zip``, and a single file is ``it``. If the files are the same, the result is empty: then only the
    build options differ.
    """
    was: dict[str, object] = (
        dict(_contents(old)) if isinstance(old, Path) else {name: _Held(each) for name, each in old.items()}
    )
    will = dict(_contents(new))
    found = [
        f"{name or 'it'} {'is new' if name not in was else 'is removed' if name not in will else 'changes'}"
        for name in sorted(was.keys() | will.keys())
        if was.get(name) != will.get(name)
    ]
    # members of an archive that are all the same, although the archives differ
    return found or ([] if not isinstance(old, Path) or _is_same(old, new) else ["it changes"])


def number_of_files(top: Path) -> int:
    """Return how many files a folder contains; 1 for a file."""
    return sum(1 for _ in _contents(top))


def _contents(top: Path) -> Iterator[tuple[str, object]]:
    """Return the files of a folder by name, each with a value that is equal if the content is."""
    if top.is_file():
        members = list(_members(top)) if top.suffix == ".zip" else []
        yield from members or [("", _Content(top))]
        return
    for where, folders, files in os.walk(top):
        for name in (*folders, *files):
            file = Path(where, name)
            path = file.relative_to(top).as_posix()
            if file.is_symlink():
                # the target of a link inside of the folder is reported with its own name
                yield path, (str(file.readlink()), _Content(file) if file.is_file() else None)
            elif file.is_file():
                yield path, _Content(file)


def _members(archive: Path) -> Iterator[tuple[str, object]]:
    """Return the members of an archive by name, without unpacking; nothing for a file that is no archive, or has too
    many members."""
    try:
        with zipfile.ZipFile(archive) as opened:
            members = opened.infolist()
    except (OSError, ValueError, zipfile.BadZipFile):
        return
    if len(members) <= _MOST_MEMBERS:
        yield from ((each.filename, (each.CRC, each.file_size)) for each in members)


class _Content:
    """A file that is equal to another one of the same bytes; it is read if the sizes are the same."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Content) and _is_same(self._file, other._file)

    def holds(self, content: bytes) -> bool:
        """Whether the file has this content."""
        size = len(content)
        return self._file.stat().st_size == size and read_bytes(self._file, most=size) == content

    def __hash__(self) -> int:
        return hash(self._file.stat().st_size)


class _Held:
    """The content of a file, equal to what ``_contents`` returns for a file with the same content."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def __eq__(self, other: object) -> bool:
        match other:
            case _Content():
                return other.holds(self._content)
            case (int(), int()):
                return other == (zlib.crc32(self._content), len(self._content))
            case (str(), _Content() as linked):
                # an archive contains the target of a link
                return linked.holds(self._content)
        return False

    def __hash__(self) -> int:
        return hash(len(self._content))


def _is_same(one: Path, other: Path) -> bool:
    """Whether two files or folders have the same content; a link counts as its target, as in the uploaded archive."""
    if one.is_dir() and other.is_dir():
        names = {each.name for each in one.iterdir()}
        return names == {each.name for each in other.iterdir()} and all(
            _is_same(one / name, other / name) for name in names
        )
    if not (one.is_file() and other.is_file()):
        # also a link without a target
        return not one.exists() and not other.exists()
    # in chunks: an asset may have gigabytes
    return filecmp.cmp(one, other, shallow=False)


def _mapped(value: object) -> Mapping[Any, Any]:
    return value if isinstance(value, dict) else {}
