"""Bundles of environments that are deployed to the embedded AWS: as assumed, with ten deviations, and replayed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hyperpod_cdk.catalog import durations
from hyperpod_cdk.living.observing.model import Bundle
from hyperpod_cdk.living.pages import as_json
from scripts.refresh_answers import bundle_of
from tests.support.assembly import PROJECT
from tests.transitions.test_lives import Life, living

EKS, FSX, HYPERPOD, EIP = (*("AWS::EKS::Cluster", "AWS::FSx::FileSystem", "AWS::SageMaker::Cluster", "AWS::EC2::EIP"),)
REPLACES = "Requested update requires the creation of a new physical resource; hence creating one."


def as_in_the_catalog(life: Life) -> list[dict[str, Any]]:
    """Give a time for every type that the stacks have, within the catalog's range: the hurried AWS has none."""
    cloudformation = life.there.client("cloudformation")
    seen = {
        (event["ResourceType"], event["ResourceStatus"].partition("_")[0])
        for stack in life.stacks()
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
    """Give minutes that fit a type in each circumstance in which the environment of these tests has it."""
    rows = [durations.duration(kind, action, when=when) for when in ("", "vpc") if kind != "AWS::EC2::VPCEndpoint"]
    rows = rows or [durations.OTHERS]
    return (max(each.low for each in rows) + min(each.high for each in rows)) / 2


def amended(life: Life, *, members: Any = (), times: Any = ()) -> Bundle:
    """Let the embedded AWS answer otherwise, and observe it."""
    rows = {(each["type"], each["action"]): each for each in (*as_in_the_catalog(life), *times)}
    sections = {"observed": {"members": list(members), "times": list(rows.values())}}
    assert life.there.address.control("amendment", sections)["problem"] == ""
    return bundle_of(life)


def member(operation: str, place: str, value: Any = None, **more: Any) -> dict[str, Any]:
    """Give a member as an account file has it."""
    return {"operation": operation, "place": place, **({} if value is None else {"value": value}), **more}


def event(kind: str, status: str) -> dict[str, Any]:
    """Give where of the events something is planted."""
    return {"where": {"ResourceType": kind, "ResourceStatus": status}, "only_first": True}


EVENTS = "cloudformation:DescribeStackEvents"
STATUS = "ClusterNodeSummaries[].InstanceStatus.Status"
TEN_MEMBERS = [
    # states
    member("sagemaker:ListClusterNodes", STATUS, "Quarantined", only_first=True),
    member("fsx:DescribeFileSystems", "FileSystems[].Lifecycle", "THROTTLED", only_first=True),
    # members
    member("eks:DescribeCluster", "cluster.platformVersion", is_left_out=True),
    member("eks:DescribeCluster", "cluster.connectorConfig", {"roleArn": "arn:aws:iam::111122223333:role/secret"}),
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
    ("answers", "eks:DescribeCluster cluster.connectorConfig"),
    ("defaults", f"{FSX} LustreConfiguration.LogConfiguration.Level"),
    ("defaults", f"{FSX} LustreConfiguration.CopyTagsToBackups"),
    ("updates", f"{HYPERPOD} NodeRecovery"),
    ("messages", f"{EIP} CREATE_FAILED"),
}


@pytest.fixture
def deployed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Life]:
    """Give an environment that was deployed and updated."""
    with living(tmp_path, monkeypatch) as life:
        life.change(lambda data: data["hyperpod"].update(node_recovery="none"))
        yield life


@pytest.mark.examples
@pytest.mark.timeout(900)
def test_exactly_the_ten_planted_deviations_are_listed_and_replayed(deployed: Life, tmp_path: Path) -> None:
    found = amended(deployed)
    print([(each.table, each.row, each.assumed, each.observed) for each in found.deviations])
    assert [(each.table, each.row, each.assumed, each.observed) for each in found.deviations] == []
    assert found.skipped == ()
    assert found.passed is True
    assert found.compared.updates > 0
    assert found.compared.members > 300

    found = amended(deployed, members=TEN_MEMBERS, times=TEN_TIMES)
    assert sorted((each.table, each.row) for each in found.deviations) == sorted(TEN)
    # nobody can tell whether a node in a state that AWS added works
    (skipped,) = found.skipped
    assert skipped.reason.endswith(", which is not known here")
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
