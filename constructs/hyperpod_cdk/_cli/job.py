"""The ``job`` commands: manifests for an instance group, simulated admission by the queues, and test results."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext, redirect_stdout
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from hyperpod_cdk._cli.common import (
    FINDINGS,
    USAGE,
    EnvironmentArgument,
    FormatOption,
    ProjectOption,
    environment_file,
    loaded_document,
    loaded_environment,
    os_errors,
    root_of,
    usage,
)
from hyperpod_cdk._cli.output import Format, painted_word, table
from hyperpod_cdk._cli.plans import write_atomically
from hyperpod_cdk._cli.words import groups
from hyperpod_cdk.file_reading import open_log

if TYPE_CHECKING:
    from hyperpod_cdk.config import LoadedEnvironment
    from hyperpod_cdk.workloads.admission.simulation import Admission, Amount, Decision
    from hyperpod_cdk.workloads.loading import LoadedJob

app = typer.Typer(
    help="Create and check jobs for an instance group: manifests, admission, test results.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_STANDARD_INPUT = "-"


class Kind(StrEnum):
    """The kinds of jobs that can be rendered, as in the job file."""

    EFA_INFO = "efa-info"
    NCCL = "nccl"
    DCGM = "dcgm"
    NEURON_INFO = "neuron-info"
    NCCOM = "nccom"
    PYTORCH = "pytorch"
    HYPERPOD_PYTORCH = "hyperpod-pytorch"


@app.command()
def render(
    environment: EnvironmentArgument,
    *,
    job: Annotated[
        Path | None,
        typer.Option("--job", metavar="FILE", help="Job file. Default: a test of the group, from the options."),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            "--group",
            autocompletion=groups,
            help="Instance group.",
        ),
    ] = None,
    kind: Annotated[
        Kind | None, typer.Option("--kind", help="What to run. Training kinds need a job file.", show_choices=True)
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="Name of the job.")] = None,
    nodes: Annotated[
        int | None, typer.Option("--nodes", help="Number of nodes. Default: all nodes of the group.")
    ] = None,
    team: Annotated[
        str | None, typer.Option("--team", help="Team whose namespace, queue and quota the job uses.")
    ] = None,
    namespace: Annotated[str | None, typer.Option("--namespace", help="Namespace, for a job without a team.")] = None,
    priority: Annotated[str | None, typer.Option("--priority", help="Priority class of the environment.")] = None,
    image: Annotated[str | None, typer.Option("--image", help="Container image.")] = None,
    collective: Annotated[
        list[str] | None,
        typer.Option(
            "--collective",
            help="Collective operation that nccl and nccom measure, for example all_reduce. Can be repeated.",
        ),
    ] = None,
    min_bytes: Annotated[
        int | None, typer.Option("--min-bytes", help="Smallest message size that nccl and nccom measure.")
    ] = None,
    max_bytes: Annotated[
        int | None,
        typer.Option("--max-bytes", help="Largest message size. Default: 16 GiB, less on GPUs with little memory."),
    ] = None,
    iterations: Annotated[
        int | None, typer.Option("--iterations", help="Number of repetitions of each message size.")
    ] = None,
    diagnostic_level: Annotated[
        int | None,
        typer.Option("--diagnostic-level", help="Diagnostic level for kind dcgm, 1 to 4; takes from seconds to hours."),
    ] = None,
    pairs: Annotated[
        bool, typer.Option("--pairs", help="Measure nodes in pairs, which shows which node is slow.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="YAML file to write. Default: standard output.")
    ] = None,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Write manifests for a job that fit the nodes, the team's queue and the claims. Needs no cluster.

    Options of the command override the job file. Exit code 1 if the job cannot run on the group or would never be
    admitted.
    """
    from hyperpod_cdk.workloads.manifests.manifest_yaml import to_yaml  # noqa: PLC0415 - '--help' need not build the models
    from hyperpod_cdk.workloads.manifests.render import manifests_of  # noqa: PLC0415 - as above
    from hyperpod_cdk.workloads.plan import plan  # noqa: PLC0415 - as above
    from hyperpod_cdk.workloads.submission import next_steps  # noqa: PLC0415 - as above

    overrides: dict[str, Any] = {
        "kind": None if kind is None else kind.value,
        "group": group,
        "name": name,
        "nodes": nodes,
        "team": team,
        "namespace": namespace,
        "priority": priority,
        "image": image,
        "collectives": tuple(collective) if collective else None,
        "min_bytes": min_bytes,
        "max_bytes": max_bytes,
        "iterations": iterations,
        "diagnostic_level": diagnostic_level,
        "pairs": pairs or None,
    }
    # standard output may be piped to kubectl and must not contain findings
    with redirect_stdout(sys.stderr) if output is Format.TEXT else nullcontext():
        loaded = loaded_environment(environment_file(environment, root_of(project)), output=output)
        found = _loaded_job(job, loaded, {key: value for key, value in overrides.items() if value is not None}, output)
    planned = plan(loaded.environment, found.job)
    manifests = manifests_of(planned)
    text = to_yaml(manifests)
    if out is not None:
        with os_errors(out):
            write_atomically(out, text)
    steps = next_steps(planned, manifests, file=_STANDARD_INPUT if out is None else str(out))
    if output is Format.JSON:
        from hyperpod_cdk._cli.answers import JobManifests, print_answer  # noqa: PLC0415 - text needs no models

        print_answer(
            JobManifests,
            {
                "manifests": list(manifests),
                "warnings": [warning.as_dict() for warning in found.warnings],
                "next": asdict(steps),
            },
        )
        return
    if out is None:
        sys.stdout.write(text)
    else:
        print(f"wrote {out}", file=sys.stderr)
    # not in the YAML, which is applied, committed and compared
    print("\n".join(steps.lines()), file=sys.stderr)


@app.command()
def admit(
    environment: EnvironmentArgument,
    jobs: Annotated[
        list[Path], typer.Argument(metavar="JOB", help="Job files or YAML manifests, in the order of their submission.")
    ],
    *,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Simulate how task governance admits jobs that are submitted to an idle cluster. Needs no cluster.

    The jobs are submitted one after the other. The simulation uses Kueue's rules and the quotas in the environment
    file. Exit code 1 if a job would never start.
    """
    from hyperpod_cdk.workloads.admission.simulation import Admission, ClusterModel  # noqa: PLC0415 - as above

    loaded = loaded_environment(environment_file(environment, root_of(project)), output=output)
    manifests = [(path, _manifests(path, loaded, output)) for path in jobs]
    admission = Admission(ClusterModel.of(loaded.environment))
    decisions: list[Decision] = []
    for path, each in manifests:
        try:
            decided = admission.submit(each)
        except ValueError as error:
            usage(f"{path}: {error}")
        if not decided:
            usage(f"{path}: must contain a job, got objects that no queue admits; omit it")
        decisions += decided
    if output is Format.JSON:
        from hyperpod_cdk._cli.answers import Admitted, print_answer  # noqa: PLC0415 - text needs no models

        print_answer(
            Admitted, {"decisions": [each.as_dict() for each in decisions], "running": list(admission.running)}
        )
    else:
        print("\n".join(_decided(decisions, admission)))
    if any(each.status == "never" for each in decisions):
        raise typer.Exit(FINDINGS)


@app.command()
def report(
    logs: Annotated[
        list[Path] | None, typer.Argument(metavar="LOG", help="Log files of test jobs. Default: standard input.")
    ] = None,
    *,
    instance_type: Annotated[
        str | None, typer.Option("--instance-type", help="Instance type that the test ran on. Default: from the log.")
    ] = None,
    nodes: Annotated[
        int | None, typer.Option("--nodes", min=1, help="Number of nodes that the test ran on. Default: from the log.")
    ] = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Also exit with code 1 if the log does not show the result. For pipeline gates."),
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="JSON file to write, including the evidence.")
    ] = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Read the log of nccl-tests, fi_info, nccom-test or dcgmi, and show pass or fail.

    It shows whether EFA or TCP was used, the bandwidth, and which pair of nodes is slow. Exit code 1 if a test
    fails, 2 if the log contains no test.
    """
    from hyperpod_cdk.workloads import report as reports  # noqa: PLC0415 - as above

    with ExitStack() as opened:
        streams = [(_shown(path), _lines(path, opened)) for path in logs or [Path(_STANDARD_INPUT)]]
        found = reports.parse_files(streams)
    try:
        judged = reports.judge(found, instance_type=instance_type, nodes=nodes)
    except ValueError as error:
        usage(f"--instance-type: {error}")
    evidence = reports.report_json(judged) if out is not None or output is Format.JSON else ""
    if out is not None:
        with os_errors(out):
            write_atomically(out, evidence)
    if output is Format.JSON:
        sys.stdout.write(evidence)
    else:
        width = shutil.get_terminal_size((80, 24)).columns if sys.stdout.isatty() else 80
        sys.stdout.write(reports.text(judged, width, paint=painted_word))
    if not judged.holds_a_test:
        raise typer.Exit(USAGE)
    if judged.verdict is reports.Verdict.FAIL or (strict and judged.verdict is not reports.Verdict.PASS):
        raise typer.Exit(FINDINGS)


def _lines(path: Path, opened: ExitStack) -> Iterator[bytes]:
    """Open a log and give its lines; - is standard input."""
    from hyperpod_cdk.workloads import report as reports  # noqa: PLC0415 - as above

    def refused(error: OSError) -> NoReturn:
        usage(f"cannot read {_shown(path) or 'standard input'}: {error.strerror or error}; name the log of one job")

    def lines() -> Iterator[bytes]:
        try:
            yield from reports.read_lines(stream)
        except OSError as error:
            refused(error)

    try:
        named = str(path) != _STANDARD_INPUT
        stream = opened.enter_context(open_log(path, most=reports.MOST_BYTES)) if named else sys.stdin.buffer
    except OSError as error:
        refused(error)
    return lines()


def _shown(path: Path) -> str:
    return "" if str(path) == _STANDARD_INPUT else str(path)


def _loaded_job(
    path: Path | None, environment: LoadedEnvironment, overrides: dict[str, Any], output: Format
) -> LoadedJob:
    """Read a job; prints its errors and exits 1 where it is refused. Warnings go to standard error."""
    from hyperpod_cdk.workloads.loading import load_job  # noqa: PLC0415 - as above

    return loaded_document(lambda: load_job(path, environment=environment, overrides=overrides), output=output)


def _manifests(path: Path, environment: LoadedEnvironment, output: Format) -> Sequence[Mapping[str, Any]]:
    """Return the manifests in a file of Kubernetes objects, or the manifests of a job file."""
    from hyperpod_cdk.workloads.admission.manifest_shape import read_documents  # noqa: PLC0415 - as above
    from hyperpod_cdk.workloads.manifests.render import render as rendered  # noqa: PLC0415 - as above

    # if the file is neither, the reader of job files reports the error
    documents = read_documents(path)
    return documents or rendered(environment.environment, _loaded_job(path, environment, {}, output).job)


def _decided(decisions: Sequence[Decision], admission: Admission) -> Iterator[str]:
    """Yield one line per job, the reason for each, and the jobs that run at the end if some were preempted."""
    rows = [("", "team", "own quota", "borrowed", "cluster after", "job")]
    rows += [
        (each.status, each.team or "-", _amounts(each.own), _amounts(each.borrowed), _percent(each), each.job)
        for each in decisions
    ]
    yield from table(rows)
    yield ""
    for each in decisions:
        yield f"{each.job}: {each.why}"
        for warning in each.warnings:
            yield f"warning {each.job}: {warning}"
    if any(each.preempted for each in decisions):
        yield f"running at the end: {', '.join(admission.running)}"
        if admission.waiting:
            yield f"waiting at the end: {', '.join(admission.waiting)}"


def _amounts(amounts: Sequence[Amount]) -> str:
    """Return only the accelerators among the amounts, or all amounts of a job without accelerators."""
    from hyperpod_cdk.workloads.nodes import is_accelerator  # noqa: PLC0415 - as above

    devices = [each for each in amounts if is_accelerator(each.resource)]
    if not devices:
        return ", ".join(str(each) for each in amounts) or "-"
    types = {each.instance_type for each in devices}
    return ", ".join(str(each) if len(types) > 1 else each.said for each in devices)


def _percent(decision: Decision) -> str:
    from hyperpod_cdk.workloads.nodes import is_accelerator  # noqa: PLC0415 - as above

    counted = [each for each in decision.after if each.percent is not None]
    told = [each for each in counted if is_accelerator(each.resource)] or counted
    if len(told) == 1:
        return f"{told[0].percent:g} %"
    return ", ".join(f"{each.percent:g} % of {each.resource}" for each in told) or "-"
