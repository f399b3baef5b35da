"""Cloud assemblies and lone templates are read as they are written, and what is neither is one clear line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperpod_cdk.templates.assembly import (
    EMPTY,
    MOST_RESOURCES,
    MOST_TEMPLATE_BYTES,
    Assembly,
    AssemblyError,
    Resource,
    Stack,
    parse_template,
    placed,
    read_assembly,
    read_template,
    word_of,
)
from hyperpod_cdk.templates.assets import MOST_BYTES
from tests.support.assembly import shipped
from tests.support.tables import row_by_row

TEMPLATE = {"Resources": {"Bucket": {"Type": "AWS::S3::Bucket"}}}
PROPERTIES = {"stackName": "dev-network", "templateFile": "network.json"}


def stack_artifact(**properties: Any) -> dict[str, Any]:
    return {
        "type": "aws:cloudformation:stack",
        "environment": "aws://111122223333/us-west-2",
        "properties": {**PROPERTIES, **properties},
    }


def written(folder: Path, artifacts: Any, **templates: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "manifest.json").write_text(json.dumps({"version": "1", "artifacts": artifacts}), encoding="utf-8")
    for name, template in templates.items():
        (folder / f"{name}.json").write_text(json.dumps(template), encoding="utf-8")
    return folder


def refusal(read: Any, *arguments: Any) -> str:
    with pytest.raises(AssemblyError) as caught:
        read(*arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_shipped_environment(assemblies: Path) -> None:
    expected = shipped(assemblies, "two-teams")
    found = read_assembly(assemblies / "two-teams", "two-teams")
    assert found.environment == "two-teams"
    assert {stack.name: stack.template for stack in found.stacks} == expected.templates
    assert {stack.name: list(stack.dependencies) for stack in found.stacks} == expected.stack_dependencies
    names = [stack.name for stack in found.stacks]
    for stack in found.stacks:
        assert all(names.index(needed) < names.index(stack.name) for needed in stack.dependencies)
        assert stack.termination_protection == expected.termination_protection[stack.name]
    assert (found.region, found.account) == (expected.environment.region, expected.environment.account)
    assert read_assembly(assemblies / "two-teams") == found


def test_finding_one_resource(assemblies: Path) -> None:
    shipped(assemblies, "two-teams")
    found = read_assembly(assemblies / "two-teams")
    (cluster,) = found.of_type("AWS::SageMaker::Cluster")
    assert found.find(cluster.stack, cluster.logical_id) == cluster
    assert found.find("two-teams-hyperpod", "Nobody") is None
    assert found.find("nobody", cluster.logical_id) is None


@row_by_row(
    "body, name, kept, kept_on_replacement",
    [
        ({}, "Id", False, False),
        ({"Metadata": {"aws:cdk:path": "prod/network/Vpc/Resource"}}, "Vpc", False, False),
        ({"Metadata": {"aws:cdk:path": "prod/network/Vpc/Flow/Default"}}, "Vpc/Flow", False, False),
        ({"Metadata": {"aws:cdk:path": "prod/network/Resource"}}, "Id", False, False),
        ({"Metadata": {"aws:cdk:path": 7}}, "Id", False, False),
        ({"Metadata": []}, "Id", False, False),
        ({"DeletionPolicy": "Retain", "UpdateReplacePolicy": "Delete"}, "Id", True, False),
        ({"DeletionPolicy": "RetainExceptOnCreate", "UpdateReplacePolicy": "Retain"}, "Id", True, True),
        ({"DeletionPolicy": "Snapshot"}, "Id", False, False),
    ],
)
def test_resource(body: dict[str, Any], name: str, kept: bool, kept_on_replacement: bool) -> None:  # noqa: FBT001 - a table
    resource = Resource(stack="s", logical_id="Id", type="T", body=body)
    assert (resource.name, resource.is_kept_on_delete, resource.is_kept_on_replacement) == (
        name,
        kept,
        kept_on_replacement,
    )


def test_the_path_of_a_construct_is_what_cdk_says_of_its_logical_id_alone(tmp_path: Path) -> None:
    metadata = {
        "/app/one/Queue/Resource": [{"type": "aws:cdk:logicalId", "data": "Queue"}],
        # an annotation whose text is the ID of a resource
        "/app/one/Other": [{"type": "aws:cdk:warning", "data": "Queue"}],
    }
    one = {**stack_artifact(stackName="one", templateFile="one.json"), "metadata": metadata}
    found = read_assembly(written(tmp_path, {"one": one}, one={"Resources": {"Queue": {"Type": "AWS::SQS::Queue"}}}))
    assert found.stacks[0].paths == {"Queue": "app/one/Queue/Resource"}


def test_an_app_without_stages(tmp_path: Path) -> None:
    folder = written(
        tmp_path,
        {
            "two": {**stack_artifact(stackName="two", templateFile="two.json"), "dependencies": ["one", "assets"]},
            "one": stack_artifact(stackName="one", templateFile="one.json", tags={"team": "a"}),
            "assets": {"type": "cdk:asset-manifest"},
            "Tree": {"type": "cdk:tree"},
        },
        one=TEMPLATE,
        two=TEMPLATE,
    )
    found = read_assembly(folder)
    assert [(stack.name, stack.dependencies, stack.region) for stack in found.stacks] == [
        ("one", (), "us-west-2"),
        ("two", ("one",), "us-west-2"),
    ]
    assert found.stacks[0].tags == {"team": "a"}
    assert found.environment == ""


def test_stacks_that_need_each_other_are_all_there(tmp_path: Path) -> None:
    a = {**stack_artifact(stackName="a"), "dependencies": ["b"]}
    b = {**stack_artifact(stackName="b"), "dependencies": ["a"]}
    found = read_assembly(written(tmp_path, {"a": a, "b": b}, network=TEMPLATE))
    assert [stack.name for stack in found.stacks] == ["a", "b"]


def test_an_environment_that_the_deployment_decides(tmp_path: Path) -> None:
    artifact = {**stack_artifact(), "environment": "aws://unknown-account/unknown-region"}
    found = read_assembly(written(tmp_path, {"a": artifact}, network=TEMPLATE))
    assert (found.account, found.region) == ("", "")


@pytest.mark.parametrize(
    ("artifacts", "environment", "said"),
    [
        ({}, None, "{folder}: the cloud assembly contains no stack"),
        ([], None, "{folder}/manifest.json: not the manifest of a cloud assembly: it has no artifacts"),
        (
            {"a": "b"},
            None,
            "{folder}/manifest.json: not the manifest of a cloud assembly: artifact a is incomplete",
        ),
        (
            {"a": {"type": "aws:cloudformation:stack", "properties": []}},
            None,
            "{folder}/manifest.json: not the manifest of a cloud assembly: artifact a is incomplete",
        ),
        (
            {"a": {"type": "aws:cloudformation:stack", "properties": {"templateFile": 3}}},
            None,
            "{folder}/manifest.json: not the manifest of a cloud assembly: artifact a is incomplete",
        ),
        (
            {"a": {"type": "cdk:cloud-assembly", "properties": {}}},
            None,
            "{folder}/manifest.json: not the manifest of a cloud assembly: artifact a is incomplete",
        ),
        (
            {"a": stack_artifact(templateFile="gone.json")},
            None,
            "{folder}/gone.json: cannot be read: No such file or directory",
        ),
        ({"a": stack_artifact(templateFile=".")}, None, "{folder}: not a file"),
        (
            {"a": stack_artifact()},
            "prod",
            "{folder}: contains no environment 'prod'; there are the stacks dev-network",
        ),
        (
            {
                name: {
                    "type": "cdk:cloud-assembly",
                    "properties": {"directoryName": f"assembly-{name}", "displayName": name},
                }
                for name in ("prod", "dev")
            },
            None,
            "{folder}: contains 2 environments (dev, prod); name one",
        ),
        (
            {
                "x": {
                    "type": "cdk:cloud-assembly",
                    "properties": {"directoryName": "assembly-dev", "displayName": "dev"},
                }
            },
            "prod",
            "{folder}: contains no environment 'prod'; there is dev",
        ),
        (
            {"x": {"type": "cdk:cloud-assembly", "properties": {"directoryName": "assembly-dev"}}},
            "assembly-dev",
            "{folder}/assembly-dev: not a cloud assembly: it has no manifest.json; write one with 'cdk synth'",
        ),
    ],
)
def test_not_a_cloud_assembly(tmp_path: Path, artifacts: Any, environment: str | None, said: str) -> None:
    folder = written(tmp_path / "out", artifacts, network=TEMPLATE)
    assert refusal(read_assembly, folder, environment) == said.format(folder=folder)


def test_stacks_of_one_name_in_several_places(tmp_path: Path) -> None:
    """CloudFormation knows a stack by account, region and name, and one app may have the same one in two regions."""
    east = {**stack_artifact(stackName="app"), "environment": "aws://111122223333/us-east-1", "dependencies": ["west"]}
    artifacts = {"east": east, "west": stack_artifact(stackName="app"), "own": stack_artifact(stackName="own")}
    found = read_assembly(written(tmp_path, artifacts, network=TEMPLATE))
    assert sorted((each.name, each.region, each.dependencies) for each in found.stacks) == [
        ("app in 111122223333 us-east-1", "us-east-1", ("app in 111122223333 us-west-2",)),
        ("app in 111122223333 us-west-2", "us-west-2", ()),
        ("own", "us-west-2", ()),
    ]
    assert len(found.by_name) == 3


def test_json_as_deep_as_templates_may_be() -> None:
    deep, deeper = (
        f'{{"Resources": {{"A": {{"Type": "T", "Properties": {{"P": {"[" * lists}{"]" * lists}}}}}}}}}'
        for lists in (196, 197)
    )
    assert list(parse_template(deep, "t")["Resources"]) == ["A"]
    assert refusal(parse_template, deeper, "t") == "t: nested too deeply for a template"


def test_numbers_of_as_many_digits_as_templates_may_have() -> None:
    number, larger = (f'{{"Resources": {{"A": {{"Type": "T"}}}}, "N": {"9" * digits}}}' for digits in (308, 309))
    assert parse_template(number, "t")["N"] == int("9" * 308)
    assert refusal(parse_template, larger, "t") == (
        "t: not a template: a number in it is infinite, none, or of too many digits"
    )
    assert parse_template('{"Resources": {"A": {"Type": "T"}}, "N": 2.5}', "t")["N"] == 2.5


def yaml_of_depth(depth: int) -> str:
    """Return a template with this number of nodes inside each other, the last one of them a number."""
    return f"Resources: {{A: {{Type: T}}}}\nX:\n {'- ' * (depth - 2)}1"


def test_yaml_as_deep_as_templates_may_be() -> None:
    assert list(parse_template(yaml_of_depth(200), "t")["Resources"]) == ["A"]
    with pytest.raises(AssemblyError, match=r"^t: nested too deeply for a template$"):
        parse_template(yaml_of_depth(201), "t")


@row_by_row(
    "base, head, word",
    [("", "", "ENV"), ("lab", "", "lab"), ("", "prod", "prod"), ("lab", "prod", "prod")],
)
def test_the_word_of_an_environment_in_commands(base: str, head: str, word: str) -> None:
    assert word_of(*(Assembly(environment=each, stacks=()) for each in (base, head))) == word


def test_a_loop_is_found_however_it_is_written() -> None:
    loop = '{"Resources": {"Fn::ForEach::A": ["X", ["a", "b"], {"B${X}": {"Type": "AWS::S3::Bucket"}}]}}'
    for text in (loop, loop.replace("Fn::", "Fn\\u003a\\u003a")):
        assert list(parse_template(text, "t")["Resources"]) == ["Ba", "Bb"]


def test_a_folder_without_manifest(tmp_path: Path) -> None:
    assert refusal(read_assembly, tmp_path / "x") == (
        f"{tmp_path / 'x'}: no such folder; give a cloud assembly as 'cdk synth --output' writes it"
    )
    assert refusal(read_assembly, tmp_path) == (
        f"{tmp_path}: not a cloud assembly: it has no manifest.json; write one with 'cdk synth'"
    )


@pytest.mark.parametrize("kept", [1, 10, 100])
def test_a_half_written_manifest(tmp_path: Path, kept: int) -> None:
    folder = written(tmp_path, {"a": stack_artifact()}, network=TEMPLATE)
    file = folder / "manifest.json"
    file.write_text(file.read_text(encoding="utf-8")[:kept], encoding="utf-8")
    said = refusal(read_assembly, folder)
    assert said.startswith(f"{file}:1: not JSON: ")
    assert said.endswith("; is the file half-written?")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", ": not a JSON object"),
        ("3", ": not a JSON object"),
        ('{"a": ' + "[" * 100_000, ": nested too deeply for a manifest"),
        (
            '{"a": 1, "b": {"c": 1, "c": 2}}',
            ": has the key 'c' twice in one object; it is uncertain which one counts",
        ),
    ],
    ids=["list", "number", "deep", "twice"],
)
def test_a_file_that_is_not_a_manifest(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "manifest.json"
    file.write_text(text, encoding="utf-8")
    assert refusal(read_assembly, tmp_path) == f"{file}{said}"


def test_a_half_written_template(tmp_path: Path) -> None:
    folder = written(tmp_path, {"a": stack_artifact()})
    (folder / "network.json").write_text('{"Resources": {"A": ', encoding="utf-8")
    assert refusal(read_assembly, folder) == (
        f"{folder}/network.json:1: not JSON: Expecting value; is the file half-written?"
    )


SHORT_FORMS = """
Parameters:
  Stage: {Type: String, Default: dev}
Conditions:
  IsProd: !Equals [!Ref Stage, prod]
Resources:
  Role:
    Type: AWS::IAM::Role
    Condition: IsProd
    Properties:
      AssumeRolePolicyDocument: {Version: 2012-10-17}
      RoleName: !Sub "${Stage}-role"
      ManagedPolicyArns: [!If [IsProd, !GetAtt Policy.Arn, !Ref "AWS::NoValue"]]
      Tags:
        - {Key: zone, Value: !Select [0, !GetAZs ""]}
        - {Key: nested, Value: !GetAtt Nested.Outputs.Name}
        - {Key: map, Value: !FindInMap [Map, !Ref Stage, 8080]}
      8080: no
      on: 1
  Policy: {Type: AWS::IAM::ManagedPolicy}
"""


def test_yaml_with_short_forms() -> None:
    role = parse_template(SHORT_FORMS, "t.yaml")["Resources"]["Role"]
    assert role["Properties"] == {
        "AssumeRolePolicyDocument": {"Version": "2012-10-17"},
        "RoleName": {"Fn::Sub": "${Stage}-role"},
        "ManagedPolicyArns": [
            {"Fn::If": ["IsProd", {"Fn::GetAtt": ["Policy", "Arn"]}, {"Ref": "AWS::NoValue"}]},
        ],
        "Tags": [
            {"Key": "zone", "Value": {"Fn::Select": [0, {"Fn::GetAZs": ""}]}},
            {"Key": "nested", "Value": {"Fn::GetAtt": ["Nested", "Outputs.Name"]}},
            {"Key": "map", "Value": {"Fn::FindInMap": ["Map", {"Ref": "Stage"}, 8080]}},
        ],
        "8080": False,
        "on": 1,
    }


TWICE = "has the key '{}' twice in one object; it is uncertain which one counts"


def test_a_short_form_of_every_kind_of_value() -> None:
    text = "Resources: {A: {Type: T, Properties: {P: !Ref B, Q: !Or [a, b], R: !Transform {Name: M, Parameters: [c]}}}}"
    assert parse_template(text, "t")["Resources"]["A"]["Properties"] == {
        "P": {"Ref": "B"},
        "Q": {"Fn::Or": ["a", "b"]},
        "R": {"Fn::Transform": {"Name": "M", "Parameters": ["c"]}},
    }


@row_by_row(
    "text, said",
    [
        ("", "t: not a CloudFormation template: it has no Resources"),
        ("{}", "t: not a CloudFormation template: it has no Resources"),
        ("[]", "t: not a CloudFormation template: it has no Resources"),
        ("Resources: {}", "t: not a CloudFormation template: it has no Resources"),
        ("Resources: [a]", "t: not a CloudFormation template: it has no Resources"),
        ("Resources: {A: b}", "t: not a CloudFormation template: Resources.A has no Type"),
        ("Resources: {A: {Type: [b]}}", "t: not a CloudFormation template: Resources.A has no Type"),
        # YAML reads it as true
        (
            "Resources: {A: {Type: b, Condition: Yes}}",
            "t: not a CloudFormation template: Resources.A.Condition is not a text; quote the name",
        ),
        ("Resources: {A: {Type: T}, B: {}}", "t: not a CloudFormation template: Resources.B has no Type"),
        (
            "Resources: {A: {Type: T, Properties: [b]}}",
            "t: not a CloudFormation template: Resources.A.Properties is not an object",
        ),
        *(
            (
                f"Resources: {{A: {{Type: T, Properties: null}}}}\n{section}: [a]",
                f"t: not a CloudFormation template: {section} is not an object",
            )
            for section in ("Parameters", "Mappings", "Conditions", "Outputs", "Metadata", "Rules")
        ),
        ('  \n{"a": 1, "b": 1, "b": 2, "c": 1, "c": 3, "c": 4}', f"t: {TWICE.format('b')}"),
        ('{"a": {"c": 1, "b": 1, "c": 2}}', f"t: {TWICE.format('c')}"),
        ("a: [b", "t:1: not YAML: expected ',' or ']', but got '<stream end>'"),
        (
            '{"Resources": {',
            "t:1: not JSON: Expecting property name enclosed in double quotes; is the file half-written?",
        ),
        ("a: b\nc: d: e", "t:2: not YAML: mapping values are not allowed here"),
        (
            f"{'k' * 200}: 1\n{'k' * 200}: 2",
            f"t:2: has the key '{'k' * 200}' twice in one object; it is uncertain which one counts",
        ),
        (
            f"{'k' * 201}: 1\n{'k' * 201}: 2",
            f"t:2: has the key '{'k' * 200}' twice in one object; it is uncertain which one counts",
        ),
        ("a: 1\nb: 2\na: 3", "t:3: has the key 'a' twice in one object; it is uncertain which one counts"),
        ('b: [{c: 1,\n\n"c": 2}]', "t:3: has the key 'c' twice in one object; it is uncertain which one counts"),
        ('{"a": 1,\n"a": 3}', "t: has the key 'a' twice in one object; it is uncertain which one counts"),
        ("a: b\n---\nc: d", "t:2: not YAML: but found another document"),
        ("? [a]\n: b", "t:1: not YAML: found unhashable key"),
        ("a: \x01", "t: not YAML: special characters are not allowed"),
        ("a: !!float b", "t: not YAML: a value does not match its tag"),
        (
            "a: !!timestamp b",
            "t:1: not YAML: could not determine a constructor for the tag 'tag:yaml.org,2002:timestamp'",
        ),
        (f"a: {'[' * 1000}", "t: nested too deeply for a template"),
        (f'{{"a": {"[" * 100_000}', "t: nested too deeply for a template"),
        (f'{{"a": {"[" * 200}{"]" * 200}}}', "t: nested too deeply for a template"),
        *(
            (written, "t: not a template: a number in it is infinite, none, or of too many digits")
            for written in (
                *('{"a": NaN}', '{"a": -Infinity}', '{"a": 1e999}', f'{{"a": [{"9" * 400}]}}', "a: .inf"),
                # a whole number of YAML's that no float is as large as
                f"a: {'9' * 400}",
                # more digits than Python makes a number of
                f'{{"a": {"9" * 6000}}}',
            )
        ),
        ("a: &a [*a]", "t: not a template: an alias is inside of the value that it refers to"),
        (
            "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9)),
            "t: not a template: its aliases represent more than 1,000,000 values",
        ),
    ],
)
def test_not_a_template(text: str, said: str) -> None:
    assert refusal(parse_template, text, "t") == said


def test_aliases_of_a_template_are_read() -> None:
    found = parse_template("x: &x {a: 1}\nResources: {A: {Type: T, Properties: *x}, B: {Type: T, Properties: *x}}", "t")
    assert found["Resources"]["A"] == found["Resources"]["B"] == {"Type": "T", "Properties": {"a": 1}}


@pytest.mark.parametrize(
    ("name", "stack"),
    [
        ("main.yaml", "main"),
        ("main.yml", "main"),
        ("prod.template.json", "prod"),
        ("prod.template", "prod"),
        ("prod", "prod"),
    ],
)
def test_a_lone_template(tmp_path: Path, name: str, stack: str) -> None:
    file = tmp_path / name
    # the mark that Windows' editors write first
    file.write_text("\ufeff" + json.dumps(TEMPLATE), encoding="utf-8")
    found = read_template(file, region="eu-north-1", account="111122223333")
    assert [(each.name, each.region, each.account) for each in found.stacks] == [(stack, "eu-north-1", "111122223333")]
    assert [each.type for each in found.resources()] == ["AWS::S3::Bucket"]
    assert found.environment == ""


TOO_LARGE = "has 1,048,577 bytes; CloudFormation accepts at most 1,048,576 (1 MB)"


def test_files_that_are_no_template(tmp_path: Path) -> None:
    binary, large, loop = tmp_path / "a.yaml", tmp_path / "b.yaml", tmp_path / "c.yaml"
    binary.write_bytes(b"\x7fELF\n\xff\xfe")
    large.write_bytes(b" " * (MOST_TEMPLATE_BYTES + 1))
    loop.symlink_to(loop)
    assert refusal(read_template, binary) == f"{binary}:2: not text in UTF-8: byte 0xff"
    assert refusal(read_template, large) == (
        f"{large}: has 1,048,577 bytes; CloudFormation accepts at most 1,048,576 (1 MB)"
    )
    assert refusal(read_template, loop) == f"{loop}: cannot be read: Too many levels of symbolic links"
    assert refusal(read_template, tmp_path) == f"{tmp_path}: not a file"
    assert refusal(read_template, tmp_path / "x") == f"{tmp_path / 'x'}: cannot be read: No such file or directory"


def test_a_file_that_is_too_large_to_be_a_manifest(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_bytes(b" " * (MOST_BYTES + 1))
    assert refusal(read_assembly, tmp_path) == f"{tmp_path}/manifest.json: larger than 16 MiB, which no template is"


# CloudFormation user guide, quotas: 1 MB of a template in S3, 500 resources
@pytest.mark.parametrize("more", [0, 1])
def test_what_cloudformation_takes_at_most(tmp_path: Path, more: int) -> None:
    file = tmp_path / "t.json"
    text = json.dumps(TEMPLATE)
    file.write_text(text + " " * (MOST_TEMPLATE_BYTES - len(text) + more), encoding="utf-8")
    if more:
        assert refusal(read_template, file).endswith(
            "has 1,048,577 bytes; CloudFormation accepts at most 1,048,576 (1 MB)"
        )
    else:
        assert len(read_template(file).stacks[0].resources) == 1
    many = {"Resources": {f"R{number}": {"Type": "T"} for number in range(MOST_RESOURCES + more)}}
    file.write_text(json.dumps(many), encoding="utf-8")
    if more:
        assert refusal(read_template, file) == f"{file}: has 501 resources; CloudFormation accepts at most 500"
    else:
        assert len(read_template(file).stacks[0].resources) == MOST_RESOURCES


def test_exports_of_strange_outputs() -> None:
    outputs = {
        "A": {"Value": 1, "Export": {"Name": "a"}},
        "B": {"Value": 2, "Export": "b"},
        "C": {"Value": 3, "Export": {"Name": {"Ref": "x"}}},
        "D": "d",
    }
    found = Assembly(environment="", stacks=(Stack(name="s", template={**TEMPLATE, "Outputs": outputs}),))
    assert {name: value for name, (_, value) in found.exports.items()} == {"a": 1}


def test_the_names_of_exports() -> None:
    def exported(name: Any, **more: Any) -> dict[str, Any]:
        return {"Value": "v", "Export": {"Name": name}, **more}

    template = {
        **TEMPLATE,
        "Parameters": {"P": {"Type": "String"}},
        "Conditions": {"Never": {"Fn::Equals": ["a", "b"]}, "Perhaps": {"Fn::Equals": [{"Ref": "P"}, "b"]}},
        "Outputs": {
            "A": exported("a"),
            "B": exported("b", Condition="Never"),
            "C": exported("c", Condition="Perhaps"),
            "D": exported({"Ref": "P"}),
            "E": exported({"Ref": "P"}),
            "F": exported("f"),
            "G": {"Value": "v"},
        },
    }
    stack = Stack(name="s", template=template, exported={"E": "e", "F": "as deployed"})
    names = {"A": "a", "C": "c", "D": None, "E": "e", "F": "as deployed"}
    assert stack.export_names == names
    other = Stack(name="t", template={"Outputs": {"A": exported("a")}})
    found = Assembly(environment="", stacks=(stack, other)).exports
    assert {name: each.name for name, (each, _) in found.items()} == {
        **dict.fromkeys(("c", "e", "as deployed"), "s"),
        "a": "t",
    }


def test_only_objects_are_resources() -> None:
    stack = Stack(name="s", template={"Resources": {"A": {"Type": "T"}, "B": "b", "C": {}}})
    assert {name: each.type for name, each in stack.resources.items()} == {"A": "T", "C": ""}
    assert stack.logical_ids == {"A", "C"}
    assert Stack(name="s", template={"Resources": ["A"]}).resources == {}


@pytest.mark.parametrize(
    ("stated", "policy"),
    [
        ({"Ref": "Keep"}, "Retain"),
        ({"Fn::If": ["Perhaps", "Retain", "Delete"]}, "Delete"),
        ({"Fn::FindInMap": ["Policies", "prod", "it"]}, "Snapshot"),
    ],
)
def test_policies_that_functions_name(stated: Any, policy: str) -> None:
    template = {
        "Parameters": {"Keep": {"Type": "String", "Default": "Retain"}, "P": {"Type": "String"}},
        "Conditions": {"Perhaps": {"Fn::Equals": [{"Ref": "P"}, "b"]}},
        "Mappings": {"Policies": {"prod": {"it": "Snapshot"}}},
        "Resources": {"A": {"Type": "T", "DeletionPolicy": stated, "UpdateReplacePolicy": "Retain"}},
    }
    resource = Stack(name="s", template=template).resources["A"]
    assert (resource.deletion_policy, resource.is_kept_on_replacement) == (policy, True)


# CloudFormation template reference, DeletionPolicy attribute: which types have the default Snapshot
@row_by_row(
    "resource_type, body, policy",
    [
        ("AWS::RDS::DBCluster", {}, "Snapshot"),
        ("AWS::RDS::DBInstance", {}, "Snapshot"),
        ("AWS::RDS::DBInstance", {"Properties": {"DBClusterIdentifier": "c"}}, "Delete"),
        ("AWS::RDS::DBCluster", {"Properties": {"DBClusterIdentifier": "c"}}, "Snapshot"),
        ("AWS::RDS::DBCluster", {"DeletionPolicy": "Delete"}, "Delete"),
        ("AWS::RDS::DBCluster", {"DeletionPolicy": {"Ref": "P"}}, "Delete"),
        ("AWS::FSx::FileSystem", {}, "Delete"),
        ("AWS::FSx::FileSystem", {"DeletionPolicy": "Retain"}, "Retain"),
    ],
)
def test_what_happens_to_a_resource_that_is_removed(resource_type: str, body: dict[str, Any], policy: str) -> None:
    assert Resource(stack="s", logical_id="Id", type=resource_type, body=body).deletion_policy == policy


@row_by_row(
    "metadata, path, expected",
    [
        ({"aws:cdk:path": "a/b/C"}, "x/y/Z", "a/b/C"),
        ({"aws:cdk:path": ["a"]}, "x/y/Z", "x/y/Z"),
        ({}, "x/y/Z", "x/y/Z"),
        (["aws:cdk:path"], "x/y/Z", "x/y/Z"),
        (None, "", ""),
    ],
)
def test_the_path_of_a_construct(metadata: Any, path: str, expected: str) -> None:
    resource = Resource(stack="s", logical_id="Id", type="T", body={"Metadata": metadata}, path=path)
    assert resource.construct_path == expected


def test_where_an_assembly_goes_is_what_its_first_stack_says() -> None:
    stacks = (
        Stack(name="a", template=TEMPLATE),
        Stack(name="b", template=TEMPLATE, region="us-east-1"),
        Stack(name="c", template=TEMPLATE, region="eu-north-1", account="111122223333"),
        Stack(name="d", template=TEMPLATE, account="444455556666"),
    )
    found = Assembly(environment="prod", stacks=stacks, called="environments/prod.yaml")
    assert (found.region, found.account) == ("us-east-1", "111122223333")
    assert found.word == "environments/prod.yaml"
    assert [found.is_made_of(each) for each in (stacks, stacks[:3], stacks[::-1], [*stacks])] == [
        True,
        False,
        False,
        True,
    ]
    # equal stacks are others, whose stored results are not known
    assert not found.is_made_of([replace(stack) for stack in stacks])


@row_by_row(
    "account, region, expected",
    [
        ("1", "us-east-1", "app in 1 us-east-1"),
        ("", "us-east-1", "app in its account us-east-1"),
        ("1", "", "app in 1"),
        ("", "", "app in its account"),
    ],
)
def test_what_tells_stacks_of_one_name_apart(account: str, region: str, expected: str) -> None:
    assert placed("app", account, region) == expected


@pytest.mark.parametrize(
    ("stated", "where"),
    [
        ("aws://111122223333/us-west-2", ("111122223333", "us-west-2")),
        ("aws://unknown-account/us-west-2", ("", "us-west-2")),
        ("aws://111122223333/unknown-region", ("111122223333", "")),
        ("us-west-2", ("", "")),
    ],
)
def test_where_a_stack_goes(tmp_path: Path, stated: str, where: tuple[str, str]) -> None:
    found = read_assembly(written(tmp_path, {"a": {**stack_artifact(), "environment": stated}}, network=TEMPLATE))
    assert (found.account, found.region) == where


def test_an_environment_without_a_stage_is_known_by_the_names_of_its_stacks(tmp_path: Path) -> None:
    artifacts = {name: stack_artifact(stackName=name) for name in ("dev-network", "dev-storage")}
    folder = written(tmp_path / "all", artifacts, network=TEMPLATE)
    assert read_assembly(folder, "dev").environment == "dev"
    assert read_assembly(folder).environment == ""
    folder = written(tmp_path / "some", {**artifacts, "x": stack_artifact(stackName="x")}, network=TEMPLATE)
    assert refusal(read_assembly, folder, "dev") == (
        f"{folder}: contains no environment 'dev'; there are the stacks dev-network, dev-storage, x"
    )


def test_two_environments_of_one_name(tmp_path: Path) -> None:
    def stage(folder: str) -> dict[str, Any]:
        return {"type": "cdk:cloud-assembly", "properties": {"directoryName": folder, "displayName": "dev"}}

    folder = written(tmp_path, {"a": stage("one"), "b": stage("two")})
    assert refusal(read_assembly, folder, "dev") == (
        f"{folder}: contains two environments with one name; 'cdk deploy' would deploy both"
    )


def test_a_stack_that_is_there_twice(tmp_path: Path) -> None:
    artifacts = {"x": stack_artifact(stackName="x"), **{name: stack_artifact(stackName="app") for name in "ab"}}
    folder = written(tmp_path, artifacts, network=TEMPLATE)
    assert refusal(read_assembly, folder) == (
        f"{folder}/manifest.json: contains the stack app twice; one would not be read"
    )


def test_what_an_artifact_says_of_its_stack(tmp_path: Path) -> None:
    artifact = {**stack_artifact(terminationProtection=True, tags={"n": 1}), "displayName": "dev/network"}
    plain = {"type": "aws:cloudformation:stack", "properties": {"templateFile": "network.json"}}
    found = read_assembly(written(tmp_path, {"A": artifact, "B": plain}, network=TEMPLATE)).stacks
    assert [(each.name, each.shown, each.termination_protection, each.tags) for each in found] == [
        ("dev-network", "dev/network", True, {"n": "1"}),
        ("B", "B", False, {}),
    ]
    assert {each.file for each in found} == {tmp_path / "network.json"}


def test_a_file_outside_of_the_assembly_is_not_read(tmp_path: Path) -> None:
    folder = written(tmp_path / "out", {"a": stack_artifact(templateFile="../network.json")})
    written(tmp_path, {}, network=TEMPLATE)
    assert refusal(read_assembly, folder) == (
        f"{folder}/manifest.json: names a file outside of its folder: ../network.json"
    )


def test_nothing_is_empty() -> None:
    assert list(EMPTY.resources()) == []
    assert (EMPTY.region, EMPTY.account, EMPTY.exports) == ("", "", {})


@given(st.text(max_size=60))
def test_any_text_is_a_template_or_refused(text: str) -> None:
    try:
        found = parse_template(text, "t")
    except AssemblyError as error:
        assert "\n" not in str(error)  # noqa: PT017 - either outcome is right
    else:
        assert found["Resources"]


def test_what_is_printed_of_a_stack_holds_no_value_of_a_parameter() -> None:
    shown = repr(
        Stack(
            name="prod-lab",
            template={"Resources": {"Secret": {"Type": "AWS::SSM::Parameter"}}},
            settings={"Password": ("hunter2",)},
            paths={"Secret": "prod/lab/Secret"},
            exported={"Out": "prod-lab-out"},
        )
    )
    assert "prod-lab" in shown
    assert not [each for each in ("hunter2", "Secret", "prod-lab-out") if each in shown]
    body = {"Properties": {"Value": "hunter2"}}
    resource = Resource(stack="lab", logical_id="Secret", type="AWS::SSM::Parameter", body=body, path="prod/lab/Secret")
    assert repr(resource) == "Resource(stack='lab', logical_id='Secret', type='AWS::SSM::Parameter')"
