"""From a path to an environment, or to all that is wrong with its file at once."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from hyperpod_cdk.config import problems as value_problems
from hyperpod_cdk.config import rules
from hyperpod_cdk.config.draft import draft
from hyperpod_cdk.config.environment import Environment
from hyperpod_cdk.config.source import MAX_BYTES, Source, parse_path, read_source, render_path
from hyperpod_cdk.config.suggest import closest
from hyperpod_cdk.findings import Finding, Severity, by_place

if TYPE_CHECKING:
    from hyperpod_cdk.config.recorded_plans import RecordedPlans
    from hyperpod_cdk.config.recorded_quotas import RecordedQuotas

FOLDER = "environments"
SCRIPTS = "lifecycle_scripts"
SUFFIX = ".yaml"
PLANS_SUFFIX = ".plans.json"
QUOTAS_SUFFIX = ".quotas.json"
"""What stands in place of ``SUFFIX`` in the name of the file that 'hyperpod-cdk plans record' writes."""

_LONGEST_MESSAGE = 1000
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class EnvironmentFileError(Exception):
    """An environment file is refused; ``findings`` are all its errors, sorted by place, and its warnings.

    ``file`` is the environment file as findings show it; a finding may be about the record of plans beside it.
    """

    def __init__(self, findings: Sequence[Finding], *, file: str = "") -> None:
        super().__init__("\n".join(finding.render() for finding in findings))
        self.findings = tuple(findings)
        self.file = file or (self.findings[0].file if self.findings else "")


class UsageError(Exception):
    """A command or a call names something that is not there; the text says what is."""


@dataclass(frozen=True)
class LoadedEnvironment:
    """An environment with its file: ``file`` as findings show it, ``warnings`` that did not refuse it.

    ``recorded_plans`` are the training plans that 'hyperpod-cdk plans record' wrote beside it, None without that file;
    ``recorded_quotas`` likewise what 'hyperpod-cdk quotas show --record' wrote.
    """

    environment: Environment
    warnings: tuple[Finding, ...]
    file: str
    _source: Source = field(repr=False, compare=False)
    recorded_plans: RecordedPlans | None = None
    recorded_quotas: RecordedQuotas | None = None

    @property
    def as_written(self) -> object:
        """The file as plain data (dict, list, text, number, bool, None): what it states, without any default."""
        return self._source.data

    def line_of(self, path: str) -> int | None:
        """Give the line of ``hyperpod.instance_groups[1].count``; for a key left out, that of its nearest parent.

        None where ``path`` is not written as a path.
        """
        steps = parse_path(path)
        return None if steps is None else self._source.line_of(steps)


def load_environment(
    path: Path, *, text: str | None = None, today: date | None = None, with_record: bool = True
) -> LoadedEnvironment:
    """Read, check and resolve one environment file; ``text`` is read in place of the file's content.

    ``today`` is the day by which support dates, and the age and ends of recorded plans, are judged. Default: the
    present day, UTC. Recorded plans and quotas are read where their files stand beside ``path``, unless ``with_record``
    is False, which is for those who are about to write one.

    Raises EnvironmentFileError with every error of the file, of single values and of values together, and where the
    record beside it cannot be used or contradicts it.
    """
    file = _shown(path)
    source = read_source(_read(path, file) if text is None else _checked_size(text, file), file)
    if not isinstance(source.data, dict):
        raise EnvironmentFileError(by_place(_tidied(source.findings)))
    findings = list(source.findings)
    day = today or datetime.now(UTC).date()
    try:
        environment = Environment.model_validate(source.data)
    except ValidationError as error:
        details = error.errors(include_url=False)
        found = value_problems.translate(Environment, source, details)
        findings += [_finding(source, Severity.ERROR, each.path, each.message, each.rule) for each in found]
        environment = draft(Environment, source.data, value_problems.faults(details))
    findings += [
        _finding(source, problem.severity, problem.path, problem.message, rule.name)
        for rule, problem in rules.problems(environment, today=day)
    ]
    recorded, about_plans = _recorded_plans(path, environment, source, day) if with_record else (None, [])
    quotas, about_quotas = _recorded_quotas(path, environment) if with_record else (None, [])
    findings = by_place(_once(_tidied([*findings, *about_plans, *about_quotas])))
    if any(finding.severity is Severity.ERROR for finding in findings):
        raise EnvironmentFileError(findings, file=file)
    return LoadedEnvironment(
        environment=environment,
        warnings=tuple(findings),
        file=file,
        _source=source,
        recorded_plans=recorded,
        recorded_quotas=quotas,
    )


def resolve_environment_file(name_or_path: str, root: Path) -> Path:
    """Give the file of an environment: a name in ``root``/environments, or the path of a file.

    Raises UsageError, with the near miss, where there is no such file.
    """
    if "\0" in name_or_path or not name_or_path:
        raise UsageError(f"must be the name of an environment or the path of its file, got {name_or_path!r}")
    is_path = os.sep in name_or_path or name_or_path.endswith((SUFFIX, ".yml"))
    path = Path(name_or_path)
    named = root / FOLDER / f"{name_or_path}{SUFFIX}"
    candidates = [path, root / path, root / FOLDER / path] if is_path else [named]
    for candidate in candidates:
        if os.path.exists(candidate):  # noqa: PTH110 - Path.exists raises for a name longer than the system allows
            return candidate
    names = environment_names(root)
    near = closest(Path(name_or_path).stem, names)
    if near:
        fix = f"did you mean {near}?"
    elif names:
        fix = f"there are {', '.join(names)}"
    else:
        fix = f"{FOLDER}/ holds no environment yet; make one with 'hyperpod-cdk init'"
    what = f"no file {name_or_path}" if is_path else f'no environment "{name_or_path}" in {_shown(root / FOLDER)}'
    raise UsageError(f"{what}; {fix}")


def environment_files(root: Path) -> list[Path]:
    """Give every environment file of ``root``, sorted by name."""
    return sorted(path for path in (root / FOLDER).glob(f"*{SUFFIX}") if path.is_file())


def environment_names(root: Path) -> list[str]:
    """Give the name under which each environment file of ``root`` is called."""
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
            findings.append(_shared(each, other, "name", environment.name, "environments/"))
        cluster = environment.hyperpod_cluster_name
        owner = clusters.setdefault((environment.account, environment.region, cluster), each)
        if owner.file not in {each.file, other.file}:
            place = f"the HyperPod clusters of {environment.account} in {environment.region}"
            findings.append(_shared(each, owner, "hyperpod.cluster_name", cluster, place))
    return findings


def missing_scripts(loaded: Sequence[LoadedEnvironment], folder: Path) -> list[Finding]:
    """Find lifecycle scripts that an environment names and ``folder`` does not hold; none where it is no folder."""
    if not folder.is_dir():
        return []
    scripts = sorted(path.name for path in folder.glob("*.sh"))
    findings = []
    for each in loaded:
        for index, group in enumerate(each.environment.hyperpod.instance_groups):
            key, script = group.script
            if (folder / script).is_file():
                continue
            path = f"hyperpod.instance_groups[{index}].{key}"
            near = closest(script, scripts)
            fix = f"did you mean {near}?" if near else f"write it, or name one of {', '.join(scripts) or 'your own'}"
            findings.append(
                Finding(
                    severity=Severity.ERROR,
                    message=f'must be a script in {folder.name}/, got "{script}"; {fix}',
                    path=path,
                    file=each.file,
                    line=each.line_of(path),
                    rule="lifecycle_script_is_there",
                )
            )
    return findings


def plans_file(environment_file: Path) -> Path:
    """Give the file beside an environment file that holds its recorded plans, whether it exists or not."""
    return environment_file.with_name(f"{environment_file.stem}{PLANS_SUFFIX}")


def quotas_file(environment_file: Path) -> Path:
    """Give the file beside an environment file that holds its recorded quotas, whether it exists or not."""
    return environment_file.with_name(f"{environment_file.stem}{QUOTAS_SUFFIX}")


def _recorded_plans(
    path: Path, environment: Environment, source: Source, today: date
) -> tuple[RecordedPlans | None, list[Finding]]:
    record = plans_file(path)
    if not os.path.lexists(record):
        return None, []
    from hyperpod_cdk.config import record_file, recorded_plans  # noqa: PLC0415 - most environments have no record

    file = _shown(record)
    try:
        recorded = recorded_plans.read_record(record, file=file, name=path.stem)
    except record_file.RecordError as error:
        return None, [error.finding]
    found = recorded_plans.record_findings(environment, recorded, file=file, name=path.stem, today=today)
    return recorded, [
        replace(each, rule=rule)
        if isinstance(each, Finding)
        else _finding(source, each.severity, each.path, each.message, rule)
        for rule, each in found
    ]


def _recorded_quotas(path: Path, environment: Environment) -> tuple[RecordedQuotas | None, list[Finding]]:
    record = quotas_file(path)
    if not os.path.lexists(record):
        return None, []
    from hyperpod_cdk.config import record_file, recorded_quotas  # noqa: PLC0415 - as above

    file = _shown(record)
    try:
        recorded = recorded_quotas.read_record(record, file=file, name=path.stem)
        recorded_quotas.require_own(environment, recorded, file=file, name=path.stem)
    except record_file.RecordError as error:
        return None, [error.finding]
    return recorded, []


def _shared(each: LoadedEnvironment, other: LoadedEnvironment, path: str, name: str, place: str) -> Finding:
    return Finding(
        severity=Severity.ERROR,
        message=f'must be unique among {place}, got "{name}" as in {other.file}; rename one of the two',
        path=path,
        file=each.file,
        line=each.line_of(path),
        rule="environment_names_are_unique",
    )


def _read(path: Path, file: str) -> str:
    try:
        if path.is_dir():
            raise _refused(file, "is a folder; name the file itself", "readable")
        if path.exists() and not path.is_file():
            raise _refused(file, "is no regular file; name a file", "readable")
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise _refused(file, "is not there; make it with 'hyperpod-cdk init'", "readable") from None
    except OSError as error:
        raise _refused(
            file, f"cannot be read: {error.strerror or error}; check its name and its permissions", "readable"
        ) from None
    if len(raw) > MAX_BYTES:
        raise _too_large(file, path.stat().st_size)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise _refused(
            file, f"is not UTF-8 text: byte 0x{raw[error.start]:02x}; save it as UTF-8", "encoding", line=line
        ) from None


def _checked_size(text: str, file: str) -> str:
    size = len(text.encode("utf-8", "replace"))
    if size > MAX_BYTES:
        raise _too_large(file, size)
    return text.removeprefix("\ufeff")


def _too_large(file: str, size: int) -> EnvironmentFileError:
    return _refused(
        file,
        f"must have at most {MAX_BYTES} bytes, got {size}; an environment file is a page of text: name the right file",
        "file_size",
    )


def _refused(file: str, message: str, rule: str, *, line: int | None = None) -> EnvironmentFileError:
    return EnvironmentFileError([Finding(severity=Severity.ERROR, message=message, file=file, line=line, rule=rule)])


def _finding(source: Source, severity: Severity, path: tuple[str | int, ...], message: str, rule: str) -> Finding:
    return Finding(
        severity=severity,
        message=message,
        path=render_path(path),
        file=source.file,
        line=source.line_of(path),
        rule=rule,
    )


def _once(findings: Iterable[Finding]) -> list[Finding]:
    """Leave out what two rules say in the same words about the same place."""
    first: dict[tuple[str, str], Finding] = {}
    for finding in findings:
        first.setdefault((finding.path, finding.message), finding)
    return list(first.values())


def _tidied(findings: Iterable[Finding]) -> list[Finding]:
    return [replace(each, message=_tidy(each.message), path=_tidy(each.path)) for each in findings]


def _tidy(text: str) -> str:
    """Keep a finding on one line, however the value it shows was written."""
    line = _CONTROL.sub(lambda match: f"\\x{ord(match.group()):02x}", text)
    if len(line) <= _LONGEST_MESSAGE:
        return line
    half = _LONGEST_MESSAGE // 2
    return f"{line[:half]} ... {line[-half:]}"


def _shown(path: Path) -> str:
    """Give the path as users know it: from the folder they are in."""
    try:
        shown = path.resolve().relative_to(Path.cwd().resolve())
    except (OSError, ValueError):
        shown = path
    return _tidy(str(shown))
