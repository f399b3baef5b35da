"""Simulates the CDK CLI without its processes: synthesizes in this process, and creates the change sets."""

from __future__ import annotations

import io
import json
import time
import uuid
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from hyperpod_cdk import HyperPodChart
from hyperpod_cdk.config import load_environment
from hyperpod_cdk_rehearsal.cdk_cli import CdkFailedError
from hyperpod_cdk_stacks.app import add_environment, new_app
from tests.support.embedded import Embedded
from tests.support.picomatch import matches

PAUSE_SECONDS = 0.1
"""The initial time between two polls of a stack; polls are expensive, so the time grows."""
LONGEST_PAUSE_SECONDS = 0.5
CHANGE_SET = "cdk-deploy-change-set"
CREATION_FAILED = ("ROLLBACK_COMPLETE", "ROLLBACK_FAILED")
NO_CHANGES = "The submitted information didn't contain changes. Submit different information to create a change set."


def a_moment(_: float) -> None:
    """Wait between two polls of the embedded AWS, whose own threads need time."""
    time.sleep(PAUSE_SECONDS)


@dataclass
class Aws:
    """The embedded AWS with the interface for the rehearsal's driver, and cached clients."""

    there: Embedded
    log: Path
    _clients: dict[str, Any] = field(default_factory=dict)

    @property
    def cloudformation(self) -> Any:
        """The CloudFormation client."""
        return self.client("cloudformation")

    def client(self, service: str) -> Any:
        """Return a client of a service."""
        if service not in self._clients:
            self._clients[service] = self.there.client(service)
        return self._clients[service]

    def state(self) -> dict[str, Any]:
        """Return state without an AWS API."""
        return self.there.state()

    def steps(self) -> list[dict[str, Any]]:
        """Return CloudFormation's actions and calls for each resource."""
        return self.there.steps()


@dataclass(frozen=True)
class Stack:
    """One stack of an assembly."""

    name: str
    path: str
    template: str
    template_url: str
    dependencies: tuple[str, ...]
    parameters: tuple[str, ...]
    tags: tuple[tuple[str, str], ...]
    is_protected: bool
    role_arn: str


class InProcessCdk:
    """Replaces ``CdkCli`` in the rehearsal's driver: the same arguments, the same AWS calls, no child process.

    ``changes`` holds what every change set of the last deployment would do, by stack: the stacks of which nothing
    changed are missing.
    """

    def __init__(self, aws: Aws) -> None:
        self._aws = aws
        self._published: set[str] = set()
        self._ids: dict[str, str] = {}
        self.changes: dict[str, list[str]] = {}

    @staticmethod
    def synth(environment_file: Path, assembly: Path) -> str:
        """Write the cloud assembly of one environment file, without the checks of templates."""
        app = new_app(outdir=assembly)
        loaded = load_environment(environment_file)
        add_environment(app, loaded, chart=HyperPodChart.placeholder(), lifecycle_scripts=None)
        app.synth()
        return ""

    def run(self, arguments: Sequence[str], *, aws: bool = True) -> str:  # noqa: ARG002 - as CdkCli has it
        """Run the arguments with which the driver calls the CDK CLI."""
        command, *rest = arguments
        stacks = read_stacks(Path(rest[rest.index("--app") + 1]))
        at_once = int(rest[rest.index("--concurrency") + 1]) if "--concurrency" in rest else 1
        if command == "deploy":
            chosen = [rest[index + 1] for index, each in enumerate(rest) if each == "--parameters"]
            stacks = _selected(stacks, rest)
            self.deploy(stacks, dict(each.partition(":")[2].split("=", 1) for each in chosen), at_once=at_once)
        elif command == "destroy":
            wanted = {stack.name for stack in stacks.values() if any(matches(stack.path, each) for each in rest)}
            self.destroy({name: stack for name, stack in stacks.items() if name in wanted}, at_once=at_once)
        else:
            raise AssertionError(f"the driver ran 'cdk {command}', which is not played here")
        return ""

    def deploy(self, stacks: Mapping[str, Stack], parameters: Mapping[str, str], *, at_once: int = 1) -> None:
        """Deploy stacks, each after those that it depends on, as many at once as ``cdk deploy --concurrency`` does.

        Raises CdkFailedError for the first one that fails, when what was under way has ended.
        """
        self.changes = {}

        def begin(stack: Stack) -> bool:
            return self._begin(stack, parameters)

        waits_for = {name: {each for each in stack.dependencies if each in stacks} for name, stack in stacks.items()}
        self._each(stacks, waits_for, begin, self._expect_deployed, at_once)

    def destroy(self, stacks: Mapping[str, Stack], *, at_once: int = 1) -> None:
        """Destroy stacks, each after those that depend on it; raises CdkFailedError as ``deploy``."""
        waits_for: dict[str, set[str]] = {
            name: {other.name for other in stacks.values() if name in other.dependencies} for name in stacks
        }
        self._each(stacks, waits_for, self._begin_destroy, self._expect_destroyed, at_once)

    def _each(
        self,
        stacks: Mapping[str, Stack],
        waits_for: Mapping[str, set[str]],
        begin: Callable[[Stack], bool],
        expect: Callable[[Stack], None],
        at_once: int,
    ) -> None:
        """Process stacks in their order; after a failure nothing new starts, and running work is awaited."""
        pending, done = dict(stacks), set[str]()
        running: dict[str, Stack] = {}
        failed: list[CdkFailedError] = []
        pause = PAUSE_SECONDS
        while running or (pending and not failed):
            for name in [] if failed else [name for name in pending if waits_for[name] <= done]:
                if len(running) < at_once:
                    stack = pending.pop(name)
                    try:
                        if begin(stack):
                            running[name] = stack
                        else:
                            done.add(name)
                    except (CdkFailedError, ClientError) as error:
                        failed.append(_failure(stack, error))
                        break
            for name in [name for name in running if not self._is_under_way(running[name])]:
                stack = running.pop(name)
                try:
                    expect(stack)
                    done.add(name)
                except CdkFailedError as error:
                    failed.append(error)
            time.sleep(pause if running else 0)
            pause = min(pause * 1.2, LONGEST_PAUSE_SECONDS)
        if failed:
            raise failed[0]

    def _begin(self, stack: Stack, parameters: Mapping[str, str]) -> bool:
        """Execute a change set; False where there is nothing to change.

        What the CLI does one after the other (toolkit-lib, deploy-stack.ts of 2.1148.1): a creation that failed is
        deleted; a change set is made; termination protection is set to what the manifest says; then it is executed.
        """
        cloudformation = self._aws.cloudformation
        self._publish(Path(stack.template).parent)
        before = self._described(stack.name)
        if before is not None and before["StackStatus"] in CREATION_FAILED:
            cloudformation.delete_stack(StackName=before["StackId"])
            self.wait(before["StackId"])
            left = self._described(before["StackId"])
            if left is not None and left["StackStatus"] != "DELETE_COMPLETE":
                raise _failed(stack, f"the stack could not be deleted before it is created again: {_told(left)}")
            before = None
        is_new = before is None or before["StackStatus"] == "REVIEW_IN_PROGRESS"
        change_set = {"StackName": stack.name, "ChangeSetName": CHANGE_SET}
        execution = str(uuid.uuid4())
        if before is not None:
            cloudformation.delete_change_set(**change_set)
        given = [{"ParameterKey": k, "ParameterValue": v} for k, v in parameters.items() if k in stack.parameters]
        made = cloudformation.create_change_set(
            **change_set,
            ChangeSetType="CREATE" if is_new else "UPDATE",
            TemplateURL=self._publish_template(stack),
            Capabilities=["CAPABILITY_NAMED_IAM"],
            Parameters=given,
            Tags=[{"Key": key, "Value": value} for key, value in stack.tags],
            Description=f"CDK Changeset for execution {execution}",
            ClientToken=f"create{execution}",
            RoleARN=stack.role_arn,
        )
        self._ids[stack.name] = made["StackId"]
        described = cloudformation.describe_change_set(**change_set)
        if bool((before or {}).get("EnableTerminationProtection")) != stack.is_protected:
            cloudformation.update_termination_protection(
                StackName=stack.name, EnableTerminationProtection=stack.is_protected
            )
        if described["Status"] == "FAILED":
            assert described["StatusReason"] == NO_CHANGES
            cloudformation.delete_change_set(**change_set)
            return False
        if before is not None and before["StackStatus"] in ("CREATE_FAILED", "UPDATE_FAILED"):
            # the CLI asks whether to roll back first, and nobody answers in a pipeline, nor with --concurrency
            raise _failed(stack, f"Stack is in a paused fail state ({before['StackStatus']})")
        pages = cloudformation.get_paginator("describe_change_set").paginate(**change_set)
        self.changes[stack.name] = sorted(_shown(each) for page in pages for each in page["Changes"])
        cloudformation.execute_change_set(**change_set, ClientRequestToken=f"exec{execution}")
        return True

    def _expect_deployed(self, stack: Stack) -> None:
        found = self._described(stack.name)
        if found is None or found["StackStatus"] not in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
            raise _failed(stack, f"the stack failed to deploy: {_told(found)}")

    def _begin_destroy(self, stack: Stack) -> bool:
        found = self._described(stack.name)
        if found is not None:
            self._ids[stack.name] = found["StackId"]
            self._aws.cloudformation.delete_stack(StackName=found["StackId"])
        return found is not None

    def _expect_destroyed(self, stack: Stack) -> None:
        found = self._described(stack.name)
        if found is not None:
            raise _failed(stack, f"the stack could not be destroyed: {_told(found)}")

    def wait(self, name_or_id: str) -> None:
        """Wait until no operation runs on a stack."""
        while (self._described(name_or_id) or {"StackStatus": ""})["StackStatus"].endswith("_IN_PROGRESS"):
            time.sleep(PAUSE_SECONDS)

    def _is_under_way(self, stack: Stack) -> bool:
        # by its id, by which a stack is told when it is gone, too
        found = self._described(self._ids[stack.name])
        return found is not None and str(found["StackStatus"]).endswith("_IN_PROGRESS")

    def _described(self, name_or_id: str) -> dict[str, Any] | None:
        try:
            stacks = self._aws.cloudformation.describe_stacks(StackName=name_or_id)["Stacks"]
        except ClientError as error:
            if "does not exist" in str(error):
                return None
            raise
        found: dict[str, Any] = stacks[0]
        return found

    def _publish(self, folder: Path) -> None:
        s3 = self._aws.client("s3")
        for manifest in sorted(folder.glob("*.assets.json")):
            for asset in json.loads(manifest.read_text(encoding="utf-8"))["files"].values():
                source = (folder / asset["source"]["path"]).resolve()
                for place in asset["destinations"].values():
                    bucket, key = place["bucketName"], place["objectKey"]
                    # a stack's template is published with the stack
                    if key in self._published or key.endswith(".json"):
                        continue
                    self._bootstrap(bucket)
                    self._published.add(key)
                    is_file = asset["source"]["packaging"] == "file"
                    s3.put_object(Bucket=bucket, Key=key, Body=source.read_bytes() if is_file else _zipped(source))

    def _publish_template(self, stack: Stack) -> str:
        """Upload a template as it is now, also one that a test has changed, and return its address."""
        bucket, _, key = stack.template_url.removeprefix("s3://").partition("/")
        self._bootstrap(bucket)
        self._aws.client("s3").put_object(Bucket=bucket, Key=key, Body=Path(stack.template).read_bytes())
        return f"https://s3.{self._aws.there.region}.amazonaws.com/{bucket}/{key}"

    def _bootstrap(self, bucket: str) -> None:
        """Make the bucket of assets, once; the version of the bootstrap stack is the account file's."""
        if bucket in self._published:
            return
        self._published.add(bucket)
        s3, region = self._aws.client("s3"), self._aws.there.region
        elsewhere = {"CreateBucketConfiguration": {"LocationConstraint": region}} if region != "us-east-1" else {}
        s3.create_bucket(Bucket=bucket, **elsewhere)


def _selected(stacks: Mapping[str, Stack], arguments: Sequence[str]) -> dict[str, Stack]:
    """Return the stacks that a deployment names, with those that they depend on unless it is exclusive; all without."""
    given = zip(arguments, ("", *arguments), strict=False)
    patterns = [each for each, before in given if "/" in each and before not in ("--app", "--parameters")]
    wanted = {name for name, stack in stacks.items() if any(matches(stack.path, each) for each in patterns)}
    for name in reversed(list(stacks) if "--exclusively" not in arguments else []):
        wanted |= set(stacks[name].dependencies) if name in wanted else set()
    return {name: stack for name, stack in stacks.items() if name in wanted or not patterns}


def _failed(stack: Stack, said: str) -> CdkFailedError:
    return CdkFailedError(f"deploy {stack.name}", 1, f"{stack.name}: {said}")


def _failure(stack: Stack, error: CdkFailedError | ClientError) -> CdkFailedError:
    return error if isinstance(error, CdkFailedError) else _failed(stack, str(error))


def _told(stack: Mapping[str, Any] | None) -> str:
    """Return a stack's status in the CLI's words."""
    if stack is None:
        return "it is gone"
    reason = stack.get("StackStatusReason")
    return f"{stack['StackStatus']} ({reason})" if reason else str(stack["StackStatus"])


def read_stacks(assembly: Path) -> dict[str, Stack]:
    """Read the stacks of an assembly, each after those that it depends on."""
    found: dict[str, Stack] = {}
    for manifest in sorted(assembly.rglob("manifest.json")):
        artifacts = json.loads(manifest.read_text(encoding="utf-8"))["artifacts"]
        stacks = {key: each for key, each in artifacts.items() if each["type"] == "aws:cloudformation:stack"}
        # the manifest leaves out a stack's name that is the artifact's own
        names = {key: each["properties"].get("stackName", key) for key, each in stacks.items()}
        for key in _ordered(stacks):
            file = manifest.parent / stacks[key]["properties"]["templateFile"]
            found[names[key]] = Stack(
                name=names[key],
                path=stacks[key]["displayName"],
                template=str(file),
                template_url=stacks[key]["properties"]["stackTemplateAssetObjectUrl"],
                dependencies=tuple(names[each] for each in stacks[key].get("dependencies", []) if each in stacks),
                parameters=tuple(json.loads(file.read_text(encoding="utf-8")).get("Parameters", {})),
                tags=tuple(sorted(stacks[key]["properties"].get("tags", {}).items())),
                is_protected=bool(stacks[key]["properties"].get("terminationProtection")),
                role_arn=stacks[key]["properties"]["cloudFormationExecutionRoleArn"].replace(
                    "${AWS::Partition}", "aws"
                ),
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
    """Return what happens to a resource as text: ``Modify AWS::SageMaker::Cluster``, also if it is replaced."""
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
