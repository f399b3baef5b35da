"""Reads files that users name: nothing without an end, nothing that waits for a writer, nothing beyond a limit."""

from __future__ import annotations

import errno
import os
import re
import stat
from pathlib import Path
from typing import BinaryIO

_DESCRIPTOR = re.compile(r"/dev/fd/\d+|/dev/stdin|/proc/(?:self|\d+)/fd/\d+")
"""What a shell hands over in place of a file: its ``<(...)``, or standard input by name."""


class TooLargeError(OSError):
    """A file has more bytes than are read of one; ``size`` is how many it has, at least."""

    def __init__(self, size: int, most: int) -> None:
        super().__init__(errno.EFBIG, f"it has {size} bytes or more, and at most {most} are read")
        self.size = size


class NoFileError(OSError):
    """A device, a named pipe or a socket is in the place of a file."""

    def __init__(self) -> None:
        super().__init__(errno.EINVAL, "it is no regular file")


def read_bytes(path: Path, *, most: int) -> bytes:
    """Return the content of a regular file of at most ``most`` bytes.

    Raises OSError: NoFileError and TooLargeError, or the system's own (FileNotFoundError, IsADirectoryError,
    PermissionError; BlockingIOError for a file of the kernel that waits for something to say).
    """
    with _regular(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > most:
            raise TooLargeError(size, most)
        parts: list[bytes] = []
        left = most + 1
        # read(n) of a whole stream takes what a file of the kernel would say later for its end
        while left and (part := os.read(stream.fileno(), min(left, 1 << 20))):
            parts.append(part)
            left -= len(part)
    if not left:
        raise TooLargeError(most + 1, most)
    return b"".join(parts)


def read_text(path: Path, *, most: int) -> str:
    """Return the text of a regular file of UTF-8; raises OSError as ``read_bytes`` does, and UnicodeDecodeError."""
    return read_bytes(path, most=most).decode("utf-8")


def resolved(path: Path) -> Path:
    """Return a path without links, as far as there are any that lead somewhere.

    ``Path.resolve`` raises RuntimeError for links in a circle, which reading the file then reports in any case.
    """
    return Path(os.path.realpath(path))


def reason_of(error: Exception) -> str:
    """Return what a parser says in words of no version: each has its own for a text that nests too deeply for
    Python."""
    return "nested too deeply" if type(error) is RecursionError else str(error)


def open_log(path: Path, *, most: int) -> BinaryIO:
    """Open a regular file of at most ``most`` bytes, or the pipe that a shell hands over, to be read line by line.

    Raises OSError as ``read_bytes`` does. Whoever reads a pipe counts by itself.
    """
    if _DESCRIPTOR.fullmatch(str(path)) and stat.S_ISFIFO(path.stat().st_mode):
        return path.open("rb")
    stream = _regular(path)
    size = os.fstat(stream.fileno()).st_size
    if size > most:
        stream.close()
        raise TooLargeError(size, most)
    return stream


def _regular(path: Path) -> BinaryIO:
    # looked at before it is opened, for opening a device can do something; without waiting, for it may change between
    _refuse_others(path.stat().st_mode)
    stream = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    try:
        _refuse_others(os.fstat(stream.fileno()).st_mode)
    except OSError:
        stream.close()
        raise
    return stream


def _refuse_others(mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(mode):
        raise NoFileError
