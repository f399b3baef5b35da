"""The verbs ``drift`` and ``status``: what stands in AWS beside what is written, and what its nodes do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from hyperpod_cdk._cli.common import (
    EnvironmentArgument,
    FormatOption,
    ProjectOption,
    StrictOption,
    TrustedOption,
    aws_errors,
    environment_file,
    finish,
    loaded_environment,
    root_of,
)
from hyperpod_cdk._cli.output import Format, painted_word, print_json
from hyperpod_cdk._cli.review import HeadOption
from hyperpod_cdk._cli.transitions import access_of, head_of, opened

if TYPE_CHECKING:
    from pathlib import Path

    from hyperpod_cdk.config import Environment
    from hyperpod_cdk.living.model import Unread


def drift(
    context: typer.Context,
    environment: EnvironmentArgument,
    *,
    head: HeadOption = None,
    iam_policy: Annotated[
        bool, typer.Option("--iam-policy", help="Only print the IAM policy that it needs, which reads only.")
    ] = False,
    strict: StrictOption = False,
    trusted: TrustedOption = False,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Compare AWS with the last deployment, reading only: what was changed beside the file, and what becomes of it.

    Of each difference: what was deployed, what the file says, what AWS has, and what the next deployment does about
    it. Exit code 1 where something differs. What could not be read is skipped: "passed" in JSON is then null, and with
    --strict the exit code is 1.
    """
    from hyperpod_cdk.checks.policy import policy_of  # noqa: PLC0415 - as below
    from hyperpod_cdk.living import pages  # noqa: PLC0415 - 'drift --help' need not load it
    from hyperpod_cdk.living.drift import drift as compared  # noqa: PLC0415 - as above
    from hyperpod_cdk.living.standing import read_living  # noqa: PLC0415 - as above

    if iam_policy:
        print_json(policy_of("drift"))
        return
    with head_of(environment, project, head=head, trusted=trusted) as new:
        aws = opened(context, new)()
        report = compared(aws, read_living(aws, new.assembly))
    if output is Format.JSON:
        typer.echo(pages.as_json(report), nl=False)
    else:
        typer.echo(pages.text(report), nl=False)
        print_skipped(report.skipped)
    finish(passed=report.passed, strict=strict)


def status(
    context: typer.Context,
    environment: EnvironmentArgument,
    *,
    iam_policy: Annotated[
        bool, typer.Option("--iam-policy", help="Only print the IAM policy that it needs, which reads only.")
    ] = False,
    strict: StrictOption = False,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Ask what the cluster does now: nodes wanted, running, failing and why, plans, file systems, events of a day.

    Exit code 1 where something fails or has ended. What could not be read is skipped: "passed" in JSON is then null,
    and with --strict the exit code is 1.
    """
    from datetime import UTC, datetime  # noqa: PLC0415 - 'status --help' need not load it

    from hyperpod_cdk.checks.policy import policy_of  # noqa: PLC0415 - as above
    from hyperpod_cdk.living import pages  # noqa: PLC0415 - as above
    from hyperpod_cdk.living.status import Wanted  # noqa: PLC0415 - as above
    from hyperpod_cdk.living.status import status as asked  # noqa: PLC0415 - as above

    if iam_policy:
        print_json(policy_of("status"))
        return
    stated = stated_of(environment, project, output)
    is_scaled = stated.hyperpod.autoscaling == "karpenter"
    wanted = Wanted(
        environment=stated.name,
        cluster=stated.hyperpod_cluster_name,
        counts={each.name: None if is_scaled and not each.count else each.count for each in stated.hyperpod.all_groups},
    )
    with aws_errors():
        aws = access_of(context).open(stated.region, stated.account)
    found = asked(aws, wanted, now=datetime.now(UTC))
    if output is Format.JSON:
        typer.echo(pages.as_json(found), nl=False)
    else:
        typer.echo(pages.status_text(found), nl=False)
        print_skipped(found.skipped)
    finish(passed=found.passed, strict=strict)


def stated_of(environment: str, project: Path | None, output: Format) -> Environment:
    """Read what the file says of an environment."""
    return loaded_environment(environment_file(environment, root_of(project)), output=output).environment


def print_skipped(skipped: Sequence[Unread]) -> None:
    """Print why something was not looked at, a line for each reason."""
    from hyperpod_cdk._cli.causes import Gap, causes  # noqa: PLC0415 - only where something is missing

    gaps = [Gap(what=each.what, reason=each.reason, action=each.action, said=each.aws_said) for each in skipped]
    for cause in causes(gaps):
        typer.echo(f"{painted_word('skipped')} {'; '.join(cause.what)}: {cause}")
