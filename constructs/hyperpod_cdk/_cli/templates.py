"""The command ``templates``: an environment's CloudFormation templates as YAML and its diagram, for reviews."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from hyperpod_cdk._cli.common import (
    FINDINGS,
    ProjectOption,
    TrustedOption,
    assembly_errors,
    os_errors,
    root_of,
    synthesized,
    usage,
)
from hyperpod_cdk._cli.words import environments

FOLDER = "synthesized"
"""The folder of the templates, with a folder for each environment."""

PICTURE = "diagram.svg"
"""The file of the environment's diagram, as 'hyperpod-cdk diagram' draws it."""

_CONTEXT = {"chart": "placeholder"}


def templates(
    environments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ENV", autocompletion=environments, help="Names or files. Default: all in environments/."
        ),
    ] = None,
    *,
    head: Annotated[
        str | None,
        typer.Option(
            "--head", metavar="REF|DIR", help="Git revision or cloud assembly to use. Default: the working tree."
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Do not write. Exit with code 1 if a file differs from what the environment produces."
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help=f"Folder to write to. Default: {FOLDER}/ in the project."),
    ] = None,
    trusted: TrustedOption = False,
    project: ProjectOption = None,
) -> None:
    """Write the template of each stack as YAML, and the diagram, to synthesized/ENV/.

    Commit these files, so that pull requests show the differences. The templates always use the placeholder chart;
    the version of the chart is in charts/charts.lock.yaml.
    """
    from hyperpod_cdk.config import environment_files  # noqa: PLC0415 - '--help' need not build the models
    from hyperpod_cdk.config.loading import in_project, made_in  # noqa: PLC0415 - as above
    from hyperpod_cdk.review.isolation import Limits  # noqa: PLC0415 - as above
    from hyperpod_cdk.review.pictures.diagram import diagram  # noqa: PLC0415 - as above
    from hyperpod_cdk.templates.template_yaml import differing_files, environment_yaml, write_files  # noqa: PLC0415 - as above

    root = root_of(project, runs_extensions=False)
    folder = out or root / FOLDER
    wanted = environments or [path.stem for path in environment_files(root)]
    if not wanted:
        usage(f"environments/ contains no *.yaml file; {made_in(root)}")
    changed: list[str] = []
    made: list[str] = []
    limits = Limits(is_trusted=trusted)
    for environment in wanted:
        with (
            assembly_errors(),
            synthesized(root, environment, base=None, head=head, context=_CONTEXT, limits=limits) as (_, source),
        ):
            texts = {**environment_yaml(source.assembly), PICTURE: diagram(source.assembly)}
        with os_errors(folder):
            own = folder / source.assembly.environment
            names = differing_files(own, texts) if check else write_files(own, texts)
        changed += [f"{own.name}/{name}" for name in names]
        made.append(own.name)
    if environments is None:
        changed += _stale(folder, made)
    _say(changed, folder, in_project(root), check=check)
    if check and changed:
        raise typer.Exit(FINDINGS)


def _stale(folder: Path, made: Sequence[str]) -> list[str]:
    """Return the folders of environments that no longer exist; only the user deletes them."""
    present = sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    return [f"{name}/ (the environment does not exist: delete the folder)" for name in present if name not in made]


def _say(changed: Sequence[str], folder: Path, project: str, *, check: bool) -> None:
    for name in changed:
        print(f"{folder.name}/{name}")
    if not changed:
        print(f"{folder.name}/ matches the environments")
    elif check:
        print(
            f"different from the environments; write them with 'hyperpod-cdk templates{project}' and review the"
            " difference"
        )
