"""The ``node`` commands: details and logs of a cluster's nodes, and manual actions on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace as replaced
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from hyperpod_cdk._cli.common import (
    USAGE,
    EnvironmentArgument,
    FormatOption,
    ProjectOption,
    StrictOption,
    aws_errors,
    finish,
    refuse_word,
    usage,
)
from hyperpod_cdk._cli.living import print_skipped, stated_of
from hyperpod_cdk._cli.output import Format
from hyperpod_cdk._cli.transitions import Terminal, access_of
from hyperpod_cdk._cli.words import groups

if TYPE_CHECKING:
    from pathlib import Path

    from hyperpod_cdk.config import LoadedEnvironment
    from hyperpod_cdk.living.model import Action, NodeLogs, Nodes, NodesDescribed, NodeWork
    from hyperpod_cdk.review.deployed import Api

app = typer.Typer(
    help="List, describe, replace, reboot, check, cordon and uncordon nodes, and show their logs.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

NODE = "Instance ID, Kubernetes node name, or HyperPod's logical ID; 'hyperpod-cdk node list ENV' lists them."
NodesArgument = Annotated[
    list[str],
    typer.Argument(metavar="NODE", help=NODE),
]
ConfirmOption = Annotated[
    list[str] | None,
    typer.Option(
        "--confirm", metavar="NODE", help="Confirm this node, instead of typing it. Repeat the option for each node."
    ),
]


class Log(StrEnum):
    """Logs of a node."""

    LIFECYCLE = "lifecycle"
    HEALTH = "health"
    CHECKS = "checks"


class Check(StrEnum):
    """Deep health checks, by their names in the environment file."""

    INSTANCE_STRESS = "instance_stress"
    INSTANCE_CONNECTIVITY = "instance_connectivity"


@app.command("list")
def list_nodes(
    context: typer.Context,
    environment: EnvironmentArgument,
    *,
    group: Annotated[
        str | None, typer.Option("--group", autocompletion=groups, help="Show only nodes of this instance group.")
    ] = None,
    failing: Annotated[bool, typer.Option("--failing", help="Show only failing nodes.")] = False,
    strict: StrictOption = False,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """List the nodes with their status and why they fail, including nodes that are not launched yet.

    Exit code 1 if a node fails. What could not be read is skipped: "passed" in the JSON output is then null, and
    with --strict the exit code is 1.
    """
    from hyperpod_cdk.living import nodes, pages  # noqa: PLC0415 - 'node list --help' need not load it

    _judge(of_groups=() if group is None else (group,))
    with _cluster(context, environment, project, output) as (aws, stated):
        found = nodes.list_nodes(
            aws,
            environment=stated.environment.name,
            cluster=stated.environment.hyperpod_cluster_name,
            group=group or "",
            only_failing=failing,
        )
    _print(found, pages.nodes_text(found), output)
    finish(passed=found.passed, strict=strict)


@app.command()
def describe(
    context: typer.Context,
    environment: EnvironmentArgument,
    nodes: NodesArgument,
    *,
    strict: StrictOption = False,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Show the details of nodes: placement, names, labels, taints, logs, shell command, events of the last day.

    Exit code 1 if one of them fails. What could not be read is skipped: "passed" in the JSON output is then null,
    and with --strict the exit code is 1.
    """
    from datetime import UTC, datetime  # noqa: PLC0415 - as above

    from hyperpod_cdk.living import nodes as living  # noqa: PLC0415 - as above
    from hyperpod_cdk.living import pages  # noqa: PLC0415 - as above

    _judge(nodes)
    with _cluster(context, environment, project, output) as (aws, stated):
        found = living.describe_nodes(
            aws,
            environment=stated.environment.name,
            called=stated.called,
            cluster=stated.environment.hyperpod_cluster_name,
            names=nodes,
            now=datetime.now(UTC),
        )
    _print(found, pages.nodes_described_text(found), output)
    finish(passed=found.passed, strict=strict)


@app.command()
def logs(
    context: typer.Context,
    environment: EnvironmentArgument,
    node: Annotated[str, typer.Argument(metavar="NODE", help=NODE)],
    *,
    of: Annotated[
        Log,
        typer.Option(
            "--of", help="Which logs: of the lifecycle scripts, the health monitoring agent, or the deep health checks."
        ),
    ] = Log.LIFECYCLE,
    lines: Annotated[
        int, typer.Option("--lines", min=1, max=10_000, help="Number of lines to show, the newest ones.")
    ] = 100,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Show the newest log lines of a node that HyperPod has written to CloudWatch.

    Exit code 1 if they cannot be read.
    """
    from hyperpod_cdk.living import node_logs, pages  # noqa: PLC0415 - as above

    _judge([node])
    with _cluster(context, environment, project, output) as (aws, stated):
        found = node_logs.node_logs(
            aws,
            environment=stated.environment.name,
            called=stated.called,
            cluster=stated.environment.hyperpod_cluster_name,
            name=node,
            log=of.value,
            most=lines,
        )
    _print(found, pages.logs_text(found), output)
    finish(passed=found.passed, strict=True)


@app.command()
def replace(
    context: typer.Context,
    environment: EnvironmentArgument,
    nodes: NodesArgument,
    *,
    confirm: ConfirmOption = None,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Replace nodes with new instances, after you type the ID of each node.

    The command first shows what will be destroyed. Every volume of the node is lost. Exit code 1 if nobody
    confirms, or HyperPod does not start the action for every node.
    """
    _do(context, "replace", environment, nodes, confirm=confirm, project=project, output=output)


@app.command()
def reboot(
    context: typer.Context,
    environment: EnvironmentArgument,
    nodes: NodesArgument,
    *,
    confirm: ConfirmOption = None,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Reboot nodes, after you type the ID of each node.

    The command first shows what will be interrupted. Exit code 1 if nobody confirms, or HyperPod does not start the
    action for every node.
    """
    _do(context, "reboot", environment, nodes, confirm=confirm, project=project, output=output)


@app.command()
def check(
    context: typer.Context,
    environment: EnvironmentArgument,
    nodes: Annotated[
        list[str] | None,
        typer.Argument(metavar="NODE", help=NODE),
    ] = None,
    *,
    group: Annotated[
        list[str] | None,
        typer.Option(
            "--group", autocompletion=groups, help="Check every node of this instance group. Can be repeated."
        ),
    ] = None,
    only: Annotated[
        list[Check] | None, typer.Option("--only", help="Run only this check. Can be repeated. Default: both checks.")
    ] = None,
    confirm: ConfirmOption = None,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Run HyperPod's deep health checks on nodes with accelerators.

    The command first shows which nodes cannot run jobs during the checks, and asks for confirmation. --confirm also
    accepts names of groups. Exit code 1 if nobody confirms, or HyperPod does not start the action for every node.
    """
    from hyperpod_cdk.catalog.hyperpod import DEEP_HEALTH_CHECKS  # noqa: PLC0415 - as above

    if not nodes and not group:
        usage("specify nodes, or a group with --group")
    words = [DEEP_HEALTH_CHECKS[each.value] for each in only or Check]
    _do(
        context,
        "check",
        environment,
        nodes or [],
        of_groups=group or [],
        checks=words,
        confirm=confirm,
        project=project,
        output=output,
    )


@app.command()
def cordon(
    context: typer.Context,
    environment: EnvironmentArgument,
    nodes: NodesArgument,
    *,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Cordon nodes: Kubernetes schedules no new pods on them.

    Running pods continue, and HyperPod is not informed. The command calls the API server of the EKS cluster with
    your AWS credentials, which need an access entry; exit code 2 if the API server cannot be reached. It does not
    ask for confirmation, because nothing is interrupted and 'node uncordon' reverses it.
    """
    _do(context, "cordon", environment, nodes, confirm=None, project=project, output=output)


@app.command()
def uncordon(
    context: typer.Context,
    environment: EnvironmentArgument,
    nodes: NodesArgument,
    *,
    confirm: ConfirmOption = None,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Uncordon nodes: Kubernetes schedules pods on them again.

    The command calls the API server as 'node cordon' does. It asks for confirmation only if HyperPod itself
    cordoned the node to patch it: it then first shows what is delayed, and you type the ID of the node.
    """
    _do(context, "uncordon", environment, nodes, confirm=confirm, project=project, output=output)


def _do(
    context: typer.Context,
    action: Action,
    environment: str,
    nodes: list[str],
    *,
    of_groups: list[str] | None = None,
    checks: list[str] | None = None,
    confirm: list[str] | None,
    project: Path | None,
    output: Format,
) -> None:
    from hyperpod_cdk.living import node_work, pages  # noqa: PLC0415 - as above

    _judge(nodes, of_groups or ())
    named = [*nodes, *(of_groups or [])]
    flags = " ".join(f"--confirm {name}" for name in named)
    if confirm is None and output is Format.JSON and action not in ("cordon", "uncordon"):
        usage(f"--format json cannot ask for confirmation; add {flags}")
    if confirm is not None and set(confirm) != set(named):
        usage(f"--confirm: must contain the same names as the command, {', '.join(named)}, got {', '.join(confirm)}")
    with _cluster(context, environment, project, output) as (aws, stated):
        work = node_work.prepare(
            aws,
            action,
            environment=stated.environment.name,
            called=stated.called,
            cluster=stated.environment.hyperpod_cluster_name,
            names=nodes,
            groups=of_groups or [],
        )
        if output is Format.TEXT:
            typer.echo(pages.proposed_text(work), nl=False)
            print_skipped(work.skipped)
        if confirm is None and node_work.interrupts(work) and output is Format.JSON:
            usage(f"--format json cannot ask for confirmation; add {flags}")
        if confirm is None and node_work.interrupts(work) and not _agreed(work, flags):
            typer.echo("Nothing was done.")
            finish(passed=False, strict=False)
        done = node_work.perform(aws, work, checks=checks or [])
    if output is Format.JSON:
        typer.echo(pages.as_json(done), nl=False)
    else:
        typer.echo(pages.done_text(done), nl=False)
    finish(passed=done.passed, strict=True)


def _judge(nodes: Sequence[str] = (), of_groups: Sequence[str] = ()) -> None:
    """Refuse names that no node or group can have, before AWS is called."""
    from hyperpod_cdk.catalog import hyperpod  # noqa: PLC0415 - as above
    from hyperpod_cdk.living.nodes import NodeError, by_name  # noqa: PLC0415 - as above

    # a wrong name is not corrected: it refers to an existing resource
    group_name = replaced(hyperpod.INSTANCE_GROUP_NAME, refers=True)
    for word, pattern, names in (("NODE", hyperpod.NODE, nodes), ("--group", group_name, of_groups)):
        for name in names:
            refuse_word(word, pattern.problem(name, key=word))
    try:
        by_name(nodes)
    except NodeError as error:
        usage(str(error))


def _agreed(work: NodeWork, flags: str) -> bool:
    word = work.nodes[0].name if len(work.nodes) == 1 else f"{len(work.nodes)} nodes"
    return Terminal(is_there=True, instead=flags).types(
        f"Type {word} to {work.action} {'it' if len(work.nodes) == 1 else 'them'}", word
    )


@contextmanager
def _cluster(
    context: typer.Context, environment: str, project: Path | None, output: Format
) -> Iterator[tuple[Api, LoadedEnvironment]]:
    """Open AWS for an environment; an error ends the command with a message."""
    from hyperpod_cdk.checks.answers import NotAnswered  # noqa: PLC0415 - as above
    from hyperpod_cdk.living.nodes import NodeError  # noqa: PLC0415 - as above

    stated = stated_of(environment, project, output)
    try:
        with aws_errors():
            yield access_of(context).open(stated.environment.region, stated.environment.account), stated
    except NodeError as error:
        usage(str(error))
    except NotAnswered as missing:
        typer.echo(f"the node could not be read: {missing.sentence}; nothing was done", err=True)
        raise typer.Exit(USAGE) from None


def _print(found: Nodes | NodesDescribed | NodeLogs, text: str, output: Format) -> None:
    from hyperpod_cdk.living import pages  # noqa: PLC0415 - as above

    if output is Format.JSON:
        typer.echo(pages.as_json(found), nl=False)
        return
    typer.echo(text, nl=False)
    print_skipped(found.skipped)
