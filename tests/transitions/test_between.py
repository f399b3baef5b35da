"""Intermediate steps: claims are removed before their volume changes, and groups before they are created again."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hyperpod_cdk.templates.assembly import Assembly, AssemblyError, Stack, read_assembly
from hyperpod_cdk.transitions.between import with_stacks, write
from hyperpod_cdk.transitions.model import Plan
from hyperpod_cdk.transitions.plan import betweens
from tests.transitions.stacks import ACCOUNT, REGION, assembly, planned, stack, steps

FILES = {"Fn::ImportValue": "fs"}
TWO = [("deploy", "dev-platform", "exclusively"), ("deploy", "dev-storage", "dev-platform")]


def _file_system(subnet: str) -> dict[str, Any]:
    properties = {"FileSystemType": "LUSTRE", "StorageCapacity": 1200, "SubnetIds": [subnet]}
    kept = {"DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain"}
    return {"Type": "AWS::FSx::FileSystem", "Properties": properties, **kept}


def _claim(export: str, *, policy: str = "Retain", name: str = "fsx") -> dict[str, Any]:
    objects: list[dict[str, Any]] = [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": f"ml-{name}"},
            "spec": {"persistentVolumeReclaimPolicy": policy, "csi": {"volumeHandle": "HANDLE"}},
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": "ml"},
            "spec": {"volumeName": f"ml-{name}"},
        },
    ]
    before, after = json.dumps(objects).split("HANDLE")
    manifest = {"Fn::Join": ["", [before, {"Fn::ImportValue": export}, after]]}
    return {"Type": "Custom::AWSCDK-EKS-KubernetesResource", "Properties": {"Manifest": manifest}}


def _side(
    subnet: str, *, export: str = "fs", platform: Mapping[str, Any] | None = None, policy: str = "Retain"
) -> Assembly:
    storage = stack("storage", resources={"Scratch": _file_system(subnet)})
    outputs = {"O": {"Value": {"Ref": "Scratch"}, "Export": {"Name": export}}}
    resources = {"Claim": _claim(export, policy=policy), **(platform or {})}
    return assembly(
        replace(storage, template={**storage.template, "Outputs": outputs}),
        stack("platform", resources=resources, after=["storage"]),
    )


def test_claims_go_before_what_they_use_is_replaced() -> None:
    found = planned(_side("subnet-1"), _side("subnet-2"))
    assert steps(found) == TWO
    first, last = found.steps
    (between,) = first.between
    assert between == (
        "In this step dev-platform is deployed in its present form without Claim: what they use changes,"
        " and CloudFormation does not change an export that is in use. A later step creates them again, as the file "
        "says."
    )
    assert first.commands == ("hyperpod-cdk deploy dev",)
    assert first.does == ("dev-platform: 1 deleted.",)
    (asked,) = first.first
    assert asked.startswith("End the pods that mount the claim ml/fsx: ")
    assert first.loses == ()
    assert last.between == ()
    assert last.commands == ("hyperpod-cdk cdk deploy 'dev/*' -c env=dev --concurrency 3 --require-approval never",)
    assert last.stays == ("dev-storage / Scratch remains in the account and costs money.",)
    # as a plan from there: the claims of the new file system would go first, too
    assert [each.back for each in found.steps] == [
        "Deploy the current version again, in 1 step.",
        "Deploy the current version again, in 2 steps; this creates again, without the data: Scratch.",
    ]


@pytest.mark.parametrize(
    ("kind", "properties", "goes"),
    [
        ("AWS::CloudWatch::Alarm", {"Dimensions": [{"Name": "FileSystemId", "Value": FILES}]}, True),
        ("AWS::CloudWatch::Dashboard", {"DashboardBody": FILES}, True),
        ("AWS::SSM::Parameter", {"Type": "String", "Value": FILES}, False),
        ("AWS::Lambda::Function", {"Environment": {"Variables": {"FILES": FILES}}}, False),
    ],
)
def test_what_watches_a_file_system_goes_before_it_is_replaced(
    kind: str, properties: Mapping[str, Any], *, goes: bool
) -> None:
    def side(subnet: str) -> Assembly:
        found = _side(subnet)
        watcher = stack("watch", resources={"Full": {"Type": kind, "Properties": properties}}, after=["storage"])
        return replace(found, stacks=(*found.stacks, watcher))

    found = planned(side("subnet-1"), side("subnet-2"))
    if not goes:
        (refusal,) = (each for each in found.refusals if "dev-watch" in each.why)
        assert refusal.why == (
            "dev-storage would change Scratch, which dev-watch uses before and after the change. CloudFormation does "
            "not change an export that is in use. Replaced: Scratch because of its SubnetIds."
        )
        assert refusal.what_works == (
            "Two deployments: first a file in which nothing of dev-watch uses Scratch (of a claim: claim: null), then "
            "this file. Or add a file system under another name, and remove the old one later."
        )
        return
    assert steps(found) == [
        ("deploy", "dev-platform", "dev-watch", "exclusively"),
        ("deploy", "dev-storage", "dev-platform", "dev-watch"),
    ]
    assert found.steps[0].between[1] == (
        "In this step dev-watch is deployed in its present form without Full: what they use changes, and "
        "CloudFormation does not change an export that is in use. A later step creates them again, as the file says; "
        "until then no alarm of them notifies anybody."
    )


def test_claims_that_could_not_be_deleted_have_to_be_gone_before_they_come_again() -> None:
    middle = assembly(*(each for each in _side("subnet-1").stacks if each.name != "dev-platform"), stack("platform"))
    left = {("dev-platform", "Claim"): "a pod mounts it", ("dev-platform", "Other"): "no"}
    (step,) = planned(middle, _side("subnet-2"), left=left).steps
    (asked,) = step.first
    assert asked == (
        "Delete PersistentVolume ml-fsx and PersistentVolumeClaim ml/fsx with kubectl if still there, once no pod uses "
        "them: an earlier deployment could not and left them behind (a pod mounts it)."
    )
    assert step.needs_a_person
    # what stands, or goes, is another matter
    assert all(not each.first for each in planned(_side("subnet-1"), middle, left={("dev-x", "Claim"): "x"}).steps[1:])


def test_claims_go_before_a_file_system_of_another_name_takes_their_place() -> None:
    base = _side("subnet-1")
    head = _side("subnet-1", export="other")
    for each in head.stacks:
        if "Scratch" in each.resources:
            each.template["Resources"]["Fresh"] = each.template["Resources"].pop("Scratch")
            each.template["Outputs"]["O"]["Value"] = {"Ref": "Fresh"}
    assert steps(planned(base, head)) == TWO


def test_the_way_goes_on_from_the_state_in_between() -> None:
    base, head = _side("subnet-1"), _side("subnet-2")
    (between,) = betweens(base, head)
    middle = with_stacks(base, [between.stack])
    assert steps(planned(middle, head)) == TWO[1:]
    assert betweens(middle, head) == []
    # and back from there, too
    assert steps(planned(middle, base)) == [("deploy", "dev-platform")]


def test_who_waits_for_a_claim_waits_for_it_no_more() -> None:
    job = {"Type": "AWS::SQS::Queue", "DependsOn": ["Claim", "Always"]}
    other = {"Type": "AWS::SQS::Queue", "DependsOn": "Claim"}
    platform = {"Job": job, "Other": other}
    base = _side("subnet-1", platform=platform)
    (between,) = betweens(base, _side("subnet-2", platform=platform))
    assert between.stack.template["Resources"] == {
        "Always": {"Type": "AWS::SQS::Queue"},
        "Job": {"Type": "AWS::SQS::Queue", "DependsOn": ["Always"]},
        "Other": {"Type": "AWS::SQS::Queue"},
    }
    # what was read stays as it is
    assert base.by_name["dev-platform"].resources["Job"].body == job


@pytest.mark.parametrize(
    "platform",
    [
        pytest.param(
            {"Role": {"Type": "AWS::IAM::ManagedPolicy", "Properties": {"Description": {"Fn::ImportValue": "fs"}}}},
            id="something else uses it",
        ),
        pytest.param(
            {"Tells": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": {"Ref": "Claim"}}}},
            id="something refers to the claim",
        ),
    ],
)
def test_what_is_more_than_claims_is_refused(platform: Mapping[str, Any]) -> None:
    _refused(_side("subnet-1", platform=platform), _side("subnet-2", platform=platform))


def test_a_claim_whose_volume_would_go_with_it_is_refused() -> None:
    _refused(_side("subnet-1", policy="Delete"), _side("subnet-2", policy="Delete"))


@pytest.mark.parametrize(
    ("old", "new", "is_moved"),
    [
        ({"accessModes": ["ReadOnlyMany"]}, {"accessModes": ["ReadWriteMany"]}, True),
        ({"csi": {"volumeHandle": "a"}}, {"csi": {"volumeHandle": "b"}}, True),
        ({"storageClassName": ""}, {"storageClassName": "fsx"}, True),
        (
            {"csi": {"volumeHandle": "a"}, "mountOptions": []},
            {"csi": {"volumeHandle": "a"}, "mountOptions": ["ro"]},
            False,
        ),
        ({"capacity": {"storage": "1Gi"}}, {"capacity": {"storage": "2Gi"}}, False),
    ],
)
def test_a_claim_with_a_new_target_is_deleted_before_it_is_created_again(
    old: dict[str, Any], new: dict[str, Any], *, is_moved: bool
) -> None:
    def side(spec: dict[str, Any]) -> Assembly:
        volume = {"persistentVolumeReclaimPolicy": "Retain", **spec}
        objects = [
            {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": volume},
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": "c", "namespace": "ml"},
                "spec": {"volumeName": "v", "accessModes": spec.get("accessModes", ["ReadWriteMany"])},
            },
        ]
        body = {"Type": "Custom::AWSCDK-EKS-KubernetesResource", "Properties": {"Manifest": json.dumps(objects)}}
        return assembly(stack("platform", resources={"Claim": body}))

    found = planned(side(old), side(new))
    last = ("deploy", "dev-platform")
    assert steps(found) == ([(*last, "exclusively"), last] if is_moved else [last])
    says = (
        "In this step dev-platform is deployed in its present form without Claim: their target changes, and"
        " Kubernetes never changes the target of a volume or a claim. A later step creates them again, as the"
        " file says."
    )
    assert [each.between for each in found.steps if each.between] == is_moved * [(says,)]


def test_a_name_that_another_claim_takes_over_goes_first() -> None:
    other = _claim("b", name="other")
    base = assembly(stack("platform", resources={"A": _claim("a"), "B": other}))
    # what A made is B's from now on, and A is gone; what only goes needs no step
    head = assembly(stack("platform", resources={"B": _claim("b")}))
    last = ("deploy", "dev-platform")
    found = planned(base, head)
    assert steps(found) == [(*last, "exclusively"), last]
    assert found.steps[0].does == ("dev-platform: 1 deleted.",)
    assert steps(planned(base, assembly(stack("platform", resources={"B": other})))) == [last]


def _refused(base: Assembly, head: Assembly) -> Plan:
    found = planned(base, head)
    assert found.steps == ()
    assert found.refusals
    assert all(each.what_works for each in found.refusals)
    return found


def _group(name: str, subnet: str, count: int = 1) -> dict[str, Any]:
    network = {"SecurityGroupIds": ["sg-1"], "Subnets": [subnet]}
    return {
        "InstanceGroupName": name,
        "InstanceType": "ml.m5.2xlarge",
        "InstanceCount": count,
        "OverrideVpcConfig": network,
    }


def _cluster(*groups: dict[str, Any], **more: Any) -> Assembly:
    properties = {"ClusterName": "dev", "InstanceGroups": list(groups), **more}
    cluster = {"Type": "AWS::SageMaker::Cluster", "Properties": properties}
    return assembly(stack("hyperpod", resources={"Cluster": cluster}))


def test_a_group_is_deleted_before_one_with_its_name_is_created() -> None:
    base = _cluster(_group("system", "subnet-1"), _group("gpu", "subnet-1", 2))
    head = _cluster(_group("system", "subnet-1"), _group("gpu", "subnet-2", 2))
    found = planned(base, head)
    assert steps(found) == [("deploy", "dev-hyperpod", "exclusively"), ("deploy", "dev-hyperpod")]
    first, last = found.steps
    (between,) = first.between
    assert between == (
        "In this step dev-hyperpod is deployed in its present form without instance group gpu, of which HyperPod"
        " cannot change Subnets: its nodes are terminated before a later step creates the new ones. Under another"
        " name, the new group could run together with the old one until its jobs have moved."
    )
    assert first.needs_a_person
    assert any("gpu" in each for each in first.loses)
    assert last.loses == ()
    assert [each.back for each in found.steps] == [
        "Deploy the current version again, in 1 step.",
        "Deploy the current version again, in 2 steps.",
    ]
    (form,) = betweens(base, head)
    properties = form.stack.resources["Cluster"].properties
    assert [each["InstanceGroupName"] for each in properties["InstanceGroups"]] == ["system"]


def test_a_recreated_group_is_created_next_to_the_old_one() -> None:
    """Each deployment looks from where the last one ended, and must find the steps that were shown."""
    system = _group("system", "subnet-1")
    base = _cluster(system, _group("gpu", "subnet-1", 2), _group("old", "subnet-1", 2))
    head = _cluster(copy.deepcopy(system), _group("gpu", "subnet-2", 2))
    shown = planned(base, head)
    assert steps(shown) == [*[("deploy", "dev-hyperpod", "exclusively")] * 2, ("deploy", "dev-hyperpod")]
    for names, rest in ((["system", "old"], shown.steps[1:]), (["system", "old", "gpu"], shown.steps[2:])):
        (form,) = betweens(base, head)
        base = with_stacks(base, [form.stack])
        groups = base.by_name["dev-hyperpod"].resources["Cluster"].properties["InstanceGroups"]
        assert [each["InstanceGroupName"] for each in groups] == names
        again = planned(base, head)
        assert [(each.between, each.first, each.loses) for each in again.steps] == [
            (each.between, each.first, each.loses) for each in rest
        ]
    assert betweens(base, head) == []


@pytest.mark.parametrize(
    ("others", "more"),
    [
        ([], {}),
        ([_group("system", "subnet-1", 0)], {}),
        ([], {"RestrictedInstanceGroups": [_group("nova", "subnet-1", 1)]}),
    ],
)
def test_the_last_group_with_a_node_for_add_ons_stays(others: list[dict[str, Any]], more: dict[str, Any]) -> None:
    base = _cluster(*others, _group("gpu", "subnet-1"), **more)
    found = _refused(base, _cluster(*copy.deepcopy(others), _group("gpu", "subnet-2"), **more))
    assert found.refusals[0].why == (
        "dev-hyperpod / Cluster: InstanceGroups[gpu].OverrideVpcConfig.Subnets: UpdateCluster cannot change it; give "
        "the group a new name."
    )


def _written(folder: Path, *stacks: Stack) -> Assembly:
    inner: dict[str, Any] = {}
    (folder / "assembly-dev").mkdir(parents=True)
    for each in stacks:
        file = f"{each.name}.template.json"
        text = json.dumps(each.template)
        (folder / "assembly-dev" / file).write_text(text, encoding="utf-8")
        key = hashlib.sha256(text.encode()).hexdigest()
        place = {"bucketName": "assets", "objectKey": f"{key}.json"}
        asset = {"source": {"path": file, "packaging": "file"}, "destinations": {"here": place}}
        manifest = {"version": "55.0.0", "files": {key: asset}, "dockerImages": {}}
        (folder / "assembly-dev" / f"{each.name}.assets.json").write_text(json.dumps(manifest), encoding="utf-8")
        inner[f"{each.name}.assets"] = {
            "type": "cdk:asset-manifest",
            "properties": {"file": f"{each.name}.assets.json"},
        }
        inner[each.name] = {
            "type": "aws:cloudformation:stack",
            "environment": f"aws://{ACCOUNT}/{REGION}",
            "dependencies": [f"{each.name}.assets"],
            "properties": {
                "templateFile": file,
                "stackName": each.name,
                "stackTemplateAssetObjectUrl": f"s3://assets/{key}.json",
            },
        }
    (folder / "assembly-dev" / "manifest.json").write_text(json.dumps({"artifacts": inner}), encoding="utf-8")
    stage = {"type": "cdk:cloud-assembly", "properties": {"directoryName": "assembly-dev", "displayName": "dev"}}
    (folder / "manifest.json").write_text(json.dumps({"artifacts": {"dev": stage}}), encoding="utf-8")
    return read_assembly(folder, "dev")


def test_what_is_deployed_in_between_is_uploaded_under_its_own_name(tmp_path: Path) -> None:
    base, stated = _side("subnet-1"), _side("subnet-2")
    head = _written(tmp_path / "head", *stated.stacks)
    before = {each: each.read_bytes() for each in (tmp_path / "head").rglob("*") if each.is_file()}
    found = betweens(base, head)
    written = read_assembly(write(head, found, tmp_path / "step"), "dev")
    assert list(written.by_name["dev-platform"].resources) == ["Always"]
    # everything else is the head's
    assert written.by_name["dev-storage"].template == head.by_name["dev-storage"].template
    assert {each: each.read_bytes() for each in before} == before
    inner = tmp_path / "step" / "cdk.out" / "assembly-dev"
    (key,) = json.loads((inner / "dev-platform.assets.json").read_text())["files"]
    assert key == hashlib.sha256((inner / "dev-platform.template.json").read_bytes()).hexdigest()
    url = json.loads((inner / "manifest.json").read_text())["artifacts"]["dev-platform"]["properties"]
    assert url["stackTemplateAssetObjectUrl"] == f"s3://assets/{key}.json"


def test_what_lies_in_no_folder_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(AssemblyError, match="is not in a folder"):
        write(_side("subnet-2"), betweens(_side("subnet-1"), _side("subnet-2")), tmp_path)
