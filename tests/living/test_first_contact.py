"""Bundles of environments that are deployed to the embedded AWS: as assumed, with ten deviations, and replayed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from hyperpod_cdk.catalog import durations
from hyperpod_cdk.config import Environment
from hyperpod_cdk.living.observing.model import Bundle, Deviation
from hyperpod_cdk.living.pages import as_json
from hyperpod_cdk.review.deployed import Api
from hyperpod_cdk.templates.assembly import read_assembly
from scripts.refresh_answers import bundle_of, bundle_of_head
from tests.support.assembly import ENVIRONMENTS, PROJECT
from tests.support.callers import as_it_ships
from tests.support.embedded import Embedded
from tests.transitions.test_lives import Life, living

EKS, FSX, HYPERPOD, EIP = (*("AWS::EKS::Cluster", "AWS::FSx::FileSystem", "AWS::SageMaker::Cluster", "AWS::EC2::EIP"),)
ENDPOINT = "AWS::EC2::VPCEndpoint"
REPLACES = "Requested update requires the creation of a new physical resource; hence creating one."


def as_in_the_catalog(there: Embedded, stacks: Iterable[str]) -> list[dict[str, Any]]:
    """Return a time for every type that the stacks have, within the catalog's range: the hurried AWS has none."""
    cloudformation = there.client("cloudformation")
    seen = {
        (event["ResourceType"], event["ResourceStatus"].partition("_")[0])
        for stack in stacks
        for page in cloudformation.get_paginator("describe_stack_events").paginate(StackName=stack)
        for event in page["StackEvents"]
    }
    actions = {"CREATE": "create", "UPDATE": "update", "DELETE": "delete"}
    return [
        {"type": kind, "action": actions[verb], "minutes": _within(kind, actions[verb])}
        for kind, verb in sorted(seen)
        if verb in actions
    ]


def _within(kind: str, action: Any) -> float:
    """Return minutes that fit a type in each circumstance in which the environment of these tests has it."""
    rows = [durations.duration(kind, action, when=when) for when in ("", "vpc") if kind != ENDPOINT]
    rows = rows or [durations.OTHERS]
    return (max(each.low for each in rows) + min(each.high for each in rows)) / 2


def amend(there: Embedded, stacks: Iterable[str], *, members: Any = (), times: Any = ()) -> None:
    """Let the embedded AWS answer otherwise, and within the catalog's times."""
    rows = {(each["type"], each["action"]): each for each in (*as_in_the_catalog(there, stacks), *times)}
    sections = {"observed": {"members": list(members), "times": list(rows.values())}}
    assert there.address.control("amendment", sections)["problem"] == ""


def amended(life: Life, *, members: Any = (), times: Any = ()) -> Bundle:
    """Let the embedded AWS answer otherwise, and observe it."""
    amend(life.there, life.stacks(), members=members, times=times)
    return bundle_of(life)


def member(operation: str, place: str, value: Any = None, **more: Any) -> dict[str, Any]:
    """Return a member as an account file has it."""
    return {"operation": operation, "place": place, **({} if value is None else {"value": value}), **more}


def event(kind: str, status: str) -> dict[str, Any]:
    """Return where of the events something is planted."""
    return {"where": {"ResourceType": kind, "ResourceStatus": status}, "only_first": True}


EVENTS = "cloudformation:DescribeStackEvents"
STATUS = "ClusterNodeSummaries[].InstanceStatus.Status"
ROOT_VOLUME = "InstanceGroups[].InstanceStorageConfigs[].EbsVolumeConfig.RootVolume"
TEN_MEMBERS = [
    # states
    member("sagemaker:ListClusterNodes", STATUS, "Quarantined", only_first=True),
    member("fsx:DescribeFileSystems", "FileSystems[].Lifecycle", "THROTTLED", only_first=True),
    # members
    member("eks:DescribeCluster", "cluster.platformVersion", is_left_out=True),
    member("sagemaker:DescribeCluster", ROOT_VOLUME, "111122223333", only_first=True),
    # defaults
    member("fsx:DescribeFileSystems", "FileSystems[].LustreConfiguration.LogConfiguration.Level", "WARN_ERROR"),
    member("fsx:DescribeFileSystems", "FileSystems[].LustreConfiguration.CopyTagsToBackups", True),  # noqa: FBT003 - a value
    # an update
    member(EVENTS, "StackEvents[].ResourceStatusReason", REPLACES) | event(HYPERPOD, "UPDATE_IN_PROGRESS"),
    # a message
    member(
        "cloudformation:DescribeStackEvents",
        "StackEvents[].ResourceStatusReason",
        "The moon is in the wrong house 111122223333",
    )
    | event(EIP, "CREATE_COMPLETE"),
    member(EVENTS, "StackEvents[].ResourceStatus", "CREATE_FAILED") | event(EIP, "CREATE_COMPLETE"),
]
TEN_TIMES = [
    {"type": EKS, "action": "create", "minutes": 31},
    {"type": FSX, "action": "create", "minutes": 2},
]
TEN = {
    ("durations", f"{EKS} create"),
    ("durations", f"{FSX} create"),
    ("states", "sagemaker:ListClusterNodes ClusterNodeSummaries[].InstanceStatus.Status"),
    ("states", "fsx:DescribeFileSystems FileSystems[].Lifecycle"),
    ("answers", "eks:DescribeCluster cluster.platformVersion"),
    ("answers", f"sagemaker:DescribeCluster {ROOT_VOLUME}"),
    ("defaults", f"{FSX} LustreConfiguration.LogConfiguration.Level"),
    ("defaults", f"{FSX} LustreConfiguration.CopyTagsToBackups"),
    ("updates", f"{HYPERPOD} NodeRecovery"),
    ("messages", f"{EIP} CREATE_FAILED"),
}


ANYWHERE = [
    member("sagemaker:ListClusterNodes", STATUS, "Quarantined", only_first=True),
    member("sagemaker:DescribeCluster", "CreationTime", is_left_out=True),
    member("sagemaker:DescribeCluster", ROOT_VOLUME, "no boolean", only_first=True),
    member(EVENTS, "StackEvents[].ResourceStatusReason", "The moon is in the wrong house")
    | event("AWS::IAM::Role", "CREATE_COMPLETE"),
    member(EVENTS, "StackEvents[].ResourceStatus", "CREATE_FAILED") | event("AWS::IAM::Role", "CREATE_COMPLETE"),
    # what AWS's models have may come, whatever came before
    member("sagemaker:DescribeCluster", "ClusterRole", "arn:aws:iam::111122223333:role/others"),
    member(
        "cloudformation:DescribeStacks", "Stacks[].ParentId", "arn:aws:cloudformation:us-east-1:111122223333:stack/a/b"
    ),
]
"""What every environment has a place for."""

LISTED_ANYWHERE = {
    ("durations", f"{HYPERPOD} create"),
    ("states", f"sagemaker:ListClusterNodes {STATUS}"),
    ("answers", "sagemaker:DescribeCluster CreationTime"),
    ("answers", f"sagemaker:DescribeCluster {ROOT_VOLUME}"),
    ("messages", "AWS::IAM::Role CREATE_FAILED"),
}


@dataclass(frozen=True)
class Slow:
    """AWS as it answers, but that interface endpoints take their minutes: an account file has one time for a type."""

    aws: Api

    def pages(self, service: str, operation: str, key: str, **params: Any) -> list[Any]:
        rows = self.aws.pages(service, operation, key, **params)
        for row in rows if operation == "describe_stack_events" else ():
            is_made = (row["ResourceType"], row["ResourceStatus"]) == (ENDPOINT, "CREATE_COMPLETE")
            if is_made and "Interface" in str(row.get("ResourceProperties")):
                row["Timestamp"] += timedelta(minutes=2)
        return rows

    def call(self, service: str, operation: str, **params: Any) -> Mapping[str, Any]:
        return self.aws.call(service, operation, **params)

    def send(self, service: str, operation: str, **params: Any) -> Mapping[str, Any]:
        return self.aws.send(service, operation, **params)


GONE = object()
"""Stands for a member that is left out."""

QUOTA, DRA, GRAFANA = "AWS::SageMaker::ComputeQuota", "AWS::FSx::DataRepositoryAssociation", "AWS::Grafana::Workspace"
ROLE, LOGS, POLICY, ADDON, CHART = (
    *("AWS::IAM::Role", "AWS::Logs::LogGroup", "AWS::S3::BucketPolicy", "AWS::EKS::Addon"),
    "Custom::AWSCDK-EKS-HelmChart",
)
TIRED = 'Resource handler returned message: "no" (RequestToken: 0a1b, HandlerErrorCode: Tired)'

Plant = tuple[str, str, object]
"""An operation, a place and a value; a type, an action and its minutes; or a type, its status and the reason."""

PLANTED: dict[str, dict[tuple[str, str], Plant]] = {
    "two-teams": {
        ("states", f"sagemaker:ListClusterNodes {STATUS}"): ("sagemaker:ListClusterNodes", STATUS, "Quarantined"),
        ("states", "sagemaker:DescribeComputeQuota Status"): ("sagemaker:DescribeComputeQuota", "Status", "Dreaming"),
        ("states", "eks:DescribeCluster cluster.status"): ("eks:DescribeCluster", "cluster.status", "DREAMING"),
        ("states", "eks:DescribeAddon addon.status"): ("eks:DescribeAddon", "addon.status", "DREAMING"),
        ("answers", "eks:DescribeAddon addon.createdAt"): ("eks:DescribeAddon", "addon.createdAt", GONE),
        ("answers", "sagemaker:DescribeCluster CreationTime"): ("sagemaker:DescribeCluster", "CreationTime", GONE),
        ("answers", f"sagemaker:DescribeCluster {ROOT_VOLUME}"): (
            "sagemaker:DescribeCluster",
            ROOT_VOLUME,
            "no boolean",
        ),
        ("answers", "sagemaker:DescribeComputeQuota CreationTime"): (
            *("sagemaker:DescribeComputeQuota", "CreationTime", GONE),
        ),
        ("durations", f"{QUOTA} create"): (QUOTA, "create", 600.0),
        ("durations", f"{ADDON} create"): (ADDON, "create", 600.0),
        ("durations", f"{EIP} create (others)"): (EIP, "create", 600.0),
        ("updates", f"{HYPERPOD} NodeRecovery"): (HYPERPOD, "UPDATE_IN_PROGRESS", REPLACES),
        ("messages", f"{ROLE} CREATE_FAILED"): (ROLE, "CREATE_FAILED", "The moon is in the wrong house"),
    },
    "data": {
        ("states", "fsx:DescribeFileSystems FileSystems[].Lifecycle"): (
            *("fsx:DescribeFileSystems", "FileSystems[].Lifecycle", "THROTTLED"),
        ),
        ("states", "fsx:DescribeDataRepositoryAssociations Associations[].Lifecycle"): (
            *("fsx:DescribeDataRepositoryAssociations", "Associations[].Lifecycle", "DREAMING"),
        ),
        ("states", "sagemaker:DescribeCluster ClusterStatus"): ("sagemaker:DescribeCluster", "ClusterStatus", "Calm"),
        ("answers", "fsx:DescribeFileSystems FileSystems[].OwnerId"): (
            *("fsx:DescribeFileSystems", "FileSystems[].OwnerId", GONE),
        ),
        ("answers", "fsx:DescribeFileSystems FileSystems[].LustreConfiguration.EfaEnabled"): (
            *("fsx:DescribeFileSystems", "FileSystems[].LustreConfiguration.EfaEnabled", "maybe"),
        ),
        ("answers", "eks:DescribeCluster cluster.certificateAuthority"): (
            *("eks:DescribeCluster", "cluster.certificateAuthority", GONE),
        ),
        ("answers", "eks:DescribeAccessEntry accessEntry.createdAt"): (
            *("eks:DescribeAccessEntry", "accessEntry.createdAt", GONE),
        ),
        ("defaults", f"{FSX} LustreConfiguration.CopyTagsToBackups"): (
            *("fsx:DescribeFileSystems", "FileSystems[].LustreConfiguration.CopyTagsToBackups", True),
        ),
        ("defaults", f"{FSX} LustreConfiguration.LogConfiguration.Level"): (
            *("fsx:DescribeFileSystems", "FileSystems[].LustreConfiguration.LogConfiguration.Level", "WARN_ONLY"),
        ),
        ("durations", f"{FSX} create"): (FSX, "create", 600.0),
        ("durations", f"{DRA} create"): (DRA, "create", 60_000.0),
        ("updates", f"{HYPERPOD} NodeRecovery"): (HYPERPOD, "UPDATE_IN_PROGRESS", REPLACES),
        ("messages", f"{POLICY} CREATE_FAILED"): (POLICY, "CREATE_FAILED", TIRED),
    },
    "serving": {
        ("states", "grafana:DescribeWorkspace workspace.status"): (
            *("grafana:DescribeWorkspace", "workspace.status", "DREAMING"),
        ),
        ("states", "sagemaker:DescribeCluster InstanceGroups[].Status"): (
            *("sagemaker:DescribeCluster", "InstanceGroups[].Status", "Calm"),
        ),
        ("states", "sagemaker:DescribeClusterNode NodeDetails.InstanceStatus.Status"): (
            *("sagemaker:DescribeClusterNode", "NodeDetails.InstanceStatus.Status", "Quarantined"),
        ),
        ("answers", "grafana:DescribeWorkspace workspace.created"): (
            *("grafana:DescribeWorkspace", "workspace.created", GONE),
        ),
        ("answers", "eks:DescribePodIdentityAssociation association.createdAt"): (
            *("eks:DescribePodIdentityAssociation", "association.createdAt", GONE),
        ),
        ("answers", "eks:DescribeCluster cluster.platformVersion"): (
            *("eks:DescribeCluster", "cluster.platformVersion", GONE),
        ),
        ("answers", f"sagemaker:DescribeCluster {ROOT_VOLUME}"): (
            "sagemaker:DescribeCluster",
            ROOT_VOLUME,
            "no boolean",
        ),
        ("durations", f"{EKS} create"): (EKS, "create", 3.0),
        ("durations", f"{GRAFANA} create (others)"): (GRAFANA, "create", 600.0),
        ("durations", f"{CHART} create"): (CHART, "create", 600.0),
        ("updates", f"{HYPERPOD} NodeRecovery"): (HYPERPOD, "UPDATE_IN_PROGRESS", REPLACES),
        ("messages", f"{LOGS} CREATE_FAILED"): (LOGS, "CREATE_FAILED", "The moon is in the wrong house"),
    },
}
"""By the shipped example: what is planted for each row that is listed then."""


def as_planted(plant: Plant) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return members and times as an account file has them."""
    what, where, value = plant
    if where in ("create", "update", "delete"):
        return [], [{"type": what, "action": where, "minutes": value}]
    if where == "CREATE_FAILED":
        reason = member(EVENTS, "StackEvents[].ResourceStatusReason", value) | event(what, "CREATE_COMPLETE")
        return [reason, member(EVENTS, "StackEvents[].ResourceStatus", where) | event(what, "CREATE_COMPLETE")], []
    if where == "UPDATE_IN_PROGRESS":
        return [member(EVENTS, "StackEvents[].ResourceStatusReason", value) | event(what, where)], []
    if value is GONE:
        return [member(what, where, is_left_out=True)], []
    return [member(what, where, value)], []


def listed(found: Bundle) -> list[tuple[str, str]]:
    """Return the rows that are contradicted."""
    return sorted((each.table, each.row) for each in found.deviations)


@pytest.mark.examples
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", PLANTED)
def test_each_planted_deviation_of_an_example_is_listed_alone_and_with_all_others(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with living(tmp_path, monkeypatch, text=as_it_ships(PROJECT / ENVIRONMENTS[name])) as life:
        life.change(lambda data: data["hyperpod"].update(node_recovery="none"))
        planted = {row: as_planted(each) for row, each in PLANTED[name].items()}
        found = amended(life)
        assert (listed(found), found.skipped) == ([], ())
        for row, (members, times) in planted.items():
            assert listed(amended(life, members=members, times=times)) == [row]
        members = [each for of, _ in planted.values() for each in of]
        times = [each for _, of in planted.values() for each in of]
        assert listed(amended(life, members=members, times=times)) == sorted(planted)


def test_thirty_deviations_of_every_table_are_planted() -> None:
    rows = [row for each in PLANTED.values() for row in each]
    assert len(rows) >= 30
    tables = {"states", "durations", "answers", "defaults", "updates", "messages"}
    assert {table for table, _ in rows} == tables == {*get_args(Deviation.model_fields["table"].annotation)}


def only_what_is_planted_is_listed(there: Embedded, assembly: Path, environment: Environment) -> None:
    """Observe an environment that is deployed, as it is and with what is planted in AWS's answers."""
    head = read_assembly(assembly, environment.name)
    stacks = [each.name for each in head.stacks]
    amend(there, stacks)
    found = bundle_of_head(head, Slow)
    assert [(each.table, each.row, each.assumed, each.observed) for each in found.deviations] == []
    assert (found.skipped, found.passed) == ((), True)
    amend(there, stacks, members=ANYWHERE, times=[{"type": HYPERPOD, "action": "create", "minutes": 600}])
    assert {(each.table, each.row) for each in bundle_of_head(head, Slow).deviations} == LISTED_ANYWHERE
    assert there.address.control("amendment", {"observed": {}})["problem"] == ""


@pytest.fixture
def deployed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Life]:
    """Yield an environment that was deployed and updated."""
    with living(tmp_path, monkeypatch) as life:
        life.change(lambda data: data["hyperpod"].update(node_recovery="none"))
        yield life


@pytest.mark.examples
@pytest.mark.timeout(900)
def test_exactly_the_ten_planted_deviations_are_listed_and_replayed(deployed: Life, tmp_path: Path) -> None:
    found = amended(deployed)
    assert [(each.table, each.row, each.assumed, each.observed) for each in found.deviations] == []
    assert found.skipped == ()
    assert found.passed is True
    assert found.compared.updates > 0
    assert found.compared.members > 300

    found = amended(deployed, members=TEN_MEMBERS, times=TEN_TIMES)
    assert sorted((each.table, each.row) for each in found.deviations) == sorted(TEN)
    # nobody can tell whether a node in a state that AWS added works
    (skipped,) = found.skipped
    assert skipped.reason.endswith(", which this version does not know")
    assert "111122223333" not in as_json(found)

    file, out = tmp_path / "bundle.json", tmp_path / "replay"
    file.write_text(as_json(found), encoding="utf-8")
    script = [sys.executable, str(PROJECT / "scripts" / "replay.py"), str(file), "--out", str(out)]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [line.partition(":")[0] for line in done.stdout.splitlines()[1:]] == ["by hand", "by hand"]

    # the fixture answers as the account did, but for what it cannot hold
    fixture = yaml.safe_load((out / "account.yaml").read_text(encoding="utf-8"))["observed"]
    again = amended(deployed, members=fixture["members"], times=fixture["times"])
    assert {(each.table, each.row) for each in again.deviations} == {
        each for each in TEN if each[0] in {"durations", "states", "answers"}
    }

    # the proposed change is one that git applies, after which the catalog says what was observed
    diff = (out / "catalog.diff").read_text(encoding="utf-8")
    copy = tmp_path / "copy"
    data = PROJECT / "constructs" / "hyperpod_cdk" / "catalog" / "data"
    place = copy / data.relative_to(PROJECT)
    place.mkdir(parents=True)
    for name in ("durations.json", "answers.json"):
        (place / name).write_text((data / name).read_text(encoding="utf-8"), encoding="utf-8")
    applied = subprocess.run(
        ["git", "apply", "-"],  # noqa: S607 - whichever git there is
        cwd=copy,
        input=diff,
        capture_output=True,
        text=True,
        check=False,
    )
    assert applied.returncode == 0, applied.stderr
    rows = json.loads((place / "durations.json").read_text(encoding="utf-8"))["durations"]
    assert {
        (row["low"], row["high"])
        for row in rows
        if (row["type"], row["action"], row.get("when")) == (EKS, "create", None)
    } == {(8, 31)}
    answers = json.loads((place / "answers.json").read_text(encoding="utf-8"))
    assert answers["answers"]["eks:DescribeCluster cluster.platformVersion"] == "sometimes"
    assert answers["defaults"][f"{FSX} LustreConfiguration.CopyTagsToBackups"] == ["false", "true"]
