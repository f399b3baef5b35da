"""A change of what an asset holds is told: which files differ, and which resources get them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hyperpod_cdk.review.delivery import changed_settings
from hyperpod_cdk.review.model import Side
from hyperpod_cdk.review.pages.html import html
from hyperpod_cdk.review.pages.markdown import markdown
from hyperpod_cdk.review.run import review
from hyperpod_cdk.templates.assembly import Assembly, read_assembly

pytestmark = pytest.mark.usefixtures("nag_here")

ACCOUNT, REGION = "111122223333", "us-west-2"
PLACE = {"bucketName": f"cdk-hnb659fds-assets-{ACCOUNT}-{REGION}", "region": REGION}
REPOSITORY = f"cdk-hnb659fds-container-assets-{ACCOUNT}-{REGION}"
STACK = {"type": "aws:cloudformation:stack", "environment": f"aws://{ACCOUNT}/{REGION}", "displayName": "x"}


def key_of(files: dict[str, str]) -> str:
    return hashlib.sha256(json.dumps(files).encode()).hexdigest()


def side(
    top: Path,
    code: dict[str, str] | None = None,
    image: dict[str, str] | None = None,
    *,
    key: str = "",
    more: dict[str, Any] | None = None,
) -> Assembly:
    """Write an assembly with a function of some code, and one of an image, as 'cdk synth' does."""
    top.mkdir()
    manifest: dict[str, Any] = {"files": {}, "dockerImages": {}}
    resources: dict[str, Any] = {"Topic": {"Type": "AWS::SNS::Topic"}, **(more or {})}
    for name, files in (("Code", code), ("Image", image)):
        if files is None:
            continue
        known = key or key_of(files)
        for path, content in files.items():
            (top / f"asset.{known}" / path).parent.mkdir(parents=True, exist_ok=True)
            (top / f"asset.{known}" / path).write_text(content, encoding="utf-8")
        if name == "Code":
            destination = {**PLACE, "objectKey": f"{known}.zip"}
            source = {"path": f"asset.{known}", "packaging": "zip"}
            manifest["files"][known] = {"source": source, "destinations": {"it": destination}}
            value: dict[str, Any] = {"S3Bucket": PLACE["bucketName"], "S3Key": f"{known}.zip"}
        else:
            destination = {"repositoryName": REPOSITORY, "region": REGION, "imageTag": known}
            source = {"directory": f"asset.{known}"}
            manifest["dockerImages"][known] = {"source": source, "destinations": {"it": destination}}
            value = {"ImageUri": {"Fn::Sub": f"{ACCOUNT}.dkr.ecr.{REGION}.${{AWS::URLSuffix}}/{REPOSITORY}:{known}"}}
        properties = {"Role": f"arn:aws:iam::{ACCOUNT}:role/elsewhere", "Code": value}
        resources[name] = {"Type": "AWS::Lambda::Function", "Properties": properties}
    artifacts = {
        "x": {**STACK, "properties": {"templateFile": "x.template.json"}, "dependencies": ["x.assets"]},
        "x.assets": {"type": "cdk:asset-manifest", "properties": {"file": "x.assets.json"}},
    }
    (top / "manifest.json").write_text(json.dumps({"artifacts": artifacts}), encoding="utf-8")
    (top / "x.assets.json").write_text(json.dumps(manifest), encoding="utf-8")
    (top / "x.template.json").write_text(json.dumps({"Resources": resources}), encoding="utf-8")
    return read_assembly(top)


def deployed(of: Assembly) -> Assembly:
    """Give an assembly as CloudFormation tells it: its templates alone."""
    return replace(of, folder=None)


def told(base: Assembly, head: Assembly) -> list[tuple[str, str, tuple[str, ...], tuple[str, ...] | None, str]]:
    report = review(base, head, base_side=Side(label="a"), head_side=Side(label="b"))
    for each in report.assets:
        # every rendering tells the same
        for page in (html(report), markdown(report)):
            assert "Code and files".casefold() in page.casefold()
            assert all(line.split()[0] in page for line in each.files or (each.note,))
    return [(each.name, each.kind, each.used_by, each.files, each.note) for each in report.assets]


OLD, NEW = {"index.py": "a", "lib.py": "x"}, {"index.py": "b", "lib.py": "x", "more.py": ""}


def test_the_files_that_a_function_gets_anew(tmp_path: Path) -> None:
    base, head = side(tmp_path / "a", OLD), side(tmp_path / "b", NEW)
    files = ("index.py changes", "more.py is new")
    assert told(base, head) == [(f"{key_of(NEW)}.zip", "files", ("x / Code",), files, "")]
    # an assembly that changes nothing, and one that is deployed for the first time
    assert told(base, base) == []
    assert told(Assembly(environment="", stacks=()), head) == []


def test_what_is_deployed_has_no_files_to_compare_with(tmp_path: Path) -> None:
    base, head = side(tmp_path / "a", OLD), side(tmp_path / "b", NEW)
    note = "3 files, not compared: what is deployed lies in the account, and is not read"
    assert told(deployed(base), head) == [(f"{key_of(NEW)}.zip", "files", ("x / Code",), None, note)]
    # and a head of templates alone names none
    assert told(base, deployed(head)) == []
    said = (
        "The files of 1 asset that change were not compared with those that are deployed, which lie in the account and "
        "are not read: what differs in them no line of this report tells. --base with the revision that is deployed "
        "tells it."
    )
    report = review(deployed(base), head, base_side=Side(label="deployed"), head_side=Side(label="head"))
    assert said in report.notes
    whole = review(base, head, base_side=Side(label="base"), head_side=Side(label="head"))
    assert not any("were not compared" in each for each in whole.notes)


def test_a_function_that_is_new(tmp_path: Path) -> None:
    base, head = side(tmp_path / "a"), side(tmp_path / "b", OLD)
    for each in (base, deployed(base)):
        note = "2 files, and none until now"
        assert told(each, head) == [(f"{key_of(OLD)}.zip", "files", ("x / Code",), None, note)]


def test_the_same_files_under_another_name(tmp_path: Path) -> None:
    base, head = side(tmp_path / "a", OLD, key="one"), side(tmp_path / "b", OLD, key="two")
    note = "the same files, under another name or made with other options"
    assert told(base, head) == [("two.zip", "files", ("x / Code",), (), note)]


def test_other_files_under_the_same_name(tmp_path: Path) -> None:
    base, head = side(tmp_path / "a", OLD, key="same"), side(tmp_path / "b", NEW, key="same")
    files = ("index.py changes", "more.py is new")
    assert told(base, head) == [("same.zip", "files", ("x / Code",), files, "")]


def test_one_asset_of_several_resources_is_told_once(tmp_path: Path) -> None:
    sides = []
    for name, files in (("a", OLD), ("b", NEW)):
        code = {"S3Bucket": PLACE["bucketName"], "S3Key": f"{key_of(files)}.zip"}
        other = {"Type": "AWS::Lambda::LayerVersion", "Properties": {"Content": code}}
        sides.append(side(tmp_path / name, files, more={"Layer": other}))
    assert [each[2] for each in told(*sides)] == [("x / Layer", "x / Code")]


DOCKERFILE = {"Dockerfile": "FROM scratch\n", "app.py": "a"}


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (DOCKERFILE, []),
        # commands that were there before may run what is new
        ({**DOCKERFILE, "app.py": "b"}, ["files that the base has not"]),
        ({**DOCKERFILE, "Dockerfile": "FROM scratch\nRUN id\n"}, ["a Dockerfile that the base has not"]),
    ],
)
def test_other_commands_that_build_an_image_need_approval(
    tmp_path: Path, files: dict[str, str], said: list[str]
) -> None:
    base, head = side(tmp_path / "a", image=DOCKERFILE), side(tmp_path / "b", image=files)
    place = f"{REPOSITORY}:{key_of(files)}"
    end = "its commands run there, with that machine's network. No template says so."
    lines = [f"Docker builds the image {place} where 'cdk deploy' runs, by {each}: {end}" for each in said]
    assert [each.item.message for each in changed_settings(base, head)] == lines
    assert [each[3] for each in told(base, head)] == (
        [] if files == DOCKERFILE else [(f"{'app.py' if files['app.py'] == 'b' else 'Dockerfile'} changes",)]
    )


def test_an_image_is_compared_with_nothing_where_the_base_is_deployed(tmp_path: Path) -> None:
    base, head = side(tmp_path / "a", image=DOCKERFILE), side(tmp_path / "b", image={**DOCKERFILE, "app.py": "b"})
    (found,) = changed_settings(deployed(base), head)
    assert "by a Dockerfile that is compared with nothing: its" in found.item.message
    # the tag that is deployed is in the repository
    assert changed_settings(deployed(base), base) == []
