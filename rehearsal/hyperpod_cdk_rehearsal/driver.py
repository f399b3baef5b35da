"""The rehearsal: bootstrap, deploy, deploy again, update, destroy - with the real CDK CLI against the embedded AWS."""

from __future__ import annotations

import copy
import json
import re
import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console

from hyperpod_cdk.bootstrap_policy import statements, unknown_types
from hyperpod_cdk.catalog.prices import Prices, of_project, shipped
from hyperpod_cdk.config import Environment, LoadedEnvironment, load_environment
from hyperpod_cdk.file_reading import resolved
from hyperpod_cdk.packaged_node import cdk_command
from hyperpod_cdk.scratch import scratch_folder
from hyperpod_cdk.templates.assembly import read_assembly
from hyperpod_cdk.transitions import cdk
from hyperpod_cdk_rehearsal.account_files import load_document
from hyperpod_cdk_rehearsal.cdk_cli import CdkCli, CdkFailedError
from hyperpod_cdk_rehearsal.execution_role import needs, refused
from hyperpod_cdk_rehearsal.inventory import Inventory, MissingNodes, read_inventory
from hyperpod_cdk_rehearsal.left_over import Snapshot, holders, kept_and_unexpected, snapshot
from hyperpod_cdk_rehearsal.process import EmbeddedAws
from hyperpod_cdk_rehearsal.progress import StackProgress
from hyperpod_cdk_rehearsal.report import Report, Step

PLACEHOLDER_PARAMETER = "HyperPodChart"
AT_ONCE = 3
SIDE_BY_SIDE = ("--concurrency", str(AT_ONCE))
"""Arguments with which the README and the pipelines deploy and destroy."""

_FRAME = re.compile(r"\s+at (async )?\S+ \(?.*:\d+:\d+\)?$")
FAILED = ("_FAILED", "ROLLBACK_COMPLETE")
NODE_LOOKS = 20
NODE_PAUSE_SECONDS = 0.5
"""How often and at which interval nodes are read; they appear a second or two after their cluster."""


class RehearsalError(RuntimeError):
    """A step failed; the message is from CloudFormation."""


def rehearse(
    environment_file: Path,
    *,
    project: Path,
    account_file: Path | None = None,
    keep: bool = False,
    console: Console | None = None,
    wait: Callable[[str], object] = input,
) -> Report:
    """Rehearse one environment file and return the report; ``report.passed`` is whether all steps passed.

    ``account_file`` describes the account (quotas, training plans). Default: a small account with the plans in the
    environment. With ``keep``, the deployment keeps running for other AWS clients until ``wait`` returns.
    Raises EnvironmentFileError, AccountFileError or PricesError if the environment file, the account file or the
    project's prices are refused, and ToolMissingError without Node.js or the CDK CLI.
    """
    loaded = load_environment(environment_file)
    console = console or Console(quiet=True)
    environment = loaded.environment
    report = Report(
        environment=environment.name,
        file=loaded.file,
        account=environment.account,
        region=environment.region,
    )
    with scratch_folder(prefix="hyperpod-rehearsal-") as scratch:
        account = scratch / "account.yaml"
        account.write_text(yaml.safe_dump(load_document(account_file, environment_file)), encoding="utf-8")
        aws = EmbeddedAws(
            account=environment.account,
            region=environment.region,
            log=scratch / "embedded-aws.log",
            account_file=account,
        )
        # otherwise the first step would seem to hang while the CLI is installed
        cdk_command(project, say=partial(console.print, highlight=False, soft_wrap=True))
        with aws:
            run = _Rehearsal(
                loaded=loaded,
                aws=aws,
                cdk=CdkCli(project=project, scratch=scratch, environment=aws.environment()),
                scratch=scratch,
                console=console,
                report=report,
                prices=of_project(project),
            )
            try:
                run.all_steps(keep=keep, wait=wait)
            except (RehearsalError, CdkFailedError) as error:
                report.problem = run.explain(error)
            run.read_state()
    return report


@dataclass(kw_only=True)
class _Rehearsal:
    loaded: LoadedEnvironment
    aws: EmbeddedAws
    cdk: CdkCli
    scratch: Path
    console: Console
    report: Report
    stacks: list[str] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    before: Snapshot = field(default_factory=dict)
    prices: Prices = field(default_factory=shipped)

    @property
    def environment(self) -> Environment:
        return self.loaded.environment

    def all_steps(self, *, keep: bool, wait: Callable[[str], object]) -> None:
        file = resolved(Path(self.loaded.file))
        assembly = self.scratch / "assembly"
        with self._step("synthesize") as step:
            self.cdk.synth(file, assembly)
            self.stacks = _stack_order(assembly)
            self.report.placeholder_chart = bool(_with_parameter(assembly))
            self.sizes.update({name: len(template["Resources"]) for name, template in _templates(assembly).items()})
            step.result = f"{len(self.stacks)} stacks, {sum(self.sizes.values())} resources"
        with self._step("bootstrap") as step:
            target = f"aws://{self.environment.account}/{self.environment.region}"
            self.cdk.run(["bootstrap", target, "--app", str(assembly)])
            self.before = snapshot(self.aws)
            step.result = target
        with self._step("deploy") as step:
            self._deploy(assembly)
            step.result = "every stack CREATE_COMPLETE"
        with self._step("read back") as step:
            self.report.inventory = self._settled_inventory()
            self.report.kubernetes = self.aws.state()["kubernetes"]
            self.report.missing_nodes = self._missing_nodes()
            self._expect_counts(self.environment)
            step.result = f"{self.report.inventory.running_nodes} nodes Running"
            if self.report.inventory.missing_nodes:
                step.result += f", missing: {', '.join(self.report.inventory.missing_nodes)}"
        with self._step("deploy again") as step:
            self._expect_no_changes(assembly)
            step.result = "no changes"
        with self._step("update") as step:
            step.result = self._update(file)
        if keep:
            self._hold(wait)
        with self._step("destroy") as step:
            step.result = self._destroy(file)
        with self._step("judge rights") as step:
            step.result = self._judge(assembly)
        # last, so that one rehearsal shows this and what the other steps find
        self._expect_nodes()

    def _judge(self, assembly: Path) -> str:
        """Check CloudFormation's calls against the policy of 'bootstrap-policy'; returns a line with the result."""
        found = read_assembly(assembly, self.environment.name)
        written = [each.document() for each in statements(found, self.environment)]
        unknown = unknown_types(found)
        # the bootstrap stack is created with the permissions of the user
        steps = [step for step in self.aws.steps() if step["stack"] in self.stacks and step["type"] not in unknown]
        wanted = needs(steps, self.environment, parameters=_parameters(assembly))
        lacking = refused(written, wanted)
        self.report.refused = [str(need) for need in lacking]
        judged = f"{len(wanted)} calls of CloudFormation compared with the policy of 'bootstrap-policy'"
        judged += f", except those for {', '.join(unknown)}, whose actions are unknown" if unknown else ""
        if not lacking:
            return f"{judged}{';' if unknown else ','} all allowed"
        return f"{judged}, {len(lacking)} refused: {lacking[0]}" + (" and others" if len(lacking) > 1 else "")

    def explain(self, error: Exception) -> str:
        """Return the stack events that made a step fail, in CloudFormation's words, or the last output of the CLI."""
        lines = [
            f"{event['Timestamp']:%H:%M:%S} | {event['ResourceStatus']:<20} | {event['ResourceType']} | "
            f"{event['StackName']}/{event['LogicalResourceId']}\n    {event['ResourceStatusReason']}"
            for event in self._failed_events()
        ]
        if lines:
            return "\n".join([*lines, *self._what_holds_the_network()])
        output = error.output if isinstance(error, CdkFailedError) else ""
        # the position in the CLI's own JavaScript is not useful
        said = [line for line in output.splitlines() if not _FRAME.match(line)]
        return "\n".join([str(error), *said[-25:]])

    def _what_holds_the_network(self) -> list[str]:
        """Return the resources in a VPC with a part that could not be deleted, regardless of who created them."""
        refused = {
            event["ResourceType"]
            for event in self._failed_events()
            if event["ResourceStatus"] == "DELETE_FAILED" and event["ResourceType"].startswith("AWS::EC2::")
        }
        vpcs = sorted(snapshot(self.aws)["VPC"] - self.before.get("VPC", frozenset())) if refused else []
        return [f"in {vpc}: {each}" for vpc in vpcs for each in holders(self.aws, vpc)]

    def read_state(self) -> None:
        """Record in the report what was run, played and only recorded, even if steps failed."""
        state = self.aws.state()
        self.report.executions = state["executions"]
        self.report.recorded = state["recorded"]

    @contextmanager
    def _step(self, name: str) -> Iterator[_Result]:
        result = _Result()
        started = time.monotonic()
        try:
            with StackProgress(self.aws, self.console, name, self.sizes):
                yield result
        except Exception:
            self._finish(name, "failed", started, mark="[red]x[/red]")
            raise
        self._finish(name, result.result, started, mark="[green]ok[/green]")

    def _finish(self, name: str, result: str, started: float, *, mark: str) -> None:
        seconds = time.monotonic() - started
        self.report.steps.append(Step(name=name, result=result, seconds=round(seconds, 1)))
        self.console.print(f"{mark:>2} {name:<13} {seconds:5.1f} s  {result}", highlight=False)

    def _deploy(self, assembly: Path) -> str:
        return self.cdk.run(deployment(self.environment.name, assembly))

    def _expect_no_changes(self, assembly: Path) -> None:
        before = {stack: self._last_change(stack) for stack in self.stacks}
        self._deploy(assembly)
        changed = [stack for stack in self.stacks if self._last_change(stack) != before[stack]]
        if changed:
            raise RehearsalError(f"a second deployment of the same assembly changed {', '.join(changed)}")

    def _last_change(self, stack: str) -> object:
        described = self.aws.cloudformation.describe_stacks(StackName=stack)["Stacks"][0]
        return described.get("LastUpdatedTime", described["CreationTime"])

    def _update(self, file: Path) -> str:
        group, before = _group_to_scale(self.environment)
        changed = self._edited(file, "update", lambda data: _scale(data, group, before + 1))
        assembly = self.scratch / "update"
        self.cdk.synth(changed, assembly)
        self._deploy(assembly)
        after = self._settled_inventory()
        self._expect_counts(load_environment(changed).environment, after)
        return f"group {group}: {before} -> {before + 1} nodes, in place"

    def _destroy(self, file: Path) -> str:
        """Do only what the README describes: disable the protection, and destroy."""
        unprotected = self._edited(file, "destroy", lambda data: data.update(deletion_protection=False))
        assembly = self.scratch / "destroy"
        self.cdk.synth(unprotected, assembly)
        self._deploy(assembly)
        self.cdk.run(
            ["destroy", "--app", str(assembly), "--force", _all_of(self.environment.name, assembly), *SIDE_BY_SIDE]
        )
        self.report.retained = self._retained()
        left = [s for s in self.stacks if self._exists(s)]
        if left:
            raise RehearsalError(f"destroy left the stacks {', '.join(left)}")
        self.report.kept, unexpected = kept_and_unexpected(
            self.aws,
            self.before,
            region=self.environment.region,
            prices=self.prices,
            asked={id_ for ids in self.report.retained.values() for id_ in ids if self.environment.network.retain},
            retained=self.report.retained,
        )
        if unexpected:
            raise RehearsalError(f"destroy left resources behind that are in no stack: {', '.join(unexpected)}")
        self._expect_the_owners_things()
        return f"{len(self.stacks)} stacks deleted, {len(self.report.kept)} resources retained"

    def _inventory(self) -> Inventory:
        network, eks = self.environment.network.existing, self.environment.eks.existing
        return read_inventory(
            self.aws,
            self.stacks,
            existing_vpc_id=network.vpc_id if network else None,
            existing_eks_cluster=eks.cluster_name if eks else None,
        )

    def _expect_nodes(self) -> None:
        failures = [str(each) for each in self.report.missing_nodes if each.is_failure]
        if failures:
            raise RehearsalError("\n".join(failures))

    def _missing_nodes(self) -> list[MissingNodes]:
        """Return which nodes are not there, and why, as the embedded AWS knows it."""
        rows = [row for row in self.aws.state()["missing_nodes"] if row["cluster"] == self.report.inventory.cluster]
        return [MissingNodes(**{name: value for name, value in row.items() if name != "cluster"}) for row in rows]

    def _settled_inventory(self) -> Inventory:
        """Read the inventory when the nodes exist, which is after the cluster; some may never be created."""
        found = self._inventory()
        for _ in range(NODE_LOOKS):
            if not found.missing_nodes:
                break
            time.sleep(NODE_PAUSE_SECONDS)
            found = self._inventory()
        return found

    def _expect_the_owners_things(self) -> None:
        """Check that existing resources that the environment used remain, and no longer refer to it."""
        network, eks = self.environment.network.existing, self.environment.eks.existing
        if network is not None:
            wanted = {*network.node_subnet_ids.values(), *network.control_plane_subnet_ids}
            here = [{"Name": "vpc-id", "Values": [network.vpc_id]}]
            found = self.aws.client("ec2").describe_subnets(Filters=here)["Subnets"]
            gone = sorted(wanted - {subnet["SubnetId"] for subnet in found})
            if gone:
                raise RehearsalError(f"destroy also deleted the existing subnets {', '.join(gone)}")
        if eks is not None:
            entries = self.aws.client("eks").list_access_entries(clusterName=eks.cluster_name)["accessEntries"]
            left = [arn for arn in entries if arn != eks.kubectl_role_arn]
            if left:
                raise RehearsalError(f"destroy left access entries on {eks.cluster_name}: {', '.join(left)}")

    def _retained(self) -> dict[str, list[str]]:
        """Return the resources that stacks retained on deletion, by type."""
        kept: dict[str, list[str]] = {}
        for stack in self._deleted_stacks():
            for event in self._events(stack):
                if event["ResourceStatus"] == "DELETE_SKIPPED":
                    kept.setdefault(event["ResourceType"], []).append(event.get("PhysicalResourceId", ""))
        return dict(sorted(kept.items()))

    def _deleted_stacks(self) -> list[str]:
        listed = self.aws.cloudformation.list_stacks(StackStatusFilter=["DELETE_COMPLETE"])
        return [stack.get("StackId", "") for stack in listed["StackSummaries"]]

    def _exists(self, stack: str) -> bool:
        listed = self.aws.cloudformation.list_stacks()["StackSummaries"]
        return any(s["StackName"] == stack and s["StackStatus"] != "DELETE_COMPLETE" for s in listed)

    def _expect_counts(self, environment: Environment, found: Any = None) -> None:
        found = found or self.report.inventory
        wanted = {group.name: group.count for group in environment.hyperpod.all_groups}
        # their number depends on the account: a continuous cluster is complete without its nodes
        counted = {group.name: group.target for group in found.groups}
        if wanted != counted:
            raise RehearsalError(f"DescribeCluster returns {counted} nodes per group, but the file requests {wanted}")

    def _edited(self, file: Path, name: str, edit: Callable[[dict[str, Any]], None]) -> Path:
        data = copy.deepcopy(yaml.safe_load(file.read_text(encoding="utf-8")))
        edit(data)
        target = self.scratch / f"{name}.yaml"
        # JSON is YAML with all text in quotes: without them, 012345678901 is text for PyYAML and a number for editors
        target.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")
        return target

    def _failed_events(self) -> list[dict[str, Any]]:
        failed = [
            event
            for stack in [*self.stacks, "CDKToolkit"]
            for event in self._events(stack)
            if event["ResourceStatus"].endswith("_FAILED") and event.get("ResourceStatusReason")
        ]
        told = [e for e in failed if "cancelled" not in e["ResourceStatusReason"]]
        return sorted(told or failed, key=lambda event: event["Timestamp"])

    def _events(self, stack: str) -> list[dict[str, Any]]:
        client = self.aws.cloudformation
        try:
            pages = client.get_paginator("describe_stack_events").paginate(StackName=stack)
            return [dict(event) for page in pages for event in page["StackEvents"]]
        except client.exceptions.ClientError:
            return []

    def _hold(self, wait: Callable[[str], object]) -> None:
        group, count = _group_to_scale(self.environment)
        self.console.print(
            f"\nthe deployment stays up, with {count + 1} nodes in group {group}: the rehearsal scaled it, the file has"
            f" {count}\npoint any AWS client at it:",
            highlight=False,
        )
        for name, value in self.aws.environment().items():
            self.console.print(f"  export {name}={shlex.quote(value)}", highlight=False)
        # the end of the input (Ctrl-D, a closed pipe) counts as Enter: the deployment is still destroyed
        try:
            wait("press Enter to destroy it ")
        except EOFError:
            self.console.print()


@dataclass
class _Result:
    result: str = ""


def deployment(environment: str, assembly: Path) -> list[str]:
    """Return the arguments with which the CDK CLI deploys an assembly as in the README, without prompts."""
    chosen = [
        option
        for stack in _with_parameter(assembly)
        for option in ("--parameters", f"{stack}:{PLACEHOLDER_PARAMETER}=rehearsal")
    ]
    return [*cdk.deployment(assembly, [_all_of(environment, assembly)], concurrency=AT_ONCE), *chosen]


def _all_of(environment: str, assembly: Path) -> str:
    """Return the patterns for all stacks of an environment, including those inside constructs."""
    return cdk.selection(read_assembly(assembly, environment))


def _stack_order(assembly: Path) -> list[str]:
    """Return the stack names of an assembly, each after the stacks it depends on."""
    artifacts = _stacks(assembly)
    order: list[str] = []

    def visit(artifact: str) -> None:
        for dependency in artifacts[artifact].get("dependencies", []):
            if dependency in artifacts:
                visit(dependency)
        name = artifacts[artifact]["properties"].get("stackName", artifact)
        if name not in order:
            order.append(name)

    for artifact in artifacts:
        visit(artifact)
    return order


def _stacks(assembly: Path) -> dict[str, dict[str, Any]]:
    stacks: dict[str, dict[str, Any]] = {}
    for manifest in sorted(assembly.rglob("manifest.json")):
        content = json.loads(manifest.read_text(encoding="utf-8"))
        for name, artifact in content.get("artifacts", {}).items():
            if artifact["type"] == "aws:cloudformation:stack":
                stacks[name] = {**artifact, "folder": str(manifest.parent)}
    return stacks


def _templates(assembly: Path) -> dict[str, dict[str, Any]]:
    return {
        artifact["properties"].get("stackName", name): json.loads(
            Path(artifact["folder"], artifact["properties"]["templateFile"]).read_text(encoding="utf-8")
        )
        for name, artifact in _stacks(assembly).items()
    }


def _parameters(assembly: Path) -> list[str]:
    """Return the names of the parameters that the templates read from Parameter Store."""
    parameters = [
        each for template in _templates(assembly).values() for each in template.get("Parameters", {}).values()
    ]
    return sorted({each["Default"] for each in parameters if each["Type"].startswith("AWS::SSM::Parameter::Value<")})


def _with_parameter(assembly: Path) -> list[str]:
    """Return the stacks with a parameter that confirms the placeholder chart."""
    return [
        name
        for name, template in _templates(assembly).items()
        if PLACEHOLDER_PARAMETER in template.get("Parameters", {})
    ]


def _group_to_scale(environment: Environment) -> tuple[str, int]:
    """Return the group for the rehearsed update: preferably one without a plan, because a plan limits the nodes."""
    groups = environment.hyperpod.all_groups
    group = next((g for g in groups if g.training_plan_arn is None), groups[0])
    return group.name, group.count


def _scale(data: dict[str, Any], name: str, count: int) -> None:
    groups = (*data["hyperpod"].get("instance_groups", ()), *data["hyperpod"].get("restricted_instance_groups", ()))
    for group in groups:
        if group["name"] == name:
            group["count"] = count
