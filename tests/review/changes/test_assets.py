"""A change of what an asset holds is told: which files differ, and which resources get them."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hyperpod_cdk.checks.answers import NotAnswered
from hyperpod_cdk.review.changes.assets import Stored
from hyperpod_cdk.review.delivery import changed_settings
from hyperpod_cdk.review.model import Report, Side
from hyperpod_cdk.review.pages.html import html
from hyperpod_cdk.review.pages.markdown import markdown
from hyperpod_cdk.review.run import review
from hyperpod_cdk.review.stored import LARGEST, asset
from hyperpod_cdk.templates.assembly import Assembly, Stack, read_assembly
from hyperpod_cdk.templates.assets import Files, differing_files

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
    """Return an assembly as CloudFormation tells it: its templates alone."""
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


def test_the_changed_files_of_a_function(tmp_path: Path) -> None:
    base, head = side(tmp_path / "a", OLD), side(tmp_path / "b", NEW)
    files = ("index.py changes", "more.py is new")
    assert told(base, head) == [(f"{key_of(NEW)}.zip", "files", ("x / Code",), files, "")]
    # an assembly that changes nothing, and one that is deployed for the first time
    assert told(base, base) == []
    assert told(Assembly(environment="", stacks=()), head) == []


def test_what_is_deployed_has_no_files_to_compare_with(tmp_path: Path) -> None:
    base, head = side(tmp_path / "a", OLD), side(tmp_path / "b", NEW)
    note = "3 files, not compared: the deployed files are in the account, and were not read"
    assert told(deployed(base), head) == [(f"{key_of(NEW)}.zip", "files", ("x / Code",), None, note)]
    # and a head of templates alone names none
    assert told(base, deployed(head)) == []
    said = (
        "The files of 1 asset that change were not compared with the deployed ones, which are in the account and "
        "were not read: this report does not show what differs in them. Use --base with the deployed revision, or, "
        "for assets other than images, credentials with s3:GetObject."
    )
    report = review(deployed(base), head, base_side=Side(label="deployed"), head_side=Side(label="head"))
    assert said in report.notes
    whole = review(base, head, base_side=Side(label="base"), head_side=Side(label="head"))
    assert not any("were not compared" in each for each in whole.notes)


def looked(base: Assembly, head: Assembly, stored: Stored) -> Report:
    return review(base, head, base_side=Side(label="deployed"), head_side=Side(label="head"), stored=stored)


def given(held: Mapping[str, Files], bucket: str, key: str) -> Files | None:
    assert bucket == PLACE["bucketName"]
    return held.get(key)


def test_a_chart_is_read_by_its_address(tmp_path: Path) -> None:
    address = "s3://cdk-hnb659fds-assets-${AWS::AccountId}-${AWS::Region}"

    def chart(key: str) -> dict[str, Any]:
        properties = {"ChartAssetURL": {"Fn::Sub": f"{address}/{key}.zip"}}
        return {"Chart": {"Type": "Custom::AWSCDK-EKS-HelmChart", "Properties": properties}}

    base, head = (side(tmp_path / key_of(each), each, more=chart(key_of(each))) for each in (OLD, NEW))
    held = {f"{key_of(OLD)}.zip": {name: text.encode() for name, text in OLD.items()}}
    (found,) = looked(deployed(base), head, partial(given, held)).assets
    assert found.used_by == ("x / Chart", "x / Code")
    assert found.files == ("index.py changes", "more.py is new")


def test_what_is_deployed_is_read_where_that_is_permitted(tmp_path: Path) -> None:
    base, head = side(tmp_path / "a", OLD), side(tmp_path / "b", NEW)
    asked: list[tuple[str, str]] = []

    def stored(bucket: str, key: str) -> Files | None:
        asked.append((bucket, key))
        return {name: text.encode() for name, text in OLD.items()} if key == f"{key_of(OLD)}.zip" else None

    report = looked(deployed(base), head, stored)
    assert [(each.files, each.note) for each in report.assets] == [(("index.py changes", "more.py is new"), "")]
    assert asked == [(PLACE["bucketName"], f"{key_of(OLD)}.zip")]
    assert not any("were not compared" in each for each in report.notes)
    # what is there in files is not asked for, and what AWS does not give is not compared
    for sides in ((base, head), (deployed(base), deployed(head)), (deployed(base), base)):
        looked(*sides, stored)
    assert len(asked) == 1
    refused = looked(deployed(base), head, lambda *_: None)
    assert [each.files for each in refused.assets] == [None]
    assert any("were not compared" in each for each in refused.notes)


def test_of_two_that_are_deployed_one_cannot_be_read(tmp_path: Path) -> None:
    """Whose successor the other is, is not known then: neither is compared, and nothing is said to be new."""
    keys = ["a" * 64, "b" * 64]
    properties = {"Sources": [f"{key}.zip" for key in keys]}
    base = Assembly(
        environment="",
        stacks=(Stack(name="x", template={"Resources": {"D": {"Type": "Custom::D", "Properties": properties}}}),),
    )
    one, two = {"index.py": "1"}, {"index.py": "2"}
    more = {"D": {"Type": "Custom::D", "Properties": {"Sources": [f"{key_of(one)}.zip", f"{key_of(two)}.zip"]}}}
    head = side(tmp_path / "a", one, more=more)
    manifest = json.loads((tmp_path / "a" / "x.assets.json").read_text(encoding="utf-8"))
    (known,) = manifest["files"].values()
    place = {**PLACE, "objectKey": f"{key_of(two)}.zip"}
    manifest["files"]["two"] = {**known, "destinations": {"it": place}}
    (tmp_path / "a" / "x.assets.json").write_text(json.dumps(manifest), encoding="utf-8")
    read = {keys[0]: {"index.py": b"0"}, keys[1]: {"index.py": b"1"}}
    for known_keys, files in (([0, 1], [("index.py changes",), ()]), ([0], [None, None]), ([], [None, None])):
        held = {f"{keys[each]}.zip": read[keys[each]] for each in known_keys}
        report = looked(base, head, partial(given, held))
        assert [each.files for each in report.assets if "x / D" in each.used_by] == files


ARCHIVE = {"a.py": b"a", "deep/b.py": b"b"}


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        ({"a.py": "a", "deep/b.py": "b"}, []),
        ({"a.py": "A", "deep/b.py": "b"}, ["a.py changes"]),
        ({"a.py": "ab"}, ["a.py changes", "deep/b.py is removed"]),
        ({"a.py": "a", "deep/b.py": "b", "c": ""}, ["c is new"]),
    ],
)
def test_what_an_archive_held_against_a_folder_and_an_archive(
    new: dict[str, str], expected: list[str], tmp_path: Path
) -> None:
    for name, text in new.items():
        (tmp_path / "folder" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "folder" / name).write_text(text, encoding="utf-8")
    with zipfile.ZipFile(tmp_path / "it.zip", "w") as archive:
        for name, text in new.items():
            archive.writestr(name, text)
    assert differing_files(ARCHIVE, tmp_path / "folder") == expected
    assert differing_files(ARCHIVE, tmp_path / "it.zip") == expected


def test_what_an_archive_held_of_a_link_and_a_lone_file(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.py").write_bytes(b"a")
    (folder / "link.py").symlink_to("a.py")
    assert differing_files({"a.py": b"a", "link.py": b"a"}, folder) == []
    assert differing_files({"a.py": b"a", "link.py": b"b"}, folder) == ["link.py changes"]
    lone = tmp_path / "it.json"
    lone.write_bytes(b"{}")
    assert differing_files({"": b"{}"}, lone) == []
    assert differing_files({"": b"[]"}, lone) == ["it changes"]


class Bucket:
    """Answers ``get_object`` from what it holds."""

    def __init__(self, held: dict[str, Any]) -> None:
        self.held = held
        self.asked: list[dict[str, Any]] = []

    def call(self, service: str, operation: str, **params: Any) -> Mapping[str, Any]:
        raise AssertionError(service, operation, params)

    def pages(self, service: str, operation: str, key: str, **params: Any) -> list[Any]:
        raise AssertionError(service, operation, key, params)

    def send(self, service: str, operation: str, **params: Any) -> Mapping[str, Any]:
        assert (service, operation) == ("s3", "get_object")
        self.asked.append(params)
        found = self.held.get(params["Key"])
        if found is None:
            raise NotAnswered("s3:GetObject was refused with AccessDenied")
        return found if isinstance(found, dict) else {"ContentLength": len(found), "Body": io.BytesIO(found)}


def archive_of(files: dict[str, bytes]) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return held.getvalue()


@pytest.mark.parametrize(
    ("key", "held", "files"),
    [
        ("a.zip", archive_of(ARCHIVE), ARCHIVE),
        ("a.json", b"{}", {"": b"{}"}),
        ("a.zip", b"no archive", None),
        ("a.zip", None, None),
        ("a.zip", {}, None),
        ("a.zip", {"ContentLength": LARGEST + 1, "Body": io.BytesIO(b"")}, None),
        ("a.json", {"ContentLength": LARGEST, "Body": io.BytesIO(b"")}, {"": b""}),
        ("a.zip", archive_of({"bomb": b"\0" * (LARGEST + 1)}), None),
    ],
    ids=["archive", "file", "none", "refused", "half an answer", "too large", "as large as may be", "bomb"],
)
def test_an_asset_as_it_lies_in_its_bucket(key: str, held: Any, files: Files | None) -> None:
    bucket = Bucket({key: held})
    assert asset(bucket, "it", key, account=ACCOUNT) == files
    assert bucket.asked == [{"Bucket": "it", "Key": key, "ExpectedBucketOwner": ACCOUNT}]


def test_a_function_that_is_new(tmp_path: Path) -> None:
    base, head = side(tmp_path / "a"), side(tmp_path / "b", OLD)
    for each in (base, deployed(base)):
        note = "2 files, and none until now"
        assert told(each, head) == [(f"{key_of(OLD)}.zip", "files", ("x / Code",), None, note)]


def test_the_same_files_under_another_name(tmp_path: Path) -> None:
    base, head = side(tmp_path / "a", OLD, key="one"), side(tmp_path / "b", OLD, key="two")
    note = "the same files, with another name or other build options"
    assert told(base, head) == [("two.zip", "files", ("x / Code",), (), note)]


def test_other_files_under_the_same_name(tmp_path: Path) -> None:
    base, head = side(tmp_path / "a", OLD, key="same"), side(tmp_path / "b", NEW, key="same")
    files = ("index.py changes", "more.py is new")
    assert told(base, head) == [("same.zip", "files", ("x / Code",), files, "")]


def test_one_asset_of_several_resources_is_reported_once(tmp_path: Path) -> None:
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
        ({**DOCKERFILE, "app.py": "b"}, ["files that the base does not have"]),
        ({**DOCKERFILE, "Dockerfile": "FROM scratch\nRUN id\n"}, ["a Dockerfile that the base does not have"]),
    ],
)
def test_other_commands_that_build_an_image_need_approval(
    tmp_path: Path, files: dict[str, str], said: list[str]
) -> None:
    base, head = side(tmp_path / "a", image=DOCKERFILE), side(tmp_path / "b", image=files)
    place = f"{REPOSITORY}:{key_of(files)}"
    end = "its commands run there, with that machine's network. No template shows this."
    lines = [f"Docker builds the image {place} where 'cdk deploy' runs, by {each}: {end}" for each in said]
    assert [each.item.message for each in changed_settings(base, head)] == lines
    assert [each[3] for each in told(base, head)] == (
        [] if files == DOCKERFILE else [(f"{'app.py' if files['app.py'] == 'b' else 'Dockerfile'} changes",)]
    )


def test_an_image_is_compared_with_nothing_where_the_base_is_deployed(tmp_path: Path) -> None:
    base, head = side(tmp_path / "a", image=DOCKERFILE), side(tmp_path / "b", image={**DOCKERFILE, "app.py": "b"})
    (found,) = changed_settings(deployed(base), head)
    assert "by a Dockerfile that was compared with nothing: its" in found.item.message
    # the tag that is deployed is in the repository
    assert changed_settings(deployed(base), base) == []
