"""No edit of a file makes a stack drop an export that another one, as deployed, still imports.

CloudFormation updates the stack that exports first, and refuses there: "Export ... cannot be deleted as it is in use".
By then that stack's resources are changed, and an update of HyperPod has ended nodes.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from hyperpod_cdk.config import EnvironmentFileError, load_environment
from tests.support.assembly import ENVIRONMENTS, PROJECT, Synthesized, shipped, synthesize_unchecked

Data = dict[str, Any]

STEPS = {
    "encryption.node_volumes goes": "Change or remove a KMS key",
    "encryption.logs goes": "Change or remove a KMS key",
    "encryption goes": "Change or remove a KMS key",
    "storage goes": "Remove a file system",
    "network.availability_zones": "Remove an Availability Zone",
}
"""Edits, by how they begin, that take what the stacks share away itself, and where their steps are written."""

SWITCHES = (
    "operators",
    "operators.training",
    "operators.inference",
    "operators.observability",
    "operators.spaces",
    "task_governance",
    "task_governance.teams",
    "storage",
    "storage.s3",
    "storage.lustre[*].claim",
    "encryption",
    "encryption.eks_secrets",
    "encryption.node_volumes",
    "encryption.lifecycle_bucket",
    "encryption.logs",
    "eks.admin_role_arns",
    "eks.image_registry",
    "hyperpod.tiered_checkpointing",
    "hyperpod.restricted_environment",
)
VALUES = {"quota_check": "off", "deletion_protection": False, "hyperpod.autoscaling": "disabled"}
COMES: Data = {
    "hyperpod.lifecycle.existing_bucket": {"name": "sagemaker-scripts"},
    "eks.image_registry": "111122223333.dkr.ecr.us-east-1.amazonaws.com",
    "network.retain": True,
    "encryption": {"lifecycle_bucket": "create", "node_volumes": "create", "logs": "create"},
}
"""What an environment may get later where it has none."""


def edits(data: Data) -> Iterator[tuple[str, Data]]:
    """Yield the edits of one place each, whether the file is legal then or not."""
    for title, change in _changes(data):
        other = copy.deepcopy(data)
        change(other)
        yield title, other


def _changes(data: Data) -> Iterator[tuple[str, Callable[[Data], object]]]:
    yield "no group has nodes", _empty
    for kind in ("instance_groups", "restricted_instance_groups"):
        for index, group in enumerate(data["hyperpod"].get(kind, [])):
            name, change = group["name"], partial(_change, kind=kind, index=index)
            yield f"{name} goes", partial(_remove, kind=kind, index=index)
            yield f"{name} is renamed", partial(change, name="another")
            yield f"{name} has no nodes", partial(change, count=0)
            for zone in _zones(data):
                if zone != group["availability_zone_id"]:
                    yield f"{name} moves to {zone}", partial(change, name="another", availability_zone_id=zone)
    for zone in _zones(data):
        yield f"groups of {zone} go", partial(_leave, zone=zone)
        yield f"network.availability_zones: {zone} goes", partial(_take_zone, zone=zone)
    for path, value in COMES.items():
        if not _holds(data, path):
            yield f"{path} comes", partial(_set, path=path, value=value)
    yield "inference and its OIDC provider go", _no_inference
    yield "restricted groups go", _no_restricted
    yield "Karpenter goes", _no_karpenter
    for path in SWITCHES:
        if _holds(data, path):
            yield f"{path} goes", partial(_drop, path=path)
    for path, value in VALUES.items():
        yield f"{path} is {value}", partial(_set, path=path, value=value)


def dropped(base: Synthesized, head: Synthesized) -> list[str]:
    """Return the exports that go or change in a stack of ``head``, and which stack of ``base`` imports each."""
    found = []
    for stack, template in base.templates.items():
        if stack not in head.templates:
            # it stays deployed, with its exports
            continue
        before, after = _exports(template), _exports(head.templates[stack])
        found += [
            f"{name}, which {user} imports"
            for user, imported in base.templates.items()
            for name in sorted(before.keys() & _imports(imported))
            if after.get(name) != before[name]
        ]
    return found


@pytest.mark.parametrize(
    ("name", "edit"),
    [
        ("prod", "system goes"),
        ("nova", "nova is renamed"),
        ("serving", "inference and its OIDC provider go"),
        pytest.param("h100", "no group has nodes", marks=pytest.mark.examples),
        pytest.param("spot", "groups of usw2-az2 go", marks=pytest.mark.examples),
        pytest.param("h100", "h100 goes", marks=pytest.mark.examples),
        pytest.param("nova", "hyperpod.lifecycle.existing_bucket comes", marks=pytest.mark.examples),
    ],
)
def test_what_the_day_asks_for_needs_no_export_to_go(name: str, edit: str, assemblies: Path, tmp_path: Path) -> None:
    base = shipped(assemblies, name)
    (text,) = [data for title, data in edits(_data(name)) if title == edit]
    head = _synthesized(name, text, tmp_path)
    assert head is not None
    assert dropped(base, head) == []


@pytest.mark.examples
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_no_edit_needs_an_export_to_go(name: str, assemblies: Path, tmp_path: Path) -> None:
    base = shipped(assemblies, name)
    judged = 0
    wrong: dict[str, list[str]] = {}
    for number, (title, data) in enumerate(edits(_data(name))):
        head = _synthesized(name, data, tmp_path / str(number))
        if head is None:
            continue
        judged += 1
        if (found := dropped(base, head)) and not title.startswith(tuple(STEPS)):
            wrong[title] = found
    assert judged > 5
    assert wrong == {}


@pytest.mark.parametrize("heading", sorted(set(STEPS.values())))
def test_the_steps_of_what_takes_more_than_one_deployment_are_written(heading: str) -> None:
    lines = (PROJECT / "docs" / "lifecycle-of-an-environment.md").read_text(encoding="utf-8").splitlines()
    assert f"## {heading}" in lines


def test_an_export_that_goes_is_found(assemblies: Path) -> None:
    base = shipped(assemblies, "prod")
    templates = copy.deepcopy(base.templates)
    outputs = templates["prod-hyperpod"]["Outputs"]
    gone = [key for key, each in outputs.items() if "ClusterArn" in each.get("Export", {}).get("Name", "")]
    for key in gone:
        del outputs[key]
    head = Synthesized(base.environment, templates, base.stack_dependencies, base.template_files, {})
    name = "prod-hyperpod:ExportsOutputFnGetAttClusterEB0386A7ClusterArn95040B96"
    assert sorted(dropped(base, head)) == [
        f"{name}, which prod-observability imports",
        f"{name}, which prod-platform imports",
    ]


def _data(name: str) -> Data:
    data: Data = yaml.safe_load((PROJECT / ENVIRONMENTS[name]).read_text(encoding="utf-8"))
    return data


def _synthesized(name: str, data: Data, folder: Path) -> Synthesized | None:
    """Return the edited environment; None where the file is refused as it is."""
    try:
        loaded = load_environment(PROJECT / ENVIRONMENTS[name], text=yaml.safe_dump(data, sort_keys=False))
    except EnvironmentFileError:
        return None
    return synthesize_unchecked(loaded.environment, project=PROJECT, outdir=folder / "out")


def _exports(template: Data) -> dict[str, Any]:
    outputs = template.get("Outputs", {}).values()
    return {each["Export"]["Name"]: _meant(each["Value"], template) for each in outputs if "Export" in each}


def _meant(value: Any, template: Data) -> Any:
    """Return a bucket's name or ARN for a reference to one that is named: CloudFormation compares what exports give."""
    attribute = value.get("Fn::GetAtt", ["", ""]) if isinstance(value, dict) else ["", ""]
    bucket = template["Resources"].get(attribute[0] or (value.get("Ref") if isinstance(value, dict) else ""), {})
    name = bucket.get("Properties", {}).get("BucketName") if bucket.get("Type") == "AWS::S3::Bucket" else None
    if name is None:
        return value
    first, *rest = name["Fn::Join"][1]
    if attribute[1] == "Arn":
        return {"Fn::Join": ["", ["arn:", {"Ref": "AWS::Partition"}, f":s3:::{first}", *rest]]}
    return name


def _imports(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["Fn::ImportValue"]} if isinstance(value.get("Fn::ImportValue"), str) else set[str]()
        return own.union(*(_imports(each) for each in value.values()))
    return set[str]().union(*(_imports(each) for each in value)) if isinstance(value, list) else set()


def _zones(data: Data) -> list[str]:
    network = data["network"]
    return list(network.get("availability_zones") or network["existing"]["node_subnet_ids"])


def _groups(data: Data) -> list[Data]:
    section = data["hyperpod"]
    return [*section.get("instance_groups", []), *section.get("restricted_instance_groups", [])]


def _remove(data: Data, *, kind: str, index: int) -> None:
    del data["hyperpod"][kind][index]


def _change(data: Data, *, kind: str, index: int, **values: object) -> None:
    data["hyperpod"][kind][index].update(values)


def _set(data: Data, *, path: str, value: object) -> None:
    *sections, field = path.split(".")
    _at(data, sections)[field] = value


def _empty(data: Data) -> None:
    for group in _groups(data):
        group["count"] = 0
        group.pop("min_count", None)


def _leave(data: Data, zone: str) -> None:
    section = data["hyperpod"]
    kept = [group for group in section["instance_groups"] if group["availability_zone_id"] != zone]
    section["instance_groups"] = kept
    names = {group["name"] for group in kept}
    for pool in section.get("karpenter_pools", []):
        pool["instance_groups"] = [name for name in pool["instance_groups"] if name in names]


def _take_zone(data: Data, zone: str) -> None:
    _leave(data, zone)
    data["network"].get("availability_zones", {}).pop(zone, None)


def _no_restricted(data: Data) -> None:
    for key in ("restricted_instance_groups", "restricted_environment", "restricted_dependencies"):
        data["hyperpod"].pop(key, None)


def _no_inference(data: Data) -> None:
    data.get("operators", {}).pop("inference", None)
    data.get("eks", {}).pop("oidc_provider", None)


def _no_karpenter(data: Data) -> None:
    section = data["hyperpod"]
    section.pop("karpenter_pools", None)
    section["autoscaling"] = "disabled"
    section["instance_groups"] = [group for group in section["instance_groups"] if group["count"]]


def _at(data: Data, sections: list[str]) -> Data:
    for each in sections:
        data = data.setdefault(each, {})
    return data


def _drop(data: Data, path: str) -> None:
    *sections, field = path.split(".")
    if sections[-1:] == ["lustre[*]"]:
        for system in data["storage"]["lustre"]:
            system.pop(field, None)
    else:
        _at(data, sections).pop(field)


def _holds(data: Data, path: str) -> bool:
    *sections, field = path.split(".")
    place: Any = data
    for each in sections:
        place = (place or {}).get(each.removesuffix("[*]"))
    return any(field in item for item in place) if isinstance(place, list) else field in (place or {})
