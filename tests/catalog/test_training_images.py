"""The compatibility table of training images is consistent, and its lock files match."""

from __future__ import annotations

import re

from hyperpod_cdk.catalog import instance_types, training_images
from hyperpod_cdk.catalog.training_images import Stack
from hyperpod_cdk.workloads.image import LOCKS

SHA256 = re.compile(r"[0-9a-f]{64}")
PINNED = re.compile(r"^([a-z0-9-]+)==(\S+?)(?: ; (platform_machine == \"(?:x86_64|aarch64)\"))?(?: \\)?$", re.MULTILINE)


def release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def pinned(name: str) -> dict[str, str]:
    text = (LOCKS / name).read_text(encoding="utf-8")
    return {match[1]: match[2] for match in PINNED.finditer(text)}


def test_every_row_names_an_installer_of_the_table() -> None:
    known = {each.version for each in training_images.installers()}
    assert {stack.efa_installer for stack in training_images.stacks()} <= known


def test_every_installer_brings_the_plugin_so_that_nothing_is_built_twice() -> None:
    since = release(training_images.PLUGIN_BUNDLED_SINCE)
    versions = [release(each.version) for each in training_images.installers()]
    assert versions == sorted(versions)
    assert versions[0] >= since


def test_rows_are_pinned_and_begin_with_the_newest() -> None:
    stacks = training_images.stacks()
    assert [stack.name for stack in stacks] == ["13.0", "12.8"]
    for stack in stacks:
        assert stack.cuda.startswith(f"{stack.name}.")
        assert stack.base == f"docker.io/nvidia/cuda:{stack.cuda}-devel-ubuntu24.04"
        assert SHA256.fullmatch(stack.digest.removeprefix("sha256:"))
    for installer in training_images.installers():
        # without a published checksum the signature alone speaks for it, which the table says
        assert SHA256.fullmatch(installer.sha256) if installer.sha256 else "SHA-256" in installer.unsure
    assert SHA256.fullmatch(training_images.NCCL_TESTS_SHA256)
    assert re.fullmatch(r"[0-9A-F]{40}", training_images.INSTALLER_KEY)


def test_every_gpu_of_the_catalog_can_be_compiled_for() -> None:
    known = training_images.accelerators()
    types = [row for name in instance_types.names() if (row := instance_types.get(name)) is not None]
    assert {row.accelerator_kind for row in types if row.is_nvidia} == set(known)
    assert {name: each.capability for name, each in known.items()}["nvidia-b300"] == "10.3"


def nccl_of(stack: Stack) -> str:
    packages = pinned(f"cuda-{stack.name}.txt")
    return packages[f"nvidia-nccl-cu{stack.name.split('.')[0]}"]


def test_locks_hold_what_the_rows_name() -> None:
    for stack in training_images.stacks():
        packages = pinned(f"cuda-{stack.name}.txt")
        assert packages.items() >= dict(stack.packages).items()
        assert nccl_of(stack) == stack.nccl
    assert pinned("build.txt").items() >= dict(training_images.BUILD_PACKAGES).items()


def test_locks_have_hashes_and_name_no_host() -> None:
    files = sorted(LOCKS.iterdir())
    assert [file.name for file in files] == ["build.txt", "cuda-12.8.txt", "cuda-13.0.txt"]
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert "://" not in text
        for block in re.split(r"\n(?=\S)", text.strip()):
            first, *hashes = block.split(" \\\n")
            assert PINNED.fullmatch(first), first
            assert hashes, first
            assert all(re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}", line) for line in hashes), block
