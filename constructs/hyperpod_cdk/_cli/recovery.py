"""The verb ``recover``: what stands in a state that takes no deployment, why, and the way out."""

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
        bool, typer.Option("--plan", help="Only tell what stands, why, and the way out; changes nothing.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Ask nothing, for pipelines: refused where a way needs a person.")
    ] = False,
    head: HeadOption = None,
    trusted: TrustedOption = False,
    project: ProjectOption = None,
    output: Annotated[Format, typer.Option("--format", help="How --plan is written.")] = Format.TEXT,
) -> None:
    """Bring the environment's stacks back into a state that takes a deployment, naming what failed first and where.

    Rolls back, continues a rollback, deletes to the end, and deletes change sets that nobody executed, each as it was
    shown. What holds data or nodes goes only, and a resource is skipped or left behind only, with the environment's
    name typed. Exit code 1 where nobody agrees, a way fails, none is known, or a stack is somebody else's.
    """
    from hyperpod_cdk.transitions import pages  # noqa: PLC0415 - 'recover --help' need not load it
    from hyperpod_cdk.transitions.model import Way  # noqa: PLC0415 - as above
    from hyperpod_cdk.transitions.recovering import Recovering  # noqa: PLC0415 - as above

    if output is Format.JSON and not only_plan:
        usage("--format json is for --plan")
    if yes and only_plan:
        usage("--yes and --plan: give one of them; --plan changes nothing")
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
