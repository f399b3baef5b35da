"""What every test stands on: the packaged Node.js, no credentials, no network."""

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
# thousands of templates and answers are made and kept: looking for garbage among them takes a tenth of the time
gc.set_threshold(100_000, 20, 20)
# a run of the command within this process builds its tree of verbs anew, and a session of botocore's reads its models
# anew: each takes a tenth of a second, and neither depends on who asks
setattr(typer.testing, "_get_command", functools.cache(typer.main.get_command))  # noqa: B010 - a patch
setattr(botocore.session, "create_loader", functools.cache(botocore.loaders.create_loader))  # noqa: B010 - a patch
# each session and client looks anew for what botocore calls its events otherwise; the aliases are the same for all
_event_names: dict[str, str] = {}
setattr(  # noqa: B010 - a patch
    botocore.hooks.EventAliaser, "_alias_name_cache", property(lambda _: _event_names, lambda _, __: None)
)
# how long an example takes tells how busy the machine is, not whether the code is right
settings.register_profile("tests", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")
for _name in [n for n in os.environ if n.startswith("AWS_")]:
    del os.environ[_name]
os.environ["AWS_EC2_METADATA_DISABLED"] = "true"
# an app without a folder for its assembly, and jsii, leave theirs behind: thousands in a run, some gigabytes
_SCRATCH = None
if "PYTEST_XDIST_WORKER" not in os.environ:  # its workers inherit it: a deeper folder is too long for a socket's path
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
    os.environ["TMPDIR"] = tempfile.tempdir = _SCRATCH = tempfile.mkdtemp(prefix="tests-")
# a shell that runs the tests in the background has it ignored, and so would every process that a test interrupts
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
"""A worker takes a whole file: one of these taken last would keep the others waiting for it."""
EXAMPLE_SECONDS = 900
"""Limit of one test of `make examples`, in seconds: a whole life of an environment, on a busy machine."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer the switch that writes reviewed files anew."""
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite the files in tests/*/golden from what is made now"
    )


def pytest_unconfigure() -> None:
    """Remove what the tests left in the folder for temporary files; those of failed tests stand beside it."""
    if _SCRATCH is not None:
        shutil.rmtree(_SCRATCH, ignore_errors=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files that take longest first; all others stay in their order. An example may last minutes."""
    rank = {file: number for number, file in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.nodeid.partition("::")[0], len(rank)))
    for item in items:
        if item.get_closest_marker("examples") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(EXAMPLE_SECONDS))


def pytest_collection_finish() -> None:
    """Look for garbage no more among what was imported and collected, which stays to the end."""
    gc.freeze()


# needs PyTorch, and has a venv of its own: make training
collect_ignore = ["tests/training_program"]


@pytest.fixture(scope="session")
def project() -> Path:
    """The root of the repository."""
    return Path(__file__).parent


@pytest.fixture(scope="session")
def assemblies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all workers of a session share, for what takes seconds to synthesize."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "assemblies"
    folder.mkdir(exist_ok=True)
    return folder
