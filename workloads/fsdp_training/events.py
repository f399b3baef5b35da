"""The reasons why a run ends before its last step, and the exit codes for the launcher."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType

FINISHED = 0
RESIZED = 0
"""After an elastic event: the HyperPod elastic agent asked for the end, and starts the next size."""
TERMINATED = 128 + signal.SIGTERM
"""After SIGTERM, as in shells. Not 0, because torchrun and the operators would treat an unfinished job as done."""


@dataclass(frozen=True)
class Asked:
    """The requests that this worker has received."""

    to_terminate: bool
    to_resize: bool


class Events:
    """SIGTERM (a pod that is evicted, a torchrun that restarts its workers) and the elastic events of HyperPod.

    The HyperPod elastic agent sends SIGUSR1 to workers before the job changes its size, and kills them after
    gracefulShutdownTimeoutInSeconds. Its library reports it with ``elastic_event_detected``, but only if
    HYPERPOD_SIGNAL_COORDINATION is "distributed"; the signal is handled here in either case.
    """

    def __init__(self) -> None:
        self._agent_says = _agents_question()
        self._received: set[int] = set()
        # after the import above, because that sets its own handler
        handled = (signal.SIGTERM, signal.SIGUSR1)
        self._before = {int(number): signal.signal(number, self._receive) for number in handled}

    def asked(self) -> Asked:
        """Return the requests. Every worker calls it in every step, because the agent's answer is a collective."""
        agent_says = self._agent_says()
        return Asked(
            to_terminate=signal.SIGTERM in self._received,
            to_resize=agent_says or signal.SIGUSR1 in self._received,
        )

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self._received.add(number)
        before = self._before[number]
        if callable(before):
            before(number, frame)
        if number == signal.SIGTERM:
            # a second signal means that the sender does not want to wait for a checkpoint
            signal.signal(number, signal.SIG_DFL)


def _agents_question() -> Callable[[], bool]:
    try:
        from hyperpod_elastic_agent.elastic_event_handler import (  # noqa: PLC0415 - only in HyperPod's image
            elastic_event_detected,
        )
    except ImportError:
        return lambda: False
    question: Callable[[], bool] = elastic_event_detected
    return question
