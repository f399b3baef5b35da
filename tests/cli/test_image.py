"""`hyperpod-cdk image render`: a build context for the nodes of a group."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Run
from tests.support.answers import answered


def test_the_dockerfile_of_a_group_is_printed(run_process: Run) -> None:
    done = run_process("image", "render", "dev", "--group", "a10g")
    assert done.returncode == 0
    assert done.stdout.startswith("# An image to train in, with EFA: A10G.\n")
    assert "aws-efa-installer-" in done.stdout
    assert done.stderr.splitlines()[-1] == "the build needs more files than this one: write them with --out DIR"


def test_a_build_context_is_written_whole(run: Run, workspace: Path) -> None:
    done = run("image", "render", "dev", "--group", "a10g", "--out", "image")
    assert done.returncode == 0
    files = {path.relative_to(workspace / "image").as_posix() for path in (workspace / "image").rglob("*.*")}
    assert {"program/fsdp_training/train.py", "check_image.sh", ".dockerignore"} <= files
    assert done.stdout.splitlines()[-1] == (
        "docker buildx build --platform linux/amd64 --tag REPOSITORY:TAG --push image"
    )
    told = answered("image", run("image", "render", "dev", "--group", "a10g", "--format", "json").stdout)
    assert (workspace / "image" / "Dockerfile").read_text(encoding="utf-8") == told["files"]["Dockerfile"]

    (workspace / "image" / "mine.txt").write_text("mine", encoding="utf-8")
    refused = run("image", "render", "dev", "--group", "a10g", "--out", "image")
    assert (refused.returncode, refused.stderr.splitlines()[-1]) == (
        2,
        "--out: image contains mine.txt, which is not part of the image; use a separate folder",
    )


def test_a_custom_program_is_copied_into_the_image(run: Run, workspace: Path) -> None:
    own = workspace / "mine"
    own.mkdir()
    empty = run("image", "render", "--accelerator", "nvidia-h100", "--program", "mine")
    assert (empty.returncode, empty.stderr) == (
        2,
        "--program: must be a folder with a program, got mine, which contains no file\n",
    )
    (own / "train.py").write_text("print('hello')\n", encoding="utf-8")
    done = run("image", "render", "--accelerator", "nvidia-h100", "--program", "mine", "--format", "json")
    files = json.loads(done.stdout)["files"]
    assert [name for name in files if name.startswith("program/")] == ["program/mine/train.py"]


def test_what_does_not_go_together_is_one_line(run: Run) -> None:
    for arguments, said in [
        (("dev",), "ENV and --group go together: the image is for the nodes of that group\n"),
        (("dev", "--group", "a10"), '--group: no instance group "a10" in dev; did you mean a10g?\n'),
        (
            ("dev", "--group", "a10g", "--accelerator", "nvidia-h100"),
            "--group determines the accelerators; omit --accelerator\n",
        ),
        (
            ("dev", "--group", "a10g", "--architecture", "arm64"),
            "--group determines the architecture; omit --architecture\n",
        ),
        (
            ("dev", "--group", "system"),
            "--group: must be of types with NVIDIA GPUs, got ml.m5.2xlarge; use a group with GPUs\n",
        ),
        (("--cuda", "1.0"), '--cuda: must be one of 13.0, 12.8, got "1.0"\n'),
        (("--architecture", "x"), '--architecture: must be x86_64 or arm64, got "x"\n'),
    ]:
        refused = run("image", "render", *arguments)
        assert (refused.returncode, refused.stdout, len(refused.stderr.splitlines())) == (2, "", 1)
        assert refused.stderr == said
