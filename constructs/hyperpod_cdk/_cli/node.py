"""The verbs ``node``: what the nodes of a cluster are, what they log, and what is done to them by hand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
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
    usage,
)
from hyperpod_cdk._cli.living import print_skipped, stated_of
from hyperpod_cdk._cli.output import Format
from hyperpod_cdk._cli.transitions import Terminal, access_of
from hyperpod_cdk._cli.words import groups

if TYPE_CHECKING:
    from pathlib import Path

    from hyperpod_cdk.config import Environment
    from hyperpod_cdk.living.model import Action, NodeLogs, Nodes, NodesDescribed, NodeWork
    from hyperpod_cdk.review.deployed import Api

app = typer.Typer(
    help="The nodes of a cluster: list, describe, logs, replace, reboot, check, cordon, uncordon.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

NodesArgument = Annotated[
    list[str],
    typer.Argument(metavar="NODE", help="Instance ID, its name in Kubernetes, or HyperPod's logical ID."),
]
ConfirmOption = Annotated[
    list[str] | None,
    typer.Option("--confirm", metavar="NODE", help="Each node again, in place of typing it; may be repeated."),
]


class Log(StrEnum):
    """Logs of a node."""

    LIFECYCLE = "lifecycle"
    HEALTH = "health"
    CHECKS = "checks"


class Check(StrEnum):
    """Deep health checks, by the words of the environment file."""

    INSTANCE_STRESS = "instance_stress"
    INSTANCE_CONNECTIVITY = "instance_connectivity"


@app.command("list")
def list_nodes(
    context: typer.Context,
    environment: EnvironmentArgument,
    *,
    group: Annotated[
        str, typer.Option("--group", autocompletion=groups, help="Only nodes of this instance group.")
    ] = "",
    failing: Annotated[bool, typer.Option("--failing", help="Only nodes that fail.")] = False,
    strict: StrictOption = False,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """List the nodes with their status and why they fail; also those that are not launched yet.

    Exit code 1 where a node fails. What could not be read is skipped: "passed" in JSON is then null, and with --strict
    the exit code is 1.
    """
    from hyperpod_cdk.living import nodes, pages  # noqa: PLC0415 - 'node list --help' need not load it

    with _cluster(context, environment, project, output) as (aws, stated):
        found = nodes.list_nodes(
            aws, environment=stated.name, cluster=stated.hyperpod_cluster_name, group=group, only_failing=failing
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
    """Describe nodes: where they stand, their names, labels and taints, logs, a shell, the events of a day.

    Exit code 1 where one of them fails. What could not be read is skipped: "passed" in JSON is then null, and with
    --strict the exit code is 1.
    """
    from datetime import UTC, datetime  # noqa: PLC0415 - as above

    from hyperpod_cdk.living import nodes as living  # noqa: PLC0415 - as above
    from hyperpod_cdk.living import pages  # noqa: PLC0415 - as above

    with _cluster(context, environment, project, output) as (aws, stated):
        found = living.describe_nodes(
            aws,
            environment=stated.name,
            cluster=stated.hyperpod_cluster_name,
            names=nodes,
            now=datetime.now(UTC),
        )
    _print(found, pages.nodes_described_text(found), output)
    finish(passed=found.passed, strict=strict)


@app.command()
def logs(
    context: typer.Context,
    environment: EnvironmentArgument,
    node: Annotated[str, typer.Argument(metavar="NODE", help="As in 'node describe'.")],
    *,
    of: Annotated[
        Log, typer.Option("--of", help="Lifecycle scripts, health-monitoring agent, or deep health checks.")
    ] = Log.LIFECYCLE,
    lines: Annotated[int, typer.Option("--lines", min=1, max=10_000, help="How many of the newest lines.")] = 100,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Show the newest lines that HyperPod has in CloudWatch of a node; exit code 1 where they cannot be read."""
    from hyperpod_cdk.living import node_logs, pages  # noqa: PLC0415 - as above

    with _cluster(context, environment, project, output) as (aws, stated):
        found = node_logs.node_logs(
            aws,
            environment=stated.name,
            cluster=stated.hyperpod_cluster_name,
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
    """Replace nodes with new instances: what that destroys is told first, then the node typed.

    Every volume of the node is lost. Exit code 1 where nobody confirms, or HyperPod does not begin with every node.
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
    """Reboot nodes: what that interrupts is told first, then the node typed.

    Exit code 1 where nobody confirms, or HyperPod does not begin with every node.
    """
    _do(context, "reboot", environment, nodes, confirm=confirm, project=project, output=output)


@app.command()
def check(
    context: typer.Context,
    environment: EnvironmentArgument,
    nodes: Annotated[list[str] | None, typer.Argument(metavar="NODE", help="As in 'node describe'.")] = None,
    *,
    group: Annotated[
        list[str] | None,
        typer.Option("--group", autocompletion=groups, help="Every node of this instance group; may be repeated."),
    ] = None,
    only: Annotated[
        list[Check] | None, typer.Option("--only", help="This check; may be repeated. Default: both.")
    ] = None,
    confirm: ConfirmOption = None,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Run HyperPod's deep health checks on nodes with accelerators: what that keeps from work is told first.

    --confirm takes names of groups, too. Exit code 1 where nobody confirms, or HyperPod does not begin with every node.
    """
    from hyperpod_cdk.catalog.hyperpod import DEEP_HEALTH_CHECKS  # noqa: PLC0415 - as above

    if not nodes and not group:
        usage("name nodes, or a group with --group")
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
    """Let Kubernetes put no new pod on nodes; what runs there goes on, and HyperPod is told nothing.

    Asks the API server of the EKS cluster with your AWS credentials, which its access entries have to admit; exit code
    2 where it cannot be reached. Nobody is asked: nothing is interrupted, and 'node uncordon' takes it back.
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
    """Let Kubernetes put pods on nodes again, by the API server as 'node cordon' does.

    Only where HyperPod cordoned a node itself, to patch it, what that delays is told first and the node typed.
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

    named = [*nodes, *(of_groups or [])]
    flags = " ".join(f"--confirm {name}" for name in named)
    if confirm is None and output is Format.JSON and action not in ("cordon", "uncordon"):
        usage(f"--format json asks nobody; add {flags}")
    if confirm is not None and set(confirm) != set(named):
        usage(f"--confirm: must name the same as the command, {', '.join(named)}, got {', '.join(confirm)}")
    with _cluster(context, environment, project, output) as (aws, stated):
        work = node_work.prepare(
            aws,
            action,
            environment=stated.name,
            cluster=stated.hyperpod_cluster_name,
            names=nodes,
            groups=of_groups or [],
        )
        if output is Format.TEXT:
            typer.echo(pages.proposed_text(work), nl=False)
            print_skipped(work.skipped)
        if confirm is None and node_work.interrupts(work) and output is Format.JSON:
            usage(f"--format json asks nobody; add {flags}")
        if confirm is None and node_work.interrupts(work) and not _agreed(work, flags):
            typer.echo("Nothing was done.")
            finish(passed=False, strict=False)
        done = node_work.perform(aws, work, checks=checks or [])
    if output is Format.JSON:
        typer.echo(pages.as_json(done), nl=False)
    else:
        typer.echo(pages.done_text(done), nl=False)
    finish(passed=done.passed, strict=True)


def _agreed(work: NodeWork, flags: str) -> bool:
    word = work.nodes[0].name if len(work.nodes) == 1 else f"{len(work.nodes)} nodes"
    return Terminal(is_there=True, instead=flags).types(
        f"Type {word} to {work.action} {'it' if len(work.nodes) == 1 else 'them'}", word
    )


@contextmanager
def _cluster(
    context: typer.Context, environment: str, project: Path | None, output: Format
) -> Iterator[tuple[Api, Environment]]:
    """Open AWS for an environment; what keeps the verb from its work ends it with a sentence."""
    from hyperpod_cdk.checks.answers import NotAnswered  # noqa: PLC0415 - as above
    from hyperpod_cdk.living.nodes import NodeError  # noqa: PLC0415 - as above

    stated = stated_of(environment, project, output)
    try:
        with aws_errors():
            yield access_of(context).open(stated.region, stated.account), stated
    except NodeError as error:
        usage(str(error))
    except NotAnswered as missing:
        typer.echo(f"what the node is cannot be read: {missing.sentence}; nothing was done", err=True)
        raise typer.Exit(USAGE) from None


def _print(found: Nodes | NodesDescribed | NodeLogs, text: str, output: Format) -> None:
    from hyperpod_cdk.living import pages  # noqa: PLC0415 - as above

    if output is Format.JSON:
        typer.echo(pages.as_json(found), nl=False)
        return
    typer.echo(text, nl=False)
    print_skipped(found.skipped)
