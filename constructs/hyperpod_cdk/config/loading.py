"""Loads the environment of a path, or reports all errors of its file at once."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hyperpod_cdk.catalog import regions
from hyperpod_cdk.catalog.sentences import plural
from hyperpod_cdk.config import documents
from hyperpod_cdk.config.documents import DocumentError, Said, shown
from hyperpod_cdk.config.source import ENVIRONMENT, DataPath, Source, parse_path
from hyperpod_cdk.config.suggest import closest
from hyperpod_cdk.file_reading import resolved
from hyperpod_cdk.findings import Finding, Severity

if TYPE_CHECKING:
    from hyperpod_cdk.config.environment import Environment
    from hyperpod_cdk.config.recorded_plans import RecordedPlans
    from hyperpod_cdk.config.recorded_quotas import RecordedQuotas

FOLDER = "environments"
SCRIPTS = "lifecycle_scripts"
SUFFIX = ".yaml"
PLANS_SUFFIX = ".plans.json"
QUOTAS_SUFFIX = ".quotas.json"
"""Replaces ``SUFFIX`` in the name of the file that 'hyperpod-cdk plans record' writes."""

_RENAME = "rename one of the two"


class EnvironmentFileError(DocumentError):
    """An environment file is refused; ``findings`` are all its errors, sorted by place, and its warnings.

    ``file`` is the environment file as findings show it; a finding may be about the record of plans next to it.
    """


class UsageError(Exception):
    """A command or a call names something that does not exist; the text says what does."""


@dataclass(frozen=True)
class LoadedEnvironment:
    """An environment with its file: ``file`` as findings show it, and the ``warnings`` about it.

    ``recorded_plans`` are the training plans that 'hyperpod-cdk plans record' wrote next to it, None without that file;
    ``recorded_quotas`` likewise what 'hyperpod-cdk quotas show ENV --record' wrote. ``called`` is the environment
    argument of the commands that messages name, as the function ``called`` gives it.
    """

    environment: Environment
    warnings: tuple[Finding, ...]
    file: str
    called: str
    _source: Source = field(repr=False, compare=False)
    recorded_plans: RecordedPlans | None = None
    recorded_quotas: RecordedQuotas | None = None

    @property
    def as_written(self) -> object:
        """The file as plain data (dict, list, text, number, bool, None): its own values, without defaults."""
        return self._source.data

    def line_of(self, path: str) -> int | None:
        """Return the line of ``hyperpod.instance_groups[1].count``; for a missing key, the line of its nearest parent.

        None if ``path`` is not a valid path.
        """
        steps = parse_path(path)
        return None if steps is None else self._source.line_of(steps)

    def found(self, said: Said) -> Finding:
        """Return what a check says about a place of the file, with its line."""
        return said.found_in(self._source)


def load_environment(
    path: Path, *, text: str | None = None, today: date | None = None, with_record: bool = True
) -> LoadedEnvironment:
    """Read, check and resolve one environment file; ``text`` is read in place of the file's content.

    ``today`` is the day by which support dates, and the age and ends of recorded plans, are judged. Default: the
    present day, UTC. Recorded plans and quotas are read if their files are next to ``path``, unless ``with_record``
    is False, which is for those who are about to write one.

    Raises EnvironmentFileError with every error of the file, of single values and of values together, and where the
    record next to it cannot be used or contradicts it.
    """
    from hyperpod_cdk.config import rules  # noqa: PLC0415 - a caller that only looks for files need not build the models
    from hyperpod_cdk.config.extensions import environment_model  # noqa: PLC0415 - as above
    from hyperpod_cdk.config.section import deprecated  # noqa: PLC0415 - as above

    try:
        source = documents.open_source(path, ENVIRONMENT, text=text)
    except DocumentError as error:
        raise EnvironmentFileError(error.findings) from None
    day = today or datetime.now(UTC).date()
    environment, said = documents.validated(environment_model(), source, likely=_likely(source.data))
    said += [
        Said(problem.severity, problem.path, problem.message, rule.name)
        for rule, problem in rules.problems(environment, today=day)
    ]
    said += [
        Said(Severity.WARNING, place, f"is deprecated; {instead}", "deprecated")
        for place, instead in deprecated(environment)
    ]
    findings = [*source.findings, *(each.found_in(source) for each in said)]
    recorded, about_plans = _recorded_plans(path, environment, source, day) if with_record else (None, [])
    quotas, about_quotas = _recorded_quotas(path, environment) if with_record else (None, [])
    findings = documents.in_order([*findings, *about_plans, *about_quotas, *_name_of_another(path, source)])
    if any(finding.severity is Severity.ERROR for finding in findings):
        raise EnvironmentFileError(findings, file=source.file)
    return LoadedEnvironment(
        environment=environment,
        warnings=tuple(findings),
        file=source.file,
        called=called(path),
        _source=source,
        recorded_plans=recorded,
        recorded_quotas=quotas,
    )


def resolve_environment_file(name_or_path: str, root: Path) -> Path:
    """Return the file of an environment: a name in ``root``/environments, or the path of a file.

    A name is that of the file, else the ``name`` that exactly one file states, which is the one that output shows.
    Raises UsageError, with the near miss, where there is no such file.
    """
    if "\0" in name_or_path or not name_or_path:
        raise UsageError(f"ENV must be the name of an environment or the path of its file, got {name_or_path!r}")
    is_path = os.sep in name_or_path or name_or_path.endswith((SUFFIX, ".yml"))
    path = Path(name_or_path)
    named = root / FOLDER / f"{name_or_path}{SUFFIX}"
    candidates = [path, root / path, root / FOLDER / path] if is_path else [named]
    for candidate in candidates:
        if os.path.exists(candidate):  # noqa: PTH110 - Path.exists raises for a name longer than the system allows
            return candidate
    called = [] if is_path else [each for each in environment_files(root) if _is_called(each, name_or_path)]
    if len(called) == 1:
        return called[0]
    names = environment_names(root)
    near = closest(Path(name_or_path).stem, names)
    if near:
        fix = f"did you mean {near}?"
    elif names:
        fix = f"there {plural(len(names), 'is', 'are')} {', '.join(names)}"
    else:
        fix = f"{FOLDER}/ holds no environment yet; {made_in(root)}"
    asked = documents.tidy(name_or_path)
    what = f"no file {asked}" if is_path else f'no environment "{asked}" in {shown(root / FOLDER)}'
    raise UsageError(f"{what}; {fix}")


def project_of(folder: Path) -> Path | None:
    """Return the nearest folder, from ``folder`` upwards, that holds environments/ or cdk.json; None without one."""
    return next(
        (each for each in (folder, *folder.parents) if (each / FOLDER).is_dir() or (each / "cdk.json").is_file()), None
    )


def called(path: Path) -> str:
    """Return the arguments with which a command in the current folder finds a file's environment, quoted for a shell.

    The file's name if it is in environments/, else its path; with ``--project`` if the folder is not in the project.
    """
    file = resolved(path)
    is_named = file.parent.name == FOLDER and file.suffix == SUFFIX
    # the folder of a file that is about to be written need not exist yet
    project = file.parent.parent if is_named else project_of(file.parent)
    words = shlex.quote(file.stem if is_named else shown(path))
    return words if project is None else f"{words}{in_project(project)}"


def in_project(project: Path) -> str:
    """Return the option with which a command in the current folder finds a project; empty for the folder's own."""
    here = resolved(Path.cwd())
    root = resolved(project)
    return "" if root == (project_of(here) or here) else f" --project {shlex.quote(shown(root))}"


def made_in(root: Path) -> str:
    """Return the fix for a project without environments."""
    return f"create one with 'hyperpod-cdk init NAME{in_project(root)}'"


def environment_files(root: Path) -> list[Path]:
    """Return every environment file of ``root``, sorted by name, including files that cannot be read."""
    return sorted(path for path in (root / FOLDER).glob(f"*{SUFFIX}") if not path.is_dir())


def environment_names(root: Path) -> list[str]:
    """Return the name by which commands address each environment file of ``root``."""
    return [path.stem for path in environment_files(root)]


def shared_names(loaded: Sequence[LoadedEnvironment]) -> list[Finding]:
    """Find environments of one name, and HyperPod clusters of one name in one account and region.

    The stacks and physical names of such environments would be the same.
    """
    names: dict[object, LoadedEnvironment] = {}
    clusters: dict[object, LoadedEnvironment] = {}
    findings = []
    for each in loaded:
        environment = each.environment
        other = names.setdefault(environment.name, each)
        if other.file != each.file:
            findings.append(each.found(_shared(("name",), environment.name, f"{FOLDER}/", f"{other.file}; {_RENAME}")))
        cluster = environment.hyperpod_cluster_name
        owner = clusters.setdefault((environment.account, environment.region, cluster), each)
        if owner.file not in {each.file, other.file}:
            place = f"the HyperPod clusters of {environment.account} in {environment.region}"
            said = _shared(("hyperpod", "cluster_name"), cluster, place, f"{owner.file}; {_RENAME}")
            findings.append(each.found(said))
    return findings


def missing_scripts(loaded: Sequence[LoadedEnvironment], folder: Path) -> list[Finding]:
    """Find lifecycle scripts of an environment that nodes would not get, or could not start.

    They come from ``folder`` or, if that is None, from the library's own scripts.
    """
    from hyperpod_cdk import script_files  # noqa: PLC0415 - reading one file of text needs no scripts

    is_own = folder.is_dir()
    directory = folder if is_own else script_files.library_scripts()
    where = f"{folder.name}/" if is_own else f"the library's folder, since there is no {folder.name}/"
    names = script_files.script_names(directory)
    findings = []
    for each in loaded:
        for index, group in enumerate(each.environment.hyperpod.instance_groups):
            key, script = group.script
            problem = script_files.name_problem(script, names, where=where)
            if problem is None and (said := script_files.shebang_problem(directory / script)):
                problem = f"names a script that no node can start: {shown(Path(said))}"
            if problem:
                path = ("hyperpod", "instance_groups", index, key)
                findings.append(each.found(Said(Severity.ERROR, path, problem, "lifecycle_script_is_there")))
    return findings


def plans_file(environment_file: Path) -> Path:
    """Return the file next to an environment file that holds its recorded plans, whether it exists or not."""
    return environment_file.with_name(f"{environment_file.stem}{PLANS_SUFFIX}")


def quotas_file(environment_file: Path) -> Path:
    """Return the file next to an environment file that holds its recorded quotas, whether it exists or not."""
    return environment_file.with_name(f"{environment_file.stem}{QUOTAS_SUFFIX}")


def _likely(data: object) -> dict[DataPath, object]:
    """Return the region that all zones of a file are in, for a file with a wrong region, so that rules about it run."""
    network = data.get("network") if isinstance(data, dict) else None
    existing = network.get("existing") if isinstance(network, dict) else None
    stated = (
        network.get("availability_zones") if isinstance(network, dict) else None,
        existing.get("node_subnet_ids") if isinstance(existing, dict) else None,
    )
    zones = [str(az_id) for section in stated if isinstance(section, dict) for az_id in section]
    of_zones = {regions.region_of_az_id(az_id) if regions.is_az_id(az_id) else None for az_id in zones}
    (region, *others) = of_zones or {None}
    return {("region",): region} if region and not others else {}


def _recorded_plans(
    path: Path, environment: Environment, source: Source, today: date
) -> tuple[RecordedPlans | None, list[Finding]]:
    record = plans_file(path)
    if not os.path.lexists(record):
        return None, []
    from hyperpod_cdk.config import record_file, recorded_plans  # noqa: PLC0415 - most environments have no record

    file = shown(record)
    try:
        recorded = recorded_plans.read_record(record, file=file, called=called(path))
    except record_file.RecordError as error:
        return None, [error.finding]
    found = recorded_plans.record_findings(environment, recorded, file=file, called=called(path), today=today)
    return recorded, [
        replace(each, rule=rule)
        if isinstance(each, Finding)
        else Said(each.severity, each.path, each.message, rule).found_in(source)
        for rule, each in found
    ]


def _recorded_quotas(path: Path, environment: Environment) -> tuple[RecordedQuotas | None, list[Finding]]:
    record = quotas_file(path)
    if not os.path.lexists(record):
        return None, []
    from hyperpod_cdk.config import record_file, recorded_quotas  # noqa: PLC0415 - as above

    file = shown(record)
    try:
        recorded = recorded_quotas.read_record(record, file=file, called=called(path))
        recorded_quotas.require_own(environment, recorded, file=file, called=called(path))
    except record_file.RecordError as error:
        return None, [error.finding]
    return recorded, []


def _name_of_another(path: Path, source: Source) -> Iterator[Finding]:
    """Refuse a copy that still has the ``name`` of another file: commands for it would change that environment."""
    name = _stated_name(source)
    if path.parent.name != FOLDER or name in {"", path.stem} or "/" in name or "\0" in name:
        return
    other = path.with_name(f"{name}{SUFFIX}")
    try:
        # Path.is_file raises for a name longer than the system allows
        if not os.path.isfile(other) or _stated_name(documents.open_source(other, ENVIRONMENT)) != name:  # noqa: PTH113
            return
    except DocumentError:
        return
    whose = "whose stacks every command of this file would change"
    said = _shared(("name",), name, f"{FOLDER}/", f"{FOLDER}/{other.name}, {whose}; set name: {path.stem}")
    yield said.found_in(source)


def _is_called(path: Path, name: str) -> bool:
    try:
        return _stated_name(documents.open_source(path, ENVIRONMENT)) == name
    except DocumentError:
        return False


def _stated_name(source: Source) -> str:
    name = source.data.get("name") if isinstance(source.data, dict) else None
    return name if isinstance(name, str) else ""


def _shared(path: DataPath, name: str, place: str, other: str) -> Said:
    """Refuse a name that is not the only one in ``place``; ``other`` says which file has it too, and the fix."""
    message = f'must be unique among {place}, got "{name}" as in {other}'
    return Said(Severity.ERROR, path, message, "environment_names_are_unique")
