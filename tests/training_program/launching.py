"""Runs of the training program: by torchrun as in a cluster, or by workers forked from a process that has PyTorch."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from torch.distributed import TCPStore  # type: ignore[attr-defined]  # public, though not in its __all__

PROGRAM = Path(__file__).parents[2] / "workloads" / "fsdp_training"
FAKES = Path(__file__).parent / "fakes"
LONGEST = 120.0
"""Seconds that a whole run may take, on a machine that does other things; a run takes two to ten."""
STEPS = 20
SMALL = (
    *("--layers", "2", "--width", "32", "--heads", "2", "--context", "32", "--batch", "10", "--micro-batch", "2"),
    *("--learning-rate", "0.01", "--warmup", "4", "--checkpoint-every", "4", "--steps", str(STEPS)),
)
_STEP = re.compile(r"step: (\d+) loss: (\d+\.\d+) ")


@dataclass(frozen=True)
class Ended:
    """A run that has ended."""

    codes: list[int]
    logs: list[str]

    @property
    def log(self) -> str:
        """What the first worker said."""
        return self.logs[0]

    def curve(self) -> dict[int, float]:
        """Return the losses by step, as the first worker said them."""
        return curve(self.log)


def curve(log: str) -> dict[int, float]:
    """Read the losses as a log rule would; a step that was done twice counts as it was done last."""
    return {int(step): float(loss) for step, loss in _STEP.findall(log)}


class Run:
    """Workers that run now."""

    def __init__(self, workers: Sequence[Any], logs: Sequence[Path]) -> None:
        self._workers = workers
        self._logs = logs

    def wait_for(self, text: str, *, worker: int = 0) -> None:
        """Wait until a worker has said something."""
        wait_until(lambda: text in self._logs[worker].read_text(), lambda: f"no {text!r} in {self._said()}")

    def send(self, number: signal.Signals, *, worker: int) -> None:
        """Send a signal to a worker."""
        os.kill(self._workers[worker].pid, number)

    def ended(self) -> Ended:
        """Wait for the end of all."""
        wait_until(lambda: all(worker.exitcode is not None for worker in self._workers), self._said)
        return Ended([worker.exitcode for worker in self._workers], [log.read_text() for log in self._logs])

    def _said(self) -> str:
        return "\n".join(log.read_text() for log in self._logs)


def wait_until(happened: Any, said: Any) -> None:
    """Wait until something has happened, looking often."""
    deadline = time.monotonic() + LONGEST
    while not happened():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {LONGEST:.0f} seconds: {said()}")
        time.sleep(0.02)


@contextlib.contextmanager
def started(
    count: int, arguments: Sequence[object], folder: Path, *, variables: Mapping[str, str] | None = None
) -> Iterator[Run]:
    """Start workers that are forked from a process which has imported everything: a tenth of a second each.

    The rendezvous listens here, at a port that the system chose, so that no other process can take it in between.
    """
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    rendezvous = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(store.port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "WORLD_SIZE": str(count),
    }
    context = multiprocessing.get_context("forkserver")
    # the last two are what PyTorch imports at the first step, half a second of each worker's time
    context.set_forkserver_preload(["train", "launching", "torch._dynamo", "numpy.random"])
    logs = [_new_file(folder) for _ in range(count)]
    workers = [
        context.Process(
            target=_work,
            args=(
                [*SMALL, *map(str, arguments)],
                {**rendezvous, "RANK": str(rank), "LOCAL_RANK": str(rank), **(variables or {})},
                str(logs[rank]),
            ),
        )
        for rank in range(count)
    ]
    for worker in workers:
        worker.start()
    try:
        yield Run(workers, logs)
    finally:
        for worker in workers:
            if worker.exitcode is None:
                worker.kill()
            worker.join()
        del store


def ran(count: int, arguments: Sequence[object], folder: Path, *, variables: Mapping[str, str] | None = None) -> Ended:
    """Start workers and wait for their end."""
    with started(count, arguments, folder, variables=variables) as run:
        return run.ended()


def _work(arguments: list[str], variables: dict[str, str], log: str) -> None:
    os.environ.update(variables)
    written = os.open(log, os.O_WRONLY | os.O_APPEND)
    os.dup2(written, 1)
    os.dup2(written, 2)
    sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)

    if any(name.startswith("FAKE_") for name in variables):
        sys.path.insert(0, str(FAKES))
    import torch  # noqa: PLC0415 - has to be this process's

    import train  # noqa: PLC0415 - as above

    torch.set_num_threads(1)
    sys.exit(train.main(arguments))


def _new_file(folder: Path) -> Path:
    file = folder / f"worker-{len(list(folder.glob('worker-*')))}.log"
    file.touch()
    return file


class Torchrun:
    """A run by torchrun itself, which starts its workers anew when one dies."""

    def __init__(self, count: int, arguments: Sequence[object], folder: Path, *, restarts: int) -> None:
        self._log = _new_file(folder)
        self._workers = folder / "processes"
        command = (
            *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count)),
            *("--max-restarts", str(restarts), "--monitor-interval", "0.1", str(PROGRAM / "train.py"), *SMALL),
        )
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [*command, *map(str, arguments)],
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"},
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.terminate()
        self._process.wait(LONGEST)

    def log(self) -> str:
        """Return what has been said so far."""
        return self._log.read_text()

    def wait_for(self, text: str) -> None:
        """Wait until something has been said."""
        wait_until(lambda: text in self.log(), lambda: f"no {text!r} in {self.log()}")

    def kill_a_worker(self) -> None:
        """Kill the last worker, as a lack of memory would."""
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        os.kill(int(children[-1]), signal.SIGKILL)

    def send(self, number: signal.Signals) -> None:
        """Send a signal to torchrun, as Kubernetes does to the first process of a pod."""
        self._process.send_signal(number)

    def code(self) -> int:
        """Wait for the end, and give the exit code."""
        return self._process.wait(LONGEST)
