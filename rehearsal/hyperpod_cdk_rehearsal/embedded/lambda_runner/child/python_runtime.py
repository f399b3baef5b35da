"""Lambda's Python runtime, the part of it that a handler sees: one event, one result, one log."""  # noqa: INP001 - a script of its own, no package

from __future__ import annotations

import importlib
import json
import logging
import os
import sys
import threading
import time
import traceback
from pathlib import Path
from types import SimpleNamespace
from typing import Any


class Haste:
    """Lets time fly while a function sleeps, ``speed`` times as fast; ``deadline`` is when Lambda ends it."""

    def __init__(self, speed: float, deadline: float) -> None:
        self._speed = speed
        self._deadline = deadline
        self._skipped = 0.0
        self._sleep = time.sleep

    def sleep(self, seconds: float) -> None:
        """Stand in for time.sleep."""
        if seconds >= self.remaining():
            # its time is up before it wakes
            self._sleep(seconds)
        self._sleep(seconds / self._speed)
        self._skipped += seconds - seconds / self._speed

    def remaining(self) -> float:
        """Return the seconds until Lambda ends the function."""
        return self._deadline - time.time() - self._skipped


class LambdaContext:
    """The context object of an invocation."""

    def __init__(self, about: dict[str, Any], haste: Haste) -> None:
        self._haste = haste
        client_context = about.pop("client_context")
        self.identity = SimpleNamespace(cognito_identity_id=None, cognito_identity_pool_id=None)
        self.client_context = SimpleNamespace(**json.loads(client_context)) if client_context else None
        self.aws_request_id: str = about["aws_request_id"]
        self.function_name: str = about["function_name"]
        self.function_version: str = about["function_version"]
        self.invoked_function_arn: str = about["invoked_function_arn"]
        self.memory_limit_in_mb: str = about["memory_limit_in_mb"]
        self.log_group_name: str = about["log_group_name"]
        self.log_stream_name: str = about["log_stream_name"]

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until the time runs out."""
        return max(int(self._haste.remaining() * 1000), 0)

    def log(self, message: str) -> None:
        """Write to the log."""
        sys.stdout.write(str(message))


class _LogHandler(logging.Handler):
    """Writes to standard output in Lambda's layout."""

    def emit(self, record: logging.LogRecord) -> None:
        sys.stdout.write(self.format(record))
        sys.stdout.flush()


def main(event_file: str, about_file: str, result_file: str) -> int:
    """Run the handler once; the result file says how it went. Exit status 0 unless the process itself fails."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    about = json.loads(Path(about_file).read_text(encoding="utf-8"))
    speed = float(os.environ.get("HYPERPOD_CDK_REHEARSAL_SPEED", "1"))
    haste = Haste(speed, float(about.pop("deadline_seconds")))
    setattr(time, "sleep", haste.sleep)  # noqa: B010 - a patch, before the function's code is loaded
    context = LambdaContext(about, haste)
    _set_up_logging(context.aws_request_id)
    outcome = _outcome(json.loads(Path(event_file).read_text(encoding="utf-8")), context)
    Path(result_file).write_text(json.dumps(outcome), encoding="utf-8")
    sys.stdout.flush()
    return 0


def _end_with_parent() -> None:
    os.read(0, 1)
    os._exit(1)


def _outcome(event: Any, context: LambdaContext) -> dict[str, Any]:
    module_name, _, function_name = os.environ["_HANDLER"].rpartition(".")
    sys.path[0] = os.environ["LAMBDA_TASK_ROOT"]
    try:
        module = importlib.import_module(module_name.replace("/", "."))
    except BaseException as error:  # noqa: BLE001 - a module may even call sys.exit while it loads
        message = f"Unable to import module '{module_name}': {error}"
        return _failed(error, context, kind="Runtime.ImportModuleError", message=message)
    handler = getattr(module, function_name, None)
    if handler is None:
        missing = AttributeError(f"Handler '{function_name}' missing on module '{module_name}'")
        return _failed(missing, context, kind="Runtime.HandlerNotFound")
    try:
        result = handler(event, context)
    except Exception as error:  # noqa: BLE001 - whatever the handler raises is its result
        return _failed(error, context)
    try:
        return {"payload": json.dumps(result)}
    except (TypeError, ValueError) as error:
        message = f"Unable to marshal response: {error}"
        return _failed(error, context, kind="Runtime.MarshalError", message=message)


def _failed(
    error: BaseException, context: LambdaContext, kind: str | None = None, message: str | None = None
) -> dict[str, Any]:
    frames = traceback.format_list(traceback.extract_tb(error.__traceback__)[1:])
    name, text = kind or type(error).__name__, str(error) if message is None else message
    sys.stdout.write(f"[ERROR] {name}: {text}\nTraceback (most recent call last):\n{''.join(frames)}\n")
    return {
        "error": {
            "errorMessage": text,
            "errorType": name,
            "requestId": context.aws_request_id,
            "stackTrace": frames,
        }
    }


def _set_up_logging(request_id: str) -> None:
    handler = _LogHandler()
    formatter = logging.Formatter(
        f"[%(levelname)s]\t%(asctime)s.%(msecs)03dZ\t{request_id}\t%(message)s\n", "%Y-%m-%dT%H:%M:%S"
    )
    formatter.converter = time.gmtime
    handler.setFormatter(formatter)
    logging.getLogger().addHandler(handler)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
