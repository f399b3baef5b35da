"""Runs a function's code in a subprocess and reads its result, log and errors."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from hyperpod_cdk.packaged_node import packaged_node
from hyperpod_cdk_rehearsal.embedded import grafana_api
from hyperpod_cdk_rehearsal.embedded.access_keys import FUNCTION
from hyperpod_cdk_rehearsal.embedded.context import Context
from hyperpod_cdk_rehearsal.embedded.lambda_runner.code import (
    FunctionCode,
    NotExecutableError,
    UnknownFunctionError,
    function_code,
    unpacked,
)
from hyperpod_cdk_rehearsal.embedded.operations import ServiceError, operation

CHILD = Path(__file__).parent / "child"
LOG_TAIL_BYTES = 4096
SPEED = 60
"""The seconds that pass for a function that sleeps one second: a second here is about a minute on AWS."""
LOG_LINES_PER_CALL = 1000
KILL_WAIT_SECONDS = 5.0
MODULES_OF_THE_RUNTIME = re.compile(r"""(?:require\(\s*|from\s*|import\s*\(?\s*)["'](@aws-sdk/[\w-]+|aws-sdk)\b""")
HOST_VARIABLES = ("LANG", "LC_ALL", "SYSTEMROOT")


@dataclass(frozen=True)
class Invocation:
    """One execution: `payload` is the returned JSON text, the error's document where `error` (its kind) is set."""

    request_id: str
    payload: str
    error: str | None
    log: str
    log_group: str
    log_stream: str
    version: str

    @property
    def result(self) -> Any:
        """The returned value."""
        return json.loads(self.payload or "null")

    @property
    def error_message(self) -> str:
        """What went wrong, in the function's or Lambda's words; empty where nothing did."""
        if self.error is None:
            return ""
        document = self.result
        return str(document.get("errorMessage", "error")) if isinstance(document, dict) else str(document)


@dataclass
class Executions:
    """Log groups that functions name, and how many asynchronous executions are under way."""

    log_groups: dict[str, str] = field(default_factory=dict)
    in_background: int = 0


def set_log_group(context: Context, function_name: str, log_group: str | None) -> None:
    """The log group of a function's LoggingConfig, which moto does not keep; None: Lambda's default name."""
    with context.state.lock:
        groups = context.state.store(Executions).log_groups
        groups.pop(function_name, None)
        if log_group:
            groups[function_name] = log_group


def log_group_of(context: Context, function_name: str) -> str:
    """The log group of a function."""
    with context.state.lock:
        groups = context.state.store(Executions).log_groups
        return groups.get(function_name, f"/aws/lambda/{function_name}")


def new_log_stream() -> str:
    """A log stream's name as Lambda makes it."""
    return f"{time.strftime('%Y/%m/%d')}/[$LATEST]{uuid.uuid4().hex}"


def write_log(context: Context, log_group: str, log_stream: str, text: str) -> None:
    """Write an execution's log to the log group where users, and the CDK CLI after a failure, look for it."""
    logs = context.client("logs")
    with suppress(logs.exceptions.ResourceAlreadyExistsException):
        logs.create_log_group(logGroupName=log_group)
    logs.create_log_stream(logGroupName=log_group, logStreamName=log_stream)
    now = int(time.time() * 1000)
    lines = [{"timestamp": now, "message": line} for line in text.splitlines() if line]
    for start in range(0, len(lines), LOG_LINES_PER_CALL):
        logs.put_log_events(
            logGroupName=log_group, logStreamName=log_stream, logEvents=lines[start : start + LOG_LINES_PER_CALL]
        )


def in_background(context: Context) -> bool:
    """Whether an asynchronous execution is still under way."""
    with context.state.lock:
        return context.state.store(Executions).in_background > 0


def invoke(
    context: Context,
    name_or_arn: str,
    event: str,
    *,
    qualifier: str | None = None,
    request_id: str | None = None,
    client_context: str | None = None,
) -> Invocation:
    """Run the function with this event (JSON text) and wait for it, as a synchronous Invoke does.

    Raises UnknownFunctionError, and NotExecutableError for what cannot run on this machine: container images,
    runtimes other than Python and Node.js, and Node.js code that needs the SDK which only Lambda's runtime brings.
    """
    code = function_code(context, name_or_arn, qualifier)
    command = _command(code)
    identity = _Identity(context, code, request_id or str(uuid.uuid4()), client_context)
    workspace = Path(tempfile.mkdtemp(prefix="run-", dir=unpacked().root))
    try:
        invocation = _execute(identity, command, event, workspace)
    finally:
        shutil.rmtree(workspace, ignore_errors=True)
    write_log(context, invocation.log_group, invocation.log_stream, invocation.log)
    return invocation


@operation("lambda", "Invoke")
def invoke_operation(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Lambda's Invoke: synchronous, asynchronous (Event) and DryRun."""
    name, qualifier = request["FunctionName"], request.get("Qualifier")
    kind = request.get("InvocationType") or "RequestResponse"
    try:
        code = function_code(context, name, qualifier)
        if kind == "DryRun":
            return {"StatusCode": 204, "Payload": b"", "ExecutedVersion": code.version}
        event = _event_text(request.get("Payload"))
        if kind == "Event":
            _invoke_in_background(context, name, event, qualifier)
            return {"StatusCode": 202, "Payload": b""}
        invocation = invoke(context, name, event, qualifier=qualifier, client_context=request.get("ClientContext"))
    except UnknownFunctionError as error:
        arn = name if name.startswith("arn:") else context.arn("lambda", f"function:{name}")
        raise ServiceError("ResourceNotFoundException", f"Function not found: {arn}", status=404) from error
    except NotExecutableError as error:
        raise ServiceError(
            "InvalidRuntimeException", f"the rehearsal cannot run this function: {error}", 502
        ) from error
    answer: dict[str, Any] = {
        "StatusCode": 200,
        "Payload": invocation.payload.encode(),
        "ExecutedVersion": invocation.version,
    }
    if invocation.error:
        answer["FunctionError"] = invocation.error
    if request.get("LogType") == "Tail":
        answer["LogResult"] = base64.b64encode(invocation.log.encode()[-LOG_TAIL_BYTES:]).decode()
    return answer


@dataclass(frozen=True)
class _Identity:
    """What one execution is told about itself."""

    context: Context
    code: FunctionCode
    request_id: str
    client_context: str | None
    log_stream: str = field(default_factory=new_log_stream)

    @property
    def log_group(self) -> str:
        return log_group_of(self.context, self.code.name)

    def environment(self, workspace: Path) -> dict[str, str]:
        """The variables Lambda sets, nothing of this machine's own but what a process needs to start."""
        code, context = self.code, self.context
        temporary = workspace / "tmp"
        temporary.mkdir()
        trusted = grafana_api.authority(context)
        if trusted is not None:
            (workspace / "authority.pem").write_text(trusted)
        path = [str(code.opt / "bin"), str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"]
        return {
            **{name: os.environ[name] for name in HOST_VARIABLES if name in os.environ},
            "PATH": os.pathsep.join(path),
            "TZ": ":UTC",
            "HOME": str(temporary),
            "TMPDIR": str(temporary),
            "PYTHONPATH": os.pathsep.join([str(CHILD / "python"), *map(str, _python_layers(code.opt))]),
            "NODE_PATH": os.pathsep.join(str(code.opt / part) for part in ("nodejs/node_modules", "nodejs")),
            "LAMBDA_TASK_ROOT": str(code.task_root),
            "LAMBDA_RUNTIME_DIR": str(CHILD),
            "_HANDLER": code.handler,
            "AWS_EXECUTION_ENV": f"AWS_Lambda_{code.runtime}",
            "AWS_REGION": context.region,
            "AWS_DEFAULT_REGION": context.region,
            "AWS_ACCESS_KEY_ID": FUNCTION.key_id,
            "AWS_SECRET_ACCESS_KEY": FUNCTION.secret,
            "AWS_SESSION_TOKEN": FUNCTION.session_token or "",
            "AWS_ENDPOINT_URL": context.endpoint,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_S3_US_EAST_1_REGIONAL_ENDPOINT": "regional",
            "AWS_LAMBDA_FUNCTION_NAME": code.name,
            "AWS_LAMBDA_FUNCTION_VERSION": code.version,
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(code.memory_mib),
            "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
            "AWS_LAMBDA_LOG_GROUP_NAME": self.log_group,
            "AWS_LAMBDA_LOG_STREAM_NAME": self.log_stream,
            # what stands for AWS's own hosts has a certificate of this run
            **({"SSL_CERT_FILE": str(workspace / "authority.pem")} if trusted is not None else {}),
            **code.environment,
            "HYPERPOD_CDK_REHEARSAL_OPT": str(code.opt),
            "HYPERPOD_CDK_REHEARSAL_SPEED": str(SPEED),
        }

    def about(self, deadline: float) -> dict[str, Any]:
        """The context object's contents."""
        return {
            "aws_request_id": self.request_id,
            "function_name": self.code.name,
            "function_version": self.code.version,
            "invoked_function_arn": self.code.arn,
            "memory_limit_in_mb": str(self.code.memory_mib),
            "log_group_name": self.log_group,
            "log_stream_name": self.log_stream,
            "deadline_seconds": deadline,
            "client_context": self.client_context,
        }


def _command(code: FunctionCode) -> list[str]:
    if code.runtime.startswith("python"):
        return [sys.executable, str(CHILD / "python_runtime.py")]
    if code.runtime.startswith("nodejs"):
        return _node_command(code)
    raise NotExecutableError(f"{code.name} runs on {code.runtime or 'no runtime'}; only Python and Node.js run here")


def _node_command(code: FunctionCode) -> list[str]:
    node = packaged_node() or shutil.which("node")
    if node is None:
        raise NotExecutableError(f"{code.name} runs on {code.runtime} and this machine has no Node.js")
    missing = _missing_node_modules(code)
    if missing:
        raise NotExecutableError(
            f"{code.name} needs {', '.join(missing)}, which only Lambda's own {code.runtime} runtime brings"
        )
    return [str(node), "--require", str(CHILD / "loopback_only.cjs"), str(CHILD / "node_runtime.cjs")]


def _missing_node_modules(code: FunctionCode) -> list[str]:
    """AWS SDK packages that the code loads and neither it nor its layers hold."""
    sources = [path for pattern in ("*.js", "*.mjs", "*.cjs") for path in code.task_root.glob(pattern)]
    text = "\n".join(path.read_text(errors="replace") for path in sources)
    homes = [code.task_root / "node_modules", code.opt / "nodejs" / "node_modules"]
    needed = sorted(set(MODULES_OF_THE_RUNTIME.findall(text)))
    return [name for name in needed if not any((home / name).exists() for home in homes)]


def _python_layers(opt: Path) -> list[Path]:
    return [opt / "python", *sorted(opt.glob("python/lib/python3*/site-packages"))]


def _execute(identity: _Identity, command: list[str], event: str, workspace: Path) -> Invocation:
    code, request_id = identity.code, identity.request_id
    result_file, event_file = workspace / "result.json", workspace / "event.json"
    event_file.write_text(event)
    environment = identity.environment(workspace)
    started = time.monotonic()
    about = workspace / "about.json"
    about.write_text(json.dumps(identity.about(time.time() + code.timeout_seconds)))
    with (workspace / "log").open("w+b") as log:
        log.write(f"START RequestId: {request_id} Version: {code.version}\n".encode())
        log.flush()
        status = _run([*command, str(event_file), str(about), str(result_file)], environment, code, log)
        spent = time.monotonic() - started
        error, payload = _outcome(status, result_file, identity)
        if error and status != 0:
            log.write(f"{json.loads(payload)['errorMessage']}\n".encode())
        log.write(f"END RequestId: {request_id}\n".encode())
        log.write(f"REPORT RequestId: {request_id}\tDuration: {spent * 1000:.2f} ms\n".encode())
        log.seek(0)
        text = log.read().decode(errors="replace")
    return Invocation(
        request_id=request_id,
        payload=payload,
        error=error,
        log=text,
        log_group=identity.log_group,
        log_stream=identity.log_stream,
        version=code.version,
    )


def _run(command: list[str], environment: dict[str, str], code: FunctionCode, log: IO[bytes]) -> int | None:
    """The exit status, None where the time ran out.

    The child watches its standard input and ends with this process, whatever way that ends.
    """
    with subprocess.Popen(
        command,
        cwd=code.task_root,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        try:
            return process.wait(timeout=code.timeout_seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            _kill_group(process)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """End the child and what it started; Lambda freezes them, which leaves nothing running either."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait(timeout=KILL_WAIT_SECONDS)


def _outcome(status: int | None, result_file: Path, identity: _Identity) -> tuple[str | None, str]:
    """The kind of error, and the payload."""
    request_id = identity.request_id
    if status is None:
        message = f"RequestId: {request_id} Error: Task timed out after {identity.code.timeout_seconds:.2f} seconds"
        return "Unhandled", json.dumps({"errorType": "Sandbox.Timedout", "errorMessage": message})
    if not result_file.exists():
        how = f"exit status {status}" if status >= 0 else f"signal: {signal.Signals(-status).name}"
        message = f"RequestId: {request_id} Error: Runtime exited with error: {how}"
        return "Unhandled", json.dumps({"errorType": "Runtime.ExitError", "errorMessage": message})
    document = json.loads(result_file.read_text())
    if "error" in document:
        return "Unhandled", json.dumps(document["error"])
    return None, document["payload"]


def _event_text(payload: Any) -> str:
    if payload is None:
        return "{}"
    raw = payload.read() if hasattr(payload, "read") else payload
    text = raw.decode() if isinstance(raw, bytes) else str(raw)
    try:
        json.loads(text or "{}")
    except ValueError as error:
        message = f"Could not parse request body into json: {error}"
        raise ServiceError("InvalidRequestContentException", message) from error
    return text or "{}"


def _invoke_in_background(context: Context, name: str, event: str, qualifier: str | None) -> None:
    store = context.state.store(Executions)
    with context.state.lock:
        store.in_background += 1

    def run() -> None:
        try:
            invoke(context, name, event, qualifier=qualifier)
        finally:
            with context.state.lock:
                store.in_background -= 1

    threading.Thread(target=run, name=f"lambda-{name}", daemon=True).start()
