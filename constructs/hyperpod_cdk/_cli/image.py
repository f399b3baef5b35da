"""The command ``image render``: the build context of a training image with EFA."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hyperpod_cdk._cli.common import (
    FormatOption,
    ProjectOption,
    environment_file,
    loaded_environment,
    os_errors,
    root_of,
    usage,
)
from hyperpod_cdk._cli.output import Format
from hyperpod_cdk._cli.plans import write_atomically
from hyperpod_cdk._cli.words import environments, groups

if TYPE_CHECKING:
    from hyperpod_cdk.catalog.instance_types import InstanceType

app = typer.Typer(help="Write Dockerfiles for training images.", no_args_is_help=True, rich_markup_mode=None)

_TAG = "REPOSITORY:TAG"


@app.callback()
def images() -> None:
    """Container images for training."""


@app.command()
def render(
    environment: Annotated[
        str | None,
        typer.Argument(
            metavar="ENV", autocompletion=environments, help="Name or file of the environment; with --group."
        ),
    ] = None,
    *,
    group: Annotated[
        str | None,
        typer.Option(
            "--group",
            autocompletion=groups,
            help="Instance group of ENV for whose nodes the image is built.",
        ),
    ] = None,
    accelerator: Annotated[
        list[str] | None,
        typer.Option(
            "--accelerator",
            help=(
                "Accelerator, for example nvidia-h100, instead of ENV. Can be repeated. Default: all known"
                " accelerators."
            ),
        ),
    ] = None,
    architecture: Annotated[
        str | None,
        typer.Option(
            "--architecture", help="x86_64 or arm64. Default: x86_64, or with --group the architecture of the nodes."
        ),
    ] = None,
    cuda: Annotated[
        str | None, typer.Option("--cuda", help="CUDA release from the table. Default: the newest compatible release.")
    ] = None,
    efa_installer: Annotated[
        str | None,
        typer.Option(
            "--efa-installer", help="EFA installer version from the table. Default: the version for the CUDA release."
        ),
    ] = None,
    base_image: Annotated[
        str | None, typer.Option("--base-image", help="The same base image in your own registry, with tag or digest.")
    ] = None,
    program: Annotated[
        Path | None,
        typer.Option(
            "--program",
            metavar="DIR",
            help="Folder that is copied to /workspace. Default: the reference training program.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Folder to write to. Default: print the Dockerfile.")
    ] = None,
    project: ProjectOption = None,
    output: FormatOption = Format.TEXT,
) -> None:
    """Write a Dockerfile for training with EFA, and the other files of its build.

    Versions are pinned and downloads are verified: CUDA, PyTorch with its NCCL, the EFA installer with its
    libfabric and aws-ofi-nccl, nccl-tests, the elastic agent.
    """
    from hyperpod_cdk.workloads import image as images_  # noqa: PLC0415 - '--help' need not load the table
    from hyperpod_cdk.workloads.program import ArgumentError, library_program, program_files  # noqa: PLC0415 - as above

    if (environment is None) != (group is None):
        usage("ENV and --group go together: the image is for the nodes of that group")
    if group is not None and accelerator:
        usage("--group determines the accelerators; omit --accelerator")
    if group is not None and architecture is not None:
        usage("--group determines the architecture; omit --architecture")
    try:
        own = program_files(program or library_program())
        if environment is not None and group is not None:
            rendered = images_.render_for(
                _rows(environment, group, project, output),
                cuda=cuda,
                efa_installer=efa_installer,
                base_image=base_image,
                program=own,
            )
        else:
            rendered = images_.render(
                accelerators=accelerator or (),
                architecture="x86_64" if architecture is None else architecture,
                cuda=cuda,
                efa_installer=efa_installer,
                base_image=base_image,
                program=own,
            )
    except ArgumentError as error:
        usage(f"--{error.argument.replace('_', '-')}: {error.problem}")
    for doubt in rendered.doubts:
        print(f"warning {doubt}", file=sys.stderr)
    if out is not None:
        with os_errors(out):
            _write(out, rendered.files)
    steps = rendered.commands(tag=_TAG, folder=str(out) if out is not None else "DIR")
    if output is Format.JSON:
        from hyperpod_cdk._cli.answers import BuildContext, print_answer  # noqa: PLC0415 - text needs no models

        print_answer(BuildContext, {"files": dict(rendered.files), "platform": rendered.platform, "next": list(steps)})
        return
    if out is None:
        sys.stdout.write(rendered.dockerfile)
        print("the build needs more files than this one: write them with --out DIR", file=sys.stderr)
        return
    print(f"wrote {len(rendered.files)} files to {out}")
    for step in steps:
        print(step)


def _rows(environment: str, name: str, project: Path | None, output: Format) -> list[InstanceType]:
    from hyperpod_cdk.config.suggest import closest  # noqa: PLC0415 - as above

    loaded = loaded_environment(environment_file(environment, root_of(project)), output=output)
    groups = {group.name: group for group in loaded.environment.hyperpod.instance_groups}
    if name not in groups:
        near = closest(name, list(groups))
        fix = f"did you mean {near}?" if near else f"the groups are {', '.join(groups)}"
        usage(f'--group: no instance group "{name}" in {loaded.environment.name}; {fix}')
    rows = [loaded.environment.instance_type(each) for each in groups[name].all_instance_types]
    return [row for row in rows if row is not None]


def _write(folder: Path, files: Mapping[str, str]) -> None:
    """Write a build context; exits without changes if the folder contains other files."""
    if folder.is_dir():
        present = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}
        others = sorted(present - set(files))
        if others:
            usage(f"--out: {folder} contains {others[0]}, which is not part of the image; use a separate folder")
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text)
