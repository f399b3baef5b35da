"""Prod in an account whose nodes come late, fail, or stay away: add-ons wait for one, or it is told why none came."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest

from hyperpod_cdk_rehearsal.account_files import satisfying
from hyperpod_cdk_rehearsal.cdk_cli import CdkFailedError
from hyperpod_cdk_rehearsal.driver import RehearsalError
from tests.rehearsal.test_examples import Life, living
from tests.support.assembly import shipped
from tests.support.embedded import SLOW_SCALE

pytestmark = pytest.mark.examples

SLOW_SECONDS = 100
"""Two seconds with the slow clock: longer than it takes from the cluster to the wait."""


def nodes_reported(life: Life) -> str:
    """Return what the platform stack's output says of the nodes."""
    (stack,) = life.run.aws.cloudformation.describe_stacks(StackName="prod-platform")["Stacks"]
    outputs = {each.get("OutputKey"): each.get("OutputValue", "") for each in stack.get("Outputs", [])}
    return outputs["Nodes"]


def node_states(life: Life) -> list[str]:
    nodes = life.aws.client("sagemaker").list_cluster_nodes(ClusterName="prod")["ClusterNodeSummaries"]
    return [each["InstanceStatus"]["Status"] for each in nodes]


def account(assemblies: Path, **nodes: Any) -> dict[str, Any]:
    return {**satisfying(shipped(assemblies, "prod").environment), "nodes": nodes}


def test_slow_nodes_are_waited_for_and_missing_ones_are_reported(assemblies: Path, tmp_path: Path) -> None:
    document = account(assemblies, system={"delay_seconds": SLOW_SECONDS}, h100={"never": "all"})
    with living(shipped(assemblies, "prod"), document, tmp_path, clock_scale=SLOW_SCALE) as life:
        life.deploy(assemblies / "prod")
        assert re.fullmatch(
            r"h100: 0 of 2 Running \(2 Pending\); system: [12] of 2 Running( \(1 Pending\))?", nodes_reported(life)
        )
        addons = life.aws.client("eks").list_addons(clusterName="prod-eks")["addons"]
        states = {
            name: life.aws.client("eks").describe_addon(clusterName="prod-eks", addonName=name)["addon"]["status"]
            for name in addons
        }
        assert set(states.values()) == {"ACTIVE"}, states
        inventory = life.run._settled_inventory()
        assert inventory.missing_nodes == ["h100 0 of 2"]
        life.run.report.inventory = inventory
        (missing,) = life.run._missing_nodes()
        assert (missing.group, missing.count, missing.is_failure) == ("h100", 2, False)
        assert missing.reason.startswith("We currently do not have sufficient capacity")
        life.run._expect_counts(life.run.environment, inventory)


def test_nodes_of_which_the_account_file_states_nothing_are_failures(assemblies: Path, tmp_path: Path) -> None:
    document = {**account(assemblies), "capacity": {"ml.m5.2xlarge": ["use1-az5"]}}
    with living(shipped(assemblies, "prod"), document, tmp_path) as life:
        life.deploy(assemblies / "prod")
        life.run.report.inventory = life.run._settled_inventory()
        life.run.report.missing_nodes = life.run._missing_nodes()
        with pytest.raises(RehearsalError) as failed:
            life.run._expect_nodes()
    assert str(failed.value) == (
        "instance group system: 2 nodes not Running: We currently do not have sufficient capacity to launch new "
        "ml.m5.2xlarge instances. Please try again. Rehearsal: no subnet of instance group 'system' is in a zone where "
        "the account file gives it capacity."
    )


def test_without_a_node_the_platform_says_why_and_the_next_deployment_succeeds(
    assemblies: Path, tmp_path: Path
) -> None:
    message = "on_create.sh: 40_load_modules.sh ended with 1"
    system = {"failing": "all", "failures": 8, "message": message}
    document = account(assemblies, system=system, h100={"never": "all"})
    with living(shipped(assemblies, "prod"), document, tmp_path, clock_scale=SLOW_SCALE) as life:
        with pytest.raises(CdkFailedError):
            life.deploy(assemblies / "prod")
        told = re.sub(r"i-[0-9a-f]{17}", "<instance>", life.run.explain(RuntimeError()))
        assert "CREATE_FAILED        | Custom::HyperPodNodesReady | prod-platform/NodesReady" in told
        assert (
            "Message returned: 0 of 1 needed node Running in the instance groups system, h100, HyperPod tried again and"
            " again, and each instance failed alike; add-ons have nowhere to run.\n"
            f"system <instance>: {message} (lifecycle script Failed; log group /aws/sagemaker/Clusters/prod/"
        ) in told
        assert ", stream LifecycleConfig/system/<instance>).\n" in told
        assert "We currently do not have sufficient capacity to launch new ml.p5.48xlarge instances." in told
        assert "Read that log and correct what it says, then deploy again: the cluster stays as it is" in told
        assert "AWS::EKS::Addon" not in told
        cluster = life.aws.client("sagemaker").describe_cluster(ClusterName="prod")
        assert cluster["ClusterStatus"] == "InService"

        # every attempt fails eight times, and is made when somebody asks
        while not any(status == "Running" for status in node_states(life)):
            time.sleep(0.05)
        life.deploy(assemblies / "prod")
        assert "system: " in nodes_reported(life)
        assert life.aws.client("sagemaker").describe_cluster(ClusterName="prod")["ClusterArn"] == cluster["ClusterArn"]
