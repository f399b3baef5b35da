"""Whatever a source holds, an import refuses it in words or writes what was found: it never ends in a traceback."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from hyperpod_cdk.config.documents import DocumentError
from hyperpod_cdk.importing.draft import Known
from hyperpod_cdk.importing.run import Place, imported, imported_living
from tests.importing import standing_cluster as there
from tests.support.assembly import PROJECT

_SOURCES = yaml.load((PROJECT / "tests/cli/import_sources.yaml").read_text("utf-8"), yaml.CSafeLoader)
_CLUSTER = {
    "ClusterName": "ml",
    "Orchestrator": {"Eks": {"ClusterArn": "arn:aws:eks:us-east-1:111122223333:cluster/platform"}},
    "VpcConfig": {"SecurityGroupIds": ["sg-0a1b2c3d4e5f67890"], "Subnets": ["subnet-0a1b2c3d4e5f67890"]},
    "NodeRecovery": "Automatic",
    "NodeProvisioningMode": "Continuous",
    "TieredStorageConfig": {"Mode": "Enable", "InstanceMemoryAllocationPercentage": 20},
    "AutoScaling": {"Mode": "Enable", "AutoScalerType": "Karpenter"},
    "Tags": [{"Key": "a", "Value": "b"}],
    "InstanceGroups": [
        {
            "InstanceGroupName": "a",
            "InstanceType": "ml.p5.48xlarge",
            "InstanceCount": 2,
            "LifeCycleConfig": {"SourceS3Uri": "s3://sagemaker-x", "OnCreate": "on_create.sh"},
            "ExecutionRole": "arn:aws:iam::111122223333:role/nodes",
            "InstanceStorageConfigs": [{"EbsVolumeConfig": {"VolumeSizeInGB": 500, "RootVolume": False}}],
            "OnStartDeepHealthChecks": ["InstanceStress"],
            "OverrideVpcConfig": {"SecurityGroupIds": ["sg-1"], "Subnets": ["subnet-1"]},
            "KubernetesConfig": {"Labels": {"a": "b"}, "Taints": [{"Key": "a", "Effect": "NoSchedule"}]},
            "CapacityRequirements": {"Spot": {}},
            "NetworkInterface": {"InterfaceType": "efa"},
            "ScheduledUpdateConfig": {
                "ScheduleExpression": "cron(0 3 ? * SUN *)",
                "DeploymentConfig": {
                    "RollingUpdatePolicy": {"MaximumBatchSize": {"Type": "INSTANCE_COUNT", "Value": 1}},
                    "AutoRollbackConfiguration": [{"AlarmName": "a"}],
                },
            },
        }
    ],
    "RestrictedInstanceGroups": [
        {
            "InstanceGroupName": "nova",
            "InstanceType": "ml.p5.48xlarge",
            "InstanceCount": 2,
            "EnvironmentConfig": {"FSxLustreConfig": {"SizeInGiB": 9600, "PerUnitStorageThroughput": 250}},
        }
    ],
}
_PAGES = [_CLUSTER, *(json.loads(row["text"]) for row in _SOURCES.values() if row["file"].endswith(".json"))]
_VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0.5,
    10**30,
    "",
    "x",
    "off",
    "a: b\n#",
    "\x00\u2028",
    "é",
    [],
    [1],
    [None],
    {},
    {"": 1},
)


def _places(value: Any, steps: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if steps:
        yield steps
    for key, each in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from _places(each, (*steps, key))


@settings(
    deadline=None,
    database=None,
    max_examples=150,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_no_source_ends_in_a_traceback(data: st.DataObject, tmp_path: Path) -> None:
    page = copy.deepcopy(data.draw(st.sampled_from(_PAGES)))
    for _ in range(data.draw(st.integers(1, 3))):
        *most, last = data.draw(st.sampled_from(list(_places(page)) or [("x",)]))
        there: Any = page
        for step in most:
            there = there[step]
        there[last] = copy.deepcopy(data.draw(st.sampled_from(_VALUES)))
    source = tmp_path / "source.json"
    source.write_text(json.dumps(page), encoding="utf-8")
    with suppress(DocumentError):
        found, text = imported(
            source, Known(name="lab"), to=Place(target=tmp_path / "lab.yaml", root=PROJECT, schema=None)
        )
        assert all("\n" not in each.render() for each in found.notes)
        assert yaml.safe_load(text)["name"] == "lab"


_LOST = object()
_OF_KIND: dict[type, tuple[Any, ...]] = {
    dict: (None, {}, _LOST),
    list: ([None], None, _LOST),
    str: (None, "x", _LOST),
}
_CALLS = sorted(set(there.answers()) - {"sts:GetCallerIdentity"})
_FEW = ("ec2:DescribeSubnets", "fsx:DescribeFileSystems", "sagemaker:DescribeCluster", "sagemaker:ListTags")
"""Those of `make test`: of every service that tells much, one; `make examples` takes the others."""


def _halves(whole: Mapping[str, Any], turn: int) -> Iterator[dict[str, Any]]:
    """Yield an answer with each of its places lost, empty or another, as an answer of AWS may come: each in one way."""
    for number, (*most, last) in enumerate(_places(whole)):
        page: Any = copy.deepcopy(dict(whole))
        at = page
        for step in most:
            at = at[step]
        ways = _OF_KIND.get(type(at[last]), (None, 10**30, _LOST))
        value = ways[(number + turn) % len(ways)]
        if value is _LOST:
            del at[last]
        else:
            at[last] = copy.deepcopy(value)
        yield page


@pytest.mark.parametrize(
    "call", [call if call in _FEW else pytest.param(call, marks=pytest.mark.examples) for call in _CALLS]
)
def test_no_answer_of_aws_ends_in_a_traceback(call: str, tmp_path: Path) -> None:
    """A cluster that stands, of which AWS tells half: the file lacks it, and what was not read is no pass."""
    whole: Any = there.answers()[call]
    if callable(whole):
        name = "cert-manager" if call == "eks:DescribeAddon" else "main"
        asked = {"addonName": name, "StackName": name, "InstanceGroupNameContains": "h100", "NodeId": "i-1"}
        whole = whole({**asked, "Filters": [{"Name": "subnet-id", "Values": list(there.SUBNETS)}]})
    to = Place(target=tmp_path / "lab.yaml", root=PROJECT, schema=None)
    for number, half in enumerate(_halves(whole, len(call))):
        aws, _ = there.asked(**{call.replace(":", "_"): half})
        with suppress(DocumentError):
            found, text = imported_living(aws, "ml-cluster", Known(name="lab", is_takeover=number % 2 == 0), to=to)
            assert all("\n" not in each.render() for each in found.notes)
            assert yaml.safe_load(text)["name"] == "lab"
            assert found.passed is not True or not [each for each in found.notes if each.weight == "skipped"]
