"""The lists of docs/lifecycle-of-an-environment.md, done by 'deploy' in the embedded AWS."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from hyperpod_cdk.checks.aws import LiveAws
from hyperpod_cdk.config import load_environment
from hyperpod_cdk.eks.dependencies import PLACEHOLDER_PARAMETER
from hyperpod_cdk.handlers.quota_gate.reading import Own
from hyperpod_cdk.review.model import Side
from hyperpod_cdk.review.sources import Source
from hyperpod_cdk.templates.assembly import read_assembly
from hyperpod_cdk.transitions.cdk import Cdk
from hyperpod_cdk.transitions.model import Plan
from hyperpod_cdk.transitions.run import Deployment
from hyperpod_cdk_rehearsal.cdk_cli import CdkCli
from hyperpod_cdk_rehearsal.embedded.satisfied import satisfying
from tests.support.assembly import PROJECT
from tests.support.embedded import Embedded, embedded
from tests.support.in_process_cdk import Aws, InProcessCdk

ACCOUNT, REGION = "111122223333", "us-east-1"
SMALL = """
name: small
account: "111122223333"
region: us-east-1
eks: {admin_role_arns: ["arn:aws:iam::111122223333:role/admin"], public_access_cidrs: [0.0.0.0/0]}
network:
  vpc_cidr: 10.192.0.0/16
  retain: true
  availability_zones: {use1-az5: {}, use1-az4: {}, use1-az6: {}}
encryption: {logs: create, node_volumes: create}
hyperpod:
  instance_groups:
    - {name: system, instance_type: ml.m5.2xlarge, count: 1, availability_zone_id: use1-az4}
    - {name: far, instance_type: ml.m5.2xlarge, count: 1, availability_zone_id: use1-az6}
storage:
  lustre:
    - name: near
      availability_zone_id: use1-az4
      capacity_gib: 1200
      claim: {name: near, namespaces: [default]}
    - name: far
      availability_zone_id: use1-az6
      capacity_gib: 1200
      claim: {name: far, namespaces: [default]}
"""

Edit = Callable[[dict[str, Any]], None]


def logs_out(data: dict[str, Any]) -> None:
    """Take the key of the log groups away."""
    del data["encryption"]["logs"]


def node_volumes_out(data: dict[str, Any]) -> None:
    """Take the key of nodes' volumes away: a group keeps its key, so each gets another name."""
    del data["encryption"]
    for group in data["hyperpod"]["instance_groups"]:
        group["name"] = f"{group['name']}-2"


def zone_out(data: dict[str, Any]) -> None:
    """Take a zone out with its group and its file system."""
    data["network"]["availability_zones"].pop("use1-az6")
    data["hyperpod"]["instance_groups"].pop()
    data["storage"]["lustre"].pop()


def last_file_system_out(data: dict[str, Any]) -> None:
    """Take the only file system out: its stack leaves the app."""
    del data["storage"]


@dataclass
class Person:
    """Says yes to everything, and keeps what was shown."""

    is_there: bool = True
    shown: list[Plan] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    def show(self, plan: Plan) -> None:
        self.shown.append(plan)

    def say(self, line: str) -> None:
        self.told.append(line)

    def agrees(self, question: str) -> bool:
        return bool(question)

    def types(self, question: str, word: str) -> bool:
        return word in question


@dataclass(frozen=True)
class WithPlaceholder:
    """Deploys the chart's placeholder, as a rehearsal does; else the CDK CLI as it is given."""

    cdk: Any
    ran: list[tuple[str, ...]] = field(default_factory=list)

    def run(self, arguments: Sequence[str]) -> None:
        self.ran.append(tuple(arguments[3 : arguments.index("--concurrency")]))
        chart = ["--parameters", f"small-foundation:{PLACEHOLDER_PARAMETER}=rehearsal"]
        # the CDK CLI knows only parameters of stacks that it deploys
        is_there = any(each in arguments for each in ("small/*", "small/foundation"))
        self.cdk.run([*arguments, *(chart if is_there else [])])


@dataclass
class Life:
    """One environment in an account of its own."""

    there: Embedded
    cdk: Any
    folder: Path
    data: dict[str, Any] = field(default_factory=lambda: yaml.safe_load(SMALL))
    count: int = 0

    def change(self, edit: Edit | None = None) -> tuple[list[tuple[str, ...]], Person]:
        """Edit the file and deploy it; give what the CDK CLI was told to deploy, and what was shown."""
        if edit is not None:
            edit(self.data)
        self.count += 1
        file = self.folder / "small.yaml"
        file.write_text(yaml.safe_dump(self.data, sort_keys=False), encoding="utf-8")
        assembly = self.folder / f"assembly-{self.count}"
        self.cdk.synth(file, assembly)
        person, cdk = Person(), WithPlaceholder(self.cdk)
        assert self.deployment(assembly, person, cdk).run(), "\n".join(person.told)
        # what stands is what the file says: another one finds nothing to do
        again = Person()
        assert self.deployment(assembly, again, cdk).run()
        assert again.shown[0].steps == ()
        return cdk.ran, person

    def deployment(self, assembly: Path, person: Person, cdk: Cdk) -> Deployment:
        """Give the deployment of an assembly as 'deploy' makes it."""
        own = Own(stacks=(), hyperpod_cluster="", eks_cluster="")
        return Deployment(
            aws=lambda: LiveAws.open(region=REGION, account=ACCOUNT, own=own),
            head=Source(assembly=read_assembly(assembly, "small"), side=Side(label="working tree")),
            cdk=cdk,
            person=person,
            pause=lambda _: None,
        )

    def stacks(self) -> dict[str, str]:
        """Give the status of every stack that is there, by name."""
        found = self.there.client("cloudformation").describe_stacks()["Stacks"]
        return {each["StackName"]: each["StackStatus"] for each in found if each["StackName"] != "CDKToolkit"}


@contextmanager
def living(folder: Path, monkeypatch: pytest.MonkeyPatch, *, real: bool = False) -> Iterator[Life]:
    """Give the environment deployed, by the unmodified CDK CLI or by what plays it."""
    file = folder / "small.yaml"
    file.write_text(SMALL, encoding="utf-8")
    document = satisfying(load_environment(file).environment)
    with embedded({**document, "bootstrap": None} if real else document, is_hurried=True) as there:
        for name, value in there.environment().items():
            monkeypatch.setenv(name, value)
        cdk: Any = InProcessCdk(Aws(there, folder))
        if real:
            cdk = CdkCli(project=PROJECT, scratch=folder, environment=there.environment())
        life = Life(there, cdk, folder)
        if real:
            assembly = folder / "bootstrap"
            cdk.synth(file, assembly)
            cdk.run(["bootstrap", f"aws://{ACCOUNT}/{REGION}", "--app", str(assembly)])
        ran, _ = life.change()
        assert ran == [("small/*",)]
        yield life


@pytest.mark.examples
@pytest.mark.timeout(600)
def test_keys_a_zone_and_the_last_file_system_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with living(tmp_path, monkeypatch) as life:
        ran, _ = life.change(logs_out)
        assert ran == [
            ("small/storage", "small/hyperpod", "small/observability", "--exclusively"),
            ("small/*",),
        ]

        ran, _ = life.change(node_volumes_out)
        assert ran == [("small/hyperpod", "--exclusively"), ("small/*",)]

        ran, person = life.change(zone_out)
        assert ran == [
            ("small/hyperpod", "small/platform", "--exclusively"),
            ("small/storage", "--exclusively"),
            ("small/*",),
        ]
        assert any("End the pods that mount the claim default/far" in each for each in person.told)

        ran, person = life.change(last_file_system_out)
        assert ran == [("small/*",)]
        assert "small-storage: deleted" in person.told
        assert set(life.stacks()) == {"small-foundation", "small-hyperpod", "small-platform", "small-observability"}
        # both are retained: no plan deletes data
        assert len(life.there.client("fsx").describe_file_systems()["FileSystems"]) == 2


@pytest.mark.examples
@pytest.mark.timeout(900)
def test_the_unmodified_cdk_cli_takes_a_file_system_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with living(tmp_path, monkeypatch, real=True) as life:
        ran, _ = life.change(lambda data: data["storage"]["lustre"].pop())
        assert ran[-1] == ("small/*",)
        assert ("--exclusively" in ran[0], "small/platform" in ran[0], len(ran)) == (True, True, 2)
        assert set(life.stacks().values()) <= {"CREATE_COMPLETE", "UPDATE_COMPLETE"}


def test_every_edit_changes_the_file() -> None:
    for edit in (logs_out, node_volumes_out, zone_out, last_file_system_out):
        data = yaml.safe_load(SMALL)
        before = copy.deepcopy(data)
        edit(data)
        assert data != before
