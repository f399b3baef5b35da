"""The shape of the repository that everything else relies on."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import hyperpod_cdk
import hyperpod_cdk.config


def test_constructs_is_no_package(project: Path) -> None:
    assert not (project / "constructs" / "__init__.py").exists(), (
        "constructs/__init__.py hides the PyPI package 'constructs' that aws_cdk imports: "
        "constructs/ is a source root, as src/ would be; put code into constructs/hyperpod_cdk/"
    )


def test_the_files_that_are_begun_first_are_there(project: Path, pytestconfig: pytest.Config) -> None:
    longest: tuple[str, ...] = vars(pytestconfig.pluginmanager.get_plugin(str(project / "conftest.py")))["LONGEST"]
    assert [file for file in longest if not (project / file).is_file()] == []
    assert len(set(longest)) == len(longest) > 0


def test_no_test_pays_for_the_validation_of_cdk(project: Path) -> None:
    """It is the engine of ``template_of`` as WebAssembly: compiling it once takes each worker ten seconds of CPU."""
    files = [file for folder in ("tests", "rehearsal/tests") for file in (project / folder).rglob("*.py")]
    assert len(files) > 300
    apps = {str(file.relative_to(project)): _APP.findall(file.read_text(encoding="utf-8")) for file in files}
    assert sum(map(len, apps.values())) > 10
    unflagged = [file for file, found in apps.items() if any("validation=False" not in each for each in found)]
    assert unflagged == [], "take tests.support.templates.app, or pass builtin_cloud_formation_validation=False"


_TOKENS = re.compile(r"\bAws\.(PARTITION|REGION|ACCOUNT_ID)\b")
_APP = re.compile(r"\bcdk\.App\(.*")


def test_tokens_of_a_stack_are_read_in_one_place(project: Path) -> None:
    """Each ``Aws.REGION`` is a call to Node.js, a thousand of them in an app of many environments."""
    home = project / "constructs/hyperpod_cdk/common/stack_arns.py"
    files = [file for folder in ("constructs", "stacks") for file in (project / folder).rglob("*.py")]
    assert _TOKENS.findall(home.read_text(encoding="utf-8")) == ["PARTITION", "REGION", "ACCOUNT_ID"]
    others = [file for file in files if file != home and _TOKENS.search(file.read_text(encoding="utf-8"))]
    assert others == [], "take HERE of hyperpod_cdk.common.stack_arns"


def test_all_is_exactly_what_can_be_imported() -> None:
    assert list(hyperpod_cdk.__all__) == sorted(hyperpod_cdk._HOME)
    for name in hyperpod_cdk.__all__:
        value = getattr(hyperpod_cdk, name)
        assert value.__name__ == name
        assert value.__module__ == f"hyperpod_cdk.{hyperpod_cdk._HOME[name]}"
        assert value.__doc__


def test_every_name_of_the_configuration_can_be_imported() -> None:
    assert list(hyperpod_cdk.config.__all__) == sorted(hyperpod_cdk.config._HOME) == dir(hyperpod_cdk.config)
    for name in hyperpod_cdk.config.__all__:
        home = import_module(f"hyperpod_cdk.config.{hyperpod_cdk.config._HOME[name]}")
        assert getattr(hyperpod_cdk.config, name) is getattr(home, name)


@pytest.mark.parametrize(("module", "name"), [(hyperpod_cdk, "HyperPad"), (hyperpod_cdk.config, "Enviroment")])
def test_an_unknown_name_is_an_attribute_error(module: ModuleType, name: str) -> None:
    with pytest.raises(AttributeError, match=f"^module '{module.__name__}' has no attribute '{name}'$"):
        getattr(module, name)


def test_comparing_two_assemblies_builds_no_model_of_the_environment_file() -> None:
    """What a review, and a plan before it starts the app, need to load: half of it would be the file's models."""
    code = (
        "import sys, hyperpod_cdk.review.run, hyperpod_cdk.review.sources, hyperpod_cdk.review.pages.html;"
        "print([m for m in ('environment', 'extensions', 'rules') if f'hyperpod_cdk.config.{m}' in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_reading_an_environment_starts_neither_cdk_nor_boto3() -> None:
    code = (
        "import sys, hyperpod_cdk.config, hyperpod_cdk.catalog;"
        "print([m for m in ('aws_cdk', 'jsii', 'boto3', 'botocore') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
