"""Reads the lines of a log of any size, without the prefixes of launchers, log collectors and terminals."""

from __future__ import annotations

import codecs
import errno
import gzip
import io
import json
import re
import zlib
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from hyperpod_cdk.file_reading import TooLargeError

MOST_BYTES = 1 << 30
"""The largest number of bytes of a log; the most verbose log of a thousand ranks has a tenth of it."""

LONGEST = 1 << 20
"""The largest number of bytes of a line that is read; the rest of a longer line is skipped."""

_GZIP = b"\x1f\x8b"
_MOST_AROUND = 16
"""The largest number of nested prefixes of a line: pod, rank, task, timestamps, JSON in JSON."""

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]+")
_POD = re.compile(r"\[(pod/[^\]\s]{1,300})\] ?")
_STERN = re.compile(r"([a-z0-9]{1,63}(?:-[a-z0-9.]{1,63}){1,60}) (launcher|worker|efa-info|dcgm|neuron-info) ")
"""The prefix of stern: pod and container of our own jobs, because any line could start with two words."""

_RANK = re.compile(r"\[(?:[^\[\]@\s]{1,200}@)?\d+,(\d+)\]<std(?:out|err)> ?: ?")
_DECORATION = re.compile(
    r"""(?:
        \d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?[ \t]+   # a timestamp
        | std(?:out|err)[ ][FP][ ]                                              # the container runtime's own log
        | (?:\d{1,3}(?:\.\d{1,3}){3}|ip-[\d-]{7,15}[\w.-]{0,100}):[ ]           # the host, by parallel shells
        | \d{1,5}:(?:[ ]|(?=\#))                                                # the task, by srun --label
    )""",
    re.VERBOSE,
)


class Speaker(NamedTuple):
    """The pod in kubectl's prefix and the rank in mpirun's prefix; empty without a prefix."""

    pod: str
    rank: str

    def __str__(self) -> str:
        return " rank ".join(part for part in self if part) if self.rank else self.pod


class Words(NamedTuple):
    """The text of a line, with the pod in kubectl's prefix and the rank in mpirun's prefix; empty without a prefix."""

    text: str
    pod: str
    rank: str

    @property
    def speaker(self) -> Speaker:
        """Return pod and rank."""
        return Speaker(self.pod, self.rank)


def read_lines(stream: BinaryIO, *, most: int = MOST_BYTES) -> Iterator[bytes]:
    """Yield the lines of a stream one by one, with at most ``LONGEST`` bytes of each.

    UTF-16 with a byte order mark, as shells on Windows write it, is converted to UTF-8; gzip data is decompressed.
    Raises OSError if a stream has more than ``most`` bytes or cannot be decompressed.
    """
    read = 0
    for line, size in _sized_lines(stream):
        read += size
        if read > most:
            raise TooLargeError(read, most)
        if line:
            yield line


def _sized_lines(stream: BinaryIO | gzip.GzipFile) -> Iterator[tuple[bytes, int]]:
    """Yield each line with the number of bytes that were read for it; skipped bytes are yielded without a line."""
    buffered = stream if isinstance(stream, io.BufferedReader | gzip.GzipFile) else None
    start = buffered.peek(2)[:2] if buffered is not None else b""
    if buffered is not None and start == _GZIP:
        with gzip.GzipFile(fileobj=buffered) as unpacked:
            try:
                yield from _sized_lines(unpacked)
            except (EOFError, zlib.error) as error:
                raise OSError(errno.EINVAL, f"the gzip data is damaged: {error}") from None
        return
    if buffered is not None and start in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        for text in _capped_text(io.TextIOWrapper(buffered, encoding="utf-16", errors="replace")):
            line = text.encode("utf-8", "replace")
            yield line, len(line)
        return
    while line := stream.readline(LONGEST):
        yield line, len(line)
        rest = line
        while rest and not rest.endswith(b"\n"):
            rest = stream.readline(LONGEST)
            yield b"", len(rest)


def words(line: bytes) -> Words:
    """Return a line without its prefixes: colors, timestamps, kubectl's pod, mpirun's rank, JSON."""
    text = line[:LONGEST].decode("utf-8", "replace").rstrip("\r\n")
    text = clean(text)
    pod = rank = ""
    for _ in range(_MOST_AROUND):
        if match := _POD.match(text):
            pod = match[1]
        elif not pod and (match := _STERN.match(text)):
            pod = f"pod/{match[1]}/{match[2]}"
        elif match := _RANK.match(text):
            rank = match[1]
        else:
            match = _DECORATION.match(text)
        if match is None:
            unwrapped = _unwrapped(text)
            if unwrapped is None:
                break
            text = unwrapped
        else:
            text = text[match.end() :]
    return Words(text, pod, rank)


def clean(text: str) -> str:
    """Remove color codes, and replace control characters and characters that change the text direction by blanks."""
    return _CONTROL.sub(" ", _ANSI.sub("", text) if "\x1b" in text else text)


def _unwrapped(text: str) -> str | None:
    """Return the message inside a JSON object, as container logs are collected, or None."""
    if not text.startswith('{"'):
        return None
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError):
        return None
    message = next((entry[key] for key in ("log", "message") if isinstance(entry.get(key), str)), None)
    return None if message is None else clean(message.rstrip("\r\n"))


def _capped_text(stream: io.TextIOWrapper) -> Iterator[str]:
    while line := stream.readline(LONGEST):
        rest = line
        while rest and not rest.endswith("\n"):
            rest = stream.readline(LONGEST)
        yield line
