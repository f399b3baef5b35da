"""The environments that a ``fleet`` command is run for, each read and checked separately."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from hyperpod_cdk._cli.common import FINDINGS, USAGE, files_of, messages_to, root_of, usage
from hyperpod_cdk._cli.output import Checked
from hyperpod_cdk.file_reading import resolved

if TYPE_CHECKING:
    from hyperpod_cdk.config import LoadedEnvironment
    from hyperpod_cdk.config.fleet import Fleet
    from hyperpod_cdk.findings import Finding
    from hyperpod_cdk.fleet.model import Look


def checked(files: Sequence[Path], root: Path) -> tuple[list[Checked], list[LoadedEnvironment]]:
    """Check environment files, each alone and all together; return all results, and those that are valid alone."""
    from hyperpod_cdk.config import EnvironmentFileError, load_environment, missing_scripts  # noqa: PLC0415 - as below
    from hyperpod_cdk.config.loading import SCRIPTS  # noqa: PLC0415 - as below
    from hyperpod_cdk.config.several import found_together  # noqa: PLC0415 - 'fleet --help' need not load it

    found: list[Checked] = []
    loaded: list[LoadedEnvironment] = []
    for file in files:
        try:
            each = load_environment(file)
        except EnvironmentFileError as error:
            found.append(Checked(error.file, error.findings))
        else:
            loaded.append(each)
            found.append(Checked(each.file, each.warnings))
    beyond = [*found_together(loaded), *missing_scripts(loaded, root / SCRIPTS)]
    if len(loaded) > 1:
        from hyperpod_cdk.checks.together import quotas_together  # noqa: PLC0415 - one file alone needs no checks

        beyond += quotas_together(loaded)
    return [
        Checked(each.file, (*each.findings, *(finding for finding in beyond if finding.file == each.file)))
        for each in found
    ], loaded


@dataclass(frozen=True, kw_only=True)
class Member:
    """One requested environment: its file, or the reason why there is none."""

    name: str
    asked: str
    wave: str = ""
    checked: Checked | None = None
    loaded: LoadedEnvironment | None = None
    problem: str = ""

    @property
    def errors(self) -> tuple[Finding, ...]:
        """All findings of its file."""
        return () if self.checked is None else self.checked.findings

    @property
    def beyond(self) -> tuple[Finding, ...]:
        """The findings that do not follow from the file alone."""
        alone = self.loaded.warnings if self.loaded else ()
        return tuple(each for each in self.errors if each not in alone)

    def look(
        self,
        *,
        passed: bool | None,
        summary: str,
        verdict: str,
        exit_code: int | None = None,
        **more: object,
    ) -> Look:
        """Return a command's result for it; the exit code follows from ``passed`` unless ``exit_code`` is given."""
        from hyperpod_cdk.fleet.model import Look  # noqa: PLC0415 - as above

        stated = self.loaded.environment if self.loaded else None
        return Look.model_validate(
            {
                "environment": self.name,
                "file": self.checked.file if self.checked else "",
                "account": stated.account if stated else "",
                "region": stated.region if stated else "",
                "wave": self.wave,
                "passed": passed,
                "exit_code": (FINDINGS if passed is False else 0) if exit_code is None else exit_code,
                "summary": summary,
                "verdict": verdict,
                **more,
            }
        )


@dataclass(frozen=True, kw_only=True)
class Members:
    """The requested environments in order, and the errors of fleet.yaml."""

    root: Path
    members: tuple[Member, ...]
    findings: tuple[Finding, ...] = ()
    fleet: Fleet | None = None

    @property
    def is_short(self) -> bool:
        """Whether a requested environment does not exist."""
        return any(each.problem for each in self.members)

    @classmethod
    def of(cls, project: Path | None, names: Sequence[str] | None) -> Members:
        """Read the requested environments; exits with code 2 if none exists."""
        from hyperpod_cdk.config import UsageError, environment_files, environment_names  # noqa: PLC0415 - as above
        from hyperpod_cdk.config.documents import DocumentError  # noqa: PLC0415 - as above
        from hyperpod_cdk.config.fleet import fleet_of  # noqa: PLC0415 - as above
        from hyperpod_cdk.config.loading import made_in  # noqa: PLC0415 - as above

        root = root_of(project)
        there = environment_names(root)
        fleet = None
        findings: tuple[Finding, ...] = ()
        try:
            fleet = fleet_of(root, there)
        except DocumentError as error:
            findings = error.findings
        found: list[Path | Member] = []
        for name in names or ():
            try:
                found += files_of(name, root)
            except UsageError as error:
                found.append(Member(name=name, asked=name, problem=str(error)))
        if not names:
            by_name = {file.stem: file for file in environment_files(root)}
            order = fleet.environments if fleet else tuple(by_name)
            found += [by_name[name] for name in order]
            if not found:
                usage(f"no environment in {root / 'environments'}; {made_in(root)}")
        # each environment is checked and counted once, even if it is given by several paths
        once: dict[Path | Member, Path | Member] = {}
        for each in found:
            once.setdefault(resolved(each) if isinstance(each, Path) else each, each)
        found = list(once.values())
        files = [each for each in found if isinstance(each, Path)]
        judged, loaded = checked(files, root)
        by_file = {each.file: each for each in loaded}
        members = dict(zip(files, judged, strict=True))
        rows: list[Member] = []
        for each in found:
            if isinstance(each, Member):
                rows.append(each)
                continue
            file = members[each]
            of = by_file.get(file.file)
            name = of.environment.name if of else each.stem
            wave = fleet.wave_of(each.stem) if fleet else ""
            rows.append(Member(name=name, asked=str(each), wave=wave, checked=file, loaded=of))
        return cls(root=root, members=tuple(rows), findings=tuple(findings), fleet=fleet)


def side_by_side(looked: Members, ask: Callable[[Member, LoadedEnvironment], Look]) -> list[Look]:
    """Check all environments in parallel, and return their results in order."""
    from hyperpod_cdk.checks.side_by_side import together  # noqa: PLC0415 - as above
    from hyperpod_cdk.fleet.model import Look  # noqa: PLC0415 - as above

    answers = together(lambda each: looked_at(each, ask), looked.members)
    return [each for each in answers if isinstance(each, Look)]


def looked_at(each: Member, ask: Callable[[Member, LoadedEnvironment], Look]) -> Look:
    """Check one environment; an error that prevents the check becomes the result of this environment."""
    from hyperpod_cdk.checks.answers import NotAnswered  # noqa: PLC0415 - as above

    if each.checked is None:
        return _nowhere(each)
    if each.loaded is None:
        return validated(each)
    said: list[str] = []
    try:
        with messages_to(said.append):
            return ask(each, each.loaded)
    except typer.Exit:
        why = " ".join(said) or "it failed"
    except NotAnswered as missing:
        why = missing.sentence
    except OSError as error:
        why = str(error)
    return each.look(passed=None, summary=why.partition(";")[0], verdict=why, exit_code=USAGE)


def validated(each: Member) -> Look:
    """Return whether its file is valid."""
    from hyperpod_cdk.findings import Severity  # noqa: PLC0415 - as above
    from hyperpod_cdk.json_schema import told  # noqa: PLC0415 - as above
    from hyperpod_cdk.review.nouns import count  # noqa: PLC0415 - as above

    if each.checked is None:
        return _nowhere(each)
    numbers = {severity: sum(found.severity is severity for found in each.errors) for severity in Severity}
    summary = ", ".join(count(number, severity.value) for severity, number in numbers.items() if number)
    return each.look(
        passed=each.checked.passed,
        summary=summary,
        verdict="the file is refused." if not each.checked.passed else "the file is valid.",
        findings=tuple(told(found) for found in each.errors),
    )


def _nowhere(each: Member) -> Look:
    return each.look(passed=None, summary="does not exist", verdict=each.problem, exit_code=USAGE)
