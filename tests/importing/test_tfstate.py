"""Terraform state: the cluster of AWS's module with the IDs of the surrounding resources."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from hyperpod_cdk.config import load_environment
from hyperpod_cdk.config.documents import DocumentError
from hyperpod_cdk.importing.draft import Known
from hyperpod_cdk.importing.model import Imported
from hyperpod_cdk.importing.run import Place, imported
from tests.support.assembly import PROJECT

ACCOUNT = "111122223333"
EKS_ARN = f"arn:aws:eks:us-west-2:{ACCOUNT}:cluster/sagemaker-hyperpod-eks-cluster"
ROLE_ARN = f"arn:aws:iam::{ACCOUNT}:role/sagemaker-hyperpod-execution"


def resource(kind: str, *attributes: dict[str, Any], module: str = "", mode: str = "managed") -> dict[str, Any]:
    instances = [{"index_key": index, "schema_version": 0, "attributes": each} for index, each in enumerate(attributes)]
    return {
        **({"module": f"module.{module}[0]"} if module else {}),
        "mode": mode,
        "type": kind,
        "name": "fsx" if kind.startswith("aws_fsx") else "main",
        "provider": f'provider["registry.terraform.io/hashicorp/{kind.partition("_")[0]}"]',
        "instances": instances,
    }


def group(name: str, **more: Any) -> dict[str, Any]:
    """Return a group as modules/hyperpod_cluster writes it, with what the provider fills in."""
    return {
        "capacity_requirements": None,
        "current_count": 2,
        "execution_role": ROLE_ARN,
        "image_id": None,
        "instance_count": 2,
        "instance_group_name": name,
        "instance_storage_configs": [{"ebs_volume_config": {"volume_size_in_gb": 500, "volume_kms_key_id": None}}],
        "instance_type": "ml.p5.48xlarge",
        "kubernetes_config": {"labels": {"example.com/a_b": "c"}, "taints": None},
        "life_cycle_config": {"on_create": "on_create.sh", "source_s3_uri": "s3://sagemaker-hyperpod-bucket"},
        "on_start_deep_health_checks": ["InstanceStress"],
        "override_vpc_config": {
            "security_group_ids": ["sg-0a1b2c3d4e5f67890"],
            "subnets": ["subnet-0a1b2c3d4e5f67890"],
        },
        "threads_per_core": 1,
        **more,
    }


CLUSTER = {
    "auto_scaling": None,
    "cluster_arn": f"arn:aws:sagemaker:us-west-2:{ACCOUNT}:cluster/0a1b2c3d4e5f",
    "cluster_name": "ml-cluster",
    "cluster_status": "InService",
    "creation_time": "2026-05-01T00:00:00Z",
    "failure_message": "",
    "id": f"arn:aws:sagemaker:us-west-2:{ACCOUNT}:cluster/0a1b2c3d4e5f",
    "instance_groups": [group("accelerated")],
    "node_provisioning_mode": "Continuous",
    "node_recovery": "Automatic",
    "orchestrator": {"eks": {"cluster_arn": EKS_ARN}},
    "restricted_instance_groups": None,
    "tags": [{"key": "SageMaker", "value": "true"}],
    "tiered_storage_config": None,
    "vpc_config": {"security_group_ids": ["sg-0a1b2c3d4e5f67890"], "subnets": ["subnet-0a1b2c3d4e5f67890"]},
}
STATE = {
    "version": 4,
    "terraform_version": "1.9.8",
    "serial": 42,
    "lineage": "0a1b2c3d-0000-0000-0000-000000000000",
    "outputs": {"password": {"value": "hunter2", "type": "string", "sensitive": True}},
    "resources": [
        resource("aws_region", {"id": "us-west-2"}, mode="data"),
        resource("aws_vpc", {"id": "vpc-0a1b2c3d4e5f67890", "cidr_block": "10.192.0.0/16"}, module="vpc"),
        resource(
            "aws_subnet",
            {
                "id": "subnet-0a1b2c3d4e5f67890",
                "availability_zone_id": "usw2-az2",
                "vpc_id": "vpc-0a1b2c3d4e5f67890",
            },
            module="private_subnet",
        ),
        resource(
            "aws_eks_cluster",
            {
                "name": "sagemaker-hyperpod-eks-cluster",
                "version": "1.33",
                "vpc_config": [{"cluster_security_group_id": "sg-0b2c3d4e5f678901a"}],
            },
            module="eks_cluster",
        ),
        resource("aws_eks_addon", {"addon_name": "vpc-cni"}, {"addon_name": "cert-manager"}, module="eks_cluster"),
        resource("awscc_sagemaker_cluster", CLUSTER, module="hyperpod_cluster"),
    ],
    "check_results": None,
}
LUSTRE = {
    "id": "fs-0a1b2c3d4e5f67890",
    "mount_name": "abcdefgh",
    "dns_name": "fs-0a1b2c3d4e5f67890.fsx.us-west-2.amazonaws.com",
    "storage_capacity": 1200,
    "subnet_ids": ["subnet-0a1b2c3d4e5f67890"],
}


def with_resources(*more: dict[str, Any], without: str = "") -> dict[str, Any]:
    found = copy.deepcopy(STATE)
    rows: Any = found["resources"]
    found["resources"] = [*(each for each in rows if each["type"] != without), *more]
    return found


def read(tmp_path: Path, state: object) -> tuple[Imported, str]:
    source = tmp_path / "terraform.tfstate"
    source.write_text(json.dumps(state, indent=2), encoding="utf-8")
    to = Place(target=tmp_path / "lab.yaml", root=PROJECT, schema=None)
    return imported(source, Known(name="lab"), to=to)


def test_the_module_s_state(tmp_path: Path) -> None:
    found, text = read(tmp_path, STATE)
    assert (
        text.split("\n\n", 1)[1]
        == """\
name: lab
account: "111122223333"
region: us-west-2

network:
  existing:
    vpc_id: vpc-0a1b2c3d4e5f67890
    node_subnet_ids:
      usw2-az2: subnet-0a1b2c3d4e5f67890
    security_group_id: sg-0a1b2c3d4e5f67890

eks:
  kubernetes_version: "1.33"
  existing:
    cluster_name: sagemaker-hyperpod-eks-cluster
    installed_addons: [cert-manager]
    security_group_id: sg-0b2c3d4e5f678901a

hyperpod:
  cluster_name: ml-cluster
  instance_groups:
  - name: accelerated
    instance_type: ml.p5.48xlarge
    count: 2
    availability_zone_id: usw2-az2
    capacity: on_demand
    deep_health_checks: [instance_stress]
    threads_per_core: 1
    labels:
      example.com/a_b: c
"""
    )
    assert (found.kind, found.passed) == ("terraform-state", True)
    assert "hunter2" not in found.model_dump_json() + text
    loaded = load_environment(tmp_path / "lab.yaml", text=text)
    assert loaded.environment.hyperpod.cluster_name == "ml-cluster"
    # each line is that of the state
    lines = (tmp_path / "terraform.tfstate").read_text(encoding="utf-8").splitlines()
    for note in found.notes:
        if note.source:
            number = int(note.source.partition(":")[2].partition(" ")[0])
            assert any(word in lines[number - 1] for word in ("source_s3_uri", "execution_role", "threads_per_core"))


def test_a_file_system_is_named_and_its_claim_asked_for(tmp_path: Path) -> None:
    found, text = read(tmp_path, with_resources(resource("aws_fsx_lustre_file_system", LUSTRE, module="fsx_lustre")))
    assert found.passed is False
    (missing,) = (each for each in found.notes if each.weight == "missing")
    assert (missing.path, missing.message) == (
        "storage.lustre[0].claim",
        (
            "which namespaces mount fs-0a1b2c3d4e5f67890; write claim: {namespaces: [...]}, or remove the file system,"
            " which stays as it is"
        ),
    )
    load_environment(tmp_path / "lab.yaml", text=f"{text}    claim: {{namespaces: [default]}}\n")


def test_file_systems_of_one_resource_have_names_of_their_own(tmp_path: Path) -> None:
    """By count or for_each there are several, and a name in Terraform may be none in the file."""
    other = {**LUSTRE, "id": "fs-0b1b2c3d4e5f67890"}
    state = with_resources(resource("aws_fsx_lustre_file_system", LUSTRE, other, module="fsx"))
    state["resources"][-1]["name"] = "FSx_main"
    found, text = read(tmp_path, state)
    assert [line.strip() for line in text.splitlines() if "- name: f" in line] == [
        "- name: fsx-main",
        "- name: fs-0b1b2c3d4e5f67890",
    ]
    assert [each.message for each in found.notes if each.weight == "refused"] == []


def test_what_stood_before_the_module(tmp_path: Path) -> None:
    """Subnets and an EKS cluster that the module only looked up are in the state as data."""
    state = with_resources(
        resource("aws_subnet", STATE["resources"][2]["instances"][0]["attributes"], mode="data"),  # type: ignore[index]
        without="aws_subnet",
    )
    found, text = read(tmp_path, state)
    assert found.passed is True
    assert "usw2-az2: subnet-0a1b2c3d4e5f67890" in text


def test_what_the_state_does_not_show_is_missing(tmp_path: Path) -> None:
    found, _ = read(tmp_path, with_resources(without="aws_eks_cluster"))
    missing = [each.path for each in found.notes if each.weight == "missing"]
    assert missing == ["eks.kubernetes_version", "eks.existing.security_group_id"]


def test_one_that_is_to_be_destroyed_does_not_count(tmp_path: Path) -> None:
    old = resource("awscc_sagemaker_cluster", {**CLUSTER, "cluster_name": "old"}, module="hyperpod_cluster")
    old["instances"][0]["deposed"] = "0a1b2c3d"
    _, text = read(tmp_path, with_resources(old))
    assert "cluster_name: ml-cluster" in text


HOW = "'terraform state pull' of a newer Terraform writes it, or import the file of variables"
BAD: dict[str, tuple[object, str]] = {
    "version 3": (
        {**STATE, "version": 3, "modules": []},
        f"2 version: must be 4, the version of state from Terraform 0.12 on, got 3; {HOW}",
    ),
    "version 5": (
        {**STATE, "version": 5},
        f"2 version: must be 4, the version of state from Terraform 0.12 on, got 5; {HOW}",
    ),
    "no version": (
        {key: value for key, value in STATE.items() if key != "version"},
        f"1 version: must be 4, the version of state from Terraform 0.12 on, got None; {HOW}",
    ),
    "encrypted": (
        {"serial": 1, "lineage": "a", "encrypted_data": "AAAA", "encryption_version": "v0"},
        "4 encrypted_data: is encrypted; give what 'tofu state pull' prints",
    ),
    "no cluster": (
        with_resources(without="awscc_sagemaker_cluster"),
        (
            "13 resources: must hold a HyperPod cluster (awscc_sagemaker_cluster), got none; name the state of"
            " AWS's module that created it"
        ),
    ),
    "two clusters": (
        with_resources(resource("awscc_sagemaker_cluster", {**CLUSTER, "cluster_name": "b"})),
        (
            "13 resources: must hold one HyperPod cluster (awscc_sagemaker_cluster), got b, ml-cluster; import each"
            " with --cluster"
        ),
    ),
    "on Slurm": (
        with_resources(
            resource("awscc_sagemaker_cluster", {**CLUSTER, "orchestrator": {"slurm": {}}}),
            without="awscc_sagemaker_cluster",
        ),
        (
            "169 Orchestrator: must be Eks, got Slurm; this library is for HyperPod on EKS, and a HyperPod cluster on"
            " EKS has Orchestrator.Eks.ClusterArn"
        ),
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_one_line_for_what_cannot_be_imported(name: str, tmp_path: Path) -> None:
    state, said = BAD[name]
    with pytest.raises(DocumentError) as refused:
        read(tmp_path, state)
    assert [f"{each.line} {each.path}: {each.message}" for each in refused.value.findings] == [said]
