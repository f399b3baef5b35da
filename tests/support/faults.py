"""Lets every resource of an environment fail at every point, and counts what deploying again alone makes of it.

Nothing is done between a failure and the next deployment: it is the deployment that takes the next failure. A creation
that failed has recovered once a later deployment created the very resource that had failed; what is left at the end is
shown by a deployment in which nothing fails. Resources come in the order in which they wait for each other, so that
the next deployment reaches what failed before.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml

from hyperpod_cdk.config import load_environment
from hyperpod_cdk_rehearsal.account_files import satisfying
from hyperpod_cdk_rehearsal.cdk_cli import CdkFailedError
from hyperpod_cdk_rehearsal.driver import PLACEHOLDER_PARAMETER
from hyperpod_cdk_rehearsal.embedded.cloudformation import graph
from hyperpod_cdk_rehearsal.embedded.cloudformation.template import Template
from tests.support.embedded import embedded
from tests.support.in_process_cdk import Aws, InProcessCdk, Stack, read_stacks

AT_ONCE = 3
"""The number of stacks that are deployed in parallel, as in the README."""
CREATION, UPDATE, ROLLBACK, DELETION = "creation", "update", "rollback of an update", "deletion"
KINDS = {
    "before_create": CREATION,
    "after_create": CREATION,
    "before_update": UPDATE,
    "after_update": UPDATE,
    "rollback": ROLLBACK,
    "delete": DELETION,
}
BEGINNINGS = ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS")
UNDOING = ("ROLLBACK_IN_PROGRESS", "UPDATE_ROLLBACK_IN_PROGRESS")
TAGS = {"hyperpod-cdk-faults": "update"}
"""The change of the update: a tag affects nearly every resource."""


@dataclass(frozen=True)
class Fault:
    """One resource that fails once, at one point (``faults.When`` of the embedded CloudFormation)."""

    stack: str
    logical_id: str
    resource_type: str
    when: str

    @property
    def kind(self) -> str:
        """What fails: a creation, an update, its rollback, a deletion."""
        return KINDS[self.when]


@dataclass
class Outcome:
    """The outcome of one fault.

    ``status`` is the stack's after it, ``recovered`` whether doing the same again was enough, ``problem`` what went
    wrong where it was not.
    """

    fault: Fault
    status: str = ""
    recovered: bool = False
    problem: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the outcome as data for JSON."""
        return {**asdict(self.fault), "kind": self.fault.kind, **{k: v for k, v in vars(self).items() if k != "fault"}}


def planned(before: Path, after: Path) -> list[Fault]:
    """Return every fault but those of deletions: each creation, and each resource that the update touches."""
    found: list[Fault] = []
    updated = read_stacks(after)
    for stack in read_stacks(before).values():
        template = Template.parse(Path(stack.template).read_text(encoding="utf-8"))
        new = Template.parse(Path(updated[stack.name].template).read_text(encoding="utf-8"))
        order = [name for name in _ordered(template) if template.resources[name].resource_type != "AWS::CDK::Metadata"]
        touched = [name for name in order if template.resources[name].properties != new.resources[name].properties]
        for names, points in ((order, ("before_create", "after_create")), (touched, ("before_update", "after_update"))):
            found += [
                Fault(stack.name, name, template.resources[name].resource_type, when)
                for name in names
                for when in points
            ]
        found += [Fault(stack.name, name, template.resources[name].resource_type, "rollback") for name in touched]
    return found


def sampled(faults: Sequence[Fault], number: int, seed: int) -> list[Fault]:
    """Return some of the faults, of each kind at least one, in their order; the same ones for the same seed."""
    mixed = random.Random(seed).sample(range(len(faults)), len(faults))  # noqa: S311 - a sample, no secret
    firsts = {faults[index].kind: index for index in reversed(mixed)}
    chosen = set([*firsts.values(), *(index for index in mixed if index not in firsts.values())][:number])
    return [fault for index, fault in enumerate(faults) if index in chosen]


@dataclass
class Life:
    """One environment in a separate account, from its first deployment to its last deletion."""

    aws: Aws
    cdk: InProcessCdk
    stacks: dict[str, Stack]
    updated: dict[str, Stack]
    unprotected: dict[str, Stack]
    say: Callable[[str], None] = lambda _: None
    keep: Callable[[list[Outcome]], None] = lambda _: None
    outcomes: list[Outcome] = field(default_factory=list)

    def run(self, faults: Sequence[Fault]) -> list[Outcome]:
        """Run these faults, and let every deletion fail once; returns the outcomes."""
        for stack in self.stacks.values():
            mine = [fault for fault in faults if fault.stack == stack.name]
            self._chain(stack, [fault for fault in mine if fault.kind == CREATION], "ROLLBACK_COMPLETE")
        self._expect_protection(is_on=True)
        for stack in self.updated.values():
            mine = [fault for fault in faults if fault.stack == stack.name]
            self._chain(stack, [fault for fault in mine if fault.kind == UPDATE], "UPDATE_ROLLBACK_COMPLETE")
        for stack in self.stacks.values():
            # back to what was first deployed, and once more forward
            mine = [fault for fault in faults if fault.stack == stack.name and fault.kind == ROLLBACK]
            for fault in mine:
                self.outcomes.append(self._rollback(stack, fault))
                self._keep()
        self._expect_protection(is_on=True)
        self._deploy(self.unprotected.values())
        self._expect_protection(is_on=False)
        self._destroy()
        return self.outcomes

    def _chain(self, stack: Stack, faults: Sequence[Fault], expected: str) -> None:
        """Deploy one stack once for each fault, and once more without any."""
        waiting: list[Outcome] = []
        # nothing that costs by the hour may come to stand by a deployment that was taken back
        costly = self._costly()
        for fault in faults:
            outcome = Outcome(fault)
            self.outcomes.append(outcome)
            error = self._deploy([stack], outcome)
            if not outcome.status:
                # something else stood in the way: what failed before has not recovered
                self._blame(waiting, error or "the deployment went through without meeting the fault", stack)
                error = self._deploy([stack], outcome)
            left = self._costly() - costly
            if left:
                outcome.problem = f"left over: {', '.join(sorted(left))}"
            if outcome.status != expected:
                outcome.problem = f"the stack is {outcome.status or 'made'} after it: {error}"
            self._recover(waiting, stack)
            waiting.append(outcome)
            self._keep()
            self.say(f"{fault.stack} {fault.logical_id} {fault.when}: {outcome.status} {outcome.problem}")
        error = self._deploy([stack])
        if error:
            self._blame(waiting, error, stack)
            again = self._deploy([stack])
            unsolved = [f"{each.fault.logical_id} {each.fault.when}: {each.problem}" for each in waiting]
            assert not again, "\n".join([again, *unsolved])
        for outcome in waiting:
            outcome.recovered = not outcome.problem
        self._keep()

    def _keep(self) -> None:
        """Keep the finished outcomes: recovered ones, and those that did not recover."""
        self.keep([each for each in self.outcomes if each.recovered or each.problem])

    def _recover(self, waiting: list[Outcome], stack: Stack) -> None:
        """Count as recovered what failed before and succeeded this time."""
        done = self._last_well_done(stack)
        for outcome in [each for each in waiting if each.fault.logical_id in done]:
            outcome.recovered = not outcome.problem
            waiting.remove(outcome)

    def _blame(self, waiting: list[Outcome], error: str, stack: Stack) -> None:
        """Record why the last failure did not recover, and fix it so that the next one can run."""
        if not waiting:
            raise AssertionError(f"{stack.name}: {error}")
        waiting[-1].problem = f"deploying again failed: {error}"
        cloudformation = self.aws.cloudformation
        described = cloudformation.describe_stacks(StackName=stack.name)["Stacks"][0]
        if "ROLLBACK" in described["StackStatus"] and "UPDATE" not in described["StackStatus"]:
            cloudformation.update_termination_protection(StackName=stack.name, EnableTerminationProtection=False)

    def _rollback(self, stack: Stack, fault: Fault) -> Outcome:
        """Let the rollback of an update fail: CloudFormation takes no other deployment before it is continued."""
        outcome = Outcome(fault)
        updated = self.updated[stack.name]
        self._deploy([stack])
        pair = [
            {"stack": stack.name, "logical_id": fault.logical_id, "when": when} for when in ("after_update", "rollback")
        ]
        self._set(pair)
        error = self._deploy([updated], keep=True)
        outcome.status = self._status(stack)
        if outcome.status != "UPDATE_ROLLBACK_FAILED":
            outcome.problem = f"the stack is {outcome.status} after it: {error}"
            return outcome
        refused = self._deploy([updated]) or ""
        if "is in UPDATE_ROLLBACK_FAILED state and can not be updated." not in refused:
            outcome.problem = f"CloudFormation took a deployment, or refused it for another reason: {refused}"
        # cdk rollback
        self.aws.cloudformation.continue_update_rollback(StackName=stack.name)
        self.cdk.wait(stack.name)
        error = self._deploy([updated])
        outcome.problem = outcome.problem or error or ""
        outcome.recovered = not outcome.problem
        self.say(f"{fault.stack} {fault.logical_id} {fault.when}: {outcome.status} {outcome.problem}")
        return outcome

    def _destroy(self) -> None:
        """Destroy everything, each resource failing once on its own turn, until nothing is left."""
        faults = [
            Fault(stack.name, name, definition.resource_type, "delete")
            for stack in self.unprotected.values()
            for name, definition in Template.parse(Path(stack.template).read_text(encoding="utf-8")).resources.items()
        ]
        by_node = {(fault.stack, fault.logical_id): Outcome(fault) for fault in faults}
        self._set([{"stack": f.stack, "logical_id": f.logical_id, "when": f.when} for f in faults])
        last = ""
        while True:
            try:
                self.cdk.destroy(self.unprotected, at_once=AT_ONCE)
                break
            except CdkFailedError as failed:
                nodes = [(each["stack"], each["logical_id"]) for each in self._happened()]
                new = [by_node[node] for node in nodes if not by_node[node].status]
                if not new and failed.output == last:
                    # the same twice, with no other resource's turn in between, would be for ever
                    raise AssertionError(f"destroying again does not help: {failed.output}") from failed
                last = failed.output
                for outcome in new:
                    outcome.status = "DELETE_FAILED"
                    self.outcomes.append(outcome)
        for outcome in by_node.values():
            outcome.recovered = bool(outcome.status)

    def _deploy(self, stacks: Iterable[Stack], outcome: Outcome | None = None, *, keep: bool = False) -> str | None:
        """Deploy; gives the error, if there is one. The fault of an outcome is to happen; its status is noted."""
        wanted = {stack.name: stack for stack in stacks}
        if not keep:
            self._set([_asked(outcome.fault)] if outcome else [])
        try:
            self.cdk.deploy(wanted, {PLACEHOLDER_PARAMETER: "rehearsal"}, at_once=AT_ONCE)
            error = None
        except CdkFailedError as failed:
            error = failed.output
        if outcome is not None and self._happened():
            outcome.status = self._status(self.stacks[outcome.fault.stack])
        return error

    def _set(self, faults: Sequence[Mapping[str, Any]]) -> None:
        self.aws.there.address.control("faults", list(faults), timeout_s=60)

    def _happened(self) -> list[dict[str, Any]]:
        happened: Any = self.aws.there.address.control("faults", timeout_s=60)
        return [dict(each) for each in happened]

    def _costly(self) -> set[str]:
        """Return all existing resources of the types with the highest hourly cost."""
        client = self.aws.client
        gateways = client("ec2").describe_nat_gateways()["NatGateways"]
        return {
            *(
                f"HyperPod cluster {each['ClusterName']}"
                for each in client("sagemaker").list_clusters()["ClusterSummaries"]
            ),
            *(f"EKS cluster {name}" for name in client("eks").list_clusters()["clusters"]),
            *(f"file system {each['FileSystemId']}" for each in client("fsx").describe_file_systems()["FileSystems"]),
            *(f"NAT gateway {each['NatGatewayId']}" for each in gateways if each["State"] != "deleted"),
        }

    def _status(self, stack: Stack) -> str:
        return str(self.aws.cloudformation.describe_stacks(StackName=stack.name)["Stacks"][0]["StackStatus"])

    def _last_well_done(self, stack: Stack) -> set[str]:
        """Return the resources that the last deployment of a stack created or changed successfully."""
        pages = self.aws.cloudformation.get_paginator("describe_stack_events").paginate(StackName=stack.name)
        done: set[str] = set()
        for event in (event for page in pages for event in page["StackEvents"]):
            if event["ResourceStatus"] in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
                done.add(event["LogicalResourceId"])
            if event["LogicalResourceId"] == stack.name and event["ResourceStatus"] in BEGINNINGS:
                break
            if event["LogicalResourceId"] == stack.name and event["ResourceStatus"] in UNDOING:
                # from here back in time the events are those of the deployment, not of its rollback
                done.clear()
        return done

    def _expect_protection(self, *, is_on: bool) -> None:
        """Check that everything is protected as it should be, or that nothing is."""
        wanted = {stack.name: stack.is_protected for stack in (self.stacks if is_on else self.unprotected).values()}
        described = self.aws.cloudformation.describe_stacks()["Stacks"]
        found = {each["StackName"]: each["EnableTerminationProtection"] for each in described}
        assert {name: found[name] for name in wanted} == wanted
        eks = self.aws.client("eks")
        for name in eks.list_clusters()["clusters"]:
            if name.startswith(next(iter(wanted)).rpartition("-")[0]):
                assert eks.describe_cluster(name=name)["cluster"]["deletionProtection"] is is_on


def _ordered(template: Template) -> list[str]:
    """Return the resources, each after what it waits for."""
    return graph.ordered(graph.dependencies(template, list(template.resources)))


def _asked(fault: Fault) -> dict[str, str]:
    return {"stack": fault.stack, "logical_id": fault.logical_id, "when": fault.when}


@contextmanager
def living(
    file: Path, scratch: Path, say: Callable[[str], None] = lambda _: None
) -> Iterator[tuple[Life, list[Fault]]]:
    """Yield the life of an environment before its deployment, and its possible faults."""
    loaded = load_environment(file)
    environment = loaded.environment
    document = satisfying(environment)
    with embedded(document, region=environment.region, account=environment.account, is_hurried=True) as there:
        aws = Aws(there, scratch / "log")
        cdk = InProcessCdk(aws)
        data = yaml.safe_load(file.read_text(encoding="utf-8"))
        edits = {
            "first": data,
            "update": {**data, "tags": {**(data.get("tags") or {}), **TAGS}},
            "unprotected": {**data, "tags": {**(data.get("tags") or {}), **TAGS}, "deletion_protection": False},
        }
        for name, edited in edits.items():
            # beside the file itself, relative paths would be others: there are none in what ships
            path = scratch / f"{name}.yaml"
            path.write_text(yaml.safe_dump(edited, sort_keys=False), encoding="utf-8")
            cdk.synth(path, scratch / name)
        stacks = {name: read_stacks(scratch / name) for name in edits}
        life = Life(aws, cdk, stacks["first"], stacks["update"], stacks["unprotected"], say)
        yield life, planned(scratch / "first", scratch / "update")
