"""Shows the progress of each stack while the CDK CLI runs, by polling the embedded AWS."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Console
from rich.status import Status

from hyperpod_cdk_rehearsal.process import EmbeddedAws

INTERVAL_SECONDS = 0.4


class StackProgress:
    """A one-line live display for one step; without a terminal, it prints nothing.

    ``sizes`` contains the number of resources of each stack.
    """

    def __init__(self, aws: EmbeddedAws, console: Console, step: str, sizes: Mapping[str, int]) -> None:
        self._aws = aws
        self._step = step
        self._sizes = sizes
        self._status: Status | None = None
        if console.is_terminal and not console.quiet:
            self._status = console.status(step, spinner="line")
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        if self._status is not None:
            self._status.start()
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        if self._status is not None:
            self._thread.join()
            self._status.stop()

    def _watch(self) -> None:
        while not self._done.wait(INTERVAL_SECONDS):
            line = self._line()
            if self._status is not None:
                self._status.update(f"{self._step}: {line}" if line else self._step)

    def _line(self) -> str:
        parts = []
        try:
            for stack in self._aws.cloudformation.describe_stacks()["Stacks"]:
                name, status = stack["StackName"], stack["StackStatus"]
                if name in self._sizes and status.endswith("IN_PROGRESS"):
                    resources = self._aws.cloudformation.list_stack_resources(StackName=name)
                    done = sum(r["ResourceStatus"].endswith("COMPLETE") for r in resources["StackResourceSummaries"])
                    parts.append(f"{name} {done}/{self._sizes[name]}")
        except (BotoCoreError, ClientError):
            return ""
        return ", ".join(parts)
