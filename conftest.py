"""Settings of all tests: the packaged Node.js, no credentials, no network."""

from __future__ import annotations

import functools
import gc
import os
import shutil
import signal
import tempfile
from pathlib import Path

import botocore.hooks
import botocore.loaders
import botocore.session
import pytest
import typer.testing
from hypothesis import HealthCheck, settings

from hyperpod_cdk.packaged_node import use_packaged_node

use_packaged_node()
# thousands of templates and answers are created and kept: garbage collection would take a tenth of the time
gc.set_threshold(100_000, 20, 20)
# each run of the command in this process would build its commands again, and each botocore session would read its
# models again: each takes a tenth of a second, and the results are always the same
setattr(typer.testing, "_get_command", functools.cache(typer.main.get_command))  # noqa: B010 - a patch
setattr(botocore.session, "create_loader", functools.cache(botocore.loaders.create_loader))  # noqa: B010 - a patch
# each session and client would build the event aliases of botocore again; they are always the same
_event_names: dict[str, str] = {}
setattr(  # noqa: B010 - a patch
    botocore.hooks.EventAliaser, "_alias_name_cache", property(lambda _: _event_names, lambda _, __: None)
)
# the duration of an example depends on the load of the machine and not on the code
settings.register_profile("tests", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")
for _name in [n for n in os.environ if n.startswith("AWS_")]:
    del os.environ[_name]
os.environ["AWS_EC2_METADATA_DISABLED"] = "true"
# apps without an assembly folder, and jsii, leave temporary folders: thousands in a run, some gigabytes
_SCRATCH = None
if "PYTEST_XDIST_WORKER" not in os.environ:  # workers inherit it; a deeper folder would be too long for a socket's path
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
    os.environ["TMPDIR"] = tempfile.tempdir = _SCRATCH = tempfile.mkdtemp(prefix="tests-")
# a shell ignores SIGINT for background processes, and processes that a test interrupts would inherit that
signal.signal(signal.SIGINT, signal.default_int_handler)


LONGEST = (
    "tests/checks/test_broken_accounts.py",
    "tests/stacks/test_templates.py",
    "tests/rehearsal/test_examples.py",
    "tests/lifecycle_scripts/test_bats.py",
    "tests/review/test_sources.py",
    "tests/constructs/test_cluster.py",
    "tests/review/test_approval.py",
    "tests/cli/test_extensions.py",
    "tests/checks/test_composed_accounts.py",
    "tests/charts/test_charts.py",
    "rehearsal/tests/services/test_rules.py",
    "tests/cli/test_validate.py",
    "tests/stacks/test_accepted.py",
    "tests/importing/test_live.py",
    "tests/living/test_kinds.py",
    "tests/cli/test_review.py",
    "tests/review/test_template_yaml.py",
    "rehearsal/tests/services/test_sagemaker.py",
    "rehearsal/tests/resources/test_custom.py",
    "tests/cli/test_preflight_live.py",
    "tests/review/test_changes.py",
    "tests/living/test_observing.py",
    "tests/cli/test_refused.py",
    "tests/constructs/test_control_plane.py",
    "tests/cli/test_words.py",
    "tests/review/pages/test_markdown.py",
    "tests/test_wheel.py",
    "rehearsal/tests/cloudformation/test_graph.py",
    "tests/importing/test_mutated.py",
    "tests/catalog/test_refresh_catalog.py",
    "tests/review/rights/test_access.py",
    "tests/stacks/test_environment.py",
)
"""Slow files, which run first: a worker runs a whole file, and the others would wait for a slow file at the end."""
EXAMPLE_SECONDS = 900
"""The time limit of a test of `make examples` in seconds: the life cycle of an environment on a busy machine."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that rewrites golden files."""
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite the files in tests/*/golden with the current output"
    )


def pytest_unconfigure() -> None:
    """Remove the temporary files of the tests; those of failed tests are in another folder."""
    if _SCRATCH is not None:
        shutil.rmtree(_SCRATCH, ignore_errors=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the slowest files first and all others in order, and set the time limit of examples."""
    rank = {file: number for number, file in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.nodeid.partition("::")[0], len(rank)))
    for item in items:
        if item.get_closest_marker("examples") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(EXAMPLE_SECONDS))


def pytest_collection_finish() -> None:
    """Exclude imported modules and collected tests from garbage collection, because they stay until the end."""
    gc.freeze()


# needs PyTorch and has a separate virtual environment: make training
collect_ignore = ["tests/training_program"]


@pytest.fixture(scope="session")
def project() -> Path:
    """Return the root of the repository."""
    return Path(__file__).parent


@pytest.fixture(scope="session")
def assemblies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that all workers of a session share, for assemblies that take seconds to synthesize."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "assemblies"
    folder.mkdir(exist_ok=True)
    return folder
