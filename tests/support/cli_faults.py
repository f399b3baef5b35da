"""Deployments by the unmodified CDK CLI that fail as users' do, and what the same command makes of them afterwards.

Every case begins in an account of its own, bootstrapped by the CLI. Between the two deployments happens only what the
case says: AWS grants a quota, nodes come, the file is corrected, or CloudFormation comes to rest.
"""

from __future__ import annotations

import copy
import re
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml

from hyperpod_cdk.config import load_environment
from hyperpod_cdk.packaged_node import cdk_command
from hyperpod_cdk_rehearsal.account_files import satisfying
from hyperpod_cdk_rehearsal.cdk_cli import CdkCli, CdkFailedError
from hyperpod_cdk_rehearsal.driver import deployment
from hyperpod_cdk_rehearsal.embedded.cloudformation.faults import When
from hyperpod_cdk_rehearsal.embedded.cloudformation.template import Template
from tests.support.assembly import ENVIRONMENTS, PROJECT
from tests.support.embedded import embedded
from tests.support.in_process_cdk import read_stacks

Document = dict[str, Any]

NAME = "two-teams"
"""A small environment: one system group, one group of a team, with everything that a cluster has."""
GPU_QUOTA = "ml.g5.12xlarge for cluster usage"
KNOWN = "v1.20.4-eksbuild.1"
TYPO = "v1.20.44-eksbuild.1"
"""A valid version that EKS does not list; an invalid one would be refused before."""
AT_REST_SECONDS = 300.0
PAUSE_SECONDS = 0.2
MOST_LINES = 12
NUMBERS = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""IDs of requests and stacks, which differ each time."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One way in which a first deployment fails.

    ``account`` are the sections of the account file that differ at first and are put right before the last deployment;
    ``typed`` edits the environment file of the first deployment, ``typed_second`` that of those which follow.
    ``faults`` are a stack, the type of one of its resources and where it fails. The first deployment is ended
    (``interrupted``), or gets another one beside it (``doubled``), while the stack of that name is under way.
    """

    key: str
    happens: str
    todo: str
    account: Callable[[Document], Document] = lambda _: {}
    typed: Callable[[Document], None] | None = None
    typed_second: Callable[[Document], None] | None = None
    faults: tuple[tuple[str, str, When], ...] = ()
    interrupted: str = ""
    doubled: str = ""


@dataclass(kw_only=True)
class Record:
    """The result of a case: the CLI's lines and the stacks' statuses after each deployment."""

    case: str
    happens: str
    todo: str
    environment: str
    seen: list[str] = field(default_factory=list)
    stacks: dict[str, str] = field(default_factory=dict)
    at_once: list[str] = field(default_factory=list)
    then: dict[str, str] = field(default_factory=dict)
    problem: str = ""

    @property
    def recovered(self) -> bool:
        """Whether the second deployment created everything."""
        return not self.problem

    def as_dict(self) -> dict[str, Any]:
        """Return the record as data for JSON."""
        return {**asdict(self), "recovered": self.recovered}


def _small_quota(document: Document) -> Document:
    quotas = copy.deepcopy(document["quotas"])
    quotas["sagemaker"][GPU_QUOTA] = 1
    return {"quotas": quotas}


def _nodes(**of_each: Any) -> Callable[[Document], Document]:
    return lambda _: {"nodes": {"system": of_each, "a10g": of_each}}


def _listed(document: Document) -> Document:
    kubernetes = dict(document.get("kubernetes") or {})
    return {"kubernetes": {**kubernetes, "addons": {**kubernetes.get("addons", {}), "vpc-cni": [KNOWN]}}}


def _mistyped(data: Document) -> None:
    data["eks"]["addon_versions"] = {"vpc-cni": TYPO}


def _tagged(data: Document) -> None:
    data["tags"] = {**(data.get("tags") or {}), "deployed-by": "the-second"}


CASES = {
    case.key: case
    for case in (
        Case(
            key="quota",
            happens="the quota gate refuses: the account may run one ml.g5.12xlarge, four are wanted",
            todo="ask for the quota (`hyperpod-cdk quotas request`), deploy again once it is granted",
            account=_small_quota,
        ),
        Case(
            key="addon",
            happens=f"EKS does not know the version of an add-on (`addon_versions: {{vpc-cni: {TYPO}}}`)",
            todo="correct the file, deploy again",
            account=_listed,
            typed=_mistyped,
        ),
        Case(
            key="chart",
            happens="Helm fails at the HyperPod chart",
            todo="deploy again",
            faults=(("foundation", "Custom::AWSCDK-EKS-HelmChart", "after_create"),),
        ),
        Case(
            key="cluster",
            happens="SageMaker cannot make the HyperPod cluster",
            todo="deploy again",
            faults=(("hyperpod", "AWS::SageMaker::Cluster", "after_create"),),
        ),
        Case(
            key="undeletable",
            happens="SageMaker cannot make the HyperPod cluster, and cannot delete it in the rollback",
            todo="deploy again",
            faults=(
                ("hyperpod", "AWS::SageMaker::Cluster", "after_create"),
                ("hyperpod", "AWS::SageMaker::Cluster", "delete"),
            ),
        ),
        Case(
            key="nodes",
            happens="no node runs: the lifecycle script fails on every instance; HyperPod tries again",
            todo="correct the script or wait for nodes, deploy again",
            account=_nodes(failing="all", failures="always"),
        ),
        Case(
            key="killed",
            happens="`cdk` is killed (`kill -9`) while the platform stack is made",
            todo="wait until no stack is `IN_PROGRESS`, deploy again; `(no changes)` before that is no success",
            account=_nodes(never="all"),
            interrupted="platform",
        ),
        Case(
            key="two",
            happens="two people deploy at once: the second, with another tag, while the first makes the platform stack",
            todo="wait until no stack is `IN_PROGRESS`, deploy again",
            account=_nodes(never="all"),
            doubled="platform",
            typed_second=_tagged,
        ),
    )
}


def run(case: Case, scratch: Path) -> Record:
    """Run a case and deploy again; later cases reuse the assemblies in ``scratch``."""
    return _Happening(case, scratch).run()


class _Happening:
    def __init__(self, case: Case, scratch: Path) -> None:
        self.case = case
        self.scratch = scratch
        self.file = PROJECT / ENVIRONMENTS[NAME]
        self.environment = load_environment(self.file).environment
        self.document = {**satisfying(self.environment), "bootstrap": None}
        self.record = Record(case=case.key, happens=case.happens, todo=case.todo, environment=NAME)

    def run(self) -> Record:
        region, account = self.environment.region, self.environment.account
        first = {**self.document, **self.case.account(self.document)}
        with embedded(first, region=region, account=account, is_hurried=True) as self.there:
            self.cloudformation = self.there.client("cloudformation")
            self.cdk = CdkCli(project=PROJECT, scratch=self.scratch, environment=self.there.environment())
            right = self._assembly("right", None)
            wrong = self._assembly(self.case.key, self.case.typed) if self.case.typed else right
            last = self._assembly(f"{self.case.key}-last", self.case.typed_second) if self.case.typed_second else right
            self.stacks = read_stacks(last)
            self.cdk.run(["bootstrap", f"aws://{account}/{region}", "--app", str(right)])
            self._fail(wrong, last)
            self.record.stacks = self._statuses()
            if not (self.case.interrupted or self.case.doubled):
                self._put_right()
            self._again(last)
        return self.record

    def _fail(self, assembly: Path, last: Path) -> None:
        """Run the first deployment of the case."""
        faults = [self._fault(*each) for each in self.case.faults]
        self.there.address.control("faults", faults, timeout_s=60)
        if self.case.interrupted or self.case.doubled:
            self._cross(assembly, last)
            return
        try:
            self.cdk.run(deployment(NAME, assembly))
            self.record.problem = "the first deployment did not fail"
        except CdkFailedError as failed:
            self.record.seen = _seen(failed.output)

    def _cross(self, assembly: Path, last: Path) -> None:
        """Begin a deployment, and end it, or begin another beside it, while a stack is under way."""
        under_way = f"{NAME}-{self.case.interrupted or self.case.doubled}"
        with (self.scratch / f"{self.case.key}.first").open("w+", encoding="utf-8") as output:
            first = subprocess.Popen(
                [*cdk_command(PROJECT), *deployment(NAME, assembly)],
                cwd=PROJECT,
                env=self.cdk._environment(aws=True),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            self._wait(lambda: self._statuses().get(under_way) == "CREATE_IN_PROGRESS")
            if self.case.interrupted:
                first.send_signal(signal.SIGKILL)
                first.wait()
                self.record.seen = [f"cdk ends by signal {-first.returncode}, {under_way} goes on in CloudFormation"]
            try:
                output_of_second = self.cdk.run(deployment(NAME, last))
                self.record.at_once = [line for line in output_of_second.splitlines() if "✅" in line]
            except CdkFailedError as failed:
                self.record.at_once = _seen(failed.output)
            self.record.at_once.append(f"({under_way} is {self._statuses().get(under_way)} then)")
            # the platform stack waits until there are nodes
            self._put_right()
            code = first.wait()
            if self.case.doubled:
                self.record.seen = [f"the first ends with exit code {code}"]
        self._wait(lambda: not any(each.endswith("_IN_PROGRESS") for each in self._statuses().values()))

    def _put_right(self) -> None:
        """Add what was missing to the account, and keep its resources."""
        missing = self.case.account(self.document)
        if missing:
            answer = self.there.address.control(
                "amendment", {name: self.document.get(name) or {} for name in missing}, timeout_s=60
            )
            assert not answer["problem"], answer

    def _again(self, assembly: Path) -> None:
        try:
            self.cdk.run(deployment(NAME, assembly))
        except CdkFailedError as failed:
            self.record.problem = "\n".join(_seen(failed.output)) or failed.output[-1000:]
        self.record.then = self._statuses()
        described = self.cloudformation.describe_stacks()["Stacks"]
        protected = {each["StackName"]: each["EnableTerminationProtection"] for each in described}
        wrong = [
            f"{name} is {self.record.then.get(name, 'missing')}, termination protection {protected.get(name)}"
            for name, stack in self.stacks.items()
            if self.record.then.get(name) not in {"CREATE_COMPLETE", "UPDATE_COMPLETE"}
            or protected[name] is not stack.is_protected
        ]
        self.record.problem = self.record.problem or "; ".join(wrong)

    def _assembly(self, name: str, edit: Callable[[Document], None] | None) -> Path:
        assembly = self.scratch / f"assembly-{name}"
        if not assembly.exists():
            data = yaml.safe_load(self.file.read_text(encoding="utf-8"))
            if edit:
                edit(data)
            path = self.scratch / f"{name}.yaml"
            path.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
            self.cdk.synth(path, assembly)
        return assembly

    def _fault(self, stack: str, resource_type: str, when: When) -> dict[str, str]:
        template = Template.parse(Path(self.stacks[f"{NAME}-{stack}"].template).read_text(encoding="utf-8"))
        (name,) = [name for name, each in template.resources.items() if each.resource_type == resource_type]
        return {"stack": f"{NAME}-{stack}", "logical_id": name, "when": when}

    def _statuses(self) -> dict[str, str]:
        described = self.cloudformation.describe_stacks()["Stacks"]
        return {
            each["StackName"]: each["StackStatus"]
            for each in sorted(described, key=lambda each: str(each["StackName"]))
            if each["StackName"] in self.stacks
        }

    def _wait(self, is_so: Callable[[], bool]) -> None:
        deadline = time.monotonic() + AT_REST_SECONDS
        while not is_so():
            assert time.monotonic() < deadline, f"{self.case.key}: {self._statuses()}"
            time.sleep(PAUSE_SECONDS)


def _seen(output: str) -> list[str]:
    """Return the last output of the CLI, from its first cross or the last line, without parts that differ per run."""
    _, cross, said = output.rstrip().partition("❌")
    if not cross:
        said = output.rstrip().rpartition("\n")[2]
    # where in the app a resource was made is the machine's own
    lines = f"{cross}{said.partition('Source Location:')[0]}".splitlines()
    return [NUMBERS.sub("...", line.rstrip()) for line in lines if line.strip()][:MOST_LINES]
