"""A plugin of pytest for ``scripts/mutants.py``, which says by a JSON file, ``MUTANTS_TASK``, what is to be done.

``record``, a path: the tests run under coverage, and for each test its seconds of processor and the lines that it
reaches under ``sources`` are written there. ``chosen``: only these tests run, in this order, and no longer than
``seconds`` of processor: those of the clock would count how busy the machine is. ``mutants``: the tests are collected
once, and for each mutant a child puts the changed functions in place and runs those that the mutant names; a line of
the file ``answers`` says which failed, that none did, or that the change is none of a function.
"""

from __future__ import annotations

import functools
import gc
import inspect
import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import Phase, settings

TASK: dict[str, Any] = json.loads(Path(os.environ["MUTANTS_TASK"]).read_text(encoding="utf-8"))
CACHES: list[Any] = []
SPENT: dict[str, float] = {}


def remembered(cache: Callable[..., Any]) -> Callable[..., Any]:
    """Make a decorator of functools that notes each cache: what one test has filled, the next would not reach."""

    @functools.wraps(cache)
    def made(*given: Any, **named: Any) -> Any:
        result = cache(*given, **named)
        if hasattr(result, "cache_clear"):
            CACHES.append(result)
            return result
        return remembered(result)

    return made


def recorder() -> Any:
    """Start coverage, before the sources are imported."""
    sys.path.extend(TASK["paths"])
    from coverage import Coverage  # noqa: PLC0415 - of the venv of mutants, after its path

    coverage = Coverage(data_file=None, include=[f"{TASK['sources']}/*"], config_file=False)
    coverage.start()
    return coverage


def forget() -> None:
    """Empty our caches."""
    for cache in CACHES:
        if (getattr(cache, "__module__", None) or "").startswith("hyperpod_cdk"):
            cache.cache_clear()


functools.cache, functools.lru_cache = remembered(functools.cache), remembered(functools.lru_cache)
RECORDER = recorder() if "record" in TASK else None
if "seconds" in TASK:
    resource.setrlimit(resource.RLIMIT_CPU, (TASK["seconds"], TASK["seconds"] + 5))


def pytest_configure() -> None:
    """Have hypothesis try the same examples each time, and make none smaller: that it fails is all that is asked."""
    settings.register_profile(
        "mutants", settings(derandomize=True, database=None, phases=[Phase.explicit, Phase.generate])
    )
    settings.load_profile("mutants")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests asked for; all where the mutant gave them other names."""
    order = {name: number for number, name in enumerate(TASK.get("chosen", ()))}
    kept = sorted((item for item in items if item.nodeid in order), key=lambda item: order[item.nodeid])
    items[:] = kept or items
    if kept or "mutants" in TASK:
        config.args.append("::")  # tells fixtures, as the name of a test would, that not all of a file run


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Note for a test what it reaches, with nothing left in a cache by the test before."""
    if RECORDER is None:
        return (yield)
    forget()
    RECORDER.switch_context(item.nodeid)
    began = time.process_time()
    try:
        return (yield)
    finally:
        SPENT[item.nodeid] = time.process_time() - began
        RECORDER.switch_context("")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Try the mutants of functions, each in a child of its own."""
    if "mutants" not in TASK:
        return None
    items = {item.nodeid: item for item in session.items}
    gc.unfreeze()  # gc.get_objects() gives nothing of what conftest.py has frozen
    gc.collect()
    living = [each for each in gc.get_objects() if isinstance(each, FunctionType)]
    living = [each for each in living if each.__code__.co_filename.startswith(TASK["root"])]
    gc.freeze()
    with Path(TASK["answers"]).open("w", encoding="utf-8") as answers:
        for mutant in TASK["mutants"]:
            answers.write(json.dumps(tried(mutant, items, living)) + "\n")
            answers.flush()
    return True


def tried(mutant: dict[str, Any], items: dict[str, pytest.Item], living: list[FunctionType]) -> str | None:
    """Give what sees a mutant, "" where nothing does, None where no function is changed."""
    functions = changed_functions(Path(TASK["root"], mutant["file"]), mutant["after"], living)
    chosen = [items[name] for name in mutant["chosen"] if name in items]
    if not functions or not chosen:
        return None
    said = in_child(functions, chosen, mutant["seconds"])
    if said in items and in_child([], [items[said]], mutant["seconds"]) != "":
        return None  # it fails without the mutant, too
    return said


def in_child(functions: list[tuple[FunctionType, CodeType]], chosen: list[pytest.Item], seconds: int) -> str | None:
    """Give the first test that fails with other code in functions, "" for none, None where a child says nothing."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
        os.write(write, (failing(functions, chosen) or "").encode())
        os._exit(0)
    os.close(write)
    ends = bool(select.select([read], [], [], TASK["limit"])[0])
    if not ends:
        os.kill(child, signal.SIGKILL)
    said = os.read(read, 4096).decode()
    os.close(read)
    _, status = os.waitpid(child, 0)
    if ends and status and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL):
        return f"no end after {seconds} s of processor"
    return said if ends and not status else None


def failing(functions: list[tuple[FunctionType, CodeType]], chosen: list[pytest.Item]) -> str | None:
    """Give the first test that fails with other code in functions."""
    for function, code in functions:
        function.__code__ = code
    forget()
    for item, following in zip(chosen, [*chosen[1:], None], strict=True):
        if any(
            report.failed and report.when != "teardown"
            for report in runtestprotocol(item, log=False, nextitem=following)
        ):
            return item.nodeid
    return None


def changed_functions(file: Path, after: str, living: list[FunctionType]) -> list[tuple[FunctionType, CodeType]]:
    """Give each function whose code a mutant changes, with its code then; none where more than functions changes."""
    pairs: dict[CodeType, CodeType] = {}

    def compare(before: CodeType, then: CodeType) -> bool:
        if before == then:
            return True
        ours, others = [[each for each in code.co_consts if isinstance(each, CodeType)] for code in (before, then)]
        if before.co_flags & inspect.CO_NEWLOCALS:
            pairs[before] = then
            return True
        # a module or the body of a class, which has run
        same = before.replace(co_consts=rest(before)) == then.replace(co_consts=rest(then))
        return same and len(ours) == len(others) and all(compare(*pair) for pair in zip(ours, others, strict=True))

    def rest(code: CodeType) -> tuple[Any, ...]:
        return tuple(None if isinstance(each, CodeType) else each for each in code.co_consts)

    original = file.read_text(encoding="utf-8")
    if not compare(compile(original, str(file), "exec"), compile(after, str(file), "exec")):
        return []
    return [(each, pairs[each.__code__]) for each in living if each.__code__ in pairs]


def pytest_sessionfinish() -> None:
    """Write what was noted."""
    if RECORDER is None:
        return
    RECORDER.stop()
    data = RECORDER.get_data()
    tests: dict[str, Any] = {name: {"seconds": spent, "lines": {}} for name, spent in SPENT.items()}
    for file in data.measured_files():
        name = str(Path(file).relative_to(TASK["root"]))
        for line, contexts in data.contexts_by_lineno(file).items():
            for context in contexts:
                if context:
                    tests[context]["lines"].setdefault(name, []).append(line)
    Path(TASK["record"]).write_text(json.dumps(tests), encoding="utf-8")
