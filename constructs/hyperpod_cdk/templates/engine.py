"""AWS's template validation engine, created once per process and, if there is time, in parallel with other work."""

from __future__ import annotations

import atexit
from functools import lru_cache
from importlib import import_module
from threading import Lock, Thread
from typing import Any

_LOCK = Lock()


def validation_engine() -> Any:
    """Return the engine. Creating it takes 0.2 s, a template a few milliseconds; of its three forms CEL is the
    fastest."""
    with _LOCK:
        return _made()


def warm_up(*modules: str) -> None:
    """Import ``modules`` and create the engine in a thread: starting Node.js leaves the processor idle for long.

    A caller that needs one of them before the thread has finished waits for it. None of them may call Node.js while it
    is imported: jsii answers one thread at a time.
    """
    Thread(target=_warm_up, args=modules, name="warm-up", daemon=True).start()


def _warm_up(*modules: str) -> None:
    for module in modules:
        import_module(module)
    validation_engine()


@lru_cache
def _made() -> Any:
    import cloudformation_validate  # noqa: PLC0415 - imported beside other work

    # the engine frees itself through its module, which no longer exists when the interpreter ends
    atexit.register(_made.cache_clear)
    return cloudformation_validate.CelEngine()
