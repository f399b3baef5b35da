"""The workers of a run: their rendezvous, and how the model is distributed over them."""

from __future__ import annotations

import contextlib
import json
import os
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, cast

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import PrefixStore, Store  # type: ignore[attr-defined]  # public, though not in its __all__
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

from model import Transformer, initialize

Precision = Literal["float32", "bfloat16"]

PATIENCE = 600.0
"""Seconds to wait for all workers, as torchrun's agents wait for each other."""


@dataclass(frozen=True)
class Workers:
    """All workers, as seen by one of them."""

    rank: int
    count: int
    device: torch.device
    for_checkpoints: dist.ProcessGroup
    """A separate group on the CPU: checkpoints are written while the model's collectives continue."""


@contextlib.contextmanager
def joined() -> Iterator[Workers]:
    """Join the workers of a launcher (RANK, WORLD_SIZE, LOCAL_RANK), or be the only worker without a launcher."""
    accelerated = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if accelerated else torch.device("cpu")
    if accelerated:
        torch.cuda.set_device(device)
    backend = "cpu:gloo,cuda:nccl" if accelerated else "gloo"
    if "RANK" in os.environ:
        store, rank, count = next(rendezvous("env://"))
        store = PrefixStore(agreed_name(store, rank=rank, count=count), store)
        dist.init_process_group(
            backend, store=store, rank=rank, world_size=count, device_id=device if accelerated else None
        )
    else:
        alone = dist.HashStore()  # type: ignore[attr-defined]  # as above
        dist.init_process_group(backend, store=alone, rank=0, world_size=1)
    try:
        yield Workers(
            rank=dist.get_rank(),
            count=dist.get_world_size(),
            device=device,
            for_checkpoints=cast("dist.ProcessGroup", dist.new_group(backend="gloo")),
        )
    finally:
        dist.destroy_process_group()


def agreed_name(store: Store, *, rank: int, count: int, patience: float = PATIENCE) -> str:
    """Agree on a name that no earlier workers had, even if they used the same store.

    torchrun keeps its store when it restarts workers, with the addresses of the old ones; a new worker that finds an
    old address before its successor has written the new one cannot connect, and the restart fails. Therefore
    everything is stored below a name from worker 0, which calls the others by their current names until all have
    answered. Raises TimeoutError after ``patience`` seconds.
    """
    mine = uuid.uuid4().hex
    deadline = time.monotonic() + patience
    others = range(1, count)
    if rank != 0:
        store.set(f"present/{rank}", mine)
    while time.monotonic() < deadline:
        if rank == 0:
            if all(store.check([f"{mine}/{other}"]) for other in others):
                return mine
            known = [key for other in others if store.check([key := f"present/{other}"])]
            store.set("called", json.dumps([mine, *(store.get(key).decode() for key in known)]))
        elif store.check(["called"]):
            name, *called = json.loads(store.get("called"))
            if mine in called:
                store.set(f"{name}/{rank}", "")
                return str(name)
        time.sleep(0.02)
    raise TimeoutError(f"worker {rank} waited {patience:.0f} seconds for all {count} workers to begin")


def spread(
    model: Transformer, workers: Workers, *, parallelism: Literal["fsdp", "ddp"], precision: Precision, seed: int
) -> nn.Module:
    """Distribute a model from the meta device over the workers, and initialize its weights.

    fsdp: each worker has a part of each weight (FSDP2); ddp: each worker has all weights.
    """
    if parallelism == "fsdp":
        kind = torch.bfloat16 if precision == "bfloat16" else torch.float32
        # gradients are still summed in float32, because rounding errors would accumulate there
        policy = MixedPrecisionPolicy(param_dtype=kind, reduce_dtype=torch.float32)
        for block in model.blocks:
            fully_shard(block, mp_policy=policy)
        fully_shard(model, mp_policy=policy)
    model.to_empty(device=workers.device)
    initialize(model, seed=seed)
    if parallelism == "fsdp":
        return model
    return DistributedDataParallel(model, device_ids=[workers.device] if workers.device.type == "cuda" else None)


@contextlib.contextmanager
def accumulating(model: nn.Module, *, last: bool) -> Iterator[None]:
    """Sum gradients over the workers only after the last part of a step's samples."""
    if isinstance(model, FSDPModule):
        model.set_requires_gradient_sync(last)
        yield
    elif isinstance(model, DistributedDataParallel) and not last:
        with model.no_sync():
            yield
    else:
        yield


def autocast(workers: Workers, *, parallelism: Literal["fsdp", "ddp"], precision: Precision) -> torch.autocast:
    """Compute in bfloat16 if requested; FSDP does so with its own policy."""
    wanted = parallelism == "ddp" and precision == "bfloat16"
    return torch.autocast(workers.device.type, dtype=torch.bfloat16, enabled=wanted)
