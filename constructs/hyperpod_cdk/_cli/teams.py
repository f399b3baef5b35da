"""The command ``teams cost``: the share of each team in the cost of the nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hyperpod_cdk._cli.common import (
    EnvironmentArgument,
    FormatOption,
    ProjectOption,
    StrictOption,
    environment_file,
    finish,
    loaded_environment,
    root_of,
    usage,
)
from hyperpod_cdk._cli.living import print_skipped
from hyperpod_cdk._cli.output import Format

app = typer.Typer(help="Show the cost of the teams in task governance.", no_args_is_help=True, rich_markup_mode=None)

_LONGEST = 50_000_000


@app.callback()
def teams() -> None:
    """The teams of task governance."""


@app.command()
def cost(
    environment: EnvironmentArgument,
    *,
    used: Annotated[
        Path | None,
        typer.Option("--usage", metavar="FILE", help="Summary of HyperPod's usage report, a CSV file."),
    ] = None,
    strict: StrictOption = False,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Divide the cost of the nodes among the teams, by quota and by usage. Does not use AWS.

    A training plan costs its upfront fee, as recorded by 'plans record'; other nodes cost their list price per
    month. The shares of each pool of nodes add up to its cost, including the share that is in nobody's quota.
    Without --usage, the usage of the teams is skipped. A cost without a known price remains unknown: "passed" in
    the JSON output is then null, and with --strict the exit code is 1.
    """
    from hyperpod_cdk.catalog.prices import PricesError, of_project  # noqa: PLC0415 - 'teams cost --help' need not load it
    from hyperpod_cdk.file_reading import read_text  # noqa: PLC0415 - as above
    from hyperpod_cdk.fleet import pages  # noqa: PLC0415 - as above
    from hyperpod_cdk.fleet.teams import UsageError, read_usage, teams_cost  # noqa: PLC0415 - as above
    from hyperpod_cdk.living.pages import as_json  # noqa: PLC0415 - as above

    root = root_of(project)
    loaded = loaded_environment(environment_file(environment, root), output=output)
    try:
        read = None if used is None else read_usage(read_text(used, most=_LONGEST), where=str(used))
        found = teams_cost(loaded, of_project(root), read)
    except (PricesError, UsageError) as error:
        usage(str(error))
    except (OSError, UnicodeDecodeError) as error:
        usage(f"--usage: cannot read {used}: {getattr(error, 'strerror', None) or error}")
    if output is Format.JSON:
        typer.echo(as_json(found), nl=False)
    else:
        typer.echo(pages.teams_text(found), nl=False)
        print_skipped(found.skipped)
    finish(passed=found.passed, strict=strict)
