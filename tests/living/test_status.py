"""What the nodes do: counted by group, with why they fail; what is not answered is skipped; two thousand nodes."""

from __future__ import annotations

import copy
import dataclasses
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel
from typer.testing import CliRunner

from hyperpod_cdk import cli
from hyperpod_cdk._cli import living
from hyperpod_cdk._cli.living import Watching, wanted_of
from hyperpod_cdk._cli.review import Access
from hyperpod_cdk.catalog import quotas
from hyperpod_cdk.checks.answers import AwsAccessError, NotAnswered, Refused
from hyperpod_cdk.checks.aws import LiveAws
from hyperpod_cdk.checks.model import REGISTER
from hyperpod_cdk.checks.policy import VERBS, actions_of
from hyperpod_cdk.checks.run import OF_OTHERS
from hyperpod_cdk.config import Environment, load_environment
from hyperpod_cdk.config.wanted_addons import EVERYWHERE
from hyperpod_cdk.handlers.quota_gate.comparison import Requirement
from hyperpod_cdk.handlers.quota_gate.reading import Own
from hyperpod_cdk.living.model import Event, FileSystem, Plan, Reason, Status
from hyperpod_cdk.living.pages import status_text
from hyperpod_cdk.living.status import Wanted, status
from tests.support.answers import answered
from tests.support.assembly import ENVIRONMENTS, PROJECT, shipped
from tests.support.scripted_aws import WHO, Fails, Reaching, ScriptedSession, a_role, workloads
from tests.support.tables import row_by_row

NOW = datetime(2026, 11, 23, 3, 0, tzinfo=UTC)
ARN = "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefabcdef"
PLAN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/h100-april"
JOINED = "fs-0123456789abcdef9"
WANTED = Wanted(
    environment="dev",
    cluster="dev",
    counts={"h100": 4, "system": 2},
    made=frozenset({"dev-scratch"}),
    joined=frozenset(),
    eks="dev-eks",
    addons=frozenset({"coredns", "kube-proxy"}),
    alarms=frozenset({"dev-hyperpod-events", "dev-hyperpod-nodes-missing-h100"}),
    teams=frozenset({"research"}),
    is_governed=True,
    has_operators=True,
    quotas=(
        Requirement(
            key="cluster:ml.p5.48xlarge",
            service="sagemaker",
            name="ml.p5.48xlarge for cluster usage",
            code="L-8762A75F",
            default=0,
            needed=4,
            usage="hyperpod_instances:ml.p5.48xlarge",
        ),
    ),
)
SCRIPT = "Lifecycle scripts did not run successfully"
DENIED = Fails("AccessDeniedException", "no", 403)


def _node(group: str, number: int, state: str, message: str = "") -> dict[str, Any]:
    return {
        "InstanceGroupName": group,
        "InstanceId": f"i-{number:017x}",
        "InstanceType": "ml.p5.48xlarge",
        "LaunchTime": NOW,
        "InstanceStatus": {"Status": state, "Message": message},
    }


def _group(name: str, target: int, **more: Any) -> dict[str, Any]:
    found = {"InstanceGroupName": name, "InstanceType": "ml.p5.48xlarge", "TargetCount": target, "CurrentCount": target}
    return {**found, "Status": "InService", **more}


def answers() -> dict[str, Any]:
    """Return a cluster in which one node fails, one is checked and one is made."""
    return {
        "sts:GetCallerIdentity": WHO,
        "sagemaker:DescribeCluster": {
            "ClusterArn": ARN,
            "ClusterName": "dev",
            "ClusterStatus": "InService",
            "NodeProvisioningMode": "Continuous",
            "Orchestrator": {"Eks": {"ClusterArn": "arn:aws:eks:us-east-1:111122223333:cluster/dev-eks"}},
            "InstanceGroups": [_group("h100", 4, TrainingPlanArn=PLAN), _group("system", 2)],
        },
        "sagemaker:ListClusterNodes": {
            "ClusterNodeSummaries": [
                _node("h100", 1, "Running"),
                _node("h100", 2, "DeepHealthCheckInProgress"),
                _node("h100", 3, "Failure", SCRIPT),
                _node("h100", 4, "Pending"),
                _node("system", 5, "Running"),
                _node("system", 6, "Running"),
            ]
        },
        "sagemaker:ListClusterEvents": {
            "Events": [
                _event("Info", "EC2 Instance i-1 successfully provisioned"),
                _event("Error", "Instance creation failed"),
            ]
        },
        "sagemaker:DescribeTrainingPlan": {
            "TrainingPlanArn": PLAN,
            "TrainingPlanName": "h100-april",
            "Status": "Active",
            "EndTime": NOW + timedelta(hours=49),
            "TotalInstanceCount": 4,
            "AvailableInstanceCount": 0,
        },
        "fsx:DescribeFileSystems": {
            "FileSystems": [
                _file_system("dev-scratch", "fs-0123456789abcdef0"),
                # of the environment dev-eu, whose name begins as that of this one
                _file_system("dev-eu-scratch", "fs-0123456789abcdef1", stack="dev-eu-storage"),
            ]
        },
        "eks:ListAddons": {"addons": [*EVERYWHERE, "somebody-elses"]},
        "cloudwatch:DescribeAlarms": {
            "MetricAlarms": [
                _alarm("dev-hyperpod-events"),
                _alarm("dev-hyperpod-nodes-missing-h100"),
                # of a cluster dev-hyperpod-x, or somebody's own
                _alarm("dev-hyperpod-x-hyperpod-events", "ALARM"),
            ]
        },
        "sagemaker:ListComputeQuotas": {
            "ComputeQuotaSummaries": [_quota("research"), _quota("others", "CreateFailed")]
        },
        "servicequotas:GetServiceQuota": lambda params: {
            "Quota": {
                "QuotaName": _QUOTAS[params["QuotaCode"]],
                "QuotaCode": params["QuotaCode"],
                "Value": 8.0,
                "Adjustable": True,
            }
        },
        "sagemaker:ListClusters": {
            "ClusterSummaries": [
                {"ClusterArn": ARN, "ClusterName": "dev", "CreationTime": NOW, "ClusterStatus": "InService"}
            ]
        },
        "kubernetes": workloads(
            _workload("Deployment", "kube-system", "coredns", 2, 2),
            # pods of users are nobody's business here
            _workload("Deployment", "hyperpod-ns-research", "notebook", 1, 0),
            _workload("Deployment", "default", "notebook", 1, 0),
            _workload("DaemonSet", "aws-hyperpod", "health-monitoring-agent", 4, 4),
        ),
        "sagemaker:ListClusterSchedulerConfigs": {
            "ClusterSchedulerConfigSummaries": [
                {
                    "ClusterSchedulerConfigArn": f"{ARN}-policy",
                    "ClusterSchedulerConfigId": "0a1b2c3d4e5f",
                    "Name": "dev",
                    "CreationTime": NOW,
                    "Status": "Created",
                }
            ]
        },
        "iam:GetRole": a_role,
    }


_QUOTAS = {
    each.code: each.name
    for each in (
        quotas.cluster_usage("ml.p5.48xlarge"),
        quotas.cluster_usage("ml.m5.2xlarge"),
        quotas.get("hyperpod_instances_total"),
    )
}


def _workload(kind: str, namespace: str, name: str, wanted: int, ready: int, **labels: str) -> dict[str, Any]:
    is_set = kind == "DaemonSet"
    return {
        "kind": kind,
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"selector": {"matchLabels": labels}, **({} if is_set else {"replicas": wanted})},
        "status": {"desiredNumberScheduled": wanted, "numberReady": ready}
        if is_set
        else ({"readyReplicas": ready} if ready else {}),
    }


def _alarm(name: str, state: str = "OK") -> dict[str, Any]:
    return {"AlarmName": name, "StateValue": state, "StateReason": "Threshold Crossed"}


def _policy(script: dict[str, Any]) -> dict[str, Any]:
    (found,) = script["sagemaker:ListClusterSchedulerConfigs"]["ClusterSchedulerConfigSummaries"]
    assert isinstance(found, dict)
    return found


def _quota(team: str, status: str = "Created") -> dict[str, Any]:
    return {
        "ComputeQuotaArn": f"{ARN}-quota",
        "ComputeQuotaId": "0a1b2c3d4e5f",
        "Name": f"dev-{team}",
        "Status": status,
        "CreationTime": NOW,
        "ComputeQuotaTarget": {"TeamName": team, "FairShareWeight": 0},
        "ComputeQuotaConfig": {"ComputeQuotaResources": [{"InstanceType": "ml.p5.48xlarge", "Count": 2}]},
    }


def of_today() -> dict[str, Any]:
    """Return the same for the verb, which looks at its own clock."""
    found = answers()
    found["sagemaker:DescribeTrainingPlan"]["EndTime"] = datetime.now(UTC) + timedelta(days=2)
    return found


def _event(level: str, text: str) -> dict[str, Any]:
    return {
        "EventId": text,
        "ClusterArn": ARN,
        "ClusterName": "dev",
        "InstanceGroupName": "h100",
        "InstanceId": "i-3",
        "ResourceType": "Instance",
        "EventTime": NOW - timedelta(hours=1),
        "Description": text,
        "EventLevel": level,
    }


def _file_system(name: str, physical: str, *, stack: str = "dev-storage") -> dict[str, Any]:
    tags = [{"Key": "Name", "Value": name}, {"Key": "aws:cloudformation:stack-name", "Value": stack}]
    return {"FileSystemId": physical, "Lifecycle": "AVAILABLE", "StorageCapacity": 4800, "Tags": tags}


def opened(script: dict[str, Any], asked: list[tuple[str, dict[str, Any]]] | None = None) -> LiveAws:
    own = Own(stacks=(), hyperpod_cluster="", eks_cluster="")
    session = ScriptedSession(script, asked=[] if asked is None else asked).session()
    return LiveAws.open(region="us-east-1", account="111122223333", own=own, session=session)


def reaching(script: dict[str, Any], asked: list[tuple[str, dict[str, Any]]] | None = None) -> LiveAws:
    """Return the same where the API server can be reached."""
    own = Own(stacks=(), hyperpod_cluster="", eks_cluster="")
    session = ScriptedSession(script, asked=[] if asked is None else asked).session()
    aws = Reaching.open(region="us-east-1", account="111122223333", own=own, session=session)
    assert isinstance(aws, Reaching)
    aws.kubernetes = script["kubernetes"]
    return aws


def look(script: dict[str, Any]) -> Status:
    return status(reaching(script), WANTED, now=NOW)


def test_a_cluster_in_which_a_node_fails() -> None:
    found = look(answers())
    assert (found.passed, found.verdict) == (False, "3 of 6 nodes run; h100: 1 node failing.")
    h100, system = found.groups
    assert (h100.in_file, h100.target, h100.running, h100.failing, h100.checking, h100.changing) == (4, 4, 1, 1, 1, 1)
    assert (system.running, system.failing, system.reasons) == (2, 0, ())
    assert h100.reasons == (Reason(text=SCRIPT, nodes=1),)
    assert found.events == (
        Event(time="2026-11-23 02:00 UTC", level="Error", group="h100", node="i-3", text="Instance creation failed"),
    )
    assert found.plans == (
        Plan(
            name="h100-april",
            status="Active",
            # an hour before the plan ends
            nodes_leave="2026-11-25 03:00 UTC",
            hours_left=48.0,
            total=4,
            available=0,
            unhealthy=None,
        ),
    )
    assert found.file_systems == (
        FileSystem(id="fs-0123456789abcdef0", name="dev-scratch", lifecycle="AVAILABLE", capacity_gib=4800),
    )


def test_one_screen_at_80_columns() -> None:
    text = status_text(look(answers()))
    assert text == (
        "dev: 3 of 6 nodes run; h100: 1 node failing.\n"
        "\n"
        "group   type         file  wanted  runs  fails  checks  changes\n"
        "h100    p5.48xlarge     4       4     1      1       1        1\n"
        "system  p5.48xlarge     2       2     2      0       0        0\n"
        f"h100, 1 node: {SCRIPT}\n"
        "plan h100-april: Active, its nodes leave in 48 h at 2026-11-25 03:00 UTC\n"
        "file system dev-scratch (fs-0123456789abcdef0): AVAILABLE, 4,800 GiB\n"
        "team research: quota of 2 ml.p5.48xlarge, Created\n"
        "operators: 2 of 2 have all their pods ready\n"
        "quota ml.p5.48xlarge for cluster usage: 6 of 8 used, 2 left\n"
        "\n"
        "2026-11-23 02:00 UTC Error h100 i-3: Instance creation failed\n"
    )


def test_long_names_stay_on_the_screen() -> None:
    script = answers()
    script["sagemaker:DescribeCluster"]["InstanceGroups"].append(
        {
            **_group("a-group-with-a-long-name-of-its-own", 2000),
            "InstanceRequirements": {"CurrentInstanceTypes": ["ml.p5.48xlarge", "ml.p5e.48xlarge", "ml.p5en.48xlarge"]},
        }
    )
    del script["sagemaker:DescribeCluster"]["InstanceGroups"][-1]["InstanceType"]
    assert max(map(len, status_text(look(script)).splitlines())) <= 80


def test_all_is_well() -> None:
    script = answers()
    for node in script["sagemaker:ListClusterNodes"]["ClusterNodeSummaries"]:
        node["InstanceStatus"] = {"Status": "Running"}
    found = look(script)
    assert (found.passed, found.verdict) == (True, "6 of 6 nodes run.")


@row_by_row(
    "edit, said",
    [
        (
            lambda script: script["sagemaker:DescribeCluster"].update(ClusterStatus="Updating"),
            "the cluster is Updating",
        ),
        (
            lambda script: script["sagemaker:DescribeTrainingPlan"].update(Status="Expired"),
            "plan h100-april is Expired",
        ),
        (
            lambda script: script["fsx:DescribeFileSystems"]["FileSystems"][0].update(Lifecycle="MISCONFIGURED"),
            "file system dev-scratch is MISCONFIGURED",
        ),
        # no node of it is listed as failing
        (lambda script: _first_group(script).update(Status="Degraded"), "h100 is Degraded"),
        (lambda script: _first_group(script).update(Status="Failed"), "h100 is Failed"),
        (
            lambda script: _first_group(script).update(SoftwareUpdateStatus="Failed"),
            "the software update of h100 failed",
        ),
        (lambda script: script["sagemaker:ListClusterNodes"].update(ClusterNodeSummaries=[]), "no node runs"),
        (
            lambda script: script["sagemaker:DescribeCluster"].update(InstanceGroups=[]),
            "it has no instance group; of the file, group h100 and group system are not in AWS",
        ),
        # the plan is Active for one more hour, and its nodes are gone
        (
            lambda script: script["sagemaker:DescribeTrainingPlan"].update(EndTime=NOW + timedelta(hours=1)),
            "the nodes of plan h100-april left at 2026-11-23 03:00 UTC",
        ),
        (
            lambda script: script["cloudwatch:DescribeAlarms"]["MetricAlarms"][0].update(StateValue="ALARM"),
            "alarm dev-hyperpod-events is in ALARM.",
        ),
        (
            lambda script: script["sagemaker:ListComputeQuotas"].update(
                ComputeQuotaSummaries=[_quota("research", "UpdateRollbackFailed")]
            ),
            "the compute quota of team research is UpdateRollbackFailed.",
        ),
        (
            lambda script: script.update({"eks:ListAddons": Fails("ResourceNotFoundException", "No cluster", 404)}),
            "of the file, add-on coredns and add-on kube-proxy are not in AWS.",
        ),
        (
            lambda script: script["sagemaker:ListClusterSchedulerConfigs"].update(ClusterSchedulerConfigSummaries=[]),
            "of the file, the cluster policy is not in AWS.",
        ),
        (lambda script: _policy(script).update(Status="UpdateFailed"), "the cluster policy is UpdateFailed."),
        # what was deleted may be listed still
        (lambda script: _policy(script).update(Status="Deleted"), "of the file, the cluster policy is not in AWS."),
        (
            lambda script: script["sagemaker:ListComputeQuotas"]["ComputeQuotaSummaries"][0].update(Status="Deleted"),
            "of the file, the compute quota of team research is not in AWS.",
        ),
    ],
)
def test_what_is_wrong_is_in_the_verdict(edit: Callable[[dict[str, Any]], object], said: str) -> None:
    script = answers()
    script["sagemaker:ListClusterNodes"]["ClusterNodeSummaries"].pop(2)
    edit(script)
    found = look(script)
    assert said in found.verdict
    assert found.passed is False


QUOTA_ALARM = "dev-hyperpod-quota-ml.p5.48xlarge"


def test_an_alarm_that_is_only_advice_is_reported_and_fails_nothing() -> None:
    """A quota that was granted for just this cluster is used up from the first deployment on."""
    script = well()
    script["cloudwatch:DescribeAlarms"]["MetricAlarms"].append(_alarm(QUOTA_ALARM, "ALARM"))
    wanted = dataclasses.replace(WANTED, alarms=WANTED.alarms | {QUOTA_ALARM}, advice=frozenset({QUOTA_ALARM}))
    found = status(reaching(script), wanted, now=NOW)
    assert (found.passed, found.verdict) == (
        True,
        f"6 of 6 nodes run; alarm {QUOTA_ALARM} is in ALARM, which is only advice.",
    )
    assert [each.advice for each in found.alarms if each.advice] == [
        f"alarm {QUOTA_ALARM} is in ALARM, which is only advice: Threshold Crossed"
    ]
    assert status(reaching(script), dataclasses.replace(wanted, advice=frozenset()), now=NOW).passed is False


@pytest.mark.parametrize(
    ("hours", "is_advice", "skipped"),
    [
        (24, False, []),
        (24.02, False, [("alarm dev-hyperpod-events", "CloudWatch has no data for it, since 2026-11-22 02:58 UTC")]),
        (24.02, True, []),
        (
            None,
            False,
            [("alarm dev-hyperpod-events", "CloudWatch has no data for it, and does not show since when")],
        ),
    ],
)
def test_an_alarm_without_data_is_unknown_once_it_is_no_longer_new(
    hours: float | None,
    is_advice: bool,  # noqa: FBT001 - a column of the table
    skipped: list[tuple[str, str]],
) -> None:
    script, name = well(), "dev-hyperpod-events"
    since = {} if hours is None else {"StateTransitionedTimestamp": NOW - timedelta(hours=hours)}
    script["cloudwatch:DescribeAlarms"]["MetricAlarms"][0].update(StateValue="INSUFFICIENT_DATA", **since)
    wanted = dataclasses.replace(WANTED, advice=frozenset({name} if is_advice else ()))
    found = status(reaching(script), wanted, now=NOW)
    assert [(each.what, each.reason) for each in found.skipped] == skipped
    assert found.passed is (None if skipped else True)


@pytest.mark.parametrize(
    "edit",
    [
        lambda script: _first_group(script).update(Status="Updating", SoftwareUpdateStatus="InProgress"),
        lambda script: script["fsx:DescribeFileSystems"]["FileSystems"][0].update(Lifecycle="UPDATING"),
        lambda script: script["fsx:DescribeFileSystems"]["FileSystems"][1].update(Lifecycle="FAILED"),
        # CloudWatch has no data of a new cluster yet, and an alarm that it lacks is another matter
        lambda script: script["cloudwatch:DescribeAlarms"]["MetricAlarms"][0].update(
            StateValue="INSUFFICIENT_DATA", StateTransitionedTimestamp=NOW
        ),
        lambda script: script["sagemaker:ListComputeQuotas"]["ComputeQuotaSummaries"][0].update(Status="Updating"),
        lambda script: _policy(script).update(Status="Updating"),
        lambda script: script["sagemaker:DescribeTrainingPlan"].update(EndTime=NOW + timedelta(hours=1, minutes=6)),
    ],
)
def test_what_is_no_failure_of_this_environment(edit: Callable[[dict[str, Any]], object]) -> None:
    script = answers()
    script["sagemaker:ListClusterNodes"]["ClusterNodeSummaries"].pop(2)
    edit(script)
    assert look(script).passed is True


@pytest.mark.parametrize(
    ("wanted", "missing"),
    [
        ({"counts": {"h100": 4, "system": 2, "gone": 1}}, ("group gone",)),
        # Karpenter sets its count, and the group is there all the same
        ({"counts": {"h100": 4, "system": 2, "spot": None}}, ("group spot",)),
        ({"made": frozenset({"dev-scratch", "dev-home"})}, ("file system dev-home",)),
        ({"joined": frozenset({JOINED})}, (f"file system {JOINED}",)),
        ({"addons": frozenset({"coredns", "gone"})}, ("add-on gone",)),
        ({"alarms": frozenset({"dev-hyperpod-quota-ml.p5.48xlarge"})}, ("alarm dev-hyperpod-quota-ml.p5.48xlarge",)),
        ({"teams": frozenset({"research", "models"})}, ("the compute quota of team models",)),
    ],
)
def test_what_of_the_file_is_not_there_is_named(wanted: dict[str, Any], missing: tuple[str, ...]) -> None:
    script = answers()
    script["sagemaker:ListClusterNodes"]["ClusterNodeSummaries"].pop(2)
    found = status(reaching(script), dataclasses.replace(WANTED, **wanted), now=NOW)
    assert (found.missing, found.passed) == (missing, False)
    assert found.verdict == f"3 of 6 nodes run; of the file, {missing[0]} is not in AWS."


def test_a_capacity_that_fsx_does_not_show_is_unknown_and_not_elastic() -> None:
    script = answers()
    row = script["fsx:DescribeFileSystems"]["FileSystems"][0]
    del row["StorageCapacity"]
    found = look(script)
    assert found.file_systems[0].capacity_gib is None
    assert "file system dev-scratch (fs-0123456789abcdef0): AVAILABLE, capacity unknown\n" in status_text(found)
    row["StorageType"] = "INTELLIGENT_TIERING"
    assert look(script).file_systems[0].capacity_gib == 0


def test_a_plan_of_the_file_that_aws_does_not_show_is_skipped() -> None:
    script, wanted = well(), dataclasses.replace(WANTED, plans={"h100": PLAN})
    assert status(reaching(script), wanted, now=NOW).passed is True
    del _first_group(script)["TrainingPlanArn"]
    found = status(reaching(script), wanted, now=NOW)
    assert (found.passed, [each.reason for each in found.skipped]) == (
        None,
        ["the file has training plan h100-april for it, and DescribeCluster shows none"],
    )


def test_a_file_system_that_is_joined_is_named_by_its_id() -> None:
    script = answers()
    script["fsx:DescribeFileSystems"]["FileSystems"].append(
        {"FileSystemId": JOINED, "Lifecycle": "AVAILABLE", "StorageCapacity": 1200, "Tags": []}
    )
    found = status(reaching(script), dataclasses.replace(WANTED, joined=frozenset({JOINED})), now=NOW)
    assert found.file_systems[-1] == FileSystem(id=JOINED, name=JOINED, lifecycle="AVAILABLE", capacity_gib=1200)
    assert found.missing == ()


@pytest.mark.parametrize(("pages", "told"), [(19, ["Instance creation failed"]), (20, [])])
def test_a_warning_after_pages_without_warnings(pages: int, told: list[str]) -> None:
    """HyperPod lists the newest events whatever their level; what lies behind the last page read is skipped."""
    script = answers()

    def page(params: Mapping[str, Any]) -> dict[str, Any]:
        number = int(params.get("NextToken", 0))
        more = {"NextToken": str(number + 1)} if number < pages else {}
        level, text = ("Info", "provisioned") if number < pages else ("Error", "Instance creation failed")
        return {"Events": [_event(level, text)], **more}

    script["sagemaker:ListClusterNodes"]["ClusterNodeSummaries"].pop(2)
    script["sagemaker:ListClusterEvents"] = page
    found = look(script)
    assert [each.text for each in found.events] == told
    assert [each.what for each in found.skipped] == ([] if told else ["older events"])
    assert found.passed is (True if told else None)


def _first_group(script: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = script["sagemaker:DescribeCluster"]["InstanceGroups"][0]
    return found


@row_by_row(
    "call, what",
    [
        ("sagemaker:ListClusterNodes", "nodes"),
        ("sagemaker:ListClusterEvents", "events"),
        ("sagemaker:DescribeTrainingPlan", "training plan h100-april"),
        ("fsx:DescribeFileSystems", "file systems"),
        ("eks:ListAddons", "add-ons"),
        ("cloudwatch:DescribeAlarms", "alarms"),
        ("sagemaker:ListComputeQuotas", "compute quotas"),
        ("sagemaker:ListClusterSchedulerConfigs", "the cluster policy"),
    ],
)
def test_what_is_denied_is_skipped_and_never_zero(call: str, what: str) -> None:
    script = answers()
    script["sagemaker:ListClusterNodes"]["ClusterNodeSummaries"].pop(2)
    script[call] = Fails("AccessDeniedException", "no", 403)
    found = look(script)
    (skipped,) = found.skipped
    assert (found.passed, skipped.what, skipped.action) == (None, what, call)
    assert found.missing == ()
    if what == "nodes":
        assert [each.running for each in found.groups] == [None, None]
        assert "runs" in status_text(found)
        assert found.verdict == "nothing is known to be wrong; 1 thing could not be checked."


def test_of_a_cluster_that_is_denied_nothing_is_reported() -> None:
    script = {**answers(), "sagemaker:DescribeCluster": Fails("AccessDeniedException", "no", 403)}
    found = look(script)
    assert (found.passed, found.missing) == (None, ())
    # what governs it is listed by the ARN that only DescribeCluster tells
    assert [each.what for each in found.skipped] == [
        "the cluster",
        "the cluster policy",
        "compute quotas",
        f'quota "{WANTED.quotas[0].name}"',
    ]
    assert {each.action for each in found.skipped} == {"sagemaker:DescribeCluster"}


@pytest.mark.parametrize("call", ["eks:ListAddons", "cloudwatch:DescribeAlarms", "sagemaker:ListComputeQuotas"])
def test_what_is_throttled_or_half_is_skipped(call: str) -> None:
    answer: Any
    for answer in (Fails("ThrottlingException", "Rate exceeded"), {}):
        script = answers()
        script["sagemaker:ListClusterNodes"]["ClusterNodeSummaries"].pop(2)
        script[call] = answer
        found = look(script)
        assert (found.passed, len(found.skipped), found.missing) == (None, 1, ())


def test_no_cluster_is_one_line() -> None:
    script = answers()
    gone = Fails("ResourceNotFound", "Cluster with name dev not found.")
    script |= {name: gone for name in script if name.startswith("sagemaker:")}
    found = look(script)
    assert status_text(found) == "dev: There is no HyperPod cluster dev in this account and region.\n"
    assert found.passed is False


CALL_SECONDS = 0.1
"""What a call is taken to last; a status may last 10 s. Calls that do not wait for each other count once."""


@pytest.mark.parametrize(
    ("groups", "nodes_on_a_page", "running"),
    [
        (1, 100, 2000),
        (20, 100, 2000),
        # 500 pages: too many to be read one after another
        (20, 4, 2000),
        (1, 4, None),
    ],
)
def test_two_thousand_nodes_take_ten_seconds(groups: int, nodes_on_a_page: int, running: int | None) -> None:
    """What cannot be read in that time is skipped, not counted as far as it came."""
    script = answers()
    each = 2000 // groups
    nodes = [
        _node(f"g{group:02}", group * each + number, "Running") for group in range(groups) for number in range(each)
    ]
    script["sagemaker:DescribeCluster"]["InstanceGroups"] = [_group(f"g{group:02}", each) for group in range(groups)]

    def paged(params: Mapping[str, Any]) -> dict[str, Any]:
        first = int(params.get("NextToken", 0))
        assert (params["MaxResults"], params["IncludeNodeLogicalIds"]) == (100, True)
        found = [node for node in nodes if params.get("InstanceGroupNameContains", "") in node["InstanceGroupName"]]
        more = {"NextToken": str(first + nodes_on_a_page)} if first + nodes_on_a_page < len(found) else {}
        return {"ClusterNodeSummaries": copy.copy(found[first : first + nodes_on_a_page]), **more}

    script["sagemaker:ListClusterNodes"] = paged
    aws = reaching(script)
    wanted = dataclasses.replace(WANTED, counts={f"g{group:02}": each for group in range(groups)})
    found = status(aws, wanted, now=NOW)
    assert aws.depth * CALL_SECONDS <= 10
    assert sum(group.running or 0 for group in found.groups) == (running or 0)
    assert all((group.running is None) is (running is None) for group in found.groups)
    if running is None:
        (skipped,) = found.skipped
        assert (found.passed, skipped.what, skipped.reason) == (
            None,
            "nodes",
            "group g00 has nodes on more than 80 pages",
        )


def test_a_page_that_is_throttled_leaves_all_of_it_open() -> None:
    script = answers()
    pages: list[Any] = [
        {"ClusterNodeSummaries": [_node("h100", 1, "Running")], "NextToken": "1"},
        {"ClusterNodeSummaries": [_node("h100", 1, "Running")]},
        Fails("ThrottlingException", "Rate exceeded"),
    ]
    script["sagemaker:ListClusterNodes"] = lambda _: pages.pop(0) if len(pages) > 1 else pages[0]
    found = look(script)
    assert (found.passed, [each.running for each in found.groups]) == (None, [None, None])
    assert found.skipped[0].reason.startswith("AWS throttled sagemaker:ListClusterNodes")


GONE = [Fails("ResourceNotFound", "gone", 400), Fails("ResourceNotFoundException", "gone", 404)]


@pytest.mark.parametrize("answer", GONE, ids=lambda each: str(each.code))
@pytest.mark.parametrize(
    ("call", "what"),
    [
        ("sagemaker:ListClusterNodes", "nodes"),
        ("sagemaker:ListClusterEvents", "events"),
        ("sagemaker:ListComputeQuotas", "compute quotas"),
        ("sagemaker:ListClusterSchedulerConfigs", "the cluster policy"),
    ],
)
def test_what_belongs_to_a_cluster_that_went_meanwhile_is_skipped_and_never_none(
    call: str, what: str, answer: Any
) -> None:
    """DescribeCluster has told the cluster, and what is asked next says that there is none: no node was counted."""
    script = answers()
    script[call] = answer
    found = look(script)
    (skipped,) = [each for each in found.skipped if each.what == what]
    assert (skipped.reason, skipped.aws_said) == (f"{call} was refused with {answer.code}: gone", "")
    assert "0 of" not in found.verdict
    assert "no node runs" not in found.verdict


def test_events_that_go_in_circles_are_reported_once() -> None:
    script = answers()
    script["sagemaker:ListClusterEvents"]["NextToken"] = "again"
    found = look(script)
    assert [each.text for each in found.events] == ["Instance creation failed"]
    assert [(each.what, each.reason) for each in found.skipped] == [
        ("older events", "sagemaker:ListClusterEvents returned the same page again")
    ]


@pytest.mark.parametrize("end", [None, "2026-99-99T00:00:00Z"])
def test_a_plan_whose_end_is_unknown_is_never_clean(end: Any) -> None:
    script = answers()
    script["sagemaker:DescribeTrainingPlan"]["EndTime"] = end
    assert [(each.what, each.reason) for each in look(script).skipped] == [
        ("training plan h100-april", "AWS does not show when it ends")
    ]


def test_an_invalid_row_is_skipped() -> None:
    script = answers()
    script["sagemaker:ListComputeQuotas"]["ComputeQuotaSummaries"][0] = None
    (skipped,) = look(script).skipped
    assert (skipped.what, skipped.reason) == (
        "compute quotas",
        "the answer to sagemaker:ListComputeQuotas cannot be read: 'NoneType' object is not subscriptable",
    )


def test_a_node_of_an_unknown_group_is_never_clean() -> None:
    """Its group was deleted between two calls, or made; it may be the one that fails."""
    script = answers()
    for node in script["sagemaker:ListClusterNodes"]["ClusterNodeSummaries"][1:3]:
        node["InstanceGroupName"] = "spot"
    found = look(script)
    assert (found.passed, [each.failing for each in found.groups]) == (None, [0, 0])
    assert [(each.what, each.reason) for each in found.skipped] == [
        ("nodes", "2 nodes are in group spot, which DescribeCluster does not show")
    ]


@pytest.mark.parametrize("orchestrator", [{"Slurm": {}}, None, "Eks"])
def test_a_cluster_on_slurm_is_never_clean(orchestrator: Any) -> None:
    script = answers()
    script["sagemaker:DescribeCluster"]["Orchestrator"] = orchestrator
    script["sagemaker:ListClusterNodes"]["ClusterNodeSummaries"].pop(2)
    found = look(script)
    assert (found.passed, found.skipped[0].reason) == (None, "cluster dev runs Slurm or nothing yet, not EKS")


def well() -> dict[str, Any]:
    """Return a cluster whose nodes all run."""
    script = answers()
    for node in script["sagemaker:ListClusterNodes"]["ClusterNodeSummaries"]:
        node["InstanceStatus"] = {"Status": "Running"}
    return script


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (
            lambda nodes, _: nodes[0].update(InstanceStatus={"Status": "Quarantined"}),
            "1 node is Quarantined, which this version does not know",
        ),
        (
            lambda _, group: group.update(Status="Hibernated"),
            ("its status is Hibernated, which this version does not know"),
        ),
        (lambda _, group: group.pop("Status"), "its status is unknown, which this version does not know"),
        (
            lambda _, group: group.update(SoftwareUpdateStatus="Stalled"),
            "its update is Stalled, which this version does not know",
        ),
    ],
    ids=["node", "group", "no status", "update"],
)
def test_a_word_that_aws_adds_is_never_clean(edit: Callable[[Any, Any], object], reason: str) -> None:
    script = well()
    edit(
        script["sagemaker:ListClusterNodes"]["ClusterNodeSummaries"],
        script["sagemaker:DescribeCluster"]["InstanceGroups"][0],
    )
    found = look(script)
    assert (found.passed, [(each.what, each.reason) for each in found.skipped]) == (None, [("group h100", reason)])


def test_words_that_aws_adds_for_what_stands_around_it_are_never_clean() -> None:
    script = well()
    script["cloudwatch:DescribeAlarms"]["MetricAlarms"][0]["StateValue"] = "MUTED"
    script["sagemaker:ListComputeQuotas"]["ComputeQuotaSummaries"][0]["Status"] = "Paused"
    _policy(script)["Status"] = "Paused"
    found = look(script)
    assert (found.passed, [(each.what, each.reason) for each in found.skipped]) == (
        None,
        [
            ("alarm dev-hyperpod-events", "its status is MUTED, which this version does not know"),
            ("the compute quota of team research", "its status is Paused, which this version does not know"),
            ("the cluster policy", "its status is Paused, which this version does not know"),
        ],
    )


def test_a_group_of_the_file_that_goes_is_not_well() -> None:
    script = well()
    script["sagemaker:DescribeCluster"]["InstanceGroups"][0]["Status"] = "Deleting"
    found = look(script)
    assert (found.passed, found.verdict) == (False, "6 of 6 nodes run; h100 is Deleting.")
    # one that nobody wants any more may go
    assert status(reaching(script), dataclasses.replace(WANTED, counts={"system": 2}), now=NOW).passed is True


def test_events_of_a_level_that_aws_adds_are_shown() -> None:
    script = answers()
    script["sagemaker:ListClusterEvents"]["Events"].append(_event("Fatal", "The rack burns"))
    assert [each.level for each in look(script).events] == ["Error", "Fatal"]


def test_a_cluster_that_provisions_all_or_nothing_has_no_events_and_nothing_is_missing() -> None:
    script = answers()
    del script["sagemaker:DescribeCluster"]["NodeProvisioningMode"]
    script["sagemaker:ListClusterEvents"] = Fails("ValidationException", "it has no events")
    found = look(script)
    assert (found.events, found.skipped) == ((), ())


def test_names_that_steer_a_terminal_are_shown_as_text(tmp_path: Path) -> None:
    script = of_today()
    script["sagemaker:DescribeCluster"]["InstanceGroups"][0]["TrainingPlanArn"] = "arn:x/\x1b[31mh100"
    script["sagemaker:DescribeTrainingPlan"] = Fails("AccessDeniedException", "no", 403)
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments" / "dev.yaml").write_text(FILE, encoding="utf-8")
    access = Access(open=lambda _region, _account: reaching(script))
    words = ["status", "dev", "--project", str(tmp_path)]
    done = CliRunner().invoke(cli.app, words, prog_name="hyperpod-cdk", obj=access, color=True)
    assert "training plan \\x1b[31mh100: no permission" in done.stdout


def test_the_policy_of_the_verb_has_what_checks_of_others_ask() -> None:
    (verb,) = (each for each in VERBS if each.name == "status")
    asks = {ask for name in OF_OTHERS for ask in REGISTER[name].asks}
    assert asks == set(verb.asks) - {"quota", "eks_cluster"}


def test_only_what_the_policy_of_the_verb_allows_is_asked() -> None:
    asked: list[tuple[str, dict[str, Any]]] = []
    status(reaching(answers(), asked), WANTED, now=NOW)
    (verb,) = (each for each in VERBS if each.name == "status")
    # a quota that is not found by its code is looked for in all of them, and the API server by EKS's answer
    further = {each for each in verb.actions if each.startswith("servicequotas:")} | {"eks:DescribeCluster"}
    of_others = {action for name in OF_OTHERS for action in actions_of(REGISTER[name])}
    made = {name for name, _ in asked} | of_others
    assert (made | further, further - made) == (set(verb.actions), further - {"servicequotas:GetServiceQuota"})


@pytest.mark.parametrize(
    "name",
    [name if name in ("prod", "on-call") else pytest.param(name, marks=pytest.mark.examples) for name in ENVIRONMENTS],
)
def test_what_a_file_is_taken_to_have_is_what_its_templates_make(name: str, assemblies: Path) -> None:
    wanted, made = wanted_of(load_environment(PROJECT / ENVIRONMENTS[name]).environment), shipped(assemblies, name)

    def stated(key: str, *types: str) -> set[str]:
        return {made.resource(node)["Properties"][key] for node in made.of_type(*types)}

    assert wanted.alarms == stated("AlarmName", "AWS::CloudWatch::Alarm")
    assert wanted.advice == {each for each in wanted.alarms if "-hyperpod-quota-" in each}
    assert wanted.addons == stated("AddonName", "AWS::EKS::Addon")
    # what CloudFormation's types cannot say yet, a custom resource of the same name does
    quotas = made.of_type("AWS::SageMaker::ComputeQuota", "Custom::ComputeQuota")
    assert wanted.teams == {made.resource(node)["Properties"]["ComputeQuotaTarget"]["TeamName"] for node in quotas}
    policies = made.of_type("AWS::SageMaker::ClusterSchedulerConfig", "Custom::ClusterSchedulerConfig")
    assert wanted.is_governed is bool(policies)


COREDNS = ("coredns", "kube-system")
_OF_COREDNS = "/apis/apps/v1/namespaces/kube-system/deployments/coredns"
_PODS_OF_COREDNS = "/api/v1/namespaces/kube-system/pods?labelSelector=k8s-app%3Dkube-dns&limit=100"


def _pod(*, waits: str = "", message: str = "", exit_code: int = 0, unschedulable: str = "") -> dict[str, Any]:
    state: dict[str, Any] = {"waiting": {"reason": waits, "message": message}} if waits else {}
    state |= {"terminated": {"exitCode": exit_code, "reason": "Error"}} if exit_code else {}
    conditions = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": unschedulable}]
    return {"status": {"containerStatuses": [{"state": state}], "conditions": conditions if unschedulable else []}}


@pytest.mark.parametrize(
    ("pods", "reason"),
    [
        ([_pod(waits="CrashLoopBackOff", message="back-off 5m0s")] * 2, "CrashLoopBackOff: back-off 5m0s"),
        ([_pod(waits="ContainerCreating", unschedulable="0/6 nodes")], "Unschedulable: 0/6 nodes"),
        ([_pod(exit_code=1)], "Error"),
        ([_pod()], ""),
        # most of them say so
        (
            [_pod(waits="ErrImagePull"), _pod(waits="CrashLoopBackOff"), _pod(waits="CrashLoopBackOff")],
            "CrashLoopBackOff",
        ),
        (NotAnswered("no permission"), ""),
    ],
)
def test_an_operator_without_its_pods_is_wrong_and_says_why(pods: Any, reason: str) -> None:
    script = well()
    row = _workload("Deployment", "kube-system", "coredns", 2, 0, **{"k8s-app": "kube-dns"})
    script["kubernetes"] = {
        **workloads(row),
        _OF_COREDNS: row,
        _PODS_OF_COREDNS: pods if isinstance(pods, NotAnswered) else {"items": pods},
    }
    found = look(script)
    assert (found.passed, found.verdict) == (False, "6 of 6 nodes run; 0 of 2 pods of kube-system/coredns are ready.")
    (operator,) = found.operators
    assert (operator.kind, operator.wanted, operator.ready, operator.reason) == ("Deployment", 2, 0, reason)
    said = status_text(found).replace("\n  ", " ")
    why = f". {reason}" if reason else ""
    assert f"\noperator kube-system/coredns (Deployment): 0 of 2 pods ready{why}\n" in said
    assert ("\noperators: 0 of 1 have all their pods ready\n") in said


@pytest.mark.parametrize(
    ("ready", "failing", "passed"),
    [
        (6, 0, True),
        # a pod on each node that does not run is told with the node
        (5, 1, False),
        (5, 0, False),
        (4, 1, False),
    ],
)
def test_a_daemon_set_without_pods_on_running_nodes(*, ready: int, failing: int, passed: bool) -> None:
    script = well()
    nodes = script["sagemaker:ListClusterNodes"]["ClusterNodeSummaries"]
    for node in nodes[:failing]:
        node["InstanceStatus"] = {"Status": "Failure", "Message": SCRIPT}
    script["kubernetes"] = workloads(_workload("DaemonSet", "aws-hyperpod", "agent", 6, ready))
    found = look(script)
    lacks = 6 - ready > failing
    assert (found.passed, f"{ready} of 6 pods of aws-hyperpod/agent are ready" in found.verdict) == (passed, lacks)


def test_a_daemon_set_is_not_judged_where_nodes_are_unknown() -> None:
    script = well()
    script["sagemaker:ListClusterNodes"] = Fails("AccessDeniedException", "no", 403)
    script["kubernetes"] = workloads(_workload("DaemonSet", "aws-hyperpod", "agent", 6, 1))
    assert look(script).passed is None
    script["kubernetes"] = workloads(_workload("DaemonSet", "aws-hyperpod", "agent", 6, 0))
    assert look(script).passed is False


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (
            NotAnswered("the API server of EKS cluster dev-eks is not reachable from here: its endpoint is private"),
            None,
        ),
        (Refused("it does not allow the caller to read /apis/apps/v1/daemonsets", code="403"), None),
        ({"items": [{"metadata": {}}]}, "AWS's answer to the daemonsets cannot be read: 'namespace' is missing"),
        ({"items": [{"metadata": {"namespace": "kube-system", "name": "a"}, "spec": {}}]}, "'desiredNumberScheduled'"),
    ],
)
def test_operators_that_are_unknown_are_skipped_and_never_well(answer: Any, reason: str | None) -> None:
    script = well()
    script["kubernetes"]["/apis/apps/v1/daemonsets?limit=500"] = answer
    found = look(script)
    (unread,) = found.skipped
    assert (found.passed, found.operators, unread.what) == (None, (), "operators")
    assert (reason or str(answer)).removeprefix("AWS's answer to ") in unread.reason


def test_operators_stand_on_several_pages() -> None:
    script = well()
    path = "/apis/apps/v1/deployments?limit=500"
    rows = [_workload("Deployment", "kube-system", name, 1, 1) for name in ("a", "b")]
    script["kubernetes"][path] = {"items": rows[:1], "metadata": {"continue": "x/="}}
    script["kubernetes"][f"{path}&continue=x%2F%3D"] = {"items": rows[1:], "metadata": {"continue": ""}}
    assert [each.name for each in look(script).operators] == ["health-monitoring-agent", "a", "b"]


def test_what_is_left_of_a_quota_is_reported_and_fails_nothing() -> None:
    script = well()
    found = look(script)
    (quota,) = found.quotas
    # both groups are of the type: nodes that run, and those that are to come
    assert (quota.allowed, quota.used, quota.left, quota.is_default) == (8, 6, 2, False)
    assert "quota ml.p5.48xlarge for cluster usage: 6 of 8 used, 2 left" in status_text(found).splitlines()
    script["sagemaker:DescribeCluster"]["InstanceGroups"][1]["TargetCount"] = 9
    assert look(script).quotas[0].left == -5


@pytest.mark.parametrize(
    ("call", "answer", "reason"),
    [
        ("servicequotas:GetServiceQuota", DENIED, "no permission for servicequotas:GetServiceQuota"),
        ("sagemaker:ListClusters", DENIED, "the list of HyperPod clusters could not be read: no permission for"),
        (
            "servicequotas:GetServiceQuota",
            {"Quota": {"QuotaName": "ml.p5.48xlarge for cluster usage", "ErrorReason": {"ErrorCode": "DEPENDENCY"}}},
            "could not find out the value",
        ),
    ],
)
def test_a_quota_that_is_unknown_is_skipped(call: str, answer: Any, reason: str) -> None:
    script = well()
    script[call] = answer
    for operation in ("ListServiceQuotas", "ListAWSDefaultServiceQuotas"):
        script[f"servicequotas:{operation}"] = DENIED
    found = look(script)
    (unread,) = found.skipped
    assert (found.passed, found.quotas, unread.what) == (None, (), 'quota "ml.p5.48xlarge for cluster usage"')
    assert reason in unread.reason


FILE = """
name: dev
account: "111122223333"
region: us-east-1
eks: {admin_role_arns: ["arn:aws:iam::111122223333:role/admin"], public_access_cidrs: [54.240.193.128/26]}
network: {availability_zones: {use1-az5: {}, use1-az4: {}}}
hyperpod:
  instance_groups:
    - {name: system, instance_type: ml.m5.2xlarge, count: 2, availability_zone_id: use1-az4}
"""


def test_as_users_run_it(tmp_path: Path) -> None:
    folder = tmp_path / "environments"
    folder.mkdir()
    (folder / "dev.yaml").write_text(FILE, encoding="utf-8")

    def run(*more: str) -> Any:
        words = ["status", "dev", "--project", str(tmp_path), *more]
        access = Access(open=lambda _region, _account: reaching(of_today()))
        return CliRunner().invoke(cli.app, words, prog_name="hyperpod-cdk", obj=access)

    done = run()
    assert (done.exit_code, done.stdout.splitlines()[0]) == (1, "dev: 3 of 6 nodes run; h100: 1 node failing.")
    # the file has no such group
    assert "h100    p5.48xlarge  none" in done.stdout
    done = run("--format", "json")
    found = answered("status", done.stdout)
    assert [each["is_in_file"] for each in found["groups"]] == [False, True]


OTHERS = """
encryption: {logs: "arn:aws:kms:us-east-1:111122223333:key/0a1b2c3d-1111-2222-3333-444455556666"}
notify:
  sns_topic_arn: arn:aws:sns:us-east-1:111122223333:ml-on-call
  event_bus_arn: arn:aws:events:us-east-1:111122223333:event-bus/ml-platform
storage: {s3: [{name: data, bucket: my-data, claim: {namespaces: [research]}}]}
"""


def _gone(code: str) -> Fails:
    return Fails(code, "no such thing", 404)


def test_what_the_file_names_and_others_own_is_looked_at(tmp_path: Path) -> None:
    wanted = wanted_of(_loaded(tmp_path, FILE + OTHERS))
    key = {"Arn": "arn:aws:kms:us-east-1:111122223333:key/0a1b2c3d", "KeyId": "0a1b2c3d", "KeyState": "PendingDeletion"}
    there = {
        **of_today(),
        "kms:DescribeKey": {"KeyMetadata": {**key, "KeySpec": "SYMMETRIC_DEFAULT", "KeyUsage": "ENCRYPT_DECRYPT"}},
        "sns:GetTopicAttributes": _gone("NotFound"),
        "events:DescribeEventBus": _gone("ResourceNotFoundException"),
        "s3:HeadBucket": Fails("403", "Forbidden", 403),
    }
    found = status(reaching(there), wanted, now=NOW)
    assert [(each.path, each.fails) for each in found.named] == [
        ("encryption.logs", True),
        ("notify.event_bus_arn", True),
        ("notify.sns_topic_arn", True),
    ]
    assert found.named[2].message == (
        "needs a topic that exists, got arn:aws:sns:us-east-1:111122223333:ml-on-call; create it, or correct the ARN"
    )
    assert (found.passed, "what notify.sns_topic_arn names cannot be used" in found.verdict) == (False, True)
    (bucket,) = [each for each in found.skipped if each.what == "storage.s3[0].bucket"]
    assert (bucket.action, bucket.reason.startswith("the bucket my-data: ")) == ("s3:ListBucket", True)
    assert "notify.sns_topic_arn: needs a topic that exists" in " ".join(status_text(found).split())
    # a wave asks about what is the environment's own
    asked: list[tuple[str, dict[str, Any]]] = []
    of_a_wave = wanted_of(_loaded(tmp_path, FILE + OTHERS), is_of_a_wave=True)
    assert status(reaching(of_today(), asked), of_a_wave, now=NOW).named == ()
    assert not {name for name, _ in asked} & {"kms:DescribeKey", "sns:GetTopicAttributes", "iam:GetRole"}


def _loaded(folder: Path, text: str) -> Environment:
    return load_environment(folder / "dev.yaml", text=text).environment


def test_what_only_needs_attention_does_not_fail(tmp_path: Path) -> None:
    """The policy of the topic lets CloudWatch publish on a condition that is not known here."""
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": "cloudwatch.amazonaws.com"},
        "Action": "sns:Publish",
        "Resource": "*",
        "Condition": {"StringEquals": {"aws:PrincipalOrgID": "o-1"}},
    }
    arn = "arn:aws:sns:us-east-1:111122223333:ml-on-call"
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    wanted = wanted_of(_loaded(tmp_path, f"{FILE}notify: {{sns_topic_arn: {arn}}}\n"))
    there = {**of_today(), "sns:GetTopicAttributes": {"Attributes": {"TopicArn": arn, "Policy": policy}}}
    found = status(reaching(there), wanted, now=NOW)
    assert [(each.path, each.fails) for each in found.named] == [("notify.sns_topic_arn", False)]
    assert "cannot be used" not in found.verdict


LOOKED_AT: Mapping[str, str] = {
    "eks.admin_role_arns": "roles_with_access_exist",
    "encryption.*": "kms_keys_can_encrypt",
    "hyperpod.instance_groups.existing.execution_role_arn": "roles_with_access_exist",
    "hyperpod.instance_groups.image.ami_id": "images_can_be_booted",
    "hyperpod.instance_groups.patching.rollback_alarms": "rollback_alarms_exist",
    "hyperpod.lifecycle.existing_bucket.kms_key_arn": "lifecycle_bucket_can_be_used",
    "hyperpod.restricted_instance_groups.input_buckets": "job_buckets_are_in_the_region",
    "hyperpod.restricted_instance_groups.kms_key_arns": "kms_keys_can_encrypt",
    "hyperpod.restricted_instance_groups.output_buckets": "job_buckets_are_in_the_region",
    "hyperpod.tiered_checkpointing.service_accounts.buckets": "job_buckets_are_in_the_region",
    "hyperpod.tiered_checkpointing.service_accounts.kms_key_arns": "kms_keys_can_encrypt",
    "notify.event_bus_arn": "notification_bus_exists",
    "notify.slack.channel_id": "notification_channel_can_be_configured",
    "notify.slack.workspace_id": "notification_channel_can_be_configured",
    "notify.sns_topic_arn": "notification_topic_takes_alarms",
    "operators.inference.model_buckets": "job_buckets_are_in_the_region",
    "operators.observability.grafana_workspace": "grafana_workspace_is_active",
    "operators.observability.prometheus_workspace": "prometheus_workspace_is_active",
    "storage.lustre.data_repositories.s3_uri": "data_repositories_are_in_the_region",
    "storage.s3.bucket": "mounted_buckets_are_in_the_region",
    "storage.s3.kms_key_arn": "kms_keys_can_encrypt",
    "task_governance.teams.member_role_arns": "roles_with_access_exist",
}
"""By which check status looks at what a field names."""

LEFT_OUT: Mapping[str, str] = {
    "eks.existing.cluster_name": "without it no node runs, which status says",
    "eks.existing.kubectl_role_arn": "only a deployment works as it",
    "eks.existing.oidc_provider_arn": "only pods of operators work by it, which status looks at",
    "eks.existing.security_group_id": "EC2 deletes none that is in use",
    "hyperpod.instance_groups.training_plan_arn": "a plan of its own in status",
    "hyperpod.restricted_instance_groups.training_plan_arn": "a plan of its own in status",
    "network.existing.cluster_subnet_ids": "EC2 deletes none that is in use",
    "network.existing.control_plane_subnet_ids": "EC2 deletes none that is in use",
    "network.existing.node_subnet_ids": "EC2 deletes none that is in use",
    "network.existing.security_group_id": "EC2 deletes none that is in use",
    "network.existing.vpc_id": "EC2 deletes none that is in use",
    "permissions_boundary": "IAM deletes no policy that is a boundary of roles",
    "storage.lustre.existing.file_system_id": "a file system of its own in status",
}
"""Why status needs no check of what a field names."""


def _fields(model: type[BaseModel], path: str = "") -> Iterator[str]:
    for name, field_ in model.model_fields.items():
        inner = [each for each in _models(field_.annotation) if issubclass(each, BaseModel)]
        here = f"{path}.{name}".lstrip(".")
        yield from (place for each in inner for place in _fields(each, here))
        if not inner and "str" in str(field_.annotation):
            yield re.sub(r"^encryption\..*", "encryption.*", here)


def _models(annotation: Any) -> Iterator[type]:
    if isinstance(annotation, type):
        yield annotation
    for each in get_args(annotation):
        yield from _models(each)


def test_each_field_that_names_what_others_own_is_looked_at() -> None:
    names = r"encryption\.\*|.*(arns?|_ids?|buckets?|uri|workspace|alarms|boundary)|eks\.existing\.cluster_name"
    named = {each for each in _fields(Environment) if re.fullmatch(names, each)}
    named = {each for each in named if not each.endswith("availability_zone_id")}
    assert named == {*LOOKED_AT, *LEFT_OUT}
    # the bucket of lifecycle scripts is named by a field called name
    assert {*LOOKED_AT.values()} == {*OF_OTHERS}


@dataclass
class Clock:
    """Waits without waiting, and presses Ctrl-C when it was looked at often enough."""

    looks: int
    waited: list[float] = field(default_factory=list)

    def pause(self, seconds: float) -> None:
        self.waited.append(seconds)
        if len(self.waited) == self.looks:
            raise KeyboardInterrupt


def _watched(folder: Path, *more: str, is_terminal: bool, looks: int = 3) -> tuple[Any, Clock]:
    (folder / "environments").mkdir()
    (folder / "environments" / "dev.yaml").write_text(FILE, encoding="utf-8")
    clock = Clock(looks=looks)
    targets = iter(range(4, 99))

    def look(_region: str, _account: str) -> LiveAws:
        script = of_today()
        script["sagemaker:DescribeCluster"]["InstanceGroups"][0]["TargetCount"] = next(targets)
        return reaching(script)

    way = Watching(open=look, pause=clock.pause, is_terminal=is_terminal)
    words = ["status", "dev", "--watch", "--project", str(folder), *more]
    return CliRunner().invoke(cli.app, words, prog_name="hyperpod-cdk", obj=way, color=True), clock


@pytest.mark.parametrize("more", [(), ("--format", "json")])
def test_a_watch_writes_a_line_of_json_for_each_look(tmp_path: Path, more: tuple[str, ...]) -> None:
    done, clock = _watched(tmp_path, "--every", "30", *more, is_terminal=False)
    assert (done.exit_code, clock.waited) == (130, [30, 30, 30])
    looks = [json.loads(line) for line in done.stdout.splitlines()]
    for each in looks:
        answered("status", json.dumps(each))
    # each look asks AWS anew
    assert [each["groups"][0]["target"] for each in looks] == [4, 5, 6]


def test_a_watch_ends_when_its_reader_closes_the_pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(living, "is_unread", lambda: True)
    done, clock = _watched(tmp_path, is_terminal=False)
    assert (done.exit_code, clock.waited, len(done.stdout.splitlines())) == (0, [], 1)


def test_a_watch_redraws_a_terminal(tmp_path: Path) -> None:
    done, clock = _watched(tmp_path, is_terminal=True, looks=2)
    assert (done.exit_code, clock.waited) == (130, [60, 60])
    screens = done.stdout.split("\x1b[H\x1b[2J\x1b[3J")
    assert [screen.splitlines()[:1] for screen in screens] == [
        [],
        ["dev: 3 of 6 nodes run; h100: 1 node failing."],
        ["dev: 3 of 7 nodes run; h100: 1 node failing."],
    ]


@pytest.mark.parametrize("is_terminal", [False, True])
def test_a_watch_goes_on_where_the_network_goes_and_comes_back(tmp_path: Path, *, is_terminal: bool) -> None:
    """A look at which nobody answers is skipped, said so, and followed by the next; without the first there is none."""
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments" / "dev.yaml").write_text(FILE, encoding="utf-8")
    gone = AwsAccessError("AWS cannot be reached: nothing answers; check the network, its proxy and AWS_ENDPOINT_URL")

    def watched(*networks: str) -> Any:
        there = iter(networks)

        def look(_region: str, _account: str) -> LiveAws:
            if next(there) == "gone":
                raise gone
            return reaching(of_today())

        way = Watching(open=look, pause=Clock(looks=len(networks)).pause, is_terminal=is_terminal)
        words = ["status", "dev", "--watch", "--project", str(tmp_path)]
        return CliRunner().invoke(cli.app, words, prog_name="hyperpod-cdk", obj=way, color=True)

    done = watched("there", "gone", "there")
    assert done.exit_code == 130
    if is_terminal:
        screens = done.stdout.split("\x1b[H\x1b[2J\x1b[3J")[1:]
        assert screens[0] == screens[2]
        assert "".join(screens[1].split()).startswith(
            f"dev:Nothingcouldberead.skippedthecluster:{gone}".replace(" ", "")
        )
    else:
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        assert [line["passed"] for line in lines] == [False, None, False]
        assert [(each["what"], each["reason"]) for each in lines[1]["skipped"]] == [("the cluster", str(gone))]
    first = watched("gone")
    assert (first.exit_code, first.stdout, first.stderr) == (2, "", f"{gone}\n")


def test_a_watch_goes_on_where_something_is_denied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look that is not answered is skipped, said so, and followed by the next."""
    denied = {**answers(), "sagemaker:ListClusterNodes": Fails("AccessDeniedException", "no", 403)}
    clock = Clock(looks=2)
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments" / "dev.yaml").write_text(FILE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    way = Watching(open=lambda _region, _account: reaching(denied), pause=clock.pause, is_terminal=False)
    done = CliRunner().invoke(cli.app, ["status", "dev", "--watch"], prog_name="hyperpod-cdk", obj=way)
    assert [json.loads(line)["groups"][0]["running"] for line in done.stdout.splitlines()] == [None, None]
