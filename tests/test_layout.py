"""The shape of the repository that everything else relies on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import hyperpod_cdk


def test_constructs_is_no_package(project: Path) -> None:
    assert not (project / "constructs" / "__init__.py").exists(), (
        "constructs/__init__.py hides the PyPI package 'constructs' that aws_cdk imports: "
        "constructs/ is a source root, as src/ would be; put code into constructs/hyperpod_cdk/"
    )


def test_the_files_that_are_begun_first_are_there(project: Path, pytestconfig: pytest.Config) -> None:
    longest: tuple[str, ...] = vars(pytestconfig.pluginmanager.get_plugin(str(project / "conftest.py")))["LONGEST"]
    assert [file for file in longest if not (project / file).is_file()] == []
    assert len(set(longest)) == len(longest) > 0


def test_all_is_exactly_what_can_be_imported() -> None:
    assert list(hyperpod_cdk.__all__) == sorted(hyperpod_cdk._HOME)
    for name in hyperpod_cdk.__all__:
        value = getattr(hyperpod_cdk, name)
        assert value.__name__ == name
        assert value.__module__ == f"hyperpod_cdk.{hyperpod_cdk._HOME[name]}"
        assert value.__doc__


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(hyperpod_cdk, "HyperPad")


def test_reading_an_environment_starts_neither_cdk_nor_boto3() -> None:
    code = (
        "import sys, hyperpod_cdk.config, hyperpod_cdk.catalog;"
        "print([m for m in ('aws_cdk', 'jsii', 'boto3', 'botocore') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
