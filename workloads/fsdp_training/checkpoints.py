"""Checkpoints with torch.distributed.checkpoint, from which any number of workers can resume."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import shutil
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Protocol, cast

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from torch.distributed.checkpoint.metadata import Metadata
from torch.distributed.checkpoint.planner import SavePlan, SavePlanner
from torch.distributed.checkpoint.state_dict_saver import async_save
from torch.distributed.checkpoint.storage import StorageReader, StorageWriter, WriteResult

CHECKSUMS = "checksums.json"
"""SHA-256 digests of the files of a checkpoint; written last, so a checkpoint without it is incomplete."""

log = logging.getLogger(__name__)


class NoUsableCheckpointError(Exception):
    """There are complete checkpoints, but all of them are damaged."""


class MissingLibraryError(Exception):
    """The image has no library for the location of checkpoints."""


class Storage(Protocol):
    """The storage of checkpoints. The first two methods are collectives of the workers."""

    def newest(self) -> StorageReader | None:
        """Return the newest usable checkpoint, or None if none was ever completed."""

    def writer(self, step: int) -> StorageWriter:
        """Prepare the location for the checkpoint of a step."""

    def tidy(self) -> None:
        """Remove old checkpoints after a new one is complete."""


class Folder:
    """A folder that all workers share, with a folder for each checkpoint, named by its step."""

    def __init__(self, path: Path, *, keep: int, group: dist.ProcessGroup) -> None:
        self._path = path
        self._keep = keep
        self._group = group
        self._rank = dist.get_rank(group)
        if self._rank == 0:
            path.mkdir(parents=True, exist_ok=True)

    def newest(self) -> StorageReader | None:
        """See `Storage`. The workers share the verification of checksums; damaged checkpoints are skipped."""
        # only one worker reads the folder: others may see changes of a shared file system later
        found: list[list[tuple[int, bool]]] = [self._found() if self._rank == 0 else []]
        dist.broadcast_object_list(found, group=self._group, group_src=0)
        damaged = []
        for step, finished in reversed(found[0]):
            if not finished:
                self._say("checkpoint: passing over step %d, which was never finished", step)
                continue
            problems = [problem for problem in self._gathered(self._damage(step)) if problem is not None]
            if not problems:
                return FileSystemReader(self._of(step))
            self._say("checkpoint: passing over step %d, which is damaged: %s", step, problems[0])
            damaged.append(step)
        if damaged:
            raise NoUsableCheckpointError(
                f"every finished checkpoint in {self._path} is damaged (steps {', '.join(map(str, sorted(damaged)))});"
                " remove them to begin anew, or give another --checkpoints"
            )
        return None

    def writer(self, step: int) -> StorageWriter:
        """See `Storage`. An existing folder is incomplete or damaged."""
        path = self._of(step)
        if self._rank == 0 and path.exists():
            self._remove(path)
        dist.barrier(group=self._group)
        return ChecksummedWriter(path)

    def tidy(self) -> None:
        """See `Storage`. The newest checkpoints are kept."""
        if self._rank != 0:
            return
        found = self._found()
        finished = [step for step, is_finished in found if is_finished]
        for step, is_finished in found:
            if step < finished[-1] and not (is_finished and step in finished[-self._keep :]):
                self._remove(self._of(step))

    def _of(self, step: int) -> Path:
        return self._path / f"step-{step:010d}"

    def _found(self) -> list[tuple[int, bool]]:
        folders = sorted(self._path.glob("step-" + "[0-9]" * 10))
        return [(int(folder.name.removeprefix("step-")), (folder / CHECKSUMS).is_file()) for folder in folders]

    def _damage(self, step: int) -> str | None:
        """Return the problems of this worker's part of a checkpoint's files."""
        folder = self._of(step)
        try:
            checksums = cast("dict[str, str]", json.loads((folder / CHECKSUMS).read_bytes()))
            for name in sorted(checksums)[self._rank :: dist.get_world_size(self._group)]:
                if _checksum(folder / name) != checksums[name]:
                    return f"{name} is not what was written"
        except (OSError, ValueError) as error:
            return str(error)
        return None

    def _gathered(self, mine: str | None) -> list[str | None]:
        everybodys: list[str | None] = [None] * dist.get_world_size(self._group)
        dist.all_gather_object(everybodys, mine, group=self._group)
        return everybodys

    def _remove(self, folder: Path) -> None:
        # first the file that marks it as complete, because the process may be killed in between
        (folder / CHECKSUMS).unlink(missing_ok=True)
        shutil.rmtree(folder)

    def _say(self, message: str, *values: object) -> None:
        if self._rank == 0:
            log.warning(message, *values)


@dataclasses.dataclass(frozen=True)
class _Checksummed:
    """DCP's record of a value's place in a file, which is sent to the coordinator with the file's checksum."""

    place: Any
    checksum: str


class ChecksummedWriter(FileSystemWriter):
    """DCP's writer, with a checksum of each file from the worker that wrote it."""

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> torch.futures.Future[list[WriteResult]]:
        """Write this worker's part, and send the checksums with the places."""
        results = super().write_data(plan, planner).wait()
        files = {result.storage_data.relative_path for result in results}
        checksums = {file: _checksum(Path(self.path) / file) for file in files}
        sent: torch.futures.Future[list[WriteResult]] = torch.futures.Future()
        sent.set_result(
            [
                dataclasses.replace(
                    result, storage_data=_Checksummed(result.storage_data, checksums[result.storage_data.relative_path])
                )
                for result in results
            ]
        )
        return sent

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Write the metadata, then the checksums, which mark the checkpoint as complete. Only the coordinator does."""
        everything = [result for part in results for result in part]
        checksums = {result.storage_data.place.relative_path: result.storage_data.checksum for result in everything}
        super().finish(
            metadata, [[dataclasses.replace(result, storage_data=result.storage_data.place) for result in everything]]
        )
        folder = Path(self.path)
        checksums[".metadata"] = _checksum(folder / ".metadata")
        unfinished = folder / f"{CHECKSUMS}.unfinished"
        unfinished.write_text(json.dumps(checksums, indent=1, sort_keys=True))
        unfinished.replace(folder / CHECKSUMS)


def _checksum(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


class Saver:
    """Writes checkpoints in the background, one at a time."""

    def __init__(self, storage: Storage, *, group: dist.ProcessGroup) -> None:
        self._storage = storage
        self._group = group
        self._writing: tuple[int, Future[Metadata]] | None = None

    def save(self, step: int, state: dict[str, Any]) -> None:
        """Start to write a checkpoint; training can continue when this returns. Waits for the previous one."""
        self.wait()
        future = async_save(state, storage_writer=self._storage.writer(step), process_group=self._group)
        # only a stager that is not used here returns the other type
        self._writing = step, cast("Future[Metadata]", future)

    def settle(self) -> None:
        """Log a checkpoint that was written in the meantime and remove old ones, without waiting."""
        if self._writing is not None and self._writing[1].done():
            self.wait()

    def wait(self) -> None:
        """Wait until everything is written. Raises the error of a failed write, because a run needs checkpoints."""
        if self._writing is None:
            return
        step, future = self._writing
        self._writing = None
        try:
            future.result()
        except Exception as error:
            raise RuntimeError(f"the checkpoint of step {step} could not be written: {error}") from error
        self._storage.tidy()
        if dist.get_rank(self._group) == 0:
            log.info("checkpoint: step %d is written", step)
