"""``plans attach``: whether a plan fits a group, what becomes of its nodes, and nothing that is written."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from hyperpod_cdk import cli
from hyperpod_cdk._cli.review import Access
from hyperpod_cdk.checks.policy import VERBS
from tests.living.test_status import opened
from tests.support.answers import answered
from tests.support.scripted_aws import WHO, Fails

ARN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/h100-may"
END = datetime.now(UTC) + timedelta(days=30)
DENIED = Fails("AccessDeniedException", "no", 403)
FILE = """\
name: dev
account: "111122223333"
region: us-east-1
network:
  availability_zones: {use1-az5: {}, use1-az4: {}}
eks: {kubernetes_version: "1.35", endpoint_access: private}
hyperpod:
  instance_groups:
    - {name: system, instance_type: ml.m5.2xlarge, count: 2, availability_zone_id: use1-az4}
    - {name: h100, instance_type: ml.p5.48xlarge, count: 4, availability_zone_id: use1-az5, capacity: on_demand}
"""
Run = Callable[..., Result]


def script(plan: dict[str, Any] | None = None, *, standing: int = 4, **more: Any) -> dict[str, Any]:
    block = {
        "ReservedCapacityArn": "arn:aws:sagemaker:us-east-1:111122223333:reserved-capacity/h100-may",
        "InstanceType": "ml.p5.48xlarge",
        "TotalInstanceCount": 4,
        "Status": "Active",
        "AvailabilityZone": "us-east-1a",
        "AvailabilityZoneId": "use1-az5",
    }
    found = {
        "TrainingPlanArn": ARN,
        "TrainingPlanName": "h100-may",
        "Status": "Active",
        "EndTime": END,
        "TotalInstanceCount": 4,
        "AvailableInstanceCount": 4,
        "TargetResources": ["hyperpod-cluster"],
        "ReservedCapacitySummaries": [block],
    }
    changed = plan or {}
    found["ReservedCapacitySummaries"] = [{**block, **changed.pop("block", {})}]
    group = {"InstanceGroupName": "h100", "CurrentCount": standing, "TargetCount": standing}
    return {
        "sts:GetCallerIdentity": WHO,
        "sagemaker:DescribeTrainingPlan": {**found, **changed},
        "sagemaker:DescribeCluster": {
            "ClusterArn": "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefabcdef",
            "ClusterStatus": "InService",
            "InstanceGroups": [group] if standing else [],
        },
        **{f"sagemaker:{name}": answer for name, answer in more.items()},
    }


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments" / "dev.yaml").write_text(FILE, encoding="utf-8")

    def run_verb(
        *words: str, aws: dict[str, Any] | None = None, asked: list[tuple[str, dict[str, Any]]] | None = None
    ) -> Result:
        access = Access(open=lambda _region, _account: opened(script() if aws is None else aws, asked))
        line = ["plans", "attach", "dev", *(words or ("h100", "h100-may")), "--project", str(tmp_path)]
        done = CliRunner().invoke(cli.app, line, prog_name="hyperpod-cdk", obj=access, catch_exceptions=False)
        assert (tmp_path / "environments" / "dev.yaml").read_text(encoding="utf-8") == FILE
        return done

    return run_verb


def test_nodes_that_stand_are_not_promised(run: Run) -> None:
    done = run()
    assert done.exit_code == 0
    leave = END - timedelta(hours=1)
    assert done.stdout == (
        "dev: h100-may fits h100.\n"
        "h100 is paid by on_demand, has 4 nodes and wants 4.\n"
        f"The plan's nodes leave at {leave:%Y-%m-%d %H:%M} UTC.\n"
        "UpdateCluster accepts another plan for an existing group. AWS does not document\n"
        "  what happens to the 4 nodes that it has now: expect to lose them with what\n"
        "  they run and their volumes.\n"
        "To keep them until the new ones run: add a group of another name with this plan,\n"
        "  move the jobs, then remove h100; 'hyperpod-cdk plan dev' lists the steps.\n"
        "In the file: capacity: training_plan and training_plan_arn:\n"
        f"  {ARN} at\n"
        "  hyperpod.instance_groups[1].\n"
    )


def test_no_node_is_none_that_is_lost(run: Run) -> None:
    done = run(aws=script(standing=0))
    assert done.exit_code == 0
    assert "h100 has no node, so none is lost" in done.stdout


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ({"Status": "Expired"}, "plan h100-may is Expired; a group needs a plan that is Active or Scheduled"),
        ({"Status": "Pending"}, "plan h100-may is Pending; a group needs a plan that is Active or Scheduled"),
        ({"TargetResources": ["training-job"]}, "plan h100-may is for training-job, not for hyperpod-cluster"),
        (
            {"block": {"InstanceType": "ml.p4d.24xlarge"}},
            "plan h100-may is of ml.p4d.24xlarge, h100 of ml.p5.48xlarge",
        ),
        ({"block": {"AvailabilityZoneId": "use1-az1"}}, "plan h100-may is in use1-az1, h100 in use1-az5"),
        ({"TotalInstanceCount": 3}, "plan h100-may has 3 instances, h100 wants 4"),
        # another cluster has one of them
        ({"AvailableInstanceCount": 3}, "plan h100-may has 3 instances available, h100 wants 4"),
    ],
)
def test_a_plan_that_does_not_fit(run: Run, plan: dict[str, Any], said: str) -> None:
    done = run("h100", "h100-may", "--format", "json", aws=script(plan))
    found = answered("attachment", done.stdout)
    assert (done.exit_code, found["passed"], found["problems"], found["told"]) == (1, False, [said], [])


def test_one_that_is_over(run: Run) -> None:
    end = datetime.now(UTC) + timedelta(minutes=59)
    done = run(aws=script({"EndTime": end}))
    assert (done.exit_code, "which is in the past" in done.stdout) == (1, True)


@pytest.mark.parametrize(
    ("plan", "unshown"),
    [
        ({"TargetResources": []}, ["the target resources of the plan"]),
        ({"TargetResources": None}, ["the target resources of the plan"]),
        ({"EndTime": None}, ["the end of the plan"]),
        ({"block": {"AvailabilityZoneId": None}}, ["the zone of the plan"]),
        ({"ReservedCapacitySummaries": []}, ["the instance type of the plan", "the zone of the plan"]),
        ({"TotalInstanceCount": None}, ["the number of instances of the plan"]),
        ({"AvailableInstanceCount": None}, ["the number of available instances of the plan"]),
    ],
)
def test_what_aws_leaves_out_fits_nothing(run: Run, plan: dict[str, Any], unshown: list[str]) -> None:
    answers = script(dict(plan))
    found = json.loads(run("h100", "h100-may", "--format", "json", aws=answers).stdout)
    assert (found["passed"], [each["what"] for each in found["skipped"]]) == (None, unshown)
    assert found["verdict"] == "h100-may fits h100, as far as AWS shows."
    done = run("h100", "h100-may", "--strict", aws=answers)
    assert done.exit_code == 1
    assert f"skipped {unshown[0]}" in done.output


@pytest.mark.parametrize("lost", ["CurrentCount", "InstanceGroupName", "InstanceGroups"])
def test_nodes_of_a_half_answer_are_unknown_and_not_none(run: Run, lost: str) -> None:
    answers = script()
    cluster = answers["sagemaker:DescribeCluster"]
    del (cluster if lost in cluster else cluster["InstanceGroups"][0])[lost]
    found = json.loads(run("h100", "h100-may", "--format", "json", aws=answers).stdout)
    assert (found["passed"], found["nodes_standing"]) == (None, None)
    assert [each["reason"] for each in found["skipped"]] == [
        f"the answer to sagemaker:DescribeCluster cannot be read: '{lost}' is missing"
    ]


@pytest.mark.parametrize(("strict", "code"), [((), 0), (("--strict",), 1)])
def test_nodes_that_cannot_be_read_are_unknown(run: Run, strict: tuple[str, ...], code: int) -> None:
    done = run("h100", "h100-may", "--format", "json", *strict, aws=script(DescribeCluster=DENIED))
    found = json.loads(done.stdout)
    assert (done.exit_code, found["passed"], found["nodes_standing"]) == (code, None, None)


@pytest.mark.parametrize(
    ("words", "more", "said"),
    [
        (("h200", "h100-may"), {}, "GROUP: the environment has no group h200; it has system, h100"),
        (
            ("h100", "h100-may"),
            {"DescribeTrainingPlan": Fails("ResourceNotFound", "no")},
            "plan h100-may could not be read: AWS has no such plan",
        ),
        (
            ("h100", "h100-may"),
            {"DescribeTrainingPlan": DENIED},
            "plan h100-may could not be read: no permission for sagemaker:DescribeTrainingPlan",
        ),
    ],
)
def test_what_keeps_it_from_looking_is_one_sentence(
    run: Run, words: tuple[str, ...], more: dict[str, Any], said: str
) -> None:
    done = run(*words, aws=script(**more))
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1].startswith(said)


def test_only_what_the_rights_of_the_verb_allow_is_asked(run: Run) -> None:
    asked: list[tuple[str, dict[str, Any]]] = []
    run(asked=asked)
    (verb,) = (each for each in VERBS if each.name == "plans attach")
    assert {name for name, _ in asked} == set(verb.actions)
