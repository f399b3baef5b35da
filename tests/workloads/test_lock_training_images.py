"""scripts/lock_training_images.py keeps, of each package, what the image's Python can install."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "lock_training_images.py"


@pytest.fixture(scope="module")
def lock() -> ModuleType:
    spec = importlib.util.spec_from_file_location(SCRIPT.stem, SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def package(*wheels: str, sdist: str | None = None) -> dict[str, Any]:
    files = [{"url": f"https://x/{name}", "hashes": {"sha256": f"hash of {name}"}} for name in wheels]
    row: dict[str, Any] = {"name": "p", "version": "1.0", "wheels": files}
    return row | ({"sdist": {"hashes": {"sha256": f"hash of {sdist}"}}} if sdist else {})


@pytest.mark.parametrize(
    ("name", "fits"),
    [
        ("p-1.0-py3-none-any.whl", True),
        ("p-1.0-cp312-cp312-manylinux_2_28_x86_64.whl", True),
        ("p-1.0-cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", True),
        ("p-1.0-cp39-abi3-manylinux_2_34_x86_64.whl", True),
        ("p-1.0%2Bcu-cp312-cp312-manylinux_2_39_x86_64.whl", True),
        ("p-1.0-cp312-cp312-manylinux_2_40_x86_64.whl", False),
        ("p-1.0-cp312-cp312-manylinux_2_28_aarch64.whl", False),
        ("p-1.0-cp313-cp313-manylinux_2_28_x86_64.whl", False),
        ("p-1.0-cp312-cp312-musllinux_1_2_x86_64.whl", False),
        ("p-1.0-cp312-cp312-win_amd64.whl", False),
    ],
)
def test_wheels_of_the_image_are_kept(lock: ModuleType, name: str, *, fits: bool) -> None:
    other = "p-1.0-cp312-cp312-manylinux_2_5_x86_64.whl"
    expected = [f"hash of {each}" for each in (name, other) if fits or each == other]
    assert list(lock._hashes(package(name, other), "x86_64")) == expected


def test_sources_are_kept_where_there_is_no_wheel_at_all(lock: ModuleType) -> None:
    assert list(lock._hashes(package(sdist="p-1.0.tar.gz"), "x86_64")) == ["hash of p-1.0.tar.gz"]


def test_sources_do_not_stand_in_for_a_wheel_that_is_missing(lock: ModuleType) -> None:
    row = package("p-1.0-cp313-cp313-manylinux_2_28_x86_64.whl", sdist="p-1.0.tar.gz")
    with pytest.raises(SystemExit, match=r"^p 1\.0 has no wheel for Python 3\.12 on x86_64$"):
        list(lock._hashes(row, "x86_64"))


def test_an_entry_joins_architectures(lock: ModuleType) -> None:
    intel = package("p-1.0-cp312-cp312-manylinux_2_28_x86_64.whl")
    arm = package("p-1.0-cp312-cp312-manylinux_2_28_aarch64.whl")
    assert lock._entry("p", {"x86_64": {"p": intel}, "aarch64": {"p": arm}}) == (
        "p==1.0 \\\n"
        "    --hash=sha256:hash of p-1.0-cp312-cp312-manylinux_2_28_aarch64.whl \\\n"
        "    --hash=sha256:hash of p-1.0-cp312-cp312-manylinux_2_28_x86_64.whl\n"
    )
    assert lock._entry("p", {"x86_64": {"p": intel}, "aarch64": {}}).startswith(
        'p==1.0 ; platform_machine == "x86_64" \\\n'
    )
    with pytest.raises(SystemExit, match=r"^p must have one version everywhere, got \['1\.0', '2\.0'\]$"):
        lock._entry("p", {"x86_64": {"p": intel}, "aarch64": {"p": arm | {"version": "2.0"}}})
