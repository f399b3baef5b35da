"""The verbs `review` and `diagram`: what they print, write and refuse."""

from __future__ import annotations

import json
import re
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hyperpod_cdk._cli import review
from hyperpod_cdk._cli.review import Access
from hyperpod_cdk.checks.answers import AwsAccessError
from hyperpod_cdk.cli import app
from hyperpod_cdk.review.model import Report
from hyperpod_cdk.templates.difference import compare
from tests.support.answers import answered
from tests.support.assembly import shipped

Run = Callable[..., Any]


@pytest.fixture(scope="module")
def folder(assemblies: Path) -> Path:
    """A cloud assembly of the environment two-teams."""
    shipped(assemblies, "two-teams")
    return assemblies / "two-teams"


@pytest.fixture
def called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Calls the command in an empty folder, in this process."""
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    return lambda *arguments, obj=None: CliRunner().invoke(app, [str(each) for each in arguments], obj=obj)


def template(file: Path, **properties: Any) -> Path:
    bucket = {"Type": "AWS::S3::Bucket", "Properties": properties}
    file.write_text(json.dumps({"Resources": {"Bucket": bucket}}), encoding="utf-8")
    return file


def test_two_assemblies(called: Run, folder: Path) -> None:
    done = called("review", "--base", folder, "--head", folder)
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[:2] == [
        "Needs no approval, because no deployed resource changes.",
        "Review of two-teams",
    ]
    assert "No deployed resource changes." in lines


def test_every_kind_of_report(called: Run, folder: Path, tmp_path: Path) -> None:
    files = [tmp_path / f"report{suffix}" for suffix in (".md", ".html", ".json")]
    options = [each for file in files for each in ("--out", file)]
    done = called("review", "two-teams", "--base", folder, "--head", folder, *options)
    assert done.exit_code == 0, done.output
    assert done.stdout == (
        "two-teams: Needs no approval, because no deployed resource changes.\nNo deployed resource changes.\n"
    )
    assert done.stderr.splitlines() == [f"wrote {file}" for file in files]
    markdown, html, data = (file.read_text(encoding="utf-8") for file in files)
    assert "No deployed resource changes." in markdown
    assert html.startswith("<!doctype html>")
    assert "<svg" in html
    report = Report.model_validate_json(data)
    assert (report.environment, report.base.label) == ("two-teams", str(folder))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "report.html", "report.json", "report.md"]


def test_json_on_standard_output(called: Run, folder: Path) -> None:
    done = called("review", "--base", folder, "--head", folder, "--format", "json")
    assert done.exit_code == 0, done.output
    assert answered("review-report", done.stdout)["verdict"]["level"] == "no change"


def test_a_template(called: Run, tmp_path: Path) -> None:
    file = template(tmp_path / "one.yaml", BucketName="a")
    done = called("review", "--template", file, "--region", "us-east-1", "--format", "json")
    report = json.loads(done.stdout)
    assert report["verdict"]["sentence"] == ("Adds 1 resource; no deployed resource changes. The policy finds 1 error.")
    assert report["verdict"]["is_wrong"]
    assert (report["environment"], report["base"]["label"], report["head"]["label"]) == ("one", "nothing", str(file))
    assert report["cost"]["region"] == "us-east-1"


def test_two_templates_are_versions_of_one_stack(tmp_path: Path) -> None:
    old, new = template(tmp_path / "old.json", BucketName="a"), template(tmp_path / "new.yaml", BucketName="b")
    base, head = review._templates(new, str(old), "us-east-1")
    assert (base.side.label, head.side.label) == (str(old), str(new))
    (change,) = compare(base.assembly, head.assembly)
    assert [(each.path, each.before, each.after) for each in change.properties] == [("BucketName", "a", "b")]


def assembly(folder: Path, kind: str) -> Path:
    folder.mkdir()
    stack = {"type": "aws:cloudformation:stack", "properties": {"stackName": "dev-x", "templateFile": "t.json"}}
    (folder / "manifest.json").write_text(json.dumps({"artifacts": {"x": stack}}), encoding="utf-8")
    (folder / "t.json").write_text(json.dumps({"Resources": {"It": {"Type": kind}}}), encoding="utf-8")
    return folder


def test_what_is_wrong_ends_with_1(called: Run, tmp_path: Path) -> None:
    old, new = assembly(tmp_path / "old", "AWS::S3::Bucket"), assembly(tmp_path / "new", "AWS::SQS::Queue")
    report = tmp_path / "report.md"
    done = called("review", "dev", "--head", new, "--base", old, "--out", report)
    assert done.exit_code == 1
    assert done.stdout == (
        "dev: Needs approval by a person: 1 refusal by the service.\n"
        "Changes 1 SQS queue in a way that the service refuses.\n"
    )
    assert report.is_file()


@dataclass
class Nobody:
    """An AWS in which nothing is deployed."""

    asked: list[tuple[str, str]]

    def call(self, service: str, operation: str, **_: Any) -> Any:
        raise AssertionError(f"{service} {operation}: nothing is deployed")

    def each(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        return [function(item) for item in items]

    def send(self, service: str, operation: str, **params: Any) -> Any:
        return self.call(service, operation, **params)

    def pages(self, service: str, operation: str, key: str, **_: Any) -> list[Any]:
        self.asked.append((f"{service}:{operation}", key))
        return []


def test_against_what_is_deployed(called: Run, folder: Path) -> None:
    aws, opened = Nobody([]), []

    def opening(region: str, account: str) -> Nobody:
        opened.append((region, account))
        return aws

    done = called("review", "--head", folder, "--deployed", "--format", "json", obj=Access(open=opening))
    report = json.loads(done.stdout)
    assert report["base"] == {
        "label": "deployed",
        "commit": None,
        "environment_file": None,
        "stacks": {},
        "assembly": None,
    }
    assert report["verdict"]["level"] == "added"
    assert aws.asked == [("cloudformation:describe_stacks", "Stacks")]
    assert opened == [("us-west-2", "111122223333")]


def test_without_credentials(called: Run, folder: Path) -> None:
    def opening(region: str, account: str) -> Nobody:
        raise AwsAccessError(f"no AWS credentials for {account} in {region}")

    done = called("review", "--head", folder, "--deployed", obj=Access(open=opening))
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == "no AWS credentials for 111122223333 in us-west-2, or use --base\n"


WANTED = "must be the folder of a cloud assembly or a Git revision"
NO_BASE = (
    "specify what to compare with: --base with a Git revision or a cloud assembly ('--base origin/main'), or --deployed"
)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("two-teams",), NO_BASE),
        (
            ("--base", "{folder}", "--deployed"),
            "--deployed is what to compare with; omit --base",
        ),
        (
            ("--template", "{template}", "--deployed"),
            "--deployed is what to compare with; omit --template",
        ),
        (("two-teams", "--template", "{template}"), "--template is one file; omit two-teams"),
        (("--head", "x", "--template", "{template}"), "--template is one file; omit --head"),
        (("x", "--base", "y", "--region", "z"), "--region is for --template; an environment has its own Region"),
        (("x", "--base", "-y"), f"--base: {WANTED}, got '-y'"),
        (
            ("x", "--base", "."),
            "--base: . is not a cloud assembly, because it has no manifest.json; nor is it a revision",
        ),
        (
            ("prod", "--base", "{folder}", "--head", "{folder}"),
            "{folder}: contains no environment 'prod'; there is two-teams",
        ),
        (("--template", "gone.yaml"), "gone.yaml: cannot be read: No such file or directory"),
        (("--template", "{template}", "--base", "gone.yaml"), "gone.yaml: cannot be read: No such file or directory"),
        (("--template", "."), ".: not a file"),
        (("--template", "{half}"), "{half}:1: not JSON: Expecting value; is the file half-written?"),
        (
            ("--template", "{template}", "--out", "x.pdf"),
            "--out: the name must end with .md, .html, .json, .svg or .png, got x.pdf",
        ),
        (
            ("--template", "{template}", "--out", "x"),
            "--out: the name must end with .md, .html, .json, .svg or .png, got x",
        ),
        (("--template", "{template}", "--out", "gone/x.md"), "--out: folder gone does not exist; create it first"),
        (("--template", "{template}", "--out", "{report}"), "--out: {report} is a folder; specify a file in it"),
        (
            ("--template", "{template}", "--out", "{loop}"),
            "--out: {loop} is a link to a file that does not exist; remove it first",
        ),
    ],
)
def test_usage(called: Run, folder: Path, tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    half, report, loop = tmp_path / "half.json", tmp_path / "folder.md", tmp_path / "loop.md"
    half.write_text('{"Resources": ', encoding="utf-8")
    report.mkdir()
    loop.symlink_to(loop)
    places = {
        "folder": folder,
        "template": template(tmp_path / "t.json"),
        "half": half,
        "report": report,
        "loop": loop,
    }
    before = sorted(tmp_path.rglob("*"))
    out = tmp_path / "other.json"
    done = called("review", *(each.format(**places) for each in arguments), "--out", out)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == f"{said.format(**places)}\n"
    assert sorted(tmp_path.rglob("*")) == before


def test_a_name_that_no_file_can_have(called: Run, folder: Path) -> None:
    file = f"{'x' * 300}.md"
    done = called("review", "--base", folder, "--head", folder, "--out", file)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.endswith(": File name too long\n")
    assert len(done.stderr.splitlines()) == 1


def test_prices_that_cannot_be_read(called: Run, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty" / "prices.json").write_text("{", encoding="utf-8")
    done = called("review", "--base", folder, "--head", folder)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("prices.json")
    assert len(done.stderr.splitlines()) == 1


def test_what_an_app_says_is_shown(called: Run, tmp_path: Path) -> None:
    project = tmp_path / "empty"
    (project / "environments").mkdir()
    (project / "environments" / "dev.yaml").write_text("name: dev\n", encoding="utf-8")
    (project / "app.py").write_text("import sys\nsys.exit('first line\\nsecond line')\n", encoding="utf-8")
    done = called("diagram", "dev")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == (
        "first line\nsecond line\nworking tree: the app ended with exit code 1; nothing was compared\n"
    )


def test_diagram(called: Run, folder: Path, tmp_path: Path) -> None:
    done = called("diagram", "--head", folder)
    assert done.exit_code == 0, done.output
    assert ET.fromstring(done.stdout).tag == "{http://www.w3.org/2000/svg}svg"  # noqa: S314 - our own picture
    file = tmp_path / "picture.svg"
    written = called("diagram", "two-teams", "--head", folder, "--base", folder, "--out", file)
    assert (written.exit_code, written.stdout, written.stderr) == (0, "", f"wrote {file}\n")
    assert ET.fromstring(file.read_text(encoding="utf-8")).tag == "{http://www.w3.org/2000/svg}svg"  # noqa: S314 - as above


def test_pictures_of_a_review(called: Run, folder: Path, tmp_path: Path) -> None:
    svg, png = tmp_path / "review.svg", tmp_path / "review.png"
    assert called("review", "--base", folder, "--head", folder, "--out", svg, "--out", png).exit_code == 0
    drawn = called("diagram", "two-teams", "--head", folder, "--base", folder).stdout
    shown = svg.read_text(encoding="utf-8")
    # a review says in its picture who must approve and what it costs; a diagram alone judges nothing
    assert "Needs no approval" in shown
    assert "A month" in shown
    assert "Needs no approval" not in drawn
    assert set(re.findall(r"<title>[^<]*", shown)) == set(re.findall(r"<title>[^<]*", drawn))
    assert png.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def test_a_png_without_the_packages_that_draw_it(
    called: Run, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    done = called("diagram", "--head", folder, "--out", tmp_path / "picture.png")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == "needs the package resvg_py; install it with pip install 'hyperpod-cdk[pictures]'\n"
    assert not (tmp_path / "picture.png").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("dev", "--out", "x.pdf"), "--out: the name must end with .svg or .png, got x.pdf"),
        ((), "name the environment, as in 'hyperpod-cdk review ENV'; environments/ is empty"),
        (
            ("dev",),
            (
                'no environment "dev" in environments; environments/ holds no environment yet; '
                "create one with 'hyperpod-cdk init NAME'"
            ),
        ),
        (("dev", "--template", "x"), "--template is one file; omit dev"),
    ],
)
def test_diagram_usage(called: Run, arguments: tuple[str, ...], said: str) -> None:
    done = called("diagram", *arguments)
    assert (done.exit_code, done.stdout, done.stderr) == (2, "", f"{said}\n")
