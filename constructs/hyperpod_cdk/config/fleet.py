"""``fleet.yaml`` next to ``environments/``: in which waves environments are deployed, and what stops the next wave."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field, Strict

from hyperpod_cdk.catalog.rules import SLUG_REGEX, Bound, Pattern, again_problem, repeated
from hyperpod_cdk.catalog.sentences import plural
from hyperpod_cdk.config import documents
from hyperpod_cdk.config.documents import DocumentError, Said
from hyperpod_cdk.config.draft import UnknownValueError
from hyperpod_cdk.config.environment import ENVIRONMENT_NAME
from hyperpod_cdk.config.section import Section, filled, like, within
from hyperpod_cdk.config.source import DataPath, Wording, render_path
from hyperpod_cdk.config.suggest import closest
from hyperpod_cdk.findings import Severity
from hyperpod_cdk.json_schema import as_text, schema_of_file

FILE: Final = "fleet.yaml"
"""Name of the file, in the project's root."""

WAVE_NAME: Final = Pattern(
    regex=SLUG_REGEX,
    maximum=32,
    describes="at most 32 lower-case letters, digits and single hyphens between them, a letter first",
    example="staging",
)
"""What both GitHub and GitLab accept in the name of a job and of an environment."""

SOAK_MINUTES: Final = Bound(
    minimum=0,
    maximum=330,
    source="GitHub ends a job on its own machines after 360 minutes (Actions limits, read 2026-11-23), and the job that"
    " waits must also start and check the environments; GitLab's start_in accepts a week.",
)

WORDING: Final = Wording(
    noun="fleet",
    a_file="a fleet.yaml",
    example="waves: [{name: all, environments: [prod]}]",
    when_empty="write its waves, or delete the file",
    when_missing="write it, or continue without it: then all environments are one wave",
)

Check = Literal["status", "drift"]


class Wave(Section):
    """Environments that are deployed in parallel, after the previous wave is complete and its checks have passed."""

    name: Annotated[str, like(WAVE_NAME)] = Field(description="Name of the wave.", examples=["staging"])
    environments: Annotated[
        tuple[Annotated[str, like(ENVIRONMENT_NAME)], ...], Strict(strict=False), filled("environment")
    ] = Field(
        description="Names of the environments in the wave: files in environments/, without .yaml.",
        examples=[["staging"]],
    )
    approval: bool = Field(
        default=False,
        description=(
            "Whether a person must approve the start of the wave, independent of the reviews of its"
            " environments. Who can approve is configured in GitHub or GitLab (GitHub: required reviewers of"
            " the environment wave-NAME)."
        ),
    )
    soak_minutes: Annotated[int, within(SOAK_MINUTES)] = Field(
        default=0,
        description=(
            "Minutes to wait after the last deployment of the wave before its checks run. The next wave"
            " starts after the checks."
        ),
        examples=[60],
    )
    checks: Annotated[tuple[Check, ...], Strict(strict=False)] = Field(
        default=("status",),
        description=(
            "What must pass in each environment of the wave, after the wait, before the next wave starts:"
            " 'status' (no node fails), 'drift' (nothing was changed by hand). A check that could not run"
            " also stops the next wave."
        ),
    )


class Fleet(Section):
    """All environments of a project, in the order in which they are deployed."""

    waves: Annotated[tuple[Wave, ...], Strict(strict=False), filled("wave")] = Field(
        description="The waves, from first to last. Every environment in environments/ must be in one of them."
    )

    @property
    def environments(self) -> tuple[str, ...]:
        """Every environment in the order of the waves."""
        return tuple(name for wave in self.waves for name in wave.environments)

    def wave_of(self, environment: str) -> str:
        """Return the name of an environment's wave, empty if it is in none."""
        return next((wave.name for wave in self.waves if environment in wave.environments), "")


def read_fleet(path: Path, names: Sequence[str], *, text: str | None = None) -> Fleet:
    """Read a ``fleet.yaml``; ``names`` are the environments that there are, ``text`` is read in place of its content.

    Raises DocumentError with all errors.
    """
    source = documents.open_source(path, WORDING, text=text)
    fleet, said = documents.validated(Fleet, source)
    said += [Said(Severity.ERROR, place, message, "fleet") for place, message in _wrong(fleet, names)]
    found = documents.in_order([*source.findings, *(each.found_in(source) for each in said)])
    if any(each.severity is Severity.ERROR for each in found):
        raise DocumentError(found)
    return fleet


def fleet_of(root: Path, names: Sequence[str]) -> Fleet | None:
    """Return the fleet of a project, None where it has no such file. Raises DocumentError."""
    path = root / FILE
    return read_fleet(path, names) if path.exists() or path.is_symlink() else None


def _wrong(fleet: Fleet, names: Sequence[str]) -> Iterator[tuple[DataPath, str]]:
    for rule in (_names_are_unique, _environments_stand_once, _environments_are_there, _checks_stand_once):
        try:
            yield from list(rule(fleet, names))
        except UnknownValueError:
            # otherwise it would judge a value that is reported already
            continue


def _placed(fleet: Fleet) -> list[tuple[DataPath, str]]:
    return [
        (("waves", index, "environments", at), name)
        for index, wave in enumerate(fleet.waves)
        for at, name in enumerate(wave.environments)
    ]


def _names_are_unique(fleet: Fleet, names: Sequence[str]) -> Iterator[tuple[DataPath, str]]:  # noqa: ARG001 - as others
    for index, first, name in repeated([wave.name for wave in fleet.waves]):
        yield ("waves", index, "name"), again_problem(name, first, listed="waves")


def _environments_stand_once(fleet: Fleet, names: Sequence[str]) -> Iterator[tuple[DataPath, str]]:  # noqa: ARG001 - as others
    placed = _placed(fleet)
    for index, first, name in repeated([name for _, name in placed]):
        before = render_path(placed[first][0])
        yield placed[index][0], f"must be in one wave only, got {name} again after {before}; remove one of the two"


def _environments_are_there(fleet: Fleet, names: Sequence[str]) -> Iterator[tuple[DataPath, str]]:
    placed = _placed(fleet)
    for place, name in placed:
        if name not in names:
            near = closest(name, names)
            there = f"there {plural(len(names), 'is', 'are')} {', '.join(names)}" if names else "there is none yet"
            yield (
                place,
                f"must be an environment of environments/, got {name}; {f'did you mean {near}?' if near else there}",
            )
    missing = [name for name in names if name not in {name for _, name in placed}]
    if missing:
        told = ", ".join(missing)
        yield ("waves",), f"must hold every environment of environments/, got none of {told}; add each to a wave"


def _checks_stand_once(fleet: Fleet, names: Sequence[str]) -> Iterator[tuple[DataPath, str]]:  # noqa: ARG001 - as others
    for index, wave in enumerate(fleet.waves):
        for at, first, name in repeated(wave.checks):
            yield ("waves", index, "checks", at), again_problem(name, first)


def fleet_schema_text() -> str:
    """Return the JSON Schema (2020-12) of ``fleet.yaml``, for editors, as the text of its file."""
    return as_text(schema_of_file(Fleet, title=FILE))
