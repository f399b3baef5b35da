"""The command ``recover``: stacks in a state that blocks a deployment, the cause, and the fix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hyperpod_cdk._cli.common import (
    EnvironmentArgument,
    ProjectOption,
    TrustedOption,
    finish,
    usage,
)
from hyperpod_cdk._cli.output import Format
from hyperpod_cdk._cli.review import HeadOption
from hyperpod_cdk._cli.transitions import Terminal, head_of, opened

if TYPE_CHECKING:
    from hyperpod_cdk.transitions.model import Recovery


def recover(
    context: typer.Context,
    environment: EnvironmentArgument,
    *,
    only_plan: Annotated[
        bool,
        typer.Option(
            "--plan", help="Only show the state of the stacks, its cause and the solution, and change nothing."
        ),
    ] = False,
    yes: Annotated[
        bool,
        typer.Option("--yes", help="Do not ask for confirmation, for pipelines. Refused if a solution needs a person."),
    ] = False,
    head: HeadOption = None,
    trusted: TrustedOption = False,
    project: ProjectOption = None,
    output: Annotated[Format, typer.Option("--format", help="Output format of --plan.")] = Format.TEXT,
) -> None:
    """Bring failed stacks back into a state that allows a deployment, and show what failed first.

    The command rolls back, continues a rollback, finishes a deletion, and deletes change sets that nobody executed,
    each exactly as shown. It deletes resources that hold data or nodes, and skips a resource or leaves it behind,
    only after you type the name of the environment. Exit code 1 if nobody confirms, a solution fails or is not
    known, or a stack belongs to others.
    """
    from hyperpod_cdk.transitions import pages  # noqa: PLC0415 - 'recover --help' need not load it
    from hyperpod_cdk.transitions.model import Way  # noqa: PLC0415 - as above
    from hyperpod_cdk.transitions.recovering import Recovering  # noqa: PLC0415 - as above

    if output is Format.JSON and not only_plan:
        usage("--format json is for --plan")
    if yes and only_plan:
        usage("--yes and --plan: use only one of them; --plan changes nothing")
    with head_of(environment, project, head=head, trusted=trusted) as new:
        run = Recovering(aws=opened(context, new), head=new, person=Terminal(is_there=not yes), show=_show)
        if not only_plan:
            finish(passed=run.run(), strict=False)
            return
        told = run.read()
    typer.echo(pages.as_json(told) if output is Format.JSON else pages.recovery_text(told), nl=False)
    is_lost = any(each.way is Way.NONE_KNOWN for each in told.stacks)
    finish(passed=not told.refusals and not is_lost, strict=False)


def _show(told: Recovery) -> None:
    from hyperpod_cdk.transitions import pages  # noqa: PLC0415 - as above

    typer.echo(pages.recovery_text(told), nl=False)
