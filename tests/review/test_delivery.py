"""Settings of an assembly that 'cdk deploy' uses, in addition to templates, are compared, or refused.

What the CDK CLI does with each is from its source, aws-cdk 2.1148 (lib/index.js): ``makeBodyParameter`` deploys
``stackTemplateAssetObjectUrl`` and never reads the file; ``commonPrepareOptions`` passes NotificationARNs and RoleARN;
``externalPackageFile`` runs ``executable``; ``selectMatchingStacks`` compares display names of all nested assemblies.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hyperpod_cdk.review.delivery import changed_settings
from hyperpod_cdk.review.model import ReasonKind, Side
from hyperpod_cdk.review.run import review
from hyperpod_cdk.review.standing import fingerprints
from hyperpod_cdk.templates.assembly import Assembly, AssemblyError, read_assembly
from hyperpod_cdk.templates.deployment import Destination, Setting, is_usual
from tests.support.tables import row_by_row

pytestmark = pytest.mark.usefixtures("nag_here")

ACCOUNT, REGION = "111122223333", "us-west-2"
BUCKET = f"cdk-hnb659fds-assets-{ACCOUNT}-{REGION}"
TEMPLATE = {"Resources": {"Topic": {"Type": "AWS::SNS::Topic", "Properties": {"DisplayName": "Topic"}}}}
TEXT = json.dumps(TEMPLATE)
DIGEST = hashlib.sha256(TEXT.encode()).hexdigest()
OTHER = hashlib.sha256(b"other").hexdigest()


def role(kind: str, account: str = ACCOUNT) -> str:
    # the names of the bootstrap template: "Customizing AWS CDK bootstrapping" in the CDK's guide
    return f"arn:${{AWS::Partition}}:iam::{account}:role/cdk-hnb659fds-{kind}-role-{account}-{REGION}"


def asset(path: str, key: str, bucket: str = BUCKET, **source: Any) -> dict[str, Any]:
    destination = {"bucketName": bucket, "objectKey": key, "region": REGION, "assumeRoleArn": role("file-publishing")}
    return {"source": {"path": path, "packaging": "file", **source}, "destinations": {"it": destination}}


USUAL: dict[str, Any] = {
    "templateFile": "dev.template.json",
    "stackName": "dev-x",
    "terminationProtection": False,
    "assumeRoleArn": role("deploy"),
    "cloudFormationExecutionRoleArn": role("cfn-exec"),
    "stackTemplateAssetObjectUrl": f"s3://{BUCKET}/{DIGEST}.json",
    "requiresBootstrapStackVersion": 6,
    "bootstrapStackVersionSsmParameter": "/cdk-bootstrap/hnb659fds/version",
    "lookupRole": {
        "arn": role("lookup"),
        "requiresBootstrapStackVersion": 8,
        "bootstrapStackVersionSsmParameter": "/cdk-bootstrap/hnb659fds/version",
    },
}
FILES = {DIGEST: asset("dev.template.json", f"{DIGEST}.json")}


def assembly(
    folder: Path,
    files: dict[str, Any] | None = None,
    images: dict[str, Any] | None = None,
    more: dict[str, Any] | None = None,
    **changed: Any,
) -> Path:
    """Write an assembly of one stack as 'cdk synth' does."""
    folder.mkdir()
    artifacts = {
        "dev.assets": {"type": "cdk:asset-manifest", "properties": {"file": "dev.assets.json"}},
        "dev": {
            "type": "aws:cloudformation:stack",
            "environment": f"aws://{ACCOUNT}/{REGION}",
            "properties": {**USUAL, **changed},
            "dependencies": ["dev.assets"],
            "displayName": "dev/x",
        },
        **(more or {}),
    }
    manifest = {"files": FILES if files is None else files, "dockerImages": images or {}}
    (folder / "manifest.json").write_text(json.dumps({"version": "1", "artifacts": artifacts}), encoding="utf-8")
    (folder / "dev.assets.json").write_text(json.dumps(manifest), encoding="utf-8")
    (folder / "dev.template.json").write_text(TEXT, encoding="utf-8")
    return folder


def deployed(head: Assembly, **settings: str) -> Assembly:
    """Return the same as CloudFormation tells it: of the settings two."""
    known = {"cloudFormationExecutionRoleArn": role("cfn-exec").replace("${AWS::Partition}", "aws")}
    told = {name: tuple(filter(None, [each])) for name, each in {**known, "notificationArns": "", **settings}.items()}
    stacks = tuple(replace(stack, settings=told, settings_are_whole=False) for stack in head.stacks)
    return replace(head, stacks=stacks)


TOPIC = f"arn:aws:sns:{REGION}:444455556666:all"
CHANGES: list[tuple[str, dict[str, Any], str]] = [
    (
        "another account's execution role",
        {"cloudFormationExecutionRoleArn": role("cfn-exec", "444455556666")},
        "cloudF",
    ),
    ("an administrator's", {"cloudFormationExecutionRoleArn": f"arn:aws:iam::{ACCOUNT}:role/Admin"}, "cloudF"),
    ("none at all", {"cloudFormationExecutionRoleArn": None}, "cloudF"),
    ("another role to deploy as", {"assumeRoleArn": f"arn:aws:iam::{ACCOUNT}:role/Admin"}, "assumeRoleArn"),
    ("an external id", {"assumeRoleExternalId": "x"}, "assumeRoleExternalId"),
    ("tags of the session", {"assumeRoleAdditionalOptions": {"Tags": []}}, "assumeRoleAdditionalOptions"),
    ("a topic that is told", {"notificationArns": [TOPIC]}, "notificationArns"),
    ("values of parameters", {"parameters": {"Open": "yes"}}, "parameters"),
    ("another role to look up as", {"lookupRole": {**USUAL["lookupRole"], "arn": role("deploy")}}, "lookupRole.arn"),
    ("what no version knows yet", {"somethingNew": {"a": 1}}, "somethingNew"),
]


@pytest.mark.parametrize(("change", "properties", "named"), CHANGES, ids=[each[0] for each in CHANGES])
def test_a_setting_that_changes_needs_approval(
    tmp_path: Path, change: str, properties: dict[str, Any], named: str
) -> None:
    before, after = read_assembly(assembly(tmp_path / "a")), read_assembly(assembly(tmp_path / "b", **properties))
    for base in (before, deployed(before)):
        verdict = review(base, after, base_side=Side(label="a"), head_side=Side(label="b")).verdict
        found = [each for each in verdict.needs_approval if str(each.property).startswith(named)]
        assert [(each.kind, each.resource) for each in found] == [(ReasonKind.ACCESS, "dev-x")], change
        assert found[0].sentence.startswith("The cloud assembly sets ")
        assert verdict.sentence == "No deployed resource changes. The deployment settings of 1 stack change."
        assert verdict.approval == "Needs approval by a person: 1 gain of access."
    # a plan that was approved does not hold for another way to deploy it
    assert fingerprints(before) != fingerprints(after)


@pytest.mark.parametrize(
    "properties", [{"notificationArns": None}, {"notificationArns": ""}, {"parameters": []}, {"somethingNew": {}}]
)
def test_what_says_nothing_is_no_setting(tmp_path: Path, properties: dict[str, Any]) -> None:
    before, after = read_assembly(assembly(tmp_path / "a")), read_assembly(assembly(tmp_path / "b", **properties))
    assert changed_settings(before, after) == []
    assert fingerprints(before) == fingerprints(after)


def test_what_bootstrap_makes_is_as_it_should_be(tmp_path: Path) -> None:
    head = read_assembly(assembly(tmp_path / "a"))
    nothing = Assembly(environment="", stacks=())
    for base in (head, deployed(head), deployed(head, cloudFormationExecutionRoleArn=""), nothing):
        assert changed_settings(base, head) == []
    # a stack that has been told of, or deployed by another role, and is not any more
    for name, value in (("notificationArns", TOPIC), ("cloudFormationExecutionRoleArn", "arn:aws:iam::1:role/other")):
        (found,) = changed_settings(deployed(head, **{name: value}), head)
        assert (found.item.property, found.item.before) == (name, value)


@row_by_row(
    "name, value, expected",
    [
        ("assumeRoleArn", (role("deploy"),), True),
        ("assumeRoleArn", (role("deploy").replace(ACCOUNT, "${AWS::AccountId}"),), True),
        ("assumeRoleArn", (role("cfn-exec"),), False),
        ("assumeRoleArn", (role("deploy", "444455556666"),), False),
        ("assumeRoleArn", (role("deploy") + "x",), False),
        ("assumeRoleArn", (), False),
        ("assets", (Destination(BUCKET, REGION, role("file-publishing")),), True),
        ("assets", (Destination(BUCKET, REGION, "the identity that deploys"),), False),
        ("assets", (Destination("mine", REGION, role("file-publishing")),), False),
        ("assets", (Destination(BUCKET, "eu-west-1", role("file-publishing")),), False),
        # one that is usual hides no other
        ("assets", (Destination(BUCKET, REGION, role("file-publishing")), Destination("mine", REGION, "me")), False),
        ("assets", (), False),
        ("bootstrapStackVersionSsmParameter", ("/other/version",), False),
        ("notificationArns", (), False),
    ],
)
def test_what_is_usual(name: str, value: Setting, *, expected: bool) -> None:
    assert is_usual(name, value, account=ACCOUNT, region=REGION) is expected


@row_by_row(
    "value, account, region, expected",
    [
        (role("deploy"), "", "", True),
        (role("deploy"), ACCOUNT, "", True),
        (role("deploy"), "", REGION, True),
        (role("deploy"), "444455556666", "", False),
        (role("deploy"), "", "eu-west-1", False),
        ("arn:aws:iam::1:role/mine", "", "", False),
    ],
)
def test_what_is_usual_where_the_account_or_the_region_is_unknown(
    value: str, account: str, region: str, *, expected: bool
) -> None:
    assert is_usual("assumeRoleArn", (value,), account=account, region=region) is expected


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"stackTemplateAssetObjectUrl": f"s3://{BUCKET}/{OTHER}.json"}, "is not one of its assets"),
        (
            {"stackTemplateAssetObjectUrl": f"https://s3.amazonaws.com/{BUCKET}/{DIGEST}.json"},
            "is not one of its assets",
        ),
        # an older upload stays in the bucket, and what is there already is not uploaded again
        (
            {
                "stackTemplateAssetObjectUrl": f"s3://{BUCKET}/{OTHER}.json",
                "files": {OTHER: asset("dev.template.json", f"{OTHER}.json")},
            },
            f"does not name its SHA-256 {DIGEST}, so that it may be an older upload",
        ),
        ({"files": {DIGEST: asset("other.json", f"{DIGEST}.json")}}, "is created from other.json"),
        ({"files": {DIGEST: asset("another.json", f"{DIGEST}.json")}}, "is created from another.json"),
        (
            {"files": {**FILES, "x": asset("other.json", f"{DIGEST}.json")}},
            "is created from dev.template.json; other.json",
        ),
        ({"files": {**FILES, "x": asset("dev.template.json", f"{DIGEST}.json", packaging="zip")}}, "is created from"),
        (
            {"files": {**FILES, "x": {"source": {"executable": ["sh", "-c", "env"]}, "destinations": {}}}},
            "'cdk deploy' would run a command for the asset x: sh; -c; env",
        ),
        (
            {"images": {"x": {"source": {"executable": ["true"]}, "destinations": {}}}},
            "'cdk deploy' would run a command for the asset x: true",
        ),
        (
            {"files": {**FILES, "x": asset("../../.aws/credentials", "a")}},
            "is created from a path outside of the assembly",
        ),
        ({"files": {**FILES, "x": asset("/etc/passwd", "a")}}, "is created from a path outside of the assembly"),
        (
            {"images": {"x": {"source": {"directory": ".", "dockerFile": "../../x"}, "destinations": {}}}},
            "is created from a path outside of the assembly",
        ),
        (
            {
                "more": {
                    "dev2": {
                        "type": "aws:cloudformation:stack",
                        "environment": f"aws://{ACCOUNT}/{REGION}",
                        "properties": USUAL,
                    }
                }
            },
            "contains the stack dev-x twice",
        ),
    ],
)
def test_what_would_deploy_something_else_is_refused(tmp_path: Path, changed: dict[str, Any], said: str) -> None:
    with pytest.raises(AssemblyError) as refused:
        read_assembly(assembly(tmp_path / "a", **changed))
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_an_asset_elsewhere_and_what_images_are_built_with_are_settings(tmp_path: Path) -> None:
    before = read_assembly(assembly(tmp_path / "a"))
    elsewhere = read_assembly(
        assembly(tmp_path / "b", files={**FILES, "x": asset("dev.template.json", "Topic", "mine")})
    )
    (found,) = changed_settings(deployed(before), elsewhere)
    assert (found.item.property, f"mine in {REGION}" in str(found.item.after)) == ("assets", True)
    source = {"directory": ".", "dockerFile": "Dockerfile", "dockerBuildArgs": {"A": "1"}, "platform": "linux/amd64"}
    image = {"x": {"source": source, "destinations": {}}}
    assert changed_settings(before, read_assembly(assembly(tmp_path / "c", images=image))) == []
    secret = {"x": {"source": {**source, "dockerBuildSecrets": {"id": "src=/home/somebody/.aws/credentials"}}}}
    (found,) = changed_settings(before, read_assembly(assembly(tmp_path / "d", images=secret)))
    assert found.item.property == "dockerImages"


def test_what_is_uploaded_and_used_by_nothing_needs_approval(tmp_path: Path) -> None:
    before = read_assembly(assembly(tmp_path / "a"))
    unused = read_assembly(assembly(tmp_path / "b", files={**FILES, "x": asset("evil", f"{OTHER}.zip")}))
    for base in (before, deployed(before)):
        (found,) = changed_settings(base, unused)
        assert (found.item.property, found.item.after) == ("unusedAssets", f"{OTHER}.zip")
    assert changed_settings(unused, unused) == []
    used = read_assembly(assembly(tmp_path / "c", files={**FILES, "x": asset("evil", "Topic")}))
    assert changed_settings(before, used) == []


@pytest.mark.parametrize(
    ("old", "new", "is_other"),
    [
        ({"a": "1"}, {"a": "1"}, False),
        ({"a": "1"}, {"a": "2"}, True),
        ({"a": "1"}, {"a": "11"}, True),
        ({"a": "1"}, {"a": "1", "b": ""}, True),
        ({"a": "1"}, {"b": "1"}, True),
        ({"d/a": "1"}, {"d/a": "1"}, False),
        ({"d/a": "1"}, {"d/a": "2"}, True),
    ],
)
def test_other_content_under_one_name_needs_approval(
    tmp_path: Path, old: dict[str, str], new: dict[str, str], *, is_other: bool
) -> None:
    sides = []
    for name, contents in (("a", old), ("b", new)):
        folder = assembly(tmp_path / name, files={**FILES, "x": asset("asset.x", "Topic", packaging="zip")})
        for path, content in contents.items():
            (folder / "asset.x" / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / "asset.x" / path).write_text(content, encoding="utf-8")
        sides.append(read_assembly(folder))
    said = f"The asset s3://{BUCKET}/Topic has other content under the same name. No template shows this."
    found = changed_settings(*sides)
    assert [(each.kind, each.item.message) for each in found] == ([(ReasonKind.ACCESS, said)] if is_other else [])


def test_stacks_that_would_be_deployed_unread_are_refused(tmp_path: Path) -> None:
    top = tmp_path / "top"
    top.mkdir()
    inner = assembly(top / "assembly-dev")
    stage = {"type": "cdk:cloud-assembly", "properties": {"directoryName": inner.name, "displayName": "dev"}}

    def write(**more: Any) -> Path:
        (top / "manifest.json").write_text(json.dumps({"artifacts": {"dev": stage, **more}}), encoding="utf-8")
        return top

    assert [stack.name for stack in read_assembly(write(), "dev").stacks] == ["dev-x"]
    (top / "evil.json").write_text(TEXT, encoding="utf-8")
    evil = {"type": "aws:cloudformation:stack", "properties": {"templateFile": "evil.json"}}
    assert read_assembly(write(evil={**evil, "displayName": "other/y"}), "dev").stacks
    with pytest.raises(AssemblyError, match=r"dev/y would be deployed with dev, and is not one of its stacks$"):
        read_assembly(write(evil={**evil, "displayName": "dev/y"}), "dev")
    with pytest.raises(AssemblyError, match="contains two environments with one name"):
        read_assembly(write(other=stage), "dev")


@pytest.mark.parametrize("order", [("other", "again"), ("again", "other")])
def test_a_stack_of_a_stage_within_another_stage_is_refused(tmp_path: Path, order: tuple[str, str]) -> None:
    top = tmp_path / "top"
    deep = top / "assembly-other" / "assembly-deep"
    deep.mkdir(parents=True)
    inner = assembly(top / "assembly-dev")

    def stage(folder: str) -> dict[str, Any]:
        return {"type": "cdk:cloud-assembly", "properties": {"directoryName": folder, "displayName": folder}}

    def write(shown: str) -> None:
        evil = {"type": "aws:cloudformation:stack", "properties": {"templateFile": "t.json"}, "displayName": shown}
        (deep / "manifest.json").write_text(json.dumps({"artifacts": {"evil": evil}}), encoding="utf-8")

    (deep / "t.json").write_text(TEXT, encoding="utf-8")
    within = {"artifacts": {"deep": stage(deep.name)}}
    (deep.parent / "manifest.json").write_text(json.dumps(within), encoding="utf-8")
    # a stage may name a folder that has been read
    stages = {"other": stage(deep.parent.name), "again": stage(".")}
    named = {"type": "cdk:cloud-assembly", "properties": {"directoryName": inner.name, "displayName": "dev"}}
    artifacts = {"dev": named, **{name: stages[name] for name in order}}
    (top / "manifest.json").write_text(json.dumps({"artifacts": artifacts}), encoding="utf-8")
    write("other/deep/y")
    assert [stack.name for stack in read_assembly(top, "dev").stacks] == ["dev-x"]
    write("dev/y")
    with pytest.raises(AssemblyError) as refused:
        read_assembly(top, "dev")
    assert str(refused.value) == (
        f"{deep / 'manifest.json'}: dev/y would be deployed with dev, and is not one of its stacks"
    )


BAIT = {"type": "cdk:asset-manifest", "properties": {}}
ELSEWHERE = "Elsewhere would be deployed with dev because {} depends on {}, and is not one of its stacks"


@pytest.mark.parametrize(
    ("bait", "said"),
    [
        # 'cdk deploy' takes what a stack depends on for a stack by its display name, whatever it is
        ({"Bait": {**BAIT, "displayName": "Elsewhere"}}, ELSEWHERE.format("x", "Bait")),
        ({"Bait": {"type": "none:of:these", "displayName": "Elsewhere"}}, ELSEWHERE.format("x", "Bait")),
        ({"Elsewhere": BAIT}, ELSEWHERE.format("x", "Elsewhere")),
        (
            {"Bait": {**BAIT, "displayName": "nowhere"}},
            "x depends on Bait, which is shown as nowhere and is not a stack",
        ),
        ({}, "x depends on 'Bait', which is not one of the artifacts next to it"),
    ],
)
def test_what_deploys_a_stack_elsewhere_is_refused(tmp_path: Path, bait: dict[str, Any], said: str) -> None:
    top = tmp_path / "top"
    top.mkdir()
    inner = assembly(top / "assembly-dev")
    stage = {"type": "cdk:cloud-assembly", "properties": {"directoryName": inner.name, "displayName": "dev"}}
    evil = {"type": "aws:cloudformation:stack", "properties": {"templateFile": "evil.json"}, "displayName": "Elsewhere"}
    (top / "evil.json").write_text(TEXT, encoding="utf-8")
    (top / "manifest.json").write_text(json.dumps({"artifacts": {"dev": stage, "e": evil}}), encoding="utf-8")
    assert [stack.name for stack in read_assembly(top, "dev").stacks] == ["dev-x"]
    manifest = json.loads((inner / "manifest.json").read_text(encoding="utf-8"))
    (stack,) = (key for key, each in manifest["artifacts"].items() if each["type"] == "aws:cloudformation:stack")
    manifest["artifacts"][stack].setdefault("dependencies", []).append(next(iter(bait), "Bait"))
    manifest["artifacts"] |= bait
    (inner / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(AssemblyError) as refused:
        read_assembly(top, "dev")
    assert said.replace("because x ", f"because {stack} ").replace("x depends", f"{stack} depends") in str(
        refused.value
    )


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        (("dev/x", "dev/x"), "two stacks are shown as dev/x; 'cdk deploy' confuses them"),
        (("dev/x", "other/y"), "other/y is a stack of dev, and would not be deployed with it"),
        (("dev/x", "dev/y"), None),
    ],
)
def test_display_names_of_a_stage_are_its_own(tmp_path: Path, shown: tuple[str, str], said: str | None) -> None:
    top = tmp_path / "top"
    inner = top / "assembly-dev"
    inner.mkdir(parents=True)
    (inner / "t.json").write_text(TEXT, encoding="utf-8")
    stage = {"type": "cdk:cloud-assembly", "properties": {"directoryName": inner.name, "displayName": "dev"}}
    (top / "manifest.json").write_text(json.dumps({"artifacts": {"dev": stage}}), encoding="utf-8")
    stacks = {
        f"s{number}": {
            "type": "aws:cloudformation:stack",
            "displayName": name,
            "properties": {"templateFile": "t.json"},
        }
        for number, name in enumerate(shown)
    }
    (inner / "manifest.json").write_text(json.dumps({"artifacts": stacks}), encoding="utf-8")
    if said is None:
        assert len(read_assembly(top, "dev").stacks) == 2
    else:
        with pytest.raises(AssemblyError) as refused:
            read_assembly(top, "dev")
        assert said in str(refused.value)


@pytest.mark.parametrize("file", ["dev.template.json", "manifest.json"])
def test_a_duplicate_key_is_refused(tmp_path: Path, file: str) -> None:
    folder = assembly(tmp_path / "a", stackTemplateAssetObjectUrl=None)
    text = (folder / file).read_text(encoding="utf-8")
    (folder / file).write_text('{"Resources": {}, "artifacts": {}, ' + text[1:], encoding="utf-8")
    with pytest.raises(AssemblyError, match=r"twice in one object; it is uncertain which one counts$"):
        read_assembly(folder)
