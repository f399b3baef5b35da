"""The embedded AWS in a hurry: functions begin in a process that has boto3 already, and no AWS CLI is loaded.

CDK's deployment of files into a bucket is played; its code runs where the real CDK CLI deploys (test_rehearse.py).
"""

from __future__ import annotations

import io
import multiprocessing
import zipfile
from collections.abc import Mapping, Sequence
from typing import IO

from hyperpod_cdk_rehearsal.embedded.lambda_runner import runner
from hyperpod_cdk_rehearsal.embedded.lambda_runner.code import FunctionCode
from hyperpod_cdk_rehearsal.embedded.resources import _played
from hyperpod_cdk_rehearsal.embedded.serve import main
from tests.support.warm_function import execute

_processes = multiprocessing.get_context("forkserver")
_cold = runner._run


def run_warm(command: Sequence[str], environment: Mapping[str, str], code: FunctionCode, log: IO[bytes]) -> int | None:
    """Stand in for the runner's own way to start a function: Python's begin in a copy of a process with boto3."""
    if not code.runtime.startswith("python"):
        return _cold(list(command), dict(environment), code, log)
    process = _processes.Process(
        target=execute,
        args=(command[1:], dict(environment), str(code.task_root), str(log.name), str(runner.CHILD / "python")),
    )
    process.start()
    process.join(code.timeout_seconds)
    if process.exitcode is None:
        process.kill()
        process.join()
        return None
    return process.exitcode


def bucket_deployment(play: _played.Play) -> _played.Answer:
    """Custom::CDKBucketDeployment: the destination holds what is in the archives, and nothing else."""
    given, s3 = play.properties, play.context.client("s3")
    bucket, prefix = given["DestinationBucketName"], given.get("DestinationBucketKeyPrefix", "")
    if play.is_delete and given.get("RetainOnDelete") == "true":
        return _played.Answer()
    wanted = {} if play.is_delete else _files(play)
    there = s3.list_objects_v2(Bucket=bucket, Prefix=prefix).get("Contents", [])
    for gone in {each["Key"] for each in there} - {f"{prefix}/{name}".lstrip("/") for name in wanted}:
        s3.delete_object(Bucket=bucket, Key=gone)
    for name, body in wanted.items():
        s3.put_object(Bucket=bucket, Key=f"{prefix}/{name}".lstrip("/"), Body=body)
    return _played.Answer(play.physical_id or f"aws.cdk.s3deployment.{play.logical_id}")


def _files(play: _played.Play) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    sources = zip(play.properties["SourceBucketNames"], play.properties["SourceObjectKeys"], strict=True)
    for bucket, key in sources:
        body = play.context.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            found |= {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}
    return found


def serve() -> None:
    """Serve an embedded AWS until standard input closes.

    Not to be run as a file: multiprocessing would load that anew, and all of the embedded AWS, for every function.
    """
    _processes.set_forkserver_preload(["tests.support.read_models"])
    setattr(runner, "_run", run_warm)  # noqa: B010 - a patch
    _played.PLAYERS["Custom::CDKBucketDeployment"] = bucket_deployment
    main()
