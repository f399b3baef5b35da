"""Serves the embedded AWS on loopback: `python -m hyperpod_cdk_rehearsal serve --account ... --region ...`.

Prints only one JSON line when it is ready; all other output goes to the log file. The line contains `endpoint`
(http://127.0.0.1:PORT), `access_key_id` and `secret_access_key`, with which calls must be signed, and `control_token`
for control endpoints; all but the first are random. Ends when its standard input closes, so that it never outlives the
process that started it.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import os
import sys
import threading
from pathlib import Path
from typing import Any

_WARMED_SERVICES = ("sts", "s3", "iam", "ssm", "ec2", "lambda", "logs", "kms", "ecr")

_OBJECTS_BETWEEN_COLLECTIONS = 100_000
"""With Python's default of 700, garbage collection would run at every request because of moto's many objects."""


def main(arguments: list[str] | None = None) -> None:
    """Parse the options, isolate the process from any real AWS, and serve until standard input closes."""
    options = _options(arguments)
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    ready_line = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    _log_to(options.log_file)
    _isolate(options.account, options.region)
    _serve(options, ready_line)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m hyperpod_cdk_rehearsal serve", description=__doc__)
    parser.add_argument("--account", required=True, help="the 12-digit ID of the only account")
    parser.add_argument("--region", required=True, help="the rehearsed Region")
    parser.add_argument("--account-file", type=Path, help="account file in YAML or JSON")
    parser.add_argument("--port", type=int, default=0, help="default: any free port")
    parser.add_argument("--log-file", type=Path, default=Path(os.devnull), help="default: no log")
    parser.add_argument("--clock-scale", type=float, default=1.0, help="factor for every wait for a resource")
    parser.add_argument("--latency-ms", type=float, default=0, help="milliseconds added to every call")
    return parser.parse_args(arguments)


def _log_to(path: Path) -> None:
    """Redirect the descriptors of standard output and error to the log file, so that nothing else is printed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as log:
        os.dup2(log.fileno(), sys.stdout.fileno())
        os.dup2(log.fileno(), sys.stderr.fileno())
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s", stream=sys.stderr)
    logging.getLogger("botocore").setLevel(logging.WARNING)
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)


def _isolate(account: str, region: str) -> None:
    """Set fake credentials and no configuration, so that no real account can be reached."""
    for name in [name for name in os.environ if name.startswith("AWS_") or name.lower().endswith("_proxy")]:
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


def _serve(options: argparse.Namespace, ready_line: Any) -> None:
    # the environment above must be in place before moto loads
    import yaml  # noqa: PLC0415
    from waitress.server import create_server  # noqa: PLC0415

    from hyperpod_cdk_rehearsal.embedded import moto_edge, resources, services  # noqa: F401, PLC0415
    from hyperpod_cdk_rehearsal.embedded.cloudformation import api  # noqa: F401, PLC0415
    from hyperpod_cdk_rehearsal.embedded.context import Account, Clock  # noqa: PLC0415
    from hyperpod_cdk_rehearsal.embedded.server import EmbeddedAws, moto_application  # noqa: PLC0415
    from hyperpod_cdk_rehearsal.embedded.signatures import CALLER, CONTROL_TOKEN  # noqa: PLC0415

    document = yaml.safe_load(options.account_file.read_text()) if options.account_file else {}
    moto_edge.patch_moto()
    moto = moto_application()
    application: EmbeddedAws

    def serve(environ: dict[str, Any], start_response: Any) -> Any:
        # the application needs to know its own port, which the server chooses
        return application(environ, start_response)

    # Any: waitress declares a union in which only the single-socket server has a port
    server: Any = create_server(
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
        account_file=Account(document or {}),
        clock=Clock(options.clock_scale),
        latency_ms=options.latency_ms,
    )
    threading.Thread(target=_exit_with_parent, name="stdin", daemon=True).start()
    application.hold()
    threading.Thread(target=application.fill, name="fill", daemon=True).start()
    threading.Thread(target=_warm, args=(moto, application), name="warm-up", daemon=True).start()
    with ready_line:
        ready = {
            "endpoint": endpoint,
            "access_key_id": CALLER.key_id,
            "secret_access_key": CALLER.secret,
            "control_token": CONTROL_TOKEN,
        }
        ready_line.write(json.dumps(ready) + "\n")
    server.run()


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
