"""The reference training program, as files for an image."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hyperpod_cdk.file_reading import resolved

NAME = "fsdp_training"
"""The folder of the program below /workspace in an image."""

_MAX_BYTES = 1_000_000


class ArgumentError(ValueError):
    """An argument cannot be used: ``argument`` is its name, ``problem`` the reason."""

    def __init__(self, argument: str, problem: str) -> None:
        super().__init__(f"{argument}: {problem}")
        self.argument = argument
        self.problem = problem


def library_program() -> Path:
    """Return the folder of the reference program, in an installed package or in a clone."""
    here = resolved(Path(__file__)).parents[1]
    installed, cloned = here / "_training_program" / NAME, here.parents[1] / "workloads" / NAME
    return installed if installed.is_dir() else cloned


def program_files(folder: Path) -> Mapping[str, str]:
    """Return the text of every file below ``folder``, by its path from the folder's parent, sorted.

    Hidden files and folders, and compiled Python files, are omitted. Raises ArgumentError if ``folder`` is not a folder
    or contains no file, and for a file that is not text or is larger than a megabyte: data belongs in a volume.
    """
    if not folder.is_dir():
        raise ArgumentError("program", f"must be a folder with a program, got {folder}, which is not a folder")
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        inner = path.relative_to(folder)
        if not path.is_file() or any(part.startswith(".") or part == "__pycache__" for part in inner.parts):
            continue
        if path.stat().st_size > _MAX_BYTES:
            raise ArgumentError(
                "program", f"must contain only text, got {path} of more than {_MAX_BYTES} bytes; mount data instead"
            )
        try:
            found[(Path(resolved(folder).name) / inner).as_posix()] = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise ArgumentError(
                "program", f"must contain only text, got {path}, which is not UTF-8; mount data instead"
            ) from None
    if not found:
        raise ArgumentError("program", f"must be a folder with a program, got {folder}, which contains no file")
    return found
