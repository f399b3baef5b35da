"""Why a run ends before its last step, and what the launcher is told."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType

FINISHED = 0
RESIZED = 0
"""After an elastic event: the HyperPod elastic agent asked for the end, and starts the next size."""
TERMINATED = 128 + signal.SIGTERM
"""After SIGTERM, as a shell reports it. Not 0: torchrun and the operators would take an unfinished job for done."""


@dataclass(frozen=True)
class Asked:
    """What this worker has been asked for so far."""

    to_terminate: bool
    to_resize: bool


class Events:
    """SIGTERM (a pod that is evicted, a torchrun that restarts its workers) and the elastic events of HyperPod.

    The HyperPod elastic agent sends SIGUSR1 to workers before the job changes its size, and kills them after
    gracefulShutdownTimeoutInSeconds. Its library says so by ``elastic_event_detected``, but only if
    HYPERPOD_SIGNAL_COORDINATION is "distributed"; the signal is heard here in either case.
    """

    def __init__(self) -> None:
        self._agent_says = _agents_question()
        self._received: set[int] = set()
        # after the import above, because that sets a handler of its own
        heard = (signal.SIGTERM, signal.SIGUSR1)
        self._before = {int(number): signal.signal(number, self._receive) for number in heard}

    def asked(self) -> Asked:
        """Say what has been asked for. Every worker calls it in every step: the agent's answer is a collective."""
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
            # whoever asks twice does not want to wait for a checkpoint
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
