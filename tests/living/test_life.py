"""Drift of environments that are deployed to the embedded AWS: none after a deployment, and what becomes of it."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from hyperpod_cdk._cli.living import wanted_of
from hyperpod_cdk.checks.aws import LiveAws
from hyperpod_cdk.config import load_environment
from hyperpod_cdk.handlers.quota_gate.reading import Own
from hyperpod_cdk.living.drift import drift, with_lines
from hyperpod_cdk.living.model import Action, Drift, NodeWork, Status
from hyperpod_cdk.living.node_work import perform, prepare
from hyperpod_cdk.living.nodes import list_nodes
from hyperpod_cdk.living.standing import read_living
from hyperpod_cdk.living.status import status
from hyperpod_cdk.templates.assembly import read_assembly
from tests.support.assembly import ENVIRONMENTS, PROJECT
from tests.support.callers import as_it_ships
from tests.transitions.test_lives import ACCOUNT, Life, living


def look(life: Life, edited: dict[str, Any] | None = None) -> Drift:
    """Compare what is deployed; ``edited`` is what the file says now."""
    folder = life.folder / f"assembly-{life.count}"
    if edited is not None:
        file = life.folder / "look.yaml"
        file.write_text(yaml.safe_dump(edited, sort_keys=False), encoding="utf-8")
        folder = life.folder / "look"
        life.cdk.synth(file, folder)
    own = Own(stacks=(), hyperpod_cluster="", eks_cluster="")
    aws = LiveAws.open(region=life.data["region"], account=ACCOUNT, own=own)
    read = read_living(aws, read_assembly(folder, life.data["name"]))
    text = yaml.safe_dump(edited or life.data, sort_keys=False)
    return with_lines(drift(aws, read), read, load_environment(Path("small.yaml"), text=text))


@pytest.mark.examples
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", list(ENVIRONMENTS))
def test_what_was_just_deployed_is_no_drift(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with living(tmp_path, monkeypatch, text=as_it_ships(PROJECT / ENVIRONMENTS[name])) as life:
        found = look(life)
        assert [(each.resource, each.path, each.deployed, each.actual) for each in found.differences] == []
        # nobody outside of its VPC asks the API server of a private endpoint
        is_private = life.data["eks"].get("endpoint_access") == "private"
        assert {each.reason.rpartition(": ")[2] for each in found.skipped} == (
            {"its endpoint is private"} if is_private else set()
        )
        assert found.passed is (None if is_private else True)

        # what HyperPod and Karpenter do by themselves, and a larger group of the file
        _replaced_and_added(life)
        assert look(life).differences == ()
        (group, *_) = [each for each in life.data["hyperpod"]["instance_groups"] if each["count"]]
        life.change(lambda _: group.update(count=group["count"] + 1))
        again = look(life)
        assert (again.differences, again.skipped) == ((), found.skipped)


def _replaced_and_added(life: Life) -> None:
    """Replace a node of the first group, and add one to each group that Karpenter scales."""
    sagemaker, name = life.there.client("sagemaker"), life.data["hyperpod"].get("cluster_name") or life.data["name"]
    (node, *_) = sagemaker.list_cluster_nodes(ClusterName=name)["ClusterNodeSummaries"]
    done = sagemaker.batch_replace_cluster_nodes(ClusterName=name, NodeIds=[node["InstanceId"]])
    assert done["Successful"] == [node["InstanceId"]]
    if life.data["hyperpod"].get("autoscaling") == "karpenter":
        groups = [each["name"] for each in life.data["hyperpod"]["instance_groups"] if not each["count"]]
        added = [{"InstanceGroupName": each, "IncrementTargetCountBy": 1} for each in groups]
        sagemaker.batch_add_cluster_nodes(ClusterName=name, NodesToAdd=added)
    rows: list[Any] = []
    for _ in range(600):
        rows = sagemaker.list_cluster_nodes(ClusterName=name)["ClusterNodeSummaries"]
        is_new = node["InstanceId"] not in {each["InstanceId"] for each in rows}
        status = sagemaker.describe_cluster(ClusterName=name)["ClusterStatus"]
        if is_new and status == "InService" and {each["InstanceStatus"]["Status"] for each in rows} == {"Running"}:
            return
        time.sleep(0.05)
    raise AssertionError(rows)


@pytest.mark.examples
@pytest.mark.timeout(900)
def test_status_of_what_was_just_deployed_is_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its operators have their pods, and its nodes are all that its quotas lack; then the API server is closed."""
    with living(tmp_path, monkeypatch) as life:
        wanted = wanted_of(load_environment(Path("small.yaml"), text=yaml.safe_dump(life.data)).environment)

        def state() -> Status:
            own = Own(stacks=(), hyperpod_cluster="", eks_cluster="")
            aws = LiveAws.open(region=life.data["region"], account=ACCOUNT, own=own)
            return status(aws, wanted, now=datetime.now(UTC))

        found = state()
        assert (found.passed, found.verdict) == (True, "2 of 2 nodes run.")
        there = {each.name: (each.ready, each.wanted) for each in found.operators}
        assert {name: there[name] for name in ("coredns", "aws-fsx-csi-driver", "kube-proxy")} == {
            "coredns": (1, 1),
            "aws-fsx-csi-driver": (1, 1),
            "kube-proxy": (1, 1),
        }
        assert [(each.name.partition(" for ")[0], each.used) for each in found.quotas] == [
            ("ml.m5.2xlarge", 2),
            ("Total number of instances allowed across SageMaker HyperPod clusters", 2),
        ]
        life.there.client("eks").update_cluster_config(
            name="small-eks", resourcesVpcConfig={"endpointPublicAccess": False, "endpointPrivateAccess": True}
        )
        found = state()
        assert (found.passed, found.operators, [each.what for each in found.skipped]) == (None, (), ["operators"])


@pytest.mark.examples
@pytest.mark.timeout(900)
def test_what_is_reported_about_planted_drift_is_what_the_next_deployment_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Groups are scaled and labelled beside the file; then the file changes another part of the cluster."""
    with living(tmp_path, monkeypatch) as life:
        sagemaker = life.there.client("sagemaker")

        def counts() -> dict[str, int]:
            groups = sagemaker.describe_cluster(ClusterName="small")["InstanceGroups"]
            return {each["InstanceGroupName"]: each["TargetCount"] for each in groups}

        before = counts()
        assert look(life).differences == ()
        by_hand = {"system": 2, "far": 2}
        sagemaker.batch_add_cluster_nodes(
            ClusterName="small",
            NodesToAdd=[
                {"InstanceGroupName": name, "IncrementTargetCountBy": number - before[name]}
                for name, number in by_hand.items()
            ],
        )
        assert counts() == by_hand

        # the file as deployed: nothing happens, and a deployment does nothing
        found = look(life)
        assert {each.path: each.next.effect for each in found.differences} == {
            "InstanceGroups[system].InstanceCount": "nothing",
            "InstanceGroups[far].InstanceCount": "nothing",
        }
        life.change()
        assert counts() == by_hand

        # the cluster is in the change: the file follows one group and not the other
        edited = copy.deepcopy(life.data)
        edited["hyperpod"]["node_recovery"] = "none"
        edited["hyperpod"]["instance_groups"][1]["count"] = 2
        found = look(life, edited)
        said = {each.path: (each.next.effect, each.next.nodes_lost) for each in found.differences}
        assert said == {
            "InstanceGroups[system].InstanceCount": ("sets", 1),
            "InstanceGroups[far].InstanceCount": ("agrees", 0),
        }
        _, person = life.change(lambda data: data.update(edited))
        said_on_top = "Sets system from 2 back to 1: 1 node is terminated; HyperPod chooses which."
        assert person.shown[0].takes == (said_on_top,)
        assert counts() == {"system": 1, "far": 2}
        assert look(life).differences == ()


@pytest.mark.examples
@pytest.mark.timeout(900)
def test_a_node_is_replaced_and_rebooted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its group has as many nodes after it, of which one is new; nothing of it is drift."""
    with living(tmp_path, monkeypatch) as life:
        own = Own(stacks=(), hyperpod_cluster="", eks_cluster="")

        def nodes() -> dict[str, str]:
            aws = LiveAws.open(region=life.data["region"], account=ACCOUNT, own=own)
            found = list_nodes(aws, environment="small", cluster="small", group="system")
            return {each.id: each.status for each in found.nodes}

        def until(wanted: Callable[[dict[str, str]], bool]) -> dict[str, str]:
            found = nodes()
            for _ in range(300):
                if wanted(found):
                    return found
                time.sleep(0.05)
                found = nodes()
            raise AssertionError(found)

        def do(action: Action, name: str) -> NodeWork:
            aws = LiveAws.open(region=life.data["region"], account=ACCOUNT, own=own)
            work = prepare(aws, action, environment="small", called="small", cluster="small", names=[name])
            assert [each.name for each in work.nodes] == [name]
            return perform(aws, work)

        (old,) = until(lambda found: set(found.values()) == {"Running"})
        assert do("reboot", old).passed is True
        until(lambda found: found == {old: "Running"})
        assert do("replace", old).passed is True
        (new,) = until(lambda found: old not in found and set(found.values()) == {"Running"})
        assert new != old
        assert look(life).differences == ()


@pytest.mark.examples
@pytest.mark.timeout(900)
def test_changed_lifecycle_scripts_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Changed with the same length, changed in length, deleted, added; the next deployment leaves them as said."""
    with living(tmp_path, monkeypatch) as life:
        assert look(life).compared["Custom::CDKBucketDeployment"] == 1
        s3 = life.there.client("s3")
        found = life.there.client("sagemaker").describe_cluster(ClusterName="small")["InstanceGroups"][0]
        bucket, _, folder = found["LifeCycleConfig"]["SourceS3Uri"].removeprefix("s3://").partition("/")
        first, second, third = (row["Key"] for row in s3.list_objects_v2(Bucket=bucket, Prefix=folder)["Contents"][:3])
        body = s3.get_object(Bucket=bucket, Key=first)["Body"].read()
        s3.put_object(Bucket=bucket, Key=first, Body=body[:-1] + b"!")
        s3.put_object(Bucket=bucket, Key=second, Body=b"#!/bin/bash\n")
        s3.delete_object(Bucket=bucket, Key=third)
        s3.put_object(Bucket=bucket, Key=f"{folder}/extra.sh", Body=b"#!/bin/bash\n")

        def planted() -> dict[str, tuple[str | None, str]]:
            differences = look(life).differences
            return {each.path: (each.actual, each.next.effect) for each in differences}

        names = [each.removeprefix(f"{folder}/") for each in (first, second, third)]
        expected = {
            f"Objects[{names[0]}]": ("content that differs from what was uploaded", "nothing"),
            f"Objects[{names[1]}]": ("content that differs from what was uploaded", "nothing"),
            f"Objects[{names[2]}]": ("gone", "nothing"),
            "Objects[extra.sh]": ("put there by hand", "nothing"),
        }
        assert planted() == expected
        life.change(lambda data: data["hyperpod"].update(node_recovery="none"))
        assert planted() == expected
