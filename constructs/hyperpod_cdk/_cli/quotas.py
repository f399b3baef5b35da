"""The commands ``quotas show`` and ``quotas request``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from hyperpod_cdk._cli.common import (
    EnvironmentArgument,
    FormatOption,
    ProjectOption,
    StrictOption,
    aws_errors,
    environment_file,
    finish,
    loaded_environment,
    root_of,
    usage,
)
from hyperpod_cdk._cli.output import Format
from hyperpod_cdk.catalog.sentences import plural

if TYPE_CHECKING:
    from hyperpod_cdk._cli.quota_requests import Tools

app = typer.Typer(
    help="Show the quotas of the account, and request increases.", no_args_is_help=True, rich_markup_mode=None
)


@app.command()
def show(
    context: typer.Context,
    environment: EnvironmentArgument,
    *,
    record: Annotated[
        bool,
        typer.Option("--record", help="Also write the quotas to a file next to ENV's file, for reviews without AWS."),
    ] = False,
    strict: StrictOption = False,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Show the quotas that ENV needs, what others use of them, and the largest cluster that they allow today.

    Exit code 1 if a quota is too low, or if --record could not read a quota (the old record is then retained). If a
    quota or its usage could not be read completely, "passed" in the JSON output is null, and with --strict the exit
    code is 1.
    """
    from hyperpod_cdk._cli import quota_record, quota_report  # noqa: PLC0415 - 'schema --help' needs no rich and no checks

    tools = _tools(context)
    file = environment_file(environment, root_of(project))
    loaded = loaded_environment(file, output=output, with_record=not record)
    with aws_errors():
        shown = quota_report.show(loaded, tools.open_aws(loaded))
    written = quota_record.record(file, loaded, shown.compared, today=tools.now().date()) if record else None
    quota_report.print_shown(shown, output=output, written=written)
    finish(passed=shown.passed, strict=strict)


@app.command()
def request(
    context: typer.Context,
    environment: EnvironmentArgument,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Send the requests without confirmation.")] = False,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Request increases of the quotas that are too low for ENV.

    The requested value is what ENV needs, what others use, and room for the replacement of nodes. The command shows
    the requests and asks for confirmation before it sends them. A quota with an open request gets no second
    request; the open one is shown, with its age and its support case. Exit code 1 if a quota cannot be requested or
    could not be read.
    """
    from hyperpod_cdk._cli import quota_report, quota_requests  # noqa: PLC0415 - as in show

    loaded = loaded_environment(environment_file(environment, root_of(project)), output=output)
    tools = _tools(context)
    with aws_errors():
        aws = tools.open_aws(loaded)
        plan = quota_requests.plan(loaded.environment, aws, called=loaded.called)
    count = len(plan.wanted)
    is_shown = output is Format.TEXT and count > 0 and not yes
    if is_shown:
        quota_report.print_plan(plan, now=tools.now())
    if count and not yes:
        increases = f"{count} {plural(count, 'increase')}"
        if tools.confirm is None or output is Format.JSON:
            usage(f"would request {increases}, but there is no terminal to ask for confirmation; add --yes")
        if not tools.confirm(f"request {increases} from AWS?"):
            print("nothing was requested", file=sys.stderr)
            return
    sent = quota_requests.send(plan, aws)
    quota_report.print_sent(plan, sent, now=tools.now(), output=output, with_plan=not is_shown)
    # a user who requests increases must know that other quotas could not be compared
    finish(passed=quota_report.plan_passed(plan, sent), strict=True)


def _tools(context: typer.Context) -> Tools:
    from hyperpod_cdk._cli.quota_requests import Tools  # noqa: PLC0415 - as in show

    return context.obj if isinstance(context.obj, Tools) else Tools.for_people()
