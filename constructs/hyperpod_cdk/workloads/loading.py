"""Reads and checks a job file and options: results in a job that fits its environment, or in all of its errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hyperpod_cdk.catalog.sentences import Advice, Removal, Setting, by_option, in_words_of
from hyperpod_cdk.config import EnvironmentFileError, LoadedEnvironment, documents
from hyperpod_cdk.config.documents import DocumentError, Said
from hyperpod_cdk.config.source import DataPath, Source, Wording, parse_path, render_path
from hyperpod_cdk.findings import Finding, Severity
from hyperpod_cdk.workloads import rules
from hyperpod_cdk.workloads.job import Job, job_model
from hyperpod_cdk.workloads.plan import plan
from hyperpod_cdk.workloads.rules.book import Context

WORDING = Wording(
    noun="job",
    a_file="a job file",
    example="kind: nccl",
    when_empty="write at least kind and group, and for training name, image and command",
    when_missing="write it, or name another; 'job render --group GROUP --kind nccl' needs none",
)

_IN_MEASURE = {
    "collectives": "--collective",
    "min_bytes": "--min-bytes",
    "max_bytes": "--max-bytes",
    "iterations": "--iterations",
    "pairs": "--pairs",
    "diagnostic_level": "--diagnostic-level",
}
"""Overrides of fields in ``measure``, with their options; the options of other fields have the name of the field."""


class JobFileError(EnvironmentFileError):
    """A job is refused; ``findings`` are all its errors, sorted by place, and its warnings.

    ``file`` is the job file as shown in findings; empty without a file.
    """


@dataclass(frozen=True)
class LoadedJob:
    """A valid job for its environment, with kind, group and name filled in, and its ``warnings``.

    ``file`` is the job file as shown in findings; empty if the job consists only of options.
    """

    job: Job
    warnings: tuple[Finding, ...]
    file: str
    _source: Source = field(repr=False, compare=False)
    _options: Mapping[DataPath, str] = field(repr=False, compare=False)

    def line_of(self, path: str) -> int | None:
        """Return the line of a path such as ``volumes[1].claim``; for a missing key, the line of its nearest parent.

        Returns None without a file, for a value from an option, and if ``path`` is not a valid path.
        """
        steps = parse_path(path)
        if not self.file or steps is None or _option_of(steps, self._options) is not None:
            return None
        return self._source.line_of(steps)


def load_job(
    path: Path | None,
    *,
    environment: LoadedEnvironment,
    overrides: Mapping[str, object] | None = None,
    text: str | None = None,
) -> LoadedJob:
    """Read, check and resolve a job for ``environment``; ``text`` is read in place of the file's content.

    If ``path`` is None, the job consists only of ``overrides``: fields of a job by name, as plain data, and fields of
    its measurement. They take precedence over the file. Findings about an override have its option (``--nodes``) as
    their place, without file and line.

    Raises JobFileError with all errors of the job.
    """
    try:
        source = Source(file="", data={}) if path is None else documents.open_source(path, WORDING, text=text)
    except DocumentError as error:
        raise JobFileError(error.findings) from None
    options = dict(_overridden(source, overrides or {}))
    job, said = documents.validated(job_model(), source)
    context = Context(environment.environment, job, has_file=path is not None)
    said += [
        Said(problem.severity, problem.path, problem.message, rule.name) for rule, problem in rules.problems(context)
    ]
    findings = documents.in_order([*source.findings, *(_found(each, source, options) for each in said)])
    if any(finding.severity is Severity.ERROR for finding in findings):
        raise JobFileError(findings, file=source.file)
    named = job if job.name else job.model_copy(update={"name": plan(environment.environment, job).name})
    return LoadedJob(job=named, warnings=tuple(findings), file=source.file, _source=source, _options=options)


def _overridden(source: Source, overrides: Mapping[str, object]) -> list[tuple[DataPath, str]]:
    """Put overrides into the data, and return the place and the option of each."""
    options: list[tuple[DataPath, str]] = []
    data = source.data
    assert isinstance(data, dict)  # noqa: S101 - open_source returns nothing else
    for name, value in overrides.items():
        if name not in Job.model_fields and name not in _IN_MEASURE:
            raise ValueError(f'must be a field of a job or one of {", ".join(_IN_MEASURE)}, got "{name}"')
        plain = list(value) if isinstance(value, tuple) else value
        if name in _IN_MEASURE:
            if "measure" not in data:
                data["measure"] = {}
                options.append((("measure",), _IN_MEASURE[name]))
            measure = data["measure"]
            if isinstance(measure, dict):  # otherwise it is refused unchanged
                measure[name] = plain
                options.append((("measure", name), _IN_MEASURE[name]))
        else:
            data[name] = plain
            options.append(((name,), f"--{name.replace('_', '-')}"))
    for place, _ in options:
        for known in [each for each in source.texts if each[: len(place)] == place]:
            del source.texts[known]
    return options


def _found(said: Said, source: Source, options: Mapping[DataPath, str]) -> Finding:
    option = _option_of(said.path, options)
    if option is None and source.file:
        return said.found_in(source)
    path = option or (f"--{said.path[0]}" if said.path in _OPTIONS else render_path(said.path))

    def with_options(advice: Advice) -> str:
        # a key of the file is shown as an option if there is no file or if the option is wrong
        if isinstance(advice, Setting | Removal) and (advice.key,) in (options if source.file else _OPTIONS):
            return by_option(f"--{advice.key}")(advice)
        return str(advice)

    return Finding(severity=said.severity, message=in_words_of(said.message, with_options), path=path, rule=said.rule)


_OPTIONS: frozenset[DataPath] = frozenset(
    (name,) for name in ("kind", "group", "name", "nodes", "team", "namespace", "priority", "image")
)
"""Fields with a command-line option: without a file, findings about them refer to the option."""


def _option_of(path: DataPath, options: Mapping[DataPath, str]) -> str | None:
    places = [place for place in options if path[: len(place)] == place]
    return options[max(places, key=len)] if places else None
