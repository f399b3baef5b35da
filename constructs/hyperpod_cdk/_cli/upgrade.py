"""The command ``upgrade``: what is outdated in an environment, and the next step to a newer version."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hyperpod_cdk._cli.common import (
    EnvironmentArgument,
    FormatOption,
    ProjectOption,
    aws_errors,
    environment_file,
    finish,
    loaded_environment,
    os_errors,
    refuse_word,
    root_of,
    usage,
)
from hyperpod_cdk._cli.output import Format
from hyperpod_cdk._cli.plans import is_as_shown, write_atomically
from hyperpod_cdk._cli.transitions import Terminal, access_of, is_terminal
from hyperpod_cdk._cli.words import kubernetes_versions
from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.file_reading import read_bytes

if TYPE_CHECKING:
    from hyperpod_cdk.config import Environment
    from hyperpod_cdk.transitions.ages import Ages
    from hyperpod_cdk.transitions.upgrade import Locks


def upgrade(
    context: typer.Context,
    environment: EnvironmentArgument,
    *,
    kubernetes: Annotated[
        str | None,
        typer.Option(
            "--kubernetes",
            metavar="VERSION",
            autocompletion=kubernetes_versions,
            help=(
                "Kubernetes version to upgrade to, one minor version at a time, with compatible add-ons, and then"
                " the AMIs."
            ),
        ),
    ] = None,
    ami: Annotated[bool, typer.Option("--ami", help="Upgrade each instance group to the newest AMI.")] = False,
    addons: Annotated[
        bool, typer.Option("--addons", help="Upgrade the add-ons to EKS's default versions, if they are newer.")
    ] = False,
    chart: Annotated[
        bool, typer.Option("--chart", help="Upgrade to the dependency chart of this hyperpod-cdk version.")
    ] = False,
    library: Annotated[
        bool, typer.Option("--library", help="Upgrade to the newest hyperpod-cdk, with a review first.")
    ] = False,
    write: Annotated[
        bool, typer.Option("--write", help="Write the files of the first step without confirmation.")
    ] = False,
    offline: Annotated[
        bool, typer.Option("--offline", help="Do not call AWS; use the versions in the file as the deployed versions.")
    ] = False,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Show what is outdated and until when AWS supports it, and take the next step to a newer version.

    Without an option that names what to upgrade, the command only shows. With such an option, it shows all steps,
    what each one interrupts, and until when you can go back. After you confirm, or with --write, it writes the
    changes of the first step into the file. Use 'plan' and 'deploy' to deploy them; then run the same command again
    for the next step. Exit code 1 if the upgrade is refused.
    """
    from hyperpod_cdk.catalog.kubernetes import version_problem  # noqa: PLC0415 - 'upgrade --help' need not load it
    from hyperpod_cdk.config.documents import decoded, shown  # noqa: PLC0415 - as above
    from hyperpod_cdk.transitions import pages  # noqa: PLC0415 - as above
    from hyperpod_cdk.transitions.ages import Ages  # noqa: PLC0415 - as above
    from hyperpod_cdk.transitions.upgrade import LOCK, Asked  # noqa: PLC0415 - as above
    from hyperpod_cdk.transitions.upgrade import upgrade as planned  # noqa: PLC0415 - as above

    asked = Asked(kubernetes=kubernetes, addons=addons, ami=ami, chart=chart, library=library)
    if kubernetes is not None:
        refuse_word("--kubernetes", version_problem(kubernetes, key="--kubernetes"))
    if write and asked.is_nothing:
        usage("--write: specify what to upgrade: --kubernetes, --ami, --addons, --chart or --library")
    root = root_of(project)
    path = environment_file(environment, root)
    loaded = loaded_environment(path, output=output)
    stated = loaded.environment
    from importlib import metadata  # noqa: PLC0415 - brings the parser of mail along, which 'upgrade' alone needs

    text = decoded(read_bytes(path, most=1_000_000), str(path))
    locks = _locks(root)
    ages = Ages(is_asked=False) if offline else _read(context, stated)
    if offline:
        ages.skipped.append("AWS: not called, because of --offline")
    told, texts = planned(
        stated,
        text,
        file=shown(path),
        argument=loaded.called,
        asked=asked,
        ages=ages,
        locks=locks,
        library=metadata.version("hyperpod-cdk"),
        now=datetime.now(UTC),
    )
    if output is Format.TEXT:
        typer.echo(pages.upgrade_text(told), nl=False)
    is_agreed = write or (output is Format.TEXT and is_terminal() and _agrees(list(texts)))
    locks_text = locks.own[1] if locks.own else ""
    targets = [(name, *((root / LOCK, locks_text) if name == LOCK else (path, text))) for name in texts]
    is_written = False
    if texts and is_agreed:
        with os_errors(path):
            # all files or none
            is_written = all(is_as_shown(target, before) for _, target, before in targets)
    for name, target, _ in targets if is_written else ():
        with os_errors(target):
            write_atomically(target, texts[name])
        print(f"wrote {name}", file=sys.stderr)
    if is_written:
        told = told.model_copy(update={"written": tuple(texts)})
    if output is Format.JSON:
        typer.echo(pages.as_json(told), nl=False)
    finish(passed=not told.refusals and is_written == bool(texts and is_agreed), strict=False)


def _agrees(names: list[str]) -> bool:
    return bool(names) and Terminal(is_there=True).agrees(f"Write {joined(names)}?")


def _read(context: typer.Context, stated: Environment) -> Ages:
    from hyperpod_cdk.checks.eks import wanted_addons  # noqa: PLC0415 - as above
    from hyperpod_cdk.transitions.ages import read_ages  # noqa: PLC0415 - as above

    with aws_errors(otherwise=", or use --offline"):
        aws = access_of(context).open(stated.region, stated.account)
        return read_ages(
            aws,
            eks_cluster=stated.eks_cluster_name,
            cluster=stated.hyperpod_cluster_name,
            addons=tuple(wanted_addons(stated)),
        )


def _locks(root: Path) -> Locks:
    from hyperpod_cdk.eks.charts import LOCK_FILE, ChartError, ChartLock  # noqa: PLC0415 - as above
    from hyperpod_cdk.file_reading import read_text  # noqa: PLC0415 - as above
    from hyperpod_cdk.transitions.upgrade import Locks  # noqa: PLC0415 - as above

    packaged = ChartLock.packaged_text()
    try:
        own = ChartLock.load(root).commit if (root / LOCK_FILE).is_file() else None
    except ChartError as error:
        usage(str(error))
    return Locks(
        own=None if own is None else (own, read_text(root / LOCK_FILE, most=1_000_000)),
        library=(ChartLock.parse(packaged).commit, packaged),
    )
