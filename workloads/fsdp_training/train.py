"""Train a small transformer on bytes: a program to test a cluster, and a template for your own.

    torchrun --nproc-per-node 4 train.py --steps 1000 --checkpoints /data/checkpoints

It automatically resumes from the newest checkpoint, on any number of workers, with the same loss curve: weights, order
of samples and their number per step do not depend on the number of workers.
"""

from __future__ import annotations

import json
import logging
import math
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812 - the usual name
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.storage import StorageReader
from torch.distributed.elastic.multiprocessing.errors import record
from torch.distributed.tensor import DTensor

import checkpoints
import options
import s3
from data import Samples, samples_of, share
from events import FINISHED, RESIZED, TERMINATED, Events
from model import Transformer
from tiered import Tiered
from workers import Precision, Workers, accumulating, autocast, joined, spread

log = logging.getLogger("train")


class OtherRunError(Exception):
    """The checkpoint is from a run with other settings."""


REFUSALS = (OtherRunError, checkpoints.NoUsableCheckpointError, checkpoints.MissingLibraryError, ValueError)
"""Errors that end a run with one line that contains the fix."""


class Training:
    """Model, optimizer and progress."""

    def __init__(self, settings: options.Options, workers: Workers, samples: Samples) -> None:
        self._settings = settings
        self._workers = workers
        self._samples = samples
        self._precision: Precision = settings.precision or ("bfloat16" if workers.device.type == "cuda" else "float32")
        with torch.device("meta"):
            model = Transformer(
                layers=settings.layers, width=settings.width, heads=settings.heads, context=settings.context
            )
        self._model = spread(
            model, workers, parallelism=settings.parallelism, precision=self._precision, seed=settings.seed
        )
        self._optimizer = torch.optim.AdamW(
            self._model.parameters(),
            lr=settings.learning_rate,
            betas=(0.9, 0.95),
            weight_decay=settings.weight_decay,
        )
        self.done = 0

    def step(self) -> tuple[Tensor, float]:
        """Train on the next batch. Returns this worker's sum of losses over tokens, and the norm of the gradient."""
        settings, workers = self._settings, self._workers
        for group in self._optimizer.param_groups:
            group["lr"] = self._learning_rate()
        self._optimizer.zero_grad()
        mine = share(self.done * settings.batch, settings.batch, rank=workers.rank, workers=workers.count)
        parts = [mine[at : at + settings.micro_batch] for at in range(0, len(mine), settings.micro_batch)]
        total = torch.zeros((), dtype=torch.float64, device=workers.device)
        for number, part in enumerate(parts, start=1):
            with accumulating(self._model, last=number == len(parts)):
                loss = self._loss(part)
                # gradients are averaged over workers, but the mean over the batch's tokens is needed
                (loss * (workers.count / (settings.batch * settings.context))).backward()  # type: ignore[no-untyped-call]  # torch
                total += loss.detach().double()
        norm = nn.utils.clip_grad_norm_(self._model.parameters(), settings.clip)
        self._optimizer.step()
        self.done += 1
        return total, float(norm.full_tensor() if isinstance(norm, DTensor) else norm)

    def state(self) -> dict[str, Any]:
        """Return the content of a checkpoint, which does not depend on the number of workers or on fsdp or ddp."""
        model, optimizer = get_state_dict(self._model, self._optimizer)
        return {"model": model, "optimizer": optimizer, "progress": self._progress()}

    def resume(self, reader: StorageReader) -> None:
        """Resume from a checkpoint. Raises OtherRunError if its settings result in another loss curve."""
        group = self._workers.for_checkpoints
        found: dict[str, Any] = {"progress": ""}
        load(found, storage_reader=reader, process_group=group)
        progress = json.loads(found["progress"])
        wanted = self._settings.curve()
        differing = [name for name in wanted if progress["settings"].get(name) != wanted[name]]
        if differing:
            there = ", ".join(f"{name} {progress['settings'].get(name)}" for name in differing)
            here = ", ".join(f"{name} {wanted[name]}" for name in differing)
            raise OtherRunError(
                f"the checkpoint of step {progress['step']} was written with {there}; this run has {here}:"
                " set them alike, or give another place for checkpoints"
            )
        state = self.state()
        load(state, storage_reader=reader, process_group=group)
        set_state_dict(
            self._model,
            self._optimizer,
            model_state_dict=state["model"],
            optim_state_dict=state["optimizer"],
        )
        self.done = progress["step"]

    def _progress(self) -> str:
        # the next sample is step * batch, and batch is among the settings
        return json.dumps({"step": self.done, "settings": self._settings.curve()}, sort_keys=True)

    def _learning_rate(self) -> float:
        warmup, step = self._settings.warmup, self.done + 1
        # does not depend on the last step, so a run can be extended later
        return self._settings.learning_rate * min(step / warmup, math.sqrt(warmup / step))

    def _loss(self, part: Sequence[tuple[int, float]]) -> Tensor:
        tokens = torch.stack([self._samples.sample(index) for index, _ in part]).to(self._workers.device)
        weights = torch.tensor([weight for _, weight in part], device=self._workers.device)
        with autocast(self._workers, parallelism=self._settings.parallelism, precision=self._precision):
            scores = self._model(tokens[:, :-1])
        each = F.cross_entropy(scores.float().flatten(0, 1), tokens[:, 1:].flatten(), reduction="none")
        return (each.view(len(part), -1).sum(1) * weights).sum()


def run(settings: options.Options, workers: Workers, events: Events) -> int:
    """Train until the last step or until a request to end; returns the exit code."""
    samples = samples_of(settings.data, context=settings.context, seed=settings.seed)
    training = Training(settings, workers, samples)
    storage = _storage(settings, workers)
    saver = checkpoints.Saver(storage, group=workers.for_checkpoints) if storage is not None else None
    reader = storage.newest() if storage is not None else None
    if reader is not None:
        training.resume(reader)
    log.info("%s on %d workers from step %d to %d", settings.parallelism, workers.count, training.done, settings.steps)
    tokens = settings.batch * settings.context
    while training.done < settings.steps:
        began = time.perf_counter()
        mine, norm = training.step()
        asked = events.asked()
        # one collective for everything on which the workers must agree
        sums = torch.stack([mine, mine.new_tensor(asked.to_terminate), mine.new_tensor(asked.to_resize)])
        dist.all_reduce(sums)
        total, terminate, resize = sums.tolist()
        loss = total / tokens
        if not math.isfinite(loss):
            raise FloatingPointError(
                f"the loss of step {training.done} is {loss}, which no checkpoint gets; try a lower --learning-rate"
            )
        log.info(
            "step: %d loss: %.8f grad_norm: %.4f tokens_per_second: %.0f",
            training.done,
            loss,
            norm,
            tokens / (time.perf_counter() - began),
        )
        if saver is not None:
            saver.settle()
        ends = terminate > 0 or resize > 0 or training.done == settings.steps
        if saver is not None and (ends or training.done % settings.checkpoint_every == 0):
            saver.save(training.done, training.state())
            if ends or not settings.asynchronous:
                saver.wait()
        if training.done < settings.steps and ends:
            why = "SIGTERM" if terminate > 0 else "elastic event"
            log.info("%s: ending after step %d", why, training.done)
            return TERMINATED if terminate > 0 else RESIZED
    return FINISHED


def _storage(settings: options.Options, workers: Workers) -> checkpoints.Storage | None:
    if settings.tiered is not None:
        return Tiered(
            settings.tiered,
            s3_uri=settings.s3,
            s3_every=settings.tiered_s3_every,
            group=workers.for_checkpoints,
        )
    if settings.s3 is not None:
        return s3.Bucket(settings.s3, keep=settings.keep, group=workers.for_checkpoints)
    if settings.checkpoints is not None:
        return checkpoints.Folder(settings.checkpoints, keep=settings.keep, group=workers.for_checkpoints)
    return None


def _log_to_stdout(rank: int) -> None:
    # HyperPod's agent applies its log rules to every worker's stdout; for people one worker is enough
    rules = "HYPERPOD_ELASTICAGENT_SOCKET_SERVER_PATH" in os.environ
    logging.basicConfig(
        stream=sys.stdout,
        format="%(asctime)s [%(levelname)s] %(name)s: %(message)s",
        level=logging.INFO if rank == 0 or rules else logging.ERROR,
        force=True,
    )


@record
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; returns its exit code."""
    settings = options.read(arguments)
    events = Events()
    with joined() as workers:
        _log_to_stdout(workers.rank)
        try:
            return run(settings, workers, events)
        except REFUSALS as error:
            if workers.rank == 0:
                log.error(error)  # noqa: TRY400 - the message contains the fix, which a traceback would hide
            return 1


if __name__ == "__main__":
    sys.exit(main())
