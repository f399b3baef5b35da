"""The options, from the command line or from environment variables that a job's manifest sets."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class Options:
    """A run's settings; `curve` are those that affect the loss curve, which the number of workers does not."""

    steps: int
    batch: int
    micro_batch: int
    context: int
    layers: int
    width: int
    heads: int
    learning_rate: float
    warmup: int
    weight_decay: float
    clip: float
    seed: int
    parallelism: Literal["fsdp", "ddp"]
    precision: Literal["float32", "bfloat16"] | None
    data: Path | None
    checkpoints: Path | None
    s3: str | None
    checkpoint_every: int
    keep: int
    asynchronous: bool
    tiered: str | None
    tiered_s3_every: int

    def curve(self) -> dict[str, str]:
        """Return the settings that must be equal when a run resumes from a checkpoint."""
        model = {name: str(getattr(self, name)) for name in ("layers", "width", "heads", "context", "seed")}
        each = {name: str(getattr(self, name)) for name in ("batch", "learning_rate", "warmup", "weight_decay", "clip")}
        # the content counts and not its path: another node may mount it at another path
        return model | each | {"data": "synthetic" if self.data is None else f"{self.data.stat().st_size} bytes"}


def read(arguments: Sequence[str] | None = None, *, environment: Mapping[str, str] = os.environ) -> Options:
    """Parse the command line. An error is one line on stderr and exit code 2, as in argparse."""
    parser = argparse.ArgumentParser(description="Train a small language model on bytes, on any number of workers.")
    model = parser.add_argument_group("model")
    model.add_argument("--layers", type=_positive, default=4)
    model.add_argument("--width", type=_positive, default=256, help="numbers per token; a multiple of --heads")
    model.add_argument("--heads", type=_positive, default=4)
    model.add_argument("--context", type=_positive, default=128, help="tokens (bytes) of a sample")
    training = parser.add_argument_group("training")
    training.add_argument("--steps", type=_positive, default=1000, help="steps of the whole run, over all restarts")
    training.add_argument("--batch", type=_positive, default=32, help="samples of a step, over all workers")
    training.add_argument("--micro-batch", type=_positive, default=8, help="samples a worker takes at a time")
    training.add_argument("--learning-rate", type=float, default=3e-4)
    training.add_argument("--warmup", type=_positive, default=20, help="steps until the learning rate is reached")
    training.add_argument("--weight-decay", type=float, default=0.1)
    training.add_argument("--clip", type=float, default=1.0, help="largest norm of the gradient")
    training.add_argument("--seed", type=int, default=0)
    training.add_argument("--data", type=Path, help="file whose bytes are learnt; without it, made-up sequences")
    workers = parser.add_argument_group("workers")
    workers.add_argument("--parallelism", choices=("fsdp", "ddp"), default="fsdp")
    workers.add_argument("--precision", choices=("float32", "bfloat16"), help="default: bfloat16 on GPUs, else float32")
    saving = parser.add_argument_group("checkpoints")
    saving.add_argument(
        "--checkpoints",
        type=Path,
        metavar="FOLDER",
        default=environment.get("CHECKPOINT_PATH"),
        help="folder that all workers share (default: $CHECKPOINT_PATH)",
    )
    saving.add_argument(
        "--s3",
        metavar="URI",
        default=environment.get("CHECKPOINT_S3_URI"),
        help="s3:// address; with --tiered its slow tier (default: $CHECKPOINT_S3_URI)",
    )
    saving.add_argument("--checkpoint-every", type=_positive, default=50, help="steps between two checkpoints")
    saving.add_argument("--keep", type=_positive, default=3, help="how many checkpoints stay in the folder")
    saving.add_argument("--synchronous", action="store_true", help="wait for each checkpoint to be written")
    saving.add_argument(
        "--tiered",
        metavar="NAMESPACE",
        default=environment.get("TIERED_CHECKPOINT_NAMESPACE"),
        help="keep checkpoints in the nodes' memory, under this name: the job's own"
        " (default: $TIERED_CHECKPOINT_NAMESPACE)",
    )
    saving.add_argument(
        "--tiered-s3-every", type=_positive, default=500, help="steps between two checkpoints in the slow tier"
    )
    given = vars(parser.parse_args(arguments))
    if given["width"] % given["heads"]:
        parser.error(f"--width must be a multiple of --heads, got {given['width']} and {given['heads']}")
    if given["data"] is not None and not given["data"].is_file():
        parser.error(f"--data must be a file, got {given['data']}")
    if given["checkpoints"] and (given["tiered"] or given["s3"]):
        other = "--tiered" if given["tiered"] else "--s3"
        parser.error(f"checkpoints go to one place: give --checkpoints (or CHECKPOINT_PATH) or {other}, not both")
    if given["s3"] and not given["s3"].startswith("s3://"):
        parser.error(f"--s3 must be an address that begins with s3://, got {given['s3']}")
    if given["s3"] and given["tiered"] and given["tiered_s3_every"] % given["checkpoint_every"]:
        parser.error(
            f"--tiered-s3-every must be a multiple of --checkpoint-every ({given['checkpoint_every']}),"
            f" got {given['tiered_s3_every']}"
        )
    return Options(asynchronous=not given.pop("synchronous"), **given)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more, got {number}")
    return number
