"""Samples by number: sample 4711 is the same on any number of workers."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

VOCABULARY = 256
"""Tokens are bytes."""


class Samples(Protocol):
    """An infinite sequence of samples."""

    def sample(self, index: int) -> Tensor:
        """Return sample ``index``: context + 1 tokens, each predicted from those before it."""


class MadeUp:
    """Sequences in which most bytes follow from the previous one, so that the loss falls within a few dozen steps."""

    def __init__(self, *, context: int, seed: int) -> None:
        self._context = context
        self._seed = seed
        following = torch.randperm(VOCABULARY, generator=torch.Generator().manual_seed(seed))
        self._following: list[int] = following.tolist()

    def sample(self, index: int) -> Tensor:
        generator = torch.Generator().manual_seed(self._seed * 1_000_003 + index)
        surprises: list[int] = torch.randint(VOCABULARY, (self._context + 1,), generator=generator).tolist()
        surprised: list[bool] = (torch.rand(self._context + 1, generator=generator) < 0.1).tolist()
        tokens = surprises[:1]
        for surprise, is_one in zip(surprises[1:], surprised[1:], strict=True):
            tokens.append(surprise if is_one else self._following[tokens[-1]])
        return torch.tensor(tokens)


class Bytes:
    """Windows of a file, each once per epoch, in a different order in each epoch."""

    def __init__(self, file: Path, *, context: int, seed: int) -> None:
        size = file.stat().st_size
        self._windows = (size - 1) // context
        if self._windows < 1:
            raise ValueError(f"{file} must have at least {context + 1} bytes (--context and one), got {size}")
        with file.open("rb") as opened:
            self._bytes = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        self._context = context
        self._seed = seed
        self._epoch = -1
        self._order = torch.empty(0, dtype=torch.int64)

    def sample(self, index: int) -> Tensor:
        epoch, place = divmod(index, self._windows)
        if epoch != self._epoch:
            generator = torch.Generator().manual_seed(self._seed * 1_000_003 + epoch)
            self._order, self._epoch = torch.randperm(self._windows, generator=generator), epoch
        start = int(self._order[place]) * self._context
        return torch.frombuffer(bytearray(self._bytes[start : start + self._context + 1]), dtype=torch.uint8).long()


def samples_of(file: Path | None, *, context: int, seed: int) -> Samples:
    """Return the training data: a file's bytes, or synthetic sequences without a file."""
    return MadeUp(context=context, seed=seed) if file is None else Bytes(file, context=context, seed=seed)


def share(first: int, batch: int, *, rank: int, workers: int) -> list[tuple[int, float]]:
    """Return one worker's part of the samples ``first`` to ``first + batch - 1``, as (index, weight).

    Together the parts contain each sample once. All parts have the same length, because every forward pass is a
    collective: a shorter part is filled with a sample of weight 0.
    """
    mine = [(index, 1.0) for index in range(first + rank, first + batch, workers)]
    return mine + [(first, 0.0)] * (-(-batch // workers) - len(mine))
