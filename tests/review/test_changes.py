"""Changes as pull requests make them, and the verdict on each."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from hyperpod_cdk import HyperPodChart
from hyperpod_cdk.config import LoadedEnvironment, load_environment
from hyperpod_cdk.review.changes import causes
from hyperpod_cdk.review.model import Cause, Effect, Level, Report, Side
from hyperpod_cdk.review.run import review
from hyperpod_cdk.templates.assembly import Assembly, read_assembly
from hyperpod_cdk_stacks.app import add_environment, new_app
from tests.support.assembly import ENVIRONMENTS, PROJECT, shipped

pytestmark = pytest.mark.usefixtures("nag_here")

CHANGES: list[dict[str, Any]] = yaml.load(
    (Path(__file__).parent / "changes.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader
)
FEW_ALONE = (
    "a lifecycle script and a group's count",
    "a bigger file system",
    "protection is lifted",
    "Kubernetes one minor back",
    "a tag",
)
# each row synthesizes an environment, once for all tests: a few here, the others with the examples
ROWS = [row if row["change"] in FEW_ALONE else pytest.param(row, marks=pytest.mark.examples) for row in CHANGES]
GRAVE = ("AWS::SageMaker::Cluster", "AWS::FSx::FileSystem", "AWS::EKS::Cluster", "AWS::EC2::VPC")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project's root: what it synthesizes from has the paths that a user sees."""
    return tmp_path_factory.mktemp("project")


def edited(text: str, replacements: dict[str, str]) -> str:
    """Write one text in place of another; each has to stand there exactly once."""
    for old, new in replacements.items():
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in the file"
        text = text.replace(old, new)
    return text


def synthesized(loaded: LoadedEnvironment, outdir: Path, scripts: Path | None) -> Assembly:
    app = new_app(outdir=outdir)
    add_environment(app, loaded, chart=HyperPodChart.placeholder(), lifecycle_scripts=scripts)
    app.synth()
    return read_assembly(outdir, loaded.environment.name)


@pytest.fixture(scope="module")
def reports(assemblies: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    made: dict[str, Report] = {}

    def report_of(row: dict[str, Any]) -> Report:
        if row["change"] not in made:
            made[row["change"]] = reviewed(row, assemblies, tmp_path_factory.mktemp("change"))
        return made[row["change"]]

    return report_of


def reviewed(row: dict[str, Any], assemblies: Path, folder: Path) -> Report:
    file = ENVIRONMENTS[row["environment"]]
    text = (PROJECT / file).read_text(encoding="utf-8")
    before, after = edited(text, row.get("before", {})), edited(text, row["replace"])
    if row.get("swap"):
        before, after = after, before
    old = load_environment(Path(file), text=before, with_record=False)
    new = load_environment(Path(file), text=after, with_record=False)
    if before == text:
        shipped(assemblies, row["environment"])
        base = read_assembly(assemblies / row["environment"], row["environment"])
    else:
        base = synthesized(old, folder / "base", None)
    scripts = None
    if "script" in row:
        scripts = folder / "lifecycle_scripts"
        shutil.copytree(PROJECT / "lifecycle_scripts", scripts)
        with (scripts / row["script"]).open("a", encoding="utf-8") as script:
            script.write("echo one line more\n")
    head = base if after == before and scripts is None else synthesized(new, folder / "head", scripts)
    return review(
        base,
        head,
        base_side=Side(label="main"),
        head_side=Side(label="working tree"),
        base_environment=old,
        head_environment=new,
    )


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["change"])
def test_verdicts(row: dict[str, Any], reports: Any) -> None:
    report: Report = reports(row)
    found: dict[str, Any] = {
        "level": report.verdict.level.value,
        "approval": sorted({each.kind.value for each in report.verdict.needs_approval}),
        "resources": sorted(
            each.name for each in report.blast_radius.resources if each.effect.value == report.verdict.level.value
        ),
        "causes": sorted({said(cause) for each in report.blast_radius.resources for cause in each.causes}),
        "sentence": report.verdict.sentence,
    }
    expected = {key: row[key] for key in found if key in row}
    assert {"level", "approval", "causes"} <= set(row)
    assert "resources" in row or len(found["resources"]) > 6
    assert {key: found[key] for key in expected} == {
        key: sorted(value) if isinstance(value, list) else value for key, value in expected.items()
    }


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["change"])
def test_the_verdict_is_never_less_than_what_happens(row: dict[str, Any], reports: Any) -> None:
    report: Report = reports(row)
    lost = [
        each for each in report.blast_radius.resources if each.type in GRAVE and each.effect in ("replaced", "deleted")
    ]
    if any(each.effect == "replaced" for each in lost):
        assert report.verdict.level is Level.REPLACED
    if lost:
        assert report.verdict.needs_approval
    effects = {each.effect for each in report.blast_radius.resources}
    effects |= {change.effect for each in report.blast_radius.resources for change in each.properties}
    if Effect.REFUSED in effects:
        assert report.verdict.is_wrong
        assert report.verdict.level in (Level.REPLACED, Level.DELETED, Level.REFUSED)
        assert [each.message for each in report.verdict.attention if each.effect is Effect.REFUSED] != []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["change"])
def test_reasons_of_access_and_cost_name_their_lines(row: dict[str, Any], reports: Any) -> None:
    report: Report = reports(row)
    asked = [each for each in report.verdict.needs_approval if each.kind.value in ("access", "cost")]
    named = {said(cause) for each in asked for cause in each.causes}
    assert named <= set(row["causes"])
    for kind, lines in row.get("because", {}).items():
        assert {said(cause) for each in asked if each.kind.value == kind for cause in each.causes} == set(lines)
    # a plan's fee and what a whole environment costs have the lines of their groups
    if len(row["causes"]) == 1:
        assert [each.sentence for each in asked if not each.causes] == []


ALONE = [
    row
    for row in CHANGES
    if row["environment"] == "prod" and not {"before", "swap", "script"} & set(row) and row["causes"]
]


def lines_of(row: dict[str, Any]) -> list[causes.LineChange]:
    file = ENVIRONMENTS[row["environment"]]
    text = (PROJECT / file).read_text(encoding="utf-8")
    old, new = (
        load_environment(Path(file), text=each, with_record=False) for each in (text, edited(text, row["replace"]))
    )
    return causes.line_changes(old, new)


@pytest.mark.parametrize(
    "name",
    [
        name if name in FEW_ALONE else pytest.param(name, marks=pytest.mark.examples)
        for name in (row["change"] for row in ALONE)
    ],
)
def test_no_change_is_laid_to_a_line_that_has_not_caused_it(name: str, reports: Any) -> None:
    """Beside any other change of the file, what one change does has its own lines as causes, or none."""
    (row,) = [each for each in ALONE if each["change"] == name]
    radius, own = reports(row).blast_radius, lines_of(row)
    places = {line.place for line in own}
    others = [(each, lines_of(each)) for each in ALONE]
    # what makes every stack another one is a change to all of them, and so are tags
    beside = [each for each in others if not {line.place for line in each[1]} & {*places, "name", "account", "region"}]
    beside = [each for each in beside if not any(line.place.startswith("tags") for line in each[1])]
    assert len(beside) > 10
    wrong = []
    for other, lines in beside:
        for resource in causes.explained(radius, [*own, *lines]).resources:
            named = [*resource.causes, *(cause for each in resource.properties for cause in each.causes)]
            if any(cause not in [line.cause for line in own] for cause in named):
                wrong.append((resource.name, other["change"]))
    assert wrong == []


def said(cause: Cause) -> str:
    """A cause as the table writes it."""
    if not cause.path:
        return cause.file
    return f"{'-' if cause.after is None else ''}{cause.line} {cause.path}"


def test_there_are_enough_of_them() -> None:
    assert len(CHANGES) >= 30
    assert len({row["change"] for row in CHANGES}) == len(CHANGES)
