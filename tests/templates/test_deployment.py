"""What 'cdk deploy' uses of an assembly in addition to its templates, by the name of each setting."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hyperpod_cdk.templates.deployment import (
    DeploymentError,
    Destination,
    Setting,
    is_usual,
    settings,
    shown,
    tags_of_project,
    topics,
)
from tests.support.tables import row_by_row

TEMPLATE = {"Resources": {"F": {"Type": "AWS::Lambda::Function", "Properties": {"Code": {"S3Key": "used.zip"}}}}}


def assets(file: str) -> dict[str, Any]:
    return {"type": "cdk:asset-manifest", "properties": {"file": file}}


def file_asset(*destinations: dict[str, Any], path: str = "it") -> dict[str, Any]:
    return {"source": {"path": path}, "destinations": dict(enumerate(destinations))}


def read(
    folder: Path,
    properties: dict[str, Any],
    *,
    manifests: dict[str, Any] | None = None,
    dependencies: tuple[str, ...] = (),
) -> dict[str, Setting]:
    """Return the settings of a stack next to these manifests of assets, by the name of their artifact."""
    artifacts: dict[str, Any] = {
        "dev": {"type": "aws:cloudformation:stack", "properties": properties, "dependencies": list(dependencies)},
        # of another type, whose file is not read
        "Tree": {"type": "cdk:tree", "properties": {"file": "tree.json"}},
    }
    for name, content in (manifests or {}).items():
        artifacts[name] = assets(f"{name}.json")
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return settings(folder, folder, artifacts, "dev", TEMPLATE)


@row_by_row(
    "properties, expected",
    [
        ({}, {}),
        ({"templateFile": "a", "stackName": "a", "displayName": "a", "tags": {"a": "b"}}, {}),
        ({"a": None, "b": "", "c": [], "d": {}}, {}),
        ({"a": False, "b": 0, "c": "x"}, {"a": ("false",), "b": ("0",), "c": ("x",)}),
        # no topic removes those of a stack
        ({"notificationArns": []}, {"notificationArns": ()}),
        ({"notificationArns": ["b", "a"]}, {"notificationArns": ("b", "a")}),
        ({"notificationArns": ""}, {}),
        ({"a": ["b", 1]}, {"a": ('["b", 1]',)}),
        ({"a": {"c": 1, "b": [2]}}, {"a": ('{"b": [2], "c": 1}',)}),
        (
            {"lookupRole": {"arn": "r", "requiresBootstrapStackVersion": 8, "assumeRoleExternalId": "x"}},
            {"lookupRole.arn": ("r",), "lookupRole.assumeRoleExternalId": ("x",)},
        ),
        ({"lookupRole": "r"}, {}),
    ],
)
def test_properties_of_a_stack(properties: dict[str, Any], expected: dict[str, Setting], tmp_path: Path) -> None:
    assert read(tmp_path, properties) == expected


def test_destinations_of_assets(tmp_path: Path) -> None:
    own = {
        "files": {
            "z": file_asset({"bucketName": "z", "objectKey": "used.zip", "region": "eu-north-1", "assumeRoleArn": "r"}),
            "a": file_asset({"bucketName": "a", "objectKey": "", "assumeRoleExternalId": "x", "other": 1}),
        },
        "dockerImages": {
            "i": {"source": {"directory": "it"}, "destinations": {"it": {"repositoryName": "i", "imageTag": "used"}}}
        },
    }
    found = read(tmp_path, {}, manifests={"own": own})
    assert found == {
        "assets": (
            Destination("a", "its region", 'the identity that deploys with {"assumeRoleExternalId": "x"}'),
            Destination("i", "its region", "the identity that deploys"),
            Destination("z", "eu-north-1", "r"),
        )
    }
    assert shown(found["assets"][1:]) == ("i in its region as the identity that deploys; z in eu-north-1 as r")
    assert shown(()) == ""


@pytest.mark.parametrize(
    ("dependencies", "properties", "places"),
    [
        (("one",), {}, ["1"]),
        (("two", "elsewhere"), {}, ["2"]),
        ((), {"additionalDependencies": ["two"]}, ["2"]),
        (("one",), {"additionalDependencies": ["two"]}, ["1", "2"]),
        # it does not say which
        ((), {}, ["1", "2"]),
        (("elsewhere",), {}, []),
    ],
)
def test_a_stack_has_the_assets_that_it_depends_on(
    tmp_path: Path, dependencies: tuple[str, ...], properties: dict[str, Any], places: list[str]
) -> None:
    manifests = {
        name: {"files": {"a": file_asset({"bucketName": bucket, "objectKey": "used.zip"})}}
        for name, bucket in (("one", "1"), ("two", "2"))
    }
    found = read(tmp_path, properties, manifests=manifests, dependencies=dependencies).get("assets", ())
    assert [each.place for each in found if isinstance(each, Destination)] == places


def test_uploads_that_nothing_uses(tmp_path: Path) -> None:
    keys = ("b.zip", "used.zip", "nested.zip", "a.zip", "gone.zip")
    files = {key: file_asset({"bucketName": "b", "objectKey": key}) for key in keys}
    files["inner"] = file_asset({"bucketName": "b", "objectKey": "inner.json"}, path="x.nested.template.json")
    files["missing"] = file_asset(path="y.nested.template.json")
    image = {"source": {"directory": "it"}, "destinations": {"it": {"repositoryName": "i", "imageTag": "tag"}}}
    (tmp_path / "x.nested.template.json").write_text('{"Key": "nested.zip"}', encoding="utf-8")
    found = read(tmp_path, {}, manifests={"own": {"files": files, "dockerImages": {"i": image}}})
    assert found["unusedAssets"] == ("a.zip", "b.zip", "gone.zip", "inner.json", "tag")


def test_what_is_told_of_images_beside_their_folders(tmp_path: Path) -> None:
    usual = {"directory": "it", "dockerFile": "Dockerfile", "platform": "linux/amd64"}
    images = {"a": {"source": usual}, "b": {"source": {**usual, "networkMode": "host"}}, "c": {}}
    found = read(tmp_path, {}, manifests={"own": {"dockerImages": images}})
    assert found == {"dockerImages": ('[{"networkMode": "host"}]',)}


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("own.json", "{", "{folder}/own.json: not JSON; is the file half-written?"),
        ("own.json", "[]", None),
        ("gone.json", None, "{folder}/manifest.json: the asset manifest of own is not a file of its folder"),
        ("../own.json", "{}", "{folder}/manifest.json: the asset manifest of own is not a file of its folder"),
        ("", None, None),
    ],
)
def test_a_manifest_of_assets(tmp_path: Path, name: str, text: str | None, said: str | None) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    if text is not None:
        (folder / name).write_text(text, encoding="utf-8")
    stack = {"type": "aws:cloudformation:stack", "properties": {}}
    artifacts: dict[str, Any] = {"dev": stack, "own": assets(name)}
    if said is None:
        assert settings(folder, folder, artifacts, "dev", TEMPLATE) == {}
        return
    with pytest.raises(DeploymentError) as refused:
        settings(folder, folder, artifacts, "dev", TEMPLATE)
    assert str(refused.value) == said.format(folder=folder)


@row_by_row(
    "tags, expected",
    [
        (None, {}),
        ({"a": "b"}, {}),
        ([], {}),
        ([{"Key": "a", "Value": "b"}, {"Key": "c", "Value": ""}], {"a": "b", "c": ""}),
    ],
)
def test_tags_of_a_project(tags: Any, expected: dict[str, str]) -> None:
    assert tags_of_project({"tags": tags}) == expected


@row_by_row("tag", ["a", {"Key": "a"}, {"Value": "a"}, {"Key": 1, "Value": "a"}, {"Key": "a", "Value": 1}])
def test_tags_that_cloudformation_refuses(tag: Any) -> None:
    with pytest.raises(DeploymentError) as refused:
        tags_of_project({"tags": [{"Key": "a", "Value": "b"}, tag]})
    assert str(refused.value) == (f'tags in cdk.json: must be {{"Key": "...", "Value": "..."}}, got {json.dumps(tag)}')


@row_by_row(
    "topic, expected",
    [
        ("arn:${AWS::Partition}:sns:${AWS::Region}:${AWS::AccountId}:t", "arn:*:sns:us-west-2:111122223333:t"),
        ("arn:aws-us-gov:sns:us-gov-west-1:111122223333:t", "arn:*:sns:us-gov-west-1:111122223333:t"),
    ],
)
def test_topics_are_one_however_they_are_written(topic: str, expected: str) -> None:
    found = topics({"notificationArns": (topic,), "other": ("x",)}, account="111122223333", region="us-west-2")
    assert found == {expected}
    assert topics({}, account="", region="") == frozenset()


ACCOUNT, REGION = "111122223333", "us-west-2"


@row_by_row(
    "name, value, expected",
    [
        ("lookupRole.arn", f"arn:aws:iam::{ACCOUNT}:role/cdk-x1-lookup-role-{ACCOUNT}-{REGION}", True),
        ("lookupRole.arn", f"arn:aws:iam::{ACCOUNT}:role/cdk-x1-deploy-role-{ACCOUNT}-{REGION}", False),
        (
            "cloudFormationExecutionRoleArn",
            f"arn:aws:iam::{ACCOUNT}:role/cdk-x1-cfn-exec-role-{ACCOUNT}-{REGION}",
            True,
        ),
        ("bootstrapStackVersionSsmParameter", "/cdk-bootstrap/hnb659fds/version", True),
        ("lookupRole.bootstrapStackVersionSsmParameter", "/cdk-bootstrap/hnb659fds/version", True),
        # a qualifier has at most ten characters
        ("lookupRole.bootstrapStackVersionSsmParameter", "/cdk-bootstrap/hnb659fdsxx/version", False),
        ("other", "/cdk-bootstrap/hnb659fds/version", False),
    ],
)
def test_names_of_bootstrap(name: str, value: str, *, expected: bool) -> None:
    assert is_usual(name, (value,), account=ACCOUNT, region=REGION) is expected


@row_by_row(
    "kind, publishing, expected",
    [("assets", "file", True), ("container-assets", "image", True), ("other-assets", "file", False)],
)
def test_places_of_bootstrap(kind: str, publishing: str, *, expected: bool) -> None:
    by = f"arn:aws:iam::{ACCOUNT}:role/cdk-x1-{publishing}-publishing-role-{ACCOUNT}-{REGION}"
    place = Destination(f"cdk-x1-{kind}-{ACCOUNT}-{REGION}", REGION, by)
    assert is_usual("assets", (place,), account=ACCOUNT, region=REGION) is expected
    assert not is_usual("another", (place,), account=ACCOUNT, region=REGION)
