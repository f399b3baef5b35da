"""A deployment while Karpenter has nodes: an update of anything else leaves as many as there are."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from rich.console import Console

from hyperpod_cdk.config import load_environment
from hyperpod_cdk_rehearsal.account_files import satisfying
from hyperpod_cdk_rehearsal.cdk_cli import CdkCli
from hyperpod_cdk_rehearsal.driver import _Rehearsal
from hyperpod_cdk_rehearsal.process import EmbeddedAws
from hyperpod_cdk_rehearsal.report import Report
from tests.support.assembly import ENVIRONMENTS, PROJECT, shipped
from tests.support.embedded import embedded
from tests.support.in_process_cdk import Aws, InProcessCdk


@pytest.mark.examples
def test_an_update_keeps_the_nodes_that_karpenter_has_made(assemblies: Path, tmp_path: Path) -> None:
    synthesized, file = shipped(assemblies, "spot"), PROJECT / ENVIRONMENTS["spot"]
    environment = synthesized.environment
    document = satisfying(environment)
    document["quotas"] = {**document["quotas"], "sagemaker": _plenty(document["quotas"]["sagemaker"])}
    with embedded(document, region=environment.region, account=environment.account, is_hurried=True) as there:
        aws = Aws(there, tmp_path / "log")
        cdk = InProcessCdk(aws)
        run = _Rehearsal(
            loaded=load_environment(file),
            aws=cast("EmbeddedAws", aws),
            cdk=cast("CdkCli", cdk),
            scratch=tmp_path,
            console=Console(quiet=True),
            report=Report(environment="spot", file=str(file), account=environment.account, region=environment.region),
            stacks=list(synthesized.templates),
        )
        run._deploy(assemblies / "spot")
        aws.client("sagemaker").batch_add_cluster_nodes(
            ClusterName="spot", NodesToAdd=[{"InstanceGroupName": "on-demand", "IncrementTargetCountBy": 3}]
        )
        assert _counts(aws) == {"on-demand": 3, "spot-1": 0, "spot-2": 0, "system": 2}

        run._deploy(assemblies / "spot")
        assert cdk.changes == {}

        edited = run._edited(file, "update", lambda data: data["hyperpod"]["instance_groups"][0].update(count=3))
        cdk.synth(edited, tmp_path / "update")
        run._deploy(tmp_path / "update")
        assert _counts(aws) == {"on-demand": 3, "spot-1": 0, "spot-2": 0, "system": 3}

        cdk.synth(run._edited(file, "off", _without_karpenter), tmp_path / "off")
        run._deploy(tmp_path / "off")
        stands = aws.client("sagemaker").describe_cluster(ClusterName="spot")
        assert stands["AutoScaling"]["Mode"] == "Disable"
        assert _counts(aws) == {"on-demand": 3, "system": 2}

        run._deploy(assemblies / "spot")
        assert aws.client("sagemaker").describe_cluster(ClusterName="spot")["AutoScaling"]["Mode"] == "Enable"


def _without_karpenter(data: Any) -> None:
    section = data["hyperpod"]
    section["autoscaling"] = "disabled"
    del section["karpenter_pools"]
    section["instance_groups"] = [each for each in section["instance_groups"] if "spot" not in each["name"]]
    section["instance_groups"][-1]["count"] = 3


def _counts(aws: Aws) -> dict[str, int]:
    groups = aws.client("sagemaker").describe_cluster(ClusterName="spot")["InstanceGroups"]
    return {group["InstanceGroupName"]: group["TargetCount"] for group in groups}


def _plenty(quotas: dict[str, Any]) -> dict[str, Any]:
    on_demand = {"ml.g5.12xlarge for cluster usage": 100}
    return {**{name: max(value or 0, 100) for name, value in quotas.items()}, **on_demand}
