"""What `validate` accepts works: it synthesizes, passes the checks of templates and cdk-nag, and deploys."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable, Container
from pathlib import Path

import aws_cdk as cdk
import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from hyperpod_cdk.config import LoadedEnvironment
from hyperpod_cdk_rehearsal.account_files import satisfying
from hyperpod_cdk_rehearsal.driver import deployment
from hyperpod_cdk_stacks.app import build, new_app
from tests.config.conftest import HERE, rows_of
from tests.support import legal
from tests.support.assembly import PROJECT, light_app, read_assembly
from tests.support.embedded import embedded
from tests.support.in_process_cdk import Aws, InProcessCdk
from tests.support.tables import row_by_row

FOUND = Path(__file__).parent / "found_files.yaml"
"""Files that were accepted once and did not work, shrunk; or that are refused since."""

FEW = 3
"""Files of each of the shards that `make test` synthesizes, a second for each; `make examples` draws hundreds."""

EACH = 20
SHARDS = range(int(os.environ.get("ACCEPTED", "40")) // EACH)
"""`make examples ACCEPTED=N` synthesizes N files, in shards that workers share."""

DEPLOYED_EACH = 5
DEPLOYED = range(int(os.environ.get("DEPLOYED", "5")) // DEPLOYED_EACH)
"""`make examples DEPLOYED=N` deploys N files, in shards as above."""

# hypothesis would shrink by synthesizing for an hour: a file that fails is made smaller by `legal.shrunk`
_SETTINGS = settings(
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


@pytest.mark.parametrize("shard", [0, *(pytest.param(other, marks=pytest.mark.examples) for other in range(1, 4))])
def test_what_is_accepted_works(shard: int) -> None:
    works(1 + shard, FEW, synthesizes)


@pytest.mark.examples
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("shard", SHARDS)
def test_whatever_is_accepted_works(shard: int) -> None:
    works(1000 + shard, EACH, synthesizes)


@pytest.mark.examples
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("shard", DEPLOYED)
def test_whatever_is_accepted_deploys(shard: int) -> None:
    works(2000 + shard, DEPLOYED_EACH, deploys)


@row_by_row("name", yaml.load(FOUND.read_text(encoding="utf-8"), yaml.CSafeLoader))
def test_what_was_found_works_or_is_refused(name: str) -> None:
    row = yaml.load(FOUND.read_text(encoding="utf-8"), yaml.CSafeLoader)[name]
    answer = legal.asked(row["file"])
    if isinstance(answer, LoadedEnvironment):
        assert "refused" not in row
        synthesizes(answer)
    else:
        assert [each.render() for each in answer] == row["refused"]


def test_warnings_of_a_failure_are_understood() -> None:
    base = (HERE / "base.yaml").read_text(encoding="utf-8")
    doubtful = {case: row for rows in rows_of("doubtful_files.yaml").values() for case, row in rows.items()}
    warned = set()
    for case, row in doubtful.items():
        text = base
        for old, new in row["change"].items():
            text = text.replace(old, new)
        answer = legal.asked(text)
        assert isinstance(answer, LoadedEnvironment), case
        if legal.is_warned_to_fail(answer):
            warned.add(case)
    assert warned == {
        "control_plane_of_an_unlisted_size",
        "addresses_per_node_unknown",
        "no_place_for_addons",
        "no_node_takes_addons",
        "native_types_where_there_are_none",
        "one_plan_for_two_types",
        "one_plan_for_a_group_of_two_types",
        "one_plan_in_two_zones",
        "budget_where_cloudformation_makes_none",
    }


@pytest.mark.examples
@pytest.mark.timeout(1800)
def test_every_field_is_reached() -> None:
    """A generator that never writes a field says nothing of it."""
    reached: set[str] = set()

    def check(place: str, number: int) -> None:
        @seed(number)
        @settings(_SETTINGS, max_examples=12)
        @given(file=legal.files(focus=st.just(place)))
        def run(file: legal.File) -> None:
            if place not in reached:
                reached.update(legal.fields_of(file))

        run()

    # most fields are reached by the first draws; the few that are not are drawn for again
    for number in range(7, 12):
        for place in sorted(legal.fields()):
            if place not in reached:
                check(place, number)
    assert sorted(legal.fields() - reached) == []


def works(number: int, count: int, judge: Callable[[LoadedEnvironment], None]) -> None:
    """Draw accepted files, and show the first with which something fails, made as small as it goes."""
    print(f"seed {number}")

    @seed(number)
    @settings(_SETTINGS, max_examples=count)
    @given(file=legal.files())
    def run(file: legal.File) -> None:
        problem = problem_of(file, judge)
        if problem is None:
            return
        kind = problem[:60]
        small = legal.shrunk(file, still=lambda each: (problem_of(each, judge) or "").startswith(kind))
        pytest.fail(f"seed {number}: accepted, and then {problem_of(small, judge)}\n{legal.as_text(small)}")

    run()


def problem_of(file: legal.File, judge: Callable[[LoadedEnvironment], None]) -> str | None:
    """Say what fails with a file that is accepted."""
    loaded = legal.accepted(file)
    assert loaded is not None
    try:
        judge(loaded)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a user would see any exception
        # a deployment's error says which stack, its output why
        return "\n".join(filter(None, [f"{type(error).__name__}: {error}", getattr(error, "output", "")]))
    return None


def synthesizes(loaded: LoadedEnvironment) -> None:
    """Write the templates with everything that 'cdk synth' checks; a stack's errors are part of the failure."""
    with tempfile.TemporaryDirectory() as folder:
        synthesized(loaded, light_app(Path(folder)))


def synthesized(loaded: LoadedEnvironment, app: cdk.App) -> None:
    """Write an app's cloud assembly, with cdk-nag and the checks of templates."""
    folder = Path(app.outdir)
    build(app, [loaded], root=PROJECT)
    try:
        app.synth()
    except RuntimeError as error:
        report = folder / "validation-report.json"
        if not report.exists():
            raise
        raise AssertionError("\n".join(_violations(report))) from error
    lacking = [each for each in _violations(folder / "validation-report.json", kinds={"warning"}) if "F3006" in each]
    # a dated list of regions: the file is warned of what it lists too
    assert not lacking or any(re.search("did not have|was not in", each.message) for each in loaded.warnings), lacking
    environment = loaded.environment
    made = read_assembly(folder, environment)
    installed = {
        made.resource(node)["Properties"]["AddonName"]: made.resource(node)["Properties"]
        for node in made.of_type("AWS::EKS::Addon")
    }
    pinned = {name: each for name, each in environment.eks.addon_versions.items() if environment.eks.installs(name)}
    assert {name: installed[name].get("AddonVersion") for name in pinned} == pinned


def _violations(report: Path, *, kinds: Container[str] = ("error", "fatal")) -> list[str]:
    plugins = json.loads(report.read_text(encoding="utf-8"))["pluginReports"]
    found = [each for plugin in plugins for each in plugin["violations"]]
    return [
        f"{each['ruleName']}: {each['description']} at {each['violatingConstructs'][0].get('constructPath')}"
        for each in found
        if each.get("severity") in kinds
    ]


def deploys(loaded: LoadedEnvironment) -> None:
    """Deploy it in an account that has all that it needs, unless its warnings say that a first deployment fails."""
    environment = loaded.environment
    # which endpoint services there are, the region alone knows, and preflight asks it: drawn names are none
    endpoints = environment.network.endpoints
    if legal.is_warned_to_fail(loaded) or (endpoints and endpoints.additional):
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        synthesized(loaded, new_app(outdir=folder / "assembly"))
        account = satisfying(environment)
        with embedded(account, region=environment.region, account=environment.account, is_hurried=True) as there:
            aws = Aws(there, folder / "log")
            InProcessCdk(aws).run(deployment(environment.name, folder / "assembly"))
            (found,) = aws.client("sagemaker").list_clusters()["ClusterSummaries"]
            cluster = (found["ClusterName"], found["ClusterStatus"])
            assert cluster == (environment.hyperpod_cluster_name, "InService")
