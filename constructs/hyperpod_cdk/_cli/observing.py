"""The command ``observe``: differences between a real account and this project's assumptions about AWS."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hyperpod_cdk._cli.common import (
    EnvironmentArgument,
    FormatOption,
    ProjectOption,
    StrictOption,
    TrustedOption,
    finish,
    os_errors,
)
from hyperpod_cdk._cli.living import print_skipped
from hyperpod_cdk._cli.output import Format, print_json
from hyperpod_cdk._cli.plans import write_atomically
from hyperpod_cdk._cli.review import HeadOption
from hyperpod_cdk._cli.transitions import head_of, opened


def observe(
    context: typer.Context,
    environment: EnvironmentArgument,
    *,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="JSON file to write the bundle to.")] = None,
    head: HeadOption = None,
    iam_policy: Annotated[
        bool, typer.Option("--iam-policy", help="Only print the read-only IAM policy that the command needs, and exit.")
    ] = False,
    strict: StrictOption = False,
    trusted: TrustedOption = False,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Compare a deployed environment with this project's assumptions about AWS. Read only.

    The bundle contains how long resources took, which members and states AWS's answers have, which defaults AWS
    fills in, what updates did, and how failures are worded. It does not contain names, IDs, ARNs, addresses or
    tags. Exit code 1 if something is different. What could not be read is skipped: "passed" in the JSON output is
    then null, and with --strict the exit code is 1.
    """
    from datetime import UTC, datetime  # noqa: PLC0415 - 'observe --help' need not load it

    from hyperpod_cdk.checks.policy import policy_of  # noqa: PLC0415 - as above

    if iam_policy:
        print_json(policy_of("observe"))
        return
    from hyperpod_cdk.living.observing import pages  # noqa: PLC0415 - as above
    from hyperpod_cdk.living.observing.observe import observe as observed  # noqa: PLC0415 - as above
    from hyperpod_cdk.living.pages import as_json  # noqa: PLC0415 - as above

    with head_of(environment, project, head=head, trusted=trusted) as new:
        bundle = observed(opened(context, new)(), new.assembly, now=datetime.now(UTC))
    if out is not None:
        with os_errors(out):
            write_atomically(out, as_json(bundle))
    if output is Format.JSON:
        typer.echo(as_json(bundle), nl=False)
    else:
        typer.echo(pages.text(bundle), nl=False)
        print_skipped(bundle.skipped)
    if out is not None:
        typer.echo(f"wrote {out}", err=True)
    finish(passed=bundle.passed, strict=strict)
