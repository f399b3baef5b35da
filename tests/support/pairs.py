"""Takes environments from one file to another as 'deploy' does, in an embedded AWS, and judges what stands then.

A chain is one environment that is edited again and again. Each file of it is deployed anew in an account of its own:
that is what the way from the file before is compared with, and where the way to the next file begins.
"""

from __future__ import annotations

import copy
import hashlib
import os
import random
import re
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any, Literal

import yaml
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import HypothesisWarning

from hyperpod_cdk.checks.aws import LiveAws
from hyperpod_cdk.config import Environment
from hyperpod_cdk.eks.dependencies import PLACEHOLDER_PARAMETER
from hyperpod_cdk.handlers.quota_gate.reading import Own
from hyperpod_cdk.review.model import Side
from hyperpod_cdk.review.sources import Source
from hyperpod_cdk.templates.assembly import read_assembly
from hyperpod_cdk.templates.difference import compare
from hyperpod_cdk.transitions.cdk import CdkFailedError
from hyperpod_cdk.transitions.model import Plan
from hyperpod_cdk.transitions.recovering import Recovering
from hyperpod_cdk.transitions.run import Deployment
from hyperpod_cdk.transitions.standing import recovers
from hyperpod_cdk_rehearsal.account_files import satisfying
from hyperpod_cdk_rehearsal.cdk_cli import CdkFailedError as RehearsedCdkFailedError
from hyperpod_cdk_rehearsal.driver import deployment
from tests.support import edits, legal
from tests.support.assembly import ENVIRONMENTS, PROJECT
from tests.support.callers import CALLERS
from tests.support.embedded import Embedded, embedded
from tests.support.in_process_cdk import Aws, InProcessCdk, Stack, read_stacks
from tests.support.standing import Standing, differences, read

File = dict[str, Any]
Kind = Literal["one edit", "three edits", "unrelated", "back"]
Trouble = Literal["none", "fault", "kill"]

KINDS: tuple[Kind, ...] = ("one edit", "one edit", "one edit", "three edits", "three edits", "three edits", "unrelated")
"""The kinds of changes; unrelated files are usually refused."""

NAME = "pairs"
_FURNISHED = 0.6
"""The share of drawn files with something that must be removed in an order."""
_MAY_STAY = (
    re.compile(r"block that stays: (?P<name>\S+) is there and in no fresh deployment: "),
    re.compile(r" add-ons: \.(?P<name>[^.]+)\.addon\.addonVersion: "),
    re.compile(
        r" described: \.(?P<name>AutoScaling|ClusterRole|NodeProvisioningMode|TieredStorageConfig): "
        r".+ in place of null$"
    ),
)
"""What may stay where a file leaves it out: blocks of zones, add-ons' versions, Karpenter's role, what HyperPod has
switched on, the mode of provisioning, of which no document says how a running cluster takes another."""

_MINORS = ("1.32", "1.33", "1.34", "1.35")
_IDENTITY = ("name", "vpc_id", "subnet_id", "group_id", "key_id", "cluster_name")
_STATEFUL = frozenset(
    {
        *("AWS::FSx::FileSystem", "AWS::S3::Bucket", "AWS::Logs::LogGroup", "AWS::KMS::Key", "AWS::EKS::Cluster"),
        *("AWS::SageMaker::Cluster", "AWS::APS::Workspace", "AWS::Grafana::Workspace", "AWS::EC2::VPC"),
    }
)
"""Types with data, nodes or references from others: a plan must state their replacement."""


@dataclass
class Pair:
    """One change from a file to another, and its result."""

    kind: str
    edit: str
    trouble: Trouble = "none"
    base: File = field(default_factory=dict)
    head: File = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    steps: int = 0
    met: bool = False
    """Whether the trouble happened."""
    where: str = ""
    """The fault, or the number of stacks after which the CDK CLI was killed."""
    by_hand: list[str] = field(default_factory=list)
    """Manual actions before the next deployment, as it requested: deleted buckets, or ``recover``."""
    said: list[str] = field(default_factory=list, repr=False)
    """Statements of the plans about differences from a new environment."""
    problems: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return it as data for JSON."""
        return {key: value for key, value in asdict(self).items() if key != "said"}


class KilledError(Exception):
    """The CDK CLI was killed; CloudFormation continues."""


class Cdk(InProcessCdk):
    """Simulates the CDK CLI, and can be killed after some stacks have started."""

    kill_after: int | None = None

    def _begin(self, stack: Stack, parameters: Mapping[str, str]) -> bool:
        begun = super()._begin(stack, parameters)
        if begun and self.kill_after is not None:
            self.kill_after -= 1
            if self.kill_after <= 0:
                self.kill_after = None
                raise KilledError
        return begun


@dataclass
class Person:
    """Confirms everything, and records what was shown."""

    is_there: bool = True
    shown: list[Plan] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    typed: list[str] = field(default_factory=list)

    def show(self, plan: Plan) -> None:
        """Record a plan."""
        self.shown.append(plan)

    def say(self, line: str) -> None:
        """Record a line."""
        self.told.append(line)

    def agrees(self, question: str) -> bool:
        """Confirm."""
        return bool(question)

    def types(self, question: str, word: str) -> bool:
        """Type the requested text."""
        self.typed.append(word)
        return word in question


@dataclass
class Runner:
    """Runs the CDK CLI for steps; ``ran`` contains its arguments."""

    cdk: Cdk
    ran: list[tuple[str, ...]] = field(default_factory=list)

    def run(self, arguments: Sequence[str]) -> None:
        """Run it with the placeholder chart."""
        self.ran.append(tuple(arguments))
        chart = ["--parameters", f"{NAME}-foundation:{PLACEHOLDER_PARAMETER}=rehearsal"]
        try:
            self.cdk.run([*arguments, *chart])
        except RehearsedCdkFailedError as failed:
            raise CdkFailedError("deploy", 1, failed.output) from failed


@dataclass
class Account:
    """An account with a fresh deployment of one file."""

    there: Embedded
    aws: Aws
    cdk: Cdk
    file: File
    assembly: Path
    region: str

    def standing(self, assembly: Path) -> Standing:
        """Read the deployed stacks of an assembly."""
        return read(self.aws, list(read_stacks(assembly)))

    def stacks(self) -> dict[str, tuple[str, str]]:
        """Return the status of each stack, and when it was last touched."""
        found = self.aws.cloudformation.describe_stacks()["Stacks"]
        return {
            each["StackName"]: (each["StackStatus"], str(each.get("LastUpdatedTime", "")))
            for each in found
            if each["StackName"].startswith(f"{NAME}-")
        }

    def deployment(self, assembly: Path, person: Person, runner: Runner) -> Deployment:
        """Return the deployment of an assembly as in 'deploy'."""
        own = Own(stacks=(), hyperpod_cluster="", eks_cluster="")
        return Deployment(
            aws=lambda: LiveAws.open(region=self.region, account=legal.ACCOUNT, own=own),
            head=Source(assembly=read_assembly(assembly, NAME), side=Side(label="working tree")),
            cdk=runner,
            person=person,
            pause=lambda _: time.sleep(0.2),
        )


@contextmanager
def deployed(file: File, assembly: Path, has: Mapping[str, Any], scratch: Path) -> Iterator[Account]:
    """Deploy a file in a separate account."""
    region = str(file["region"])
    with embedded(has, region=region, is_hurried=True) as there:
        os.environ.update(there.environment())
        aws = Aws(there, scratch / "log")
        cdk = Cdk(aws)
        account = Account(there, aws, cdk, file, assembly, region)
        try:
            cdk.run(deployment(NAME, assembly))
        except RehearsedCdkFailedError as failed:
            raise RehearsedCdkFailedError("deploy", 1, " / ".join([failed.output, *_failures(account)])) from failed
        yield account


def chain(number: int, length: int, scratch: Path, say: Callable[[Pair], None]) -> None:
    """Change one environment to some files in turn, and yield each pair with its result."""
    rng = edits.drawing(number)
    files: list[tuple[str, str, File]] = [("", "", drawn(rng, None))]
    while len(files) <= length:
        kind = rng.choice(KINDS)
        edit, file = head_of(rng, kind, files[-1][2])
        if _go_together([*(each for _, _, each in files), file]):
            files.append((kind, edit, file))
    has = _account_of([each for _, _, each in files])
    went: tuple[Pair, Standing] | None = None
    for place, (_, _, base) in enumerate(files):
        after = files[place + 1] if place < length else None
        pair = Pair(after[0], after[1], _trouble(rng), base, after[2]) if after else None
        went = _one(pair, base, went, has, rng=rng, scratch=scratch, say=say)
    if went is not None:
        raise AssertionError("the last pair of a chain was not judged")


def judged(base: File, head: File, scratch: Path, *, trouble: Trouble = "none", number: int = 0) -> Pair:
    """Change an environment from one file to another, and check only this pair."""
    found: list[Pair] = []
    rng = edits.drawing(number)
    pair = Pair("", "", trouble, base, head)
    has = _account_of([base, head])
    went = _one(pair, base, None, has, rng=rng, scratch=scratch, say=found.append)
    if went is not None:
        _one(None, head, went, has, rng=rng, scratch=scratch, say=found.append)
    return found[-1]


def drawn(rng: random.Random, region: str | None) -> File:
    """Draw a file: a shipped one, or one from the generator of valid files."""
    if rng.random() < 0.6:
        found = [
            data
            for each in ENVIRONMENTS.values()
            if (data := yaml.safe_load((PROJECT / each).read_text(encoding="utf-8")))["region"]
            == (region or data["region"])
        ]
        file: File = copy.deepcopy(rng.choice(found))
    else:
        file = _legal(rng.randrange(10**6), region)
    file["name"] = NAME
    if rng.random() < _FURNISHED:
        file = edits.furnished(rng, file)
    eks = file.setdefault("eks", {}) or {}
    if eks.get("endpoint_access") != "private" and "existing" not in eks:
        eks.setdefault("public_access_cidrs", [CALLERS])
    if "kubernetes_version" in eks:
        older = copy.deepcopy(file)
        older["eks"]["kubernetes_version"] = rng.choice(_MINORS)
        if legal.accepted(older) is not None:
            file = older
    loaded = legal.accepted(file)
    return file if loaded is not None and not legal.is_warned_to_fail(loaded) else drawn(rng, region)


def _legal(number: int, region: str | None) -> File:
    found: list[File] = []

    @seed(number)
    @settings(
        deadline=None,
        database=None,
        phases=[Phase.generate],
        max_examples=1,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )
    @given(file=legal.files(region=region))
    def run(file: File) -> None:
        found.append(file)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HypothesisWarning)
        run()
    return found[-1]


def head_of(rng: random.Random, kind: Kind, file: File) -> tuple[str, File]:
    """Return what a file becomes, and by which edits."""
    if kind == "unrelated":
        return kind, next(each for _ in range(99) if (each := drawn(rng, str(file["region"]))) != file)
    return edits.several(rng, file, 1 if kind == "one edit" else 3)


def _trouble(rng: random.Random) -> Trouble:
    return rng.choice(("none", "none", "fault", "kill"))


def _one(
    pair: Pair | None,
    base: File,
    went: tuple[Pair, Standing] | None,
    has: Mapping[str, Any],
    *,
    rng: random.Random,
    scratch: Path,
    say: Callable[[Pair], None],
) -> tuple[Pair, Standing] | None:
    """Deploy a file anew, compare the way that led to it, and go the way to the next."""
    started = time.monotonic()
    assembly = _synthesized(base, scratch)
    try:
        with deployed(base, assembly, has, scratch) as account:
            anew = account.standing(assembly)
            if went is not None:
                came, stands = went
                came.problems += [each for each in differences(stands, anew) if not is_announced(each, came.said)]
                say(came)
                went = None
            if pair is None:
                return None
            head = _synthesized(pair.head, scratch)
            ended = _go(pair, account, anew, rng=rng, head=head)
            if ended is not None:
                _back(pair, account, (anew, ended), rng=rng, head=head, say=say)
    except RehearsedCdkFailedError as failed:
        # neither the pair that led here can be judged nor the one that begins here
        for each in (went[0] if went else None, pair):
            if each is not None:
                each.problems.append(f"what is accepted does not deploy anew: {failed.output}")
                say(each)
        return None
    pair.seconds = round(time.monotonic() - started, 1)
    if ended is None:
        say(pair)
        return None
    return pair, ended


def _back(
    pair: Pair,
    account: Account,
    stood: tuple[Standing, Standing],
    *,
    rng: random.Random,
    head: Path,
    say: Callable[[Pair], None],
) -> None:
    """Take the account back to the file that it came from: what was retained may be in the way of a second life."""
    started = time.monotonic()
    anew, there = stood
    assembly = account.assembly
    back = Pair("back", pair.edit, _trouble(rng), pair.head, pair.base)
    account.assembly = head
    ended = _go(back, account, there, rng=rng, head=assembly)
    if ended is not None:
        said = [*pair.said, *back.said]
        back.problems += [each for each in differences(ended, anew) if not is_announced(each, said)]
    back.seconds = round(time.monotonic() - started, 1)
    say(back)


def _go(pair: Pair, account: Account, before: Standing, *, rng: random.Random, head: Path) -> Standing | None:
    """Deploy the head on what stands; give what stands then, None where it was refused or did not end."""
    untouched = account.stacks()
    person, runner = Person(), Runner(account.cdk)
    _troubled(pair, account, rng, head)
    try:
        ended = account.deployment(head, person, runner).run()
    except KilledError:
        pair.met, ended = True, False
    account.cdk.kill_after = None
    pair.steps = len(person.shown[0].steps)
    if refusals := person.shown[0].refusals:
        pair.refused = [f"{each.why} What works: {each.what_works}" for each in refusals]
        if runner.ran or account.stacks() != untouched:
            pair.problems.append("something was changed though it was refused")
        return None
    if pair.trouble == "fault":
        pair.met = bool(account.there.address.control("faults", [], timeout_s=60))
    if not ended and pair.met:
        ended = _again(account, head, person, runner)
        pair.by_hand = [] if ended else [*_deleted(account, person.shown[-1]), *_recovered(account, head, person)]
        if pair.by_hand:
            ended = _again(account, head, person, runner)
    if not ended:
        events = _failures(account)
        pair.problems.append("it did not end: " + " / ".join([*person.told[-4:], *events]))
        if again_refused := person.shown[-1].refusals:
            pair.problems += [f"then refused: {each.why}" for each in again_refused]
        return None
    _second(pair, account, head)
    after = account.standing(head)
    _untouched(pair, account, before, after, person.shown)
    pair.said = [
        line for shown in person.shown for step in shown.steps for line in (*step.stays, *step.unknown, *step.loses)
    ]
    return after


def _again(account: Account, head: Path, person: Person, runner: Runner) -> bool:
    again = Person()
    ended = account.deployment(head, again, runner).run()
    person.told += again.told
    person.shown += again.shown
    return ended


def _deleted(account: Account, plan: Plan) -> list[str]:
    """Delete the buckets as the refusals of a plan request; return their names."""
    told = " ".join(each.what_works for each in plan.refusals)
    s3 = account.aws.client("s3")
    names = re.findall(r"aws s3api delete-bucket --bucket (\S+?)\)", told)
    for name in names:
        found = s3.list_object_versions(Bucket=name)
        for each in (*found.get("Versions", ()), *found.get("DeleteMarkers", ())):
            s3.delete_object(Bucket=name, Key=each["Key"], VersionId=each["VersionId"])
        s3.delete_bucket(Bucket=name)
    return names


def _recovered(account: Account, head: Path, person: Person) -> list[str]:
    """Run recover if the refusals of a plan request it, and confirm everything; return the command."""
    command = recovers(NAME)
    if not any(command in each.what_works for each in person.shown[-1].refusals):
        return []
    way = account.deployment(head, person, Runner(account.cdk))
    Recovering(aws=way.aws, head=way.head, person=person, show=lambda _: None, pause=way.pause).run()
    return [command]


def _second(pair: Pair, account: Account, head: Path) -> None:
    """Deploy once more, which must change nothing."""
    person, runner = Person(), Runner(account.cdk)
    account.deployment(head, person, runner).run()
    if person.shown[0].steps:
        pair.problems.append(f"a second plan is not empty: {[each.does for each in person.shown[0].steps]}")
    account.cdk.run(deployment(NAME, head))
    if account.cdk.changes:
        pair.problems.append(f"a second deployment changes {account.cdk.changes}")


def _untouched(pair: Pair, account: Account, before: Standing, after: Standing, shown: Sequence[Plan]) -> None:
    """Check that resources with data are unchanged, or that the plan stated the change."""
    said = "\n".join(
        line
        for plan in shown
        for step in plan.steps
        for line in (*step.interrupts, *step.loses, *step.stays, *step.unknown)
    )
    assembly = read_assembly(account.assembly, NAME)
    for place, (kind, physical) in before.ids.items():
        if kind in _STATEFUL and after.ids.get(place, ("", ""))[1] != physical:
            found = assembly.find(*place)
            name = found.name if found is not None else place[1]
            if name not in said and place[1] not in said:
                pair.problems.append(f"{place[0]} / {name} ({kind}) was replaced or deleted, and no step says so")
    there = {each["FileSystemId"] for each in account.aws.client("fsx").describe_file_systems()["FileSystems"]}
    lost = {physical for kind, physical in before.ids.values() if kind == "AWS::FSx::FileSystem"} - there
    if lost and not any(step.loses for plan in shown for step in plan.steps):
        pair.problems.append(f"file systems are gone: {sorted(lost)}")


def _failures(account: Account) -> list[str]:
    found: list[str] = []
    for name, (status, _) in account.stacks().items():
        if status in {"CREATE_COMPLETE", "UPDATE_COMPLETE"}:
            continue
        events = account.aws.cloudformation.describe_stack_events(StackName=name)["StackEvents"]
        reasons = [
            f"{name}/{each['LogicalResourceId']} {each['ResourceStatus']}: {each.get('ResourceStatusReason')}"
            for each in events
            if each["ResourceStatus"].endswith("_FAILED") and "cancelled" not in each.get("ResourceStatusReason", "")
        ]
        found += [f"{name} is {status}", *reasons[:3]]
    return found


def _troubled(pair: Pair, account: Account, rng: random.Random, head: Path) -> None:
    """Let something happen on the way that does happen: to a resource that changes, or between stacks that do."""
    base, wanted = read_assembly(account.assembly, NAME), read_assembly(head, NAME)
    changes = [each for each in compare(base, wanted) if each.after is not None]
    if pair.trouble == "none" or not changes:
        return
    if pair.trouble == "kill":
        account.cdk.kill_after = rng.randint(1, len({each.resource.stack for each in changes}))
        pair.where = f"stack {account.cdk.kill_after}"
        return
    change = rng.choice(changes)
    moment = rng.choice(("before", "after"))
    fault = {"stack": change.resource.stack, "logical_id": change.resource.logical_id}
    # one that is made anew is created, one that changes in place updated
    faults = [{**fault, "when": f"{moment}_{done}"} for done in ("create", *(("update",) if change.before else ()))]
    account.there.address.control("faults", faults, timeout_s=60)
    pair.where = f"{moment} {change.resource.stack}/{change.resource.logical_id}"


def is_announced(difference: str, said: Sequence[str]) -> bool:
    """Whether it is known of what differs that it may stay, and a plan has said so."""
    names = [found["name"] for each in _MAY_STAY if (found := each.search(difference))]
    return any(name in each for name in names for each in said)


def _environment(file: File) -> Environment:
    loaded = legal.accepted(file)
    assert loaded is not None, legal.asked(legal.as_text(file))
    return loaded.environment


def _synthesized(file: File, scratch: Path) -> Path:
    """Write the assembly of a file, once for the way to it and the way from it."""
    text = legal.as_text(file)
    path = scratch / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.yaml"
    assembly = path.with_suffix("")
    if not assembly.exists():
        path.write_text(text, encoding="utf-8")
        InProcessCdk.synth(path, assembly)
    return assembly


def _go_together(files: Sequence[File]) -> bool:
    """Whether one account can have what all of these need: a training plan is of one type, in one zone."""
    plans = [plan for each in files for plan in satisfying(_environment(each))["training_plans"]["plans"]]
    return len({each["name"] for each in plans}) == len(
        {(each["name"], each["instance_type"], each["availability_zone_id"]) for each in plans}
    )


def _account_of(files: Sequence[File]) -> dict[str, Any]:
    """Return an account that has what each of these files needs, so that EKS offers each of them the same versions."""
    found: dict[str, Any] = reduce(_merged, (satisfying(_environment(each)) for each in files))
    return found


def _merged(one: Any, other: Any) -> Any:
    """Return an account file that has what both have."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        keys = dict.fromkeys([*one, *other])
        return {
            key: _merged(one[key], other[key]) if key in one and key in other else one.get(key, other.get(key))
            for key in keys
        }
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return _merged_rows(one, other)
    is_number = all(isinstance(each, int | float) and not isinstance(each, bool) for each in (one, other))
    return max(one, other) if is_number else other


def _merged_rows(one: Sequence[Any], other: Sequence[Any]) -> list[Any]:
    found = list(one)
    for row in other:
        key = next((key for key in _IDENTITY if isinstance(row, Mapping) and key in row), None)
        same = [
            n
            for n, each in enumerate(found)
            if key is not None and isinstance(each, Mapping) and each.get(key) == row[key]
        ]
        if same:
            found[same[0]] = _merged(found[same[0]], row)
        elif row not in found:
            found.append(row)
    return found
