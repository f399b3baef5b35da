"""The input of a check, its possible results and how they are stored. No boto3, no aws_cdk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hyperpod_cdk.checks.answers import Why
from hyperpod_cdk.config import Environment, Extension, LoadedEnvironment
from hyperpod_cdk.config.extensions import active
from hyperpod_cdk.findings import Finding, Severity, passed

if TYPE_CHECKING:
    from hyperpod_cdk.checks.answers import Aws, NotAnswered


class Status(StrEnum):
    """How a check ended. ``SKIPPED`` says that something could not be read: it never counts as passed.

    ``NOT_NEEDED`` is a check of something that the environment does not have, such as an existing network.
    """

    PASSED = "passed"
    WARNED = "warned"
    FAILED = "failed"
    SKIPPED = "skipped"
    NOT_NEEDED = "not needed"


@dataclass(frozen=True, kw_only=True)
class Case:
    """What is about to be deployed, and the time and files for its checks.

    ``now`` is aware and in UTC; ``project`` is the folder that holds ``environments/`` and ``lifecycle_scripts/``;
    ``called`` is the environment argument of commands in messages (``config.loading.called``).
    ``types`` are those of the templates' resources, None if no template was read.
    """

    environment: Environment
    now: datetime
    project: Path
    called: str
    types: frozenset[str] | None = None


@dataclass(frozen=True, kw_only=True)
class Skipped:
    """What could not be compared: why, the missing IAM action if that was the reason, and AWS's own words."""

    reason: str
    action: str = ""
    path: str = ""
    said: str = ""

    @property
    def placed(self) -> str:
        """The reason, after the key of the file that the question was about."""
        return Why.about(self.path, self.reason) if self.path else self.reason

    def as_dict(self) -> dict[str, str]:
        """Return it as plain data for ``--format json``."""
        return {"reason": self.reason, "action": self.action, "path": self.path, "aws_said": self.said}


@dataclass(frozen=True, kw_only=True)
class Detail:
    """What a check saw, for users who request details: one line, or a drawing of several. ``data`` is for JSON."""

    text: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Looked:
    """A check that asks AWS nothing compared something. Without it, and with nothing found, it had nothing to check."""


LOOKED: Final = Looked()

_NAMES: Final = {
    name.lower().replace("-", ""): name
    for name in (
        *(
            "add-on",
            "add-ons",
            "CDK",
            "CIDRs",
            "CNI",
            "EFA",
            "EKS",
            "Grafana",
            "HyperPod",
            "KMS",
            "Kubernetes",
            "Kueue",
        ),
        *("Lustre", "OIDC", "Prometheus", "S3", "VPC"),
    )
}
"""Words of checks' names with another usual spelling."""

Found = Finding | Skipped | Detail | Looked
CheckFunction = Callable[[Case, "Aws"], Iterator[Found]]


def unanswered(missing: NotAnswered, path: str = "", *, about: str = "") -> Skipped:
    """Create a skip for a question that AWS did not answer, with AWS's message; ``about`` is what was queried."""
    reason = Why.about(about, missing.reason) if about else missing.reason
    return Skipped(reason=reason, action=missing.action, said=missing.said, path=path)


def error(path: str, message: str) -> Finding:
    """Make a finding that fails the check; the runner adds file, line and the check's name."""
    return Finding(severity=Severity.ERROR, message=message, path=path)


def warning(path: str, message: str) -> Finding:
    """Make a finding that never changes the exit code: a dated table, an estimate, a future date."""
    return Finding(severity=Severity.WARNING, message=message, path=path)


@dataclass(frozen=True, kw_only=True)
class Check:
    """A registered check with its card.

    ``area`` is the word for ``--only`` and ``--skip``. ``asks`` names the questions of ``Aws`` it may ask, those about
    use by kind (``usage:vpcs``); another one is an error in the check. If there are none, it runs without AWS, and
    yields ``LOOKED`` if it compared something.
    ``may_lack`` names those whose answer "it does not exist" the rule handles: for other questions about something that
    does not exist, the check counts as skipped. The other texts are its card in
    ``docs/checks.md``.
    """

    name: str
    area: str
    run: CheckFunction
    asks: tuple[str, ...]
    inputs: str
    passes: str
    fails: str
    skips: str
    by_hand: str
    may_lack: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The rule as a sentence: the function's name with spaces, and names as AWS and Kubernetes write them."""
        return " ".join(_NAMES.get(word, word) for word in self.name.split("_"))


@dataclass(frozen=True, kw_only=True)
class Result:
    """What one check said."""

    check: Check
    findings: tuple[Finding, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    details: tuple[Detail, ...] = ()
    is_needed: bool = True

    @property
    def status(self) -> Status:
        """An error fails it; else what could not be read skips it; else a warning shows; else it passed."""
        if any(finding.severity is Severity.ERROR for finding in self.findings):
            return Status.FAILED
        if self.skipped:
            return Status.SKIPPED
        if not self.is_needed:
            return Status.NOT_NEEDED
        return Status.WARNED if self.findings else Status.PASSED

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data for ``--format json``."""
        return {
            "check": self.check.name,
            "area": self.check.area,
            "status": self.status.value,
            "findings": [finding.as_dict() for finding in self.findings],
            "skipped": [each.as_dict() for each in self.skipped],
            "details": [{"text": each.text, "data": dict(each.data)} for each in self.details],
        }


@dataclass(frozen=True, kw_only=True)
class Report:
    """All results of one run, in the order of the register."""

    loaded: LoadedEnvironment
    results: tuple[Result, ...]

    @property
    def passed(self) -> bool | None:
        """False where a check failed, None if something was skipped, True if everything was answered."""
        return passed(
            refuses=any(result.status is Status.FAILED for result in self.results),
            is_whole=not any(result.skipped for result in self.results),
        )

    def counts(self) -> dict[Status, int]:
        """Return the number of checks by result."""
        return {status: sum(result.status is status for result in self.results) for status in Status}


MODULES = (
    "account",
    "quotas",
    "training_plan",
    "availability",
    "instance_groups",
    "ip_budget",
    "eks",
    "endpoint_services",
    "existing_network",
    "existing_cluster",
    "task_governance",
    "iam",
    "lifecycle_scripts",
    "lifecycle_bucket",
    "lustre",
    "workspaces",
    "notify",
    "encryption",
    "job_buckets",
)
"""The modules of this package with checks, in the order of their cards."""


class Register:
    """Every check, area after area, in the order of definition. The modules are imported at the first use."""

    def __init__(self, modules: Sequence[str] = ()) -> None:
        self._modules = modules
        self._checks: dict[str, dict[str, Check]] = {}

    def __iter__(self) -> Iterator[Check]:
        for module in self._modules:
            yield from self._loaded(module).values()
        if self._modules:
            yield from _of_extensions()

    def __getitem__(self, name: str) -> Check:
        return next(check for check in self if check.name == name)

    def _loaded(self, module: str) -> dict[str, Check]:
        name = f"{__package__}.{module}"
        import_module(name)
        return self._checks.get(name, {})

    def areas(self) -> tuple[str, ...]:
        """Return the areas, in order, each once."""
        return tuple(dict.fromkeys(check.area for check in self))

    def check(
        self,
        *,
        area: str,
        asks: Iterable[str] = (),
        may_lack: Iterable[str] = (),
        inputs: str,
        passes: str,
        fails: str,
        skips: str,
        by_hand: str,
    ) -> Callable[[CheckFunction], CheckFunction]:
        """Register a function named for the rule it upholds, with the texts of its card."""

        def register(function: CheckFunction) -> CheckFunction:
            name = function.__name__
            checks = self._checks.setdefault(function.__module__, {})
            if name in checks:
                raise ValueError(f"there is already a check {name}")
            checks[name] = Check(
                name=name,
                area=area,
                run=function,
                asks=tuple(asks),
                may_lack=tuple(may_lack),
                inputs=inputs,
                passes=passes,
                fails=fails,
                skips=skips,
                by_hand=by_hand,
            )
            return function

        return register


def _of_extensions() -> Iterator[Check]:
    """Yield the checks that the project adds, each in an area with the extension's name."""
    for extension in active():
        for each in extension.checks:
            if isinstance(each, Check):
                yield replace(each, run=_blaming(extension, each.run))
                continue
            told = (each.__doc__ or each.__name__).strip().splitlines()[0]
            yield Check(
                name=each.__name__,
                area=extension.name.replace("_", "-"),
                run=_blaming(extension, each),
                asks=(),
                inputs=f"The extension {extension.name} of the project.",
                passes=told,
                fails="It says what is wrong.",
                skips="If it says so.",
                by_hand="",
            )


def _blaming(extension: Extension, function: Callable[[Any, Any], Iterable[Found]]) -> CheckFunction:
    def run(case: Case, aws: Aws) -> Iterator[Found]:
        with extension.blamed():
            found = list(function(case, aws))
            if wrong := [each for each in found if not isinstance(each, Finding | Skipped | Detail)]:
                raise TypeError(
                    f"a check must give error(...), warning(...), Skipped(...) or Detail(...), got {wrong[0]!r}"
                )
        yield from found
        # of a check of a project, nobody knows what it compares
        yield LOOKED

    return run


REGISTER = Register(MODULES)
check = REGISTER.check
