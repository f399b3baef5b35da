"""Serves the embedded AWS on loopback: `python -m hyperpod_cdk_rehearsal serve --account ... --region ...`.

Prints only one JSON line when it is ready; all other output goes to the log file. The line contains `endpoint`
(http://127.0.0.1:PORT), `access_key_id` and `secret_access_key`, with which calls must be signed, and `control_token`
for control endpoints; all but the first are random. Ends when its standard input closes, so that it never outlives the
process that started it. An option with a wrong value, and a port that is in use, end it with code 2 and a sentence on
standard error.
"""

from __future__ import annotations

import argparse
import difflib
import gc
import json
import logging
import os
import re
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from botocore.loaders import Loader

_WARMED_SERVICES = ("sts", "s3", "iam", "ssm", "ec2", "lambda", "logs", "kms", "ecr")

_OBJECTS_BETWEEN_COLLECTIONS = 100_000
"""With Python's default of 700, garbage collection would run at every request because of moto's many objects."""

_LONGEST_SHOWN = 60
"""Characters of a wrong value that its message repeats."""


def main(arguments: list[str] | None = None) -> None:
    """Parse the options, isolate the process from any real AWS, and serve until standard input closes."""
    options = _options(arguments)
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    ready_line, complaint = (os.fdopen(os.dup(each.fileno()), "w") for each in (sys.stdout, sys.stderr))
    _log_to(options.log_file)
    _isolate(options.account, options.region)
    _serve(options, ready_line, complaint)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m hyperpod_cdk_rehearsal serve", description=__doc__)
    parser.add_argument("--account", required=True, type=_account, help="the 12-digit ID of the only account")
    parser.add_argument("--region", required=True, type=_region, help="the rehearsed Region")
    parser.add_argument("--account-file", type=_account_file, default={}, help="account file in YAML or JSON")
    parser.add_argument("--port", type=_port, default=0, help="default: any free port")
    parser.add_argument("--log-file", type=_log_file, default=Path(os.devnull), help="default: no log")
    factor, wait = partial(_number, most=100), partial(_number, most=60_000)
    parser.add_argument(
        "--clock-scale", type=factor, default=1.0, help="factor for every wait for a resource, 0 to 100"
    )
    parser.add_argument("--latency-ms", type=wait, default=0, help="milliseconds added to every call, 0 to 60000")
    return parser.parse_args(arguments)


def _refusal(allowed: str, given: str, fix: str) -> argparse.ArgumentTypeError:
    shown = given if len(given) <= _LONGEST_SHOWN else f"{given[:_LONGEST_SHOWN]}..."
    return argparse.ArgumentTypeError(f"must be {allowed}, got {json.dumps(shown)}; {fix}")


def _account(text: str) -> str:
    if not re.fullmatch("[0-9]{12}", text):
        raise _refusal("the 12 digits of an AWS account", text, "for example 111122223333")
    return text


def _region(text: str) -> str:
    """Return a Region of botocore's data, without its names for services that have no Region (`aws-global`)."""
    # not by a session, which reads the caller's settings of AWS
    loader = Loader(extra_search_paths=[Loader.BUILTIN_DATA_PATH], include_default_search_paths=False)
    partitions = loader.load_data("partitions")["partitions"]
    known = sorted(name for each in partitions for name in each["regions"] if not name.endswith("-global"))
    if text not in known:
        near = difflib.get_close_matches(text[:_LONGEST_SHOWN].lower(), known, n=1)
        fix = f"did you mean {near[0]}?" if near else f"write one of {', '.join(known)}"
        raise _refusal("an AWS Region that botocore knows", text, fix)
    return text


def _account_file(text: str) -> dict[str, Any]:
    """Return the document of an account file."""
    # only with such a file: its models take some time to load
    from hyperpod_cdk_rehearsal.embedded.account import AccountFileError, without_environment  # noqa: PLC0415

    try:
        return without_environment(Path(text))
    except AccountFileError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _port(text: str) -> int:
    port = int(text) if re.fullmatch("[0-9]{1,5}", text) else -1
    if not 0 <= port <= 65535:
        raise _refusal("a port, 0 to 65535", text, "omit the option for any free port")
    return port


def _log_file(text: str) -> Path:
    path = Path(text)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("a").close()
    except OSError as error:
        raise _refusal(f"a file that can be written ({error.strerror})", text, "name another file") from error
    return path


def _number(text: str, *, most: int) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1
    # NaN is in no interval
    if not 0 <= number <= most:
        raise _refusal(f"a number, 0 to {most}", text, "for example 0.5")
    return number


def _log_to(path: Path) -> None:
    """Redirect the descriptors of standard output and error to the log file, so that nothing else is printed."""
    with path.open("a") as log:
        os.dup2(log.fileno(), sys.stdout.fileno())
        os.dup2(log.fileno(), sys.stderr.fileno())
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s", stream=sys.stderr)
    logging.getLogger("botocore").setLevel(logging.WARNING)
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)


def _isolate(account: str, region: str) -> None:
    """Set fake credentials and no configuration, so that no real account can be reached."""
    for name in [name for name in os.environ if name.startswith(("AWS_", "MOTO_")) or name.lower().endswith("_proxy")]:
        del os.environ[name]
    os.environ.update(
        AWS_ACCESS_KEY_ID="rehearsal",
        AWS_SECRET_ACCESS_KEY="rehearsal",  # noqa: S106 - fake
        AWS_CONFIG_FILE=os.devnull,
        AWS_SHARED_CREDENTIALS_FILE=os.devnull,
        AWS_EC2_METADATA_DISABLED="true",
        AWS_DEFAULT_REGION=region,
        MOTO_ACCOUNT_ID=account,
        MOTO_ALLOW_NONEXISTENT_REGION="true",
        MOTO_EC2_LOAD_DEFAULT_AMIS="false",
        MOTO_IAM_LOAD_MANAGED_POLICIES="false",
    )


def _serve(options: argparse.Namespace, ready_line: TextIO, complaint: TextIO) -> None:
    # the environment above must be in place before moto loads
    from waitress.server import create_server  # noqa: PLC0415

    from hyperpod_cdk_rehearsal.embedded import moto_edge, resources, services  # noqa: F401, PLC0415
    from hyperpod_cdk_rehearsal.embedded.access_keys import CALLER  # noqa: PLC0415
    from hyperpod_cdk_rehearsal.embedded.cloudformation import api  # noqa: F401, PLC0415
    from hyperpod_cdk_rehearsal.embedded.context import Account, Clock  # noqa: PLC0415
    from hyperpod_cdk_rehearsal.embedded.server import EmbeddedAws, moto_application  # noqa: PLC0415
    from hyperpod_cdk_rehearsal.embedded.signatures import CONTROL_TOKEN  # noqa: PLC0415

    moto_edge.patch_moto()
    moto = moto_application()
    application: EmbeddedAws

    def serve(environ: dict[str, Any], start_response: Any) -> Any:
        # the application needs to know its own port, which the server chooses
        return application(environ, start_response)

    # Any: waitress declares a union in which only the single-socket server has a port
    server: Any = _listening(
        create_server,
        complaint,
        serve,
        host="127.0.0.1",
        port=options.port,
        # the code of Lambda functions runs in a request and calls back; more threads than requests can be nested
        threads=64,
        # SDKs keep a connection for every call they once had under way, for each service
        connection_limit=2000,
        backlog=512,
        asyncore_use_poll=True,
        # asset bundles of some 70 MB stay in memory
        inbuf_overflow=128 * 1024 * 1024,
        outbuf_overflow=128 * 1024 * 1024,
        channel_timeout=900,
        ident="embedded-aws",
    )
    endpoint = f"http://127.0.0.1:{server.effective_port}"
    os.environ["MOTO_PORT"] = str(server.effective_port)
    application = EmbeddedAws(
        account=options.account,
        region=options.region,
        endpoint=endpoint,
        moto=moto,
        account_file=Account(options.account_file),
        clock=Clock(options.clock_scale),
        latency_ms=options.latency_ms,
    )
    threading.Thread(target=_exit_with_parent, name="stdin", daemon=True).start()
    application.hold()
    threading.Thread(target=application.fill, name="fill", daemon=True).start()
    threading.Thread(target=_warm, args=(moto, application), name="warm-up", daemon=True).start()
    complaint.close()
    with ready_line:
        ready = {
            "endpoint": endpoint,
            "access_key_id": CALLER.key_id,
            "secret_access_key": CALLER.secret,
            "control_token": CONTROL_TOKEN,
        }
        ready_line.write(json.dumps(ready) + "\n")
    server.run()


def _listening(create: Callable[..., Any], complaint: TextIO, *arguments: Any, port: int, **settings: Any) -> Any:
    """Create the server; ends the process if the port cannot be used."""
    try:
        return create(*arguments, port=port, **settings)
    except OSError as error:
        with complaint:
            complaint.write(f"--port: {port} cannot be used ({error.strerror}); omit the option for any free port\n")
        sys.exit(2)


def _exit_with_parent() -> None:
    while sys.stdin.buffer.read(4096):
        pass
    # not sys.exit: worker threads may be in a Lambda's code for minutes
    os._exit(0)


def _warm(moto: Any, application: Any) -> None:
    """Load the services and clients a deployment needs first, while the CDK CLI still starts."""
    for service in _WARMED_SERVICES:
        host = f"{service}.us-east-1.amazonaws.com"
        backend = moto.get_backend_for_host(host)
        with moto.lock:
            if backend not in moto.app_instances:
                moto.app_instances[backend] = moto.create_app(backend)
        application.context().client(service)
