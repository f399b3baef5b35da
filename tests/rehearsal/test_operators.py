"""Operators that are disabled in a deployed environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from hyperpod_cdk.config import load_environment
from hyperpod_cdk_rehearsal.account_files import satisfying
from tests.support.assembly import PROJECT
from tests.support.embedded import embedded
from tests.support.in_process_cdk import Aws, InProcessCdk

OFF: dict[str, Any] = {
    "inference": {"enabled": False},
    "training": {"enabled": True},
    "observability": {"enabled": False},
    "spaces": {"enabled": False},
}
CHART = ("--parameters", "serving-foundation:HyperPodChart=rehearsal")
MADE_FOR_THEM = {
    "amazon-sagemaker-hyperpod-inference",
    "amazon-sagemaker-hyperpod-observability",
    "amazon-sagemaker-spaces",
    "aws-ebs-csi-driver",
    "aws-mountpoint-s3-csi-driver",
    "metrics-server",
}


@pytest.mark.examples
def test_switched_off_in_one_deployment(tmp_path: Path) -> None:
    document = yaml.safe_load((PROJECT / "examples/operators.yaml").read_text(encoding="utf-8"))
    all_on, file = document["operators"], tmp_path / "serving.yaml"
    deployed: list[set[str]] = []
    changes: list[dict[str, list[str]]] = []

    environment = load_environment(PROJECT / "examples/operators.yaml").environment
    account = satisfying(environment)
    with embedded(account, region=environment.region, account=environment.account, is_hurried=True) as there:
        aws = Aws(there, tmp_path / "log")
        cdk = InProcessCdk(aws)
        for index, operators in enumerate((all_on, OFF)):
            file.write_text(yaml.safe_dump({**document, "operators": operators}), encoding="utf-8")
            assembly = tmp_path / f"assembly-{index}"
            cdk.synth(file, assembly)
            cdk.run(["deploy", "--app", str(assembly), *CHART])
            changes.append(cdk.changes)
            deployed.append(set(aws.client("eks").list_addons(clusterName="serving-eks")["addons"]))

    assert deployed[0] - deployed[1] == MADE_FOR_THEM
    # an operator that leaves takes nothing from the stacks before: those would still be imported from
    assert set(changes[1]) == {"serving-platform", "serving-observability"}
    kinds = {row.partition(" ")[0] for rows in changes[1].values() for row in rows}
    assert kinds == {"Remove"}
