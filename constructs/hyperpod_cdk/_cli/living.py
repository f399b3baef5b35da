"""The commands ``drift`` and ``status``: AWS compared with the files, and the state of the nodes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final, NoReturn

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
    os_errors,
    root_of,
    usage,
)
from hyperpod_cdk._cli.output import Checked, Format, is_unread, painted_word, print_checked, print_json
from hyperpod_cdk._cli.plans import is_as_shown, write_atomically
from hyperpod_cdk._cli.review import Access, HeadOption, open_aws
from hyperpod_cdk._cli.transitions import Terminal, access_of, head_of, opened

if TYPE_CHECKING:
    from pathlib import Path

    from hyperpod_cdk.config import Environment, LoadedEnvironment
    from hyperpod_cdk.living.adopting import Adopted
    from hyperpod_cdk.living.model import Status, Unread
    from hyperpod_cdk.living.status import Wanted


EVERY_S: Final = 60


def drift(
    context: typer.Context,
    environment: EnvironmentArgument,
    *,
    head: HeadOption = None,
    iam_policy: Annotated[
        bool, typer.Option("--iam-policy", help="Only print the read-only IAM policy that the command needs, and exit.")
    ] = False,
    adopt: Annotated[
        bool,
        typer.Option(
            "--adopt", help="Write the current values from AWS into the file, if the file has a field for them."
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --adopt: write without confirmation.")] = False,
    strict: StrictOption = False,
    trusted: TrustedOption = False,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Compare AWS with the last deployment: what was changed outside the file. Read only.

    For each difference, it shows the deployed value, the value in the file, the value in AWS, and what the next
    deployment does about it. Exit code 1 if there is a difference. What could not be read is skipped: "passed" in the
    JSON output is then null, and with --strict the exit code is 1.

    --adopt shows the changes for the file, asks for confirmation, and lists differences for which the file has no
    field. The exit code is then 1 if such differences remain, or nobody confirms.
    """
    from hyperpod_cdk.checks.policy import policy_of  # noqa: PLC0415 - as below
    from hyperpod_cdk.living import pages  # noqa: PLC0415 - 'drift --help' need not load it
    from hyperpod_cdk.living.drift import drift as compared  # noqa: PLC0415 - as above
    from hyperpod_cdk.living.drift import with_lines  # noqa: PLC0415 - as above
    from hyperpod_cdk.living.standing import read_living  # noqa: PLC0415 - as above

    if iam_policy:
        print_json(policy_of("drift"))
        return
    if adopt and output is Format.JSON:
        usage("--adopt shows the changes and asks for confirmation; omit --format json")
    if yes and not adopt:
        usage("--yes is for --adopt")
    with head_of(environment, project, head=head, trusted=trusted) as new:
        aws = opened(context, new)()
        living = read_living(aws, new.assembly)
        report = with_lines(compared(aws, living), living, new.environment)
    if output is Format.JSON:
        typer.echo(pages.as_json(report), nl=False)
    else:
        typer.echo(pages.text(report), nl=False)
        print_skipped(report.skipped)
    if adopt and report.differences:
        from hyperpod_cdk.config.source import MAX_BYTES  # noqa: PLC0415 - as above
        from hyperpod_cdk.file_reading import read_text  # noqa: PLC0415 - as above
        from hyperpod_cdk.living.adopting import adopted, properties_of, tagged_in  # noqa: PLC0415 - as above
        from hyperpod_cdk.living.nodes import rows_of  # noqa: PLC0415 - as above

        file = environment_file(environment, root_of(project))
        before = read_text(file, most=MAX_BYTES)
        found = adopted(
            before,
            report.differences,
            properties_of(living),
            environment=report.environment,
            rows=lambda each: rows_of(aws, each.id),
            tagged=tagged_in(living),
        )
        is_whole = _adopt(file, before, found, asks=not yes)
        finish(passed=None if is_whole and report.skipped else is_whole, strict=strict)
        return
    finish(passed=report.passed, strict=strict)


def _adopt(file: Path, before: str, found: Adopted, *, asks: bool) -> bool:
    """Show the changes of a file, ask, and write it; return whether the file then contains all differences."""
    from difflib import unified_diff  # noqa: PLC0415 - as above

    from hyperpod_cdk.config import EnvironmentFileError, load_environment  # noqa: PLC0415 - as above
    from hyperpod_cdk.review.pages.wording import visible  # noqa: PLC0415 - as above

    typer.echo()
    for each in found.left:
        where = f"{each.difference.resource} {each.difference.path}".strip()
        typer.echo(visible(f"not adopted: {where}: {each.why}"))
    if found.text == before:
        typer.echo("The file was not changed.")
        return not found.left
    name = str(file)
    shown = unified_diff(before.splitlines(), found.text.splitlines(), name, name, lineterm="")
    typer.echo("\n".join(visible(line) for line in shown))
    try:
        load_environment(file, text=found.text)
    except EnvironmentFileError as error:
        print_checked([Checked(error.file, error.findings)], output=Format.TEXT)
        typer.echo("Such a file is refused; nothing was written.")
        return False
    if asks and not Terminal(is_there=True).agrees(f"Write this into {name}?"):
        typer.echo("Nothing was written.")
        return False
    with os_errors(file):
        if not is_as_shown(file, before):
            return False
        write_atomically(file, found.text)
    typer.echo(f"wrote {name}", err=True)
    return not found.left


@dataclass(frozen=True, kw_only=True)
class Watching(Access):
    """How ``status --watch`` waits, and whether the output is a terminal; tests pass another one."""

    pause: Callable[[float], None]
    is_terminal: bool


def status(
    context: typer.Context,
    environment: EnvironmentArgument,
    *,
    iam_policy: Annotated[
        bool, typer.Option("--iam-policy", help="Only print the read-only IAM policy that the command needs, and exit.")
    ] = False,
    watch: Annotated[
        bool,
        typer.Option("--watch", help="Repeat until Ctrl-C: redraw the terminal, or write one line of JSON each time."),
    ] = False,
    every: Annotated[
        int | None,
        typer.Option("--every", min=5, help="With --watch: seconds between two repetitions. Default: 60."),
    ] = None,
    strict: StrictOption = False,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Show the current state of the cluster: nodes, training plans, file systems, alarms, operators, quotas, events.

    It shows how many nodes are desired, running and failing, and why. Exit code 1 if something fails or has ended, if
    pods of an operator are missing, if an alarm is in ALARM (an alarm on a quota that is nearly used up is only
    advice), if the cluster, an instance group, a file system, an add-on, an alarm or a compute quota of the file is
    not in AWS, or if a topic, key, bucket, role, AMI or workspace that the file names and others own cannot be
    used any more. What could not be read is skipped: "passed" in the JSON output is then null, and with --strict the
    exit code is 1.

    --watch redraws the screen on a terminal. Otherwise it writes one line of JSON each time. Ctrl-C ends it with
    exit code 130, and a reader that goes away, such as head, with 0.
    """
    from hyperpod_cdk.checks.policy import policy_of  # noqa: PLC0415 - as above
    from hyperpod_cdk.living import pages  # noqa: PLC0415 - as above

    if iam_policy:
        print_json(policy_of("status"))
        return
    if every is not None and not watch:
        usage("--every is for --watch")
    stated = stated_of(environment, project, output).environment
    wanted = wanted_of(stated)

    with aws_errors():
        # without access to AWS there is nothing to watch
        found = _looked(context, stated, wanted)
    if watch:

        def look() -> Status:
            return _looked_again(context, stated, wanted)

        _watch(context, found, look, every=EVERY_S if every is None else every, output=output)
    if output is Format.JSON:
        typer.echo(pages.as_json(found), nl=False)
    else:
        typer.echo(pages.status_text(found), nl=False)
        print_skipped(found.skipped)
    finish(passed=found.passed, strict=strict)


def wanted_of(stated: Environment, *, is_of_a_wave: bool = False) -> Wanted:
    """Return what the file states about a cluster, by the names in AWS.

    A check of a wave only calls AWS: not Kubernetes, which a pipeline may not reach, and neither for quotas, which do
    not stop a wave, nor for resources that others own, which preflight checks.
    """
    from hyperpod_cdk.catalog import notifications as facts  # noqa: PLC0415 - as above
    from hyperpod_cdk.checks.eks import wanted_addons  # noqa: PLC0415 - as above
    from hyperpod_cdk.config.wanted_alarms import alarms_of  # noqa: PLC0415 - as above
    from hyperpod_cdk.living.status import Wanted  # noqa: PLC0415 - as above
    from hyperpod_cdk.quotas import needs  # noqa: PLC0415 - as above

    alarms, called = alarms_of(stated), partial(facts.alarm_name, stated.hyperpod_cluster_name)
    is_scaled = stated.hyperpod.autoscaling == "karpenter"
    return Wanted(
        environment=stated.name,
        cluster=stated.hyperpod_cluster_name,
        counts={each.name: None if is_scaled and not each.count else each.count for each in stated.hyperpod.all_groups},
        made=frozenset(f"{stated.name}-{each.name}" for each in stated.storage.made_lustre),
        joined=frozenset(each.existing.file_system_id for each in stated.storage.lustre if each.existing),
        plans={each.name: each.training_plan_arn for each in stated.hyperpod.all_groups if each.training_plan_arn},
        eks=stated.eks_cluster_name,
        addons=frozenset(wanted_addons(stated)),
        alarms=frozenset(map(called, alarms.faults | alarms.advice)),
        advice=frozenset(map(called, alarms.advice)),
        teams=frozenset(each.name for each in stated.task_governance.teams) if stated.task_governance else frozenset(),
        is_governed=stated.task_governance is not None,
        has_operators=not is_of_a_wave,
        file=None if is_of_a_wave else stated,
        quotas=()
        if is_of_a_wave
        else tuple(
            each
            for each in needs.required_quotas(stated)
            if each.usage and needs.kind_of(each) in {needs.PER_TYPE, needs.CLUSTER_SIZE}
        ),
    )


def _looked(context: typer.Context, stated: Environment, wanted: Wanted) -> Status:
    """Read the state of the cluster once, through a new connection, because a connection caches its responses.

    Raises AwsAccessError if AWS cannot be reached or refuses the credentials.
    """
    from datetime import UTC, datetime  # noqa: PLC0415 - 'status --help' need not load it

    from hyperpod_cdk.living.status import status as asked  # noqa: PLC0415 - as above

    aws = access_of(context).open(stated.region, stated.account)
    return asked(aws, wanted, now=datetime.now(UTC))


def _looked_again(context: typer.Context, stated: Environment, wanted: Wanted) -> Status:
    """Read the state again; if the network or the credentials fail, the next repetition may succeed."""
    from hyperpod_cdk.checks.answers import AwsAccessError  # noqa: PLC0415 - as above
    from hyperpod_cdk.living.model import Status, Unread  # noqa: PLC0415 - as above

    try:
        return _looked(context, stated, wanted)
    except AwsAccessError as missing:
        return Status(
            environment=wanted.environment,
            cluster=wanted.cluster,
            verdict="Nothing could be read.",
            passed=None,
            skipped=(Unread(what="the cluster", reason=str(missing)),),
        )


def _watch(
    context: typer.Context, found: Status, look: Callable[[], Status], *, every: int, output: Format
) -> NoReturn:
    from hyperpod_cdk.living import pages  # noqa: PLC0415 - as above

    way = context.obj
    if not isinstance(way, Watching):
        way = Watching(open=open_aws, pause=time.sleep, is_terminal=sys.stdout.isatty())
    while True:
        if way.is_terminal and output is Format.TEXT:
            typer.echo(f"{_CLEAR}{pages.status_text(found)}", nl=False)
            print_skipped(found.skipped)
        else:
            typer.echo(pages.as_line(found), nl=False)
        # a pipe buffers lines until it is full
        sys.stdout.flush()
        if is_unread():
            # a reader such as head has closed the pipe
            raise typer.Exit
        way.pause(every)
        found = look()


_CLEAR = "\x1b[H\x1b[2J\x1b[3J"
"""Moves the cursor to the top of a terminal, and clears the screen and the scrollback (ECMA-48; xterm's control
    sequences)."""


def stated_of(environment: str, project: Path | None, output: Format) -> LoadedEnvironment:
    """Read the file of an environment."""
    return loaded_environment(environment_file(environment, root_of(project)), output=output)


def print_skipped(skipped: Sequence[Unread]) -> None:
    """Print why something could not be read, one line per reason."""
    from hyperpod_cdk._cli.causes import Gap, causes  # noqa: PLC0415 - only where something is missing
    from hyperpod_cdk.review.pages.wording import visible  # noqa: PLC0415 - as above

    gaps = [Gap(what=each.what, reason=each.reason, action=each.action, said=each.aws_said) for each in skipped]
    for cause in causes(gaps):
        # names and reasons come from AWS and may contain control characters
        told = visible(f"{'; '.join(cause.what)}: {cause}")
        typer.echo(f"{painted_word('skipped')} {told}")
