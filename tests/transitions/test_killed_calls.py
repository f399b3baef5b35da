"""Each command that changes AWS is killed before and after each call: the next run completes it without repeats."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import pytest
from typer.testing import CliRunner

from hyperpod_cdk import cli
from hyperpod_cdk._cli.review import Access
from hyperpod_cdk.checks.answers import Refused
from hyperpod_cdk.config import load_environment
from hyperpod_cdk.living.extending import buy, extensions
from hyperpod_cdk.review.model import Side
from hyperpod_cdk.review.sources import Source
from hyperpod_cdk.templates.assembly import Assembly, Stack
from hyperpod_cdk.transitions.recovering import Recovering
from hyperpod_cdk.transitions.run import Destruction
from hyperpod_cdk.transitions.takeover import Import, Taken, Takeover, _as_it_stands
from hyperpod_cdk_rehearsal.embedded.operations import ServiceError
from tests.cli.test_upgrade import PINNED
from tests.living import test_extending as plans
from tests.living.test_status import opened
from tests.transitions import test_recovery as stuck
from tests.transitions import test_run as fake
from tests.transitions import test_upgrade as ages
from tests.transitions.stacks import ACCOUNT, REGION, assembly


class Died(BaseException):
    """The process is gone: nothing catches it, and nothing that it leaves undone is made up for."""


@dataclass
class Calls:
    """Counts calls of AWS; the process dies with one of them, before it reached AWS or once it has."""

    dies_at: int = 0
    is_after: bool = False
    made: int = 0
    is_dead: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def make(self, call: Callable[[], Any]) -> Any:
        """Make a call, unless the process is dead or dies now."""
        with self._lock:
            if self.is_dead:
                raise Died
            self.made += 1
            dies = self.made == self.dies_at
            self.is_dead = dies
        if dies and not self.is_after:
            raise Died
        answer = call()
        if dies:
            raise Died
        return answer


@dataclass(frozen=True)
class Mortal:
    """An AWS whose calls are counted."""

    aws: Any
    calls: Calls

    def call(self, *words: str, **params: Any) -> Any:
        return self.calls.make(lambda: self.aws.call(*words, **params))

    def send(self, *words: str, **params: Any) -> Any:
        return self.calls.make(lambda: self.aws.send(*words, **params))

    def pages(self, *words: str, **params: Any) -> Any:
        return self.calls.make(lambda: self.aws.pages(*words, **params))


class World(Protocol):
    """An account, what stands in it, and one verb."""

    def run(self, calls: Calls) -> bool:
        """Do the verb as a new process does; give whether it ended well."""
        ...

    def stands(self) -> Any:
        """Return the deployed state."""
        ...

    def done(self) -> Iterable[Any]:
        """Return what was done to it, each thing as often as it was."""
        ...


# --- deploy and destroy ----------------------------------------------------------------------------------------------


class Deployed(dict[str, Stack]):
    """The stacks of an account; the CDK CLI may be killed before and after it has deployed each."""

    def __init__(self, stacks: Mapping[str, Stack]) -> None:
        super().__init__(stacks)
        self.calls = Calls()
        self.done: list[Any] = []

    def __setitem__(self, name: str, stack: Stack) -> None:
        old = self.get(name)
        if old is not None and (old.template, old.termination_protection) == (
            stack.template,
            stack.termination_protection,
        ):
            return
        is_same_template = old is not None and old.template == stack.template
        # CloudFormation goes on with what it has begun: the CLI is no part of it
        put = super().__setitem__

        def deploy() -> None:
            put(name, stack)
            if not is_same_template:
                self.done.append((name, sorted(stack.resources), sorted(stack.outputs)))

        self.calls.make(deploy)

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name)
        self.done.append(("deleted", name))


@dataclass
class Stacks:
    """An environment that goes from ``base`` to ``head``, or is destroyed."""

    folder: Path
    base: Assembly
    head: Assembly | None
    cloud: fake.Cloud = field(default_factory=fake.Cloud)

    def __post_init__(self) -> None:
        self.cloud.stacks = Deployed({each.name: each for each in self.base.stacks})

    def run(self, calls: Calls) -> bool:
        assert isinstance(self.cloud.stacks, Deployed)
        self.cloud.stacks.calls = calls
        person, aws = fake.FakePerson([True, "dev", "dev", "dev"]), Mortal(self.cloud, calls)
        if self.head is None:
            person.answers = ["dev"]
            head = Source(assembly=self.base, side=Side(label="working tree"))
            return Destruction(aws=lambda: aws, head=head, person=person, pause=lambda _: None).run()
        return replace(fake.deployment(self.cloud, self.head, person, self.folder), aws=lambda: aws).run()

    def stands(self) -> Any:
        return {name: (each.template, each.termination_protection) for name, each in self.cloud.stacks.items()}

    def done(self) -> Iterable[Any]:
        assert isinstance(self.cloud.stacks, Deployed)
        return map(str, self.cloud.stacks.done)


def protected(of: Assembly) -> Assembly:
    return replace(of, stacks=tuple(replace(each, termination_protection=True) for each in of.stacks))


# --- recover ---------------------------------------------------------------------------------------------------------

CHANGING = ("create", "delete", "update", "rollback", "continue", "execute", "extend")


@dataclass
class Seen:
    """An AWS that keeps which calls changed something."""

    aws: Any
    changed: list[str] = field(default_factory=list)

    def call(self, service: str, operation: str, **params: Any) -> Any:
        answer = self.aws.call(service, operation, **params)
        if operation.startswith(CHANGING) and operation != "update_termination_protection":
            self.changed.append(f"{operation} {params.get('StackName', '').split('/')[1:2] or params.get('StackName')}")
        return answer

    send = call

    def pages(self, *words: str, **params: Any) -> Any:
        return self.aws.pages(*words, **params)


class Recovered:
    """An environment with a stack in a state of its own, and the answers of the person who recovers it."""

    def __init__(self, break_it: Callable[[stuck.Place], object], *answers: str) -> None:
        self.place, self.answers = stuck.Place(), answers
        break_it(self.place)
        self.aws = Seen(stuck.Api(self.place.cloud))

    def run(self, calls: Calls) -> bool:
        person = stuck.Person(answers=list(self.answers))
        aws = Mortal(self.aws, calls)
        head = self.place.head()
        return Recovering(
            aws=lambda: aws, head=head, person=person, show=person.shown.append, pause=lambda _: None
        ).run()

    def stands(self) -> Any:
        return self.place.statuses()

    def done(self) -> Iterable[Any]:
        for name in self.place.statuses():
            self.place.cloud.settled(name)
        return self.aws.changed


# --- takeover --------------------------------------------------------------------------------------------------------


@dataclass
class Refusing(stuck.Api):
    """Says by a code what CloudFormation refuses."""

    def call(self, service: str, operation: str, **params: Any) -> Mapping[str, Any]:
        assert service == "cloudformation"
        try:
            return dict(self.cloud.ask(stuck._NAMES[operation], **params))
        except ServiceError as error:
            raise Refused(f"{error.code}: {error.message}", code=error.code, message=error.message) from None

    send = call


def taken(stack: str, logical_id: str, **outputs: Any) -> Taken:
    body = {
        "Type": "AWS::SSM::Parameter",
        "DeletionPolicy": "Retain",
        "Properties": {"Type": "String", "Name": logical_id, "Value": "a"},
    }
    return Taken(
        stack=Stack(name=f"dev-{stack}", template={"Resources": {}}, account=ACCOUNT, region=REGION),
        logical_id=logical_id,
        type="AWS::SSM::Parameter",
        id=f"{logical_id}-1",
        identifier={"Name": f"{logical_id}-1"},
        body=body,
        outputs=outputs,
    )


class TakenOver:
    """What stands beside all stacks, in two steps, the first of which gives something on."""

    def __init__(self) -> None:
        self.place = stuck.Place()
        self.place.cloud.handler.existing |= {"Role-1": {}, "Cluster-1": {}}
        self.rows = (
            taken("foundation", "Role", Out={"Value": {"Ref": "Role"}, "Export": {"Name": "role"}}),
            taken("hyperpod", "Cluster"),
        )
        self.aws = Seen(Refusing(self.place.cloud))

    def run(self, calls: Calls) -> bool:
        aws = Mortal(self.aws, calls)
        found = Takeover(cluster="ml", taken=tuple(_as_it_stands(aws, each, self.rows) for each in self.rows))
        # the stacks are made in a thread of their own, which needs its turn before the takeover gives up
        return Import(aws=aws, say=lambda _: None, pause=lambda _: time.sleep(0.005)).run(found)

    def stands(self) -> Any:
        held = {
            name: sorted(row["PhysicalResourceId"] for row in self.resources(name)) for name in self.place.statuses()
        }
        return held, {name: self.place.cloud.outputs(name) for name in held}, self.place.statuses()

    def resources(self, name: str) -> Any:
        return self.place.cloud.ask("ListStackResources", StackName=name)["StackResourceSummaries"]

    def done(self) -> Iterable[Any]:
        # a change set that was not executed is none
        return [each for each in self.aws.changed if each.startswith("execute")]


# --- plans extend ----------------------------------------------------------------------------------------------------


class Extended:
    """A plan with an extension on offer; AWS remembers what was bought."""

    OFFER = "tpeo-7"

    def __init__(self, folder: Path) -> None:
        self.file = folder / "dev.yaml"
        self.file.write_text(plans.FILE, encoding="utf-8")
        self.bought: list[str] = []
        script = plans.script(DescribeTrainingPlanExtensionHistory=self._history, ExtendTrainingPlan=self._extend)
        self.script = script

    def _rows(self) -> list[dict[str, Any]]:
        return [
            {
                "TrainingPlanExtensionOfferingId": each,
                "Status": "Pending",
                "PaymentStatus": "Pending",
                "DurationHours": 168,
            }
            for each in self.bought
        ]

    def _history(self, _: Mapping[str, Any]) -> dict[str, Any]:
        return {"TrainingPlanExtensions": self._rows()}

    def _extend(self, params: Mapping[str, Any]) -> dict[str, Any]:
        self.bought.append(params["TrainingPlanExtensionOfferingId"])
        return {"TrainingPlanExtensions": self._rows()}

    def run(self, calls: Calls) -> bool:
        environment = load_environment(self.file).environment
        found = extensions(Mortal(opened(self.script), calls), environment, days=(7,), now=plans.END.replace(year=2098))
        return buy(Mortal(opened(self.script), calls), found, self.OFFER).passed is not False

    def stands(self) -> Any:
        return self.bought

    def done(self) -> Iterable[Any]:
        return self.bought


# --- upgrade ---------------------------------------------------------------------------------------------------------


class Upgraded:
    """A file whose add-ons are old."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "environments" / "dev.yaml"
        self.file.parent.mkdir(exist_ok=True)
        self.file.write_text(ages.TEXT.replace('"1.33"', '"1.34"').replace(PINNED, ""), encoding="utf-8")
        self.before = self.file.read_text(encoding="utf-8")

    def run(self, calls: Calls) -> bool:
        words = ["upgrade", "dev", "--project", str(self.file.parents[1]), "--addons", "--write"]
        way = Access(open=lambda *_: Mortal(opened(ages.script()), calls))
        return CliRunner().invoke(cli.app, words, prog_name="hyperpod-cdk", obj=way).exit_code == 0

    def stands(self) -> Any:
        return self.file.read_text(encoding="utf-8")

    def done(self) -> Iterable[Any]:
        return [line for line in self.stands().splitlines() if line not in self.before.splitlines()]


def create_failed(place: stuck.Place) -> None:
    place.fail("storage", "B", "before_create")
    place.deploy(
        "storage", stuck.template(A=stuck.parameter("a"), B=stuck.parameter("b", DependsOn="A")), DisableRollback=True
    )


def never_made(place: stuck.Place) -> None:
    place.templates["one"] = stuck.template(A=stuck.parameter("a"))
    stuck.open_change_set(place, "one", place.templates["one"], "cdk-deploy-change-set", "CREATE")


WORLDS: dict[str, Callable[[Path], World]] = {
    "deploy, the first": lambda folder: Stacks(folder, assembly(), protected(fake.BASE)),
    "deploy, two steps": lambda folder: Stacks(folder, fake.BASE, fake.RELEASED),
    "deploy, a stack goes": lambda folder: Stacks(folder, protected(fake.BASE), fake.LEFT),
    "destroy": lambda folder: Stacks(folder, protected(fake.BASE), None),
    "recover, a rollback that failed": lambda _: Recovered(stuck.stuck_rollback, "yes"),
    "recover, a rollback that skips": lambda _: Recovered(
        lambda place: stuck.stuck_rollback(place, 2), "yes", "dev", "dev"
    ),
    "recover, a creation that failed": lambda _: Recovered(create_failed, "yes", "dev"),
    "recover, a deletion that failed": lambda _: Recovered(
        lambda place: stuck.stuck_deletion(place, times=1), "yes", "dev"
    ),
    "recover, a stack that was never made": lambda _: Recovered(never_made, "yes"),
    "takeover": lambda _: TakenOver(),
    "plans extend": Extended,
    "upgrade": Upgraded,
}


def outcome(world: World) -> tuple[Any, Any]:
    # what was done first: it waits for what goes on
    done = Counter(world.done())
    return done, world.stands()


IN_EXAMPLES = {"deploy, a stack goes", "recover, a rollback that failed", "recover, a rollback that skips", "upgrade"}
"""What takes most of the ten seconds that all take."""


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=[pytest.mark.examples] if each in IN_EXAMPLES else []) for each in WORLDS]
)
def test_the_next_one_ends_it_and_does_nothing_twice(name: str, tmp_path: Path) -> None:
    number = 0

    def world() -> World:
        nonlocal number
        number += 1
        folder = tmp_path / str(number)
        folder.mkdir()
        return WORLDS[name](folder)

    whole, calls = world(), Calls()
    assert whole.run(calls)
    wanted = outcome(whole)
    assert wanted[0]
    for dies_at in range(1, calls.made + 1):
        for is_after in (False, True):
            where = f"{name}: died {'after' if is_after else 'before'} call {dies_at} of {calls.made}"
            killed = world()
            with pytest.raises(Died):
                killed.run(Calls(dies_at, is_after))
            assert killed.run(Calls()), where
            assert outcome(killed) == wanted, where
