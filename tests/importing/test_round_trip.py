"""What is synthesized comes back: the cluster's request, imported, has the groups of the file that it was made from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, seed, settings

from hyperpod_cdk.catalog import kubernetes
from hyperpod_cdk.config import Environment, load_environment
from hyperpod_cdk.config.restricted_group import AnyGroup
from hyperpod_cdk.importing.draft import Known
from hyperpod_cdk.importing.run import Place, imported
from tests.support import legal
from tests.support.assembly import (
    ENVIRONMENTS,
    PROJECT,
    Synthesized,
    few_and_others,
    shipped,
    synthesize_unchecked,
)

_FEW = 3
_MANY = 25
_SETTINGS = settings(
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
_NOT_IN_A_REQUEST = ("input_buckets", "output_buckets", "kms_key_arns", "reward_functions", "existing")
"""Of restricted groups: it stands in the policies of their roles, and each import says so. Of others what goes with an
adopted cluster: a file that makes another one has no use for it.
"""


class Request:
    """The cluster of a template as CreateCluster gets it: what refers to something has an ID of its own."""

    def __init__(self, made: Synthesized) -> None:
        self.made = made
        self.zones: dict[str, str] = {}
        (node,) = made.of_type("AWS::SageMaker::Cluster")
        self.stack = node[0]
        properties = made.resource(node)["Properties"]
        self.body: Any = {key: self._plain(value, key) for key, value in properties.items()}

    def _plain(self, value: Any, key: str) -> Any:
        if isinstance(value, list):
            return [self._plain(each, key) for each in value]
        if not isinstance(value, dict):
            if key == "Subnets":
                self.zones[value] = self._zone_of(value)
            return value
        if len(value) == 1 and next(iter(value)) in ("Ref", "Fn::GetAtt", "Fn::ImportValue", "Fn::Join", "Fn::Sub"):
            return self._id(value, key)
        return {name: self._plain(each, name) for name, each in value.items()}

    def _id(self, value: Mapping[str, Any], key: str) -> Any:
        environment = self.made.environment
        arn = f"arn:aws:{{}}:{environment.region}:{environment.account}:{{}}"
        if key == "Subnets":
            resource = self._target(value)
            zone = resource["Properties"]["AvailabilityZoneId"]
            made = f"subnet-{abs(hash(zone)) % 16**8:08x}"
            self.zones[made] = zone
            return made
        return {
            "InstanceCount": 0,
            "SecurityGroupIds": f"sg-{abs(hash(json.dumps(value))) % 16**8:08x}",
            "ExecutionRole": f"arn:aws:iam::{environment.account}:role/nodes",
            "ClusterRole": f"arn:aws:iam::{environment.account}:role/karpenter",
            "ClusterArn": arn.format("eks", f"cluster/{environment.eks_cluster_name}"),
            "SourceS3Uri": "s3://sagemaker-scripts/prod",
            "VolumeKmsKeyId": arn.format("kms", "key/1234abcd-12ab-34cd-56ef-1234567890ab"),
        }[key]

    def _target(self, value: Mapping[str, Any]) -> Any:
        template = self.made.templates[self.stack]
        if "Fn::ImportValue" in value:
            name = value["Fn::ImportValue"]
            template, value = next(
                (each, output["Value"])
                for each in self.made.templates.values()
                for output in each.get("Outputs", {}).values()
                if output.get("Export", {}).get("Name") == name
            )
        return template["Resources"][value["Ref"]]

    def _zone_of(self, subnet_id: str) -> str:
        existing = self.made.environment.network.existing
        assert existing is not None
        # the cluster may have subnets in which no group is, of whose zones the file says nothing
        zones = {each: zone for zone, each in existing.node_subnet_ids.items()}
        return zones.get(subnet_id, next(iter(existing.node_subnet_ids)))


def says(environment: Environment, group: AnyGroup) -> dict[str, Any]:
    """A group with its defaults filled in."""
    found = group.model_dump(mode="json", exclude={"on_create", "on_init_complete", *_NOT_IN_A_REQUEST})
    found |= {"capacity": group.resolved_capacity, "threads_per_core": environment.threads_per_core(group)}
    return found | {"script": getattr(group, "script", None)}


def settings_of(environment: Environment) -> dict[str, Any]:
    section = environment.hyperpod
    tiered = section.tiered_checkpointing
    return {
        "name": environment.hyperpod_cluster_name,
        "home": (environment.account, environment.region),
        "eks": environment.eks_cluster_name,
        "tags": environment.tags,
        "recovery": section.node_recovery,
        "provisioning": section.provisioning,
        "autoscaling": section.autoscaling,
        "tiered": None if tiered is None else (tiered.enabled, tiered.enabled and tiered.memory_percent),
        "restricted_environment": section.restricted_environment,
        "has_volume_key": environment.encryption.node_volumes is not None,
    }


def comes_back(made: Synthesized, folder: Path, stated: Mapping[str, Any]) -> None:
    """Import the request of a template and compare; ``stated`` are the types that the file itself describes."""
    request, before = Request(made), made.environment
    source = folder / "cluster.json"
    source.write_text(json.dumps(request.body, indent=2), encoding="utf-8")
    known = Known(
        name="back",
        vpc_id="vpc-0a1b2c3d4e5f67890",
        eks_security_group_id=request.body["VpcConfig"]["SecurityGroupIds"][-1],
        kubernetes_version=before.eks.kubernetes_version,
        subnet_zones=request.zones,
    )
    report, text = imported(source, known, to=Place(target=folder / "back.yaml", root=PROJECT, schema=None))
    if before.hyperpod.restricted_instance_groups:
        # that the dependencies were installed is nobody's to guess
        assert [each.path for each in report.notes if each.weight == "missing"] == ["hyperpod.restricted_dependencies"]
        text = text.replace("\nhyperpod:\n", "\nhyperpod:\n  restricted_dependencies: installed\n")
    if stated:
        text += json.dumps({"instance_types": stated})[1:-1] + "\n"
    after = load_environment(folder / "back.yaml", text=text, today=kubernetes.AS_OF, with_record=False).environment
    groups = {
        name: [says(each, group) for group in each.hyperpod.all_groups]
        for name, each in (("before", before), ("after", after))
    }
    # the order of groups says nothing; a template has the restricted ones by name
    assert sorted(groups["after"], key=_name) == sorted(groups["before"], key=_name)
    assert settings_of(after) == settings_of(before)
    unknown = [each for each in report.notes if "unknown here" in each.message]
    assert unknown == []


def _name(group: Mapping[str, Any]) -> str:
    return str(group["name"])


@pytest.mark.parametrize("name", few_and_others())
def test_what_ships(name: str, assemblies: Path, tmp_path: Path) -> None:
    loaded = load_environment(PROJECT / ENVIRONMENTS[name])
    written = loaded.as_written
    assert isinstance(written, dict)
    comes_back(shipped(assemblies, name), tmp_path, written.get("instance_types", {}))


def test_whatever_is_accepted(tmp_path: Path) -> None:
    drawn(7, _FEW, tmp_path)


@pytest.mark.examples
@pytest.mark.timeout(1800)
def test_more_of_what_is_accepted(tmp_path: Path) -> None:
    drawn(8, _MANY, tmp_path)


def drawn(number: int, count: int, folder: Path) -> None:
    @seed(number)
    @settings(_SETTINGS, max_examples=count)
    @given(file=legal.files())
    def run(file: legal.File) -> None:
        loaded = legal.accepted(file)
        assert loaded is not None
        # such a group may be anywhere, and an import that makes another cluster asks for its zone
        assume(not any(each.is_in_cluster_network for each in loaded.environment.hyperpod.instance_groups))
        made = synthesize_unchecked(loaded.environment, project=PROJECT)
        comes_back(made, folder, file.get("instance_types", {}))

    run()
