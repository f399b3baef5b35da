"""The ``hyperpod-cdk`` command: every verb is one call into a package below."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from hyperpod_cdk._cli.output import Checked, Format, print_checked, print_json

if TYPE_CHECKING:
    from rich.console import Console

FINDINGS = 1
USAGE = 2

app = typer.Typer(
    name="hyperpod-cdk",
    help="SageMaker HyperPod clusters on EKS from one page of YAML per environment.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
charts = typer.Typer(help="The HyperPod dependency chart.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(charts, name="charts")

FormatOption = Annotated[Format, typer.Option("--format", help="How the answer is written.")]
ProjectOption = Annotated[
    Path | None,
    typer.Option("--project", help="Root of the project. Default: the folder with environments/ above this one."),
]


def main() -> None:
    """Run the command; what the user did wrong is one sentence and exit code 2, never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # a finding shows what the file says, in letters that the terminal's encoding may not have
            stream.reconfigure(errors="backslashreplace")
    app(prog_name="hyperpod-cdk")


@app.command()
def validate(
    environments: Annotated[
        list[str] | None, typer.Argument(metavar="[ENV]...", help="Names or files. Default: all of environments/.")
    ] = None,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Check environment files: exit code 0 where all pass, 1 where one is refused."""
    from hyperpod_cdk.config import (  # noqa: PLC0415 - 'schema --help' need not build the models
        EnvironmentFileError,
        LoadedEnvironment,
        environment_files,
        load_environment,
        missing_scripts,
        shared_names,
    )
    from hyperpod_cdk.config.loading import SCRIPTS  # noqa: PLC0415 - as above

    root = _root(project)
    if environments:
        files = [_file(name, root) for name in environments]
    else:
        files = environment_files(root)
        if not files:
            _usage(f"no environment in {root / 'environments'}; make one with 'hyperpod-cdk init'")
    checked: list[Checked] = []
    loaded: list[LoadedEnvironment] = []
    for file in files:
        try:
            each = load_environment(file)
        except EnvironmentFileError as error:
            checked.append(Checked(error.findings[0].file, error.findings))
        else:
            loaded.append(each)
            checked.append(Checked(each.file, each.warnings))
    beyond = [*shared_names(loaded), *missing_scripts(loaded, root / SCRIPTS)]
    checked = [
        Checked(each.file, (*each.findings, *(finding for finding in beyond if finding.file == each.file)))
        for each in checked
    ]
    print_checked(checked, output=output)
    if not all(each.passed for each in checked):
        raise typer.Exit(FINDINGS)


@app.command()
def schema(
    out: Annotated[Path | None, typer.Option("--out", help="File to write. Default: standard output.")] = None,
) -> None:
    """Write the JSON Schema of the environment file, for editors."""
    from hyperpod_cdk.config.schema import schema_text  # noqa: PLC0415 - building the models takes most of the time

    text = schema_text()
    if out is None:
        sys.stdout.write(text)
        return
    with _os_errors(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, encoding="utf-8", newline="\n")
    print(f"wrote {out}", file=sys.stderr)


@app.command()
def init(
    name: Annotated[str, typer.Argument(help="Name of the environment.")],
    *,
    region: Annotated[str, typer.Option("--region", help="AWS region.", prompt=True)],
    account: Annotated[str, typer.Option("--account", help="AWS account ID, 12 digits.", prompt=True)],
    zone: Annotated[
        list[str] | None,
        typer.Option("--zone", help="AZ ID, at least two, that of the workers first. Default: the region's first two."),
    ] = None,
    instance_type: Annotated[
        str | None, typer.Option("--instance-type", help="Type of the workers. Default: a system group only.")
    ] = None,
    count: Annotated[int, typer.Option("--count", help="How many workers.")] = 2,
    capacity: Annotated[
        str | None, typer.Option("--capacity", help="Of the workers: on_demand, spot or training_plan.")
    ] = None,
    training_plan_arn: Annotated[
        str | None, typer.Option("--training-plan-arn", help="The plan, for capacity training_plan.")
    ] = None,
    team: Annotated[str | None, typer.Option("--team", help="A first team, which gets all the workers.")] = None,
    lustre: Annotated[bool, typer.Option("--lustre/--no-lustre", help="An FSx for Lustre file system too.")] = False,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Write environments/NAME.yaml; the file passes 'validate', and an existing one is never overwritten."""
    from hyperpod_cdk._cli.scaffold import Answers, ScaffoldError, write_environment  # noqa: PLC0415 - as in validate

    answers = Answers(
        name=name,
        account=account,
        region=region,
        zones=tuple(zone or ()),
        instance_type=instance_type,
        count=count,
        capacity=capacity,
        training_plan_arn=training_plan_arn,
        team=team,
        lustre=lustre,
    )
    root = _root(project)
    try:
        with _os_errors(root):
            path = write_environment(answers, root)
    except ScaffoldError as error:
        _usage(str(error))
    steps = [f"hyperpod-cdk validate {name}", f"hyperpod-cdk rehearse {name}", "hyperpod-cdk charts pull"]
    if output is Format.JSON:
        print_json({"file": str(path), "next": [*steps, f"cdk deploy '{name}/*' -c env={name}"]})
        return
    print(f"wrote {path}")
    print(f"next: read it, then '{steps[0]}' and '{steps[1]}';")
    print(f"      for a real deployment '{steps[2]}' and 'cdk deploy \"{name}/*\" -c env={name}'")


@app.command()
def rehearse(
    environment: Annotated[str, typer.Argument(metavar="ENV", help="Name or file of the environment.")],
    *,
    account_file: Annotated[
        Path | None,
        typer.Option("--account-file", help="What the account owns: quotas, plans. Default: what it takes."),
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave the embedded AWS up for other clients until Enter.")
    ] = False,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Deploy the environment for real, without an account: the CDK CLI against an AWS in this machine."""
    from hyperpod_cdk.config import EnvironmentFileError  # noqa: PLC0415 - as in validate

    root = _root(project)
    file = _file(environment, root)
    if account_file is not None and not account_file.is_file():
        _usage(f"--account-file: no file {account_file}")
    with _extra("rehearsal"):
        from hyperpod_cdk.rehearsal import driver, report  # noqa: PLC0415 - an optional extra, and slow to import
        from hyperpod_cdk.rehearsal.cdk_cli import ToolMissingError  # noqa: PLC0415 - as above
        from hyperpod_cdk.rehearsal.embedded.account import AccountFileError  # noqa: PLC0415 - as above
        from hyperpod_cdk.rehearsal.process import EmbeddedAwsError  # noqa: PLC0415 - as above
    console = _console(stderr=output is Format.JSON)
    try:
        done = driver.rehearse(file, project=root, account_file=account_file, keep=keep, console=console)
    except EnvironmentFileError as error:
        print_checked([Checked(error.findings[0].file, error.findings)], output=output)
        raise typer.Exit(FINDINGS) from None
    except (AccountFileError, ToolMissingError) as error:
        _usage(str(error))
    except EmbeddedAwsError as error:
        print(str(error), file=sys.stderr)
        raise typer.Exit(FINDINGS) from None
    if output is Format.JSON:
        print_json(done.as_dict())
    else:
        report.print_report(done, console)
    if not done.passed:
        raise typer.Exit(FINDINGS)


@charts.command()
def pull(project: ProjectOption = None, output: FormatOption = Format.TEXT) -> None:
    """Fetch the HyperPod dependency chart at the commit of charts/charts.lock.yaml and verify it."""
    from hyperpod_cdk import charts as chart_files  # noqa: PLC0415 - other verbs need no git and no helm

    root = _root(project)
    try:
        folder = chart_files.pull(root, progress=lambda line: print(line, file=sys.stderr))
    except chart_files.ChartError as error:
        print(str(error), file=sys.stderr)
        raise typer.Exit(FINDINGS) from None
    if output is Format.JSON:
        print_json({"chart": str(folder)})
    else:
        print(f"chart in {folder}")


def _root(project: Path | None) -> Path:
    """Give the project's root: as told, else the nearest folder above that holds environments/ or cdk.json."""
    if project is not None:
        if not project.is_dir():
            _usage(f"--project: no folder {project}")
        return project
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "environments").is_dir() or (folder / "cdk.json").is_file():
            return folder
    return here


def _file(name: str, root: Path) -> Path:
    from hyperpod_cdk.config import UsageError, resolve_environment_file  # noqa: PLC0415 - as in validate

    try:
        return resolve_environment_file(name, root)
    except UsageError as error:
        _usage(str(error))


def _usage(message: str) -> NoReturn:
    print(message, file=sys.stderr)
    raise typer.Exit(USAGE)


@contextmanager
def _os_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        _usage(f"cannot write {error.filename or path}: {error.strerror or error}")


@contextmanager
def _extra(name: str) -> Iterator[None]:
    """Say which extra to install where a package that it brings is not there."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("hyperpod_cdk"):
            raise
        _usage(f"needs the package {error.name}; install it with pip install 'hyperpod-cdk[{name}]'")


def _console(**options: Any) -> Console:
    from rich.console import Console  # noqa: PLC0415 - only verbs with progress pay for rich

    return Console(**options)
