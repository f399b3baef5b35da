"""What AWS refuses, or leaves out of its answers, makes nothing well: every call and member, for each command."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hyperpod_cdk import cli
from hyperpod_cdk._cli.review import Access
from tests.living import test_status
from tests.living.test_nodes import RUNNING, script
from tests.living.test_status import DENIED, FILE, PLAN, of_today, reaching
from tests.support.scripted_aws import members, without

Script = dict[str, Any]

WITH_PLAN = (
    FILE
    + f"""\
    - name: h100
      instance_type: ml.p5.48xlarge
      count: 4
      availability_zone_id: use1-az5
      capacity: training_plan
      training_plan_arn: {PLAN}
"""
)

COMMANDS: Mapping[str, tuple[str, ...]] = {
    "status": ("status", "dev"),
    "fleet status": ("fleet", "status", "dev"),
    "node list": ("node", "list", "dev"),
    "node describe": ("node", "describe", "dev", RUNNING),
}

SAID_BY_ABSENCE: Mapping[str, str] = {
    "NodeProvisioningMode": "HyperPod has no events of a cluster without continuous provisioning",
    "Message": "of the status of a node that runs",
    "EventLevel": "an event of no known level is shown",
    "SoftwareUpdateStatus": "of a group whose software was never updated",
}
"""Members whose absence says something in AWS's answers, and what."""


@dataclass
class Commands:
    """Runs the commands on an environment dev, and holds their exit codes to what they say as JSON."""

    folder: Path

    def passed(self, command: str, aws: Script) -> bool | None:
        """Return "passed" of a command, None if it could not look at all."""
        access = Access(open=lambda _region, _account: reaching(aws))
        words = [*COMMANDS[command], "--project", str(self.folder), "--format", "json"]
        done = CliRunner().invoke(cli.app, words, prog_name="hyperpod-cdk", obj=access, catch_exceptions=False)
        if done.exit_code == 2 and not done.stdout:
            assert done.stderr.count("\n") == 1
            return None
        found = json.loads(done.stdout)
        passed: bool | None = found["passed"]
        assert done.exit_code == (passed is False), (command, done.stdout)
        skipped = [
            *found.get("skipped", ()),
            *(each for row in found.get("environments", ()) for each in row["skipped"]),
        ]
        assert not (passed is True and skipped), (command, skipped)
        return passed


@pytest.fixture
def commands(tmp_path: Path) -> Commands:
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments" / "dev.yaml").write_text(WITH_PLAN, encoding="utf-8")
    return Commands(tmp_path)


def well() -> Script:
    """Return an account in which each command finds that all is well."""
    found = {**script(), **of_today()}
    for node in found["sagemaker:ListClusterNodes"]["ClusterNodeSummaries"]:
        node["InstanceStatus"] = {"Status": "Running"}
    (node,) = [
        each for each in found["sagemaker:ListClusterNodes"]["ClusterNodeSummaries"] if each["InstanceId"] == RUNNING
    ]
    found["sagemaker:DescribeClusterNode"] = {"NodeDetails": {**node, "NodeLogicalId": "system-1"}}
    found["eks:DescribeCluster"] = DENIED
    # the file has no file system and no team
    found["fsx:DescribeFileSystems"] = {"FileSystems": []}
    return found


WRONG: Mapping[str, Callable[[Script], object]] = {
    "a node fails": lambda aws: [
        each.update(InstanceStatus={"Status": "Failure", "Message": "no"})
        for each in (
            aws["sagemaker:ListClusterNodes"]["ClusterNodeSummaries"][-1],
            aws["sagemaker:DescribeClusterNode"]["NodeDetails"],
        )
    ],
    "a state that AWS adds": lambda aws: [
        each.update(InstanceStatus={"Status": "Quarantined"})
        for each in (
            aws["sagemaker:ListClusterNodes"]["ClusterNodeSummaries"][-1],
            aws["sagemaker:DescribeClusterNode"]["NodeDetails"],
        )
    ],
    "the cluster fails": lambda aws: aws["sagemaker:DescribeCluster"].update(ClusterStatus="Failed"),
    "a group is degraded": lambda aws: test_status._first_group(aws).update(Status="Degraded"),
    "a plan has ended": lambda aws: aws["sagemaker:DescribeTrainingPlan"].update(Status="Expired"),
    "an alarm": lambda aws: aws["cloudwatch:DescribeAlarms"]["MetricAlarms"][0].update(StateValue="ALARM"),
    "an alarm without data": lambda aws: aws["cloudwatch:DescribeAlarms"]["MetricAlarms"][0].update(
        StateValue="INSUFFICIENT_DATA", StateTransitionedTimestamp=test_status.NOW
    ),
    "no add-on": lambda aws: aws["eks:ListAddons"].update(addons=["coredns"]),
}


def test_what_is_refused_leaves_nothing_well(commands: Commands) -> None:
    wrong = []
    for command in COMMANDS:
        assert commands.passed(command, well()) is True, command
        for call in well():
            if ":" not in call or call == "sts:GetCallerIdentity" or well()[call] is DENIED:
                continue
            asked: list[str] = []

            def refused(_: object, asked: list[str] = asked) -> Any:
                asked.append("")
                return DENIED

            is_well = commands.passed(command, {**well(), call: refused}) is True
            wrong += [f"{command} without {call}"] if is_well and asked else []
    assert not wrong, "\n".join(wrong)


ALWAYS = "a plan has ended"
"""What `make test` looks at; `make examples` looks at all."""


@pytest.mark.parametrize(
    "what", [pytest.param(each, marks=[pytest.mark.examples] * (each != ALWAYS)) for each in WRONG]
)
def test_what_is_left_out_makes_nothing_well(what: str, commands: Commands) -> None:
    wrong = []
    for command in COMMANDS:
        aws = well()
        WRONG[what](aws)
        if commands.passed(command, aws) is True:
            # it does not look at this
            continue
        for call, answer in aws.items():
            for place in members(answer) if isinstance(answer, dict) and ":" in call else ():
                if place[-1] in SAID_BY_ABSENCE or call == "sts:GetCallerIdentity":
                    continue
                if commands.passed(command, {**aws, call: without(answer, place)}) is True:
                    wrong.append(f"{command} without {call} {place}")
    assert not wrong, "\n".join(wrong)
