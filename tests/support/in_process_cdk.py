"""Does what the CDK CLI does, without its processes: synthesizes here, and makes the change sets by itself."""

from __future__ import annotations

import io
import json
import time
import urllib.request
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from hyperpod_cdk import HyperPodChart
from hyperpod_cdk.config import load_environment
from hyperpod_cdk.rehearsal.cdk_cli import CdkFailedError
from stacks.app import add_environment, new_app
from tests.support.embedded import CREDENTIALS, Embedded

PAUSE_SECONDS = 0.1
PATIENCE_SECONDS = 60.0
NO_CHANGES = "The submitted information didn't contain changes. Submit different information to create a change set."


@dataclass
class Aws:
    """The embedded AWS as the rehearsal's driver knows it, its clients kept."""

    there: Embedded
    log: Path
    _clients: dict[str, Any] = field(default_factory=dict)

    @property
    def cloudformation(self) -> Any:
        """The CloudFormation client."""
        return self.client("cloudformation")

    def client(self, service: str) -> Any:
        """Give a client of a service."""
        if service not in self._clients:
            self._clients[service] = _session(self.there.region).client(
                service,
                endpoint_url=self.there.endpoint,
                config=Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}),
            )
        return self._clients[service]

    def state(self) -> dict[str, Any]:
        """Give what no AWS API tells."""
        with urllib.request.urlopen(f"{self.there.endpoint}/_rehearsal/state", timeout=10) as answer:  # noqa: S310 - loopback
            state: dict[str, Any] = json.load(answer)
        return state


@dataclass(frozen=True)
class Stack:
    """One stack of an assembly."""

    name: str
    path: str
    template: str
    dependencies: tuple[str, ...]
    parameters: tuple[str, ...]
    tags: tuple[tuple[str, str], ...]
    is_protected: bool


class InProcessCdk:
    """Stands in for ``CdkCli`` in the rehearsal's driver: the same arguments, the same calls of AWS, no child process.

    ``changes`` holds what every change set of the last deployment would do, by stack: the stacks of which nothing
    changed are missing.
    """

    def __init__(self, aws: Aws) -> None:
        self._aws = aws
        self._published: set[str] = set()
        self._count = 0
        self.changes: dict[str, list[str]] = {}

    def synth(self, environment_file: Path, assembly: Path) -> str:
        """Write the cloud assembly of one environment file, without the checks of templates."""
        app = new_app(outdir=assembly)
        loaded = load_environment(environment_file)
        add_environment(app, loaded, chart=HyperPodChart.placeholder(), lifecycle_scripts=None)
        app.synth()
        return ""

    def run(self, arguments: Sequence[str], *, aws: bool = True) -> str:  # noqa: ARG002 - as CdkCli has it
        """Understand the arguments with which the driver calls the CDK CLI."""
        command, *rest = arguments
        stacks = read_stacks(Path(rest[rest.index("--app") + 1]))
        if command == "deploy":
            chosen = [rest[index + 1] for index, each in enumerate(rest) if each == "--parameters"]
            self._deploy(stacks, dict(each.partition(":")[2].split("=", 1) for each in chosen))
        elif command == "destroy":
            self._destroy([stack for stack in stacks.values() if stack.path in rest])
        else:
            raise AssertionError(f"the driver ran 'cdk {command}', which is not played here")
        return ""

    def _deploy(self, stacks: dict[str, Stack], parameters: dict[str, str]) -> None:
        self.changes = {}
        pending, done = dict(stacks), set[str]()
        running: dict[str, Stack] = {}
        while pending or running:
            for name in [name for name, stack in pending.items() if set(stack.dependencies) <= done]:
                stack = pending.pop(name)
                if self._begin(stack, parameters):
                    running[name] = stack
                else:
                    self._finish(stack, done)
            for name in [name for name in running if self._has_settled(name, "CREATE_COMPLETE", "UPDATE_COMPLETE")]:
                self._finish(running.pop(name), done)
            time.sleep(PAUSE_SECONDS if running else 0)

    def _begin(self, stack: Stack, parameters: dict[str, str]) -> bool:
        """Execute a change set; False where there is nothing to change."""
        cloudformation = self._aws.cloudformation
        self._publish(Path(stack.template).parent)
        exists = self._status(stack.name) is not None
        given = [{"ParameterKey": k, "ParameterValue": v} for k, v in parameters.items() if k in stack.parameters]
        # the one that was executed last keeps its name
        self._count += 1
        change_set = {"StackName": stack.name, "ChangeSetName": f"cdk-deploy-change-set-{self._count}"}
        cloudformation.create_change_set(
            **change_set,
            ChangeSetType="UPDATE" if exists else "CREATE",
            TemplateBody=Path(stack.template).read_text(encoding="utf-8"),
            Capabilities=["CAPABILITY_NAMED_IAM"],
            Parameters=given,
            Tags=[{"Key": key, "Value": value} for key, value in stack.tags],
        )
        described = cloudformation.describe_change_set(**change_set)
        if described["Status"] == "FAILED":
            assert described["StatusReason"] == NO_CHANGES
            cloudformation.delete_change_set(**change_set)
            return False
        pages = cloudformation.get_paginator("describe_change_set").paginate(**change_set)
        self.changes[stack.name] = sorted(_shown(each) for page in pages for each in page["Changes"])
        cloudformation.execute_change_set(**change_set)
        return True

    def _finish(self, stack: Stack, done: set[str]) -> None:
        done.add(stack.name)
        self._aws.cloudformation.update_termination_protection(
            StackName=stack.name, EnableTerminationProtection=stack.is_protected
        )

    def _destroy(self, stacks: list[Stack]) -> None:
        for stack in reversed(stacks):
            if self._status(stack.name) is not None:
                self._aws.cloudformation.delete_stack(StackName=stack.name)
                while not self._has_settled(stack.name, "DELETE_COMPLETE"):
                    time.sleep(PAUSE_SECONDS)

    def _has_settled(self, name: str, *well: str) -> bool:
        status = self._status(name) or "DELETE_COMPLETE"
        if not status.endswith("_IN_PROGRESS") and status not in well:
            raise CdkFailedError(f"deploy {name}", 1, f"{name} is {status}")
        return not status.endswith("_IN_PROGRESS")

    def _status(self, name: str) -> str | None:
        listed = self._aws.cloudformation.list_stacks()["StackSummaries"]
        found = (str(each["StackStatus"]) for each in listed if each["StackName"] == name)
        return next((status for status in found if status != "DELETE_COMPLETE"), None)

    def _publish(self, folder: Path) -> None:
        s3 = self._aws.client("s3")
        for manifest in sorted(folder.glob("*.assets.json")):
            for asset in json.loads(manifest.read_text(encoding="utf-8"))["files"].values():
                source = (folder / asset["source"]["path"]).resolve()
                for place in asset["destinations"].values():
                    bucket, key = place["bucketName"], place["objectKey"]
                    # templates are handed over in the request
                    if key in self._published or key.endswith(".json"):
                        continue
                    if bucket not in self._published:
                        self._bootstrap(bucket)
                    self._published |= {bucket, key}
                    is_file = asset["source"]["packaging"] == "file"
                    s3.put_object(Bucket=bucket, Key=key, Body=source.read_bytes() if is_file else _zipped(source))

    def _bootstrap(self, bucket: str) -> None:
        """Make the bucket of assets; the version of the bootstrap stack is the account file's."""
        s3, region = self._aws.client("s3"), self._aws.there.region
        elsewhere = {"CreateBucketConfiguration": {"LocationConstraint": region}} if region != "us-east-1" else {}
        s3.create_bucket(Bucket=bucket, **elsewhere)


def read_stacks(assembly: Path) -> dict[str, Stack]:
    """Read the stacks of an assembly, each after those that it depends on."""
    found: dict[str, Stack] = {}
    for manifest in sorted(assembly.rglob("manifest.json")):
        artifacts = json.loads(manifest.read_text(encoding="utf-8"))["artifacts"]
        stacks = {key: each for key, each in artifacts.items() if each["type"] == "aws:cloudformation:stack"}
        for key in _ordered(stacks):
            properties = stacks[key]["properties"]
            file = manifest.parent / properties["templateFile"]
            found[properties["stackName"]] = Stack(
                name=properties["stackName"],
                path=stacks[key]["displayName"],
                template=str(file),
                dependencies=tuple(
                    stacks[each]["properties"]["stackName"]
                    for each in stacks[key].get("dependencies", [])
                    if each in stacks
                ),
                parameters=tuple(json.loads(file.read_text(encoding="utf-8")).get("Parameters", {})),
                tags=tuple(sorted(properties.get("tags", {}).items())),
                is_protected=bool(properties.get("terminationProtection")),
            )
    return found


def _ordered(stacks: dict[str, dict[str, Any]]) -> Iterator[str]:
    told: set[str] = set()

    def visit(key: str) -> Iterator[str]:
        if key in stacks and key not in told:
            told.add(key)
            for each in stacks[key].get("dependencies", []):
                yield from visit(each)
            yield key

    for key in stacks:
        yield from visit(key)


def _shown(change: dict[str, Any]) -> str:
    """Say what happens to a resource: ``Modify AWS::SageMaker::Cluster``, with a word where it is replaced."""
    resource = change["ResourceChange"]
    replaced = resource.get("Replacement", "False")
    return f"{resource['Action']} {resource['ResourceType']}" + (
        f" replaced: {replaced}" if replaced != "False" else ""
    )


@cache
def _zipped(folder: Path) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                archive.write(file, file.relative_to(folder))
    return buffer.getvalue()


@cache
def _session(region: str) -> Any:
    return boto3.session.Session(
        aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
        region_name=region,
    )
