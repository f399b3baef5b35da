"""The build context of a training image: pinned, verified, clean for hadolint over the whole table."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperpod_cdk.catalog import instance_types, training_images
from hyperpod_cdk.catalog.instance_types import InstanceType
from hyperpod_cdk.workloads import image
from hyperpod_cdk.workloads.program import ArgumentError
from tests.support.tables import row_by_row

BIN = Path(sys.executable).parent
PROGRAM = {"fsdp_training/train.py": "print('loss: 1.0')\n"}
STACKS = [stack.name for stack in training_images.stacks()]
INSTALLERS = [installer.version for installer in training_images.installers()]
GPUS = [row for name in instance_types.names() if (row := instance_types.get(name)) is not None and row.is_nvidia]


def rows(*names: str) -> list[InstanceType]:
    found = [row for name in names if (row := instance_types.get(name)) is not None]
    assert len(found) == len(names)
    return found


def run(program: str, *arguments: str) -> str:
    done = subprocess.run([str(BIN / program), *arguments], capture_output=True, text=True, check=False, timeout=60)
    return f"{done.returncode}{done.stdout}{done.stderr}"


def write(context: image.RenderedImage, folder: Path) -> None:
    for name, text in context.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def test_hadolint_finds_nothing_in_any_row_with_any_option(tmp_path: Path) -> None:
    files: list[str] = []
    others = ((None, None), (PROGRAM, "registry.example.com/cuda:13"))
    for cuda, installer, (program, base) in itertools.product(STACKS, INSTALLERS, others):
        rendered = image.render(cuda=cuda, efa_installer=installer, program=program, base_image=base)
        path = tmp_path / f"{len(files)}.Dockerfile"
        path.write_text(rendered.dockerfile, encoding="utf-8")
        files.append(str(path))
    assert len(files) == 2 * len(STACKS) * len(INSTALLERS)
    assert run("hadolint", "--no-color", *files) == "0"


def test_the_script_that_checks_the_image_is_clean(tmp_path: Path) -> None:
    write(image.render(), tmp_path)
    script = str(tmp_path / "check_image.sh")
    assert run("shellcheck", script) == "0"
    assert run("shfmt", "-d", "-i", "2", "-ci", "-bn", script) == "0"


@dataclass
class Built:
    """What a build leaves, below a folder in place of /, with commands that say what they are told."""

    root: Path

    def write(self, path: str, text: str = "") -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        file.chmod(0o755)

    def check(self) -> tuple[int, str]:
        script = (image.TEMPLATES / "check_image.sh").read_text(encoding="utf-8")
        for path in ("/usr/lib/", "/usr/sbin/", "/opt/", "find /"):
            script = script.replace(path, path.replace("/", f"{self.root}/", 1))
        done = subprocess.run(
            ["/bin/bash", "-c", script],
            env={"PATH": f"{self.root}/bin:/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
        return done.returncode, (done.stdout + done.stderr).strip().replace(str(self.root), "")


@pytest.fixture
def built(tmp_path: Path) -> Built:
    made = Built(tmp_path)
    made.write("bin/fi_info", "#!/bin/sh\necho efa")
    made.write("bin/ldd", '#!/bin/sh\necho "libcuda.so.1 => not found"; cat "$1"')
    for command in ("bin/hyperpodrun", "bin/python", "usr/sbin/sshd", "opt/amazon/openmpi/bin/mpirun"):
        made.write(command, "#!/bin/sh\nexit 0")
    for file in ("usr/lib/libnccl-net.so", "opt/venv/libnccl.so.2", "opt/nccl-tests/build/all_reduce_perf"):
        made.write(file)
    return made


def test_an_image_whose_parts_fit_is_reported_so(built: Built) -> None:
    assert built.check() == (0, "check-image: all parts fit")


@pytest.mark.parametrize(
    ("path", "text", "says"),
    [
        ("bin/fi_info", "#!/bin/sh\necho tcp", "libfabric must have the efa provider, got: tcp"),
        ("usr/lib/libnccl-net.so", None, "NCCL must find its plugin, /usr/lib/libnccl-net.so is missing"),
        (
            "usr/lib/libnccl-net.so",
            "libfabric.so.1 => not found",
            "/usr/lib/libnccl-net.so needs the missing library libfabric.so.1; NCCL would use TCP",
        ),
        ("opt/venv/libnccl.so.2", None, "there must be one NCCL, got 0:"),
        (
            "opt/nccl-tests/build/all_reduce_perf",
            "libmpi.so.40 => not found",
            "/opt/nccl-tests/build/all_reduce_perf needs the missing library libmpi.so.40",
        ),
    ],
)
def test_a_part_that_does_not_fit_stops_the_build(built: Built, path: str, text: str | None, says: str) -> None:
    if text is None:
        (built.root / path).unlink()
    else:
        built.write(path, text)
    assert built.check() == (1, f"check-image: {says}")


def test_a_second_nccl_stops_the_build(built: Built) -> None:
    built.write("usr/lib/libnccl.so.2.28.9")
    code, says = built.check()
    assert code == 1
    assert says.startswith("check-image: there must be one NCCL, got 2: ")


@pytest.mark.parametrize("command", ["bin/hyperpodrun", "bin/python", "usr/sbin/sshd", "opt/amazon/openmpi/bin/mpirun"])
def test_a_program_that_does_not_start_stops_the_build(built: Built, command: str) -> None:
    built.write(command, "#!/bin/sh\nexit 7")
    assert built.check() == (7, "")


def test_everything_that_the_dockerfile_copies_is_in_its_context(tmp_path: Path) -> None:
    rendered = image.render(program=PROGRAM)
    write(rendered, tmp_path)
    copied = re.findall(r"^COPY (?!--from)(\S+) ", rendered.dockerfile, re.MULTILINE)
    assert copied == ["locks/", "ssh_client.conf", "ssh_server.conf", "check_image.sh", "program/"]
    ignored = rendered.files[".dockerignore"].splitlines()
    assert ignored[0] == "*"
    for path in copied:
        assert (tmp_path / path).exists()
        assert f"!{path.rstrip('/')}" in ignored
    for lock in re.findall(r"--requirement /\w+/(locks/\S+)", rendered.dockerfile):
        assert lock in rendered.files
    assert rendered.files["program/fsdp_training/train.py"] == PROGRAM["fsdp_training/train.py"]


def test_the_image_is_built_of_what_was_verified_and_checked_at_its_end() -> None:
    fabric, tests, final = re.split(r"^FROM .*\n", image.render().dockerfile, flags=re.MULTILINE)[1:]
    assert "apt-get purge --yes --allow-change-held-packages libnccl2 libnccl-dev " in fabric
    installs = re.findall(r"pip install (.*?) *\\\n +--requirement /tmp/locks/(\S+)", fabric)
    hashed = "--no-cache-dir --disable-pip-version-check --require-hashes"
    # what is built from sources is built with the pinned tools of the first file
    assert [options for options, _ in installs] == [hashed, f"{hashed} --no-build-isolation"]
    assert installs[0][1] == "build.txt"
    archive = f"{training_images.NCCL_TESTS_SHA256}  nccl-tests.tar.gz"
    assert (
        tests.index(f'echo "{archive}" | sha256sum --check') < tests.index("tar --extract") < tests.index("make --jobs")
    )
    assert final.splitlines() == [
        "COPY --from=nccl-tests /opt/nccl-tests/build /opt/nccl-tests/build",
        "COPY check_image.sh /usr/local/bin/check-image",
        "RUN bash /usr/local/bin/check-image",
        "WORKDIR /workspace",
    ]


def test_a_program_is_copied_only_where_there_is_one() -> None:
    assert "program/" not in image.render().dockerfile
    assert not any(name.startswith("program/") for name in image.render().files)
    assert image.render(program=PROGRAM).dockerfile.endswith("WORKDIR /workspace\nCOPY program/ /workspace/\n")


@pytest.mark.parametrize("version", INSTALLERS)
def test_the_installer_runs_only_after_its_signature_is_verified(version: str) -> None:
    text = image.render(efa_installer=version).dockerfile
    (installer,) = [each for each in training_images.installers() if each.version == version]
    steps = [
        text.index(f"aws-efa-installer-{version}.tar.gz.sig"),
        text.index("--verify"),
        text.index(f"VALIDSIG .*{training_images.INSTALLER_KEY}$"),
        text.index("./efa_installer.sh -y --skip-kmod"),
    ]
    assert steps == sorted(steps)
    assert text.count("sha256sum --check") == (2 if installer.sha256 else 1)
    assert f"{installer.sha256}  aws-efa-installer" in text or installer.sha256 is None
    assert "configure" not in text, "the plugin comes with the installer"


def test_the_signature_check_takes_one_key_only() -> None:
    pattern = re.search(r"grep --extended-regexp '(.*)' status", image.render().dockerfile)
    assert pattern is not None
    key = training_images.INSTALLER_KEY
    valid = f"[GNUPG:] VALIDSIG {key} 2026-11-22 1795314041 0 4 0 1 10 00 {key}"
    assert re.match(pattern[1], valid)
    for refused in (
        valid.replace(key, key[::-1]),
        f"[GNUPG:] GOODSIG {key[-16:]} Amazon EC2 EFA",
        f"[GNUPG:] BADSIG {key}",
        f"gpg: [GNUPG:] VALIDSIG {key}",
    ):
        assert not re.match(pattern[1], refused), refused


@pytest.mark.parametrize(
    ("names", "cuda", "platform", "gencode"),
    [
        (["ml.g5.8xlarge"], "13.0", "linux/amd64", ["86"]),
        (["ml.p6-b300.48xlarge"], "13.0", "linux/amd64", ["103"]),
        (["ml.p6e-gb200.36xlarge"], "13.0", "linux/arm64", ["100"]),
        (["ml.g6e.12xlarge", "ml.g5.12xlarge", "ml.g6.12xlarge"], "13.0", "linux/amd64", ["86", "89"]),
        (["ml.p5.48xlarge", "ml.g7e.48xlarge"], "13.0", "linux/amd64", ["90", "120"]),
    ],
)
def test_an_image_for_types(names: Sequence[str], cuda: str, platform: str, gencode: list[str]) -> None:
    rendered = image.render_for(rows(*names))
    assert (rendered.stack.name, rendered.platform) == (cuda, platform)
    flags = " ".join(f"-gencode=arch=compute_{number},code=sm_{number}" for number in gencode)
    assert f'NVCC_GENCODE="{flags}"' in rendered.dockerfile


def test_without_accelerators_all_that_the_cuda_knows_are_compiled_for() -> None:
    numbers = re.findall(r"code=sm_(\d+)", image.render().dockerfile)
    assert numbers == ["75", "80", "86", "89", "90", "100", "103", "120"]
    assert re.findall(r"code=sm_(\d+)", image.render(cuda="12.8").dockerfile) == [n for n in numbers if n != "103"]


def test_the_base_is_pinned_and_may_come_from_another_registry() -> None:
    stack = training_images.stacks()[0]
    assert f"\nFROM {stack.base}@{stack.digest} AS fabric\n" in image.render().dockerfile
    mirrored = "111122223333.dkr.ecr.us-east-1.amazonaws.com/nvidia/cuda:13.0.2-devel-ubuntu24.04"
    assert f"\nFROM {mirrored} AS fabric\n" in image.render(base_image=mirrored).dockerfile


def test_what_is_in_it_is_stated_at_its_top() -> None:
    assert image.render_for(rows("ml.p5.48xlarge", "ml.p5en.48xlarge")).dockerfile.splitlines()[:3] == [
        "# An image to train in, with EFA: H100, H200.",
        "# CUDA 13.0.2, PyTorch 2.11.0 with its NCCL 2.28.9, EFA installer 1.49.0",
        "# with its aws-ofi-nccl 1.20.0 and libfabric 2.4.0amzn5.0. Nodes need NVIDIA's driver 580 or newer.",
    ]


def test_doubts_of_the_rows_are_given() -> None:
    doubts = image.render(cuda="12.8", efa_installer="1.43.2").doubts
    assert doubts == (
        "CUDA 12.8: the plugin's notes say that NCCL from 2.17.1 on works, and name no test with 2.27.5",
        "EFA installer 1.43.2: no source states its SHA-256 or its libfabric; its signature is verified",
    )
    assert image.render(efa_installer="1.50.0").doubts == ()


def test_commands_build_for_the_nodes() -> None:
    commands = image.render_for(rows("ml.p6e-gb200.36xlarge")).commands(tag="r.example.com/t:1", folder="image")
    assert commands == ("docker buildx build --platform linux/arm64 --tag r.example.com/t:1 --push image",)


@row_by_row(
    "options, message",
    [
        ({"cuda": "11.8"}, 'cuda: must be one of 13.0, 12.8, got "11.8"'),
        (
            {"cuda": "12.8", "accelerators": ["nvidia-b300"]},
            "cuda: must be 12.9 or newer for nvidia-b300, got 12.8; omit it",
        ),
        (
            {"cuda": "12.8", "architecture": "arm64"},
            "cuda: must be a CUDA whose PyTorch is built for arm64, got 12.8; omit it",
        ),
        ({"architecture": "aarch64"}, 'architecture: must be x86_64 or arm64, got "aarch64"'),
        (
            {"efa_installer": "1.30.0"},
            (
                'efa_installer: must be one of 1.43.2, 1.48.0, 1.49.0, 1.50.0, got "1.30.0"; those before'
                " 1.39.0 bring no aws-ofi-nccl"
            ),
        ),
        (
            {"accelerators": ["h100"]},
            (
                "accelerator: must be one of nvidia-t4, nvidia-a100, nvidia-a10g, nvidia-l4, nvidia-l40s, nvidia-h100,"
                " nvidia-h200, nvidia-b200, nvidia-gb200, nvidia-b300, nvidia-rtx-pro-4500, nvidia-rtx-pro-6000, got"
                ' "h100"; did you mean nvidia-h100?'
            ),
        ),
        *(
            ({"base_image": name}, f'base_image: must be an image with a tag or a digest, got "{name}"')
            for name in ("cuda", "r.example.com:5000/cuda", "cuda:latest", "cuda:13 AS x", "@sha256:ab", "")
        ),
    ],
)
def test_what_the_table_does_not_have_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=f"^{re.escape(message)}$") as caught:
        image.render(**options)
    # what a command says of its option
    assert message == f"{caught.value.argument}: {caught.value.problem}"


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (
            ["ml.trn1.32xlarge"],
            "group: must be of types with NVIDIA GPUs, got ml.trn1.32xlarge; AWS's own images are for Neuron",
        ),
        (
            ["ml.m5.2xlarge"],
            "group: must be of types with NVIDIA GPUs, got ml.m5.2xlarge; use a group with GPUs",
        ),
        (
            ["ml.p5.48xlarge", "ml.p6e-gb200.36xlarge"],
            "group: must be of types of one architecture, got arm64 and x86_64",
        ),
        ([], "group: must be of types of one architecture, got no type"),
    ],
)
def test_types_that_no_image_fits(names: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        image.render_for(rows(*names))


@given(
    st.lists(st.sampled_from([row for row in GPUS if row.architecture == "x86_64"]), min_size=1, max_size=5),
    st.sampled_from([None, *INSTALLERS]),
)
def test_every_group_of_gpus_has_an_image_that_is_always_the_same(
    types: list[InstanceType], installer: str | None
) -> None:
    rendered = image.render_for(types, efa_installer=installer)
    assert rendered == image.render_for(types, efa_installer=installer)
    assert "{" not in rendered.dockerfile.replace("${", "").replace("{ test", "")
    for name in rendered.files:
        assert not name.startswith("/")
